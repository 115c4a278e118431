"""A day on Spark beside the same day on DuckDB: seconds, and bytes shuffled and the heaviest stage from Spark's own event log."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import duckdb

from workbench.commit import ROOT
from workbench.measure import DRIVETAIL, Cost, measure, simulate
from workbench.parts import Bound, Section, Setting
from workbench.parts.day import fleet
from workbench.spark_cluster import Cluster

SKEW = 3
"""The longest task of the heaviest stage over its median, at most."""

EXECUTOR_GIB = 2
"""Memory of an executor of the cluster."""

LOCAL, CLUSTER = "Spark, `local[2]`", "Spark, a master and two workers of one core"
"""The engines measured beside DuckDB."""

STORED = ("fct_drive_hours", "fct_raid_hours")
"""Marts whose rows are compared."""


@dataclass
class Stage:
    """A stage of Spark: seconds of each of its tasks, and bytes that they wrote for other stages."""

    seconds: list[float] = field(default_factory=list)
    shuffled_bytes: int = 0


def read_event_log(folder: Path) -> list[Stage]:
    """The stages in the one event log of a folder, the one first whose tasks took the longest together."""
    (path,) = [file for file in folder.iterdir() if file.is_file()]
    stages: defaultdict[int, Stage] = defaultdict(Stage)
    with path.open(encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                metrics, stage = event["Task Metrics"], stages[event["Stage ID"]]
                stage.seconds.append(metrics["Executor Run Time"] / 1000)
                stage.shuffled_bytes += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return sorted(stages.values(), key=lambda stage: -sum(stage.seconds))


@contextmanager
def spark_settings(folder: Path) -> Iterator[Path]:
    """Have builds write an event log. Gives: the folder it is in."""
    logs, settings = folder / "events", folder / "conf"
    shutil.rmtree(folder, ignore_errors=True)
    logs.mkdir(parents=True)
    shutil.copytree(ROOT / "engine/spark_conf", settings)
    (settings / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir file://{logs}\nspark.eventLog.rolling.enabled false\n"
        f"spark.eventLog.compress false\nspark.executor.memory {EXECUTOR_GIB}g\n"
    )
    os.environ["SPARK_CONF_DIR"] = str(settings)
    try:
        yield logs
    finally:
        del os.environ["SPARK_CONF_DIR"]


def cpu_seconds(cluster: Cluster) -> float:
    """CPU seconds of a cluster's processes and of the executors that they have ended."""
    ticks = 0
    for process in cluster.processes:
        ticks += sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def digest(warehouse: Path) -> list[tuple[str, int, int]]:
    """Rows of each stored mart, and a number that depends on every value of theirs, in any order."""
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        return [
            (mart, *connection.execute(f"select count(*), bit_xor(hash(each)) from marts.{mart} as each").fetchall()[0]) for mart in STORED
        ]


def bench_spark(setting: Setting) -> list[Section]:
    """Build the day of the paper's fleet on DuckDB, on Spark in one process, and on a cluster of two workers, each from nothing."""
    title = "The paper's day on Spark"
    if not find_spec("pyspark") or not shutil.which("java"):
        print(f"{title}: skipped, pyspark or Java is not installed (`make .venv/.spark`)", flush=True)
        return []
    rows = simulate(fleet(setting), *setting.paper_fleet, 1)
    warehouse, scratch = setting.work / "spark-warehouse", setting.work / "spark-scratch"
    shutil.rmtree(warehouse, ignore_errors=True)
    measure(DRIVETAIL, "ingest", "bundle", fleet(setting), "--warehouse", warehouse)
    runs: dict[str, Cost] = {}
    logs: dict[str, list[Stage]] = {}
    digests: dict[str, list[tuple[str, int, int]]] = {}

    def run(engine: str, *options: str) -> None:
        with spark_settings(scratch / str(len(runs))) as events:
            runs[engine] = measure(DRIVETAIL, "build", "--warehouse", warehouse, "--full-refresh", *options)
            if options:
                logs[engine] = read_event_log(events)
        digests[engine] = digest(warehouse)
        print(engine, runs[engine], flush=True)

    run("DuckDB")
    run(LOCAL, "--target", "spark", "--master", "local[2]")
    cluster = Cluster(setting.work / "spark-cluster", worker_memory=f"{EXECUTOR_GIB + 1}g")
    try:
        before = cpu_seconds(cluster)
        run(CLUSTER, "--target", "spark", "--master", cluster.url)
        time.sleep(5)  # until the workers have ended their executors
        runs[CLUSTER] += Cost(0, cpu_seconds(cluster) - before, 0)
    finally:
        cluster.stop()
    heaviest = logs[LOCAL][0].seconds
    lines = [
        f"{rows:,} drive-hours, landed; `drivetail build --full-refresh` computes and publishes them.",
        f"The cluster's CPU time is also its workers', its memory the driver's alone. Load average at the end: {os.getloadavg()[0]:.1f}.",
        "",
        "| engine | wall (s) | CPU (s) | peak memory of the largest process (MiB) | wall, over DuckDB | CPU, over DuckDB | shuffled, bytes per drive-hour |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {engine} | {cost.cells} | {cost.seconds / runs['DuckDB'].seconds:.1f}x | {cost.cpu_seconds / runs['DuckDB'].cpu_seconds:.1f}x | "
            + (f"{sum(stage.shuffled_bytes for stage in logs[engine]) / rows:.0f} |" if engine in logs else " |")
            for engine, cost in runs.items()
        ),
        "",
        f"The heaviest stage has {len(heaviest)} tasks of {sum(heaviest):.1f} s together, the longest of {max(heaviest):.1f} s.",
    ]
    bounds = [
        Bound("the longest task of the heaviest stage over its median", max(heaviest) / statistics.median(heaviest), SKEW, "x"),
        Bound("marts of stored rows that differ from DuckDB's", sum(found != digests["DuckDB"] for found in digests.values()), 0, "marts"),
    ]
    shutil.rmtree(warehouse)
    return [Section(title, lines, bounds)]

"""A day on Spark beside the same day on DuckDB: seconds, bytes shuffled, and the plan of the heaviest stage, from Spark's own event log."""

from __future__ import annotations

import json
import os
import re
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
from workbench.parts.day import fleet as paper_day
from workbench.spark_cluster import Cluster

MODELS = 3
"""Models listed, the heaviest first."""

SKEW = 3
"""The longest task of the heaviest stage over its median, at most."""

EXECUTOR_GIB = 2
"""Memory of an executor of the cluster."""

LOCAL, CLUSTER = "Spark, `local[2]`", "Spark, a master and two workers of one core"
"""The engines measured beside DuckDB."""

WRITTEN = re.compile(r"Arguments: (?:`spark_catalog`\.`\w+`\.`(\w+)`|file:\S*/(?:\w+\.)?(\w+), )")
"""Where a plan says which table it writes, or the folder of one, which has the name of its model."""

STORED = ("fct_drive_hours", "fct_raid_hours")
"""Marts whose rows are compared."""


@dataclass
class Stage:
    """A stage of Spark: what its tasks took and moved."""

    execution: int
    """Number of the query that a job belongs to; -1 without one."""
    seconds: list[float] = field(default_factory=list)
    shuffled_bytes: int = 0


@dataclass
class EventLog:
    """Contents of an event log: stages, and of each query the model it is of and its last plan."""

    stages: dict[int, Stage] = field(default_factory=dict)
    models: dict[int, str] = field(default_factory=dict)
    plans: dict[int, str] = field(default_factory=dict)

    @property
    def shuffled_bytes(self) -> int:
        """Bytes that all stages wrote for other stages."""
        return sum(stage.shuffled_bytes for stage in self.stages.values())

    @property
    def task_seconds(self) -> float:
        """Seconds of all tasks, one after the other."""
        return sum(sum(stage.seconds) for stage in self.stages.values())

    def by_model(self) -> list[tuple[str, float, int]]:
        """Models with the seconds of their tasks and the bytes they shuffled, the heaviest first."""
        seconds: defaultdict[str, float] = defaultdict(float)
        moved: defaultdict[str, int] = defaultdict(int)
        for stage in self.stages.values():
            name = self.models.get(stage.execution, "(queries of the build)")
            seconds[name] += sum(stage.seconds)
            moved[name] += stage.shuffled_bytes
        return sorted(((name, seconds[name], moved[name]) for name in seconds), key=lambda each: -each[1])

    def heaviest(self) -> Stage:
        """The stage whose tasks took the longest together."""
        return max(self.stages.values(), key=lambda stage: sum(stage.seconds))


def read_event_log(folder: Path) -> EventLog:
    """Read the one event log in a folder."""
    (path,) = [file for file in folder.iterdir() if file.is_file()]
    found = EventLog()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            kind = event["Event"].rpartition(".")[2]
            if kind == "SparkListenerJobStart":
                execution = int(event.get("Properties", {}).get("spark.sql.execution.id", -1))
                for stage in event["Stage Infos"]:  # a later job may list one that it need not run again
                    found.stages.setdefault(stage["Stage ID"], Stage(execution))
            elif kind == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                metrics, stage = event["Task Metrics"], found.stages[event["Stage ID"]]
                stage.seconds.append(metrics["Executor Run Time"] / 1000)
                stage.shuffled_bytes += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            elif kind == "SparkListenerSQLExecutionStart":
                plan = event["physicalPlanDescription"]
                written = WRITTEN.search(plan)
                if written:
                    found.models[event["executionId"]] = written[1] or written[2]
                found.plans[event["executionId"]] = plan
            elif kind == "SparkListenerSQLAdaptiveExecutionUpdate":
                found.plans[event["executionId"]] = event["physicalPlanDescription"]
    return found


def exchanges(plan: str) -> list[str]:
    """The shuffles of a formatted plan: what each is by. One that is used again is listed once: it is written once."""
    found = []
    for number in re.findall(r" Exchange \((\d+)\)", "\n".join(tree(plan))):
        by = re.search(rf"^\({number}\) Exchange\n.*?^Arguments: (.*?), [A-Z_]+, \[plan_id", plan, re.MULTILINE | re.DOTALL)
        found.append(re.sub(r"#\d+L?", "", by[1]) if by else "?")
    return found


def tree(plan: str) -> list[str]:
    """The lines of a formatted plan that read, shuffle, join, add up and write; what Spark first planned is left out."""
    final = plan.split("\n\n")[0].split("+- == Initial Plan ==")[0]
    return [line for line in final.splitlines() if re.search(r"Scan|Exchange|Join|Aggregate|Window|Sort|Insert", line)]


@contextmanager
def spark_settings(folder: Path) -> Iterator[Path]:
    """Have builds write an event log. Gives: the folder it is in."""
    logs, settings = folder / "events", folder / "conf"
    shutil.rmtree(folder, ignore_errors=True)
    logs.mkdir(parents=True)
    shutil.copytree(ROOT / "engine/spark_conf", settings)
    (settings / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir file://{logs}\nspark.eventLog.rolling.enabled false\n"
        f"spark.eventLog.compress false\nspark.sql.maxPlanStringLength 1000000\nspark.executor.memory {EXECUTOR_GIB}g\n"
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
    """The day of a tenth of the paper's fleet: beside the whole one it says how much of Spark's time is the same for any day."""
    disk_groups, ssd_groups = (max(1, groups // 10) for groups in setting.paper_fleet)
    delivery = setting.work / f"{'small-' if setting.small else ''}day-over-10"
    return bench_fleet("A tenth of the paper's day on Spark", delivery, (disk_groups, ssd_groups), setting)


def bench_spark_day(setting: Setting) -> list[Section]:
    """The day of the paper's fleet."""
    return bench_fleet("The paper's day on Spark", paper_day(setting), setting.paper_fleet, setting)


def bench_fleet(title: str, delivery: Path, groups: tuple[int, int], setting: Setting) -> list[Section]:
    """Build a fleet's day on DuckDB, on Spark in one process, and on a cluster of two workers, each from nothing."""
    if not find_spec("pyspark") or not shutil.which("java"):
        print(f"{title}: skipped, pyspark or Java is not installed (`make .venv/.spark`)", flush=True)
        return []
    rows = simulate(delivery, *groups, 1)
    warehouse, scratch = setting.work / "spark-warehouse", setting.work / "spark-scratch"
    shutil.rmtree(warehouse, ignore_errors=True)
    measure(DRIVETAIL, "ingest", "bundle", delivery, "--warehouse", warehouse)
    runs: dict[str, Cost] = {}
    logs: dict[str, EventLog] = {}
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
    log = logs[LOCAL]
    heaviest = log.heaviest()
    plan = log.plans.get(heaviest.execution, "")
    lines = [
        f"{rows:,} drive-hours, landed; `drivetail build --full-refresh` computes and publishes them.",
        f"The cluster's CPU time is also its workers', its memory the driver's alone. Load average at the end: {os.getloadavg()[0]:.1f}.",
        "",
        "| engine | wall (s) | CPU (s) | peak memory of the largest process (MiB) | wall, over DuckDB | CPU, over DuckDB | shuffled, bytes per drive-hour |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {engine} | {cost.cells} | {cost.seconds / runs['DuckDB'].seconds:.1f}x | {cost.cpu_seconds / runs['DuckDB'].cpu_seconds:.1f}x | "
            + (f"{logs[engine].shuffled_bytes / rows:.0f} |" if engine in logs else " |")
            for engine, cost in runs.items()
        ),
        "",
        f"The heaviest stage is of `{log.models.get(heaviest.execution)}`: {len(heaviest.seconds)} tasks, {sum(heaviest.seconds):.1f} s together, "
        f"the longest {max(heaviest.seconds):.1f} s. Its query shuffles by {'; '.join(exchanges(plan)) or 'nothing'}.",
    ]
    if groups == setting.paper_fleet:  # of the smaller ones it is much the same
        lines += ["", "```text", *tree(plan), "```"]
        lines += [
            "",
            f"The models that take Spark longest, of {log.task_seconds:.0f} seconds of all tasks on {LOCAL}:",
            "",
            "| model | tasks (s) | shuffled, bytes per drive-hour |",
            "|---|--:|--:|",
            *(f"| `{model}` | {seconds:.1f} | {moved / rows:.0f} |" for model, seconds, moved in log.by_model()[:MODELS]),
        ]
    bounds = [
        Bound(
            "the longest task of the heaviest stage over its median", max(heaviest.seconds) / statistics.median(heaviest.seconds), SKEW, "x"
        ),
        Bound("marts of stored rows that differ from DuckDB's", sum(found != digests["DuckDB"] for found in digests.values()), 0, "marts"),
    ]
    shutil.rmtree(warehouse)
    return [Section(title, lines, bounds)]

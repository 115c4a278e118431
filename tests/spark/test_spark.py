"""The same models on Apache Spark have the same rows, and every line that is Spark's own has been run.

A golden fleet has everything that goes wrong (corrections, conflicts, late and bad records, inventory that changes), health readings,
samples and labels. Every model is computed, in one Spark session: it takes half a minute to start. tests/spark/test_build.py builds random
fleets on both engines.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from drivetail.ask.decisions import decide
from engine.build import build, make_asked
from engine.compile import compiled_manifest, nodes_of
from engine.compiled import models_of
from engine.projects import projects
from engine.warehouse import PROJECT, Warehouse
from ingest import ingest
from tests.golden import golden
from tests.reference.fleets import deliveries, random_fleet
from tests.spark.on_spark import OnSpark, compare, compared

pytestmark = [
    pytest.mark.proof,
    pytest.mark.xdist_group("spark"),
    pytest.mark.needs("java"),
]

INEXACT = (
    # DuckDB interpolates a percentile in one rounding (a fused multiply-add), Spark in several: quartiles, and ends of intervals
    r".*\.(.*_)?(low|high)|fct_peer_bands\.(lower|upper)_quartile_slowdown",
    # Kaplan-Meier's product is exp() of a sum of ln(): each engine's own, summed in its own order
    r"study_variants\.value",
    # a mean over RAID groups of shares, which are doubles: each engine adds them up in its own order
    r"health_comparison\.effect",
)
"""Columns whose doubles may differ in their last bits."""

MADE_IN_A_DAY = (
    *(f"int_drive_hours__{name}" for name in ("placed", "measured", "compared")),
    "int_raid_hours__medians",
    "int_drive_days",
)
"""Name of a stored model, and of the models that it is made of in the same run."""

PARTS = 2
"""Parts of a shuffle where its plan is looked at: of one part Spark needs no shuffle."""


@dataclass
class Run:
    """A fleet's publication, and all of it on Spark."""

    warehouse: Warehouse
    on_spark: OnSpark


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    warehouse = Warehouse(golden("on_spark", build_fleet, ("tests/reference",)) / "warehouse")
    on_spark = OnSpark(warehouse, tmp_path_factory.mktemp("spark"))
    on_spark.build()
    return Run(warehouse, on_spark)


def build_fleet(folder: Path) -> None:
    """Land and build a random fleet, decisions, and what it has not."""
    warehouse = Warehouse(folder / "warehouse")
    bundles, _ = deliveries(random_fleet(1), "shuffled", folder / "deliveries", random.Random(1))
    for bundle in bundles:
        ingest("bundle", [bundle], warehouse.root)
    build(warehouse)
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        drives = [drive for (drive,) in connection.execute("select drive_id from marts.dim_drives order by drive_id limit 2").fetchall()]
    decide(warehouse, drives, "watch", by="o'hara", note="noisy \\ {loud}")
    with warehouse.decisions.open("a", encoding="utf-8") as register:
        register.write('{"drive_id": "half a li')  # of a writer that was killed
    land_the_rest(warehouse, folder, drives)
    build(warehouse, daily=True)
    make_asked(warehouse)


def land_the_rest(warehouse: Warehouse, folder: Path, drives: list[str]) -> None:
    """Data that a random fleet lacks: health readings, labels, and samples of drives too few for Perseus."""
    write_health(folder / "health")
    ingest("bundle", [folder / "health"], warehouse.root)
    (folder / "labels.csv").write_text(f"drive_id,verdict\n{drives[0]},slow\n{drives[1]},healthy\ng00d0,slow\n")
    ingest("labels", [folder / "labels.csv"], warehouse.root)
    samples = folder / "samples/cluster_A/host_1/2026-01-06.csv"
    samples.parent.mkdir(parents=True)
    begin = int(datetime(2026, 1, 6, 9, tzinfo=UTC).timestamp())
    rows = [f"{begin + 15 * number},disk{number % 2},{1000 * number},{100 + number % 7}" for number in range(1, 500)]
    samples.write_text("\n".join(["ts,disk_id,throughput,latency", *rows]) + "\n")
    ingest("perseus", [folder / "samples"], warehouse.root, source_options={"resolution": "1m"})


def write_health(folder: Path) -> None:
    """Fourteen RAID groups of four, three hours a day, of two models and one unknown; readings of two attributes and an age, some missing.

    Reallocated sectors rise on slow days, those of M1 most; media errors know nothing of them. Of two readings of a day the last counts.
    """
    draw = random.Random(7)
    tables: dict[str, list[dict[str, Any]]] = {"drives": [], "drive_hours": [], "drive_health": []}
    for group, place in product(range(14), range(4)):
        drive = {"drive_id": f"g{group:02}d{place}", "raid_group_id": f"g{group:02}"}
        model = None if place == 3 and group < 4 else ("M1", "M2")[place % 2]
        tables["drives"].append(drive | {"role": "data", "kind": "disk", "model": model})
        for at in (datetime(2026, 1, 5) + timedelta(days=day) for day in range(14)):
            is_slow = place < 2 and draw.random() < 0.3
            for hour in range(3):
                measured = {"latency_us": 500.0 if is_slow and hour == 1 else 100.0, "io_count": 10}
                tables["drive_hours"].append(drive | {"hour_utc": at + timedelta(hours=hour), **measured})
            sectors = at.day % 4 + draw.randint(0, 3) + is_slow * (6 if model == "M1" else 3)
            given = {
                "reallocated_sector_ct": (sectors, 100 - sectors),
                "media_errors": (draw.randint(0, 1), None),
                "power_on_hours": (9, 9),
            }
            for name, (raw, normal) in given.items():
                if draw.random() < 0.8:
                    row = {"drive_id": drive["drive_id"], "attribute": name, "normalised_value": normal}
                    early, last = {"read_at": at, "raw_value": raw + 1}, {"read_at": at + timedelta(hours=9), "raw_value": raw}
                    tables["drive_health"] += [row | early, row | last]
    folder.mkdir()
    for name, rows in tables.items():
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / f"{name}.parquet")


def test_models_and_data_tests_pass_on_spark(run: Run) -> None:
    assert run.on_spark.failures == []


def test_every_row_is_that_of_the_publication(run: Run) -> None:
    relations = compared(run.warehouse.published)
    found = compare(run.warehouse.published, relations)
    assert found.differences == []
    unexplained = {name: much for name, much in found.inexact.items() if not re.fullmatch("|".join(INEXACT), name)}
    assert unexplained == {}
    assert found.relations == len(relations) > 12 and found.rows > 1000


def test_the_rows_compared_have_health_and_labels(run: Run) -> None:
    with duckdb.connect(str(run.warehouse.published), read_only=True) as connection:
        for mart in ("marts.fct_drive_health", "study.health_comparison", "study.health_warnings", "marts.fct_slow_alerts"):
            assert connection.execute(f"select count(*) from {mart}").fetchall()[0][0] > 0, mart
        assert connection.execute("select sum(labelled_count - unseen_count) from report.detector_scores").fetchall()[0][0] > 0


def test_spark_says_why_perseus_was_not_run(run: Run) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    rows = session.sql("select detector from report.detector_scores where not_run_because is not null").collect()
    assert [row.detector for row in rows] == ["perseus"]
    with duckdb.connect(str(run.warehouse.published), read_only=True) as connection:
        assert connection.execute("select distinct not_run_because from report.detector_scores").fetchall() == [(None,)]


def test_every_macro_of_spark_has_been_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference of the engines is a macro in two arms; an arm that nothing runs is a guess. Macros are used while models are compiled;
    what was run is compiled here once more.
    """
    from dbt.compilation import Compiler
    from dbt_common.clients.jinja import BaseMacroGenerator

    called: set[str] = set()
    is_compiling = False
    call_macro, compile_node = BaseMacroGenerator.call_macro, Compiler.compile_node

    def noted(generator: Any, *arguments: Any, **named: Any) -> Any:
        if is_compiling and hasattr(generator, "macro"):  # text of a query has none
            called.add(generator.macro.name)
        return call_macro(generator, *arguments, **named)

    def compiled(compiler: Compiler, node: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal is_compiling
        is_compiling = True
        try:
            return compile_node(compiler, node, *arguments, **named)
        finally:
            is_compiling = False

    monkeypatch.setattr(BaseMacroGenerator, "call_macro", noted)
    monkeypatch.setattr(Compiler, "compile_node", compiled)
    for place in (PROJECT, *(project.FOLDER for project in projects() if project.READS_FLEET)):
        found = nodes_of(compiled_manifest("spark", tmp_path / place.name, place))
        assert {node.relation: node.sql for node in found} == {node.relation: node.sql for node in models_of("spark", place)}
    arms = {
        name for file in (PROJECT / "macros").rglob("*.sql") for name in re.findall(r"\{% macro (spark_\w+)\(", file.read_text("utf-8"))
    }
    assert len(arms) > 20
    assert arms - called == set(), "no relation is made with these"
    assert run.on_spark.failures == []


def test_nothing_is_left_in_the_working_directory(run: Run) -> None:
    assert not {"metastore_db", "spark-warehouse", "derby.log"} & {path.name for path in PROJECT.iterdir()}


@dataclass
class Again:
    """Traces of a run of one day: when files of a stored model were written, before and after, and its statements."""

    day: str
    before: dict[Path, int]
    after: dict[Path, int]
    statements: list[str]


@pytest.fixture(scope="module")
def again(run: Run) -> Again:
    from pyspark.sql import SparkSession

    on_spark = run.on_spark
    table = on_spark.folder / "int_drive_days"
    days = sorted(path.name.removeprefix("day_utc=") for path in table.glob("day_utc=*"))
    chosen = days[len(days) // 2]
    before = {path: path.stat().st_mtime_ns for path in table.rglob("*.parquet")}
    statements: list[str] = []
    sql = SparkSession.sql

    def noted(session: SparkSession, text: str, *arguments: Any) -> Any:
        statements.append(text)
        return sql(session, text, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSession, "sql", noted)
        patch.setenv("DRIVETAIL_SPARK_PARTITIONS", str(PARTS))
        only = [date.fromisoformat(chosen)]
        on_spark.show(only)
        on_spark.new_executor().make([node for node in on_spark.models if node.name in MADE_IN_A_DAY], only)
    on_spark.show()
    return Again(chosen, before, {path: path.stat().st_mtime_ns for path in table.rglob("*.parquet")}, statements)


def test_only_the_days_of_a_run_are_replaced(run: Run, again: Again) -> None:
    assert {path.parent.name for path, _ in set(again.before.items()) ^ set(again.after.items())} == {f"day_utc={again.day}"}
    assert compare(run.warehouse.published, ["intermediate.int_drive_days"]).differences == []


def test_drive_hours_are_compared_in_place_for_any_number_of_raid_hours(again: Again) -> None:
    (made,) = (text for text in again.statements if text.startswith("create table intermediate.int_drive_hours__compared "))
    query = re.split(r" location '[^']*' as ", made, maxsplit=1)[1]
    plan = planned(query)
    assert "SortMergeJoin" in plan and "Exchange" not in plan, plan
    # as Spark would have it: drive-hours to their RAID-hours, and back to lie by RAID group
    plan = planned(query, requireAllClusterKeysForCoPartition="true")
    assert plan.count("Exchange hashpartitioning") == 3, plan


def planned(query: str, **settings: str) -> str:
    """Spark's plan of a query whose tables are all too large to be sent everywhere."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    wanted = {"autoBroadcastJoinThreshold": "-1", "adaptive.enabled": "false", "maxPlanStringLength": "1000000", **settings}
    before = {name: session.conf.get(f"spark.sql.{name}") for name in wanted}
    try:
        for name, value in wanted.items():
            session.conf.set(f"spark.sql.{name}", value)
        return str(session.sql(query)._jdf.queryExecution().executedPlan())
    finally:
        for name, value in before.items():
            session.conf.set(f"spark.sql.{name}", value)

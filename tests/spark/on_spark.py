"""The models run on Spark over a raw folder, and their rows beside a DuckDB publication of the same raw."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.dbt import QUIET, Project, options, runner
from engine.read import configure_reader
from engine.warehouse import Warehouse

RELATIVE = 1e-9
"""Doubles are the same that differ by no more of themselves."""

LEFT_OUT = {"publication": {"publication_id", "published_at"}, "detector_scores": {"not_run_because"}}
"""Columns of marts that name one publication, or say what the engine leaves out."""


@dataclass
class Comparison:
    """What differs between Spark's rows and a publication's, a sentence each, and where doubles are equal but for their last bits."""

    relations: int = 0
    rows: int = 0
    differences: list[str] = field(default_factory=list)
    inexact: dict[str, float] = field(default_factory=dict)
    """Greatest relative difference by relation.column, of those that are not the same double."""


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Variables of the environment for as long as a block runs, without DRIVETAIL_* of anybody else."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("DRIVETAIL_") and not name.startswith("DRIVETAIL_SPARK_")]:
        del os.environ[name]
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def spark_dbt(folder: Path, raw: Path, *command: str, **more: str) -> list[Any]:
    """Run a dbt command on Spark, in this process and its one session. folder: for the tables and what dbt writes.

    Returns: dbt's results, one per node. Raises: AssertionError when dbt does not get as far as running nodes.
    """
    values = {"DRIVETAIL_RAW": str(raw), "DRIVETAIL_STORE": str(folder / "store"), **more}
    with environment(
        **{"DRIVETAIL_SPARK_MASTER": "local[2]", **{k: v for k, v in os.environ.items() if k.startswith("DRIVETAIL_SPARK_")}, **values}
    ):
        (folder / "store").mkdir(parents=True, exist_ok=True)
        done = runner(Project.parsed("spark", folder / "target", folder / "logs")).invoke(
            [*QUIET, *command, *options("spark", folder / "target", folder / "logs")]
        )
    assert hasattr(done.result, "results"), done.exception
    return list(done.result.results)


def last_hour(published: Path) -> dict[str, str]:
    """What a run on Spark has to be told of a publication, so that its marts are those of it."""
    with duckdb.connect(str(published), read_only=True) as connection:
        ((last, horizon),) = connection.execute("select last_hour_utc, pruned_before_utc from marts.publication").fetchall()
    return {name: str(at) for name, at in (("DRIVETAIL_LAST_HOUR", last), ("DRIVETAIL_HORIZON", horizon)) if at}


def build_on_spark(warehouse: Warehouse, folder: Path) -> list[Any]:
    """`dbt build` of every model, over the raw of a warehouse as its publication sees it. Returns: dbt's results.

    Unit tests are left out, and but in a soak generic ones too: every row is compared with a publication that has passed them.
    """
    left_out = ("test_type:unit",) if "DRIVETAIL_FLEETS" in os.environ else ("test_type:unit", "test_type:generic")
    return spark_dbt(folder, warehouse.raw, "build", "--exclude", *left_out, **last_hour(warehouse.published))


def failures(results: list[Any]) -> list[str]:
    """A sentence for each node that failed or was left out because another failed."""
    bad = [each for each in results if str(each.status) in {"error", "fail", "runtime error", "skipped"}]
    return [f"{each.node.name}: {each.status} {' '.join(str(each.message).split())[:500]}" for each in bad]


def compared(published: Path) -> list[str]:
    """The relations of a publication that Spark's are compared with: the marts and the stored models, as schema.name."""
    query = """
        select schema_name || '.' || view_name from duckdb_views()
        where not internal and (schema_name = 'marts' or sql like '%day_utc=%') and schema_name in ('marts', 'intermediate')
        union select schema_name || '.' || table_name from duckdb_tables() where schema_name = 'marts' order by 1
    """
    with duckdb.connect(str(published), read_only=True) as connection:
        return [name for (name,) in connection.execute(query).fetchall()]


def compare(published: Path, relations: list[str] | None = None) -> Comparison:
    """Compare relations of the running Spark session with those of a publication: columns, types, every row.

    All values are to be the same, doubles to 1e-9 of themselves; where those are not the same double, the comparison says how far they are.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()  # dbt's, of another thread
    found = Comparison()
    with duckdb.connect() as connection:
        configure_reader(connection)
        connection.execute("set timezone = 'UTC'")
        connection.execute(f"attach '{published}' as published (read_only)")
        for relation in relations or compared(published):
            connection.register("of_spark", session.table(relation).toArrow())
            _compare_relation(connection, relation, "of_spark", found)
            connection.unregister("of_spark")
    return found


def compare_publications(published: Path, of_spark: Path) -> Comparison:
    """Compare all relations of a publication whose days DuckDB computed with those of one whose days Spark computed, as compare() does."""
    found = Comparison()
    with duckdb.connect() as connection:
        configure_reader(connection)
        connection.execute("set timezone = 'UTC'")
        connection.execute(f"attach '{published}' as published (read_only)")
        connection.execute(f"attach '{of_spark}' as of_spark (read_only)")
        for relation in compared(published):
            _compare_relation(connection, relation, f"of_spark.{relation}", found)
    return found


def _compare_relation(connection: duckdb.DuckDBPyConnection, relation: str, of_spark: str, found: Comparison) -> None:
    found.relations += 1
    types = {name: of for name, of, *_ in connection.execute(f"describe published.{relation}").fetchall()}
    theirs = {name: of for name, of, *_ in connection.execute(f"describe {of_spark}").fetchall()}
    if types != theirs:
        found.differences.append(f"{relation}: columns {sorted(types.items() ^ theirs.items())}")
        return
    names = [name for name in types if name not in LEFT_OUT.get(relation.split(".")[1], ())]
    listed = ", ".join(f'"{name}"' for name in names)
    connection.execute(f"create or replace temp table one as select {listed} from published.{relation}")
    connection.execute(f"create or replace temp table two as select {listed} from {of_spark}")
    counts = [connection.execute(f"select count(*) from {side}").fetchone() for side in ("one", "two")]
    found.rows += counts[0][0]
    if counts[0] != counts[1]:
        found.differences.append(f"{relation}: {counts[0][0]} rows, on Spark {counts[1][0]}")
    doubles = {place for place, name in enumerate(names) if types[name] == "DOUBLE"}
    left, right = (
        sorted(
            connection.execute(f"(from {first}) except all (from {second})").fetchall(),
            key=lambda row: (
                [str(value) for place, value in enumerate(row) if place not in doubles],
                [row[place] or 0.0 for place in sorted(doubles)],
            ),
        )
        for first, second in (("one", "two"), ("two", "one"))
    )
    if len(left) != len(right):
        found.differences.append(
            f"{relation}: {len(left)} rows are not Spark's, such as {_row(names, left)}; {len(right)} only Spark's: {_row(names, right)}"
        )
        return
    for mine, theirs_ in zip(left, right, strict=True):
        for place, name in enumerate(names):
            a, b = mine[place], theirs_[place]
            if a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)):
                continue
            if place in doubles and a is not None and b is not None and math.isclose(a, b, rel_tol=RELATIVE):
                key = f"{relation.split('.')[1]}.{name}"
                found.inexact[key] = max(found.inexact.get(key, 0.0), abs(a - b) / max(abs(a), abs(b)))
            else:
                found.differences.append(f"{relation}.{name}: {a!r}, on Spark {b!r}, in {_row(names, [mine])}")
                return


def _row(names: list[str], rows: list[tuple]) -> str:
    return (
        str({name: str(value) if isinstance(value, datetime) else value for name, value in zip(names, rows[0], strict=True)})
        if rows
        else "none"
    )

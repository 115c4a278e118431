"""The models run on Spark over a raw folder, and their rows beside a DuckDB publication of the same raw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

import duckdb

from engine.execute import limit_memory
from engine.nodes import SEED, STORED
from engine.projects import built_models, published_schemas
from engine.publish import current_publication
from engine.sources import RawFiles
from engine.spark import SparkExecutor
from engine.thresholds import own_thresholds
from engine.warehouse import Warehouse
from ingest.raw.store import list_folders

RELATIVE = 1e-9
"""Doubles are the same that differ by no more of themselves."""

LEFT_OUT = {"publication": {"publication_id", "published_at"}, "detector_scores": {"not_run_because"}}
"""Columns of marts that name one publication, or say what the engine leaves out."""

NO_FILES_OF_DELIVERIES = {f"raw.{name}" for name in ("publication", "decisions")}
"""Sources of schema raw that no delivery holds."""


@dataclass
class Comparison:
    """Differences between Spark's rows and a publication's, a sentence each, and where doubles are equal but for their last bits."""

    relations: int = 0
    rows: int = 0
    differences: list[str] = field(default_factory=list)
    inexact: dict[str, float] = field(default_factory=dict)
    """Greatest relative difference by relation.column, of those that are not the same double."""


class OnSpark:
    """The models on the running Spark session, over the raw of a warehouse as its publication sees it. folder: for the tables."""

    def __init__(self, warehouse: Warehouse, folder: Path) -> None:
        self.warehouse = warehouse
        self.folder = folder
        self.models = built_models(own_thresholds(warehouse), "spark")
        self.failures: list[str] = []
        """A sentence for each model and data test that failed, or was left out because what it reads had failed."""
        self.executor = self.new_executor()

    def new_executor(self) -> SparkExecutor:
        """One over the same tables, with the settings of the environment as it is now."""
        return SparkExecutor(self.models, self.folder, own_thresholds(self.warehouse))

    def show(self, days: Sequence[date] | None = None) -> None:
        """Have the models see what has landed and what is stored: of what is by day some days, or all."""
        publication = current_publication(self.warehouse)
        assert publication is not None
        horizon = publication.pruned_before_utc and publication.pruned_before_utc.date()
        landed = [
            name.removeprefix("raw.") for name in self.models.sources if name.startswith("raw.") and name not in NO_FILES_OF_DELIVERIES
        ]
        self.executor.show_raw(landed, RawFiles(list_folders(self.warehouse.root)), days, horizon)
        self.executor.show_store(days)

    def build(self) -> None:
        """Make the models, and test them with every data test of theirs."""
        clear_catalog()
        self.executor = self.new_executor()
        self.show()
        seeds = [node.relation for node in self.models.made(SEED)]
        given = [name for name in self.models.sources if name in NO_FILES_OF_DELIVERIES or name.startswith("plan.")]
        with duckdb.connect(str(self.warehouse.build_database), read_only=True) as connection:
            self.executor.take(connection, [*seeds, *given])
        failed: set[str] = set()
        for node in self.models:
            if node.made != SEED and not self._try(node.relation, node.parents, failed, lambda node=node: self.executor.make([node])):
                failed.add(node.relation)
        there = {node.relation for node in self.models} | set(self.models.sources)
        for test in (test for test in self.models.tests if set(test.nodes) <= there):
            self._try(f"test {test.name}", test.nodes, failed, lambda test=test: self.executor.run_test(test))

    def _try(self, name: str, reads: Sequence[str], failed: set[str], work: Callable[[], None]) -> bool:
        if failed & set(reads):
            self.failures.append(f"{name}: left out, for {', '.join(sorted(failed & set(reads)))}")
            return False
        try:
            work()
        except Exception as error:
            self.failures.append(f"{name}: {str(error)[:500]}")
            return False
        return True


def clear_catalog() -> None:
    """Have the running session forget every table and view: nothing is to come from what was run before. The files stay."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    for database in session.catalog.listDatabases():
        if database.name != "default":
            session.sql(f"drop schema {database.name} cascade")


def compared(published: Path) -> list[str]:
    """The relations of a publication that Spark's are compared with: the marts and the stored models, as schema.name.

    The rows of marts.relations are written when it is published.
    """
    wanted = [node.relation for node in built_models({}) if node.schema in published_schemas() or node.made in STORED]
    wanted.remove("marts.relations")
    query = "select schema_name || '.' || view_name from duckdb_views() union select schema_name || '.' || table_name from duckdb_tables()"
    with duckdb.connect(str(published), read_only=True) as connection:
        there = {name for (name,) in connection.execute(query).fetchall()}
    assert set(wanted) <= there, set(wanted) - there
    return sorted(wanted)


def compare(published: Path, relations: list[str] | None = None) -> Comparison:
    """Compare relations of the running Spark session with those of a publication: columns, types, every row.

    All values are to be the same, doubles to 1e-9 of themselves; where those are not the same double, the comparison says how far they are.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    found = Comparison()
    with duckdb.connect() as connection:
        limit_memory(connection)
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
        limit_memory(connection)
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

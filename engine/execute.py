"""Run the compiled models on DuckDB, one statement after the other in one connection (docs/decisions/0015-compiled-models.md).

A node becomes a file of the store for each day, a table in memory while days are computed, a table, or a view. Contracts are checked
against what has been made, data tests are queries that return no row, and an error names the model, its file and DuckDB's message.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from engine.errors import FailedModel, ModelError
from engine.nodes import (
    BY_DAY,
    BY_DAY_WHEN_ASKED,
    EACH_BUILD,
    EACH_DAY,
    SEED,
    STORED,
    VIEW,
    WHEN_ASKED,
    WITH_DAYS,
    WITH_INVENTORY,
    Models,
    Node,
    Test,
)
from engine.sources import EARLIER, MEASURED, OF_A_PUBLICATION, RawFiles, no_rows, parquet, show_sources, source_rows
from engine.warehouse import PROJECT, Warehouse, day_folder, quoted
from ingest.raw.durable import remove
from ingest.reading.limits import memory_limit

PARQUET = "format parquet, compression zstd, compression_level 1, dictionary_size_limit 1000"
"""Dictionaries are for columns of few values: trying one on every measurement takes a fifth of the time and saves nothing."""

AS_WRITTEN = "build_side_probe_side"
"""A step of DuckDB's planning that is left out where days are computed. The right side of a join is held in memory, as the models are
written: DuckDB guesses the rows of Parquet files from a few of them, and would hold a day's 12 million wide rows, not its RAID-hours."""

IN_MEMORY = "in_memory"
"""The attached database of tables that live no longer than a build: each makes them again, and a file would only cost time."""

SMALL_MONTH_BYTES = 32 * 2**20
"""Size of the files of a model's month up to which a copy of them in one saves a build more than it costs: below it, opening a file takes
longer than reading it."""

DRIVES_OF_A_PART = 100_000
"""Drives whose four weeks are read at a time, where DuckDB keeps a state of each group, or each value, until a statement ends."""

STATE = """
create schema if not exists state;
create table if not exists state.finished_deliveries (delivery_seq bigint primary key, digest varchar not null);
create table if not exists state.project (version varchar);
create table if not exists state.defined (version varchar);
create table if not exists state.made (relation varchar primary key, as_of_hour_utc timestamp, publication_id varchar);
create table if not exists state.days_not_in_marts (day_utc date);
create table if not exists state.counted_days (day_utc date primary key, computed_as varchar);
create table if not exists state.made_of (classes varchar, descriptions varchar);
create table if not exists state.asked (of_state varchar);
create table if not exists state.joined_months (model varchar, files varchar[], file varchar);
create table if not exists state.last_name (number bigint);
create table if not exists state.sums (file varchar primary key, row_count bigint, total hugeint, reader varchar);
"""
"""State that a build database keeps between builds, beside the sources of schema `plan`."""


def limit_memory(connection: duckdb.DuckDBPyConnection) -> None:
    """Limit the memory of a connection; what does not fit is written to a temporary folder."""
    connection.execute(f"set memory_limit = {quoted(memory_limit())}")


def configure(connection: duckdb.DuckDBPyConnection) -> None:
    """Set a connection up for a build."""
    limit_memory(connection)
    connection.execute("set preserve_insertion_order = false; set parquet_metadata_cache = true")


def create_schemas(connection: duckdb.DuckDBPyConnection, models: Models) -> None:
    """Make the schemas, what is remembered between builds, and the sources that are tables."""
    schemas = dict.fromkeys(name.split(".")[0] for name in (*models.sources, *models.by_relation))
    connection.execute(";".join(f"create schema if not exists {schema}" for schema in schemas))
    connection.execute(STATE)
    for name, columns in models.sources.items():
        if not name.startswith("raw.") or name in OF_A_PUBLICATION:
            connection.execute(f"create {'view' if name in EARLIER else 'table'} if not exists {name} as {no_rows(columns)}")


class Stages:
    """The nodes of a fleet's build by when they run; each list is in order.

    plan: what inventory and the store alone say. days: what is computed from raw by day, with what it needs in memory. relations: all that
    is made of these in each build or each day. counts: what is stored by day when it is asked for. asked: what is made of that.
    """

    def __init__(self, models: Models) -> None:
        later = {WITH_DAYS, EACH_BUILD, EACH_DAY, WHEN_ASKED}
        above: dict[str, set[str]] = {}
        self.plan: list[Node] = []
        self.days: list[Node] = []
        self.counts: list[Node] = []
        self.relations: list[Node] = []
        self.asked: list[Node] = []
        for node in models:
            found: set[str] = set()
            for parent in (models.by_relation[name] for name in node.parents if name in models.by_relation):
                found |= {parent.made} | (set() if parent.made in STORED else above[parent.relation])
            above[node.relation] = found
            if node.made == SEED:
                continue
            if node.made == WHEN_ASKED or (node.made == VIEW and WHEN_ASKED in found):
                self.asked.append(node)
            elif node.made == BY_DAY_WHEN_ASKED:
                self.counts.append(node)
            elif node.made in (BY_DAY, WITH_DAYS) or WITH_DAYS in found:
                self.days.append(node)
            elif node.made in (VIEW, WITH_INVENTORY) and not found & later:
                self.plan.append(node)
            else:
                self.relations.append(node)


class Executor:
    """The compiled models over one warehouse's build database. thresholds: puts the warehouse's own into compiled text."""

    def __init__(self, warehouse: Warehouse, models: Models, connection: duckdb.DuckDBPyConnection, own: dict[str, Any]) -> None:
        self.warehouse = warehouse
        self.models = models
        self.stages = Stages(models)
        self.connection = connection
        self.seconds: dict[str, float] = defaultdict(float)
        """How long each model took that was run, all runs together."""
        self._with_thresholds = models.with_thresholds(own)
        connection.execute(f"attach if not exists ':memory:' as {IN_MEMORY}")

    def sql_of(self, node: Node) -> str:
        """The SQL of a node as it runs here."""
        return self._with_thresholds(node.sql)

    def show_raw(
        self, files: RawFiles, days: Sequence[date] | None = None, horizon: date | None = None, since: datetime | None = None
    ) -> None:
        """Have the models see the files of raw: of what is measured some days, or all from the horizon on. since: see raw_rows()."""
        sources = self.models.sources
        if days is not None:
            sources = {name: columns for name, columns in sources.items() if name.split(".")[1] in MEASURED}
        show_sources(self.connection, source_rows(sources, files, self.warehouse.raw, days, horizon, since))

    def show_store(self, days: Iterable[date] | None = None, names: Collection[str] | None = None) -> None:
        """Make the stored models, or those of some names, views over their live files, of all days or of some.

        Raises: ModelError where a file is damaged or gone.
        """
        for node, rows in self.stored_rows(days, names, from_copies=days is None):
            try:
                self.connection.execute(f"create or replace view {node.relation} as {rows}")
            except duckdb.Error as error:
                found = str(error).strip().splitlines()[0]
                hint = "`drivetail build --full-refresh` computes it again from raw"
                raise ModelError(f"{self.warehouse.store}: cannot be read ({found}); {hint}") from error

    def stored_rows(
        self, days: Iterable[date] | None = None, names: Collection[str] | None = None, *, from_copies: bool = False
    ) -> Iterator[tuple[Node, str]]:
        """The stored models, or those of some names, each with SQL for the rows of its live files, of all days or of some. from_copies: of
        months that are over from what join_months() wrote, which publications never read.
        """
        nodes = [node for node in self.models.made(*STORED) if names is None or node.name in names]
        given: list[Any] = [[node.name for node in nodes]]
        query = "select model, file, models_version from build.plan.files where model in (select unnest(?))"
        if days is not None:
            query += " and day_utc in (select unnest(?::date[]))"
            given.append(list(days))
        files: dict[str, dict[str, bool]] = defaultdict(dict)
        for model, file, version in self.connection.execute(f"{query} order by day_utc, file", given).fetchall():
            files[model][file] = version == self.models.store_version_of(model)
        copies: dict[str, list[Path]] = defaultdict(list)
        if from_copies:
            for model, copied, copy in self.connection.execute("select model, files, file from build.state.joined_months").fetchall():
                if files[model].keys() >= set(copied) and (path := self.warehouse.build / copy).exists():
                    copies[model].append(path)
                    for file in copied:
                        del files[model][file]
        store = self.warehouse.store
        for node in nodes:
            found = files[node.name]
            rows = stored_rows(node, [f"{store}/{file}" for file in found], are_of_these_models=all(found.values()))
            if copies[node.name]:
                columns = ", ".join(f'"{name}"' for name in node.columns)
                rows += f" union all select {columns} from {parquet(copies[node.name])}"
            yield node, rows

    def join_months(self, before: date) -> None:
        """Copy the days of each month that is over before a day into one file, for builds to read, of models whose files are small."""
        query = """
            select model, date_trunc('month', day_utc) as month_utc, list(file order by day_utc, file) as files, any_value(models_version)
            from plan.files group by model, month_utc
            having count(*) > 1 and count(distinct models_version) = 1 and last_day(month_utc) < ? order by model, month_utc
        """
        known = {tuple(files): file for files, file in self.connection.execute("select files, file from state.joined_months").fetchall()}
        folder = self.warehouse.build / "months"
        folder.mkdir(exist_ok=True)
        self.connection.execute("delete from state.joined_months")
        nodes = {node.name: node for node in self.models.made(*STORED)}
        for model, month, files, version in self.connection.execute(query, [before]).fetchall():
            paths = [self.warehouse.store / file for file in files]
            if version != self.models.store_version_of(model) or sum(path.stat().st_size for path in paths) > SMALL_MONTH_BYTES:
                continue
            file = known.get(tuple(files))
            if file is None or not (self.warehouse.build / file).exists():
                file = f"months/{model}.{month:%Y-%m}.{Path(files[-1]).name}"
                rows = stored_rows(nodes[model], [str(path) for path in paths], are_of_these_models=True)
                self.connection.execute(f"copy ({rows}) to {quoted(self.warehouse.build / file)} ({PARQUET})")
            self.connection.execute("insert into state.joined_months values (?, ?, ?)", [model, files, file])
        kept = {file for (file,) in self.connection.execute("select file from state.joined_months").fetchall()}
        remove(path for path in folder.iterdir() if f"months/{path.name}" not in kept)

    def load_seeds(self) -> None:
        """Load the seeds."""
        for node in self.models.made(SEED):
            self._execute(node, f"create or replace table {node.relation} as {seed_rows(node)}")

    def make(self, nodes: Iterable[Node], advance: Callable[[int], object] = lambda done: None) -> None:
        """Make views and tables, in order, and check their contracts. advance: is called with the number of those that are made.

        Raises: ModelError naming the first that fails.
        """
        nodes = list(nodes)
        for number, node in enumerate(nodes):
            advance(number)
            self._make(node)
        self.check_contracts(nodes)

    def make_each_build(self) -> None:
        """Make the relations of each build, for what reads them without one: no build leaves them to the next."""
        self.make(node for node in self.stages.relations if node.made == EACH_BUILD)

    def _make(self, node: Node) -> None:
        """Make a view or a table. A table that each build makes lives as long as the connection, unless it is an analyst's own."""
        if node.is_python:
            self._run_python(node)
        elif node.made in (WITH_DAYS, EACH_BUILD) and node.relation in self.models.by_relation:
            self._execute(node, f"create or replace table {IN_MEMORY}.main.{node.name} as {self.sql_of(node)}")
            self._replace(node, "view", f"select * from {IN_MEMORY}.main.{node.name}")
        elif "parts_by" in node.meta:
            step = ((1 << 64) - 1) // (1 + self._drive_count() // DRIVES_OF_A_PART) + 1
            rows = f"select * from ({self.sql_of(node)})"
            self._replace(node, "table", f"{rows} limit 0")
            for first in range(0, 1 << 64, step):  # DuckDB filters the files by a range of hashes, but not by a remainder
                is_of_part = f"hash({node.meta['parts_by']}) between {first}::ubigint and {min(first + step, 1 << 64) - 1}::ubigint"
                self._execute(node, f"insert into {node.relation} {rows} where {is_of_part}")
        elif node.week_column:
            self._replace(node, "table", f"select * from ({self.sql_of(node)}) limit 0")
            self.make_weeks(node, "plan.files")
        else:
            self._replace(node, "view" if node.made == VIEW else "table", self.sql_of(node))

    def _replace(self, node: Node, kind: str, sql: str) -> None:
        """Make a relation in place of an earlier one, which another release may have made as something else."""
        try:
            self._execute(node, f"create or replace {kind} {node.relation} as {sql}")
        except ModelError as error:
            other = "table" if kind == "view" else "view"
            if f"is of type {other}" not in str(error).lower():
                raise
            self.connection.execute(f"drop {other} {node.relation}")
            self._execute(node, f"create {kind} {node.relation} as {sql}")

    def make_weeks(self, node: Node, days: str) -> None:
        """Recompute the weeks of a relation that the days in a table touch, a few at a time; each statement reads only those it needs."""

        def weeks_of(table: str) -> dict[date, date]:
            return dict(self.connection.execute(f"select distinct day_utc, date_trunc('week', day_utc)::date from {table}").fetchall())

        def is_of(weeks: Iterable[date]) -> str:
            return f"list_contains({[str(week) for week in weeks]}::date[], cast(date_trunc('week', {node.week_column}) as date))"

        stored = weeks_of("plan.files")
        touched = {week + timedelta(weeks=after) for week in weeks_of(days).values() for after in range(node.look_back + 1)}
        self._execute(node, f"delete from {node.relation} where {is_of(touched)}")
        weeks = sorted(touched & set(stored.values()))
        names = [parent.split(".")[1] for parent in self.models.above(node.parents)]
        step = node.look_back + max(1, 4 * DRIVES_OF_A_PART // (1 + self._drive_count()))
        for part in (weeks[first : first + step] for first in range(0, len(weeks), step)):
            reach = {week - timedelta(weeks=before) for week in part for before in range(node.look_back + 1)}
            self.show_store([day for day, week in stored.items() if week in reach], names)
            self._execute(node, f"insert into {node.relation} by name select * from ({self.sql_of(node)}) where {is_of(part)}")
        self.show_store(names=names)

    def _drive_count(self) -> int:
        return int(self.connection.execute("select count(*) from intermediate.int_drives").fetchall()[0][0])

    @contextmanager
    def computing(self, nodes: Iterable[Node], days: Sequence[date], since: datetime | None = None) -> Iterator[None]:
        """While days are computed: stored models that are only read show these days alone, and joins are run as they are written. since:
        the hour of the only day from which on it is computed; what is stored of it before stays.
        """
        self.connection.execute(f"set disabled_optimizers = {quoted(AS_WRITTEN)}")
        self.connection.execute("delete from plan.shown_days; insert into plan.shown_days select unnest(?::date[]), ?", [list(days), since])
        self._show_earlier([] if since is None else [since.date() - timedelta(days=1), since.date()])
        nodes = list(nodes)
        read = set(self.models.above(parent for node in nodes for parent in node.parents)) - {node.relation for node in nodes}
        self.show_store(days, [node.name for node in self.models.made(*STORED) if node.relation in read])
        try:
            yield
        finally:
            self.connection.execute("set disabled_optimizers = ''")
            for node in self.models.made(WITH_DAYS):
                self.connection.execute(f"drop table if exists {IN_MEMORY}.main.{node.name}")
            self.connection.execute("delete from plan.shown_days")
            self._show_earlier([])

    def _show_earlier(self, days: Sequence[date]) -> None:
        """Have the models see what is stored of some days beside what they compute of them."""
        for source, model in EARLIER.items():
            ((_, rows),) = self.stored_rows(days, [model])
            self.connection.execute(f"create or replace view {source} as {rows}")

    def compute(
        self,
        nodes: Iterable[Node],
        days: Sequence[date],
        build: str,
        since: datetime | None = None,
        before_tests: Callable[[], None] = lambda: None,
    ) -> None:
        """Compute stored models of some days, and what they need in memory, and test them. build: names the files. Use inside computing().

        Raises: ModelError naming the first model or test that fails.
        """
        nodes = list(nodes)
        for node in nodes:
            if node.made in STORED:
                self._store(node, days, build, since)
            else:
                self._make(node)
        self.check_contracts(nodes)
        before_tests()
        self.test(nodes)

    def _store(self, node: Node, days: Sequence[date], build: str, since: datetime | None) -> None:
        """Write one immutable file for each day that a model has rows of, and make it the live one:
        STORE/<model>/day_utc=YYYY-MM-DD/<build>.0.parquet (docs/decisions/0002-the-day-is-the-unit.md). Where a model has a row for each
        hour, hours since an instant get a file of their own.
        """
        folder = self.warehouse.store / node.name
        sql = self.sql_of(node)
        left_out = list(node.ratios)
        is_added = since is not None and "hour_utc" in node.columns
        if not is_added:
            self.connection.execute("delete from plan.files where model = ? and day_utc in (select unnest(?::date[]))", [node.name, days])
        if len(days) == 1:  # DuckDB makes no folder for one file, and spreads a partition over as many as it has threads
            (day,) = days
            file = day_folder(self.warehouse.store, node.name, day) / f"{build}.0.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            columns = f"* exclude ({', '.join(['day_utc', *left_out])})"
            rows = f"({sql}) where day_utc = date '{day}'" + (f" and hour_utc >= timestamp '{since}'" if is_added else "")
            self._execute(node, f"copy (select {columns} from {rows}) to {quoted(file)} ({PARQUET})")
            found = [(day, file)]
        else:
            columns = f"* exclude ({', '.join(left_out)})" if left_out else "*"
            listed = ", ".join(f"date '{day}'" for day in days)
            options = f"{PARQUET}, partition_by (day_utc), filename_pattern {quoted(f'{build}.')}, overwrite_or_ignore"
            folder.mkdir(parents=True, exist_ok=True)
            self._execute(node, f"copy (select {columns} from ({sql}) where day_utc in ({listed})) to {quoted(folder)} ({options})")
            found = [
                (day, file) for day in days for file in sorted(day_folder(self.warehouse.store, node.name, day).glob(f"{build}.*.parquet"))
            ]
        self.enter_files(node.name, found)
        self.show_store(days, [node.name])

    def join_files(self, build: str, first: date, before: date) -> None:
        """Write what was stored hour by hour of each day of [first, before) into a file for the day."""
        query = """
            select model, day_utc, list(? || '/' || file order by file) from plan.files where day_utc >= ? and day_utc < ?
            group by model, day_utc having count(distinct split_part(parse_filename(file), '.', 1)) > 1 order by all
        """
        for model, day, files in self.connection.execute(query, [str(self.warehouse.store), first, before]).fetchall():
            file = day_folder(self.warehouse.store, model, day) / f"{build}.day.parquet"
            rows = f"read_parquet([{', '.join(map(quoted, files))}], hive_partitioning = false)"
            self.connection.execute(f"copy (from {rows}) to {quoted(file)} ({PARQUET})")
            self.connection.execute("begin; delete from plan.files where model = ? and day_utc = ?", [model, day])
            self.enter_files(model, [(day, file)])
            self.connection.execute("commit")

    def enter_files(self, model: str, files: Sequence[tuple[date, Path]]) -> None:
        """Make files of the store the live ones of their days."""
        if files:
            rows = [[model] * len(files), [day for day, _ in files], [str(path.relative_to(self.warehouse.store)) for _, path in files]]
            version = self.models.store_version_of(model)
            self.connection.execute("insert into plan.files select unnest(?), unnest(?), unnest(?), ?", [*rows, version])

    def _run_python(self, node: Node) -> None:
        """Run a model in Python, as dbt compiles it, and keep its rows as a table."""
        began = time.monotonic()
        try:
            python_rows(node, self.connection).create_view("python_model_rows", replace=True)
            self.seconds[node.name] += time.monotonic() - began
            self._replace(node, "table", "select * from python_model_rows")
            self.connection.execute("drop view if exists python_model_rows")
        except (ModelError, duckdb.Error, KeyboardInterrupt):
            raise
        except Exception as error:
            raise FailedModel(f"model {node.name} ({node.path}): {type(error).__name__}: {error}") from error

    def _execute(self, node: Node, statement: str) -> None:
        began = time.monotonic()
        try:
            self.connection.execute(statement)
        except duckdb.Error as error:
            message = " ".join(str(error).split())
            raise FailedModel(f"model {node.name} ({node.path}): {message}") from error
        finally:
            self.seconds[node.name] += time.monotonic() - began

    def check_contracts(self, nodes: Iterable[Node]) -> None:
        """Compare relations with the contracts of their models. Raises: ModelError naming the first column that differs."""
        promised = {node.relation: node for node in nodes if node.has_contract}
        if not promised:
            return
        query = """
            select schema_name || '.' || table_name, list(column_name order by column_index), list(data_type order by column_index)
            from duckdb_columns() where database_name = current_database() and not internal group by all
        """
        found = {name: dict(zip(columns, types, strict=True)) for name, columns, types in self.connection.execute(query).fetchall()}
        for relation, node in promised.items():
            check_contract(node, found.get(relation, {}))

    def test(self, made: Iterable[Node], *, shown: Iterable[str] = ()) -> None:
        """Run the data tests of relations that have been made, of which all that they read is there. shown: others that are up to date.

        Raises: ModelError naming the first test that fails and a row that breaks it.
        """
        new = {node.relation for node in made}
        there = new | set(shown) | set(self.models.sources) | {node.relation for node in self.stages.plan}
        for test in self.models.tests:
            if new & set(test.nodes) and set(test.nodes) <= there:
                self.run_test(test)

    def run_test(self, test: Test) -> None:
        """Run a data test. Raises: ModelError with the number of rows that break it and one of them."""
        try:
            result = self.connection.execute(self._with_thresholds(test.sql))
            row = result.fetchone()
        except duckdb.Error as error:
            raise FailedModel(f"test {test.name}: {' '.join(str(error).split())}") from error
        if row is not None:
            found = {column[0]: value for column, value in zip(result.description or [], row, strict=True)}
            first = ", ".join(f"{name} {value}" for name, value in found.items())
            count = 1 + len(result.fetchall())
            rows = "1 row breaks it" if count == 1 else f"{count:,} rows break it, such as"
            raise FailedModel(f"test {test.name} of {', '.join(test.nodes)}: {rows}: {first}", found)


def seed_rows(node: Node) -> str:
    """SQL for the rows of a seed."""
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in node.columns.items())
    return f"select * from read_csv({quoted(PROJECT / node.path)}, header = true, columns = {{{columns}}}, hive_partitioning = false)"


def check_contract(node: Node, found: Mapping[str, str]) -> None:
    """Compare the columns and types that were found with a model's contract. Raises: ModelError naming the first column that differs."""
    if not node.has_contract:
        return
    stated = {column: str(duckdb.sqltype(kind)) for column, kind in node.columns.items() if kind}
    for column in dict.fromkeys([*stated, *found]):
        here, there = found.get(column), stated.get(column)
        if here != there:
            raise FailedModel(
                f"model {node.name} ({node.path}): its contract is broken: column {column} is {here or 'missing'}, "
                f"declared {there or 'nowhere'}"
            )


def python_rows(node: Node, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Run a model in Python, as dbt compiles it. Returns: its rows."""
    scope: dict[str, Any] = {"__name__": node.name}
    exec(compile(node.sql, node.path, "exec"), scope)
    # dbt writes a relation's name with its database and in quotes
    context = scope["dbtObj"](lambda name: connection.table(".".join(name.replace('"', "").split(".")[-2:])))
    rows: duckdb.DuckDBPyRelation = scope["model"](context, connection)
    return rows


def stored_rows(node: Node, files: Sequence[str], *, are_of_these_models: bool) -> str:
    """SQL for the rows of files of a stored model, with the columns that are worked out when they are read."""
    ratios = node.ratios if files else {}
    names = ", ".join(f'{ratios[name]} as "{name}"' if name in ratios else f'"{name}"' for name in node.columns)
    if not files:
        return f"select {names} from ({no_rows(node.columns)})"
    listed = ", ".join(quoted(file) for file in files)
    read = f"select * from read_parquet([{listed}], hive_partitioning = true, hive_types = {{'day_utc': date}}"
    if "=" in files[0].split("/day_utc=")[0]:
        # DuckDB takes a folder above the store such as drive_id=x for a column, too. Below one the day is cut out of the path: a join on
        # it then skips no file
        day = "cast(regexp_extract(filename, '.*/day_utc=([0-9-]+)/', 1) as date) as day_utc"
        read = f"select *, {day} from read_parquet([{listed}], hive_partitioning = false, filename = true"
    if are_of_these_models:
        return f"select {names} from ({read}))"
    # what is left of a pruned past may be of other models: then by name, a column that it lacks is null
    stored = {name: kind for name, kind in node.columns.items() if name not in ratios}
    return f"select {names} from ({no_rows(stored)} union all by name {read}, union_by_name = true))"

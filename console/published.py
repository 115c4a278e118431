"""The publication that readers see: one DuckDB for each, opened before readers come to it and closed when its last one has gone."""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from engine.projects import published_schemas
from engine.read import QueryError, Row, open_for_questions, own_file
from engine.warehouse import Warehouse

T = TypeVar("T")

SCHEMAS = (*published_schemas(), "custom", "lab")

LIMITS = "set memory_limit = '180MB'; set threads = 2; set preserve_insertion_order = false; attach ':memory:' as held (compress)"
"""Limit of all pages together, and what is held in memory."""

AT_ONCE = 3
"""Questions of pages that run at the same time: more would share the memory until it does not suffice for any."""

SECONDS = 10.0
"""A question of a page takes at most: who filters a table of millions of rows stops nobody else for longer."""

FORMS = {"csv": "CSV", "parquet": "Parquet", "json": "JSON"}
DOWNLOADED = 200_000
"""Rows of a download at most; `drivetail sql` has no such limit."""

REMEMBERED = 200
"""Pages kept for their next reader, a minute at most."""

DECIDED = (
    "marts.fct_drive_replacements", "marts.fct_drive_decisions", "marts.replacement_candidates", "marts.drive_actions",
    "status.fct_drive_states",
)  # fmt: skip
"""Views, because a decision counts at once; each after those that it reads. Each takes a tenth of a second or more to plan."""

_DECIDED = re.compile(rf"\b(?:{'|'.join(DECIDED)})\b")

HELD_ROWS, HELD_DAYS = 10_000_000, 15
"""Drive-hours in memory at most: 70 MB, made in six seconds; and the days that a figure shows with every peer."""

HOURS = "drive_id, hour_utc, raid_group_id, kind, slowdown::float as slowdown, is_slow, try_cast(latency_us as uinteger) as latency_us"
"""Columns of marts.fct_drive_hours that figures draw."""


def in_memory(sql: str) -> str:
    """The same of the tables in memory."""
    return _DECIDED.sub(lambda found: "held." + found[0].partition(".")[2], sql)


class Published:
    """One publication: answers questions in SQL with rows. Any thread may ask."""

    def __init__(self, warehouse: Warehouse, path: Path) -> None:
        self.warehouse = warehouse
        self.path = path
        self._connection = open_for_questions(warehouse, path=path, limits=LIMITS)
        self._turns = threading.Semaphore(AT_ONCE)
        self._holding = threading.Lock()
        self._decided: tuple[int, int] | None = None
        # nothing of it may hold it: it is closed when its last reader lets go of it
        this = weakref.proxy(self)
        self._pages = lru_cache(REMEMBERED)(lambda minute, decided, make, *given: make(this, *given))
        (publication,) = self.rows("select * from marts.publication")
        self.publication_id: str = publication["publication_id"]
        self.published_at: datetime = publication["published_at"]
        self.last_hour_utc: datetime | None = publication["last_hour_utc"]
        self._hold_hours()
        self.held(DECIDED[0])

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection in the publication's own schemas, for slow queries, outside the limit."""
        return self._connection.cursor().execute("use warehouse.main")

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The same for one question, once fewer than AT_ONCE others are open. While it is, its thread must not open another."""
        with self._turns, self.connection() as cursor:
            yield cursor

    def rows(self, sql: str) -> list[Row]:
        return self.answer(sql)[1]

    def answer(self, sql: str) -> tuple[list[str], list[Row]]:
        """The columns of a query, and its rows."""
        held = self.held(sql)
        with self.cursor() as cursor:
            timer = threading.Timer(SECONDS, cursor.interrupt)
            timer.start()
            try:
                columns = [column[0] for column in cursor.execute(held).description or []]
                return columns, [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
            except duckdb.InterruptException as error:
                raise QueryError(f"stopped after {SECONDS:.0f} s: ask for fewer rows in SQL (the page Ask)") from error
            finally:
                timer.cancel()

    def held(self, sql: str) -> str:
        """The same question, of what is held in memory of the views that decisions change."""
        if not _DECIDED.search(sql):
            return sql
        with self._holding:
            if (mark := mark_of(self.warehouse.decisions)) != self._decided:
                with self.cursor() as cursor:
                    query = "select schema_name || '.' || view_name, sql from duckdb_views() where database_name = 'warehouse'"
                    views = dict(cursor.execute(query).fetchall())
                    for relation in (relation for relation in DECIDED if relation in views):
                        rows = in_memory(views[relation].partition(" AS ")[2].rstrip(";\n"))
                        cursor.execute(f"create or replace table {in_memory(relation)} as {rows}")
                self._decided = mark
        return in_memory(sql)

    def _hold_hours(self) -> None:
        """Make held.drive_hours, the hours of figures: the last days are in memory, by drive. A stored day has all its drives in each hour,
        so one drive's week would cost all of it.
        """
        with self.cursor() as cursor:
            cursor.execute(f"create table held.last_days as select {HOURS} from marts.fct_drive_hours limit 0")
            days = "select day_utc, sum(reported_hours) from intermediate.int_drive_days group by day_utc order by day_utc desc limit ?"
            first, held = "infinity", 0
            for day, rows in cursor.execute(days, [HELD_DAYS]).fetchall():
                held += rows
                if held > HELD_ROWS:
                    break
                of_day = f"marts.fct_drive_hours where hour_utc >= timestamp '{day}' and hour_utc < timestamp '{day}' + interval 1 day"
                cursor.execute(f"insert into held.last_days select {HOURS} from {of_day} order by drive_id, hour_utc")
                cursor.execute("force checkpoint held")  # packs it
                first = day
            earlier = f"select {HOURS} from warehouse.marts.fct_drive_hours where hour_utc < timestamp '{first}'"
            cursor.execute(f"create view held.drive_hours as from held.last_days union all {earlier}")

    def remembered(self, make: Callable[..., T], *given: Any) -> T:
        """Result of make(self, *given) for an earlier reader of the same minute, unless somebody has decided since."""
        found: T = self._pages(time.time() // 60, mark_of(self.warehouse.decisions), make, *given)
        return found

    @cached_property
    def columns(self) -> dict[str, dict[str, tuple[str, str]]]:
        """Columns of every relation that people query, such as `marts.dim_drives`: column -> type, description."""
        schemas = ", ".join(f"'{schema}'" for schema in (*SCHEMAS, "intermediate"))
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for row in self.rows(
            "select table_schema || '.' || table_name as relation, column_name, data_type, coalesce(column_comment, '') as comment "
            f"from information_schema.columns where table_catalog = 'warehouse' and table_schema in ({schemas}) "
            "order by table_schema = 'lab', table_schema <> 'marts', relation, ordinal_position"
        ):
            found.setdefault(row["relation"], {})[row["column_name"]] = (row["data_type"], row["comment"])
        return found

    @cached_property
    def relations(self) -> dict[str, str]:
        """Every relation that people query -> its description: marts first, then what pages read, own models, and the lab."""
        tables = "from information_schema.tables where table_catalog = 'warehouse'"
        found = self.rows(f"select table_schema || '.' || table_name as relation, coalesce(table_comment, '') as comment {tables}")
        told = {row["relation"]: row["comment"] for row in found}
        return {relation: told[relation] for relation in self.columns if not relation.startswith("intermediate.")}

    def has(self, relation: str) -> bool:
        return relation in self.columns

    def described(self, column: str, relation: str | None = None) -> str:
        """The description of a column: that of the relation, else of the first that has one of this name."""
        places = [self.columns.get(relation or "", {}), *self.columns.values()]
        return next((place[column][1] for place in places if column in place and place[column][1]), "")


class Publications:
    """Follows what is published. Each request takes the current publication, which stays open while anybody holds it."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._opening = threading.Lock()
        self._current: Published | None = None
        self._mark: tuple[int, int] | None = None

    @property
    def current(self) -> Published:
        """The current publication. Raises: QueryError where there is none."""
        return self._current or self.refresh()

    def refresh(self) -> Published:
        """Make ready what has been published; readers stay with the last one until then. Raises: QueryError for none."""
        with self._opening:
            mark = mark_of(self.warehouse.published)
            if self._current is None or mark != self._mark:
                self._mark = mark
                self._current = Published(self.warehouse, own_file(self.warehouse))
            return self._current


def mark_of(file: Path) -> tuple[int, int]:
    """Changes with every swap of a file, and with every line that is added."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return (0, 0)
    return stat.st_ino, stat.st_mtime_ns

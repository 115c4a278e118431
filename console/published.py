"""The publication that readers see: one DuckDB for each, opened when it is first asked for and closed when its last reader has gone."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

import duckdb

from engine.publish import PUBLISHED
from engine.read import QueryError, Row, open_for_questions
from engine.warehouse import Warehouse

T = TypeVar("T")

SCHEMAS = (*PUBLISHED, "lab")
"""Where the relations that people query are."""

LIMITS = "set memory_limit = '160MB'; set threads = 2; set preserve_insertion_order = false"
"""Limit of all pages together."""

AT_ONCE = 3
"""Questions of pages that run at the same time: more would share the memory until it does not suffice for any."""

SECONDS = 10.0
"""A question of a page takes at most: who filters a table of millions of rows stops nobody else for longer."""

DOWNLOADED = 200_000
"""Rows of a download at most; `drivetail sql` has no such limit."""

REMEMBERED = 400
"""Answers kept for the next reader of the same page."""

REMEMBERED_SECONDS = 60.0
"""A decision that expires does so without a new publication."""

DECIDED = ("drive_actions", "replacement_candidates", "fct_drive_decisions")
"""The marts that are views because a decision counts at once."""

_DECIDED = re.compile(rf"\bmarts\.({'|'.join(DECIDED)})\b")


class Published:
    """One publication: answers questions in SQL with rows, and remembers them. Any thread may ask."""

    def __init__(self, warehouse: Warehouse, path: Path) -> None:
        self.warehouse = warehouse
        self.path = path
        self.users = 0
        self._connection = open_for_questions(warehouse, path=path, limits=LIMITS)
        self._remembered: OrderedDict[tuple[object, ...], tuple[float, object]] = OrderedDict()
        self._lock = threading.Lock()
        self._holding = threading.Lock()
        self._turns = threading.Semaphore(AT_ONCE)
        self._held_of: tuple[int, int] | None = None
        self._held_at = 0.0
        (publication,) = self.rows("select * from marts.publication")
        self.publication_id: str = publication["publication_id"]
        self.published_at: datetime = publication["published_at"]
        self.last_hour_utc: datetime | None = publication["last_hour_utc"]

    @contextmanager
    def cursor(self, *, waits: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one question, in the publication's own schemas.

        waits: until fewer than AT_ONCE others are open. While one that waits is open, its thread must not open another.
        """
        with self._turns if waits else nullcontext(), self._connection.cursor() as cursor:
            cursor.execute("use warehouse.main")
            yield cursor

    def answer(self, sql: str) -> tuple[list[str], list[Row]]:
        """The columns of a query and its rows, as dicts that nobody may change."""
        return self.remembered(sql, self._answer)

    def rows(self, sql: str) -> list[Row]:
        """The rows alone."""
        return self.answer(sql)[1]

    def _answer(self, sql: str) -> tuple[list[str], list[Row]]:
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
        """The same question, of what is held in memory of the views that decisions change: each takes a fifth of a second to plan."""
        if not _DECIDED.search(sql):
            return sql
        with self._holding:
            mark = self._decided()
            if mark != self._held_of or time.monotonic() - self._held_at > REMEMBERED_SECONDS:
                with self.cursor() as cursor:
                    for name in DECIDED:
                        cursor.execute(f"create or replace table memory.main.{name} as select * from marts.{name}")
                self._held_of, self._held_at = mark, time.monotonic()
        return _DECIDED.sub(r"memory.main.\1", sql)

    def remembered(self, question: str, make: Callable[[str], T]) -> T:
        """The answer that an earlier reader got, unless somebody has decided since, or it is a minute old."""
        key = (question, make.__qualname__, *self._decided())
        now = time.monotonic()
        with self._lock:
            known = self._remembered.get(key)
            if known is not None and now - known[0] < REMEMBERED_SECONDS:
                return cast(T, known[1])
        found = make(question)
        with self._lock:
            self._remembered[key] = (now, found)
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        return found

    def _decided(self) -> tuple[int, int]:
        """Changes when somebody decides."""
        try:
            stat = self.warehouse.decisions.stat()
        except FileNotFoundError:
            return (0, 0)
        return stat.st_mtime_ns, stat.st_size

    @cached_property
    def columns(self) -> dict[str, dict[str, tuple[str, str]]]:
        """Columns of every relation that people query, such as `marts.dim_drives`: column -> type, description."""
        schemas = ", ".join(f"'{schema}'" for schema in (*SCHEMAS, "intermediate"))
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for row in self.rows(
            "select schema_name || '.' || table_name as relation, column_name, data_type, coalesce(comment, '') as comment "
            f"from duckdb_columns() where database_name = 'warehouse' and schema_name in ({schemas}) "
            "order by schema_name = 'lab', schema_name <> 'marts', relation, column_index"
        ):
            found.setdefault(row["relation"], {})[row["column_name"]] = (row["data_type"], row["comment"])
        return found

    @cached_property
    def _views(self) -> list[Row]:
        return self.rows(
            "select schema_name || '.' || view_name as relation, comment, sql from duckdb_views() "
            "where database_name = 'warehouse' union all "
            "select schema_name || '.' || table_name, comment, '' from duckdb_tables() where database_name = 'warehouse' order by relation"
        )

    @cached_property
    def relations(self) -> dict[str, str]:
        """Every relation that people query -> its description: marts first, then what pages read, then the lab."""
        found = {row["relation"]: row["comment"] or "" for row in self._views if row["relation"].split(".")[0] in SCHEMAS}
        return dict(sorted(found.items(), key=lambda item: (SCHEMAS.index(item[0].split(".")[0]), item[0])))

    @cached_property
    def described_relations(self) -> list[tuple[str, str, list[tuple[str, str, str]]]]:
        """Each of them with the first sentence of its description, and its columns with type and description."""
        return [
            (name, told.partition(". ")[0], [(column, *of) for column, of in self.columns[name].items()])
            for name, told in self.relations.items()
        ]

    def relations_sql(self, name: str) -> str:
        """The relations that a published view reads, such as `marts.drive_actions`; empty for a table."""
        return next((row["sql"] for row in self._views if row["relation"] == name), "")

    def has(self, relation: str) -> bool:
        """Whether a relation is in this publication."""
        return relation in self.columns

    def described(self, column: str, relation: str | None = None) -> str:
        """The description of a column: that of the relation, else of the first that has one of this name."""
        places = [self.columns.get(relation or "", {}), *self.columns.values()]
        return next((place[column][1] for place in places if column in place and place[column][1]), "")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class Publications:
    """Follows what is published: each request gets the current publication, and keeps it until it has been answered."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._lock = threading.Lock()
        self._current: Published | None = None
        self._mark: tuple[int, int] | None = None

    @contextmanager
    def current(self) -> Iterator[Published]:
        """The current publication. Raises: QueryError where there is none."""
        published = self._enter()
        try:
            yield published
        finally:
            with self._lock:
                published.users -= 1
                is_over = published is not self._current and published.users == 0
            if is_over:
                published.close()

    def _enter(self) -> Published:
        with self._lock:
            mark = self._mark_now()
            if self._current is None or mark != self._mark:
                fresh = Published(self.warehouse, self._own_file())
                last, self._current, self._mark = self._current, fresh, mark
                if last is not None and last.users == 0:
                    last.close()
            self._current.users += 1
            return self._current

    def _mark_now(self) -> tuple[int, int]:
        """Changes with every swap."""
        try:
            stat = self.warehouse.published.stat()
        except FileNotFoundError:
            return (0, 0)
        return stat.st_ino, stat.st_mtime_ns

    def _own_file(self) -> Path:
        """The publication under the name that no other has: DuckDB opens a path that is open already a second time as it was."""
        published = self.warehouse.published
        if not published.exists():
            return published  # opening it says what to do
        for path in sorted(self.warehouse.publications.glob("*-*.duckdb"), reverse=True):
            if path.samefile(published):
                return path
        return published

"""A question in SQL: read-only, in a DuckDB of its own, with limits of rows, memory and time, and it can be cancelled."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb

from console.published import Published
from drivetail.ask.sql import only_question
from engine.read import QueryError, first_line, open_for_questions
from engine.warehouse import PROJECT

ROWS = 1_000
SECONDS = 20.0
AT_ONCE = 3
"""Questions that run at the same time; others wait for their turn."""

LIMITS = "set memory_limit = '96MB'; set threads = 1; set max_temp_directory_size = '0KB'; set preserve_insertion_order = true"
TEXT_CHARACTERS = 100_000

_turns = threading.Semaphore(AT_ONCE)


@dataclass
class Question:
    """One question, and how to stop it. cancel() may come from any thread, also before it runs."""

    sql: str
    is_cancelled: bool = False
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def cancel(self) -> None:
        """Stop it."""
        with self._lock:
            self.is_cancelled = True
            if self._connection is not None:
                self._connection.interrupt()

    @contextmanager
    def running(self, published: Published) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own, closed and interruptible. Raises: QueryError where it is not one question, takes too long or fails."""
        if len(self.sql) > TEXT_CHARACTERS:
            raise QueryError(f"a question has at most {TEXT_CHARACTERS:,} characters")
        only_question(self.sql)
        if not _turns.acquire(timeout=SECONDS):
            raise QueryError("other questions are running; try again")
        began = time.monotonic()
        timer = threading.Timer(SECONDS, self.cancel)
        try:
            with open_for_questions(published.warehouse, path=published.path, limits=LIMITS) as connection:
                with self._lock:
                    if self.is_cancelled:
                        raise QueryError("cancelled")
                    self._connection = connection
                timer.start()
                try:
                    yield connection
                except duckdb.Error as error:
                    if self.is_cancelled:
                        is_late = time.monotonic() - began >= SECONDS
                        raise QueryError(
                            f"stopped after {SECONDS:.0f} s; `drivetail sql` has no limit" if is_late else "cancelled"
                        ) from error
                    if isinstance(error, duckdb.OutOfMemoryException):
                        raise QueryError(f"it needs too much memory here ({first_line(error)}); `drivetail sql` may take more") from error
                    hints = [line for line in str(error).splitlines()[1:] if line.startswith(("Did you mean", "Candidate bindings"))]
                    raise QueryError(" ".join([first_line(error), *hints])) from error
                finally:
                    with self._lock:
                        self._connection = None
        finally:
            timer.cancel()
            _turns.release()

    def answer(self, published: Published) -> tuple[list[str], list[tuple[Any, ...]], bool]:
        """Its columns, its first rows, and whether there are more."""
        with self.running(published) as connection:
            cursor = connection.execute(only_question(self.sql))
            columns = [column[0] for column in cursor.description or []]
            rows = cursor.fetchmany(ROWS + 1)
        return columns, rows[:ROWS], len(rows) > ROWS


@cache
def cookbook() -> dict[str, str]:
    """The questions of docs/cookbook.md: title -> SQL."""
    text = (PROJECT / "docs" / "cookbook.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\d+\. .+?)$.*?```sql\n(.*?)```", text, flags=re.MULTILINE | re.DOTALL))

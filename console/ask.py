"""A question in SQL: read-only, in a process of its own with limits of rows, memory and time, which ends when it is cancelled.

DuckDB's own limits do not suffice: one value may take any memory, and a constant is computed before anything can be interrupted.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import multiprocessing
import os
import pickle
import re
import resource
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import duckdb
from anyio.to_thread import run_sync

from console.published import DOWNLOADED, Published
from drivetail.ask.sql import only_question, with_hint
from engine.read import QueryError, first_line, open_for_questions
from engine.warehouse import PROJECT, Warehouse

ROWS = 1_000
SECONDS = 20.0
AT_ONCE = 2
"""Questions that run at the same time; others wait for their turn."""

LIMITS = "set memory_limit = '160MB'; set threads = 1; set max_temp_directory_size = '0KB'; set preserve_insertion_order = true"
PROCESS_BYTES = 320_000_000
"""Memory that a question's process may use beyond its size at the start."""

ANSWER_BYTES = 30_000_000
TEXT_CHARACTERS = 100_000

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so is a formula to a spreadsheet."""

FUNCTIONS = {"range", "generate_series", "unnest", "json_each", "json_tree", "duckdb_tables", "duckdb_views", "duckdb_columns"}
"""Functions that give tables and read no file. Else the raw deliveries and the store could be read past the views over them."""

_turns = threading.Semaphore(AT_ONCE)
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["console.ask", "drivetail.cli", "pyarrow.parquet"])


def start_early() -> None:
    """Start the process that is forked for each question: its imports take long, and the first reader should not wait for them."""
    _processes.Process(target=str).start()


async def answered(published: Published, sql: str, form: str, is_gone: Callable[[], Awaitable[bool]]) -> bytes:
    """The answer to a question as a file of one of FORMS; pickled without a form. is_gone: whether the client has gone.

    Raises: QueryError where it is not one question about relations of the publication, takes too long or too much, or fails.
    """
    if len(sql) > TEXT_CHARACTERS:
        raise QueryError(f"a question has at most {TEXT_CHARACTERS:,} characters")
    await _soon(lambda: _turns.acquire(blocking=False), is_gone, "other questions are running; try again")
    mine, its = _processes.Pipe(duplex=False)
    process = _processes.Process(target=_work, args=(its, published.warehouse.root, published.path, sql, form, SECONDS), daemon=True)
    late = f"stopped after {SECONDS:.0f} s; `drivetail sql` has no limit"
    try:
        await run_sync(process.start)
        its.close()
        await _soon(mine.poll, is_gone, late)
        problem, found = await run_sync(mine.recv)
    except EOFError as error:  # nothing but the limits ends it before it has answered
        process.join()
        raise QueryError(late if process.exitcode == -signal.SIGALRM else TOO_LARGE.format("")) from error
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        mine.close()
        _turns.release()
    if problem:
        raise QueryError(problem)
    return bytes(found)


async def _soon(is_there: Callable[[], bool], is_gone: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    """Wait until it is there. Raises: QueryError `otherwise` after SECONDS, and where the client has gone."""
    ends = time.monotonic() + SECONDS
    while not is_there():
        if time.monotonic() > ends:
            raise QueryError(otherwise)
        if await is_gone():
            raise QueryError("cancelled")
        await asyncio.sleep(0.02)


TOO_LARGE = "it needs too much memory here{}; `drivetail sql` may take more"


def _work(pipe: Connection, root: Path, path: Path, sql: str, form: str, seconds: float) -> None:
    """Answer one question in a process of its own, and send what is wrong, or the answer.

    The system ends it a second after its time, whatever it does and whether or not the server still runs.
    """
    signal.setitimer(signal.ITIMER_REAL, seconds + 1)
    os.nice(5)  # pages go first
    held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize() if Path("/proc/self/statm").exists() else 0
    resource.setrlimit(resource.RLIMIT_DATA, (held + PROCESS_BYTES,) * 2)
    problem, found = "", b""
    try:
        explain, question = only_question(sql)
        with open_for_questions(Warehouse(root), path=path, limits=LIMITS) as connection:
            _refuse_files(connection, question)
            if form:
                found = b"".join(download(connection, f"select * from (\n{explain}{question}\n) limit {DOWNLOADED}", form))
            else:
                cursor = connection.execute(explain + question)
                found = pickle.dumps(([column[0] for column in cursor.description or []], cursor.fetchmany(ROWS + 1)))
        if len(found) > ANSWER_BYTES:
            problem, found = f"its answer has more than {ANSWER_BYTES // 10**6} MB: ask for fewer or shorter columns", b""
    except QueryError as error:
        problem = str(error)
    except (duckdb.OutOfMemoryException, MemoryError, OSError) as error:  # OSError: pyarrow's, while it reads from DuckDB
        problem = TOO_LARGE.format(f" ({first_line(error)})" if str(error) else "")
    except RecursionError:
        problem = "it is nested too deeply: ask in a flatter form"
    except duckdb.Error as error:
        problem = with_hint(error)
    except (NotImplementedError, OverflowError, TypeError, ValueError) as error:  # Python or Parquet has no type for a value
        problem = f"{first_line(error)}: cast that column to varchar"
    pipe.send((problem, found))


def _refuse_files(connection: duckdb.DuckDBPyConnection, question: str) -> None:
    """Raises: QueryError where a question names a file, or a function that reads one."""
    ((text,),) = connection.execute("select json_serialize_sql(?)", [question]).fetchall()

    def refuse(node: dict[str, Any]) -> dict[str, Any]:
        name = node["function"]["function_name"] if node.get("type") == "TABLE_FUNCTION" else None
        if name is not None and name not in FUNCTIONS:
            raise QueryError(f"{name}() is not for questions: ask the relations of the publication; `drivetail sql` has all functions")
        if node.get("type") == "BASE_TABLE" and "/" in node["table_name"]:
            raise QueryError(f"{node['table_name']}: a file is not for questions: ask the relations of the publication")
        return node

    if json.loads(text, object_hook=refuse)["error"]:
        raise QueryError("this question cannot be checked for the files it reads: ask the relations of the publication in another form")


def download(cursor: duckdb.DuckDBPyConnection, sql: str, form: str) -> Iterator[bytes]:
    """The rows of a query as `csv` or `json`, in pieces, or as a `parquet` file."""
    if form == "parquet":
        import pyarrow.parquet as pq

        reader: Any = cursor.sql(sql).to_arrow_reader(20_000)
        file = io.BytesIO()
        with pq.ParquetWriter(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        yield file.getvalue()
        return
    if form == "json":
        cursor.execute(f"select to_json(answer) from (\n{sql}\n) as answer")
        before = "[\n"
        while texts := cursor.fetchmany(2000):
            yield (before + ",\n".join(_finite(text) for (text,) in texts)).encode()
            before = ",\n"
        yield b"[]\n" if before == "[\n" else b"\n]\n"
        return
    cursor.execute(sql)
    rows: list[tuple[Any, ...]] = [tuple(column[0] for column in cursor.description or [])]
    while rows:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(map(_as_text, row) for row in rows)
        yield buffer.getvalue().encode()
        rows = cursor.fetchmany(2000)


def _as_text(value: Any) -> Any:
    """A value for CSV, which people open in a spreadsheet: a text that would be a formula there begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _finite(text: str) -> str:
    """JSON with null for NaN and Infinity, which it has no words for."""
    return json.dumps(json.loads(text, parse_constant=lambda _: None)) if "NaN" in text or "Infinity" in text else text


@cache
def cookbook() -> dict[str, str]:
    """The questions of docs/cookbook.md: title -> SQL."""
    text = (PROJECT / "docs" / "cookbook.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\d+\. .+?)$.*?```sql\n(.*?)```", text, flags=re.MULTILINE | re.DOTALL))

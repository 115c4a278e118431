"""Tool `job-history`: MapReduce's .jhist, as JSON or Avro binary. Its tasks are the map attempts that succeeded."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.contract.extras import how_to_install
from ingest.reading.limits import unpacked_limit
from ingest.reading.readers import opened, whole
from ingest.reading.text import one_line
from lab.contract import NO_RESULT, UNREADABLE, Columns, LabError, Refused
from lab.tools.tasks import TASKS, Task, frame_of, is_sound, placed
from lab.tools.text import Reading

EXPECTED = "a job history of MapReduce: a line `Avro-Json` or `Avro-Binary`, a line with the schema, then events"
TABLES: dict[str, Columns] = {"tasks": TASKS}
_STARTED, _FINISHED = "MAP_ATTEMPT_STARTED", "MAP_ATTEMPT_FINISHED"
_READ = (
    ("org.apache.hadoop.mapreduce.lib.input.FileInputFormatCounter", "BYTES_READ"),
    ("org.apache.hadoop.mapreduce.FileSystemCounter", "HDFS_BYTES_READ"),
)
"""Group and name of the counter of bytes read; the second where a job has no files as input."""
Event = tuple[str, dict[str, Any]]


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tasks, with slots. Raises: Refused; LabError where it is Avro binary and fastavro is not installed."""
    content = _content(path)
    head, _, rest = content.partition(b"\n")
    schema, _, events = rest.partition(b"\n")
    if head.strip() not in (b"Avro-Json", b"Avro-Binary"):
        raise Refused(UNREADABLE, f"its first line is {head[:40].decode('utf-8', 'replace')!r}; expected {EXPECTED}")
    found = _of_json(events, reading) if head.strip() == b"Avro-Json" else _of_avro(schema, events, reading)
    tasks = _tasks(found, reading)
    if not tasks:
        raise Refused(NO_RESULT, "no map attempt that succeeded in it; give the history of a job that has ended")
    yield "tasks", frame_of(placed(tasks))


def _content(path: Path) -> bytes:
    if not path.stat().st_size:
        raise Refused(NO_RESULT, f"nothing is in it; expected {EXPECTED}")
    limit = unpacked_limit(path)
    try:
        with opened(path) as stream:
            content = stream.read(limit + 1)
    except (OSError, EOFError, UnreadableFile, ValueError) as error:
        raise Refused(UNREADABLE, f"cannot be unpacked ({one_line(error)}); expected {EXPECTED}") from error
    if len(content) > limit:
        raise Refused(UNREADABLE, f"it unpacks to more than {limit >> 20} MiB; give each job's history by itself")
    return content


def _of_json(events: bytes, reading: Reading) -> Iterator[Event]:
    for line in events.decode("utf-8", "replace").splitlines():
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_int=whole)
            # a union is an object of one key: the type that it holds
            (event,) = record["event"].values()
            yield str(record["type"]), dict(event)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            reading.reject(line)


def _of_avro(schema: bytes, events: bytes, reading: Reading) -> Iterator[Event]:
    try:
        import fastavro
    except ImportError as error:
        raise LabError(f"a job history in Avro binary needs fastavro; {how_to_install('lab')}") from error
    try:
        parsed = fastavro.parse_schema(json.loads(schema))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, fastavro.schema.SchemaParseException) as error:
        raise Refused(UNREADABLE, f"its second line is no Avro schema ({one_line(error)}); expected {EXPECTED}") from error
    stream = io.BytesIO(events)
    while stream.tell() < len(events):
        begun = stream.tell()
        try:
            record: Any = fastavro.schemaless_reader(stream, parsed)
            yield str(record["type"]), dict(record["event"])
        except (ValueError, LookupError, TypeError, AttributeError, EOFError, OverflowError, MemoryError, struct.error) as error:
            # binary records have no mark to go on at
            reading.reject(f"byte {begun} of the events: {one_line(error)}")
            return


def _tasks(events: Iterator[Event], reading: Reading) -> list[Task]:
    started: dict[str, float] = {}
    tasks = []
    for kind, event in events:
        if kind not in (_STARTED, _FINISHED):
            continue
        try:
            attempt = str(event["attemptId"])
            if kind == _STARTED:
                started[attempt] = float(event["startTime"]) / 1000
                continue
            task = Task(attempt, str(event["hostname"]), 0, started[attempt], float(event["finishTime"]) / 1000, _bytes_read(event))
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            reading.reject(json.dumps(event, default=str))
            continue
        if event.get("taskStatus") == "SUCCEEDED" and is_sound(task):
            tasks.append(task)
        else:
            reading.reject(json.dumps(event, default=str))
    return tasks


def _bytes_read(event: dict[str, Any]) -> int | None:
    counters = {(group["name"], one["name"]): one["value"] for group in event["counters"]["groups"] for one in group["counts"]}
    return next((int(counters[name]) for name in _READ if name in counters), None)

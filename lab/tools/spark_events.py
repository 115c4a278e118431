"""Tool `spark-events`: an event log of Spark, a JSON object a line. Its tasks are those that succeeded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ingest.reading.readers import whole
from lab.contract import NO_RESULT, UNREADABLE, Columns, Refused
from lab.tools.tasks import TASKS, Task, frame_of, is_sound, placed
from lab.tools.text import Reading, blocks_of

EXPECTED = 'an event log of Spark (spark.eventLog.enabled), lines such as {"Event":"SparkListenerTaskEnd",...}'
TABLES: dict[str, Columns] = {"tasks": TASKS}
_ENDED = "SparkListenerTaskEnd"


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tasks, with slots. Raises: Refused."""
    tasks, events = [], 0
    for block in blocks_of(path, EXPECTED):
        for line in block.decode("utf-8", "replace").splitlines():
            if not line.strip():
                continue
            try:
                event = json.loads(line, parse_int=whole)
                name = event["Event"]
                task = _task(event) if name == _ENDED else None
            except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
                reading.reject(line)
                continue
            events += 1
            if task is not None and is_sound(task):
                tasks.append(task)
            elif task is not None:
                reading.reject(line)
    if not events:
        raise Refused(UNREADABLE, f"no line of it is an event; expected {EXPECTED}")
    if not tasks:
        raise Refused(NO_RESULT, "no task that succeeded in it; give the log of an application that has ended")
    yield "tasks", frame_of(placed(tasks))


def _task(event: dict[str, Any]) -> Task | None:
    """The task that an event ends; None where it was killed or failed."""
    info = event["Task Info"]
    if event["Task End Reason"]["Reason"] != "Success" or info.get("Failed") or info.get("Killed"):
        return None
    size = ((event.get("Task Metrics") or {}).get("Input Metrics") or {}).get("Bytes Read")
    return Task(
        str(info["Task ID"]), str(info["Host"]), 0, float(info["Launch Time"]) / 1000, float(info["Finish Time"]) / 1000,
        None if size is None else int(size),
    )  # fmt: skip

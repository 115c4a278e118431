"""Tool `tasks`: tasks of a job as CSV with the header `task_id,node,slot,started_s,ended_s,bytes`.

The table `tasks` is filled by job-history and spark-events too.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ingest.reading.text import utf8
from lab.contract import COUNT, NO_RESULT, REAL, TEXT, Columns, Refused
from lab.tools.text import Reading, csv_rows, text_of

EXPECTED = "CSV with the header task_id,node,slot,started_s,ended_s,bytes"
TASKS: Columns = {
    "row": COUNT, "task_id": TEXT, "node": TEXT, "slot": COUNT, "started_s": REAL, "ended_s": REAL, "bytes": COUNT,
}  # fmt: skip
"""`row`: place among the tasks of the file, from 1. `bytes`: read; null where it is not known."""
TABLES = {"tasks": TASKS}
MOST_SECONDS = 1e12
MOST_BYTES = 2**53


class Task(NamedTuple):
    """A task that was done; times in seconds of the file's own clock."""

    task_id: str
    node: str
    slot: int
    started_s: float
    ended_s: float
    bytes: int | None


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tasks. Raises: Refused without the header, or without a task."""
    found = []
    for row, line in csv_rows(text_of(path, EXPECTED).removeprefix("\ufeff"), Task._fields, reading, EXPECTED):
        task = _task(row)
        if task is None:
            reading.reject(line)
        else:
            found.append(task)
    if not found:
        raise Refused(NO_RESULT, f"no task in it; expected {EXPECTED}")
    yield "tasks", frame_of(found)


def frame_of(tasks: Iterable[Task]) -> pl.DataFrame:
    """Tasks as a frame of `tasks`, in order."""
    rows = [(number, utf8(task.task_id), utf8(task.node), *task[2:]) for number, task in enumerate(tasks, 1)]
    return pl.DataFrame(rows, schema=TASKS, orient="row")


def placed(tasks: Iterable[Task]) -> list[Task]:
    """Tasks in order of their start, each in the slot with the lowest number that is free on its node then."""
    free: dict[str, list[int]] = defaultdict(list)
    running: dict[str, list[tuple[float, int]]] = defaultdict(list)
    slots: dict[str, int] = defaultdict(int)
    found = []
    for task in sorted(tasks, key=lambda task: (task.started_s, task.ended_s, task.task_id)):
        here = running[task.node]
        while here and here[0][0] <= task.started_s:
            heapq.heappush(free[task.node], heapq.heappop(here)[1])
        if free[task.node]:
            slot = heapq.heappop(free[task.node])
        else:
            slot = slots[task.node]
            slots[task.node] += 1
        heapq.heappush(here, (task.ended_s, slot))
        found.append(task._replace(slot=slot))
    return found


def is_sound(task: Task) -> bool:
    """Whether a task can be one: names, times in order and within what seconds can say, no negative bytes."""
    return (
        bool(task.task_id and task.node)
        and 0 <= task.slot < MOST_BYTES
        and -MOST_SECONDS < task.started_s <= task.ended_s < MOST_SECONDS
        and (task.bytes is None or 0 <= task.bytes <= MOST_BYTES)
    )


def _task(row: dict[str, str]) -> Task | None:
    try:
        size = row["bytes"]
        task = Task(
            row["task_id"], row["node"], int(row["slot"]), float(row["started_s"]), float(row["ended_s"]), int(size) if size else None
        )
    except (KeyError, ValueError):
        return None
    return task if is_sound(task) else None

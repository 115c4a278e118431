"""Tool `diskstats`: snapshots of /proc/diskstats, each below a line `TS seconds`. Partitions and devices made of others are kept too.

It also says which number (`major,minor`) has which name.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.reading.devices import is_whole_drive
from ingest.reading.hosts import looks
from ingest.sources.diskstats import WIDTHS
from lab.contract import COUNT, FLAG, NO_CLOCK, NO_RESULT, REAL, TEXT, UNREADABLE, Columns, Refused
from lab.tools.lsblk import DRIVE_DESCRIPTIONS, described
from lab.tools.text import Reading, text_of

EXPECTED = "snapshots of /proc/diskstats, each below a line `TS seconds`: `date +'TS %s'; cat /proc/diskstats`"
_COUNTERS = {"reads": 3, "sectors_read": 5, "read_ms": 6, "writes": 7, "sectors_written": 9, "write_ms": 10, "busy_ms": 12}
"""Counter -> its field of a line, from 0."""
TABLES: dict[str, Columns] = {
    "disk_snapshots": {"row": COUNT, "device": TEXT, "is_whole_drive": FLAG, "at_s": REAL, **dict.fromkeys(_COUNTERS, COUNT)},
    "drive_descriptions": DRIVE_DESCRIPTIONS,
}
"""`row`: line of the file, from 1. `at_s`: unix time."""
_EPOCH = datetime(1970, 1, 1)
_MOST = 2**53
_DIGITS = 20
"""Most digits of a number of the kernel, which has 64 bits."""
_OLD_PARTITION = 7
"""Fields of a partition before 2.6.25, which say nothing of time."""


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the snapshots. Raises: Refused where the text has no times, or no counters."""
    text = text_of(path, EXPECTED)
    lines = text.splitlines()
    if not any(line.startswith("TS") for line in lines) and any(_counters(line) for line in lines):
        raise Refused(NO_CLOCK, f"its counters have no time; expected {EXPECTED}")
    try:
        snapshots = looks(text.removeprefix("\ufeff"))
    except UnreadableFile as error:
        raise Refused(UNREADABLE, str(error)) from error
    rows = []
    numbers: dict[str, str] = {}
    for snapshot in snapshots:
        at = (snapshot.at - _EPOCH).total_seconds()
        for number, line in snapshot.lines:
            fields = line.split()
            if not fields or len(fields) == _OLD_PARTITION:
                continue
            counters = _counters(line)
            if counters is None:
                reading.reject(line)
            else:
                numbers[fields[2]] = f"{fields[0]},{fields[1]}"
                rows.append((number, fields[2], is_whole_drive(fields[2]), at, *counters))
    if not rows:
        raise Refused(NO_RESULT, f"no counters in it; expected {EXPECTED}")
    _note_left_out(rows, reading)
    yield "disk_snapshots", pl.DataFrame(rows, schema=TABLES["disk_snapshots"], orient="row")
    yield "drive_descriptions", described([{"kernel_name": name, "major_minor": number} for name, number in numbers.items()])


def _note_left_out(rows: list[tuple[Any, ...]], reading: Reading) -> None:
    """Busy devices made of others, such as dm-0, that the experiment does not name; their partitions and idle ones are not worth a word."""
    whole = {row[1] for row in rows if row[2]}
    sums = {row[1]: sum(row[4:]) for row in rows}
    left = [name for name, total in sums.items() if total and name not in whole | reading.kernel_names]
    # a partition is part of a drive that is kept
    left = [name for name in left if not any(name != other and name.startswith(other) for other in whole | {*left})]
    if left:
        reading.notes.append(f"{', '.join(left)}: left out, as no whole drive; to keep one, name it as kernel_name in [[devices]]")


def _counters(line: str) -> list[int] | None:
    """The counters of a line in the order of _COUNTERS, None where it is no line of a device."""
    fields = line.split()
    numbers = (*fields[:2], *fields[3:])
    if len(fields) not in WIDTHS or not all(field.isascii() and field.isdecimal() and len(field) <= _DIGITS for field in numbers):
        return None
    counters = [int(fields[place]) for place in _COUNTERS.values()]
    return counters if max(counters) <= _MOST else None

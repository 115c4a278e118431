"""Tools `sysstat` and `iostat`: what `sadf -j`, `sadf -d`, `sar -d` and `iostat -xt -o JSON` print, as the fleet's source reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.sources.sysstat import EXPECTED as FORMATS
from ingest.sources.sysstat import read_intervals
from lab.contract import COUNT, NO_RESULT, REAL, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import Reading

EXPECTED = f"{FORMATS.split(': ')[-1]}, with S_TIME_FORMAT=ISO in the environment"
TABLES: dict[str, Columns] = {
    "disk_intervals": {
        "row": COUNT, "device": TEXT, "ended_s": REAL, "seconds": REAL, "busy_ratio": REAL, "reads_per_s": REAL, "writes_per_s": REAL,
        "read_bytes_per_s": REAL, "write_bytes_per_s": REAL,
    }
}  # fmt: skip
"""`row`: place of the drive and interval in the file, from 1. Null: what the tool does not print, as sar no reads apart from writes."""
_NAMES = {"row_no": "row", "read_rate": "reads_per_s", "write_rate": "writes_per_s"}
_EPOCH = datetime(1970, 1, 1)


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the intervals. Raises: Refused."""
    if not path.stat().st_size:
        raise Refused(NO_RESULT, f"nothing is in it; expected {EXPECTED}")
    try:
        # only differences of times count here, so that any zone will do
        found = read_intervals(path, UTC)
    except UnreadableFile as error:
        # the source's own options, which it names, are none of a bundle
        raise Refused(UNREADABLE, f"{error}; expected {EXPECTED}") from error
    for _, reason, column, value in found.rejected:
        reading.reject(f"{column} {value or ''}: {reason}")
    if not found.intervals:
        raise Refused(NO_RESULT, f"no interval of a drive in it; expected {EXPECTED}")
    rows = [
        {**{_NAMES.get(name, name): value for name, value in row.items()}, "ended_s": (row["ends"] - _EPOCH).total_seconds()}
        for row in found.intervals
    ]
    yield "disk_intervals", pl.DataFrame([{name: row[name] for name in TABLES["disk_intervals"]} for row in rows], TABLES["disk_intervals"])

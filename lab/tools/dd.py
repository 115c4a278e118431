"""Tool `dd`: what dd says on its standard error; a copy of one record is a single request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from lab.contract import COUNT, NO_RESULT, REAL, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, text_of

EXPECTED = "what dd says, such as `1+0 records in`, `1+0 records out`, `262144 bytes (262 kB, 256 KiB) copied, 0.00021 s, 1.2 GB/s`"
TABLES: dict[str, Columns] = {"dd_copies": {"copy": COUNT, "records": COUNT, "bytes": COUNT, "seconds": REAL}}
"""`copy`: place in the file, from 1. `records`: that dd read, whole or not; null where it does not say."""

_RECORDS = re.compile(r"(\d{1,15})\+(\d{1,15}) records (in|out)")
_COPIED = re.compile(
    r"(\d{1,18}) bytes? (?:\([^()]*\) )?(?:copied,|transferred in) (\d{1,12}(?:[.,]\d{1,12})?(?:e-?\d{1,2})?) s(?:ecs?|econds?)?\b.*"
)


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the copies. Raises: Refused."""
    copies: list[dict[str, Any]] = []
    records = None
    for line in map(str.strip, text_of(path, EXPECTED).splitlines()):
        if found := _RECORDS.fullmatch(line):
            records = int(found[1]) + int(found[2]) if found[3] == "in" else records
        elif found := _COPIED.fullmatch(line):
            # the point of the locale may be a comma
            copies.append(
                {"copy": len(copies) + 1, "records": records, "bytes": int(found[1]), "seconds": float(found[2].replace(",", "."))}
            )
            records = None
        elif line:
            reading.reject(line)
    if not copies:
        raise Refused(UNREADABLE if reading.lines_rejected else NO_RESULT, f"no copy in it; expected {EXPECTED}")
    yield "dd_copies", pl.DataFrame(copies, schema=TABLES["dd_copies"])

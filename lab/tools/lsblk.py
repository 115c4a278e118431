"""Tool `lsblk`: the drives of a machine, by `lsblk -J -b -O`. They fill what experiment.toml leaves out of its devices.

The table `drive_descriptions` is also smartctl's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ingest.reading.readers import utf8
from lab.contract import COUNT, NO_RESULT, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, text_of

EXPECTED = "JSON of lsblk -J -b -O"
DRIVE_DESCRIPTIONS: Columns = {
    "row": COUNT, "kernel_name": TEXT, "major_minor": TEXT, "kind": TEXT, "vendor": TEXT, "model": TEXT, "firmware": TEXT, "serial": TEXT,
    "capacity_bytes": COUNT, "interface": TEXT, "rpm": COUNT,
}  # fmt: skip
"""`row`: place in the file, from 1. `kernel_name`: null where the file is of one drive, which runs.csv names. Others as in MANIFEST."""
KINDS = {"true": "disk", "1": "disk", "false": "ssd", "0": "ssd"}
"""Whether a drive rotates -> its kind."""
TABLES = {"drive_descriptions": DRIVE_DESCRIPTIONS}


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the drives, not their partitions. Raises: Refused."""
    try:
        document = json.loads(text_of(path, EXPECTED))
    except (ValueError, RecursionError) as error:
        raise Refused(UNREADABLE, f"no JSON: {str(error)[:80]}; expected {EXPECTED}") from error
    devices = document.get("blockdevices") if isinstance(document, dict) else None
    if not isinstance(devices, list):
        raise Refused(UNREADABLE, f"no list of blockdevices in it; expected {EXPECTED}")
    rows = []
    for device in devices:
        name = text_in(device, "kname") or text_in(device, "name") if isinstance(device, dict) else None
        if name is None:
            reading.reject(repr(device)[:80])
        elif device.get("type") in (None, "disk"):
            rotates = str(device.get("rota")).lower()
            number = text_in(device, "maj:min")
            rows.append(
                {
                    "kernel_name": name.removeprefix("/dev/"), "major_minor": number and number.replace(":", ","),
                    "kind": KINDS.get(rotates), "vendor": text_in(device, "vendor"), "model": text_in(device, "model"),
                    "firmware": text_in(device, "rev"),
                    "serial": text_in(device, "serial"), "capacity_bytes": count_in(device, "size"), "interface": text_in(device, "tran"),
                }
            )  # fmt: skip
    if not rows:
        raise Refused(NO_RESULT, f"no drive in it; expected {EXPECTED}")
    yield "drive_descriptions", described(rows)


def described(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows of the table, numbered."""
    return pl.DataFrame([{"row": number, **row} for number, row in enumerate(rows, 1)], schema=DRIVE_DESCRIPTIONS)


def text_in(document: dict[str, Any], key: str) -> str | None:
    """A text that says something, at most 80 characters of it."""
    value = document.get(key)
    return utf8(value.strip()[:80]) if isinstance(value, str) and value.strip() else None


def count_in(document: dict[str, Any], key: str) -> int | None:
    """A whole number from 0, or digits of one; a size in words such as 931.5G is none."""
    value = document.get(key)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None

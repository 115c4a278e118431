"""Tool `lsblk`: the drives and mounted filesystems of a machine, by `lsblk -J -b -O`. They fill what experiment.toml leaves out.

The table `drive_descriptions` is also that of smartctl and diskstats.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ingest.reading.text import utf8
from lab.contract import COUNT, NO_RESULT, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, json_of

EXPECTED = "JSON of lsblk -J -b -O"
DRIVE_DESCRIPTIONS: Columns = {
    "row": COUNT, "kernel_name": TEXT, "major_minor": TEXT, "kind": TEXT, "vendor": TEXT, "model": TEXT, "firmware": TEXT, "serial": TEXT,
    "capacity_bytes": COUNT, "interface": TEXT, "rpm": COUNT,
}  # fmt: skip
"""`row`: place in the file, from 1. `kernel_name`: null where the file is of one drive, which runs.csv names. Others as in MANIFEST."""
KINDS = {"true": "disk", "1": "disk", "false": "ssd", "0": "ssd"}
"""Whether a drive rotates -> its kind."""
_MOST_DEPTH = 16
"""Greatest depth of devices within devices."""
MOUNTED_FILESYSTEMS: Columns = {
    "row": COUNT, "drive": TEXT, "kernel_name": TEXT, "type": TEXT, "mount_point": TEXT, "partition_start_sectors": COUNT
}  # fmt: skip
"""A row for each place where one is mounted. `drive`: kernel name of the drive that holds it. `kernel_name`: of the device it is on."""
TABLES = {"drive_descriptions": DRIVE_DESCRIPTIONS, "mounted_filesystems": MOUNTED_FILESYSTEMS}


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the drives, then what is mounted of them and their partitions. Raises: Refused."""
    devices = json_of(path, reading, EXPECTED).get("blockdevices")
    if not isinstance(devices, list):
        raise Refused(UNREADABLE, f"no list of blockdevices in it; expected {EXPECTED}")
    rows = []
    for device in devices:
        name = _name(device)
        if name is None:
            reading.reject(repr(device)[:80])
        elif device.get("type") in (None, "disk"):
            rotates = str(device.get("rota")).lower()
            number = text_in(device, "maj:min")
            rows.append(
                {
                    "kernel_name": name, "major_minor": number and number.replace(":", ","),
                    "kind": KINDS.get(rotates), "vendor": text_in(device, "vendor"), "model": text_in(device, "model"),
                    "firmware": text_in(device, "rev"),
                    "serial": text_in(device, "serial"), "capacity_bytes": count_in(device, "size"), "interface": text_in(device, "tran"),
                }
            )  # fmt: skip
    mounted = [{"row": number, **row} for number, row in enumerate((row for device in devices for row in _mounted(device, None, 0)), 1)]
    if not rows and not mounted:
        raise Refused(NO_RESULT, f"no drive in it; expected {EXPECTED}")
    if rows:
        yield "drive_descriptions", described(rows)
    if mounted:
        yield "mounted_filesystems", pl.DataFrame(mounted, schema=MOUNTED_FILESYSTEMS)


def _name(device: Any) -> str | None:
    """Its name in the kernel."""
    name = text_in(device, "kname") or text_in(device, "name") if isinstance(device, dict) else None
    return name and name.removeprefix("/dev/")


def _mounted(device: Any, drive: str | None, depth: int) -> Iterator[dict[str, Any]]:
    """Filesystems on a device and on those within it. `drive`: the one that it is a part of, None of a drive."""
    name = _name(device)
    if name is None or depth > _MOST_DEPTH:
        return
    held_by = drive or text_in(device, "pkname") or name
    type_, places = text_in(device, "fstype"), device.get("mountpoints")
    found = [text_in({"at": place}, "at") for place in (places if isinstance(places, list) else [device.get("mountpoint")])]
    # where a filesystem in a logical volume begins on the drive, lsblk does not say
    start = count_in(device, "start") if device.get("type") == "part" else None
    for place in found:
        if type_ and place and place.startswith("/"):
            yield {
                "drive": held_by.removeprefix("/dev/"), "kernel_name": name, "type": type_, "mount_point": place,
                "partition_start_sectors": start,
            }  # fmt: skip
    children = device.get("children")
    for child in children if isinstance(children, list) else []:
        yield from _mounted(child, held_by, depth + 1)


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

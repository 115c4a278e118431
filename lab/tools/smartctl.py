"""Tool `smartctl`: what a drive is and has counted, by `smartctl -j` or `nvme ocp smart-add-log -o json`.

Models say which counters matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ingest.reading.text import utf8
from lab.contract import COUNT, NO_RESULT, TEXT, Columns, Refused
from lab.tools.lsblk import DRIVE_DESCRIPTIONS, count_in, described, text_in
from lab.tools.text import Reading, json_of

EXPECTED = "JSON of smartctl -j -A, or of nvme ocp smart-add-log -o json"
DRIVE_COUNTERS: Columns = {"row": COUNT, "counter": TEXT, "value": COUNT}
"""`row`: place in the file, from 1. `counter`: name of the SMART attribute, or of the field of a log, small and with `_`."""
TABLES = {"drive_counters": DRIVE_COUNTERS, "drive_descriptions": DRIVE_DESCRIPTIONS}
_MOST = 2**63


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the counters, and the drive where it is described. Raises: Refused."""
    document = json_of(path, reading, EXPECTED)
    found = [(utf8(name), value) for name, value in _counters(document)]
    for name, value in found:
        if value is None:
            reading.reject(f"{name[:80]}: no whole number from 0")
    rows = [(name, value) for name, value in found if value is not None]
    drive = _description(document)
    if not rows and not any(drive.values()):
        raise Refused(NO_RESULT, f"no counter in it; expected {EXPECTED}")
    if rows:
        numbered = [(number, *row) for number, row in enumerate(rows, 1)]
        yield "drive_counters", pl.DataFrame(numbered, schema=DRIVE_COUNTERS, orient="row")
    if any(drive.values()):
        yield "drive_descriptions", described([drive])


def _description(document: dict[str, Any]) -> dict[str, Any]:
    """Description of the drive itself: columns of DRIVE_DESCRIPTIONS."""
    device, capacity = ({} if not isinstance(part, dict) else part for part in (document.get("device"), document.get("user_capacity")))
    turns = count_in(document, "rotation_rate")
    protocol = text_in(device, "protocol")
    return {
        "kind": "disk" if turns else "ssd" if turns == 0 or protocol == "NVMe" else None,
        "vendor": text_in(document, "vendor") or text_in(document, "scsi_vendor"),
        "model": text_in(document, "model_name") or text_in(document, "scsi_model_name"),
        "firmware": text_in(document, "firmware_version") or text_in(document, "scsi_revision"),
        "serial": text_in(document, "serial_number"),
        "capacity_bytes": count_in(capacity, "bytes"),
        "interface": protocol,
        "rpm": turns or None,
    }


def _counters(document: dict[str, Any]) -> Iterator[tuple[str, int | None]]:
    """The name of each counter, and its value where it is one."""
    attributes = document.get("ata_smart_attributes")
    table = attributes.get("table") if isinstance(attributes, dict) else None
    for attribute in table if isinstance(table, list) else []:
        name = attribute.get("name") if isinstance(attribute, dict) else None
        if isinstance(name, str) and name:
            raw = attribute.get("raw")
            yield name[:80], _count(raw.get("value") if isinstance(raw, dict) else None)
    log = document.get("nvme_smart_health_information_log")
    for name, value in log.items() if isinstance(log, dict) else ():
        if not isinstance(value, list):
            yield name[:80], _count(value)
    for name, value in document.items():
        named = name.lower().replace(" ", "_")
        if named.startswith("physical_media_units_"):  # of the log of OCP
            yield named[:80], _count(value)


def _count(value: Any) -> int | None:
    if isinstance(value, dict):  # 128 bits in two halves
        high, low = _count(value.get("hi", 0)), _count(value.get("lo"))
        return _count((high << 64) + low) if high is not None and low is not None else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 25:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None

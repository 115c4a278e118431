"""The stored records of a drive-hour side by side, and why one counts."""

from __future__ import annotations

from datetime import datetime
from itertools import takewhile
from typing import Any

from drivetail.ask.explain.drive_hour import DriveHour, is_covered
from drivetail.ask.explain.text import exact, when
from drivetail.terminal import block, render
from engine.read import Row

# by what the rows of the file are, where they are no drive-hours
NOT_AS_DELIVERED = {
    "samples": "rolled up from samples; the row is that of its first sample",
    "disk_util": "a fio run that ended at collected_at; the hour is its rank among the array's runs, the row its place in disk_util",
}


def _is_path(counted: Row, record: Row) -> bool:
    """Whether another device of the same host measured the drive too (int_drive_hours__identified adds paths up)."""
    (host, _, device), (other_host, _, other) = counted["drive_id"].partition("/"), record["drive_id"].partition("/")
    return counted["source"] == record["source"] and host == other_host and "" not in (device, other) and device != other


def _is_part(counted: Row, record: Row) -> bool:
    """Whether a record is of another part of the hour."""
    return (counted["to_utc"] or datetime.max) <= (record["from_utc"] or datetime.min) or (record["to_utc"] or datetime.max) <= (
        counted["from_utc"] or datetime.min
    )


def raw_block(drive_hour: DriveHour) -> str:
    """Every stored record side by side, and why one counts."""
    # raw has what was delivered and how it was to be read before where it came from
    names = [name for name in takewhile(lambda name: name != "delivery_seq", drive_hour.live) if name not in ("drive_id", "hour_utc")]
    live = [record for record in drive_hour.records if record["retired_as"] is None]
    headings = ["", "counts", *(["set aside"] * (len(live) - 1)), *(["retired"] * (len(drive_hour.records) - len(live)))]
    spans = [name for name in ("from_utc", "to_utc") if any(record[name] for record in drive_hour.records)]
    origin: list[list[Any]] = [
        ["row", *(str(record["row_no"]) for record in drive_hour.records)],
        ["of file", *(str(number) for number in range(1, len(drive_hour.records) + 1))],
        ["delivery", *(f"{record['delivery_seq']}, source {record['source']}" for record in drive_hour.records)],
        ["landed", *(when(record["ingested_at"]) for record in drive_hour.records)],
    ]
    values = [[name, *(_written(record[name]) for record in drive_hour.records)] for name in [*spans, *names]]
    notes = [f"file {number}: {record['file']}" for number, record in enumerate(drive_hour.records, 1)]
    notes += [
        f"row {record['row_no']} was retired by delivery {record['retired_by_delivery_seq']}: {_why_retired(live[0], record)}"
        for record in drive_hour.records
        if record["retired_as"] is not None
    ]
    notes += [
        f"row {record['row_no']}, delivered as {record['drive_id']}, is another part of the hour: the marts have the sum of all"
        if _is_part(live[0], record)
        else f"row {record['row_no']}, delivered as {record['drive_id']}, is another path to the drive: the marts have the sum of both"
        if _is_path(live[0], record)
        else f"row {record['row_no']}, delivered as {record['drive_id']}, is set aside: {_why_aside(live[0], record)}"
        for record in live[1:]
    ]
    if live[0]["drive_id"] != drive_hour.drive:
        notes.append(f"delivered as {live[0]['drive_id']}, which names {drive_hour.drive} in this hour")
    notes += filter(None, [NOT_AS_DELIVERED.get(drive_hour.live["record_kind"])])
    title = "Raw record" if len(drive_hour.records) == 1 else f"Raw records: {len(drive_hour.records)}, one counts"
    return block(title, render(headings, origin + values), *notes)


def _written(value: object) -> str:
    """A raw value as it was delivered; null where it was none."""
    if value is None:
        return "null"
    return when(value) if isinstance(value, datetime) else exact(value) if isinstance(value, int | float) else str(value)


def _why_aside(counts: Row, record: Row) -> str:
    if not is_covered(record) and is_covered(counts):
        return f"its coverage {exact(record['coverage'])} is below the {exact(record['min_coverage'])}, the least that counts"
    if record["source"] != counts["source"]:
        return f"source {counts['source']} takes precedence over {record['source']}"
    return f"row {counts['row_no']} saw more of the hour, or was sent later"


def _why_retired(counts: Row, record: Row) -> str:
    """Why another record of the same drive and source counts."""
    if record["collected_at"] == counts["collected_at"]:
        return f"{record['retired_as']}: sent at the same time, so the one that is greater in the first column that differs counts"
    sent, later = (_written(row["collected_at"]) for row in (record, counts))
    return f"{record['retired_as']}, the latest one counts: its collected_at {sent} against {later}"

"""One drive-hour: its numbers first, then all that they were made of."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb

from drivetail.ask.explain.drive_hour import DriveHour
from drivetail.ask.explain.formulas import formulas_block, latency_block, raid_hour_block
from drivetail.ask.explain.missing import missing_blocks
from drivetail.ask.explain.peers import peers_block, place_block
from drivetail.ask.explain.question import known_drive, parse_hour
from drivetail.ask.explain.raw_records import raw_block
from drivetail.ask.explain.records import HOUR, intervals_table, nearby_events_block, shifted
from drivetail.ask.explain.text import num, when
from drivetail.terminal import block
from engine.read import fetch, publication_of, stored_files
from engine.warehouse import Warehouse

MEASURED = """
    select
        drive_hours.*,
        case
            when (days.after_slowdown_in >> hour(drive_hours.hour_utc)) & 1 = 1
                then (days.after_slow_in >> hour(drive_hours.hour_utc)) & 1 = 1
        end as was_slow
    from intermediate.int_drive_hours as drive_hours
    inner join intermediate.int_drive_days as days
        on drive_hours.drive_id = days.drive_id and drive_hours.raid_group_id = days.raid_group_id and drive_hours.day_utc = days.day_utc
    where drive_hours.drive_id = ? and drive_hours.hour_utc = ? and drive_hours.is_data_drive is not null
"""
"""A drive-hour, and whether it was slow the hour before: null where it had no slowdown in this group then."""


def explain_hour(warehouse: Warehouse, drive: str, hour: str) -> str:
    """Everything that touched the numbers of one drive-hour. `hour` is UTC; one with an offset is converted, a later minute floored.

    Raises: QueryError without a publication, or when no record names the drive; click.BadParameter when `hour` is no time.
    """
    with publication_of(warehouse) as connection:
        return hour_text(connection, warehouse, drive, hour)


def hour_text(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, drive: str, hour: str) -> str:
    """The same of a publication that is open."""
    at, notes = parse_hour(hour)
    drive = known_drive(connection, drive)["drive_id"]
    # a pruned row is gone, or keeps drive, hour and slowdown alone
    measured = fetch(connection, MEASURED, [drive, at])
    if measured:
        this = DriveHour(connection, warehouse, measured[0])
        numbers = (_answer, raw_block, place_block, latency_block, peers_block, formulas_block, _interval_block, raid_hour_block)
        parts = [*(make(this) for make in numbers), nearby_events_block(connection, drive, at), _computed_block(this)]
    else:
        parts = missing_blocks(connection, warehouse, drive, at)
    return "\n\n".join([*(f"note: {note}" for note in notes), *(part for part in parts if part)])


def _answer(hour: DriveHour) -> str:
    measured, mart = hour.measured, hour.mart
    slowdown, rank = f"none: {measured['exclusion_reason'] if measured['is_data_drive'] else 'not a data drive'}", None
    if measured["slowdown"] is not None:
        level = "" if mart is None else ": slow" if mart["is_slow"] else ": mildly slow" if mart["is_slow_15"] else ": stable"
        slowdown = f"{num(measured['slowdown'])}{level}"
        # equal ones by id
        ordered = sorted((-row["slowdown"], row["drive_id"]) for row in hour.drives if row["slowdown"] is not None)
        rank = f"{ordered.index((-measured['slowdown'], hour.drive)) + 1} of {len(ordered)}"
    if mart is None:
        listed = "no: the RAID group has too few data drives" if measured["is_data_drive"] else "no: not a data drive"
    else:
        age = "age unknown" if mart["age_year"] is None else f"year {mart['age_year']} of its life"
        listed = f"yes: kind {mart['kind']}, {age}"
    return block(
        f"Drive {hour.drive}, hour {when(hour.at)} to {when(shifted(hour.at, HOUR))} UTC, RAID group {hour.group}",
        [
            ("slowdown S", slowdown),
            ("latency_us", num(measured["latency_us"])),
            ("median_latency_us", num(measured["median_latency_us"])),
            ("tail rank", rank),
            ("in fct_drive_hours", listed),
        ],
    )


def _interval_block(hour: DriveHour) -> str:
    intervals = fetch(
        hour.connection,
        """
        select * from marts.fct_slowdown_intervals
        where drive_id = $drive and started_at <= $at and ended_at >= $at order by threshold desc
        """,
        {"drive": hour.drive, "at": hour.at},
    )
    if not intervals:
        return "Slow intervals: the hour is in none"
    return block("Slow intervals the hour belongs to", intervals_table(intervals))


def _computed_block(hour: DriveHour) -> str:
    """Which file of the store and which publication the numbers are from."""
    (publication,) = fetch(hour.connection, "select * from marts.publication")
    files = stored_files(hour.warehouse, publication["publication_id"], "int_drive_hours", hour.at.date())
    written_at = datetime.fromtimestamp(files[0].stat().st_mtime, UTC).replace(tzinfo=None, microsecond=0)
    return block(
        "Computed",
        [
            ("when", f"{when(written_at)} UTC, with the whole day"),
            *(("file", path) for path in files),
            ("published", f"{when(publication['published_at'])} UTC as {publication['publication_id']}"),
        ],
    )

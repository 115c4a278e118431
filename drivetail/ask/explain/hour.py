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
from drivetail.ask.explain.records import HOUR, interval_columns, interval_rows, nearby_events_block, shifted
from drivetail.ask.explain.text import num, when
from drivetail.console import block, facts, table
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
    # of a pruned row nothing is left, or drive, hour and slowdown alone
    measured = fetch(connection, MEASURED, [drive, at])
    if measured:
        parts = _measured_blocks(DriveHour(connection, warehouse, measured[0]))
    else:
        parts = missing_blocks(connection, warehouse, drive, at)
    return "\n\n".join([*(f"note: {note}" for note in notes), *(part for part in parts if part)])


def _measured_blocks(drive_hour: DriveHour) -> list[str]:
    """The whole explanation, answer first."""
    return [
        _answer(drive_hour),
        raw_block(drive_hour),
        place_block(drive_hour),
        latency_block(drive_hour),
        peers_block(drive_hour),
        formulas_block(drive_hour),
        _interval_block(drive_hour),
        raid_hour_block(drive_hour),
        nearby_events_block(drive_hour.connection, drive_hour.drive, drive_hour.at),
        _computed_block(drive_hour),
    ]


def _answer(drive_hour: DriveHour) -> str:
    """The numbers that are asked about."""
    measured, mart = drive_hour.measured, drive_hour.mart
    if measured["slowdown"] is not None:
        level = "slow" if mart and mart["is_slow"] else "mildly slow" if mart and mart["is_slow_15"] else "stable"
        slowdown = f"{num(measured['slowdown'])}: {level}" if mart else num(measured["slowdown"])
    elif not measured["is_data_drive"]:
        slowdown = "none: not a data drive"
    else:
        slowdown = f"none: {measured['exclusion_reason']}"
    outside = None
    if mart is None:
        outside = "not a data drive" if not measured["is_data_drive"] else "the RAID group has too few data drives"
    return block(
        f"Drive {drive_hour.drive}, hour {when(drive_hour.at)} to {when(shifted(drive_hour.at, HOUR))} UTC, RAID group {drive_hour.group}",
        facts(
            [
                ("slowdown S", slowdown),
                ("latency_us", num(measured["latency_us"])),
                ("median_latency_us", num(measured["median_latency_us"])),
                ("tail rank", _tail_rank(drive_hour)),
                (
                    "in fct_drive_hours",
                    f"no: {outside}" if outside else f"yes: kind {mart and mart['kind']}, {_age(drive_hour)}",
                ),
            ]
        ),
    )


def _age(drive_hour: DriveHour) -> str:
    """The year of its life, as the mart has it."""
    year = drive_hour.mart["age_year"] if drive_hour.mart else None
    return f"year {year} of its life" if year is not None else "age unknown"


def _tail_rank(drive_hour: DriveHour) -> str | None:
    """The place of its slowdown in the RAID-hour; equal ones by id."""
    slowdown = drive_hour.measured["slowdown"]
    if slowdown is None:
        return None
    ordered = sorted((-row["slowdown"], row["drive_id"]) for row in drive_hour.peers if row["slowdown"] is not None)
    return f"{ordered.index((-slowdown, drive_hour.drive)) + 1} of {len(ordered)}"


def _interval_block(drive_hour: DriveHour) -> str:
    """The intervals the hour belongs to, at both thresholds."""
    intervals = fetch(
        drive_hour.connection,
        """
        select * from marts.fct_slowdown_intervals
        where drive_id = $drive and started_at <= $at and ended_at >= $at order by threshold desc
        """,
        {"drive": drive_hour.drive, "at": drive_hour.at},
    )
    if not intervals:
        return "Slow intervals: the hour is in none"
    rows = interval_rows(intervals)
    return block("Slow intervals the hour belongs to", table(rows, interval_columns(rows)))


def _computed_block(drive_hour: DriveHour) -> str:
    """Which file of the store and which publication the numbers are from."""
    (publication,) = fetch(drive_hour.connection, "select * from marts.publication")
    files = stored_files(drive_hour.warehouse, publication["publication_id"], "int_drive_hours", drive_hour.at.date())
    written_at = datetime.fromtimestamp(files[0].stat().st_mtime, UTC).replace(tzinfo=None, microsecond=0)
    return block(
        "Computed",
        facts(
            [
                ("when", f"{when(written_at)} UTC, with the whole day"),
                *(("file", path) for path in files),
                ("published", f"{when(publication['published_at'])} UTC as {publication['publication_id']}"),
            ]
        ),
    )

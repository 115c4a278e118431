"""One drive: what it is, where it was, how slow it was and what happened to it."""

from __future__ import annotations

from datetime import datetime

import duckdb

from drivetail.ask.explain.question import known_drive
from drivetail.ask.explain.records import (
    EVENT_COLUMNS,
    PERIOD_COLUMNS,
    drive_events,
    interval_columns,
    interval_rows,
    inventory_periods,
    period_rows,
)
from drivetail.ask.explain.text import num, right_aligned, when
from drivetail.console import Columns, block, facts, table, table_with_files
from engine.read import Row, fetch, publication_of
from engine.warehouse import Warehouse
from report.words import named_drive

LATEST = 10
"""Intervals, events and episodes of a drive that are shown."""

WORST = 5
"""Slowest hours of a drive that are shown."""


def explain_drive(warehouse: Warehouse, drive: str) -> str:
    """A drive's description, places, slowness and history.

    Raises: QueryError without a publication, or when no record names the drive.
    """
    with publication_of(warehouse) as connection:
        known = known_drive(connection, drive)
        return "\n\n".join(part for part in _drive_blocks(connection, known) if part)


def _drive_blocks(connection: duckdb.DuckDBPyConnection, drive: Row) -> list[str]:
    drive_id = drive["drive_id"]
    attributes = (
        "host",
        "device",
        "slot",
        "enclosure",
        "site",
        "vendor",
        "model",
        "firmware",
        "flash_cell",
        "capacity_bytes",
        "rpm",
        "interface",
    )
    spans = fetch(
        connection,
        """
        select
            raid_group_id, min(hour_utc) as first_hour_utc, max(hour_utc) as last_hour_utc, count(*) as hours,
            count(case when is_in_population then 1 end) as in_population, count(slowdown) as with_slowdown
        from intermediate.int_drive_hours where drive_id = ? and is_data_drive is not null
        group by raid_group_id order by last_hour_utc desc
        """,
        [drive_id],
    )
    periods = inventory_periods(connection, [drive_id])
    ((pruned_before,),) = connection.execute("select pruned_before_utc from marts.publication").fetchall()
    blocks = [
        block(
            f"Drive {named_drive(drive)}",
            facts(
                [
                    ("serial", drive_id),
                    ("kind", drive["kind"]),
                    # an earlier release published no device
                    *((name, drive.get(name)) for name in attributes),
                    ("deployed_on", _deployed_text(drive)),
                    ("RAID group", _group_text(drive)),
                    ("rows", _rows_text(drive, pruned_before)),
                ]
            ),
        ),
        block("Inventory, latest first", table_with_files(period_rows(periods), PERIOD_COLUMNS))
        if periods
        else "Inventory: none; it counts as a data drive of the group its rows name",
    ]
    if spans:
        span_columns: Columns = {"RAID group": "raid_group_id", "first hour": "first_hour_utc", "last hour": "last_hour_utc"}
        counts: Columns = {"hours": "hours", "as a data drive with peers": "in_population", "with a slowdown": "with_slowdown"}
        blocks.append(block("Rows by RAID group", table(spans, {**span_columns, **counts})))
    blocks += _slowness_blocks(connection, drive_id)
    blocks += _event_blocks(connection, drive_id)
    hour = _hour_to_look_at(connection, drive_id)
    if hour is not None:
        blocks.append(f'One hour of it, down to file and row: drivetail explain {drive_id} "{when(hour)}"')
    return blocks


def _deployed_text(drive: Row) -> str | None:
    """Its day of deployment, and the source that computed it where it was not given."""
    if drive["deployed_on_source"] in (None, "bundle", "mapping"):
        return drive["deployed_on"] and str(drive["deployed_on"])
    return f"{drive['deployed_on']}, counted back by {drive['deployed_on_source']} from the hours it was switched on: it may be older"


def _group_text(drive: Row) -> str | None:
    """Its RAID group, and that it is a guess where it is one."""
    group: str | None = drive["current_raid_group_id"]
    return f"{group}, only its host: no source says which group it is in" if group and drive["is_group_guessed"] else group


def _rows_text(drive: Row, pruned_before: datetime | None) -> str:
    """From when to when it has rows, and which of them were pruned."""
    first, last = drive["first_hour_utc"], drive["last_hour_utc"]
    if first is None:
        return "none"
    pruned = f"; those before {when(pruned_before)} were pruned, but they count below" if pruned_before and first < pruned_before else ""
    return f"{when(first)} to {when(last)} UTC{pruned}"


def _hour_to_look_at(connection: duckdb.DuckDBPyConnection, drive_id: str) -> datetime | None:
    ((hour,),) = connection.execute(
        "select coalesce(max_by(hour_utc, (slowdown, hour_utc)) filter (slowdown is not null), max(hour_utc)) "
        "from intermediate.int_drive_hours where drive_id = ? and is_data_drive is not null",
        [drive_id],
    ).fetchall()
    return hour if isinstance(hour, datetime) else None


def _slowness_blocks(connection: duckdb.DuckDBPyConnection, drive_id: str) -> list[str]:
    found = fetch(connection, "select * from marts.fct_drive_slowness where drive_id = ?", [drive_id])
    if not found:
        return ["Slowdown: none in any hour"]
    (slowness,) = found
    window = f"{slowness['window_drive_hours']} hours of the chronic window"
    blocks = [
        block(
            "Slowdown",
            facts(
                [
                    ("hours with a slowdown", slowness["drive_hours"]),
                    ("slow hours", f"{slowness['slow_hours']} in {slowness['interval_count']} intervals"),
                    ("largest", num(slowness["max_slowdown"])),
                    ("median", f"{num(slowness['median_slowdown'])} over {window}"),
                    ("acute", "yes" if slowness["is_acute"] else "no"),
                    ("chronic", "yes" if slowness["is_chronic"] else "no"),
                ]
            ),
        )
    ]
    # an interval with a severity is in one bucket only: a mild one that became slow is shown once
    intervals = fetch(
        connection,
        """
        select *, count(*) over () as interval_count from marts.fct_slowdown_intervals
        where drive_id = ? and severity is not null order by started_at desc, threshold desc limit ?
        """,
        [drive_id, LATEST],
    )
    if intervals:
        rows = interval_rows(intervals)
        title = "Slow intervals, latest first (mildly slow ones: never slow)"
        blocks.append(block(title, table(rows, interval_columns(rows), intervals[0]["interval_count"])))
    hours = fetch(
        connection,
        """
        select * from intermediate.int_drive_hours
        where drive_id = ? and slowdown is not null and is_data_drive is not null order by slowdown desc, hour_utc desc limit ?
        """,
        [drive_id, WORST],
    )
    columns: Columns = {"hour": ("hour_utc", when)}
    columns |= right_aligned(
        hours, {"S": "slowdown", "latency_us": "latency_us", "median_latency_us": "median_latency_us", "I/Os": "io_count"}
    )
    if hours:
        blocks.append(block("Slowest hours", table(hours, {**columns, "RAID group": "raid_group_id"})))
    return blocks


def _event_blocks(connection: duckdb.DuckDBPyConnection, drive_id: str) -> list[str]:
    events = drive_events(connection, drive_id)
    blocks = [block("Events, latest first", table_with_files(events[:LATEST], EVENT_COLUMNS, len(events))) if events else "Events: none"]
    episodes = fetch(connection, "select * from marts.fct_unplug_episodes where drive_id = ? order by unplugged_at desc", [drive_id])
    if episodes:
        rows = [{**row, "replugged": _replugged(row), "replaced": "yes" if row["is_replaced"] else "no"} for row in episodes[:LATEST]]
        columns: Columns = {"unplugged": ("unplugged_at", when), "replugged": "replugged"}
        columns |= right_aligned(rows, {"outage_hours": "outage_hours"})
        columns |= {"replaced": "replaced", "slow before": "preceding_severity", "slow again after (hours)": "recur_hours"}
        columns["RAID group"] = "raid_group_id"
        blocks.append(block("Unplugs, latest first", table(rows, columns, len(episodes))))
    return blocks


def _replugged(episode: Row) -> str:
    """When the drive came back; a second unplug says that it did, not when."""
    if episode["replugged_at"] is not None:
        return when(episode["replugged_at"])
    return "yes, time unknown" if episode["is_replugged"] else "no"

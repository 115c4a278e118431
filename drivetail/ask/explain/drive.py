"""One drive: what it is, where it was, how slow it was and what happened to it."""

from __future__ import annotations

from datetime import datetime

import duckdb

from drivetail.ask.explain.question import known_drive
from drivetail.ask.explain.records import EVENT_COLUMNS, PERIOD_COLUMNS, drive_events, intervals_table, inventory_periods
from drivetail.ask.explain.text import num, when
from drivetail.ask.probes import newest_probes
from drivetail.terminal import Columns, block, table, table_with_files
from engine.read import Row, fetch, publication_of
from engine.warehouse import Warehouse
from report.words import named_drive

LATEST = 10

ATTRIBUTES = (
    "host", "device", "slot", "enclosure", "site", "vendor", "model", "firmware", "flash_cell", "capacity_bytes", "rpm", "interface",
)  # fmt: skip

SPANS: Columns = {
    "RAID group": "raid_group_id",
    "first hour": "first_hour_utc",
    "last hour": "last_hour_utc",
    "hours": "hours",
    "as a data drive with peers": "in_population",
    "with a slowdown": "with_slowdown",
}

SLOWEST: Columns = {
    "hour": ("hour_utc", when),
    "S": ("slowdown", num),
    "latency_us": ("latency_us", num),
    "median_latency_us": ("median_latency_us", num),
    "I/Os": "io_count",
    "RAID group": "raid_group_id",
}

UNPLUGS: Columns = {
    "unplugged": ("unplugged_at", when),
    "replugged": "replugged",
    "outage_hours": ("outage_hours", num),
    "replaced": ("is_replaced", lambda is_replaced: "yes" if is_replaced else "no"),
    "slow before": "preceding_severity",
    "slow again after (hours)": "recur_hours",
    "RAID group": "raid_group_id",
}

WORST = 5


def explain_drive(warehouse: Warehouse, drive: str) -> str:
    """A drive's description, places, slowness and history.

    Raises: QueryError without a publication, or when no record names the drive.
    """
    with publication_of(warehouse) as connection:
        known = known_drive(connection, drive)
        return "\n\n".join(part for part in _drive_blocks(connection, known) if part)


def _drive_blocks(connection: duckdb.DuckDBPyConnection, drive: Row) -> list[str]:
    drive_id = drive["drive_id"]
    spans = fetch(
        connection,
        """
        select
            raid_group_id, min(hour_utc) as first_hour_utc, max(hour_utc) as last_hour_utc, count(*) as hours,
            count(case when is_in_population then 1 end) as in_population, count(slowdown) as with_slowdown,
            max((slowdown, hour_utc)) filter (slowdown is not null) as worst
        from intermediate.int_drive_hours where drive_id = ? and is_data_drive is not null
        group by raid_group_id order by last_hour_utc desc
        """,
        [drive_id],
    )
    periods = inventory_periods(connection, drive_id)
    ((pruned_before,),) = connection.execute("select pruned_before_utc from marts.publication").fetchall()
    blocks = [
        block(
            f"Drive {named_drive(drive)}",
            [
                ("serial", drive_id),
                ("kind", drive["kind"]),
                # an earlier release published no device
                *((name, drive.get(name)) for name in ATTRIBUTES),
                ("deployed_on", _deployed_text(drive)),
                ("RAID group", _group_text(drive)),
                ("rows", _rows_text(drive, pruned_before)),
            ],
        ),
        block("Inventory, latest first", table_with_files(periods, PERIOD_COLUMNS))
        if periods
        else "Inventory: none; it counts as a data drive of the group its rows name",
    ]
    if spans:
        blocks.append(block("Rows by RAID group", table(spans, SPANS)))
    blocks += _slowness_blocks(connection, drive_id)
    if probe := newest_probes(connection).get(drive_id):
        blocks.append(probe)
    blocks += _event_blocks(connection, drive_id)
    if spans:
        # the slowest, else the last
        worst = max((span["worst"] for span in spans if span["worst"]), default=(None, spans[0]["last_hour_utc"]))
        blocks.append(f'One hour of it, down to file and row: drivetail explain {drive_id} "{when(worst[1])}"')
    return blocks


def _deployed_text(drive: Row) -> str | None:
    if drive["deployed_on_source"] in (None, "bundle", "mapping"):
        return drive["deployed_on"] and str(drive["deployed_on"])
    return f"{drive['deployed_on']}, counted back by {drive['deployed_on_source']} from the hours it was switched on: it may be older"


def _group_text(drive: Row) -> str | None:
    group: str | None = drive["current_raid_group_id"]
    return f"{group}, only its host: no source says which group it is in" if group and drive["is_group_guessed"] else group


def _rows_text(drive: Row, pruned_before: datetime | None) -> str:
    first, last = drive["first_hour_utc"], drive["last_hour_utc"]
    if first is None:
        return "none"
    pruned = f"; those before {when(pruned_before)} were pruned, but they count below" if pruned_before and first < pruned_before else ""
    return f"{when(first)} to {when(last)} UTC{pruned}"


def _slowness_blocks(connection: duckdb.DuckDBPyConnection, drive_id: str) -> list[str]:
    found = fetch(connection, "select * from marts.fct_drive_slowness where drive_id = ?", [drive_id])
    if not found:
        return ["Slowdown: none in any hour"]
    (slowness,) = found
    window = f"{slowness['window_drive_hours']} hours of the chronic window"
    blocks = [
        block(
            "Slowdown",
            [
                ("hours with a slowdown", slowness["drive_hours"]),
                ("slow hours", f"{slowness['slow_hours']} in {slowness['interval_count']} intervals"),
                ("largest", num(slowness["max_slowdown"])),
                ("median", f"{num(slowness['median_slowdown'])} over {window}"),
                ("acute", "yes" if slowness["is_acute"] else "no"),
                ("chronic", "yes" if slowness["is_chronic"] else "no"),
            ],
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
        title = "Slow intervals, latest first (mildly slow ones: never slow)"
        blocks.append(block(title, intervals_table(intervals, intervals[0]["interval_count"])))
    hours = fetch(
        connection,
        """
        select * from intermediate.int_drive_hours
        where drive_id = ? and slowdown is not null and is_data_drive is not null order by slowdown desc, hour_utc desc limit ?
        """,
        [drive_id, WORST],
    )
    if hours:
        blocks.append(block("Slowest hours", table(hours, SLOWEST)))
    return blocks


def _event_blocks(connection: duckdb.DuckDBPyConnection, drive_id: str) -> list[str]:
    events = drive_events(connection, drive_id)
    blocks = [block("Events, latest first", table_with_files(events[:LATEST], EVENT_COLUMNS, len(events))) if events else "Events: none"]
    episodes = fetch(connection, "select * from marts.fct_unplug_episodes where drive_id = ? order by unplugged_at desc", [drive_id])
    if episodes:
        rows = [{**row, "replugged": _replugged(row)} for row in episodes[:LATEST]]
        blocks.append(block("Unplugs, latest first", table(rows, UNPLUGS, len(episodes))))
    return blocks


def _replugged(episode: Row) -> str:
    """When the drive came back; a second unplug says that it did, not when."""
    if episode["replugged_at"] is not None:
        return when(episode["replugged_at"])
    return "yes, time unknown" if episode["is_replugged"] else "no"

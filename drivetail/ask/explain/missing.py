"""A drive-hour that has no row: who expected one, what the group did, and the nearest hours that exist."""

from __future__ import annotations

from datetime import datetime

import duckdb

from drivetail.ask.explain.records import PERIOD_COLUMNS, inventory_periods, nearby_events_block
from drivetail.ask.explain.text import num, when
from drivetail.terminal import block, table_with_files
from engine.read import Row, fetch
from engine.warehouse import Warehouse
from ingest.raw.store import deliveries_but, list_folders


def missing_blocks(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, drive: str, at: datetime) -> list[str]:
    """An hour without a row: who expected one, what the group did, and the nearest hours that exist."""
    periods = inventory_periods(connection, drive, at)
    (near,) = fetch(
        connection,
        """
        select
            max(hour_utc) filter (hour_utc < $at) as before, min(hour_utc) filter (hour_utc > $at) as after,
            max_by(raid_group_id, hour_utc) filter (hour_utc < $at) as group_before
        from intermediate.int_drive_hours where drive_id = $drive and is_data_drive is not null
        """,
        {"drive": drive, "at": at},
    )
    title = f"Drive {drive} has no accepted row in hour {when(at)} UTC"
    entries: list[tuple[str, object]] = []
    groups = {period["raid_group_id"] for period in periods[:1]}
    pruned = _pruned(connection, drive, at)
    if pruned is not None:
        title = f"The row of drive {drive} in hour {when(at)} UTC was pruned, with the rows that its numbers were computed from"
        entries.append(("reported", f"from {pruned['raid_group_id']}; {pruned['note']}"))
        groups.add(pruned["raid_group_id"])
    expected = "inventory does not place the drive in this hour"
    if periods:
        expected = f"inventory expects one from {periods[0]['raid_group_id']}, where it is {periods[0]['role']}"
    entries.append(("inventory", expected))
    for group in sorted(groups or {near["group_before"]} - {None}):
        hours = fetch(connection, "select * from intermediate.int_raid_hours where raid_group_id = ? and hour_utc = ?", [group, at])
        counts = [f"{row['reporting_drive_count']} drives with a slowdown of N = {row['data_drive_count']} in this hour" for row in hours]
        entries.append((group, counts[0] if counts else "none of its drives has a row in this hour"))
    outages = fetch(
        connection,
        """
        select * from marts.fct_unplug_episodes
        where drive_id = $drive and unplugged_at < $at + interval 1 hour and coalesce(replugged_at > $at, not is_replugged)
        """,
        {"drive": drive, "at": at},
    )
    for episode in outages:
        replugged = when(episode["replugged_at"]) if episode["replugged_at"] else "never replugged"
        entries.append(("unplugged", f"{when(episode['unplugged_at'])} to {replugged}"))
    entries += [(f"hour {side}", when(near[side]) if near[side] else "none") for side in ("before", "after")]
    built = {row[0] for row in connection.execute("select distinct delivery_seq from raw.ingested_files").fetchall()}
    waiting = [each for each in deliveries_but(list_folders(warehouse.root), built) if each.overlaps(at, at)]
    if waiting:
        entries.append(("not yet built", f"{len(waiting)} deliveries that hold this hour; run `drivetail build`"))
    nearest = near["before"] or near["after"]
    return [
        block(title, entries),
        block("Inventory of this hour", table_with_files(periods, PERIOD_COLUMNS)) if periods else "",
        nearby_events_block(connection, drive, at),
        f'Nearest hour: drivetail explain {drive} "{when(nearest)}"' if nearest else "It has no accepted row in any hour",
    ]


def _pruned(connection: duckdb.DuckDBPyConnection, drive: str, at: datetime) -> Row | None:
    """Remains of a drive-hour whose row was pruned: its raid_group_id and a text on its slowdown; None where there was no row."""
    found = fetch(
        connection,
        """
        select days.raid_group_id, slow.slowdown, (days.slowdown_in >> hour($at)) & 1 = 1 as has_slowdown
        from intermediate.int_drive_days as days
        inner join marts.publication as publication on $at < publication.pruned_before_utc
        left join intermediate.int_drive_hours__slow as slow on days.drive_id = slow.drive_id and slow.hour_utc = $at
        where days.drive_id = $drive and days.day_utc = cast($at as date) and (days.reported_in >> hour($at)) & 1 = 1
        """,
        {"drive": drive, "at": at},
    )
    if not found:
        return None
    (row,) = found
    if row["slowdown"] is not None:
        return {**row, "note": f"its slowdown was {num(row['slowdown'])}"}
    return {**row, "note": "it was not slow; its slowdown is not kept" if row["has_slowdown"] else "it had no slowdown"}

"""Who is late: groups behind the fleet, drives behind their group, drives that inventory does not know."""

from __future__ import annotations

import duckdb

from drivetail.ask.status.content import listing
from engine.read import Row


def collect_freshness(connection: duckdb.DuckDBPyConnection) -> Row:
    """Groups behind the fleet and drives behind their group. A drive that inventory no longer places anywhere is not expected."""
    groups = "select raid_group_id, drive_count, last_hour_utc, lag_hours, is_stopped from status.fct_raid_group_freshness where is_lagging"
    return {
        "stopped_group_count": listing(connection, f"{groups} and is_stopped", "raid_group_id")["count"],
        "lagging_groups": listing(connection, groups, "is_stopped desc, last_hour_utc desc nulls last, raid_group_id"),
        "silent_drives": listing(
            connection,
            """
            select drive_id, raid_group_id, role, last_hour_utc, group_last_hour_utc, lag_hours
            from status.fct_drive_freshness
            where is_silent
            """,
            "last_hour_utc desc nulls last, drive_id",
        ),
        "drives_without_inventory": listing(
            connection,
            """
            select drive_id, raid_group_id, first_hour_utc, last_hour_utc
            from status.fct_drive_freshness
            where not has_inventory and last_hour_utc is not null
                and drive_id not in (select unnest(string_split(devices, ', ')) from status.fct_shared_serials where devices is not null)
            """,
            "drive_id",
        ),
    }

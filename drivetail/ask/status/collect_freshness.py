"""Who is late: groups behind the fleet, drives behind their group, drives that inventory does not know."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb

from drivetail.ask.status.collect_window import WINDOW
from drivetail.ask.status.content import listing
from engine.read import Row

GROUP_LAG = timedelta(hours=2)
"""A group this far behind the fleet is listed: an array may upload up to an hour late."""

GROUP_STOPPED = timedelta(hours=6)
"""A group this far behind is a problem: late arrays have caught up by then."""

DRIVE_SILENT = timedelta(hours=24)
"""A drive without a row in this many last hours of its own group is listed."""


def collect_freshness(connection: duckdb.DuckDBPyConnection, last: datetime) -> Row:
    """Groups behind the fleet and drives behind their group. A drive that inventory no longer places anywhere is missed by nobody."""
    connection.execute(
        """
        create temp table expected as
        select
            drives.drive_id, spans.last_hour_utc, segments.role, attributes.drive_id is not null as has_inventory,
            case
                when attributes.drive_id is null then spans.last_raid_group_id
                when spans.last_hour_utc > $last - $silent and segments.raid_group_id is not null then spans.last_raid_group_id
                else segments.raid_group_id
            end as raid_group_id
        from marts.dim_drives as drives
        left join intermediate.int_drives__spans as spans on drives.drive_id = spans.drive_id
        left join intermediate.int_drives__attributes as attributes on drives.drive_id = attributes.drive_id
        left join intermediate.int_drives__segments as segments
            on drives.drive_id = segments.drive_id and segments.from_hour_utc <= $last and segments.to_hour_utc > $last
        -- a spare serves no I/O; one that has never reported is as it should be
        where coalesce(segments.role, 'data') <> 'spare' or spans.drive_id is not null
        """,
        {"last": last, "silent": DRIVE_SILENT},
    )
    connection.execute(
        """
        create temp table groups as
        with reported as (
            select raid_group_id, max(hour_utc) as last_hour_utc from recent_raid_hours group by raid_group_id
            union all
            select last_raid_group_id, max(last_hour_utc) from intermediate.int_drives__spans group by last_raid_group_id
        )
        select
            expected.raid_group_id, count(distinct expected.drive_id) as drive_count, max(reported.last_hour_utc) as last_hour_utc,
            bool_or(expected.has_inventory) as has_inventory
        from expected
        left join reported on expected.raid_group_id = reported.raid_group_id
        where expected.raid_group_id is not null
        group by expected.raid_group_id
        """
    )
    connection.execute(
        """
        create temp table lagging as
        select
            raid_group_id, drive_count, last_hour_utc, date_diff('hour', last_hour_utc, $last) as lag_hours,
            -- where nothing but its own rows ever named a group, nobody can say after a while that it should still be there
            coalesce(last_hour_utc < $last - $stopped and (has_inventory or last_hour_utc > $last - $window), false) as is_stopped
        from groups
        where last_hour_utc is null or last_hour_utc < $last - $lag
        """,
        {"last": last, "lag": GROUP_LAG, "stopped": GROUP_STOPPED, "window": WINDOW},
    )
    ((stopped,),) = connection.execute("select count(*) from lagging where is_stopped").fetchall()
    return {
        "last_hour_utc": last,
        "stopped_group_count": stopped,
        "lagging_groups": listing(connection, "from lagging", "is_stopped desc, last_hour_utc desc nulls last, raid_group_id"),
        "silent_drives": listing(
            connection,
            """
            select
                expected.drive_id, expected.raid_group_id, expected.role, expected.last_hour_utc,
                groups.last_hour_utc as group_last_hour_utc,
                date_diff('hour', expected.last_hour_utc, groups.last_hour_utc) as lag_hours
            from expected
            inner join groups on expected.raid_group_id = groups.raid_group_id
            where expected.has_inventory
                and (expected.last_hour_utc is null or expected.last_hour_utc <= groups.last_hour_utc - $silent)
                and groups.last_hour_utc is not null
            """,
            "last_hour_utc desc nulls last, drive_id",
            {"silent": DRIVE_SILENT},
        ),
        "drives_without_inventory": listing(
            connection,
            """
            select spans.drive_id, spans.last_raid_group_id as raid_group_id, spans.first_hour_utc, spans.last_hour_utc
            from intermediate.int_drives__spans as spans
            where spans.drive_id not in (select drive_id from intermediate.int_drives__attributes)
            """,
            "drive_id",
        ),
    }

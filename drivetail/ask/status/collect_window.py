"""The last days of the fleet: what their drive-hours came to, which hours are missing, which rows contradict inventory."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb

from drivetail.ask.status.content import listing
from engine.read import Row, fetch

WINDOW = timedelta(days=7)
"""Drive-hours older than this, seen from the fleet's last hour, are not looked at: status stays cheap after years."""


def read_window(connection: duckdb.DuckDBPyConnection, first: datetime) -> None:
    """One pass over the drive-hours and one over the RAID-hours of the window; all else is asked of what this leaves."""
    connection.execute(
        """
        create temp table recent_drives as
        select
            drive_id, raid_group_id, min(hour_utc) as first_hour_utc, max(hour_utc) as last_hour_utc, count(*) as hours,
            count(case when is_in_population then slowdown end) as slowdowns,
            count(case when is_in_population and coalesce(read_slowdown, write_slowdown) is null then slowdown end) as undirected,
            count(case when not is_data_drive then 1 end) as other_role,
            count(case when is_data_drive and not is_in_population then 1 end) as narrow_group,
            count(case when is_in_population and exclusion_reason = 'low_coverage' then 1 end) as low_coverage,
            count(case when is_in_population and exclusion_reason = 'no_io' then 1 end) as no_io,
            count(case when is_in_population and exclusion_reason = 'too_few_drives' then 1 end) as too_few_drives,
            count(case when is_in_population and exclusion_reason = 'zero_median' then 1 end) as zero_median
        from intermediate.int_drive_hours
        where hour_utc >= ?
        group by drive_id, raid_group_id
        """,
        [first],
    )
    connection.execute(
        """
        create temp table recent_raid_hours as
        select
            raid_group_id, hour_utc, is_valid,
            row_number() over (partition by raid_group_id order by hour_utc) as hour_number
        from intermediate.int_raid_hours
        where hour_utc >= ?
        """,
        [first],
    )


def collect_window(connection: duckdb.DuckDBPyConnection) -> Row:
    """What the drive-hours of the window came to, and the hours that are missing in it."""
    outcomes = {
        "slowdowns": "with a slowdown",
        "low_coverage": "low_coverage",
        "no_io": "no_io",
        "too_few_drives": "too_few_drives",
        "zero_median": "zero_median",
        "narrow_group": "group of fewer than 3 data drives",
        "other_role": "parity drive or spare",
    }
    counted = ("hours", "undirected", *outcomes)
    columns = ", ".join(f"coalesce(cast(sum({name}) as bigint), 0) as {name}" for name in counted)
    (sums,) = fetch(connection, f"select {columns} from recent_drives")
    return {
        "drive_hours": [{"outcome": title, "drive_hours": sums[name], "of": sums["hours"]} for name, title in outcomes.items()],
        "slowdowns_without_directions": sums["undirected"],
        "groups_with_gaps": listing(
            connection,
            """
            select
                raid_group_id, min(hour_utc) as first_hour_utc, max(hour_utc) as last_hour_utc, count(*) as hours,
                date_diff('hour', min(hour_utc), max(hour_utc)) + 1 - count(*) as missing_hours,
                count(case when not is_valid then 1 end) as hours_without_median
            from recent_raid_hours
            group by raid_group_id
            having missing_hours > 0 or hours_without_median > 0
            """,
            "missing_hours desc, hours_without_median desc, raid_group_id",
        ),
        "drives_with_gaps": listing(
            connection,
            """
            -- hours of its group between a drive's first and last row, less its rows; a drive that changed groups is left out
            with settled as (
                select * from recent_drives qualify count(*) over (partition by drive_id) = 1
            )
            select
                settled.drive_id, settled.raid_group_id, settled.first_hour_utc, settled.last_hour_utc, settled.hours,
                latest.hour_number - earliest.hour_number + 1 - settled.hours as missing_hours
            from settled
            inner join recent_raid_hours as earliest
                on settled.raid_group_id = earliest.raid_group_id and settled.first_hour_utc = earliest.hour_utc
            inner join recent_raid_hours as latest
                on settled.raid_group_id = latest.raid_group_id and settled.last_hour_utc = latest.hour_utc
            where missing_hours > 0
            """,
            "missing_hours desc, drive_id",
        ),
    }


def collect_contradictions(connection: duckdb.DuckDBPyConnection, first: datetime) -> Row:
    """Drives whose rows name a group that no period of theirs in that hour names, although one names another; the row wins."""
    return listing(
        connection,
        """
        with moved as (
            -- few drives are ever named in another group; only their hours are looked at one by one
            select distinct recent.drive_id
            from recent_drives as recent
            inner join intermediate.int_drives__segments as segments
                on recent.drive_id = segments.drive_id
                and segments.from_hour_utc <= recent.last_hour_utc
                and segments.to_hour_utc > recent.first_hour_utc
            where segments.raid_group_id <> recent.raid_group_id
        )
        select
            drive_hours.drive_id, drive_hours.raid_group_id, segments.raid_group_id as inventory_raid_group_id,
            count(*) as hours, min(drive_hours.hour_utc) as first_hour_utc, max(drive_hours.hour_utc) as last_hour_utc
        from intermediate.int_drive_hours as drive_hours
        inner join moved on drive_hours.drive_id = moved.drive_id
        inner join intermediate.int_drives__segments as segments
            on drive_hours.drive_id = segments.drive_id
            and segments.from_hour_utc <= drive_hours.hour_utc
            and segments.to_hour_utc > drive_hours.hour_utc
        where drive_hours.hour_utc >= ?
            and segments.raid_group_id <> drive_hours.raid_group_id
            and not exists (
                select 1 from intermediate.int_drives__periods as own
                where own.drive_id = drive_hours.drive_id and own.raid_group_id = drive_hours.raid_group_id
                    and own.from_hour_utc <= drive_hours.hour_utc and own.to_hour_utc > drive_hours.hour_utc
            )
        group by drive_hours.drive_id, drive_hours.raid_group_id, segments.raid_group_id
        """,
        "last_hour_utc desc, hours desc, drive_id, raid_group_id, inventory_raid_group_id",
        [first],
    )

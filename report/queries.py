"""What the weekly report asks of the marts: selections only, every number is a mart's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb

Row = dict[str, Any]

WEEKS_SHOWN = 12
DRIVES_LISTED = 10
DRIVES_DRAWN = 6
CHRONIC_LISTED = 25
EPISODES_LISTED = 50


@dataclass(frozen=True)
class WeekFacts:
    """All the report shows of one week; every list may be empty."""

    week: Row
    publication: Row
    fleet: Row
    landing: list[Row]
    rejections: list[Row]
    coverage: list[Row]
    exclusions: list[Row]
    slowness: list[Row]
    trend: list[Row]
    percentiles: list[Row]
    drives: list[Row]
    raid_groups: list[Row]
    drive_series: list[Row]
    peer_bands: list[Row]
    drive_events: list[Row]
    durations: list[Row]
    duration_summary: dict[tuple[str, str], Row]
    unplugs: list[Row]
    episodes: list[Row]
    slowness_counts: list[Row]
    chronic: list[Row]


def fetch(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
    """All rows of a query, each as a dict."""
    cursor = connection.cursor()
    cursor.execute(query, list(parameters))
    rows = cursor.fetchall()
    columns = [column[0] for column in cursor.description or []]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def fetch_publication(connection: duckdb.DuckDBPyConnection) -> Row:
    """Which publication this is, and the newest delivery in it (null without one)."""
    (publication,) = fetch(
        connection,
        """
        select
            publication_id, published_at, last_hour_utc, pruned_before_utc,
            (select max(delivery_seq) from marts.ingested_files) as last_delivery_seq
        from marts.publication
        """,
    )
    return publication


def fetch_weeks(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """Weeks with a valid RAID-hour, oldest first."""
    return fetch(connection, "select * from marts.dim_weeks order by week_utc")


def fetch_week(connection: duckdb.DuckDBPyConnection, week: Row) -> WeekFacts:
    """Everything the report shows of the week."""
    start: datetime = week["week_utc"]
    end = start + timedelta(days=7)
    (fleet,) = fetch(connection, "select * from marts.fct_weekly_fleet where week_utc = ?", [start])
    drives = fetch(connection, COSTLIEST_DRIVES, [start - timedelta(days=7), start, DRIVES_LISTED])
    drawn = [drive["drive_id"] for drive in drives[:DRIVES_DRAWN]]
    series = fetch(connection, DRIVE_SERIES, [drawn, start, end]) if drawn else []
    groups = sorted({row["raid_group_id"] for row in [*series, *drives[:DRIVES_DRAWN]]})
    return WeekFacts(
        week=week,
        publication=fetch_publication(connection),
        fleet=fleet,
        landing=fetch(
            connection, "select * from marts.fct_landing_totals order by record_kind = 'all' desc, rows_delivered desc, record_kind"
        ),
        rejections=fetch(connection, "select * from marts.fct_rejection_counts order by row_count desc, source, reason, column_name"),
        coverage=fetch(connection, "select * from marts.fct_weekly_coverage where week_utc = ? order by kind", [start]),
        exclusions=fetch(
            connection,
            "select * from marts.fct_weekly_exclusions where week_utc = ? order by drive_hours desc, kind, exclusion_reason",
            [start],
        ),
        slowness=fetch(connection, SLOWNESS, [start]),
        trend=fetch(
            connection,
            "select * from marts.fct_weekly_slowness where week_utc > ? and week_utc <= ? order by week_utc, kind",
            [start - timedelta(weeks=WEEKS_SHOWN), start],
        ),
        percentiles=fetch(
            connection, "select * from marts.fct_weekly_percentiles where week_utc = ? order by kind, series, percentile", [start]
        ),
        drives=drives,
        raid_groups=fetch(
            connection,
            "select * from marts.fct_weekly_raid_groups where week_utc = ? and tail_hours > 0 order by cost_rank limit ?",
            [start, DRIVES_LISTED],
        ),
        drive_series=series,
        peer_bands=fetch(connection, PEER_BANDS, [groups, start, end]) if groups else [],
        drive_events=fetch(connection, DRIVE_EVENTS, [drawn, start, end]) if drawn else [],
        durations=fetch(connection, "select * from marts.fct_duration_shares order by measure, kind, hours"),
        duration_summary={
            (row["measure"], row["kind"]): row
            for row in fetch(connection, "select * from marts.fct_duration_summary order by measure, kind")
        },
        unplugs=fetch(connection, "select * from marts.fct_weekly_unplugs where week_utc = ? order by kind", [start]),
        episodes=fetch(connection, EPISODES, [start, end, EPISODES_LISTED]),
        slowness_counts=fetch(connection, "select * from marts.fct_slowness_counts order by kind"),
        chronic=fetch(connection, CHRONIC, [CHRONIC_LISTED]),
    )


SLOWNESS = """
select slowness.*, changes.* exclude (week_utc, kind)
from marts.fct_weekly_slowness as slowness
left join marts.fct_weekly_changes as changes on slowness.week_utc = changes.week_utc and slowness.kind = changes.kind
where slowness.week_utc = ?
order by slowness.kind
"""

COSTLIEST_DRIVES = """
select
    costs.*,
    earlier.slow_hours as earlier_slow_hours,
    drives.vendor,
    drives.model,
    drives.firmware,
    drives.deployed_on,
    coalesce(slowness.is_chronic, false) as is_chronic
from marts.fct_weekly_drives as costs
left join marts.fct_weekly_drives as earlier on costs.drive_id = earlier.drive_id and earlier.week_utc = ?
left join marts.dim_drives as drives on costs.drive_id = drives.drive_id
left join marts.fct_drive_slowness as slowness on costs.drive_id = slowness.drive_id
where costs.week_utc = ?
order by costs.cost_rank
limit ?
"""

DRIVE_SERIES = """
select drive_id, hour_utc, raid_group_id, slowdown, is_slow, exclusion_reason
from marts.fct_drive_hours
where drive_id in (select unnest(?::varchar[])) and hour_utc >= ? and hour_utc < ?
order by drive_id, hour_utc
"""

PEER_BANDS = """
select
    bands.raid_group_id,
    bands.hour_utc,
    bands.lowest_slowdown,
    bands.lower_quartile_slowdown,
    bands.upper_quartile_slowdown,
    raid_hours.tail_1,
    raid_hours.tail_2,
    raid_hours.slowest_drive_id
from marts.fct_peer_bands as bands
inner join marts.fct_raid_hours as raid_hours
    on bands.raid_group_id = raid_hours.raid_group_id and bands.hour_utc = raid_hours.hour_utc
where bands.raid_group_id in (select unnest(?::varchar[])) and bands.hour_utc >= ? and bands.hour_utc < ?
"""

DRIVE_EVENTS = """
select drive_id, occurred_at, event_type, ended_at, detail, is_explicit
from marts.fct_drive_events
where drive_id in (select unnest(?::varchar[])) and occurred_at >= ? and occurred_at < ?
order by drive_id, occurred_at, event_type
"""

EPISODES = """
select episodes.*, drives.model
from marts.fct_unplug_episodes as episodes
left join marts.dim_drives as drives on episodes.drive_id = drives.drive_id
where episodes.unplugged_at >= ? and episodes.unplugged_at < ?
order by episodes.unplugged_at, episodes.drive_id
limit ?
"""

CHRONIC = """
select slowness.*, drives.vendor, drives.model, drives.current_raid_group_id, drives.deployed_on
from marts.fct_drive_slowness as slowness
left join marts.dim_drives as drives on slowness.drive_id = drives.drive_id
where slowness.is_chronic
order by slowness.median_slowdown desc, slowness.drive_id
limit ?
"""

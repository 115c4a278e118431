"""Records of a drive besides its hours: inventory periods, events and slow intervals, as rows and as columns of a table."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb

from drivetail.ask.explain.text import num, when
from drivetail.terminal import Columns, block, table, table_with_files
from engine.read import Row, fetch
from engine.thresholds import variables
from ingest.sources import SELF_NAMED_SOURCES

HOUR = timedelta(hours=1)

DAY = timedelta(days=1)

LIVE_RAW = """
select delivered.* exclude (source), files.source, files.file, files.record_kind, files.ingested_at
from raw.{kind} as delivered
left join raw.ingested_files as files on delivered.delivery_seq = files.delivery_seq and delivered.file_no = files.file_no
where not exists (
    select 1 from raw.retired_{kind} as retired
    where retired.delivery_seq = delivered.delivery_seq and retired.file_no = delivered.file_no and retired.row_no = delivered.row_no
)
"""

AN_INSTANT = {"at": "delivered.occurred_at", "until": "delivered.occurred_at + interval 1 microsecond"}

NAMED_DRIVE = """
coalesce(
    (
        select case when min(names.drive_id) = max(names.drive_id) then min(names.drive_id) end from intermediate.int_names as names
        where delivered.is_alias is not null and delivered.drive_id = names.alias
            and names.from_utc < {until} and names.to_utc > {at}
    ),
    delivered.drive_id
)
"""
"""The drive that a record is of from one instant to another: hosts name theirs by aliases."""

PERIOD_COLUMNS: Columns = {
    "from": "from",
    "to": "to",
    "RAID group": "raid_group_id",
    "role": "role",
    "kind": "kind",
    "slot": "slot",
    "delivery": "delivery_seq",
    "row": "row_no",
}

EVENT_COLUMNS: Columns = {
    "event (UTC)": ("occurred_at", when),
    "type": "event_type",
    "ended": ("ended_at", when),
    "RAID group": "raid_group_id",
    "slot": "slot",
    "detail": "detail",
    "slow then or an hour later": ("slow_within_window", lambda is_slow: "yes" if is_slow else "no"),
    "row": "row_no",
}

INTERVAL_COLUMNS: Columns = {
    "from": ("started_at", when),
    "last hour": ("ended_at", when),
    "threshold": ("threshold", num),
    "hours": "interval_hours",
    "first S": ("first_slowdown", num),
    "max S": ("max_slowdown", num),
    "mean S": ("mean_slowdown", num),
    "severity": "severity",
    "cut off": "cut_off",
    "RAID group": "raid_group_id",
    "unplugged": ("unplugged_at", when),
}


def precedence(aspect: str) -> list[str]:
    """Sources in the order in which the models believe them; those whose records name drives themselves stand together."""
    return [
        name
        for stood in variables()["source_precedence"][aspect]
        for name in (sorted(SELF_NAMED_SOURCES) if stood == "bundle" else [stood])
    ]


def inventory_periods(connection: duckdb.DuckDBPyConnection, drive: str, at: datetime | None = None) -> list[Row]:
    """Inventory periods of a drive with file and row, latest first; `at`: only those that cover this hour."""
    found = fetch(
        connection,
        f"""
        with delivered as ({LIVE_RAW.format(kind="drives")})
        select placed.*, delivered.delivery_seq, delivered.row_no, delivered.file, delivered.collected_at
        from intermediate.int_drives__periods as placed
        inner join delivered on placed.drive_id = delivered.drive_id and placed.valid_from is not distinct from delivered.valid_from
        where placed.drive_id = $drive and ($at is null or (placed.from_hour_utc <= $at and placed.to_hour_utc > $at))
        order by placed.valid_from desc nulls last
        """,
        {"drive": drive, "at": at},
    )
    return [{**period, "from": when(period["valid_from"]), "to": when(period["valid_to"])} for period in found]


def drive_events(
    connection: duckdb.DuckDBPyConnection, drive: str, first: datetime | None = None, end: datetime | None = None
) -> list[Row]:
    """Events of a drive with file and row, latest first. What the models add to a source's words stands behind them."""
    return fetch(
        connection,
        f"""
        with delivered as ({LIVE_RAW.format(kind="drive_events")}),
        named as (
            select delivered.* replace ({NAMED_DRIVE.format(**AN_INSTANT)} as drive_id) from delivered
        )
        select events.*, named.file, named.row_no
        from marts.fct_drive_events as events
        inner join named
            on events.drive_id = named.drive_id
            and events.occurred_at = named.occurred_at
            and (events.event_type = named.event_type or named.source = 'smartctl')
            and (starts_with(events.detail, named.detail) or (events.detail is null and named.detail is null))
        where events.drive_id = $drive
            and ($first is null or events.occurred_at >= $first)
            and ($end is null or events.occurred_at < $end)
        qualify row_number() over (
            partition by events.occurred_at, events.event_type order by named.delivery_seq, named.file_no, named.row_no
        ) = 1
        order by events.occurred_at desc, events.event_type
        """,
        {"drive": drive, "first": first, "end": end},
    )


def nearby_events_block(connection: duckdb.DuckDBPyConnection, drive_id: str, at: datetime) -> str:
    """The events a day before and after an hour, earliest first."""
    events = drive_events(connection, drive_id, shifted(at, -DAY), shifted(at, HOUR + DAY))
    if not events:
        return "Events within 24 h: none"
    return block("Events within 24 h", table_with_files(list(reversed(events)), EVENT_COLUMNS))


def shifted(instant: datetime, span: timedelta) -> datetime:
    """An instant later (or earlier) by a span, as far as the calendar goes."""
    try:
        return instant + span
    except OverflowError:
        return instant


def intervals_table(intervals: list[Row], count: int | None = None) -> str:
    """Slow intervals, with the sides on which each is cut off."""
    for row in intervals:
        sides = (("before", row["is_left_censored"]), ("after", row["is_right_censored"]))
        row["cut_off"] = " and ".join(side for side, is_cut in sides if is_cut)
    return table(intervals, INTERVAL_COLUMNS, count)

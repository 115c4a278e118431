"""What a warehouse holds, how fresh it is, what was turned away, and who is missing.

What has landed is read from raw itself, so it is told also while nothing is published, the folder has moved, or a build
is broken; freshness and inventory are read from the publication. Nothing here looks at all of history: drive-hours and
RAID-hours are read for the last `WINDOW` only, the rest are tables that weigh what drives and files weigh.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb

from drivetail.console import human, render
from drivetail.queries import QueryError, first_line, open_published
from drivetail.sources import point_whole_tables
from drivetail.warehouse import Warehouse, quoted
from ingest.raw_store import Delivery, drive_hour_files, list_deliveries
from ingest.schema import RECORD_KINDS

HOUR = timedelta(hours=1)
FIRST_HOUR = datetime(1, 1, 1)

WINDOW = timedelta(days=7)
"""Drive-hours older than this, seen from the fleet's last hour, are not looked at: status stays cheap after years."""

UNBUILT_AFTER = timedelta(hours=2)
"""A landed delivery that no publication holds after this long: an hourly build has then failed at least once."""

GROUP_LAG = timedelta(hours=2)
"""A group this far behind the fleet is listed: an array may upload up to an hour late."""

GROUP_STOPPED = timedelta(hours=6)
"""A group this far behind is a problem: late arrays have caught up by then."""

DRIVE_SILENT = timedelta(hours=24)
"""A drive without a row in this many last hours of its own group is listed."""

LIVE_WITHIN = timedelta(hours=24)
"""A delivery that came this soon after its last hour is live telemetry; anything older is history being loaded, whose age says nothing."""

STALE_LEAST, STALE_MOST = timedelta(hours=3), timedelta(hours=26)
"""How long a live feed may bring no newer hour: twice the usual time between its deliveries, within these bounds (one late
upload; a daily delivery with two hours for its way)."""

REJECTED_SHARE = 0.01
"""More than this share of the last delivery's rows turned away: no longer stray bad rows, the sender has changed."""

UNREADABLE_FOR = timedelta(days=7)
"""An unreadable file is a problem until its like lands readable, and for this long: raw never forgets it, a monitor must."""

LISTED = 200
"""Rows that a listing of the JSON holds; its `count` is of all."""

SHOWN = 10
"""Rows that a listing of the text shows."""

Row = dict[str, Any]

Columns = dict[str, str | tuple[str, Callable[[Any], Any]]]
"""The columns of a printed table: heading -> key of the row, or key and how to write its value."""


@dataclass
class Status:
    """Everything `drivetail status` knows; `to_json` is its stable form. Instants are UTC, ages and lags in hours.

    A listing is `{"count": all, "rows": the first LISTED}`.

    - problems: what needs an operator, a sentence each; `--check` exits 1 where there is one.
    - publication: state (`published`, `none`, `unusable`), message (why not, and what to run), publication_id, published_at,
      last_hour_utc, last_hour_age_hours, delivery_count, drive_count, raid_group_count.
    - unbuilt: listing of deliveries that the publication does not hold: delivery_seq, source, ingested_at, age_hours,
      first_hour_utc, last_hour_utc, rows_delivered; late_count of them are older than UNBUILT_AFTER.
    - landed: delivery_count, first_hour_utc, last_hour_utc, last_delivery, files (count by status), rows (over the warehouse:
      delivered, accepted, rejected, duplicate, superseded), stored_rows (live records in raw by kind), rolled_up_superseded, by_source.
    - rejected: count, reasons (source, reason, column, count, last_rejected_at, and one example: file, row, value).
    - unreadable_files: listing of source, file, ingested_at, note, is_replaced (a file of that name has landed since).
    - freshness (null without a publication): last_hour_utc of the fleet, lagging_groups, silent_drives, drives_without_inventory:
      listings; stopped_group_count of the lagging groups have stopped reporting.
    - inventory (null likewise): contradictions: drives whose rows name another group than inventory; the row wins.
    - window (null likewise): first_hour_utc, last_hour_utc of the drive-hours that were looked at; drive_hours by outcome
      (`with a slowdown`, or why there is none), groups_with_gaps, drives_with_gaps.
    """

    warehouse: str
    at: datetime
    problems: list[str] = field(default_factory=list)
    publication: Row = field(default_factory=dict)
    unbuilt: Row = field(default_factory=dict)
    landed: Row = field(default_factory=dict)
    rejected: Row = field(default_factory=dict)
    unreadable_files: Row = field(default_factory=dict)
    freshness: Row | None = None
    inventory: Row | None = None
    window: Row | None = None

    def to_json(self) -> str:
        """The same content as the text, as one JSON object."""

        def plain(value: object) -> str:
            return value.isoformat() if isinstance(value, datetime) else str(value)

        return json.dumps(asdict(self), default=plain, indent=2)


def collect_status(warehouse: Warehouse, now: datetime | None = None) -> Status:
    """Look at a warehouse. `now` (UTC without zone) is the clock's time where not given.

    Raises: QueryError when raw itself cannot be read.
    """
    now = now or datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    status = Status(str(warehouse.root), now)
    deliveries = list_deliveries(warehouse.root)
    built = _collect_published(status, warehouse, deliveries)
    try:
        with duckdb.connect() as raw:
            raw.execute("create schema raw")
            point_whole_tables(raw, deliveries)
            # asked often, and as many files as there are deliveries
            raw.execute("create temp table landed_files as select * from raw.ingested_files")
            _collect_landed(status, raw, deliveries)
            _collect_unbuilt(status, raw, deliveries, built)
            _collect_turned_away(status, raw)
            _find_problems(status, raw, deliveries, built)
    except duckdb.Error as error:
        raise QueryError(f"{warehouse.raw}: cannot be read ({first_line(error)}); raw files never change, restore the one named") from error
    return status


def fetch(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object] | dict[str, object] = ()) -> list[Row]:
    """The rows of a query, as dicts. `parameters`: for `?`, or by name for `$name`."""
    relation = connection.execute(query, parameters)
    columns = [column[0] for column in relation.description or []]
    return [dict(zip(columns, row, strict=True)) for row in relation.fetchall()]


def _listing(connection: duckdb.DuckDBPyConnection, query: str, order: str, parameters: Sequence[object] | dict[str, object] = ()) -> Row:
    """How many rows a query has, and the first of them in an order."""
    limited = f"select *, count(*) over () as listing_count from ({query}) order by {order} limit {LISTED}"
    rows = fetch(connection, limited, parameters)
    counts = [row.pop("listing_count") for row in rows]
    return {"count": counts[0] if counts else 0, "rows": rows}


def _hours(span: timedelta) -> float:
    return round(span / HOUR, 2)


def _collect_landed(status: Status, raw: duckdb.DuckDBPyConnection, deliveries: list[Delivery]) -> None:
    """Deliveries, files and rows; over the warehouse a record that lost a conflict later counts as superseded."""
    # a source that rolls samples up counts samples, and its records are drive-hours: the two do not compare
    raw.execute(
        f"""
        create temp table rolled_up as
        select distinct delivery_seq from landed_files where record_kind not in ({", ".join(map(quoted, RECORD_KINDS))});
        create temp table lost_later as
        """
        + " union all ".join(
            f"""
            select '{kind}' as record_kind, delivery_seq, file_no, reason, retired_by_delivery_seq > delivery_seq as is_later,
                delivery_seq in (select delivery_seq from rolled_up) as is_rolled_up
            from raw.retired_{kind}
            """
            for kind in RECORD_KINDS
        )
    )
    by_source = fetch(
        raw,
        """
        with lost as (
            select delivery_seq, file_no, count(*) as lost from lost_later
            where is_later and reason = 'superseded' and not is_rolled_up
            group by delivery_seq, file_no
        )
        select
            files.source, files.record_kind, files.status, count(*) as file_count,
            cast(sum(rows_delivered) as bigint) as delivered,
            cast(sum(rows_accepted - coalesce(lost, 0)) as bigint) as accepted,
            cast(sum(rows_rejected) as bigint) as rejected,
            cast(sum(rows_duplicate) as bigint) as duplicate,
            cast(sum(rows_superseded + coalesce(lost, 0)) as bigint) as superseded,
            max(ingested_at) as last_ingested_at
        from landed_files as files
        left join lost on files.delivery_seq = lost.delivery_seq and files.file_no = lost.file_no
        group by files.source, files.record_kind, files.status
        order by files.source, files.record_kind nulls last, files.status
        """,
    )
    counts = ("delivered", "accepted", "rejected", "duplicate", "superseded")
    files: dict[str, int] = {"landed": 0, "unreadable": 0}
    for row in by_source:
        files[row["status"]] = files.get(row["status"], 0) + row["file_count"]
    ((rolled_up,),) = raw.execute("select count(*) from lost_later where is_later and is_rolled_up").fetchall()
    hours = [hour for d in deliveries for hour in (d.first_hour, d.last_hour) if hour is not None]
    last = fetch(raw, _DELIVERIES + " order by delivery_seq desc limit 1")
    status.landed = {
        "delivery_count": len(deliveries),
        "first_hour_utc": min(hours, default=None),
        "last_hour_utc": max(hours, default=None),
        "last_delivery": last[0] if last else None,
        "files": files,
        "rows": {name: sum(row[name] for row in by_source) for name in counts},
        "stored_rows": _stored_rows(raw, deliveries),
        "rolled_up_superseded": rolled_up,
        "by_source": by_source,
    }


_DELIVERIES = """
select
    delivery_seq, min(source) as source, max(ingested_at) as ingested_at, count(*) as file_count,
    cast(sum(rows_delivered) as bigint) as rows_delivered, cast(sum(rows_rejected) as bigint) as rows_rejected
from landed_files
group by delivery_seq
"""


def _stored_rows(raw: duckdb.DuckDBPyConnection, deliveries: list[Delivery]) -> dict[str, int]:
    """Live records of each kind that lie in raw: those stored less those retired. Drive-hours are counted by the files' footers alone."""
    retired = dict(raw.execute("select record_kind, count(*) from lost_later group by record_kind").fetchall())
    stored = {}
    for kind in RECORD_KINDS:
        if kind == "drive_hours":
            rows = _footer_rows(raw, deliveries)
        else:
            ((rows,),) = raw.execute(f"select count(*) from raw.{kind}").fetchall()
        stored[kind] = rows - retired.get(kind, 0)
    return stored


def _footer_rows(raw: duckdb.DuckDBPyConnection, deliveries: list[Delivery]) -> int:
    files = [path for delivery in deliveries for path in drive_hour_files(delivery)]
    if not files:
        return 0
    names = ", ".join(map(quoted, files))
    ((rows,),) = raw.execute(f"select cast(sum(num_rows) as bigint) from parquet_file_metadata([{names}])").fetchall()
    return int(rows)


def _collect_unbuilt(status: Status, raw: duckdb.DuckDBPyConnection, deliveries: list[Delivery], built: set[int] | None) -> None:
    """Deliveries that came after the publication was made."""
    known = {row["delivery_seq"]: row for row in fetch(raw, _DELIVERIES)}
    rows: list[Row] = []
    for delivery in deliveries:
        if built is not None and delivery.seq in built:
            continue
        came = known.get(delivery.seq, {})
        ingested_at = came.get("ingested_at")
        rows.append(
            {
                "delivery_seq": delivery.seq,
                "source": came.get("source"),
                "ingested_at": ingested_at,
                "age_hours": _hours(status.at - ingested_at) if ingested_at else None,
                "first_hour_utc": delivery.first_hour,
                "last_hour_utc": delivery.last_hour,
                "rows_delivered": came.get("rows_delivered"),
            }
        )
    late = sum(row["age_hours"] is None or row["age_hours"] > UNBUILT_AFTER / HOUR for row in rows)
    status.unbuilt = {"count": len(rows), "late_count": late, "rows": rows[:LISTED]}


def _collect_turned_away(status: Status, raw: duckdb.DuckDBPyConnection) -> None:
    """Rejected records by what was wrong, and files that could not be read."""
    reasons = fetch(
        raw,
        """
        select
            source, reason, "column", count(*) as count, max(rejected_at) as last_rejected_at,
            max_by(file, (rejected_at, file, -"row")) as file,
            max_by("row", (rejected_at, file, -"row")) as "row",
            max_by({'value': value}, (rejected_at, file, -"row")).value as value
        from raw.rejected_records
        group by source, reason, "column"
        order by count desc, source, "column", reason
        """,
    )
    status.rejected = {"count": sum(row["count"] for row in reasons), "reasons": reasons}
    status.unreadable_files = _listing(
        raw,
        """
        select
            source, file, ingested_at, note,
            exists (
                select 1 from landed_files as later
                where later.source = files.source and later.file = files.file and later.status = 'landed'
                    and later.delivery_seq > files.delivery_seq
            ) as is_replaced
        from landed_files as files
        where status = 'unreadable'
        """,
        "is_replaced, ingested_at desc, file",
    )


def _collect_published(status: Status, warehouse: Warehouse, deliveries: list[Delivery]) -> set[int] | None:
    """What the publication tells. Returns: the deliveries it holds, None without a usable one."""
    try:
        with open_published(warehouse) as connection:
            return _collect_from(status, connection)
    except QueryError as error:
        message = str(error)
    except duckdb.Error as error:
        told = first_line(error)
        message = f"{warehouse.published}: what it shows cannot be read ({told}); `drivetail build --full-refresh` makes it anew from raw"
    exists = warehouse.published.exists()
    if not exists and not deliveries:
        message = f"{warehouse.root}: nothing has landed; `drivetail ingest`, then `drivetail build`, or name another with --warehouse DIR"
    status.publication = {"state": "unusable" if exists else "none", "message": message}
    status.freshness = status.inventory = status.window = None
    return None


def _collect_from(status: Status, connection: duckdb.DuckDBPyConnection) -> set[int]:
    (publication,) = fetch(connection, "select publication_id, published_at, last_hour_utc from marts.publication")
    built = {row[0] for row in connection.execute("select distinct delivery_seq from raw.ingested_files").fetchall()}
    # without a single valid RAID-hour the rows themselves say how far the fleet is
    (spans,) = fetch(connection, "select max(last_hour_utc) as last_hour_utc, count(*) as drive_count from intermediate.int_drives__spans")
    last = publication["last_hour_utc"] or spans["last_hour_utc"]
    (groups,) = fetch(connection, "select count(distinct last_raid_group_id) as raid_group_count from intermediate.int_drives__spans")
    status.publication = {
        "state": "published",
        "message": None,
        **publication,
        "last_hour_age_hours": _hours(status.at - last - HOUR) if last else None,
        "delivery_count": len(built),
        **spans,
        **groups,
        "last_hour_utc": publication["last_hour_utc"],
    }
    # a fleet without a row is as of now, and nobody in it is late
    first = max(last or status.at, FIRST_HOUR + WINDOW) - WINDOW + HOUR
    _read_window(connection, first)
    status.freshness = _freshness(connection, last or status.at)
    status.inventory = {"contradictions": _contradictions(connection, first)}
    status.window = {"first_hour_utc": first, "last_hour_utc": last, **_window(connection)}
    return built


def _read_window(connection: duckdb.DuckDBPyConnection, first: datetime) -> None:
    """One pass over the drive-hours and one over the RAID-hours of the window; all else is asked of what this leaves."""
    connection.execute(
        """
        create temp table recent_drives as
        select
            drive_id, raid_group_id, min(hour_utc) as first_hour_utc, max(hour_utc) as last_hour_utc, count(*) as hours,
            count(case when is_in_population then slowdown end) as slowdowns,
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


def _freshness(connection: duckdb.DuckDBPyConnection, last: datetime) -> Row:
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
        "lagging_groups": _listing(connection, "from lagging", "is_stopped desc, last_hour_utc desc nulls last, raid_group_id"),
        "silent_drives": _listing(
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
        "drives_without_inventory": _listing(
            connection,
            """
            select spans.drive_id, spans.last_raid_group_id as raid_group_id, spans.first_hour_utc, spans.last_hour_utc
            from intermediate.int_drives__spans as spans
            where spans.drive_id not in (select drive_id from intermediate.int_drives__attributes)
            """,
            "drive_id",
        ),
    }


def _contradictions(connection: duckdb.DuckDBPyConnection, first: datetime) -> Row:
    """Drives whose rows name a group that no period of theirs in that hour names, although one names another; the row wins."""
    return _listing(
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
                select 1 from staging.stg_raw__drives as own
                where own.drive_id = drive_hours.drive_id and own.raid_group_id = drive_hours.raid_group_id
                    and own.from_hour_utc <= drive_hours.hour_utc and own.to_hour_utc > drive_hours.hour_utc
            )
        group by drive_hours.drive_id, drive_hours.raid_group_id, segments.raid_group_id
        """,
        "last_hour_utc desc, hours desc, drive_id, raid_group_id, inventory_raid_group_id",
        [first],
    )


def _window(connection: duckdb.DuckDBPyConnection) -> Row:
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
    columns = ", ".join(f"coalesce(cast(sum({name}) as bigint), 0) as {name}" for name in ("hours", *outcomes))
    (sums,) = fetch(connection, f"select {columns} from recent_drives")
    return {
        "drive_hours": [{"outcome": title, "drive_hours": sums[name], "of": sums["hours"]} for name, title in outcomes.items()],
        "groups_with_gaps": _listing(
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
        "drives_with_gaps": _listing(
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


def _find_problems(status: Status, raw: duckdb.DuckDBPyConnection, deliveries: list[Delivery], built: set[int] | None) -> None:
    """What needs an operator, most urgent first."""
    if built is None:
        status.problems.append(status.publication["message"])
    else:
        late = status.unbuilt["late_count"]
        if late:
            status.problems.append(
                f"{_some(late, 'delivery', 'deliveries')} landed more than {_span(UNBUILT_AFTER / HOUR)} ago and no build has taken "
                f"{'it' if late == 1 else 'them'} in: run `drivetail build`"
            )
    status.problems += _counting_problems(status, raw)
    status.problems += _feed_problems(status, raw, deliveries, built)
    stopped = (status.freshness or {}).get("stopped_group_count", 0)
    if status.freshness and stopped:
        first = status.freshness["lagging_groups"]["rows"][0]
        behind = f"{_span(first['lag_hours'])} behind the fleet"
        status.problems.append(f"{_some(stopped, 'RAID group')} stopped reporting, such as {first['raid_group_id']}, {behind}")
    unreadable = [
        row for row in status.unreadable_files["rows"] if not row["is_replaced"] and status.at - row["ingested_at"] < UNREADABLE_FOR
    ]
    if unreadable:
        others = f" (and {_some(len(unreadable) - 1, 'other')})" if len(unreadable) > 1 else ""
        status.problems.append(f"{unreadable[0]['file']} could not be read: {unreadable[0]['note']}{others}; send it again")
    last = status.landed["last_delivery"]
    if last and last["rows_rejected"] > REJECTED_SHARE * last["rows_delivered"]:
        status.problems.append(
            f"delivery {last['delivery_seq']}: {human(last['rows_rejected'])} of {human(last['rows_delivered'])} rows were rejected, "
            f"more than {REJECTED_SHARE:.0%}"
        )


def _counting_problems(status: Status, raw: duckdb.DuckDBPyConnection) -> list[str]:
    """Counts that do not add up: within a file, against the rejected records, against what is stored."""
    unequal = fetch(
        raw,
        """
        select file, rows_delivered, rows_accepted + rows_rejected + rows_duplicate + rows_superseded as judged
        from landed_files where rows_delivered <> judged order by delivery_seq, file_no limit 3
        """,
    )
    found = [f"{row['file']}: {human(row['rows_delivered'])} rows were delivered, {human(row['judged'])} judged" for row in unequal]
    rejected, kept = status.landed["rows"]["rejected"], status.rejected["count"]
    if rejected != kept:
        found.append(f"{human(rejected)} rows were rejected according to their files, {human(kept)} according to the rejected records")
    # a warehouse that holds rolled-up samples has records that no file counts
    if raw.execute("select count(*) from rolled_up").fetchall() == [(0,)]:
        for kind in RECORD_KINDS:
            accepted = sum(row["accepted"] for row in status.landed["by_source"] if row["record_kind"] == kind)
            stored = status.landed["stored_rows"][kind]
            if accepted != stored:
                found.append(f"{human(accepted)} {kind} are accepted over the warehouse, {human(stored)} are stored")
    return [f"counts do not add up: {sentence}; restore {status.warehouse}/raw from a copy" for sentence in found]


def _feed_problems(status: Status, raw: duckdb.DuckDBPyConnection, deliveries: list[Delivery], built: set[int] | None) -> list[str]:
    """Whether newer hours should be here. Only live telemetry can be late: a fleet of another year, loaded today, is not."""
    ingested_at = {row["delivery_seq"]: row["ingested_at"] for row in fetch(raw, _DELIVERIES)}
    came = [(ingested_at[d.seq], d.last_hour, d.seq) for d in deliveries if d.last_hour is not None and d.seq in ingested_at]
    live = [(at, hour) for at, hour, _ in came if -2 * HOUR <= at - hour - HOUR <= LIVE_WITHIN]
    found = []
    if live:
        times = sorted(at for at, _ in live)[-25:]
        gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        usual = timedelta(seconds=statistics.median(gaps)) if gaps else STALE_MOST
        allowed = min(max(2 * usual, STALE_LEAST), STALE_MOST)
        last = max(hour for _, hour in live)
        age = status.at - last - HOUR
        if age > allowed:
            found.append(f"no hour after {_when(last)} has landed for {_span(age / HOUR)}; one was due within {_span(allowed / HOUR)}")
    newest = status.publication.get("last_hour_utc")
    recent = [hour for at, hour, seq in came if seq in (built or ()) and status.at - at < timedelta(days=1)]
    if recent and (newest is None or max(recent) - newest > GROUP_LAG):
        found.append(
            f"hours up to {_when(max(recent))} landed within the last day and are built, but "
            + (f"the last valid RAID-hour is {_when(newest)}" if newest else "no RAID-hour is valid")
            + ": groups with too few drives, or a clock that is ahead?"
        )
    return found


def _some(count: int, noun: str, plural: str | None = None) -> str:
    return f"{human(count)} {noun if count == 1 else plural or noun + 's'}"


def _span(hours: float) -> str:
    """Hours as people say them: `25 min`, `3 h`, `2 d 4 h`."""
    minutes = round(hours * 60)
    if abs(minutes) < 60:
        return f"{minutes} min"
    whole = round(hours)
    if abs(whole) < 48:
        return f"{whole} h"
    days, rest = divmod(abs(whole), 24)
    return ("-" if whole < 0 else "") + f"{days} d" + (f" {rest} h" if rest else "")


def _when(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat(" ", "minutes")


def block(title: str, *parts: str) -> str:
    """A titled block of the text output; parts that are empty are left out."""
    return "\n".join([title, *("  " + line for part in parts if part for line in part.splitlines())])


def facts(pairs: Sequence[tuple[str, object]]) -> str:
    """Names and values, aligned; pairs whose value is None are left out."""
    given = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in given), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in given)


def table(rows: Sequence[Row], columns: Columns, count: int | None = None) -> str:
    """Some rows as an aligned table, and how many of `count` are not among them."""

    def written(row: Row, column: str | tuple[str, Callable[[Any], Any]]) -> Any:
        key, write = (column, None) if isinstance(column, str) else column
        value = row[key]
        if value is not None and write is not None:
            return write(value)
        return _when(value) if isinstance(value, datetime) else value

    shown = render(list(columns), [[written(row, column) for column in columns.values()] for row in rows])
    more = (count or 0) - len(rows)
    return shown + (f"\n... and {human(more)} more" if more > 0 else "")


def table_with_files(rows: Sequence[Row], columns: Columns, count: int | None = None) -> str:
    """The same of rows that name a `file`: the table shows its number, a legend below it the path, which would not fit."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(row["file"] for row in rows if row["file"] is not None), 1)}
    shown = table([{**row, "file_number": numbers.get(row["file"] or "")} for row in rows], {**columns, "of file": "file_number"}, count)
    return "\n".join([shown, *(f"file {number}: {name}" for name, number in numbers.items())])


def _list(listing: Row, columns: Columns) -> str:
    return table(listing["rows"][:SHOWN], columns, listing["count"]) if listing["count"] else ""


def render_status(status: Status) -> str:
    """The status as text: titled blocks, most important first; a block that has nothing to say is one line or absent."""
    blocks = [_problems_block(status), _publication_block(status)]
    if status.unbuilt["count"]:
        title = "Landed, not yet built" if status.publication["state"] == "published" else "Landed, in no publication"
        blocks.append(
            block(
                f"{title}: {_some(status.unbuilt['count'], 'delivery', 'deliveries')}",
                _list(
                    status.unbuilt,
                    {
                        "delivery": "delivery_seq",
                        "source": "source",
                        "landed (UTC)": "ingested_at",
                        "ago": ("age_hours", _span),
                        "first hour": "first_hour_utc",
                        "last hour": "last_hour_utc",
                        "rows in": ("rows_delivered", human),
                    },
                ),
                "run `drivetail build`",
            )
        )
    if status.freshness is not None:
        blocks += _freshness_blocks(status.freshness)
    blocks += _turned_away_blocks(status)
    if status.inventory is not None and status.window is not None:
        blocks += _window_blocks(status.inventory, status.window)
    blocks.append(_landed_block(status))
    return "\n\n".join(blocks)


def _problems_block(status: Status) -> str:
    if not status.problems:
        return f"{status.warehouse}: nothing needs an operator"
    return block(f"{status.warehouse}: {_some(len(status.problems), 'problem')}", *(f"- {problem}" for problem in status.problems))


def _publication_block(status: Status) -> str:
    publication = status.publication
    if publication["state"] != "published":
        return "Publication: none" if publication["state"] == "none" else "Publication: cannot be used"
    age = publication["last_hour_age_hours"]
    last = _when(publication["last_hour_utc"])
    drives, groups = _some(publication["drive_count"], "drive"), _some(publication["raid_group_count"], "RAID group")
    return block(
        "Publication",
        facts(
            [
                ("id", publication["publication_id"]),
                ("published", f"{_when(publication['published_at'])} UTC, {_span((status.at - publication['published_at']) / HOUR)} ago"),
                ("last hour", f"{last} UTC, ended {_span(age)} ago" if last else "none yet has enough drives for a median"),
                ("holds", f"{_some(publication['delivery_count'], 'delivery', 'deliveries')}; rows of {drives} in {groups}"),
            ]
        ),
    )


def _freshness_blocks(freshness: Row) -> list[str]:
    last, groups, drives = freshness["last_hour_utc"], freshness["lagging_groups"], freshness["silent_drives"]
    unknown = freshness["drives_without_inventory"]
    hours: Columns = {"first hour": "first_hour_utc", "last hour": "last_hour_utc"}
    behind: Columns = {"last hour": "last_hour_utc", "behind": ("lag_hours", _span)}
    blocks = []
    if not groups["count"]:
        blocks.append(f"RAID groups: none is more than {_span(GROUP_LAG / HOUR)} behind the fleet's last hour")
    else:
        blocks.append(
            block(
                f"RAID groups more than {_span(GROUP_LAG / HOUR)} behind the fleet's last hour, {_when(last)}: {human(groups['count'])}",
                _list(groups, {"RAID group": "raid_group_id", "drives": "drive_count", **behind}),
                "without a last hour: inventory names the group, and no row of it ever came" if _has_never(groups) else "",
            )
        )
    if drives["count"]:
        blocks.append(
            block(
                f"Drives of the inventory without a row in their RAID group's last {_span(DRIVE_SILENT / HOUR)}: {human(drives['count'])}",
                _list(drives, {"drive": "drive_id", "RAID group": "raid_group_id", "role": "role", **behind}),
                "without a last hour: it never reported" if _has_never(drives) else "",
            )
        )
    if unknown["count"]:
        blocks.append(
            block(
                f"Drives with rows but no inventory: {human(unknown['count'])} (they count as data drives)",
                _list(unknown, {"drive": "drive_id", "RAID group": "raid_group_id", **hours}),
            )
        )
    return blocks


def _has_never(listing: Row) -> bool:
    """Whether a printed row of it has no last hour."""
    return any(row["last_hour_utc"] is None for row in listing["rows"][:SHOWN])


def _turned_away_blocks(status: Status) -> list[str]:
    blocks = []
    reasons = status.rejected["reasons"]
    if reasons:
        blocks.append(
            block(
                f"Rejected rows: {human(status.rejected['count'])}",
                table_with_files(
                    [{**row, "written": "null" if row["value"] is None else repr(row["value"])} for row in reasons[: 2 * SHOWN]],
                    {
                        "rows": ("count", human),
                        "source": "source",
                        "column": "column",
                        "reason": "reason",
                        "last (UTC)": "last_rejected_at",
                        "for example": "written",
                        "row": "row",
                    },
                    len(reasons),
                ),
            )
        )
    else:
        blocks.append("Rejected rows: none")
    if status.unreadable_files["count"]:
        blocks.append(
            block(
                f"Unreadable files: {human(status.unreadable_files['count'])}",
                _list(
                    status.unreadable_files,
                    {
                        "source": "source",
                        "file": "file",
                        "came (UTC)": "ingested_at",
                        "why": "note",
                        "landed since": ("is_replaced", lambda is_replaced: "yes" if is_replaced else "no"),
                    },
                ),
            )
        )
    return blocks


def _window_blocks(inventory: Row, window: Row) -> list[str]:
    if window["last_hour_utc"] is None:
        return []
    span = f"(hours from {_when(window['first_hour_utc'])} on, the last {WINDOW.days} days of the fleet)"
    drive: Columns = {"drive": "drive_id", "RAID group": "raid_group_id"}
    hours: Columns = {"first hour": "first_hour_utc", "last hour": "last_hour_utc"}
    blocks = []
    contradictions, groups, drives = inventory["contradictions"], window["groups_with_gaps"], window["drives_with_gaps"]
    if contradictions["count"]:
        blocks.append(
            block(
                f"Drives whose rows name another RAID group than inventory; the rows count: {human(contradictions['count'])}",
                span,
                _list(contradictions, {**drive, "by inventory": "inventory_raid_group_id", "hours": "hours", **hours}),
            )
        )
    if groups["count"]:
        blocks.append(
            block(
                f"RAID groups with hours missing or without a valid median: {human(groups['count'])}",
                span,
                _list(
                    groups,
                    {
                        "RAID group": "raid_group_id",
                        "hours": "hours",
                        "missing": "missing_hours",
                        "no median": "hours_without_median",
                        **hours,
                    },
                ),
            )
        )
    if drives["count"]:
        blocks.append(
            block(
                f"Drives without a row in hours that their RAID group has: {human(drives['count'])}",
                span,
                _list(drives, {**drive, "hours": "hours", "missing": "missing_hours", **hours}),
            )
        )
    outcomes = [row for row in window["drive_hours"] if row["drive_hours"]]
    if outcomes:
        total = outcomes[0]["of"]
        rows = [{**row, "share": f"{row['drive_hours'] / total:7.2%}"} for row in outcomes]
        columns: Columns = {"outcome": "outcome", "drive-hours": ("drive_hours", lambda count: f"{count:>11,}"), "  share": "share"}
        blocks.append(block(f"What {human(total)} accepted drive-hours came to", span, table(rows, columns)))
    return blocks


def _landed_block(status: Status) -> str:
    landed = status.landed
    if not landed["delivery_count"]:
        return "Landed: nothing"
    last, files = landed["last_delivery"], landed["files"]
    sources: list[Row] = [*landed["by_source"]]
    if len(sources) > 1:
        every = {"source": "all", "record_kind": None, "status": None, "file_count": sum(files.values()), "last_ingested_at": None}
        sources.append({**every, **landed["rows"]})
    counts = {"files": "file_count", "in": "delivered", **{name: name for name in ("accepted", "rejected", "duplicate", "superseded")}}
    # with thousands written out the numbers are text: they are put to the right here
    width = {key: max(len(heading), *(len(human(row[key])) for row in sources)) for heading, key in counts.items()}
    rows = [{**row, **{key: human(row[key]).rjust(width[key]) for key in counts.values()}} for row in sources]
    columns: Columns = {"source": "source", "records": "record_kind", "status": "status"}
    columns |= {heading.rjust(width[key]): key for heading, key in counts.items()}
    columns["last (UTC)"] = "last_ingested_at"
    rolled_up = landed["rolled_up_superseded"]
    return block(
        f"Landed: {_some(landed['delivery_count'], 'delivery', 'deliveries')}",
        facts(
            [
                ("hours", f"{_when(landed['first_hour_utc'])} to {_when(landed['last_hour_utc'])}" if landed["first_hour_utc"] else "none"),
                ("files", ", ".join(f"{human(count)} {name}" for name, count in files.items() if count)),
                (
                    "last delivery",
                    last
                    and f"{last['delivery_seq']}, source {last['source']}, {_when(last['ingested_at'])} UTC: "
                    f"{_some(last['rows_delivered'], 'row')} in {_some(last['file_count'], 'file')}",
                ),
            ]
        ),
        "rows over the warehouse (one that lost a conflict later is superseded here; its file counts it as accepted):",
        table(rows, columns),
        f"{_some(rolled_up, 'rolled-up drive-hour')} lost a conflict later; their samples stay among the accepted" if rolled_up else "",
    )

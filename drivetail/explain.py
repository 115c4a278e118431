"""Walk a number back to where it came from: one drive, or one drive-hour, down to file and row.

Every number is the mart's or the raw record's own, written out in full; a formula shows how the models combined them and
computes nothing that a model does not hold (the medians of I/O counts, sizes and directions are those of the listed peers).
"""

from __future__ import annotations

import difflib
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import duckdb

from drivetail.console import render
from drivetail.queries import QueryError, first_line, open_published
from drivetail.status import Columns, Row, block, facts, fetch, table, table_with_files
from drivetail.warehouse import Warehouse
from ingest.raw_store import list_deliveries
from ingest.schema import CONTRACT, OPTIONS

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

LATEST = 10
"""Intervals, events and episodes of a drive that are shown."""

DEFAULT_BLOCK_BYTES = 4096
"""What a block weighs where a record does not say."""

WORST = 5
"""Slowest hours of a drive that are shown."""

_LIVE_RAW = """
select delivered.*, files.source, files.file, files.record_kind, files.ingested_at
from raw.{kind} as delivered
left join raw.ingested_files as files on delivered.delivery_seq = files.delivery_seq and delivered.file_no = files.file_no
where not exists (
    select 1 from raw.retired_{kind} as retired
    where retired.delivery_seq = delivered.delivery_seq and retired.file_no = delivered.file_no and retired.row_no = delivered.row_no
)
"""


def explain_drive(warehouse: Warehouse, drive: str) -> str:
    """What a drive is, where it was, how slow it was and what happened to it.

    Raises: QueryError without a publication, or when no record names the drive.
    """
    with _publication(warehouse) as connection:
        known = _known_drive(connection, drive)
        return "\n\n".join(part for part in _drive_blocks(connection, known) if part)


def explain_hour(warehouse: Warehouse, drive: str, hour: str) -> str:
    """Everything that touched the numbers of one drive-hour. `hour` is UTC; one with an offset is converted, a later minute floored.

    Raises: QueryError without a publication, or when no record names the drive; click.BadParameter when `hour` is no time.
    """
    at, notes = parse_hour(hour)
    with _publication(warehouse) as connection:
        _known_drive(connection, drive)
        measured = fetch(connection, "select * from intermediate.int_drive_hours where drive_id = ? and hour_utc = ?", [drive, at])
        parts = _DriveHour(connection, warehouse, measured[0]).blocks() if measured else _missing_blocks(connection, warehouse, drive, at)
    return "\n\n".join([*(f"note: {note}" for note in notes), *(part for part in parts if part)])


@contextmanager
def _publication(warehouse: Warehouse) -> Iterator[duckdb.DuckDBPyConnection]:
    """The publication; what it shows and cannot be read becomes a QueryError."""
    with open_published(warehouse) as connection:
        try:
            yield connection
        except duckdb.Error as error:
            hint = "`drivetail build --full-refresh` makes it anew from raw"
            raise QueryError(f"{warehouse.published}: what it shows cannot be read ({first_line(error)}); {hint}") from error


def parse_hour(text: str) -> tuple[datetime, list[str]]:
    """An hour as people write it -> its start (UTC without zone), and what was assumed.

    Raises: click.BadParameter.
    """
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(f'{text!r} is not an hour; write it as "2026-01-05 07:00" (UTC)', param_hint="HOUR") from error
    notes = []
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    if len(text.strip()) <= len("2026-01-05"):
        notes.append(f"{text} names a day; this is its first hour")
    start = at.replace(minute=0, second=0, microsecond=0)
    if start != at:
        notes.append(f"{text} lies within the hour that starts at {when(start)}")
    return start, notes


def num(value: float | None) -> str:
    """A number in full: the shortest text that reads back as the same double."""
    if value is None:
        return "-"
    return repr(value).removesuffix(".0")


def when(instant: datetime | None) -> str:
    """An instant (UTC); seconds only where it has any."""
    if instant is None:
        return "open"
    return instant.isoformat(" ", "minutes" if instant.replace(second=0, microsecond=0) == instant else "seconds")


def shifted(instant: datetime, span: timedelta) -> datetime:
    """An instant later (or earlier) by a span, as far as the calendar goes."""
    try:
        return instant + span
    except OverflowError:
        return instant


def median_text(values: Sequence[float]) -> str:
    """How the median of some values comes about: `the 2nd of 3 = 10`, `(9 + 11) / 2 = 10`."""
    ordered = sorted(values)
    half, is_odd = divmod(len(ordered), 2)
    if is_odd:
        return f"the middle one of {len(ordered)} = {num(ordered[half])}"
    return f"the middle two of {len(ordered)}: ({num(ordered[half - 1])} + {num(ordered[half])}) / 2 = {num(statistics.median(ordered))}"


def _right(rows: list[Row], headings: dict[str, str]) -> Columns:
    """Columns of numbers that are written in full, put to the right: changes the rows, returns heading -> key."""
    columns: Columns = {}
    for heading, key in headings.items():
        written = [value if isinstance(value, str) else "" if value is None else num(value) for value in (row[key] for row in rows)]
        width = max([len(heading), *map(len, written)])
        for row, text in zip(rows, written, strict=True):
            row[key] = text.rjust(width)
        columns[heading.rjust(width)] = key
    return columns


def _known_drive(connection: duckdb.DuckDBPyConnection, drive: str) -> Row:
    """The drive's row of dim_drives. Raises: QueryError with the closest ids there are."""
    found = fetch(connection, "select * from marts.dim_drives where drive_id = ?", [drive])
    if found:
        return found[0]
    # the engine narrows half a million ids down to those worth comparing letter by letter
    likeness = "jaro_winkler_similarity(lower(drive_id), lower(?))"
    near = connection.execute(f"select drive_id from marts.dim_drives order by {likeness} desc, drive_id limit 200", [drive]).fetchall()
    by_lower = {drive_id.lower(): drive_id for (drive_id,) in near}
    close = [by_lower[text] for text in difflib.get_close_matches(drive.lower(), list(by_lower), n=5)]
    hint = f"did you mean {', '.join(close)}?" if close else '`drivetail sql "select drive_id from marts.dim_drives"` lists them'
    raise QueryError(f"{drive}: no record of the publication names this drive; {hint}")


def _periods(connection: duckdb.DuckDBPyConnection, drives: Sequence[str], at: datetime | None = None) -> list[Row]:
    """Inventory periods of some drives with file and row, latest first; `at`: only those that cover this hour."""
    covering = "and placed.from_hour_utc <= $at and placed.to_hour_utc > $at" if at else ""
    parameters: dict[str, object] = {"drives": list(drives), "at": at} if at else {"drives": list(drives)}
    return fetch(
        connection,
        f"""
        with delivered as ({_LIVE_RAW.format(kind="drives")})
        select placed.*, delivered.delivery_seq, delivered.row_no, delivered.file, delivered.collected_at
        from staging.stg_raw__drives as placed
        inner join delivered on placed.drive_id = delivered.drive_id and placed.valid_from is not distinct from delivered.valid_from
        where placed.drive_id in (select unnest($drives)) {covering}
        order by placed.drive_id, placed.valid_from desc nulls last
        """,
        parameters,
    )


def _events(connection: duckdb.DuckDBPyConnection, drive: str, first: datetime | None = None, end: datetime | None = None) -> list[Row]:
    """Events of a drive with file and row, latest first."""
    return fetch(
        connection,
        f"""
        with delivered as ({_LIVE_RAW.format(kind="drive_events")})
        select events.*, delivered.file, delivered.row_no
        from marts.fct_drive_events as events
        inner join delivered
            on events.drive_id = delivered.drive_id
            and events.occurred_at = delivered.occurred_at
            and events.event_type = delivered.event_type
        where events.drive_id = $drive
            and ($first is null or events.occurred_at >= $first)
            and ($end is null or events.occurred_at < $end)
        order by events.occurred_at desc, events.event_type
        """,
        {"drive": drive, "first": first, "end": end},
    )


_EVENT_COLUMNS: Columns = {
    "event (UTC)": ("occurred_at", when),
    "type": "event_type",
    "ended": ("ended_at", when),
    "RAID group": "raid_group_id",
    "slot": "slot",
    "detail": "detail",
    "slow then or an hour later": ("slow_within_window", lambda is_slow: "yes" if is_slow else "no"),
    "row": "row_no",
}

_PERIOD_COLUMNS: Columns = {
    "from": "from",
    "to": "to",
    "RAID group": "raid_group_id",
    "role": "role",
    "kind": "kind",
    "slot": "slot",
    "delivery": "delivery_seq",
    "row": "row_no",
}


def _period_rows(periods: list[Row]) -> list[Row]:
    return [{**period, "from": when(period["valid_from"]), "to": when(period["valid_to"])} for period in periods]


def _interval_columns(rows: list[Row]) -> Columns:
    columns: Columns = {"from": ("started_at", when), "last hour": ("ended_at", when)}
    columns |= _right(rows, {"threshold": "threshold", "hours": "interval_hours"})
    columns |= _right(rows, {"first S": "first_slowdown", "max S": "max_slowdown", "mean S": "mean_slowdown"})
    return columns | {"severity": "severity", "cut off": "cut_off", "RAID group": "raid_group_id", "unplugged": ("unplugged_at", when)}


def _interval_rows(intervals: list[Row]) -> list[Row]:
    def cut_off(row: Row) -> str:
        return " and ".join(side for side, is_cut in (("before", row["is_left_censored"]), ("after", row["is_right_censored"])) if is_cut)

    return [{**row, "cut_off": cut_off(row)} for row in intervals]


def _drive_blocks(connection: duckdb.DuckDBPyConnection, drive: Row) -> list[str]:
    drive_id = drive["drive_id"]
    attributes = ("vendor", "model", "firmware", "flash_cell", "capacity_bytes", "rpm", "interface", "host", "deployed_on")
    spans = fetch(
        connection,
        """
        select
            raid_group_id, min(hour_utc) as first_hour_utc, max(hour_utc) as last_hour_utc, count(*) as hours,
            count(case when is_in_population then 1 end) as in_population, count(slowdown) as with_slowdown
        from intermediate.int_drive_hours where drive_id = ?
        group by raid_group_id order by last_hour_utc desc
        """,
        [drive_id],
    )
    periods = _periods(connection, [drive_id])
    blocks = [
        block(
            f"Drive {drive_id}",
            facts(
                [
                    ("kind", drive["kind"]),
                    *((name, drive[name]) for name in attributes),
                    ("RAID group", drive["current_raid_group_id"]),
                    ("rows", f"{when(drive['first_hour_utc'])} to {when(drive['last_hour_utc'])} UTC" if spans else "none"),
                ]
            ),
        ),
        block(
            "Inventory, latest first", table_with_files(_period_rows(periods), _PERIOD_COLUMNS)
        ) if periods else "Inventory: none; it counts as a data drive of the group its rows name",
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


def _hour_to_look_at(connection: duckdb.DuckDBPyConnection, drive_id: str) -> datetime | None:
    ((hour,),) = connection.execute(
        "select coalesce(max_by(hour_utc, (slowdown, hour_utc)) filter (slowdown is not null), max(hour_utc)) "
        "from intermediate.int_drive_hours where drive_id = ?",
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
    # an interval with a severity is in one bucket only: a mild one that became slow is told once
    intervals = fetch(
        connection,
        """
        select *, count(*) over () as interval_count from marts.fct_slowdown_intervals
        where drive_id = ? and severity is not null order by started_at desc, threshold desc limit ?
        """,
        [drive_id, LATEST],
    )
    if intervals:
        rows = _interval_rows(intervals)
        title = "Slow intervals, latest first (1.5: mildly slow, never 2)"
        blocks.append(block(title, table(rows, _interval_columns(rows), intervals[0]["interval_count"])))
    hours = fetch(
        connection,
        """
        select * from intermediate.int_drive_hours
        where drive_id = ? and slowdown is not null order by slowdown desc, hour_utc desc limit ?
        """,
        [drive_id, WORST],
    )
    columns: Columns = {"hour": ("hour_utc", when)}
    columns |= _right(hours, {"S": "slowdown", "latency_us": "latency_us", "median_latency_us": "median_latency_us", "I/Os": "io_count"})
    blocks.append(block("Slowest hours", table(hours, {**columns, "RAID group": "raid_group_id"})))
    return blocks


def _event_blocks(connection: duckdb.DuckDBPyConnection, drive_id: str) -> list[str]:
    events = _events(connection, drive_id)
    blocks = [block("Events, latest first", table_with_files(events[:LATEST], _EVENT_COLUMNS, len(events))) if events else "Events: none"]
    episodes = fetch(connection, "select * from marts.fct_unplug_episodes where drive_id = ? order by unplugged_at desc", [drive_id])
    if episodes:
        rows = [{**row, "replugged": _replugged(row), "replaced": "yes" if row["is_replaced"] else "no"} for row in episodes[:LATEST]]
        columns: Columns = {"unplugged": ("unplugged_at", when), "replugged": "replugged"}
        columns |= _right(rows, {"outage_hours": "outage_hours"})
        columns |= {"replaced": "replaced", "slow before": "preceding_severity", "slow again after (hours)": "recur_hours"}
        columns["RAID group"] = "raid_group_id"
        blocks.append(block("Unplugs, latest first", table(rows, columns, len(episodes))))
    return blocks


def _replugged(episode: Row) -> str:
    """When the drive came back; a second unplug says that it did, not when."""
    if episode["replugged_at"] is not None:
        return when(episode["replugged_at"])
    return "yes, time unknown" if episode["is_replugged"] else "no"


def _hour_events_block(connection: duckdb.DuckDBPyConnection, drive_id: str, at: datetime) -> str:
    events = _events(connection, drive_id, shifted(at, -DAY), shifted(at, HOUR + DAY))
    if not events:
        return "Events within 24 h: none"
    return block("Events within 24 h", table_with_files(list(reversed(events)), _EVENT_COLUMNS))


class _DriveHour:
    """One drive-hour that has a row, and all that its numbers were made of."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, measured: Row) -> None:
        self.connection = connection
        self.warehouse = warehouse
        self.measured = measured
        self.drive, self.at, self.group = measured["drive_id"], measured["hour_utc"], measured["raid_group_id"]
        self.records = self.delivered()
        self.live = next(record for record in self.records if record["retired_as"] is None)
        self.reported = self.reported_drives()
        self.silent = self.silent_drives()
        periods = _periods(connection, [row["drive_id"] for row in self.reported], self.at)
        self.periods: dict[str, list[Row]] = {}
        for period in periods:
            self.periods.setdefault(period["drive_id"], []).append(period)
        for row in self.reported:
            counted = self.period_that_counts(row["drive_id"])
            row["role"] = counted["role"] if counted else "data"
        self.is_covered = self.covers(self.live)
        self.is_peer = bool(measured["is_data_drive"]) and self.is_covered
        self.peers = [row for row in self.reported if row["is_data_drive"] and self.covers(row)]
        marts = fetch(connection, "select * from marts.fct_drive_hours where drive_id = ? and hour_utc = ?", [self.drive, self.at])
        self.mart: Row | None = marts[0] if marts else None
        before = shifted(self.at, -HOUR)
        hours = {
            row["hour_utc"]: row
            for row in fetch(
                connection,
                "select * from intermediate.int_raid_hours where raid_group_id = ? and hour_utc in (?, ?)",
                [self.group, self.at, before],
            )
        }
        self.raid_hour: Row = hours[self.at]
        self.raid_hour_before: Row | None = hours.get(before) if before != self.at else None

    def delivered(self) -> list[Row]:
        """Every stored record of this drive-hour, the one that counts first."""
        return fetch(
            self.connection,
            """
            select
                delivered.*, files.source, files.file, files.record_kind, files.ingested_at,
                retired.reason as retired_as, retired.retired_by_delivery_seq
            from raw.drive_hours as delivered
            left join raw.ingested_files as files
                on delivered.delivery_seq = files.delivery_seq and delivered.file_no = files.file_no
            left join raw.retired_drive_hours as retired
                on delivered.delivery_seq = retired.delivery_seq
                and delivered.file_no = retired.file_no
                and delivered.row_no = retired.row_no
            where delivered.drive_id = ? and delivered.hour_utc = ?
            order by retired_as is not null, delivered.delivery_seq desc, delivered.file_no desc, delivered.row_no desc
            """,
            [self.drive, self.at],
        )

    def reported_drives(self) -> list[Row]:
        """The rows of the RAID-hour, each with its raw record and how far inventory agrees."""
        return fetch(
            self.connection,
            f"""
            with delivered as ({_LIVE_RAW.format(kind="drive_hours")} and delivered.hour_utc = $at)
            select
                measured.*, delivered.min_coverage, delivered.read_ios, delivered.write_ios, delivered.read_latency_us,
                delivered.write_latency_us, delivered.file, delivered.row_no, segments.raid_group_id as inventory_raid_group_id
            from intermediate.int_drive_hours as measured
            inner join delivered on measured.drive_id = delivered.drive_id
            left join intermediate.int_drives__segments as segments
                on measured.drive_id = segments.drive_id and segments.from_hour_utc <= $at and segments.to_hour_utc > $at
            where measured.raid_group_id = $group and measured.hour_utc = $at
            order by measured.latency_us nulls last, measured.drive_id
            """,
            {"at": self.at, "group": self.group},
        )

    def silent_drives(self) -> list[Row]:
        """Data drives that inventory places here in this hour and that have no row here."""
        return fetch(
            self.connection,
            """
            with elsewhere as (
                select drive_id, raid_group_id from intermediate.int_drive_hours where hour_utc = $at
            )
            select segments.drive_id, segments.role, elsewhere.raid_group_id as reports_from
            from intermediate.int_drives__segments as segments
            left join elsewhere on segments.drive_id = elsewhere.drive_id
            where segments.raid_group_id = $group and segments.from_hour_utc <= $at and segments.to_hour_utc > $at
                and segments.role = 'data' and elsewhere.raid_group_id is distinct from $group
            order by segments.drive_id
            """,
            {"at": self.at, "group": self.group},
        )

    def period_that_counts(self, drive_id: str) -> Row | None:
        """Of the periods that cover the hour: the latest that names the row's group, else the latest."""
        periods = self.periods.get(drive_id, [])
        own = [period for period in periods if period["raid_group_id"] == self.group]
        return next(iter([*own, *periods]), None)

    @staticmethod
    def covers(record: Row) -> bool:
        """Whether enough of the hour was observed; null coverage stands for all of it."""
        return record["coverage"] is None or bool(record["coverage"] >= record["min_coverage"])

    def blocks(self) -> list[str]:
        """The whole explanation, answer first."""
        return [
            self.answer(),
            self.raw_block(),
            self.place_block(),
            self.latency_block(),
            self.peers_block(),
            self.formulas_block(),
            self.interval_block(),
            self.raid_hour_block(),
            _hour_events_block(self.connection, self.drive, self.at),
            self.computed_block(),
        ]

    def answer(self) -> str:
        """The numbers that are asked about."""
        measured = self.measured
        if measured["slowdown"] is not None:
            level = "slow" if self.mart and self.mart["is_slow"] else "mildly slow" if self.mart and self.mart["is_slow_15"] else "stable"
            told = f"{num(measured['slowdown'])}: {level}" if self.mart else num(measured["slowdown"])
        elif not measured["is_data_drive"]:
            told = "none: not a data drive"
        else:
            told = f"none: {measured['exclusion_reason']}"
        outside = None
        if self.mart is None:
            outside = "not a data drive" if not measured["is_data_drive"] else "the RAID group has fewer than 3 data drives"
        return block(
            f"Drive {self.drive}, hour {when(self.at)} to {when(shifted(self.at, HOUR))} UTC, RAID group {self.group}",
            facts(
                [
                    ("slowdown S", told),
                    ("latency_us", num(measured["latency_us"])),
                    ("median_latency_us", num(measured["median_latency_us"])),
                    ("tail rank", self.tail_rank()),
                    ("in fct_drive_hours", f"no: {outside}" if outside else f"yes: kind {self.mart and self.mart['kind']}, {self.age()}"),
                ]
            ),
        )

    def age(self) -> str:
        """The year of its life, as the mart has it."""
        year = self.mart["age_year"] if self.mart else None
        return f"year {year} of its life" if year is not None else "age unknown"

    def tail_rank(self) -> str | None:
        """The place of its slowdown in the RAID-hour; equal ones by id."""
        slowdown = self.measured["slowdown"]
        if slowdown is None:
            return None
        ordered = sorted((-row["slowdown"], row["drive_id"]) for row in self.peers if row["slowdown"] is not None)
        return f"{ordered.index((-slowdown, self.drive)) + 1} of {len(ordered)}"

    def raw_block(self) -> str:
        """Every stored record side by side, and why one counts."""
        names = [name for name in (*CONTRACT["drive_hours"], *OPTIONS["drive_hours"]) if name not in ("drive_id", "hour_utc")]
        headings = ["", *("counts" if record["retired_as"] is None else "retired" for record in self.records)]
        origin: list[list[Any]] = [
            ["row", *(str(record["row_no"]) for record in self.records)],
            ["of file", *(str(number) for number in range(1, len(self.records) + 1))],
            ["delivery", *(f"{record['delivery_seq']}, source {record['source']}" for record in self.records)],
            ["landed", *(when(record["ingested_at"]) for record in self.records)],
        ]
        values = [[name, *(self.written(record[name]) for record in self.records)] for name in names]
        notes = [f"file {number}: {record['file']}" for number, record in enumerate(self.records, 1)]
        notes += [
            f"row {record['row_no']} was retired by delivery {record['retired_by_delivery_seq']}: {self.why_retired(record)}"
            for record in self.records
            if record["retired_as"] is not None
        ]
        if self.live["record_kind"] not in ("drive_hours", None):
            notes.append("rolled up from samples; the row is that of its first sample")
        title = "Raw record" if len(self.records) == 1 else f"Raw records: {len(self.records)}, one counts"
        return block(title, render(headings, origin + values), *notes)

    @staticmethod
    def written(value: object) -> str:
        """A raw value as it was delivered; null where it was none."""
        if value is None:
            return "null"
        return when(value) if isinstance(value, datetime) else num(value) if isinstance(value, int | float) else str(value)

    def why_retired(self, record: Row) -> str:
        """The first column, in the order that decides a conflict, in which the record that counts is the greater."""
        contract = [name for name in CONTRACT["drive_hours"] if name not in ("drive_id", "hour_utc", "collected_at")]
        for name in ("collected_at", *contract, *OPTIONS["drive_hours"]):
            if record[name] != self.live[name]:
                told = f"its {name} {self.written(record[name])} against {self.written(self.live[name])}"
                if name == "collected_at":
                    return f"{record['retired_as']}, the latest counts: {told}"
                if name in OPTIONS["drive_hours"]:
                    return f"{record['retired_as']}, equal in every column, and of the options the greater decides: {told}"
                return f"{record['retired_as']}, sent at the same time, so the first greater column decides: {told}"
        return str(record["retired_as"])

    def place_block(self) -> str:
        """Group, role and width."""
        periods = self.periods.get(self.drive, [])
        counted = self.period_that_counts(self.drive)
        if counted is None:
            role = "data: no inventory period covers the hour"
        else:
            since, until = counted["valid_from"], counted["valid_to"]
            role = f"{counted['role']}: by the inventory period of {counted['raid_group_id']}"
            role += (f" from {when(since)}" if since else "") + (f" to {when(until)}" if until else "")
        named = {period["raid_group_id"] for period in periods}
        group = f"{self.group}: its row names it"
        if named and self.group not in named:
            group += f"; inventory names {', '.join(sorted(named))}, and the row counts"
        elif self.group in named:
            group += ", and so does inventory"
        expected = [row for row in self.reported if row["inventory_raid_group_id"] == self.group and row["role"] == "data"]
        unexpected = [row for row in self.reported if row["inventory_raid_group_id"] != self.group and row["is_data_drive"]]
        absent = [row for row in self.silent if row["reports_from"] is not None]
        missing = [row for row in self.silent if row["reports_from"] is None]
        terms = f"{len(expected)} data drives with a row here, {len(missing)} that inventory places here without a row"
        terms += f", {len(unexpected)} that only their rows place here"
        if absent:
            terms += f"; {len(absent)} that inventory places here report from another RAID group"
        return block(
            "RAID group and role",
            facts([("RAID group", group), ("role", role), ("N", f"{self.raid_hour['data_drive_count']}: {terms}")]),
            table_with_files(_period_rows(periods), _PERIOD_COLUMNS) if periods else "",
        )

    def latency_block(self) -> str:
        """Coverage, and the merge of the two directions."""
        live, latency = self.live, num(self.measured["latency_us"])
        if live["read_ios"] is None or live["write_ios"] is None:
            is_given = self.measured["latency_us"] is not None
            merged = f"latency_us = {latency} us, delivered merged" if is_given else "no latency was delivered"
        elif live["read_ios"] + live["write_ios"] == 0:
            merged = "no I/O, so no latency"
        elif self.measured["latency_us"] is None:
            merged = "no latency: the merged one is not finite"
        else:
            terms = [
                f"{num(live[f'{way}_ios'])} * {num(live[f'{way}_latency_us'])}" if live[f"{way}_latency_us"] is not None else "0"
                for way in ("read", "write")
            ]
            formula = "(read_ios * read_latency_us + write_ios * write_latency_us) / (read_ios + write_ios)"
            merged = f"{formula} = ({terms[0]} + {terms[1]}) / {num(live['read_ios'] + live['write_ios'])} = {latency} us"
        if live["coverage"] is None:
            coverage = "not given: all of the hour"
        else:
            sign, end = (">=", "it counts") if self.is_covered else ("<", "it is held against nobody")
            coverage = f"{num(live['coverage'])} {sign} min_coverage {num(live['min_coverage'])}: {end}"
        return block("Latency", facts([("coverage", coverage), ("merged", merged), ("I/O size", self.size_text())]))

    def size_text(self) -> str | None:
        """What the size of an I/O is made of."""
        live, size = self.live, self.measured["io_size_bytes"]
        if size is None:
            return None
        count = num(self.measured["io_count"])
        if live["read_blocks"] is None or live["write_blocks"] is None:
            return f"{num(live['bytes'])} bytes / {count} I/Os = {num(size)} bytes"
        block_bytes = DEFAULT_BLOCK_BYTES if live["block_bytes"] is None else live["block_bytes"]
        return f"({num(live['read_blocks'])} + {num(live['write_blocks'])}) * {num(block_bytes)} / {count} I/Os = {num(size)} bytes"

    def peers_block(self) -> str:
        """Who was there, who is in the median, and the median."""
        rows: list[Row] = []
        for row in self.reported:
            if not row["is_data_drive"]:
                why = f"no: role {row['role']}"
            elif not self.covers(row):
                why = f"no: coverage below {num(row['min_coverage'])}"
            else:
                why = "yes" if row["latency_us"] is not None else "no: no I/O" if row["io_count"] == 0 else "no: no latency"
            rows.append({**row, "in_median": why})
        for row in self.silent:
            why = f"no: reports from {row['reports_from']}" if row["reports_from"] else "no: no row in this hour"
            nothing = dict.fromkeys(("latency_us", "slowdown", "io_count", "io_size_bytes", "coverage", "row_no", "file"))
            rows.append({**nothing, **row, "in_median": why})
        rows.sort(key=lambda row: row["in_median"] != "yes")  # stable: by latency within
        shown = [{**row, "drive": self.marked(row["drive_id"])} for row in rows]
        columns: Columns = {"  drive": "drive", "role": "role"}
        columns |= _right(shown, {"latency_us": "latency_us"})
        columns["in the median"] = "in_median"
        columns |= _right(shown, {"S": "slowdown", "I/Os": "io_count", "I/O bytes": "io_size_bytes", "coverage": "coverage"})
        columns["row"] = "row_no"
        latencies = [row["latency_us"] for row in self.peers if row["latency_us"] is not None]
        if self.raid_hour["is_valid"]:
            told = f"median latency: {median_text(latencies)} us"
            if statistics.median(latencies) != self.raid_hour["median_latency_us"]:
                told += f"; the RAID-hour has {num(self.raid_hour['median_latency_us'])} us"
        elif len(latencies) < 3:
            told = f"{len(latencies)} latencies are fewer than 3: no valid median"
        else:
            told = f"median latency: {median_text(latencies)} us: nothing can be divided by it"
        return block(f"The drives of {self.group} in this hour, by latency", table_with_files(shown, columns), told)

    def marked(self, drive_id: str) -> str:
        """The id, with a mark at the drive that is asked about."""
        return ("> " if drive_id == self.drive else "  ") + drive_id

    def formulas_block(self) -> str:
        """Slowdown, imbalances and the slowdowns by direction, each with the numbers it divides."""
        measured = self.measured
        return block(
            "Against its peers",
            facts(
                [
                    ("S", self.slowdown_text()),
                    ("RI", self.ratio("rate_imbalance", "io_count", [row["io_count"] for row in self.peers], "I/Os")),
                    ("ZI", self.ratio("size_imbalance", "io_size_bytes", [row["io_size_bytes"] for row in self.peers], "bytes")),
                    ("read slowdown", self.direction("read")),
                    ("write slowdown", self.direction("write")),
                    ("slow", self.flag("is_slow")),
                    ("slow at 1.5", self.flag("is_slow_15")),
                    ("the hour before", {True: "slow", False: "not slow", None: "had no slowdown here"}[measured["was_slow"]])
                    if measured["slowdown"] is not None
                    else ("the hour before", None),
                ]
            ),
        )

    def flag(self, name: str) -> str | None:
        """A flag of fct_drive_hours."""
        return None if self.mart is None else "yes" if self.mart[name] else "no"

    def slowdown_text(self) -> str:
        """L / median = S, or why there is none."""
        measured = self.measured
        if measured["slowdown"] is not None:
            return f"{num(measured['latency_us'])} / {num(measured['median_latency_us'])} = {num(measured['slowdown'])}"
        if not measured["is_data_drive"]:
            return "none: only data drives have one"
        reasons = {
            "low_coverage": "too little of the hour was observed",
            "no_io": "the drive did no I/O",
            "too_few_drives": "fewer than 3 drives have a latency",
            "zero_median": "the median is 0",
        }
        return f"none, {measured['exclusion_reason']}: {reasons[measured['exclusion_reason']]}"

    def ratio(self, name: str, measure: str, values: list[float | None], unit: str) -> str:
        """A value over its peers' median."""
        if self.measured[name] is None:
            if not self.is_peer:
                return "none: " + ("too little of the hour was observed" if self.measured["is_data_drive"] else "only data drives have one")
            return "none: the median is 0" if self.measured[measure] is not None else "none: no I/O, or not known"
        known = [float(value) for value in values if value is not None]
        divided = f"{num(self.measured[measure])} / {num(statistics.median(known))} {unit} = {num(self.measured[name])}"
        return f"{divided}; the median: {median_text(known)}"

    def direction(self, way: str) -> str:
        """The slowdown of reads or writes alone."""
        name = f"{way}_slowdown"
        known = [
            float(row[f"{way}_latency_us"])
            for row in self.peers
            if row["read_ios"] is not None and row["write_ios"] is not None and row[f"{way}_ios"] > 0
        ]
        if self.measured[name] is None:
            if not self.is_peer:
                return "none"
            split = self.live["read_ios"] is not None and self.live["write_ios"] is not None
            if not split:
                return "none: directions were delivered merged"
            if self.live[f"{way}_ios"] == 0:
                return f"none: no {way}s"
            return f"none: {len(known)} drives with {way}s are fewer than 3" if len(known) < 3 else "none: the median is 0"
        divided = f"{num(self.live[f'{way}_latency_us'])} / {num(statistics.median(known))} us = {num(self.measured[name])}"
        return f"{divided}; the median: {median_text(known)}"

    def interval_block(self) -> str:
        """The intervals the hour belongs to, at both thresholds."""
        intervals = fetch(
            self.connection,
            """
            select * from marts.fct_slowdown_intervals
            where drive_id = $drive and started_at <= $at and ended_at >= $at order by threshold desc
            """,
            {"drive": self.drive, "at": self.at},
        )
        if not intervals:
            return "Slow intervals: the hour is in none"
        rows = _interval_rows(intervals)
        return block("Slow intervals the hour belongs to", table(rows, _interval_columns(rows)))

    def raid_hour_block(self) -> str:
        """Tails, throughput and transition of the RAID-hour."""
        hour, before = self.raid_hour, self.raid_hour_before
        if not hour["is_valid"]:
            return block("The RAID-hour", "not valid: it has no row in fct_raid_hours")
        slowest = f"{num(hour['tail_1'])} ({hour['slowest_drive_id']})"
        reporting = f"{hour['reporting_drive_count']} with a slowdown of N = {hour['data_drive_count']}"
        if before is None or not before["is_valid"]:
            rio = "none: the hour before is not valid"
        elif hour["rio_degradation"] is not None:
            rio = f"{num(before['raid_io_count'])} I/Os the hour before / {num(hour['raid_io_count'])} = {num(hour['rio_degradation'])}"
        elif hour["raid_io_count"] is None or before["raid_io_count"] is None:
            rio = "none: an I/O count is unknown"
        elif hour["raid_io_count"] == 0:
            rio = "none: no I/O in this hour"
        else:
            rio = "none: not the same drives, with enough coverage, in both hours"
        key = [self.group, self.at]
        (tail,) = fetch(self.connection, "select * from marts.fct_raid_hours where raid_group_id = ? and hour_utc = ?", key)
        return block(
            "The RAID-hour",
            facts(
                [
                    ("tails 1, 2, 3", f"{slowest}, {num(hour['tail_2'])}, {num(hour['tail_3'])}"),
                    ("tail hour", ("yes" if tail["is_tail_hour"] else "no") + f", at 1.5 {'yes' if tail['is_tail_hour_15'] else 'no'}"),
                    ("drives", f"{reporting}, {hour['slow_drive_count']} slow"),
                    ("I/Os", num(hour["raid_io_count"])),
                    ("RIO degradation", rio),
                    ("transition", hour["transition"] or "none: the hour before is not valid"),
                    ("tail 1 before", num(before["tail_1"]) if before and before["is_valid"] else None),
                ]
            ),
        )

    def computed_block(self) -> str:
        """Which batch and which publication the numbers are from."""
        batch = self.measured["build_seq"]
        ((again,),) = self.connection.execute(
            "select count(*) from store.recomputed where raid_group_id = ? and hour_utc = ?", [self.group, self.at]
        ).fetchall()
        (publication,) = fetch(self.connection, "select * from marts.publication")
        path = self.warehouse.store / f"batch-{batch:06d}" / "int_drive_hours.parquet"
        written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(tzinfo=None, microsecond=0)
        return block(
            "Computed",
            facts(
                [
                    ("when", f"{when(written_at)} UTC" + (", again: a later record touched the RAID-hour" if again else "")),
                    ("batch", f"{batch}, {path}"),
                    ("published", f"{when(publication['published_at'])} UTC as {publication['publication_id']}"),
                ]
            ),
        )


def _missing_blocks(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, drive: str, at: datetime) -> list[str]:
    """An hour without a row: who expected one, what the group did, and the nearest hours that exist."""
    periods = _periods(connection, [drive], at)
    groups = {period["raid_group_id"] for period in periods[:1]}
    (near,) = fetch(
        connection,
        """
        select
            max(hour_utc) filter (hour_utc < $at) as before, min(hour_utc) filter (hour_utc > $at) as after,
            max_by(raid_group_id, hour_utc) filter (hour_utc < $at) as group_before
        from intermediate.int_drive_hours where drive_id = $drive
        """,
        {"drive": drive, "at": at},
    )
    if periods:
        expected = f"inventory expects one from {periods[0]['raid_group_id']}, where it is {periods[0]['role']}"
    else:
        expected = "inventory does not place the drive in this hour"
        groups = {near["group_before"]} - {None}
    told: list[tuple[str, object]] = [("inventory", expected)]
    for group in sorted(groups):
        hours = fetch(connection, "select * from intermediate.int_raid_hours where raid_group_id = ? and hour_utc = ?", [group, at])
        counts = [f"{row['reporting_drive_count']} drives with a slowdown of N = {row['data_drive_count']} in this hour" for row in hours]
        told.append((group, counts[0] if counts else "no drive of it has a row in this hour"))
    outage = fetch(
        connection,
        """
        select * from marts.fct_unplug_episodes
        where drive_id = $drive and unplugged_at < $at + interval 1 hour and coalesce(replugged_at > $at, not is_replugged)
        """,
        {"drive": drive, "at": at},
    )
    for episode in outage:
        replugged = when(episode["replugged_at"]) if episode["replugged_at"] else "never replugged"
        told.append(("unplugged", f"{when(episode['unplugged_at'])} to {replugged}"))
    told.append(("hour before", when(near["before"]) if near["before"] else "none"))
    told.append(("hour after", when(near["after"]) if near["after"] else "none"))
    built = {row[0] for row in connection.execute("select distinct delivery_seq from raw.ingested_files").fetchall()}
    waiting = [delivery for delivery in list_deliveries(warehouse.root) if delivery.seq not in built and delivery.overlaps(at, at)]
    if waiting:
        told.append(("not yet built", f"{len(waiting)} deliveries that hold this hour; run `drivetail build`"))
    nearest = near["before"] or near["after"]
    return [
        block(f"Drive {drive} has no accepted row in hour {when(at)} UTC", facts(told)),
        block("Inventory of this hour", table_with_files(_period_rows(periods), _PERIOD_COLUMNS)) if periods else "",
        _hour_events_block(connection, drive, at),
        f'Nearest hour: drivetail explain {drive} "{when(nearest)}"' if nearest else "It has no accepted row in any hour",
    ]

"""The data warehouse's contract computed the slow way, to test the fast way against.

Every rule quotes the sentence of `contract.md` it implements (marked with `>`), so that the file can be read beside the
contract. Nothing of the project's own code is imported. Units: latencies in microseconds, sizes in bytes, hours and
instants as naive `datetime` in UTC.

Names used throughout:
  row     one accepted `drive_hours` record, a dict with the contract's columns
  period  one accepted `drives` record (a period of membership)
  event   one accepted `drive_events` record, its type normalised
  h       an hour, a datetime on the hour
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

HOUR = timedelta(hours=1)
MIN_COVERAGE = 0.5
DEFAULT_BLOCK_BYTES = 4096
WINDOW = timedelta(days=28)
THRESHOLDS = (2.0, 1.5)
Record = dict[str, Any]


# --------------------------------------------------------------------------------------------------------------------
# The record kinds of contract section 2: columns in the contract's order, with their types.


def columns(*runs: str) -> dict[str, str]:
    """Turn "type name name ..." into {name: type}."""
    return {name: kind for run in runs for kind, *names in [run.split()] for name in names}


DRIVE_HOURS = columns(
    "timestamp hour_utc",
    "text drive_id raid_group_id",
    "integer read_ios write_ios",
    "real read_latency_us write_latency_us",
    "integer read_blocks write_blocks block_bytes",
    "real read_latency_per_block_us write_latency_per_block_us latency_us",
    "integer io_count bytes",
    "real coverage",
    "timestamp collected_at",
)
DRIVE_EVENTS = columns(
    "timestamp occurred_at", "text drive_id event_type raid_group_id slot", "timestamp ended_at", "text detail", "timestamp collected_at"
)
DRIVES = columns(
    "text drive_id raid_group_id role kind slot vendor model firmware flash_cell",
    "integer capacity_bytes rpm",
    "text interface raid_level host enclosure site timezone",
    "date deployed_on",
    "timestamp valid_from valid_to collected_at",
)
SCHEMAS = {"drive_hours": DRIVE_HOURS, "drive_events": DRIVE_EVENTS, "drives": DRIVES}
EVENT_TYPES = (
    "unplug", "replug", "replacement", "not_spinning", "not_responding", "response_timeout", "scsi_timeout", "media_error",
    "rebuild", "scrub", "maintenance", "other",
)  # fmt: skip

# --------------------------------------------------------------------------------------------------------------------
# The relations of contract section 3: columns with their types, key columns first in KEYS.

RELATIONS: dict[str, dict[str, str]] = {
    "dim_drives": columns(
        "varchar drive_id kind vendor model firmware flash_cell interface host current_raid_group_id",
        "bigint capacity_bytes rpm",
        "date deployed_on",
        "timestamp first_hour_utc last_hour_utc",
    ),
    "dim_raid_groups": columns(
        "varchar raid_group_id kind raid_level",
        "bigint data_drive_count",
        "timestamp first_hour_utc last_hour_utc",
        "double duration_days",
    ),
    "fct_drive_hours": columns(
        "varchar drive_id raid_group_id kind exclusion_reason",
        "timestamp hour_utc",
        "double latency_us median_latency_us slowdown coverage rate_imbalance io_size_bytes size_imbalance read_slowdown write_slowdown",
        "boolean is_slow is_slow_15",
        "bigint io_count age_year",
    ),
    "fct_raid_hours": columns(
        "varchar raid_group_id kind slowest_drive_id transition",
        "timestamp hour_utc",
        "bigint data_drive_count reporting_drive_count slow_drive_count raid_io_count",
        "double median_latency_us tail_1 tail_2 tail_3 rio_degradation",
        "boolean is_tail_hour is_tail_hour_15",
    ),
    "fct_slowdown_intervals": columns(
        "varchar drive_id raid_group_id kind severity",
        "double threshold first_slowdown max_slowdown mean_slowdown",
        "timestamp started_at ended_at unplugged_at",
        "bigint interval_hours hours_until_stable wait_hours",
        "boolean is_left_censored is_right_censored",
    ),
    "fct_slowdown_arrivals": columns("varchar drive_id kind", "timestamp hour_utc previous_hour_utc", "bigint gap_hours"),
    "fct_drive_slowness": columns(
        "varchar drive_id kind",
        "bigint drive_hours slow_hours interval_count window_drive_hours",
        "double max_slowdown median_slowdown",
        "boolean is_acute is_chronic",
    ),
    "fct_drive_transitions": columns("varchar kind", "bigint normal to_slow slow_persist back_to_stable"),
    "fct_drive_events": columns(
        "varchar drive_id event_type kind raid_group_id",
        "timestamp occurred_at",
        "boolean is_in_population slow_within_window",
    ),
    "fct_unplug_episodes": columns(
        "varchar drive_id kind preceding_severity",
        "timestamp unplugged_at replugged_at",
        "double outage_hours",
        "boolean is_in_population is_replugged is_replaced",
        "bigint recur_hours",
    ),
    "fct_drive_replacements": columns(
        "varchar drive_id successor_drive_id seen_by raid_group_id outcome",
        "timestamp replaced_at",
        "bigint window_days raid_hours_before tail_hours_before raid_hours_after tail_hours_after",
        "double tail_hour_ratio_before tail_hour_ratio_after tail_hour_ratio_change",
        "boolean is_censored",
    ),
    "fct_slow_alerts": columns(
        "varchar alert_id subject_type subject_id reason raid_group_id part_of despite_work",
        "timestamp raised_at cleared_at reopened_at first_slow_hour_utc last_slow_hour_utc worst_hour_utc",
        "bigint slow_hours imbalanced_hours load_known_hours drive_count episode_count",
        "double median_slowdown max_slowdown latency_us median_latency_us",
    ),
    "rejected_records": columns("varchar file column", "bigint row"),
    "ingested_files": columns(
        "varchar source file sha256 status",
        "timestamp ingested_at",
        "bigint rows_delivered rows_accepted rows_rejected rows_duplicate rows_superseded",
    ),
}
KEYS: dict[str, tuple[str, ...]] = {
    "dim_drives": ("drive_id",),
    "dim_raid_groups": ("raid_group_id",),
    "fct_drive_hours": ("drive_id", "hour_utc"),
    "fct_raid_hours": ("raid_group_id", "hour_utc"),
    "fct_slowdown_intervals": ("drive_id", "threshold", "started_at"),
    "fct_slowdown_arrivals": ("drive_id", "hour_utc"),
    "fct_drive_slowness": ("drive_id",),
    "fct_drive_transitions": ("kind",),
    "fct_drive_events": ("drive_id", "occurred_at", "event_type"),
    "fct_unplug_episodes": ("drive_id", "unplugged_at"),
    "fct_drive_replacements": ("drive_id",),
    "fct_slow_alerts": ("subject_type", "subject_id", "reason", "raised_at"),
    "rejected_records": ("file", "row", "column"),
    "ingested_files": ("file",),
}


# --------------------------------------------------------------------------------------------------------------------
# Small arithmetic


def floor_hour(instant: datetime) -> datetime:
    """The hour that holds the instant."""
    return instant.replace(minute=0, second=0, microsecond=0)


def hours_between(later: datetime, earlier: datetime) -> int:
    """Whole hours between two datetimes that both lie on the hour."""
    return (later - earlier) // HOUR


def median(values: Iterable[float]) -> float | None:
    """> The median of an even count is (a + b) / 2 in double."""
    ordered = sorted(float(value) for value in values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2.0


def nearest_rank(values: Iterable[float], q: str) -> float | None:
    """Percentile of metrics.md section 1: sort v[1..n], k = ceil(q*n) (k >= 1), answer v[k]; q a decimal text, so q*n is exact."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = max(1, math.ceil(Fraction(q) * len(ordered)))
    return ordered[rank - 1]


# --------------------------------------------------------------------------------------------------------------------
# Reading a bundle


BAD = object()
"""A value that could not be read as its column's type."""


def parse(value: Any, kind: str) -> Any:
    """One raw value (from Parquet, CSV text or JSON) as the column's type; None where null, BAD where unreadable."""
    if value is None or value == "":  # CSV has no other way to say null
        return None
    try:
        if kind == "timestamp":
            return _parse_timestamp(value)
        if kind == "date":
            return value if isinstance(value, date) else date.fromisoformat(value)
        return {"text": str, "real": float, "integer": int}[kind](value)
    except ValueError:
        return BAD


def _parse_timestamp(value: datetime | str) -> datetime:
    """> start of the half-open UTC hour; a timestamp with an offset is converted"""
    instant = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return instant if instant.tzinfo is None else instant.astimezone(UTC).replace(tzinfo=None)


def files_of(folder: Path) -> list[tuple[str, Path]]:
    """> A folder with any of three record kinds, ... : `drive_hours*`, `drive_events*`, `drives*`.  -> (kind, path)"""
    found = []
    for path in sorted(Path(folder).iterdir()):
        for kind in SCHEMAS:
            if path.name.startswith(kind):
                found.append((kind, path))
    return found


def read_raw(path: Path) -> list[Record]:
    """The raw records of one file, in file order."""
    if path.name.endswith(".parquet"):
        return pq.ParquetFile(path).read().to_pylist()
    content = path.read_bytes()
    if path.name.endswith(".gz"):
        content = gzip.decompress(content)
    text = content.decode("utf-8")
    if ".csv" in path.name:
        return list(csv.DictReader(io.StringIO(text, newline="")))
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def typed(raw: Record, kind: str) -> Record:
    """> Unknown extra columns are left out with a note, never an error; a missing optional column is null."""
    return {column: parse(raw.get(column), of) for column, of in SCHEMAS[kind].items()}


# --------------------------------------------------------------------------------------------------------------------
# Rejection


def is_negative(value: Any) -> bool:
    return value is not None and value is not BAD and value < 0


def is_no_latency(value: Any) -> bool:
    """Given, but NaN, infinite or negative."""
    return value is not None and (math.isnan(value) or math.isinf(value) or value < 0)


def has_ios(value: Any) -> bool:
    return value is not None and value is not BAD and value > 0


OTHER_DIRECTION = {
    "read_ios": "write_ios",
    "write_ios": "read_ios",
    "read_blocks": "write_blocks",
    "write_blocks": "read_blocks",
}


def drive_hour_fails(record: Record, column: str) -> bool:
    """Whether this column makes a `drive_hours` record a rejected one."""
    value = record[column]
    if value is BAD:
        return True
    # > a key (hour_utc, drive_id, raid_group_id) is null; `hour_utc` is unreadable or not on the hour
    if column == "hour_utc":
        return value is None or value != floor_hour(value)
    if column in ("drive_id", "raid_group_id"):
        return value is None
    # > a count is negative, or null where the other direction's is given
    if column in OTHER_DIRECTION:
        return is_negative(value) or (value is None and record[OTHER_DIRECTION[column]] is not None)
    if column in ("io_count", "bytes"):
        return is_negative(value)
    # > a direction with I/Os has a latency that is null, NaN, infinite or negative
    if column == "read_latency_us":
        return has_ios(record["read_ios"]) and (value is None or is_no_latency(value))
    if column == "write_latency_us":
        return has_ios(record["write_ios"]) and (value is None or is_no_latency(value))
    # > (latency_us and io_count follow the same rules); the split ones count where both are given
    if column == "latency_us":
        if record["read_ios"] is not None and record["write_ios"] is not None:
            return False
        if record["io_count"] is None:
            return is_no_latency(value)
        return has_ios(record["io_count"]) and (value is None or is_no_latency(value))
    # > coverage lies outside 0..1   (NaN lies nowhere inside)
    if column == "coverage":
        return value is not None and not 0.0 <= value <= 1.0
    return False


def record_fails(record: Record, kind: str, column: str) -> bool:
    """Whether this column rejects the record; the keys of events and inventory are the required ones of theirs."""
    if kind == "drive_hours":
        return drive_hour_fails(record, column)
    # > a period that does not last: `valid_to` at or before `valid_from`, `ended_at` before `occurred_at`
    if column in ("valid_to", "ended_at") and isinstance(record[column], datetime):
        begun = record["valid_from" if column == "valid_to" else "occurred_at"]
        return isinstance(begun, datetime) and record[column] < begun + timedelta(microseconds=column == "valid_to")
    keys = ("occurred_at", "drive_id") if kind == "drive_events" else ("drive_id", "raid_group_id")
    return record[column] is BAD or (column in keys and record[column] is None)


def failing_column(record: Record, kind: str) -> str | None:
    """> A record is rejected, one row in `marts.rejected_records` for its first failing column"""
    for column in SCHEMAS[kind]:
        if record_fails(record, kind, column):
            return column
    return None


def normalised(record: Record, kind: str) -> Record:
    """The accepted record as it is compared and used."""
    if kind == "drive_hours":
        # > A direction without I/O has its latency nulled, whatever it held.
        if not has_ios(record["read_ios"]):
            record["read_latency_us"] = None
        if not has_ios(record["write_ios"]):
            record["write_latency_us"] = None
        if record["read_ios"] is None and record["io_count"] == 0:
            record["latency_us"] = None
    # > An unknown type becomes `other` and is kept in `detail`.
    if kind == "drive_events" and record["event_type"] not in EVENT_TYPES:
        kept = [text for text in (record["event_type"], record["detail"]) if text is not None]
        record["detail"] = ": ".join(kept) if kept else None
        record["event_type"] = "other"
    return record


# --------------------------------------------------------------------------------------------------------------------
# Duplicates and conflicts


def key_of(record: Record, kind: str) -> tuple:
    """> per (drive_id, hour_utc) ... Inventory has one record per (drive_id, valid_from),
    > events one per (drive_id, occurred_at, event_type)
    """
    if kind == "drive_hours":
        return record["drive_id"], record["hour_utc"]
    if kind == "drives":
        return record["drive_id"], record["valid_from"]
    return record["drive_id"], record["occurred_at"], record["event_type"]


def sortable(value: Any) -> tuple:
    """> a null losing, text bytewise"""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode("utf-8"))
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


def rank(record: Record, kind: str) -> tuple:
    """> latest collected_at (null oldest), then the greatest row column by column in the order above

    Two records of a key with the same rank are equal in every contract column: exact duplicates.
    """
    return sortable(record["collected_at"]), tuple(sortable(record[column]) for column in SCHEMAS[kind])


class Landed:
    """State after the deliveries: winners by key and kind, and the accounts.

    `winners[kind][key]` is the winning record; `rejected` and `files` are the rows of the two accounting relations, but for what depends on
    the order of deliveries.
    """

    def __init__(self) -> None:
        self.winners: dict[str, dict[tuple, Record]] = {kind: {} for kind in SCHEMAS}
        self.rejected: list[Record] = []
        self.files: list[Record] = []

    def take(self, folder: Path) -> None:
        """Ingest one bundle folder."""
        for kind, path in files_of(folder):
            raw = read_raw(path)
            account = {"file": path.name, "rows_delivered": len(raw), "rows_rejected": 0}
            self.files.append(account)
            # > Row numbers count data rows from 1.
            for number, values in enumerate(raw, start=1):
                # > Rejection comes before duplicates: a bad row sent twice is rejected twice.
                record = typed(values, kind)
                column = failing_column(record, kind)
                if column is None:
                    self._accept(normalised(record, kind), kind)
                else:
                    self.rejected.append({"file": path.name, "row": number, "column": column})
                    account["rows_rejected"] += 1

    def _accept(self, record: Record, kind: str) -> None:
        """> Rows are compared after parsing and after an idle direction's latency is nulled."""
        holder = self.winners[kind].setdefault(key_of(record, kind), record)
        if rank(record, kind) > rank(holder, kind):
            self.winners[kind][key_of(record, kind)] = record


# --------------------------------------------------------------------------------------------------------------------
# Membership


class Fleet:
    """The accepted records, indexed, and the contract's membership rules over them."""

    def __init__(self, landed: Landed) -> None:
        self.events: list[Record] = list(landed.winners["drive_events"].values())
        self.periods, self.rows = by_peer_kind(list(landed.winners["drives"].values()), landed.winners["drive_hours"])
        self.groups_named: dict[str, set[str]] = defaultdict(set)
        for period, named in zip(self.periods, landed.winners["drives"].values(), strict=True):
            self.groups_named[named["raid_group_id"]].add(period["raid_group_id"])
        self.rows_of_hour: dict[datetime, list[Record]] = defaultdict(list)
        self.hours_of_drive: dict[str, list[datetime]] = defaultdict(list)
        for (drive, h), row in self.rows.items():
            self.rows_of_hour[h].append(row)
            self.hours_of_drive[drive].append(h)
        self.periods_of: dict[str, list[Record]] = defaultdict(list)
        for period in self.periods:
            self.periods_of[period["drive_id"]].append(period)
        self.events_of: dict[str, list[Record]] = defaultdict(list)
        for event in sorted(self.events, key=lambda event: event["occurred_at"]):
            self.events_of[event["drive_id"]].append(event)
        self._data_drives: dict[datetime, dict[str, set[str]]] = {}

    # ---- periods

    def chosen_period(self, drive: str, h: datetime) -> Record | None:
        """> where a drive's periods overlap, the one of the row's group counts, else the latest valid_from"""
        covering = [period for period in self.periods_of.get(drive, []) if covers(period, h)]
        row = self.rows.get((drive, h))
        of_row_group = [period for period in covering if row is not None and period["raid_group_id"] == row["raid_group_id"]]
        return max(of_row_group or covering, key=lambda period: sortable(period["valid_from"]), default=None)

    def is_data(self, drive: str, h: datetime) -> bool:
        """> A drive's role at h comes from the period that covers h; with none it is a data drive.   (a null role is data)"""
        period = self.chosen_period(drive, h)
        return period is None or has_data_role(period)

    def group_at(self, drive: str, h: datetime) -> str | None:
        """The drive's group at h, by row or else by covering period.

        > The row's `raid_group_id` is the drive's group in that hour; if inventory names another, the row wins
        """
        row = self.rows.get((drive, h))
        if row is not None:
            return row["raid_group_id"]
        period = self.chosen_period(drive, h)
        return None if period is None else period["raid_group_id"]

    def data_drives(self, group: str | None, h: datetime) -> set[str]:
        """> N(group, h) = the distinct data drives whose group at h, by row or else by covering period, is this group."""
        if h not in self._data_drives:
            by_group: dict[str, set[str]] = defaultdict(set)
            drives = set(self.periods_of) | {row["drive_id"] for row in self.rows_of_hour.get(h, [])}
            for drive in drives:
                its_group = self.group_at(drive, h)
                if its_group is not None and self.is_data(drive, h):
                    by_group[its_group].add(drive)
            self._data_drives[h] = by_group
        return set() if group is None else self._data_drives[h].get(group, set())

    def n(self, group: str | None, h: datetime) -> int:
        return len(self.data_drives(group, h))

    # ---- drives and groups

    def latest_period(self, drive: str) -> Record | None:
        """> those of its latest period (greatest valid_from, null least; then valid_to, null greatest), nulls included"""
        return max(self.periods_of.get(drive, []), key=latest_order, default=None)

    def attribute(self, drive: str, column: str) -> Any:
        period = self.latest_period(drive)
        return None if period is None else period[column]

    def kind(self, drive: str) -> str:
        """> without any period kind is `unknown`   (and with a null one)"""
        return self.attribute(drive, "kind") or "unknown"

    def group_kind(self, group: str) -> str:
        """> A group's kind is the commonest known kind of its inventory data drives (ties: smallest text), else `unknown`"""
        members = {period["drive_id"] for period in self.periods if period["raid_group_id"] == group and has_data_role(period)}
        known = Counter(kind for kind in map(self.kind, members) if kind in ("disk", "ssd"))
        return min(known, key=lambda kind: (-known[kind], kind), default="unknown")

    def current_group(self, drive: str) -> str | None:
        """> current_raid_group_id (of its last accepted row, else its latest period)"""
        hours = self.hours_of_drive.get(drive)
        return self.rows[(drive, max(hours))]["raid_group_id"] if hours else self.attribute(drive, "raid_group_id")

    # ---- events

    def event_group(self, event: Record) -> str | None:
        """> An event's group: the drive's row of that hour, else the event's own raid_group_id, else the covering period, else null."""
        h = floor_hour(event["occurred_at"])
        row = self.rows.get((event["drive_id"], h))
        if row is not None:
            return row["raid_group_id"]
        if event["raid_group_id"] is not None:
            return event["raid_group_id"]
        period = self.chosen_period(event["drive_id"], h)
        return None if period is None else period["raid_group_id"]

    def event_slot(self, event: Record) -> str | None:
        """The event's own slot, else the covering period's."""
        if event["slot"] is not None:
            return event["slot"]
        period = self.chosen_period(event["drive_id"], floor_hour(event["occurred_at"]))
        return None if period is None else period["slot"]

    def event_in_population(self, event: Record) -> bool:
        """> is_in_population (data drive of a group with N >= 3 at that hour)   (its group by row, else by covering period)"""
        h = floor_hour(event["occurred_at"])
        group = self.group_at(event["drive_id"], h)
        return group is not None and self.is_data(event["drive_id"], h) and self.n(group, h) >= 3

    def drives(self) -> set[str]:
        """> every drive seen in any record ... Rejected records make no drive."""
        return set(self.hours_of_drive) | set(self.periods_of) | set(self.events_of)


def peer_kind(period: Record | None) -> str:
    """Peers of a drive by kind: disk, ssd, nvme or unknown, by its latest period."""
    if period is None:
        return "unknown"
    is_nvme = (period["interface"] or "").lower() == "nvme" and period["kind"] != "disk"
    return "nvme" if is_nvme else period["kind"] or "unknown"


def by_peer_kind(
    periods: list[Record], rows: dict[tuple[str, datetime], Record]
) -> tuple[list[Record], dict[tuple[str, datetime], Record]]:
    """Periods and rows in groups of one kind: a drive of another kind than the first data drives of its group is in `GROUP (kind)`.

    One of unknown kind is so only where two kinds are known in the group. Of a group that no period names its rows in the hour say them.
    """
    latest = {period["drive_id"]: period for period in sorted(periods, key=latest_order)}
    # the data drives that began in an hour, by group and kind
    began: dict[str, dict[str, dict[datetime, set[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for period in periods:
        hours = began[period["raid_group_id"]][peer_kind(latest[period["drive_id"]])]
        if has_data_role(period):
            hours[datetime.min if period["valid_from"] is None else floor_hour(period["valid_from"])].add(period["drive_id"])
    known = {group: [kind for kind, hours in kinds.items() if hours and kind != "unknown"] for group, kinds in began.items()}

    def place(group: str, kind: str) -> tuple[bool, datetime, int, str]:
        """The first kind of a group comes first, of several the commonest in the group's first hour."""
        hours = began[group][kind]
        first = min((hour for kinds in began[group].values() for hour in kinds), default=datetime.max)
        return kind not in known[group], min(hours, default=datetime.max), -len(hours.get(first, ())), kind

    plain = {group: min(kinds, key=lambda kind: place(group, kind)) for group, kinds in began.items()}
    of_hour: dict[tuple[str, datetime], set[str]] = defaultdict(set)
    for row in rows.values():
        of_hour[row["raid_group_id"], row["hour_utc"]].add(peer_kind(latest.get(row["drive_id"])))

    def renamed(record: Record) -> Record:
        group, kind = record["raid_group_id"], peer_kind(latest.get(record["drive_id"]))
        kinds = {kind} if group in plain else of_hour[group, record["hour_utc"]]
        most = plain[group] if group in plain else min(kinds - {"unknown"}, default="unknown")
        is_apart = kind != most and (len(known.get(group, [])) > 1 or "unknown" not in (kind, most))
        return record | {"raid_group_id": f"{group} ({kind})"} if is_apart else record

    return [renamed(period) for period in periods], {key: renamed(row) for key, row in rows.items()}


def covers(period: Record, h: datetime) -> bool:
    """> An inventory period covers hour h when valid_from <= h < valid_to, both floored to the hour, null = open"""
    begun = period["valid_from"] is None or floor_hour(period["valid_from"]) <= h
    ended = period["valid_to"] is not None and floor_hour(period["valid_to"]) <= h
    return begun and not ended


def has_data_role(period: Record) -> bool:
    return period["role"] is None or period["role"] == "data"


def latest_order(period: Record) -> tuple:
    """Sort key of periods: > greatest valid_from, null least; then valid_to, null greatest"""
    valid_to = period["valid_to"]
    return sortable(period["valid_from"]), (1, datetime.min) if valid_to is None else (0, valid_to)


# --------------------------------------------------------------------------------------------------------------------
# fct_drive_hours


def is_split(row: Record) -> bool:
    """> (the split ones count where both are given)"""
    return row["read_ios"] is not None and row["write_ios"] is not None


def merged_latency(row: Record) -> float | None:
    """> latency_us = (read_ios*read_latency_us + write_ios*write_latency_us) / (read_ios + write_ios) in double, in this order,
    > a direction without I/O adding 0."""
    if not is_split(row):
        return row["latency_us"]
    reads, writes = row["read_ios"], row["write_ios"]
    if reads + writes == 0:
        return None
    read_part = float(reads) * row["read_latency_us"] if reads > 0 else 0.0
    write_part = float(writes) * row["write_latency_us"] if writes > 0 else 0.0
    return (read_part + write_part) / float(reads + writes)


def io_count(row: Record) -> int | None:
    """> io_count: likewise, the merged count; null = unknown"""
    return row["read_ios"] + row["write_ios"] if is_split(row) else row["io_count"]


def io_size(row: Record) -> float | None:
    """Z (bytes per I/O) = (read_blocks + write_blocks) * block_bytes / R, or bytes / R; null where R is 0 or unknown."""
    count = io_count(row)
    if row["read_blocks"] is not None and row["write_blocks"] is not None:
        block = DEFAULT_BLOCK_BYTES if row["block_bytes"] is None else row["block_bytes"]
        moved = (row["read_blocks"] + row["write_blocks"]) * block
    else:
        moved = row["bytes"]
    if not count or moved is None:
        return None
    return float(moved) / float(count)


def has_coverage(row: Record) -> bool:
    """> A row with coverage < `min_coverage` (0.5, ...) ...   (null = all of the hour)"""
    return row["coverage"] is None or not row["coverage"] < MIN_COVERAGE


def ratio(value: float | None, base: float | None) -> float | None:
    """> null where the median is 0 or the count unknown"""
    if value is None or base is None or base == 0:
        return None
    return float(value) / base


def direction_median(rows: list[Record], direction: str) -> float | None:
    """> read_slowdown: read latency / median read latency over the drives of the group with reads, at least 3 of them, median > 0"""
    latencies = [row[f"{direction}_latency_us"] for row in rows if has_direction(row, direction)]
    middle = median(latencies)
    return middle if middle is not None and len(latencies) >= 3 and middle > 0 else None


def has_direction(row: Record, direction: str) -> bool:
    return is_split(row) and row[f"{direction}_ios"] > 0


def age_year(h: datetime, deployed_on: date | None) -> int | None:
    """> age_year = floor(days / 365.25) + 1, days = date(hour_utc) - deployed_on in whole days; null when negative or unknown."""
    if deployed_on is None:
        return None
    days = (h.date() - deployed_on).days
    return None if days < 0 else math.floor(days / 365.25) + 1


def population_rows(fleet: Fleet) -> dict[tuple[str, datetime], list[Record]]:
    """> one row per accepted drive-hour of a data drive in a group with N >= 3   -> {(group, h): rows}"""
    cells: dict[tuple[str, datetime], list[Record]] = defaultdict(list)
    for (drive, h), row in fleet.rows.items():
        if fleet.is_data(drive, h) and fleet.n(row["raid_group_id"], h) >= 3:
            cells[(row["raid_group_id"], h)].append(row)
    return cells


def drive_hours_of_cell(fleet: Fleet, h: datetime, rows: list[Record]) -> list[Record]:
    """The fct_drive_hours rows of one group and hour."""
    # > ... takes part in no median
    counted = [row for row in rows if has_coverage(row)]
    latencies = [merged_latency(row) for row in counted if merged_latency(row) is not None]
    latency_median = median(latencies)
    # > valid RAID-hours only: at least 3 latencies and median > 0
    enough = len(latencies) >= 3
    valid = enough and latency_median > 0
    # > R_med includes drives that reported 0 I/Os, Z_med only drives with I/Os; over the known counts, without a minimum of 3
    r_median = median(io_count(row) for row in counted if io_count(row) is not None)
    z_median = median(io_size(row) for row in counted if io_size(row) is not None)
    read_median = direction_median(counted, "read")
    write_median = direction_median(counted, "write")
    evidence = rows_of_evidence(counted)
    judged = [merged_latency(row) for row in evidence if merged_latency(row) is not None]
    judged_median = median(judged)
    can_judge = len(judged) >= 3 and judged_median > 0

    result = []
    for row in rows:
        covered = has_coverage(row)
        latency = merged_latency(row)
        # > exclusion_reason: the first of `low_coverage`, `no_io`, `too_few_drives`, `zero_median`
        if not covered:
            reason = "low_coverage"
        elif latency is None:
            reason = "no_io"
        elif not enough:
            reason = "too_few_drives"
        elif not valid:
            reason = "zero_median"
        else:
            reason = None
        slowdown = latency / latency_median if reason is None else None
        result.append(
            {
                "drive_id": row["drive_id"],
                "hour_utc": h,
                "raid_group_id": row["raid_group_id"],
                "kind": fleet.kind(row["drive_id"]),
                "latency_us": latency,
                # > median_latency_us is given on every row of a valid RAID-hour, else null.
                "median_latency_us": latency_median if valid else None,
                "slowdown": slowdown,
                "exclusion_reason": reason,
                # a verdict's slowdown, over the median of the drives whose hour is evidence, at least 3 of them
                "judged_slowdown": latency / judged_median if can_judge and slowdown is not None and row in evidence else None,
                "judged_median_us": judged_median,
                # > is_slow, is_slow_15 (false where no slowdown)
                "is_slow": slowdown is not None and slowdown >= 2.0,
                "is_slow_15": slowdown is not None and slowdown >= 1.5,
                "coverage": row["coverage"],
                "io_count": io_count(row),
                # > On every other row rate_imbalance and size_imbalance are given, also where the hour has no valid median
                "rate_imbalance": ratio(io_count(row), r_median) if covered else None,
                "io_size_bytes": io_size(row),
                "size_imbalance": ratio(io_size(row), z_median) if covered else None,
                # > write likewise; whether or not the RAID-hour is valid.
                "read_slowdown": ratio(row["read_latency_us"], read_median) if covered and has_direction(row, "read") else None,
                "write_slowdown": ratio(row["write_latency_us"], write_median) if covered and has_direction(row, "write") else None,
                "age_year": age_year(h, fleet.attribute(row["drive_id"], "deployed_on")),
            }
        )
    return result


def rows_of_evidence(rows: list[Record]) -> list[Record]:
    """> An hour with fewer than 100 I/Os is no evidence, nor one with less than 4% of the median I/Os of the drives that have as many.
    > Where nobody counts I/Os, an hour is evidence.
    """
    enough = [row for row in rows if io_count(row) is None or io_count(row) >= 100]
    usual = median(io_count(row) for row in enough if io_count(row) is not None)
    return [row for row in enough if io_count(row) is None or io_count(row) >= 0.04 * usual]


def fct_drive_hours(fleet: Fleet) -> list[Record]:
    return [record for (_, h), rows in population_rows(fleet).items() for record in drive_hours_of_cell(fleet, h, rows)]


# --------------------------------------------------------------------------------------------------------------------
# fct_raid_hours


def fct_raid_hours(fleet: Fleet, drive_hours: list[Record]) -> list[Record]:
    cells: dict[tuple[str, datetime], list[Record]] = defaultdict(list)
    for record in drive_hours:
        cells[(record["raid_group_id"], record["hour_utc"])].append(record)
    valid = {cell: records for cell, records in cells.items() if records[0]["median_latency_us"] is not None}
    result = []
    for (group, h), records in valid.items():
        reporting = [record for record in records if record["slowdown"] is not None]
        slowest = min(reporting, key=lambda record: (-record["slowdown"], record["drive_id"].encode("utf-8")))
        tails = sorted((record["slowdown"] for record in reporting), reverse=True)
        before, usual = valid.get((group, h - HOUR)), usual_median_us(valid, group, h)
        result.append(
            {
                "raid_group_id": group,
                "hour_utc": h,
                "kind": fleet.group_kind(group),
                "data_drive_count": fleet.n(group, h),
                # > reporting_drive_count (drives with a slowdown)
                "reporting_drive_count": len(reporting),
                "median_latency_us": records[0]["median_latency_us"],
                "tail_1": tails[0],
                "tail_2": tails[1],
                "tail_3": tails[2],
                # > slowest_drive_id (ties: smallest id)
                "slowest_drive_id": slowest["drive_id"],
                "slow_drive_count": sum(1 for record in reporting if record["slowdown"] >= 2.0),
                "is_tail_hour": tails[0] >= 2.0,
                "is_tail_hour_15": tails[0] >= 1.5,
                "raid_io_count": raid_io_count(records),
                "rio_degradation": rio_degradation(before, records),
                "transition": raid_transition(before, records),
                # no columns of the mart: fct_slow_group_hours, alerts and causes are made of them
                "usual_median_us": usual,
                "group_slowdown": records[0]["median_latency_us"] / usual if usual is not None else None,
            }
        )
    return result


def usual_median_us(valid: dict[tuple[str, datetime], list[Record]], group: str, h: datetime) -> float | None:
    """The median of the group's medians at the same hour of the week, one to four weeks before (PI-18)."""
    past = [valid[cell][0]["median_latency_us"] for weeks in (1, 2, 3, 4) if (cell := (group, h - timedelta(weeks=weeks))) in valid]
    return median(past) if past else None


def covered_records(records: list[Record]) -> list[Record]:
    """The rows with enough coverage of one RAID-hour."""
    return [record for record in records if record["exclusion_reason"] != "low_coverage"]


def raid_io_count(records: list[Record]) -> int | None:
    """> raid_io_count (sum over rows with enough coverage, idle drives included; null if any is unknown)"""
    counts = [record["io_count"] for record in covered_records(records)]
    return None if None in counts else sum(counts)


def rio_degradation(before: list[Record] | None, now: list[Record]) -> float | None:
    """> (RIO of the hour before / RIO of this hour; null unless the hour before is valid, adjacent, the same drives have such rows in
    > both, and RIO > 0)"""
    if before is None:
        return None
    if {record["drive_id"] for record in covered_records(before)} != {record["drive_id"] for record in covered_records(now)}:
        return None
    earlier, current = raid_io_count(before), raid_io_count(now)
    if earlier is None or current is None or current <= 0:
        return None
    return float(earlier) / float(current)


def raid_transition(before: list[Record] | None, now: list[Record]) -> str | None:
    """> transition (`stable_to_stable`, ...; null unless the hour before is valid, whatever the members)"""
    if before is None:
        return None
    first, second = ("tail" if any(record["is_slow"] for record in records) else "stable" for records in (before, now))
    return f"{first}_to_{second}"


# --------------------------------------------------------------------------------------------------------------------
# Slowness of a drive over time. `slowdowns` is {drive: {h: (slowdown, group)}}, hours with a slowdown only.

Slowdowns = dict[str, dict[datetime, tuple[float, str]]]


def slowdowns_by_drive(drive_hours: list[Record], of: str = "slowdown") -> Slowdowns:
    result: Slowdowns = defaultdict(dict)
    for record in drive_hours:
        if record[of] is not None:
            result[record["drive_id"]][record["hour_utc"]] = (record[of], record["raid_group_id"])
    return result


def severity(threshold: float, first: float, greatest: float) -> str | None:
    """> severity (threshold 2.0: `2-4x`, `4-8x`, `8x+` by first_slowdown; threshold 1.5: `1.5-2x` when max_slowdown < 2, else null)"""
    if threshold == 1.5:
        return "1.5-2x" if greatest < 2.0 else None
    if first < 4.0:
        return "2-4x"
    return "4-8x" if first < 8.0 else "8x+"


def slow_runs(hours: dict[datetime, tuple[float, str]], threshold: float) -> list[list[datetime]]:
    """Maximal runs of adjacent hours of one drive in one group, each with slowdown >= threshold (metrics.md 3.11)."""
    runs: list[list[datetime]] = []
    for h in sorted(hours):
        slowdown, group = hours[h]
        if slowdown < threshold:
            continue
        if runs and runs[-1][-1] + HOUR == h and hours[runs[-1][-1]][1] == group:
            runs[-1].append(h)
        else:
            runs.append([h])
    return runs


def first_unplug(fleet: Fleet, drive: str, started_at: datetime) -> datetime | None:
    """The first unplug of the drive whose hour is the interval's first hour or later (OP-18)."""
    for event in fleet.events_of.get(drive, []):
        if event["event_type"] == "unplug" and floor_hour(event["occurred_at"]) >= started_at:
            return event["occurred_at"]
    return None


def fct_slowdown_intervals(fleet: Fleet, slowdowns: Slowdowns) -> list[Record]:
    result = []
    for drive, hours in slowdowns.items():
        for threshold in THRESHOLDS:
            for run in slow_runs(hours, threshold):
                result.append(interval(fleet, drive, hours, threshold, run))
    return result


def interval(fleet: Fleet, drive: str, hours: dict[datetime, tuple[float, str]], threshold: float, run: list[datetime]) -> Record:
    values = [hours[h][0] for h in run]
    group = hours[run[0]][1]
    unplugged_at = first_unplug(fleet, drive, run[0])
    return {
        "drive_id": drive,
        "threshold": threshold,
        "started_at": run[0],
        "raid_group_id": group,
        "kind": fleet.kind(drive),
        "ended_at": run[-1],
        "interval_hours": len(run),
        "hours_until_stable": len(run) + 1,
        "first_slowdown": values[0],
        "max_slowdown": max(values),
        "mean_slowdown": math.fsum(values) / len(values),
        # metrics 3.11: the hour before start has no valid S of this drive in the same group; likewise the hour after end
        "is_left_censored": not has_slowdown_in(hours, run[0] - HOUR, group),
        "is_right_censored": not has_slowdown_in(hours, run[-1] + HOUR, group),
        "severity": severity(threshold, values[0], max(values)),
        "unplugged_at": unplugged_at,
        "wait_hours": None if unplugged_at is None else hours_between(floor_hour(unplugged_at), run[0]),
    }


def has_slowdown_in(hours: dict[datetime, tuple[float, str]], h: datetime, group: str) -> bool:
    return h in hours and hours[h][1] == group


def slow_hours(hours: dict[datetime, tuple[float, str]], threshold: float) -> list[datetime]:
    return sorted(h for h, (slowdown, _) in hours.items() if slowdown >= threshold)


def fct_slowdown_arrivals(fleet: Fleet, slowdowns: Slowdowns) -> list[Record]:
    """> (drive_id, hour_utc of a slow hour that has a predecessor): kind, previous_hour_utc, gap_hours (hours between - 1)."""
    result = []
    for drive, hours in slowdowns.items():
        slow = slow_hours(hours, 2.0)
        for previous, h in pairwise(slow):
            result.append(
                {
                    "drive_id": drive,
                    "hour_utc": h,
                    "kind": fleet.kind(drive),
                    "previous_hour_utc": previous,
                    "gap_hours": hours_between(h, previous) - 1,
                }
            )
    return result


def fct_drive_slowness(fleet: Fleet, slowdowns: Slowdowns, raid_hours: list[Record]) -> list[Record]:
    """> (drive_id; drives with at least one slowdown)"""
    valid_hours: dict[str, list[datetime]] = defaultdict(list)
    for record in raid_hours:
        valid_hours[record["raid_group_id"]].append(record["hour_utc"])
    result = []
    for drive, hours in slowdowns.items():
        # > Window = the hours in (last - 28 days, last], last = the last valid RAID-hour of the drive's current group
        of_group = valid_hours.get(fleet.current_group(drive) or "", [])
        window: list[float] = []
        group_hours = 0
        if of_group:
            last = max(of_group)
            group_hours = sum(1 for h in of_group if last - WINDOW < h <= last)
            # > the drive's hours count in whatever group they were
            window = [slowdown for h, (slowdown, _) in hours.items() if last - WINDOW < h <= last]
        # > without such an hour: 0, null, false
        middle = median(window)
        greatest = max(slowdown for slowdown, _ in hours.values())
        result.append(
            {
                "drive_id": drive,
                "kind": fleet.kind(drive),
                "drive_hours": len(hours),
                "slow_hours": len(slow_hours(hours, 2.0)),
                "interval_count": len(slow_runs(hours, 2.0)),
                "max_slowdown": greatest,
                "is_acute": greatest >= 2.0,
                "window_drive_hours": len(window),
                "median_slowdown": middle,
                # > median_slowdown >= 1.2 and window_drive_hours >= half of the group's valid RAID-hours in the window
                "is_chronic": middle is not None and middle >= 1.2 and 2 * len(window) >= group_hours,
            }
        )
    return result


def fct_drive_transitions(fleet: Fleet, slowdowns: Slowdowns) -> list[Record]:
    """> (kind): normal, to_slow, slow_persist, back_to_stable (consecutive valid hours of a drive in one group)."""
    names = {(False, False): "normal", (False, True): "to_slow", (True, True): "slow_persist", (True, False): "back_to_stable"}
    by_kind: dict[str, Counter] = defaultdict(Counter)
    for drive, hours in slowdowns.items():
        for h, (slowdown, group) in hours.items():
            if has_slowdown_in(hours, h + HOUR, group):
                by_kind[fleet.kind(drive)][names[(slowdown >= 2.0, hours[h + HOUR][0] >= 2.0)]] += 1
    return [{"kind": kind, **{name: counts[name] for name in names.values()}} for kind, counts in by_kind.items()]


# --------------------------------------------------------------------------------------------------------------------
# Events and unplug episodes


def fct_drive_events(fleet: Fleet, slowdowns: Slowdowns) -> list[Record]:
    """> one row per event of any drive"""
    result = []
    for event in fleet.events:
        drive = event["drive_id"]
        h = floor_hour(event["occurred_at"])
        # > slow_within_window (a slow hour in [floor(t), floor(t)+1]; null where no slowdown is valid there)
        window = [slowdowns[drive][hour][0] for hour in (h, h + HOUR) if hour in slowdowns.get(drive, {})]
        result.append(
            {
                "drive_id": drive,
                "occurred_at": event["occurred_at"],
                "event_type": event["event_type"],
                "kind": fleet.kind(drive),
                "raid_group_id": fleet.event_group(event),
                "is_in_population": fleet.event_in_population(event),
                "slow_within_window": any(slowdown >= 2.0 for slowdown in window) if window else None,
            }
        )
    return result


def closing_replug(fleet: Fleet, unplug: Record, following: datetime | None) -> datetime | None:
    """> a replug at the next unplug's instant closes the earlier episode, one at the unplug's own instant is none of it"""
    for event in fleet.events_of[unplug["drive_id"]]:
        if event["event_type"] != "replug" or event["occurred_at"] <= unplug["occurred_at"]:
            continue
        if following is None or event["occurred_at"] <= following:
            return event["occurred_at"]
    return None


def is_replaced(fleet: Fleet, unplug: Record) -> bool:
    """> at or after the unplug's hour a `replacement` event of that drive or of its group and slot, or another serial's period in that
    > group and slot"""
    since = floor_hour(unplug["occurred_at"])
    group, slot = fleet.event_group(unplug), fleet.event_slot(unplug)
    has_place = group is not None and slot is not None
    for event in fleet.events:
        if event["event_type"] != "replacement" or floor_hour(event["occurred_at"]) < since:
            continue
        if event["drive_id"] == unplug["drive_id"]:
            return True
        if has_place and (fleet.event_group(event), fleet.event_slot(event)) == (group, slot):
            return True
    for period in fleet.periods:
        if not has_place or period["drive_id"] == unplug["drive_id"] or period["valid_from"] is None:
            continue
        if (period["raid_group_id"], period["slot"]) == (group, slot) and floor_hour(period["valid_from"]) >= since:
            return True
    return False


def preceding_severity(intervals: list[Record], unplugged_at: datetime) -> str | None:
    """> preceding_severity (of the interval with a severity, of either threshold, that started last at or before the unplug)"""
    before = [record for record in intervals if record["severity"] is not None and record["started_at"] <= unplugged_at]
    chosen = max(before, key=lambda record: (record["started_at"], record["threshold"]), default=None)
    return None if chosen is None else chosen["severity"]


def recur_hours(hours: dict[datetime, tuple[float, str]], bucket: str | None, replugged_at: datetime | None) -> int | None:
    """> recur_hours (hour index of the first slow hour at or after the replug's hour, less the replug's; slow = 2.0, for `1.5-2x` 1.5;
    > both null without a preceding interval)"""
    if bucket is None or replugged_at is None:
        return None
    since = floor_hour(replugged_at)
    later = [h for h in slow_hours(hours, 1.5 if bucket == "1.5-2x" else 2.0) if h >= since]
    return hours_between(later[0], since) if later else None


def fct_unplug_episodes(fleet: Fleet, slowdowns: Slowdowns, intervals: list[Record]) -> list[Record]:
    """> one row per unplug of any drive"""
    intervals_of: dict[str, list[Record]] = defaultdict(list)
    for record in intervals:
        intervals_of[record["drive_id"]].append(record)
    result = []
    for drive, events in fleet.events_of.items():
        unplugs = [event for event in events if event["event_type"] == "unplug"]
        for index, unplug in enumerate(unplugs):
            following = unplugs[index + 1]["occurred_at"] if index + 1 < len(unplugs) else None
            replugged_at = closing_replug(fleet, unplug, following)
            # > is_replugged (true with replugged_at null = implied by a second unplug
            replugged = replugged_at is not None or following is not None
            bucket = preceding_severity(intervals_of[drive], unplug["occurred_at"])
            result.append(
                {
                    "drive_id": drive,
                    "unplugged_at": unplug["occurred_at"],
                    "kind": fleet.kind(drive),
                    "is_in_population": fleet.event_in_population(unplug),
                    "replugged_at": replugged_at,
                    "outage_hours": None if replugged_at is None else double_hours(replugged_at - unplug["occurred_at"]),
                    "is_replugged": replugged,
                    "is_replaced": not replugged and is_replaced(fleet, unplug),
                    "preceding_severity": bucket,
                    "recur_hours": recur_hours(slowdowns.get(drive, {}), bucket, replugged_at),
                }
            )
    return result


def double_hours(duration: timedelta) -> float:
    """Hours as a double, one rounding: whole microseconds over microseconds per hour."""
    return (duration // timedelta(microseconds=1)) / 3_600_000_000.0


# --------------------------------------------------------------------------------------------------------------------
# Alerts (no relation of the contract: docs/alerts.md defines it)

DAY = timedelta(hours=24)


def goes_on_in(event: Record, h: datetime) -> bool:
    """Whether an event covers an instant of the hour; without an end it takes an hour."""
    ended = event["ended_at"] if event["ended_at"] is not None else event["occurred_at"] + HOUR
    return event["occurred_at"] < h + HOUR and h < ended


def is_in_maintenance(fleet: Fleet, drive: str, h: datetime) -> bool:
    """Whether a `maintenance` event of the drive covers an instant of the hour."""
    return any(event["event_type"] == "maintenance" and goes_on_in(event, h) for event in fleet.events_of.get(drive, []))


def end_of(event: Record) -> datetime:
    """When an event was over; without an end it takes an hour."""
    return event["ended_at"] if event["ended_at"] is not None else event["occurred_at"] + HOUR


def works_in(fleet: Fleet, group: str, h: datetime) -> list[tuple[str, datetime]]:
    """Kind and beginning of each work of one drive on the RAID group that fills more than half of the hour.

    Its event names the group, else its drive is in it now. What goes on within an hour of its end is the same work.
    """
    found = []
    for drive, events in fleet.events_of.items():
        for kind in ("rebuild", "scrub"):
            own = [event for event in events if event["event_type"] == kind]
            begun, ended, filled, begins = datetime.min, datetime.min, timedelta(0), []
            for event in own:
                begun = event["occurred_at"] if event["occurred_at"] > ended + HOUR or ended == datetime.min else begun
                ended = max(ended, end_of(event))
                named = event["raid_group_id"] or fleet.current_group(drive)
                if goes_on_in(event, h) and group in fleet.groups_named.get(named, {named}):
                    filled += min(end_of(event), h + HOUR) - max(event["occurred_at"], h)
                    begins.append(begun)
            if filled > HOUR / 2:
                found.append((kind, min(begins)))
    return found


def despite_of(fleet: Fleet, group: str, h: datetime, *, is_drive: bool) -> tuple[bool, str | None]:
    """Whether work on the array holds an hour back; where it does not, why not. Of drives that are scrubbed alike the slow one is slow."""
    despite = []
    for kind, begun in works_in(fleet, group, h):
        if is_drive and kind == "scrub":
            despite.append("slower than the others at the same work")
        elif h >= begun + 48 * HOUR:
            despite.append("work of more than 48 hours")
        else:
            return True, None
    return False, min(despite, default=None)


def first_of_three(instants: list[datetime]) -> datetime | None:
    """The first instant that has two others in the 24 hours that end with its own; `instants` ascending, equal ones count."""
    for number, instant in enumerate(instants):
        if sum(1 for other in instants[: number + 1] if instant - other < DAY) >= 3:
            return instant
    return None


AGAIN = timedelta(days=28)
"""A subject that is slow again this soon has the same alert."""


def clearing_time(count: int) -> timedelta:
    """The quiet time after which an alert that came so often is over."""
    return min(count, 7) * DAY


Incident = tuple[str, str, list[list[Record]]]


def joined_episodes(episodes: list[list[Record]], first: str, last: str) -> list[list[list[Record]]]:
    """Ascending episodes cut where the next begins more than 28 days after all before have ended."""
    alerts: list[list[list[Record]]] = []
    for episode in episodes:
        if alerts and min(r[first] for r in episode) - max(r[last] for r in chain.from_iterable(alerts[-1])) <= AGAIN:
            alerts[-1].append(episode)
        else:
            alerts.append([episode])
    return alerts


def reopened_at(episodes: list[list[Record]], first: str, last: str, raised: list[datetime]) -> datetime | None:
    """When the last of the episodes that came after the alert was over raised it again."""
    found = None
    for number in range(1, len(episodes)):
        quiet = min(r[first] for r in episodes[number]) - max(r[last] for r in episodes[number - 1])
        if quiet > clearing_time(number):
            found = raised[number]
    return found


def episode_of(subject: str, raised_at: datetime, run: list[Record]) -> Record:
    """A run of slow hours, as alerts of places are made of it."""
    times = {"raised_at": raised_at, "first": run[0]["hour_utc"], "last": run[-1]["hour_utc"]}
    return {"alert_id": f"{subject} {raised_at}", "subject_id": subject, **times}


def alerts_of(subject_type: str, subject: str, reason: str, records: list[Record], known_until: datetime, drives: int) -> list[Record]:
    """The alerts of a subject's slow hours (ascending rows of fct_drive_hours, or alike): runs with three within 24 hours, joined."""
    runs = [run for run in runs_within(records, "hour_utc") if first_of_three([record["hour_utc"] for record in run])]
    result = []
    for episodes in joined_episodes(runs, "hour_utc", "hour_utc"):
        raised = [at for run in episodes if (at := first_of_three([record["hour_utc"] for record in run])) is not None]
        own = [record for run in episodes for record in run]
        worst = max(own, key=lambda record: (record["slowdown"], -hours_between(record["hour_utc"], own[0]["hour_utc"])))
        quiet_at = own[-1]["hour_utc"] + clearing_time(len(episodes))
        result.append(
            {
                "alert_id": f"{subject_type} {subject} {reason} {raised[0]}",
                "subject_type": subject_type,
                "subject_id": subject,
                "reason": reason,
                "raid_group_id": own[-1]["raid_group_id"],
                "raised_at": raised[0],
                "cleared_at": quiet_at if known_until >= quiet_at else None,
                "episode_count": len(episodes),
                "reopened_at": reopened_at(episodes, "hour_utc", "hour_utc", raised),
                "first_slow_hour_utc": own[0]["hour_utc"],
                "last_slow_hour_utc": own[-1]["hour_utc"],
                "slow_hours": len(own),
                "imbalanced_hours": sum(1 for record in own if max(record["rate_imbalance"] or 0, record["size_imbalance"] or 0) >= 2),
                "load_known_hours": sum(1 for record in own if record["rate_imbalance"] is not None),
                "drive_count": drives,
                "median_slowdown": median([record["slowdown"] for record in own]),
                "max_slowdown": worst["slowdown"],
                "worst_hour_utc": worst["hour_utc"],
                "latency_us": worst["latency_us"],
                "median_latency_us": worst["median_latency_us"],
                "part_of": None,
                "despite_work": max((record["despite_work"] for record in own if record["despite_work"]), default=None),
                "episodes": [episode_of(subject, at, run) for at, run in zip(raised, episodes, strict=True)],
            }
        )
    return result


def runs_within(items: list[Record], instant: str) -> list[list[Record]]:
    """Ascending items cut where the next one's instant is more than 24 hours later."""
    runs: list[list[Record]] = []
    for item in items:
        if runs and item[instant] - runs[-1][-1][instant] <= DAY:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def last_hours_of(raid_hours: list[Record]) -> dict[str, datetime]:
    """The last valid hour of each RAID group."""
    last_hours: dict[str, datetime] = {}
    for record in raid_hours:
        group = record["raid_group_id"]
        last_hours[group] = max(last_hours.get(group, record["hour_utc"]), record["hour_utc"])
    return last_hours


def silent_from(fleet: Fleet, raid_hours: list[Record]) -> dict[str, datetime]:
    """The last row of each drive whose rows are expected to go on: nothing says that it was replaced, unplugged or taken out."""
    until = max((record["hour_utc"] for record in raid_hours), default=datetime.min)
    found = {}
    for drive, hours in fleet.hours_of_drive.items():
        last = max(hours)
        if not has_left(fleet, drive, last, until) and (fleet.periods_of.get(drive) or last > until - timedelta(days=7)):
            found[drive] = last
    return found


def swap_of(fleet: Fleet, drive: str, until: datetime) -> tuple[datetime, str, str | None] | None:
    """When a drive that has gone was replaced, what shows it, and the other serial; by `until`. A bundle names no devices."""
    last = max(fleet.hours_of_drive[drive])
    place = fleet.current_group(drive), fleet.attribute(drive, "slot")
    swaps: list[tuple[datetime, str, str | None]] = []
    for period in fleet.periods:
        if period["drive_id"] != drive and place[1] is not None and place_of(period) == place:
            swaps.append((floor_hour(period["valid_from"] or datetime.min), "slot", period["drive_id"]))
    for event in fleet.events:
        if event["event_type"] == "replacement" and (event["drive_id"] == drive or (place[1] is not None and place_of(event) == place)):
            swaps.append((event["occurred_at"], "event", None))
    swaps = [swap for swap in swaps if last <= floor_hour(swap[0]) <= until]
    if not swaps:
        return None
    at, seen_by, _ = min(swaps, key=lambda swap: swap[:2])
    return at, seen_by, min(((swap[0], swap[2]) for swap in swaps if swap[2] is not None), default=(at, None))[1]


def fct_drive_replacements(fleet: Fleet, raid_hours: list[Record]) -> list[Record]:
    """Each drive that was replaced, with its group's tail hours over as many days before its last one as after that of the swap."""
    until = max((record["hour_utc"] for record in raid_hours), default=datetime.min)
    last_hours, result = last_hours_of(raid_hours), []
    for drive, hours in fleet.hours_of_drive.items():
        swap = swap_of(fleet, drive, until)
        if swap is None:
            continue
        at, seen_by, successor = swap
        group = fleet.current_group(drive)
        left_on, replaced_on = max(hours).date(), at.date()
        watched = [until, *([last_hours[group]] if group in last_hours else [])]
        watched += [max(fleet.hours_of_drive[successor])] if successor in fleet.hours_of_drive else []
        after = (min(watched).date() - replaced_on).days
        days = max(min(28, after, (left_on - min(hours).date()).days), 0)
        own = [record for record in raid_hours if record["raid_group_id"] == group]
        sides = [
            [record for record in own if 0 < (left_on - record["hour_utc"].date()).days <= days],
            [record for record in own if 0 < (record["hour_utc"].date() - replaced_on).days <= days],
        ]
        tails = [sum(1 for record in side if record["is_tail_hour"]) for side in sides]
        ratios = [tail / len(side) if side else None for tail, side in zip(tails, sides, strict=True)]
        row = {
            "drive_id": drive, "successor_drive_id": successor, "seen_by": seen_by, "raid_group_id": group, "outcome": "open",
            "replaced_at": at, "window_days": days, "is_censored": after < min(28, (until.date() - replaced_on).days),
            "raid_hours_before": len(sides[0]), "tail_hours_before": tails[0], "tail_hour_ratio_before": ratios[0],
            "raid_hours_after": len(sides[1]), "tail_hours_after": tails[1], "tail_hour_ratio_after": ratios[1],
            "tail_hour_ratio_change": None,
        }  # fmt: skip
        if ratios[0] is not None and ratios[1] is not None:
            # Wilson's limits over the days, and Newcombe's of the difference
            (low_0, high_0), (low_1, high_1) = (
                limits_of(ratio, len({record["hour_utc"].date() for record in side})) for ratio, side in zip(ratios, sides, strict=True)
            )
            change = ratios[1] - ratios[0]
            row["tail_hour_ratio_change"] = change
            if change + math.hypot(high_1 - ratios[1], ratios[0] - low_0) < 0:
                row["outcome"] = "better"
            if change - math.hypot(ratios[1] - low_1, high_0 - ratios[0]) > 0:
                row["outcome"] = "worse"
        result.append(row)
    return result


def limits_of(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share over a number of observations."""
    z = 1.959963984540054
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return middle - reach, middle + reach


def left_at(fleet: Fleet, drive: str, until: datetime) -> datetime | None:
    """When a drive was replaced, or taken out of inventory since its last row; by `until`."""
    swap = swap_of(fleet, drive, until)
    if swap is not None:
        return swap[0]
    to = (last_place(fleet, drive, until) or (None, None))[1]
    return to if to is not None and max(fleet.hours_of_drive[drive]) <= to <= until else None


def last_place(fleet: Fleet, drive: str, until: datetime) -> tuple[Record, datetime] | None:
    """The period in which inventory has a drive last, of those that begin by `until`, and where it is covered to."""
    periods = fleet.periods_of.get(drive, [])
    instants = ((period["valid_from"] or datetime.min, period["valid_to"] or datetime.max) for period in periods)
    edges = sorted({floor_hour(at) for pair in instants for at in pair})
    covered = [(since, to) for since, to in pairwise(edges) if since <= until and any(covers(period, since) for period in periods)]
    if not covered:
        return None
    since, to = covered[-1]
    return max((period for period in periods if covers(period, since)), key=lambda period: sortable(period["valid_from"])), to


def has_left(fleet: Fleet, drive: str, last: datetime, until: datetime) -> bool:
    """Whether inventory or an event says by `until` that the drive was replaced, taken out or unplugged since its last row; or a spare."""
    place = last_place(fleet, drive, until)
    if left_at(fleet, drive, until) is not None or (place is not None and place[0]["role"] == "spare"):
        return True
    plugs = {
        kind: [event["occurred_at"] for event in fleet.events_of.get(drive, []) if event["event_type"] == kind]
        for kind in ("unplug", "replug")
    }
    return any(floor_hour(at) >= last and at > max(plugs["replug"], default=datetime.min) for at in plugs["unplug"])


def place_of(record: Record) -> tuple[str | None, str | None]:
    return record["raid_group_id"], record["slot"]


def acute_alerts(fleet: Fleet, drive_hours: list[Record], raid_hours: list[Record]) -> list[Record]:
    """One per run of a drive's slow hours outside maintenance that has three of them within 24 hours."""
    last_hours, expected = last_hours_of(raid_hours), silent_from(fleet, raid_hours)
    judged_until: dict[str, datetime] = {}
    slow: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(drive_hours, key=lambda record: record["hour_utc"]):
        if record["judged_slowdown"] is not None:
            judged_until[record["drive_id"]] = record["hour_utc"]
        if (record["judged_slowdown"] or 0) < 2 or is_in_maintenance(fleet, record["drive_id"], record["hour_utc"]):
            continue
        is_held, despite = despite_of(fleet, record["raid_group_id"], record["hour_utc"], is_drive=True)
        if not is_held:
            judged = {"slowdown": record["judged_slowdown"], "median_latency_us": record["judged_median_us"]}
            slow[record["drive_id"]].append({**record, **judged, "despite_work": despite})
    result = []
    for drive, records in slow.items():
        # its judged hours show that it was quiet; where none are expected any more, the hours of its RAID group do; so does a later run
        known_until = judged_until[drive] if drive in expected else last_hours.get(fleet.current_group(drive) or "", datetime.min)
        known_until = max(known_until, records[-1]["hour_utc"])
        alerts = alerts_of("drive", drive, "acute", records, known_until, 1)
        if (left := left_at(fleet, drive, max(last_hours.values(), default=datetime.min))) is not None:
            for alert in alerts:
                gone = max(left, alert["last_slow_hour_utc"] + HOUR)
                alert["cleared_at"] = min(alert["cleared_at"] or gone, gone)
        result += alerts
    return result


def whole_group_alerts(fleet: Fleet, raid_hours: list[Record]) -> list[Record]:
    """One per run of a RAID group's hours, of its last 28 days, at twice what it usually takes, that has three of them within 24 hours."""
    last_hours = last_hours_of(raid_hours)
    slow: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(raid_hours, key=lambda record: record["hour_utc"]):
        group, h, ratio = record["raid_group_id"], record["hour_utc"], record["group_slowdown"]
        if ratio is None or ratio < 2 or h <= last_hours[group] - WINDOW:
            continue
        if any(is_in_maintenance(fleet, drive, h) for drive in fleet.drives() if fleet.current_group(drive) == group):
            continue
        is_held, despite = despite_of(fleet, group, h, is_drive=False)
        if is_held:
            continue
        shown = {
            "despite_work": despite,
            "slowdown": ratio,
            "latency_us": record["median_latency_us"],
            "median_latency_us": record["usual_median_us"],
        }
        slow[group].append({"hour_utc": h, "raid_group_id": group, "rate_imbalance": None, "size_imbalance": None, **shown})
    result = []
    for row in dim_raid_groups(fleet, raid_hours):
        group = row["raid_group_id"]
        if slow[group]:
            known_until = max(last_hours[group], slow[group][-1]["hour_utc"])
            result += alerts_of("raid_group", group, "whole_group", slow[group], known_until, row["data_drive_count"])
    return result


def chronic_alerts(fleet: Fleet, slowdowns: Slowdowns, raid_hours: list[Record]) -> list[Record]:
    """One per time that a drive was at 1.2 or more in most of its hours of the 28 days that end with a day of its current RAID group, which
    has 24 hours there; from then on until most are below 1.1, or it was seen in less than half of the group's hours."""
    last_hours, expected = last_hours_of(raid_hours), silent_from(fleet, raid_hours)
    hours_of: dict[str, list[datetime]] = defaultdict(list)
    for record in raid_hours:
        hours_of[record["raid_group_id"]].append(record["hour_utc"])
    result = []
    for drive, hours in slowdowns.items():
        group = fleet.current_group(drive) or ""
        left = left_at(fleet, drive, max(last_hours.values(), default=datetime.min))
        own: list[Record] = []
        alert: Record | None = None
        for day in sorted({datetime.combine(h.date(), datetime.min.time()) for h in hours_of[group]}):
            if last_hours[group] < day + 23 * HOUR or (left is not None and day >= left):  # not over, or it has gone
                continue
            seen = [s for h, (s, _) in hours.items() if day + DAY - WINDOW <= h < day + DAY]
            possible = sum(1 for h in hours_of[group] if day + DAY - WINDOW <= h < day + DAY)
            high, doubtful = (sum(1 for s in seen if s >= bound) for bound in (1.2, 1.1))
            is_high = 2 * len(seen) >= possible and 2 * high > len(seen)
            if is_high and possible < 24:
                continue
            if is_high:
                if alert is None:
                    alert = chronic_alert(drive, group, day)
                    own.append(alert)
                alert |= {"last_slow_hour_utc": day + 23 * HOUR, "slow_hours": high}
            elif day > expected.get(drive, datetime.max):  # silent
                continue
            elif alert is not None and (2 * len(seen) < possible or 2 * doubtful <= len(seen)):
                alert["cleared_at"] = day + DAY
                alert = None
        if left is not None:
            for one in own:
                gone = max(left, one["raised_at"])
                one["cleared_at"] = min(one["cleared_at"] or gone, gone)
        result += own
    return result


def chronic_alert(drive: str, group: str, day: datetime) -> Record:
    """Facts of the alert when it is raised, at the end of a day."""
    no = (
        "cleared_at",
        "reopened_at",
        "median_slowdown",
        "max_slowdown",
        "worst_hour_utc",
        "latency_us",
        "median_latency_us",
        "part_of",
        "despite_work",
    )
    nothing = dict.fromkeys(no)
    return {
        "alert_id": f"drive {drive} chronic {day + DAY}",
        "subject_type": "drive",
        "subject_id": drive,
        "reason": "chronic",
        "raid_group_id": group,
        "raised_at": day + DAY,
        "episode_count": 1,
        "first_slow_hour_utc": day,
        "imbalanced_hours": 0,
        "load_known_hours": 0,
        "drive_count": 1,
        **nothing,
    }


def shared_enclosures(fleet: Fleet) -> set[tuple[str, str]]:
    """(site, enclosure) that several hosts name, of which no two had drives in one slot in the same hours."""
    hosts: dict[tuple[str, str], set[str]] = defaultdict(set)
    stays: dict[tuple[str, str, str], dict[str, list[datetime]]] = defaultdict(lambda: defaultdict(list))
    for drive in fleet.drives():
        site, enclosure, host, slot = (fleet.attribute(drive, name) for name in ("site", "enclosure", "host", "slot"))
        if None not in (site, enclosure, host):
            hosts[site, enclosure].add(host)
            if slot is not None:
                stays[site, enclosure, slot][host] += fleet.hours_of_drive.get(drive, [])
    clashing = set()
    for (site, enclosure, _), hours_of in stays.items():
        for one, other in combinations([hours for hours in hours_of.values() if hours], 2):
            if min(one) <= max(other) and min(other) <= max(one):
                clashing.add((site, enclosure))
    return {place for place, named in hosts.items() if len(named) > 1} - clashing


def enclosure_of(fleet: Fleet, drive: str, shared: set[tuple[str, str]]) -> str | None:
    """The enclosure of a drive by a name that is no other's: the site's where hosts share it or are not known, else the host's."""
    site, enclosure, host = (fleet.attribute(drive, name) for name in ("site", "enclosure", "host"))
    if enclosure is None:
        return None
    within = site if (site, enclosure) in shared else host or site
    return enclosure if within is None else f"{within}/{enclosure}"


Crowd = tuple[str, str, list[Record]]


def crowds_of(alerts: list[Record], place_type: str, place_of: Callable[[str], str | None]) -> list[Crowd]:
    """(place type, place, its alerts) where three drives raised theirs within 24 hours, with all that followed within 24."""
    of_place: dict[str, list[Record]] = defaultdict(list)
    for alert in sorted(alerts, key=lambda alert: alert["raised_at"]):
        place = place_of(alert["subject_id"])
        if place is not None:
            of_place[place].append(alert)
    runs = [(place_type, place, run) for place, members in of_place.items() for run in runs_within(members, "raised_at")]
    return [crowd for crowd in runs if first_of_three([alert["raised_at"] for alert in crowd[2]]) is not None]


def ids_of(crowd: Crowd) -> set[str]:
    """The alerts of a crowd."""
    return {alert["alert_id"] for alert in crowd[2]}


def places_told_of(fleet: Fleet, acute: list[Record]) -> list[Crowd]:
    """Enclosures that hold most of what their hosts' crowds hold; then hosts, by the alerts that are left."""
    shared = shared_enclosures(fleet)

    def host_of(drive: str) -> str | None:
        return fleet.attribute(drive, "host")

    of_hosts = crowds_of(acute, "host", host_of)
    told = []
    for crowd in crowds_of(acute, "enclosure", lambda drive: enclosure_of(fleet, drive, shared)):
        own = ids_of(crowd)
        around = own.union(*[ids_of(other) for other in of_hosts if own & ids_of(other)])
        if 2 * len(own) > len(around):
            told.append(crowd)
    taken = set().union(*[ids_of(crowd) for crowd in told])
    return told + crowds_of([alert for alert in acute if alert["alert_id"] not in taken], "host", host_of)


def incidents_of(places: list[Crowd]) -> list[Incident]:
    """The crowds of a place, joined while they come back: (place type, place, its crowds of episodes)."""
    of_place: dict[tuple[str, str], list[list[Record]]] = defaultdict(list)
    for place_type, place_id, episodes in places:
        of_place[place_type, place_id].append(episodes)
    return [
        (place[0], place[1], incident)
        for place, crowds in of_place.items()
        for incident in joined_episodes(sorted(crowds, key=lambda crowd: crowd[0]["raised_at"]), "first", "last")
    ]


def together_alerts(fleet: Fleet, acute: list[Record]) -> list[Record]:
    """One for every incident of a place: it stands for each alert half of whose episodes are of it, if these are three drives'."""
    own = {episode["alert_id"]: alert for alert in acute for episode in alert["episodes"]}
    incidents = incidents_of(places_told_of(fleet, [episode for alert in acute for episode in alert["episodes"]]))
    counted = [Counter(own[episode["alert_id"]]["alert_id"] for crowd in crowds for episode in crowd) for _, _, crowds in incidents]
    members: dict[int, list[Record]] = defaultdict(list)
    for alert in acute:
        # most episodes, then the enclosure's, then the latest
        best = max(range(len(incidents)), key=lambda n: (counted[n][alert["alert_id"]], incidents[n][0] == "enclosure", n), default=None)
        if best is not None and counted[best][alert["alert_id"]] and 2 * counted[best][alert["alert_id"]] >= alert["episode_count"]:
            members[best].append(alert)
    together = []
    for number, alerts in members.items():
        if len({alert["subject_id"] for alert in alerts}) < 3:
            continue
        place_type, place_id, crowds = incidents[number]
        raised = [at for crowd in crowds if (at := first_of_three([episode["raised_at"] for episode in crowd])) is not None]
        groups = {alert["raid_group_id"] for alert in alerts}
        is_over = all(alert["cleared_at"] for alert in alerts)
        nothing = dict.fromkeys(("median_slowdown", "worst_hour_utc", "latency_us", "median_latency_us", "part_of", "despite_work"))
        together.append(
            {
                "alert_id": f"{place_type} {place_id} together {raised[0]}",
                "subject_type": place_type,
                "subject_id": place_id,
                "reason": "together",
                "raid_group_id": groups.pop() if len(groups) == 1 else None,
                "raised_at": raised[0],
                "cleared_at": max(alert["cleared_at"] for alert in alerts) if is_over else None,
                "episode_count": len(crowds),
                "reopened_at": reopened_at(crowds, "first", "last", raised),
                "first_slow_hour_utc": min(alert["first_slow_hour_utc"] for alert in alerts),
                "last_slow_hour_utc": max(alert["last_slow_hour_utc"] for alert in alerts),
                "slow_hours": sum(alert["slow_hours"] for alert in alerts),
                "imbalanced_hours": sum(alert["imbalanced_hours"] for alert in alerts),
                "load_known_hours": sum(alert["load_known_hours"] for alert in alerts),
                "drive_count": len({alert["subject_id"] for alert in alerts}),
                "max_slowdown": max(alert["max_slowdown"] for alert in alerts),
                **nothing,
            }
        )
        for alert in alerts:
            alert["part_of"] = together[-1]["alert_id"]
    return together


def lasts_as_long(acute: Record, chronic: Record) -> bool:
    """Whether a drive's acute alert is open, or was until its chronic one was over."""
    if acute["subject_id"] != chronic["subject_id"]:
        return False
    if acute["cleared_at"] is None:
        return True
    return chronic["cleared_at"] is not None and acute["raised_at"] <= chronic["cleared_at"] <= acute["cleared_at"]


def fct_slow_alerts(fleet: Fleet, drive_hours: list[Record], raid_hours: list[Record]) -> list[Record]:
    """The acute alerts, and one for every place that is told of, which stands for its drives'. Those of whole groups and chronic drives."""
    acute = acute_alerts(fleet, drive_hours, raid_hours)
    together = together_alerts(fleet, acute)
    chronic = chronic_alerts(fleet, slowdowns_by_drive(drive_hours, "judged_slowdown"), raid_hours)
    for alert in chronic:
        lasting = [one for one in acute if lasts_as_long(one, alert)]
        if lasting:
            latest = max(lasting, key=lambda one: one["raised_at"])
            alert["part_of"] = latest["part_of"] or latest["alert_id"]
    return acute + together + whole_group_alerts(fleet, raid_hours) + chronic


# --------------------------------------------------------------------------------------------------------------------
# Dimensions


def dim_drives(fleet: Fleet) -> list[Record]:
    copied = ("vendor", "model", "firmware", "flash_cell", "capacity_bytes", "rpm", "interface", "host", "deployed_on")
    result = []
    for drive in fleet.drives():
        hours = fleet.hours_of_drive.get(drive, [])
        result.append(
            {
                "drive_id": drive,
                "kind": fleet.kind(drive),
                **{column: fleet.attribute(drive, column) for column in copied},
                # > first_hour_utc, last_hour_utc (of its accepted rows)
                "first_hour_utc": min(hours, default=None),
                "last_hour_utc": max(hours, default=None),
                "current_raid_group_id": fleet.current_group(drive),
            }
        )
    return result


def group_raid_level(fleet: Fleet, group: str) -> str | None:
    """The level of the group's latest period that names one."""
    named = [period for period in fleet.periods if period["raid_group_id"] == group and period["raid_level"] is not None]
    latest = max(named, key=lambda period: (latest_order(period), sortable(period["raid_level"])), default=None)
    return None if latest is None else latest["raid_level"]


def dim_raid_groups(fleet: Fleet, raid_hours: list[Record]) -> list[Record]:
    """> (every group of a row or a period)"""
    groups = {row["raid_group_id"] for row in fleet.rows.values()} | {period["raid_group_id"] for period in fleet.periods}
    result = []
    for group in groups:
        valid = [record for record in raid_hours if record["raid_group_id"] == group]
        hours = [record["hour_utc"] for record in valid]
        # > data_drive_count (modal N over its valid RAID-hours, ties to the larger)
        widths = Counter(record["data_drive_count"] for record in valid)
        result.append(
            {
                "raid_group_id": group,
                "kind": fleet.group_kind(group),
                "raid_level": group_raid_level(fleet, group),
                "data_drive_count": max(widths, key=lambda width: (widths[width], width), default=None),
                "first_hour_utc": min(hours, default=None),
                "last_hour_utc": max(hours, default=None),
                # metrics 3.6: (last hour - first hour + 1 h) / 24 h
                "duration_days": (hours_between(max(hours), min(hours)) + 1) / 24.0 if hours else None,
            }
        )
    return result


# --------------------------------------------------------------------------------------------------------------------


def land(folders: list[Path]) -> Landed:
    landed = Landed()
    for folder in folders:
        landed.take(folder)
    return landed


def timezones(folders: list[Path]) -> dict[str, str | None]:
    """{drive: the time zone of its latest period}, which no mart carries and the study's time of day needs."""
    fleet = Fleet(land(folders))
    return {drive: fleet.attribute(drive, "timezone") for drive in fleet.drives()}


def compute(folders: list[Path]) -> dict[str, list[Record]]:
    """Every relation the contract defines (but study_* and publication) after these bundle folders, in the order ingested.

    -> {relation: rows sorted by key}; a row has the contract's columns, and what alerts and the study are made of.
    """
    landed = land(folders)
    fleet = Fleet(landed)
    drive_hours = fct_drive_hours(fleet)
    raid_hours = fct_raid_hours(fleet, drive_hours)
    slowdowns = slowdowns_by_drive(drive_hours)
    intervals = fct_slowdown_intervals(fleet, slowdowns)
    relations = {
        "dim_drives": dim_drives(fleet),
        "dim_raid_groups": dim_raid_groups(fleet, raid_hours),
        "fct_drive_hours": drive_hours,
        "fct_raid_hours": raid_hours,
        "fct_slowdown_intervals": intervals,
        "fct_slowdown_arrivals": fct_slowdown_arrivals(fleet, slowdowns),
        "fct_drive_slowness": fct_drive_slowness(fleet, slowdowns, raid_hours),
        "fct_drive_transitions": fct_drive_transitions(fleet, slowdowns),
        "fct_drive_events": fct_drive_events(fleet, slowdowns),
        "fct_unplug_episodes": fct_unplug_episodes(fleet, slowdowns, intervals),
        "fct_drive_replacements": fct_drive_replacements(fleet, raid_hours),
        "fct_slow_alerts": fct_slow_alerts(fleet, drive_hours, raid_hours),
        "rejected_records": landed.rejected,
        "ingested_files": landed.files,
    }
    for name, rows in relations.items():
        rows.sort(key=lambda row: tuple(sortable(row[column]) for column in KEYS[name]))
    return relations

"""Random small fleets full of edge cases, and their delivery as bundles in several orders.

`random_fleet(seed)` makes the records, `deliveries(fleet, how, folder, rng)` writes them as bundle folders. All latencies are
microseconds, all instants naive UTC datetimes. Only the standard library decides anything; pyarrow writes Parquet.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import random
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .reference import HOUR, SCHEMAS, floor_hour

Record = dict[str, Any]
Records = tuple[list[Record], list[Record], list[Record]]  # (drive_hours, drives, drive_events)
KINDS = ("drive_hours", "drives", "drive_events")
FORMATS = ("parquet", "parquet_tz", "csv", "csv.gz", "ndjson")
HOWS = ("at_once", "hourly", "shuffled")
STEP = 250.0  # us; latencies are multiples of it, so that a slowdown of exactly 1.5 or 2.0 occurs
NAN, INF = math.nan, math.inf


@dataclass
class Fleet:
    """The records of a fleet, in the four ways a record can relate to the others.

    Each of base, late and bad is a tuple (drive_hours, drives, drive_events). `late` records conflict with a base record (some win,
    some lose), `bad` ones are rejected, `repeats` are exact copies of base or late ones.
    """

    seed: int
    start: datetime
    hours: int
    base: Records = field(default_factory=lambda: ([], [], []))
    late: Records = field(default_factory=lambda: ([], [], []))
    bad: Records = field(default_factory=lambda: ([], [], []))
    repeats: Records = field(default_factory=lambda: ([], [], []))

    def records(self) -> Records:
        """Everything: (drive_hours, drives, drive_events)."""
        return join(self.base, self.late, self.bad, self.repeats)


def blank(kind: str, **values: Any) -> Record:
    """A record of a kind with these values and nothing else."""
    return dict.fromkeys(SCHEMAS[kind]) | values


def join(*parts: Records) -> Records:
    return tuple([record for part in parts for record in part[kind]] for kind in range(3))  # type: ignore[return-value]


# --------------------------------------------------------------------------------------------------------------------
# Writing

PA_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "timestamp": pa.timestamp("us"),
    "date": pa.date32(),
}
REQUIRED = {
    "drive_hours": ("hour_utc", "drive_id", "raid_group_id", "read_ios", "write_ios", "read_latency_us", "write_latency_us"),
    "drives": ("drive_id", "raid_group_id", "role", "kind"),
    "drive_events": ("occurred_at", "drive_id", "event_type"),
}


def write_bundle(records: Records, folder: Path, format: str) -> Path:
    """Write (drive_hours, drives, drive_events) into a bundle folder, one file per kind that has records.

    Format: parquet, parquet_tz (hour_utc with a zone), csv, csv.gz, ndjson. Where the format cannot hold a value (a text that is no
    hour in Parquet, NaN or infinity in JSON) the file becomes a csv. Optional columns without any value are left out. File names
    hold the folder's name, so they are unique over the deliveries of a fleet; calling again adds files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for kind, rows in zip(KINDS, records, strict=True):
        write_file(kind, rows, folder, format)
    return folder


def write_file(kind: str, rows: list[Record], folder: Path, format: str) -> None:
    if not rows:
        return
    columns = [
        column for column in SCHEMAS[kind] if column in REQUIRED[kind] or any(row.get(column) is not None for row in rows)
    ]  # fmt: skip
    values = [row.get(column) for row in rows for column in columns]
    is_odd_hour = any(isinstance(row.get("hour_utc"), str) for row in rows)
    if format == "ndjson" and any(isinstance(value, float) and not math.isfinite(value) for value in values):
        format = "csv.gz"
    if format.startswith("parquet") and is_odd_hour:
        format = "csv"
    suffix = "parquet" if format == "parquet_tz" else format
    number = sum(1 for path in folder.iterdir() if path.name.startswith(kind)) + 1
    path = folder / f"{kind}_{folder.name}_{number}.{suffix}"
    if suffix == "parquet":
        write_parquet(kind, rows, columns, path, with_zone=format == "parquet_tz")
    elif suffix == "ndjson":
        path.write_text("".join(json_line(row, columns, number) for number, row in enumerate(rows)), encoding="utf-8")
    else:
        content = csv_text(rows, columns, with_zone=format == "csv", with_extra=format == "csv.gz").encode("utf-8")
        path.write_bytes(gzip.compress(content, mtime=0) if format == "csv.gz" else content)


def write_parquet(kind: str, rows: list[Record], columns: list[str], path: Path, with_zone: bool) -> None:
    types = {column: PA_TYPES[SCHEMAS[kind][column]] for column in columns}
    if with_zone and "hour_utc" in types:
        types["hour_utc"] = pa.timestamp("us", tz="UTC")
    pq.write_table(pa.table({column: pa.array([row.get(column) for row in rows], type=types[column]) for column in columns}), path)


def text_of(value: Any, zone: str | None = None) -> str:
    """A value as text that reads back exactly: repr of a double, ISO of an instant (optionally moved to an offset)."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        if zone == "Z":
            return value.isoformat() + "Z"
        if zone == "+05:30":
            return (value + timedelta(hours=5, minutes=30)).isoformat(sep=" ") + zone
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def csv_text(rows: list[Record], columns: list[str], with_zone: bool, with_extra: bool) -> str:
    """CSV; with_zone puts an offset on every 17th hour_utc, with_extra adds a column the contract does not know."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*columns, "note_of_vendor"] if with_extra else columns)
    for number, row in enumerate(rows):
        zone = "+05:30" if with_zone and number % 17 == 3 else None
        cells = [text_of(row.get(column), zone if column == "hour_utc" else None) for column in columns]
        writer.writerow([*cells, f"n{number}"] if with_extra else cells)
    return out.getvalue()


def json_line(row: Record, columns: list[str], number: int) -> str:
    """One JSON line: hour_utc with a Z; every other line leaves its nulls out."""
    cells: Record = {}
    for column in columns:
        value = row.get(column)
        if isinstance(value, (datetime, date)):
            value = text_of(value, "Z" if column == "hour_utc" else None)
        if value is not None or number % 2 == 0:
            cells[column] = value
    return json.dumps(cells, ensure_ascii=False, allow_nan=False) + "\n"


# --------------------------------------------------------------------------------------------------------------------
# Making a fleet


@dataclass
class Drive:
    """A drive while the fleet is made: where it lives hour by hour, and how it behaves."""

    id: str
    group: str  # its first group
    slot: str
    role: str
    kind: str | None
    deployed_on: date | None
    is_merged: bool  # a source that cannot split directions
    is_listed: bool
    moves: list[tuple[int, str]] = field(default_factory=list)  # (hour number, group), what its rows say
    factor: float = 1.0  # the slow episode it is in
    usual: float = 1.0  # its factor outside episodes; 1.2 is exactly the bound of a chronic drive
    presence: float = 0.97  # share of the hours it reports
    slow: list[datetime] = field(default_factory=list)  # hours it was made slow
    attributes: Record = field(default_factory=dict)

    def group_at(self, number: int) -> str:
        return next((to for since, to in reversed(self.moves) if number >= since), self.group)


FACTORS = (1.5, 1.5, 1.75, 2.0, 2.0, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 20.0)
PREFIXES = ("a", "B", "Z", "é")  # bytewise: B < Z < a < é
PLACES = {"vendor": ("Acme", "Zeta"), "model": ("M1", "m2"), "firmware": ("1.0", "2.0b"), "interface": ("SATA", "SAS", "NVMe")}


def _load(drive: Drive, group: str) -> int:
    """How much busier it is than other groups' drives: the first drive of a busy group has little to do there."""
    return 1000 if group == "G-disk" and drive.slot != "0" else 1


class Maker:
    """Fills a Fleet; each method adds one kind of trouble."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"fleet {seed}")
        # draws that came later than the others, of their own so that a seed still means the same fleet
        self.later_rng = random.Random(f"alerts {seed}")
        self.place_rng = random.Random(f"places {seed}")
        self.broken_rng = random.Random(f"broken {seed}")
        rng = self.rng
        self.group_specs = self._group_specs()
        width = sum(spec["width"] for spec in self.group_specs)
        hours = max(30, min(80, rng.randint(1700, 3600) // width))
        self.fleet = Fleet(seed, datetime(2026, 1, 5) + rng.randint(0, 30) * HOUR, hours)
        self.start, self.hours = self.fleet.start, hours
        self.drives: list[Drive] = []
        self.rows, self.inventory, self.events = self.fleet.base

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def make(self) -> Fleet:
        self._drives()
        self._moves()
        self._drive_hours()
        self._old_hours()
        self._inventory()
        self._events()
        self._late_hours()
        self._bad()
        for kind, share in enumerate((0.02, 0.05, 0.1)):
            known = self.fleet.base[kind] + self.fleet.late[kind]
            self.fleet.repeats[kind].extend(dict(self.rng.choice(known)) for _ in range(int(share * len(known)) + 1))
        self._maintenance()
        self._past_weeks()
        self._faster_once()
        self._wide_group()
        return self.fleet

    # ---- groups and drives

    def _group_specs(self) -> list[Record]:
        """3 to 6 groups: always one of width 2, one of mixed kind and one without inventory."""
        rng = self.rng
        specs: list[Record] = [
            {"id": "G-mixed", "width": rng.randint(4, 7), "kind": "mixed", "listed": True},
            {"id": "g-unlisted", "width": rng.randint(3, 6), "kind": "disk", "listed": False},
            {"id": "G-two", "width": 2, "kind": rng.choice(("disk", "ssd")), "listed": True},
            {"id": "G-disk", "width": rng.choice((5, 7, 8, 9)), "kind": "disk", "listed": True},
            {"id": "h-ssd", "width": rng.choice((4, 6, 8)), "kind": "ssd", "listed": True},
            {"id": "G-odd", "width": rng.choice((3, 5)), "kind": rng.choice(("disk", "ssd")), "listed": True},
        ]
        specs = specs[: rng.choice((4, 5, 5, 6, 6))]
        for spec in specs:
            spec["base"] = rng.choice((500.0, 1000.0, 1000.0, 2000.0))
        return specs

    def _drives(self) -> None:
        rng = self.rng
        for spec in self.group_specs:
            for number in range(spec["width"]):
                self._drive(spec, number, "data")
            if spec["width"] > 3:
                for role in ("parity_p", "parity_q", "spare"):
                    if self.chance(0.6):
                        self._drive(spec, 20 + len(self.drives), role)
        # drives of listed groups that inventory does not know
        listed = [drive for drive in self.drives if drive.is_listed and drive.role == "data"]
        for drive in rng.sample(listed, 2):
            drive.is_listed = False
        # chronic candidates: always a little late; one of them reports about half of the hours
        usual, wide = (1.2, 1.25, 1.2), [drive for drive in self.drives if drive.role == "data" and drive.group != "G-two"]
        for drive, factor, presence in zip(rng.sample(wide, 3), usual, (0.97, 0.97, 0.5), strict=True):
            drive.usual = drive.factor = factor
            drive.presence = presence

    def _drive(self, spec: Record, number: int, role: str) -> Drive:
        rng = self.rng
        kind = rng.choice(("disk", "ssd")) if spec["kind"] == "mixed" else spec["kind"]
        if self.chance(0.06):
            kind = None
        drive = Drive(
            id=f"{rng.choice(PREFIXES)}{spec['id']}{number:02d}",
            group=spec["id"],
            slot=str(number),
            role=role,
            kind=kind,
            deployed_on=self._deployed_on(),
            is_merged=self.chance(0.12),
            is_listed=spec["listed"],
            attributes={name: rng.choice((None, *choices)) for name, choices in PLACES.items()},
        )
        if spec["kind"] == "ssd" and drive.attributes["interface"] == "NVMe":  # one kind of peers but in G-mixed
            drive.attributes["interface"] = "SATA"
        drive.attributes |= {
            "capacity_bytes": rng.choice((None, 4_000_000_000_000, 960_197_124_096)),
            "rpm": 7200 if kind == "disk" else None,
            "flash_cell": rng.choice((None, "SLC", "MLC")) if kind == "ssd" else None,
            "raid_level": rng.choice((None, "raid5", "raid6", "RAID-DP")),
            "host": rng.choice((None, "host1")),
            "enclosure": self.later_rng.choice((None, "host1", "e1", "e1", "e1")),
            "site": self.place_rng.choice((None, "s1", "s1")),
        }
        if drive.attributes["host"] is not None:
            drive.attributes["host"] = self.place_rng.choice(("host1", "host1", "host2"))
        if self.place_rng.random() < 0.4:  # in no other group's slots
            drive.attributes["enclosure"] = f"e-{spec['id']}"
        self.drives.append(drive)
        return drive

    def _deployed_on(self) -> date | None:
        """Unknown, in the future, or such that a year (365.25 days) or day 0 falls into the fleet's hours."""
        rng = self.rng
        first = self.start.date() + timedelta(days=rng.randint(0, 2))
        return rng.choice(
            (
                None,
                first - timedelta(days=366),
                first - timedelta(days=365),
                first - timedelta(days=731),
                first - timedelta(days=1461),
                first,
                first + timedelta(days=1),
                first + timedelta(days=400),
                first - timedelta(days=rng.randint(1, 4000)),
            )
        )

    def _moves(self) -> None:
        """Drives whose rows change group; `_inventory` decides whether inventory follows."""
        rng = self.rng
        groups = [spec["id"] for spec in self.group_specs]
        for drive in rng.sample([drive for drive in self.drives if drive.role == "data"], 4):
            at = rng.randint(self.hours // 4, 3 * self.hours // 4)
            other = rng.choice([group for group in groups if group != drive.group])
            drive.moves.append((at, other))
            if self.chance(0.3):  # a visit of an hour or two
                drive.moves.append((at + rng.randint(1, 2), drive.group))

    # ---- drive hours

    def _drive_hours(self) -> None:
        silent_hour = self.rng.randrange(3, self.hours - 3)
        for number in range(self.hours):
            modes = {spec["id"]: self._mode() for spec in self.group_specs}
            for drive in self.drives:
                self._advance(drive)
                mode = modes[drive.group_at(number)]
                if number == silent_hour or mode == "silent" or not self.chance(drive.presence):
                    continue
                self.rows.append(self._row(drive, number, mode))

    def _mode(self) -> str:
        return self.rng.choices(("normal", "rough", "zero", "idle", "silent", "zero_reads"), (80, 8, 4, 3, 3, 2))[0]

    def _advance(self, drive: Drive) -> None:
        """Slow episodes persist: p = 0.7 to stay, with the factor sometimes changing inside."""
        if drive.factor > drive.usual:
            if self.chance(0.3):
                drive.factor = drive.usual
            elif self.chance(0.3):
                drive.factor = self.rng.choice(FACTORS)
        elif self.chance(0.06):
            drive.factor = self.rng.choice(FACTORS)

    def _base_latency(self, group: str) -> float:
        return next(spec["base"] for spec in self.group_specs if spec["id"] == group)

    def _latency(self, drive: Drive, group: str, mode: str) -> float:
        latency = self._base_latency(group) * drive.factor
        if mode == "rough":
            latency *= self.rng.uniform(0.7, 1.6)
            # a broken counter reports impossible latencies; in nanoseconds the larger one overflows a bigint
            return self.broken_rng.choice((1e10, 9.5e15)) if self.broken_rng.random() < 0.02 else latency
        if mode == "zero":
            return 0.0 if self.chance(0.75) else latency
        return latency if self.chance(0.75) or drive.usual > 1.0 else max(0.0, latency + self.rng.choice((-STEP, STEP)))

    def _row(self, drive: Drive, number: int, mode: str) -> Record:
        rng = self.rng
        h = self.start + number * HOUR
        group = drive.group_at(number)
        row = blank("drive_hours", hour_utc=h, drive_id=drive.id, raid_group_id=group)
        if drive.factor >= 1.5:
            drive.slow.append(h)
        if drive.is_merged or self.chance(0.02):
            self._fill_merged(row, drive, group, mode)
        else:
            self._fill_split(row, drive, group, mode)
        if self.chance(0.1):
            row["coverage"] = rng.choice((0.0, 0.1, 0.4999999, 0.5, 0.9, 1.0, 1.0))
        if not self.chance(0.1):
            row["collected_at"] = h + HOUR + timedelta(minutes=rng.randint(0, 50))
        return row

    def _count(self, mode: str) -> int:
        if mode == "idle" and self.chance(0.8):
            return 0
        return self.rng.choice((1, 3, 60, 100, 100, 150, 200, 200, 250, 300, self.rng.randint(1, 5000)))

    def _fill_split(self, row: Record, drive: Drive, group: str, mode: str) -> None:
        rng = self.rng
        reads, writes = (self._count(mode) * _load(drive, group) for _ in range(2))
        idle = rng.choices(("none", "reads", "writes", "both"), (78, 9, 9, 4))[0]
        reads = 0 if idle in ("reads", "both") else reads
        writes = 0 if idle in ("writes", "both") else writes
        latency = self._latency(drive, group, mode)
        read_latency = write_latency = latency
        if self.chance(0.25):
            write_latency = self._latency(drive, group, mode)
        if mode == "zero_reads" and self.chance(0.8):
            read_latency = 0.0
        garbage = (None, None, 0.0, NAN, -1.0, INF, 123.25)  # an idle direction may hold anything
        row |= {
            "read_ios": reads,
            "write_ios": writes,
            "read_latency_us": read_latency if reads else rng.choice(garbage),
            "write_latency_us": write_latency if writes else rng.choice(garbage),
        }
        if self.chance(0.5):
            per_io = rng.choice((1, 1, 2, 8, 64))
            row |= {"read_blocks": reads * per_io, "write_blocks": writes * per_io, "block_bytes": rng.choice((None, 512, 4096))}
            if self.chance(0.1):
                row["bytes"] = 12345  # both given: blocks count
            if self.chance(0.1):
                row["read_latency_per_block_us"] = read_latency / per_io
        elif self.chance(0.5):
            row["bytes"] = (reads + writes) * rng.choice((4096, 8192, 5000)) + rng.randint(0, 7)
        if self.chance(0.05):  # split and merged both given: split counts
            row |= {"latency_us": rng.choice((99.5, 77777.0)), "io_count": rng.choice((0, 5, None))}

    def _fill_merged(self, row: Record, drive: Drive, group: str, mode: str) -> None:
        rng = self.rng
        count = None if self.chance(0.3) else 0 if self.chance(0.08) else self._count(mode) * _load(drive, group)
        row["io_count"] = count
        row["latency_us"] = self._latency(drive, group, mode)
        if count == 0:
            row["latency_us"] = rng.choice((None, 55.5, NAN, -3.0))
        elif count is None and self.chance(0.2):
            row["latency_us"] = None  # nothing observed at all
        if self.chance(0.1):
            row["read_latency_us"] = 4321.0  # a direction without a count: nulled
        if self.chance(0.5):
            row["bytes"] = (count or 10) * 4096
        elif self.chance(0.3):
            row |= {"read_blocks": 10 * (count or 1), "write_blocks": 0, "block_bytes": rng.choice((None, 512))}

    def _old_hours(self) -> None:
        """A few hours of one group around 28 days before its last hour, where the chronic window begins."""
        group = self.group_specs[0]["id"]
        edge = self.hours - 1 - 28 * 24
        for number in range(edge - 3, edge + 5):
            for drive in self.drives:
                if drive.group == group and not self.chance(0.1):
                    self._advance(drive)
                    self.rows.append(self._row(drive, number, "normal"))

    def _past_weeks(self) -> None:
        """Some hours of one group at the same hour of some of the four weeks before, and of the fifth."""
        rng = self.later_rng
        group = self.group_specs[3]["id"]
        for number in rng.sample(range(self.hours), 5):
            for weeks in rng.sample(range(1, 6), rng.randint(2, 5)):
                mode = rng.choice(("normal", "normal", "rough", "zero"))
                for drive in self.drives:
                    if drive.group == group and not self.chance(0.1):
                        self.rows.append(self._row(drive, number - weeks * 168, mode))

    def _faster_once(self) -> None:
        """A week before some hours of one group its drives took a half of what they do, or less: then it is slow as a whole."""
        rng = self.later_rng
        group = self.group_specs[0]["id"]
        first = rng.randrange(self.hours - 28)
        for number in rng.sample(range(first, first + 28), 10):
            faster = rng.choice((2, 3, 4))
            for drive in self.drives:
                if drive.group == group:
                    row = self._row(drive, number - 168, "normal")
                    for side in ("read_latency_us", "write_latency_us", "latency_us"):
                        row[side] = row[side] and row[side] / faster
                    self.rows.append(row)

    def _wide_group(self) -> None:
        """A group of twelve, wide enough for an outlier of its standard deviation; one drive is a hundred times as slow for hours."""
        rng = self.later_rng
        first = rng.randrange(self.hours - 26)
        for number in range(first, first + 26):
            for drive in range(12):
                latency = 2000.0 + STEP * rng.choice((0, 0, 0, 1, 1, 2)) if drive else 2000.0 * rng.choice((1, 1, 1.5, 3, 15, 16, 100, 100))
                at = self.start + number * HOUR
                row = blank("drive_hours", hour_utc=at, drive_id=f"w{drive:02d}", raid_group_id="w-wide", latency_us=latency)
                if drive == 1 and rng.random() < 0.1:
                    row["latency_us"] = 200_000.0
                if rng.random() > 0.03:
                    self.rows.append(row)

    # ---- inventory

    def _at(self, number: float) -> datetime:
        """An instant in the hour with this number: at its start, or somewhere in it."""
        minutes = 0 if self.chance(0.4) else self.rng.choice((10, 20, 40, 59))
        return self.start + int(number) * HOUR + timedelta(minutes=minutes)

    def _period(self, drive: Drive, valid_from: datetime | None, valid_to: datetime | None, **changes: Any) -> Record:
        own = {"drive_id": drive.id, "raid_group_id": drive.group, "role": drive.role, "kind": drive.kind, "slot": drive.slot}
        own |= {"deployed_on": drive.deployed_on, "valid_from": valid_from, "valid_to": valid_to}
        own["collected_at"] = self.start - timedelta(days=50) + timedelta(minutes=self.rng.randint(0, 999))
        return blank("drives") | drive.attributes | own | changes

    def _inventory(self) -> None:
        rng = self.rng
        for drive in self.drives:
            if drive.is_listed:
                self._list_drive(drive)
        for spec in self.group_specs:  # drives that never report
            for number in range(rng.choice((0, 1, 1, 2)) if spec["listed"] else 0):
                silent = self._drive(spec, 60 + number, rng.choice(("data", "data", "spare")))
                self.drives.pop()
                since = rng.choice((None, self.start - timedelta(days=90), self._at(rng.randint(0, self.hours))))
                self.inventory.append(self._period(silent, since, None))
        self._corrected_periods()

    def _list_drive(self, drive: Drive) -> None:
        rng = self.rng
        begun = None if self.chance(0.12) else self.start - timedelta(days=rng.randint(30, 400), minutes=rng.randint(0, 300))
        if drive.moves:
            self._list_moved(drive, begun)
            return
        at = rng.randint(3, self.hours - 3)
        match rng.choices(
            ("plain", "ends", "begins", "role", "overlap", "gap", "elsewhere", "no_role"), (60, 5, 5, 6, 6, 6, 4, 4)
        )[0]:  # fmt: skip
            case "plain":
                self.inventory.append(self._period(drive, begun, None))
            case "ends":  # uncovered after: a data drive again
                self.inventory.append(self._period(drive, begun, self._at(at)))
            case "begins":
                self.inventory.append(self._period(drive, self._at(at), None))
            case "role":  # a spare becomes data, or the other way, within an hour
                self.inventory.append(self._period(drive, begun, self._at(at), role=rng.choice(("spare", "data"))))
                self.inventory.append(self._period(drive, self._at(at), None, kind=rng.choice((drive.kind, "ssd", None))))
            case "overlap":  # nothing closed; the latest valid_from decides, both may begin in one hour
                self.inventory.append(self._period(drive, begun, None))
                self.inventory.append(self._period(drive, self.start + at * HOUR + timedelta(minutes=5), None, role="parity_p"))
                self.inventory.append(self._period(drive, self.start + at * HOUR + timedelta(minutes=6), None, role=None))
            case "gap":
                self.inventory.append(self._period(drive, begun, self._at(at)))
                self.inventory.append(self._period(drive, self._at(at + 2), None, deployed_on=self._deployed_on()))
            case "elsewhere":  # inventory names another group; the row wins
                other = rng.choice([spec["id"] for spec in self.group_specs] + ["G-nowhere"])
                self.inventory.append(self._period(drive, begun, None, raid_group_id=other))
            case "no_role":
                self.inventory.append(self._period(drive, begun, None, role=None))

    def _list_moved(self, drive: Drive, begun: datetime | None) -> None:
        at, other = drive.moves[0]
        moment = self._at(at)
        match self.rng.choice(("follows", "late", "overlap", "stays")):
            case "follows":
                self.inventory.append(self._period(drive, begun, moment))
                self.inventory.append(self._period(drive, moment, None, raid_group_id=other, slot="77"))
            case "late":  # inventory follows hours later, and with a role in the old group
                self.inventory.append(self._period(drive, begun, moment + 3 * HOUR))
                self.inventory.append(self._period(drive, moment + 3 * HOUR, None, raid_group_id=other))
            case "overlap":  # both open: the one of the row's group counts
                self.inventory.append(self._period(drive, begun, None))
                self.inventory.append(self._period(drive, moment, None, raid_group_id=other, role=self.rng.choice(("data", "spare"))))
            case "stays":
                self.inventory.append(self._period(drive, begun, None))

    def _corrected_periods(self) -> None:
        """Conflicts of a period: newer and older records, an equal collected_at, a null one."""
        rng = self.rng
        changes: tuple[Record, ...] = (
            {"role": "spare"}, {"role": "data"}, {"kind": "ssd"}, {"kind": None}, {"valid_to": self._at(self.hours // 2)},
            {"raid_group_id": self.group_specs[0]["id"]}, {"deployed_on": self._deployed_on()}, {"raid_level": "raid1"}, {"slot": None},
        )  # fmt: skip
        for period in rng.sample(self.inventory, min(6, len(self.inventory))):
            sent = rng.choice((period["collected_at"] + HOUR, period["collected_at"] - HOUR, period["collected_at"], None))
            self.fleet.late[1].append(period | rng.choice(changes) | {"collected_at": sent})

    # ---- events

    def _event(self, drive_id: str, occurred_at: datetime, event_type: str, **more: Any) -> None:
        event = blank("drive_events", occurred_at=occurred_at, drive_id=drive_id, event_type=event_type)
        if not self.chance(0.2):
            event["collected_at"] = occurred_at + timedelta(minutes=self.rng.randint(1, 90))
        self.events.append(event | more)

    def _near(self, drive: Drive) -> datetime:
        """An instant soon after a slow hour of the drive if it has one, else anywhere; sometimes exactly on the hour."""
        rng = self.rng
        h = rng.choice(drive.slow) + rng.randint(-1, 5) * HOUR if drive.slow else self.start + rng.randrange(self.hours) * HOUR
        return h if self.chance(0.15) else h + timedelta(seconds=rng.randint(1, 3599))

    def _events(self) -> None:
        rng = self.rng
        for drive in self.drives:
            for _ in range(rng.choice((0, 0, 1, 2))):
                kind = rng.choice(
                    ("not_spinning", "not_responding", "response_timeout", "scsi_timeout", "media_error", "rebuild", "scrub",
                     "maintenance", "other", "thermal_trip", "replug", "replacement")
                )  # fmt: skip
                own = rng.choice((None, None, drive.group, "G-elsewhere"))
                self._event(drive.id, self._near(drive), kind, raid_group_id=own, detail=rng.choice((None, 'x,"y"')))
            if self.chance(0.5):
                self._unplug_chain(drive)
        silent = [period["drive_id"] for period in self.inventory if period["drive_id"] not in {drive.id for drive in self.drives}]
        for drive_id in [*silent[:2], "never-seen-1", "never-seen-2"]:  # drives without rows, two without inventory too
            moment = self._at(rng.randrange(self.hours))
            self._event(drive_id, moment, "unplug")
            self._event(drive_id, moment + timedelta(minutes=1), "media_error", raid_group_id=rng.choice((None, "g-unlisted")))
        self._event(self.drives[0].id, self.start - timedelta(days=3, minutes=7), "not_responding")
        for event in rng.sample(self.events, 6):  # conflicts of one event
            sent = rng.choice(
                (event["occurred_at"] + timedelta(days=1), event["occurred_at"] - timedelta(days=1), event["collected_at"], None)
            )
            own = rng.choice((None, "G-disk", "G-late"))
            self.fleet.late[2].append(event | {"collected_at": sent, "raid_group_id": own, "slot": rng.choice((None, "3"))})

    def _unplug_chain(self, drive: Drive) -> None:
        rng = self.rng
        moment = self._near(drive)

        def later(least: float, most: float) -> datetime:
            return moment + timedelta(seconds=round(rng.uniform(least, most) * 3600))

        shape = rng.choice(
            (*["pair"] * 4, "double", "double", "open", "gone", "slot", "swapped", "at_next", "at_own", "twice", "replug", "micro")
        )  # fmt: skip
        if shape != "replug":
            self._event(drive.id, moment, "unplug", slot=rng.choice((None, drive.slot)))
        match shape:
            case "pair" | "replug":
                self._event(drive.id, later(0.01, 9), "replug")
            case "micro":
                self._event(drive.id, later(0.5, 3) + timedelta(microseconds=rng.randint(1, 999_999)), "replug")
            case "double":
                second = later(0.5, 6)
                self._event(drive.id, second, "unplug")
                self._event(drive.id, second + timedelta(minutes=95), "replug")
                self._event(drive.id, second + timedelta(minutes=195), "replug")
            case "gone":  # a replacement of the drive; half of them in the unplug's hour but before it
                self._event(
                    drive.id, rng.choice((floor_hour(moment), later(0, 20), floor_hour(moment) - timedelta(minutes=1))), "replacement"
                )
            case "slot":  # a replacement named by its place, under the new serial
                self._event(f"new-{drive.id}", later(0, 20), "replacement", raid_group_id=drive.group, slot=drive.slot)
            case "swapped":  # another serial's period in the slot, from the unplug's hour on, or from just before it
                since = rng.choice((floor_hour(moment), later(0, 20), floor_hour(moment) - timedelta(minutes=1), None))
                self.inventory.append(self._period(drive, since, None, drive_id=f"new-{drive.id}", role="data"))
            case "at_next":
                second = later(1, 6)
                self._event(drive.id, second, "replug")
                self._event(drive.id, second, "unplug")
            case "at_own":
                self._event(drive.id, moment, "replug")
            case "twice":
                self._event(drive.id, later(1, 3), "replug")
                self._event(drive.id, later(4, 9), "unplug")

    def _maintenance(self) -> None:
        """Planned work on drives around their slow hours: an hour without an end, minutes, most of a day, or up to the hour."""
        rng = self.later_rng
        for drive in rng.sample([drive for drive in self.drives if drive.slow], min(8, len(self.drives) // 3)):
            h = rng.choice(drive.slow)
            begun = h + timedelta(minutes=rng.choice((-60, -30, 0, 20, 59)))
            ended = rng.choice((None, begun + HOUR / 6, max(begun, h), h + HOUR, h + rng.randint(2, 20) * HOUR, begun))
            work = {"drive_id": drive.id, "event_type": "maintenance", "occurred_at": begun, "ended_at": ended, "collected_at": begun}
            self.events.append(blank("drive_events", **work))

    # ---- conflicts, bad rows

    def _late_hours(self) -> None:
        rng = self.rng
        groups = [spec["id"] for spec in self.group_specs]
        late = self.fleet.late[0]
        for row in rng.sample(self.rows, max(20, len(self.rows) // 35)):
            for _ in range(rng.choice((1, 1, 1, 2))):
                sent = row["collected_at"] or row["hour_utc"] + HOUR
                collected_at = rng.choice((sent + 5 * HOUR, sent + HOUR, sent - HOUR, row["collected_at"], None))
                late.append(row | rng.choice(self._corrections(row, groups)) | {"collected_at": collected_at})

    def _corrections(self, row: Record, groups: list[str]) -> list[Record]:
        """Changes that leave the row acceptable."""
        rng = self.rng
        base = self._base_latency(row["raid_group_id"])
        corrections: list[Record] = [
            {"raid_group_id": rng.choice(groups)},
            {"coverage": rng.choice((None, 0.2, 0.8))},
            {"bytes": rng.randint(0, 10**7)},
            {"read_ios": 50, "write_ios": 0, "read_latency_us": base * rng.choice(FACTORS), "write_latency_us": None},
            {"read_ios": 0, "write_ios": 7, "read_latency_us": None, "write_latency_us": base},
            {"read_ios": 0, "write_ios": 0},
        ]
        if row["read_ios"]:
            corrections += [{"read_latency_us": row["read_latency_us"] * 2.0}] * 3
        return corrections

    def _bad(self) -> None:
        """Every way to be rejected, once or twice each; some under the id of a drive that exists nowhere else."""
        rng = self.rng
        good = {"read_ios": 5, "write_ios": 5, "read_latency_us": 1000.0, "write_latency_us": 1000.0, "coverage": None}
        good |= {"read_blocks": None, "write_blocks": None, "latency_us": None, "io_count": None, "bytes": None}
        merged = {"read_ios": None, "write_ios": None, "read_latency_us": None, "write_latency_us": None}
        damage: list[Record] = [
            {"hour_utc": None}, {"drive_id": None}, {"raid_group_id": None}, {"hour_utc": None, "drive_id": None, "read_ios": -1},
            {"hour_utc": "not an hour"}, {"off": timedelta(minutes=30)}, {"off": timedelta(microseconds=1)},
            {"read_ios": -1}, {"write_ios": -5, "read_latency_us": NAN}, {"read_ios": None}, {"write_ios": None, "coverage": 2.0},
            {"read_latency_us": NAN}, {"read_latency_us": INF}, {"write_latency_us": -INF}, {"write_latency_us": -0.5},
            {"read_latency_us": None}, {"write_latency_us": None, "read_blocks": -1, "write_blocks": 1},
            {"read_blocks": -1, "write_blocks": 1}, {"read_blocks": 3}, {"write_blocks": 3}, {"bytes": -1},
            {"coverage": 1.5}, {"coverage": -0.1}, {"coverage": NAN}, {"io_count": -1},
            {**merged, "io_count": 5}, {**merged, "io_count": 5, "latency_us": NAN}, {**merged, "latency_us": NAN},
            {**merged, "latency_us": INF}, {**merged, "latency_us": -1.0}, {**merged, "io_count": -5, "latency_us": 1.0},
        ]  # fmt: skip
        for number, changes in enumerate(damage):
            row = rng.choice(self.rows) | good | ({"drive_id": f"bad-{number}"} if self.chance(0.3) else {}) | changes
            if "off" in row:
                row["hour_utc"] += row.pop("off")
            self.fleet.bad[0].append(row)
        self.fleet.bad[1].append(self.inventory[0] | {"drive_id": None})
        self.fleet.bad[1].append(self.inventory[1] | {"raid_group_id": None, "drive_id": "bad-inventory"})
        self.fleet.bad[2].append(self.events[0] | {"drive_id": None})
        self.fleet.bad[2].append(self.events[1] | {"occurred_at": None, "drive_id": "bad-event"})
        begun = self.fleet.start + 5 * HOUR
        for valid_to in (begun, begun - timedelta(microseconds=1)):
            self.fleet.bad[1].append(self.inventory[2] | {"drive_id": "bad-period", "valid_from": begun, "valid_to": valid_to})
        self.fleet.bad[2].append(self.events[2] | {"ended_at": self.events[2]["occurred_at"] - timedelta(microseconds=1)})


def random_fleet(seed: int) -> Fleet:
    """A small fleet (some thousand drive-hours) with every edge the contract speaks of; the same seed gives the same fleet."""
    return Maker(seed).make()


# --------------------------------------------------------------------------------------------------------------------
# Deliveries


def deliveries(fleet: Fleet, how: str, folder: Path, rng: random.Random) -> tuple[list[Path], list[int]]:
    """Write the fleet as bundles below `folder`.

    how: 'at_once' (one bundle, several files per kind), 'hourly' (inventory first, then a bundle per few hours with the events of
    them, corrections some bundles later), 'shuffled' (rows in random order over many bundles, corrections after, inventory last,
    events twice). -> (bundle folders in the order of ingest, indexes of folders after which a build should be run; the last always).
    All three hold the same records but for exact repeats; bad records are in each exactly once.
    """
    makers = {"at_once": _at_once, "hourly": _hourly, "shuffled": _shuffled}
    bundles = [bundle for bundle in makers[how](fleet, rng) if any(bundle)]
    folders = [_write(bundle, folder / f"{how}_{number:03d}", rng) for number, bundle in enumerate(bundles)]
    builds = sorted({*rng.sample(range(len(folders)), min(3, len(folders))), len(folders) - 1})
    return folders, builds


def _write(bundle: Records, folder: Path, rng: random.Random) -> Path:
    """One bundle; each kind in a format of its own, big ones split over several files and formats."""
    folder.mkdir(parents=True)
    for kind, rows in zip(KINDS, bundle, strict=True):
        parts = 3 if len(rows) > 600 else 1
        for part in range(parts):
            write_file(kind, rows[part::parts], folder, rng.choice(FORMATS))
    return folder


def _shuffle(rows: list[Record], rng: random.Random) -> list[Record]:
    return rng.sample(rows, len(rows))


def _at_once(fleet: Fleet, rng: random.Random) -> list[Records]:
    hours, drives, events = fleet.records()
    return [(_shuffle(hours, rng), _shuffle(drives, rng), _shuffle(events, rng))]


def _when(fleet: Fleet, record: Record) -> datetime:
    """The hour a row or an event belongs to; bad ones without an hour go with the first."""
    instant = record.get("hour_utc") or record.get("occurred_at")
    return floor_hour(instant) if isinstance(instant, datetime) else fleet.start


def _hourly(fleet: Fleet, rng: random.Random) -> list[Records]:
    bundles: list[Records] = [([], fleet.base[1] + fleet.bad[1], [])]
    plain = join(fleet.base, fleet.bad)
    stamps = sorted({_when(fleet, record) for kind in (0, 2) for record in plain[kind]})
    number_of: dict[datetime, int] = {}
    at = 0
    while at < len(stamps):  # a bundle per hour, or per few
        width = rng.choice((1, 1, 2, 4, 6, 8))
        for stamp in stamps[at : at + width]:
            number_of[stamp] = len(bundles)
        bundles.append(([], [], []))
        at += width
    for kind in (0, 2):
        for record in plain[kind]:
            bundles[number_of[_when(fleet, record)]][kind].append(record)
    # corrections and repeats come with the same bundle or a later one
    for part, share in ((fleet.late, 1.0), (fleet.repeats, 0.5)):
        for kind in range(3):
            for record in part[kind]:
                if rng.random() < share:
                    first = 1 if kind == 1 else number_of.get(_when(fleet, record), 1)
                    bundles[min(len(bundles) - 1, first + rng.choice((0, 0, 1, 5)))][kind].append(record)
    return bundles


def _shuffled(fleet: Fleet, rng: random.Random) -> list[Records]:
    count = rng.randint(5, 9)
    hours = _shuffle(fleet.base[0] + fleet.bad[0], rng)
    events = _shuffle(fleet.base[2] + fleet.late[2], rng)
    bundles: list[Records] = [(hours[number::count], [], events[number::count]) for number in range(count)]
    bundles[rng.randrange(count)][2].extend(fleet.bad[2])
    late = _shuffle(fleet.late[0], rng)
    bundles.append((late[::2] + rng.sample(fleet.repeats[0], len(fleet.repeats[0]) // 3), [], []))
    bundles.append((late[1::2], [], _shuffle(events, rng)))  # the events once more
    bundles.append(([], _shuffle(join(fleet.base, fleet.late, fleet.bad)[1], rng), []))
    return bundles

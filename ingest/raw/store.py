"""Contents of `WAREHOUSE/raw`: immutable folders, of one delivery each or of several that were packed (docs/decisions/0001-raw-store.md).

staging.py writes the first, packing.py the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from ingest.contract.errors import StoreError
from ingest.raw.durable import remove_folder

_HOUR = r"\d{4}-\d\d-\d\dT\d\d"
_FOLDER = re.compile(rf"(\d{{6,}})(?:-(\d{{6,}}))?\.(?:no-hours|({_HOUR})\.({_HOUR}))(?:\.(\d+)(\.gaps)?)?")
_DAY_FILE = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.\d+)?(?:\.[a-z][a-z-]*)?\.parquet")

NAMED = 10
"""Deliveries that a sentence names."""


PACKED = "deliveries.parquet"
"""In a pack: what its deliveries' own files said of them, a row each."""
GATES = "gates.parquet"
"""In a pack: what the gate found, a row for each delivery that it looked at."""


@dataclass(frozen=True, order=True)
class Folder:
    """A folder of raw: one delivery, of level 0, or a pack of those from `seq` to `last_seq`, without some where it has gaps.

    The hours are those of its stored drive-hours, null when it holds none.
    """

    seq: int
    first_hour: datetime | None
    last_hour: datetime | None
    path: Path
    last_seq: int
    level: int = 0
    has_gaps: bool = False

    def overlaps(self, first: datetime, last: datetime) -> bool:
        """Whether its drive-hours may be in the closed range of hours [first, last]."""
        return self.first_hour is not None and self.last_hour is not None and self.first_hour <= last and first <= self.last_hour

    def packed(self, *columns: str) -> list[tuple[Any, ...]]:
        """Some columns of its deliveries, for a pack, in order of number."""
        import pyarrow.parquet as pq  # here: few readers of raw need it

        found = pq.read_table(self.path / PACKED, columns=list(columns), partitioning=None)
        return list(zip(*(found[name].to_pylist() for name in columns), strict=True))

    def deliveries(self) -> list[Delivery]:
        """The deliveries in it."""
        if not self.level:
            return [Delivery(self.seq, self.first_hour, self.last_hour, self.path)]
        rows = self.packed("delivery_seq", "first_hour", "last_hour", "digest", "source", "committed_at")
        return [Delivery(seq, first, last, self.path, Said(*said)) for seq, first, last, *said in rows]

    def numbers(self) -> Iterable[int]:
        """The numbers of the deliveries in it."""
        return [seq for (seq,) in self.packed("delivery_seq")] if self.has_gaps else range(self.seq, self.last_seq + 1)


@dataclass(frozen=True)
class Said:
    """A packed delivery in short: what is asked of many at once."""

    digest: str
    source: str
    committed_at: str


@dataclass(frozen=True, order=True)
class Delivery:
    """A committed delivery; the hours are those of its stored drive-hours, null when it holds none. `path`: the folder that it is in."""

    seq: int
    first_hour: datetime | None
    last_hour: datetime | None
    path: Path
    said: Said | None = field(default=None, compare=False)

    def overlaps(self, first: datetime, last: datetime) -> bool:
        """Whether its drive-hours may be in the closed range of hours [first, last]."""
        return self.first_hour is not None and self.last_hour is not None and self.first_hour <= last and first <= self.last_hour

    def record(self) -> dict[str, Any]:
        """Its record from when it landed: `delivery.json`."""
        record: dict[str, Any] = json.loads(self._packed("record") if self.said else (self.path / "delivery.json").read_bytes())
        return record

    def _packed(self, column: str) -> Any:
        import pyarrow.parquet as pq

        table = pq.read_table(self.path / PACKED, columns=[column], filters=[("delivery_seq", "=", self.seq)], partitioning=None)
        return table[column][0].as_py()

    @property
    def source(self) -> str:
        """The source that it was ingested as."""
        return self.said.source if self.said else str(self.record()["source"])

    @property
    def committed_at(self) -> datetime:
        """When it landed, UTC."""
        return datetime.fromisoformat(self.said.committed_at if self.said else self.record()["committed_at"])

    def digest(self) -> str:
        """Tells it from another delivery that landed under its number, for example after raw was restored from an older copy."""
        if self.said:
            return self.said.digest
        try:
            # the record holds the given paths, the row counts and the landing time to the microsecond
            return hashlib.sha256((self.path / "delivery.json").read_bytes()).hexdigest()[:16]
        except FileNotFoundError:
            return ""


def folder_name(first: int, last: int, hours: Sequence[datetime | None], level: int = 0, *, has_gaps: bool = False) -> str:
    """The name of a folder of raw; see Folder."""
    # strftime does not pad a year below 1000
    span = ".".join(hour.isoformat()[:13] for hour in hours if hour) or "no-hours"
    return f"{first:06d}-{last:06d}.{span}.{level}{'.gaps' if has_gaps else ''}" if level else f"{first:06d}.{span}"


def raw_root(warehouse: Path) -> Path:
    """Path of a warehouse's raw store."""
    return Path(warehouse) / "raw"


def require_plain_path(warehouse: Path) -> None:
    """Check that a build can read a warehouse in this place. Raises: StoreError."""
    if set("*?[") & set(str(Path(warehouse).resolve())):
        raise StoreError(f"{warehouse}: DuckDB reads *, ? and [ in a path as a pattern; name a folder without them; nothing has changed")


def list_folders(warehouse: Path, *, place: str = "deliveries") -> list[Folder]:
    """Every folder of raw that counts, in order of number, from the names alone (one scan of one folder).

    Of folders that hold a delivery of the same number the one of the greatest level counts; the others are what it was made of.
    place: `dropped` for deliveries that an operator took back after they had landed.
    """
    return _folders(warehouse, place)[0]


def remove_replaced(warehouse: Path, older_than_seconds: float, shown: Collection[str] = ()) -> None:
    """Remove the folders that packs were made of, but those that a publication shows (by name), and young ones: a command that reads raw
    may have begun with them.
    """
    root = raw_root(warehouse)
    for name in _folders(warehouse, "deliveries")[1]:
        if name not in shown and time.time() - (root / "deliveries" / name).lstat().st_ctime > older_than_seconds:
            remove_folder(root / "deliveries" / name, root / ".staging")


def _folders(warehouse: Path, place: str) -> tuple[list[Folder], list[str]]:
    """The folders that count, and the names of those that do not. Most names are only looked at: there may be many of what was packed."""
    root = raw_root(warehouse) / place
    try:
        matches = [match for name in os.listdir(root) if (match := _FOLDER.fullmatch(name))]
    except FileNotFoundError:
        return [], []
    packs: list[Folder] = []
    for each in sorted((_folder(root, match) for match in matches if match[2]), key=lambda each: (-each.level, each.seq)):
        if not any(each.seq <= other.last_seq and other.seq <= each.last_seq for other in packs):
            packs.append(each)
    packs.sort(key=lambda each: each.seq)
    begins, held = [each.seq for each in packs], {each.seq: set(each.numbers()) for each in packs if each.has_gaps}
    live, names = list(packs), {each.path.name for each in packs}
    for match in matches:
        if not match[2]:
            seq = int(match[1])
            at = bisect_right(begins, seq) - 1
            if at < 0 or seq > packs[at].last_seq or (packs[at].has_gaps and seq not in held[packs[at].seq]):
                live.append(_folder(root, match))
                names.add(match[0])
    return sorted(live, key=lambda each: (each.seq, each.level)), [match[0] for match in matches if match[0] not in names]


def _folder(root: Path, match: re.Match[str]) -> Folder:
    seq, last, first_hour, last_hour, level, gaps = match.groups()
    begin, end = (datetime.fromisoformat(text) if text else None for text in (first_hour, last_hour))
    return Folder(int(seq), begin, end, root / match[0], int(last or seq), int(level or 0), bool(gaps))


def list_deliveries(warehouse: Path, *, place: str = "deliveries") -> list[Delivery]:
    """Every committed delivery in order of sequence number. See list_folders()."""
    return sorted(each for folder in list_folders(warehouse, place=place) for each in folder.deliveries())


def find_delivery(folders: Iterable[Folder], seq: int) -> Delivery | None:
    """A delivery by number."""
    within = (folder for folder in folders if folder.seq <= seq <= folder.last_seq)
    return next((each for folder in within for each in folder.deliveries() if each.seq == seq), None)


def deliveries_but(folders: Iterable[Folder], known: Container[int]) -> Iterator[Delivery]:
    """The deliveries but the known ones, in order of number."""
    within = (folder for folder in folders if not all(number in known for number in folder.numbers()))
    return iter(sorted(each for folder in within for each in folder.deliveries() if each.seq not in known))


def digests(folders: Iterable[Folder]) -> dict[int, str]:
    """Number and digest of every delivery."""
    found: dict[int, str] = {}
    for folder in folders:
        found.update(folder.packed("delivery_seq", "digest") if folder.level else [(folder.seq, folder.deliveries()[0].digest())])
    return dict(sorted(found.items()))


def file_names(deliveries: Iterable[Delivery]) -> Iterator[tuple[Delivery, str]]:
    """The names of the files that each delivery landed with, such as `drive_hours/2026-01-05.parquet`."""
    for path, within in groupby(deliveries, key=lambda each: each.path):
        listed = list(within)
        if listed[0].said is None:
            for each in listed:
                yield from ((each, name) for name in names_in(path))
        else:
            folder = Folder(0, None, None, path, 0, 1)
            names = dict(folder.packed("delivery_seq", "files"))
            for each in listed:
                yield from ((each, name) for name in names[each.seq])


def names_in(folder: Path) -> list[str]:
    """The Parquet files in a folder of raw, by their names within it, in order."""
    found: list[str] = []
    for name in sorted(os.listdir(folder)):
        if "." not in name:
            found += (f"{name}/{file}" for file in sorted(os.listdir(folder / name)) if file.endswith(".parquet"))
        elif name.endswith(".parquet") and name not in (PACKED, GATES):
            found.append(name)
    return found


def next_number(warehouse: Path, folders: Iterable[Folder]) -> int:
    """The number of the next delivery, which no other has had, also none that was dropped."""
    return 1 + max((each.last_seq for each in (*folders, *list_folders(warehouse, place="dropped"))), default=0)


def drive_hour_files(
    delivery: Folder | Delivery, first: datetime | None = None, last: datetime | None = None, record_kind: str = "drive_hours"
) -> list[Path]:
    """The files of drive-hours, or of another TIMED kind, of a folder, of days in the closed range [first, last], by name, in order."""
    folder = delivery.path / record_kind
    # samples may come of hours that another delivery brought
    if not folder.exists() if record_kind != "drive_hours" else delivery.first_hour is None:
        return []
    days: list[tuple[date, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _DAY_FILE.fullmatch(entry.name)
            if match:
                day = date.fromisoformat(match[1])
                if (first is None or first.date() <= day) and (last is None or day <= last.date()):
                    days.append((day, entry.path))
    return [Path(path) for _, path in sorted(days)]


def pruned_before(warehouse: Path) -> datetime | None:
    """The horizon of the last `drivetail prune`, the start of a UTC day: drive-hours before it are taken no more. Null without a prune."""
    try:
        text = pruned_record(warehouse).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return datetime.fromisoformat(json.loads(text)["before_utc"])


def pruned_record(warehouse: Path) -> Path:
    """Where it is written down what was pruned."""
    return raw_root(warehouse) / "pruned.json"


def pruned_files(delivery: Folder, before: datetime) -> list[Path]:
    """The drive-hour files of a folder that no build needs any more once `before` is the horizon.

    The day before the horizon stays, because the horizon's first hour looks one hour back.
    """
    if delivery.first_hour is None or delivery.first_hour >= before:
        return []
    return drive_hour_files(delivery, last=before - timedelta(days=2))


def table_files(deliveries: Iterable[Folder | Delivery], table: str) -> list[Path]:
    """The files `TABLE.parquet` or `TABLE.SOURCE.parquet` (or numbered, in a pack) of those folders that have one, in order."""
    begin = f"{table}."
    return [
        delivery.path / name
        for delivery in deliveries
        for name in sorted(os.listdir(delivery.path))
        if name.startswith(begin) and name.endswith(".parquet")
    ]


def source_of(path: Path) -> str | None:
    """Whose records a raw file holds, by its name; null for a source that names drives and RAID groups itself."""
    last = path.name.split(".")[-2]
    return last if path.name.count(".") > 1 and not last.isdigit() else None


def lost_deliveries(landed: Mapping[int, str], known: Mapping[int, str]) -> list[int]:
    """Numbers of deliveries that raw has lost, in order: those that it lacks, or whose number another delivery has now.

    landed: number -> digest of what raw holds, set aside or not. known: the same of what builds have taken in.
    A number missing below the greatest known one is not lost: a `--full-refresh` accepted the gap.
    """
    changed = [seq for seq, digest in known.items() if seq not in landed or digest != landed[seq]]
    after = range(max(known, default=0) + 1, max(landed, default=0))
    return sorted([*changed, *(seq for seq in after if seq not in landed)])


def lost_sentence(raw: Path, numbers: Sequence[int]) -> str:
    """Which deliveries raw has lost, and what to do."""
    noun, them = ("delivery", "it") if len(numbers) == 1 else ("deliveries", "them")
    more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
    return (
        f"{raw}: has lost {noun} {', '.join(map(str, numbers[:NAMED]))}{more}; put {them} back from a copy, or compute what is left with "
        "`drivetail build --full-refresh` (docs/runbooks/lost-deliveries.md)"
    )

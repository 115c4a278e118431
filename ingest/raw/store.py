"""Contents of `WAREHOUSE/raw`: one immutable folder per delivery (docs/decisions/0001-raw-store.md). staging.py writes it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from ingest.contract.errors import StoreError

_FOLDER = re.compile(r"(\d{6,})\.(?:no-hours|(\d{4}-\d\d-\d\dT\d\d)\.(\d{4}-\d\d-\d\dT\d\d))")
_DAY_FILE = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.\d+)?(?:\.[a-z][a-z-]*)?\.parquet")

NAMED = 10
"""Deliveries that a sentence names."""


@dataclass(frozen=True, order=True)
class Delivery:
    """A committed delivery; the hours are those of its stored drive-hours, null when it holds none."""

    seq: int
    first_hour: datetime | None
    last_hour: datetime | None
    path: Path

    def overlaps(self, first: datetime, last: datetime) -> bool:
        """Whether its drive-hours may be in the closed range of hours [first, last]."""
        return self.first_hour is not None and self.last_hour is not None and self.first_hour <= last and first <= self.last_hour

    def record(self) -> dict[str, Any]:
        """Its record from when it landed: `delivery.json`."""
        record: dict[str, Any] = json.loads((self.path / "delivery.json").read_text(encoding="utf-8"))
        return record

    def digest(self) -> str:
        """Tells it from another delivery that landed under its number, for example after raw was restored from an older copy."""
        try:
            # the record holds the given paths, the row counts and the landing time to the microsecond
            return hashlib.sha256((self.path / "delivery.json").read_bytes()).hexdigest()[:16]
        except FileNotFoundError:
            return ""


def raw_root(warehouse: Path) -> Path:
    """Path of a warehouse's raw store."""
    return Path(warehouse) / "raw"


def require_plain_path(warehouse: Path) -> None:
    """Check that a build can read a warehouse in this place. Raises: StoreError."""
    if set("*?[") & set(str(Path(warehouse).resolve())):
        raise StoreError(f"{warehouse}: DuckDB reads *, ? and [ in a path as a pattern; name a folder without them; nothing has changed")


def list_deliveries(warehouse: Path, *, place: str = "deliveries") -> list[Delivery]:
    """Every committed delivery in order of sequence number, from the folder names alone (one scan of one folder).

    place: `dropped` for those that an operator took back after they had landed.
    """
    found = []
    try:
        with os.scandir(raw_root(warehouse) / place) as entries:
            for entry in entries:
                match = _FOLDER.fullmatch(entry.name)
                if match:
                    first, last = (datetime.strptime(text, "%Y-%m-%dT%H") if text else None for text in match.groups()[1:])
                    found.append(Delivery(int(match[1]), first, last, Path(entry.path)))
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda delivery: delivery.seq)


def next_number(warehouse: Path) -> int:
    """The number of the next delivery, which no other has had, also none that was dropped."""
    return 1 + max((each.seq for place in ("deliveries", "dropped") for each in list_deliveries(warehouse, place=place)), default=0)


def drive_hour_files(
    delivery: Delivery, first: datetime | None = None, last: datetime | None = None, record_kind: str = "drive_hours"
) -> list[Path]:
    """The files of drive-hours, or of another TIMED kind, of a delivery, of days in the closed range [first, last], by name, in order."""
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


def pruned_files(delivery: Delivery, before: datetime) -> list[Path]:
    """The drive-hour files of a delivery that no build needs any more once `before` is the horizon.

    The day before the horizon stays, because the horizon's first hour looks one hour back.
    """
    if delivery.first_hour is None or delivery.first_hour >= before:
        return []
    return drive_hour_files(delivery, last=before - timedelta(days=2))


def table_files(deliveries: Iterable[Delivery], table: str) -> list[Path]:
    """The files `TABLE.parquet` or `TABLE.SOURCE.parquet` of those deliveries that have one, in order."""
    begin = f"{table}."
    return [
        delivery.path / name
        for delivery in deliveries
        for name in os.listdir(delivery.path)
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

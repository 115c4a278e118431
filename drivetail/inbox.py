"""What lies in the inboxes, and landing it: which entries have arrived, which are still being written, which have been dealt with.

An entry is one delivery: a file, an archive or a folder of an inbox. It is known by its path and its *signature*, made of the names,
sizes and modification times of its files; nothing is read to tell whether it is new. What became of an entry is one line of
`WAREHOUSE/raw/inbox.jsonl`, written after it has landed; a run killed in between ingests it again, which changes nothing. An entry
that changes later has another signature and is taken again: ingest leaves out what has landed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drivetail.register import Record, Register
from drivetail.settings import Inbox, Settings, SettingsError
from drivetail.warehouse import Warehouse
from ingest import IngestError, IngestSummary, ingest, list_quarantine
from ingest.raw_store import list_deliveries, utc_now

NEW, SETTLING, AHEAD, DONE, FAILED = "new", "settling", "ahead", "done", "failed"
"""Where an entry stands: to be landed; still being written; of hours that have not ended; landed; tried, and needs somebody."""

LANDED, NOTHING_NEW, HELD, UNREADABLE, REFUSED = "landed", "nothing new", "held", "unreadable", "refused"
"""What became of it: the last three need somebody, and are tried again when the entry changes."""

_HOUR = re.compile(r"(?<!\d)(\d{4})(-?)(\d\d)\2(\d\d)(?:[T_ ]?(\d\d)(?!\d)(?::?\d\d)*)?(?!\d)")


@dataclass(frozen=True)
class Entry:
    """One delivery in an inbox. The hours are those its name tells, if any; `changed_at` is its newest file's. UTC without zone."""

    inbox: str
    path: str
    signature: str
    changed_at: datetime
    first_hour: datetime | None
    last_hour: datetime | None
    state: str
    outcome: dict[str, Any] | None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return Path(self.path).name


@dataclass(frozen=True)
class Outcome:
    """What became of one entry. Rows are counted as `drivetail ingest` counts them; `message` says what to do where somebody must."""

    at: str
    inbox: str
    path: str
    signature: str
    outcome: str
    delivery_seq: int | None = None
    first_hour: str | None = None
    last_hour: str | None = None
    rows_delivered: int = 0
    rows_accepted: int = 0
    quarantine: int | None = None
    message: str = ""

    @property
    def needs_somebody(self) -> bool:
        """Whether it has not landed as it should."""
        return self.outcome in (HELD, UNREADABLE, REFUSED)


def register(warehouse: Warehouse) -> Register:
    """Where it is written down what became of each entry."""
    return Register(warehouse, "inbox")


def list_entries(warehouse: Warehouse, settings: Settings, *, until: datetime | None = None, now: datetime | None = None) -> list[Entry]:
    """Everything that lies in the inboxes, by inbox and path.

    until: entries whose name tells hours from here on are `ahead`: they wait for the run of their hour.
    now: the clock's time where not given.
    Raises: SettingsError for an inbox that is no folder.
    """
    now = now or utc_now()
    known = _known(warehouse)
    decided = {held.number for held in list_quarantine(warehouse.root) if held.decision is not None}
    return [_entry(inbox, path, known, decided, until, now) for inbox in settings.inboxes for path in _paths(inbox)]


def _paths(inbox: Inbox) -> Iterator[Path]:
    if not inbox.folder.is_dir():
        raise SettingsError(f"inbox {inbox.name}: {inbox.folder} is no folder; make it, or change drivetail.toml")
    for path in sorted(inbox.folder.glob(inbox.entries)):
        if not any(part.startswith((".", "_")) for part in path.relative_to(inbox.folder).parts):
            yield path


def _entry(
    inbox: Inbox, path: Path, known: dict[tuple[str, str], dict[str, Any]], decided: set[int], until: datetime | None, now: datetime
) -> Entry:
    signature, changed_at = _sign(path)
    first, last = hours_of_name(path.relative_to(inbox.folder).as_posix())
    outcome = known.get((str(path), signature))
    if outcome is not None:
        needs_somebody = Outcome(**outcome).needs_somebody and outcome["quarantine"] not in decided
        state = FAILED if needs_somebody else DONE
    elif abs(now - changed_at) < timedelta(minutes=inbox.settle_minutes):  # a clock that is ahead must not keep an entry for ever
        state = SETTLING
    elif until is not None and first is not None and first >= until:
        state = AHEAD
    else:
        state = NEW
    return Entry(inbox.name, str(path), signature, changed_at, first, last, state, outcome)


def _sign(path: Path) -> tuple[str, datetime]:
    """The signature of an entry, and when it changed last."""
    digest, newest = hashlib.sha256(), path.stat().st_mtime_ns
    files = [path] if path.is_file() else sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    for file in files:
        try:
            stat = file.stat()
        except FileNotFoundError:  # renamed as its upload ended; the next look sees it
            continue
        newest = max(newest, stat.st_mtime_ns)
        digest.update(f"{file.relative_to(path.parent)}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32], datetime.fromtimestamp(newest / 1e9, UTC).replace(tzinfo=None)


def hours_of_name(name: str) -> tuple[datetime | None, datetime | None]:
    """First and last hour (UTC) that a name tells: `2026-01-05T07` one hour, `2026-01-05` a day, two of them a span; else None."""
    spans = []
    for year, _, month, day, hour in _HOUR.findall(name):
        try:
            first = datetime(int(year), int(month), int(day), int(hour or 0))
        except ValueError:  # a serial number that looks like a date
            continue
        spans.append((first, first if hour else first + timedelta(hours=23)))
    return min((span[0] for span in spans), default=None), max((span[1] for span in spans), default=None)


def arrived(warehouse: Warehouse, settings: Settings, *, until: datetime | None = None, now: datetime | None = None) -> list[Entry]:
    """The entries to land now: first those whose name tells no hour, such as inventory, then by hour. See list_entries()."""
    entries = [entry for entry in list_entries(warehouse, settings, until=until, now=now) if entry.state == NEW]
    return sorted(entries, key=lambda entry: (entry.first_hour or datetime.min, entry.inbox, entry.path))


def land(warehouse: Warehouse, settings: Settings, inbox_name: str, path: str | Path, on_progress: Any = None) -> Outcome:
    """Ingest one entry, through the gate, and write down what became of it.

    An entry that is held, unreadable or of another source is no error: its outcome says so and what to do.
    Raises: GateError when the gate cannot work, OSError when raw cannot be written; nothing is then written down.
    """
    from quality import Gate, write_pages

    try:
        inbox = next(inbox for inbox in settings.inboxes if inbox.name == inbox_name)
    except StopIteration:
        raise SettingsError(f"no inbox is named {inbox_name!r} in drivetail.toml any more") from None
    warehouse.create()
    path = Path(path)
    if not path.exists():
        raise SettingsError(f"{path}: has gone from the inbox {inbox.name} before it was landed; put it back")
    signature, _ = _sign(path)  # before it is read: what changes meanwhile is new again
    known = _known(warehouse).get((str(path), signature))
    if known is not None:
        return Outcome(**known)
    warehouse.note("land", inbox=inbox.name, path=str(path))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        summary = ingest(
            inbox.source,
            [path],
            warehouse.root,
            kind=inbox.kind,
            min_coverage=inbox.min_coverage,
            gate=Gate(warehouse.root),
            on_progress=on_progress,
        )
        write_pages(warehouse.root)
    except IngestError as error:
        outcome = Outcome(at, inbox.name, str(path), signature, REFUSED, message=f"{error}; move it out of {inbox.folder}")
    else:
        outcome = _outcome(warehouse, inbox, path, signature, at, summary)
    written = register(warehouse)
    with written.locked():
        written.append([asdict(outcome)])
    return outcome


def _outcome(warehouse: Warehouse, inbox: Inbox, path: Path, signature: str, at: str, summary: IngestSummary) -> Outcome:
    from drivetail.status.collect_quarantine import commands, in_short

    what, message, number = (LANDED if summary.delivery_seq else NOTHING_NEW), "", None
    undecided = [held for held in summary.held if held.decision is None]
    if undecided:
        what, number = HELD, undecided[0].number
        decide = " or ".join(f"`{command}`" for command in commands(warehouse, undecided[0]).values())
        message = f"{path} is held in quarantine {number}: {in_short(undecided[0].reasons)}; {decide}"
    elif summary.unreadable:
        what, first = UNREADABLE, summary.unreadable[0]
        message = f"{first.file} could not be read: {first.note}; send it again"
    delivery = next((each for each in list_deliveries(warehouse.root) if each.seq == summary.delivery_seq), None)
    return Outcome(
        at, inbox.name, str(path), signature, what,
        delivery_seq=summary.delivery_seq,
        first_hour=delivery.first_hour.isoformat() if delivery and delivery.first_hour else None,
        last_hour=delivery.last_hour.isoformat() if delivery and delivery.last_hour else None,
        rows_delivered=summary.rows_delivered, rows_accepted=summary.rows_accepted, quarantine=number, message=message,
    )  # fmt: skip


def outcomes_of(warehouse: Warehouse, paths: Collection[str]) -> list[Outcome]:
    """What became of entries when they were last taken, by path; nothing of those that never were."""
    latest = {path: record for (path, _), record in _known(warehouse).items()}
    return [Outcome(**latest[path]) for path in paths if path in latest]


def deal(entries: Sequence[Entry], hands: int) -> list[list[Entry]]:
    """The entries in at most so many parts, one each as long as that is enough; neighbours stay together."""
    size = -(-len(entries) // hands) or 1
    return [list(entries[at : at + size]) for at in range(0, len(entries), size)]


def _known(warehouse: Warehouse) -> dict[tuple[str, str], Record]:
    """What became of each (path, signature)."""
    # without its line an entry is taken again, which changes nothing
    return {(record["path"], record["signature"]): record for record in register(warehouse).read(skips_damaged=True)}

"""The entries of the inboxes: which have arrived, which are still being written, which are done.

An entry is one delivery: a file, an archive or a folder of an inbox. It is known by its path and its *signature*, made of the names,
sizes and modification times of its files; no content is read to decide whether it is new. What became of it is written down after it has
landed (inbox.py, outcomes.py). An entry that changes later has another signature and is taken again: ingest leaves out what has landed.
Nothing that reads a delivery is imported here: an hour in which nothing has arrived must cost next to nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drivetail.feeds.outcomes import BEGUN, Outcome, outcomes
from drivetail.service.settings import Inbox, Settings
from engine.warehouse import Warehouse
from ingest import list_quarantine
from ingest.contract.values import utc_now
from ingest.raw.register import Record
from ingest.reading.text import file_name
from ingest.sources import COLLECTED

NEW, SETTLING, AHEAD, DONE, FAILED, MISSING = "new", "settling", "ahead", "done", "failed", "missing"
"""State of an entry: to be landed; still being written; of hours that have not ended; landed; tried, and needs an operator; no entry but
the inbox, which cannot be read.
"""

Known = Mapping[tuple[str, str], Record]
"""The last line about each (path, signature), in the order in which they were written."""

_HOUR = re.compile(r"(?<!\d)(\d{4})(-?)(\d\d)\2(\d\d)(?:[T_ ]?(\d\d)(?!\d)(?::?\d\d)*)?(?!\d)")


@dataclass(frozen=True)
class Entry:
    """One delivery in an inbox. The hours are those in its name, if any; `changed_at` is its newest file's. UTC without zone."""

    inbox: str
    path: str
    signature: str
    changed_at: datetime | None
    first_hour: datetime | None
    last_hour: datetime | None
    state: str
    outcome: dict[str, Any] | None

    @property
    def name(self) -> str:
        return Path(self.path).name


def list_entries(warehouse: Warehouse, settings: Settings, *, until: datetime | None = None, now: datetime | None = None) -> list[Entry]:
    """Every entry of the inboxes, by inbox and path.

    until: entries whose name has hours from here on are `ahead`: they wait for the run of their hour.
    now: the clock's time where not given.
    """
    now = now or utc_now()
    known, done = known_entries(warehouse), decided(warehouse)
    entries: list[Entry] = []
    for inbox in settings.inboxes:
        try:
            for path in paths_of(inbox):
                with suppress(FileNotFoundError):  # moved away since it was listed
                    path.lstat()
                    entries.append(_entry(inbox, path, known, done, until, now))
        except OSError as error:
            entries.append(Entry(inbox.name, str(inbox.folder), "", None, None, None, MISSING, {"message": unreadable(inbox, error)}))
    return entries


def unreadable(inbox: Inbox, error: OSError) -> str:
    """Message about an inbox that cannot be read."""
    return f"inbox {inbox.name}: {error.filename or inbox.folder}: {error.strerror}; mount or make it, or change drivetail.toml"


def paths_of(inbox: Inbox) -> Iterator[Path]:
    """Where its entries lie. Raises: OSError for an inbox that cannot be read."""
    os.scandir(inbox.folder).close()  # a glob over what is no folder finds nothing, and says nothing
    above = Path(inbox.entries).parts[:-1]
    folders = [path for depth in range(len(above)) for path in inbox.folder.glob("/".join(above[: depth + 1])) if path.is_dir()]
    # entries of an unreadable folder do not match, and nobody would miss them
    closed = [path for path in folders if not os.access(path, os.R_OK | os.X_OK)]
    for path in sorted({*closed, *inbox.folder.glob(inbox.entries)}):
        if not any(part.startswith((".", "_")) for part in path.relative_to(inbox.folder).parts):
            yield path


def _entry(inbox: Inbox, path: Path, known: Known, done: set[int], until: datetime | None, now: datetime) -> Entry:
    signature, changed_at = sign(path)
    name = file_name(path)
    # a collected delivery is named by its time of delivery: its hours have ended by then, but the hour in its name may not have
    first, last = (None, None) if inbox.source == COLLECTED else hours_of_name(file_name(path.relative_to(inbox.folder)))
    outcome = ended(known, name, signature)
    if outcome is not None:
        state = FAILED if Outcome.of(outcome).after(done).needs_somebody else DONE
    elif abs(now - changed_at) < timedelta(minutes=inbox.settle_minutes):  # a clock that is ahead must not keep an entry for ever
        state = SETTLING
    elif until is not None and first is not None and first >= until:
        state = AHEAD
    else:
        state = NEW
    return Entry(inbox.name, name, signature, changed_at, first, last, state, outcome)


def sign(path: Path) -> tuple[str, datetime]:
    """The signature of an entry, and when it changed last. What a link leads to is not walked: it may lead anywhere."""
    digest, about = hashlib.sha256(), _stat(path)
    newest, files = about.st_mtime_ns, [path]
    if stat.S_ISDIR(about.st_mode) and not path.is_symlink():
        files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    for file in files:
        try:
            about = _stat(file)
        except FileNotFoundError:  # renamed as its upload ended; the next look sees it
            continue
        newest = max(newest, about.st_mtime_ns)
        digest.update(os.fsencode(file.relative_to(path.parent)) + f"\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32], datetime.fromtimestamp(newest / 1e9, UTC).replace(tzinfo=None)


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError:  # such as a link that leads in a circle, or a folder that may not be searched
        return path.lstat()


def hours_of_name(name: str) -> tuple[datetime | None, datetime | None]:
    """First and last hour (UTC) in a name: `2026-01-05T07` one hour, `2026-01-05` a day, two of them a span; else None."""
    spans = []
    for year, _, month, day, hour in _HOUR.findall(name):
        try:
            first = datetime(int(year), int(month), int(day), int(hour or 0))
        except ValueError:  # a serial number that looks like a date
            continue
        spans.append((first, first if hour else first + timedelta(hours=23)))
    return min((span[0] for span in spans), default=None), max((span[1] for span in spans), default=None)


def arrived(warehouse: Warehouse, settings: Settings, *, until: datetime | None = None, now: datetime | None = None) -> list[Entry]:
    """The entries to land now: first those without an hour in their name, such as inventory, then by hour. See list_entries().

    An inbox that cannot be read is among them: to land it says so, and holds up no other.
    """
    entries = [entry for entry in list_entries(warehouse, settings, until=until, now=now) if entry.state in (NEW, MISSING)]
    return sorted(entries, key=lambda entry: (entry.first_hour or datetime.min, entry.inbox, entry.path))


def split_missing(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The entries that are deliveries, and those that stand for an inbox that cannot be read."""
    return [entry for entry in entries if entry.state != MISSING], [entry for entry in entries if entry.state == MISSING]


def partition(entries: Sequence[Entry], most: int) -> list[list[Entry]]:
    """The entries in at most `most` parts, one entry a part if they are few; neighbours stay together.

    An inbox that cannot be read is one more part: the task that takes it fails.
    """
    there, missing = split_missing(entries)
    size = -(-len(there) // most) or 1
    return [*(there[at : at + size] for at in range(0, len(there), size)), *([entry] for entry in missing)]


def decided(warehouse: Warehouse) -> set[int]:
    """Numbers of the quarantined deliveries that somebody has decided on."""
    return {held.number for held in list_quarantine(warehouse.root) if held.decision is not None}


def known_entries(warehouse: Warehouse) -> Known:
    """The last line about each entry."""
    known: dict[tuple[str, str], Record] = {}
    for record in outcomes(warehouse):
        key = (record["path"], record["signature"])
        known.pop(key, None)
        known[key] = record
    return known


def ended(known: Known, path: str | Path, signature: str) -> Record | None:
    """The outcome of an entry; null while it is new, or was only begun."""
    record = known.get((str(path), signature))
    return None if record is None or record["outcome"] == BEGUN else record

"""The entries of the inboxes, and landing them: which have arrived, which are still being written, which are done.

An entry is one delivery: a file, an archive or a folder of an inbox. It is known by its path and its *signature*, made of the names,
sizes and modification times of its files; no content is read to decide whether it is new. What became of it is written down after it has
landed (outcomes.py). An entry that changes later has another signature and is taken again: ingest leaves out what has landed.
What is pulled from a server lands here as well.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from drivetail.feeds.outcomes import BEGUN, HINDERED, NOT_LANDED, REFUSED, UNANSWERED, Outcome, outcome_of, outcomes, write_down
from drivetail.feeds.pulls import span_of
from drivetail.service import SettingsError
from drivetail.service.settings import Inbox, Server, Settings
from engine.thresholds import limits_of
from engine.warehouse import Warehouse
from ingest import GateError, IngestError, StoreError, Worker, calls_of, ingest, list_quarantine
from ingest.contract.values import utc_now
from ingest.raw.register import Record
from ingest.reading.files import is_of_machine
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
    known = _known(warehouse)
    decided = _decided(warehouse)
    entries: list[Entry] = []
    for inbox in settings.inboxes:
        try:
            for path in _paths(inbox):
                with suppress(FileNotFoundError):  # moved away since it was listed
                    path.lstat()
                    entries.append(_entry(inbox, path, known, decided, until, now))
        except OSError as error:
            entries.append(Entry(inbox.name, str(inbox.folder), "", None, None, None, MISSING, {"message": _unreadable(inbox, error)}))
    return entries


def _unreadable(inbox: Inbox, error: OSError) -> str:
    return f"inbox {inbox.name}: {error.filename or inbox.folder}: {error.strerror}; mount or make it, or change drivetail.toml"


def _paths(inbox: Inbox) -> Iterator[Path]:
    os.scandir(inbox.folder).close()  # a glob over what is no folder finds nothing, and says nothing
    above = Path(inbox.entries).parts[:-1]
    folders = [path for depth in range(len(above)) for path in inbox.folder.glob("/".join(above[: depth + 1])) if path.is_dir()]
    # what is in a folder that may not be read is no match, and would never be missed
    closed = [path for path in folders if not os.access(path, os.R_OK | os.X_OK)]
    for path in sorted({*closed, *inbox.folder.glob(inbox.entries)}):
        if not any(part.startswith((".", "_")) for part in path.relative_to(inbox.folder).parts):
            yield path


def _entry(inbox: Inbox, path: Path, known: Known, decided: set[int], until: datetime | None, now: datetime) -> Entry:
    signature, changed_at = _sign(path)
    name = file_name(path)
    # what was collected is named by when it was delivered: its hours have ended by then, and those of its name need not have
    first, last = (None, None) if inbox.source == COLLECTED else hours_of_name(file_name(path.relative_to(inbox.folder)))
    outcome = _ended(known, name, signature)
    if outcome is not None:
        state = FAILED if Outcome.of(outcome).after(decided).needs_somebody else DONE
    elif abs(now - changed_at) < timedelta(minutes=inbox.settle_minutes):  # a clock that is ahead must not keep an entry for ever
        state = SETTLING
    elif until is not None and first is not None and first >= until:
        state = AHEAD
    else:
        state = NEW
    return Entry(inbox.name, name, signature, changed_at, first, last, state, outcome)


def _sign(path: Path) -> tuple[str, datetime]:
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


def _fault(inbox: Inbox, path: Path) -> str | None:
    """Why an entry is not even opened: its name, or where it leads; its sender chooses both.

    Raises: OSError where it may not be looked at.
    """
    if file_name(path) != str(path):
        return "its name is not UTF-8; rename it"
    try:
        path.stat()
    except FileNotFoundError:
        return "a link that leads nowhere; put the file itself there"
    except OSError as error:
        if is_of_machine(error):
            raise
        return f"{error.strerror}; put the file itself there"
    if not path.resolve().is_relative_to(inbox.folder.resolve()):
        return "a link that leads out of the inbox, which is not followed; put the file itself there"
    return None


def _found(inbox: Inbox, name: str) -> Path:
    """The entry of that name, which is escaped where it is not UTF-8. Raises: SettingsError where there is none any more."""
    if os.path.lexists(name):
        return Path(name)
    with suppress(StopIteration):
        return next(path for path in _paths(inbox) if file_name(path) == name)
    raise SettingsError(f"{name}: was removed from the inbox {inbox.name} before it landed; put it back")


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


def land_each(
    warehouse: Warehouse,
    settings: Settings,
    taken: Iterable[tuple[str, str]],
    progress: Callable[[str], AbstractContextManager[Any]] = lambda path: nullcontext(),
) -> Iterator[Outcome]:
    """Land deliveries, each (inbox or server, path), one after the other; what goes wrong with one is its outcome and holds up no other.

    Those whose landing was begun and has not ended come last, who has waited longest first: they may end this process, too.
    progress: opened around each landing with its path; gives land() its `on_progress`.
    """
    # read once: the register grows by the hour, and raw knows what other processes land
    known = _known(warehouse)
    begun = {path: number for number, ((path, _), record) in enumerate(known.items()) if record["outcome"] == BEGUN}
    with Worker(limits_of(warehouse, "deliveries")) as worker:
        for name, path in sorted(taken, key=lambda each: begun.get(each[1], -1)):
            with progress(path) as on_progress:
                outcome = _land_alone(warehouse, settings, name, path, known, on_progress, worker)
            yield outcome


def _land_alone(warehouse: Warehouse, settings: Settings, name: str, path: str, known: Known, on_progress: Any, worker: Worker) -> Outcome:
    """See land(), but that its errors are outcomes."""
    try:
        return land(warehouse, settings, name, path, known, on_progress, worker)
    except SettingsError as error:
        what, message = NOT_LANDED, str(error)
    except (GateError, StoreError) as error:
        what, message = HINDERED, str(error)
    except OSError as error:
        fault = f"{error.filename or path}: {error.strerror or error}"
        what, message = HINDERED, f"{fault}; check the path, its permissions and the free space"
    except MemoryError:
        what, message = HINDERED, f"{path}: not enough memory to land it (docs/runbooks/no-memory.md)"
    # a delivery may make ingest fail in any way; a panic of polars is not even an Exception
    except (Exception, pl.exceptions.PanicException) as error:
        logging.getLogger(__name__).exception("%s", path)
        what, message = NOT_LANDED, f"{path}: landing it failed ({type(error).__name__}: {error}); move it out of {name}, and report it"
    return Outcome(datetime.now(UTC).isoformat(timespec="seconds"), name, path, "", what, message=message)


def land(
    warehouse: Warehouse,
    settings: Settings,
    name: str,
    path: str | Path,
    known: Known | None = None,
    on_progress: Any = None,
    worker: Worker | None = None,
) -> Outcome:
    """Ingest one entry of an inbox, or the hours of a pull, through the gate, and write down what became of it.

    known: read where it is not given. worker: opens the files; one of its own where it is not given.

    An entry that is held, unreadable or of another source is no error, and a server that does not answer is none: the outcome says so
    and what to do. Raises: SettingsError for an inbox that cannot be read, GateError when the gate cannot work, OSError when raw cannot
    be written; nothing is then written down.
    """
    from quality import Gate, write_pages

    feed = next((feed for feed in settings.feeds if feed.name == name), None)
    if feed is None:
        raise SettingsError(f"no inbox and no server is named {name!r} in drivetail.toml any more")
    warehouse.create()
    signature = ""
    if isinstance(feed, Inbox):
        try:
            os.scandir(feed.folder).close()
        except OSError as error:
            raise SettingsError(_unreadable(feed, error)) from error
        entry = _found(feed, str(path))
        signature, _ = _sign(entry)  # before it is read: what changes meanwhile is new again
        then = _ended(_known(warehouse) if known is None else known, path, signature)
        if then is not None:
            return Outcome.of(then).after(_decided(warehouse))
    warehouse.note("land", inbox=name, path=str(path))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    about: dict[str, Any] = {"at": at, "inbox": name, "path": str(path), "signature": signature}
    if isinstance(feed, Inbox):
        fault = _fault(feed, entry)
        if fault is not None:
            outcome = Outcome(**about, outcome=REFUSED, message=f"{path}: {fault}")
            write_down(warehouse, asdict(outcome))
            return outcome
        write_down(warehouse, {**about, "outcome": BEGUN})
    gate = Gate(warehouse.root)
    try:
        with nullcontext(worker) if worker else Worker(limits_of(warehouse, "deliveries")) as opens:
            summaries = [
                opens.call(
                    ingest, source, [given], warehouse.root,
                    kind=feed.kind, min_coverage=feed.min_coverage, gate=gate, on_progress=on_progress, **asked,
                )
                for source, given, asked in _calls(feed, path)
            ]  # fmt: skip
        write_pages(warehouse.root)
    except IngestError as error:
        if isinstance(feed, Server):
            outcome = Outcome(**about, outcome=UNANSWERED, message=f"server {name}: {error}; the next hourly run pulls these hours again")
        else:
            outcome = Outcome(**about, outcome=REFUSED, message=f"{error}; move it out of {feed.folder}")
    else:
        outcome = outcome_of(warehouse, summaries, **about)
    if not outcome.may_pass:
        write_down(warehouse, asdict(outcome))
    return outcome


def _calls(feed: Inbox | Server, path: str | Path) -> list[tuple[str, str | Path, Mapping[str, Any]]]:
    if isinstance(feed, Server):
        first, end = span_of(str(path))
        return [(feed.source, feed.url, {"first": first, "end": end, "source_options": feed.options})]
    return [(source, path, {"source_options": options}) for source, options in calls_of(feed.source, [path], feed.options)]


def apart(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The entries that are deliveries, and those that stand for an inbox that cannot be read."""
    return [entry for entry in entries if entry.state != MISSING], [entry for entry in entries if entry.state == MISSING]


def deal(entries: Sequence[Entry], hands: int) -> list[list[Entry]]:
    """The entries in at most that many parts, one entry a part if they are few; neighbours stay together.

    An inbox that cannot be read is one more part: the task that takes it fails.
    """
    there, missing = apart(entries)
    size = -(-len(there) // hands) or 1
    return [*(there[at : at + size] for at in range(0, len(there), size)), *([entry] for entry in missing)]


def _decided(warehouse: Warehouse) -> set[int]:
    """Numbers of the quarantined deliveries that somebody has decided on."""
    return {held.number for held in list_quarantine(warehouse.root) if held.decision is not None}


def _known(warehouse: Warehouse) -> Known:
    known: dict[tuple[str, str], Record] = {}
    for record in outcomes(warehouse):
        key = (record["path"], record["signature"])
        known.pop(key, None)
        known[key] = record
    return known


def _ended(known: Known, path: str | Path, signature: str) -> Record | None:
    record = known.get((str(path), signature))
    return None if record is None or record["outcome"] == BEGUN else record

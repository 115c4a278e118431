"""Landing the entries of the inboxes (entries.py), and what is pulled from servers, each through the gate."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from drivetail.feeds.entries import Known, decided, ended, known_entries, paths_of, sign, unreadable
from drivetail.feeds.outcomes import BEGUN, HINDERED, NOT_LANDED, REFUSED, UNANSWERED, Outcome, outcome_of, write_down
from drivetail.feeds.pulls import span_of
from drivetail.service import SettingsError
from drivetail.service.settings import Inbox, Server, Settings
from engine.thresholds import limits_of
from engine.warehouse import Warehouse
from ingest import GateError, IngestError, StoreError, Worker, calls_of, ingest
from ingest.reading.files import is_of_machine
from ingest.reading.text import file_name


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
        return next(path for path in paths_of(inbox) if file_name(path) == name)
    raise SettingsError(f"{name}: was removed from the inbox {inbox.name} before it landed; put it back")


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
    known = known_entries(warehouse)
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
            raise SettingsError(unreadable(feed, error)) from error
        entry = _found(feed, str(path))
        signature, _ = sign(entry)  # before it is read: what changes meanwhile is new again
        then = ended(known_entries(warehouse) if known is None else known, path, signature)
        if then is not None:
            return Outcome.of(then).after(decided(warehouse))
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
    if not outcome.is_retryable:
        write_down(warehouse, asdict(outcome))
    return outcome


def _calls(feed: Inbox | Server, path: str | Path) -> list[tuple[str, str | Path, Mapping[str, Any]]]:
    if isinstance(feed, Server):
        first, end = span_of(str(path))
        return [(feed.source, feed.url, {"first": first, "end": end, "source_options": feed.options})]
    return [(source, path, {"source_options": options}) for source, options in calls_of(feed.source, [path], feed.options)]

"""`ingest`: one call, one delivery. Finds the files, reads them, judges them and commits all of it or nothing.

With a gate, a delivery that it holds back goes to quarantine instead; `release` lands it after all, `drop` forgets it. `drop_landed` takes
back one that has landed, `release_landed` puts it back.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from ingest.contract.errors import GateError, IngestError, StoreError
from ingest.contract.values import DEFAULT_MIN_COVERAGE, DRIVE_KINDS, utc_now
from ingest.raw.arrivals import Arrivals
from ingest.raw.closing import close, rejected_records
from ingest.raw.errors import explained
from ingest.raw.landing import Gate, Landing
from ingest.raw.packing import pack
from ingest.raw.quarantine import DROPPED, RELEASED, GateReport, Held, decide, find_held, find_landed, hold, put_back, set_aside, withheld
from ingest.raw.staging import StagedDelivery, ingest_lock
from ingest.raw.store import Delivery, drive_hour_files, list_deliveries, pruned_before
from ingest.reading.files import QUARANTINED, UNREADABLE, FileResult, SourceFile, Watch, find_files
from ingest.reading.resolution import seconds_of
from ingest.reading.text import file_name
from ingest.sources import COLLECTED, COLLECTED_SOURCES, SELF_NAMED_SOURCES, SOURCES, asker_of, reader_of

SHOWN_REJECTIONS = 10
PRUNED = "before the horizon of `drivetail prune`"

Progress = Callable[[str, int, int], None]
FindFiles = Callable[[Path], tuple[list[SourceFile], list[str]]]
"""The files of a call: folder to unpack archives into -> files, and notes on what was left out."""


@dataclass
class IngestSummary:
    """Summary of one call. `delivery_seq` is null where every file had landed before, so that nothing changed.

    `rejected` holds the first few rejected records (columns of the table `rejected_records`, as dicts); `notes` what
    concerns no single file, such as files of the folder that do not belong to the source. `held`: the quarantined
    deliveries that hold files of the call, one that it made among them.
    """

    source: str
    delivery_seq: int | None
    files: list[FileResult]
    rejected: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)

    @property
    def rows_delivered(self) -> int:
        return sum(file.rows_delivered for file in self.files)

    @property
    def rows_accepted(self) -> int:
        return sum(file.rows_accepted for file in self.files)

    @property
    def rows_rejected(self) -> int:
        return sum(file.rows_rejected for file in self.files)

    @property
    def rows_duplicate(self) -> int:
        return sum(file.rows_duplicate for file in self.files)

    @property
    def rows_superseded(self) -> int:
        return sum(file.rows_superseded for file in self.files)

    @property
    def unreadable(self) -> list[FileResult]:
        """The files that could not be read, new ones and known ones: where there is any, the call exits 1."""
        return [file for file in self.files if file.status == UNREADABLE]


def ingest(
    source: str,
    paths: Sequence[str | Path],
    warehouse: Path,
    *,
    kind: str | None = None,
    min_coverage: float | None = None,
    gate: Gate | None = None,
    on_progress: Progress | None = None,
    first: datetime | None = None,
    end: datetime | None = None,
    source_options: Mapping[str, Any] | None = None,
    watch: Watch | None = None,
) -> IngestSummary:
    """Land deliveries of `source` in `warehouse/raw`; repeating a call changes nothing.

    source: one of SOURCES. paths: folders, files or archives (.zip, .tar, .tar.gz, .tgz); for `prometheus` also addresses of servers.
    kind: `disk` or `ssd`, for drives whose records do not say. min_coverage: 0..1, the share of an hour that must have
    been observed for it to count; null = 0.5. gate: looks at the delivery before it counts (`quality.Gate`); null = land
    whatever keeps the contract. on_progress: called with (phase, done, total). first, end: the hours [first, end), UTC, to pull
    from a server. source_options: what else the source needs to know (the options of `ingest.sources`). watch: of the worker that this
    runs in (ingest/worker.py), which survives what a file does to a process.
    Waits while another ingest runs. A file that cannot be read is no error: it has status `unreadable` in the summary.
    Raises: IngestError for an unknown source, option or path, or when no file belongs to the source; GateError when a
    delivery that the gate holds back cannot be kept; StoreError when raw cannot be written or read.
    """
    if source not in SOURCES:
        raise IngestError(f"unknown source {source!r}; give one of {', '.join(sorted(SOURCES))}")
    if kind is not None and kind not in DRIVE_KINDS:
        raise IngestError(f"unknown kind {kind!r}; give one of {', '.join(DRIVE_KINDS)}")
    if min_coverage is not None and not 0 <= min_coverage <= 1:
        raise IngestError(f"min_coverage is {min_coverage}; give a share between 0 and 1")
    if isinstance(paths, str | Path):
        paths = [paths]
    if not paths:
        raise IngestError("no path given; give the folder, file or archive of a delivery")
    reader, asker = reader_of(source), asker_of(source)
    source_options = {name: value for name, value in (source_options or {}).items() if value}
    unknown = sorted(set(source_options) - set(SOURCES[source].all_options))
    urls = [str(path) for path in paths if asker and "://" in str(path)]
    if unknown or ((first or end) and not urls):
        raise IngestError(f"source {source!r} does not take {', '.join(unknown) or 'a range of hours, which a pull from a server has'}")
    seconds_of(source_options)
    places = [path for path in paths if str(path) not in urls]
    for path in places:  # before a warehouse is made for a call that names nothing
        if not Path(path).exists():
            if asker and re.fullmatch(r"[\w.-]+:\d+(/.*)?", str(path)):
                raise IngestError(f"{path}: no such file; a server's address begins with http:// or https://, as in http://{path}")
            raise IngestError(f"{path}: no such file or directory; give a folder, a file or an archive of the delivery")
        if Path(path).resolve().is_relative_to(Path(warehouse).resolve()):
            raise IngestError(f"{path}: lies in the warehouse {warehouse}; give what was delivered")
    options = {
        "source": source,
        "paths": [file_name(path) for path in paths],
        "kind": kind,
        "min_coverage": DEFAULT_MIN_COVERAGE if min_coverage is None else min_coverage,
        **({"source_options": source_options} if source_options else {}),
    }
    pulled: tuple[list[SourceFile], list[str]] = ([], [])
    if asker and urls:  # outside the lock: a server may take its time
        pulled = asker.fetch(urls, Path(warehouse), source_options, first, end, on_progress or (lambda phase, done, total: None))

    def find(unpack_to: Path) -> tuple[list[SourceFile], list[str]]:
        files, notes = find_files(places, reader.recognise, unpack_to, Path(warehouse), watch)
        files, notes = [*pulled[0], *files], [*pulled[1], *notes]
        if not files:
            raise IngestError(f"{', '.join(map(str, paths))}: no file of source {source!r} in it; expected {reader.EXPECTED}")
        return files, notes

    with ingest_lock(Path(warehouse)):
        summary = _land(Path(warehouse), find, options, gate, on_progress, watch, is_release=False)
        if asker and urls:
            asker.forget(pulled[0])
    return summary


def calls_of(source: str, paths: Sequence[str | Path], source_options: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The calls of ingest() that take deliveries in, source and source_options of each: one, but of what was collected, COLLECTED, one for
    each source that knows a file of it.

    Raises: IngestError for a path that does not exist, or when nothing in `paths` was collected.
    """
    if source != COLLECTED:
        return [(source, dict(source_options))]
    with tempfile.TemporaryDirectory() as scratch:
        found = [each for each in COLLECTED_SOURCES if find_files(paths, reader_of(each).recognise, Path(scratch, each))[0]]
    if not found:
        raise IngestError(f"{', '.join(map(str, paths))}: nothing that `drivetail collect` delivers is in it")
    return [(each, {name: given for name, given in source_options.items() if name in SOURCES[each].all_options}) for each in found]


def release(
    warehouse: Path,
    number: int,
    *,
    by: str,
    note: str,
    gate: Gate | None,
    on_progress: Progress | None = None,
    watch: Watch | None = None,
) -> IngestSummary:
    """Land a quarantined delivery after all and write down who says so and why; repeating it changes nothing.

    gate: one that looks at single rows only (`quality.Gate(..., is_rows_only=True)`).
    Raises: GateError where there is no such delivery, it was dropped, or its files have changed.
    """
    find_held(Path(warehouse), number)  # before a folder is made for a call that names nothing
    with ingest_lock(Path(warehouse)):
        held = find_held(Path(warehouse), number)
        options = {name: held.record[name] for name in ("source", "paths", "kind", "min_coverage", "source_options") if name in held.record}
        if held.decision is not None:
            if held.decision["decision"] != RELEASED:
                raise GateError(f"delivery {number} was dropped by {held.decision['by']} at {held.decision['at']}; ingest its files again")
            decide(held, RELEASED, by, note)  # removes what a killed call left
            said = f"quarantine {number} was released by {held.decision['by']} at {held.decision['at']}: {held.decision['note']}"
            return IngestSummary(options["source"], None, [], notes=[said])
        files = held.source_files()
        released = {"number": number, "by": by, "note": note}
        summary = _land(
            Path(warehouse), lambda _: (files, []), {**options, "released": released}, gate, on_progress, watch, is_release=True
        )
        decide(held, RELEASED, by, note, delivery_seq=summary.delivery_seq)
        return summary


def drop(warehouse: Path, number: int, *, by: str, note: str) -> Held:
    """Remove the files of a quarantined delivery and keep its record, with who says so and why; repeating it changes nothing.

    Raises: GateError where there is no such delivery or it was released.
    """
    find_held(Path(warehouse), number)  # before a folder is made for a call that names nothing
    with ingest_lock(Path(warehouse)):
        held = find_held(Path(warehouse), number)
        if held.decision is not None and held.decision["decision"] != DROPPED:
            raise GateError(f"delivery {number} was released by {held.decision['by']} at {held.decision['at']} and has landed")
        return decide(held, DROPPED, by, note)


def drop_landed(warehouse: Path, number: int, *, by: str, note: str) -> list[int]:
    """Set a landed delivery aside in `raw/dropped`; repeating it changes nothing, and the first word stands.

    Returns: the deliveries that were judged against it: what they repeated of it was not stored again. Raises: GateError.
    """
    with ingest_lock(Path(warehouse)):
        delivery, dropped = find_landed(Path(warehouse), number)
        found = _judged_against_it(Path(warehouse), delivery)
        if dropped is None:
            set_aside(Path(warehouse), delivery, by, note)
        return found


def release_landed(warehouse: Path, number: int) -> bool:
    """Put a delivery back that `drop_landed` set aside. Returns: whether it was aside.

    Raises: GateError where there is none, or its source has brought others since, which were judged without it.
    """
    with ingest_lock(Path(warehouse)):
        delivery, dropped = find_landed(Path(warehouse), number)
        if dropped is None:
            return False
        since = [seq for seq in _judged_against_it(Path(warehouse), delivery) if seq > dropped["last_delivery_seq"]]
        if since:
            raise GateError(
                f"delivery {number} was dropped, and {since[0]} of its source has landed since; ingest the files of {number} again"
            )
        put_back(Path(warehouse), delivery)
        return True


def _judged_against_it(warehouse: Path, delivery: Delivery) -> list[int]:
    """The later deliveries of its source, or where it names drives and RAID groups itself, of all such sources."""

    def judged_with(each: Delivery) -> str:
        return "" if each.source in SELF_NAMED_SOURCES else each.source

    later = (each for each in list_deliveries(warehouse) if each.seq > delivery.seq)
    return [each.seq for each in later if judged_with(each) == judged_with(delivery)]


def _land(
    warehouse: Path,
    find: FindFiles,
    options: dict[str, Any],
    gate: Gate | None,
    on_progress: Progress | None,
    watch: Watch | None,
    *,
    is_release: bool,
) -> IngestSummary:
    """Read, judge and commit what `find` finds, or quarantine it. `options` go into the record of the delivery."""
    progress = on_progress or (lambda phase, done, total: None)
    watch = watch or Watch()
    started = time.monotonic()
    staged = StagedDelivery(warehouse, None if options["source"] in SELF_NAMED_SOURCES else options["source"])
    try:
        found, notes = find(staged.scratch)
        files = [replace(file, **watch.lost.get(file.file, {})) for file in found]
        source, source_options = options["source"], options.get("source_options", {})
        held_back = partial(withheld, warehouse, source) if gate is not None and not is_release else None
        arrivals = Arrivals(files, source, staged.folders, source_options, SOURCES[source].identity, held_back, progress)
        landing = Landing(source, staged, options["kind"], options["min_coverage"], arrivals, progress, source_options, watch)
        if gate is not None:
            landing.on_new = gate.prepare
        reader_of(source).land(files, landing)
        progress("read", len(files), len(files))
        summary = IngestSummary(options["source"], None, landing.results, notes=notes, held=arrivals.held)
        if not any(result.file_no is not None for result in landing.results):
            return summary
        refuse_pruned(landing, pruned_before(warehouse))
        if gate is not None:
            progress("gate", 0, 1)
            report = gate.check(landing)
            progress("gate", 1, 1)
            if report.reasons:
                summary.held.append(_quarantine(warehouse, landing, files, report, options))
                return summary
            staged.write_json("gate.json", report.content)
        stored = close(landing)
        progress("commit", 0, 1)
        took = {"committed_at": utc_now().isoformat(), "ingest_seconds": round(time.monotonic() - started, 3)}
        committed = staged.commit({**options, **took, "rows": stored})
        summary.delivery_seq = committed.seq
        with suppress(OSError, MemoryError, ValueError, LookupError, pl.exceptions.PolarsError):  # it has landed; the next ingest packs
            pack(warehouse, [*staged.folders, committed])
        progress("commit", 1, 1)
        summary.rejected = rejected_records(landing, SHOWN_REJECTIONS).to_dicts()
        return summary
    # errors in delivered files were handled above: this is an error of the warehouse
    except (OSError, MemoryError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        why = explained(error, warehouse, _judged_against(staged))
        if why is None:
            raise
        raise StoreError(why) from error
    finally:
        staged.discard()


def refuse_pruned(landing: Landing, before: datetime | None) -> None:
    """Reject the staged drive-hours whose peers were pruned: they would be their own only peers, and duplicates of what is gone."""
    if before is None:
        return
    late = landing.staged.rows_before(before)
    landing.refuse(
        "drive_hours",
        late.select(
            "file_no",
            "row_no",
            pl.lit(PRUNED).alias("reason"),
            pl.lit("hour_utc").alias("column"),
            pl.col("hour_utc").dt.to_string("%Y-%m-%d %H:%M:%S").alias("value"),
        ),
    )


def _judged_against(staged: StagedDelivery) -> Iterator[Path]:
    """The files of earlier deliveries that one in the making is judged against."""
    for folder in staged.folders:
        yield from sorted(folder.path.glob("*.parquet"))
    if staged.parts:
        first, last = min(part.first_hour for part in staged.parts), max(part.last_hour for part in staged.parts)
        for folder in staged.folders:
            if folder.overlaps(first, last):
                yield from drive_hour_files(folder, first, last)


def _quarantine(warehouse: Path, landing: Landing, files: list[SourceFile], report: GateReport, options: dict[str, Any]) -> Held:
    """Keep the new files of a call in quarantine; they have then landed nothing."""
    # a file that could not even be opened has no bytes to keep
    new = {result.file: result for result in landing.results if result.file_no is not None and result.sha256}
    kept = [(file, new[file.file].sha256, new[file.file].rows_delivered) for file in files if file.file in new]
    held = hold(landing.staged.scratch, warehouse, kept, report, options)
    for result in new.values():
        result.status, result.notes, result.file_no = QUARANTINED, [f"held in quarantine {held.number}"], None
        result.rows_delivered = result.rows_accepted = result.rows_rejected = result.rows_duplicate = result.rows_superseded = 0
    return held

"""One call in the making: what was read of each file, what was rejected, what is staged; counted as it goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import polars as pl
import pyarrow as pa

from ingest.contract.errors import IngestError, StoreError, UnreadableFile
from ingest.contract.fleet import CONTRACT, IDENTITY, INGESTED_FILES, RAW_KINDS, REJECTED_RECORDS, TIMED, Layout, raw_columns
from ingest.contract.values import DEFAULT_MIN_COVERAGE
from ingest.raw.judge import Verdict, judge_table, judge_timed
from ingest.raw.quarantine import DROPPED, GateReport, Held
from ingest.raw.store import Part, StagedDelivery, known_files, utc_now
from ingest.reading.files import ALREADY_LANDED, LANDED, QUARANTINED, UNREADABLE, FileResult, SourceFile, sha256_of
from ingest.reading.hosts import Rejection
from ingest.reading.parse import REJECTION
from ingest.reading.readers import SHOWN_VALUE_CHARS, RawChunk, one_line, read_chunks, utf8

T = TypeVar("T")

# What only a broken content can raise out of Polars and Arrow; a full disk is not among them.
_CONTENT_ERRORS = (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError, OverflowError)


@dataclass
class Landing:
    """What a source module fills while it reads. `kind` and `min_coverage` are the options of the call, `options` those of its source.

    `withheld(hashes)` says which files (name -> SHA-256) the gate holds back or has seen dropped.
    """

    source: str
    staged: StagedDelivery
    kind: str | None
    min_coverage: float | None
    identity: Callable[[SourceFile], str]
    on_progress: Callable[[str, int, int], None]
    withheld: Callable[[dict[str, str]], dict[str, Held]] = lambda hashes: {}
    options: dict[str, Any] = field(default_factory=dict)
    total_files: int = 0
    results: list[FileResult] = field(default_factory=list)
    _hashes: dict[str, str] = field(default_factory=dict)
    _closed: dict[str, str] = field(default_factory=dict)
    _by_hash: dict[str, list[tuple[str, str, str | None]]] = field(default_factory=dict)
    _tables: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {kind: [] for kind in RAW_KINDS if kind not in TIMED})
    _rejected: dict[int, list[pl.DataFrame]] = field(default_factory=dict)
    _parts: dict[int, list[Part]] = field(default_factory=dict)
    _samples: list[pl.DataFrame] = field(default_factory=list)
    _withheld: dict[str, Held] = field(default_factory=dict)
    _derived: set[str] = field(default_factory=set)

    def prepare(self, files: list[SourceFile]) -> None:
        """Hash the files and look up which of them earlier deliveries hold."""
        self.total_files = len(files)
        self._hashes = {}
        for number, file in enumerate(files):
            try:
                self._hashes[file.file] = "" if file.is_outside else sha256_of(file.path)
            except OSError as error:
                self._hashes[file.file] = ""
                self._closed[file.file] = f"the file cannot be opened: {one_line(error)}"
            self.on_progress("hash", number + 1, len(files))
        known = known_files(self.staged.deliveries, self.source, set(self._hashes.values()))
        # what was refused under other options may be read under these: its message says which to give
        refused = pl.col("status") == UNREADABLE
        seqs = set(known.filter(refused)["delivery_seq"])
        asked = {each.seq: each.record().get("source_options", {}) for each in self.staged.deliveries if each.seq in seqs}
        here = json.loads(json.dumps(self.options))  # as a record of a delivery has them
        other = [seq for seq, options in asked.items() if options != here]
        known = known.filter(~(refused & pl.col("delivery_seq").is_in(other))).sort(refused, maintain_order=True)
        for sha256, name, status, note in known.select("sha256", "file", "status", "note").iter_rows():
            self._by_hash.setdefault(sha256, []).append((name, status, note))
        self._withheld = self.withheld({name: sha256 for name, sha256 in self._hashes.items() if sha256 not in self._by_hash})

    def start(self, file: SourceFile) -> FileResult | None:
        """Begin a file; null where there is nothing to read of it (already landed, or refused as it was found)."""
        self.on_progress("read", len(self.results), self.total_files)
        result = FileResult(file.file, file.record_kind, sha256=self._hashes[file.file])
        self.results.append(result)
        name = self.identity(file)
        for known, status, note in self._by_hash.get(result.sha256, []):
            if known == file.file or known.endswith(("/" + name, "!" + name)):
                # known by its content and its name within what was given, wherever that lies now
                result.status = UNREADABLE if status == UNREADABLE else ALREADY_LANDED
                result.notes = [note] if note and status == UNREADABLE else []
                return None
        held = self._withheld.get(file.file)
        if held is not None:
            result.status = QUARANTINED if held.decision is None else DROPPED
            by = held.decision and f"dropped by {held.decision['by']}: {held.decision['note']}; ingested without the gate it would land"
            result.notes = [by or f"held in quarantine {held.number}"]
            return None
        self._by_hash.setdefault(result.sha256, []).append((file.file, LANDED, None))
        result.file_no = sum(other.file_no is not None for other in self.results) + 1
        result.ingested_at = utc_now()
        fault = file.fault or self._closed.get(file.file)
        if fault is not None:
            self.mark_unreadable(result, fault)
            return None
        return result

    @contextmanager
    def reading(self, result: FileResult) -> Iterator[None]:
        """Read one delivered file: whatever is wrong with its content makes it unreadable, and costs the files beside it nothing."""
        try:
            yield
        except UnreadableFile as error:
            self.mark_unreadable(result, str(error))
        except (IngestError, StoreError, OSError, MemoryError):  # of the call, or of the warehouse
            raise
        except (Exception, pl.exceptions.PanicException) as error:
            self.mark_unreadable(result, f"cannot be read: {one_line(error)} ({type(error).__name__})")

    def guard(self, step: Callable[[], T]) -> T:
        """Run a step on delivered content; what it raises on broken content becomes `UnreadableFile`."""
        try:
            return step()
        except MemoryError:  # Arrow's is one of its own errors, too
            raise
        except _CONTENT_ERRORS as error:
            raise UnreadableFile(f"cannot be read: {one_line(error)}") from error

    def guarded(self, chunks: Iterator[T]) -> Iterator[T]:
        """Chunks with every step guarded."""
        end = object()
        while (chunk := self.guard(lambda: next(chunks, end))) is not end:
            yield chunk  # type: ignore[misc]

    def read_tables(self, files: list[SourceFile], layout: Layout, take: Callable[[RawChunk, FileResult], None]) -> None:
        """Read files of rows chunk by chunk, `take` staging each; one that cannot be read, or holds what breaks `take`, lands nothing."""
        for file in files:
            result = self.start(file)
            if result is None:
                continue
            with self.reading(result):
                for chunk in self.guarded(read_chunks(file.path, layout, result.notes)):
                    self.guard(partial(take, chunk, result))

    def reject(self, result: FileResult, rejected: pl.DataFrame) -> None:
        """Count and keep rejections (columns row, reason, column, value) of a file."""
        if rejected.height and result.file_no is not None:
            result.rows_rejected += rejected.height
            self._rejected.setdefault(result.file_no, []).append(rejected)

    def accept(self, record_kind: str, rows: pl.DataFrame, result: FileResult | None) -> None:
        """Stage records: contract columns and `row_no`; with `file_no` too where they come of several files (no result).

        A source that sees drives from a host adds `is_alias` and `is_group_guessed` where they may be true.
        """
        if result is None:
            self._derived.add(record_kind)
        else:
            result.rows_accepted += rows.height
            rows = rows.with_columns(pl.lit(result.file_no, pl.Int64()).alias("file_no"))
        rows = rows.with_columns(pl.lit(self.staged.seq, pl.Int64()).alias("delivery_seq"))
        if record_kind in TIMED:
            min_coverage = DEFAULT_MIN_COVERAGE if self.min_coverage is None else self.min_coverage
            rows = rows.with_columns(pl.lit(min_coverage).alias("min_coverage"), pl.lit(self.kind, pl.String()).alias("declared_kind"))
        if self.staged.source is not None:
            flags = [name for name in IDENTITY[record_kind] if name != "source"]
            given = [pl.col(name).fill_null(False) if name in rows.columns else pl.lit(False).alias(name) for name in flags]
            rows = rows.with_columns(pl.lit(self.source).alias("source"), *given)
        rows = rows.select(pl.col(name).cast(dtype) for name, dtype in raw_columns(record_kind, self.staged.source).items())
        if record_kind not in TIMED:
            self._tables[record_kind].append(rows)
            return
        parts = self.staged.add_timed(record_kind, rows)
        if result is not None and result.file_no is not None:
            self._parts.setdefault(result.file_no, []).extend(parts)

    def reject_lines(self, result: FileResult, rejected: Iterable[Rejection]) -> None:
        """Count and keep lines of a text that were turned away: (line, reason, column, value)."""
        rows = [(line, why, column, None if value is None else utf8(value[:SHOWN_VALUE_CHARS])) for line, why, column, value in rejected]
        result.rows_delivered += len(rows)
        self.reject(result, pl.DataFrame(rows, schema=REJECTION, orient="row"))

    def accept_records(self, result: FileResult, record_kind: str, records: list[dict[str, Any]]) -> None:
        """Count and stage records, columns that a record does not name null. Without a `row_no` they are numbered.

        A record with a text that cannot be kept as it is, is turned away.
        """
        flags = {name: dtype for name, dtype in IDENTITY[record_kind].items() if name != "source"}
        schema = {**CONTRACT[record_kind], **flags, "row_no": pl.Int64()}
        good: list[dict[str, Any]] = []
        broken: list[Rejection] = []
        for number, record in enumerate(records, 1):
            numbered = {"row_no": number, **record}
            torn = next((name for name, value in record.items() if isinstance(value, str) and utf8(value) != value), None)
            if torn is None:
                good.append(numbered)
            else:
                broken.append((numbered["row_no"], "half a surrogate pair is in it, which is no text", torn, record[torn]))
        self.reject_lines(result, broken)
        if good:
            result.rows_delivered += len(good)
            self.accept(record_kind, pl.DataFrame(good, schema=schema), result)

    def withdraw(self, record_kind: str, rows: pl.DataFrame) -> None:
        """Forget the staged events or inventory that were read of the same rows (file_no, row_no) as these."""
        self._tables[record_kind] = [staged.join(rows, on=["file_no", "row_no"], how="anti") for staged in self._tables[record_kind]]

    @property
    def is_rolled_up(self) -> bool:
        """Whether the records are derived from delivered rows, several to one, and the inventory with them."""
        return bool(self._samples)

    @property
    def held(self) -> list[Held]:
        """Quarantined deliveries that hold files of this call."""
        return list({held.number: held for held in self._withheld.values() if held.decision is None}.values())

    def records(self, record_kind: str) -> pl.DataFrame:
        """The staged events or inventory, raw columns."""
        return pl.concat([pl.DataFrame(schema=raw_columns(record_kind, self.staged.source)), *self._tables[record_kind]])

    def refuse(self, record_kind: str, broken: pl.DataFrame) -> None:
        """Take staged records back as rejected: file_no, row_no, reason, column, value; each record once.

        Of a rolled-up record every delivered row behind it is rejected, under the number of the first.
        """
        if not broken.height:
            return
        if record_kind == "drive_hours":
            self._drop_samples_of(broken)
            self.staged.drop_rows(broken)
        else:
            self.withdraw(record_kind, broken)
        if self._samples:
            broken = broken.join(pl.concat(self._samples), on=["file_no", "row_no"]).with_columns(pl.col("of_file_no").alias("file_no"))
            broken = broken.select(pl.exclude("samples").repeat_by("samples").list.explode())
            seen = [pl.read_parquet(part.path, columns=["drive_id"], glob=False)["drive_id"] for part in self.staged.parts]
            drives = pl.concat([pl.Series("drive_id", [], pl.String()), *seen]).unique().implode()
            self._tables["drives"] = [rows.filter(pl.col("drive_id").is_in(drives)) for rows in self._tables["drives"]]
        by_no = {result.file_no: result for result in self.results}
        for (file_no,), rows in broken.partition_by("file_no", as_dict=True, maintain_order=True).items():
            by_no[file_no].rows_accepted -= rows.height
            self.reject(by_no[file_no], rows.select(pl.col("row_no").alias("row"), "reason", "column", "value"))

    def _drop_samples_of(self, broken: pl.DataFrame) -> None:
        """Take back what was measured within drive-hours that are rejected (file_no, row_no)."""
        samples = self.staged.timed["drive_samples"]
        if not samples:
            return
        hours = pl.scan_parquet([part.path for part in self.staged.parts], glob=False).select("file_no", "row_no", "drive_id", "hour_utc")
        gone = hours.join(broken.lazy().select("file_no", "row_no"), on=["file_no", "row_no"], how="semi")
        within = pl.scan_parquet([part.path for part in samples], glob=False).with_columns(
            pl.col("from_utc").dt.truncate("1h").alias("hour_utc")
        )
        dropped = within.join(gone, on=["drive_id", "hour_utc"], how="semi").select("file_no", "row_no").collect()
        self.staged.drop_rows(dropped, "drive_samples")

    def count_samples(self, samples: pl.DataFrame) -> None:
        """Say how many delivered rows stand behind a rolled-up drive-hour: file_no, row_no (of the record), of_file_no, samples."""
        self._samples.append(samples)

    def mark_unreadable(self, result: FileResult, why: str) -> None:
        """Take back what a file has landed so far and note why."""
        result.status, result.notes = UNREADABLE, [why]
        result.rows_delivered = result.rows_accepted = result.rows_rejected = result.rows_duplicate = result.rows_superseded = 0
        if result.file_no is None:
            return
        self._rejected.pop(result.file_no, None)
        self.staged.drop_parts(self._parts.pop(result.file_no, []))
        for record_kind, tables in self._tables.items():
            self._tables[record_kind] = [rows.filter(pl.col("file_no") != result.file_no) for rows in tables]

    def judge(self) -> dict[str, int]:
        """Judge all that was staged and write the tables of the delivery; returns stored rows by table."""
        stored: dict[str, int] = {}
        for record_kind, parts in self.staged.timed.items():
            verdict = judge_timed(self.staged, record_kind, lambda done, total: self.on_progress("judge", done, total))
            self.staged.drop_rows(verdict.dropped, record_kind)
            stored[record_kind] = sum(len(part.hashes) for part in parts)
            stored[f"retired_{record_kind}"] = self._write(f"retired_{record_kind}", verdict.retired)
            if record_kind == "drive_hours":  # which samples came follows from it
                self._recount(verdict, pl.concat(self._samples) if self._samples else None)
        for record_kind, tables in self._tables.items():
            rows = pl.concat(tables) if tables else pl.DataFrame(schema=raw_columns(record_kind, self.staged.source))
            verdict = judge_table(self.staged, record_kind, rows)
            stored[record_kind] = self._write(
                record_kind, rows.join(verdict.dropped, on=["file_no", "row_no"], how="anti", maintain_order="left")
            )
            stored[f"retired_{record_kind}"] = self._write(f"retired_{record_kind}", verdict.retired)
            if record_kind not in self._derived:  # what is derived was not delivered, so no file counts it
                self._recount(verdict, None)
        stored["rejected_records"] = self._write("rejected_records", self.rejected())
        stored["ingested_files"] = self._write("ingested_files", self.ingested_files())
        return stored

    def _write(self, table: str, rows: pl.DataFrame) -> int:
        self.staged.write_table(table, rows)
        return rows.height

    def _recount(self, verdict: Verdict, samples: pl.DataFrame | None) -> None:
        by_no = {result.file_no: result for result in self.results if result.file_no is not None}
        for ids, count in ((verdict.duplicate, "rows_duplicate"), (verdict.superseded, "rows_superseded")):
            if samples is None:
                counts = ids.group_by("file_no").len()
            else:
                counts = ids.join(samples, on=["file_no", "row_no"]).group_by("of_file_no").agg(pl.col("samples").sum())
            for file_no, rows in counts.iter_rows():
                result = by_no[file_no]
                result.rows_accepted -= rows
                setattr(result, count, getattr(result, count) + rows)

    def rejected(self, limit: int | None = None) -> pl.DataFrame:
        """The rejected records of the call, by file and row; the first `limit` of them."""
        now = utc_now()
        frames = [pl.DataFrame(schema=REJECTED_RECORDS)]
        left = limit
        for result in self.results:
            for rows in self._rejected.get(result.file_no or 0, []):
                rows = rows if left is None else rows.head(left)
                left = None if left is None else left - rows.height
                frames.append(
                    rows.with_columns(
                        pl.lit(self.source).alias("source"),
                        pl.lit(result.file).alias("file"),
                        pl.lit(now, pl.Datetime("us")).alias("rejected_at"),
                        pl.lit(self.staged.seq, pl.Int64()).alias("delivery_seq"),
                    ).select(pl.col(name).cast(dtype) for name, dtype in REJECTED_RECORDS.items())
                )
        return pl.concat(frames)

    def ingested_files(self) -> pl.DataFrame:
        """The files of the call that no earlier delivery holds."""
        min_coverage = DEFAULT_MIN_COVERAGE if self.min_coverage is None else self.min_coverage
        rows = [
            {
                **{name: getattr(result, name) for name in INGESTED_FILES if hasattr(result, name)},
                "source": self.source,
                "min_coverage": min_coverage,
                "declared_kind": self.kind,
                "delivery_seq": self.staged.seq,
            }
            for result in self.results
            if result.file_no is not None
        ]
        return pl.DataFrame(rows, schema=INGESTED_FILES)


class Gate(Protocol):
    """Looks at a delivery that is read and staged, before it is judged. May take rows back (`landing.refuse`)."""

    def check(self, landing: Landing) -> GateReport:
        """Look at it."""

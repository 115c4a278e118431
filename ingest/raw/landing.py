"""One call in the making: what was read of each file, what was rejected, what is staged; counted as it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import polars as pl

from ingest.contract.errors import IngestError, StoreError, UnreadableFile
from ingest.contract.fleet import CONTRACT, IDENTITY, raw_columns
from ingest.contract.values import DEFAULT_MIN_COVERAGE, RAW_KINDS, TIMED, utc_now
from ingest.raw.arrivals import Arrivals
from ingest.raw.copying import Copying
from ingest.raw.quarantine import GateReport
from ingest.raw.staging import Part, StagedDelivery
from ingest.reading.batches import Batch
from ingest.reading.files import UNREADABLE, FileResult, SourceFile, Watch, is_of_machine
from ingest.reading.readers import RawChunk, format_of
from ingest.reading.text import one_line

T = TypeVar("T")


@dataclass
class Landing:
    """The target that a source fills while it reads: records are staged, rejections kept, rows counted by file.

    `kind` and `min_coverage` are the options of the call, `options` those of its source. `tables`: staged records that are not TIMED;
    `rejections` and `parts`: by file number; `samples`: see count_samples; `derived`: kinds whose records come of several files;
    `on_new`: is called before the first new file is read.
    """

    source: str
    staged: StagedDelivery
    kind: str | None
    min_coverage: float | None
    arrivals: Arrivals
    on_progress: Callable[[str, int, int], None]
    options: dict[str, Any] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)
    on_new: Callable[[], object] = lambda: None
    results: list[FileResult] = field(default_factory=list)
    tables: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {kind: [] for kind in RAW_KINDS if kind not in TIMED})
    rejections: dict[int, list[pl.DataFrame]] = field(default_factory=dict)
    parts: dict[int, list[Part]] = field(default_factory=dict)
    samples: list[pl.DataFrame] = field(default_factory=list)
    derived: set[str] = field(default_factory=set)

    def start(self, file: SourceFile) -> FileResult | None:
        """Begin a file; null where there is nothing to read of it (already landed, or refused as it was found)."""
        self.on_progress("read", len(self.results), self.arrivals.total)
        result = FileResult(file.file, file.record_kind, sha256=self.arrivals.sha256[file.file])
        result.is_retryable = file.file in self.arrivals.is_retryable
        self.results.append(result)
        known = self.arrivals.status_of(file)
        if known is not None:
            result.status, result.notes = known
            return None
        result.file_no = len(self.by_no) + 1
        if result.file_no == 1:
            self.on_new()
        result.ingested_at = utc_now()
        fault = self.arrivals.fault_of(file)
        if fault is not None:
            self.mark_unreadable(result, fault)
            return None
        return result

    @contextmanager
    def reading(self, result: FileResult) -> Iterator[None]:
        """Read one delivered file: any error in its content makes it unreadable and does not affect other files."""
        try:
            with self.watch.over(result.file):
                yield
                self.staged.settle()
        except UnreadableFile as error:
            self.mark_unreadable(result, str(error))
            if is_of_machine(error):
                # by its content it would be known as unreadable, and not be read again
                result.is_retryable, result.sha256 = True, ""
        except (IngestError, StoreError, OSError, MemoryError):  # of the call, or of the warehouse
            raise
        except (Exception, pl.exceptions.PanicException) as error:
            self.mark_unreadable(result, f"cannot be read: {one_line(error)} ({type(error).__name__})")

    def read_each(self, files: list[SourceFile], read: Callable[[SourceFile, FileResult], T]) -> list[tuple[FileResult, T]]:
        """Outcome of every new file; one that cannot be read lands nothing and costs the others nothing."""
        found = []
        for file in files:
            result = self.start(file)
            if result is None:
                continue
            with self.reading(result):
                found.append((result, read(file, result)))
        return found

    def read(self, files: list[SourceFile], batches: Callable[[SourceFile, FileResult], Iterator[Batch]]) -> list[pl.DataFrame]:
        """Count and stage what every new file yields. Returns: the rows that the source combines itself, with `file_no`."""

        def taken(file: SourceFile, result: FileResult) -> list[pl.DataFrame]:
            kept = []
            for batch in batches(file, result):
                self.take(batch, result)
                if batch.record_kind is None:
                    kept.append(batch.rows.with_columns(pl.lit(result.file_no, pl.Int64()).alias("file_no")))
            return kept

        return [rows for _, frames in self.read_each(files, taken) for rows in frames]

    def take(self, batch: Batch, result: FileResult) -> None:
        """Count a batch of a file and stage its records."""
        result.rows_delivered += batch.delivered
        result.rows_duplicate += batch.duplicates
        self.reject(result, batch.rejected)
        if batch.record_kind is None:
            result.rows_accepted += batch.rows.height
        else:
            self.accept(batch.record_kind, batch.rows, result, is_beside=batch.is_beside)

    @property
    def by_no(self) -> dict[int, FileResult]:
        """The new files of the call by number."""
        return {result.file_no: result for result in self.results if result.file_no is not None}

    def reject(self, result: FileResult, rejected: pl.DataFrame) -> None:
        """Count and keep rejections (columns row, reason, column, value) of a file."""
        if rejected.height and result.file_no is not None:
            result.rows_rejected += rejected.height
            self.rejections.setdefault(result.file_no, []).append(rejected)

    def accept(self, record_kind: str, rows: pl.DataFrame, result: FileResult | None, *, is_beside: bool = False) -> None:
        """Stage records: contract columns and `row_no`; with `file_no` too where they come of several files (no result).

        is_beside: no row of a file counts them.

        A source that sees drives from a host adds `is_alias` and `is_group_guessed` where they may be true.
        """
        if result is None or is_beside:
            self.derived.add(record_kind)
        else:
            result.rows_accepted += rows.height
        rows = self._raw(record_kind, rows, result)
        if record_kind not in TIMED:
            self.tables[record_kind].append(rows)
            return
        parts = self.staged.add_timed(record_kind, rows)
        if result is not None and result.file_no is not None:
            self.parts.setdefault(result.file_no, []).extend(parts)

    def copy(self, file: SourceFile, result: FileResult, read: Callable[[RawChunk], Batch]) -> bool:
        """Stage a whole file as it was delivered, if `read` would change nothing of it; false where it has to be read in batches.

        For a source that names drives and RAID groups itself, whose files hold records of the contract.
        """
        if file.record_kind not in TIMED or format_of(file.path.name) != "parquet":
            return False
        kind: str = file.record_kind
        missing = {name: pl.lit(None, dtype) for name, dtype in CONTRACT[kind].items()}
        copying = Copying(kind, lambda rows: self._raw(kind, rows.with_columns(**missing), result), read)
        part = copying.copy(file.path, self.staged.scratch / "copy.parquet")
        if part is None or result.file_no is None:
            return False
        self.staged.take_part(part)
        self.parts.setdefault(result.file_no, []).append(part)
        result.rows_delivered += part.hashes.size
        result.rows_accepted += part.hashes.size
        return True

    def _raw(self, record_kind: str, rows: pl.DataFrame, result: FileResult | None) -> pl.DataFrame:
        """Records in raw columns: with where they come from, and with the options of the call."""
        if result is not None:
            rows = rows.with_columns(pl.lit(result.file_no, pl.Int64()).alias("file_no"))
        rows = rows.with_columns(pl.lit(self.staged.seq, pl.Int64()).alias("delivery_seq"))
        if record_kind in TIMED:
            min_coverage = DEFAULT_MIN_COVERAGE if self.min_coverage is None else self.min_coverage
            rows = rows.with_columns(pl.lit(min_coverage).alias("min_coverage"), pl.lit(self.kind, pl.String()).alias("declared_kind"))
        if record_kind == "drives":
            rows = rows.with_columns(pl.col("kind").fill_null(pl.lit(self.kind, pl.String())))
        if self.staged.source is not None:
            seen = {name: dtype for name, dtype in IDENTITY[record_kind].items() if name != "source"}
            rows = rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in seen.items() if name not in rows.columns)
            given = [pl.col(name).fill_null(False) for name, dtype in seen.items() if dtype == pl.Boolean()]
            rows = rows.with_columns(pl.lit(self.source).alias("source"), *given)
        return rows.select(pl.col(name).cast(dtype) for name, dtype in raw_columns(record_kind, self.staged.source).items())

    def withdraw(self, record_kind: str, rows: pl.DataFrame, *same: str) -> None:
        """Forget the staged events or inventory of the same rows (file_no, row_no) as these, if the columns `same` are equal, too."""
        self.tables[record_kind] = [staged.join(rows, on=["file_no", "row_no", *same], how="anti") for staged in self.tables[record_kind]]

    @property
    def is_rolled_up(self) -> bool:
        """Whether the records are derived from delivered rows, several to one, and the inventory with them."""
        return bool(self.samples)

    def records(self, record_kind: str) -> pl.DataFrame:
        """The staged events or inventory, raw columns."""
        return pl.concat([pl.DataFrame(schema=raw_columns(record_kind, self.staged.source)), *self.tables[record_kind]])

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
        if self.samples:
            broken = broken.join(pl.concat(self.samples), on=["file_no", "row_no"]).with_columns(pl.col("of_file_no").alias("file_no"))
            broken = broken.select(pl.exclude("samples").repeat_by("samples").list.explode())
            seen = [pl.read_parquet(part.path, columns=["drive_id"], glob=False)["drive_id"] for part in self.staged.parts]
            names = pl.concat([pl.Series("drive_id", [], pl.String()), *seen]).unique()
            serials = [
                rows.filter(pl.col("alias").is_in(names.implode()))["drive_id"].drop_nulls() for rows in self.tables["drive_aliases"]
            ]
            drives = pl.concat([names, *serials]).unique().implode()
            self.tables["drives"] = [rows.filter(pl.col("drive_id").is_in(drives)) for rows in self.tables["drives"]]
        self.turn_away(broken)

    def turn_away(self, rows: pl.DataFrame) -> None:
        """Reject delivered rows that were counted as accepted: file_no, row_no, reason, column, value."""
        by_no = self.by_no
        for (file_no,), of_file in rows.partition_by("file_no", as_dict=True, maintain_order=True).items():
            by_no[file_no].rows_accepted -= of_file.height
            self.reject(by_no[file_no], of_file.select(pl.col("row_no").alias("row"), "reason", "column", "value"))

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
        self.samples.append(samples)

    def mark_unreadable(self, result: FileResult, why: str) -> None:
        """Take back what a file has landed so far and note why."""
        result.status, result.notes = UNREADABLE, [why]
        result.rows_delivered = result.rows_accepted = result.rows_rejected = result.rows_duplicate = result.rows_superseded = 0
        if result.file_no is None:
            return
        self.rejections.pop(result.file_no, None)
        self.staged.drop_parts(self.parts.pop(result.file_no, []))
        for record_kind, tables in self.tables.items():
            self.tables[record_kind] = [rows.filter(pl.col("file_no") != result.file_no) for rows in tables]


class Gate(Protocol):
    """Looks at a delivery that is read and staged, before it is judged. May take rows back (`landing.refuse`)."""

    def prepare(self) -> None:
        """Get ready, while a delivery is read."""

    def check(self, landing: Landing) -> GateReport:
        """Look at it."""

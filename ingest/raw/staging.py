"""How a delivery gets into `WAREHOUSE/raw`: written aside, committed by one rename (docs/decisions/0001-raw-store.md)."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ingest.contract.fleet import key_of
from ingest.contract.values import RAW_KINDS, TIMED
from ingest.raw.durable import draft_in, put_folder
from ingest.raw.store import Folder, folder_name, list_folders, next_number, raw_root, require_plain_path
from ingest.reading.readers import CHUNK_ROWS

ROW_GROUP_ROWS = 250_000
WRITERS = 2
# numbers of few values, which a dictionary keeps in almost no room; other numbers differ from row to row
_CONSTANT = ("block_bytes", "coverage", "min_coverage", "delivery_seq", "file_no")


@contextmanager
def ingest_lock(warehouse: Path) -> Iterator[None]:
    """Hold the one lock under which deliveries are judged and committed; waits for another ingest to end.

    Raises: StoreError where no build could read what lands there.
    """
    require_plain_path(warehouse)
    root = raw_root(warehouse)
    (root / "deliveries").mkdir(parents=True, exist_ok=True)
    (root / ".staging").mkdir(exist_ok=True)
    with (root / "ingest.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield  # closing the file gives the lock back, also when the process dies


def clear_staging(root: Path) -> None:
    """Remove what killed calls left in `.staging`. For the holder of the lock, before it stages anything."""
    for left in (root / ".staging").iterdir():
        shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


@dataclass
class Part:
    """One staged file of a TIMED kind, of one UTC day, rows in order of time; `hashes` are those of the rows' keys."""

    record_kind: str
    path: Path
    first_hour: datetime
    last_hour: datetime
    hashes: NDArray[np.uint64]

    def overlaps(self, first: datetime, last: datetime) -> bool:
        """Whether any row may be in the closed range of hours [first, last]."""
        return self.first_hour <= last and first <= self.last_hour


class StagedDelivery:
    """A delivery being written under `.staging`; `commit` makes it one of `deliveries`, anything else leaves no trace.

    Use inside `ingest_lock`: what lies in `.staging` then belongs to dead processes and is removed.
    """

    def __init__(self, warehouse: Path, source: str | None = None) -> None:
        """`source`: whose records these are, null for one that names drives and RAID groups itself."""
        self.root = raw_root(warehouse)
        self.source = source
        self._suffix = f".{source}.parquet" if source else ".parquet"
        clear_staging(self.root)
        self.folders = list_folders(warehouse)
        self.seq = next_number(warehouse, self.folders)
        self.path = draft_in(self.root / ".staging", "delivery")
        self.scratch = self.path.with_suffix(".scratch")
        self.path.mkdir()
        self.scratch.mkdir()
        self._timed: dict[str, list[Part]] = {record_kind: [] for record_kind in TIMED}
        self._day_counts: dict[tuple[str, date], int] = {}
        self._writer = ThreadPoolExecutor(max_workers=WRITERS)
        self._being_written: deque[Future[None]] = deque()

    def discard(self) -> None:
        """Remove what was staged; does nothing after a commit."""
        self._writer.shutdown()
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def settle(self, left: int = 0) -> None:
        """Wait until no more than `left` files are being written while the next rows are read. Raises: what went wrong with one."""
        while len(self._being_written) > left:
            self._being_written.popleft().result()

    @property
    def timed(self) -> dict[str, list[Part]]:
        """The staged files of each TIMED kind, all of them written."""
        self.settle()
        return self._timed

    @property
    def parts(self) -> list[Part]:
        """The staged files of drive-hours."""
        return self.timed["drive_hours"]

    def add_timed(self, record_kind: str, rows: pl.DataFrame) -> list[Part]:
        """Write records of a TIMED kind in raw columns, one file per UTC day; returns the parts, their rows in order of time."""
        if not rows.height:
            return []
        at = TIMED[record_kind]
        if not rows[at].is_sorted():
            rows = rows.sort(at, maintain_order=True)
        added = []
        first, last = rows[at][0], rows[at][-1]
        if first.date() == last.date():
            days = [rows]
        else:
            days = rows.with_columns(pl.col(at).dt.date().alias("\0day")).partition_by("\0day", maintain_order=True, include_key=False)
        for day in days:
            path = self._next_path(record_kind, day[at][0].date())
            self.settle(left=WRITERS - 1)
            self._being_written.append(self._writer.submit(write_parquet, day, path))
            added.append(Part(record_kind, path, hour_of(day[at][0]), hour_of(day[at][-1]), key_hashes(day, record_kind)))
        self._timed[record_kind] += added
        return added

    def take_part(self, part: Part) -> None:
        """Take in a file of scratch that is as raw would write it, of one UTC day."""
        part.path = part.path.replace(self._next_path(part.record_kind, part.first_hour.date()))
        self._timed[part.record_kind].append(part)

    def _next_path(self, record_kind: str, day: date) -> Path:
        """Where the next file of a day goes."""
        folder = self.path / record_kind
        folder.mkdir(exist_ok=True)
        count = self._day_counts.get((record_kind, day), 0)
        self._day_counts[record_kind, day] = count + 1
        return folder / ((f"{day}.{count}" if count else str(day)) + self._suffix)

    def drop_parts(self, parts: Iterable[Part]) -> None:
        """Take staged parts back, for a file that turned out unreadable half way."""
        for part in parts:
            self.timed[part.record_kind].remove(part)
            part.path.unlink()

    def drop_rows(self, dropped: pl.DataFrame, record_kind: str = "drive_hours") -> None:
        """Rewrite those parts that hold records of this TIMED kind named in `dropped` (file_no, row_no)."""
        if not dropped.height:
            return
        gone = np.sort(_record_number(dropped))
        for part in list(self.timed[record_kind]):
            scan = pl.scan_parquet(part.path, glob=False)
            number = _record_number(scan.select("file_no", "row_no").collect())
            is_kept = gone[np.minimum(np.searchsorted(gone, number), gone.size - 1)] != number
            if is_kept.all():
                continue
            for start in range(0, number.size, CHUNK_ROWS):  # a copied file is a whole day
                piece = pl.Series(is_kept[start : start + CHUNK_ROWS])
                self.add_timed(record_kind, scan.slice(start, CHUNK_ROWS).collect().filter(piece))
            self.settle()
            self.drop_parts([part])

    def rows_before(self, hour: datetime) -> pl.DataFrame:
        """The staged drive-hours before an hour: file_no, row_no, hour_utc."""
        found = [pl.DataFrame(schema={"file_no": pl.Int64(), "row_no": pl.Int64(), "hour_utc": pl.Datetime("us")})]
        for part in self.parts:
            if part.first_hour < hour:
                scan = pl.scan_parquet(part.path, glob=False).filter(pl.col("hour_utc") < hour)
                found.append(scan.select("file_no", "row_no", "hour_utc").collect())
        return pl.concat(found)

    def write_table(self, table: str, rows: pl.DataFrame) -> int:
        """Write `TABLE.parquet`, of records with their source in the name; no file for a table without rows. Returns: how many it has."""
        if rows.height:
            write_parquet(rows, self.path / (table + (self._suffix if table in RAW_KINDS else ".parquet")))
        return rows.height

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a file of the delivery's folder that says something of it."""
        (self.path / name).write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")

    def commit(self, description: Mapping[str, Any]) -> Folder:
        """Describe, sync and publish the delivery by one rename; after it returns, the delivery survives a power cut."""
        first = min((part.first_hour for part in self.parts), default=None)
        last = max((part.last_hour for part in self.parts), default=None)
        target = self.root / "deliveries" / folder_name(self.seq, self.seq, (first, last))
        self.write_json("delivery.json", {"delivery_seq": self.seq, **description})
        for record_kind in TIMED:
            folder = self.path / record_kind
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()
        put_folder(self.path, target)
        shutil.rmtree(self.scratch, ignore_errors=True)
        return Folder(self.seq, first, last, target, self.seq)


def hour_of(instant: datetime) -> datetime:
    """The hour that an instant is in."""
    return instant.replace(minute=0, second=0, microsecond=0)


def _record_number(ids: pl.DataFrame) -> NDArray[np.int64]:
    """(file_no, row_no) as one number; a file of 2^40 rows would be the first to break it."""
    return ids.select(pl.col("file_no") * (1 << 40) + pl.col("row_no")).to_series().to_numpy()


def write_parquet(rows: pl.DataFrame, path: Path, group_rows: int = ROW_GROUP_ROWS) -> None:
    """Write rows as Parquet (zstd): fast to write, and row groups small enough to skip hours by their statistics.

    Raises: OSError whatever Arrow calls it; nothing is wrong with the file that the rows were read from.
    """
    try:
        pq.write_table(rows.to_arrow(), path, row_group_size=group_rows, **parquet_options(rows.schema))
    except pa.ArrowException as error:
        raise OSError(str(error)) from error


def parquet_options(columns: Mapping[str, pl.DataType]) -> dict[str, Any]:
    """How raw encodes its columns."""
    numbers = {name: kind for name, kind in columns.items() if kind.is_numeric() and name not in _CONSTANT}
    # DuckDB 1.5 reads the bytes of doubles split, not those of whole numbers
    encodings = {name: "BYTE_STREAM_SPLIT" if kind.is_float() else "DELTA_BINARY_PACKED" for name, kind in numbers.items()}
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [name for name in columns if name not in encodings and name != "drive_id"],
        "column_encoding": encodings,
    }


def key_hashes(rows: pl.DataFrame, record_kind: str) -> NDArray[np.uint64]:
    """One 64-bit hash of each row's key. Equal keys have equal hashes within one process, never across processes."""
    hashes = np.zeros(rows.height, dtype=np.uint64)
    for name in key_of(record_kind, rows.columns):
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes ^= rows[name].hash().to_numpy()
    return hashes

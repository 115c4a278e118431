"""A delivered Parquet file that is as raw would write it is copied, with the columns that raw adds put behind it: nothing is encoded again.

The copy is then read as every reader will read it. It stays only if each row is sound, and is what the ordinary way would store.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ingest.contract.errors import UnreadableFile
from ingest.contract.fleet import CONTRACT, LAYOUT, REAL
from ingest.contract.values import TIMED
from ingest.raw.staging import Part, hour_of, key_hashes, parquet_options
from ingest.reading.batches import Batch
from ingest.reading.limits import LEAST_ROW_BYTES, unpacked_limit
from ingest.reading.readers import CHUNK_ROWS, RawChunk, contract_columns, refuse_encrypted
from ingest.reading.thrift import Struct, read_struct, write_struct

LEAST_GROUP_ROWS = 50_000
"""Mean rows of a row group, where a file has several: of smaller ones readers read more footer than rows."""

CODECS = frozenset({"ZSTD", "SNAPPY"})
ENCODINGS = frozenset({"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"})
"""Encodings that every reader of raw reads, about as fast as those raw writes."""

# numbers of fields in a Parquet footer (parquet.thrift)
_ROW_GROUPS = 4
_COLUMNS, _GROUP_BYTES, _GROUP_OFFSET, _GROUP_COMPRESSED_BYTES = 1, 2, 5, 6
_FILE_OFFSET, _METADATA = 2, 3
_BYTES, _COMPRESSED_BYTES, _DATA_PAGE, _DICTIONARY_PAGE = 6, 7, 9, 11
_KEPT = frozenset({1, 2, 3, 4, 5, _BYTES, _COMPRESSED_BYTES, _DATA_PAGE, _DICTIONARY_PAGE, 12})
"""Fields that are copied from a delivered column's metadata, not page indexes and filters: nobody would notice wrong ones."""
_TAIL_BYTES = 8

_ORDINARY = (
    UnreadableFile, OSError, MemoryError, RecursionError, ValueError, LookupError, TypeError, OverflowError,
    pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
"""Errors of a file that is not sound; the ordinary way then says what it is."""


@dataclass(frozen=True)
class Copying:
    """How files of a TIMED kind become raw. to_raw: rows of `row_no` alone -> all columns of raw, those of the contract null;
    read: a chunk of delivered rows -> what the ordinary way stores of it.
    """

    record_kind: str
    to_raw: Callable[[pl.DataFrame], pl.DataFrame]
    read: Callable[[RawChunk], Batch]

    def copy(self, delivered: Path, target: Path) -> Part | None:
        """Copy a file to `target`. Returns: None, with nothing left there, where it has to be read and written row by row."""
        part = None
        try:
            if self._promises(delivered) and self._write(delivered, target):
                part = self._checked(target)
        except _ORDINARY:
            pass
        finally:
            if part is None:
                target.unlink(missing_ok=True)
        return part

    def _no_rows(self) -> pl.DataFrame:
        return self.to_raw(pl.DataFrame(schema={"row_no": pl.Int64()}))

    def _promises(self, delivered: Path) -> bool:
        """Whether a footer promises columns of the contract alone, in row groups and encodings such as raw has."""
        refuse_encrypted(delivered)
        metadata = pq.read_metadata(delivered)
        names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
        contract_columns(names, LAYOUT[self.record_kind], [])
        rows, groups = metadata.num_rows, [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return (
            set(names) <= set(CONTRACT[self.record_kind])
            and 0 < rows * LEAST_ROW_BYTES <= unpacked_limit(delivered)
            and (len(groups) == 1 or len(groups) * LEAST_GROUP_ROWS <= rows)
            and all(0 < group.num_rows <= CHUNK_ROWS for group in groups)
            and all(
                column.compression in CODECS
                and not column.file_path
                # DuckDB 1.5 reads the bytes of doubles split, not those of whole numbers
                and set(column.encodings) <= ENCODINGS | ({"BYTE_STREAM_SPLIT"} if column.physical_type == "DOUBLE" else set())
                for group in groups
                for column in map(group.column, range(group.num_columns))
            )
        )

    def _write(self, delivered: Path, target: Path) -> bool:
        """Write the delivered columns as they are, then the others as raw writes them, under one footer; false where a type differs."""
        given = pq.read_metadata(delivered)
        nothing = self._no_rows()
        with pq.ParquetWriter(target, nothing.to_arrow().schema, **parquet_options(nothing.schema)) as writer:
            done = 1
            for number in range(given.num_row_groups):
                end = done + given.row_group(number).num_rows
                writer.write_table(self.to_raw(pl.int_range(done, end, eager=True).alias("row_no").to_frame()).to_arrow(), CHUNK_ROWS)
                done = end
        mine = pq.read_metadata(target)
        place = {given.schema.column(number).path: number for number in range(given.num_columns)}
        for number in range(mine.num_columns):
            column = mine.schema.column(number)
            if column.path in place and not column.equals(given.schema.column(place[column.path])):
                return False
        added = target.read_bytes()
        footer, added_end = _footer(added)
        shutil.copyfile(delivered, target)
        with target.open("r+b") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
            end = size - _TAIL_BYTES - int.from_bytes(tail[:4], "little")
            file.seek(end)
            delivered_footer, _ = _footer(file.read())
            for group, own in zip(_structs(footer, _ROW_GROUPS), _structs(delivered_footer, _ROW_GROUPS), strict=True):
                _join(group, own, [place.get(mine.schema.column(number).path) for number in range(mine.num_columns)], end - 4)
            file.seek(end)
            file.truncate()
            file.write(added[4:added_end])
            written = write_struct(footer)
            file.write(written + len(written).to_bytes(4, "little") + b"PAR1")
        return True

    def _checked(self, target: Path) -> Part | None:
        """Read a copy row group by row group; null where one is not sound, or not what would be stored."""
        at = TIMED[self.record_kind]
        metadata = pq.read_metadata(target)
        scan = pl.scan_parquet(target, glob=False)
        if scan.collect_schema() != self._no_rows().schema:
            return None
        hashes, first, last, start = [], None, None, 0
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            rows = scan.slice(start, group.num_rows).collect()
            delivered = rows.select(*CONTRACT[self.record_kind], "row_no")
            batch = self.read(RawChunk(delivered))
            first = first or rows[at][0]
            is_sound = (
                batch.rows.equals(delivered)
                and not any(np.signbit(delivered[name].to_numpy()).any() for name, kind in delivered.schema.items() if kind == REAL)
                and rows[at].is_sorted()
                and (last is None or last <= rows[at][0])
                and rows[at][-1].date() == first.date()
                and all(_is_true(group.column(place), rows.to_series(place)) for place in range(rows.width))
            )
            if not is_sound:
                return None
            hashes.append(key_hashes(rows, self.record_kind))
            last = rows[at][-1]
            start += group.num_rows
        if first is None or last is None or start != metadata.num_rows:
            return None
        return Part(self.record_kind, target, hour_of(first), hour_of(last), np.concatenate(hashes))


def _footer(data: bytes) -> tuple[Struct, int]:
    """The footer that a Parquet file ends with, and where it begins."""
    begin = len(data) - _TAIL_BYTES - int.from_bytes(data[-_TAIL_BYTES:-4], "little")
    return read_struct(data[begin:]), begin


def _structs(of: Struct, field: int) -> list[Struct]:
    """The structs that a field lists."""
    found: list[Struct] = of[field][1][1]
    return found


def _join(group: Struct, delivered: Struct, places: list[int | None], shift: int) -> None:
    """Put delivered columns into a row group, and move its own by a number of bytes.

    places: where each of its columns is among the delivered ones.
    """
    columns, given = _structs(group, _COLUMNS), _structs(delivered, _COLUMNS)
    for number, place in enumerate(places):
        column = columns[number]
        if place is not None:
            kind, metadata = given[place][_METADATA]
            column[_METADATA] = kind, {field: value for field, value in metadata.items() if field in _KEPT}
        else:
            metadata = column[_METADATA][1]
            for field in (_DATA_PAGE, _DICTIONARY_PAGE):
                if field in metadata:
                    metadata[field] = metadata[field][0], metadata[field][1] + shift
        column[_FILE_OFFSET] = column[_FILE_OFFSET][0], 0
    metadata_of = [column[_METADATA][1] for column in columns]
    offsets = [metadata.get(_DICTIONARY_PAGE, metadata[_DATA_PAGE])[1] for metadata in metadata_of]
    for field, value in (
        (_GROUP_BYTES, sum(metadata[_BYTES][1] for metadata in metadata_of)),
        (_GROUP_COMPRESSED_BYTES, sum(metadata[_COMPRESSED_BYTES][1] for metadata in metadata_of)),
        (_GROUP_OFFSET, min(offsets)),
    ):
        if field in group:
            group[field] = group[field][0], value


def _is_true(column: pq.ColumnChunkMetaData, values: pl.Series) -> bool:
    """Whether a footer's least and greatest value and nulls of a column are right: engines skip row groups and narrow types by it."""
    said = column.statistics
    nulls = values.null_count()
    if said is None or not said.has_null_count or said.null_count != nulls:
        return False
    if nulls == len(values):
        return not said.has_min_max
    return bool(said.has_min_max and said.min <= values.min() and said.max >= values.max())

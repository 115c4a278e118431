"""A delivered file -> chunks of its rows, every column still as delivered.

Formats: .parquet, .csv (.gz, .zst), .ndjson (.gz, .zst). Text formats come out with every column as text, an empty
field as null. Memory is bounded by the chunk, not by the file; a broken line costs that line, never its neighbours.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from ingest.contract.errors import UnreadableFile
from ingest.contract.fleet import TEXT, Layout
from ingest.reading.limits import LEAST_ROW_BYTES, SUSPECT_EXPANSION, too_large, unpacked_limit
from ingest.reading.text import one_line, utf8
from ingest.reading.thrift import read_struct

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".csv.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
TABLE_NAME = r".*\.(parquet|(csv|ndjson)(\.gz|\.zst)?)"
"""Their names, as a regular expression."""
# larger chunks are slower: their memory goes back to the system and is cleared again for the next one
CHUNK_ROWS = 500_000
BLOCK_BYTES = 64 << 20
# part of a block with a broken line that is read line by line
PIECE_BYTES = 1 << 20
LONGEST_LINE_BYTES = 256 << 20
SHOWN_VALUE_CHARS = 200
# A quoted value may span lines; beyond this many the quote is taken for one that was never closed.
LONGEST_QUOTED_LINES = 100
MOST_DIGITS = 20
UNITS = ("s", "ms", "us", "ns")
FOOTER_TAIL_BYTES, LONGEST_FOOTER_BYTES = 8, 16 << 20
# numbers of fields in a Parquet footer (parquet.thrift)
_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA, _CRYPTO_METADATA = 4, 1, 3, 8
YEAR_0, YEAR_10000 = -719_528, 2_932_897
"""Their first days, counted from 1970-01-01."""
NESTED, NOT_UTF8, UNCLOSED = "a nested value, expected one text or number", "not valid UTF-8", "a quote is not closed"
HALF_A_PAIR, TWICE = "it contains half a surrogate pair, which is not valid text", "the record has this key twice; write it once"
"""Why a text of JSON cannot be kept as it is."""


@dataclass
class BrokenRow:
    """A row that could not even be split into columns, or one value of it not decoded."""

    row_no: int
    reason: str
    column: str | None
    value: str | None


@dataclass
class RawChunk:
    """Rows of one file: `frame` holds the contract columns that were delivered, then `row_no` (int64, from 1)."""

    frame: pl.DataFrame
    broken: list[BrokenRow] = field(default_factory=list)

    @property
    def delivered(self) -> int:
        return self.frame.height + len(self.broken)


def format_of(name: str) -> str | None:
    """`parquet`, `csv` or `ndjson` by the file's name; None where the suffix is not one of `SUFFIXES`."""
    lowered = name.lower()
    for suffix in SUFFIXES:
        if lowered.endswith(suffix):
            return suffix.split(".")[1]
    return None


def read_chunks(path: Path, layout: Layout, notes: list[str]) -> Iterator[RawChunk]:
    """Yield the rows of `path` in file order, in chunks of at most `CHUNK_ROWS` (CSV: of a block of lines).

    Columns outside the contract are left out and named in `notes`. A file with columns and no rows yields nothing.
    Raises: UnreadableFile where the file is not what its name says, ends early, or lacks a required column.
    """
    try:
        if path.stat().st_size == 0:
            raise UnreadableFile("the file is empty (0 bytes); expected a header or Parquet footer")
        match format_of(path.name):
            case "parquet":
                yield from _read_parquet(path, layout, notes)
            case "csv":
                yield from _read_csv(path, layout, notes)
            case "ndjson":
                yield from _read_ndjson(path, layout, notes)
            case _:
                raise UnreadableFile(f"unknown format; expected a name that ends in {', '.join(SUFFIXES)}")
    except UnreadableFile:
        raise
    except (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise UnreadableFile(f"cannot be read as {format_of(path.name)}: {one_line(error)}") from error
    except (OSError, EOFError, zlib.error, UnicodeError, csv.Error, MemoryError, ValueError, RecursionError) as error:
        raise UnreadableFile(f"cannot be read: {one_line(error)}") from error


def whole(digits: str) -> int | float:
    """A whole number of JSON; one of more digits than any count has is a float, infinite at last, which no check of a count lets pass."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def count_in(value: Any) -> int | None:
    """A count, which some tools write as text; null for another value, and above 2^53."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= MOST_DIGITS:
        value = int(value)
    return value if type(value) is int and 0 <= value <= 2**53 else None


def text_in(value: Any) -> str | None:
    """A text of JSON without blanks around it; null for another value, and a blank one."""
    return value.strip() or None if isinstance(value, str) else None


def contract_columns(names: list[str], layout: Layout, notes: list[str]) -> dict[int, str]:
    """Position -> contract column for a header, names trimmed and in lower case.

    Raises: UnreadableFile for a name that comes twice or a missing required column.
    """
    cleaned = [name.strip().lower() for name in names]
    twice = min((name for name, count in Counter(cleaned).items() if name and count > 1), default=None)
    if twice is not None:
        raise UnreadableFile(f"column {twice[:60]!r} appears twice in the header; expected each name once")
    known = layout.columns
    _require(set(cleaned), layout, cleaned)
    extra = [name for name in cleaned if name not in known]
    if extra:
        shown = ", ".join(repr(name[:60]) for name in extra[:10]) + (f" and {len(extra) - 10} more" if len(extra) > 10 else "")
        notes.append(f"left out unknown columns: {shown}")
    return {position: name for position, name in enumerate(cleaned) if name in known}


def _require(found: set[str], layout: Layout, header: list[str]) -> None:
    ways = layout.required
    if any(set(way) <= found for way in ways):
        return
    lacking = [[name for name in way if name not in found] for way in ways]
    # report the layout that lacks the fewest columns: a file with a time lacks the drive alone, whatever either may be called
    nearest = list(dict.fromkeys(", ".join(names) for names in lacking if len(names) == min(map(len, lacking))))
    alternative = f" (or {' or '.join(nearest[1:4])})" if nearest[1:] else ""
    shown = ", ".join(name[:60] for name in header[:30]) or "nothing"
    others = [name for name in header if name not in layout.columns]
    alike = [(other, name) for name in nearest for other in get_close_matches(name, others, 1)]
    rename = f"; rename {alike[0][0][:60]} to {alike[0][1]}?" if alike else ""
    other_mark = next((mark for mark in ";\t|" if len(header) == 1 and mark in header[0]), None)
    if other_mark is not None:
        raise UnreadableFile(f"its columns are separated by {other_mark!r}; expected a comma; found {shown}")
    raise UnreadableFile(f"required column {nearest[0]}{alternative} is missing; found {shown}{rename}")


# Parquet ---------------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, layout: Layout, notes: list[str]) -> Iterator[RawChunk]:
    with path.open("rb") as stream:
        head = stream.read(4)
        stream.seek(max(0, path.stat().st_size - 4))
        tail = stream.read(4)
    if head != b"PAR1":
        raise UnreadableFile(f"not a Parquet file: it starts with {head!r}, expected b'PAR1'")
    if tail != b"PAR1":
        raise UnreadableFile(f"the Parquet file is cut off: it ends with {tail!r}, expected the footer b'PAR1'")
    refuse_encrypted(path)
    # times of Spark and Impala (INT96) would overflow in nanoseconds
    with pq.ParquetFile(path, pre_buffer=False, coerce_int96_timestamp_unit="us") as file:
        names = file.schema_arrow.names
        columns = contract_columns(names, layout, notes)
        limit = unpacked_limit(path)
        if file.metadata.num_rows * LEAST_ROW_BYTES > limit:
            raise UnreadableFile(too_large(f"the Parquet file ({file.metadata.num_rows:,} rows)", limit))
        wanted = [names[position] for position in columns]
        # row groups that make a chunk together: one that begins within a row group joins texts of two, which takes as long as reading them
        batches = (
            batch for groups in _together(file) for batch in file.iter_batches(batch_size=CHUNK_ROWS, row_groups=groups, columns=wanted)
        )
        yield from _ahead(_chunks_of(batches))


def refuse_encrypted(path: Path) -> None:
    """Raises: UnreadableFile for a Parquet file of which a column is encrypted: Arrow would abort the process over it."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - FOOTER_TAIL_BYTES))
        length = int.from_bytes(stream.read(4), "little")
        if length > LONGEST_FOOTER_BYTES:
            raise UnreadableFile(f"the Parquet file's footer has {length:,} bytes, more than {LONGEST_FOOTER_BYTES >> 20} MiB")
        stream.seek(max(0, path.stat().st_size - FOOTER_TAIL_BYTES - length))
        footer = stream.read(length)
    try:
        says = read_struct(footer)
        columns = [column for group in says[_ROW_GROUPS][1][1] for column in group[_COLUMNS][1][1]]
    except (ValueError, LookupError, TypeError, RecursionError):  # Arrow says what is wrong with it
        return
    if any(_CRYPTO_METADATA in column or _COLUMN_METADATA not in column for column in columns):
        raise UnreadableFile("a column of the Parquet file is encrypted; deliver it without encryption")


def _together(file: pq.ParquetFile) -> Iterator[list[int]]:
    """Numbers of row groups that follow each other, of at most `CHUNK_ROWS` rows together."""
    groups: list[int] = []
    rows = 0
    for number in range(file.num_row_groups):
        more = file.metadata.row_group(number).num_rows
        if groups and rows + more > CHUNK_ROWS:
            yield groups
            groups, rows = [], 0
        groups.append(number)
        rows += more
    if groups:
        yield groups


def _chunks_of(batches: Iterator[pa.RecordBatch]) -> Iterator[RawChunk]:
    done = 0
    for batch in batches:
        if batch.num_rows:
            yield _from_arrow(batch, done)
            done += batch.num_rows


def _ahead(chunks: Iterator[RawChunk]) -> Iterator[RawChunk]:
    """The same, each read while the one before it is in use."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


def _from_arrow(batch: pa.RecordBatch, rows_before: int) -> RawChunk:
    columns, broken = [], {}
    for given, values in zip(batch.schema.names, batch.columns, strict=True):
        name = given.strip().lower()
        texts, why = _series(values)
        columns.append(pl.Series(name, pl.from_arrow(texts)))
        broken.update({row: BrokenRow(rows_before + row + 1, reason, name, value) for row, (reason, value) in why.items()})
    frame = pl.DataFrame(columns)
    frame = frame.with_columns(pl.int_range(rows_before + 1, rows_before + frame.height + 1, dtype=pl.Int64).alias("row_no"))
    if broken:
        frame = frame.filter(~pl.int_range(pl.len()).is_in(list(broken)))
    return RawChunk(frame, [broken[row] for row in sorted(broken)])


def _series(values: pa.Array) -> tuple[pa.Array, dict[int, tuple[str, str]]]:
    """A column as polars takes it, and the rows whose value is none, each with why and the value."""
    kind = values.type
    broken: dict[int, tuple[str, str]] = {}
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode()
        kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values = _dated(values)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        try:
            values = values.cast(pa.large_binary()).cast(pa.large_string())
        except pa.ArrowInvalid:
            texts = [None if value is None else value.decode("utf-8", "backslashreplace") for value in values.to_pylist()]
            for row, (value, text) in enumerate(zip(values.to_pylist(), texts, strict=True)):
                if text is not None and text.encode() != value:
                    broken[row] = (NOT_UTF8, text[:SHOWN_VALUE_CHARS])
            values = pa.array(texts, pa.large_string())
    elif pa.types.is_nested(kind):
        texts = [_as_text(value) for value in values.to_pylist()]
        broken = {row: (NESTED, text[:SHOWN_VALUE_CHARS]) for row, text in enumerate(texts) if text is not None}
        values = pa.array(texts, pa.large_string())
    elif pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_decimal(kind) or pa.types.is_time(kind):
        values = pa.array([_as_text(v) for v in values.to_pylist()], pa.large_string())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values.validate(full=True)  # a writer that skips the check leaves bytes that are not UTF-8
    return values, broken


def _dated(values: pa.Array) -> pa.Array:
    """Days, or instants in UTC without zone. One that no reader of raw can show is in the year 0 or 10000, which no check lets pass."""
    kind = values.type
    a_day = 86_400 * 10 ** (3 * UNITS.index(kind.unit)) if pa.types.is_timestamp(kind) else 1 if kind == pa.date32() else 86_400_000
    # the stored number is UTC whatever zone the file names, also one this machine has never heard of
    numbers = values.cast(pa.int32() if kind == pa.date32() else pa.int64()).cast(pa.int64())
    first, last = (max(-(2**63), min(2**63 - 1, day * a_day)) for day in (YEAR_0, YEAR_10000))
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and not first <= found["min"] <= found["max"] <= last:
        numbers = pc.min_element_wise(pc.max_element_wise(numbers, first, skip_nulls=False), last, skip_nulls=False)
    if pa.types.is_timestamp(kind):
        return numbers.cast(pa.timestamp(kind.unit))
    return numbers.cast(pa.int32()).cast(kind) if kind == pa.date32() else numbers.cast(kind)


def _as_text(value: Any) -> str | None:
    """How a delivered value of an unexpected type is shown, and read as text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)
    return str(value)


# CSV -------------------------------------------------------------------------------------------------------------


def open_bytes(path: Path) -> IO[bytes]:
    """The decompressed bytes of a file, by its suffix (.gz, .zst or neither)."""
    lowered = path.name.lower()
    if lowered.endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if lowered.endswith(".zst"):
        return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")  # type: ignore[no-any-return]
    return path.open("rb")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The same, closed after use. Raises: UnreadableFile where it cannot be unpacked."""
    try:
        with open_bytes(path) as stream:
            yield stream
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise UnreadableFile(f"cannot be read: {one_line(error)}") from error


def _blocks(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines, each ending in a newline but perhaps the last; of no more bytes in all than the file may unpack to."""
    rest: list[bytes] = []
    held = total = 0
    limit = unpacked_limit(path)
    while block := stream.read(BLOCK_BYTES):
        if not total and len(block) > SUSPECT_EXPANSION * path.stat().st_size:
            _count_unpacked(path, limit)
        total += len(block)
        if total > limit:
            raise UnreadableFile(too_large("the file", limit))
        cut = block.rfind(b"\n")
        if cut < 0:
            rest.append(block)
            held += len(block)
            if held > LONGEST_LINE_BYTES:
                raise UnreadableFile(f"a line is longer than {LONGEST_LINE_BYTES >> 20} MiB; expected one record per line")
            continue
        yield b"".join([*rest, block[: cut + 1]])
        rest, held = [block[cut + 1 :]], len(block) - cut - 1
    if any(rest):
        yield b"".join(rest)


def _count_unpacked(path: Path, limit: int) -> None:
    """Unpack a file and keep nothing: what is taken for a bomb is refused before the memory is used that its rows need."""
    with opened(path) as stream:
        total = 0
        while block := stream.read(1 << 20):
            total += len(block)
            if total > limit:
                raise UnreadableFile(too_large("the file", limit))


def text_blocks(path: Path, expected: str) -> Iterator[bytes]:
    """Blocks of whole lines of a text file, unpacked, without byte order mark. Raises: UnreadableFile where it is no text."""
    with opened(path) as stream:
        first = True
        for block in _blocks(path, stream):
            if first:
                if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    raise UnreadableFile(f"the text is UTF-16; expected UTF-8 {expected}")
                if block[:4] in (b"PAR1", b"PK\x03\x04", b"\x28\xb5\x2f\xfd") or block[:2] == b"\x1f\x8b":
                    raise UnreadableFile(f"found binary data that starts with {block[:4]!r}; expected {expected}")
                block = block.removeprefix(b"\xef\xbb\xbf")
                first = not block
            if block:
                yield block
        if first:
            raise UnreadableFile(f"nothing is in it; expected {expected}")


def _read_csv(path: Path, layout: Layout, notes: list[str]) -> Iterator[RawChunk]:
    blocks = text_blocks(path, "a CSV header line")
    first = next((filled for block in blocks if (filled := block.lstrip(b"\r\n"))), None)
    if first is None:
        raise UnreadableFile("only blank lines are in it; expected a CSV header line")
    end = first.find(b"\n")
    header_bytes, body = (first, b"") if end < 0 else (first[:end], first[end + 1 :])
    try:
        header = next(csv.reader([header_bytes.decode("utf-8").strip("\r")]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"the first line is not a CSV header in UTF-8 ({one_line(error)})") from error
    columns = contract_columns(header, layout, notes)
    parser = _CsvParser(columns, len(header))
    for block in chain([body], blocks):
        yield from parser.parse(block)
    yield from parser.end()


class _CsvParser:
    """Blocks of CSV lines -> chunks; keeps the row count and what a block left unfinished."""

    def __init__(self, columns: dict[int, str], width: int) -> None:
        self.columns, self.width = columns, width
        self.rows_done = 0
        self.rest = b""

    def parse(self, block: bytes) -> Iterator[RawChunk]:
        """A block that cannot be read at once is read in pieces, and a piece that cannot line by line: one bad line costs one row."""
        chunks = []
        if (whole_block := self._fast(self.rest + block)) is not None:
            chunks = [whole_block]
        else:
            lines = io.BytesIO(block)
            while piece := lines.read(PIECE_BYTES) + lines.readline():
                piece = self.rest + piece
                chunks.append(self._fast(piece) or self._by_line(piece))
        if any(chunk.delivered for chunk in chunks):
            yield RawChunk(pl.concat([chunk.frame for chunk in chunks]), [row for chunk in chunks for row in chunk.broken])

    def end(self) -> Iterator[RawChunk]:
        """The rows that the last block left."""
        if (chunk := self._by_line(self.rest, is_last=True)).delivered:
            yield chunk

    def _fast(self, text: bytes) -> RawChunk | None:
        """All lines at once; None where any has a wrong number of fields, bytes that are not UTF-8, or a quote that it does not close."""
        if not text.strip(b"\r\n") or _has_open_quote(text):
            return None
        try:
            table = pa_csv.read_csv(
                io.BytesIO(text),
                read_options=pa_csv.ReadOptions(
                    column_names=[self.columns.get(position, f"\0{position}") for position in range(self.width)], block_size=4 << 20
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types={name: pa.string() for name in self.columns.values()},
                    include_columns=list(self.columns.values()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid:
            return None
        self.rest = b""
        return self._chunk(
            {name: pl.from_arrow(table[name]) for name in self.columns.values()}, np.arange(1, table.num_rows + 1) + self.rows_done, []
        )

    def _chunk(self, columns: Mapping[str, Any], row_nos: ArrayLike, broken: list[BrokenRow]) -> RawChunk:
        schema = {**dict.fromkeys(columns, TEXT), "row_no": pl.Int64()}
        chunk = RawChunk(pl.DataFrame({**columns, "row_no": row_nos}, schema=schema), broken)
        self.rows_done += chunk.delivered
        return chunk

    def _by_line(self, text: bytes, is_last: bool = False) -> RawChunk:
        lines = text.removesuffix(b"\n").split(b"\n")
        self.rest = b""
        rows: list[list[str]] = []
        row_nos: list[int] = []
        broken: list[BrokenRow] = []
        at = 0
        while at < len(lines):
            if not lines[at].strip(b"\r"):
                at += 1
                continue
            taken, fields = self._record(lines, at)
            if fields == UNCLOSED and not is_last and len(lines) - at <= LONGEST_QUOTED_LINES:
                self.rest = b"\n".join(lines[at:]) + b"\n"  # its end may be in the next block
                break
            row_no = self.rows_done + len(rows) + len(broken) + 1
            if isinstance(fields, str):
                shown = lines[at].decode("utf-8", "replace").rstrip("\r")
                broken.append(BrokenRow(row_no, fields, None, shown[:SHOWN_VALUE_CHARS]))
            else:
                rows.append(fields)
                row_nos.append(row_no)
            at += taken
        return self._chunk({name: [row[at] or None for row in rows] for at, name in self.columns.items()}, row_nos, broken)

    def _record(self, lines: list[bytes], at: int) -> tuple[int, list[str] | str]:
        """The record that starts at a line: how many lines it takes and its fields, or why it cannot be read."""
        if lines[at].count(b'"') % 2 == 0:
            return 1, self._fields(lines[at : at + 1])
        for end in range(at + 1, min(at + LONGEST_QUOTED_LINES, len(lines))):
            if lines[end].count(b'"') % 2:
                fields = self._fields(lines[at : end + 1])
                return (1, UNCLOSED) if isinstance(fields, str) else (end - at + 1, fields)
        return 1, UNCLOSED

    def _fields(self, lines: list[bytes]) -> list[str] | str:
        csv.field_size_limit(LONGEST_LINE_BYTES)
        try:
            text = b"\n".join(line.rstrip(b"\r") for line in lines).decode("utf-8")
            # as Arrow reads a line; of several lines not every one may belong to the record
            fields = next(csv.reader(io.StringIO(text, newline=""), strict=len(lines) > 1), [])
        except UnicodeDecodeError:
            return NOT_UTF8
        except csv.Error as error:
            return f"not a CSV line: {one_line(error)}"
        return fields if len(fields) == self.width else f"{len(fields)} fields, expected {self.width}"


def _has_open_quote(block: bytes) -> bool:
    """Whether any line of the block holds an odd number of quotes, so that its record may go on in the next line."""
    if b'"' not in block:
        return False
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    quotes = np.flatnonzero(data == 34)
    before = np.searchsorted(quotes, ends)
    return bool((before % 2).any() or len(quotes) % 2)


# NDJSON ----------------------------------------------------------------------------------------------------------


def _read_ndjson(path: Path, layout: Layout, notes: list[str]) -> Iterator[RawChunk]:
    done = 0
    unknown: set[str] = set()
    for block in text_blocks(path, "one JSON object per line"):
        lines = [line for line in block.split(b"\n") if line.strip()]
        if not lines:
            continue
        if not done and not lines[0].lstrip().startswith((b"{", b"[")) and not any(line.lstrip().startswith(b"{") for line in lines):
            raise UnreadableFile(f"no line is a JSON object; expected one per line, found {lines[0][:40]!r}")
        for start in range(0, len(lines), CHUNK_ROWS):
            part = lines[start : start + CHUNK_ROWS]
            chunk = _json_fast(part, layout, done) or _json_by_line(part, layout, done)
            if not unknown and not done:
                unknown = _unknown_keys(part[0], layout)
                if unknown:
                    notes.append("left out unknown columns: " + ", ".join(repr(key[:60]) for key in sorted(unknown)[:10]))
            done += chunk.delivered
            yield chunk
    if not done:
        raise UnreadableFile("only blank lines are in it; expected one JSON object per line")


def _unknown_keys(line: bytes, layout: Layout) -> set[str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return set()
    return set(record) - set(layout.columns) if isinstance(record, dict) else set()


def _json_fast(lines: list[bytes], layout: Layout, done: int) -> RawChunk | None:
    """Every line at once; None where a line is broken or a text column may hold a nested value."""
    known = layout.columns
    try:
        frame = pl.read_ndjson(b"\n".join(lines), schema=dict.fromkeys(known, TEXT))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    if frame.height != len(lines):
        return None
    if _may_repeat_a_key(lines, frame):
        return None
    nested = frame.select(pl.any_horizontal(pl.col(name).str.starts_with(mark).any() for name in known for mark in ("{", "["))).item()
    if nested:
        return None
    first = done + 1
    return RawChunk(frame.with_columns(pl.int_range(first, first + frame.height, dtype=pl.Int64).alias("row_no")))


def _may_repeat_a_key(lines: list[bytes], frame: pl.DataFrame) -> bool:
    """Whether a line may have a column twice. Without a null each line has the column, so that one count over all lines decides."""
    text = b"\n".join(lines)
    if b"\\u" in text:
        return True  # a name may be written with escapes
    for name in frame.columns:
        quoted = f'"{name}"'
        count = text.count(quoted.encode())
        if count == 0 or (count == frame.height and not frame[name].null_count()):
            continue
        if any(line.count(quoted.encode()) > 1 for line in lines):
            return True
    return False


class _Record(dict[str, Any]):
    """A JSON object and the names that it has more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice = {name for name, count in Counter(name for name, _ in pairs).items() if count > 1} if len(self) < len(pairs) else set()


def _json_by_line(lines: list[bytes], layout: Layout, done: int) -> RawChunk:
    known = layout.columns
    rows: list[dict[str, str | int | None]] = []
    broken: list[BrokenRow] = []
    for row_no, line in enumerate(lines, start=done + 1):
        shown = line[: SHOWN_VALUE_CHARS * 4].decode("utf-8", "replace")[:SHOWN_VALUE_CHARS]
        try:
            record = json.loads(line, object_pairs_hook=_Record)
        except (ValueError, RecursionError) as error:
            broken.append(BrokenRow(row_no, f"not JSON: {one_line(error)}"[:120], None, shown))
            continue
        if not isinstance(record, _Record):
            broken.append(BrokenRow(row_no, "not a JSON object", None, shown))
            continue
        repeated = next((name for name in known if name in record.twice), None)
        if repeated is not None:
            broken.append(BrokenRow(row_no, TWICE, repeated, shown))
            continue
        nested = next((name for name in known if isinstance(record.get(name), dict | list)), None)
        if nested is not None:
            value = json.dumps(record[nested])[:SHOWN_VALUE_CHARS]
            broken.append(BrokenRow(row_no, NESTED, nested, value))
            continue
        texts = {name: _as_text(record.get(name)) for name in known}
        torn = next((name for name, text in texts.items() if text is not None and utf8(text) != text), None)
        if torn is not None:
            broken.append(BrokenRow(row_no, HALF_A_PAIR, torn, utf8(texts[torn] or "")[:SHOWN_VALUE_CHARS]))
            continue
        rows.append({**texts, "row_no": row_no})
    return RawChunk(pl.DataFrame(rows, schema={**dict.fromkeys(known, TEXT), "row_no": pl.Int64()}), broken)

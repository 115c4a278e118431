"""Output of a source while it reads a file: batches of records, and the rows that it rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa

from ingest.contract.errors import UnreadableFile
from ingest.contract.fleet import CONTRACT, IDENTITY, LONGEST_NAME_BYTES, NAMES, TEXT, Layout
from ingest.reading.readers import HALF_A_PAIR, SHOWN_VALUE_CHARS, RawChunk, read_chunks
from ingest.reading.text import one_line, utf8

T = TypeVar("T")
REJECTION: dict[str, pl.DataType] = {"row": pl.Int64(), "reason": TEXT, "column": TEXT, "value": TEXT}
"""Rejected rows: the row, or line, in its file, and why."""
Rejection = tuple[int, str, str, str | None]
"""One of them, values as they came."""

# Errors that only broken content raises in Polars and Arrow; a full disk raises others.
_CONTENT_ERRORS = (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError, OverflowError)


TOO_LONG = f"longer than {LONGEST_NAME_BYTES} bytes, more than any name has"


@dataclass(frozen=True)
class Batch:
    """A part of a file. Every row that was delivered is in `rows`, in `rejected` or counted in `duplicates`.

    record_kind: what `rows` are, with contract columns and `row_no`; a source that sees drives from a host adds `is_alias` and
    `is_group_guessed` where they may be true. Null: rows that the source combines with those of other files.
    rejected: columns of REJECTION. is_beside: the rows come of delivered rows that another batch counts.
    """

    record_kind: str | None
    rows: pl.DataFrame
    rejected: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REJECTION))
    duplicates: int = 0
    is_beside: bool = False

    @property
    def delivered(self) -> int:
        return (0 if self.is_beside else self.rows.height) + self.rejected.height + self.duplicates


def guard(step: Callable[[], T]) -> T:
    """Run a step on delivered content; what it raises on broken content becomes `UnreadableFile`."""
    try:
        return step()
    except MemoryError:  # Arrow's is one of its own errors, too
        raise
    except _CONTENT_ERRORS as error:
        raise UnreadableFile(f"cannot be read: {one_line(error)}") from error


def read_table(path: Path, layout: Layout, notes: list[str], convert: Callable[[RawChunk], T], *, is_by_hand: bool = False) -> Iterator[T]:
    """The rows of a file chunk by chunk, each converted. Raises: UnreadableFile, also for what breaks `convert`.

    is_by_hand: people put blanks around what they write.
    """
    chunks = read_chunks(path, layout, notes)
    if is_by_hand:
        chunks = (replace(chunk, frame=chunk.frame.with_columns(pl.col(pl.String).str.strip_chars())) for chunk in chunks)
    end = object()
    while (chunk := guard(lambda: next(chunks, end))) is not end:
        yield guard(partial(convert, chunk))  # type: ignore[arg-type]


def rejections(rows: Iterable[Rejection]) -> pl.DataFrame:
    """Rejected rows as a frame of REJECTION, values shortened."""
    shown = [(row, reason, column, None if value is None else utf8(value[:SHOWN_VALUE_CHARS])) for row, reason, column, value in rows]
    return pl.DataFrame(shown, schema=REJECTION, orient="row")


def batch_of(record_kind: str, records: Iterable[dict[str, Any]], rejected: Iterable[Rejection] = ()) -> Batch:
    """Records one by one as a batch, columns that a record does not name null. Without a `row_no` they are numbered from 1.

    A record with a text that cannot be kept as it is, or with a name that is too long, is rejected.
    """
    flags = {name: dtype for name, dtype in IDENTITY[record_kind].items() if name != "source"}
    good: list[dict[str, Any]] = []
    broken = list(rejected)
    for number, record in enumerate(records, 1):
        numbered = {"row_no": number, **record}
        texts = {name: value for name, value in record.items() if isinstance(value, str)}
        torn = next((name for name, text in texts.items() if utf8(text) != text), None)
        long = next((name for name in NAMES[record_kind] if len(texts.get(name, "").encode("utf-8", "replace")) > LONGEST_NAME_BYTES), None)
        if torn is not None:
            broken.append((numbered["row_no"], HALF_A_PAIR, torn, record[torn]))
        elif long is not None:
            broken.append((numbered["row_no"], TOO_LONG, long, record[long]))
        else:
            good.append(numbered)
    rows = pl.DataFrame(good, schema={**CONTRACT[record_kind], **flags, "row_no": pl.Int64()})
    return Batch(record_kind, rows, rejections(broken))

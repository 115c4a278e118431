"""Tools `blkparse` and `ftrace`: block traces as text, one event a line.

The kernel's tracer `blk` with `options/blk_classic` prints the lines of blkparse without their sequence number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from lab.contract import COUNT, NO_CLOCK, NO_RESULT, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, blocks_of

EXPECTED = (
    "lines of blkparse, or of the kernel's tracer blk after `echo 1 > options/blk_classic`, such as "
    "`8,64 11 2949 33.779662409 90790 D W 7614344 + 24 [fio]`"
)
TABLES: dict[str, Columns] = {
    "block_events": {
        "line": COUNT, "device": TEXT, "time_ns": COUNT, "action": TEXT, "rwbs": TEXT, "sector": COUNT, "sectors": COUNT, "error": COUNT,
    },
    "trace_losses": {"line": COUNT, "lost_events": COUNT},
}  # fmt: skip
"""`line`: of the file, from 1. `action`: Q, D, C or R. `sectors`: 0 where an event names no range, as that of a flush. `error`: of C alone."""  # noqa: E501

Sorted = tuple[pl.DataFrame, int, pl.DataFrame]
"""Sorted lines: events Q, D, C and R with the columns of `block_events`; the number of other sound events; `line`, `text` of the rest."""

_DEVICE = r"\d{1,9},\d{1,9}"
_HEAD = rf"^\s*({_DEVICE})\s+\d{{1,9}}\s+(?:\d{{1,15}}\s+)?(\d{{1,10}})\.(\d{{9}})\s+\d{{1,10}}\s+"
_OTHER = _HEAD + r"(?:[ABE-PS-Zm]|[A-Z]{2})\s"
# sector + sectors, or a sector alone, or the bytes of a command that is no read or write; with -t the time since the event before, in
# parentheses; then [error] or [process]
_KEPT = _HEAD + r"([QDCR])\s+([A-Z]+)\s+(?:(\d{1,15}) \+ (\d{1,15}) (?:\( *\d{1,20}\) )?|\d{1,15} (?:\([0-9a-f .]*\) )?)?\[([^\n]*)\]\s*$"
_NOISE = r"^\s*(?:$|#|\.\.\.|CPU ?\d|CPU:\d|Total \(|Throughput|Events|Skips|Input file|[A-Z][A-Za-z]+ [A-Za-z]+:\s|version = \d|cpus=\d)"
_CLOCKLESS = rf"^\s*(?:{_DEVICE}\s+(?:\d+\s+)?[A-Z]{{1,2}}\s+[A-Z]+\s+\d+ \+ \d+|(?:block:)?block_(?:bio|rq)_\w+: )"
_SKIPPED = r"Skips:\s*[\d,]+ forward \(([\d,]{1,19})"
_LOST = r"^CPU:\d+ \[LOST (\d{1,15}) EVENTS\]"
_WRITTEN = r"^# entries-in-buffer/entries-written: (\d{1,15})/(\d{1,15})\s"
_MOST_SECONDS = 9_000_000_000
_MOST_SECTOR = 2**50


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the events, a batch for each block of lines. Raises: Refused."""
    return read_events(path, reading, EXPECTED, _sorted_out)


def read_events(
    path: Path, reading: Reading, expected: str, sort_out: Callable[[pl.DataFrame], Sorted]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield what `sort_out` makes of each block of lines (`line`, `text` with its newline), and the events that were lost.

    Raises: Refused.
    """
    before, events, clockless = 0, 0, 0
    for block in blocks_of(path, expected):
        lines = _lines_of(block, before)
        before += lines.height
        good, others, rest = sort_out(lines)
        events += good.height + others
        bad = rest.filter(~pl.col("text").str.contains(_NOISE))
        if bad.height:
            clockless += int(bad["text"].str.contains(_CLOCKLESS).sum())
            reading.reject(bad["text"][0], bad.height)
        yield "trace_losses", _losses(rest)
        if good.height:
            yield "block_events", good
    if not events and clockless:
        hint = "echo 1 > options/context-info (blk_classic switches it off and leaves it so), and trace again"
        raise Refused(NO_CLOCK, f"its {clockless} events have no time; {hint}")
    if not events and reading.lines_rejected:
        raise Refused(UNREADABLE, f"line {reading.first_rejected!r} is none of a trace; expected {expected}")
    if not events:
        raise Refused(NO_RESULT, f"no event in it; expected {expected}")


def _lines_of(block: bytes, before: int) -> pl.DataFrame:
    """The lines of a block, numbered after those before it. Bytes that are not UTF-8 are replaced."""
    data = block.decode("utf-8", "replace").encode()
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    ends = ends if data.endswith(b"\n") else np.append(ends, len(data))
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    text = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
    return pl.DataFrame({"line": pl.int_range(before + 1, before + len(ends) + 1, dtype=COUNT, eager=True), "text": pl.Series(text)})


def _sorted_out(lines: pl.DataFrame) -> Sorted:
    """Events of Q, D, C and R with their values, the number of other events, and the lines that are no event."""
    text, part = pl.col("text"), pl.col("part").struct
    lines = lines.with_columns(part=text.str.extract_groups(_KEPT))
    kept = lines.filter(part.field("1").is_not_null()).select(
        "line",
        "text",
        part.field("1").alias("device"),
        part.field("2").cast(COUNT).alias("seconds"),
        part.field("3").cast(COUNT).alias("ns"),
        part.field("4").alias("action"),
        part.field("5").alias("rwbs"),
        part.field("6").cast(COUNT).fill_null(0).alias("sector"),
        part.field("7").cast(COUNT).fill_null(0).alias("sectors"),
        pl.when(part.field("4") == "C").then(part.field("8").cast(COUNT, strict=False)).alias("error"),
    )
    good, bad = only_sound(kept)
    others = lines.filter(part.field("1").is_null()).select("line", "text")
    is_event = others["text"].str.contains(_OTHER)
    return good, int(is_event.sum()), pl.concat([others.filter(~is_event), bad]).sort("line")


def only_sound(kept: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lines with `seconds`, `ns` and values as text split them -> events, and `line`, `text` of the other lines."""
    is_sound = (
        pl.col("device").is_not_null()
        & (pl.col("seconds") < _MOST_SECONDS)
        & (pl.col("sector") < _MOST_SECTOR)
        & (pl.col("sectors") < _MOST_SECTOR)
        & ((pl.col("action") != "C") | pl.col("error").is_not_null())
    ).fill_null(False)
    kept = kept.with_columns(is_sound=is_sound, time_ns=pl.col("seconds").clip(0, _MOST_SECONDS) * 10**9 + pl.col("ns"))
    return kept.filter("is_sound").select(*TABLES["block_events"]), kept.filter(~pl.col("is_sound")).select("line", "text")


def _losses(lines: pl.DataFrame) -> pl.DataFrame:
    """Events that the tracer had to drop: blkparse counts them in its summary, the kernel where they are missing, or in its head."""
    line = pl.col("text")
    # a buffer that is full drops the oldest events
    dropped = line.str.extract(_WRITTEN, 2).cast(COUNT) - line.str.extract(_WRITTEN, 1).cast(COUNT)
    skipped = line.str.extract(_SKIPPED).str.replace_all(",", "").cast(COUNT, strict=False)
    lost = pl.coalesce(skipped, line.str.extract(_LOST).cast(COUNT), dropped)
    return lines.select("line", lost.alias("lost_events")).filter(pl.col("lost_events") > 0)

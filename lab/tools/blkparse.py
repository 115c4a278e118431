"""Tools `blkparse` and `ftrace`: block traces as text, one event a line.

The kernel's tracer `blk` with `options/blk_classic` prints the lines of blkparse without their sequence number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

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

_HEAD = r"^\s*(\d{1,9},\d{1,9})\s+\d{1,9}\s+(?:\d{1,15}\s+)?(\d{1,10})\.(\d{9})\s+\d{1,10}\s+"
_EVENT = _HEAD + r"(?:[A-Z]{1,2}|m)\s"
# sector + sectors, or a sector alone, or the bytes of a command that is no read or write; then [error] or [process]
_KEPT = _HEAD + r"([QDCR])\s+([A-Z]+)\s+(?:(\d{1,15}) \+ (\d{1,15}) |\d{1,15} (?:\([0-9a-f .]*\) )?)?\[([^\n]*)\]\s*$"
_QDCR = _HEAD + r"[QDCR]\s"
_NOISE = r"^\s*(?:$|#|\.\.\.|CPU ?\d|CPU:\d|Total \(|Throughput|Events|Skips|Input file|[A-Z][A-Za-z]+ [A-Za-z]+:\s)"
_CLOCKLESS = r"^\s*(?:\d{1,9},\d{1,9}\s+(?:\d+\s+)?[A-Z]{1,2}\s+[A-Z]+\s+\d+ \+ \d+|block_(?:bio|rq)_\w+: )"
_SKIPPED = r"Skips:\s*[\d,]+ forward \(([\d,]{1,19})"
_LOST = r"^CPU:\d+ \[LOST (\d{1,15}) EVENTS\]"
_MOST_SECONDS = 9_000_000_000
_MOST_SECTOR = 2**50


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the events, a batch for each block of lines. Raises: Refused."""
    before, events, clockless = 0, 0, 0
    for block in blocks_of(path, EXPECTED):
        text = block.decode("utf-8", "replace").removesuffix("\n")
        lines = pl.DataFrame({"text": text.split("\n")}, schema={"text": TEXT}).with_row_index("line", before + 1).cast({"line": COUNT})
        before += lines.height
        line = pl.col("text")
        lines = lines.with_columns(is_event=line.str.contains(_EVENT), is_kept=line.str.contains(_QDCR))
        kept = _events(lines.filter(pl.col("is_kept")))
        good = kept.filter(pl.col("is_sound"))
        events += int(lines["is_event"].sum()) - (kept.height - good.height)
        bad = pl.concat(
            [
                lines.filter(~pl.col("is_event") & ~line.str.contains(_NOISE)).select("line", "text"),
                kept.filter(~pl.col("is_sound")).select("line", "text"),
            ]
        ).sort("line")
        if bad.height:
            clockless += int(bad["text"].str.contains(_CLOCKLESS).sum())
            reading.reject(bad["text"][0], bad.height)
        yield "trace_losses", _losses(lines.filter(~pl.col("is_event")))
        if good.height:
            yield "block_events", good.select(*TABLES["block_events"])
    if not events and clockless:
        hint = "echo 1 > options/context-info (blk_classic switches it off and leaves it so), and trace again"
        raise Refused(NO_CLOCK, f"its {clockless} events have no time; {hint}")
    if not events and reading.lines_rejected:
        raise Refused(UNREADABLE, f"line {reading.first_rejected!r} is none of a trace; expected {EXPECTED}")
    if not events:
        raise Refused(NO_RESULT, f"no event in it; expected {EXPECTED}")


def _events(lines: pl.DataFrame) -> pl.DataFrame:
    """Lines of Q, D, C and R with their values; `is_sound` where they are what such a line holds."""
    part = pl.col("part").struct
    split = lines.with_columns(part=pl.col("text").str.extract_groups(_KEPT)).select(
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
    is_sound = (
        pl.col("device").is_not_null()
        & (pl.col("seconds") < _MOST_SECONDS)
        & (pl.col("sector") < _MOST_SECTOR)
        & (pl.col("sectors") < _MOST_SECTOR)
        & ((pl.col("action") != "C") | pl.col("error").is_not_null())
    )
    return split.with_columns(is_sound=is_sound.fill_null(False), time_ns=pl.col("seconds").clip(0, _MOST_SECONDS) * 10**9 + pl.col("ns"))


def _losses(lines: pl.DataFrame) -> pl.DataFrame:
    """Events that the tracer had to drop: blkparse counts them in its summary, the kernel where they are missing."""
    line = pl.col("text")
    lost = pl.coalesce(line.str.extract(_SKIPPED).str.replace_all(",", ""), line.str.extract(_LOST)).cast(COUNT, strict=False)
    return lines.select("line", lost.alias("lost_events")).filter(pl.col("lost_events") > 0)

"""Tools `tracefs` and `perf-script`: block trace events as the kernel's `trace` file, `trace-cmd report` and `perf script` print them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lab.contract import COUNT
from lab.tools.blkparse import TABLES, Sorted, only_sound, read_events
from lab.tools.text import Reading

__all__ = ["EXPECTED", "TABLES", "read"]

EXPECTED = (
    "block events of the file `trace`, or of `perf script --ns -F comm,tid,cpu,time,event,trace`, such as "
    "`dd-814 [001] ..... 2535.314025: block_rq_issue: 8,0 R 4096 () 2048 + 8 [dd]`"
)
ACTIONS = {"block_bio_queue": "Q", "block_rq_issue": "D", "block_rq_complete": "C", "block_rq_requeue": "R"}

# a process, whose name may hold anything; its processor; flags, of the kernel's file alone; the time: event
_HEAD = r"^.*?\[\d{1,9}\]\s+(?:[^\s:]{1,12}\s+)?(\d{1,10})\.(\d{6}|\d{9}):\s+(?:[a-z0-9_]+:)?([a-z0-9_]+):\s"
# bytes and command of a request, which a queue event has not; sector + sectors; priority, of new kernels; [error] or [process]
_RANGE = r"\s*(\d{1,9},\d{1,9})\s+([A-Z]+)\s+(?:(?:\d{1,15} )?\([0-9a-f .]*\) )?(\d{1,20}) \+ (\d{1,15}) (?:\S+,\d+,\d+ )?\[([^\n]*)\]\s*$"


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the events, a batch for each block of lines. Raises: Refused."""
    return read_events(path, reading, EXPECTED, _sorted_out)


def _sorted_out(lines: pl.DataFrame) -> Sorted:
    """Events of ACTIONS with their values, the number of other events, and the lines that are no event."""
    # nearly every event names a range; only of the others is it asked whether they are events at all
    lines = lines.with_columns(held=pl.col("text").str.extract_groups(_HEAD + _RANGE))
    held = pl.col("held").struct
    ranged = lines.filter(held.field("3").is_not_null()).with_columns(
        action=held.field("3").replace_strict(ACTIONS, default=None, return_dtype=pl.String)
    )
    kept = ranged.filter(pl.col("action").is_not_null()).select(
        "line",
        "text",
        "action",
        held.field("4").alias("device"),
        held.field("1").cast(COUNT).alias("seconds"),
        # microseconds, or nanoseconds
        held.field("2").str.pad_end(9, "0").cast(COUNT).alias("ns"),
        held.field("5").alias("rwbs"),
        # a flush has no sectors, and 2**64 - 1 as its first one
        pl.when(held.field("7").cast(COUNT) > 0).then(held.field("6").cast(COUNT, strict=False)).otherwise(0).alias("sector"),
        held.field("7").cast(COUNT).alias("sectors"),
        pl.when(pl.col("action") == "C").then(held.field("8").cast(COUNT, strict=False)).alias("error"),
    )
    good, bad = only_sound(kept)
    rest = lines.filter(held.field("3").is_null()).select("line", "text")
    event = rest["text"].str.extract(_HEAD, 3)
    is_other = event.is_not_null() & ~event.is_in(list(ACTIONS))
    others = ranged.height - kept.height + int(is_other.sum())
    return good, others, pl.concat([rest.filter(~is_other), bad]).sort("line")

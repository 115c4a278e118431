"""Tool `file-reads`: reads of whole files as CSV with the header `file_name,started_s,ended_s,bytes[,active_s]`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lab.contract import COUNT, NO_RESULT, REAL, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, blocks_of

EXPECTED = "CSV with the header file_name,started_s,ended_s,bytes and perhaps active_s"
HEADER = ("file_name", "started_s", "ended_s", "bytes")
TABLES: dict[str, Columns] = {
    "file_reads": {"row": COUNT, "file_name": TEXT, "started_s": REAL, "ended_s": REAL, "bytes": COUNT, "active_s": REAL}
}
"""`row`: line of the file, from 1. `active_s`: null where it is not said."""
_MOST_SECONDS = 1e12
_TIMES = ("started_s", "ended_s", "active_s")


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the reads, a batch for each block of lines. Raises: Refused without the header, or without a read."""
    names: list[str] = []
    before, reads = 0, 0
    for block in blocks_of(path, EXPECTED):
        lines = block.decode("utf-8-sig" if not before else "utf-8", "replace").removesuffix("\n").split("\n")
        frame = pl.DataFrame({"text": lines}, schema={"text": TEXT}).with_row_index("row", before + 1).cast({"row": COUNT})
        before += frame.height
        frame = frame.with_columns(text=pl.col("text").str.strip_chars_end("\r")).filter(pl.col("text").str.strip_chars() != "")
        if not names and frame.height:
            first = frame["text"][0]
            names = [name.strip() for name in first.split(",")]
            if set(HEADER) - set(names) or len(set(names)) < len(names):
                raise Refused(UNREADABLE, f"its first line is {first[:80]!r}; expected {EXPECTED}")
            frame = frame[1:]
        if not frame.height:
            continue
        good = _reads(frame, names)
        kept = good.filter(pl.col("is_sound"))
        if kept.height < good.height:
            reading.reject(good.filter(~pl.col("is_sound"))["text"][0], good.height - kept.height)
        reads += kept.height
        if kept.height:
            yield "file_reads", kept.select(*TABLES["file_reads"])
    if not reads:
        raise Refused(NO_RESULT, f"no read in it; expected {EXPECTED}")


def _reads(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Lines with their values; `is_sound` where they are a read."""

    def cell(name: str) -> pl.Expr:
        """A cell, null where it is empty or there is no such column."""
        if name not in names:
            return pl.lit(None, TEXT)
        value = pl.col("cells").list.get(names.index(name), null_on_oob=True).str.strip_chars(' \t"')
        return pl.when(value != "").then(value)

    split = frame.with_columns(cells=pl.col("text").str.split(","))
    values = split.select(
        "row",
        "text",
        pl.col("cells").list.len().alias("cells"),
        cell("file_name").alias("file_name"),
        *(cell(name).cast(REAL, strict=False).alias(name) for name in _TIMES),
        pl.min_horizontal(*(_decimals(cell(name)) for name in _TIMES)).alias("decimals"),
        cell("bytes").cast(COUNT, strict=False).alias("bytes"),
        cell("active_s").is_not_null().alias("has_active"),
    )
    span = pl.col("ended_s") - pl.col("started_s")
    # three numbers that are rounded apart differ by up to 1.5 units of the coarsest last digit; and by what doubles lose
    rounding = 1.5 * pl.lit(10.0).pow(-pl.col("decimals")) + 1e-15 * pl.col("ended_s").abs()
    is_sound = (
        (pl.col("cells") == len(names))
        & pl.col("file_name").is_not_null()
        & pl.col("started_s").abs().lt(_MOST_SECONDS)
        & pl.col("ended_s").abs().lt(_MOST_SECONDS)
        & (span >= 0)
        & pl.col("bytes").is_between(0, 2**53)
        & (~pl.col("has_active") | pl.col("active_s").is_between(0, span + rounding))
    )
    return values.with_columns(is_sound=is_sound.fill_null(False))


def _decimals(text: pl.Expr) -> pl.Expr:
    """Digits after the point of a number as it is written, less its exponent; null of an empty cell."""
    exponent = text.str.extract(r"[eE]([+-]?\d{1,3})$").cast(COUNT).fill_null(0)
    return pl.when(text.is_not_null()).then(text.str.extract(r"\.(\d*)").str.len_chars().fill_null(0).cast(COUNT) - exponent)

"""Tool `fio-log`: the logs of single I/Os, or of averages, that fio writes with write_bw_log, write_lat_log and write_iops_log.

How many columns there are depends on the job's options, which the log does not name: the direction is the first column after the value
that holds 0, 1 and 2 alone, and an offset is told from a priority by its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import polars as pl

from lab.contract import COUNT, NO_RESULT, REAL, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, blocks_of

EXPECTED = "a log of fio, NAME_bw.N.log, with lines such as `500, 64693, 0, 4096, 0`"
TABLES: dict[str, Columns] = {
    "bench_samples": {
        "sample": COUNT, "job": TEXT, "metric": TEXT, "time_ms": COUNT, "value": REAL, "unit": TEXT, "direction": TEXT,
        "block_bytes": COUNT, "offset_bytes": COUNT,
    }
}  # fmt: skip
DIRECTIONS = ["read", "write", "trim"]
_NAME = re.compile(r"(.+?)_(bw|iops|lat|clat|slat)(\.\d+)?\.log(\.gz|\.zst)?")
_HIGHEST_PRIORITY = 0xFFFF


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the samples, a batch for each block of lines. Raises: Refused."""
    name = _NAME.fullmatch(PurePosixPath(reading.listing.file).name)
    if name is None:
        raise Refused(UNREADABLE, "its name does not say what it measures; expected NAME_bw.N.log, or iops, lat, clat, slat")
    layout: _Layout | None = None
    sample = 0
    for block in blocks_of(path, EXPECTED):
        lines = pl.Series("line", block.decode("utf-8", "replace").splitlines())
        given = pl.DataFrame({"line": lines.filter(lines.str.strip_chars() != "")})
        # 15 digits: what is longer is no time and no size, and would not fit
        is_sound = pl.col("line").str.contains(r"^\s*\d{1,15}(\s*,\s*\d{1,15}){3,6}\s*$")
        numbers = pl.col("line").str.extract_all(r"\d+").list.eval(pl.element().cast(COUNT)).alias("numbers")
        parsed = given.filter(is_sound).with_columns(numbers)
        if layout is None and parsed.height:
            layout = _Layout.of(parsed["numbers"])
        kept = parsed.filter(layout.holds()) if layout is not None else parsed
        if kept.height < given.height:
            bad = given.filter(~is_sound)["line"].to_list() or parsed.filter(~layout.holds())["line"].to_list()  # type: ignore[union-attr]
            reading.reject(bad[0], given.height - kept.height)
        if layout is None or not kept.height:
            continue
        yield "bench_samples", kept.select(*layout.columns(name[1], name[2], sample)).select(*TABLES["bench_samples"])
        sample += kept.height
    if not sample:
        raise Refused(NO_RESULT, f"no sample in it; expected {EXPECTED}")


class _Layout:
    """Which column is which: `width` columns, the direction in column `direction`, the offset in `offset` (None without one)."""

    def __init__(self, width: int, direction: int, offset: int | None) -> None:
        self.width, self.direction, self.offset = width, direction, offset

    @classmethod
    def of(cls, numbers: pl.Series) -> _Layout:
        width = int(numbers.list.len().mode().min())  # type: ignore[arg-type]
        rows = numbers.filter(numbers.list.len() == width)
        greatest = [int(rows.list.get(place).max()) for place in range(width)]  # type: ignore[arg-type]
        # value1 of log_window_value comes before the direction
        direction = 2 if greatest[2] <= 2 or width < 5 else 3
        rest = list(range(direction + 2, width))
        # [offset], priority, [issue time]: a priority is small
        is_small = [greatest[place] <= _HIGHEST_PRIORITY for place in rest]
        has_offset = len(rest) >= 3 or (len(rest) == 2 and is_small[1]) or (len(rest) == 1 and not is_small[0])
        offset = rest[0] if has_offset else None
        return cls(width, direction, offset)

    def holds(self) -> pl.Expr:
        """Whether a line has this layout."""
        numbers = pl.col("numbers")
        return (numbers.list.len() == self.width) & (numbers.list.get(self.direction, null_on_oob=True) < len(DIRECTIONS))

    def columns(self, job: str, metric: str, before: int) -> list[pl.Expr]:
        numbers = pl.col("numbers")
        # fio before 3 wrote four columns, and latencies in microseconds
        latency_unit = "us" if self.width == 4 else "ns"
        unit = {"bw": "kB/s", "iops": "ops/s"}.get(metric, latency_unit)
        offset = pl.lit(None, COUNT) if self.offset is None else numbers.list.get(self.offset)
        return [
            pl.int_range(before + 1, before + pl.len() + 1, dtype=COUNT).alias("sample"),
            pl.lit(job, TEXT).alias("job"),
            pl.lit(metric, TEXT).alias("metric"),
            numbers.list.get(0).alias("time_ms"),
            numbers.list.get(1).cast(REAL).alias("value"),
            pl.lit(unit, TEXT).alias("unit"),
            numbers.list.get(self.direction).replace_strict(dict(enumerate(DIRECTIONS)), return_dtype=TEXT).alias("direction"),
            numbers.list.get(self.direction + 1).alias("block_bytes"),
            offset.alias("offset_bytes"),
        ]

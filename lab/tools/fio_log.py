"""Tool `fio-log`: the logs of single I/Os, or of averages, that fio writes with write_bw_log, write_lat_log and write_iops_log.

How many columns there are depends on fio's version and the job's options, which the log does not name: the direction is the first column
after the value that holds 0, 1 and 2 alone, and an offset is told from a priority, which is 0, 1 or hexadecimal. Latencies are in
microseconds before fio 3, else in nanoseconds: the version is that of the run's JSON. A log with a priority is one of fio 3.18 or later.
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
_NAME = re.compile(r"(.+?)_(bw|iops|lat|clat|slat)(\.\d+)?\.log(\.gz|\.zstd?|\.lz4)?")
_VERSION = re.compile(r"fio-(\d{1,3})\.(\d{1,3})")
_FIRST_WITH_PRIORITY = (3, 18)
_HIGHEST_PRIORITY = 1
"""Whether the I/O had a high priority; a priority itself is hexadecimal (log_prio)."""
_CELL = r"(?:0x[0-9a-fA-F]{1,8}|\d{1,15})"


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
        is_sound = pl.col("line").str.contains(rf"^\s*\d{{1,15}}(\s*,\s*\d{{1,15}}){{2}}(\s*,\s*{_CELL}){{1,4}}\s*$")
        parsed = given.filter(is_sound).with_columns(pl.col("line").str.extract_all(_CELL).alias("cells"))
        # no column that is kept is hexadecimal: a priority becomes null
        parsed = parsed.with_columns(numbers=pl.col("cells").list.eval(pl.element().cast(COUNT, strict=False)))
        if layout is None and parsed.height:
            layout = _Layout.of(parsed["cells"], parsed["numbers"], _version(reading.tool_version))
            _check_unit(layout, name[2])
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


def _version(said: str | None) -> tuple[int, int] | None:
    """Major and minor number; fio 2.99 and later print and log as fio 3 does."""
    found = _VERSION.match(said or "")
    if found is None:
        return None
    version = int(found[1]), int(found[2])
    return (3, 0) if version == (2, 99) else version


def _check_unit(layout: _Layout, metric: str) -> None:
    """Raises: Refused where latencies may be micro- or nanoseconds."""
    if layout.is_ns is None and metric not in ("bw", "iops"):
        raise Refused(
            UNREADABLE,
            f"{layout.width} columns: latencies of fio before 3 are in microseconds, later ones in nanoseconds, and nothing says which "
            "fio wrote this; list the run's JSON too, as tool fio with the same config_id, phase and run_number",
        )


class _Layout:
    """Which column is which: `width` columns, the direction in column `direction`, the offset in `offset` (None without one).

    `is_ns`: whether latencies are in nanoseconds, None where neither the version nor a priority says so.
    """

    def __init__(self, width: int, direction: int, offset: int | None, is_ns: bool | None) -> None:
        self.width, self.direction, self.offset, self.is_ns = width, direction, offset, is_ns

    @classmethod
    def of(cls, cells: pl.Series, numbers: pl.Series, version: tuple[int, int] | None) -> _Layout:
        width = int(numbers.list.len().mode().min())  # type: ignore[arg-type]
        is_wide = numbers.list.len() == width
        rows = numbers.filter(is_wide)
        is_hex = [bool(cells.filter(is_wide).list.get(place).str.starts_with("0x").any()) for place in range(width)]
        greatest = [int(rows.list.get(place).max() or 0) for place in range(width)]  # type: ignore[arg-type]
        # value1 of log_window_value comes before the direction
        direction = 2 if greatest[2] <= 2 or width < 5 else 3
        rest = list(range(direction + 2, width))
        # [offset], [priority], [issue time]
        is_priority = [is_hex[place] or greatest[place] <= _HIGHEST_PRIORITY for place in rest]
        is_old = version is not None and version < _FIRST_WITH_PRIORITY
        has_offset = len(rest) >= 3 or (len(rest) == 2 and is_priority[1]) or (len(rest) == 1 and (is_old or not is_priority[0]))
        offset = rest[0] if has_offset else None
        if version is not None:
            return cls(width, direction, offset, version >= (3, 0))
        has_priority = len(rest) >= 2 or (len(rest) == 1 and is_priority[0])
        return cls(width, direction, offset, True if has_priority else None)

    def holds(self) -> pl.Expr:
        """Whether a line has this layout."""
        numbers = pl.col("numbers")
        return (numbers.list.len() == self.width) & (numbers.list.get(self.direction, null_on_oob=True) < len(DIRECTIONS)).fill_null(False)

    def columns(self, job: str, metric: str, before: int) -> list[pl.Expr]:
        numbers = pl.col("numbers")
        unit = {"bw": "kB/s", "iops": "ops/s"}.get(metric, "ns" if self.is_ns else "us")
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

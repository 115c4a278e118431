"""Tool `bench`: any benchmark as CSV with the header `benchmark,test,parameter,value,unit`.

The table `bench_results` is that of every tool that prints results: fio, iozone, metarates, mdtest fill it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from lab.contract import COUNT, NO_RESULT, REAL, TEXT, Columns, Refused
from lab.tools.text import Reading, csv_rows, text_of

EXPECTED = "CSV with the header benchmark,test,parameter,value,unit"
HEADER = ("benchmark", "test", "parameter", "value", "unit")
UNITS = ("kB/s", "B/s", "MiB/s", "ops/s", "us", "ms")

BENCH_RESULTS: Columns = {
    "row": COUNT, "pass": TEXT, "benchmark": TEXT, "test": TEXT, "parameter": COUNT, "size_bytes": COUNT, "value": REAL, "unit": TEXT,
    "p999": REAL, "options": TEXT, "rate_limit": REAL,
}  # fmt: skip
"""`row`: place in the file, from 1. `pass`: what the file itself says, else null. `p999`: the 99.9th percentile, where `value`
is a 99th and the tool says both. `options`: what the tool was told that may change the result, a line `option=value` each; its version
is one of them. `rate_limit`: what the job was limited to, in the unit of `value`.
"""
TABLES = {"bench_results": BENCH_RESULTS}
Result = tuple[str, str, int, int, float, str]
"""benchmark, test, parameter, size_bytes, value, unit."""


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the results. Raises: Refused without the header, or without a result."""
    rows = []
    for row, line in csv_rows(text_of(path, EXPECTED), HEADER, reading, EXPECTED):
        result = _result(row)
        if result is None:
            reading.reject(line)
        else:
            rows.append(result)
    if not rows:
        raise Refused(NO_RESULT, f"no result in it; expected {EXPECTED}, units {', '.join(UNITS)}")
    yield "bench_results", results(rows)


def options_text(options: Mapping[str, str]) -> str:
    """Options as they are kept."""
    return "\n".join(f"{name}={' '.join(value.split())}" for name, value in sorted(options.items()))


def results(
    rows: list[Result],
    passes: Mapping[str, str | None] | None = None,
    p999: Sequence[float | None] | None = None,
    options: Sequence[str | None] | str | None = None,
    limits: Sequence[float | None] | None = None,
) -> pl.DataFrame:
    """Rows as a frame of `bench_results`, in order. passes: benchmark -> pass. Others: a value for each row; options may be one for all."""
    none = [None] * len(rows)
    told = [options] * len(rows) if isinstance(options, str) else options or none
    numbered = [
        (number, (passes or {}).get(row[0]), *row, *more)
        for number, (row, *more) in enumerate(zip(rows, p999 or none, told, limits or none, strict=True), 1)
    ]
    return pl.DataFrame(numbered, schema=BENCH_RESULTS, orient="row")


def _result(row: dict[str, str]) -> Result | None:
    try:
        parameter, value = float(row.get("parameter") or 0), float(row["value"])
    except (KeyError, ValueError):
        return None
    if not (row.get("benchmark") and row.get("test") and row.get("unit") in UNITS):
        return None
    if not math.isfinite(value) or not abs(parameter) < 2**53 or parameter != int(parameter):
        return None
    return row["benchmark"], row["test"], int(parameter), 0, value, row["unit"]

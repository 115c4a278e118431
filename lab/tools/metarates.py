"""Tool `metarates`: the total rate of each kind of operation. Runs appended to one file are repetitions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lab.contract import NO_RESULT, UNREADABLE, Refused
from lab.tools.bench import BENCH_RESULTS, results
from lab.tools.mdtest import BENCHMARK
from lab.tools.text import Reading, text_of

EXPECTED = "what metarates prints: `rates at which files can be created and closed with 4 pes:` and a line with `total rate = ...`"
TABLES = {"bench_results": BENCH_RESULTS}
TESTS = {"created and closed": "create_close", "stat'd": "stat", "utime'd": "utime", "utimed'": "utime", "deleted": "delete"}
_TITLE = re.compile(r"rates at which files can be (created and closed|stat'd|utime'd|utimed'|deleted).*?\bwith\s+(\d{1,9})\s+pes?\b")
_TOTAL = re.compile(r"total rate\s*=\s*([0-9.eE+-]{1,40})")


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the total rates. Raises: Refused."""
    text = text_of(path, EXPECTED)
    rows: list[tuple[str, str, int, int, float, str]] = []
    title: tuple[str, int, str] | None = None  # test, processes and the line
    for line in text.splitlines():
        if (found := _TITLE.search(line)) is not None:
            if title is not None:
                reading.reject(title[2])
            title = TESTS[found[1]], int(found[2]), line
        elif "rates at which files can be" in line:
            reading.reject(line)
            title = None
        elif "total rate" in line:
            total = _TOTAL.search(line)
            rate = _rate(total[1]) if total is not None else None
            if title is None or rate is None:
                reading.reject(line)
            else:
                rows.append((BENCHMARK, title[0], title[1], 0, rate, "ops/s"))
            title = None
    if title is not None:
        reading.reject(title[2])
    if not rows and "rates at which files" not in text:
        raise Refused(UNREADABLE, f"it starts with {text.strip()[:60]!r}; expected {EXPECTED}")
    if not rows:
        raise Refused(NO_RESULT, "no total rate in it; was metarates interrupted?")
    yield "bench_results", results(rows)


def _rate(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None

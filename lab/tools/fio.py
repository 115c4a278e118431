"""Tool `fio`: results as JSON or JSON+ (`--output-format=json`): bandwidth, I/Os a second and completion latency of each job."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.reading.text import utf8
from ingest.sources.fio import EXPECTED, document_of
from lab.contract import NO_RESULT, UNREADABLE, Refused
from lab.tools.bench import BENCH_RESULTS, results
from lab.tools.text import Reading, text_of

__all__ = ["EXPECTED", "TABLES", "read"]

TABLES = {"bench_results": BENCH_RESULTS}
BENCHMARK = "fio"
DIRECTIONS = ("read", "write", "trim")
P99 = "99.000000"


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the results of each job and direction with I/Os. Raises: Refused."""
    try:
        document = document_of(text_of(path, "JSON of fio"), [])
    except (UnreadableFile, RecursionError, ValueError) as error:
        raise Refused(UNREADABLE, str(error)) from error
    rows = []
    for job in document["jobs"]:
        if not isinstance(job, dict) or not isinstance(job.get("jobname"), str):
            reading.reject(f"a job without a name: {job}")
            continue
        name = utf8(job["jobname"])
        for way in DIRECTIONS:
            figures = job.get(way)
            if not isinstance(figures, dict) or not _number(figures.get("total_ios")):
                continue
            for test, value, unit in _figures(figures):
                if value is not None:
                    rows.append((BENCHMARK, f"{name}.{way}.{test}", 0, 0, value, unit))
    if not rows:
        raise Refused(NO_RESULT, "no job in it has done an I/O")
    yield "bench_results", results(rows)


def _figures(figures: dict[str, Any]) -> Iterator[tuple[str, float | None, str]]:
    bytes_per_s, kib_per_s = _number(figures.get("bw_bytes")), _number(figures.get("bw"))
    yield "bw", bytes_per_s if bytes_per_s is not None or kib_per_s is None else kib_per_s * 1024, "B/s"
    yield "iops", _number(figures.get("iops")), "ops/s"
    # fio 2 gives microseconds, and says so by leaving out _ns
    latency, in_us = (figures["clat_ns"], 1e-3) if isinstance(figures.get("clat_ns"), dict) else (figures.get("clat"), 1.0)
    if isinstance(latency, dict):
        percentiles = latency.get("percentile")
        p99 = _number(percentiles.get(P99)) if isinstance(percentiles, dict) else None
        for test, value in (("clat_mean", _number(latency.get("mean"))), ("clat_p99", p99)):
            yield test, None if value is None else value * in_us, "us"


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None

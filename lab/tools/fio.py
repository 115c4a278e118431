"""Tool `fio`: results as JSON or JSON+ (`--output-format=json`): bandwidth, I/Os a second and latencies of each job.

Jobs of one name and group run at the same time (numjobs without group_reporting, or the hosts of `fio --client`): they are one result.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ingest.reading.fio import completion_latencies, ios, latencies, number
from ingest.reading.text import utf8
from lab.contract import NO_RESULT, UNREADABLE, Refused
from lab.tools.bench import BENCH_RESULTS, Result, results
from lab.tools.text import Reading, json_of

EXPECTED = "JSON of fio --output-format=json"
TABLES = {"bench_results": BENCH_RESULTS}
BENCHMARK = "fio"
DIRECTIONS = ("read", "write", "trim", "mixed")
"""`mixed`: with unified_rw_reporting."""
TOTAL = "All clients"
"""Name of the sum that `fio --client` adds below the jobs of its hosts."""
Figure = tuple[str, float, str, float | None]
"""Test, value, unit, 99.9th percentile where the value is a 99th."""
P99, P999 = "99.000000", "99.900000"


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the results of each job and direction with I/Os. Raises: Refused."""
    document = json_of(path, reading, EXPECTED)
    version = document.get("fio version")
    jobs = document.get("jobs", document.get("client_stats"))
    if not isinstance(version, str) or not isinstance(jobs, list):
        found = ", ".join(repr(name[:60]) for name in list(document)[:10]) or "nothing"
        raise Refused(UNREADABLE, f"no result of fio: expected 'fio version' and a list of 'jobs' or 'client_stats', found {found}")
    reading.tool_version = version[:80]
    rows: list[Result] = []
    tails: list[float | None] = []
    for (name, _), members in _concurrent(jobs, reading).items():
        # sync: fsync, fdatasync and sync_file_range, of which the directions know nothing
        for way in (*DIRECTIONS, "sync"):
            parts = [part for job in members if (part := _with_ios(job.get(way))) is not None]
            for test, value, unit, p999 in _figures(parts) if way != "sync" else _sync_figures(parts):
                rows.append((BENCHMARK, f"{name}.{way}.{test}", 0, 0, value, unit))
                tails.append(p999)
    if not rows:
        raise Refused(NO_RESULT, "no job in it has done an I/O")
    yield "bench_results", results(rows, p999=tails)


def _concurrent(jobs: list[Any], reading: Reading) -> dict[tuple[str, Any], list[dict[str, Any]]]:
    """Name and group -> the jobs that ran together."""
    found: dict[tuple[str, Any], list[dict[str, Any]]] = {}
    for job in jobs:
        if not isinstance(job, dict) or not isinstance(job.get("jobname"), str):
            reading.reject(f"a job without a name: {job}")
        elif job["jobname"] != TOTAL or len(jobs) == 1:
            group = job.get("groupid")
            found.setdefault((utf8(job["jobname"]), group if isinstance(group, int) else None), []).append(job)
    return found


def _with_ios(part: Any) -> dict[str, Any] | None:
    return part if isinstance(part, dict) and ios(part) else None


def _figures(parts: list[dict[str, Any]]) -> Iterator[Figure]:
    """Test, value, unit and 99.9th percentile of one direction of jobs that ran together."""
    for test, values, unit in (
        ("bw", [_bytes_per_s(part) for part in parts], "B/s"), ("iops", [number(part.get("iops")) for part in parts], "ops/s"),
    ):  # fmt: skip
        known = [value for value in values if value is not None]
        if known:
            yield test, sum(known), unit, None
    for test, value, unit, p999 in _of_latencies(_latencies([(part, completion_latencies(part)) for part in parts])):
        yield f"clat_{test}", value, unit, p999


def _sync_figures(parts: list[dict[str, Any]]) -> Iterator[Figure]:
    for test, value, unit, p999 in _of_latencies(_latencies([(part, latencies(part.get("lat_ns"), 1e-3)) for part in parts])):
        yield f"lat_{test}", value, unit, p999


def _of_latencies(found: list[float | None]) -> Iterator[Figure]:
    mean, p99, p999 = found
    if mean is not None:
        yield "mean", mean, "us", None
    if p99 is not None:
        yield "p99", p99, "us", p999


def _bytes_per_s(part: dict[str, Any]) -> float | None:
    bytes_per_s, kib_per_s = number(part.get("bw_bytes")), number(part.get("bw"))
    return bytes_per_s if bytes_per_s is not None or kib_per_s is None else kib_per_s * 1024


def _latencies(parts: list[tuple[dict[str, Any], dict[str, float]]]) -> list[float | None]:
    """Mean, 99th and 99.9th percentile (microseconds) of jobs that ran together, each with its latencies."""
    return [_weighed([(of[name], ios(part)) for part, of in parts if name in of]) for name in ("mean", P99, P999)]


def _weighed(values: list[tuple[float, float]]) -> float | None:
    """The mean of values, each weighed by its number of I/Os."""
    if len(values) < 2:
        return values[0][0] if values else None
    return sum(value * ios for value, ios in values) / sum(ios for _, ios in values)

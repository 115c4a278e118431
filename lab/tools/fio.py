"""Tool `fio`: results as JSON or JSON+ (`--output-format=json`): bandwidth, I/Os a second and latencies of each job.

Jobs of one name and group run at the same time (numjobs without group_reporting, or the hosts of `fio --client`): they are one result.
Jobs of one name with other options are other results. A job that failed, or did less than it was asked, is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ingest.reading.fio import ios as counted_ios
from ingest.reading.fio import number
from ingest.reading.text import utf8
from lab.contract import COUNT, FLAG, NO_RESULT, TEXT, UNREADABLE, Columns, Refused
from lab.tools.bench import BENCH_RESULTS, Result, options_text, results
from lab.tools.text import Reading, json_of

EXPECTED = "JSON of fio --output-format=json"
TABLES: dict[str, Columns] = {
    "bench_results": BENCH_RESULTS,
    "bench_jobs": {"job": TEXT, "error": COUNT, "failure": TEXT, "is_steady": FLAG, "steady_criterion": TEXT},
}
"""`bench_jobs`: each job. `failure`: why it has no result. `is_steady`: whether fio's own `steadystate` was attained."""
BENCHMARK = "fio"
DIRECTIONS = ("read", "write", "trim", "mixed")
"""`mixed`: with unified_rw_reporting."""
TOTAL = "All clients"
"""Name of the sum that `fio --client` adds below the jobs of its hosts."""
PERCENTILES = {"p99": ("99.000000", 1_000), "p999": ("99.900000", 10_000)}
"""Each with its name in the JSON, and the I/Os of which ten lie above it: fewer do not show it."""
CAP_US = {1e-3: 17.1e6, 1.0: 16.7e6}
"""fio counts longer latencies in its last bucket (axboe/fio #1668): by the unit of its times, of fio 3 and of fio 2."""
ALIASES = {"readwrite": "rw", "blocksize": "bs", "io_limit": "io_size"}
DEFAULTS = {"rw": "read", "bs": "4096", "direct": "0", "iodepth": "1", "numjobs": "1"}
"""Values of options that a job does not name."""
NEVER_MATTERS = re.compile(
    r"name|description|directory|filename.*|opendir|group_reporting|stonewall|wait_for.*|new_group|unlink.*|create_.*|exec_\w+|per_job_logs"
    r"|.*_log|log_\w+|.*percentile.*|disable_\w+|slat_.*|significant_figures|output.*|eta.*|status.interval|bwavgtime|iopsavgtime|write_\w+"
    r"|clocksource|gtod_.*|thread|stats|unified_rw_reporting|lockfile|allow_file_create|fallocate|continue_on_error|error_dump|ignore_error"
)
"""Options that say where, and how it is reported, not what is done."""
BLOCKS = ("bs", "bsrange", "bssplit")
FLAGS = {"": "1", "true": "1", "false": "0"}
UNTIL = (
    "runtime", "timeout", "time_based", "steadystate", "ss", "ramp_time", "offset", "fill_device", "exitall", "number_ios", "latency_target"
)  # fmt: skip
"""With one of these a job may do less than its size."""
SIZE = re.compile(r"(\d{1,15})\s*([kmgtp]?)(i?b)?", re.IGNORECASE)


Key = tuple[str, int | None, tuple[tuple[str, str], ...]]
"""Name, group and options of jobs."""


class Figure(NamedTuple):
    """A value of one direction. `p999`: the 99.9th percentile, where it is a 99th. `limit`: in its unit, what the job was limited to."""

    test: str
    value: float
    unit: str
    p999: float | None = None
    limit: float | None = None


class Latencies(NamedTuple):
    """A distribution of latencies: `us` is microseconds of its unit, `ios` how many there are."""

    values: dict[str, Any]
    us: float
    ios: float


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the jobs, and the results of each job and direction with I/Os. Raises: Refused."""
    document = json_of(path, reading, EXPECTED)
    version = document.get("fio version")
    jobs = document.get("jobs", document.get("client_stats"))
    if not isinstance(version, str) or not isinstance(jobs, list):
        found = ", ".join(repr(name[:60]) for name in list(document)[:10]) or "nothing"
        raise Refused(UNREADABLE, f"no result of fio: expected 'fio version' and a list of 'jobs' or 'client_stats', found {found}")
    reading.tool_version = version[:80]
    rows: list[Result] = []
    more: list[tuple[float | None, str | None, float | None]] = []
    ran: list[tuple[str, int | None, str | None, bool | None, str | None]] = []
    left_out: dict[str, list[str]] = {}
    for name, options, members in _named(_concurrent(jobs, document.get("global options"), reading)):
        failures = [failed for job in members if (failed := _failure(job, options)) is not None]
        error, failure = failures[0] if failures else (None, None)
        ran.append((name, error, failure, *_steady(members)))
        if failure is not None:
            reading.notes.append(f"job {name} is no result: {failure}")
            continue
        text = options_text({**options, "version": version[:80]}) if options else None
        # sync: fsync, fdatasync and sync_file_range, of which the directions know nothing
        for way in (*DIRECTIONS, "sync"):
            parts = [part for job in members if (part := _with_ios(job.get(way))) is not None]
            for figure in _figures(parts, way, options, left_out, name) if parts else ():
                rows.append((BENCHMARK, f"{name}.{way}.{figure.test}", 0, 0, figure.value, figure.unit))
                more.append((figure.p999, text, figure.limit))
    reading.notes += [f"{reason}: {', '.join(tests[:3])}{' and others' if len(tests) > 3 else ''}" for reason, tests in left_out.items()]
    if not rows and not any(failure for _, _, failure, *_ in ran):
        raise Refused(NO_RESULT, "no job in it has done an I/O")
    yield "bench_jobs", pl.DataFrame(ran, schema=TABLES["bench_jobs"], orient="row")
    if rows:
        p999, options_of, limits = zip(*more, strict=True)
        yield "bench_results", results(rows, p999=p999, options=options_of, limits=limits)


def _concurrent(jobs: list[Any], general: Any, reading: Reading) -> dict[Key, list[dict[str, Any]]]:
    """The jobs that ran together and did the same, by name, group and options."""
    found: dict[Key, list[dict[str, Any]]] = {}
    for job in jobs:
        if not isinstance(job, dict) or not isinstance(job.get("jobname"), str):
            reading.reject(f"a job without a name: {job}")
        elif job["jobname"] != TOTAL or len(jobs) == 1:
            group = job.get("groupid")
            options = tuple(sorted(_options(general, job.get("job options")).items()))
            found.setdefault((utf8(job["jobname"]), group if isinstance(group, int) else None, options), []).append(job)
    return found


def _named(groups: dict[Key, list[dict[str, Any]]]) -> Iterator[tuple[str, dict[str, str], list[dict[str, Any]]]]:
    """Name, options and jobs of each group; where groups of one name differ in an option, the name has it in brackets."""
    for (name, _, options), members in groups.items():
        mine, others = dict(options), [dict(of) for other, _, of in groups if other == name]
        differing = [key for key in sorted({*mine}.union(*others)) if len({of.get(key) for of in others}) > 1]
        said = " ".join(f"{key}={mine.get(key, 'none')}" for key in differing)
        yield (f"{name}[{said}]" if said else name), mine, members


def _options(general: Any, own: Any) -> dict[str, str]:
    """Options of a job that may change its result, in one spelling. Empty where the file does not say."""
    if not isinstance(own, dict):
        return {}
    found = dict(DEFAULTS)
    for name, value in {**(general if isinstance(general, dict) else {}), **own}.items():
        key = ALIASES.get(name, name)
        text = utf8(str(value)).strip()
        if key == "buffered":
            key, text = "direct", "0" if FLAGS.get(text.lower(), text) == "1" else "1"
        if not NEVER_MATTERS.fullmatch(key):
            found[key] = FLAGS.get(text.lower()) or ",".join(_plain(part) for part in text.split(","))
    return found


def _plain(text: str) -> str:
    """A size in bytes, and a time in seconds, without a unit."""
    size = _bytes(text)
    return str(size) if size is not None else re.sub(r"^(\d+)s$", r"\1", text.strip())


def _bytes(text: str | None) -> int | None:
    found = SIZE.fullmatch(text or "")
    return None if found is None else int(found[1]) << 10 * " kmgtp".index(found[2].lower() or " ")


def _rest(options: dict[str, str]) -> int:
    """A job leaves less than this of its size out: the end of each file, which holds no whole block."""
    sizes = [_bytes(part) or 0 for name in BLOCKS for part in re.split("[,:/-]", options.get(name, ""))]
    return max(sizes) * (int(options["nrfiles"]) if options.get("nrfiles", "").isdecimal() else 1)


def _failure(job: dict[str, Any], options: dict[str, str]) -> tuple[int | None, str] | None:
    """The error of a job that failed, with words; None of one that did what it was asked."""
    error = job.get("error")
    if isinstance(error, int) and error:
        return error, f"error {error} ({os.strerror(abs(error))})"
    asked = _bytes(options.get("io_size", options.get("size")))
    done = [number(job[way].get("io_bytes")) for way in DIRECTIONS if isinstance(job.get(way), dict)]
    total = sum(each for each in done if each is not None)
    is_in_bytes = any(isinstance(job.get(way), dict) and "bw_bytes" in job[way] for way in DIRECTIONS)  # fio 2 counts KiB
    if asked and is_in_bytes and 0 < total <= asked - _rest(options) and not any(name in options for name in UNTIL):
        return None, f"less I/O than asked: {total:,.0f} of {asked:,} bytes"
    return None


def _steady(members: list[dict[str, Any]]) -> tuple[bool | None, str | None]:
    """Whether fio's own steadystate was attained, by which criterion; null where it was not asked."""
    said = [job["steadystate"] for job in members if isinstance(job.get("steadystate"), dict) and job["steadystate"].get("ss")]
    return (all(bool(each.get("attained")) for each in said), utf8(str(said[0]["ss"]))[:80]) if said else (None, None)


def _with_ios(part: Any) -> dict[str, Any] | None:
    return part if isinstance(part, dict) and counted_ios(part) else None


def _figures(parts: list[dict[str, Any]], way: str, options: dict[str, str], left_out: dict[str, list[str]], job: str) -> Iterator[Figure]:
    """Figures of one direction of jobs that ran together. left_out: reason -> percentiles that are not shown."""
    if way != "sync":
        rates = {
            test: sum(known) if (known := [value for value in values if value is not None]) else None
            for test, values in (("bw", [_bytes_per_s(part) for part in parts]), ("iops", [number(part.get("iops")) for part in parts]))
        }
        limits = _limits(options, way, len(parts), rates)
        for test, unit in (("bw", "B/s"), ("iops", "ops/s")):
            if (rate := rates[test]) is not None:
                yield Figure(test, rate, unit, limit=limits[test])
    # fio 2 gives microseconds, and says so by leaving out _ns
    found = {kind: [each for part in parts if (each := _latencies(part, kind)) is not None] for kind in ("clat", "lat")}
    has_tail = any(isinstance(each.values.get("percentile"), dict) for each in found["lat"])
    for kind, latencies in found.items():
        # one line is of one distribution: of all latency where clat was switched off, or has no percentiles
        if latencies and (kind == ("lat" if way == "sync" else "clat") or has_tail or not found["clat"]):
            yield from _of_latencies(kind, latencies, left_out, f"{job}.{way}.{kind}")


def _limits(options: dict[str, str], way: str, jobs: int, rates: dict[str, float | None]) -> dict[str, float | None]:
    """Limits of the jobs, in bytes and in I/Os a second."""
    place = {"read": 0, "write": 1, "trim": 2}.get(way, 0)
    rate, rate_iops = (
        None if (limit := _bytes((said := options.get(name, "").split(","))[min(place, len(said) - 1)])) is None else float(limit * jobs)
        for name in ("rate", "rate_iops")
    )
    bw, iops = rates["bw"], rates["iops"]
    size = bw / iops if bw and iops else None
    of_bw = [limit for limit in (rate, rate_iops * size if rate_iops and size else None) if limit]
    of_iops = [limit for limit in (rate_iops, rate / size if rate and size else None) if limit]
    return {"bw": min(of_bw, default=None), "iops": min(of_iops, default=None)}


def _latencies(part: dict[str, Any], kind: str) -> Latencies | None:
    """Latencies of a kind; None where fio did not measure them."""
    in_ns = part.get(f"{kind}_ns")
    values = in_ns if isinstance(in_ns, dict) else part.get(kind)
    if not isinstance(values, dict):
        return None
    ios = number(values.get("N"))
    return Latencies(values, 1e-3 if values is in_ns else 1.0, counted_ios(part) if ios is None else ios) if ios != 0 else None


def _of_latencies(kind: str, latencies: list[Latencies], left_out: dict[str, list[str]], line: str) -> Iterator[Figure]:
    ios = sum(each.ios for each in latencies)
    mean = _weighed([(value * each.us, each.ios) for each in latencies if (value := number(each.values.get("mean"))) is not None])
    if mean is not None:
        yield Figure(f"{kind}_mean", mean, "us")
    tails: dict[str, float] = {}
    for name, (key, least) in PERCENTILES.items():
        # json+ of some versions has them beside the rest
        said = [({**each.values, **(each.values.get("percentile") or {})}.get(key), each) for each in latencies]
        tails_of = [(value * each.us, each) for found, each in said if (value := number(found)) is not None]
        tail = _weighed([(value, each.ios) for value, each in tails_of])
        if tail is None:
            continue
        if ios < least:
            left_out.setdefault(f"{name} needs {least:,} I/Os", []).append(f"{line} has {ios:,.0f}")
        elif capped := [cap for value, each in tails_of if value >= (cap := CAP_US[each.us])]:
            seconds = f"{capped[0] / 1e6:.1f} s"
            left_out.setdefault(f"fio counts no latency above {seconds}", []).append(f"{line}_{name} is at least {seconds}")
        else:
            tails[name] = tail
    if "p99" in tails:
        yield Figure(f"{kind}_p99", tails["p99"], "us", tails.get("p999"))
    elif "p999" in tails:
        yield Figure(f"{kind}_p999", tails["p999"], "us")


def _bytes_per_s(part: dict[str, Any]) -> float | None:
    bytes_per_s, kib_per_s = number(part.get("bw_bytes")), number(part.get("bw"))
    return bytes_per_s if bytes_per_s is not None or kib_per_s is None else kib_per_s * 1024


def _weighed(values: list[tuple[float, float]]) -> float | None:
    """The mean of values, each weighed by its number of I/Os."""
    if len(values) < 2:
        return values[0][0] if values else None
    return sum(value * ios for value, ios in values) / sum(ios for _, ios in values)

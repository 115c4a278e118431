"""Output of tools in other versions and with other options, drawn from the freedom of their formats; each value is known beforehand."""

from __future__ import annotations

import gzip
import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from lab.archives import readable
from lab.build import build_lab
from lab.contract import UNREADABLE, Refused
from lab.landing import ingest_bundle
from lab.tests.bundles import BENCH, MANIFEST, lab, write_bundle
from lab.tests.test_any_output import SPARK
from lab.tests.test_readers import read, written
from lab.tools import tool_of
from lab.tools.text import Reading, Row

MPIRUN = "-----\nWARNING: a {note} of Open MPI\n-----\n"


def part(
    ios: int, mean: float, p99: float | None = None, p999: float | None = None, *, bw: int = 0, clat: str = "clat_ns"
) -> dict[str, Any]:
    """One direction of a job; nanoseconds."""
    percentiles = {name: value for name, value in (("99.000000", p99), ("99.900000", p999)) if value is not None}
    return {"total_ios": ios, "bw_bytes": bw, "iops": ios / 2, clat: {"mean": mean, "N": ios, "percentile": percentiles}}


def document(jobs: list[dict[str, Any]], key: str = "jobs", version: str = "fio-3.35") -> str:
    return json.dumps({"fio version": version, key: jobs}, indent=1)


def results_of(tmp_path: Path, text: str) -> dict[str, float]:
    rows, _ = read("fio", written(tmp_path / "a.json", text))
    return dict(rows.select("test", "value").rows())


def test_concurrent_fio_jobs_are_one_result_and_later_groups_repetitions(tmp_path: Path) -> None:
    jobs = [
        {"jobname": "w", "groupid": 0, "write": part(1000, 2000, 9000, bw=500)},
        {"jobname": "w", "groupid": 0, "write": part(3000, 4000, 5000, bw=700)},
        {"jobname": "w", "groupid": 1, "write": part(50, 8000, bw=900)},
    ]
    rows, _ = read("fio", written(tmp_path / "a.json", document(jobs)))
    assert rows.select("test", "value").rows() == [
        ("w.write.bw", 1200.0), ("w.write.iops", 2000.0), ("w.write.clat_mean", 3.5), ("w.write.clat_p99", 6.0),
        ("w.write.bw", 900.0), ("w.write.iops", 25.0), ("w.write.clat_mean", 8.0),
    ]  # fmt: skip


def test_syncs_of_fio_are_results_of_their_own(tmp_path: Path) -> None:
    sync = {"total_ios": 0, "lat_ns": {"N": 90_000, "mean": 7_250_000.0, "percentile": {"99.000000": 21_000_000, "99.900000": 40_000_000}}}
    idle = {"total_ios": 0, "lat_ns": {"N": 0, "mean": 0.0}}
    rows, _ = read("fio", written(tmp_path / "a.json", document([{"jobname": "j", "write": part(91, 15_000), "sync": sync}])))
    assert rows.select("test", "value", "p999").rows()[-2:] == [("j.sync.lat_mean", 7250.0, None), ("j.sync.lat_p99", 21000.0, 40000.0)]
    assert not any("sync" in test for test in results_of(tmp_path, document([{"jobname": "j", "write": part(1, 1), "sync": idle}])))


def test_mixed_directions_and_clients_of_fio_are_read(tmp_path: Path) -> None:
    mixed = results_of(tmp_path, document([{"jobname": "m", "mixed": part(8, 2000, bw=64)}]))
    assert mixed == {"m.mixed.bw": 64.0, "m.mixed.iops": 4.0, "m.mixed.clat_mean": 2.0}
    hosts = [{"jobname": "r", "groupid": 0, "hostname": host, "read": part(10, 3000, bw=70)} for host in ("a", "b")]
    total = {"jobname": "All clients", "read": part(20, 3000, bw=140)}
    both = results_of(tmp_path, "<a> Starting 1 process\n" + document([*hosts, total], "client_stats"))
    assert both == {"r.read.bw": 140.0, "r.read.iops": 10.0, "r.read.clat_mean": 3.0}


@pytest.mark.parametrize("seed", range(20))
def test_any_layout_of_a_fio_log_gives_its_values(seed: int, tmp_path: Path) -> None:
    """Columns by version and options; latencies are microseconds before fio 3."""
    rng = random.Random(seed)
    version = rng.choice(["fio-2.16", "fio-2.99", "fio-3.0", "fio-3.16", "fio-3.18", "fio-3.33", "fio-3.38"])
    minor = tuple(map(int, version[4:].split(".")))
    has_offset, has_issue = rng.random() < 0.5, minor >= (3, 38) and rng.random() < 0.5
    priority = rng.choice([["0", "1"], ["0x4003", "0x0000"]]) if minor >= (3, 18) else None
    samples = [
        (500 * place, rng.randrange(10**6), rng.randrange(2), rng.choice([0, 4096]), 4096 * rng.randrange(10**5)) for place in range(9)
    ]
    lines = []
    for at, value, direction, size, offset in samples:
        cells = [at, value, direction, size, *([offset] if has_offset or has_issue else []), *([rng.choice(priority)] if priority else [])]
        lines.append(", ".join(map(str, [*cells, *([at * 10**6] if has_issue else [])])))
    path = written(tmp_path / "job_clat.1.log", "\n".join(lines) + "\n")
    reading = Reading(Row(path.name), tool_version=version)
    ((_, rows),) = list(tool_of("fio-log").read(path, reading))
    wanted = [(at, float(value), ("read", "write")[direction], size) for at, value, direction, size, _ in samples]
    assert rows.select("time_ms", "value", "direction", "block_bytes").rows() == wanted and not reading.lines_rejected
    assert rows["offset_bytes"].to_list() == [each[4] if has_offset or has_issue else None for each in samples]
    assert set(rows["unit"]) == {"us" if version == "fio-2.16" else "ns"}


def test_a_latency_log_without_a_version_is_refused_until_its_json_lands(tmp_path: Path) -> None:
    log, rows = "0, 712345, 1, 8192\n1, 688001, 1, 8192\n", ["w_clat.1.log,fio-log,c,1"]
    refused = ingest_bundle(tmp_path / "w", write_bundle(tmp_path / "a", {"w_clat.1.log": log}, rows)).refused
    assert [row["reason"] for row in refused] == [UNREADABLE] and "list the run's JSON too" in refused[0]["message"]
    again = ingest_bundle(tmp_path / "w", tmp_path / "a")
    assert again.delivery_seq is None and again.known == 1
    said = document([{"jobname": "w", "write": part(2, 700_000)}], version="fio-3.1")
    both = write_bundle(tmp_path / "b", {"w_clat.1.log": log, "w.json": said}, [*rows, "w.json,fio,c,1"])
    assert not ingest_bundle(tmp_path / "w", both).refused
    warehouse = Warehouse(tmp_path / "w")
    build_lab(warehouse)
    with open_published(warehouse) as connection:
        assert fetch(connection, "select distinct unit from lab.fct_bench_samples") == [{"unit": "ns"}]
        assert {row["status"] for row in fetch(connection, "select status from lab.ingested_files")} == {"accepted"}
    # bandwidth has one unit in every version
    assert not ingest_bundle(tmp_path / "v", write_bundle(tmp_path / "c", {"w_bw.1.log": log}, ["w_bw.1.log,fio-log,c,1"])).refused


@pytest.mark.parametrize("tool", ["ior", "lsblk", "smartctl", "fio"])
def test_text_before_the_json_is_left_out_with_a_note(tool: str, tmp_path: Path) -> None:
    operation = {
        "operation": "write", "bwMaxMIB": 300.0, "bwMinMIB": 300.0, "bwMeanMIB": 300.0, "bwStdMIB": 0.0, "MeanTime": 0.5, "numTasks": 2,
        "repetitions": 1, "segmentCount": 3, "blockSize": 65536, "transferSize": 4096,
    }  # fmt: skip
    given: dict[str, Any] = {
        "ior": {"summary": [operation]},
        "lsblk": {"blockdevices": [{"name": "sdq", "type": "disk", "size": 5}]},
        "smartctl": {"nvme_smart_health_information_log": {"data_units_written": 4}},
        "fio": {"fio version": "fio-3.2", "jobs": [{"jobname": "a", "read": part(1, 1)}]},
    }
    rows, reading = read(tool, written(tmp_path / "a", MPIRUN.format(note=tool) + json.dumps(given[tool], indent=2)))
    assert rows.height and "left out the text around the JSON" in reading.notes[0] and not reading.lines_rejected


@pytest.mark.parametrize(
    ("place", "groups"),
    [("job options", (0, 1)), ("job options", (0, 0)), ("hosts", (None, None))],
    ids=["stonewall", "at-once", "clients"],
)
def test_fio_jobs_of_one_name_with_other_options_are_other_results(place: str, groups: tuple[Any, Any], tmp_path: Path) -> None:
    """They run after each other, at the same time, or on hosts of fio --client."""
    jobs: list[dict[str, Any]] = [
        {"jobname": "x", "groupid": group, "job options": {"iodepth": depth, "runtime": "9"}, "read": part(50, ios * 1000, bw=ios)}
        for group, depth, ios in zip(groups, ("2", "16"), (70, 500), strict=True)
    ]
    found = results_of(tmp_path, document(jobs, "client_stats" if place == "hosts" else "jobs"))
    assert found["x[iodepth=2].read.bw"] == 70.0 and found["x[iodepth=16].read.bw"] == 500.0 and len(found) == 6


@pytest.mark.parametrize("switch", ["disable_clat", "disable_lat", "gtod_reduce"])
def test_a_latency_that_fio_did_not_measure_is_no_result(switch: str, tmp_path: Path) -> None:
    nothing: dict[str, Any] = {"min": 0, "max": 0, "mean": 0.0, "N": 0}
    measured = {"mean": 88_000.0, "N": 5000, "percentile": {"99.000000": 240_000}}
    clat = measured if switch == "disable_lat" else nothing
    lat = {"mean": 91_000.0, "N": 5000} if switch == "disable_clat" else nothing
    job = {
        "jobname": "q",
        "job options": {switch: "1"},
        "write": {"total_ios": 5000, "bw_bytes": 7, "iops": 3, "clat_ns": clat, "lat_ns": lat},
    }
    found = results_of(tmp_path, document([job]))
    wanted = {"disable_clat": {"lat_mean": 91.0}, "disable_lat": {"clat_mean": 88.0, "clat_p99": 240.0}, "gtod_reduce": {}}
    assert found == {"q.write.bw": 7.0, "q.write.iops": 3.0, **{f"q.write.{test}": value for test, value in wanted[switch].items()}}


@pytest.mark.parametrize(
    ("clat", "lat", "wanted"),
    [
        (None, {"99.000000": 300_000}, {"clat_mean": 20.0, "lat_mean": 22.0, "lat_p99": 300.0}),
        ({"99.000000": 250_000}, {"99.000000": 300_000}, {"clat_mean": 20.0, "clat_p99": 250.0, "lat_mean": 22.0, "lat_p99": 300.0}),
        ({"50.000000": 9_000, "99.900000": 800_000}, None, {"clat_mean": 20.0, "clat_p999": 800.0}),
    ],
    ids=["of-lat", "of-both", "another-list"],
)  # fmt: skip
def test_percentiles_are_those_of_the_latency_that_has_them(
    clat: dict[str, float] | None, lat: dict[str, float] | None, wanted: dict[str, float], tmp_path: Path
) -> None:
    """clat_percentiles=0 lat_percentiles=1, both, and percentile_list=50:99.9."""
    sides = {"clat_ns": (20_000, clat), "lat_ns": (22_000, lat)}
    measured = {name: {"mean": mean, "N": 40_000, **({"percentile": tail} if tail else {})} for name, (mean, tail) in sides.items()}
    found = results_of(tmp_path, document([{"jobname": "l", "read": {"total_ios": 40_000, "bw_bytes": 1, "iops": 1, **measured}}]))
    assert {test.removeprefix("l.read."): value for test, value in found.items() if "lat" in test} == wanted


@pytest.mark.parametrize(
    ("done", "options", "is_whole"),
    [
        (259_900, {"size": "256k", "bs": "2300"}, True),
        (257_600, {"size": "256k", "bs": "2300"}, False),
        (1023 << 20, {"size": "1g", "bs": "1m", "nrfiles": "3"}, True),
        (1023 << 20, {"size": "1g", "bs": "1m"}, False),
        ((256 << 10) - 60_000, {"size": "256k", "bsrange": "4k-64k"}, True),
        ((256 << 10) - 30_000, {"size": "256k", "bssplit": "4k/60:32k/40"}, True),
        ((256 << 10) - 4096, {"size": "256k"}, False),
    ],
)
def test_a_job_does_whole_blocks_of_its_size(done: int, options: dict[str, str], is_whole: bool, tmp_path: Path) -> None:
    write = part(10, 1000, bw=4) | {"io_bytes": done, "bw_bytes": 1}
    path = written(tmp_path / "a.json", document([{"jobname": "j", "job options": options, "write": write}]))
    reading = Reading(Row(path.name))
    assert ("bench_results" in dict(tool_of("fio").read(path, reading))) == is_whole
    assert any("less I/O than asked" in note for note in reading.notes) != is_whole


@pytest.mark.parametrize(("error", "said"), [(28, "No space left"), (5, "Input/output error"), (110, "Connection timed out")])
def test_a_job_that_ended_with_an_error_gives_no_result(error: int, said: str, tmp_path: Path) -> None:
    """One of several jobs that ran together is enough; another job of the file keeps its results."""
    jobs = [{"jobname": "e", "groupid": 0, "error": code, "write": part(10, 1000, bw=4)} for code in (0, error)]
    path = written(tmp_path / "a.json", document([*jobs, {"jobname": "sound", "groupid": 1, "write": part(10, 1000, bw=6)}]))
    reading = Reading(Row(path.name))
    tables = dict(tool_of("fio").read(path, reading))
    assert set(tables["bench_results"]["test"]) == {"sound.write.bw", "sound.write.iops", "sound.write.clat_mean"}
    assert tables["bench_jobs"].select("job", "error").rows() == [("e", error), ("sound", None)]
    assert reading.notes[0].startswith(f"job e is no result: error {error} ({said}")


@pytest.mark.parametrize(
    ("unit", "others", "wanted"),
    [("ns", [17_112_760_320], set()), ("us", [16_711_680], set()), ("ns", [17_112_760_320, 900_000], set()), ("ns", [900_000], {"p99"})],
    ids=["fio-3", "fio-2", "one-of-two-jobs", "p99.9-alone"],
)  # fmt: skip
def test_a_percentile_in_the_last_bucket_of_fio_is_not_shown(unit: str, others: list[int], wanted: set[str], tmp_path: Path) -> None:
    """The last bucket holds all that is longer, so that its middle is no percentile. p99 of each job, and p99.9 at the cap."""
    cap = 17_112_760_320 if unit == "ns" else 16_711_680
    key = "clat_ns" if unit == "ns" else "clat"
    jobs = [{"jobname": "z", "groupid": 0, "write": part(30_000, cap * 2, p99, cap, clat=key)} for p99 in others]
    path = written(tmp_path / "a.json", document(jobs, version="fio-3.30" if unit == "ns" else "fio-2.21"))
    rows, reading = read("fio", path)
    found = dict(rows.select("test", "value").rows())
    assert {test.split("_")[-1] for test in found if "_p9" in test} == wanted and found["z.write.clat_mean"] > 30e6
    assert rows["p999"].null_count() == rows.height and "is at least 1" in reading.notes[-1]


@pytest.mark.parametrize("seed", range(6))
def test_maps_of_filefrag_1_41_have_all_their_extents(seed: int, tmp_path: Path) -> None:
    """Extents of the middle have no flags, those that lie where they were expected no such column; several files, any size of a block."""
    rng = random.Random(seed)
    lines, wanted = [f"Filesystem type is: {rng.choice(['ef53', '58465342'])}", "Filesystem cylinder groups is approximately 12"], []
    for number in range(1, rng.randrange(2, 5)):
        block = rng.choice([1024, 4096])
        lengths = [rng.randrange(1, 90_000) for _ in range(rng.randrange(1, 6))]
        name = f"/srv/v{number}.img"
        lines.append(f"File size of {name} is {sum(lengths) * block} ({sum(lengths)} blocks, blocksize {block})")
        lines.append(" ext logical physical expected length flags")
        logical, end = 0, None
        for index, length in enumerate(lengths):
            physical = end if end is not None and rng.random() < 0.3 else rng.randrange(10**5, 10**7)
            expected = "" if end is None or physical == end else str(end)
            flags = "eof" if index == len(lengths) - 1 else rng.choice(["", "", "unwritten", "merged"])
            lines.append(f"{index:>4} {logical:>7} {physical:>8} {expected:>8} {length:>6} {flags}")
            wanted.append((number, index, logical * block, physical * block, length * block, flags))
            logical, end = logical + length, physical + length
        lines.append(f"{name}: {len(lengths)} extent{'s' if len(lengths) > 1 else ''} found")
    reading = Reading(Row("f.txt"))
    tables = dict(tool_of("filefrag").read(written(tmp_path / "f.txt", "\n".join(lines) + "\n"), reading))
    assert tables["extents"].rows() == wanted and not reading.lines_rejected, reading.first_rejected
    assert tables["file_maps"]["summary_extents"].sum() == len(wanted)


IOZONE_HEADING = (
    "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite", "read", "fwrite", "frewrite", "fread", "freread",
)  # fmt: skip
IOZONE_TESTS = (
    "write", "rewrite", "read", "reread", "random_read", "random_write", "backward_read", "record_rewrite", "stride_read", "fwrite",
    "frewrite", "fread", "freread",
)  # fmt: skip
IOZONE_REPORTS = (
    "Writer", "Re-writer", "Reader", "Re-reader", "Random read", "Random write", "Backward read", "Record rewrite", "Stride read",
    "Fwrite", "Re-Fwrite", "Fread", "Re-Fread",
)  # fmt: skip
IOZONE_UNITS = {"": ("iozone_throughput", "kB/s"), "-N": ("iozone_latency", "us"), "-O": ("iozone_ops", "ops/s")}
IOZONE_MODES = {"": "Output is in kBytes/sec", "-N": "Microseconds/op Mode. Output is in microseconds per operation.",
                "-O": "OPS Mode. Output is in operations per second."}  # fmt: skip


IOZONE_FURTHER = (
    ("pwrite", "repwrite", "pread", "repread"), ("pwritev", "repwritev", "preadv", "repreadv"),
    ("pwrite", "repwrite", "pread", "repread", "pwritev", "repwritev", "preadv", "repreadv"),
)  # fmt: skip
IOZONE_OTHERS = (
    "Writer CPU utilization report (Zero values should be ignored)", "Re-Reader CPU utilization report (Zero values should be ignored)",
    "Pwrite report",
)  # fmt: skip


def iozone_block_of_others(rng: random.Random, sizes: list[int], records: list[int]) -> list[str]:
    """A block of -R whose title is of no test that is read: shares of CPU (-+u), or calls of pwrite (-E); or none."""
    if rng.random() < 0.5:
        return []
    title = rng.choice(IOZONE_OTHERS)
    rows = [f'"{size}"  ' + "".join(f"  {rng.uniform(0, 99):.2f}" for _ in records) for size in sizes]
    return ["", f'"{title}"', "".join(f'  "{record}"' for record in records), *rows]


def iozone_run(rng: random.Random, *, has_table: bool) -> tuple[str, list[tuple[str, str, int, int, float, str]]]:
    """Output of a run of iozone, and its results. Tests that were not run leave blanks in the table, and have no block of -R."""
    option, has_no_retest = rng.choice(list(IOZONE_UNITS)), rng.random() < 0.3
    shown = rng.choice([7, 9, 10, 13])
    run = sorted(rng.sample(range(shown), rng.randrange(1, shown + 1)))
    sizes = [64 << step for step in sorted(rng.sample(range(18), rng.randrange(1, 4)))]
    records = [4 << step for step in sorted(rng.sample(range(12), rng.randrange(1, 5)))]
    head = ["\tIozone: Performance Test of File I/O", f"\t        Version $Revision: 3.{rng.randrange(300, 507)} $"]
    head += rng.sample(["\tAuto Mode", "\tO_DIRECT feature enabled", "\tSYNC Mode. ", "\tInclude fsync in write timing"], rng.randrange(4))
    # the mode stands on its own line, in the command line, or both
    said = rng.randrange(3) if option else 0
    head += [f"\t{IOZONE_MODES[option]}"] if said != 1 else []
    flags = [*(["-+n"] if has_no_retest else []), *([option] if option and said != 0 else []), "-e", "-f", "/mnt/t"]
    rng.shuffle(flags)
    head += [f"\tCommand line used: ./iozone {'-a ' if has_table else '-Ra '}{' '.join(flags)}"]
    benchmark, unit = IOZONE_UNITS[option]
    values: dict[tuple[int, int, int], int] = {}
    for size, record in ((size, record) for size in sizes for record in records if record <= size):
        for test in run:
            values[size, record, test] = 0 if has_no_retest and test in (1, 3) else rng.randrange(1, 10 ** rng.randrange(2, 8))
    results = [
        (benchmark, IOZONE_TESTS[test], record * 1024, size * 1024, float(value), unit)
        for (size, record, test), value in values.items()
        if value
    ]
    # -E, and -i 9 to 12
    further = rng.sample(IOZONE_FURTHER, 1)[0] if shown == 13 else ()
    widths = [rng.choice([9, 10, 11, 12]) for _ in range(shown + len(further))]
    blocks = [rng.choice(["", "Excel output is below:"])]
    for test in run:
        blocks += iozone_block_of_others(rng, sizes, records)
        blocks += ["", f'"{IOZONE_REPORTS[test]} report"', "".join(f'  "{record}"' for record in records)]
        blocks += [f'"{size}"  ' + "".join(f" {values.get((size, record, test), 0)} " for record in records) for size in sizes]
    if not has_table:
        return "\n".join([*head, *blocks, ""]), sorted(results)
    kb = rng.choice(["kB", "KB"])
    heading = [*IOZONE_HEADING[:shown], *further]
    table = [f"{kb:>16}{'reclen':>8}" + "".join(f"{word:>{width}}" for word, width in zip(heading, widths, strict=True))]
    for size, record in dict.fromkeys((size, record) for size, record, _ in values):
        cells = (f"{values.get((size, record, test), ''):>{widths[test]}}" for test in range(shown))
        more = (f"{rng.choice(['', rng.randrange(1, 10**7)]):>{width}}" for width in widths[shown:])
        table.append(f"{size:>16}{record:>8}" + "".join([*cells, *more]).rstrip())
    return "\n".join([*head, *table, "", "iozone test complete.", *(blocks if rng.random() < 0.5 else []), ""]), sorted(results)


@pytest.mark.parametrize("has_table", [True, False], ids=["table", "reports"])
@pytest.mark.parametrize("seed", range(20))
def test_any_output_of_iozone_gives_its_values(seed: int, has_table: bool, tmp_path: Path) -> None:
    """Options, tests that were not run, sizes, widths of columns, runs appended to one file, what -R repeats below a table."""
    rng = random.Random(seed)
    runs = [iozone_run(rng, has_table=has_table) for _ in range(rng.randrange(1, 4) if has_table else 1)]
    ending = rng.choice(["\n", "\r\n"])
    path = tmp_path / "out.txt"
    path.write_bytes("\n".join(text for text, _ in runs).replace("\n", ending).encode())
    rows, reading = read("iozone", path)
    columns = ("benchmark", "test", "parameter", "size_bytes", "value", "unit")
    assert sorted(rows.select(columns).rows()) == sorted(result for _, results in runs for result in results)
    # a report without a reader is named; below a table none is read
    unread = 0 if has_table else sum(text.count('"Pwrite report"') for text, _ in runs)
    assert reading.lines_rejected == unread, reading.first_rejected


IOR_HEADINGS = {
    "3.0.1": "Operation Max(MiB) Min(MiB) Mean(MiB) StdDev Mean(s) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt blksiz "
    "xsize aggsize API RefNum",
    "3.3.0+dev": "Operation Max(MiB) Min(MiB) Mean(MiB) StdDev Max(OPs) Min(OPs) Mean(OPs) StdDev Mean(s) Stonewall(s) Stonewall(MiB) "
    "Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt blksiz xsize aggs(MiB) API RefNum",
}  # fmt: skip


def ior_operations(rng: random.Random) -> list[dict[str, Any]]:
    """Rows of a summary, by the names of the relation."""
    same = {
        "segments": rng.randrange(1, 999),
        "block_bytes": 4096 << rng.randrange(24),
        "transfer_bytes": 4096,
        "tasks": rng.randrange(1, 9999),
    }
    found = []
    for operation in rng.sample(["write", "read"], rng.randrange(1, 3)):
        speeds = sorted(round(rng.uniform(0.5, 10 ** rng.randrange(1, 7)), 2) for _ in range(3))
        found.append(
            {
                "operation": operation, "min_mib_per_s": speeds[0], "mean_mib_per_s": speeds[1], "max_mib_per_s": speeds[2],
                "sd_mib_per_s": round(rng.random(), 2), "mean_seconds": round(rng.random(), 5), "repetitions": rng.randrange(1, 9), **same,
            }
        )  # fmt: skip
    return found


def ior_text(rng: random.Random, tests: list[list[dict[str, Any]]]) -> str:
    """Output of a version of IOR for several tests, below that of mpirun."""
    version, heading = rng.choice(list(IOR_HEADINGS.items()))
    stands_for = {
        "Max(MiB)": "max_mib_per_s", "Min(MiB)": "min_mib_per_s", "Mean(MiB)": "mean_mib_per_s", "Mean(s)": "mean_seconds",
        "#Tasks": "tasks", "reps": "repetitions", "segcnt": "segments", "blksiz": "block_bytes", "xsize": "transfer_bytes",
        "Operation": "operation", "API": "api",
    }  # fmt: skip
    lines = [rng.choice(["", "mpirun noticed nothing {of note}"]), f"IOR-{version}: MPI Coordinated Test of Parallel I/O"]
    for operations in tests:
        lines += ["", "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s) iter", "------    ---------"]
        lines += [f"{row['operation']} 5 1 4.00 0.1 0.1 0.1 0.3 0" for row in operations] + ["", "Summary of all tests:", heading]
        lines += rng.choice([[], ["---------  ---------"]])
        for row in operations:
            known = row | {"api": rng.choice(["POSIX", "MPIIO", "HDF5"])}
            filled = {word: f"{known[name]}" for word, name in stands_for.items() if name in known}
            deviations = iter([f"{row['sd_mib_per_s']:.2f}", "7.77"])
            words = [
                next(deviations)
                if word == "StdDev"
                else rng.choice(["NA", "3.25"])
                if word.startswith("Stonewall")
                else filled.get(word, "0")
                for word in heading.split()
            ]
            lines.append(rng.choice([" ", "   "]).join(words) + rng.choice(["", " "]))
        lines += rng.choice([["", "Max Write: 9.00 MiB/sec (9.44 MB/sec)"], [" "], ["Finished            : Mon Nov 23 07:28:31 2026"]])
    return "\n".join([*lines, ""])


def ior_json(rng: random.Random, operations: list[dict[str, Any]]) -> str:
    """The same as JSON of IOR 4, with keys that are not read, in any order."""
    keys = {
        "operation": "operation", "max_mib_per_s": "bwMaxMIB", "min_mib_per_s": "bwMinMIB", "mean_mib_per_s": "bwMeanMIB",
        "sd_mib_per_s": "bwStdMIB", "mean_seconds": "MeanTime", "tasks": "numTasks", "repetitions": "repetitions",
        "segments": "segmentCount", "block_bytes": "blockSize", "transfer_bytes": "transferSize",
    }  # fmt: skip
    summary = []
    for row in operations:
        entry = [*((key, row[name]) for name, key in keys.items()), ("API", "POSIX"), ("StoneWallTime", None), ("OPsMean", 5.5)]
        rng.shuffle(entry)
        summary.append(dict(entry))
    document_ = {"Version": "4.1.0+dev", "tests": [{"TestID": 0, "Results": [[{"access": "write"}]]}], "summary": summary}
    return rng.choice(["", MPIRUN]) + json.dumps(document_, indent=rng.choice([None, 2])) + rng.choice(["", "\ngoodbye\n"])


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("seed", range(20))
def test_any_summary_of_ior_gives_its_values(seed: int, form: str, tmp_path: Path) -> None:
    """Versions, operations, several tests in a file, stonewalls that were not there, lines of others around it."""
    rng = random.Random(seed)
    tests = [ior_operations(rng) for _ in range(rng.randrange(1, 4) if form == "text" else 1)]
    rows, reading = read("ior", written(tmp_path / "out", ior_text(rng, tests) if form == "text" else ior_json(rng, tests[0])))
    expected = [{"row": number, **row} for number, row in enumerate((row for test in tests for row in test), 1)]
    assert [{name: row[name] for name in expected[0]} for row in rows.rows(named=True)] == expected
    assert not reading.lines_rejected, reading.first_rejected


MDTEST_TESTS = {"File creation": "create_close", "File stat": "stat", "File removal": "delete"}


@pytest.mark.parametrize("seed", range(20))
def test_any_summary_of_mdtest_gives_its_rates_by_number_of_tasks(seed: int, tmp_path: Path) -> None:
    """Versions with and without colons and a SUMMARY of times, options -F and -r, several launches in a file."""
    rng, lines, expected = random.Random(seed), [], []
    for _ in range(rng.randrange(1, 4)):
        version, title, has_times = rng.choice(
            [("1.9.3", "SUMMARY:", False), ("3.3.0+dev", "SUMMARY rate:", True), ("4.1.0+dev", "SUMMARY rate (in ops/sec):", True)]
        )
        tasks, has_directories = rng.randrange(1, 5000), rng.random() < 0.5
        names = [*(f"Directory {what}" for what in ("creation", "stat", "rename", "removal") if has_directories),
                 *(f"File {what}" for what in ("creation", "stat", "read", "removal")), "Tree creation", "Tree removal"]  # fmt: skip
        lines += [f"-- started at 11/06/2019 07:38:18 --\n\nmdtest-{version} was launched with {tasks} total task(s) on 1 node(s)",
                  "Command line used: mdtest -n 1000 -i 3", f"{tasks} tasks, 1000 files/directories", "", f"{title} (of 3 iterations)",
                  "   Operation                      Max            Min           Mean       Std Dev", "   ------  ---"]  # fmt: skip
        was_run = {name: name == "File creation" or rng.random() < 0.7 for name in names}
        for name in names:
            low, mean, high = sorted(round(rng.uniform(1, 10 ** rng.randrange(2, 8)), 3) for _ in range(3)) if was_run[name] else (0, 0, 0)
            colon = "" if version.startswith("4") and rng.random() < 0.3 else ":"
            lines.append(f"   {name:<{rng.choice([18, 26])}}{colon}" + "".join(f" {value:>14.3f}" for value in (high, low, mean, 0.0)))
            if was_run[name] and name in MDTEST_TESTS:
                expected.append((MDTEST_TESTS[name], tasks, mean))
        if has_times:
            lines += ["", "SUMMARY time: (of 3 iterations)", "   Operation   Max   Min   Mean   Std Dev"]
            lines += [f"   {name:<26}:" + " 9.250" * 4 for name in names]
        lines += ["-- finished at 11/06/2019 07:41:38 --", ""]
    rows, reading = read("mdtest", written(tmp_path / "out", "\n".join(lines)))
    assert rows.select("test", "parameter", "value").rows() == expected
    assert not reading.lines_rejected, reading.first_rejected


@pytest.mark.parametrize("seed", range(10))
def test_blkparse_with_elapsed_times_gives_the_same_events(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    plain, timed = [], []
    for number in range(20):
        action = rng.choice("QDCI")
        at = f"{number:>5}.{rng.randrange(10**9):09d}"
        head = f"  8,16 {rng.randrange(4):>2} {number:>8} {at} {rng.randrange(9999):>5}  {action}  RA {8 * number}"
        tail = "[0]" if action == "C" else "[my app]"
        plain.append(f"{head} + {rng.choice([8, 16])} {tail}")
        timed.append(
            plain[-1].replace(f" {tail}", f" ({rng.randrange(10**7):>8}) {tail}") if action != "Q" or rng.random() < 0.5 else plain[-1]
        )
    one, two = (read("blkparse", written(tmp_path / name, "\n".join(lines) + "\n")) for name, lines in (("a", plain), ("b", timed)))
    assert one[0].equals(two[0]) and not two[1].lines_rejected


def lz4_of_java(data: bytes, block: int = 150) -> bytes:
    """As LZ4BlockOutputStream writes it: blocks, the last one empty; what does not shrink stays as it is."""
    codec, found = pa.Codec("lz4_raw"), b""
    for start in range(0, len(data), block):
        plain = data[start : start + block]
        packed = codec.compress(plain, asbytes=True)
        method, body = (0x20, packed) if len(packed) < len(plain) else (0x10, plain)
        found += b"LZ4Block" + bytes([method | 5]) + struct.pack("<III", len(body), len(plain), 0) + body
    return found + b"LZ4Block" + bytes([0x15]) + struct.pack("<III", 0, 0, 0)


@pytest.mark.parametrize("name", ["log", "log.zstd", "log.zst", "log.gz", "log.lz4", "log.txt"])
def test_a_packed_file_is_known_by_its_first_bytes(name: str, tmp_path: Path) -> None:
    plain = SPARK.encode()
    packed = [
        plain, gzip.compress(plain), pa.Codec("zstd").compress(plain, asbytes=True), pa.Codec("lz4").compress(plain, asbytes=True),
        lz4_of_java(plain),
    ]  # fmt: skip
    for content in packed:
        (tmp_path / name).write_bytes(content)
        with readable(tmp_path / name) as path:
            assert read("spark-events", path)[0].height == 1
    for content, said in ((b"BZh9", "bzip2"), (b"\x82SNAPPY\0", "snappy"), (packed[3][:20], "cut off"), (packed[4][:30], "cut off")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Refused, match=said), readable(tmp_path / name):
            pass


def test_a_read_that_never_waits_is_taken_whatever_its_digits(tmp_path: Path) -> None:
    """Start, end and time are rounded apart, to milliseconds or finer, with small numbers or unix time."""
    rng = random.Random(5)
    for digits, zero in ((3, 0.0), (3, 1_764_000_000.0), (6, 90_000.0), (6, 1_764_000_000.0), (9, 10.0)):
        lines = []
        for _ in range(400):
            start = zero + rng.uniform(0, 1000)
            seconds = rng.uniform(0.1, 2)
            lines.append(f"g,{start:.{digits}f},{start + seconds:.{digits}f},4096,{seconds:.{digits}f}")
        rows, reading = read(
            "file-reads", written(tmp_path / "a", "file_name,started_s,ended_s,bytes,active_s\n" + "\n".join(lines) + "\n")
        )
        assert rows.height == 400 and not reading.lines_rejected
    for active, is_kept in (("1.001", True), ("1.0014", True), ("1.0016", False), ("1.002", False), ("-0.001", False)):
        text = f"file_name,started_s,ended_s,bytes,active_s\nf,5.000,6.000,1,{active}\ng,1,2,1,\n"
        assert read("file-reads", written(tmp_path / "a", text))[0].height == 1 + is_kept, active


def test_a_device_that_is_left_out_is_a_note_of_its_file(tmp_path: Path) -> None:
    line = "   {}       {} {} {} 0 4492 7 506 0 451840 80 0 68 112\n"
    looks = ["TS {}\n" + line.format(253, 0, "dm-7", "{}") + line.format(8, 0, "sdk", "{}") + line.format(8, 1, "sdk1", "{}")] * 2
    text = "".join(look.format(1_700_000_000 + at, at, at, at) for at, look in enumerate(looks, 1))
    for manifest, notes in ((MANIFEST, 1), (MANIFEST.replace('"d"\n', '"d"\nkernel_name = "dm-7"\n', 1), 0)):
        warehouse = tmp_path / f"w{notes}"
        done = lab("ingest", write_bundle(tmp_path / f"b{notes}", {"d.txt": text}, ["d.txt,diskstats,c,1"], manifest), "-w", warehouse)
        assert ("note: d.txt: dm-7: left out" in done.output) == bool(notes) and "sdk" not in done.output, done.output


@pytest.mark.needs("fio")
def test_output_of_the_installed_fio_is_read_or_refused_with_a_reason(tmp_path: Path) -> None:
    """Every output mode, and logs with each option; the log's values are those of the JSON."""

    def run(*options: str) -> str:
        command = ["fio", "--name=j", "--rw=randwrite", "--bs=4k", "--size=64k", "--ioengine=psync", "--fallocate=none", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    for mode in ("json", "json+", "normal,json", "json,normal"):
        found = results_of(tmp_path, run(f"--output-format={mode}", "--fdatasync=1", "--numjobs=2"))
        assert set(found) >= {"j.write.bw", "j.write.iops", "j.write.clat_mean"}
        assert found["j.sync.lat_mean"] > 0 and not any("p99" in test for test in found), "32 writes have no 99th percentile"
    for mode in ("normal", "terse"):
        with pytest.raises(Refused, match="no JSON object in it"):
            results_of(tmp_path, run(f"--output-format={mode}"))
    for options in ([], ["--log_offset=1"], ["--log_prio=1"], ["--log_offset=1", "--log_prio=1"]):
        document_ = json.loads(run("--output-format=json", "--write_lat_log=l", *options))
        reading = Reading(Row("l_clat.1.log"), tool_version=document_["fio version"])
        ((_, rows),) = list(tool_of("fio-log").read(tmp_path / "l_clat.1.log", reading))
        assert rows.height == 16 and set(rows["unit"]) == {"ns"} and not reading.lines_rejected
        assert rows["value"].mean() == pytest.approx(document_["jobs"][0]["write"]["clat_ns"]["mean"], rel=1e-6)
        assert (rows["offset_bytes"].null_count() == 0) == ("--log_offset=1" in options)


def test_deliveries_of_an_older_version_are_built_without_new_columns(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w")
    ingest_bundle(warehouse.root, write_bundle(tmp_path / "a", {"a.csv": BENCH}, ["a.csv,bench,c,1"]))
    for name, columns in (("files", ["notes", "tool_version"]), ("bench_results", ["p999"])):
        (path,) = warehouse.root.rglob(f"{name}.parquet")
        pl.read_parquet(path).drop(columns).write_parquet(path)
    ingest_bundle(warehouse.root, write_bundle(tmp_path / "b", {"b.csv": BENCH}, ["b.csv,bench,c,2"]))
    build_lab(warehouse)
    with open_published(warehouse) as connection:
        assert fetch(connection, "select count(*) as n, count(p999) as known from lab.fct_bench_results") == [{"n": 4, "known": 0}]
        assert fetch(connection, "select count(*) as n, count(notes) as known from lab.ingested_files") == [{"n": 2, "known": 0}]

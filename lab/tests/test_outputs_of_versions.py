"""Output of tools in other versions and with other options; each value is known beforehand."""

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
from lab.build import build_lab
from lab.contract import UNREADABLE, Refused
from lab.landing import ingest_bundle
from lab.packed import readable
from lab.tests.bundles import BENCH, MANIFEST, lab, write_bundle
from lab.tests.test_any_output import FIO, IOR_2, IOR_4, IOR_JSON, IOZONE, LSBLK, MDTEST, REPORTS, SMART, SPARK, TRACE
from lab.tests.test_readers import read, written
from lab.tools import tool_of
from lab.tools.text import Reading, Row


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
        {"jobname": "w", "groupid": 0, "write": part(100, 2000, 9000, bw=500)},
        {"jobname": "w", "groupid": 0, "write": part(300, 4000, 5000, bw=700)},
        {"jobname": "w", "groupid": 1, "write": part(50, 8000, bw=900)},
    ]
    rows, _ = read("fio", written(tmp_path / "a.json", document(jobs)))
    assert rows.select("test", "value").rows() == [
        ("w.write.bw", 1200.0), ("w.write.iops", 200.0), ("w.write.clat_mean", 3.5), ("w.write.clat_p99", 6.0),
        ("w.write.bw", 900.0), ("w.write.iops", 25.0), ("w.write.clat_mean", 8.0),
    ]  # fmt: skip


def test_syncs_of_fio_are_results_of_their_own(tmp_path: Path) -> None:
    sync = {"total_ios": 0, "lat_ns": {"N": 90, "mean": 7_250_000.0, "percentile": {"99.000000": 21_000_000, "99.900000": 40_000_000}}}
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


@pytest.mark.parametrize(("tool", "document_"), [("ior", IOR_JSON), ("lsblk", LSBLK), ("smartctl", SMART), ("fio", FIO)])
def test_text_before_the_json_is_left_out_with_a_note(tool: str, document_: dict[str, Any], tmp_path: Path) -> None:
    rows, reading = read(tool, written(tmp_path / "a", f"-----\nWARNING: a note of Open MPI\n-----\n{json.dumps(document_, indent=2)}"))
    assert rows.height and "left out the text around the JSON" in reading.notes[0] and not reading.lines_rejected


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("\tCommand line used: ./iozone -a -N -e", ("iozone_latency", "us")), ("\tCommand line used: ./iozone -O", ("iozone_ops", "ops/s")),
        ("\tMicroseconds/op Mode. Output is in microseconds per operation.", ("iozone_latency", "us")),
        ("\tOPS Mode. Output is in operations per second.", ("iozone_ops", "ops/s")),
        ("\tOutput is in kBytes/sec", ("iozone_throughput", "kB/s")),
    ],
)  # fmt: skip
def test_the_mode_of_a_run_of_iozone_gives_benchmark_and_unit(said: str, found: tuple[str, str], tmp_path: Path) -> None:
    """By an option or by a line; a second run below the first has its own."""
    table = f"\tIozone: Performance Test of File I/O\n{said}\n{IOZONE.split('-N', 1)[1]}"
    rows, reading = read("iozone", written(tmp_path / "a", f"{table}\n{IOZONE}".replace("\n", "\r\n")))
    assert rows.select("benchmark", "unit").rows() == [found] * 5 + [("iozone_latency", "us")] * 5 and not reading.lines_rejected
    rows, reading = read("iozone", written(tmp_path / "b", REPORTS.replace("Excel", f"{said}\nExcel")))
    assert set(rows.select("benchmark", "unit").rows()) == {found} and not reading.lines_rejected


IOR_3 = """IOR-3.0.1: MPI Coordinated Test of Parallel I/O
access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s) iter
write     75.82      1024.00    256.00     0.000254   0.105      0.000021   0.105    0
Operation Max(MiB) Min(MiB) Mean(MiB) StdDev Mean(s) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt blksiz xsize aggsize API RefNum
write 75.5 74.5 75 0.5 0.105 0 8 4 2 0 0 1 0 0 3 1048576 262144 25165824 POSIX 0
read 85.5 84.5 85 0.25 0.205 0 8 4 2 0 0 1 0 0 3 1048576 262144 25165824 POSIX 0

IOR-3.3.0+dev: MPI Coordinated Test of Parallel I/O
Operation Max(MiB) Min(MiB) Mean(MiB) StdDev Max(OPs) Min(OPs) Mean(OPs) StdDev Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps segcnt blksiz xsize aggs(MiB) API RefNum
---------  ---------
read 9.5 7.5 8.5 0.75 38 30 34 3.25 0.03 NA NA 0 8 4 2 3 65536 4096 1.5 MPIIO 0
"""  # noqa: E501


def test_every_version_of_ior_gives_its_values(tmp_path: Path) -> None:
    """Below what mpirun says, one after the other; later versions round the aggregate."""
    rows, reading = read("ior", written(tmp_path / "a", f"mpirun noticed nothing {{of note}}\n{IOR_2}{IOR_3}{IOR_4}"))
    assert not reading.lines_rejected and rows.rows() == [
        (1, "write", 198.43, 197.84, 198.19, 0.17, 252.28, 4, 10, 200_000, 65536, 4096, 52_428_800_000),
        (2, "write", 75.5, 74.5, 75.0, 0.5, 0.105, 8, 2, 3, 1 << 20, 1 << 18, 25_165_824),
        (3, "read", 85.5, 84.5, 85.0, 0.25, 0.205, 8, 2, 3, 1 << 20, 1 << 18, 25_165_824),
        (4, "read", 9.5, 7.5, 8.5, 0.75, 0.03, 8, 2, 3, 65536, 4096, None),
        (5, "write", 975.42, 722.98, 853.11, 103.21, 0.02975, 2, 3, 200, 65536, 4096, None),
    ]
    rows, _ = read("ior", written(tmp_path / "b", json.dumps(IOR_JSON)))
    assert rows.rows() == [(1, "write", 571.0, 513.1, 538.2, 24.3, 0.0465, 2, 3, 200, 65536, 4096, None)]


def test_mdtest_counts_tasks_by_launch_and_takes_no_times_for_rates(tmp_path: Path) -> None:
    times = "\nSUMMARY time: (of 3 iterations)\n   File stat   :  9.250 9.250 9.250 9.250\n-- finished --\n"
    old = "mdtest-1.9.3 was launched with 16 total task(s) on 2 node(s)\nSUMMARY: (of 1 iterations)\n"
    old += "   File stat   :  3.500 1.500 2.500 0.1\n   File read :  9.0 9.0 9.0 0.0\n   File removal :  0.000 0.000 0.000 0.000\n"
    rows, reading = read("mdtest", written(tmp_path / "a", MDTEST + times + old))
    found = rows.select("test", "parameter", "value").rows()
    assert found == [("create_close", 2, 123263.247), ("stat", 2, 1182036.805), ("stat", 16, 2.5)]
    assert not reading.lines_rejected, reading.first_rejected


def test_blkparse_with_elapsed_times_gives_the_same_events(tmp_path: Path) -> None:
    plain = TRACE.format(1, 2, 3, 4)
    timed = plain.replace(" [fio x]", " (    1234) [fio x]").replace(" [0]", " (99) [0]")
    one, two = (read("blkparse", written(tmp_path / name, text)) for name, text in (("a", plain), ("b", timed)))
    assert timed != plain and one[0].equals(two[0]) and not two[1].lines_rejected


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
        assert set(found) >= {"j.write.bw", "j.write.iops", "j.write.clat_mean", "j.write.clat_p99"}
        assert found["j.sync.lat_p99"] > 0 < found["j.sync.lat_mean"]
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

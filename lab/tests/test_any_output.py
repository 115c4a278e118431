"""Output that is nearly right is read or refused: no reader ends in an error that it does not declare, and good lines are kept."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from lab.bundle import MANIFEST_FILE, RUNS_FILE, open_bundle
from lab.contract import NO_CLOCK, NO_RESULT, REASONS, UNREADABLE, LabError, Refused
from lab.tests.bundles import BENCH, HEADER, MANIFEST, write_bundle
from lab.tools import TOOLS, tool_of
from lab.tools.text import Reading, Row
from tests.fuzz import fuzz
from tests.mutate import mutated, mutated_json

IOZONE = """\tIozone: Performance Test of File I/O
\tMicroseconds/op Mode. Output is in microseconds per operation.
\tCommand line used: ./iozone -i 0 -a -n 64k -g 64k -N
                                                              random    random     bkwd    record    stride
              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite
              64       4      421      120
              64       8      453      200     1000

iozone test complete.
"""
REPORTS = """Iozone: Performance Test of File I/O
Excel output is below:

"Writer report"
        "4"  "8"
"64"   5452  6000
"Re-Fread report"
        "4"  "8"
"64"   0  6001
"""
FIO = {
    "fio version": "fio-3.33", "timestamp": 1, "jobs": [
        {
            "jobname": "a",
            "read": {"total_ios": 2, "bw_bytes": 9, "bw": 1, "iops": 3.5, "clat_ns": {"mean": 5.0, "N": 2, "percentile": {"99.000000": 7}}},
            "write": {"total_ios": 1, "bw": 1, "iops": 1, "clat": {"mean": 4.0, "percentile": {"99.000000": 6}}},
            "trim": {"total_ios": 0},
        }
    ],
}  # fmt: skip
IOR_2 = """IOR-2.10.2: MPI Coordinated Test of Parallel I/O
Operation  Max (MiB)  Min (MiB)  Mean (MiB)   Std Dev  Max (OPs)  Min (OPs)  Mean (OPs)   Std Dev  Mean (s)Op grep #Tasks tPN reps
---------  ---------  ---------  ----------   -------  ---------  ---------  ----------   -------   -------
write   198.43  197.84  198.19   0.17   0.25  0.25  0.25   0.00 252.28   4 4 10 1 0 1 0 0 200000 65536 4096 52428800000 -1 POSIX EXCEL

Max Write: 198.43 MiB/sec (208.07 MB/sec)
"""
IOR_4 = """IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O
Summary of all tests:
Operation Max(MiB) Min(MiB) Mean(MiB) StdDev Mean(s) Stonewall(s) Test# #Tasks tPN reps segcnt blksiz xsize aggs(MiB) API RefNum
write 975.42 722.98 853.11 103.21 0.02975 NA 0 2 2 3 200 65536 4096 25.0 POSIX 0
Finished            : Mon Nov 23 07:28:31 2026
"""
IOR_JSON: dict[str, Any] = {
    "summary": [
        {
            "operation": "write", "segmentCount": 200, "blockSize": 65536, "transferSize": 4096, "numTasks": 2, "repetitions": 3,
            "bwMaxMIB": 571.0, "bwMinMIB": 513.1, "bwMeanMIB": 538.2, "bwStdMIB": 24.3, "MeanTime": 0.0465,
        }
    ]
}  # fmt: skip
MDTEST = """mdtest-4.1.0+dev was launched with 2 total task(s) on 1 node(s)
2 tasks, 1000 files/directories

SUMMARY rate (in ops/sec): (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   Directory creation          69527.302      67349.166      68563.609       1110.507
   File creation     :        124283.039     122307.876     123263.247        989.156
   File stat                 1259550.751    1097697.985    1182036.805      81141.935
"""
METARATES = """rates at which files can be created and closed with 4 pes:
max rate = 9.5 creates per second, min rate = 8.0 creates per second avg rate = 8.5 creates per second, total rate = 34.0 creates per second
rates at which files can be utimed' with 4 pes:
max rate = 9.5 utimes per second, min rate = 8.0 utimes per second, avg rate = 8.5 utimes per second, total rate = 3.4e1 utimes per second
"""
SMART: dict[str, Any] = {
    "ata_smart_attributes": {"table": [{"id": 241, "name": "Total_LBAs_Written", "raw": {"value": 7, "string": "7"}}]},
    "nvme_smart_health_information_log": {"data_units_written": 9, "temperature_sensors": [30]},
}
OCP: dict[str, Any] = {"Physical media units written": {"hi": 0, "lo": 5}, "physical_media_units_read": "7"}

LSBLK: dict[str, Any] = {
    "blockdevices": [
        {"name": "sda", "kname": "sda", "maj:min": "8:0", "type": "disk", "size": 4096, "rota": True, "serial": "S\ud800", "tran": "sata"},
        {"name": "loop0", "type": "loop", "size": "4K", "rota": "0", "fstype": "ext4", "mountpoint": "/m"},
        {"name": "sdb", "children": [{"name": "sdb1", "type": "part", "fstype": "xfs", "mountpoints": ["/a", None], "start": 2048}]},
    ]
}  # fmt: skip

# tool -> what a good file of it holds, text or a JSON document; several are fuzzed one after the other
TRACE = (
    "  8,64  11 {} 33.779658276 90790  Q   W 7614344 + 24 [fio x]\n  8,64  11 {} 33.779662409 90790  D   W 7614344 + 24 [fio x]\n"
    "  8,64  11 {} 33.779662500 90790  P   N [fio]\n  8,64  11 {} 33.791580458     0  C   W 7614344 + 24 [0]\n"
)
SUMMARY = "CPU8 (sde):\n Reads Queued:   0,  0KiB  Writes Queued:  195,  29,228KiB\nSkips: 12 forward (1,203 -   3.0%)\n"
MAP = (
    "Filesystem type is: ef53\nFile size of /d/b is 12288 (3 blocks of 4096 bytes)\n ext:  logical_offset:  physical_offset: length:  expected: flags:\n"  # noqa: E501
    "   0:        0..       1:     434..     435:      2:\n   1:        2..       2:     474..     474:      1:     436: last,eof\n/d/b: 2 extents found\n"  # noqa: E501
)
FLUSH = "8,16 FN 0 () 18446744073709551615 + 0 none,0,0 [a b]"
TRACEFS = (
    "# tracer: nop\n             a b-814     [001] .....  2535.314013: block_bio_queue: 8,16 RA 12565288 + 8 [a b]\n"
    "             a b-814     [001] ...1.  2535.314021: block_rq_insert: 8,16 RA 4096 () 12565288 + 8 be,0,4 [a b]\n"
    "             a b-814     [001] .....  2535.314025: block_rq_issue: 8,16 RA 4096 () 12565288 + 8 be,0,4 [a b]\n"
    f"             a b-814     [001] .....  2535.314026: block_rq_issue: {FLUSH}\n"
    "          <idle>-0       [001] ..s1.  2535.314126: block_rq_complete: 8,16 RA () 12565288 + 8 be,0,4 [0]\n"
)
PERF = (
    "             a b   814 [001]   975.751118965:   block:block_bio_queue: 8,16 RA 13317896 + 8 [a b]\n"
    "             a b   814 [001]   975.751140257:    block:block_rq_issue: 8,16 RA 4096 () 13317896 + 8 0x2,0,6 [a b]\n"
    "         swapper     0 [001]   975.751240257: block:block_rq_complete: 8,16 RA () 13317896 + 8 0x2,0,6 [0]\n"
)
DD = "256+0 records in\n256+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.0762728 s, 880 MB/s\n"
DISKSTATS = """TS 1700000000
   8       0 sda 131 0 4492 7 506 564 451840 80 0 68 112 5 0 8388624 0 36 24
   7       0 loop0 1 0 4492 7 506 564 451840 80 0 68 112
TS 1700000010.5 2023-11-14 22:13:30
   8       0 sda 132 0 4500 8 506 564 451840 80 0 69 113 5 0 8388624 0 36 24
"""
SAR = """Linux 6.1 (h) \t2026-01-05 \t_x86_64_\t(2 CPU)

13:20:09          tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util DEV
13:20:19         6.40      1.60      1.60      0.00      0.50      0.00      1.00      0.32 sda
"""
IOSTAT: dict[str, Any] = {
    "sysstat": {
        "hosts": [
            {
                "nodename": "h", "date": "2026-01-05", "statistics": [
                    {"timestamp": f"2026-01-05T10:00:{second}+0000", "disk": [
                        {"disk_device": "sda", "r/s": 1.5, "w/s": 0, "rkB/s": 6, "wkB/s": 0, "r_await": 2.0, "w_await": 0, "util": 12.5}
                    ]} for second in (10, 20)
                ],
            }
        ]
    }
}  # fmt: skip
TASKS = "task_id,node,slot,started_s,ended_s,bytes\na,n,0,0.5,4,1000\nb,n,0,5,6,\n"
SPARK = "".join(
    json.dumps(event) + "\n"
    for event in (
        {"Event": "SparkListenerLogStart", "Spark Version": "4.1.1"},
        {
            "Event": "SparkListenerTaskEnd", "Task End Reason": {"Reason": "Success"},
            "Task Info": {"Task ID": 1, "Host": "n", "Launch Time": 1700000000000, "Finish Time": 1700000001500},
            "Task Metrics": {"Input Metrics": {"Bytes Read": 4096}},
        },
        {"Event": "SparkListenerTaskEnd", "Task End Reason": {"Reason": "TaskKilled"}, "Task Info": {"Task ID": 2}},
    )
)  # fmt: skip
ATTEMPTS: list[dict[str, Any]] = [
    {"type": "MAP_ATTEMPT_STARTED", "event": {"Started": {"attemptId": "m_0", "startTime": 1700000000000}}},
    {
        "type": "MAP_ATTEMPT_FINISHED", "event": {
            "Finished": {
                "attemptId": "m_0", "taskStatus": "SUCCEEDED", "finishTime": 1700000004000, "hostname": "n",
                "counters": {"groups": [{
                    "name": "org.apache.hadoop.mapreduce.FileSystemCounter", "counts": [{"name": "HDFS_BYTES_READ", "value": 99}],
                }]},
            }
        },
    },
    {"type": "MAP_ATTEMPT_STARTED", "event": {"Started": {"attemptId": "m_1", "startTime": 1700000000000}}},
    {"type": "MAP_ATTEMPT_KILLED", "event": {"Killed": {"attemptId": "m_1", "finishTime": 1700000004000}}},
]  # fmt: skip
HISTORY = "Avro-Json\n{}\n" + "".join(json.dumps(event) + "\n" for event in ATTEMPTS)


def history_in_avro() -> bytes:
    """The same history in binary, under a schema of two records."""

    def record(title: str, /, **fields: Any) -> dict[str, Any]:
        return {"type": "record", "name": title, "fields": [{"name": name, "type": of} for name, of in fields.items()]}

    group = record("Group", name="string", counts={"type": "array", "items": record("Count", name="string", value="long")})
    counters = record("Counters", groups={"type": "array", "items": group})
    started = record("Started", attemptId="string", startTime="long")
    finished = record("Finished", attemptId="string", taskStatus="string", hostname="string", finishTime="long", counters=counters)
    schema = record("Event", type="string", event=[started, finished])
    binary = io.BytesIO()
    for event in ATTEMPTS[:3]:
        ((name, value),) = event["event"].items()
        fastavro.schemaless_writer(binary, fastavro.parse_schema(schema), {"type": event["type"], "event": (name, value)})
    return b"Avro-Binary\n" + json.dumps(schema).encode() + b"\n" + binary.getvalue()


GOOD: dict[str, list[str | bytes | dict[str, Any]]] = {
    "aggregate": ["buffer_kb,mean,sd\n4,9.5,0.71\n8,10,1\n"],
    "bench": [BENCH],
    "blkparse": [TRACE.format(1, 2, 3, 4) + SUMMARY],
    "dd": [DD, "1+0 records in\n1+0 records out\n262144 bytes transferred in 0.000123 secs (2131251219 bytes/sec)\n"],
    "diskstats": [DISKSTATS],
    "file-reads": ["file_name,started_s,ended_s,bytes,active_s\na,0,1.5,4096,\nb,2,3,8192,0.5\n"],
    "filefrag": [MAP],
    "ftrace": ["# tracer: blk\n#\n" + TRACE.format("", "", "", "")],
    "fio": [FIO],
    "fio-log": ["0, 64949, 0, 4096, 2023424, 0\n3, 48181, 1, 4096, 24838144, 0\n", "500, 64693, 0, 0, 0\n", "0, 25, 0, 131072, 0x4001\n"],
    "iostat": [IOSTAT],
    "iozone": [IOZONE, REPORTS],
    "ior": [IOR_2, IOR_4, IOR_JSON],
    "job-history": [HISTORY, history_in_avro()],
    "lsblk": [LSBLK],
    "mdtest": [MDTEST],
    "metarates": [METARATES],
    "perf-script": [PERF],
    "smartctl": [SMART, OCP],
    "spark-events": [SPARK],
    "sysstat": [SAR],
    "tasks": [TASKS],
    "tracefs": [TRACEFS],
}
NAMES = {"fio-log": "a_clat.1.log"}
PASSES = {"aggregate": "latency"}


def read(tool: str, path: Path) -> tuple[int, Reading]:
    """Rows of a file. Raises: Refused."""
    reading, rows = Reading(Row(NAMES.get(tool, path.name), pass_=PASSES.get(tool, ""))), 0
    columns = tool_of(tool).TABLES
    for table, frame in tool_of(tool).read(path, reading):
        assert dict(frame.select(*columns[table]).schema) == columns[table]
        rows += frame.height
    return rows, reading


@pytest.mark.parametrize("tool", TOOLS)
def test_any_output_is_read_or_refused(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    for content in GOOD[tool]:
        good = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(good)
        rows, reading = read(tool, path)
        assert rows and not reading.lines_rejected

        def check(given: bytes) -> None:
            path.write_bytes(given)
            refusals: list[Refused] = []
            try:
                read(tool, path)
            except Refused as refused:
                refusals.append(refused)
            assert all(refused.reason in (UNREADABLE, NO_RESULT, NO_CLOCK) and str(refused) for refused in refusals)

        fuzz(mutated_json(content) if isinstance(content, dict) else mutated(good), check, f"output of {tool}")


FULL_MANIFEST = """
format = 1
experiment_id = "e-1"
kind = "hdfs"
expected_runs = 3
large_extent_bytes = 67108864
started_at = "2026-11-23T07:00:00Z"
[machine]
name = "m"
memory_bytes = 4096
[[devices]]
device_id = "d"
kind = "ssd"
rpm = 7200
[[filesystems]]
filesystem_id = "f"
device_id = "d"
block_bytes = 4096
[[configs]]
config_id = "c"
filesystem_id = "f"
is_default = true
writers = 4
[configs.factors]
io.file.buffer.size = 4096
"""


@pytest.mark.parametrize(
    ("name", "good"), [(MANIFEST_FILE, FULL_MANIFEST), (RUNS_FILE, f"{HEADER}\na.csv,bench,c,1,before,latency,0.5\nb.csv,bench,c,2\n")]
)
def test_any_bundle_is_taken_or_refused(name: str, good: str, tmp_path: Path) -> None:
    """A manifest refuses the bundle, a row of runs.csv its file; a row that was not touched is read as it stands."""
    folder = write_bundle(tmp_path / "b", {"a.csv": BENCH, "b.csv": BENCH}, ["b.csv,bench,c,2"], MANIFEST)

    def check(given: bytes) -> None:
        (folder / name).write_bytes(given)
        said = []
        try:
            with open_bundle(folder) as bundle:
                assert all(listing.reason is None or (listing.reason in REASONS and listing.message) for listing in bundle.listings)
                kept = [line for line in given.splitlines()[1:] if line == b"b.csv,bench,c,2"]
                is_table = given.startswith(HEADER.encode() + b"\n") and b'"' not in given and b"\r" not in given
                if name == RUNS_FILE and is_table:
                    assert sum(listing.path is not None and listing.file == "b.csv" for listing in bundle.listings) >= len(kept)
        except LabError as error:
            said.append(str(error))
        assert all(message.startswith(f"{folder}: ") and name in message for message in said)

    check(good.encode())
    fuzz(mutated(good.encode()), check, name)

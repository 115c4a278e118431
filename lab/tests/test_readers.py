"""Output of benchmarks read by eye: small texts here, real files where the samples are present."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from lab.contract import Refused
from lab.tests.bundles import SAMPLES
from lab.tests.test_any_output import DISKSTATS, HISTORY, IOSTAT, IOZONE, METARATES, REPORTS, SAR, SPARK, TASKS, history_in_avro
from lab.tools import tool_of
from lab.tools.tasks import Task, frame_of, placed
from lab.tools.text import Reading, Row

ALL = SAMPLES.parent
DATA = ALL.parent / "data" / "iozone"
needs_samples = pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of the lab are not there")


def read(tool: str, path: Path, pass_: str = "") -> tuple[pl.DataFrame, Reading]:
    reading = Reading(Row(path.name, pass_=pass_))
    frames = [(table, frame) for table, frame in tool_of(tool).read(path, reading)]
    first = next(iter(tool_of(tool).TABLES))
    return pl.concat([frame for table, frame in frames if table == first]), reading


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_value_belongs_to_the_column_above_it(tmp_path: Path) -> None:
    rows, _ = read("iozone", written(tmp_path / "a", IOZONE))
    found = rows.select("benchmark", "test", "parameter", "size_bytes", "value", "unit").rows()
    assert found[:2] == [("iozone_latency", "write", 4096, 65536, 421.0, "us"), ("iozone_latency", "rewrite", 4096, 65536, 120.0, "us")]
    assert found[4] == ("iozone_latency", "read", 8192, 65536, 1000.0, "us")
    # two columns further on, behind three tests that were not run
    moved = IOZONE.replace("200     1000", f"200{'':23}1000")
    assert read("iozone", written(tmp_path / "b", moved))[0]["test"].to_list()[-1] == "random_read"


def test_reports_are_read_where_there_is_no_table_and_not_beside_one(tmp_path: Path) -> None:
    rows, _ = read("iozone", written(tmp_path / "a", REPORTS))
    assert rows.select("test", "parameter", "value").rows() == [
        ("write", 4096, 5452.0), ("write", 8192, 6000.0), ("freread", 8192, 6001.0),
    ]  # fmt: skip
    both, reading = read("iozone", written(tmp_path / "b", IOZONE + REPORTS.split("\n", 1)[1]))
    assert both.height == 5 and not reading.lines_rejected


def test_a_line_of_the_kernel_is_left_out_and_not_run_is_no_zero(tmp_path: Path) -> None:
    text = IOZONE.replace("-N\n", "-N -+n\n").replace("      120\n", "        0\n[1.5] sd 0:0:0:0: hello\n")
    rows, reading = read("iozone", written(tmp_path / "a", text))
    assert rows["test"].to_list() == ["write", "write", "rewrite", "read"]
    assert (reading.lines_rejected, reading.first_rejected) == (1, "[1.5] sd 0:0:0:0: hello")


def test_an_aggregate_needs_its_pass(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "buffer_kb,mean,sd\n4,9.50,0.7\n")
    assert read("aggregate", path, "latency")[0].row(0)[1:] == (4096, 9.5, 0.7, 0.01, 0.1)
    with pytest.raises(Refused, match="fill the column pass"):
        read("aggregate", path)


def test_a_torn_line_of_an_aggregate_is_rejected_and_the_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_bytes(b"buffer_kb,mean,sd\n4,9.50,0.7\n8,1\r.5,0.71\n16,10,1\n")
    assert read("aggregate", path, "latency")[0]["buffer_bytes"].to_list() == [4096, 16384]


def test_a_counter_of_thousands_of_digits_is_rejected(tmp_path: Path) -> None:
    good = DISKSTATS.splitlines()[1]
    fields = good.split()
    torn = " ".join([*fields[:3], "9" * 5000, *fields[4:]])
    rows, reading = read("diskstats", written(tmp_path / "a", f"{DISKSTATS}{torn}\n"))
    assert rows.equals(read("diskstats", written(tmp_path / "b", DISKSTATS))[0]) and reading.lines_rejected == 1


def test_half_a_surrogate_pair_in_a_fio_job_name_becomes_a_question_mark(tmp_path: Path) -> None:
    job = {"jobname": "a\ud800", "read": {"total_ios": 1, "bw_bytes": 9}}
    rows, _ = read("fio", written(tmp_path / "a", json.dumps({"fio version": "fio-3.33", "timestamp": 1, "jobs": [job]})))
    assert rows["test"].to_list() == ["a?.read.bw"]


@pytest.mark.parametrize(
    ("line", "offset"), [("3, 500, 1, 4096, 0", None), ("3, 500, 1, 4096, 81920, 0", 81920), ("3, 500, 1, 4096, 0x4003", None)]
)
def test_which_column_of_a_fio_log_is_which_without_a_version(line: str, offset: int | None, tmp_path: Path) -> None:
    rows, _ = read("fio-log", written(tmp_path / "a_clat.1.log", f"{line}\nbroken\n"))
    (row,) = rows.to_dicts()
    assert (row["direction"], row["block_bytes"], row["offset_bytes"], row["unit"]) == ("write", 4096, offset, "ns")


@pytest.mark.parametrize(
    ("tool", "text", "reason", "said"),
    [
        ("diskstats", DISKSTATS.replace("TS", "at"), "no_clock", "date \\+'TS %s'"),
        ("diskstats", "TS 1700000000\nnothing\n", "no_result", "no counters"),
        ("sysstat", "avg-cpu:  %user\n", "unreadable", "-o JSON"),
        ("iostat", json.dumps(IOSTAT).replace("timestamp", "when"), "unreadable", "S_TIME_FORMAT=ISO"),
        ("tasks", "task,from,to\n", "unreadable", "task_id,node,slot"),
        ("tasks", TASKS.split("\n")[0], "no_result", "no task"),
        ("tasks", TASKS.replace("5,6", "6,5").replace("0.5,4", "4,0.5"), "no_result", "no task"),
        ("job-history", "hello\n", "unreadable", "Avro-Json"),
        ("job-history", HISTORY.replace("FINISHED", "FAILED"), "no_result", "job that has ended"),
        ("job-history", "Avro-Binary\nno schema\n", "unreadable", "no Avro schema"),
        ("spark-events", "hello\n", "unreadable", "no line of it is an event"),
        ("spark-events", SPARK.replace("Success", "TaskKilled"), "no_result", "application that has ended"),
        ("iozone", "\t\0\4\0", "unreadable", "binary"),
        ("iozone", "hello\n", "unreadable", "'hello'"),
        ("iozone", IOZONE.split("   ")[0], "no_result", "interrupted"),
        ("iozone", "Iozone: Performance Test\n\tCommand line used: ./iozone -t 4\n\tThroughput test with 4 processes\n", "no_result", "-t"),
        ("iozone", "", "no_result", "nothing is in it"),
        ("ior", "IOR-3.0.1: MPI\n\nwrite 75.82\n", "no_result", "interrupted"),
        ("ior", "hello\n", "unreadable", "'hello'"),
        ("ior", '{"summary": ', "unreadable", "cut off"),
        ("ior", '{"tests": []}', "unreadable", "summary"),
        ("mdtest", "hello\n", "unreadable", "'hello'"),
        ("mdtest", "mdtest-3 was launched with 2 total task(s)\n", "no_result", "interrupted"),
        ("mdtest", "SUMMARY rate:\n   File stat : 2.0 1.0 1.5 0.1\n", "no_result", "process_count"),
        ("metarates", "hello\n", "unreadable", "'hello'"),
        ("metarates", METARATES.splitlines()[0], "no_result", "interrupted"),
        ("smartctl", "[]", "unreadable", "JSON"),
        ("smartctl", "{}", "no_result", "no counter"),
        ("lsblk", "NAME MAJ:MIN", "unreadable", "lsblk -J"),
        ("lsblk", "{}", "unreadable", "blockdevices"),
        ("lsblk", '{"blockdevices": [{"name": "loop0", "type": "loop"}]}', "no_result", "no drive"),
    ],
)
def test_output_that_cannot_be_used_is_refused_in_words(tool: str, text: str, reason: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=said) as refused:
        read(tool, written(tmp_path / "a", text))
    assert refused.value.reason == reason


def test_counters_are_read_by_device_and_time(tmp_path: Path) -> None:
    rows, reading = read("diskstats", written(tmp_path / "a", DISKSTATS + "   8  0 sda 1 0 cut\n"))
    assert rows.rows()[0] == (2, "sda", True, 1_700_000_000.0, 131, 4492, 7, 506, 451840, 80, 68)
    assert rows.select("device", "is_whole_drive", "at_s").rows()[1:] == [
        ("loop0", False, 1_700_000_000.0), ("sda", True, 1_700_000_010.5),
    ]  # fmt: skip
    assert (reading.lines_rejected, reading.first_rejected) == (1, "8  0 sda 1 0 cut")


def test_sar_has_no_reads_apart_from_writes(tmp_path: Path) -> None:
    (sar,) = read("sysstat", written(tmp_path / "a", SAR))[0].to_dicts()
    assert (sar["reads_per_s"], sar["read_bytes_per_s"], sar["seconds"], sar["busy_ratio"]) == (None, 1638.4, 10.0, 0.0032)
    # the first of iostat is since boot
    (iostat,) = read("iostat", written(tmp_path / "b", json.dumps(IOSTAT)))[0].to_dicts()
    assert (iostat["reads_per_s"], iostat["read_bytes_per_s"], iostat["seconds"], iostat["busy_ratio"]) == (1.5, 6144.0, 10.0, 0.125)


def test_a_task_takes_the_lowest_slot_that_is_free() -> None:
    """The third task starts as the first ends, the fourth while two run on its node; another node has slots of its own."""
    spans = [("a", "n", 0, 5), ("b", "n", 1, 9), ("c", "n", 5, 6), ("d", "n", 5.5, 7), ("e", "m", 5.5, 7), ("f", "n", 8, 9)]
    tasks = placed(Task(name, node, 0, start, end, None) for name, node, start, end in spans)
    assert {task.task_id: task.slot for task in tasks} == {"a": 0, "b": 1, "c": 0, "d": 2, "e": 0, "f": 0}


def test_killed_attempts_are_no_tasks_in_either_form_of_a_history(tmp_path: Path) -> None:
    rows, reading = read("job-history", written(tmp_path / "a", HISTORY))
    assert rows.rows() == [(1, "m_0", "n", 0, 1_700_000_000.0, 1_700_000_004.0, 99)] and not reading.lines_rejected
    (tmp_path / "b").write_bytes(history_in_avro())
    assert read("job-history", tmp_path / "b")[0].equals(rows)


@needs_samples
def test_the_samples_of_iozone_are_read_whole() -> None:
    for path in SAMPLES.glob("iozone/*_[0-9].txt"):
        rows, reading = read("iozone", path)
        assert rows.height == 26 and not reading.lines_rejected, path
    assert read("iozone", SAMPLES / "iozone/before_1M_R.txt")[0].height == 13
    rows, _ = read("iozone", SAMPLES / "iozone/before_4K_ops_R.txt")
    assert rows["test"].to_list() == ["write", "read", "random_read", "random_write"] and set(rows["unit"]) == {"ops/s"}
    with pytest.raises(Refused, match="give the text output"):
        read("iozone", SAMPLES / "iozone/before_1M.wks")
    with pytest.raises(Refused, match="throughput mode"):
        read("iozone", ALL / "iozone_t_throughput_mode.txt")


@pytest.mark.skipif(not DATA.exists(), reason="the data of iozone are not there")
def test_twenty_files_of_old_iozone_are_read_whole() -> None:
    """Heading `KB`; 163 combinations of sizes and 13 tests each."""
    files = sorted(DATA.glob("*iozone"))
    assert len(files) == 20
    for path in files:
        rows, reading = read("iozone", path)
        lines = [line for line in path.read_text().splitlines() if line.split()[:2] and all(word.isdigit() for word in line.split())]
        assert rows.height == 13 * len(lines) == 2119 and not reading.lines_rejected, path
        assert [float(word) for word in lines[-1].split()[2:]] == rows["value"].to_list()[-13:]


@needs_samples
def test_the_samples_of_fio_hold_what_was_read_by_eye() -> None:
    rows, _ = read("fio", SAMPLES / "fio/fio_3.33_modes.json")
    found = dict(rows.select("test", "value").rows())
    assert found["qd1.read.bw"] == 1_228_492 and found["qd1.read.clat_mean"] == pytest.approx(62.809031667)
    assert found["qd1.read.clat_p99"] == 313.344 and found["buffered.read.iops"] == pytest.approx(255.936016)
    assert not any(".write." in test for test in found)
    log, _ = read("fio-log", SAMPLES / "fio/qd1_clat.1.log")
    assert log["block_bytes"].sum() == 4_915_200, "the job's io_bytes"


@needs_samples
def test_the_logs_of_the_samples_sum_up_to_what_fio_says() -> None:
    text = (SAMPLES / "fio/fio_3.33_modes.json").read_text()
    said = {job["jobname"]: job["read"] for job in json.loads(text[text.index("{") :])["jobs"]}
    for metric in ("bw", "iops", "lat", "clat", "slat"):
        log, _ = read("fio-log", SAMPLES / f"fio/qd1_{metric}.1.log")
        assert log["block_bytes"].sum() == pytest.approx(said["qd1"]["io_bytes"], rel=0.01)
    # a log of averages has no sizes: mean bandwidth (KiB/s) times time
    log, _ = read("fio-log", SAMPLES / "fio/buffered_bw.2.log")
    assert log["value"].mean() * 1024 * said["buffered"]["runtime"] / 1000 == pytest.approx(said["buffered"]["io_bytes"], rel=0.01)


def test_bytes_seconds_and_records_of_dd_are_read(tmp_path: Path) -> None:
    text = "1+0 records in\n1+0 records out\n262144 bytes (262 kB, 256 KiB) copied, 0,00025 s, 1,0 GB/s\nboo\n8192 bytes copied, 1e-4 s\n"
    rows, reading = read("dd", written(tmp_path / "a", text))
    assert rows.rows() == [(1, 1, 262144, 0.00025), (2, None, 8192, 1e-4)]
    assert (reading.lines_rejected, reading.first_rejected) == (1, "boo")


@needs_samples
def test_the_samples_of_trace_events_hold_what_grep_counts() -> None:
    counted = {}
    for tool, file in (("tracefs", "reads_tracefs_events.txt"), ("perf-script", "reads_perf_script.txt")):
        rows, reading = read(tool, SAMPLES / "loop_ext4/files" / file)
        assert not reading.lines_rejected
        counted[tool] = dict(rows.group_by("device", "action").len().select(pl.concat_str("device", "action", separator=" "), "len").rows())
    assert counted["tracefs"] == {
        "7,0 Q": 10, "7,0 D": 17, "7,0 C": 15, "254,0 Q": 404, "254,0 D": 88, "254,0 C": 81, "254,0 R": 3,
    }  # fmt: skip
    assert counted["perf-script"] == {"7,0 Q": 9, "7,0 D": 16, "7,0 C": 16, "254,0 Q": 79, "254,0 D": 28}


def test_events_that_a_tracer_dropped_are_counted(tmp_path: Path) -> None:
    event = "  8,64  11  2949  33.779662409 90790  D  W 7614344 + 24 [fio]\n"
    named = "dd-814 [001] ..... 2535.314025: block_rq_issue: 8,0 R 4096 () 2048 + 8 [dd]\n"
    for tool, text, lost in (
        ("blkparse", event + "Skips: 2 forward (1,203 -   3.0%)\n", [(2, 1203)]),
        ("ftrace", "CPU:1 [LOST 7 EVENTS]\n" + event, [(1, 7)]),
        ("tracefs", "# entries-in-buffer/entries-written: 140080/250280   #P:4\n" + named, [(1, 110200)]),
        ("tracefs", "# entries-in-buffer/entries-written: 1/1   #P:4\n" + named, []),
    ):
        frames = tool_of(tool).read(written(tmp_path / "a", text), Reading(Row("a")))
        assert [row for table, frame in frames if table == "trace_losses" for row in frame.rows()] == lost


def test_an_event_after_a_torn_one_keeps_its_own_values(tmp_path: Path) -> None:
    torn = "dd-814 [001] ..... 1.000001: block_rq_issue: 8,0 R 4096 () 20"
    whole = "dd-814 [001] ..... 2.000002: block_rq_complete: 8,0 R () 4096 + 16 [0]\n"
    rows, reading = read("tracefs", written(tmp_path / "a", torn + whole + torn + "\n"))
    assert rows.rows() == [(1, "8,0", 2_000_002_000, "C", "R", 4096, 16, 0)]
    assert reading.lines_rejected == 1


def test_half_a_surrogate_pair_in_a_task_is_a_question_mark() -> None:
    """As JSON of an event log may escape it."""
    (row,) = frame_of([Task("\ud800", "a\ud800", 0, 1.0, 2.0, None)]).rows()
    assert row[1:3] == ("?", "a?")

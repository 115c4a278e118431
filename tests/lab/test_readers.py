"""Output of benchmarks read by eye: small texts here, real files where the samples are present."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from lab.contract import Refused
from lab.tools import tool_of
from lab.tools.text import Reading, Row
from tests.lab.bundles import SAMPLES
from tests.lab.test_any_output import IOZONE, REPORTS

ALL = SAMPLES.parent
DATA = ALL.parent / "data" / "iozone"
needs_samples = pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of the lab are not there")


def read(tool: str, path: Path, pass_: str = "") -> tuple[pl.DataFrame, Reading]:
    reading = Reading(Row(path.name, pass_=pass_))
    return pl.concat([frame for _, frame in tool_of(tool).read(path, reading)]), reading


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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\t\0\4\0", "unreadable"),
        ("hello\n", "unreadable"),
        (IOZONE.split("   ")[0], "no_result"),
        ("Iozone: Performance Test\n\tCommand line used: ./iozone -t 4\n\tThroughput test with 4 processes\n", "no_result"),
        ("", "no_result"),
    ],
)
def test_what_is_not_iozone_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        read("iozone", written(tmp_path / "a", text))
    assert refused.value.reason == reason


def test_an_aggregate_needs_its_pass(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "buffer_kb,mean,sd\n4,9.50,0.7\n")
    assert read("aggregate", path, "latency")[0].row(0)[1:] == (4096, 9.5, 0.7, 0.01, 0.1)
    with pytest.raises(Refused, match="fill the column pass"):
        read("aggregate", path)


@pytest.mark.parametrize(
    ("line", "offset", "unit"),
    [("3, 500, 1, 4096", None, "us"), ("3, 500, 1, 4096, 0", None, "ns"), ("3, 500, 1, 4096, 81920, 0", 81920, "ns")],
)
def test_columns_of_a_fio_log_are_told_apart(line: str, offset: int | None, unit: str, tmp_path: Path) -> None:
    rows, _ = read("fio-log", written(tmp_path / "a_clat.1.log", f"{line}\nbroken\n"))
    (row,) = rows.to_dicts()
    assert (row["direction"], row["block_bytes"], row["offset_bytes"], row["unit"]) == ("write", 4096, offset, unit)


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

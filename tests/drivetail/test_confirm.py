"""`drivetail confirm`: a suspect is read beside its peers, nothing is ever written, and what was found stays with its serial number."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drivetail.host import confirm
from drivetail.host.confirm import ConfirmError, Probe, Probed, refuse_unreadable, script
from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest
from tests.drivetail.conftest import drivetail
from tests.ingest.test_probes import job, result

pytestmark = pytest.mark.xdist_group("confirm")

DAY = datetime(2026, 1, 5)
READING = {"openat", "pread64", "preadv", "preadv2", "lseek", "fadvise64", "newfstatat", "fstat", "statx", "readlink", "close", "execve"}
"""System calls that change nothing on the file that they name."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Six drives of one array and host, S1 three times as slow; S2 is of another model than the others, S6 has no device."""
    folder = tmp_path_factory.mktemp("confirm")
    hours = [f"{DAY + timedelta(hours=n)},S{d},g1,{1000 * d},0,{300 if d == 1 else 100},\n" for n in range(24) for d in range(1, 7)]
    (folder / "drive_hours.csv").write_text(
        "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us\n" + "".join(hours)
    )
    (folder / "drives.csv").write_text(
        "drive_id,raid_group_id,role,host,model\n" + "".join(f"S{d},g1,data,web1,M{d == 2}\n" for d in range(1, 7))
    )
    (folder / "mapping.csv").write_text("host,device,drive_id\n" + "".join(f"web1,sd{'abcde'[d - 1]},S{d}\n" for d in range(1, 6)))
    warehouse = Warehouse(folder / "warehouse")
    for source, names in (("bundle", ("drive_hours.csv", "drives.csv")), ("mapping", ("mapping.csv",))):
        ingest(source, [folder / name for name in names], warehouse.root)
    build(warehouse)
    return warehouse


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files that stand for drives."""
    found = [tmp_path / name for name in ("suspect", "peer:1", "peer 2")]
    for file in found:
        file.write_bytes(os.urandom(8 << 20))
    return found


def probe_of(files: list[Path]) -> Probe:
    return Probe(tuple(Probed(f"S{n}", "web1", str(file)) for n, file in enumerate(files, 1)), reads_per_second=50, seconds=2)


def not_reading(trace: str, file: Path) -> list[str]:
    """The system calls of a trace that name a file and may change it, or open it so that it could be."""
    calls = [line for line in trace.splitlines() if str(file) in line]
    assert any(line.startswith("pread") for line in calls), "it was not read"
    return [
        line for line in calls
        if line.partition("(")[0] not in READING or re.search("O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", line)
    ]  # fmt: skip


def traced(commands: str, folder: Path) -> tuple[str, str]:
    """Output of shell commands, and the system calls that they make, with the files that these name."""
    for old in folder.glob("trace.*"):
        old.unlink()
    done = subprocess.run(
        ["strace", "-ff", "-y", "-o", folder / "trace", "sh", "-c", commands], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, "".join(each.read_text() for each in folder.glob("trace.*"))


@pytest.mark.needs("strace", "fio")
@pytest.mark.parametrize("is_own", [False, True], ids=["fio", "own reader"])
def test_a_probe_never_writes(is_own: bool, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "SLICES", 2)
    before = [file.read_bytes() for file in files]
    said, trace = traced(script(probe_of(files), is_own=is_own), tmp_path)
    for file in files:
        assert not_reading(trace, file) == []
        assert all("O_DIRECT" in line for line in trace.splitlines() if "openat" in line and str(file) in line)
    assert [file.read_bytes() for file in files] == before
    # what it printed is a delivery
    (tmp_path / "confirm.txt").write_text(said)
    summary = ingest("confirm", [tmp_path / "confirm.txt"], tmp_path / "warehouse")
    assert (summary.rows_accepted, summary.rows_rejected) == (12, 0)


@pytest.mark.needs("strace")
@pytest.mark.parametrize("planted", ["exec 3<>{}", "exec 3>>{}", "truncate -c -s 1M {}", "touch {}"])
def test_a_write_would_be_seen(planted: str, files: list[Path], tmp_path: Path) -> None:
    reads = f"{shlex.quote(sys.executable)} -c 'import os, sys; os.pread(os.open(sys.argv[1], 0), 1, 0)' {files[0]}"
    assert not_reading(traced(reads, tmp_path)[1], files[0]) == []
    assert not_reading(traced(f"{reads}; {planted.format(files[0])}", tmp_path)[1], files[0])


def test_a_probe_is_planned_from_inventory(fleet: Warehouse) -> None:
    """Its peers are of its model; on another machine the command is printed, and nothing is run."""
    done = drivetail("confirm", "web1/sda", "--print", "-w", fleet.root)
    outer = shlex.split(done.stdout)
    assert outer[:3] == ["sudo", "sh", "-c"] and outer[4:] == [">", "confirm-S1.txt"]
    assert [f"is /dev/sd{device} S{n};" in outer[3] for device, n in zip("acd", (1, 3, 4), strict=True)] == [True] * 3
    assert "--readonly" in outer[3]
    jobs = re.findall(r"--name=(\w+) --filename=(\S+)", outer[3])
    assert jobs == [("suspect", "/dev/sda"), ("peer", "/dev/sdc"), ("peer", "/dev/sdd")]
    said = drivetail("confirm", "S1", "-w", fleet.root).stdout
    assert "web1 is another machine" in said and done.stdout.strip() in said and "drivetail ingest confirm confirm-S1.txt" in said
    assert drivetail("confirm", "S6", "-w", fleet.root).stderr.endswith("no source names its device; give --device S6=/dev/NAME\n")
    assert drivetail("confirm", "S1", "--device", "/dev/sdx", "-w", fleet.root).exit_code == 2
    twice = drivetail("confirm", "S1", "--device", "S1=/x", "--device", "S2=/x", "-w", fleet.root)
    assert twice.exit_code == 1 and "a drive is no peer of itself" in twice.stderr


def test_a_device_that_is_another_drive_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lsblk").write_text('#!/bin/sh\ncase "$*" in "-dno SERIAL /dev/sda") echo " ZN9902 " ;; *sdb) echo "S  2" ;; esac\n')
    (tmp_path / "lsblk").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "fio").write_text('#!/bin/sh\necho \'{"fio version": "none"}\'\n')
    (tmp_path / "fio").chmod(0o755)

    def said(*drives: Probed) -> str:
        done = subprocess.run(["sh", "-c", script(Probe(drives, 50, 6))], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == ("fio version" in done.stdout) == (not done.stderr)
        return done.stderr.strip()

    second = Probed("S 2", "web1", "/dev/sdb")
    assert said(second) == said(second, Probed("S1", "web1", "/dev/sda", ("ZN9902",))) == ""  # an operator's word
    assert said(second, Probed("S1", "web1", "/dev/sda")) == "/dev/sda is now ZN9902, not S1: nothing was read"
    assert said(Probed("S3", "web1", "/dev/sdc"), second) == "/dev/sdc is now without a serial number, not S3: nothing was read"
    assert said(Probed("web1/sdc", "web1", "/dev/sdc"), second) == ""  # nobody knows a serial number of it
    assert said(Probed("$(id)", "web1", "/dev/sdc; id")) == "/dev/sdc; id is now without a serial number, not $(id): nothing was read"


def test_a_drive_known_by_its_name_alone_is_probed_by_it(tmp_path: Path, files: list[Path]) -> None:
    """No source gives a serial number: the probe is of the name, and of the serial number that is learnt of it later."""
    hours = [
        f"TS {1767571200 + 300 * n}\n"
        + "".join(f" 8 {16 * d} sd{'abc'[d]} {100 * n} 0 0 {100 * n * (3 if d == 0 else 1)} 0 0 0 0 0 0 0\n" for d in range(3))
        for n in range(13)
    ]
    (tmp_path / "web1").mkdir()
    (tmp_path / "web1" / "diskstats").write_text("".join(hours))
    warehouse = Warehouse(tmp_path / "warehouse")
    ingest("diskstats", [tmp_path / "web1"], warehouse.root, kind="disk")
    build(warehouse)
    printed = drivetail("confirm", "web1/sda", "--print", "-w", warehouse.root).stdout
    assert "lsblk" not in printed and "> confirm-web1_sda.txt" in printed
    given = [part for n, file in enumerate(files) for part in ("--device", f"web1/sd{'abc'[n]}={file}")]
    done = drivetail("confirm", "web1/sda", *given, "--seconds", "6", "-w", warehouse.root)
    assert "no serial number is known: see that no boot has renamed" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Probe of "), done.stderr
    (tmp_path / "mapping.csv").write_text("host,device,drive_id\nweb1,sda,S1\n")
    ingest("mapping", [tmp_path / "mapping.csv"], warehouse.root)
    build(warehouse)
    assert "Probe of " in drivetail("explain", "S1", "-w", warehouse.root).stdout


def test_a_path_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").touch()
    refuse_unreadable(str(tmp_path / "f"))
    with pytest.raises(ConfirmError, match="is no block device"):
        refuse_unreadable("/dev/null")
    with pytest.raises(ConfirmError, match="No such file"):
        refuse_unreadable("/dev/nothing")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)
    with pytest.raises(ConfirmError, match="no permission to read it; run it as root"):
        refuse_unreadable(str(tmp_path / "f"))


def test_a_probe_of_files_shows_where_the_drive_is_shown(fleet: Warehouse, files: list[Path]) -> None:
    given = [part for n, file in enumerate(files, 1) for part in ("--device", f"S{n}={file}")]
    done = drivetail("confirm", "S1", *given, "--seconds", "6", "-w", fleet.root)
    assert done.exit_code == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert re.fullmatch(r"Probe of \d{4}-\d\d-\d\d \d\d:\d\d UTC: (slow by itself|not by itself|cannot say): .*", last)

    # later somebody brings what the printed command wrote on the drive's host: three times as slow in every slice
    at = int(datetime.now(UTC).timestamp()) + 600
    listed = {"blockdevices": [{"name": f"sd{'abc'[n]}", "serial": f"S{n + 1}"} for n in range(3)]}
    slices = [
        result(job("suspect", "/dev/sda", 300.0 + n), job("peer", "/dev/sdb", 100.0 + n), job("peer", "/dev/sdc", 100.0 + 2 * n), rw=rw)
        for n in range(12)
        for rw in ("randread", "read")
    ]
    brought = files[0].with_name("confirm-S1.txt")
    brought.write_text("\n".join([f"TS {at}", json.dumps(listed), *map(json.dumps, slices)]))
    assert drivetail("ingest", "confirm", brought, "-w", fleet.root).exit_code == 0
    build(fleet)
    line = f"Probe of {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC: "
    for shown in (("explain", "S1"), ("decide", "S1", "replace", "--ticket-text"), ("candidates", "--all", "--format", "json")):
        said = drivetail(*shown, "-w", fleet.root)
        assert line in said.stdout, said
        assert "S1" in said.stdout
    assert line not in drivetail("explain", "S2", "-w", fleet.root).stdout

"""`drivetail lab run`: a real run on this machine, kept step by step, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from engine.lab_build import build_lab
from engine.read import open_published
from engine.warehouse import Warehouse
from lab.bundle import open_bundle
from lab.contract import LabError
from lab.landing import ingest_bundle
from lab.run import ROOM, SCRATCH, Size, carry_out, prepare, reads
from lab.run.machine import takes_direct_io, target_of
from tests.lab.bundles import lab

needs_fio = pytest.mark.skipif(shutil.which("fio") is None and shutil.which("iozone") is None, reason="neither fio nor iozone is installed")


@needs_fio
def test_sync_writes_are_run_kept_and_resumed(tmp_path: Path) -> None:
    (tmp_path / "target" / "drivetail-lab-scratch").mkdir(parents=True)  # of a call that was killed
    call = ["run", "sync-writes", "--target", tmp_path / "target", "--out", tmp_path / "out", "--runs", 1, "--size", "16K"]
    said = lab(*call, "--dry-run")
    assert said.exit_code == 0 and "2 steps of 2 left" in said.output and not (tmp_path / "out").exists()
    assert lab(*call).exit_code == 0
    assert not any((tmp_path / "target").iterdir())
    # a call that stopped after one step goes on with the other
    rows = (tmp_path / "out" / "runs.csv").read_text().splitlines()
    first = [row for row in rows if "latency" not in row]
    (tmp_path / "out" / "runs.csv").write_text("\n".join(first) + "\n")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*throughput*")}
    again = lab(*call)
    assert "1 step of 2 left" in again.output and "1 step done" in again.output
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*throughput*")} == kept
    assert (tmp_path / "out" / "runs.csv").read_text().splitlines() == rows
    summary = ingest_bundle(tmp_path / "w", tmp_path / "out")
    assert not summary.refused and len(summary.files) == len(rows) - 1
    with open_bundle(tmp_path / "out") as bundle:
        (experiment,), (filesystem,) = bundle.manifest.tables["experiments"], bundle.manifest.tables["filesystems"]
    assert experiment["kind"] == "sync_writes" and experiment["expected_runs"] == 1
    assert filesystem["type"] == target_of(tmp_path).filesystem


@pytest.mark.skipif(shutil.which("filefrag") is None, reason="filefrag is not installed")
def test_writers_are_run_and_read(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    call = ["run", "writers", "--target", tmp_path / "target", "--out", tmp_path / "out", "--runs", 1, "--size", "1M"]
    done = lab(*call)
    if "filefrag" in done.output and done.exit_code:
        pytest.skip(f"the filesystem has no map of files: {done.output}")
    assert done.exit_code == 0 and "6 steps done" in done.output
    assert not any((tmp_path / "target").iterdir())
    summary = ingest_bundle(tmp_path / "w", tmp_path / "out")
    assert not summary.refused
    with open_bundle(tmp_path / "out") as bundle:
        configs = {row["config_id"]: row["writers"] for row in bundle.manifest.tables["configs"]}
    assert configs == {f"writers-{count}{more}": None if more else count for count in (1, 2, 4) for more in ("", "-fallocate")}
    extents = pl.read_parquet(next((tmp_path / "w").rglob("file_maps.parquet")))
    assert extents.height == 2 * (1 + 2 + 4) and set(extents["file_bytes"]) == {1 << 20, 1 << 19, 1 << 18}


def test_reads_are_run_on_a_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "SECONDS", 0.05)
    monkeypatch.setattr(reads, "TRACING", tmp_path / "absent")
    scratch = tmp_path / "target" / SCRATCH
    scratch.mkdir(parents=True)
    (scratch / "file_0").write_bytes(bytes(1 << 20))  # of another experiment that was killed
    call = ["run", "reads", "--target", tmp_path / "target", "--out", tmp_path / "out", "--runs", 2, "--size", "1M"]
    done = lab(*call)
    assert done.exit_code == 0, done.output
    assert "note: no traces: " in done.output and "relations of single requests stay empty" in done.output
    assert not any((tmp_path / "target").iterdir())
    with open_bundle(tmp_path / "out") as bundle:
        modes = [config["config_id"] for config in bundle.manifest.tables["configs"]]
    assert modes[:2] == ["buffered", "read-ahead"] and ("direct" in modes) == takes_direct_io(tmp_path)
    # a call that stopped before its last run goes on with it; its files are written again
    rows = (tmp_path / "out" / "runs.csv").read_text().splitlines()
    (tmp_path / "out" / "runs.csv").write_text("\n".join(rows[:-1]) + "\n")
    again = lab(*call)
    assert f"1 step of {2 * len(modes)} left" in again.output and "1 step done" in again.output
    warehouse = Warehouse(tmp_path / "w")
    summary = ingest_bundle(warehouse.root, tmp_path / "out")
    assert {row["tool"] for row in summary.refused} <= {"filefrag"}  # tmpfs has no maps
    build_lab(warehouse)
    with open_published(warehouse) as connection:
        query = """
            select config_id, run_number, count(*), min(bytes), max(bytes), min(started_s), max(ended_s) from lab.fct_file_reads
            group by all order by all
        """
        found = connection.execute(query).fetchall()
    assert [row[:2] for row in found] == [(mode, run) for mode in sorted(modes) for run in (1, 2)]
    assert all(row[2] >= reads.FILES and row[3] == row[4] == 1 << 20 and 0 <= row[5] < row[6] < 600 for row in found)


def test_a_trace_is_taken_and_the_tracer_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracing, switch = tmp_path / "tracing", tmp_path / "enable"
    (tracing / "options").mkdir(parents=True)
    before = {"current_tracer": "nop", "trace": "", "buffer_size_kb": "1408", "options/blk_classic": "0", "options/context-info": "1"}
    for name, value in before.items():
        (tracing / name).write_text(value)
    switch.write_text("0")
    monkeypatch.setattr(reads, "TRACING", tracing)
    monkeypatch.setattr(reads, "_switch", lambda disk: switch)
    monkeypatch.setattr(reads.os, "geteuid", lambda: 0)
    read, seen = reads._read, []

    def traced(file: Path, mode: reads.Mode) -> int:
        state = [(tracing / name).read_text() for name in ("current_tracer", "options/blk_classic")]
        seen.append((*state, switch.read_text()))
        with (tracing / "trace").open("a") as stream:  # as the kernel would
            stream.write("  8,0    0   974.907056419 15484  D  RA 434176 + 1024 [dd]\n")
        return read(file, mode)

    monkeypatch.setattr(reads, "_read", traced)
    (tmp_path / "target").mkdir()
    plan, recording = prepare("reads", tmp_path / "target", tmp_path / "out", Size(1, 1 << 20), "")
    assert not any("no traces" in note for note in plan.notes)
    carry_out(plan, recording, lambda said: None)
    assert set(seen) == {("blk", "1", "1")}
    assert (tmp_path / "out" / "buffered_1.ftrace").read_text().count("\n") == reads.FILES
    assert {name: (tracing / name).read_text() for name in before} == before and switch.read_text() == "0"
    # another program's tracer is left alone
    (tracing / "current_tracer").write_text("function")
    assert reads.why_no_trace("sda") == "another program uses the tracer"


def test_a_folder_of_another_experiment_is_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "experiment.toml").write_text("format = 1\n")
    with pytest.raises(LabError, match="holds another experiment"):
        prepare("sync-writes", tmp_path, tmp_path / "out", Size(1, 1 << 20), "")


@pytest.mark.parametrize(
    ("protocol", "target", "size", "said"),
    [
        ("fast", ".", 1 << 20, "there is no protocol 'fast'"),
        ("sync-writes", "/dev/null", 1 << 20, "is no folder; --target names a folder"),
        ("sync-writes", ".", 1 << 60, "make room or give a smaller --size"),
        ("sync-writes", ".", 1024, "smaller than the smallest buffer"),
        ("writers", ".", 1024, "less than a chunk of 131072 bytes for each of 4 writers"),
        ("reads", ".", 3000, "no multiple of the largest read"),
    ],
)
def test_what_cannot_run_is_said_before_anything_is_written(protocol: str, target: str, size: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=said):
        prepare(protocol, tmp_path if target == "." else Path(target), tmp_path / "out", Size(1, size), "")
    assert not any(tmp_path.iterdir())


def test_free_space_must_exceed_what_is_used_by_a_tenth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1 << 20
    usage = shutil.disk_usage(tmp_path)
    for free, is_enough in ((int(size * ROOM) + 1, True), (int(size * ROOM) - 1, False)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        if is_enough:
            assert prepare("sync-writes", tmp_path, tmp_path / "out", Size(1, size), "")[0].uses_bytes == size
        else:
            with pytest.raises(LabError, match="MiB free"):
                prepare("sync-writes", tmp_path, tmp_path / "out", Size(1, size), "")


def test_a_missing_tool_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="fio is not installed; install the package fio"):
        prepare("sync-writes", tmp_path, tmp_path / "out", Size(1, 1 << 20), "")

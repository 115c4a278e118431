"""`drivetail lab run`: a real run on this machine, kept step by step, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from engine.read import open_published
from engine.warehouse import Warehouse
from lab.build import build_lab
from lab.bundle import open_bundle
from lab.contract import LabError
from lab.landing import ingest_bundle
from lab.run import ROOM, SCRATCH, Size, carry_out, prepare, reads, takes_direct_io, tracing
from lab.run.machine import target_of
from lab.tests.bundles import lab


@pytest.mark.needs("fio")
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


@pytest.mark.needs("filefrag")
def test_writers_are_run_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # no test switches on the tracer of the machine that it runs on
    monkeypatch.setattr("lab.run.writers.obstacle", lambda _: "this user is not root; run as root to trace")
    (tmp_path / "target").mkdir()
    call = ["run", "writers", "--target", tmp_path / "target", "--out", tmp_path / "out", "--runs", 1, "--size", "1M"]
    done = lab(*call)
    if "filefrag" in done.output and done.exit_code:
        pytest.skip(f"the filesystem has no map of files: {done.output}")
    assert done.exit_code == 0 and "6 steps done" in done.output
    assert "run lengths and seeks stay empty: this user is not root" in done.output
    assert not any((tmp_path / "target").iterdir())
    summary = ingest_bundle(tmp_path / "w", tmp_path / "out")
    assert not summary.refused
    with open_bundle(tmp_path / "out") as bundle:
        configs = {row["config_id"]: row["writers"] for row in bundle.manifest.tables["configs"]}
    assert configs == {f"writers-{count}{more}": None if more else count for count in (1, 2, 4) for more in ("", "-fallocate")}
    extents = pl.read_parquet(next((tmp_path / "w").rglob("file_maps.parquet")))
    # four files of the same size, however many write them
    assert extents.height == 2 * 3 * 4 and set(extents["file_bytes"]) == {1 << 18}


def test_reads_are_run_on_a_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "SECONDS", 0.05)
    # no test switches on the tracer of the machine that it runs on
    monkeypatch.setattr(reads, "obstacle", lambda _: "this user is not root; run as root to trace")
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


@pytest.mark.needs("fio")
def test_a_folder_of_another_experiment_is_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "experiment.toml").write_text("format = 1\n")
    with pytest.raises(LabError, match="holds another experiment"):
        prepare("sync-writes", tmp_path, tmp_path / "out", Size(1, 1 << 20), "")


@pytest.mark.needs("fio")
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
def test_impossible_runs_are_refused_before_anything_is_written(protocol: str, target: str, size: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=said):
        prepare(protocol, tmp_path if target == "." else Path(target), tmp_path / "out", Size(1, size), "")
    assert not any(tmp_path.iterdir())


@pytest.mark.needs("fio")
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


@pytest.mark.parametrize("protocol", ["before-after", "sync-writes"])
def test_a_missing_tool_is_named_with_its_package(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = lab("run", protocol, "--target", tmp_path, "--out", tmp_path / "bundle", "--size", "small")
    assert done.exit_code == 1 and "fio is not installed; install the package fio" in done.output


TRACE = """# tracer: blk
#
  8,0    0     1.000000100  1449  D  WS 4096 + 256 [drivetail]
  8,0    0     1.000400000     0  C  WS 4096 + 256 [0]
"""


@pytest.fixture
def tracefs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the kernel's."""
    folder = tmp_path / "tracing"
    said = {
        "available_tracers": "blk function nop\n", "current_tracer": "nop\n", "buffer_size_kb": "7 (expanded: 1408)\n", "trace": TRACE,
        "options/blk_classic": "0\n", "options/context-info": "1\n",
    }  # fmt: skip
    for name, text in {**said, f"block/{target_of(tmp_path).kernel_name}/trace/enable": "0\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(tracing, "FOLDERS", (folder,))
    monkeypatch.setattr(tracing, "BLOCK_DEVICES", folder / "block")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return folder


needs_device = pytest.mark.skipif(not target_of(Path(__file__).parent).kernel_name, reason="this checkout lies on no block device")


@needs_device
@pytest.mark.parametrize("fails", [False, True])
def test_the_tracer_is_left_as_it_was(fails: bool, tracefs: Path) -> None:
    target = target_of(tracefs)
    assert not tracing.obstacle(target)
    try:
        with tracing.traced(target, 100_000) as text:
            assert (tracefs / "current_tracer").read_text() == "blk" and (tracefs / "buffer_size_kb").read_text() == "100000"
            if fails:
                raise LabError("fio failed")
        assert text == [TRACE.encode()]
    except LabError:
        assert fails
    left = {
        name: (tracefs / name).read_text() for name in ("current_tracer", "buffer_size_kb", "options/blk_classic", "options/context-info")
    }
    assert left == {"current_tracer": "nop", "buffer_size_kb": "1408", "options/blk_classic": "0", "options/context-info": "1"}
    assert (tracefs / "block" / target.kernel_name / "trace" / "enable").read_text() == "0"


@needs_device
def test_an_obstacle_to_tracing_is_named_with_its_remedy(tracefs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(tracefs)
    (tracefs / "current_tracer").write_text("function\n")
    assert "tracer 'function' is in use; run `echo nop >" in tracing.obstacle(target)
    (tracefs / "available_tracers").write_text("nop\n")
    assert "no tracer `blk`" in tracing.obstacle(target)
    (tracefs / "current_tracer").unlink()
    assert "mount -t tracefs" in tracing.obstacle(target)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "is not root" in tracing.obstacle(target)


@needs_device
@pytest.mark.needs("filefrag")
def test_writers_are_traced_where_the_kernel_can(tracefs: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    done = lab("run", "writers", "--target", tmp_path / "target", "--out", tmp_path / "out", "--runs", 1, "--size", "512K")
    if "filefrag" in done.output and done.exit_code:
        pytest.skip(f"the filesystem has no map of files: {done.output}")
    assert "is traced while files are written: requests of other programs count too" in done.output
    summary = ingest_bundle(tmp_path / "w", tmp_path / "out")
    assert not summary.refused
    assert [row["rows_parsed"] for row in summary.files if row["tool"] == "ftrace"] == [2] * 6


@needs_device
def test_reads_are_traced_where_the_kernel_can(tracefs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = reads._read, []

    def noted(file: Path, mode: reads.Mode) -> int:
        seen.append((tracefs / "current_tracer").read_text())
        return read(file, mode)

    monkeypatch.setattr(reads, "_read", noted)
    (tmp_path / "target").mkdir()
    plan, recording = prepare("reads", tmp_path / "target", tmp_path / "out", Size(1, 1 << 20), "")
    assert not any("no traces" in note for note in plan.notes)
    carry_out(plan, recording, lambda said: None)
    assert set(seen) == {"blk"} and (tracefs / "current_tracer").read_text() == "nop"
    assert (tmp_path / "out" / "buffered_1.ftrace").read_text() == TRACE

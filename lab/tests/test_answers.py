"""Answers of pages: slower, shown not to be, or cannot say; found, none, or not tested. Each experiment is made here, its answer known."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.warehouse import Warehouse
from lab.build import build_lab
from lab.pages.before_after import _cannot_say
from lab.pages.write import write_lab
from lab.run.recording import LOCK
from lab.simulate.draft import filefrag
from lab.tests.bundles import BENCH, lab, land, manifest, rows, status, write_bundle

pytestmark = pytest.mark.xdist_group("lab")

CELLS = {
    "open": ([900, 420, 660], [810, 390, 480]),
    "equal": ([500, 502, 498], [499, 501, 497]),
    "worse": ([500, 502, 498], [400, 401, 402]),
    "better": ([500, 502, 498], [800, 801, 802]),
    "from-zero": ([0, 0, 0], [7, 8, 9]),
}
"""Speeds before and after; those from 0 are times."""


def cells(folder: Path, name: str) -> Path:
    files = {
        f"{phase}{run}.csv": f"benchmark,test,parameter,value,unit\nline,scan,0,{value},{'us' if name == 'from-zero' else 'MiB/s'}\n"
        for phase, values in zip(("before", "after"), CELLS[name], strict=True)
        for run, value in enumerate(values, 1)
    }
    listed = [f"{file},bench,c,{file[-5]},{file[:-5]}" for file in files]
    return write_bundle(folder, files, listed, manifest(name, "before_after", expected_runs=3))


def reads(
    folder: Path, name: str, speeds: list[float], *, pause_after: int = 0, extents: tuple[int, int] = (1, 1), first_of: int = 2
) -> Path:
    """Reads of 64 MB, a tenth of a second apart, five minutes after `pause_after` of them; the first file is one in `first_of`."""
    at, lines = 0.0, ["file_name,started_s,ended_s,bytes"]
    for number, speed in enumerate(speeds):
        seconds = 64e6 / speed
        lines.append(f"f{min(number % first_of, 1)},{at:.6f},{at + seconds:.6f},64000000")
        at += seconds + (300 if pause_after and number % pause_after == pause_after - 1 else 0.1)
    maps = filefrag(
        {f"/m/f{number}": [(9000 * (number + 1) + 2000 * part, 1000) for part in range(count)] for number, count in enumerate(extents)}
    )
    files = {"r.csv": "\n".join(lines) + "\n", "m.txt": maps}
    listed = ["r.csv,file-reads,steady,1", "m.txt,filefrag,steady,1"]
    return write_bundle(folder, files, listed, manifest(name, "read_variability", {"steady": {"is_default": True}}))


def writers(folder: Path) -> Path:
    """One writer makes files of 8 MiB in 2 extents, three make files of 4 MiB in 2; preallocated ones are whole."""
    files, listed, at = {}, [], 1000
    for name, blocks, extents, bytes_per_s in (("one", 2048, 2, 3e8), ("three", 1024, 2, 2e8), ("pre", 1024, 1, 2.5e8)):
        for run in (1, 2):
            each = blocks // extents
            files[f"{name}{run}.txt"] = filefrag({"/m/x": [(at + extent * (each + 64), each) for extent in range(extents)]})
            at += extents * (each + 64)
            files[f"{name}{run}.csv"] = f"benchmark,test,parameter,value,unit\nwriters,write,1,{bytes_per_s + run},B/s\n"
            listed += [f"{name}{run}.txt,filefrag,{name},{run}", f"{name}{run}.csv,bench,{name},{run}"]
    configs: dict[str, dict[str, Any]] = {
        "one": {"writers": 1, "factors": {"fallocate": False, "writers": 1}},
        "three": {"writers": 3, "factors": {"fallocate": False, "writers": 3}},
        "pre": {"factors": {"fallocate": True, "writers": 3}},
    }
    return write_bundle(folder, files, listed, manifest("writers", "hdfs", configs))


def tasks(folder: Path) -> Path:
    """Slots that wait 1 s after each task of 3 s; and tasks of a system that wrote no times."""
    files = {
        name: "task_id,node,slot,started_s,ended_s,bytes\n" + "".join(f"t{at},n,1,{at * each},{at * each + long},1\n" for at in range(3))
        for name, each, long in (("timed.csv", 4, 3), ("untimed.csv", 0, 0))
    }
    listed = [f"{name}.csv,tasks,{name},1" for name in ("timed", "untimed")]
    return write_bundle(folder, files, listed, manifest("tasks", "hdfs", {"timed": {}, "untimed": {}}))


def log(folder: Path) -> Path:
    """Buffers of 4 and 8 KiB by 3 runs: the larger is as fast as anyone can tell, its p99 three times as long; and a job with fdatasync."""
    files, listed = {}, []
    for run in (1, 2, 3):
        lines = ["benchmark,test,parameter,value,unit"]
        for buffer, speed, latency in ((4096, 5000, 400), (8192, 5050, 700)):
            lines.append(f"iozone_throughput,write,{buffer},{speed + 100 * run},kB/s")
            lines.append(f"iozone_latency,write,{buffer},{latency + run},us")
        jobs: list[dict[str, Any]] = [
            {"jobname": f"write-{buffer}", "write": {"total_ios": 20_000, "clat_ns": {"mean": 1, "percentile": {"99.000000": p99}}}}
            for buffer, p99 in ((4096, 900_000), (8192, 2_700_000))
        ]
        tails = {"99.000000": 31_000_000, "99.900000": 52_000_000}
        jobs.append({"jobname": "raft", "sync": {"total_ios": 0, "lat_ns": {"N": 20_000, "mean": 6_400_000, "percentile": tails}}})
        files |= {f"{run}.csv": "\n".join(lines) + "\n", f"{run}.json": json.dumps({"fio version": "fio-3.36", "jobs": jobs})}
        listed += [f"{run}.csv,bench,c,{run}", f"{run}.json,fio,c,{run}"]
    return write_bundle(folder, files, listed, manifest("log", "sync_writes", expected_runs=3))


def short(folder: Path) -> Path:
    """Two tests of one parameter, measured before and not after."""
    results = "benchmark,test,parameter,value,unit\nline,scan,0,1,us\nline,seek,0,1,us\n"
    return write_bundle(folder, {"b.csv": results}, ["b.csv,bench,c,1,before"], manifest("short", "before_after", expected_runs=1))


def trends() -> dict[str, tuple[list[float], dict[str, Any], str]]:
    """Experiments by name: speeds, how they are read, and what the answer has of them."""
    rng = random.Random(12)
    noise = [rng.gauss(1, 0.01) for _ in range(600)]
    base = "(intrinsic): not tested: "
    return {
        "falls": (
            [5e8 * (1 - number / 2000) * one for number, one in enumerate(noise)],
            {"pause_after": 10},
            "Drift: steady changes by -30%",
        ),
        "rises": (
            [4e8 * (1 + number / 2000) * one for number, one in enumerate(noise)],
            {"pause_after": 10},
            "Drift: steady changes by +",
        ),
        "slow-file": (
            [(5e8 if number % 4 else 3e8) * one for number, one in enumerate(noise)],
            {"first_of": 4},
            "1 file is slow at every read, by 40%: f0.",
        ),
        "cached": ([(5e8 if rng.random() < 0.7 else 1e8) * one for one in noise], {}, "two groups of speeds in random order, 3"),
        "whole": (
            [(5e8 if number % 4 else 6e8) * one for number, one in enumerate(noise[:160])],
            {"extents": (1, 2), "first_of": 4},
            "(intrinsic): steady 16.",
        ),
        "hardly-whole": ([5e8] * 160, {"extents": (1, 2), "first_of": 8}, f"{base}fewer than 30 reads of files of one extent."),
        "split": ([5e8] * 160, {"extents": (2, 3)}, f"{base}no file has one extent."),
    }


TRENDS = trends()


def tails(folder: Path) -> Path:
    """Summaries without percentiles; of the logs one second is slow, and one is of a job that no summary has."""
    files, listed = {}, []
    for phase in ("before", "after"):
        for run in range(1, 6):
            ios = [(ms, (900_000 if phase == "after" and ms >= 1000 else 100_000) + 10 * run) for ms in range(2000)]
            document = {"jobname": "j", "read": {"total_ios": 2000, "bw_bytes": 5000 + run, "iops": 1000 + run}}
            named = {"j_clat": ios, "else_clat": ios[:9], "j_bw": ios[:9]}
            files |= {
                f"{phase}{run}/{name}.1.log": "".join(f"{ms}, {ns}, 0, 4096\n" for ms, ns in lines) for name, lines in named.items()
            } | {f"{phase}{run}/j.json": json.dumps({"fio version": "fio-3.36", "jobs": [document]})}
            listed += [f"{phase}{run}/{name}.1.log,fio-log,c,{run},{phase}" for name in named]
            listed.append(f"{phase}{run}/j.json,fio,c,{run},{phase}")
    return write_bundle(folder, files, listed, manifest("tails", "before_after", expected_runs=5))


def steady(folder: Path, kind: str) -> Path:
    """Averages of a second for a minute: one run keeps its rate, one loses a third on the way, one has no log."""
    rates = {1: [900] * 60, 2: [900 - 5 * second for second in range(60)]}
    files = {f"{run}_bw.1.log": "".join(f"{1000 * at}, {kb}, 0, 0\n" for at, kb in enumerate(found, 1)) for run, found in rates.items()}
    summary = {"jobname": "j", "read": {"total_ios": 2000, "bw_bytes": 5000, "iops": 1000}}
    files |= {f"{run}.json": json.dumps({"fio version": "fio-3.36", "jobs": [summary]}) for run in (1, 2, 3)}
    listed = [f"{name},fio-log,c,{name[0]},before" if "log" in name else f"{name},fio,c,{name[0]},before" for name in files]
    return write_bundle(folder, files, listed, manifest(f"steady-{kind}", kind))


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    root = tmp_path_factory.mktemp("answers")
    warehouse = Warehouse(root / "warehouse")
    rng = random.Random(11)
    dips = [400e6 * rng.gauss(1, 0.01) * (0.8 if number % 40 in (19, 20) else 1) for number in range(200)]
    bundles = [
        *(cells(root / name, name) for name in CELLS),
        reads(root / "noise", "noise", [max(rng.gauss(600e6, 130e6), 60e6) for _ in range(900)], pause_after=300),
        reads(root / "dips", "dips", dips, pause_after=20),
        reads(root / "few", "few", [400e6] * 6),
        *(reads(root / name, name, speeds, **options) for name, (speeds, options, _) in TRENDS.items()),
        writers(root / "writers"),
        log(root / "log"),
        tasks(root / "tasks"),
        short(root / "short"),
        tails(root / "tails"),
        *(steady(root / kind, kind) for kind in ("before_after", "other")),
    ]
    land(warehouse, *bundles)
    build_lab(warehouse)
    return warehouse


def answer(landed: Warehouse, name: str) -> str:
    page = write_lab(landed, name, landed.root / f"{name}.html").read_text()
    return re.sub(r"<[^>]+>", " ", page.split('<div class="digest">')[1].split("</div>")[0])


def test_a_difference_that_is_not_shown_is_not_a_no(landed: Warehouse) -> None:
    said = answer(landed, "open")
    (cell,) = rows(landed, "select * from lab.fct_phase_cells where experiment_id = 'open'")
    assert f"Cannot say: these 3 runs show only changes from {100 * cell['detectable_ratio']:.0f}% in every cell" in said
    assert cell["runs_to_show"] > 30 and f"{cell['runs_to_show'] - 3} more of each phase would show 10%" in said
    assert not re.search(r"\bNo\b", said)


@pytest.mark.parametrize("detectable_ratio", [0.0, None])
def test_equal_runs_are_too_few(detectable_ratio: float | None) -> None:
    cell = {"n_before": 3, "n_after": 4, "detectable_ratio": detectable_ratio, "runs_to_show": None}
    assert _cannot_say([cell], [], [cell]) == "Cannot say: 3 runs are too few."


def test_missing_runs_are_listed_with_their_cells(landed: Warehouse) -> None:
    assert "<li>c after line: run 1 of 1, in 2 cells</li>" in write_lab(landed, "short", landed.root / "short.html").read_text()


def test_phases_that_are_shown_to_be_equal_are_a_no_with_its_margin(landed: Warehouse) -> None:
    (cell,) = rows(landed, "select * from lab.fct_phase_cells where experiment_id = 'equal'")
    assert cell["is_equal"] and 0 < cell["most_loss_percent"] < 2
    assert f"No: not slower by more than {cell['most_loss_percent']:.1f}% in any of 1 cell" in answer(landed, "equal")
    assert "No: not slower by more than 0.0%" in answer(landed, "better")


def test_a_slower_phase_is_named_with_its_loss(landed: Warehouse) -> None:
    assert answer(landed, "worse").strip().startswith("Yes: line scan of c lost 19.8% (95%: 19.") and "1 of 1 cell got" in answer(
        landed, "worse"
    )
    assert "Only 3 runs of each phase" in answer(landed, "worse")
    assert "Yes: line scan of c was 0 before and is 8 us after." in answer(landed, "from-zero")


def test_independent_draws_have_no_periodic_slowdown_nor_one_over_a_pause(landed: Warehouse) -> None:
    (period,) = rows(landed, "select * from lab.fct_temporal_periods where experiment_id = 'noise'")
    assert 0.5 < period["least_drop_ratio"] < 0.8 and period["reads"] == 900 and period["trigger"] is None
    assert all(
        row["duration_seconds"] < 60 for row in rows(landed, "select * from lab.fct_temporal_slowdowns where experiment_id = 'noise'")
    )
    said = answer(landed, "noise")
    assert f"A temporal drop counts from {period['least_drop_ratio']:.0%} (steady)" in said and "come every" not in said


def test_a_slowdown_ends_at_a_pause(landed: Warehouse) -> None:
    """In each pair of slow reads one lies before a pause and one after it, so neither is an instance."""
    assert not rows(landed, "select * from lab.fct_temporal_slowdowns where experiment_id = 'dips'")
    (period,) = rows(landed, "select instances, reads, least_drop_ratio from lab.fct_temporal_periods where experiment_id = 'dips'")
    assert period == {"instances": 0, "reads": 200, "least_drop_ratio": 0.08}
    assert "temporal): steady none found." in answer(landed, "dips")


@pytest.mark.parametrize("name", TRENDS)
def test_order_and_base_come_before_a_slowdown(landed: Warehouse, name: str) -> None:
    said = re.sub(r"\s+", " ", answer(landed, name))
    assert TRENDS[name][2] in said and "(temporal): steady none found." in said and "come every" not in said
    assert ("Drift" in said) == (name in ("falls", "rises")) and ("full cache" in said) == (name == "falls")


def test_slowdowns_that_the_data_cannot_show_are_not_tested(landed: Warehouse) -> None:
    said = answer(landed, "few")
    assert "(intrinsic): not tested: all files have the same number of extents." in said
    assert "(temporal): not tested: fewer than 20 reads." in said
    assert "(permanent): not tested: no file has 20 reads before an hour and 20 from it on." in said


def test_writers_are_compared_for_the_same_bytes(landed: Warehouse) -> None:
    said = answer(landed, "writers")
    assert said.strip().startswith("Extents per MiB: Cannot say: 2 and 2 runs are too few.")
    assert "Write speed: Yes: with 3 writers it is slower than with one by 33.3% (95%: 33.3 to 33.3%), n = 2 and 2." in said
    assert "Writers write together: 1 at 300 MB/s, 3 at 200 MB/s." in said
    assert "Writers on average: 1 make extents of 4,194 kB, 3 make extents of 2,097 kB." in said
    assert "Preallocation: Cannot say: 2 and 2 runs are too few. 2 of 2 files lie in one extent, without it 0 of 2, of 2.00 extents" in said


def test_tasks_without_times_are_left_out_of_the_answer(landed: Warehouse) -> None:
    said = answer(landed, "tasks")
    assert "timed: slots are busy for 82% of the time. The model says 75%, and that" in said and "untimed" not in said


def test_a_log_is_sized_by_its_percentile_and_ties_are_named(landed: Warehouse) -> None:
    said = answer(landed, "log")
    assert said.strip().startswith(
        "The most throughput per latency: c with 4 KiB, 5,200 kB/s (95%: 4,952 to 5,448) at 402 us a write (95%:"
    )
    assert "c, raft: fsync or fdatasync takes 6,400 us on average, 31,000 us at p99, 52,000 us at p99.9 (n = 3)." in said
    assert (
        "c: at most 5,250 kB/s, reached by any buffer: these runs tell none apart; at least 402 us a write (p99 900 us), with 4 KiB."
        in said
    )
    chosen = {}
    for limit in (1000, 3000, 800):
        done = lab("choose", "log", "--floor", 5000, "--ceiling-p99", limit, "--format", "json", "-w", landed.root)
        (chosen[limit],) = json.loads(done.stdout)
    # the interval of the throughput begins below 5,000; no p99 varies
    assert [(row["verdict"], row["answer"], row["buffer_bytes"], row["p99_latency_us"]) for row in chosen.values()] == [
        ("chosen", "cannot say", 4096, 900.0), ("chosen", "cannot say", 4096, 900.0), ("infeasible", "no", None, None),
    ]  # fmt: skip
    largest = lab("choose", "log", "--ceiling-p99", 3000, "-w", landed.root).output
    assert "8 KiB" in largest and "2,700" in largest


def test_refused_files_are_shown_before_a_build(tmp_path: Path) -> None:
    lab(
        "ingest",
        write_bundle(tmp_path / "b", {"a.csv": BENCH, "z.txt": "nothing\n"}, ["a.csv,bench,c,1", "z.txt,ior,c,1"]),
        "-w",
        tmp_path / "w",
    )
    (each,) = status(tmp_path / "w")
    assert not each["is_built"] and [row["file"] for row in each["refused"]] == ["z.txt"]
    said = lab("status", "-w", tmp_path / "w").output
    assert "not built yet" in said and "z.txt" in said and "unreadable" in said


def test_a_second_run_into_a_bundle_is_refused_and_names_the_first(tmp_path: Path) -> None:
    target, out = tmp_path / "t", tmp_path / "o"
    target.mkdir()
    out.mkdir()
    hold = (
        f"import fcntl, os, sys; f = open({str(out / LOCK)!r}, 'a+'); fcntl.flock(f, fcntl.LOCK_EX); "
        "f.write(str(os.getpid())); f.flush(); print(1, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None and first.stdout.readline()
        done = lab("run", "reads", "--target", target, "--out", out, "--runs", 1, "--size", "1M")
        assert done.exit_code == 1 and f"another run (process {first.pid}) writes here" in done.output
        first.communicate()
    assert not any(target.iterdir())


def test_logs_of_fio_give_tails_by_second_and_what_a_summary_lacks(landed: Warehouse, tmp_path: Path) -> None:
    (cell,) = rows(landed, "select * from lab.fct_phase_cells where experiment_id = 'tails' and test like '%p99'")
    assert (cell["test"], cell["n_before"], cell["n_after"], cell["answer"]) == ("j.read.clat_p99", 5, 5, "slower")
    found = rows(
        landed,
        "select second, n, p99_us from lab.fct_log_tails where experiment_id = 'tails' and job = 'j' and phase = 'after' "
        "and run_number = 3 and not is_whole_run",
    )
    assert sorted((row["second"], row["n"], row["p99_us"]) for row in found) == [(0, 1000, 100.03), (1, 1000, 900.03)]
    assert "<figcaption>c: reads, clat</figcaption>" in write_lab(landed, "tails", tmp_path / "t.html").read_text()
    said = answer(landed, "tails").strip()
    assert said.startswith("Yes: fio j.read.clat_p99 of c grew by 799.8% (95%:")
    assert said.endswith("Whether 10 runs had become steady is not known: no log of ten seconds or more.")


@pytest.mark.parametrize("kind", ["before_after", "other"])
def test_the_page_says_whether_runs_of_fio_became_steady(landed: Warehouse, kind: str) -> None:
    said = answer(landed, f"steady-{kind}")
    assert "1: steady at the end of 1 run (SNIA)." in said and "2: not steady at the end of 1 run (SNIA)." in said
    assert "Whether 1 run had become steady is not known" in said

"""The verdict on two sets of runs: how often it is wrong by chance, what it finds, and that only what is alike is compared."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from engine.read import fetch
from engine.warehouse import Warehouse
from lab.ask.verdict import said
from lab.build import build_lab
from lab.landing import ingest_bundle
from lab.pages.before_after import _answer as page_of_phases
from lab.pages.hdfs import LINES
from lab.pages.hdfs import _answer as page_of_writers
from lab.pages.write import write_lab
from lab.read import certainty, chosen
from lab.statistics import register
from lab.tests.bundles import lab, manifest, rows, write_bundle
from lab.version import lab_models

pytestmark = pytest.mark.xdist_group("lab")

EXPERIMENTS = 300
OPTIONS = {"rw": "randread", "bs": "4k", "direct": "1"}


def results(rng: random.Random, runs: int, *tests: tuple[str, str, str, str], **more: Any) -> list[dict[str, Any]]:
    """Values near 1 with an sd of 10%, of each run. tests: benchmark, test, unit, and a name for those that vary together."""
    found = []
    for experiment in range(EXPERIMENTS):
        for run in range(1, runs + 1):
            speeds: dict[str, float] = {}
            for benchmark, test, unit, shared in tests:
                value = speeds.setdefault(shared, rng.gauss(1, 0.1))
                row = {"experiment_id": f"e{experiment}", "config_id": "c", "phase": "", "run_number": run, "benchmark": benchmark}
                found.append(row | {"test": test, "value": value, "unit": unit, "higher_is_better": unit != "us", **more})
    return found


def computed(relation: str, **given: list[dict[str, Any]] | str) -> dict[str, list[dict[str, Any]]]:
    """Rows of a relation by experiment, over the rows, or the query, that stand for each relation that it reads."""
    models = lab_models().by_relation
    full = {name.split(".")[1]: name for name in models}
    with duckdb.connect() as connection:
        register(connection)
        connection.execute("create schema lab; create schema lab_steps")
        for name, rows_ in given.items():
            if isinstance(rows_, str):
                connection.execute(f"create table {full[name]} as {rows_}")
            else:
                connection.register("given", pl.DataFrame(rows_).to_arrow())
                connection.execute(f"create table {full[name]} as from given")
        found: dict[str, list[dict[str, Any]]] = {}
        for row in fetch(connection, f"select * from ({models[f'lab.{relation}'].sql}) as rows order by all"):
            found.setdefault(row["experiment_id"], []).append(row)
    assert len(found) == EXPERIMENTS
    return found


NO_FACTORS = "select 'e' as experiment_id, 'c' as config_id, 'f' as factor, 'v' as value where false"
ALIKE = {"pass": "", "parameter": 0, "size_bytes": 0, "repetition": 1}


def measures(*sides: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | ALIKE | {"options": None, "is_limited": None, "is_cached": None} for side in sides for row in side]


def jobs_of(count: int) -> list[tuple[str, str, str, str]]:
    """Bandwidth and IOPS of a number of jobs."""
    return [("fio", f"j{job}.read.{test}", unit, f"j{job}") for job in range(count) for test, unit in (("bw", "B/s"), ("iops", "ops/s"))]


def lost(rows_: list[dict[str, Any]], loss: float, test: str) -> list[dict[str, Any]]:
    """The same, of which one test has lost a share."""
    return [row | {"value": row["value"] * (1 - loss)} if row["test"].startswith(test) else row for row in rows_]


def before_after(count: int, runs: int, loss: float, rng: random.Random) -> list[str]:
    """First sentence of the page of each of many experiments: jobs of fio of which the first loses a share after."""
    before, after = (results(rng, runs, *jobs_of(count), phase=phase) for phase in ("before", "after"))
    kinds = f"select distinct 'e' || range as experiment_id, 'before_after' as kind, {runs} as expected_runs from range({EXPERIMENTS})"
    found = computed("fct_phase_cells", step_lab__measures=measures(before, lost(after, loss, "j0")), dim_experiments=kinds)
    return [page_of_phases(sorted(rows_, key=lambda row: -row["loss_percent"]), [])[0] for rows_ in found.values()]


def compared(configs: list[tuple[str, int | None]], given: list[dict[str, Any]], which: str) -> dict[str, list[dict[str, Any]]]:
    described = ", ".join(f"('{name}', {writers or 'null'})" for name, writers in configs)
    dims = (
        f"select 'e' || range as experiment_id, name as config_id, 'd' as device_id, writers::bigint as writers from range({EXPERIMENTS})"
    )
    buffers = (
        "select 'e' as experiment_id, 'c' as config_id, '' as pass, 'b' as benchmark, 't' as test, 1 as buffer_bytes, 0 as size_bytes, "
    )
    buffers += "'us' as unit, true as higher_is_better, null::boolean as is_limited, null::varchar as options, 1.0 as value where false"
    found = computed(
        "fct_bench_comparisons", step_lab__measures=given, step_lab__buffers=buffers, dim_config_factors=NO_FACTORS,
        dim_configs=f"{dims} cross join (values {described}) as configs (name, writers)",
    )  # fmt: skip
    return {name: [row for row in rows_ if row["compared"] == which and row["side_a"] > row["side_b"]] for name, rows_ in found.items()}


def compare(count: int, runs: int, loss: float, rng: random.Random) -> list[str]:
    """Sentence that `drivetail lab compare b a` prints of the test that says most."""
    a, b = (results(rng, runs, *jobs_of(count), config_id=config) for config in ("a", "b"))
    found = compared([("a", None), ("b", None)], measures(a, lost(b, loss, "j0")), "config")
    return [min((said(row, "b", "a") for row in rows_), key=lambda sentence: not sentence.startswith("Yes")) for rows_ in found.values()]


def writers(count: int, runs: int, loss: float, rng: random.Random) -> list[str]:
    """Sentence of the page of writers that says most, of up to five measures; the write speed is lost."""
    tests = [
        ("writers", "write", "B/s", "w"), ("filefrag", "extents", "1/MiB", "e"), ("trace", "run_length", "B", "r"),
        ("trace", "seeks", "1/MiB", "s"), ("trace", "bandwidth", "B/s", "b"),
    ][:count]  # fmt: skip
    one, four = (results(rng, runs, *tests, config_id=config) for config in ("one", "writers4"))
    found = compared([("one", 1), ("writers4", 4)], measures(one, lost(four, loss, "write")), "writers")
    pages = [page_of_writers([], [row | {"writers": 4} for row in rows_], [], [], [], []) for rows_ in found.values()]
    sentences = [[one.split(": ", 1)[1] for one in page if one.split(": ")[0] in LINES.values()] for page in pages]
    assert all(len(page) == count for page in sentences)
    return [min(page, key=lambda sentence: not sentence.startswith("Yes")) for page in sentences]


def share(said_: list[str], begins: str) -> float:
    return sum(one.startswith(begins) for one in said_) / len(said_)


ANSWERS = (before_after, compare, writers)


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize(("tests", "runs"), [(1, 3), (5, 10)])
def test_at_most_one_in_twenty_experiments_without_change_alarms(answers: Any, tests: int, runs: int) -> None:
    """The paper's rule (the means differ by more than both sd) alarms in 29% of experiments of 8 cells at 3 runs."""
    # 300 experiments at a true 5% stay below 8% in 99 of 100 tries
    assert share(answers(tests, runs, 0, random.Random(tests + runs)), "Yes") < 0.08


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize(("runs", "least"), [(5, 0.5), (10, 0.85), (30, 0.99)])
def test_a_loss_of_15_percent_is_found_more_often_by_more_runs(answers: Any, runs: int, least: float) -> None:
    """With an sd of 10% the paper's rule finds it in 40% of experiments at 3 runs and 6% at 30."""
    found = answers(1, runs, 0.15, random.Random(runs))
    # "No" is shown with a margin of 10% at a level of 5%
    assert share(found, "Yes") >= least and share(found, "No") < 0.05


def chosen_buffers(sizes: int, runs: int, loss: float, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Points of buffers of one configuration, alike but for the throughput of the first."""
    rng = random.Random(seed)
    writes = []
    for size in range(sizes):
        for name, unit in (("throughput", "kB/s"), ("latency", "us")):
            for row in results(rng, runs, ("s", name, unit, name)):
                speed = row["value"] * (1 - loss if size == 0 and name == "throughput" else 1)
                writes.append(row | {"pass": name, "buffer_bytes": 4096 << size, "value": speed, "repetition": 1, "size_bytes": 0})
    models = lab_models().by_relation
    with duckdb.connect() as connection:
        register(connection)
        connection.execute("create schema lab; create schema lab_steps")
        connection.register("given", pl.DataFrame(writes).to_arrow())
        connection.execute("create table lab_steps.step_lab__sync_writes as from given")
        buffers = fetch(connection, models["lab_steps.step_lab__buffers"].sql)
    none = measures(results(rng, 1, ("b", "t", "us", "t"), config_id="none"))
    dims = "select 'e' || range as experiment_id, 'c' as config_id, 'd' as device_id, null::bigint as writers from range"
    open_ = [row | {"is_limited": None, "options": None} for row in buffers]
    answers = computed(
        "fct_bench_comparisons", step_lab__measures=none, step_lab__buffers=open_,
        dim_config_factors=NO_FACTORS, dim_configs=f"{dims}({EXPERIMENTS})",
    )  # fmt: skip
    kinds = f"select 'e' || range as experiment_id, 'sync_writes' as kind, {runs} as expected_runs from range({EXPERIMENTS})"
    no_fio = (
        "select 'e' as experiment_id, 'c' as config_id, '' as pass, 'f' as benchmark, 't' as test, 1.0 as value, 1.0 as p999 where false"
    )
    return computed(
        "fct_sync_write_points", step_lab__sync_writes=writes, dim_experiments=kinds, fct_bench_results=no_fio,
        fct_bench_comparisons=[row for rows_ in answers.values() for row in rows_],
    )  # fmt: skip


@pytest.mark.parametrize(("sizes", "runs"), [(2, 3), (6, 5)])
def test_at_most_one_in_twenty_experiments_ranks_equal_buffers(sizes: int, runs: int) -> None:
    points = chosen_buffers(sizes, runs, 0, seed=sizes).values()
    assert all(len(mine) == sizes for mine in points)
    for what in ("throughput", "latency", "ratio"):
        assert sum(not all(row[f"is_best_{what}"] for row in mine) for mine in points) / EXPERIMENTS < 0.08
    # the mean is 1: a floor of 1 is shown to be kept by chance alone
    floors = [certainty(mine, chosen(mine, 1, None), 1, None) for mine in points]
    assert floors.count("yes") / EXPERIMENTS < 0.08


@pytest.mark.parametrize(("runs", "least"), [(5, 0.5), (10, 0.85)])
def test_the_better_of_two_buffers_is_found(runs: int, least: float) -> None:
    points = chosen_buffers(2, runs, 0.15, seed=runs).values()
    assert sum(not mine[0]["is_best_throughput"] and mine[1]["is_best_throughput"] for mine in points) / EXPERIMENTS >= least
    # the smaller buffer only just reaches a floor of 0.85
    reached = [certainty(mine, chosen(mine, 0.85, None), 0.85, None) for mine in points if chosen(mine, 0.85, None) is mine[0]]
    assert reached.count("yes") / EXPERIMENTS < 0.08
    assert sum(certainty(mine, chosen(mine, 0.7, None), 0.7, None) == "yes" for mine in points) / EXPERIMENTS >= least


def job(name: str, value: float, **more: Any) -> dict[str, Any]:
    """A job that read 20,000 blocks."""
    tail = {"99.000000": 3e9 / value, "99.900000": 5e9 / value}
    part = {"total_ios": 20_000, "bw_bytes": value * 4096, "iops": value, "clat_ns": {"mean": 1e9 / value, "N": 20_000, "percentile": tail}}
    return {"jobname": name, "groupid": 0, "error": 0, "job options": OPTIONS | more.pop("options", {}), "read": part, **more}


def phases(folder: Path, name: str, **sides: Any) -> Path:
    """Five runs of a phase, each a job of a speed near 1,000 I/Os a second; sides: what a phase has otherwise."""
    files: dict[str, str] = {}
    for phase in ("before", "after"):
        more = dict(sides.get(phase, {}))
        speed, version = more.pop("speed", 1000), more.pop("version", "fio-3.36")
        for run in range(1, 6):
            jobs = [job("j", speed * (1 + run / 1000), **more)]
            files[f"{phase}{run}.json"] = json.dumps({"fio version": version, "jobs": jobs})
    listed = [f"{file},fio,c,{file[-6]},{file[:-6]}" for file in files]
    return write_bundle(folder, files, listed, manifest(name, "before_after", expected_runs=5))


SIDES: dict[str, dict[str, Any]] = {
    "alike": {},
    "blocks": {"after": {"options": {"bs": "1m"}, "speed": 30}},
    "depth": {"before": {"options": {"iodepth": "1"}}, "after": {"options": {"iodepth": "32"}, "speed": 4000}},
    "spelling": {"before": {"options": {"bs": "4096"}}, "after": {"options": {"blocksize": "4k", "filename": "/x", "buffered": "0"}}},
    "versions": {"after": {"version": "fio-3.41"}},
    "failed": {"after": {"error": 5}},
    "short": {"after": {"options": {"size": "1g"}, "write": {"io_bytes": 1 << 20, "bw_bytes": 1}}},
    "rate": {"before": {"options": {"rate_iops": "1k"}}, "after": {"options": {"rate_iops": "1k"}}},
    "bytes": {"before": {"options": {"rate": "4m"}}, "after": {"options": {"rate": "4m"}}},
    "missed": {"before": {"options": {"rate_iops": "1000"}}, "after": {"options": {"rate_iops": "1000"}, "speed": 600}},
    "warm": {"before": {"options": {"direct": "0"}}, "after": {"options": {"direct": "0"}, "speed": 9000}},
    "buffered": {"before": {"options": {"buffered": "1"}}, "after": {"options": {"buffered": "1"}}},
}


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    root = tmp_path_factory.mktemp("verdict")
    warehouse = Warehouse(root / "warehouse")
    for name, sides in SIDES.items():
        assert not ingest_bundle(warehouse.root, phases(root / name, name, **sides)).refused
    build_lab(warehouse)
    return warehouse


def said_of(landed: Warehouse, name: str) -> str:
    page = write_lab(landed, name, landed.root / f"{name}.html").read_text()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split('<div class="digest">')[1].split("</div>")[0])).strip()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("alike", "No: not slower by more than 0.2% in any of 4 cells"),
        ("spelling", "No: not slower"),
        ("blocks", "Not the same benchmark: bs 4096 against 1048576 (j.read); not compared. Cannot say:"),
        ("depth", "Not the same benchmark: iodepth 1 against 32 (j.read); not compared. Cannot say:"),
        ("versions", "Not the same benchmark: version fio-3.36 against fio-3.41 (j.read); not compared. Cannot say:"),
        ("failed", "Error 5 (Input/output error) in 5 runs after: job j has no result there. Cannot say:"),
        ("short", "Less I/O than asked: 1,048,576 of 1,073,741,824 bytes in 5 runs after:"),
        ("rate", "The limit was measured: bandwidth and IOPS of j.read are those of rate_iops=1024; only latencies compare. No:"),
        ("bytes", "The limit was measured: bandwidth and IOPS of j.read are those of rate=4194304; only latencies compare. No:"),
        ("missed", "Yes: "),
        ("warm", "direct=0: j.read may have measured the page cache, not the drive."),
        ("buffered", "direct=0: j.read may have measured the page cache, not the drive."),
    ],
)
def test_an_answer_begins_with_why_there_may_be_none(landed: Warehouse, name: str, begins: str) -> None:
    assert said_of(landed, name).startswith(begins)


def test_the_comparison_agrees_with_the_page(landed: Warehouse) -> None:
    def answers_of(name: str) -> set[str]:
        done = lab("compare", "before", "after", "--experiment", name, "--format", "json", "-w", landed.root)
        return {row["answer"] for row in json.loads(done.stdout)}

    assert answers_of("alike") == {"equal"} and answers_of("blocks") == {"not alike"} and answers_of("missed") == {"faster"}
    assert answers_of("rate") == {"limited", "equal"}
    table = lab("compare", "before", "after", "--experiment", "blocks", "-w", landed.root).output
    assert "Not the same benchmark: bs 4096 against 1048576; not compared" in table


def test_failed_jobs_are_kept_with_their_reason(landed: Warehouse) -> None:
    found = rows(landed, "select phase, error, failure from lab.fct_bench_jobs where experiment_id = 'failed' group by all order by all")
    assert found == [
        {"phase": "after", "error": 5, "failure": "error 5 (Input/output error)"}, {"phase": "before", "error": None, "failure": None},
    ]  # fmt: skip
    assert not rows(landed, "select 1 from lab.fct_bench_results where experiment_id = 'failed' and phase = 'after'")


def test_files_are_compared_without_a_warehouse(tmp_path: Path) -> None:
    for name in ("fast", "slow"):
        (tmp_path / name).mkdir()
        for run in (1, 2, 3):
            document = {"fio version": "fio-3.36", "jobs": [job("j", (1000 if name == "fast" else 700) + run)]}
            (tmp_path / name / f"{run}.json").write_text(json.dumps(document))
    done = lab("compare", *sorted(tmp_path.glob("*/*.json")), "--format", "json", "-w", tmp_path / "none")
    assert {(row["side_a"], row["side_b"], row["answer"]) for row in json.loads(done.stdout)} == {("fast", "slow", "faster")}
    (tmp_path / "fast" / "4.txt").write_text("no benchmark")
    wrong = lab("compare", tmp_path / "fast", tmp_path / "slow", "-w", tmp_path / "none")
    assert wrong.exit_code == 1 and "4.txt: no result of fio, iozone" in wrong.output
    alone = lab("compare", tmp_path / "slow", "-w", tmp_path / "none")
    assert alone.exit_code == 1 and "give them from two folders" in alone.output

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
from lab.build import build_lab
from lab.landing import ingest_bundle
from lab.pages.before_after import _answer
from lab.pages.write import write_lab
from lab.statistics import register
from lab.tests.bundles import lab, manifest, rows, write_bundle
from lab.version import lab_models

pytestmark = pytest.mark.xdist_group("lab")

EXPERIMENTS = 300
OPTIONS = {"rw": "randread", "bs": "4k", "direct": "1"}


def answers(jobs: int, runs: int, loss: float, seed: int) -> list[str]:
    """First sentence of the page of each of many experiments: jobs of fio with an sd of 10%, of which the first loses a share after."""
    rng = random.Random(seed)
    results: list[dict[str, Any]] = []
    for experiment in range(EXPERIMENTS):
        for phase in ("before", "after"):
            for job in range(jobs):
                for run in range(1, runs + 1):
                    speed = rng.gauss(1, 0.1) * (1 - loss if phase == "after" and job == 0 else 1)
                    same = {"experiment_id": f"e{experiment}", "config_id": "c", "phase": phase, "run_number": run}
                    for test, value, unit in (("bw", 5e8 * speed, "B/s"), ("iops", 1e5 * speed, "ops/s")):
                        same |= {"benchmark": "fio", "test": f"j{job}.read.{test}", "value": value, "unit": unit}
                        results.append({**same})
    given = pl.DataFrame(results).with_columns(pass_=pl.lit("")).rename({"pass_": "pass"})
    kinds = given.select("experiment_id").unique().with_columns(kind=pl.lit("before_after"), expected_runs=pl.lit(runs))
    model = lab_models().by_relation["lab.fct_phase_cells"]
    with duckdb.connect() as connection:
        register(connection)
        connection.execute("create schema lab")
        connection.register("given", given.to_arrow())
        connection.register("kinds", kinds.to_arrow())
        connection.execute("create table lab.dim_experiments as from kinds")
        connection.execute(
            "create table lab.fct_bench_results as select *, 0 as parameter, 0 as size_bytes, true as higher_is_better, "
            "null::varchar as options, null::boolean as is_limited, null::boolean as is_cached from given"
        )
        cells = fetch(connection, f"select * from ({model.sql}) as cells order by experiment_id, loss_percent desc")
    found: dict[str, list[dict[str, Any]]] = {}
    for row in cells:
        found.setdefault(row["experiment_id"], []).append(row)
    assert len(found) == EXPERIMENTS
    return [_answer(mine, [], [])[0] for mine in found.values()]


def share(said: list[str], begins: str) -> float:
    return sum(one.startswith(begins) for one in said) / len(said)


@pytest.mark.parametrize(("jobs", "runs"), [(1, 3), (5, 3), (5, 10)])
def test_at_most_one_in_twenty_experiments_without_change_alarms(jobs: int, runs: int) -> None:
    """The paper's rule (the means differ by more than both sd) alarms in 29% of experiments of 8 cells at 3 runs."""
    # 300 experiments at a true 5% stay below 8% in 99 of 100 tries
    assert share(answers(jobs, runs, 0, seed=jobs + runs), "Yes") < 0.08


@pytest.mark.parametrize(("runs", "least"), [(5, 0.5), (10, 0.85), (30, 0.99)])
def test_a_loss_of_15_percent_is_found_more_often_by_more_runs(runs: int, least: float) -> None:
    """With an sd of 10% the paper's rule finds it in 40% of experiments at 3 runs and 6% at 30."""
    said = answers(1, runs, 0.15, seed=runs)
    # "No" is shown with a margin of 10% at a level of 5%
    assert share(said, "Yes") >= least and share(said, "No") < 0.05


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
    def verdicts(name: str) -> set[str]:
        done = lab("compare", "before", "after", "--experiment", name, "--format", "json", "-w", landed.root)
        return {row["verdict"] for row in json.loads(done.stdout)}

    assert verdicts("alike") == {"equal"} and verdicts("blocks") == {"not alike"} and verdicts("missed") == {"a better"}
    assert verdicts("rate") == {"limited", "equal"}
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
    assert {(row["side_a"], row["side_b"], row["verdict"]) for row in json.loads(done.stdout)} == {("fast", "slow", "a better")}
    (tmp_path / "fast" / "4.txt").write_text("no benchmark")
    wrong = lab("compare", tmp_path / "fast", tmp_path / "slow", "-w", tmp_path / "none")
    assert wrong.exit_code == 1 and "4.txt: no result of fio, iozone" in wrong.output
    alone = lab("compare", tmp_path / "slow", "-w", tmp_path / "none")
    assert alone.exit_code == 1 and "give them from two folders" in alone.output

"""Synchronous writes, from bundles to the published relations: planted truth, a plain reference, the samples' known answers."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.build import build
from engine.compiled import models_of
from engine.publish import current_publication
from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from ingest import ingest
from lab.build import build_lab
from lab.generations import latest_generation
from lab.landing import ingest_bundle, list_experiments
from lab.pages.write import write_lab
from lab.read import choose, size
from lab.simulate import simulate
from lab.tests import plain
from lab.tests.bundles import HEADER, SAMPLES, SEEDS, agree, all_of, held_alike, in_parts, lab, manifest, rows, status, write_bundle
from lab.version import LAB
from tests.drivetail.conftest import HEADER as FLEET
from tests.drivetail.conftest import INVENTORY, first_delivery
from tests.drivetail.conftest import write_bundle as fleet_bundle

pytestmark = pytest.mark.xdist_group("lab")

RUNS = 4
AGGREGATE = "buffer_kb,mean,sd\n4,9.5,0.71\n8,9.6,0.71\n"
BY_HAND = manifest("by-hand", "sync_writes", expected_runs=2)


def bench(pass_: str, *values: float) -> str:
    """Results of 4, 8, ... kB as the neutral CSV."""
    unit = "kB/s" if pass_ == "throughput" else "us"
    rows = [f"iozone_{pass_},write,{4096 << step},{value},{unit}" for step, value in enumerate(values)]
    return "\n".join(["benchmark,test,parameter,value,unit", *rows]) + "\n"


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Twenty synthetic experiments, five of them once more in parts, one by hand, and the sample where it is present; built once."""
    root = tmp_path_factory.mktemp("lab")
    warehouse = Warehouse(root / "warehouse")
    for seed in SEEDS:
        bundle = simulate("sync-writes", root / f"s{seed}", seed, experiment_id=f"s{seed}", runs=RUNS, is_awkward=True, noise=0.05)
        assert not ingest_bundle(warehouse.root, bundle).refused
    rng = random.Random(7)
    for seed in list(SEEDS)[:5]:
        for part in in_parts(root / f"s{seed}", root / "parts", rng, f"parts{seed}"):
            ingest_bundle(warehouse.root, part)
    ingest_bundle(warehouse.root, simulate("sync-writes", root / "exact", 1, experiment_id="exact", runs=2, noise=0.0))
    files = {
        "t1.csv": bench("throughput", 100, 180, 200), "t2.csv": bench("throughput", 100, 180, 200), "given.csv": AGGREGATE,
        "l1.csv": bench("latency", 9, 9, 80), "l2.csv": bench("latency", 10, 10, 80),
    }  # fmt: skip
    rows = [f"{name}.csv,bench,c,{name[1]}" for name in ("t1", "t2", "l1", "l2")]
    write_bundle(root / "hand", files, "\n".join([HEADER, *rows, "given.csv,aggregate,c,1,,latency"]) + "\n", BY_HAND)
    ingest_bundle(warehouse.root, root / "hand")
    if SAMPLES.exists():
        ingest_bundle(warehouse.root, SAMPLES / "iozone")
    summary = build_lab(warehouse)
    assert summary.computed == summary.experiments == list(list_experiments(warehouse.root))
    return warehouse


def truth(warehouse: Warehouse, seed: int) -> list[dict[str, Any]]:
    return pl.read_parquet(warehouse.root.parent / f"s{seed}" / "truth" / "fct_bench_results.parquet").to_dicts()


@pytest.mark.parametrize("seed", SEEDS)
def test_relations_equal_the_plain_reference(landed: Warehouse, seed: int) -> None:
    name, results = f"s{seed}", truth(landed, seed)
    found = rows(landed, "select * exclude (file) from lab.fct_bench_results where experiment_id = ?", name)
    key = list(results[0])
    assert sorted(map(repr, ([row[column] for column in key] for row in found))) == sorted(
        map(repr, ([row[column] for column in key] for row in results))
    )
    measured = plain.points(results, RUNS)
    point = ("config_id", "buffer_bytes")
    agree(all_of(landed, "fct_sync_write_points", name, *point), measured, near=1e-12)
    pairs, ends = plain.phases(measured)
    agree(all_of(landed, "fct_sync_write_phases", name, *point), pairs, near=1e-12)
    summary = {}
    for config, end in ends.items():
        mine = {size: point for (of, size), point in measured.items() if of == config}
        best = plain.choice(mine, None, None)
        assert best is not None
        of_best = {"best_ratio_buffer_bytes": best, "best_ratio": mine[best]["ratio"]}
        summary[config,] = {**end, **of_best, "minimum_latency_us": mine[min(mine)]["mean_latency_us"]}
    agree(all_of(landed, "fct_sync_write_summary", name, "config_id"), summary, near=1e-12)
    pairs_of_configs = plain.comparisons(results)
    tested = all_of(landed, "fct_sync_write_comparisons", name, "pass", "buffer_bytes", "config_a", "config_b")
    agree(tested, pairs_of_configs, near=1e-12)
    for compared, wanted in pairs_of_configs.items():
        assert tested[compared]["is_significant"] == (wanted["welch_p"] is not None and wanted["welch_p"] < 0.001)


POINTS = "select * from lab.fct_sync_write_points where experiment_id = ?"


@pytest.mark.parametrize("seed", list(SEEDS)[:5])
def test_parts_in_any_order_and_twice_give_the_same_relations(landed: Warehouse, seed: int) -> None:
    held = held_alike(landed, f"s{seed}", f"parts{seed}")
    assert held["fct_missing_results"] and held["dim_filesystems"] and held["fct_sync_write_comparisons"] and held["fct_sync_write_models"]


def test_rows_parsed_are_results_and_superseded(landed: Warehouse) -> None:
    query = """
        select sum(rows_parsed), (select count(*) from lab.fct_bench_results where experiment_id = ?)
        from lab.ingested_files where experiment_id = ? and status = 'accepted'
    """
    for seed in SEEDS:
        ((parsed, kept),) = (row.values() for row in rows(landed, query, f"s{seed}", f"s{seed}"))
        assert parsed - kept == 26, "the run that was measured twice"


def test_planted_sizes_are_found(landed: Warehouse) -> None:
    planted = {row["config_id"]: row for row in pl.read_parquet(landed.root.parent / "exact" / "truth" / "planted.parquet").to_dicts()}
    for row in rows(landed, "select * from lab.fct_sync_write_summary where experiment_id = 'exact'"):
        assert row["latency_flat_until_bytes"] == planted[row["config_id"]]["flat_until_kb"] * 1024
        assert row["throughput_flat_from_bytes"] == planted[row["config_id"]]["flat_from_kb"] * 1024
        assert row["minimum_latency_us"] == planted[row["config_id"]]["latency_us"]
    models = rows(landed, "select * from lab.fct_sync_write_models where experiment_id = 'exact' and is_in_range")
    assert [row["buffer_bytes"] for row in models] == [4096] * 3
    assert all(abs(row["model_error_ratio"]) < 1e-4 for row in models), "iozone prints whole kB/s"


def test_without_noise_there_is_no_test(landed: Warehouse) -> None:
    tests = "select distinct welch_p, pooled_p, holm_p, ci_low, is_significant from lab.fct_sync_write_comparisons"
    found = rows(landed, f"{tests} where experiment_id = 'exact'")
    assert [tuple(row.values()) for row in found] == [(None, None, None, None, False)]


def test_one_wrong_digit_is_found(landed: Warehouse) -> None:
    found = rows(
        landed, "select buffer_bytes, mean, agrees from lab.fct_aggregate_reconciliation where experiment_id = 'by-hand' order by all"
    )
    assert [tuple(row.values()) for row in found] == [(4096, 9.5, True), (8192, 9.5, False)]


@pytest.mark.parametrize("seed", list(SEEDS)[:6])
def test_the_choice_is_that_of_the_definition(landed: Warehouse, seed: int) -> None:
    """And a greater floor never gives a smaller buffer."""
    measured = plain.points(truth(landed, seed), RUNS)
    rng = random.Random(seed)
    with open_published(landed) as connection:
        for config in ("ext4", "xfs", "btrfs"):
            mine = {size: point for (name, size), point in measured.items() if name == config}
            before = 0
            for floor in (None, *sorted(10 ** rng.uniform(3, 7) for _ in range(6))):
                for ceiling in (None, 10 ** rng.uniform(2, 5)):
                    (chosen,) = choose(connection, f"s{seed}", config, floor, ceiling)
                    wanted = plain.choice(mine, floor, ceiling)
                    assert chosen["buffer_bytes"] == wanted and chosen["verdict"] == ("infeasible" if wanted is None else "chosen")
                    if floor is not None and ceiling is None and wanted is not None:
                        assert wanted >= before
                        before = wanted


def test_conservative_holds_limits_against_the_spread(landed: Warehouse) -> None:
    (point,) = rows(landed, f"{POINTS} and config_id = 'ext4' and buffer_bytes = 65536", "s1")
    floor = point["mean_throughput_kb_per_s"] - point["sd_throughput_kb_per_s"] / 2
    said = [json.loads(lab(*call).stdout)[0]["buffer_bytes"] for call in (
        ("choose", "s1", "--config", "ext4", "--floor", floor, "--format", "json", "-w", landed.root),
        ("choose", "s1", "--config", "ext4", "--floor", floor, "--format", "json", "-w", landed.root, "--conservative"),
    )]  # fmt: skip
    assert said[0] <= 65536 < said[1]


def test_a_lost_run_is_named(landed: Warehouse) -> None:
    (found,) = status(landed.root, "s1")
    results = truth(landed, 1)
    there = {(row["config_id"], row["pass"], row["run_number"]) for row in results}
    ((config, pass_, run),) = (
        (config, pass_, run) for config in ("ext4", "xfs", "btrfs") for pass_ in ("throughput", "latency") for run in range(1, RUNS + 1)
        if (config, pass_, run) not in there
    )  # fmt: skip
    assert {(row["config_id"], row["pass"], row["missing_runs"]) for row in found["missing"]} == {(config, pass_, str(run))}
    assert len(found["missing"]) == 13
    done = lab("status", "s1", "--check", "-w", landed.root)
    assert done.exit_code == 1 and f"{config} iozone_{pass_}: run {run} of {RUNS} missing in 13 cells" in done.output
    assert lab("status", "exact", "--check", "-w", landed.root).exit_code == 0


def test_compare_names_the_better_side_in_either_order(landed: Warehouse) -> None:
    one = json.loads(lab("compare", "ext4", "btrfs", "--experiment", "s1", "--format", "json", "-w", landed.root).stdout)
    two = json.loads(lab("compare", "btrfs", "ext4", "--experiment", "s1", "--format", "json", "-w", landed.root).stdout)
    small = [row for row in one if row["test"] == "write" and row["parameter"] == 4096 and row["size_bytes"] == 16384 * 1024]
    assert {row["answer"] for row in small} == {"faster"} and len(small) == 2
    assert [row["difference"] for row in one] == [-row["difference"] for row in two]
    done = lab("compare", "ext4", "btrfs", "-w", landed.root)
    assert done.exit_code == 1 and "--experiment" in done.output
    assert "Yes: ext4 is faster than btrfs by" in lab("compare", "ext4", "btrfs", "--experiment", "s1", "-w", landed.root).stdout


def test_a_second_build_computes_only_experiments_with_new_deliveries(landed: Warehouse) -> None:
    before = latest_generation(landed)
    assert build_lab(landed).computed == [] and latest_generation(landed) == before
    ingest_bundle(landed.root, simulate("sync-writes", landed.root.parent / "late", 9, experiment_id="late", runs=2))
    points = rows(landed, "select * from lab.fct_sync_write_points where experiment_id = 's2' order by all")
    published = current_publication(landed)
    assert published is not None
    with open_published(landed, published.path) as earlier:
        assert build_lab(landed).computed == ["late"]
        assert rows(landed, "select * from lab.fct_sync_write_points where experiment_id = 's2' order by all") == points
        assert rows(landed, "select count(*) as n from lab.fct_sync_write_points where experiment_id = 'late'") == [{"n": 39}]
        # a reader keeps the publication that it opened
        assert fetch(earlier, "select count(*) as n from lab.fct_sync_write_points where experiment_id = 'late'") == [{"n": 0}]


def test_the_page_says_what_the_relations_say(landed: Warehouse, tmp_path: Path) -> None:
    page = write_lab(landed, "s1", tmp_path / "s1.html").read_text()
    assert not re.search(r"""(src|href)=["'](?!#|data:)|@import|url\(""", page.split("<body>")[1].split("<script")[0])
    summary = rows(landed, "select * from lab.fct_sync_write_summary where experiment_id = 's1' order by best_ratio desc")
    best = summary[0]["config_id"], summary[0]["best_ratio_buffer_bytes"]
    (point,) = rows(landed, f"{POINTS} and config_id = ? and buffer_bytes = ?", "s1", *best)
    mean, low, high = (point[f"{what}_throughput_kb_per_s"] for what in ("mean", "low", "high"))
    assert f"{mean:,.0f} kB/s (95%: {low:,.0f} to {high:,.0f})" in page
    choices = json.loads(page.split('id="choices">')[1].split("</script>")[0])
    rng = random.Random(3)
    with open_published(landed) as connection:
        for _ in range(20):
            floor, ceiling = rng.randrange(len(choices["floors"])), rng.randrange(len(choices["ceilings"]))
            for found in choose(connection, "s1", None, choices["floors"][floor], choices["ceilings"][ceiling]):
                shown = choices["answers"][found["config_id"]][floor][ceiling]
                assert (shown[0], shown[-1]) == (size(found["buffer_bytes"]) or "infeasible", found["answer"])
    assert "<strong>Missing.</strong>" in page and "no run is missing" in write_lab(landed, "exact", tmp_path / "e.html").read_text()
    assert "s2: ext4" in write_lab(landed, "s1", tmp_path / "both.html", against="s2").read_text()


def test_a_build_of_the_fleet_runs_no_lab_model_and_keeps_lab_results(landed: Warehouse, tmp_path: Path) -> None:
    before = rows(landed, "select * from lab.fct_sync_write_points order by all"), latest_generation(landed)
    fleet = fleet_bundle(tmp_path / "fleet", {"drive_hours.csv": "\n".join([FLEET, *first_delivery()]), "drives.csv": INVENTORY})
    ingest("bundle", [fleet], landed.root)
    publication = build(landed).publication
    assert (rows(landed, "select * from lab.fct_sync_write_points order by all"), latest_generation(landed)) == before
    record = json.loads(publication.path.with_suffix(".json").read_text())
    # lab.ingested_files and marts.ingested_files share a name
    of_lab = {node.name for node in models_of(project=LAB)} - {node.name for node in models_of()}
    assert (
        record["attached"]["lab"]["state"] == latest_generation(landed).name
        and record["model_seconds"]
        and not of_lab & set(record["model_seconds"])
    )
    hours = rows(landed, "select count(*) as n from marts.fct_drive_hours")
    assert hours != [{"n": 0}]
    # nor does a build of the lab take in what has landed of the fleet meanwhile
    more = [line.replace("d11,g1", "e11,g9") for line in first_delivery()]
    late = fleet_bundle(tmp_path / "more", {"drive_hours.csv": "\n".join([FLEET, *more])})
    ingest("bundle", [late], landed.root)
    build_lab(landed, ["exact"])
    assert rows(landed, "select count(*) as n from marts.fct_drive_hours") == hours


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of the lab are not there")
def test_the_sample_has_its_known_answers(landed: Warehouse) -> None:
    found = {row["config_id"]: row for row in rows(landed, "select * from lab.fct_sync_write_summary where experiment_id = 'loop-sync'")}
    kib = 1024
    assert {name: row["best_ratio_buffer_bytes"] // kib for name, row in found.items()} == {"ext4": 1024, "xfs": 1024, "btrfs": 512}
    assert {name: row["latency_flat_until_bytes"] // kib for name, row in found.items()} == {"ext4": 256, "xfs": 512, "btrfs": 128}
    with open_published(landed) as connection:
        for floor, ceiling, wanted in ((100_000, None, 64), (None, 600, 512), (300_000, 600, 256), (3_000_000, None, None)):
            (chosen,) = choose(connection, "loop-sync", "ext4", floor, ceiling)
            assert chosen["buffer_bytes"] == (wanted and wanted * kib)

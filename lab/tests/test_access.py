"""Disks under concurrent writers and tasks, from bundles to the published relations: planted truth, a plain reference, the samples."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.warehouse import Warehouse
from lab.ask.verdict import FRAGMENTED, SLOWER, said
from lab.build import build_lab
from lab.landing import ingest_bundle
from lab.pages.write import write_lab
from lab.simulate import simulate
from lab.tests import plain_access, plain_reads
from lab.tests.bundles import SAMPLES, SEEDS, agree, all_of, by, land, manifest, rows, write_bundle

pytestmark = pytest.mark.xdist_group("lab")

DEVICE, KERNEL_NAME = "8,16", "sdb"
OF_WRITERS = """
select * from lab.fct_bench_comparisons where experiment_id = ? and compared = 'writers' and side_a = 'writers=4' and side_b = 'writers=1'
"""
MINE = f"device = '{DEVICE}'"
LARGE = {"requests": 400, "request_sectors": 1536}
"""Requests of 768 KiB, so that files have several units of a replay, which no number of requests fills exactly."""
TOOLS = {
    "hadoop/json_v_3000_false_0.jhist": ("job-history", "hb3"), "hadoop/json_v_300_false_0.jhist": ("job-history", "hb03"),
    "hadoop/json_v_300_false_67108864.jhist": ("job-history", "large"), "hadoop/avro_binary_hb3000.jhist": ("job-history", "binary"),
    "spark/spark_4.1.1_eventlog_tasks.jsonl": ("spark-events", "spark"), "../sadf_j_A.json": ("sysstat", "sar"),
}  # fmt: skip
"""Sample -> its tool and configuration."""
HISTORY = manifest("history", "hdfs", {config: {} for _, config in TOOLS.values()})
STARTS: dict[str, tuple[float | None, bool | None]] = {"usual": (None, None), "fast": (0.2, True), "slow": (10, False), "single": (4, None)}
"""Configuration -> its heartbeat (seconds), and whether JVMs are reused."""


def random_tasks(folder: Path, seed: int) -> Path:
    """Tasks of any length with any gap, some of which overlap in their slot; `single` has one for each slot, so that it has no gap."""
    rng = random.Random(seed)
    files, listed, configs = {}, [], {}
    for config, (heartbeat, is_reused) in STARTS.items():
        configs[config] = {"factors": {"scheduler": "fair", "heartbeat_seconds": heartbeat, "jvm_reuse": is_reused}}
        for run in range(1, rng.randrange(2, 4)):
            rows = []
            for node, slot in [(node, slot) for node in range(rng.randrange(1, 4)) for slot in range(rng.randrange(1, 4))]:
                at = rng.uniform(0, 20)
                for _ in range(1 if config == "single" else rng.randrange(1, 8)):
                    end = at + rng.uniform(0.5, 30)
                    rows.append(f"t{len(rows)},n{node},{slot},{at:.3f},{end:.3f},{rng.randrange(1, 1 << 34)}")
                    at = end + rng.choice([-0.4, 0, rng.uniform(0, 8)])
            rng.shuffle(rows)
            files[f"{config}_{run}.csv"] = "\n".join(["task_id,node,slot,started_s,ended_s,bytes", *rows]) + "\n"
            listed.append(f"{config}_{run}.csv,tasks,{config},{run}")
    return write_bundle(folder, files, listed, manifest(folder.name, "hdfs", configs))


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Synthetic writers and tasks, and the samples where they are present; built once."""
    root = tmp_path_factory.mktemp("access")
    warehouse = Warehouse(root / "warehouse")
    for seed in SEEDS:
        writers = simulate("writers", root / f"writers-{seed}", seed, experiment_id=f"writers-{seed}", runs=2, **LARGE)
        land(warehouse, writers, random_tasks(root / f"tasks-{seed}", seed))
    for name, more in (("tasks", {}), ("reused", {"jvm_s": 0.0, "heartbeat_s": 4.0})):
        land(warehouse, simulate("tasks", root / name, 1, experiment_id=name, **more))
    if SAMPLES.exists():
        ingest_bundle(warehouse.root, SAMPLES / "loop_ext4")
        files = {Path(name).name: (SAMPLES / name).read_bytes() for name in TOOLS}
        listed = [f"{Path(name).name},{tool},{config},1" for name, (tool, config) in TOOLS.items()]
        assert not ingest_bundle(warehouse.root, write_bundle(root / "history", files, listed, HISTORY)).refused
    build_lab(warehouse)
    return warehouse


@pytest.mark.parametrize("seed", SEEDS)
def test_writers_equal_the_plain_reference(landed: Warehouse, seed: int) -> None:
    name = f"writers-{seed}"
    bundle = landed.root.parent / name
    patterns, periods, replays, counters = {}, {}, {}, {}
    for listing in plain_reads.listings(bundle):
        key = listing["config_id"], int(listing["run_number"])
        text = (bundle / listing["file"]).read_text()
        if listing["tool"] == "diskstats":
            counters[*key, KERNEL_NAME] = plain_access.utilisation(text)[KERNEL_NAME]
        if listing["tool"] != "ftrace":
            continue
        done, _ = plain_reads.requests(text, DEVICE)
        plain_reads.place_in_files(done, _maps(bundle, *key))
        patterns[key] = plain_access.pattern(done)
        periods[key] = plain_access.period(done)
        replays[*key, "write"] = plain_access.replay(done, "write")
    measured: dict[int, dict[str, list[float]]] = {}
    for (config, _), row in patterns.items():
        here = measured.setdefault(int(config.removeprefix("writers-")), {})
        for measure in ("bandwidth_bytes_per_s", "mean_run_bytes", "seeks_per_mib"):
            here.setdefault(measure, []).append(row[measure])
        here.setdefault("extents_per_file", [])
    for config, run in patterns:
        counts = Counter(file for file, _ in _maps(bundle, config, run))
        measured[int(config.removeprefix("writers-"))]["extents_per_file"] += counts.values()
    scaling = {(writers,): row for writers, row in plain_access.scaling(measured).items()}
    agree(all_of(landed, "fct_writer_scaling", name, "writers"), scaling)
    run = ("config_id", "run_number")
    agree(all_of(landed, "fct_access_patterns", name, *run, where=MINE), patterns)
    agree(all_of(landed, "fct_access_periods", name, *run, where=MINE), periods)
    agree(all_of(landed, "fct_schedule_replays", name, *run, "direction"), replays)
    agree(all_of(landed, "fct_device_utilisation", name, *run, "device"), counters)


def _maps(bundle: Path, config: str, run: int) -> dict[tuple[str, int], plain_reads.Row]:
    """Extents of one run, of a bundle that has several configurations."""
    (listing,) = [
        row for row in plain_reads.listings(bundle) if (row["tool"], row["config_id"], row["run_number"]) == ("filefrag", config, str(run))
    ]
    one = bundle.parent / f"{bundle.name}-one"
    write_bundle(one, {listing["file"]: (bundle / listing["file"]).read_bytes()}, [f"{listing['file']},filefrag,{config},{run}"])
    return plain_reads.extents(one)[run]


@pytest.mark.parametrize("seed", SEEDS)
def test_planted_writers_are_found(landed: Warehouse, seed: int) -> None:
    name = f"writers-{seed}"
    truth = landed.root.parent / name / "truth"

    def planted(table: str, *key: str) -> dict[Any, dict[str, Any]]:
        return by(pl.read_parquet(truth / f"{table}.parquet").to_dicts(), *key)

    run = ("config_id", "run_number")
    agree(all_of(landed, "fct_access_patterns", name, *run, where=MINE), planted("planted_patterns", *run))
    agree(all_of(landed, "fct_file_fragments", name, *run, "file_name"), planted("planted_extents", *run, "file_name"))
    agree(all_of(landed, "fct_device_utilisation", name, *run), planted("planted_counters", *run))


def test_seeks_fall_to_changes_of_client(landed: Warehouse) -> None:
    replays = rows(landed, "select * from lab.fct_schedule_replays where experiment_id like 'writers-%' and clients > 1")
    assert replays and all(row["seeks_after"] == row["units"] - 1 < row["seeks_before"] for row in replays)


def test_requests_bytes_and_busy_time_add_up(landed: Warehouse) -> None:
    patterns = rows(landed, "select * from lab.fct_access_patterns")
    assert all(row["runs"] == 1 + row["seeks"] + row["direction_switches"] for row in patterns)
    assert all(row["runs"] * row["mean_run_bytes"] == pytest.approx(row["bytes"]) for row in patterns)
    assert all(0 < row["busy_seconds"] <= row["window_seconds"] for row in patterns)
    key = ("experiment_id", "config_id", "phase", "run_number", "file", "device")
    periods = by(rows(landed, "select * from lab.fct_access_periods"), *key)
    assert set(periods) == set(by(patterns, *key))
    for name, row in by(patterns, *key).items():
        assert periods[name]["duty_cycle"] * periods[name]["bins"] == pytest.approx(row["busy_seconds"])


def test_busy_seconds_add_up_to_busy_time_and_to_idle_gaps(landed: Warehouse) -> None:
    seconds = rows(
        landed,
        "select file, device, run_number, sum(busy_ratio) as busy_seconds, count(*) as bins, count(*) filter (where is_idle) as idle "
        "from lab.fct_busy_seconds where experiment_id = 'tasks' group by all",
    )
    ((key, row),) = by(seconds, "file", "device", "run_number").items()
    periods = by(rows(landed, "select * from lab.fct_access_periods where experiment_id = 'tasks'"), "file", "device", "run_number")[key]
    assert row["busy_seconds"] == pytest.approx(periods["duty_cycle"] * periods["bins"])
    assert row["bins"] == periods["bins"] and row["idle"] == pytest.approx(periods["idle_gaps"] * periods["mean_gap_seconds"])


@pytest.mark.parametrize("name", ["tasks", "reused"])
def test_planted_waits_and_periods_are_found(landed: Warehouse, name: str) -> None:
    bundle = landed.root.parent / name
    (planted,) = pl.read_parquet(bundle / "truth" / "planted_periods.parquet").to_dicts()
    (found,) = rows(landed, "select * from lab.fct_access_periods where experiment_id = ?", name)
    assert {key: found[key] for key in planted} == pytest.approx(planted)
    models = all_of(landed, "fct_task_start_models", name, "config_id")
    agree(models, by(pl.read_parquet(bundle / "truth" / "planted.parquet").to_dicts(), "config_id"))
    for row in models.values():
        assert (row["gain_if_jvm_reused"] > 0) == (name == "tasks") and row["gain_all"] >= row["gain_if_5gb_tasks"] > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_equal_the_plain_reference(landed: Warehouse, seed: int) -> None:
    name = f"tasks-{seed}"
    bundle = landed.root.parent / name
    nodes, of_config = {}, defaultdict(list)
    for listing in plain_reads.listings(bundle):
        for node, row in plain_access.task_utilisation(bundle / listing["file"]).items():
            nodes[listing["config_id"], int(listing["run_number"]), node] = row
            of_config[listing["config_id"]].append(row)
    agree(all_of(landed, "fct_task_utilisation", name, "config_id", "run_number", "node"), nodes)
    models = {}
    for config, (heartbeat, is_reused) in STARTS.items():
        given = 3.0 if heartbeat is None else heartbeat
        models[config,] = plain_access.task_start_model(of_config[config], given, 0.0 if is_reused else 1.0)
    agree(all_of(landed, "fct_task_start_models", name, "config_id"), models)


def test_the_page_shows_what_the_relations_hold(landed: Warehouse, tmp_path: Path) -> None:
    page = write_lab(landed, "writers-1", tmp_path / "w.html", against="writers-2").read_text()
    scaling = all_of(landed, "fct_writer_scaling", "writers-1", "writers")
    assert f"{scaling[4,]['seeks_per_mib']:.2f}" in page
    compared = by(rows(landed, OF_WRITERS, "writers-1"), "benchmark", "test")
    assert set(compared) == {("filefrag", "extents"), ("trace", "bandwidth"), ("trace", "run_length"), ("trace", "seeks")}
    for row in compared.values():
        words = {"extents": FRAGMENTED, "run_length": ("shorter", "longer"), "seeks": ("higher", "lower")}.get(row["test"], SLOWER)
        sentence = said(row, "with 4 writers it", "with one", words)
        assert f": {sentence}.</p>" in page and f"<td>{sentence}</td>" in page and (row["n_a"], row["n_b"]) == (2, 2)
        if row["ratio_low"] is not None:
            assert f'<td class="n">{row["ratio_low"]:.3g} to {row["ratio_high"]:.3g}</td>' in page
    assert f"(± {scaling[4,]['sd_mean_run_bytes'] / 1e3:.0f})" in page
    assert "writers-2: 4" in page and "<h2>How busy devices were, by their counters</h2>" in page and "How well slots" not in page
    page = write_lab(landed, "tasks", tmp_path / "t.html").read_text()
    # the one trace over time, and the slots of both configurations in both runs
    assert page.count('id="figure-busy-') == 1 and page.count('id="figure-tasks-') == 4
    assert "busy every 8 s" in page and "slots are busy for" in page and "<h2>More writers</h2>" not in page


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of the lab are absent")
def test_sample_of_concurrent_writers_gives_its_known_answers(landed: Warehouse) -> None:
    found = rows(landed, "select * from lab.fct_writer_scaling where experiment_id = 'loop-ext4' order by writers")
    assert [row["writers"] for row in found] == [1, 2, 4]
    assert [f"{row['mean_run_bytes'] / 1000:.3g}" for row in found] == ["3.06e+03", "134", "133"]
    assert [f"{row['seeks_per_mib']:.2g}" for row in found] == ["0.31", "7.8", "7.9"]
    assert [row["extents_per_file"] for row in found] == [1, 5.5, 6.25]
    assert [f"{row['bandwidth_ratio']:.2f}" for row in found] == ["1.00", "0.99", "1.09"]


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of the lab are absent")
def test_samples_of_job_histories_give_their_known_answers(landed: Warehouse) -> None:
    found = all_of(landed, "fct_task_utilisation", "history", "config_id")
    # one attempt was killed; the one task of Spark's second stage reads nothing
    assert {config: row["tasks"] for (config,), row in found.items()} == {"hb3": 8, "hb03": 8, "large": 2, "binary": 8, "spark": 8}
    assert found["large",]["mean_task_bytes"] == pytest.approx(64 << 20, rel=0.001)
    assert found["spark",]["mean_task_bytes"] == (6 * 8454144 + 2247941) / 8
    # of two cores: Spark launches the next tasks before it has taken in the results of those before
    assert found["spark",]["slots"] == 4
    assert all(0 < row["utilisation"] <= 1 for row in found.values())
    models = all_of(landed, "fct_task_start_models", "history", "config_id")
    # Spark has no heartbeat: what Hadoop's would gain is no answer
    assert [config for (config,), row in models.items() if row["gain_if_heartbeat_300ms"] is None] == ["spark"]
    assert models["spark",]["gain_if_5gb_tasks"] > 0 and models["spark",]["reason"].startswith("Spark has neither")
    page = write_lab(landed, "history", landed.root / "history.html").read_text()
    assert "spark: Spark has neither a heartbeat" in page
    (sar,) = rows(landed, "select * from lab.fct_device_utilisation where experiment_id = 'history' and device = 'sda'")
    assert sar["observed_seconds"] > 0 and sar["reads"] is None and 0 <= sar["utilisation"] <= 1

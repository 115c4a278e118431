"""Traces and file reads, from bundles to the published relations: planted truth, a plain reference, the sample's known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.lab_build import build_lab
from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from lab.landing import ingest_bundle
from lab.simulate import simulate
from tests.lab import plain_reads
from tests.lab.bundles import SAMPLES, write_bundle

pytestmark = pytest.mark.xdist_group("lab")

SEEDS = range(1, 6)
LARGE, PARTITION, DEVICE = 8 << 20, 2048, "8,16"


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Synthetic experiments of both scenarios, one trace without noise, and the sample where it is present; built once."""
    root = tmp_path_factory.mktemp("reads")
    warehouse = Warehouse(root / "warehouse")
    for seed in SEEDS:
        for scenario, more in (("reads-intrinsic", {}), ("reads-modes", {"hours": 26})):
            bundle = simulate(scenario, root / f"{scenario}-{seed}", seed, experiment_id=f"{scenario}-{seed}", **more)
            assert not ingest_bundle(warehouse.root, bundle).refused
    ingest_bundle(warehouse.root, simulate("reads-intrinsic", root / "clean", 1, experiment_id="clean", is_awkward=False))
    if SAMPLES.exists():
        ingest_bundle(warehouse.root, SAMPLES / "loop_ext4")
    build_lab(warehouse)
    return warehouse


def rows(warehouse: Warehouse, query: str, *given: object) -> list[dict[str, Any]]:
    with open_published(warehouse) as connection:
        return fetch(connection, query, list(given))


def by(found: list[dict[str, Any]], *key: str) -> dict[Any, dict[str, Any]]:
    return {tuple(row[name] for name in key): row for row in found}


def agree(found: dict[Any, dict[str, Any]], wanted: dict[Any, dict[str, Any]]) -> None:
    assert wanted and set(found) == set(wanted)
    for key, row in wanted.items():
        for name, value in row.items():
            is_exact = value is None or isinstance(value, str | bool)
            assert found[key][name] == (value if is_exact else pytest.approx(value, rel=1e-9, abs=1e-9)), (key, name)


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_equal_the_plain_reference(landed: Warehouse, seed: int) -> None:
    name = f"reads-intrinsic-{seed}"
    bundle = landed.root.parent / name
    maps, traces = plain_reads.extents(bundle, PARTITION), []
    requests, counts, reads, overlaps = {}, {}, {}, {}
    for listing in plain_reads.listings(bundle):
        if listing["tool"] == "filefrag":
            continue
        run = int(listing["run_number"])
        text = (bundle / listing["file"]).read_text()
        done, counts[run, DEVICE] = plain_reads.requests(text, DEVICE)
        here = maps[max(number for number in maps if number <= run)]
        plain_reads.place_in_files(done, here)
        traces.append(((run,), done, here))
        columns = ("sector", "sectors", "queued_ns", "completed_ns", "latency_us", "error", "file_name", "extent_index", "read_index")
        requests |= {(run, one["request_index"]): {column: one[column] for column in columns} for one in done}
        reads |= {(run, *key): row for key, row in plain_reads.reads_of(done, float(listing["offset_s"])).items()}
        overlaps |= {(run, *key): row for key, row in plain_reads.overlaps(done).items()}
    asked = "select * from lab.{} where experiment_id = ?"
    agree(by(rows(landed, asked.format("fct_trace_counts") + f" and device = '{DEVICE}'", name), "run_number", "device"), counts)
    agree(by(rows(landed, asked.format("fct_block_requests") + f" and device = '{DEVICE}'", name), "run_number", "request_index"), requests)
    agree(by(rows(landed, asked.format("fct_file_reads"), name), "run_number", "file_name", "read_index"), reads)
    agree(by(rows(landed, asked.format("fct_request_overlaps"), name), "run_number", "file_name", "read_index", "position"), overlaps)
    agree(
        by(rows(landed, asked.format("fct_extent_reads"), name), "run_number", "file_name", "read_index", "extent_index"),
        plain_reads.extent_reads(traces, LARGE),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_file_reads_equal_the_plain_reference(landed: Warehouse, seed: int) -> None:
    name = f"reads-modes-{seed}"
    for config in ("buffered", "direct"):
        listed = plain_reads.listed_reads(landed.root.parent / name, config)
        asked = f"select * from lab.{{}} where experiment_id = ? and config_id = '{config}'"
        instances = plain_reads.temporal(listed)
        found = by(rows(landed, asked.format("fct_temporal_slowdowns"), name), "instance")
        if instances:
            agree(found, {(number,): row for number, row in enumerate(instances, 1)})
            agree(by(rows(landed, asked.format("fct_temporal_periods"), name), "phase"), {("",): plain_reads.period(instances, listed)})
        assert len(found) == len(instances)
        files = {one["file"] for one in listed}
        wanted = {(file,): plain_reads.permanent([one for one in listed if one["file"] == file]) for file in files}
        agree(by(rows(landed, asked.format("fct_permanent_slowdowns"), name), "file_name"), wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_planted_slowdowns_are_found_and_none_is_invented(landed: Warehouse, seed: int) -> None:
    name = f"reads-modes-{seed}"
    truth = landed.root.parent / name / "truth"
    planted = pl.read_parquet(truth / "planted_instances.parquet").to_dicts()
    found = rows(landed, "select * from lab.fct_temporal_slowdowns where experiment_id = ? order by config_id, instance", name)
    assert [row["config_id"] for row in found] == ["buffered"] * len(planted)
    assert all(abs(row["started_s"] - given["started_s"]) <= 180 for row, given in zip(found, planted, strict=True))
    (period,) = rows(landed, "select * from lab.fct_temporal_periods where experiment_id = ?", name)
    (given,) = pl.read_parquet(truth / "planted.parquet").to_dicts()
    assert period["mean_period_seconds"] == pytest.approx(given["period_s"], rel=0.02)
    onsets = rows(landed, "select * from lab.fct_permanent_slowdowns where experiment_id = ? and onset_hour is not null", name)
    assert [(row["config_id"], row["file_name"], row["onset_hour"]) for row in onsets] == [("buffered", given["file_name"], 20)]
    assert onsets[0]["drop_ratio"] == pytest.approx(given["permanent_drop_ratio"], abs=0.01)
    masked = rows(landed, "select slowdown from lab.fct_mitigations where experiment_id = ? and is_masked order by all", name)
    assert [row["slowdown"] for row in masked] == ["intrinsic", "temporal"]


def test_planted_recoveries_are_found(landed: Warehouse) -> None:
    planted = pl.read_parquet(landed.root.parent / "clean" / "truth" / "planted_recovery.parquet").to_dicts()
    key = ("run_number", "file_name", "read_index", "extent_index")
    found = by(rows(landed, "select * from lab.fct_extent_reads where experiment_id = 'clean'"), *key)
    exact = [found[tuple(row[name] for name in key)]["recovery_requests"] == row["recovery_requests"] for row in planted]
    assert len(found) == len(exact) and sum(exact) >= 0.95 * len(exact)


def test_every_issue_and_every_byte_is_accounted_for(landed: Warehouse) -> None:
    counts = rows(landed, "select * from lab.fct_trace_counts where experiment_id like 'reads-intrinsic-%'")
    assert sum(row["requeued_issues"] for row in counts) and sum(row["unmatched_issues"] for row in counts)
    assert all(row["issues"] == row["requests"] + row["unmatched_issues"] + row["requeued_issues"] for row in counts)
    # 1,203 events are lost of each trace of blkparse, none of ftrace
    assert {row["lost_events"] for row in counts} == {0, 1203}
    query = """
        select experiment_id, sum(sectors) * 512 as size from lab.fct_block_requests where read_index is not null group by experiment_id
    """
    read = by(
        rows(landed, "select experiment_id, sum(bytes) as size from lab.fct_file_reads where requests is not null group by 1"),
        "experiment_id",
    )
    assert read == by(rows(landed, query), "experiment_id")


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of the lab are absent")
def test_sample_on_a_loop_device_gives_its_known_answers(landed: Warehouse) -> None:
    counts = rows(landed, "select requests from lab.fct_trace_counts where experiment_id = 'loop-ext4' order by requests")
    assert [row["requests"] for row in counts] == [67, 146, 264, 264, 268]
    files = rows(
        landed,
        "select file_name, extent_count from lab.fct_file_fragments where experiment_id = 'loop-ext4' and config_id = 'direct' order by all",  # noqa: E501
    )
    assert [(row["file_name"], row["extent_count"]) for row in files] == [("plain", 2), ("w4_1", 6)]
    reads = rows(
        landed, "select file_name, bytes from lab.fct_file_reads where experiment_id = 'loop-ext4' and config_id = 'direct' order by all"
    )
    assert [(row["file_name"], row["bytes"]) for row in reads] == [("plain", 64 << 20), ("w4_1", 8 << 20)]


def test_refused_traces_say_why(tmp_path: Path) -> None:
    files = {
        "clockless.txt": "# tracer: nop\nblock_rq_issue: 7,0 R 4096 () 8 + 8 be,0,6 [dd]\n", "other.txt": "no trace at all\n",
        "empty.txt": "# tracer: blk\n#\n", "nomap.txt": "Filesystem type is: ef53\n", "noreads.csv": "file_name,started_s,ended_s,bytes\n",
        "list.csv": "name,from,to\na,1,2\n", "words.txt": "not what filefrag says\n",
    }  # fmt: skip
    tools = dict(zip(files, ["ftrace", "blkparse", "ftrace", "filefrag", "file-reads", "file-reads", "filefrag"], strict=True))
    bundle = write_bundle(tmp_path / "b", files, [f"{name},{tool},c,1" for name, tool in tools.items()])
    refused = {row["file"]: (row["reason"], row["message"]) for row in ingest_bundle(tmp_path / "w", bundle).refused}
    assert {name: reason for name, (reason, _) in refused.items()} == {
        "clockless.txt": "no_clock", "other.txt": "unreadable", "empty.txt": "no_result", "nomap.txt": "no_result",
        "noreads.csv": "no_result", "list.csv": "unreadable", "words.txt": "unreadable",
    }  # fmt: skip
    assert "echo 1 > options/context-info" in refused["clockless.txt"][1]

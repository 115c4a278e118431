"""Traces and file reads, from bundles to the published relations: planted truth, a plain reference, the sample's known answers."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from scipy.stats import linregress

from engine.warehouse import Warehouse
from lab.build import build_lab
from lab.landing import ingest_bundle
from lab.pages.write import write_lab
from lab.simulate import reads_intrinsic, simulate
from lab.simulate.draft import Draft, Event, block_lines
from lab.tests import plain_reads
from lab.tests.bundles import HEADER, SAMPLES, agree, all_of, by, held_alike, in_parts, land, manifest, rows, write_bundle

pytestmark = pytest.mark.xdist_group("lab")

SEEDS = range(1, 6)
LARGE, PARTITION, DEVICE = 8 << 20, 2048, "8,16"
IN_PARTS = (("reads-intrinsic", 1), ("reads-intrinsic", 2), ("reads-modes", 3))
FORMATS = ("blkparse", "ftrace", "perf-script", "tracefs")
NAMES = {
    "Q": "block_bio_queue", "G": "block_getrq", "M": "block_bio_backmerge", "D": "block_rq_issue", "C": "block_rq_complete",
    "R": "block_rq_requeue",
}  # fmt: skip
TRIGGERS = ("time", "reads", "writes")
SIZES = (4096, 65536, 262144, 1048576)
PHASES = manifest("probes", "read_variability")


def printed(events: list[Event], tool: str) -> str:
    """The same events as a tool prints them; those without a range have sector 2**64 - 1."""
    if tool in ("blkparse", "ftrace"):
        return "\n".join(block_lines(events, is_numbered=tool == "blkparse")) + "\n"
    lines = []
    for at, device, action, rwbs, rest in events:
        seconds, ns = divmod(at, 10**9)
        held, who = rest.removesuffix("]").split("[")
        held = held.strip() if "+" in held else f"{2**64 - 1} + 0"
        command = {"D": "4096 () ", "C": "() ", "R": "() "}.get(action, "")
        priority = " be,0,4" if action in "DCR" else ""
        said = f"{device} {rwbs} {command}{held}{priority} [{who}]"
        if tool == "tracefs":
            lines.append(f"{'my app':>16}-814     [001] ..s1. {seconds:>5}.{ns // 1000:06d}: {NAMES[action]}: {said}")
        else:
            lines.append(f"{'my app':>16}   814 [001] {seconds:>5}.{ns:09d}: {'block:' + NAMES[action]:>25}: {said}")
    return "\n".join(lines) + "\n"


def in_four_formats(folder: Path) -> Path:
    """A bundle whose four runs are one list of events."""
    given = {**reads_intrinsic.DEFAULTS, "experiment_id": "formats"}
    rng = random.Random(3)
    draft = Draft(truth={"planted_recovery": []})
    placed = reads_intrinsic._placed(rng, given)
    events = sorted(reads_intrinsic._events(rng, {**given, "phase": ""}, draft, 1, placed), key=lambda event: event[0])
    files = {f"{tool}.txt": printed(events, tool) for tool in FORMATS} | {"filefrag.txt": reads_intrinsic._maps(given, placed)}
    rows = [f"{tool}.txt,{tool},buffered,{run}" for run, tool in enumerate(FORMATS, 1)]
    return write_bundle(folder, files, [*rows, "filefrag.txt,filefrag,buffered,1"], reads_intrinsic._manifest(given))


def probes(folder: Path) -> Path:
    """A bundle with three copies by dd of each size before and after."""
    rng = random.Random(4)
    files, listed = {}, []
    for phase in ("before", "after"):
        for run, size in enumerate(SIZES * 3, 1):
            seconds = (100 + size / 5000 + (20 if phase == "after" else 0)) * rng.gauss(1, 0.03) / 1e6
            files[f"{phase}_{run}.txt"] = f"1+0 records in\n1+0 records out\n{size} bytes (x) copied, {seconds:.9f} s, 1 GB/s\n"
            listed.append(f"{phase}_{run}.txt,dd,c,{run},{phase}")
    return write_bundle(folder, files, "\n".join([HEADER, *(f"{row},,0" for row in listed)]) + "\n", PHASES)


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Synthetic experiments of both scenarios, one trace without noise, and the sample where it is present; built once."""
    root = tmp_path_factory.mktemp("reads")
    warehouse = Warehouse(root / "warehouse")
    for seed in SEEDS:
        for scenario, more in (("reads-intrinsic", {}), ("reads-modes", {"hours": 27})):
            bundle = simulate(scenario, root / f"{scenario}-{seed}", seed, experiment_id=f"{scenario}-{seed}", **more)
            assert not ingest_bundle(warehouse.root, bundle).refused
    rng = random.Random(8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.landing.BUFFERED_ROWS", 100)  # as a file of millions of lines lands: in several files of raw
        for scenario, seed in IN_PARTS:
            for part in in_parts(root / f"{scenario}-{seed}", root / "parts", rng, f"parts-{scenario}-{seed}"):
                ingest_bundle(warehouse.root, part)
    assert list((warehouse.raw / "lab").rglob("block_events.*.0.parquet"))
    ingest_bundle(warehouse.root, simulate("reads-intrinsic", root / "clean", 1, experiment_id="clean", is_awkward=False))
    for trigger in TRIGGERS:
        # no scenario has the trigger reads by itself
        scenario, more = ("reads-temporal-time", {"trigger": trigger}) if trigger == "reads" else (f"reads-temporal-{trigger}", {})
        ingest_bundle(warehouse.root, simulate(scenario, root / trigger, 1, experiment_id=f"by-{trigger}", **more))
    ingest_bundle(warehouse.root, simulate("reads-permanent", root / "reads-permanent", 1))
    land(warehouse, in_four_formats(root / "formats"), probes(root / "probes"))
    if SAMPLES.exists():
        ingest_bundle(warehouse.root, SAMPLES / "loop_ext4")
    build_lab(warehouse)
    return warehouse


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
        requests |= {(run, one["request_index"]): one for one in done}
        reads |= {(run, *key): row for key, row in plain_reads.reads_of(done, float(listing["offset_s"])).items()}
        overlaps |= {(run, *key): row for key, row in plain_reads.overlaps(done).items()}
    mine, read = f"device = '{DEVICE}'", ("run_number", "file_name", "read_index")
    agree(all_of(landed, "fct_trace_counts", name, "run_number", "device", where=mine), counts)
    agree(all_of(landed, "fct_block_requests", name, "run_number", "request_index", where=mine), requests)
    agree(all_of(landed, "fct_file_reads", name, *read), reads)
    agree(all_of(landed, "fct_request_overlaps", name, *read, "position"), overlaps)
    agree(all_of(landed, "fct_extent_reads", name, *read, "extent_index"), plain_reads.extent_reads(traces, LARGE))


@pytest.mark.parametrize("seed", SEEDS)
def test_file_reads_equal_the_plain_reference(landed: Warehouse, seed: int) -> None:
    name = f"reads-modes-{seed}"
    for config in ("buffered", "direct"):
        listed = plain_reads.listed_reads((landed.root.parent / name / f"{config}.csv").read_text())
        mine = f"config_id = '{config}'"
        instances = plain_reads.temporal(listed)
        found = all_of(landed, "fct_temporal_slowdowns", name, "instance", where=mine)
        if instances:
            agree(found, {(number,): row for number, row in enumerate(instances, 1)})
        agree(all_of(landed, "fct_temporal_periods", name, "phase", where=mine), {("",): plain_reads.period(instances, listed)})
        assert len(found) == len(instances)
        files = {one["file"] for one in listed}
        wanted = {(file,): plain_reads.permanent([one for one in listed if one["file"] == file]) for file in files}
        agree(all_of(landed, "fct_permanent_slowdowns", name, "file_name", where=mine), wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_planted_slowdowns_are_found_and_none_is_invented(landed: Warehouse, seed: int) -> None:
    name = f"reads-modes-{seed}"
    truth = landed.root.parent / name / "truth"
    planted = pl.read_parquet(truth / "planted_instances.parquet").to_dicts()
    found = rows(landed, "select * from lab.fct_temporal_slowdowns where experiment_id = ? order by config_id, instance", name)
    assert [row["config_id"] for row in found] == ["buffered"] * len(planted)
    assert all(abs(row["started_s"] - given["started_s"]) <= 180 for row, given in zip(found, planted, strict=True))
    (period,) = rows(landed, "select * from lab.fct_temporal_periods where experiment_id = ? and instances > 0", name)
    (given,) = pl.read_parquet(truth / "planted.parquet").to_dicts()
    assert period["mean_period_seconds"] == pytest.approx(given["period_s"], rel=0.02)
    onsets = rows(landed, "select * from lab.fct_permanent_slowdowns where experiment_id = ? and onset_hour is not null", name)
    assert [(row["config_id"], row["file_name"], row["onset_hour"]) for row in onsets] == [("buffered", given["file_name"], 20)]
    assert onsets[0]["drop_ratio"] == pytest.approx(given["permanent_drop_ratio"], abs=0.01)
    masked = rows(landed, "select slowdown from lab.fct_mitigations where experiment_id = ? and is_masked order by all", name)
    assert [row["slowdown"] for row in masked] == ["intrinsic", "temporal"]


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_varied_pace_shows_the_trigger(landed: Warehouse, trigger: str) -> None:
    planted = pl.read_parquet(landed.root.parent / trigger / "truth" / "planted_instances.parquet")
    found = rows(landed, "select * from lab.fct_temporal_periods where experiment_id = ? and instances > 0", f"by-{trigger}")
    assert [(row["config_id"], row["instances"], row["trigger"]) for row in found] == [("buffered", planted.height, trigger)]
    assert planted.height >= 9


def test_a_file_that_becomes_slow_for_good_is_the_only_slowdown(landed: Warehouse) -> None:
    found = rows(landed, "select * from lab.fct_permanent_slowdowns where experiment_id = 'reads-permanent' and onset_hour is not null")
    assert [(row["config_id"], row["file_name"], row["onset_hour"]) for row in found] == [("buffered", "file_3", 20)]
    assert not rows(landed, "select * from lab.fct_temporal_slowdowns where experiment_id = 'reads-permanent'")


def test_planted_recoveries_are_found(landed: Warehouse) -> None:
    planted = pl.read_parquet(landed.root.parent / "clean" / "truth" / "planted_recovery.parquet").to_dicts()
    key = ("run_number", "file_name", "read_index", "extent_index")
    found = all_of(landed, "fct_extent_reads", "clean", *key)
    exact = [found[tuple(row[name] for name in key)]["recovery_requests"] == row["recovery_requests"] for row in planted]
    assert len(found) == len(exact) and sum(exact) >= 0.95 * len(exact)


def test_one_list_of_events_gives_the_same_rows_in_four_formats(landed: Warehouse) -> None:
    same = (
        "device, request_index, direction, sector, sectors, error, file_name, extent_index, logical_start_bytes, read_index, queued_ns, "
        "issued_ns, completed_ns"
    )
    found = [
        rows(landed, f"select {same} from lab.fct_block_requests where experiment_id = 'formats' and run_number = ? order by all", run)
        for run in range(1, 5)
    ]
    assert len(found[0]) > 1000 and {row["direction"] for row in found[0]} == {"read", "discard"} and any(row["error"] for row in found[0])
    assert found[0] == found[1] == found[2]
    # the trace file of the kernel says microseconds
    for exact, rounded in zip(found[0], found[3], strict=True):
        assert rounded == {name: value // 1000 * 1000 if name.endswith("_ns") else value for name, value in exact.items()}
    counts = [
        rows(
            landed, "select * exclude (run_number, file) from lab.fct_trace_counts where experiment_id = 'formats' and run_number = ?", run
        )
        for run in range(1, 5)
    ]
    assert len(counts[0]) == 2
    assert all(sorted(map(repr, of_run)) == sorted(map(repr, counts[0])) for of_run in counts[1:])


@pytest.mark.parametrize(("scenario", "seed"), IN_PARTS)
def test_parts_in_any_order_and_twice_give_the_same_relations(landed: Warehouse, scenario: str, seed: int) -> None:
    held = held_alike(landed, f"{scenario}-{seed}", f"parts-{scenario}-{seed}")
    assert held["fct_file_reads"] and held["fct_extents"] and held["dim_runs"]


def test_slope_of_the_increase_equals_the_regression_of_scipy(landed: Warehouse) -> None:
    found = rows(landed, "select * from lab.fct_single_requests where experiment_id = 'probes' and phase = 'after' order by request_bytes")
    assert [(row["request_bytes"], row["n"]) for row in found] == [(size, 3) for size in SIZES]
    line = linregress([size / (1 << 20) for size in SIZES], [row["increase_us"] for row in found])
    assert all(row["increase_slope_us_per_mib"] == pytest.approx(line.slope, rel=1e-9) for row in found)
    assert all(row["increase_slope_p"] == pytest.approx(line.pvalue, rel=1e-9) for row in found)
    assert 0 < line.pvalue < 1


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
    counts = rows(
        landed, "select requests from lab.fct_trace_counts where experiment_id = 'loop-ext4' and file like '%.ftrace' order by all"
    )
    assert [row["requests"] for row in counts] == [67, 146, 264, 264, 268]
    query = "select file, device, requests from lab.fct_trace_counts where experiment_id = 'loop-ext4' and file like '%.txt' order by all"
    counts = rows(landed, query)
    # of the disk below the loop device perf took no completions
    assert [(row["device"], row["requests"]) for row in counts] == [("254,0", 0), ("7,0", 16), ("254,0", 81), ("7,0", 15)]
    files = rows(
        landed,
        "select file_name, extent_count from lab.fct_file_fragments where experiment_id = 'loop-ext4' and config_id = 'direct' order by all",  # noqa: E501
    )
    assert [(row["file_name"], row["extent_count"]) for row in files] == [("plain", 2), ("w4_1", 6)]
    reads = rows(
        landed, "select file_name, bytes from lab.fct_file_reads where experiment_id = 'loop-ext4' and config_id = 'direct' order by all"
    )
    assert [(row["file_name"], row["bytes"]) for row in reads] == [("plain", 64 << 20), ("w4_1", 8 << 20)]


def test_the_page_says_what_is_lost_and_needs_no_webgl(landed: Warehouse, tmp_path: Path) -> None:
    page = write_lab(landed, "reads-modes-1", tmp_path / "page.html", None).read_text()
    masked = rows(
        landed, "select * from lab.fct_mitigations where experiment_id = 'reads-modes-1' and slowdown = 'temporal' order by config_id"
    )
    buffered, direct = masked
    assert direct["n"] == 0
    drops = (
        f"buffered {buffered['drop_ratio']:.1%} (95%: {buffered['low_drop_ratio']:.1%} to {buffered['high_drop_ratio']:.1%}), "
        "direct none found"
    )
    assert f"Throughput lost while all reads are slow for a time (temporal): {drops}; masked by direct." in page
    (lost,) = rows(landed, "select * from lab.fct_permanent_slowdowns where experiment_id = 'reads-modes-1' and onset_hour is not null")
    interval = f"{lost['low_drop_ratio']:.1%} to {lost['high_drop_ratio']:.1%}"
    assert f'<td class="n">{lost["drop_ratio"]:.1%}</td><td class="n">{interval}</td><td>slower</td>' in page
    assert "<td>not masked</td>" in page and "lost: inconclusive" in page
    assert "slow for good from hour 20" in page
    assert '"type":"scatter"' in page and '"type":"scattergl"' not in page


def test_the_page_shows_distributions_and_the_extent_that_recovers_last(landed: Warehouse, tmp_path: Path) -> None:
    page = write_lab(landed, "reads-intrinsic-1", tmp_path / "page.html", None).read_text()
    counted = rows(
        landed,
        "select distinct split, part, n, ks_distance from lab.fct_read_percentiles "
        "where experiment_id = 'reads-intrinsic-1' and measure = 'latency' and split = 'recovery' order by part desc",
    )
    during, after = counted
    distance = f"at most {100 * during['ks_distance']:.0f} points apart."
    assert f"buffered: {during['n']:,} requests during, {after['n']:,} requests after, {distance}" in page
    assert "Requests until an extent has recovered, by its size: buffered" in page and "extents of 8 MiB or more" in page
    # without phases and onsets there is nothing to tell apart
    assert "Latency before and after" not in page
    (worst,) = rows(
        landed,
        "select * from lab.fct_extent_reads where experiment_id = 'reads-intrinsic-1' "
        "order by recovery_requests desc, recovery_us desc limit 1",
    )
    said = f"Extent {worst['extent_index']} of {worst['file_name']}, buffered, run {worst['run_number']}, read {worst['read_index']}: "
    assert f"{said}{worst['recovery_requests']} of {worst['requests']} requests" in page and 'id="figure-worst"' in page
    page = write_lab(landed, "reads-modes-1", tmp_path / "page.html", None).read_text()
    assert "Throughput of reads before and after" in page and 'id="figure-worst"' not in page


def test_refused_traces_say_why(tmp_path: Path) -> None:
    clockless, other, empty = "block_rq_issue: 7,0 R 4096 () 8 + 8 be,0,6 [dd]\n", "no trace at all\n", "# tracer: blk\n#\n"
    given = {
        ("ftrace", clockless): "no_clock", ("blkparse", "  8,16 R 8 + 8\n" + clockless): "no_clock", ("tracefs", clockless): "no_clock",
        ("perf-script", f"block:{clockless}"): "no_clock", ("blkparse", other): "unreadable", ("ftrace", other): "unreadable",
        ("tracefs", other): "unreadable", ("perf-script", other): "unreadable", ("ftrace", empty): "no_result",
        ("blkparse", empty): "no_result", ("tracefs", empty): "no_result", ("perf-script", empty): "no_result", ("ftrace", ""): "no_result",
        ("filefrag", "Filesystem type is: ef53\n"): "no_result", ("filefrag", "not what filefrag says\n"): "unreadable",
        ("file-reads", "file_name,started_s,ended_s,bytes\n"): "no_result", ("file-reads", "name,from,to\na,1,2\n"): "unreadable",
        ("file-reads", "file_name,started_s,ended_s,bytes\na,2,1,8\n"): "no_result", ("dd", "1+0 records in\n"): "no_result",
        ("dd", "dd: failed to open 'x'\n"): "unreadable",
    }  # fmt: skip
    files = {f"{number}.txt": content for number, (_, content) in enumerate(given)}
    bundle = write_bundle(tmp_path / "b", files, [f"{number}.txt,{tool},c,1" for number, (tool, _) in enumerate(given)])
    refused = {row["file"]: (row["reason"], row["message"]) for row in ingest_bundle(tmp_path / "w", bundle).refused}
    assert [refused[name][0] for name in files] == [*given.values()]
    assert all("echo 1 > options/context-info" in message for reason, message in refused.values() if reason == "no_clock")

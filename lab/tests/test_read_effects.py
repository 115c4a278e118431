"""Every relation of reads, on twenty bundles with traces, lists of reads and copies by dd, beside a plain reference."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.warehouse import Warehouse
from lab.build import build_lab
from lab.bundle import manifest_text
from lab.simulate.draft import filefrag
from lab.tests import plain_reads
from lab.tests.bundles import HEADER, SEEDS, agree, all_of, land, rows, write_bundle
from lab.tests.plain_reads import Row
from lab.tests.test_reads import DEVICE

pytestmark = pytest.mark.xdist_group("lab")

ONSET_HOUR, HOURS, PACE_S = 7, 15, 120
LARGE_EXTENT_BYTES = 1 << 20
BLOCKS = 4096
"""Number of blocks of 4096 bytes in a file."""
CONFIGS = ("buffered", "direct", "phased", "probe")


def _maps(rng: random.Random) -> str:
    """Two files that are whole, two that are not, and one that may be; two of a number of extents have a spread."""
    files: dict[str, list[tuple[int, int]]] = {}
    at, most = 1000, rng.randrange(3, 9)
    for file, count in enumerate((1, rng.choice([1, 2]), most, rng.choice([3, most, most]), 1)):
        for start, end in pairwise([0, *sorted(rng.sample(range(150, BLOCKS - 100, 100), count - 1)), BLOCKS]):
            at += rng.randrange(1, 300)
            files.setdefault(f"/mnt/f{file}", []).append((at, end - start))
            at += end - start
    return filefrag(files)


def _reads(rng: random.Random, *, is_slow: bool, factor: float = 1.0) -> str:
    """Reads in turn. Slow: fragmented files, a few minutes in the second hour, and file 1 from an hour on."""
    lines = ["file_name,started_s,ended_s,bytes,active_s"]
    dip = 3600 + rng.uniform(0, 3000)
    costs = [rng.choice([0.005, 0.1, 0.2]) if is_slow else rng.choice([0.0, 0.015, 0.08]) for _ in range(3)]
    slow_files = rng.choice([(2,), (2, 3)])
    for number in range(HOURS * 3600 // PACE_S):
        at, file = number * PACE_S + round(rng.uniform(0, 5), 3), number % 5
        speed = 400e6 * factor * rng.gauss(1, 0.01)
        speed *= 1 - costs[0] * (file in slow_files)
        speed *= 1 - costs[1] * (dip <= at < dip + 240)
        speed *= 1 - costs[2] * (file == 1 and at >= ONSET_HOUR * 3600)
        seconds = BLOCKS * 4096 / speed
        lines.append(f"f{file},{at:.3f},{at + seconds:.6f},{BLOCKS * 4096},{f'{seconds:.6f}' if rng.random() < 0.3 else ''}")
    return "\n".join(lines) + "\n"


def _trace(rng: random.Random, here: dict[tuple[str, int], Row], factor: float = 1.0) -> str:
    """Reads of some sizes all over the files: some alone on the device, some that overlap, fail, or are of no file."""
    events, now = [], 1_000_000_000
    for _ in range(160):
        extent = rng.choice([*here.values()])
        sectors = rng.choice([8, 128, 512])
        sector = extent["sector"] + (0 if rng.random() < 0.2 else 8 * rng.randrange(1, (extent["sectors"] - sectors) // 8 + 1))
        latency = round((90_000 + sectors * 1280) * factor * rng.uniform(0.9, 1.4))
        rwbs, error = rng.choice(["R", "R", "R", "RA", "WS"]), rng.choice([0] * 30 + [-5])
        for at, action, end in ((now - 2000, "Q", "[dd]"), (now, "D", "[dd]"), (now + latency, "C", f"[{error}]")):
            events.append((at, f"{DEVICE} 0 {at // 10**9}.{at % 10**9:09d} 7 {action} {rwbs} {sector} + {sectors} {end}"))
        now += rng.choice([latency // 2, latency, latency * 3, 700_000_000])
    return "\n".join(line for _, line in sorted(events)) + "\n"


def _copies(rng: random.Random, extra: float) -> str:
    """Output of dd: the copies of two records are no single requests."""
    said = []
    for size in (4096, 65536, 1048576) * 3:
        records = rng.choice([1, 1, 1, 2])
        seconds = (100 + size / 5000 + extra) * rng.gauss(1, 0.03) / 1e6
        said.append(f"{records}+0 records in\n{records}+0 records out\n{size} bytes ({size} B) copied, {seconds:.9f} s, 1 GB/s\n")
    return "".join(said)


def made(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    maps = _maps(rng)
    write_bundle(folder, {"map.txt": maps}, ["map.txt,filefrag,buffered,1"])
    here = plain_reads.extents(folder)[1]
    files: dict[str, str] = {}
    listed: list[str] = []

    def add(tool: str, config: str, run: int, content: str, phase: str = "", offset: float = 0) -> None:
        name = f"{config}{phase}_{tool}_{run}.txt"
        files[name] = content
        listed.append(f"{name},{tool},{config},{run},{phase},,{offset}")

    for config in ("buffered", "direct"):
        add("filefrag", config, 1, maps)
        add("file-reads", config, 1, _reads(rng, is_slow=config == "buffered"))
        # half of the requests before the file is slow for good; small ones make their reads slow, so that some have none
        if seed % (3 if config == "buffered" else 2):
            add("ftrace", config, 2, _trace(rng, here), offset=ONSET_HOUR * 3600 - 15)
    factor = rng.choice([0.85, 0.99])
    for phase in ("before", "after"):
        add("filefrag", "phased", 1, maps, phase)
        add("file-reads", "phased", 1, _reads(rng, is_slow=False, factor=1 if phase == "before" else factor), phase)
        add("ftrace", "phased", 2, _trace(rng, here, 1 if phase == "before" else 1.25), phase)
        add("dd", "probe", 1, _copies(rng, 20 if phase == "after" else 0), phase)
    manifest = manifest_text(
        {"experiment_id": folder.name, "kind": "read_variability", "large_extent_bytes": LARGE_EXTENT_BYTES},
        devices=[{"device_id": "d", "major_minor": DEVICE}],
        filesystems=[{"filesystem_id": "fs", "device_id": "d", "type": "ext4"}],
        configs=[{"config_id": name, "filesystem_id": "fs", "is_default": name == "buffered"} for name in CONFIGS],
    )
    return write_bundle(folder, files, "\n".join([HEADER, *listed]) + "\n", manifest)


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    root = tmp_path_factory.mktemp("effects")
    warehouse = Warehouse(root / "warehouse")
    for seed in SEEDS:
        land(warehouse, made(root / f"effects-{seed}", seed))
    build_lab(warehouse)
    return warehouse


def reference(bundle: Path) -> dict[str, dict[Any, Row]]:
    """Relation -> its rows by key without the experiment."""
    here = plain_reads.extents(bundle)[1]
    counts = {name: sum(file == name for file, _ in here) for name, _ in here}
    reads: dict[str, list[Row]] = defaultdict(list)
    alone: dict[str, dict[tuple[str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    latencies: dict[tuple[str, str], list[tuple[str, float, float]]] = defaultdict(list)
    traces: dict[str, list[tuple[Any, list[Row], dict[tuple[str, int], Row]]]] = defaultdict(list)
    found: dict[str, dict[Any, Row]] = defaultdict(dict)
    for listing in plain_reads.listings(bundle):
        config, phase, offset = listing["config_id"], listing["phase"], float(listing["offset_s"])
        text = (bundle / listing["file"]).read_text()
        if listing["tool"] == "dd":
            for size, latency in plain_reads.copies(text):
                alone[config][phase, size].append(latency)
        elif listing["tool"] == "filefrag":
            found["fct_extents"] |= {(config, phase, *key): row for key, row in here.items()}
            found["fct_file_fragments"] |= {(config, phase, file): {"extent_count": count} for file, count in counts.items()}
        elif listing["tool"] == "ftrace":
            done, found["fct_trace_counts"][config, phase] = plain_reads.requests(text, DEVICE)
            plain_reads.place_in_files(done, here)
            found["fct_block_requests"] |= {(config, phase, one["request_index"]): one for one in done}
            found["fct_request_overlaps"] |= {(config, phase, *key): row for key, row in plain_reads.overlaps(done).items()}
            traces[config].append(((phase,), done, here))
            for one in plain_reads.single(done):
                alone[config][phase, one["sectors"] * 512].append(one["latency_us"])
            for one in done:
                if one["read_index"]:
                    latencies[config, one["file_name"]].append((phase, offset + one["issued_ns"] / 1e9, one["latency_us"]))
            for (file, number), row in plain_reads.reads_of(done, offset).items():
                found["fct_file_reads"][config, phase, 2, file, number] = {**row, "extent_count": counts[file]}
                read = {"start": row["started_s"], "end": row["ended_s"], "speed": row["throughput_bytes_per_s"]}
                reads[config].append({"file": file, "phase": phase, "run": 2, "extents": counts[file], **read})
        elif listing["tool"] == "file-reads":
            numbers: dict[str, int] = defaultdict(int)
            for one in plain_reads.listed_reads(text):
                numbers[one["file"]] += 1
                found["fct_file_reads"][config, phase, 1, one["file"], numbers[one["file"]]] = {
                    "bytes": one["bytes"], "requests": None, "started_s": one["start"], "ended_s": one["end"],
                    "throughput_bytes_per_s": one["speed"],
                }  # fmt: skip
                reads[config].append({**one, "phase": phase, "run": 1, "extents": counts[one["file"]]})
    for members in reads.values():
        for one in members:
            one["middle"] = (one["start"] + one["end"]) / 2
        members.sort(key=lambda one: one["middle"])
    for config, of_config in alone.items():
        found["fct_single_requests"] |= {(config, *key): row for key, row in plain_reads.single_requests(of_config).items()}
    for config, of_config in reads.items():
        found["fct_fragmentation_effect"] |= {(config, key): row for key, row in plain_reads.fragmentation(of_config).items()}
    for (config, file), measured in latencies.items():
        onset = plain_reads.permanent([one for one in reads[config] if one["file"] == file])["onset_hour"]
        if onset is not None:
            sides = [[us for _, at, us in measured if (at >= onset * 3600) == is_after] for is_after in (False, True)]
        else:
            sides = [[us for phase, _, us in measured if phase == name] for name in ("before", "after")]
        found["fct_latency_shifts"] |= {(config, file, key): row for key, row in plain_reads.latency_shifts(*sides).items()}
    found["fct_mitigations"] = plain_reads.mitigations(reads, "buffered")
    for config in reads:
        of_files = [(file, *one) for (name, file), measured in latencies.items() if name == config for one in measured]
        extents = plain_reads.extent_reads(traces[config], LARGE_EXTENT_BYTES) if traces[config] else {}
        found["fct_extent_reads"] |= {(config, *key): row for key, row in extents.items()}
        for file in counts:
            members = [one for one in reads[config] if one["file"] == file]
            found["fct_permanent_slowdowns"][config, file] = plain_reads.permanent(members)
        for phase in {one["phase"] for one in reads[config]}:
            members = [one for one in reads[config] if one["phase"] == phase]
            instances = plain_reads.temporal(members)
            found["fct_temporal_slowdowns"] |= {(config, phase, number): row for number, row in enumerate(instances, 1)}
            found["fct_temporal_periods"][config, phase] = plain_reads.period(instances, members)
        found["fct_read_percentiles"] |= {
            (config, *key): row for key, row in plain_reads.percentiles(reads[config], of_files, traces[config], extents).items()
        }
    return found


KEYS = {
    "fct_single_requests": ("config_id", "phase", "request_bytes"), "fct_fragmentation_effect": ("config_id", "extent_count"),
    "fct_latency_shifts": ("config_id", "file_name", "percentile"), "fct_mitigations": ("slowdown", "config_id"),
    "fct_read_percentiles": ("config_id", "measure", "split", "part", "percentile"),
    "fct_extents": ("config_id", "phase", "file_name", "extent_index"), "fct_file_fragments": ("config_id", "phase", "file_name"),
    "fct_trace_counts": ("config_id", "phase"), "fct_block_requests": ("config_id", "phase", "request_index"),
    "fct_request_overlaps": ("config_id", "phase", "file_name", "read_index", "position"),
    "fct_file_reads": ("config_id", "phase", "run_number", "file_name", "read_index"),
    "fct_extent_reads": ("config_id", "phase", "file_name", "read_index", "extent_index"),
    "fct_permanent_slowdowns": ("config_id", "file_name"), "fct_temporal_slowdowns": ("config_id", "phase", "instance"),
    "fct_temporal_periods": ("config_id", "phase"),
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_relations_of_reads_equal_the_plain_reference(landed: Warehouse, seed: int) -> None:
    wanted = reference(landed.root.parent / f"effects-{seed}")
    for relation, key in KEYS.items():
        agree(all_of(landed, relation, f"effects-{seed}", *key), wanted[relation])


@pytest.mark.proof
def test_the_bundles_hold_what_is_compared(landed: Warehouse) -> None:
    found = rows(landed, "select distinct slowdown, is_masked from lab.fct_mitigations")
    assert {(row["slowdown"], row["is_masked"]) for row in found} >= {
        (name, answer) for name in ("intrinsic", "temporal", "permanent") for answer in (True, False, None)
    }
    judged = rows(landed, "select distinct slowdown, verdict from lab.fct_mitigations where low_drop_ratio is not null")
    assert {(row["slowdown"], row["verdict"]) for row in judged} >= {
        ("permanent", "masked"),
        *((name, said) for name in ("intrinsic", "temporal", "permanent") for said in ("not masked", "inconclusive")),
    }
    spread = rows(landed, "select distinct verdict from lab.fct_fragmentation_effect where low_drop_ratio is not null")
    assert {row["verdict"] for row in spread} >= {"slower", "inconclusive"}
    shifted = rows(landed, "select distinct config_id from lab.fct_latency_shifts")
    assert {row["config_id"] for row in shifted} == {"buffered", "direct", "phased"}
    assert len(rows(landed, "select * from lab.fct_single_requests where increase_us > 0")) > 20

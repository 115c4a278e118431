"""Scenario `writers`: concurrent writers of one file each, whose extents and requests interleave. Each run has a trace, a map and counters.

The traces hold what does not count as well: errors, discards, another device. The counters fall once, and stand still while files are read.
"""

from __future__ import annotations

import random
from typing import Any

from lab.simulate.draft import Draft, Event, block_lines, filefrag, manifest

DEFAULTS: dict[str, Any] = {
    "experiment_id": "writers",
    "runs": 2,
    "writers": [1, 2, 4],
    "request_sectors": 256,
    "requests": 1024,
    "largest_turn_requests": 3,
    "latency_us": 800.0,
    "noise": 0.2,
    "busy_ratio": 0.3,
    "seek_us": 0.0,
    "pause_ratio": 0.01,
    "is_awkward": True,
}
"""`requests`: of all writers of a run together. `largest_turn_requests`: that one writer issues before another does.

`busy_ratio`: of the device by its counters. `seek_us`: by how much longer a request takes that does not go on where the last one ended.
`pause_ratio`: requests after which the device is idle for seconds."""

DEVICE, OTHER, KERNEL_NAME = "8,16", "8,0", "sdb"
BLOCK_SECTORS = 8
SNAPSHOTS, SECONDS = 6, 10
Place = tuple[int, int]
"""Writer and first sector of a request."""


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundle. Truth: seeks and runs of each trace, extents of each file, and how busy the counters say the device was."""
    rng = random.Random(seed)
    device = {"kind": "disk", "kernel_name": KERNEL_NAME, "major_minor": DEVICE}
    configs = [{"config_id": f"writers-{count}", "filesystem_id": "fs", "writers": count} for count in parameters["writers"]]
    filesystem = {"filesystem_id": "fs", "type": "ext4"}
    draft.manifest = manifest(parameters, "hdfs", "Synthetic concurrent writers", device, [filesystem], configs=configs)
    draft.truth = {"planted_patterns": [], "planted_extents": [], "planted_counters": []}
    for writers in parameters["writers"]:
        config = f"writers-{writers}"
        for run in range(1, parameters["runs"] + 1):
            places = _places(rng, parameters, writers)
            ends = [sector + parameters["request_sectors"] for _, sector in places]
            seeks = sum(sector != end for (_, sector), end in zip(places[1:], ends[:-1], strict=True))
            draft.truth["planted_patterns"].append({"config_id": config, "run_number": run, "seeks": seeks, "requests": len(places)})
            draft.add(f"{config}_{run}.ftrace", _trace(rng, parameters, places), "ftrace", config, run)
            draft.add(f"{config}_{run}_filefrag.txt", _maps(parameters, places, writers, draft, config, run), "filefrag", config, run)
            counters = _counters(rng, parameters, draft, config, run)
            draft.add(f"{config}_{run}_diskstats.txt", counters, "diskstats", config, run)


def _places(rng: random.Random, parameters: dict[str, Any], writers: int) -> list[Place]:
    """Requests in order of issue. Each writer goes on where its last extent ends, or, with several writers, often somewhere else."""
    size, at = parameters["request_sectors"], 80_000
    ends: list[int | None] = [None] * writers
    left = [parameters["requests"] // writers] * writers
    places: list[Place] = []
    while any(left):
        writer = rng.choice([number for number, count in enumerate(left) if count])
        end = ends[writer]
        if end is None or (writers > 1 and rng.random() < 0.5):
            # neighbours are apart by at least a block, so that they are two extents
            end = at = at + rng.randrange(1, 500) * BLOCK_SECTORS
            at += parameters["largest_turn_requests"] * parameters["requests"] * size
        for _ in range(min(left[writer], rng.randrange(1, parameters["largest_turn_requests"] + 1))):
            places.append((writer, end))
            end += size
            left[writer] -= 1
        ends[writer] = end
    return places


def _trace(rng: random.Random, parameters: dict[str, Any], places: list[Place]) -> str:
    size, now = parameters["request_sectors"], 7_000_000_000
    events: list[Event] = []
    end = None
    for _, sector in places:
        seek_us = parameters["seek_us"] if sector != end else 0.0
        latency = round((parameters["latency_us"] * max(0.1, rng.gauss(1, parameters["noise"])) + seek_us) * 1000)
        end = sector + size
        events += [(now - 3_000, DEVICE, "Q", "WS", f"{sector} + {size} [dd]"), (now, DEVICE, "D", "WS", f"{sector} + {size} [dd]")]
        events.append((now + latency, DEVICE, "C", "WS", f"{sector} + {size} [0]"))
        if parameters["is_awkward"] and rng.random() < 0.05:
            events += [(now + 1, DEVICE, "D", "D", "777 + 8 [fstrim]"), (now + 2_000, DEVICE, "C", "D", "777 + 8 [0]")]
            events += [(now + 2, DEVICE, "D", "WS", "888 + 8 [dd]"), (now + 90_000, DEVICE, "C", "WS", "888 + 8 [-5]")]
            events += [(now + 3, OTHER, "D", "R", "80000 + 8 [dd]"), (now + 5_000, OTHER, "C", "R", "80000 + 8 [0]")]
        # some requests overlap, some leave the device idle for longer than a second
        now += round(latency * rng.choice([0.5, 1.0, 1.5])) if rng.random() < 1 - parameters["pause_ratio"] else 2_500_000_000
    return "\n".join(["# tracer: blk", "#", *block_lines(sorted(events))]) + "\n"


def _maps(parameters: dict[str, Any], places: list[Place], writers: int, draft: Draft, config: str, run: int) -> str:
    """`filefrag -v` of the files: what follows without a gap is one extent."""
    blocks = parameters["request_sectors"] // BLOCK_SECTORS
    files = {}
    for writer in range(writers):
        extents: list[tuple[int, int]] = []
        for first in (sector // BLOCK_SECTORS for number, sector in places if number == writer):
            if extents and sum(extents[-1]) == first:
                extents[-1] = extents[-1][0], extents[-1][1] + blocks
            else:
                extents.append((first, blocks))
        files[f"/mnt/w{writer}"] = extents
        row = {"config_id": config, "run_number": run, "file_name": f"w{writer}", "extent_count": len(extents)}
        draft.truth["planted_extents"].append(row)
    return filefrag(files)


def _counters(rng: random.Random, parameters: dict[str, Any], draft: Draft, config: str, run: int) -> str:
    """Snapshots of diskstats; those of every second run fall once, and those of the last configuration write nothing."""
    is_reset, is_write_free = run % 2 == 0, config == f"writers-{parameters['writers'][-1]}"
    busy_ms = round(parameters["busy_ratio"] * SECONDS * 1000)
    gain = [rng.randrange(1, 90) * 8, 0 if is_write_free else rng.randrange(1, 90) * 8]
    lines: list[str] = []
    values = [10**6, 10**7, 10**5, 10**6, 10**7, 10**5, 10**6]
    for snapshot in range(SNAPSHOTS):
        if is_reset and snapshot == SNAPSHOTS // 2:
            values = [0] * len(values)
        reads, sectors_read, read_ms, writes, sectors_written, write_ms, busy = values
        counters = f"{reads} 0 {sectors_read} {read_ms} {writes} 0 {sectors_written} {write_ms} 0 {busy} {read_ms + write_ms} 0 0 0 0 0 0"
        lines += [
            f"TS {1_700_000_000 + snapshot * SECONDS}",
            f"   8      16 {KERNEL_NAME} {counters}",
            f"   8      17 {KERNEL_NAME}1 {counters}",
        ]
        lines.append("   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
        steps = [gain[0] // 8, gain[0], 40, gain[1] // 8, gain[1], 40 * (not is_write_free), busy_ms]
        values = [value + step for value, step in zip(values, steps, strict=True)]
    counted = SNAPSHOTS - 1 - is_reset
    draft.truth["planted_counters"].append(
        {
            "config_id": config, "run_number": run, "observed_seconds": float(counted * SECONDS), "resets": int(is_reset),
            "utilisation": parameters["busy_ratio"], "bytes_read": counted * gain[0] * 512, "bytes_written": counted * gain[1] * 512,
            "is_write_free": None if is_reset else is_write_free,
        }
    )  # fmt: skip
    return "\n".join(lines) + "\n"

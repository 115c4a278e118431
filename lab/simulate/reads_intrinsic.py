"""Scenario `reads-intrinsic`: block traces of files in several extents. Reads are slow for some requests after each start of an extent.

The traces hold what real ones do: merges, splits, requeues, completions in parts, errors, lost completions, flushes, discards, another
device, lines out of order.
"""

from __future__ import annotations

import random
from typing import Any

from lab.simulate.draft import Draft, Event, block_lines, filefrag, manifest

DEFAULTS: dict[str, Any] = {
    "experiment_id": "reads-intrinsic",
    "runs": 2,
    "noise": 0.02,
    "latency_us": 900.0,
    "slow_factor": 3.0,
    "request_sectors": 256,
    "extents_requests": [[128, 96], [40, 64, 24, 96], [30, 30, 100]],
    "large_extent_bytes": 8 << 20,
    "partition_start_sectors": 2048,
    "is_awkward": True,
    "phases": {"": 1.0},
}
"""`extents_requests`: for each file its extents, in requests.

`slow_factor`: latency of a request while an extent recovers over a normal one. `phases`: phase -> factor of its latencies; each has all
runs."""

DEVICE, OTHER = "8,16", "8,0"
BLOCK_SECTORS = 8


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundle. Truth: how many requests each extent needs to recover."""
    rng = random.Random(seed)
    draft.manifest = _manifest(parameters)
    draft.truth = {"planted_recovery": []}
    for phase, factor in parameters["phases"].items():
        named = {**parameters, "phase": phase, "latency_us": parameters["latency_us"] * factor}
        for run in range(1, parameters["runs"] + 1):
            # a file may lie elsewhere in the next run; a run without a map of its own has that of the run before
            if run == 1 or rng.random() < 0.5:
                extents = _placed(rng, parameters)
                draft.add(_name("filefrag", phase, run), _maps(parameters, extents), "filefrag", "buffered", run, phase=phase)
            events = _events(rng, named, draft, run, extents)
            tool = "ftrace" if run % 2 else "blkparse"
            printed = _printed(rng, events, tool, parameters["is_awkward"])
            draft.add(_name("trace", phase, run), printed, tool, "buffered", run, phase=phase, offset_s=run * 1000)


def _name(what: str, phase: str, run: int) -> str:
    return "_".join(part for part in (what, phase, str(run)) if part) + ".txt"


def _placed(rng: random.Random, parameters: dict[str, Any]) -> list[list[int]]:
    """First sector of each extent of each file, on the filesystem."""
    at, placed = 80_000, []
    for sizes in parameters["extents_requests"]:
        firsts = []
        for requests in sizes:
            # some extents are neighbours
            at += rng.choice([0, rng.randrange(1, 500)]) * BLOCK_SECTORS
            firsts.append(at)
            at += requests * parameters["request_sectors"]
        placed.append(firsts)
    return placed


def _maps(parameters: dict[str, Any], extents: list[list[int]]) -> str:
    blocks = parameters["request_sectors"] // BLOCK_SECTORS
    return filefrag(
        {
            f"mnt/file_{number}": [(first // BLOCK_SECTORS, requests * blocks) for requests, first in zip(sizes, firsts, strict=True)]
            for number, (sizes, firsts) in enumerate(zip(parameters["extents_requests"], extents, strict=True))
        }
    )


def _events(rng: random.Random, parameters: dict[str, Any], draft: Draft, run: int, extents: list[list[int]]) -> list[Event]:
    events: list[Event] = []
    size, now = parameters["request_sectors"], 5_000_000_000
    for number, (sizes, firsts) in enumerate(zip(parameters["extents_requests"], extents, strict=True)):
        for read in (1, 2):  # each file twice
            for index, (requests, first) in enumerate(zip(sizes, firsts, strict=True)):
                slow = rng.randrange(1, requests // 3)
                draft.truth["planted_recovery"].append(
                    {
                        "config_id": "buffered", "phase": parameters["phase"], "run_number": run, "file_name": f"file_{number}",
                        "read_index": read, "extent_index": index, "recovery_requests": slow,
                    }
                )  # fmt: skip
                for place in range(requests):
                    factor = parameters["slow_factor"] if place < slow else 1.0
                    latency = parameters["latency_us"] * factor * max(0.1, rng.gauss(1, parameters["noise"]))
                    sector = parameters["partition_start_sectors"] + first + place * size
                    odd = rng.random() if parameters["is_awkward"] else 1.0
                    _request(rng, events, now, sector, size, round(latency * 1000), odd)
                    now += round(latency * 550)
            now += rng.randrange(1_000_000, 50_000_000)
    if parameters["is_awkward"]:
        _beside(rng, events)
    return events


def _request(rng: random.Random, events: list[Event], at: int, sector: int, size: int, latency: int, odd: float) -> None:
    """A read, issued at a time. odd: below 0.06 something happens to it."""
    whole, half = f"{sector} + {size}", size // 2
    second = f"{sector + half} + {size - half}"
    queued, done = at - rng.randrange(2_000, 9_000), at + latency
    if odd < 0.01:  # two queued, one issued
        events += [(queued, DEVICE, "Q", "RA", f"{sector} + {half} [dd]"), (queued + 900, DEVICE, "Q", "RA", f"{second} [dd]")]
        events.append((queued + 901, DEVICE, "M", "RA", f"{second} [dd]"))
    elif odd < 0.02:  # without a queue event
        pass
    else:
        events += [(queued, DEVICE, "Q", "RA", f"{whole} [kworker/u8:2 x]"), (queued + 500, DEVICE, "G", "RA", f"{whole} [dd]")]
    if 0.02 <= odd < 0.03:  # one queued, two issued
        events += [(at, DEVICE, "D", "RA", f"{sector} + {half} [dd]"), (at + 10, DEVICE, "D", "RA", f"{second} [dd]")]
        events += [(done - 10, DEVICE, "C", "RA", f"{sector} + {half} [0]"), (done, DEVICE, "C", "RA", f"{second} [0]")]
        return
    if 0.03 <= odd < 0.035:
        events += [(at - 1_500, DEVICE, "D", "RA", f"{whole} [dd]"), (at - 700, DEVICE, "R", "RA", f"{whole} [0]")]
    events.append((at, DEVICE, "D", "RA", f"{whole} [dd]"))
    if 0.035 <= odd < 0.045:  # in parts
        events += [(done - 40, DEVICE, "C", "RA", f"{sector} + {half} [0]"), (done, DEVICE, "C", "RA", f"{second} [0]")]
    elif 0.045 <= odd < 0.048:
        events.append((done, DEVICE, "C", "RA", f"{whole} [-5]"))
    elif not 0.048 <= odd < 0.05:  # else its completion is lost
        events.append((done, DEVICE, "C", "RA", f"{whole} [0]"))


def _beside(rng: random.Random, events: list[Event]) -> None:
    """Add events other than the reads: flushes, discards, writes, another device, a completion of what began before it."""
    events.append((4_999_000_000, DEVICE, "C", "WS", "7777 + 8 [0]"))
    for at, *_ in rng.sample(events, 20):
        sector = rng.randrange(10**7, 10**8)
        events += [(at + 1, DEVICE, "D", "FN", "[kworker]"), (at + 900, DEVICE, "C", "FN", "0 [0]")]
        events += [(at + 2, DEVICE, "Q", "D", f"{sector} + 4096 [fstrim]"), (at + 3, DEVICE, "D", "D", f"{sector} + 4096 [fstrim]")]
        events.append((at + 5_000, DEVICE, "C", "D", f"{sector} + 4096 [0]"))
        # reads of another device at the sectors of a file belong to none
        events += [(at + 4, OTHER, "D", "R", "82048 + 256 [dd]"), (at + 8_000, OTHER, "C", "R", "82048 + 256 [0]")]


def _printed(rng: random.Random, events: list[Event], tool: str, is_awkward: bool) -> str:
    lines = [] if tool == "blkparse" else ["# tracer: blk", "#", "# DEV   CPU TIMESTAMP     PID ACT FLG"]
    body = block_lines(sorted(events, key=lambda event: event[0]), is_numbered=tool == "blkparse")
    if is_awkward:  # processors print one after the other
        for place in range(0, len(body) - 6, 50):
            block = body[place : place + 6]
            rng.shuffle(block)
            body[place : place + 6] = block
    lines += body
    if tool == "blkparse":
        lines += [
            "CPU0 (sdb):", " Reads Queued:       1,234,  339,096KiB  Writes Queued:       0,  0KiB", "Total (sdb):",
            " Read Dispatches:    1,234,  339,096KiB  Write Dispatches:    0,  0KiB", "",
            "Throughput (R/W): 5,872KiB/s / 0KiB/s", "Events (sdb): 39,850 entries", "Skips: 12 forward (1,203 -   3.0%)",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _manifest(parameters: dict[str, Any]) -> str:
    filesystem = {"filesystem_id": "fs", "type": "ext4", "partition_start_sectors": parameters["partition_start_sectors"]}
    return manifest(
        parameters, "read_variability", "Synthetic traces of reads", {"kind": "ssd", "major_minor": DEVICE}, [filesystem],
        large_extent_bytes=parameters["large_extent_bytes"],
        configs=[{"config_id": "buffered", "filesystem_id": "fs", "is_default": True}],
    )  # fmt: skip

"""Scenario `reads-modes`: files read in turn, buffered and with direct I/O, for hours.

Buffered reads show all three slowdowns, direct ones none.

Intrinsic: a file loses throughput with its extents. Temporal: every so often all reads are slow for a while. Permanent: from an hour on one
file stays slow.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any, NamedTuple

from lab.simulate.draft import BLOCK_BYTES, Draft, filefrag, manifest, with_moments

DEFAULTS: dict[str, Any] = {
    "experiment_id": "reads-modes",
    "hours": 30,
    "pace_s": 60.0,
    "slow_pace_ratio": 1.0,
    "trigger": "time",
    "write_bytes_per_s": 1e6,
    "noise": 0.02,
    "throughput_bytes_per_s": 430e6,
    "file_bytes": 256 << 20,
    "extents": [1, 1, 3, 1, 4, 1, 3, 29],
    "intrinsic_drop_ratio": 0.13,
    "period_s": 7800.0,
    "duration_s": 300.0,
    "temporal_drop_ratio": 0.14,
    "temporal_drop_spread": 0.0,
    "onset_hour": 20,
    "onset_file": 3,
    "permanent_drop_ratio": 0.127,
}
"""`pace_s`: from the start of a read to that of the next; `slow_pace_ratio` times as long in every other six hours.
`trigger`: what makes temporal slowdowns come, `time`, `reads` (`period_s` and `duration_s` are counted in reads of `pace_s`), or `writes`
(`period_s` in bytes of `write_bytes_per_s`, which halves in every other five hours and which diskstats count).
`noise`: standard deviation of a throughput over its mean. `intrinsic_drop_ratio`: of the file with the most extents.
`temporal_drop_spread`: standard deviation of the drop over the instances. `onset_file`: place of the file that becomes slow for good, from
0, or a list of several. Fragmented files are kept apart: in turn they would look like a temporal slowdown.
"""
CONFIGS = ("buffered", "direct")
STARTED, STARTED_AT = 1_767_607_200, "2026-01-05T10:00:00Z"


class Slowdowns(NamedTuple):
    """Causes of slow reads: temporal instances (start and end in seconds, drop), and files that become slow for good."""

    instances: list[tuple[float, float, float]]
    onset_files: list[int]


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundle. Truth: the drops, the instances of the temporal slowdown, and the onset."""
    rng = random.Random(seed)
    draft.manifest = manifest(
        parameters, "read_variability", "Synthetic reads of files", {"kind": "ssd", "kernel_name": "sda"},
        [{"filesystem_id": "fs", "type": "ext4"}], started_at=STARTED_AT,
        configs=[{"config_id": name, "filesystem_id": "fs", "is_default": name == CONFIGS[0]} for name in CONFIGS],
    )  # fmt: skip
    times = _times(parameters)
    first_s = rng.uniform(0.2, 0.8) * parameters["period_s"]
    starts = [first_s + step * parameters["period_s"] for step in range(int(parameters["hours"] * 3600 / parameters["period_s"]) + 1)]
    spans = [(start, start + parameters["duration_s"]) for start in starts]
    if parameters["trigger"] == "reads":
        numbers = [[round(at / parameters["pace_s"]) for at in span] for span in spans]
        spans = [(times[first], times[last]) for first, last in numbers if last < len(times)]
    elif parameters["trigger"] == "writes":
        minutes = _written(parameters)
        spans = []
        for start in starts:
            at = next((minute * 60.0 for minute, size in enumerate(minutes) if size >= start * parameters["write_bytes_per_s"]), None)
            spans += [] if at is None else [(at, at + parameters["duration_s"])]
        draft.add("diskstats.txt", _diskstats(minutes), "diskstats", CONFIGS[0], 1)
    spans = [span for span in spans if span[1] < parameters["hours"] * 3600 - 1800]
    drops = with_moments(rng, parameters["temporal_drop_ratio"], parameters["temporal_drop_spread"], len(spans))
    given = parameters["onset_file"]
    onset_files = given if isinstance(given, list) else [given]
    for config in CONFIGS:
        is_slow = config == CONFIGS[0]
        slowdowns = Slowdowns([(*span, drop) for span, drop in zip(spans, drops, strict=True)], onset_files) if is_slow else None
        draft.add(f"{config}.csv", _reads(rng, parameters, times, slowdowns), "file-reads", config, 1)
        draft.add(f"{config}_filefrag.txt", _maps(rng, parameters), "filefrag", config, 1)
    draft.truth = {
        "planted_instances": [{"config_id": CONFIGS[0], "started_s": start, "ended_s": end} for start, end in spans],
        "planted": [
            {
                "config_id": CONFIGS[0], "file_name": f"file_{file}", "onset_hour": parameters["onset_hour"],
                "permanent_drop_ratio": parameters["permanent_drop_ratio"], "intrinsic_drop_ratio": parameters["intrinsic_drop_ratio"],
                "temporal_drop_ratio": parameters["temporal_drop_ratio"], "period_s": parameters["period_s"],
            }
            for file in onset_files
        ],
    }  # fmt: skip


def _times(parameters: dict[str, Any]) -> list[float]:
    """When each read starts."""
    times, at = [], 0.0
    while at < parameters["hours"] * 3600:
        times.append(at)
        at += parameters["pace_s"] * (parameters["slow_pace_ratio"] if int(at // 21_600) % 2 else 1)
    return times


def _written(parameters: dict[str, Any]) -> list[float]:
    """Bytes written since the start, a minute each."""
    sizes = [0.0]
    for minute in range(int(parameters["hours"] * 60)):
        sizes.append(sizes[-1] + 60 * parameters["write_bytes_per_s"] / (1 + minute // 300 % 2))
    return sizes


def _diskstats(minutes: list[float]) -> str:
    """Snapshots of a disk, a minute each."""
    return "".join(
        f"TS {STARTED + 60 * minute}\n   8       0 sda 0 0 0 0 {minute} 0 {int(size) // 512} 0 0 0 0\n"
        for minute, size in enumerate(minutes)
    )


def _reads(rng: random.Random, parameters: dict[str, Any], times: list[float], slowdowns: Slowdowns | None) -> str:
    lines = ["file_name,started_s,ended_s,bytes,active_s"]
    extents = parameters["extents"]
    most = max(extents)
    for number, at in enumerate(times):
        file = number % len(extents)
        throughput = parameters["throughput_bytes_per_s"] * max(0.5, rng.gauss(1, parameters["noise"]))
        if slowdowns is not None:
            throughput *= 1 - parameters["intrinsic_drop_ratio"] * (extents[file] - 1) / max(most - 1, 1)
            for start, end, drop in slowdowns.instances:
                if start <= at < end:
                    throughput *= 1 - drop
            if file in slowdowns.onset_files and at >= parameters["onset_hour"] * 3600:
                throughput *= 1 - parameters["permanent_drop_ratio"]
        seconds = parameters["file_bytes"] / throughput
        # some lists say how long the device was busy; some reads wait between requests
        active = f"{seconds:.6f}" if rng.random() < 0.5 else ""
        lines.append(
            f"file_{file},{at:.3f},{at + seconds + (rng.uniform(0, 0.1) if active else 0):.6f},{parameters['file_bytes']},{active}"
        )
    return "\n".join(lines) + "\n"


def _maps(rng: random.Random, parameters: dict[str, Any]) -> str:
    blocks, physical = parameters["file_bytes"] // BLOCK_BYTES, 50_000
    files: dict[str, list[tuple[int, int]]] = {}
    for number, count in enumerate(parameters["extents"]):
        ends = [0, *sorted(rng.sample(range(1, blocks), count - 1)), blocks]
        for start, end in pairwise(ends):
            physical += rng.randrange(100, 1000)
            files.setdefault(f"/data/file_{number}", []).append((physical, end - start))
            physical += end - start
    return filefrag(files)

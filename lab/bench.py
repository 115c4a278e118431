"""The lab: a block trace of ten million lines, and a million reads of files, each from its bundle to the published relations. ToleRAID: four
million requests under every policy.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from lab.simulate import simulate
from lab.simulate.draft import Draft, filefrag, manifest
from workbench.measure import DRIVETAIL, Cost, measure
from workbench.parts import Bound, Section, Setting

EXTENTS = (2, 2, 3, 2, 4, 2, 3, 29)
"""Extents of each file that the trace reads in turn (count)."""
FILE_REQUESTS, REQUEST_SECTORS = 2048, 256
"""Requests of a file, and sectors of a request: 128 KiB, so a file has 256 MiB."""
STAGES = ((-5_000, "Q", "[dd]"), (-4_000, "G", "[dd]"), (-1_000, "I", "[dd]"), (0, "D", "[kworker/0:1H]"), (None, "C", "[0]"))
"""Lines of a request: time from its issue (ns; None: its latency), action, who did it."""
SLOW_REQUESTS = 20
"""Requests at the start of each extent that take three times as long."""
CHUNK_LINES = 1_000_000
MANIFEST = manifest(
    {"experiment_id": "trace"}, "read_variability", "", {"kind": "ssd", "major_minor": "8,16"},
    configs=[{"config_id": "buffered", "device_id": "d", "is_default": True}],
)  # fmt: skip


def write_trace(out: Path, lines: int) -> None:
    """A bundle with a trace of `lines` lines (a multiple of five), and the maps of its files."""
    random = np.random.default_rng(1)
    starts: list[np.ndarray] = []
    files: dict[str, list[tuple[int, int]]] = {}
    at = 80_000
    for file, count in enumerate(EXTENTS):
        cuts = np.sort(random.choice(np.arange(SLOW_REQUESTS, FILE_REQUESTS), count - 1, replace=False))
        ends = [0, *cuts.tolist(), FILE_REQUESTS]
        blocks = REQUEST_SECTORS // 8
        first = np.empty(FILE_REQUESTS, np.int64)
        for low, high in pairwise(ends):
            files.setdefault(f"/d/file_{file}", []).append((at // 8, (high - low) * blocks))
            first[low:high] = at + np.arange(high - low) * REQUEST_SECTORS
            at += (high - low) * REQUEST_SECTORS + 8_000
        starts.append(first)
    order = np.concatenate(starts)
    requests = lines // len(STAGES)
    sectors = np.resize(order, requests)
    is_new = np.diff(sectors, prepend=-REQUEST_SECTORS) != REQUEST_SECTORS
    since = np.arange(requests) - np.maximum.accumulate(np.where(is_new, np.arange(requests), 0))
    latency = (900_000 * np.where(since < SLOW_REQUESTS, 3, 1) * random.normal(1, 0.02, requests)).astype(np.int64)
    issued = 5_000_000_000 + np.cumsum(latency * 55 // 100)
    times = np.concatenate([issued + (latency if ahead is None else ahead) for ahead, _, _ in STAGES])
    place = np.argsort(times, kind="stable")
    draft = Draft(MANIFEST, {"trace.txt": "", "filefrag.txt": filefrag(files)})
    for name, tool in (("trace.txt", "blkparse"), ("filefrag.txt", "filefrag")):
        draft.runs.append({"file": name, "tool": tool, "config_id": "buffered", "run_number": 1})
    draft.save(out)
    with (out / "trace.txt").open("wb") as stream:
        for low in range(0, len(place), CHUNK_LINES):
            here = place[low : low + CHUNK_LINES]
            stage, request = np.divmod(here, requests)
            pl.DataFrame(
                {
                    "number": np.arange(low + 1, low + len(here) + 1), "seconds": times[here] // 10**9, "ns": times[here] % 10**9,
                    "stage": stage, "sector": sectors[request],
                }
            ).select(
                pl.format(
                    "  8,16 {} {} {}.{} {} {} RA {} + " + str(REQUEST_SECTORS) + " {}",
                    (pl.col("number") % 2).cast(pl.String).str.pad_start(3),
                    pl.col("number").cast(pl.String).str.pad_start(8),
                    pl.col("seconds").cast(pl.String).str.pad_start(5),
                    pl.col("ns").cast(pl.String).str.zfill(9),
                    pl.lit("19146"),
                    pl.col("stage").replace_strict(dict(enumerate(action for _, action, _ in STAGES)), return_dtype=pl.String).str.pad_start(2),
                    "sector",
                    pl.col("stage").replace_strict(dict(enumerate(who for _, _, who in STAGES)), return_dtype=pl.String),
                )
            ).write_csv(stream, include_header=False, quote_style="never")  # fmt: skip


def bench_lab(setting: Setting) -> list[Section]:
    """Once each: the bundles are large."""
    lines, hours = (50_000, 1) if setting.small else (10_000_000, 139)
    folder = setting.work / "lab"
    shutil.rmtree(folder, ignore_errors=True)
    write_trace(folder / "trace", lines)
    # two configurations, a read a second
    simulate("reads-modes", folder / "reads", hours=hours, pace_s=1.0)
    rows = ["| bundle | step | wall (s) | CPU (s) | peak memory (MiB) |", "|---|---|--:|--:|--:|"]
    totals = {}
    for name, what in (("trace", f"{lines:,} lines of blkparse"), ("reads", f"{2 * hours * 3600:,} reads of files")):
        warehouse = folder / f"warehouse-{name}"
        costs: list[Cost] = []
        for step, command in (("`lab ingest`", ("ingest", folder / name)), ("`lab build`", ("build",))):
            costs.append(measure(DRIVETAIL, "lab", *command, "--warehouse", warehouse))
            rows.append(f"| {what} | {step} | {costs[-1].cells} |")
        totals[name] = costs[0] + costs[1]
    shutil.rmtree(folder)
    bounds = [
        Bound("the trace, from file to relations", totals["trace"].seconds, 120),
        Bound("its peak memory", totals["trace"].peak_mib / 1024, 8, "GiB"),
        Bound("the reads, from file to relations", totals["reads"].seconds, 30),
    ]
    return [Section("Experiments of the lab", rows, bounds)]


FOUR_MILLION = """
import numpy as np
from lab.toleraid import Arrivals, Experiment, joint, simulate

random = np.random.default_rng(1)
vectors = np.exp(random.standard_normal((50_000, 12)) * 0.1)
vectors[random.random(50_000) < 0.015, 0] *= 4
simulate(Experiment(joint(vectors.tolist()), Arrivals({requests})))
"""
"""RAID-hours of twelve drives, of which 1.5% have a slow one."""

NOTHING = "import lab.toleraid"


def bench_tolerance(setting: Setting) -> list[Section]:
    """Simulations in processes of their own."""
    requests = 40_000 if setting.small else 4_000_000
    runs = [measure(sys.executable, "-c", FOUR_MILLION.format(requests=requests)) for _ in range(setting.repetitions)]
    start = statistics.median(measure(sys.executable, "-c", NOTHING).seconds for _ in range(setting.repetitions))
    seconds = statistics.median(cost.seconds for cost in runs) - start
    lines = [
        f"{requests:,} requests of 6 data drives and 2 parity from 50,000 RAID-hours, medians of {setting.repetitions}. "
        f"The start of Python and NumPy ({start:.2f} s) is left out; making the RAID-hours is not.",
        "",
        "| wall (s) | CPU (s) | peak memory (MiB) |",
        "|--:|--:|--:|",
        f"| {statistics.median(cost.seconds for cost in runs):.2f} | {statistics.median(cost.cpu_seconds for cost in runs):.2f} | {max(cost.peak_mib for cost in runs):,.0f} |",
    ]
    bounds = [Bound("every policy", seconds, 3), Bound("peak memory", max(cost.peak_mib for cost in runs), 1024, "MiB")]
    return [Section("Four million requests around slow drives", lines, bounds)]

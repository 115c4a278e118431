"""ToleRAID: four million requests under every policy, and both figures of the paper."""

from __future__ import annotations

import statistics
import sys

from workbench.measure import measure
from workbench.parts import Bound, Section, Setting

FOUR_MILLION = """
import numpy as np
from toleraid import Arrivals, Experiment, joint, simulate

random = np.random.default_rng(1)
vectors = np.exp(random.standard_normal((50_000, 12)) * 0.1)
vectors[random.random(50_000) < 0.015, 0] *= 4
simulate(Experiment(joint(vectors.tolist()), Arrivals({requests})))
"""
"""RAID-hours of twelve drives, of which 1.5% have a slow one."""

NOTHING = "import toleraid"


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

"""Figures of fio's JSON for the reads or writes of a job, in all its versions."""

from __future__ import annotations

import math
from typing import Any


def ios(part: dict[str, Any]) -> float:
    """I/Os that were done; fio counts syncs as those of their latency (`total_ios` is 0 in some versions)."""
    latency = part.get("lat_ns")
    counted = number(latency.get("N")) if isinstance(latency, dict) else None
    return number(part.get("total_ios")) or counted or 0.0


def completion_latencies(part: dict[str, Any]) -> dict[str, float]:
    """Latencies of completion (us): `mean`, and percentiles by fio's names such as `99.000000`."""
    # fio 2 gives microseconds, and says so by leaving out _ns
    return latencies(part["clat_ns"], 1e-3) if isinstance(part.get("clat_ns"), dict) else latencies(part.get("clat"), 1.0)


def latencies(block: Any, in_us: float) -> dict[str, float]:
    """The same of a block of latencies whose unit has `in_us` microseconds; empty where there is none."""
    if not isinstance(block, dict):
        return {}
    percentiles = block.get("percentile")
    values = {**(percentiles if isinstance(percentiles, dict) else {}), **block}
    return {name: known * in_us for name, value in values.items() if (known := number(value)) is not None}


def number(value: Any) -> float | None:
    """A number of 0 or more; null for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None

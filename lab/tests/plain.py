"""Synchronous writes a second time: loops over results, written from the definitions and not from the models."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations, pairwise
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_ind

Row = dict[str, Any]
PASSES = {"iozone_throughput": "throughput", "iozone_latency": "latency"}


def values_of(results: list[Row]) -> dict[tuple[str, int, str], list[float]]:
    """(configuration, buffer, pass) -> values, of each configuration's largest file."""
    writes = [row for row in results if row["test"] == "write" and row["benchmark"] in PASSES]
    largest: dict[str, int] = defaultdict(int)
    for row in writes:
        largest[row["config_id"]] = max(largest[row["config_id"]], row["size_bytes"])
    found = defaultdict(list)
    for row in writes:
        if row["size_bytes"] == largest[row["config_id"]]:
            found[row["config_id"], row["parameter"], PASSES[row["benchmark"]]].append(row["value"])
    return dict(found)


def points(results: list[Row], expected_runs: int) -> dict[tuple[str, int], Row]:
    found = values_of(results)
    rows = {}
    for config, buffer in sorted({key[:2] for key in found}):
        row: Row = {}
        for name, unit in (("throughput", "throughput_kb_per_s"), ("latency", "latency_us")):
            values = found.get((config, buffer, name), [])
            row[f"n_{name}"] = len(values)
            row[f"mean_{unit}"] = mean(values) if values else None
            row[f"sd_{unit}"] = stdev(values) if len(values) > 1 else None
            row[f"min_{unit}"] = min(values, default=None)
            row[f"max_{unit}"] = max(values, default=None)
        thr, lat = row["mean_throughput_kb_per_s"], row["mean_latency_us"]
        row["ratio"] = thr / lat if thr is not None and lat else None
        spreads = row["sd_throughput_kb_per_s"], row["sd_latency_us"]
        row["ratio_relative_se"] = (
            math.sqrt((spreads[0] / thr) ** 2 / row["n_throughput"] + (spreads[1] / lat) ** 2 / row["n_latency"])
            if None not in spreads
            else None
        )
        row["is_complete"] = min(row["n_throughput"], row["n_latency"]) >= expected_runs
        rows[config, buffer] = row
    return rows


def phases(measured: dict[tuple[str, int], Row]) -> tuple[dict[tuple[str, int], Row], dict[str, Row]]:
    """Rows of fct_sync_write_phases, and latency_flat_until_bytes and throughput_flat_from_bytes by configuration."""
    rows, ends = {}, {}
    for config in sorted({key[0] for key in measured}):
        sizes = sorted(
            size for name, size in measured if name == config and measured[name, size]["n_throughput"] and measured[name, size]["n_latency"]
        )
        raw = []
        for small, large in pairwise(sizes):
            one, two = measured[config, small], measured[config, large]
            doublings = math.log2(large / small)
            a = math.log2(two["mean_throughput_kb_per_s"] / one["mean_throughput_kb_per_s"]) / doublings
            b = math.log2(two["mean_latency_us"] / one["mean_latency_us"]) / doublings
            both_flat = 1 if b <= a else 3
            phase = both_flat if a < 0.25 and b < 0.25 else 1 if b < 0.25 else 3 if a < 0.25 else 2
            trend = "plateau" if abs(a - b) <= 0.1 else "ascending" if a > b else "descending"
            rows[config, small] = {"throughput_slope": a, "latency_slope": b, "raw_phase": phase, "ratio_trend": trend}
            raw.append(phase)
        best: tuple[int, int, int] | None = None
        for i in range(len(raw) + 1):
            for j in range(i, len(raw) + 1):
                sequence = [1] * i + [2] * (j - i) + [3] * (len(raw) - j)
                differing = sum(one != two for one, two in zip(sequence, raw, strict=True))
                if best is None or (differing, i, j) < best:
                    best = differing, i, j
        assert best is not None
        _, i, j = best
        for number, small in enumerate(sizes[:-1]):
            rows[config, small]["phase"] = 1 if number < i else 2 if number < j else 3
        ends[config] = {
            "latency_flat_until_bytes": sizes[i],
            "throughput_flat_from_bytes": sizes[j] if j < len(raw) else None,
        }
    return rows, ends


def comparisons(results: list[Row]) -> dict[tuple[str, int, str, str], Row]:
    """(pass, buffer, a, b) -> the row of fct_sync_write_comparisons, for configurations that are all on one device."""
    found = values_of(results)
    rows: dict[tuple[str, int, str, str], Row] = {}
    for a, b in combinations(sorted({key[0] for key in found}, key=str.encode), 2):
        for name in PASSES.values():
            family = []
            for buffer in sorted({key[1] for key in found}):
                one, two = found.get((a, buffer, name)), found.get((b, buffer, name))
                if not one or not two:
                    continue
                row: Row = {"n_a": len(one), "n_b": len(two), "mean_a": mean(one), "mean_b": mean(two), "welch_p": None}
                rows[name, buffer, a, b] = row
                if min(len(one), len(two)) < 2 or len({*one}) == len({*two}) == 1:
                    row |= {"welch_t": None, "welch_df": None, "pooled_t": None, "pooled_p": None, "ci_low": None, "ci_high": None}
                    continue
                welch, pooled = ttest_ind(one, two, equal_var=False), ttest_ind(one, two)
                interval = welch.confidence_interval()
                row |= {
                    "welch_t": welch.statistic, "welch_df": welch.df, "welch_p": welch.pvalue, "pooled_t": pooled.statistic,
                    "pooled_p": pooled.pvalue, "ci_low": interval.low, "ci_high": interval.high,
                }  # fmt: skip
                family.append(row)
            # Holm, as its author steps down
            reached = 0.0
            for place, row in enumerate(sorted(family, key=lambda row: row["welch_p"])):
                reached = max(reached, min(1.0, row["welch_p"] * (len(family) - place)))
                row["holm_p"] = reached
    return rows


def choice(measured: dict[int, Row], floor: float | None, ceiling: float | None) -> int | None:
    """The buffer by the definition, over the points of one configuration."""
    sizes = sorted(measured)
    fast = [size for size in sizes if floor is None or (measured[size]["mean_throughput_kb_per_s"] or 0) >= floor]
    short = [size for size in sizes if ceiling is None or (measured[size]["mean_latency_us"] or math.inf) <= ceiling]
    both = [size for size in fast if size in short]
    if floor is None and ceiling is None:
        rated = [size for size in sizes if measured[size]["ratio"] is not None]
        return max(rated, key=lambda size: (measured[size]["ratio"], -size), default=None)
    if not both:
        return None
    return both[0] if floor is not None else both[-1]

"""Before and after a second time: loops over results, written from the definitions and not from the models."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_ind

Row = dict[str, Any]
Key = tuple[str, str, str, int, int]
"""Configuration, benchmark, test, parameter, size_bytes."""
OF_BOTH = (
    "diff", "better", "pct_better", "pct_of_before", "is_minor", "most_loss_percent", "most_gain_percent", "is_equal", "welch_t",
    "welch_df", "welch_p", "ci_low", "ci_high",
)  # fmt: skip
"""Columns that need both phases: null where one is not measured."""


def cells(results: list[Row], expected_runs: int) -> dict[Key, Row]:
    """The rows of fct_phase_cells of one experiment."""
    values: dict[Key, dict[str, list[float]]] = defaultdict(lambda: {"before": [], "after": []})
    is_rate: dict[Key, bool] = {}
    for row in results:
        if row["phase"] in ("before", "after"):
            key = row["config_id"], row["benchmark"], row["test"], row["parameter"], row["size_bytes"]
            values[key][row["phase"]].append(row["value"])
            is_rate[key] = row["unit"] not in ("us", "ms")
    return {key: _cell(found["before"], found["after"], expected_runs, is_rate=is_rate[key]) for key, found in values.items()}


def _cell(before: list[float], after: list[float], expected_runs: int, *, is_rate: bool) -> Row:
    row: Row = dict.fromkeys(OF_BOTH) | {
        "n_before": len(before),
        "n_after": len(after),
        "mean_before": mean(before) if before else None,
        "mean_after": mean(after) if after else None,
        "sd_before": stdev(before) if len(before) > 1 else None,
        "sd_after": stdev(after) if len(after) > 1 else None,
        "is_complete": len(before) == len(after) == expected_runs,
        "verdict": "no data",
    }
    if before and after:
        low, high = sorted((mean(before), mean(after)))
        row["diff"] = mean(before) - mean(after)
        before_is_better = mean(before) > mean(after) if is_rate else mean(before) < mean(after)
        row["better"] = "equal" if low == high else "before" if before_is_better else "after"
        row["pct_better"] = (high - low) / low * 100
        row["pct_of_before"] = row["diff"] / mean(before) * 100
        row["is_minor"] = row["pct_better"] < 1
    if min(len(before), len(after)) >= 2:
        one_sided = 0.0
        if len({*before}) > 1 or len({*after}) > 1:
            one_sided = row["diff"] - ttest_ind(before, after, equal_var=False).confidence_interval(0.9).low
        loss = row["diff"] if is_rate else -row["diff"]
        row["most_loss_percent"] = (loss + one_sided) / mean(before) * 100
        row["most_gain_percent"] = (one_sided - loss) / mean(before) * 100
        row["is_equal"] = max(row["most_loss_percent"], row["most_gain_percent"]) < 10
        is_noise = abs(row["diff"]) <= row["sd_before"] + row["sd_after"]
        row["verdict"] = "inconclusive" if is_noise else f"{row['better']}_better"
        if len({*before}) > 1 or len({*after}) > 1:
            test = ttest_ind(before, after, equal_var=False)
            interval = test.confidence_interval()
            row |= {
                "welch_t": test.statistic, "welch_df": test.df, "welch_p": test.pvalue, "ci_low": interval.low, "ci_high": interval.high,
            }  # fmt: skip
    return row

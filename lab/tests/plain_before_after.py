"""Before and after a second time: loops over results, written from the definitions and not from the models."""

from __future__ import annotations

from collections import defaultdict
from math import comb, exp, log
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_ind
from statsmodels.stats.multitest import multipletests

Row = dict[str, Any]
Key = tuple[str, str, str, int, int]
"""Configuration, benchmark, test, parameter, size_bytes."""
OF_BOTH = (
    "diff", "better", "pct_better", "pct_of_before", "is_minor",
    "loss_percent", "most_loss_percent", "most_gain_percent", "is_equal", "worse_p",
    "holm_p",
    "welch_t", "welch_df", "welch_p", "ci_low", "ci_high",
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
    made = {key: _cell(found["before"], found["after"], expected_runs, is_rate=is_rate[key]) for key, found in values.items()}
    tested = [row for row in made.values() if row["worse_p"] is not None]
    for row, p in zip(tested, multipletests([row["worse_p"] for row in tested], method="holm")[1], strict=True):
        row["holm_p"] = float(p)
    for row in made.values():
        row["answer"] = _answer(row)
    return made


def _answer(row: Row) -> str:
    if row["is_equal"] is None:
        return "no data"
    if row["holm_p"] is not None and row["holm_p"] < 0.05:
        return "slower" if row["loss_percent"] > 0 else "faster"
    return "equal" if row["is_equal"] else "not slower" if row["most_loss_percent"] < 10 else "cannot say"


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
        varies = len({*before}) > 1 or len({*after}) > 1
        if varies:
            # of the logarithms: a ratio of geometric means
            test = ttest_ind([log(value) for value in after], [log(value) for value in before], equal_var=False)
            interval = test.confidence_interval(0.9)
            shifts = [mean(map(log, after)) - mean(map(log, before)), interval.low, interval.high]
            losses = [(1 - exp(shift) if is_rate else exp(shift) - 1) * 100 for shift in shifts]
            row["worse_p"] = float(test.pvalue)
        else:
            losses = [(row["diff"] if is_rate else -row["diff"]) / mean(before) * 100] * 3
            row["worse_p"] = min(1.0, 2 / comb(len(before) + len(after), len(before))) if row["diff"] else None
        row["loss_percent"], row["most_loss_percent"], row["most_gain_percent"] = losses[0], max(losses), -min(losses)
        row["is_equal"] = max(row["most_loss_percent"], row["most_gain_percent"]) < 10
        is_noise = abs(row["diff"]) <= row["sd_before"] + row["sd_after"]
        row["verdict"] = "inconclusive" if is_noise else f"{row['better']}_better"
        if varies:
            test = ttest_ind(before, after, equal_var=False)
            interval = test.confidence_interval()
            row |= {
                "welch_t": test.statistic, "welch_df": test.df, "welch_p": test.pvalue, "ci_low": interval.low, "ci_high": interval.high,
            }  # fmt: skip
    return row

"""health_comparison computed a second time, pair by pair: a slow drive-day against each other one of its model; and health_warnings."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, timedelta
from typing import Any

from numpy import quantile
from scipy.stats import mannwhitneyu, t

Record = dict[str, Any]
MEASURES = ("raw_value", "raw_change", "normalised_value")
CLOCKS = ("power_on_hours", "head_flying_hours", "loaded_hours")
CONFIDENCE, FEWEST = 0.95, 10


def values(readings: list[Record], slow_hours: dict[tuple[str, date], int], drives: dict[str, Record]) -> list[Record]:
    """Readings (drive_id, day_utc, attribute, raw_value, normalised_value; the last of its day) -> the numbers that are compared.

    slow_hours: of a drive on a day with a slowdown. drives: kind, model and raid_group_id.
    """
    known = {(row["drive_id"], row["attribute"], row["day_utc"]): row for row in readings}
    found = []
    for row in readings:
        drive, day = row["drive_id"], row["day_utc"]
        if (drive, day) not in slow_hours or drives[drive]["model"] is None or row["attribute"] in CLOCKS:
            continue
        before = known.get((drive, row["attribute"], day - timedelta(days=1)))
        change = None if before is None or None in (before["raw_value"], row["raw_value"]) else row["raw_value"] - before["raw_value"]
        for measure, value in zip(MEASURES, (row["raw_value"], change, row["normalised_value"]), strict=True):
            if value is not None:
                found.append({**drives[drive], "drive_id": drive, "day_utc": day, "attribute": row["attribute"], "measure": measure,
                              "value": value, "is_slow": slow_hours[drive, day] > 0})  # fmt: skip
    return found


def comparison(numbers: list[Record]) -> dict[tuple[Any, ...], Record]:
    """health_comparison by (kind, scope, model, attribute, measure)."""
    strata: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for row in numbers:
        strata[row["kind"], row["model"], row["attribute"], row["measure"]].append(row)
    scopes: dict[tuple[Any, ...], list[list[Record]]] = defaultdict(list)
    for (kind, model, *rest), rows in strata.items():
        if len({row["is_slow"] for row in rows}) == 2:
            scopes[kind, "model", model, *rest].append(rows)
            scopes[kind, "all", None, *rest].append(rows)
    found = {key: _compared(of) for key, of in scopes.items()}
    count = sum(row["error"] is not None for row in found.values())
    for row in found.values():
        if row["error"] is None:
            row |= {"low": None, "high": None, "is_different": None}
        else:
            reach = row["error"] * float(t.isf((1 - CONFIDENCE) / 2 / count, row["groups"] - 1))
            low, high = row["effect"] - reach, row["effect"] + reach
            row |= {"low": max(low, -1.0), "high": min(high, 1.0), "is_different": low > 0 or high < 0}
    return found


def _compared(models: list[list[Record]]) -> Record:
    """The effect over some models, each drive-day against those of its own model, and its standard error by RAID group."""
    slow_days = sum(row["is_slow"] for rows in models for row in rows)
    shares = []
    for rows in models:
        slow, other = ([row["value"] for row in rows if row["is_slow"] is which] for which in (True, False))
        shares.append(float(mannwhitneyu(slow, other, method="asymptotic").statistic) / len(slow) / len(other))
    slow_counts = [sum(row["is_slow"] for row in rows) for rows in models]
    share = float(sum(n * of for n, of in zip(slow_counts, shares, strict=True)) / slow_days)
    influence: dict[str, float] = defaultdict(float)
    for rows, own, slow_count in zip(models, shares, slow_counts, strict=True):
        slow, other = ([row["value"] for row in rows if row["is_slow"] is which] for which in (True, False))
        for row in rows:
            if row["is_slow"]:
                placement = sum((x < row["value"]) + (x == row["value"]) / 2 for x in other) / len(other)
                influence[row["raid_group_id"]] += (placement - share) / slow_days
            else:
                placement = sum((x > row["value"]) + (x == row["value"]) / 2 for x in slow) / len(slow)
                influence[row["raid_group_id"]] += slow_count / slow_days * (placement - own) / len(other)
    groups = len({row["raid_group_id"] for rows in models for row in rows if row["is_slow"]})
    is_varying = any(len({row["value"] for row in rows}) > 1 for rows in models)
    between_groups = sum(x * x for x in influence.values()) * groups / (groups - 1) if groups > 1 else 0.0
    by_chance = sum((n / slow_days) ** 2 * _chance(rows) for n, rows in zip(slow_counts, models, strict=True))
    variance = max(between_groups, by_chance)
    return {"effect": 2 * share - 1, "error": 2 * variance**0.5 if groups >= FEWEST and is_varying else None, "groups": groups,
            "slow_days": slow_days, "other_days": sum(not row["is_slow"] for rows in models for row in rows)}  # fmt: skip


def _chance(rows: list[Record]) -> float:
    """The variance of the mean place, from 0 to 1, of as many drives as are slow, drawn by chance."""
    ties = Counter(row["value"] for row in rows)
    drives = len({row["drive_id"] for row in rows if row["is_slow"]})
    return (1 - sum(n**3 for n in ties.values()) / len(rows) ** 3) / 12 / drives


WARNING_DAYS, HISTORY_DAYS, UNUSUAL = 7, 28, 0.01
COUNTS = (
    "warned_days", "right_days", "first_warned_days", "first_right_days", "onset_count", "caught_onset_count", "first_onset_count",
    "caught_first_onset_count",
)  # fmt: skip


def warnings(numbers: list[Record], compared: dict[tuple[Any, ...], Record]) -> dict[tuple[Any, ...], Record]:
    """health_warnings by (kind, rule, attribute, measure); numbers: those of `values`, compared: those of `comparison`."""
    days: dict[str, dict[date, bool]] = defaultdict(dict)
    for row in numbers:
        days[row["drive_id"]][row["day_utc"]] = row["is_slow"]
    kinds = {row["drive_id"]: row["kind"] for row in numbers}
    last = max(day for of in days.values() for day in of)
    found: dict[tuple[Any, ...], Record] = {}
    for kind in set(kinds.values()):
        of_kind = {drive: of for drive, of in days.items() if kinds[drive] == kind}
        history = {
            (drive, day)
            for drive, of in of_kind.items()
            for day in of
            if any(of.get(day - timedelta(days=back), False) for back in range(HISTORY_DAYS))
        }
        found[kind, "slow_history", None, None] = _caught(of_kind, history, last)
        for (of, scope, _, attribute, measure), row in compared.items():
            if of == kind and scope == "all" and row["is_different"]:
                mine = [each for each in numbers if (each["kind"], each["attribute"], each["measure"]) == (kind, attribute, measure)]
                found[kind, "attribute", attribute, measure] = _caught(of_kind, _unusual(mine, row["effect"]), last)
    return found


def _unusual(numbers: list[Record], effect: float) -> set[tuple[str, date]]:
    """Drive-days beyond what all but 1% of the other drive-days of their model show, in the direction of the effect."""
    warned = set()
    for model in {row["model"] for row in numbers}:
        of_model = [row for row in numbers if row["model"] == model]
        usual = [row["value"] * (1 if effect > 0 else -1) for row in of_model if not row["is_slow"]]
        if usual:
            limit = float(quantile(usual, 1 - UNUSUAL))
            warned |= {(row["drive_id"], row["day_utc"]) for row in of_model if row["value"] * (1 if effect > 0 else -1) > limit}
    return warned


def _caught(days: dict[str, dict[date, bool]], warned: set[tuple[str, date]], last: date) -> Record:
    """Value of warnings on these drive-days. days: by drive, whether it was slow on each day that is known of it."""
    counts: Counter[str] = Counter()
    for drive, of in days.items():
        for place, day in enumerate(known := sorted(of)):
            slow_before = any(of[other] for other in known[:place])
            if (drive, day) in warned and day <= last - timedelta(days=WARNING_DAYS):
                is_right = any(of.get(day + timedelta(days=ahead), False) for ahead in range(1, WARNING_DAYS + 1))
                is_first = not slow_before and not of[day]
                counts.update({"warned_days": 1, "right_days": is_right, "first_warned_days": is_first})
                counts.update({"first_right_days": is_first and is_right})
            if of[day] and place and not of[known[place - 1]]:
                is_caught = any((drive, day - timedelta(days=back)) in warned for back in range(1, WARNING_DAYS + 1))
                counts.update({"onset_count": 1, "caught_onset_count": is_caught, "first_onset_count": not slow_before})
                counts.update({"caught_first_onset_count": is_caught and not slow_before})
    return {name: counts[name] for name in COUNTS}

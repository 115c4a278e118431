"""health_comparison computed a second time, pair by pair: every slow drive-day against every other one of its model."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, timedelta
from typing import Any

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

"""What slow drives cost, computed the slow way: each tail hour once more, from the latencies that are left without its slowest drive.

Names as in reference.py.
"""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import datetime, timedelta
from fractions import Fraction

from .reference import HOUR, Fleet, Record, median, raid_io_count
from .study import effective_size, wilson

LOAD_FACTOR = 2
BUDGETS = {1.5: 0.05, 2.0: 0.02}


def week_of(h: datetime) -> datetime:
    """Monday 00:00 of the hour's ISO week."""
    day = datetime.combine(h.date(), datetime.min.time())
    return day - timedelta(days=day.weekday())


def tail_1_of(latencies: list[float]) -> float | None:
    """The largest over the median; None of fewer than three, or where the median is 0."""
    middle = median(latencies)
    return None if middle is None or len(latencies) < 3 or middle == 0 else max(latencies) / middle


def is_load(before: int, after: int) -> bool:
    """Whether a RAID group's I/Os changed by more than a slow drive is charged with."""
    return before > LOAD_FACTOR * after or after > LOAD_FACTOR * before


def counterfactuals(drive_hours: list[Record], raid_hours: list[Record]) -> list[Record]:
    """Every tail hour: its row of fct_raid_hours, its tail 1 without its slowest drive and without two, and the RIO before and after where
    the hour before was stable and both are known."""
    cells: dict[tuple[str, datetime], list[Record]] = defaultdict(list)
    for row in drive_hours:
        cells[row["raid_group_id"], row["hour_utc"]].append(row)
    result = []
    for hour in raid_hours:
        group, h = hour["raid_group_id"], hour["hour_utc"]
        if not hour["is_tail_hour"]:
            continue
        reporting = [row for row in cells[group, h] if row["slowdown"] is not None]
        order = sorted(reporting, key=lambda row: (-row["slowdown"], row["drive_id"].encode("utf-8")))
        assert order[0]["drive_id"] == hour["slowest_drive_id"]
        one, two = (tail_1_of([row["latency_us"] for row in order[removed:]]) for removed in (1, 2))
        is_known = hour["transition"] == "stable_to_tail" and hour["rio_degradation"] is not None
        ios = (raid_io_count(cells[group, h - HOUR]), hour["raid_io_count"]) if is_known else None
        result.append({**hour, "without_one": one, "without_two": two, "ios": ios})
    return result


def io_ratios(drive_hours: list[Record], raid_hours: list[Record]) -> dict[tuple[str, datetime], Fraction]:
    """By kind and week: RIO over that of the hour before, where RAID groups passed from stable to stable, both are known and the load
    stayed what it was."""
    cells: dict[tuple[str, datetime], list[Record]] = defaultdict(list)
    for row in drive_hours:
        cells[row["raid_group_id"], row["hour_utc"]].append(row)
    sums: dict[tuple[str, datetime], list[int]] = defaultdict(lambda: [0, 0])
    for hour in raid_hours:
        if hour["transition"] == "stable_to_stable" and hour["rio_degradation"] is not None:
            before = raid_io_count(cells[hour["raid_group_id"], hour["hour_utc"] - HOUR]) or 0
            if is_load(before, hour["raid_io_count"]):
                continue
            total = sums[hour["kind"], week_of(hour["hour_utc"])]
            total[0] += hour["raid_io_count"]
            total[1] += before
    return {key: Fraction(now, before) for key, (now, before) in sums.items() if before}


def mean(values: list[float]) -> float | None:
    """Of exact sums, rounded once before it is divided."""
    return float(sum(map(Fraction, values))) / len(values) if values else None


def fct_drive_costs(fleet: Fleet, drive_hours: list[Record], raid_hours: list[Record]) -> list[Record]:
    slow: dict[tuple[str, str, datetime], int] = defaultdict(int)
    for row in drive_hours:
        if row["is_slow"]:
            slow[row["drive_id"], row["raid_group_id"], week_of(row["hour_utc"])] += 1
    tails: dict[tuple[str, str, datetime], list[Record]] = defaultdict(list)
    for hour in counterfactuals(drive_hours, raid_hours):
        tails[hour["slowest_drive_id"], hour["raid_group_id"], week_of(hour["hour_utc"])].append(hour)
    ratios = io_ratios(drive_hours, raid_hours)
    result = []
    for (drive, group, week), slow_hours in slow.items():
        mine = tails[drive, group, week]
        judged = [hour for hour in mine if hour["without_one"] is not None]
        passages = [hour["ios"] for hour in mine if hour["ios"] is not None]
        drops = [ios for ios in passages if not is_load(*ios)]
        before, after = (sum(ios[place] for ios in drops) if drops else None for place in (0, 1))
        ratio = ratios.get((fleet.group_kind(group), week))
        result.append(
            {
                "drive_id": drive,
                "raid_group_id": group,
                "week_utc": week,
                "kind": fleet.kind(drive),
                "model": fleet.attribute(drive, "model"),
                "slow_hours": slow_hours,
                "tail_hours": len(mine),
                "judged_tail_hours": len(judged),
                "tail_hours_caused": sum(1 for hour in judged if hour["without_one"] < 2),
                "mean_tail_1": mean([hour["tail_1"] for hour in judged]),
                "mean_tail_1_without": mean([hour["without_one"] for hour in judged]),
                "load_hours": len(passages) - len(drops),
                "dropped_hours": len(drops),
                "io_count_before": before,
                "io_count_after": after,
                "rio_lost": None if not drops or ratio is None else float(math.floor(before * float(ratio) - after + 0.5)),
            }
        )
    return result


def added_up(costs: list[Record], *keys: str) -> list[Record]:
    """By the keys and the week."""
    parts: dict[tuple, list[Record]] = defaultdict(list)
    for row in costs:
        parts[*(row[key] for key in keys), row["week_utc"]].append(row)
    summed = ("slow_hours", "tail_hours", "judged_tail_hours", "tail_hours_caused", "dropped_hours")
    result = []
    for key, rows in parts.items():
        lost = [row["rio_lost"] for row in rows if row["rio_lost"] is not None]
        result.append(
            {
                **dict(zip((*keys, "week_utc"), key, strict=True)),
                "slow_drive_count": len({row["drive_id"] for row in rows}),
                **{name: sum(row[name] for row in rows) for name in summed},
                "rio_lost": sum(lost) if lost else None,
            }
        )
    return result


def fct_fleet_slo(raid_hours: list[Record]) -> list[Record]:
    """By week, kind and threshold: the valid RAID-hours below it, held against the budget of those that are not."""
    hours: dict[tuple[datetime, str], list[Record]] = defaultdict(list)
    for hour in raid_hours:
        hours[week_of(hour["hour_utc"]), hour["kind"]].append(hour)
    return [slo(week, kind, threshold, rows) for (week, kind), rows in hours.items() for threshold in BUDGETS]


def slo(week: datetime, kind: str, threshold: float, rows: list[Record]) -> Record:
    clusters: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        clusters[row["raid_group_id"]][0] += row["tail_1"] < threshold
        clusters[row["raid_group_id"]][1] += 1
    good, size, budget = sum(x for x, _ in clusters.values()), len(rows), BUDGETS[threshold]
    low, high = wilson(good / size, float(effective_size(good, size, [(x, n) for x, n in clusters.values()])))
    low, high = (0.0 if good == 0 else low), (1.0 if good == size else high)
    return {
        "week_utc": week,
        "kind": kind,
        "threshold": threshold,
        "raid_hours": size,
        "good_hours": good,
        "good_ratio": good / size,
        "good_ratio_low": low,
        "good_ratio_high": high,
        "budget_ratio": budget,
        "budget_used": float(size - good) / (budget * size),
        "verdict": "kept" if low >= 1 - budget else "missed" if high < 1 - budget else "open",
    }

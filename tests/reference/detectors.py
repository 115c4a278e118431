"""The detectors' verdicts computed the slow way, day by day and hour by hour, from rows of fct_drive_hours.

Each rule is written as its source has it: a state that is carried along, whole numbers for sums, sorted lists for quartiles. Nothing of the
project's own code is imported. Latencies in microseconds, hours and days in UTC.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import Any

Record = dict[str, Any]
DETECTORS = ("slow_2x", "slow_1_5x", "chronic", "hdfs_outlier", "zfs_sit_out", "tikv_slow_score", "iaso_aimd", "mean_3_sigma")
SAMPLE_DETECTORS = ("perseus",)
"""Who looks at samples within hours (perseus.py): drives without any are nothing to them."""
WINDOW_DAYS = RECENT_DAYS = 28


def verdicts(drive_hours: list[Record], raid_hours: list[Record], current_groups: dict[str, str | None]) -> list[Record]:
    """Rows of fct_detector_verdicts, without the evidence."""
    valid = [row for row in drive_hours if row["slowdown"] is not None]
    cells: dict[tuple[str, datetime], list[Record]] = defaultdict(list)
    for row in valid:
        cells[(row["raid_group_id"], row["hour_utc"])].append(row)
    found = [
        *threshold_verdicts("slow_2x", 2.0, valid),
        *threshold_verdicts("slow_1_5x", 1.5, valid),
        *chronic_verdicts(valid, raid_hours, current_groups),
        *greatest_of_day("hdfs_outlier", [outlier for rows in cells.values() for outlier in hdfs_outliers(rows)]),
        *sit_out_verdicts(cells),
        *score_verdicts(valid),
        *greatest_of_day("mean_3_sigma", [outlier for rows in cells.values() for outlier in sigma_outliers(rows)]),
    ]
    return [
        {"drive_id": drive, "detector": detector, "day_utc": day, "score": score, "is_flagged": is_flagged}
        for drive, detector, day, score, is_flagged in found
    ]


Verdict = tuple[str, str, date, float, bool]
Outlier = tuple[Record, float]


def greatest_of_day(detector: str, outliers: list[Outlier]) -> list[Verdict]:
    """A flag for every drive and day with an outlying hour."""
    greatest: dict[tuple[str, date], float] = {}
    for row, score in outliers:
        key = (row["drive_id"], row["hour_utc"].date())
        greatest[key] = max(score, greatest.get(key, score))
    return [(drive, detector, day, score, True) for (drive, day), score in greatest.items()]


def threshold_verdicts(detector: str, threshold: float, rows: list[Record]) -> list[Verdict]:
    return greatest_of_day(detector, [(row, row["slowdown"]) for row in rows if row["slowdown"] >= threshold])


def chronic_verdicts(valid: list[Record], raid_hours: list[Record], current_groups: dict[str, str | None]) -> list[Verdict]:
    """Days of the current group that are over, at whose end most of the drive's hours of 28 days were at 1.2 or more."""
    of_drive: dict[str, list[Record]] = defaultdict(list)
    for row in valid:
        of_drive[row["drive_id"]].append(row)
    hours_of: dict[str, list[datetime]] = defaultdict(list)
    for row in raid_hours:
        hours_of[row["raid_group_id"]].append(row["hour_utc"])
    found: list[Verdict] = []
    for drive, rows in of_drive.items():
        hours = hours_of[current_groups[drive] or ""]
        for day in sorted({hour.date() for hour in hours}):
            if max(hours) < datetime(day.year, day.month, day.day, 23):
                continue
            first = day - timedelta(days=WINDOW_DAYS - 1)
            seen = [row["slowdown"] for row in rows if first <= row["hour_utc"].date() <= day]
            high = sum(1 for slowdown in seen if slowdown >= 1.2)
            if 2 * high > len(seen):
                possible = sum(1 for hour in hours if first <= hour.date() <= day)
                found.append((drive, "chronic", day, high / len(seen), 2 * len(seen) >= possible))
    return found


def hdfs_outliers(rows: list[Record]) -> list[Outlier]:
    """OutlierDetector.getOutlierMetrics, with the low threshold of 5 ms."""
    if len(rows) < 5:
        return []
    middle = statistics.median(row["latency_us"] for row in rows)
    deviation = statistics.median(abs(row["latency_us"] - middle) for row in rows) * 1.4826
    limit = max(5000.0, middle * 3, middle + 3 * deviation)
    return [(row, row["latency_us"] / limit) for row in rows if row["latency_us"] > limit]


def sigma_outliers(rows: list[Record]) -> list[Outlier]:
    """More than three standard deviations of the group above its mean, in whole nanoseconds."""
    whole = [min(math.floor(row["latency_us"] * 1000 + 0.5) if row["latency_us"] < 1e12 else 10**12, 10**12) for row in rows]
    n, total = len(whole), sum(whole)
    spread = n * sum(value * value for value in whole) - total * total
    return [
        (row, float(n * value - total) / math.sqrt(spread))
        for row, value in zip(rows, whole, strict=True)
        if n * value > total and (n * value - total) ** 2 > 9 * spread
    ]


def sit_out_verdicts(cells: dict[tuple[str, datetime], list[Record]]) -> list[Verdict]:
    """vdev_child_slow_outlier, an hour for a check."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    rises: dict[str, int] = defaultdict(int)
    greatest: dict[tuple[str, date], int] = {}
    for group, hour in sorted(cells, key=lambda cell: cell[1]):
        rows = cells[(group, hour)]
        children = len(rows)
        latencies = sorted(row["latency_us"] for row in rows)
        if children < 5:
            continue
        q1 = statistics.median(latencies[: children // 2])
        q3 = statistics.median(latencies[(children + 1) // 2 :])
        spread = max(q3 - q1, q1 / 4)
        fence = q3 + 50 * spread
        if not latencies[-1] > fence:
            continue
        slowest = min(row["drive_id"].encode() for row in rows if row["latency_us"] == latencies[-1]).decode()
        rise = int(max(1, min((latencies[-1] - fence) / spread, 5)))
        rises[group] += rise
        if rises[group] >= children:
            rises[group] = 0
            for drive in counts[group]:
                counts[group][drive] = max(0, counts[group][drive] - 2)
        counts[group][slowest] += rise
        key = (slowest, hour.date())
        greatest[key] = max(counts[group][slowest], greatest.get(key, 0))
        if counts[group][slowest] > 20:
            counts[group].clear()
    return [(drive, "zfs_sit_out", day, float(count), count > 20) for (drive, day), count in greatest.items()]


def score_verdicts(valid: list[Record]) -> list[Verdict]:
    """TiKV's score and the one like IASO's, from one day with a slowdown to the next."""
    of_drive: dict[str, dict[date, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in valid:
        of_drive[row["drive_id"]][row["hour_utc"].date()].append(row["slowdown"])
    found: list[Verdict] = []
    for drive, days in of_drive.items():
        # what they were after the last slow day, and the days since
        tikv, iaso, quiet = 1.0, 0.0, 0
        for day, slowdowns in sorted(days.items()):
            slow = sum(1 for slowdown in slowdowns if slowdown >= 2.0)
            quiet = 0 if slow else quiet + 1
            tikv_now = max(1.0, tikv - quiet * 5.0)
            iaso_now = iaso * 0.5**quiet if iaso * 0.5**quiet >= 1 else 0.0
            if slow:
                before = quiet_before(days, day)
                tikv_now = tikv = min(100.0, max(1.0, tikv - before * 5.0) * (1.0 + min(slow / len(slowdowns), 0.1) / 0.1))
                rested = iaso * 0.5**before if iaso * 0.5**before >= 1 else 0.0
                iaso_now = iaso = min(100.0, rested + 5 * slow)
            if tikv_now > 1:
                found.append((drive, "tikv_slow_score", day, tikv_now, tikv_now >= 80))
            if iaso_now > 0:
                found.append((drive, "iaso_aimd", day, iaso_now, iaso_now >= 50))
    return found


def quiet_before(days: dict[date, list[float]], day: date) -> int:
    """Days with a slowdown, none of them slow, right before a day."""
    quiet = 0
    for earlier in sorted((other for other in days if other < day), reverse=True):
        if max(days[earlier]) >= 2.0:
            return quiet
        quiet += 1
    return quiet


def agreement(
    found: list[Record], drive_hours: list[Record], raid_hours: list[Record], sampled: Iterable[tuple[str, date]] = ()
) -> list[Record]:
    """Rows of detector_agreement; sampled: drives and the days on which they have samples."""
    last = max((row["hour_utc"].date() for row in raid_hours), default=None)
    spans: list[tuple[str, date]] = [("all", date.min)]
    spans.append(("last_28_days", last - timedelta(days=RECENT_DAYS - 1) if last else date.max))
    result = []
    for span, first in spans:
        flagged = {
            detector: {row["drive_id"] for row in found if row["detector"] == detector and row["is_flagged"] and row["day_utc"] >= first}
            for detector in (*DETECTORS, *SAMPLE_DETECTORS)
        }
        seen = {row["drive_id"] for row in drive_hours if row["slowdown"] is not None and row["hour_utc"].date() >= first}
        seen = seen.union(*flagged.values())
        with_samples = {drive for drive, day in sampled if day >= first}
        for one, other in combinations(sorted((*DETECTORS, *SAMPLE_DETECTORS)), 2):
            asked = with_samples if {one, other} & set(SAMPLE_DETECTORS) else seen
            a, b, n = flagged[one] & asked, flagged[other] & asked, len(asked)
            chance = len(a) * len(b) + (n - len(a)) * (n - len(b))
            result.append(
                {
                    "span": span,
                    "detector": one,
                    "other_detector": other,
                    "drive_count": n,
                    "flagged_count": len(a),
                    "other_flagged_count": len(b),
                    "both_count": len(a & b),
                    "either_count": len(a | b),
                    "jaccard": len(a & b) / len(a | b) if a | b else None,
                    "kappa": (n * (n - len(a ^ b)) - chance) / (n * n - chance) if n * n != chance else None,
                }
            )
    return result

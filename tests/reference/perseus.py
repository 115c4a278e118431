"""Perseus' verdicts computed the slow way, from the 15-second samples of its own layout.

Numpy holds the numbers; z-scores, principal components, DBSCAN and the regression are written out here, and nothing of the project's own
code is imported. Throughput in bytes a second, latency in microseconds, days and instants in UTC.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from scipy.stats import t

Record = dict[str, Any]
Points = np.ndarray[Any, Any]
Sample = tuple[str, str, int, float | None, float | None]
"""Host, disk, end of its 15 seconds (unix), throughput and latency, either of which may be unknown."""

EPS, NEIGHBOURS, DEGREE, LEVEL, MOST_SAMPLES = 0.125, 5, 4, 0.95, 8640
WINDOW = timedelta(minutes=5)
DAYS, SLOW_RISK = 15, 50


def verdicts(samples: Iterable[Sample], seconds: int) -> list[Record]:
    """Rows of fct_detector_verdicts of the detector, without the evidence, for samples of this number of seconds."""
    risks: dict[str, dict[date, int]] = defaultdict(dict)
    for drive, day, ratios in drive_days(samples, seconds):
        risks[drive][day] = risk(len(ratios), sum(ratios) / len(ratios) if ratios else 0.0)
    found = []
    for drive, days in risks.items():
        for day, today in days.items():
            score = sum(of for other, of in days.items() if day - timedelta(days=DAYS) < other <= day)
            if today:
                found.append(
                    {"drive_id": drive, "detector": "perseus", "day_utc": day, "score": float(score), "is_flagged": score >= SLOW_RISK}
                )
    return found


def risk(events: int, ratio: float) -> int:
    """Risk of a day with this number of events and this mean ratio."""
    if events < 6:
        return 0
    column = 0 if events >= 24 else 1 if events >= 12 else 2
    if ratio >= 5:
        return (100, 25, 10)[column]
    return (25, 10, 5)[column] if ratio >= 2 else (10, 5, 1)[column]


def drive_days(samples: Iterable[Sample], seconds: int) -> list[tuple[str, date, list[float]]]:
    """Each drive's days with samples, and the ratios of their events."""
    groups: dict[tuple[str, date], list[tuple[str, datetime, float, float]]] = defaultdict(list)
    for drive, host, begin, throughput, latency in totals(samples, seconds):
        groups[(host, begin.date())].append((drive, begin, throughput, latency))
    found = []
    for (_, day), rows in sorted(groups.items()):
        rows.sort(key=lambda row: (row[0].encode(), row[1]))
        if len({drive for drive, *_ in rows}) < 3:
            continue
        x, y = (np.array([row[place] for row in rows]) for place in (2, 3))
        bound = upper_bound(x, y)
        if bound is None:
            continue
        windows: dict[tuple[str, datetime], list[float]] = defaultdict(list)
        for (drive, begin, *_), ratio, limit in zip(rows, y / bound, bound, strict=True):
            if limit > 0:
                windows[(drive, begin - (begin - datetime.min) % WINDOW)].append(float(ratio))
        of_drive: dict[str, list[float]] = {}
        for (drive, _), ratios in windows.items():
            middle = statistics.median(ratios)
            upper = round(statistics.median(ratio for ratio in ratios if ratio >= middle), 6)
            of_drive.setdefault(drive, []).extend([upper] if upper > 1 else [])
        found += [(drive, day, ratios) for drive, ratios in of_drive.items()]
    return found


def totals(samples: Iterable[Sample], seconds: int) -> list[tuple[str, str, datetime, float, float]]:
    """Drive, host, begin, throughput and latency of every part of an hour of which half was seen, as `--resolution` keeps them."""
    parts: dict[tuple[str, str, int], list[tuple[float | None, float | None]]] = defaultdict(list)
    for host, disk, end, throughput, latency in samples:
        parts[(host, f"{host}/{disk}", (end - 15) // seconds)].append((throughput, latency))
    found = []
    for (host, drive, part), values in parts.items():
        latencies = [latency for _, latency in values if latency is not None]
        moved = [throughput * 15 for throughput, _ in values if throughput is not None]
        coverage = len(latencies) / (seconds / 15)
        if moved and coverage >= 0.5:
            begin = datetime.fromtimestamp(part * seconds, UTC).replace(tzinfo=None)
            found.append((drive, host, begin, round(sum(moved)) / (seconds * coverage), sum(latencies) / len(latencies)))
    return found


def upper_bound(x: Points, y: Points) -> Points | None:
    """For every sample of a RAID group's day the upper end of the prediction interval of its latency at its throughput."""
    if len(x) < NEIGHBOURS:
        return None
    fits = min(len(x), MOST_SAMPLES)
    drawn = [place * len(x) // fits for place in range(fits)]
    points = np.column_stack([x[drawn], y[drawn]])
    deviation = points.std(axis=0)
    scores = (points - points.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    labels = dbscan(scores @ np.linalg.eigh(scores.T @ scores)[1])
    sizes = [(labels == label).sum() for label in range(labels.max() + 1)]
    if not sizes:
        return None
    usual = points[labels == int(np.argmax(sizes))]
    low, high = usual[:, 0].min(), usual[:, 0].max()

    def terms(at: Points) -> Points:
        # Chebyshev's polynomials over the throughputs of the cluster: the same curves, in another basis
        unit = 2 * (at - low) / (high - low) - 1 if high > low else np.zeros(len(at))
        return np.polynomial.chebyshev.chebvander(unit, DEGREE)

    design = terms(usual[:, 0])
    coefficients, _, rank, _ = np.linalg.lstsq(design, usual[:, 1], rcond=None)
    freedom = len(usual) - int(rank)
    if freedom < 1:
        return None
    variance = float(((usual[:, 1] - design @ coefficients) ** 2).sum()) / freedom
    inverse = np.linalg.pinv(design.T @ design)
    at = terms(x)
    leverage = np.einsum("ij,jk,ik->i", at, inverse, at)
    return at @ coefficients + float(t.ppf((1 + LEVEL) / 2, freedom)) * np.sqrt(variance * (1 + leverage))


def dbscan(points: Points) -> Points:
    """Labels from 0, in the order of the first point inside each cluster; -1 for noise."""
    order = np.argsort(points[:, 0], kind="stable")
    along = points[order, 0]

    def near(place: int) -> Points:
        begin, end = np.searchsorted(along, [points[place, 0] - 1.001 * EPS, points[place, 0] + 1.001 * EPS])
        some = order[begin:end]
        return some[((points[some] - points[place]) ** 2).sum(axis=1) <= EPS**2]

    neighbours = [near(place) for place in range(len(points))]
    labels = np.full(len(points), -1)
    label = 0
    for first in range(len(points)):
        if labels[first] >= 0 or len(neighbours[first]) < NEIGHBOURS:
            continue
        labels[first] = label
        waiting = [first]
        while waiting:
            place = waiting.pop()
            if len(neighbours[place]) >= NEIGHBOURS:
                for other in neighbours[place]:
                    if labels[other] < 0:
                        labels[other] = label
                        waiting.append(int(other))
        label += 1
    return labels

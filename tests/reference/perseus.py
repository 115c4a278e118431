"""Perseus' bound of a RAID group's day computed the slow way.

Numpy holds the numbers; z-scores, principal components, DBSCAN and the regression are written out here, and nothing of the project's own
code is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t

Points = np.ndarray[Any, Any]

EPS, NEIGHBOURS, DEGREE, LEVEL, MOST_SAMPLES = 0.125, 5, 4, 0.95, 8640


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

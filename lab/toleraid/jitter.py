"""Base latencies: how long a block takes whose drive is not slow, in multiples of the median. They vary with the request and the drive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lab.toleraid.policies import Times

SHARED = 1 / 3
"""How much of the variance the drives of a request share."""

WIDEST = 6.5
"""Standard deviations that the table of a normal distribution reaches."""

STEPS = 1 << 13


def normal_cdf(x: Times) -> Times:
    """Share of a standard normal distribution at or below each value. NumPy has no erf."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x.ravel()]).reshape(x.shape)


@dataclass(frozen=True)
class Jitter:
    """Quantiles of the base latency, linear in between: `levels` from 0 to 1, and the base latency at each."""

    levels: tuple[float, ...]
    base_latencies: tuple[float, ...]

    @cached_property
    def _table(self) -> tuple[Times, Times]:
        """Standard deviations of a normal distribution, and the base latency of the same rank."""
        deviations = np.linspace(-WIDEST, WIDEST, STEPS + 1)
        return deviations, np.interp(normal_cdf(deviations), self.levels, self.base_latencies)

    def draw(self, random: np.random.Generator, blocks: int, requests: int) -> Times:
        """Base latencies: a row for each block, a column for each request."""
        shared, own = random.standard_normal(requests), random.standard_normal((blocks, requests))
        own *= math.sqrt(1 - SHARED)
        own += math.sqrt(SHARED) * shared
        return np.interp(own, *self._table)


PAPER_JITTER = Jitter(
    (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1),
    (0.57, 0.723, 0.815, 0.868, 0.898, 0.926, 0.949, 0.966, 0.987, 1.045, 1.078, 1.111, 1.194, 1.293, 1.441, 1.585, 1.690, 1.999),
)
"""Jitter of the drives in the paper's test RAID, fitted to its Figure 12."""

"""How slow each drive is in a request: the slowdowns of its N data blocks and of its parities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab.toleraid.jitter import normal_cdf
from lab.toleraid.policies import Times
from lab.toleraid.requests import Requests


@dataclass(frozen=True)
class Drawn:
    """Slowdowns of some requests: a row for each data block and each parity, a column for each request."""

    data: Times
    parity: Times


class Distribution(Protocol):
    """Distribution that slowdowns are drawn from."""

    def bound(self, data_drives: int, parity: int, requests: Requests, random: np.random.Generator) -> Source:
        """The same for one RAID group and its requests."""
        ...


class Source(Protocol):
    """Draws the slowdowns of requests `first` to `last`, which are whole numbers. shift: see Policies.serve()."""

    def __call__(self, random: np.random.Generator, first: int, last: int, shift: NDArray[np.int64] | None) -> Drawn: ...


# --------------------------------------------------------------------------------------------------------------------
# Measured slowdowns


@dataclass(frozen=True)
class Vectors:
    """Slowdowns that were measured together, such as those of the drives of a RAID-hour. A request draws one vector.

    values: the vectors one after the other. widths: how many values each has. weights: how likely each is; None: all the same.
    kind: `joint`: each vector is sorted, the largest first, and its N largest are placed at random on the data drives; `placed`: it says
    itself which drive has which; `independent`: vectors of one value, and each drive draws its own.
    """

    kind: str
    values: Times
    widths: NDArray[np.int64]
    weights: Times | None = None

    def __len__(self) -> int:
        return len(self.widths)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each vector begins."""
        offsets: NDArray[np.int64] = np.cumsum(self.widths) - self.widths
        return offsets

    @cached_property
    def _summed_weights(self) -> Times:
        assert self.weights is not None
        summed: Times = np.cumsum(self.weights)
        return summed

    def pick(self, random: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Numbers of vectors, as likely as they weigh."""
        if self.weights is None:
            return random.integers(0, len(self), shape)
        picked: NDArray[np.int64] = np.searchsorted(self._summed_weights, random.random(shape) * self._summed_weights[-1], side="right")
        return picked.clip(max=len(self) - 1)

    def bound(self, data_drives: int, parity: int, requests: Requests, random: np.random.Generator) -> Source:
        """See Distribution. A vector is drawn whatever the time."""
        draw = {"joint": self._draw_joint, "placed": self._draw_placed, "independent": self._draw_independent}[self.kind]
        return lambda random, first, last, shift: draw(random, data_drives, parity, last - first)

    def _draw_independent(self, random: np.random.Generator, data_drives: int, parity: int, count: int) -> Drawn:
        rows = self.values[self.pick(random, (data_drives + parity, count))]
        return Drawn(rows[:data_drives], rows[data_drives:])

    def _draw_placed(self, random: np.random.Generator, data_drives: int, parity: int, count: int) -> Drawn:
        begin = self.offsets[self.pick(random, count)]
        rows = self.values[begin + np.arange(data_drives + parity)[:, None]]
        return Drawn(rows[:data_drives], rows[data_drives:])

    def _draw_joint(self, random: np.random.Generator, data_drives: int, parity: int, count: int) -> Drawn:
        picked = self.pick(random, count)
        begin, width = self.offsets[picked], self.widths[picked]
        ranks = np.empty((data_drives + parity, count), dtype=np.int64)
        ranks[:data_drives] = np.arange(data_drives)[:, None]
        ranks[data_drives:] = _others(random, width - data_drives, parity) + data_drives
        is_missing = ranks >= width
        values = self.values[begin + np.where(is_missing, 0, ranks)]
        if is_missing.any():
            (role, request) = np.nonzero(is_missing)
            values[role, request] = self._lower(random, begin[request], width[request])
        return Drawn(in_any_order(random, values[:data_drives]), values[data_drives:])

    def _lower(self, random: np.random.Generator, begin: NDArray[np.int64], width: NDArray[np.int64]) -> Times:
        """Slowdowns of drives that the hour has not: one of its own below its three largest, else 1."""
        has_lower = width > 3
        rank = 3 + (random.random(len(width)) * (width - 3)).astype(np.int64)
        return np.where(has_lower, self.values[begin + np.where(has_lower, rank, 0)], 1.0)


def _others(random: np.random.Generator, size: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """A row for each of `count` numbers below `size`, all different; at least `size` where there are fewer."""
    first = (random.random(len(size)) * np.maximum(size, 1)).astype(np.int64)
    rows = [np.where(size >= 1, first, size.clip(0))]
    if count == 2:
        step = 1 + (random.random(len(size)) * np.maximum(size - 1, 1)).astype(np.int64)
        rows.append(np.where(size >= 2, (first + step) % np.maximum(size, 1), np.maximum(size, 0) + 1))
    return np.array(rows)


def in_any_order(random: np.random.Generator, rows: Times) -> Times:
    """The values of each column in a random order."""
    return np.ascontiguousarray(random.permuted(np.ascontiguousarray(rows.T), axis=1).T)


def joint(vectors: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> Vectors:
    """Vectors of slowdowns measured together; which drive had which does not matter."""
    return _vectors("joint", [sorted(vector, reverse=True) for vector in vectors], weights)


def placed(vectors: Sequence[Sequence[float]]) -> Vectors:
    """Vectors in the order d1 to dN, P, Q."""
    return _vectors("placed", vectors, None)


def independent(slowdowns: Sequence[float], weights: Sequence[float] | None = None) -> Vectors:
    """Slowdowns of single drives."""
    return _vectors("independent", [[value] for value in slowdowns], weights)


def _vectors(kind: str, vectors: Sequence[Sequence[float]], weights: Sequence[float] | None) -> Vectors:
    return Vectors(
        kind,
        np.array([value for vector in vectors for value in vector], dtype=np.float64),
        np.array([len(vector) for vector in vectors], dtype=np.int64),
        None if weights is None else np.array(weights, dtype=np.float64),
    )


# --------------------------------------------------------------------------------------------------------------------
# The paper's distributions


@dataclass(frozen=True)
class Rare:
    """The paper's disks (Figure 12a): in 1.5% of requests some drive is at least twice as slow, because one is or because several are.

    levels, slowdowns: the distribution of one drive's slowdown. Drives of a request are as restless as each other: each has exp(w) z, w
    shared and z its own, both normal, and the slowdown of that rank.
    """

    levels: Times
    slowdowns: Times
    width: int = 12

    BELOW = ((0.0, 0.3), (0.02, 0.7), (0.05, 0.8), (0.10, 0.9), (0.30, 0.97), (0.50, 1.0), (0.90, 1.1), (0.97, 1.2))
    ABOVE = ((0.9999, 9.0), (0.99999, 30.0))

    @classmethod
    def of_curve(cls, curve: Sequence[tuple[float, float]]) -> Rare:
        """From the printed part of the paper's curve: slowdown and share of drive-hours up to it, upwards; the ends are set."""
        points = [*cls.BELOW, *((level, slowdown) for slowdown, level in curve if cls.BELOW[-1][0] < level < cls.ABOVE[0][0]), *cls.ABOVE]
        return cls(np.array([level for level, _ in points]), np.array([slowdown for _, slowdown in points]))

    @cached_property
    def _table(self) -> tuple[Times, Times]:
        """Values of exp(w) z, and the slowdown of the same rank. More densely where ranks change fast."""
        values = np.sinh(np.linspace(-8.0, 8.0, (1 << 13) + 1))
        w = np.linspace(-6.0, 6.0, 193)
        weight = np.exp(-w * w / 2)
        z = np.linspace(-9.0, 9.0, (1 << 14) + 1)
        share = np.interp(values[:, None] * np.exp(-w), z, normal_cdf(z)) @ (weight / weight.sum())
        return values, np.interp(share, self.levels, self.slowdowns)

    def bound(self, data_drives: int, parity: int, requests: Requests, random: np.random.Generator) -> Source:
        """See Distribution. A vector is drawn whatever the time."""
        width = max(self.width, data_drives + parity)

        def draw(random: np.random.Generator, first: int, last: int, shift: NDArray[np.int64] | None) -> Drawn:
            count = last - first
            restless = random.standard_normal((count, width))
            restless *= np.exp(random.standard_normal((count, 1)))
            restless.sort(axis=1)
            # the largest are placed on the data drives; the parities are any of the others
            data = restless[:, width - data_drives :]
            others = _others(random, np.full(count, width - data_drives), parity)
            values = np.concatenate([data, restless[np.arange(count)[:, None], others.T]], axis=1)
            slow = np.interp(values.T, *self._table)
            return Drawn(in_any_order(random, slow[:data_drives]), slow[data_drives:])

        return draw


@dataclass(frozen=True)
class Periodic:
    """The paper's SSDs (Figure 12b): each drive is slow for 3 to 6 minutes every 2 to 3 hours, one drive after the other."""

    slowdown: float = 5.0
    least_minutes: float = 3.0
    most_minutes: float = 6.0
    least_period_minutes: float = 120.0
    most_period_minutes: float = 180.0
    power: float = 17 / 3
    warm_up_hours: float = 20.0

    def bound(self, data_drives: int, parity: int, requests: Requests, random: np.random.Generator) -> Source:
        """See Distribution. One schedule is drawn for all requests."""
        drives = data_drives + parity
        begin = -3600 * self.warm_up_hours
        span = requests.times[-1] - begin
        least, most = self.least_period_minutes * 60 / drives, self.most_period_minutes * 60 / drives
        count = math.ceil(span / least) + 1
        starts = begin + np.cumsum(random.uniform(least, most, count))
        length = self.most_minutes - self.least_minutes
        ends = starts + 60 * (self.least_minutes + length * random.random(count) ** self.power)
        turns = random.permutation(drives)

        def draw(random: np.random.Generator, first: int, last: int, shift: NDArray[np.int64] | None) -> Drawn:
            times = requests.times[first:last]
            slow = np.ones((drives, last - first))
            for turn, drive in enumerate(turns):
                window = np.searchsorted(starts[turn::drives], times, side="right") - 1
                is_slow = (window >= 0) & (times < ends[turn::drives][window])
                role = drive if shift is None else (drive - shift) % drives
                slow[role, np.arange(last - first)] = np.where(is_slow, self.slowdown, 1.0)
            return Drawn(slow[:data_drives], slow[data_drives:])

        return draw


def parameters(distribution: Rare | Periodic) -> Mapping[str, ArrayLike]:
    """Parameters of a distribution without vectors."""
    if isinstance(distribution, Periodic):
        return dict(vars(distribution))
    return {"width": distribution.width, "levels": distribution.levels.tolist(), "slowdowns": distribution.slowdowns.tolist()}

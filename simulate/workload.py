"""Load of the clients on each group and drive: I/O rates, their rhythm, hot spots, I/O sizes.

Rates are I/Os per second and drive. Group arrays are float32 of shape (hours, groups).
"""

import math
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from simulate.groups import HOURS_PER_YEAR, IDLE_GROUP_SHARE, LEAST_EXTRA_SIZE, Group
from simulate.parameters import Kind, KindParameters
from simulate.slowness import moments
from simulate.streams import Dealer, Purpose, Sequence, Trait, normal, stream

Floats = npt.NDArray[np.float32]
Spot = tuple[int, float, float, float, float]
"""Member index, from, to, rate factor, log of the latency factor."""

# levels that no ratio shows
RATE_MEDIAN_IOPS: dict[Kind, float] = {"disk": 18.0, "ssd": 220.0}
"""Median over groups of a drive's mean I/O rate."""
CAPACITY_IOPS: dict[Kind, float] = {"disk": 700.0, "ssd": 9000.0}
"""I/O rate at which a drive saturates."""
IO_BLOCKS_MEDIAN: dict[Kind, float] = {"disk": 6.0, "ssd": 8.0}
"""Median I/O size, blocks of 4096 bytes."""
READ_ODDS: dict[Kind, float] = {"disk": math.log(0.58 / 0.42), "ssd": math.log(0.65 / 0.35)}
"""Mean log odds that an I/O is a read."""
PEAK_LOCAL_HOUR = 14
WEEKEND_FACTOR = 0.65
"""Rate on Saturday and Sunday over the rate on a weekday."""
READ_SHARE_SPREAD = 0.7
IO_BLOCKS_SIGMA = 0.55
DAILY_AMPLITUDE = 0.42
"""Log amplitude of the daily rhythm, peak at PEAK_LOCAL_HOUR."""
HOUR_RATE_MEMORY = 0.72
"""A group keeps this share of its deviation from its rhythm to the next hour."""
IDLE_MEAN_HOURS = 0.5
IDLE_IOS_PER_HOUR = 7.0
"""I/Os per drive in an idle hour."""
SMALL_BURST_SIGMA = 0.3
"""Log spread of the extra rate of small batch jobs."""
HOT_SPOT_SIGMA = 1.2
"""Log spread of the length of a hot spot."""
HOT_GROUP_SIGMA: dict[Kind, float] = {"disk": 1.8, "ssd": 1.2}
"""Log spread over groups of the rate of hot spots."""
HOT_DRIVE_POWER: dict[Kind, float] = {"disk": 8.0, "ssd": 3.0}
"""Hot spots keep to a few drives of a group: the drive at rank r of n gets them as r/n to 1/this less 1."""
LEAST_SLOWED = 0.05
"""Least extra latency of a hot spot that slows its drive (ratio); log-uniform from there."""
HOT_SPOT_RANKS = (0.03, 0.262, 0.452, 0.64, 0.806, 0.906, 0.97)
"""Ranks (0..1) of the latencies of `hot_spot_latencies`; log-linear between, the first and last beyond."""
HOT_SPOTS_OF_LARGE_IO = 0.35
"""Who reads and writes in large pieces streams: fewer hot spots (ratio)."""
LEAST_EXTRA = 0.3
"""A hot spot is at least this much over an even share."""


@dataclass
class GroupWorkload:
    """The workload of one group over the span."""

    rate_iops: Floats  # per hour, per drive
    read_share: Floats  # per hour
    io_blocks: float  # mean I/O size, blocks of 4096 bytes
    hot_spots: list[Spot] = field(default_factory=list)


def group_workload(
    group: Group, p: KindParameters, dealer: Dealer, start: datetime, hours: int, loads: list[tuple[float, float, float]]
) -> GroupWorkload:
    """Draw the workload of `group`; `loads` are (from, to, factor) of rebuilds and scrubs, hours since the start."""
    seed = dealer.seed
    rng = stream(seed, group.kind, group.ordinal, Purpose.WORKLOAD)
    level = RATE_MEDIAN_IOPS[group.kind] * group.rate_factor
    odds = READ_ODDS[group.kind] + READ_SHARE_SPREAD * rng.standard_normal()
    io_blocks = min(max(IO_BLOCKS_MEDIAN[group.kind] * math.exp(IO_BLOCKS_SIGMA * rng.standard_normal()), 1.0), 64.0)
    amplitude = DAILY_AMPLITUDE * (0.5 + rng.random())

    hour = np.arange(hours) + start.hour + group.utc_offset_hours
    local_hour = hour % 24
    weekday = (start.weekday() + hour // 24) % 7
    log_rate = amplitude * np.cos((local_hour - PEAK_LOCAL_HOUR) * (2 * math.pi / 24))
    log_rate = log_rate + np.where(weekday >= 5, math.log(WEEKEND_FACTOR), 0.0) + _wander(rng, p, hours)
    rate = level * np.exp(log_rate)
    # a stream each, and more draws than needed: another rate or length leaves the other draws alone
    whens, factors, lengths = (stream(seed, group.kind, group.ordinal, Purpose.WORKLOAD, 1 + i) for i in range(3))
    most = int(2 * p.burst_rate_per_hour * hours) + 50
    at = np.cumsum(whens.standard_exponential(most)) / max(p.burst_rate_per_hour, 1e-12)
    z = factors.standard_normal(most)
    factor = 1 + p.burst_factor_median * np.exp(p.burst_factor_sigma * z)
    if p.small_burst_share_extra:
        share, extra = p.small_burst_share_extra
        is_small = stream(seed, group.kind, group.ordinal, Purpose.WORKLOAD, 6).random(most) < share
        factor = np.where(is_small, 1 + extra * np.exp(SMALL_BURST_SIGMA * z), factor)
    bursts = np.stack([at, at + p.burst_mean_hours * lengths.standard_exponential(most), factor], axis=1)
    _load(rate, np.concatenate([bursts, np.reshape(loads, (-1, 3))]))
    # clients are held back by a group that is full
    rate = np.minimum(rate, 0.9 * CAPACITY_IOPS[group.kind])
    idle = stream(seed, group.kind, group.ordinal, Purpose.WORKLOAD, 4)
    idle_share = p.idle_hour_share / IDLE_GROUP_SHARE[group.kind] if group.is_ever_idle else 0.0
    for since in moments(idle, idle_share / (1 + IDLE_MEAN_HOURS), 0, hours):
        # whole hours in which only the array itself asks, a few I/Os each: what they take on average says little
        rate[int(since) : int(since) + 1 + int(IDLE_MEAN_HOURS * idle.standard_exponential())] = IDLE_IOS_PER_HOUR / 3600
    read_share = 1 / (1 + np.exp(-(odds + 0.3 * rng.standard_normal(hours))))
    made = GroupWorkload(rate.astype(np.float32), read_share.astype(np.float32), io_blocks)
    made.hot_spots = _spots(stream(seed, group.kind, group.ordinal, Purpose.WORKLOAD, 5), dealer, p, group, hours)
    return made


def _wander(rng: np.random.Generator, p: KindParameters, hours: int) -> npt.NDArray[np.float64]:
    """A group's deviation from its rhythm: each hour keeps a share of the last one's."""
    shocks = rng.standard_normal(hours)
    memory, fresh = HOUR_RATE_MEMORY, math.sqrt(1 - HOUR_RATE_MEMORY**2)
    values, last = np.empty(hours), shocks[0] if hours else 0.0
    for i, shock in enumerate(shocks.tolist()):
        last = memory * last + fresh * shock if i else shock
        values[i] = last
    return values * p.hour_rate_sigma


def _load(rate: npt.NDArray[np.float64], loads: npt.NDArray[np.float64]) -> None:
    """Multiply the rate by each load (from, to, factor); an hour covered in part gets its part."""
    since, until, factor = loads.T
    first, last = np.maximum(np.floor(since), 0), np.minimum(np.ceil(until), len(rate))
    counts = np.maximum(last - first, 0).astype(np.int64)
    of = np.repeat(np.arange(len(loads)), counts)
    hour = (first[of] + np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)).astype(np.int64)
    covered = np.minimum(hour + 1, until[of]) - np.maximum(hour, since[of])
    np.multiply.at(rate, hour, 1 + (factor[of] - 1) * covered)


def _spots(rng: np.random.Generator, dealer: Dealer, p: KindParameters, group: Group, hours: int) -> list[Spot]:
    """Stretches during which one drive gets more than its share: member index, from, to, rate factor, log latency factor.

    Data requested again and again is often in the drive's cache, or lies close together.
    """
    width = len(group.members)
    made: list[tuple[int, float, float, float, float]] = []
    order = rng.permutation(width)
    sigma = HOT_GROUP_SIGMA[group.kind]
    rate = p.hot_spot_rate_per_drive_year * math.exp(sigma * normal(dealer.deal(Trait.HOT_GROUP)[0]) - sigma**2 / 2)
    count = dealer.count(Trait.HOT_SPOTS, 0, rate / HOURS_PER_YEAR * width * hours)
    if p.hot_spot_latencies:
        return _apart(rng, dealer, p, group, count, hours)
    cached_share, cached_factor, cached_sigma = p.hot_spot_cached
    shapes = Sequence(dealer.deal(Trait.HOT_SPOT, 0, 3))
    for _ in range(count):
        extra_u, latency_u, length_u = shapes.next()
        since = hours * float(rng.random())
        until = since + p.hot_spot_median_hours * math.exp(HOT_SPOT_SIGMA * normal(length_u))
        extra = LEAST_EXTRA * (1 - extra_u) ** (-1 / p.hot_spot_exponent)
        index = int(order[int(width * rng.random() ** HOT_DRIVE_POWER[group.kind])])
        if p.hot_spot_slowed:
            if any(since < ended and until > begun for drive, begun, ended, *_ in made if drive == index):
                continue  # a drive has one at a time
            # their shape counts by hours at twice the rate and more
            latency_u = dealer.over_hours(Trait.HOT_HOURS, 0, min(until, hours) - since) if extra >= 1 else latency_u
        if latency_u < cached_share:
            log_latency = math.log(cached_factor) + cached_sigma * normal(latency_u / cached_share)
        else:
            log_latency = _uncached(p, (latency_u - cached_share) / (1 - cached_share))
        made.append((index, since, until, 1 + min(extra, 50.0), log_latency))
    return made


def _uncached(p: KindParameters, u: float) -> float:
    """Log factor on the latency, at rank `u`, of a hot spot that no cache speeds up: some wait for each other."""
    if not p.hot_spot_slowed:
        return 0.0
    share, most = p.hot_spot_slowed
    if u < 1 - share:
        return 0.0
    return math.log1p(most * (LEAST_SLOWED / most) ** ((1 - u) / share))


def _apart(rng: np.random.Generator, dealer: Dealer, p: KindParameters, group: Group, count: int, hours: int) -> list[Spot]:
    """Hot spots of which a drive has one at a time: where one begins the one before ends. Extra rates and latencies are dealt evenly."""
    width = len(group.members)
    if any(member.io_size_factor > 1 + LEAST_EXTRA_SIZE / 2 for member in group.members):
        count = round(count * HOT_SPOTS_OF_LARGE_IO)
    order = rng.permutation(width)
    index = order[(width * rng.random(count) ** HOT_DRIVE_POWER[group.kind]).astype(np.int64)]
    since, length = hours * rng.random(count), np.exp(HOT_SPOT_SIGMA * rng.standard_normal(count))
    at = np.lexsort((since, index))
    index, since = index[at], since[at]
    until = since + p.hot_spot_median_hours * length[at]
    until[:-1] = np.where(index[1:] == index[:-1], np.minimum(until[:-1], since[1:]), until[:-1])
    extra_u, latency_u = dealer.deal_many(Trait.HOT_SPOT, count, 2)
    factor = 1 + np.minimum(LEAST_EXTRA * (1 - extra_u) ** (-1 / p.hot_spot_exponent), 49.0)
    log_latency = np.interp(latency_u, HOT_SPOT_RANKS, np.log(p.hot_spot_latencies))
    return list(zip(index.tolist(), since.tolist(), until.tolist(), factor.tolist(), log_latency.tolist(), strict=True))

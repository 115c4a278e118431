"""Slowness of many drives of a group at once: a shelf that stalls, firmware that throttles by whole timer ticks.

Times are hours since the start of the span. Both hit fewer than half of the drives (PI-18), the same ones for good.
"""

import math

import numpy as np

from simulate.groups import Group
from simulate.parameters import Kind, KindParameters
from simulate.slowness import Episode, draw_fate
from simulate.streams import Dealer, Sequence, Trait, normal

STALL_HOURS, STALL_SIGMA = 2.0, 0.7
"""Median length of a stall and its log spread."""
STALL_EXCESS_SIGMA = 0.4
"""Log spread of what a stall does."""
STALL_SPREAD = 0.1
"""Log spread over the drives of what a stall does to them."""
TICK_EXCESS = 0.5
"""One tick over the two that an ordinary hour's latency rounds to (ratio)."""
THROTTLE_HOURS = 2.0
"""Mean length of a throttling."""
THROTTLINGS: dict[Kind, tuple[tuple[int, int], ...]] = {"disk": ((1, 2), (0, 3)), "ssd": ((1, 1), (2, 3), (3, 3))}
"""How many drives a throttling holds back by two ticks and by one: of the first sort are as many as `throttle` says."""
SECOND_SORT = 0.245
"""Share of throttlings that are of the second sort, where there is a third."""
GAP_SIGMA = 1.5
"""Log spread of the hours from one throttling to the next."""


def shelf_episodes(
    rng: np.random.Generator, dealer: Dealer, p: KindParameters, group: Group, since: float, until: float
) -> dict[int, list[Episode]]:
    """The group's stalls and throttlings in [since, until), by index of the member; none without the traits they need.

    The paper's SSDs of unknown age have next to all of its slowest hours, many drives at a time; its exact multiples are in no figure
    by model (metrics.md, PI-05).
    """
    if p.stall and not group.is_age_known:
        return _stalls(rng, dealer, p.stall, group, since, until)
    if p.throttle and group.is_coarse:
        return _throttlings(rng, dealer, p.throttle, group, since, until)
    return {}


def _stalls(
    rng: np.random.Generator, dealer: Dealer, stall: tuple[float, ...], group: Group, since: float, until: float
) -> dict[int, list[Episode]]:
    """Nearly half of a shelf's drives wait for the other half: seldom, and worse than anything else."""
    per_year, median_excess = stall
    hit = rng.permutation(group.data_width).tolist()[: (group.data_width - 1) // 2]
    made: dict[int, list[Episode]] = {index: [] for index in hit}
    count = dealer.count(Trait.STALL, group.stratum, per_year / (24 * 365.25) * (until - since))
    shapes = Sequence(dealer.deal(Trait.STALL, group.stratum, 2))
    for _ in range(count):
        when, length_u = shapes.next()
        started_at = float(math.floor(since + when * (until - since)))
        length = float(max(round(STALL_HOURS * math.exp(STALL_SIGMA * normal(length_u))), 1))
        excess = median_excess * math.exp(STALL_EXCESS_SIGMA * normal(dealer.over_hours(Trait.STALL_HOURS, group.stratum, length)))
        for index in hit:
            own = excess * math.exp(STALL_SPREAD * rng.standard_normal())
            made[index].append(Episode(started_at, started_at + length, own, "shared_path", draw_fate(rng)))
    return made


def _throttlings(
    rng: np.random.Generator, dealer: Dealer, throttle: tuple[float, ...], group: Group, since: float, until: float
) -> dict[int, list[Episode]]:
    """Firmware adds whole ticks to what some drives take, one to some and two to others; it decides again every hour."""
    share, one = throttle
    most = (group.data_width - 1) // 2
    order = rng.permutation(group.data_width).tolist()
    made: dict[int, list[Episode]] = {index: [] for index in order[:most]}
    gap_hours = THROTTLE_HOURS * (1 - share) / share * math.exp(-(GAP_SIGMA**2) / 2)
    shapes = Sequence(dealer.deal(Trait.THROTTLE, group.stratum, 3))
    at = math.floor(since)
    while True:
        reach, length_u, gap_u = shapes.next()
        at += max(round(gap_hours * math.exp(GAP_SIGMA * normal(gap_u))), 1)
        length = 1 + math.floor(math.log(1 - length_u) / math.log(1 - 1 / THROTTLE_HOURS))
        if at >= until:
            return made
        sorts = THROTTLINGS[group.kind]
        doubled, beside = sorts[0] if reach < one else sorts[1] if reach < one + SECOND_SORT else sorts[-1]
        for place, index in enumerate(order[: min(doubled + beside, most)]):
            ticks = 2 if place < doubled else 1
            made[index].append(Episode(float(at), float(at + length), TICK_EXCESS * ticks, "throttling", draw_fate(rng)))
        at += length

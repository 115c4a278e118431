"""Why a drive is slow for a while: episodes, the aftershocks they bring, and what they do to each hour.

An episode is a stretch of real time during which the drive's latency is (1 + excess) times its own. An hour that it
covers in part is slowed in part. Times are hours since the start of the span.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from simulate.groups import Member
from simulate.parameters import KindParameters

SHARED_SEVERITY = 1.0
"""A shared path is felt when it is this much worse than what a drive does by itself (ratio)."""
BURN_IN_HOURS = 21 * 24.0
"""Episodes begin this long before the span, so that its first hours are as slow as any other."""


class Episode(NamedTuple):
    """One stretch of slowness of one drive."""

    started_at: float
    ended_at: float
    excess: float  # extra latency over the normal latency (ratio)
    cause: str  # background, aftershock, shared_path, recurrence, or the event type that began it


def length_hours(rng: np.random.Generator, p: KindParameters, median: float, excess: float) -> float:
    """A length in hours, log-normal, capped; the worse the slowness the shorter it is."""
    return min(
        median * max(excess, 0.1) ** -p.episode_severity_exponent * math.exp(p.episode_sigma * rng.standard_normal()),
        p.episode_maximum_hours,
    )


def first_excess(rng: np.random.Generator, p: KindParameters, severity_factor: float) -> float:
    """The extra latency of an episode that no other brought, Pareto."""
    drawn: float = p.severity_minimum_excess * severity_factor * (1 - rng.random()) ** (-1 / p.severity_exponent)
    return min(drawn, p.severity_maximum - 1)


def first_episodes(rng: np.random.Generator, p: KindParameters, member: Member, count: int, since: float, until: float) -> list[Episode]:
    """`count` episodes that begin of themselves at uniform moments of [since, until)."""
    made = []
    for started_at in rng.uniform(since, until, count).tolist():
        excess = first_excess(rng, p, member.severity_factor)
        made.append(Episode(started_at, started_at + length_hours(rng, p, p.episode_median_hours, excess), excess, "background"))
    return made


def aftershocks(rng: np.random.Generator, p: KindParameters, parent: Episode) -> list[Episode]:
    """The episodes that `parent` brings after its end; each may bring more."""
    made = []
    for _ in range(rng.poisson(p.aftershock_count)):
        wait = p.aftershock_median_hours * math.exp(p.aftershock_sigma * rng.standard_normal())
        made.append(follower(rng, p, parent, parent.ended_at + wait, "aftershock"))
    return made


def follower(rng: np.random.Generator, p: KindParameters, parent: Episode, started_at: float, cause: str) -> Episode:
    """An episode at `started_at` of about the severity of `parent`."""
    excess = min(parent.excess * math.exp(p.aftershock_severity_sigma * rng.standard_normal()), p.severity_maximum - 1)
    return Episode(started_at, started_at + length_hours(rng, p, p.episode_median_hours, excess), excess, cause)


def shared_episodes(
    rng: np.random.Generator, p: KindParameters, members: list[Member], rate_per_hour: float, since: float, until: float
) -> dict[int, list[Episode]]:
    """Episodes of the one weak path that several of `members` share, by index of the member.

    Fewer than half of the drives: of a slowness that half the group has, the group's median hides all (PI-18).
    """
    made: dict[int, list[Episode]] = {}
    hit_count = min(2 + int(rng.binomial(max(len(members) - 2, 0), p.shared_drive_share)), (len(members) - 1) // 2)
    hit = rng.choice(len(members), hit_count, replace=False).tolist()
    for _ in range(rng.poisson(rate_per_hour * (until - since))):
        started_at = float(rng.uniform(since, until))
        excess = first_excess(rng, p, SHARED_SEVERITY)
        ended_at = started_at + length_hours(rng, p, p.shared_median_hours, excess)
        for index in hit:
            own = excess * math.exp(0.2 * rng.standard_normal())
            made.setdefault(index, []).append(Episode(started_at, ended_at, own, "shared_path"))
    return made


def hourly_excess(rng: np.random.Generator, p: KindParameters, episodes: Iterable[Episode], hours: int) -> tuple[list[int], list[float]]:
    """The extra latency that `episodes` add to each hour of the span they touch: hour numbers and excesses."""
    at: list[int] = []
    excesses: list[float] = []
    for episode in episodes:
        first, last = max(math.floor(episode.started_at), 0), min(math.ceil(episode.ended_at), hours)
        if first >= last:
            continue
        hour = np.arange(first, last)
        covered = np.minimum(hour + 1, episode.ended_at) - np.maximum(hour, episode.started_at)
        varied = np.exp(p.severity_hour_sigma * rng.standard_normal(len(hour)) - p.severity_hour_sigma**2 / 2)
        at.extend(hour.tolist())
        excesses.extend((episode.excess * covered * varied).tolist())
    return at, excesses

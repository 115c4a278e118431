"""Why a drive is slow for a while: episodes, the aftershocks they bring, and what they do to each hour.

An episode is a stretch of real time during which the drive's latency is (1 + excess) times its own. An hour that it
covers in part is slowed in part. Times are hours since the start of the span.
"""

import math
from collections.abc import Iterator
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
    fate: int  # seeds what follows from this episode, so that no other one has a part in it

    def stream(self, aspect: int) -> np.random.Generator:
        """The random stream of one aspect of what follows."""
        return np.random.Generator(np.random.SFC64(self.fate + aspect))


def length_hours(rng: np.random.Generator, p: KindParameters, median: float, excess: float) -> float:
    """A length in hours, log-normal, capped; the worse the slowness the shorter it is."""
    typical = median * max(excess, 0.1) ** -p.episode_severity_exponent
    return float(min(typical * math.exp(p.episode_sigma * rng.standard_normal()), p.episode_maximum_hours))


def first_excess(rng: np.random.Generator, p: KindParameters, severity_factor: float) -> float:
    """The extra latency of an episode that no other brought, Pareto."""
    drawn: float = p.severity_minimum_excess * severity_factor * (1 - rng.random()) ** (-1 / p.severity_exponent)
    return min(drawn, p.severity_maximum - 1)


def moments(rng: np.random.Generator, rate_per_hour: float, since: float, until: float) -> Iterator[float]:
    """Moments of [since, until) at which something happens of itself; with a little higher rate the same ones, a little earlier."""
    at = since
    while rate_per_hour > 0:
        at += rng.standard_exponential() / rate_per_hour
        if at >= until:
            return
        yield at


def draw_fate(rng: np.random.Generator) -> int:
    """A seed for an episode's own streams."""
    return int(rng.integers(2**62))


def first_episodes(rng: np.random.Generator, p: KindParameters, member: Member, since: float, until: float) -> list[Episode]:
    """The member's episodes that begin of themselves in [since, until)."""
    made = []
    for started_at in moments(rng, member.hazard_per_hour, since, until):
        excess = first_excess(rng, p, member.severity_factor)
        length = length_hours(rng, p, p.episode_median_hours, excess)
        made.append(Episode(started_at, started_at + length, excess, "background", draw_fate(rng)))
    return made


def aftershocks(p: KindParameters, parent: Episode) -> list[Episode]:
    """The episodes that `parent` brings after its end; each may bring more."""
    made = []
    rng = parent.stream(0)
    for _ in range(rng.poisson(p.aftershock_count)):
        wait = p.aftershock_median_hours * math.exp(p.aftershock_sigma * rng.standard_normal())
        made.append(follower(rng, p, parent, parent.ended_at + wait, "aftershock"))
    return made


def follower(rng: np.random.Generator, p: KindParameters, parent: Episode, started_at: float, cause: str) -> Episode:
    """An episode at `started_at` of about the severity of `parent`."""
    excess = min(parent.excess * math.exp(p.aftershock_severity_sigma * rng.standard_normal()), p.severity_maximum - 1)
    return Episode(started_at, started_at + length_hours(rng, p, p.episode_median_hours, excess), excess, cause, draw_fate(rng))


def shared_episodes(
    rng: np.random.Generator, p: KindParameters, members: list[Member], rate_per_hour: float, since: float, until: float
) -> dict[int, list[Episode]]:
    """Episodes of the one weak path that several of `members` share, by index of the member.

    Fewer than half of the drives: of a slowness that half the group has, the group's median hides all (PI-18).
    """
    made: dict[int, list[Episode]] = {}
    hit_count = min(2 + math.floor(p.shared_drive_share * max(len(members) - 2, 0) + rng.random()), (len(members) - 1) // 2)
    hit = rng.permutation(len(members))[:hit_count].tolist()
    for started_at in moments(rng, rate_per_hour, since, until):
        excess = first_excess(rng, p, SHARED_SEVERITY)
        ended_at = started_at + length_hours(rng, p, p.shared_median_hours, excess)
        fate = draw_fate(rng)
        for index in hit:
            felt = Episode(started_at, ended_at, excess, "shared_path", fate + 1000 * index)
            own = excess * math.exp(0.2 * felt.stream(3).standard_normal())
            made.setdefault(index, []).append(felt._replace(excess=own))
    return made


def hourly_excess(rng: np.random.Generator, p: KindParameters, episode: Episode, hours: int) -> tuple[list[int], list[float]]:
    """The extra latency that `episode` adds to each hour of the span it touches: hour numbers and excesses."""
    first, last = max(math.floor(episode.started_at), 0), min(math.ceil(episode.ended_at), hours)
    if first >= last:
        return [], []
    hour = np.arange(first, last)
    covered = np.minimum(hour + 1, episode.ended_at) - np.maximum(hour, episode.started_at)
    varied = np.exp(p.severity_hour_sigma * rng.standard_normal(len(hour)) - p.severity_hour_sigma**2 / 2)
    return hour.tolist(), (episode.excess * covered * varied).tolist()

"""Why a drive is slow for a while: episodes, the aftershocks they bring, and what they do to each hour.

An episode is a stretch of real time during which the drive's latency is (1 + excess) times its own. An hour that it
covers in part is slowed in part. Times are hours since the start of the span.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from simulate.groups import CATALOGUE, HOURS_PER_YEAR, Group, Member
from simulate.parameters import Kind, KindParameters
from simulate.streams import LEVELLED, STANDARD_NORMAL, Dealer, Plan, Sequence, Trait, normal, poisson

SEVERITY_HOUR_SIGMA: dict[Kind, float] = {"disk": 0.15, "ssd": 0.1}
"""Log variation of the extra latency within an episode, hour by hour."""
EPISODE_MAXIMUM_HOURS = 1400.0
"""No episode is longer than this, where a kind does not say."""
SEVERITY_MAXIMUM = 3000.0
"""No episode multiplies the latency by more than this (ratio)."""
TIMEOUT_EXCESS = 60.0
"""No episode of a single SSD adds more than this to the latency of its hours (ratio)."""
HICCUPS: dict[Kind, tuple[float, float]] = {"disk": (3.0, 1.0), "ssd": (1.05, 2.2)}
"""Least extra latency of an hour with a hiccup (ratio) and its Pareto exponent."""
HICCUP_HOURS = 0.1
FLAT_TAIL_EXPONENT = 0.1
"""Pareto exponent of what is beyond the knee for SSDs other than SLC: it hangs for long, or not at all."""
AFTERSHOCK_SEVERITY_SIGMA = 0.5
"""Log spread of an aftershock's severity around its parent's."""
HICCUP_SIGMA = 0.5
"""Log spread of the length of the episodes of an SSD that does not ail."""
LEAST_SEEN_HOURS = 0.5
"""An episode shows in about this much of an hour at the least."""
PATH_DRIVES: dict[Kind, int] = {"disk": 2, "ssd": 3}
"""Least number of drives behind a weak path."""
SHARED_SPREAD: dict[Kind, float] = {"disk": 0.2, "ssd": 0.04}
"""Log spread over the drives of a shared path of what a slow spell of it does to them."""
FULL_QUEUE_EXCESS = 5.0
"""A path's queue is bounded: no more than this for the drive next to it (ratio)."""
MILD_PATHS, MLC_STRATA = 0.17, 4
"""Paths to MLC drives of known model are so much milder (ratio); these have the strata from the second on."""
SHARED_DECAY = 0.92
"""Each next drive along a path that queues feels so much of what the one before does (ratio)."""
SHARED = 2000
"""The series of slow spells of shared paths are strata of their own."""
LEVELLED_BURN_IN_HOURS = 24.0
"""The same of drives whose slow hours are dealt evenly: no episode of theirs lasts longer."""
RELAPSE_OF_WELL = 0.5
"""A drive that does not ail relapses less often than one that does (ratio)."""
MOST_EPISODES = 2000
"""A drive or path has no more episodes than this over the span."""
BURN_IN_HOURS = 21 * 24.0
"""Episodes begin this long before the span, so that its first hours are as slow as any other."""


class Episode(NamedTuple):
    """One stretch of slowness of one drive."""

    started_at: float
    ended_at: float
    excess: float  # extra latency over the normal latency (ratio)
    cause: str  # background, aftershock, shared_path, throttling, hiccup, recurrence, or the event type that began it
    fate: int  # seeds what follows from this episode, so that no other one has a part in it

    def stream(self, aspect: int) -> np.random.Generator:
        """The random stream of one aspect of what follows."""
        return np.random.Generator(np.random.SFC64(self.fate + aspect))


def length_hours(z: float, p: KindParameters, median: float, sigma: float, excess: float = 1.0) -> float:
    """A length in hours, log-normal by the normal number `z`, capped; the worse the slowness the shorter it is."""
    typical = median * max(excess, 0.1) ** -p.episode_severity_exponent
    return float(min(typical * math.exp(sigma * z), maximum_hours(p)))


def maximum_hours(p: KindParameters) -> float:
    """No episode is longer, hours."""
    return p.episode_maximum_hours[0] if p.episode_maximum_hours else EPISODE_MAXIMUM_HOURS


def typical_hours(p: KindParameters, member: Member) -> float:
    """The median length of the member's episodes, hours."""
    return float(p.episode_median_hours * member.frailty**p.ailing_length_exponent)


def first_excess(u: float, p: KindParameters, exponent: float, family: int = 0) -> float:
    """The extra latency of an episode that no other brought, Pareto, at rank `u`; SSDs of a flash cell have a tail of their own."""
    drawn, knee = p.severity_minimum_excess * (1 - u) ** (-1 / exponent), p.severity_knee_excess
    power = p.severity_knee_power[0] if p.severity_knee_power else 1 / 3
    if p.severity_tail:
        of_slc, others_knee = p.severity_tail
        is_slc = CATALOGUE["ssd"][family].flash_cell == "SLC"
        knee, power = (knee, exponent / of_slc) if is_slc else (others_knee, exponent / FLAT_TAIL_EXPONENT)
        return float(min(drawn if drawn < knee else knee * (drawn / knee) ** power, TIMEOUT_EXCESS))
    return float(min(drawn if drawn < knee else knee * (drawn / knee) ** power, SEVERITY_MAXIMUM - 1))


class Severities:
    """How severe the episodes of one stratum are, where that is dealt by slow hours."""

    def __init__(
        self, dealer: Dealer, trait: Trait, stratum: int, p: KindParameters, exponent: float, since: float, until: float, utc_offset: int
    ) -> None:
        self.dealer, self.trait, self.stratum, self.p, self.exponent, self.utc_offset = dealer, trait, stratum, p, exponent, utc_offset
        self.since, self.until = since, until  # when the records see it

    def excess(self, started_at: float, typical_hours: float) -> float:
        """The extra latency of an episode of about `typical_hours` hours, levelled by those that the records see."""
        seen = min(started_at + typical_hours, self.until) - max(started_at, self.since)
        return first_excess(self.dealer.level(self.trait, self.stratum, seen), self.p, self.exponent)


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


def first_episodes(
    rng: np.random.Generator, dealer: Dealer, severities: Severities, p: KindParameters, member: Member, since: float, until: float
) -> list[Episode]:
    """The member's episodes that begin of themselves in [since, until)."""
    has_hiccups = bool(p.hiccup) and member.role == "data" and member.frailty == 1
    if dealer.kind in LEVELLED:
        planned = planned_episodes(rng, dealer, severities, p, member, since)
        return planned + _hiccups(rng, dealer, p, member, max(since, severities.since), until) if has_hiccups else planned
    made = []
    count = dealer.count(Trait.EPISODES, member.stratum, member.hazard_per_hour * max(until - since, 0.0))
    shapes = Sequence(dealer.deal(Trait.EPISODE, member.stratum, 3))
    sigma = HICCUP_SIGMA if p.severity_tail and member.frailty == 1 else p.episode_sigma
    for _ in range(count):
        severity, length_u, when = shapes.next()
        started_at = since + when * (until - since)
        if p.severity_tail and member.role == "data":
            seen = _seen_hours(started_at, length_hours(normal(length_u), p, typical_hours(p, member), sigma, 1.0), until)
            severity = dealer.over_hours(Trait.EPISODE_HOURS, member.stratum, seen) if seen else severity
        excess = first_excess(severity, p, member.severity_exponent, member.family if member.frailty > 1 else 0)
        length = length_hours(normal(length_u), p, typical_hours(p, member), sigma, excess)
        made.append(Episode(started_at, started_at + length, excess, "background", draw_fate(rng)))
    if has_hiccups:
        made += _hiccups(rng, dealer, p, member, since, until)
    return made


def _hiccups(rng: np.random.Generator, dealer: Dealer, p: KindParameters, member: Member, since: float, until: float) -> list[Episode]:
    """Stops of some minutes, within one hour each: a drive that collects garbage or rescues a block is slow once."""
    made = []
    least, exponent = HICCUPS[dealer.kind]
    for _ in range(dealer.count(Trait.HICCUPS, 0, p.hiccup[0] / HOURS_PER_YEAR * max(until - since, 0.0))):
        at, severity = dealer.deal(Trait.HICCUP, 0, 2)
        started_at = math.floor(since + at * (until - since)) + 0.5
        excess = min(least * (1 - severity) ** (-1 / exponent), SEVERITY_MAXIMUM - 1) / HICCUP_HOURS
        made.append(Episode(started_at, started_at + HICCUP_HOURS, excess, "hiccup", draw_fate(rng)))
    return made


def _seen_hours(started_at: float, length: float, until: float) -> float:
    """How many hours show an episode, about; 0 if it is over before the span."""
    shown = min(started_at + length, until) - max(started_at, 0.0)
    return max(shown, LEAST_SEEN_HOURS) if shown > 0 else 0.0


def mean_hours(p: KindParameters, median: float, sigma: float, relapse: float) -> float:
    """The mean length of episodes of that median and log spread, those that follow them included, hours."""
    most = maximum_hours(p)
    if min(median, sigma, most) <= 0:
        return min(median, most) / (1 - relapse)
    cap = math.log(most / median) / sigma
    mean = median * math.exp(sigma**2 / 2) * STANDARD_NORMAL.cdf(cap - sigma) + most * STANDARD_NORMAL.cdf(-cap)
    return mean / (1 - relapse)


def planned_series(
    rng: np.random.Generator,
    plan: Plan,
    severities: Severities,
    p: KindParameters,
    median: float,
    sigma: float,
    relapse: float,
    cause: str,
    drive_count: int = 1,
) -> list[Episode]:
    """An episode of some drives and those that follow one another after it: after each there is another with chance `relapse`."""
    length_u, when, many_u, _ = plan.first.next()
    until = severities.until
    started_at = severities.since - LEVELLED_BURN_IN_HOURS + when * (until - severities.since + LEVELLED_BURN_IN_HOURS)
    count = 1 + math.floor(math.log(max(1 - many_u, 1e-9)) / math.log(max(relapse, 1e-9)))
    made: list[Episode] = []
    while started_at < until:
        z = normal(length_u)
        excess = severities.excess(started_at, length_hours(z, p, median, sigma))
        ended_at = started_at + length_hours(z, p, median, sigma, excess)
        made.append(Episode(started_at, ended_at, excess, "aftershock" if made and cause == "background" else cause, draw_fate(rng)))
        if len(made) >= count:
            break
        _, length_u, wait_u = plan.after.next()
        started_at = ended_at + p.aftershock_median_hours * math.exp(p.aftershock_sigma * normal(wait_u))
    # moved together by whole hours to where the local day has fewest slow hours yet
    shift = severities.dealer.clock.shift([hour for e in made for hour in slow_hours(e, severities)], drive_count)
    return [e._replace(started_at=e.started_at + shift, ended_at=e.ended_at + shift) for e in made]


def slow_hours(episode: Episode, severities: Severities) -> list[int]:
    """The hours of local time in which an episode doubles the latency, of those that the records see."""
    first, last = max(episode.started_at, severities.since), min(episode.ended_at, severities.until)
    touched = range(math.floor(first), math.ceil(last))
    return [h + severities.utc_offset for h in touched if episode.excess * (min(h + 1, last) - max(h, first)) >= 1]


def seen_hours(episodes: list[Episode], severities: Severities) -> float:
    """How many hours of `episodes` the records see."""
    return sum(max(min(e.ended_at, severities.until) - max(e.started_at, severities.since), 0.0) for e in episodes)


def apart(episodes: list[Episode]) -> list[Episode]:
    """The episodes without overlap: where one begins the one before ends."""
    ordered = sorted(episodes)
    return [e._replace(ended_at=min(e.ended_at, n.started_at)) for e, n in pairwise(ordered)] + ordered[-1:]


def planned_episodes(
    rng: np.random.Generator, dealer: Dealer, severities: Severities, p: KindParameters, member: Member, since: float
) -> list[Episode]:
    """The member's episodes of themselves and what they bring: as many hours as its stratum is owed by now.

    Dealt by count, the slow hours of an age depend on how long the three longest series of its few drives happen to be.
    """
    severities.since = max(severities.since, since)
    plan = dealer.plan(Trait.EPISODES, member.stratum)
    relapse = p.aftershock_count * (1.0 if member.frailty > 1 else RELAPSE_OF_WELL)
    mean = mean_hours(p, p.episode_median_hours, p.episode_sigma, relapse) * member.frailty**p.ailing_length_exponent
    plan.owed_hours += member.hazard_per_hour * max(severities.until - severities.since, 0.0) * mean
    made: list[Episode] = []
    while plan.owed_hours > 0 and len(made) < MOST_EPISODES:
        series = planned_series(rng, plan, severities, p, typical_hours(p, member), p.episode_sigma, relapse, "background")
        plan.owed_hours -= seen_hours(series, severities)
        made += series
    kept = apart(made)
    plan.owed_hours += seen_hours(made, severities) - seen_hours(kept, severities)
    return kept


def aftershocks(after: Sequence, p: KindParameters, parent: Episode, median: float, sigma: float) -> list[Episode]:
    """The episodes that `parent` brings after its end; each may bring more."""
    made = []
    rng = parent.stream(0)
    for _ in range(poisson(after.next()[0], p.aftershock_count)):
        _, severity, length_u, wait_u = after.next()
        started_at = parent.ended_at + p.aftershock_median_hours * math.exp(p.aftershock_sigma * normal(wait_u))
        excess = min(parent.excess * math.exp(AFTERSHOCK_SEVERITY_SIGMA * normal(severity)), SEVERITY_MAXIMUM - 1)
        length = length_hours(normal(length_u), p, median, sigma, excess)
        made.append(Episode(started_at, started_at + length, excess, "aftershock", draw_fate(rng)))
    return made


def follower(rng: np.random.Generator, p: KindParameters, parent: Episode, started_at: float) -> Episode:
    """The episode at `started_at` of a drive that was replugged and not cured, of about the severity of `parent`."""
    excess = min(parent.excess * math.exp(AFTERSHOCK_SEVERITY_SIGMA * rng.standard_normal()), SEVERITY_MAXIMUM - 1)
    length = length_hours(float(rng.standard_normal()), p, p.episode_median_hours, p.episode_sigma, excess)
    return Episode(started_at, started_at + length, excess, "recurrence", draw_fate(rng))


def shared_episodes(
    rng: np.random.Generator, dealer: Dealer, p: KindParameters, group: Group, since: float, until: float
) -> dict[int, list[Episode]]:
    """Episodes of the one weak path that several of the group's data drives share, by index of the member.

    Fewer than half of the drives: of a slowness that half the group has, the group's median hides all (PI-18).
    """
    made: dict[int, list[Episode]] = {}
    width = group.data_width
    path = rng.permutation(width).tolist()
    if dealer.kind in LEVELLED:
        severities = Severities(
            dealer, Trait.SHARED_SEVERITY, group.stratum, p, group.severity_exponent, since + BURN_IN_HOURS, until, group.utc_offset_hours
        )
        spells, hit_count = _planned_spells(rng, dealer, severities, p, group)
        for spell in spells:
            _strike(made, spell, path[:hit_count], group.kind)
        return made
    count = dealer.count(Trait.SHARED_EPISODES, group.stratum, group.shared_hazard_per_hour * max(until - since, 0.0))
    shapes = Sequence(dealer.deal(Trait.SHARED_EPISODE, group.stratum, 4))
    after = Sequence(dealer.deal(Trait.AFTERSHOCK, SHARED + group.stratum, 4))
    for _ in range(count):
        severity, length_u, when, reach = shapes.next()
        started_at = since + when * (until - since)
        if p.shared_excess:
            least, mean = p.shared_excess[0], p.shared_excess[1] * (MILD_PATHS if group.stratum >= MLC_STRATA else 1.0)
            seen = _seen_hours(started_at, length_hours(normal(length_u), p, p.shared_median_hours, p.shared_sigma, 1.0), until)
            severity = dealer.over_hours(Trait.SHARED_HOURS, group.stratum, seen) if seen else severity
            excess = least - mean * math.log(max(1 - severity, 1e-3))
        else:
            excess = first_excess(severity, p, group.severity_exponent)
        ended_at = started_at + length_hours(normal(length_u), p, p.shared_median_hours, p.shared_sigma, excess)
        hit_count = min(PATH_DRIVES[group.kind] + math.floor(sum(p.shared_drive_share) * max(width - 2, 0) + reach), (width - 1) // 2)
        series = [Episode(started_at, ended_at, excess, "shared_path", draw_fate(rng))]
        while series:
            spell = series.pop()
            if spell.started_at >= until:
                continue
            series += aftershocks(after, p, spell, p.shared_median_hours, p.shared_sigma)
            _strike(made, spell, path[:hit_count], group.kind, is_queued=bool(p.shared_excess))
    return made


def _planned_spells(
    rng: np.random.Generator, dealer: Dealer, severities: Severities, p: KindParameters, group: Group
) -> tuple[list[Episode], int]:
    """The slow spells of a weak path and how many drives they strike: as many drive-hours as the group's stratum is owed by now."""
    width = group.data_width
    share = sum(p.shared_drive_share) * max(width - 2, 0)
    plan = dealer.plan(Trait.SHARED_EPISODES, group.stratum)
    mean = mean_hours(p, p.shared_median_hours, p.shared_sigma, p.aftershock_count) * min(2 + share, (width - 1) // 2)
    plan.owed_hours += group.shared_hazard_per_hour * max(severities.until - severities.since, 0.0) * mean
    made: list[Episode] = []
    reach = dealer.deal(Trait.SHARED_EPISODE, group.stratum)[0]
    hit_count = min(2 + math.floor(share + reach), (width - 1) // 2)
    while group.shared_hazard_per_hour and plan.owed_hours > 0 and len(made) < MOST_EPISODES:
        series = planned_series(
            rng, plan, severities, p, p.shared_median_hours, p.shared_sigma, p.aftershock_count, "shared_path", hit_count
        )
        plan.owed_hours -= seen_hours(series, severities) * hit_count
        made += series
    kept = apart(made)
    plan.owed_hours += (seen_hours(made, severities) - seen_hours(kept, severities)) * hit_count
    return kept, hit_count


def _strike(made: dict[int, list[Episode]], spell: Episode, struck: list[int], kind: Kind, *, is_queued: bool = False) -> None:
    """Add what a spell of a path does to each drive it strikes; along a path that queues each next drive feels less."""
    for place, index in enumerate(struck):
        felt = spell._replace(cause="shared_path", fate=spell.fate + 1000 * index)
        own = spell.excess * math.exp(SHARED_SPREAD[kind] * felt.stream(3).standard_normal())
        if is_queued:
            own = min(own, FULL_QUEUE_EXCESS) * SHARED_DECAY**place
        made.setdefault(index, []).append(felt._replace(excess=own))


def hourly_excess(rng: np.random.Generator, episode: Episode, hours: int, sigma: float) -> tuple[list[int], list[float]]:
    """The extra latency that `episode` adds to each hour of the span it touches: hour numbers and excesses."""
    first, last = max(math.floor(episode.started_at), 0), min(math.ceil(episode.ended_at), hours)
    if first >= last:
        return [], []
    hour = np.arange(first, last)
    covered = np.minimum(hour + 1, episode.ended_at) - np.maximum(hour, episode.started_at)
    if episode.cause in ("throttling", "hiccup"):
        sigma = 0.0
    varied = np.exp(sigma * rng.standard_normal(len(hour)) - sigma**2 / 2)
    return hour.tolist(), (episode.excess * covered * varied).tolist()

"""Actions of people and arrays on drives: unplug, replug, replace, rebuild, scrub, and the events they leave.

Times are hours since the start of the span.
"""

import heapq
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from ingest.contract.fleet import CONTRACT
from simulate.groups import HOURS_PER_YEAR, PARITY, Group, Member, instant, successor
from simulate.parameters import Kind, KindParameters
from simulate.shelves import shelf_episodes
from simulate.slowness import (
    BURN_IN_HOURS,
    Episode,
    Severities,
    aftershocks,
    draw_fate,
    first_episodes,
    first_excess,
    follower,
    length_hours,
    shared_episodes,
    typical_hours,
)
from simulate.streams import LEVELLED, Dealer, Purpose, Sequence, Trait, normal, stream

CURE_HOURS = 14 * 24.0
"""A replug that helps keeps the drive well at least this long."""
OUTAGE_MEDIAN_HOURS: dict[Kind, float] = {"disk": 1.7, "ssd": 1.5}
"""Median time from unplug to replug, hours."""
OUTAGE_SIGMA: dict[Kind, float] = {"disk": 1.3, "ssd": 1.0}
"""Log spread of the outage and of the wait for a new drive."""
REPLACEMENT_OVER_OUTAGE = 10
"""A new drive takes this many times as long as a replug: it has to be sent."""
UNPLUG_VISIBLE_EXCESS = 0.4
"""Operators see no slowness below this."""
UNPLUG_MAXIMUM_SHARE = 0.4
HICCUP_UNPLUG_SHARE: dict[Kind, float] = {"disk": 0.2, "ssd": 0.0075}
"""Share of hiccups after which an operator acts; a disk stops altogether then, an SSD hardly."""
EXPLICIT_EVENT_SLOW_SHARE = 0.9
"""Share of the explicit events that begin a slow episode."""
MAINTENANCE_PER_YEAR = 1.0
REBUILD_MEDIAN_HOURS = {"disk": 6.0, "ssd": 2.0}
REBUILD_RATE_FACTOR = 1.35
"""The group's I/O rate during a rebuild or scrub over the rate without."""
QUIET_EVENTS_PER_DRIVE_YEAR = 0.02
SLOW_EVENTS_PER_HOUR = 0.0004
QUIET_EVENT_TYPES = ("scsi_timeout", "media_error", "response_timeout")


@dataclass(frozen=True)
class Event:
    """One record of `drive_events`."""

    at: float
    drive_id: str
    event_type: str
    slot: int
    ended_at: float | None = None
    detail: str | None = None


@dataclass
class Fates:
    """Actions on the drive of one slot, in order: even over the slots of a fleet, and over the actions on one."""

    severities: Severities
    after: Sequence
    acts: Sequence
    replugs: Sequence

    @classmethod
    def of(cls, dealer: Dealer, p: KindParameters, member: Member, since: float, until: float, utc_offset: int) -> "Fates":
        is_parity = PARITY * (member.role != "data")
        return cls(
            Severities(dealer, Trait.SEVERITY, member.stratum, p, member.severity_exponent, since, until, utc_offset),
            Sequence(dealer.deal(Trait.AFTERSHOCK, member.stratum, 4)),
            Sequence(dealer.deal(Trait.UNPLUG, is_parity, 2)),
            Sequence(dealer.deal(Trait.REPLUG, is_parity, 4)),
        )


@dataclass
class GroupHistory:
    """Everything that happened to one group's drives over the span."""

    episodes: list[tuple[Member, Episode]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    loads: list[tuple[float, float, float]] = field(default_factory=list)  # from, to, factor on the group's I/O rate


def live(group: Group, p: KindParameters, dealer: Dealer, start: datetime, hours: int) -> GroupHistory:
    """Run the lives of the group's drives. Adds outages, closed periods and replacement drives to `group.members`."""
    rng = stream(dealer.seed, group.kind, group.ordinal, Purpose.LIVES)
    history = GroupHistory()
    # leave out events that no record shows
    since, until = max(0.0, group.joined_at) - BURN_IN_HOURS, min(float(hours), group.left_at)
    members = list(group.members)
    shared = shared_episodes(rng, dealer, p, group, since, until)
    for index, spells in shelf_episodes(rng, dealer, p, group, since, until).items():
        shared.setdefault(index, []).extend(spells)
    for index, member in enumerate(members):
        # each drive has a stream of its own: what one lives through changes nothing for its neighbours
        rng = stream(dealer.seed, group.kind, group.ordinal, Purpose.LIVES, 1 + index)
        routine_at = since + rng.exponential(1 / max(p.routine_unplug_rate_per_drive_year / HOURS_PER_YEAR, 1e-12))
        count = rng.poisson(p.explicit_event_rate_per_drive_year * (hours - since) / HOURS_PER_YEAR)
        begins = _explicit_events(rng, p, group, member, int(count), since, hours, history) + shared.get(index, [])
        for at in rng.uniform(0, hours, rng.poisson(QUIET_EVENTS_PER_DRIVE_YEAR * hours / HOURS_PER_YEAR)).tolist():
            history.events.append(Event(at, member.drive_id, str(rng.choice(QUIET_EVENT_TYPES)), member.slot))
        fates = Fates.of(dealer, p, member, since + BURN_IN_HOURS, until, group.utc_offset_hours)
        begins += first_episodes(rng, dealer, fates.severities, p, member, since, until)
        current: Member | None = member
        while current is not None and (begins or routine_at < hours):
            current = _drive_life(rng, dealer, fates, p, group, current, begins, routine_at, start, hours, history)
            if current is not None:
                begins = first_episodes(rng, dealer, fates.severities, p, current, current.active_from, until)
                routine_at = math.inf
    rng = stream(dealer.seed, group.kind, group.ordinal, Purpose.LIVES, 1 + len(members))
    _group_routine(rng, group, start, hours, history)
    left_at = {m.drive_id: m.active_to for m in group.members}
    since = max(0.0, group.joined_at)
    history.events = [e for e in history.events if since <= e.at < hours and e.at <= left_at[e.drive_id]]
    return history


def _drive_life(
    rng: np.random.Generator,
    dealer: Dealer,
    fates: Fates,
    p: KindParameters,
    group: Group,
    member: Member,
    begins: list[Episode],
    routine_at: float,
    start: datetime,
    hours: int,
    history: GroupHistory,
) -> Member | None:
    """One drive from `member.active_from` on; returns the drive that replaced it, if any."""
    queue = sorted(begins)
    lived: list[Episode] = []
    seen: Episode | None = None  # the episode the operator acts upon
    acted_at = math.inf
    while queue or min(acted_at, routine_at) < hours:
        unplugged_at = min(acted_at, routine_at)
        if queue and queue[0].started_at < unplugged_at:
            episode = heapq.heappop(queue)
            if episode.started_at >= hours:
                continue
            lived.append(episode)
            # aftershocks of a path are a series of their own; those dealt by slow hours come in whole series
            if group.kind not in LEVELLED and member.frailty > 1 and episode.cause not in ("shared_path", "throttling", "hiccup"):
                for aftershock in aftershocks(fates.after, p, episode, typical_hours(p, member), p.episode_sigma):
                    heapq.heappush(queue, aftershock)
            if episode.excess >= UNPLUG_VISIBLE_EXCESS:
                share = (
                    HICCUP_UNPLUG_SHARE[group.kind]
                    if episode.cause == "hiccup"
                    else p.unplug_share * ((1 + episode.excess) / 2) ** p.unplug_severity_exponent
                )
                acts_u, wait_u = fates.acts.next()
                if acts_u < min(share, UNPLUG_MAXIMUM_SHARE):
                    wait = p.unplug_wait_median_hours * math.exp(p.unplug_wait_sigma * normal(wait_u))
                    if episode.started_at + wait < acted_at:
                        acted_at, seen = episode.started_at + wait, episode
            continue
        if unplugged_at >= hours:
            break
        is_routine, acted_at = unplugged_at == routine_at, math.inf
        if is_routine:
            routine_at = math.inf
        lived = [e._replace(ended_at=min(e.ended_at, unplugged_at)) for e in lived]
        # replug and replacement wait are told apart first: a drive that never comes back is out for good
        fate = fates.replugs.next()
        is_replaced = fate[0] < sum(p.replacement_share) and unplugged_at >= max(0.0, member.active_from)
        outage = OUTAGE_MEDIAN_HOURS[group.kind] * math.exp(OUTAGE_SIGMA[group.kind] * normal(fate[1]))
        if member.active_from > unplugged_at:
            continue  # not in the group yet
        history.events.append(Event(unplugged_at, member.drive_id, "unplug", member.slot))
        if is_replaced:
            member.active_to = unplugged_at
            queue = []
            history.episodes += [(member, e) for e in lived]
            _timeouts(rng, member, lived, hours, history)
            return _replace(rng, dealer, p, group, member, unplugged_at + outage * REPLACEMENT_OVER_OUTAGE, start, hours, history)
        back_at = unplugged_at + outage
        member.outages.append((unplugged_at, back_at))
        history.events.append(Event(back_at, member.drive_id, "replug", member.slot))
        _rebuild(rng, group, member, back_at, history)
        is_cured = fate[2] < p.cure_share
        queue = [e for e in queue if e.started_at >= back_at + (CURE_HOURS if is_cured else 0.0)]
        if seen is not None and not is_cured:
            wait = p.recurrence_median_hours * math.exp(p.recurrence_sigma * normal(fate[3]))
            queue.append(follower(rng, p, seen, back_at + wait))
        heapq.heapify(queue)
        seen = None
    history.episodes += [(member, e) for e in lived]
    _timeouts(rng, member, lived, hours, history)
    return None


def _replace(
    rng: np.random.Generator,
    dealer: Dealer,
    p: KindParameters,
    group: Group,
    old: Member,
    at: float,
    start: datetime,
    hours: int,
    history: GroupHistory,
) -> Member | None:
    """Put a new drive into the slot of `old` at hour `at`; none if that is after the span."""
    if at >= hours:
        return None
    new = successor(rng, dealer, group, old, p, at, start)
    group.members.append(new)
    history.events.append(Event(at, new.drive_id, "replacement", new.slot, detail=f"replaces {old.drive_id}"))
    _rebuild(rng, group, new, at, history)
    return new


def _rebuild(rng: np.random.Generator, group: Group, member: Member, at: float, history: GroupHistory) -> None:
    ended_at = at + REBUILD_MEDIAN_HOURS[group.kind] * math.exp(0.5 * rng.standard_normal())
    history.events.append(Event(at + 0.02, member.drive_id, "rebuild", member.slot, ended_at))
    history.loads.append((at, ended_at, REBUILD_RATE_FACTOR))


def _explicit_events(
    rng: np.random.Generator, p: KindParameters, group: Group, member: Member, count: int, since: float, hours: int, history: GroupHistory
) -> list[Episode]:
    """The drive's not_spinning and not_responding events; most begin an episode, returned."""
    begun = []
    for at in rng.uniform(since, hours, count).tolist():
        event_type = "not_spinning" if group.kind == "disk" and rng.random() < 0.5 else "not_responding"
        history.events.append(Event(at, member.drive_id, event_type, member.slot))
        if rng.random() < EXPLICIT_EVENT_SLOW_SHARE:
            # a drive that stops answering is slow by a multiple, and for the rest of the hour at the least
            excess = 2.0 + first_excess(float(rng.random()), p, member.severity_exponent)
            z = float(rng.standard_normal())
            begun.append(
                Episode(
                    at, at + 1.0 + length_hours(z, p, typical_hours(p, member), p.episode_sigma, excess), excess, event_type, draw_fate(rng)
                )
            )
    return begun


def _timeouts(rng: np.random.Generator, member: Member, lived: list[Episode], hours: int, history: GroupHistory) -> None:
    for episode in lived:
        length = min(episode.ended_at, hours) - episode.started_at
        if length > 0 and rng.random() < SLOW_EVENTS_PER_HOUR * length:
            at = episode.started_at + length * float(rng.random())
            history.events.append(Event(at, member.drive_id, str(rng.choice(QUIET_EVENT_TYPES)), member.slot))


def _group_routine(rng: np.random.Generator, group: Group, start: datetime, hours: int, history: GroupHistory) -> None:
    """The weekly scrub and the rare maintenance window, recorded on the drive of slot 0."""
    first = group.members[0]
    local_start = start + timedelta(hours=group.utc_offset_hours)
    minute = float(rng.random())
    saturday = ((5 - local_start.weekday()) % 7) * 24 + 23 - local_start.hour
    for at in range(saturday - 168, hours, 168):
        ended_at = at + minute + REBUILD_MEDIAN_HOURS[group.kind]
        history.events.append(Event(at + minute, first.drive_id, "scrub", first.slot, ended_at, "weekly, whole group"))
        history.loads.append((at + minute, ended_at, REBUILD_RATE_FACTOR))
    for at in rng.uniform(0, hours, rng.poisson(MAINTENANCE_PER_YEAR * hours / HOURS_PER_YEAR)).tolist():
        history.events.append(Event(at, first.drive_id, "maintenance", first.slot, at + 1.5, "firmware"))


EVENTS_SCHEMA = {**CONTRACT["drive_events"], "slot": pl.Int64()}


def event_frame(histories: list[tuple[Group, GroupHistory]], start: datetime) -> pl.DataFrame:
    """The `drive_events` records, sorted by time and drive."""
    rows = [
        (
            instant(start, e.at),
            e.drive_id,
            e.event_type,
            group.raid_group_id,
            e.slot,
            None if e.ended_at is None else instant(start, e.ended_at),
            e.detail,
            instant(start, e.at) + timedelta(minutes=1),
        )
        for group, history in histories
        for e in history.events
    ]
    frame = pl.DataFrame(rows, schema=EVENTS_SCHEMA, orient="row")
    return frame.unique(["drive_id", "occurred_at", "event_type"], keep="first", maintain_order=True).sort(
        "occurred_at", "drive_id", "event_type"
    )

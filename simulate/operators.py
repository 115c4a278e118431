"""What people and arrays do about drives: unplug, replug, replace, rebuild, scrub, and the events they leave.

Times are hours since the start of the span.
"""

import heapq
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from simulate.groups import HOURS_PER_YEAR, Group, Member, instant, successor
from simulate.parameters import KindParameters
from simulate.slowness import (
    BURN_IN_HOURS,
    Episode,
    aftershocks,
    draw_fate,
    first_episodes,
    first_excess,
    follower,
    length_hours,
    shared_episodes,
)
from simulate.streams import Purpose, stream

CURE_HOURS = 14 * 24.0
"""A replug that helps keeps the drive well at least this long."""
REPLACEMENT_OVER_OUTAGE = 10
"""A new drive takes this many times as long as a replug: it has to be sent."""
UNPLUG_VISIBLE_EXCESS = 0.4
"""Operators see no slowness below this."""
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
class GroupHistory:
    """Everything that happened to one group's drives over the span."""

    episodes: list[tuple[Member, Episode]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    loads: list[tuple[float, float, float]] = field(default_factory=list)  # from, to, factor on the group's I/O rate


def live(group: Group, p: KindParameters, seed: int, start: datetime, hours: int) -> GroupHistory:
    """Run the lives of the group's drives. Adds outages, closed periods and replacement drives to `group.members`."""
    rng = stream(seed, group.kind, group.ordinal, Purpose.LIVES)
    history = GroupHistory()
    since = -BURN_IN_HOURS
    members = list(group.members)
    shared = shared_episodes(rng, p, members[: group.data_width], group.shared_hazard_per_hour, since, hours)
    for index, member in enumerate(members):
        # each drive has a stream of its own: what one lives through changes nothing for its neighbours
        rng = stream(seed, group.kind, group.ordinal, Purpose.LIVES, 1 + index)
        routine_at = since + rng.exponential(1 / max(p.routine_unplug_rate_per_drive_year / HOURS_PER_YEAR, 1e-12))
        count = rng.poisson(p.explicit_event_rate_per_drive_year * (hours - since) / HOURS_PER_YEAR)
        begins = _explicit_events(rng, p, group, member, int(count), since, hours, history) + shared.get(index, [])
        for at in rng.uniform(0, hours, rng.poisson(QUIET_EVENTS_PER_DRIVE_YEAR * hours / HOURS_PER_YEAR)).tolist():
            history.events.append(Event(at, member.drive_id, str(rng.choice(QUIET_EVENT_TYPES)), member.slot))
        begins += first_episodes(rng, p, member, since, hours)
        current: Member | None = member
        while current is not None and (begins or routine_at < hours):
            current = _drive_life(rng, p, group, current, begins, routine_at, start, hours, history)
            if current is not None:
                begins = first_episodes(rng, p, current, current.active_from, hours)
                routine_at = math.inf
    rng = stream(seed, group.kind, group.ordinal, Purpose.LIVES, 1 + len(members))
    _group_routine(rng, group, start, hours, history)
    left_at = {m.drive_id: m.active_to for m in group.members}
    since = max(0.0, group.joined_at)
    history.events = [e for e in history.events if since <= e.at < hours and e.at <= left_at[e.drive_id]]
    return history


def _drive_life(
    rng: np.random.Generator,
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
            for aftershock in aftershocks(p, episode):
                heapq.heappush(queue, aftershock)
            if episode.excess >= UNPLUG_VISIBLE_EXCESS:
                own = episode.stream(1)
                share = p.unplug_share * ((1 + episode.excess) / 2) ** p.unplug_severity_exponent
                if own.random() < min(share, p.unplug_maximum_share):
                    wait = p.unplug_wait_median_hours * math.exp(p.unplug_wait_sigma * own.standard_normal())
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
        is_replaced = bool(rng.random() < p.replacement_share) and unplugged_at >= max(0.0, member.active_from)
        outage = p.outage_median_hours * math.exp(p.outage_sigma * rng.standard_normal())
        if member.active_from > unplugged_at:
            continue  # not in the group yet
        history.events.append(Event(unplugged_at, member.drive_id, "unplug", member.slot))
        if is_replaced:
            member.active_to = unplugged_at
            queue = []
            history.episodes += [(member, e) for e in lived]
            _timeouts(rng, member, lived, hours, history)
            return _replace(rng, p, group, member, unplugged_at + outage * REPLACEMENT_OVER_OUTAGE, start, hours, history)
        back_at = unplugged_at + outage
        member.outages.append((unplugged_at, back_at))
        history.events.append(Event(back_at, member.drive_id, "replug", member.slot))
        _rebuild(rng, group, member, back_at, history)
        is_cured = rng.random() < p.cure_share
        queue = [e for e in queue if e.started_at >= back_at + (CURE_HOURS if is_cured else 0.0)]
        if seen is not None and not is_cured:
            wait = p.recurrence_median_hours * math.exp(p.recurrence_sigma * rng.standard_normal())
            queue.append(follower(rng, p, seen, back_at + wait, "recurrence"))
        heapq.heapify(queue)
        seen = None
    history.episodes += [(member, e) for e in lived]
    _timeouts(rng, member, lived, hours, history)
    return None


def _replace(
    rng: np.random.Generator, p: KindParameters, group: Group, old: Member, at: float, start: datetime, hours: int, history: GroupHistory
) -> Member | None:
    """Put a new drive into the slot of `old` at hour `at`; none if that is after the span."""
    if at >= hours:
        return None
    new = successor(rng, group, old, p, at, start)
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
        if rng.random() < p.explicit_event_slow_share:
            # a drive that stops answering is slow by a multiple, and for the rest of the hour at the least
            excess = 2.0 + first_excess(rng, p, 1.0)
            begun.append(Episode(at, at + 1.0 + length_hours(rng, p, p.episode_median_hours, excess), excess, event_type, draw_fate(rng)))
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


EVENTS_SCHEMA: dict[str, pl.DataType] = {
    "occurred_at": pl.Datetime("us"),
    "drive_id": pl.String(),
    "event_type": pl.String(),
    "raid_group_id": pl.String(),
    "slot": pl.Int64(),
    "ended_at": pl.Datetime("us"),
    "detail": pl.String(),
    "collected_at": pl.Datetime("us"),
}


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

"""From mechanism to records: the rows of `drive_hours`, day by day for the whole fleet.

A day is made as dense arrays of (hour, member), members in order of group and drive, so that rows come out sorted
by hour, group, drive and memory is bounded by one day. Latencies are microseconds, times hours since the start.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from ingest.contract.fleet import CONTRACT
from simulate.groups import FAR_FUTURE, FAR_PAST, HOURS_PER_YEAR, Group, Member
from simulate.operators import GroupHistory
from simulate.parameters import KINDS, Kind, KindParameters, Parameters
from simulate.slowness import SEVERITY_HOUR_SIGMA, Episode, hourly_excess
from simulate.streams import LEVELLED, Leveller, Purpose, normal, stream
from simulate.workload import CAPACITY_IOPS, GroupWorkload

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

TIMER_TICK_US = 250.0
MAXIMUM_UTILISATION = 0.45
"""Load makes a whole group slower by no more than 1 / (1 - this): less than twice, or every busy night were an alert."""
SLOW = 2.0
"""Latency over the normal latency from which a drive-hour counts as slow here (ratio)."""
KEPT_POWER = 0.7
"""A drive that the array reads around keeps the rank of it, 0..1, to this power of its I/Os."""
MOST_EXTRA = 40.0
"""A slow drive's extra I/Os, or the extra size of its I/Os, are at most this (ratio)."""
GAP_MEDIAN_HOURS = 2.0
GAPS_PER_GROUP_YEAR = 12.0
DIRECTION_SIGMA = 0.015
"""Log noise of read against write latency of a drive-hour."""
WRITE_LATENCY_FACTOR = 0.65
"""Write latency over read latency, disk cache or SSD buffer."""
QUEUED_EXCESS = 1.5
"""Retries grow with the extra latency up to this (ratio)."""
MERGED_EXCESS = 2.5
"""A drive slower than this drops I/Os at their timeout rather than to merge them (ratio)."""
LEAST_RATE = 0.02
"""A spared drive keeps this share of its I/Os."""
SMALLER_SHARE, SMALLER_POWER = 0.3, 0.43
"""A spared SSD is left the smaller I/Os in this share of cases; their size over the others' is uniform to this power."""
MOST_IOS = np.float32(2e9)
"""I/Os of a drive in an hour that its counter can hold."""
LEAST_PRESENCE = 0.02
"""A drive that was there for less of an hour than this sends no record of it."""
BATCH_CELLS = 200_000
FRAME_ROWS = 500_000

_MEASURED = ("read_ios", "write_ios", "read_latency_us", "write_latency_us", "read_blocks", "write_blocks", "block_bytes", "coverage")
DRIVE_HOURS_SCHEMA = {name: CONTRACT["drive_hours"][name] for name in ("hour_utc", "drive_id", "raid_group_id", *_MEASURED, "collected_at")}
BLOCK_BYTES = 4096

Cells = tuple[list[int], list[int], list[float]]
"""Hours, members and values, in step."""
Span = tuple[int, float, float, float]
"""A member, from when, to when, and a value for every hour between; an hour covered in part gets its part of it."""


@dataclass
class Sparse:
    """Effects on few of the (hour, member) cells, sorted by hour."""

    hour: Ints
    member: Ints
    value: Floats

    @classmethod
    def of(cls, hour: list[int], member: list[int], value: list[float]) -> "Sparse":
        """Sorted arrays of the given cells; the sort is stable, so sums come out alike on every run."""
        hours = np.asarray(hour, dtype=np.int64)
        order = np.argsort(hours, kind="stable")
        return cls(hours[order], np.asarray(member, dtype=np.int64)[order], np.asarray(value, dtype=np.float32)[order])

    @classmethod
    def of_spans(cls, spans: list[Span], hours: int) -> "Sparse":
        """Sorted arrays of the cells that `spans` cover in hours [0, hours)."""
        member, since, until, value = np.asarray(spans, dtype=np.float64).reshape(-1, 4).T
        first, last = np.maximum(np.floor(since), 0), np.minimum(np.ceil(until), hours)
        counts = np.maximum(last - first, 0).astype(np.int64)
        of = np.repeat(np.arange(len(spans)), counts)
        hour = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        covered = value[of] * (np.minimum(hour + 1, until[of]) - np.maximum(hour, since[of]))
        order = np.argsort(hour, kind="stable")
        return cls(hour[order].astype(np.int64), member[of][order].astype(np.int64), covered[order].astype(np.float32))

    def within(self, first: int, last: int) -> "Sparse":
        """The cells of hours [first, last), hours counted from `first`."""
        a, b = np.searchsorted(self.hour, (first, last))
        return Sparse(self.hour[a:b] - first, self.member[a:b], self.value[a:b])


@dataclass
class Fleet:
    """The fleet as arrays: G groups, M members (columns), hours H."""

    seed: int
    start: datetime
    hours: int
    parameters: Parameters
    groups: list[Group]
    first_member: Ints  # (G + 1): members of group g are first_member[g]:first_member[g + 1]
    drive_ids: pl.Series
    group_ids: pl.Series  # per member
    drive_latency: Floats  # per member: factor on the group's base latency, lasting slowness included
    rate_share: Floats
    noise: Floats
    io_size: Floats  # per member: factor on the group's I/O size
    rate: Floats  # (H, G)
    read_share: Floats  # (H, G)
    base_latency_us: Floats  # (G)
    io_blocks: Floats  # (G)
    is_coarse: npt.NDArray[np.bool_]  # (G)
    is_striped: npt.NDArray[np.bool_]  # (G)
    excess: Sparse  # extra latency
    hot: Sparse  # extra rate
    eased: Sparse  # log factor on the latency during a hot spot
    shrunk: Sparse  # log factor on the I/O size of a spared drive
    absence: Sparse  # share of the hour the member was away
    gone: list[tuple[int, int, int]]  # whole hours [from, to) a member is away
    gaps: list[tuple[int, int, int]]  # whole hours [from, to) a group's records are lost


def assemble(
    seed: int,
    start: datetime,
    hours: int,
    parameters: Parameters,
    groups: Sequence[Group],
    histories: Sequence[GroupHistory],
    workloads: Sequence[GroupWorkload],
) -> Fleet:
    """Put groups, their histories and workloads side by side. Groups keep their order, members sort by drive."""
    excess: Cells = ([], [], [])
    hot: list[Span] = []
    eased: list[Span] = []
    shrunk: list[Span] = []
    absence: list[Span] = []
    gone: list[tuple[int, int, int]] = []
    gaps: list[tuple[int, int, int]] = []
    ordered: list[Member] = []
    first_member = [0]
    asked, merged = ({kind: Leveller() for kind in KINDS} for _ in range(2))
    rates = np.empty((hours, len(groups)), dtype=np.float32)
    read_shares = np.empty((hours, len(groups)), dtype=np.float32)
    for g, (group, history, workload) in enumerate(zip(groups, histories, workloads, strict=True)):
        p = parameters.of(group.kind)
        rng = stream(seed, group.kind, group.ordinal, Purpose.COLLECTION)
        offset = len(ordered)
        column = {id(m): offset + i for i, m in enumerate(sorted(group.members, key=lambda m: m.drive_id))}
        ordered.extend(sorted(group.members, key=lambda m: m.drive_id))
        first_member.append(len(ordered))
        slow_from = len(excess[0])
        for member, episode in history.episodes:
            own = episode.stream(2)
            spared_u, kept_rate, kept_size = own.random(), own.random(), own.random()
            if p.spared_power:
                # mostly it keeps I/Os as large as before; else the smaller ones
                kept_rate, kept_size = kept_rate ** (1 / p.spared_power[0]), min(kept_size / SMALLER_SHARE, 1.0) ** SMALLER_POWER
            at, values = hourly_excess(own, episode, hours, SEVERITY_HOUR_SIGMA[group.kind])
            excess[0].extend(at)
            excess[1].extend([column[id(member)]] * len(at))
            excess[2].extend(values)
            if group.kind in LEVELLED:
                if member.role == "data":
                    # reads around a drive, and retries, are spread evenly over slow hours
                    slow_hours = float(sum(1 + value >= SLOW for value in values))
                    asked_u, merged_u = asked[group.kind].next(slow_hours), merged[group.kind].next(slow_hours)
                    _ask_again(p, column[id(member)], episode, asked_u, merged_u, hot, shrunk)
            elif spared_u < p.spared_share:
                # the array reads around the drive: fewer I/Os reach it, and smaller ones
                hot.append((column[id(member)], episode.started_at, episode.ended_at, kept_rate - 1))
                shrunk.append((column[id(member)], episode.started_at, episode.ended_at, math.log(kept_size)))
        if group.is_closed_loop and len(excess[0]) > slow_from:
            _hold_back(workload.rate_iops, excess[0][slow_from:], excess[2][slow_from:], p.closed_loop_exponent)
        for index, since, until, factor, log_latency in workload.hot_spots:
            hot.append((column[id(group.members[index])], since, until, factor - 1))
            eased.append((column[id(group.members[index])], since, until, log_latency))
        for member in group.members:
            if member.active_from > 0 or member.active_to < hours or member.outages:
                _away(absence, gone, column[id(member)], member, hours)
        for at in rng.uniform(0, hours, rng.poisson(GAPS_PER_GROUP_YEAR * hours / HOURS_PER_YEAR)).tolist():
            gaps.append((g, int(at), int(at) + max(1, round(GAP_MEDIAN_HOURS * math.exp(rng.standard_normal())))))
        if group.left_at < hours:
            gaps.append((g, int(group.left_at), hours))
        rates[:, g] = workload.rate_iops
        read_shares[:, g] = workload.read_share
    ids = [group.raid_group_id for group in groups]
    widths = np.diff(first_member)
    return Fleet(
        seed=seed,
        start=start,
        hours=hours,
        parameters=parameters,
        groups=list(groups),
        first_member=np.asarray(first_member, dtype=np.int64),
        drive_ids=pl.Series([m.drive_id for m in ordered], dtype=pl.String()),
        group_ids=pl.Series(ids, dtype=pl.String()).gather(np.repeat(np.arange(len(groups)), widths)),
        drive_latency=np.asarray([m.latency_factor * (1 + m.fail_slow_excess) for m in ordered], dtype=np.float32),
        rate_share=np.asarray([m.rate_share for m in ordered], dtype=np.float32),
        noise=np.asarray([m.noise_factor for m in ordered], dtype=np.float32),
        io_size=np.asarray([m.io_size_factor for m in ordered], dtype=np.float32),
        rate=rates,
        read_share=read_shares,
        base_latency_us=np.asarray([g.base_latency_us for g in groups], dtype=np.float32),
        io_blocks=np.asarray([w.io_blocks for w in workloads], dtype=np.float32),
        is_coarse=np.asarray([g.is_coarse for g in groups], dtype=np.bool_),
        is_striped=np.asarray([g.is_striped for g in groups], dtype=np.bool_),
        excess=Sparse.of(*excess),
        hot=Sparse.of_spans(hot, hours),
        eased=Sparse.of_spans(eased, hours),
        shrunk=Sparse.of_spans(shrunk, hours),
        absence=Sparse.of_spans(absence, hours),
        gone=gone,
        gaps=gaps,
    )


def _ask_again(
    p: KindParameters, column: int, episode: Episode, asked_u: float, merged_u: float, hot: list[Span], shrunk: list[Span]
) -> None:
    """Load of a slow drive during some episodes: little, because the array reads around it, or twice, or in larger pieces."""
    for found, u, shape in ((hot, asked_u, p.retried_share_median_sigma), (shrunk, merged_u, p.merged_share_median_sigma)):
        factor, (share, median, sigma) = 1.0, shape or (0.0, 0.0, 0.0)
        if u < p.spared_share:
            factor = (u / p.spared_share) ** KEPT_POWER
        elif u >= 1 - share:
            factor = 1 + min(median * math.exp(sigma * normal((u - 1 + share) / share)), MOST_EXTRA)
        if factor != 1:
            found.append((column, episode.started_at, episode.ended_at, factor - 1 if found is hot else math.log(factor)))


def _hold_back(rate: Floats, hour: list[int], excess: list[float], exponent: float) -> None:
    """Clients that wait for the slowest drive ask less of the whole group."""
    worst = np.zeros(len(rate), dtype=np.float32)
    np.maximum.at(worst, np.asarray(hour), np.asarray(excess, dtype=np.float32))
    rate /= (1 + worst) ** np.float32(exponent)


def _away(absence: list[Span], gone: list[tuple[int, int, int]], column: int, member: Member, hours: int) -> None:
    """Note when a member is not there: whole hours apart from the broken hours at the ends."""
    stretches = list(member.outages)
    if member.active_from != FAR_PAST:
        stretches.append((0.0, member.active_from))
    if member.active_to != FAR_FUTURE:
        stretches.append((member.active_to, float(hours)))
    for since, until in stretches:
        since, until = max(since, 0.0), min(until, float(hours))
        if since >= until:
            continue
        first, last = math.ceil(since), math.floor(until)
        if first > last:  # within one hour
            absence.append((column, since, until, 1.0))
            continue
        absence.append((column, since, first, 1.0))
        absence.append((column, last, until, 1.0))
        if first < last:
            gone.append((column, first, last))


@dataclass
class DayCells:
    """One day (or the rest of the span) as dense arrays of (hour, member)."""

    first_hour: int
    read_ios: npt.NDArray[np.int32]
    write_ios: npt.NDArray[np.int32]
    read_latency_us: npt.NDArray[np.float64]
    write_latency_us: npt.NDArray[np.float64]
    read_blocks: Ints
    write_blocks: Ints
    presence: Floats  # share of the hour the drive was there; 0 = no record
    delay_seconds: npt.NDArray[np.int32]  # (hour, group): from the hour's end to the record


def day_cells(fleet: Fleet, first: int, last: int, day: int) -> DayCells:
    """Hours [first, last) of the span, which lie in day number `day`."""
    shape = (last - first, len(fleet.drive_ids))
    presence = _presence(fleet, first, last, shape)
    slowness = _dense(fleet.excess.within(first, last), shape)
    hot = _dense(fleet.hot.within(first, last), shape)
    eased = _dense(fleet.eased.within(first, last), shape)
    shrunk = _dense(fleet.shrunk.within(first, last), shape)
    cells = DayCells(
        first,
        np.empty(shape, np.int32),
        np.empty(shape, np.int32),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape, np.int64),
        np.empty(shape, np.int64),
        presence,
        np.empty((shape[0], len(fleet.groups)), np.int32),
    )
    for g0, g1 in _batches(fleet, shape[0]):
        _fill(fleet, cells, g0, g1, day, slowness, hot, eased, shrunk)
    return cells


def _batches(fleet: Fleet, hours: int) -> Iterator[tuple[int, int]]:
    """Runs of groups of one kind with about BATCH_CELLS cells."""
    g0 = 0
    while g0 < len(fleet.groups):
        g1 = g0 + 1
        while (
            g1 < len(fleet.groups)
            and fleet.groups[g1].kind == fleet.groups[g0].kind
            and (fleet.first_member[g1 + 1] - fleet.first_member[g0]) * hours <= BATCH_CELLS
        ):
            g1 += 1
        yield g0, g1
        g0 = g1


def _fill(fleet: Fleet, cells: DayCells, g0: int, g1: int, day: int, slowness: Floats, hot: Floats, eased: Floats, shrunk: Floats) -> None:
    """Make the cells of groups [g0, g1), all of one kind."""
    kind: Kind = fleet.groups[g0].kind
    p = fleet.parameters.of(kind)
    hours, m0, m1 = len(cells.presence), int(fleet.first_member[g0]), int(fleet.first_member[g1])
    z = np.empty((5, hours, m1 - m0), dtype=np.float32)
    for g in range(g0, g1):
        rng = stream(fleet.seed, kind, fleet.groups[g].ordinal, Purpose.HOURS, day)
        a, b = int(fleet.first_member[g]) - m0, int(fleet.first_member[g + 1]) - m0
        z[:, :, a:b] = rng.standard_normal((5, hours, b - a), dtype=np.float32)
        cells.delay_seconds[:, g] = rng.integers(60, 540, hours)
    at = slice(m0, m1)
    group = np.repeat(np.arange(g0, g1), np.diff(fleet.first_member[g0 : g1 + 1]))
    span = slice(cells.first_hour, cells.first_hour + hours)
    presence = cells.presence[:, at]

    rate = fleet.rate[span].take(group, axis=1) * fleet.rate_share[at]
    # a hot spot's own load is in what its latency is: much of it never reaches the medium
    busy = 1 / (1 - np.minimum(rate / np.float32(CAPACITY_IOPS[kind]), np.float32(MAXIMUM_UTILISATION)))
    # a coarse timer sees what an I/O takes, not how long it waits
    busy[:, fleet.is_coarse[group]] = 1
    # a slow drive is asked again for what takes too long, and what waits for it is merged into larger I/Os
    strain = np.minimum(slowness[:, at], 1) * np.abs(z[4])
    # every drive has the same part of a whole stripe
    uneven = np.where(fleet.is_striped[group], np.float32(0), np.float32(1))
    strain *= uneven
    retried, merged = np.float32(p.retry_sigma) * strain, np.float32(p.merge_sigma) * strain
    if p.queue_excess:
        # a queue shows in the third of the hours in which the draw is above 1: exponential in the log
        drawn = np.maximum(np.abs(z[4]), 1)
        queued = uneven * np.minimum(slowness[:, at], 1) * ((drawn**2 - 1) / 2 + np.log(drawn))
        retried += np.float32(p.queue_excess[0]) * queued * np.clip(slowness[:, at], 1, QUEUED_EXCESS)
        # I/Os that time out are not merged
        merged += np.float32(p.queue_excess[1]) * queued * (slowness[:, at] < MERGED_EXCESS)
    rate *= np.exp(uneven * np.float32(p.rate_hour_sigma) * z[0] + retried) * np.maximum(1 + hot[:, at], LEAST_RATE)
    ios = np.minimum(np.rint(rate * (3600 * presence)), MOST_IOS)
    read_share = fleet.read_share[span].take(group, axis=1)
    expected = ios * read_share
    reads = np.rint(np.clip(expected + np.sqrt(expected * (1 - read_share)) * z[1], 0, ios))
    writes = ios - reads

    sigma = fleet.noise[at] * np.float32(p.hour_latency_sigma)
    sigma = np.sqrt(sigma**2 + np.float32(p.single_io_sigma) ** 2 / np.maximum(ios, 4))
    size = fleet.io_size[at] * np.exp(uneven * np.float32(p.rate_hour_sigma) * z[2] + merged + shrunk[:, at])
    latency = fleet.base_latency_us[group] * fleet.drive_latency[at] * busy * np.exp(sigma * z[3])
    latency *= (1 + slowness[:, at]) * np.exp(eased[:, at]) * size ** np.float32(p.io_size_exponent)
    skew = np.exp(np.float32(DIRECTION_SIGMA) * z[4])
    read_latency = np.round((latency * skew).astype(np.float64), 1)
    write_latency = np.round((latency / skew * np.float32(WRITE_LATENCY_FACTOR)).astype(np.float64), 1)
    coarse = fleet.is_coarse[group]
    if coarse.any():
        # such a timer sees the merged I/Os and gives both directions the same whole number of ticks
        ticks = np.maximum(np.rint(latency[:, coarse].astype(np.float64) / TIMER_TICK_US), 1) * TIMER_TICK_US
        read_latency[:, coarse] = write_latency[:, coarse] = ticks

    blocks = np.maximum(size * fleet.io_blocks[group], 1).astype(np.float64)
    cells.read_ios[:, at], cells.write_ios[:, at] = reads, writes
    cells.read_latency_us[:, at], cells.write_latency_us[:, at] = read_latency, write_latency
    cells.read_blocks[:, at], cells.write_blocks[:, at] = np.rint(reads * blocks), np.rint(writes * blocks)


def _presence(fleet: Fleet, first: int, last: int, shape: tuple[int, int]) -> Floats:
    """Share of each hour that each member was there."""
    presence = np.maximum(1 - _dense(fleet.absence.within(first, last), shape), 0)
    for column, since, until in fleet.gone:
        if since < last and until > first:
            presence[max(since - first, 0) : until - first, column] = 0
    for g, since, until in fleet.gaps:
        if since < last and until > first:
            presence[max(since - first, 0) : until - first, fleet.first_member[g] : fleet.first_member[g + 1]] = 0
    presence[presence < LEAST_PRESENCE] = 0
    return presence


def _dense(sparse: Sparse, shape: tuple[int, int]) -> Floats:
    """The cells as a dense array; cells named twice add up."""
    made = np.zeros(shape, dtype=np.float32)
    np.add.at(made, (sparse.hour, sparse.member), sparse.value)
    return made


def frames(fleet: Fleet, cells: DayCells) -> Iterator[pl.DataFrame]:
    """The day's rows in `DRIVE_HOURS_SCHEMA`, some hours at a time, sorted by hour, group, drive."""
    hours, columns = cells.presence.shape
    step = max(1, FRAME_ROWS // max(columns, 1))
    group = np.repeat(np.arange(len(fleet.groups)), np.diff(fleet.first_member))
    hour_zero = np.datetime64(fleet.start + timedelta(hours=cells.first_hour), "us")
    for h0 in range(0, hours, step):
        part = slice(h0, h0 + step)
        presence = cells.presence[part].ravel()
        kept = np.flatnonzero(presence)
        hour, column = np.divmod(kept, columns)
        hour_utc = hour_zero + (hour + h0).astype("timedelta64[h]")
        presence = presence[kept]
        delay = cells.delay_seconds[part][hour, group[column]].astype("timedelta64[s]")
        frame = pl.DataFrame(
            {
                "hour_utc": hour_utc,
                "drive_id": fleet.drive_ids.gather(column),
                "raid_group_id": fleet.group_ids.gather(column),
                "read_ios": cells.read_ios[part].ravel()[kept].astype(np.int64),
                "write_ios": cells.write_ios[part].ravel()[kept].astype(np.int64),
                "read_latency_us": cells.read_latency_us[part].ravel()[kept],
                "write_latency_us": cells.write_latency_us[part].ravel()[kept],
                "read_blocks": cells.read_blocks[part].ravel()[kept],
                "write_blocks": cells.write_blocks[part].ravel()[kept],
                "block_bytes": np.full(len(kept), BLOCK_BYTES, dtype=np.int64),
                "coverage": np.round(presence.astype(np.float64), 4),
                "collected_at": hour_utc + np.timedelta64(3600, "s") + delay,
            },
            schema=DRIVE_HOURS_SCHEMA,
        )
        yield frame.with_columns(
            # a drive away for part of the hour says so; a whole hour needs no word
            pl.when(pl.col("coverage") < 1).then("coverage"),
            pl.when(pl.col("read_ios") > 0).then("read_latency_us"),
            pl.when(pl.col("write_ios") > 0).then("write_latency_us"),
        )

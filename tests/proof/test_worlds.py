"""Small worlds with a truth (simulate/world.py) against five laws: who was measured, when, and what became of the rest.

Many worlds share a warehouse. A plan that fails is judged again alone, so that Hypothesis can shrink it.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from engine.build import build
from engine.warehouse import Warehouse
from ingest import IngestError, ingest
from simulate.world import (
    DAY,
    EVERY,
    HAPPENINGS,
    HOUR,
    INGESTED,
    MOST_A_SECOND,
    SOURCES,
    Bearing,
    Drive,
    Host,
    Plan,
    Reading,
    World,
    intervals,
    looks,
    parts,
    prometheus_samples,
    render,
    series,
)  # fmt: skip
from tests.ingest.prometheus_server import Server, serving
from tests.proof.support import ROOT, marts_differences, rows, seeds

PLANS = st.builds(
    Plan,
    seed=st.integers(0, 10**6),
    hosts=st.integers(1, 3),
    drives=st.integers(3, 8),
    hours=st.integers(3, 5),
    happenings=st.lists(st.sampled_from(HAPPENINGS), unique=True, max_size=6).map(tuple),
    sources=st.sampled_from(SOURCES),
    overlap=st.booleans(),
    deliveries=st.integers(2, 3),
)


# What the sources' own facts decide ---------------------------------------------------------------------------------------


@dataclass
class Step:
    """A step of one reader of a device between two readings. drive: whose I/Os they are; null where of two. amount: reads, of Ceph seconds.
    is_cut: the reader saw that the device began again in it. is_reported: the readings say themselves whose they are.
    has_come: the reader's look before did not list the device. Nobody knows when in the interval it came, so its I/Os count in the last
    second. is_doubtful: the same, but that look is in another delivery, so the product counts the whole interval.
    """

    source: str
    watch: str
    host: Host
    device: str
    begin: int
    end: int
    bearing: Bearing | None
    amount: float
    is_cut: bool = False
    is_reported: bool = False
    has_come: bool = False
    is_doubtful: bool = False


def readers(world: World) -> list[str]:
    """The sources of a world that read counters."""
    return [source for source in world.plan.sources.split() if source in EVERY]


def steps(world: World, source: str) -> Iterator[list[Step]]:
    """Steps of each device and reader, in order."""
    if source in ("sadf", "iostat"):
        found: dict[tuple[int, str], list[Step]] = defaultdict(list)
        seen, delivered = list(intervals(world, source)), parts(world)
        looked = {(each.host.number, each.end) for each in seen}
        listed = {(each.host.number, each.device, each.end) for each in seen}
        for each in seen:
            is_new = (each.host.number, each.begin) in looked and (each.host.number, each.device, each.begin) not in listed
            # an interval of more than an hour is rejected
            is_known = each.end - each.begin <= HOUR and any(since <= each.begin and each.end < until for since, until in delivered)
            has_come = is_new and is_known
            begin = each.end - 1 if has_come else each.begin
            step = Step(source, source, each.host, each.device, begin, each.end, each.bearing, each.ios)
            step.has_come, step.is_doubtful = has_come, is_new and not has_come
            found[each.host.number, each.device].append(step)
        for device in found.values():
            # a restart cuts the names of the devices that its delivery has intervals of
            known = [part for part in delivered if any(part[0] <= each.end < part[1] for each in device)]
            ups = [up for _, up in device[0].host.boots if source == "sadf" and any(since <= up < until for since, until in known)]
            yield with_breaks(device, ups)
        return
    for one in series(world, source):
        is_reported = (source in ("prometheus", "api") and one.is_reported) or world.plan.sources == "zfs"
        followed = []
        for before, after in pairwise(one.readings):
            is_same = before.bearing is after.bearing
            bearing = after.bearing if is_same else None
            is_cut = after.bearing.counters(after.at)[0] < before.bearing.counters(before.at)[0] and source not in ("zfs", "ceph")
            if source == "zfs" and (not is_same or after.at - before.at != EVERY["zfs"] or one.device[2] >= "i"):
                continue
            # a look of Ceph says how an OSD has been, but not for all of a time in which nobody looked
            seconds = min(after.at - before.at, 2 * EVERY[source])
            amount = 0.0 if bearing is None else float(seconds if source == "ceph" else bearing.ios(before.at, after.at))
            followed.append(Step(source, one.watch, one.host, one.device, before.at, after.at, bearing, amount, is_cut, is_reported))
        yield with_breaks(followed, [])


def with_breaks(device: list[Step], boots: list[int]) -> list[Step]:
    """Those steps and, between and instead of them, the cuts that were seen: long steps, breaks and boots."""
    found: list[Step] = []
    for each in device:
        # Ceph has no counters that say when a device began again
        longest = 2 * EVERY[each.source] if each.source != "ceph" else 2**40
        # a boot's instant is told, and who looked after it saw who came up
        ups = [up for up in boots if found and found[-1].end < up <= each.begin]
        if len(ups) > 1:  # the product keeps only the last restart before an interval: it cannot tell whose the interval before both was
            found[-1].bearing = None
        if ups or (found and each.begin - found[-1].end > (2 if each.has_come else longest)):
            found.append(Step(each.source, each.watch, each.host, each.device, found[-1].end, max(ups, default=each.begin), None, 0, True))
        # a host's clock that is set ahead shows as time in which nobody looked
        is_set = each.begin < each.host.set_at <= each.end and not each.is_reported
        each.is_cut |= each.end - each.begin + is_set * each.host.set_by > longest
        found.append(each)
    return found


def stretches(world: World) -> Iterator[tuple[list[Step], list[tuple[int, int]]]]:
    """Facts of each device and reader: steps between two cuts, and the looks (instant, number of the drive) among them."""
    names: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for look in looks(world):
        for bearing in look.bearings:
            if not look.host.is_reported(bearing, look.at):
                continue
            names[look.host.number, bearing.device].append((look.at, bearing.drive.number))
    for source in readers(world):
        for device in steps(world, source):
            cuts = [-1, *(n for n, each in enumerate(device) if each.is_cut), len(device)]
            for first, last in pairwise(cuts):
                if stretch := device[first + 1 : last]:
                    # a look counts up to a quarter of a gap, five minutes at most, before it ends, as the cut is said to be there; a pool
                    # has no counters that say when one began or ended, so ten minutes of it on either side say nothing
                    gaps = [n in range(len(device)) and device[n].end - device[n].begin > 2 * EVERY[source] for n in (first, last)]
                    length = device[first].end - device[first].begin
                    early, late = (gaps[0] * 600, gaps[1] * 600) if source == "zfs" else (gaps[0] * min(300, length / 4), 0)
                    if source == "sadf" and last < len(device) and device[last].end in [up for _, up in device[last].host.boots]:
                        late = device[last].end  # it says when the host came up, so a look before that is of the time before
                    # before a scraped device had no serial number, another series described it
                    since = -(2**40) if stretch[0].is_reported or source not in ("prometheus", "api") else stretch[0].begin
                    begin = since if first < 0 else max(device[first].begin, device[first].end - early)
                    end = 2**40 if last == len(device) else min(device[last].end, stretch[-1].end + late)
                    seen = names[stretch[0].host.number, stretch[0].device]
                    # who watches says what changes: until when a drive was there that it did not see replaced, others' looks say
                    if last == len(device) and [number for at, number in seen if at > stretch[-1].end and number != number_of(stretch[-1])]:
                        for each in stretch:
                            each.is_reported &= number_of(each) != number_of(stretch[-1])
                    # other sources' looks name a drive without a serial number where they give its host the same name
                    is_alike = "lsblk" in world.plan.sources and "pod address" not in world.plan.happenings
                    is_looked = stretch[0].is_reported or source not in ("prometheus", "api") or is_alike
                    found = [look for look in seen if is_looked and begin <= look[0] <= end]
                    # a drive that was seen within the cut, ten minutes before its end at most, may have been there after it
                    late_at = max(device[first].begin, device[first].end - 600) if first >= 0 else begin
                    within = [look for look in seen if late_at < look[0] < begin][-1:]
                    found = [*(look for look in within if found and look[1] != found[0][1]), *found]
                    # a look within a pool's ten minutes may contradict another, but by itself decides nothing
                    sure = begin + early - min(early, 300, length / 4), end - late * (source == "zfs")
                    yield stretch, found if any(sure[0] <= at <= sure[1] for at, _ in found) else []


def number_of(step: Step) -> int | None:
    return step.bearing.drive.number if step.bearing else None


def seen_by(step: Step, seen: list[tuple[int, int]]) -> tuple[list[int], list[int], list[int]]:
    """The drives of the last look before a step, of those within and of the first one after it."""
    before = [number for at, number in seen if at <= step.begin][-1:]
    return before, [number for at, number in seen if step.begin < at < step.end], [number for at, number in seen if at >= step.end][:1]


def decided(world: World) -> Iterator[Step]:
    """Steps of spans whose drive the sources' own facts tell: no cut within, and the readings or all looks next to them say who it is."""
    facts = list(stretches(world))
    # such an interval may overlap with what the drive did elsewhere, and of two spans that overlap the product keeps one
    doubtful = {
        (each.bearing.drive.number, hour_of(each.end - 1)) for stretch, _ in facts for each in stretch if each.is_doubtful and each.bearing
    }
    for stretch, seen in facts:
        spans: dict[int, list[Step]] = defaultdict(list)
        for each in stretch:
            spans[hour_of((each.begin + each.end) / 2 if each.source in ("sadf", "iostat") else each.end - 1)].append(each)
        for hour, span in spans.items():
            # raw keeps no time of a span that goes on over the edge of its hour, so it has to be decided up to there
            wide = [replace(span[0], begin=min(span[0].begin, DAY + hour * HOUR)), *span[1:]]
            wide[-1] = replace(wide[-1], end=max(wide[-1].end, DAY + (hour + 1) * HOUR))
            if all(
                each.bearing
                and not each.host.set_by
                and (each.bearing.drive.number, hour) not in doubtful
                and (each.is_reported or ({number for found in seen_by(each, seen) for number in found} == {each.bearing.drive.number}))
                for each in wide
            ):
                # before the first look a device is unknown
                yield from (each for each in span if each.is_reported or (each.end > seen[0][0] and is_numbered(world, each, seen)))


def is_numbered(world: World, step: Step, seen: list[tuple[int, int]]) -> bool:
    """Ceph says an OSD's number, and whose it is in its metadata alone, which have to be in the same delivery (docs/sources/ceph.md)."""
    looked = [at for begin, end in parts(world) if begin < step.end <= end for at, _ in seen if begin <= at < end]
    return bool(looked) or step.source != "ceph"


@lru_cache(maxsize=64)
def hidden(world: World) -> set[int]:
    """Drives that changed a device between two cuts, where the looks there do not show it: no source can know."""
    found: set[int] = set()
    for stretch, seen in stretches(world):
        borne, looked = (
            [number for number, _ in groupby(numbers)]
            for numbers in ([each.bearing.drive.number for each in stretch if each.bearing], [number for _, number in seen])
        )
        is_unseen = any(not each.bearing and len({n for several in seen_by(each, seen) for n in several}) < 2 for each in stretch)
        within = {number for at, number in seen if stretch[0].begin <= at <= stretch[-1].end}
        is_another = bool(within) and not stretch[0].is_reported and not {*borne} <= {*looked}
        if is_unseen or is_another or len(borne) > max(len(looked), 1):
            place = stretch[0].host.number, stretch[0].device
            found |= {each.drive.number for each in world.bearings if (each.host, each.device) == place}
    found |= {number for source in readers(world) for number in _unseen(world, source)}
    # A clock that is set back shows some times twice: nobody knows which of two looks came first. One that differs from another reader's
    # leaves open what it saw while a drive changed its device; who looks at arrays has the host's clock.
    is_several = len(readers(world)) > 1 or any(host.arrays for host in world.hosts)
    for host in world.hosts:
        around = [
            each
            for each in world.bearings
            if each.host == host.number
            and (abs(each.begin - host.set_at) < -host.set_by or (is_several and host.set_by and each.begin > host.set_at))
        ]
        found |= {each.drive.number for each in world.bearings if (each.host, each.device) in {(one.host, one.device) for one in around}}
    return found


def _unseen(world: World, source: str) -> Iterator[int]:
    """Drives of a device whose exporter does not tell of a new one that goes on counting above the old one's I/Os."""
    readings: dict[tuple[int, str, str], list[tuple[Any, bool]]] = defaultdict(list)
    for one in series(world, source):
        readings[one.host.number, one.device, one.watch] += [(each, one.is_reported) for each in one.readings]
    for several in readings.values():
        for (before, _), (after, is_reported) in pairwise(sorted(several, key=lambda each: each[0].at)):
            if before.bearing is not after.bearing and not is_reported and _count(before) <= _count(after):
                yield from (before.bearing.drive.number, after.bearing.drive.number)


def _count(reading: Reading) -> int:
    return reading.bearing.counters(reading.at)[0]


def is_unreported(world: World, drive: Drive) -> bool:
    """Whether the tools of a host of the drive do not report it."""
    return any(not world.hosts[each.host].is_reported(each, world.end) for each in world.bearings if each.drive.number == drive.number)


def hour_of(at: float) -> int:
    return int(at - DAY) // HOUR


# What came out ------------------------------------------------------------------------------------------------------------


@dataclass
class Verdicts:
    """Findings of a warehouse against the laws, world by world."""

    worlds: list[World]
    broken: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def world_of(self, name: str) -> World | None:
        found = re.match(r"Z(\d{3})A|w(\d{3})h|10\.(\d+)\.|QM(\d{3})01$|(\d{12})$|wwn:0x5000c5(\w{5})|(\w+)$", name)
        text = next((each for each in found.groups() if each is not None), "") if found else ""
        number = int(text, 16) if found and found[6] else int(text) if text.isdecimal() else -1
        return next((world for world in self.worlds if world.number == number), None)

    def say(self, world: World | None, law: int, text: str) -> None:
        self.broken[world.number if world else -1].append(f"law {law}: {text}")


def bearers(world: World, name: str) -> list[Bearing]:
    """Who may be meant by HOST/DEVICE or HOST@LABEL/DEVICE."""
    place, _, device = name.partition("/")
    host_name, _, label = place.partition("@")
    hosts = [
        host.number
        for host in world.hosts
        if host_name in {host.name, *(labels["instance"].rpartition(":")[0] for _, labels in host.labels)}
        and (not label or label in {value for _, labels in host.labels for value in labels.values()})
    ]
    found = [each for each in world.bearings if each.host in hosts]
    return [each for each in found if device in (each.device, f"ata-{each.drive.model.replace(' ', '_')}_{each.drive.reported[0]}")]


def judged(warehouse: Warehouse, worlds: list[World]) -> Verdicts:
    """Laws 1 to 4."""
    said = Verdicts(worlds)
    hours = rows(warehouse, "select * from intermediate.int_drive_hours__identified order by drive_id, hour_utc")
    by_world: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in hours:
        world = said.world_of(row["drive_id"])
        by_world[world.number if world else -1].append(row)
    for row in by_world[-1]:
        said.say(None, 4, f"{row['drive_id']} is nobody")
    for world in worlds:
        attributed: dict[tuple[int, int], float] = defaultdict(float)
        unknown = hidden(world)
        twice: dict[tuple[int, int], float] = defaultdict(float)
        for row, before in zip(by_world[world.number], [None, *by_world[world.number]], strict=False):
            if drive := _attribute(said, world, row, attributed, unknown):
                hour = hour_of(row["hour_utc"].replace(tzinfo=UTC).timestamp())
                twice[drive.number, hour] += seen_twice(world, drive, row, before)
        known = {key: amount for key, amount in attributed.items() if key[0] not in unknown}
        _most(said, world, known, twice)
        _least(said, world, attributed)
    _counted(said, warehouse, by_world)
    _named(said, warehouse)
    return said


def _attribute(
    said: Verdicts, world: World, row: dict[str, Any], attributed: dict[tuple[int, int], float], unknown: set[int]
) -> Drive | None:
    """Law 1: the latency of a row is that of its drive alone. Returns: the drive that it is attributed to."""
    name, hour = row["drive_id"], hour_of(row["hour_utc"].replace(tzinfo=UTC).timestamp())
    where = f"{name} {row['hour_utc']:%H:%M} ({row['source']})"
    factors = {"read_latency_us": 1, "write_latency_us": 3, "latency_us": 1 if row["source"] == "ceph" else 2}
    latencies = {round(row[column] / factor / 1000, 6) for column, factor in factors.items() if row[column] is not None}
    ios = row["io_count"] / 2 if row["io_count"] is not None else row["read_ios"]
    amount = row["coverage"] * HOUR if row["source"] == "ceph" else ios
    if row["read_ios"] is not None and row["read_ios"] != row["write_ios"]:
        said.say(world, 1, f"{where}: {row['read_ios']} reads and {row['write_ios']} writes")
    if not amount or not latencies:
        return None
    known = [drive for drive in world.drives if drive.serial == name and drive.is_named]
    if not known:
        begin, end = DAY + hour * HOUR, DAY + (hour + 1) * HOUR
        known = [
            each.drive
            for each in bearers(world, name)
            if each.begin < end + HOUR and each.end > begin - HOUR and latencies == {each.drive.ms}
        ][:1]
        if not known:
            # a device of which nobody tells whose it is goes on by its own name when its drive is changed
            here = {each.drive.ms for each in bearers(world, name) if each.begin < end and each.end > begin}
            if len(here) > 1 and len(latencies) == 1 and min(here) < min(latencies) < max(here):
                return None
            if any(each.drive.number in unknown or is_unreported(world, each.drive) for each in bearers(world, name)):
                return None
            at_all = sorted({(each.drive.serial, each.drive.ms) for each in bearers(world, name)})
            said.say(world, 1, f"{where}: {amount} I/Os at {sorted(latencies)} ms are of none of {at_all}")
            return None
    (drive,) = known
    # of others, _least asks for what the looks decide
    if drive.is_named and drive.serial != name and not is_unreported(world, drive) and world.plan.sources in ("prometheus", "api", "zfs"):
        said.say(world, 4, f"{where}: {amount} I/Os are of {drive.serial}")
    if latencies != {drive.ms} and drive.number not in unknown:
        others = [f"{each.serial} {each.ms}" for each in world.drives if world.ios(each, world.start, world.end)]
        said.say(world, 1, f"{where}: {amount} I/Os at {sorted(latencies)} ms, its own {drive.ms}; others: {', '.join(others)}")
    if not drive.is_named or name == drive.serial:
        attributed[drive.number, hour] += amount
    else:
        # at most the truth, and not what is asked for; by each name that sources have for the host (2000 stands for a whole day)
        is_own = name.partition("/")[0] in {host.name for host in world.hosts}
        attributed[drive.number, hour + (1000 if is_own else 3000)] += amount
    return drive


def set_by(world: World, drive: Drive) -> int:
    """The most by which the clock of a host of the drive was set."""
    return max(abs(world.hosts[each.host].set_by) for each in world.bearings if each.drive.number == drive.number)


def seen_twice(world: World, drive: Drive, row: dict[str, Any], before: dict[str, Any] | None) -> float:
    """The seconds that may count in a row of a drive and, by another reader, in the one before: of the interval over the hour's edge, which
    each reader counts where it ends; and those by which the clocks of two sources differ, which no source shows, between their spans too.
    """
    several = readers(world)
    is_replicated = any(world.hosts[each.host].replicas > 1 for each in world.bearings if each.drive.number == drive.number)
    is_next = before is not None and before["drive_id"] == row["drive_id"]
    is_other = is_next and (is_replicated or before["source"] != row["source"])
    clocks = (is_other + row["part_spans"]) * set_by(world, drive) if len(several) > 1 else 0
    return is_other * max(EVERY[source] for source in several) + clocks


def _most(said: Verdicts, world: World, attributed: dict[tuple[int, int], float], twice: dict[tuple[int, int], float]) -> None:
    """Law 2: at most the truth, by hour give or take what one interval holds, and over the day, but for seconds that were seen `twice`."""
    is_time = world.plan.sources == "ceph"
    slack = {"sadf": 1800, "iostat": 1800}.get(world.plan.sources.split()[0], 900) + max(abs(host.set_by) for host in world.hosts)
    # where sources call a host differently nothing says that a device whose drive one of them does not know is the drive of the other
    is_named_twice = "pod address" in world.plan.happenings and " diskstats" in world.plan.sources
    totals: dict[tuple[int, int], float] = defaultdict(float)
    for (number, hour), amount in attributed.items():
        drive = world.drives[number]
        begin = DAY + hour % 1000 * HOUR
        most = (
            borne(world, drive, begin - slack, begin + HOUR + slack) if is_time else world.ios(drive, begin - slack, begin + HOUR + slack)
        )
        totals[number, is_named_twice * (hour // 1000)] += amount
        if amount > most + 20 + twice[number, hour % 1000] * max(drive.rates):
            said.say(world, 2, f"{drive.serial} {hour % 1000:02}:00: {amount:.0f} attributed, at most {most} happened")
    for (number, _), amount in totals.items():
        drive = world.drives[number]
        most = borne(world, drive, world.start, world.end) if is_time else world.ios(drive, world.start, world.end)
        slack = 100 if world.plan.sources[:4] in ("sadf", "iost") else 0.5
        if world.plan.sources[:6] == "iostat":
            # it prints no lengths: an interval up to a half longer than usual may be one, or that of a clock that was set
            slack += min(set_by(world, drive), EVERY["iostat"] / 2) * max(drive.rates)
        # what another clock saw before the name was known is the device's
        is_several = len(readers(world)) > 1
        seconds = sum(found for key, found in twice.items() if key[0] == number) + is_several * set_by(world, drive)
        if amount > most + slack + seconds * max(drive.rates):
            said.say(world, 2, f"{drive.serial}, all day: {amount:.0f} attributed, {most} happened")


def borne(world: World, drive: Drive, begin: int, end: int) -> int:
    """Seconds in which a drive was somewhere."""
    found = [each for each in world.bearings if each.drive.number == drive.number]
    return sum(max(min(each.end, end, world.end) - max(each.begin, begin, world.start), 0) for each in found) + 900


def _least(said: Verdicts, world: World, attributed: dict[tuple[int, int], float]) -> None:
    """Law 3: what is decided is attributed."""
    by_watch: dict[str, dict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    shown: dict[tuple[int, int], set[str]] = defaultdict(set)
    for each in decided(world):
        assert each.bearing
        drive = each.bearing.drive
        if drive.is_named or world.plan.sources not in ("diskstats smartctl", "ceph"):  # which say nothing of a drive without a serial
            if hour_of(each.begin) == hour_of(each.end - 1):
                by_watch[each.watch][drive.number, hour_of(each.begin)] += each.amount
                shown[drive.number, hour_of(each.begin)].add(f"{each.host.name}/{each.device}")
            by_watch[each.watch][drive.number, 2000] += each.amount
    counted = {**attributed}
    for (number, hour), amount in attributed.items():
        if hour < 1000:
            counted[number, 2000] = counted.get((number, 2000), 0) + amount
    every = max(EVERY[source] for source in readers(world))
    several = 2 * every * (MOST_A_SECOND if "ceph" not in world.plan.sources else 1) if len(by_watch) > 1 else 0
    for watch, amounts in by_watch.items():
        for (number, hour), amount in amounts.items():
            slack = several * (world.plan.hours + 1 if hour == 2000 else 1) + (30 if watch in ("sadf", "iostat") else 0.5)
            # an hour is covered once, also where a look says how the end of the hour before was
            slack += EVERY["ceph"] * (hour == 2000 and world.plan.sources == "ceph") * sum(len(host.gaps) for host in world.hosts)
            came = counted.get((number, hour), 0)
            if came < amount - slack:
                when = "all day" if hour == 2000 else f"{hour:02}:00, {', '.join(sorted(shown[number, hour]))}"
                said.say(world, 3, f"{world.drives[number].serial} {when}: {came:.0f} attributed, {watch} decides {amount:.0f}")


def _counted(said: Verdicts, warehouse: Warehouse, by_world: dict[int, list[dict[str, Any]]]) -> None:
    """Law 2: every accepted span is in a row, or counted under a reason that is true."""
    accepted: dict[int, int] = defaultdict(int)
    for row in rows(warehouse, "select drive_id from staging.stg_raw__drive_hours"):
        world = said.world_of(row["drive_id"])
        accepted[world.number if world else -1] += 1
    merged: dict[int, int] = defaultdict(int)
    for row in rows(warehouse, "select * from intermediate.int_drive_days__merged"):
        world = said.world_of(row["drive_id"])
        if world is None:
            continue
        merged[world.number] += sum(
            row.get(name) or 0 for name in ("path_hours", "other_hours", "path_spans", "part_spans", "other_spans", "changed_spans")
        )
        if row.get("changed_spans"):
            drives = {each.drive.number for each in bearers(world, row["drive_id"])}
            if len(drives) < 2:
                said.say(world, 2, f"{row['drive_id']}: {row['changed_spans']} spans are said to have changed hands, and one drive bore it")
        if row["shared_serial"] and any(row["shared_serial"] == drive.serial for drive in world.drives):
            said.say(world, 2, f"{row['drive_id']}: {row['shared_serial']} is said to be shared")
        if row.get("path_spans", row.get("path_hours")) and all(
            each.path == (0, 1) and each.drive.number not in hidden(world)
            for each in world.bearings
            if each.drive.serial == row["drive_id"]
        ):
            said.say(world, 2, f"{row['drive_id']} is said to have several paths")
    for world in said.worlds:
        number = world.number
        if accepted[number] != len(by_world[number]) + merged[number]:
            said.say(
                world, 2, f"{accepted[number]} accepted spans, {len(by_world[number])} rows, {merged[number]} counted beside them"
            )  # fmt: skip


def named_so(world: World, name: str) -> list[Drive]:
    """Drives of a serial. Those of several hosts with one world wide name may be one drive that all are attached to: only counters tell."""
    return [
        drive for drive in world.drives if drive.serial == name or (drive.reported[0] == name and drive.reported[1].startswith("0x5000c5"))
    ]


def _named(said: Verdicts, warehouse: Warehouse) -> None:
    """Law 4: one name through all tables, their description of it is true, and an array has one RAID group."""
    drives = {row["drive_id"]: row for row in rows(warehouse, "select * from marts.dim_drives")}
    for name, row in drives.items():
        world = said.world_of(name)
        own = named_so(world, name) if world else []
        own = own or [each.drive for each in bearers(world, name)] if world and (own or "/" in name) else own
        if world and not own:
            said.say(world, 4, f"dim_drives: {name} is nobody")
        for column in ("model", "capacity_bytes"):
            true = {getattr(drive, column.removesuffix("_bytes")) for drive in own}
            # Ceph says the vendor with the model
            if row[column] is not None and true and str(row[column]).removeprefix("ATA ") not in map(str, true):
                said.say(world, 4, f"dim_drives: {name} has {column} {row[column]}, not of {true}")
    for table in ("fct_drive_health", "fct_drive_hours", "fct_drive_events"):
        groups: dict[tuple[int, str], set[str]] = defaultdict(set)
        for row in rows(warehouse, f"select * from marts.{table}"):
            name = row["drive_id"]
            world = said.world_of(name)
            if world is None:
                continue
            if name not in drives:
                said.say(world, 4, f"{table}: {name} is not in dim_drives")
            own = [drive for drive in named_so(world, name) if drive.is_named or drive.serial != name] or [
                each.drive for each in bearers(world, name)
            ]
            counted = re.search(r"(\d+) counted so far", str(row.get("detail")))
            number = int(counted[1]) if counted else None
            if table == "fct_drive_health" and row["attribute"] in ("198", "offline_uncorrectable"):
                number = row["raw_value"]
            if number is not None and number not in {drive.number for drive in own}:
                said.say(world, 4, f"{table}: {name} has {number} of {world.drives[number].serial}")
            # Ceph groups peers by class, ZFS by vdev. Nobody knows the array of a name that two hosts share or without a serial number, nor
            # that of a drive whose place nobody knows
            several = bearers(world, name)
            is_one_host = len({each.host for each in several}) < 2 and not any(is_unreported(world, each.drive) for each in several)
            is_one_host &= not hidden(world) & {drive.number for drive in own}
            if is_one_host and table == "fct_drive_hours" and not {"ceph", "zfs"} & {*world.plan.sources.split()}:
                for uuid in {
                    array.uuid for host in world.hosts for array in host.arrays if {drive.number for drive in own} & {*array.drives}
                }:
                    groups[world.number, uuid].add(row["raid_group_id"])
        for number, uuid in groups:
            world = next(world for world in said.worlds if world.number == number)
            others = {group for key, found in groups.items() if key[1] != uuid for group in found}
            hosts = {
                name for host in world.hosts for name in (host.name, *(labels["instance"].rpartition(":")[0] for _, labels in host.labels))
            }
            true = {group for group in groups[number, uuid] if group.partition("@")[0].partition(" (")[0] not in hosts}
            if len(true) > 1 or true & others:
                said.say(world, 4, f"array {uuid} is {sorted(true)}" + (" as another is" if true & others else ""))


def _same(said: Verdicts, once: Warehouse, twice: Warehouse) -> None:
    """Law 5: the same marts. A row that is in one of them alone tells the world by the names in it; that of all the fleet does not."""
    told: dict[int, list[str]] = defaultdict(list)
    for difference in marts_differences(once.published, twice.published):
        if difference.startswith("study.health_comparison"):  # the last bit of a correlation follows the order of rows
            continue
        found = re.search(r"'((?:Z\d{3}A|w\d{3}h|10\.\d+\.)[^']*)", difference)
        world = said.world_of(found[1]) if found else None
        told[world.number if world else -1].append(f"law 5: {difference}")
    for number, found in told.items():
        if number > 0 or len(told) == 1:
            said.broken[number] += found


# The proof ----------------------------------------------------------------------------------------------------------------


def deliver(worlds: list[World], folder: Path) -> list[tuple[str, Any]]:
    """Deliveries in order: the source, and the folder of its files or the hours to pull."""
    found: dict[tuple[int, str], Path | tuple[datetime, datetime]] = {}
    for world in worlds:
        for part, source, files in render(world):
            place = folder / f"{part}-{source}"
            found[part, source] = place
            for name, text in files.items():
                path = place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if any(world.plan.sources == "api" for world in worlds):
        day = datetime.fromtimestamp(DAY, UTC).replace(tzinfo=None)
        found |= {(part, "api"): (day + timedelta(hours=8 * part), day + timedelta(hours=8 * (part + 1))) for part in range(3)}
    return [(source, found[part, source]) for part, source in sorted(found)]


def landed(deliveries: list[tuple[str, Any]], url: str, warehouse: Warehouse, built_after: int | None = None) -> Warehouse:
    for number, (source, what) in enumerate(deliveries):
        if isinstance(what, tuple):
            try:
                ingest(INGESTED[source], [url], warehouse.root, first=what[0], end=what[1])
            except IngestError as error:
                if "no counter of a drive" not in str(error):  # a small world may have half of the day
                    raise
        else:
            ingest(source, [what], warehouse.root)
        if number == built_after:
            build(warehouse)
    build(warehouse, daily=True)
    return warehouse


def broken(plans: list[Plan], folder: Path, *, is_late: bool = True) -> dict[Plan, list[str]]:
    """Findings against the laws of worlds of these plans, in one warehouse. is_late: look at the fifth as well."""
    worlds = [World(plan, number) for number, plan in enumerate(plans, 1)]
    asked: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    for world in worlds:
        for _, samples in prometheus_samples(world, "api") if world.plan.sources == "api" else ():
            for key, values in samples.items():
                asked[key] = sorted([*asked[key], *values])
    deliveries = deliver(worlds, folder / "in")
    with serving(Server(asked)) as server:
        once = landed(deliveries, server.url, Warehouse(folder / "once"))
        said = judged(once, worlds)
        if is_late:
            again = [*deliveries, *deliveries]
            random.Random(repr(plans)).shuffle(again)
            _same(said, once, landed(again, server.url, Warehouse(folder / "twice"), len(again) // 2))
    nobodys = said.broken.get(-1, [])
    return {world.plan: found for world in worlds if (found := [*said.broken.get(world.number, []), *nobodys])}


OFTEN = 8
"""Examples to ask of Hypothesis for each world: five of six repeat the seed of an earlier one."""


def drawn(number: int, count: int) -> list[Plan]:
    """The first plans that Hypothesis draws with this seed; those that it made of an earlier one are left out."""
    plans: dict[int, Plan] = {}
    _driven(number, OFTEN * count, lambda plan: plans.setdefault(plan.seed, plan), (Phase.generate,))
    assert len(plans) >= count, f"{len(plans)} of {count}: draw more often"
    return list(plans.values())[:count]


def _driven(number: int, count: int, look: Any, phases: tuple[Phase, ...]) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    limits = settings(
        max_examples=count, phases=phases, database=None, deadline=None, suppress_health_check=checks, report_multiple_bugs=False
    )
    seed(number)(limits(given(PLANS)(lambda plan: look(plan) and None)))()


def prove(number: int, count: int, folder: Path, at_once: int = 25, also: Sequence[Plan] = ()) -> None:
    """Judge worlds, many in a warehouse. Where one fails, Hypothesis meets the same plans again and makes the first of those smaller."""
    plans = [*drawn(number, count), *also]
    known: dict[Plan, list[str]] = {plan: [] for plan in plans}
    for first in range(0, len(plans), at_once):
        known |= broken(plans[first : first + at_once], folder / f"{first}")
    failed = {plan: found for plan, found in known.items() if found}
    tries = 0

    def look(plan: Plan) -> None:
        nonlocal tries
        if plan not in known and tries:
            known[plan] = broken([plan], folder / f"try{tries}").get(plan, [])
        tries += bool(tries or known.get(plan))
        assert not known.get(plan), "\n".join([str(plan), *known[plan]])

    if failed:
        _driven(number, OFTEN * count, look, (Phase.generate, Phase.shrink))
        raise AssertionError(failed)


ONCE_BROKEN = [
    Plan(177692, 2, 6, 5, ("clock", "swap"), "prometheus diskstats lsblk", overlap=True),
    Plan(16574, 1, 3, 4, ("replicas", "pod address", "clusters", "move", "restart", "clock"), "prometheus diskstats lsblk", overlap=True),
    Plan(238, 2, 8, 4, ("machines", "pod", "replicas", "pod address", "wrap", "move"), "sadf lsblk"),
    Plan(seed=3878, hosts=2, drives=8, hours=3, happenings=("move", "clusters", "swap", "reseat", "dock"), sources="zfs lsblk"),
    Plan(seed=17, hosts=2, drives=5, hours=4, happenings=("boot",), sources="zfs lsblk"),  # between two deliveries
    Plan(seed=64, hosts=1, drives=6, hours=3, happenings=("second boot",), sources="iostat lsblk"),  # looked at, then first measured
    Plan(seed=1319, hosts=3, drives=5, hours=3, happenings=("machines", "gap"), sources="prometheus lsblk"),  # said again, by order
    Plan(seed=17, hosts=2, drives=5, hours=4, happenings=("boot",), sources="prometheus lsblk"),  # the later delivery landed first
    Plan(seed=34, hosts=3, drives=3, hours=3, happenings=("gap", "second boot"), sources="diskstats smartctl", deliveries=3),  # at a seam
    Plan(999999, 3, 3, 3, ("boot", "swap", "second boot", "move", "machines", "reseat"), "prometheus lsblk", deliveries=3),  # a long step
    Plan(16454, 1, 5, 5, ("boot", "paths", "machines", "cross", "pod"), "prometheus lsblk", overlap=True, deliveries=3),
    Plan(seed=21053, hosts=3, drives=8, hours=5, happenings=("arrays", "move", "second boot"), sources="prometheus"),
    Plan(3795, 2, 3, 3, ("boot", "restart", "clusters", "paths", "swap", "move"), "ceph"),  # a last look that said nothing new
    Plan(1193, 2, 7, 5, ("pod address", "pod", "reseat", "arrays", "machines", "move"), "diskstats lsblk", overlap=True),  # equal days
    Plan(4627, 1, 7, 5, ("boot", "arrays", "machines", "replicas", "pod", "wrap", "paths"), "prometheus diskstats lsblk", deliveries=3),
    Plan(seed=1023, hosts=1, drives=8, hours=4, happenings=("boot", "clock", "swap"), sources="prometheus lsblk", deliveries=3),
    Plan(48, 2, 6, 4, ("second boot", "reseat", "move", "pod", "pod address"), "prometheus diskstats lsblk"),  # over the hour's edge
    Plan(3, 1, 5, 3, ("replicas", "gap", "cross", "arrays", "swap", "clock"), "prometheus", overlap=True),  # a look at arrays in a gap
    Plan(seed=4113, hosts=3, drives=3, hours=3, happenings=("move", "replicas"), sources="prometheus"),  # replicas take turns at an hour
    Plan(772512, 1, 4, 4, ("swap", "replicas", "untold", "reseat", "cross"), "prometheus lsblk", overlap=True),  # a cut after a cut
    Plan(823564, 2, 4, 3, ("clusters", "clock", "untold", "move", "replace"), "api", deliveries=3),  # the other cluster describes it
    Plan(seed=378596, hosts=1, drives=5, hours=4, happenings=("untold", "swap"), sources="api"),  # it came while nobody read
    Plan(seed=424996, hosts=1, drives=5, hours=5, happenings=("untold", "cross"), sources="api", overlap=True, deliveries=3),
    Plan(
        seed=42066, hosts=1, drives=3, hours=4, happenings=("cross", "swap", "untold", "boot"), sources="api", deliveries=3
    ),  # named in one scrape
    Plan(697416, 1, 6, 3, ("cross", "untold", "replace"), "diskstats smartctl"),
    Plan(46497, 1, 8, 4, ("reseat", "clock", "pod", "gap"), "api", overlap=True, deliveries=3),  # another pod, after a gap
    Plan(8, 1, 8, 4, ("reseat", "boot", "second boot", "paths", "untold", "arrays"), "diskstats smartctl", True, 3),  # seen within a cut
    Plan(404, 2, 3, 3, ("clock", "cross", "clusters", "port", "second boot", "gap"), "iostat lsblk", overlap=True),  # a gap of two calls
    Plan(3113, 3, 3, 3, ("cross",), "iostat lsblk"),  # measured first four minutes after the look
    Plan(64499, 2, 3, 3, ("replace", "machines", "dock", "move", "cross", "untold"), "sadf lsblk", True, 3),  # seen as it came
    Plan(13332, 3, 7, 4, ("arrays", "reseat", "swap", "port", "second boot", "move"), "ceph", overlap=True),  # two places in a quarter
    Plan(524289, 1, 4, 3, ("pod address", "untold", "reseat", "cross", "clusters", "replace"), "ceph"),  # moved within the hour
    Plan(94, 1, 8, 4, ("swap", "second boot", "port", "boot", "dock", "gap"), "zfs lsblk", deliveries=3),  # the third drive of one cut
    Plan(11784, 1, 8, 5, ("boot", "replicas", "cross"), "prometheus lsblk"),  # another source saw a third drive in between
    Plan(7354, 1, 4, 3, ("boot", "second boot"), "iostat lsblk"),  # two boots within a gap
    Plan(15020, 1, 6, 5, ("gap", "boot"), "zfs lsblk"),  # seen within a gap, and another one long after it
    Plan(273, 2, 6, 3, ("move", "swap"), "ceph"),  # the look at another host tells of it
    Plan(983, 1, 5, 5, ("swap",), "ceph", deliveries=3),  # a last look, after which the host had no such device
    Plan(21, 2, 5, 4, ("paths", "replace", "boot", "reseat", "second boot", "move"), "api", True, 3),  # two records of one row
]


@pytest.mark.parametrize("number", [1])  # always the same: others are drawn by longer tests
def test_ten_worlds_and_those_that_once_broke_a_law_keep_the_laws(number: int, tmp_path: Path) -> None:
    prove(number, 10, tmp_path, also=ONCE_BROKEN)


@pytest.mark.proof
@pytest.mark.parametrize("number", seeds(1))
def test_two_hundred_worlds_keep_the_laws(number: int, tmp_path: Path) -> None:
    prove(number, 200, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("number", seeds(10))
def test_two_thousand_worlds_keep_the_laws(number: int, tmp_path: Path) -> None:
    prove(number, 200, tmp_path)


# Faults -------------------------------------------------------------------------------------------------------------------

SPANS, NAMES, SERIALS = "macros/spans.sql", "models/intermediate/inventory/int_names.sql", "models/intermediate/inventory/int_serials.sql"
DISKSTATS, READINGS = "ingest/sources/diskstats.py", "ingest/sources/prometheus/readings.py"
FAULTS = {
    "of several spans one is chosen": (SPANS, "where coalesce(overlapping_spans.is_path, true)", "where ordered_spans.row_rank = 1"),
    "spans that overlap are added": (SPANS, "where better.row_rank < later.row_rank", "where false"),
    "paths are chosen among": (SPANS, "where coalesce(overlapping_spans.is_path, true)", "where overlapping_spans.row_rank is null"),
    "devices of one serial are not compared": (SPANS, "where case when is_one_host", "where false and case when is_one_host"),
    "a span in which the name passed is the known drive's": (SPANS, "case when coalesce(passing_spans.is_known, true)", "case when true"),
    "a stretch that nobody measured says nothing": (
        SPANS,
        "unmeasured_stretches.is_over\n",
        "false",
    ),
    "cuts are ignored": (NAMES, "    where drive_id is null", "    where false"),
    "cuts are rounded to the hour": (NAMES, "valid_to as valid_until", "date_trunc('hour', valid_to) as valid_until"),
    "a drive that is not seen any more keeps its name": (NAMES, "or (looks.is_end and {{ reports_ends('narrowed_runs.source') }})", ""),
    "a drive that was seen within a cut stays until its end": (NAMES, "looks.since < narrowed_runs.last_at and", "false and"),
    "a drive bears its name until another is seen": (NAMES, "narrowed_runs.last_at + interval 1 microsecond)", "narrowed_runs.next_at)"),
    "a drive bears its name since the last look at another": (
        NAMES,
        "coalesce({{ came_at }}, narrowed_runs.next_at)",
        "narrowed_runs.last_at",
    ),
    "sightings are rounded to the hour": (NAMES, "select *, valid_from as seen_at", "select *, date_trunc('hour', valid_from) as seen_at"),
    "one world wide name proves paths": (
        SERIALS,
        "select drive_id from described_devices)",
        "select drive_id from described_devices where false)",
    ),
    "serials on several hosts are one drive": (SERIALS, "or (is_of_several_hosts and", "or (false and"),
    "breaks are ignored": ("ingest/reading/spans.py", '(pl.col("is_apart") | pl.col("is_first"))', 'pl.col("is_first")'),
    "a span is its hour": ("ingest/reading/spans.py", "pl.when(~with_start).then(first)", "pl.when(pl.lit(False)).then(first)"),
    "a seam is forgotten": ("ingest/reading/spans.py", "pl.when(is_hour & (begins == begins.min().over(place)))", "pl.when(pl.lit(False))"),
    "a fall of a counter is no cut": (DISKSTATS, 'filter(pl.col("is_reset") | pl.col("is_long"))', 'filter(pl.col("is_long"))'),
    "a fall counts": (DISKSTATS, '(pl.col("is_reset") | pl.col("is_far") |', '(pl.col("is_far") |'),
    "what wraps has fallen": (DISKSTATS, "fell[name] & ~(wrapped[name] & went_on)", "fell[name]"),
    "a time of node_exporter that wraps has fallen": (READINGS, "pl.when(has_wrapped)", "pl.when(pl.lit(False))"),
    "of two paths one counts": (READINGS, 'for rank in sorted(covered["rank"].unique()):', "for rank in (0,):"),
    "a restart is no cut": ("ingest/sources/sysstat.py", 'is_new = pl.col("at").is_not_null() &', "is_new = pl.lit(False) &"),
    "a name passes where a counter is seen to have fallen": (DISKSTATS, '(at - length).alias("seen_us")', 'after.alias("seen_us")'),
}
"""By what is wrong: a file, and text of it for other text."""


HAPPENED = {
    "diskstats lsblk": (("boot", "cross"), ("swap", "reseat", "gap"), ("paths", "machines", "wrap"), ("dock", "replace"), ()),
    "diskstats smartctl": (("boot", "cross"), ("machines",)), "sadf lsblk": (("boot", "swap"),),
    "prometheus": (("pod", "replicas", "cross"), ("clusters", "reseat"), ("wrap",), ("move", "boot", "pod address")),
    "zfs lsblk": (("boot",),),
    "prometheus diskstats lsblk": (("boot",),),
}  # fmt: skip
PLANTED = [Plan(seed, 2, 4, 4, happenings, sources) for sources, several in HAPPENED.items() for happenings in several for seed in range(3)]
# machines whose invented serial comes with a world wide name, which only counters that differ disprove
PLANTED += [Plan(12, 2, 4, 4, ("machines",), sources) for sources in ("diskstats lsblk", "prometheus")]
PLANTED += ONCE_BROKEN[4:6]  # names that passed where nobody measured
PLANTED += [plan for plan in ONCE_BROKEN if "untold" in plan.happenings]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_can_be_planted(fault: str) -> None:
    path, text, _ = FAULTS[fault]
    assert text in (ROOT / path).read_text(), f"{path} has another text now; write the fault again"


@pytest.mark.soak
@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_a_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    copy = tmp_path / "project"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "target"))
    path, text, other = FAULTS.get(fault, (NAMES, "with claims as (", "with claims as ("))
    found = (copy / path).read_text()
    (copy / path).write_text(found.replace(text, other))
    tried = "from tests.proof.test_worlds import *; print(len(broken(PLANTED, Path('worlds'), is_late=False)))"
    paths = {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'tests'}"}
    done = subprocess.run([sys.executable, "-c", tried], cwd=copy, env={**os.environ, **paths}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout.split()[-1]) > 0) == bool(fault), fault

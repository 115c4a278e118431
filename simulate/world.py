"""Small worlds with a truth: hosts, drives with known I/O and latency, things that happen to them, and what each source prints of it.

Renderers follow the formats of the tools, not what is read of them. A drive does as many writes as reads, a whole number a second. A read
takes its `ms`, a write three times that: every source knows them exactly, and I/Os of two drives in one figure show.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

DAY = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp())
HOUR, SLOT = 3600, 300
MOST_A_SECOND = 9
WRAP = 2**32
SECTOR_BYTES = 512

SOURCES = (
    "prometheus", "api", "diskstats lsblk", "diskstats smartctl", "sadf lsblk", "iostat lsblk", "zfs", "zfs lsblk", "ceph",
    "prometheus diskstats lsblk", "prometheus lsblk",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """The plan that a world is drawn from. `happenings`: names of HAPPENINGS. `sources`: those that look at it, one of SOURCES.
    `overlap`: a later delivery holds the readings of those before, too.
    """

    seed: int
    hosts: int
    drives: int
    hours: int
    happenings: tuple[str, ...]
    sources: str
    overlap: bool = False
    deliveries: int = 2

    def draw(self, what: str) -> random.Random:
        """A generator of its own for each thing, so that one thing less leaves the others as they are."""
        return random.Random(f"{self.seed} {what}")


@dataclass(frozen=True)
class Drive:
    """`serial` and `wwn` are its own, `reported` those that it gives when asked. `rates`: I/Os a second each way, in each 5 minutes."""

    number: int
    serial: str
    wwn: str
    reported: tuple[str, str]
    model: str
    capacity: int
    ms: int
    rates: tuple[int, ...]
    start: int
    is_rotating: bool = True

    @property
    def is_named(self) -> bool:
        return self.reported[0] == self.serial

    def done(self, at: int) -> int:
        """Reads it would have done since the start of the world."""
        slot, rest = divmod(max(at - self.start, 0), SLOT)
        return sum(self.rates[:slot]) * SLOT + (self.rates[slot] if slot < len(self.rates) else 0) * rest


@dataclass
class Bearing:
    """A drive that bears a device name of a host, from `begin` until `end`, and whose counters went on from `base` I/Os.

    path: which of how many paths to the drive.
    """

    host: int
    device: str
    drive: Drive
    begin: int
    base: int = 0
    end: int = 2**40
    path: tuple[int, int] = (0, 1)

    def ios(self, begin: int, end: int) -> int:
        """Reads of this path in a stretch of time."""
        which, paths = self.path

        def share(at: int) -> int:
            done = self.drive.done(min(max(at, self.begin), self.end))
            return (done + which) // paths

        return max(share(end) - share(begin), 0)

    def counters(self, at: int) -> tuple[int, int, int, int]:
        """Reads (and writes), sectors read (and written), ms reading, ms writing."""
        count = self.base + self.ios(self.begin, at)
        return count, count * 8, count * self.drive.ms % WRAP, count * self.drive.ms * 3 % WRAP


@dataclass
class Array:
    """An md array over drives: its UUID stays, its name (from an instant on) may not."""

    uuid: str
    level: str
    drives: list[int]
    names: list[tuple[int, str]]


@dataclass
class Host:
    """`labels`: of its series, from an instant on. `gaps`: when nobody read it. `set_at`, `set_by`: its clock was set, by seconds.
    `unreported_at`: from when on its tools, without udev's database, report no serial number of drives that come (of all drives, where
    `is_all_unreported`), or nothing at all (`has_no_info`).
    """

    number: int
    name: str
    labels: list[tuple[int, dict[str, str]]]
    boots: list[tuple[int, int]] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    replicas: int = 1
    set_at: int = 2**40
    set_by: int = 0
    unreported_at: int = 2**40
    is_all_unreported: bool = False
    has_no_info: bool = False

    def clock(self, at: int) -> int:
        return at + (self.set_by if at >= self.set_at else 0)

    def labels_at(self, at: int) -> dict[str, str]:
        return [labels for since, labels in self.labels if since <= at][-1]

    def is_reported(self, bearing: Bearing, at: int) -> bool:
        """Whether its tools report what that drive is."""
        return (at if self.is_all_unreported else bearing.begin) < self.unreported_at

    def reported(self, bearing: Bearing, at: int) -> tuple[str, str]:
        """Serial number and world wide name that its tools report of the drive; empty where they report none."""
        return bearing.drive.reported if self.is_reported(bearing, at) else ("", "")


class World:
    """A world, second by second. `number` is in every name, so that many worlds have room in one warehouse."""

    def __init__(self, plan: Plan, number: int = 0) -> None:
        self.plan, self.number = plan, number
        draw = plan.draw("world")
        self.start = DAY + draw.randrange(2, 18) * HOUR + draw.randrange(1, HOUR)
        self.end = self.start + plan.hours * HOUR
        split = plan.draw("split")
        self.splits = sorted(self.instant(split) for _ in range(plan.deliveries - 1))
        self.hosts = [Host(n, f"w{number:03}h{n}", [(0, {"instance": f"w{number:03}h{n}:9100", "job": "node"})]) for n in range(plan.hosts)]
        self.bearings: list[Bearing] = []
        milliseconds = draw.sample(range(2, 90), 40)
        self.drives: list[Drive] = []
        for n in range(plan.hosts * plan.drives + 6):
            serial, wwn = f"Z{number:03}A{n:03}", f"0x5000c5{number:05x}{n:05x}"
            # where two sources name the host differently, only counters that agree say that a drive is one
            is_steady = "pod address" in plan.happenings and " diskstats" in plan.sources
            usual = draw.randrange(1, MOST_A_SECOND + 1)
            rates = tuple(
                usual if is_steady else draw.choice((0, *range(1, MOST_A_SECOND + 1))) for _ in range(plan.hours * HOUR // SLOT + 1)
            )
            model = draw.choice(("ST4000NM0023", "HUS724020ALE640"))
            self.drives.append(
                Drive(n, serial, wwn, (serial, wwn), model, draw.choice((2, 4, 8)) * 10**12, milliseconds[n], rates, self.start)
            )
        self._spare = plan.hosts * plan.drives
        for n in range(self._spare):
            base = draw.choice((0, draw.randrange(10**4), *(draw.randrange(10**6, 10**9) for _ in range(6))))
            self.bearings.append(Bearing(n // plan.drives, f"sd{'abcdefgh'[n % plan.drives]}", self.drives[n], 0, base))
        # drives that tell no serial number are no virtual machine's: one alone would bear the invented one truly
        for name in sorted(plan.happenings, key=lambda name: name != "clusters"):
            if name in EVERYWHERE:
                EVERYWHERE[name](self, plan.draw(name))
        actions = [
            (at, n, act) for n, name in enumerate(plan.happenings) if name in IN_TIME for at, act in IN_TIME[name](self, plan.draw(name))
        ]
        for at, _, act in sorted(actions, key=lambda action: action[:2]):
            act(at)

    def instant(self, draw: random.Random) -> int:
        """Some instant that is not on the hour."""
        while True:
            at = draw.randrange(self.start + 900, self.end - 900)
            if 120 < at % HOUR < HOUR - 120:
                return at

    def live(self, host: int, at: int) -> list[Bearing]:
        return [each for each in self.bearings if each.host == host and each.begin <= at < each.end]

    def spare(self) -> Drive | None:
        self._spare += 1
        return self.drives[self._spare - 1] if self._spare <= len(self.drives) else None

    def free_name(self, host: int) -> str:
        used = {each.device for each in self.bearings if each.host == host}
        return next(f"sd{letter}" for letter in "ijklmnopqrstuvwxyz" if f"sd{letter}" not in used)

    def is_up(self, host: Host, at: int) -> bool:
        return not any(down <= at < up for down, up in host.boots)

    def ios(self, drive: Drive, begin: int, end: int) -> int:
        """The truth: reads of a drive in a stretch of time, and as many writes."""
        return sum(each.ios(begin, end) for each in self.bearings if each.drive.number == drive.number)

    def instants(self, host: Host, every: int, phase: int) -> list[int]:
        """When a host was read, by a schedule."""
        found = range(self.start + phase % every, self.end, every)
        return [at for at in found if self.is_up(host, at) and not any(begin <= at < end for begin, end in host.gaps)]

    def looks(self, host: Host) -> list[int]:
        """When somebody looked what the host's devices are: at the start, each hour, and a little after each boot."""
        draw = self.plan.draw(f"looks {host.number}")
        minute = draw.randrange(60, 3000)
        found = {self.start, *(up + draw.randrange(20, 50) for _, up in host.boots), self.end - 1}
        found |= {at for at in range(self.start - self.start % HOUR + minute, self.end, HOUR) if at > self.start}
        return sorted(at for at in found if self.is_up(host, at) and at < self.end)


# Events -----------------------------------------------------------------------------------------------------------------

Act = Callable[[int], None]


def _boot(world: World, draw: random.Random) -> Iterator[tuple[int, Act]]:
    """A host boots, and its drives come back under each other's names."""
    host = draw.choice(world.hosts)

    def boot(at: int) -> None:
        before = world.live(host.number, at)
        if not before:
            return
        up = at + draw.randrange(60, 400)
        names = [each.device for each in before if each.drive.is_named]  # who could tell of the others that they were renamed?
        draw.shuffle(names)
        for each in before:
            each.end = at
            name = names.pop() if each.drive.is_named else each.device
            world.bearings.append(replace(each, device=name, begin=up, base=0, end=2**40))
        host.boots.append((at, up))
        for array in host.arrays:
            if draw.random() < 0.5:
                array.names.append((up, f"md{127 - host.arrays.index(array)}"))

    yield world.instant(draw), boot


def _change(world: World, draw: random.Random, kind: str) -> Iterator[tuple[int, Act]]:
    """A drive leaves its slot: another comes under its name or another's, it comes back, or it moves to another host."""

    def change(at: int) -> None:
        found = [each for host in world.hosts for each in world.live(host.number, at) if each.path == (0, 1) and each.drive.is_named]
        if not found:
            return
        old = draw.choice(found)
        drive = old.drive if kind in ("reseat", "move") else world.spare()
        hosts = [host.number for host in world.hosts if host.number != old.host and world.is_up(host, at)]
        if drive is None or (kind == "move" and not hosts):
            return
        old.end = at
        host = draw.choice(hosts) if kind == "move" else old.host
        device = old.device if kind in ("reseat", "swap") else world.free_name(host)
        world.bearings.append(Bearing(host, device, drive, at + draw.choice((5, draw.randrange(20, 1500)))))

    yield world.instant(draw), change


def _cross(world: World, draw: random.Random) -> Iterator[tuple[int, Act]]:
    """Two drives of a host are pulled, and each is put into the other's slot."""

    def cross(at: int) -> None:
        found = [each for each in world.live(draw.choice(world.hosts).number, at) if each.path == (0, 1) and each.drive.is_named]
        if len(found) > 1:
            one, other = draw.sample(found, 2)
            one.end = other.end = at
            back = at + draw.randrange(5, 600)
            world.bearings += [replace(one, device=other.device, begin=back, base=0, end=2**40)]
            world.bearings += [replace(other, device=one.device, begin=back, base=0, end=2**40)]

    yield world.instant(draw), cross


def _gap(world: World, draw: random.Random) -> None:
    at = world.instant(draw)
    draw.choice(world.hosts).gaps.append((at, at + draw.randrange(100, 4000)))


def _restart(world: World, draw: random.Random) -> None:
    at = world.instant(draw)
    draw.choice(world.hosts).gaps.append((at, at + draw.randrange(10, 200)))


def _pod(world: World, draw: random.Random) -> None:
    """The exporter's pod is replaced."""
    host = draw.choice(world.hosts)
    for n, at in enumerate((0, *sorted(world.instant(draw) for _ in range(draw.randrange(1, 4))))):
        host.labels.append((at, {**host.labels[0][1], "pod": f"node-exporter-{n}x"}))


def _pod_address(world: World, draw: random.Random) -> None:
    """The same where the instance is the pod's address. A drive that tells no serial of its own has as many names then as its host."""
    if " diskstats" in world.plan.sources and {"dock", "machines"} & {*world.plan.happenings}:
        return
    host = draw.choice(world.hosts)
    for n, at in enumerate((0, *sorted(world.instant(draw) for _ in range(draw.randrange(1, 4))))):
        address = f"10.{world.number}.{host.number}.{n}:9100"
        host.labels.append((at, {**host.labels[0][1], "pod": f"ne-{n}", "instance": address, "node": host.name}))


def _port(world: World, draw: random.Random) -> None:
    """The exporter is moved to another port. Where hosts have one address, ports tell them apart, so none is moved."""
    host = draw.choice(world.hosts)
    if "clusters" not in world.plan.happenings:
        host.labels.append((world.instant(draw), {**host.labels[0][1], "instance": f"{host.name}:9200"}))


def _clusters(world: World, draw: random.Random) -> None:
    """Hosts of two clusters have one address, and their drives tell no serial."""
    if len(world.hosts) < 2 or world.plan.sources not in ("prometheus", "api"):
        return
    for host in world.hosts[:2]:
        host.name = f"10.{world.number}.9.1"
        host.labels = [(0, {"instance": f"{host.name}:9100", "job": "node", "cluster": ("eu1", "us1")[host.number]})]
    for n, each in enumerate(world.bearings):
        if each.host < 2:
            world.bearings[n] = replace(each, drive=_reporting(world, each.drive, ("", "")))


def _reporting(world: World, drive: Drive, reported: tuple[str, str], **more: Any) -> Drive:
    world.drives[drive.number] = replace(drive, reported=reported, **more)
    return world.drives[drive.number]


def _dock(world: World, draw: random.Random) -> None:
    """Some drives of a host are in a dock that gives all of them one serial and one world wide name. Their models, sizes or kinds differ,
    as far as the sources tell these.
    """
    host, slots = draw.choice(world.hosts), ("sda", "sdb", "sdc")
    docked = [n for n, each in enumerate(world.bearings) if each.host == host.number and each.device in slots]
    docked = [n for n in docked if world.bearings[n].drive.is_named and world.bearings[n].path == (0, 1)]
    sources = {*world.plan.sources.split()}
    tells = ["model"]
    if sources & {"lsblk", "smartctl", "ceph"}:
        tells.append("capacity")
    if sources & {"lsblk", "smartctl", "prometheus", "api"}:
        tells.append("is_rotating")
    differ = draw.choice([*([name] for name in tells), tells])
    docked = docked[:2] if differ == ["is_rotating"] else docked
    reported = (f"{world.number:012}", f"0x5000000{world.number:09}")
    drives: dict[str, tuple[Any, ...]] = {
        "model": ("ST4000NM0023", "HUS724020ALE640", "MG04ACA400N"), "capacity": (10**12, 2 * 10**12, 3 * 10**12),
        "is_rotating": (True, False, True),
    }  # fmt: skip
    for place, n in enumerate(docked if len(docked) > 1 else ()):  # one alone would bear the serial truly
        described = {name: values[place if name in differ else 0] for name, values in drives.items()}
        world.bearings[n] = replace(world.bearings[n], drive=_reporting(world, world.bearings[n].drive, reported, **described))


def _machines(world: World, draw: random.Random) -> None:
    """Hosts are virtual machines; the first drive of each has the serial that their hypervisor invents. Their latencies differ: else nobody
    could tell that these are several.
    """
    wwn = draw.choice(("", f"0x5000c5f{world.number:09x}"))
    firsts = [n for n, each in enumerate(world.bearings) if each.device == "sda" and each.drive.is_named and each.path == (0, 1)]
    least_ms = 10 + world.bearings[firsts[0]].drive.ms % 20 if firsts else 0
    for n in firsts if len(firsts) > 1 else ():
        bearing, reported = world.bearings[n], (f"QM{world.number:03}01", wwn)
        ms = (1 + bearing.host) * least_ms
        drive = _reporting(world, bearing.drive, reported, model="QEMU HARDDISK", capacity=10**12, ms=ms)
        world.bearings[n] = replace(bearing, drive=drive)


def _paths(world: World, draw: random.Random) -> None:
    """Two paths lead to a drive."""
    n = draw.randrange(len(world.bearings))
    each = world.bearings[n]
    if each.drive.is_named and not {"zfs", "ceph"} & {*world.plan.sources.split()}:
        world.bearings[n] = replace(each, path=(0, 2))
        world.bearings.append(replace(each, path=(1, 2), device=world.free_name(each.host)))


def _wrap(world: World, draw: random.Random) -> None:
    """The milliseconds of a drive pass 2^32."""
    each = draw.choice(world.bearings)
    total = max(each.ios(world.start, world.end), 1)
    each.base = (WRAP - draw.randrange(total) * each.drive.ms) // each.drive.ms


def _replicas(world: World, draw: random.Random) -> None:
    draw.choice(world.hosts).replicas = 2


def _clock(world: World, draw: random.Random) -> None:
    host = draw.choice(world.hosts)
    host.set_at, host.set_by = world.instant(draw), draw.choice((-1, 1)) * draw.randrange(60, 1500)


def _untold(world: World, draw: random.Random) -> None:
    host = draw.choice(world.hosts)
    host.unreported_at, host.is_all_unreported, host.has_no_info = world.instant(draw), draw.random() < 0.3, draw.random() < 0.5


def _arrays(world: World, draw: random.Random) -> None:
    """The drives of a host are in two md arrays."""
    for host in world.hosts:
        numbers = sorted({each.drive.number for each in world.bearings if each.host == host.number})
        half = max(len(numbers) // 2, 2)
        for n, members in enumerate((numbers[:half], numbers[half:])):
            if len(members) > 1:
                uuid = ":".join(f"{draw.randrange(2**32):08x}" for _ in range(4))
                host.arrays.append(Array(uuid, "raid1", members, [(0, f"md{n}")]))


EVERYWHERE: dict[str, Callable[[World, random.Random], None]] = {
    "clusters": _clusters, "dock": _dock, "machines": _machines, "paths": _paths, "arrays": _arrays, "wrap": _wrap, "gap": _gap,
    "restart": _restart, "pod": _pod, "pod address": _pod_address, "port": _port, "replicas": _replicas, "clock": _clock,
    "untold": _untold,
}  # fmt: skip
IN_TIME: dict[str, Callable[[World, random.Random], Iterator[tuple[int, Act]]]] = {
    "boot": _boot, "second boot": _boot, "cross": _cross,
    "swap": lambda world, draw: _change(world, draw, "swap"), "replace": lambda world, draw: _change(world, draw, "replace"),
    "reseat": lambda world, draw: _change(world, draw, "reseat"), "move": lambda world, draw: _change(world, draw, "move"),
}  # fmt: skip
HAPPENINGS = (*EVERYWHERE, *IN_TIME)


# Readings ---------------------------------------------------------------------------------------------------------------


@dataclass
class Reading:
    """One device at one instant. `at` is the truth, `said_at` the clock of who read it."""

    at: int
    said_at: int
    bearing: Bearing


@dataclass
class Series:
    """The readings of one device of a host by one reader, in order. `watch`: which of the readers that see the same. `read_at`: when that
    reader read the host.
    """

    host: Host
    device: str
    watch: str
    labels: dict[str, str]
    read_at: list[int]
    is_reported: bool = True
    readings: list[Reading] = field(default_factory=list)


@dataclass(frozen=True)
class Look:
    """Who bears a device name: what somebody saw at an instant."""

    host: Host
    at: int
    said_at: int
    bearings: tuple[Bearing, ...]


EVERY = {"prometheus": 120, "api": 120, "diskstats": 300, "sadf": 600, "iostat": 300, "zfs": 300, "ceph": 300}


def series(world: World, source: str) -> list[Series]:
    """All that a source of counters read, device by device."""
    found: dict[tuple[Any, ...], Series] = {}
    is_scraped = source in ("prometheus", "api")
    for host in world.hosts:
        for replica in range(host.replicas if is_scraped else 1):
            of = 0 if source == "ceph" else host.number  # a cluster is asked at once
            phase = 0 if source == "zfs" else world.plan.draw(f"phase {source} {of} {replica}").randrange(EVERY[source])
            read_at = world.instants(host, EVERY[source], phase)
            for at in read_at:
                labels = host.labels_at(at) if is_scraped else {}
                if is_scraped and host.replicas > 1:
                    labels = {**labels, "prometheus": f"monitoring/{'ab'[replica]}"}
                for bearing in world.live(host.number, at):
                    is_reported = not is_scraped or host.is_reported(bearing, at)
                    of_drive = bearing.drive.reported if is_scraped and is_reported else ()
                    key = (host.number, bearing.device, tuple(labels.items()), *of_drive)
                    if key not in found:
                        found[key] = Series(host, bearing.device, f"{source} {replica}", labels, read_at, is_reported)
                    found[key].readings.append(Reading(at, at if is_scraped else host.clock(at), bearing))
    return list(found.values())


def looks(world: World) -> list[Look]:
    """All looks at what the devices of a host are. A look at Ceph lists those of all hosts."""
    every = {at for host in world.hosts for at in world.looks(host)} if world.plan.sources == "ceph" else set()
    return [
        Look(host, at, host.clock(at), tuple(world.live(host.number, at)))
        for host in world.hosts for at in sorted(every) or world.looks(host) if world.is_up(host, at)
    ]  # fmt: skip


# Output of the sources -------------------------------------------------------------------------------------------------

Files = dict[str, str]
Samples = dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]


def parts(world: World) -> list[tuple[int, int]]:
    """The stretches of time that are delivered apart; the first reading of each is the last one of that before it."""
    return [(0 if world.plan.overlap else begin, end) for begin, end in pairwise([0, *world.splits, 2**40])]


def _within(found: Series, begin: int, end: int) -> list[Reading]:
    """The readings of a stretch, with one that was taken when the host was last read before it."""
    first = max((at for at in found.read_at if at <= begin), default=0)
    return [each for each in found.readings if first <= each.at <= end]


def render(world: World) -> list[tuple[int, str, Files]]:
    """Deliveries: the number of the stretch, the source, and its files by path. What a server is asked is in `prometheus_samples`."""
    found = []
    sources = [*world.plan.sources.split(), *(["mdadm"] if any(host.arrays for host in world.hosts) else [])]
    for part, (begin, end) in enumerate(parts(world)):
        found += [(part, INGESTED.get(name, name), RENDERERS[name](world, begin, end)) for name in sources if name != "api"]
    return [each for each in found if each[2]]


def prometheus_samples(world: World, source: str, begin: int = 0, end: int = 2**40) -> Iterator[tuple[str, Samples]]:
    """By host and server: node_exporter's series of its drives."""
    for each in series(world, source):
        found: Samples = {}
        for reading in _within(each, begin, end):
            ios, sectors, read_ms, write_ms = reading.bearing.counters(reading.at)
            values = {
                "node_disk_reads_completed_total": ios, "node_disk_read_bytes_total": sectors * SECTOR_BYTES,
                "node_disk_read_time_seconds_total": read_ms / 1000, "node_disk_writes_completed_total": ios,
                "node_disk_written_bytes_total": sectors * SECTOR_BYTES, "node_disk_write_time_seconds_total": write_ms / 1000,
            }  # fmt: skip
            for name, value in values.items():
                key = tuple(sorted({**each.labels, "__name__": name, "device": each.device}.items()))
                found.setdefault(key, []).append((reading.at, value))
            info = {"device": each.device, "major": "8", "minor": str(16 * (ord(each.device[2]) - 97)), "path": "",
                    "rotational": str(int(reading.bearing.drive.is_rotating)),
                    "revision": "", "model": "", "serial": "", "wwn": ""}  # fmt: skip
            if each.is_reported:
                serial, wwn = reading.bearing.drive.reported
                info |= {"revision": "0001", "model": reading.bearing.drive.model, "serial": serial, "wwn": wwn}
            elif each.host.has_no_info:
                continue
            key = tuple(sorted({**each.labels, "__name__": "node_disk_info", **info}.items()))
            found.setdefault(key, []).append((reading.at, 1.0))
        yield f"{each.host.name}-{each.host.number}-{each.watch[-1]}", found


def prometheus(world: World, begin: int, end: int) -> Files:
    """Samples with their times, as `promtool tsdb dump-openmetrics` or a recording of /metrics keeps them."""
    lines: dict[str, list[tuple[float, str]]] = {}
    for place, samples in prometheus_samples(world, "prometheus", begin, end):
        for key, values in samples.items():
            labels = dict(key)
            name = labels.pop("__name__")
            shown = ",".join(f"{label}={json.dumps(value)}" for label, value in labels.items())
            lines.setdefault(place, []).extend((at, f"{name}{{{shown}}} {value:.15g} {int(at * 1000)}") for at, value in values)
    return {
        f"{place}-{begin}.prom": "\n".join(line for _, line in sorted(found, key=lambda each: each[0])) + "\n"
        for place, found in lines.items()
    }


def diskstats(world: World, begin: int, end: int) -> Files:
    """Snapshots of /proc/diskstats, with a partition of the first drive and a device mapper's device, which are no drives."""
    snapshots: dict[str, dict[int, list[str]]] = {}
    times: dict[int, dict[int, int]] = {}
    for each in series(world, "diskstats"):
        for reading in _within(each, begin, end):
            ios, sectors, read_ms, write_ms = reading.bearing.counters(reading.at)
            busy = (reading.at - world.start) * 400 % WRAP
            minor = 16 * (ord(each.device[2]) - 97)
            fields = f"{ios} 0 {sectors} {read_ms} {ios} 7 {sectors} {write_ms} 0 {busy} {(read_ms + write_ms) % WRAP} 0 0 0 0 0 0"
            lines = snapshots.setdefault(each.host.name, {}).setdefault(reading.at, [])
            lines.append(f"{8:4d} {minor:7d} {each.device} {fields}")
            if each.device == "sda":
                lines.append(f"{8:4d} {minor + 1:7d} {each.device}1 {fields}")
                lines.append(f" 253       0 dm-0 {fields}")
            times.setdefault(each.host.number, {})[reading.at] = reading.said_at
    said = {host.name: times.get(host.number, {}) for host in world.hosts}
    return {
        f"{host}/diskstats-{begin}": "".join(f"TS {said[host][at]}\n" + "\n".join(lines) + "\n" for at, lines in sorted(found.items()))
        for host, found in snapshots.items()
    }


def _looked(world: World, begin: int, end: int) -> Iterator[Look]:
    return (look for look in looks(world) if begin <= look.at < end)


def lsblk(world: World, begin: int, end: int) -> Files:
    """`lsblk --json --bytes -d -o NAME,TYPE,SERIAL,WWN,MODEL,REV,VENDOR,SIZE,ROTA,TRAN`, with the time."""
    files = {}
    for look in _looked(world, begin, end):
        found = [(each, *look.host.reported(each, look.at)) for each in look.bearings]
        devices = [
            {"name": each.device, "type": "disk", "serial": serial or None, "wwn": wwn or None,
             "model": each.drive.model, "rev": "0001", "vendor": "ATA     ", "size": each.drive.capacity,
             "rota": each.drive.is_rotating, "tran": "sata"}
            for each, serial, wwn in found
        ]  # fmt: skip
        files[f"{look.host.name}/lsblk-{look.at}.json"] = json.dumps({"blockdevices": devices, "TS": look.said_at}, indent=1)
    return files


def smartctl(world: World, begin: int, end: int) -> Files:
    """`smartctl --json -x /dev/sdX` of every drive. Attribute 194 and the hours tell each drive from every other."""
    files = {}
    for look in _looked(world, begin, end):
        for each in look.bearings:
            if not look.host.is_reported(each, look.at) and look.host.has_no_info:
                continue
            drive, (serial, wide) = each.drive, look.host.reported(each, look.at)
            wwn = wide[2:]
            raw = {9: 1000 + drive.number * 100, 194: 20 + drive.number, 198: drive.number}
            names = {9: "Power_On_Hours", 194: "Temperature_Celsius", 198: "Offline_Uncorrectable"}
            document = {
                "json_format_version": [1, 0], "smartctl": {"version": [7, 3], "exit_status": 0},
                "local_time": {"time_t": look.said_at, "asctime": f"{datetime.fromtimestamp(look.said_at, UTC):%a %b %e %H:%M:%S %Y} UTC"},
                "device": {"name": f"/dev/{each.device}", "info_name": f"/dev/{each.device} [SAT]", "type": "sat", "protocol": "ATA"},
                "model_name": drive.model, "firmware_version": "0001", "user_capacity": {"bytes": drive.capacity},
                "rotation_rate": 7200 * drive.is_rotating, "smart_status": {"passed": True}, "power_on_time": {"hours": raw[9]},
                "temperature": {"current": raw[194]},
                "ata_smart_attributes": {"revision": 10, "table": [
                    {"id": key, "name": names[key], "value": 100, "worst": 100, "thresh": 0, "raw": {"value": value, "string": str(value)}}
                    for key, value in raw.items()
                ]},
            }  # fmt: skip
            if serial:
                document["serial_number"] = serial
            if wwn:
                document["wwn"] = {"naa": int(wwn[0], 16), "oui": int(wwn[1:7], 16), "id": int(wwn[7:], 16)}
            files[f"{look.host.name}/smartctl-{each.device}-{look.at}.json"] = json.dumps(document)
    return files


def mdadm(world: World, begin: int, end: int) -> Files:
    """/proc/mdstat and `mdadm --detail --export` of each array, at each look. A drive that is gone has left its array degraded."""
    files = {}
    for look in _looked(world, begin, end):
        devices = {each.drive.number: each.device for each in look.bearings if each.path[0] == 0}
        stat, exports = ["Personalities : [raid1]"], []
        for array in look.host.arrays:
            name = [name for since, name in array.names if since <= look.at][-1]
            here = [(slot, devices[number]) for slot, number in enumerate(array.drives) if number in devices]
            if not here:
                continue
            width, up = len(array.drives), "".join("U" if number in devices else "_" for number in array.drives)
            stat.append(f"{name} : active raid1 {' '.join(f'{device}1[{slot}]' for slot, device in reversed(here))}")
            stat.append(f"      976630464 blocks super 1.2 [{width}/{len(here)}] [{up}]\n      ")
            export = [
                f"MD_LEVEL={array.level}",
                f"MD_DEVICES={width}",
                "MD_METADATA=1.2",
                f"MD_UUID={array.uuid}",
                f"MD_NAME=any:{array.uuid[:2]}",
            ]
            for slot, device in here:
                export += [f"MD_DEVICE_dev_{device}1_ROLE={slot}", f"MD_DEVICE_dev_{device}1_DEV=/dev/{device}1"]
            exports.append((name, "\n".join(export)))
        if len(stat) > 1:
            files[f"{look.host.name}/mdstat-{look.at}"] = f"TS {look.said_at}\n" + "\n".join([*stat, "unused devices: <none>"]) + "\n"
        for name, text in exports:
            files[f"{look.host.name}/mdadm-{name}-{look.at}"] = f"TS {look.said_at}\n{text}\n"
    return files


@dataclass
class Interval:
    """An interval of sysstat, of two samples. `bearing`: the one whose I/Os these are; null where they are of two drives."""

    host: Host
    device: str
    begin: int
    end: int
    bearing: Bearing | None
    ios: int
    ms: int


def intervals(world: World, source: str) -> Iterator[Interval]:
    """Sysstat takes a device whose I/Os fell for a new one, and one that was not there as if it had been at 0. A boot begins again, and
    so does an iostat that was stopped: while it runs it sleeps the same time before each.
    """
    for host in world.hosts:
        phase = world.plan.draw(f"phase {source} {host.number} 0").randrange(EVERY[source])
        for begin, end in pairwise(world.instants(host, EVERY[source], phase)):
            if any(begin < up <= end for _, up in host.boots) or (source == "iostat" and end - begin > EVERY[source]):
                continue
            before = {each.device: each for each in world.live(host.number, begin)}
            for after in world.live(host.number, end):
                old = before.get(after.device)
                ios_before, _, ms_before, _ = old.counters(begin) if old else (0, 0, 0, 0)
                ios, _, ms, _ = after.counters(end)
                if ios < ios_before:
                    ios_before, ms_before, old = 0, 0, None
                # the milliseconds have 32 bits in the kernel, and the tool's arithmetic has no sign
                gained = (ios - ios_before, (ms - ms_before) % WRAP)
                yield Interval(host, after.device, begin, end, after if old in (None, after) else None, *gained)


def _statistics(world: World, source: str, begin: int, end: int, shown: Callable[[str, float, float], dict[str, Any]]) -> dict[int, Any]:
    """By host and instant: seconds since the sample before, and sysstat's JSON of each drive."""
    found: dict[int, dict[int, tuple[int, list[Any]]]] = {}
    for each in intervals(world, source):
        if begin <= each.end < end:
            row = found.setdefault(each.host.number, {}).setdefault(each.end, (each.end - each.begin, []))
            row[1].append(shown(each.device, each.ios / row[0], each.ms / each.ios if each.ios else 0.0))
    return found


def _document(host: Host, statistics: list[Any], dated: dict[str, str], **more: Any) -> str:
    head = {"nodename": host.name, "sysname": "Linux", "release": "6.1.0", "machine": "x86_64", "number-of-cpus": 8, **dated}
    return json.dumps({"sysstat": {"hosts": [{**head, "statistics": statistics, **more}]}}, indent=1)


def sadf(world: World, begin: int, end: int) -> Files:
    """`sadf -j FILE -- -d`, in UTC."""

    def shown(device: str, rate: float, wait: float) -> dict[str, Any]:
        values = {"tps": 2 * rate, "rkB": 4 * rate, "wkB": 4 * rate, "dkB": 0.0, "areq-sz": 4.0 if rate else 0.0,
                  "aqu-sz": rate * wait / 250, "await": 2 * wait, "util": 40.0}  # fmt: skip
        return {"disk-device": device, **{name: round(value, 2) for name, value in values.items()}}

    files = {}
    for number, rows in _statistics(world, "sadf", begin, end, shown).items():
        host = world.hosts[number]
        statistics = [{"timestamp": {**_stamp(host, at), "interval": seconds}, "disk": disks} for at, (seconds, disks) in rows.items()]
        restarts = [{"boot": {**_stamp(host, up), "cpu_count": 8}} for _, up in host.boots if begin <= up < end]
        dated = {"file-date": "2026-01-05", "file-utc-time": "00:00:01", "timezone": "UTC"}
        files[f"{host.name}-{begin}.json"] = _document(host, statistics, dated, **({"restarts": restarts} if restarts else {}))
    return files


def _stamp(host: Host, at: int) -> dict[str, Any]:
    said = datetime.fromtimestamp(host.clock(at), UTC)
    return {"date": f"{said:%Y-%m-%d}", "time": f"{said:%H:%M:%S}", "tz": "UTC"}


def iostat(world: World, begin: int, end: int) -> Files:
    """`S_TIME_FORMAT=ISO iostat -xt -o JSON`, begun again after each boot; the first figures of each are since boot."""

    def shown(device: str, rate: float, wait: float) -> dict[str, Any]:
        values = {"r/s": rate, "w/s": rate, "d/s": 0.0, "f/s": 0.0, "rkB/s": 4 * rate, "wkB/s": 4 * rate, "dkB/s": 0.0, "rrqm/s": 0.0,
                  "wrqm/s": 0.0, "drqm/s": 0.0, "rrqm": 0.0, "wrqm": 0.0, "drqm": 0.0, "r_await": wait, "w_await": 3 * wait,
                  "d_await": 0.0, "f_await": 0.0, "rareq-sz": 4.0, "wareq-sz": 4.0, "dareq-sz": 0.0, "aqu-sz": 1.0,
                  "util": 40.0}  # fmt: skip
        return {"disk_device": device, **{name: round(value, 2) for name, value in values.items()}}

    files = {}
    for number, rows in _statistics(world, "iostat", begin, end, shown).items():
        host = world.hosts[number]
        runs: list[list[tuple[int, list[Any]]]] = []
        for at, (seconds, disks) in rows.items():
            if not runs or runs[-1][-1][0] != at - seconds:
                runs.append([(at - seconds, [shown(each["disk_device"], 5.0, 7.0) for each in disks])])
            runs[-1].append((at, disks))
        for run, found in enumerate(runs):
            stamps = [datetime.fromtimestamp(host.clock(at), UTC) for at, _ in found]
            statistics = [
                {"timestamp": f"{at:%Y-%m-%dT%H:%M:%S}+0000", "avg-cpu": {"user": 1.5, "idle": 98.5}, "disk": disks}
                for at, (_, disks) in zip(stamps, found, strict=True)
            ]
            files[f"{host.name}-iostat-{begin}-{run}.json"] = _document(host, statistics, {"date": "2026-01-05"})
    return files


def zfs(world: World, begin: int, end: int) -> Files:
    """A pool a host, in one raidz: `zpool iostat -lvpHy -T u 300`, and `zpool status -sp`. Names are of by-id unless lsblk is there."""
    by_id = "lsblk" not in world.plan.sources
    reports: dict[int, dict[int, list[str]]] = {}

    def named(bearing: Bearing) -> str:
        serial = bearing.drive.reported[0]
        return f"ata-{bearing.drive.model.replace(' ', '_')}_{serial}" if by_id and serial else bearing.device

    for each in series(world, "zfs"):
        for before, after in pairwise(each.readings):
            if (
                before.bearing is after.bearing
                and after.at - before.at == EVERY["zfs"]
                and begin < after.at <= end
                and each.device[2] < "i"
            ):
                rate = round(after.bearing.ios(before.at, after.at) / EVERY["zfs"])
                ns = after.bearing.drive.ms * 10**6
                waits = (ns, 3 * ns, ns, 3 * ns) if rate else ("-",) * 4
                numbers = (named(after.bearing), 0, 0, rate, rate, rate * 4096, rate * 4096, *waits, *["-"] * 8)
                reports.setdefault(each.host.number, {}).setdefault(after.said_at, []).append("\t".join(map(str, numbers)))
    files = {}
    for number, rows in reports.items():
        host, text, last = world.hosts[number], [], None
        top = "\t".join(map(str, ("tank", 10**12, 10**12, 1, 1, 4096, 4096, *["-"] * 12)))
        for at, lines in sorted(rows.items()):
            if last is None or at - last != EVERY["zfs"]:
                text.append(f"TS {at - EVERY['zfs']}")
            text += [str(at), top, top.replace("tank", "raidz2-0"), *sorted(lines)]
            last = at
        files[f"{host.name}/zpool-iostat-{begin}"] = "\n".join(text) + "\n"
    for look in _looked(world, begin, end):
        members = sorted(
            f"\t    {named(each)}  ONLINE       0     0     0     0" for each in look.bearings if each.path[0] == 0 and each.device[2] < "i"
        )
        config = "\n".join(
            [
                f"\t{'NAME':30} STATE     READ WRITE CKSUM  SLOW",
                "\ttank  ONLINE       0     0     0     -",
                "\t  raidz2-0  ONLINE       0     0     0     -",
                *members,
            ]
        )
        text_of = f"TS {look.said_at}\n  pool: tank\n state: ONLINE\nconfig:\n\n{config}\n\nerrors: No known data errors\n"
        files[f"{look.host.name}/zpool-status-{look.at}"] = text_of
    return files


def ceph(world: World, begin: int, end: int) -> Files:
    """A cluster over all hosts, an OSD a device: `osd perf` each 5 minutes, `osd metadata` and `osd tree` each hour and after each boot."""
    numbers = {name: n for n, name in enumerate(sorted({(each.host, each.device) for each in world.bearings if each.path[0] == 0}))}
    lines: list[tuple[int, str]] = []
    perf: dict[int, list[Any]] = {}
    for each in series(world, "ceph"):
        for reading in _within(each, begin, end):
            ms = reading.bearing.drive.ms
            stats = {"commit_latency_ms": ms, "apply_latency_ms": ms, "commit_latency_ns": ms * 10**6, "apply_latency_ns": ms * 10**6}
            perf.setdefault(reading.at, []).append({"id": numbers[each.host.number, each.device], "perf_stats": stats})
    lines += [(at, json.dumps({"osdstats": {"osd_perf_infos": infos}})) for at, infos in perf.items()]
    for at in sorted({look.at for look in _looked(world, begin, end)}):
        here = [each for host in world.hosts if world.is_up(host, at) for each in world.live(host.number, at) if each.path[0] == 0]
        metadata = [
            {"id": numbers[each.host, each.device], "hostname": world.hosts[each.host].name, "devices": each.device,
             "bluestore_bdev_devices": each.device, "bluestore_bdev_type": "hdd", "bluestore_bdev_rotational": "1",
             "bluestore_bdev_size": str(each.drive.capacity), "default_device_class": "hdd", "osd_objectstore": "bluestore",
             "device_ids": f"{each.device}=ATA_{each.drive.model.replace(' ', '_')}_{serial}" if serial else "",
             "ceph_version_short": "18.2.4"}
            for each in here for serial, _ in [world.hosts[each.host].reported(each, at)]
        ]  # fmt: skip
        osds = [numbers[each.host, each.device] for each in here]
        nodes = [{"id": -1, "name": "default", "type": "root", "type_id": 11, "children": osds}]
        nodes += [
            {"id": osd, "device_class": "hdd", "name": f"osd.{osd}", "type": "osd", "type_id": 0, "status": "up", "reweight": 1}
            for osd in osds
        ]
        lines.append((at, json.dumps(metadata) + "\n\n" + json.dumps({"nodes": nodes, "stray": []})))
    text = "".join(f"TS {at}\n\n{shown}\n" for at, shown in sorted(lines))
    return {f"w{world.number:03}/ceph-{begin}.txt": text} if text else {}


RENDERERS: dict[str, Callable[[World, int, int], Files]] = {
    "prometheus": prometheus, "diskstats": diskstats, "lsblk": lsblk, "smartctl": smartctl, "sadf": sadf, "iostat": iostat, "zfs": zfs,
    "ceph": ceph, "mdadm": mdadm,
}  # fmt: skip
INGESTED = {"sadf": "sysstat", "iostat": "sysstat", "api": "prometheus"}
"""Names of sources in ingest, where they differ."""

"""`fct_drive_samples` computed the slow way, from snapshots of /proc/diskstats and samples of the Perseus set as they were delivered.

Nothing of the project's own code is imported. Instants are unix seconds until the rows are made, latencies microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from .reference import median

HOUR = 3600
Record = dict[str, Any]
Snapshot = tuple[float, int, int, int, int]  # when, reads, their milliseconds, writes, their milliseconds


@dataclass(frozen=True)
class Place:
    """What an operator says of a device from an hour on (unix seconds, null = always): the drive in it, its group and role."""

    drive_id: str
    raid_group_id: str
    role: str
    since: int | None = None


def instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def samples_of_device(snapshots: Iterable[Snapshot], seconds: int) -> list[Record]:
    """One delivery's snapshots of a device -> its samples: from, I/Os and latencies by direction, coverage, when it was last looked at."""
    found: dict[int, list[tuple[float, float, list[int]]]] = defaultdict(list)
    for (before, *was), (at, *now) in pairwise(sorted({snapshot[0]: snapshot for snapshot in reversed(list(snapshots))}.values())):
        gained = [new - old for new, old in zip(now, was, strict=True)]
        hour, part = (int(-(-at // length) - 1) * length for length in (HOUR, seconds))
        if min(gained) >= 0 and (at - before <= 900 or before >= hour) and before > part - seconds:
            found[part].append((at, at - before, gained))
    made = []
    for part, intervals in found.items():
        reads, read_ms, writes, write_ms = (sum(gained[column] for _, _, gained in intervals) for column in range(4))
        made.append(
            {
                "from": part,
                "reads": reads,
                "writes": writes,
                "read_us": read_ms * 1000.0 / reads if reads else None,
                "write_us": write_ms * 1000.0 / writes if writes else None,
                "coverage": min(1.0, sum(lasted for _, lasted, _ in intervals) / seconds),
                "collected": max(at for at, _, _ in intervals),
            }
        )
    return made


def hours_of_device(snapshots: Iterable[Snapshot]) -> set[int]:
    """The hours in which a device has a drive-hour."""
    looks = sorted({snapshot[0]: snapshot for snapshot in reversed(list(snapshots))}.values())
    return {
        hour
        for (before, *was), (at, *now) in pairwise(looks)
        for hour in [int(-(-at // HOUR) - 1) * HOUR]
        if all(new >= old for new, old in zip(now, was, strict=True)) and (at - before <= 900 or before >= hour)
    }


def of_diskstats(
    deliveries: Iterable[dict[tuple[str, str], list[Snapshot]]], places: dict[tuple[str, str], list[Place]], seconds: int
) -> list[Record]:
    """Samples of all devices (host, device) under the drives they are of, those in groups of three data drives or more."""
    best: dict[tuple[str, str, int], Record] = {}
    members: dict[tuple[str, int], set[str]] = defaultdict(set)
    order = ("collected", "reads", "writes")
    for delivery in deliveries:
        for (host, device), snapshots in delivery.items():
            for hour in hours_of_device(snapshots):
                place = place_at(places, host, device, hour)
                # inventory counts the drives that it names whether they report or not
                listed = [place_at(places, *known, hour) for known in places]
                for one in (place, *listed):
                    if one.role == "data":
                        members[one.raid_group_id, hour].add(one.drive_id)
            for sample in samples_of_device(snapshots, seconds):
                key = (host, device, sample["from"])
                if key not in best or [sample[name] for name in order] > [best[key][name] for name in order]:
                    best[key] = sample
    rows = []
    for (host, device, part), sample in best.items():
        hour = part // HOUR * HOUR
        place = place_at(places, host, device, hour)
        ios = sample["reads"] + sample["writes"]
        took = float(sample["reads"]) * (sample["read_us"] or 0.0) + float(sample["writes"]) * (sample["write_us"] or 0.0)
        if place.role == "data" and len(members[place.raid_group_id, hour]) >= 3:
            rows.append(
                {
                    "drive_id": place.drive_id,
                    "from": part,
                    "raid_group_id": place.raid_group_id,
                    "latency_us": took / ios if ios else None,
                    "coverage": sample["coverage"],
                    "io_count": ios,
                    "source": "diskstats",
                }
            )
    return rows


def place_at(places: dict[tuple[str, str], list[Place]], host: str, device: str, hour: int) -> Place:
    """The drive that is in a place, by what was said last; without a word the place itself, in a group of its host."""
    known = [place for place in places.get((host, device), []) if place.since is None or place.since <= hour]
    return max(known, key=lambda place: place.since or 0, default=Place(f"{host}/{device}", host, "data"))


def of_perseus(host: str, samples: Iterable[tuple[int, str, float]], seconds: int) -> list[Record]:
    """Samples (end, disk, latency) of 15 seconds of one host."""
    parts: dict[tuple[str, int], list[float]] = defaultdict(list)
    for ends, disk, latency_us in sorted(samples):
        parts[disk, (ends - 15) // seconds * seconds].append(latency_us)
    return [
        {
            "drive_id": f"{host}/{disk}",
            "from": part,
            "raid_group_id": host,
            "latency_us": sum(latencies) / len(latencies),
            "coverage": len(latencies) / (seconds / 15),
            "io_count": None,
            "source": None,
        }
        for (disk, part), latencies in parts.items()
    ]


def fct_drive_samples(samples: list[Record], seconds: int) -> list[Record]:
    """Each sample against the group's median in the same minutes."""
    peers: dict[tuple[str, int], list[float]] = defaultdict(list)
    for sample in samples:
        if sample["coverage"] >= 0.5 and sample["latency_us"] is not None:
            peers[sample["raid_group_id"], sample["from"]].append(sample["latency_us"])
    rows = []
    for sample in samples:
        latencies = peers[sample["raid_group_id"], sample["from"]]
        middle = median(latencies) if len(latencies) >= 3 else None
        slowdown = sample["latency_us"] / middle if sample["coverage"] >= 0.5 and middle and sample["latency_us"] is not None else None
        reason = None
        if slowdown is None:
            reason = "zero_median"
            if sample["coverage"] < 0.5:
                reason = "low_coverage"
            elif sample["latency_us"] is None:
                reason = "no_io"
            elif len(latencies) < 3:
                reason = "too_few_drives"
        rows.append(
            {
                "drive_id": sample["drive_id"],
                "from_utc": instant(sample["from"]),
                "to_utc": instant(sample["from"] + seconds),
                "raid_group_id": sample["raid_group_id"],
                "latency_us": sample["latency_us"],
                "median_latency_us": middle or None,
                "slowdown": slowdown,
                "exclusion_reason": reason,
                "is_slow": slowdown is not None and slowdown >= 2.0,
                "coverage": sample["coverage"],
                "io_count": sample["io_count"],
                "source": sample["source"],
            }
        )
    return rows

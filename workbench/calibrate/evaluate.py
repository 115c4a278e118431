"""From a simulated fleet, still in arrays, to the paper's numbers: the fit's own quick judge.

The official numbers are the marts' (`study_results`, `study_curves`); this module exists because a fit needs hundreds of
fleets and a build of the warehouse takes minutes. Definitions follow the study's; a drive is a member of a group
(nothing moves here), a cluster is a RAID group. Shares are 0..1, slowdowns ratios, times hours.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from simulate.awkward import Awkward
from simulate.fleet import run_fleet
from simulate.groups import CATALOGUE, Member
from simulate.parameters import KINDS, Kind, Parameters
from simulate.telemetry import day_cells

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
START = datetime(2026, 1, 5)
Z95 = 1.959963984540054
LEAST_COVERAGE = 0.5
EDGES = (1.5, 2.0, 4.0, 8.0, math.inf)
BUCKETS: dict[Kind, dict[str, tuple[float, float]]] = {
    "disk": {"1.5-2x": (1.5, 2.0), "2-4x": (2.0, 4.0), "4-8x": (4.0, 8.0), "8x+": (8.0, math.inf)},
    "ssd": {"1.5-2x": (1.5, 2.0), "2x+": (2.0, math.inf)},
}


@dataclass(frozen=True)
class Population:
    """Values with their clusters; every share and percentile of the study is asked of one of these."""

    value: Floats
    cluster: Ints

    def below(self, x: float, inclusive: bool = False) -> "Share":
        """The share of values below `x` (at or below, if inclusive)."""
        return Share.of(self.value <= x if inclusive else self.value < x, self.cluster)

    def within(self, mask: npt.NDArray[np.bool_]) -> "Population":
        """The values where `mask` holds."""
        return Population(self.value[mask], self.cluster[mask])

    def of_values(self, *values: float) -> "Share":
        """The share of the given values."""
        return Share.of(np.isin(self.value, values), self.cluster)

    def percentile(self, q: float) -> float:
        """Nearest rank, `q` in 0..1."""
        n = len(self.value)
        return float(np.partition(self.value, (k := max(math.ceil(round(q * n, 6)), 1) - 1))[k]) if n else math.nan


@dataclass(frozen=True)
class Share:
    """How often something holds; the sums of the clusters are made only when an interval is asked for."""

    hit: npt.NDArray[np.bool_]
    cluster: Ints

    @classmethod
    def of(cls, hit: npt.NDArray[np.bool_], cluster: Ints) -> "Share":
        return cls(hit, cluster)

    @property
    def value(self) -> float:
        return float(np.count_nonzero(self.hit)) / len(self.hit) if len(self.hit) else math.nan

    @property
    def population(self) -> int:
        return len(self.hit)

    def effective_size(self) -> float:
        """The number of independent drives-hours that would be known as exactly."""
        counts = np.bincount(self.cluster)
        hits = np.bincount(self.cluster[self.hit], minlength=len(counts))[counts > 0].astype(float)
        counts = counts[counts > 0].astype(float)
        g, n, p = len(counts), self.population, self.value
        if g < 2 or n == 0:
            return 1.0
        if p in (0.0, 1.0):
            return float(g)
        v = g / (g - 1) * float(np.square(hits - p * counts).sum()) / n**2
        return n if v == 0 else min(max(p * (1 - p) / v, 1.0), n)

    def interval(self) -> tuple[float, float]:
        """Wilson's score interval with the effective size."""
        return wilson(self.value, self.effective_size())


def wilson(p: float, n: float) -> tuple[float, float]:
    """The score interval of a share `p` among `n` independent ones."""
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    return max(centre - half, 0.0), min(centre + half, 1.0)


@dataclass
class KindData:
    """Everything that is asked of one kind."""

    slowdown: Population  # of drive-hours
    tails: tuple[Population, Population, Population]  # T1, T2, T3 of RAID-hours
    rate_imbalance: Floats  # in step with slowdown
    size_imbalance: Floats
    age_year: Ints
    cell: Ints  # 0 unknown, 1 SLC, 2 MLC of the first vendor, 3 MLC of the second
    drive_age_year: Population  # at the drive's first hour
    drive_cell: Population
    drive_model_known: Population  # 1 or 0
    width: Population  # per group
    duration_days: Population  # per group
    interval_hours: Population
    gap_hours: Population
    max_slowdown: Population  # per drive
    occurrences: Population  # per slow drive
    degradation: dict[str, Population]  # by class of transition
    wait_hours: dict[str, Population]  # per drive with such an interval; inf = never
    recur_hours: dict[str, Population]  # per replug
    outage_hours: Population
    replugged: Population  # 1 or 0 per unplug
    explicit_led: Population  # 1 or 0 per explicit event
    extras: dict[str, float] = field(default_factory=dict)
    populations: dict[str, Population] = field(default_factory=dict)

    def kept(self, name: str, make: Callable[[], Population]) -> Population:
        """A population that several ids ask of, made once."""
        if name not in self.populations:
            self.populations[name] = make()
        return self.populations[name]


def fleet_data(parameters: Parameters, seed: int, days: int, counts: Mapping[Kind, int], start: datetime = START) -> dict[Kind, KindData]:
    """Simulate a fleet and measure it, without writing a file."""
    hours = days * 24
    fleet, histories = run_fleet(parameters, seed, start, hours, counts, Awkward(set(), seed, start))
    columns = len(fleet.drive_ids)
    latency = np.full((hours, columns), np.nan)
    ios, blocks = np.full((hours, columns), np.nan), np.full((hours, columns), np.nan)
    for day in range(days):
        part = slice(day * 24, day * 24 + 24)
        cells = day_cells(fleet, part.start, part.stop, day)
        total = cells.read_ios + cells.write_ios.astype(np.int64)
        seen = cells.presence >= LEAST_COVERAGE
        with np.errstate(invalid="ignore", divide="ignore"):
            merged = (cells.read_ios * cells.read_latency_us + cells.write_ios * cells.write_latency_us) / total
            size = (cells.read_blocks + cells.write_blocks) / total
        latency[part] = np.where(seen & (total > 0), merged, np.nan)
        ios[part] = np.where(seen, total, np.nan)
        blocks[part] = np.where(seen & (total > 0), size, np.nan)
    made: dict[Kind, KindData] = {}
    for kind in KINDS:
        numbers = [g for g, group in enumerate(fleet.groups) if group.kind == kind]
        if numbers:
            made[kind] = _kind_data(kind, fleet, histories, numbers, latency, ios, blocks, start)
    return made


def _kind_data(
    kind: Kind, fleet: Any, histories: Any, numbers: list[int], latency: Floats, ios: Floats, blocks: Floats, start: datetime
) -> KindData:
    hours = len(latency)
    members: list[Member] = []
    cluster_of: list[int] = []
    parts: list[tuple[Floats, Floats, Floats]] = []
    tails: list[tuple[Floats, Floats, Floats]] = []
    tail_clusters: list[Ints] = []
    widths, durations, clusters = [], [], []
    pairs: dict[str, list[Floats]] = {"stable-to-stable": [], "stable-to-tail": []}
    pair_clusters: dict[str, list[Ints]] = {name: [] for name in pairs}
    for g in numbers:
        ordered = sorted(fleet.groups[g].members, key=lambda m: m.drive_id)
        at = [i for i, m in enumerate(ordered) if m.role == "data"]
        columns = fleet.first_member[g] + np.asarray(at)
        own, rate, size = latency[:, columns], ios[:, columns], blocks[:, columns]
        ranked = np.sort(own, axis=1)
        valid_count = np.isfinite(own).sum(axis=1)
        median = _median(ranked, valid_count)
        valid = (valid_count >= 3) & (median > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            slow = np.where(valid[:, None], own / median[:, None], np.nan)
            rate_median = _median(np.sort(rate, axis=1), np.isfinite(rate).sum(axis=1))
            size_median = _median(np.sort(size, axis=1), np.isfinite(size).sum(axis=1))
            ri = np.where(rate_median[:, None] > 0, rate / rate_median[:, None], np.nan)
            zi = size / size_median[:, None]
        if not valid.any():
            continue
        hour = np.flatnonzero(valid)
        t = tuple(ranked[hour, valid_count[hour] - k] / median[hour] for k in (1, 2, 3))
        tails.append((t[0], t[1], t[2]))
        tail_clusters.append(np.full(len(hour), g))
        widths.append(fleet.groups[g].data_width)
        durations.append((hour[-1] - hour[0] + 1) / 24)
        clusters.append(g)
        members += [ordered[i] for i in at]
        cluster_of += [g] * len(at)
        parts.append((slow, ri, zi))
        # RIO of neighbouring hours in which the same drives reported
        reported = np.isfinite(rate)
        total = np.nansum(rate, axis=1)
        same = np.zeros(hours, dtype=bool)
        same[1:] = (reported[1:] == reported[:-1]).all(axis=1) & valid[1:] & valid[:-1] & (total[1:] > 0)
        is_tail = np.zeros(hours, dtype=bool)
        is_tail[hour] = t[0] >= 2
        for name, state in (("stable-to-stable", ~is_tail), ("stable-to-tail", is_tail)):
            kept = np.flatnonzero(same[1:] & ~is_tail[:-1] & state[1:]) + 1
            pairs[name].append(total[kept - 1] / total[kept])
            pair_clusters[name].append(np.full(len(kept), g))
    slow = np.concatenate([p[0] for p in parts], axis=1)
    cluster = np.asarray(cluster_of)
    rows, cols = np.nonzero(np.isfinite(slow))
    deployed = np.asarray(
        [(start - datetime(m.deployed_on.year, m.deployed_on.month, m.deployed_on.day)) / timedelta(days=1) for m in members]
    )
    age_year = np.floor((deployed[cols] + rows / 24) / 365.25).astype(int) + 1
    is_known = {g: fleet.groups[g].is_model_known for g in clusters}
    aged = {g: getattr(fleet.groups[g], "is_age_known", True) for g in clusters}
    age_year = np.where(np.asarray([aged[c] for c in cluster_of])[cols] & (age_year > 0), age_year, 0)
    codes = {None: 0, "SLC": 1}
    cell = np.asarray(
        [
            0
            if not is_known[c]
            else codes.get(CATALOGUE[kind][m.family].flash_cell, 2 if CATALOGUE[kind][m.family].vendor == "Calder" else 3)
            for m, c in zip(members, cluster_of, strict=True)
        ]
    )
    starts, lengths, of = _intervals(slow, 2.0)
    mild_starts, mild_lengths, mild_of = _intervals(slow, 1.5)
    by_drive, hour = np.nonzero((slow >= 2).T)
    adjacent = by_drive[1:] == by_drive[:-1]
    has_any = np.isfinite(slow).any(axis=0)
    counts = (slow >= 2).sum(axis=0)
    with np.errstate(invalid="ignore"):
        peak = np.where(has_any, np.max(np.where(np.isfinite(slow), slow, -1), axis=0), np.nan)
    first_hour = np.argmax(np.isfinite(slow), axis=0)
    first_year = np.floor((deployed + first_hour / 24) / 365.25).astype(int) + 1
    first_year = np.where(np.asarray([aged[c] for c in cluster_of]), first_year, 0)
    model_known = np.asarray([float(is_known[c]) for c in cluster_of])
    waits, recurs, outage, replugged, explicit = _operators(
        kind, histories, numbers, members, cluster, slow, (starts, lengths, of), (mild_starts, mild_lengths, mild_of), hours
    )
    ids = np.concatenate(tail_clusters)
    return KindData(
        slowdown=Population(slow[rows, cols], cluster[cols]),
        tails=tuple(Population(np.concatenate([t[k] for t in tails]), ids) for k in range(3)),  # type: ignore[arg-type]
        rate_imbalance=np.concatenate([p[1] for p in parts], axis=1)[rows, cols],
        size_imbalance=np.concatenate([p[2] for p in parts], axis=1)[rows, cols],
        age_year=age_year,
        cell=cell[cols],
        drive_age_year=Population(first_year[has_any & (first_year > 0)].astype(float), cluster[has_any & (first_year > 0)]),
        drive_cell=Population(cell[has_any].astype(float), cluster[has_any]),
        drive_model_known=Population(model_known[has_any], cluster[has_any]),
        width=Population(np.asarray(widths, dtype=float), np.asarray(clusters)),
        duration_days=Population(np.asarray(durations), np.asarray(clusters)),
        interval_hours=Population(lengths.astype(float), cluster[of]),
        gap_hours=Population((np.diff(hour) - 1)[adjacent].astype(float), cluster[by_drive[1:]][adjacent]),
        max_slowdown=Population(peak[has_any], cluster[has_any]),
        occurrences=Population(counts[counts > 0].astype(float), cluster[counts > 0]),
        degradation={name: Population(np.concatenate(pairs[name]), np.concatenate(pair_clusters[name])) for name in pairs},
        wait_hours=waits,
        recur_hours=recurs,
        outage_hours=outage,
        replugged=replugged,
        explicit_led=explicit,
        extras={
            "drives_per_raid_hour": len(rows) / len(ids),
            "drives_per_group": float(np.mean(widths)),
            "slow_hours_per_slow_drive": float(counts.sum() / max((counts > 0).sum(), 1)),
        },
    )


def _median(ranked: Floats, count: Ints) -> Floats:
    """Median of each row of sorted values, NaN last."""
    row = np.arange(len(ranked))
    middle = (ranked[row, np.maximum(count - 1, 0) // 2] + ranked[row, np.minimum(count // 2, ranked.shape[1] - 1)]) / 2
    made: Floats = np.where(count > 0, middle, np.nan)
    return made


def _intervals(slow: Floats, threshold: float) -> tuple[Ints, Ints, Ints]:
    """Maximal runs of hours at or above `threshold`: first hour, length, column; by column and time."""
    is_slow = np.zeros((slow.shape[1], slow.shape[0] + 2), dtype=np.int8)
    is_slow[:, 1:-1] = (slow >= threshold).T
    step = np.diff(is_slow, axis=1)
    of, first = np.nonzero(step == 1)
    _, last = np.nonzero(step == -1)
    return first, last - first, of


def _operators(
    kind: Kind,
    histories: Any,
    numbers: list[int],
    members: list[Member],
    cluster: Ints,
    slow: Floats,
    intervals: Any,
    milds: Any,
    hours: int,
) -> tuple[dict[str, Population], dict[str, Population], Population, Population, Population]:
    """Waits, recurrences, outages, replugs and explicit events, from the events as they are written."""
    column = {m.drive_id: i for i, m in enumerate(members)}
    starts, _, of = intervals
    mild_starts, mild_lengths, mild_of = milds
    mild_peak = np.asarray([slow[s : s + n, c].max() for s, n, c in zip(mild_starts, mild_lengths, mild_of, strict=True)])
    mild = mild_peak < 2 if len(mild_peak) else np.zeros(0, dtype=bool)
    # every interval as (column, start, first slowdown); the mild ones keep a slowdown below 2
    all_of = np.concatenate([of, mild_of[mild]])
    all_start = np.concatenate([starts, mild_starts[mild]])
    all_first = np.concatenate([slow[starts, of], slow[mild_starts[mild], mild_of[mild]]])
    plugs: dict[int, list[tuple[float, str]]] = {}
    led: list[tuple[int, int]] = []
    for g in numbers:
        for event in histories[g].events:
            c = column.get(event.drive_id)
            if c is None:
                continue
            if event.event_type in ("unplug", "replug"):
                plugs.setdefault(c, []).append((event.at, event.event_type))
            elif event.event_type in ("not_spinning", "not_responding"):
                window = slow[int(event.at) : min(int(event.at) + 2, hours), c]
                if np.isfinite(window).any():
                    led.append((int(np.nanmax(window) >= 2), g))
    wait = np.full(len(all_of), np.inf)
    outage: list[tuple[float, int]] = []
    replugged: list[tuple[float, int]] = []
    recurs: dict[str, list[tuple[float, int]]] = {name: [] for name in [*BUCKETS[kind], "all"]}
    for c, found in plugs.items():
        found.sort()
        unplugs = np.asarray([int(at) for at, what in found if what == "unplug"])
        mine = np.flatnonzero(all_of == c)
        for i in mine:
            later = unplugs[unplugs >= all_start[i]]
            if len(later):
                wait[i] = later[0] - all_start[i]
        for (at, what), follower in zip(found, [*found[1:], (math.inf, "")], strict=True):
            if what != "unplug":
                continue
            came = follower[1] == "replug"
            replugged.append((float(came), int(cluster[c])))
            if not came:
                continue
            outage.append((follower[0] - at, int(cluster[c])))
            before = mine[all_start[mine] <= int(at)]
            if not len(before):
                continue
            last = before[np.argmax(all_start[before])]
            back = int(follower[0])
            again = np.flatnonzero(slow[back:, c] >= (2.0 if all_first[last] >= 2 else 1.5))
            recur = float(again[0]) if len(again) else math.inf
            for name, (low, high) in BUCKETS[kind].items():
                if low <= all_first[last] < high:
                    recurs[name].append((recur, int(cluster[c])))
            if all_first[last] >= 2:
                recurs["all"].append((recur, int(cluster[c])))
    waits = {}
    for name, (low, high) in {**BUCKETS[kind], "all": (2.0, math.inf)}.items():
        of_severity = (all_first >= low) & (all_first < high)
        least = np.full(len(members), np.nan)
        np.fmin.at(least, all_of[of_severity], wait[of_severity])
        kept = ~np.isnan(least)
        waits[name] = Population(least[kept], cluster[kept])
    return waits, {k: _population(v) for k, v in recurs.items()}, _population(outage), _population(replugged), _population(led)


def _population(pairs: Any) -> Population:
    made = np.asarray(pairs, dtype=float).reshape(-1, 2)
    return Population(made[:, 0], made[:, 1].astype(int))

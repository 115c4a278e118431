"""The study computed the slow way from the marts of `tests.reference.reference.compute()`, to test the study of the warehouse against.

Standard library only. Quotes from `contract.md` are marked with `>`, sections of `metrics.md` with their number, and a reading chosen
where both are silent with `CHOICE`. A share is between 0 and 1 here; estimates carry the unit of the paper's number (percent, ratio ...).

Names used throughout:
  item        (cluster, value): one observation of a population and the RAID group it belongs to; value None = it never happened
  population  a list of items
"""

from __future__ import annotations

import csv
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from tests.reference.reference import HOUR, floor_hour, nearest_rank

Record = dict[str, Any]
Marts = dict[str, list[Record]]
Item = tuple[Hashable, Any]
Test = Callable[[Any], bool]

KINDS = ("disk", "ssd")
Z = 1.959963984540054  # two-sided 95%
WITHIN = 1.25  # factor between the estimate and the paper's value
FEWEST_EVENTS = 10
LEAST_CLUSTERS = 4  # RAID groups that an interval takes
PRIOR_EVENTS = 20  # at which the hours of a RAID group are taken to be alike
DAY_HOURS = 24
EXPLICIT_EVENTS = ("not_spinning", "not_responding", "response_timeout", "scsi_timeout", "media_error")
SEVERE = ("2-4x", "4-8x", "8x+")
DESIGN_EDGES = (1.2, 1.5, 2.0, 4.0)
# below 1.5 percentiles are read from counts of values by 0.005
BIN_EDGES = [number / 200 for number in range(300)]
TICK_NS = 250_000
# from 1.5 to 8 values are counted by 0.05, from 8 on by whole numbers
COARSE_EDGES = [number / 20 for number in range(30, 160)]


class Reference(NamedTuple):
    """One number of the paper; `value` is the text as printed."""

    id: str
    kind: str
    subject: str
    metric: str
    operator: str
    value: str
    unit: str


def read_references() -> list[Reference]:
    """The paper's numbers."""
    with (Path(__file__).parents[1] / "seeds/paper_numbers.csv").open(newline="", encoding="utf-8") as lines:
        return [Reference(*(row[column] for column in Reference._fields)) for row in csv.DictReader(lines)]


def is_in_scope(reference_id: str) -> bool:
    """Figure 12 and ToleRAID are a simulation of RAID requests; no mart holds them."""
    return not reference_id.startswith(("F12A-", "F12B-", "TOL-"))


# --------------------------------------------------------------------------------------------------------------------
# Intervals of confidence


def effective_size(hits: int, size: int, by_cluster: Iterable[tuple[int, int]]) -> float:
    """n_eff of the share hits/size; `by_cluster` gives (x_g, n_g) of every cluster with n_g > 0.

    The design effect is N * v / (p(1-p)) with v = G/(G-1) * sum((x_g - p*n_g)^2) / N^2, here in whole numbers: x_g - p*n_g =
    (x_g*N - X*n_g) / N. Over as many events as there are (hits or misses, the rarer) it is averaged with PRIOR_EVENTS events at which
    a cluster is one observation, N / G. Wilson's z for n_eff is Student's t for N / design effect: n_eff = N / effect * (z/t)^2.
    """
    clusters = list(by_cluster)
    count = len(clusters)
    alike = Fraction(size, count)
    events = min(hits, size - hits)
    squares = sum((x * size - hits * n) ** 2 for x, n in clusters)
    seen = Fraction(count * squares, (count - 1) * size * hits * (size - hits)) if events and count > 1 else alike
    effect = (events * seen + PRIOR_EVENTS * alike) / (events + PRIOR_EVENTS)
    n_eff = min(max(Fraction(size) / effect, Fraction(1)), Fraction(size))
    return float(n_eff) * Z * Z / student_limit(max(count - 1, 2)) ** 2


def student_limit(freedom: int) -> float:
    """The 97.5% point of Student's t: Wallace's transformation of Hastings' normal limit (Abramowitz and Stegun, 26.2.23 and 26.7.8)."""
    u = math.sqrt(-2 * math.log(0.025))
    normal = u - (2.515517 + 0.802853 * u + 0.010328 * u * u) / (1 + 1.432788 * u + 0.189269 * u * u + 0.001308 * u**3)
    return math.sqrt(freedom * (math.exp(normal**2 * (freedom - 5 / 6) / (freedom - 2 / 3 + 0.1 / freedom) ** 2) - 1))


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's score interval of a share with n observations: the roots of (p - t)^2 = z^2 t(1-t)/n."""
    return _lower_root(share, n), 1 - _lower_root(1 - share, n)


def _lower_root(share: float, n: float) -> float:
    """The smaller root, from the product of both (p^2 / (1 + z^2/n)), so that nothing cancels and a share of 0 gives 0."""
    z2 = Z * Z
    greater = share + z2 / (2 * n) + Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return share * share / greater


def newcombe(one: tuple[float, float, float], two: tuple[float, float, float]) -> tuple[float, float]:
    """Newcombe's hybrid interval of one - two, each (share, low, high)."""
    (p1, l1, u1), (p2, l2, u2) = one, two
    return p1 - p2 - math.hypot(p1 - l1, u2 - p2), p1 - p2 + math.hypot(u1 - p1, p2 - l2)


# --------------------------------------------------------------------------------------------------------------------
# Estimates


@dataclass(frozen=True)
class Estimate:
    """A number in the unit of the paper. `quantile` is set on percentiles, `verdict` where the rule of numbers does not apply."""

    numerator: int | None = None
    denominator: int | None = None
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    quantile: str | None = None
    verdict: str | None = None


NOT_COMPARABLE = Estimate(verdict="not comparable")


def tally(items: Iterable[Item], test: Test) -> tuple[int, int, list[tuple[int, int]]]:
    """X, N and (x_g, n_g) of every cluster."""
    sizes: Counter = Counter()
    hits: Counter = Counter()
    for cluster, value in items:
        sizes[cluster] += 1
        hits[cluster] += test(value)
    return hits.total(), sizes.total(), [(hits[cluster], n) for cluster, n in sizes.items()]


def share_of(items: Iterable[Item], test: Test) -> tuple[int, int, float | None, float | None, float | None]:
    """X, N, the share and its interval."""
    x, n, by_cluster = tally(items, test)
    if n == 0:
        return x, n, None, None, None
    if len(by_cluster) < LEAST_CLUSTERS:
        return x, n, x / n, None, None
    low, high = wilson(x / n, effective_size(x, n, by_cluster))
    return x, n, x / n, low, high


def share(items: Iterable[Item], test: Test, verdict: str | None = None) -> Estimate:
    """The share of the population that passes, in percent (which is also the percentile of a value, test = below it)."""
    x, n, p, low, high = share_of(items, test)
    if p is None:
        return Estimate(x, n, verdict=verdict)
    return Estimate(x, n, 100.0 * x / n, *(None if end is None else 100.0 * end for end in (low, high)), verdict=verdict)


def difference(minuend: list[Item], subtrahend: list[Item], test: Test) -> Estimate:
    """Share of one population minus that of another, in percentage points.

    CHOICE: numerator and denominator are the minuend's, and the expected events are counted over that denominator.
    """
    x, n, *one = share_of(minuend, test)
    _, m, *two = share_of(subtrahend, test)
    if n == 0 or m == 0:
        return Estimate(x, n)
    if None in (*one, *two):
        return Estimate(x, n, 100.0 * (one[0] - two[0]))
    low, high = newcombe(tuple(one), tuple(two))
    return Estimate(x, n, 100.0 * (one[0] - two[0]), 100.0 * low, 100.0 * high)


def percentile(items: list[Item], q: str) -> Estimate:
    """The value at percentile q (nearest rank, metrics 1) with Woodruff's interval.

    CHOICE: numerator is null, denominator the population. The design effect of the share at an edge is N / n_eff there, so that
    Wilson's interval of q takes that share's n_eff.
    """
    ordered = sorted(value for _, value in items)
    n = len(ordered)
    if n == 0:
        return Estimate(None, 0, quantile=q)
    # below 1.5 the warehouse keeps counts of values by 0.005
    ordered = [BIN_EDGES[bisect_right(BIN_EDGES, value) - 1] if 0 < value < 1.5 else value for value in ordered]
    found = nearest_rank(ordered, q)
    edge = max((edge for edge in DESIGN_EDGES if edge <= found), default=DESIGN_EDGES[0])
    hits, size, by_cluster = tally(items, lambda value: value >= edge)
    if len(by_cluster) < LEAST_CLUSTERS:
        return Estimate(None, n, found, quantile=q)
    low, high = wilson(float(q), effective_size(hits, size, by_cluster))
    first, last = (min(max(math.ceil(n * bound), 1), n) for bound in (low, high))
    return Estimate(None, n, found, ordered[first - 1], ordered[last - 1], quantile=q)


def count(number: int) -> Estimate:
    """A size of the data set. CHOICE: numerator = value, denominator null.

    > `not comparable` = sizes and durations of the paper's own data set, definitions, anecdotes.
    """
    return Estimate(number, None, float(number), verdict="not comparable")


def statistic(value: float | None, population: int) -> Estimate:
    """A minimum, maximum or mean of the data set. CHOICE: numerator null, denominator the population."""
    return Estimate(None, population, value, verdict="not comparable")


def quotient(numerator: int, denominator: int, per: float = 1.0) -> Estimate:
    """A mean of two counts of the data set (DRV)."""
    return Estimate(numerator, denominator, numerator / denominator / per if denominator else None, verdict="not comparable")


# --------------------------------------------------------------------------------------------------------------------
# Verdicts

# Widths, durations and RAID levels of the paper's own data set
SIZES = ("F2A-", "F2B-", "TXT-010", "TXT-011", "TXT-012")

# PI-01: the paper prints P(T1 <= 2) here; "compare disk with 98.46"
PRINTED_INSTEAD = {"T3B-07": "98.46"}


def printed(reference: Reference) -> Decimal | None:
    """The paper's number, None where it prints words or a list."""
    text = PRINTED_INSTEAD.get(reference.id, reference.value)
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def half_digit(number: Decimal) -> Decimal:
    """> half its last printed digit"""
    return Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)


def expected_events(reference: Reference, number: Decimal, estimate: Estimate) -> Fraction:
    """Events expected at the paper's value, the rarer side; of what the paper saw in all or in none there is no rarer side."""
    p = Fraction(estimate.quantile) if estimate.quantile else Fraction(number) / 100
    return (estimate.denominator or 0) * (min(p, 1 - p) or 1)


def verdict(reference: Reference, estimate: Estimate) -> str:
    """> `agrees` = the paper's value +- half its last printed digit meets the 95% interval **and** the estimate is within a factor
    > 1.25 of it (percentiles: of 100 - p); `no data` = a field is absent, or fewer than 10 events are expected

    It `differs` where the interval does not meet the paper's value; `cannot tell` is between. Of "at least" and "at most" all values on
    that side agree. "Percentiles" are the references whose unit is `percentile`, and the points of the figures that plot the
    CDF of slowdowns and tails: the same quantity.
    """
    if estimate.verdict is not None:
        return estimate.verdict
    if reference.id.startswith(SIZES):
        return "not comparable"
    number = printed(reference)
    if number is None:
        return "not comparable"
    if estimate.value is None or expected_events(reference, number, estimate) < FEWEST_EVENTS:
        return "no data"
    low, high = float(number - half_digit(number)), float(number + half_digit(number))
    if estimate.ci_low is None or estimate.ci_high is None:
        return "cannot tell"
    is_least, is_most = reference.operator in (">=", ">"), reference.operator in ("<=", "<")
    if (low > estimate.ci_high and not is_most) or (high < estimate.ci_low and not is_least):
        return "differs"
    ours, theirs = estimate.value, float(number)
    if reference.unit == "percentile" or re.match(r"F4[AB]-\w+-[\d.]+$|F7[BD]-|F8[AB]-Y\d+-[\d.]+$|FG9-", reference.id):
        ours, theirs = 100.0 - ours, float(100 - number)
    is_near = (is_most or theirs / WITHIN <= ours) and (is_least or ours <= theirs * WITHIN)
    return "agrees" if is_near else "cannot tell"


# --------------------------------------------------------------------------------------------------------------------
# Populations


class Populations:
    """The populations of the study by kind, each a list of items.

    `timezones` gives the zone name by drive (of its latest period); without one the hour of day is UTC's.
    Drive relations go by the drive's kind, RAID relations by the group's kind, as the marts carry them.
    """

    def __init__(self, marts: Marts, timezones: Mapping[str, str | None] | None = None) -> None:
        self.marts = marts
        self.timezones = timezones or {}
        self.drive = {row["drive_id"]: row for row in marts["dim_drives"]}
        self.group_kind = {row["raid_group_id"]: row["kind"] for row in marts["dim_raid_groups"]}
        self.group_of_hour = {(row["drive_id"], row["hour_utc"]): row["raid_group_id"] for row in marts["fct_drive_hours"]}
        self.latency = {(row["drive_id"], row["hour_utc"]): row["latency_us"] for row in marts["fct_drive_hours"]}
        self.event_group = {
            (row["drive_id"], row["occurred_at"], row["event_type"]): row["raid_group_id"] for row in marts["fct_drive_events"]
        }
        for method in ("drive_hours", "raid_hours", "groups", "drives", "intervals", "arrivals", "ages", "waits", "recurrences", "vendors"):
            setattr(self, method, cache(getattr(self, method)))

    def of_kind(self, relation: str, kind: str) -> list[Record]:
        return [row for row in self.marts[relation] if row["kind"] == kind]

    def drive_cluster(self, drive: str) -> Hashable:
        """The drive's current group; a drive without one is a cluster of its own."""
        return self.drive[drive]["current_raid_group_id"] or ("drive", drive)

    def event_cluster(self, drive: str, occurred_at: datetime, event_type: str) -> Hashable:
        return self.event_group[(drive, occurred_at, event_type)] or ("event", drive, occurred_at, event_type)

    # ---- hours

    def drive_hours(self, kind: str) -> list[Record]:
        """Drive-hours with a slowdown."""
        return [row for row in self.of_kind("fct_drive_hours", kind) if row["slowdown"] is not None]

    def raid_hours(self, kind: str) -> list[Record]:
        return self.of_kind("fct_raid_hours", kind)

    def slowdowns(self, kind: str, where: Test = lambda row: True) -> list[Item]:
        return [(row["raid_group_id"], row["slowdown"]) for row in self.drive_hours(kind) if where(row)]

    def tails(self, kind: str, rank: int) -> list[Item]:
        return [(row["raid_group_id"], row[f"tail_{rank}"]) for row in self.raid_hours(kind)]

    def imbalances_of_slow(self, kind: str, column: str) -> list[Item]:
        """Figures 7a, 7c. CHOICE: slow drive-hours whose imbalance is known (an unknown one is in no CDF)."""
        return [(row["raid_group_id"], row[column]) for row in self.drive_hours(kind) if row["is_slow"] and row[column] is not None]

    def slowdowns_of_imbalanced(self, kind: str, column: str) -> list[Item]:
        """Figures 7b, 7d: drive-hours with a slowdown and an imbalance of at least 2."""
        return self.slowdowns(kind, lambda row: row[column] is not None and row[column] >= 2)

    def degradations(self, kind: str, transition: str) -> list[Item]:
        """Figure 10: transitions of the class whose RIO degradation is known."""
        return [
            (row["raid_group_id"], row["rio_degradation"])
            for row in self.raid_hours(kind)
            if row["transition"] == transition and row["rio_degradation"] is not None
        ]

    # ---- groups and drives

    def groups(self, kind: str) -> list[Record]:
        """Groups with a valid RAID-hour."""
        return [row for row in self.of_kind("dim_raid_groups", kind) if row["data_drive_count"] is not None]

    def widths(self, kind: str) -> list[Item]:
        return [(row["raid_group_id"], row["data_drive_count"]) for row in self.groups(kind)]

    def durations(self, kind: str) -> list[Item]:
        return [(row["raid_group_id"], row["duration_days"]) for row in self.groups(kind)]

    def drives(self, kind: str) -> list[Record]:
        """Drives with a valid drive-hour (OP-10): columns of fct_drive_slowness and dim_drives."""
        return [self.drive[row["drive_id"]] | row for row in self.of_kind("fct_drive_slowness", kind)]

    def by_drive(self, kind: str, column: str, where: Test = lambda row: True) -> list[Item]:
        return [(self.drive_cluster(row["drive_id"]), row[column]) for row in self.drives(kind) if where(row)]

    def ages(self, kind: str) -> list[Item]:
        """Age year of each drive at its first valid hour (5.2); drives of unknown or negative age left out."""
        first = {row["drive_id"]: row for row in sorted(self.drive_hours(kind), key=lambda row: row["hour_utc"], reverse=True)}
        return [(self.drive_cluster(drive), row["age_year"]) for drive, row in first.items() if row["age_year"] is not None]

    def has_cell(self, drive: str, cell: str) -> bool:
        """Population of 5.3: > drives with model information."""
        return self.drive[drive]["model"] is not None and self.drive[drive]["flash_cell"] == cell

    def vendors(self, kind: str, cell: str) -> list[str]:
        """Vendors of that flash cell, most drives first. CHOICE: A is the first, B the second; ties by name."""
        drives = Counter(vendor for _, vendor in self.vendor_drives(kind, cell))
        return sorted(drives, key=lambda vendor: (-drives[vendor], vendor.encode("utf-8")))

    def vendor_drives(self, kind: str, cell: str) -> list[Item]:
        return [item for item in self.by_drive(kind, "vendor", lambda row: self.has_cell(row["drive_id"], cell)) if item[1] is not None]

    def cell_slowdowns(self, kind: str, cell: str) -> list[Item]:
        return self.slowdowns(kind, lambda row: self.has_cell(row["drive_id"], cell))

    def vendor_slowdowns(self, kind: str, cell: str, rank: int) -> list[Item]:
        vendors = self.vendors(kind, cell)
        if len(vendors) < rank:
            return []
        vendor = vendors[rank - 1]
        return self.slowdowns(kind, lambda row: self.has_cell(row["drive_id"], cell) and self.drive[row["drive_id"]]["vendor"] == vendor)

    # ---- intervals, arrivals, episodes

    def intervals(self, kind: str, severity: str) -> list[Record]:
        """Slowdown intervals of a severity; `2x+` = all of threshold 2.0."""
        rows = self.of_kind("fct_slowdown_intervals", kind)
        if severity == "2x+":
            return [row for row in rows if row["threshold"] == 2.0]
        return [row for row in rows if row["severity"] == severity]

    def lengths(self, kind: str) -> list[Item]:
        return [(row["raid_group_id"], row["interval_hours"]) for row in self.intervals(kind, "2x+")]

    def arrivals(self, kind: str) -> list[Item]:
        """Gaps; the cluster is the group of the later slow hour."""
        return [
            (self.group_of_hour[(row["drive_id"], row["hour_utc"])], row["gap_hours"])
            for row in self.of_kind("fct_slowdown_arrivals", kind)
        ]

    def waits(self, kind: str, severity: str) -> list[Item]:
        """Drives with an interval of that severity and the least wait of these intervals, None if never unplugged (6.6).

        CHOICE: wait_hours as the mart gives it, whatever the drive's role was when it was unplugged.
        """
        least: dict[str, int | None] = {}
        for row in self.intervals(kind, severity):
            known = [wait for wait in (least.get(row["drive_id"]), row["wait_hours"]) if wait is not None]
            least[row["drive_id"]] = min(known, default=None)
        return [(self.drive_cluster(drive), wait) for drive, wait in least.items()]

    def episodes(self, kind: str, where: Test = lambda row: True) -> list[tuple[Hashable, Record]]:
        """> The study uses is_in_population only."""
        return [
            (self.event_cluster(row["drive_id"], row["unplugged_at"], "unplug"), row)
            for row in self.of_kind("fct_unplug_episodes", kind)
            if row["is_in_population"] and where(row)
        ]

    def replugs(self, kind: str, severity: str) -> list[tuple[Hashable, Record]]:
        """Episodes whose replug is known, after a slowdown of that severity; `2x+` pools the upper three."""
        wanted = SEVERE if severity == "2x+" else (severity,)
        return self.episodes(kind, lambda row: row["replugged_at"] is not None and row["preceding_severity"] in wanted)

    def recurrences(self, kind: str, severity: str) -> list[Item]:
        return [(cluster, row["recur_hours"]) for cluster, row in self.replugs(kind, severity)]

    def outages(self, kind: str) -> list[Item]:
        """CHOICE: replugged episodes whose outage is known (an implied replug has none)."""
        return [(cluster, row["outage_hours"]) for cluster, row in self.episodes(kind) if row["outage_hours"] is not None]


# --------------------------------------------------------------------------------------------------------------------
# Results by id


def at_least(x: float) -> Test:
    return lambda value: value is not None and value >= x


def below(x: float) -> Test:
    return lambda value: value is not None and value < x


def at_most(x: float) -> Test:
    return lambda value: value is not None and value <= x


def equal(x: float) -> Test:
    return lambda value: value is not None and value == x


def explicit_events(p: Populations, kind: str) -> Estimate:
    """F09-01 (5.1 a): slow drive-hours with an explicit event of the drive within an hour.

    CHOICE: the event's hour is the slow hour, the one before or the one after; events in the population only. Without a slow hour there
    is none to have an event: no value.
    """
    near = {
        (row["drive_id"], floor_hour(row["occurred_at"]) + shift * HOUR)
        for row in p.marts["fct_drive_events"]
        if row["is_in_population"] and row["event_type"] in EXPLICIT_EVENTS
        for shift in (-1, 0, 1)
    }
    slow = [row for row in p.drive_hours(kind) if row["is_slow"]]
    found = sum(1 for row in slow if (row["drive_id"], row["hour_utc"]) in near)
    return Estimate(found, len(slow), float(found) if slow else None, verdict="not comparable")


def events_before_slowdown(p: Populations, kind: str) -> Estimate:
    """F09-02 (5.1 b): not_spinning and not_responding events with a slow hour in their window, over those with a slowdown there."""
    items = [
        (p.event_cluster(row["drive_id"], row["occurred_at"], row["event_type"]), row["slow_within_window"])
        for row in p.of_kind("fct_drive_events", kind)
        if row["is_in_population"] and row["event_type"] in ("not_spinning", "not_responding") and row["slow_within_window"] is not None
    ]
    return share(items, bool)


def not_attributed(p: Populations, kind: str) -> Estimate:
    """F08-01 (4.4): 100 - the greater of the two marginal shares. CHOICE: numbers and interval of that marginal; ties: the rate's."""
    marginals = [items for column in ("rate_imbalance", "size_imbalance") if (items := p.imbalances_of_slow(kind, column))]
    if not marginals:
        return Estimate(0, 0)
    return share(max(marginals, key=lambda items: Fraction(*tally(items, at_least(2))[:2])), below(2))


def age_share(p: Populations, kind: str, years: range, choose: Callable) -> Estimate:
    """The least or greatest share of an age year. CHOICE: a year without drives has share 0; ties: the earliest year."""
    items = p.ages(kind)
    found = Counter(age for _, age in items)
    year = choose(years, key=lambda year: found[year])
    return share(items, equal(year))


def nanoseconds(latency_us: float) -> int:
    """CHOICE: rounded half up to whole nanoseconds; an exact multiple is tested on these."""
    return math.floor(latency_us * 1000 + 0.5)


def is_multiple(latency_us: float, median_us: float, *halves: int) -> bool:
    """Whether latency is one of halves/2 times the median, in whole nanoseconds (3.13)."""
    ours, middle = nanoseconds(latency_us), nanoseconds(median_us)
    return middle > 0 and any(2 * ours == half * middle for half in halves)


def is_exact(row: Record) -> bool:
    """A drive-hour at exactly 1.5, 2 or 3 times the median."""
    return is_multiple(row["latency_us"], row["median_latency_us"], 3, 4, 6)


def exact_tails(p: Populations, kind: str) -> Estimate:
    """VST-01: RAID-hours whose slowest drive is exactly at twice the median."""
    items = [
        (row["raid_group_id"], is_multiple(p.latency[(row["slowest_drive_id"], row["hour_utc"])], row["median_latency_us"], 4))
        for row in p.raid_hours(kind)
    ]
    return share(items, bool)


def exact_slowdowns(p: Populations, kind: str) -> Estimate:
    """VST-02."""
    return share([(row["raid_group_id"], is_exact(row)) for row in p.drive_hours(kind)], bool)


def exact_ticks(p: Populations, kind: str) -> Estimate:
    """VST-03: of those, both latencies multiples of 250 us. CHOICE: a share in percent, though the paper's cell is in microseconds."""
    items = [
        (row["raid_group_id"], all(nanoseconds(row[column]) % TICK_NS == 0 for column in ("latency_us", "median_latency_us")))
        for row in p.drive_hours(kind)
        if is_exact(row)
    ]
    return share(items, bool, verdict="not comparable")


def local_hour(p: Populations, row: Record) -> int:
    """OP-16: the hour of day in the drive's zone, else in UTC."""
    name = p.timezones.get(row["drive_id"])
    if name is None:
        return row["hour_utc"].hour
    return row["hour_utc"].replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(name)).hour


def time_of_day(p: Populations, kind: str) -> Estimate:
    """TOD-01 (5.4): > Uniform when max|slow_rate_h / overall - 1| <= 0.10 and Cramer's V <= 0.02

    CHOICE: value = the greatest deviation, numerator and denominator the overall rate's; hours of day without a drive-hour are left
    out; no data when in one of the others fewer than 10 slow drive-hours are expected.
    """
    totals, slow = Counter(), Counter()
    for row in p.drive_hours(kind):
        hour = local_hour(p, row)
        totals[hour] += 1
        slow[hour] += row["is_slow"]
    n, x = totals.total(), slow.total()
    if x == 0 or x == n:
        return Estimate(x, n, verdict="no data")
    overall = x / n
    deviation = max(abs(slow[hour] / totals[hour] / overall - 1) for hour in totals)
    chi2 = sum((slow[hour] - totals[hour] * overall) ** 2 / (totals[hour] * overall * (1 - overall)) for hour in totals)
    if min(Fraction(totals[hour] * x, n) for hour in totals) < FEWEST_EVENTS:
        return Estimate(x, n, deviation, verdict="no data")
    uniform = deviation <= 0.10 and math.sqrt(chi2 / n) <= 0.02
    return Estimate(x, n, deviation, verdict="agrees" if uniform else "cannot tell")


def kolmogorov_smirnov(one: list[float], two: list[float]) -> float:
    """Greatest distance between the two empirical CDFs where the warehouse counts them: P(V < edge) and P(V <= edge)."""
    one, two = sorted(one), sorted(two)
    whole = {math.floor(value) + above for value in (*one, *two) if value >= 8 for above in (0, 1)}
    return max(
        abs(up_to(one, x) / len(one) - up_to(two, x) / len(two))
        for x in (*BIN_EDGES, *COARSE_EDGES, 8, *whole)
        for up_to in (bisect_left, bisect_right)
    )


def no_correlation(p: Populations, kind: str) -> Estimate:
    """MOD-01 (5.3): > KS distance below 0.01 and slow share within a factor 1.25 of the overall, of every class of capacity, rpm, interface

    CHOICE: value = the greatest KS distance of a class to the other known classes of its attribute; numerator null, denominator the
    drive-hours; classes that expect fewer than 10 slow drive-hours, or are alone, are left out; no data when none is left.
    """
    hours = p.drive_hours(kind)
    slow = slow_hours(p, kind)
    distances, holds = [], []
    for attribute in ("capacity_bytes", "rpm", "interface"):
        classes: dict[Any, list[float]] = defaultdict(list)
        for row in hours:
            classes[p.drive[row["drive_id"]][attribute]].append(row["slowdown"])
        classes.pop(None, None)
        for name, values in classes.items():
            rest = [value for other, others in classes.items() if other != name for value in others]
            if not rest or Fraction(len(values) * slow, len(hours)) < FEWEST_EVENTS:
                continue
            distances.append(kolmogorov_smirnov(values, rest))
            factor = sum(1 for value in values if value >= 2) / len(values) / (slow / len(hours))
            holds.append(distances[-1] < 0.01 and 1 / WITHIN <= factor <= WITHIN)
    if not distances:
        return Estimate(None, len(hours), verdict="no data")
    return Estimate(None, len(hours), max(distances), verdict="agrees" if all(holds) else "cannot tell")


def raid_level(p: Populations, kind: str, level: str) -> Estimate:
    """TXT-010..012. CHOICE: groups with a valid RAID-hour and a known level; its text in small letters and digits is `raidN`."""
    levels = [(row["raid_group_id"], row["raid_level"]) for row in p.groups(kind) if row["raid_level"] is not None]
    return share(levels, lambda text: re.sub(r"[^a-z0-9]", "", text.lower()) == level)


def mean_duration(p: Populations, kind: str) -> Estimate:
    days = [value for _, value in p.durations(kind)]
    return statistic(math.fsum(days) / len(days) if days else None, len(days))


def whole_days(p: Populations, kind: str, choose: Callable) -> Estimate:
    """> rounded up to whole days (minimum 1) only where Table 1 prints it"""
    days = [value for _, value in p.durations(kind)]
    return statistic(float(max(1, math.ceil(choose(days)))) if days else None, len(days))


def width(p: Populations, kind: str, choose: Callable) -> Estimate:
    """CHOICE: of the groups' modal N (OP-12)."""
    widths = [value for _, value in p.widths(kind)]
    return statistic(float(choose(widths)) if widths else None, len(widths))


def digits(p: Populations, kind: str, low: float, high: float) -> Estimate:
    return count(sum(1 for row in p.drive_hours(kind) if low <= row["slowdown"] < high))


def slow_hours(p: Populations, kind: str) -> int:
    return sum(row["is_slow"] for row in p.drive_hours(kind))


def vendor_share(p: Populations, kind: str, rank: int) -> Estimate:
    """F12-01, -02. Without a second vendor there is no data."""
    vendors = p.vendors(kind, "MLC")
    return share(p.vendor_drives(kind, "MLC"), equal(vendors[rank - 1])) if len(vendors) >= rank else Estimate(0, 0)


def cell_share(p: Populations, kind: str, cell: str) -> Estimate:
    """CHOICE: over SSDs with a model, whatever else is in their flash_cell."""
    return share(p.by_drive(kind, "flash_cell", lambda row: row["model"] is not None), equal(cell))


def is_acute(row: Record) -> bool:
    return row["is_acute"]


Measure = Callable[[Populations, str], Estimate]


def _each(ids: str, measure: Measure) -> dict[str, Measure]:
    return dict.fromkeys(ids.split(), measure)


MEASURES: dict[str, Measure] = {
    **_each("T1-01 T1-02 TXT-006 TXT-007", lambda p, kind: count(len(p.groups(kind)))),
    **_each("T1-03 T1-05 TXT-014", lambda p, kind: width(p, kind, min)),
    **_each("T1-04 T1-06 TXT-015", lambda p, kind: width(p, kind, max)),
    **_each("T1-07 T1-08 TXT-001 TXT-002", lambda p, kind: count(len(p.drives(kind)))),
    **_each("T1-09 T1-11", lambda p, kind: whole_days(p, kind, min)),
    **_each("T1-10 T1-12", lambda p, kind: whole_days(p, kind, max)),
    **_each("T1-13 T1-14 TXT-004 TXT-005", lambda p, kind: count(len(p.drive_hours(kind)))),
    **_each("T1-15 T1-16", lambda p, kind: count(slow_hours(p, kind))),
    **_each("T1-17 T1-18 F01-01 F01-02 F01-14 F01-15", lambda p, kind: share(p.slowdowns(kind), at_least(2))),
    **_each("T1-19 T1-20 TXT-008 TXT-009", lambda p, kind: count(len(p.raid_hours(kind)))),
    **_each("T1-21 T1-22", lambda p, kind: count(sum(row["is_tail_hour"] for row in p.raid_hours(kind)))),
    **_each("T1-23 T1-24 F02-01 F02-02 F02-07 F02-08 F03-01 F03-04", lambda p, kind: share(p.tails(kind, 1), at_least(2))),
    **_each("TXT-003", mean_duration),
    **_each("TXT-010", lambda p, kind: raid_level(p, kind, "raid6")),
    **_each("TXT-011", lambda p, kind: raid_level(p, kind, "raid0")),
    **_each("TXT-012", lambda p, kind: raid_level(p, kind, "raid4")),
    **_each("DRV-01 DRV-02", lambda p, kind: quotient(len(p.drive_hours(kind)), len(p.raid_hours(kind)))),
    **_each("DRV-03 DRV-04", lambda p, kind: quotient(len(p.drives(kind)), len(p.groups(kind)))),
    **_each("DRV-05 DRV-06", lambda p, kind: quotient(len(p.drive_hours(kind)), len(p.drives(kind)), 24.0)),
    **_each("DRV-07 DRV-08", lambda p, kind: quotient(slow_hours(p, kind), len(p.by_drive(kind, "is_acute", is_acute)))),
    **_each("F01-03 F01-04", lambda p, kind: share(p.slowdowns(kind), below(2))),
    **_each("F01-05 F01-06", lambda p, kind: share(p.slowdowns(kind), below(1.5))),
    **_each("F01-07 F01-08", lambda p, kind: share(p.slowdowns(kind), at_least(1.5))),
    **_each("F01-09", lambda p, kind: percentile(p.slowdowns(kind), "0.9999")),
    **_each("F01-10", lambda p, kind: percentile(p.slowdowns(kind), "0.99999")),
    **_each("F01-11 F01-13", lambda p, kind: digits(p, kind, 100, 1000)),
    **_each("F01-12", lambda p, kind: digits(p, kind, 1000, 10000)),
    **_each("F02-03 F02-04", lambda p, kind: share(p.tails(kind, 1), below(1.5))),
    **_each("F02-05 F02-06", lambda p, kind: share(p.tails(kind, 1), at_least(1.5))),
    **_each("F03-02 F03-05", lambda p, kind: share(p.tails(kind, 2), at_least(2))),
    **_each("F03-03 F03-06", lambda p, kind: share(p.tails(kind, 3), at_least(2))),
    **_each("VST-01", exact_tails),
    **_each("VST-02", exact_slowdowns),
    **_each("VST-03", exact_ticks),
    # 3.12: INT-01 reads "slow disks", but only the intervals' grain meets the curve
    **_each("F04-01 F04-02 INT-01 INT-02", lambda p, kind: share(p.lengths(kind), at_least(2))),
    **_each("F04-03 F04-04", lambda p, kind: share(p.lengths(kind), at_least(8))),
    # 3.15: "within the same day": t2 - t1 <= 24, a gap of at most 23
    **_each("F05-01 F05-02 INT-03 INT-04", lambda p, kind: share(p.arrivals(kind), at_most(DAY_HOURS - 1))),
    **_each("F06-01 F06-02", lambda p, kind: share(p.by_drive(kind, "max_slowdown"), at_least(2))),
    **_each("F06-03 F06-04", lambda p, kind: share(p.by_drive(kind, "max_slowdown"), at_least(16))),
    **_each("F07-01 F07-02", lambda p, kind: share(p.by_drive(kind, "slow_hours", is_acute), at_least(100))),
    **_each("F07-03 F07-04", lambda p, kind: share(p.by_drive(kind, "slow_hours", is_acute), below(5))),
    **_each("F08-01", not_attributed),
    **_each("F08-02", lambda p, kind: share(p.imbalances_of_slow(kind, "rate_imbalance"), at_least(2))),
    **_each("F08-03", lambda p, kind: share(p.imbalances_of_slow(kind, "rate_imbalance"), below(2))),
    **_each("F08-04 F08-05", lambda p, kind: share(p.slowdowns_of_imbalanced(kind, "rate_imbalance"), at_least(2))),
    **_each("F08-06 F08-07", lambda p, kind: share(p.imbalances_of_slow(kind, "size_imbalance"), at_least(2))),
    **_each("F08-08 F08-09", lambda p, kind: share(p.slowdowns_of_imbalanced(kind, "size_imbalance"), at_least(2))),
    **_each("F09-01", explicit_events),
    **_each("F09-02", events_before_slowdown),
    **_each("F10-01", lambda p, kind: age_share(p, kind, range(6, 11), min)),
    **_each("F10-02", lambda p, kind: age_share(p, kind, range(6, 11), max)),
    **_each("F10-03", lambda p, kind: age_share(p, kind, range(1, 6), min)),
    **_each("F10-04", lambda p, kind: age_share(p, kind, range(1, 6), max)),
    **_each("F10-05", lambda p, kind: percentile(p.slowdowns(kind, lambda row: row["age_year"] == 8), "0.95")),
    **_each("F10-06", lambda p, kind: share(p.ages(kind), equal(9))),
    **_each("F10-07", lambda p, kind: share(p.ages(kind), lambda age: age in (3, 4))),
    **_each("F10-08", lambda p, kind: share(p.ages(kind), lambda age: age in (1, 2))),
    **_each("F11-01", lambda p, kind: share(p.cell_slowdowns(kind, "MLC"), below(1.5))),
    **_each("F11-02", lambda p, kind: share(p.cell_slowdowns(kind, "SLC"), below(1.5))),
    **_each("F11-03", lambda p, kind: difference(p.cell_slowdowns(kind, "SLC"), p.cell_slowdowns(kind, "MLC"), below(2))),
    **_each("F11-04 F11-05", lambda p, kind: share(p.by_drive(kind, "model"), lambda model: model is not None)),
    **_each("F11-06", lambda p, kind: cell_share(p, kind, "SLC")),
    **_each("F11-07", lambda p, kind: cell_share(p, kind, "MLC")),
    **_each("F11-08", lambda p, kind: count(len(p.vendors(kind, "SLC")))),
    **_each("F11-09", lambda p, kind: count(len(p.vendors(kind, "MLC")))),
    **_each("F12-01", lambda p, kind: vendor_share(p, kind, 1)),
    **_each("F12-02", lambda p, kind: vendor_share(p, kind, 2)),
    **_each("F12-03", lambda p, kind: share(p.vendor_slowdowns(kind, "MLC", 2), below(1.5))),
    **_each("TOD-01", time_of_day),
    **_each("MOD-01", no_correlation),
    **_each("F13-01", lambda p, kind: share(p.degradations(kind, "stable_to_stable"), at_least(2))),
    **_each(
        "F13-02 F13-03",
        lambda p, kind: difference(p.degradations(kind, "stable_to_tail"), p.degradations(kind, "stable_to_stable"), at_least(2)),
    ),
    **_each("F14-01 F14-02", lambda p, kind: share(p.waits(kind, "2x+"), at_most(DAY_HOURS))),
    **_each("F14-03 F14-04", lambda p, kind: share(p.waits(kind, "1.5-2x"), at_most(DAY_HOURS))),
    **_each("F15-01 F15-02", lambda p, kind: share(p.episodes(kind), lambda row: row["is_replugged"])),
    **_each("F15-03 F15-04", lambda p, kind: share(p.recurrences(kind, "2x+"), at_most(DAY_HOURS))),
    **_each("UPD-01 UPD-03", lambda p, kind: share(p.outages(kind), at_most(2))),
    **_each("UPD-02 UPD-04", lambda p, kind: share(p.outages(kind), at_most(10))),
}

TRANSITIONS = {"stable": "stable_to_stable", "tail": "stable_to_tail"}


def tail_or_slowdown(p: Populations, kind: str, name: str) -> list[Item]:
    return p.slowdowns(kind) if name == "Si" else p.tails(kind, int(name[1]))


def of_age(p: Populations, kind: str, year: int) -> list[Item]:
    return p.slowdowns(kind, lambda row: row["age_year"] == year)


def of_cell(p: Populations, kind: str, name: str) -> list[Item]:
    """Figure 9: SLC, MLC, MLCA (the vendor of most MLC drives), MLCB (of second most)."""
    return p.cell_slowdowns(kind, name) if name in ("SLC", "MLC") else p.vendor_slowdowns(kind, "MLC", "AB".index(name[3]) + 1)


QUANTILES = {"90th": "0.90", "95th": "0.95", "99th": "0.99", "99.9th": "0.999", "99.99th": "0.9999", "99.999th": "0.99999"}


def table_3a(p: Populations, kind: str, metric: str) -> Estimate:
    """`Table 3a: slowdown S_i at the 90th percentile; ...`"""
    name, q = re.search(r"(S_i|T1) at the (\S+) percentile", metric).groups()
    return percentile(tail_or_slowdown(p, kind, name.replace("_", "")), QUANTILES[q])


def table_3b(p: Populations, kind: str, metric: str) -> Estimate:
    """`Table 3b: percentile reached at S_i = 1.2x; ...` CHOICE: T3B-07 too is P(T1 < 2), as PI-01 compares."""
    name, x = re.search(r"reached at (S_i|T1) = ([0-9.]+)x", metric).groups()
    return share(tail_or_slowdown(p, kind, name.replace("_", "")), below(float(x)))


def duration_percentile(p: Populations, kind: str, q: str) -> Estimate:
    """Figure 2b: > durations of the paper's own data set"""
    days = sorted(value for _, value in p.durations(kind))
    return statistic(nearest_rank(days, q), len(days))


BUCKET = r"(1\.5-2x|2-4x|4-8x|8x\+|2x\+)"
NUMBER = r"([0-9.]+)"
FAMILIES: list[tuple[str, Callable[..., Estimate]]] = [
    (r"F2A-\w+-GT8", lambda p, kind: share(p.widths(kind), lambda n: n > 8)),
    (rf"F2A-\w+-{NUMBER}", lambda p, kind, n: share(p.widths(kind), at_most(int(n)))),
    (rf"F2B-\w+-P{NUMBER}", lambda p, kind, q: duration_percentile(p, kind, str(Decimal(q) / 100))),
    (rf"F4[AB]-(Si|T\d)-{NUMBER}", lambda p, kind, name, x: share(tail_or_slowdown(p, kind, name), below(float(x)))),
    (rf"F4[AB]-(Si|T\d)-{NUMBER}EQ", lambda p, kind, name, x: share(tail_or_slowdown(p, kind, name), equal(float(x)))),
    (rf"F5A-\w+-{NUMBER}", lambda p, kind, n: share(p.lengths(kind), at_most(int(n)))),
    (rf"F5B-\w+-{NUMBER}", lambda p, kind, n: share(p.arrivals(kind), at_most(int(n)))),
    (rf"F6A-\w+-{NUMBER}", lambda p, kind, x: share(p.by_drive(kind, "max_slowdown"), at_least(float(x)))),
    (rf"F6B-\w+-{NUMBER}", lambda p, kind, n: share(p.by_drive(kind, "slow_hours", is_acute), at_most(int(n)))),
    (rf"F7A-\w+-{NUMBER}", lambda p, kind, x: share(p.imbalances_of_slow(kind, "rate_imbalance"), below(float(x)))),
    (rf"F7B-\w+-{NUMBER}", lambda p, kind, x: share(p.slowdowns_of_imbalanced(kind, "rate_imbalance"), below(float(x)))),
    (rf"F7C-\w+-{NUMBER}", lambda p, kind, x: share(p.imbalances_of_slow(kind, "size_imbalance"), below(float(x)))),
    (rf"F7D-\w+-{NUMBER}", lambda p, kind, x: share(p.slowdowns_of_imbalanced(kind, "size_imbalance"), below(float(x)))),
    (rf"F8[AB]-Y(\d+)-P{NUMBER}", lambda p, kind, year, q: percentile(of_age(p, kind, int(year)), str(Decimal(q) / 100))),
    (rf"F8[AB]-Y(\d+)-{NUMBER}", lambda p, kind, year, x: share(of_age(p, kind, int(year)), below(float(x)))),
    (rf"FG9-(\w+)-{NUMBER}", lambda p, kind, name, x: share(of_cell(p, kind, name), at_most(float(x)))),
    (rf"F10[AB]-(\w+)-{NUMBER}", lambda p, kind, name, x: share(p.degradations(kind, TRANSITIONS[name]), below(float(x)))),
    (rf"F11[AB]-{BUCKET}-(\d+)", lambda p, kind, bucket, n: share(p.waits(kind, bucket), at_most(int(n)))),
    (rf"F11[CD]-{BUCKET}-(\d+)", lambda p, kind, bucket, n: share(p.recurrences(kind, bucket), at_most(int(n)))),
]


def estimate(p: Populations, reference: Reference, kind: str) -> Estimate:
    """This fleet's number for a reference; definitions, anecdotes and lists have none."""
    if reference.id in MEASURES:
        return MEASURES[reference.id](p, kind)
    if reference.id.startswith("T3A-"):
        return table_3a(p, kind, reference.metric)
    if reference.id.startswith("T3B-"):
        return table_3b(p, kind, reference.metric)
    for pattern, measure in FAMILIES:
        found = re.fullmatch(pattern, reference.id)
        if found:
            return measure(p, kind, *found.groups())
    return NOT_COMPARABLE


def study_results(p: Populations, references: Iterable[Reference]) -> list[Record]:
    """> A reference of subject `both` gives a row per kind."""
    result = []
    for reference in references:
        if not is_in_scope(reference.id):
            continue
        for kind in KINDS if reference.subject == "both" else (reference.subject,):
            found = estimate(p, reference, kind)
            numbers = {column: getattr(found, column) for column in ("numerator", "denominator", "value", "ci_low", "ci_high")}
            result.append({"id": reference.id, "kind": kind, **numbers, "verdict": verdict(reference, found)})
    return result


# --------------------------------------------------------------------------------------------------------------------
# Curves


@dataclass(frozen=True)
class Curve:
    """The CDF of a population; `values` sorted, without those that never happened, who stay in the population."""

    kind: str
    values: list[float]
    population: int

    def y(self, x: float) -> float | None:
        """> y = P(V <= x)"""
        return bisect_right(self.values, x) / self.population if self.population else None

    def y_left(self, x: float) -> float | None:
        """> y_left = P(V < x)"""
        return bisect_left(self.values, x) / self.population if self.population else None

    def row(self, figure: str, name: str, x: float) -> Record:
        """A row of study_curves."""
        at = {"figure": figure, "curve": name, "x": x, "kind": self.kind}
        return {**at, "y": self.y(x), "y_left": self.y_left(x), "population": self.population}


def curve(kind: str, items: list[Item]) -> Curve:
    return Curve(kind, sorted(value for _, value in items if value is not None), len(items))


BUCKETS = {"disk": ("1.5-2x", *SEVERE), "ssd": ("1.5-2x", "2x+")}
SHOWN = {"disk": "Disk", "ssd": "SSD"}


def study_curves(p: Populations) -> dict[tuple[str, str], Curve]:
    """Every curve of figures 2 to 11 by (figure, name). Figure 6a's population is the drive's greatest slowdown, its y P(V <= x) too."""
    result: dict[tuple[str, str], Curve] = {}
    for kind in KINDS:
        by_kind = {
            "2a": p.widths(kind),
            "2b": p.durations(kind),
            # metrics 3.12: the axis is hours_until_stable
            "5a": [(cluster, hours + 1) for cluster, hours in p.lengths(kind)],
            "5b": p.arrivals(kind),
            "6a": p.by_drive(kind, "max_slowdown"),
            "6b": p.by_drive(kind, "slow_hours", is_acute),
            "7a": p.imbalances_of_slow(kind, "rate_imbalance"),
            "7b": p.slowdowns_of_imbalanced(kind, "rate_imbalance"),
            "7c": p.imbalances_of_slow(kind, "size_imbalance"),
            "7d": p.slowdowns_of_imbalanced(kind, "size_imbalance"),
        }
        result |= {(figure, SHOWN[kind]): curve(kind, items) for figure, items in by_kind.items()}
        half = "ab"[KINDS.index(kind)]
        result |= {(f"4{half}", name): curve(kind, tail_or_slowdown(p, kind, name)) for name in ("Si", "T1", "T2", "T3")}
        years = range(1, 11 if kind == "disk" else 5)
        result |= {(f"8{half}", str(year)): curve(kind, of_age(p, kind, year)) for year in years}
        for transition in TRANSITIONS.values():
            result[(f"10{half}", transition.replace("_", "-"))] = curve(kind, p.degradations(kind, transition))
        for bucket in BUCKETS[kind]:
            result[(f"11{half}", bucket)] = curve(kind, p.waits(kind, bucket))
            result[(f"11{'cd'[KINDS.index(kind)]}", bucket)] = curve(kind, p.recurrences(kind, bucket))
    for name, shown in (("SLC", "SLC"), ("MLC", "MLC"), ("MLCA", "MLC (Vendor A)"), ("MLCB", "MLC (Vendor B)")):
        result[("9", shown)] = curve("ssd", of_cell(p, "ssd", name))
    return result


def curve_rows(curves: Mapping[tuple[str, str], Curve]) -> list[Record]:
    """The rows of study_curves at every value of a population; a published file may have other x."""
    return [found.row(*name, float(x)) for name, found in curves.items() for x in sorted(set(found.values))]


# --------------------------------------------------------------------------------------------------------------------


class Study(NamedTuple):
    """The study's relations: results by (id, kind), curves by (figure, curve)."""

    results: list[Record]
    curves: dict[tuple[str, str], Curve]


def study(marts: Marts, references: Iterable[Reference], timezones: Mapping[str, str | None] | None = None) -> Study:
    """The study of what `reference.compute()` returns. Figure 12 and ToleRAID are left out."""
    p = Populations(marts, timezones)
    return Study(study_results(p, references), study_curves(p))

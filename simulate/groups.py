"""The fleet's make-up: RAID groups, the drives in their slots, and their inventory.

Times are hours since the start of the simulated span (real numbers; negative = before it).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from ingest.contract.fleet import CONTRACT
from simulate.parameters import Kind, KindParameters
from simulate.streams import LEVELLED, Dealer, Purpose, Trait, normal, stream

Floats = npt.NDArray[np.float64]

FAR_PAST, FAR_FUTURE = -math.inf, math.inf
HOURS_PER_YEAR = 24 * 365.25
SPARE_SHARE = 0.25
DOUBLE_PARITY_SHARE = 0.95
MIXED_MODEL_SHARE = 0.06
"""Share of drives of another family than their group's."""
LEAST_EXTRA_SIZE = 1.1
LARGEST_EXTRA_SIZE = 40.0
NOISE_OF_HAZARD: dict[Kind, float] = {"disk": 0.0, "ssd": 0.25}
"""The hourly latency noise grows as what age does to the rates of slowness, to this power."""
NOISE_PER_OLD_YEAR: dict[Kind, float] = {"disk": 0.25, "ssd": 0.0}
"""And by this for every year beyond the fourth (ratio)."""
OLDEST_YEARS = {"disk": 9.9, "ssd": 3.95}
WIDEST: dict[Kind, int] = {"disk": 26, "ssd": 22}
"""Data drives of the widest group; the narrowest has 3."""
CAMPAIGN_HOURS = 2108
"""Most groups' records are collected for this long, or for some whole days more: one campaign of 87.8 days."""
AGE_AHEAD: dict[Kind, float] = {"disk": 0.0, "ssd": 0.12}
"""A drive behaves as it does at this many years more than at the start: SSDs as in the middle of the campaign."""
SHORT_OBSERVATION_SHARE: dict[Kind, float] = {"disk": 0.17, "ssd": 0.2}
"""Share of groups whose records are collected for less, by any part of it."""
DEPLOYMENT_SEASON: dict[Kind, float] = {"disk": 0.74, "ssd": 1.0}
"""The part of a year, before the season of the span, in which drives are deployed: few disks change their year within a span."""
OBSERVATION_SHARES: dict[Kind, tuple[float, ...]] = {"disk": (0.48, 0.415), "ssd": (0.46, 0.42)}
"""Share of the other groups whose records are collected for the campaign, and for a day more."""
LATEST_DAYS = 5
"""Whole days by which a group's records may be collected longer."""
CLOSED_LOOP_SHARE: dict[Kind, float] = {"disk": 0.25, "ssd": 0.55}
"""Share of groups whose clients wait for the slowest drive."""
RATE_SIGMA = 1.15
"""Log spread over groups of their drives' I/O rate."""
BASE_LATENCY_US: dict[Kind, float] = {"disk": 7500.0, "ssd": 550.0}
"""Median latency of an unloaded drive, microseconds. No ratio shows it."""
COARSE_TIMER_GROUP_SHARE: dict[Kind, float] = {"disk": 0.01, "ssd": 0.025}
"""Groups that report latencies as whole timer ticks."""
AILING_SPREAD: dict[Kind, float] = {"disk": 0.6, "ssd": 0.0}
"""The episode rate of ailing drives grows as their rank among these falls, to this power."""
PATH_SPREAD: dict[Kind, float] = {"disk": 0.35, "ssd": 0.0}
"""The same of the rate of slow spells of weak paths."""
BASE_LATENCY_SIGMA = 0.2
"""Log spread over groups of the latency of an unloaded drive."""
LATENCY_SIGMA_PER_YEAR = 0.003
"""The drives of a group differ the more the older they are (log spread of latency per year)."""
FAIL_SLOW_SIGMA = 0.25
"""Log spread of the extra latency of a drive that is mildly slow for good."""
PARITY, SUCCESSOR = 1000, 4000
"""Parity drives and drives that replaced another are strata of their own: what the others are dealt does not depend on them."""
SHARED_WIDTHS: dict[Kind, tuple[float, float]] = {"disk": (12.0, 0.0), "ssd": (7.0, 5.0)}
"""More drives have more paths: a group's chance of a weak one goes by its width over the first, to the second power."""
COARSE_LATENCY_US = 500.0
"""Unloaded latency of a group with a coarse timer: two ticks, or the ticks would not be seen (disks: streams out of their caches)."""
NARROWEST_PATH: dict[Kind, int] = {"disk": 3, "ssd": 5}
"""Two drives of a narrower SSD group would be half of it."""
UNKNOWN_MODEL_YEARS = 0.7
"""SSDs of unknown model are at most this old: the first year is the slowest by far, and no figure by model has its slow hours."""
STEADY_YEAR = 3
"""In this year of age SSDs differ least from each other."""
PATH_OF_FAMILY = 0.75
"""Paths to drives of a slow family are slow as its rate of episodes to this power."""
COARSE_NOISE = 0.5
"""Latency noise of a group with a coarse timer (ratio to an ordinary group's)."""
COARSE_HAZARD: dict[Kind, float] = {"disk": 1.0, "ssd": 0.1}
"""Its rate of episodes (ratio)."""
IDLE_GROUP_SHARE: dict[Kind, float] = {"disk": 1.0, "ssd": 0.016}
"""Share of groups that are ever idle: the others' clients never sleep."""
LARGE_IO_NOISE: dict[Kind, float] = {"disk": 0.27, "ssd": 0.4}
"""Hourly latency noise of a group whose clients send large I/Os to some drives (ratio to an ordinary group's)."""
LARGE_IO_HAZARD: dict[Kind, float] = {"disk": 1.0, "ssd": 0.5}
"""Rate of episodes of the drive that serves large I/Os (ratio to its group's)."""
LEAST_RANK = 0.005
"""The most ailing of the ailing drives are those of this rank (0..1)."""
LARGE_IO_NOISE_SIGMA: dict[Kind, float] = {"disk": 2.0, "ssd": 0.0}
"""Log spread over such groups of that noise."""
LARGE = 9000
"""Groups of large I/Os are a stratum of their own."""
NOISIEST: dict[Kind, float] = {"disk": 7.5, "ssd": math.inf}
"""No group's hourly latency noise is more than this times the median group's."""
NOISIEST_LARGE_IO = 100.0
"""The same for groups of large I/Os. Without it, one group in 4,000 has latencies of 100 s and more, up to 1e37 us."""
SWAPPED_SHARE: dict[Kind, float] = {"disk": 1 / 30, "ssd": 1 / 12}
"""Drives swapped in at some time since the group was built."""
LARGE_IO_DRIVE_SHARE: dict[Kind, float] = {"disk": 0.35, "ssd": 0.15}
"""In a group whose clients send large I/Os to some drives, this share of them; at half, the median would move along."""


@dataclass(frozen=True)
class Family:
    """A drive model as inventory names it. `speed` multiplies the kind's base latency."""

    vendor: str
    model: str
    capacity_bytes: int
    interface: str
    speed: float
    share: float  # of the groups of the kind
    rpm: int | None = None
    flash_cell: str | None = None


CATALOGUE: dict[Kind, tuple[Family, ...]] = {
    "disk": (
        Family("Northgate", "NG-E3000", 3_000_000_000_000, "SATA", 1.10, 0.34, rpm=7200),
        Family("Northgate", "NG-P600", 600_000_000_000, "SAS", 0.75, 0.28, rpm=15000),
        Family("Calder", "CD-900S", 900_000_000_000, "SAS", 0.85, 0.22, rpm=10000),
        Family("Calder", "CD-1000N", 1_000_000_000_000, "FC", 1.15, 0.16, rpm=7200),
    ),
    # one SLC vendor, two MLC vendors of which the second is small, as in section 4.3.3 of the paper
    "ssd": (
        Family("Avocet", "AV-100S", 100_000_000_000, "SAS", 0.9, 0.38, flash_cell="SLC"),
        Family("Avocet", "AV-200S", 200_000_000_000, "SAS", 0.95, 0.22, flash_cell="SLC"),
        Family("Calder", "CD-400M", 400_000_000_000, "SAS", 1.05, 0.36, flash_cell="MLC"),
        Family("Brink", "BR-800M", 800_000_000_000, "SATA", 1.2, 0.04, flash_cell="MLC"),
    ),
}
# the load follows the site's winter offset from UTC all year: a shift of an hour in summer would show nowhere
SITES: tuple[tuple[str, str, int], ...] = (
    ("ams1", "Europe/Amsterdam", 1),
    ("iad1", "America/New_York", -5),
    ("pdx2", "America/Los_Angeles", -8),
    ("sin1", "Asia/Singapore", 8),
    ("syd1", "Australia/Sydney", 10),
)


@dataclass
class Member:
    """One drive in one slot of a group for a while: an inventory period, and a column of the telemetry."""

    drive_id: str
    slot: int
    role: str
    family: int
    firmware: str
    deployed_on: date
    active_from: float
    active_to: float
    latency_factor: float  # against the group's base latency, for life
    io_size_factor: float  # against the group's I/O size
    rate_share: float  # against an even share of the group's I/Os
    noise_factor: float
    fail_slow_excess: float  # extra latency for good; 0 for nearly every drive
    frailty: float  # own multiplier of the episode rate: 1 unless it ails
    hazard_per_hour: float  # rate of first episodes, everything included
    severity_exponent: float
    stratum: int  # whose share of episodes it has
    outages: list[tuple[float, float]] = field(default_factory=list)
    is_listed: bool = True  # false: inventory forgot it
    is_replacement: bool = False


@dataclass
class Group:
    """One RAID group and what is fixed about it."""

    raid_group_id: str
    kind: Kind
    ordinal: int  # in the order in which they are dealt to; its streams go by it
    place: int  # in the fleet; its names go by it
    data_width: int
    has_double_parity: bool
    site: int
    host: str
    family: int
    is_model_known: bool
    is_age_known: bool
    deployed_on: date
    joined_at: float
    left_at: float  # its records end here
    base_latency_us: float
    is_coarse: bool
    is_closed_loop: bool
    is_ever_idle: bool
    is_striped: bool  # its clients ask for whole stripes
    rate_factor: float  # its drives' I/O rate over the kind's median
    standing: float  # what its kind of use and of inventory record do to the rates of slowness (ratio)
    shared_hazard_per_hour: float  # rate of slow spells of a path that several of its drives share
    severity_exponent: float
    stratum: int  # whose share of slow spells it has
    members: list[Member] = field(default_factory=list)
    spare_id: str | None = None

    @property
    def utc_offset_hours(self) -> int:
        """Local time less UTC."""
        return SITES[self.site][2]


def make_group(kind: Kind, ordinal: int, place: int, p: KindParameters, dealer: Dealer, start: datetime, hours: int) -> Group:
    """The next group of `kind` that is dealt to, with its first drives, as it stands when the span begins (or when it joins)."""
    rng = stream(dealer.seed, kind, ordinal, Purpose.INVENTORY)

    def chance(trait: Trait, share: float, stratum: int = 0) -> bool:
        return dealer.deal(trait, stratum)[0] < share

    # the widest SSD groups are those whose inventory names no model, and some not even an age: in the paper most slow SSD hours
    # are in no figure by model, and as many groups with three slow drives at a time as it counts need more drives than most have
    width_u, record_u = dealer.deal(Trait.WIDTH)[0], dealer.deal(Trait.RECORD)[0]
    if kind == "ssd":
        record_u = width_u
    width = _width(width_u, p, WIDEST[kind])
    is_model_known = record_u < 1 - p.unknown_model_share
    is_age_known = record_u < 1 - p.unknown_age_share
    # groups with such timers are among those of no known model: the steps they make are in no figure by model
    is_coarse = 0 <= record_u - (1 - p.unknown_model_share) < COARSE_TIMER_GROUP_SHARE[kind]
    family = _family(kind, dealer.deal(Trait.FAMILY, is_model_known)[0])
    if kind in LEVELLED:
        age_u = dealer.level(Trait.AGE, int(is_age_known), width)
    else:
        age_u = dealer.deal(Trait.AGE, 2 * is_age_known + is_model_known)[0]
    years = _years(age_u, p, OLDEST_YEARS[kind], DEPLOYMENT_SEASON[kind])
    if kind == "ssd" and not is_model_known:
        years = years % 1.0 * UNKNOWN_MODEL_YEARS
    stratum = _stratum(kind, years, family, is_model_known, is_age_known)
    joined_at, left_at = _observation(dealer.deal(Trait.OBSERVATION, 0, 2), float(rng.random()), kind, hours)
    # most hours with several slow SSDs are of groups whose inventory names no model
    typical, power = SHARED_WIDTHS[kind]
    path_share, path_u = p.shared_group_share * (width / typical) ** power, dealer.deal(Trait.SHARED_PATH, stratum)[0]
    has_weak_path = (path_u < path_share and width >= NARROWEST_PATH[kind]) or (kind == "ssd" and not is_model_known)
    weakness = max(path_u / path_share, LEAST_RANK) ** -PATH_SPREAD[kind] if has_weak_path else 0.0
    # in the paper next to no hour of large I/Os is slow: not where most slow hours are
    is_ever_idle = chance(Trait.IDLE, IDLE_GROUP_SHARE[kind])
    wants_large_io = chance(Trait.LARGE_IO, p.large_io_group_share, is_model_known)
    has_large_io = wants_large_io and (kind == "disk" or (is_model_known and not has_weak_path and not is_ever_idle))
    standing = (p.large_io_hazard if has_large_io else 1.0) * (COARSE_HAZARD[kind] if is_coarse else 1.0)
    # groups whose inventory says how old they are, or of what model, differ from the others in the paper: their years are
    # slower than the whole fleet
    ageing, exponent = _ageing(p, years + AGE_AHEAD[kind], is_age_known)
    group_hazard = standing * ageing
    striped_u = dealer.level(Trait.STRIPED, 0, group_hazard * (weakness + 1) * width) if kind in LEVELLED else None
    group = Group(
        raid_group_id=f"{kind}-g{place:06d}",
        kind=kind,
        ordinal=ordinal,
        place=place,
        data_width=width,
        has_double_parity=bool(rng.random() < DOUBLE_PARITY_SHARE),
        site=int(rng.integers(len(SITES))),
        host="",
        family=family,
        is_model_known=is_model_known,
        is_age_known=is_age_known,
        deployed_on=(start - timedelta(days=years * 365.25)).date(),
        joined_at=joined_at,
        left_at=left_at,
        base_latency_us=BASE_LATENCY_US[kind] * CATALOGUE[kind][family].speed * math.exp(BASE_LATENCY_SIGMA * rng.standard_normal()),
        is_coarse=is_coarse,
        is_closed_loop=chance(Trait.CLOSED_LOOP, CLOSED_LOOP_SHARE[kind]),
        is_ever_idle=is_ever_idle,
        is_striped=chance(Trait.STRIPED, p.striped_group_share, stratum) if striped_u is None else striped_u < p.striped_group_share,
        rate_factor=math.exp(RATE_SIGMA * normal(dealer.deal(Trait.RATE)[0])),
        standing=standing,
        shared_hazard_per_hour=p.shared_rate_per_group_year
        / HOURS_PER_YEAR
        * group_hazard
        # their drives are as others are, their paths are worse
        * (1.0 if is_model_known or is_coarse else math.prod(p.unknown_model_hazard))
        * weakness
        * _of_family(p.family_hazards if is_model_known else (), family) ** PATH_OF_FAMILY,
        severity_exponent=p.severity_exponent * exponent,
        stratum=stratum,
    )
    if group.is_coarse:
        group.base_latency_us = COARSE_LATENCY_US
    group.host = f"{SITES[group.site][0]}-{kind}-h{place // 4:05d}"
    # clients that read and write large pieces have steady drives
    noise = (
        min(LARGE_IO_NOISE[kind] * math.exp(LARGE_IO_NOISE_SIGMA[kind] * normal(dealer.deal(Trait.NOISE, LARGE)[0])), NOISIEST_LARGE_IO)
        if has_large_io
        else min(math.exp(p.hour_latency_group_sigma * normal(dealer.deal(Trait.NOISE, stratum)[0])), NOISIEST[kind])
    )
    if is_coarse:
        noise = COARSE_NOISE
    roles = ["data"] * width + ["parity_p"] + ["parity_q"] * group.has_double_parity
    firmware = f"{kind[0].upper()}{family}{int(rng.integers(1, 5)):02d}"
    z = rng.standard_normal((len(roles), 5))
    size_u = rng.random((len(roles), 2))
    u = rng.random((len(roles), 4))
    if kind == "ssd":  # which drive is of which family and age decides too much among so few
        u = np.asarray([dealer.deal(Trait.SWAP, PARITY * (role != "data"), 4) for role in roles])
    served = max(math.floor(LARGE_IO_DRIVE_SHARE[kind] * width), 1) if has_large_io else 0
    order = rng.permutation(width).tolist() if kind == "disk" and has_large_io else list(range(width))[::-1]
    large = set(order[:served])
    for slot, role in enumerate(roles):
        own_family = family if u[slot, 0] >= MIXED_MODEL_SHARE else int(u[slot, 1] * len(CATALOGUE[kind]))
        # drives of a group came together; a few were swapped in at some time since
        age_years = years if u[slot, 2] >= SWAPPED_SHARE[kind] else years * u[slot, 3]
        own_stratum = _stratum(kind, age_years, family, is_model_known, is_age_known) + PARITY * (role != "data")
        z[slot, 1] = normal(dealer.deal(Trait.LATENCY, own_stratum)[0])
        group.members.append(
            _member(
                group,
                p,
                f"{kind[0].upper()}{place:06d}{slot:02d}A",
                slot,
                role,
                own_family,
                firmware,
                (start - timedelta(days=age_years * 365.25)).date(),
                group.joined_at,
                age_years,
                own_stratum,
                noise,
                z[slot],
                dealer.deal(Trait.FAIL_SLOW, own_stratum)[0],
                dealer.deal(Trait.AILING, own_stratum)[0],
                size_u[slot, 1] if slot in large else None,
            )
        )
    if rng.random() < SPARE_SHARE:
        group.spare_id = f"{kind[0].upper()}{place:06d}{len(roles):02d}A"
    return group


def successor(rng: np.random.Generator, dealer: Dealer, group: Group, old: Member, p: KindParameters, at: float, start: datetime) -> Member:
    """The new drive that takes the slot of `old` at hour `at`."""
    stratum = _stratum(group.kind, 0.0, group.family, group.is_model_known, group.is_age_known) + PARITY * (old.role != "data") + SUCCESSOR
    return _member(
        group,
        p,
        old.drive_id[:-1] + chr(ord(old.drive_id[-1]) + 1),
        old.slot,
        old.role,
        group.family,
        old.firmware,
        (start + timedelta(hours=at)).date(),
        at,
        0.0,
        stratum,
        old.noise_factor / _of_family(p.family_noises, old.family),  # its age is in there, too: the group stays as noisy as it is
        rng.standard_normal(5),
        dealer.deal(Trait.FAIL_SLOW, stratum)[0],
        1.0,
        is_replacement=True,
    )


def _member(
    group: Group,
    p: KindParameters,
    drive_id: str,
    slot: int,
    role: str,
    family: int,
    firmware: str,
    deployed_on: date,
    active_from: float,
    age_years: float,
    stratum: int,
    group_noise: float,
    z: Floats,
    u: float,
    ailing_u: float,
    size_u: float | None = None,
    is_replacement: bool = False,
) -> Member:
    """A drive from five normal and three uniform draws; `size_u` is None unless its I/Os are large."""
    kind = group.kind
    ageing, exponent = _ageing(p, age_years + AGE_AHEAD[kind], group.is_age_known)
    ageing *= group.standing
    # drives of a group whose models nobody knows are as any drives
    hazard = ageing * _of_family(p.family_hazards if group.is_model_known else (), family)
    hazard *= 1.0 if size_u is None else LARGE_IO_HAZARD[kind]
    # few ail, and of these few hold most of the slow hours
    frailty = p.ailing_hazard * max(ailing_u / p.ailing_share, LEAST_RANK) ** -AILING_SPREAD[kind] if ailing_u < p.ailing_share else 1.0
    extra_size = 0.0 if size_u is None else min(LEAST_EXTRA_SIZE * (1 - size_u) ** (-1 / p.hot_spot_exponent), LARGEST_EXTRA_SIZE)
    # drives of a steady age, or behind a coarse timer, differ less for good, too
    is_steady = bool(p.steady_year_noise) and int(age_years + AGE_AHEAD[kind]) == STEADY_YEAR - 1
    steadiness = p.steady_year_noise[0] if is_steady else 1.0
    lasting = min(steadiness, COARSE_NOISE if group.is_coarse else 1.0)
    is_fail_slow = u < p.fail_slow_share * hazard
    return Member(
        drive_id=drive_id,
        slot=slot,
        role=role,
        family=family,
        firmware=firmware,
        deployed_on=deployed_on,
        active_from=active_from,
        active_to=FAR_FUTURE,
        latency_factor=math.exp(
            (1.0 if size_u is None else LARGE_IO_NOISE[kind])
            * lasting
            * (p.drive_latency_sigma + LATENCY_SIGMA_PER_YEAR * age_years)
            * z[1]
        ),
        io_size_factor=1 + extra_size,
        rate_share=1.0 if group.is_striped else math.exp(p.rate_share_sigma * z[2]),
        noise_factor=group_noise
        * _of_family(p.family_noises, family)
        * (steadiness if p.steady_year_noise else ageing ** NOISE_OF_HAZARD[kind])
        * (1 + NOISE_PER_OLD_YEAR[kind] * max(age_years - 4, 0.0)),
        fail_slow_excess=p.fail_slow_median_excess * math.exp(FAIL_SLOW_SIGMA * z[3]) if is_fail_slow else 0.0,
        frailty=frailty,
        hazard_per_hour=p.episode_rate_per_drive_year / HOURS_PER_YEAR * frailty * hazard,
        severity_exponent=p.severity_exponent * exponent,
        stratum=stratum,
        is_replacement=is_replacement,
    )


def _width(u: float, p: KindParameters, widest: int) -> int:
    """Number of data drives, 3 to `widest`: a common width, or any; a wider draw is cut off, or folded back where some are common."""
    for width, share in zip(p.common_widths, p.common_width_shares, strict=True):
        if u < share:
            return round(width)
        u -= share
    drawn = round(p.width_median * math.exp(p.width_sigma * normal(u / (1 - sum(p.common_width_shares)))))
    if not p.common_widths:
        return min(max(drawn, 3), widest)
    return drawn if 3 <= drawn <= widest else 3 + drawn % (widest - 2)


def _years(u: float, p: KindParameters, oldest: float, season: float) -> float:
    """The age at rank `u`: a year by its share, and any part of the season of it in which drives are deployed."""
    for year, share in enumerate(p.age_year_shares):
        if u < share:
            return year + season * u / share
        u -= share
    return len(p.age_year_shares) + u * (oldest - len(p.age_year_shares))


def _stratum(kind: Kind, years: float, family: int, is_model_known: bool, is_age_known: bool) -> int:
    """Those that share their slowness out among themselves: disks of one year, SSDs of one family, and those not known."""
    if kind == "disk":
        return 1 + int(years) if is_age_known else 0
    return 2 + family if is_model_known else int(is_age_known)


def _observation(u: Sequence[float], u_start: float, kind: Kind, hours: int) -> tuple[float, float]:
    """From when to when the group's records are collected: the campaign and some whole days, or less of it."""
    short_share, shares = SHORT_OBSERVATION_SHARE[kind], OBSERVATION_SHARES[kind]
    if u[0] < short_share:
        length = max(round(min(CAMPAIGN_HOURS, hours) * u[0] / short_share), 1)
    else:
        rest, days = u[1], 0
        while days < len(shares) and rest >= shares[days]:
            rest, days = rest - shares[days], days + 1
        if days == len(shares):
            days += math.floor((LATEST_DAYS + 1 - days) * rest / (1 - sum(shares)))
        length = CAMPAIGN_HOURS + 24 * days
    if length >= hours:
        return FAR_PAST, FAR_FUTURE
    joined_at = float(math.floor(u_start * (hours - length + 1)))
    return joined_at or FAR_PAST, joined_at + length if joined_at + length < hours else FAR_FUTURE


def _family(kind: Kind, u: float) -> int:
    """The family whose share of the groups `u` falls into."""
    for number, family in enumerate(CATALOGUE[kind]):
        if u < family.share:
            return number
        u -= family.share
    return 0


def _of_family(multipliers: Sequence[float], family: int) -> float:
    """A family's multiplier; without any, all families are alike."""
    return multipliers[family] if multipliers else 1.0


def _ageing(p: KindParameters, years: float, is_known: bool) -> tuple[float, float]:
    """Effect of age on the rates of slowness and on the exponent of its severity (ratios)."""
    if not is_known:
        return p.unknown_age_hazard, p.unknown_age_exponent
    hazards, exponents = p.age_year_hazards, p.age_year_exponents or (1.0,)
    return hazards[min(int(years), len(hazards) - 1)], exponents[min(int(years), len(exponents) - 1)]


DRIVES_SCHEMA = {**CONTRACT["drives"], "slot": pl.Int64()}


def inventory(groups: Sequence[Group], start: datetime, hours: int) -> pl.DataFrame:
    """The `drives` records: one row per drive and period of membership, spares included, sorted by group and drive."""
    rows: list[tuple[object, ...]] = []
    for group in groups:
        site, timezone, _ = SITES[group.site]
        listed = [m for m in group.members if m.is_listed]
        for m in sorted(listed, key=lambda m: (m.drive_id, m.active_from)):
            rows.append(_inventory_row(group, m.drive_id, m.role, m.slot, m, site, timezone, start))
        if group.spare_id is not None and listed:
            slot = group.data_width + 1 + group.has_double_parity
            rows.append(_inventory_row(group, group.spare_id, "spare", slot, listed[0], site, timezone, start))
    end = start + timedelta(hours=hours)
    frame = pl.DataFrame(rows, schema=DRIVES_SCHEMA, orient="row")
    # a period that begins or ends after the span is not known yet when the last record is sent
    return frame.filter(pl.col("valid_from") < end).with_columns(valid_to=pl.when(pl.col("valid_to") < end).then("valid_to"))


def _inventory_row(
    group: Group, drive_id: str, role: str, slot: int, m: Member, site: str, timezone: str, start: datetime
) -> tuple[object, ...]:
    family = CATALOGUE[group.kind][m.family]
    deployed = datetime(m.deployed_on.year, m.deployed_on.month, m.deployed_on.day)
    valid_from = deployed if m.active_from == FAR_PAST else instant(start, m.active_from)
    valid_to = None if m.active_to == FAR_FUTURE else instant(start, m.active_to)
    known = group.is_model_known
    return (
        drive_id,
        group.raid_group_id,
        role,
        group.kind,
        slot,
        family.vendor if known else None,
        family.model if known else None,
        m.firmware if known else None,
        family.flash_cell if known else None,
        family.capacity_bytes if known else None,
        family.rpm if known else None,
        family.interface if known else None,
        "raid6" if group.has_double_parity else "raid5",
        group.host,
        f"{group.host}-e{group.place % 4}",
        site,
        timezone,
        m.deployed_on if group.is_age_known else None,
        valid_from,
        valid_to,
        max(start, valid_to or valid_from) + timedelta(minutes=2),
    )


def instant(start: datetime, hour: float) -> datetime:
    """The whole second at `hour` hours after `start`."""
    return start + timedelta(seconds=round(hour * 3600))

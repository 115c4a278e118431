"""The fleet's make-up: RAID groups, the drives in their slots, what inventory says about them.

Times are hours since the start of the simulated span (real numbers; negative = before it).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from simulate.parameters import Kind, KindParameters
from simulate.streams import STANDARD_NORMAL, Purpose, Trait, even, even_normal, stream

Floats = npt.NDArray[np.float64]

FAR_PAST, FAR_FUTURE = -math.inf, math.inf
HOURS_PER_YEAR = 24 * 365.25
SPARE_SHARE = 0.25
DOUBLE_PARITY_SHARE = 0.95
MIXED_MODEL_SHARE = 0.06
"""Share of drives of another family than their group's."""
LEAST_EXTRA_SIZE = 1.1
LARGEST_EXTRA_SIZE = 40.0
AGE_SHAPE = 2.6
NOISE_OF_HAZARD = 0.25
"""The hourly latency noise grows as what age does to the rates of slowness, to this power."""
UNKNOWN_MODEL_AGE = {"disk": 1.0, "ssd": 0.4}
"""Age of groups of no known model over that of others (ratio)."""
OLDEST_YEARS = {"disk": 9.9, "ssd": 3.95}
SHARED_WIDTH_POWER = 2.0
"""More drives hang on more paths, and more of them on each."""
COARSE_LATENCY_US = 336.0
"""Unloaded latency of a group with a coarse timer: little more than a tick, or the ticks would not be seen."""
LARGE_IO_NOISE = 0.6
"""Hourly latency noise of a group whose clients send large I/Os to some drives (ratio to an ordinary group's)."""
LARGE_IO_DRIVE_SHARE = 0.35
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
    frailty: float  # own multiplier of the episode rate
    hazard_per_hour: float  # rate of first episodes, everything included
    severity_factor: float
    outages: list[tuple[float, float]] = field(default_factory=list)
    is_listed: bool = True  # false: inventory forgot it
    is_replacement: bool = False


@dataclass
class Group:
    """One RAID group and what is fixed about it."""

    raid_group_id: str
    kind: Kind
    ordinal: int
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
    is_idle_at_times: bool
    rate_factor: float  # its drives' I/O rate over the kind's median
    standing: float  # what its kind of use and of inventory record do to the rates of slowness (ratio)
    shared_hazard_per_hour: float  # rate of slow spells of a path that several of its drives share
    members: list[Member] = field(default_factory=list)
    spare_id: str | None = None

    @property
    def utc_offset_hours(self) -> int:
        """Local time less UTC."""
        return SITES[self.site][2]


def make_group(kind: Kind, ordinal: int, p: KindParameters, seed: int, start: datetime, hours: int) -> Group:
    """Group number `ordinal` of `kind` with its first drives, as it stands when the span begins (or when it joins)."""
    rng = stream(seed, kind, ordinal, Purpose.INVENTORY)

    def chance(trait: Trait, share: float) -> bool:
        return even(seed, kind, ordinal, trait) < share

    def normal(trait: Trait) -> float:
        return even_normal(seed, kind, ordinal, trait)

    width = _width(even(seed, kind, ordinal, Trait.WIDTH), p)
    # a gamma variable by the cube of a normal one (Wilson and Hilferty)
    years = p.age_mean_years * max(1 - 1 / (9 * AGE_SHAPE) + normal(Trait.AGE) / (3 * math.sqrt(AGE_SHAPE)), 0.0) ** 3
    oldest = OLDEST_YEARS[kind]
    years = years if years < oldest else float(rng.uniform(0, oldest))
    # the widest groups are those whose inventory names no model, and of SSDs the youngest: in the paper most slow SSD hours are
    # in no figure by model, and as many groups with three slow drives at a time as it counts need more drives than most have
    is_model_known = even(seed, kind, ordinal, Trait.WIDTH) < 1 - p.unknown_model_share
    years *= 1.0 if is_model_known else UNKNOWN_MODEL_AGE[kind]
    joined_at, left_at = _observation(
        even(seed, kind, ordinal, Trait.OBSERVATION), even(seed, kind, ordinal, Trait.OBSERVATION_LENGTH), float(rng.random()), p, hours
    )
    family = _family(kind, even(seed, kind, ordinal, Trait.FAMILY))
    is_age_known = not chance(Trait.AGE_KNOWN, p.unknown_age_share)
    # groups whose inventory says how old they are had more trouble in the paper: their years are slower than the whole fleet
    shared_frailty = math.exp(p.shared_frailty_sigma * normal(Trait.SHARED_PATH) - p.shared_frailty_sigma**2 / 2)
    has_large_io = chance(Trait.LARGE_IO, p.large_io_group_share)
    is_coarse = even(seed, kind, ordinal, Trait.WIDTH) >= 1 - p.coarse_timer_group_share
    standing = (p.large_io_hazard if has_large_io else 1.0) * (1.0 if is_model_known or is_coarse else p.unknown_model_hazard)
    # groups whose inventory says how old they are, or of what model, differ from the others in the paper, too
    group_hazard = standing * (_ageing(p, years) if is_age_known else p.unknown_age_hazard)
    group = Group(
        raid_group_id=f"{kind}-g{ordinal:06d}",
        kind=kind,
        ordinal=ordinal,
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
        base_latency_us=p.base_latency_us * CATALOGUE[kind][family].speed * math.exp(p.base_latency_sigma * rng.standard_normal()),
        # groups with such timers are among those of no known model: the steps they make are in no figure by model
        is_coarse=is_coarse,
        is_closed_loop=chance(Trait.CLOSED_LOOP, p.closed_loop_share),
        is_idle_at_times=chance(Trait.IDLE, p.idle_group_share),
        rate_factor=math.exp(p.rate_sigma * normal(Trait.RATE)),
        standing=standing,
        shared_hazard_per_hour=p.shared_rate_per_group_year
        / HOURS_PER_YEAR
        * group_hazard
        * shared_frailty
        * _of_family(p.family_hazards, family),
    )
    if group.is_coarse:
        group.base_latency_us = COARSE_LATENCY_US
    group.host = f"{SITES[group.site][0]}-{kind}-h{ordinal // 4:05d}"
    # clients that read and write large pieces have steady drives
    noise = LARGE_IO_NOISE if has_large_io else math.exp(p.hour_latency_group_sigma * normal(Trait.NOISE))
    roles = ["data"] * width + ["parity_p"] + ["parity_q"] * group.has_double_parity
    firmware = f"{kind[0].upper()}{family}{int(rng.integers(1, 5)):02d}"
    z = rng.standard_normal((len(roles), 5))
    size_u = rng.random((len(roles), 2))
    u = rng.random((len(roles), 4))
    large = set(rng.permutation(width)[: math.floor(LARGE_IO_DRIVE_SHARE * width)].tolist()) if has_large_io else set()
    for slot, role in enumerate(roles):
        own_family = family if u[slot, 0] >= MIXED_MODEL_SHARE else int(u[slot, 1] * len(CATALOGUE[kind]))
        # drives of a group came together; one in twelve was swapped in at some time since
        age_years = years if u[slot, 2] >= 1 / 12 else years * u[slot, 3]
        z[slot, 0] = even_normal(seed, kind, ordinal, Trait.FRAILTY, slot)
        z[slot, 4] = even_normal(seed, kind, ordinal, Trait.SEVERITY, slot)
        group.members.append(
            _member(
                p,
                f"{kind[0].upper()}{ordinal:06d}{slot:02d}A",
                slot,
                role,
                own_family,
                firmware,
                (start - timedelta(days=age_years * 365.25)).date(),
                group.joined_at,
                age_years,
                standing * (_ageing(p, age_years) if is_age_known else p.unknown_age_hazard),
                noise,
                z[slot],
                size_u[slot, 1] if slot in large else None,
                even(seed, kind, ordinal, Trait.FAIL_SLOW, slot),
            )
        )
    if rng.random() < SPARE_SHARE:
        group.spare_id = f"{kind[0].upper()}{ordinal:06d}{len(roles):02d}A"
    return group


def successor(rng: np.random.Generator, group: Group, old: Member, p: KindParameters, at: float, start: datetime) -> Member:
    """The new drive that takes the slot of `old` at hour `at`."""
    return _member(
        p,
        old.drive_id[:-1] + chr(ord(old.drive_id[-1]) + 1),
        old.slot,
        old.role,
        group.family,
        old.firmware,
        (start + timedelta(hours=at)).date(),
        at,
        0.0,
        group.standing * (_ageing(p, 0.0) if group.is_age_known else p.unknown_age_hazard),
        old.noise_factor / _of_family(p.family_noises, old.family),  # its age is in there, too: the group stays as noisy as it is
        rng.standard_normal(5),
        None,
        float(rng.random()),
        is_replacement=True,
    )


def _member(
    p: KindParameters,
    drive_id: str,
    slot: int,
    role: str,
    family: int,
    firmware: str,
    deployed_on: date,
    active_from: float,
    age_years: float,
    ageing: float,
    group_noise: float,
    z: Floats,
    size_u: float | None,
    u: float,
    is_replacement: bool = False,
) -> Member:
    """A drive from five normal and two uniform draws: `ageing` multiplies its hazards, `size_u` is None unless its I/Os are large."""
    frailty = math.exp(p.frailty_sigma * z[0] - p.frailty_sigma**2 / 2)
    extra_size = 0.0 if size_u is None else min(LEAST_EXTRA_SIZE * (1 - size_u) ** (-1 / p.hot_spot_exponent), LARGEST_EXTRA_SIZE)
    hazard = ageing * _of_family(p.family_hazards, family)
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
            (1.0 if size_u is None else LARGE_IO_NOISE) * (p.drive_latency_sigma + p.drive_latency_sigma_per_year * age_years) * z[1]
        ),
        io_size_factor=1 + extra_size,
        rate_share=math.exp(p.rate_share_sigma * z[2]),
        noise_factor=group_noise * _of_family(p.family_noises, family) * ageing**NOISE_OF_HAZARD,
        fail_slow_excess=p.fail_slow_median_excess * math.exp(p.fail_slow_sigma * z[3]) if is_fail_slow else 0.0,
        frailty=frailty,
        hazard_per_hour=p.episode_rate_per_drive_year / HOURS_PER_YEAR * frailty * hazard,
        severity_factor=math.exp(p.severity_drive_sigma * z[4]),
        is_replacement=is_replacement,
    )


def _width(u: float, p: KindParameters) -> int:
    """Number of data drives, 3 to `width_maximum`: a common width, or any; a draw beyond the widest is folded back."""
    for width, share in zip(p.common_widths, p.common_width_shares, strict=True):
        if u < share:
            return round(width)
        u -= share
    u = min(max(u / (1 - sum(p.common_width_shares)), 1e-9), 1 - 1e-9)
    drawn = round(p.width_median * math.exp(p.width_sigma * STANDARD_NORMAL.inv_cdf(u)))
    return drawn if 3 <= drawn <= p.width_maximum else 3 + drawn % (int(p.width_maximum) - 2)


def _observation(u: float, u_length: float, u_start: float, p: KindParameters, hours: int) -> tuple[float, float]:
    """From when to when the group's records are collected: a campaign of a fixed length and some whole days, or less of it."""
    campaign = 24 * p.observation_days
    if u < p.short_observation_share:
        length = max(round(min(campaign, hours) * u_length), 1)
    else:
        length = round(campaign) + 24 * math.floor(-p.observation_extra_days * math.log(1 - u_length))
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


def _ageing(p: KindParameters, years: float) -> float:
    """What age does to the rates of slowness (ratio to a drive of one year)."""
    return p.infant_hazard if years < 1 else math.exp(p.age_hazard_per_year * (years - 1))


DRIVES_SCHEMA: dict[str, pl.DataType] = {
    "drive_id": pl.String(),
    "raid_group_id": pl.String(),
    "role": pl.String(),
    "kind": pl.String(),
    "slot": pl.Int64(),
    "vendor": pl.String(),
    "model": pl.String(),
    "firmware": pl.String(),
    "flash_cell": pl.String(),
    "capacity_bytes": pl.Int64(),
    "rpm": pl.Int64(),
    "interface": pl.String(),
    "raid_level": pl.String(),
    "host": pl.String(),
    "enclosure": pl.String(),
    "site": pl.String(),
    "timezone": pl.String(),
    "deployed_on": pl.Date(),
    "valid_from": pl.Datetime("us"),
    "valid_to": pl.Datetime("us"),
    "collected_at": pl.Datetime("us"),
}


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
        f"{group.host}-e{group.ordinal % 4}",
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

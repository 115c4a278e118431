"""Every number of the fleet's behaviour, per drive kind, with its unit in its name.

One flat set of at most 200 numbers: `flat()` gives `{"disk.episode_rate_per_drive_year": 2.6, ...}`, `with_overrides()`
takes the same names. A tuple counts each of its numbers and is overridden as a whole (a JSON list).
What no calibration moves (the drive catalogue, sites, calendar, the 250 us timer) stands as constants where it is used.
No number here is a slowdown distribution: slowdowns come out after dividing by the group's median.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

Kind = Literal["disk", "ssd"]
KINDS: tuple[Kind, ...] = ("disk", "ssd")
MAXIMUM_NUMBERS = 200
PRESET_FILE = Path(__file__).parent / "presets" / "tail_at_store.json"
PRESETS: dict[str, tuple[Kind, ...]] = {
    "tail-at-store": ("disk", "ssd"),
    "tail-at-store-disk": ("disk",),
    "tail-at-store-ssd": ("ssd",),
}
"""The kinds of drives a preset's fleet has. All take their numbers from the one file."""


class ParameterError(ValueError):
    """A parameter override names no parameter, or has the wrong shape or range."""


def _means(meaning: str) -> Any:
    """A parameter and what it means."""
    return field(metadata={"meaning": meaning})


@dataclass(frozen=True)
class KindParameters:
    """The parameters of one drive kind."""

    # groups and drives
    width_median: float = _means("median number of data drives of a group of no standard width")
    width_sigma: float = _means("log spread of that number")
    common_widths: tuple[float, ...] = _means("widths that are built most, data drives")
    common_width_shares: tuple[float, ...] = _means("share of groups of each of them")
    age_year_shares: tuple[float, ...] = _means("share of groups in each year of age; what is missing to 1 is older")
    age_year_hazards: tuple[float, ...] = _means("episode rate in each year of age (ratio), the last for all later years")
    age_year_exponents: tuple[float, ...] = _means("severity exponent in each year of age (ratio), none = all alike")
    unknown_model_share: float = _means("share of groups whose inventory carries no model information")
    unknown_model_hazard: tuple[float, ...] = _means(
        "episode rate of their drives over that of drives whose model is known (ratio), none = 1"
    )
    unknown_age_share: float = _means("share of groups whose inventory does not say when the drives were deployed")
    unknown_age_hazard: float = _means("episode rate of their drives, as of a year of age (ratio)")
    unknown_age_exponent: float = _means("severity exponent of their drives, as of a year of age (ratio)")
    family_hazards: tuple[float, ...] = _means("episode rate multiplier per model family (ratio), none = all alike")
    family_noises: tuple[float, ...] = _means("hourly latency noise multiplier per model family (ratio)")
    steady_year_noise: tuple[float, ...] = _means("latency noise in the third year of age (ratio), none = as age_year_hazards make it")

    # workload
    hour_rate_sigma: float = _means("log spread of a group's rate from hour to hour")
    burst_rate_per_hour: float = _means("batch jobs a group starts per hour")
    burst_mean_hours: float = _means("mean length of a batch job, hours")
    burst_factor_median: float = _means("median rate during a batch job over the rate without (ratio)")
    burst_factor_sigma: float = _means("log spread of that factor")
    small_burst_share_extra: tuple[float, ...] = _means(
        "share of batch jobs that are small, and the median extra rate of these (ratio); none = all alike"
    )
    idle_hour_share: float = _means("share of a group's hours that are idle")
    striped_group_share: float = _means("share of groups whose clients ask for whole stripes, the same of every drive")
    rate_share_sigma: float = _means("log spread over the drives of a group of their share of the I/Os")
    rate_hour_sigma: float = _means("log spread of that share from hour to hour")
    hot_spot_rate_per_drive_year: float = _means("times a drive attracts more I/Os than its peers, per year")
    hot_spot_median_hours: float = _means("median length of a hot spot, hours")
    hot_spot_exponent: float = _means("Pareto exponent of a hot spot's extra rate (0.3 and more) and of the extra size of larger I/Os")
    hot_spot_cached: tuple[float, ...] = _means(
        "share of hot spots that the drive's cache or locality speeds up, median latency then over the normal one (ratio), its log spread"
    )
    hot_spot_slowed: tuple[float, ...] = _means(
        "share of the others that are slowed, and their greatest extra latency (ratio); none = none"
    )
    large_io_group_share: float = _means("share of groups some of whose drives serve I/Os larger by 1.1 and more (ratio)")
    large_io_hazard: float = _means("episode rate in such a group over that in others (ratio)")
    retry_sigma: float = _means("log extra I/Os of a slow drive, half-normal: retries")
    merge_sigma: float = _means("log extra I/O size of a slow drive, half-normal: waiting I/Os are merged")
    queue_excess: tuple[float, ...] = _means("mean log extra I/Os, and I/O size, of a slow drive in the hours in which a queue shows")
    retried_share_median_sigma: tuple[float, ...] = _means(
        "share of episodes during which a slow drive is asked again, median extra I/Os then (ratio) and their log spread; none = never"
    )
    merged_share_median_sigma: tuple[float, ...] = _means(
        "share of episodes during which I/Os that wait for a slow drive are merged, median extra size (ratio), log spread; none = never"
    )
    hot_spot_latencies: tuple[float, ...] = _means(
        "or: latency during a hot spot over the normal latency (ratio) at the ranks HOT_SPOT_RANKS; a drive then has one at a time"
    )
    spared_share: float = _means("share of episodes during which the array reads around the drive")
    spared_power: tuple[float, ...] = _means("the part of its I/Os that it keeps, to this power, is uniform; none = 1")
    closed_loop_exponent: float = _means("such a group's rate is divided by its largest slowness to this power")

    # latency
    drive_latency_sigma: float = _means("log spread of the drives of a group, fixed for life")
    hour_latency_sigma: float = _means("log spread of a drive's latency from hour to hour")
    hour_latency_group_sigma: float = _means("log spread over groups of that noise")
    single_io_sigma: float = _means("noise of one I/O over its mean; an hourly average of n I/Os has this over sqrt(n)")
    io_size_exponent: float = _means("latency grows as a drive's I/O size over its group's to this power")

    # slowness
    ailing_share: float = _means("share of drives that ail: most slow hours are of few drives")
    ailing_hazard: float = _means("episode rate of the least ailing drive over that of a drive that does not ail (ratio)")
    ailing_length_exponent: float = _means("its episodes are longer by that ratio to this power")
    episode_rate_per_drive_year: float = _means("mean number of first episodes of a drive, per year, where all ratios are 1")
    aftershock_count: float = _means("mean number of episodes that one episode brings after it (below 1)")
    aftershock_median_hours: float = _means("median wait from an episode's end to its aftershock, hours")
    aftershock_sigma: float = _means("log spread of that wait")
    episode_median_hours: float = _means("median length of an episode, hours")
    episode_sigma: float = _means("log spread of that length")
    episode_maximum_hours: tuple[float, ...] = _means("no episode of a drive or of a path is longer, hours; none = two months")
    severity_minimum_excess: float = _means("least extra latency of an episode over the normal latency (ratio)")
    severity_exponent: float = _means("Pareto exponent of the extra latency")
    episode_severity_exponent: float = _means("an episode's length falls as its extra latency to this power")
    severity_knee_excess: float = _means("beyond this the extra latency grows less: timeouts cut in (ratio)")
    severity_knee_power: tuple[float, ...] = _means("beyond that knee the extra latency grows to this power only; none = a third")
    severity_tail: tuple[float, ...] = _means(
        "or: Pareto exponent beyond the knee of SLC drives, and the knee of the others: theirs is next to flat"
    )
    hiccup: tuple[float, ...] = _means("stops of some minutes of a drive that does not ail, per year")
    fail_slow_share: float = _means("share of drives that are, where all ratios are 1, mildly slow for good")
    fail_slow_median_excess: float = _means("median extra latency of such a drive (ratio)")
    shared_group_share: float = _means("share of groups in which several drives share a weak path")
    shared_rate_per_group_year: float = _means("times such a path is slow of itself, per year, where all ratios are 1")
    shared_drive_share: tuple[float, ...] = _means(
        "mean share of a group's data drives on that path beyond the least, the same ones for good (always under half of them); none = 0"
    )
    shared_median_hours: float = _means("median length of such an episode, hours")
    shared_sigma: float = _means("log spread of that length")
    shared_excess: tuple[float, ...] = _means("least extra latency of such a path, and mean of what is above: a queue; none = as of drives")
    stall: tuple[float, ...] = _means("of groups of unknown age: stalls of half the shelf per year, and their median extra latency (ratio)")
    throttle: tuple[float, ...] = _means(
        "of groups with a coarse timer: share of hours in which firmware throttles drives, and of these with one slower than the rest"
    )
    explicit_event_rate_per_drive_year: float = _means("not_spinning (disks) and not_responding events, per drive and year")

    # operators
    unplug_share: float = _means("share of episodes of twice the latency after which an operator acts")
    unplug_severity_exponent: float = _means("that share grows with the severity to this power")
    unplug_wait_median_hours: float = _means("median wait from an episode's start to the unplug, hours")
    unplug_wait_sigma: float = _means("log spread of that wait")
    routine_unplug_rate_per_drive_year: float = _means("unplugs without a cause, per drive and year")
    replacement_share: tuple[float, ...] = _means("share of unplugs that end in another drive in the slot; none = 0")
    cure_share: float = _means("share of replugs that end the drive's present series of episodes")
    recurrence_median_hours: float = _means("median wait from a replug that cured nothing to the next episode, hours")
    recurrence_sigma: float = _means("log spread of that wait")


@dataclass(frozen=True)
class Parameters:
    """The whole parameter set."""

    disk: KindParameters
    ssd: KindParameters

    def of(self, kind: Kind) -> KindParameters:
        """The parameters of `kind`."""
        return self.disk if kind == "disk" else self.ssd

    def flat(self) -> dict[str, Any]:
        """`{"disk.name": number or list, ...}`, ready for JSON."""
        return {
            f"{kind}.{name}": list(value) if isinstance(value, tuple) else value
            for kind in KINDS
            for name, value in asdict(self.of(kind)).items()
        }


@cache
def defaults() -> Parameters:
    """The calibrated parameter set, from its one file.

    Raises: ParameterError where the file lacks a parameter or holds one that does not exist.
    """
    kinds: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for name, value in json.loads(PRESET_FILE.read_text(encoding="utf-8")).items():
        kind, _, plain = name.partition(".")
        kinds[kind][plain] = tuple(value) if isinstance(value, list) else value
    known = {f.name for f in fields(KindParameters)}
    for kind, found in kinds.items():
        if wrong := sorted(known ^ found.keys()):
            raise ParameterError(f"{PRESET_FILE}: {kind}.{wrong[0]} is {'missing' if wrong[0] in known else 'no parameter'}")
    return Parameters(disk=KindParameters(**kinds["disk"]), ssd=KindParameters(**kinds["ssd"]))


def meanings() -> dict[str, str]:
    """Meaning of each parameter, by its name without the kind."""
    return {f.name: f.metadata["meaning"] for f in fields(KindParameters)}


def number_count(parameters: Parameters) -> int:
    """How many numbers the set holds; a tuple counts each of its numbers."""
    return sum(len(value) if isinstance(value, list) else 1 for value in parameters.flat().values())


def _range(plain_name: str) -> tuple[float, float]:
    """Allowed values of a parameter, by the end of its name."""
    if plain_name == "aftershock_count":
        return 0.0, 0.95  # from 1 on a first episode never ends bringing others
    if plain_name in ("width_median", "common_widths"):
        return 3.0, 1000.0
    if plain_name in (
        "severity_exponent",
        "hot_spot_exponent",
        "unknown_age_exponent",
        "age_year_exponents",
    ):
        return 0.01, 1e9
    if plain_name in ("hot_spot_cached", "hot_spot_latencies"):
        return 0.01, 1e6
    if plain_name.endswith("_exponent"):
        return -10.0, 10.0
    return 0.0, 1.0 if plain_name.endswith(("_share", "_shares")) else 1e9


def with_overrides(overrides: Mapping[str, Any] | None) -> Parameters:
    """The defaults with the parameters named in `overrides` replaced.

    Raises: ParameterError for an unknown name, a value that is not a number, or a list of the wrong length.
    """
    made = defaults()
    changes: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    known = made.flat()
    for name, value in (overrides or {}).items():
        if name not in known:
            raise ParameterError(f"parameter {name!r} does not exist; names look like 'disk.episode_rate_per_drive_year'")
        kind, _, plain = name.partition(".")
        numbers = list(value) if isinstance(value, list | tuple) else [value]
        if isinstance(known[name], list) != isinstance(value, list | tuple):
            raise ParameterError(f"parameter {name!r} is a {'list' if isinstance(known[name], list) else 'number'}, not {value!r}")
        low, high = _range(plain)
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
                raise ParameterError(f"parameter {name!r}: {number!r} is not a number from {low:g} to {high:g}")
        if isinstance(known[name], list) and len(numbers) != len(known[name]):
            raise ParameterError(f"parameter {name!r} needs {len(known[name])} numbers, not {len(numbers)}")
        changes[kind][plain] = tuple(float(n) for n in numbers) if isinstance(known[name], list) else float(numbers[0])
    return Parameters(disk=replace(made.disk, **changes["disk"]), ssd=replace(made.ssd, **changes["ssd"]))

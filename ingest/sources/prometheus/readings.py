"""Readings of a drive's counters -> drive-hours, inventory and aliases.

A *reading* is one scrape of one drive: node_exporter's counters since boot, and who the drive is. Two readings,
one after the other, give what happened between them, exactly: nothing is extrapolated. That increment counts for the hour in
which the later reading was taken, (H, H + 1 h]; so hours add up, and an hour is off by what was done in less than one scrape
interval at either end. Latency is the time over the I/Os of the same increments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations

import polars as pl

from ingest.contract.findings import some_of
from ingest.reading.devices import head_of, host_of, is_path, is_placeholder
from ingest.reading.parse import HOUR_US, Check
from ingest.reading.spans import seldom_notes, with_spans
from ingest.sources.prometheus.dialects import COLLECTOR, COLUMNS, OF_RATES, TODAY

# As far back as Prometheus itself looks for a sample (--query.lookback-delta). An increment that began earlier than this
# before its hour may belong to hours without a scrape, so it counts for none.
LOOKBACK_US = 300_000_000
# The kernel prints the time of a drive's I/Os in milliseconds as 32 bits.
WRAP_US = 2**32 * 1000

RATED = f'"{COLLECTOR}": "({"|".join(OF_RATES)})"'
"""A path of rates and means: what it shows holds since the scrape before, but for no longer than LOOKBACK_US."""
COUNTERS: dict[str, str] = {getattr(TODAY, column): column for column in COLUMNS}
NEEDED = ("reads", "writes", "read_seconds", "write_seconds")
COUNTS = ("reads", "writes", "read_bytes", "written_bytes")
TIMES = {"read_seconds": "reads", "write_seconds": "writes"}
_BYTES_OF = {"read_seconds": "read_bytes", "write_seconds": "written_bytes"}
METRIC = {column: metric for metric, column in COUNTERS.items()}

# `path` distinguishes scrape jobs or replicas that watch the same drive: its labels.
DRIVE: dict[str, pl.DataType] = {"host": pl.String(), "device": pl.String(), "path": pl.String()}
# Who the drive is, as far as the scrape says; raid_group_id null = not known.
IDENTITY: dict[str, pl.DataType] = {
    **dict.fromkeys(("serial", "wwn", "model", "firmware"), pl.String()),
    "is_rotating": pl.Boolean(),
    **dict.fromkeys(("raid_group_id", "array_name", "role", "enclosure", "slot"), pl.String()),
}
READING: dict[str, pl.DataType] = {
    **DRIVE,
    "at": pl.Datetime("us"),
    **dict.fromkeys(COUNTERS.values(), pl.Float64()),
    **IDENTITY,
    # whether the drive was seen all the time since the reading before, though the readings between are not here
    "is_whole": pl.Boolean(),
}
# for a reading that is the last of its path before those that are rolled up: `is_carried`, and of the last of its device since when the
# drive is what it is; file_no and row_no are those of the reading that showed it first.
CARRIED: dict[str, pl.DataType] = {"is_carried": pl.Boolean(), "since": pl.Datetime("us")}


@dataclass
class Rolled:
    """The records made from readings. Frames have the contract's columns as far as known, `file_no` and `row_no`.

    `drives` and `aliases` have `seen_as` too, what the drive-hours of the place are named (HOST/DEVICE); aliases `is_together`, whether
    they end with these readings only because other devices claim the serial, too.
    `samples`: drive-hours' columns by a part of an hour, `hour_utc` being where it begins; null without `--resolution`.
    `behind`: how many readings stand behind each drive-hour (file_no, row_no of the drive-hour; of_file_no, samples). `unused`: readings of
    times that another path's count for (file_no). `last`: the readings that those after them are to follow (CARRIED).
    """

    drive_hours: pl.DataFrame
    drives: pl.DataFrame
    aliases: pl.DataFrame
    behind: pl.DataFrame
    unused: pl.DataFrame
    last: pl.DataFrame
    samples: pl.DataFrame | None = None
    notes: list[str] = field(default_factory=list)


def has_rates(readings: pl.DataFrame) -> bool:
    """Whether any are of a collector that gives rates and means."""
    return bool(readings.select(pl.col("path").str.contains(RATED).any()).item())


def checks(with_rates: bool = False) -> list[Check]:
    """Rules of a reading: its counters are there, finite, not negative, and I/Os and bytes whole but where they are rates.

    A mean of no I/O may be missing; blocks may not, as the mean is of them.
    """
    found: list[Check] = []
    is_rate = pl.col("path").str.contains(RATED) if with_rates else pl.lit(False)
    for name in COUNTERS.values():
        value = pl.col(name)
        is_asked = ~is_rate | (pl.col(TIMES[name]) > 0) if name in TIMES else pl.lit(name in NEEDED) | is_rate
        why = f"no {METRIC[name]}, or what its collector calls it, among the counters of the drive"
        found.append(Check(name, why, value.is_null() & is_asked))
        found.append(Check(name, "NaN", value.is_nan()))
        found.append(Check(name, "infinite", value.is_infinite()))
        found.append(Check(name, "negative", value < 0))
        found.append(Check(name, "above 2^53, more than a drive can count", value > 2**53))
        if name in COUNTS:
            found.append(Check(name, "not a whole number", (value != value.floor()) & ~is_rate))
    return found


def named_hosts(instances: Iterable[str], seen: Mapping[str, tuple[float, float]] | None = None) -> dict[str, str]:
    """Scrape target -> host: without its port, but where two targets of one host that were there at once differ in it only.

    seen: when each was first and last there, if it was; without it they were all there at once.
    """
    targets: dict[str, list[str]] = {}
    for instance in dict.fromkeys(instances):
        targets.setdefault(host_of(instance), []).append(instance)
    names: dict[str, str] = {}
    for host, of_host in targets.items():
        times = (seen.get(instance, (0, 0)) if seen else (0, 1) for instance in of_host)
        is_at_once = any(one[0] < other[1] and other[0] < one[1] for one, other in combinations(times, 2))
        names |= {instance: instance if is_at_once else host for instance in of_host}
    return names


def until_reset(said: pl.DataFrame, readings: pl.DataFrame) -> pl.DataFrame:
    """Descriptions of drives, and an empty one just after the last reading before counters began again: another drive may be there."""
    place = list(DRIVE)
    fell = pl.any_horizontal((pl.col(name) < pl.col(name).shift(1).over(place)).fill_null(False) for name in ("reads", "writes"))
    since = (pl.col("at").shift(1).over(place) + timedelta(microseconds=1)).alias("at")
    steps = readings.filter(~pl.col("path").str.contains(RATED)).sort("at").select("host", "device", since, fell.alias("is_reset"))
    unsaid = said.select(place).unique().join(steps.filter("is_reset").select([*place[:2], "at"]).unique(), on=place[:2])
    return pl.concat([unsaid, said], how="diagonal")


def roll_up(readings: pl.DataFrame, sample_seconds: int | None = None, begins: datetime | None = None) -> Rolled:
    """Good readings (READING, CARRIED, `file_no`, `row_no`), one per drive, path and instant -> drive-hours and who the drives are.

    sample_seconds: of what drive-hours were made, samples of that length as well. begins: from when on they were asked for, if they were.

    A counter that falls was reset (a boot, a drive replaced): the increment is left out, and its time not covered. One of time
    that falls while its I/Os go on has run over its 32 bits. Where several paths watch a drive, each time counts once, by the one that
    covers most of the hour. A hidden path of a multipath NVMe namespace counts where the head counts no I/O.

    Hours are named HOST/DEVICE, so that those of two devices never meet.
    """
    columns = readings.columns
    # a hidden path shares the serial of its head
    readings = readings.with_columns(pl.when(~is_path("device")).then(pl.col("serial")).alias("serial"))
    readings, notes = _with_claims(readings.sort(*DRIVE, "at"))
    every = _steps(readings)
    steps = _each_time_once(every)
    is_far = ~_is_near() & ~pl.any_horizontal("is_reset", "is_another", "is_stale") & pl.col("begins_us").is_not_null()
    notes += seldom_notes(steps, is_far, LOOKBACK_US)
    spans = _in_spans(steps, HOUR_US)
    kept = spans.filter("counts")
    hours, of_hidden = _with_hidden(_totals(kept), kept)
    counts, unused = _behind(every, kept, hours, of_hidden)
    periods = _periods(readings)
    samples = None
    if sample_seconds is not None:
        samples = _samples(spans, sample_seconds * 1_000_000)
    last = _last(readings, periods).select(columns)
    # of a drive that was seen once before another was there is no more to say
    is_shown = ~is_path("device") & (pl.col("valid_to").is_null() | (pl.col("valid_to") > pl.col("valid_from")))
    periods = periods.with_columns(is_shown.alias("is_shown"))
    shown, cuts = periods.filter("is_shown"), _cuts(spans, _came(readings, begins), readings, periods)
    return Rolled(_records(hours, HOUR_US), _drives(shown), pl.concat([_aliases(shown), cuts]), counts, unused, last, samples, notes)


def _steps(readings: pl.DataFrame) -> pl.DataFrame:
    """Readings with what was gained since the one before of their path (`..._more`), from `begins_us` to `ends_us`, and if it `counts`.

    The first of a path that follows another one begins with the last reading of that, and never counts.
    """
    readings = readings.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("step_no"), _is_first(DRIVE).alias("begins_path"))
    before = {name: _before(name) for name in ("at", "serial", "wwn", *COUNTERS.values())}
    is_rate = pl.col("path").str.contains(RATED) if has_rates(readings) else pl.lit(False)
    length_us = pl.col("at").to_physical() - before["at"].to_physical()
    steps = readings.with_columns(
        # an instant on the hour ends the hour before
        ((pl.col("at").to_physical() - 1) // HOUR_US).alias("hour"),
        before["at"].to_physical().alias("begins_us"),
        pl.col("at").to_physical().alias("ends_us"),
        (pl.col("serial").ne_missing(before["serial"]) | (pl.col("wwn") != before["wwn"]).fill_null(False)).alias("is_another"),
        *(
            pl.when(is_rate).then(_of_rate(name, length_us / 1e6)).otherwise(_increment(name, before[name])).alias(f"{name}_more")
            for name in COUNTERS.values()
        ),
        (is_rate & (length_us > LOOKBACK_US)).alias("is_stale"),
    )
    fell = pl.any_horizontal((pl.col(f"{name}_more") < 0).fill_null(False) for name in COUNTERS.values())
    steps = steps.with_columns(fell.alias("is_reset"), (_is_near() & ~fell & ~pl.col("is_another") & ~pl.col("is_stale")).alias("counts"))
    if not _is_watched_twice(steps):
        return steps
    steps = steps.sort("host", "device", "at", "path")
    place = ["host", "device"]
    before_us = pl.col("ends_us").shift(1).over(place)
    follows = pl.col("begins_us").is_null() & ~pl.col("is_carried") & (before_us < pl.col("ends_us")).fill_null(False)
    behind = pl.any_horizontal(pl.col(name) < pl.col(name).shift(1).over(place) for name in ("reads", "writes"))
    return steps.with_columns(
        pl.when(follows).then(before_us).otherwise("begins_us").alias("begins_us"),
        pl.when(follows).then(behind).otherwise("is_reset").alias("is_reset"),
    )


def _is_first(names: Iterable[str]) -> pl.Expr:
    """The first row of each value of these columns, of rows sorted by them: a window over names takes three times as long."""
    return pl.any_horizontal(pl.col(name) != pl.col(name).shift(1) for name in names).fill_null(True)


def _is_near() -> pl.Expr:
    return (pl.col("begins_us") > pl.col("hour") * HOUR_US - LOOKBACK_US).fill_null(False)


def _before(name: str) -> pl.Expr:
    return pl.when(~pl.col("begins_path")).then(pl.col(name).shift(1))


def _is_watched_twice(steps: pl.DataFrame) -> bool:
    """Whether a device has several paths."""
    paths = steps.filter("begins_path")
    return paths.height > paths.select("host", "device").n_unique()


def _each_time_once(steps: pl.DataFrame) -> pl.DataFrame:
    """The steps of a device that overlap no other: in each hour those of the path that covers most of it, then what the others add.

    Those that do not count are kept where no other says what happened meanwhile.
    """
    is_several = _is_watched_twice(steps)
    steps = steps.filter(pl.col("begins_us").is_not_null())
    if not is_several:
        return steps
    hour = ["host", "device", "hour"]
    covered = steps.group_by(*hour, "path").agg((pl.col("ends_us") - pl.col("begins_us")).filter(pl.col("counts")).sum().alias("covered"))
    # of two that watch all the time the same one counts in every hour
    is_short = pl.col("covered") <= pl.col("covered").max().over(hour) - LOOKBACK_US
    covered = covered.sort(*hour, is_short, pl.when(is_short).then(-pl.col("covered")), "path").with_columns(
        pl.int_range(pl.len()).over(hour).alias("rank")
    )
    ranked = steps.join(covered.drop("covered"), on=[*hour, "path"])
    taken = ranked.clear()
    for is_counted in (True, False):
        for rank in sorted(covered["rank"].unique()):
            taken = pl.concat([taken, _free(ranked.filter(counts=is_counted, rank=rank), taken)]).sort("host", "device", "ends_us")
    return taken.drop("rank")


def _overlapping(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps of which more than half is before the end of the one before of their device."""
    before = pl.col("ends_us").shift(1).over("host", "device")
    is_within = (before - pl.col("begins_us")) * 2 > pl.col("ends_us") - pl.col("begins_us")
    return steps.sort("host", "device", "ends_us").filter(is_within)


def _free(steps: pl.DataFrame, taken: pl.DataFrame) -> pl.DataFrame:
    """Steps of one path an hour that overlap none of those taken, nor, where the path changes with the hour, each other."""
    key = ["host", "device", "path", "ends_us"]
    steps = steps.join(_overlapping(steps), on=key, how="anti").sort("ends_us")
    if not taken.height:
        return steps
    begun = taken.select("host", "device", pl.col("begins_us").alias("begun_us"), pl.col("ends_us").alias("until_us"))
    begun = begun.with_columns((pl.col("begun_us") + 1).alias("ends_us")).sort("ends_us")
    met = steps.join_asof(begun, on="ends_us", by=["host", "device"], strategy="backward", check_sortedness=False)
    return met.filter((pl.col("until_us") <= pl.col("begins_us")).fill_null(True)).select(steps.columns)


def _in_spans(steps: pl.DataFrame, part_us: int) -> pl.DataFrame:
    """Steps in order of device and time with the span of an hour, or part of it, that each is of; those that do not count are alone."""
    place = ["host", "device"]
    is_whole = pl.col("is_whole").fill_null(False) & pl.col("counts")
    # a device that was seen all the time, as most are, has a span in each hour
    is_other = _is_first(place)
    changes = (pl.col("path") != pl.col("path").shift(1)).fill_null(False) & ~is_other
    steps = steps.with_columns(is_other.cum_sum().alias("place_no"), changes.alias("changes"))
    starts, ends = (
        (pl.col("hour") != pl.col("hour").shift(step)).fill_null(True) | pl.col("place_no").ne_missing(pl.col("place_no").shift(step))
        for step in (1, -1)
    )
    is_late = starts & (pl.col("begins_us") > pl.col("hour") * part_us + LOOKBACK_US)
    is_early = ends & (pl.col("ends_us") < (pl.col("hour") + 1) * part_us - LOOKBACK_US)
    uneven = steps.filter(~is_whole | pl.col("changes") | is_late | is_early).select("place_no").unique()
    even = steps.join(uneven, on="place_no", how="anti", maintain_order="left").with_columns(
        pl.lit(1, pl.UInt32()).alias("span_no"), pl.lit(False).alias("is_long"),
        pl.lit(None, pl.Datetime("us")).alias("from_utc"), pl.lit(None, pl.Datetime("us")).alias("to_utc"),
    )  # fmt: skip
    steps = steps.join(uneven, on="place_no", how="semi", maintain_order="left")
    spans = with_spans(steps, ["place_no"], pl.col("changes"), ~pl.col("counts"), is_whole, part_us)
    spans = spans.with_columns(pl.col("span_no").cast(pl.UInt32())).select(even.columns)
    return pl.concat([even, spans]).drop("place_no", "changes")


def _behind(every: pl.DataFrame, kept: pl.DataFrame, hours: pl.DataFrame, of_hidden: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """How many readings stand behind each drive-hour (`Landing.count_samples`), and the readings of steps that count for none."""
    span, rows = ["host", "device", "hour", "span_no"], ["file_no", "row_no"]
    own = kept.select("step_no", *span).join(hours.select(*span, *rows), on=span)
    used = pl.concat([own.select("step_no", *rows), of_hidden.select("step_no", *rows)])
    named = every.select("step_no", *DRIVE, "at", "hour", "counts", "file_no").join(used, on="step_no", how="left", suffix="_of").rename(
        {"row_no": "row_no_of"}
    )  # fmt: skip
    is_free = pl.col("row_no_of").is_null()
    unused = named.filter(pl.col("counts") & is_free).select("file_no")
    # a reading that ends no step is behind the one that it begins, else the one before
    hour = [*DRIVE, "hour"]
    free = named.filter(~pl.col("counts") & is_free).drop("file_no_of", "row_no_of").sort("at")
    near = named.filter(~is_free).join(free, on=hour, how="semi").select(*hour, "at", "file_no_of", "row_no_of").sort("at")
    found = [named.filter(~is_free)]
    for strategy in ("forward", "backward"):
        met = free.join_asof(near, on="at", by=hour, strategy=strategy, check_sortedness=False)
        found.append(met.drop_nulls("row_no_of").select(named.columns))
        free = met.filter(pl.col("row_no_of").is_null()).select(free.columns)
    counted = pl.concat(found).group_by("file_no_of", "row_no_of", "file_no").agg(pl.len().cast(pl.Int64).alias("samples"))
    names = {"file_no": "of_file_no", "file_no_of": "file_no", "row_no_of": "row_no"}
    return counted.rename(names).select(*rows, "of_file_no", "samples"), unused


def _samples(spans: pl.DataFrame, part_us: int) -> pl.DataFrame:
    """The increments that drive-hours are made of, by a part of the hour; one that began before the part before belongs to none."""
    parts = spans.drop("span_no", "is_long", "from_utc", "to_utc").with_columns((pl.col("ends_us") - 1).floordiv(part_us).alias("hour"))
    is_near = pl.col("begins_us") > pl.col("hour") * part_us - min(part_us, LOOKBACK_US)
    kept = _in_spans(parts, part_us).filter(pl.col("counts") & is_near)
    totals, _ = _with_hidden(_totals(kept), kept)
    return _records(totals, part_us)


def _increment(name: str, before: pl.Expr) -> pl.Expr:
    """Gain of a counter; times in whole microseconds, so that sums do not depend on the number of readings between."""
    if name not in TIMES:
        return pl.col(name) - before
    since_us, before_us = (pl.col(name) * 1e6).round(), (before * 1e6).round()
    more, ios = since_us - before_us, pl.col(TIMES[name])
    # a time that was past half of what 32 bits hold, and falls although the I/Os did not
    has_wrapped = (more < 0) & (ios >= _before(TIMES[name])) & (before_us > WRAP_US / 2) & (before_us <= WRAP_US)
    return pl.when(has_wrapped).then(more + WRAP_US).otherwise(more)


def _of_rate(name: str, seconds: pl.Expr) -> pl.Expr:
    """Gain by a rate, or by the mean time of a byte, which held for these seconds."""
    if name not in TIMES:
        return pl.col(name) * seconds
    return (pl.col(name).fill_null(0) * 1e6 * pl.col(_BYTES_OF[name]) * seconds).round()


def _with_claims(readings: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Readings without serials that are placeholders of one device, with `is_wwn_of_none`, a world wide name of none, and `is_shared`, a
    serial of several devices at once; notes.

    `serial` stays what a device claims, a placeholder of several at once too: models judge all that has landed, and list it. A serial that
    two devices have at the same time names neither: namespaces of one SSD, or a serial that a machine made up; but paths to one drive, of
    one host, model, kind and true world wide name. Devices that swap their names, and may swap them back, have it one after the other.
    """
    fakes = {name: [one for one in readings[name].drop_nulls().unique() if is_placeholder(one)] for name in ("serial", "wwn")}
    is_none = pl.col("serial").is_in(fakes["serial"])
    readings = readings.with_columns(pl.when(is_none).then("serial").alias("none"), pl.when(~is_none).then("serial").alias("serial"))
    place, claims = ["host", "device"], ["serial", "none", "wwn", "model", "is_rotating"]
    known = readings.filter(pl.any_horizontal(pl.col("serial", "none", "wwn").is_not_null())).sort(*place, "at")
    is_another = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in (*place, *claims))
    runs = known.group_by(*place, *claims, (is_another | (pl.int_range(pl.len()) == 0)).cum_sum().alias("run")).agg(
        pl.col("at").min().alias("first"), pl.col("at").max().alias("last")
    )
    differs = {name: (pl.col(name) != pl.col(f"{name}_right")).fill_null(False) for name in ("serial", "wwn", "model", "is_rotating")}
    is_unlike = differs["model"] | differs["is_rotating"]
    of_several = _at_once(runs, "wwn").filter(differs["serial"] | is_unlike)["wwn"].unique().to_list()
    is_fake = pl.col("wwn").is_in([*fakes["wwn"], *of_several]).fill_null(False)
    met = _at_once(runs, "serial").filter(
        ~((pl.col("host") == pl.col("host_right")) & (pl.col("wwn") == pl.col("wwn_right")).fill_null(False) & ~is_fake & ~is_unlike)
    )
    why = (
        pl.when((pl.col("host") != pl.col("host_right")) & (pl.col("wwn") == pl.col("wwn_right")).fill_null(False) & ~is_fake)
        .then(pl.lit("of two hosts; they are one drive where the build finds that their counters agree"))
        .when(pl.col("host") != pl.col("host_right")).then(pl.lit("of two hosts"))
        .when(differs["model"]).then(pl.format("models {} and {}", "model", "model_right"))
        .when(differs["is_rotating"]).then(pl.lit("one rotates, the other does not"))
        .when(differs["wwn"]).then(pl.format("world wide names {} and {}", "wwn", "wwn_right"))
        .when(is_fake).then(pl.format("{} is no true world wide name", "wwn"))
        .otherwise(pl.lit("without a world wide name of both"))
    )  # fmt: skip
    said = pl.format("{} ({}/{} and {}/{}: {})", "serial", "host", "device", "host_right", "device_right", why)
    told = (
        met.sort("serial", *place, "host_right", "device_right")
        .unique("serial", keep="first", maintain_order=True)
        .select("serial", said=said)
    )
    notes = []
    if told.height:
        shown = some_of(told["said"].to_list())
        notes.append(f"{told.height} serials are shared by several devices at once, so they are not used: {shown}")
    if fakes["serial"]:
        shown = some_of(sorted(fakes["serial"]))
        notes.append(f"{len(fakes['serial'])} serials are what vendors write where there is none, so they are not used: {shown}")
    is_listed = pl.col("none").is_in(_at_once(runs, "none")["none"].unique().implode()).fill_null(False)
    is_shared = is_listed | pl.col("serial").is_in(told["serial"].implode()).fill_null(False)
    return readings.with_columns(
        (is_fake | is_listed).alias("is_wwn_of_none"),
        is_shared.alias("is_shared"),
        pl.when(is_listed).then("none").otherwise("serial").alias("serial"),
    ).drop("none"), notes


def _at_once(runs: pl.DataFrame, name: str) -> pl.DataFrame:
    """Pairs of runs of two devices that bear the same name at the same time."""
    several = runs.filter(pl.col(name).is_not_null()).filter(pl.struct("host", "device").n_unique().over(name) > 1)
    other = several.rename({column: f"{column}_right" for column in several.columns if column != name})
    is_other = (pl.col("host") != pl.col("host_right")) | (pl.col("device") != pl.col("device_right"))
    return several.join(other, on=name).with_columns(pl.col(name).alias(f"{name}_right")).filter(
        is_other & (pl.col("first") <= pl.col("last_right")) & (pl.col("first_right") <= pl.col("last"))
    )  # fmt: skip


def _totals(steps: pl.DataFrame) -> pl.DataFrame:
    """A row per device, `hour` and span with increments; named by its first reading."""
    return steps.group_by("host", "device", "hour", "span_no", maintain_order=True).agg(
        *_sums(),
        (pl.col("ends_us") - pl.col("begins_us")).sum().alias("span_us"),
        pl.col("at").max().alias("collected_at"),
        pl.col("raid_group_id").last(),
        pl.col("from_utc", "to_utc", "file_no", "row_no").first(),
    )


def _sums() -> list[pl.Expr]:
    """Sums of increments; one of what is partly unknown is unknown."""
    more = {name: pl.col(f"{name}_more") for name in COUNTERS.values()}
    return [pl.when(one.is_not_null().all()).then(one.sum()).alias(f"{name}_more") for name, one in more.items()]


def _with_hidden(totals: pl.DataFrame, steps: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Totals of drives, with the I/Os of the hidden paths of a head that counts none; and those paths' steps, with the head's row.

    A step of a path is of the span of its head that ends with it, or next.
    """
    hidden = steps.filter(is_path("device"))
    heads = totals.filter(~is_path("device"))
    if not hidden.height:
        return heads, hidden
    place = ["host", "device", "hour"]
    idle = heads.filter(pl.col("reads_more") + pl.col("writes_more") == 0)
    spans = heads.select(*place, pl.col("collected_at").alias("at"), "span_no", "file_no", "row_no").sort("at")
    on_head = hidden.drop("span_no", "file_no", "row_no").with_columns(pl.col("device").alias("hidden"), head_of("device").alias("device"))
    found = on_head.sort("at").join_asof(spans, on="at", by=place, strategy="forward", check_sortedness=False)
    found = found.join(idle, on=[*place, "span_no"], how="semi")
    summed = found.group_by(*place, "span_no").agg(one.name.suffix("_hidden") for one in _sums())
    heads = heads.join(summed, on=[*place, "span_no"], how="left", maintain_order="left").with_columns(
        pl.coalesce(f"{name}_more_hidden", f"{name}_more").alias(f"{name}_more") for name in COUNTERS.values()
    )
    return heads.select(totals.columns), found.with_columns(pl.col("hidden").alias("device"))


def _records(totals: pl.DataFrame, span_us: int) -> pl.DataFrame:
    count = {name: pl.col(f"{name}_more").round().cast(pl.Int64) for name in COUNTS}
    latency = {time: pl.when(pl.col(f"{ios}_more") > 0).then(pl.col(f"{time}_more") / pl.col(f"{ios}_more")) for time, ios in TIMES.items()}
    return totals.select(
        (pl.col("hour") * span_us).cast(pl.Datetime("us")).alias("hour_utc"),
        pl.concat_str("host", pl.lit("/"), "device").alias("drive_id"),
        pl.coalesce("raid_group_id", "host").alias("raid_group_id"),
        count["reads"].alias("read_ios"),
        count["writes"].alias("write_ios"),
        latency["read_seconds"].alias("read_latency_us"),
        latency["write_seconds"].alias("write_latency_us"),
        pl.when(pl.col("written_bytes_more").is_not_null()).then(count["read_bytes"]).alias("read_blocks"),
        pl.when(pl.col("read_bytes_more").is_not_null()).then(count["written_bytes"]).alias("write_blocks"),
        pl.lit(1, pl.Int64()).alias("block_bytes"),
        (pl.col("span_us") / span_us).clip(upper_bound=1.0).alias("coverage"),
        "collected_at",
        pl.lit(True).alias("is_alias"),
        pl.col("raid_group_id").is_null().alias("is_group_guessed"),
        "from_utc",
        "to_utc",
        "file_no",
        "row_no",
    ).sort("hour_utc", "drive_id", "collected_at")


def _periods(readings: pl.DataFrame) -> pl.DataFrame:
    """Runs of readings of one device with one identity: the first reading's row, `valid_from`, and `valid_to`, the last reading's instant,
    where another identity came.
    """
    place = ["host", "device"]
    facts = list(IDENTITY)
    # of what is carried the last of a device says who is there
    ordered = readings.filter(~pl.col("is_carried") | pl.col("since").is_not_null()).sort(*place, "at", "path")
    several = ordered.group_by(place).agg((pl.col("path").n_unique() > 1).any().alias("several")).filter("several")
    if several.height:
        # an exporter that does not know the drive says nothing of it beside one that does
        knows = pl.col("serial").is_not_null().any()
        ordered = ordered.filter(~knows.over(place) | knows.over(*DRIVE)).with_columns(
            pl.col(name).forward_fill().over(*place, "serial") for name in ("wwn", "model", "firmware", "is_rotating")
        )
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in (*place, *facts)) | (pl.int_range(pl.len()) == 0)
    ordered = ordered.with_columns(changes.cum_sum().alias("run"))
    runs = ordered.group_by("run", maintain_order=True).agg(pl.exclude("run").first(), pl.col("at").last().alias("last_at"))
    return runs.with_columns(
        pl.coalesce("since", "at").alias("valid_from"),
        pl.when(pl.col("at").shift(-1).over(place).is_not_null()).then("last_at").alias("valid_to"),
    )


def _last(readings: pl.DataFrame, periods: pl.DataFrame) -> pl.DataFrame:
    """The last reading of every path, of the last of each device since when it is what it is (CARRIED)."""
    place = ["host", "device"]
    running = periods.sort("at", "path").unique(place, keep="last").select(*place, "valid_from", "file_no", "row_no")
    last = readings.sort("at", "path").unique([*place, "path"], keep="last", maintain_order=True)
    is_latest = pl.int_range(pl.len()).over(place) == pl.len().over(place) - 1
    named = last.drop("file_no", "row_no").join(running, on=place)
    return named.with_columns(pl.lit(True).alias("is_carried"), pl.when(is_latest).then(pl.col("valid_from")).alias("since"))


def _drives(periods: pl.DataFrame) -> pl.DataFrame:
    is_ssd = pl.col("device").str.starts_with("nvme") | ~pl.col("is_rotating")
    kind = pl.when(is_ssd).then(pl.lit("ssd")).when(pl.col("is_rotating")).then(pl.lit("disk"))
    place = pl.concat_str("host", pl.lit("/"), "device")
    return periods.select(
        place.alias("drive_id"),
        pl.coalesce("raid_group_id", "host").alias("raid_group_id"),
        pl.col("role").fill_null("data").alias("role"),
        "slot",
        "enclosure",
        kind.alias("kind"),
        "model",
        "firmware",
        pl.when(pl.col("device").str.starts_with("nvme")).then(pl.lit("NVMe")).alias("interface"),
        "host",
        "valid_from",
        "valid_to",
        pl.lit(True).alias("is_alias"),
        pl.col("raid_group_id").is_null().alias("is_group_guessed"),
        "array_name",
        place.alias("seen_as"),
        "file_no",
        "row_no",
    )


def _aliases(periods: pl.DataFrame) -> pl.DataFrame:
    """HOST/DEVICE and wwn:... -> serial, for every period in which the serial is known; of a serial of several devices at once also up to
    the last reading, so that models see that they had it together.
    """
    together = pl.when("is_shared", pl.col("last_at") > pl.col("valid_from")).then("last_at")
    periods = periods.with_columns(pl.coalesce("valid_to", together).alias("valid_to"), pl.col("valid_to").is_null().alias("is_open"))
    known = periods.filter(pl.col("serial").is_not_null())
    alias = pl.concat_str("host", pl.lit("/"), "device")
    # two records of a reading: below 0 the second, which another path's may equal while the first is its own
    names = {1: alias, -1: pl.concat_str(pl.lit("wwn:"), pl.when(~pl.col("is_wwn_of_none")).then("wwn"))}
    frames = [
        known.select(
            name.alias("alias"),
            pl.col("serial").alias("drive_id"),
            "valid_from",
            "valid_to",
            alias.alias("seen_as"),
            (pl.col("is_open") & pl.col("is_shared")).alias("is_together"),
            "file_no",
            pl.col("row_no") * sign,
        ).filter(pl.col("alias").is_not_null())
        for sign, name in names.items()
    ]
    return pl.concat(frames)


def _came(readings: pl.DataFrame, begins: datetime | None) -> pl.DataFrame:
    """The first reading of each device that came after its host's others, or long after readings were asked for (`begins`)."""
    first = readings.filter(_is_first(DRIVE)).sort("at", maintain_order=True).unique(["host", "device"], keep="first", maintain_order=True)
    since = pl.lit(begins, pl.Datetime("us")) if begins else pl.col("at").min().over("host")
    return first.filter(~pl.col("is_carried") & (pl.col("at") > since + timedelta(microseconds=LOOKBACK_US)))


def _cuts(spans: pl.DataFrame, came: pl.DataFrame, readings: pl.DataFrame, periods: pl.DataFrame) -> pl.DataFrame:
    """Cuts of names (`drive_aliases`): where a device came, where its counters began again, and at both ends of a gap.

    Where the exporter reports another serial number at that reading, its own record is enough. Where it reports the same or a later one, a
    record is added then. Where none is reported within LOOKBACK_US, the earlier drive is no longer seen: the cut begins just after its
    last reading, and has an end (`valid_to`).
    """
    place, rows = ["host", "device"], ["file_no", "row_no"]
    begun = periods.sort(*place, "valid_from").select(
        *place,
        pl.col("valid_from").alias("at"),
        "is_shown",
        (pl.col("is_shown") & pl.col("serial").is_not_null()).alias("is_said"),
        pl.col("serial").is_null().shift(1).over(place).fill_null(False).alias("is_after_unnamed"),
    )
    named = readings.filter(pl.col("serial").is_not_null()).sort("at").select(
        *place, pl.col("at").alias("named_at"), "serial", *(pl.col(name).alias(f"{name}_named") for name in rows)
    )  # fmt: skip
    came = came.with_columns(pl.lit(None, pl.Int64()).alias("begins_us"), is_reset=pl.lit(True))
    columns = [*place, "at", "begins_us", "is_reset", *rows]
    cuts = pl.concat([spans.filter(pl.col("is_reset") | pl.col("is_long")).select(columns), came.select(columns)])
    cuts = cuts.filter(~is_path("device")).join(begun.unique([*place, "at"]), on=[*place, "at"], how="left").sort("at")
    cuts = cuts.filter(~pl.col("is_said").fill_null(False) | pl.col("is_after_unnamed"))
    cuts = cuts.join_asof(named, left_on="at", right_on="named_at", by=place, strategy="forward", coalesce=False, check_sortedness=False)
    # where two exporters watch a drive, the one that was scraped first may not know its serial number
    is_near = (pl.col("named_at") - pl.col("at") <= timedelta(microseconds=LOOKBACK_US)).fill_null(False)
    cuts = cuts.with_columns((pl.col("is_reset") & (~is_near | ~pl.col("is_shown").fill_null(True))).alias("is_end"))
    begun_at = pl.col("begins_us").cast(pl.Datetime("us"))
    begins = cuts.filter(~pl.col("is_reset") & pl.col("begins_us").is_not_null()).with_columns(begun_at.alias("at"), -pl.col("row_no"))
    # raw keeps one record of a name at an instant, so cuts and a serial number of one scrape are microseconds apart
    instant = timedelta(microseconds=1)
    found = pl.concat([
        cuts.with_columns(pl.when("is_said").then(pl.col("at") - instant).otherwise("at").alias("at")),
        begins,
    ]).unique([*place, "at"], keep="first", maintain_order=True)  # fmt: skip
    is_later = (pl.col("named_at") >= pl.col("at").shift(-1).over(place)).fill_null(False)
    again = cuts.filter("is_reset", pl.col("serial").is_not_null(), ~is_later).join(
        begun.filter("is_said"), left_on=[*place, "named_at"], right_on=[*place, "at"], how="anti"
    )
    is_same = pl.col("named_at") == pl.col("at")
    again = again.with_columns(
        (pl.col("named_at") + instant).alias("at"),
        pl.when(is_same).then("file_no").otherwise("file_no_named").alias("file_no"),
        pl.when(is_same).then(-pl.col("row_no")).otherwise("row_no_named").alias("row_no"),
    )
    alias = pl.concat_str("host", pl.lit("/"), "device")
    return pl.concat([found.with_columns(serial=pl.lit(None, pl.String())), again.with_columns(is_end=False)]).select(
        alias.alias("alias"),
        pl.col("serial").alias("drive_id"),
        pl.when("is_end").then(pl.coalesce(begun_at + 2 * instant, "at")).otherwise("at").alias("valid_from"),
        pl.when("is_end").then("at").alias("valid_to"),
        alias.alias("seen_as"),
        pl.lit(False).alias("is_together"),
        "file_no",
        "row_no",
    )

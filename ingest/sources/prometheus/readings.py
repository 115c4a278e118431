"""Readings of a drive's counters -> drive-hours, inventory and aliases.

A *reading* is one scrape of one drive: node_exporter's counters since boot, and who the drive is. Two readings,
one after the other, give what happened between them, exactly: nothing is extrapolated. That increment counts for the hour in
which the later reading was taken, (H, H + 1 h]; so hours add up, and an hour is off by what was done in less than one scrape
interval at either end. Latency is the time over the I/Os of the same increments.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from ingest.reading.devices import head_of, host_of, is_path
from ingest.reading.overlap import behind
from ingest.reading.parse import HOUR_US, Check

# As far back as Prometheus itself looks for a sample (--query.lookback-delta). An increment that began earlier than this
# before its hour may belong to hours without a scrape, so it counts for none.
LOOKBACK_US = 300_000_000
# The kernel prints the time of a drive's I/Os in milliseconds as 32 bits.
WRAP_US = 2**32 * 1000

COUNTERS: dict[str, str] = {
    "node_disk_reads_completed_total": "reads",
    "node_disk_writes_completed_total": "writes",
    "node_disk_read_time_seconds_total": "read_seconds",
    "node_disk_write_time_seconds_total": "write_seconds",
    "node_disk_read_bytes_total": "read_bytes",
    "node_disk_written_bytes_total": "written_bytes",
}
NEEDED = ("reads", "writes", "read_seconds", "write_seconds")
COUNTS = ("reads", "writes", "read_bytes", "written_bytes")
TIMES = {"read_seconds": "reads", "write_seconds": "writes"}
METRIC = {column: metric for metric, column in COUNTERS.items()}

# `path` distinguishes scrape jobs or replicas that watch the same drive: its labels.
DRIVE: dict[str, pl.DataType] = {"host": pl.String(), "device": pl.String(), "path": pl.String()}
# Who the drive is, as far as the scrape says; raid_group_id null = not known.
IDENTITY: dict[str, pl.DataType] = {
    **dict.fromkeys(("serial", "wwn", "model", "firmware"), pl.String()),
    "is_rotating": pl.Boolean(),
    "raid_group_id": pl.String(),
    "role": pl.String(),
}
READING: dict[str, pl.DataType] = {
    **DRIVE,
    "at": pl.Datetime("us"),
    **dict.fromkeys(COUNTERS.values(), pl.Float64()),
    **IDENTITY,
}
# for a reading that is the last of its path before those that are rolled up: `is_carried`, and of the last of its device since when the
# drive is what it is; file_no and row_no are those of the reading that showed it first.
CARRIED: dict[str, pl.DataType] = {"is_carried": pl.Boolean(), "since": pl.Datetime("us")}


@dataclass
class Rolled:
    """The records made from readings. Frames have the contract's columns as far as known, `file_no` and `row_no`.

    `drives` and `aliases` have `seen_as` too, what the drive-hours of the place are named (HOST/DEVICE).
    `samples`: drive-hours' columns by a part of an hour, `hour_utc` being where it begins; null without `--resolution`.
    `behind`: how many readings stand behind each drive-hour (file_no, row_no of the drive-hour; of_file_no, samples). `unused`: readings of
    another path than the one that counts in its hour (file_no). `last`: the readings that those after them are to follow (CARRIED).
    """

    drive_hours: pl.DataFrame
    drives: pl.DataFrame
    aliases: pl.DataFrame
    behind: pl.DataFrame
    unused: pl.DataFrame
    last: pl.DataFrame
    samples: pl.DataFrame | None = None
    notes: list[str] = field(default_factory=list)


def checks() -> list[Check]:
    """Rules of a reading: its counters are there, finite, not negative, and I/Os and bytes whole."""
    found: list[Check] = []
    for name in COUNTERS.values():
        value = pl.col(name)
        if name in NEEDED:
            found.append(Check(name, f"no {METRIC[name]} among the counters of the drive", value.is_null()))
        found.append(Check(name, "NaN", value.is_nan()))
        found.append(Check(name, "infinite", value.is_infinite()))
        found.append(Check(name, "negative", value < 0))
        found.append(Check(name, "above 2^53, more than a drive can count", value > 2**53))
        if name in COUNTS:
            found.append(Check(name, "not a whole number", value != value.floor()))
    return found


def named_hosts(instances: list[str]) -> dict[str, str]:
    """Scrape target -> host: without its port, but where two targets of one host differ in it only."""
    hosts = {instance: host_of(instance) for instance in set(instances)}
    shared = {host for host in hosts.values() if sum(other == host for other in hosts.values()) > 1}
    return {instance: instance if host in shared else host for instance, host in hosts.items()}


def roll_up(readings: pl.DataFrame, sample_seconds: int | None = None) -> Rolled:
    """Good readings (READING, CARRIED, `file_no`, `row_no`), one per drive, path and instant -> drive-hours and who the drives are.

    sample_seconds: of what drive-hours were made, samples of that length as well.

    A counter that falls was reset (a boot, a drive replaced): the increment is left out, and its time not covered. One of time
    that falls while its I/Os go on has run over its 32 bits. Where several paths watch a drive, the one that covers most
    of an hour counts for it. A hidden path of a multipath NVMe namespace counts where the head counts no I/O.

    Hours are named HOST/DEVICE, so that those of two devices never meet; only in an hour in which a place had several drives by serial.
    """
    columns = readings.columns
    # a hidden path shares the serial of its head
    readings = readings.with_columns(pl.when(~is_path("device")).then(pl.col("serial")).alias("serial"))
    readings, notes = _with_drive_id(readings.sort(*DRIVE, "at"))
    before = {name: pl.col(name).shift(1).over(*DRIVE, "drive_id") for name in ("at", *COUNTERS.values())}
    steps = readings.with_columns(
        # an instant on the hour ends the hour before
        ((pl.col("at").to_physical() - 1) // HOUR_US).alias("hour"),
        (pl.col("at").to_physical() - before["at"].to_physical()).alias("span_us"),
        *(_increment(name, before[name]).alias(f"{name}_more") for name in COUNTERS.values()),
    )
    begins_us = pl.col("at").to_physical() - pl.col("span_us")
    is_reset = pl.any_horizontal((pl.col(f"{name}_more") < 0).fill_null(False) for name in COUNTERS.values())
    steps = steps.with_columns(
        (pl.col("span_us").is_not_null() & ~is_reset & (begins_us > pl.col("hour") * HOUR_US - LOOKBACK_US)).alias("counts"),
        begins_us.alias("begins_us"),
        (pl.col("drive_id").n_unique().over("host", "device", "hour") > 1).alias("is_swapped"),
    )
    hours, paths = _with_paths(_best(_totals(steps.with_columns(pl.col("hour").alias("span")))))
    place = [*DRIVE, "drive_id", "hour"]
    used = pl.concat([hours, paths]).rename({"span": "hour"}).select(*place, "file_no", "row_no")
    counts = behind(steps, used, place)
    # a path that gave no increment in an hour, such as the first reading of all, is never the one left out
    unused = steps.filter("counts").join(used, on=place, how="anti").select("file_no")
    periods = _periods(readings)
    samples = None if sample_seconds is None else _samples(steps.join(used, on=place, how="semi"), sample_seconds)
    last = _last(readings, periods).select(columns)
    shown = periods.filter(~is_path("device"))
    return Rolled(_records(hours, HOUR_US), _drives(shown), _aliases(shown), counts, unused, last, samples, notes)


def _samples(steps: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """The increments that drive-hours are made of, by a part of the hour; one that began before the part before belongs to none."""
    span_us = seconds * 1_000_000
    parts = steps.with_columns(((pl.col("at").to_physical() - 1) // span_us).alias("span"))
    is_near = pl.col("begins_us") > pl.col("span") * span_us - min(span_us, LOOKBACK_US)
    totals, _ = _with_paths(_totals(parts.filter(is_near)))
    return _records(totals, span_us)


def _increment(name: str, before: pl.Expr) -> pl.Expr:
    """Gain of a counter; times in whole microseconds, so that sums do not depend on the number of readings between."""
    if name not in TIMES:
        return pl.col(name) - before
    since_us, before_us = (pl.col(name) * 1e6).round(), (before * 1e6).round()
    more, ios = since_us - before_us, pl.col(TIMES[name])
    # a time that was past half of what 32 bits hold, and falls although the I/Os did not
    has_wrapped = (more < 0) & (ios >= ios.shift(1).over(*DRIVE, "drive_id")) & (before_us > WRAP_US / 2) & (before_us <= WRAP_US)
    return pl.when(has_wrapped).then(more + WRAP_US).otherwise(more)


def _with_drive_id(readings: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Readings with `drive_id`, the serial or else HOST/DEVICE, and `is_alias`.

    A serial that two devices have at the same time names neither: namespaces of one SSD, or a serial that a machine made up. Paths to one
    drive, of one host and one world wide name, keep it. `serial` stays what a device claims: models judge all that has landed. Devices that
    swap their names, and may swap them back, have it one after the other.
    """
    known = readings.filter(pl.col("serial").is_not_null()).sort("host", "device", "at")
    is_another = pl.any_horizontal(pl.col(name) != pl.col(name).shift(1) for name in ("host", "device", "serial")).fill_null(True)
    spans = known.group_by("serial", "host", "device", is_another.cum_sum().alias("run")).agg(
        pl.col("at").min().alias("first"), pl.col("at").max().alias("last"), pl.col("wwn").last()
    )
    is_other = (pl.col("host") != pl.col("host_right")) | (pl.col("device") != pl.col("device_right"))
    is_path_of_one = (pl.col("host") == pl.col("host_right")) & (pl.col("wwn") == pl.col("wwn_right")).fill_null(False)
    met = spans.join(spans, on="serial").filter(
        is_other & ~is_path_of_one & (pl.col("first") <= pl.col("last_right")) & (pl.col("first_right") <= pl.col("last"))
    )
    shared = met["serial"].unique().sort()
    alias = pl.concat_str("host", pl.lit("/"), "device")
    # who was named before they met was
    serial = pl.when(~pl.col("serial").is_in(shared.implode()) | pl.col("is_carried")).then(pl.col("serial"))
    named = readings.with_columns(pl.coalesce(serial, alias).alias("drive_id"), serial.is_null().alias("is_alias"))
    if not shared.len():
        return named, []
    shown = ", ".join(shared.head(5).to_list()) + (f" and {shared.len() - 5} more" if shared.len() > 5 else "")
    return named, [f"{shared.len()} serials are shared by several devices at once, so they are not used: {shown}"]


def _totals(steps: pl.DataFrame) -> pl.DataFrame:
    """A row per drive, path and `span` with increments; named by its first reading."""
    return (
        steps.sort(*DRIVE, "drive_id", "at")
        .filter("counts")
        .group_by("drive_id", "is_alias", *DRIVE, "span", maintain_order=True)
        .agg(
            *(pl.col(f"{name}_more").sum() for name in NEEDED),
            # a sum of what is partly unknown is unknown
            *(
                pl.when(pl.col(f"{name}_more").is_not_null().all()).then(pl.col(f"{name}_more").sum()).alias(f"{name}_more")
                for name in COUNTS
                if name not in NEEDED
            ),
            pl.col("span_us").sum(),
            pl.col("at").max().alias("collected_at"),
            pl.col("raid_group_id").last(),
            pl.col("is_swapped").last(),
            pl.col("file_no").first(),
            pl.col("row_no").first(),
        )
    )


def _with_paths(totals: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Totals of drives, with the I/Os of the hidden paths of a head that counts none; and those paths' totals, with the head's row."""
    gained = [f"{name}_more" for name in COUNTERS.values()]
    place = ["host", "device", "span"]
    heads, paths = totals.filter(~is_path("device")), totals.filter(is_path("device")).with_columns(head_of("device").alias("head"))
    idle = heads.filter(pl.col("reads_more") + pl.col("writes_more") == 0).unique(place, keep="last", maintain_order=True)
    found = paths.join(
        idle.select(*place, pl.col("file_no").alias("head_file_no"), pl.col("row_no").alias("head_row_no")),
        left_on=["host", "head", "span"], right_on=place,
    )  # fmt: skip
    summed = found.group_by("host", "head", "span").agg(
        pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(f"{name}_of_paths") for name in gained
    )
    keys = idle.select(*place, "drive_id").join(summed, left_on=place, right_on=["host", "head", "span"])
    heads = heads.join(keys, on=[*place, "drive_id"], how="left", maintain_order="left").with_columns(
        pl.coalesce(f"{name}_of_paths", name).alias(name) for name in gained
    )
    return heads.select(totals.columns), found.with_columns(file_no="head_file_no", row_no="head_row_no").select(totals.columns)


def _best(by_path: pl.DataFrame) -> pl.DataFrame:
    """The path to a drive that covers most of the span."""
    best = by_path.sort("drive_id", "span", "span_us", "path", descending=[False, False, True, False])
    return best.unique(["host", "device", "drive_id", "span"], keep="first", maintain_order=True)


def _records(totals: pl.DataFrame, span_us: int) -> pl.DataFrame:
    count = {name: pl.col(f"{name}_more").round().cast(pl.Int64) for name in COUNTS}
    latency = {time: pl.when(pl.col(f"{ios}_more") > 0).then(pl.col(f"{time}_more") / pl.col(f"{ios}_more")) for time, ios in TIMES.items()}
    alias = pl.concat_str("host", pl.lit("/"), "device")
    return (
        totals.with_columns(
            pl.when("is_swapped").then("drive_id").otherwise(alias).alias("drive_id"), ~pl.col("is_swapped") | pl.col("is_alias")
        )
        .select(
            (pl.col("span") * span_us).cast(pl.Datetime("us")).alias("hour_utc"),
            "drive_id",
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
            "is_alias",
            pl.col("raid_group_id").is_null().alias("is_group_guessed"),
            "file_no",
            "row_no",
        )
        .sort("hour_utc", "drive_id")
    )


def _periods(readings: pl.DataFrame) -> pl.DataFrame:
    """Runs of readings of one device with one identity: the first reading's row, `valid_from`, and `valid_to` where another came."""
    facts = ["drive_id", "is_alias", "serial", "wwn", "model", "firmware", "is_rotating", "raid_group_id", "role"]
    # of what is carried the last of a device says who is there
    ordered = readings.filter(~pl.col("is_carried") | pl.col("since").is_not_null()).sort("host", "device", "at", "path")
    place = ["host", "device"]
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in (*place, *facts))
    starts = ordered.filter(changes | (pl.int_range(pl.len()) == 0))
    return starts.with_columns(
        pl.coalesce("since", pl.col("at").dt.truncate("1h")).alias("valid_from"),
        pl.col("at").shift(-1).over(place).dt.truncate("1h").alias("valid_to"),
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
    return periods.select(
        "drive_id",
        pl.coalesce("raid_group_id", "host").alias("raid_group_id"),
        pl.col("role").fill_null("data").alias("role"),
        kind.alias("kind"),
        "model",
        "firmware",
        pl.when(pl.col("device").str.starts_with("nvme")).then(pl.lit("NVMe")).alias("interface"),
        "host",
        "valid_from",
        "valid_to",
        "is_alias",
        pl.col("raid_group_id").is_null().alias("is_group_guessed"),
        pl.concat_str("host", pl.lit("/"), "device").alias("seen_as"),
        "file_no",
        "row_no",
    )


def _aliases(periods: pl.DataFrame) -> pl.DataFrame:
    """HOST/DEVICE and wwn:... -> serial, for every period in which the serial is known."""
    # a drive that was gone within the hour it came in has no hour of its own
    lasts = pl.col("valid_to").is_null() | (pl.col("valid_to") > pl.col("valid_from"))
    known = periods.filter(pl.col("serial").is_not_null() & lasts)
    alias = pl.concat_str("host", pl.lit("/"), "device")
    # two records of a reading: below 0 the second, which another path's may equal while the first is its own
    names = {1: alias, -1: pl.concat_str(pl.lit("wwn:"), "wwn")}
    frames = [
        known.select(
            name.alias("alias"),
            pl.col("serial").alias("drive_id"),
            "valid_from",
            "valid_to",
            alias.alias("seen_as"),
            "file_no",
            pl.col("row_no") * sign,
        ).filter(pl.col("alias").is_not_null())
        for sign, name in names.items()
    ]
    return pl.concat(frames)

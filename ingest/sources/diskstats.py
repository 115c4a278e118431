"""Source `diskstats`: snapshots of `/proc/diskstats`, each below a line `TS seconds`, rolled up to drive-hours.

What a drive's counters gained from one snapshot to the next belongs to the hour the interval ends in. Latency is the milliseconds
the kernel counted over the I/Os it completed, for each direction. A reboot, a gap, or a counter that cannot be explained costs
its interval; coverage is the share of the hour that the other intervals make up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from ingest.reading.batches import Batch, Rejection, rejections
from ingest.reading.devices import head_of, is_hidden_path, is_no_drive, is_path, is_whole_drive, known_by_device
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import host_of, looks, read_text
from ingest.reading.overlap import behind, take_back
from ingest.reading.parse import completed
from ingest.reading.resolution import HOUR_SECONDS, as_samples, seconds_of

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "HOST/diskstats*: snapshots of /proc/diskstats, each below a line `TS seconds`"
recognise = named("snapshots", "diskstats.*")
SECTOR_BYTES = 512
MAX_GAP_SECONDS = 900
"""Snapshots further apart say too little of when the I/Os were, unless one hour holds both."""

# of major, minor, name and 11 (2.6), 15 (4.18) or 17 (5.5) counters; 4 were those of a partition before 2.6.25
WIDTHS = (14, 18, 20)
"""Fields of a line of a whole drive, and since 2.6.25 of a partition."""
_PARTITION_WIDTH = 7
_COUNTERS = {"read_ios": 3, "read_sectors": 5, "read_ms": 6, "write_ios": 7, "write_sectors": 9, "write_ms": 10}
_WRAP = 2**32
_MOST = 2**53
_EPOCH = datetime(1970, 1, 1)

SNAPSHOT: dict[str, pl.DataType] = {
    "host": pl.String(),
    "device": pl.String(),
    "at": pl.Float64(),
    **dict.fromkeys(_COUNTERS, pl.Int64()),
    "file_no": pl.Int64(),
    "row_no": pl.Int64(),
}


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every snapshot, take the differences of each drive over all files of its host, and stage its hours.

    Counts are in lines of drives; those of partitions, loop, ram, dm and md devices are not drives and not counted. A path of a
    multipath NVMe namespace counts: as a duplicate where its head counted the same I/Os.
    """
    seconds = seconds_of(landing.options)
    read = [rows.select(*SNAPSHOT) for rows in landing.read(files, _batches)]
    # the first of one drive and instant stands; a collector repeats the last snapshot it delivered
    snapshots = pl.concat([pl.DataFrame(schema=SNAPSHOT), *read]).sort("host", "device", "at", "file_no", "row_no")
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in ("host", "device", "at")).fill_null(False)
    take_back(snapshots.filter(same), landing.by_no, "rows_duplicate")
    intervals, again = with_paths(counted(snapshots.filter(~same)))
    take_back(again, landing.by_no, "rows_duplicate")
    hours, counts = roll_up(intervals)
    if hours.height:
        landing.accept("drive_hours", hours, None)
        if landing.kind is not None:
            landing.accept("drives", known_by_device(intervals.sort("host", "device", "at", "file_no", "row_no")), None)
        landing.count_samples(counts)
        if seconds is not None:
            landing.accept("drive_samples", as_samples(totals(intervals, seconds), seconds), None)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    rows, rejected = _snapshots(file)
    yield Batch(None, rows, rejections(rejected))


def _snapshots(file: SourceFile) -> tuple[pl.DataFrame, list[Rejection]]:
    """The lines of drives in a file, and those that are cut off or garbled."""
    host = host_of(file)
    found: dict[str, list[object]] = {name: [] for name in SNAPSHOT if name != "file_no"}
    rejected: list[Rejection] = []
    for look in looks(read_text(file)):
        at = (look.at - _EPOCH).total_seconds()
        for number, line in look.lines:
            fields = line.split()
            if not fields or _is_of_no_drive(fields):
                continue
            device = fields[2] if len(fields) > 2 and (is_whole_drive(fields[2]) or is_hidden_path(fields[2])) else "device"
            if len(fields) not in WIDTHS:
                rejected.append((number, f"{len(fields)} fields, expected 14, 18 or 20", device, line))
                continue
            if device == "device" or not (fields[0].isdecimal() and fields[1].isdecimal()):
                rejected.append((number, "no numbers and name of a device known here; is another text within it?", device, line))
                continue
            try:
                values = {name: int(fields[place]) for name, place in _COUNTERS.items()}
            except ValueError:
                values = {}
            if not values or not all(0 <= value <= _MOST for value in values.values()):
                rejected.append((number, "a counter is no whole number up to 2^53", device, line))
                continue
            for name, value in {"host": host, "device": device, "at": at, "row_no": number, **values}.items():
                found[name].append(value)
    return pl.DataFrame(found, schema={name: dtype for name, dtype in SNAPSHOT.items() if name != "file_no"}), rejected


def _is_of_no_drive(fields: list[str]) -> bool:
    """Whether a line is whole and of a partition, or of what is made of other devices; a line that is not whole may be a drive's."""
    if len(fields) not in (_PARTITION_WIDTH, *WIDTHS) or not is_no_drive(fields[2]) or is_hidden_path(fields[2]):
        return False
    return all(field.lstrip("-").isdecimal() for field in (*fields[:2], *fields[3:]))


def counted(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Snapshots in order of host, device and instant (columns of `SNAPSHOT`) -> the intervals that count, with what was gained in each."""
    before = {name: pl.col(name).shift(1).over("host", "device") for name in ("at", *_COUNTERS)}
    gained = snapshots.with_columns(
        (pl.col("at") - before["at"]).alias("seconds"),
        *((pl.col(name) - before[name]).alias(f"d_{name}") for name in _COUNTERS),
        *(before[name].alias(f"b_{name}") for name in _COUNTERS),
        ((pl.col("at") - 1e-6) // 3600).cast(pl.Int64).alias("hour"),
    ).filter(pl.col("seconds").is_not_null())
    # a counter of 32 bits started again at 0 where it stood in its last quarter, is in its first now, and another one went on
    fell = {name: pl.col(f"d_{name}") < 0 for name in _COUNTERS}
    wrapped = {
        name: fell[name] & (pl.col(f"b_{name}") >= _WRAP * 3 // 4) & (pl.col(f"b_{name}") < _WRAP) & (pl.col(name) < _WRAP // 4)
        for name in _COUNTERS
    }
    went_on = pl.any_horizontal((pl.col(f"d_{name}") >= 0) & (pl.col(f"b_{name}") > 0) for name in _COUNTERS)
    is_reset = pl.any_horizontal(fell[name] & ~(wrapped[name] & went_on) for name in _COUNTERS)
    is_near = (pl.col("seconds") <= MAX_GAP_SECONDS) | ((pl.col("at") - pl.col("seconds")) >= pl.col("hour") * 3600)
    return gained.filter(~is_reset & is_near & (pl.col("seconds") > 0)).with_columns(
        pl.when(wrapped[name]).then(pl.col(f"d_{name}") + _WRAP).otherwise(pl.col(f"d_{name}")).alias(f"d_{name}") for name in _COUNTERS
    )


def with_paths(intervals: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Intervals (of `counted`) -> those of drives, and those left out, of paths whose head counted the same I/Os. Adds `covered_seconds`.

    Where the head counts no I/O in an hour, its hidden paths' intervals are its own: their I/Os add up, its own intervals cover the time.
    """
    place = ["host", "device", "hour"]
    heads = intervals.filter(~is_path("device")).with_columns(pl.col("seconds").alias("covered_seconds"))
    paths = intervals.filter(is_path("device"))
    share = pl.col("seconds") / pl.col("device").n_unique().over("host", head_of("device"), "hour")
    paths = paths.with_columns(share.alias("covered_seconds")).with_columns(head_of("device").alias("device"))
    ios = heads.group_by(place).agg((pl.col("d_read_ios") + pl.col("d_write_ios")).sum().alias("head_ios"))
    paths = paths.join(ios, on=place, how="left", maintain_order="left")
    used = paths.filter(pl.col("head_ios").fill_null(0) == 0).with_columns(
        pl.when(pl.col("head_ios").is_null()).then("covered_seconds").otherwise(0.0).alias("covered_seconds")
    )
    return pl.concat([heads, used.drop("head_ios")]), paths.filter(pl.col("head_ios") > 0)


def roll_up(intervals: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Intervals -> drive-hours, and the lines behind each."""
    hours = totals(intervals, HOUR_SECONDS)
    return completed(hours, "drive_hours"), behind(intervals, hours.rename({"span": "hour"}), ["host", "device", "hour"])


def totals(intervals: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Intervals -> what each drive did in an hour, or in each sample of it.

    A part of an hour has no interval that began before the part before. A row is named by the file and row of the snapshot that ends
    its first interval; `hour_utc` is where it begins.
    """
    spans = intervals.with_columns(((pl.col("at") - 1e-6) // seconds).cast(pl.Int64).alias("span"))
    if seconds < HOUR_SECONDS:
        spans = spans.filter(pl.col("at") - pl.col("seconds") > (pl.col("span") - 1) * seconds)
    # milliseconds without an I/O to share them are those of requests still under way; they come with the I/Os of a later interval
    rows = (
        spans.group_by("host", "device", "span", maintain_order=True)
        .agg(
            *(pl.col(f"d_{name}").sum().alias(name) for name in _COUNTERS),
            pl.col("covered_seconds").sum().alias("seconds"),
            pl.col("at").max(),
            pl.col("file_no").first(),
            pl.col("row_no").first(),
        )
        .sort("span", "host", "device")
    )
    latencies = [
        pl.when(pl.col(f"{way}_ios") > 0).then(pl.col(f"{way}_ms") * 1000.0 / pl.col(f"{way}_ios")).alias(f"{way}_latency_us")
        for way in ("read", "write")
    ]
    return rows.with_columns(
        *latencies,
        (pl.col("span") * (seconds * 1_000_000)).cast(pl.Datetime("us")).alias("hour_utc"),
        (pl.col("host") + "/" + pl.col("device")).alias("drive_id"),
        pl.col("host").alias("raid_group_id"),
        pl.col("read_sectors").alias("read_blocks"),
        pl.col("write_sectors").alias("write_blocks"),
        pl.lit(SECTOR_BYTES, pl.Int64()).alias("block_bytes"),
        (pl.col("seconds") / seconds).clip(upper_bound=1.0).alias("coverage"),
        (pl.col("at") * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us")).alias("collected_at"),
        pl.lit(True).alias("is_alias"),
        pl.lit(True).alias("is_group_guessed"),
    )

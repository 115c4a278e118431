"""Source `perseus`: Alibaba's fail-slow set, samples of 15 seconds rolled up to drive-hours.

Layout: `cluster_X/host_N/DATE.csv[.gz]` with ts (unix seconds, the END of the interval), disk_id, throughput (bytes/s)
and latency (microseconds). The peers of a drive are the drives of its host, so the host is the RAID group. There is no
I/O count: the hour's latency is the plain mean of its samples, zeros included, and its coverage the samples over 240.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ingest.contract.fleet import Layout
from ingest.reading.batches import Batch, read_table
from ingest.reading.files import SourceFile
from ingest.reading.overlap import behind, take_back
from ingest.reading.parse import Check, completed, convert, negative_checks, null_checks, split, type_checks
from ingest.reading.readers import RawChunk, format_of
from ingest.reading.resolution import HOUR_SECONDS, as_samples, seconds_of

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "cluster_*/host_*/DATE.csv or .csv.gz (give the root, a cluster, a host or a file)"
SAMPLE_SECONDS = 15
FLUSH_ROWS = 500_000

_TYPES: dict[str, pl.DataType] = {"ts": pl.Int64(), "disk_id": pl.String(), "throughput": pl.Float64(), "latency": pl.Float64()}
_LAYOUT = Layout(tuple(_TYPES), (("ts", "disk_id", "latency"),))
_FOLDERS = re.compile(r"(cluster_[\w-]+)/(host_[\w-]+)")
# 1 January of the years 1 and 9999, in unix seconds
_FIRST_TS, _END_TS = -62_135_596_800 + SAMPLE_SECONDS, 253_370_764_800
# more than any drive moves; keeps the hour's sum within 64 bits
_MAX_THROUGHPUT = 1e14


def recognise(relative: PurePosixPath, absolute: PurePosixPath) -> str | None:
    """`samples` for a CSV file in a folder host_* in a folder cluster_*, else null."""
    is_csv = format_of(absolute.name) == "csv"
    return "samples" if is_csv and _FOLDERS.fullmatch("/".join(absolute.parts[-3:-1])) else None


def land(files: list[SourceFile], landing: Landing) -> None:
    """Roll up the samples of every host and stage its drive-hours and its inventory.

    Counts are in samples; a drive-hour that loses a conflict takes its samples with it.
    """
    seconds = seconds_of(landing.options)
    hosts: dict[str, list[SourceFile]] = {}
    for file in files:
        hosts.setdefault("/".join(file.parts[-3:-1]) if file.fault is None else "", []).append(file)
    waiting: list[pl.DataFrame] = []
    for host, host_files in hosts.items():
        samples = _read_host(host_files, landing)
        if samples is None:
            continue
        hours, drives, counts = roll_up(samples, host, landing.kind or "ssd")
        if seconds is not None:
            landing.accept("drive_samples", as_samples(totals(samples, host, seconds)[0], seconds), None)
        landing.accept("drives", drives, None)
        landing.count_samples(counts)
        waiting.append(hours)
        if sum(rows.height for rows in waiting) >= FLUSH_ROWS:
            landing.accept("drive_hours", pl.concat(waiting).sort("hour_utc", "drive_id"), None)
            waiting = []
    if waiting:
        landing.accept("drive_hours", pl.concat(waiting).sort("hour_utc", "drive_id"), None)


def _read_host(files: list[SourceFile], landing: Landing) -> pl.DataFrame | None:
    """The good samples of one host, one per (disk, ts), with file_no and row_no; the losers are counted in their files."""
    frames = landing.read(files, lambda file, result: read_table(file.path, _LAYOUT, result.notes, _samples))
    if not sum(frame.height for frame in frames):
        return None
    # in order, the greatest of one (disk, ts) is last, and of equal ones the first delivered
    order = ["disk_id", "ts", "throughput", "latency", "file_no", "row_no"]
    samples = pl.concat(frames).sort(order, descending=[False] * 4 + [True] * 2, nulls_last=False)
    following = [pl.col(name).eq_missing(pl.col(name).shift(-1)) & (pl.int_range(pl.len()) < pl.len() - 1) for name in order[:4]]
    samples = samples.with_columns(
        pl.all_horizontal(following[:2]).alias("is_loser"),
        pl.all_horizontal(following).alias("is_duplicate"),
    )
    take_back(samples.filter("is_duplicate"), landing.by_no, "rows_duplicate")
    take_back(samples.filter(pl.col("is_loser") & ~pl.col("is_duplicate")), landing.by_no, "rows_superseded")
    return samples.filter(~pl.col("is_loser")).drop("is_loser", "is_duplicate")


def _samples(chunk: RawChunk) -> Batch:
    chunk.frame = _without_na(chunk.frame)
    samples, unreadable = convert(chunk.frame, _TYPES)
    samples, rejected = split(chunk, samples, _checks(unreadable))
    return Batch(None, samples.select(*_TYPES, "row_no"), rejected)


def _without_na(frame: pl.DataFrame) -> pl.DataFrame:
    """The set writes a sample that was not taken as `NA`: null, not a value that cannot be read."""
    measures = [name for name in ("throughput", "latency") if name in frame.columns]
    return frame.with_columns(pl.when(pl.col(name) != "NA").then(pl.col(name)).alias(name) for name in measures)


def _checks(unreadable: dict[str, str]) -> list[Check]:
    checks = [
        *type_checks(unreadable),
        *null_checks("ts", "disk_id"),
        Check("ts", "outside the years 1 to 9998", ~pl.col("ts").is_between(_FIRST_TS, _END_TS)),
        *negative_checks("throughput", "latency"),
        Check("throughput", "not a plausible rate in bytes/s", ~(pl.col("throughput") <= _MAX_THROUGHPUT) | pl.col("throughput").is_nan()),
        Check("latency", "NaN", pl.col("latency").is_nan()),
        Check("latency", "infinite", pl.col("latency").is_infinite()),
    ]
    return sorted(checks, key=lambda check: list(_TYPES).index(check.column))


def roll_up(samples: pl.DataFrame, host: str, kind: str) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Samples of one host, in order of (disk_id, ts) -> its drive-hours, its inventory, and the samples behind each hour.

    samples: disk_id, ts (unix s), throughput (bytes/s), latency (us), file_no, row_no; throughput and latency may be null.
    """
    hours, hour_no = totals(samples, host, HOUR_SECONDS)
    numbered = hours.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(hour_no.name))
    counts = behind(samples.with_columns(hour_no), numbered, [hour_no.name])
    drives = hours.sort("drive_id", "hour_utc").unique("drive_id", keep="first", maintain_order=True)
    drives = drives.select(
        "drive_id",
        "raid_group_id",
        pl.lit("data").alias("role"),
        pl.lit(kind).alias("kind"),
        pl.lit(host).alias("host"),
        "file_no",
        "row_no",
    )
    return completed(hours, "drive_hours"), completed(drives, "drives"), counts


def totals(samples: pl.DataFrame, host: str, seconds: int) -> tuple[pl.DataFrame, pl.Series]:
    """Samples (see roll_up) -> what each disk did in an hour, or in each sample of it, and which of the rows each sample is in.

    A row is named by the file and row of its first sample, and begins at `hour_utc`. Sums run in order of ts, so they repeat to the bit.
    """
    samples = samples.with_columns(((pl.col("ts") - SAMPLE_SECONDS) // seconds).alias("span"))
    is_first = ((pl.col("disk_id") != pl.col("disk_id").shift(1)) | (pl.col("span") != pl.col("span").shift(1))).fill_null(True)
    starts = np.flatnonzero(samples.select(is_first.alias("starts")).to_series().to_numpy())

    def summed(values: pl.Series) -> tuple[pl.Series, pl.Series]:
        totals = np.add.reduceat(values.fill_null(0.0).to_numpy(), starts)
        counts = np.add.reduceat(values.is_not_null().to_numpy().astype(np.int64), starts)
        return pl.Series(totals), pl.Series(counts)

    latency, observed = summed(samples["latency"])
    moved, known = summed(samples["throughput"] * SAMPLE_SECONDS)
    first = samples[starts.tolist()]
    rows = first.select(
        (pl.col("span") * (seconds * 1_000_000)).cast(pl.Datetime("us")).alias("hour_utc"),
        (pl.lit(host + "/") + pl.col("disk_id")).alias("drive_id"),
        pl.lit(host).alias("raid_group_id"),
        "file_no",
        "row_no",
    ).with_columns(
        (latency / observed.set(observed == 0, None)).alias("latency_us"),
        pl.Series(np.rint(moved.to_numpy())).cast(pl.Int64).set(known == 0, None).alias("bytes"),
        (observed / (seconds // SAMPLE_SECONDS)).clip(upper_bound=1.0).alias("coverage"),
    )
    return rows, samples.select((is_first.cum_sum() - 1).cast(pl.Int64).alias("of_row")).to_series()

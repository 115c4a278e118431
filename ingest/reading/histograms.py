"""Histograms of latencies that count for ever -> how many I/Os of a drive-hour took up to which time."""

from __future__ import annotations

import polars as pl

from ingest.reading.parse import HOUR_US, completed

MAX_GAP_SECONDS = 3600
"""Counts further apart say too little of which hour the I/Os were in."""
BUCKET: dict[str, pl.DataType] = {
    "host": pl.String(),
    "device": pl.String(),
    "at": pl.Float64(),
    "upper_us": pl.Float64(),
    "count": pl.Int64(),
    "file_no": pl.Int64(),
    "row_no": pl.Int64(),
}


def drive_latencies(counts: pl.DataFrame) -> pl.DataFrame:
    """Counts of each bucket (BUCKET, without those below it) at several instants -> records of drive_latencies, named HOST/DEVICE.

    The hour in which a count of the drive fell, because counting began again, loses the interval.
    """
    place = ["host", "device", "at"]
    steps = counts.sort("host", "device", "upper_us", "at").with_columns(
        (pl.col("count") - pl.col("count").shift(1).over("host", "device", "upper_us")).alias("more"),
        (pl.col("at") - pl.col("at").shift(1).over("host", "device", "upper_us")).alias("seconds"),
    )
    whole = steps.filter(pl.col("more").min().over(place) >= 0, pl.col("seconds").is_between(0, MAX_GAP_SECONDS, closed="right"))
    # an instant on the hour ends the hour before
    hour = ((pl.col("at") - 1e-6) // 3600 * HOUR_US).cast(pl.Int64).cast(pl.Datetime("us"))
    by_hour = whole.filter(pl.col("more") > 0).with_columns(hour.alias("hour_utc")).sort(*place, "upper_us")
    rows = by_hour.group_by("host", "device", "hour_utc", "upper_us", maintain_order=True).agg(
        pl.col("more").sum().alias("io_count"),
        (pl.col("at").max() * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us")).alias("collected_at"),
        pl.col("file_no", "row_no").first(),
    )
    named = rows.with_columns(pl.concat_str("host", pl.lit("/"), "device").alias("drive_id"), pl.lit(True).alias("is_alias"))
    return completed(named, "drive_latencies")

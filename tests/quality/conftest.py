"""A fleet of 48 drives in 6 groups, an hour at a time, that every suite lets pass."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from tests.ingest.conftest import bundle, warehouse  # noqa: F401

START = datetime(2026, 1, 5)
NOW = datetime(2026, 1, 20)
DRIVES = 48


def fleet(*hours: int, drives: int = DRIVES, latency_us: float = 4000.0) -> pl.DataFrame:
    """Drive-hours of some hours since START; a correction differs by its latency."""
    at = [START + timedelta(hours=hour) for hour in hours]
    rows = pl.DataFrame({"hour_utc": at}, schema={"hour_utc": pl.Datetime("us")}).join(pl.DataFrame({"number": range(drives)}), how="cross")
    return rows.select(
        "hour_utc",
        pl.format("d{}", "number").alias("drive_id"),
        pl.format("g{}", pl.col("number") // 8).alias("raid_group_id"),
        pl.lit(300, pl.Int64).alias("read_ios"),
        pl.lit(100, pl.Int64).alias("write_ios"),
        (latency_us * (1 + pl.col("number") / 4000)).alias("read_latency_us"),
        (latency_us * (2 + pl.col("number") / 4000)).alias("write_latency_us"),
        pl.lit(2400, pl.Int64).alias("read_blocks"),
        pl.lit(1600, pl.Int64).alias("write_blocks"),
        pl.lit(4096, pl.Int64).alias("block_bytes"),
        (pl.col("hour_utc") + timedelta(minutes=65)).alias("collected_at"),
    )


def inventory(drives: int = DRIVES) -> pl.DataFrame:
    """The inventory of the fleet."""
    return pl.DataFrame({"number": range(drives)}).select(
        pl.format("d{}", "number").alias("drive_id"),
        pl.format("g{}", pl.col("number") // 8).alias("raid_group_id"),
        pl.lit("data").alias("role"),
        pl.lit("disk").alias("kind"),
        pl.lit(4_000_000_000_000, pl.Int64).alias("capacity_bytes"),
        pl.lit(7200, pl.Int64).alias("rpm"),
        pl.lit("SATA").alias("interface"),
        pl.lit("TLC").alias("flash_cell"),
        pl.lit(datetime(2024, 1, 5).date()).alias("deployed_on"),
        pl.lit(datetime(2024, 1, 5)).alias("valid_from"),
        pl.lit(None, pl.Datetime("us")).alias("valid_to"),
        pl.lit(START).alias("collected_at"),
    )


def events(count: int = 120) -> pl.DataFrame:
    """Events of one hour, one drive after the other."""
    return pl.DataFrame({"number": range(count)}).select(
        (pl.lit(START) + pl.duration(seconds="number")).alias("occurred_at"),
        pl.format("d{}", pl.col("number") % DRIVES).alias("drive_id"),
        pl.lit("media_error").alias("event_type"),
        pl.lit(START + timedelta(hours=1)).alias("ended_at"),
        pl.lit(START + timedelta(hours=2)).alias("collected_at"),
    )


def samples(latency_us: float = 4000.0) -> pl.DataFrame:
    """Measurements of every drive in the twelve parts of one hour."""
    parts = pl.DataFrame({"part": range(12)}).select((pl.lit(START) + pl.duration(minutes=5 * pl.col("part"))).alias("from_utc"))
    rows = fleet(0, latency_us=latency_us).drop("hour_utc").join(parts, how="cross")
    return rows.with_columns((pl.col("from_utc") + timedelta(minutes=5)).alias("to_utc"))


def latencies() -> pl.DataFrame:
    """One bucket of every drive of one hour."""
    return health().select(
        pl.col("read_at").alias("hour_utc"),
        "drive_id",
        pl.lit(4096.0).alias("upper_us"),
        pl.lit(90, pl.Int64).alias("io_count"),
        "collected_at",
    )


def health(drives: int = DRIVES) -> pl.DataFrame:
    """One attribute of every drive."""
    return pl.DataFrame({"number": range(drives)}).select(
        pl.lit(START).alias("read_at"),
        pl.format("d{}", "number").alias("drive_id"),
        pl.lit("reallocated_sector_ct").alias("attribute"),
        pl.lit(0, pl.Int64).alias("raw_value"),
        pl.lit(START).alias("collected_at"),
    )


def aliases(drives: int = DRIVES) -> pl.DataFrame:
    """The names by which one host knows the drives."""
    return pl.DataFrame({"number": range(drives)}).select(
        pl.format("web1/sd{}", "number").alias("alias"),
        pl.format("d{}", "number").alias("drive_id"),
        pl.lit(START).alias("valid_from"),
        pl.lit(START + timedelta(days=300)).alias("valid_to"),
        pl.lit(START).alias("collected_at"),
    )


def labels(drives: int = DRIVES) -> pl.DataFrame:
    """Health readings of every drive on one day."""
    return pl.DataFrame({"number": range(drives)}).select(
        pl.format("d{}", "number").alias("drive_id"),
        pl.lit(START.date()).alias("labelled_on"),
        pl.lit("slow").alias("verdict"),
    )

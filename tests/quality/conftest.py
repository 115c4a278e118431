"""A fleet of 48 drives in 6 groups, an hour at a time, that every suite lets pass."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from tests.ingest.conftest import Warehouse, warehouse  # noqa: F401

START = datetime(2026, 1, 5)
NOW = datetime(2026, 1, 20)
DRIVES = 48


@pytest.fixture
def other(tmp_path: Path) -> Warehouse:
    """Another warehouse, for what it makes of other files, or of the same without the gate."""
    return Warehouse(tmp_path / "other")


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


def inventory() -> pl.DataFrame:
    """The inventory of the fleet."""
    return of_each_drive(
        raid_group_id=[f"g{number // 8}" for number in range(DRIVES)], role="data", kind="disk", capacity_bytes=4_000_000_000_000, rpm=7200,
        interface="SATA", flash_cell="TLC", deployed_on=date(2024, 1, 5), valid_from=datetime(2024, 1, 5),
        valid_to=pl.Series([None] * DRIVES, dtype=pl.Datetime("us")), collected_at=START,
    )  # fmt: skip


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


def of_each_drive(**columns: object) -> pl.DataFrame:
    """A row a drive, of values for all of them or of a list; `{}` in a text is the drive's number."""

    def each(value: object) -> object:
        if isinstance(value, list | pl.Series):
            return value
        return [value.format(n) if isinstance(value, str) else value for n in range(DRIVES)]

    return pl.DataFrame({name: each(value) for name, value in {"drive_id": "d{}", **columns}.items()})


def health() -> pl.DataFrame:
    """One attribute of every drive."""
    return of_each_drive(read_at=START, attribute="reallocated_sector_ct", raw_value=0, collected_at=START)


def latencies() -> pl.DataFrame:
    """One bucket of every drive of one hour."""
    return of_each_drive(hour_utc=START, upper_us=4096.0, io_count=90, collected_at=START)


def aliases() -> pl.DataFrame:
    """The names by which one host knows the drives."""
    return of_each_drive(alias="web1/sd{}", valid_from=START, valid_to=START + timedelta(days=300), collected_at=START)


def probes() -> pl.DataFrame:
    """A slice of a probe for every drive."""
    return of_each_drive(probed_at=START, suspect_id="d0", pattern="random", slice_no=1, read_count=90, collected_at=START)


def labels() -> pl.DataFrame:
    """Labels of every drive on one day."""
    return of_each_drive(labelled_on=START.date(), verdict="slow")

"""Planned work is announced days before it happens, through the gate, and nobody is told of the drive while it lasts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from drivetail.tell.alerts import open_alerts
from engine.build import build
from engine.warehouse import Warehouse as Built
from ingest import ingest
from quality import Gate
from tests.ingest.conftest import Warehouse
from tests.quality.conftest import START, fleet

DRIVES = 24
SLOW = ("d3", "d11")
BEFORE = START - timedelta(days=3)


def announced() -> pl.DataFrame:
    """Maintenance of every drive of a rack but d11, three days ahead, for 01:00 to 04:00."""
    return pl.DataFrame({"number": [number for number in range(DRIVES) if number != 11]}).select(
        pl.lit(START + timedelta(hours=1)).alias("occurred_at"),
        pl.format("d{}", "number").alias("drive_id"),
        pl.lit("maintenance").alias("event_type"),
        pl.lit(START + timedelta(hours=4)).alias("ended_at"),
        pl.lit(BEFORE).alias("collected_at"),
    )


@pytest.mark.parametrize(("event_type", "is_landed"), [("maintenance", True), ("scrub", False)])
def test_of_what_is_to_come_only_maintenance_lands(
    event_type: str, is_landed: bool, bundle: Callable[..., Path], warehouse: Warehouse
) -> None:
    folder = bundle({"drive_events.parquet": announced().with_columns(event_type=pl.lit(event_type))})
    summary = ingest("bundle", [folder], warehouse.path, gate=Gate(warehouse.path, now=BEFORE))
    assert (summary.rows_accepted, len(summary.held)) == ((23, 0) if is_landed else (0, 1))


@pytest.mark.soak  # a build
def test_a_drive_under_announced_maintenance_raises_no_alert(bundle: Callable[..., Path], warehouse: Warehouse) -> None:
    """d3 and d11 are slow from 01:00 to 04:00."""
    is_slow = pl.col("drive_id").is_in(SLOW) & pl.col("hour_utc").is_between(START + timedelta(hours=1), START + timedelta(hours=3))
    measured = fleet(*range(6), drives=DRIVES).with_columns(
        pl.when(is_slow).then(pl.col(name) * 5).otherwise(name).alias(name) for name in ("read_latency_us", "write_latency_us")
    )
    for files, now in (({"drive_events.parquet": announced()}, BEFORE), ({"drive_hours.parquet": measured}, START + timedelta(hours=8))):
        summary = ingest("bundle", [bundle(files)], warehouse.path, gate=Gate(warehouse.path, now=now))
        assert (summary.held, summary.rows_rejected) == ([], 0)
    build(Built(warehouse.path))
    assert [alert.subject_id for alert in open_alerts(Built(warehouse.path), with_all=True)] == ["d11"]

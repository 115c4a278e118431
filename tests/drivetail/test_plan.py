"""How many days a build computes at a time."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from engine import plan
from ingest.raw.store import list_deliveries

FIRST = date(2026, 1, 5)


def land(warehouse: Path, number: int, table: str, rows: list[int]) -> None:
    """A delivery with this number of rows of a table on each day from FIRST on. Its folder names no hours where it has samples alone."""
    last = FIRST + timedelta(days=len(rows) - 1)
    hours = f"{FIRST}T00.{last}T23" if table == "drive_hours" else "no-hours"
    folder = warehouse / "raw" / "deliveries" / f"{number:06d}.{hours}" / table
    folder.mkdir(parents=True)
    for day, count in enumerate(rows):
        pl.DataFrame({"x": range(count)}).write_parquet(folder / f"{FIRST + timedelta(days=day)}.parquet")


def test_days_are_cut_where_drive_hours_and_samples_together_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    land(tmp_path, 1, "drive_hours", [4, 4, 4, 4])
    land(tmp_path, 2, "drive_hours", [0, 1])
    land(tmp_path, 3, "drive_samples", [0, 0, 50])
    deliveries = list_deliveries(tmp_path)
    assert deliveries[0].first_hour == datetime(2026, 1, 5)
    days = [FIRST + timedelta(days=day) for day in range(4)]
    assert plan.batches(deliveries, reversed(days), 12) == [days[:2], days[2:3], days[3:]]
    monkeypatch.setattr(plan, "MAX_BATCH_DAYS", 1)
    assert plan.batches(deliveries, days[:2]) == [days[:1], days[1:2]]

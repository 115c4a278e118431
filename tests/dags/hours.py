"""The last hours of a week of a small fleet, as they come to an inbox: each a file, or one in parts, or wrong at first."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from engine.warehouse import Warehouse
from simulate import simulate

MONDAY = datetime(2026, 1, 12)
WEEK = "2026-W02"
"""The week before."""


def last_hours(count: int) -> list[datetime]:
    return [MONDAY - timedelta(hours=number) for number in range(count, 0, -1)]


HOURS = last_hours(3)

SETTINGS = """
[schedule]
start = {start:%Y-%m-%dT%H:%M:%SZ}
end = {end:%Y-%m-%dT%H:%M:%SZ}
wait_minutes = 0
retries = 20
retry_minutes = 0.01

[alarms]
fresh_hours = 3

[[inboxes]]
name = "fleet"
source = "bundle"
folder = "{folder}"
settle_minutes = 0
"""


@dataclass
class Site:
    """A warehouse with an inbox, and the fleet that delivers to it."""

    folder: Path

    def __post_init__(self) -> None:
        self.warehouse, self.inbox = Warehouse(self.folder / "warehouse"), self.folder / "inbox"
        self.everything = self.folder / "everything"  # all that is delivered, as one bundle

    @property
    def slow_drive(self) -> str:
        """Five times as slow as it would be, in all of the hours."""
        drives = pl.concat([pl.read_parquet(path) for path in self.everything.glob("drives*")])
        return str(drives.filter(pl.col("role") == "data")["drive_id"].min())

    def rows(self, hour: datetime) -> pl.DataFrame:
        return pl.read_parquet(self.everything / "drive_hours.parquet").filter(pl.col("hour_utc") == hour)

    def deliver(self, hour: datetime, *, late: bool | None = None, in_ms: bool = False) -> Path:
        """Put an hour into the inbox. late: only the RAID groups that are (not) late. in_ms: latencies a thousandth of theirs."""
        rows, name = self.rows(hour), f"drive_hours-{hour:%Y-%m-%dT%H}"
        if late is not None:
            is_late = pl.col("raid_group_id") == rows["raid_group_id"].max()
            rows, name = rows.filter(is_late if late else ~is_late), name + ("-late" if late else "")
        if in_ms:
            rows = rows.with_columns(pl.col("read_latency_us", "write_latency_us") / 1000)
        draft = self.inbox / f".{name}"
        rows.write_parquet(draft)
        os.replace(draft, self.inbox / f"{name}.parquet")
        return self.inbox / f"{name}.parquet"


def make_site(folder: Path, last_run: datetime, hours: list[datetime] = HOURS) -> Site:
    """A fleet of some hours, its settings, and its inventory in the inbox. No run begins after `last_run`."""
    fleet = folder / "fleet"
    days = (MONDAY.date() - hours[0].date()).days
    simulate(fleet, disk_groups=2, ssd_groups=2, days=days, seed=11, start=hours[0].date())
    site = Site(folder)
    site.everything.mkdir()
    site.warehouse.create()
    inventory = site.inbox / "inventory"
    inventory.mkdir(parents=True)
    for path in (*fleet.glob("drives*"), *fleet.glob("drive_events*")):
        shutil.copy(path, site.everything)
        shutil.copy(path, inventory)
    rows = pl.concat([pl.read_parquet(path) for path in sorted(fleet.glob("drive_hours*"))])
    latencies = pl.col("read_latency_us", "write_latency_us")
    rows = rows.with_columns(pl.when(pl.col("drive_id") == site.slow_drive).then(latencies * 5).otherwise(latencies))
    rows.filter(pl.col("hour_utc").is_in(hours)).write_parquet(site.everything / "drive_hours.parquet")
    text = SETTINGS.format(start=hours[0], end=last_run, folder=site.inbox)
    (site.warehouse.root / "drivetail.toml").write_text(text, encoding="utf-8")
    return site

"""Usual values: the last day of a source that has landed, and the drives its inventory lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from ingest.contract.fleet import RAW
from ingest.raw.store import Delivery, drive_hour_files, table_files
from quality.frames import HOUR, merged

DAY = timedelta(days=1)
SAMPLED_EVERY = 12
"""Rows are counted in every hour of the day, latencies looked at in two: eleven million of them would take seconds."""


@dataclass(frozen=True)
class Usual:
    """A landed day: records of the median delivery and hour, and the drives as `USUAL` has them."""

    rows: int
    drives: pl.DataFrame


class History:
    """The committed deliveries of one source. Nothing is read before it is needed."""

    def __init__(self, deliveries: Sequence[Delivery], source: str) -> None:
        self.deliveries = deliveries
        self.source = source
        self._is_of_source: dict[int, bool] = {}
        self._usual: dict[datetime, Usual | None] = {}
        self._known_drives: dict[datetime, int | None] = {}

    def _is_mine(self, delivery: Delivery) -> bool:
        if delivery.seq not in self._is_of_source:
            self._is_of_source[delivery.seq] = delivery.record()["source"] == self.source
        return self._is_of_source[delivery.seq]

    def last_hour(self, before: datetime = datetime.max) -> datetime | None:
        """The last hour before an instant that has landed, as far as the folders' names say."""
        reach = [(min(d.last_hour, before - HOUR), d) for d in self.deliveries if d.first_hour and d.last_hour and d.first_hour < before]
        return next((hour for hour, delivery in sorted(reach, reverse=True) if self._is_mine(delivery)), None)

    def usual(self, before: datetime) -> Usual | None:
        """The day up to the last landed hour before an instant; null where nothing has landed before."""
        until = self.last_hour(before)
        if until is None:
            return None
        if until not in self._usual:
            self._usual[until] = self._measured(until)
        return self._usual[until]

    def _measured(self, until: datetime) -> Usual | None:
        first = until - DAY + HOUR
        near = [delivery for delivery in self.deliveries if delivery.overlaps(first, until) and self._is_mine(delivery)]
        files = [path for delivery in near for path in drive_hour_files(delivery, first, until)]
        if not files:
            return None
        day = pl.scan_parquet(files, glob=False).filter(pl.col("hour_utc").is_between(first, until))
        counts = day.group_by("delivery_seq", "hour_utc").len().sort("hour_utc").collect()
        if not counts.height:
            return None
        sampled = counts["hour_utc"].unique(maintain_order=True).reverse().gather_every(SAMPLED_EVERY)
        drives = (
            day.filter(pl.col("hour_utc").is_in(sampled.implode()))
            .select(
                pl.col("drive_id").hash().alias("drive"),
                merged("latency").alias("usual_latency_us"),
                merged("io_count").alias("io_count"),
            )
            .group_by("drive")
            .agg(pl.col("usual_latency_us").mean(), pl.col("io_count").is_not_null().any().alias("had_count"))
        )
        return Usual(int(counts.select(pl.col("len").median()).item()), drives.collect())

    def known_drives(self, hour: datetime) -> int | None:
        """Drives that live inventory periods list for an hour; null without inventory."""
        if hour not in self._known_drives:
            self._known_drives[hour] = self._counted_drives(hour)
        return self._known_drives[hour]

    def _counted_drives(self, hour: datetime) -> int | None:
        mine = [delivery for delivery in self.deliveries if (delivery.path / "drives.parquet").exists() and self._is_mine(delivery)]
        if not mine:
            return None
        ids = ["delivery_seq", "file_no", "row_no"]
        periods = pl.scan_parquet(table_files(mine, "drives"), glob=False)
        retired = table_files(self.deliveries, "retired_drives")
        lost = pl.scan_parquet(retired, glob=False) if retired else pl.LazyFrame(schema={name: RAW["drives"][name] for name in ids})
        begins, ends = pl.col("valid_from").dt.truncate("1h"), pl.col("valid_to").dt.truncate("1h")
        covers = (begins <= hour).fill_null(True) & (ends > hour).fill_null(True)
        live = periods.filter(covers).join(lost.select(ids), on=ids, how="anti")
        return int(live.select(pl.col("drive_id").n_unique()).collect().item())

"""Usual values: the last day of a source that has landed, and the drives its inventory lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from ingest.contract.fleet import RAW
from ingest.raw.store import Delivery, Folder, drive_hour_files, source_of, table_files
from ingest.sources import SELF_NAMED_SOURCES
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

    def __init__(self, folders: Sequence[Folder], source: str) -> None:
        self.folders = folders
        self.source = source
        self._of_source: dict[Path, list[Delivery]] = {}
        self._usual: dict[datetime, Usual | None] = {}
        self._known_drives: dict[datetime, int | None] = {}

    def _mine(self, folder: Folder) -> list[Delivery]:
        if folder.path not in self._of_source:
            self._of_source[folder.path] = [each for each in folder.deliveries() if each.source == self.source]
        return self._of_source[folder.path]

    def last_hour(self, before: datetime = datetime.max) -> datetime | None:
        """The last hour before an instant that has landed, as far as the folders' names say."""

        def reach(each: Folder | Delivery) -> datetime | None:
            return min(each.last_hour, before - HOUR) if each.first_hour and each.last_hour and each.first_hour < before else None

        last: datetime | None = None
        for hour, folder in sorted(
            ((hour, each) for each in self.folders if (hour := reach(each))), key=lambda pair: pair[0], reverse=True
        ):
            if last is not None and hour <= last:
                break
            last = max(filter(None, [last, *map(reach, self._mine(folder))]), default=None)
        return last

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
        near = [folder for folder in self.folders if folder.overlaps(first, until) and self._mine(folder)]
        named = None if self.source in SELF_NAMED_SOURCES else self.source
        files = [path for folder in near for path in drive_hour_files(folder, first, until) if source_of(path) == named]
        if not files:
            return None
        mine = [each.seq for folder in near for each in self._mine(folder)]
        day = pl.scan_parquet(files, glob=False).filter(pl.col("hour_utc").is_between(first, until), pl.col("delivery_seq").is_in(mine))
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
        files = [path for path in table_files(self.folders, "drives") if source_of(path) is None]
        folders = {path.parent for path in files}
        mine = [each.seq for folder in self.folders if folder.path in folders for each in self._mine(folder)]
        if not mine:
            return None
        ids = ["delivery_seq", "file_no", "row_no"]
        periods = pl.scan_parquet(files, glob=False).filter(pl.col("delivery_seq").is_in(mine))
        retired = table_files(self.folders, "retired_drives")
        lost = pl.scan_parquet(retired, glob=False) if retired else pl.LazyFrame(schema={name: RAW["drives"][name] for name in ids})
        begins, ends = pl.col("valid_from").dt.truncate("1h"), pl.col("valid_to").dt.truncate("1h")
        covers = (begins <= hour).fill_null(True) & (ends > hour).fill_null(True)
        live = periods.filter(covers).join(lost.select(ids), on=ids, how="anti")
        return int(live.select(pl.col("drive_id").n_unique()).collect().item())

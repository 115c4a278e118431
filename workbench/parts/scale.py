"""The paper's whole scale: 74 days of the paper's fleet, from landed Parquet to all marts published, in one run; then one more day."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from workbench.measure import DRIVETAIL, Cost, folder_mib, measure, phases, row_count
from workbench.parts import PAPER_DAYS, Bound, Section, Setting
from workbench.parts.day import fleet

ROOM = 3
"""Free disk that the run needs, in times the delivered Parquet: raw, store, scratch of the build."""


def delivered_day(source: Path, days: int, file: Path) -> Path:
    """The day again, some days later. Its hours and send times move; all else is as measured."""
    later = timedelta(days=days)
    frame = pl.scan_parquet(source).with_columns(pl.col("hour_utc") + later, pl.col("collected_at") + later)
    frame.sink_parquet(file, compression="zstd", compression_level=1)
    return file


def bench_scale(setting: Setting) -> list[Section]:
    """Land the days one by one, then build once; then another day. Raises: OSError when the disk has too little room, before anything is written."""
    (source,) = fleet(setting).glob("drive_hours*.parquet")
    warehouse, delivery = setting.work / "scale-warehouse", setting.work / "scale-delivery"
    for folder in (warehouse, delivery):
        shutil.rmtree(folder, ignore_errors=True)
    needed, free = ROOM * setting.scale_days * source.stat().st_size, shutil.disk_usage(setting.work).free
    if free < needed:
        raise OSError(f"{setting.work} has {free / 1e9:.0f} GB free; {setting.scale_days} days need {needed / 1e9:.0f} GB")
    delivery.mkdir()
    others = [fleet(setting) / "drives.parquet", fleet(setting) / "drive_events.parquet"]
    ingest = measure(DRIVETAIL, "ingest", "bundle", *others, "--warehouse", warehouse)
    delivered = folder_mib(*others)
    first = date.fromisoformat(source.stem.removeprefix("drive_hours-"))

    def land(number: int) -> tuple[Cost, float]:
        file = delivered_day(source, number, delivery / f"drive_hours-{first + timedelta(days=number)}.parquet")
        cost, size = measure(DRIVETAIL, "ingest", "bundle", file, "--warehouse", warehouse), folder_mib(file)
        file.unlink()  # it has landed: raw holds its own copy
        return cost, size

    for number in range(setting.scale_days):
        cost, size = land(number)
        ingest, delivered = ingest + cost, delivered + size
        print(f"landed day {number + 1} of {setting.scale_days}: {ingest.seconds:.0f} s", flush=True)
    build = measure(DRIVETAIL, "build", "--warehouse", warehouse)
    spent = phases(warehouse)
    days = spent["days"] + spent["stored"]
    raw, store = (folder_mib(warehouse / each) for each in ("raw", "store"))
    lines = table(setting.scale_days * row_count([source]), setting.scale_days, ingest, build)
    lines.append(f"| of it the days alone | {days.seconds:.1f} | {days.cpu_seconds:.1f} | |")
    whole = PAPER_DAYS / setting.scale_days
    pace = "" if whole == 1 else f" (calculated: {build.seconds / 60:.1f} min for {setting.scale_days} days)"
    lines += ["", "| on disk | MiB |", "|---|--:|", f"| delivered Parquet | {delivered:,.0f} |"]
    lines += [f"| {each} | {folder_mib(warehouse / each):,.0f} |" for each in ("raw", "store", "publications", "build")]
    land(setting.scale_days)
    more = measure(DRIVETAIL, "build", "--warehouse", warehouse)
    daily = phases(warehouse)["each_day"]
    lines += [
        "",
        "| one more day | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|",
        f"| `drivetail build` | {more.cells} |",
        f"| of it the relations of each day | {daily.seconds:.1f} | {daily.cpu_seconds:.1f} | |",
    ]
    shutil.rmtree(warehouse)
    shutil.rmtree(delivery)
    # over fewer days than the paper's nothing is known of it
    of_each_day = [Bound("relations of each day after one more day", daily.seconds / 60, 10, "min", 3.3)] if whole == 1 else []
    return [
        Section(
            "The paper's whole scale",
            lines,
            [
                Bound(f"{PAPER_DAYS} days alone{pace}", whole * days.seconds / 60, 27, "min", 15),
                Bound(f"landed Parquet to all marts published, {PAPER_DAYS} days{pace}", whole * build.seconds / 60, 36, "min", 20),
                *of_each_day,
                Bound("peak memory of a build", max(build.peak_mib, more.peak_mib) / 1024, 3, "GiB"),
                Bound("raw and store together over the delivered Parquet", (raw + store) / delivered, 2, "x", 1.5),
            ],
        )
    ]


def table(rows: int, days: int, ingest: Cost, build: Cost) -> list[str]:
    """The runs and their costs."""
    return [
        f"{rows:,} drive-hours: the simulated day under {days} dates. Every day is landed by a command of its own; one build follows.",
        "",
        "| step | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|",
        f"| `drivetail ingest`, {days} days | {ingest.cells} |",
        f"| `drivetail build`, publication included | {build.cells} |",
    ]

"""One more hour of the paper's fleet, through the gate to its publication, early and late in its day."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import polars as pl

from workbench.measure import DRIVETAIL, Cost, measure
from workbench.parts import Bound, Section, Setting
from workbench.parts.day import fleet, run_product, warehouse_of_day

LIMITS = {0: (11.0, 8.0), 11: (13.0, 9.0), 23: (15.0, 10.0)}
"""Wall seconds, bound and aim, by hour of the paper's day: only what arrives is computed, and added to the day."""


def deliver(frame: pl.LazyFrame, hours: Iterable[int], file: Path) -> Path:
    """Write the rows of some hours of the day as one delivery."""
    file.parent.mkdir(parents=True, exist_ok=True)
    frame.filter(pl.col("hour_utc").dt.hour().is_in(list(hours))).collect().write_parquet(file)
    return file


def add(file: Path, warehouse: Path, *options: str) -> dict[str, Cost]:
    """Ingest one delivery and publish what is needed within the hour, as the hourly run does before it tells alerts."""
    ingest = measure(DRIVETAIL, "ingest", "bundle", file, *options, "--warehouse", warehouse)
    build = measure(DRIVETAIL, "build", "--no-daily", "--warehouse", warehouse)
    return {"ingest": ingest, "build": build, "both": ingest + build}


def bench_hour(setting: Setting) -> list[Section]:
    """The 1st, 12th and 24th hour of the day after one that is in the warehouse."""
    run_product(setting)
    warehouse = warehouse_of_day(setting)
    day = pl.scan_parquet(fleet(setting) / "drive_hours*.parquet").with_columns(
        pl.col("hour_utc") + timedelta(days=1), pl.col("collected_at") + timedelta(days=1)
    )
    folder = setting.work / "full-hours"
    lines = [
        "| hour of the day | ingest, wall (s) | build, wall (s) | both, wall (s) | both, CPU (s) | peak memory (MiB) |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    bounds: list[Bound] = []
    last = -1
    for hour, (limit, aim) in LIMITS.items():
        if hour > last + 1:  # the hours between, as one delivery
            add(deliver(day, range(last + 1, hour), folder / f"drive_hours-before-{hour:02d}.parquet"), warehouse)
        run = add(deliver(day, [hour], folder / f"drive_hours-{hour:02d}.parquet"), warehouse, "--gate")
        bounds.append(Bound(f"wall time of hour {hour + 1} of the day", run["both"].seconds, limit, aim=aim))
        last = hour
        lines.append(f"| {hour + 1} | {run['ingest'].seconds:.1f} | {run['build'].seconds:.1f} | {run['both'].cells} |")
        print(lines[-1], flush=True)
    later = measure(DRIVETAIL, "build", "--warehouse", warehouse)
    shutil.rmtree(folder)
    shutil.rmtree(warehouse)  # the day is no longer alone in it
    lines = [
        f"{day.select(pl.len()).collect().item() // 24:,} drive-hours each, after a whole day: `ingest --gate`, then `build --no-daily`.",
        "",
        *lines,
        "",
        f"`build` afterwards makes the relations of each day, over both days: {later.seconds:.1f} s, {later.cpu_seconds:.1f} CPU s.",
    ]
    return [Section("One more hour of the paper's fleet", lines, bounds)]

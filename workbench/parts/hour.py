"""One more hour, through the gate to its publication: at the paper's size through a day, at a tenth of it through a month."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import polars as pl

from workbench.measure import DRIVETAIL, Cost, measure, simulate
from workbench.parts import Bound, Section, Setting, middle
from workbench.parts.day import fleet, run_product, warehouse_of_day

LIMITS = {0: (12.0, 8.0), 11: (20.0, 14.0), 23: (28.0, 20.0)}
"""Wall seconds, bound and aim, by hour of the paper's day: the later, the more of the day is computed again."""

MONTH_LIMITS = (9.0, 6.0)


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


def bench_full_hour(setting: Setting) -> Section:
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
    return Section(
        "One more hour of the paper's fleet",
        [
            f"{day.select(pl.len()).collect().item() // 24:,} drive-hours each, after a whole day: `ingest --gate`, then `build --no-daily`.",
            "",
            *lines,
            "",
            f"`build` afterwards makes the relations of each day, over both days: {later.seconds:.1f} s, {later.cpu_seconds:.1f} CPU s.",
        ],
        bounds,
    )


def month(setting: Setting) -> tuple[Path, Path]:
    """The folders of the smaller fleet and of its warehouse."""
    name = "small-month" if setting.small else "month"
    return setting.work / name, setting.work / f"{name}-warehouse"


def bench_small_hour(setting: Setting) -> Section:
    """One more hour at 46,000 drives after 1, 7 and 28 days of history."""
    folder, warehouse = month(setting)
    rows = simulate(folder, *setting.month_fleet, setting.month_days)
    shutil.rmtree(warehouse, ignore_errors=True)
    days = sorted(folder.glob("drive_hours*.parquet"))
    measure(DRIVETAIL, "ingest", "bundle", folder / "drives.parquet", folder / "drive_events.parquet", "--warehouse", warehouse)
    lines = [
        f"{rows // setting.month_days // 24:,} drive-hours each: `ingest --gate`, then `build --no-daily`. Medians of the first {setting.repetitions} hours of the next day.",
        "",
        "| history (days) | ingest, wall (s) | build, wall (s) | both, wall (s) | both, CPU (s) | peak memory (MiB) |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    found: list[Cost] = []
    loaded = 0
    for history in setting.histories:
        measure(DRIVETAIL, "ingest", "bundle", *days[loaded:history], "--warehouse", warehouse)
        measure(DRIVETAIL, "build", "--warehouse", warehouse)
        loaded = history
        frame = pl.scan_parquet(days[history])
        runs = []
        for hour in range(setting.repetitions):
            file = deliver(frame, [hour], setting.work / "hours" / f"drive_hours-{history}-{hour:02d}.parquet")
            runs.append(add(file, warehouse, "--gate"))
        usual = {step: middle([run[step] for run in runs]) for step in runs[0]}
        found.append(usual["both"])
        lines.append(f"| {history} | {usual['ingest'].seconds:.1f} | {usual['build'].seconds:.1f} | {usual['both'].cells} |")
        print(lines[-1], flush=True)
    shutil.rmtree(setting.work / "hours")
    limit, aim = MONTH_LIMITS
    spans = f"from {setting.histories[0]} to {setting.histories[-1]} days of history"
    return Section(
        "One more hour at 46,000 drives",
        lines,
        [
            Bound("wall time of the slowest", max(cost.seconds for cost in found), limit, aim=aim),
            Bound(f"growth of CPU time {spans}", max(cost.cpu_seconds for cost in found) / found[0].cpu_seconds, 1.25, "x"),
            Bound(f"growth of wall time {spans}", max(cost.seconds for cost in found) / found[0].seconds, 1.25, "x"),
        ],
    )


def bench_hour(setting: Setting) -> list[Section]:
    """Both sizes."""
    return [bench_full_hour(setting), bench_small_hour(setting)]

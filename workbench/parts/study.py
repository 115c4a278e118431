"""The study of a twentieth of the paper's drive-hours, beside one scan of the delivered columns."""

from __future__ import annotations

import statistics
from pathlib import Path

import duckdb

from workbench.measure import DRIVETAIL, Cost, measure, measure_sql, row_count, simulate
from workbench.parts import Section, Setting
from workbench.parts.hour import month

SCAN = "select count(*), sum(read_latency_us), sum(write_latency_us), sum(read_ios), sum(write_ios), max(raid_group_id), max(drive_id), max(hour_utc) from read_parquet({files})"


def month_warehouse(setting: Setting) -> Path:
    """A warehouse with all but the last day of the smaller fleet; goes on from what the hours left, where they did."""
    folder, warehouse = month(setting)
    simulate(folder, *setting.month_fleet, setting.month_days)
    measure(DRIVETAIL, "ingest", "bundle", folder / "drives.parquet", folder / "drive_events.parquet", "--warehouse", warehouse)
    measure(DRIVETAIL, "ingest", "bundle", *sorted(folder.glob("drive_hours*.parquet"))[:-1], "--warehouse", warehouse)
    measure(DRIVETAIL, "build", "--warehouse", warehouse)
    return warehouse


def forget_study(warehouse: Path) -> None:
    """Have the next `drivetail study` compute all of it, the counts of each day too."""
    with duckdb.connect(str(warehouse / "build" / "build.duckdb")) as connection:
        connection.execute("drop table if exists state.asked; delete from state.counted_days")


def bench_study(setting: Setting) -> list[Section]:
    """Every number of the study: computed, and as it is kept then; and its page."""
    warehouse = month_warehouse(setting)
    days = sorted(month(setting)[0].glob("drive_hours*.parquet"))[:-1]
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        rows = connection.execute("select sum(drive_hours) from marts.fct_drive_slowness").fetchall()[0][0]
    scan: list[Cost] = []
    study: list[Cost] = []
    kept: list[Cost] = []
    page: list[Cost] = []
    steps = {
        "one scan of the delivered columns": scan, "`drivetail study --all`, which computes it": study,
        "`drivetail study --all` again": kept, "`drivetail study --html`": page,
    }  # fmt: skip
    for _ in range(setting.repetitions):
        scan.append(measure_sql(SCAN.format(files=repr([str(path) for path in days]))))
        forget_study(warehouse)
        for costs in (study, kept):
            costs.append(measure(DRIVETAIL, "study", "--all", "--format", "csv", "--warehouse", warehouse))
        page.append(measure(DRIVETAIL, "study", "--html", setting.work / "study.html", "--warehouse", warehouse))
    lines = [
        f"{row_count(days):,} drive-hours, {rows:,} of them of data drives. Medians of {setting.repetitions} repetitions, one after the other.",
        "",
        "| step | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|",
    ]
    for step, costs in steps.items():
        wall, cpu = statistics.median(cost.seconds for cost in costs), statistics.median(cost.cpu_seconds for cost in costs)
        lines.append(f"| {step} | {wall:.1f} | {cpu:.1f} | {max(cost.peak_mib for cost in costs):,.0f} |")
    for of in ("seconds", "cpu_seconds"):
        ratio = statistics.median(getattr(a, of) / getattr(b, of) for a, b in zip(study, scan, strict=True))
        lines.append(f"| computing the study over the scan, {of.replace('_', ' ')} | {ratio:.1f}x | | |")
    return [Section("The study", lines)]

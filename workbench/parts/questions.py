"""People's questions: the cookbook's questions of 38 million drive-hours, and the commands on the demo."""

from __future__ import annotations

import shutil
import statistics
import time
from datetime import timedelta
from pathlib import Path

import duckdb
import polars as pl

from console.ask import cookbook
from workbench.measure import DRIVETAIL, Cost, measure
from workbench.parts import Bound, Section, Setting, middle
from workbench.parts.hour import add

COMMAND_SECONDS = 1.0
MEDIAN_SECONDS = 0.5
PAGES = {"report": (6.0, 3.0), "export": (6.0, 2.0)}
"""CPU seconds of commands that write all that is published, bound and aim."""

HOUR_CPU_SECONDS = (1.5, 1.0)


def questions(warehouse: Path, repetitions: int) -> Section:
    """Each question in a new connection to the published file, as an analyst's program asks it."""
    lines = ["| question | wall (s) | CPU (s) | rows |", "|---|--:|--:|--:|"]
    found: list[float] = []
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        rows = connection.execute("select count(*) from marts.fct_drive_hours").fetchall()[0][0]
    for title, sql in cookbook().items():
        runs = []
        for _ in range(repetitions):
            with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
                wall, cpu = time.perf_counter(), time.process_time()
                answer = connection.execute(sql).fetchall()
                runs.append((time.perf_counter() - wall, time.process_time() - cpu))
        found.append(statistics.median(run[0] for run in runs))
        if found[-1] > MEDIAN_SECONDS:
            lines.append(
                f"| {title.partition('.')[0]} | {found[-1]:.2f} | {statistics.median(run[1] for run in runs):.2f} | {len(answer):,} |"
            )
        print(title, f"{found[-1]:.2f}", flush=True)
    head = f"docs/cookbook.md over {rows:,} drive-hours of data drives, through the published file. Medians of {repetitions}, a new connection each; those above {MEDIAN_SECONDS} s."
    bounds = [Bound("median question", statistics.median(found), MEDIAN_SECONDS), Bound("slowest question", max(found), 1, aim=0.5)]
    return Section("The cookbook's questions", [head, "", *lines], bounds)


def make_demo(setting: Setting) -> tuple[Path, Cost]:
    """Run `drivetail demo`. Returns: its folder, and what it cost."""
    demo = setting.work / "demo"
    shutil.rmtree(demo, ignore_errors=True)
    return demo, measure(DRIVETAIL, "demo", "--out", demo)


def demo_warehouse(setting: Setting) -> Path:
    """The demo's warehouse, made when it is not there."""
    warehouse = setting.work / "demo" / "warehouse"
    if not (warehouse / "warehouse.duckdb").exists():
        make_demo(setting)
    return warehouse


def add_hours(demo: Path, count: int) -> list[Cost]:
    """Deliver the last hour of the demo again, one hour later each time, and build. Returns: what the builds cost."""
    day = pl.scan_parquet(max(demo.rglob("drive_hours*.parquet"), key=lambda path: path.name if "raw" not in path.parts else ""))
    last = day.filter(pl.col("hour_utc") == pl.col("hour_utc").max())
    costs = []
    for hour in range(1, count + 1):
        file = demo / "hours" / f"drive_hours-{hour}.parquet"
        file.parent.mkdir(exist_ok=True)
        later = timedelta(hours=hour)
        last.with_columns(pl.col("hour_utc") + later, pl.col("collected_at") + later).collect().write_parquet(file)
        costs.append(add(file, demo / "warehouse")["build"])
    return costs


def bench_commands(setting: Setting) -> list[Section]:
    """The commands used most, on the demo."""
    demo, made = make_demo(setting)
    warehouse = demo / "warehouse"
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        slowest = "select drive_id, hour_utc from marts.fct_drive_hours where is_slow order by slowdown desc, drive_id limit 1"
        drive, hour = connection.execute(slowest).fetchall()[0]
    asked = {
        "sql": ["sql", "select kind, count(*) from marts.fct_raid_hours where is_tail_hour group by kind"],
        "explain": ["explain", drive, f"{hour:%Y-%m-%d %H:%M}"],
        "alerts": ["alerts"],
        "candidates": ["candidates"],
        "status": ["status"],
        "report": ["report", "--out", setting.work / "report.html"],
        "export": ["export", setting.work / "export", "--force"],
    }
    lines = [
        f"Medians of {setting.repetitions}, start of the command included.",
        "",
        "| command | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|",
    ]
    bounds: list[Bound] = []

    def row(name: str, cost: Cost) -> None:
        lines.append(f"| {name} | {cost.seconds:.2f} | {cost.cpu_seconds:.2f} | {cost.peak_mib:,.0f} |")
        print(lines[-1], flush=True)

    row("`drivetail demo`", made)
    for name, command in asked.items():
        costs = []
        for _ in range(setting.repetitions):
            shutil.rmtree(setting.work / "export", ignore_errors=True)
            costs.append(measure(DRIVETAIL, *command, "--warehouse", warehouse))
        cost = middle(costs)
        row(f"`drivetail {name}`", cost)
        if name in PAGES:
            bounds.append(Bound(f"CPU time of `drivetail {name}`", cost.cpu_seconds, PAGES[name][0], aim=PAGES[name][1]))
        else:
            bounds.append(Bound(f"`drivetail {name}`", cost.seconds, COMMAND_SECONDS))
    hour = middle(add_hours(demo, setting.repetitions))
    row("`drivetail build` of one more hour", hour)
    bounds.append(Bound("CPU time of the build of one more hour", hour.cpu_seconds, HOUR_CPU_SECONDS[0], aim=HOUR_CPU_SECONDS[1]))
    return [Section("Commands on the demo", lines, bounds)]

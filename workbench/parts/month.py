"""A tenth of the paper's fleet through a month, in one warehouse that is filled day by day: what one more hour and one more day cost, how soon
a reader has rows of any published relation, pages of the console and answers to the cookbook's questions.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import duckdb
import polars as pl

from workbench.measure import DRIVETAIL, Cost, measure, measure_sql, phases, row_count, simulate
from workbench.parts import Bound, Section, Setting, middle
from workbench.parts.console import served
from workbench.parts.hour import add, deliver
from workbench.parts.questions import demo_warehouse, questions
from workbench.parts.scale import delivered_day

HOUR_LIMITS = (6.0, 4.0)
DEMO_FLEET = (9, 4)
"""RAID groups of disks and of SSDs, as drivetail.demo has them."""
ROWS = 100
READ_SECONDS, READ_AIM, READ_MIB = 0.3, 0.05, 500.0
DAY_LIMITS = ((20.0, 7.0), (60.0, 20.0))
"""CPU seconds of the relations of each day, bound and aim, by length of history."""


class Month:
    """The smaller fleet, and its warehouse with the days that were delivered."""

    def __init__(self, setting: Setting) -> None:
        name = "small-month" if setting.small else "month"
        folder, self.warehouse = setting.work / name, setting.work / f"{name}-warehouse"
        rows = simulate(folder, *setting.month_fleet, setting.month_days)
        self.rows_of_hour = rows // setting.month_days // 24
        self.days = sorted(folder.glob("drive_hours*.parquet"))
        self._delivered = 0
        shutil.rmtree(self.warehouse, ignore_errors=True)
        measure(DRIVETAIL, "ingest", "bundle", folder / "drives.parquet", folder / "drive_events.parquet", "--warehouse", self.warehouse)

    def reach(self, count: int) -> Cost:
        """Deliver the days up to a number of them, if there are any, and build. Returns: what the build cost."""
        if new := self.days[self._delivered : count]:
            measure(DRIVETAIL, "ingest", "bundle", *new, "--warehouse", self.warehouse)
        self._delivered = count
        return measure(DRIVETAIL, "build", "--warehouse", self.warehouse)

    def more_hours(self, setting: Setting) -> dict[str, Cost]:
        """Deliver the first hours of the next day, one by one. Returns: the middle cost of one, by step."""
        frame, folder = pl.scan_parquet(self.days[self._delivered]), setting.work / "hours"
        files = (
            deliver(frame, [hour], folder / f"drive_hours-{self._delivered}-{hour:02d}.parquet") for hour in range(setting.repetitions)
        )
        runs = [add(file, self.warehouse, "--gate") for file in files]
        shutil.rmtree(folder)
        return {step: middle([run[step] for run in runs]) for step in runs[0]}


def bench_year(setting: Setting) -> list[Section]:
    """One more hour of the demo's fleet after four weeks and after a year of the same day: what a build reads of the past shows there."""
    name = "small-year" if setting.small else "year"
    folder, warehouse = setting.work / name, setting.work / f"{name}-warehouse"
    shutil.rmtree(warehouse, ignore_errors=True)
    rows = simulate(folder, *DEMO_FLEET, 1)
    source, delivery = next(folder.glob("drive_hours*.parquet")), setting.work / "year-delivery"
    delivery.mkdir(exist_ok=True)
    measure(DRIVETAIL, "ingest", "bundle", folder / "drives.parquet", folder / "drive_events.parquet", "--warehouse", warehouse)
    spent: list[Cost] = []
    for begin, end in zip((0, *setting.year_histories), setting.year_histories, strict=False):
        days = [delivered_day(source, day, delivery / f"drive_hours-{day:03d}.parquet") for day in range(begin, end + 1)]
        measure(DRIVETAIL, "ingest", "bundle", *days[:-1], "--warehouse", warehouse)
        measure(DRIVETAIL, "build", "--warehouse", warehouse)
        frame = pl.scan_parquet(days[-1])
        files = (deliver(frame, [hour], delivery / f"drive_hours-{end}-{hour}.parquet") for hour in range(1 + setting.repetitions))
        # the first begins the day, and its publication is written from scratch
        spent.append(middle([add(file, warehouse)["build"] for file in files][1:]))
    shutil.rmtree(delivery)
    few, many = setting.year_histories
    lines = [
        f"{rows // 24:,} drive-hours each: `build --no-daily`. Medians of {setting.repetitions} hours of the next day.",
        "",
        "| history (days) | build, wall (s) | build, CPU (s) | peak memory (MiB) |",
        "|--:|--:|--:|--:|",
        *(f"| {history} | {cost.cells} |" for history, cost in zip(setting.year_histories, spent, strict=True)),
    ]
    growth = spent[1].cpu_seconds / spent[0].cpu_seconds
    return [
        Section(
            "One more hour of the demo's fleet", lines, [Bound(f"growth of CPU time from {few} to {many} days", growth, 1.15, "x", 1.05)]
        )
    ]


def reading(warehouse: Path, name: str) -> tuple[list[str], list[Bound]]:
    """Read the first rows of every published relation, each in a new connection."""
    measure(DRIVETAIL, "study", "--all", "--warehouse", warehouse)  # its relations refuse until somebody asks
    file = warehouse / "warehouse.duckdb"
    with duckdb.connect(str(file), read_only=True) as connection:
        query = "select table_schema || '.' || table_name from information_schema.tables order by all"
        relations = [relation for (relation,) in connection.execute(query).fetchall()]
    spent: dict[str, tuple[float, float]] = {}
    for relation in relations:
        with duckdb.connect(str(file), read_only=True) as connection:
            wall, cpu = time.perf_counter(), time.process_time()
            connection.execute(f"select * from {relation} limit {ROWS}").fetchall()
            spent[relation] = time.perf_counter() - wall, time.process_time() - cpu
    peak = measure_sql(f"attach '{file}' as w (read_only); use w; " + ";".join(f"from {each} limit {ROWS}" for each in relations)).peak_mib
    slowest = max(spent, key=lambda relation: spent[relation][1])
    wall, cpu = spent[slowest]
    line = f"| {name} | {len(relations)} | `{slowest}` | {wall:.3f} | {cpu:.3f} | {peak:,.0f} |"
    print(line, flush=True)
    return [line], [
        Bound(f"CPU time of the first {ROWS} rows of any published relation, {name}", cpu, READ_SECONDS, aim=READ_AIM),
        Bound(f"memory of a process that reads them all, {name}", peak, READ_MIB, "MiB"),
    ]


def bench_month(setting: Setting) -> list[Section]:
    """Everything that is measured on the smaller fleet, and on the demo what is measured of both."""
    demo = demo_warehouse(setting)
    relations, relation_bounds = reading(demo, "demo")
    pages, page_bounds = served(demo, setting.repetitions, "the demo", 0.15, 0.5)
    month = Month(setting)
    hours: list[str] = []
    daily: list[str] = []
    of_hours: list[Cost] = []
    for history in sorted({*setting.histories, *setting.relation_days}):
        if history in setting.relation_days:
            month.reach(history - 1)
        build = month.reach(history)
        if history in setting.relation_days:
            rows, spent = row_count(month.days[:history]), phases(month.warehouse)["each_day"]
            daily.append(f"| {rows:,} | {spent.seconds:.1f} | {spent.cpu_seconds:.1f} | {build.cells} |")
            limit, aim = DAY_LIMITS[setting.relation_days.index(history)]
            what = f"CPU time of the relations of each day after one more day, {rows / 1e6:.1f} M drive-hours"
            relation_bounds.append(Bound(what, spent.cpu_seconds, limit, aim=aim))
        if history == setting.relation_days[0]:
            name = f"{rows / 1e6:.1f} M drive-hours"
            more, more_bounds = reading(month.warehouse, name)
            relations, relation_bounds = relations + more, relation_bounds + more_bounds
            more, more_bounds = served(month.warehouse, setting.repetitions, name, 0.3, 1.0)
            pages, page_bounds = pages + more, page_bounds + more_bounds
        if history in setting.histories:
            usual = month.more_hours(setting)
            of_hours.append(usual["both"])
            hours.append(f"| {history} | {usual['ingest'].seconds:.1f} | {usual['build'].seconds:.1f} | {usual['both'].cells} |")
        print(history, "days:", *hours[-1:], *daily[-1:], flush=True)
    spans = f"from {setting.histories[0]} to {setting.histories[-1]} days of history"
    first = of_hours[0]
    hour_bounds = [
        Bound("wall time of the slowest", max(cost.seconds for cost in of_hours), HOUR_LIMITS[0], aim=HOUR_LIMITS[1]),
        Bound(f"growth of CPU time {spans}", max(cost.cpu_seconds for cost in of_hours) / first.cpu_seconds, 1.15, "x", 1.05),
        Bound(f"growth of wall time {spans}", max(cost.seconds for cost in of_hours) / first.seconds, 1.25, "x"),
    ]
    hours = [
        f"{month.rows_of_hour:,} drive-hours each: `ingest --gate`, then `build --no-daily`. Medians of the first {setting.repetitions} hours of the next day.",
        "",
        "| history (days) | ingest, wall (s) | build, wall (s) | both, wall (s) | both, CPU (s) | peak memory (MiB) |",
        "|--:|--:|--:|--:|--:|--:|",
        *hours,
    ]
    relations = [
        "| warehouse | relations | slowest | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|---|--:|--:|--:|",
        *relations,
        "",
        "| drive-hours | of each day, wall (s) | CPU (s) | build of the day, wall (s) | CPU (s) | peak memory (MiB) |",
        "|--:|--:|--:|--:|--:|--:|",
        *daily,
    ]
    return [
        Section("One more hour at 46,000 drives", hours, hour_bounds),
        Section("Published relations", relations, relation_bounds),
        Section("The console", pages, page_bounds),
        questions(month.warehouse, setting.repetitions),
    ]

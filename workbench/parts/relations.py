"""Relations: what those of each day cost after one more day, and how soon a reader has rows of any published one."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import duckdb

from workbench.measure import DRIVETAIL, measure, measure_sql, phases, row_count, simulate
from workbench.parts import Bound, Section, Setting
from workbench.parts.hour import month
from workbench.parts.questions import demo_warehouse

ROWS = 100
READ_SECONDS, READ_AIM, READ_MIB = 0.3, 0.05, 500.0
LIMITS = ((20.0, 7.0), (60.0, 20.0))
"""CPU seconds of the relations of each day, bound and aim, by length of history."""


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
    slowest = max(spent, key=lambda relation: spent[relation])
    wall, cpu = spent[slowest]
    line = f"| {name} | {len(relations)} | `{slowest}` | {wall:.3f} | {cpu:.3f} | {peak:,.0f} |"
    print(line, flush=True)
    return [line], [
        Bound(f"first {ROWS} rows of any published relation, {name}", wall, READ_SECONDS, aim=READ_AIM),
        Bound(f"memory of a process that reads them all, {name}", peak, READ_MIB, "MiB"),
    ]


def bench_relations(setting: Setting) -> list[Section]:
    """On the demo, and after days of the smaller fleet: one more day, then every relation is read."""
    lines, bounds = reading(demo_warehouse(setting), "demo")
    folder, warehouse = month(setting)
    simulate(folder, *setting.month_fleet, setting.month_days)
    shutil.rmtree(warehouse, ignore_errors=True)
    days = sorted(folder.glob("drive_hours*.parquet"))
    measure(DRIVETAIL, "ingest", "bundle", folder / "drives.parquet", folder / "drive_events.parquet", "--warehouse", warehouse)
    daily = [
        "| drive-hours | of each day, wall (s) | CPU (s) | build of the day, wall (s) | CPU (s) | peak memory (MiB) |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    loaded = 0
    for history, (limit, aim) in zip(setting.relation_days, LIMITS, strict=True):
        for last in (history - 1, history):  # all but one day, then that
            measure(DRIVETAIL, "ingest", "bundle", *days[loaded:last], "--warehouse", warehouse)
            build = measure(DRIVETAIL, "build", "--warehouse", warehouse)
            loaded = last
        rows, spent = row_count(days[:history]), phases(warehouse)["each_day"]
        daily.append(f"| {rows:,} | {spent.seconds:.1f} | {spent.cpu_seconds:.1f} | {build.cells} |")
        print(daily[-1], flush=True)
        bounds.append(
            Bound(
                f"CPU time of the relations of each day after one more day, {rows / 1e6:.1f} M drive-hours",
                spent.cpu_seconds,
                limit,
                aim=aim,
            )
        )
        if history == setting.relation_days[0]:
            more, more_bounds = reading(warehouse, f"{rows / 1e6:.1f} M drive-hours")
            lines, bounds = lines + more, bounds + more_bounds
    head = ["| warehouse | relations | slowest | wall (s) | CPU (s) | peak memory (MiB) |", "|---|--:|---|--:|--:|--:|"]
    return [Section("Published relations", [*head, *lines, "", *daily], bounds)]

"""One day of the paper's fleet: the product beside the same stages in plain DuckDB SQL, and beside a script in pandas."""

from __future__ import annotations

import shutil
import statistics
import sys
from pathlib import Path

import duckdb

from workbench.measure import DRIVETAIL, Cost, folder_mib, measure, simulate
from workbench.parts import Bound, Section, Setting, middle
from workbench.yardsticks import SCRIPTS
from workbench.yardsticks.compare import compare_slowdowns, relation

SKETCH, PANDAS = SCRIPTS
INGEST, BUILD, PRODUCT = "`drivetail ingest`", "`drivetail build`, publication included", "**drivetail, both**"


def fleet(setting: Setting) -> Path:
    """The folder with one day of the paper's fleet, simulated when it is not there."""
    folder = setting.work / ("small-day" if setting.small else "day")
    simulate(folder, *setting.paper_fleet, 1)
    return folder


def warehouse_of_day(setting: Setting) -> Path:
    """Where the day is ingested and built."""
    return setting.work / "day-warehouse"


def run_script(name: str, setting: Setting) -> Cost:
    """Run one script over the day."""
    out = setting.work / "yardsticks" / name
    shutil.rmtree(out, ignore_errors=True)
    return measure(sys.executable, "-m", f"workbench.yardsticks.{SCRIPTS[name]}", fleet(setting), out)


def answer(name: str, setting: Setting) -> str:
    """The slowdowns that a script wrote, as SQL."""
    out = setting.work / "yardsticks" / name
    return relation(f"{out}/drive_hours.parquet", f"{out}/drive_id_register.parquet" if name == SKETCH else "")


def run_product(setting: Setting) -> dict[str, Cost]:
    """Ingest and build the day in a new warehouse."""
    warehouse = warehouse_of_day(setting)
    shutil.rmtree(warehouse, ignore_errors=True)
    ingest = measure(DRIVETAIL, "ingest", "bundle", fleet(setting), "--warehouse", warehouse)
    build = measure(DRIVETAIL, "build", "--warehouse", warehouse)
    return {INGEST: ingest, BUILD: build, PRODUCT: ingest + build}


def bench_day(setting: Setting) -> list[Section]:
    """Every script and the product, one after the other, each repetition."""
    rows = simulate(fleet(setting), *setting.paper_fleet, 1)
    runs: list[dict[str, Cost]] = []
    for _ in range(setting.repetitions):
        runs.append({name: run_script(name, setting) for name in SCRIPTS} | run_product(setting))
        print({name: (round(cost.seconds, 1), round(cost.cpu_seconds, 1)) for name, cost in runs[-1].items()}, flush=True)
    costs = {name: middle([run[name] for run in runs]) for name in runs[0]}

    def ratio(name: str, of: str) -> float:
        """Median over the repetitions of the product over a script, within one repetition."""
        return statistics.median(float(getattr(run[PRODUCT], of) / getattr(run[name], of)) for run in runs)

    bounds = [
        Bound("wall time over the sketch", ratio(SKETCH, "seconds"), 2, "x", 1.5),
        Bound("CPU time over the sketch", ratio(SKETCH, "cpu_seconds"), 2.6, "x", 1.8),
        Bound("wall time over pandas", ratio(PANDAS, "seconds"), 1, "x", 0.7),
    ]
    with duckdb.connect(str(warehouse_of_day(setting) / "warehouse.duckdb"), read_only=True) as connection:
        mart = "(select drive_id, hour_utc, slowdown from marts.fct_drive_hours)"
        answers = {"`marts.fct_drive_hours`": mart, PANDAS: answer(PANDAS, setting)}
        compared = {name: compare_slowdowns(answer(SKETCH, setting), other, connection) for name, other in answers.items()}
    differing = {name: rows for name, (_, rows) in compared.items() if rows}
    whose = f" ({', '.join(differing)})" if differing else f", in {len(compared)} answers"
    bounds.append(Bound(f"drive-hours whose slowdown differs from the sketch's{whose}", sum(differing.values()), 0, "rows"))
    warehouse = warehouse_of_day(setting)
    lines = [
        f"{rows:,} drive-hours delivered; medians of {setting.repetitions} repetitions, in each one process after the other.",
        "The sketch runs the stages of the product's day in plain SQL; both scripts give slowdowns, imbalances, tails and counts by drive and day.",
        "",
        "| step | wall (s) | CPU (s) | peak memory (MiB) | product, wall | product, CPU |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, cost in costs.items():
        times = f"{ratio(name, 'seconds'):.2f}x | {ratio(name, 'cpu_seconds'):.2f}x" if name in SCRIPTS else " | "
        lines.append(f"| {name} | {cost.cells} | {times} |")
    lines += [
        "",
        "| on disk | MiB |",
        "|---|--:|",
        f"| delivered Parquet | {folder_mib(*fleet(setting).glob('*.parquet')):,.0f} |",
        *(f"| {each} | {folder_mib(warehouse / each):,.0f} |" for each in ("raw", "store", "publications", "build")),
    ]
    return [Section("One day of the paper's fleet", lines, bounds)]

"""What people ask: the cookbook's questions of 44 million drive-hours, and the commands on the demo."""

from __future__ import annotations

import re
import shutil
import statistics
import time

import duckdb

from workbench.commit import ROOT
from workbench.measure import DRIVETAIL, measure
from workbench.parts import Bound, Section, Setting
from workbench.parts.study import month_warehouse

COOKBOOK = ROOT / "docs" / "cookbook.md"
COMMAND_SECONDS = 1.0
MEDIAN_SECONDS = 0.5


def cookbook() -> dict[str, str]:
    """The SQL of each question, by its title."""
    text = COOKBOOK.read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\d+\. .+?)$.*?```sql\n(.*?)```", text, flags=re.MULTILINE | re.DOTALL))


def bench_questions(setting: Setting) -> list[Section]:
    """Each question in a new connection to the published file, as an analyst's program asks it."""
    warehouse = month_warehouse(setting)
    lines = ["| question | wall (s) | CPU (s) | rows |", "|---|--:|--:|--:|"]
    found: list[float] = []
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        rows = connection.execute("select count(*) from marts.fct_drive_hours").fetchall()[0][0]
    for title, sql in cookbook().items():
        runs = []
        for _ in range(setting.repetitions):
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
    head = f"docs/cookbook.md over {rows:,} drive-hours of data drives, through the published file. Medians of {setting.repetitions}, a new connection each; those above {MEDIAN_SECONDS} s."
    bounds = [Bound("median question", statistics.median(found), MEDIAN_SECONDS), Bound("slowest question", max(found), 2)]
    return [Section("The cookbook's questions", [head, "", *lines], bounds)]


def bench_commands(setting: Setting) -> list[Section]:
    """What is typed most, on the demo."""
    demo = setting.work / "demo"
    shutil.rmtree(demo, ignore_errors=True)
    measure(DRIVETAIL, "demo", "--out", demo)
    warehouse = next(path.parent for path in demo.rglob("warehouse.duckdb"))
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        slowest = "select drive_id, hour_utc from marts.fct_drive_hours where is_slow order by slowdown desc, drive_id limit 1"
        drive, hour = connection.execute(slowest).fetchall()[0]
    asked = {
        "sql": ["sql", "select kind, count(*) from marts.fct_raid_hours where is_tail_hour group by kind"],
        "explain": ["explain", drive, f"{hour:%Y-%m-%d %H:%M}"],
        "alerts": ["alerts"],
        "candidates": ["candidates"],
        "status": ["status"],
    }
    lines = [
        f"Medians of {setting.repetitions}, start of the command included.",
        "",
        "| command | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|",
    ]
    bounds = []
    for name, command in asked.items():
        costs = [measure(DRIVETAIL, *command, "--warehouse", warehouse) for _ in range(setting.repetitions)]
        seconds = statistics.median(cost.seconds for cost in costs)
        cpu = statistics.median(cost.cpu_seconds for cost in costs)
        lines.append(f"| `drivetail {name}` | {seconds:.2f} | {cpu:.2f} | {max(cost.peak_mib for cost in costs):,.0f} |")
        bounds.append(Bound(f"`drivetail {name}`", seconds, COMMAND_SECONDS))
        print(lines[-1], flush=True)
    return [Section("Commands on the demo", lines, bounds)]

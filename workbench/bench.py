"""The warehouse's promises on speed and size, measured: `make bench`.

    python -m workbench.bench --work FOLDER --only day,hour,...

Each part writes its own sections of docs/results/bench.md, with commit, date, command and machine, and says whether its bounds hold.
The machine is shared: ratios are taken within one run, and CPU seconds stand beside wall seconds. Exits 1 when a bound fails.
`day/` below the work folder is used where it is there (drive_hours*.parquet, drives.parquet, drive_events.parquet), else simulated.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from engine.projects import projects
from workbench.commit import ROOT, current_commit
from workbench.parts import PAPER_DAYS, Section, Setting
from workbench.parts.check import bench_check
from workbench.parts.day import bench_day
from workbench.parts.decisions import bench_decisions
from workbench.parts.deliveries import bench_deliveries
from workbench.parts.hour import bench_hour
from workbench.parts.month import bench_month, bench_year
from workbench.parts.questions import bench_commands
from workbench.parts.report import bench_report
from workbench.parts.scale import bench_scale
from workbench.parts.spark import bench_spark

RESULTS = ROOT / "docs" / "results" / "bench.md"
PARTS: dict[str, Callable[[Setting], list[Section]]] = {
    "day": bench_day,
    "hour": bench_hour,
    "month": bench_month,
    "year": bench_year,
    "scale": bench_scale,
    "commands": bench_commands,
    "check": bench_check,
    "report": bench_report,
    "decisions": bench_decisions,
    "deliveries": bench_deliveries,
    **{name: part for project in projects() for name, part in project.benches().items()},
    "spark": bench_spark,
}


def machine() -> str:
    """Cores, memory and processor."""
    models = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} shared cores ({models[0] if models else 'unknown processor'}), {memory:.0f} GiB, DuckDB {duckdb.__version__}"


def written(section: Section, begun: str) -> str:
    """A section as it stands in the page."""
    lines = [f"## {section.title}", "", begun, "", *map(str, section.bounds), *([""] if section.bounds else []), *section.lines]
    return "\n".join(lines).rstrip() + "\n"


def enter(section: Section, begun: str) -> None:
    """Write a section into docs/results/bench.md, in the place of its last measurement, or as the last."""
    old = RESULTS.read_text(encoding="utf-8").split("\n## ")[1:]
    sections = {text.partition("\n")[0]: f"## {text.rstrip()}\n" for text in old} | {section.title: written(section, begun)}
    measured_on = f"`make bench` on {machine()}. Absolute seconds vary with the machine's neighbours; ratios are taken within one run.\n"
    RESULTS.write_text("\n".join(["# Benchmark", "", *what_holds(sections), measured_on, *sections.values()]), encoding="utf-8")


def what_holds(sections: dict[str, str]) -> list[str]:
    """How many bounds hold, which, and which do not, of the sections as they are written."""
    judged = [(title, line) for title, text in sections.items() for line in text.splitlines() if line.endswith((": holds", ": FAILS"))]
    lines: list[str] = []
    for ending, words in ((": holds", "bounds hold"), (": FAILS", "do not")):
        if found := [f"{line.removesuffix(ending)} ({title})" for title, line in judged if line.endswith(ending)]:
            lines += [f"{len(found)} of {len(judged)} {words}:", "", *found, ""]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir()) / "drivetail-bench", help="scratch folder (scale needs 60 GB)"
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, with commas between: {', '.join(PARTS)}")
    parser.add_argument(
        "--small", action="store_true", help="small fleets, to see that every part runs: prints, writes no results, judges no bounds"
    )
    parser.add_argument(
        "--scale-days", type=int, default=PAPER_DAYS, help="days of part scale; of fewer than 74 the time of 74 is calculated"
    )
    options = parser.parse_args()
    parts = options.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    options.work.mkdir(parents=True, exist_ok=True)
    setting = Setting(options.work.resolve(), options.repetitions, options.small, 3 if options.small else options.scale_days)
    # the page says what to type, not which folder one machine had
    given = ["FOLDER" if before == "--work" else word for before, word in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)]
    commit, command = current_commit(), shlex.join(["python", "-m", "workbench.bench", *given])
    failed: list[str] = []
    for part in parts:
        begun = f"Commit {commit}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; `{command}`."
        for section in PARTS[part](setting):
            print(written(section, begun), flush=True)
            if not options.small:
                enter(section, begun)
                failed += [f"{section.title}: {bound.what}" for bound in section.bounds if not bound.holds]
    if failed:
        sys.exit("these bounds fail:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()

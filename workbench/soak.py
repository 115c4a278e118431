"""`make soak`: 20 random fleets against the reference, 50 kills, two days and 50 killed tasks under a real scheduler; writes docs/results/soak.md.

Fresh seeds each time; the result names them, so that a failure can be repeated. `--only kills` runs one part; the others' rows stay
as they are, each with the commit and time it was run at.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from datetime import UTC, datetime

from workbench.commit import ROOT, current_commit

RESULT = ROOT / "docs/results/soak.md"
TESTS = {
    "proof": ["-m", "not soak"],
    "fleets": [
        "tests/proof/test_marts_equal_reference.py",
        "tests/proof/test_perseus_samples.py",
        "tests/proof/test_identity.py",
    ],
    "worlds": ["tests/proof/test_worlds.py"],
    "incidents": ["tests/reference/test_incidents.py"],
    "pages": [
        "tests/report/test_weekly_report.py",
        "tests/report/test_cookbook.py",
        "study/tests/test_page.py",
        "tests/workbench",
        "tests/proof/test_wheel.py",
        "tests/proof/test_reading.py",
        "-m",
        "soak",
    ],
    "kills": ["tests/proof/test_killed.py", "lab/tests/test_lab_killed.py"],
    "prunes": ["tests/proof/test_pruned.py", "tests/drivetail/test_prune.py"],
    "strains": [
        "tests/proof/test_reliability.py",
        "tests/proof/test_disk_full.py",
        "tests/proof/test_published_file.py",
        "tests/drivetail/test_upgrade.py",
    ],
    "readers": ["tests/proof/test_hostile_readers.py", "-n", "0", "-s"],
    "servers": ["tests/proof/test_prometheus_answers.py", "tests/drivetail/test_pulls.py"],
    "parsers": ["tests/ingest", "lab/tests/test_any_output.py", "-k", "any_ or no_row_is_lost", "-s", "-n", "0"],
    "tasks": ["tests/dags", "tests/drivetail/test_maintenance.py"],
    "machine": ["tests/proof/test_qemu_machine.py"],
    "spark": ["tests/spark", "-n", "0", "-s"],
}
PRUNED_FLEETS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--task-kills", type=int, default=50)
    parser.add_argument("--reader-minutes", type=float, default=60)
    parser.add_argument("--only", choices=TESTS, help="one part")
    options = parser.parse_args()
    draw = random.Random()
    seeds = ",".join(str(seed) for seed in draw.sample(range(1, 1_000_000), options.fleets))
    kill_seed = str(draw.randrange(1, 1_000_000))
    failed, commit = False, current_commit()
    runs = {
        "proof": ({"DRIVETAIL_LAB_SEEDS": "20"}, "every test of `make test` and `make proof`, one random fleet"),
        "fleets": (
            {"DRIVETAIL_SEEDS": seeds, "DRIVETAIL_BUILDS": "3"},
            f"{options.fleets} fleets in three ways of delivery, one by two at once, DRIVETAIL_SEEDS={seeds}",
        ),
        "worlds": ({}, "2,000 worlds against the laws of identity, and faults planted in what keeps them"),
        "kills": (
            {"DRIVETAIL_KILLS": str(options.kills), "DRIVETAIL_KILL_SEED": kill_seed},
            f"{options.kills} kills over six phases, DRIVETAIL_KILL_SEED={kill_seed}",
        ),
        "prunes": (
            {"DRIVETAIL_SEEDS": ",".join(seeds.split(",")[:PRUNED_FLEETS]), "DRIVETAIL_FLEETS": "1", "DRIVETAIL_KILL_SEED": kill_seed},
            f"{PRUNED_FLEETS} fleets pruned twice and 8 prunes killed, DRIVETAIL_SEEDS={seeds}, DRIVETAIL_KILL_SEED={kill_seed}",
        ),
        "pages": ({}, "an earlier week's report built again, the page of all tables"),
        "strains": ({}, "disk full, memory, clock, damaged files"),
        "readers": (
            {"DRIVETAIL_READER_MINUTES": str(options.reader_minutes), "DRIVETAIL_READER_SEED": kill_seed},
            f"fifty readers of the console for {options.reader_minutes:g} minutes, hostile questions and swaps, DRIVETAIL_READER_SEED={kill_seed}",
        ),
        "servers": ({}, "a month of a fleet, from a real Prometheus and from its bundle"),
        "parsers": ({"DRIVETAIL_FUZZ_SECONDS": "15"}, "15 CPU seconds of fuzzing for each parser"),
        "tasks": (
            {"DRIVETAIL_SCHEDULED_HOURS": "48", "DRIVETAIL_TASK_KILLS": str(options.task_kills), "DRIVETAIL_KILL_SEED": kill_seed},
            f"two days under a real scheduler, {options.task_kills} tasks killed, DRIVETAIL_KILL_SEED={kill_seed}",
        ),
        "machine": ({}, "two machines with a real md RAID-6 in QEMU, one with a throttled drive"),
        "spark": (
            {"DRIVETAIL_SEEDS": seeds.split(",")[0], "DRIVETAIL_FLEETS": "1"},
            "Spark and DuckDB in turn, over a prune, on larger fleets, on a cluster whose workers are killed, without room or memory, "
            f"DRIVETAIL_SEEDS={seeds.split(',')[0]}",
        ),
    }
    for what in [options.only] if options.only else list(TESTS):
        environment, shown = runs[what]
        begun, started = time.monotonic(), datetime.now(UTC)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "soak or not soak", *TESTS[what]],
            cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        print(done.stdout, flush=True)
        failed |= done.returncode != 0
        last = [line for line in done.stdout.splitlines() if re.search(r"\d+ (passed|failed|error|skipped)", line)]
        told = last[-1].strip("= ") if last else f"exit {done.returncode}"
        fuzzed = re.findall(r"fuzzed (.+?): (\d+) inputs", done.stdout)
        told += f"; {sum(int(inputs) for _, inputs in fuzzed):,} inputs to {len(fuzzed)} parsers" if fuzzed else ""
        enter(what, f"| {what} | {shown} | {told} | {time.monotonic() - begun:.0f} | {commit} | {started:%Y-%m-%d %H:%M} |")
    sys.exit(1 if failed else 0)


def enter(what: str, row: str) -> None:
    """Write a part's row into the table, in the place of its last one."""
    old = RESULT.read_text(encoding="utf-8").splitlines() if RESULT.exists() else []
    rows = {part: line for line in old for part in TESTS if line.startswith(f"| {part} |")} | {what: row}
    failed = [part for part, line in rows.items() if re.search(r"\d+ (failed|error)|\| exit ", line)]
    held = f"{len(rows) - len(failed)} of {len(rows)} parts passed" + (f"; not {', '.join(failed)}." if failed else ".")
    head = ["# Soak", "", held, "", f"`make soak`, {os.cpu_count()} cores; each part with the commit it ran at, times in UTC.", ""]
    table = ["| part | what | result | s | commit | begun |", "|---|---|---|--:|---|---|", *(rows[part] for part in TESTS if part in rows)]
    RESULT.write_text("\n".join([*head, *table]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""`drivetail demo`: the whole path on a small simulated fleet, by the commands that a user would type."""

from __future__ import annotations

import shlex
import shutil
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click
import polars as pl

from drivetail.terminal import say
from engine.warehouse import Warehouse

FLEET = "--disk-groups 9 --ssd-groups 4 --days 70 --seed 9"
"""Ten weeks: nine are needed until a prediction can be compared with what came."""
CASES = ("all", "failing", "swapped", "sudden", "mild", "updated", "boot", "unequal")
DECIDED_BEFORE = timedelta(hours=48)
"""The drive that was swapped was decided on so long before."""


def run_demo(out: Path, drivetail: click.Command, end: date | None = None) -> None:
    """Simulate, ingest, build, decide and report into `out`, replacing an earlier demo there; says where things are.

    drivetail: the command itself. end: last day of the data (UTC); by default yesterday.
    """
    from drivetail.ask.decisions import decide

    def run(command: str) -> None:
        _show(command)
        drivetail.main(shlex.split(command)[1:], standalone_mode=False)

    started = time.monotonic()
    fleet, warehouse = out / "fleet", Warehouse(out / "warehouse")
    # the folder of a site may be made in it before
    if not (fleet / "truth").is_dir() and any(path.is_file() for path in out.rglob("*")):
        raise click.UsageError(f"{out} holds something that no demo wrote; name another folder with --out")
    for folder in (fleet, warehouse.root):
        shutil.rmtree(folder, ignore_errors=True)
    last = end or datetime.now(UTC).date() - timedelta(days=1)
    where = f"--warehouse {shlex.quote(str(warehouse.root))}"
    run(f"drivetail simulate --out {shlex.quote(str(fleet))} {FLEET} --end {last} {' '.join(f'--awkward {case}' for case in CASES)}")
    say("Some of its records are bad on purpose: ingest rejects each with file, row, column and value, and keeps the others")
    run(f"drivetail ingest bundle {shlex.quote(str(fleet))} {where}")
    run(f"drivetail build {where}")
    ((swapped, swapped_at),) = (
        pl.read_csv(fleet / "truth" / "truth_awkward.csv", try_parse_dates=True)
        .filter(pl.col("case") == "swapped")
        .select("drive_id", "hour_utc")
        .rows()
    )
    note = "slow again and again for weeks, always alone"
    _show(f'drivetail decide {swapped} replace --by ada --ticket OPS-4711 --note "{note}" {where}')
    decide(warehouse, [swapped], "replace", by="ada", ticket="OPS-4711", note=note, at=swapped_at - DECIDED_BEFORE)
    say(f"As of {swapped_at - DECIDED_BEFORE:%Y-%m-%d}, two days before it was swapped")
    run(f"drivetail report {where}")
    say(f"\nDone in {time.monotonic() - started:.0f} s. Now ask it something. First: export DRIVETAIL_WAREHOUSE={where.partition(' ')[2]}")
    say("  drivetail candidates              which drives to replace, and why")
    say("  drivetail alerts                  what has just become slow")
    say("  drivetail decisions               what was decided, and what came of it")
    say("  drivetail serve                   all of it in a browser")


def _show(command: str) -> None:
    click.secho(f"$ {command}", bold=True)

"""`drivetail demo`: the whole path on a small simulated fleet, in the words a user would type."""

from __future__ import annotations

import shlex
import shutil
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click
import polars as pl

from drivetail.console import progress, say
from engine.warehouse import Warehouse
from report.words import human

DISK_GROUPS, SSD_GROUPS, DAYS, SEED = 9, 4, 70, 9
"""Ten weeks: nine are needed until a prediction can be compared with what came."""
CASES = ("all", "failing", "swapped", "sudden", "mild", "updated")
DECIDED_BEFORE = timedelta(hours=48)
"""The drive that was swapped was decided on so long before."""


def run_demo(out: Path, end: date | None = None) -> None:
    """Simulate, ingest, build, decide and report into `out`, replacing an earlier demo there; says where things are.

    end: last day of the data (UTC); by default yesterday.
    """
    from drivetail.ask.decisions import decide
    from engine.build import build
    from ingest import ingest
    from report import write_report
    from simulate import simulate

    started = time.monotonic()
    fleet, warehouse = out / "fleet", Warehouse(out / "warehouse")
    if out.exists() and any(out.iterdir()) and not (fleet / "truth").is_dir():
        raise click.UsageError(f"{out} holds something that no demo wrote; name another folder with --out")
    for folder in (fleet, warehouse.root):
        shutil.rmtree(folder, ignore_errors=True)
    last = end or datetime.now(UTC).date() - timedelta(days=1)
    options = f"--disk-groups {DISK_GROUPS} --ssd-groups {SSD_GROUPS} --days {DAYS} --end {last} --seed {SEED}"
    _step(f"drivetail simulate --out {fleet} {options} {' '.join(f'--awkward {case}' for case in CASES)}")
    with progress("Simulating") as advance:
        simulated = simulate(
            fleet,
            disk_groups=DISK_GROUPS,
            ssd_groups=SSD_GROUPS,
            days=DAYS,
            seed=SEED,
            end=last,
            awkward=CASES,
            on_progress=lambda done, total: advance("hours", done, total),
        )
    say(f"  {human(simulated.row_count)} drive-hours, {human(simulated.event_rows)} events; the truth about them: {simulated.truth}")
    _step(f"drivetail ingest bundle {fleet} --warehouse {warehouse.root}")
    with progress("Ingesting") as advance:
        landed = ingest("bundle", [fleet], warehouse.root, on_progress=advance)
    say(
        f"  {human(landed.rows_delivered)} rows in, {human(landed.rows_accepted)} accepted, {human(landed.rows_rejected)} rejected, "
        f"{human(landed.rows_duplicate)} duplicate, {human(landed.rows_superseded)} superseded"
    )
    _step(f"drivetail build --warehouse {warehouse.root}")
    with progress("Building") as advance:
        built = build(warehouse, on_progress=advance)
    say(f"  {human(built.drive_hour_count)} drive-hours in {human(built.raid_hour_count)} RAID-hours, tested and published")
    ((swapped, swapped_at),) = (
        pl.read_csv(simulated.truth / "truth_awkward.csv", try_parse_dates=True)
        .filter(pl.col("case") == "swapped")
        .select("drive_id", "hour_utc")
        .rows()
    )
    note = "slow again and again for weeks, always alone"
    _step(f'drivetail decide {swapped} replace --by ada --ticket OPS-4711 --note "{note}" --warehouse {warehouse.root}')
    decide(warehouse, [swapped], "replace", by="ada", ticket="OPS-4711", note=note, at=swapped_at - DECIDED_BEFORE)
    say(f"  as of {swapped_at - DECIDED_BEFORE:%Y-%m-%d}, two days before it was swapped")
    _step(f"drivetail report --warehouse {warehouse.root}")
    path = write_report(warehouse)
    say(f"  {path.stat().st_size // 1000:,} kB")
    say(f"\nDone in {time.monotonic() - started:.0f} s. The weekly report: {path}")
    say(f"Now ask it something. First: export DRIVETAIL_WAREHOUSE={shlex.quote(str(warehouse.root))}")
    say("  drivetail candidates              which drives to replace, and why")
    say("  drivetail alerts                  what has just become slow")
    say("  drivetail decisions               what was decided, and what came of it")
    say("  drivetail serve                   all of it in a browser")


def _step(command: str) -> None:
    """Show the command that does what comes next."""
    click.secho(f"$ {command}", bold=True)

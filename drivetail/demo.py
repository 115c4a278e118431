"""`drivetail demo`: the whole path on a small simulated fleet, in the words a user would type."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import click

from drivetail.console import progress, say
from engine.warehouse import Warehouse
from engine.words import human

DISK_GROUPS, SSD_GROUPS, DAYS, SEED = 16, 8, 28, 2
"""Four whole ISO weeks, so that the last one has others to be compared with."""


def run_demo(out: Path) -> None:
    """Simulate, ingest, build and report into `out`, replacing an earlier demo there; says where things are."""
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
    options = f"--disk-groups {DISK_GROUPS} --ssd-groups {SSD_GROUPS} --days {DAYS} --seed {SEED}"
    _step(f"drivetail simulate --out {fleet} {options} --awkward all")
    with progress("Simulating") as advance:
        simulated = simulate(
            fleet,
            disk_groups=DISK_GROUPS,
            ssd_groups=SSD_GROUPS,
            days=DAYS,
            seed=SEED,
            awkward=("all",),
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
    _step(f"drivetail report --warehouse {warehouse.root}")
    path = write_report(warehouse)
    say(f"  {path.stat().st_size // 1000:,} kB")
    say(f"\nDone in {time.monotonic() - started:.0f} s. The weekly report: {path}")
    say(f'Now ask it something: drivetail sql "select * from marts.fct_weekly_summary" --warehouse {warehouse.root}')


def _step(command: str) -> None:
    """Show the command that does what comes next."""
    click.secho(f"$ {command}", bold=True)

"""`drivetail toleraid`: what reading around slow drives would gain."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from drivetail.cli.options import INSTANT, POLICIES, format_option, warehouse_option
from drivetail.terminal import say, say_rows
from engine.warehouse import Warehouse
from ingest.contract.values import DRIVE_KINDS
from lab.cli.lab import LabGroup

CSV_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def rule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the policies."""
    for add in (
        click.option(
            "--sr", type=click.IntRange(min=1), default=3, show_default=True, help="Late requests in a row that make a drive offend."
        ),
        click.option(
            "--st",
            type=click.FloatRange(min=0, min_open=True),
            default=2.0,
            show_default=True,
            help="Base latencies after which a block is late and is rebuilt.",
        ),
        click.option("--parity", type=click.IntRange(1, 2), default=2, show_default=True, help="Parities: 2 for RAID-6, 1 for RAID-5."),
    ):
        command = add(command)
    return command


def known_policies(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Policies named with commas between. Raises: BadParameter for one that there is not."""
    names = tuple(name.strip() for name in text.split(",")) if text is not None else POLICIES
    unknown = [name for name in names if name not in POLICIES]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r} is no policy; there are {', '.join(POLICIES)}")
    return tuple(name for name in POLICIES if name in names)


@click.group(cls=LabGroup)
def toleraid() -> None:
    """Simulate reading around slow drives (ToleRAID).

    \b
    drivetail toleraid run                          on this fleet's own RAID-hours
    drivetail toleraid run --slowdowns rare --jitter paper
    drivetail toleraid report --out tolerance.html  beside the paper's Figure 12
    """


@toleraid.command("run")
@click.option(
    "--slowdowns",
    default="fleet",
    show_default=True,
    metavar="SOURCE",
    help="Where slowdowns come from: fleet, rare or periodic (the paper's), a CSV file, or the id of a stored distribution.",
)
@click.option("--kind", type=click.Choice(DRIVE_KINDS), help="RAID groups of one kind, with --slowdowns fleet.  [default: all]")
@click.option("--since", type=INSTANT, help="First hour of the fleet that counts (UTC).  [default: all]")
@click.option("--until", type=INSTANT, help="End of the hours of the fleet that count (UTC).  [default: all]")
@click.option("--data-drives", type=click.IntRange(1, 255), help="Data drives of the RAID group.  [default: the fleet's commonest, else 6]")
@click.option("--layout", type=click.Choice(["fixed", "rotating"]), default="fixed", show_default=True, help="Whether parity rotates.")
@click.option("--policies", callback=known_policies, metavar="LIST", help="Policies, with commas between.  [default: all]")
@click.option("--requests", type=click.IntRange(1, 100_000_000), default=400_000, show_default=True, help="Full-stripe reads to simulate.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), default=52.0, show_default=True, help="Requests a minute.")
@click.option(
    "--arrivals", type=click.Choice(["poisson", "regular"]), default="poisson", show_default=True, help="At random times, or evenly."
)
@click.option("--trace", type=CSV_FILE, help="Read the requests from a block trace: time_s,offset_bytes,length_bytes,op, or MSR Cambridge.")
@click.option("--jitter", default="none", show_default=True, metavar="SOURCE", help="Base latencies: none, paper, or a CSV of quantiles.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the random numbers.")
@click.option("--save-requests", type=click.Path(dir_okay=False, path_type=Path), help="Parquet file to write every request to.")
@rule_options
@format_option("How to print what each policy did.")
@warehouse_option
def run_simulation(warehouse: Warehouse, output: str, since: datetime | None, until: datetime | None, **options: Any) -> None:
    """Simulate the policies and keep the results.

    The results are in schema `lab` of the published warehouse at once. The same call on the same slowdowns gives the same bits.
    """
    from lab.ask.toleraid import Question, run, runs_table

    if since is not None and until is not None and until <= since:
        raise click.UsageError(f"--until {until} is not after --since {since}")
    if options["slowdowns"] != "fleet" and (options["kind"] or since or until):
        raise click.UsageError("--kind, --since and --until go with --slowdowns fleet")
    if options["jitter"] not in {"none", "paper"} and not Path(options["jitter"]).is_file():
        raise click.UsageError(f"--jitter {options['jitter']}: no such file; give none, paper or a CSV file")
    rows = run(warehouse, Question(since=since, until=until, **options))
    say_rows(output, rows, runs_table)


@toleraid.command("apply")
@click.argument("file", type=CSV_FILE)
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="CSV file to write.")
@rule_options
def apply_policies(file: Path, out: Path, st: float, sr: int, parity: int) -> None:
    """Apply the policies to given completion times.

    FILE has the header d1..dN,p,q and a request per row, in order, in multiples of the base latency.
    """
    from lab.ask.toleraid import apply

    say(f"{apply(file, out, st=st, sr=sr, parity=parity):,} requests: {out}")


@toleraid.command("report")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("tolerance.html"),
    show_default=True,
    help="HTML file to write.",
)
@warehouse_option
def write_report(warehouse: Warehouse, out: Path) -> None:
    """Draw the runs beside the paper's Figure 12.

    The latest run of each distribution, and each number of the paper with a verdict.
    """
    from engine.build import make_asked
    from engine.read import publication_of
    from lab.pages.toleraid import write_tolerance

    with publication_of(warehouse, must_be_of_these_models=True):
        pass  # what is to build is for `drivetail build` to say and do
    make_asked(warehouse)  # the fleet's own hours stand beside the runs
    say(f"Report: {write_tolerance(warehouse, out)}")

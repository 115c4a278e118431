"""`drivetail study`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from drivetail.cli.options import FILE, warehouse_option
from drivetail.terminal import say_rows
from engine.warehouse import Warehouse
from ingest.contract.values import DRIVE_KINDS


@click.command()
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv"]),
    help="How to print the numbers; json and csv hold every column and row.  [default: table]",
)
@click.option("--all", "is_all", is_flag=True, help="List every number, of figures and text too.")
@click.option("--kind", type=click.Choice(DRIVE_KINDS), help="Drives of one kind only.  [default: both]")
@click.option("--html", "page", metavar="FILE", type=FILE, help="HTML file to write.")
@warehouse_option
def study(warehouse: Warehouse, output: str | None, is_all: bool, kind: str | None, page: Path | None) -> None:
    """Compare this fleet with The Tail at Store (FAST'16).

    Counts for each of the paper's findings and tables how many numbers agree. With --all each number has a line: this fleet's value, its
    95% interval, the paper's and a verdict.

    \b
    drivetail study --html study.html      also the figures, drawn over the paper's; prints only where the file is
    """
    from engine.build import make_asked
    from engine.read import publication_of
    from study.table import render_study
    from study.words import fetch_results

    # what is to build is for `drivetail build` to say and do
    with publication_of(warehouse, must_be_of_these_models=True):
        pass
    make_asked(warehouse)
    if page is not None:
        from study.pages.write import write_study

        # with --format the numbers alone go to stdout
        click.echo(f"Study: {write_study(warehouse, page, kind=kind)}", err=output is not None)
        if output is None:
            return
    with publication_of(warehouse) as connection:
        rows = fetch_results(connection, kind)
    say_rows(output or "table", rows, partial(render_study, is_all=is_all))

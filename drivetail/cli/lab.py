"""`drivetail lab`: experiments on drives, filesystems and settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from drivetail.cli.options import Failure, progress_of, warehouse_option
from drivetail.console import as_json, say
from engine.warehouse import Warehouse
from engine.words import counted_noun


def lab_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what is wrong with a bundle or an experiment into one line."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        from lab.contract import LabError

        try:
            return command(*args, **kwargs)
        except LabError as error:
            raise Failure(str(error)) from error

    return wrapped


@click.group()
def lab() -> None:
    """Qualify drives, filesystems and settings by experiment.

    \b
    drivetail lab ingest BUNDLE     take in what the tools measured
    drivetail lab build             compute it and publish it
    drivetail lab status            what has landed, and what is missing
    """


@lab.command("ingest")
@click.argument("bundles", nargs=-1, required=True, metavar="BUNDLE...", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit 1 if a file is refused.")
@warehouse_option
@lab_command
def ingest_bundles(warehouse: Warehouse, bundles: tuple[Path, ...], strict: bool) -> None:
    """Land experiment bundles: folders or archives.

    A bundle holds experiment.toml, runs.csv and the tools' output. Landing it again changes nothing.
    """
    from lab.landing import ingest_bundle

    refused = 0
    for place in bundles:
        landed = ingest_bundle(warehouse.root, place)
        for note in landed.notes:
            say(f"note: {note}")
        for row in landed.refused:
            say(f"refused: {row['file']}: {row['reason']}: {row['message']}")
        for row in landed.files:
            if row["lines_rejected"]:
                say(f"note: {row['file']}: {counted_noun(row['lines_rejected'], 'line')} did not parse; first: {row['first_rejected']!r}")
        refused += len(landed.refused)
        taken = len(landed.files) - len(landed.refused)
        known = f", {counted_noun(landed.known, 'file')} had landed before" if landed.known else ""
        none = "; nothing new, so nothing changed" if landed.delivery_seq is None else ""
        say(f"{landed.experiment_id}: {counted_noun(taken, 'file')} taken, {len(landed.refused)} refused{known}{none}")
    if refused and strict:
        raise Failure(f"{counted_noun(refused, 'file')} refused (see above); the others have landed")


@lab.command("build")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@warehouse_option
@lab_command
def build(warehouse: Warehouse, experiments: tuple[str, ...]) -> None:
    """Compute the experiments that have changed, and publish.

    An EXPERIMENT that is named is computed in any case. `drivetail build` runs none of this.
    """
    from engine.lab_build import build_lab

    with progress_of(warehouse, "Building the lab") as advance:
        summary = build_lab(warehouse, experiments, advance)
    say(
        f"Computed {counted_noun(len(summary.computed), 'experiment')} of {len(summary.experiments)}; "
        f"published {summary.publication.publication_id} in {warehouse.published}"
    )


@lab.command("status")
@click.argument("experiment", required=False)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
@click.option("--check", is_flag=True, help="Exit 1 if a file is refused, or a run or a cell is missing.")
@warehouse_option
@lab_command
def status(warehouse: Warehouse, experiment: str | None, is_json: bool, check: bool) -> None:
    """Show what has landed and what is missing.

    Refused files with the reason, experiments that are not built yet, runs and cells that have fewer results than expected.
    """
    from drivetail.ask.lab_status import collect, in_words, troubles

    found = collect(warehouse, experiment)
    click.echo(as_json(found)) if is_json else say(in_words(found))
    wrong = troubles(found)
    if check and wrong:
        raise Failure(f"{wrong[0]}" + (f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""))


COMMANDS = (lab,)

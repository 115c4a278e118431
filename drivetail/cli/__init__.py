"""The one command: `drivetail`. Each subcommand is a few lines over the module that does the work."""

from __future__ import annotations

import gc
import importlib.metadata
import logging
from typing import Any

import click

import drivetail.path  # noqa: F401  before what it finds
from drivetail.cli import ask, operate, run, tell
from drivetail.terminal import visible
from engine.projects import projects

INTERRUPTED = 130
"""Exit code after Ctrl-C: as shells have it, 128 and the number of the signal."""


class _Visible(logging.Formatter):
    """Log lines may quote what telemetry sent."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class Main(click.Group):
    """The group of all commands; click itself exits 1 after Ctrl-C, as after any error."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort, RuntimeError) as error:
            # DuckDB takes Ctrl-C for itself while a query runs
            if not isinstance(error, (KeyboardInterrupt, click.Abort)) and str(error) != "Query interrupted":
                raise
            click.echo("drivetail: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(importlib.metadata.version("drivetail"), prog_name="drivetail")
def main() -> None:
    """Find the drives that are not dead but slow.

    Hourly per-drive latency, I/O counts and drive events go in; slowdown against the drives of the same RAID group,
    tails, slow intervals and a weekly report come out.

    \b
    What your Prometheus can show:            drivetail doctor prometheus http://prometheus:9090
    Pull a day of it, and compare drives:     drivetail ingest prometheus http://prometheus:9090 && drivetail build
    A first look, on a simulated fleet:       drivetail demo
    What has just become slow, and where:     drivetail alerts --new
    What the week was like:                   drivetail report
    What replacing drives would save:         drivetail what-if --worst 1
    Whether it is as in the paper:            drivetail study
    A question of your own:                   drivetail sql "select * from marts.fct_raid_hours where is_tail_hour"
    Where a number comes from:                drivetail explain web2/sdd "2026-01-05 07:00"
    All of it in the browser:                 drivetail serve
    """
    # nearly all that Great Expectations makes lives as long as the command: looking for garbage takes a tenth of its time
    gc.set_threshold(50_000, 20, 20)
    handler = logging.StreamHandler()
    handler.setFormatter(_Visible("drivetail: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # a line for each time that a server is asked again


of_projects = (command for project in projects() for command in project.commands())
for command in (*run.COMMANDS, *ask.COMMANDS, *tell.COMMANDS, *operate.COMMANDS, *of_projects):
    main.add_command(command)

"""The man page of `drivetail`, made of what `--help` prints: `make wheel` writes target/drivetail.1, and the wheel installs it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import click

from drivetail.cli import main

PAGE = Path(__file__).resolve().parents[1] / "target" / "drivetail.1"
WIDTH = 78
HEAD = rf""".\" made by `make wheel`
.TH DRIVETAIL 1 "" "drivetail {importlib.metadata.version("drivetail")}"
.SH NAME
drivetail \- find the drives that are not dead but slow
.SH SYNOPSIS
.B drivetail
COMMAND [OPTIONS] [ARGUMENTS]
.SH EXIT STATUS
0 when all is well, 1 when something needs attention, 2 for a wrong command line, 130 after Ctrl-C.
.SH ENVIRONMENT
.B DRIVETAIL_WAREHOUSE
is the folder of the warehouse where \-\-warehouse is not given.
"""


def helped(context: click.Context) -> str:
    """Output of `--help`, as roff that is not filled."""
    text = context.get_help().replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return "\n".join([".nf", *(rf"\&{line}" if line.startswith(".") else line for line in text.splitlines()), ".fi", ""])


def _below(context: click.Context, group: click.Group) -> Iterator[click.Context]:
    """The commands of a group, each before those that are below it."""
    for name, command in sorted(group.commands.items()):
        found = click.Context(command, context, name)
        yield found
        if isinstance(command, click.Group):
            yield from _below(found, command)


def page() -> str:
    """The whole page."""
    top = click.Context(main, info_name="drivetail", terminal_width=WIDTH, **main.context_settings)
    contexts = list(_below(top, main))
    commands = "".join(f'.SS "{each.command_path}"\n{helped(each)}' for each in contexts)
    return f"{HEAD}.SH DESCRIPTION\n{helped(top)}.SH COMMANDS\n{commands}"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")

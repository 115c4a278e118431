"""What people see in the terminal: progress on long work, tables that line up, thousands that can be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ingest import FileResult


def human(number: int) -> str:
    """An integer with thousands separators."""
    return f"{number:,}"


def say(text: str) -> None:
    """Print one line of outcome."""
    click.echo(text)


@contextmanager
def progress(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr while the block runs, only when that is a terminal; yields `advance(phase, done, total)`."""
    if not sys.stderr.isatty():
        yield lambda phase, done, total: None
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(title, total=1)
        yield lambda phase, done, total: bar.update(task, description=f"{title}: {phase}", completed=done, total=max(total, 1))


def render(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> str:
    """A table as text; numbers right-aligned, null as an empty cell, wide values folded rather than cut."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", pad_edge=False, box=None)
    for index, name in enumerate(columns):
        is_number = any(isinstance(row[index], (int, float)) and not isinstance(row[index], bool) for row in rows)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else cell(value) for value in row))
    width = None if sys.stdout.isatty() else 180
    console = Console(width=width, color_system="auto" if sys.stdout.isatty() else None, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def cell(value: Any) -> str:
    """One value for a table: floats with six significant digits, everything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def ingest_table(files: Sequence[FileResult]) -> str:
    """What an ingest did with each file."""
    columns = ["file", "records", "status", "in", "accepted", "rejected", "duplicate", "superseded"]
    rows = [
        [
            file.file,
            file.record_kind,
            file.status,
            file.rows_delivered,
            file.rows_accepted,
            file.rows_rejected,
            file.rows_duplicate,
            file.rows_superseded,
        ]
        for file in files
    ]
    return render(columns, rows)

"""Output for people in the terminal: progress on long work, tables that line up, thousands that can be read."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from engine.read import Row
from ingest.reading.text import in_sight
from report.words import human, to_minute

if TYPE_CHECKING:
    from ingest import FileResult

Columns = dict[str, str | tuple[str, Callable[[Any], Any]]]
"""The columns of a printed table: heading -> key of the row, or key and how to write its value."""

Facts = Sequence[tuple[str, object]]
"""Names and values."""

PIPED_WIDTH = 180
"""Characters of a line that no terminal shows; more where numbers and names need more."""

LONGEST_WORD = 300
"""Characters of one word that a table shows; csv and json have all."""

INDENT = "  "

_WHOLE = re.compile(r"\S*|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d(\.\d+)?)?")
"""A value that is never folded: one word, or an instant."""

_BOLD = re.compile(r"(\x1b\[[01]m)")
"""How a heading is begun and ended on a terminal."""


def visible(text: str) -> str:
    """Text that may hold what telemetry sent: its control characters are shown, not obeyed by the terminal. Bold headings stay."""
    return "".join(part if number % 2 else in_sight(part, "\n\t") for number, part in enumerate(_BOLD.split(text)))


def say(text: str) -> None:
    """Print an outcome."""
    click.echo(visible(text))


def say_line(text: str) -> None:
    """Print one line, whatever it quotes: a newline in it is shown, or a sender could write lines of its own."""
    click.echo(in_sight(text))


def pass_on(text: str, *, nl: bool = True) -> None:
    """Print what a program reads as it is, but for a terminal, which would obey it. Bold text in it is a sender's."""
    click.echo(in_sight(text, "\n\t") if sys.stdout.isatty() else text, nl=nl)


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


def render(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    title: str | None = None,
    *,
    right: Collection[str] = (),
    folded: Collection[str] | None = None,
) -> str:
    """A table as text; numbers right-aligned, null as an empty cell. Sentences take several lines where they must, numbers and names never:
    where the terminal is too narrow for those, headings take several lines and columns without a value are left out; where that is not
    enough, each row is written lengthwise, a line for each column that has a value.

    right: columns of numbers that come as text. folded: the columns that may take several lines; all by default.
    """
    texts = [["" if value is None else cell(value) for value in row] for row in rows]
    is_terminal = sys.stdout.isatty()
    # a block indents its tables
    width = (shutil.get_terminal_size().columns if is_terminal else PIPED_WIDTH) - len(INDENT)
    values = [[text[index] for text in texts] for index in range(len(columns))]
    # half an identifier or a number is another one
    is_whole = [
        (folded is not None and name not in folded) or all(_WHOLE.fullmatch(value) for value in values[index])
        for index, name in enumerate(columns)
    ]

    def least(index: int, name: str) -> int:
        parts = [name, *values[index]] if is_whole[index] else " ".join([name, *values[index]]).split()
        return max(map(len, parts), default=0)

    shown = dict(enumerate(columns))

    def needed() -> int:
        return sum(max(least(index, line) for line in name.split("\n")) + 2 for index, name in shown.items()) - 2

    if needed() > width and is_terminal and rows:
        shown = {index: _broken(name, least(index, "")) for index, name in shown.items() if any(map(str.strip, values[index]))}
        if needed() > width:
            return "\n\n".join(
                facts([(name.strip(), text.strip()) for name, text in zip(columns, row, strict=True) if text.strip()]) for row in texts
            )
    lines = max((name.count("\n") for name in shown.values()), default=0)
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", pad_edge=False, box=None)
    for index, name in shown.items():
        is_right = columns[index] in right or any(_is_number(row[index]) for row in rows)
        justify: Literal["left", "right"] = "right" if is_right else "left"
        table.add_column("\n" * (lines - name.count("\n")) + name, justify=justify, overflow="fold", no_wrap=is_whole[index])
    for text in texts:
        table.add_row(*(text[index] for index in shown))
    console = Console(width=max(width, needed()), color_system="auto" if is_terminal else None, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _broken(heading: str, width: int) -> str:
    """A heading of several words in lines of at most `width` characters, or of its longest word."""
    words = heading.split()
    return heading if len(words) < 2 else "\n".join(textwrap.wrap(heading, max(width, *map(len, words)), break_on_hyphens=False))


def cell(value: Any) -> str:
    """One value for a table: floats with six significant digits, everything else as it is, in one line, long words cut."""
    return f"{value:.6g}" if isinstance(value, float) else in_sight(shortened(str(value)))


def shortened(text: str) -> str:
    """A text whose words have at most LONGEST_WORD characters: of a longer one its beginning and its end."""
    half = LONGEST_WORD // 2
    return " ".join(word if len(word) <= LONGEST_WORD else f"{word[:half]}...{word[-half:]}" for word in text.split(" "))


def block(title: str, *parts: str | Facts) -> str:
    """A titled block of the text output, of texts and of facts; parts that are empty are left out."""
    texts = [part if isinstance(part, str) else facts(part) for part in parts]
    return "\n".join([in_sight(title), *(INDENT + line for text in texts if text for line in text.splitlines())])


def facts(pairs: Facts) -> str:
    """Names and values, aligned; pairs whose value is None are left out."""
    given = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in given), default=0)
    return "\n".join(f"{name:<{width}}  {in_sight(str(value))}".rstrip() for name, value in given)


def table(rows: Sequence[Row], columns: Columns, count: int | None = None) -> str:
    """Some rows as an aligned table, numbers to the right however they are written, and how many of `count` are not among them."""
    keyed = {name: (column, _plain) if isinstance(column, str) else column for name, column in columns.items()}
    written = [[None if row[key] is None else write(row[key]) for key, write in keyed.values()] for row in rows]
    numbers = [name for name, (key, _) in keyed.items() if any(_is_number(row[key]) for row in rows)]
    more = (count or 0) - len(rows)
    return render(list(columns), written, right=numbers) + (f"\n... and {human(more)} more" if more > 0 else "")


def _plain(value: Any) -> Any:
    return to_minute(value) if isinstance(value, datetime) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def known(rows: Sequence[Row], columns: Columns) -> Columns:
    """The columns in which some row has a value: a fleet whose inventory names no host has no column for it."""
    return {
        name: column
        for name, column in columns.items()
        if any(row[column if isinstance(column, str) else column[0]] is not None for row in rows)
    }


def table_with_files(rows: Sequence[Row], columns: Columns, count: int | None = None) -> str:
    """The same of rows that name a `file`: the table shows its number, a legend below it the path, which would not fit."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(row["file"] for row in rows if row["file"] is not None), 1)}
    shown = table([{**row, "file_number": numbers.get(row["file"] or "")} for row in rows], {**columns, "of file": "file_number"}, count)
    return "\n".join([shown, *(f"file {number}: {name}" for name, number in numbers.items())])


def as_json(content: Sequence[Row] | Row) -> str:
    """Rows as a JSON array, every column, or one object; instants are ISO texts, UTC."""
    return json.dumps(content, indent=2, default=lambda value: value.isoformat())


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV with a header, every column; null is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def say_rows(output: str, rows: Sequence[Row], written: Callable[[Sequence[Row]], str]) -> None:
    """Print rows as `--format` asks: `table`, as `written` has them, `csv` or `json`."""
    if output == "table":
        say(written(rows))
    else:
        pass_on(as_json(rows) if output == "json" else as_csv(rows))


def ingest_table(files: Sequence[FileResult]) -> str:
    """Print the outcome of an ingest, file by file."""
    counts = {"in": "delivered", **{name: name for name in ("accepted", "rejected", "duplicate", "superseded")}}
    columns: Columns = {"file": "file", "records": "record_kind", "status": "status"}
    return table([vars(file) for file in files], columns | {heading: f"rows_{name}" for heading, name in counts.items()})

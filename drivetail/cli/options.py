"""Shared by commands: options, failures, and the summary of an ingest."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from drivetail.terminal import ingest_table, progress, say, say_line, visible
from engine.warehouse import Warehouse
from ingest.contract.extras import how_to_install
from ingest.contract.values import utc
from ingest.raw.store import find_delivery, list_folders
from report.words import counted_noun, human, to_minute

if TYPE_CHECKING:
    from ingest import IngestSummary

MAX_FILES_SHOWN = 20


class Instant(click.ParamType[datetime]):
    """A time as drivetail prints them, or in ISO 8601; without a zone it is UTC. Gives UTC without one."""

    name = "time"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return _of_telemetry(value if isinstance(value, datetime) else utc(value))
        except ValueError:
            self.fail(f"{value!r} is not a time since 1970; give one such as 2026-01-05T07 or 2026-01-05T07:30 (UTC)", param, ctx)


class Hour(click.DateTime):
    """A full hour (UTC)."""

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return _of_telemetry(super().convert(value, param, ctx))
        except ValueError:
            self.fail(f"{value!r} is no hour since 1970; give one such as 2026-01-05T07 (UTC)", param, ctx)


def _of_telemetry(at: datetime) -> datetime:
    """Raises: ValueError for a time that no telemetry has; near the beginning of the calendar there are no hours before it."""
    if at.year < 1970:
        raise ValueError(at)
    return at


INSTANT = Instant()

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
DAY = click.DateTime(["%Y-%m-%d"])
HOUR = Hour(["%Y-%m-%dT%H"])

POLICIES = ("none", "reactive", "proactive1", "proactive2", "adaptive")
"""How reads may go around slow drives (lab/docs/toleraid.md)."""


class Failure(click.ClickException):
    """Anything but a usage error: one line, exit code 1."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(visible(f"drivetail: {self.message}"), err=True)


def os_failure(error: OSError, place: Path | str) -> Failure:
    """One line of what the system refused, at a file or else at a place, and what to do."""
    hint = {errno.ENOENT: "is the path right?", errno.ENOSPC: "make room", errno.EACCES: "change its permissions or its user"}
    todo = hint.get(error.errno or 0, "check the path, its permissions and the free space")
    return Failure(f"{error.filename or place}: {error.strerror or error}; {todo}")


@contextmanager
def in_one_line(place: Path | str) -> Iterator[None]:
    """Turn what can go wrong in a command into one line. place: its folder, for an error of the system that names no file."""
    from drivetail.service import SettingsError
    from engine.errors import ModelError
    from engine.read import QueryError
    from engine.thresholds import ThresholdError
    from ingest import GateError, IngestError, ServerError, StoreError

    try:
        yield
    except (GateError, ModelError, QueryError, ServerError, SettingsError, StoreError) as error:
        raise Failure(str(error)) from error
    except (IngestError, ThresholdError) as error:
        raise click.UsageError(str(error)) from error
    except BrokenPipeError:  # the reader of the output has gone: click ends in silence
        raise
    except OSError as error:
        raise os_failure(error, place) from error


def warehouse_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--warehouse`, and turn what can go wrong into one line."""

    @click.option(
        "--warehouse",
        "-w",
        "root",
        metavar="DIR",
        envvar="DRIVETAIL_WAREHOUSE",
        default="./warehouse",
        show_default=True,
        show_envvar=True,
        type=FOLDER,
        help="Folder of the warehouse.",
    )
    @wraps(command)
    def wrapped(*args: Any, root: Path, **kwargs: Any) -> Any:
        with in_one_line(root):
            return command(*args, warehouse=Warehouse(root.resolve()), **kwargs)

    return wrapped


def together(*options: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives a command several options or arguments."""

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        for add in options:
            command = add(command)
        return command

    return give


selection_options = together(
    click.option("--group-label", multiple=True, metavar="LABEL", help="Label that names a drive's RAID group; several, together."),
    click.option("--device-label", metavar="LABEL", help="Label that names the device.  [default: device]"),
    click.option("--host-label", metavar="LABEL", help="Label that names the host.  [default: instance, without its port]"),
    click.option("--match", multiple=True, metavar="MATCHER", help="""Take only series with this label, such as 'job="node"'."""),
)
"""Options that select series of a Prometheus server, and say how they label drives."""


time_options = together(
    click.option("--began", metavar="TIME", help="When iostat was started (UTC, or of --timezone), where it was run without -t."),
    click.option("--interval", metavar="10s", help="Time from one iostat report to the next; needed with --began."),
    click.option("--boot-time", metavar="TIME", help="When the machine booted (UTC), for logs in seconds since then."),
    click.option("--year", help="Year of the first line, for logs that give none."),
    click.option(
        "--date-order",
        type=click.Choice(["mdy", "dmy"]),
        help="Whether 01/05/26 is month or day first, where a text of sar or iostat does not say.",
    ),
    click.option("--timezone", metavar="ZONE", help="Time zone of local times, such as Europe/Berlin, for sources that write them."),
)
"""Options about the times in a source's files."""


server_options = together(
    click.option("--allow-partial", is_flag=True, help="Accept answers that the server itself calls incomplete."),
    selection_options,
    click.option("--to", "end", type=INSTANT, help="End of the hours to pull (UTC).  [default: the last full hour]"),
    click.option("--from", "first", type=INSTANT, help="First hour to pull (UTC).  [default: 24 hours before --to]"),
)
"""Options of a pull from a Prometheus server."""


def given_options(*but: str) -> list[str]:
    """The options of this call as they were typed, for a command that takes the same ones."""
    context, words = click.get_current_context(), list[str]()
    for option in context.command.params:
        if not isinstance(option, click.Option) or option.name is None or option.name in but:
            continue
        if context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            value = context.params[option.name]
            words += [word for each in (value if option.multiple else [value]) for word in (option.opts[0], str(each))]
    return words


def of_console(name: str, extra: str = "console") -> Any:
    """A module of the console, which stands on the commands and needs an extra. Raises: Failure."""
    try:
        return import_module(f"console.{name}")
    except ModuleNotFoundError as error:
        raise Failure(f"{error.name} is not installed; {how_to_install(extra)}") from error


def not_blank(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """The text of an option that is kept for ever, None where it is not given. Raises: BadParameter where it says nothing."""
    if text is not None and not text.strip():
        raise click.BadParameter("is blank; give a text: it is stored, so that others know who decided and why")
    return text


def format_option(text: str, choices: Sequence[str] = ("table", "csv", "json")) -> Callable[..., Any]:
    """Give a command `--format`; `text` is its help, the first choice its default."""
    return click.option("--format", "output", type=click.Choice(choices), default=choices[0], show_default=True, help=text)


@contextmanager
def progress_of(warehouse: Warehouse, title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Progress on the terminal and in the log."""
    with progress(title) as advance:

        def on_progress(phase: str, done: int, total: int) -> None:
            warehouse.note(phase, done=done, total=total)
            advance(phase, done, total)

        yield on_progress


def say_ingested(warehouse: Warehouse, summary: IngestSummary, *days: date, is_gated: bool) -> None:
    """Say what an ingest did with each file, and write the pages of the gate, those of `days` too; exit 1 over what did not land."""
    shown = summary.files if len(summary.files) <= MAX_FILES_SHOWN else summary.unreadable
    if shown:
        say(ingest_table(shown))
    if others := len(summary.files) - len(shown):
        counted = f"... and {human(others)} more files" if shown else counted_noun(others, "file")
        say(f"{counted}; after the next build they are in marts.ingested_files")
    for record in summary.rejected:
        say_line(f"rejected: {record['file']} row {record['row']}: {record['column']} = {record['value']!r}: {record['reason']}")
    for note in [*summary.notes, *(f"{file.file}: {file.note}" for file in summary.files if file.note)]:
        say_line(f"note: {note}")
    say(
        f"{counted_noun(len(summary.files), 'file')}: {human(summary.rows_delivered)} rows in, {human(summary.rows_accepted)} accepted, "
        f"{human(summary.rows_rejected)} rejected, {human(summary.rows_duplicate)} duplicate, {human(summary.rows_superseded)} superseded"
        + ("" if summary.delivery_seq else "; nothing new, so nothing changed")
    )
    # a row may be a reading, of which many make an hour
    delivery = find_delivery(list_folders(warehouse.root), summary.delivery_seq) if summary.delivery_seq else None
    if delivery is not None and delivery.first_hour:
        hours = human(delivery.record()["rows"]["drive_hours"])
        say(f"They hold {hours} drive-hours, {to_minute(delivery.first_hour)} to {to_minute(delivery.last_hour)} UTC")
    if is_gated:
        from quality import write_pages

        say(f"Checks: {write_pages(warehouse.root, *days)}")
    if summary.held:
        from drivetail.ask.status.collect_quarantine import commands, in_short

        first = summary.held[0]
        raise Failure(
            f"{counted_noun(len(first.files), 'file')} held in quarantine {first.number}: {in_short(first.reasons)}; "
            + " or ".join(commands(warehouse, first).values())
        )
    if summary.unreadable:
        first_unread = summary.unreadable[0]
        counts = len(summary.unreadable), len(summary.files)
        unread = f"{human(counts[0])} of {counted_noun(counts[1], 'file')} could not be read{others_landed(*counts)}"
        raise Failure(f"{unread}; first: {first_unread.file}: {first_unread.note}")


def others_landed(troubled: int, total: int) -> str:
    """How a complaint of some goes on: what became of the others, where there are any."""
    return ", the others have landed" if troubled < total else ""

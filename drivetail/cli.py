"""The one command: `drivetail`. Each subcommand is a few lines over the module that does the work."""

from __future__ import annotations

import importlib.metadata
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drivetail.console import as_csv, as_json, ingest_table, progress, say, visible
from drivetail.settings import COLLECTED, DRIVE_KINDS, RESOLUTIONS, SOURCES
from engine.warehouse import Warehouse
from engine.words import human, some

if TYPE_CHECKING:
    from ingest import IngestSummary

MAX_FILES_SHOWN = 20
HOUR_SECONDS = 3600


class Instant(click.ParamType[datetime]):
    """A time as drivetail prints them, or in ISO 8601; without a zone it is UTC. Gives UTC without one."""

    name = "time"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
            return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time; give one such as 2026-01-05, 2026-01-05T07 or 2026-01-05T07:30 (UTC)", param, ctx)


INSTANT = Instant()


class Failure(click.ClickException):
    """Anything but a usage error: one line, exit code 1."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(visible(f"drivetail: {self.message}"), err=True)


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
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of the warehouse.",
    )
    @wraps(command)
    def wrapped(*args: Any, root: Path, **kwargs: Any) -> Any:
        from drivetail.settings import SettingsError
        from engine.dbt import ModelError
        from engine.read import QueryError
        from ingest import GateError, IngestError, StoreError

        try:
            return command(*args, warehouse=Warehouse(root.resolve()), **kwargs)
        except IngestError as error:
            raise click.UsageError(str(error)) from error
        except (GateError, ModelError, QueryError, SettingsError, StoreError) as error:
            raise Failure(str(error)) from error
        except OSError as error:
            raise Failure(
                f"{error.filename or root}: {error.strerror or error}; check the path, its permissions and the free space"
            ) from error

    return wrapped


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(importlib.metadata.version("drivetail"), prog_name="drivetail")
def main() -> None:
    """Find the drives that are not dead but slow.

    Hourly per-drive latency, I/O counts and drive events go in; slowdown against the drives of the same RAID group,
    tails, slow intervals and a weekly report come out.

    \b
    A first look, on a simulated fleet:       drivetail demo
    Your own fleet:                           drivetail ingest bundle DELIVERY/ && drivetail build
    What has just become slow:                drivetail alerts --new
    What the week was like:                   drivetail report
    What replacing drives would save:         drivetail what-if --worst 1
    Whether it is as in the paper:            drivetail study
    A question of your own:                   drivetail sql "select * from marts.fct_raid_hours where is_tail_hour"
    Where a number comes from:                drivetail explain DRIVE "2026-01-05 07:00"
    """
    logging.basicConfig(level=logging.WARNING, format="drivetail: %(message)s")


@main.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the fleet, its warehouse and the report.",
)
def demo(out: Path) -> None:
    """Simulate a small fleet, ingest it, build, and write the weekly report. Takes a minute or two."""
    from drivetail.demo import run_demo

    run_demo(out.resolve())


@main.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write the bundle to; its ground truth goes to DIR/truth.",
)
@click.option("--disk-groups", type=click.IntRange(min=0), default=12, show_default=True, help="RAID groups of disks.")
@click.option("--ssd-groups", type=click.IntRange(min=0), default=6, show_default=True, help="RAID groups of SSDs.")
@click.option("--days", type=click.IntRange(min=1), default=14, show_default=True, help="Days of telemetry.")
@click.option("--hours", type=click.IntRange(min=1), default=None, help="Hours of telemetry, instead of --days.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed and options write the same fleet.")
@click.option("--start", type=click.DateTime(["%Y-%m-%d"]), default="2026-01-05", show_default=True, help="First day (UTC).")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv", "csv.gz", "csv.zst", "ndjson"]),
    default="parquet",
    show_default=True,
    help="File format of the bundle.",
)
@click.option("--awkward", "awkward", multiple=True, help="An awkward case to plant, or `all`; may be given more than once.")
@click.option("--overwrite", is_flag=True, help="Replace a bundle that an earlier simulation wrote to DIR.")
@click.option(
    "--preset",
    type=click.Choice(["tail-at-store", "tail-at-store-disk", "tail-at-store-ssd"]),
    default="tail-at-store",
    show_default=True,
    help="Drives that behave as in the paper of that name: both kinds, or one of them only.",
)
@click.option(
    "--parameters", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="JSON file of numbers of the preset to change."
)
def simulate(out: Path, start: datetime, parameters: Path | None, **options: Any) -> None:
    """Write a call-home bundle of a simulated fleet, and the truth about it beside it.

    Drives behave: they serve a workload, fall slow and recover, age, and operators unplug them. Slowdowns are not
    drawn; they come out when a drive is compared with its group.
    """
    import json

    from simulate import ParameterError, SimulationError
    from simulate import simulate as run

    try:
        changes = json.loads(parameters.read_text(encoding="utf-8")) if parameters else None
        with progress("Simulating") as advance:
            summary = run(
                out, start=start.date(), parameters=changes, on_progress=lambda done, total: advance("hours", done, total), **options
            )
    except (SimulationError, ParameterError) as error:
        raise click.UsageError(str(error)) from error
    except json.JSONDecodeError as error:
        raise Failure(f"{parameters}: line {error.lineno}: not JSON: {error.msg}") from error
    kinds = ", ".join(f"{human(rows)} {kind}" for kind, rows in summary.drive_hour_rows.items())
    say(
        f"{human(summary.row_count)} drive-hours ({kinds}), {human(summary.drive_rows)} inventory periods "
        f"and {human(summary.event_rows)} events in {out}"
    )
    say(f"Truth: {summary.truth}")
    say(f"Next: drivetail ingest bundle {out} && drivetail build")


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say what to take from a Prometheus server, and how it labels drives."""
    for add in (
        click.option("--group-label", multiple=True, metavar="LABEL", help="Label that names a drive's RAID group; several, together."),
        click.option("--device-label", metavar="LABEL", help="Label that names the device.  [default: device]"),
        click.option("--host-label", metavar="LABEL", help="Label that names the host.  [default: instance, without its port]"),
        click.option("--match", multiple=True, metavar="MATCHER", help="""Take only series with this label, such as 'job="node"'."""),
    ):
        command = add(command)
    return command


def time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what a source needs to know of the times in its files."""
    for add in (
        click.option("--began", metavar="TIME", help="When iostat was started (UTC, or of --timezone), where it was run without -t."),
        click.option("--interval", metavar="10s", help="Its seconds (or 1m) from one report to the next, beside --began."),
        click.option("--boot-time", metavar="TIME", help="When the machine booted (UTC), for logs in seconds since then."),
        click.option("--year", help="Year of the first line, for logs that give none."),
        click.option(
            "--date-order",
            type=click.Choice(["mdy", "dmy"]),
            help="Whether 01/05/26 is month or day first, where a text of sar or iostat does not tell.",
        ),
        click.option("--timezone", metavar="ZONE", help="Time zone of local times, such as Europe/Berlin, for sources that write them."),
    ):
        command = add(command)
    return command


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what a pull from a Prometheus server needs to know."""
    for add in (
        click.option("--allow-partial", is_flag=True, help="Take answers that the server itself calls incomplete."),
        selection_options,
        click.option("--to", "end", type=INSTANT, help="End of the hours to pull (UTC).  [default: the last full hour]"),
        click.option("--from", "first", type=INSTANT, help="First hour to pull (UTC).  [default: 24 hours before --to]"),
    ):
        command = add(command)
    return command


@main.command()
@click.argument("source", type=click.Choice([*SOURCES, COLLECTED]), metavar="SOURCE")
@click.argument("paths", nargs=-1, required=True, metavar="PATH_OR_URL...")
@click.option("--kind", type=click.Choice(DRIVE_KINDS), help="What the drives are, where the delivery does not say.")
@click.option(
    "--min-coverage", type=click.FloatRange(0, 1), help="Share of an hour that must be observed for the hour to count.  [default: 0.5]"
)
@click.option("--strict", is_flag=True, help="Exit 1 if any record was rejected.")
@click.option(
    "--gate",
    is_flag=True,
    help="Look at the delivery before it counts: implausible rows are rejected, an implausible delivery is quarantined.",
)
@click.option(
    "--resolution",
    type=click.Choice(RESOLUTIONS),
    help="Keep what was measured within the hour, too; for prometheus, diskstats, sysstat and perseus.",
)
@time_options
@server_options
@warehouse_option
def ingest(
    warehouse: Warehouse,
    source: str,
    paths: tuple[str, ...],
    kind: str | None,
    min_coverage: float | None,
    strict: bool,
    gate: bool,
    first: datetime | None,
    end: datetime | None,
    **source_options: Any,
) -> None:
    """Land deliveries of one SOURCE in the raw store. Ingesting the same file again changes nothing.

    \b
    bundle      folders, archives or files: drive_hours*, drive_events*, drives* as Parquet, CSV or NDJSON
    prometheus  node_exporter's disk counters: a server's address, with --from and --to; or files of samples
    sysstat     what sar and iostat measured: sadf -j, sadf -d, sar -d, iostat -xt -o JSON
    collected   what `drivetail collect` delivers, each of the following in turn
    diskstats   snapshots of /proc/diskstats
    lsblk, mdadm, smartctl   which drives, in which arrays, of which make and age
    kernel-log  what the kernel said of drives: journald's JSON, syslog, dmesg
    mapping     what an operator says of drives (`drivetail map`)
    tickets     CSV files of drive trouble tickets
    labels      which drives somebody found slow or healthy: detectors are held against it
    backblaze   the public daily CSVs of drive stats: inventory, age, and proxies of events
    fio         results of fio runs on Linux md arrays, as JSON or JSON+: the members' I/Os and latencies, a run an hour
    perseus     Alibaba's fail-slow set in its own layout: cluster_X/host_N/DATE.csv[.gz]

    \b
    drivetail ingest prometheus http://prometheus:9090 --from 2026-01-05T00 --to 2026-02-05T00

    With --gate every record and the delivery as a whole must also be plausible (docs/quality-gate.md). A delivery that is
    not lands nothing and waits in quarantine for `drivetail release` or `drivetail drop`; DIR/docs/quality/DATE.html has
    every check of the day.
    """
    from ingest import calls_of
    from ingest import ingest as land

    looked_at_by = None
    if gate:
        from quality import Gate

        looked_at_by = Gate(warehouse.root)
    warehouse.create()
    rejected = 0
    failures = []
    for each, options in calls_of(source, paths, source_options):
        with _progress_of(warehouse, "Ingesting") as on_progress:
            summary = land(
                each,
                paths,
                warehouse.root,
                kind=kind,
                min_coverage=min_coverage,
                gate=looked_at_by,
                on_progress=on_progress,
                first=first,
                end=end,
                source_options=options,
            )
        if source == COLLECTED:
            say(f"{each}:")
            summary.notes = []  # which files are of other sources
        rejected += summary.rows_rejected
        try:
            _say_ingested(warehouse, summary, is_gated=gate)
        except Failure as failure:  # what else was collected is taken all the same
            failures.append(failure)
    if failures:
        raise failures[0]
    if strict and rejected:
        raise Failure(f"--strict was given and {some(rejected, 'record')} rejected; the others have landed")


@main.command("map")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="CSV...")
@warehouse_option
def map_drives(warehouse: Warehouse, paths: tuple[Path, ...]) -> None:
    """Say which drive a device is and which RAID group it belongs to; believed before every source, kept for ever.

    CSV (or Parquet, NDJSON) with `drive_id` (serial number), or `host` and `device`, or all three; `raid_group_id` and any column of
    the inventory (role, kind, slot, enclosure, model, deployed_on, ...), from `valid_from` to `valid_to` (docs/sources/mapping.md).
    Of two rows on the same drive and valid_from the one that was given last counts; nothing given before is removed.

    \b
    host,device,drive_id,raid_group_id
    web1,sda,ZC14LV0Q,pool-a
    """
    from ingest import ingest as land

    warehouse.create()
    with _progress_of(warehouse, "Mapping") as on_progress:
        summary = land("mapping", paths, warehouse.root, on_progress=on_progress)
    _say_ingested(warehouse, summary, is_gated=False)
    say("Next: drivetail build")


@main.command()
@click.option(
    "--out", default="./collected", show_default=True, type=click.Path(file_okay=False, path_type=Path), help="Where deliveries go."
)
@click.option("--once", is_flag=True, help="One look, delivered at once, as cron calls it.")
@click.option("--every", metavar="SECONDSs", help="Look that often and deliver every hour, as a service does.  [default: 60s]")
@click.option("--host", help="Name of this host.  [default: its own]")
@click.option(
    "--textfile", type=click.Path(file_okay=False, path_type=Path), help="Also write membership of md arrays there, for node_exporter."
)
def collect(out: Path, once: bool, every: str | None, host: str | None, textfile: Path | None) -> None:
    """Look at this host's drives: /proc/diskstats, mdstat, mdadm, lsblk, smartctl and the kernel's messages (docs/sources/collect.md).

    Run it as root, as a service (deploy/systemd) or with --once from cron every few minutes. Each delivery is one folder in --out, there
    at once or not at all, for `drivetail ingest collected OUT`. What is missing on the host is said, and costs what it would have told.
    """
    from drivetail.collect import CollectError, Collector

    if once and every:
        raise click.UsageError("--once looks once; leave --every out")
    seconds = _seconds(every or "60s")
    try:
        collector = Collector(out, host=host)
        while True:
            collector.look()
            hour_ends_in = HOUR_SECONDS - time.time() % HOUR_SECONDS
            if once or hour_ends_in > HOUR_SECONDS - seconds:
                delivered = collector.deliver()
                for sentence in delivered.missing:
                    say(f"note: {sentence}")
                say(f"{delivered.path}: {', '.join(delivered.files)}")
            if textfile is not None:
                collector.write_membership(textfile)
            if once:
                return
            time.sleep(seconds - time.time() % seconds)
    except CollectError as error:
        raise Failure(str(error)) from error


def _seconds(text: str) -> int:
    """`60s`, `5m` -> seconds. Raises: click.UsageError."""
    match = re.fullmatch(r"(\d{1,4})([sm]?)", text)
    seconds = int(match[1]) * (60 if match[2] == "m" else 1) if match else 0
    if not 1 <= seconds <= 900:
        raise click.UsageError(f"--every {text}: give 1s to 15m; snapshots further apart say too little of the hour")
    return seconds


@main.command()
@click.argument("source", type=click.Choice([*SOURCES, COLLECTED]), metavar="SOURCE")
@click.argument("paths", nargs=-1, required=True, metavar="PATH_OR_URL...")
@time_options
@selection_options
@warehouse_option
def doctor(source: str, paths: tuple[str, ...], warehouse: Warehouse, **source_options: Any) -> None:
    """What a SOURCE can tell and what is missing, before its first ingest; lands nothing. Exits 1 if it cannot be used so.

    `drivetail ingest --help` lists the sources.
    A server is asked a dozen small questions; files are read as `drivetail ingest` would read them, all together. What has landed in the
    warehouse of drives and RAID groups, mappings among them, is taken into account; there need not be one yet.

    \b
    drivetail doctor prometheus http://prometheus:9090
    drivetail doctor prometheus http://thanos:9090 --match 'cluster="eu1"' --host-label node
    """
    from drivetail.console import table
    from drivetail.doctor import examine
    from ingest.findings import MISSING

    missing = 0
    for path, findings in examine(source, paths, source_options, warehouse).items():
        rows = [{"state": one.state, "check": one.check, "said": one.said + (f"; {one.todo}" if one.todo else "")} for one in findings]
        say(path)
        say(table(rows, {"state": "state", "check": "check", "found": "said"}, len(rows)))
        missing += sum(one.state == MISSING for one in findings)
    if missing:
        raise Failure(f"{some(missing, 'thing')} missing, as said above; {source} cannot be used so")


@contextmanager
def _progress_of(warehouse: Warehouse, title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Progress on the terminal and in the log."""
    with progress(title) as advance:

        def on_progress(phase: str, done: int, total: int) -> None:
            warehouse.note(phase, done=done, total=total)
            advance(phase, done, total)

        yield on_progress


def _say_ingested(warehouse: Warehouse, summary: IngestSummary, *days: date, is_gated: bool) -> None:
    """Say what an ingest did with each file, and write the pages of the gate, those of `days` too; exit 1 over what did not land."""
    shown = summary.files if len(summary.files) <= MAX_FILES_SHOWN else summary.unreadable
    if shown:
        say(ingest_table(shown))
    if len(shown) < len(summary.files):
        say(f"... and {human(len(summary.files) - len(shown))} more files; after the next build they are in marts.ingested_files")
    for record in summary.rejected:
        say(f"rejected: {record['file']} row {record['row']}: {record['column']} = {record['value']!r}: {record['reason']}")
    for note in [*summary.notes, *(f"{file.file}: {file.note}" for file in summary.files if file.note)]:
        say(f"note: {note}")
    say(
        f"{some(len(summary.files), 'file')}: {human(summary.rows_delivered)} rows in, {human(summary.rows_accepted)} accepted, "
        f"{human(summary.rows_rejected)} rejected, {human(summary.rows_duplicate)} duplicate, {human(summary.rows_superseded)} superseded"
        + ("" if summary.delivery_seq else "; nothing new, so nothing changed")
    )
    if is_gated:
        from quality import write_pages

        say(f"Checks: {write_pages(warehouse.root, *days)}")
    if summary.held:
        from drivetail.status.collect_quarantine import commands, in_short

        first = summary.held[0]
        raise Failure(
            f"{some(len(first.files), 'file')} held in quarantine {first.number}: {in_short(first.reasons)}; "
            + " or ".join(commands(warehouse, first).values())
        )
    if summary.unreadable:
        first_unread = summary.unreadable[0]
        counts = len(summary.unreadable), len(summary.files)
        unread = f"{human(counts[0])} of {some(counts[1], 'file')} could not be read{_others_landed(*counts)}"
        raise Failure(f"{unread}; first: {first_unread.file}: {first_unread.note}")


def _others_landed(troubled: int, total: int) -> str:
    """How a complaint of some goes on: what became of the others, where there are any."""
    return ", the others have landed" if troubled < total else ""


def not_blank(context: click.Context, parameter: click.Parameter, text: str) -> str:
    """The text of an option that is kept for ever. Raises: BadParameter where it says nothing."""
    if not text.strip():
        raise click.BadParameter("is blank; it is kept for ever, so that others know who decided and why")
    return text


def decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the number of a quarantined delivery, and who decides and why."""
    for add in (
        click.option("--note", required=True, callback=not_blank, help="Why; kept with the delivery for ever."),
        click.option("--by", required=True, callback=not_blank, metavar="NAME", help="Who decides."),
        click.argument("number", type=click.IntRange(min=1)),
    ):
        command = add(command)
    return command


@main.command()
@decision_options
@warehouse_option
def release(warehouse: Warehouse, number: int, by: str, note: str) -> None:
    """Land the quarantined delivery NUMBER after all; `drivetail status` lists what is held, and why.

    Its files land as they came, as if just ingested; only single rows that are implausible are still rejected. Who released it
    and why stays in its record. Releasing it again changes nothing.

    \b
    drivetail release 3 --by ada --note "rack 7 was switched off on purpose"
    """
    from ingest import release as land
    from ingest.quarantine import find_held
    from quality import Gate

    with _progress_of(warehouse, "Releasing") as on_progress:
        summary = land(warehouse.root, number, by=by, note=note, gate=Gate(warehouse.root, is_rows_only=True), on_progress=on_progress)
    _say_ingested(warehouse, summary, find_held(warehouse.root, number).since.date(), is_gated=True)


@main.command()
@decision_options
@warehouse_option
def drop(warehouse: Warehouse, number: int, by: str, note: str) -> None:
    """Remove the files of the quarantined delivery NUMBER for good; its record stays, with who dropped it and why.

    Sent again, the same files are left out; ingested without --gate they would land. Dropping it again changes nothing.

    \b
    drivetail drop 3 --by ada --note "latencies in ms; the array will send the day again"
    """
    from ingest import drop as forget
    from quality import write_pages

    held = forget(warehouse.root, number, by=by, note=note)
    write_pages(warehouse.root, held.since.date())
    assert held.decision is not None
    say(f"Dropped {some(len(held.files), 'file')} of quarantine {number}, by {held.decision['by']}; the record stays in {held.path}")


@main.command()
@click.option(
    "--inbox",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where deliveries come in; made if absent.",
)
@click.option(
    "--source", type=click.Choice([*SOURCES, COLLECTED]), default="bundle", show_default=True, help="What they are deliveries of."
)
@click.option(
    "--start",
    type=click.DateTime(["%Y-%m-%dT%H"]),
    help="First hour (UTC) to be run, like 2026-01-05T00.  [default: this hour]",
)
@warehouse_option
def init(warehouse: Warehouse, folder: Path, source: str, start: datetime | None) -> None:
    """Set up an installation that runs itself: write DIR/drivetail.toml, where deliveries come in and who is told when something is wrong.

    \b
    drivetail init --inbox /srv/deliveries
    drivetail inbox                             what lies there
    make airflow                                run it, every hour
    """
    from drivetail.settings import this_hour, write_settings

    folder = folder.resolve()
    path = write_settings(warehouse, folder, source, start or this_hour())
    folder.mkdir(parents=True, exist_ok=True)
    say(f"Settings: {path}; deliveries are expected in {folder}")


@main.command()
@click.option("--land", "is_landing", is_flag=True, help="Land what is new, as the hourly run does.")
@click.option("--until", type=click.DateTime(["%Y-%m-%dT%H"]), help="Leave entries of this hour (UTC) and later ones, by their names.")
@warehouse_option
def inbox(warehouse: Warehouse, is_landing: bool, until: datetime | None) -> None:
    """What lies in the inboxes of DIR/drivetail.toml, and where its servers stand: what is new, still being written, or needs somebody.

    With --land, everything new is ingested through the gate, each entry a delivery of its own, and servers are pulled up to the last
    full hour; again changes nothing. Without a scheduler, an hourly cron line does what it does:
    drivetail inbox --land && drivetail build && drivetail report --due
    """
    from drivetail.console import table
    from drivetail.inbox import DONE, Entry, apart, arrived, land_each, list_entries
    from drivetail.pulls import Pull, due, list_pulled
    from drivetail.settings import load_settings, this_hour
    from engine.words import to_minute

    settings = load_settings(warehouse)
    if is_landing:
        entries, pulls = arrived(warehouse, settings, until=until), due(warehouse, settings, until or this_hour())
        troubled = 0
        deliveries: list[Entry | Pull] = [*entries, *pulls]
        taken, titles = [(each.inbox, each.path) for each in deliveries], {each.path: each.name for each in deliveries}
        for outcome in land_each(warehouse, settings, taken, lambda path: _progress_of(warehouse, titles[path])):
            troubled += outcome.needs_somebody
            say(outcome.sentence)
        if troubled:
            others = _others_landed(troubled, len(taken))
            raise Failure(f"{some(troubled, 'entry', 'entries')} of {len(taken)} did not land, as said above{others}")
        pulled = f"; {some(len(pulls), 'server')} pulled" if pulls else ""
        say(f"{some(len(entries), 'new entry', 'new entries')} landed{pulled}")
        return
    entries, missing = apart(list_entries(warehouse, settings, until=until))
    shown = [entry for entry in entries if entry.state != DONE]
    if shown:
        rows = [
            {**vars(entry), "changed_at": to_minute(entry.changed_at), "why": (entry.outcome or {}).get("message", "")}
            for entry in shown[:MAX_FILES_SHOWN]
        ]
        say(table(rows, {"state": "state", "inbox": "inbox", "changed (UTC)": "changed_at", "entry": "path", "why": "why"}, len(shown)))
    servers = [{**vars(each), "last_hour": to_minute(each.last_hour) or "none yet"} for each in list_pulled(warehouse, settings)]
    if servers:
        say(table(servers, {"server": "server", "address": "url", "last hour pulled (UTC)": "last_hour", "why": "message"}, len(servers)))
    counts = ", ".join(
        f"{sum(entry.state == state for entry in entries)} {state}" for state in ("new", "settling", "ahead", "failed", "done")
    )
    say(f"{some(len(entries), 'entry', 'entries')}: {counts}")
    if missing:
        raise Failure("; ".join((entry.outcome or {})["message"] for entry in missing))


@main.command()
@click.option("--target", type=click.Choice(["duckdb"]), default="duckdb", show_default=True, help="Engine the models run on.")
@click.option("--full-refresh", is_flag=True, help="Compute everything again from the raw store.")
@click.option("--keep-pruned", is_flag=True, help="Leave what `drivetail prune` let go as it was computed.")
@warehouse_option
def build(warehouse: Warehouse, target: str, full_refresh: bool, keep_pruned: bool) -> None:
    """Run the models over what has landed since the last build, test the result, and publish it."""
    from engine.build import build as run_build

    with progress("Building") as advance:
        summary = run_build(warehouse, target=target, full_refresh=full_refresh, keep_pruned=keep_pruned, on_progress=advance)
    say(
        f"Built {human(summary.drive_hour_count)} drive-hours in {human(summary.raid_hour_count)} RAID-hours from "
        f"{some(summary.delivery_count, 'new delivery', 'new deliveries')}; "
        f"published {summary.publication.publication_id} in {warehouse.published}"
    )


@main.command()
@click.option("--week", metavar="2026-W46", help="ISO week (UTC).  [default: the last complete one]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: DIR/reports/WEEK.html]")
@click.option(
    "--format",
    "output",
    type=click.Choice(["html", "json", "pdf"]),
    default="html",
    show_default=True,
    help="html writes the same numbers as JSON beside it; pdf needs Chromium.",
)
@click.option("--publication", metavar="ID", help="An earlier publication, kept for an hour after the next one.")
@click.option(
    "--as-known-at",
    type=INSTANT,
    help="What had landed by that instant (UTC); built again unless a publication that is kept holds it.",
)
@click.option(
    "--due", "is_due", is_flag=True, help="Write those that are due: complete weeks without a report, or with deliveries that it lacks."
)
@warehouse_option
def report(
    warehouse: Warehouse,
    week: str | None,
    out: Path | None,
    output: str,
    publication: str | None,
    as_known_at: datetime | None,
    is_due: bool,
) -> None:
    """Write the weekly fleet report: one HTML file that needs nothing else."""
    from report import due_weeks, write_report

    if publication and as_known_at:
        raise click.UsageError("--publication and --as-known-at both name a publication; leave out one")
    if is_due:
        if week or out or publication or as_known_at or output != "html":
            raise click.UsageError("--due finds the weeks and their files itself; leave out the other options")
        weeks = due_weeks(warehouse)
        for each in weeks:
            say(f"Report: {write_report(warehouse, week=each)}")
        if not weeks:
            say("No report is due")
        return
    path = write_report(warehouse, week=week, out=out, output=output, publication=publication, as_known_at=as_known_at)
    say(f"Report: {path}")


@main.command()
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv"]),
    help="How to print the numbers; json and csv hold every column and row.  [default: table]",
)
@click.option("--all", "is_all", is_flag=True, help="In the table also the points of the figures and the numbers of the text.")
@click.option("--kind", type=click.Choice(DRIVE_KINDS), help="Drives of one kind only.  [default: both]")
@click.option("--html", "page", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="HTML file to write.")
@warehouse_option
def study(warehouse: Warehouse, output: str | None, is_all: bool, kind: str | None, page: Path | None) -> None:
    """This fleet's numbers beside those of The Tail at Store (FAST'16): findings and tables, each with its 95% interval and verdict.

    \b
    drivetail study --html study.html      also the figures, drawn over the paper's; prints only where the file is
    """
    from drivetail.study import fetch_results, render_study
    from engine.read import publication_of

    if page is not None:
        from report import write_study

        # with --format the numbers alone go to stdout
        click.echo(f"Study: {write_study(warehouse, page, kind=kind)}", err=output is not None)
        if output is None:
            return
    with publication_of(warehouse) as connection:
        rows = fetch_results(connection, kind)
    if output is None or output == "table":
        say(render_study(rows, is_all=is_all))
    else:
        click.echo(as_json(rows) if output == "json" else as_csv(rows))


def format_option(text: str) -> Callable[..., Any]:
    """Give a command `--format` for rows; `text` is its help."""
    return click.option("--format", "output", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True, help=text)


@main.command("what-if")
@click.option(
    "--replace", "replaced", multiple=True, metavar="DRIVE", help="A drive that is replaced by a healthy one; may be given more than once."
)
@click.option(
    "--worst", type=click.IntRange(1, 2), help="Replace the drive, or the two, of each RAID group that were the slowest of most tail hours."
)
@click.option("--route-round", "routed", type=click.IntRange(1, 2), help="Reads go round the longest tail, or the two longest.")
@click.option("--since", type=INSTANT, help="First hour that counts (UTC).  [default: all]")
@click.option("--until", type=INSTANT, help="First hour that counts no more (UTC).  [default: all]")
@format_option("How to print the answer.")
@warehouse_option
def what_if(
    warehouse: Warehouse,
    replaced: tuple[str, ...],
    worst: int | None,
    routed: int | None,
    since: datetime | None,
    until: datetime | None,
    output: str,
) -> None:
    """How many tail hours would be left if slow drives were replaced, or if reads went round the slowest (docs/costs.md).

    A replaced drive is one that is not there: every RAID-hour it was in is judged anew by the other drives' latencies.

    \b
    drivetail what-if --worst 1                          the worst drive of each RAID group
    drivetail what-if --replace S00000612A --replace S00000613A --since 2026-02-01
    drivetail what-if --route-round 1                    as reads that are rebuilt from parity do
    """
    from drivetail.what_if import Question, ask, what_if_table

    if not (replaced or worst or routed):
        raise click.UsageError("nothing is changed: give --replace DRIVE, --worst 1 or --route-round 1")
    if replaced and worst:
        raise click.UsageError("--replace names the drives, --worst chooses them: give one of them")
    if since is not None and until is not None and until <= since:
        raise click.UsageError(f"--until {until} is not after --since {since}")
    rows = ask(warehouse, Question(replaced, worst or 0, routed or 0, since, until))
    say({"table": what_if_table, "csv": as_csv, "json": as_json}[output](rows))


@main.command()
@click.argument("query", metavar="SELECT_OR_FILE")
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help="How to print the rows.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write instead of printing (needed for parquet).")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Rows that the table format prints.")
@warehouse_option
def sql(warehouse: Warehouse, query: str, output: str, out: Path | None, limit: int) -> None:
    """Run a read-only query on the published warehouse: SQL text, or a file that holds it.

    One question at a time, which reads what the warehouse shows and no other file, and writes nothing but --out.

    \b
    drivetail sql "select kind, count(*) from marts.fct_raid_hours where is_tail_hour group by kind"
    """
    from drivetail.sql import run_query

    if output == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    text = run_query(warehouse, query, output, out, limit)
    if text:
        # csv and json go out as they are: they are for other programs
        click.echo(visible(text) if output == "table" else text)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--check", is_flag=True, help="Exit 1 when something needs an operator.")
@warehouse_option
def status(warehouse: Warehouse, as_json: bool, check: bool) -> None:
    """What has landed, how fresh it is, what was rejected and why, and who is missing."""
    from drivetail.status import collect_status, render_status

    collected = collect_status(warehouse)
    if as_json:
        click.echo(collected.to_json())
    else:
        say(render_status(collected))
    if check and collected.problems:
        raise Failure("; ".join(collected.problems))


@main.command()
@click.option("--new", "is_new", is_flag=True, help="Only those that were not told yet; from now on they are.")
@click.option(
    "--all", "is_all", is_flag=True, help="Also those of dismissed drives, and of drives that one alert of their host stands for."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: every field, the drives an alert stands for and their peers.")
@warehouse_option
def alerts(warehouse: Warehouse, is_new: bool, is_all: bool, as_json: bool) -> None:
    """Which drives have become slow: slow in 3 hours of 24, until they were quiet for 24; or a little slow in most hours of four weeks.

    Drives of one host that became slow together are one alert, and so is a RAID group that is slow as a whole against its own past.
    Planned maintenance and dismissed drives raise none (docs/alerts.md).

    \b
    drivetail build && drivetail alerts --new      every hour: prints what is new, once
    drivetail decide S00000612A dismiss --by ada --note "known; swap on Friday" --until 2026-02-06
    """
    from drivetail.alerts import Alert, alerts_json, new_alerts, open_alerts, render_alerts

    if is_new and is_all:
        raise click.UsageError("--new tells what is new; --all, what is not told too: give one of them")

    def tell(found: list[Alert]) -> None:
        click.echo(alerts_json(found) if as_json else render_alerts(found, with_all=is_all))
        sys.stdout.flush()

    found = new_alerts(warehouse, tell) if is_new else open_alerts(warehouse, with_all=is_all)
    if not found:
        click.echo("[]" if as_json else "No new alert" if is_new else "No open alert")
    elif not is_new:
        tell(found)


@main.command()
@click.argument("drive")
@click.argument("verdict", type=click.Choice(["replace", "watch", "dismiss"]))
@click.option("--by", required=True, callback=not_blank, metavar="NAME", help="Who decides.")
@click.option("--note", required=True, callback=not_blank, help="Why; kept for ever.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%d %H:%M"]), help="Until when it holds (UTC).  [default: for ever]")
@warehouse_option
def decide(warehouse: Warehouse, drive: str, verdict: str, by: str, note: str, until: datetime | None) -> None:
    """Record what is decided on a DRIVE; the latest decision counts, none is ever edited (`drivetail decisions` lists them).

    \b
    replace   it is to be swapped: pending until another serial stands in its slot; until then its alerts are not told
    dismiss   its alerts are not told
    watch     its alerts are told, as before any decision
    """
    from drivetail.decisions import decide as record
    from ingest.raw_store import utc_now

    if until is not None and until <= utc_now():
        raise click.UsageError(
            f"--until {until:%Y-%m-%d %H:%M} has passed; to end a decision: drivetail decide {drive} watch --by ... --note ..."
        )
    decision = record(warehouse, drive, verdict, by=by, note=note, until=until)
    ends = "" if decision.until is None else f" until {decision.until:%Y-%m-%d %H:%M} UTC"
    say(f"{drive}: {verdict}{ends}, by {by}; alerts of it are {'told' if verdict == 'watch' else 'not told'}")


@main.command()
@click.option("--pending", "is_pending", is_flag=True, help="Only replacements that nobody has made yet.")
@click.option("--all", "is_all", is_flag=True, help="Also those that a later decision has superseded.")
@format_option("How to print them; csv and json hold every column, for a ticket system.")
@warehouse_option
def decisions(warehouse: Warehouse, is_pending: bool, is_all: bool, output: str) -> None:
    """What was decided on drives and what became of it: replaced by whom, tail hours of its RAID group before and after.

    \b
    drivetail decisions --pending --format csv      what is still to be swapped
    """
    from drivetail.decisions import list_decisions, render_decisions

    if is_pending and is_all:
        raise click.UsageError("--pending are decisions that stand; --all, also those that do not: give one of them")
    found = list_decisions(warehouse, is_pending=is_pending, is_all=is_all)
    if output != "table":
        click.echo(as_json(found.to_dicts()) if output == "json" else found.write_csv(), nl=output == "json")
    elif len(found):
        say(render_decisions(found))
    else:
        say("No pending replacement" if is_pending else "No decision yet; `drivetail decide DRIVE replace|watch|dismiss` records one")


@main.command()
@click.option("--all", "is_all", is_flag=True, help="Also the drives to leave where they are.")
@click.option("--explain", "drive", metavar="DRIVE", help="How the expectation of one drive comes about, row by row.")
@click.option(
    "--backtest", "is_backtest", is_flag=True, help="What following the model would have saved beside other rankings, losses included."
)
@format_option("How to print them; csv and json hold every column.")
@warehouse_option
def candidates(warehouse: Warehouse, is_all: bool, drive: str | None, is_backtest: bool, output: str) -> None:
    """Which drives to replace: tail hours that each is expected to cause in 28 days, against what a replacement costs (docs/candidates.md).

    \b
    drivetail candidates                      what to do, the most worthwhile first
    drivetail candidates --explain DRIVE      why
    drivetail candidates --backtest           would it have helped so far?
    """
    from drivetail.candidates import backtest_table, candidates_table, evidence_table, list_backtest, list_candidates, list_evidence

    if is_all + is_backtest + (drive is not None) > 1:
        raise click.UsageError("--all, --explain and --backtest ask different things: give one of them")
    if is_backtest:
        rows, written = list_backtest(warehouse), backtest_table
    elif drive is not None:
        rows, written = list_evidence(warehouse, drive), evidence_table
    else:
        rows, written = list_candidates(warehouse, is_all=is_all), candidates_table
    say({"table": written, "csv": as_csv, "json": as_json}[output](rows))


@main.command()
@click.option(
    "--out",
    metavar="FILE.prom",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write in one step, such as one of node_exporter's textfile collector, instead of printing.",
)
@warehouse_option
def metrics(warehouse: Warehouse, out: Path | None) -> None:
    """The status and the fleet's last day in Prometheus' text format, the 200 slowest drives among it (docs/monitoring.md)."""
    from drivetail.metrics import metrics_text, write_metrics
    from drivetail.settings import METRICS_SUFFIX

    if out is None:
        click.echo(metrics_text(warehouse), nl=False)
        return
    if out.suffix != METRICS_SUFFIX:
        raise click.UsageError(f"--out {out}: node_exporter reads only files that end in {METRICS_SUFFIX}")
    say(f"Metrics: {write_metrics(warehouse, out)}")


@main.command()
@click.option("--out", metavar="FILE", required=True, type=click.Path(dir_okay=False, path_type=Path), help="HTML file to write.")
def docs(out: Path) -> None:
    """Write what the tables mean: every model with its columns, units, tests and lineage, as one HTML file. Takes half a minute."""
    from drivetail.docs import write_docs
    from engine.dbt import ModelError

    try:
        say(f"Documentation: {write_docs(out)}")
    except ModelError as error:
        raise Failure(str(error)) from error


@main.command()
@warehouse_option
def maintain(warehouse: Warehouse) -> None:
    """Keep the warehouse sound: compact days that are over, remove old publications, prove that what is published is what came.

    \b
    sums          the laws of the domain (slow hours = interval hours, ...) over everything
    raw           every accepted row is stored once
    rebuild       a day drawn at random, built again from raw alone, is as published
    """
    from drivetail.maintenance import maintain as run

    problems = run(warehouse, say)
    if problems:
        raise Failure("; ".join(problems))


@main.command()
@click.option("--older-than", required=True, metavar="DAYSd", help="Days before the last hour that stay, such as 400d.")
@click.option("--dry-run", is_flag=True, help="Say what would go.")
@warehouse_option
def prune(warehouse: Warehouse, older_than: str, dry_run: bool) -> None:
    """Let the drive-hours of old days go: the rows of marts.fct_drive_hours and the files of raw they were made of. It cannot be undone.

    RAID-hours, intervals, events, drives and the study stay exactly what they are. A drive-hour of a pruned day that arrives later is
    rejected, and inventory that reaches back changes the days after only (docs/decisions/0007-prune.md).

    \b
    drivetail prune --older-than 400d --dry-run
    """
    from engine.prune import LEAST_DAYS, sentence
    from engine.prune import prune as run

    match = re.fullmatch(r"(\d{1,5})d", older_than)
    if not match:
        raise click.UsageError(f"--older-than {older_than}: give whole days, such as 400d")
    days = int(match[1])
    if days < LEAST_DAYS:
        raise click.UsageError(f"--older-than {older_than}: give at least {LEAST_DAYS}d; younger days are still at work")
    with progress("Pruning") as advance:
        pruned = run(warehouse, days, is_dry_run=dry_run, on_progress=advance)
    say(sentence(pruned, is_dry_run=dry_run))


@main.command()
@click.argument("drive")
@click.argument("hour", required=False)
@warehouse_option
def explain(warehouse: Warehouse, drive: str, hour: str | None) -> None:
    """Walk one number back: a DRIVE, or one HOUR of it ("2026-01-05 07:00", UTC), to the file and row it came from."""
    from drivetail.explain import explain_drive, explain_hour

    say(explain_hour(warehouse, drive, hour) if hour else explain_drive(warehouse, drive))


if __name__ == "__main__":
    sys.exit(main())

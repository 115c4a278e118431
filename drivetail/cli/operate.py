"""An installation that runs itself, and what it needs its operator for."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from drivetail.cli.options import (
    FOLDER,
    HOUR,
    MAX_FILES_SHOWN,
    Failure,
    format_option,
    not_blank,
    others_landed,
    progress_of,
    say_ingested,
    together,
    warehouse_option,
)
from drivetail.terminal import as_csv, as_json, pass_on, progress, say, say_line
from engine.warehouse import Warehouse
from ingest.sources import COLLECTED, SOURCES
from report.words import counted_noun, human

if TYPE_CHECKING:
    from drivetail.feeds.entries import Entry
    from drivetail.feeds.pulls import Pulled
    from engine.prune import Pruned


@click.command()
@click.option("--inbox", "folder", type=FOLDER, help="Folder where deliveries arrive; created if missing.")
@click.option("--server", metavar="URL", help="Prometheus server that is pulled every hour.")
@click.option("--source", type=click.Choice([*SOURCES, COLLECTED]), help="Source of the deliveries.  [default: bundle]")
@click.option("--start", type=HOUR, metavar="HOUR", help="First hour (UTC) to be run, like 2026-01-05T00.  [default: this hour]")
@warehouse_option
def init(warehouse: Warehouse, folder: Path | None, server: str | None, source: str | None, start: datetime | None) -> None:
    """Write the settings of a warehouse that runs itself.

    DIR/drivetail.toml says where deliveries come in and who is notified when something is wrong.

    \b
    drivetail init --inbox /srv/deliveries      or --server http://prometheus:9090, or both
    drivetail inbox                             list the entries
    drivetail hour                              run it, every hour (docs/install.md)
    """
    from drivetail.service.settings import server_address, this_hour, write_settings

    if not (folder or server):
        raise click.UsageError("give --inbox FOLDER, --server URL, or both")
    if source and not folder:
        raise click.UsageError(f"--source {source}: it says what an inbox holds; give --inbox FOLDER as well, or leave it out")
    try:
        server = server and server_address(server)
    except ValueError as error:
        raise click.UsageError(f"--server: {error}") from error
    folder = folder and folder.resolve()
    path = write_settings(warehouse, folder, source or "bundle", start or this_hour(), server)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    expected = [f"deliveries are expected in {folder}"] if folder else []
    pulled = [f"{server} is pulled every hour"] if server else []
    say(f"Settings: {path}; {', '.join(expected + pulled)}")


@click.command()
@click.option("--land", "is_landing", is_flag=True, help="Land what is new, as the hourly run does.")
@format_option("How to print the list; csv holds the entries alone.")
@click.option("--until", type=HOUR, metavar="HOUR", help="Leave out entries of this hour (UTC) and later, by their names.")
@warehouse_option
def inbox(warehouse: Warehouse, is_landing: bool, output: str, until: datetime | None) -> None:
    """List what is in the inboxes, or land what is new.

    Shows the inboxes and servers of DIR/drivetail.toml: what is new, still being written, or needs an operator.
    With --land, everything new is ingested through the gate, each entry as a delivery of its own, and servers are pulled up to the last
    full hour. Repeating it changes nothing. `drivetail hour` does it, and what comes after.
    """
    from drivetail.feeds.entries import arrived, list_entries, split_missing
    from drivetail.feeds.pulls import Pull, due, list_pulled
    from drivetail.service.settings import load_settings, this_hour

    settings = load_settings(warehouse)
    if is_landing:
        from drivetail.feeds.inbox import land_each

        entries, pulls = arrived(warehouse, settings, until=until), due(warehouse, settings, until or this_hour())
        troubled = 0
        deliveries: list[Entry | Pull] = [*entries, *pulls]
        taken, titles = [(each.inbox, each.path) for each in deliveries], {each.path: each.name for each in deliveries}
        for outcome in land_each(warehouse, settings, taken, lambda path: progress_of(warehouse, titles[path])):
            troubled += outcome.needs_somebody
            say_line(outcome.sentence)
        if troubled:
            others = others_landed(troubled, len(taken))
            raise Failure(f"{counted_noun(troubled, 'entry', 'entries')} of {len(taken)} did not land (see above){others}")
        pulled = f"; {counted_noun(len(pulls), 'server')} pulled" if pulls else ""
        say(f"{counted_noun(len(entries), 'new entry', 'new entries')} landed{pulled}")
        return
    entries, missing = split_missing(list_entries(warehouse, settings, until=until))
    servers = list_pulled(warehouse, settings)
    if output == "table":
        _print_inbox(entries, servers)
    else:
        listed = [{**vars(entry), "outcome": (entry.outcome or {}).get("message")} for entry in entries]
        pass_on(as_csv(listed) if output == "csv" else as_json([*listed, *(vars(each) for each in servers)]))
    if missing:
        raise Failure("; ".join((entry.outcome or {})["message"] for entry in missing))


def _print_inbox(entries: Sequence[Entry], servers: Sequence[Pulled]) -> None:
    """The entries that are not done, the servers, and how many entries are in each state."""
    from drivetail.feeds.entries import DONE
    from drivetail.terminal import table
    from report.words import to_minute

    shown = [entry for entry in entries if entry.state != DONE]
    if shown:
        rows = [
            {**vars(entry), "changed_at": to_minute(entry.changed_at), "why": (entry.outcome or {}).get("message", "")}
            for entry in shown[:MAX_FILES_SHOWN]
        ]
        say(table(rows, {"state": "state", "inbox": "inbox", "changed (UTC)": "changed_at", "entry": "path", "why": "why"}, len(shown)))
    rows = [{**vars(each), "last_hour": to_minute(each.last_hour) or "none yet"} for each in servers]
    if rows:
        say(table(rows, {"server": "server", "address": "url", "last hour pulled (UTC)": "last_hour", "why": "message"}, len(rows)))
    counts = ", ".join(
        f"{sum(entry.state == state for entry in entries)} {state}" for state in ("new", "settling", "ahead", "failed", "done")
    )
    say(f"{counted_noun(len(entries), 'entry', 'entries')}: {counts}")


decision_options = together(
    click.option("--note", required=True, callback=not_blank, help="Why; kept with the delivery for ever."),
    click.option("--by", required=True, callback=not_blank, metavar="NAME", help="Who decides."),
    click.option("--landed", "is_landed", is_flag=True, help="NUMBER is of a delivery that has landed (marts.ingested_files has it)."),
    click.argument("number", type=click.IntRange(min=1)),
)
"""The number of a delivery, and who decides and why."""


@click.command()
@decision_options
@warehouse_option
def release(warehouse: Warehouse, number: int, by: str, note: str, is_landed: bool) -> None:
    """Land the quarantined delivery NUMBER after all.

    `drivetail status` lists what is held, and why. The files land as they came; only single implausible rows are still rejected.
    The record keeps who released it and why. Releasing it again changes nothing.

    With --landed, a delivery that was dropped after it had landed is put back, as long as its source has brought no other since.

    \b
    drivetail release 3 --by ada --note "rack 7 was switched off on purpose"
    """
    from engine.thresholds import limits_of
    from ingest import Worker, release_landed
    from ingest import release as land
    from ingest.raw.quarantine import find_held, find_landed
    from quality import Gate

    if is_landed:
        find_landed(warehouse.root, number)  # before a folder is made for a call that names nothing
        with warehouse.only_builder():
            done = release_landed(warehouse.root, number)
        say(
            f"Delivery {number} is back in raw. Next: drivetail build" if done else f"Delivery {number} is not dropped; nothing has changed"
        )
        return
    with Worker(limits_of(warehouse, "deliveries")) as worker, progress_of(warehouse, "Releasing") as on_progress:
        gate = Gate(warehouse.root, is_rows_only=True)
        summary = worker.call(land, warehouse.root, number, by=by, note=note, gate=gate, on_progress=on_progress)
    say_ingested(warehouse, summary, find_held(warehouse.root, number).since.date(), is_gated=True)


@click.command()
@decision_options
@warehouse_option
def drop(warehouse: Warehouse, number: int, by: str, note: str, is_landed: bool) -> None:
    """Delete the files of the quarantined delivery NUMBER.

    Its record stays, with who dropped it and why. Sent again, the same files are left out; ingested without --gate they would land.
    Dropping it again changes nothing.

    With --landed, a delivery that has landed is taken back: it is set aside in DIR/raw/dropped, and the next build computes again what it
    touched. Sent again, its files land; `drivetail release --landed` puts it back.

    \b
    drivetail drop 3 --by ada --note "latencies in ms; the array will send the day again"
    drivetail drop --landed 7 --by ada --note "a mapping of the wrong host"
    """
    from ingest import drop as forget
    from ingest import drop_landed
    from ingest.raw.quarantine import find_landed
    from quality import write_pages

    if is_landed:
        find_landed(warehouse.root, number)  # before a folder is made for a call that names nothing
        with warehouse.only_builder():
            later = drop_landed(warehouse.root, number, by=by, note=note)
        if later:
            after = f"{counted_noun(len(later), 'delivery', 'deliveries')} of its source landed after it, from {later[0]} on"
            say(
                f"note: {after}: what they repeated of it was not stored again, nor what was older. Where that is missed, drop them, too, "
                "and ingest their files again"
            )
        say(f"Dropped delivery {number}; it is kept in {warehouse.raw / 'dropped'}. Next: drivetail build")
        return
    held = forget(warehouse.root, number, by=by, note=note)
    write_pages(warehouse.root, held.since.date())
    assert held.decision is not None
    files = counted_noun(len(held.files), "file")
    say(f"Dropped {files} of quarantine {number}, by {held.decision['by']}; the record stays in {held.path}")


@click.command()
@warehouse_option
def hour(warehouse: Warehouse) -> None:
    """Run what every hour does, for a timer or cron.

    \b
    inbox --land, build
    alerts --notify           alerts --new where drivetail.toml names no receiver
    metrics --out FILE        where drivetail.toml names a file
    report --due, status --check

    Every step runs even if the one before failed. Exits 1 when one failed, so while something needs an operator; the receivers of
    drivetail.toml are told once, again after a day, and when all is well again.
    """
    from drivetail.service.hour import run_hour
    from drivetail.service.settings import load_settings
    from drivetail.tell.failures import tell_failure, tell_well

    receivers, failed = load_settings(warehouse).notify, []
    for step, message in run_hour(warehouse):
        tell_failure(warehouse, receivers, "drivetail hour", step, message)
        failed.append(step)
    if failed:
        raise Failure(f"{counted_noun(len(failed), 'step')} failed (see above): {', '.join(failed)}")
    tell_well(warehouse, receivers, "drivetail hour")


@click.command()
@warehouse_option
def maintain(warehouse: Warehouse) -> None:
    """Compact past days and prove what is published.

    Also removes old publications. The proofs:

    \b
    sums          the laws of the domain (slow hours = interval hours, ...) over everything
    raw           every accepted row is stored once, with its values; stored files are as they were
    rebuild       a day drawn at random, built again from raw alone, is as published

    The receivers of drivetail.toml are told when it fails: once, again after a day, and when all is well again.
    """
    from drivetail.service.maintenance import maintain as run
    from drivetail.service.settings import load_settings, settings_file
    from drivetail.tell.failures import telling

    receivers = load_settings(warehouse).notify if settings_file(warehouse).exists() else []
    with telling(warehouse, receivers, "drivetail maintain", "proofs"):
        problems = run(warehouse, say)
        if problems:
            raise Failure("; ".join(problems))


@click.command()
@click.option("--older-than", required=True, metavar="DAYSd", help="Keep this many days before the last hour, such as 400d.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Delete without asking, for cron.")
@warehouse_option
def prune(warehouse: Warehouse, older_than: str, dry_run: bool, yes: bool) -> None:
    """Delete the drive-hours of old days.

    Shows what it would delete and asks first: rows of marts.fct_drive_hours and the files of raw they were made of. It cannot be undone.
    RAID-hours, intervals, events, drives and the study do not change. A drive-hour of a pruned day that arrives later is rejected.
    Inventory that reaches back changes only the days after the horizon (docs/decisions/0007-prune.md).

    \b
    drivetail prune --older-than 400d              asks
    drivetail prune --older-than 400d --yes        from cron
    """
    from engine.prune import LEAST_DAYS
    from engine.prune import prune as run

    match = re.fullmatch(r"(\d{1,5})d", older_than)
    if not match:
        raise click.UsageError(f"--older-than {older_than}: give whole days, such as 400d")
    days = int(match[1])
    if days < LEAST_DAYS:
        raise click.UsageError(f"--older-than {older_than}: give at least {LEAST_DAYS}d; younger days are still needed")
    if dry_run or not yes:
        planned = run(warehouse, days, is_dry_run=True)
        if dry_run or planned.row_count:
            say(pruned_in_words(planned, is_dry_run=True))
        if dry_run:
            return
        if planned.row_count and not sys.stdin.isatty():
            raise click.UsageError("there is no terminal to ask on: give --yes to delete")
        if planned.row_count and not click.confirm("Delete them? It cannot be undone"):
            raise Failure("nothing was pruned")
    with progress("Pruning") as advance:
        pruned = run(warehouse, days, on_progress=advance)
    say(pruned_in_words(pruned, is_dry_run=False))


ROOM_COMES_BACK = (
    "room comes back once no reader can need the files: after an hour, by the next build that publishes, `drivetail maintain` or this "
    "command"
)


def pruned_in_words(pruned: Pruned, *, is_dry_run: bool) -> str:
    """Summary of a prune, or of a dry run, for the terminal."""
    day = f"{pruned.before_utc:%Y-%m-%d}"
    if pruned.is_there and pruned.publication:
        return (
            f"Finished the prune of everything before {day}, which had been interrupted: {human(pruned.row_count)} drive-hours are gone; "
            f"published {pruned.publication.publication_id}"
        )
    if pruned.is_there:
        return f"Everything before {day} was already pruned; nothing has changed"
    if not pruned.row_count:
        return f"Nothing to prune: no drive-hour is before {day}"
    went = (
        f"{human(pruned.row_count)} drive-hours before {day} (about {human(pruned.stored_bytes)} bytes), and of raw "
        f"{human(pruned.raw_row_count)} rows in {counted_noun(pruned.raw_file_count, 'file')} ({human(pruned.raw_bytes)} bytes)"
    )
    if is_dry_run:
        return (
            f"Would prune {went}. Afterwards records of those hours are rejected. It first needs up to {human(pruned.needed_bytes)} bytes "
            f"of room; {ROOM_COMES_BACK}. Nothing has changed"
        )
    published = f"; published {pruned.publication.publication_id}" if pruned.publication else ""
    return f"Pruned {went}{published}; {ROOM_COMES_BACK}"


COMMANDS = (init, inbox, hour, release, drop, maintain, prune)

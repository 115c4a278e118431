"""Commands for new slow drives, the decisions on them, and the numbers that a monitoring system scrapes."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from drivetail.cli.options import FILE, INSTANT, Failure, format_option, not_blank, say_ingested, warehouse_option
from drivetail.terminal import as_json, pass_on, progress, say, say_rows
from engine.warehouse import Warehouse
from report.words import counted_noun


@click.command()
@click.option("--new", "is_new", is_flag=True, help="Show only alerts not shown before, and mark them as shown.")
@click.option("--notify", "is_notifying", is_flag=True, help="Send each receiver of drivetail.toml the alerts that it has not had.")
@click.option("--hosts", "is_hosts", is_flag=True, help="Write the hosts of open alerts to the file of [collect], for `collect --finer`.")
@click.option("--all", "is_all", is_flag=True, help="Include dismissed drives and drives grouped under a host alert.")
@format_option("How to print them; json and csv hold every field, json the drives of a grouped alert and their peers too.")
@warehouse_option
def alerts(warehouse: Warehouse, is_new: bool, is_notifying: bool, is_hosts: bool, is_all: bool, output: str) -> None:
    """List the drives that have become slow.

    A drive is slow in 3 hours of 24, until it was quiet for 24; or a little slow in most hours of four weeks.

    Drives of one host that became slow together are one alert, and so is a RAID group that is slow as a whole compared with its past.
    Planned maintenance and dismissed drives raise none (docs/alerts.md).

    \b
    drivetail build && drivetail alerts --new      every hour: prints what is new, once
    drivetail build && drivetail alerts --notify   every hour: by mail, Slack, PagerDuty, ... (`[[notify]]`)
    drivetail decide S00000612A dismiss --by ada --note "known; swap on Friday" --until 2026-02-06
    """
    from drivetail.tell.alerts import Alert, held_back, held_sentence, new_alerts, open_alerts, render_alerts

    if is_new + is_notifying + is_hosts + is_all > 1:
        raise click.UsageError("--new, --notify, --hosts and --all cannot be used together")
    if is_notifying or is_hosts:
        if output != "table":
            raise click.UsageError(
                "--notify sends sentences; leave out --format" if is_notifying else "--hosts writes a file; leave out --format"
            )
        (_notify if is_notifying else _write_hosts)(warehouse)
        return

    def tell(found: list[Alert]) -> None:
        rows = [alert.to_row(with_lists=output == "json") for alert in found]
        none = "No new alert" if is_new else "No open alert"
        held = None if is_new or output != "table" else held_sentence(held_back(warehouse))
        say_rows(output, rows, lambda _: "\n".join([render_alerts(found, with_all=is_all) if found else none, *([held] if held else [])]))
        sys.stdout.flush()  # what could not be written all is new again

    found = new_alerts(warehouse, tell) if is_new else open_alerts(warehouse, with_all=is_all)
    if not (is_new and found):
        tell(found)


def _notify(warehouse: Warehouse) -> None:
    from drivetail.service.settings import load_settings, settings_file
    from drivetail.tell.notify import notify_new_alerts

    receivers = load_settings(warehouse).notify
    if not receivers:
        raise Failure(f"{settings_file(warehouse)}: names no receiver; add a [[notify]] with name and url (docs/alerts.md)")
    deliveries = notify_new_alerts(warehouse, receivers)
    for each in deliveries:
        if each.failure is None:
            silent = f", {counted_noun(each.silent_count, 'silent host')}" if each.silent_count else ""
            say(f"{each.receiver}: {counted_noun(each.alert_count, 'new alert') if each.alert_count else 'no new alert'}{silent}")
    failures = [each.failure for each in deliveries if each.failure is not None]
    if failures:
        raise Failure("\ndrivetail: ".join(failures))


def _write_hosts(warehouse: Warehouse) -> None:
    from drivetail.service.settings import load_settings, settings_file
    from drivetail.tell.slow_hosts import write_slow_hosts

    collect = load_settings(warehouse).collect
    if collect.file is None:
        raise Failure(f"{settings_file(warehouse)}: names no file for hosts; add [collect] with file (docs/sources/collect.md)")
    found = write_slow_hosts(warehouse, collect, collect.file)
    say(f"{collect.file}: {', '.join(sorted(found.hosts)) or 'no host'}")


@click.command()
@click.argument("drives", metavar="DRIVE...", nargs=-1, required=True)
@click.argument("verdict", type=click.Choice(["replace", "watch", "dismiss", "retract"]))
@click.option("--by", callback=not_blank, metavar="NAME", help="Who decides.  [default: `by` in drivetail.toml, else your login name]")
@click.option("--note", callback=not_blank, help="Why; kept for ever.")
@click.option("--ticket", callback=not_blank, metavar="NUMBER", help="Ticket that carries it out.")
@click.option(
    "--until",
    type=INSTANT,
    metavar="TIME",
    help="Until when it holds, or by when to replace the drive (UTC).  [default: for ever]",
)
@click.option("--yes", "is_sure", is_flag=True, help="Replace drives of which no slow hour is known, too.")
@click.option("--ticket-text", "is_ticket_text", is_flag=True, help="Print the text of a ticket for the technician and record nothing.")
@warehouse_option
def decide(
    warehouse: Warehouse,
    drives: tuple[str, ...],
    verdict: str,
    by: str | None,
    note: str | None,
    ticket: str | None,
    until: datetime | None,
    is_sure: bool,
    is_ticket_text: bool,
) -> None:
    """Record a decision on one or more drives.

    The latest decision on a drive counts; none is ever edited, and the same one is not recorded twice. `drivetail decisions` lists them.

    \b
    drivetail decide web2/sdd replace --ticket-text      where it is, how to be sure, why: for the ticket
    drivetail decide web2/sdd S00000613A replace --ticket OPS-4711 --note "slow for weeks"

    \b
    replace   it will be swapped: pending until another serial number is in its slot; until then it raises no alerts
    dismiss   it raises no alerts
    watch     it raises alerts, as before any decision
    retract   it is as if nobody had decided on it
    """
    from drivetail.ask.decisions import decide as record
    from drivetail.ask.decisions import never_slow
    from drivetail.ask.ticket import ticket_text
    from drivetail.service.settings import decides_here
    from ingest.contract.values import utc_now

    if is_ticket_text:
        if verdict != "replace":
            raise click.UsageError(f"--ticket-text is of drives to replace, not to {verdict}")
        say(ticket_text(warehouse, drives))
        return
    if note is None:
        raise click.UsageError("give --note WHY; it is kept with the decision")
    if until is not None and until <= utc_now():
        raise click.UsageError(
            f"--until {until:%Y-%m-%d %H:%M} has passed; to end a decision: drivetail decide {drives[0]} retract --note ..."
        )
    if verdict == "replace" and not is_sure and (doubt := never_slow(warehouse, drives)):
        raise Failure(f"{doubt}; nothing is recorded. Give --yes to replace it all the same")
    who = by or decides_here(warehouse)
    ends = "" if until is None else f" until {until:%Y-%m-%d %H:%M} UTC"
    carried = "" if ticket is None else f", ticket {ticket}"
    new, repeated = record(warehouse, drives, verdict, by=who, note=note, until=until, ticket=ticket)
    for decision in (*new, *repeated):
        again = f"; recorded already, at {decision.at:%Y-%m-%d %H:%M} UTC" if decision in repeated else ""
        alerts = "shown" if verdict in ("watch", "retract") else "muted"
        say(f"{decision.drive_id}: {verdict}{ends}, by {who}{carried}; its alerts are {alerts}{again}")


@click.command()
@click.argument("drive")
@click.option("--print", "is_print", is_flag=True, help="Print the command for the drive's host and run nothing.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="DRIVE=PATH",
    help="Read DRIVE at PATH, here; of others than the suspect: these are its peers. A plain file stands for its drive.",
)
@click.option("--seconds", type=click.IntRange(6, 600), default=60, show_default=True, help="Seconds of each kind of reads.")
@warehouse_option
def confirm(warehouse: Warehouse, drive: str, is_print: bool, devices: tuple[str, ...], seconds: int) -> None:
    """Test a suspect drive before it is pulled.

    Reads it and two healthy peers of its RAID group at the same time, directly and slowly, and says whether it is slow by itself
    (docs/sources/confirm.md). It never writes. On another machine than the drive's host it prints the command to run there.

    \b
    drivetail confirm web2/sdd                    two minutes; the result is on the drive's page and in its ticket
    drivetail confirm web2/sdd --print            the command alone, of fio
    drivetail ingest confirm confirm-S1.txt       what that command wrote; then: drivetail build
    """
    from drivetail.ask.probes import newest_probes
    from drivetail.host.confirm import ConfirmError, command, described, is_here, plan, run
    from engine.build import build
    from engine.read import publication_of
    from ingest import ingest as land

    given = dict(each.rpartition("=")[::2] for each in devices)
    if not all(name and path for name, path in given.items()):
        raise click.UsageError("--device is DRIVE=PATH, such as web2/sdd=/dev/sdd")
    try:
        probe = plan(warehouse, drive, given, seconds)
        if is_print:
            pass_on(command(probe))
            return
        say(described(probe))
        if not given and not is_here(probe):
            host = probe.drives[0].host
            say(f"{host or 'Its host, which no source names,'} is another machine. Run there:\n\n{command(probe)}\n\nand here:\n")
            say(f"drivetail ingest confirm {probe.file} && drivetail build")
            return
        with TemporaryDirectory() as scratch:
            out = Path(scratch, probe.file)
            run(probe, out)
            summary = land("confirm", [out], warehouse.root)
    except ConfirmError as error:
        raise Failure(str(error)) from error
    say_ingested(warehouse, summary, is_gated=False)
    with progress("Building") as advance:
        build(warehouse, daily=False, on_progress=advance)
    with publication_of(warehouse) as connection:
        said = newest_probes(connection).get(probe.drives[0].drive_id)
    say(said or f"{probe.drives[0].drive_id}: nothing of the probe was kept; `drivetail status` says what was rejected")


@click.command()
@click.option("--pending", "is_pending", is_flag=True, help="Show only replacements that are not done yet.")
@click.option("--all", "is_all", is_flag=True, help="Include decisions that a later one has superseded.")
@format_option("How to print them; csv and json hold every column, for a ticket system.")
@warehouse_option
def decisions(warehouse: Warehouse, is_pending: bool, is_all: bool, output: str) -> None:
    """List the decisions on drives and what became of them.

    Which drive replaced it, and the tail hours of its RAID group before and after.

    \b
    drivetail decisions --pending --format csv      what is still to be swapped
    """
    from drivetail.ask.decisions import list_decisions, render_decisions

    if is_pending and is_all:
        raise click.UsageError("--pending and --all cannot be used together")
    found = list_decisions(warehouse, is_pending=is_pending, is_all=is_all)
    if output != "table":
        pass_on(as_json(found.to_dicts()) if output == "json" else found.write_csv(), nl=output == "json")
    elif len(found):
        say(render_decisions(found))
    else:
        say("No pending replacement" if is_pending else "No decision yet; `drivetail decide DRIVE replace|watch|dismiss` records one")


@click.command()
@click.option(
    "--out", metavar="FILE.prom", type=FILE, help="Write this file in one step instead of printing, for node_exporter's textfile collector."
)
@warehouse_option
def metrics(warehouse: Warehouse, out: Path | None) -> None:
    """Print the status and last day as Prometheus metrics.

    Includes the 200 slowest drives (docs/monitoring.md).
    """
    from drivetail.service.settings import METRICS_SUFFIX
    from drivetail.tell.metrics import metrics_text, write_metrics

    if not warehouse.raw.exists():
        raise Failure(f"{warehouse.root}: is no warehouse; name one with --warehouse DIR")
    if out is None:
        pass_on(metrics_text(warehouse), nl=False)
        return
    if out.suffix != METRICS_SUFFIX:
        raise click.UsageError(f"--out {out}: node_exporter reads only files that end in {METRICS_SUFFIX}")
    if not out.parent.is_dir():
        raise Failure(f"{out.parent}: no such folder; make it first")
    say(f"Metrics: {write_metrics(warehouse, out)}")


COMMANDS = (alerts, confirm, decide, decisions, metrics)

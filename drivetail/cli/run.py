"""The path: a source is looked at, its deliveries land, the models are built, the week is reported."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from drivetail.cli.options import (
    DAY,
    FILE,
    FOLDER,
    INSTANT,
    Failure,
    format_option,
    given_options,
    in_one_line,
    of_console,
    progress_of,
    say_ingested,
    selection_options,
    server_options,
    time_options,
    warehouse_option,
)
from drivetail.terminal import Columns, progress, say, say_rows, table
from engine.warehouse import Warehouse
from ingest.contract.values import DRIVE_KINDS, RESOLUTIONS
from ingest.sources import COLLECTED, INBOX_OPTIONS, SOURCES, listing
from report.words import counted_noun, human

WITH_RESOLUTION = tuple(name for name, options in INBOX_OPTIONS.items() if "resolution" in options)


@click.command()
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="Folder for the fleet, its warehouse and the report.")
@click.option("--end", type=DAY, metavar="DATE", help="Last day of its data (UTC).  [default: yesterday]")
@click.option("--site", type=FOLDER, metavar="DIR", help="Write the console's pages, the report and the marts there, as files.")
def demo(out: Path, end: datetime | None, site: Path | None) -> None:
    """Simulate, ingest, build and report on a small fleet.

    Takes half a minute; with --site a minute and a half.
    """
    from drivetail.demo import run_demo

    with in_one_line(out):
        if site:
            console = of_console("site")
            console.earlier_files(site)  # a folder that cannot be used is known before the demo is made
        run_demo(out.resolve(), click.get_current_context().find_root().command, end and end.date())
        if site:
            pages = console.write_site(Warehouse(out / "warehouse"), site)
            say(f"\nSite: {site / 'index.html'}, {counted_noun(pages, 'page')}; it needs no server")


SCORES: Columns = {
    "tool": "tool",
    "slow drives": "slow_count",
    "found": "found_count",
    "hours to the first": ("median_hours", lambda value: value and f"{value:,.0f}"),
    "false, per 1,000 healthy drives and week": ("false_per_1000", "{:.1f}".format),
    "net tail hours": ("net_tail_hours", "{:,.0f}".format),
}


def _benchmark(out: Path, file: Path | None, *, is_written: bool) -> None:
    """Write the labelled fleets, or score a CSV by them."""
    from simulate.benchmark import score, write_benchmark

    if is_written:
        with progress("Simulating") as advance:
            fleets = write_benchmark(out, on_progress=lambda done, total: advance("fleets", done, total))
        say(f"{counted_noun(len(fleets), 'fleet')} with labels: {', '.join(str(fleet) for fleet in fleets)}")
        say(f"Next: drivetail simulate --out {out} --score FOUND.csv")
    if file:
        say(table(score(out, file), SCORES))


@click.command()
@click.option("--out", required=True, type=FOLDER, help="Folder to write the bundle to; its ground truth goes to DIR/truth.")
@click.option("--disk-groups", type=click.IntRange(min=0), default=12, show_default=True, help="RAID groups of disks.")
@click.option("--ssd-groups", type=click.IntRange(min=0), default=6, show_default=True, help="RAID groups of SSDs.")
@click.option("--days", type=click.IntRange(min=1), default=14, show_default=True, help="Days of telemetry.")
@click.option("--hours", type=click.IntRange(min=1), default=None, help="Hours of telemetry, instead of --days.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed and options write the same fleet.")
@click.option("--start", type=DAY, metavar="DATE", help="First day (UTC).  [default: 2026-01-05]")
@click.option("--end", type=DAY, metavar="DATE", help="Last day (UTC), instead of --start.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv", "csv.gz", "csv.zst", "ndjson"]),
    default="parquet",
    show_default=True,
    help="File format of the bundle.",
)
@click.option("--awkward", "awkward", multiple=True, help="An awkward case to plant, or `all`; may be given more than once.")
@click.option(
    "--health",
    type=click.Choice(["unrelated", "planted"]),
    default=None,
    help="Write SMART attributes too: unrelated to slowness, or one that rises before it.",
)
@click.option("--overwrite", is_flag=True, help="Replace a bundle that an earlier simulation wrote to DIR.")
@click.option(
    "--preset",
    type=click.Choice(["tail-at-store", "tail-at-store-disk", "tail-at-store-ssd"]),
    default="tail-at-store",
    show_default=True,
    help="Simulate drives that behave as in the paper of that name: both kinds, or only one.",
)
@click.option(
    "--parameters", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="JSON file of numbers of the preset to change."
)
@click.option("--benchmark", is_flag=True, help="Write the labelled fleets that detectors are compared on, some 130 MB.")
@click.option(
    "--score",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Score a CSV of found drives against the benchmark in DIR.",
)
def simulate(
    out: Path, start: datetime | None, end: datetime | None, parameters: Path | None, benchmark: bool, score: Path | None, **options: Any
) -> None:
    """Write the bundle of a simulated fleet, and its truth.

    Drives behave: they serve a workload, fall slow and recover, age, and operators unplug them. Slowdowns are not
    drawn; they come out when a drive is compared with its group.
    """
    from simulate import ParameterError, SimulationError

    try:
        with in_one_line(out):
            if benchmark or score:
                _benchmark(out, score, is_written=benchmark)
            else:
                _simulate(out, start, end, parameters, **options)
    except (SimulationError, ParameterError) as error:
        raise click.UsageError(str(error)) from error
    except json.JSONDecodeError as error:
        raise Failure(f"{parameters}: line {error.lineno}: not JSON: {error.msg}") from error


def _simulate(out: Path, start: datetime | None, end: datetime | None, parameters: Path | None, **options: Any) -> None:
    from simulate import simulate as run

    changes = json.loads(parameters.read_text(encoding="utf-8")) if parameters else None
    with progress("Simulating") as advance:
        summary = run(
            out,
            start=start and start.date(),
            end=end and end.date(),
            parameters=changes,
            on_progress=lambda done, total: advance("hours", done, total),
            **options,
        )
    kinds = ", ".join(f"{human(rows)} {kind}" for kind, rows in summary.drive_hour_rows.items())
    say(
        f"{human(summary.row_count)} drive-hours ({kinds}), {human(summary.drive_rows)} inventory periods "
        f"and {human(summary.event_rows)} events in {out}"
    )
    say(f"Truth: {summary.truth}")
    say(f"Next: drivetail ingest bundle {out} && drivetail build")


@click.command(epilog=f"\b\nSources:\n{listing()}")
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
    help="Check the delivery first: implausible rows are rejected, an implausible delivery is quarantined.",
)
@click.option(
    "--resolution",
    type=click.Choice(RESOLUTIONS),
    help=f"Keep what was measured within the hour, too; for {', '.join(WITH_RESOLUTION)}.",
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
    """Land deliveries of one SOURCE in the raw store.

    Ingesting the same file again changes nothing. The sources are listed below.

    \b
    drivetail ingest prometheus http://prometheus:9090 --from 2026-01-05T00 --to 2026-02-05T00

    With --gate every record and the delivery as a whole must also be plausible (docs/quality-gate.md). A delivery that is
    not lands nothing and waits in quarantine for `drivetail release` or `drivetail drop`; DIR/docs/quality/DATE.html has
    every check of the day.
    """
    from engine.thresholds import limits_of
    from ingest import Worker, calls_of
    from ingest import ingest as land

    looked_at_by = None
    if gate:
        from quality import Gate

        looked_at_by = Gate(warehouse.root)
    warehouse.create()
    rejected = 0
    failures = []
    with Worker(limits_of(warehouse, "deliveries")) as worker:
        for each, options in calls_of(source, paths, source_options):
            with progress_of(warehouse, "Ingesting") as on_progress:
                summary = worker.call(
                    land,
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
                say_ingested(warehouse, summary, is_gated=gate)
            except Failure as failure:  # what else was collected is taken all the same
                failures.append(failure)
    if failures:
        raise failures[0]
    if strict and rejected:
        raise Failure(f"--strict was given and {counted_noun(rejected, 'record')} rejected; the others have landed")


@click.command("map")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="CSV...")
@warehouse_option
def map_drives(warehouse: Warehouse, paths: tuple[Path, ...]) -> None:
    """Map devices to serial numbers and RAID groups.

    A mapping takes precedence over every source and is kept for ever.

    CSV (or Parquet, NDJSON) with `drive_id` (serial number), or `host` and `device`, or all three; `raid_group_id` and any column of
    the inventory (role, kind, slot, enclosure, model, deployed_on, ...), from `valid_from` to `valid_to` (docs/sources/mapping.md).
    Of two rows on the same drive and valid_from the one that was given last counts; nothing given before is removed.

    \b
    host,device,drive_id,raid_group_id
    web1,sda,ZC14LV0Q,pool-a
    """
    from ingest import ingest as land

    warehouse.create()
    with progress_of(warehouse, "Mapping") as on_progress:
        summary = land("mapping", paths, warehouse.root, on_progress=on_progress)
    say_ingested(warehouse, summary, is_gated=False)
    say("Next: drivetail build")


@click.command()
@click.option("--out", default="./collected", show_default=True, type=FOLDER, help="Where deliveries go.")
@click.option("--once", is_flag=True, help="Look once, deliver at once and exit, for cron.")
@click.option("--every", metavar="60s", help="Look this often and deliver every hour, as a service.  [default: 60s]")
@click.option(
    "--finer", metavar="FILE", type=FILE, help="Look more often while this file, which `drivetail alerts --hosts` writes, names this host."
)
@click.option("--host", help="Name of this host.  [default: its own]")
@click.option("--textfile", type=FOLDER, help="Also write membership of md arrays there, for node_exporter.")
def collect(out: Path, once: bool, every: str | None, finer: Path | None, host: str | None, textfile: Path | None) -> None:
    """Collect what this host knows of its drives.

    It reads /proc/diskstats, mdstat, mdadm, lsblk, smartctl and the kernel's messages (docs/sources/collect.md).
    Run it as root: as a service (deploy/systemd), or with --once from cron every few minutes. Each delivery is one folder in --out,
    whole or absent, for `drivetail ingest collected OUT`. A command that is missing on the host is reported; the rest is delivered.
    """
    from drivetail.host.collect import CollectError, Collector, looking
    from drivetail.host.fast_sampling import FastSampling

    for given, option in ((every, "--every"), (finer, "--finer")):
        if once and given:
            raise click.UsageError(f"--once looks once; leave {option} out")
    seconds = _seconds(every or "60s")
    try:
        collector = Collector(out, host=host)
        if once:
            collector.look()
        sooner = None if finer is None else FastSampling(finer, collector.host, collector.spool)
        looks = [collector.deliver()] if once else looking(collector, seconds, sooner)
        for delivered in looks:
            if delivered is not None:
                for sentence in delivered.missing:
                    say(f"note: {sentence}")
                say(f"{delivered.path}: {', '.join(delivered.files)}")
            if textfile is not None:
                collector.write_membership(textfile)
    except CollectError as error:
        raise Failure(str(error)) from error


def _seconds(text: str) -> int:
    from drivetail.service.slow_hosts import seconds_of

    seconds = seconds_of(text)
    if seconds is None or not 1 <= seconds <= 900:
        raise click.UsageError(f"--every {text}: give 1s to 15m; snapshots further apart miss too much of the hour")
    return seconds


@click.command()
@click.argument("source", type=click.Choice([*SOURCES, COLLECTED]), metavar="SOURCE")
@click.argument("paths", nargs=-1, required=True, metavar="PATH_OR_URL...")
@time_options
@selection_options
@format_option("How to print what was found.")
@warehouse_option
def doctor(source: str, paths: tuple[str, ...], warehouse: Warehouse, output: str, **source_options: Any) -> None:
    """Check what a SOURCE can provide; land nothing.

    Exits 1 if something is missing without which the source cannot be used. `drivetail ingest --help` lists the sources.
    A server is asked a few dozen small questions; the last line is the command that pulls all its history. Files are read as
    `drivetail ingest` would read them, all together. Drives and RAID groups that the warehouse knows already, mappings included, count
    as known. There need not be a warehouse yet.

    \b
    drivetail doctor prometheus http://prometheus:9090
    drivetail doctor prometheus http://thanos:9090 --match 'cluster="eu1"' --host-label node
    """
    from drivetail.host.doctor import examine, findings_tables
    from ingest.contract.findings import MISSING
    from ingest.contract.values import plain_address

    found = examine(source, paths, source_options, warehouse)
    only = [one for findings in found.values() for one in findings]
    if [one.state for one in only] == [MISSING]:
        (path,) = (path for path, findings in found.items() if findings)
        said = "; ".join(filter(None, (only[0].said, only[0].todo)))
        shown = plain_address(path) if "://" in path else path
        raise Failure(said if shown in said else f"{shown}: {said}")
    rows = [{"path": str(path), **vars(one)} for path, findings in found.items() for one in findings]
    say_rows(output, rows, partial(findings_tables, options=given_options("output")))
    missing = sum(row["state"] == MISSING for row in rows)
    if missing:
        raise Failure(f"{counted_noun(missing, 'thing')} missing (see above); {source} cannot be used until that is fixed")


@click.command()
@click.option("--target", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True, help="What computes the days.")
@click.option("--master", metavar="URL", help="Spark master: `local[*]` or spark://HOST:PORT.  [default: local[*]]")
@click.option("--full-refresh", is_flag=True, help="Compute everything again from the raw store.")
@click.option("--keep-pruned", is_flag=True, help="Keep what was computed from drive-hours that `drivetail prune` deleted.")
@click.option(
    "--daily/--no-daily",
    default=None,
    help="Make the relations that look at whole days now, or leave them to a build without this.  [default: when a day is over]",
)
@warehouse_option
def build(warehouse: Warehouse, target: str, master: str | None, full_refresh: bool, keep_pruned: bool, daily: bool | None) -> None:
    """Compute what is new, test it and publish it.

    Runs the models over what has landed since the last build. Readers see the last publication until the new one is complete.
    """
    from engine.read import has_nothing

    if master and target != "spark":
        raise click.UsageError("--master is of --target spark")
    if has_nothing(warehouse):
        hint = "`drivetail ingest SOURCE PATH` first, or name another folder with --warehouse DIR"
        raise Failure(f"{warehouse.root}: nothing has landed there, so there is nothing to build; {hint}")
    from engine.build import build as run_build

    with progress("Building") as advance:
        summary = run_build(
            warehouse, target=target, master=master, full_refresh=full_refresh, keep_pruned=keep_pruned, daily=daily, on_progress=advance
        )
    published = f"{summary.publication.publication_id} in {warehouse.published}"
    say(
        f"Nothing is new since {published}"
        if not summary.is_new
        else f"Built {human(summary.drive_hour_count)} drive-hours in {human(summary.raid_hour_count)} RAID-hours from "
        f"{counted_noun(summary.delivery_count, 'new delivery', 'new deliveries')}; "
        f"published {published}"
    )
    for failure in summary.custom_failures:
        say(failure)


@click.command()
@click.option("--week", metavar="2026-W46", help="ISO week (UTC).  [default: the last complete one]")
@click.option("--out", type=FILE, help="File to write.  [default: DIR/reports/WEEK.html]")
@click.option(
    "--format",
    "output",
    type=click.Choice(["html", "json", "pdf"]),
    default="html",
    show_default=True,
    help="html writes the same numbers as JSON beside it; pdf needs Chromium.",
)
@click.option("--publication", metavar="ID", help="Report on an earlier publication. It is kept for an hour after the next one.")
@click.option(
    "--as-known-at",
    type=INSTANT,
    help="Report on what had landed by this time (UTC). Builds it again unless a kept publication holds it.",
)
@click.option(
    "--due", "is_due", is_flag=True, help="Write every report that is due: of complete weeks without one, or with newer deliveries."
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
    """Write the weekly fleet report as one HTML file."""
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


COMMANDS = (demo, simulate, ingest, map_drives, collect, doctor, build, report)

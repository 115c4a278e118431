"""Questions: what the warehouse holds, where a number comes from, what would be otherwise."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from drivetail.cli.options import FILE, INSTANT, POLICIES, Failure, format_option, in_one_line, of_console, warehouse_option
from drivetail.terminal import as_json, pass_on, progress, say, say_rows
from engine.warehouse import Warehouse
from report.words import counted_noun, human


@click.command()
@click.argument("query", metavar="[SELECT_OR_FILE]", required=False)
@format_option("How to print the rows.", ("table", "csv", "json", "parquet"))
@click.option("--out", type=FILE, help="File to write instead of printing (needed for parquet).")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Rows that the table format prints.")
@warehouse_option
def sql(warehouse: Warehouse, query: str | None, output: str, out: Path | None, limit: int) -> None:
    """Run a read-only SQL query on the warehouse.

    SELECT_OR_FILE is one statement, a file that holds it, or - for standard input. It reads the published warehouse and no other file, and
    writes only --out. Without it a shell opens on the published file: harlequin, or DuckDB's own, whichever is installed.

    \b
    drivetail sql "select kind, count(*) from marts.fct_raid_hours where is_tail_hour group by kind"
    """
    from drivetail.ask.sql import open_shell, run_query

    if query is None:
        open_shell(warehouse)
        return
    if query == "-":
        query = click.get_text_stream("stdin").read()
    if output == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    text = run_query(warehouse, query, output, out, limit)
    if text:
        say(text) if output == "table" else pass_on(text)


@click.command()
@click.argument("file", metavar="OUT.duckdb", required=False, type=click.Path(path_type=Path))
@click.option("--parquet", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Write a Parquet file per mart into DIR instead.")
@click.option("--select", "only", multiple=True, metavar="NAME", help="Write this mart only; may be given more than once.")
@click.option(
    "--storage-version",
    default="v1.0.0",
    show_default=True,
    metavar="VERSION",
    help="DuckDB's storage version of OUT.duckdb, such as v1.4.0.",
)
@click.option("--force", is_flag=True, help="Replace what is there.")
@click.option("--findings", metavar="FILE", type=FILE, help="Write which drives are slow now: .json, or .txt with a line per host.")
@warehouse_option
def export(
    warehouse: Warehouse,
    file: Path | None,
    folder: Path | None,
    only: tuple[str, ...],
    storage_version: str,
    force: bool,
    findings: Path | None,
) -> None:
    """Copy the marts into one file for another place.

    OUT.duckdb holds every mart as a table, with primary keys, the descriptions as comments, and your own models in schema custom; what is
    computed when it is asked for, once it has been. It needs no warehouse, and old releases of DuckDB open it. Parquet files have
    descriptions and key in their metadata.

    \b
    drivetail export fleet.duckdb
    drivetail export --parquet fleet/ --select fct_drive_hours --select dim_drives
    drivetail export --findings /srv/slow.json      for node-problem-detector, Slurm, tickets (docs/findings.md)
    """
    from drivetail.ask.export import export as run

    out = file or folder
    if findings is not None and out is None and findings.suffix in (".json", ".txt"):
        from drivetail.tell.findings import write_findings

        found = write_findings(warehouse, findings)
        say(f"{findings}: {counted_noun(len(found.findings), 'slow drive')} of {counted_noun(len(found.hosts), 'host')}")
        return
    if findings is not None:
        raise click.UsageError("--findings takes a file that ends in .json or .txt, and no other output")
    if out is None or (file and folder):
        raise click.UsageError("give either OUT.duckdb or --parquet DIR")
    with progress("Exporting") as advance:
        done = run(
            warehouse,
            out,
            is_parquet=folder is not None,
            only=only,
            storage_version=storage_version,
            is_forced=force,
            on_progress=advance,
        )
    marts = counted_noun(done.relation_count, "mart")
    say(f"Exported {marts}, {human(done.row_count)} rows, to {out}: {human(done.size_bytes)} bytes")
    if done.left_out:
        say("\n".join(f"Left out: {name} {why}" for name, why in done.left_out.items()))


@click.command()
@click.argument("drive")
@click.argument("hour", required=False)
@format_option("json has every digit.", ("table", "json"))
@warehouse_option
def explain(warehouse: Warehouse, drive: str, hour: str | None, output: str) -> None:
    """Trace a drive's numbers back to file and row.

    With HOUR ("2026-01-05 07:00", UTC) that hour of the drive: its latency, its peers, its slowdown, and the raw records behind them.
    """
    if output == "json":
        from drivetail.ask.explain.exact import as_records

        pass_on(as_json(as_records(warehouse, drive, hour)))
    elif hour:
        from drivetail.ask.explain.hour import explain_hour

        say(explain_hour(warehouse, drive, hour))
    else:
        from drivetail.ask.explain.drive import explain_drive

        say(explain_drive(warehouse, drive))


@click.command()
@format_option("How to print it.", ("table", "json"))
@click.option("--json", "output", flag_value="json", hidden=True)
@click.option("--check", is_flag=True, help="Print what needs an operator on one line, and exit 1 then.")
@warehouse_option
def status(warehouse: Warehouse, output: str, check: bool) -> None:
    """Show what landed, how fresh it is, and what is wrong."""
    from drivetail.ask.status import collect_status, render_status

    collected = collect_status(warehouse)
    if output == "json":
        pass_on(as_json(asdict(collected)))
    elif not check:
        say(render_status(collected))
    # in a folder that is no warehouse the only problem is that
    if (check or not warehouse.raw.exists()) and collected.problems:
        raise Failure("; ".join(collected.problems))


@click.command("what-if")
@click.option(
    "--replace", "replaced", multiple=True, metavar="DRIVE", help="Replace this drive by a healthy one; may be given more than once."
)
@click.option(
    "--worst", type=click.IntRange(1, 2), help="Replace the 1 or 2 drives of each RAID group that were the slowest in most tail hours."
)
@click.option(
    "--skip-slowest",
    "skipped",
    type=click.IntRange(1, 2),
    help="Assume reads are rebuilt from parity instead of waiting for the 1 or 2 slowest drives.",
)
@click.option(
    "--policy",
    type=click.Choice([*POLICIES, "all"]),
    help="Assume reads go around slow drives by a policy of ToleRAID (lab/docs/toleraid.md).",
)
@click.option(
    "--st",
    type=click.FloatRange(min=1, min_open=True),
    help="Slowdown from which a drive is late, with --policy.  [default: the slow threshold of its kind, 2]",
)
@click.option("--since", type=INSTANT, help="First hour that counts (UTC).  [default: all]")
@click.option("--until", type=INSTANT, help="End of the hours that count (UTC).  [default: all]")
@format_option("How to print the answer.")
@warehouse_option
def what_if(
    warehouse: Warehouse,
    replaced: tuple[str, ...],
    worst: int | None,
    skipped: int | None,
    policy: str | None,
    st: float | None,
    since: datetime | None,
    until: datetime | None,
    output: str,
) -> None:
    """Estimate the tail hours left without the slowest drives.

    A replaced drive is left out: every RAID-hour it was in is computed again from the other drives' latencies (docs/costs.md).

    \b
    drivetail what-if --worst 1                          the worst drive of each RAID group
    drivetail what-if --replace S00000612A --replace S00000613A --since 2026-02-01
    drivetail what-if --skip-slowest 1                   as if reads were rebuilt from parity
    drivetail what-if --policy all                       and what that costs, by policy
    """
    from drivetail.ask.what_if import ask, ask_policies, what_if_table

    if policy and (replaced or worst or skipped):
        raise click.UsageError("--policy cannot be used with --replace, --worst or --skip-slowest")
    if st is not None and not policy:
        raise click.UsageError("--st goes with --policy")
    if not (replaced or worst or skipped or policy):
        raise click.UsageError("nothing is changed: give --replace DRIVE, --worst 1, --skip-slowest 1 or --policy adaptive")
    if replaced and worst:
        raise click.UsageError("--replace and --worst cannot be used together")
    if since is not None and until is not None and until <= since:
        raise click.UsageError(f"--until {until} is not after --since {since}")
    if policy:
        rows = ask_policies(warehouse, POLICIES if policy == "all" else [policy], st, since, until)
    else:
        rows = ask(warehouse, replaced, worst=worst or 0, skipped=skipped or 0, since=since, until=until)
    say_rows(output, rows, what_if_table)


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Include the drives to leave where they are.")
@click.option("--explain", "drive", metavar="DRIVE", help="Show the verdicts on one drive, Monday by Monday, and what came after each.")
@click.option("--backtest", "is_backtest", is_flag=True, help="Show what drives cost in the 28 days after each verdict so far.")
@format_option("How to print them; csv and json hold every column.")
@warehouse_option
def candidates(warehouse: Warehouse, is_all: bool, drive: str | None, is_backtest: bool, output: str) -> None:
    """List the drives worth replacing.

    Compares the tail hours that each cost in 28 days with what a replacement costs (docs/candidates.md).

    \b
    drivetail candidates                      what to do first, and why
    drivetail candidates --explain DRIVE      its verdicts so far
    drivetail candidates --backtest           did the verdicts pay?
    """
    from drivetail.ask.candidates import candidates_table, history_table, list_candidates, list_history, list_verdicts, verdicts_table

    if is_all + is_backtest + (drive is not None) > 1:
        raise click.UsageError("--all, --explain and --backtest cannot be used together")
    if is_backtest:
        say_rows(output, list_verdicts(warehouse), verdicts_table)
    elif drive is not None:
        say_rows(output, list_history(warehouse, drive), history_table)
    else:
        say_rows(output, list_candidates(warehouse, is_all=is_all), candidates_table)


@click.command()
@click.option("--out", metavar="FILE", required=True, type=FILE, help="HTML file to write.")
@click.option("--project", metavar="NAME", help="Document the tables of a project beside the fleet's, such as study.")
def docs(out: Path, project: str | None) -> None:
    """Write the documentation of all tables as one HTML file.

    Every model of the fleet with its columns, units, tests and lineage. Takes half a minute.
    """
    from drivetail.ask.docs import write_docs

    with in_one_line(out):
        say(f"Documentation: {write_docs(out, project)}")


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at. Any but this machine's own lets others in.")
@click.option("--port", type=click.IntRange(1, 65535), default=8090, show_default=True, help="Port to listen at.")
@click.option("--user-header", metavar="NAME", help="Header in which a proxy on this machine says who asks, such as X-Remote-User.")
@click.option("--address", "public", metavar="URL", help="Address that readers type, where a proxy serves it.")
@click.option("--readers-only", is_flag=True, help="Let nobody decide.")
@click.option("--decider", "deciders", metavar="USER", multiple=True, help="User of the proxy who may decide; others only read.")
@click.option(
    "--session-hours", type=click.FloatRange(0.01, 8760), default=24, show_default=True, help="Time after which the token is asked again."
)
@warehouse_option
def serve(warehouse: Warehouse, host: str, port: int, readers_only: bool, deciders: tuple[str, ...], **options: Any) -> None:
    """Show the warehouse in the browser: look, ask, decide.

    Prints an address with a token. Anybody who opens it may read everything, and decide unless --readers-only or --decider says otherwise.
    It follows what is published (docs/console.md).

    \b
    drivetail serve                                            http://127.0.0.1:8090
    drivetail serve --user-header X-Remote-User --address https://drives.example.org --decider ada
    """
    if readers_only and deciders:
        raise click.UsageError("--readers-only and --decider cannot be used together")
    console = of_console("serve")
    may_decide = frozenset(deciders) if deciders or readers_only else None
    console.serve(warehouse, host, port, click.echo, deciders=may_decide, **options)


@click.command()
@warehouse_option
def mcp(warehouse: Warehouse) -> None:
    """Let AI agents ask the warehouse, over MCP.

    A program that speaks MCP starts it, and asks on standard input: tables, questions in SQL, drives, candidates, what to do. It reads the
    publication and writes nothing (docs/agents.md).
    """
    of_console("mcp", "mcp").serve(warehouse)


COMMANDS = (sql, export, explain, status, what_if, candidates, docs, serve, mcp)

"""`drivetail doctor`: what a source has and what is missing, before any of it lands."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from drivetail.terminal import table
from engine.read import Row
from engine.thresholds import LIMITS, variables
from engine.warehouse import Warehouse
from ingest import IngestError, IngestSummary, Worker, calls_of, drive_hour_files, ingest, table_files
from ingest.contract.findings import MISSING, OK, WEAK, Finding, Inventory, group_findings, kind_finding
from ingest.raw.store import list_folders
from ingest.sources.prometheus import selection_of
from ingest.sources.prometheus.doctor import diagnose

KINDS = {"drives": "inventory", "drive_aliases": "names of devices", "drive_events": "events", "drive_health": "health", "labels": "labels",
         "drive_probes": "probes"}  # fmt: skip
LEAST_DRIVES = 3
"""Drives without which a RAID-hour has no median (`min_reporting_drives` of the models)."""


def examine(source: str, paths: Sequence[str], options: Mapping[str, Any], warehouse: Warehouse) -> dict[str, list[Finding]]:
    """Findings by path: each server is asked, files are landed, all together as ingest takes them, in a warehouse that is thrown away.

    warehouse: need not be there; what has landed in it names drives and RAID groups.
    """
    inventory = inventory_of(warehouse)
    servers = [path for path in paths if source == "prometheus" and "://" in path]
    values = variables()
    found = {
        server: diagnose(
            server,
            selection_of(options),
            LEAST_DRIVES,
            inventory=inventory,
            controllers=values["raid_controller_models"],
            replace_days=values["replace_evidence_days"],
            chronic_days=values["chronic_window_days"],
        )
        for server in servers
    }
    if files := [path for path in paths if path not in servers]:
        found[", ".join(files)] = _try_out(source, files, options, inventory)
    return found


def findings_tables(rows: Sequence[Row], options: Sequence[str] = ()) -> str:
    """Findings as the terminal shows them, a table for each path; of a server also the command that pulls all that it has.

    options: what selects its drives, and the warehouse, as they were given.
    """
    parts: list[str] = []
    for path, each in groupby(rows, itemgetter("path")):
        findings = list(each)
        shown = [row | {"said": "; ".join(filter(None, (row["said"], row["todo"])))} for row in findings]
        parts += [path, table(shown, {"state": "state", "check": "check", "found": "said"})]
        # a source that cannot be used is not pulled
        if all(row["state"] != MISSING for row in findings):
            firsts = [row["first_hour_utc"] for row in findings if row["first_hour_utc"] is not None]
            pulls = ["drivetail", "ingest", "prometheus", path, *options]
            parts += [f"Next: {shlex.join([*pulls, '--from', f'{first:%Y-%m-%dT%H}'])}" for first in firsts]
    return "\n".join(parts)


def inventory_of(warehouse: Warehouse) -> Inventory:
    """The last records that have landed; of two sources the one that was taken in last."""
    if not warehouse.raw.exists():
        return Inventory()
    folders = list_folders(warehouse.root)

    def rows(table: str, *columns: str) -> list[dict[str, Any]]:
        files = [pl.read_parquet(path) for path in table_files(folders, table)]
        rows = pl.concat([*files, pl.DataFrame(schema=dict.fromkeys(columns, pl.Null))], how="diagonal_relaxed")
        return rows.select(columns).to_dicts()

    drives = rows("drives", "drive_id", "raid_group_id", "is_group_guessed", "valid_to", "source", "kind")
    aliases = rows("drive_aliases", "alias", "drive_id", "valid_to")
    held = [row for row in drives if row["raid_group_id"] and not row["is_group_guessed"] and row["valid_to"] is None]
    return Inventory(
        {row["drive_id"]: row["raid_group_id"] for row in held},
        {row["alias"]: row["drive_id"] for row in aliases if row["valid_to"] is None and row["drive_id"]},
        {row["drive_id"]: row["raid_group_id"] for row in held if row["source"] == "mapping"},
        {row["drive_id"]: row["kind"] for row in drives if row["kind"]},
    )


def _try_out(source: str, paths: Sequence[str], options: Mapping[str, Any], inventory: Inventory) -> list[Finding]:
    with tempfile.TemporaryDirectory(prefix="drivetail-doctor-") as folder:
        warehouse = Path(folder)
        found: list[Finding] = []
        try:
            with Worker(LIMITS["deliveries"]) as worker:
                for part, part_options in calls_of(source, paths, options):
                    of_part = _files(worker.call(ingest, part, paths, warehouse, source_options=part_options))
                    found += of_part if part == source else [replace(one, check=f"{part} {one.check}") for one in of_part]
        except IngestError as error:
            return [*found, Finding("files", MISSING, str(error))]
        # drives and groups of the files themselves are added to those that have landed
        stored = inventory_of(Warehouse(warehouse))
        known = Inventory(
            {**inventory.groups, **stored.groups},
            {**inventory.serials, **stored.serials},
            {**inventory.mapped, **stored.mapped},
            {**inventory.kinds, **stored.kinds},
        )
        return [*found, *_drives(warehouse, known)]


def _rejection(record: Mapping[str, Any]) -> str:
    value = "" if record["value"] is None else f" {record['value']!r}"
    return f"{record['file']}, row {record['row']}: {record['column']}{value}: {record['reason']}"


def _files(summary: IngestSummary) -> list[Finding]:
    unreadable, count, rows = len(summary.unreadable), len(summary.files), summary.rows_delivered
    notes = dict.fromkeys(file.note for file in summary.files if file.note)
    files = Finding("files", OK, "; ".join([f"all {count} can be read", *notes]))
    if unreadable:
        file = summary.unreadable[0]
        said = f"{unreadable} of {count} cannot be read; first: {file.file}: {file.note}"
        files = Finding("files", MISSING if unreadable == count else WEAK, said)
    if not rows:
        return [files] if unreadable == count else [files, Finding("rows", WEAK, "none is in them")]
    if not summary.rows_rejected:
        return [files, Finding("rows", OK, f"all {rows} rows can be used")]
    first = _rejection(summary.rejected[0])
    if not summary.rows_accepted:
        return [files, Finding("rows", MISSING, f"none of {rows} can be used; first: {first}")]
    return [files, Finding("rows", WEAK, f"{summary.rows_rejected} of {rows} rows are rejected; first: {first}")]


def _drives(warehouse: Path, inventory: Inventory) -> list[Finding]:
    folders = list_folders(warehouse)
    files = [path for folder in folders for path in drive_hour_files(folder)]
    if not files:
        by_day = {kind for kind in KINDS for folder in folders if drive_hour_files(folder, record_kind=kind)}
        kinds = [words for kind, words in KINDS.items() if kind in by_day or table_files(folders, kind)]
        if not kinds:
            return [Finding("drive-hours", MISSING, "none, and nothing else that could be stored")]
        none = Finding("drive-hours", WEAK, f"none; it has only {', '.join(kinds)}", "ingest a source of latencies too")
        files = table_files(folders, "drives")
        # without drive-hours nothing is compared: peers may be in another file
        return [none, *(replace(one, state=WEAK if one.state == MISSING else one.state) for one in _placed(files, inventory))]
    return _placed(files, inventory)


def _placed(files: list[Path], inventory: Inventory) -> list[Finding]:
    """Whether the drives of some files of drive-hours, or of inventory, have serial numbers, RAID groups and peers."""
    if not files:
        return []
    hours = pl.scan_parquet(files, glob=False, missing_columns="insert")
    columns = hours.collect_schema().names()
    flags = {name: pl.col(name).fill_null(False) if name in columns else pl.lit(False) for name in ("is_alias", "is_group_guessed")}
    from_host = (pl.col("is_alias").is_not_null() if "is_alias" in columns else pl.lit(False)).alias("is_from_host")
    declared = (pl.col("declared_kind") if "declared_kind" in columns else pl.lit(None, pl.String())).alias("declared_kind")
    known_flags = (flag.alias(name) for name, flag in flags.items())
    drives = hours.select("drive_id", "raid_group_id", declared, from_host, *known_flags).unique().collect()
    # an array's report on its own drives stands; a mapping overrides a host's, and any source that knows overrides its guess
    row_groups = drives.select(pl.when(~pl.col("is_group_guessed")).then("raid_group_id")).to_series()
    groups_known = [
        inventory.group_of(drive, named=group) if is_from_host else group
        for drive, group, is_from_host in zip(drives["drive_id"], row_groups, drives["is_from_host"], strict=True)
    ]
    known = pl.Series(groups_known, dtype=pl.String)
    drives = drives.with_columns(
        pl.coalesce(known, "raid_group_id").alias("raid_group_id"),
        pl.col("is_group_guessed") & known.is_null(),
        pl.col("is_alias") & ~pl.col("drive_id").is_in([*inventory.serials]),
    )
    undeclared = drives.filter(pl.col("declared_kind").is_null())["drive_id"].unique()
    unknown = sum(not inventory.has_kind(drive) for drive in undeclared)
    unnamed = drives.filter("is_alias")["drive_id"].n_unique()
    total = drives["drive_id"].n_unique()
    todo = "ingest a source with serial numbers (smartctl, prometheus), or give a mapping (`drivetail map`)"
    serials = Finding("serials", WEAK, f"{unnamed} of {total} drives have no serial number; they are called HOST/DEVICE", todo)
    named = Finding("serials", OK, f"all {total} drives have a name of their own")
    placed = drives.drop_nulls("raid_group_id")
    if placed.is_empty():
        return [
            serials if unnamed else named,
            Finding("groups", WEAK, "it names no RAID group; each drive keeps the one that other sources name or guess"),
        ]
    groups = dict(placed.group_by("raid_group_id").agg(pl.col("drive_id").n_unique()).iter_rows())
    guessed = placed.filter("is_group_guessed")["drive_id"].n_unique()
    return [serials if unnamed else named, *group_findings(groups, guessed, LEAST_DRIVES), *kind_finding(unknown, total)]

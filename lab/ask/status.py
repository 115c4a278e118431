"""`drivetail lab status`: what has landed, refused files and why, missing runs and cells."""

from __future__ import annotations

from typing import Any

import duckdb

from drivetail.terminal import block, table
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from lab.generations import latest_generation
from lab.landing import list_experiments, refused_files
from lab.read import size
from report.words import counted_noun, percent

SHOWN_CELLS = 4

REFUSED = "select file, revision, reason, message from lab.ingested_files where experiment_id = ? and status = 'rejected' order by all"
REJECTED_LINES = """
select file, lines_rejected, first_rejected from lab.ingested_files
where experiment_id = ? and status = 'accepted' and lines_rejected > 0 order by all
"""
NOTES = """
select file, notes from lab.ingested_files where experiment_id = ? and status = 'accepted' and notes is not null order by all
"""
MISSING = """
select config_id, phase, "pass", benchmark, test, parameter, size_bytes, n, expected_runs, missing_runs
from lab.fct_missing_results where experiment_id = ? order by all
"""
POWER = """
select config_id, detectable_throughput_ratio, detectable_latency_ratio from lab.fct_sync_write_summary where experiment_id = ? order by all
"""
CELL_POWER = """
select config_id, benchmark, max(detectable_ratio) as detectable_ratio from lab.fct_phase_cells
where experiment_id = ? group by config_id, benchmark order by all
"""


def collect(warehouse: Warehouse, experiment: str | None) -> list[Row]:
    """State of each experiment, or of one. Raises: QueryError for one that has not landed."""
    landed = list_experiments(warehouse.root)
    if experiment is not None and experiment not in landed:
        known = f"there are {', '.join(landed)}" if landed else "none has landed: `drivetail lab ingest BUNDLE`"
        raise QueryError(f"experiment {experiment!r} has not landed; {known}")
    names = [experiment] if experiment else list(landed)
    if not warehouse.published.exists():
        return [_not_built(warehouse, name) for name in names]
    generation = latest_generation(warehouse)
    built = generation.experiments if generation else {}
    with publication_of(warehouse) as connection:
        return [_of(connection, warehouse, name, is_current=built.get(name) == landed[name]) for name in names]


def _not_built(warehouse: Warehouse, name: str) -> Row:
    """State before the first build: the files that were refused."""
    return {"experiment_id": name, "is_built": False, "refused": refused_files(warehouse.root, name)}


def _of(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, name: str, *, is_current: bool) -> Row:
    """is_current: whether the last build has seen all that has landed of it."""
    found = fetch(connection, "select * from lab.dim_experiments where experiment_id = ?", [name])
    if not found or not is_current:
        return _not_built(warehouse, name)
    return {
        **found[0],
        "is_built": True,
        "refused": fetch(connection, REFUSED, [name]),
        "rejected_lines": fetch(connection, REJECTED_LINES, [name]),
        "notes": fetch(connection, NOTES, [name]),
        "missing": fetch(connection, MISSING, [name]),
        "power": fetch(connection, POWER, [name]),
        "cell_power": fetch(connection, CELL_POWER, [name]),
    }


def troubles(found: list[Row]) -> list[str]:
    """A sentence for each thing that is missing."""
    wrong = []
    for each in found:
        name = each["experiment_id"]
        if not each["is_built"]:
            wrong.append(f"{name} is not built; run `drivetail lab build`")
        wrong += [f"{name}: {row['file']} was refused: {row['reason']}: {row['message']}" for row in each["refused"]]
        wrong += [] if not each["is_built"] else [f"{name}: {sentence}" for sentence in missing_in_words(each["missing"])]
    return wrong


def missing_in_words(rows: list[Row]) -> list[str]:
    """A sentence for cells of one configuration, phase and benchmark that lack the same runs."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["config_id"], row["phase"], row["benchmark"], row["missing_runs"]), []).append(row)
    said = []
    for (config, phase, benchmark, runs), found in cells.items():
        shown = ", ".join([*(_cell(row) for row in found[:SHOWN_CELLS]), *(["..."] if len(found) > SHOWN_CELLS else [])])
        of = f"{_runs_in_words(runs)} of {found[0]['expected_runs']} missing in {counted_noun(len(found), 'cell')}"
        said.append(f"{' '.join(filter(None, (config, phase, benchmark)))}: {of} ({shown})")
    return said


def _runs_in_words(runs: str) -> str:
    count = runs.count(",") + 1
    return f"run {runs}" if count == 1 else f"runs {runs}" if count <= SHOWN_CELLS else f"{count} runs"


def _cell(row: Row) -> str:
    return f"{row['test']} {size(row['parameter'])}" if row["parameter"] >= 1024 else f"{row['test']} {row['parameter']}"


def in_words(found: list[Row]) -> str:
    """The same for the terminal."""
    return "\n".join(_experiment(each) for each in found) or "No experiment has landed; run `drivetail lab ingest BUNDLE`"


def _experiment(each: Row) -> str:
    refused = table(each["refused"], {"refused file": "file", "reason": "reason", "why": "message"}) if each["refused"] else ""
    if not each["is_built"]:
        return block(each["experiment_id"], "landed, not built yet; run `drivetail lab build`", refused)
    parts: list[tuple[str, Any]] = [
        ("kind", each["kind"]),
        ("title", each["title"]),
        ("revision", each["revision"]),
        ("files", f"{each['files_accepted']} taken, {each['files_rejected']} refused"),
    ]
    for row in each["power"]:
        shares = [row["detectable_throughput_ratio"], row["detectable_latency_ratio"]]
        if None not in shares:
            said = f"{row['config_id']}: throughput from {percent(shares[0])}, latency from {percent(shares[1])} of the mean, at any buffer"
            parts.append(("can show", said))
    for row in each["cell_power"]:
        if row["detectable_ratio"] is not None:
            said = f"{row['config_id']} {row['benchmark']}: from {percent(row['detectable_ratio'])} of the mean before, in any cell"
            parts.append(("can show", said))
    missing = missing_in_words(each["missing"])
    parts.append(("missing", f"{len(missing)}, see below" if missing else "nothing"))
    lines = [f"{row['file']}: {row['notes']}" for row in each["notes"]]
    lines += [
        f"{row['file']}: {counted_noun(row['lines_rejected'], 'line')} did not parse; first: {row['first_rejected']!r}"
        for row in each["rejected_lines"]
    ]
    return block(each["experiment_id"], parts, refused, *lines, *missing)

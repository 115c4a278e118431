"""`drivetail lab status`: what has landed, refused files and why, missing runs and cells."""

from __future__ import annotations

from typing import Any

import duckdb

from drivetail.console import block, facts, table
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from engine.words import counted_noun
from lab.landing import list_experiments

REFUSED = "select file, revision, reason, message from lab.ingested_files where experiment_id = ? and status = 'rejected' order by all"
REJECTED_LINES = """
select file, lines_rejected, first_rejected from lab.ingested_files
where experiment_id = ? and status = 'accepted' and lines_rejected > 0 order by all
"""


def collect(warehouse: Warehouse, experiment: str | None) -> list[Row]:
    """What there is of each experiment, or of one. Raises: QueryError for one that has not landed."""
    landed = list_experiments(warehouse.root)
    if experiment is not None and experiment not in landed:
        known = f"there are {', '.join(landed)}" if landed else "none has landed: `drivetail lab ingest BUNDLE`"
        raise QueryError(f"experiment {experiment!r} has not landed; {known}")
    names = [experiment] if experiment else list(landed)
    if not warehouse.published.exists():
        return [{"experiment_id": name, "is_built": False} for name in names]
    with publication_of(warehouse) as connection:
        return [_of(connection, name) for name in names]


def _of(connection: duckdb.DuckDBPyConnection, name: str) -> Row:
    found = fetch(connection, "select * from lab.dim_experiments where experiment_id = ?", [name])
    if not found:
        return {"experiment_id": name, "is_built": False}
    return {
        **found[0],
        "is_built": True,
        "refused": fetch(connection, REFUSED, [name]),
        "rejected_lines": fetch(connection, REJECTED_LINES, [name]),
    }


def troubles(found: list[Row]) -> list[str]:
    """A sentence for each thing that is missing."""
    wrong = []
    for each in found:
        name = each["experiment_id"]
        if not each["is_built"]:
            wrong.append(f"{name} is not built; run `drivetail lab build`")
            continue
        wrong += [f"{name}: {row['file']} was refused: {row['reason']}: {row['message']}" for row in each["refused"]]
    return wrong


def in_words(found: list[Row]) -> str:
    """The same for the terminal."""
    return "\n".join(_experiment(each) for each in found) or "No experiment has landed; run `drivetail lab ingest BUNDLE`"


def _experiment(each: Row) -> str:
    if not each["is_built"]:
        return block(each["experiment_id"], "landed, not built yet; run `drivetail lab build`")
    parts: list[tuple[str, Any]] = [
        ("kind", each["kind"]),
        ("title", each["title"]),
        ("revision", each["revision"]),
        ("files", f"{each['files_accepted']} taken, {each['files_rejected']} refused"),
    ]
    refused = table(each["refused"], {"refused file": "file", "reason": "reason", "why": "message"}) if each["refused"] else ""
    lines = [
        f"{row['file']}: {counted_noun(row['lines_rejected'], 'line')} did not parse; first: {row['first_rejected']!r}"
        for row in each["rejected_lines"]
    ]
    return block(each["experiment_id"], facts(parts), refused, *lines)

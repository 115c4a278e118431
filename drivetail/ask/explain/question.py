"""What is asked: the publication it is asked of, the drive, the hour."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import duckdb

from drivetail.ask.explain.text import when
from engine.read import QueryError, Row, fetch

LEAST_LIKENESS = 0.8
"""How like an unknown drive id a known one must be to be offered, from 0 to 1."""


def known_drive(connection: duckdb.DuckDBPyConnection, drive: str) -> Row:
    """The drive's row of dim_drives. Raises: QueryError with the closest ids there are."""
    found = fetch(connection, "select * from marts.dim_drives where drive_id = ?", [drive])
    if found:
        return found[0]
    likeness = "jaro_winkler_similarity(lower(drive_id), lower($drive))"
    near = f"select drive_id from marts.dim_drives where {likeness} > {LEAST_LIKENESS} order by {likeness} desc, drive_id limit 5"
    close = [row["drive_id"] for row in fetch(connection, near, {"drive": drive})]
    hint = f"did you mean {', '.join(close)}?" if close else '`drivetail sql "select drive_id from marts.dim_drives"` lists them'
    raise QueryError(f"{drive}: no record of the publication names this drive; {hint}")


def parse_hour(text: str) -> tuple[datetime, list[str]]:
    """An hour as people write it -> its start (UTC without zone), and what was assumed.

    Raises: click.BadParameter.
    """
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(f'{text!r} is not an hour; write it as "2026-01-05 07:00" (UTC)', param_hint="HOUR") from error
    notes = []
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    if len(text.strip()) <= len("2026-01-05"):
        notes.append(f"{text} names a day; this is its first hour")
    start = at.replace(minute=0, second=0, microsecond=0)
    if start != at:
        notes.append(f"{text} is in the hour that starts at {when(start)}")
    return start, notes

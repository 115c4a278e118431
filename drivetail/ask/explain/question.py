"""What is asked: the publication it is asked of, the drive, the hour."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime

import click
import duckdb

from drivetail.ask.explain.text import when
from engine.read import QueryError, Row, fetch


def known_drive(connection: duckdb.DuckDBPyConnection, drive: str) -> Row:
    """The drive's row of dim_drives. Raises: QueryError with the closest ids there are."""
    found = fetch(connection, "select * from marts.dim_drives where drive_id = ?", [drive])
    if found:
        return found[0]
    # the engine narrows half a million ids down to those worth comparing letter by letter
    likeness = "jaro_winkler_similarity(lower(drive_id), lower(?))"
    near = connection.execute(f"select drive_id from marts.dim_drives order by {likeness} desc, drive_id limit 200", [drive]).fetchall()
    by_lower = {drive_id.lower(): drive_id for (drive_id,) in near}
    close = [by_lower[text] for text in difflib.get_close_matches(drive.lower(), list(by_lower), n=5)]
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

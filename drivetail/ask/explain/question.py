"""A question: the publication, the drive, the hour."""

from __future__ import annotations

from datetime import datetime

import click
import duckdb

from drivetail.ask.explain.text import when
from engine.read import QueryError, Row, fetch
from ingest.contract.values import utc
from report.words import place

LEAST_LIKENESS = 0.8
"""How like an unknown drive id a known one must be to be offered, from 0 to 1."""


LISTED = '`drivetail sql "select drive_id, host, device, slot from drives"` lists them'


def known_drive(connection: duckdb.DuckDBPyConnection, drive: str, otherwise: str = LISTED) -> Row:
    """The drive's row of dim_drives, by its serial number or by where it is: `web2/sdd`, `web2/3` for a slot, with a space too.

    Raises: QueryError with the closest ids there are, or `otherwise`.
    """
    found = fetch(connection, "select * from marts.dim_drives where drive_id = ?", [drive])
    if found:
        return found[0]
    host, _, name = drive.replace(" slot ", "/").replace(" ", "/").partition("/")
    placed = fetch(
        connection,
        """
        select * from marts.dim_drives
        where host = $host and (list_contains(string_split(device, ', '), $name) or (slot = $name and device is distinct from $name))
        order by last_hour_utc desc nulls last, drive_id
        """,
        {"host": host, "name": name},
    )
    # several drives in turn: take the last
    if placed and (len(placed) == 1 or placed[0]["last_hour_utc"] != placed[1]["last_hour_utc"]):
        return placed[0]
    if placed:
        raise QueryError(f"{drive}: names {', '.join(row['drive_id'] for row in placed)}; give the serial number")
    likeness = "jaro_winkler_similarity(lower(drive_id), lower($drive))"
    near = f"select drive_id from marts.dim_drives where {likeness} > {LEAST_LIKENESS} order by {likeness} desc, drive_id limit 5"
    close = [row["drive_id"] for row in fetch(connection, near, {"drive": drive})]
    there = "select drive_id, device, slot from marts.dim_drives where host = $host order by device, slot, drive_id limit 5"
    close = close or [
        place({**row, "host": host}).replace(" slot ", "/").replace(" ", "/") for row in fetch(connection, there, {"host": host})
    ]
    hint = f"did you mean {', '.join(close)}?" if close else otherwise
    raise QueryError(f"{drive}: no record of the publication names this drive; {hint}")


def parse_hour(text: str) -> tuple[datetime, list[str]]:
    """An hour as people write it -> its start (UTC without zone), and what was assumed.

    Raises: click.BadParameter.
    """
    try:
        at = utc(text.strip())
    except ValueError as error:
        raise click.BadParameter(f'{text!r} is not an hour; write it as "2026-01-05 07:00" (UTC)', param_hint="HOUR") from error
    notes = []
    if len(text.strip()) <= len("2026-01-05"):
        notes.append(f"{text} names a day; this is its first hour")
    start = at.replace(minute=0, second=0, microsecond=0)
    if start != at:
        notes.append(f"{text} is in the hour that starts at {when(start)}")
    return start, notes

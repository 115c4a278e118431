"""Write the weekly fleet report."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import duckdb

from drivetail.queries import QueryError, first_line, open_published
from drivetail.warehouse import Warehouse
from report.due import report_file
from report.html import replace_file
from report.numbers import week_name
from report.page import render_page
from report.queries import Row, fetch_publication, fetch_week, fetch_weeks


def write_report(warehouse: Warehouse, *, week: str | None = None, out: Path | None = None) -> Path:
    """Write the report of one ISO week (UTC) from the current publication.

    week: `2026-W03`; by default the last complete one that has a valid RAID-hour, or, in a fleet that has none yet, the last one.
        A week is complete once the fleet's data reach its last hour.
    out: HTML file; by default WAREHOUSE/reports/WEEK.html. It is replaced in one step.
    Returns: the file.
    Raises: QueryError without a publication, or when the week is none or has no valid RAID-hour; it names those that have.
    """
    with open_published(warehouse) as connection:
        try:
            chosen = choose_week(fetch_weeks(connection), week, fetch_publication(connection)["pruned_before_utc"])
            facts = fetch_week(connection, chosen)
        except duckdb.Error as error:
            raise QueryError(
                f"{warehouse.published}: {first_line(error)}; it was published by other models: run `drivetail build`"
            ) from error
    path = out or report_file(warehouse, week_name(chosen["week_utc"]))
    return replace_file(path, render_page(facts))


def choose_week(weeks: list[Row], wanted: str | None, pruned_before: datetime | None) -> Row:
    """The week asked for, else the last complete one, else the last one. pruned_before: the horizon of `drivetail prune` (UTC)."""
    if not weeks:
        raise QueryError("no week has a valid RAID-hour yet (3 drives of a RAID group with I/O in the same hour); see `drivetail status`")
    if wanted is None:
        return next((week for week in reversed(weeks) if week["is_complete"]), weeks[-1])
    monday = parse_week(wanted)
    for week in weeks:
        if week["week_utc"] == monday:
            return week
    names = [week_name(week["week_utc"]) for week in weeks]
    shown = ", ".join(names if len(names) <= 12 else [*names[:3], "...", *names[-8:]])
    problem = f"{wanted} has no valid RAID-hour" if monday else f"{wanted!r} is no ISO week (like {names[-1]})"
    if monday and pruned_before and monday < pruned_before:
        problem = f"{wanted} cannot be drawn: it begins before {pruned_before:%Y-%m-%d}, and the drive-hours before that were pruned"
    raise QueryError(f"{problem}; weeks there are: {shown}")


def parse_week(text: str) -> datetime | None:
    """Monday 00:00 of `2026-W03`; None when it is no ISO week."""
    year, separator, number = text.strip().upper().partition("-W")
    if not separator or len(year) != 4 or not (year + number).isascii() or not (year + number).isdigit():
        return None
    try:
        monday = date.fromisocalendar(int(year), int(number), 1)
    except ValueError:
        return None
    return datetime(monday.year, monday.month, monday.day)

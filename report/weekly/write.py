"""Write the weekly fleet report: one page, with the same numbers as JSON next to it, or the page printed as PDF."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

import duckdb

from engine.publish import Publication, kept_publications
from engine.read import QueryError, Row, is_each_day_due, publication_of
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file
from report.page.numbers import week_name
from report.page.pdf import print_page
from report.weekly.as_known import built_as_known_at, landed_by
from report.weekly.due import report_file
from report.weekly.page import render_page
from report.weekly.queries import WeekFacts, fetch_publication, fetch_week, fetch_weeks


def write_report(
    warehouse: Warehouse,
    *,
    week: str | None = None,
    out: Path | None = None,
    output: str = "html",
    publication: str | None = None,
    as_known_at: datetime | None = None,
) -> Path:
    """Write the report of one ISO week (UTC) from the current publication, or as known earlier.

    week: `2026-W03`; by default the last complete one that has a valid RAID-hour, or, in a fleet that has none yet, the last one.
        A week is complete once the fleet's data reach its last hour.
    out: file; by default WAREHOUSE/reports/WEEK.FORMAT, as known earlier WEEK.known-TIME.FORMAT. It is replaced in one step.
    output: `html`, with the same numbers as JSON beside it; `json` alone; or `pdf`, the page printed by Chromium.
    publication: an earlier publication that is still kept, by its id.
    as_known_at: only what had landed and been decided by that instant (UTC): a publication from before it that is kept and
        holds all of that, else a build of its own.
    Returns: the file.
    Raises: QueryError without a publication, or when the week is none or has no valid RAID-hour; it names those that have.
    """
    if out is not None and not os.access(next(folder for folder in out.absolute().parents if folder.exists()), os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(out))
    with _opened(warehouse, publication, as_known_at) as (connection, known_at):
        chosen = choose_week(fetch_weeks(connection), week, fetch_publication(connection)["pruned_before_utc"])
        facts = fetch_week(connection, chosen, known_at)
    if is_each_day_due(warehouse, facts.publication["publication_id"]):
        facts.publication["last_delivery_seq"] = 0  # due again: what looks at weeks lacks the last day
    page = report_file(warehouse, week_name(chosen["week_utc"]))
    if known_at is not None:
        page = page.with_name(f"{page.stem}.known-{known_at:%Y%m%dT%H%M}.html")
    path = out or page.with_suffix(f".{output}")
    if output == "pdf":
        return replace_file(path, print_page(render_page(facts)))
    if output == "json":
        return replace_file(path, as_document(facts))
    replace_file(path.with_suffix(".json"), as_document(facts))
    return replace_file(path, render_page(facts))


@contextmanager
def _opened(
    warehouse: Warehouse, publication: str | None, as_known_at: datetime | None
) -> Iterator[tuple[duckdb.DuckDBPyConnection, datetime | None]]:
    """The requested publication, and until when decisions count: None for the current one."""
    if publication is None and as_known_at is None:
        with publication_of(warehouse) as connection:
            yield connection, None
        return
    kept = kept_publications(warehouse)
    if publication is not None:
        named = next((each for each in kept if each.publication_id == publication), None)
        if named is None:
            names = ", ".join(each.publication_id for each in kept) or "none"
            raise QueryError(
                f"publication {publication} is not kept; kept are: {names}. Each is for an hour after the next one; "
                "`--as-known-at TIME` builds again what was known then"
            )
    else:
        named = _holding_what_had_landed(warehouse, kept, as_known_at or datetime.max)
    if named is not None:
        with publication_of(warehouse, named.path) as connection:
            yield connection, as_known_at or named.published_at
        return
    with built_as_known_at(warehouse, as_known_at or datetime.max) as then, publication_of(then) as connection:
        yield connection, as_known_at


def _holding_what_had_landed(warehouse: Warehouse, kept: list[Publication], instant: datetime) -> Publication | None:
    """The last publication kept from before an instant, if it holds all that had landed by then."""
    earlier = [each for each in kept if each.published_at <= instant]
    if not earlier:
        return None
    with publication_of(warehouse, earlier[-1].path) as connection:
        ((held,),) = connection.execute("select max(delivery_seq) from marts.ingested_files").fetchall()
    landed = max((delivery.seq for delivery in landed_by(warehouse, instant)), default=None)
    is_whole = held == landed and not is_each_day_due(warehouse, earlier[-1].publication_id)
    return earlier[-1] if is_whole else None


def as_document(facts: WeekFacts) -> str:
    """The numbers of the page as JSON: by name the SQL that gives them and its rows; instants are ISO texts, UTC."""
    document = {
        "week": week_name(facts.week["week_utc"]),
        "is_complete": facts.week["is_complete"],
        "publication_id": facts.publication["publication_id"],
        "known_at": facts.known_at,
        "numbers": {name: {"sql": facts.questions[name], "rows": rows} for name, rows in facts.answers.items()},
    }
    return (
        json.dumps(
            document, indent=1, ensure_ascii=False, default=lambda value: value.isoformat() if isinstance(value, date) else str(value)
        )
        + "\n"
    )


def choose_week(weeks: list[Row], wanted: str | None, pruned_before: datetime | None) -> Row:
    """The requested week, else the last complete one, else the last one. pruned_before: the horizon of `drivetail prune` (UTC)."""
    if not weeks:
        raise QueryError(
            "no week has a valid RAID-hour yet: it needs at least 3 drives of a group with I/O in one hour; see `drivetail status`"
        )
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

"""Which weekly reports are due: complete weeks without a report, or with one that lacks deliveries of that week."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from engine.read import is_each_day_due, publication_of
from engine.warehouse import Warehouse
from ingest.raw.store import list_folders
from report.page.numbers import week_name
from report.weekly.queries import fetch_publication, fetch_weeks

HEAD_BYTES = 1000
"""The mark of a report is in its first lines."""

_MARK = re.compile(r'<meta name="drivetail-last-delivery" content="(\d+)">')


def due_weeks(warehouse: Warehouse) -> list[str]:
    """The weeks to report on, oldest first, such as `2026-W03`; found from reports and deliveries alone, so that a killed run loses none.

    A delivery of drive-hours that comes after the report of its week makes that report due again; inventory and events alone do not.
    None where relations of a day that is over are still to be made. Raises: QueryError without a publication.
    """
    with publication_of(warehouse) as connection:
        publication = fetch_publication(connection)
        if is_each_day_due(warehouse, publication["publication_id"]):
            return []
        published = publication["last_delivery_seq"]
        complete = [week["week_utc"] for week in fetch_weeks(connection) if week["is_complete"]]
    folders = list_folders(warehouse.root)
    due = []
    for monday in complete:
        name = week_name(monday)
        shown = _last_delivery(report_file(warehouse, name))
        # a RAID-hour is computed with the one before
        first, last = monday - timedelta(hours=1), monday + timedelta(days=7, hours=-1)
        if shown is None or any(
            shown < each.seq <= (published or 0) and each.overlaps(first, last)
            for folder in folders
            if folder.last_seq > shown and folder.overlaps(first, last)
            for each in folder.deliveries()
        ):
            due.append(name)
    return due


def report_file(warehouse: Warehouse, week: str) -> Path:
    """Default path of a week's report."""
    return warehouse.root / "reports" / f"{week}.html"


def _last_delivery(path: Path) -> int | None:
    """The newest delivery that a report shows; None without a report."""
    try:
        with path.open(encoding="utf-8") as handle:
            found = _MARK.search(handle.read(HEAD_BYTES))
    except FileNotFoundError:
        return None
    return int(found[1]) if found else None

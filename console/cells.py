"""The cells of a table: links, places and badges. All text is escaped."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import urlencode

from markupsafe import Markup, escape

from engine.read import Row
from report.page import numbers
from report.page.cells import text
from report.words import place

PAGES = {
    "drive_id": "/drive", "successor_drive_id": "/drive", "slowest_drive_id": "/drive", "raid_group_id": "/group",
    "current_raid_group_id": "/group", "inventory_raid_group_id": "/group", "host": "/host", "enclosure": "/enclosure", "model": "/model",
    "alert_id": "/alert", "part_of": "/alert", "experiment_id": "/experiment", "relation": "/table",
}  # fmt: skip
"""Columns that name something with a page of its own."""

SUBJECTS = {"drive": "/drive", "host": "/host", "enclosure": "/enclosure", "raid_group": "/group"}
"""The page of an alert's subject, by subject_type."""

HIDDEN = {"action_rank", "incident_rank", "candidate_rank", "decision_seq", "ordinal_position"}
"""The order of a table: no reader needs to see it."""


def by_number(name: str) -> list[str]:
    """A key that puts slot 2 before slot 10."""
    return [part.zfill(9) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def address(page: str, /, **parameters: object) -> str:
    """The address of a page of the console."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{page}?{urlencode(given)}" if given else page


def cell(column: str, row: Row, places: dict[str, Row]) -> Markup:
    """A cell of a table: a link where the column names something, the place before the serial number of a drive."""
    value = row[column]
    if value is None or value == "":
        return Markup(numbers.NONE)
    # the name of an incident repeats what stands beside it
    shown = "look" if column in ("alert_id", "part_of") else text(column, value)
    page, names = PAGES.get(column, ""), {"name" if column == "relation" else "id": value}
    what = row.get("subject_type")
    if column == "incident_id" and isinstance(value, str) and value.partition(" ")[0] in SUBJECTS:
        what, _, name = value.partition(" ")
        words = f"{what.replace('raid_group', 'RAID group')} {subject(what, name, places)}"
        return Markup('<a class="id" href="{}">{}</a>').format(address(SUBJECTS[what], id=name), words)
    if column == "subject_id" and isinstance(value, str) and isinstance(what, str):
        page, shown = SUBJECTS.get(what, ""), subject(what, value, places)
    elif column == "hour_utc" and isinstance(value, datetime) and isinstance(row.get("drive_id"), str):
        page, names = "/hour", {"id": row["drive_id"], "at": f"{value:%Y-%m-%d %H:%M}"}
    elif column == "enclosure" and (host := row.get("host") or places.get(str(row.get("drive_id")), {}).get("host")):
        names = {"id": f"{host}/{value}"}
    if not page or (column in PAGES and not isinstance(value, str)):
        is_badge = column in ("action", "verdict", "decision", "state")
        return badge(shown) if is_badge else escape(shown)
    if page == "/group":
        shown = places.get(value, {}).get("name", shown)
    known = places.get(value, {}) if page == "/drive" else {}
    is_to_do = "action" in row
    under = Markup("")
    where, until = place(known), ""
    if where and known["left_at"]:
        where, _, until = where.rpartition(" until ")
    if where:
        parts = (until and f"until {until}", shown, known["model"], known["enclosure"] if column == "drive_id" and is_to_do else None)
        said = ", ".join(part for part in parts if part)
        under = Markup('<span class="under">{}{}</span>').format(said, badge(known["action"]) if known["action"] and not is_to_do else "")
    return Markup('<a class="id" href="{}">{}</a>{}').format(address(page, **names), where or shown, under)


def subject(what: str, id: str, places: dict[str, Row]) -> str:
    """Name that people have for the subject of an alert: an enclosure that is named after its host without the host."""
    host, _, enclosure = id.rpartition("/")
    return enclosure if what == "enclosure" and enclosure.startswith(host) else str(places.get(id, {}).get("name", id))


def badge(word: str) -> Markup:
    """A word that is seen from afar."""
    return Markup(' <span class="badge {}">{}</span>').format(word.replace(" ", "-"), word)

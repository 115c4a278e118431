"""How a value of a mart is shown: by the name of its column, which carries its unit. All text is escaped."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from engine.read import Row
from ingest.reading.text import in_order
from report.page import numbers
from report.words import place

PAGES = {
    "drive_id": "/drive", "successor_drive_id": "/drive", "slowest_drive_id": "/drive", "raid_group_id": "/group",
    "current_raid_group_id": "/group", "inventory_raid_group_id": "/group", "host": "/host", "enclosure": "/enclosure", "model": "/model",
    "alert_id": "/alert", "part_of": "/alert", "experiment_id": "/experiment", "relation": "/table",
}  # fmt: skip
"""Columns that name something with a page of its own."""

SUBJECTS = {"drive": "/drive", "host": "/host", "enclosure": "/enclosure", "raid_group": "/group"}
"""The page of an alert's subject, by subject_type."""

HEADINGS = {
    "drive_id": "drive", "raid_group_id": "RAID group", "current_raid_group_id": "RAID group", "io_count": "I/Os", "tail_1": "slowest",
    "tail_2": "second", "tail_3": "third", "rio_degradation": "throughput drop", "rate_imbalance": "RI: I/Os, of peers'",
    "size_imbalance": "ZI: size, of peers'", "slowdown": "S", "needs_person": "for a person", "subject_id": "subject",
    "own_tail_hours_28d": "cost in 28 days, tail hours", "cost_tail_hours": "a swap costs, tail hours", "good_ratio_low": "from",
    "good_ratio_high": "to", "chance": "by chance?",
    "tail_hours_caused_28d": "caused, tail hours", "own_tail_hours_after": "cost in 28 days after, tail hours",
    "slow_days_14d": "slow days of 14", "successor_drive_id": "replaced by", "decided_by": "by", "alert_id": "incident",
    "incident_id": "slow with others of", "raid_level": "RAID level", "slow_hours_28d": "slow hours", "verdict_reason": "why",
    "together_hours_28d": "with others, hours", "median_latency_us": "peers' median (µs)", "io_ratio": "I/Os, after to before",
    "rio_lost": "I/Os lost", "raid_hours": "RAID-hours", "why_undecided": "why",
}  # fmt: skip
UNITS = (("_utc", " (UTC)"), ("_us", " (µs)"), ("_bytes", ""), ("_28d", " in 28 days"), ("_at", " at (UTC)"), ("_ratio", ""))
TIMES = {
    "slowdown", "factor", "budget_used", "tail_1", "tail_2", "tail_3", "rate_imbalance", "size_imbalance", "threshold", "group_slowdown",
    "max_tail", "rio_degradation",
}  # fmt: skip
"""Numbers that say how many times as much."""

ENDS = ("", "_low", "_high", "_before", "_after", "_change", "_change_low", "_change_high")
SHARES = ("coverage", *(f"_{what}{end}" for what in ("ratio", "share", "rate") for end in ENDS))

WORDS = {"cause", "reason", "event_type", "exclusion_reason", "subject_type", "transition", "role", "evidence", "rule"}
"""Texts of the models' own, which are read as words."""

WHY = {"why", "why_undecided", "evidence", "note", "verdict_reason", "lists_reason", "detail", "comment", "message"}

HIDDEN = {"action_rank", "incident_rank", "candidate_rank", "decision_seq", "ordinal_position"}
"""The order of a table: no reader needs to see it."""


def heading(column: str) -> str:
    """A column as people read it, with its unit."""
    if column in HEADINGS:
        return HEADINGS[column]
    for suffix, unit in UNITS:
        if column.endswith(suffix):
            return column.removesuffix(suffix).replace("_", " ") + unit
    return column.removeprefix("is_").replace("_", " ")


def text(column: str, value: Any) -> str:
    """A value as text."""
    if value is None:
        return numbers.NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return numbers.instant(value)
    if isinstance(value, date):
        return numbers.day(value)
    if isinstance(value, int):
        return numbers.capacity(value) if column == "capacity_bytes" else numbers.count(value)
    if isinstance(value, float) and math.isfinite(value):
        if column in TIMES or column.endswith("slowdown"):
            return numbers.ratio(value)
        if column.endswith(SHARES):
            return numbers.percent(value) if value <= 1 else f"{value:,.0%}"
        return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}" if abs(value) < 10 else f"{value:,.1f}"
    return str(in_order(str(value).replace("_", " ") if column in WORDS else str(value)))


def by_number(name: str) -> list[str]:
    """A key that puts slot 2 before slot 10."""
    return [part.zfill(9) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def address(page: str, **parameters: object) -> str:
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


def shape(column: str, values: list[Any]) -> str:
    """The class of a column: n numbers, t times, why sentences."""
    if any(is_number(value) for value in values):
        return "n"
    return "t" if any(isinstance(value, date) for value in values) else "why" if column in WHY else ""


def is_number(value: Any) -> bool:
    """Whether a value goes to the right of its column."""
    return isinstance(value, int | float) and not isinstance(value, bool)

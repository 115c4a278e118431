"""How a value of a mart is shown, in the report and the console: by the name of its column, which carries its unit."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

from ingest.reading.text import in_order
from report.page import numbers

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
    "max_tail", "rio_degradation", "mean_tail_1", "mean_tail_1_without",
}  # fmt: skip
"""Numbers that say how many times as much."""

ENDS = ("", "_low", "_high", "_before", "_after", "_change", "_change_low", "_change_high")
SHARES = ("coverage", *(f"_{what}{end}" for what in ("ratio", "share", "rate") for end in ENDS))

DAYS = ("week_utc", "month_utc", "boundary_utc")
"""Instants that begin a day."""

WORDS = {"cause", "reason", "event_type", "exclusion_reason", "subject_type", "transition", "role", "evidence", "rule"}
"""Texts of the models' own, which are read as words."""

WHY = {"why", "why_undecided", "evidence", "note", "verdict_reason", "lists_reason", "detail", "comment", "message"}


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
        return numbers.day(value) if column.endswith(DAYS) else numbers.instant(value)
    if isinstance(value, date):
        return numbers.day(value)
    if isinstance(value, int):
        return numbers.capacity(value) if column == "capacity_bytes" else numbers.count(value)
    if isinstance(value, float) and math.isfinite(value):
        if column == "threshold":
            return numbers.times(value)
        if column in TIMES or column.endswith("slowdown"):
            return numbers.ratio(value)
        if column.endswith(SHARES):
            return numbers.percent(value) if value <= 1 else f"{value:,.0%}"
        if "tail_hours" in column:
            return numbers.tenths(value)
        return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}" if abs(value) < 10 else f"{value:,.1f}"
    return str(in_order(str(value).replace("_", " ") if column in WORDS else str(value)))


def shape(column: str, values: list[Any]) -> str:
    """The class of a column: n numbers, t times, why sentences."""
    if any(is_number(value) for value in values):
        return "n"
    return "t" if any(isinstance(value, date) for value in values) else "why" if column in WHY else ""


def is_number(value: Any) -> bool:
    """Whether a value goes to the right of its column."""
    return isinstance(value, int | float) and not isinstance(value, bool)

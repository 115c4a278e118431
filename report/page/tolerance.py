"""Gain of reading around slow drives, in words."""

from __future__ import annotations

from collections.abc import Sequence

from engine.read import Row
from report.page.numbers import count, noun, percent, plural, times


def tolerance_words(rows: Sequence[Row]) -> list[str]:
    """A sentence for each kind with a tail hour: rows of fct_weekly_tolerance or study_tolerance."""
    return [
        f"Adaptive reads around slow drives would have ended {count(row['tail_hours_avoided'])} of "
        f"{noun(row['tail_hours'], 'tail hour', 'tail hours')} of {plural(row['kind'])} (95% interval "
        f"{count(round(row['tail_hours_avoided_low']))} to {count(round(row['tail_hours_avoided_high']))}), at "
        f"{percent(row['extra_read_ratio'])} more reads; reactive reads would have shortened "
        f"{count(row['tail_hours_shortened'])} of them to {times(row['shortened_to'])}."
        for row in rows
        if row["tail_hours"] and row["tail_hours_avoided_low"] is not None
    ]

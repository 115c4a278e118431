"""How an explanation writes numbers and instants: rounded for people; what was delivered, in full."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from datetime import datetime

from drivetail.console import Columns
from engine.read import Row

DIGITS = 6
"""Significant digits of a computed number; `--format json` has all."""


def num(value: float | None) -> str:
    """A computed number: whole ones in full, others with six significant digits."""
    if value is None or value == 0 or not math.isfinite(value) or value == int(value):
        return exact(value)
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{value:.0f}"


def exact(value: float | None) -> str:
    """A number in full: the shortest text that reads back as the same double."""
    return "-" if value is None else repr(value).removesuffix(".0")


def when(instant: datetime | None) -> str:
    """An instant (UTC); seconds only where it has any."""
    if instant is None:
        return "open"
    return instant.isoformat(" ", "minutes" if instant.replace(second=0, microsecond=0) == instant else "seconds")


def median_text(values: Sequence[float]) -> str:
    """How the median of some values comes about: `the 2nd of 3 = 10`, `(9 + 11) / 2 = 10`."""
    ordered = sorted(values)
    half, is_odd = divmod(len(ordered), 2)
    if is_odd:
        return f"the middle one of {len(ordered)} = {num(ordered[half])}"
    return f"the middle two of {len(ordered)}: ({num(ordered[half - 1])} + {num(ordered[half])}) / 2 = {num(statistics.median(ordered))}"


def right_aligned(rows: list[Row], headings: dict[str, str]) -> Columns:
    """Columns of numbers, put to the right: changes the rows, returns heading -> key."""
    columns: Columns = {}
    for heading, key in headings.items():
        written = [value if isinstance(value, str) else "" if value is None else num(value) for value in (row[key] for row in rows)]
        width = max([len(heading), *map(len, written)])
        for row, text in zip(rows, written, strict=True):
            row[key] = text.rjust(width)
        columns[heading.rjust(width)] = key
    return columns

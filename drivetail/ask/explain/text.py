"""How an explanation writes numbers and instants: rounded for people; what was delivered, in full."""

from __future__ import annotations

import math
from datetime import datetime

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

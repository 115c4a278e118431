"""Numbers, times and what is not there yet, as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

NO_BACKTEST = "No verdict is 28 days old yet"


def human(number: int) -> str:
    """An integer with thousands separators."""
    return f"{number:,}"


def percent(ratio: float) -> str:
    """A ratio as a percentage of three digits: `7.23%`."""
    return f"{100 * ratio:.3g}%"


def counted_noun(count: int, noun: str, plural: str | None = None) -> str:
    """How many of what: `1 file`, `1,200 files`."""
    return f"{human(count)} {noun if count == 1 else plural or noun + 's'}"


def milliseconds(latency_us: float) -> str:
    """A latency of three digits: `21.3 ms`, `0.0821 ms`."""
    return f"{latency_us / 1000:.3g} ms" if latency_us < 1e6 else f"{latency_us / 1000:,.0f} ms"


def duration(hours: float) -> str:
    """Hours as people say them: `25 min`, `3 h`, `2 d 4 h`."""
    minutes = round(hours * 60)
    if abs(minutes) < 60:
        return f"{minutes} min"
    whole = round(hours)
    if abs(whole) < 48:
        return f"{whole} h"
    days, rest = divmod(abs(whole), 24)
    return ("-" if whole < 0 else "") + f"{days} d" + (f" {rest} h" if rest else "")


def place(row: Mapping[str, Any]) -> str:
    """Where a drive is, as somebody who walks there says it: `web2 sdd`, `web2 slot 3`; empty where nothing is known.

    Of one that has left its place: `was at web2 sdd until 2026-01-10`.
    """
    host, device, slot = row.get("host"), row.get("device"), row.get("slot")
    where = f"{host} {device}" if host and device else f"{host} slot {slot}" if host and slot else host or ""
    return f"was at {where} until {row['left_at']:%Y-%m-%d}" if where and row.get("left_at") else where


def named_drive(row: Mapping[str, Any]) -> str:
    """A drive by its place before its serial number and model: `web2 sdd (ZC2d0001, ST16000NM001G)`."""
    walked, model = place(row), row.get("model")
    if not walked or row["drive_id"] == walked.replace(" ", "/"):
        return f"{walked or row['drive_id']} ({model})" if model else walked or str(row["drive_id"])
    return f"{walked} ({', '.join(part for part in (row['drive_id'], model) if part)})"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `12th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def to_minute(instant: datetime | None) -> str | None:
    """An instant as the text output shows it: `2026-01-05 07:00`."""
    return None if instant is None else instant.isoformat(" ", "minutes")

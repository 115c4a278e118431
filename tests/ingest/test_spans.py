"""Where an hour of increments is cut into spans, and which of their times are the hour's own."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from ingest.reading.parse import HOUR_US
from ingest.reading.spans import with_spans

FIRST = 490_000
MINUTE_US = 60_000_000


def every(length: float, begin: float, end: float) -> list[tuple[float, float]]:
    """Increments of some minutes, one after the other."""
    return [(begin + n * length, begin + (n + 1) * length) for n in range(round((end - begin) / length))]


def spans(increments: Sequence[tuple[float, float]], part: int = 60, gap: float = -99, cut: float = -99) -> list[object]:
    """Spans of increments (minutes) as (hour, begin, end), null with the hour; `gap`, `cut`: where an increment begins that is one."""
    at = pl.DataFrame(increments, schema=["begins", "ends"], orient="row").cast(pl.Float64())
    us = (pl.col("begins", "ends") * MINUTE_US).round().cast(pl.Int64()) + FIRST * HOUR_US
    steps = at.select(us.name.suffix("_us"), pl.lit("sda").alias("device"), "begins")
    steps = steps.with_columns(((pl.col("ends_us") - 1) // (part * MINUTE_US)).alias("hour"))
    found = with_spans(steps, ["device"], pl.col("begins") == cut, pl.col("begins") == gap, part_us=part * MINUTE_US)
    minute = [((pl.col(name).to_physical() - FIRST * HOUR_US) / MINUTE_US).round(3).alias(name) for name in ("from_utc", "to_utc")]
    hour = pl.col("hour") - FIRST * 60 // part
    return found.unique(["hour", "span_no"], keep="first", maintain_order=True).select(hour, *minute).rows()


@pytest.mark.parametrize(
    ("increments", "expected"),
    [
        (every(5, 0, 120), [(0, None, None), (1, None, None)]),
        # an hour that begins and ends a little off, one increment an hour, one that is looked at at half past
        (every(5, 3, 118), [(0, 3, None), (1, None, None)]),
        (every(60, 0, 120), [(0, None, None), (1, None, None)]),
        (every(60, -30, 90), [(0, None, None), (1, None, None)]),
        # a device that is first seen at a quarter to; a long step over the end of the hour; one that wavers
        (every(5, 45, 120), [(0, 45, None), (1, None, None)]),
        ([*every(5, 0, 50), (50, 65), *every(5, 65, 120)], [(0, None, 50), (1, None, 65), (1, 65, None)]),
        ([*every(5, 0, 30), (30, 41), *every(5, 41, 56)], [(0, None, None)]),
        # two gaps in a row; a collector that looks more often for a while
        ([*every(1, 0, 30), (30, 35), (35, 40), *every(1, 40, 60)], [(0, None, 30), (0, 30, 35), (0, 35, 40), (0, 40, None)]),
        (every(5, 0, 20) + every(1 / 6, 20, 40) + every(5, 40, 60), [(0, None, None)]),
        # what is missing beside the end of the hour is known to be missing
        (every(5, 0, 55) + every(5, 60, 120), [(0, None, 55), (1, None, None)]),
        (every(5, 0, 60) + every(5, 65, 120), [(0, None, None), (1, 65, None)]),
    ],
)
def test_a_span_ends_where_nobody_knows_on(increments: list[tuple[float, float]], expected: list[object]) -> None:
    assert spans(increments) == expected


def test_a_cut_is_kept_beside_the_end_of_an_hour() -> None:
    assert spans(every(5, 0, 120), cut=55) == [(0, None, 55), (0, 55, None), (1, None, None)]
    # the increment in which the counters fell is a span of its own; the caller leaves it out
    assert spans(every(5, -2, 118), gap=-2) == [(0, None, 3), (0, 3, None), (1, None, None)]
    assert spans(every(5, 0, 60), gap=55) == [(0, None, 55), (0, 55, None)]


def test_parts_of_an_hour_have_times_at_breaks_only() -> None:
    # 5 to 8 is all there is of the second five minutes so far
    assert spans(every(1, 1, 8), part=5) == [(0, None, None), (1, None, None)]
    assert spans(every(1, 0, 10), part=5, gap=2) == [(0, None, 2), (0, 2, 3), (0, 3, None), (1, None, None)]

"""Spans: the stretches of an hour over which a device was measured without a break (docs/decisions/0009-identity.md)."""

from __future__ import annotations

import polars as pl

from ingest.reading.parse import HOUR_US


def with_spans(steps: pl.DataFrame, place: list[str], is_cut: pl.Expr | None = None) -> pl.DataFrame:
    """Increments in order of `ends_us` (columns `place`, `begins_us`, `ends_us`, and `hour`, hours since 1970) with the span that each is of.

    Adds `span_no`, from 1 in each hour of a place, and the span's `from_utc` and `to_utc`; null where it begins or ends with the hour, give or
    take two intervals. A span ends where the next increment does not begin with its end, or `is_cut` (a drive or counter began anew with
    it), and on both sides of an increment that is longer than two intervals: nobody saw what happened in it.
    """
    begins, ends, hour = pl.col("begins_us"), pl.col("ends_us"), pl.col("hour")
    usual = (ends - begins).median().over(place)
    steps = steps.with_columns((2 * usual).alias("reach_us"), (ends - begins > 2 * usual).alias("is_long"))
    of_hour = [*place, "hour"]
    breaks = [begins != ends.shift(1).over(of_hour), pl.col("is_long"), pl.col("is_long").shift(1).over(of_hour)]
    starts = pl.any_horizontal(*breaks, *([] if is_cut is None else [is_cut])).fill_null(True)
    steps = steps.with_columns(starts.alias("starts")).with_columns(pl.col("starts").cum_sum().over(of_hour).alias("span_no"))
    # the first increment of an hour begins a span whatever it is
    steps = steps.with_columns((pl.col("span_no") - pl.col("span_no").min().over(of_hour) + 1).alias("span_no"))
    first, last = begins.min().over(*of_hour, "span_no"), ends.max().over(*of_hour, "span_no")
    is_first, is_last = pl.col("span_no") == 1, pl.col("span_no") == pl.col("span_no").max().over(of_hour)
    reach = pl.col("reach_us")
    return steps.with_columns(
        pl.when(~(is_first & (first <= hour * HOUR_US + reach))).then(first.clip(lower_bound=hour * HOUR_US)).alias("from_utc"),
        pl.when(~(is_last & (last >= (hour + 1) * HOUR_US - reach))).then(last.clip(upper_bound=(hour + 1) * HOUR_US)).alias("to_utc"),
    ).with_columns(pl.col("from_utc", "to_utc").cast(pl.Int64).cast(pl.Datetime("us"))).drop("reach_us", "is_long", "starts")  # fmt: skip

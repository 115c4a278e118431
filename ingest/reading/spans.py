"""Spans: the stretches of an hour over which a device was measured without a break (docs/decisions/0009-identity.md)."""

from __future__ import annotations

import polars as pl

from ingest.contract.findings import some_of
from ingest.reading.parse import HOUR_US, completed

NEAR = 5
"""Increments before or after one that say how long it usually is: a collector may look more often for a while."""
GAP = 2.5
"""From how many usual increments on one is a gap: more than two, and half of one for a clock that wavers."""
REACH = 2
MOST_REACH_US = HOUR_US // 4
MOST_AHEAD_US = HOUR_US // 12
"""How long before the end of a gap a drive may be seen that was there when it ended: who collects looks first, then counts. Of a short gap
the last quarter at most."""
SELDOM = 0.1
"""From which share of a host's increments on it is said that they are of no hour."""


def with_spans(
    steps: pl.DataFrame,
    place: list[str],
    is_cut: pl.Expr | None = None,
    is_gap: pl.Expr | None = None,
    is_whole: pl.Expr | None = None,
    part_us: int = HOUR_US,
    of_hour_at: float = 1.0,
) -> pl.DataFrame:
    """Increments in order of `ends_us` (columns `place`, `begins_us`, `ends_us`, `hour`, counted from 1970) with the span that each is of.

    Adds `span_no`, from 1 in each hour of a place, `is_long`, more than two usual intervals, and the span's `from_utc` and `to_utc`; null
    where it begins or ends with the hour, or up to two intervals (a quarter of an hour at most) from it without a break there. A span ends
    where the next increment does not begin with its end, or `is_cut` (a drive or counter began again with it), and on both sides of an
    increment that `is_long` or `is_gap`: nobody saw what happened in it.

    is_whole: of an increment over which the device was seen all the time; like a gap it says nothing of how long one usually is.

    of_hour_at: the place in an increment whose hour it is of, 1 = its end. part_us: of parts of an hour, which `hour` counts then; their
    times are null but at a break, as the next delivery may fill them.
    """
    begins, ends, hour = pl.col("begins_us"), pl.col("ends_us"), pl.col("hour")
    of_part, of_span = [*place, "hour"], [*place, "hour", "span_no"]
    length = ends - begins
    unusual = [each.fill_null(False) for each in (is_whole, is_gap) if each is not None]
    looked = pl.when(~pl.any_horizontal(*unusual)).then(length) if unusual else length
    before = looked.rolling_median(NEAR, min_samples=1).shift(1).over(place)
    after = looked.reverse().rolling_median(NEAR, min_samples=1).shift(1).reverse().over(place)
    usual = pl.max_horizontal(before, after).fill_null(length)
    steps = steps.with_columns((usual if is_whole is None else pl.when(is_whole).then(length).otherwise(usual)).alias("usual_us"))
    gap = (pl.col("is_long") | is_gap if is_gap is not None else pl.col("is_long")).fill_null(False)
    steps = steps.with_columns((length > GAP * pl.col("usual_us")).alias("is_long")).with_columns(gap.alias("is_alone"))
    breaks = [begins != ends.shift(1).over(place), pl.col("is_alone"), pl.col("is_alone").shift(1).over(place)]
    apart = pl.any_horizontal(*breaks, *([] if is_cut is None else [is_cut])).fill_null(False)
    steps = steps.with_columns(apart.alias("is_apart"), hour.ne_missing(hour.shift(1).over(place)).alias("is_first"))
    reach = (REACH * pl.col("usual_us")).clip(upper_bound=MOST_REACH_US) if part_us == HOUR_US else pl.lit(part_us, pl.Int64())
    steps = steps.with_columns(
        (pl.col("is_apart") | pl.col("is_first")).cum_sum().over(of_part).alias("span_no"),
        (pl.col("is_alone") | pl.col("is_apart").shift(-1).over(place).fill_null(False)).alias("ends_apart"),
        reach.alias("reach_us"),
    )
    start, end = hour * part_us, (hour + 1) * part_us
    first, last = begins.first().over(of_span), ends.last().over(of_span)
    # where a call begins or ends another may have gone before or go on, if a further increment has room in the hour
    usual, is_hour = pl.col("usual_us"), pl.lit(part_us == HOUR_US)
    to_start = pl.when(is_hour & (begins == begins.min().over(place))).then(usual * (1 - of_hour_at)).otherwise("reach_us").first()
    to_end = pl.when(is_hour & (ends == ends.max().over(place))).then(usual * of_hour_at - int(of_hour_at)).otherwise("reach_us").last()
    to_start, to_end = to_start.over(of_span), to_end.over(of_span)
    with_start = (first <= start) | (~pl.col("is_apart").first().over(of_span) & (first <= start + to_start))
    with_end = (last >= end) | (~pl.col("ends_apart").last().over(of_span) & (last >= end - to_end))
    return steps.with_columns(
        pl.when(~with_start).then(first).cast(pl.Datetime("us")).alias("from_utc"),
        pl.when(~with_end).then(last).cast(pl.Datetime("us")).alias("to_utc"),
    ).drop("usual_us", "is_alone", "is_apart", "is_first", "ends_apart", "reach_us")


def before_end(ends_us: pl.Expr, gap_us: pl.Expr) -> pl.Expr:
    """From when on a look says who was there after a gap."""
    return ends_us - pl.min_horizontal(gap_us // 4, MOST_AHEAD_US)


def cut_records(cuts: pl.DataFrame) -> pl.DataFrame:
    """Records of drive_aliases without a drive (host, device, `at_us`, `seen_us`, file_no, row_no): who bears a name has to be seen again.

    at_us: from when on. seen_us: when its drive was last seen, null if there is no break; nobody knows who bore the name between the two.
    """
    # a look at the instant itself was before
    times = {
        "valid_from": pl.coalesce(pl.col("seen_us") + 1, "at_us"),
        "valid_to": pl.when(pl.col("seen_us").is_not_null()).then("at_us"),
        "collected_at": pl.col("at_us"),
    }
    alias = pl.concat_str("host", pl.lit("/"), "device").alias("alias")
    rows = cuts.select(alias, "file_no", "row_no", **{name: at.cast(pl.Datetime("us")) for name, at in times.items()})
    return completed(rows, "drive_aliases")


def seldom_notes(steps: pl.DataFrame, is_far: pl.Expr, most_us: int) -> list[str]:
    """A note on hosts (`host`) many of whose increments count for no hour: longer than `most_us`, they reach over an hour's end."""
    of_host = steps.group_by("host").agg(is_far.sum().alias("far"), pl.len().alias("all"), pl.col("device").n_unique()).sort("host")
    # one each is an outage
    found = [f"{host} ({far} of {every})" for host, far, every, devices in of_host.rows() if far > devices and far >= SELDOM * every]
    minutes = most_us // 60_000_000
    said = f"{some_of(found)}: intervals of over {minutes} minutes reach over the end of an hour and are left out, as nobody knows"
    return [f"{said} which hour their I/Os are of; read the counters every {minutes} minutes or more often"] if found else []

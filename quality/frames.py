"""Columns that a suite may use: the contract columns of its table, and these made from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
import yaml

from ingest.contract.fleet import CONTRACT, key_of
from ingest.contract.values import MEASURED_KINDS, TIMED

PROJECT = Path(__file__).resolve().parents[1]
HOUR = timedelta(hours=1)
MIN_ROWS = 20
"""A share of fewer delivered rows says nothing."""


@dataclass(frozen=True)
class Derived:
    """A column made for the suites, and the delivered column that a rejected row is shown by."""

    value: pl.Expr
    column: str


@cache
def _macros() -> tuple[Any, dict[str, str]]:
    """The macros of macros/merged.sql, and what the models have as columns before they merge, as SQL."""
    macros: Any = jinja2.Template((PROJECT / "macros" / "merged.sql").read_text(encoding="utf-8")).module
    stated = yaml.safe_load((PROJECT / "dbt_project.yml").read_text(encoding="utf-8"))["vars"]
    return macros, {
        "is_split": macros.has_both_directions("ios"),
        "has_blocks": macros.has_both_directions("blocks"),
        "block_bytes": f"coalesce(block_bytes, {stated['default_block_bytes']})",
    }


@cache
def merged(measure: str) -> pl.Expr:
    """A record's values of both directions together, by the macro that the models use.

    measure: `latency` (us per I/O), `io_count` (count) or `io_size` (bytes per I/O). Null = unknown, or no I/O to divide by.
    """
    macros, given = _macros()
    sql: str = getattr(macros, f"merged_{measure}")()
    for column, value in given.items():
        sql = sql.replace(column, f"({value})")
    return pl.sql_expr(sql)


def columns(table: str, now: datetime) -> dict[str, Derived]:
    """The derived columns of a table; `now` is UTC without zone."""

    def hours(of: pl.Expr, since: pl.Expr) -> pl.Expr:
        return (of.cast(pl.Int64) - since.cast(pl.Int64)) / 3.6e9

    at = pl.lit(now, pl.Datetime("us"))
    instant = {**TIMED, "drive_events": "occurred_at", "drive_probes": "probed_at"}.get(table)
    made = {}
    if table in CONTRACT:
        made["sent_ahead_hours"] = Derived(hours(pl.col("collected_at"), at), "collected_at")
    if instant:
        happened = pl.col(instant)
        if table == "drive_events":  # planned work is announced before it happens
            happened = pl.when(pl.col("event_type").ne_missing("maintenance")).then(happened)
        made["year"] = Derived(pl.col(instant).dt.year(), instant)
        made["ahead_hours"] = Derived(hours(happened, at), instant)
        made["sent_after_hours"] = Derived(hours(pl.col("collected_at"), happened), "collected_at")
    if table in MEASURED_KINDS:
        is_reported = merged("io_count").is_not_null() | pl.col("latency_us").is_not_null()
        made["merged_io_count"] = Derived(merged("io_count"), "read_ios")
        made["merged_latency_us"] = Derived(merged("latency"), "read_latency_us")
        made["reported"] = Derived(pl.when(is_reported).then(1), "read_ios")
    if table == "drive_samples":
        span_seconds = (pl.col("to_utc") - pl.col("from_utc")).dt.total_seconds()
        made["span_seconds"] = Derived(span_seconds, "to_utc")
        made["iops"] = Derived(merged("io_count") / pl.when(span_seconds > 0).then(span_seconds), "read_ios")
    if table == "drive_hours":
        made["io_size_bytes"] = Derived(merged("io_size"), "read_blocks")
        # against the same drive on the last landed day: a part of the fleet, or a fleet that grows, is another mixture of drives
        usual, count = pl.col("usual_latency_us"), merged("io_count")
        made["latency_ratio"] = Derived(merged("latency") / pl.when(usual > 0).then(usual), "read_latency_us")
        made["lost_latency"] = Derived(pl.when(usual.is_not_null()).then(merged("latency").is_null().cast(pl.Int8)), "read_latency_us")
        made["lost_count"] = Derived(pl.when("had_count").then(count.is_null().cast(pl.Int8)), "read_ios")
    if table == "drives":
        made["spinning_rpm"] = Derived(pl.when(pl.col("rpm") > 0).then(pl.col("rpm")), "rpm")
        made["deployed_days_ago"] = Derived((pl.lit(now.date()) - pl.col("deployed_on")).dt.total_days(), "deployed_on")
    if table == "drive_aliases":
        made["year"] = Derived(pl.col("valid_from").dt.year(), "valid_from")
    if table == "labels":
        made["labelled_days_ago"] = Derived((pl.lit(now.date()) - pl.col("labelled_on")).dt.total_days(), "labelled_on")
    if table == "ingested_files":
        delivered = pl.col("rows_delivered")
        made["rejected_share"] = Derived(pl.col("rows_rejected") / pl.when(delivered >= MIN_ROWS).then(delivered), "rows_rejected")
    return made


FILES = {"record_kind": pl.String(), "files": pl.Int64(), "rows_delivered": pl.Int64(), "rows_rejected": pl.Int64()}
"""Input of the suite `ingested_files`: one row per record kind of the delivery."""

GIVEN: dict[str, Iterable[str]] = {**CONTRACT, "ingested_files": FILES}
"""The columns of a table that a suite may name besides the derived ones."""

USUAL = pl.Schema({"drive": pl.UInt64(), "usual_latency_us": pl.Float64(), "had_count": pl.Boolean()})
"""Columns joined to the drive-hours: each drive (its id's hash) on the last landed day, mean latency (us), whether a count was known."""

PARAMETERS = {
    "rows": "records looked at",
    "drives": "distinct drives among them",
    "days_since_1980": "days from 1980-01-01 to now",
    "usual_rows": "records that as many hours had on the last day that has landed; only for hours newer than all that have landed",
    "known_drives": "drives that the landed inventory lists for the hour; only for hours newer than all that have landed",
}
"""Values from which a bound of a suite may be computed. One that is unknown, such as before anything has landed, leaves its check out."""


def facts(table: str, rows: pl.DataFrame, now: datetime, usual_hour: int | None = None) -> dict[str, Any]:
    """The parameters that come from the rows; `usual_hour`: records of a usual hour, null = not known or not applicable."""
    drives = rows["drive_id"].n_unique() if table in CONTRACT else None
    values = {"rows": rows.height, "drives": drives, "days_since_1980": (now.date() - date(1980, 1, 1)).days}
    if usual_hour is None:
        return values
    # an hour with a tenth of the fullest one's records was not sent yet: a few clocks are ahead
    hours = rows.group_by("hour_utc").len().select((pl.col("len") * 10 > pl.col("len").max()).sum()).item()
    return {**values, "usual_rows": usual_hour * hours}


def without_duplicates(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows less the exact duplicates: a file that came twice says nothing new, and is judged when it lands."""
    if table not in CONTRACT or not rows.select(pl.struct(*key_of(table, rows.columns)).is_duplicated().any()).item():
        return rows
    return rows.unique(list(CONTRACT[table]), keep="first", maintain_order=True)

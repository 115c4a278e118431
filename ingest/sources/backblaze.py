"""Source `backblaze`: the public daily CSVs of drive stats, a row per drive and day: inventory, age, SMART attributes, and proxies
of events.

The days have no latency and no event: that a drive is missing on a day and is there on a later one looks like an unplug and a
replug, and one marked failed was taken out. Such events say `proxy` in their detail.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from ingest.contract.fleet import CONTRACT, Layout
from ingest.reading.batches import Batch, read_table
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.health import MOST, TEMPERATURES, ata_name
from ingest.reading.parse import Check, completed, convert, negative_checks, null_checks, split, type_checks
from ingest.reading.readers import RawChunk

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "*.csv (also .gz, .zst) with date, serial_number, model, capacity_bytes and failure, a file per day"
recognise = named("drive_days", r".*\.csv(\.gz|\.zst)?")
GROUP = "backblaze"
# power-on hours beyond this are a vendor's own encoding
MOST_HOURS = 40 * 8766
# a capacity beyond this, or none above 0, is that of a drive that did not answer
MOST_BYTES = 10**15

_TYPES: dict[str, pl.DataType] = {
    "date": pl.Date(),
    "serial_number": pl.String(),
    "model": pl.String(),
    "capacity_bytes": pl.Int64(),
    "failure": pl.Int64(),
    "smart_9_raw": pl.Int64(),
    "datacenter": pl.String(),
    "vault_id": pl.String(),
    "pod_id": pl.String(),
    "pod_slot_num": pl.String(),
}
_HEALTH = {f"smart_{number}_{kind}": pl.Int64() for number in range(1, 256) for kind in ("raw", "normalized")}
_LAYOUT = Layout((*_TYPES, *(name for name in _HEALTH if name not in _TYPES)), (("date", "serial_number", "model", "failure"),))
_SEEN: dict[str, pl.DataType] = {
    **{name: dtype for name, dtype in _TYPES.items() if name not in ("date", "failure", "smart_9_raw")},
    **dict.fromkeys(("first_day", "last_day", "deployed_on"), pl.Date()),
    "is_failed": pl.Boolean(),
    "file_no": pl.Int64(),
    "row_no": pl.Int64(),
}
_EVENT = {"occurred_at": pl.Datetime("us"), "drive_id": pl.String(), "event_type": pl.String(), "detail": pl.String()}


def land(files: list[SourceFile], landing: Landing) -> None:
    """Follow the drives through the days of the call, in order of date, and stage inventory and events; counts are drive-days.

    Days that belong together come together: what happened between the last day of one call and the first of the next is not seen.
    """
    days: dict[date, list[pl.DataFrame]] = {}
    for rows in landing.read(files, _batches):
        for (day,), of_day in rows.partition_by("date", as_dict=True).items():
            days.setdefault(day, []).append(of_day)
    if not days:
        return
    seen, events = follow(days)
    landing.accept("drives", completed(_drives(seen), "drives"), None)
    if events.height:
        landing.accept("drive_events", completed(events, "drive_events"), None)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    notes: list[str] = []  # they would list every SMART attribute
    for batches in read_table(file.path, _LAYOUT, notes, _drive_days):
        yield from batches


def _drive_days(chunk: RawChunk) -> tuple[Batch, Batch]:
    """Good rows: _TYPES and `row_no`; and the drives' health readings in them."""
    rows, unreadable = convert(chunk.frame, _TYPES)
    rows, rejected = split(chunk, rows, _checks(unreadable))
    is_capacity = pl.col("capacity_bytes").is_between(1, MOST_BYTES)
    rows = rows.with_columns(pl.when(is_capacity).then(pl.col("capacity_bytes")).alias("capacity_bytes"))
    days = rows.select(*_TYPES, "row_no")
    return Batch(None, days, rejected), Batch("drive_health", _health(chunk.frame, days), is_beside=True)


def _health(delivered: pl.DataFrame, days: pl.DataFrame) -> pl.DataFrame:
    """The SMART attributes of good rows (_TYPES, `row_no`): those that a row gives a value for, as of its day."""
    given: dict[str, pl.DataType] = {
        name: pl.Int64() for name in _HEALTH if name in delivered.columns and delivered[name].null_count() < delivered.height
    }
    values, _ = convert(delivered, given)
    rows = days.select("row_no", "date", "serial_number").join(values, on="row_no", maintain_order="left")
    found = [pl.DataFrame(schema={**CONTRACT["drive_health"], "row_no": pl.Int64()})]
    for number in range(1, 256):
        names = [f"smart_{number}_{kind}" for kind in ("raw", "normalized")]
        if not given.keys() & set(names):
            continue
        raw, normalised = (pl.col(name) if name in given else pl.lit(None, pl.Int64()) for name in names)
        raw = raw % 2**16 if number in TEMPERATURES else raw
        of_attribute = rows.select(
            pl.col("date").cast(pl.Datetime("us")).alias("read_at"),
            pl.col("serial_number").alias("drive_id"),
            pl.lit(ata_name(number)).alias("attribute"),
            pl.when(raw.is_between(0, MOST)).then(raw).alias("raw_value"),
            pl.when(normalised.is_between(0, MOST)).then(normalised).alias("normalised_value"),
            pl.col("date").cast(pl.Datetime("us")).alias("collected_at"),
            # each of its own number: a row has many attributes
            (pl.col("row_no") * 256 + number).alias("row_no"),
        )
        found.append(of_attribute.filter(pl.col("raw_value").is_not_null() | pl.col("normalised_value").is_not_null()))
    return pl.concat(found)


def _checks(unreadable: dict[str, str]) -> list[Check]:
    # an attribute that some vendor does not give as a number does not cost the drive
    needed = {name: reason for name, reason in unreadable.items() if name not in ("smart_9_raw", "capacity_bytes")}
    return [
        *type_checks(needed),
        *null_checks("date", "serial_number", "failure"),
        Check("failure", "neither 0 nor 1", ~pl.col("failure").is_in([0, 1])),
        *negative_checks("smart_9_raw"),
    ]


def follow(days: dict[date, list[pl.DataFrame]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The drives of all days (_SEEN), and the proxies of events. A day for which no file came is no day on which drives were missing."""
    seen = pl.DataFrame(schema=_SEEN)
    events = [pl.DataFrame(schema={**_EVENT, "file_no": pl.Int64(), "row_no": pl.Int64()})]
    ordered = sorted(days)
    for number, day in enumerate(ordered):
        today = pl.concat(days[day]).sort("file_no", "row_no").unique("serial_number", keep="last", maintain_order=True)
        known = seen.join(today.select("serial_number", "failure"), on="serial_number")
        if number:
            back = known.filter((pl.col("last_day") < ordered[number - 1]) & ~pl.col("is_failed"))
            events += [
                _proxy(back, "unplug", _next_day(ordered), "missing from this day"),
                _proxy(back, "replug", pl.lit(day), "there again"),
            ]
        seen = _updated(seen, today, day)
    gone = seen.filter(pl.col("last_day") < ordered[-1])
    events.append(_proxy(gone.filter(~pl.col("is_failed")), "unplug", _next_day(ordered), "missing from this day"))
    events.append(_proxy(seen.filter("is_failed"), "unplug", pl.col("last_day"), "marked failed on this day"))
    return seen, pl.concat(events)


def _next_day(days: list[date]) -> pl.Expr:
    """The day after a drive's last for which a file came."""
    return pl.col("last_day").replace_strict(days[:-1], days[1:], default=None, return_dtype=pl.Date())


def _proxy(drives: pl.DataFrame, event_type: str, day: pl.Expr, what: str) -> pl.DataFrame:
    return drives.select(
        day.cast(pl.Datetime("us")).alias("occurred_at"),
        pl.col("serial_number").alias("drive_id"),
        pl.lit(event_type).alias("event_type"),
        pl.lit(f"proxy: {what}").alias("detail"),
        "file_no",
        "row_no",
    )


def _updated(seen: pl.DataFrame, today: pl.DataFrame, day: date) -> pl.DataFrame:
    hours = pl.col("smart_9_raw")
    since = pl.when(hours.is_between(0, MOST_HOURS)).then(pl.col("date") - pl.duration(days=hours // 24))
    rows = today.with_columns(
        pl.col("date").alias("first_day"),
        pl.col("date").alias("last_day"),
        since.alias("deployed_on"),
        (pl.col("failure") == 1).alias("is_failed"),
    )
    # a drive keeps its first day, and the age that it had then
    first = seen.select("serial_number", pl.col("first_day").alias("known_first"), pl.col("deployed_on").alias("known_deployed"))
    rows = rows.join(first, on="serial_number", how="left").with_columns(
        pl.coalesce("known_first", "first_day").alias("first_day"), pl.coalesce("known_deployed", "deployed_on").alias("deployed_on")
    )
    return pl.concat([seen.join(rows, on="serial_number", how="anti"), rows.select(*_SEEN)])


def _drives(seen: pl.DataFrame) -> pl.DataFrame:
    # drives of one slot number in the pods of a vault are a tome: they hold a file's shards together
    tome = pl.concat_str("vault_id", pl.lit("tome"), "pod_slot_num", separator="/")
    midnight = {name: pl.col(name).cast(pl.Datetime("us")) for name in ("first_day", "last_day")}
    return seen.select(
        pl.col("serial_number").alias("drive_id"),
        pl.coalesce(tome, pl.lit(GROUP)).alias("raid_group_id"),
        pl.lit("data").alias("role"),
        pl.col("pod_slot_num").alias("slot"),
        "model",
        "capacity_bytes",
        pl.col("pod_id").alias("host"),
        pl.col("vault_id").alias("enclosure"),
        pl.col("datacenter").alias("site"),
        "deployed_on",
        midnight["first_day"].alias("valid_from"),
        pl.when("is_failed").then(midnight["last_day"] + pl.duration(days=1)).alias("valid_to"),
        midnight["last_day"].alias("collected_at"),
        tome.is_null().alias("is_group_guessed"),
        "file_no",
        "row_no",
    )

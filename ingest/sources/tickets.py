"""Source `tickets`: CSV files of drive trouble tickets, as drive events and inventory of the drives.

Trackers name their columns as they like; those known here are in NAMES, the set that Alibaba published (FAST'21) among them. A
ticket says that help was called, not what the drive did: without a type of the contract's it is `other`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from ingest.contract.fleet import Layout
from ingest.reading.batches import Batch, read_table
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.parse import completed, parse
from ingest.reading.readers import BrokenRow, RawChunk

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "*.csv (also .gz, .zst) with a column that names the drive and one that says when"
recognise = named("tickets", r".*\.csv(\.gz|\.zst)?")

# meaning of a column -> its possible names; the first one found counts
NAMES: dict[str, tuple[str, ...]] = {
    "drive_id": ("drive_id", "serial_number", "serial", "disk_id"),
    "occurred_at": ("occurred_at", "failure_time", "opened_at", "created_at"),
    "event_type": ("event_type", "type"),
    "ended_at": ("ended_at", "closed_at", "resolved_at"),
    "detail": ("detail", "description", "summary"),
    "slot": ("slot", "slot_id"),
    "model": ("model",),
    "host": ("host", "node_id"),
    "enclosure": ("enclosure", "rack_id"),
    "site": ("site", "machine_room_id"),
    "is_trouble": ("failure",),
    "app": ("app",),
}
_WAYS = tuple((drive, when) for drive in NAMES["drive_id"] for when in NAMES["occurred_at"])
_LAYOUT = Layout(tuple(name for names in NAMES.values() for name in names), _WAYS)
_DRIVE = ("drive_id", "model", "host", "enclosure", "site", "slot")


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every file; a ticket is an event, and the last ticket of a drive says where it is."""
    tickets: list[pl.DataFrame] = []
    landing.read(files, partial(_batches, tickets))
    if tickets:
        landing.accept("drives", _drives(pl.concat(tickets, how="diagonal")), None)


def _batches(tickets: list[pl.DataFrame], file: SourceFile, result: FileResult) -> Iterator[Batch]:
    """The events of a file; its tickets are added to `tickets` once all of it was read."""
    read = []
    for frame, events in read_table(file.path, _LAYOUT, result.notes, _records, is_by_hand=True):
        yield events
        frame = frame.join(events.rows.select("row_no", "occurred_at"), on="row_no", suffix="_utc")
        read.append(frame.with_columns(pl.lit(result.file_no, pl.Int64()).alias("file_no")))
    tickets += read


def _records(chunk: RawChunk) -> tuple[pl.DataFrame, Batch]:
    tickets = meant(chunk)
    return tickets.frame, parse(tickets, "drive_events")


def meant(chunk: RawChunk) -> RawChunk:
    """The rows with their columns named by what they mean; those without a trouble are set aside.

    A drive that only has a number is called MODEL-NUMBER, as numbers count per model.
    """
    frame = chunk.frame
    known = {meaning: next((name for name in names if name in frame.columns), None) for meaning, names in NAMES.items()}
    missing = pl.lit(None, pl.String())
    frame = frame.select(*((pl.col(name) if name else missing).alias(meaning) for meaning, name in known.items()), "row_no")
    if known["drive_id"] == "disk_id":
        frame = frame.with_columns(pl.concat_str("model", "drive_id", separator="-").alias("drive_id"))
    detail = pl.concat_str(pl.lit("ticket"), pl.col("app"), pl.col("detail"), separator=": ", ignore_nulls=True)
    frame = frame.with_columns(pl.col("event_type").fill_null("other"), detail.alias("detail"))
    healthy = frame.filter(pl.col("is_trouble").str.strip_chars().is_in(["0", "0.0", "false"]))
    broken = [BrokenRow(row, "not a trouble ticket: the drive is marked healthy", "failure", "0") for row in healthy["row_no"]]
    return RawChunk(frame.join(healthy, on="row_no", how="anti", maintain_order="left"), [*chunk.broken, *broken])


def _drives(tickets: pl.DataFrame) -> pl.DataFrame:
    last = tickets.sort("occurred_at_utc", "file_no", "row_no").unique("drive_id", keep="last", maintain_order=True)
    group = pl.coalesce("host", "drive_id")
    return completed(
        last.select(
            *_DRIVE,
            group.alias("raid_group_id"),
            pl.lit("data").alias("role"),
            pl.col("occurred_at_utc").alias("collected_at"),
            pl.lit(True).alias("is_group_guessed"),
            "file_no",
            "row_no",
        ),
        "drives",
    )

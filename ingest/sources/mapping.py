"""Source `mapping`: an operator's own list of drives (`drivetail map`), believed before every other source.

CSV, NDJSON or Parquet, a row per drive and period. A drive is named by `drive_id` (serial number), or by `host` and `device`, or by
both: then the row also says which drive that device is. `raid_group_id` puts it into a RAID group; every other column of the inventory
may be given too, also without a group, which others then say. `alias_serial` is another serial number by which a source knows the drive,
for ever. Of two rows on the same drive and `valid_from` the one that came last counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from ingest.contract.fleet import CONTRACT, TEXT, TIME, Layout
from ingest.contract.values import DRIVE_KINDS, ROLES
from ingest.reading.batches import Batch, read_table
from ingest.reading.devices import is_placeholder
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import drive_device
from ingest.reading.parse import Check, convert, period_check, split, type_checks
from ingest.reading.readers import TABLE_NAME, RawChunk

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "a CSV, NDJSON or Parquet file with drive_id, or host and device, and what is known of the drive"
recognise = named("mappings", TABLE_NAME)
_TYPES = {"device": TEXT, "alias_serial": TEXT, **CONTRACT["drives"]}
_LAYOUT = Layout(tuple(_TYPES), (("drive_id",), ("host", "device")))
# columns that describe the drive itself; host and device only name it
_SAID = [name for name in CONTRACT["drives"] if name not in ("drive_id", "host", "valid_from", "valid_to", "collected_at")]


def land(files: list[SourceFile], landing: Landing) -> None:
    """The names and drives of a file. Counts are in records: a row that names both serial and device is one, its RAID group another."""
    landing.read(files, _batches)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    for batches in read_table(file.path, _LAYOUT, result.notes, partial(_records, result.ingested_at), is_by_hand=True):
        yield from batches


def _records(now: datetime | None, chunk: RawChunk) -> tuple[Batch, Batch]:
    """Names and drives of a chunk. now: the time of a row that has none."""
    mappings, unreadable = convert(chunk.frame, _TYPES)
    mappings, rejected = split(chunk, mappings, _checks(unreadable))
    mappings = mappings.with_columns(pl.col("collected_at").fill_null(now))
    by_device = pl.col("device").is_not_null()
    device = pl.col("host") + "/" + pl.col("device").map_elements(drive_device, pl.String)
    names_drive = pl.col("drive_id").is_not_null()
    aliases = mappings.filter(by_device & names_drive).with_columns(device.alias("alias"))
    always = pl.lit(None, TIME)
    serials = mappings.filter(pl.col("alias_serial").is_not_null()).with_columns(
        pl.col("alias_serial").alias("alias"), always.alias("valid_from"), always.alias("valid_to")
    )
    aliases = pl.concat([aliases, serials])
    periods = mappings.filter(_describes()).with_columns(
        pl.coalesce("drive_id", device).alias("drive_id"),
        (~names_drive).alias("is_alias"),
        pl.col("raid_group_id").is_null().alias("is_group_guessed"),
    )
    return Batch("drive_aliases", aliases, rejected), Batch("drives", periods)


def _describes() -> pl.Expr:
    """Whether a row says anything of its drive but which device it is."""
    return pl.any_horizontal(pl.col(name).is_not_null() for name in _SAID) | (pl.col("host").is_not_null() & pl.col("device").is_null())


def _is_placeholder(name: str) -> pl.Expr:
    return pl.col(name).map_elements(is_placeholder, pl.Boolean)


def _checks(unreadable: dict[str, str]) -> list[Check]:
    has_device = pl.col("host").is_not_null() & pl.col("device").is_not_null()
    names_drive = pl.col("drive_id").is_not_null()
    return [
        *type_checks(unreadable),
        *(
            Check(name, "a placeholder, no serial number: it would make one drive of all that have it", _is_placeholder(name))
            for name in ("drive_id", "alias_serial")
        ),
        Check("drive_id", "neither drive_id nor host and device is given", ~names_drive & ~has_device),
        Check(
            "raid_group_id",
            "null, and no other column says what the row is for",
            ~_describes() & ~(names_drive & has_device) & pl.col("alias_serial").is_null(),
        ),
        Check("alias_serial", "drive_id is null, so the drive is not known", pl.col("alias_serial").is_not_null() & ~names_drive),
        Check("role", f"not one of {', '.join(ROLES)}", ~pl.col("role").is_in(ROLES)),
        Check("kind", f"not one of {', '.join(DRIVE_KINDS)}", ~pl.col("kind").is_in(DRIVE_KINDS)),
        period_check(),
    ]

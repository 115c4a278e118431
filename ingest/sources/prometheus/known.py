"""Facts of a drive from earlier pulls: only new ones are kept, so inventory grows with the fleet and not with the hours."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ingest.contract.fleet import CONTRACT, IDENTITY, KEY
from ingest.raw.judge import stored_files
from ingest.raw.store import source_of, table_files

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

HOUR = timedelta(hours=1)


def unknown_rows(rows: pl.DataFrame, record_kind: str, landing: Landing) -> pl.DataFrame:
    """The records (contract columns, `is_alias`, `is_group_guessed`) of `drives` or `drive_aliases` that say what was not known.

    Left out is an open record (no `valid_to`) of a key that is not stored, where the last one before it, of what is stored and of these,
    says the same, is open, too, and no other record has its key. Also there must be a drive-hour of the drive in its own hour or
    the one before: then the drive was seen from the one to the other, and hours that come later belong elsewhere.
    `seen_as`: what the drive-hours of the place are named.
    """
    if not rows.height:
        return rows
    name, _ = KEY[record_kind]
    says = [each for each in (*CONTRACT[record_kind], *IDENTITY[record_kind]) if each in rows.columns and each not in (name, "valid_from")]
    stored = stored_rows(record_kind, landing, rows, [name, "valid_from", *says])
    before = pl.concat([stored, rows.select(stored.columns)]).group_by(name, "valid_from").agg(
        pl.struct(says).n_unique().alias("records"), pl.col(says).first()
    )  # fmt: skip
    new = rows.with_row_index("number").join(stored, on=[name, "valid_from"], how="anti", nulls_equal=True)
    spans = new.join(before, on=name, suffix="_stored").filter(pl.col("valid_from_stored") < pl.col("valid_from"))
    last = spans.filter(pl.col("valid_from_stored") == pl.col("valid_from_stored").max().over("number"))
    same = last.filter(
        pl.col("valid_to").is_null(),
        pl.col("records") == 1,
        *(pl.col(column).eq_missing(pl.col(f"{column}_stored")) for column in says),
    )
    seen = _seen(same, landing)
    begun = [same.with_columns((pl.col("valid_from").dt.truncate("1h") - back).alias("hour_utc")) for back in (HOUR, timedelta())]
    known = pl.concat(begun).join(seen, left_on=["seen_as", "hour_utc"], right_on=["drive_id", "hour_utc"], how="semi")["number"]
    return rows.filter(~pl.int_range(pl.len()).is_in(known.implode()))


def stored_rows(record_kind: str, landing: Landing, rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Records that have landed of this source, or that this call has staged, that began no later and has a name of these."""
    name, begins = columns[:2]
    paths = [path for path in table_files(landing.staged.deliveries, record_kind) if source_of(path) == landing.source]
    scans = [landing.records(record_kind).lazy(), *([pl.scan_parquet(paths, glob=False)] if paths else [])]
    wanted = pl.col(name).is_in(rows[name].unique().implode()) & (pl.col(begins) <= rows[begins].max())
    return pl.concat([scan.filter(wanted).select(columns) for scan in scans]).unique().collect()


def _seen(rows: pl.DataFrame, landing: Landing) -> pl.DataFrame:
    """The drive-hours (drive_id, hour_utc) of this source in the hours where records begin, and in those before."""
    begun = rows["valid_from"].dt.truncate("1h")
    hours = pl.concat([begun - HOUR, begun]).unique().sort().to_list()
    paths: list[Path] = []
    if hours:
        first, last = hours[0], hours[-1]
        staged = [part.path for part in landing.staged.parts if part.overlaps(first, last)]
        paths = [*staged, *stored_files(landing.staged, "drive_hours", first, last)]
    if not paths:
        return pl.DataFrame(schema={"drive_id": pl.String(), "hour_utc": pl.Datetime("us")})
    return pl.scan_parquet(paths, glob=False).select("drive_id", "hour_utc").filter(pl.col("hour_utc").is_in(hours)).collect()

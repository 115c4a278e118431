"""The store: what the models computed by RAID-hour, as immutable Parquet files, one folder per batch.

A batch never changes. When a late record touches a RAID-hour, a newer batch computes it again, and the older batch's
rows of it are left out by `state.recomputed` (raid_group_id, hour_utc, build_seq of the newest). So a late row costs
what its RAID-hours weigh, and a reader of an older publication goes on reading what it saw
(docs/decisions/0002-stored-by-raid-hour.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb

from drivetail.warehouse import Warehouse, quoted

STORED_MODELS = ("int_drive_hours", "int_raid_hours", "int_drive_hours__slow")

SCHEMA = """
create schema if not exists state;
create table if not exists state.finished_deliveries (delivery_seq bigint primary key);
create table if not exists state.batches (
    build_seq bigint primary key, first_hour_utc timestamp, last_hour_utc timestamp,
    raid_hour_count bigint, live_raid_hour_count bigint
);
create table if not exists state.project (version varchar);
create table if not exists state.recomputed (raid_group_id varchar, hour_utc timestamp, build_seq bigint);
"""


@dataclass(frozen=True)
class Batch:
    """One batch of the store: RAID-hours from first_hour_utc to last_hour_utc (UTC, inclusive)."""

    build_seq: int
    first_hour_utc: datetime
    last_hour_utc: datetime

    def folder(self, warehouse: Warehouse) -> Path:
        """Where its files lie."""
        return warehouse.store / f"batch-{self.build_seq:06d}"


def live_batches(
    connection: duckdb.DuckDBPyConnection, first_hour_utc: datetime | None = None, last_hour_utc: datetime | None = None
) -> list[Batch]:
    """Batches with a RAID-hour that no later batch computed again, oldest first; optionally only those that reach into a span."""
    rows = connection.execute(
        """
        select build_seq, first_hour_utc, last_hour_utc from state.batches
        where live_raid_hour_count > 0 and last_hour_utc >= coalesce(?, last_hour_utc) and first_hour_utc <= coalesce(?, first_hour_utc)
        order by build_seq
        """,
        [first_hour_utc, last_hour_utc],
    ).fetchall()
    return [Batch(*row) for row in rows]


def stored_rows(warehouse: Warehouse, model: str, batches: Sequence[Batch], has_recomputed: bool, recomputed: str) -> str | None:
    """SQL for the current rows of a stored model over some batches; None without a batch.

    `recomputed` names the table of RAID-hours that were computed more than once.
    """
    if not batches:
        return None
    files = ", ".join(quoted(batch.folder(warehouse) / f"{model}.parquet") for batch in batches)
    rows = f"select stored.* from read_parquet([{files}]) as stored"
    if has_recomputed:
        rows += (
            f" where not exists (select 1 from {recomputed} as recomputed where recomputed.raid_group_id = stored.raid_group_id"
            " and recomputed.hour_utc = stored.hour_utc and recomputed.build_seq > stored.build_seq)"
        )
    return rows


def whole_store(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, recomputed: str) -> dict[str, str]:
    """SQL for all current rows of every stored model, by model; typed and empty while nothing is stored.

    Expects `connection` to be at the build database, after at least one batch was computed.
    """
    batches = live_batches(connection)
    (stale,) = connection.execute("select count(*) from state.recomputed").fetchone() or (0,)
    found = {}
    for model in STORED_MODELS:
        rows = stored_rows(warehouse, model, batches, stale > 0, recomputed)
        if rows is None:
            columns = connection.execute(
                """
                select column_name, data_type from duckdb_columns()
                where schema_name = 'intermediate' and table_name = ? order by column_index
                """,
                [model],
            ).fetchall()
            rows = "select " + ", ".join(f'cast(null as {kind}) as "{name}"' for name, kind in columns) + " where false"
        found[model] = rows
    return found


def commit_batch(connection: duckdb.DuckDBPyConnection, batch: Batch) -> int:
    """Enter a batch whose files are written, and retire the RAID-hours it computed again; one transaction.

    Expects the views intermediate.int_raid_hours and intermediate.int_raid_hours__touched of this batch and
    plan.stored_raid_hours (raid_group_id, hour_utc, build_seq) of the batches before it.
    Returns: RAID-hours in the batch; a batch without any is not entered.
    """
    connection.execute("begin")
    connection.execute(
        """
        create or replace temp table again as
        select stored.raid_group_id, stored.hour_utc, stored.build_seq
        from plan.stored_raid_hours as stored
        inner join intermediate.int_raid_hours__touched as touched
            on stored.raid_group_id = touched.raid_group_id and stored.hour_utc = touched.hour_utc
        where touched.hour_utc between ? and ?
        """,
        [batch.first_hour_utc, batch.last_hour_utc],
    )
    connection.execute(
        """
        delete from state.recomputed using again
        where recomputed.raid_group_id = again.raid_group_id and recomputed.hour_utc = again.hour_utc
        """
    )
    connection.execute("insert into state.recomputed select raid_group_id, hour_utc, ? from again", [batch.build_seq])
    connection.execute(
        """
        update state.batches set live_raid_hour_count = live_raid_hour_count - stale.raid_hour_count
        from (select build_seq, count(*) as raid_hour_count from again group by build_seq) as stale
        where batches.build_seq = stale.build_seq
        """
    )
    (count,) = connection.execute("select count(*) from intermediate.int_raid_hours").fetchone() or (0,)
    if count:
        connection.execute(
            "insert into state.batches values (?, ?, ?, ?, ?)",
            [batch.build_seq, batch.first_hour_utc, batch.last_hour_utc, count, count],
        )
    # an entry matters only while an older batch still holds rows of its hour
    connection.execute(
        """
        delete from state.recomputed
        where not exists (
            select 1 from state.batches
            where batches.live_raid_hour_count > 0 and batches.build_seq < recomputed.build_seq
                and recomputed.hour_utc between batches.first_hour_utc and batches.last_hour_utc
        )
        """
    )
    connection.execute("drop table again")
    connection.execute("commit")
    return int(count)

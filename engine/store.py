"""The store: what the models computed, as immutable Parquet files, one folder per batch.

A batch never changes. Two sorts of models are stored.

Rows by RAID-hour: when a late record touches a RAID-hour, a newer batch computes it again, and the older batch's rows
of it are left out by `state.recomputed` (raid_group_id, hour_utc, build_seq of the newest). So a late row costs what
its RAID-hours weigh, and a reader of an older publication goes on reading what it saw
(docs/decisions/0002-stored-by-raid-hour.md).

Counts by day: they add up, so a batch writes the days it touches anew: what they held before, plus what it computed,
less what it computed again; `state.days` names the batch that holds a day (docs/decisions/0004-counts-by-day.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.warehouse import Warehouse, quoted

RAID_HOUR_MODELS = (
    "int_drive_hours", "int_raid_hours", "int_drive_hours__slow", "int_drive_hours__outlying", "int_raid_hours__counterfactual",
)  # fmt: skip
DAY_MODELS = ("int_drive_days", "int_imbalanced_days", "int_raid_group_days", "int_day_counts", "int_clock_hours", "int_sampled_days")
STORED_MODELS = (*RAID_HOUR_MODELS, *DAY_MODELS)

SCHEMA = """
create schema if not exists state;
create table if not exists state.finished_deliveries (delivery_seq bigint primary key);
create table if not exists state.batches (
    build_seq bigint primary key, first_hour_utc timestamp, last_hour_utc timestamp,
    raid_hour_count bigint, live_raid_hour_count bigint
);
create table if not exists state.project (version varchar);
create table if not exists state.kept_batches (build_seq bigint primary key, version varchar);
create table if not exists state.recomputed (raid_group_id varchar, hour_utc timestamp, build_seq bigint);
create table if not exists state.days (day_utc date primary key, build_seq bigint);
create table if not exists state.counted_drives (
    drive_id varchar, kind varchar, timezone varchar, deployed_on date, drive_class varchar
);
create table if not exists state.counted_raid_groups (raid_group_id varchar, kind varchar);
create table if not exists state.counted_aliases (alias varchar, drive_id varchar, from_hour_utc timestamp, to_hour_utc timestamp);
create table if not exists state.counted_periods (
    drive_id varchar, raid_group_id varchar, role varchar, is_mapped boolean, from_hour_utc timestamp, to_hour_utc timestamp
);
"""


@dataclass(frozen=True)
class Batch:
    """One batch of the store: RAID-hours from first_hour_utc to last_hour_utc (UTC, inclusive)."""

    build_seq: int
    first_hour_utc: datetime
    last_hour_utc: datetime

    def folder(self, warehouse: Warehouse) -> Path:
        """Where its files lie."""
        return _folder(warehouse, self.build_seq)


def _folder(warehouse: Warehouse, build_seq: int) -> Path:
    return warehouse.store / f"batch-{build_seq:06d}"


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


def needed_folders(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse) -> list[str]:
    """Names of the store's folders that hold a current row."""
    days = connection.execute("select distinct build_seq from state.days").fetchall()
    needed = {batch.build_seq for batch in live_batches(connection)} | {row[0] for row in days}
    return [_folder(warehouse, build_seq).name for build_seq in sorted(needed)]


def current_rows(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    manifest: Any,
    model: str,
    *,
    schema: str = "state",
    batches: Sequence[Batch] | None = None,
    days: tuple[date, date] | None = None,
) -> str:
    """SQL for the current rows of a stored model, of all batches or some, all days or a span; typed and empty where nothing is stored.

    `schema` holds the tables `recomputed` and `days` when the SQL is run; `connection` is at the build database.
    """
    if model in DAY_MODELS:
        rows = _day_rows(connection, warehouse, model, schema, days)
    else:
        rows = _raid_hour_rows(connection, warehouse, model, live_batches(connection) if batches is None else batches, schema)
    return rows or _no_rows(manifest, model)


def _raid_hour_rows(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, model: str, batches: Sequence[Batch], schema: str
) -> str | None:
    if not batches:
        return None
    files = _files(connection, warehouse, model, [batch.build_seq for batch in batches])
    if files is None:
        return None
    rows = f"select stored.* from {files} as stored"
    (stale,) = connection.execute("select count(*) from state.recomputed").fetchone() or (0,)
    if stale:
        rows += (
            f" where not exists (select 1 from {schema}.recomputed as recomputed where recomputed.raid_group_id = stored.raid_group_id"
            " and recomputed.hour_utc = stored.hour_utc and recomputed.build_seq > stored.build_seq)"
        )
    return rows


def _day_rows(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, model: str, schema: str, days: tuple[date, date] | None
) -> str | None:
    first, last = days or (None, None)
    batches = connection.execute(
        "select distinct build_seq from state.days where day_utc between coalesce(?, day_utc) and coalesce(?, day_utc) order by build_seq",
        [first, last],
    ).fetchall()
    if not batches:
        return None
    files = _files(connection, warehouse, model, [build_seq for (build_seq,) in batches])
    if files is None:
        return None
    rows = (
        f"select stored.* from {files} as stored"
        f" inner join {schema}.days as days on stored.day_utc = days.day_utc and stored.build_seq = days.build_seq"
    )
    return rows if days is None else f"{rows} where stored.day_utc between date '{first}' and date '{last}'"


def _files(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, model: str, build_seqs: Sequence[int]) -> str | None:
    """SQL for a model's files of some batches.

    What is kept of a pruned past may be of other models: then by name, a new column null, a new model without rows; None without any file.
    """
    (others,) = connection.execute(
        "select count(*) from state.kept_batches as kept, state.project where kept.version <> project.version"
    ).fetchone() or (0,)
    files = [_folder(warehouse, build_seq) / f"{model}.parquet" for build_seq in build_seqs]
    if others:
        files = [file for file in files if file.exists()]
    if not files:
        return None
    paths = ", ".join(map(quoted, files))
    return f"read_parquet([{paths}]{', union_by_name = true' if others else ''})"


def _no_rows(manifest: Any, model: str) -> str:
    node = manifest.nodes[f"model.drivetail.{model}"]
    columns = ", ".join(f'cast(null as {column.data_type}) as "{name}"' for name, column in node.columns.items())
    return f"select {columns} where false"


def whole_store(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, manifest: Any, schema: str) -> dict[str, str]:
    """SQL for all current rows of every stored model, by model; see current_rows()."""
    return {model: current_rows(connection, warehouse, manifest, model, schema=schema) for model in STORED_MODELS}


def remember_kinds(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep what drives and RAID groups counted as, and which drives hosts saw where: the next build counts again what has changed."""
    connection.execute("begin")
    for table, columns, model in (
        ("counted_drives", "drive_id, kind, timezone, deployed_on, drive_class", "intermediate.int_drives__kinds"),
        ("counted_raid_groups", "raid_group_id, kind", "intermediate.int_raid_groups__kinds"),
        ("counted_aliases", "alias, drive_id, from_hour_utc, to_hour_utc", "intermediate.int_aliases__periods"),
        (
            "counted_periods",
            "drive_id, raid_group_id, coalesce(role, 'data') as role, is_mapped, from_hour_utc, to_hour_utc",
            "intermediate.int_drives__host_periods",
        ),
    ):
        connection.execute(f"create or replace table state.{table} as select {columns} from {model}")
    connection.execute("commit")


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
    connection.execute(
        """
        insert or replace into state.days
        select cast(day as date), ? from generate_series(cast(cast(? as date) as timestamp), ?, interval 1 day) as span (day)
        where ? > 0 or (select count(*) from again) > 0
        """,
        [batch.build_seq, batch.first_hour_utc, batch.last_hour_utc, count],
    )
    forget_settled_recomputations(connection)
    connection.execute("drop table again")
    connection.execute("commit")
    return int(count)


def forget_settled_recomputations(connection: duckdb.DuckDBPyConnection) -> None:
    """Take out of state.recomputed what matters no more: an entry does only while an older batch still holds rows of its hour."""
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

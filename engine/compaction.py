"""Compaction: the many small batches of a day that is over become one.

An hourly build leaves a batch an hour; a reader of months would open thousands of small files. No file is changed: the rows that
still count are written as a new batch, the state names it in place of the old ones in one transaction, and the old folders go when
no publication needs them (docs/decisions/0002-stored-by-raid-hour.md). A batch that reaches over several days is left as it is.
"""

from __future__ import annotations

import shutil
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.store import DAY_MODELS, RAID_HOUR_MODELS, Batch, current_rows, forget_settled_recomputations, live_batches
from engine.warehouse import Warehouse, quoted
from ingest.raw.durable import sync


def compact(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, manifest: Any, next_build_seq: int) -> int:
    """Compact every day before the last one that has two batches of its own or more; call it inside `only_builder`.

    connection: to the build database. Returns: how many days were compacted.
    """
    days: dict[date, list[Batch]] = {}
    batches = live_batches(connection)
    for batch in batches:
        if batch.first_hour_utc.date() == batch.last_hour_utc.date():
            days.setdefault(batch.first_hour_utc.date(), []).append(batch)
    last = max((batch.last_hour_utc.date() for batch in batches), default=None)
    compacted = 0
    for day, small in sorted(days.items()):
        if day != last and len(small) > 1:  # the last day is still growing
            _merge(warehouse, connection, manifest, day, small, next_build_seq + compacted)
            compacted += 1
    return compacted


def _merge(
    warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, manifest: Any, day: date, small: list[Batch], build_seq: int
) -> None:
    """Write one day's batches as one and enter it in their place."""
    merged = Batch(build_seq, min(batch.first_hour_utc for batch in small), max(batch.last_hour_utc for batch in small))
    folder = merged.folder(warehouse)
    replaced = [batch.build_seq for batch in small]
    (held_by,) = connection.execute("select max(build_seq) from state.days where day_utc = ?", [day]).fetchone() or (None,)
    sources = {model: current_rows(connection, warehouse, manifest, model, batches=small) for model in RAID_HOUR_MODELS}
    if held_by in replaced:
        sources |= {model: current_rows(connection, warehouse, manifest, model, days=(day, day)) for model in DAY_MODELS}
    write_batch(warehouse, connection, merged, sources)
    warehouse.note("compact", day=day, batches=len(small), batch=build_seq)
    (count,) = connection.execute(f"select count(*) from read_parquet({quoted(folder / 'int_raid_hours.parquet')})").fetchone() or (0,)
    connection.execute("begin")
    connection.execute("delete from state.batches where build_seq in (select unnest(?))", [replaced])
    span: list[datetime] = [merged.first_hour_utc, merged.last_hour_utc]
    connection.execute("insert into state.batches values (?, ?, ?, ?, ?)", [build_seq, *span, count, count])
    if held_by in replaced:
        connection.execute("update state.days set build_seq = ? where day_utc = ?", [build_seq, day])
    forget_settled_recomputations(connection)
    connection.execute("commit")


def write_batch(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, batch: Batch, sources: dict[str, str]) -> None:
    """Write the files of a batch, by model the SQL of its rows, and sync them; the state does not name it yet."""
    folder = batch.folder(warehouse)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for model, rows in sources.items():
        write_rows(
            connection, f"select * replace (cast({batch.build_seq} as bigint) as build_seq) from ({rows})", folder / f"{model}.parquet"
        )
    sync(folder)


def write_rows(connection: duckdb.DuckDBPyConnection, rows: str, path: Path) -> None:
    """Write the rows of a query as a file of the store."""
    connection.execute(f"copy ({rows}) to {quoted(path)} (format parquet, compression zstd, compression_level 1)")
    sync(path)

"""Raw tables as views for `drivetail status`, which runs without dbt; models get theirs from macros/raw/register_raw.sql."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import polars as pl

from engine.warehouse import quoted
from ingest.contract.fleet import IDENTITY, INGESTED_FILES, RAW, REJECTED_RECORDS, RETIRED
from ingest.contract.values import RAW_KINDS, TIMED
from ingest.raw.store import Delivery, drive_hour_files, source_of, table_files

TABLES: dict[str, dict[str, pl.DataType]] = {
    **{kind: {**RAW[kind], **IDENTITY[kind]} for kind in RAW_KINDS},
    **{f"retired_{kind}": RETIRED[kind] for kind in RAW_KINDS},
    "rejected_records": REJECTED_RECORDS,
    "ingested_files": INGESTED_FILES,
}
SQL_TYPES: dict[pl.DataType, str] = {
    pl.String(): "string",
    pl.Int64(): "bigint",
    pl.Float64(): "double",
    pl.Date(): "date",
    pl.Datetime("us"): "timestamp",
    pl.Boolean(): "boolean",
}


def point(connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[Path]) -> None:
    """Make raw.<table> show some files of it; without a file, no rows of the right types."""
    if files:
        # a source that names drives and RAID groups itself writes no columns to say so
        itself = [path for path in files if source_of(path) is None]
        from_hosts = [path for path in files if source_of(path) is not None]
        said = "".join(f', cast(null as {SQL_TYPES[kind]}) as "{name}"' for name, kind in IDENTITY.get(table, {}).items())
        sides = [f"select *{said} from {_parquet(itself)}"] if itself else []
        sides += [f"select * from {_parquet(from_hosts)}"] if from_hosts else []
        rows = " union all by name ".join(sides)
    else:
        columns = ", ".join(f'cast(null as {SQL_TYPES[kind]}) as "{name}"' for name, kind in TABLES[table].items())
        rows = f"select {columns} where false"
    connection.execute(f'create or replace view raw."{table}" as {rows}')


def _parquet(files: Sequence[Path]) -> str:
    # a folder above the warehouse such as drive_id=x is no column of the file
    return f"read_parquet([{', '.join(map(quoted, files))}], hive_partitioning = false)"


def point_whole_tables(connection: duckdb.DuckDBPyConnection, deliveries: Iterable[Delivery]) -> None:
    """Make every raw table but the drive-hours a view over all deliveries."""
    deliveries = list(deliveries)
    for table in TABLES:
        if table in TIMED and table != "drive_hours":
            point(connection, table, [path for delivery in deliveries for path in drive_hour_files(delivery, record_kind=table)])
        elif table != "drive_hours":
            point(connection, table, table_files(deliveries, table))

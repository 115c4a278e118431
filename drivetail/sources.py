"""The raw sources of the models: views in schema `raw` over files of the raw store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import polars as pl

from drivetail.warehouse import quoted
from ingest.raw_store import Delivery, table_files
from ingest.schema import INGESTED_FILES, RAW, RECORD_KINDS, REJECTED_RECORDS, RETIRED

TABLES: dict[str, dict[str, pl.DataType]] = {
    **RAW,
    **{f"retired_{kind}": RETIRED[kind] for kind in RECORD_KINDS},
    "rejected_records": REJECTED_RECORDS,
    "ingested_files": INGESTED_FILES,
}
_SQL_TYPES: dict[pl.DataType, str] = {
    pl.String(): "varchar",
    pl.Int64(): "bigint",
    pl.Float64(): "double",
    pl.Date(): "date",
    pl.Datetime("us"): "timestamp",
}


def point(connection: duckdb.DuckDBPyConnection, view: str, table: str, files: Sequence[Path]) -> None:
    """Make raw.<view> show some files of a raw table; with none, no rows of the right types."""
    if files:
        rows = f"select * from read_parquet([{', '.join(map(quoted, files))}])"
    else:
        columns = ", ".join(f'cast(null as {_SQL_TYPES[kind]}) as "{name}"' for name, kind in TABLES[table].items())
        rows = f"select {columns} where false"
    connection.execute(f'create or replace view raw."{view}" as {rows}')


def point_whole_tables(connection: duckdb.DuckDBPyConnection, deliveries: Iterable[Delivery]) -> None:
    """Point every raw table but the drive-hours at all deliveries; drive-hours are pointed at by the hours at work."""
    deliveries = list(deliveries)
    for table in TABLES:
        if table != "drive_hours":
            point(connection, table, table, table_files(deliveries, table))

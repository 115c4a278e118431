"""The raw sources of the models: views in schema `raw` over files of the raw store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import polars as pl

from engine.warehouse import quoted
from ingest.contract.fleet import IDENTITY, INGESTED_FILES, RAW, RAW_KINDS, REJECTED_RECORDS, RETIRED
from ingest.raw.store import Delivery, drive_hour_files, source_of, table_files

TABLES: dict[str, dict[str, pl.DataType]] = {
    **{kind: {**RAW[kind], **IDENTITY[kind]} for kind in RAW_KINDS},
    **{f"retired_{kind}": RETIRED[kind] for kind in RAW_KINDS},
    "rejected_records": REJECTED_RECORDS,
    "ingested_files": INGESTED_FILES,
}
_SQL_TYPES: dict[pl.DataType, str] = {
    pl.String(): "varchar",
    pl.Int64(): "bigint",
    pl.Float64(): "double",
    pl.Date(): "date",
    pl.Datetime("us"): "timestamp",
    pl.Boolean(): "boolean",
}

DECISION_COLUMNS = {
    "drive_id": "varchar", "verdict": "varchar", "by": "varchar", "at": "timestamp", "note": "varchar", "until": "timestamp",
    "publication_id": "varchar",
}  # fmt: skip
"""What a line of the register of decisions holds."""


def point(connection: duckdb.DuckDBPyConnection, view: str, table: str, files: Sequence[Path], where: str = "") -> None:
    """Make raw.<view> show some files of a raw table, or those of their rows; without a file, no rows of the right types."""
    if files:
        # a source that names drives and RAID groups itself writes no columns to say so
        itself = [path for path in files if source_of(path) is None]
        from_hosts = [path for path in files if source_of(path) is not None]
        said = "".join(f', cast(null as {_SQL_TYPES[kind]}) as "{name}"' for name, kind in IDENTITY.get(table, {}).items())
        sides = [f"select *{said} from {_parquet(itself)}"] if itself else []
        sides += [f"select * from {_parquet(from_hosts)}"] if from_hosts else []
        rows = " union all by name ".join(sides)
        if where:
            rows = f"select * from ({rows}) where {where}"
    else:
        columns = ", ".join(f'cast(null as {_SQL_TYPES[kind]}) as "{name}"' for name, kind in TABLES[table].items())
        rows = f"select {columns} where false"
    connection.execute(f'create or replace view raw."{view}" as {rows}')


def _parquet(files: Sequence[Path]) -> str:
    return f"read_parquet([{', '.join(map(quoted, files))}])"


def point_at_decisions(connection: duckdb.DuckDBPyConnection, register: Path) -> None:
    """Make raw.decisions show the register of decisions as it is whenever it is read: a decision counts at once, without a build.

    A line that a killed writer left without its end is no decision. The file is made where there is none yet.
    """
    if not register.exists():
        register.touch()
    columns = ", ".join(f'"{name}": {quoted(kind)}' for name, kind in DECISION_COLUMNS.items())
    connection.execute(
        f"""
        create or replace view raw.decisions as
        select
            row_number() over () as decision_seq,
            drive_id, verdict, "by" as decided_by, "at" as decided_at, note, "until" as until_utc, publication_id
        from read_json({quoted(register)}, format = 'newline_delimited', ignore_errors = true, columns = {{{columns}}})
        """
    )


def point_whole_tables(connection: duckdb.DuckDBPyConnection, deliveries: Iterable[Delivery]) -> None:
    """Point every raw table but the drive-hours at all deliveries; drive-hours are pointed at by the hours at work."""
    deliveries = list(deliveries)
    for table in TABLES:
        if table == "drive_samples":
            point(connection, table, table, [path for delivery in deliveries for path in drive_hour_files(delivery, record_kind=table)])
        elif table != "drive_hours":
            point(connection, table, table, table_files(deliveries, table))

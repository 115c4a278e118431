"""Whether two answers to the same day are the same."""

from __future__ import annotations

import duckdb

TOLERANCE = 1e-9


def relation(path: str, register: str = "") -> str:
    """SQL for a file of drive-hours (drive_id, hour_utc, slowdown); with a register, whole numbers become drive_ids again."""
    rows = f"(select drive_id, hour_utc, slowdown from read_parquet('{path}'))"
    if register:
        rows = (
            f"(select r.drive_id, hour_utc, slowdown from {rows} as h inner join read_parquet('{register}') as r on h.drive_id = r.number)"
        )
    return rows


def compare_slowdowns(one: str, other: str, connection: duckdb.DuckDBPyConnection | None = None) -> tuple[int, int]:
    """Compare S of two relations (SQL), row by row. Returns: rows of either, rows that differ by more than 1e-9 (relative).

    NaN counts as null (pandas knows no difference), and so does a row that only one has: a mart leaves out groups too small to compare.
    """
    query = f"""
        select count(*), count(*) filter (
            nullif(a.slowdown, 'nan') is distinct from nullif(b.slowdown, 'nan')
            and not coalesce(abs(a.slowdown - b.slowdown) <= {TOLERANCE} * greatest(1, abs(a.slowdown)), false)
        )
        from {one} as a
        full join {other} as b on a.drive_id = b.drive_id and a.hour_utc = b.hour_utc
    """
    rows, differing = (connection or duckdb.connect()).execute(query).fetchall()[0]
    return int(rows), int(differing)

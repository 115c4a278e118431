"""The newest probe of each drive (`drivetail confirm`) in one line."""

from __future__ import annotations

import duckdb

from engine.read import fetch


def newest_probes(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Drive -> when it was probed last, and what that showed; empty where an earlier release published nothing of it."""
    there = "select 1 from information_schema.tables where table_schema = 'marts' and table_name = 'fct_drive_probes'"
    if not connection.execute(there).fetchall():
        return {}
    rows = fetch(connection, "select drive_id, probed_at, evidence from marts.fct_drive_probes where is_newest")
    return {row["drive_id"]: f"Probe of {row['probed_at']:%Y-%m-%d %H:%M} UTC: {row['evidence']}" for row in rows}

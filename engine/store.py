"""The store: what each stored model holds of each UTC day, one immutable Parquet file a model and day.

`STORE/<model>/day_utc=YYYY-MM-DD/<build>.0.parquet`; the table `plan.files` of the build database says which file of a day is live
(docs/decisions/0002-the-day-is-the-unit.md). engine/execute.py writes both.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb

from engine.warehouse import Warehouse


def day_folder(store: Path, model: str, day: date) -> Path:
    """Where the files of a model's day are in the store, or in Spark's folder."""
    return store / model / f"day_utc={day.isoformat()}"


def live_files(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Paths of the files that hold what is stored now."""
    return {str(warehouse.store / file) for (file,) in connection.execute("select file from plan.files").fetchall()}


def remove_files(warehouse: Warehouse, kept: set[str]) -> None:
    """Remove every file of the store but those of the paths in `kept`, and folders that are empty then."""
    for folder in warehouse.store.glob("*/day_utc=*"):
        for path in folder.iterdir():
            if str(path) not in kept:
                path.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()

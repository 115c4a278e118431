"""`WAREHOUSE/raw/toleraid/`: a folder for each distribution and each run of `drivetail toleraid`, which appears whole and never changes.

Publications show the folders that are there when they are read, so a run counts at once, without a build. Models: models/lab/.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.warehouse import Warehouse
from ingest.raw.durable import put_folder

TEXT, COUNT, REAL, TIME = pa.string(), pa.int64(), pa.float64(), pa.timestamp("us")

TABLES = {
    "slowdown_distributions": pa.schema(
        {
            "distribution_id": TEXT, "name": TEXT, "kind": TEXT, "source": TEXT, "sha256": TEXT, "built_at": TIME, "publication_id": TEXT,
            "width": COUNT, "vectors": COUNT, "parameters": TEXT,
        }
    ),
    "slowdown_vectors": pa.schema({"distribution_id": TEXT, "vector": COUNT, "s": pa.list_(REAL), "weight": REAL}),
    "tolerance_runs": pa.schema(
        {
            "run_id": TEXT, "policy": TEXT, "distribution_id": TEXT, "created_at": TIME,
            "data_drives": COUNT, "parity": COUNT, "layout": TEXT, "st": REAL, "sr": COUNT, "jitter": TEXT, "arrivals": TEXT, "seed": COUNT,
            "requests": COUNT, "partial_requests": COUNT, "requests_from_2": COUNT, "requests_above_3": COUNT,
            "mean_slowdown": REAL, "p90": REAL, "p95": REAL, "p99": REAL, "p999": REAL, "max": REAL,
            "extra_reads": COUNT, "reactive_triggers": COUNT, "proactive_seconds": REAL,
        }
    ),
    "tolerance_curves": pa.schema({"run_id": TEXT, "policy": TEXT, "x": REAL, "requests_up_to": COUNT, "requests_below": COUNT}),
}  # fmt: skip
"""The tables; macros/raw/register_raw.sql makes each a view over the files of its name."""

EMPTY = "none"
"""The folder without a row: publications have something to read before the first run."""


def folder_of(warehouse: Warehouse, name: str) -> Path:
    """Where a distribution or a run is kept."""
    return warehouse.raw / "toleraid" / name


def make_empty(warehouse: Warehouse) -> None:
    """Make the folder without a row, where it is missing."""
    if folder_of(warehouse, EMPTY).exists():  # else every build pays for pandas, which empty tables import
        return
    keep(warehouse, EMPTY, {name: schema.empty_table() for name, schema in TABLES.items()})


def keep(warehouse: Warehouse, name: str, tables: Mapping[str, pa.Table]) -> None:
    """Write a folder of tables by one rename; one that is there stays as it is."""
    folder = folder_of(warehouse, name)
    if folder.exists():
        return
    draft = warehouse.raw / f".toleraid-{name}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        for table, rows in tables.items():
            pq.write_table(rows, draft / f"{table}.parquet", compression="zstd")
        folder.parent.mkdir(exist_ok=True)
        put_folder(draft, folder)
    except OSError:
        if not folder.exists():  # else another process has kept the same meanwhile
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)

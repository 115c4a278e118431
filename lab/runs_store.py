"""`WAREHOUSE/raw/toleraid/`: a folder for each distribution and each run of `drivetail toleraid`, which appears whole and never changes.

Publications show the folders that are there when they are read, so a run counts at once, without a build. Models: lab/models/toleraid/.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.warehouse import Warehouse
from ingest.raw.durable import put_folder

if TYPE_CHECKING:
    import pyarrow as pa

EMPTY = "none"
"""The folder without a row: publications have something to read before the first run."""


@cache
def tables() -> dict[str, pa.Schema]:
    """The tables; lab/plugin.py makes each a view over the files of its name."""
    import pyarrow as pa  # a tenth of a second, which builds need not pay for

    text, count, real, time = pa.string(), pa.int64(), pa.float64(), pa.timestamp("us")
    return {
        "slowdown_distributions": pa.schema(
            {
                "distribution_id": text, "name": text, "kind": text, "source": text, "sha256": text, "built_at": time,
                "publication_id": text,
                "width": count, "vectors": count, "parameters": text,
            }
        ),
        "slowdown_vectors": pa.schema({"distribution_id": text, "vector": count, "s": pa.list_(real), "weight": real}),
        "tolerance_runs": pa.schema(
            {
                "run_id": text, "policy": text, "distribution_id": text,
                "created_at": time,
                "data_drives": count, "parity": count, "layout": text, "st": real, "sr": count,
                "jitter": text, "arrivals": text, "seed": count,
                "requests": count, "partial_requests": count, "requests_from_2": count, "requests_above_3": count,
                "mean_slowdown": real, "p90": real, "p95": real, "p99": real, "p999": real, "max": real,
                "extra_reads": count, "reactive_triggers": count, "proactive_seconds": real,
            }
        ),
        "tolerance_curves": pa.schema({"run_id": text, "policy": text, "x": real, "requests_up_to": count, "requests_below": count}),
    }  # fmt: skip


def toleraid_root(warehouse: Warehouse) -> Path:
    """Where distributions and runs are kept."""
    return warehouse.raw / "toleraid"


def folder_of(warehouse: Warehouse, name: str) -> Path:
    """Where a distribution or a run is kept."""
    return toleraid_root(warehouse) / name


def make_empty(warehouse: Warehouse) -> None:
    """Make the folder without a row, where it is missing."""
    if folder_of(warehouse, EMPTY).exists():
        return
    import pyarrow as pa

    # Schema.empty_table() would import pandas
    keep(warehouse, EMPTY, {name: pa.Table.from_batches([], schema) for name, schema in tables().items()})


def keep(warehouse: Warehouse, name: str, rows: Mapping[str, pa.Table]) -> None:
    """Write a folder of tables by one rename; one that is there stays as it is."""
    import pyarrow.parquet as pq

    folder = folder_of(warehouse, name)
    if folder.exists():
        return
    draft = warehouse.raw / f".toleraid-{name}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        for table, content in rows.items():
            pq.write_table(content, draft / f"{table}.parquet", compression="zstd")
        folder.parent.mkdir(exist_ok=True)
        put_folder(draft, folder)
    except OSError:
        if not folder.exists():  # else another process has kept the same meanwhile
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)

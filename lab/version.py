"""The models of the lab, and which definitions made what is kept."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from engine.compiled import models_of
from engine.nodes import Models

LAB = Path(__file__).parent
"""The dbt project of the lab."""


@cache
def lab_version() -> str:
    """Changes when a definition of the lab does, or a function that its models call: then every experiment is computed again."""
    functions = (LAB / "statistics.py").read_bytes()
    return hashlib.sha256(models_of(project=LAB).version.encode() + functions).hexdigest()


def lab_models() -> Models:
    """The models, over sources with the columns that are written."""
    return replace(models_of(project=LAB), sources=source_columns())


def source_columns() -> dict[str, dict[str, str]]:
    """Columns and types of what is kept of bundles and of runs of ToleRAID, by its name in SQL (models/_sources.yml)."""
    import polars as pl

    from ingest.contract.fleet import SQL_TYPES
    from lab import runs_store
    from lab.contract import COUNT, FILES, MANIFEST, REAL, TEXT
    from lab.tools import tables

    types = {**SQL_TYPES, pl.List(REAL): "double[]"}
    keys = {"experiment_id": TEXT, "delivery_seq": COUNT}
    found = {f"lab_raw.{table}": {**keys, "revision": COUNT, **columns} for table, columns in MANIFEST.items()}
    found["lab_raw.files"] = {**keys, **FILES}
    found |= {f"lab_raw.{table}": {**keys, "listing": COUNT, **columns} for table, columns in tables().items()}
    found |= {f"raw.{table}": dict(pl.DataFrame(schema.empty_table()).schema) for table, schema in runs_store.tables().items()}
    return {table: {name: types[kind] for name, kind in columns.items()} for table, columns in found.items()}

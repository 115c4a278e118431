"""The sources of the lab are declared as tools and manifests fill them."""

from __future__ import annotations

import polars as pl

from engine.compiled import models_of
from lab.contract import COUNT, FILES, MANIFEST, TEXT
from lab.tools import tables
from lab.version import LAB
from tests.sql_types import SQL_TYPES

KEYS: dict[str, pl.DataType] = {"experiment_id": TEXT, "delivery_seq": COUNT}


def test_sources_have_the_columns_that_are_written() -> None:
    declared = {
        name.removeprefix("lab_raw."): columns for name, columns in models_of(project=LAB).sources.items() if name.startswith("lab_raw.")
    }
    written = {
        **{table: {**KEYS, "revision": COUNT, **columns} for table, columns in MANIFEST.items()},
        "files": {**KEYS, **FILES},
        **{table: {**KEYS, "listing": COUNT, **columns} for table, columns in tables().items()},
    }
    # a dict compares without order, and files are read by name
    assert declared == {table: {name: SQL_TYPES[kind] for name, kind in columns.items()} for table, columns in written.items()}

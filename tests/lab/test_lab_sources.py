"""The sources of the lab are declared as tools and manifests fill them."""

from __future__ import annotations

import polars as pl

from engine.dbt import Project
from engine.sources import SQL_TYPES
from engine.warehouse import PROJECT
from lab.contract import COUNT, FILES, MANIFEST, TEXT
from lab.tools import tables
from tests.once import parse_project

KEYS: dict[str, pl.DataType] = {"experiment_id": TEXT, "delivery_seq": COUNT}


def test_sources_have_the_columns_that_are_written() -> None:
    parse_project()
    manifest = Project.parsed("duckdb", PROJECT / "target" / "tests", PROJECT / "target" / "tests" / "logs")
    declared = {
        source.name: {name: column.data_type for name, column in source.columns.items()}
        for source in manifest.sources.values()
        if source.source_name == "lab"
    }
    written = {
        **{table: {**KEYS, "revision": COUNT, **columns} for table, columns in MANIFEST.items()},
        "files": {**KEYS, **FILES},
        **{table: {**KEYS, "listing": COUNT, **columns} for table, columns in tables().items()},
    }
    # a dict compares without order, and files are read by name
    assert declared == {table: {name: SQL_TYPES[kind] for name, kind in columns.items()} for table, columns in written.items()}

"""The layers of models/: sources -> staging -> intermediate -> marts. A model reads its own layer or an earlier one."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from engine.dbt import Project
from engine.sources import SQL_TYPES, TABLES
from engine.warehouse import PROJECT
from tests.once import parse_project

PREFIXES = {"staging": "stg_", "intermediate": "int_", "marts": "", "plan": "plan_", "lab": ""}


class Arrow(NamedTuple):
    """`model` of `layer` reads `parent`; parent_layer is `source` or `seed` where it is no model."""

    model: str
    layer: str
    parent: str
    parent_layer: str


def layer_of(node: Any) -> str:
    """`staging`, `intermediate` or `marts` of a model, else `source` or `seed`."""
    return str(node.original_file_path.split("/")[1] if node.resource_type == "model" else node.resource_type)


@pytest.fixture(scope="module")
def arrows() -> list[Arrow]:
    """Every dependency of a model in the parsed project."""
    parse_project()
    manifest = Project.parsed("duckdb", PROJECT / "target" / "tests", PROJECT / "target" / "tests" / "logs")
    known = {**manifest.nodes, **manifest.sources}
    models = [node for node in manifest.nodes.values() if node.resource_type == "model"]
    return [
        Arrow(node.name, layer_of(node), known[parent].name, layer_of(known[parent])) for node in models for parent in node.depends_on.nodes
    ]


def several_tables(arrows: list[Arrow]) -> Iterator[str]:
    """Staging models that read more than one raw table. A table of retired records belongs to its table, or stands alone."""
    for model in {arrow.model for arrow in arrows if arrow.layer == "staging"}:
        tables = {arrow.parent for arrow in arrows if arrow.model == model}
        whole = {table for table in tables if not table.startswith("retired_")}
        if len(whole) > 1 or (whole and tables - whole - {f"retired_{table}" for table in whole}):
            yield model


def test_names_say_the_layer(arrows: list[Arrow]) -> None:
    for arrow in arrows:
        assert arrow.model.startswith(PREFIXES[arrow.layer]), arrow
        assert arrow.layer != "marts" or not arrow.model.startswith(("stg_", "int_")), arrow


def test_staging_reads_nothing_but_sources(arrows: list[Arrow]) -> None:
    assert not [arrow for arrow in arrows if arrow.layer == "staging" and arrow.parent_layer != "source"]


def test_a_staging_model_reads_one_raw_table(arrows: list[Arrow]) -> None:
    assert not list(several_tables(arrows))


def test_only_staging_reads_sources(arrows: list[Arrow]) -> None:
    assert not [arrow for arrow in arrows if arrow.parent_layer == "source" and arrow.layer not in {"staging", "plan", "lab"}]


def test_only_the_plan_knows_what_a_build_is(arrows: list[Arrow]) -> None:
    assert not [arrow for arrow in arrows if arrow.parent_layer == "plan" and arrow.layer != "plan"]


def test_only_marts_read_marts(arrows: list[Arrow]) -> None:
    assert not [arrow for arrow in arrows if arrow.parent_layer == "marts" and arrow.layer != "marts"]


def test_raw_tables_are_declared_as_ingest_writes_them() -> None:
    """The columns of _raw__sources.yml make the views of a table without a file: those that ingest writes, in the same types."""
    parse_project()
    manifest = Project.parsed("duckdb", PROJECT / "target" / "tests", PROJECT / "target" / "tests" / "logs")
    declared = {source.name: source.columns for source in manifest.sources.values() if source.source_name == "raw"}
    for table, columns in TABLES.items():
        types = {name: SQL_TYPES[kind] for name, kind in columns.items()}
        assert {name: column.data_type for name, column in declared[table].items()} == types


def test_a_slowdown_is_read_through_few_models(arrows: list[Arrow]) -> None:
    """Whoever asks how a slowdown is made opens these, from staging to the model that divides; what stores it adds nothing."""
    found = {"int_drive_hours__compared"}
    while more := {arrow.parent for arrow in arrows if arrow.model in found and arrow.parent_layer in PREFIXES} - found:
        found |= more
    assert len(found) <= 11, sorted(found)

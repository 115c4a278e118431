"""The layers of models/: sources -> staging -> intermediate -> marts. A model reads its own layer or an earlier one."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from engine.dbt import Project
from engine.warehouse import PROJECT
from tests.once import parse_project

PREFIXES = {"staging": "stg_", "intermediate": "int_", "marts": ""}

# Models outside staging that read a source. All of these read what the build plans or keeps (source `plan`) or the hours that have just
# arrived; each goes when a model computes whole days.
READ_A_SOURCE = {
    "int_aliases__changed", "int_clock_hours", "int_day_counts", "int_drive_days", "int_drive_hours", "int_drive_hours__windowed",
    "int_drive_samples", "int_drives__host_spans", "int_drives__own_spans", "int_drives__reassigned", "int_drives__reclassified",
    "int_drives__totals", "int_imbalanced_days", "int_raid_group_days", "int_raid_groups__reclassified", "int_raid_hours",
    "int_raid_hours__batch", "int_raid_hours__touched", "int_sampled_days", "fct_drive_slowness",
}  # fmt: skip

# Staging models of several raw tables: the build writes a publication's two halves separately.
READ_SEVERAL_TABLES = {"stg_raw__publication"}


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
    assert set(several_tables(arrows)) == READ_SEVERAL_TABLES


def test_only_staging_reads_sources(arrows: list[Arrow]) -> None:
    assert {arrow.model for arrow in arrows if arrow.parent_layer == "source" and arrow.layer != "staging"} == READ_A_SOURCE


def test_only_marts_read_marts(arrows: list[Arrow]) -> None:
    assert not [arrow for arrow in arrows if arrow.parent_layer == "marts" and arrow.layer != "marts"]

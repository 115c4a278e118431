"""The layers of models/: sources -> staging -> intermediate -> marts. A model reads its own layer or an earlier one."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from engine.compiled import models_of
from engine.nodes import SEED, STORED, VIEW
from engine.projects import built_models, projects, published_schemas
from engine.sources import EARLIER
from engine.thresholds import variables
from tests.proof.support import SUMS

READS = {
    "staging": {"source"},
    "intermediate": {"staging", "intermediate", "seed", "shown"},
    "marts": {"staging", "intermediate", "marts", "seed"},
    "plan": {"source", "staging", "intermediate", "plan", "seed"},
}
SHOWN = {"plan.shown_days", *EARLIER}
"""Sources that say which hours are computed just now, and what is stored beside them."""
PREFIXES = {"staging": "stg_", "intermediate": "int_", "marts": "", "plan": "plan_"}


class Arrow(NamedTuple):
    """`model` of `layer` reads `parent`; parent_layer is `source`, `shown` or `seed` where it is no model."""

    model: str
    layer: str
    parent: str
    parent_layer: str


@pytest.fixture(scope="module")
def arrows() -> list[Arrow]:
    models = models_of()
    layers = {node.relation: "seed" if node.made == SEED else node.path.split("/")[1] for node in models}
    return [
        Arrow(
            node.path.split("/")[-1].split(".")[0],
            layers[node.relation],
            parent.split(".")[1],
            layers.get(parent, "shown" if parent in SHOWN else "source"),
        )
        for node in models
        for parent in node.parents
    ]


def several_tables(arrows: list[Arrow]) -> Iterator[str]:
    """Staging models that read more than one raw table. A table of retired records belongs to its table, or stands alone."""
    for model in {arrow.model for arrow in arrows if arrow.layer == "staging"}:
        tables = {arrow.parent for arrow in arrows if arrow.model == model}
        whole = {table for table in tables if not table.startswith("retired_")}
        if len(whole) > 1 or (whole and tables - whole - {f"retired_{table}" for table in whole}):
            yield model


def test_model_names_begin_with_their_layer(arrows: list[Arrow]) -> None:
    for arrow in arrows:
        assert arrow.model.startswith(PREFIXES[arrow.layer]), arrow
        assert arrow.layer != "marts" or not arrow.model.startswith(("stg_", "int_")), arrow


def test_a_staging_model_reads_one_raw_table(arrows: list[Arrow]) -> None:
    assert not list(several_tables(arrows))


def test_a_model_reads_its_own_layer_or_an_earlier_one(arrows: list[Arrow]) -> None:
    """Only staging, and the plan, which knows what a build is, read sources; and what is added to a stored day, SHOWN."""
    assert not [arrow for arrow in arrows if arrow.parent_layer not in READS[arrow.layer]]


def test_a_slowdown_is_read_through_few_models(arrows: list[Arrow]) -> None:
    """The models that make a slowdown, from staging to the one that divides; the models that store it add nothing."""
    found = {"int_drive_hours__compared"}
    while more := {arrow.parent for arrow in arrows if arrow.model in found and arrow.parent_layer in PREFIXES} - found:
        found |= more
    assert len(found) <= 17, sorted(found)


def test_a_table_of_each_build_reads_no_table_of_each_day() -> None:
    """Else an alert would be a day old. What people decide from reads both, and is a view."""
    models = built_models({})
    late = {node.relation for node in models if node.made in ("each_day", "when_asked", "by_day_when_asked")}
    wrong = []
    for node in models:
        if node.made in ("each_build", "with_inventory", "with_days", "by_day"):
            read = set(models.above(node.parents))
            wrong += [(node.name, relation) for relation in sorted(read & late)]
    assert wrong == []


def test_only_hours_decisions_and_publications_are_views() -> None:
    """A mart is a table, so that reading it costs nothing; a view reads the store's files or what people decide at any time."""
    views = {node.name for node in models_of() if node.schema == "marts" and node.made == VIEW}
    assert views == {
        "fct_drive_days", "fct_drive_hours", "fct_drive_hours_described", "fct_drive_hour_io", "fct_raid_hours", "fct_drive_samples",
        "fct_drive_hour_latency",
        "fct_drive_decisions", "fct_drive_replacements", "replacement_candidates", "drive_actions", "publication",
        "relations",
    }  # fmt: skip


def test_marts_in_the_contracts_sums_are_made_by_every_build() -> None:
    """Or are views of its files: so the sums hold in each publication, within a day too."""
    summed = {name for sides in SUMS.values() for side in sides for name in re.findall(r"marts\.(\w+)", side)}
    made = {node.name: node.made for node in models_of() if node.schema == "marts"}
    assert {name: made[name] for name in summed if made[name] not in ("each_build", VIEW)} == {}


def test_marts_holds_what_is_promised() -> None:
    marts = {node.name for node in built_models({}) if node.schema == "marts"}
    promised = {
        "dim_drives", "dim_raid_groups", "fct_drive_hours", "fct_raid_hours", "fct_slowdown_intervals", "fct_slowdown_arrivals",
        "fct_drive_slowness", "fct_drive_transitions", "fct_drive_events", "fct_unplug_episodes", "study_results", "study_curves",
        "rejected_records", "ingested_files", "publication",
    }  # fmt: skip
    assert promised <= marts
    assert all(node.has_contract for node in built_models({}) if node.schema in published_schemas())


def test_the_fleet_reads_nothing_of_a_project_and_no_project_of_another() -> None:
    """Nor does one that makes its relations by itself read the fleet's."""
    models = {project.NAME: models_of(project=project.FOLDER) for project in projects()} | {"": models_of()}
    for project in projects():
        own = models[project.NAME]
        relations = {node.relation for node in own} | (set() if project.READS_FLEET else set(own.sources))
        for name, others in models.items():
            if name != project.NAME:
                assert relations & ({node.relation for node in others} | set(others.sources)) == set()
                assert [node.name for node in others if re.search(rf"\b{project.SCHEMA}\.", node.sql)] == []
        fleet = {node.schema for node in models[""]} - {"seeds"}
        assert project.READS_FLEET or not [node.name for node in own if any(re.search(rf"\b{each}\.", node.sql) for each in fleet)]


def test_relations_and_values_of_the_fleet_that_a_project_states_are_there() -> None:
    for project in projects():
        if project.READS_FLEET:
            assert set(models_of(project=project.FOLDER).sources) <= models_of().by_relation.keys()
            shared = variables().keys() & variables(project.FOLDER).keys()
            assert {name: variables(project.FOLDER)[name] for name in shared} == {name: variables()[name] for name in shared}


def test_stored_models_have_a_day() -> None:
    assert not [node.name for node in built_models({}) if node.made in STORED and "day_utc" not in node.columns]


def test_a_relation_made_by_week_reads_no_relation_of_all_weeks() -> None:
    """Else a week that is left as it was would be of another day than those made again."""
    models = built_models({})
    wrong = []
    for node in models:
        if node.week_column:
            read = [models.by_relation[relation] for relation in models.above(node.parents) if relation in models.by_relation]
            wrong += [(node.name, parent.name) for parent in read if parent.made == "each_day" and parent.week_column is None]
    assert wrong == []

"""The unit tests: worked examples and edges of every model, each small enough to check by eye (beside the models, in their .yml)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from engine.build import Build, build, make_asked
from engine.compiled import models_of
from engine.nodes import WITH_DAYS
from engine.warehouse import PROJECT, Warehouse
from workbench.check import PASSED, Passed, unit_tests
from workbench.unit_tests import Project, UnitTest, fleet, project_folders, run

pytestmark = pytest.mark.xdist_group("models")


@pytest.mark.parametrize("place", project_folders(), ids=lambda place: "fleet" if place == PROJECT else place.name)
def test_every_model_holds_its_worked_examples(place: Path) -> None:
    """Those whose query has passed in an earlier run, or in `make check`, are not run again."""
    project, passed = fleet() if place == PROJECT else Project(place), Passed(PASSED)
    assert len(project.unit_tests()) >= 50
    _, failed = unit_tests(project, passed, None, is_all=False)
    passed.write()
    assert failed == []


def test_a_row_that_is_not_expected_and_one_that_is_missing_are_shown() -> None:
    (test,) = fleet().unit_tests(lambda model: model == "plan_classes")
    broken = UnitTest(test.model, test.name, test.path, test.sql.replace("' | '", "' ! '"))
    with duckdb.connect() as connection:
        assert run(connection, test) is None
        said = run(connection, broken)
    assert said is not None and "\n- " in said and "\n+ " in said and " ! " in said


def test_all_data_tests_hold_of_an_empty_warehouse(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    build(warehouse)
    make_asked(warehouse)
    in_memory = {node.relation for node in models_of().made(WITH_DAYS)}
    with warehouse.only_builder(), Build(warehouse) as made:
        made.executor.make_each_build()
        of_fleet = {node.relation for node in made.models} - in_memory
        held = [test for test in made.models.tests if set(test.nodes) <= of_fleet | set(made.models.sources)]
        for test in held:
            made.executor.run_test(test)
    assert len(held) > 100


def test_a_row_too_many_and_a_null_are_found_by_unique_grain() -> None:
    """d1 has two rows in one hour, d2 two hours, d3 none; one row has no drive, one no hour."""
    (test,) = (test for test in models_of().tests if test.name == "unique_grain_int_drive_hours__slow_drive_id__hour_utc")
    rows = [
        ("d1", "2026-01-05 00:00"),
        ("d1", "2026-01-05 00:00"),
        ("d2", "2026-01-05 00:00"),
        ("d2", "2026-01-05 23:00"),
        (None, "2026-01-05 01:00"),
        ("d4", None),
    ]
    with duckdb.connect() as connection:
        connection.execute("create schema intermediate")
        connection.execute("create table intermediate.int_drive_hours__slow (drive_id varchar, hour_utc timestamp)")
        connection.executemany("insert into intermediate.int_drive_hours__slow values (?, ?)", rows)
        assert {row[0] for row in connection.execute(test.sql).fetchall()} == {"d1", "d4", None}

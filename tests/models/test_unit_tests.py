"""The dbt unit tests: worked examples and edges of every model, each small enough to check by eye (beside the models, in their .yml)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from drivetail.dbt import Project
from drivetail.warehouse import Warehouse

pytestmark = pytest.mark.xdist_group("models")


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory, new_warehouse: Callable[[Path], Warehouse]) -> Warehouse:
    """A warehouse in which nothing has landed: the relations exist, empty, and the data tests of a build pass on nothing too."""
    return new_warehouse(tmp_path_factory.mktemp("nothing") / "warehouse")


def test_every_model_holds_its_worked_examples(nothing: Warehouse) -> None:
    result = Project(nothing).run("test", "--select", "test_type:unit")
    assert len(result) >= 60


def test_every_data_test_runs_on_nothing(nothing: Warehouse) -> None:
    assert Project(nothing).run("test", "--exclude", "test_type:unit")

"""The dbt unit tests: worked examples and edges of every model, each small enough to check by eye (beside the models, in their .yml)."""

from drivetail.build import build
from drivetail.dbt import Project
from drivetail.warehouse import Warehouse


def test_every_model_holds_its_worked_examples(tmp_path):
    warehouse = Warehouse(tmp_path)
    build(warehouse)  # nothing has landed: the relations exist, empty, and the data tests of a build pass on nothing too
    result = Project(warehouse).run("test", "--select", "test_type:unit")
    assert len(result) >= 60


def test_every_data_test_runs_on_nothing(tmp_path):
    warehouse = Warehouse(tmp_path)
    build(warehouse)
    assert Project(warehouse).run("test", "--exclude", "test_type:unit")

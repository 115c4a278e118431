"""The dbt unit tests: worked examples and edges of every model, each small enough to check by eye (beside the models, in their .yml)."""

import pytest

from engine.build import build
from engine.dbt import Project
from engine.warehouse import Warehouse

pytestmark = pytest.mark.xdist_group("models")


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse in which nothing has landed: the relations exist, empty."""
    warehouse = Warehouse(tmp_path_factory.mktemp("nothing") / "warehouse")
    build(warehouse)
    return warehouse


def test_every_model_holds_its_worked_examples(nothing: Warehouse) -> None:
    result = Project(nothing, with_unit_tests=True).run("test", "--select", "test_type:unit")
    assert len(result) >= 60


def test_sums_that_must_hold_hold_of_nothing(nothing: Warehouse) -> None:
    """The generic tests find nothing in no rows; test_dbt_from_the_root runs them all."""
    assert Project(nothing).run("test", "--select", "test_type:singular")


@pytest.mark.parametrize("test", ["unique_grain(rows, ['drive_id', 'hour_utc'])"])
def test_a_row_too_many_and_a_null_are_found(nothing: Warehouse, test: str) -> None:
    """d1 has two rows in one hour, d2 two hours, d3 none; one row has no drive, one no hour."""
    rows = ", ".join(
        f"({drive}, cast({hour} as timestamp))"
        for drive, hour in [
            ("'d1'", "'2026-01-05 00:00'"),
            ("'d1'", "'2026-01-05 00:00'"),
            ("'d2'", "'2026-01-05 00:00'"),
            ("'d2'", "'2026-01-05 23:00'"),
            ("null", "'2026-01-05 01:00'"),
            ("'d4'", "null"),
        ]
    )
    told = f'{{% set rows = "(select * from (values {rows}) as given (drive_id, hour_utc))" %}}select drive_id from ({{{{ test_{test} }}}})'
    (shown,) = Project(nothing).run("show", "--inline", told)
    assert {row[0] for row in shown.agate_table.rows} == {"d1", "d4", None}

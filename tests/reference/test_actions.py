"""The list of actions of two golden fleets equals that of the second reference, row by row."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from engine.build import Build
from engine.warehouse import Warehouse
from tests.golden import awkward_fleet, copied
from tests.report.conftest import demo_fleet

from .actions import READ, drive_actions


@pytest.mark.parametrize("fleet", [awkward_fleet, demo_fleet], ids=["awkward", "demo"])
def test_the_list_of_actions_equals_the_reference(fleet: Callable[[], Warehouse], tmp_path: Path):
    warehouse = copied(fleet(), tmp_path / "warehouse")
    with Build(warehouse) as build:
        build.executor.make_each_build()
        hidden = {
            name: build.connection.sql(f"select * from intermediate.{relation}").to_arrow_table().to_pylist()
            for name, relation in (
                ("slow", "int_drive_hours__evidence"),
                ("places", "int_drives__places"),
                ("members", "int_drives__described"),
            )
        }
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        given = {name: connection.sql(query).to_arrow_table().to_pylist() for name, query in READ.items()}
        expected = drive_actions(given | hidden)
        assert len(expected) > 1 and expected[0].keys() >= {"action", "cause"}
        columns = [name for name in expected[0] if name not in ("place", "own_cause", "order")]
        found = connection.sql(f"select {', '.join(columns)} from marts.drive_actions order by drive_id").to_arrow_table().to_pylist()
    assert found == [{name: row[name] for name in columns} for row in expected]

"""A warehouse of an earlier release: `drivetail build` computes it again from raw, and says so where it cannot be opened at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from conftest import Published, drivetail

from drivetail.build import Build
from drivetail.warehouse import Warehouse


@pytest.fixture
def landed(published: Published, tmp_path: Path) -> Warehouse:
    """The same raw store, without a build."""
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.create()
    shutil.copytree(published.warehouse.raw, warehouse.raw, dirs_exist_ok=True)
    return warehouse


def opened(warehouse: Warehouse) -> Build:
    return Build(warehouse, "duckdb", lambda phase, done, total: None)


def test_what_other_definitions_computed_is_computed_again(landed: Warehouse) -> None:
    with duckdb.connect(str(landed.build_database)) as connection:
        connection.execute("create schema state; create table state.project as select 'an earlier release' as version")
        # kept otherwise then
        connection.execute("create table state.finished_deliveries as select 1 as seq; create table state.batches as select 'x' as folder")
    build = opened(landed)
    assert [delivery.seq for delivery in build.new] == [1, 2]
    assert '"reason": "the models have changed"' in landed.log.read_text()
    again = opened(landed)
    assert [delivery.seq for delivery in again.new] == [1, 2], "nothing is finished before it is published"


def test_what_these_definitions_computed_stays(landed: Warehouse) -> None:
    opened(landed)
    with duckdb.connect(str(landed.build_database)) as connection:
        connection.execute("insert into state.finished_deliveries values (1)")
    build = opened(landed)
    assert [delivery.seq for delivery in build.new] == [2]


def test_a_build_database_that_cannot_be_opened_names_the_command(landed: Warehouse) -> None:
    landed.build_database.write_text("of a release that is yet to come")
    failed = drivetail("build", "-w", landed.root)
    assert failed.exit_code == 1
    assert failed.stderr.startswith(f"drivetail: {landed.build_database}: cannot be opened (")
    assert failed.stderr.endswith("make it anew from raw with `drivetail build --full-refresh`\n")

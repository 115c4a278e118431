"""A warehouse of an earlier release: `drivetail build` computes it again from raw, and says so where it cannot be opened at all."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import duckdb
import pytest
from conftest import Published, drivetail

from drivetail.build import Build, explaining
from drivetail.dbt import Hindered, ModelError
from drivetail.warehouse import Warehouse
from ingest import list_deliveries
from tests.reference.compare import compare
from tests.reference.reference import Delivery, compute


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


def test_a_warehouse_that_an_early_release_wrote_ends_in_the_marts_of_today(tmp_path: Path) -> None:
    """Raw, store, build database and publication as commit 11174b1 left them, and the awkward bundle they were made from."""
    with tarfile.open(Path(__file__).parent / "warehouse-of-11174b1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    warehouse, bundle = Warehouse(tmp_path / "warehouse"), tmp_path / "bundle"
    asked = drivetail("status", "-w", warehouse.root)
    assert "drivetail build" in asked.stdout + asked.stderr
    assert drivetail("build", "-w", warehouse.root).exit_code == 0
    assert compare(compute([Delivery(bundle), Delivery(bundle / "late")]), warehouse.published) == []
    assert drivetail("ingest", "bundle", bundle, "-w", warehouse.root).exit_code == 0
    assert [delivery.seq for delivery in list_deliveries(warehouse.root)] == [1], "what it holds is known again"


def test_a_build_database_that_cannot_be_opened_names_the_command(landed: Warehouse) -> None:
    landed.build_database.write_text("of a release that is yet to come")
    failed = drivetail("build", "-w", landed.root)
    assert failed.exit_code == 1
    assert failed.stderr.startswith(f"drivetail: {landed.build_database}: cannot be opened (")
    assert failed.stderr.endswith("make it anew from raw with `drivetail build --full-refresh`\n")


def test_a_build_database_that_is_open_elsewhere_may_be_opened_later(landed: Warehouse) -> None:
    code = "import duckdb, sys; connection = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code, landed.build_database], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"open\n"
        with pytest.raises(Hindered, match="close what has it open"):
            opened(landed)
    opened(landed)


@pytest.mark.parametrize(
    ("error", "is_hindered"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (MemoryError(), True),
        (duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate"), True),
        (ModelError("dbt run: IO Error: No space left on device"), True),
        (ModelError("test assert_intervals: Got 2 results, configured to fail if != 0"), False),
    ],
)
def test_want_of_room_or_memory_is_told_from_data_that_break_a_law(landed: Warehouse, error: Exception, is_hindered: bool) -> None:
    with pytest.raises(ModelError) as told, explaining(landed):
        raise error
    assert isinstance(told.value, Hindered) == is_hindered

"""Larger fleets, their days computed on DuckDB and then again on Spark: the same rows in every mart that is published."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from drivetail.cli import main
from drivetail.demo import run_demo
from engine.build import build, make_asked
from engine.publish import Publication, current_publication
from engine.warehouse import Warehouse
from ingest import ingest
from simulate import simulate
from tests.proof.test_perseus_answers import DATA, write_cluster_a, write_cluster_c, write_labels
from tests.spark.on_spark import compare_publications

pytestmark = [
    pytest.mark.soak,
    pytest.mark.xdist_group("spark"),
    pytest.mark.needs("java"),
]


def land_demo(folder: Path) -> Warehouse:
    run_demo(folder, main, date(2026, 11, 22))
    return Warehouse(folder / "warehouse")


def land_perseus(folder: Path) -> Warehouse:
    if not DATA.exists():
        pytest.skip(f"the Perseus data is not here ({DATA}); it is not ours to distribute")
    warehouse = Warehouse(folder / "warehouse")
    write_cluster_a(folder / "a")
    write_cluster_c(folder / "c")
    write_labels(folder / "labels.csv")
    ingest("perseus", [folder / "a"], warehouse.root, source_options={"resolution": "1m"})
    ingest("bundle", [folder / "c"], warehouse.root)
    ingest("labels", [folder / "labels.csv"], warehouse.root)
    return warehouse


def land_calibrated(folder: Path) -> Warehouse:
    warehouse = Warehouse(folder / "warehouse")
    simulate(folder / "fleet", disk_groups=40, ssd_groups=20, days=14, seed=1, end=date(2026, 11, 22), preset="tail-at-store")
    ingest("bundle", [folder / "fleet"], warehouse.root)
    return warehouse


@pytest.mark.parametrize("land", [land_demo, land_perseus, land_calibrated])
def test_days_that_spark_computes_are_those_of_duckdb(
    land: Callable[[Path], Warehouse], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    warehouse = land(tmp_path)
    build(warehouse)
    on_duckdb = with_study(warehouse)
    build(warehouse, target="spark", master="local[2]", full_refresh=True)
    on_spark = with_study(warehouse)
    assert on_spark.path != on_duckdb.path
    found = compare_publications(on_duckdb.path, on_spark.path)
    print(f"{request.node.name}: {found.relations} relations, {found.rows} rows, not bit for bit: {found.inexact}")
    assert found.differences == []
    assert found.inexact == {}


def with_study(warehouse: Warehouse) -> Publication:
    """The publication of what is stored and of the study made of it."""
    make_asked(warehouse)
    publication = current_publication(warehouse)
    assert publication is not None
    return publication

"""A delivery is known by what it is, not by its number: what raw has lost is named, whatever has its number now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from drivetail.ask.status import collect_status
from engine.warehouse import Warehouse
from ingest.raw.store import list_deliveries
from tests.drivetail.conftest import HEADER, built, drivetail, row, write_bundle
from tests.proof.support import asked


def land(warehouse: Warehouse, folder: Path, number: int, slow_us: int = 900) -> None:
    """One hour of a group of five; its first drive takes `slow_us`."""
    lines = [row(number, f"k{drive}", "grp", ios="50,0", us=f"{slow_us if drive == 0 else 800},0") for drive in range(5)]
    bundle = write_bundle(folder / f"{number}-{slow_us}", {"drive_hours.csv": "\n".join([HEADER, *lines]) + "\n"})
    assert drivetail("ingest", "bundle", bundle, "-w", warehouse.root).exit_code == 0


@pytest.fixture
def three(tmp_path: Path) -> Warehouse:
    """Three deliveries of one hour each, built and published."""
    warehouse = Warehouse(tmp_path / "warehouse")
    for hour in (1, 2, 3):
        land(warehouse, tmp_path, hour)
    built(warehouse)
    return warehouse


def lose(warehouse: Warehouse, number: int) -> None:
    (delivery,) = [each for each in list_deliveries(warehouse.root) if each.seq == number]
    shutil.rmtree(delivery.path)


def test_a_number_reused_by_another_delivery_is_refused(three: Warehouse, tmp_path: Path) -> None:
    lose(three, 3)
    land(three, tmp_path, 3, slow_us=70_000)
    for command in (("build",), ("status", "--check")):
        refused = drivetail(*command, "-w", three.root)
        assert refused.exit_code == 1 and f"{three.raw}: has lost delivery 3; put it back from a copy" in refused.output
    status = collect_status(three)
    assert (status.lost_deliveries, status.unbuilt["count"]) == ([3], 1)
    built(three, "--full-refresh")
    query = "select hour(hour_utc), latency_us from marts.fct_drive_hours where drive_id = 'k0' order by hour_utc"
    assert asked(three.published, query) == [(1, 900.0), (2, 900.0), (3, 70_000.0)]
    assert collect_status(three).lost_deliveries == []


@pytest.mark.parametrize(
    ("number", "unbuilt", "has_build"),
    [
        pytest.param(1, 0, True, id="the first"),
        pytest.param(3, 0, True, id="the last"),
        pytest.param(4, 2, True, id="one that no build knows"),
        pytest.param(2, 0, False, id="with the build database, as after an upgrade"),
    ],
)
def test_a_delivery_that_is_gone_is_named_until_a_full_refresh_accepts_it(
    three: Warehouse, tmp_path: Path, number: int, unbuilt: int, has_build: bool
) -> None:
    for hour in range(4, 4 + unbuilt):
        land(three, tmp_path, hour)
    if not has_build:  # all is computed again, and the publication says of what the last one was made
        shutil.rmtree(three.build)
    lose(three, number)
    refused = drivetail("build", "-w", three.root)
    assert refused.exit_code == 1 and f"has lost delivery {number};" in refused.output
    assert collect_status(three).lost_deliveries == [number]
    built(three, "--full-refresh")
    land(three, tmp_path, 6)
    built(three)
    assert collect_status(three).lost_deliveries == []

"""A delivery is known by what it is, not by its number: what raw has lost is named, whatever has its number now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from drivetail.ask.status import collect_status
from engine.warehouse import Warehouse
from ingest.raw.store import list_deliveries
from tests.drivetail.conftest import drivetail
from tests.proof.support import asked

HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"


def land(warehouse: Warehouse, folder: Path, hour: int, slow_us: int = 900) -> None:
    """One hour of a group of five; its first drive takes `slow_us`."""
    rows = [f"2026-03-02T{hour:02}:00:00,k{drive},grp,50,0,{slow_us if drive == 0 else 800},0" for drive in range(5)]
    path = folder / f"{hour}-{slow_us}" / "drive_hours.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    assert drivetail("ingest", "bundle", path, "-w", warehouse.root).exit_code == 0


@pytest.fixture
def three(tmp_path: Path) -> Warehouse:
    """Three deliveries of one hour each, built and published."""
    warehouse = Warehouse(tmp_path / "warehouse")
    for hour in (1, 2, 3):
        land(warehouse, tmp_path, hour)
    assert drivetail("build", "-w", warehouse.root).exit_code == 0
    return warehouse


def lose(warehouse: Warehouse, number: int) -> None:
    """Remove a delivery of raw."""
    (delivery,) = [each for each in list_deliveries(warehouse.root) if each.seq == number]
    shutil.rmtree(delivery.path)


def published_latency(warehouse: Warehouse) -> list[tuple[int, float]]:
    return asked(
        warehouse.published, "select hour(hour_utc), latency_us from marts.fct_drive_hours where drive_id = 'k0' order by hour_utc"
    )


def test_a_number_reused_by_another_delivery_is_refused(three: Warehouse, tmp_path: Path) -> None:
    lose(three, 3)
    land(three, tmp_path, 3, slow_us=70_000)
    lost = f"{three.raw}: has lost delivery 3; put it back from a copy"
    refused = drivetail("build", "-w", three.root)
    assert refused.exit_code == 1
    assert lost in refused.output
    checked = drivetail("status", "--check", "-w", three.root)
    assert checked.exit_code == 1
    assert lost in checked.output
    status = collect_status(three)
    assert (status.lost_deliveries, status.unbuilt["count"]) == ([3], 1)
    assert drivetail("build", "--full-refresh", "-w", three.root).exit_code == 0
    assert published_latency(three) == [(1, 900.0), (2, 900.0), (3, 70_000.0)]
    assert collect_status(three).lost_deliveries == []


@pytest.mark.parametrize("number", [1, 3])
def test_delivery_that_is_gone_is_named_until_a_full_refresh_accepts_it(three: Warehouse, tmp_path: Path, number: int) -> None:
    lose(three, number)
    refused = drivetail("build", "-w", three.root)
    assert refused.exit_code == 1
    assert f"has lost delivery {number};" in refused.output
    assert collect_status(three).lost_deliveries == [number]
    assert drivetail("build", "--full-refresh", "-w", three.root).exit_code == 0
    land(three, tmp_path, 5)
    assert drivetail("build", "-w", three.root).exit_code == 0
    assert collect_status(three).lost_deliveries == []


def test_gap_that_no_build_knows_is_named(three: Warehouse, tmp_path: Path) -> None:
    """The fourth was lost before a build took it in."""
    land(three, tmp_path, 4)
    land(three, tmp_path, 5)
    lose(three, 4)
    assert collect_status(three).lost_deliveries == [4]
    assert "has lost delivery 4;" in drivetail("build", "-w", three.root).output


def test_build_database_that_is_gone_does_not_hide_a_loss(three: Warehouse) -> None:
    """As after an upgrade: all is computed again, and the publication says of what the last one was made."""
    shutil.rmtree(three.build)
    lose(three, 2)
    refused = drivetail("build", "-w", three.root)
    assert refused.exit_code == 1
    assert "has lost delivery 2;" in refused.output

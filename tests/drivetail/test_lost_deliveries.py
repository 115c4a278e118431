"""A delivery is known by what it is, not by its number: what raw has lost is named, whatever has its number now."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from drivetail.ask.status import collect_status
from engine.errors import FailedModel
from engine.execute import Executor
from engine.warehouse import Warehouse
from ingest.raw import quarantine
from ingest.raw.store import list_deliveries
from tests import golden
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
    made = golden.golden("three_deliveries", publish_three, ("tests/drivetail/conftest.py",))
    return golden.copied(Warehouse(made / "warehouse"), tmp_path / "warehouse")


def publish_three(root: Path) -> None:
    warehouse = Warehouse(root / "warehouse")
    for hour in (1, 2, 3):
        land(warehouse, root, hour)
    built(warehouse)


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
    ("lost", "unbuilt"), [pytest.param([1, 3], 0, id="the first and the last"), pytest.param([4], 2, id="one that no build knows")]
)
def test_a_delivery_that_is_gone_is_named_until_a_full_refresh_accepts_it(
    three: Warehouse, tmp_path: Path, lost: list[int], unbuilt: int
) -> None:
    for hour in range(4, 4 + unbuilt):
        land(three, tmp_path, hour)
    # without the build database, as after an upgrade, the publication says of what the last one was made
    places = [delivery.path for delivery in list_deliveries(three.root) if delivery.seq in lost] + [three.build]
    for count, place in enumerate(places, 1):
        shutil.rmtree(place)
        refused = drivetail("build", "-w", three.root)
        assert refused.exit_code == 1 and re.search(rf"has lost deliver\w+ {', '.join(map(str, lost[:count]))};", refused.output)
        assert collect_status(three).lost_deliveries == lost[:count]
    built(three, "--full-refresh")
    land(three, tmp_path, 6)
    built(three)
    assert collect_status(three).lost_deliveries == []


SHOWN = {
    "hours": "select * from marts.fct_drive_hours",
    "drives": "select drive_id, kind, enclosure, first_hour_utc, last_hour_utc from marts.dim_drives",
    "events": "select drive_id, occurred_at, event_type from marts.fct_drive_events",
    "groups": "select * from marts.dim_raid_groups",
    "landed": "select record_kind, rows_delivered, rows_accepted, rows_superseded from report.fct_landing_totals",
}


def shown(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(asked(warehouse.published, query), key=str) for name, query in SHOWN.items()}


def decide(command: str, number: int, warehouse: Warehouse) -> Result:
    return drivetail(command, "--landed", str(number), "--by", "ada", "--note", "wrong", "-w", warehouse.root)


DELIVERIES = {
    "a later version of an hour": ("bundle", "drive_hours.csv", "\n".join([HEADER, row(2, "k0", "grp", ios="51,0", us="9000,0")])),
    "another day": ("bundle", "drive_hours.csv", "\n".join([HEADER, *(row(30, f"k{n}", "grp", ios="9,0", us="7,0") for n in range(5))])),
    "inventory": ("bundle", "drives.csv", "drive_id,raid_group_id,role,kind,enclosure\nk1,grp,parity_p,ssd,e7"),
    "an event": ("bundle", "drive_events.csv", "drive_id,event_type,occurred_at\nk1,unplug,2026-01-05T01:10"),
    "a mapping": ("mapping", "map.csv", "drive_id,enclosure\nk2,e9"),
}  # fmt: skip


@pytest.mark.parametrize("case", DELIVERIES)
def test_a_landed_delivery_is_taken_back_and_put_back(case: str, three: Warehouse, tmp_path: Path) -> None:
    """After it the marts are as if it had never come, and as before once it is back; its number is never given again."""
    source, name, text = DELIVERIES[case]
    without = shown(three)
    assert drivetail("ingest", source, write_bundle(tmp_path / "x", {name: text + "\n"}), "-w", three.root).exit_code == 0
    built(three, "--no-daily")
    with_it = shown(three)
    assert with_it != without
    assert "Dropped delivery 4" in decide("drop", 4, three).output
    assert decide("drop", 4, three).exit_code == 0
    assert collect_status(three).lost_deliveries == []
    built(three)
    assert shown(three) == without
    assert collect_status(three).problems == []
    assert "Nothing is new" in drivetail("build", "-w", three.root).output
    assert "is back in raw" in decide("release", 4, three).output
    built(three, "--no-daily")
    assert shown(three) == with_it
    assert decide("drop", 4, three).exit_code == 0
    land(three, tmp_path, 5)
    assert [each.seq for each in list_deliveries(three.root)] == [1, 2, 3, 5]
    refused = decide("release", 4, three)
    assert (refused.exit_code, "ingest the files of 4 again" in refused.output) == ((0, False) if source == "mapping" else (1, True))


def test_one_that_others_came_after_is_taken_back_too(three: Warehouse, tmp_path: Path) -> None:
    land(three, tmp_path, 1, slow_us=70_000)
    built(three)
    said = decide("drop", 1, three)
    assert "note: 3 deliveries of its source landed after it, from 2 on: what they repeated" in said.output
    built(three)
    # what was repeated goes with it, and the counts still add up
    found = asked(three.published, "select drive_id, read_latency_us from raw.drive_hours where hour(hour_utc) = 1")
    assert found == [("k0", 70_000.0)]
    assert [each for each in collect_status(three).problems if "add up" in each] == []
    assert decide("drop", 9, three).exit_code == 1


def test_a_drop_that_was_killed_is_finished_by_the_next(three: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shown(three)
    with monkeypatch.context() as killed:
        killed.setattr(quarantine, "_move", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert decide("drop", 2, three).exit_code == 130
    built(three)
    assert shown(three) == before
    assert decide("drop", 2, three).exit_code == 0
    built(three)
    assert asked(three.published, "select distinct hour(hour_utc) from marts.fct_drive_hours order by all") == [(1,), (3,)]


def test_a_build_that_fails_names_the_delivery_and_the_way_back(three: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message's command ends it, whatever the fault."""
    before = shown(three)
    bundle = write_bundle(tmp_path / "bad", {"drives.csv": "drive_id,raid_group_id\nk8,other\nk3,grp\n"})
    assert drivetail("ingest", "bundle", bundle, "-w", three.root).exit_code == 0
    ran = Executor.run_test

    def breaks(self: Executor, test: Any) -> None:
        if self.connection.execute("select count(*) from raw.drives where drive_id = 'k3'").fetchall() != [(0,)]:
            raise FailedModel("test planted of int_drives__segments: 1 row breaks it: drive_id k3", {"drive_id": "k3"})
        ran(self, test)

    monkeypatch.setattr(Executor, "run_test", breaks)
    failed = drivetail("build", "-w", three.root)
    assert failed.exit_code == 1 and "breaks it: drive_id k3; new is delivery 4 (" in failed.output
    assert f"{bundle}/drives.csv row 2): `drivetail drop --landed NUMBER" in failed.output and "the last publication stays" in failed.output
    assert decide("drop", 4, three).exit_code == 0
    built(three)
    assert shown(three) == before

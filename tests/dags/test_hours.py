"""Three hours of a fleet through the DAGs, run in this process: a late delivery, one that is held back, and the weekly report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drivetail.feeds.inbox import FAILED, list_entries
from drivetail.service.settings import load_settings
from engine.build import build
from engine.warehouse import Warehouse
from ingest import drop, ingest, list_quarantine
from ingest.raw.register import Register
from report import due_weeks
from tests.dags.hours import HOURS, WEEK, Site, make_site
from tests.proof.support import ROOT, marts_differences

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    # Airflow dates a run by hand by its end
    return make_site(tmp_path_factory.mktemp("hours"), HOURS[-1] + timedelta(hours=1))


def run(site: Site, dag_id: str, hour: datetime | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Run a DAG for an hour. Returns: the state of the run as "run", and of each task by its id."""
    from airflow.models.dagbag import DagBag
    from airflow.sdk import DagRunState

    monkeypatch.setenv("DRIVETAIL_WAREHOUSE", str(site.warehouse.root))
    dag = DagBag(ROOT / "dags").dags[dag_id]
    # a run by hand is for the last interval that ends by its date
    done = dag.test(logical_date=hour and hour.replace(tzinfo=UTC) + timedelta(hours=1))
    tasks = {task.task_id + (f" {task.map_index}" if task.map_index >= 0 else ""): str(task.state) for task in done.get_task_instances()}
    return {"run": str(DagRunState(done.state).value), **tasks}


def reported(warehouse: Warehouse) -> list[str]:
    """The drives whose alerts were reported."""
    return [record["subject_id"] for record in Register(warehouse.raw, "alerts").read()]


def test_three_hours_end_in_the_marts_of_one_load(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    warehouse = site.warehouse

    # 21:00: a RAID group is missing; the next hour lies there already and waits for its run
    site.deliver(HOURS[0], late=False)
    wrong = site.deliver(HOURS[1], in_ms=True)
    states = run(site, "drivetail_hourly", HOURS[0], monkeypatch)
    assert states["run"] == "success", states
    assert states["marts.complete_weeks"] == "skipped"
    assert reported(warehouse) == []

    # 22:00: the file is held back; the run is red, and what to do is said
    states = run(site, "drivetail_hourly", HOURS[1], monkeypatch)
    assert states["run"] == "failed"
    assert (states["raw.land 0"], states["marts.build"], states["watch.freshness"]) == ("failed", "success", "success")
    settings = load_settings(warehouse)
    (failed,) = [entry for entry in list_entries(warehouse, settings) if entry.state == FAILED]
    assert failed.path == str(wrong) and failed.outcome and "drivetail drop 1" in failed.outcome["message"]
    drop(warehouse.root, 1, by="ada", note="latencies in ms")
    assert all(held.decision for held in list_quarantine(warehouse.root))

    # 23:00: the hour, 22:00 sent again, and what was missing of 21:00, which is late
    site.deliver(HOURS[2])
    site.deliver(HOURS[1])
    site.deliver(HOURS[0], late=True)
    states = run(site, "drivetail_hourly", HOURS[2], monkeypatch)
    assert states["run"] == "success", states
    assert states.get("marts.complete_weeks") == "success", states
    # its third slow hour
    assert reported(warehouse) == [site.slow_drive]

    # once more, and it changes nothing
    published = warehouse.published.stat().st_ino
    states = run(site, "drivetail_hourly", HOURS[2], monkeypatch)
    assert (states["run"], states["raw.land"]) == ("success", "skipped")
    assert warehouse.published.stat().st_ino == published
    assert reported(warehouse) == [site.slow_drive]

    assert due_weeks(warehouse) == [WEEK]
    states = run(site, "drivetail_weekly_report", None, monkeypatch)
    assert states["run"] == "success", states
    assert WEEK in (warehouse.root / "reports" / f"{WEEK}.html").read_text(encoding="utf-8")
    assert due_weeks(warehouse) == []

    states = run(site, "drivetail_maintenance", HOURS[-1], monkeypatch)
    assert states["run"] == "success", states
    assert states["proofs.rebuild"] == states["proofs.sums"] == states["proofs.raw_to_warehouse"] == "success", states
    assert reported(warehouse) == [site.slow_drive]

    bulk = Warehouse(tmp_path / "bulk")
    ingest("bundle", [site.everything], bulk.root)
    build(bulk)
    assert marts_differences(warehouse.published, bulk.published) == []

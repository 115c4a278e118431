"""Tasks of the hourly run: which troubles are tried again, and what a landing is called."""

from __future__ import annotations

import fcntl
import subprocess
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from drivetail.feeds.outcomes import HELD, HINDERED, LANDED, Outcome
from drivetail.service.settings import this_hour
from engine.build import build
from engine.errors import ModelError, RetryableError
from engine.warehouse import Warehouse
from tests.proof.support import ROOT

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]

SETTINGS = """
[[inboxes]]
name = "fleet"
source = "bundle"
folder = "../inbox"
"""


@pytest.fixture(autouse=True)
def settings(warehouse: Warehouse, task_context: dict[str, Any]) -> None:
    warehouse.settings.write_text(SETTINGS)


def test_only_what_may_pass_is_landed_again(tasks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    def land(*outcomes: str) -> None:
        each = [Outcome("", "fleet", f"/inbox/{outcome}", "", outcome, message=f"{outcome}: do this") for outcome in outcomes]
        monkeypatch.setattr("drivetail.feeds.inbox.land_each", lambda *arguments: iter(each))
        tasks("raw.land")([{"inbox": "fleet", "path": "/inbox/a"}])

    land(LANDED, LANDED)
    with pytest.raises(AirflowFailException, match=r"^held: do this; held: do this$"):
        land(HELD, LANDED, HELD)
    with pytest.raises(AirflowException, match=r"^held: do this; hindered: do this$") as told:
        land(HELD, HINDERED, LANDED)
    assert not isinstance(told.value, AirflowFailException)


@pytest.mark.parametrize(("error", "is_tried_again"), [(RetryableError("no room"), True), (ModelError("Got 2 results"), False)])
def test_only_what_may_pass_is_built_again(
    bag: Any, tasks: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, is_tried_again: bool
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("engine.build.build", fail)
    monkeypatch.setattr("drivetail.service.maintenance.check_sums", fail)
    sums = bag.dags["drivetail_maintenance"].get_task("proofs.sums").python_callable
    for task in (tasks("marts.build"), tasks("marts.each_day"), sums):
        with pytest.raises(type(error) if is_tried_again else AirflowFailException, match=str(error)):
            task()


def test_a_landing_is_called_what_the_database_takes() -> None:
    from airflow.models.taskinstance import TaskInstance

    import drivetail_shared as shared

    assert TaskInstance.__table__.c.rendered_map_index.type.length == shared.LABEL_CHARACTERS
    assert shared.label(["/inbox/2026-01-05T07.parquet"]) == "2026-01-05T07.parquet"
    assert shared.label(["/inbox/first.parquet"] * 8) == "first.parquet and 7 more"
    assert shared.label(["http://prometheus:9090!2026-01-05T09.2026-01-05T11"]) == "prometheus:9090!2026-01-05T09.2026-01-05T11"
    long = shared.label([f"http://{'p' * 300}:9090!2026-01-05T09.2026-01-05T11"])
    assert len(long) == 250 and long.startswith("...ppp") and long.endswith("!2026-01-05T09.2026-01-05T11")
    many = shared.label([f"/inbox/{'x' * 251}.csv"] * 100_000)
    assert len(many) == 250 and many.endswith("xxx.csv and 99999 more")


def test_a_landing_is_named_by_its_first_entry(tasks: Any) -> None:
    import airflow.sdk
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="No such file or directory; mount or make it"):
        tasks("raw.land")([{"inbox": "fleet", "path": f"/inbox/{number}.csv"} for number in range(300)])
    assert airflow.sdk.get_current_context()["entries"] == "0.csv and 299 more"


def test_the_hosts_of_open_alerts_are_written_where_the_settings_say(warehouse: Warehouse, tasks: Any) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    with pytest.raises(AirflowSkipException):
        tasks("watch.hosts")()
    warehouse.settings.write_text(SETTINGS + '[collect]\nfile = "hosts/slow.json"\n')
    with pytest.raises(AirflowSkipException):  # the first build may have failed
        tasks("watch.hosts")()
    assert not (warehouse.root / "hosts").exists()
    build(warehouse)
    assert tasks("watch.hosts")() == []
    assert '"hosts": {}' in (warehouse.root / "hosts/slow.json").read_text()


def test_the_metrics_are_written_where_the_settings_say(warehouse: Warehouse, tasks: Any) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    with pytest.raises(AirflowSkipException):
        tasks("watch.metrics")()
    warehouse.settings.write_text(SETTINGS + '[metrics]\nfile = "metrics/drivetail.prom"\n')
    assert tasks("watch.metrics")() == str(warehouse.root / "metrics/drivetail.prom")
    assert "drivetail_publication_usable 0.0" in (warehouse.root / "metrics/drivetail.prom").read_text()


def test_a_past_hour_with_nothing_new_ends_after_it_was_looked_at(
    bag: Any, warehouse: Warehouse, tasks: Any, task_context: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    task_context["task"] = bag.dags["drivetail_hourly"].get_task("sources.discover")
    warehouse.settings.write_text(SETTINGS.replace("../inbox", str(tmp_path_factory.mktemp("inbox"))))
    past = {"data_interval_end": datetime(2026, 1, 5, 8, tzinfo=UTC)}
    assert tasks("sources.discover")(**past) == []  # nothing is published yet
    build(warehouse)
    with pytest.raises(DownstreamTasksSkipped) as told:
        tasks("sources.discover")(**past)
    assert {"raw.land", "marts.build", "watch.all_went_well"} < set(told.value.tasks)
    # the run of now looks after what needs an operator
    assert tasks("sources.discover")(data_interval_end=this_hour().replace(tzinfo=UTC)) == []
    assert tasks("sources.discover")() == []


def test_each_publication_is_an_event_of_its_asset(warehouse: Warehouse, tasks: Any) -> None:
    import drivetail_hourly as hourly

    events: list[Any] = []
    outlets = {hourly.PUBLISHED: SimpleNamespace(add=lambda asset, extra: events.append((asset, extra)))}
    published = tasks("marts.build")(outlet_events=outlets)
    assert events == [(hourly.PUBLICATION, {"publication": published})]
    assert tasks("marts.build")(outlet_events=outlets) == tasks("marts.each_day")(outlet_events=outlets)
    assert len(events) == 1, "nothing was new"


def test_a_week_whose_report_was_written_meanwhile_is_left_out(bag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import drivetail_weekly_report as weekly

    monkeypatch.setattr("report.due_weeks", lambda warehouse: ["2026-W46", "2026-W47"], raising=False)
    weeks = bag.dags["drivetail_weekly_report"].get_task("weeks").python_callable

    def named(*names: str, week: str | None = None) -> list[str]:
        events = {weekly.COMPLETE_WEEKS: [SimpleNamespace(extra={"weeks": list(names)})]}
        return list(weeks(params={"week": week}, triggering_asset_events=events))

    assert named("2026-W45", "2026-W46") == ["2026-W46"]
    assert named() == ["2026-W46", "2026-W47"]
    assert named(week="2026-W45") == ["2026-W45"]


def test_a_second_airflow_on_a_warehouse_is_refused(warehouse: Warehouse) -> None:
    (warehouse.root / "airflow").mkdir()
    with (warehouse.root / "airflow/service.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.run([ROOT / "deploy/airflow.sh", warehouse.root], capture_output=True, text=True, timeout=600)
    assert second.returncode == 1 and "another Airflow runs it" in second.stderr

"""Every receiver is notified of every way to fail, and no receiver's address is logged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from drivetail.service.settings import settings_file
from engine.warehouse import Warehouse
from tests.webhook import Webhook, name_receivers

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as server:
        yield server


@pytest.fixture
def context() -> dict[str, Any]:
    return {"ti": SimpleNamespace(dag_id="drivetail_hourly", task_id="raw.land", map_index=0, run_id="by hand")}


@pytest.fixture
def message(warehouse: Warehouse, webhook: Webhook) -> Callable[[], str]:
    name_receivers(warehouse, well=f"json://127.0.0.1:{webhook.server_port}/well")

    def read() -> str:
        ((_, body),) = webhook.taken
        return str(body["message"])

    return read


def callback_request(**more: Any) -> dict[str, Any]:
    return {"filepath": "drivetail_hourly.py", "bundle_name": "dags", "bundle_version": None, **more}


def test_a_task_that_fails_gives_its_reason(message: Callable[[], str], context: dict[str, Any]) -> None:
    import drivetail_shared as shared

    shared.notify_failure({**context, "exception": shared.OneDelivery("y is held in quarantine 1")})
    assert message() == "drivetail_hourly, raw.land: y is held in quarantine 1"


def test_a_failure_that_lasts_is_sent_once_and_ends_with_a_green_run(
    bag: Any, warehouse: Warehouse, webhook: Webhook, context: dict[str, Any]
) -> None:
    import drivetail_shared as shared

    name_receivers(warehouse, well=f"json://127.0.0.1:{webhook.server_port}/well")
    context["ti"].task_id = "marts.build"
    for error in (shared.AirflowFailException("a model is wrong"), shared.OneDelivery("y is held in quarantine 1")) * 3:
        shared.notify_failure({**context, "exception": error})
    # the hour of a backfill may be well while those of now are not
    for run_type in ("backfill", "scheduled", "scheduled"):
        for dag in bag.dags.values():
            dag.on_success_callback({"dag": dag, "dag_run": SimpleNamespace(run_type=run_type)})
    assert [str(body["message"]).removeprefix("drivetail_hourly") for _, body in webhook.taken] == [
        ", marts.build: a model is wrong",
        ", marts.build: y is held in quarantine 1",
        ": well again: marts.build",
    ]


def test_a_task_killed_on_its_last_try_is_reported(bag: Any, message: Callable[[], str]) -> None:
    """Its process is gone: the DAG processor calls, and knows of no exception."""
    from airflow.api_fastapi.execution_api.datamodels.taskinstance import TaskInstance
    from airflow.callbacks.callback_requests import TaskCallbackRequest
    from airflow.dag_processing.processor import _execute_task_callbacks

    ti = TaskInstance(id=uuid4(), dag_version_id=uuid4(), dag_id="drivetail_hourly", task_id="marts.build", run_id="hour 7", try_number=1)
    request = TaskCallbackRequest(**callback_request(ti=ti, msg="killed", task_callback_type="failed"))
    _execute_task_callbacks(bag, request, logging.getLogger(__name__))
    assert message() == "drivetail_hourly, marts.build: it was killed"


def test_a_run_that_exceeds_its_limit_is_reported(bag: Any, webhook: Webhook, message: Callable[[], str], context: dict[str, Any]) -> None:
    """Airflow skips its tasks, and calls none of theirs; where a task failed, the task has reported."""
    from airflow.callbacks.callback_requests import DagCallbackRequest
    from airflow.dag_processing.processor import _execute_dag_callbacks

    for dag in bag.dags.values():
        dag.on_failure_callback({**context, "dag": dag, "run_id": "hour 7", "reason": "task_failure"})
    assert webhook.taken == []
    request = DagCallbackRequest(**callback_request(dag_id="drivetail_hourly", run_id="hour 7", msg="timed_out"))
    _execute_dag_callbacks(bag, request, logging.getLogger(__name__))
    assert message() == "drivetail_hourly, run: not ended within 12:00:00, and given up"


def test_a_task_that_hangs_is_not_tried_again(bag: Any) -> None:
    from airflow.sdk import RetryAction
    from airflow.sdk.exceptions import AirflowTaskTimeout

    task = bag.dags["drivetail_hourly"].get_task("marts.build")
    assert task.retry_policy.evaluate(AirflowTaskTimeout("Timeout, PID: 4711"), 1, 3).action == RetryAction.FAIL
    assert task.retry_policy.evaluate(RuntimeError("no room"), 1, 3).action == RetryAction.DEFAULT


def test_hours_that_stop_coming_turn_the_run_red(bag: Any, warehouse: Warehouse) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    settings_file(warehouse).write_text("")
    fresh = bag.dags["drivetail_hourly"].get_task("watch.freshness")
    with pytest.raises(AirflowFailException, match=r"^no hour is published yet"):
        fresh.python_callable(data_interval_end=datetime(2026, 1, 5, 8, tzinfo=UTC))
    last = bag.dags["drivetail_hourly"].get_task("watch.all_went_well")
    assert last.trigger_rule == "none_failed" and fresh.task_id in last.upstream_task_ids


def test_the_task_is_red_while_a_receiver_refuses_the_alerts(
    tasks: Callable[[str], Callable[..., Any]], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowException

    from drivetail.tell.notify import Delivery

    warehouse.published.touch()
    name_receivers(warehouse, well="json://localhost/a", down="json://localhost/b")
    deliveries = [Delivery("well", 2), Delivery("down", 0, failure="down: did not take the message")]
    monkeypatch.setattr("drivetail.tell.notify.notify_new_alerts", lambda of, receivers: deliveries[: len(receivers)])
    with pytest.raises(AirflowException, match=r"^down: did not take the message$"):
        tasks("watch.new_alerts")()
    name_receivers(warehouse, well="json://localhost/a")
    assert tasks("watch.new_alerts")() == 2


def test_without_receivers_the_log_has_each_slow_drive_once(
    tasks: Callable[[str], Callable[..., Any]], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def new_alerts(of: Warehouse, tell: Callable[[list[str]], object]) -> list[str]:
        tell(["d15", "v1"])
        return ["d15", "v1"]

    warehouse.published.touch()
    settings_file(warehouse).write_text("")
    monkeypatch.setattr("drivetail.tell.alerts.new_alerts", new_alerts)
    monkeypatch.setattr("drivetail.tell.watch.slow_drives", "\n".join)
    assert tasks("watch.new_alerts")() == 2 and "d15\nv1" in capsys.readouterr().out

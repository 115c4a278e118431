"""Every receiver is notified of every way to fail; a drive's name is no markup, and no receiver's address is logged."""

from __future__ import annotations

import json
import logging
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from drivetail.service.settings import settings_file, write_settings
from engine.warehouse import Warehouse
from tests.proof.support import ROOT

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]

WEBHOOK = """
[[notify]]
notifier = "airflow.providers.http.notifications.http.HttpNotifier"
arguments = {http_conn_id = "%s", endpoint = "%s", json = {text = "{{ drivetail_message }}"}}
"""


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.taken.append((self.path, body["text"]))  # type: ignore[attr-defined]
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing on the terminal."""


class Mailbox(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for line in self.rfile:
            verb = line[:4].upper().strip()
            self.wfile.write({b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(verb, b"250 well\r\n"))
            if verb == b"DATA":
                self.server.taken.append(b"".join(iter(self.rfile.readline, b".\r\n")))  # type: ignore[attr-defined]
                self.wfile.write(b"250 taken\r\n")


@contextmanager
def serving(server: Any) -> Iterator[Any]:
    server.taken, server.status = [], 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def webhook() -> Iterator[Any]:
    with serving(HTTPServer(("127.0.0.1", 0), Webhook)) as server:
        yield server


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda name, **connection: monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    monkeypatch.setenv("DRIVETAIL_WAREHOUSE", str(tmp_path))
    return Warehouse(tmp_path)


@pytest.fixture
def context() -> dict[str, Any]:
    from airflow.sdk.execution_time.context import ConnectionAccessor

    ti = SimpleNamespace(dag_id="fleet_hourly", task_id="raw.land", map_index=0, run_id="by hand")
    return {"ti": ti, "conn": ConnectionAccessor()}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_receiver_that_is_down_keeps_no_message_from_the_others(
    warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    import shared

    connect("down", conn_type="http", host=f"http://127.0.0.1:{free_port()}")
    connect("well", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    down = WEBHOOK % ("down", "SECRETTOKEN") + '[[notify]]\nnotifier = "no.such.Notifier"\n'
    settings_file(warehouse).write_text(down + WEBHOOK % ("well", "well"))
    shared.notify(context, "d1 is slow")
    assert webhook.taken == [("/well", "d1 is slow")]

    settings_file(warehouse).write_text(down)
    with pytest.raises(shared.NotNotified, match=r"^no receiver took the message"):
        shared.notify(context, "d1 is slow")
    said = [record.getMessage() for record in caplog.records if record.name == "drivetail.notify"]
    assert "airflow.providers.http.notifications.http.HttpNotifier: ConnectionError" in said and "SECRETTOKEN" not in str(said)


def test_without_receivers_the_log_has_it(warehouse: Warehouse, context: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    import shared

    shared.notify(context, "d1 is slow")
    assert "d1 is slow" in caplog.text


def test_the_receivers_of_the_template_show_a_name_as_a_name(
    warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any]
) -> None:
    import shared

    path = write_settings(warehouse, warehouse.root, "bundle", datetime(2026, 1, 5))
    path.write_text(re.sub(r"(?m)^# (?=\[\[notify|notifier =|arguments =)", "", path.read_text()))
    with serving(socketserver.TCPServer(("127.0.0.1", 0), Mailbox)) as mailbox:
        extra = {"disable_ssl": True, "disable_tls": True, "from_email": "drivetail@example.org"}
        connect("smtp_default", conn_type="smtp", host="127.0.0.1", port=mailbox.server_address[1], extra=extra)
        connect("webhook", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}", password="hooks/X")
        shared.notify(context, 'drive <img src="http://example.org/x"> is slow')
    (mail,) = map(message_from_bytes, mailbox.taken)
    assert mail["To"] == "storage@example.org"
    (part,) = mail.get_payload()
    text = part.get_payload(decode=True).decode()  # type: ignore[union-attr]
    assert "drive &lt;img src=" in text and "<img" not in text
    assert webhook.taken == [("/hooks/X", 'drive <img src="http://example.org/x"> is slow')]


def test_slack_shows_a_name_as_a_name(warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any]) -> None:
    import shared

    (template,) = re.findall(
        r"\[\[notify\]\]\nnotifier = \"[\w.]+SlackWebhookNotifier\".*\n.*\n", (ROOT / "docs/airflow.md").read_text(encoding="utf-8")
    )
    settings_file(warehouse).write_text(template)
    connect("slack", conn_type="slackwebhook", host=f"http://127.0.0.1:{webhook.server_port}/services", password=f"T000/B000/{'X' * 24}")
    shared.notify(context, "drive <!channel> & 'd1' is slow")
    assert webhook.taken == [(f"/services/T000/B000/{'X' * 24}", "drive &lt;!channel&gt; &amp; 'd1' is slow")]


@pytest.fixture(scope="module")
def bag(airflow_database: None) -> Any:
    from airflow.models.dagbag import DagBag

    return DagBag(ROOT / "dags")


@pytest.fixture
def message(warehouse: Warehouse, webhook: Any, connect: Callable[..., None]) -> Callable[[], str]:
    """The one message that the receiver has."""
    connect("well", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    settings_file(warehouse).write_text(WEBHOOK % ("well", "well"))

    def read() -> str:
        ((_, text),) = webhook.taken
        return str(text)

    return read


def callback_request(**more: Any) -> dict[str, Any]:
    return {"filepath": "fleet_hourly.py", "bundle_name": "dags", "bundle_version": None, **more}


def test_a_task_that_fails_gives_its_reason(message: Callable[[], str], context: dict[str, Any]) -> None:
    import shared

    shared.notify_failure({**context, "exception": shared.AirflowFailException("y is held in quarantine 1")})
    assert message() == "fleet_hourly, raw.land, by hand: y is held in quarantine 1"


def test_a_task_killed_on_its_last_try_is_reported(bag: Any, message: Callable[[], str]) -> None:
    """Its process is gone: the DAG processor calls, and knows of no exception."""
    from airflow.api_fastapi.execution_api.datamodels.taskinstance import TaskInstance
    from airflow.callbacks.callback_requests import TaskCallbackRequest
    from airflow.dag_processing.processor import _execute_task_callbacks

    ti = TaskInstance(id=uuid4(), dag_version_id=uuid4(), dag_id="fleet_hourly", task_id="marts.build", run_id="hour 7", try_number=1)
    request = TaskCallbackRequest(**callback_request(ti=ti, msg="killed", task_callback_type="failed"))
    _execute_task_callbacks(bag, request, logging.getLogger(__name__))
    assert message() == "fleet_hourly, marts.build, hour 7: it was killed"


def test_a_run_that_exceeds_its_limit_is_reported(bag: Any, webhook: Any, message: Callable[[], str], context: dict[str, Any]) -> None:
    """Airflow skips its tasks, and calls none of theirs; where a task failed, the task has reported."""
    from airflow.callbacks.callback_requests import DagCallbackRequest
    from airflow.dag_processing.processor import _execute_dag_callbacks

    for dag in bag.dags.values():
        dag.on_failure_callback({**context, "dag": dag, "run_id": "hour 7", "reason": "task_failure"})
    assert webhook.taken == []
    request = DagCallbackRequest(**callback_request(dag_id="fleet_hourly", run_id="hour 7", msg="timed_out"))
    _execute_dag_callbacks(bag, request, logging.getLogger(__name__))
    assert message() == "fleet_hourly, hour 7: not ended within 12:00:00, and given up"


def test_a_task_that_hangs_is_not_tried_again(bag: Any) -> None:
    from airflow.sdk import RetryAction
    from airflow.sdk.exceptions import AirflowTaskTimeout

    task = bag.dags["fleet_hourly"].get_task("marts.build")
    assert task.retry_policy.evaluate(AirflowTaskTimeout("Timeout, PID: 4711"), 1, 3).action == RetryAction.FAIL
    assert task.retry_policy.evaluate(RuntimeError("no room"), 1, 3).action == RetryAction.DEFAULT


def test_hours_that_stop_coming_turn_the_run_red(bag: Any, warehouse: Warehouse) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    settings_file(warehouse).write_text("")
    fresh = bag.dags["fleet_hourly"].get_task("watch.freshness")
    with pytest.raises(AirflowFailException, match=r"^no hour is published yet"):
        fresh.python_callable(data_interval_end=datetime(2026, 1, 5, 8, tzinfo=UTC))
    last = bag.dags["fleet_hourly"].get_task("watch.all_went_well")
    assert last.trigger_rule == "none_failed" and fresh.task_id in last.upstream_task_ids


def test_each_slow_drive_is_reported_once_as_soon_as_a_receiver_takes_it(
    tasks: Callable[[str], Callable[..., Any]], task_context: dict[str, Any], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shared

    alerts, taken = ["d15", "v1"], []
    is_down = True

    def new_alerts(of: Warehouse, tell: Callable[[list[str]], object]) -> list[str]:
        tell(alerts)
        return alerts

    def notify(context: Any, message: str) -> None:
        if is_down:
            raise shared.NotNotified
        taken.append(message)

    warehouse.published.touch()
    monkeypatch.setattr("drivetail.tell.alerts.new_alerts", new_alerts)
    monkeypatch.setattr("drivetail.tell.watch.sentence", str)
    monkeypatch.setattr(shared, "notify", notify)
    with pytest.raises(shared.NotNotified):
        tasks("watch.new_alerts")()
    is_down = False
    assert tasks("watch.new_alerts")() == 2 and taken == ["d15\nv1"]

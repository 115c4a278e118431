"""What receivers of alarms are handed: of every way to fail, no secret, no markup of a drive's name, and later what they could not take."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import socketserver
import threading
import time
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
from drivetail.tell.untold import AGAIN_SECONDS
from engine.warehouse import Warehouse
from tests.proof.support import ROOT

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]

PATH = "services/T000/B000/SECRETTOKEN"
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


def alarms(warehouse: Warehouse) -> list[str]:
    return [record["message"] for record in map(json.loads, warehouse.log.read_text().splitlines())]


def test_no_address_of_a_receiver_is_told(
    warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any]
) -> None:
    """Neither that of one that is down nor that of one that refuses; the other receivers are told all the same."""
    from airflow.sdk.log import redact

    import telling

    webhook.status = 404
    connect("down", conn_type="http", host=f"http://127.0.0.1:{free_port()}")
    connect("refuses", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    settings_file(warehouse).write_text(WEBHOOK % ("down", PATH) + WEBHOOK % ("refuses", PATH))
    with pytest.raises(telling.NotTold) as caught:
        telling.tell(context, "slow", "d1 is slow")
    assert "HttpNotifier: ConnectionError at 127.0.0.1" in str(caught.value) and "HTTPError 404 at 127.0.0.1" in str(caught.value)
    assert webhook.taken == [(f"/{PATH}", "d1 is slow")]

    # no try of the task went through, and this is what is said of it
    telling.tell_failure({**context, "exception": caught.value})
    said = warehouse.log.read_text() + webhook.taken[-1][1] + (warehouse.root / "untold.jsonl").read_text()
    assert "ConnectionError at 127.0.0.1" in said and "SECRETTOKEN" not in said
    # what the hook itself writes to the task's log goes through this
    assert "SECRETTOKEN" not in str(redact(f"Max retries exceeded with url: /{PATH}"))


def test_whatever_a_receiver_fails_with_the_others_are_told(
    warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx

    import telling

    def fail(*_: object) -> None:
        raise httpx.ConnectError("no route", request=httpx.Request("POST", f"http://127.0.0.1/{PATH}"))

    monkeypatch.setattr("airflow.providers.smtp.notifications.smtp.SmtpNotifier.notify", fail)
    connect("well", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    mail = '[[notify]]\nnotifier = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"\narguments = {to = "a@b", html_content = "x"}\n'
    settings_file(warehouse).write_text(mail + WEBHOOK % ("well", "well"))
    telling.tell(context, "late", "x came late")
    assert webhook.taken == [("/well", "x came late")]
    assert (warehouse.root / "untold.jsonl").exists()


def test_the_receivers_of_the_template_are_told_a_name_as_a_name(
    warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any]
) -> None:
    from airflow.sdk.log import redact

    import telling

    kept = "services/T000/B000/OTHERTOKEN"
    path = write_settings(warehouse, warehouse.root, "bundle", datetime(2026, 1, 5))
    path.write_text(re.sub(r"(?m)^# (?=\[\[notify|notifier =|arguments =)", "", path.read_text()))
    with serving(socketserver.TCPServer(("127.0.0.1", 0), Mailbox)) as mailbox:
        extra = {"disable_ssl": True, "disable_tls": True, "from_email": "drivetail@example.org"}
        connect("smtp_default", conn_type="smtp", host="127.0.0.1", port=mailbox.server_address[1], extra=extra)
        connect("webhook", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}", password=kept)
        telling.tell(context, "slow", 'drive <img src="http://example.org/x"> is slow')
    (mail,) = map(message_from_bytes, mailbox.taken)
    assert mail["To"] == "storage@example.org"
    (part,) = mail.get_payload()
    text = part.get_payload(decode=True).decode()  # type: ignore[union-attr]
    assert "drive &lt;img src=" in text and "<img" not in text
    assert webhook.taken == [(f"/{kept}", 'drive <img src="http://example.org/x"> is slow')]
    assert "OTHERTOKEN" not in str(redact(f"url: /{kept}"))


def test_what_a_receiver_could_not_take_is_kept_for_it_alone(
    warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any]
) -> None:
    import telling

    connect("well", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    connect("mended", conn_type="http", host=f"http://127.0.0.1:{free_port()}")
    settings_file(warehouse).write_text(
        WEBHOOK % ("mended", "mended") + WEBHOOK % ("well", "well") + '[[notify]]\nnotifier = "no.such.Notifier"\n'
    )
    telling.tell(context, "late", "x came late")
    context["exception"] = telling.AirflowFailException("y is held in quarantine 1")
    telling.tell_failure(context)
    assert [path for path, _ in webhook.taken] == ["/well", "/well"]

    # wherever it stands among the receivers
    settings_file(warehouse).write_text(
        WEBHOOK % ("well", "well") + '[[notify]]\nnotifier = "no.such.Notifier"\n' + WEBHOOK % ("mended", "mended")
    )
    # it is not asked at once, and not while it is down
    untold = warehouse.root / "untold.jsonl"
    telling.tell_again(context)
    os.utime(untold, times=(0, untold.stat().st_mtime - AGAIN_SECONDS))
    telling.tell_again(context)
    assert len(untold.read_text().splitlines()) == 4

    # settings that cannot be read drop nothing
    read = settings_file(warehouse).read_text()
    settings_file(warehouse).write_text("[")
    os.utime(untold, times=(0, untold.stat().st_mtime - AGAIN_SECONDS))
    with pytest.raises(telling.AirflowFailException):
        telling.tell_again(context)
    settings_file(warehouse).write_text(read)

    connect("mended", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    os.utime(untold, times=(0, untold.stat().st_mtime - AGAIN_SECONDS))
    telling.tell_again(context)
    (_, _, (path, text)) = webhook.taken
    assert path == "/mended"
    assert re.fullmatch(r"Could not be told when raised:\n.* UTC: x came late\n.* UTC: .*y is held in quarantine 1 .*", text)
    assert len(alarms(warehouse)) == 2

    # what was kept for a receiver that is no more goes with it
    assert len({json.loads(line)["receiver"] for line in untold.read_text().splitlines()}) == 1
    settings_file(warehouse).write_text(WEBHOOK % ("well", "well"))
    os.utime(untold, times=(0, untold.stat().st_mtime - AGAIN_SECONDS))
    telling.tell_again(context)
    assert len(webhook.taken) == 3 and not untold.exists()


def test_a_receiver_that_never_answers_is_not_waited_for(
    warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import telling

    monkeypatch.setattr(telling, "RECEIVER_SECONDS", 0.5)
    connect("well", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    with socket.socket() as silent:
        # it takes connections, and what is sent, and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        connect("silent", conn_type="http", host=f"http://127.0.0.1:{silent.getsockname()[1]}")
        settings_file(warehouse).write_text(WEBHOOK % ("silent", PATH) + WEBHOOK % ("well", "well"))
        begun = time.monotonic()
        telling.tell(context, "late", "x came late")
        telling.tell(context, "slow", "d1 is slow")
        assert 1 <= time.monotonic() - begun < 10
        assert webhook.taken == [("/well", "x came late"), ("/well", "d1 is slow")]
        kept = (warehouse.root / "untold.jsonl").read_text()
        assert [json.loads(line)["message"] for line in kept.splitlines()] == ["x came late", "d1 is slow"]

        settings_file(warehouse).write_text(WEBHOOK % ("silent", PATH))
        with pytest.raises(telling.NotTold, match=r"^HttpNotifier: no answer within 0.5 s; does the receiver answer"):
            telling.tell(context, "slow", "d1 is slow")
        # the process of a task ends all the same
        hanging = [thread for thread in threading.enumerate() if thread.name.startswith("drivetail")]
        assert len(hanging) == 3 and all(thread.daemon for thread in hanging)


def test_slack_is_told_a_name_as_a_name(warehouse: Warehouse, webhook: Any, connect: Callable[..., None], context: dict[str, Any]) -> None:
    import telling

    (template,) = re.findall(
        r"\[\[notify\]\]\nnotifier = \"[\w.]+SlackWebhookNotifier\".*\n.*\n", (ROOT / "docs/airflow.md").read_text(encoding="utf-8")
    )
    settings_file(warehouse).write_text(template)
    connect("slack", conn_type="slackwebhook", host=f"http://127.0.0.1:{webhook.server_port}/services", password=f"T000/B000/{'X' * 24}")
    telling.tell(context, "slow", "drive <!channel> & 'd1' is slow")
    assert webhook.taken == [(f"/services/T000/B000/{'X' * 24}", "drive &lt;!channel&gt; &amp; 'd1' is slow")]

    webhook.status = 403
    with pytest.raises(telling.NotTold, match=r"^SlackWebhookNotifier: \w+; does the receiver answer") as caught:
        telling.tell(context, "slow", "d2 is slow")
    assert "SLACKTOKEN" not in str(caught.value) + warehouse.log.read_text()


@pytest.fixture(scope="module")
def bag(airflow_database: None) -> Any:
    from airflow.models.dagbag import DagBag

    return DagBag(ROOT / "dags")


@pytest.fixture
def told(warehouse: Warehouse, webhook: Any, connect: Callable[..., None]) -> Callable[[], str]:
    """The one message that the receiver has, word for word in the log of the warehouse."""
    connect("well", conn_type="http", host=f"http://127.0.0.1:{webhook.server_port}")
    settings_file(warehouse).write_text(WEBHOOK % ("well", "well"))

    def read() -> str:
        ((_, text),) = webhook.taken
        assert alarms(warehouse) == [text]
        return str(text)

    return read


def callback_request(**more: Any) -> dict[str, Any]:
    return {"filepath": "fleet_hourly.py", "bundle_name": "dags", "bundle_version": None, **more}


@pytest.mark.parametrize(("task_id", "map_index", "name"), [("marts.build", -1, "marts.build"), ("raw.land", 2, "raw.land 2")])
def test_a_task_killed_on_its_last_try_is_told(bag: Any, told: Callable[[], str], task_id: str, map_index: int, name: str) -> None:
    """Its process is gone: the DAG processor calls, and knows of no exception."""
    from airflow.api_fastapi.execution_api.datamodels.taskinstance import TaskInstance
    from airflow.callbacks.callback_requests import TaskCallbackRequest
    from airflow.dag_processing.processor import _execute_task_callbacks

    ti = TaskInstance(
        id=uuid4(), dag_version_id=uuid4(), dag_id="fleet_hourly", task_id=task_id, run_id="hour 7", try_number=1, map_index=map_index
    )
    request = TaskCallbackRequest(**callback_request(ti=ti, msg="killed", task_callback_type="failed"))
    _execute_task_callbacks(bag, request, logging.getLogger(__name__))
    assert re.fullmatch(
        rf"fleet_hourly, {name}: it was killed; `drivetail status` says where things stand "
        rf"\(log: .*/logs/dag_id=fleet_hourly/run_id=hour 7/task_id={task_id}\)",
        told(),
    )


def test_a_run_that_was_given_up_is_told(bag: Any, warehouse: Warehouse, told: Callable[[], str], context: dict[str, Any]) -> None:
    """Airflow has skipped its tasks, and calls none of theirs; of a run whose task failed, the task has told."""
    from airflow.callbacks.callback_requests import DagCallbackRequest
    from airflow.dag_processing.processor import _execute_dag_callbacks

    for dag in bag.dags.values():
        dag.on_failure_callback({**context, "dag": dag, "run_id": "hour 7", "reason": "task_failure"})
    assert not warehouse.log.exists()

    # what Airflow gives where it knows of no task that had not ended; the receiver's connection needs no task either
    request = DagCallbackRequest(**callback_request(dag_id="fleet_hourly", run_id="hour 7", msg="timed_out"))
    _execute_dag_callbacks(bag, request, logging.getLogger(__name__))
    assert told() == (
        "fleet_hourly: hour 7 has not ended within 12 h and was given up; the next run goes on with what is left. "
        "Does something hold the one slot of the pool drivetail_writer? `drivetail status` says where things stand"
    )


def test_a_run_that_was_given_up_is_told_with_where_it_stood(bag: Any, told: Callable[[], str], context: dict[str, Any]) -> None:
    dag = bag.dags["fleet_weekly_report"]
    dag.on_failure_callback({**context, "dag": dag, "run_id": "week 2", "reason": "timed_out"})
    assert told().startswith("fleet_weekly_report: week 2 has not ended within 6 h and was given up, last in raw.land; the next run")


@pytest.mark.parametrize("through_dbt", [False, True])
def test_a_task_that_hangs_fails_at_once_and_is_told(bag: Any, told: Callable[[], str], context: dict[str, Any], through_dbt: bool) -> None:
    from airflow.sdk import RetryAction
    from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout

    from engine.dbt import ModelError

    task = bag.dags["fleet_hourly"].get_task("marts.build")
    error: BaseException = AirflowTaskTimeout("Timeout, PID: 4711")
    assert task.retry_policy.evaluate(error, 1, 3).action == RetryAction.FAIL
    assert task.retry_policy.evaluate(RuntimeError("no room"), 1, 3).action == RetryAction.DEFAULT
    if through_dbt:
        failed, model_error = AirflowFailException("dbt build: Timeout"), ModelError("dbt build: Timeout")
        failed.__cause__, model_error.__cause__ = model_error, error
        error = failed
    ti = SimpleNamespace(dag_id="fleet_hourly", task_id="marts.build", map_index=-1, run_id="hour 7", task=task)
    (callback,) = task.on_failure_callback
    callback({**context, "ti": ti, "exception": error})
    assert told().startswith(
        "fleet_hourly, marts.build: it has not ended within 5 h and was stopped; does it wait for a disk, a share or a lock?"
    )
    assert "Timeout" not in told()


def test_hours_that_stop_coming_are_told_and_turn_the_run_red(bag: Any, told: Callable[[], str], context: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    dag = bag.dags["fleet_hourly"]
    fresh = dag.get_task("watch.freshness")
    with pytest.raises(AirflowFailException, match=r"^no hour is published yet") as caught:
        fresh.python_callable(data_interval_end=datetime(2026, 1, 5, 8, tzinfo=UTC))
    ti = SimpleNamespace(dag_id="fleet_hourly", task_id="watch.freshness", map_index=-1, run_id="hour 7", task=fresh)
    (callback,) = fresh.on_failure_callback
    callback({**context, "ti": ti, "exception": caught.value})
    assert told().startswith("fleet_hourly, watch.freshness: no hour is published yet; look whether anything comes")
    # what the run is red by
    last = dag.get_task("watch.all_went_well")
    assert (last.task_id, last.trigger_rule) == ("watch.all_went_well", "none_failed") and fresh.task_id in last.upstream_task_ids

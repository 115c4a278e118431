"""`fleet_hourly` tells of slow drives: each once to each receiver, again when nobody took it, and later to one that was down."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from engine.register import Register
from engine.warehouse import Warehouse
from tests.proof.support import ROOT, environment

pytestmark = pytest.mark.skipif(importlib.util.find_spec("airflow") is None, reason="Airflow is not installed (make test installs it)")

NOTIFY = """
[[notify]]
notifier = "airflow.providers.http.notifications.http.HttpNotifier"
arguments = {http_conn_id = "webhook", endpoint = "%s", json = {text = "{{ drivetail_message }}"}}
"""

# as many runs of the task as there are arguments; each says whether it went through. Then a task ends well, ten minutes later
RUNS = """
import os, sys
from types import SimpleNamespace
import airflow.sdk
import telling
from drivetail.tell.untold import AGAIN_SECONDS
from fleet_hourly import fleet_hourly
dag = fleet_hourly()
task = dag.get_task("watch.new_alerts")
ti = SimpleNamespace(dag_id=dag.dag_id, task_id=task.task_id, map_index=-1, run_id="by hand")
airflow.sdk.get_current_context = lambda: {"ti": ti, "dag": dag}
for _ in sys.argv[1:]:
    try:
        task.python_callable()
        print("told", flush=True)
    except Exception as error:
        print("failed", error, flush=True)
untold = telling.warehouse().root / "untold.jsonl"
os.utime(untold, (0, untold.stat().st_mtime - AGAIN_SECONDS))
telling.tell_again(airflow.sdk.get_current_context())
"""


class Receiver(HTTPServer):
    """Webhooks that answer with the given statuses, each its own, then with 200."""

    def __init__(self, statuses: dict[str, list[int]]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.statuses = statuses
        self.taken: list[tuple[str, str]] = []

    def told(self, path: str) -> list[str]:
        """What the webhook of a path has taken."""
        return [text for taken, text in self.taken if taken == path]


class Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        statuses = self.server.statuses[self.path]
        status = statuses.pop(0) if statuses else 200
        if status == 200:
            self.server.taken.append((self.path, body["text"]))
        self.send_response(status)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def webhook() -> Iterator[Receiver]:
    # of the two alerts one is down for both, however often they are told; the other takes the first and at once not the second
    receiver = Receiver({"/well": [200, 503], "/down": [503, 503, 503]})
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    yield receiver
    receiver.shutdown()


def test_each_alert_reaches_each_receiver_once(settled: Warehouse, webhook: Receiver, tmp_path: Path) -> None:
    (settled.root / "drivetail.toml").write_text(NOTIFY % "down" + NOTIFY % "well")
    connection = {"conn_type": "http", "host": f"http://127.0.0.1:{webhook.server_port}"}
    variables = {
        "AIRFLOW_HOME": tmp_path / "airflow",
        "AIRFLOW_CONN_WEBHOOK": json.dumps(connection),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "CRITICAL",
        "DRIVETAIL_WAREHOUSE": settled.root,
        "PYTHONPATH": f"{ROOT / 'dags'}{os.pathsep}{environment()['PYTHONPATH']}",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUNS, "1", "2", "3"],
        env={**environment(), **{name: str(value) for name, value in variables.items()}},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("told", "failed"))]
    # the second alert fails once: nobody took it, so it is told again; that one receiver is down alone fails nothing
    assert outcomes == ["failed", "told", "told"], done.stdout + done.stderr[-3000:]
    first, second = webhook.told("/well")
    assert first.startswith("d15 is slow since 2026-01-05 12:00 UTC; RAID group g1, slot 5; 3 slow hours; 17250 us at 2026-01-05 12:00")
    assert "median of its peers 5450 us" in first and "peers: d14 5550 us, d13 5450 us" in first and "check cabling" in first
    assert second.startswith("v1 is slow")
    # to the other all of it when it is up again
    assert webhook.statuses == {"/well": [], "/down": []}
    (later,) = webhook.told("/down")
    assert later.startswith("Could not be told when raised:\n") and not (settled.root / "untold.jsonl").exists()
    assert [later.count(text) for text in (first, second)] == [1, 1]
    assert [record["subject_id"] for record in Register(settled, "alerts").read()] == ["d15", "v1"]

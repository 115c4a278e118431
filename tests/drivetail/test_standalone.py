"""`drivetail airflow` runs once per warehouse, and nothing of it outlives it; its components are stand-ins here."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drivetail.service.standalone import _holders
from tests.proof.support import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")

# each component has a task in a process group of its own that does not end when told to
RUN = """
import os, sys
from pathlib import Path
from drivetail.service import standalone
from engine.warehouse import Warehouse

component = '''
import os, signal, time
if not os.fork():
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
'''
standalone.RUN_MODULE = [sys.executable, "-SEc", component]
standalone.load_settings = standalone._require_airflow = lambda *_: None
standalone.prepare = lambda *_: (dict(os.environ), None)
standalone.tidy = lambda *_: None
warehouse = Warehouse(Path(sys.argv[1]))
logs = [standalone.log_of(warehouse, name) for name in standalone.COMPONENTS]
parts = {"metadatabase", "scheduler", "dag_processor"}
standalone.healthy_parts = lambda port: parts if all(log.read_text().count("up") > 1 for log in logs if log.exists()) else set()
try:
    standalone.run(warehouse, 1)
except standalone.StandaloneError as error:
    sys.exit(str(error))
"""
COMPONENTS, TASKS = 3, 3


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started = []

    def begin(on_hangup: signal.Handlers = signal.SIG_DFL) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(tmp_path)],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, on_hangup),  # whatever these tests were started under
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for pid in {*_holders(lock(tmp_path)), *(process.pid for process in started if process.poll() is None)}:
        os.kill(pid, signal.SIGKILL)


def lock(warehouse: Path) -> Path:
    return warehouse / "airflow/running.lock"


def said(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=30)[0]


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    while select.select([process.stdout], [], [], 30)[0]:
        line = process.stdout.readline()
        assert line, "it has ended"
        if "Airflow is ready" in line:
            return
    raise AssertionError("not ready within 30 s")


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_it_ends_with_all_its_parts(told: signal.Signals, start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    running = start()
    wait_until_ready(running)
    assert len(_holders(lock(tmp_path))) == 1 + COMPONENTS + TASKS
    second = start()
    assert f"the Airflow of this warehouse runs already, as process {running.pid}; use that one, or end it: kill" in said(second)
    assert second.returncode == 1 and running.poll() is None
    running.send_signal(told)
    running.send_signal(told)
    said(running)
    assert running.returncode == 0
    assert _holders(lock(tmp_path)) == []


def test_what_outlives_it_is_named_and_kept_from_a_second_one(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    """Under nohup, which a terminal that goes does not end; then killed."""
    running = start(signal.SIG_IGN)
    wait_until_ready(running)
    running.send_signal(signal.SIGHUP)
    running.kill()
    running.wait()
    assert running.returncode == -signal.SIGKILL
    # the components end by themselves, their tasks do not
    wait_for(lambda: len(_holders(lock(tmp_path))) == TASKS)
    refused = said(start())
    pids = " ".join(map(str, _holders(lock(tmp_path))))
    assert re.search(f"parts of an Airflow that was killed still run for this warehouse, .*; end them: kill {pids}\\.", refused)
    for pid in _holders(lock(tmp_path)):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: _holders(lock(tmp_path)) == [])
    wait_until_ready(start())

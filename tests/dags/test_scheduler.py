"""The whole thing as an operator runs it: `drivetail airflow`, three hours and a week's report, with tasks killed (kill -9) on the way.

DRIVETAIL_SCHEDULED_HOURS is how many hours (48 in `make soak`), DRIVETAIL_TASK_KILLS how many tasks are killed (5; 50 in `make soak`).
DRIVETAIL_KILL_SEED repeats the draw.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from drivetail.warehouse import Warehouse
from ingest import drop
from tests.dags.hours import WEEK, Site, last_hours, make_site
from tests.proof.support import command, drivetail, environment, marts_differences

HOURS = last_hours(int(os.environ.get("DRIVETAIL_SCHEDULED_HOURS", "3")))
KILLS = int(os.environ.get("DRIVETAIL_TASK_KILLS", "5"))
KILL_SECONDS = 40
"""How long to wait for the next kill at most, where there is one for every hour; an hour's run takes about 50 s."""
TASK = re.compile(r"airflow worker -- [0-9a-f]{8}-")
PATIENCE_SECONDS = 500 * len(HOURS)


class Scheduler:
    """`drivetail airflow` in a process of its own, seen through Airflow's database."""

    def __init__(self, site: Site) -> None:
        self.site = site
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.output = site.folder / "airflow.out"
        self.variables = {name: value for name, value in environment().items() if not name.startswith("AIRFLOW")}
        self.process = subprocess.Popen(
            command("airflow", "--port", self.port, "--warehouse", site.warehouse.root),
            env=self.variables, stdout=self.output.open("wb"), stderr=subprocess.STDOUT,
        )  # fmt: skip

    def airflow(self, *arguments: object) -> None:
        """Run a command of Airflow's own beside it."""
        line = command("airflow", "--port", self.port, "--warehouse", self.site.warehouse.root, *arguments)
        done = subprocess.run(line, env=self.variables, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        database = self.site.warehouse.root / "airflow/airflow.db"
        try:
            connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)
            try:
                return connection.execute(query).fetchall()
            finally:
                connection.close()
        except sqlite3.OperationalError:  # not there yet
            return []

    def runs(self, dag: str) -> list[str]:
        """The states of a DAG's runs, in their order."""
        return [state for (state,) in self.rows(f"select state from dag_run where dag_id = '{dag}' order by run_after, id")]

    def backfilled(self) -> list[str]:
        """The states of the runs that a backfill asked for, the same again where the hour had one."""
        return [state for (state,) in self.rows("select state from dag_run where backfill_id is not null")]

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_SECONDS} s\n{self.states()}"
            time.sleep(0.2)

    def states(self) -> str:
        rows = self.rows("select run_id, task_id, map_index, state, try_number from task_instance order by run_id, start_date")
        return "\n".join(map(str, rows))

    def tasks(self) -> list[psutil.Process]:
        """The processes that run a task now; not the executor's own, which are named alike."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if TASK.match(" ".join(process.cmdline())):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def kill_tasks(scheduler: Scheduler, rng: random.Random, killed: list[int], done: threading.Event) -> None:
    """Kill a running task at random instants, spread over the hours, until there were enough."""
    while len(killed) < KILLS and not done.wait(rng.uniform(1, KILL_SECONDS * len(HOURS) / KILLS)):
        tasks = scheduler.tasks()
        while not tasks and not done.wait(0.5):
            tasks = scheduler.tasks()
        if not tasks:
            break
        chosen = rng.choice(tasks)
        try:
            chosen.kill()
        except psutil.Error:
            continue
        killed.append(chosen.pid)


@pytest.mark.xdist_group("scheduler")
def test_hours_with_kills_end_in_the_marts_of_one_load(tmp_path: Path):
    seed = int(os.environ.get("DRIVETAIL_KILL_SEED", random.randrange(1_000_000)))
    print(f"DRIVETAIL_KILL_SEED={seed}")
    site = make_site(tmp_path, HOURS[-1], HOURS)
    warehouse = site.warehouse
    site.deliver(HOURS[0], late=False)
    site.deliver(HOURS[1], in_ms=True)
    scheduler, done, killed = Scheduler(site), threading.Event(), []
    killer = threading.Thread(target=kill_tasks, args=(scheduler, random.Random(seed), killed, done))
    try:
        scheduler.wait("Airflow is ready", lambda: "Airflow is ready" in scheduler.output.read_text())
        assert listening_elsewhere(scheduler) == []
        killer.start()
        held = warehouse.raw / "quarantine/000001/record.json"
        scheduler.wait("the wrong file is held", held.exists)
        # the array sends the hour again, right, with what was missing of the one before; the operator drops the wrong one
        drop(warehouse.root, 1, by="ada", note="latencies in ms")
        site.deliver(HOURS[1])
        site.deliver(HOURS[0], late=True)
        for hour in HOURS[2:]:
            site.deliver(hour)
        ended = [True] * len(HOURS)
        scheduler.wait("every hour", lambda: [state in ("success", "failed") for state in scheduler.runs("fleet_hourly")] == ended)
        scheduler.wait("the report", lambda: "success" in scheduler.runs("fleet_weekly_report"))
        # of a landing killed after the file was held, the next try finds the right one
        assert {state for number, state in enumerate(scheduler.runs("fleet_hourly")) if number != 1} == {"success"}, scheduler.states()
        assert (warehouse.root / "reports" / f"{WEEK}.html").exists()
        # the hour of the file that was held again, which mends its red run
        span = ("--from-date", f"{HOURS[1]:%Y-%m-%dT%H:%M:%SZ}", "--to-date", f"{HOURS[1]:%Y-%m-%dT%H:%M:%SZ}")
        again = ("backfill", "create", "--dag-id", "fleet_hourly", *span, "--reprocess-behavior", "completed")
        scheduler.airflow(*again)
        scheduler.wait("the backfill", lambda: scheduler.backfilled() == ["success"])
        assert log_in(scheduler) == 201
    finally:
        done.set()
        killer.join(10) if killer.is_alive() else None
        scheduler.stop()
    print(f"{len(killed)} tasks killed")
    assert len(killed) == KILLS
    drivetail("ingest", "bundle", site.everything, "--warehouse", tmp_path / "bulk")
    drivetail("build", "--warehouse", tmp_path / "bulk")
    assert marts_differences(warehouse.published, Warehouse(tmp_path / "bulk").published) == []


def listening_elsewhere(scheduler: Scheduler) -> list[Any]:
    """What any part of it listens on that is not this machine's own address."""
    processes = [psutil.Process(scheduler.process.pid), *psutil.Process(scheduler.process.pid).children(recursive=True)]
    addresses = [each.laddr.ip for process in processes for each in process.net_connections() if each.status == psutil.CONN_LISTEN]
    assert addresses
    return [address for address in addresses if address != "127.0.0.1"]


def log_in(scheduler: Scheduler) -> int:
    """Log in with the password that was printed. Returns: the status of the answer."""
    found = re.search(r"as (\S+) with the password (\S+) ", scheduler.output.read_text())
    assert found
    request = urllib.request.Request(
        f"http://127.0.0.1:{scheduler.port}/auth/token",
        data=json.dumps({"username": found[1], "password": found[2]}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return int(answer.status)

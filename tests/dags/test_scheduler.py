"""The whole thing as an operator runs it: deploy/airflow.sh, three hours, the night's maintenance beside them, a backfill beside them, a
week's report, with tasks killed (kill -9) on the way and once everything, as when the machine goes down.

DRIVETAIL_SCHEDULED_HOURS is how many hours (48 in `make soak`), DRIVETAIL_TASK_KILLS how many tasks are killed (5; 50 in `make soak`).
DRIVETAIL_KILL_SEED repeats the draw.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.warehouse import Warehouse
from ingest import drop
from ingest.raw.register import Register
from tests.dags.hours import WEEK, Site, last_hours, make_site
from tests.proof.readers import Reader
from tests.proof.support import ROOT, asked, drivetail, environment, marts_differences
from tests.webhook import free_port

HOURS = last_hours(int(os.environ.get("DRIVETAIL_SCHEDULED_HOURS", "3")))
KILLS = int(os.environ.get("DRIVETAIL_TASK_KILLS", "5"))
TASK_SECONDS = {
    "drivetail_hourly.sources.discover": 0.5,
    "drivetail_hourly.raw.land": 4.0,
    "drivetail_hourly.marts.build": 6.0,
    "drivetail_hourly.marts.each_day": 0.5,
    "drivetail_hourly.marts.complete_weeks": 0.5,
    "drivetail_hourly.watch.new_alerts": 0.5,
    "drivetail_weekly_report.write": 0.5,
    "drivetail_maintenance.expire": 0.5,
    "drivetail_maintenance.proofs.sums": 2.0,
    "drivetail_maintenance.proofs.rebuild": 4.0,
}
"""Tasks that write, notify or decide, and the least time each runs: its kill comes within that time, sooner after each miss."""
LOOK_SECONDS = 0.1
ANY_KILL_SECONDS = 25
"""After those, the longest wait for the next kill when there is one kill for each hour; the run of an hour takes 20 s or more."""
NIGHT_HOURS = 12
NIGHTS = len(HOURS) // NIGHT_HOURS
"""Maintenance runs once in this number of hours, the first time beside a backfill. In CI there is no night, and the machine stays up."""
BACKFILLED_BESIDE = "min(start_date) filter (where backfill_id is not null) < max(end_date) filter (where backfill_id is null)"
FAILED_LANDINGS = "select run_id from task_instance where task_id = 'raw.land' and state = 'failed'"
ALERTED = "select subject_id from marts.fct_slow_alerts group by subject_id order by min(raised_at)"
"""Once each, though a drive may have an acute and a chronic alert."""
PATIENCE_SECONDS = 500 * len(HOURS)


class Scheduler:
    """deploy/airflow.sh in a session of its own, seen through Airflow's database."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.port = free_port()
        self.output = site.folder / "airflow.out"
        self.variables = {name: value for name, value in environment().items() if not name.startswith("AIRFLOW")}
        self.variables["PORT"] = str(self.port)
        self.script = [str(ROOT / "deploy/airflow.sh"), str(self.site.warehouse.root)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.script, env=self.variables, stdout=self.output.open("ab"), stderr=subprocess.STDOUT)

    def wait_until_ready(self) -> None:
        self.wait("Airflow is ready", self.is_ready)

    def is_ready(self) -> bool:
        """Whether its pages say that scheduler and DAG processor are well."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v2/monitor/health", timeout=10) as answer:
                health = json.load(answer)
        except OSError:
            return False
        return all(health[part]["status"] == "healthy" for part in ("scheduler", "dag_processor"))

    def airflow(self, *arguments: str) -> None:
        done = subprocess.run([*self.script, *arguments], env=self.variables, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        database = self.site.warehouse.root / "airflow/airflow.db"
        try:
            with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.OperationalError:  # not there yet
            return []

    def runs(self, dag: str) -> list[str]:
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

    def tasks(self) -> list[tuple[str, psutil.Process]]:
        """The tasks that run now, each the task's name and the process that runs it."""
        found = []
        for task_id, name, pid in self.rows(
            "select id, dag_id || '.' || task_id, pid from task_instance where state = 'running' and pid is not null"
        ):
            with contextlib.suppress(psutil.Error):  # it has ended since, or with the machine
                process = psutil.Process(pid)
                if " ".join(process.cmdline()).startswith(f"airflow worker -- {uuid.UUID(task_id)}"):
                    found.append((name, process))
        return found

    def processes(self) -> list[psutil.Process]:
        main = psutil.Process(self.process.pid)
        return [main, *main.children(recursive=True)]

    def go_down(self) -> None:
        """Kill all of it at once, as when the machine goes down."""
        for each in self.processes():  # so that none is started meanwhile
            with contextlib.suppress(psutil.Error):
                each.suspend()
        killed = self.processes()
        for each in killed:
            with contextlib.suppress(psutil.Error):
                each.kill()
        self.process.wait()
        psutil.wait_procs(killed, timeout=30)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


class Killer(threading.Thread):
    """Kills running tasks: each of some kinds once, as soon as it runs, then any at random instants until there were enough."""

    def __init__(self, scheduler: Scheduler, rng: random.Random) -> None:
        super().__init__(daemon=True)
        self.killed: list[str] = []
        self.missed: Counter[str] = Counter()
        run = [name for name in sorted(TASK_SECONDS) if NIGHTS or not name.startswith("drivetail_maintenance.")]
        self.kinds = rng.sample(run, min(KILLS, len(run)))
        self._scheduler, self._rng, self._done = scheduler, rng, threading.Event()

    @property
    def unhit(self) -> set[str]:
        return set(self.kinds) - set(self.killed)

    def run(self) -> None:
        next_any = time.monotonic()
        while len(self.killed) < KILLS and not self._done.wait(LOOK_SECONDS):
            running = self._scheduler.tasks()
            hunted = [each for each in running if each[0] in self.unhit]
            # enough of them are left for those that run late, such as the report
            may_be_any = KILLS - len(self.killed) > len(self.unhit) and time.monotonic() > next_any
            # a task that is killed whenever it is tried again waits twice as long each time, and nothing else would ever run
            others = [each for each in running if each[0] not in self.killed[-1:]]
            if not hunted and not (others and may_be_any):
                continue
            name, process = self._rng.choice(hunted or others)
            if hunted:
                self._done.wait(self._rng.uniform(0, TASK_SECONDS[name] / (1 + self.missed[name])))
            if (name, process) not in self._scheduler.tasks():
                self.missed[name] += 1
                continue
            with contextlib.suppress(psutil.Error):
                process.kill()
                self.killed.append(name)
            next_any = time.monotonic() + self._rng.uniform(1, ANY_KILL_SECONDS * len(HOURS) / KILLS)

    def stop(self) -> None:
        self._done.set()
        self.join(30)


@pytest.mark.soak
def test_hours_with_kills_end_in_the_marts_of_one_load(tmp_path: Path):
    seed = int(os.environ.get("DRIVETAIL_KILL_SEED", random.randrange(1_000_000)))
    print(f"DRIVETAIL_KILL_SEED={seed}")
    site = make_site(tmp_path, HOURS[-1], HOURS)
    warehouse, bulk = site.warehouse, Warehouse(tmp_path / "bulk")
    site.deliver(HOURS[0], late=False)
    site.deliver(HOURS[1], in_ms=True)
    scheduler, reader = Scheduler(site), None
    killer = Killer(scheduler, random.Random(seed))
    killer.start()
    try:
        # what it has to end in, while Airflow starts
        drivetail("ingest", "bundle", site.everything, "--warehouse", bulk.root)
        drivetail("build", "--warehouse", bulk.root)
        scheduler.wait_until_ready()
        assert listening_elsewhere(scheduler) == []
        scheduler.wait("the first publication", warehouse.published.exists)
        reader = Reader(warehouse.published, "poll", tmp_path)

        # the machine goes down in the middle of the second hour; the others come meanwhile
        scheduler.wait("the wrong file is held", (warehouse.raw / "quarantine/000001/record.json").exists)
        if NIGHTS:
            scheduler.go_down()
            assert runs_begun(scheduler) == HOURS[:2]
        for hour in HOURS[2:]:
            site.deliver(hour)
        if NIGHTS:
            scheduler.start()
            scheduler.wait_until_ready()
        scheduler.wait("its landing has failed", lambda: scheduler.rows(FAILED_LANDINGS) != [])
        # the array sends the hour again, right, with what was missing of the one before; the operator drops the wrong one
        drop(warehouse.root, 1, by="ada", note="latencies in ms")
        site.deliver(HOURS[1])
        site.deliver(HOURS[0], late=True)

        # what wants to write at the same time: the nights, and the hour of the file that was held again (and more, where there are)
        if NIGHTS:
            trigger(scheduler, "drivetail_maintenance")
        again = HOURS[1 : 2 + len(HOURS) // 8]
        scheduler.wait("the hours to run again", lambda: ended(scheduler) > len(again))
        assert ended(scheduler) < len(HOURS)
        span = ("--from-date", f"{again[0]:%Y-%m-%dT%H:%M:%SZ}", "--to-date", f"{again[-1]:%Y-%m-%dT%H:%M:%SZ}")
        scheduler.airflow("backfill", "create", "--dag-id", "drivetail_hourly", *span, "--reprocess-behavior", "completed")
        for number in range(NIGHT_HOURS, len(HOURS), NIGHT_HOURS):
            scheduler.wait(f"hour {number}", lambda number=number: ended(scheduler) >= number)
            trigger(scheduler, "drivetail_maintenance")

        scheduler.wait("every hour", lambda: ended(scheduler) == len(HOURS))
        scheduler.wait("the backfill", lambda: all_of(scheduler.backfilled(), len(again)))
        scheduler.wait("the report", lambda: "success" in scheduler.runs("drivetail_weekly_report"))
        scheduler.wait("the nights", lambda: all_of(scheduler.runs("drivetail_maintenance"), NIGHTS))
        assert set(scheduler.runs("drivetail_hourly")) == {"success"}, scheduler.states()
        assert runs_begun(scheduler) == HOURS
        assert scheduler.rows(f"select {BACKFILLED_BESIDE} from dag_run where dag_id = 'drivetail_hourly'") == [(True,)]
        assert (warehouse.root / "reports" / f"{WEEK}.html").exists()
        assert [(record["subject_id"],) for record in Register(warehouse.raw, "alerts").read()] == asked(bulk.published, ALERTED)
        reader.check()
    finally:
        killer.stop()
        scheduler.stop()
        seen = reader.stop() if reader else []
    print("killed:", *(f"{count} {name}" for name, count in sorted(Counter(killer.killed).items())), sep="\n  ")
    assert len({entry["publication"] for entry in seen}) > 1
    assert killer.unhit == set() and len(killer.killed) == KILLS
    assert marts_differences(warehouse.published, bulk.published) == []


@pytest.mark.soak
def test_run_started_by_hand_is_for_now_and_a_stop_leaves_nothing(tmp_path: Path) -> None:
    """It has no data interval. The one hour of the schedule has run before; what comes then is landed and built by the run by hand."""
    site = make_site(tmp_path, HOURS[0], HOURS)
    settings = site.warehouse.root / "drivetail.toml"
    # the fleet is of another year, and the run of now: what it finds is old
    settings.write_text(settings.read_text().replace("fresh_hours = 3", f"fresh_hours = {24 * 365 * 100}"))
    site.deliver(HOURS[0])
    scheduler = Scheduler(site)
    try:
        scheduler.wait_until_ready()
        scheduler.wait("the hour of the schedule", lambda: scheduler.runs("drivetail_hourly") == ["success"])
        for hour in HOURS[1:]:
            site.deliver(hour)
        trigger(scheduler, "drivetail_hourly")
        scheduler.wait("the run by hand", lambda: scheduler.runs("drivetail_hourly") == ["success"] * 2)
        assert scheduler.rows("select count(*) from dag_run where dag_id = 'drivetail_hourly' and data_interval_end is null") == [(1,)]
        assert scheduler.rows("select count(*) from task_instance where try_number > 1") == [(0,)]
        # nothing has landed since: the next one publishes nothing
        published = site.warehouse.published.stat().st_ino
        scheduler.airflow("dags", "trigger", "drivetail_hourly")
        scheduler.wait("the second run by hand", lambda: scheduler.runs("drivetail_hourly") == ["success"] * 3)
        assert site.warehouse.published.stat().st_ino == published
        processes = alive(scheduler.processes())
        assert len(processes) > 4
        # what the executor began does not end by itself, so it is ended with the scheduler
        begun = next(each for each in processes if "scheduler" in " ".join(each.cmdline()[:4]))
        begun.kill()
        scheduler.process.wait(60)
        assert alive(processes) == []
    finally:
        scheduler.stop()
    output = scheduler.output.read_text()
    assert "Airflow's scheduler has ended" in output
    password = json.loads((site.warehouse.root / "airflow/simple_auth_manager_passwords.json.generated").read_text())["admin"]
    assert password not in output
    drivetail("ingest", "bundle", site.everything, "--warehouse", tmp_path / "bulk")
    drivetail("build", "--warehouse", tmp_path / "bulk")
    assert marts_differences(site.warehouse.published, Warehouse(tmp_path / "bulk").published) == []


@pytest.mark.soak
def test_a_stop_ends_every_process_in_order_while_tasks_run(tmp_path: Path) -> None:
    site = make_site(tmp_path, HOURS[-1], HOURS)
    for hour in HOURS:
        site.deliver(hour)
    scheduler = Scheduler(site)
    try:
        scheduler.wait("a task runs", lambda: bool(scheduler.tasks()))
        processes = scheduler.processes()
    finally:
        began = time.monotonic()
        scheduler.stop()
    assert time.monotonic() - began < 60
    assert scheduler.process.returncode == 0
    assert alive(processes) == []
    # tasks could report until the last
    assert "Connection refused" not in scheduler.output.read_text()


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [each] if each.is_running() and each.status() != psutil.STATUS_ZOMBIE else []
    return found


def ended(scheduler: Scheduler) -> int:
    """How many of the hours have been run, however they ended."""
    return sum(state in ("success", "failed") for state in scheduler.runs("drivetail_hourly"))


def all_of(states: list[str], count: int) -> bool:
    """Whether this number of runs has succeeded. Raises: AssertionError when one has failed."""
    assert "failed" not in states
    return states == ["success"] * count


def runs_begun(scheduler: Scheduler) -> list[datetime]:
    """The hours in the order in which their runs began, were they run again or not."""
    tries = "(select dag_id, run_id, start_date from task_instance union all select dag_id, run_id, start_date from task_instance_history)"
    hours = f"select logical_date from dag_run join {tries} as tries using (dag_id, run_id) where dag_id = 'drivetail_hourly'"
    rows = scheduler.rows(f"{hours} and tries.start_date is not null group by logical_date order by min(tries.start_date)")
    return [datetime.fromisoformat(hour) for (hour,) in rows]


def listening_elsewhere(scheduler: Scheduler) -> list[Any]:
    """Addresses that any part of it listens on, if it is not this machine's own address."""
    connections = []
    for process in scheduler.processes():
        with contextlib.suppress(psutil.NoSuchProcess):  # a task that has ended since
            connections += process.net_connections()
    addresses = [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN]
    assert addresses
    return [address for address in addresses if address != "127.0.0.1"]


def trigger(scheduler: Scheduler, dag: str) -> None:
    """Start a DAG as its page does, logged in with the password that Airflow made at the first start."""
    passwords = scheduler.site.warehouse.root / "airflow/simple_auth_manager_passwords.json.generated"
    login = {"username": "admin", "password": json.loads(passwords.read_text())["admin"]}
    token = post(scheduler, "auth/token", login)["access_token"]
    post(scheduler, f"api/v2/dags/{dag}/dagRuns", {"logical_date": None}, Authorization=f"Bearer {token}")


def post(scheduler: Scheduler, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{scheduler.port}/{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return dict(json.load(answer))

"""Airflow for one machine: scheduler, DAG processor and API server as child processes, everything under `WAREHOUSE/airflow`.

Nothing but these three: no triggerer (no task defers) and no log servers (they would listen on every address; the API server reads
the logs as files). What a real Airflow does otherwise is in docs/airflow.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.util
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from drivetail.console import say
from drivetail.service.history import before, forget_logs, forget_runs
from drivetail.service.settings import load_settings
from engine.warehouse import PROJECT, Warehouse

COMPONENTS = {
    "api-server": ("airflow", "api-server"),
    "scheduler": ("drivetail.service.airflow_scheduler", "scheduler", "--skip-serve-logs"),
    "dag-processor": ("airflow", "dag-processor"),
}
RUN_MODULE = [sys.executable, "-m"]
HOST = "127.0.0.1"
USER = "admin"
WRITER_POOL = "drivetail_writer"
READY_SECONDS = 300
STOP_SECONDS = 30
TIDY_SECONDS = 24 * 3600
ENDING = (signal.SIGTERM, signal.SIGHUP)


class StandaloneError(RuntimeError):
    """Airflow could not be started or has ended; the message says which part and where its log is."""


def home_of(warehouse: Warehouse) -> Path:
    """AIRFLOW_HOME of a warehouse: its database, logs, secrets and the password."""
    return warehouse.root / "airflow"


def environment(warehouse: Warehouse, port: int) -> dict[str, str]:
    """What this installation sets of Airflow; whatever else the environment says of it stays."""
    url = f"http://{HOST}:{port}"
    # what must be so wins over the environment, what is a preference gives way to it
    fixed = {
        "DRIVETAIL_WAREHOUSE": str(warehouse.root),
        "AIRFLOW_HOME": str(home_of(warehouse)),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "SCARF_ANALYTICS": "false",
        "DO_NOT_TRACK": "1",
    }
    preferred = {
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
        # it also tells of tasks that were killed, and each receiver that is down takes half a minute of it
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
    }
    # the commands of this installation's own environment come first
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**preferred, **os.environ, **fixed, "PATH": path}


def prepare(warehouse: Warehouse, port: int) -> tuple[dict[str, str], str | None]:
    """Make or migrate Airflow's database, the writer's pool and the password.

    Returns: the environment of the components, and the password when it is new.
    """
    components = environment(warehouse, port)
    home = home_of(warehouse)
    passwords, password = home / "simple_auth_manager_passwords.json.generated", None
    if not passwords.exists():
        password = secrets.token_urlsafe(15)
        with os.fdopen(os.open(passwords, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(json.dumps({USER: password}) + "\n")
    os.environ.update(components, AIRFLOW__LOGGING__LOGGING_LEVEL="ERROR")
    from airflow.models.pool import Pool
    from airflow.utils import db

    db.upgradedb()
    forget_killed()
    Pool.create_or_update_pool(WRITER_POOL, slots=1, description="One writer per warehouse", include_deferred=False)
    return components, password


def forget_killed() -> None:
    """Tell Airflow that no scheduler runs, as whoever holds the lock knows; else what a killed one was doing stands still for minutes."""
    from airflow.jobs.job import Job
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        session.execute(update(Job).where(Job.job_type == "SchedulerJob", Job.state == "running").values(state="failed"))


def run(warehouse: Warehouse, port: int) -> None:
    """Run Airflow until it is interrupted or one of its parts ends.

    Raises: StandaloneError, SettingsError.
    """
    load_settings(warehouse)  # what is wrong there is better told now than by a task
    _require_airflow()
    with only_one(warehouse) as lock:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                raise StandaloneError(f"something listens on {HOST}:{port} already; stop it, or give another --port")
        say(f"Preparing Airflow in {home_of(warehouse)} ...")
        components, password = prepare(warehouse, port)
        if password:
            say(f"Log in as {USER} with the password {password} (shown this once; it is kept in {home_of(warehouse)})")
        _end_on_signals()
        tidy(warehouse)  # after a long time the most, and nothing else is at work on its database yet
        tidied_at = time.monotonic()
        processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name, arguments in COMPONENTS.items():
                processes[name] = _start(warehouse, name, [*RUN_MODULE, *arguments], components, lock)
                # it makes the secrets that the others sign with, and tasks report to it: the scheduler must not start one before
                if name == "api-server":
                    _wait(warehouse, port, processes, {"metadatabase"})
            _wait(warehouse, port, processes, {"metadatabase", "scheduler", "dag_processor"})
            say(f"Airflow is ready: http://{HOST}:{port}  (Ctrl-C ends it; what was running is done again at the next start)")
            while True:
                _check(warehouse, processes)
                if time.monotonic() - tidied_at > TIDY_SECONDS:
                    tidy(warehouse)
                    tidied_at = time.monotonic()
                time.sleep(1)
        except KeyboardInterrupt:
            say("Stopping")
        finally:
            _ignore_signals()
            stop(processes)


def tidy(warehouse: Warehouse) -> None:
    """Let Airflow's history go that is older than `keep_days` of the settings. What hinders it is said, and is no reason to end."""
    try:
        until = before(load_settings(warehouse).schedule.keep_days)
        forget_runs(until)
        forget_logs(home_of(warehouse), until)
    except Exception as error:  # a full disk, a database that is busy, settings that are just being changed
        say(f"Airflow's history was not shortened ({type(error).__name__}: {error}); the next try is in a day")


@contextlib.contextmanager
def only_one(warehouse: Warehouse) -> Iterator[int]:
    """Hold the one lock of a warehouse's Airflow. Yields: its descriptor; components inherit it, so it is held while any of them lives.

    Raises: StandaloneError where it is held.
    """
    home_of(warehouse).mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home_of(warehouse) / "running.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StandaloneError(_held(path)) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file.fileno()


def _held(path: Path) -> str:
    main, holders = path.read_text(), [str(pid) for pid in _holders(path)]
    if main in holders:
        return f"{path.parent}: the Airflow of this warehouse runs already, as process {main}; use that one, or end it: kill {main}"
    which = f"processes {', '.join(holders)}; end them: kill {' '.join(holders)}" if holders else f"`fuser {path}` names them; end them"
    return f"{path.parent}: parts of an Airflow that was killed still run for this warehouse, {which}. Then start again, nothing is lost"


def _holders(path: Path) -> list[int]:
    """The processes that have a file open, as far as /proc tells; this one aside."""
    found = set()
    for pid in _processes() - {os.getpid()}:
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            for link in Path(f"/proc/{pid}/fd").iterdir():
                if link.readlink() == path:
                    found.add(pid)
    return sorted(found)


def _processes() -> set[int]:
    """Every process that /proc tells of."""
    return {int(each.name) for each in Path("/proc").glob("[0-9]*")}


def _end_on_signals() -> None:
    """End in order when told to, and when the terminal goes, unless started with nohup."""

    def end(*_: object) -> NoReturn:
        _ignore_signals()
        sys.exit(0)

    for each in ENDING:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, end)


def _ignore_signals() -> None:
    """While it ends: a second signal would leave half of it running."""
    for each in (*ENDING, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)


def _start(warehouse: Warehouse, name: str, command: list[str], variables: dict[str, str], lock: int) -> subprocess.Popen[bytes]:
    with log_of(warehouse, name).open("ab") as log:
        return subprocess.Popen(
            command,
            env=variables, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, pass_fds=[lock], preexec_fn=_ending_with_parent(),
        )  # fmt: skip


def _ending_with_parent() -> Callable[[], None] | None:
    """What a child calls so that it is told to end when its parent dies, however it dies; Linux alone can do that."""
    if sys.platform != "linux":
        return None
    prctl, parent, set_death_signal = ctypes.CDLL(None).prctl, os.getpid(), 1

    def ask() -> None:
        prctl(set_death_signal, signal.SIGTERM)
        if os.getppid() != parent:  # it died before
            os._exit(1)

    return ask


def run_command(warehouse: Warehouse, port: int, arguments: Sequence[str]) -> NoReturn:
    """Become a command of Airflow's own in this installation. Raises: StandaloneError."""
    _require_airflow()
    os.execve(sys.executable, [sys.executable, "-m", "drivetail.service.airflow_command", *arguments], environment(warehouse, port))


def _require_airflow() -> None:
    if importlib.util.find_spec("airflow") is None:
        raise StandaloneError("Airflow is not installed; `make airflow` installs it, or `uv sync --group orchestration`")


def log_of(warehouse: Warehouse, name: str) -> Path:
    """Where a component writes what it has to say."""
    return home_of(warehouse) / f"{name}.log"


def stop(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    """End the components, and what they started, at the latest after STOP_SECONDS."""
    for process in processes.values():
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes.values():
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    # a task has a process group of its own and outlives a killed scheduler; the session is its component's
    sessions = {process.pid for process in processes.values()}
    for pid in _processes():
        with contextlib.suppress(OSError):
            if os.getsid(pid) in sessions:
                os.kill(pid, signal.SIGKILL)


def _check(warehouse: Warehouse, processes: dict[str, subprocess.Popen[bytes]]) -> None:
    for name, process in processes.items():
        if process.poll() is not None:
            raise StandaloneError(f"Airflow's {name} has ended with exit code {process.returncode}; see {log_of(warehouse, name)}")


def _wait(warehouse: Warehouse, port: int, processes: dict[str, subprocess.Popen[bytes]], parts: set[str]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        _check(warehouse, processes)
        if parts <= healthy_parts(port):
            return
        time.sleep(1)
    raise StandaloneError(f"Airflow was not ready within {READY_SECONDS} s; see {home_of(warehouse)}/*.log")


def healthy_parts(port: int) -> set[str]:
    """The parts of Airflow that its API server says are well; none where it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/api/v2/monitor/health", timeout=5) as answer:
            health = json.load(answer)
    except (OSError, ValueError, urllib.error.URLError):
        return set()
    return {part for part, state in health.items() if (state or {}).get("status") == "healthy"}

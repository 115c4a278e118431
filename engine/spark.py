"""Apache Spark in the place of DuckDB for what is stored by day: `drivetail build --target spark` (docs/spark.md).

Which days changed, what is kept over all days and the publication stay DuckDB's: that is small. Spark computes the stored models of these
days from raw, as tables in a folder of its own, and their files are linked into the store. So every build may use the other engine.
"""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

import duckdb

from engine.dbt import Hindered, ModelError, Project
from engine.store import day_folder, stored_models
from engine.warehouse import Warehouse, quoted
from ingest.raw.trouble import NO_ROOM

LOCAL = "local[*]"
"""Spark in this process, on every core."""

MASTER_SECONDS = 5
"""How long a master may take to answer."""

WORKER_SECONDS = 60
"""How long a build waits while no worker of the cluster runs anything for it. Spark itself would wait for ever."""

JAVA_SECONDS = 10
"""How long Java may take to end."""

POLL_SECONDS = 2

NO_MEMORY = (
    "outofmemoryerror",
    "java heap space",
    "gc overhead limit",
    "not enough memory to build",
    "insufficient driver memory",
    "exit code 52",
)
"""What Spark says where a driver or an executor has too little memory."""

JAVA_FRAME = re.compile(r"\s+at [\w.$/]+\(| Driver stacktrace:| JVM stacktrace:")
"""Where an error of Spark goes on with where in its code it was."""

SAMPLED = "int_sampled_days"
"""A stored model that DuckDB computes on either engine: it reads a fit in Python over DuckDB's relations, of the few days with samples."""

DAYS = (
    "stg_raw__drive_hours+,+config.materialized:by_day", "+publication", "test_type:singular",
    "--exclude", "int_drive_samples+", "int_drives+", "test_type:generic",
)  # fmt: skip
"""What is stored by day and made of drive-hours, all between the two, and the sums that must hold."""

OF_INVENTORY = ("int_aliases__periods", "int_drives__segments", "int_raid_groups__width_steps")
"""What these models read of inventory: DuckDB has made it to know which days have changed."""

OF_DRIVES = ("int_drives", "int_raid_groups__kinds")
"""What the counts by class read beside stored days: DuckDB makes it over all days for the publication."""


def require_spark(master: str) -> None:
    """Check that Spark can be had: its libraries, Java, and a master that answers. Raises: ModelError that says what is missing."""
    missing = [name for name in ("pyspark", "dbt.adapters.spark") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(f"--target spark needs {' and '.join(missing)}; install drivetail[spark] (`uv sync --extra spark` in a checkout)")
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        where = f"JAVA_HOME ({home})" if home else "PATH"
        raise ModelError(f"--target spark needs Java 17 or later, and {where} has no java that runs; install it, or set JAVA_HOME")
    if master.startswith("spark://"):
        why = [_silence(address) for address in master.removeprefix("spark://").split(",")]
        if all(why):
            raise ModelError(f"no Spark master answers at {master} ({why[0]}); start it, or correct --master")


def _silence(address: str) -> str:
    """Why nobody answers at HOST:PORT; empty where somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), MASTER_SECONDS).close()
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _stop_session() -> None:
    """Stop Spark, if it runs in this process."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # a session is of one thread, and dbt's is another
    if context is not None:
        with suppress(Exception):  # Java may be gone
            context.stop()


def _executor_count() -> int | None:
    """How many executors work for this process; None where Spark does not run, or does not say."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    with suppress(Exception):
        return None if context is None else int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # the driver is one
    return None


def _without_frames(error: str) -> str:
    """An error of Spark without the places in its code."""
    return JAVA_FRAME.split(error)[0]


def end_session() -> None:
    """Stop Spark and its Java when everything has been said."""
    from pyspark import SparkContext

    _stop_session()
    gateway = SparkContext._gateway
    with suppress(Exception):  # Java may be gone
        gateway.proc.stdin.close()
        gateway.proc.wait(JAVA_SECONDS)
    # beside its threads, also those of a session that failed, the interpreter leaves objects behind, and DuckDB's binding would list all
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _start_java(log: Path) -> None:
    """Start Java with its messages in the log: it warns of modules, and says much where it lacks memory. Raises: ModelError."""
    from pyspark import SparkConf, SparkContext

    log.parent.mkdir(parents=True, exist_ok=True)
    settings = SparkConf().set("spark.driver.memory", os.environ.get("DRIVETAIL_SPARK_MEMORY", "3g"))
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as messages:
            os.dup2(messages.fileno(), 2)
        SparkContext._ensure_initialized(conf=settings)
    except RuntimeError as error:
        raise ModelError(f"Java does not start for Spark; correct DRIVETAIL_SPARK_MEMORY or what {log} names") from error
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class SparkStore:
    """The store as tables of Spark, for one build. Its folder holds links to the store's live files and what Spark writes beside them."""

    def __init__(self, warehouse: Warehouse, master: str | None) -> None:
        require_spark(master or LOCAL)
        os.environ["DRIVETAIL_SPARK_MASTER"] = master or LOCAL
        log = warehouse.build / "logs" / "spark.log"
        os.environ["DRIVETAIL_SPARK_LOG"] = str(log)
        os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("spark_conf")))
        _start_java(log)
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # no model of ours uses it there
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # dbt says what failed
        atexit.register(end_session)
        self.warehouse = warehouse
        self.master = master or LOCAL
        self.project = Project(warehouse, "spark")
        self.models = [model for model in stored_models(self.project.manifest) if model != SAMPLED]

    def show(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Begin with what is stored, whichever engine wrote it, and with inventory."""
        shutil.rmtree(self.warehouse.spark, ignore_errors=True)
        self.take(connection, OF_INVENTORY)
        for model, day, file in connection.execute("select model, day_utc, file from plan.files").fetchall():
            path = self.warehouse.store / file
            link = day_folder(self.warehouse.spark, model, day) / path.name
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, link)

    def take(self, connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> None:
        """Have the runs that follow see tables as DuckDB has made them, instead of making them again (macros/engine/spark_tables.sql)."""
        self.warehouse.spark_tables.mkdir(parents=True, exist_ok=True)
        for name in tables:
            connection.execute(f"copy intermediate.{name} to {quoted(self.warehouse.spark_tables / f'{name}.parquet')} (format parquet)")

    def compute(self, select: Sequence[str], days: Sequence[date], build: str, connect: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """Run models over some days and make what they wrote the live files of these days: BUILD.0.parquet, BUILD.1.parquet, ...

        connect: opens the build database. Raises: ModelError.
        """
        self.run("build", "--select", *select, days=days)
        with connect() as connection:
            for model in self.models:
                self._enter(connection, model, days, build)

    def run(self, command: str, *arguments: str, days: Iterable[date] | None = None) -> None:
        """Run a dbt command on Spark up to the first node that fails. Raises: ModelError, Hindered where trying again may help."""
        try:
            with self._waiting_for_workers() as is_alone:
                self.project.run(command, "--fail-fast", *arguments, days=days)
        except ModelError as error:
            why = self._why(str(error), is_alone=is_alone.is_set())
            if why is None:
                raise ModelError(_without_frames(str(error))) from error
            raise Hindered(f"{why}: nothing is lost, readers see the last publication (docs/spark.md)") from error

    def _why(self, error: str, *, is_alone: bool) -> str | None:
        """What is wrong with Spark itself, and what to do; None for an error of another sort."""
        from pyspark import SparkContext

        text, log = error.lower(), os.environ["DRIVETAIL_SPARK_LOG"]
        gateway = SparkContext._gateway
        if is_alone:
            return f"no worker of {self.master} has run anything for {WORKER_SECONDS} s; start workers, then run it again"
        if any(sign in text for sign in NO_ROOM):
            return (
                f"{self.warehouse.spark}: no room on the disk, there or in Spark's scratch folder, /tmp unless SPARK_LOCAL_DIRS says "
                f"otherwise ({_without_frames(error)}); make room, then run it again"
            )
        if any(sign in text for sign in NO_MEMORY) or (gateway is not None and gateway.proc.poll() is not None):
            return (
                f"Spark has too little memory; give it more, such as DRIVETAIL_SPARK_MEMORY=8g, larger workers or more "
                f"DRIVETAIL_SPARK_PARTITIONS, then run it again (details in {log})"
            )
        if "executorlostfailure" in text or "executor was lost" in text or "sparkcontext was shut down" in text:
            return f"{self.master} has lost too many executors, or its master; see their logs, then run it again (details in {log})"
        return None

    @contextmanager
    def _waiting_for_workers(self) -> Iterator[threading.Event]:
        """Stop Spark when no worker has run anything for WORKER_SECONDS; what runs on it then fails. Gives: an event that says so."""
        is_alone, is_over = threading.Event(), threading.Event()

        def watch() -> None:
            seen = time.monotonic()
            while not is_over.wait(POLL_SECONDS):
                if _executor_count() != 0:
                    seen = time.monotonic()
                elif is_alone.is_set() or time.monotonic() - seen > WORKER_SECONDS:
                    is_alone.set()
                    _stop_session()

        watcher = threading.Thread(target=watch, daemon=True)
        if self.master.startswith("spark://"):
            watcher.start()
        try:
            yield is_alone
        finally:
            is_over.set()

    def _enter(self, connection: duckdb.DuckDBPyConnection, model: str, days: Sequence[date], build: str) -> None:
        written, files = [], []
        for day in days:
            parts = sorted(day_folder(self.warehouse.spark, model, day).glob("*.parquet"))
            if parts and not parts[0].name.startswith("part-"):  # as it was stored before
                continue
            written.append(day)
            for number, part in enumerate(parts):
                path = day_folder(self.warehouse.store, model, day) / f"{build}.{number}.parquet"
                path.unlink(missing_ok=True)  # of a build that did not finish
                os.link(part, path)
                files.append((model, day, str(path.relative_to(self.warehouse.store)), self.project.store_version))
        connection.execute("delete from plan.files where model = ? and day_utc in (select unnest(?::date[]))", [model, written])
        if files:
            connection.executemany("insert into plan.files values (?, ?, ?, ?)", files)

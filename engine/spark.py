"""Apache Spark in the place of DuckDB for what is stored by day: `drivetail build --target spark` (docs/spark.md).

Which days changed, what is kept over all days and the publication stay DuckDB's: that is small. Spark computes the stored models of these
days from raw, as tables in a folder of its own, and their files are linked into the store. So every build may use the other engine.
"""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import duckdb

from engine.dbt import ModelError, Project
from engine.store import day_folder, stored_models
from engine.warehouse import Warehouse

LOCAL = "local[*]"
"""Spark in this process, on every core."""

MASTER_SECONDS = 5
"""How long a master may take to answer."""

SAMPLED = "int_sampled_days"
"""A stored model that DuckDB computes on either engine: it reads a fit in Python over DuckDB's relations, of the few days with samples."""

DAYS = ("+config.materialized:by_day", "+test_type:singular", "--exclude", SAMPLED, "int_drives+", "test_type:unit", "test_type:generic")
"""What is stored by day from raw, all that it is made of, and the sums that must hold."""

OVER_DAYS = (
    "+config.materialized:by_day,int_drive_hours__measured+",
    "--exclude", "config.materialized:by_day", "config.materialized:in_run",
)  # fmt: skip
"""What is made of stored models over all days for other stored models."""


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


def end_session() -> None:
    """Stop Spark, if it runs in this process, when everything has been said."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # a session is of one thread, and dbt's is another
    if context is not None:
        context.stop()
        # beside its threads the interpreter leaves objects behind, and DuckDB's binding would list them all
        sys.stderr.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class SparkStore:
    """The store as tables of Spark, for one build. Its folder holds links to the store's live files and what Spark writes beside them."""

    def __init__(self, warehouse: Warehouse, master: str | None) -> None:
        require_spark(master or LOCAL)
        os.environ["DRIVETAIL_SPARK_MASTER"] = master or LOCAL
        os.environ["DRIVETAIL_SPARK_LOG"] = str(warehouse.build / "logs" / "spark.log")
        os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("spark_conf")))
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # no model of ours uses it there
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # dbt says what failed
        atexit.register(end_session)
        self.warehouse = warehouse
        self.project = Project(warehouse, "spark")
        self.models = [model for model in stored_models(self.project.manifest) if model != SAMPLED]

    def show(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Begin with what is stored, whichever engine wrote it."""
        shutil.rmtree(self.warehouse.spark, ignore_errors=True)
        for model, day, file in connection.execute("select model, day_utc, file from plan.files").fetchall():
            path = self.warehouse.store / file
            link = day_folder(self.warehouse.spark, model, day) / path.name
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, link)

    def compute(self, select: Sequence[str], days: Sequence[date], build: str, connect: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """Run models over some days and make what they wrote the live files of these days: BUILD.0.parquet, BUILD.1.parquet, ...

        connect: opens the build database. Raises: ModelError.
        """
        self.project.run("build", "--select", *select, days=days)
        with connect() as connection:
            for model in self.models:
                self._enter(connection, model, days, build)

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
                files.append((model, day, str(path.relative_to(self.warehouse.store)), self.project.version))
        connection.execute("delete from plan.files where model = ? and day_utc in (select unnest(?::date[]))", [model, written])
        if files:
            connection.executemany("insert into plan.files values (?, ?, ?, ?)", files)

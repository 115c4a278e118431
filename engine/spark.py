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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from engine.compiled import models_of
from engine.errors import FailedModel, ModelError, RetryableError
from engine.execute import Executor
from engine.nodes import STORED, VIEW, Models, Node, Test
from engine.sources import EARLIER, OF_A_PUBLICATION, RawFiles, raw_files
from engine.thresholds import own_thresholds
from engine.warehouse import Warehouse, day_folder, quoted
from ingest.contract.extras import how_to_install
from ingest.raw.errors import NO_ROOM

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
"""Spark's messages where a driver or an executor has too little memory."""

JAVA_FRAME = re.compile(r"\s+at [\w.$/]+\(| Driver stacktrace:| JVM stacktrace:")
"""Where an error of Spark goes on with where in its code it was."""

AS_VIEWS = frozenset(
    {
        "stg_raw__drive_hours", "stg_raw__drive_samples", "stg_raw__drive_health", "stg_raw__drive_latencies",
        "int_drive_hours__identified", "int_drive_samples__identified", "fct_drive_hours", "fct_drive_hour_io",
        "fct_raid_hours", "fct_drive_samples", "fct_drive_hour_latency",
    }
)  # fmt: skip
"""Views of as many rows as there are drive-hours, samples or readings. Every other view is a table here: Spark puts the text of a view into
every query that reads it, and the text of those it reads; of ten in a row it finds no plan in an hour."""

BY_RAID_GROUP = frozenset({"int_drive_hours__measured", "int_raid_hours__medians", "int_drive_hours__compared", "int_drive_hours__notable"})
"""Tables that lie by RAID group: what is joined or added up by it is then where it is needed, and the day is shuffled once."""


def require_spark(master: str) -> None:
    """Check that Spark can be had: its libraries, Java, and a master that answers. Raises: ModelError that says what is missing."""
    missing = [name for name in ("pyspark",) if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(f"--target spark needs {' and '.join(missing)}; {how_to_install('spark')}")
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

    context = SparkContext._active_spark_context  # a session is of one thread, and this may be another
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


def settings(store: Path) -> dict[str, str]:
    """Settings of a session. store: folder for the tables that nothing else has a place for."""
    host = os.environ.get("DRIVETAIL_SPARK_HOST", "127.0.0.1")
    return {
        "spark.master": os.environ.get("DRIVETAIL_SPARK_MASTER", LOCAL),
        "spark.app.name": "drivetail",
        "spark.driver.memory": os.environ.get("DRIVETAIL_SPARK_MEMORY", "3g"),
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # the catalog is in memory, so that Spark starts no metastore and writes no metastore_db folder
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(store),
        # a table may be created over the files of an earlier session; its days are the folders that exist
        "spark.sql.legacy.allowNonEmptyLocationInCTAS": "true",
        "spark.sql.hive.manageFilesourcePartitions": "false",
        # timestamps are UTC without a zone, as on DuckDB; a value that cannot be cast is an error
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.ansi.enabled": "true",
        # largest number of parts of a shuffle; Spark merges small ones
        "spark.sql.shuffle.partitions": partitions(),
        # what lies by RAID group is joined by RAID group and hour where it is, however large (BY_RAID_GROUP)
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
    }


def partitions() -> str:
    """Into how many parts a table that lies by RAID group is divided."""
    return os.environ.get("DRIVETAIL_SPARK_PARTITIONS", "8")


class SparkExecutor:
    """The compiled models as tables of one Spark session. folder: for their files; what is stored by day is a folder for each model there.

    own: thresholds of the warehouse. The catalog ends with the session; the files stay.
    """

    def __init__(self, models: Models, folder: Path, own: dict[str, Any]) -> None:
        from pyspark.sql import SparkSession

        folder.mkdir(parents=True, exist_ok=True)
        builder = SparkSession.builder
        for name, value in settings(folder).items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.models = models
        self.folder = folder
        self._with_thresholds = models.with_thresholds(own)
        schemas = {"raw", "store", *(name.split(".")[0] for name in (*models.sources, *models.by_relation))}
        for schema in sorted(schemas):
            self.session.sql(f"create schema if not exists {schema}")

    def show_raw(self, tables: Iterable[str], files: RawFiles, days: Sequence[date] | None = None, horizon: date | None = None) -> None:
        """Make raw tables views over the files of raw, of measured tables those of some days, or of all from the horizon on."""
        for table in tables:
            columns = self.models.sources[f"raw.{table}"]
            found, condition = raw_files(table, files, days, horizon)
            if not found:
                self._sql(f"create or replace view raw.{table} as {_no_rows(columns)}")
                continue
            # a table of declared columns: one that a file lacks is null. Its files are those of one glob
            root = str(found[0]).rsplit("/deliveries/", 1)[0]
            paths = ",".join(str(path).rsplit("/deliveries/", 1)[1] for path in found)
            declared = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
            self._sql(f"drop table if exists raw.{table}__files")
            place = f"{_glob(root)}/deliveries/{{{paths}}}"
            self._sql(f"create table raw.{table}__files ({declared}) using parquet options (path '{place}')")
            self._sql(f"create or replace view raw.{table} as select * from raw.{table}__files{f' where {condition}' if condition else ''}")

    def take(self, connection: duckdb.DuckDBPyConnection, relations: Iterable[str]) -> None:
        """Have the models see relations as DuckDB has made them."""
        place = self.folder / "made_by_duckdb"
        place.mkdir(exist_ok=True)
        for relation in relations:
            file = place / f"{relation}.parquet"
            connection.execute(f"copy (from {relation}) to {quoted(file)} (format parquet)")
            for kind in ("table", "view"):
                if self.session.catalog.tableExists(relation):
                    with suppress(Exception):
                        self._sql(f"drop {kind} {relation}")
            self._sql(f"create table {relation} using parquet options (path '{_glob(str(file))}')")

    def show_store(self, days: Sequence[date] | None = None) -> None:
        """Make the stored models tables over their folders, and views over some days of them, or all."""
        for node in self.models.made(*STORED):
            columns = ", ".join(f"{name} {_spark_type(kind)}" for name, kind in node.columns.items() if name not in node.ratios)
            place = _text(str(self.folder / node.name))
            self._sql(f"drop table if exists store.{node.name}")
            self._sql(
                f"create table store.{node.name} ({columns}) using parquet options (compression 'zstd') partitioned by (day_utc) "
                f"location '{place}'"
            )
            names = ", ".join(f"{node.ratios[name]} as {name}" if name in node.ratios else name for name in node.columns)
            condition = "" if days is None else f" where {_in_days(days)}"
            self._sql(f"create or replace view {node.relation} as select {names} from store.{node.name}{condition}")

    def make(self, nodes: Iterable[Node], days: Sequence[date] | None = None) -> None:
        """Make models, in order; of stored ones some days, or all. Raises: ModelError naming the first that fails."""
        for node in nodes:
            try:
                self._make(node, days)
            except Exception as error:
                raise FailedModel(f"model {node.name} ({node.path}): {' '.join(str(error).split())}") from error

    def _make(self, node: Node, days: Sequence[date] | None) -> None:
        sql = self._with_thresholds(node.sql)
        if node.is_python:
            self._sql(f"create or replace view {node.relation} as {_no_rows(node.columns)}")
        elif node.made in STORED:
            self._store(node, sql, days)
        elif node.name in AS_VIEWS:
            self._sql(f"create or replace view {node.relation} as {sql}")
        else:
            self._sql(f"drop table if exists {node.relation}")
            clustered = ""
            if node.name in BY_RAID_GROUP:
                sql = f"select /*+ repartition({partitions()}, raid_group_id) */ * from ({sql})"
                clustered = f"clustered by (raid_group_id) into {partitions()} buckets "
            place = _text(str(self.folder / "tables" / node.relation))
            self._sql(f"create table {node.relation} using parquet {clustered}location '{place}' as {sql}")

    def _store(self, node: Node, sql: str, days: Sequence[date] | None) -> None:
        """Replace days of a stored model, or all of it: the days are the partitions of a table, and a day without rows has none."""
        rows, names = f"store.{node.name}", [name for name in node.columns if name != "day_utc" and name not in node.ratios]
        before = {} if days is None else self._files(rows, days)
        self._sql(f"set spark.sql.sources.partitionOverwriteMode = {'static' if days is None else 'dynamic'}")
        hint = "/*+ rebalance(day_utc) */ " if days is None or len(days) > 1 else ""
        condition = "" if days is None else f" where {_in_days(days)}"
        self._sql(f"insert overwrite {rows} partition (day_utc) select {hint}{', '.join(names)}, day_utc from ({sql}){condition}")
        # a day of which no rows are left is not one that dynamic partitions replace
        left = {day for file, day in self._files(rows, days or []).items() if file in before}
        for day in sorted(left):
            nulls = ", ".join(["null"] * len(names))
            self._sql(f"insert overwrite {rows} partition (day_utc = date '{day}') select {nulls} where false")

    def _files(self, rows: str, days: Sequence[date]) -> dict[str, str]:
        """The files that some days of a stored model have rows in, each with its day."""
        query = f"select distinct cast(day_utc as string), input_file_name() from {rows} where {_in_days(days)}"
        return {row[1]: row[0] for row in self.session.sql(query).collect()}

    def run_test(self, test: Test) -> None:
        """Run a data test. Raises: ModelError with a row that breaks it."""
        found = self.session.sql(self._with_thresholds(test.sql)).take(1)
        if found:
            raise FailedModel(f"test {test.name} of {', '.join(test.nodes)}: a row breaks it: {found[0].asDict()}")

    def _sql(self, statement: str) -> None:
        self.session.sql(statement)


def _in_days(days: Sequence[date]) -> str:
    listed = "', date '".join(day.isoformat() for day in days or [date.min])
    return f"day_utc in (date '{listed}')"


def _spark_type(kind: str | None) -> str:
    """A declared type as Spark names it."""
    return f"array<{kind.removesuffix('[]')}>" if kind is not None and kind.endswith("[]") else str(kind)


def _no_rows(columns: Mapping[str, str | None]) -> str:
    typed = ", ".join(f"cast(null as {_spark_type(kind)}) as `{name}`" for name, kind in columns.items())
    return f"select {typed} where false"


def _glob(path: str) -> str:
    """A path as text of Spark's SQL, in which braces and the like name themselves."""
    return re.sub(r"([][{}*?'\\])", r"\\\\\1", path)


def _text(path: str) -> str:
    """A path between quotes of Spark's SQL."""
    return path.replace("\\", "\\\\").replace("'", "\\'")


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
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # the error says what failed
        atexit.register(end_session)
        self.warehouse = warehouse
        self.master = master or LOCAL

    @cached_property
    def executor(self) -> SparkExecutor:
        """The engine that runs the models. Spark starts with it, which may be where its memory is too small or its master is gone."""
        return SparkExecutor(models_of("spark"), self.warehouse.spark, own_thresholds(self.warehouse))

    def show(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Begin with what is stored, whichever engine wrote it, and with inventory."""
        self.warehouse.spark.mkdir(parents=True, exist_ok=True)
        for folder in self.warehouse.spark.iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        for model, day, file in connection.execute("select model, day_utc, file from plan.files").fetchall():
            path = self.warehouse.store / file
            link = day_folder(self.warehouse.spark, model, day) / path.name
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, link)

    def compute(
        self, duck: Executor, files: RawFiles, nodes: Sequence[Node], days: Sequence[date], *, horizon: date | None, build: str
    ) -> list[Node]:
        """Compute stored models of some days and make what Spark wrote the live files of these days: BUILD.0.parquet, BUILD.1.parquet, ...

        duck: the same models on DuckDB. files: of raw, from the horizon on. Returns: the models that are left for DuckDB, which alone runs
        Python. Raises: ModelError, RetryableError where trying again may help.
        """
        left: dict[str, Node] = {}
        for node in nodes:
            if node.is_python or set(node.parents) & set(left):
                left[node.relation] = node
        ours = [node for node in nodes if node.relation not in left]

        def work() -> None:
            self._compute(duck, files, ours, days, horizon)
            for node in ours:
                if node.made in STORED:
                    self._enter(duck, node.name, days, build)

        self._run(work)
        duck.show_store(days)
        return list(left.values())

    def _compute(self, duck: Executor, files: RawFiles, nodes: Sequence[Node], days: Sequence[date], horizon: date | None) -> None:
        executor, models = self.executor, self.executor.models
        nodes = [models.by_relation[node.relation] for node in nodes]  # as they are compiled for Spark
        names = {node.relation for node in nodes}
        wanted = models.above(parent for node in nodes for parent in node.parents if parent not in names)
        views = [node for node in models if node.relation in wanted and node.made == VIEW]
        read = {parent for node in (*views, *nodes) for parent in node.parents}
        sources = [name for name in wanted if name in models.sources]
        landed = [name.split(".")[1] for name in sources if name.startswith("raw.") and name not in OF_A_PUBLICATION]
        executor.show_raw(landed, files, days, horizon)
        made = [name for name in read if (node := models.by_relation.get(name)) and node.made not in (*STORED, VIEW) and name not in names]
        shown = ["plan.shown_days", *EARLIER, "raw.publication"]
        executor.take(duck.connection, [*made, *shown])
        executor.show_store(days)
        executor.make(views)
        executor.make([*nodes], days)
        there = {*names, *wanted, *made, *shown, *(node.relation for node in views), "marts.publication", "staging.stg_raw__publication"}
        executor.make(node for node in models if node.relation in ("staging.stg_raw__publication", "marts.publication"))
        for test in models.tests:
            if test.name.startswith("assert_") and names & set(test.nodes) and set(test.nodes) <= there:
                executor.run_test(test)

    def _run(self, work: Callable[[], None]) -> None:
        """Run work on Spark. Raises: ModelError, RetryableError where trying again may help."""
        try:
            with self._waiting_for_workers() as is_alone:
                work()
        except Exception as error:
            why = self._why(str(error), is_alone=is_alone.is_set())
            if why is None:
                raise ModelError(_without_frames(str(error))) from error
            raise RetryableError(f"{why}: nothing is lost (docs/spark.md)") from error

    def _why(self, error: str, *, is_alone: bool) -> str | None:
        """Fault of Spark itself, with advice; None for an error of another sort."""
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

    def _enter(self, duck: Executor, model: str, days: Sequence[date], build: str) -> None:
        written: list[date] = []
        files: list[tuple[date, Path]] = []
        for day in days:
            parts = sorted(day_folder(self.warehouse.spark, model, day).glob("*.parquet"))
            if parts and not parts[0].name.startswith("part-"):  # as it was stored before
                continue
            written.append(day)
            for number, part in enumerate(parts):
                path = day_folder(self.warehouse.store, model, day) / f"{build}.{number}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)  # of a build that did not finish
                os.link(part, path)
                files.append((day, path))
        query = "delete from plan.files where model = ? and day_utc in (select unnest(?::date[]))"
        duck.connection.execute(query, [model, written])
        duck.enter_files(model, files)

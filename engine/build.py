"""Build: compute the UTC days that have changed since the last build, and publish.

Python decides what to run and where files are; every definition is in models/. A build
1. asks models/plan/ which days the deliveries change that no build has finished with (engine/plan.py),
2. computes those days from raw, a batch of whole days at a time; each stored model gets a new file per day (engine/store.py),
3. brings up to date the tables over all days, and the counts by kind where a drive counts as another kind now,
4. builds the analysts' own models (engine/custom.py),
5. publishes (engine/publish.py), and only then marks the deliveries as finished: a killed build is simply done again.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb

from engine.custom import CustomModels, build_custom, custom_digest
from engine.dbt import Hindered, ModelError, Project, require_perseus
from engine.earlier_past import convert_earlier_past
from engine.experiments import make_empty
from engine.plan import INVENTORY, MAX_COUNTED_ROWS, batches, row_count, tell
from engine.publish import Publication, current_publication, publish
from engine.read import first_line, published_by, published_custom
from engine.retention import Past, bring_back, enter_past, read_past
from engine.spark import DAYS as SPARK_DAYS
from engine.spark import OF_DRIVES, SAMPLED, SparkStore
from engine.store import make_day_folders, stored_models
from engine.warehouse import Warehouse
from ingest.contract.values import RAW_KINDS
from ingest.raw.store import drive_hour_files, list_deliveries, pruned_record, table_files
from ingest.raw.trouble import Shortage, explained

TABLES_OF_INVENTORY = ("config.materialized:table", "--exclude", "int_drive_hours__measured+", "tag:lab")
"""What inventory alone says: made before the days that changed are known."""

TABLES_OVER_DAYS = ("int_drive_hours__measured+,config.materialized:table", "--exclude", "int_raid_group_days__fitted")
"""What is kept as tables over all days: made when the days are stored."""

DAYS = (
    "config.materialized:by_day", "config.materialized:in_run", "int_raid_group_days__fitted", "test_type:singular",
    "--exclude", "int_drives+",
)  # fmt: skip
"""What is stored by day from raw, and the sums that must hold."""

COUNTS_BY_CLASS = "int_drives+,config.materialized:by_day"
"""What is stored by day and depends on how drives are grouped now."""

SUMS_OF_DRIVES = "int_drives+,test_type:singular"
"""The sums that need to know every drive."""

MADE_FOR_STORE = ("+config.materialized:by_day", "path:models/plan")
"""What is stored, what decides which days are, and all that they are made of: it stays as it is while `store_version` does."""

OPEN_ELSEWHERE = "could not set lock"
"""What DuckDB says of a database that another process has open."""

SLOWEST = 10
"""Number of slowest models written to the log."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BuildSummary:
    """What one build did: deliveries taken in, days, RAID-hours and drive-hours computed, the publication it ended in, and one sentence
    for each custom model or test that failed.
    """

    delivery_count: int
    day_count: int
    raid_hour_count: int
    drive_hour_count: int
    publication: Publication
    custom_failures: list[str]


def build(
    warehouse: Warehouse,
    *,
    target: str = "duckdb",
    master: str | None = None,
    full_refresh: bool = False,
    keep_pruned: bool = False,
    on_progress: Progress | None = None,
) -> BuildSummary:
    """Bring the marts up to what has landed and publish them.

    `target` says what computes the days: `duckdb`, or `spark` at `master`, by default in this process.
    `full_refresh` forgets every computed day and computes all of raw again; `keep_pruned` leaves what was pruned as it was computed
    where that, or models that have changed, would compute it again.
    `on_progress(phase, done, total)` is called as batches finish.
    Raises: ModelError when a model or a data test fails, or the past cannot be computed again, Hindered where trying again may help; the
    last publication then stays as it is.
    """
    report = on_progress or (lambda phase, done, total: None)
    with building(warehouse):
        with explaining(warehouse):
            spark = SparkStore(warehouse, master) if target == "spark" else None
        if full_refresh:
            past = read_past(warehouse)
            if past is not None and not keep_pruned:
                raise ModelError(_cannot_compute(warehouse, past, "drivetail build --full-refresh --keep-pruned"))
            forget(warehouse)
        with explaining(warehouse):
            made = Build(warehouse, report, spark, keep_pruned=keep_pruned)
        with explaining(warehouse, made.raw_files):
            return made.run()


def publish_store(warehouse: Warehouse) -> Publication:
    """Publish what is stored as it is: what has landed since waits for the next build. Where no build has finished, this is one."""
    with building(warehouse), explaining(warehouse):
        made = Build(warehouse, lambda phase, done, total: None)
        if made.defined is not None and not made.is_unfinished:
            made.bound(of_finished=True)
            made.new = []
        return made.run(must_publish=True).publication


@contextmanager
def explaining(warehouse: Warehouse, read: Callable[[], Iterable[Path]] = list) -> Iterator[None]:
    """Work that fails for want of room or memory, or over a damaged file, fails with a ModelError that says so and what to do.

    read: the files of raw that the work has read, asked for when it has failed. Raises: Hindered for want of room or memory.
    """
    try:
        yield
    except Hindered:
        raise
    except (ModelError, duckdb.Error, OSError, MemoryError) as error:
        why = explained(error, warehouse.root, read())
        if why is None:
            raise
        raise (Hindered if isinstance(why, Shortage) else ModelError)(why) from error


@contextmanager
def building(warehouse: Warehouse) -> Iterator[None]:
    """Hold the builder's lock, and have the build database closed when it is given back."""
    with warehouse.only_builder():
        convert_earlier_past(warehouse)
        try:
            yield
        finally:
            Project.let_go()


def _cannot_compute(warehouse: Warehouse, past: Past, command: str) -> str:
    """Why a build that would lose the past does not start, and what to do."""
    return (
        f"raw before {past.day} was pruned, so it cannot be computed again with these models; `{command}` computes the rest and keeps the "
        f"past as it was computed, or put the pruned days of {warehouse.raw} back from a copy and remove {pruned_record(warehouse.root)}"
    )


def forget(warehouse: Warehouse) -> None:
    """Drop the build database. The store's files stay while a publication needs them."""
    # its log first: no database may come to stand beside a log that is not its own
    for path in sorted(warehouse.build.glob("build.duckdb*"), reverse=True):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


STATE = """
create schema if not exists state;
create table if not exists state.finished_deliveries (delivery_seq bigint primary key);
create table if not exists state.project (version varchar);
create table if not exists state.defined (version varchar);
"""
"""What a build database remembers between builds, with the tables of schema `plan` that macros/raw/register_raw.sql makes."""


class Build:
    """One build: the deliveries to take in and the project to run over them."""

    def __init__(self, warehouse: Warehouse, report: Progress, spark: SparkStore | None = None, *, keep_pruned: bool = False) -> None:
        self.started = time.monotonic()
        self.warehouse = warehouse
        self.report = report
        self.spark = spark
        self.project = Project(warehouse)
        self.deliveries = list_deliveries(warehouse.root)
        self.past = read_past(warehouse)
        # a decision or an experiment counts at once, without a build: what publications read is there from the first on
        warehouse.decisions.touch()
        make_empty(warehouse)
        finished, self.defined = self.open_state(keep_pruned=keep_pruned)
        self.new = [delivery for delivery in self.deliveries if delivery.seq not in finished]
        self.computed: list[date] = []
        self.bound()
        warehouse.note("plan", deliveries=len(self.deliveries), new=len(self.new))

    @property
    def has_inventory(self) -> bool:
        """Whether the new deliveries say something of where drives are."""
        return any(table_files(self.new, table) for table in INVENTORY)

    @property
    def horizon(self) -> date | None:
        """Day before which drive-hours are pruned."""
        return None if self.past is None else self.past.before_utc.date()

    @property
    def is_unfinished(self) -> bool:
        """Whether an earlier build has begun with deliveries and not finished: what is stored may be half the new and half the old."""
        if self.defined is None:
            return False
        query = "select count(*) from plan.new_deliveries where delivery_seq not in (select delivery_seq from state.finished_deliveries)"
        with self.connect() as connection:
            return connection.execute(query).fetchall() != [(0,)]

    def bound(self, *, of_finished: bool = False) -> None:
        """Have the models see the deliveries that were there when the build began, and write files of this build.

        of_finished: see those alone that a build has finished with.
        """
        new = set(self.new) if of_finished else set()
        last_delivery = max((delivery.seq for delivery in self.deliveries if delivery not in new), default=0)
        self.name = f"{1 + self._last_build():06d}"
        for project in (self.project, self.spark.project) if self.spark else (self.project,):
            project.bound(build=self.name, last_delivery=last_delivery, horizon=self.horizon)

    def _last_build(self) -> int:
        """The greatest number that names a file of the store."""
        names = (path.name.split(".")[0] for path in self.warehouse.store.glob("*/day_utc=*/*.parquet"))
        return max((int(name) for name in names if name.isdigit()), default=0)

    def open_state(self, *, keep_pruned: bool) -> tuple[set[int], str | None]:
        """Make or read the build database's state. One whose days other definitions made is forgotten: its numbers would mix with new ones.

        Returns: sequence numbers of the finished deliveries, and the version of the models that are defined, none where none are.
        Raises: ModelError where other models than these made what was pruned, unless that may stay as it is.
        """
        if not self.warehouse.build_database.exists():
            self.project.template("build").begin(self.warehouse.build_database)
        if not self.warehouse.build_database.exists():
            self._begin_empty()
        with self.connect() as connection:
            # before anything else: an earlier release may have kept its state in other columns
            connection.execute("create schema if not exists state; create table if not exists state.project (version varchar)")
            versions = [row[0] for row in connection.execute("select version from state.project").fetchall()]
            is_of_others = self.past is not None and self.past.is_of_other_models(self.project.store_version)
            if self.past is not None and is_of_others and versions != [self.project.store_version] and not keep_pruned:
                raise ModelError(_cannot_compute(self.warehouse, self.past, "drivetail build --keep-pruned"))
            if versions in ([], [self.project.store_version]):
                connection.execute(STATE)
                (defined,) = connection.execute("select max(version) from state.defined").fetchone() or (None,)
                finished = {row[0] for row in connection.execute("select delivery_seq from state.finished_deliveries").fetchall()}
                if not versions:
                    connection.execute("insert into state.project values (?)", [self.project.store_version])
                if self.past is not None and defined is not None:
                    self._enter_past(connection)
                return finished, defined
        self.warehouse.note("forget", reason="the models have changed")
        forget(self.warehouse)
        return self.open_state(keep_pruned=keep_pruned)

    def _enter_past(self, connection: duckdb.DuckDBPyConnection) -> None:
        assert self.past is not None
        bring_back(self.warehouse, self.past)
        enter_past(connection, self.warehouse, self.past)

    def _begin_empty(self) -> None:
        """Make the build database by one rename: what a full disk leaves of one that was just begun is no database, and would stay."""
        draft = self.warehouse.build_database.with_name("build.duckdb.begun")
        draft.unlink(missing_ok=True)
        duckdb.connect(str(draft)).close()
        os.replace(draft, self.warehouse.build_database)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Open the build database. dbt opens it too, in between: never hold both.

        Raises: ModelError when it is damaged or of a newer DuckDB, Hindered when it is open elsewhere.
        """
        path = self.warehouse.build_database
        try:
            return duckdb.connect(str(path))
        except duckdb.Error as error:
            found = first_line(error).rstrip("!.")
            hint = "close what has it open, or make a new one from raw with `drivetail build --full-refresh`"
            kind = Hindered if OPEN_ELSEWHERE in found.lower() else ModelError
            raise kind(f"{path}: cannot be opened ({found}); {hint}") from error

    def run(self, *, must_publish: bool = False) -> BuildSummary:
        """See build(). must_publish: also where nothing is new, because the store is another now."""
        if self.defined is None:
            self.define()
        elif self.defined != self.project.version:
            self.redefine()
        if self.new:
            days = self.changed_days()
            self.compute(days)
            self.summarize(days)
        horizon = None if self.past is None else self.past.before_utc
        publication = None if self.new or must_publish else current_publication(self.warehouse)
        if (
            publication is None
            or publication.pruned_before_utc != horizon
            or published_by(self.warehouse, publication.publication_id) != self.project.version
            or published_custom(self.warehouse, publication.publication_id)[0] != custom_digest()
        ):
            if not self.new:  # the views may be of another place, or show days that are pruned now
                self.project.run("run-operation", "register_raw")
            publication = publish(self.warehouse, self.project, self.past, self.started, self.built_custom())
        _, custom_failures = published_custom(self.warehouse, publication.publication_id)
        with self.connect() as connection:
            counts = self.computed_hours(connection)
            if self.new:
                connection.execute("begin")
                for table in ("places", "classes") if self.has_inventory else ("classes",):
                    connection.execute(f"create or replace table plan.last_{table} as select * from plan.plan_{table}")
                connection.execute("delete from plan.unfinished_days")
                connection.execute("insert or ignore into state.finished_deliveries select delivery_seq from plan.new_deliveries")
                connection.execute("commit")
        self.warehouse.note("finished", deliveries=len(self.new), publication=publication.publication_id)
        return BuildSummary(len(self.new), len(self.computed), *counts, publication, custom_failures)

    def built_custom(self) -> CustomModels:
        """Build the custom models, over nothing that an earlier build left of them."""
        with self.connect() as connection:
            connection.execute("drop schema if exists custom cascade")
        return build_custom(self.warehouse, self.project)

    def define(self) -> None:
        """Run every model over nothing: views are defined for good, and what is computed later finds its tables there."""
        self.warehouse.note("define")
        self.project.bound(build="000000", last_delivery=0, horizon=None)
        self.project.run("seed", days=[])
        self.project.run("run", days=[])
        Project.let_go()
        with self.connect() as connection:
            connection.execute("insert into state.defined values (?)", [self.project.version])
        if self.past is None:
            self.project.template("build").keep(self.warehouse.build_database, _forget_warehouse)
        else:
            with self.connect() as connection:
                self._enter_past(connection)
        self.bound()

    def redefine(self) -> None:
        """Define again what is not stored, from all stored days: views, tables over all days, seeds. No day is computed."""
        self.warehouse.note("redefine")
        self.project.run("seed")
        self.project.run("run", "--exclude", *MADE_FOR_STORE)
        self.project.run("test", "--select", "config.materialized:table", "--exclude", *MADE_FOR_STORE, "test_type:singular")
        Project.let_go()
        with self.connect() as connection:
            connection.execute("update state.defined set version = ?", [self.project.version])

    def changed_days(self) -> list[date]:
        """Ask the models which days the new deliveries change."""
        with self.connect() as connection:
            tell(connection, self.new, self.deliveries, self.horizon)
            (is_stored,) = connection.execute("select count(*) > 0 from plan.files").fetchone() or (False,)
            # without inventory no place has changed, and without a stored day none needs another one
            connection.execute("delete from plan.plan_places__changed")
        if self.has_inventory:
            moved = () if is_stored else ("plan_places__changed",)
            self.project.run("build", "--select", *TABLES_OF_INVENTORY, *moved)
        else:
            self.project.run("run-operation", "register_raw")
        with self.connect() as connection:
            return [day for (day,) in connection.execute("select day_utc from plan.plan_days__changed order by day_utc").fetchall()]

    def compute(self, days: list[date]) -> None:
        """Compute some days from raw and store them."""
        if self.spark:
            with self.connect() as connection:
                self.spark.show(connection)
        cut = batches(self.deliveries, days)
        models = stored_models(self.project.manifest)
        make_day_folders(self.warehouse, models, days)
        self.begin_days(days)
        for number, batch in enumerate(cut):
            self.report("days", number, len(cut))
            self.warehouse.note("days", first=batch[0], last=batch[-1], days=len(batch))
            before = self.project.seconds.copy()
            has_samples = any(self.day_files("drive_samples", batch))
            if has_samples:
                require_perseus()
            # without samples nothing is fitted: a Python model costs its imports all the same
            unneeded = () if has_samples else ("int_raid_group_days__fitted",)
            if self.spark:
                self.spark.compute(SPARK_DAYS, batch, self.name, self.connect)
                self.project.run("build", "--select", *(("int_raid_group_days__fitted",) if has_samples else ()), SAMPLED, days=batch)
            else:
                self.project.run("build", "--select", *DAYS, *unneeded, days=batch)
            slowest = {model: round(seconds, 3) for model, seconds in (self.project.seconds - before).most_common(SLOWEST)}
            self.warehouse.note("stored", first=batch[0], last=batch[-1], slowest_models_s=slowest)
        self.report("days", len(cut), len(cut))
        self.computed = days

    def begin_days(self, days: Iterable[date]) -> None:
        """Note days that are about to be stored: if this build does not finish, the next one computes them again."""
        with self.connect() as connection:
            connection.execute("insert into plan.unfinished_days select unnest(?::date[])", [list(days)])

    def summarize(self, days: list[date]) -> None:
        """Bring up to date what is made over all days, and the counts by class of the days that need it."""
        self.warehouse.note("summarize")
        self.project.run("build", "--select", *TABLES_OVER_DAYS, "test_type:singular")
        with self.connect() as connection:
            changed = connection.execute("select day_utc from plan.plan_days__recounted").fetchall()
            # of pruned days the drive-hours are gone: their counts stay as they were
            landed = {day for (day,) in connection.execute("select day_utc from plan.landed_days").fetchall()}
        recounted = {*days, *(day for (day,) in changed)} & landed
        make_day_folders(self.warehouse, stored_models(self.project.manifest), recounted)
        self.begin_days(recounted)
        if self.spark and recounted:
            with self.connect() as connection:
                self.spark.take(connection, OF_DRIVES)
        for batch in batches(self.deliveries, recounted, MAX_COUNTED_ROWS):
            if self.spark:
                self.spark.compute((COUNTS_BY_CLASS, "--exclude", "resource_type:test"), batch, self.name, self.connect)
            counts = () if self.spark else (COUNTS_BY_CLASS,)
            self.project.run("build", "--select", *counts, SUMS_OF_DRIVES, days=batch)

    def computed_hours(self, connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
        """RAID-hours and drive-hours of the days computed."""
        if not self.computed:
            return 0, 0
        found = []
        for model in ("int_raid_hours", "int_drive_hours"):
            query = "select file from plan.files where model = ? and day_utc in (select unnest(?::date[]))"
            found.append(
                row_count([self.warehouse.store / file for (file,) in connection.execute(query, [model, self.computed]).fetchall()])
            )
        return found[0], found[1]

    def day_files(self, table: str, days: Iterable[date]) -> Iterator[Path]:
        """Raw files of drive-hours or samples of some days."""
        wanted = {day.isoformat() for day in days}
        for delivery in self.deliveries:
            yield from (path for path in drive_hour_files(delivery, record_kind=table) if path.name[:10] in wanted)

    def raw_files(self) -> Iterator[Path]:
        """The files of raw that a build reads, for one that fails: new drive-hours, and of the other tables all."""
        for delivery in self.new:
            yield from drive_hour_files(delivery)
        for table in (*RAW_KINDS, *(f"retired_{kind}" for kind in RAW_KINDS), "rejected_records", "ingested_files"):
            yield from table_files(self.deliveries, table)


def _forget_warehouse(connection: duckdb.DuckDBPyConnection) -> None:
    """Take out of a copy of a build database what is one warehouse's own."""
    connection.execute("delete from state.project; delete from state.finished_deliveries")

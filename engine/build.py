"""Build: run the models over what has landed since the last build, and publish.

Python decides what to run and where files lie; every definition is in models/. A build
1. takes the deliveries no build has finished with,
2. lets the models say which RAID-hours they touch,
3. computes those, batch by batch, from raw,
4. publishes (engine/publish.py), and only then marks the deliveries as finished: a build that is killed at any
   instant is simply done again.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path

import duckdb

from engine.dbt import Hindered, ModelError, Project, require_perseus
from engine.past import Past, bring_back, enter_past, read_past, show_past
from engine.publish import Publication, current_publication, publish
from engine.read import first_line, published_by
from engine.sources import TABLES as RAW_TABLES
from engine.sources import point, point_at_decisions, point_whole_tables
from engine.store import DAY_MODELS, SCHEMA, Batch, commit_batch, current_rows, live_batches, remember_kinds, whole_store
from engine.warehouse import Warehouse, quoted
from ingest.raw_store import Delivery, drive_hour_files, list_deliveries, pruned_record, source_of, table_files
from ingest.trouble import Shortage, explained

TABLES = ("int_drives__own_spans", "int_drives__host_spans", "int_drives__kinds", "int_raid_groups__kinds", "dim_drives")
"""What a batch brings up to date beside what it stores."""

PLANNED = ("staging", "tag:inventory", "tag:lateness")
"""What a build runs before it knows its batches."""

OPEN_ELSEWHERE = "could not set lock"
"""What DuckDB says of a database that another process has open."""

NO_HOUR = datetime(1970, 1, 1)
"""What a batch without any hours is called."""

INVENTORY = ("drives", "retired_drives", "drive_aliases", "retired_drive_aliases")
"""Raw tables that say where a drive is, or which drive a name means."""

SLOWEST = 10
"""So many models the log names with their seconds; the record of a publication has all."""

MAX_BATCH_ROWS = 12_000_000
"""Drive-hours computed at a time; bounds memory at a day of 460,000 drives."""


def hour_before(hour: datetime) -> datetime:
    """One hour earlier, as far as the calendar goes."""
    return max(hour, datetime.min + timedelta(hours=1)) - timedelta(hours=1)


def hour_after(hour: datetime) -> datetime:
    """One hour later, as far as the calendar goes."""
    return min(hour, datetime.max - timedelta(hours=1)) + timedelta(hours=1)


Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BuildSummary:
    """What one build did: deliveries taken in, RAID-hours and drive-hours computed, and the publication it ended in."""

    delivery_count: int
    raid_hour_count: int
    drive_hour_count: int
    batch_count: int
    publication: Publication


def build(
    warehouse: Warehouse,
    *,
    target: str = "duckdb",
    full_refresh: bool = False,
    keep_pruned: bool = False,
    on_progress: Progress | None = None,
) -> BuildSummary:
    """Bring the marts up to what has landed and publish them.

    `full_refresh` forgets every computed RAID-hour and computes all of raw again; `keep_pruned` leaves what was pruned as it was computed
    where that, or models that have changed, would compute it again.
    `on_progress(phase, done, total)` is called as batches finish.
    Raises: ModelError when a model or a data test fails, or the past cannot be computed again, Hindered where trying again may help; the
    last publication then stays as it is.
    """
    report = on_progress or (lambda phase, done, total: None)
    with building(warehouse):
        if full_refresh:
            past = read_past(warehouse)
            if past is not None and not keep_pruned:
                raise ModelError(_cannot_compute(warehouse, past, "drivetail build --full-refresh --keep-pruned"))
            forget(warehouse)
        with explaining(warehouse):
            made = Build(warehouse, target, report, keep_pruned=keep_pruned)
        with explaining(warehouse, made.raw_files):
            return made.run()


@contextmanager
def explaining(warehouse: Warehouse, read: Callable[[], Iterable[Path]] = list) -> Iterator[None]:
    """Work that fails for want of room or memory, or over a damaged file, fails with a ModelError that says so and what to do.

    read: the files of raw that the work has read, asked for when it has failed. Raises: Hindered for want of room or memory.
    """
    try:
        yield
    except (ModelError, duckdb.Error, OSError, MemoryError) as error:
        why = explained(error, warehouse.root, read())
        if why is None:
            raise
        raise (Hindered if isinstance(why, Shortage) else ModelError)(why) from error


@contextmanager
def building(warehouse: Warehouse) -> Iterator[None]:
    """Hold the builder's lock, and have the build database closed when it is given back."""
    with warehouse.only_builder():
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


class Build:
    """One build: the deliveries to take in and the project to run over them."""

    def __init__(self, warehouse: Warehouse, target: str, report: Progress, *, keep_pruned: bool = False) -> None:
        self.started = time.monotonic()
        self.warehouse = warehouse
        self.report = report
        self.project = Project(warehouse, target)
        self.deliveries = list_deliveries(warehouse.root)
        self.past = read_past(warehouse)
        finished, known, self.is_defined = self.open_state(keep_pruned=keep_pruned)
        self.new = [delivery for delivery in self.deliveries if delivery.seq not in finished]
        self.read: list[Path] = []
        self.next_build_seq = 1 + max([0, *known, *(int(path.name.split("-")[1]) for path in warehouse.store.glob("batch-*"))])
        warehouse.note("plan", deliveries=len(self.deliveries), new=len(self.new))

    def open_state(self, *, keep_pruned: bool) -> tuple[set[int], set[int], bool]:
        """Make or read the build database's state. One made by other definitions is forgotten: its numbers would mix with new ones.

        Returns: sequence numbers of the finished deliveries and of the stored batches, and whether the models are defined.
        Raises: ModelError where other models than these made what was pruned, unless that may stay as it is.
        """
        # over nothing the models know of no past, and what they have once computed they add to: with a past they are defined anew
        if self.past is None and not self.warehouse.build_database.exists():
            self.project.template("build").begin(self.warehouse.build_database)
        if not self.warehouse.build_database.exists():
            self._begin_empty()
        with self.connect() as connection:
            # before anything else: an earlier release may have kept its state in other columns
            connection.execute("create schema if not exists state; create table if not exists state.project (version varchar)")
            versions = [row[0] for row in connection.execute("select version from state.project").fetchall()]
            is_of_others = self.past is not None and self.past.is_of_other_models(self.project.version)
            if self.past is not None and is_of_others and versions != [self.project.version] and not keep_pruned:
                raise ModelError(_cannot_compute(self.warehouse, self.past, "drivetail build --keep-pruned"))
            if versions in ([], [self.project.version]):
                connection.execute(SCHEMA)
                connection.execute("create schema if not exists raw; create schema if not exists plan")
                connection.execute("create table if not exists plan.defined_models (version varchar)")
                if self.past is not None:
                    if not versions:
                        bring_back(self.warehouse, self.past)
                    enter_past(connection, self.warehouse, self.past, is_new=not versions)
                show_past(connection, self.warehouse, self.past)
                finished = {row[0] for row in connection.execute("select delivery_seq from state.finished_deliveries").fetchall()}
                known = {row[0] for row in connection.execute("select build_seq from state.batches").fetchall()}
                if not versions:
                    connection.execute("insert into state.project values (?)", [self.project.version])
                is_defined = connection.execute("select 1 from plan.defined_models").fetchone() is not None
                if is_defined and not versions:  # begun from a template, whose sources are another warehouse's
                    self.point_at_landed(connection, [], [])
                return finished, known, is_defined
        self.warehouse.note("forget", reason="the models have changed")
        forget(self.warehouse)
        return self.open_state(keep_pruned=keep_pruned)

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
            told = first_line(error).rstrip("!.")
            hint = "close what has it open, or make it anew from raw with `drivetail build --full-refresh`"
            kind = Hindered if OPEN_ELSEWHERE in told.lower() else ModelError
            raise kind(f"{path}: cannot be opened ({told}); {hint}") from error

    def run(self, *, must_publish: bool = False) -> BuildSummary:
        """See build(). must_publish: also where nothing is new, because the store lies elsewhere."""
        raid_hours = drive_hours = batch_count = 0
        if not self.is_defined:
            self.define()
        if self.new:
            self.plan()
            batches = self.batches()
            batch_count = len(batches)
            for number, batch in enumerate(batches):
                self.report("models", number, batch_count)
                counts = self.compute(batch)
                raid_hours, drive_hours = raid_hours + counts[0], drive_hours + counts[1]
            self.report("models", batch_count, batch_count)
        publication = None if batch_count or must_publish else current_publication(self.warehouse)
        horizon = None if self.past is None else self.past.before_utc
        if (
            publication is None
            or publication.pruned_before_utc != horizon
            or published_by(self.warehouse, publication.publication_id) != self.project.version
        ):
            publication = publish(self.warehouse, self.project, self.deliveries, self.past, self.started)
        with self.connect() as connection:
            self.show_store(connection)
            point(connection, "drive_samples", "drive_samples", self.samples_between(datetime.min, datetime.max))
            if batch_count:
                remember_kinds(connection)
            connection.execute("insert or ignore into state.finished_deliveries select delivery_seq from plan.new_deliveries")
        self.warehouse.note("finished", deliveries=len(self.new), publication=publication.publication_id)
        return BuildSummary(len(self.new), raid_hours, drive_hours, batch_count, publication)

    def define(self) -> None:
        """Run every model over nothing: views are defined for good, and what is computed later finds its tables there."""
        self.warehouse.note("define")
        nothing = Batch(0, NO_HOUR, NO_HOUR)
        with self.connect() as connection:
            self.point_at_landed(connection, [], [])
            self.point_at_stored(connection, [])
        self.project.run("run", "--select", *PLANNED)
        self.begin_batch(nothing)
        self.project.run("seed")
        self.project.run("run", "--exclude", *PLANNED)
        Project.let_go()
        with self.connect() as connection:
            self.show_store(connection)
            connection.execute("insert into plan.defined_models values (?)", [self.project.version])
        shutil.rmtree(nothing.folder(self.warehouse))
        if self.past is None:
            self.project.template("build").keep(
                self.warehouse.build_database, lambda connection: connection.execute("drop schema state cascade")
            )

    def point_at_landed(self, connection: duckdb.DuckDBPyConnection, deliveries: list[Delivery], new: list[Delivery]) -> None:
        """Point the sources at some deliveries, and those that have just arrived at the new ones of them."""
        point_whole_tables(connection, deliveries)
        point_at_decisions(connection, self.warehouse.decisions)
        connection.execute("create or replace table plan.new_deliveries (delivery_seq bigint)")
        if new:
            connection.executemany("insert into plan.new_deliveries values (?)", [[delivery.seq] for delivery in new])
        self.read = [path for delivery in new for path in drive_hour_files(delivery)]
        point(connection, "arrived_drive_hours", "drive_hours", self.read)
        point(connection, "drive_hours", "drive_hours", [])
        point(connection, "reread_drive_hours", "drive_hours", [])
        samples = [path for delivery in new for path in drive_hour_files(delivery, record_kind="drive_samples")]
        point(connection, "arrived_drive_samples", "drive_samples", samples)
        for table in ("counted_drives", "counted_raid_groups", "counted_aliases", "counted_periods"):
            connection.execute(f"create or replace view plan.{table} as select * from state.{table}")
        connection.execute(
            """
            create table if not exists plan.publication as
            select '' as publication_id, timestamp '1970-01-01' as published_at, cast(null as timestamp) as last_hour_utc
            """
        )

    def show_store(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Between builds the models show everything, so that any test can be run over the whole store."""
        for model, rows in whole_store(connection, self.warehouse, self.project.manifest, "state").items():
            connection.execute(f"create or replace view intermediate.{model} as {rows}")

    def plan(self) -> None:
        """Point the sources at what has arrived and let the models say what it touches."""
        spans = [(d.first_hour, d.last_hour) for d in self.new if d.first_hour is not None and d.last_hour is not None]
        first = min((span[0] for span in spans), default=None)
        last = max((span[1] for span in spans), default=None)
        has_inventory = any(table_files(self.new, table) for table in INVENTORY)
        with self.connect() as connection:
            self.point_at_landed(connection, self.deliveries, self.new)
            sampled = "select date_trunc('hour', min(from_utc)), date_trunc('hour', max(from_utc)) from raw.arrived_drive_samples"
            ((begin, end),) = connection.execute(sampled).fetchall()
            if begin is not None:
                first, last = min(first or begin, begin), max(last or end, end)
            if first is not None and last is not None:
                # of a drive-hour that comes again too thin, what another host source saw of it may count now
                arrived = set(self.read)
                seen = [path for path in self.files_between(first, last) if source_of(path) and path not in arrived]
                point(connection, "reread_drive_hours", "drive_hours", seen, f"hour_utc between timestamp '{first}' and timestamp '{last}'")
            # inventory may reach back to any hour; drive-hours touch their own hours and the one after
            if has_inventory:
                self.point_at_stored(connection, live_batches(connection))
            elif first is not None and last is not None:
                self.point_at_stored(connection, live_batches(connection, first, hour_after(last)))
            else:
                self.point_at_stored(connection, [])
        if has_inventory:
            sees_hosts = self.sees_hosts()
            self.project.run("run", "--select", "staging", "tag:inventory", *([] if sees_hosts else ["tag:lateness"]))
            if sees_hosts:
                self.reread_hosts()
            return
        self.project.run("run", "--select", "tag:lateness")
        with self.connect() as connection:
            (reclassified,) = connection.execute(
                """
                select
                    (select count(*) from intermediate.int_drives__reclassified)
                    + (select count(*) from intermediate.int_raid_groups__reclassified)
                """
            ).fetchone() or (0,)
            if not reclassified:
                return
            self.point_at_stored(connection, live_batches(connection))
        self.project.run("run", "--select", "int_raid_hours__touched")

    def sees_hosts(self) -> bool:
        """Whether an earlier build took in drive-hours that hosts saw: what is known of their drives now may place them elsewhere."""
        with self.connect() as connection:
            try:
                return connection.execute("select 1 from intermediate.int_drives__host_spans limit 1").fetchone() is not None
            except duckdb.CatalogException:
                return False

    def reread_hosts(self) -> None:
        """Let the models say which drives stand elsewhere now, and look again at what hosts saw where any do."""
        self.project.run("run", "--select", "int_aliases__changed", "int_drives__reassigned")
        with self.connect() as connection:
            (renamed, moved) = connection.execute(
                """
                select
                    (select count(*) from intermediate.int_aliases__changed),
                    (
                        select count(*) from intermediate.int_drives__reassigned
                        where drive_id in (select drive_id from intermediate.int_drives__host_spans)
                    )
                """
            ).fetchone() or (0, 0)
            if renamed or moved:
                new = {delivery.seq for delivery in self.new}
                files = [path for d in self.deliveries if d.seq not in new for path in drive_hour_files(d) if source_of(path)]
                point(connection, "reread_drive_hours", "drive_hours", files)
        if renamed:
            self.project.run("run", "--full-refresh", "--select", "int_drives__host_spans")
        self.project.run(
            "run",
            "--select",
            "tag:lateness",
            "--exclude",
            "int_aliases__changed",
            "int_drives__reassigned",
            *(["int_drives__host_spans"] if renamed else []),
        )

    def point_at_stored(self, connection: duckdb.DuckDBPyConnection, batches: list[Batch]) -> None:
        """Point plan.stored_* at what some earlier batches hold."""
        for view, model in (("stored_raid_hours", "int_raid_hours"), ("stored_drive_hours", "int_drive_hours")):
            rows = current_rows(connection, self.warehouse, self.project.manifest, model, batches=batches)
            connection.execute(f"create or replace view plan.{view} as {rows}")

    def batches(self) -> list[Batch]:
        """Cut the touched hours into batches of whole days that fit into memory; one empty batch when there is nothing to compute."""
        with self.connect() as connection:
            days = connection.execute(
                """
                select cast(hour_utc as date) as day, min(hour_utc), max(hour_utc), count(distinct hour_utc)
                from intermediate.int_raid_hours__touched group by day order by day
                """
            ).fetchall()
            batches: list[tuple[datetime, datetime]] = []
            weight = MAX_BATCH_ROWS
            for _, first, last, hours in days:
                files = self.files_between(first, last)
                rows = (
                    connection.execute(f"select sum(num_rows) from parquet_file_metadata([{', '.join(map(quoted, files))}])").fetchone()
                    if files
                    else None
                )
                day_weight = (rows[0] if rows and rows[0] else 0) * hours / 24
                if batches and weight + day_weight <= MAX_BATCH_ROWS:
                    batches[-1] = (batches[-1][0], last)
                    weight += day_weight
                else:
                    batches.append((first, last))
                    weight = day_weight
        return [Batch(self.next_build_seq + number, *span) for number, span in enumerate(batches or [(NO_HOUR, NO_HOUR)])]

    def raw_files(self) -> Iterator[Path]:
        """The files of raw that were read: of drive-hours those pointed at last, of the other tables all."""
        yield from self.read
        for table in RAW_TABLES:
            yield from table_files(self.deliveries, table)

    def files_between(self, first: datetime, last: datetime) -> list[Path]:
        """Raw drive-hour files that may hold an hour of a span (inclusive)."""
        return [path for delivery in self.deliveries if delivery.overlaps(first, last) for path in drive_hour_files(delivery, first, last)]

    def samples_between(self, first: datetime, last: datetime) -> list[Path]:
        """Files of samples that may lie in the days of a span of hours."""
        return [path for delivery in self.deliveries for path in drive_hour_files(delivery, first, last, "drive_samples")]

    def point_at_what_was(self, connection: duckdb.DuckDBPyConnection, batch: Batch) -> None:
        """Point plan.replaced_* at the stored rows that a batch computes again, and plan.stored_* at the counts of its days."""
        manifest = self.project.manifest
        stored = live_batches(connection, batch.first_hour_utc, batch.last_hour_utc)
        for model in ("int_drive_hours", "int_raid_hours"):
            rows = current_rows(connection, self.warehouse, manifest, model, batches=stored)
            connection.execute(
                f"""
                create or replace view plan.replaced_{model.removeprefix("int_")} as
                select rows.* from ({rows}) as rows
                inner join intermediate.int_raid_hours__touched as touched
                    on rows.raid_group_id = touched.raid_group_id and rows.hour_utc = touched.hour_utc
                where rows.hour_utc between timestamp '{batch.first_hour_utc}' and timestamp '{batch.last_hour_utc}'
                """
            )
        # the other hours of its days, of which Perseus sees the whole
        days = (batch.first_hour_utc.date(), batch.last_hour_utc.date())
        begin, end = (datetime.combine(day, hour) for day, hour in zip(days, (time_of_day(0), time_of_day(23)), strict=True))
        rows = current_rows(connection, self.warehouse, manifest, "int_drive_hours", batches=live_batches(connection, begin, end))
        connection.execute(
            f"""
            create or replace view plan.kept_drive_hours as
            select rows.* from ({rows}) as rows
            where rows.hour_utc between timestamp '{begin}' and timestamp '{end}' and not exists (
                select 1 from intermediate.int_raid_hours__touched as touched
                where rows.raid_group_id = touched.raid_group_id and rows.hour_utc = touched.hour_utc
                    and touched.hour_utc between timestamp '{batch.first_hour_utc}' and timestamp '{batch.last_hour_utc}'
            )
            """
        )
        for model in DAY_MODELS:
            rows = current_rows(connection, self.warehouse, manifest, model, days=days)
            connection.execute(f"create or replace view plan.stored_{model.removeprefix('int_')} as {rows}")

    def compute(self, batch: Batch) -> tuple[int, int]:
        """Run the models and their tests over one batch and enter it into the store.

        Returns: RAID-hours and drive-hours computed.
        """
        has_samples = self.begin_batch(batch)
        if has_samples:
            require_perseus()
        before = self.project.seconds.copy()
        self.warehouse.note("models", batch=batch.build_seq, first=batch.first_hour_utc, last=batch.last_hour_utc)
        # nothing to fit: a Python model costs its imports all the same
        unfitted = () if has_samples else ("int_raid_group_days__fitted",)
        # views stay as they are: only what a batch stores or tabulates is run
        self.project.run("run", "--exclude", *PLANNED, *unfitted, "config.materialized:view")
        # what a batch stores or tabulates is tested, and the sums that must hold; marts that only look at it are the test suite's
        tested = ("config.materialized:batch_file", *TABLES, "fct_raid_hours", "test_type:singular")
        self.project.run("test", "--select", *tested, "--exclude", "test_type:unit")
        with self.connect() as connection:
            (drive_hours,) = connection.execute("select count(*) from intermediate.int_drive_hours").fetchone() or (0,)
            raid_hours = commit_batch(connection, batch)
        slowest = {model: round(seconds, 3) for model, seconds in (self.project.seconds - before).most_common(SLOWEST)}
        self.warehouse.note("stored", batch=batch.build_seq, raid_hours=raid_hours, drive_hours=drive_hours, slowest_models_s=slowest)
        return raid_hours, int(drive_hours)

    def begin_batch(self, batch: Batch) -> bool:
        """Make a batch's folder and point the models at its hours. Returns: whether there are samples in its days."""
        folder = batch.folder(self.warehouse)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with self.connect() as connection:
            self.read = self.files_between(hour_before(batch.first_hour_utc), batch.last_hour_utc)
            point(connection, "drive_hours", "drive_hours", self.read)
            samples = self.samples_between(batch.first_hour_utc, batch.last_hour_utc)
            point(connection, "drive_samples", "drive_samples", samples)
            connection.execute(
                """
                create or replace table plan.batch as
                select ?::timestamp as first_hour_utc, ?::timestamp as last_hour_utc, ?::bigint as build_seq, ?::varchar as batch_folder
                """,
                [batch.first_hour_utc, batch.last_hour_utc, batch.build_seq, str(folder)],
            )
            self.point_at_what_was(connection, batch)
        return bool(samples)

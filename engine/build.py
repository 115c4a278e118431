"""Build: compute the UTC days that have changed since the last build, and publish.

Python decides what to run and where files are; every definition is in models/. A build, in one connection,
1. asks models/plan/ which days the deliveries change that no build has finished with (engine/plan.py),
2. computes those days from raw, a batch of whole days at a time, or later hours of the open day; each stored model gets a new file per day
   (engine/execute.py),
3. makes the relations of each build, and those of each day where a day that is over has changed,
4. publishes (engine/publish.py), and only then marks the deliveries as finished: a killed build is simply done again,
5. builds the analysts' own models over that publication (engine/custom.py), and publishes once more, with them.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import duckdb

from engine.custom import CustomModels, are_custom_due, build_custom, custom_digest
from engine.errors import FailedModel, ModelError
from engine.execute import Executor
from engine.nodes import EACH_BUILD, EACH_DAY, SEED, STORED, VIEW, WITH_INVENTORY, Models, Node
from engine.opening import cannot_compute, drop_build_database, open_database, with_hints
from engine.plan import INVENTORY, MAX_COUNTED_ROWS, batches, day_of, has_landed, landed_days, row_count, write_plan_inputs
from engine.projects import built_models
from engine.publish import Publication, current_publication, next_publication_id, publish, publish_custom
from engine.read import is_each_day_due, published_by, published_custom, published_deliveries, published_files
from engine.retention import read_past
from engine.sources import RawFiles
from engine.spark import SparkStore
from engine.thresholds import own_thresholds
from engine.warehouse import Warehouse, day_folders, quoted
from ingest.contract.extras import how_to_install
from ingest.contract.values import RAW_KINDS
from ingest.raw.store import (
    NAMED,
    Delivery,
    deliveries_but,
    digests,
    file_names,
    list_deliveries,
    list_folders,
    table_files,
)

CHANGED_PLACES = "plan.plan_places__changed"
"""Stretches of hours in which inventory places a drive elsewhere than in the last build."""

FITTED = "int_raid_group_days__fitted"
"""The model in Python, which only samples within hours need."""

SLOWEST = 10
"""Number of slowest models written to the log."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BuildSummary:
    """Summary of one build: deliveries taken in, RAID-hours and drive-hours computed, the publication it made, or found where nothing was
    new, and one sentence for each custom model or test that failed.
    """

    delivery_count: int
    raid_hour_count: int
    drive_hour_count: int
    publication: Publication
    is_new: bool
    custom_failures: list[str]


def build(
    warehouse: Warehouse,
    *,
    target: str = "duckdb",
    master: str | None = None,
    full_refresh: bool = False,
    keep_pruned: bool = False,
    daily: bool | None = None,
    on_progress: Progress | None = None,
) -> BuildSummary:
    """Bring the marts up to what has landed and publish them.

    `target` says what computes the days: `duckdb`, or `spark` at `master`, by default in this process.
    `full_refresh` forgets every computed day and computes all of raw again; `keep_pruned` leaves what was pruned as it was computed
    where that, or models that have changed, would compute it again. `daily` makes the relations of each day, whatever has changed; False
    publishes what is needed within the hour and leaves them to the next build without it, unless some were never made.
    `on_progress(phase, done, total)` is called as batches finish.
    Raises: ModelError when a model or a data test fails, or the past cannot be computed again, RetryableError where trying again may help;
    the last publication then stays as it is.
    """
    report = on_progress or (lambda phase, done, total: None)
    with warehouse.only_builder(), _remembered(warehouse), with_hints(warehouse):
        spark = SparkStore(warehouse, master) if target == "spark" else None
        if full_refresh:
            past = read_past(warehouse)
            if past is not None and not keep_pruned:
                raise ModelError(cannot_compute(warehouse, past, "drivetail build --full-refresh --keep-pruned"))
            drop_build_database(warehouse)
        with (
            Build(warehouse, report, spark, keep_pruned=keep_pruned, accepts_lost=full_refresh) as made,
            with_hints(warehouse, made.raw_files),
        ):
            try:
                return made.run(daily=daily)
            except FailedModel as error:
                raise FailedModel(f"{error}{made.suspects(error.row)}") from error


def built(warehouse: Warehouse) -> Publication | None:
    """The publication where a build would change nothing: it is of all that has landed, of these models and of these settings."""
    last = current_publication(warehouse)
    if last is None:
        return None
    past = read_past(warehouse)
    landed = digests(list_folders(warehouse.root))
    own = own_thresholds(warehouse)
    is_of_all = (
        published_deliveries(warehouse, last.publication_id) == landed
        and last.pruned_before_utc == (None if past is None else past.before_utc)
        and not is_each_day_due(warehouse, last.publication_id)
        and published_by(warehouse, last.publication_id) == _version(built_models(own), own)
        and not warehouse.failed_build.exists()
        and not are_custom_due(CustomModels.of(published_custom(warehouse, last.publication_id)))
    )
    return last if is_of_all else None


def _version(models: Models, thresholds: dict[str, Any]) -> str:
    """Changes when a definition does, or a threshold of this warehouse: then all relations are made again."""
    return models.version + (json.dumps(thresholds, sort_keys=True) if thresholds else "")


def publish_store(warehouse: Warehouse) -> Publication:
    """Publish what is stored as it is: what has landed since waits for the next build. Where no build has finished, this is one."""
    with warehouse.only_builder(), with_hints(warehouse), Build(warehouse) as made:
        made.exclude_new()
        return made.run(must_publish=True).publication


def make_asked(warehouse: Warehouse) -> None:
    """Make the relations that are made when somebody asks and publish them, unless those published are of all days. What has landed since
    waits.
    """
    with warehouse.only_builder(), with_hints(warehouse), Build(warehouse) as made:
        if not (made.exclude_new() and made.is_asked_up_to_date and current_publication(warehouse)):
            made.run(asked=True)


@contextmanager
def _remembered(warehouse: Warehouse) -> Iterator[None]:
    """Write down that a build has failed, for who looks later, until one ends well."""
    try:
        yield
    except Exception as error:
        with suppress(OSError):  # a full disk is seen by other means
            warehouse.failed_build.write_text(json.dumps({"at": datetime.now(UTC).isoformat(), "message": str(error)}))
        raise
    warehouse.failed_build.unlink(missing_ok=True)


def require_perseus() -> None:
    """Check that the libraries of int_raid_group_days__fitted, which only samples within hours need, are installed. Raises: ModelError."""
    missing = [name for name in ("sklearn", "scipy") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(
            f"this build has samples within hours, and the detector perseus needs {' and '.join(missing)} for them; "
            f"{how_to_install('perseus')}"
        )


class Build:
    """One build: the deliveries to take in, and the models to run over them in one connection. Use it as a context: it closes that."""

    def __init__(
        self,
        warehouse: Warehouse,
        report: Progress = lambda phase, done, total: None,
        spark: SparkStore | None = None,
        *,
        keep_pruned: bool = False,
        accepts_lost: bool = False,
    ) -> None:
        """accepts_lost: raw may have lost deliveries that an earlier build took in."""
        self.started = time.monotonic()
        self.warehouse = warehouse
        self.report = report
        self.spark = spark
        self.thresholds = own_thresholds(warehouse)
        self.models = built_models(self.thresholds)
        self.folders = list_folders(warehouse.root)
        self.past = read_past(warehouse)
        # a decision counts at once, without a build: what publications read is there from the first on
        warehouse.decisions.touch()
        self.digests = digests(self.folders)
        """Identity of each delivery, whatever its number."""
        self.hidden: set[int] = set()
        """Deliveries that wait for the next build."""
        aside = {delivery.seq: delivery for delivery in list_deliveries(warehouse.root, place="dropped")}
        landed = None if accepts_lost else {seq: delivery.digest() for seq, delivery in aside.items()} | self.digests
        self.connection, finished, self.defined = open_database(warehouse, self.models, self.past, landed, keep_pruned=keep_pruned)
        self.new = list(deliveries_but(self.folders, finished))
        self.dropped = [aside[seq] for seq in finished if seq in aside]
        """Deliveries that an earlier build took in, and an operator has dropped since."""
        self.computed: list[date] = []
        warehouse.note("plan", deliveries=len(self.digests), new=len(self.new), dropped=len(self.dropped))

    def __enter__(self) -> Build:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @cached_property
    def executor(self) -> Executor:
        """The engine that runs the models."""
        return Executor(self.warehouse, self.models, self.connection, self.thresholds)

    @cached_property
    def files(self) -> RawFiles:
        """The files of raw that the models see: of the deliveries that were there when the build began."""
        return RawFiles(self.folders, self.hidden)

    @cached_property
    def new_names(self) -> set[str]:
        """The names of the files that the deliveries to take in landed with, and those that were dropped."""
        return {name for _, name in file_names([*self.new, *self.dropped])}

    @property
    def version(self) -> str:
        """See _version()."""
        return _version(self.models, self.thresholds)

    @property
    def is_changed(self) -> bool:
        """Whether deliveries have landed since the last build, or were dropped."""
        return bool(self.new or self.dropped)

    @property
    def has_inventory(self) -> bool:
        """Whether the new deliveries place drives, or those that were dropped did."""
        return any(name.split(".")[0] in INVENTORY for name in self.new_names)

    @property
    def horizon(self) -> date | None:
        """Day before which drive-hours are pruned."""
        return None if self.past is None else self.past.before_utc.date()

    def exclude_new(self) -> bool:
        """See those deliveries alone that a build has finished with. Returns: whether it can: where an earlier build has begun with
        deliveries and not finished, or a delivery was dropped, what is stored may be half the new and half the old.
        """
        query = "select count(*) from plan.new_deliveries where delivery_seq not in (select delivery_seq from state.finished_deliveries)"
        if self.defined is None or self.dropped or self.connection.execute(query).fetchall() != [(0,)]:
            return False
        self.hidden = {delivery.seq for delivery in self.new}
        self.folders = [folder for folder in self.folders if not self.hidden.issuperset(folder.numbers())]
        self.new = []
        return True

    def _digests_taken_in(self) -> dict[int, str]:
        """Number and digest of the deliveries that this build knows of."""
        return {seq: digest for seq, digest in self.digests.items() if seq not in self.hidden}

    @cached_property
    def name(self) -> str:
        """Name of the files that this build writes: a number that no build had, also one that was killed, and with an older build database
        none that is published.
        """
        known = self.connection.execute("select number from state.last_name").fetchall()
        last = max(self.warehouse.publications.glob("*-*.json"), default=None)
        if known and last is not None:
            files = [path.name for path in published_files(self.warehouse, last.stem)]
        else:
            files = [file for _, found in day_folders(self.warehouse.store) for file in found]
        names = (file.split(".")[0] for file in files)
        number = 1 + max([*(number for (number,) in known), *(int(name) for name in names if name.isdigit())], default=0)
        self.connection.execute("begin; delete from state.last_name")
        self.connection.execute("insert into state.last_name values (?)", [number])
        self.connection.execute("commit")
        return f"{number:06d}"

    def run(self, *, must_publish: bool = False, daily: bool | None = None, asked: bool = False) -> BuildSummary:
        """See build(). must_publish: also where nothing is new; asked: make what is made when it is asked for."""
        is_redefined = self.defined != self.version
        horizon = None if self.past is None else self.past.before_utc
        before = current_publication(self.warehouse)
        last = None if self.is_changed or must_publish or daily or asked else before
        is_new = (
            last is None
            or is_redefined
            or last.pruned_before_utc != horizon
            or (daily is None and is_each_day_due(self.warehouse, last.publication_id))
            or published_by(self.warehouse, last.publication_id) != self.version
        )
        if last is None or is_new:
            published_at = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
            publication_id = next_publication_id(self.warehouse, published_at, before)
            self.show(is_redefined=is_redefined)
            self._name_publication(publication_id, published_at, horizon)
            if self.is_changed:
                self.compute(self.changed_days(is_redefined=is_redefined))
                self._name_publication(publication_id, published_at, horizon)
            is_each_day_left = self.make_relations(publication_id, is_redefined=is_redefined, daily=daily)
            if asked:
                self.make_asked(publication_id)
            file = self.warehouse.publications / f"{publication_id}.duckdb"
            last = Publication(publication_id, published_at, self.last_hour, horizon, file)
            made_by: dict[str, Any] = {"models": self.version, "thresholds": self.thresholds, "deliveries": self._digests_taken_in()}
            made_by["each_day_due"] = is_each_day_left
            # one that somebody asks for is written whole: the last may be damaged
            publish(
                last,
                self.executor,
                self.files,
                self._custom_of(before),
                made_by=made_by,
                began=self.started,
                last=before if self.is_changed else None,
                has_inventory=self.has_inventory,
            )
        counts = self.computed_hours()
        if self.is_changed or is_redefined:
            self._finish()
        custom = CustomModels.of(published_custom(self.warehouse, last.publication_id))
        # alerts are asked for what is needed within the hour, and wait for no analyst
        if daily is not False and are_custom_due(custom):
            custom = build_custom(self.warehouse, self.models, last.path, self.thresholds)
            published_at = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
            shown, publication_id = last, next_publication_id(self.warehouse, published_at, last)
            last = replace(shown, publication_id=publication_id, published_at=published_at, path=shown.path.with_stem(publication_id))
            publish_custom(shown, last, self.executor, custom)
            is_new = True
        self.warehouse.note("finished", deliveries=len(self.new), publication=last.publication_id)
        return BuildSummary(len(self.new), *counts, last, is_new, custom.failures)

    def _finish(self) -> None:
        """Mark the deliveries as finished, and the models as those that the build database holds."""
        self.connection.execute("begin")
        self.connection.execute("delete from state.defined; insert into state.defined values (?)", [self.version])
        if self.is_changed:
            if self.has_inventory:
                self.connection.execute("create or replace table plan.last_places as select * from plan.plan_places")
            self.connection.execute("delete from plan.unfinished_days")
            gone = [delivery.seq for delivery in self.dropped]
            self.connection.execute("delete from state.finished_deliveries where delivery_seq in (select unnest(?::bigint[]))", [gone])
            rows = [[each.seq for each in self.new], [self.digests[each.seq] for each in self.new]]
            self.connection.execute(
                "insert or replace into state.finished_deliveries select unnest(?::bigint[]), unnest(?::varchar[])", rows
            )
        self.connection.execute("commit")

    def show(self, *, is_redefined: bool) -> None:
        """Have the models see what has landed and what is stored; define them where they have changed."""
        # what a killed process left that looked at some days alone
        self.connection.execute("delete from plan.shown_days")
        self.executor.show_raw(self.files, horizon=self.horizon)
        self.executor.show_store()
        if is_redefined:
            self.warehouse.note("define")
            self.executor.load_seeds()
            self.connection.execute("delete from state.made; delete from state.defined")
            self._make_plan(lambda node: True)

    def _name_publication(self, publication_id: str, published_at: datetime, horizon: datetime | None) -> None:
        """Write down the publication that is being made, and the last hour with a valid RAID-hour."""
        (day,) = self.connection.execute("select coalesce(max(day_utc), date '0001-01-01') from plan.files").fetchone() or (date.min,)
        query = """
            create or replace table raw.publication as
            select
                ? as publication_id, cast(? as timestamp) as published_at, max(last_hour_utc) as last_hour_utc,
                cast(? as timestamp) as pruned_before_utc
            from intermediate.int_raid_group_days
        """
        # the last day first: a year of them is many files
        for condition in (f" where day_utc = date '{day}'", ""):
            self.connection.execute(query + condition, [publication_id, published_at, horizon])
            if self.last_hour is not None:
                return

    @property
    def last_hour(self) -> datetime | None:
        """Last hour with a valid RAID-hour (UTC), as the publication being made says; None without one."""
        last: datetime | None
        (last,) = self.connection.execute("select last_hour_utc from raw.publication").fetchone() or (None,)
        return last

    def _make_plan(self, is_wanted: Callable[[Node], bool]) -> None:
        """Make what inventory alone says, and what decides which days change."""
        (is_stored,) = self.connection.execute("select count(*) > 0 from plan.files").fetchone() or (False,)
        if not is_stored:  # without a stored day none needs another place
            self.define_empty(CHANGED_PLACES.split(".")[1])
        self.executor.make(node for node in self.executor.stages.plan if is_wanted(node) and (is_stored or node.relation != CHANGED_PLACES))

    def changed_days(self, *, is_redefined: bool) -> dict[date, datetime]:
        """Ask the models which days the new deliveries change, and from which hour on."""
        write_plan_inputs(self.connection, self.new, self.folders, self.horizon, self.dropped)
        if self.has_inventory and not is_redefined:
            self._make_plan(lambda node: node.made == WITH_INVENTORY)
        if self.has_inventory:
            self.executor.test(node for node in self.executor.stages.plan if node.made == WITH_INVENTORY)
        else:
            self.connection.execute(f"delete from {CHANGED_PLACES}")
        days = dict(self.connection.execute("select day_utc, from_hour_utc from plan.plan_days__changed order by day_utc").fetchall())
        if self.dropped:
            self._forget_days(landed_days(self.dropped, self.horizon))
        return days

    def _forget_days(self, days: list[date]) -> None:
        """Forget what is stored of days that raw has lost all of. What looks at whole days is made again, in this build."""
        query = (
            "delete from plan.files where day_utc in (select unnest(?::date[])) and day_utc not in (select day_utc from plan.landed_days)"
        )
        self.connection.execute(query, [days])
        self.connection.execute("delete from state.made_of")
        self.executor.show_store()

    def later_hours(self, days: Mapping[date, datetime]) -> datetime | None:
        """The hour from which on the only day that has changed is computed: where all that is stored of it is of hours before, and no name
        passed in it between two looks, of which stretches of the whole day may still decide.
        """
        if len(days) != 1 or self.spark or self.dropped:
            return None
        ((day, since),) = days.items()
        is_stored = self.connection.execute("select count(*) > 0 from plan.files where day_utc = ?", [day]).fetchall() == [(True,)]
        if not is_stored or self.files.of("drive_samples", [day]) or has_landed(self.folders, day, since, {each.seq for each in self.new}):
            return None
        query = """
            select count(*) > 0 from intermediate.int_names
            where coalesce(old_drive_id, new_drive_id) is not null and from_utc < $day::date + interval 1 day and to_utc > $day::date and (
                to_utc > $since::timestamp - interval 1 hour
                or alias in (select drive_id from intermediate.int_drive_days__merged where day_utc = $day and changed_spans > 0)
            )
        """
        if self.connection.execute(query, {"day": day, "since": since}).fetchall() == [(True,)]:
            return None
        return since

    def compute(self, days: Mapping[date, datetime]) -> None:
        """Compute some days from raw and store them: those that have changed, and the hour from which on each has."""
        cut = batches(self.folders, days)
        since = self.later_hours(days)
        self.begin_days(days)
        if self.spark and days:
            self.spark.show(self.connection)
        for number, batch in enumerate(cut):
            self.report("days", number, len(cut))
            self.warehouse.note("days", first=batch[0], last=batch[-1], days=len(batch))
            before = Counter(self.executor.seconds)
            has_samples = bool(self.files.of("drive_samples", batch))
            if has_samples:
                require_perseus()
            # without samples nothing is fitted: a Python model costs its imports all the same
            nodes = [node for node in self.executor.stages.days if has_samples or node.name != FITTED]
            self.executor.show_raw(self.files, batch, since=since)
            with self.executor.computing(nodes, batch, since):
                if not has_samples:
                    self.define_empty(FITTED)
                if self.spark:
                    nodes = self.spark.compute(self.executor, self.files, nodes, batch, horizon=self.horizon, build=self.name)
                # tests add up the whole day
                self.executor.compute(nodes, batch, self.name, since, partial(self.executor.show_raw, self.files, batch))
            slowest = {model: round(seconds, 3) for model, seconds in (Counter(self.executor.seconds) - before).most_common(SLOWEST)}
            self.warehouse.note("stored", first=batch[0], last=batch[-1], slowest_models_s=slowest)
        self.report("days", len(cut), len(cut))
        self.computed = list(days)
        if cut:
            self.show(is_redefined=False)

    def define_empty(self, name: str) -> None:
        """Have a table without rows in the place of a model that need not run."""
        (node,) = (node for node in self.models if node.name == name)
        columns = ", ".join(f'"{column}" {kind}' for column, kind in node.columns.items())
        self.connection.execute(f"create or replace table {node.relation} ({columns})")

    def begin_days(self, days: Iterable[date]) -> None:
        """Note days that are about to be stored: if this build does not finish, the next one computes them again."""
        for table in ("plan.unfinished_days", "state.days_not_in_marts"):
            self.connection.execute(f"insert into {table} select unnest(?::date[])", [list(days)])

    def make_relations(self, publication_id: str, *, is_redefined: bool, daily: bool | None) -> bool:
        """Make the relations of each build, then those of each day where a day that is over has changed.

        Returns: whether those of each day are left to the next build.
        """
        self.warehouse.note("relations")
        if self.new:
            self._note_days_looked_at()
        if is_redefined:
            self._join_files()
        all_nodes = self.executor.stages.relations
        self._make([node for node in all_nodes if is_redefined or node.made == EACH_BUILD], publication_id)
        now, before = self._made_of(), self.connection.execute("select classes, descriptions from state.made_of").fetchall()
        by_week: list[Node] = []
        is_due = is_redefined or daily or [row[0] for row in before] != [now[0]] or self.has_changed_past()
        # once begun they are finished: a publication would show some of them new and some old
        is_left = is_due and daily is False and not is_redefined and bool(before)
        is_made = is_due and not is_left
        if is_made and not is_redefined:
            self.warehouse.note("each_day")
            self._join_files()
            self.connection.execute("delete from state.made_of")
            by_week = [node for node in all_nodes if node.made == EACH_DAY and node.week_column] if before == [now] else []
            for node in by_week:
                self.executor.make_weeks(node, "state.days_not_in_marts")
            self.note_made(by_week, publication_id)
            self._make([node for node in all_nodes if node.made == EACH_DAY and node not in by_week], publication_id)
        if is_made:
            self.connection.execute("begin; delete from state.days_not_in_marts; delete from state.made_of")
            self.connection.execute("insert into state.made_of values (?, ?)", now)
            self.connection.execute("commit")
        self.warehouse.note("made", each_day=is_made, by_week=len(by_week))
        return is_left

    def _join_files(self) -> None:
        """Leave fewer files to open: one of each day that is over, and for builds one of each month."""
        self.executor.join_files(self.name, self.horizon or date.min, self.open_day)
        self.executor.join_months(self.open_day)
        self.executor.show_store()

    def _note_days_looked_at(self) -> None:
        """Note the days of new events and readings, too, of which none is computed: one that is open now is over in a later build. For
        labels, of whatever day, stands the last day that is over.
        """
        days = sorted({day_of(Path(name)) for name in self.new_names if name.startswith("drive_health/")})
        if self.last_hour is not None and any(name.split(".")[0] in ("labels", "retired_labels") for name in self.new_names):
            days.append(self.last_hour.date() - timedelta(days=1))
        query = """
            insert into state.days_not_in_marts
            select cast(occurred_at as date) from raw.drive_events where delivery_seq in (select delivery_seq from plan.new_deliveries)
            union select unnest(?::date[])
        """
        self.connection.execute(query, [days])

    def _made_of(self) -> tuple[str, str]:
        """Digests of the inputs of the relations of each day, beside the days: grouping of drives, and their descriptions and places."""
        drives = (
            "select * exclude (device, first_hour_utc, last_hour_utc, current_raid_group_id, is_group_guessed) from intermediate.int_drives"
        )
        query = f"""
            select
                coalesce((select cast(sum(hash(is_raid_group, id, class)) as varchar) from plan.plan_classes), ''),
                concat_ws(
                    ' ', cast(? as varchar), (select cast(sum(hash(drives)) as varchar) from ({drives}) as drives),
                    (select cast(sum(hash(places)) as varchar) from plan.plan_places as places)
                )
        """
        ((classes, descriptions),) = self.connection.execute(query, [self.horizon]).fetchall()
        return classes, descriptions

    def _make(self, nodes: list[Node], publication_id: str) -> None:
        self.executor.make(nodes, lambda done: self.report("relations", done, len(nodes)))
        self.report("relations", len(nodes), len(nodes))
        others = [*self.models.made(*STORED, SEED), *self.executor.stages.relations]
        self.executor.test(nodes, shown=[node.relation for node in others])
        self.note_made(nodes, publication_id)

    def make_asked(self, publication_id: str) -> None:
        """Make the relations that are made when somebody asks, over all that is stored."""
        self.warehouse.note("asked")
        self.count_days()
        self._make(self.executor.stages.asked, publication_id)
        self.connection.execute("delete from state.asked")
        self.connection.execute("insert into state.asked values (?)", [self._state_of_days()])

    @property
    def is_asked_up_to_date(self) -> bool:
        """Whether the relations that are made when somebody asks are of all that is stored, and of these models."""
        made_of = self.connection.execute("select of_state from state.asked").fetchall()
        return self.defined == self.version and made_of == [(self._state_of_days(),)]

    def _state_of_days(self) -> str:
        """Changes when what is stored does."""
        query = "select max(delivery_seq), count(*) from state.finished_deliveries"
        return f"{self.connection.execute(query).fetchall()} {self.horizon} {self.version}"

    def note_made(self, nodes: Iterable[Node], publication_id: str) -> None:
        """Write down as of which hour relations were made."""
        names = [node.relation for node in nodes if node.made != VIEW]
        query = "insert or replace into state.made select unnest(?), ?, ?"
        self.connection.execute(query, [names, self.last_hour, publication_id])

    def has_changed_past(self) -> bool:
        """Whether a day that is over has changed since the relations of each day were made."""
        if self.last_hour is None:
            return True
        query = "select count(*) > 0 from state.days_not_in_marts where day_utc < ?"
        return bool(self.connection.execute(query, [self.open_day]).fetchall()[0][0])

    @property
    def open_day(self) -> date:
        """The day of which more hours are to come; a day is over with its last hour."""
        return date.max if self.last_hour is None else (self.last_hour + timedelta(hours=1)).date()

    def count_days(self) -> None:
        """Count hours of the days that have changed since they were counted, and of those whose drives are grouped differently now."""
        if not self.executor.stages.counts:
            return
        files = "select day_utc, max(file) from plan.files where model = 'int_drive_days' group by day_utc"
        by = self.models.store_version_of(self.executor.stages.counts[0].name)
        computed = {day: f"{file} by {by}" for day, file in self.connection.execute(files).fetchall()}
        counted = dict(self.connection.execute("select day_utc, computed_as from state.counted_days").fetchall())
        changed = {day for (day,) in self.connection.execute("select day_utc from plan.plan_days__recounted").fetchall()}
        stale = {day for day, file in computed.items() if counted.get(day) != file} | changed
        # of pruned days the drive-hours are gone: their counts stay as they were
        stale = {day for day in stale if day in computed and (self.horizon is None or day >= self.horizon)}
        for batch in batches(self.folders, stale, MAX_COUNTED_ROWS):
            self.warehouse.note("count", first=batch[0], last=batch[-1], days=len(batch))
            with self.executor.computing(self.executor.stages.counts, batch):
                self.executor.compute(self.executor.stages.counts, batch, self.name)
            rows = [[*batch], [computed[day] for day in batch]]
            self.connection.execute("insert or replace into state.counted_days select unnest(?::date[]), unnest(?)", rows)
        self.connection.execute("create or replace table plan.last_classes as select * from plan.plan_classes")
        self.executor.show_store()

    def _custom_of(self, last: Publication | None) -> CustomModels:
        """Custom models of a publication, shown until they are made again. Without a file in models/custom there are none to show."""
        if last is None or not custom_digest():
            return CustomModels("", is_due=bool(custom_digest()))
        return replace(CustomModels.of(published_custom(self.warehouse, last.publication_id)), is_due=True)

    def computed_hours(self) -> tuple[int, int]:
        """RAID-hours and drive-hours of the days computed."""
        if not self.computed:
            return 0, 0
        found = []
        for model in ("int_raid_hours", "int_drive_hours"):
            query = "select file from plan.files where model = ? and day_utc in (select unnest(?::date[]))"
            files = self.connection.execute(query, [model, self.computed]).fetchall()
            found.append(row_count([self.warehouse.store / file for (file,) in files]))
        return found[0], found[1]

    def suspects(self, row: Mapping[str, Any]) -> str:
        """The new deliveries, over one of which a build may have failed, and how to take it back; empty where none is new.

        Where any names a drive or RAID group of the row that breaks a test, only those.
        """
        if not self.new:
            return ""
        names = [str(row[name]) for name in ("drive_id", "alias", "raid_group_id") if row.get(name) is not None]
        found = [text for delivery in self.new if (text := named_in(delivery, names))]
        listed = found or [f"delivery {delivery.seq} ({delivery.record().get('source')})" for delivery in self.new]
        more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
        todo = "`drivetail drop --landed NUMBER --by NAME --note WHY` takes one back, and the next build publishes without it"
        return f"; new is {', '.join(listed[:NAMED])}{more}: {todo} (docs/runbooks/failed-build.md)"

    def raw_files(self) -> Iterator[Path]:
        """The files of raw that a build reads, for one that fails: new drive-hours, and of the other tables all."""
        for path in sorted({delivery.path for delivery in self.new}):
            yield from sorted(path.glob("drive_hours/*.parquet"))
        for table in (*RAW_KINDS, *(f"retired_{kind}" for kind in RAW_KINDS), "rejected_records", "ingested_files"):
            yield from table_files(self.folders, table)


NAMING = {"drives": ("drive_id", "raid_group_id"), "drive_aliases": ("alias", "drive_id"), "drive_events": ("drive_id",)}
"""Raw tables that a build reads whole, and the columns of names in them."""


def named_in(delivery: Delivery, names: Sequence[str]) -> str:
    """The first record of a delivery's inventory and events that has one of these names, in words; empty without one."""
    files = ", ".join(map(quoted, table_files([delivery], "ingested_files")))
    for table, columns in NAMING.items():
        for path in table_files([delivery], table):
            is_named = " or ".join(f"list_contains(?::varchar[], {column})" for column in columns)
            query = f"""
                select files.file, records.row_no
                from (select * from read_parquet({quoted(path)}, hive_partitioning = false)
                    where delivery_seq = {delivery.seq} and ({is_named})) as records
                inner join read_parquet([{files}], hive_partitioning = false) as files using (delivery_seq, file_no)
                order by files.file, records.row_no
                limit 1
            """
            for file, row_no in duckdb.execute(query, [list(names)] * len(columns)).fetchall():
                return f"delivery {delivery.seq} ({file} row {row_no})"
    return ""

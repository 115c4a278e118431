"""Maintenance of a warehouse: expiry, and the proofs that the publication matches the deliveries.

Each check says in a sentence what does not hold and what to do; none of them changes what readers see.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from pathlib import Path

import duckdb

from engine.build import Build
from engine.errors import ModelError, RetryableError
from engine.nodes import EACH_DAY, STORED, WITH_DAYS
from engine.opening import with_hints
from engine.plan import MAX_BATCH_DAYS, batches, landed_days
from engine.publish import clean_up, current_publication
from engine.read import QueryError, fetch, open_published, own_file, publication_of
from engine.retention import PRUNED_MODEL
from engine.warehouse import PROJECT, Warehouse, quoted
from ingest.raw.packing import write_pack
from ingest.raw.store import PACKED, drive_hour_files, folder_name, list_folders, table_files
from report.words import counted_noun, human

COMPARED = (
    "drive_id",
    "hour_utc",
    "raid_group_id",
    "is_data_drive",
    "declared_kind",
    "coverage",
    "latency_us",
    "io_count",
    "io_bytes",
    "read_latency_us",
    "write_latency_us",
)
"""Columns of a stored drive-hour from its own row of raw and from its place; its other columns compare it with its peers."""

COMPUTABLE_DAYS = """
select distinct cast(hour_utc as date) as day
from marts.fct_raid_hours
where hour_utc >= coalesce((select pruned_before_utc from marts.publication), hour_utc)
order by day
"""

REBUILT = ("int_raid_hours", "int_drive_hours")
"""Relations in which a rebuilt day is compared: everything that is shown is made of these, inventory and events."""

LINKED = (
    "retired_drive_hours",
    *(f"{state}{kind}" for kind in ("drives", "drive_aliases", "drive_events", "labels", "drive_probes") for state in ("", "retired_")),
)


def expire(warehouse: Warehouse) -> int:
    """Remove publications that no reader can be using any more, and files only they needed. Returns: how many were removed."""
    with warehouse.only_builder():
        current = current_publication(warehouse)
        if current is None:
            return 0
        before = len(list(warehouse.publications.glob("*-*.duckdb")))
        with duckdb.connect(str(warehouse.build_database)) as connection:
            clean_up(warehouse, current.publication_id, connection)
        return before - len(list(warehouse.publications.glob("*-*.duckdb")))


@contextmanager
def _settled(warehouse: Warehouse) -> Iterator[Build]:
    """The last build, with what it has taken in and stored.

    Raises: RetryableError where it has not finished, QueryError where what is published is of other models.
    """
    with publication_of(warehouse, must_be_of_these_models=True):
        pass
    with warehouse.only_builder(), with_hints(warehouse), Build(warehouse) as build:
        # deliveries that landed since are not stored yet
        if build.defined is not None and not build.exclude_new():
            raise RetryableError(
                f"{warehouse.build_database}: the last build has not finished, so nothing was compared; run `drivetail build`"
            )
        build.show(is_redefined=False)
        yield build


def check_sums(warehouse: Warehouse) -> None:
    """Run the laws of the domain (tests/assert_*.sql) over everything stored.

    Raises: ModelError naming the one that is broken, or where they would hold because there is nothing to compare; RetryableError where
    trying again may help, such as after a build that was killed; QueryError where what is published is of other models.
    """
    if not warehouse.published.exists():  # nothing has been built yet
        return
    with _settled(warehouse) as build:
        last = current_publication(warehouse)
        (stored,) = build.connection.execute("select count(*) from intermediate.int_raid_hours").fetchone() or (0,)
        if last is not None and last.last_hour_utc is not None and not stored:
            raise ModelError(f"{warehouse.build_database}: holds no RAID-hour, though some are published; run `drivetail build`")
        build.executor.make_each_build()
        laws = [test for test in build.models.tests if test.name.startswith("assert_")]
        if not laws:
            raise ModelError(f"{PROJECT}/tests: holds no assert_*.sql, so the sums were not checked; install drivetail again")
        ((is_behind,),) = build.connection.execute("select count(*) > 0 from state.days_not_in_marts").fetchall()
        # what lives in memory while days are computed is gone, and relations of each day know nothing of a day that is open or has just
        # ended: both were checked when they were made
        left_out = {node.relation for node in build.models.made(WITH_DAYS, *([EACH_DAY] if is_behind else []))}
        for law in laws:
            if not set(law.nodes) & left_out:
                build.executor.run_test(law)


def reconcile(warehouse: Warehouse, say: Callable[[str], object] = lambda line: None) -> list[str]:
    """Compare all of raw that a build has taken in with the stored drive-hours, day by day, and each stored file with what it was.

    say: is called with a line per comparison, on what was compared. Returns: a sentence for each day and for each file that differs.
    Raises: as check_sums().
    """
    if not warehouse.published.exists():
        return []
    with _settled(warehouse) as build:
        unequal, rows, days = _unequal_days(build)
        verdict = "agree" if not unequal else f"differ on {counted_noun(len(unequal), 'day')}"
        say(f"Raw and store {verdict}: {human(rows)} drive-hours of {counted_noun(days, 'day')}, by a sum over what they measured")
        changed, known, new = _changed_files(build, remembers=not unequal)
        found = "as they were" if not changed else f"as they were but {human(len(changed))}"
        say(f"{counted_noun(known, 'stored file')} {found}, by a sum over their values; {human(new)} seen for the first time")
    return [*unequal, *changed]


def _summed(columns: Iterable[str]) -> str:
    """SQL for the number of rows, and a sum over some columns of them that no order of the rows changes."""
    return f"count(*) as row_count, sum(hash({', '.join(columns)})) as total"


def _unequal_days(build: Build) -> tuple[list[str], int, int]:
    """A sentence for each day of which raw says something else than the store; how many drive-hours and days were compared."""
    executor, summed = build.executor, _summed(COMPARED)
    days = set(landed_days(build.folders, build.horizon)) | {
        day
        for (day,) in build.connection.execute("select distinct day_utc from plan.files where model = ?", [PRUNED_MODEL]).fetchall()
        if build.horizon is None or day >= build.horizon
    }
    nodes = [build.models.by_relation[f"intermediate.int_drive_hours__{name}"] for name in ("placed", "measured")]
    query = f"""
        with measured as (
            select cast(hour_utc as date) as day_utc, {summed} from intermediate.int_drive_hours__measured
            where cast(hour_utc as date) in (select day_utc from plan.shown_days) group by all
        ),

        stored as (select day_utc, {summed} from intermediate.{PRUNED_MODEL} group by day_utc)

        select coalesce(measured.day_utc, stored.day_utc), coalesce(measured.row_count, 0), coalesce(stored.row_count, 0),
            measured.total is distinct from stored.total
        from measured full outer join stored on measured.day_utc = stored.day_utc order by all
    """
    found, rows = [], 0
    for batch in batches(build.folders, days):
        executor.show_raw(build.files, batch)
        with executor.computing(nodes, batch):
            executor.compute(nodes, batch, build.name)
            executor.show_store(batch, [PRUNED_MODEL])
            for day, accepted, stored, is_unequal in build.connection.execute(query).fetchall():
                rows += stored
                if accepted != stored:
                    found.append(
                        f"{day}: {human(accepted)} drive-hours are accepted in raw, {human(stored)} are stored; "
                        "run `drivetail build --full-refresh`"
                    )
                elif is_unequal:
                    found.append(
                        f"{day}: the {human(stored)} stored drive-hours have other values than raw; keep a copy of the warehouse, then run "
                        "`drivetail build --full-refresh`"
                    )
    build.show(is_redefined=False)
    return found, rows, len(days)


def _changed_files(build: Build, *, remembers: bool) -> tuple[list[str], int, int]:
    """A sentence for each stored file whose values are not what they were when it was first seen; how many were known, and are new.

    remembers: whether those that are new are as they should be, so that they are known from now on.
    """
    connection, found, counts = build.connection, [], Counter[bool]()
    connection.execute("delete from state.sums where file not in (select file from plan.files) or reader <> ?", [duckdb.__version__])
    known = {file: sums for file, *sums in connection.execute("select file, row_count, total from state.sums").fetchall()}
    new: list[tuple[str, int, int, str]] = []
    for node in build.models.made(*STORED):
        columns = [f'"{name}"' for name in node.columns if name != "day_utc" and name not in node.ratios]
        files = _files_of(build, node.name)
        for at in range(0, len(files), MAX_BATCH_DAYS):
            listed = ", ".join(quoted(build.warehouse.store / file) for file in files[at : at + MAX_BATCH_DAYS])
            read = f"read_parquet([{listed}], hive_partitioning = false, filename = true)"
            query = f"select filename, {_summed(columns)} from {read} group by filename order by filename"
            for name, rows, total in connection.execute(query).fetchall():
                file = str(Path(name).relative_to(build.warehouse.store))
                counts[file in known] += 1
                if file not in known:
                    new.append((file, rows, total, duckdb.__version__))
                elif known[file] != [rows, total]:
                    found.append(
                        f"{name}: its values have changed, and no build did that: look at the disk, keep a copy of the warehouse, then run "
                        "`drivetail build --full-refresh`"
                    )
    if new and remembers:
        connection.executemany("insert into state.sums values (?, ?, ?, ?)", new)
    return found, counts[True], counts[False]


def _files_of(build: Build, model: str) -> list[str]:
    query = "select file from plan.files where model = ? and models_version = ? order by file"
    return [file for (file,) in build.connection.execute(query, [model, build.models.store_version]).fetchall()]


def rebuild_check(warehouse: Warehouse, day: date | None = None) -> tuple[date | None, list[str]]:
    """Build one day from raw alone in a scratch warehouse and compare it with what is published.

    day: UTC; by default one drawn among those published. The scratch costs what the deliveries of that day weigh, then goes.
    Returns: the day (null where nothing is published), and a sentence for each relation that differs.
    """
    if not warehouse.published.exists():
        return None, []
    with publication_of(warehouse, must_be_of_these_models=True) as connection:
        days = [row["day"] for row in fetch(connection, COMPUTABLE_DAYS)]
        (published,) = fetch(connection, "select max(delivery_seq) as seq from marts.ingested_files")
    if not days:
        return None, []
    day = day or random.choice(days)
    if day not in days:
        raise QueryError(f"nothing is published for {day}; the published days go from {days[0]} to {days[-1]}")
    for left in warehouse.build.glob("rebuild-*"):  # by a check that was killed
        shutil.rmtree(left)
    scratch = Warehouse(Path(tempfile.mkdtemp(prefix="rebuild-", dir=warehouse.build)))
    try:
        with with_hints(warehouse):
            _link_day(warehouse, scratch, day, published["seq"])
            # deliveries that hold nothing of the day are not there
            with scratch.only_builder(), Build(scratch, accepts_lost=True) as build:
                build.show(is_redefined=True)
                build.compute(build.changed_days(is_redefined=True))
                return day, _differences(warehouse, build, day)
    finally:
        shutil.rmtree(scratch.root, ignore_errors=True)


def _link_day(warehouse: Warehouse, scratch: Warehouse, day: date, last_seq: int) -> None:
    """Links to all of raw that a day is made of: its drive-hours and those of the day before, and every inventory and event."""
    scratch.create()
    first = datetime.combine(day, time()) - timedelta(days=1)
    last = first + timedelta(hours=47)
    for folder in list_folders(warehouse.root):
        published = {number for number in folder.numbers() if number <= last_seq}
        if not published:
            continue
        if len(published) < len(list(folder.numbers())):  # some of the pack have landed since
            other = Warehouse(scratch.root / "published")
            folder = write_pack(other.root, [folder], folder.level, published)
        files = drive_hour_files(folder, first, last)
        tables = [path for table in (*LINKED, PACKED.removesuffix(".parquet")) for path in table_files([folder], table)]
        hours = (folder.first_hour, folder.last_hour) if files else ()
        name = folder_name(folder.seq, folder.last_seq, hours, folder.level, has_gaps=folder.has_gaps)
        for path in (*files, *tables):
            link = scratch.raw / "deliveries" / name / path.relative_to(folder.path)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def _differences(warehouse: Warehouse, build: Build, day: date) -> list[str]:
    found = []
    connection = build.connection
    connection.execute(f"attach {quoted(own_file(warehouse))} as published (read_only)")
    try:
        for relation in REBUILT:
            rows = f"(select * from {{}}.intermediate.{relation} where cast(hour_utc as date) = date '{day}')"
            sides = [rows.format(name) for name in ("published", "build")]
            counts = [
                connection.execute(f"select count(*) from ({one} except all {other})").fetchall()[0][0]
                for one, other in (sides, reversed(sides))
            ]
            if any(counts):
                found.append(
                    f"{relation} of {day}: {counted_noun(counts[0], 'row')} only in what is published, "
                    f"{counts[1]} only when built again from raw; keep a copy of the warehouse, then run `drivetail build --full-refresh`"
                )
    finally:
        connection.execute("detach published")
    return found


def maintain(warehouse: Warehouse, say: Callable[[str], object] = print) -> list[str]:
    """All of it, in order. `say` is called with a line per step. Returns: what does not hold, a sentence each.

    Raises: QueryError where nothing is published.
    """
    open_published(warehouse).close()
    problems: list[str] = []
    warehouse.note("expire")
    say(f"Removed {counted_noun(expire(warehouse), 'publication')}")
    warehouse.note("sums")
    try:
        check_sums(warehouse)
        say("The sums hold")
    except ModelError as error:
        problems.append(str(error))
    warehouse.note("compare")
    try:
        problems += reconcile(warehouse, say)
    except ModelError as error:
        problems += [str(error)] if str(error) not in problems else []
    warehouse.note("rebuild")
    day, differences = rebuild_check(warehouse)
    say(f"{day}, built again from raw, is as published" if not differences else f"{day}, built again from raw, differs")
    return [*problems, *differences]

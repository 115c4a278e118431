"""What keeps a warehouse sound over years: expiry, and the proofs that what is published is what was delivered.

Each check says in a sentence what does not hold and what to do; none of them changes what readers see.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path

import duckdb

from engine.build import Build, explaining, only_builder
from engine.errors import Hindered, ModelError
from engine.nodes import WITH_DAYS
from engine.publish import clean_up, current_publication
from engine.read import QueryError, fetch, open_published, publication_of
from engine.warehouse import PROJECT, Warehouse, quoted
from engine.words import counted_noun, human
from ingest.raw.store import drive_hour_files, list_deliveries, table_files

ACCEPTED_AND_STORED = """
with delivered as (
    select hour_utc from raw.drive_hours as own
    where source is null
        and not exists (
            select 1 from raw.retired_drive_hours as retired
            where retired.delivery_seq = own.delivery_seq and retired.file_no = own.file_no and retired.row_no = own.row_no
        )
    union all
    -- of what several hosts and sources saw, the one that is believed
    select hour_utc from intermediate.int_drive_hours__identified where source is not null
),

accepted as (
    select cast(hour_utc as date) as day_utc, count(*) as row_count from delivered group by day_utc
),

stored as (
    select day_utc, count(*) as row_count
    from intermediate.int_drive_hours
    -- before it a chronic window's rows alone are left
    where hour_utc >= coalesce((select pruned_before_utc from marts.publication), hour_utc)
    group by day_utc
)

select coalesce(accepted.day_utc, stored.day_utc) as day_utc, accepted.row_count as accepted_count, stored.row_count as stored_count
from accepted
full outer join stored on accepted.day_utc = stored.day_utc
where accepted.row_count is distinct from stored.row_count
order by day_utc
"""

COMPUTABLE_DAYS = """
select distinct cast(hour_utc as date) as day
from marts.fct_raid_hours
where hour_utc >= coalesce((select pruned_before_utc from marts.publication), hour_utc)
order by day
"""

REBUILT = ("int_raid_hours", "int_drive_hours")
"""What a rebuilt day is compared in: everything that is shown is made of these, inventory and events."""

LINKED = (
    "drives",
    "retired_drives",
    "drive_aliases",
    "retired_drive_aliases",
    "drive_events",
    "retired_drive_events",
    "retired_drive_hours",
    "labels",
    "retired_labels",
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


def check_sums(warehouse: Warehouse) -> None:
    """Run the laws of the domain (tests/assert_*.sql) over everything stored.

    Raises: ModelError naming the one that is broken, or where they would hold because there is nothing to hold them against; Hindered where
    trying again may help, such as after a build that was killed; QueryError where what is published is of other models.
    """
    if not warehouse.published.exists():  # nothing has been built yet
        return
    with publication_of(warehouse, must_be_of_these_models=True) as connection:
        ((last_hour,),) = connection.execute("select last_hour_utc from marts.publication").fetchall()
    with only_builder(warehouse), explaining(warehouse), Build(warehouse) as build:
        if build.is_unfinished:
            raise Hindered(f"{warehouse.build_database}: the last build has not finished, so no sum was checked; run `drivetail build`")
        # what has landed since is not stored yet
        build.leave_for_later()
        build.show(is_redefined=False)
        (stored,) = build.connection.execute("select count(*) from intermediate.int_raid_hours").fetchone() or (0,)
        if last_hour is not None and not stored:
            raise ModelError(f"{warehouse.build_database}: holds no RAID-hour, though some are published; run `drivetail build`")
        laws = [test for test in build.models.tests if test.name.startswith("assert_")]
        if not laws:
            raise ModelError(f"{PROJECT}/tests: holds no assert_*.sql, so the sums were not checked; install drivetail again")
        for law in laws:
            # what lives in memory while days are computed is gone: it was checked then
            if not set(law.nodes) & {node.relation for node in build.models.made(WITH_DAYS)}:
                build.executor.run_test(law)


def reconcile(warehouse: Warehouse) -> list[str]:
    """Whether every accepted row of raw that a build has taken in is stored once; a sentence for each day where not."""
    if not warehouse.published.exists():
        return []
    with publication_of(warehouse, must_be_of_these_models=True) as connection:
        rows = fetch(connection, ACCEPTED_AND_STORED)
    return [
        f"{row['day_utc']}: {human(row['accepted_count'] or 0)} drive-hours are accepted in raw, "
        f"{human(row['stored_count'] or 0)} are stored; run `drivetail build --full-refresh`"
        for row in rows
    ]


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
        with explaining(warehouse):
            _link_day(warehouse, scratch, day, published["seq"])
            with only_builder(scratch), Build(scratch) as build:
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
    for delivery in list_deliveries(warehouse.root):
        if delivery.seq > last_seq:
            continue
        files = drive_hour_files(delivery, first, last)
        tables = [path for table in LINKED for path in table_files([delivery], table)]
        folder = scratch.raw / "deliveries" / (delivery.path.name if files else f"{delivery.seq:06d}.no-hours")
        for path in (*files, *tables):
            link = folder / path.relative_to(delivery.path)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def _differences(warehouse: Warehouse, build: Build, day: date) -> list[str]:
    found = []
    connection = build.connection
    connection.execute(f"attach {quoted(warehouse.published)} as published (read_only)")
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
    problems = []
    say(f"Removed {counted_noun(expire(warehouse), 'publication')}")
    try:
        check_sums(warehouse)
        say("The sums hold")
    except ModelError as error:
        problems.append(str(error))
    unequal = reconcile(warehouse)
    say("Raw and warehouse agree" if not unequal else f"Raw and warehouse differ on {counted_noun(len(unequal), 'day')}")
    day, differences = rebuild_check(warehouse)
    say(f"{day}, built again from raw, is as published" if not differences else f"{day}, built again from raw, differs")
    return [*problems, *unequal, *differences]

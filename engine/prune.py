"""Prune: the rows of old days go, what they came to stays (docs/decisions/0007-prune.md).

A day before the horizon keeps its RAID-hours, its slow drive-hours and its counts, so intervals, events, tails and the study stay exact;
its drive-hours go, from the store and from raw. In order, so that a kill at any instant loses nothing:
1. the past is written as one batch without drive-hours, with the remainders beside it, for the store and for raw; and what of its batches
   reaches beyond, as another,
2. `raw/pruned.json` says so, by one rename: from here on the prune has happened, and the next build enters it where this one does not,
3. a publication without those rows takes the place of the last one,
4. files go when no publication needs them any more (engine/publish.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import duckdb

from engine.build import Build, building, explaining
from engine.compaction import write_batch, write_rows
from engine.past import REMAINDERS, Kept, Past, enter_past, keep_in_raw, remainder_file, show_past, write_past
from engine.publish import Publication, clean_up
from engine.read import QueryError, publication_of
from engine.store import DAY_MODELS, RAID_HOUR_MODELS, Batch, current_rows, live_batches
from engine.warehouse import Warehouse, quoted
from engine.words import human, some
from ingest.raw.quarantine import list_quarantine
from ingest.raw.store import ingest_lock, pruned_files

LEAST_DAYS = 35
"""A RAID group's chronic window (`chronic_window_days`), and a week for arrays that are late: younger hours are still at work."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Pruned:
    """What a prune takes away, or would: the horizon (UTC), whether it lies where it lay, drive-hours of the store and the bytes they take
    there (about, where a file has younger ones too), rows, files and bytes of raw, and what was published.
    """

    before_utc: datetime
    is_there: bool
    row_count: int = 0
    stored_bytes: int = 0
    raw_row_count: int = 0
    raw_file_count: int = 0
    raw_bytes: int = 0
    publication: Publication | None = None


def prune(warehouse: Warehouse, days: int, *, is_dry_run: bool = False, on_progress: Progress | None = None) -> Pruned:
    """Let go the drive-hours of days that lie more than `days` before the last hour; repeating it changes nothing.

    Raises: QueryError where nothing is published, nothing is that old, deliveries are not built or held, or the models have changed.
    """
    report = on_progress or (lambda phase, done, total: None)
    with publication_of(warehouse, must_be_of_these_models=True) as connection:
        ((last_hour,),) = connection.execute("select last_hour_utc from marts.publication").fetchall()
    if last_hour is None:
        raise QueryError(f"{warehouse.published}: shows no RAID-hour; there is nothing to prune (`drivetail status` says what has landed)")
    # a clock that is ahead must not take everything before it away
    last = min(last_hour, datetime.now(UTC).replace(tzinfo=None))
    before = datetime.combine((last - timedelta(days=days)).date(), time())
    with ingest_lock(warehouse.root), building(warehouse), explaining(warehouse):
        build = Build(warehouse, "duckdb", report)
        _check_settled(build)
        past = build.past
        if past is not None and past.before_utc >= before:
            if not is_dry_run:
                clean_up(warehouse, build.run().publication.publication_id)
            return Pruned(past.before_utc, True)
        counted_before = datetime.min if past is None else past.before_utc
        files = [
            path
            for delivery in build.deliveries
            for path in set(pruned_files(delivery, before)) - set(pruned_files(delivery, counted_before))
        ]
        counted = _count(build, before, files)
        if not counted.row_count:
            raise QueryError(f"no drive-hour lies before {before:%Y-%m-%d}, {days} days before the last hour; nothing to prune")
        if is_dry_run:
            return counted
        _prune(build, before, counted.raw_row_count, report)
        publication = build.run(must_publish=True).publication
    return Pruned(**{**vars(counted), "publication": publication})


def _check_settled(build: Build) -> None:
    """Raises: QueryError where something has landed that may still touch old hours."""
    if build.new:
        count = some(len(build.new), "delivery", "deliveries")
        raise QueryError(f"{count} or the models are newer than the last build; run `drivetail build`, then prune")
    held = [held.number for held in list_quarantine(build.warehouse.root) if held.decision is None]
    if held:
        raise QueryError(
            f"quarantine {held[0]} is undecided and may hold hours that would go; `drivetail release {held[0]}` or "
            f"`drivetail drop {held[0]}`, build, then prune"
        )


def _batches(build: Build) -> list[Batch]:
    """The batches with drive-hours."""
    kept = set() if build.past is None else {kept.build_seq for kept in build.past.kept}
    with build.connect() as connection:
        return [batch for batch in live_batches(connection) if batch.build_seq not in kept]


def _count(build: Build, before: datetime, files: list[Path]) -> Pruned:
    """What would go."""
    old = [batch for batch in _batches(build) if batch.first_hour_utc < before]
    with build.connect() as connection:
        rows = current_rows(connection, build.warehouse, build.project.manifest, "int_drive_hours", batches=old)
        counts = f"select count(*) filter (hour_utc < ?), count(*) from ({rows})"
        ((count, all_rows),) = connection.execute(counts, [before]).fetchall()
        raw = 0
        if files:
            names = ", ".join(map(quoted, files))
            (raw,) = connection.execute(f"select cast(sum(num_rows) as bigint) from parquet_file_metadata([{names}])").fetchone() or (0,)
    stored = sum((batch.folder(build.warehouse) / "int_drive_hours.parquet").stat().st_size for batch in old)
    return Pruned(before, False, count, stored * count // max(all_rows, 1), raw, len(files), sum(path.stat().st_size for path in files))


def _prune(build: Build, before: datetime, raw_rows: int, report: Progress) -> None:
    """Write the past and what of its batches reaches beyond, and commit; see the module."""
    warehouse, past = build.warehouse, build.past
    old = [batch for batch in _batches(build) if batch.first_hour_utc < before]
    crossing = [batch for batch in old if batch.last_hour_utc >= before]
    begin = min(batch.first_hour_utc for batch in old) if past is None else past.before_utc
    warehouse.note("prune", before=before, batches=len(old))
    steps = 2 + bool(crossing)
    report("past", 0, steps)
    with build.connect() as connection:
        kept = _write_part(build, connection, build.next_build_seq, old, begin, before - timedelta(hours=1), has_drive_hours=False)
        report("remainders", 1, steps)
        _write_remainders(build, connection, kept.batch, before)
        keep_in_raw(warehouse, kept.batch)
        rest = None
        if crossing:
            report("rest", 2, steps)
            end = max(batch.last_hour_utc for batch in crossing)
            rest = _write_part(build, connection, build.next_build_seq + 1, crossing, before, end, has_drive_hours=True)
        gone = raw_rows + (past.row_count if past else 0)
        build.past = Past(before, gone, [*(past.kept if past else []), kept], rest, [batch.build_seq for batch in crossing])
        write_past(warehouse, build.past)
        warehouse.note("pruned", before=before)
        enter_past(connection, warehouse, build.past, is_new=False)
        show_past(connection, warehouse, build.past)
    report("publish", steps, steps)


def _write_part(
    build: Build,
    connection: duckdb.DuckDBPyConnection,
    build_seq: int,
    batches: list[Batch],
    first: datetime,
    last: datetime,
    *,
    has_drive_hours: bool,
) -> Kept:
    """Write the current rows of some batches from first to last hour (inclusive) as one batch, which the state does not name yet."""
    part = Batch(build_seq, first, last)
    span = f"hour_utc between timestamp '{first}' and timestamp '{last}'"
    manifest = build.project.manifest
    sources = {}
    for model in RAID_HOUR_MODELS:
        rows = current_rows(connection, build.warehouse, manifest, model, batches=batches)
        sources[model] = f"select * from ({rows}) where {span if has_drive_hours or model != 'int_drive_hours' else 'false'}"
    for model in DAY_MODELS:
        rows = current_rows(connection, build.warehouse, manifest, model, days=(first.date(), last.date()))
        held = ", ".join(str(batch.build_seq) for batch in batches)
        # of the days before the horizon all, whichever batch touched them last
        sources[model] = f"select * from ({rows}) where build_seq in ({held})" if has_drive_hours else rows
    write_batch(build.warehouse, connection, part, sources)
    path = part.folder(build.warehouse) / "int_raid_hours.parquet"
    (count,) = connection.execute(f"select count(*) from read_parquet({quoted(path)})").fetchone() or (0,)
    return Kept(build_seq, first, last, count, build.project.version)


def _write_remainders(build: Build, connection: duckdb.DuckDBPyConnection, kept: Batch, before: datetime) -> None:
    """Write what the rows before the horizon add up to, by the models that add them up: for these queries nothing lies beyond it."""
    connection.execute("begin")
    for model in ("int_drive_hours", "int_raid_hours"):
        rows = current_rows(connection, build.warehouse, build.project.manifest, model)
        connection.execute(f"create or replace view intermediate.{model} as select * from ({rows}) where hour_utc < timestamp '{before}'")
    connection.execute(f"create or replace view plan.pruned as select timestamp '{before}' as before_utc")
    for name, relation in REMAINDERS.items():
        write_rows(connection, f"select * from {relation}", remainder_file(build.warehouse, kept, name))
    connection.execute("rollback")


def sentence(pruned: Pruned, *, is_dry_run: bool) -> str:
    """What a prune did, or would do, for the terminal."""
    day = f"{pruned.before_utc:%Y-%m-%d}"
    if pruned.is_there:
        return f"Everything before {day} was pruned already; nothing has changed"
    went = (
        f"{human(pruned.row_count)} drive-hours before {day} (about {human(pruned.stored_bytes)} bytes), and of raw "
        f"{human(pruned.raw_row_count)} rows in {some(pruned.raw_file_count, 'file')} ({human(pruned.raw_bytes)} bytes)"
    )
    if is_dry_run:
        return f"Would prune {went}; nothing has changed. Afterwards no record of those hours is taken any more"
    published = f"; published {pruned.publication.publication_id}" if pruned.publication else ""
    return (
        f"Pruned {went}{published}. The files go when no reader can need them any more: from an hour on, with the next build that "
        "publishes, `drivetail maintain`, or this command again"
    )

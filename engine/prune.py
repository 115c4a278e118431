"""Prune: the drive-hours of old days go, what they add up to stays; see engine/retention.py for the order of things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import duckdb

from engine.build import Build
from engine.opening import with_hints
from engine.plan import row_count
from engine.publish import Publication, clean_up, current_publication
from engine.read import QueryError, publication_of, published_files
from engine.retention import PRUNED_MODEL, Kept, Past, keep_in_raw, register_pruned, write_past
from engine.thresholds import variables
from engine.warehouse import Warehouse, quoted
from ingest.raw.quarantine import list_quarantine
from ingest.raw.staging import ingest_lock
from ingest.raw.store import pruned_files

LEAST_DAYS = 35
"""A RAID group's chronic window (`chronic_window_days`), and a week for arrays that report late: younger hours may still change."""

REACHED_COLUMNS = ("drive_id", "hour_utc", "is_peer", "latency_us", "median_latency_us")
"""Columns of a drive-hour that a chronic window reads."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Pruned:
    """Extent of a prune: the horizon (UTC), whether it was so already, drive-hours of the store and the bytes of their
    files (a chronic window may need some of them), rows, files and bytes of raw, the room that is needed before any is given back, at
    most, and what was published.
    """

    before_utc: datetime
    is_there: bool
    row_count: int = 0
    stored_bytes: int = 0
    raw_row_count: int = 0
    raw_file_count: int = 0
    raw_bytes: int = 0
    needed_bytes: int = 0
    publication: Publication | None = None


def prune(warehouse: Warehouse, days: int, *, is_dry_run: bool = False, on_progress: Progress | None = None) -> Pruned:
    """Delete the drive-hours of days more than `days` before the last hour; repeating it changes nothing, and so does nothing that old.

    Raises: QueryError where nothing is published, deliveries are not built or held, or the models have changed.
    """
    report = on_progress or (lambda phase, done, total: None)
    with publication_of(warehouse, must_be_of_these_models=True) as connection:
        ((last_hour,),) = connection.execute("select last_hour_utc from marts.publication").fetchall()
    if last_hour is None:
        raise QueryError(f"{warehouse.published}: has no RAID-hour, so there is nothing to prune (`drivetail status` says what has landed)")
    # a clock that is ahead must not take everything before it away
    last = min(last_hour, datetime.now(UTC).replace(tzinfo=None))
    before = datetime.combine((last - timedelta(days=days)).date(), time())
    with ingest_lock(warehouse.root), warehouse.only_builder(), with_hints(warehouse), Build(warehouse, report) as build:
        _check_settled(build)
        past = build.past
        if past is not None and past.before_utc >= before:
            return Pruned(past.before_utc, True) if is_dry_run else _finish(build, past)
        counted_before = datetime.min if past is None else past.before_utc
        files = [path for folder in build.folders for path in set(pruned_files(folder, before)) - set(pruned_files(folder, counted_before))]
        counted = _count(build, before, files)
        if is_dry_run or not counted.row_count:
            return counted
        _prune(build, before, counted.raw_row_count, report)
        # what is made of whole weeks is made of those that are left
        publication = build.run(daily=True).publication
    return Pruned(**{**vars(counted), "publication": publication})


def _finish(build: Build, past: Past) -> Pruned:
    """Publish a prune that was killed after it had happened, and remove files that nobody needs any more."""
    last = current_publication(build.warehouse)
    if last is not None and last.pruned_before_utc == past.before_utc:
        clean_up(build.warehouse, last.publication_id, build.connection)
        return Pruned(past.before_utc, True)
    shown = published_files(build.warehouse, last.publication_id) if last is not None else []
    gone = [path for path in shown if path.parent.parent.name == PRUNED_MODEL and f"{path.parent.name[8:]}" < past.day]
    kept = [build.warehouse.store / each.file for each in past.files if each.model == PRUNED_MODEL]
    counted = row_count(gone) - row_count([path for path in kept if path.exists()])
    publication = build.run(daily=True).publication
    return Pruned(past.before_utc, True, row_count=counted, publication=publication)


def _check_settled(build: Build) -> None:
    """Raises: QueryError where something has landed that may still change old hours."""
    if build.new:
        count = "1 delivery" if len(build.new) == 1 else f"{len(build.new):,} deliveries"
        raise QueryError(f"{count} or the models are newer than the last build; run `drivetail build`, then prune")
    held = [held.number for held in list_quarantine(build.warehouse.root) if held.decision is None]
    if held:
        raise QueryError(
            f"quarantine {held[0]} is undecided and may hold hours that would go; `drivetail release {held[0]}` or "
            f"`drivetail drop {held[0]}`, build, then prune"
        )


def _files(connection: duckdb.DuckDBPyConnection, before: datetime) -> list[tuple[date, str, str]]:
    """Day, file and models of the drive-hours stored before a horizon, in order."""
    query = "select day_utc, file, models_version from plan.files where model = ? and day_utc < cast(? as date) order by day_utc, file"
    return connection.execute(query, [PRUNED_MODEL, before]).fetchall()


def _count(build: Build, before: datetime, files: list[Path]) -> Pruned:
    """The extent of the prune, before it runs."""
    stored = [
        build.warehouse.store / file for day, file, _ in _files(build.connection, before) if build.horizon is None or day >= build.horizon
    ]
    rows = [row_count(each) for each in (stored, files)]
    sizes = [sum(path.stat().st_size for path in each) for each in (stored, files)]
    # the rows that a window still reads, and a publication beside those that are kept
    needed = sizes[0] + build.warehouse.published.stat().st_size
    return Pruned(before, False, rows[0], sizes[0], rows[1], len(files), sizes[1], needed)


def _prune(build: Build, before: datetime, raw_rows: int, report: Progress) -> None:
    """Write what stays of the pruned days, and commit; see engine/retention.py."""
    warehouse, past, connection = build.warehouse, build.past, build.connection
    build.show(is_redefined=False)
    build.executor.make_each_build()
    # the drive-hours that are counted when somebody asks are about to go
    build.count_days()
    stored = _files(connection, before)
    warehouse.note("prune", before=before, days=len(stored))
    windows = build.models.by_relation["intermediate.int_drives__windows"]
    connection.execute(
        f"create or replace temp table reach as select drive_id, after_hour_utc, last_hour_utc from ({build.executor.sql_of(windows)})"
    )
    kept = []
    for number, (day, file, version) in enumerate(stored):
        report("days", number, len(stored))
        source = warehouse.store / file
        target = source.with_name(f"{build.name}.pruned.parquet")
        if _write_reached(connection, source, target, before):
            kept.append(Kept(PRUNED_MODEL, day, str(target.relative_to(warehouse.store)), version))
        else:
            target.unlink()
    connection.execute("drop table reach")
    others = "select model, day_utc, file, models_version from plan.files where model <> ? and day_utc < cast(? as date) order by all"
    for model, day, file, version in connection.execute(others, [PRUNED_MODEL, before]).fetchall():
        kept.append(Kept(model, day, file, version))
    keep_in_raw(warehouse, kept)
    build.past = Past(before, raw_rows + (past.row_count if past else 0), kept)
    write_past(warehouse, build.past)
    warehouse.note("pruned", before=before)
    register_pruned(connection, warehouse, build.past)
    report("publish", 1, 1)


def _write_reached(connection: duckdb.DuckDBPyConnection, file: Path, target: Path, before: datetime) -> int:
    """Write what gives the slowdown of the rows that a chronic window may still reach; the other columns are null.

    A window ends with the last valid hour of the drive's RAID group, and a later delivery may move either. So the rows of one window's
    length before the horizon stay. Where the group stopped earlier, the rows of its own window stay too. Returns: number of rows.
    """
    source = f"read_parquet({quoted(file)}, hive_partitioning = false)"
    described = connection.execute(f"describe select * from {source}").fetchall()
    nulls = ", ".join(f'cast(null as {kind}) as "{name}"' for name, kind, *_ in described if name not in REACHED_COLUMNS)
    replaced = f" replace ({nulls})" if nulls else ""
    after = before - timedelta(days=variables()["chronic_window_days"])
    connection.execute(
        f"""
        copy (
            select drive_hours.*{replaced}
            from {source} as drive_hours
            left join reach on drive_hours.drive_id = reach.drive_id
            where drive_hours.is_peer and drive_hours.latency_us is not null and drive_hours.median_latency_us is not null
                and (
                    drive_hours.hour_utc > timestamp '{after}'
                    or (drive_hours.hour_utc > reach.after_hour_utc and drive_hours.hour_utc <= reach.last_hour_utc)
                )
            order by drive_hours.drive_id, drive_hours.hour_utc
        ) to {quoted(target)} (format parquet, compression zstd)
        """
    )
    return row_count([target])

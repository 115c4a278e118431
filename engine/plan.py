"""The plan of a build: which deliveries are new, which UTC days they change, and how many of those are computed at a time.

Which days changed is decided by the models in models/plan/; this module gives them what has landed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path

import duckdb

from engine.warehouse import quoted
from ingest.contract.values import MEASURED_KINDS
from ingest.raw.store import Delivery, Folder, drive_hour_files, file_names

INVENTORY = ("drives", "retired_drives", "drive_aliases", "retired_drive_aliases")
"""Raw tables that say where a drive is, or which drive a name means."""

MAX_BATCH_ROWS = 12_000_000
"""Drive-hours and samples computed at a time; bounds memory at a day of 460,000 drives."""

MAX_COUNTED_ROWS = 7 * MAX_BATCH_ROWS
"""Drive-hours counted at a time: what is stored is added up as it is read, so more fit in memory."""

MAX_BATCH_DAYS = 90
"""DuckDB keeps a file open for each day that it writes."""


def day_of(path: Path) -> date:
    """The UTC day of a raw file of drive-hours or samples, by its name."""
    return date.fromisoformat(path.name[:10])


def landed_days(folders: Iterable[Folder | Delivery], horizon: date | None) -> list[date]:
    """Days of which raw holds drive-hours, from the prune horizon on, in order."""
    days = {day_of(path) for folder in folders for path in drive_hour_files(folder)}
    return sorted(day for day in days if horizon is None or day >= horizon)


def arrived_days(new: Iterable[Delivery]) -> list[tuple[date, bool, datetime]]:
    """Days of which new deliveries hold drive-hours or samples, whether they may hold the day's last hour, and the first that they hold."""
    found: dict[date, tuple[bool, datetime]] = {}
    for delivery, name in file_names(new):
        table = name.partition("/")[0]
        if table in MEASURED_KINDS:
            day = day_of(Path(name))
            begin, last = datetime.combine(day, time.min), delivery.last_hour
            has_last = table == "drive_hours" and last is not None and last >= begin + timedelta(hours=23)
            first = begin if table != "drive_hours" or delivery.first_hour is None else max(begin, delivery.first_hour)
            before = found.get(day, (False, first))
            found[day] = before[0] or has_last, min(before[1], first)
    return sorted((day, *about) for day, about in found.items())


def has_landed(folders: Iterable[Folder], day: date, since: datetime, new: Container[int]) -> bool:
    """Whether deliveries before the new ones may hold drive-hours of a day from an instant on."""
    end = datetime.combine(day, time.max)
    near = (each for folder in folders if folder.overlaps(since, end) for each in folder.deliveries())
    return any(each.overlaps(since, end) and each.seq not in new for each in near)


def write_plan_inputs(
    connection: duckdb.DuckDBPyConnection,
    new: Sequence[Delivery],
    folders: Sequence[Folder],
    horizon: date | None,
    dropped: Sequence[Delivery] = (),
) -> None:
    """Write down for models/plan/ what has landed: plan.new_deliveries, plan.arrived_days, plan.landed_days.

    dropped: what a build took in before.
    """
    for table, rows in (
        ("new_deliveries", [(delivery.seq,) for delivery in new]),
        ("arrived_days", arrived_days([*new, *dropped])),
        ("landed_days", [(day,) for day in landed_days(folders, horizon)]),
    ):
        connection.execute(f"delete from plan.{table}")
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            connection.execute(f"insert into plan.{table} select {', '.join(['unnest(?)'] * len(columns))}", columns)


def batches(folders: Iterable[Folder | Delivery], days: Iterable[date], max_rows: int = MAX_BATCH_ROWS) -> list[list[date]]:
    """Days cut into runs of at most `max_rows` drive-hours and samples, in order. A day is never cut."""
    weights = dict.fromkeys(sorted(days), 0)
    if not weights:
        return []
    first, last = datetime.combine(min(weights), time.min), datetime.combine(max(weights), time.max)
    files = [
        path
        for folder in folders
        for table in MEASURED_KINDS
        # samples may be of hours that another delivery brought
        if table != "drive_hours" or folder.overlaps(first, last)
        for path in drive_hour_files(folder, first, last, table)
    ]
    for path, rows in rows_of([path for path in files if day_of(path) in weights]):
        weights[day_of(path)] += rows
    found: list[list[date]] = []
    weight = 0
    for day, rows in weights.items():
        if found and weight + rows <= max_rows and len(found[-1]) < MAX_BATCH_DAYS:
            found[-1].append(day)
            weight += rows
        else:
            found.append([day])
            weight = rows
    return found


def rows_of(files: Sequence[Path]) -> list[tuple[Path, int]]:
    """Parquet files, each with its number of rows, by its own footer."""
    if not files:
        return []
    query = f"select file_name, num_rows from parquet_file_metadata([{', '.join(map(quoted, files))}])"
    return [(Path(file), rows) for file, rows in duckdb.execute(query).fetchall()]


def row_count(files: Sequence[Path]) -> int:
    """Rows of Parquet files altogether."""
    return sum(rows for _, rows in rows_of(files))

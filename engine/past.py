"""The past: what `drivetail prune` left of the hours before its horizon (docs/decisions/0007-prune.md).

`raw/pruned.json` says what was pruned; its rename is the commit of a prune. The past lies in the store as batches like any other, without
a row in `int_drive_hours`. Beside the newest lie the *remainders*: what the rows that are gone add up to. Nothing can make these again, so
`raw/pruned/` has them too, as hard links: whoever keeps raw keeps everything.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.dbt import ModelError
from engine.store import Batch
from engine.warehouse import Warehouse, quoted
from ingest.raw.durable import sync
from ingest.raw.store import pruned_record

REMAINDERS = {
    "pruned_drives": "intermediate.int_drives__totals",
    "pruned_drive_hours": "intermediate.int_drive_hours__windowed",
    "pruned_spans": "intermediate.int_drives__own_spans",
}
"""What the models read in place of the rows that are gone (source `plan`), and the relation that it is a copy of."""

_NOTHING = {
    "pruned_drives": {
        "drive_id": "varchar",
        "drive_hours": "bigint",
        "slow_hours": "bigint",
        "interval_count": "bigint",
        "max_slowdown": "double",
        "normal": "bigint",
        "to_slow": "bigint",
        "slow_persist": "bigint",
        "back_to_stable": "bigint",
    },
    "pruned_drive_hours": {"drive_id": "varchar", "hour_utc": "timestamp", "slowdown": "double"},
    "pruned_spans": {
        "drive_id": "varchar",
        "first_hour_utc": "timestamp",
        "last_hour_utc": "timestamp",
        "last_raid_group_id": "varchar",
        "declared_kind": "varchar",
    },
}


@dataclass(frozen=True)
class Kept:
    """A batch that a prune wrote: its hours (UTC, inclusive), its RAID-hours, and the version of the models that computed them."""

    build_seq: int
    first_hour_utc: datetime
    last_hour_utc: datetime
    raid_hour_count: int
    models: str

    @property
    def batch(self) -> Batch:
        """The batch of the store."""
        return Batch(self.build_seq, self.first_hour_utc, self.last_hour_utc)


@dataclass(frozen=True)
class Past:
    """What was pruned. before_utc: the horizon, start of a UTC day. row_count: drive-hours of raw that are gone, over all prunes.

    kept: the batches that hold the past, oldest first; none overlaps another. rest: what stands in the place of the batches `replaced` that
    crossed the horizon, from it on; null where none did.
    """

    before_utc: datetime
    row_count: int
    kept: list[Kept]
    rest: Kept | None
    replaced: list[int]

    @property
    def day(self) -> str:
        """The horizon, as people read it."""
        return self.before_utc.date().isoformat()

    def is_of_other_models(self, version: str) -> bool:
        """Whether some of it was computed by other models than these."""
        return any(kept.models != version for kept in self.kept)


def read_past(warehouse: Warehouse) -> Past | None:
    """What was pruned; None where nothing was."""
    try:
        record = json.loads(pruned_record(warehouse.root).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    kept = [_kept(each) for each in record["kept"]]
    rest = None if record["rest"] is None else _kept(record["rest"])
    return Past(datetime.fromisoformat(record["before_utc"]), record["row_count"], kept, rest, record["replaced"])


def _kept(record: dict[str, Any]) -> Kept:
    hours = {name: datetime.fromisoformat(record[name]) for name in ("first_hour_utc", "last_hour_utc")}
    return Kept(**{**record, **hours})


def write_past(warehouse: Warehouse, past: Past) -> None:
    """Write down what was pruned, by one rename; after it returns, the prune survives a power cut."""
    path = pruned_record(warehouse.root)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(past), indent=2, default=lambda instant: instant.isoformat()) + "\n", encoding="utf-8")
    sync(draft)
    os.replace(draft, path)
    sync(path.parent)


def keep_in_raw(warehouse: Warehouse, batch: Batch) -> None:
    """Have raw hold a batch of the past: its files under a second name, or a copy where raw lies on another disk."""
    kept = warehouse.raw / "pruned" / batch.folder(warehouse).name
    shutil.rmtree(kept, ignore_errors=True)  # of a prune that was killed
    _link_files(batch.folder(warehouse), kept)
    sync(kept.parent)


def bring_back(warehouse: Warehouse, past: Past) -> None:
    """Put what raw holds of the past into the store where it is not there. Raises: ModelError where raw has lost it."""
    for kept in past.kept:
        folder = kept.batch.folder(warehouse)
        held = warehouse.raw / "pruned" / folder.name
        if not held.is_dir():
            raise ModelError(f"{held}: is gone; nothing else holds what was pruned: put it back from a copy (docs/runbooks/pruned.md)")
        if {path.name for path in held.iterdir()} - {path.name for path in folder.glob("*")}:
            shutil.rmtree(folder, ignore_errors=True)
            _link_files(held, folder)


def _link_files(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for path in source.iterdir():
        try:
            os.link(path, target / path.name)
        except OSError:
            shutil.copyfile(path, target / path.name)
            sync(target / path.name)
    sync(target)


def missing_folders(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, past: Past) -> list[str]:
    """Names of the store's folders that a prune wrote and the build database does not know of: the prune was killed. Else none."""
    known = {row[0] for row in connection.execute("select build_seq from state.batches").fetchall()}
    if {kept.build_seq for kept in past.kept} <= known:
        return []
    return [kept.batch.folder(warehouse).name for kept in [*past.kept, *([past.rest] if past.rest else [])]]


def enter_past(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, past: Past, *, is_new: bool) -> None:
    """Bring the state of the build database to what was pruned; changes nothing where it is. One transaction.

    is_new: the build database has just been made and knows of no batch: the hours from the horizon on will be computed again.
    """
    if not missing_folders(connection, warehouse, past):
        return
    connection.execute("begin")
    connection.execute("delete from state.batches where first_hour_utc < ?", [past.before_utc])
    for kept in past.kept:
        _enter(connection, kept)
        connection.execute("insert or ignore into state.kept_batches values (?, ?)", [kept.build_seq, kept.models])
    connection.execute("delete from state.days where day_utc < cast(? as date)", [past.before_utc])
    for kept in past.kept:
        connection.execute(
            """
            insert into state.days
            select cast(day as date), ? from generate_series(cast(cast(? as date) as timestamp), ?, interval 1 day) as span (day)
            """,
            [kept.build_seq, kept.first_hour_utc, kept.last_hour_utc],
        )
    if past.rest is not None and not is_new:
        _enter(connection, past.rest)
        connection.execute(
            "update state.days set build_seq = ? where build_seq in (select unnest(?))", [past.rest.build_seq, past.replaced]
        )
    connection.execute("delete from state.recomputed where hour_utc < ?", [past.before_utc])
    connection.execute("commit")


def _enter(connection: duckdb.DuckDBPyConnection, kept: Kept) -> None:
    hours = [kept.first_hour_utc, kept.last_hour_utc]
    connection.execute(
        "insert into state.batches values (?, ?, ?, ?, ?)", [kept.build_seq, *hours, kept.raid_hour_count, kept.raid_hour_count]
    )


def show_past(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, past: Past | None) -> None:
    """Point plan.pruned (one row: before_utc, null without a prune) and the remainders at what was pruned."""
    horizon = "null" if past is None else quoted(past.before_utc)
    connection.execute(f"create or replace view plan.pruned as select cast({horizon} as timestamp) as before_utc")
    for name in REMAINDERS:
        connection.execute(f"create or replace view plan.{name} as {_remainder(warehouse, past, name)}")


def _remainder(warehouse: Warehouse, past: Past | None, name: str) -> str:
    if past is None:
        columns = ", ".join(f"cast(null as {kind}) as {column}" for column, kind in _NOTHING[name].items())
        return f"select {columns} where false"
    return f"select {', '.join(_NOTHING[name])} from read_parquet({quoted(remainder_file(warehouse, past.kept[-1].batch, name))})"


def remainder_file(warehouse: Warehouse, batch: Batch, name: str) -> Path:
    """Where a remainder lies: beside the batch that its prune wrote."""
    return batch.folder(warehouse) / f"{name}.parquet"

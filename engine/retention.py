"""Data that `drivetail prune` keeps of the days before its horizon (docs/decisions/0007-prune.md).

A pruned day keeps every stored model except the drive-hours. It keeps their drive, hour and slowdown where a chronic window may still
reach the row. So intervals, events, tails and what is counted when asked stay exact. Nothing can compute a pruned day again, so raw has
its files too, as hard links in `raw/pruned/`: a copy of raw is a copy of everything. In order, so that a kill at any instant loses nothing:
1. the pruned days' files are written and linked into raw,
2. `raw/pruned.json` names them, by one rename: from here on the prune has happened, and the next build enters it where this one does not,
3. a publication without the pruned rows takes the place of the last one,
4. files go when no publication needs them any more (engine/publish.py).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.errors import ModelError
from engine.nodes import STORED, Models
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file, sync
from ingest.raw.store import pruned_record

PRUNED_MODEL = "int_drive_hours"
"""The stored model whose rows a prune takes away."""


@dataclass(frozen=True)
class Kept:
    """A file that a prune kept: its model and day, its path below the store, and the version of the models that computed it."""

    model: str
    day_utc: date
    file: str
    models_version: str


@dataclass(frozen=True)
class Past:
    """Extent of all prunes. before_utc: the horizon, start of a UTC day. row_count: drive-hours of raw that are gone, over all prunes."""

    before_utc: datetime
    row_count: int
    files: list[Kept]

    @property
    def day(self) -> str:
        """The horizon, as people read it."""
        return self.before_utc.date().isoformat()

    def is_of_other_models(self, models: Models) -> bool:
        """Whether some of it was computed by other models than these; of a project that is not installed nothing is known."""
        stored = {node.name for node in models.made(*STORED)}
        return any(kept.models_version != models.store_version_of(kept.model) for kept in self.files if kept.model in stored)


def read_past(warehouse: Warehouse) -> Past | None:
    """Extent of all prunes; None where nothing was pruned."""
    try:
        record: dict[str, Any] = json.loads(pruned_record(warehouse.root).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    files = [Kept(**{**kept, "day_utc": date.fromisoformat(kept["day_utc"])}) for kept in record["files"]]
    return Past(datetime.fromisoformat(record["before_utc"]), record["row_count"], files)


def write_past(warehouse: Warehouse, past: Past) -> None:
    """Write down what was pruned, by one rename; after it returns, the prune survives a power cut."""
    text = json.dumps(asdict(past), indent=2, default=lambda instant: instant.isoformat())
    replace_file(pruned_record(warehouse.root), text + "\n")


def held_in_raw(warehouse: Warehouse, file: str) -> Path:
    """Where raw has a file of the past. file: its path below the store."""
    return warehouse.raw / "pruned" / file


def keep_in_raw(warehouse: Warehouse, files: list[Kept]) -> None:
    """Link the files of the past into raw, or copy them where raw is on another disk; after it returns they survive a power cut."""
    folders = set()
    for kept in files:
        source, target = warehouse.store / kept.file, held_in_raw(warehouse, kept.file)
        # a prune that was killed may have left another file of that name
        if not target.exists() or (target.stat().st_size, target.stat().st_mtime) != (source.stat().st_size, source.stat().st_mtime):
            sync(source)
            _link(source, target)
            folders |= {target.parent, *(above for above in target.parent.parents if above.is_relative_to(warehouse.raw))}
    for folder in sorted(folders, reverse=True):
        sync(folder)


def remove_from_raw(warehouse: Warehouse, past: Past) -> None:
    """Remove the files in raw that are no longer part of the past, such as those of a prune that was killed."""
    held = {held_in_raw(warehouse, kept.file) for kept in past.files}
    for path in (warehouse.raw / "pruned").glob("*/day_utc=*/*"):
        if path not in held:
            path.unlink()


def restore_pruned(warehouse: Warehouse, past: Past) -> None:
    """Put what raw holds of the past into the store where it is not there. Raises: ModelError where raw has lost it."""
    for kept in past.files:
        held = held_in_raw(warehouse, kept.file)
        if not held.exists():
            raise ModelError(
                f"{held}: is missing; pruned data are nowhere else in the warehouse: put it back from a copy (docs/runbooks/pruned.md)"
            )
        if not (warehouse.store / kept.file).exists():
            _link(held, warehouse.store / kept.file)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it to another disk, by one rename."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        os.link(source, draft)
    except OSError:
        shutil.copy2(source, draft)
        sync(draft)
    os.replace(draft, target)


def register_pruned(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, past: Past) -> None:
    """Make the files of the past the live ones of their days. One transaction; changes nothing where they are."""
    rows = [(kept.model, kept.day_utc, kept.file, kept.models_version) for kept in past.files]
    live = connection.execute("select * from plan.files where day_utc < cast(? as date)", [past.before_utc]).fetchall()
    if set(live) == set(rows):
        return
    connection.execute("begin")
    connection.execute("delete from plan.files where day_utc < cast(? as date)", [past.before_utc])
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        connection.execute("insert into plan.files select unnest(?), unnest(?), unnest(?), unnest(?)", columns)
    connection.execute("commit")


def files_needed(warehouse: Warehouse, past: Past | None) -> set[str]:
    """Paths of the store that a prune kept: needed also before a build has entered them."""
    return set() if past is None else {str(warehouse.store / kept.file) for kept in past.files}

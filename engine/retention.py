"""What `drivetail prune` leaves of the days before its horizon (docs/decisions/0007-prune.md).

A pruned day keeps its stored models but for the drive-hours: of those stay the rows that a chronic window may yet reach. So intervals,
events, tails and the study stay exact. Nothing can compute a pruned day again, so raw keeps its files too, as hard links in `raw/pruned/`:
whoever keeps raw keeps everything. In order, so that a kill at any instant loses nothing:
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

from engine.dbt import ModelError
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
    """What was pruned. before_utc: the horizon, start of a UTC day. row_count: drive-hours of raw that are gone, over all prunes."""

    before_utc: datetime
    row_count: int
    files: list[Kept]

    @property
    def day(self) -> str:
        """The horizon, as people read it."""
        return self.before_utc.date().isoformat()

    def is_of_other_models(self, version: str) -> bool:
        """Whether some of it was computed by other models than these."""
        return any(kept.models_version != version for kept in self.files)


def read_past(warehouse: Warehouse) -> Past | None:
    """What was pruned; None where nothing was."""
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


def keep_in_raw(warehouse: Warehouse, files: list[Kept]) -> None:
    """Have raw hold the files of the past: under a second name, or a copy where raw is on another disk."""
    for kept in files:
        _link(warehouse.store / kept.file, warehouse.raw / "pruned" / kept.file)
    for folder in {(warehouse.raw / "pruned" / kept.file).parent for kept in files}:
        sync(folder)


def bring_back(warehouse: Warehouse, past: Past) -> None:
    """Put what raw holds of the past into the store where it is not there. Raises: ModelError where raw has lost it."""
    for kept in past.files:
        held = warehouse.raw / "pruned" / kept.file
        if not held.exists():
            raise ModelError(f"{held}: is gone; nothing else holds what was pruned: put it back from a copy (docs/runbooks/pruned.md)")
        _link(held, warehouse.store / kept.file)


def _link(source: Path, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        draft = target.with_name(f"{target.name}.draft")
        shutil.copyfile(source, draft)
        sync(draft)
        os.replace(draft, target)


def enter_past(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, past: Past) -> None:
    """Make the files of the past the live ones of their days. One transaction; changes nothing where they are."""
    connection.execute("begin")
    connection.execute("delete from plan.files where day_utc < cast(? as date)", [past.before_utc])
    if past.files:
        rows = [[kept.model, kept.day_utc, kept.file, kept.models_version] for kept in past.files]
        connection.executemany("insert into plan.files values (?, ?, ?, ?)", rows)
    connection.execute("commit")


def files_needed(warehouse: Warehouse, past: Past | None) -> set[str]:
    """Paths of the store that a prune wrote: needed also before a build has entered them."""
    return set() if past is None else {str(warehouse.store / kept.file) for kept in past.files}

"""The paths in a warehouse folder, and the lock that keeps writers apart."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from ingest.raw.store import require_plain_path

PROJECT = Path(__file__).resolve().parent.parent
"""The dbt project: the checkout that this command was installed from."""


@dataclass(frozen=True)
class Warehouse:
    """The folder of one warehouse; `DIR/warehouse.duckdb` is where readers look."""

    root: Path

    def __post_init__(self) -> None:
        """Make the path absolute: published views and dbt's own folders depend on it."""
        object.__setattr__(self, "root", Path(self.root).resolve())

    @property
    def raw(self) -> Path:
        """System of record: what was delivered."""
        return self.root / "raw"

    @property
    def store(self) -> Path:
        """Computed rows, immutable files by model and UTC day; table `plan.files` of the build database names the live ones."""
        return self.root / "store"

    @property
    def build(self) -> Path:
        """Scratch and state of the builds; made from raw."""
        return self.root / "build"

    @property
    def spark(self) -> Path:
        """Scratch of a build on Spark (engine/spark.py)."""
        return self.build / "spark"

    @property
    def build_database(self) -> Path:
        """The database dbt works in. No other process reads it: DuckDB locks out readers of a file that is being written."""
        return self.build / "build.duckdb"

    @property
    def custom_database(self) -> Path:
        """The analysts' own models, as they were made last (engine/custom.py)."""
        return self.build / "analysts.duckdb"

    @property
    def failed_build(self) -> Path:
        """When the last build failed and why, until one ends well."""
        return self.build / "failed.json"

    @property
    def publications(self) -> Path:
        """Every publication that a reader may still have open."""
        return self.root / "publications"

    @property
    def published(self) -> Path:
        """The current publication."""
        return self.root / "warehouse.duckdb"

    @property
    def settings(self) -> Path:
        """Settings of the installation (drivetail/service/settings.py), where an operator has written it."""
        return self.root / "drivetail.toml"

    @property
    def decisions(self) -> Path:
        """People's decisions on drives, a line of JSON each."""
        return self.raw / "decisions.jsonl"

    @property
    def log(self) -> Path:
        """Log of the runs: one JSON object a line (at, pid, phase, progress)."""
        return self.root / "drivetail.log"

    def create(self) -> None:
        """Make the folders. Raises: StoreError where no build could read them."""
        require_plain_path(self.root)
        for folder in (self.raw, self.store, self.build, self.publications):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def only_builder(self) -> Iterator[None]:
        """Hold the build lock: one build or publication at a time; a second one waits for the first."""
        self.create()
        with (self.build / "build.lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def note(self, phase: str, **progress: object) -> None:
        """Append one line to the log. Never fails the work it reports on."""
        spent = {"pid": os.getpid(), "cpu_s": round(time.process_time(), 3)}
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **spent, "phase": phase, **progress}
        try:
            with self.log.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(line, default=str) + "\n")
        except OSError:
            logging.getLogger(__name__).warning("cannot write %s", self.log)


def day_folders(store: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders of the store that hold a day of a model, each with the names of its files: a year of them is quicker than as paths."""
    for folder, _, files in os.walk(store):
        if os.path.basename(folder).startswith("day_utc="):
            yield Path(folder), files


def day_folder(store: Path, model: str, day: date) -> Path:
    """Where the files of a model's day are in the store, or in Spark's folder."""
    return store / model / f"day_utc={day.isoformat()}"


def quoted(text: object) -> str:
    """A SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"


def texts(values: Iterable[str]) -> str:
    """Texts as a list of SQL literals; an empty one matches nothing."""
    return ", ".join(quoted(value) for value in sorted(values)) or "null"


def instant(value: datetime) -> str:
    """A SQL timestamp."""
    return f"timestamp '{value:%Y-%m-%d %H:%M:%S}'"

"""What a new warehouse begins with: databases in which every model is defined over nothing, kept with dbt's parsed manifest.

To define them takes ten seconds, the same for every warehouse; the first process to do it keeps a copy. It only saves time: where it
cannot be kept or read, the models are defined again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb


class Template:
    """One such database: of a kind (`build`, `publication`), for the models of a version. folder: where it is kept; None: nowhere."""

    def __init__(self, folder: Path | None, kind: str, version: str) -> None:
        self.folder = folder
        self.kind = kind
        self.name = f"{kind}-{version[:16]}-{duckdb.__version__}.duckdb"

    def begin(self, database: Path) -> None:
        """Make a database of it, where there is one."""
        if self.folder is None or not (self.folder / self.name).exists():
            return
        draft = database.with_name(f"{database.name}.begun")
        try:
            shutil.copyfile(self.folder / self.name, draft)
            duckdb.connect(str(draft), read_only=True).close()
            database.with_name(f"{database.name}.wal").unlink(missing_ok=True)
            os.replace(draft, database)
        except OSError:
            draft.unlink(missing_ok=True)
        except duckdb.Error:  # it is damaged: the next process to define the models replaces it
            draft.unlink(missing_ok=True)
            (self.folder / self.name).unlink(missing_ok=True)

    def keep(self, database: Path, empty: Callable[[duckdb.DuckDBPyConnection], object]) -> None:
        """Make it from a database that no process has open, unless it is there; `empty` takes out what is the warehouse's own."""
        if self.folder is None or (self.folder / self.name).exists():
            return
        draft = self.folder / f"{self.name}.{os.getpid()}"
        try:
            shutil.copyfile(database, draft)
            with duckdb.connect(str(draft)) as connection:
                empty(connection)
                connection.execute("checkpoint")
            for other in self.folder.glob(f"{self.kind}-*.duckdb"):
                other.unlink(missing_ok=True)
            os.replace(draft, self.folder / self.name)
        except (OSError, duckdb.Error):
            draft.unlink(missing_ok=True)

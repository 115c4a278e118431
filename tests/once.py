"""What tests of several processes start from, made by the first of them that comes."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PARSED = "DRIVETAIL_TESTS_PARSED"
"""A folder for what dbt has parsed, one for all processes of a run; tests/conftest.py sets it, or who starts pytest again and again."""


def parse_project() -> None:
    """Have the models parsed in this process: the first process of a run takes 15 s, the others find that nothing has changed since."""
    from drivetail.dbt import Project
    from drivetail.warehouse import Warehouse

    folder = Path(os.environ[PARSED])
    with locked(folder / "lock"):
        warehouse = Warehouse(folder / "warehouse")
        warehouse.create()
        Project(warehouse)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(factory: pytest.TempPathFactory, worker_id: str, name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name`, filled by `make(folder)` unless another process of this run has done so. Nobody may change it."""
    base = factory.getbasetemp()
    root = (base if worker_id == "master" else base.parent) / name
    parse_project()
    with locked(root.with_suffix(".lock")):
        if not root.with_suffix(".made").exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir()
            make(root)
            root.with_suffix(".made").touch()
    return root

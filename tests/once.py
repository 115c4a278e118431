"""What tests of several processes start from, made by the first of them that comes."""

from __future__ import annotations

import fcntl
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest
from tests.reference.fleets import HOWS, deliveries, random_fleet


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
    with locked(root.with_suffix(".lock")):
        if not root.with_suffix(".made").exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir()
            make(root)
            root.with_suffix(".made").touch()
    return root


def awkward_fleet(factory: pytest.TempPathFactory, worker_id: str) -> Warehouse:
    """A random fleet with everything that goes wrong, built. Nobody may change it."""
    return Warehouse(made_once(factory, worker_id, "awkward_fleet", _build_awkward) / "warehouse")


def _build_awkward(folder: Path) -> None:
    warehouse = Warehouse(folder / "warehouse")
    paths, _ = deliveries(random_fleet(1), HOWS[0], folder / "fleet", random.Random(1))
    for path in paths:
        ingest("bundle", [path], warehouse.root)
    build(warehouse)

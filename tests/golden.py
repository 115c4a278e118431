"""Golden warehouses: made by the first test that asks, kept beside the environment as long as what they are made of stays the same."""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from engine.build import make_asked, publish_store
from engine.projects import built_models
from engine.warehouse import PROJECT, Warehouse
from ingest import ingest
from tests.reference.fleets import HOWS, deliveries, random_fleet

CACHE = PROJECT / "target" / "golden"
MADE_BY = ("engine", "ingest", "quality", "simulate", "drivetail/demo.py", "drivetail/ask/decisions.py", "tests/golden.py", "uv.lock")
"""Beside the models and the test that fills it, what a golden warehouse comes from."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def golden(name: str, make: Callable[[Path], object], also: tuple[str, ...] = ()) -> Path:
    """The folder `name`, filled by `make(folder)` unless an earlier test or run has done so with the same code. Nobody may change it.

    also: further folders and files that it comes from.
    """
    source = inspect.getsourcefile(make)
    assert source is not None
    digest = hashlib.sha256((built_models({}).digest + _code((*MADE_BY, source, *also))).encode()).hexdigest()[:16]
    root, made = CACHE / name / digest, CACHE / name / f"{digest}.made"
    with locked(CACHE / f"{name}.lock"):
        if not made.exists():
            shutil.rmtree(CACHE / name, ignore_errors=True)
            root.mkdir(parents=True)
            make(root)
            made.touch()
    return root


@cache
def _code(places: tuple[str, ...]) -> str:
    """Changes when any file of these does."""
    found = hashlib.sha256()
    for place in places:
        path = PROJECT / place
        files = sorted(each for each in path.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
        for file in files or [path]:
            found.update(str(file.relative_to(PROJECT)).encode() + file.read_bytes())
    return found.hexdigest()


def copied(warehouse: Warehouse, root: Path) -> Warehouse:
    """A copy of a golden warehouse that a test may change, published where it is."""
    shutil.copytree(warehouse.root, root)
    copy = Warehouse(root)
    publish_store(copy)
    return copy


def awkward_fleet() -> Warehouse:
    """A random fleet with everything that goes wrong, built, and asked for all of it. Nobody may change it."""
    return Warehouse(golden("awkward_fleet", _build_awkward, ("tests/reference",)) / "warehouse")


def _build_awkward(folder: Path) -> None:
    warehouse = Warehouse(folder / "warehouse")
    paths, _ = deliveries(random_fleet(1), HOWS[0], folder / "fleet", random.Random(1))
    for path in paths:
        ingest("bundle", [path], warehouse.root)
    make_asked(warehouse)

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

import duckdb

from engine.build import make_asked
from engine.projects import built_models
from engine.warehouse import PROJECT, Warehouse, quoted
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
    """A copy of a golden warehouse that a test may change, with its publication where it is now, as a build would publish it there."""
    shutil.copytree(warehouse.root, root)
    copy = Warehouse(root)
    publication = max(copy.publications.glob("*-*.duckdb"))
    publication.chmod(0o600)  # tests write into it, too
    there, here = quoted(warehouse.root)[1:-1], quoted(copy.root)[1:-1]
    with duckdb.connect(str(publication)) as connection:
        of_files = f"from duckdb_views() where contains(sql, {quoted(there)})"
        comments = connection.execute(
            "select format('comment on column {}.{}.\"{}\" is ', schema_name, table_name, column_name), comment from duckdb_columns() "
            f"where comment is not null and (schema_name, table_name) in (select (schema_name, view_name) {of_files})"
        ).fetchall()
        for (view,) in connection.execute(f"select sql {of_files}").fetchall():
            connection.execute(view.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1).replace(there, here))
        connection.execute(";".join(column + quoted(comment) for column, comment in comments))
        connection.execute(f"update plan.root set root = '{here}'; comment on table plan.root is '{here}'")
    copy.published.unlink()
    copy.published.hardlink_to(publication)
    record = publication.with_suffix(".json")
    record.write_text(record.read_text().replace(str(warehouse.root), str(copy.root)))
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

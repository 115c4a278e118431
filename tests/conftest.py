"""What tests of several folders start from."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from drivetail.build import build
from drivetail.warehouse import Warehouse
from tests.once import PARSED, made_once


def pytest_configure(config: pytest.Config) -> None:
    """The first process names a folder that its workers, and what they start, share."""
    if PARSED not in os.environ:
        os.environ[PARSED] = tempfile.mkdtemp(prefix="drivetail-parsed-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(PARSED)))


@pytest.fixture(scope="session")
def new_warehouse(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[Path], Warehouse]:
    """Make a warehouse in which nothing has landed, in a folder that does not exist yet.

    It is the copy of one that was built when it was empty, so that the first build does not define all the models again: most of its
    time with a small fleet. The command and the killed processes of tests/proof start from no warehouse at all.
    """
    empty = made_once(tmp_path_factory, worker_id, "empty", lambda folder: build(Warehouse(folder / "warehouse"))) / "warehouse"

    def copy(root: Path) -> Warehouse:
        shutil.copytree(empty, root, ignore=shutil.ignore_patterns("dbt", "logs"))
        return Warehouse(root)

    return copy

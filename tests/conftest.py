"""What tests of several folders start from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from drivetail.build import build
from drivetail.warehouse import Warehouse
from tests.once import made_once

LONGEST = ("proof", "report", "models", "safety", "drivetail")
"""Folders whose tests take minutes, the longest first: the processes of a run then end at about the same time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, all else as it was collected."""
    items.sort(key=lambda item: next((place for place, folder in enumerate(LONGEST) if folder in item.path.parts), len(LONGEST)))


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

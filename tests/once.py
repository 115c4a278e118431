"""A folder that tests of several processes start from, made by the first of them that comes."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, worker_id: str, name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name`, filled by `make(folder)` unless another process of this run has done so. Nobody may change it."""
    base = factory.getbasetemp()
    root = (base if worker_id == "master" else base.parent) / name
    with root.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.with_suffix(".made").exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir()
            make(root)
            root.with_suffix(".made").touch()
    return root

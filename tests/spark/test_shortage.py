"""A build on Spark without room or memory: one line that says so, exit 1, and the last publication stays. Each in a process of its own."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from datetime import date

import pytest

from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest
from simulate import simulate
from tests.proof.support import command, environment

pytestmark = [
    pytest.mark.soak,
    pytest.mark.xdist_group("spark"),
    pytest.mark.needs("java"),
]

LARGEST_FILE_BYTES = 3 << 20
"""More than Java's own files and the build database of a small fleet need, less than an hour's shuffle."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A publication of a few RAID groups, and 400,000 drive-hours that have landed since."""
    folder = tmp_path_factory.mktemp("shortage")
    made = Warehouse(folder / "warehouse")
    for groups, first in ((2, date(2026, 1, 5)), (700, date(2026, 1, 6))):
        simulate(folder / f"fleet-{groups}", disk_groups=groups, ssd_groups=0, days=1, seed=1, start=first)
        ingest("bundle", [folder / f"fleet-{groups}"], made.root)
        if groups == 2:
            build(made)
    return made


@pytest.mark.parametrize(
    ("file_bytes", "memory", "said"),
    [(LARGEST_FILE_BYTES, "2g", "no room on the disk"), (None, "200m", "too little memory|does not start")],
    ids=["no room", "no memory"],
)
def test_a_shortage_is_one_line(warehouse: Warehouse, file_bytes: int | None, memory: str, said: str) -> None:
    def strain() -> None:
        if file_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))

    before = warehouse.published.stat().st_ino
    done = subprocess.run(
        command("build", "--target", "spark", "--master", "local[2]", "--warehouse", warehouse.root),
        env={**environment(), "DRIVETAIL_SPARK_MEMORY": memory}, preexec_fn=strain, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and re.search(said, done.stderr), done.stderr
    assert warehouse.published.stat().st_ino == before
    assert os.access(warehouse.build / "logs/spark.log", os.R_OK)

"""`drivetail build --target spark`: Spark computes the days, and what is published is what the reference says.

A random awkward fleet, shuffled: corrections and inventory come last. DRIVETAIL_SEEDS="5" repeats a run. DuckDB builds in between, so each
engine goes on from what the other has stored.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.build import build
from engine.dbt import ModelError
from engine.spark import require_spark
from engine.warehouse import Warehouse
from ingest import ingest
from tests.proof.support import seeds
from tests.reference.compare import compare
from tests.reference.fleets import deliveries, random_fleet
from tests.reference.reference import Delivery, compute

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed: `make .venv/.spark`"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17 or later, and there is no `java`"),
]


def test_builds_on_spark_and_duckdb_in_turn_equal_the_reference(tmp_path: Path) -> None:
    (seed,) = seeds(1)
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    folders, _ = deliveries(random_fleet(seed), "shuffled", tmp_path / "deliveries", random.Random(seed))
    warehouse = Warehouse(tmp_path / "warehouse")
    last = len(folders) - 1
    for number, folder in enumerate(folders):
        ingest("bundle", [folder], warehouse.root)
        if number in (last // 3, 2 * last // 3, last):
            build(warehouse, target="duckdb" if number == 2 * last // 3 else "spark", master="local[2]")
            expected = compute([Delivery(delivered) for delivered in folders[: number + 1]])
            assert compare(expected, warehouse.published) == [], f"seed {seed}, after delivery {number + 1} of {len(folders)}"
    stored = {path.stat().st_ino for path in warehouse.store.rglob("*.parquet")}
    assert stored & {path.stat().st_ino for path in warehouse.spark.rglob("part-*.parquet")}, "what Spark wrote is in the store"


def test_without_java_the_build_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ModelError, match=rf"needs Java 17 or later, and JAVA_HOME \({tmp_path}\) has no java that runs"):
        require_spark("local[*]")


def test_a_master_that_does_not_answer_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nobody answers there, and nobody else can begin to
        url = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ModelError, match=f"no Spark master answers at {url} .*refused"):
            require_spark(url)
        taken.listen()
        require_spark(f"spark://127.0.0.1:1,{url.removeprefix('spark://')}")  # one of several is enough


def test_a_master_is_of_spark(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["build", "--master", "local[2]", "--warehouse", str(tmp_path)])
    assert told.exit_code == 2 and "--master is of --target spark" in told.output
    assert not os.listdir(tmp_path)

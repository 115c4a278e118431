"""`drivetail build --target spark`: day after day, over a prune, and what it says where something is missing.

A random awkward fleet with its first hours moved back by weeks; DRIVETAIL_SEEDS="5" repeats a run.
"""

from __future__ import annotations

import os
import random
import socket
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.build import build, make_asked
from engine.errors import ModelError
from engine.prune import prune
from engine.spark import require_spark
from engine.warehouse import Warehouse
from ingest import ingest
from tests.proof.support import seeds
from tests.proof.test_pruned import cut_up, days_to, expected, stretched
from tests.reference.compare import compare
from tests.reference.fleets import Records, deliveries, random_fleet, write_bundle
from tests.reference.reference import compute

pytestmark = [pytest.mark.proof, pytest.mark.xdist_group("spark"), pytest.mark.needs("java")]


def test_a_build_on_spark_over_one_on_duckdb_equals_the_reference(tmp_path: Path) -> None:
    (seed,) = seeds(1)
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    warehouse = Warehouse(tmp_path / "warehouse")
    bundles, _ = deliveries(random_fleet(seed), "shuffled", tmp_path / "deliveries", random.Random(seed))
    for number, bundle in enumerate(bundles):
        ingest("bundle", [bundle], warehouse.root)
        if number == len(bundles) // 2:
            build(warehouse)
    build(warehouse, target="spark", master="local[2]", daily=True)
    make_asked(warehouse)
    assert compare(compute(bundles), warehouse.published) == []
    stored = {path.stat().st_ino for path in warehouse.store.rglob("*.parquet")}
    assert stored & {path.stat().st_ino for path in warehouse.spark.rglob("part-*.parquet")}, "what Spark wrote is in the store"


@pytest.mark.soak
def test_builds_by_both_engines_in_turn_equal_the_reference(tmp_path: Path) -> None:
    """Spark, DuckDB, a prune, Spark over late rows, and Spark over all that the prune has left."""
    (seed,) = seeds(1)
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    rng = random.Random(seed)
    (hours, drives, events), horizon = stretched(random_fleet(seed))
    early, late = cut_up((hours, drives, events), horizon, rng)
    shuffled = rng.sample(early[0], len(early[0]))
    parts: list[Records] = [(shuffled[::2], early[1], []), (shuffled[1::2], [], []), late]
    folders = [write_bundle(part, tmp_path / f"delivery-{number}", "parquet") for number, part in enumerate(parts)]
    warehouse = Warehouse(tmp_path / "warehouse")
    for number, target in enumerate(("spark", "duckdb", "spark")):
        ingest("bundle", [folders[number]], warehouse.root)
        build(warehouse, target=target, master="local[2]" if target == "spark" else None, daily=True)
        assert differences(folders[: number + 1], warehouse, horizon if number == 2 else None) == [], f"seed {seed}, build {number + 1}"
        if number == 1:
            prune(warehouse, days_to(horizon, warehouse))
    build(warehouse, target="spark", master="local[2]", full_refresh=True, keep_pruned=True)
    assert differences(folders, warehouse, horizon) == []


def differences(folders: list[Path], warehouse: Warehouse, horizon: datetime | None) -> list[str]:
    """Differences of the publication from the reference; horizon: of the prune."""
    marts = expected(folders, horizon) if horizon else compute(folders)
    if horizon:  # corrections of pruned hours are turned away
        marts = {name: rows for name, rows in marts.items() if name not in ("rejected_records", "ingested_files")}
    return compare(marts, warehouse.published)


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

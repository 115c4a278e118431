"""Every mart equals an independent computation, whatever way the records came; and all ways end in the same marts.

A random fleet per run, delivered in one way that is drawn; in `make proof` at once, hour by hour with builds in between, and shuffled
(corrections and inventory last, events twice), and in the end all hours are computed at once. DRIVETAIL_SEEDS="5,17" repeats a run;
DRIVETAIL_FLEETS says how many fleets, 1 unless given, 20 in `make soak`; DRIVETAIL_BUILDS how many builds in between.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from engine.build import build, make_asked
from engine.compiled import models_of
from engine.nodes import EACH_DAY, STORED
from engine.projects import built_models
from engine.warehouse import Warehouse
from ingest import ingest
from ingest.raw.store import list_deliveries
from tests.proof.support import asked, broken_sums, command, environment, marts_differences, seeds
from tests.reference.compare import compare
from tests.reference.fleets import HOWS, Fleet, Record, deliveries, random_fleet, write_bundle
from tests.reference.reference import compute

BUILDS_BETWEEN = int(os.environ.get("DRIVETAIL_BUILDS", "1"))
"""After each of them every mart is computed by the reference, too, which takes longer than the build."""


@pytest.mark.parametrize("seed", seeds(1))
def test_every_mart_equals_the_reference_for_a_drawn_delivery(seed: int, tmp_path: Path) -> None:
    how = random.Random(seed).choice(HOWS)
    print(f"repeat with DRIVETAIL_SEEDS={seed}; {how}")
    deliver(random_fleet(seed), how, tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize("seed", seeds(1))
def test_every_mart_equals_the_reference_in_three_ways_of_delivery(seed: int, tmp_path: Path) -> None:
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    fleet = random_fleet(seed)
    published = [deliver(fleet, how, tmp_path / how) for how in HOWS]
    differences = marts_differences(*published)
    assert not differences, f"seed {seed}: not all of {', '.join(HOWS)} end in the same marts:\n" + "\n".join(differences)
    corrected = Warehouse(published[-1].parent)
    kept = counts(corrected)
    again = build(corrected, full_refresh=True)
    make_asked(corrected)
    assert again.delivery_count == len(list_deliveries(corrected.root))
    assert counts(corrected) == kept, f"seed {seed}: counts by day that corrections changed are not those of all hours computed at once"
    shutil.rmtree(tmp_path)  # twenty fleets of a soak would fill /tmp


@pytest.mark.soak
def test_two_at_once_out_of_order_while_builds_run(tmp_path: Path) -> None:
    """Each delivery by two processes at the same time, the past (a backfill) beside the present, and builds all the while."""
    seed = seeds(1)[0]
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    draw = random.Random(seed)
    folders, _ = deliveries(random_fleet(seed), "hourly", tmp_path / "deliveries", draw)
    warehouse = Warehouse(tmp_path / "warehouse")

    def run(*arguments: object) -> subprocess.Popen[bytes]:
        called = command(*arguments, "--warehouse", warehouse.root)
        return subprocess.Popen(called, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    quarter = len(folders) // 4 + 1
    parts = [folders[at : at + quarter] for at in range(0, len(folders), quarter)]
    for past, present in ((parts[1], parts[2]), (parts[0], parts[3])):
        senders = [run("ingest", "bundle", *draw.sample(part, len(part))) for part in (past, present) for _ in range(2)]
        for process in (*senders, run("build"), run("build")):
            said, _ = process.communicate(timeout=600)
            # a build may come before anything has landed
            assert process.returncode == 0 or b"nothing has landed there" in said, said.decode()
    build(warehouse, daily=True)
    assert len(list_deliveries(warehouse.root)) == 4, "of two that send the same, one lands it"
    assert compare(compute(folders), warehouse.published) == []


def test_an_hour_looks_back_over_midnight_and_again_when_a_row_comes_late(tmp_path: Path) -> None:
    """An hour a batch; raw has a file a day. The last row is of the first hour, in which its drive was slow already."""

    def rows(hour: int, **latencies_us: float) -> list[Record]:
        at = datetime(2026, 1, 5, 23) + timedelta(hours=hour)
        return [
            {"hour_utc": at, "drive_id": drive, "raid_group_id": "g1", "read_ios": 10, "write_ios": 0, "read_latency_us": us}
            for drive, us in latencies_us.items()
        ]

    parts = [rows(0, a=100.0, b=100.0, c=100.0), rows(1, a=100.0, b=100.0, c=100.0, d=300.0), rows(0, d=200.0)]
    inventory = [{"drive_id": drive, "raid_group_id": "g1", "kind": "disk", "role": "data"} for drive in "abcd"]
    warehouse = Warehouse(tmp_path / "warehouse")
    folders = [
        write_bundle((part, [] if number else inventory, []), tmp_path / f"delivery_{number}", "csv") for number, part in enumerate(parts)
    ]
    for folder, seen in zip(folders, ([None], [None, "stable_to_tail"], [None, "tail_to_tail"]), strict=True):
        ingest("bundle", [folder], warehouse.root)
        build(warehouse)
        transitions = asked(warehouse.published, "select transition from marts.fct_raid_hours order by hour_utc")
        assert [transition for (transition,) in transitions] == seen
    assert compare(compute(folders), warehouse.published) == []


def deliver(fleet: Fleet, how: str, folder: Path) -> Path:
    """Deliver the fleet in one of three ways, comparing after every build. Returns: the published file."""
    rng = random.Random(fleet.seed)
    folders, builds = deliveries(fleet, how, folder / "deliveries", rng)
    chosen = {*rng.sample(builds[:-1], min(BUILDS_BETWEEN, len(builds) - 1)), builds[-1]}
    warehouse = Warehouse(folder / "warehouse")
    of_each_day: dict[str, list[Record]] = {}
    for number, bundle in enumerate(folders):
        ingest("bundle", [bundle], warehouse.root)
        if number not in chosen:
            continue
        build(warehouse)
        bundles = folders[: number + 1]
        expected = compute(bundles)
        if has_made_each_day(warehouse):
            each_day = {node.name for node in models_of() if node.made == EACH_DAY}
            of_each_day = {name: rows for name, rows in expected.items() if name in each_day}
        assert of_each_day, "the first build makes all"
        # what is made once a day stays as it was made
        differences = compare(expected | of_each_day, warehouse.published)
        if number == builds[-1]:
            build(warehouse, daily=True)
            make_asked(warehouse)
            differences += compare(expected, warehouse.published)
            with duckdb.connect(str(warehouse.published), read_only=True) as connection:
                differences += broken_sums(connection)
        assert not differences, f"seed {fleet.seed}, {how}, after delivery {number + 1} of {len(folders)}:\n" + "\n".join(differences)
    return warehouse.published


def has_made_each_day(warehouse: Warehouse) -> bool:
    """Whether the last build has made the relations of each day."""
    notes = [json.loads(line) for line in warehouse.log.read_text(encoding="utf-8").splitlines()]
    return bool([note["each_day"] for note in notes if note["phase"] == "made"][-1])


def counts(warehouse: Warehouse) -> dict[str, list[tuple]]:
    """Rows of every stored model, those that are counted when somebody asks too."""
    models = [node.name for node in built_models({}).made(*STORED)]
    with duckdb.connect(str(warehouse.build_database), read_only=True) as connection:
        return {model: sorted(connection.execute(f"select * from intermediate.{model}").fetchall(), key=str) for model in models}

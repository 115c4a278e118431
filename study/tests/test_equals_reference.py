"""The study equals an independent computation, after whatever delivery, and after a prune has taken the hours that it counted.

DRIVETAIL_SEEDS="5,17" repeats a run; DRIVETAIL_FLEETS says how many fleets, 1 unless given.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from engine.build import build, make_asked
from engine.prune import prune
from engine.warehouse import Warehouse
from ingest import ingest
from study.tests.compare import compare_study
from study.tests.reference import read_references, study
from tests.proof.support import seeds
from tests.proof.test_pruned import cut_up, days_to, stretched
from tests.reference.fleets import HOWS, deliveries, random_fleet, write_bundle
from tests.reference.reference import compute, timezones


def differences(folders: list[Path], warehouse: Warehouse) -> list[str]:
    """Differences of the study, once it has been asked for, from that of these bundles."""
    make_asked(warehouse)
    return compare_study(study(compute(folders), read_references(), timezones(folders)), warehouse.published)


@pytest.mark.parametrize("seed", seeds(1))
def test_the_study_equals_the_reference_for_a_drawn_delivery(seed: int, tmp_path: Path) -> None:
    how = random.Random(seed).choice(HOWS)
    print(f"repeat with DRIVETAIL_SEEDS={seed}; {how}")
    folders, builds = deliveries(random_fleet(seed), how, tmp_path / "deliveries", random.Random(seed))
    warehouse = Warehouse(tmp_path / "warehouse")
    for number, folder in enumerate(folders):
        ingest("bundle", [folder], warehouse.root)
        if number == builds[len(builds) // 2]:
            build(warehouse)
            make_asked(warehouse)  # days are counted that change later
    build(warehouse, daily=True)
    assert differences(folders, warehouse) == []


@pytest.mark.proof
@pytest.mark.parametrize("seed", seeds(1))
def test_a_prune_keeps_the_counts_of_the_study(seed: int, tmp_path: Path) -> None:
    """Nobody has asked before the hours go: the prune itself counts them."""
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    records, horizon = stretched(random_fleet(seed))
    early, late = cut_up(records, horizon, random.Random(seed))
    warehouse = Warehouse(tmp_path / "warehouse")
    folders = [write_bundle(early, tmp_path / "early", "parquet")]
    ingest("bundle", folders, warehouse.root)
    build(warehouse)
    assert prune(warehouse, days_to(horizon, warehouse)).row_count
    folders.append(write_bundle(late, tmp_path / "late", "csv"))
    ingest("bundle", folders[1:], warehouse.root)
    build(warehouse, daily=True)
    assert differences(folders, warehouse) == []
    build(warehouse, full_refresh=True, keep_pruned=True)
    assert differences(folders, warehouse) == []

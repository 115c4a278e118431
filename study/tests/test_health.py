"""Which SMART attributes differ: nothing where nothing is planted, else what was planted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import jinja2
import pytest
from scipy.stats import t

from engine.build import build
from engine.read import fetch, open_published
from engine.warehouse import PROJECT, Warehouse
from ingest import ingest
from simulate import simulate

pytestmark = pytest.mark.xdist_group("health")


def test_the_limit_of_student_is_hardly_too_wide() -> None:
    macro = (PROJECT / "macros" / "statistics" / "student_limit.sql").read_text(encoding="utf-8")
    limit: Any = jinja2.Template(macro).module
    for freedom in (3, 9, 12, 30, 1000):
        for probability in (0.025, 1e-3, 1e-4, 1e-5) if freedom >= 9 else (0.025,):
            ((got,),) = duckdb.sql(f"select {limit.student_limit(str(probability), f'{freedom}.0')}").fetchall()
            assert 0.9995 <= got / t.isf(probability, freedom) <= 1.011


@pytest.mark.parametrize("health", ["unrelated", "planted"])
def test_a_simulated_fleet_has_what_was_planted(health: str, tmp_path: Path) -> None:
    # often slow, so that a small fleet has RAID groups enough to compare
    often = {"disk.episode_rate_per_drive_year": 30.0}
    simulate(tmp_path / "bundle", disk_groups=40, ssd_groups=0, days=10, health=health, parameters=often)
    warehouse = Warehouse(tmp_path / "warehouse")
    ingest("bundle", [tmp_path / "bundle"], warehouse.root)
    build(warehouse)
    with open_published(warehouse) as connection:
        rows = fetch(connection, "select * from study.health_comparison")
        warnings = {(row["rule"], row["measure"]): row for row in fetch(connection, "select * from study.health_warnings")}
    assert sum(row["is_different"] is not None for row in rows) >= 10
    different = {row["attribute"] for row in rows if row["is_different"]}
    if health == "unrelated":
        assert not different and set(warnings) == {("slow_history", None)}
        return
    assert different == {"current_pending_sector"}
    rises = warnings["attribute", "raw_change"]
    assert rises["attribute"] == "current_pending_sector"
    # what came before the first slow hour, of which a drive's history knows nothing
    assert rises["first_precision"] > 0.5 and rises["first_recall"] > 0.1 and warnings["slow_history", None]["first_recall"] == 0

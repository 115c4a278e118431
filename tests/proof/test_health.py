"""Which SMART attributes differ: equal to a plain computation; nothing where nothing is planted, else what was planted."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import jinja2
import polars as pl
import pytest
from scipy.stats import t

from engine.build import build
from engine.read import fetch, open_published
from engine.warehouse import PROJECT, Warehouse
from ingest import ingest
from simulate import simulate
from tests.reference.health import COUNTS, comparison, values, warnings

pytestmark = pytest.mark.xdist_group("health")

FIRST = datetime(2026, 1, 5)
DAYS = 14


def built(folder: Path, bundle: Path) -> Warehouse:
    warehouse = Warehouse(folder / "warehouse")
    ingest("bundle", [bundle], warehouse.root)
    build(warehouse)
    return warehouse


def comparisons(warehouse: Warehouse) -> list[dict[str, Any]]:
    with open_published(warehouse) as connection:
        return fetch(connection, "select * from study.health_comparison")


def awkward_fleet(folder: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Fourteen RAID groups of four, three hours a day, of two models and one unknown; readings of two attributes and an age, some missing.

    Reallocated sectors rise on slow days, those of M1 most; media errors know nothing of them. Returns: the readings; the drives.
    """
    rng = random.Random(7)
    hours, readings, drives = [], [], {}
    for group in range(14):
        for place in range(4):
            drive = f"g{group:02}d{place}"
            model = None if place == 3 and group < 4 else ("M1", "M2")[place % 2]
            drives[drive] = {"kind": "disk", "model": model, "raid_group_id": drive[:3]}
            for day in range(DAYS):
                is_slow = place < 2 and rng.random() < 0.3
                for hour in range(3):
                    latency = 500.0 if is_slow and hour == 1 else 100.0
                    at = FIRST + timedelta(days=day, hours=hour)
                    hours.append({"hour_utc": at, "drive_id": drive, "raid_group_id": drive[:3], "latency_us": latency, "io_count": 10})
                sectors = day % 4 + rng.randint(0, 3) + is_slow * (6 if model == "M1" else 3)
                given = {
                    "reallocated_sector_ct": (sectors, 100 - sectors),
                    "media_errors": (rng.randint(0, 1), None),
                    "power_on_hours": (9, 9),
                }
                for name, (raw, normal) in given.items():
                    if rng.random() < 0.8:
                        row = {"drive_id": drive, "attribute": name, "raw_value": raw, "normalised_value": normal}
                        readings.append({"day_utc": (FIRST + timedelta(days=day)).date(), **row})
    folder.mkdir()
    pl.DataFrame(hours).write_parquet(folder / "drive_hours.parquet")
    described = [{"drive_id": name, "role": "data", **row} for name, row in drives.items()]
    pl.DataFrame(described, infer_schema_length=None).write_parquet(folder / "drives.parquet")
    read = pl.DataFrame(readings, infer_schema_length=None).rename({"day_utc": "read_at"}).cast({"read_at": pl.Datetime("us")})
    early = read.with_columns(pl.col("raw_value") + 1)  # the first of two readings of a day does not count
    read.with_columns(pl.col("read_at") + timedelta(hours=9)).extend(early).write_parquet(folder / "drive_health.parquet")
    return readings, drives


def test_the_comparison_equals_a_plain_computation(tmp_path: Path) -> None:
    readings, drives = awkward_fleet(tmp_path / "bundle")
    warehouse = built(tmp_path, tmp_path / "bundle")
    with open_published(warehouse) as connection:
        slow = fetch(
            connection,
            "select drive_id, cast(hour_utc as date) as day, count(*) filter (is_slow) as hours from marts.fct_drive_hours "
            "where slowdown is not null group by all",
        )
        rows = fetch(connection, "select drive_id, day_utc, attribute, raw_value, slow_hours from marts.fct_drive_health")
    slow_hours: dict[tuple[str, date], int] = {(row["drive_id"], row["day"]): row["hours"] for row in slow}
    assert sum(hours > 0 for hours in slow_hours.values()) > 30
    found = {(row["drive_id"], row["day_utc"], row["attribute"]): (row["raw_value"], row["slow_hours"]) for row in rows}
    assert found == {
        (row["drive_id"], row["day_utc"], row["attribute"]): (row["raw_value"], slow_hours.get((row["drive_id"], row["day_utc"])))
        for row in readings
    }
    numbers = values(readings, slow_hours, drives)
    expected = comparison(numbers)
    got = {tuple(row[name] for name in ("kind", "scope", "model", "attribute", "measure")): row for row in comparisons(warehouse)}
    assert got.keys() == expected.keys() and len(got) > 12
    assert {row["is_different"] for row in got.values()} >= {True, False}
    for key, row in got.items():
        of = expected[key]
        assert (row["slow_drive_days"], row["other_drive_days"], row["slow_raid_groups"]) == (
            of["slow_days"],
            of["other_days"],
            of["groups"],
        )
        assert row["effect"] == pytest.approx(of["effect"], abs=1e-9)
        assert row["is_different"] is of["is_different"]
        # the limit of Student's t is too wide by 1% at most
        assert (row["effect_low"], row["effect_high"]) == (pytest.approx(of["low"], abs=0.01), pytest.approx(of["high"], abs=0.01))
    warned = warnings(numbers, expected)
    with open_published(warehouse) as connection:
        rules = {
            tuple(row[name] for name in ("kind", "rule", "attribute", "measure")): row
            for row in fetch(connection, "select * from study.health_warnings")
        }
    assert rules.keys() == warned.keys() and len(rules) > 1
    for rule, counts in warned.items():
        assert {name: rules[rule][name] for name in COUNTS} == counts, rule
        assert rules[rule]["precision_ratio"] == pytest.approx(counts["right_days"] / counts["warned_days"])
        assert rules[rule]["recall"] == pytest.approx(counts["caught_onset_count"] / counts["onset_count"])


def test_the_limit_of_student_is_hardly_too_wide() -> None:
    macro = (PROJECT / "macros" / "student_limit.sql").read_text(encoding="utf-8")
    limit: Any = jinja2.Template(macro).module
    for freedom in (9, 12, 30, 1000):
        for probability in (0.025, 1e-3, 1e-4, 1e-5):
            ((got,),) = duckdb.sql(f"select {limit.student_limit(str(probability), f'{freedom}.0')}").fetchall()
            assert 0.9995 <= got / t.isf(probability, freedom) <= 1.011


@pytest.mark.parametrize("health", ["unrelated", "planted"])
def test_a_simulated_fleet_has_what_was_planted(health: str, tmp_path: Path) -> None:
    # often slow, so that a small fleet has RAID groups enough to compare
    often = {"disk.episode_rate_per_drive_year": 30.0}
    simulate(tmp_path / "bundle", disk_groups=40, ssd_groups=0, days=10, health=health, parameters=often)
    warehouse = built(tmp_path, tmp_path / "bundle")
    rows = comparisons(warehouse)
    with open_published(warehouse) as connection:
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

"""The labelled benchmark, scored against tools whose answers are known."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from simulate import SimulationError
from simulate.benchmark import FIRST, STORIES, SWAP_TAIL_HOURS, score, write_benchmark
from tests.proof.support import drivetail

WEEKS = 6


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("benchmark")
    write_benchmark(folder, seeds=(11,), weeks=WEEKS)
    return folder


def scored(out: Path, file: Path, rows: list[tuple[str, str, datetime]]) -> dict[str, dict[str, object]]:
    pl.DataFrame(rows, schema=["tool", "drive_id", "found_at"], orient="row").with_columns(fleet=pl.lit("fleet-11")).write_csv(file)
    return {row["tool"]: row for row in score(out, file)}


def test_an_oracle_finds_all_and_false_alarms_cost_swaps(out: Path, tmp_path: Path) -> None:
    labels = pl.read_csv(out / "fleet-11" / "labels.csv", try_parse_dates=True)
    slow, healthy = labels.filter(pl.col("verdict") == "slow"), labels.filter(pl.col("verdict") == "healthy")
    assert set(labels["story"].drop_nulls()) == set(STORIES) and slow.height == sum(
        story.count * story.drives for story in STORIES.values() if not story.is_healthy
    )
    rows = [("oracle", drive, onset + timedelta(hours=5)) for drive, onset in slow.select("drive_id", "onset_utc").rows()]
    rows += [("too early", drive, onset - timedelta(hours=1)) for drive, onset in slow.select("drive_id", "onset_utc").rows()]
    rows += [("wolf", drive, FIRST + timedelta(weeks=week, hours=9)) for drive in healthy["drive_id"] for week in range(WEEKS)]
    found = scored(out, tmp_path / "found.csv", rows)
    assert (found["oracle"]["found_count"], found["oracle"]["false_per_1000"], found["oracle"]["median_hours"]) == (slow.height, 0, 5)
    assert (found["too early"]["found_count"], found["too early"]["median_hours"]) == (0, None)
    assert (found["wolf"]["found_count"], found["wolf"]["false_per_1000"]) == (0, 1000)
    assert found["wolf"]["net_tail_hours"] == -SWAP_TAIL_HOURS * healthy.height


def test_half_of_a_pair_saves_nothing_and_a_steady_drive_each_hour(out: Path, tmp_path: Path) -> None:
    labels = pl.read_csv(out / "fleet-11" / "labels.csv", try_parse_dates=True)
    pair = labels.filter(pl.col("story") == "pair")["drive_id"]
    hours = pl.read_parquet(out / "fleet-11" / "truth" / "truth_slow_hours.parquet")
    group = hours.filter(pl.col("drive_id") == pair[0])["raid_group_id"][0]
    both = sorted(set(hours.filter(pl.col("raid_group_id") == group)["drive_id"]))
    steady, onset = labels.filter(pl.col("story") == "steady").select("drive_id", "onset_utc").row(0)
    rows = [("half", both[0], FIRST), *(("both", drive, FIRST) for drive in both), ("steady", steady, onset + timedelta(hours=7))]
    found = scored(out, tmp_path / "found.csv", rows)
    slow_hours = {drive: hours.filter(pl.col("drive_id") == drive).height for drive in (both[0], steady)}
    assert len(both) == 2 and found["half"]["net_tail_hours"] == -SWAP_TAIL_HOURS
    assert found["both"]["net_tail_hours"] == slow_hours[both[0]] - 2 * SWAP_TAIL_HOURS
    assert found["steady"]["net_tail_hours"] == slow_hours[steady] - 7 - SWAP_TAIL_HOURS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fleet,drive_id\nfleet-11,D1\n", "has no column found_at"),
        ("fleet,drive_id,found_at\nfleet-12,D1,2026-02-01\n", "row 2: fleet is fleet-12; give one of fleet-11"),
        ("fleet,drive_id,found_at\nfleet-11,D1,soon\n", "row 2: found_at is soon"),
    ],
)
def test_a_file_that_cannot_be_scored_is_named_with_row_and_value(out: Path, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "found.csv").write_text(text)
    with pytest.raises(SimulationError, match=said):
        score(out, tmp_path / "found.csv")
    with pytest.raises(SimulationError, match="drivetail simulate --benchmark --out"):
        score(tmp_path, tmp_path / "found.csv")


def test_the_command_scores_the_alerts_of_the_product(out: Path, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    drivetail("ingest", "bundle", out / "fleet-11", "--warehouse", warehouse)
    drivetail("build", "--warehouse", warehouse)
    sql = (
        "select 'fleet-11' as fleet, subject_id as drive_id, raised_at as found_at from marts.fct_slow_alerts where subject_type = 'drive'"
    )
    (tmp_path / "alerts.csv").write_text(drivetail("sql", "--format", "csv", sql, "--warehouse", warehouse).stdout)
    (row,) = score(out, tmp_path / "alerts.csv")
    assert row["found_count"] > row["slow_count"] / 2 and row["net_tail_hours"] > 0
    said = drivetail("simulate", "--out", out, "--score", tmp_path / "alerts.csv").stdout
    assert "alerts" in said and f"{row['false_per_1000']:.1f}" in said

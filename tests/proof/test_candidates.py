"""Nobody looks ahead: whatever comes later, what was expected before stays."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.build import build
from engine.read import fetch
from engine.warehouse import Warehouse
from ingest import ingest

pytestmark = pytest.mark.xdist_group("candidates")

FIRST = datetime(2026, 1, 5)
WEEKS, CUT = 14, 12
SWAPPED, SWAPPED_WEEK = "g10d5", 11
"""Weeks of data; weeks after which everything is altered."""


def fleet() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Twelve RAID groups of six drives, three hours a day; some drives ail for weeks, some fall slow by chance, some are unplugged,
    some move to another host, one is in inventory from the fourth week on, and one was replaced. Every host calls its enclosures e0 and e1;
    two RAID groups have no host."""
    rng = random.Random(4)
    deployed = (FIRST - timedelta(days=400)).date()
    hours: list[dict[str, Any]] = []
    drives: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = [
        {"occurred_at": FIRST + timedelta(weeks=SWAPPED_WEEK, hours=9), "drive_id": SWAPPED, "event_type": "replacement"}
    ]
    for group in range(12):
        kind = "disk" if group < 8 else "ssd"
        names = [f"g{group:02}d{place}" for place in range(6)]
        ailing = {name: (rng.randint(0, 8), rng.choice((0.1, 0.4))) for name in names if rng.random() < 0.25}
        for name in names:
            since = FIRST + timedelta(weeks=3, minutes=90) if name == "g01d5" else None
            period = {"drive_id": name, "raid_group_id": name[:3], "role": "data", "kind": kind, "model": rng.choice(("A", "B", None)),
                      "host": f"h{group // 3}" if group < 10 else None, "enclosure": f"e{name[-1] > '3':d}", "site": ("a", None)[group % 2],
                      "deployed_on": rng.choice((deployed, None)), "capacity_bytes": 10**12, "valid_from": since}  # fmt: skip
            drives.append(period)
            if name[-1] == str(group % 3):
                drives.append(
                    {**period, "host": f"h{group % 4}", "model": "C", "valid_from": FIRST + timedelta(weeks=6, days=group, hours=23)}
                )
            if rng.random() < 0.2:
                at = FIRST + timedelta(days=rng.randint(0, 90), minutes=rng.randint(0, 1439))
                events += [{"occurred_at": at, "drive_id": name, "event_type": "unplug"},
                           {"occurred_at": at + timedelta(hours=5), "drive_id": name, "event_type": "replug"}]  # fmt: skip
        # a RAID group that stops, and one that is a little slow for good
        for day in range(7 * (WEEKS - 4 if group == 3 else WEEKS)):
            for hour in (0, 1, 23):
                is_crowd = rng.random() < 0.01
                for place, name in enumerate(names):
                    if name == SWAPPED and day >= 7 * SWAPPED_WEEK:
                        continue
                    since, share = ailing.get(name, (0, 0.004))
                    is_slow = (day >= 7 * since and rng.random() < share) or (is_crowd and place < 2)
                    latency = rng.choice((230.0, 420.0)) if is_slow else 130.0 if (group, place) == (5, 0) else 100.0 + place
                    hours.append({"hour_utc": FIRST + timedelta(days=day, hours=hour), "drive_id": name, "raid_group_id": f"g{group:02}",
                                  "read_ios": 100, "write_ios": 0, "read_latency_us": latency, "write_latency_us": None})  # fmt: skip
    return (
        pl.DataFrame(hours, schema_overrides={"write_latency_us": pl.Float64()}),
        pl.DataFrame(drives, infer_schema_length=None, schema_overrides={"valid_from": pl.Datetime("us")}),
        pl.DataFrame(events),
    )


def built(frames: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame], folder: Path) -> Warehouse:
    (folder / "bundle").mkdir(parents=True)
    for frame, name in zip(frames, ("drive_hours", "drives", "drive_events"), strict=True):
        frame.write_parquet(folder / f"bundle/{name}.parquet")
    warehouse = Warehouse(folder / "warehouse")
    ingest("bundle", [folder / "bundle"], warehouse.root)
    build(warehouse)
    return warehouse


def steps(warehouse: Warehouse, query: str) -> list[dict[str, Any]]:
    """The rows of a query of what is on the way to the marts: the build database has all of it."""
    with duckdb.connect(str(warehouse.build_database), read_only=True) as connection:
        return fetch(connection, query)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return built(fleet(), tmp_path_factory.mktemp("whole"))


@pytest.mark.proof
def test_later_data_move_nothing_that_was_expected_before(whole: Warehouse, tmp_path: Path) -> None:
    """From the cut on every drive does what another did, twice as slow in other hours, and all are unplugged; the RAID group
    that had stopped reports again; drives are of another kind and model, serve another host and were deployed on another day."""
    hours, drives, events = fleet()
    cut = FIRST + timedelta(weeks=CUT)
    later = pl.col("hour_utc") >= cut
    altered = hours.with_columns(
        read_latency_us=pl.when(later)
        .then(pl.col("read_latency_us").reverse() * (1 + 2 * (pl.col("drive_id").hash(7) % 3)))
        .otherwise(pl.col("read_latency_us"))
    )
    resumed = hours.filter(pl.col("raid_group_id") == "g03", pl.col("hour_utc") < FIRST + timedelta(weeks=WEEKS - CUT))
    altered = pl.concat([altered, resumed.with_columns(pl.col("hour_utc") + timedelta(weeks=CUT))])
    replaced = drives.unique("drive_id", keep="last").with_columns(
        kind=pl.lit("ssd"),
        model=pl.lit("Z"),
        host=pl.lit("h9"),
        deployed_on=pl.lit(cut.date()),
        valid_from=pl.lit(cut).cast(pl.Datetime("us")),
    )
    unplugged = drives.unique("drive_id").select(
        occurred_at=pl.lit(cut).cast(events.schema["occurred_at"]), drive_id="drive_id", event_type=pl.lit("unplug")
    )
    kept = pl.concat([events.filter(pl.col("occurred_at") < cut), unplugged])
    other = built((altered, pl.concat([drives, replaced]), kept), tmp_path)
    query = (
        "select * exclude (tail_hours_caused_after, tail_hours_paired_after, own_tail_hours_after)"
        f" from intermediate.int_drive_weeks__judged where boundary_utc <= '{cut}' order by all"
    )
    before, after = (steps(warehouse, query) for warehouse in (whole, other))
    assert len(before) > 300
    assert before == after
    moved = query.replace(" <= ", " > ")
    assert steps(whole, moved) != steps(other, moved)


def test_the_command_lists_explains_and_judges(whole: Warehouse) -> None:
    def ask(*arguments: str, fails: bool = False) -> str:
        answer = CliRunner().invoke(main, ["candidates", *arguments, "-w", str(whole.root)])
        assert (answer.exit_code != 0) is fails, answer.output
        return answer.output

    listed = json.loads(ask("--format", "json"))
    assert listed
    assert [row["candidate_rank"] for row in listed] == sorted(row["candidate_rank"] for row in listed)
    assert {row["verdict"] for row in listed} <= {"replace", "watch", "check path"}
    assert len(json.loads(ask("--all", "--format", "json"))) > len(listed)
    assert listed[0]["drive_id"] in ask()
    drive = listed[0]["drive_id"]
    history = json.loads(ask("--explain", drive, "--format", "json"))
    assert history == sorted(history, key=lambda row: row["boundary_utc"], reverse=True) and len(history) > 4
    assert history[0]["verdict"] in ask("--explain", drive)
    assert ask("--backtest", "--format", "csv").startswith("kind,verdict,replace_rule")
    assert "What drives cost in the 28 days after each verdict" in ask("--backtest")
    assert "did you mean" in ask("--explain", listed[0]["drive_id"] + "x", fails=True)
    assert "cannot be used together" in ask("--all", "--backtest", fails=True)

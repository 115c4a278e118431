"""What-if without a drive equals a warehouse whose raw lacks its records.

Answers of `drivetail what-if`, against a random fleet built without some of its drives.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail.ask.what_if import ask
from drivetail.cli import main
from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest
from tests.proof.support import rows, seeds
from tests.reference.fleets import Fleet, join, random_fleet, write_bundle

pytestmark = [pytest.mark.proof, pytest.mark.xdist_group("without")]

SEED = seeds(1)[0]


def built(fleet: Fleet, without: set[str], folder: Path) -> Warehouse:
    """The fleet's warehouse, no drive-hour of some drives delivered. Their inventory stays: it names the kinds of RAID groups."""
    hours, drives, events = join(fleet.base, fleet.late, fleet.repeats)
    kept = [row for row in hours if row["drive_id"] not in without]
    warehouse = Warehouse(folder / "warehouse")
    ingest("bundle", [write_bundle((kept, drives, events), folder / "bundle", "parquet")], warehouse.root)
    build(warehouse)
    return warehouse


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    print(f"repeat with DRIVETAIL_SEEDS={SEED}")
    return random_fleet(SEED)


@pytest.fixture(scope="module")
def whole(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return built(fleet, set(), tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def worst(whole: Warehouse) -> set[str]:
    """The two drives of each RAID group that were the slowest of most tail hours, of equals those of the smaller ids."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows(whole, "select raid_group_id, slowest_drive_id from marts.fct_raid_hours where is_tail_hour"):
        counts[row["raid_group_id"]][row["slowest_drive_id"]] += 1
    return {drive for of in counts.values() for drive in sorted(of, key=lambda drive: (-of[drive], drive.encode()))[:2]}


@pytest.fixture(scope="module")
def rest(fleet: Fleet, worst: set[str], tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Built without them."""
    return built(fleet, worst, tmp_path_factory.mktemp("rest"))


@pytest.mark.parametrize("routed", [0, 1, 2])
def test_replaced_drives_leave_the_tail_hours_of_a_fleet_without_them(
    whole: Warehouse, rest: Warehouse, worst: set[str], routed: int
) -> None:
    left = rows(
        rest,
        f"select kind, count(*) as raid_hours_left, count(case when tail_{1 + routed} >= 2 then 1 end) as tail_hours_left"
        " from marts.fct_raid_hours group by kind",
    )
    answer = ask(whole, tuple(worst), skipped=routed)
    assert answer == ask(whole, worst=2, skipped=routed)
    assert {row["kind"]: (row["raid_hours_left"], row["tail_hours_left"]) for row in answer if row["raid_hours_left"]} == {
        row["kind"]: (row["raid_hours_left"], row["tail_hours_left"]) for row in left
    }
    for row in answer:
        assert row["tail_hours"] - row["tail_hours_ended"] - row["tail_hours_unknown"] + row["tail_hours_begun"] == row["tail_hours_left"]
    assert sum(row["tail_hours_ended"] for row in answer) > 0


@pytest.mark.parametrize("routed", [1, 2])
def test_reads_that_go_round_a_tail_meet_the_next_in_the_hours_asked_for(whole: Warehouse, routed: int) -> None:
    counts = f"select count(*), count(case when tail_{1 + routed} >= 2 then 1 end) from marts.fct_raid_hours"
    ((first,),) = (row.values() for row in rows(whole, "select max(hour_utc) - interval 20 hour as first from marts.fct_raid_hours"))
    until = first + timedelta(hours=9)
    for hours, where in (
        ({}, ""),
        ({"since": first, "until": until}, f" where hour_utc >= '{first}' and hour_utc < '{until}'"),
    ):
        (expected,) = (tuple(row.values()) for row in rows(whole, counts + where))
        answer = ask(whole, skipped=routed, **hours)
        assert (sum(row["raid_hours"] for row in answer), sum(row["tail_hours_left"] for row in answer)) == expected
        assert all(row["replaced_drive_count"] == 0 for row in answer)


def test_the_command_answers_and_says_what_is_wrong(whole: Warehouse, worst: set[str]) -> None:
    def said(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, ["what-if", *arguments, "--warehouse", str(whole.root)])
        assert done.exit_code == code, done.output
        return done.output

    drive = sorted(worst)[0]
    told = json.loads(said("--replace", drive, "--format", "json"))
    assert told == ask(whole, (drive,))
    assert said("--replace", drive, "--format", "csv").splitlines()[0] == ",".join(told[0])
    assert f"{told[0]['tail_hours']:,}" in said("--worst", "1")
    assert "no drive nobody" in said("--replace", "nobody", code=1)
    assert "no valid RAID-hour" in said("--worst", "1", "--since", "2030-01-01", code=1)
    assert "nothing is changed" in said(code=2)
    assert "cannot be used together" in said("--worst", "1", "--replace", drive, code=2)
    assert "is not after" in said("--worst", "1", "--since", "2026-01-05", "--until", "2026-01-05", code=2)

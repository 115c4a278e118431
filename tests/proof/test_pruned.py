"""A prune takes the rows of old days and no number that was made of them; what comes later counts as if nothing had gone.

A random fleet whose first hours are moved back by weeks, so that a horizon falls among them. DRIVETAIL_SEEDS="5,17" repeats a run;
DRIVETAIL_FLEETS says how many fleets, and has more looked at; 1 unless given. DRIVETAIL_KILLS is the number of prunes that are killed in a
soak, DRIVETAIL_KILL_SEED repeats the draw.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from drivetail.ask.status import collect_status
from drivetail.service.maintenance import check_sums, expire, reconcile
from engine.build import build
from engine.errors import ModelError
from engine.prune import LEAST_DAYS, prune
from engine.warehouse import Warehouse
from ingest import drive_hour_files, ingest, list_deliveries
from ingest.run import PRUNED
from tests.proof.forks import Forks
from tests.proof.support import asked, marts_differences, seeds
from tests.reference.compare import compare
from tests.reference.fleets import Fleet, Record, Records, random_fleet, write_bundle
from tests.reference.reference import HOUR, compute

KEPT = tuple(
    f"marts.{name}"
    for name in (
        "fct_raid_hours", "fct_slowdown_intervals", "fct_slowdown_arrivals", "fct_drive_slowness", "fct_drive_transitions",
        "fct_drive_events", "fct_unplug_episodes", "dim_drives", "dim_raid_groups",
    )
)  # fmt: skip
"""Relations that a prune leaves exactly as they are, beside what is counted when asked."""
IS_LONG = "DRIVETAIL_FLEETS" in os.environ
"""In a soak: also a second horizon and a rebuild that keeps the past."""
MOVED = timedelta(days=LEAST_DAYS + 6)


def stretched(fleet: Fleet) -> tuple[Records, datetime]:
    """The records of a fleet, the first two thirds of its hours moved back by weeks, and a midnight in the middle of those.

    The order of deliveries stays: no conflict is decided otherwise.
    """
    cut = fleet.start + 2 * fleet.hours // 3 * HOUR
    middle = fleet.start + fleet.hours // 3 * HOUR
    back = MOVED + timedelta(hours=middle.hour)

    def moved(value: Any) -> Any:
        return value - back if isinstance(value, datetime) and value < cut else value

    kinds = [[{name: moved(value) for name, value in row.items()} for row in rows] for rows in fleet.records()]
    return (kinds[0], kinds[1], kinds[2]), middle - back


def is_before(row: Record, hour: datetime) -> bool:
    return isinstance(row["hour_utc"], datetime) and row["hour_utc"] < hour


def cut_up(records: Records, horizon: datetime, rng: random.Random) -> tuple[Records, Records]:
    """Deliveries before the prune and after it: new hours, late ones from the horizon on, and events of any time."""
    hours, drives, events = records
    last = max(row["hour_utc"] for row in hours if isinstance(row["hour_utc"], datetime))
    early: Records = ([], drives, [])
    late: Records = ([], [], [])
    for row in hours:
        is_late = not is_before(row, horizon) and (not is_before(row, last - 6 * HOUR) or rng.random() < 0.2)
        (late if is_late else early)[0].append(row)
    for row in events:
        (late if rng.random() < 0.5 else early)[2].append(row)
    return early, late


def days_to(horizon: datetime, warehouse: Warehouse) -> int:
    """How many days before the last hour the horizon lies."""
    ((last,),) = asked(warehouse.published, "select last_hour_utc from marts.publication")
    return int((last.date() - horizon.date()).days)


def expected(folders: list[Path], horizon: datetime) -> dict[str, list[Record]]:
    """The marts by the reference, which knows nothing of a prune: its drive-hours before the horizon are left out."""
    return without_hours_before(horizon, compute(folders))


def without_hours_before(horizon: datetime, marts: dict[str, list[Record]]) -> dict[str, list[Record]]:
    """The marts without what a prune deletes: rows of drive-hours."""
    return marts | {"fct_drive_hours": [row for row in marts["fct_drive_hours"] if not is_before(row, horizon)]}


def forget_readers(warehouse: Warehouse) -> None:
    """Let every publication but the current one look an hour old, and have what only they needed removed."""
    for path in warehouse.publications.glob("*.duckdb"):
        os.utime(path, (0, 0))
    expire(warehouse)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(1))
def test_no_number_moves(seed: int, tmp_path: Path) -> None:
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    rng = random.Random(seed)
    records, horizon = stretched(random_fleet(seed))
    early, late = cut_up(records, horizon, rng)
    warehouse = Warehouse(tmp_path / "warehouse")
    folders = [write_bundle(early, tmp_path / "early", "parquet")]
    ingest("bundle", folders, warehouse.root)
    before = build(warehouse).publication
    days = days_to(horizon, warehouse)
    is_old = f"hour_utc < timestamp '{horizon}'"
    ((old, young),) = asked(before.path, f"select count(*) filter ({is_old}), count(*) filter (not {is_old}) from marts.fct_drive_hours")
    assert old and young

    would = prune(warehouse, days, is_dry_run=True)
    assert would.before_utc == horizon and would.row_count >= old
    assert asked(warehouse.published, "select pruned_before_utc from marts.publication") == [(None,)]
    done = prune(warehouse, days)
    assert (done.before_utc, done.row_count, done.raw_row_count) == (horizon, would.row_count, would.raw_row_count)
    assert marts_differences(before.path, warehouse.published, only=KEPT) == []
    assert asked(warehouse.published, "select pruned_before_utc from marts.publication") == [(horizon,)]
    ((left, first),) = asked(warehouse.published, "select count(*), min(hour_utc) from marts.fct_drive_hours")
    assert (left, first >= horizon) == (young, True)
    if IS_LONG:
        check_sums(warehouse)
    assert reconcile(warehouse) == []
    again = prune(warehouse, days)
    assert again.is_there and asked(warehouse.published, "select publication_id from marts.publication") == [
        (done.publication.publication_id,)
    ]

    folders.append(write_bundle(late, tmp_path / "late", "csv"))
    ingest("bundle", folders[-1:], warehouse.root)
    old_rows = [row for row in early[0] if is_before(row, horizon) and row["drive_id"] and row["raid_group_id"]][:40]
    # corrections that would win
    wrong = [{**row, "read_ios": 7, "write_ios": 0, "read_latency_us": 1e6, "coverage": None, "collected_at": horizon} for row in old_rows]
    told = ingest("bundle", [write_bundle((wrong, [], []), tmp_path / "wrong", "parquet")], warehouse.root)
    assert told.rows_rejected == len(wrong) and {row["reason"] for row in told.rejected} == {PRUNED}
    build(warehouse, daily=True)
    marts = expected(folders, horizon)
    known = {name: rows for name, rows in marts.items() if name not in ("rejected_records", "ingested_files")}
    assert compare(known, warehouse.published) == []
    assert [problem for problem in collect_status(warehouse).problems if "do not add up" in problem] == []
    ((rejected,),) = asked(warehouse.published, f"select count(*) from marts.rejected_records where reason = '{PRUNED}'")
    assert rejected == len(wrong)
    if not IS_LONG:
        return
    check_sums(warehouse)
    # again, nearer: the rest of what was moved back goes
    assert prune(warehouse, LEAST_DAYS).row_count
    nearer = asked(warehouse.published, "select pruned_before_utc from marts.publication")[0][0]
    assert nearer > horizon
    known = without_hours_before(nearer, known)
    assert compare(known, warehouse.published) == []
    with pytest.raises(ModelError, match=f"raw before {nearer:%Y-%m-%d} was pruned, so it cannot be computed again"):
        build(warehouse, full_refresh=True)
    forget_readers(warehouse)
    files = [path for delivery in list_deliveries(warehouse.root) for path in drive_hour_files(delivery)]
    assert min(path.name for path in files) >= f"{nearer - timedelta(days=1):%Y-%m-%d}"
    build(warehouse, full_refresh=True, keep_pruned=True)
    assert compare(known, warehouse.published) == []
    check_sums(warehouse)
    assert reconcile(warehouse) == []
    assert [problem for problem in collect_status(warehouse).problems if "do not add up" in problem] == []


@pytest.mark.soak
def test_a_killed_prune_is_simply_done_again(tmp_path: Path) -> None:
    """Killed before steps of each of its phases; then whatever comes next, and the prune to its end."""
    seed = int(os.environ.get("DRIVETAIL_KILL_SEED", "0")) or random.randrange(1, 1_000_000)
    print(f"repeat the draw with DRIVETAIL_KILL_SEED={seed}")
    rng = random.Random(seed)
    records, horizon = stretched(random_fleet(seed))
    early, late = cut_up(records, horizon, rng)
    folders = [write_bundle(early, tmp_path / "early", "parquet"), write_bundle(late, tmp_path / "late", "csv")]
    whole = Warehouse(tmp_path / "whole")
    ingest("bundle", folders[:1], whole.root)
    build(whole)
    days = days_to(horizon, whole)
    ends = [expected(folders[:count], horizon) for count in (1, 2)]
    for end in ends:
        end.pop("rejected_records")
        end.pop("ingested_files")
    forks = Forks(tmp_path / "forks")
    steps: list[tuple[str, int]] = []
    for number in range(1 + int(os.environ.get("DRIVETAIL_KILLS", "8"))):
        warehouse = Warehouse(tmp_path / f"warehouse-{number}")
        option = ("--warehouse", warehouse.root)
        shutil.copytree(whole.root, warehouse.root)
        forks.run("build", *option)  # publishes for the new place
        command: tuple[object, ...] = ("prune", "--older-than", f"{days}d", "--yes", *option)
        if not number:
            taken = forks.run(*command)
            renamed = len(taken["prune"]) - 1 - taken["prune"][::-1].index("os.rename")
            steps = [("prune", renamed), ("pruned", 0), ("swap", 0), ("clean-up", 0)]
            steps += rng.sample([(phase, step) for phase in ("prune", "publish", "swap") for step in range(len(taken[phase]))], 40)
            continue
        phase, step = steps[number - 1]
        forks.start(*command, phase=phase, step=step)
        code, _ = forks.finish()
        assert code == -signal.SIGKILL, f"{phase} has no step {step}"
        for following in rng.sample((("build", *option), ("ingest", "bundle", folders[1], *option)), 2):
            forks.run(*following)
        forks.run("build", "--daily", *option)
        forks.run("prune", "--older-than", f"{days_to(horizon, warehouse)}d", "--yes", *option)
        assert compare(ends[1], warehouse.published) == [], f"killed in {phase}, step {step}"
        assert asked(warehouse.published, "select pruned_before_utc from marts.publication") == [(horizon,)]
        shutil.rmtree(warehouse.root)

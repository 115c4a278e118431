"""Changes that must not move the study: the unit of latency, the names of drives, a RAID group that is always stable.

One random fleet, its records changed in three ways, each delivered at once and built by itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.build import build, make_study
from engine.warehouse import Warehouse
from ingest import ingest
from tests.proof.support import seeds
from tests.reference.fleets import Fleet, Records, join, random_fleet, write_bundle

LATENCIES = ("read_latency_us", "write_latency_us", "latency_us", "read_latency_per_block_us", "write_latency_per_block_us")
IN_MICROSECONDS = frozenset({"VST-03"})  # whole multiples of 250 us: the one question that asks for a unit
STABLE_DRIVES = 5
pytestmark = pytest.mark.xdist_group("metamorphic")


class Study:
    """The published study and facts of one way to tell of the fleet."""

    def __init__(self, records: Records, folder: Path, warehouse: Warehouse) -> None:
        ingest("bundle", [write_bundle(records, folder / "bundle", "parquet")], warehouse.root)
        build(warehouse)
        make_study(warehouse)
        with duckdb.connect() as connection:
            connection.execute(f"attach '{warehouse.published}' as published (read_only)")
            connection.execute("use published.marts")

            def rows(query: str) -> list[tuple[Any, ...]]:
                return connection.execute(query).fetchall()

            self.results = {
                (row[0], row[1]): row[2:]
                for row in rows("select id, kind, numerator, denominator, value, ci_low, ci_high, verdict from study_results")
            }
            self.curves = set(rows("select figure, curve, x, y, y_left, population from study_curves"))
            self.hours = {
                row[:2]: row[2:]
                for row in rows(
                    """
                    select
                        drive_id, hour_utc,
                        raid_group_id, latency_us, slowdown, exclusion_reason, rate_imbalance, size_imbalance, read_slowdown
                    from fct_drive_hours
                    """
                )
            }
            self.intervals = set(rows("select drive_id, threshold, started_at, ended_at, severity, wait_hours from fct_slowdown_intervals"))


SEED = seeds(1)[0]


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return random_fleet(SEED)


def accepted(fleet: Fleet) -> Records:
    return join(fleet.base, fleet.late, fleet.repeats)


@pytest.fixture(scope="module")
def study_of(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Study]:
    """The study of the fleet's records after `change`; without a change, the study to compare with, made once."""
    made: dict[str, Study] = {}

    def tell(name: str, change: Callable[[Records], Records] = lambda records: records) -> Study:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = Study(change(accepted(fleet)), folder, Warehouse(folder / "warehouse"))
        return made[name]

    print(f"repeat with DRIVETAIL_SEEDS={fleet.seed}")
    return tell


def differences(one: Study, other: Study, left_out: frozenset[str] = frozenset()) -> list[str]:
    """Ids whose numbers differ, to the last bit."""
    assert set(one.results) == set(other.results)
    found = []
    for key, numbers in one.results.items():
        if key[0] not in left_out and numbers != other.results[key]:
            found.append(f"{key}: {numbers} and {other.results[key]}")
    return found


def doubled(records: Records) -> Records:
    hours, drives, events = records
    return (
        [{**row, **{name: 2 * row[name] for name in LATENCIES if isinstance(row.get(name), float)}} for row in hours],
        drives,
        events,
    )


def new_names(records: Records) -> dict[str, str]:
    """A name for every drive, in an order that is not theirs."""
    names = sorted({row["drive_id"] for part in records for row in part if row["drive_id"] is not None})
    numbers = list(range(len(names)))
    random.Random(1).shuffle(numbers)
    return {name: f"drive {number:04}" for name, number in zip(names, numbers, strict=True)}


def renamed(records: Records) -> Records:
    called = new_names(records)
    hours, drives, events = ([{**row, "drive_id": called.get(row["drive_id"])} for row in part] for part in records)
    return hours, drives, events


@pytest.mark.soak
def test_doubling_every_latency_moves_no_slowdown(study_of: Callable[..., Study]) -> None:
    plain, double = study_of("plain"), study_of("doubled", doubled)
    assert any(row[2] is not None and row[2] >= 2 for row in plain.hours.values()), "nothing is slow: the fleet shows nothing"
    assert double.hours == {
        key: (group, None if latency is None else 2 * latency, *rest) for key, (group, latency, *rest) in plain.hours.items()
    }
    assert double.intervals == plain.intervals
    assert differences(plain, double, IN_MICROSECONDS) == []
    assert double.curves == plain.curves


@pytest.mark.soak
def test_renaming_drives_moves_nothing(study_of: Callable[..., Study], fleet: Fleet) -> None:
    plain, other = study_of("plain"), study_of("renamed", renamed)
    called = new_names(accepted(fleet))
    assert other.hours == {(called[drive], hour): rest for (drive, hour), rest in plain.hours.items()}
    assert other.intervals == {(called[drive], *rest) for drive, *rest in plain.intervals}
    assert differences(plain, other) == []
    assert other.curves == plain.curves


@pytest.mark.soak
def test_a_stable_raid_group_moves_denominators_only(study_of: Callable[..., Study], fleet: Fleet) -> None:
    def joined(records: Records) -> Records:
        hours = [
            {
                "hour_utc": fleet.start + timedelta(hours=number),
                "drive_id": f"stable {drive}",
                "raid_group_id": "stable",
                "latency_us": 250.0,
                "io_count": 1000,
            }
            for number in range(fleet.hours)
            for drive in range(STABLE_DRIVES)
        ]
        drives = [
            {"drive_id": f"stable {drive}", "raid_group_id": "stable", "role": "data", "kind": "disk", "valid_from": None}
            for drive in range(STABLE_DRIVES)
        ]
        return join(records, (hours, drives, []))

    plain, more = study_of("plain"), study_of("stable", joined)
    assert {key: row for key, row in more.hours.items() if row[0] != "stable"} == plain.hours
    assert more.intervals == plain.intervals
    added = {
        "F01-01": STABLE_DRIVES * fleet.hours,  # slow drive-hours of drive-hours
        "F02-01": fleet.hours,  # tail hours of RAID-hours
        "F03-02": fleet.hours,  # after cutting one tail
        "F03-03": fleet.hours,
        "F06-01": STABLE_DRIVES,  # drives that were ever slow, of drives
    }
    for identifier, count in added.items():
        before, after = plain.results[(identifier, "disk")], more.results[(identifier, "disk")]
        assert after[:2] == (before[0], before[1] + count), identifier
    about_slowness = ("F04-", "F05-", "F07-", "F14-", "F15-", "F5A-", "F5B-", "F6B-", "F7A-", "F7C-", "F11A-", "F11B-", "F11C-", "F11D-")
    moved = [
        text
        for text in differences(plain, more)
        if text.startswith(tuple(f"('{prefix}" for prefix in about_slowness)) or "'ssd')" in text.split(":")[0]
    ]
    assert moved == []

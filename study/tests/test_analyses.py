"""The queries in analyses/: each runs on a built warehouse, and those of the findings count what the study counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from drivetail.ask.sql import run_query
from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from study.words import FINDINGS
from tests.golden import awkward_fleet

pytestmark = pytest.mark.xdist_group("report")

FOLDER = Path(__file__).parents[1] / "analyses"
ANALYSES = sorted(FOLDER.glob("*.sql"))

Rows = list[dict[str, Any]]


def counts(numerator: str, denominator: str, **where: Any) -> Callable[[Rows], tuple[int, int]]:
    """For the one row of a kind and of the query's other key: its numerator and denominator. Without that row nothing ever came."""

    def pick(rows: Rows) -> tuple[int, int]:
        found = [row for row in rows if where.items() <= row.items()]
        return (found[0][numerator], found[0][denominator]) if found else (0, 0)

    return pick


def ages(choose: Callable[[list[int]], int], years: Iterable[int]) -> Callable[[Rows], tuple[int, int]]:
    """Drives of the years chosen from, of all whose age is known."""

    def pick(rows: Rows) -> tuple[int, int]:
        drives = {row["age_year"]: row["drive_count"] for row in rows}
        return choose([drives.get(year, 0) for year in years]), rows[0]["all_drive_count"] if rows else 0

    return pick


def vendor(rank: int, numerator: str, denominator: str) -> Callable[[Rows], tuple[int, int]]:
    """The vendor with the most (1) or second most (2) MLC drives."""

    def pick(rows: Rows) -> tuple[int, int]:
        mlc = [row for row in rows if row["flash_cell"] == "MLC"]
        return (mlc[rank - 1][numerator], mlc[rank - 1][denominator]) if len(mlc) >= rank else (0, 0)

    return pick


def unexplained(rows: Rows) -> tuple[int, int]:
    """F08-01: slow hours without the commoner imbalance."""
    if not rows:
        return 0, 0
    (row,) = rows
    kinds = (("slow_and_more_io", "slow_drive_hours_with_rate"), ("slow_and_larger_io", "slow_drive_hours_with_size"))
    known = [(row[hits], row[of]) for hits, of in kinds if row[of]]
    hits, of = max(known, key=lambda one: one[0] / one[1], default=(0, 0))
    return of - hits, of


def both(of_disks: str | None, of_ssds: str | None, finding: int, pick: Callable[[Rows], tuple[int, int]]) -> dict[tuple[str, str], Any]:
    """The ids of disks and of SSDs that the same columns of a finding's query answer."""
    return {(name, kind): (finding, pick) for name, kind in ((of_disks, "disk"), (of_ssds, "ssd")) if name is not None}


COUNTS: dict[tuple[str, str], tuple[int, Callable[[Rows], tuple[int, int]]]] = {
    **both("F01-01", "F01-02", 1, counts("slow_drive_hours", "drive_hours")),
    **both("F01-07", "F01-08", 1, counts("drive_hours_from_1_5x", "drive_hours")),
    **both("F02-01", "F02-02", 2, counts("tail_hours", "raid_hours")),
    **both("F02-05", "F02-06", 2, counts("raid_hours_from_1_5x", "raid_hours")),
    **both("F03-01", "F03-04", 3, counts("tail_hours", "raid_hours")),
    **both("F03-02", "F03-05", 3, counts("tail_hours_without_slowest", "raid_hours")),
    **both("F03-03", "F03-06", 3, counts("tail_hours_without_two_slowest", "raid_hours")),
    **both("F04-01", "F04-02", 4, counts("longer_than_1_hour", "interval_count")),
    **both("F04-03", "F04-04", 4, counts("from_8_hours", "interval_count")),
    **both("F05-01", "F05-02", 5, counts("within_a_day", "slow_again_count")),
    **both("F06-01", "F06-02", 6, counts("drives_from_2x", "drive_count")),
    **both("F06-03", "F06-04", 6, counts("drives_from_16x", "drive_count")),
    **both("F07-01", "F07-02", 7, counts("drives_from_100_slow_hours", "slow_drive_count")),
    **both("F07-03", "F07-04", 7, counts("drives_below_5_slow_hours", "slow_drive_count")),
    **both("F08-01", "F08-01", 8, unexplained),
    **both("F08-02", "F08-02", 8, counts("slow_and_more_io", "slow_drive_hours_with_rate")),
    **both("F08-04", "F08-05", 8, counts("slow_and_more_io", "more_io")),
    **both("F08-06", "F08-07", 8, counts("slow_and_larger_io", "slow_drive_hours_with_size")),
    **both("F08-08", "F08-09", 8, counts("slow_and_larger_io", "larger_io")),
    **both("F09-01", "F09-01", 9, counts("slow_drive_hours_near_an_error", "slow_drive_hours")),
    **both("F09-02", "F09-02", 9, counts("gone_and_slow_count", "gone_count")),
    **both("F10-01", None, 10, ages(min, range(6, 11))),
    **both("F10-02", None, 10, ages(max, range(6, 11))),
    **both("F10-03", None, 10, ages(min, range(1, 6))),
    **both("F10-04", None, 10, ages(max, range(1, 6))),
    **both("F10-06", None, 10, ages(sum, [9])),
    **both(None, "F10-07", 10, ages(sum, [3, 4])),
    **both(None, "F10-08", 10, ages(sum, [1, 2])),
    **both(None, "F11-01", 11, counts("below_1_5x", "drive_hours", flash_cell="MLC")),
    **both(None, "F11-02", 11, counts("below_1_5x", "drive_hours", flash_cell="SLC")),
    **both(None, "F11-03", 11, counts("below_2x", "drive_hours", flash_cell="SLC")),
    **both(None, "F12-01", 12, vendor(1, "drive_count", "flash_cell_drive_count")),
    **both(None, "F12-02", 12, vendor(2, "drive_count", "flash_cell_drive_count")),
    **both(None, "F12-03", 12, vendor(2, "below_1_5x", "drive_hours")),
    **both(None, "F13-01", 13, counts("halved_raid_hours", "raid_hours", transition="stable_to_stable")),
    **both("F13-03", "F13-02", 13, counts("halved_raid_hours", "raid_hours", transition="stable_to_tail")),
    **both("F14-01", "F14-02", 14, counts("unplugged_within_a_day", "drive_count", slowness="slow")),
    **both("F14-03", "F14-04", 14, counts("unplugged_within_a_day", "drive_count", slowness="mild")),
    **both("F15-01", "F15-02", 15, counts("replugged_count", "unplug_count")),
    **both("F15-03", "F15-04", 15, counts("slow_again_within_a_day", "back_after_slowness")),
}
"""Counts of a finding's query: id and kind of the study's result -> the finding, and how its rows of that kind give both counts."""


def of_finding(number: int) -> Path:
    (path,) = FOLDER.glob(f"finding_{number:02d}_*.sql")
    return path


@pytest.fixture(scope="module")
def awkward() -> Warehouse:
    """A fleet in which every finding has something to count."""
    return awkward_fleet()


@pytest.fixture(scope="module", params=["eventful", "awkward"])
def fleet(request: pytest.FixtureRequest) -> Warehouse:
    """Each of the fleets whose marts are counted."""
    found: Warehouse = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def answers(fleet: Warehouse) -> dict[int, Rows]:
    """The rows of every finding's query."""
    with open_published(fleet) as connection:
        return {number: fetch(connection, of_finding(number).read_text(encoding="utf-8")) for number in FINDINGS}


@pytest.mark.parametrize("path", ANALYSES, ids=lambda path: path.stem)
def test_an_analysis_runs_as_a_user_would_run_it(eventful: Warehouse, path: Path):
    assert run_query(eventful, str(path), "table", None, 50)


@pytest.mark.parametrize("number", FINDINGS)
def test_an_analysis_is_short_and_names_its_question(number: int):
    lines = of_finding(number).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"-- Finding {number}: ")
    assert "?" in lines[0]
    assert 5 <= len(lines) <= 20


@pytest.fixture(scope="module")
def counted(answers: dict[int, Rows]) -> dict[tuple[str, str], tuple[int, int]]:
    """Numerator and denominator by id and kind, as the queries give them; those of one kind only have no column for it."""
    return {
        (name, kind): pick([row for row in answers[finding] if row.get("kind", kind) == kind])
        for (name, kind), (finding, pick) in COUNTS.items()
    }


def test_hardly_a_finding_is_empty(request: pytest.FixtureRequest, counted: dict[tuple[str, str], tuple[int, int]]):
    told = {int(name[1:3]) for (name, _), (numerator, _) in counted.items() if numerator}
    # the eventful fleet has one vendor a flash cell, and its drives report no errors
    assert told >= (set(FINDINGS) if request.node.callspec.params["fleet"] == "awkward" else set(FINDINGS) - {9, 12})


def test_they_count_what_the_study_counts(fleet: Warehouse, counted: dict[tuple[str, str], tuple[int, int]]):
    with open_published(fleet) as connection:
        results = fetch(connection, "select id, kind, numerator, denominator from marts.study_results")
    # of what was never observed the study has no counts; a query has no row, or 0 of 0
    held = {(row["id"], row["kind"]): (row["numerator"] or 0, row["denominator"] or 0) for row in results}
    assert counted == {key: held[key] for key in COUNTS}

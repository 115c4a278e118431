"""The queries in analyses/: each runs on a built warehouse, and those of the findings count what the study counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drivetail.queries import fetch, open_published, run_query
from drivetail.study import FINDINGS, RELATIONS
from drivetail.warehouse import PROJECT, Warehouse

pytestmark = pytest.mark.xdist_group("report")

ANALYSES = sorted((PROJECT / "analyses").glob("*.sql"))

# id: finding, row of its query (besides the kind), column of the numerator, column of the denominator
COUNTS: dict[str, tuple[int, dict[str, Any], str, str]] = {
    **dict.fromkeys(("F01-01", "F01-02"), (1, {}, "slow_drive_hours", "drive_hours")),
    **dict.fromkeys(("F01-07", "F01-08"), (1, {}, "drive_hours_from_1_5x", "drive_hours")),
    **dict.fromkeys(("F02-01", "F02-02"), (2, {}, "tail_hours", "raid_hours")),
    **dict.fromkeys(("F02-05", "F02-06"), (2, {}, "raid_hours_from_1_5x", "raid_hours")),
    **dict.fromkeys(("F03-01", "F03-04"), (3, {}, "tail_hours", "raid_hours")),
    **dict.fromkeys(("F03-02", "F03-05"), (3, {}, "tail_hours_without_slowest", "raid_hours")),
    **dict.fromkeys(("F03-03", "F03-06"), (3, {}, "tail_hours_without_two_slowest", "raid_hours")),
    **dict.fromkeys(("F04-01", "F04-02"), (4, {}, "longer_than_1_hour", "interval_count")),
    **dict.fromkeys(("F04-03", "F04-04"), (4, {}, "from_8_hours", "interval_count")),
    **dict.fromkeys(("F05-01", "F05-02"), (5, {}, "within_a_day", "slow_again_count")),
    **dict.fromkeys(("F06-01", "F06-02"), (6, {}, "drives_from_2x", "drive_count")),
    **dict.fromkeys(("F06-03", "F06-04"), (6, {}, "drives_from_16x", "drive_count")),
    **dict.fromkeys(("F07-01", "F07-02"), (7, {}, "drives_from_100_slow_hours", "slow_drive_count")),
    **dict.fromkeys(("F07-03", "F07-04"), (7, {}, "drives_below_5_slow_hours", "slow_drive_count")),
    "F08-02": (8, {}, "slow_and_more_io", "slow_drive_hours_with_rate"),
    **dict.fromkeys(("F08-04", "F08-05"), (8, {}, "slow_and_more_io", "more_io")),
    **dict.fromkeys(("F08-06", "F08-07"), (8, {}, "slow_and_larger_io", "slow_drive_hours_with_size")),
    **dict.fromkeys(("F08-08", "F08-09"), (8, {}, "slow_and_larger_io", "larger_io")),
    "F09-02": (9, {}, "leading_to_a_slow_hour", "not_spinning_or_responding"),
    "F10-06": (10, {"age_year": 9}, "drive_count", "all_drive_count"),
    "F11-01": (11, {"flash_cell": "MLC"}, "below_1_5x", "drive_hours"),
    "F11-02": (11, {"flash_cell": "SLC"}, "below_1_5x", "drive_hours"),
    "F13-01": (13, {"transition": "stable_to_stable"}, "halved_raid_hours", "raid_hours"),
    **dict.fromkeys(("F14-01", "F14-02"), (14, {"slowness": "slow"}, "unplugged_within_a_day", "drive_count")),
    **dict.fromkeys(("F14-03", "F14-04"), (14, {"slowness": "mild"}, "unplugged_within_a_day", "drive_count")),
    **dict.fromkeys(("F15-01", "F15-02"), (15, {}, "replugged_count", "unplug_count")),
    **dict.fromkeys(("F15-03", "F15-04"), (15, {}, "slow_again_within_a_day", "back_after_slowness")),
}


def of_finding(number: int) -> Path:
    (path,) = (PROJECT / "analyses").glob(f"finding_{number:02d}_*.sql")
    return path


@pytest.fixture(scope="module")
def answers(eventful: Warehouse) -> dict[int, list[dict[str, Any]]]:
    """The rows of every finding's query on the eventful fleet."""
    with open_published(eventful) as connection:
        return {number: fetch(connection, of_finding(number).read_text(encoding="utf-8")) for number in FINDINGS}


@pytest.mark.parametrize("path", ANALYSES, ids=lambda path: path.stem)
def test_it_runs_as_a_user_would(eventful: Warehouse, path: Path):
    assert run_query(eventful, str(path), "table", None, 50)


@pytest.mark.parametrize("number", FINDINGS)
def test_it_is_short_and_says_what_it_asks(number: int):
    lines = of_finding(number).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"-- Finding {number}: ")
    assert "?" in lines[0]
    assert 5 <= len(lines) <= 20


def test_a_numerator_is_part_of_its_denominator(answers: dict[int, list[dict[str, Any]]]):
    for number, _, numerator, denominator in COUNTS.values():
        for row in answers[number]:
            assert 0 <= row[numerator] <= row[denominator]


def test_the_eventful_fleet_has_something_to_say_on_most(answers: dict[int, list[dict[str, Any]]]):
    counted = {number for number, _, numerator, _ in COUNTS.values() if any(row[numerator] for row in answers[number])}
    # no drive of it is in its 9th year, none has 100 slow hours, and simulated drives report few errors
    assert counted >= {1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 14, 15}


def test_findings_add_up_to_each_other(answers: dict[int, list[dict[str, Any]]]):
    by_kind = {(number, row["kind"]): row for number in (1, 2, 3, 4, 5, 6, 7) for row in answers[number]}
    for kind in ("disk", "ssd"):
        hours, tails, cut, drives = (by_kind[number, kind] for number in (1, 2, 3, 6))
        arrivals, repeats = by_kind[5, kind], by_kind[7, kind]
        assert hours["slow_drive_hours"] == arrivals["slow_again_count"] + repeats["slow_drive_count"]
        assert drives["drives_from_2x"] == repeats["slow_drive_count"]
        assert tails["tail_hours"] == cut["tail_hours"] >= cut["tail_hours_without_slowest"] >= cut["tail_hours_without_two_slowest"]
        assert by_kind[4, kind]["interval_count"] <= hours["slow_drive_hours"]


def test_they_count_what_the_study_counts(eventful: Warehouse, answers: dict[int, list[dict[str, Any]]]):
    with open_published(eventful) as connection:
        held = {row["table_name"] for row in fetch(connection, "select table_name from duckdb_columns() where schema_name = 'marts'")}
        if not held.issuperset(RELATIONS):
            pytest.skip("this warehouse holds no study: its models are not part of the project yet")
        results = fetch(connection, "select id, kind, numerator, denominator from marts.study_results")
    compared = 0
    for result in results:
        if result["id"] not in COUNTS:
            continue
        number, where, numerator, denominator = COUNTS[result["id"]]
        where = where | ({"kind": result["kind"]} if answers[number] and "kind" in answers[number][0] else {})
        rows = [row for row in answers[number] if where.items() <= row.items()]
        if rows:
            assert (result["numerator"], result["denominator"]) == (rows[0][numerator], rows[0][denominator]), result["id"]
        else:
            # what never came has no row: the study has none of it, whatever of
            assert not result["numerator"], result["id"]
        compared += 1
    assert compared >= len(COUNTS)

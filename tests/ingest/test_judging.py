"""Conflicts and duplicates: one record of a key is live, the same one in whatever order the deliveries come."""

from __future__ import annotations

import itertools
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ingest.contract.fleet import CONTRACT, RAW
from ingest.raw.judge import judge
from tests.ingest.conftest import HOURS_HEADER, Warehouse, counts, csv_text

HEADER = HOURS_HEADER + ",collected_at"


def row(drive: str = "d1", reads: int = 10, group: str = "g1", collected: str = "", latency: str = "100") -> str:
    return f"2026-01-05T10:00:00Z,{drive},{group},{reads},5,{latency},50,{collected}"


def hours(*rows: str, name: str = "drive_hours") -> dict[str, str]:
    return {f"{name}.csv": csv_text(*rows, header=HEADER)}


def test_the_latest_collected_at_wins_then_the_greatest_row(warehouse: Warehouse) -> None:
    rows = [
        row("d1", 99), row("d1", 1, collected="2026-01-05T11:00Z"), row("d1", 50, collected="2026-01-05T10:59Z"),
        row("d2", 10, group="g1"), row("d2", 1, group="g2"),
        row("d3", 10, latency="100"), row("d3", 10, latency="100.5"),
    ]  # fmt: skip
    assert counts(warehouse.land("bundle", hours(*rows))) == (7, 3, 0, 0, 4)
    live = warehouse.rows("drive_hours", "drive_id raid_group_id read_ios read_latency_us")
    assert live == [("d1", "g1", 1, 100.0), ("d2", "g2", 1, 100.0), ("d3", "g1", 10, 100.5)]
    assert set(warehouse.table("retired_drive_hours")["reason"]) == {"superseded"}


def test_exact_duplicates_are_counted_and_not_stored(warehouse: Warehouse) -> None:
    assert counts(warehouse.land("bundle", hours(row(), row("d2"), row()))) == (3, 2, 0, 1, 0)
    assert warehouse.live()["row_no"].sort().to_list() == [1, 2]
    # the same records in a file of other bytes
    assert counts(warehouse.land("bundle", hours(row("d2"), row()))) == (2, 0, 0, 2, 0)
    assert warehouse.stored().height == 2


def test_a_duplicate_of_a_record_that_had_lost_is_a_duplicate(warehouse: Warehouse) -> None:
    warehouse.land("bundle", hours(row(reads=1)))
    assert counts(warehouse.land("bundle", hours(row(reads=2)))) == (1, 1, 0, 0, 0)
    assert counts(warehouse.land("bundle", hours(row(reads=1), name="drive_hours_again"))) == (1, 0, 0, 1, 0)
    assert warehouse.live()["read_ios"].to_list() == [2]
    assert warehouse.stored().height == 2


def test_a_duplicate_with_a_greater_option_takes_the_place_of_its_equal(warehouse: Warehouse) -> None:
    for number, (min_coverage, kind, stored) in enumerate(
        [(0.5, None, 1), (0.4, "ssd", 1), (0.7, None, 2), (0.7, "disk", 3), (0.6, "ssd", 3)]
    ):
        summary = warehouse.land("bundle", hours(row(), name=f"drive_hours_{number}"), min_coverage=min_coverage, kind=kind)
        assert counts(summary) == ((1, 1, 0, 0, 0) if number == 0 else (1, 0, 0, 1, 0))
        assert (warehouse.stored().height, warehouse.live().height) == (stored, 1)
    assert warehouse.rows("drive_hours", "min_coverage declared_kind") == [(0.7, "disk")]
    assert warehouse.table("retired_drive_hours")["reason"].to_list() == ["duplicate", "duplicate"]


def test_an_idle_latency_does_not_make_a_conflict(warehouse: Warehouse) -> None:
    rows = [row(reads=0, latency=junk) for junk in ("1", "2", "", "nan")]
    assert counts(warehouse.land("bundle", hours(*rows))) == (4, 1, 0, 3, 0)


def test_a_bad_row_sent_twice_is_rejected_twice(warehouse: Warehouse) -> None:
    assert counts(warehouse.land("bundle", hours(row(reads=-1), row(reads=-1)))) == (2, 0, 2, 0, 0)


def test_conflicts_across_files_of_one_delivery(warehouse: Warehouse) -> None:
    files = {"a": [row(reads=1), row("d2")], "b": [row(reads=3), row("d2")], "c": [row(reads=2)]}
    summary = warehouse.land("bundle", {f"drive_hours_{name}.csv": csv_text(*rows, header=HEADER) for name, rows in files.items()})
    assert [counts(file) for file in summary.files] == [(2, 1, 0, 0, 1), (2, 1, 0, 1, 0), (1, 0, 0, 0, 1)]
    assert warehouse.rows("drive_hours", "drive_id read_ios file_no") == [("d1", 3, 2), ("d2", 10, 1)]


def test_inventory_and_events_have_one_record_per_key(warehouse: Warehouse) -> None:
    drives = "drive_id,raid_group_id,model,valid_from\nd1,g1,A,\nd1,g1,B,\nd1,g2,A,2026-01-01\nd1,g1,B,\n"
    header, at = "occurred_at,drive_id,event_type,slot", "2026-01-05T10:01,d1"
    events = csv_text(f"{at},unplug,3", f"{at},UNPLUG,4", f"{at},replug,", header=header)
    summary = warehouse.land("bundle", {"drives.csv": drives, "drive_events.csv": events})
    assert [counts(file) for file in summary.files] == [(3, 2, 0, 0, 1), (4, 2, 0, 1, 1)]
    summary = warehouse.land("bundle", {"drives.csv": drives.replace("g1,A,\n", "g1,C,\n")})
    assert counts(summary) == (4, 1, 0, 3, 0)
    assert warehouse.rows("drives", "model raid_group_id") == [("A", "g2"), ("C", "g1")]
    assert warehouse.rows("drive_events", "event_type slot") == [("replug", None), ("unplug", "4")]
    about = "drive_id valid_from reason delivery_seq file_no row_no retired_by_delivery_seq"
    assert set(warehouse.table("retired_drives").columns) == set(about.split())


def small_deliveries(seed: int) -> list[tuple[list[str], dict[str, Any]]]:
    """Deliveries that repeat and contradict each other on a few keys."""
    chance = random.Random(seed)
    values = [["d1", "d2"], [0, 1, 2], ["g1", "g2"], ["", "2026-01-05T11:00Z", "2026-01-05T12:00Z"], ["1", "2"]]
    return [
        (
            [row(*map(chance.choice, values)) for _ in range(chance.randint(1, 6))],
            {"min_coverage": chance.choice([None, 0.6]), "kind": chance.choice([None, "disk", "ssd"])},
        )
        for _ in range(5)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_deliveries_ends_with_the_same_live_records(seed: int, tmp_path: Path) -> None:
    deliveries = small_deliveries(seed)
    orders = [list(range(5)), [4, 3, 2, 1, 0], random.Random(seed).sample(range(5), 5)]
    ends = []
    for number, order in enumerate(orders):
        warehouse = Warehouse(tmp_path / f"order_{number}")
        for index in order:
            rows, options = deliveries[index]
            # a name of its own: the same content in two deliveries shall not be taken for one file
            warehouse.land("bundle", hours(*rows, name=f"drive_hours_{index}"), **options)
        live = warehouse.live()
        assert live.select("drive_id", "hour_utc").is_unique().all()
        ends.append(live.select(*CONTRACT["drive_hours"], "min_coverage", "declared_kind").sort("drive_id", "hour_utc"))
        files = warehouse.table("ingested_files")
        stored, retired = warehouse.stored(), warehouse.table("retired_drive_hours")
        assert live.height == stored.height - retired.height
        replaced = retired.filter(pl.col("reason") == "duplicate").height if retired.height else 0
        assert stored.height == files["rows_accepted"].sum() + files["rows_superseded"].sum() + replaced
    assert ends[0].equals(ends[1]) and ends[0].equals(ends[2])


def record(no: int, **values: object) -> dict[str, object]:
    given = dict(hour_utc=datetime(2026, 1, 5), drive_id="d", raid_group_id="g", min_coverage=0.5, file_no=1, row_no=no, delivery_seq=2)
    return {**dict.fromkeys(RAW["drive_hours"]), **given, **values}


def best(*records: dict[str, object]) -> int:
    """row_no of the record that stands, judged all at once."""
    incoming = pl.DataFrame(list(records), schema=RAW["drive_hours"])
    verdict = judge("drive_hours", incoming, pl.DataFrame(schema=RAW["drive_hours"]), 2)
    gone = {*verdict.retired["row_no"], *verdict.dropped["row_no"]}
    (left,) = [number for number in incoming["row_no"] if number not in gone]
    return int(left)


GREATER = [
    ({"latency_us": None}, {"latency_us": 1.0}),
    ({"latency_us": float("inf")}, {"latency_us": float("nan")}),
    ({"read_ios": 9}, {"read_ios": 10}),
    ({"raid_group_id": "Z"}, {"raid_group_id": "a"}),
    ({"raid_group_id": "z"}, {"raid_group_id": "é"}),
    ({"raid_group_id": "\uffff"}, {"raid_group_id": "\U0001f600"}),
    ({"read_ios": 1, "bytes": 99}, {"read_ios": 2, "bytes": 1}),
    ({"bytes": 99, "collected_at": None}, {"bytes": 1, "collected_at": datetime(1970, 1, 1)}),
    ({"coverage": None}, {"coverage": 0.0}),
]


@pytest.mark.parametrize(("less", "greater"), GREATER)
def test_the_order_of_two_records_and_of_three(less: dict[str, object], greater: dict[str, object]) -> None:
    # two records are compared directly, three or more are sorted: both must know the same order
    a, b = record(1, **less), record(2, **greater)
    for records in ([a, b], [b, a]):
        assert best(*records) == 2
    for records in itertools.permutations([a, b, {**a, "row_no": 3}]):
        assert best(*records) == 2

"""Conflicts and duplicates: one record of a key is live, the same one in whatever order the deliveries come."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from ingest import ingest
from ingest.contract.fleet import CONTRACT, RAW
from ingest.raw.judge import judge
from tests.ingest.conftest import HOURS_HEADER, Warehouse, counts

Bundle = Callable[[dict[str, str | bytes | pl.DataFrame]], Path]
HEADER = HOURS_HEADER + ",collected_at"


def row(drive: str = "d1", reads: int = 10, group: str = "g1", collected: str = "", latency: str = "100") -> str:
    return f"2026-01-05T10:00:00Z,{drive},{group},{reads},5,{latency},50,{collected}"


def hours(*rows: str) -> str:
    return "\n".join([HEADER, *rows]) + "\n"


def test_the_latest_collected_at_wins_then_the_greatest_row(bundle: Bundle, warehouse: Warehouse) -> None:
    rows = [
        row("d1", 99), row("d1", 1, collected="2026-01-05T11:00Z"), row("d1", 50, collected="2026-01-05T10:59Z"),
        row("d2", 10, group="g1"), row("d2", 1, group="g2"),
        row("d3", 10, latency="100"), row("d3", 10, latency="100.5"),
    ]  # fmt: skip
    summary = ingest("bundle", [bundle({"drive_hours.csv": hours(*rows)})], warehouse.path)
    assert counts(summary) == (7, 3, 0, 0, 4)
    live = warehouse.live().sort("drive_id").select("drive_id", "raid_group_id", "read_ios", "read_latency_us").rows()
    assert live == [("d1", "g1", 1, 100.0), ("d2", "g2", 1, 100.0), ("d3", "g1", 10, 100.5)]
    assert set(warehouse.table("retired_drive_hours")["reason"]) == {"superseded"}


def test_exact_duplicates_are_counted_and_not_stored(bundle: Bundle, warehouse: Warehouse) -> None:
    first = bundle({"drive_hours.csv": hours(row(), row("d2"), row())})
    assert counts(ingest("bundle", [first], warehouse.path)) == (3, 2, 0, 1, 0)
    assert warehouse.live()["row_no"].sort().to_list() == [1, 2]
    # the same records in a file of other bytes
    assert counts(ingest("bundle", [bundle({"drive_hours.csv": hours(row("d2"), row())})], warehouse.path)) == (2, 0, 0, 2, 0)
    assert warehouse.stored().height == 2


def test_a_duplicate_of_a_record_that_had_lost_is_a_duplicate(bundle: Bundle, warehouse: Warehouse) -> None:
    ingest("bundle", [bundle({"drive_hours.csv": hours(row(reads=1))})], warehouse.path)
    assert counts(ingest("bundle", [bundle({"drive_hours.csv": hours(row(reads=2))})], warehouse.path)) == (1, 1, 0, 0, 0)
    assert counts(ingest("bundle", [bundle({"drive_hours_again.csv": hours(row(reads=1))})], warehouse.path)) == (1, 0, 0, 1, 0)
    assert warehouse.live()["read_ios"].to_list() == [2]
    assert warehouse.stored().height == 2


def test_a_duplicate_with_a_greater_option_takes_the_place_of_its_equal(bundle: Bundle, warehouse: Warehouse) -> None:
    for number, (min_coverage, kind, stored) in enumerate(
        [(0.5, None, 1), (0.4, "ssd", 1), (0.7, None, 2), (0.7, "disk", 3), (0.6, "ssd", 3)]
    ):
        folder = bundle({f"drive_hours_{number}.csv": hours(row())})
        summary = ingest("bundle", [folder], warehouse.path, min_coverage=min_coverage, kind=kind)
        assert counts(summary) == ((1, 1, 0, 0, 0) if number == 0 else (1, 0, 0, 1, 0))
        assert (warehouse.stored().height, warehouse.live().height) == (stored, 1)
    assert warehouse.live().select("min_coverage", "declared_kind").rows() == [(0.7, "disk")]
    assert warehouse.table("retired_drive_hours")["reason"].to_list() == ["duplicate", "duplicate"]


def test_an_idle_latency_does_not_make_a_conflict(bundle: Bundle, warehouse: Warehouse) -> None:
    rows = [row(reads=0, latency=junk) for junk in ("1", "2", "", "nan")]
    assert counts(ingest("bundle", [bundle({"drive_hours.csv": hours(*rows)})], warehouse.path)) == (4, 1, 0, 3, 0)


def test_a_bad_row_sent_twice_is_rejected_twice(bundle: Bundle, warehouse: Warehouse) -> None:
    assert counts(ingest("bundle", [bundle({"drive_hours.csv": hours(row(reads=-1), row(reads=-1))})], warehouse.path)) == (2, 0, 2, 0, 0)


def test_conflicts_across_files_of_one_delivery(bundle: Bundle, warehouse: Warehouse) -> None:
    folder = bundle(
        {
            "drive_hours_a.csv": hours(row(reads=1), row("d2")),
            "drive_hours_b.csv": hours(row(reads=3), row("d2")),
            "drive_hours_c.csv": hours(row(reads=2)),
        }
    )
    summary = ingest("bundle", [folder], warehouse.path)
    assert [counts(file) for file in summary.files] == [(2, 1, 0, 0, 1), (2, 1, 0, 1, 0), (1, 0, 0, 0, 1)]
    assert warehouse.live().sort("drive_id").select("read_ios", "file_no").rows() == [(3, 2), (10, 1)]


def test_inventory_and_events_have_one_record_per_key(bundle: Bundle, warehouse: Warehouse) -> None:
    drives = "drive_id,raid_group_id,model,valid_from\nd1,g1,A,\nd1,g1,B,\nd1,g2,A,2026-01-01\nd1,g1,B,\n"
    events = (
        "occurred_at,drive_id,event_type,slot\n2026-01-05T10:01,d1,unplug,3\n2026-01-05T10:01,d1,UNPLUG,4\n2026-01-05T10:01,d1,replug,\n"
    )
    summary = ingest("bundle", [bundle({"drives.csv": drives, "drive_events.csv": events})], warehouse.path)
    assert [counts(file) for file in summary.files] == [(3, 2, 0, 0, 1), (4, 2, 0, 1, 1)]
    summary = ingest("bundle", [bundle({"drives.csv": drives.replace("g1,A,\n", "g1,C,\n")})], warehouse.path)
    assert counts(summary) == (4, 1, 0, 3, 0)
    assert sorted(warehouse.live("drives").select("model", "raid_group_id").rows()) == [("A", "g2"), ("C", "g1")]
    assert sorted(warehouse.live("drive_events").select("event_type", "slot").rows()) == [("replug", None), ("unplug", "4")]
    assert set(warehouse.table("retired_drives").columns) == {
        "drive_id",
        "valid_from",
        "reason",
        "delivery_seq",
        "file_no",
        "row_no",
        "retired_by_delivery_seq",
    }


def small_deliveries(seed: int) -> list[tuple[str, dict[str, object]]]:
    """Deliveries that repeat and contradict each other on a few keys."""
    chance = random.Random(seed)
    deliveries = []
    for _ in range(5):
        rows = [
            row(
                chance.choice(["d1", "d2"]),
                chance.choice([0, 1, 2]),
                chance.choice(["g1", "g2"]),
                chance.choice(["", "2026-01-05T11:00Z", "2026-01-05T12:00Z"]),
                chance.choice(["1", "2"]),
            )
            for _ in range(chance.randint(1, 6))
        ]
        deliveries.append((hours(*rows), {"min_coverage": chance.choice([None, 0.6]), "kind": chance.choice([None, "disk", "ssd"])}))
    return deliveries


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_deliveries_ends_with_the_same_live_records(seed: int, bundle: Bundle, tmp_path: Path) -> None:
    deliveries = small_deliveries(seed)
    orders = [list(range(5)), [4, 3, 2, 1, 0], random.Random(seed).sample(range(5), 5)]
    ends = []
    for number, order in enumerate(orders):
        warehouse = Warehouse(tmp_path / f"order_{number}")
        for index in order:
            text, options = deliveries[index]
            # a name of its own: the same content in two deliveries shall not be taken for one file
            summary = ingest("bundle", [bundle({f"drive_hours_{index}.csv": text})], warehouse.path, **options)  # type: ignore[arg-type]
            delivered, accepted, rejected, duplicate, superseded = counts(summary)
            assert delivered == accepted + rejected + duplicate + superseded
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
    given = {
        "hour_utc": datetime(2026, 1, 5),
        "drive_id": "d",
        "raid_group_id": "g",
        "min_coverage": 0.5,
        "file_no": 1,
        "row_no": no,
        "delivery_seq": 2,
    }
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

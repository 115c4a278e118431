"""The gate in an ingest: what lands, what is held back, and what becomes of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ingest import GateError, IngestSummary, drop, list_deliveries, list_quarantine, release
from quality import Gate, write_pages
from tests.ingest.conftest import Warehouse, counts, csv_text
from tests.quality.conftest import DRIVES, NOW, START, events, fleet, inventory

Files = dict[str, Any]
ROOT = Path(__file__).parents[2]
LATENCIES = ("read_latency_us", "write_latency_us")


def gated(warehouse: Warehouse, given: Path | Files, **options: Any) -> IngestSummary:
    return warehouse.land("bundle", given, gate=Gate(warehouse.path, now=NOW), **options)


def released(warehouse: Warehouse, number: int = 1) -> IngestSummary:
    return release(warehouse.path, number, by="ada", note="it is so", gate=Gate(warehouse.path, now=NOW, is_rows_only=True))


def hours(*numbers: int, drives: int = DRIVES) -> Files:
    return {"drive_hours.parquet": fleet(*numbers, drives=drives)}


def in_ms(*numbers: int) -> Files:
    return {"drive_hours.parquet": fleet(*numbers, latency_us=4.0)}


def tables(warehouse: Warehouse) -> dict[str, list[tuple[object, ...]]]:
    """Inputs of the models: live records, rejections and files, by what was delivered."""
    found = {}
    for kind in ("drive_hours", "drive_events", "drives"):
        found[kind] = sorted(warehouse.live(kind).drop("delivery_seq", "file_no", strict=False).rows(), key=str)
    for table, own in (("rejected_records", ["rejected_at"]), ("ingested_files", ["ingested_at", "file_no"])):
        rows = warehouse.table(table)
        found[table] = sorted(rows.drop("delivery_seq", *own).rows(), key=str) if rows.width else []
    return found


def test_a_plausible_delivery_lands_as_without_the_gate(warehouse: Warehouse, other: Warehouse) -> None:
    rows = pl.concat([fleet(0, 1), fleet(0).head(5)])
    folder = warehouse.put({"drive_hours.parquet": rows, "drives.parquet": inventory(), "drive_events.parquet": events()})
    summary = gated(warehouse, folder)
    other.land("bundle", folder)
    assert (summary.delivery_seq, summary.held, summary.rows_duplicate) == (1, [], 5)
    assert tables(warehouse) == tables(other)
    told = json.loads((list_deliveries(warehouse.path)[0].path / "gate.json").read_text())
    assert {check["table"] for check in told["checks"]} == {"drive_hours", "drive_events", "drives", "ingested_files"}
    assert not [check for check in told["checks"] if check["broken"]]
    assert gated(warehouse, folder).delivery_seq is None


def test_rows_that_break_a_rule_are_rejected_and_counts_add_up(warehouse: Warehouse) -> None:
    bad = fleet(0).with_columns(
        pl.when(pl.col("drive_id") == "d3").then(9e9).otherwise("read_latency_us").alias("read_latency_us"),
        pl.when(pl.col("drive_id") == "d7").then(-1).otherwise("write_ios").alias("write_ios"),
    )
    bad = pl.concat([bad, bad.filter(pl.col("drive_id") == "d3"), fleet(24 * 40).head(1)])
    late = events(2).with_columns(ended_at=START - timedelta(days=1))
    closed = inventory().with_columns(pl.lit(START - timedelta(days=900)).alias("valid_to"))
    rows = pl.concat([inventory().head(40), closed.tail(8)])
    summary = gated(warehouse, {"drive_hours.parquet": bad, "drive_events.parquet": late, "drives.parquet": rows})
    assert summary.delivery_seq == 1
    rejected = warehouse.table("rejected_records")
    assert rejected.height == summary.rows_rejected == 4 + 2 + 8
    (future,) = rejected.filter(pl.col("row") == DRIVES + 2).to_dicts()
    assert (future["column"], future["value"]) == ("hour_utc", "2026-02-14 00:00:00")
    assert future["reason"].startswith(
        "gate: expect_column_values_to_be_between of ahead_hours, at most 0.25: The hour begins in the future"
    )
    slow = rejected.filter(pl.col("column") == "read_latency_us")
    assert slow.select("row", "value").rows() == [(4, "9000000000.0"), (DRIVES + 1, "9000000000.0")]  # sent twice, rejected twice
    assert warehouse.live().height == DRIVES - 2
    assert (warehouse.live("drive_events").height, warehouse.live("drives").height) == (0, 40)


def test_a_held_delivery_lands_nothing_keeps_its_bytes_and_is_released(warehouse: Warehouse, other: Warehouse) -> None:
    first = warehouse.put(hours(0))
    second = warehouse.put({**in_ms(0, 1), "sub/drives.csv": "drive_id,raid_group_id\nd1,g0\n", "drive_events.csv": "junk\n1\n"})
    gated(warehouse, first)
    before = tables(warehouse)
    summary = gated(warehouse, second, kind="ssd", min_coverage=0.25)
    assert summary.delivery_seq is None
    assert {file.status for file in summary.files} == {"quarantined"}
    assert summary.rows_delivered == summary.rows_accepted == 0
    assert tables(warehouse) == before
    (held,) = list_quarantine(warehouse.path)
    assert [each.number for each in summary.held] == [held.number] == [1]
    assert "is it in microseconds?" in held.reasons[0]
    assert held.decision is None
    for entry in held.files:
        kept = held.path / entry["kept"]
        assert kept.read_bytes() == Path(entry["file"]).read_bytes()
        assert hashlib.sha256(kept.read_bytes()).hexdigest() == entry["sha256"]
    done = released(warehouse)
    assert done.delivery_seq == 2
    other.land("bundle", first)
    other.land("bundle", second, kind="ssd", min_coverage=0.25)
    assert tables(warehouse) == tables(other)
    (held,) = list_quarantine(warehouse.path)
    assert held.decision is not None
    assert {name: held.decision[name] for name in ("decision", "by", "note", "delivery_seq")} == {
        "decision": "released", "by": "ada", "note": "it is so", "delivery_seq": 2,
    }  # fmt: skip
    assert not (held.path / "files").exists()
    again = released(warehouse)
    assert again.delivery_seq is None and "was released by ada" in again.notes[0]
    with pytest.raises(GateError, match="was released by ada"):
        drop(warehouse.path, 1, by="bob", note="no")
    assert gated(warehouse, second).delivery_seq is None
    assert tables(warehouse) == tables(other)


def test_releasing_still_rejects_single_rows(warehouse: Warehouse) -> None:
    gated(warehouse, {"drive_hours.parquet": pl.concat([fleet(0, latency_us=4.0), fleet(24 * 40).head(1)])})
    done = released(warehouse)
    assert (done.rows_accepted, done.rows_rejected) == (DRIVES, 1)


def test_a_held_delivery_is_not_held_twice_from_any_place(warehouse: Warehouse) -> None:
    folder = warehouse.put({**in_ms(0), "drive_events.csv": "occurred_at,drive_id,event_type\n"})
    gated(warehouse, folder)
    copy = warehouse.put({path.name: path.read_bytes() for path in folder.iterdir()})
    for again in (folder, copy):
        summary = gated(warehouse, again)
        assert ([held.number for held in summary.held], summary.delivery_seq) == ([1], None)
        assert {file.status for file in summary.files} == {"quarantined"}
    # the next hour in the same folder lands, with the header that came before
    fleet(1).write_parquet(folder / "drive_hours_1.parquet")
    summary = gated(warehouse, folder)
    assert {Path(file.file).name: file.status for file in summary.files} == {
        "drive_events.csv": "landed", "drive_hours.parquet": "quarantined", "drive_hours_1.parquet": "landed",
    }  # fmt: skip
    assert len(list_quarantine(warehouse.path)) == 1


def test_dropped_files_stay_out_but_the_contract_takes_them(warehouse: Warehouse) -> None:
    folder = warehouse.put(in_ms(0))
    gated(warehouse, folder)
    held = drop(warehouse.path, 1, by="ada", note="milliseconds")
    assert drop(warehouse.path, 1, by="bob", note="again").decision == held.decision
    assert not (held.path / "files").exists() and held.record["reasons"]
    summary = gated(warehouse, folder)
    assert (summary.held, summary.files[0].status) == ([], "dropped")
    assert "dropped by ada: milliseconds" in (summary.files[0].note or "")
    with pytest.raises(GateError, match="was dropped by ada"):
        released(warehouse)
    assert warehouse.land("bundle", folder).rows_accepted == DRIVES


def test_a_held_delivery_makes_no_duplicates(warehouse: Warehouse, other: Warehouse) -> None:
    """A row that a held delivery has too is new when it comes, and the held one's is the duplicate once it is released."""
    held = warehouse.put({"drive_hours.parquet": pl.concat([fleet(0, latency_us=4.0), fleet(0).head(3)])})
    good = warehouse.put(hours(0))
    gated(warehouse, held)
    summary = gated(warehouse, good)
    assert (summary.rows_accepted, summary.rows_duplicate, summary.rows_superseded) == (DRIVES, 0, 0)
    released(warehouse)
    for folder in (good, held):
        other.land("bundle", folder)
    assert tables(warehouse) == tables(other)
    assert warehouse.live().height == DRIVES


PASSING: dict[str, list[Files]] = {
    "a tiny first delivery": [hours(0, drives=1), hours(1)],
    "a fleet that doubles": [{**hours(*range(24)), "drives.parquet": inventory()}, hours(24, drives=96), hours(25, drives=96)],
    "a stopped day": [hours(*range(24)), hours(48), hours(49)],
    "a late array": [hours(*range(12)), hours(14), hours(12, drives=4), hours(13)],
    "a correction of one row": [hours(*range(12)), {"drive_hours.parquet": fleet(3, latency_us=9000.0).head(1)}],
    "another kind of drive, late": [
        hours(0, 1, 2),
        {"drive_hours.parquet": fleet(1, latency_us=15.0).with_columns(pl.format("n{}", "drive_id").alias("drive_id"))},
    ],
    "a few clocks that are ahead": [hours(*range(12)), {"drive_hours.parquet": pl.concat([fleet(12, drives=40), fleet(13, 14, drives=2)])}],
    "a new column": [hours(0), {"drive_hours.parquet": fleet(1).with_columns(pl.lit("x").alias("colour"))}],
    "a missing optional column": [hours(0), {"drive_hours.parquet": fleet(1).drop("collected_at", "block_bytes")}],
    "the same file twice": [hours(0), {"drive_hours_a.parquet": fleet(1), "drive_hours_b.parquet": fleet(1)}],
    "an idle hour of a few": [hours(0, drives=8), {"drive_hours.parquet": fleet(1, drives=8).with_columns(read_ios=0, write_ios=0)}],
}  # fmt: skip


@pytest.mark.parametrize("case", PASSING)
def test_events_of_sound_fleets_pass(case: str, warehouse: Warehouse) -> None:
    for number, files in enumerate(PASSING[case], 1):
        summary = gated(warehouse, files)
        assert [held.reasons for held in summary.held] == []
        assert (summary.delivery_seq, summary.rows_rejected) == (number, 0)


HOLDING: dict[str, tuple[Files, str]] = {
    "half of the arrays are missing": (hours(24, drives=DRIVES // 2 - 1), "Far fewer drive-hours than the last day had"),
    "few of the inventory's drives": (hours(24, drives=3), "Far fewer drives than the inventory lists"),
    "milliseconds": (
        {"drive_hours.parquet": fleet(24).with_columns(pl.col(*LATENCIES) * 1000)},
        "Most drives are more than 100 times as slow as the same drives on the last day",
    ),
    "a counter that stands still": ({"drive_hours.parquet": fleet(24).with_columns(read_ios=0, write_ios=0)}, "Nine of ten drives"),
    "most rows break the contract": (
        {"drive_hours.parquet": fleet(24).with_columns(pl.when(pl.int_range(pl.len()) < 30).then(-1).otherwise(1).alias("read_ios"))},
        "expected at most 0.5) Most often (30 times): read_ios = '-1': negative",
    ),
    "a required column has another name, and another way to be complete is there": (
        {"drive_hours.parquet": fleet(24).rename({"read_latency_us": "rd_lat"}).with_columns(latency_us=1.0)},
        "More than half of the rows break the contract",
    ),
    "an hour ahead": (
        {"drive_hours.parquet": fleet(24).with_columns(pl.col("collected_at") - timedelta(hours=1))},
        "local time sent as UTC",
    ),
    "drive ids cut short": ({"drive_hours.parquet": fleet(24).with_columns(drive_id=pl.lit("d"))}, "has drive_id lost characters?"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOLDING)
def test_implausible_deliveries_are_held(case: str, warehouse: Warehouse) -> None:
    warehouse.land("bundle", {**hours(*range(24)), "drives.parquet": inventory()})
    files, reason = HOLDING[case]
    (held,) = gated(warehouse, files).held
    assert reason in " ".join(held.reasons)
    assert len(list_deliveries(warehouse.path)) == 1


def test_a_required_column_by_another_name_is_unreadable(warehouse: Warehouse) -> None:
    summary = gated(warehouse, {"drive_hours.parquet": fleet(0).rename({"hour_utc": "hour"}), "drives.parquet": inventory()})
    assert [file.status for file in summary.files] == ["unreadable", "landed"]
    assert "hour_utc" in (summary.unreadable[0].note or "")


def test_rejected_hours_ask_for_no_rows(warehouse: Warehouse) -> None:
    warehouse.land("bundle", hours(*range(6)))
    ahead = pl.concat([fleet(1000 + number).head(5) for number in range(8)])
    summary = gated(warehouse, {"drive_hours.parquet": pl.concat([fleet(6), ahead])})
    assert (summary.held, summary.rows_accepted, summary.rows_rejected) == ([], DRIVES, 40)


def test_another_source_in_the_warehouse_is_no_measure(warehouse: Warehouse) -> None:
    """Samples of one host, rolled up: two hours, one of them in the future; its samples are rejected, all of them."""
    warehouse.land("bundle", hours(*range(6)))
    end = int(NOW.replace(tzinfo=UTC).timestamp())
    lines = [f"{at},{disk},1000,200" for disk in ("sda", "sdb") for at in (end - 3585, end - 3570, end + 7215, end + 7230)]
    lines += [f"{end + 7215},sdc,1000,200"]
    text = csv_text(*lines, header="ts,disk_id,throughput,latency")
    summary = warehouse.land("perseus", {"cluster_A/host_1/2026-01-19.csv": text}, gate=Gate(warehouse.path, now=NOW))
    assert (summary.held, counts(summary)) == ([], (9, 4, 5, 0, 0))
    assert warehouse.rejected("row") == [(3,), (3,), (7,), (7,), (9,)]
    assert warehouse.live("drives")["drive_id"].str.slice(-3).sort().to_list() == ["sda", "sdb"]  # sdc has nothing but rejected records


def test_own_suites_of_a_warehouse_count(warehouse: Warehouse) -> None:
    own = warehouse.path / "suites" / "drive_hours.json"
    own.parent.mkdir(parents=True)
    entry = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "read_latency_us", "max_value": 4040}}
    own.write_text(json.dumps({"name": "ours", "expectations": [{**entry, "meta": {"level": "row"}, "description": "Too slow for us."}]}))
    summary = gated(warehouse, hours(0))
    assert (summary.rows_accepted, summary.rows_rejected) == (41, 7)
    told = json.loads((list_deliveries(warehouse.path)[0].path / "gate.json").read_text())
    assert told["suites"]["drive_hours"]["file"] == str(own)


def test_a_kept_file_that_has_changed_is_not_released(warehouse: Warehouse) -> None:
    (held,) = gated(warehouse, in_ms(0)).held
    kept = held.path / held.files[0]["kept"]
    kept.write_bytes(kept.read_bytes() + b" ")
    with pytest.raises(GateError, match="has changed since it was quarantined"):
        released(warehouse)
    with pytest.raises(GateError, match="no delivery is quarantined as 2"):
        released(warehouse, 2)


KILLED = """
import os, sys
from pathlib import Path
from ingest import GateReport, drop, ingest, release
verb, at, folder, warehouse = sys.argv[1:]
class No:
    def prepare(self):
        pass
    def check(self, landing):
        return GateReport([] if verb == "release" else ["no"], {"checked_at": "2026-01-05T00:00:00", "checks": []})
rename, count = os.rename, 0
def counted(*arguments):
    global count
    if count == int(at):
        os.kill(os.getpid(), 9)
    count += 1
    rename(*arguments)
os.rename = counted
if verb == "ingest":
    ingest("bundle", [folder], Path(warehouse), gate=No())
elif verb == "release":
    release(Path(warehouse), 1, by="ada", note="so", gate=No())
else:
    drop(Path(warehouse), 1, by="ada", note="so")
"""


def killed(verb: str, at: int, folder: Path, warehouse: Warehouse) -> int:
    """Run a call that dies right before its rename number `at`. Returns: its exit code."""
    arguments = [sys.executable, "-c", KILLED, verb, str(at), str(folder), str(warehouse.path)]
    return subprocess.run(arguments, cwd=ROOT, check=False, env={**os.environ, "POLARS_MAX_THREADS": "1"}).returncode


def test_a_kill_leaves_the_old_state_or_the_new(warehouse: Warehouse, other: Warehouse) -> None:
    folder = warehouse.put(hours(0))
    assert killed("ingest", 0, folder, warehouse) == -9
    assert (list_quarantine(warehouse.path), list_deliveries(warehouse.path)) == ([], [])
    assert killed("ingest", 1, folder, warehouse) == 0
    assert [held.decision for held in list_quarantine(warehouse.path)] == [None]
    for at in (0, 1):  # before the delivery is committed; before the decision is written
        assert killed("release", at, folder, warehouse) == -9
        assert len(list_deliveries(warehouse.path)) == at
        assert [held.decision for held in list_quarantine(warehouse.path)] == [None]
    assert killed("drop", 0, folder, warehouse) == -9
    assert [held.decision for held in list_quarantine(warehouse.path)] == [None]
    released(warehouse)
    assert [held.decision is None for held in list_quarantine(warehouse.path)] == [False]
    other.land("bundle", folder)
    assert tables(warehouse) == tables(other)
    assert list((warehouse.path / "raw/.staging").iterdir()) == []


class Tags(HTMLParser):
    """The elements of a page, and what they point at."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str | None] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links |= {value for name, value in attrs if name in ("src", "href", "data", "action", "srcset")}


def test_the_page_of_a_day_is_whole_and_escapes_what_was_delivered(warehouse: Warehouse) -> None:
    evil = "<script>alert(1)</script>"
    folder = warehouse.put(
        {f"{evil[1:7]}&'\"<b>/drive_hours.csv": fleet(0, latency_us=4.0).with_columns(drive_id=pl.lit(evil)).write_csv()}
    )
    (held,) = gated(warehouse, folder).held
    gated(warehouse, hours(1))
    bad = inventory().with_columns(interface=pl.lit(evil))
    gated(warehouse, {"drives.parquet": bad})
    drop(warehouse.path, held.number, by=evil, note="'\"><img src=x onerror=alert(1)>")
    path = write_pages(warehouse.path, now=NOW)
    assert path == warehouse.path / "docs" / "quality" / "2026-01-20.html"
    page = path.read_text()
    assert "&lt;script&gt;alert(1)" in page and "@import" not in page and "url(" not in page
    tags = Tags()
    tags.feed(page)
    assert not tags.names & {"script", "img", "b", "iframe", "base", "object"}
    assert tags.links == {"data:,"}  # nothing is asked of the world
    assert page.index("Quarantine 1") < page.index("Delivery 1") and "2 quarantined" in page
    assert page.index("is it in microseconds?") < page.index("The hour begins in the future")  # what is broken comes first
    assert "Dropped by" in page

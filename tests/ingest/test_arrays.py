"""Answers of MSA and ME arrays: hours, place and disk group of each drive; what no latency can be made of is refused by name."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from ingest.reading.readers import HALF_A_PAIR
from tests.ingest.conftest import Warehouse

T = 1_767_607_200  # 2026-01-05 10:00 UTC
START = datetime(2026, 1, 5, 10)
HOURS = "hour_utc drive_id raid_group_id io_count bytes latency_us coverage from_utc to_utc"
PLACES = "drive_id host enclosure slot raid_group_id is_group_guessed role kind valid_from valid_to"
# of `show disks` and `show disk-statistics`, as firmware of 2015 to 2024 names them
DISK: dict[str, Any] = {
    "durable-id": "disk_01.03", "enclosure-id": 1, "slot": 3, "location": "1.3", "serial-number": "ZQ3AB7N0", "vendor": "SEAGATE",
    "model": "ST1200MM0009", "revision": "C003", "architecture": "HDD", "usage": "LINEAR POOL", "disk-group": "dgA01", "blocks": 1000,
    "number-of-ios": 0, "avg-rsp-time": 5000, "health": "OK",
}  # fmt: skip
COUNTS: dict[str, Any] = {
    "durable-id": "disk_01.03", "serial-number": "ZQ3AB7N0", "iops": 13, "number-of-reads": 9000, "number-of-writes": 100,
    "data-read-numeric": 50656968970752, "data-written-numeric": 2800282933760, "reset-time-numeric": 1432302939,
}  # fmt: skip


def as_xml(disks: list[dict[str, Any]], counts: list[dict[str, Any]]) -> str:
    answers = ""
    for request, name, rows in (("disks", "drives", disks), ("disk-statistics", "disk-statistics", counts)):
        objects = "".join(
            f'<OBJECT basetype="{name}" name="x" oid="{oid}" format="rows">'
            + "".join(f'<PROPERTY name="{key}" type="string" size="8">{value}</PROPERTY>\n' for key, value in row.items())
            + "</OBJECT>\n"
            for oid, row in enumerate(rows, 1)
        )
        status = '<OBJECT basetype="status" name="status" oid="9"><PROPERTY name="return-code">0</PROPERTY></OBJECT>'
        head = f'# show {request}\n<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<RESPONSE VERSION="L100">\n'
        answers += f'{head}<COMP G="0" P="1"/>{objects}{status}</RESPONSE>\n'
    return answers


def as_json(disks: list[dict[str, Any]], counts: list[dict[str, Any]]) -> str:
    tables = {"disks": {"drives": disks}, "disk-statistics": {"disk-statistics": counts}}
    return "".join(f"# show {name}\n{json.dumps(table | {'status': [{'return-code': 0}]})}\n" for name, table in tables.items())


def look(minute: int, text: str) -> str:
    return f"TS {T + 60 * minute}\n{text}"


def at(minute: int, form: Any = as_xml, disk: dict[str, Any] | None = None, **counted: Any) -> str:
    """A look: 100 reads of 64 KiB and 20 writes of 4 KiB each minute; the mean is 5 ms up to 10:30, then 20 ms, of twice as many I/Os."""
    done = minute + max(minute - 30, 0)
    counts = COUNTS | {
        "number-of-reads": 9000 + 100 * done, "number-of-writes": 100 + 20 * done,
        "data-read-numeric": COUNTS["data-read-numeric"] + 100 * done * 65536, "data-written-numeric": 20 * done * 4096,
    }  # fmt: skip
    disks = DISK | {"avg-rsp-time": 5000 if minute <= 30 else 20000} | (disk or {})
    return look(minute, form([{name: value for name, value in disks.items() if value is not None}], [counts | counted]))


@pytest.mark.parametrize("form", [as_xml, as_json])
def test_hours_and_places_come_from_both_answers(form: Any, warehouse: Warehouse) -> None:
    summary = warehouse.land("arrays", {"msa7/disks.txt": "".join(at(minute, form) for minute in range(0, 61, 5))})
    assert summary.rows_accepted == 26
    # 30 minutes of 120 I/Os at 5 ms, 30 of 240 at 20 ms
    moved = 90 * (100 * 65536 + 20 * 4096)
    assert warehouse.rows("drive_hours", HOURS) == [(START, "ZQ3AB7N0", "msa7/dgA01", 90 * 120, moved, 15000.0, 1.0, None, None)]
    assert warehouse.rows("drives", PLACES) == [("ZQ3AB7N0", "msa7", "1", "3", "msa7/dgA01", False, "data", "disk", START, None)]
    assert warehouse.rows("drives", "capacity_bytes firmware") == [(512_000, "C003")]


def test_a_place_is_that_of_the_location_and_a_spare_is_in_no_group(warehouse: Warehouse) -> None:
    spare = {"enclosure-id": None, "slot": None, "disk-group": None, "usage": "GLOBAL SP", "architecture": "SSD"}
    warehouse.land("arrays", {"msa7/disks.xml": at(0, disk=spare) + at(5, disk=spare)})
    assert warehouse.rows("drives", PLACES) == [("ZQ3AB7N0", "msa7", "1", "3", "msa7", True, "spare", "ssd", START, None)]


def test_a_known_drive_is_stored_once(warehouse: Warehouse) -> None:
    for first in (0, 60):
        warehouse.land("arrays", {f"msa7/{first}.xml": "".join(at(minute) for minute in range(first, first + 61, 5))})
    assert warehouse.rows("drives", "valid_from") == [(START,)] and len(warehouse.rows("drive_hours", "drive_id")) == 2


def test_a_drive_that_another_replaces_ends_where_it_is_missing(warehouse: Warehouse) -> None:
    other = {"serial-number": "ZQ4AB7N1"}
    text = "".join(at(minute) for minute in (0, 5, 10)) + "".join(at(minute, disk=other, **other) for minute in (15, 20, 25))
    warehouse.land("arrays", {"msa7/disks.xml": text})
    swapped = START + timedelta(minutes=15)
    assert warehouse.rows("drives", "drive_id slot valid_from valid_to") == [
        ("ZQ3AB7N0", "3", START, swapped),
        ("ZQ4AB7N1", "3", swapped, None),
    ]
    assert [row[:2] for row in warehouse.rows("drive_hours", "drive_id io_count")] == [("ZQ3AB7N0", 1200), ("ZQ4AB7N1", 1200)]


def test_counters_that_fall_and_long_gaps_cost_their_time(warehouse: Warehouse) -> None:
    reset = [at(minute, **{"number-of-reads": 10 * minute}) for minute in (20, 25)]
    warehouse.land("arrays", {"msa7/disks.xml": at(0) + at(5) + "".join(reset) + at(41)})
    spans = [(name and (name - START).seconds // 60) for row in warehouse.rows("drive_hours", "from_utc to_utc") for name in row]
    assert spans == [None, 5, 20, 25]


@pytest.mark.parametrize(
    ("disk", "reason"),
    [
        ({"avg-rsp-time": 0}, "0 although I/Os were counted: this firmware measures no response times"),
        ({"serial-number": "ZQ9"}, "`show disks` of the same look does not have the drive"),
        ({"avg-rsp-time": None}, "no whole number of 0 or more"),
        ({"avg-rsp-time": "6.5 ms"}, "no whole number of 0 or more"),
        ({"serial-number": "00000000"}, "a placeholder, no serial number"),
        ({"model": "ST\ud800"}, HALF_A_PAIR),
    ],
)
def test_an_answer_without_a_latency_is_rejected_with_its_reason(disk: dict[str, Any], reason: str, warehouse: Warehouse) -> None:
    summary = warehouse.land("arrays", {"msa7/disks.xml": "".join(at(minute, as_json, disk) for minute in (0, 5, 10))})
    assert reason in {record["reason"] for record in summary.rejected}
    assert warehouse.rows("drive_hours", "drive_id") == []


@pytest.mark.parametrize(
    "broken",
    [
        as_xml([DISK], [COUNTS])[:-40],
        as_json([DISK], [COUNTS])[:-40],
        as_json([DISK], []).replace("drives", "volumes"),
        "# show disks\nError: Unable to communicate with the controller.\n",
    ],
)
def test_an_answer_that_is_cut_off_or_of_another_is_rejected(broken: str, warehouse: Warehouse) -> None:
    summary = warehouse.land("arrays", {"msa7/disks.txt": look(0, broken)})
    assert summary.rows_rejected == 1 and "is the answer cut off?" in summary.rejected[0]["reason"]


DPMSTAT = """                           Queue           Xfer         Resp
Port   Status   Unit       Depth   IOPs    Rate(MB/s)   Time(ms)
---------------------------------------------------------------
p3     OK       u0         0       112     7.310        9
"""


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c0.txt", DPMSTAT, "this is dpmstat of 3ware: means over a time that it does not say"),
        ("c0.txt", look(0, "//host> /c0 show dpmstat type=ra\n" + DPMSTAT), "without the number of I/Os"),
        ("perf.csv", "Time,Disk,Total I/Os,Reads\n2026-01-05 10:00:00,1.3,9,4\n", "the columns of the history that an array hands out"),
        ("disks.xml", as_xml([DISK], [COUNTS]), "is not below a `TS seconds` line"),
        ("disks.xml", look(0, "\n"), "no drive is in it"),
    ],
)
def test_a_form_without_counts_or_columns_is_refused_by_name(name: str, text: str, said: str, warehouse: Warehouse) -> None:
    (file,) = warehouse.land("arrays", {f"msa7/{name}": text}).files
    assert file.status == "unreadable" and said in (file.note or "")

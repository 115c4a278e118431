"""Sources without latencies: trouble tickets, and the daily drive stats of Backblaze."""

from __future__ import annotations

from datetime import date, datetime

import polars as pl
from hypothesis import strategies as st

from ingest.sources.backblaze import follow
from tests.fuzz import fuzz
from tests.ingest.conftest import SHARED, Warehouse, counts, csv_text, needs_shared

DAYS = "date,serial_number,model,capacity_bytes,failure,smart_5_raw,smart_9_raw"


def events(warehouse: Warehouse) -> list[tuple[object, ...]]:
    return warehouse.rows("drive_events", "drive_id occurred_at event_type detail")


def test_a_ticket_is_an_event_and_says_where_the_drive_is(warehouse: Warehouse) -> None:
    text = (
        "model,failure_time,failure,app,disk_id,node_id,rack_id,machine_room_id\n"
        "A2,2018-01-02 19:15:32,1,RM,33722,66688,11488,455\nA2,2018-01-02 19:15:32,1,RM,33722,66688,11488,455\n"
        "A2,2018-02-01 00:00:00,0,RM,5,1,1,1\nA2,whenever,1,RM,6,1,1,1\nA2,2018-03-01 00:00:00,1,RM,,1,1,1\n"
        "A2,2018-03-02 00:00:00,1,RM,33722,7,8,9\n"
    )
    assert counts(warehouse.land("tickets", {"a.csv": text})) == (6, 2, 3, 1, 0)
    assert events(warehouse) == [
        ("A2-33722", datetime(2018, 1, 2, 19, 15, 32), "other", "ticket: RM"), ("A2-33722", datetime(2018, 3, 2), "other", "ticket: RM"),
    ]  # fmt: skip
    assert warehouse.rows("drives", "drive_id model host enclosure site") == [("A2-33722", "A2", "7", "8", "9")]
    assert warehouse.rejected("row column") == [(3, "failure"), (4, "occurred_at"), (5, "drive_id")]
    assert counts(warehouse.land("tickets", {"b.csv": text + "\n"})) == (6, 0, 3, 3, 0)


def test_a_tracker_may_name_its_columns_otherwise(warehouse: Warehouse) -> None:
    header = "id,serial,opened_at,closed_at,type,summary\n"
    text = header + "7,S1,2026-01-05T10:00:00+01:00,2026-01-06,media_error,clicks\n8,S1,2026-02-05,,dropped,\n"
    warehouse.land("tickets", {"a.csv": text})
    assert events(warehouse) == [
        ("S1", datetime(2026, 1, 5, 9), "media_error", "ticket: clicks"), ("S1", datetime(2026, 2, 5), "other", "dropped: ticket"),
    ]  # fmt: skip
    (file,) = warehouse.land("tickets", {"b.csv": "name,when\nx,y\n"}).files
    assert file.status == "unreadable" and "required column" in (file.note or "")
    (file,) = warehouse.land("tickets", {"c.csv": "drive,created_at,event\nx,y,z\n"}).files
    assert (file.note or "").startswith("required column drive_id (or serial_number or serial or disk_id) is missing; ")
    assert (file.note or "").endswith("found drive, created_at, event; rename drive to drive_id?")


def day(of: str, *drives: str, failed: str = "", hours: int = 48) -> str:
    rows = [f"{of},{drive},M1,1000,{int(drive == failed)},,{hours}" for drive in drives]
    return csv_text(*rows, header=DAYS)


def test_drives_that_disappear_come_back_or_fail_are_proxies_of_events(warehouse: Warehouse) -> None:
    days = {
        "1.csv": day("2026-01-01", "A", "B", "C", "D"), "2.csv": day("2026-01-02", "A", "B", failed="B", hours=72),
        "4.csv": day("2026-01-04", "A", "C"), "5.csv": day("2026-01-05", "A", "C", "E"),
    }  # fmt: skip
    assert counts(warehouse.land("backblaze", days)) == (11, 11, 0, 0, 0)
    d = [datetime(2026, 1, n) for n in range(1, 6)]
    assert events(warehouse) == [
        ("B", d[1], "unplug", "proxy: marked failed on this day"),
        ("C", d[1], "unplug", "proxy: missing from this day"),
        ("C", d[3], "replug", "proxy: there again"),  # nobody was looked for on the third: no file came
        ("D", d[1], "unplug", "proxy: missing from this day"),
    ]
    drives = warehouse.rows("drives", "drive_id deployed_on valid_from valid_to")
    since = date(2025, 12, 30)
    assert drives == [
        ("A", since, d[0], None), ("B", since, d[0], d[2]), ("C", since, d[0], None), ("D", since, d[0], None),
        ("E", date(2026, 1, 3), d[4], None),
    ]  # fmt: skip


def test_bad_days_cost_their_row(warehouse: Warehouse) -> None:
    text = (
        day("2026-01-01", "A") + "2026-13-01,B,M,1,0,,1\n2026-01-01,,M,1,0,,1\n2026-01-01,C,M,1,2,,1\n2026-01-01,D,M,x,0,,x\n2026-01-01,E\n"
    )
    assert counts(warehouse.land("backblaze", {"a.csv": text})) == (6, 2, 4, 0, 0)
    assert warehouse.live("drives")["drive_id"].sort().to_list() == ["A", "D"]
    assert warehouse.table("rejected_records")["column"].to_list() == ["date", "serial_number", "failure", None]


def test_a_capacity_that_no_drive_has_is_unknown(warehouse: Warehouse) -> None:
    capacities = {"A": -1, "B": 0, "C": 600_332_565_813_390_450, "D": 20_000_588_955_648}
    rows = "".join(f"2026-01-01,{drive},M,{capacity},0,,1\n" for drive, capacity in capacities.items())
    assert counts(warehouse.land("backblaze", {"a.csv": f"{DAYS}\n{rows}"})) == (4, 4, 0, 0, 0)
    assert warehouse.live("drives").sort("drive_id")["capacity_bytes"].to_list() == [None, None, None, 20_000_588_955_648]


def test_a_vault_gives_groups_of_its_tomes(warehouse: Warehouse) -> None:
    text = "date,serial_number,model,failure,vault_id,pod_id,pod_slot_num\n2026-01-01,A,M,0,1105,1105-3,17\n"
    warehouse.land("backblaze", {"a.csv": text})
    assert warehouse.rows("drives", "raid_group_id host slot") == [("1105/tome/17", "1105-3", "17")]


def test_any_days_are_followed() -> None:
    days = st.dictionaries(
        st.dates(date(2026, 1, 1), date(2026, 1, 12)), st.dictionaries(st.sampled_from("ABCD"), st.booleans(), min_size=1), min_size=1
    )

    def check(given: dict[date, dict[str, bool]]) -> None:
        columns = ("datacenter", "vault_id", "pod_id", "pod_slot_num")
        frames = {
            on: [
                pl.DataFrame(
                    [{"date": on, "serial_number": drive, "model": "M", "capacity_bytes": 1, "failure": int(failed), "smart_9_raw": 1,
                      **dict.fromkeys(columns), "row_no": n + 1, "file_no": 1} for n, (drive, failed) in enumerate(drives.items())],
                    schema_overrides=dict.fromkeys(columns, pl.String()),
                )
            ]
            for on, drives in given.items()
        }  # fmt: skip
        seen, told = follow(frames)
        assert set(seen["serial_number"]) == {drive for drives in given.values() for drive in drives}
        ordered = sorted(given)
        for drive, of_drive in told.group_by("drive_id"):
            plugs = of_drive.sort("occurred_at").filter(~pl.col("detail").str.contains("failed"))["event_type"].to_list()
            assert plugs == (["unplug", "replug"] * len(plugs))[: len(plugs)], (drive, plugs)
            assert all(at.date() in ordered for at in of_drive["occurred_at"])

    fuzz(days, check, "days of drives")


@needs_shared
def test_real_tickets_and_a_real_day(warehouse: Warehouse) -> None:
    tickets = warehouse.land("tickets", SHARED / "data/alibaba_ssd_failure_tag/ssd_failure_tag.csv.gz", kind="ssd")
    day = warehouse.land("backblaze", SHARED / "data/backblaze/2013-04-10.csv.gz", kind="disk")
    assert (counts(tickets), counts(day)) == ((18_387, 18_387, 0, 0, 0), (21_195, 21_195, 0, 0, 0))
    assert warehouse.live("drives").group_by("kind").len().sort("kind").rows() == [("disk", 21_195), ("ssd", 18_387)]

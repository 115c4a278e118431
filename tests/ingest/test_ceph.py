"""Ceph: what its tools and its mgr module print, to drives with peers; and what breaks them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import IngestSummary, ingest
from ingest.contract.errors import IngestError
from ingest.reading.hosts import json_documents
from ingest.reading.readers import whole
from tests.ingest.conftest import Warehouse, counts
from tests.ingest.prometheus_server import Server, labels, serving

AT = datetime(2026, 1, 5, 10)
TS = int(AT.replace(tzinfo=UTC).timestamp())


def perf(**commit_ns: int) -> dict[str, Any]:
    """`osd perf` of Nautilus and later."""
    infos = [
        {"id": int(osd[1:]), "perf_stats": {"commit_latency_ms": ns // 10**6, "apply_latency_ms": 0, "commit_latency_ns": ns}}
        for osd, ns in commit_ns.items()
    ]
    return {"osdstats": {"osd_perf_infos": infos}}


def metadata(osd: int, host: str = "h1", device: str = "sda", serial: str | None = None, **more: Any) -> dict[str, Any]:
    """`osd metadata` of Reef, shortened."""
    return {
        "id": osd, "bluestore_bdev_dev_node": f"/dev/{device}", "bluestore_bdev_devices": device, "bluestore_bdev_size": "536870912000",
        "bluestore_bdev_type": "hdd", "bluestore_bdev_rotational": "1", "ceph_version_short": "18.2.4", "default_device_class": "hdd",
        "device_ids": f"{device}=ATA_ST4000NM_{serial or f'S{osd}'}", "devices": device, "hostname": host, "osd_objectstore": "bluestore",
        **more,
    }  # fmt: skip


def tree(*osds: int, cls: str = "hdd", root: str = "default", host: str = "h1") -> dict[str, Any]:
    nodes = [{"id": -1, "name": root, "type": "root", "type_id": 11, "children": [-2]}]
    nodes += [{"id": -2, "name": host, "type": "host", "type_id": 1, "children": list(osds)}]
    nodes += [{"id": osd, "device_class": cls, "name": f"osd.{osd}", "type": "osd", "status": "up", "reweight": 1.0} for osd in osds]
    return {"nodes": nodes, "stray": []}


def pgs(*found: tuple[str, list[int]]) -> dict[str, Any]:
    return {
        "pg_ready": True,
        "pg_stats": [{"pgid": f"1.{n}", "state": state, "up": osds, "acting": osds} for n, (state, osds) in enumerate(found)],
    }


def ceph(looks: dict[int, list[Any]]) -> str:
    """Looks at a cluster, by second: the tool begins with an empty line, and most commands end without a new one."""
    return "".join(
        f"TS {TS + second}\n" + "".join(f"\n{each if isinstance(each, str) else json.dumps(each)}" for each in documents)
        for second, documents in looks.items()
    )


def land(warehouse: Warehouse, looks: dict[int, list[Any]]) -> IngestSummary:
    return warehouse.land("ceph", {"prod/ceph.txt": ceph(looks)})


def test_an_osd_is_compared_within_its_root_and_class(warehouse: Warehouse) -> None:
    flash, mapped = metadata(1, device="nvme0n1", bluestore_bdev_type="ssd"), metadata(2, device="dm-1", bluestore_bdev_devices="sdc")
    shadow = {"id": -9, "name": "default~hdd", "type": "root", "children": [0, 1, 2]}
    looks = {0: [[metadata(0), flash, mapped], {**tree(0, 2), "nodes": [shadow, *tree(0, 2)["nodes"], *tree(1, cls="ssd")["nodes"][2:]]}]}
    looks |= {second: [perf(o0=4_000_000, o1=90_000, o2=0)] for second in range(300, 3601, 300)}
    assert land(warehouse, looks).rows_rejected == 0
    hours = warehouse.rows("drive_hours", "drive_id raid_group_id hour_utc latency_us coverage is_alias")
    covered = 3300 / 3600  # what the first look says began before the hour
    assert hours == [
        ("h1/nvme0n1", "prod/default/ssd", AT, 90.0, covered, True),
        ("h1/sda", "prod/default/hdd", AT, 4000.0, covered, True),
        ("h1/sdc", "prod/default/hdd", AT, None, covered, True),
    ]
    drives = warehouse.rows("drives", "drive_id model kind capacity_bytes is_group_guessed")
    assert drives == [
        ("h1/nvme0n1", "ATA ST4000NM", "ssd", 536_870_912_000, False),
        ("h1/sda", "ATA ST4000NM", "disk", 536_870_912_000, False),
        ("h1/sdc", None, "disk", None, False),
    ]
    assert warehouse.rows("drive_aliases", "alias drive_id") == [("h1/nvme0n1", "S1"), ("h1/sda", "S0")]


def test_a_description_that_is_known_is_not_landed_again(warehouse: Warehouse) -> None:
    for hour, serial in enumerate(("S0", "S0", "S0", "NEW")):
        at = 3600 * hour
        looks = {at: [[metadata(0, serial=serial)], tree(0)]} | {at + second: [perf(o0=1)] for second in range(300, 3601, 300)}
        land(warehouse, looks)
    new = AT + timedelta(hours=3)
    assert warehouse.rows("drives", "valid_from drive_id") == [(AT, "h1/sda"), (new, "h1/sda")]
    # until when S0 was there
    looks = [(AT + timedelta(hours=hour), "S0") for hour in range(3)]
    assert warehouse.rows("drive_aliases", "valid_from drive_id") == [*looks, (new, "NEW")]


def test_osds_of_one_drive_are_one_and_a_database_is_not_their_drive(warehouse: Warehouse) -> None:
    shared = [metadata(0, device="nvme0n1", serial="N"), metadata(1, device="nvme0n1", serial="N")]
    with_db = metadata(2, device="sdb", devices="nvme1n1,sdb", bluefs_db_devices="nvme1n1")
    listed = [{"devid": f"M_{dev}", "location": [{"host": "h1", "dev": dev}], "daemons": ["osd.2"]} for dev in ("nvme1n1", "sdb")]
    old = [{"devid": "WDC_W_S9", "location": [{"host": "h9", "dev": "sdq"}], "daemons": ["osd.9", "mon.a"]}]
    looks = {0: [[*shared, with_db], listed, old]} | {
        60 * n: [perf(o0=100_000, o1=300_000, o2=5_000_000, o9=7_000_000)] for n in range(1, 40)
    }
    land(warehouse, looks)
    hours = warehouse.rows("drive_hours", "drive_id latency_us raid_group_id is_group_guessed")
    assert hours == [("h1/nvme0n1", 200.0, "h1", True), ("h1/sdb", 5000.0, "h1", True), ("h9/sdq", 7000.0, "h9", True)]


def every(minutes: int, looked: list[Any], last: int = 7200) -> dict[int, list[Any]]:
    """Looks at an interval, each of which prints the same."""
    return dict.fromkeys(range(0, last + 1, 60 * minutes), looked)


def test_a_remade_osd_has_no_drive_until_a_look_finds_one(warehouse: Warehouse) -> None:
    """Its metadata are looked at on the half hour: at 10:30 they find sdg, at 11:30 sdx. What recovers is sdx from then on."""
    looks = every(5, [perf(o5=8_000_000), pgs(("active+remapped+backfilling", [5]))])
    for second, device, serial in ((1800, "sdg", "OLD"), (5400, "sdx", "NEW")):
        looks[second] = [[metadata(5, device=device, serial=serial)], *looks[second]]
    summary = land(warehouse, looks)
    half, later = AT + timedelta(minutes=30), AT + timedelta(minutes=90)
    assert warehouse.rows("drive_hours", "drive_id hour_utc from_utc to_utc coverage") == [
        ("h1/sdg", AT, None, half, 0.5),
        ("h1/sdx", AT + timedelta(hours=1), later, None, 0.5),
    ]
    (reason,) = {row["reason"] for row in summary.rejected}
    assert reason == "the OSD moved from h1/sdg to h1/sdx between two looks at its drive" and summary.rows_rejected == 11
    rebuilt = warehouse.rows("drive_events", "drive_id event_type occurred_at ended_at")
    assert rebuilt == [("h1/sdg", "rebuild", AT, half + timedelta(minutes=5)), ("h1/sdx", "rebuild", later, AT + timedelta(hours=2))]
    assert warehouse.rows("drives", "drive_id slot valid_from") == [("h1/sdg", "osd.5", half), ("h1/sdx", "osd.5", later)]


def test_an_hour_in_which_another_drive_takes_a_device_has_spans(warehouse: Warehouse) -> None:
    """Until 10:20 OLD is found on sdg, from 10:40 on NEW."""
    looks = every(5, [perf(o5=8_000_000)], 3600)
    for minute, serial in ((0, "OLD"), (20, "OLD"), (40, "NEW"), (50, "NEW")):
        looks[60 * minute] = [[metadata(5, device="sdg", serial=serial)], *looks[60 * minute]]
    assert land(warehouse, looks).rows_rejected == 0
    old, new, last = (AT + timedelta(minutes=minute) for minute in (20, 40, 50))
    assert warehouse.rows("drive_aliases", "alias drive_id valid_from valid_to") == [
        ("h1/sdg", "NEW", new, last),
        ("h1/sdg", "OLD", AT, old),
    ]
    assert warehouse.rows("drive_hours", "from_utc to_utc coverage", hour_utc=AT) == [
        (None, old, pytest.approx(1 / 3)), (old, new, pytest.approx(1 / 3)), (new, None, pytest.approx(1 / 3)),
    ]  # fmt: skip
    assert warehouse.rows("drives", "drive_id valid_from") == [("h1/sdg", AT), ("h1/sdg", new)]


@pytest.mark.parametrize(("minutes", "latency_us", "covered_minutes"), [((5, 10), 34_500, 5), ((5, 40), 56_000, 15)])
def test_a_first_look_long_before_the_next_one_says_nothing_of_its_span(
    minutes: tuple[int, ...], latency_us: float, covered_minutes: int, warehouse: Warehouse
) -> None:
    looks = {60 * minute: [perf(o0=56_000_000 if n else 13_000_000)] for n, minute in enumerate(minutes)}
    land(warehouse, {0: [[metadata(0)]], **looks})
    assert warehouse.rows("drive_hours", "latency_us coverage") == [(latency_us, pytest.approx(covered_minutes / 60))]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("minute", [5, 20, 40])
def test_a_delivery_of_one_look_leaves_the_rest_of_its_hour(order: tuple[int, ...], minute: int, warehouse: Warehouse) -> None:
    """Each delivery begins with the look that the one before ended with, and the second has no other."""
    looks = every(5, [perf(o0=8_000_000)], 3600)
    ends = [second <= 60 * minute for second in looks]
    parts = [ends, [second == 60 * minute for second in looks], [second >= 60 * minute for second in looks]]
    for n in order:
        land(warehouse, {0: [[metadata(0)]]} | {at: found for (at, found), is_of in zip(looks.items(), parts[n], strict=True) if is_of})
    middle = AT + timedelta(minutes=minute)
    spans = {*warehouse.rows("drive_hours", "from_utc to_utc", hour_utc=AT)}
    assert (middle, None) in spans and {until for _, until in spans - {(middle, None)}} == {middle}


@pytest.mark.parametrize("calls", [[("a", "b")], [("a",), ("b",)], [("b",), ("a",), ("a", "b")]])
def test_hosts_of_one_name_in_two_clusters_are_two(calls: list[tuple[str, ...]], warehouse: Warehouse) -> None:
    """h1/sda is S1 in the one and T1 in the other. h2 is one machine: both clusters find T9 there, each on its part of it."""

    def looks(own: str, ns: int) -> str:
        osds = [metadata(1, serial=f"{own}1"), metadata(2, host="h2", serial=f"{own}2"), metadata(3, host="h2", device="sdb", serial="T9")]
        return ceph({0: [osds, tree(1, 2, 3)], 300: [perf(o1=ns, o2=ns)], 600: [perf(o1=ns, o2=ns)]})

    texts = {"a": looks("S", 8_000_000), "b": looks("T", 40_000_000)}
    notes = [file.note for call in calls for file in warehouse.land("ceph", {f"{name}/ceph.txt": texts[name] for name in call}).files]
    serial = dict(warehouse.rows("drive_aliases", "alias drive_id"))
    hours = {(serial[drive], latency) for drive, latency in warehouse.rows("drive_hours", "drive_id latency_us") if "h1" in drive}
    assert hours == {("S1", 8000.0), ("T1", 40_000.0)}
    assert any(note and "other drives" in note and "h1@" in note for note in notes)
    assert not any("h2@" in drive for drive in serial)


@pytest.mark.parametrize("serial", ["drive-scsi0", "0000"])
def test_virtual_hosts_of_one_name_in_two_clusters_are_two(serial: str, warehouse: Warehouse) -> None:
    """Every virtual machine has the same serial number, or a placeholder."""
    osds = [metadata(1, serial=serial), metadata(2, host="h2", serial=serial)]
    texts = {
        f"{name}/ceph.txt": ceph({0: [osds, tree(1, 2)], 300: [perf(o1=ns)], 600: [perf(o1=ns)]}) for name, ns in (("a", 8), ("b", 40))
    }
    warehouse.land("ceph", texts)
    assert set(warehouse.rows("drive_hours", "drive_id latency_us")) == {("h1@a/sda", 0.008), ("h1@b/sda", 0.04)}


def test_osds_of_a_drive_are_named_with_it(warehouse: Warehouse) -> None:
    """osd.7 leaves sda for sdb; osd.3 and osd.5 stay."""
    before = [metadata(osd, device="sda", serial="A") for osd in (5, 3, 7)]
    after = [metadata(3, device="sda", serial="A"), metadata(5, device="sda", serial="A"), metadata(7, device="sdb", serial="B")]
    land(warehouse, {0: [before], 60: [after], 120: [after]})
    found = warehouse.rows("drives", "drive_id valid_from slot")
    minute = AT + timedelta(minutes=1)
    assert found == [("h1/sda", AT, "osd.3, osd.5, osd.7"), ("h1/sda", minute, "osd.3, osd.5"), ("h1/sdb", minute, "osd.7")]


def test_devices_of_databases_are_compared_with_each_other(warehouse: Warehouse) -> None:
    """Two OSDs share nvme0n1 for their databases; of osd.4 it is a part of the drive of its data, and osd.6 keeps a log elsewhere."""
    ids = "nvme0n1=SAMSUNG_MZ_DB0,nvme1n1=SAMSUNG_MZ_DB1,"
    osds = [
        metadata(
            osd,
            device=f"sd{'abcd'[osd]}",
            device_ids=f"{ids}sd{'abcd'[osd]}=ATA_ST_S{osd}",
            bluefs_db_devices="nvme0n1p3",
            bluefs_db_type="ssd",
        )
        for osd in (0, 1)
    ]
    osds.append(metadata(4, device="nvme2n1", bluefs_db_devices="nvme2n1"))
    osds.append(metadata(6, device="sdg", device_ids="nvme1n1=SAMSUNG_MZ_DB1,sdg=ATA_ST_S6", bluefs_wal_devices="nvme1n1"))
    assert land(warehouse, {0: [osds, tree(0, 1, 4, 6)]}).rows_rejected == 0
    assert warehouse.rows("drives", "drive_id raid_group_id slot kind", role="data")[:4] == [
        ("h1/nvme0n1", "prod/db", "db of osd.0, osd.1", "ssd"),
        ("h1/nvme1n1", "prod/wal", "wal of osd.6", None),
        ("h1/nvme2n1", "prod/default/hdd", "osd.4", "disk"),
        ("h1/sda", "prod/default/hdd", "osd.0", "disk"),
    ]
    assert ("h1/nvme0n1", "DB0") in warehouse.rows("drive_aliases", "alias drive_id")


@pytest.mark.parametrize(
    ("devices", "ids", "drive", "reason"),
    [
        ("sde,sdb", "sdb=SEAGATE_ST_Q7,sde=SEAGATE_ST_Q7", "h1/sdb", None),
        ("sdb,sde", "sdb=SEAGATE_ST_Q7,sde=SEAGATE_ST_Q8", None, "the OSD is on several drives: sdb,sde"),
        ("sdb,sde", "sdb=SEAGATE_ST_0000,sde=SEAGATE_ST_0000", None, "the OSD is on several drives: sdb,sde"),
        ("sdb,sde", "", None, "the OSD is on several drives: sdb,sde"),
        ("dm-4", "", None, "the OSD is not on one drive of its own: dm-4"),
    ],
)
def test_two_devices_are_one_drive_only_with_one_serial_number(
    devices: str, ids: str, drive: str | None, reason: str | None, warehouse: Warehouse
) -> None:
    osd = metadata(2, bluestore_bdev_devices=devices, device_ids=ids)
    summary = land(warehouse, every(5, [perf(o2=1, o9=1)], 600) | {0: [[osd, metadata(9, device="sdz")]]})
    assert {row["reason"] for row in summary.rejected if row["column"] == "id"} == ({reason} if reason else set())
    assert warehouse.live()["drive_id"].unique().sort().to_list() == sorted(filter(None, (drive, "h1/sdz")))


def test_a_serial_number_that_is_a_placeholder_names_no_drive(warehouse: Warehouse) -> None:
    summary = land(warehouse, {0: [[metadata(0, serial="0000000000"), metadata(1, device="sdb")]]})
    assert warehouse.rows("drive_aliases", "alias") == [("h1/sdb",)]
    assert "'0000000000' is a placeholder" in str(summary.files[0].note)


def test_a_file_larger_than_the_memory_for_it_is_read(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.reading.hosts.MAX_BYTES", 2_000)
    monkeypatch.setattr("ingest.sources.ceph._MOST_ENTRIES", 3)
    looks = {0: [[metadata(0)]]} | every(5, [perf(o0=4_000_000), pgs(*[("active+clean", [0])] * 20)])
    assert len(ceph(looks)) > 20_000
    summary = land(warehouse, looks | {0: [[metadata(0)]]})
    assert counts(summary) == (49, 49, 0, 0, 0) and warehouse.live().height == 2
    endless = warehouse.land("ceph", {"prod/ceph-2": ceph({0: [pgs(*[("active+clean", [0])] * 200)]})})
    assert "a line is longer than" in str(endless.unreadable[0].note)


def test_deep_scrub_and_recovery_are_events_of_the_drives_they_touch(warehouse: Warehouse) -> None:
    deep, recovers = "active+clean+scrubbing+deep", "active+undersized+degraded+remapped+backfilling"
    looks: dict[int, list[Any]] = {
        0: [[metadata(0), metadata(1, device="sdb")], pgs(("active+clean", [0, 1]), (deep, [0]))],
        600: [pgs((deep, [0]), ("active+clean+scrubbing", [1]), ("active+recovery_wait", [1]))],
        1200: [pgs((recovers, [1, 2**31 - 1]))],
        1800: [pgs((deep, [0, 1]))],
    }
    land(warehouse, looks)
    events = warehouse.rows("drive_events", "drive_id event_type occurred_at ended_at")
    minutes = [AT + timedelta(minutes=10 * n) for n in range(4)]
    assert events == [
        ("h1/sda", "scrub", minutes[0], minutes[2]),
        ("h1/sda", "scrub", minutes[3], None),
        ("h1/sdb", "rebuild", minutes[2], minutes[3]),
        ("h1/sdb", "scrub", minutes[3], None),
    ]


@pytest.mark.parametrize(
    ("document", "column", "value"),
    [
        ({"osd_perf_infos": [{"id": 0, "perf_stats": {"commit_latency_ms": -1}}]}, "commit_latency_ms", "-1"),
        ({"osd_perf_infos": [{"id": "0", "perf_stats": {}}]}, "id", "0"),
        ([metadata(0, hostname="")], "hostname", None),
        ([metadata(0, bluestore_bdev_devices="sda,sdb")], "bluestore_bdev_devices", "sda,sdb"),
        ({"nodes": [{"id": 3, "type": "osd"}]}, "id", "3"),
        ([{"devid": "A_B", "location": None, "daemons": []}], "devid", "A_B"),
        ({"pg_stats": [{"pgid": "1.0", "state": None}]}, "state", "1.0"),
        ('{"osdstats": {"osd_perf_infos": [{"id"', "document", '{"osdstats": {"osd_perf_infos": [{"id"'),
        ({"health": "HEALTH_OK"}, "document", '{"health": "HEALTH_OK"}'),
    ],
)
def test_broken_input_is_named_and_costs_nothing_else(document: Any, column: str, value: str, warehouse: Warehouse) -> None:
    summary = land(warehouse, {0: [[metadata(7)], perf(o7=1)], 60: [document]})
    (rejected,) = warehouse.table("rejected_records").to_dicts()
    assert (rejected["column"], rejected["value"]) == (column, value) and rejected["row"] >= 3
    assert rejected["file"].endswith("prod/ceph.txt") and summary.rows_rejected == 1
    assert warehouse.live()["drive_id"].to_list() == ["h1/sda"]


def test_an_osd_without_a_drive_and_a_text_without_osds_are_refused(warehouse: Warehouse) -> None:
    summary = warehouse.land("ceph", {"prod/ceph.txt": ceph({0: [perf(o3=1)]}), "prod/ceph-empty": ceph({0: []})})
    assert [file.note for file in summary.unreadable] == ["nothing of an OSD is in it; was ceph called with `-f json`?"]
    assert [(row["row"], row["value"]) for row in summary.rejected] == [(1, "osd.3")]
    assert "add `ceph osd metadata -f json`" in summary.rejected[0]["reason"]


@given(
    st.lists(st.one_of(st.integers(), st.dictionaries(st.text(), st.integers()), st.lists(st.text()))), st.sampled_from(["", "\n", " \n\n"])
)
@settings(max_examples=50, deadline=None)
def test_documents_come_apart_however_they_follow_each_other(documents: list[Any], between: str) -> None:
    text = f"{between or ' '}".join(json.dumps(each, indent=len(documents) % 3 or None) for each in documents)
    assert list(json_documents(text)) == [json.loads(json.dumps(each), parse_int=whole) for each in documents]


def test_a_pull_of_the_mgrs_metrics_lands_the_same_drives(warehouse: Warehouse) -> None:
    scrapes = [float(TS + 60 * minute) for minute in range(121)]
    series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for osd in range(4):
        of = {"ceph_daemon": f"osd.{osd}", "instance": "mgr:9283", "job": "ceph"}
        series[labels("ceph_osd_commit_latency_ms", **of)] = [(at, 40.0 if osd == 3 else 4.0) for at in scrapes]
        series[labels("ceph_osd_metadata", **of, hostname="h1", device_class="hdd")] = [(at, 1.0) for at in scrapes]
        # two are logical volumes with their databases on a drive of flash
        on = f"sd{'abcd'[osd]}"
        drives = {"device": f"/dev/{on}", "devices": on, "device_ids": f"{on}=ATA_ST4000NM_S{osd}"}
        if osd > 1:
            drives |= {"device": f"/dev/dm-{osd}", "db_device": "/dev/dm-9", "devices": f"nvme0n1,{on}"}
        series[labels("ceph_disk_occupation", **of, exported_instance="h1", **drives)] = [(at, 1.0) for at in scrapes]
        series[labels("ceph_osd_recovery_ops", **of)] = [(at, float(osd == 2 and at > TS + 1000)) for at in scrapes]
    with serving(Server(series)) as server:
        summary = ingest(
            "ceph", server.url, warehouse.path, first=AT, end=AT + timedelta(hours=2), source_options={"match": ['job="ceph"']}
        )
        assert summary.rows_rejected == 0 and all('job="ceph"' in asked["query"] for _, asked in server.asked)
    hours = warehouse.live().sort("hour_utc", "drive_id")
    assert hours.filter(hour_utc=AT + timedelta(hours=1)).select("drive_id", "raid_group_id", "latency_us", "coverage").rows() == [
        (f"h1/sd{letter}", "ceph/hdd", 40_000.0 if letter == "d" else 4000.0, 1.0) for letter in "abcd"
    ]
    (event,) = warehouse.rows("drive_events", "drive_id event_type occurred_at")
    assert event == ("h1/sdc", "rebuild", AT + timedelta(seconds=1200))
    aliases = warehouse.rows("drive_aliases", "alias drive_id")
    assert aliases == [(f"h1/sd{letter}", f"S{osd}") for osd, letter in enumerate("abcd")]
    assert not list(warehouse.path.glob("pulled/**/*.ceph"))


Points = dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]


def exported(
    osd: int, host: str, device: str, serial: str, ms: float, minutes: tuple[int, int] = (0, 120), ids: str = "", **target: str
) -> Points:
    """Series that the mgr exports of an OSD in these minutes; ids: of other devices that it lists."""
    of = {"ceph_daemon": f"osd.{osd}", "job": "ceph", "instance": "mgr:9283", **target}
    scrapes = [float(TS + 60 * minute) for minute in range(minutes[0] + 1, minutes[1])]
    listed = ",".join(each.partition("=")[0] for each in [*filter(None, ids.split(",")), device])
    occupied = {
        "device": "/dev/dm-9" if ids else f"/dev/{device}",
        "devices": listed,
        "device_ids": ids + ("," if ids else "") + f"{device}=W_X_{serial}",
    }
    return {
        labels("ceph_osd_commit_latency_ms", **of): [(at, ms) for at in scrapes],
        labels("ceph_osd_metadata", **of, hostname=host, device_class="hdd"): [(at, 1.0) for at in scrapes],
        labels("ceph_disk_occupation", **of, exported_instance=host, **occupied): [(at, 1.0) for at in scrapes],
    }


def together(*found: Points) -> Points:
    series: Points = {}
    for points in found:
        for key, samples in points.items():
            series.setdefault(key, []).extend(samples)
    return series


def pull(warehouse: Warehouse, series: Points, **options: Any) -> IngestSummary:
    with serving(Server(series)) as server:
        return ingest("ceph", server.url, warehouse.path, first=AT, end=AT + timedelta(hours=2), source_options=options)


@pytest.mark.parametrize("device", ["sdx", "sdg"])
def test_an_osd_remade_within_a_pull_leaves_its_hours_to_the_old_drive(device: str, warehouse: Warehouse) -> None:
    """At 11:00 osd.5 gets another drive, in another slot or the same; its database stays."""
    series = together(
        exported(1, "h1", "sdb", "B", 8, ids="nvme0n1=S_Y_DB"), exported(2, "h1", "sdc", "C", 8, ids="nvme0n1=S_Y_DB"),
        exported(5, "h1", "sdg", "OLD", 24, (0, 60), "nvme0n1=S_Y_DB"), exported(5, "h1", device, "NEW", 8, (60, 120), "nvme0n1=S_Y_DB"),
    )  # fmt: skip
    summary = pull(warehouse, series)
    assert summary.rows_rejected == 0 and any("(no ceph_osd_recovery_ops): scrape ceph-exporter" in note for note in summary.notes)
    eleven = AT + timedelta(hours=1)
    found = warehouse.rows("drive_aliases", "alias drive_id valid_from valid_to")
    first = AT + timedelta(minutes=5)
    assert ("h1/sdg", "OLD", first, eleven) in found
    assert (f"h1/{device}", "NEW", eleven + timedelta(minutes=5), AT + timedelta(hours=2)) in found
    hours = warehouse.live().filter(pl.col("drive_id").is_in(["h1/sdg", f"h1/{device}"])).filter(pl.col("coverage") > 0.5)
    assert hours.sort("hour_utc").select("drive_id", "hour_utc", "latency_us").rows() == [
        ("h1/sdg", AT, 24_000.0), (f"h1/{device}", eleven, 8000.0),
    ]  # fmt: skip
    assert ("h1/nvme0n1", "ceph/db", "db of osd.1, osd.2, osd.5") in warehouse.rows("drives", "drive_id raid_group_id slot")


@pytest.mark.parametrize(
    ("one", "other", "groups"),
    [
        ({"namespace": "rook-a"}, {"namespace": "rook-b"}, {"rook-a/hdd", "rook-b/hdd"}),
        ({"namespace": "a", "pod": "x", "job": "j"}, {"namespace": "b", "pod": "y", "job": "k"}, {"a/hdd", "b/hdd"}),
        ({"job": "ceph-a", "pod": "x"}, {"job": "ceph-b", "pod": "y"}, {"ceph-a/hdd", "ceph-b/hdd"}),
        ({"cluster": "k8s", "namespace": "a"}, {"cluster": "k8s", "namespace": "b"}, {"k8s@a/hdd", "k8s@b/hdd"}),
        ({"cluster": "east"}, {"cluster": "west"}, {"east/hdd", "west/hdd"}),
    ],
)
def test_clusters_with_the_same_numbers_go_by_the_label_that_differs(
    one: dict[str, str], other: dict[str, str], groups: set[str], warehouse: Warehouse
) -> None:
    """Equal latencies are no sign of one cluster; osd.0 is on k1 and on k2."""
    series = together(
        *(
            exported(osd, host, f"sd{'ab'[osd]}", f"{host}-{osd}", 8, (0, 120), "", **of)
            for osd in (0, 1)
            for host, of in (("k1", one), ("k2", other))
        )
    )
    summary = pull(warehouse, series)
    hours = warehouse.live()
    assert set(hours["raid_group_id"]) == groups and hours.filter(pl.col("coverage") > 0.5)["drive_id"].n_unique() == 4
    told = [note for note in summary.notes if "tells them apart" in note]
    assert len(told) == (0 if one.get("cluster") == "east" else 1) and summary.rows_superseded == 0


def test_two_calls_for_two_clusters_name_them_by_what_they_match(warehouse: Warehouse) -> None:
    series = together(*(exported(0, f"k{name}", "sda", f"S{name}", 8, namespace=f"rook-{name}") for name in "ab"))
    for name in "ab":
        pull(warehouse, series, match=[f'namespace="rook-{name}"'])
    assert set(warehouse.live().select("drive_id", "raid_group_id").rows()) == {("ka/sda", "rook-a/hdd"), ("kb/sda", "rook-b/hdd")}


def test_clusters_without_a_lasting_label_are_refused(warehouse: Warehouse) -> None:
    series = together(*(exported(0, f"k{name}", "sda", f"S{name}", 8, instance=f"mgr-{name}:9283") for name in "ab"))
    with pytest.raises(IngestError, match=r"osd.0 is on ka and kb at once.*--match 'instance=\"mgr-a:9283\"'"):
        pull(warehouse, series)


def test_two_scrapes_of_one_cluster_are_one(warehouse: Warehouse) -> None:
    """Another pod answers for the last hour, and for ten minutes both do; a replica of the server has all of it again."""
    pods = [
        exported(0, "k1", "sda", "S", 8, minutes, pod=pod, instance=f"{pod}:9283") for pod, minutes in (("x", (0, 70)), ("y", (60, 120)))
    ]
    summary = pull(warehouse, together(*pods, exported(0, "k1", "sda", "S", 9, replica="1")))
    assert set(warehouse.live()["raid_group_id"]) == {"ceph/hdd"} and warehouse.live().height == 2
    assert not any("apart" in note for note in summary.notes)


def test_the_slow_drive_of_a_real_cluster_is_named(warehouse: Warehouse) -> None:
    """Recorded from Ceph 16.2.15 while osd.4 was stopped five sixths of the time; drives were named, looks moved apart."""
    text, seconds = (Path(__file__).parent / "ceph_16.2.15.txt").read_text(), count(TS, 900)
    text = re.sub(r"TS \d+$", lambda _: f"TS {next(seconds)}", text, flags=re.MULTILINE)
    assert warehouse.land("ceph", {"prod/ceph.txt": text}).rows_rejected == 0
    raised = warehouse.built("select subject_id, raid_group_id, round(max_slowdown, 1) from marts.fct_slow_alerts")
    named = warehouse.built("select model, kind, host from marts.dim_drives where drive_id = 'Q4'")
    assert raised == [("Q4", "prod/default/hdd", 6.2)] and named == [("QEMU HARDDISK", "disk", "vm")]


def test_the_slow_drive_of_a_real_cluster_is_named_from_prometheus(warehouse: Warehouse) -> None:
    """Scraped from Ceph 16.2.15 while osd.4 was stopped eight ninths of the time; each scrape lasts two hours, drives get names."""
    recorded = (Path(__file__).parent / "ceph_16.2.15.prom").read_text().replace("/dev/loop", "/dev/sd").replace('"loop', '"sd')
    recorded = re.sub(r'devices="(sd\d)",device_ids="N/A"', r'devices="\1",device_ids="\1=QEMU_DISK_\1"', recorded)
    recorded = re.sub(r"sd(\d)", lambda disk: f"sd{'abcde'[int(disk[1])]}", recorded)
    series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for number, look in enumerate(recorded.split("# TS ")[1:]):
        for metric, text, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", look, re.MULTILINE):
            given = dict(re.findall(r'(\w+)="(.*?)"', text))
            # Prometheus renames the exporter's `instance`, because the target has that label too
            given |= {"exported_instance": given["instance"]} if "instance" in given else {}
            lasts = 480 if metric in ("ceph_osd_metadata", "ceph_disk_occupation") else 120
            points = series.setdefault(labels(metric, **given | {"instance": "mgr:9283", "job": "ceph"}), [])
            points += [(float(TS + 60 * minute), float(value)) for minute in range(120 * number, 120 * number + lasts)]
    with serving(Server(series)) as server:
        assert ingest("ceph", server.url, warehouse.path, first=AT, end=AT + timedelta(hours=8)).rows_rejected == 0
    raised = warehouse.built("select subject_id, raid_group_id, round(max_slowdown, 1) from marts.fct_slow_alerts")
    named = warehouse.built("select model, kind, host from marts.dim_drives where drive_id = 'sde'")
    rebuilt = warehouse.rows("drive_events", "drive_id event_type")
    assert (raised, named, rebuilt) == ([("sde", "ceph/hdd", 5.8)], [("QEMU DISK", "disk", "vm")], [("vm/sdb", "rebuild")] * 3)

"""Ceph: what its tools and its mgr module print, to drives with peers; and what breaks them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import IngestSummary, ingest
from ingest.reading.readers import whole
from ingest.sources.ceph import _documents
from tests.ingest.conftest import Warehouse
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


def test_inventory_that_is_known_is_not_landed_again(warehouse: Warehouse) -> None:
    for hour, serial in enumerate(("S0", "S0", "S0", "NEW")):
        at = 3600 * hour
        looks = {at: [[metadata(0, serial=serial)], tree(0)]} | {at + second: [perf(o0=1)] for second in range(300, 3601, 300)}
        land(warehouse, looks)
    new = AT + timedelta(hours=3)
    assert warehouse.rows("drives", "valid_from drive_id") == [(AT, "h1/sda"), (new, "h1/sda")]
    assert warehouse.rows("drive_aliases", "valid_from drive_id") == [(AT, "S0"), (new, "NEW")]


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
    assert list(_documents(text)) == [json.loads(json.dumps(each), parse_int=whole) for each in documents]


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

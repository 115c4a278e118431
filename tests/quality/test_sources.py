"""Deliveries of every source meet the gate: a sound delivery passes it whole, one that no sound fleet sends is held."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest import GateError, ingest, list_deliveries
from ingest.contract.fleet import CONTRACT
from ingest.sources import SOURCES
from quality import Gate
from quality.suites import load_suite
from tests.ingest.conftest import Warehouse

START = datetime(2026, 1, 5, 10)
UNIX = int(START.replace(tzinfo=UTC).timestamp())
DRIVES = 24
DEVICES = [f"sd{chr(97 + number)}" for number in range(DRIVES)]
NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
LATER = int(NOW.replace(tzinfo=UTC).timestamp()) + 30 * 86_400
TIMEOUT = "sd {}:0:0:0: [{}] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s"


def put(folder: Path, name: str, content: str | dict[str, Any]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


# One delivery each: sound, or else with latencies in another unit, sizes in another unit, or a clock that is ahead.


def diskstats(folder: Path, is_sound: bool) -> None:
    looks = [
        f"TS {UNIX + 600 * n}\n" + "".join(f"8 0 {d} {n * 90} 0 {n * 900} {n * 450 * us} 0 0 0 0 0 0 0\n" for d in DEVICES)
        for us in [1 if is_sound else 1000]
        for n in range(2)  # `drivetail collect --once` every ten minutes: the hour is not over
    ]
    put(folder, "web1/diskstats", "".join(looks))


def prometheus(folder: Path, is_sound: bool) -> None:
    counters = {
        "reads_completed_total": 5000, "writes_completed_total": 100, "read_time_seconds_total": 20.5 if is_sound else 20.5e6,
        "write_time_seconds_total": 0.5 if is_sound else 0.5e6, "read_bytes_total": 40_960_000, "written_bytes_total": 819_200,
    }  # fmt: skip
    lines = [
        f'node_disk_{name}{{instance="web1:9100",device="{device}"}} {n * value} {(UNIX + 300 * n) * 1000}'
        for n in range(3)
        for device in DEVICES
        for name, value in counters.items()
    ]
    put(folder, "fleet.prom", "\n".join(lines) + "\n")


def ceph(folder: Path, is_sound: bool) -> None:
    known = [{"id": n, "hostname": "h1", "bluestore_bdev_devices": d, "device_ids": f"{d}=M_S{n}"} for n, d in enumerate(DEVICES)]
    perf = [{"id": n, "perf_stats": {"commit_latency_ms": 4 if is_sound else 10**9}} for n in range(DRIVES)]
    looks = (f"TS {UNIX + 300 * n}\n{json.dumps({'osd_perf_infos': perf})}\n" for n in range(1, 12))
    put(folder, "prod/ceph.txt", f"TS {UNIX}\n{json.dumps(known)}\n" + "".join(looks))


def zfs(folder: Path, is_sound: bool) -> None:
    wait_ns = 4_000_000 if is_sound else 4 * 10**12
    rows = "".join(f"{device}\t-\t-\t90\t0\t81920\t0\t{wait_ns}\t-\t{wait_ns}\t-\n" for device in DEVICES)
    put(folder, "web1/zpool.txt", f"TS {UNIX}\n" + "".join(f"{UNIX + 600 * n}\n{rows}" for n in range(1, 7)))


def sysstat(folder: Path, is_sound: bool) -> None:
    head = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;await\n"
    wait = 4.0 if is_sound else 4e6
    put(folder, "sadf.csv", head + "".join(f"web1;600;{START + timedelta(minutes=10)} UTC;{d};10.00;80.00;40.00;{wait}\n" for d in DEVICES))


def perseus(folder: Path, is_sound: bool) -> None:
    us = 80 if is_sound else 8e7
    rows = [f"{UNIX + 15 * n},{device},1000,{us}" for device in DEVICES for n in range(1, 4)]
    put(folder, "cluster_A/host_1/day.csv", "\n".join(["ts,disk_id,throughput,latency", *rows]) + "\n")


def fio(folder: Path, is_sound: bool) -> None:
    ticks = 4000 if is_sound else 4 * 10**9
    members = [{"name": d, "read_ios": 1000, "write_ios": 0, "read_ticks": ticks, "write_ticks": 0} for d in DEVICES]
    array = {"name": "md0", "read_ios": 1, "write_ios": 1, "aggr_read_ios": 1000, "aggr_write_ios": 0}
    for minute in range(30):  # a run an hour, from now on: the hours of the last are yet to come
        at = int(NOW.replace(tzinfo=UTC).timestamp()) * 1000 - 60_000 * (30 - minute)
        put(
            folder, f"host/array/{minute}.json", {"fio version": "fio-3.33", "timestamp_ms": at, "jobs": [], "disk_util": [array, *members]}
        )


def lsblk(folder: Path, is_sound: bool) -> None:
    size = 4_000_787_030_016 if is_sound else 4000
    for number, device in enumerate(DEVICES):  # a host of one drive each
        one = {"name": device, "type": "disk", "serial": f"S{number}", "size": size, "rota": True, "tran": "sata", "model": "M"}
        put(folder, f"web{number}/lsblk.json", {"blockdevices": [one], "TS": UNIX})


def smartctl(folder: Path, is_sound: bool) -> None:
    size = 4_000_787_030_016 if is_sound else 4000
    for number, device in enumerate(DEVICES):
        document = {
            "smartctl": {"exit_status": 0}, "device": {"name": f"/dev/{device}", "type": "sat", "protocol": "ATA"},
            "serial_number": f"S{number}", "user_capacity": {"bytes": size}, "rotation_rate": 7200,
            "power_on_time": {"hours": 20_000}, "local_time": {"time_t": UNIX},
        }  # fmt: skip
        put(folder, f"web{number}/smartctl-{device}.json", document)


def mdadm(folder: Path, is_sound: bool) -> None:
    members = "".join(f"MD_DEVICE_dev_{d}_ROLE={n}\nMD_DEVICE_dev_{d}_DEV=/dev/{d}\n" for n, d in enumerate(DEVICES))
    array = f"MD_LEVEL=raid6\nMD_DEVICES={DRIVES}\nMD_METADATA=1.2\nMD_UUID=aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n{members}"
    put(folder, "web1/mdadm", f"TS {UNIX if is_sound else LATER}\n{array}")


def mapping(folder: Path, is_sound: bool) -> None:
    size = 4_000_787_030_016 if is_sound else 4000
    rows = [f"web1,{device},S{number},pool-{number // 6},{size}" for number, device in enumerate(DEVICES)]
    put(folder, "mapping.csv", "\n".join(["host,device,drive_id,raid_group_id,capacity_bytes", *rows]) + "\n")


def kernel_log(folder: Path, is_sound: bool) -> None:
    at = START if is_sound else datetime.fromtimestamp(LATER, UTC)
    lines = [f"{at:%Y-%m-%dT%H:%M:%S}+00:00 web1 kernel: {TIMEOUT.format(number, device)}" for number, device in enumerate(DEVICES)]
    put(folder, "web1/kern.log", "\n".join(lines) + "\n")


def tickets(folder: Path, is_sound: bool) -> None:
    at = START if is_sound else datetime.fromtimestamp(LATER, UTC)
    rows = [f"S{number},{at:%Y-%m-%dT%H:%M:%S}Z,media_error,clicks" for number in range(DRIVES)]
    put(folder, "tickets.csv", "\n".join(["serial,opened_at,type,summary", *rows]) + "\n")


def backblaze(folder: Path, is_sound: bool) -> None:
    size = 4_000_787_030_016 if is_sound else 4000
    rows = [f"2026-01-05,S{number},ST4000,{size},{int(number == 0)},{20_000 + number}" for number in range(DRIVES)]
    put(folder, "2026-01-05.csv", "\n".join(["date,serial_number,model,capacity_bytes,failure,smart_9_raw", *rows]) + "\n")


def bundle(folder: Path, is_sound: bool) -> None:
    us = 4000.0 if is_sound else 4e6
    rows = [f"{START:%Y-%m-%dT%H}:00Z,S{n},g{n // 6},100,0,{us}," for n in range(DRIVES)]
    put(
        folder,
        "drive_hours.csv",
        "\n".join(["hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us", *rows]) + "\n",
    )


def labels(folder: Path, is_sound: bool) -> None:
    at = START if is_sound else datetime.fromtimestamp(LATER, UTC)
    rows = [f"S{number},slow,ada,{at:%Y-%m-%d}" for number in range(DRIVES)]
    put(folder, "labels.csv", "\n".join(["drive_id,verdict,labelled_by,labelled_on", *rows]) + "\n")


DELIVERIES: dict[str, Callable[[Path, bool], None]] = {source: globals()[source.replace("-", "_")] for source in SOURCES}


@pytest.mark.parametrize("source", DELIVERIES)
def test_a_sound_delivery_passes_and_an_implausible_one_is_held(source: str, tmp_path: Path, warehouse: Warehouse) -> None:
    for name, is_sound in (("sound", True), ("implausible", False)):
        DELIVERIES[source](tmp_path / name, is_sound)
    passed = ingest(source, tmp_path / "sound", warehouse.path, gate=Gate(warehouse.path))
    assert passed.held == [] and passed.delivery_seq == 1
    assert passed.rows_rejected == 0 and passed.rows_accepted >= DRIVES
    other = Warehouse(tmp_path / "other")
    held = ingest(source, tmp_path / "implausible", other.path, gate=Gate(other.path))
    assert len(held.held) == 1 and held.delivery_seq is None
    assert not any(other.live(kind).height for kind in CONTRACT if kind != "drive_samples")


def test_samples_are_looked_at_beside_their_hours(tmp_path: Path, warehouse: Warehouse) -> None:
    for name, is_sound in (("sound", True), ("implausible", False)):
        diskstats(tmp_path / name, is_sound)
    options = {"resolution": "15m"}
    passed = ingest("diskstats", tmp_path / "sound", warehouse.path, gate=Gate(warehouse.path), source_options=options)
    assert passed.held == [] and passed.rows_rejected == 0
    told = json.loads((list_deliveries(warehouse.path)[0].path / "gate.json").read_text())
    assert {check["columns"][0] for check in told["checks"] if check["table"] == "drive_samples" and check["passed"]} >= {
        "ahead_hours",
        "iops",
    }
    other = Warehouse(tmp_path / "other")
    (held,) = ingest("diskstats", tmp_path / "implausible", other.path, gate=Gate(other.path), source_options=options).held
    assert [reason for reason in held.reasons if reason.startswith("samples of ") and "is it in microseconds?" in reason]


def test_alias_of_another_time_is_rejected(tmp_path: Path, warehouse: Warehouse) -> None:
    head = "host,device,drive_id,valid_from,valid_to"
    rows = [f"web1,{device},S{number},,2026-01-05T00:00:00Z" for number, device in enumerate(DEVICES)]
    put(tmp_path, "good/mapping.csv", "\n".join([head, *rows[1:], "web1,sda,S0,1970-01-02T00:00:00Z,"]) + "\n")
    passed = ingest("mapping", tmp_path / "good", warehouse.path, gate=Gate(warehouse.path))
    assert (passed.held, passed.rows_accepted, passed.rows_rejected) == ([], DRIVES - 1, 1)
    (rejected,) = warehouse.table("rejected_records").to_dicts()
    assert (rejected["column"], rejected["value"]) == ("valid_from", "1970-01-02 00:00:00")
    same = [row.replace(f",S{number},", ",SERIAL,") for number, row in enumerate(rows)]
    put(tmp_path, "same/mapping.csv", "\n".join([head, *same]) + "\n")
    (held,) = ingest("mapping", tmp_path / "same", warehouse.path, gate=Gate(warehouse.path)).held
    assert "Far more names than drives" in held.reasons[0] and held.reasons[0].startswith("names of drives, all: ")


def test_a_rule_may_leave_sources_out_and_names_only_those_there_are(tmp_path: Path) -> None:
    checks = {check.where: check for check in load_suite("drive_hours", tmp_path)}
    assert any(check.not_of for check in checks.values())
    rule = {
        "type": "expect_column_to_exist",
        "kwargs": {"column": "drive_id"},
        "meta": {"level": "batch", "not_of": ["prometeus"]},
        "description": "No drives.",
    }
    put(tmp_path, "suites/drive_hours.json", {"expectations": [rule]})
    with pytest.raises(GateError, match=r"no source 'prometeus' for meta\.not_of"):
        load_suite("drive_hours", tmp_path)

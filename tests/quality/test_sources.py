"""Deliveries of every source meet the gate: a sound delivery passes it whole, one that no sound fleet sends is held."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from drivetail.cli import main
from ingest import GateError, list_deliveries
from ingest.contract.fleet import CONTRACT
from ingest.sources import SOURCES
from quality import Gate
from quality.suites import load_suite
from tests.ingest.conftest import Warehouse, csv_text

START = datetime(2026, 1, 5, 10)
UNIX = int(START.replace(tzinfo=UTC).timestamp())
DRIVES = 24
DEVICES = [f"sd{chr(97 + number)}" for number in range(DRIVES)]
NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
LATER = int(NOW.replace(tzinfo=UTC).timestamp()) + 30 * 86_400
TIMEOUT = "sd {}:0:0:0: [{}] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s"


# One delivery each: sound, or else with latencies in another unit, sizes in another unit, or a clock that is ahead.
Files = dict[str, Any]


def size(is_sound: bool) -> int:
    return 4_000_787_030_016 if is_sound else 4000


def at(is_sound: bool) -> datetime:
    return START if is_sound else datetime.fromtimestamp(LATER, UTC).replace(tzinfo=None)


def diskstats(is_sound: bool) -> Files:
    ms = 450 if is_sound else 450_000
    looks = [  # `drivetail collect --once` every ten minutes: the hour is not over
        f"TS {UNIX + 600 * n}\n" + "".join(f"8 0 {d} {n * 90} 0 {n * 900} {n * ms} 0 0 0 0 0 0 0\n" for d in DEVICES) for n in range(2)
    ]
    return {"web1/diskstats": "".join(looks)}


def prometheus(is_sound: bool) -> Files:
    counters = {
        "reads_completed_total": 5000, "writes_completed_total": 100, "read_time_seconds_total": 20.5 if is_sound else 20.5e6,
        "write_time_seconds_total": 0.5 if is_sound else 0.5e6, "read_bytes_total": 40_960_000, "written_bytes_total": 819_200,
    }  # fmt: skip
    lines = [
        f'node_disk_{name}{{instance="web1:9100",device="{device}"}} {n * value} {(UNIX + 300 * n) * 1000}\n'
        for n in range(3)
        for device in DEVICES
        for name, value in counters.items()
    ]
    return {"fleet.prom": "".join(lines)}


def ceph(is_sound: bool) -> Files:
    known = [{"id": n, "hostname": "h1", "bluestore_bdev_devices": d, "device_ids": f"{d}=M_S{n}"} for n, d in enumerate(DEVICES)]
    perf = [{"id": n, "perf_stats": {"commit_latency_ms": 4 if is_sound else 10**9}} for n in range(DRIVES)]
    looks = (f"TS {UNIX + 300 * n}\n{json.dumps({'osd_perf_infos': perf})}\n" for n in range(1, 12))
    return {"prod/ceph.txt": f"TS {UNIX}\n{json.dumps(known)}\n" + "".join(looks)}


def zfs(is_sound: bool) -> Files:
    wait_ns = 4_000_000 if is_sound else 4 * 10**12
    rows = "".join(f"{device}\t-\t-\t90\t0\t81920\t0\t{wait_ns}\t-\t{wait_ns}\t-\n" for device in DEVICES)
    return {"web1/zpool.txt": f"TS {UNIX}\n" + "".join(f"{UNIX + 600 * n}\n{rows}" for n in range(1, 7))}


def arrays(is_sound: bool) -> Files:
    drives = [{"serial-number": f"S{n}", "location": f"1.{n}", "avg-rsp-time": 4000 if is_sound else 4 * 10**8} for n in range(DRIVES)]
    names = ("number-of-reads", "number-of-writes", "data-read-numeric", "data-written-numeric")
    looks = [
        [{"serial-number": f"S{d}", **dict(zip(names, (9 * n, n, 4096 * 9 * n, 4096 * n), strict=True))} for d in range(DRIVES)]
        for n in range(12)
    ]
    answers = (f"{json.dumps({'drives': drives})}\n{json.dumps({'disk-statistics': counts})}\n" for counts in looks)
    return {"msa7/disks.json": "".join(f"TS {UNIX + 300 * n}\n{answer}" for n, answer in enumerate(answers, 1))}


def sysstat(is_sound: bool) -> Files:
    rows = (f"web1;600;{START + timedelta(minutes=10)} UTC;{d};10.00;80.00;40.00;{4.0 if is_sound else 4e6}" for d in DEVICES)
    return {"sadf.csv": csv_text(*rows, header="# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;await")}


def perseus(is_sound: bool) -> Files:
    rows = (f"{UNIX + 15 * n},{device},1000,{80 if is_sound else 8e7}" for device in DEVICES for n in range(1, 4))
    return {"cluster_A/host_1/day.csv": csv_text(*rows, header="ts,disk_id,throughput,latency")}


def fio(is_sound: bool) -> Files:
    ticks = 4000 if is_sound else 4 * 10**9
    members = [{"name": d, "read_ios": 1000, "write_ios": 0, "read_ticks": ticks, "write_ticks": 0} for d in DEVICES]
    array = {"name": "md0", "read_ios": 1, "write_ios": 1, "aggr_read_ios": 1000, "aggr_write_ios": 0}
    run = {"fio version": "fio-3.33", "jobs": [], "disk_util": [array, *members]}
    # a run an hour, from now on: the hours of the last are yet to come
    ends = [int(NOW.replace(tzinfo=UTC).timestamp()) * 1000 - 60_000 * (30 - minute) for minute in range(30)]
    return {f"host/array/{minute}.json": {**run, "timestamp_ms": end} for minute, end in enumerate(ends)}


def lsblk(is_sound: bool) -> Files:
    one = {"type": "disk", "size": size(is_sound), "rota": True, "tran": "sata", "model": "M"}
    hosts = {f"web{n}": [{**one, "name": device, "serial": f"S{n}"}] for n, device in enumerate(DEVICES)}  # of one drive each
    return {f"{host}/lsblk.json": {"blockdevices": devices, "TS": UNIX} for host, devices in hosts.items()}


def smartctl(is_sound: bool) -> Files:
    said = {"smartctl": {"exit_status": 0}, "user_capacity": {"bytes": size(is_sound)}, "rotation_rate": 7200,
            "power_on_time": {"hours": 20_000}, "local_time": {"time_t": UNIX}}  # fmt: skip
    return {
        f"web{n}/smartctl-{d}.json": {**said, "device": {"name": f"/dev/{d}", "type": "sat", "protocol": "ATA"}, "serial_number": f"S{n}"}
        for n, d in enumerate(DEVICES)
    }


def mdadm(is_sound: bool) -> Files:
    members = "".join(f"MD_DEVICE_dev_{d}_ROLE={n}\nMD_DEVICE_dev_{d}_DEV=/dev/{d}\n" for n, d in enumerate(DEVICES))
    array = f"MD_LEVEL=raid6\nMD_DEVICES={DRIVES}\nMD_METADATA=1.2\nMD_UUID=aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n{members}"
    return {"web1/mdadm": f"TS {UNIX if is_sound else LATER}\n{array}"}


def mapping(is_sound: bool) -> Files:
    rows = (f"web1,{device},S{n},pool-{n // 6},{size(is_sound)}" for n, device in enumerate(DEVICES))
    return {"mapping.csv": csv_text(*rows, header="host,device,drive_id,raid_group_id,capacity_bytes")}


def kernel_log(is_sound: bool) -> Files:
    lines = [f"{at(is_sound):%Y-%m-%dT%H:%M:%S}+00:00 web1 kernel: {TIMEOUT.format(n, device)}\n" for n, device in enumerate(DEVICES)]
    return {"web1/kern.log": "".join(lines)}


def tickets(is_sound: bool) -> Files:
    rows = (f"S{n},{at(is_sound):%Y-%m-%dT%H:%M:%S}Z,media_error,clicks" for n in range(DRIVES))
    return {"tickets.csv": csv_text(*rows, header="serial,opened_at,type,summary")}


def backblaze(is_sound: bool) -> Files:
    rows = (f"2026-01-05,S{n},ST4000,{size(is_sound)},{int(n == 0)},{20_000 + n}" for n in range(DRIVES))
    return {"2026-01-05.csv": csv_text(*rows, header="date,serial_number,model,capacity_bytes,failure,smart_9_raw")}


def bundle(is_sound: bool) -> Files:
    rows = (f"{START:%Y-%m-%dT%H}:00Z,S{n},g{n // 6},100,0,{4000.0 if is_sound else 4e6}," for n in range(DRIVES))
    return {"drive_hours.csv": csv_text(*rows)}


def labels(is_sound: bool) -> Files:
    rows = (f"S{n},slow,ada,{at(is_sound):%Y-%m-%d}" for n in range(DRIVES))
    return {"labels.csv": csv_text(*rows, header="drive_id,verdict,labelled_by,labelled_on")}


def confirm(is_sound: bool) -> Files:
    devices = [{"name": device, "serial": f"S{n}"} for n, device in enumerate(DEVICES)]
    jobs = [
        {"jobname": "peer" if n else "suspect", "job options": {"filename": f"/dev/{device}", "rw": "read"}}
        for n, device in enumerate(DEVICES)
    ]
    documents = ({"blockdevices": devices}, {"fio version": "fio-3.33", "jobs": jobs})
    return {"confirm-S0.txt": "\n".join([f"TS {UNIX if is_sound else LATER}", *map(json.dumps, documents)])}


DELIVERIES: dict[str, Callable[[bool], Files]] = {source: globals()[source.replace("-", "_")] for source in SOURCES}


@pytest.mark.parametrize("source", DELIVERIES)
def test_a_sound_delivery_passes_and_an_implausible_one_is_held(source: str, warehouse: Warehouse, other: Warehouse) -> None:
    passed = warehouse.land(source, DELIVERIES[source](True), gate=Gate(warehouse.path))
    assert [each.reasons for each in passed.held] == [] and passed.delivery_seq == 1
    assert passed.rows_rejected == 0 and passed.rows_accepted >= DRIVES
    held = other.land(source, DELIVERIES[source](False), gate=Gate(other.path))
    assert len(held.held) == 1 and held.delivery_seq is None, f"{source}(is_sound=False) passed: make its latencies, sizes or clock wrong"
    assert not any(other.live(kind).height for kind in CONTRACT if kind != "drive_samples")


@pytest.mark.parametrize("source", DELIVERIES)
def test_the_doctor_finds_that_a_sound_delivery_can_be_used(source: str, warehouse: Warehouse) -> None:
    done = CliRunner().invoke(main, ["doctor", source, str(warehouse.put(DELIVERIES[source](True)))])
    assert done.exit_code == 0 and "can be used" in done.output, done.output


def test_samples_are_looked_at_beside_their_hours(warehouse: Warehouse, other: Warehouse) -> None:
    passed = warehouse.land("diskstats", diskstats(True), gate=Gate(warehouse.path), resolution="15m")
    assert passed.held == [] and passed.rows_rejected == 0
    told = json.loads((list_deliveries(warehouse.path)[0].path / "gate.json").read_text())
    looked_at = {check["columns"][0] for check in told["checks"] if check["table"] == "drive_samples" and check["passed"]}
    assert looked_at >= {"ahead_hours", "iops"}
    (held,) = other.land("diskstats", diskstats(False), gate=Gate(other.path), resolution="15m").held
    assert [reason for reason in held.reasons if reason.startswith("samples of ") and "is it in microseconds?" in reason]


def test_alias_of_another_time_is_rejected(warehouse: Warehouse) -> None:
    head = "host,device,drive_id,valid_from,valid_to"
    rows = [f"web1,{device},S{number},,2026-01-05T00:00:00Z" for number, device in enumerate(DEVICES)]
    good = csv_text(*rows[1:], "web1,sda,S0,1970-01-02T00:00:00Z,", header=head)
    passed = warehouse.land("mapping", {"mapping.csv": good}, gate=Gate(warehouse.path))
    assert (passed.held, passed.rows_accepted) == ([], DRIVES - 1)
    assert warehouse.rejected("column value") == [("valid_from", "1970-01-02 00:00:00")]
    same = csv_text(*[row.replace(f",S{number},", ",SERIAL,") for number, row in enumerate(rows)], header=head)
    (held,) = warehouse.land("mapping", {"mapping.csv": same}, gate=Gate(warehouse.path)).held
    assert "Far more names than drives" in held.reasons[0] and held.reasons[0].startswith("names of drives, all: ")


def test_a_rule_may_leave_sources_out_and_names_only_those_there_are(warehouse: Warehouse) -> None:
    assert any(check.not_of for check in load_suite("drive_hours", warehouse.path))
    meta = {"level": "batch", "not_of": ["prometeus"]}
    rule = {"type": "expect_column_to_exist", "kwargs": {"column": "drive_id"}, "meta": meta, "description": "No drives."}
    folder = warehouse.put({"suites/drive_hours.json": {"expectations": [rule]}})
    with pytest.raises(GateError, match=r"no source 'prometeus' for meta\.not_of"):
        load_suite("drive_hours", folder)

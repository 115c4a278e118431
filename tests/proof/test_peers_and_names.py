"""Measurements of hosts, from their own files to the marts: under the right name, beside the right peers, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from drivetail.ask.status import collect_status, render_status
from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest
from report import write_report
from tests.proof.support import asked_soundly

TS = 1_770_012_000  # 2026-02-02 06:00 UTC
STEP = 600


def host(
    root: Path, name: str, devices: Mapping[str, tuple[int, float]], hours: int = 1, listed: tuple[dict[str, Any], ...] = (), at: int = TS
) -> None:
    """A host's diskstats, of devices each with its reads in ten minutes and their microseconds, and its lsblk, at the instant `at`."""
    folder = root / name
    folder.mkdir(parents=True)
    looks = []
    for number in range(6 * hours + 1):
        lines = [
            f"8 0 {device} {reads * number} 0 {8 * reads * number} {round(reads * number * us / 1000)} 0 0 0 0 0 0 0\n"
            for device, (reads, us) in devices.items()
        ]
        looks.append(f"TS {TS + STEP * number}\n" + "".join(lines))
    (folder / "diskstats").write_text("".join(looks))
    if listed:
        described = [{"type": "disk", "size": 1 << 40, "rota": True, "wwn": None, **device} for device in listed]
        (folder / "lsblk.json").write_text(json.dumps({"TS": at, "blockdevices": described}))


def landed(root: Path, warehouse: Path) -> Warehouse:
    """A warehouse of all hosts, one call a host and source."""
    for folder in sorted(root.iterdir()):
        for source in ("lsblk", "diskstats"):
            if source == "diskstats" or (folder / "lsblk.json").exists():
                ingest(source, folder, warehouse)
    built = Warehouse(warehouse)
    build(built)
    return built


def asked(warehouse: Warehouse, query: str) -> list[tuple[Any, ...]]:
    return asked_soundly(warehouse.published, query)


def test_every_accepted_drive_hour_has_a_name_of_its_own_or_a_count(tmp_path: Path) -> None:
    """Two machines made one serial up; a SAS drive has two paths, another the same serial on two devices and no world wide name."""
    root = tmp_path / "in"
    for number, name in enumerate(("vma", "vmb"), 1):
        host(root, name, {"sda": (10 * number, 900.0)}, listed=({"name": "sda", "serial": "MADEUP0"},))
    paths = tuple({"name": name, "serial": "TWOPATHS", "wwn": "0x5000c500000000f1"} for name in ("sdc", "sdaz"))
    twins = tuple({"name": name, "serial": "TWINS"} for name in ("sde", "sdf"))
    devices = {"sdc": (30, 1000.0), "sdaz": (10, 5000.0), "sde": (10, 700.0), "sdf": (20, 700.0)}
    host(root, "sas", devices, listed=paths + twins)
    warehouse = landed(root, tmp_path / "warehouse")
    assert asked(warehouse, "select drive_id, raid_group_id, io_count, latency_us from intermediate.int_drive_hours order by all") == [
        ("TWOPATHS", "sas", 240, 2000.0),
        ("sas/sde", "sas", 60, 700.0),
        ("sas/sdf", "sas", 120, 700.0),
        ("vma/sda", "vma", 60, 900.0),
        ("vmb/sda", "vmb", 120, 900.0),
    ]
    assert asked(warehouse, "select path_spans, part_spans, other_spans, changed_spans from status.fct_status_window") == [(1, 0, 0, 0)]
    assert "What became of 6 accepted drive-hours" in render_status(collect_status(warehouse))
    report = write_report(warehouse).read_text(encoding="utf-8")
    assert "2 drive-hours came from groups of fewer than 3 data drives" in report
    assert "fewer than 3 data drives in the group" in report
    assert asked(warehouse, "select serial, device_count from status.fct_shared_serials order by all") == [("MADEUP0", 2), ("TWINS", 2)]
    assert asked(warehouse, "select drive_id, kind from marts.dim_drives where drive_id like 'vm%' order by all") == [
        ("vma/sda", "disk"),
        ("vmb/sda", "disk"),
    ]


def test_devices_that_share_a_serial_are_described_by_their_own_hosts(tmp_path: Path) -> None:
    """Three machines made one serial up. Each was looked at once, ten minutes apart, as if a drive had moved."""
    root = tmp_path / "in"
    for number, name in enumerate(("q0", "q1", "q2")):
        listed = {"name": "sda", "serial": "MADEUP0", "model": f"M{number}", "rota": number < 2}
        host(root, name, {"sda": (10, 900.0)}, 2, (listed,), TS + 600 * number)
    warehouse = landed(root, tmp_path / "warehouse")
    assert asked(warehouse, "select drive_id, kind, model, current_raid_group_id from marts.dim_drives order by all") == [
        ("q0/sda", "disk", "M0", "q0"),
        ("q1/sda", "disk", "M1", "q1"),
        ("q2/sda", "ssd", "M2", "q2"),
    ]
    page = render_status(collect_status(warehouse))
    assert "MADEUP0  q0/sda, q1/sda, q2/sda  measured on several devices in one hour" in page
    assert "no RAID-hour is valid: of the drive-hours 6 are `group of too few data drives`" in page
    assert "\n  q0,sda,ITS-OWN-SERIAL\n" in page
    assert not [title for title in ("known by their device only", "no inventory", "unknown kind") if title in page]
    assert asked(warehouse, "select raid_group_id, kind from marts.dim_raid_groups order by all") == [
        ("q0", "disk"),
        ("q1", "disk"),
        ("q2", "ssd"),
    ]


def test_disks_beside_flash_are_compared_with_disks(tmp_path: Path) -> None:
    """Four disks beside three NVMe drives, one of them slow; the kinds of another host's drives are unknown."""
    root = tmp_path / "in"
    disks = {f"sd{letter}": (40, 7000.0) for letter in "abcd"}
    flash = {"nvme0n1": (900, 90.0), "nvme1n1": (900, 90.0), "nvme2n1": (900, 900.0)}
    listed = [{"name": name, "serial": f"S-{name}"} for name in disks] + [
        {"name": name, "serial": f"S-{name}", "rota": False, "tran": "nvme"} for name in flash
    ]
    host(root, "both", disks | flash, 4, tuple(listed))
    host(root, "bare", disks | {"nvme7n1": (900, 90.0)}, 4)
    warehouse = landed(root, tmp_path / "warehouse")
    found = asked(
        warehouse,
        "select raid_group_id, count(distinct drive_id), max(slowdown) from marts.fct_drive_hours group by raid_group_id order by all",
    )
    assert [(group, drives, round(slowdown, 2)) for group, drives, slowdown in found] == [
        ("bare (unknown)", 4, 1.0),
        ("both", 4, 1.0),
        ("both (nvme)", 3, 10.0),
    ]
    assert asked(warehouse, "select subject_id from marts.fct_slow_alerts") == [("S-nvme2n1",)]
    assert asked(warehouse, "select count(*) from marts.dim_drives where peer_kind = 'unknown' and last_hour_utc is not null") == [(4,)]
    assert asked(warehouse, "select raid_group_id, drive_count from status.fct_mixed_raid_groups order by all") == [
        ("both", 4),
        ("both (nvme)", 3),
    ]


def test_the_kind_of_a_delivery_is_that_of_the_drives_of_its_arrays(tmp_path: Path) -> None:
    """mdadm names the array and no kind. Counters with --kind say it, and so does --kind where the array lands."""
    root = tmp_path / "in"
    for name in ("counted", "listed"):
        host(root, name, {f"sd{letter}": (10, 500.0) for letter in "abc"}, 2)
        array = "md0 : active raid5 sdc1[2] sdb1[1] sda1[0]\n      1048576 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/3] [UUU]\n"
        (root / name / "mdstat").write_text(f"TS {TS}\nPersonalities : [raid5]\n{array}\nunused devices: <none>\n")
        ingest("mdadm", root / name, tmp_path / "warehouse", kind="disk" if name == "listed" else None)
        ingest("diskstats", root / name, tmp_path / "warehouse", kind="ssd" if name == "counted" else None)
    warehouse = Warehouse(tmp_path / "warehouse")
    build(warehouse)
    found = asked(warehouse, "select distinct raid_group_id, kind from marts.fct_drive_hours order by all")
    assert found == [("counted/md0", "ssd"), ("listed/md0", "disk")]
    assert asked(warehouse, "select * from marts.dim_drives where peer_kind = 'unknown' and last_hour_utc is not null") == []


@pytest.mark.proof
def test_kinds_that_inventory_learns_later_move_the_days_before(tmp_path: Path) -> None:
    """Rows alone place d and f. Then a drive of another kind joins d's array, and f, which has moved on, turns out to be flash."""
    header = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us,read_blocks,write_blocks"
    hours = [f"2026-01-05T04:00:00,{drive},{group},100,0,500,0,800,0" for group, of in (("g", "abcd"), ("h", "ijkf")) for drive in of]
    inventory = "drive_id,raid_group_id,role,kind,interface,valid_from"
    disks = [f"{drive},{group},data,disk,SAS," for group, of in (("g", "abc"), ("h", "ijk")) for drive in of]
    warehouse = Warehouse(tmp_path / "warehouse")
    for number, files in enumerate(
        (
            {"drive_hours": [header, *hours], "drives": [inventory, *disks, "f,x,data,,,2026-01-07T00:00:00"]},
            {"drives": [inventory, "e,g,data,ssd,NVMe,2026-01-07T00:00:00"]},
            {"drives": [inventory, "f,x,data,ssd,SAS,2026-01-08T00:00:00"]},
        )
    ):
        folder = tmp_path / f"part-{number}"
        folder.mkdir()
        for name, lines in files.items():
            (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        ingest("bundle", [folder], warehouse.root)
        build(warehouse)
    compared = (
        "select raid_group_id, string_agg(drive_id, '' order by drive_id) from intermediate.int_drive_hours group by all order by all"
    )
    found = asked(warehouse, compared)
    assert found == [("g", "abc"), ("g (unknown)", "d"), ("h", "ijk"), ("h (ssd)", "f")]
    build(warehouse, full_refresh=True)
    assert asked(warehouse, compared) == found

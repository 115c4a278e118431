"""The files of a host (mdadm, smartctl, lsblk, /proc/diskstats) and an operator's mapping: real samples, and what breaks them."""

from __future__ import annotations

import json
import shutil
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ingest import ingest
from tests.ingest.conftest import SAMPLES, Warehouse, counts, needs_shared

AT = datetime(2026, 1, 5, 10, 20)
TS = 1_767_608_400


def given(root: Path, **files: str) -> Path:
    """Files of host web1: name (`__` for a dot) -> text."""
    folder = root / "in/web1"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def members(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return (
        warehouse.live("drives").sort("raid_group_id", "drive_id").select("drive_id", "raid_group_id", "role", "slot", "raid_level").rows()
    )


# mdadm -----------------------------------------------------------------------------------------------------------


@needs_shared
def test_every_version_of_the_export_names_its_members(tmp_path: Path, warehouse: Warehouse) -> None:
    names = (
        "qemu_md_raid6/mdadm_export_rebuild",
        *(f"mdadm_detail_export_{n}" for n in ("imsm_raid1", "raid1_old_naming", "raid10_spare")),
    )
    for number, name in enumerate(names):
        folder = tmp_path / f"in/host{number}"
        folder.mkdir(parents=True)
        (folder / "mdadm").write_text(f"TS {TS}\n" + sample(f"{name}.txt"))
    summary = ingest("mdadm", tmp_path / "in", warehouse.path)
    assert counts(summary) == (12, 12, 0, 0, 0)
    rows = {drive: rest for drive, *rest in members(warehouse)}
    raid6 = ["28e3d114:1c759193:a00d6429:f4be42e7", "data"]
    devices = ("sda", "sdb", "dm-0", "sdd", "sde", "sdf")
    assert [rows[f"host0/{device}"] for device in devices] == [[*raid6, str(slot), "raid6, rotating parity"] for slot in range(6)]
    assert rows["host1/sda"] == ["8e3f51e6:d136a0b1:247281c2:ae7f0456", "data", "0", "raid1"]
    assert rows["host2/sdb"] == ["35dd06d4:b4e9e248:9262c3ad:02b61654", "data", "1", "raid1"]
    raid10 = {drive: rest for drive, rest in rows.items() if drive.startswith("host3")}
    # five partitions of two drives, one of them a spare: a drive holds data where any part of it does
    group = "bc9eb9bb:cba04711:7e4155f7:808630e7"
    assert raid10 == {"host3/sdc": [group, "data", "2", "raid10"], "host3/sdd": [group, "data", "3", "raid10"]}
    stored = warehouse.stored("drives")
    assert stored.select("source", "is_alias", "is_group_guessed", "valid_from").unique().rows() == [
        ("mdadm", True, False, datetime(2026, 1, 5, 10, 20))
    ]


@needs_shared
def test_detail_says_what_failed_and_what_is_going_on(tmp_path: Path, warehouse: Warehouse) -> None:
    for name in ("raid1-faulty", "raid1-faulty-with-spare", "raid1-syncing", "raid5-ok", "raid0-ok", "container1-member"):
        folder = tmp_path / "in" / name
        folder.mkdir(parents=True)
        (folder / "mdadm-detail").write_text(f"TS {TS}\n" + sample(f"mdadm_detail_{name}.txt"))
    assert ingest("mdadm", tmp_path / "in", warehouse.path).unreadable == []
    events = warehouse.live("drive_events").sort("drive_id").select("drive_id", "event_type", "detail", "ended_at").rows()
    failed = [event for event in events if event[2] == "md: failed"]
    assert {event[0].split("/")[0] for event in failed} == {"raid1-faulty", "raid1-faulty-with-spare"}
    assert [event for event in events if event[0].startswith("raid1-syncing")] == [
        ("raid1-syncing/vda", "scrub", "md: resync, still running", None)
    ]
    groups = dict(warehouse.live("drives").select("drive_id", "raid_group_id").rows())
    assert groups["container1-member/vdb"] == "4C696E75:782D4D44:DEADBEEF:00000000:502D01BA:FB6D4FCB/md127"
    # its members are partitions of one drive
    assert groups["raid5-ok/vda"].count(":") == 3


@needs_shared
def test_mdstat_line_by_line(tmp_path: Path, warehouse: Warehouse) -> None:
    from ingest.reading.hosts import looks
    from ingest.sources.mdadm import arrays_of

    arrays = {array.name: array for array in arrays_of(looks(f"TS {TS}\n" + sample("proc_mdstat_node_exporter.txt"))[0], [])}
    shape = {
        name: (array.level, len(array.members), sum(m.is_failed for m in array.members), array.width, array.sync)
        for name, array in arrays.items()
    }
    assert shape == {
        "md3": ("raid6", 10, 0, 8, None),
        "md127": ("raid1", 2, 0, 2, None),
        "md0": ("raid1", 2, 0, 2, None),
        "md4": ("raid1", 2, 1, 2, None),
        "md6": ("raid1", 3, 1, 2, "recovery"),
        "md8": ("raid1", 4, 0, 2, "resync"),
        "md201": ("raid1", 2, 0, 2, "check"),
        "md7": ("raid6", 4, 1, 4, None),
        "md9": ("raid1", 7, 2, 4, None),
        "md10": ("raid0", 2, 0, None, None),
        "md11": ("raid1", 5, 1, 2, None),
        "md12": ("raid0", 2, 0, None, None),
        "md126": ("raid0", 2, 0, None, None),
        "md00": ("raid0", 1, 0, None, None),
        "md120": ("linear", 2, 0, None, None),
        "md101": ("raid0", 3, 0, None, None),
    }


@pytest.mark.parametrize(
    ("level", "algorithm", "roles"),
    [
        ("raid4", 0, ["data", "data", "data", "parity_p"]),
        ("raid5", 2, ["data"] * 4),
        ("raid5", 4, ["parity_p", "data", "data", "data"]),
        ("raid5", 5, ["data", "data", "data", "parity_p"]),
        ("raid6", 2, ["data"] * 4),
        ("raid6", 5, ["data", "data", "parity_p", "parity_q"]),
        ("raid6", 4, ["parity_p", "parity_q", "data", "data"]),
        ("raid6", 18, ["data", "data", "data", "parity_q"]),
    ],
)
def test_roles_follow_the_layout(level: str, algorithm: int, roles: list[str], tmp_path: Path, warehouse: Warehouse) -> None:
    text = f"md0 : active {level} sdd[3] sdc[2] sdb[1] sda[0]\n  99 blocks level 6, 512k chunk, algorithm {algorithm} [4/4] [UUUU]\n"
    ingest("mdadm", given(tmp_path, mdstat=f"TS {TS}\n{text}"), warehouse.path)
    rotates = ", rotating parity" if roles == ["data"] * 4 else ""
    assert members(warehouse) == [
        (f"web1/sd{d}", "web1/md0", role, str(n), level + rotates) for n, (d, role) in enumerate(zip("abcd", roles, strict=True))
    ]


def test_a_change_is_one_event_and_a_rebuild_has_its_span(tmp_path: Path, warehouse: Warehouse) -> None:
    def look(minute: int, devices: str, more: str = "", again: str = "") -> str:
        working = "[2/1] [U_]" if more or "(F)" in devices else "[2/2] [UU]"
        return f"TS {TS + 60 * minute}{again}\nmd0 : active raid1 {devices}\n  99 blocks {working}\n{more}"

    recovery = "  [=>...]  recovery =  8.5% (1/9) finish=1min speed=1K/sec\n"
    first = look(0, "sda[0] sdb[1]") + look(1, "sda[0] sdb[1](F)") + look(2, "sda[0] sdc[2]", recovery) + look(3, "sda[0] sdc[2]", recovery)
    second = "".join(look(minute, "sda[0] sdc[2]", recovery, " again") for minute in (2, 3)) + look(4, "sda[0] sdc[2]")

    def events() -> list[tuple[Any, ...]]:
        columns = ("drive_id", "occurred_at", "ended_at", "detail")
        return warehouse.live("drive_events").sort("occurred_at", "drive_id", "detail").select(columns).rows()

    at = [AT + timedelta(minutes=minute) for minute in range(5)]
    ingest("mdadm", given(tmp_path, mdstat=first), warehouse.path)
    assert events() == [
        ("web1/sdb", at[1], None, "md: failed"),
        ("web1/sda", at[2], at[3], "md: recovery, still running"),
        ("web1/sdb", at[2], None, "md: removed"),
        ("web1/sdc", at[2], None, "md: added"),
        ("web1/sdc", at[2], at[3], "md: recovery, still running"),
    ]
    ingest("mdadm", given(tmp_path, mdstat=second), warehouse.path)
    assert events() == [
        ("web1/sdb", at[1], None, "md: failed"),
        ("web1/sda", at[2], at[4], "md: recovery"),
        ("web1/sdb", at[2], None, "md: removed"),
        ("web1/sdc", at[2], None, "md: added"),
        ("web1/sdc", at[2], at[4], "md: recovery"),
    ]


@pytest.mark.parametrize(
    ("listed", "working", "expected", "turned_away"),
    [
        # a journal holds no data, one that is to take a place has none yet
        ("raid4 sdf1[4](J) sda[0] sdb[1] sdc[2]", "[3/3] [UUU]",
         {"sda": ("data", "0"), "sdb": ("data", "1"), "sdc": ("parity_p", "2")}, []),
        (
            "raid1 sdc[2](R) sda[0](W) sdb[1]", "[2/2] [UU]",
            {"sda": ("data", "0"), "sdb": ("data", "1"), "sdc": ("spare", None)}, [],
        ),
        # a number beyond the width is no slot; the one that is left is
        ("raid4 sde[3] sda[0] sdb[1]", "[3/3] [UUU]", {"sda": ("data", "0"), "sdb": ("data", "1"), "sde": ("parity_p", "2")}, []),
        ("raid4 sde[4] sda[0] sdc[2]", "[4/3] [UUU_]", {"sda": ("data", "0"), "sdc": ("data", "2"), "sde": ("data", "1")}, []),
        ("raid4 sde[4] sdd[3] sdc[2]", "[3/3] [UUU]", {"sdc": ("parity_p", "2")} | dict.fromkeys(("sdd", "sde"), ("data", None)), []),
        ("raid4 sde[4] sdd[3] sda[0]", "[3/3] [UUU]", {"sda": ("data", "0")}, [("slot", "sde[4]"), ("slot", "sdd[3]")]),
        ("raid1 sda[0] sdb[1", "[2/2] [UU]", {}, [("member", "sdb[1")]),
        ("raid1 sda[0]", "[2/2] [UU]", {}, [("members", "md0")]),
        ("raid1 sda[0] sdb[1] sdc[2]", "[2/2] [UU]", {}, [("members", "md0")]),
        ("raid1 sda[0]", "", {}, [("members", "md0")]),
    ],
)  # fmt: skip
def test_a_line_of_mdstat_says_who_holds_data(
    listed: str,
    working: str,
    expected: dict[str, tuple[str, str | None]],
    turned_away: list[tuple[str, str]],
    tmp_path: Path,
    warehouse: Warehouse,
) -> None:
    summary = ingest("mdadm", given(tmp_path, mdstat=f"TS {TS}\nmd0 : active {listed}\n  99 blocks {working}\n"), warehouse.path)
    assert {drive: (role, slot) for drive, _, role, slot, _ in members(warehouse)} == {f"web1/{d}": told for d, told in expected.items()}
    assert [(row["row"], row["column"], row["value"]) for row in summary.rejected] == [(2, *told) for told in turned_away]


def test_an_array_whose_first_look_is_cut_off_is_first_seen_by_the_next(tmp_path: Path, warehouse: Warehouse) -> None:
    lines = ("sda[0] sdb[", "sda[0] sdb[1]")
    looks = [f"TS {TS + 60 * n}\nmd0 : active raid1 {line}\n  99 blocks [2/2] [UU]\n" for n, line in enumerate(lines)]
    ingest("mdadm", given(tmp_path, mdstat="".join(looks)), warehouse.path)
    assert not warehouse.stored("drive_events").height


def test_lines_that_mdadm_cut_off_are_rejected_and_the_rest_lands(tmp_path: Path, warehouse: Warehouse) -> None:
    text = (
        "MD_LEVEL=raid1\nMD_DEVICES=2\nMD_UUID=aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n"
        "MD_DEVICE_sda_ROLE=0\nMD_DEVICE_sda_DEV=/dev/sda\nMD_DEVICE_sdb_ROLE=1\n"
    )
    other = "MD_LEVEL=raid1\nMD_DEVICE_sdc_ROLE=0\nMD_DEVICE_sdc_DEV=/dev/sdc\n"
    odd = "MD_LEVEL=raid1\nMD_UUID=cccccccc:dddddddd:aaaaaaaa:bbbbbbbb\nMD_DEVICE_sdd_ROLE=weird\nMD_DEVICE_sdd_DEV=/dev/sdd\n"
    summary = ingest(
        "mdadm",
        given(tmp_path, mdadm=f"TS {TS}\n{text}{other}{odd}", mdadm2=text, mdstat="TS soon\n", mdadm3=f"TS {TS}\nhello\n"),
        warehouse.path,
    )
    # of none of them anybody knows who else is in it
    assert members(warehouse) == []
    rejected = warehouse.table("rejected_records").sort("row").select("row", "column", "value").rows()
    assert rejected == [(7, "MD_DEVICE_sdb_ROLE", "1"), (8, "UUID", None), (13, "MD_DEVICE_sdd_ROLE", "weird")]
    assert [file.note for file in summary.unreadable] == [
        "line 1 is not below a `TS seconds` line; put the unix time first: `(date +'TS %s'; COMMAND) > HOST/FILE`",
        "no md array is in it; expected what `mdadm --detail [--export]` or `cat /proc/mdstat` prints",
        "line 1 is 'TS soon'; expected `TS` and the unix time",
    ]


MESSAGE = "[ 1234.5] sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_TIME_OUT"
A_DETAIL = """\
/dev/md0:
        Raid Level : raid6
      Raid Devices : 6
             State : clean, degraded
   Working Devices : 5
            Layout : left-symmetric
              UUID : 28e3d114:1c759193:a00d6429:f4be42e7

    Number   Major   Minor   RaidDevice State
       0       8        0        0      active sync   /dev/sda
       1       8       16        1      active sync   /dev/sdb
       -       0        0        2      removed
       3       8       48        3      active sync   /dev/sdd
       4       8       64        4      active sync   /dev/sde
       5       8       80        5      active sync   /dev/sdf

       2       8       32        -      faulty
"""
AN_EXPORT = "MD_LEVEL=raid6\nMD_DEVICES=6\nMD_UUID=28e3d114:1c759193:a00d6429:f4be42e7\nMD_NAME=x:0\n" + "".join(
    f"MD_DEVICE_dev_sd{letter}_ROLE={slot}\nMD_DEVICE_dev_sd{letter}_DEV=/dev/sd{letter}\n" for slot, letter in enumerate("abdef")
)
AN_MDSTAT = """\
Personalities : [raid6] [raid0]
md0 : active raid6 sdf[5] sde[4] sdd[3] sdb[1] sda[0]
      1040384 blocks super 1.2 level 6, 512k chunk, algorithm 2 [6/5] [UU_UUU]

md1 : active raid0 sdh[1] sdg[0]
      99 blocks super 1.2 512k chunks

unused devices: <none>
"""


@pytest.mark.parametrize(
    ("form", "ends"),
    [(A_DETAIL, "/dev/sde\n"), (A_DETAIL, "/dev/sd"), (A_DETAIL, "RaidDevice"), (A_DETAIL, "raid6\n"), (A_DETAIL, "/dev/md0:\n"),
     (AN_EXPORT, "sdd_ROLE=2\n"), (AN_EXPORT, "sde_DEV=/dev/s"), (AN_EXPORT, "MD_DEVICES=6\n"), (AN_EXPORT, "28e3d114:1c75"),
     (AN_MDSTAT, "sdd[3]"), (AN_MDSTAT, "sdd[3] s"), (AN_MDSTAT, "512k chunk"), (AN_MDSTAT, "UU_UUU]\n"), (AN_MDSTAT, "sdh[1]"),
     (AN_MDSTAT, "raid0]\n")],
    ids=lambda text: str(text.split()[-1]),
)  # fmt: skip
def test_nobody_leaves_an_array_that_is_cut_off(form: str, ends: str, tmp_path: Path, warehouse: Warehouse) -> None:
    cut = form[: form.index(ends) + len(ends)] if form.count(ends) == 1 else form[: form.rindex(ends) + len(ends)]
    assert cut != form
    ingest("mdadm", given(tmp_path, mdadm=f"TS {TS}\n{form}TS {TS + 60}\n{cut}"), warehouse.path)
    assert len(members(warehouse)) == (7 if form is AN_MDSTAT else 5)
    assert warehouse.live("drives")["valid_from"].unique().to_list() == [AT]
    assert not [row for row in warehouse.stored("drive_events").iter_rows(named=True) if row["detail"] != "md: failed"]


@pytest.mark.parametrize("form", [AN_EXPORT, A_DETAIL], ids=["export", "detail"])
def test_mdadm_and_proc_mdstat_may_stand_in_one_look(form: str, tmp_path: Path, warehouse: Warehouse) -> None:
    (file,) = ingest("mdadm", given(tmp_path, mdadm=f"TS {TS}\n{form}{AN_MDSTAT}"), warehouse.path).files
    assert file.rows_rejected == 0
    groups = {row["drive_id"]: row["raid_group_id"] for row in warehouse.live("drives").iter_rows(named=True)}
    assert groups["web1/sdh"] == "web1/md1"
    assert groups["web1/sda"] == "28e3d114:1c759193:a00d6429:f4be42e7"


def test_a_whole_look_shows_departed_drives_and_arrays(tmp_path: Path, warehouse: Warehouse) -> None:
    less = A_DETAIL.replace("Working Devices : 5", "Working Devices : 4").replace("sync   /dev/sdf", "sync   ").replace(
        "       5       8       80        5      active sync   ", "       -       0        0        5      removed"
    )  # fmt: skip
    export = AN_EXPORT[: AN_EXPORT.index("MD_DEVICE_dev_sdf")]
    mdstat = AN_MDSTAT[: AN_MDSTAT.index("md1")] + "unused devices: <none>\n"
    for host, (one, other) in {"a": (A_DETAIL, less), "b": (AN_EXPORT, export), "c": (AN_MDSTAT, mdstat)}.items():
        folder = tmp_path / "in" / host
        folder.mkdir(parents=True)
        (folder / "mdadm").write_text(f"TS {TS}\n{one}TS {TS + 60}\n{other}")
    assert ingest("mdadm", tmp_path / "in", warehouse.path).rows_rejected == 0
    removed = warehouse.stored("drive_events").filter(detail="md: removed")["drive_id"].sort().to_list()
    assert removed == ["a/sdf", "b/sdf", "c/sdg", "c/sdh"]


# smartctl, lsblk -------------------------------------------------------------------------------------------------


ACTIVE = "md5 : active raid5 sdx1[2] sdw1[1] sdv1[0]\n      200 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/3] [UUU]\n"
STOPPED = "md5 : inactive sdw1[1](S) sdx1[2](S) sdv1[0](S)\n      300 blocks super 1.2\n"


@pytest.mark.parametrize(
    "stopped",
    [
        STOPPED,
        STOPPED.replace("md5", "md127"),
        "/dev/md5:\n        Raid Level : raid0\n             State : inactive\n   Working Devices : 3\n              UUID : "
        + ":".join(["0a1b2c3d"] * 4)
        + "\n    Number   Major   Minor   RaidDevice\n"
        + "".join(f"       -       8       {n}        -        /dev/sd{letter}1\n" for n, letter in enumerate("vwx")),
    ],
)
def test_an_array_that_was_not_started_keeps_its_members(stopped: str, tmp_path: Path, warehouse: Warehouse) -> None:
    looks = (ACTIVE, stopped, ACTIVE)
    text = "".join(f"TS {TS + 600 * n}\nPersonalities : [raid5]\n{look}\nunused devices: <none>\n" for n, look in enumerate(looks))
    summary = ingest("mdadm", given(tmp_path, mdstat=text), warehouse.path)
    assert counts(summary) == (3, 3, 0, 0, 0) and not warehouse.live("drive_events").height
    assert "is inactive from 2026-01-05 10:30:00 UTC on" in (summary.files[0].note or "")


def test_an_array_without_a_member_is_rejected_once(tmp_path: Path, warehouse: Warehouse) -> None:
    line = "md6 : active raid5 super 1.2 level 5, 64k chunk, algorithm 2 [4/0] [____]"
    text = f"TS {TS}\nPersonalities : [raid5]\n{line}\n\nunused devices: <none>\n"
    assert counts(ingest("mdadm", given(tmp_path, mdstat=text), warehouse.path)) == (1, 0, 1, 0, 0)


# smartctl, further documents ---------------------------------------------------------------------------------------


def document(serial: str, name: str = "/dev/sdq", **more: Any) -> str:
    place = {"name": name, "type": "sat", "protocol": "ATA"} | more.pop("device", {})
    return json.dumps({"smartctl": {}, "device": place, "serial_number": serial, "local_time": {"time_t": TS}, **more})


@pytest.mark.parametrize(
    "place",
    [
        {"type": "cciss"}, {"type": "cciss,3"}, {"type": "sat+megaraid,7"}, {"type": "megaraid"}, {"type": "areca"},
        {"type": "scsi", "info_name": "/dev/sdq [megaraid_disk_07] [SAT]"},
    ],
)  # fmt: skip
def test_a_drive_behind_a_controller_is_not_named_by_its_device(place: dict[str, str], tmp_path: Path, warehouse: Warehouse) -> None:
    ingest("smartctl", given(tmp_path, x__json=document("BEHIND1", device=place)), warehouse.path)
    assert warehouse.live("drives")["drive_id"].to_list() == ["BEHIND1"] and not warehouse.live("drive_aliases").height


def test_an_nvme_controller_names_itself_and_a_sas_drive_its_logical_unit(tmp_path: Path, warehouse: Warehouse) -> None:
    nvme = document("NV1", "/dev/nvme3", device={"type": "nvme", "protocol": "NVMe"})
    sas = document("SAS1", "/dev/sdz", device={"type": "scsi", "protocol": "SCSI"}, logical_unit_id="0x5000C500AAAA0001")
    ingest("smartctl", given(tmp_path, a__json=nvme, b__json=sas), warehouse.path)
    names = warehouse.live("drive_aliases").sort("alias").select("alias", "drive_id").rows()
    assert names == [("web1/nvme3", "NV1"), ("web1/sdz", "SAS1"), ("wwn:0x5000c500aaaa0001", "SAS1")]


def test_decoded_values_of_smartctl_precede_packed_ones(tmp_path: Path, warehouse: Warehouse) -> None:
    packed = 7 << 40
    rows = [
        (9, "Power_On_Hours", packed + 1234, "1234 (9 8 7)"), (240, "Head_Flying_Hours", packed + 1200, "1200h+05m+01.000s"),
        (222, "Loaded_Hours", packed + 99, "no number"), (188, "Command_Timeout", (3 << 32) + (2 << 16) + 5, "3 2 5"),
        (194, "Temperature_Celsius", (50 << 32) + 31, "31 (Min/Max 20/50)"), (5, "Reallocated_Sector_Ct", 8, "8"),
    ]  # fmt: skip
    table = [{"id": number, "name": name, "value": 90, "raw": {"value": raw, "string": text}} for number, name, raw, text in rows]
    more = {"power_on_time": {"hours": 1235}, "temperature": {"current": 32}, "ata_smart_attributes": {"table": table}}
    ingest("smartctl", given(tmp_path, x__json=document("PACKED1", **more)), warehouse.path)
    health = dict(warehouse.stored("drive_health").select("attribute", "raw_value").rows())
    assert health == {
        "power_on_hours": 1235, "head_flying_hours": 1200, "loaded_hours": 99, "command_timeout": 5, "temperature_celsius": 32,
        "reallocated_sector_ct": 8,
    }  # fmt: skip
    assert set(warehouse.stored("drive_health")["normalised_value"]) == {90}


@needs_shared
def test_a_document_of_every_protocol(tmp_path: Path, warehouse: Warehouse) -> None:
    folder = tmp_path / "in/web1"
    folder.mkdir(parents=True)
    for path in [*SAMPLES.glob("smartctl_*.json"), *SAMPLES.glob("qemu_md_raid6/smartctl_*.json")]:
        shutil.copy(path, folder / path.name)
    summary = ingest("smartctl", folder, warehouse.path)
    # a list of devices, and a drive that did not answer
    assert sorted(Path(file.file).name for file in summary.unreadable) == ["smartctl_scan_megaraid.json", "smartctl_xall_smart-fail.json"]
    assert "smartctl could not open the device" in str(next(file.note for file in summary.unreadable if "fail" in file.file))
    columns = ["kind", "model", "firmware", "capacity_bytes", "rpm", "interface", "deployed_on", "raid_group_id"]
    drives = {drive: rest for drive, *rest in warehouse.stored("drives").select("drive_id", *columns).rows()}
    assert drives["SER0001"] == ["disk", "QEMU HARDDISK", "2.5+", 268435456, 7200, "SATA", date(2026, 11, 21), "web1"]
    assert drives["NVME0001"][0] == "ssd" and drives["NVME0001"][5] == "NVMe"
    models = {row["model"]: row for row in warehouse.stored("drives").iter_rows(named=True)}
    assert (models["HITACHI H109060SESUN600G"]["kind"], models["HITACHI H109060SESUN600G"]["interface"]) == ("disk", "SAS")
    assert (models["SEAGATE ST373453LC"]["kind"], models["SEAGATE ST373453LC"]["interface"]) == ("disk", None)
    assert models["SAMSUNG MZ7WD240HAFV-00003"]["kind"] == "ssd"
    aliases = dict(
        warehouse.stored("drive_aliases")
        .filter(pl.col("alias").str.ends_with("sda") | pl.col("alias").str.contains("nvme0n1"))
        .select("drive_id", "alias")
        .rows()
    )
    assert aliases["SER0001"] == "web1/sda" and aliases["NVME0001"] == "web1/nvme0n1"
    # behind a RAID controller /dev/sda is many drives
    assert "XXXXXXXXXXXX" not in aliases


def test_a_document_that_is_cut_off_or_says_too_little_is_unreadable(tmp_path: Path, warehouse: Warehouse) -> None:
    whole = {"smartctl": {"exit_status": 0}, "serial_number": "S1", "local_time": {"time_t": TS}, "power_on_time": {"hours": 10**9},
             "user_capacity": {"bytes": "512"}, "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
             "ata_smart_attributes": {"table": [{"id": 187, "raw": {"value": 3}}, {"id": 5, "raw": {"value": 9}}, None]}}  # fmt: skip
    files = {
        "cut": json.dumps(whole)[:35],
        "list": "[]",
        "when": json.dumps({**whole, "local_time": {}}),
        "whole": json.dumps(whole),
    }
    summary = ingest("smartctl", given(tmp_path, **{f"{name}__json": text for name, text in files.items()}), warehouse.path)
    assert [(Path(file.file).stem, str(file.note)[:25]) for file in summary.unreadable] == [
        ("cut", "not JSON (Unterminated st"), ("list", "not a document of smartct"), ("when", "local_time.time_t is miss"),
    ]  # fmt: skip
    # a billion hours are no age; text is read as a count; sectors that the drive has replaced are no media error
    assert warehouse.stored("drives").select("drive_id", "deployed_on", "capacity_bytes", "kind").rows() == [("S1", None, 512, "ssd")]
    assert warehouse.stored("drive_events").select("drive_id", "event_type", "detail").rows() == [
        ("S1", "media_error", "smartctl: 3 counted so far")
    ]
    assert counts(summary) == (3, 3, 0, 0, 0)


def test_lsblk_names_every_drive_with_a_serial(tmp_path: Path, warehouse: Warehouse) -> None:
    devices = [
        {
            "name": "sda",
            "type": "disk",
            "serial": "S1",
            "wwn": "0x5000c500a1b2c3d4",
            "model": "M ",
            "size": 4096,
            "rota": True,
            "tran": "sas",
        },
        {"name": "nvme0n1", "type": "disk", "serial": "S2", "size": "4096", "rota": "0", "tran": "nvme"},
        {"name": "sdc", "type": "disk", "serial": "S3", "rota": 1},
        {"name": "sdb", "type": "disk", "serial": None},
        {"name": "md0", "type": "raid6", "serial": None},
        {"name": "zram0", "type": "disk", "serial": None},
        {"name": "mmcblk0boot0", "type": "disk", "serial": "S4"},
    ]
    summary = ingest("lsblk", given(tmp_path, lsblk__json=json.dumps({"blockdevices": devices, "TS": TS})), warehouse.path)
    assert counts(summary) == (8, 7, 1, 0, 0)
    assert sorted(warehouse.stored("drive_aliases").select("alias", "drive_id").rows()) == [
        ("web1/nvme0n1", "S2"), ("web1/sda", "S1"), ("web1/sdc", "S3"), ("wwn:0x5000c500a1b2c3d4", "S1"),
    ]  # fmt: skip
    assert warehouse.stored("drives").sort("drive_id").select("drive_id", "kind", "model", "capacity_bytes", "interface").rows() == [
        ("S1", "disk", "M", 4096, "SAS"), ("S2", "ssd", None, 4096, "NVMe"), ("S3", "disk", None, None, None),
    ]  # fmt: skip


# diskstats -------------------------------------------------------------------------------------------------------


def snapshot(seconds: int, *drives: tuple[str, int, int, int, int]) -> str:
    """One look: (device, reads, read ms, writes, write ms), sectors eight times the I/Os."""
    lines = [
        f"8 0 {name} {reads} 0 {8 * reads} {read_ms} {writes} 0 {8 * writes} {write_ms} 0 5 6\n"
        for name, reads, read_ms, writes, write_ms in drives
    ]
    return f"TS {TS + seconds}\n" + "".join(lines)


HOURLY = ["drive_id", "hour_utc", "read_ios", "write_ios", "read_latency_us", "write_latency_us", "read_blocks", "block_bytes", "coverage"]


def test_a_look_may_name_the_local_time_too(tmp_path: Path, warehouse: Warehouse) -> None:
    text = snapshot(0, ("sda", 100, 1000, 10, 50)) + snapshot(600, ("sda", 300, 1800, 10, 50))
    text = text.replace(f"TS {TS}\n", f"TS {TS}.12 2026-01-05 10:20:00\n")
    summary = ingest("diskstats", given(tmp_path, diskstats=text), warehouse.path)
    assert not summary.unreadable and warehouse.stored()["read_ios"].to_list() == [200]


def test_counters_become_hours(tmp_path: Path, warehouse: Warehouse) -> None:
    # 10:20, 10:30, and 11:05 after a gap over the hour's end; partitions and dm devices are nobody's drive
    text = snapshot(0, ("sda", 100, 1000, 10, 50), ("sda1", 1, 1, 1, 1), ("dm-0", 1, 1, 1, 1)) + snapshot(600, ("sda", 300, 1800, 10, 50))
    text += snapshot(2700, ("sda", 400, 9800, 20, 90)) + snapshot(3300, ("sda", 500, 10000, 20, 90))
    summary = ingest("diskstats", given(tmp_path, diskstats=text), warehouse.path)
    assert counts(summary) == (4, 4, 0, 0, 0)
    hour = datetime(2026, 1, 5, 10)
    assert warehouse.stored().sort("hour_utc").select(HOURLY).rows() == [
        ("web1/sda", hour, 200, 0, 4000.0, None, 1600, 512, 600 / 3600),
        ("web1/sda", hour + timedelta(hours=1), 100, 0, 2000.0, None, 800, 512, 600 / 3600),
    ]
    assert warehouse.stored().select("source", "raid_group_id", "is_alias", "is_group_guessed").unique().rows() == [
        ("diskstats", "web1", True, True)
    ]


@pytest.mark.parametrize(("head", "accepted", "again"), [(0, 9, 0), (600, 5, 4)])
def test_hidden_paths_count_for_a_head_that_counts_nothing(
    head: int, accepted: int, again: int, tmp_path: Path, warehouse: Warehouse
) -> None:
    """Three looks, a head and two paths; where the head counts too, the paths say the same again."""
    paths = [("nvme4c0n1", 200, 400), ("nvme4c7n1", 400, 100)]
    looks = [
        snapshot(600 * n, ("nvme4n1", head * n, 1000 * n * (head > 0), 0, 0), *((name, ios * n, ms * n, 0, 0) for name, ios, ms in paths))
        for n in range(3)
    ]
    summary = ingest("diskstats", given(tmp_path, diskstats="".join(looks)), warehouse.path)
    assert counts(summary) == (9, accepted, 0, again, 0)
    hours = warehouse.live().select("drive_id", "read_ios", pl.col("read_latency_us").round(1), pl.col("coverage").round(3)).rows()
    assert hours == [("web1/nvme4n1", 1200, 833.3 if not head else 1666.7, 0.333)]


def test_a_wrap_is_bridged_and_a_reboot_costs_its_interval(tmp_path: Path, warehouse: Warehouse) -> None:
    wrap = 2**32
    wrapped = snapshot(0, ("sda", 100, wrap - 500, 1, 1)) + snapshot(60, ("sda", 200, 500, 2, 2))
    rebooted = snapshot(0, ("sdb", 4_000_000_000, 10**6, 9, 9)) + snapshot(60, ("sdb", 5, 10, 1, 1)) + snapshot(120, ("sdb", 15, 30, 1, 1))
    ingest("diskstats", given(tmp_path, diskstats=wrapped, diskstats2=rebooted), warehouse.path)
    assert warehouse.stored().sort("drive_id").select("drive_id", "read_ios", "read_latency_us", "coverage").rows() == [
        ("web1/sda", 100, 10_000.0, 60 / 3600), ("web1/sdb", 10, 2000.0, 60 / 3600),
    ]  # fmt: skip


def test_garbled_lines_are_turned_away_and_repeated_ones_counted(tmp_path: Path, warehouse: Warehouse) -> None:
    good = snapshot(0, ("sda", 100, 1000, 0, 0)) + snapshot(60, ("sda", 200, 2000, 0, 0))
    bad = snapshot(120).rstrip("\n") + "\n8 0 sda 1 2 3\n8 0 sdb 1 0 8 x 1 0 8 1 0 5 6\n8 0 sdc -1 0 8 1 1 0 8 1 0 5 6\n8\n"
    summary = ingest("diskstats", given(tmp_path, diskstats=good + snapshot(60, ("sda", 200, 2000, 0, 0)) + bad), warehouse.path)
    assert counts(summary) == (7, 2, 4, 1, 0)
    assert warehouse.table("rejected_records").sort("row").select("row", "column", "reason").rows() == [
        (8, "sda", "6 fields, expected 14, 18 or 20"), (9, "sdb", "a counter is no whole number up to 2^53"),
        (10, "sdc", "a counter is no whole number up to 2^53"), (11, "device", "1 fields, expected 14, 18 or 20"),
    ]  # fmt: skip


def test_lines_torn_by_a_kernel_message_are_rejected(tmp_path: Path, warehouse: Warehouse) -> None:
    good = snapshot(0, ("sda", 100, 1000, 0, 0), ("sdb", 100, 1000, 0, 0)) + snapshot(60, ("sda", 200, 2000, 0, 0))
    torn = [
        "   8      32 sd", f"8 16 {MESSAGE} sdb 200 0 1600 2000 0 0 0 0 0 5 6", "8 16 sdb 200 0 1600 20[ 1234.5] sd 1:0:0:0: x", MESSAGE,
        "00 0 0 0 0 5 6", "8 16 sd 200 0 1600 2000 0 0 0 0 0 5 6", "8 x sdb 200 0 1600 2000 0 0 0 0 0 5 6", "8 17 sdb1 200 0", "253 0 dm-0",
    ]  # fmt: skip
    kept = [
        "8 17 sdb1 1 2 3 4",
        "253 0 dm-0 1 0 8 1 1 0 8 1 0 5 6",
        "7 0 loop0 1 0 8 1 1 0 8 1 0 5 6 0 0 0 0 0 0",
        "",
        "120 0 emcpowera" + " 1" * 11,
    ]
    text = good + "".join(f"{line}\n" for line in (*torn, *kept))
    assert counts(ingest("diskstats", given(tmp_path, diskstats=text), warehouse.path)) == (3 + len(torn), 3, len(torn), 0, 0)
    assert [(row["drive_id"], row["read_ios"]) for row in warehouse.stored().iter_rows(named=True)] == [("web1/sda", 100)]


def test_a_fuller_hour_replaces_what_came_of_it_before(tmp_path: Path, warehouse: Warehouse) -> None:
    looks = [snapshot(60 * minute, ("sda", 100 * minute, 200 * minute, 0, 0)) for minute in range(4)]
    ingest("diskstats", given(tmp_path, diskstats="".join(looks[:3])), warehouse.path)
    summary = ingest("diskstats", given(tmp_path, diskstats="".join(looks)), warehouse.path)
    assert counts(summary) == (4, 4, 0, 0, 0)
    assert warehouse.live().select("read_ios", "coverage").rows() == [(300, 180 / 3600)]


@needs_shared
def test_diskstats_samples_of_three_kernels(tmp_path: Path, warehouse: Warehouse) -> None:
    kernels = "".join(f"TS {TS + 60 * n}\n" + sample("proc_diskstats_node_exporter.txt") for n in range(2))
    series = {f"diskstats_{n}": sample(f"proc_diskstats_series_00{n}.txt") for n in (1, 2, 4)}
    summary = ingest("diskstats", given(tmp_path, diskstats=kernels, **series), warehouse.path)
    assert (summary.unreadable, summary.rows_rejected) == ([], 0)
    one = warehouse.stored().filter(pl.col("drive_id") == "web1/cciss/c0d0")
    lines = [line.split() for line in sample("proc_diskstats_series_001.txt").splitlines() if " cciss/c0d0 " in line]
    first, last = ([int(value) for value in line[3:]] for line in (lines[0], lines[-1]))
    assert one.select("read_ios", "write_ios", "read_blocks").rows() == [(last[0] - first[0], last[4] - first[4], last[2] - first[2])]
    assert one["write_latency_us"].to_list() == [1000.0 * (last[7] - first[7]) / (last[4] - first[4])]


# mapping ---------------------------------------------------------------------------------------------------------


def test_a_mapping_names_drives_and_puts_them_into_groups(tmp_path: Path, warehouse: Warehouse) -> None:
    text = "host,device,drive_id,raid_group_id,role,valid_from,valid_to\n"
    text += "web1,/dev/sda,S1,pool-a,data,,\nweb1,sdb,S2,,,2026-01-05T00:00:00,\n,,S3,pool-a,,,\nweb1,sdc,,pool-b,,,\n"
    text += "web1,,,pool-a,,,\n,,S4,,,,\n,,S5,pool-a,chief,,\n,,S6,pool-a,,2026-01-05,2026-01-04\n"
    summary = ingest("mapping", given(tmp_path, map__csv=text), warehouse.path)
    assert counts(summary) == (9, 5, 4, 0, 0)
    assert warehouse.stored("drive_aliases").select("alias", "drive_id").rows() == [("web1/sda", "S1"), ("web1/sdb", "S2")]
    assert warehouse.stored("drives").select("drive_id", "raid_group_id", "is_alias").rows() == [
        ("S1", "pool-a", False), ("S3", "pool-a", False), ("web1/sdc", "pool-b", True),
    ]  # fmt: skip
    assert warehouse.table("rejected_records").sort("row")["column"].to_list() == ["drive_id", "raid_group_id", "role", "valid_to"]
    # what a drive is called by somebody else, it is called for ever
    serials = "alias_serial,drive_id,valid_from\nS-A,S-a,2026-01-05\nS-B,,\n"
    assert counts(ingest("mapping", given(tmp_path, map__csv=serials), warehouse.path)) == (2, 1, 1, 0, 0)
    joined = warehouse.stored("drive_aliases").filter(pl.col("alias") == "S-A")
    assert joined.select("drive_id", "valid_from").rows() == [("S-a", None)]
    assert warehouse.stored("drives")["is_group_guessed"].to_list() == [False] * 3
    # the operator's last word counts
    ingest("mapping", given(tmp_path, map__csv="drive_id,raid_group_id\nS3,pool-0\n"), warehouse.path)
    assert warehouse.live("drives").filter(pl.col("drive_id") == "S3")["raid_group_id"].to_list() == ["pool-0"]


def test_a_mapping_without_a_group_lands_too(tmp_path: Path, warehouse: Warehouse) -> None:
    text = "host,device,drive_id,role,enclosure,model,site,slot\nweb1,sda,S1,data,shelf-3,MODELX,fra1,\n,,S2,,shelf-3,,,\n"
    text += "web1,/dev/sdd1,,,,,,7\nweb1,nvme0n1p2,S3,,,,,\nweb2,,S4,,,,,\n,,S5,,,,,\n"
    summary = ingest("mapping", given(tmp_path, map__csv=text), warehouse.path)
    assert counts(summary) == (7, 6, 1, 0, 0)
    # a partition counts as the drive it is on
    assert warehouse.stored("drive_aliases").select("alias", "drive_id").rows() == [("web1/sda", "S1"), ("web1/nvme0n1", "S3")]
    assert warehouse.stored("drives").select("drive_id", "enclosure", "model", "site", "slot", "host", "is_alias").rows() == [
        ("S1", "shelf-3", "MODELX", "fra1", None, "web1", False), ("S2", "shelf-3", None, None, None, None, False),
        ("web1/sdd", None, None, None, "7", "web1", True), ("S4", None, None, None, None, "web2", False),
    ]  # fmt: skip
    assert warehouse.stored("drives").select("raid_group_id", "is_group_guessed").unique().rows() == [(None, True)]
    assert warehouse.table("rejected_records").select("row", "column").rows() == [(6, "raid_group_id")]

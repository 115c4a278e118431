"""The files of a host (mdadm, smartctl, lsblk, /proc/diskstats) and an operator's mapping: real samples, and what breaks them."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.contract.values import TWO_MACHINES
from ingest.reading.hosts import looks
from ingest.sources.mdadm import Said, _events, _group, _seen, arrays_of
from tests.ingest.conftest import SAMPLES, Warehouse, counts, needs_shared
from tests.ingest.test_no_row_is_lost import DETAIL, EXPORT, MDSTAT, MESSAGE, RAID0, UUID

AT = datetime(2026, 1, 5, 10, 20)
TS = 1_767_608_400


MEMBERS = "drive_id raid_group_id role slot raid_level"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


# mdadm -----------------------------------------------------------------------------------------------------------


@needs_shared
def test_every_version_of_the_export_names_its_members(warehouse: Warehouse) -> None:
    names = ("imsm_raid1", "raid1_old_naming", "raid10_spare")
    paths = ("qemu_md_raid6/mdadm_export_rebuild", *(f"mdadm_detail_export_{name}" for name in names))
    files = {f"host{n}/mdadm": f"TS {TS}\n" + sample(f"{path}.txt") for n, path in enumerate(paths)}
    assert counts(warehouse.land("mdadm", files)) == (12, 12, 0, 0, 0)
    rows = {drive: rest for drive, *rest in warehouse.rows("drives", MEMBERS)}
    raid6 = ["28e3d114:1c759193:a00d6429:f4be42e7", "data"]
    devices = ("sda", "sdb", "dm-0", "sdd", "sde", "sdf")
    assert [rows[f"host0/{device}"] for device in devices] == [[*raid6, str(slot), "raid6, rotating parity"] for slot in range(6)]
    assert rows["host1/sda"] == ["8e3f51e6:d136a0b1:247281c2:ae7f0456", "data", "0", "raid1"]
    assert rows["host2/sdb"] == ["35dd06d4:b4e9e248:9262c3ad:02b61654", "data", "1", "raid1"]
    # five partitions of two drives, one of them a spare: a drive holds data where any part of it does
    raid10 = {drive: rest for drive, rest in rows.items() if drive.startswith("host3")}
    group = "bc9eb9bb:cba04711:7e4155f7:808630e7"
    assert raid10 == {"host3/sdc": [group, "data", "2", "raid10"], "host3/sdd": [group, "data", "3", "raid10"]}
    assert set(warehouse.rows("drives", "source is_alias is_group_guessed valid_from")) == {("mdadm", True, False, AT)}
    assert ("test",) in warehouse.rows("drives", "array_name")


@needs_shared
def test_detail_says_what_failed_and_what_is_going_on(warehouse: Warehouse) -> None:
    names = ("raid1-faulty", "raid1-faulty-with-spare", "raid1-syncing", "raid5-ok", "raid0-ok", "container1-member")
    files = {f"{name}/mdadm-detail": f"TS {TS}\n" + sample(f"mdadm_detail_{name}.txt") for name in names}
    assert warehouse.land("mdadm", files).unreadable == []
    events = warehouse.rows("drive_events", "drive_id event_type detail ended_at")
    assert {drive.split("/")[0] for drive, _, detail, _ in events if detail == "md: failed"} == {"raid1-faulty", "raid1-faulty-with-spare"}
    syncing = [event for event in events if event[0].startswith("raid1-syncing")]
    assert syncing == [("raid1-syncing/vda", "scrub", "md: resync, still running", None)]
    groups = dict(warehouse.rows("drives", "drive_id raid_group_id"))
    assert groups["container1-member/vdb"] == "4C696E75:782D4D44:DEADBEEF:00000000:502D01BA:FB6D4FCB/md127"
    # its members are partitions of one drive
    assert groups["raid5-ok/vda"].count(":") == 3


@needs_shared
def test_mdstat_line_by_line() -> None:
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
def test_roles_follow_the_layout(level: str, algorithm: int, roles: list[str], warehouse: Warehouse) -> None:
    text = f"md0 : active {level} sdd[3] sdc[2] sdb[1] sda[0]\n  99 blocks level 6, 512k chunk, algorithm {algorithm} [4/4] [UUUU]\n"
    warehouse.land("mdadm", {"web1/mdstat": f"TS {TS}\n{text}"})
    rotates = ", rotating parity" if roles == ["data"] * 4 else ""
    found = [(f"web1/sd{'abcd'[n]}", "web1/md0", role, str(n), level + rotates) for n, role in enumerate(roles)]
    assert warehouse.rows("drives", MEMBERS) == found


def test_a_change_is_one_event_and_a_rebuild_has_its_span(warehouse: Warehouse) -> None:
    def look(minute: int, devices: str, more: str = "", again: str = "") -> str:
        working = "[2/1] [U_]" if more or "(F)" in devices else "[2/2] [UU]"
        return f"TS {TS + 60 * minute}{again}\nmd0 : active raid1 {devices}\n  99 blocks {working}\n{more}"

    recovery = "  [=>...]  recovery =  8.5% (1/9) finish=1min speed=1K/sec\n"
    first = look(0, "sda[0] sdb[1]") + look(1, "sda[0] sdb[1](F)") + look(2, "sda[0] sdc[2]", recovery) + look(3, "sda[0] sdc[2]", recovery)
    second = "".join(look(minute, "sda[0] sdc[2]", recovery, " again") for minute in (2, 3)) + look(4, "sda[0] sdc[2]")
    at = [AT + timedelta(minutes=minute) for minute in range(5)]
    for looks_at, ended, said in ((first, at[3], "md: recovery, still running"), (second, at[4], "md: recovery")):
        warehouse.land("mdadm", {"web1/mdstat": looks_at})
        assert set(warehouse.rows("drive_events", "drive_id occurred_at ended_at detail")) == {
            ("web1/sdb", at[1], None, "md: failed"), ("web1/sdb", at[2], None, "md: removed"), ("web1/sdc", at[2], None, "md: added"),
            ("web1/sda", at[2], ended, said), ("web1/sdc", at[2], ended, said),
        }  # fmt: skip


@pytest.mark.parametrize(
    ("listed", "working", "expected", "turned_away"),
    [
        # a journal holds no data, one that is to take a place has none yet
        ("raid4 sdf1[4](J) sda[0] sdb[1] sdc[2]", "[3/3] [UUU]", {"sda": "data 0", "sdb": "data 1", "sdc": "parity_p 2"}, []),
        ("raid1 sdc[2](R) sda[0](W) sdb[1]", "[2/2] [UU]", {"sda": "data 0", "sdb": "data 1", "sdc": "spare None"}, []),
        # a number beyond the width is no slot; the one that is left is
        ("raid4 sde[3] sda[0] sdb[1]", "[3/3] [UUU]", {"sda": "data 0", "sdb": "data 1", "sde": "parity_p 2"}, []),
        ("raid4 sde[4] sda[0] sdc[2]", "[4/3] [UUU_]", {"sda": "data 0", "sdc": "data 2", "sde": "data 1"}, []),
        ("raid4 sde[4] sdd[3] sdc[2]", "[3/3] [UUU]", {"sdc": "parity_p 2", "sdd": "data None", "sde": "data None"}, []),
        ("raid4 sde[4] sdd[3] sda[0]", "[3/3] [UUU]", {"sda": "data 0"}, [("slot", "sdd[3]"), ("slot", "sde[4]")]),
        ("raid1 sda[0] sdb[1", "[2/2] [UU]", {}, [("member", "sdb[1")]),
        ("raid1 sda[0]", "[2/2] [UU]", {}, [("members", "md0")]),
        ("raid1 sda[0] sdb[1] sdc[2]", "[2/2] [UU]", {}, [("members", "md0")]),
        ("raid1 sda[0]", "", {}, [("members", "md0")]),
    ],
)
def test_a_line_of_mdstat_says_who_holds_data(
    listed: str, working: str, expected: dict[str, str], turned_away: list[tuple[str, str]], warehouse: Warehouse
) -> None:
    warehouse.land("mdadm", {"web1/mdstat": f"TS {TS}\nmd0 : active {listed}\n  99 blocks {working}\n"})
    drives = warehouse.rows("drives", "drive_id role slot")
    assert {drive.removeprefix("web1/"): f"{role} {slot}" for drive, role, slot in drives} == expected
    assert warehouse.rejected("row column value") == [(2, *said) for said in turned_away]


def test_an_array_whose_first_look_is_cut_off_is_first_seen_by_the_next(warehouse: Warehouse) -> None:
    lines = ("sda[0] sdb[", "sda[0] sdb[1]")
    looks = [f"TS {TS + 60 * n}\nmd0 : active raid1 {line}\n  99 blocks [2/2] [UU]\n" for n, line in enumerate(lines)]
    warehouse.land("mdadm", {"web1/mdstat": "".join(looks)})
    assert not warehouse.stored("drive_events").height


def test_lines_that_mdadm_cut_off_are_rejected_and_the_rest_lands(warehouse: Warehouse) -> None:
    text = f"MD_LEVEL=raid1\nMD_DEVICES=2\nMD_UUID={UUID}\nMD_DEVICE_sda_ROLE=0\nMD_DEVICE_sda_DEV=/dev/sda\nMD_DEVICE_sdb_ROLE=1\n"
    other = "MD_LEVEL=raid1\nMD_DEVICE_sdc_ROLE=0\nMD_DEVICE_sdc_DEV=/dev/sdc\n"
    odd = "MD_LEVEL=raid1\nMD_UUID=cccccccc:dddddddd:aaaaaaaa:bbbbbbbb\nMD_DEVICE_sdd_ROLE=weird\nMD_DEVICE_sdd_DEV=/dev/sdd\n"
    texts = {"mdadm": f"TS {TS}\n{text}{other}{odd}", "mdadm2": text, "mdstat": "TS soon\n", "mdadm3": f"TS {TS}\nhello\n"}
    summary = warehouse.land("mdadm", {f"web1/{name}": text for name, text in texts.items()})
    # of none of them anybody knows who else is in it
    assert not warehouse.live("drives").height
    assert warehouse.rejected("row column value") == [
        (7, "MD_DEVICE_sdb_ROLE", "1"),
        (8, "UUID", None),
        (13, "MD_DEVICE_sdd_ROLE", "weird"),
    ]
    assert [file.note for file in summary.unreadable] == [
        "line 1 is not below a `TS seconds` line; put the unix time first: `(date +'TS %s'; COMMAND) > HOST/FILE`",
        "no md array is in it; expected what `mdadm --detail [--export]` or `cat /proc/mdstat` prints",
        "line 1 is 'TS soon'; expected `TS` and the unix time",
    ]


@pytest.mark.parametrize("form", [EXPORT, DETAIL], ids=["export", "detail"])
def test_mdadm_and_proc_mdstat_may_stand_in_one_look(form: str, warehouse: Warehouse) -> None:
    mdstat = "\n".join(line for line in MDSTAT.splitlines() if "uuid" not in line)
    assert warehouse.land("mdadm", {"web1/mdadm": f"TS {TS}\n{form}{mdstat}\n{RAID0}"}).rows_rejected == 0
    groups = dict(warehouse.rows("drives", "drive_id raid_group_id"))
    assert (groups["web1/sdh"], groups["web1/sda"]) == ("web1/md1", UUID)


def test_a_whole_look_shows_departed_drives_and_arrays(warehouse: Warehouse) -> None:
    less = DETAIL.replace("Working Devices : 3", "Working Devices : 2").replace(
        "       2       8       32        2      active sync   /dev/sdd", "       -       0        0        2      removed"
    )
    export = EXPORT[: EXPORT.index("MD_DEVICE_sdd")]
    changes = {"a": (DETAIL, less), "b": (EXPORT, export), "c": (MDSTAT + RAID0, MDSTAT)}
    files = {f"{host}/mdadm": f"TS {TS}\n{one}TS {TS + 60}\n{other}" for host, (one, other) in changes.items()}
    assert warehouse.land("mdadm", files).rows_rejected == 0
    assert warehouse.rows("drive_events", "drive_id", detail="md: removed") == [("a/sdd",), ("b/sdd",), ("c/sdg",), ("c/sdh",)]


ACTIVE = "md5 : active raid5 sdx1[2] sdw1[1] sdv1[0]\n      200 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/3] [UUU]\n"
STOPPED = "md5 : inactive sdw1[1](S) sdx1[2](S) sdv1[0](S)\n      300 blocks super 1.2\n"


@pytest.mark.parametrize(
    "stopped",
    [
        STOPPED,
        STOPPED.replace("md5", "md127"),
        "/dev/md5:\n        Raid Level : raid0\n             State : inactive\n   Working Devices : 3\n              UUID : "
        + f"{UUID}\n    Number   Major   Minor   RaidDevice\n"
        + "".join(f"       -       8       {n}        -        /dev/sd{letter}1\n" for n, letter in enumerate("vwx")),
    ],
)
def test_an_array_that_was_not_started_keeps_its_members(stopped: str, warehouse: Warehouse) -> None:
    looks = (ACTIVE, stopped, ACTIVE)
    text = "".join(f"TS {TS + 600 * n}\nPersonalities : [raid5]\n{look}\nunused devices: <none>\n" for n, look in enumerate(looks))
    summary = warehouse.land("mdadm", {"web1/mdstat": text})
    assert counts(summary) == (3, 3, 0, 0, 0) and not warehouse.live("drive_events").height
    assert "is inactive from 2026-01-05 10:30:00 UTC on" in (summary.files[0].note or "")


def test_an_array_without_a_member_is_rejected_once(warehouse: Warehouse) -> None:
    line = "md6 : active raid5 super 1.2 level 5, 64k chunk, algorithm 2 [4/0] [____]"
    text = f"TS {TS}\nPersonalities : [raid5]\n{line}\n\nunused devices: <none>\n"
    assert counts(warehouse.land("mdadm", {"web1/mdstat": text})) == (1, 0, 1, 0, 0)


def array(line: str, below: str = "", uuid: str = "") -> str:
    """An array of mdstat: its line, what stands below it (of two members that work unless given), and the UUID that collect adds."""
    return f"{line}\n      {below or '500 blocks super 1.2 [2/2] [UU]'}\n" + (f"      uuid {uuid}\n" if uuid else "") + "\n"


# an array above has less of each than the pair has: its superblock, and whole chunks
PAIRS = array("md0 : active raid1 sda1[0] sdb1[1]", "976630336 blocks super 1.2 [2/2] [UU]") + array(
    "md1 : active raid1 sdd1[2](F) sdc1[0]", "976630336 blocks super 1.2 [2/1] [U_]"
)
SIXES = "".join(
    array(f"md{n} : active raid6 " + " ".join(f"sd{letter}[{slot}]" for slot, letter in enumerate(four)), "700 blocks [4/4] [UUUU]")
    for n, four in enumerate(("abcd", "efgh"))
)


@pytest.mark.parametrize(
    ("below", "above", "groups"),
    [
        (PAIRS, "md9 : active raid0 md1[1] md0[0]\n      1952996352 blocks super 1.2 512k chunks\n", {"web1/md9": "abc"}),
        (PAIRS, "md9 : active raid0 md1p2[1] md0p2[0]\n      1952996352 blocks super 1.2 512k chunks\n", {"web1/md9": "abc"}),
        (
            PAIRS.replace("sda1[0]", "sde1[2](S) sda1[0]"),
            "md9 : active raid0 md1[1] md0[0]\n      1952996352 blocks super 1.2 512k chunks\n",
            {"web1/md9": "abce"},
        ),
        (
            array("md0 : active raid5 sda[0] sdb[1] sdd[2](F)", "1400 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/2] [UU_]"),
            "md9 : active raid0 md0[0]\n      1390 blocks super 1.2 512k chunks\n",
            {"web1/md0": "ab"},
        ),
        (SIXES, "md9 : active raid0 md1[1] md0[0]\n      2800 blocks super 1.2 512k chunks\n", {"web1/md0": "abcd", "web1/md1": "efgh"}),
        (
            "md0 : active raid0 sdb[1] sda[0]\n      1000 blocks super 1.2 512k chunks\n\n",
            array("md_all : active raid5 sdd[3] sdc[1] md0[0]", "2000 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/3] [UUU]"),
            {"web1/md_all": "abcd"},
        ),
        ("", "md9 : active raid0 md1[1] md0[0]\n      1000 blocks super 1.2 512k chunks\n", {}),
    ],
)
def test_arrays_that_are_made_of_arrays_hold_drives(below: str, above: str, groups: dict[str, str], warehouse: Warehouse) -> None:
    """Drives of pairs are peers in the array above, as in md's own raid10; an array is never a drive."""
    summary = warehouse.land("mdadm", mdstat(above + below, below + above))
    found = {(f"web1/sd{letter}", group) for group, letters in groups.items() for letter in letters}
    assert set(warehouse.rows("drives", "drive_id raid_group_id")) == found
    assert {drive for drive, _ in warehouse.rows("drive_events", "drive_id detail")} <= {"web1/sdd"}
    assert "made of other arrays" in (summary.files[0].note or "")
    assert summary.rejected == []


def mdstat(*looks_at: str) -> dict[str, str]:
    """A host's looks at all its arrays, ten minutes apart."""
    shown = (f"TS {TS + 600 * n}\nPersonalities : [raid1]\n{look}unused devices: <none>\n" for n, look in enumerate(looks_at))
    return {"web1/mdstat": "".join(shown)}


FOUR = "700 blocks super 1.2 level 6, 64k chunk, algorithm 2 [4/4] [UUUU]"
THREE = "700 blocks super 1.2 level 6, 64k chunk, algorithm 2 [4/3] [_UUU]"
OTHER_UUID = "dddddddd:cccccccc:bbbbbbbb:aaaaaaaa"
RAID6 = "active raid6 sda2[0] sdb2[1] sdc2[2] sdd2[3]"
IDENTITIES: dict[str, tuple[tuple[str, ...], dict[str, str], list[tuple[str, str]], str]] = {
    "renamed": (
        (array(f"md1 : {RAID6}", FOUR), array(f"md127 : {RAID6}", FOUR)),
        dict.fromkeys("abcd", "web1/md1"), [], "md1 is md127 from 2026-01-05 10:30:00 UTC on",
    ),
    "renamed, and one member lost": (
        (array(f"md1 : {RAID6}", FOUR), array("md127 : active raid6 sdb2[1] sdc2[2] sdd2[3]", THREE)),
        dict.fromkeys("abcd", "web1/md1"), [("sda", "removed")], "md1 is md127",
    ),
    "a mirror renamed, and half of it lost": (
        (array("md1 : active raid1 sda1[0] sdb1[1]"), array("md126 : active raid1 sdb1[1]", "500 blocks super 1.2 [2/1] [_U]")),
        dict.fromkeys("ab", "web1/md1"), [("sda", "removed")], "md1 is md126",
    ),
    "two names swapped": (
        (
            array("md0 : active raid1 sda1[0] sdb1[1]") + array("md1 : active raid1 sdc1[0] sdd1[1]"),
            array("md1 : active raid1 sda1[0] sdb1[1]") + array("md0 : active raid1 sdc1[0] sdd1[1]"),
        ),
        {"a": "web1/md0", "b": "web1/md0", "c": "web1/md1", "d": "web1/md1"}, [], "md0 is md1 from",
    ),
    "a new array under the name of one that was renamed": (
        (
            array("md0 : active raid1 sda1[0] sdb1[1]"),
            array("md0 : active raid1 sdc1[0] sdd1[1]") + array("md9 : active raid1 sda1[0] sdb1[1]"),
        ),
        {"a": "web1/md0", "b": "web1/md0", "c": "web1/md0-2", "d": "web1/md0-2"}, [], "md0 is md9",
    ),
    "letters shifted": (
        (array(f"md1 : {RAID6}", FOUR), array("md1 : active raid6 sdb2[0] sdc2[1] sdd2[2] sde2[3]", FOUR)),
        dict.fromkeys("abcde", "web1/md1"), [], "md1 has other drives or slots from 2026-01-05 10:30:00 UTC on: letters have changed",
    ),
    "letters shifted, under a UUID and another name, and one member lost": (
        (array(f"md1 : {RAID6}", FOUR, UUID), array("md7 : active raid6 sda2[1] sdb2[2] sdc2[3]", THREE, UUID)),
        dict.fromkeys("abcd", UUID), [], "md7 has other drives or slots",
    ),
    "letters shifted, and renamed": (
        (array(f"md1 : {RAID6}", FOUR), array("md127 : active raid6 sdb2[0] sdc2[1] sdd2[2] sde2[3]", FOUR)),
        dict.fromkeys("abcde", "web1/md1"), [], "md127 has other drives or slots",
    ),
    "letters changed but one, and renamed": (
        (array(f"md1 : {RAID6}", FOUR), array("md127 : active raid6 sda2[0] sdf2[1] sdg2[2] sdh2[3]", FOUR)),
        dict.fromkeys("abcdfgh", "web1/md1"), [], "md127 has other drives or slots",
    ),
    "a drive of an array that is gone in a new one": (
        (
            array(f"md1 : {RAID6}", FOUR),
            array("md2 : active raid6 sda2[0] sdf2[1] sdg2[2] sdh2[3] sdi2[4]", FOUR.replace("[4/4] [UUUU]", "[5/5] [UUUUU]")),
        ),
        {}, [(f"sd{letter}", "removed") for letter in "abcd"], "",
    ),
    "letters swapped between arrays of other sizes": (
        (
            array("md0 : active raid1 sda1[0] sdb1[1]") + array("md1 : active raid1 sdc1[0] sdd1[1]", "9 blocks [2/2] [UU]"),
            array("md0 : active raid1 sdc1[0] sdd1[1]") + array("md1 : active raid1 sda1[0] sdb1[1]", "9 blocks [2/2] [UU]"),
        ),
        {}, [], "md0 has other drives or slots",
    ),
    "letters and names swapped under UUIDs": (
        (
            array("md0 : active raid1 sda1[0] sdb1[1]", "", UUID) + array("md1 : active raid1 sdc1[0] sdd1[1]", "", OTHER_UUID),
            array("md0 : active raid1 sda1[0] sdb1[1]", "", OTHER_UUID) + array("md1 : active raid1 sdc1[0] sdd1[1]", "", UUID),
        ),
        {}, [], "md0 has other drives or slots",
    ),
    "a UUID in the first look alone": (
        (array(f"md1 : {RAID6}", FOUR, UUID), array(f"md127 : {RAID6}", FOUR)), dict.fromkeys("abcd", UUID), [], "md1 is md127",
    ),
    "a UUID in the last look alone": (
        (array(f"md1 : {RAID6}", FOUR), array(f"md1 : {RAID6}", FOUR, UUID)), dict.fromkeys("abcd", UUID), [], "",
    ),
    "a new array on the same drives": (
        (array(f"md1 : {RAID6}", FOUR, UUID), array(f"md1 : {RAID6}", FOUR, OTHER_UUID)),
        {}, [(f"sd{letter}", "removed") for letter in "abcd"], "",
    ),
    "a drive replaced": (
        (array("md0 : active raid1 sda1[0] sdb1[1]"), array("md0 : active raid1 sda1[0] sdc1[2]")),
        dict.fromkeys("abc", "web1/md0"), [("sdb", "removed"), ("sdc", "added")], "",
    ),
    "a mirror of three, once a drive was replaced": (
        (array("md0 : active raid1 sda1[0] sdc1[2]"), array("md0 : active raid1 sda1[0] sdc1[2] sdd1[3]", "500 blocks [3/3] [UUU]")),
        dict.fromkeys("acd", "web1/md0"), [("sdd", "added")], "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IDENTITIES)
def test_an_array_is_its_uuid_or_its_members_not_its_name(name: str, warehouse: Warehouse) -> None:
    looks_at, groups, events, note = IDENTITIES[name]
    summary = warehouse.land("mdadm", mdstat(*looks_at))
    assert summary.rows_rejected == 0
    found = [(drive, detail) for _, drive, detail in warehouse.rows("drive_events", "occurred_at drive_id detail")]
    assert sorted(found) == sorted((f"web1/{drive}", f"md: {what}") for drive, what in events)
    if groups:
        assert set(warehouse.rows("drives", "drive_id raid_group_id")) == {(f"web1/sd{letter}", group) for letter, group in groups.items()}
    assert note in (summary.files[0].note or "") and bool(summary.files[0].note) == bool(note)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.permutations(range(4)), st.permutations(["md0", "md1", "md126", "md_data"])), min_size=2, max_size=4),
    st.booleans(),
)
def test_arrays_in_any_order_under_any_names_lose_nobody(given_looks: list[tuple[list[int], list[str]]], has_uuid: bool) -> None:
    lines = ["active raid1 sda1[0] sdb1[1]", "active raid1 sda2[0] sdb2[1]", "active raid1 sdc1[1] sdd1[0]", "active raid1 sde[0] sdf[1]"]
    uuids = [f"{n}{UUID[1:]}" if has_uuid else "" for n in range(4)]
    looks_at = ("".join(array(f"{names[n]} : {lines[n]}", "", uuids[n]) for n in order) for order, names in given_looks)
    seen = list(_seen(mdstat(*looks_at)["web1/mdstat"], [], Said()))
    assert list(_events("web1", seen, {})) == []
    groups = [{each.devices: _group("web1", each) for each in arrays} for _, arrays in seen]
    assert len(groups[0]) == len(set(groups[0].values())) == 4 and all(each == groups[0] for each in groups)


@pytest.mark.parametrize(
    ("uuids", "group"),
    [(("", ""), "web1/md1"), ((UUID, ""), UUID), (("", UUID), UUID)],
)
def test_a_look_that_came_before_is_compared_by_members_too(uuids: tuple[str, str], group: str, warehouse: Warehouse) -> None:
    line = "active raid1 sda1[0] sdb1[1]"
    looks_at = [array(f"md1 : {line}", "", uuids[0]), array(f"md127 : {line}", "", uuids[1])]
    warehouse.land("mdadm", mdstat(looks_at[0]))
    (text,) = mdstat(*looks_at).values()
    warehouse.land("mdadm", {"web1/mdstat": text.replace(f"TS {TS}", f"TS {TS} again")})
    assert not warehouse.stored("drive_events").height
    found = warehouse.rows("drives", "drive_id raid_group_id array_name", valid_from=AT + timedelta(minutes=10))
    assert found == [("web1/sda", group, "md127"), ("web1/sdb", group, "md127")]


@pytest.mark.parametrize("form", [EXPORT, DETAIL], ids=["export", "detail"])
def test_an_array_has_the_uuid_that_another_text_of_its_folder_says(form: str, warehouse: Warehouse) -> None:
    without = "\n".join(line for line in MDSTAT.splitlines() if "uuid" not in line)
    warehouse.land("mdadm", {"web1/mdadm-md0": f"TS {TS}\n{form}", "web1/mdstat": f"TS {TS + 1}\n{without}\n"})
    assert set(warehouse.rows("drives", "raid_group_id")) == {(UUID,)}


def test_arrays_that_exchange_their_letters_keep_their_uuids(warehouse: Warehouse) -> None:
    """mdstat names no UUID, and after a boot md0 has the letters that md1 had: the export nearest in time says which array it is."""
    texts = {}
    for at, letters in ((TS, ("ab", "cd")), (TS + 7200, ("cd", "ab"))):
        stat = "".join(array(f"md{n} : active raid1 sd{two[0]}[0] sd{two[1]}[1]", "100 blocks [2/2] [UU]") for n, two in enumerate(letters))
        texts[f"web1/mdstat-{at}"] = f"TS {at}\nPersonalities : [raid1]\n{stat}unused devices: <none>\n"
        for n, (two, uuid) in enumerate(zip(letters, (UUID, OTHER_UUID), strict=True)):
            members = "".join(f"MD_DEVICE_sd{each}_ROLE={slot}\nMD_DEVICE_sd{each}_DEV=/dev/sd{each}\n" for slot, each in enumerate(two))
            texts[f"web1/mdadm-md{n}-{at}"] = f"TS {at + 1}\nMD_LEVEL=raid1\nMD_DEVICES=2\nMD_UUID={uuid}\n{members}"
    warehouse.land("mdadm", texts)
    found = {(drive, group) for drive, group in warehouse.rows("drives", "drive_id raid_group_id")}
    assert found == {(f"web1/sd{each}", uuid) for each in "abcd" for uuid in (UUID, OTHER_UUID)}


def test_an_array_over_other_partitions_of_the_same_drives_is_another(warehouse: Warehouse) -> None:
    line = "active raid1 sda{0}[0] sdb{0}[1]"
    export = f"MD_LEVEL=raid1\nMD_DEVICES=2\nMD_UUID={UUID}\n" + "".join(
        f"MD_DEVICE_{device}_ROLE={n}\nMD_DEVICE_{device}_DEV=/dev/{device}\n" for n, device in enumerate(("sda1", "sdb1"))
    )
    big = array(f"md1 : {line.format(2)}", "90000 blocks [2/2] [UU]")
    text = f"TS {TS}\n{export}Personalities : [raid1]\n{array(f'md0 : {line.format(1)}')}{big}unused devices: <none>\n"
    warehouse.land("mdadm", {"web1/mdadm": text})
    assert set(warehouse.rows("drives", "raid_group_id")) == {("web1/md1",)}


@pytest.mark.parametrize(
    ("wide", "big", "of_member"),
    [
        # (level, members, what mdstat says below), of an array over all drives and one that has more of each
        (("raid1", "abcdef", "100 blocks [6/6] [UUUUUU]"), ("raid5", "abc", "4000 blocks level 5, algorithm 2 [3/3] [UUU]"), 2000),
        (("raid1", "abcdef", "100 blocks [8/6] [UUUUUU__]"), ("raidF1", "abc", "4000 blocks super 1.2 64k chunks [3/3] [UUU]"), 2000),
        (("raid6", "abcdef", "400 blocks level 6, algorithm 2 [6/6] [UUUUUU]"), ("raid1", "ab", "101 blocks [2/2] [UU]"), 101),
        (("raid5", "abcdef", "500 blocks level 5, algorithm 2 [6/6] [UUUUUU]"), ("raid0", "abcd", "404 blocks 64k chunks"), 101),
        (("raid0", "abcdef", "600 blocks 64k chunks"), ("raid10", "abcd", "202 blocks 2 near-copies [4/4] [UUUU]"), 101),
        (("raid10", "abcdef", "200 blocks 3 far-copies [6/6] [UUUUUU]"), ("linear", "ab", "202 blocks 0k rounding"), 101),
        (
            ("raid4", "abcdef", "500 blocks level 4, algorithm 0 [6/6] [UUUUUU]"),
            ("raid10", "ab", "101 blocks 2 offset-copies [2/2] [UU]"),
            101,
        ),
    ],
)
def test_a_drive_counts_in_the_array_that_has_most_of_its_bytes(
    wide: tuple[str, str, str], big: tuple[str, str, str], of_member: int, warehouse: Warehouse
) -> None:
    def shown(name: str, part: int, of: tuple[str, str, str]) -> str:
        level, letters, below = of
        return array(f"{name} : active {level} " + " ".join(f"sd{letter}{part}[{n}]" for n, letter in enumerate(letters)), below)

    for order in (0, 1):  # the name decides nothing
        (text,) = mdstat(shown(f"md{order}", 1, wide) + shown(f"md{1 - order}", 2, big)).values()
        assert [each.member_blocks for each in arrays_of(looks(text)[0], [])] == [100, of_member]
        summary = warehouse.land("mdadm", {f"host{order}/mdstat": text})
        groups = dict(warehouse.rows("drives", "drive_id raid_group_id", host=f"host{order}"))
        assert groups == {
            f"host{order}/sd{letter}": f"host{order}/md{1 - order if letter in big[1] else order}" for letter in wide[1]
        }  # fmt: skip
        assert (summary.files[0].note or "").count("counts in the one that has most of its bytes") == 1


def test_the_widest_export_counts_and_one_note_misses_sizes(warehouse: Warehouse) -> None:
    def export(letters: str, part: int, uuid: str) -> str:
        return f"MD_LEVEL=raid1\nMD_UUID={uuid}\n" + "".join(
            f"MD_DEVICE_{device}_ROLE={n}\nMD_DEVICE_{device}_DEV=/dev/{device}\n"
            for n, device in enumerate(f"sd{each}{part}" for each in letters)
        )

    text = f"TS {TS}\n{export('abcd', 1, UUID)}{export('ab', 2, OTHER_UUID)}"
    (file,) = warehouse.land("mdadm", {"web1/mdadm": text}).files
    assert set(warehouse.rows("drives", "raid_group_id")) == {(UUID,)}
    assert (file.note or "").startswith("2 drives are in several arrays, such as sda (") and "sizes of some are not known" in str(file.note)
    # --detail has sizes, and the second look that loses one has that of the first
    wide, big = (
        f"/dev/md{n}:\n        Raid Level : raid1\n        {size}\n      Raid Devices : {len(of)}\n             State : clean\n"
        f"   Working Devices : {len(of)}\n              UUID : {uuid}\n    Number   Major   Minor   RaidDevice State\n"
        + "".join(f"       {at}       8       {at}        {at}      active sync   /dev/sd{letter}{n}\n" for at, letter in enumerate(of))
        for n, of, uuid, size in (
            (1, "abcd", UUID, "Array Size : 8000 (7.81 MiB 8.19 MB)"), (2, "ab", OTHER_UUID, "Used Dev Size : 90000 (87.89 MiB 92.16 MB)")
        )
    )  # fmt: skip
    less = (wide + big).replace("Used Dev Size", "Used")
    assert warehouse.land("mdadm", {"web2/mdadm": f"TS {TS}\n{wide}{big}TS {TS + 60}\n{less}"}).rows_delivered == 4
    groups = {drive[-1]: group for drive, group in warehouse.rows("drives", "drive_id raid_group_id", host="web2")}
    assert groups == {"a": OTHER_UUID, "b": OTHER_UUID, "c": UUID, "d": UUID}


@pytest.mark.parametrize(
    "state", ["broken", "clean", "active (auto-read-only)", "active (read-only)", "readonly", "write-pending", "suspended"]
)
def test_a_state_that_is_known_says_who_has_left(state: str, warehouse: Warehouse) -> None:
    whole = array("md0 : active raid0 sdb1[1] sda1[0]", "900 blocks super 1.2 512k chunks")
    summary = warehouse.land("mdadm", mdstat(whole, whole.replace("active", state).replace(" sda1[0]", "")))
    assert (summary.rows_rejected, summary.files[0].note) == (0, None)
    assert warehouse.rows("drive_events", "drive_id detail") == [("web1/sda", "md: removed")]
    assert warehouse.rows("drives", "drive_id slot", valid_from=AT + timedelta(minutes=10)) == [("web1/sdb", "1")]


def test_a_detail_counts_copies() -> None:
    text = DETAIL.replace("raid6", "raid10").replace("left-symmetric", "near=2, far=2\n        Array Size : 5000000 (4.77 GiB 5.12 GB)")
    assert [each.member_blocks for each in arrays_of(looks(f"TS {TS}\n{text}")[0], [])] == [5_000_000]


def test_a_broken_array_in_the_first_look_has_the_members_that_are_left(warehouse: Warehouse) -> None:
    warehouse.land("mdadm", mdstat(array("md0 : broken linear sdc1[2]", "900 blocks super 1.2 0k rounding")))
    assert warehouse.rows("drives", "drive_id slot raid_level") == [("web1/sdc", "2", "linear")]


@pytest.mark.parametrize(
    ("told", "word"),
    [("frozen raid1", "the state `frozen`"), ("active (frozen) raid1", "the state `frozen`"), ("active raidX2", "the level `raidX2`")],
)
def test_an_unknown_word_is_named_and_ends_no_membership(told: str, word: str, warehouse: Warehouse) -> None:
    known, odd = array("md0 : active raid1 sda1[0] sdb1[1]"), array(f"md0 : {told} sda1[0] sdc1[1]")
    summary = warehouse.land("mdadm", mdstat(known, odd, odd))
    assert summary.rows_rejected == 0
    assert warehouse.rows("drive_events", "drive_id detail") == [("web1/sdc", "md: added")]
    assert {drive for (drive,) in warehouse.rows("drives", "drive_id", valid_from=AT + timedelta(minutes=10))} == {
        "web1/sda", "web1/sdb", "web1/sdc",
    }  # fmt: skip
    assert summary.files[0].note == f"{word} is not known (2 times, first in line 9): no member of these arrays counts as gone"


@pytest.mark.parametrize(("state", "leaves"), [("clean, degraded", True), ("clean, odd", False), ("active, degraded, Not Started", False)])
def test_a_detail_says_by_its_state_whether_its_list_is_whole(state: str, leaves: bool, warehouse: Warehouse) -> None:
    less = DETAIL.replace("Working Devices : 3", "Working Devices : 2").replace("State : clean", f"State : {state}").replace(
        "       2       8       32        2      active sync   /dev/sdd", "       -       0        0        2      removed"
    )  # fmt: skip
    summary = warehouse.land("mdadm", {"web1/mdadm": f"TS {TS}\n{DETAIL}TS {TS + 60}\n{less}"})
    assert warehouse.rows("drive_events", "drive_id", detail="md: removed") == ([("web1/sdd",)] if leaves else [])
    assert bool(summary.files[0].note) is not leaves


def test_a_container_is_no_array_and_keeps_nobody(warehouse: Warehouse) -> None:
    holds = "md127 : inactive sdb[1](S) sda[0](S)\n      5928 blocks super external:imsm\n\n"
    volume = array("md126 : active raid1 sda[1] sdb[0]", "500 blocks super external:/md127/0 [2/2] [UU]")
    summary = warehouse.land("mdadm", mdstat(holds + volume, holds))
    assert (summary.rows_rejected, summary.files[0].note) == (0, None)
    assert warehouse.rows("drives", "drive_id raid_group_id slot") == [("web1/sda", "web1/md126", "1"), ("web1/sdb", "web1/md126", "0")]
    assert warehouse.rows("drive_events", "drive_id detail") == [("web1/sda", "md: removed"), ("web1/sdb", "md: removed")]


def test_members_that_are_no_drives_are_named(warehouse: Warehouse) -> None:
    summary = warehouse.land("mdadm", mdstat(array("md0 : active raid1 bcache1[1] dm-2[0]", "500 blocks super 1.2 [2/2] [UU]")))
    said = "web1/bcache1, web1/dm-2: members of arrays, but no drives; say with `drivetail map` which drives these are on"
    assert (summary.rows_accepted, summary.files[0].note) == (2, said)


# smartctl, lsblk -------------------------------------------------------------------------------------------------


def document(serial: str, name: str = "/dev/sdq", **more: Any) -> dict[str, Any]:
    place = {"name": name, "type": "sat", "protocol": "ATA"} | more.pop("device", {})
    return {"smartctl": {}, "device": place, "serial_number": serial, "local_time": {"time_t": TS}, **more}


@pytest.mark.parametrize("kind", ["cciss", "cciss,3", "sat+megaraid,7", "megaraid", "areca", "scsi"])
def test_a_drive_behind_a_controller_is_not_named_by_its_device(kind: str, warehouse: Warehouse) -> None:
    place = {"type": kind} | ({"info_name": "/dev/sdq [megaraid_disk_07] [SAT]"} if kind == "scsi" else {})
    warehouse.land("smartctl", {"web1/x.json": document("BEHIND1", device=place, power_on_time={"hours": 7})})
    assert warehouse.live("drives")["drive_id"].to_list() == ["BEHIND1"] and not warehouse.live("drive_aliases").height
    # its health is that of its serial number
    assert warehouse.rows("drive_health", "drive_id raw_value is_alias") == [("BEHIND1", 7, False)]


def test_an_nvme_controller_names_itself_and_a_sas_drive_its_logical_unit(warehouse: Warehouse) -> None:
    nvme = document("NV1", "/dev/nvme3", device={"type": "nvme", "protocol": "NVMe"})
    sas = document("SAS1", "/dev/sdz", device={"type": "scsi", "protocol": "SCSI"}, logical_unit_id="0x5000C500AAAA0001")
    warehouse.land("smartctl", {"web1/a.json": nvme, "web1/b.json": sas})
    names = warehouse.rows("drive_aliases", "alias drive_id")
    assert names == [("web1/nvme3", "NV1"), ("web1/sdz", "SAS1"), ("wwn:0x5000c500aaaa0001", "SAS1")]


def test_a_placeholder_is_no_serial_number_for_smartctl(warehouse: Warehouse) -> None:
    wwn = {"naa": 5, "oui": 0, "id": 1}
    files = {
        f"{host}/{device}.json": document("---------", f"/dev/{device}", wwn=wwn, power_on_time={"hours": hours}, model_name="M")
        for hours, (host, device) in enumerate([("web1", "sdq"), ("web1", "sdr"), ("web2", "nvme1n1")])
    }
    behind = document("---------", device={"type": "megaraid,3"})
    summary = warehouse.land("smartctl", {**files, "web3/sda.json": behind, "web3/sdb.json": document("S1", "/dev/disk/by-id/ata-M_S1")})
    named = [("S1", None, False), ("web1/sdq", "M", True), ("web1/sdr", "M", True), ("web2/nvme1n1", "M", True)]
    assert warehouse.rows("drives", "drive_id model is_alias") == named
    assert not warehouse.live("drive_aliases").height
    assert warehouse.rows("drive_health", "drive_id raw_value") == [("web1/sdq", 0), ("web1/sdr", 1), ("web2/nvme1n1", 2)]
    assert [file.note for file in summary.files if "named by device" in (file.note or "")] == [
        "'---------' is a placeholder, no serial number: web1/sdq, web1/sdr, web2/nvme1n1 are named by device"
    ]
    assert [(row["column"], row["value"]) for row in summary.rejected] == [("serial_number", "---------")]


def test_packed_counts_of_media_errors_are_decoded(warehouse: Warehouse) -> None:
    rows = [(187, None, 3 << 32, "0 (3 0)"), (198, None, 150_000, "0/150000"), (197, None, 5 << 32, "0 (0 5)")]
    rows += [(1, None, 3 << 32 | 7, "3/7"), (196, None, 5 << 24 | 7, "5/7"), (198, "Read_Sectors_Tot_Ct", 9, "9")]
    table = [{"id": number, "name": name, "value": 1, "raw": {"value": raw, "string": text}} for number, name, raw, text in rows]
    warehouse.land("smartctl", {"web1/x.json": document("S1", ata_smart_attributes={"table": table})})
    assert warehouse.rows("drive_health", "attribute raw_value") == [
        ("current_pending_sector", 0), ("offline_uncorrectable", 0), ("raw_read_error_rate", 3), ("read_sectors_tot_ct", 9),
        ("reallocated_event_count", None), ("reported_uncorrect", 0),
    ]  # fmt: skip
    assert not warehouse.live("drive_events").height


def test_decoded_values_of_smartctl_precede_packed_ones(warehouse: Warehouse) -> None:
    packed = 7 << 40
    rows = [
        (9, "Power_On_Hours", packed + 1234, "1234 (9 8 7)"), (240, "Head_Flying_Hours", packed + 1200, "1200h+05m+01.000s"),
        (222, "Loaded_Hours", packed + 99, "no number"), (188, "Command_Timeout", (3 << 32) + (2 << 16) + 5, "3 2 5"),
        (194, "Temperature_Celsius", (50 << 32) + 31, "31 (Min/Max 20/50)"), (5, "Reallocated_Sector_Ct", 8, "8"),
    ]  # fmt: skip
    table = [{"id": number, "name": name, "value": 90, "raw": {"value": raw, "string": text}} for number, name, raw, text in rows]
    more = {"power_on_time": {"hours": 1235}, "temperature": {"current": 32}, "ata_smart_attributes": {"table": table}}
    warehouse.land("smartctl", {"web1/x.json": document("PACKED1", **more)})
    health = dict(warehouse.stored("drive_health").select("attribute", "raw_value").rows())
    assert health == {
        "power_on_hours": 1235, "head_flying_hours": 1200, "loaded_hours": 99, "command_timeout": 5, "temperature_celsius": 32,
        "reallocated_sector_ct": 8,
    }  # fmt: skip
    assert set(warehouse.stored("drive_health")["normalised_value"]) == {90}


@needs_shared
def test_a_document_of_every_protocol(warehouse: Warehouse) -> None:
    paths = [*SAMPLES.glob("smartctl_*.json"), *SAMPLES.glob("qemu_md_raid6/smartctl_*.json")]
    summary = warehouse.land("smartctl", {f"web1/{path.name}": path.read_bytes() for path in paths})
    # a list of devices, and a drive that did not answer
    assert sorted(Path(file.file).name for file in summary.unreadable) == ["smartctl_scan_megaraid.json", "smartctl_xall_smart-fail.json"]
    assert "smartctl could not open the device" in str(next(file.note for file in summary.unreadable if "fail" in file.file))
    columns = "kind model firmware capacity_bytes rpm interface deployed_on raid_group_id"
    seen = {(drive, at): rest for drive, at, *rest in warehouse.rows("drives", f"drive_id valid_from {columns}")}
    names = warehouse.rows("drive_aliases", "alias drive_id valid_from")
    drives = {serial: seen[alias, at] for alias, serial, at in names if (alias, at) in seen}
    assert drives["SER0001"] == ["disk", "QEMU HARDDISK", "2.5+", 268435456, 7200, "SATA", date(2026, 11, 21), "web1"]
    assert drives["NVME0001"][0] == "ssd" and drives["NVME0001"][5] == "NVMe"
    models = {model: rest for model, *rest in warehouse.stored("drives").select("model", "kind", "interface").rows()}
    assert (models["HITACHI H109060SESUN600G"], models["SEAGATE ST373453LC"]) == (["disk", "SAS"], ["disk", None])
    assert models["SAMSUNG MZ7WD240HAFV-00003"][0] == "ssd"
    named = {drive: alias for alias, drive in warehouse.rows("drive_aliases", "alias drive_id") if alias.endswith(("sda", "nvme0n1"))}
    assert named["SER0001"] == "web1/sda" and named["NVME0001"] == "web1/nvme0n1"
    # behind a RAID controller /dev/sda is many drives
    assert "XXXXXXXXXXXX" not in named


def test_a_document_that_is_cut_off_or_says_too_little_is_unreadable(warehouse: Warehouse) -> None:
    table = [{"id": 187, "raw": {"value": 3}}, {"id": 5, "raw": {"value": 9}}, None]
    whole = document("S1", power_on_time={"hours": 10**9}, user_capacity={"bytes": "512"}, ata_smart_attributes={"table": table})
    files = {"cut": json.dumps(whole)[:40], "list": [], "when": {**whole, "local_time": {}}, "whole": whole}
    summary = warehouse.land("smartctl", {f"web1/{name}.json": content for name, content in files.items()})
    assert [(Path(file.file).stem, str(file.note)[:25]) for file in summary.unreadable] == [
        ("cut", "not JSON (Unterminated st"), ("list", "not a document of smartct"), ("when", "local_time.time_t is miss"),
    ]  # fmt: skip
    # a billion hours are no age; text is read as a count; sectors that the drive has replaced are no media error
    assert warehouse.rows("drives", "drive_id deployed_on capacity_bytes kind") == [("web1/sdq", None, 512, None)]
    assert warehouse.rows("drive_events", "drive_id event_type detail is_alias") == [
        ("web1/sdq", "media_error", "smartctl: 3 counted so far", True),
    ]  # fmt: skip
    assert counts(summary) == (3, 3, 0, 0, 0)


@pytest.mark.parametrize(
    ("protocol", "said", "kind"),
    [
        ("ATA", {"rotation_rate": 5400}, "disk"),
        ("ATA", {"rotation_rate": 0}, "ssd"),
        ("ATA", {"trim": {"supported": False}}, None),  # a disk of before 2008
        ("ATA", {"trim": {"supported": True}}, "ssd"),
        ("SCSI", {}, None),
        ("NVMe", {}, "ssd"),
    ],
)
def test_only_a_drive_that_says_so_does_not_rotate(protocol: str, said: dict[str, Any], kind: str | None, warehouse: Warehouse) -> None:
    warehouse.land("smartctl", {"web1/a.json": document("S1", device={"protocol": protocol}, **said)})
    assert warehouse.rows("drives", "kind") == [(kind,)]


def test_a_column_that_is_not_printed_is_not_called_empty(warehouse: Warehouse) -> None:
    plain = {"blockdevices": [{"name": "sda", "type": "disk"}, {"name": "sdb", "type": "disk", "serial": None}], "TS": TS}
    warehouse.land("lsblk", {"web1/lsblk.json": plain})
    reasons = {row: str(reason)[:28] for row, reason in warehouse.rejected("row reason")}
    assert reasons == {1: "the list has no column SERIA", 2: "the drive has no serial numb"}
    (file,) = warehouse.land("smartctl", {"web1/all.json": json.dumps(document("S1")) + "\n" + json.dumps(document("S2"))}).files
    assert file.status == "unreadable" and "write each into a file of its own" in (file.note or "")


def test_a_placeholder_is_no_serial_number_for_lsblk(warehouse: Warehouse) -> None:
    """A dock: the serial number of two drives, and the world wide name of all, name nothing."""
    serials = {"/dev/sda": "5000000000000001", "/dev/sdb": "5000000000000001", "/dev/sdc": "S1", "/dev/xvda1": "N/A", "/dev/xvdb1": "N/A"}
    devices = [{"name": name, "serial": serial, "wwn": "0x5000000000000001", "size": n} for n, (name, serial) in enumerate(serials.items())]
    devices += [{"name": "/dev/xvdb", "serial": "S2"}, {"name": "/dev/mapper/mpatha", "serial": "S3"}, {"serial": "S4"}]
    document = {"blockdevices": [{"type": "disk", **device} for device in devices], "TS": TS}
    summary = warehouse.land("lsblk", {"web1/lsblk.json": document})
    # xvdb1 is a partition of xvdb, and a link is no drive
    assert warehouse.rows("drives", "drive_id is_alias capacity_bytes raid_group_id") == [
        ("web1/sda", True, 0, "web1"), ("web1/sdb", True, 1, "web1"), ("web1/sdc", True, 2, "web1"), ("web1/xvda1", True, 3, "web1"),
        ("web1/xvdb", True, None, "web1"),
    ]  # fmt: skip
    # two that claim it at once show the models that it names neither
    assert warehouse.rows("drive_aliases", "alias drive_id") == [
        ("web1/sda", "5000000000000001"), ("web1/sdb", "5000000000000001"), ("web1/sdc", "S1"), ("web1/xvdb", "S2"),
    ]  # fmt: skip
    assert (summary.files[0].note or "").splitlines() == [
        "'5000000000000001' is a placeholder, no serial number: web1/sda, web1/sdb are named by device; "
        "'N/A' is a placeholder, no serial number: web1/xvda1 is named by device"
    ]
    assert [row["column"] for row in summary.rejected] == ["name"]


def test_lsblk_names_every_drive_with_a_serial(warehouse: Warehouse) -> None:
    devices = [
        {"name": "sda", "serial": "S1", "wwn": "naa.5000C500A1B2C3D4", "model": "M ", "size": 4096, "rota": True, "tran": "sas"},
        {"name": "nvme0n1", "serial": "S2", "size": "4096", "rota": "0", "tran": "nvme"},
        {"name": "sdc", "serial": "S3", "rota": 1},
        {"name": "sdb", "serial": None},
        {"name": "md0", "type": "raid6", "serial": None},
        {"name": "zram0", "serial": None},
        {"name": "mmcblk0boot0", "serial": "S4"},
    ]
    document = {"blockdevices": [{"type": "disk", **device} for device in devices], "TS": TS}
    assert counts(warehouse.land("lsblk", {"web1/lsblk.json": document})) == (8, 7, 1, 0, 0)
    assert warehouse.rows("drive_aliases", "alias drive_id") == [
        ("web1/nvme0n1", "S2"), ("web1/sda", "S1"), ("web1/sdc", "S3"), ("wwn:0x5000c500a1b2c3d4", "S1"),
    ]  # fmt: skip
    assert warehouse.rows("drives", "drive_id kind model capacity_bytes interface") == [
        ("web1/nvme0n1", "ssd", None, 4096, "NVMe"), ("web1/sda", "disk", "M", 4096, "SAS"), ("web1/sdc", "disk", None, None, None),
    ]  # fmt: skip


def test_lsblk_finds_drives_below_what_is_made_of_them(warehouse: Warehouse) -> None:
    """With -s a drive stands below each of its partitions and arrays; without -d they stand below the drive."""
    drives = {name: {"name": name, "type": "disk", "serial": serial} for name, serial in (("sda", "S1"), ("sdb", "S2"), ("sdc", "--"))}
    parts = [{"name": name, "type": "part", "children": [drives[name[:3]]]} for name in ("sda1", "sda2", "sdb1", "sdc1", "sdc2")]
    upward = [parts[1], {"name": "md0", "type": "raid1", "children": [parts[0], parts[2]]}, *parts[3:]]
    downward = [each | {"children": [{"name": f"{name}1", "type": "part"}]} for name, each in drives.items()]
    for host, devices in (("web1", upward), ("web2", downward), ("web3", list(drives.values()))):
        summary = warehouse.land("lsblk", {f"{host}/lsblk.json": {"blockdevices": devices, "TS": TS}})
        assert counts(summary) == (5, 5, 0, 0, 0)
        assert warehouse.rows("drive_aliases", "alias drive_id")[-2:] == [(f"{host}/sda", "S1"), (f"{host}/sdb", "S2")]


def test_lsblk_without_a_disk_says_so(warehouse: Warehouse) -> None:
    devices = [{"name": "sda", "serial": "S1"}, {"name": "md0", "type": "raid1"}]
    summary = warehouse.land("lsblk", {"web1/lsblk.json": {"blockdevices": devices, "TS": TS}})
    assert "no device of type `disk` among 2" in (summary.files[0].note or "")


# diskstats -------------------------------------------------------------------------------------------------------


def snapshot(seconds: int, *drives: tuple[str, int, int, int, int]) -> str:
    """One look: (device, reads, read ms, writes, write ms), sectors eight times the I/Os."""
    lines = (
        f"8 0 {name} {reads} 0 {8 * reads} {r_ms} {writes} 0 {8 * writes} {w_ms} 0 5 6\n" for name, reads, r_ms, writes, w_ms in drives
    )
    return f"TS {TS + seconds}\n" + "".join(lines)


def test_counters_become_hours(warehouse: Warehouse) -> None:
    # 10:20, 10:30, and 11:05 after a gap over the hour's end; partitions and dm devices are nobody's drive
    text = snapshot(0, ("sda", 100, 1000, 10, 50), ("sda1", 1, 1, 1, 1), ("dm-0", 1, 1, 1, 1)) + snapshot(600, ("sda", 300, 1800, 10, 50))
    text += snapshot(2700, ("sda", 400, 9800, 20, 90)) + snapshot(3300, ("sda", 500, 10000, 20, 90))
    # a look may name the local time too
    text = text.replace(f"TS {TS}\n", f"TS {TS}.0 2026-01-05 10:20:00\n")
    assert counts(warehouse.land("diskstats", {"web1/diskstats": text})) == (4, 4, 0, 0, 0)
    measured = "drive_id hour_utc read_ios write_ios read_latency_us write_latency_us read_blocks block_bytes coverage"
    hour = datetime(2026, 1, 5, 10)
    assert warehouse.rows("drive_hours", measured) == [
        ("web1/sda", hour, 200, 0, 4000.0, None, 1600, 512, 600 / 3600),
        ("web1/sda", hour + timedelta(hours=1), 100, 0, 2000.0, None, 800, 512, 600 / 3600),
    ]
    assert set(warehouse.rows("drive_hours", "source raid_group_id is_alias is_group_guessed")) == {("diskstats", "web1", True, True)}


def counting(*looks: tuple[int, dict[str, int]], host: str = "web1", ms: int = 1) -> dict[str, str]:
    """A file of looks: the minute after TS, and the reads that each device counted so far, each of `ms` milliseconds."""
    return {f"{host}/diskstats": "".join(snapshot(60 * at, *((d, n, ms * n, 0, 0) for d, n in counts.items())) for at, counts in looks)}


def minutes(warehouse: Warehouse, drive: str = "web1/sda") -> list[tuple[Any, ...]]:
    """The spans of a drive: begin and end in minutes after TS, null with the hour, and the reads."""
    rows = warehouse.live().filter(drive_id=drive).sort("hour_utc", "collected_at").select("from_utc", "to_utc", "read_ios").rows()
    return [(*(None if at is None else (at - AT).total_seconds() / 60 for at in span), reads) for *span, reads in rows]


def cuts(warehouse: Warehouse) -> list[tuple[str, float]]:
    """The names that have to be seen again, and between which minutes after TS."""
    rows = warehouse.rows("drive_aliases", "alias valid_from valid_to")
    assert warehouse.live("drive_aliases")["drive_id"].null_count() == len(rows)
    return sorted((alias, (at - AT) // timedelta(seconds=1) / 60) for alias, *both in rows for at in both if at)


SDA = "web1/sda"
EVERY_MINUTE = [(minute, {"sda": 100 + minute, "sdb": 100 + minute}) for minute in range(-20, 41)]
BOTH_CUT = [(f"web1/{device}", minute) for device in ("sda", "sdb") for minute in (9, 11.25)]
REMADE = [(minute, {"sda": minute, "sdb": 100 + minute}) for minute in range(41)]


@pytest.mark.parametrize(
    ("looks", "spans", "cut"),
    [
        (EVERY_MINUTE, [(None, None, 60)], []),
        # a fall, at once and after a look without the device
        (EVERY_MINUTE[:30] + REMADE[10:], [(None, 9, 29), (10, None, 30)], [(SDA, 9), (SDA, 10)]),
        ([*EVERY_MINUTE[:30], (10, {"sdb": 110}), *EVERY_MINUTE[31:]], [(None, 9, 29), (11, None, 29)], [(SDA, 9), (SDA, 11)]),
        # it is first listed at 10:20; another one goes
        (
            [*((n, {"sdb": 90 + n}) for n in range(-20, 0)), *((n, {"sda": 100 + n}) for n in range(41))],
            [(0, None, 40)],
            [(SDA, -1)],
        ),
        # one look is missing, then two
        (EVERY_MINUTE[:30] + EVERY_MINUTE[31:], [(None, None, 60)], []),
        (EVERY_MINUTE[:30] + EVERY_MINUTE[32:], [(None, 9, 29), (9, 12, 3), (12, None, 28)], BOTH_CUT),
        # a fall beside the end of the hour, the last thing that is seen of it, cuts there
        (EVERY_MINUTE[:60] + REMADE[40:], [(None, 39, 59)], [(SDA, 39), (SDA, 40)]),
        # looks every five minutes, for some time every minute
        (EVERY_MINUTE[:21:5] + EVERY_MINUTE[21:40] + EVERY_MINUTE[40::5], [(None, None, 60)], []),
        # later looks stand first; two collectors wrote one file after the other
        (EVERY_MINUTE[30:] + EVERY_MINUTE[:30], [(None, None, 60)], []),
        (EVERY_MINUTE[::2] + EVERY_MINUTE[1::2], [(None, None, 60)], []),
    ],
)  # fmt: skip
def test_counters_that_are_not_one_run_are_cut(
    looks: list[tuple[int, dict[str, int]]], spans: list[tuple[Any, ...]], cut: list[tuple[str, float]], warehouse: Warehouse
) -> None:
    assert warehouse.land("diskstats", counting(*looks)).rows_rejected == 0
    assert (minutes(warehouse), cuts(warehouse)) == (spans, cut)
    assert {reads for *_, reads in minutes(warehouse, "web1/sdb")} <= {60, 29, 28, 19, 3}


def test_a_look_shortly_before_the_end_of_a_gap_says_who_is_there_after_it(warehouse: Warehouse) -> None:
    """Who collects looks first, then counts: the name has to be seen from five minutes before on."""
    next_day = [(24 * 60 + minute, counts) for minute, counts in REMADE]
    warehouse.land("diskstats", counting(*EVERY_MINUTE[:30], *next_day))
    assert cuts(warehouse) == [(f"web1/{device}", minute) for device in ("sda", "sdb") for minute in (9, 24 * 60 - 5)]


@pytest.mark.parametrize("rotated_at", [None, 48, 55])
def test_times_that_a_clock_shows_twice_count_once(rotated_at: int | None, warehouse: Warehouse) -> None:
    looks = EVERY_MINUTE[:41] + [(minute - 7, counted) for minute, counted in EVERY_MINUTE[41:]]
    files = {"web1/diskstats-1": counting(*looks[:rotated_at])["web1/diskstats"]}
    if rotated_at:
        files["web1/diskstats-2"] = counting(*looks[rotated_at:])["web1/diskstats"]
    file, *_ = warehouse.land("diskstats", files).files
    # 14 to 20 came again, of two drives, 20 as the same instant; the step from 20 to 21 took eight minutes, and nothing says so
    assert (file.rows_superseded, file.rows_duplicate) == (12, 2)
    assert (minutes(warehouse), cuts(warehouse)) == ([(None, 20, 40), (21, 33, 12)], [])
    assert (file.note or "").startswith("the clock of web1 was set back to 2026-01-05 10:34:00: 12 lines are left out")


def test_a_clock_set_back_to_before_its_first_look_shows_no_time_twice(warehouse: Warehouse) -> None:
    looks = EVERY_MINUTE[38:41] + [(minute - 7, counted) for minute, counted in EVERY_MINUTE[41:]]
    (file,) = warehouse.land("diskstats", counting(*looks)).files
    assert (file.rows_superseded, file.rows_duplicate) == (12, 2)
    assert minutes(warehouse) == [(18, 20, 2), (21, 33, 12)]
    # one put behind it that overlaps counted more before a boot
    behind = counting(*EVERY_MINUTE[18:30], *REMADE[11:], *EVERY_MINUTE[:23], host="web2")
    assert [each.rows_superseded for each in warehouse.land("diskstats", behind).files] == [0]
    assert minutes(warehouse, "web2/sda") == [(None, 9, 29), (11, None, 29)]


@pytest.mark.parametrize("years", [0, 10])
def test_looks_of_a_clock_that_ran_ahead_are_left_out(years: int, warehouse: Warehouse) -> None:
    ahead = [(minute + 20 + years * 525_600, counted) for minute, counted in EVERY_MINUTE[20:23]]
    (file,) = warehouse.land("diskstats", counting(*EVERY_MINUTE[:20], *ahead, *EVERY_MINUTE[23:])).files
    assert (file.rows_superseded, file.rows_duplicate) == (6, 0)
    assert "the clock of web1 ran ahead, to 20" in (file.note or "") and "6 lines are left out" in (file.note or "")
    # of the rest nothing is lost, and a step of four minutes is a span of its own
    assert minutes(warehouse) == [(None, -1, 19), (-1, 3, 4), (3, None, 37)]


def test_times_that_a_clock_shows_twice_around_a_boot_count_once(warehouse: Warehouse) -> None:
    # down at 20, up again by 22, when the clock shows 15
    booted = [(minute - 7, {"sda": minute - 21, "sdb": minute - 21}) for minute in range(22, 41)]
    (file,) = warehouse.land("diskstats", counting(*EVERY_MINUTE[:41], *booted)).files
    assert (file.rows_superseded, file.rows_duplicate) == (10, 2)
    assert minutes(warehouse) == [(None, 20, 40), (21, 33, 12)]
    assert cuts(warehouse) == [(device, minute) for device in (SDA, "web1/sdb") for minute in (20, 21)]
    # what is counted since a boot stands behind what comes after it
    behind = counting(*EVERY_MINUTE[:21], *REMADE[11:], *REMADE[1:11], host="web2")
    assert [each.rows_superseded for each in warehouse.land("diskstats", behind).files] == [0]
    assert minutes(warehouse, "web2/sda") == [(None, 0, 20), (1, None, 39)]


def test_a_cut_is_seen_against_the_look_that_an_earlier_delivery_brought(warehouse: Warehouse) -> None:
    earlier, later = counting(*EVERY_MINUTE[:30]), counting(EVERY_MINUTE[29], *REMADE[10:])
    later["web1/diskstats"] = later["web1/diskstats"].replace(f"TS {TS + 540}\n", f"TS {TS + 540} again\n")
    for files in (earlier, later, later):
        warehouse.land("diskstats", files)
    assert (minutes(warehouse), cuts(warehouse)) == ([(None, 9, 29), (10, None, 30)], [(SDA, 9), (SDA, 10)])


@pytest.mark.parametrize("seam", [-2, 2, 30, 56, 58])
def test_an_hour_of_two_deliveries_is_the_sum_of_both(seam: int, warehouse: Warehouse) -> None:
    """The later one begins with the last look of the earlier one, as those of a collector do."""
    looks = [(minute, {"sda": 100 + minute}) for minute in range(-40, 101, 2)]
    for part in ([each for each in looks if each[0] <= seam], [each for each in looks if each[0] >= seam]):
        warehouse.land("diskstats", counting(*part))
    assert sum(reads for *_, reads in minutes(warehouse)) == 140


BUSY = [(minute, {"sda": 1000 * (minute + 30)}) for minute in range(-20, 101)]
CALM = [(minute, {"sda": 100 * (minute + 30)}) for minute in range(-20, 101)]


@pytest.mark.parametrize(
    ("first", "second", "ms", "count"),
    [
        (CALM, BUSY, 1, 2), (BUSY, CALM, 1, 2), (BUSY[:81], BUSY, 1, 0), (BUSY, BUSY[40:], 1, 0), (BUSY[:60], CALM[61:], 1, 0),
        (CALM, CALM, 5, 2), (CALM[:60], CALM[61:], 5, 0),
    ],
)  # fmt: skip
def test_machines_of_one_name_in_two_calls_are_noted(
    first: list[tuple[int, dict[str, int]]], second: list[tuple[int, dict[str, int]]], ms: int, count: int, warehouse: Warehouse
) -> None:
    """Both are web1, or one delivers again, or more, or goes on; or the second is slower."""
    assert all(file.note is None for file in warehouse.land("diskstats", counting(*first)).files)
    (file,) = warehouse.land("diskstats", counting(*second, ms=ms)).files
    assert (file.note or "").startswith(f"{count} drive-hours differ from those that have landed" * bool(count))
    assert (TWO_MACHINES in (file.note or "")) == bool(count)


def test_machines_of_one_name_in_one_call_are_noted(warehouse: Warehouse) -> None:
    files = {f"{folder}/web1/diskstats": counting(*looks)["web1/diskstats"] for folder, looks in (("a", CALM), ("b", BUSY))}
    first, second = warehouse.land("diskstats", files).files
    assert first.note is None and (second.note or "").startswith("121 lines of web1 have other counts than another file has")
    assert (second.rows_duplicate, minutes(warehouse)) == (121, [(None, None, 6000), (None, None, 6000)])


def test_a_path_that_comes_back_is_no_other_drive(warehouse: Warehouse) -> None:
    paths = [(n, {"nvme0n1": 0, "nvme0c0n1": n if n >= 5 else 100 + n, "nvme0c1n1": 200 + n}) for n in range(-20, 41)]
    warehouse.land("diskstats", counting(*paths))
    assert (minutes(warehouse, "web1/nvme0n1"), cuts(warehouse)) == ([(None, None, 119)], [])


def test_a_damaged_look_is_no_absence(warehouse: Warehouse) -> None:
    text = counting(*EVERY_MINUTE)["web1/diskstats"]
    whole = snapshot(600, ("sda", 110, 110, 0, 0), ("sdb", 110, 110, 0, 0))
    assert warehouse.land("diskstats", {"web1/diskstats": text.replace(whole, whole[:-20])}).rows_rejected == 1
    assert (minutes(warehouse, "web1/sdb"), cuts(warehouse)) == ([(None, None, 60)], [])


def test_partitions_of_no_drive_are_drives_or_named(warehouse: Warehouse) -> None:
    devices = ("xvda1", "xvda2", "xvdb", "xvdb1", "sda1", "sdc", "sdc1", "boat7")
    looks = [(minute, dict.fromkeys(devices, minute)) for minute in range(0, 20, 5)]
    (file,) = warehouse.land("diskstats", counting(*looks)).files
    assert {drive for (drive,) in warehouse.rows("drive_hours", "drive_id")} == {f"web1/{d}" for d in ("xvda1", "xvda2", "xvdb", "sdc")}
    assert (file.note or "").startswith("4 lines of 1 partitions are left out whose whole drive is not listed, such as sda1")
    assert {reason.split(" is ")[0] for (reason,) in warehouse.rejected("reason")} == {"boat7"}


@pytest.mark.parametrize(("head", "accepted", "again", "mean_us"), [(0, 9, 0, 833.3), (600, 5, 4, 1666.7)])
def test_hidden_paths_count_for_a_head_that_counts_nothing(
    head: int, accepted: int, again: int, mean_us: float, warehouse: Warehouse
) -> None:
    """Three looks, a head and two paths; where the head counts too, the paths say the same again."""
    ios_and_ms = {"nvme4n1": (head, 1000 * (head > 0)), "nvme4c0n1": (200, 400), "nvme4c7n1": (400, 100)}
    looks = [snapshot(600 * n, *((name, ios * n, ms * n, 0, 0) for name, (ios, ms) in ios_and_ms.items())) for n in range(3)]
    assert counts(warehouse.land("diskstats", {"web1/diskstats": "".join(looks)})) == (9, accepted, 0, again, 0)
    (hour,) = warehouse.rows("drive_hours", "drive_id read_ios read_latency_us coverage")
    assert hour == ("web1/nvme4n1", 1200, pytest.approx(mean_us, abs=0.1), pytest.approx(0.333, abs=0.001))


def test_a_wrap_is_bridged_and_a_reboot_costs_its_interval(warehouse: Warehouse) -> None:
    wrap = 2**32
    wrapped = snapshot(0, ("sda", 100, wrap - 500, 1, 1)) + snapshot(60, ("sda", 200, 500, 2, 2))
    rebooted = snapshot(0, ("sdb", 4_000_000_000, 10**6, 9, 9)) + snapshot(60, ("sdb", 5, 10, 1, 1)) + snapshot(120, ("sdb", 15, 30, 1, 1))
    warehouse.land("diskstats", {"web1/diskstats": wrapped, "web1/diskstats2": rebooted})
    assert warehouse.rows("drive_hours", "drive_id read_ios read_latency_us coverage") == [
        ("web1/sda", 100, 10_000.0, 60 / 3600), ("web1/sdb", 10, 2000.0, 60 / 3600),
    ]  # fmt: skip


def test_garbled_lines_are_turned_away_and_repeated_ones_counted(warehouse: Warehouse) -> None:
    looks = [snapshot(second, ("sda", reads, 10 * reads, 0, 0)) for second, reads in ((0, 100), (60, 200), (60, 200))]
    bad = snapshot(120) + "8 0 sda 1 2 3\n8 0 sdb 1 0 8 x 1 0 8 1 0 5 6\n8 0 sdc -1 0 8 1 1 0 8 1 0 5 6\n8\n"
    assert counts(warehouse.land("diskstats", {"web1/diskstats": "".join(looks) + bad})) == (7, 2, 4, 1, 0)
    fields, no_count = "fields, expected 14, 18 or 20", "a counter is no whole number up to 2^53"
    assert warehouse.rejected("row column reason") == [
        (8, "sda", f"6 {fields}"), (9, "sdb", no_count), (10, "sdc", no_count), (11, "device", f"1 {fields}"),
    ]  # fmt: skip


def test_lines_torn_by_a_kernel_message_are_rejected(warehouse: Warehouse) -> None:
    good = snapshot(0, ("sda", 100, 1000, 0, 0), ("sdb", 100, 1000, 0, 0)) + snapshot(60, ("sda", 200, 2000, 0, 0))
    torn = [
        "   8      32 sd", f"8 16 {MESSAGE} sdb 200 0 1600 2000 0 0 0 0 0 5 6", "8 16 sdb 200 0 1600 20[ 1234.5] sd 1:0:0:0: x", MESSAGE,
        "00 0 0 0 0 5 6", "8 16 sd 200 0 1600 2000 0 0 0 0 0 5 6", "8 x sdb 200 0 1600 2000 0 0 0 0 0 5 6", "8 17 sdb1 200 0", "253 0 dm-0",
    ]  # fmt: skip
    kept = [
        "8 17 sdb1 1 2 3 4", "253 0 dm-0 1 0 8 1 1 0 8 1 0 5 6", "7 0 loop0 1 0 8 1 1 0 8 1 0 5 6 0 0 0 0 0 0", "",
        "120 0 emcpowera" + " 1" * 11,
    ]  # fmt: skip
    text = good + "".join(f"{line}\n" for line in (*torn, *kept))
    assert counts(warehouse.land("diskstats", {"web1/diskstats": text})) == (3 + len(torn), 3, len(torn), 0, 0)
    assert warehouse.rows("drive_hours", "drive_id read_ios") == [("web1/sda", 100)]


def test_a_fuller_hour_replaces_what_came_of_it_before(warehouse: Warehouse) -> None:
    looks = [snapshot(60 * minute, ("sda", 100 * minute, 200 * minute, 0, 0)) for minute in range(4)]
    for count in (3, 4):
        assert counts(warehouse.land("diskstats", {"web1/diskstats": "".join(looks[:count])})) == (count, count, 0, 0, 0)
    assert warehouse.rows("drive_hours", "read_ios coverage") == [(300, 180 / 3600)]


@needs_shared
def test_diskstats_samples_of_three_kernels(warehouse: Warehouse) -> None:
    kernels = "".join(f"TS {TS + 60 * n}\n" + sample("proc_diskstats_node_exporter.txt") for n in range(2))
    series = {f"web1/diskstats_{n}": sample(f"proc_diskstats_series_00{n}.txt") for n in (1, 2, 4)}
    summary = warehouse.land("diskstats", {"web1/diskstats": kernels, **series})
    assert (summary.unreadable, summary.rows_rejected) == ([], 0)
    lines = [line.split() for line in sample("proc_diskstats_series_001.txt").splitlines() if " cciss/c0d0 " in line]
    reads, _, blocks, _, writes, _, _, write_ms = (
        int(last) - int(first) for first, last in zip(lines[0][3:11], lines[-1][3:11], strict=True)
    )
    (hour,) = warehouse.rows("drive_hours", "read_ios write_ios read_blocks write_latency_us", drive_id="web1/cciss/c0d0")
    assert hour == (reads, writes, blocks, 1000.0 * write_ms / writes)


@pytest.mark.parametrize("name", ["ublkb0", "skd1", "scinia", "VxDMP3", "etherd!e0.1"])
def test_a_device_of_unknown_name_is_rejected_by_its_name(name: str, warehouse: Warehouse) -> None:
    warehouse.land("diskstats", {"web1/diskstats": f"TS {TS}\n120 0 {name} 1 0 8 1 1 0 8 1 0 5 6 0 0 0 0 0 0\n"})
    ((reason,),) = warehouse.rejected("reason")
    assert str(reason).startswith(f"{name} is a name of a device that is not known here")


# mapping ---------------------------------------------------------------------------------------------------------


def test_a_mapping_names_drives_and_puts_them_into_groups(warehouse: Warehouse) -> None:
    text = "host,device,drive_id,raid_group_id,role,valid_from,valid_to\n"
    text += "web1,/dev/sda,S1,pool-a,data,,\nweb1,sdb,S2,,,2026-01-05T00:00:00,\n,,S3,pool-a,,,\nweb1,sdc,,pool-b,,,\n"
    text += "web1,,,pool-a,,,\n,,S4,,,,\n,,S5,pool-a,chief,,\n,,S6,pool-a,,2026-01-05,2026-01-04\n"
    assert counts(warehouse.land("mapping", {"map.csv": text})) == (9, 5, 4, 0, 0)
    assert warehouse.rows("drive_aliases", "alias drive_id") == [("web1/sda", "S1"), ("web1/sdb", "S2")]
    assert warehouse.rows("drives", "drive_id raid_group_id is_alias is_group_guessed") == [
        ("S1", "pool-a", False, False), ("S3", "pool-a", False, False), ("web1/sdc", "pool-b", True, False),
    ]  # fmt: skip
    assert [column for _, column in warehouse.rejected("row column")] == ["drive_id", "raid_group_id", "role", "valid_to"]
    # what a drive is called by somebody else, it is called for ever
    serials = "alias_serial,drive_id,valid_from\nS-A,S-a,2026-01-05\nS-B,,\n"
    assert counts(warehouse.land("mapping", {"map.csv": serials})) == (2, 1, 1, 0, 0)
    assert warehouse.rows("drive_aliases", "drive_id valid_from", alias="S-A") == [("S-a", None)]
    # the operator's last word counts
    warehouse.land("mapping", {"map.csv": "drive_id,raid_group_id\nS3,pool-0\n"})
    assert warehouse.rows("drives", "raid_group_id", drive_id="S3") == [("pool-0",)]


def test_a_mapping_of_people_has_blanks_and_words_for_no_serial_number(warehouse: Warehouse) -> None:
    text = "host, device, drive_id, raid_group_id\nweb1, sda, S1 , pool-a\nweb1,sdb,N/A,pool-a\nweb1,sdc,N/A,pool-a\nweb1, sdd, ,pool-a\n"
    warehouse.land("mapping", {"map.csv": text})
    assert warehouse.rows("drive_aliases", "alias drive_id") == [("web1/sda", "S1")]
    assert warehouse.rows("drives", "drive_id raid_group_id host") == [("S1", "pool-a", "web1"), ("web1/sdd", "pool-a", "web1")]
    assert warehouse.rejected("row column value") == [(2, "drive_id", "N/A"), (3, "drive_id", "N/A")]
    (file,) = warehouse.land("mapping", {"map.csv": text.replace(",", ";")}).files
    assert "its columns are separated by ';'; expected a comma" in (file.note or "")


def test_a_mapping_without_a_group_lands_too(warehouse: Warehouse) -> None:
    text = "host,device,drive_id,role,enclosure,model,site,slot\nweb1,sda,S1,data,shelf-3,MODELX,fra1,\n,,S2,,shelf-3,,,\n"
    text += "web1,/dev/sdd1,,,,,,7\nweb1,nvme0n1p2,S3,,,,,\nweb2,,S4,,,,,\n,,S5,,,,,\n"
    assert counts(warehouse.land("mapping", {"map.csv": text})) == (7, 6, 1, 0, 0)
    # a partition counts as the drive it is on
    assert warehouse.rows("drive_aliases", "alias drive_id") == [("web1/nvme0n1", "S3"), ("web1/sda", "S1")]
    assert warehouse.rows("drives", "drive_id enclosure model site slot host is_alias") == [
        ("S1", "shelf-3", "MODELX", "fra1", None, "web1", False), ("S2", "shelf-3", None, None, None, None, False),
        ("S4", None, None, None, None, "web2", False), ("web1/sdd", None, None, None, "7", "web1", True),
    ]  # fmt: skip
    assert set(warehouse.rows("drives", "raid_group_id is_group_guessed")) == {(None, True)}
    assert warehouse.rejected("row column") == [(6, "raid_group_id")]

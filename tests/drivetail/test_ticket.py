"""The text of a ticket: commands of the system that a drive is in, by what inventory says; what is not known is said."""

from __future__ import annotations

from typing import Any

import pytest

from drivetail.ask.ticket import ticket, to_find

DRIVE: dict[str, Any] = {
    **dict.fromkeys(("site", "enclosure", "slot", "vendor", "capacity_bytes", "left_at")),
    "drive_id": "ZQ17", "host": "n1", "device": "sdk", "model": "M", "current_raid_group_id": "g", "is_group_guessed": False,
    "is_logical": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("drive", "group", "said"),
    [
        ({}, ("n1 md127", "raid6"), ["mdadm /dev/md127 --replace /dev/sdk --with /dev/NEW", "mdadm --detail /dev/md127"]),
        ({}, ("n1 md5 (ssd)", None), ["mdadm /dev/md5 --fail /dev/sdk"]),
        (
            {"current_raid_group_id": "n1/tank/raidz2-0"},
            ("n1/tank/raidz2-0", "raidz2"),
            ["zpool replace tank sdk NEW", "zpool offline tank sdk"],
        ),
        (
            {"current_raid_group_id": "c/hdd", "slot": "osd.3, osd.15"},
            ("c/hdd", None),
            ["ceph osd safe-to-destroy osd.3 osd.15", "ceph osd purge 15"],
        ),
        ({"enclosure": "e1", "slot": "7"}, ("g", "raid6"), ["sg_ses --index=7 --set=ident", "which that is, is not known"]),
        ({"device": None, "slot": "7"}, ("g", "raid6"), ["storcli /cX/eY/s7 start locate", "X and Y, not known here"]),
        (
            {"is_group_guessed": True},
            ("g", None),
            [
                "lsblk -o NAME,TYPE,FSTYPE,MOUNTPOINTS /dev/sdk",
                "pvmove /dev/sdk",
                "vgreduce VG /dev/sdk",
                "lvconvert --repair VG/LV",
                "umount",
            ],
        ),
        ({"device": None}, ("g", None), ["its label must say ZQ17", "no device or slot of it is known"]),
        ({"drive_id": "n1/sdk"}, ("g", None), ["no source gave its serial number; note what `smartctl -i /dev/sdk` says"]),
        (
            {"device": "ata-ST16_ZQ17", "current_raid_group_id": "n1/tank/raidz1-0"},
            ("n1/tank/raidz1-0", "raidz1"),
            ["smartctl -i /dev/disk/by-id/ata-ST16_ZQ17` must say ZQ17", "zpool offline tank ata-ST16_ZQ17"],
        ),
        ({"device": "a;b"}, ("n1 md 1", None), ["smartctl -i /dev/'a;b'", "mdadm --detail /dev/'md 1'"]),
    ],
    ids=[
        "md",
        "md of a kind",
        "zfs",
        "ceph",
        "slot",
        "behind a controller",
        "no array known",
        "nothing known",
        "no serial",
        "by-id",
        "hostile",
    ],
)
def test_a_ticket_has_the_commands_of_the_drives_system(drive: dict[str, Any], group: tuple[str, str | None], said: list[str]) -> None:
    name, level = group
    actions = [{"why_undecided": "It is slow.", "why": "ada decided.", "since_utc": None}]
    text = ticket({**DRIVE, **drive}, actions, [{"name": name, "raid_level": level}])
    assert "Why: It is slow." in text
    assert [words for words in said if words not in text] == []
    systems = [system for system in ("mdadm", "zpool", "ceph") if system in text]
    assert len(systems) == (name != "g")


def test_a_message_says_how_to_find_a_drive_and_get_its_ticket() -> None:
    ticket = "Its ticket: `drivetail decide ZQ17 replace --ticket-text`"
    assert to_find(DRIVE) == f"Find it: `ledctl locate=/dev/sdk` on n1. {ticket}"
    assert to_find({**DRIVE, "host": None, "device": "sdk, sdl"}) == f"Find it: `ledctl locate=/dev/sdk`. {ticket}"
    assert to_find({**DRIVE, "device": None}) == ticket
    assert "drivetail decide 'n1/a;b' replace" in to_find({**DRIVE, "drive_id": "n1/a;b"})


def test_a_logical_volume_has_no_ticket() -> None:
    text = ticket({**DRIVE, "is_logical": True}, [], [])
    assert text.startswith("No ticket: n1 sdk (ZQ17, M) is a logical volume") and "storcli" in text
    assert "swap" not in text and "pull" not in text

"""Text of a ticket: where a drive is, why it goes, and the commands of the system that it is in. Nothing is run from here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

from drivetail.ask.probes import newest_probes
from drivetail.terminal import facts
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from report.words import named_drive, to_minute

ZFS_LEVELS = ("mirror", "raidz", "draid", "stripe")


def ticket_text(warehouse: Warehouse, drives: Sequence[str]) -> str:
    """Text for a technician who is to replace some drives: where each is, how to be sure that it is the one, why, and how.

    Raises: QueryError without a publication, for a drive that it does not know, and for one that has gone.
    """
    from drivetail.ask.explain.question import known_drive  # explain reads raw, with libraries that a message need not load

    texts = []
    with publication_of(warehouse) as connection:
        probes = newest_probes(connection)
        for row in [known_drive(connection, drive) for drive in drives]:
            if row["left_at"]:
                raise QueryError(f"{named_drive(row)}: it has gone already; there is nothing to replace")
            todo = fetch(connection, "select * from marts.drive_actions where drive_id = ?", [row["drive_id"]])
            group = fetch(connection, "select * from marts.dim_raid_groups where raid_group_id = ?", [row["current_raid_group_id"]])
            texts.append(ticket(row, todo, group, probes.get(row["drive_id"])))
    return "\n\n\n".join(texts)


def ticket(row: Row, actions: Sequence[Row], groups: Sequence[Row], probe: str | None = None) -> str:
    """The same of a row of marts.dim_drives, with those of marts.drive_actions and marts.dim_raid_groups of it, where there are any.

    probe: what its newest probe showed.
    """
    todo = actions[0] if actions else {"why_undecided": None, "why": "It is on no list of drivetail.", "since_utc": None}
    since = f" Slow since {to_minute(todo['since_utc'])} UTC." if todo["since_utc"] else ""
    size = row["capacity_bytes"] and f"{row['capacity_bytes'] / 10**12:.3g} TB"
    group = groups[0] if groups else {"name": row["current_raid_group_id"], "raid_level": None}
    described = [
        *((name.capitalize(), row[name]) for name in ("site", "host", "device", "enclosure", "slot")),
        ("Serial", _serial(row)),
        ("Model", ", ".join(part for part in (row["vendor"], row["model"], size) if part) or None),
        ("RAID group", group["name"] and f"{group['name']}{' (guessed: all drives of its host)' if row['is_group_guessed'] else ''}"),
    ]
    if row["is_logical"]:
        return "\n".join([f"No ticket: {named_drive(row)} is a logical volume", "", facts(described), "", LOGICAL])
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate([*_sure(row), *_steps(row, group)], 1))
    return "\n".join(
        [
            f"Replace drive {named_drive(row)}",
            "",
            facts(described),
            "",
            f"Why: {todo['why_undecided'] or todo['why']}{since}",
            *([probe] if probe else []),
            "",
            steps,
            SEEN,
        ]
    )


LOGICAL = """\
A RAID controller or hypervisor hides the drives behind it. Ask it which of them is slow, and have it replace that one:
`storcli /cALL/eALL/sALL show all`, `perccli /cALL/eALL/sALL show all`, `ssacli ctrl all show config detail` or `arcconf getconfig 1 pd`."""

SEEN = """\
drivetail closes the decision when it sees the new serial number; `drivetail confirm` says whether the new drive is as fast as its peers.
Nothing here has been run."""


def to_find(row: Row) -> str:
    """How to find a drive, and its whole ticket, in one line of a message."""
    device = _device(row)
    host = f" on {row['host']}" if row["host"] else ""
    blink = f"Find it: `ledctl locate={device}`{host}. " if device else ""
    return f"{blink}Its ticket: `drivetail decide {quote(row['drive_id'])} replace --ticket-text`"


def _device(row: Row) -> str | None:
    name = row["device"].split(", ")[0] if row["device"] else ""
    folder = "/dev/disk/by-id" if re.match("(ata|nvme|scsi|usb)-", name) else "/dev"
    return f"{folder}/{quote(name)}" if name else None


def _serial(row: Row) -> str | None:
    """Its serial number; null where HOST/DEVICE is all that is known of it."""
    return None if "/" in row["drive_id"] else row["drive_id"]


def _sure(row: Row) -> list[str]:
    """How to be sure of the drive, and how to find it."""
    device = _device(row)
    source = f"`smartctl -i {device}`" if device else "its label"
    sure = f"{source} must say {_serial(row)}" if _serial(row) else f"no source gave its serial number; note what {source} says"
    blink = [f"`ledctl locate={device}` lets its slot blink, `ledctl locate_off={device}` ends it"] if device else []
    if row["enclosure"] and (row["slot"] or "").isdecimal():
        also = "where that does nothing, " if blink else ""
        blink.append(f"{also}`sg_ses --index={row['slot']} --set=ident /dev/sgN` (`lsscsi -g` names the enclosure's N)")
    if not device and (row["slot"] or "").isdecimal():
        blink.append(f"behind a RAID controller `storcli /cX/eY/s{row['slot']} start locate` (`storcli show` has X and Y, not known here)")
    found = f"Find it: {'; '.join(blink)}." if blink else "Find it by its label: no device or slot of it is known."
    return [f"Be sure of the drive: {sure}.", found]


def _steps(row: Row, group: Row) -> list[str]:
    """The commands that check its array, take the drive out, and bring the new one in."""
    device = _device(row) or "DEVICE"
    array = (group["name"] or "").removeprefix(f"{row['host']} ").partition(" (")[0]
    level, slot = group["raid_level"] or "", row["slot"] or ""
    if osds := re.findall(r"osd\.(\d+)", slot):
        ids = " ".join(osds)
        one = " ".join(f"osd.{number}" for number in osds)
        purge = ", ".join(f"`ceph osd purge {number} --yes-i-really-mean-it`" for number in osds)
        return [
            f"Check that no other OSD is down and nothing recovers: `ceph -s`, `ceph osd ok-to-stop {one}`.",
            f"Empty it: `ceph osd out {ids}`, and wait until `ceph osd safe-to-destroy {one}` says so.",
            f"Take it out after its service has stopped: {purge} (with cephadm `ceph orch osd rm {ids} --replace --zap` does all of it). "
            "Then swap the drive.",
        ]
    if group["name"] not in (None, row["current_raid_group_id"]):
        md = f"/dev/{quote(array)}"
        return [
            f"Check that no other member has failed and nothing is rebuilt or checked: `cat /proc/mdstat`, `mdadm --detail {md}`.",
            f"With a free drive NEW: `mdadm {md} --add /dev/NEW`, `mdadm {md} --replace {device} --with /dev/NEW`, `mdadm --wait {md}`, "
            f"then `mdadm {md} --remove {device}`, and pull it. Where `--detail` lists a partition of it, write that.",
            f"Without one: `mdadm {md} --fail {device}`, `mdadm {md} --remove {device}`, swap the drive, `mdadm {md} --add {device}`.",
        ]
    if level.startswith(ZFS_LEVELS) and "/" in (group["name"] or ""):
        pool = quote(group["name"].removeprefix(f"{row['host']}/").partition("/")[0])
        name = quote(row["device"].split(", ")[0]) if row["device"] else "DEVICE"
        return [
            f"Check that no other drive is faulted and nothing resilvers: `zpool status -L {pool}`, which also has its name there.",
            f"With a free drive NEW: `zpool replace {pool} {name} NEW`, and pull it when `zpool status` has ended the resilver.",
            f"Without one: `zpool offline {pool} {name}`, swap the drive, `zpool replace {pool} {name}`.",
        ]
    if group["name"] is None or row["is_group_guessed"]:
        return [
            f"No source names its array. Ask the host what uses it: `lsblk -o NAME,TYPE,FSTYPE,MOUNTPOINTS {device}`.",
            f"LVM (LVM2_member): with room in its volume group VG (`pvs`), and where no volume stripes over it, `pvmove {device}`, "
            f"`vgreduce VG {device}`, `pvremove {device}`. A RAID volume of LVM (`lvs -a -o +devices`): "
            "after the swap `pvcreate` and `vgextend VG` the new drive, then `lvconvert --repair VG/LV`.",
            "A filesystem of its own: have the software that writes there give it up, and `umount` it. "
            "Anything else: as that system asks, which is not known here. Then swap the drive.",
        ]
    known = f"RAID group {group['name']}"
    return [
        f"Check that no other drive of {known} has failed, and that no rebuild runs.",
        "Take it out as its system asks: which that is, is not known here. Put the new drive into the same slot and start the rebuild.",
    ]

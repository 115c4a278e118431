"""Source `lsblk`: which drive a device of a host is, `HOST/lsblk*.json` (docs/sources/lsblk.md).

Every drive with a serial number gives an inventory record of `HOST/DEVICE`, and aliases `HOST/DEVICE` and `wwn:...` for the serial number,
which one device's placeholder is not. lsblk does not say when it looked: `drivetail collect` adds a key `TS` (unix seconds), as
`lsblk ... | jq ".TS = $(date +%s)"` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ingest.contract.errors import UnreadableFile
from ingest.reading.batches import Batch, Rejection, batch_of
from ingest.reading.devices import alias_of, is_no_drive, is_placeholder, kernel_name, placeholder_note, wide_alias, without_whole_disk
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import host_of, instant, read_json
from ingest.reading.readers import count_in, text_in

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = (
    "HOST/lsblk*.json, each what `lsblk --json --bytes -d -o NAME,TYPE,SERIAL,WWN,MODEL,REV,VENDOR,SIZE,ROTA,TRAN` prints, with a key TS"
)
recognise = named("block devices", r"lsblk.*\.json")
_INTERFACES = {"sata": "SATA", "ata": "SATA", "sas": "SAS", "fc": "FC", "nvme": "NVMe"}


def land(files: list[SourceFile], landing: Landing) -> None:
    """The devices of a list. Counts are in records; a drive without a serial number is turned away."""
    landing.read(files, _batches)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    host = host_of(file)
    at, devices = _devices(read_json(file, "lsblk"))
    rejected: list[Rejection] = []
    drives: list[dict[str, Any]] = []
    aliases: list[dict[str, Any]] = []
    placeholders: dict[str, list[str]] = {}
    disks = {
        row: device | {"name": kernel_name(text_in(device.get("name")) or "")}
        for row, device in enumerate(devices, 1)
        if isinstance(device, dict) and device.get("type") == "disk"
    }
    if not disks:
        result.notes.append(f"no device of type `disk` among {len(devices)}: print all, with the column TYPE")
    of_xen = without_whole_disk(device["name"] for device in disks.values())
    looked = {"valid_from": at, "collected_at": at}
    for row, device in disks.items():
        name, serial = device["name"], text_in(device.get("serial"))
        if is_no_drive(name) and name not in of_xen:  # lsblk calls zram0 a disk too
            continue
        if not name or serial is None:
            if not name:
                why = "the drive has no name"
            elif "serial" not in device:
                why = "the list has no column SERIAL: print it, with `lsblk -o NAME,TYPE,SERIAL,...`"
            else:
                why = "the drive has no serial number; is it behind a RAID controller, or virtual?"
            rejected.append((row, why, "serial" if name else "name", name or None))
            continue
        alias = alias_of(host, name)
        drives.append({"row_no": row, "drive_id": alias, "is_alias": True, **_inventory(device, host), **looked})
        if is_placeholder(serial):
            placeholders.setdefault(serial, []).append(alias)
            continue
        wide = text_in(device.get("wwn"))
        names = [alias] if wide is None or is_placeholder(wide) else [alias, wide_alias(wide)]
        aliases += [{"alias": name, "drive_id": serial, **looked} for name in names]
    for serial, names in placeholders.items():
        result.notes.append(placeholder_note(serial, names))
        if len(names) > 1:  # the models see that it names none of them, and list it
            aliases += [{"alias": name, "drive_id": serial, **looked} for name in names]
    yield batch_of("drives", drives, rejected)
    yield batch_of("drive_aliases", aliases)


def _devices(document: Any) -> tuple[datetime, list[Any]]:
    devices = document.get("blockdevices") if isinstance(document, dict) else None
    if not isinstance(devices, list):
        raise UnreadableFile("not a document of lsblk: it has no list `blockdevices`")
    seconds = document.get("TS")
    if type(seconds) is not int:
        raise UnreadableFile('no key TS: the document does not say when it was made; add it with `jq ".TS = $(date +%s)"`')
    return instant(seconds), list(_all(devices))


def _all(devices: list[Any]) -> Iterator[Any]:
    """The devices of a list and all their children, each once: `lsblk -s` lists drives below what is made of them."""
    seen, left = set(), devices[::-1]
    while left:
        device = left.pop()
        if not isinstance(device, dict):
            yield device
            continue
        if (name := text_in(device.get("name"))) is None or name not in seen:
            yield device
        seen.add(name)
        children = device.get("children")
        left += children[::-1] if isinstance(children, list) else []


def _inventory(device: dict[str, Any], host: str) -> dict[str, Any]:
    rotates = device.get("rota")
    return {
        "raid_group_id": host,
        # true and false are 1 and 0
        "kind": {1: "disk", "1": "disk", 0: "ssd", "0": "ssd"}.get(rotates) if isinstance(rotates, int | str) else None,
        "vendor": text_in(device.get("vendor")),
        "model": text_in(device.get("model")),
        "firmware": text_in(device.get("rev")),
        "capacity_bytes": count_in(device.get("size")),  # before util-linux 2.33 every value is text
        "interface": _INTERFACES.get(text_in(device.get("tran")) or ""),
        "host": host,
        "is_group_guessed": True,
    }

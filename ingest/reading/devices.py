"""Names that Linux gives to block devices, and which of them are whole drives."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from ingest.contract.findings import some_of
from ingest.reading.parse import completed

# Whole drives: a name and letters, whose partitions are numbers (sda1), or a shape where # is a number, whose partitions are p and a
# number (nvme0n1p2). Everything else is a partition, made of other devices (md0, dm-0, loop0, zram0, nbd0) or one path of a
# multipath NVMe namespace (nvme0c1n1, HIDDEN_PATH).
_LETTERED = ("sd", "hd", "vd", "xvd", "dasd", "rssd", "fio")  # SCSI, SATA, SAS; IDE; virtio; Xen; mainframes; Micron; Fusion-io
_NUMBERED = ("nvme#n#", "mmcblk#", "sd#", "sata#", "sas#", "cciss/c#d#", "ida/c#d#", "rd/c#d#")  # BSD's sd0; Synology; HP; Mylex
_LETTERS = f"(?:{'|'.join(_LETTERED)})[a-z]+"
_NUMBERS = f"(?:{'|'.join(_NUMBERED)})".replace("#", "[0-9]+").replace("/", "[!/]")
WHOLE_DRIVE = f"({_LETTERS}|{_NUMBERS})"
VIRTUAL_PARTITION = "(xvd[a-z]+)[0-9]+"
"""Partitions that Xen may hand to a guest without the whole disk (`without_whole_disk`)."""
HIDDEN_PATH = r"nvme[0-9]+c[0-9]+n[0-9]+"
"""One path of a multipath NVMe namespace, hidden behind its head nvme0n1. Old kernels (to about 6.3) count I/Os on the path only."""
_WHOLE_DRIVE = re.compile(WHOLE_DRIVE)
_HIDDEN_PATH = re.compile(r"(nvme[0-9]+)c[0-9]+(n[0-9]+)(?:p[0-9]+)?")
# kernel names of devices that are not drives, and of their partitions
_NO_DRIVE = re.compile(
    r"(md|md_d|dm-|loop|ram|zram|nbd|sr|scd|fd|rbd|drbd|bcache|zd|pmem|mtdblock|mmcblk[0-9]+(boot|gp)|nvme[0-9]+c[0-9]+n|n?st|ploop|xpram)"
    r"[0-9]+(p?[0-9]+)?|mmcblk[0-9]+rpmb|ubiblock[0-9_]+|emcpower[a-z]+[0-9]*"
    # Synology's sticks and drives at USB, and where it boots from; names that are links
    r"|usb[0-9]+(p[0-9]+)?|synoboot[0-9]*|(disk|mapper)/.+"
)
_PARTITION = re.compile(f"({_LETTERS}|{_NUMBERS}(?=p))p?[0-9]+")


def is_whole_drive(device: str) -> bool:
    """Whether a kernel name is that of a whole drive: no partition, and nothing made of other devices."""
    return _WHOLE_DRIVE.fullmatch(device) is not None


def is_no_drive(device: str) -> bool:
    """Whether a kernel name is known to be that of a partition, or of what is made of other devices."""
    return _NO_DRIVE.fullmatch(device) is not None or _PARTITION.fullmatch(device) is not None


def is_hidden_path(device: str) -> bool:
    """Whether a kernel name is that of one path of a multipath NVMe namespace."""
    return re.fullmatch(HIDDEN_PATH, device) is not None


def is_path(column: str) -> pl.Expr:
    """The same for a column of names."""
    return pl.col(column).str.contains(f"^{HIDDEN_PATH}$")


def head_of(column: str) -> pl.Expr:
    """The namespace that the path in a column of names leads to: nvme0c1n1 -> nvme0n1; other names stay."""
    return pl.col(column).str.replace("^(nvme[0-9]+)c[0-9]+(n[0-9]+)$", "${1}${2}")


def is_cut_off(device: str) -> bool:
    """Whether a name is the beginning of a drive's, and no name by itself."""
    shape = re.sub("[0-9]+", "#", device.replace("!", "/"))
    return any(name != shape and name.startswith(shape) for name in _NUMBERED) or any(name.startswith(device) for name in _LETTERED)


def whole_drives(column: str) -> pl.Expr:
    """The same for a column of names."""
    return pl.col(column).str.contains(f"^{WHOLE_DRIVE}$")


def without_whole_disk(names: Iterable[str]) -> set[str]:
    """Those of one listing's names that Xen hands to a guest as disks: xvda1 where no xvda is listed. Of other names none are."""
    listed = set(names)
    return {name for name in listed if (match := re.fullmatch(VIRTUAL_PARTITION, name)) and match[1] not in listed}


def kernel_name(device: str) -> str:
    """The kernel's name of a device as a tool gives it: `/dev/sda` -> `sda`, `cciss!c0d0` -> `cciss/c0d0`."""
    return device.removeprefix("/dev/").replace("!", "/")


def alias_of(host: str, device: str) -> str:
    """Name of a drive of unknown serial: HOST/DEVICE."""
    return f"{host}/{device}"


def host_of(instance: str) -> str:
    """The host of a scrape target or address: `web1:9100` -> `web1`, `[::1]:9100` -> `::1`."""
    if instance.startswith("["):
        return instance[1:].partition("]")[0]
    host, colon, port = instance.rpartition(":")
    return host if colon and port.isdigit() and ":" not in host else instance


def drive_of(device: str) -> str:
    """The whole drive that a device, partition or path is part of: `sda1` -> `sda`, `nvme0c1n1` -> `nvme0n1`; else the name as it is."""
    if match := _HIDDEN_PATH.fullmatch(device):
        return match[1] + match[2]
    match = _PARTITION.fullmatch(device)
    return match[1] if match else device


_NO_NAMES = ("", "na", "none", "null", "unknown", "notavailable", "notapplicable", "notspecified", "defaultstring", "tobefilledbyoem")
_COUNTING = "01234567890123456789abcdef"


def is_placeholder(name: str) -> bool:
    """Whether a serial number or world wide name stands for none, as vendors write it: `---`, `000000`, `N/A`, `0123456789`, or
    `5000000000000001`, which is all zeros but for its ends; and half a name of 128 bits (`0x6...`), which volumes of one controller share.
    """
    core = re.sub("[^0-9a-z]", "", re.sub("^(wwn:)?(0x|eui[.]|naa[.]|uuid[.])?", "", name.strip().lower()))
    is_one_repeated = len(set(core)) == 1 and (len(core) > 2 or core[0] == "0")
    counts = len(core) > 7 and core[0] in "01" and core in _COUNTING
    is_half = re.fullmatch("(wwn:)?(0x|naa[.])6[0-9a-f]{15}", name.strip().lower()) is not None
    is_none = core in _NO_NAMES or is_one_repeated or counts or is_half or re.fullmatch("[0-9a-f]0{10,}[0-9a-f]", core) is not None
    return name.isascii() and is_none


def wide_alias(name: str) -> str:
    """The alias of a world wide name: `naa.5000C5...`, as the kernel writes it, is the `0x5000c5...` of udev."""
    return f"wwn:{re.sub('^naa[.]', '0x', name.lower())}"


def placeholder_note(serial: str, names: list[str]) -> str:
    """A note on the devices that give a placeholder for their serial number."""
    return f"{serial!r} is a placeholder, no serial number: {some_of(names)} {'is' if len(names) == 1 else 'are'} named by device"


def known_by_device(seen: pl.DataFrame) -> pl.DataFrame:
    """Inventory of the devices (host, device) of rows in order, each at its first row: what a host's counters say of a drive, from
    `valid_from` on where the rows have it.
    """
    drives = seen.unique(["host", "device"], keep="first", maintain_order=True).select(
        pl.concat_str("host", pl.lit("/"), "device").alias("drive_id"),
        pl.col("host").alias("raid_group_id"),
        pl.lit("data").alias("role"),
        "host",
        pl.lit(True).alias("is_alias"),
        pl.lit(True).alias("is_group_guessed"),
        *(name for name in ("valid_from",) if name in seen.columns),
        "file_no",
        "row_no",
    )
    return completed(drives, "drives")

"""Names that Linux gives to block devices, and which of them are whole drives."""

from __future__ import annotations

import re

import polars as pl

from ingest.reading.parse import completed

# SCSI, SATA and SAS (sda, on BSD sd0), IDE (hda), virtio (vda), Xen (xvda), NVMe namespaces, SD cards, mainframes, HP and Mylex arrays.
# Everything else is a partition (sda1, nvme0n1p2), made of other devices (md0, dm-0, loop0, zram0, nbd0) or one path of a
# multipath NVMe namespace (nvme0c1n1, HIDDEN_PATH).
WHOLE_DRIVE = (
    r"(sd[a-z]+|sd[0-9]+|hd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+|dasd[a-z]+|(?:cciss|ida|rd)[!/]c[0-9]+d[0-9]+)"
)
HIDDEN_PATH = r"nvme[0-9]+c[0-9]+n[0-9]+"
"""One path of a multipath NVMe namespace, hidden behind its head nvme0n1. Old kernels (to about 6.3) count I/Os on the path only."""
_WHOLE_DRIVE = re.compile(WHOLE_DRIVE)
_HIDDEN_PATH = re.compile(r"(nvme[0-9]+)c[0-9]+(n[0-9]+)(?:p[0-9]+)?")
_CUT_OFF = re.compile(
    r"s|sd|h|hd|v|vd|x|xv|xvd|n|nv|nvm|nvme([0-9]+n?)?|m|mm|mmc|mmcb|mmcbl|mmcblk|d|da|das|dasd|(cciss|ida|rd)[!/](c([0-9]+d?)?)?"
)
# what the kernel calls devices that are no drive of their own; partitions of them too
_NO_DRIVE = re.compile(
    r"(md|md_d|dm-|loop|ram|zram|nbd|sr|scd|fd|rbd|drbd|bcache|zd|pmem|mtdblock|mmcblk[0-9]+(boot|gp)|nvme[0-9]+c[0-9]+n|n?st|ploop|xpram)"
    r"[0-9]+(p?[0-9]+)?|mmcblk[0-9]+rpmb|ubiblock[0-9_]+|emcpower[a-z]+[0-9]*"
)
_PARTITION = re.compile(r"((?:sd|hd|vd|xvd|dasd)[a-z]+|(?:nvme[0-9]+n[0-9]+|mmcblk[0-9]+|(?:cciss|ida|rd)[!/]c[0-9]+d[0-9]+)(?=p))p?[0-9]+")


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
    return _CUT_OFF.fullmatch(device) is not None


def whole_drives(column: str) -> pl.Expr:
    """The same for a column of names."""
    return pl.col(column).str.contains(f"^{WHOLE_DRIVE}$")


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

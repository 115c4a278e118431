"""Place of a folder, as the kernel reports it: its filesystem, its device and the machine."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """A folder to test and what it lies on; texts are empty where the kernel does not say."""

    folder: Path
    filesystem: str
    mount_point: str
    mount_options: str
    block_bytes: int
    partition_start_sectors: int
    kernel_name: str
    major_minor: str
    kind: str
    model: str
    serial: str
    capacity_bytes: int | None


def target_of(folder: Path) -> Target:
    """Filesystem and device that a folder lies on."""
    folder = folder.resolve()
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mount_point, filesystem, options, source = _mount(folder, number)
    if source.startswith("/dev/") and Path(source).exists():  # the number of a btrfs is none of a device
        number = f"{os.major(Path(source).stat().st_rdev)}:{os.minor(Path(source).stat().st_rdev)}"
    block = Path("/sys/dev/block") / number
    whole = (block.resolve().parent if (block / "partition").exists() else block.resolve()) if block.exists() else None
    rotates = _said(whole, "queue/rotational")
    sectors, start = _said(whole, "size"), _said(block, "start")
    return Target(
        folder, filesystem, mount_point, options, os.statvfs(folder).f_bsize, int(start) if start.isdigit() else 0,
        whole.name if whole else "", _said(whole, "dev").replace(":", ","),
        {"0": "ssd", "1": "disk"}.get(rotates, "other"), _said(whole, "device/model"),
        _said(whole, "serial") or _said(whole, "device/serial"),
        int(sectors) * 512 if sectors.isdigit() else None,
    )  # fmt: skip


def machine() -> dict[str, str | int]:
    """The block [machine] of a manifest."""
    found: dict[str, str | int] = {"name": platform.node(), "kernel": platform.release(), "os": platform.platform(terse=True)}
    cpu = re.search(r"model name\s*:\s*(.+)", _text(Path("/proc/cpuinfo")))
    memory = re.search(r"MemTotal:\s*(\d+) kB", _text(Path("/proc/meminfo")))
    if cpu:
        found["cpu"] = cpu[1].strip()
    if memory:
        found["memory_bytes"] = int(memory[1]) * 1024
    return {name: value for name, value in found.items() if value != ""}


def _mount(folder: Path, number: str) -> tuple[str, str, str, str]:
    """Mount point, type, options and source of the filesystem that a folder is on."""
    best = ("", "other", "", "")
    for line in _text(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        fields, more = before.split(), after.split()
        if len(fields) < 6 or len(more) < 2:
            continue
        point = fields[4].encode().decode("unicode_escape")
        if folder.is_relative_to(point) and (len(point) >= len(best[0]) or fields[2] == number):
            best = (point, more[0], fields[5], more[1])
    return best


def _said(folder: Path | None, name: str) -> str:
    return _text(folder / name).strip() if folder is not None else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

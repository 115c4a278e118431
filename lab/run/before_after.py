"""Protocol `before-after`: benchmarks, a stress, and the benchmarks again, by iozone, else by fio; mdtest and IOR where they are installed.

`--phase` runs one phase alone; the others may follow into the same bundle, after an update for example.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

from lab.contract import LabError
from lab.run import PACKAGES, Plan, Request, Size, Step, need, output_of

KIND = "before_after"
FULL, SMALL = Size(10, 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")), Size(3, 64 << 20)
"""A file of twice the memory does not fit into the page cache."""
PHASES = ("before", "stress", "after")
JOBS = (("seqwrite", "write", 1 << 20), ("seqread", "read", 1 << 20), ("randwrite", "randwrite", 4096), ("randread", "randread", 4096))
"""Name, pattern and block of each job of fio."""
RECORDS = (1 << 20, 4 << 20, 8 << 20, 16 << 20)
LEAST_BYTES = RECORDS[-1]
FILES = 1000
"""That mdtest makes, looks up and removes."""
SECONDS_PER_GIB, RANDOM_SHARE = 12.0, 8
"""Time of all jobs on one GiB of a memory-backed disk; random jobs touch 1 / RANDOM_SHARE of the file."""


def plan(request: Request) -> Plan:
    """Each step works in a folder of its own and removes it. Raises: LabError without iozone and fio, or where --size is too small."""
    has_iozone = shutil.which("iozone") is not None
    if not has_iozone:
        need("fio")
    size = request.size.file_bytes
    if size < LEAST_BYTES:
        raise LabError(f"--size {size}: is smaller than the largest record, {LEAST_BYTES} bytes")
    config = request.target.filesystem
    seconds = SECONDS_PER_GIB * size / (1 << 30) + 2
    benchmarks = [("iozone", _iozone(size))] if has_iozone else [("fio", _fio(size))]
    if shutil.which("mdtest") is not None:
        benchmarks.append(("mdtest", ["mdtest", "-n", str(FILES), "-F", "-d", "."]))
    stress = ("ior", _ior(size)) if shutil.which("ior") is not None else ("fio", _stress(size)) if shutil.which("fio") is not None else None
    steps = []
    for phase in PHASES if not request.phase else (request.phase,):
        tools = benchmarks if phase != "stress" else [stress] if stress is not None else []
        for run in range(1, (request.size.runs if phase != "stress" else 1) + 1):
            for tool, command in tools:
                name = f"{config}_{phase}_{tool}_{run}.{'json' if tool == 'fio' else 'txt'}"
                listing = {"file": name, "tool": tool, "config_id": config, "run_number": run, "phase": phase}
                shown = f"{tool}, {phase}, run {run}"
                steps.append(Step(shown, [listing], seconds, partial(_carried_out, command, name)))
    if not steps:
        raise LabError(f"no tool for a stress is installed; install the package {PACKAGES['fio']}")
    notes = [
        f"{tool} is not installed (package {PACKAGES[tool]}): {without}"
        for tool, without in (
            ("iozone", "fio measures instead"), ("mdtest", "no metadata is measured"), ("ior", "fio does the stress instead")
        )
        if shutil.which(tool) is None
    ]  # fmt: skip
    notes.append(f"the drive is measured as it is, through the filesystem of {request.target.mount_point}: it is not wiped first")
    used = size * 2
    return Plan([{"config_id": config, "factors": {"tool": "iozone" if has_iozone else "fio"}}], steps, used, used * len(steps), notes)


def _carried_out(command: list[str], name: str, folder: Path) -> dict[str, bytes]:
    return {name: output_of(command, folder)}


def _iozone(size: int) -> list[str]:
    command = ["iozone", "-i", "0", "-i", "1", "-i", "2", "-e", "-s", f"{size >> 10}k", "-f", "measured"]
    for record in RECORDS:
        command += ["-r", f"{record >> 10}k"]
    return command


def _fio(size: int) -> list[str]:
    """Jobs one after the other on one file; through the page cache, which each leaves empty."""
    command = [
        "fio", "--output-format=json", "--filename=measured", f"--filesize={size}", "--ioengine=psync", "--invalidate=1", "--end_fsync=1",
        "--fallocate=none",
    ]  # fmt: skip
    for name, pattern, block in JOBS:
        moved = size // RANDOM_SHARE if pattern.startswith("rand") else size
        command += [f"--name={name}", "--stonewall", f"--rw={pattern}", f"--bs={block}", f"--io_size={moved}"]
    return command


def _stress(size: int) -> list[str]:
    """Four writers of small blocks, as those of IOR."""
    return [
        "fio", "--output-format=json", "--name=stress", "--rw=randwrite", "--bs=4096", "--numjobs=4", f"--size={size // 4}",
        "--ioengine=psync", "--end_fsync=1", "--group_reporting", "--fallocate=none",
    ]  # fmt: skip


def _ior(size: int) -> list[str]:
    return ["ior", "-a", "POSIX", "-b", "64k", "-t", "4k", "-s", str(max(size >> 16, 1)), "-i", "3", "-F", "-e", "-o", "stressed"]

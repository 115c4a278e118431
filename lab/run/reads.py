"""Protocol `reads`: files read in turn, a minute a mode, so that each mode meets what the drive does at all times.

The first run of a mode maps the files with filefrag and reads each once, as root under the kernel's tracer; the others note when each
read began and ended. Files are dropped from the page cache before they are read.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from lab.contract import LabError
from lab.run import PACKAGES, Plan, Request, Size, Step, takes_direct_io
from lab.run.machine import Target
from lab.run.tracing import obstacle, traced

KIND = "read_variability"
FULL, SMALL = Size(481, 256 << 20), Size(4, 32 << 20)
"""One run with a map, then 24 hours, or 9 minutes, in three modes."""
FILES = 8
SECONDS = 60.0
"""Time that a mode reads in a run."""
BYTES_PER_S = 200e6
"""Taken for the speed of the drive where it is said how long the first run will take."""
REQUEST_BYTES = 64 << 10
"""Taken for the size of a request where the tracer's buffer is made."""
IN_MEMORY = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Mode:
    """How files are read: bytes of a read, bytes that are asked for ahead of it (0: what the kernel does), past the page cache or not."""

    name: str
    read_bytes: int
    ahead_bytes: int = 0
    is_direct: bool = False


MODES = (Mode("buffered", 256 << 10), Mode("read-ahead", 256 << 10, ahead_bytes=2 << 20), Mode("direct", 1 << 20, is_direct=True))
BLOCK = max(mode.read_bytes for mode in MODES)


def plan(request: Request) -> Plan:
    """The files are written once and stay until the last run. Raises: LabError where --size is smaller than a read."""
    size, target = request.size.file_bytes, request.target
    if size < BLOCK or size % BLOCK:
        raise LabError(f"--size {size}: is no multiple of the largest read, {BLOCK} bytes")
    notes = []
    modes = [mode for mode in MODES if not mode.is_direct or takes_direct_io(target.folder)]
    if len(modes) < len(MODES):
        notes.append(f"{target.filesystem} takes no direct I/O: files are not read past the page cache")
    if target.filesystem in IN_MEMORY:
        notes.append(f"{target.filesystem} keeps files in memory: what is measured is no drive")
    has_maps = shutil.which("filefrag") is not None
    if not has_maps:
        notes.append(f"filefrag is not installed (package {PACKAGES['filefrag']}): no extents, so nothing on fragmented files")
    without = obstacle(target)
    if without:
        notes.append(f"no traces: {without}; relations of single requests stay empty")
    steps = []
    for run in range(1, request.size.runs + 1):
        for mode in modes:
            same = {"config_id": mode.name, "run_number": run, "phase": request.phase}
            name = "_".join(filter(None, (mode.name, request.phase, str(run))))
            if run > 1:
                listings = [{"file": f"{name}.csv", "tool": "file-reads", **same}]
                do = partial(_timed, mode, size, SECONDS, listings)
                steps.append(Step(f"{mode.name}, run {run}: reads for {SECONDS:g} s", listings, SECONDS, do))
                continue
            reads = {"file": f"{name}.csv", "tool": "file-reads"} if without else {"file": f"{name}.ftrace", "tool": "ftrace"}
            maps = [{"file": f"{name}_filefrag.txt", "tool": "filefrag", **same}] if has_maps else []
            listings = [{**reads, **same}, *maps]
            do = partial(_timed, mode, size, 0, listings) if without else partial(_traced, mode, size, target, listings)
            shown = f"{mode.name}, run 1: {'map of the files, then ' if has_maps else ''}one turn{'' if without else ' under the tracer'}"
            steps.append(Step(shown, listings, FILES * size / BYTES_PER_S, do))
    factors = {"tool": "drivetail"}
    configs = [
        {
            "config_id": mode.name, "is_default": mode is MODES[0],
            "factors": {**factors, "read_bytes": mode.read_bytes, "read_ahead_bytes": mode.ahead_bytes, "o_direct": mode.is_direct},
        }
        for mode in modes
    ]  # fmt: skip
    return Plan(configs, steps, FILES * size, FILES * size, notes, keeps_files=True)


def _timed(mode: Mode, size: int, seconds: float, listings: list[dict[str, Any]], folder: Path) -> dict[str, bytes]:
    """Reads in turn for some time, at least one turn, and the map where it is asked for."""
    files = _files(folder, size)
    made = _mapped(files, listings)
    zero, lines = time.time(), ["file_name,started_s,ended_s,bytes"]
    for number, file in enumerate(cycle(files)):
        if number >= len(files) and time.time() - zero >= seconds:
            break
        start = time.time() - zero
        moved = _read(file, mode)
        lines.append(f"{file.name},{start:.6f},{time.time() - zero:.6f},{moved}")
    listings[0]["zero_at"] = zero
    return {listings[0]["file"]: ("\n".join(lines) + "\n").encode(), **made}


def _traced(mode: Mode, size: int, target: Target, listings: list[dict[str, Any]], folder: Path) -> dict[str, bytes]:
    """One turn under the tracer, and the map."""
    files = _files(folder, size)
    made = _mapped(files, listings)
    with traced(target, FILES * size // REQUEST_BYTES) as trace:
        # the trace's clock is that since the start of the machine
        listings[0]["zero_at"] = time.time() - time.monotonic()
        for file in files:
            _read(file, mode)
    return {listings[0]["file"]: trace[0], **made}


def _files(folder: Path, size: int) -> list[Path]:
    """The files, written where they are missing."""
    files = [folder / f"file_{number}" for number in range(FILES)]
    for file in files:
        if not file.exists() or file.stat().st_size != size:
            with file.open("wb") as stream:
                for _ in range(size // BLOCK):
                    stream.write(os.urandom(BLOCK))
                stream.flush()
                os.fsync(stream.fileno())
    return files


def _mapped(files: list[Path], listings: list[dict[str, Any]]) -> dict[str, bytes]:
    """Output of filefrag for the files, where a listing asks for it."""
    wanted = [listing["file"] for listing in listings if listing["tool"] == "filefrag"]
    if not wanted:
        return {}
    done = subprocess.run(["filefrag", "-v", *(file.name for file in files)], cwd=files[0].parent, capture_output=True, check=False)
    if done.returncode or not done.stdout.strip():
        # a filesystem without maps, such as tmpfs: the file is refused with that reason, the reads are taken
        return dict.fromkeys(wanted, done.stderr or b"filefrag said nothing\n")
    return dict.fromkeys(wanted, done.stdout)


def _read(file: Path, mode: Mode) -> int:
    """Read a file to its end. Returns: its bytes."""
    number = os.open(file, os.O_RDONLY | (os.O_DIRECT if mode.is_direct else 0))
    try:
        if not mode.is_direct:
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(-1, mode.read_bytes) as buffer:  # aligned to a page, as direct I/O wants it
            moved = 0
            while True:
                if mode.ahead_bytes:
                    os.posix_fadvise(number, moved, mode.ahead_bytes, os.POSIX_FADV_WILLNEED)
                count = os.preadv(number, [buffer], moved)
                if not count:
                    return moved
                moved += count
    finally:
        os.close(number)

"""Real runs: a protocol with the tools of this machine, recorded as a bundle. A call that was interrupted goes on where it stopped.

To add a protocol: a module with KIND, FULL and SMALL (Size), and `plan(Request)`, which returns the configurations and the steps; then its
line in PROTOCOLS.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.contract import LabError
from lab.run.machine import Target, target_of
from lab.run.recording import LOCK, Recording

PROTOCOLS = {"before-after": "before_after", "reads": "reads", "sync-writes": "sync_writes", "writers": "writers"}
"""Protocol -> module of this folder."""
PACKAGES = {
    "fio": "fio",
    "iozone": "iozone3 (non-free on Debian)",
    "mdtest": "ior of Spack; Debian has none",
    "ior": "ior of Spack; Debian has none",
    "filefrag": "e2fsprogs",
}
"""Tool -> the Debian package that has it."""
SCRATCH = "drivetail-lab-scratch"
"""Folder of the target that the tools write in; it goes when a step ends."""
ROOM = 1.1
"""Free space that must be there over what a protocol uses."""


@dataclass(frozen=True)
class Size:
    """How much a protocol does: runs, and the size of its files."""

    runs: int
    file_bytes: int


@dataclass(frozen=True)
class Request:
    """Target, size and phase of a call."""

    target: Target
    size: Size
    phase: str = ""


@dataclass(frozen=True)
class Step:
    """One run of a tool. `do(folder)` runs it in a folder of the target and returns its files by name; `listings`: rows of runs.csv, to
    which `do` may add `zero_at`, the time zero of the file (s since 1970). `command`: how it is shown.
    """

    command: str
    listings: list[dict[str, Any]]
    seconds: float
    do: Callable[[Path], dict[str, bytes]]


@dataclass
class Plan:
    """Steps that a protocol will take. `writes_bytes`: all that it writes; `uses_bytes`: the most that lies on the target at once.
    `keeps_files`: the folder of the steps stays from one to the next, until the last has ended; else each has an empty one.
    """

    configs: list[dict[str, Any]]
    steps: list[Step]
    uses_bytes: int
    writes_bytes: int
    notes: list[str] = field(default_factory=list)
    keeps_files: bool = False


def module_of(protocol: str) -> Any:
    """The module of a protocol. Raises: LabError for one that there is not."""
    if protocol not in PROTOCOLS:
        raise LabError(f"there is no protocol {protocol!r}; give one of {', '.join(PROTOCOLS)}")
    return importlib.import_module(f"lab.run.{PROTOCOLS[protocol]}")


def prepare(protocol: str, target: Path, out: Path, size: Size, phase: str) -> tuple[Plan, Recording]:
    """Plan of a call; nothing has been written. Raises: LabError where it cannot."""
    module = module_of(protocol)
    if not target.is_dir():
        raise LabError(f"{target}: is no folder; --target names a folder on the filesystem to test, never a device")
    if os.statvfs(target).f_flag & os.ST_RDONLY:
        raise LabError(f"{target}: lies on a filesystem that is mounted read-only; mount it writable, or give another --target")
    if not os.access(target, os.W_OK):
        raise LabError(f"{target}: may not be written; change its permissions, or give another --target")
    request = Request(target_of(target), size, phase)
    plan = module.plan(request)
    free = shutil.disk_usage(target).free
    if free < plan.uses_bytes * ROOM:
        needed = int(plan.uses_bytes * ROOM)
        raise LabError(f"{target}: has {free >> 20} MiB free, {protocol} needs {needed >> 20} MiB; make room or give a smaller --size")
    # another phase of the same experiment may follow into the same bundle
    return plan, Recording(out, protocol, module.KIND, size.runs, request.target, plan.configs, str(size.file_bytes))


def carry_out(plan: Plan, recording: Recording, say: Callable[[str], None]) -> int:
    """Do what is left of a plan, keeping each step as it ends. Returns: the number of steps done now.

    Raises: LabError where another run works in the same folders.
    """
    recording.out.mkdir(parents=True, exist_ok=True)
    with _alone(recording.out, "--out"), _alone(recording.target.folder, "--target"):
        return _carry_out(plan, recording, say)


@contextmanager
def _alone(folder: Path, option: str) -> Iterator[None]:
    """Keep other runs out of a folder. Raises: LabError that names the process of the run that is there."""
    path = folder / LOCK
    with path.open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            pid = lock.read().strip()
            raise LabError(f"{folder}: another run (process {pid}) writes here; wait until it ends, or give another {option}") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _carry_out(plan: Plan, recording: Recording, say: Callable[[str], None]) -> int:
    left = [step for step in plan.steps if not recording.has(step.listings)]
    recording.begin()
    folder = recording.target.folder / SCRATCH
    for number, step in enumerate(left, 1):
        say(f"{number} of {len(left)}: {step.command}")
        if not plan.keeps_files or not recording.rows:  # what a killed call of another experiment left there goes first
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=plan.keeps_files)
        try:
            recording.keep(step.do(folder), step.listings)
        finally:
            if not plan.keeps_files or step is left[-1]:
                shutil.rmtree(folder, ignore_errors=True)
    return len(left)


def need(*tools: str) -> None:
    """Raises: LabError that names the first tool that is not installed, and its package."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise LabError(f"{tool} is not installed; install the package {PACKAGES.get(tool, tool)}")


def output_of(command: list[str], folder: Path) -> bytes:
    """Output of a tool. Raises: LabError where it failed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise LabError(f"{' '.join(command)}: failed with exit code {done.returncode}: {said[-1] if said else 'it said nothing'}")
    return done.stdout


@contextmanager
def probed(folder: Path) -> Iterator[Path]:
    """A path for a small file that finds out what a folder can do; it goes when the block ends."""
    path = folder / f".drivetail-lab-{os.getpid()}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def takes_direct_io(folder: Path) -> bool:
    """Whether a file here can be opened with O_DIRECT; tmpfs of older kernels refuses."""
    with probed(folder) as path:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
        except OSError:
            return False
        return True

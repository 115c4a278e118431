"""The kernel's counters of this machine's own drives, read beside the tools under test; and work for a drive."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest.reading.devices import is_whole_drive

DISKSTATS = Path("/proc/diskstats")
SECTOR_BYTES = 512


@dataclass(frozen=True)
class Counters:
    """One drive's counters since boot: I/Os, sectors of 512 bytes and milliseconds, by direction."""

    read_ios: int
    read_sectors: int
    read_ms: int
    write_ios: int
    write_sectors: int
    write_ms: int
    discard_ios: int
    discard_ms: int


@dataclass(frozen=True)
class Look:
    """All drives at one moment, which lies between `begun` and `ended` (seconds of the machine's clock)."""

    begun: float
    ended: float
    drives: dict[str, Counters]


def look() -> Look:
    """Read the counters of every device, arrays and loop devices too."""
    begun = time.time()
    lines = [line.split() for line in DISKSTATS.read_text().splitlines()]
    ended = time.time()
    drives = {}
    for fields in lines:
        numbers = [*map(int, fields[3:]), *[0] * 17]
        drives[fields[2]] = Counters(*(numbers[place] for place in (0, 2, 3, 4, 6, 7, 11, 14)))
    return Look(begun, ended, drives)


@dataclass(frozen=True)
class Bracket:
    """Four looks around a measurement: it began between the first two and ended between the last two.

    So what it counted lies between what happened from `began` to `ends` (at least) and from `before` to `after` (at most).
    """

    before: Look
    began: Look
    ends: Look
    after: Look

    def limits(self, drive: str, *names: str) -> tuple[int, int]:
        """Least and most that the sum of these counters can have gained."""

        def gained(first: Look, last: Look) -> int:
            return sum(getattr(last.drives[drive], name) - getattr(first.drives[drive], name) for name in names)

        return gained(self.began, self.ends), gained(self.before, self.after)

    def seconds(self) -> tuple[float, float]:
        """Least and most that it can have lasted."""
        return self.ends.begun - self.began.ended, self.after.ended - self.before.begun

    def busiest(self) -> str:
        """The whole drive with most I/Os in it; skips the test where none did any."""
        drives = [drive for drive in self.before.drives if is_whole_drive(drive)]
        ios = {drive: self.limits(drive, "read_ios", "write_ios")[0] for drive in drives}
        if not any(ios.values()):
            pytest.skip("no drive of this machine did any I/O while files were written (none in /proc/diskstats, or all in memory)")
        return max(ios, key=lambda drive: ios[drive])


def skip_without_drives() -> None:
    """Skip where the kernel shows no whole drive, as in some containers."""
    if not DISKSTATS.exists() or not any(is_whole_drive(drive) for drive in look().drives):
        pytest.skip("no whole drive in /proc/diskstats of this machine")


def work(folder: Path, seconds: float) -> None:
    """Write, sync and read back small blocks past the page cache, where the file system lets go of it, for so long."""
    path, until, block = folder / "work", time.monotonic() + seconds, os.urandom(65_536)
    with path.open("w+b", buffering=0) as file:
        while time.monotonic() < until:
            file.seek(0)
            file.write(block)
            os.fsync(file)
            with suppress(OSError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            file.read(4096)
            time.sleep(0.02)
    path.unlink()

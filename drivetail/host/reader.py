"""Direct reads of some devices at the same time, where fio is not installed: says what fio's JSON says of them.

`python -m drivetail.host.reader SLICES SECONDS READS_PER_SECOND SUSPECT PEER...`
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import mmap
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

RANDOM_BYTES, SEQUENTIAL_BYTES = 4 << 10, 256 << 10


def read(path: str, size: int, seconds: float, rate: float, next_block: Callable[[int], int]) -> dict[str, Any]:
    """Read blocks of a device for some seconds, at most `rate` a second, each by one direct read.

    next_block: the number of blocks of the device -> the block to read. Raises: OSError where the device cannot be opened.
    """
    took_ns: list[int] = []
    failed = 0
    device = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        blocks = os.lseek(device, 0, os.SEEK_END) // size
        buffer = mmap.mmap(-1, size)  # aligned to a page, as direct reads need
        due = begun = time.monotonic()
        while blocks and (now := time.monotonic()) < begun + seconds:
            if now < due:
                time.sleep(min(due, begun + seconds) - now)
                continue
            due = max(due + 1 / rate, now)
            at = next_block(blocks) * size
            start = time.perf_counter_ns()
            try:
                os.preadv(device, [buffer], at)
            except OSError:
                failed += 1
            else:
                took_ns.append(time.perf_counter_ns() - start)
        runtime_ms = round((time.monotonic() - begun) * 1000)
    finally:
        os.close(device)
    said: dict[str, Any] = {"N": len(took_ns)}
    if took_ns:
        cuts = statistics.quantiles(took_ns, n=100, method="inclusive") if len(took_ns) > 1 else took_ns * 99
        said |= {"mean": statistics.fmean(took_ns), "percentile": {f"{at}.000000": cuts[at - 1] for at in (50, 90, 95, 99)}}
    return {"read": {"total_ios": len(took_ns), "runtime": runtime_ms, "clat_ns": said}, "total_err": failed}


def ios_of(path: str) -> tuple[int, int] | None:
    """Reads and writes that a device has completed since it was there; null for a plain file."""
    name = Path(os.path.realpath(path)).name
    try:
        figures = Path("/sys/class/block", name, "stat").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(figures[0]), int(figures[4])


def slices(count: int, seconds: float, rate: float, paths: list[str]) -> None:
    """Print a document of each slice and kind of reads, as fio does."""
    for number in range(count):
        for how, size in (("randread", RANDOM_BYTES), ("read", SEQUENTIAL_BYTES)):
            before = [ios_of(path) for path in paths]
            with ThreadPoolExecutor(len(paths)) as pool:
                running = [pool.submit(read, path, size, seconds, rate, order(how, number / count)) for path in paths]
                jobs = [each.result() for each in running]
            documents = [
                {"jobname": "peer" if at else "suspect", "job options": {"filename": path.replace(":", "\\:"), "rw": how}, **job}
                for at, (path, job) in enumerate(zip(paths, jobs, strict=True))
            ]
            after = [ios_of(path) for path in paths]
            disks = [
                {"name": Path(os.path.realpath(path)).name, "read_ios": then[0] - now[0], "write_ios": then[1] - now[1]}
                for path, now, then in zip(paths, before, after, strict=True)
                if now and then
            ]
            version = importlib.metadata.version("drivetail")
            print(json.dumps({"drivetail version": version, "jobs": documents, "disk_util": disks}), flush=True)


def order(how: str, begin: float) -> Callable[[int], int]:
    """Which block is read next: any, or from a share of the device on one after the other."""
    read_before = itertools.count()
    return (lambda blocks: (int(blocks * begin) + next(read_before)) % blocks) if how == "read" else random.randrange


if __name__ == "__main__":
    try:
        slices(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}; does its file system allow direct reads?")

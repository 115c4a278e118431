"""Protocol `writers`: one, two and four writers append at the same time, with and without preallocation; then the files are read again.
Each run makes four files of the same size: of two writers, each writes two, one after the other.

Where files lie is what filefrag says; how fast they were written and read, what the clock says; how busy the device was, /proc/diskstats.
Requests come from the kernel's tracer, which needs root.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from lab.contract import LabError
from lab.run import Plan, Request, Size, Step, need, output_of, takes_direct_io
from lab.run.machine import Target
from lab.run.tracing import obstacle, traced

KIND = "hdfs"
FULL, SMALL = Size(3, 4 << 30), Size(3, 32 << 20)
"""Bytes of all writers of a run together."""
WRITERS = (1, 2, 4)
CHUNK_BYTES = 128 << 10
"""That a writer appends at once: a packet of HDFS is 64 kB, and a buffer of it holds two."""
TOOLS = {
    "filefrag.txt": "filefrag",
    "reads.csv": "file-reads",
    "bench.csv": "bench",
    "diskstats.txt": "diskstats",
    "writes.ftrace": "ftrace",
}
"""Ending of a file -> its tool. The trace is of the writes alone, so that reads do not count in the run lengths of writers."""
COUNTERS = Path("/proc/diskstats")
"""Absent in some containers; then there are no counters."""
BYTES_PER_S = 200e6
"""Taken for the speed of the target where it is said how long a run will take."""


def plan(request: Request) -> Plan:
    """Each run writes its files, reads them and removes them. Raises: LabError without filefrag, or where --size is too small."""
    need("filefrag")
    size, target = request.size.file_bytes, request.target
    if size < max(WRITERS) * CHUNK_BYTES:
        raise LabError(f"--size {size}: is less than a chunk of {CHUNK_BYTES} bytes for each of {max(WRITERS)} writers")
    is_direct, untraced = takes_direct_io(target.folder), obstacle(target)
    configs, steps = [], []
    is_given = {"diskstats": COUNTERS.exists(), "ftrace": not untraced}
    tools = {file: tool for file, tool in TOOLS.items() if is_given.get(tool, True)}
    for is_preallocated in (False, True):
        for writers in WRITERS:
            config = f"writers-{writers}" + ("-fallocate" if is_preallocated else "")
            factors = {"writers": writers, "fallocate": is_preallocated, "o_direct": is_direct, "chunk_bytes": CHUNK_BYTES}
            # what varies among configurations with `writers` is their number alone
            configs.append({"config_id": config, **({} if is_preallocated else {"writers": writers}), "factors": factors})
            for run in range(1, request.size.runs + 1):
                name = "_".join(filter(None, (config, request.phase, str(run))))
                same = {"config_id": config, "run_number": run, "phase": request.phase}
                listings = [{"file": f"{name}_{file}", "tool": tool, **same} for file, tool in tools.items()]
                shown = f"{writers} {'writer' if writers == 1 else 'writers'}{', preallocated' if is_preallocated else ''}, run {run}"
                each = size // max(WRITERS) // CHUNK_BYTES * CHUNK_BYTES
                do = partial(_carried_out, None if untraced else target, name, writers, each, is_preallocated, is_direct)
                steps.append(Step(shown, listings, 2 * size / BYTES_PER_S, do))
    notes = [
        f"no block trace is taken, so run lengths and seeks stay empty: {untraced}"
        if untraced
        else f"{target.kernel_name} is traced while files are written: requests of other programs count too"
    ]
    if not is_direct:
        notes.append(f"{target.filesystem} takes no direct I/O: chunks go through the page cache, and each is synced")
    return Plan(configs, steps, size, size * len(steps), notes)


def _carried_out(
    target: Target | None, name: str, writers: int, size: int, is_preallocated: bool, is_direct: bool, folder: Path
) -> dict[str, bytes]:
    """Write, list the extents, read. target: what to trace, None for nothing. Returns: the files of the step by name."""
    files = [folder / f"w{number}" for number in range(1, max(WRITERS) + 1)]
    counters = _counters()
    with ExitStack() as tracer:
        trace = tracer.enter_context(traced(target, len(files) * size // CHUNK_BYTES)) if target is not None else []
        began = time.monotonic()
        _at_once(partial(_append, size=size, is_preallocated=is_preallocated, is_direct=is_direct), files, writers)
        seconds = time.monotonic() - began
    maps = output_of(["filefrag", "-v", *(file.name for file in files)], folder)
    began_reads = time.monotonic()
    rows = ["file_name,started_s,ended_s,bytes"]
    for file in files:
        start = time.monotonic() - began_reads
        _read(file)
        rows.append(f"{file.name},{start:.6f},{time.monotonic() - began_reads:.6f},{size}")
    written = f"benchmark,test,parameter,value,unit\nwriters,write,{writers},{len(files) * size / max(seconds, 1e-9)!r},B/s\n"
    found = {"filefrag.txt": maps, "reads.csv": ("\n".join(rows) + "\n").encode(), "bench.csv": written.encode()}
    if trace:
        found["writes.ftrace"] = trace[0]
    if counters:
        found["diskstats.txt"] = (counters + _counters()).encode()
    return {f"{name}_{file}": content for file, content in found.items()}


def _at_once(do: Callable[[Path], None], files: list[Path], writers: int) -> None:
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(do, files))


def _append(file: Path, size: int, *, is_preallocated: bool, is_direct: bool) -> None:
    """Append chunks past the page cache, where the filesystem would put writers in order; else each to the disk before the next.

    The second makes a filesystem with a journal seek there after each chunk, which no writer asked for.
    """
    # direct I/O wants memory that begins at a page
    chunk = mmap.mmap(-1, CHUNK_BYTES)
    chunk.write(os.urandom(CHUNK_BYTES))
    number = os.open(file, os.O_CREAT | os.O_WRONLY | (os.O_DIRECT if is_direct else 0))
    try:
        if is_preallocated:
            os.posix_fallocate(number, 0, size)
        for _ in range(0, size, CHUNK_BYTES):
            os.write(number, chunk)
            if not is_direct:
                os.fdatasync(number)
        os.fsync(number)
    finally:
        os.close(number)


def _read(file: Path) -> None:
    """Read a file from the device: what the page cache holds of it is dropped first."""
    number = os.open(file, os.O_RDONLY)
    try:
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        while os.read(number, 1 << 20):
            pass
    finally:
        os.close(number)


def _counters() -> str:
    return f"TS {time.time():.3f}\n{COUNTERS.read_text(encoding='utf-8')}" if COUNTERS.exists() else ""

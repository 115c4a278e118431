"""Protocol `sync-writes`: throughput and latency of synchronous writes over 13 buffers, by iozone, else by fio with sync=1.

Each pass measures on its own, as the paper's did, so that the ratio is of two independent means.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

from lab.contract import LabError
from lab.run import PACKAGES, Plan, Request, Size, Step, need, output_of, probed, takes_direct_io

KIND = "sync_writes"
FULL, SMALL = Size(30, 16 << 20), Size(5, 16 << 20)
BUFFERS = tuple(4096 << step for step in range(13))
PASSES = ("throughput", "latency")
UNITS = {"throughput": "kB/s", "latency": "us"}
PROBES = 8
BYTES_PER_S = 200e6
"""Taken for the speed of large writes where it is said how long a run will take."""


def plan(request: Request) -> Plan:
    """Each run writes one file a buffer and removes it. Raises: LabError where neither tool is there."""
    has_iozone = shutil.which("iozone") is not None
    if not has_iozone:
        need("fio")
    size = request.size.file_bytes
    if size < BUFFERS[0]:
        raise LabError(f"--size {size}: is smaller than the smallest buffer, {BUFFERS[0]} bytes")
    buffers = [buffer for buffer in BUFFERS if buffer <= size]
    config = request.target.filesystem
    is_direct = has_iozone or takes_direct_io(request.target.folder)
    each = _seconds_of_a_write(request.target.folder)
    seconds = sum(size / buffer * each + size / BYTES_PER_S for buffer in buffers)
    factors = {"tool": "iozone" if has_iozone else "fio", "o_direct": is_direct}
    steps = []
    for run in range(1, request.size.runs + 1):
        for pass_ in PASSES:
            same = {"config_id": config, "run_number": run, "pass": pass_, "phase": request.phase}
            name = "_".join(filter(None, (config, request.phase, pass_, str(run))))
            if has_iozone:
                command = ["iozone", "-i", "0", "-a", "-n", f"{size >> 10}k", "-g", f"{size >> 10}k", "-o", "-I", "-e", "-f", "written"]
                command += ["-N"] if pass_ == "latency" else []
                files = [{"file": f"{name}.txt", "tool": "iozone", **same}]
                steps.append(Step(" ".join(command), files, seconds, partial(_by_iozone, command, f"{name}.txt")))
            else:
                command = _fio(buffers, size, is_direct=is_direct)
                files = [{"file": f"{name}.json", "tool": "fio", **same}, {"file": f"{name}.csv", "tool": "bench", **same}]
                shown = f"fio, {len(buffers)} buffers, sync=1, pass {pass_}, run {run}"
                steps.append(Step(shown, files, seconds, partial(_by_fio, command, name, pass_, buffers)))
    notes = [] if has_iozone else [f"iozone is not installed (package {PACKAGES['iozone']}): fio measures instead"]
    notes += [] if is_direct else [f"{request.target.filesystem} takes no direct I/O: writes go through the page cache, and are synced"]
    written = size * len(buffers) * len(steps)
    return Plan([{"config_id": config, "factors": factors}], steps, size, written, notes)


def _by_iozone(command: list[str], name: str, folder: Path) -> dict[str, bytes]:
    return {name: output_of(command, folder)}


def _fio(buffers: list[int], size: int, *, is_direct: bool) -> list[str]:
    command = ["fio", "--output-format=json"]
    for buffer in buffers:
        command += [
            f"--name=write-{buffer}", f"--filename=written-{buffer}", "--rw=write", f"--bs={buffer}", f"--size={size}", "--sync=1",
            "--end_fsync=1", f"--direct={int(is_direct)}", "--ioengine=psync", "--fallocate=none", "--create_on_open=1", "--unlink=1",
            # the mean is of all latency, and so are the percentiles
            "--lat_percentiles=1", "--clat_percentiles=0", "--stonewall",
        ]  # fmt: skip
    return command


def _by_fio(command: list[str], name: str, pass_: str, buffers: list[int], folder: Path) -> dict[str, bytes]:
    """The result of fio, and what one pass takes of it as the neutral CSV."""
    text = output_of(command, folder)
    jobs = {job["jobname"]: job["write"] for job in json.loads(text)["jobs"]}
    lines = ["benchmark,test,parameter,value,unit"]
    for buffer in buffers:
        value = _value(jobs[f"write-{buffer}"], pass_)
        lines.append(f"iozone_{pass_},write,{buffer},{value!r},{UNITS[pass_]}")
    return {f"{name}.json": text, f"{name}.csv": ("\n".join(lines) + "\n").encode()}


def _value(figures: dict[str, Any], pass_: str) -> float:
    return float(figures["bw_bytes"] / 1024 if pass_ == "throughput" else figures["lat_ns"]["mean"] / 1000)


def _seconds_of_a_write(folder: Path) -> float:
    """How long a small synchronous write takes here."""
    with probed(folder) as path:
        number = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_SYNC)
        try:
            begun = time.monotonic()
            for _ in range(PROBES):
                os.write(number, bytes(4096))
            return (time.monotonic() - begun) / PROBES
        finally:
            os.close(number)

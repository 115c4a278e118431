"""The kernel's block tracer, for as long as a step runs. It needs root and tracefs, but no blktrace: it works under Secure Boot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.contract import LabError
from lab.run.machine import Target

FOLDERS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
BLOCK_DEVICES = Path("/sys/block")
TRACER, FREE = "blk", "nop"
LEAST_KB, EVENTS_KB_PER_REQUEST = 8192, 1
"""Buffer of a CPU. A request has about 6 events of 100 bytes."""


def obstacle(target: Target) -> str:
    """Why requests of a target's device cannot be traced, with what to do; empty where they can."""
    if os.geteuid() != 0:
        return "this user is not root; run as root to trace"
    if not target.kernel_name or not _switch(target).exists():
        return f"the kernel has no block tracer for {target.filesystem} on {target.mount_point}"
    folder = _folder()
    if folder is None:
        return "tracefs is not mounted; run `mount -t tracefs nodev /sys/kernel/tracing`"
    if TRACER not in (folder / "available_tracers").read_text(encoding="utf-8").split():
        return "this kernel has no tracer `blk` (CONFIG_BLK_DEV_IO_TRACE)"
    current = (folder / "current_tracer").read_text(encoding="utf-8").strip()
    return "" if current == FREE else f"tracer {current!r} is in use; run `echo {FREE} > {folder}/current_tracer`"


@contextmanager
def traced(target: Target, requests: int) -> Iterator[list[bytes]]:
    """Trace the device of a target. The text is in the list once the block ends; the tracer is then as it was.

    requests: how many are expected, for the size of the buffer. Raises: LabError where the tracer refuses.
    """
    folder = _folder()
    if folder is None:
        raise LabError("tracefs is not mounted; run `mount -t tracefs nodev /sys/kernel/tracing`")
    text: list[bytes] = []
    size = folder / "buffer_size_kb"
    # `7 (expanded: 1408)` where nothing has been traced yet
    kb_before = re.findall(r"\d+", size.read_text(encoding="utf-8"))[-1]
    try:
        size.write_text(str(max(LEAST_KB, requests * EVENTS_KB_PER_REQUEST)), encoding="utf-8")
        _switch(target).write_text("1", encoding="utf-8")
        (folder / "current_tracer").write_text(TRACER, encoding="utf-8")
        (folder / "options" / "blk_classic").write_text("1", encoding="utf-8")
        yield text
        _switch(target).write_text("0", encoding="utf-8")
        text.append((folder / "trace").read_bytes())
    except OSError as error:
        raise LabError(f"the kernel's tracer failed: {error}; run the call as another user than root to go without traces") from error
    finally:
        _switch(target).write_text("0", encoding="utf-8")
        # blk_classic switches the times of other tracers off, and leaves them so
        for name, value in (("options/blk_classic", "0"), ("options/context-info", "1")):
            if (folder / name).exists():
                (folder / name).write_text(value, encoding="utf-8")
        (folder / "current_tracer").write_text(FREE, encoding="utf-8")
        size.write_text(kb_before, encoding="utf-8")


def _folder() -> Path | None:
    return next((folder for folder in FOLDERS if (folder / "current_tracer").exists()), None)


def _switch(target: Target) -> Path:
    return BLOCK_DEVICES / target.kernel_name / "trace" / "enable"

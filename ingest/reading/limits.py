"""How far a delivered file may unpack: what a compressed file becomes is the sender's choice, and must not fill disk or memory."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ingest.contract.errors import UnreadableFile

# Telemetry compresses by 5 to 30. More than this many times a file's size is taken for a bomb; small ones may unpack to the floor.
MAX_EXPANSION = 200
EXPANSION_FLOOR_BYTES = 256 << 20
# A file whose beginning alone is this many times its size is looked at to its end before a row of it is read.
SUSPECT_EXPANSION = 50
# Least bytes of a row: an hour and two ids.
LEAST_ROW_BYTES = 24


MEMORY_LIMIT = "3.5GB"
"""Memory of DuckDB in one process, where DRIVETAIL_MEMORY_LIMIT names no other. Python and its libraries take up to 0.5 GiB beside it."""
_UNITS = {
    **dict.fromkeys(("", "b", "byte", "bytes"), 1),
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
}


@dataclass(frozen=True)
class Limits:
    """How long something may take, and how much memory, such as 8GB."""

    seconds: float
    memory: str


def memory_limit() -> str:
    """How much memory a process may take, as DuckDB takes it."""
    return os.environ.get("DRIVETAIL_MEMORY_LIMIT") or MEMORY_LIMIT


def memory_limit_bytes() -> int:
    """The same in bytes; the default where it is written in a way that only DuckDB knows."""
    return bytes_of(memory_limit()) or bytes_of(MEMORY_LIMIT)


def bytes_of(memory: str) -> int:
    """An amount of memory in bytes; 0 where it is not one."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", memory.lower())
    return int(float(found[1]) * _UNITS[found[2]]) if found and found[2] in _UNITS else 0


def unpacked_limit(path: Path) -> int:
    """Bytes that a file may unpack to."""
    return max(EXPANSION_FLOOR_BYTES, MAX_EXPANSION * path.stat().st_size)


def require_bytes(path: Path) -> None:
    """Check that a file is not nearly all holes, which read as zeros for as long as the sender likes. Raises: UnreadableFile."""
    found = path.stat()
    on_disk = found.st_blocks * 512
    if found.st_size <= max(EXPANSION_FLOOR_BYTES, MAX_EXPANSION * on_disk):
        return
    with path.open("rb") as stream:  # some file systems count no blocks
        is_holed = os.lseek(stream.fileno(), 0, os.SEEK_HOLE) < found.st_size
    if is_holed:
        raise UnreadableFile(f"of {found.st_size:,} bytes only {on_disk:,} are on the disk, the rest is a hole; deliver the whole file")


def too_large(what: str, limit: int) -> str:
    """Message about a file beyond its limit."""
    return f"{what} unpacks to more than {limit >> 20} MiB, {MAX_EXPANSION} times its size; unpack it yourself if it is sound"

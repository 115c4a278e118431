"""How far a delivered file may unpack: what a compressed file becomes is the sender's choice, and must not fill disk or memory."""

from __future__ import annotations

from pathlib import Path

# Telemetry compresses by 5 to 30. More than this many times a file's size is taken for a bomb; small ones may unpack to the floor.
MAX_EXPANSION = 200
EXPANSION_FLOOR_BYTES = 256 << 20
# What a row weighs at least: an hour and two ids.
LEAST_ROW_BYTES = 24


def unpacked_limit(path: Path) -> int:
    """Bytes that a file may unpack to."""
    return max(EXPANSION_FLOOR_BYTES, MAX_EXPANSION * path.stat().st_size)


def too_large(what: str, limit: int) -> str:
    """What is said of a file beyond its limit."""
    return f"{what} unpacks to more than {limit >> 20} MiB, {MAX_EXPANSION} times its size; unpack it yourself if it is sound"

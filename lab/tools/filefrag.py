"""Tool `filefrag`: where the blocks of files lie, as `filefrag -v` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from lab.contract import COUNT, NO_RESULT, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, text_of

EXPECTED = "what `filefrag -v` prints, such as `File size of f is 8192 (2 blocks of 4096 bytes)` and a line for each extent"
TABLES: dict[str, Columns] = {
    "file_maps": {"map": COUNT, "file_name": TEXT, "file_bytes": COUNT, "block_bytes": COUNT, "summary_extents": COUNT},
    "extents": {
        "map": COUNT, "extent_index": COUNT, "logical_start_bytes": COUNT, "physical_start_bytes": COUNT, "extent_bytes": COUNT, "flags": TEXT,  # noqa: E501
    },
}  # fmt: skip
"""`map`: place of the file in the output, from 1. `summary_extents`: what the last line of a file counts."""

_FILE = re.compile(r"File size of (.+) is (\d{1,18}) \((\d{1,15}) blocks?(?: of|, blocksize) (\d{1,9})(?: bytes)?\)\s*")
_EXTENT = re.compile(
    r"\s*(\d{1,9}):\s*(\d{1,13})\.\.\s*(\d{1,13}):\s*(\d{1,13})\.\.\s*(\d{1,13}):\s*(\d{1,13}):(?:\s*\d{1,13}:)?\s*([a-z_,0-9]*)\s*"
)
_OLD_EXTENT = re.compile(r"\s*(\d{1,9})\s+(\d{1,13})\s+(\d{1,13})(?:\s+(\d{1,13}))??\s+(\d{1,13})(?:\s+([a-z][a-z_,0-9]*))?\s*")
"""Extent as e2fsprogs 1.41 prints it: number, logical and physical start, where it was expected, length, flags."""
_SUMMARY = re.compile(r"(.+): (\d{1,9}) extents? found(, .*)?\s*")
_NOISE = re.compile(r"\s*|Filesystem type is: .*|\s*ext:?\s+logical.*|Filesystem cylinder groups .*|Blocksize of file .*")
_MOST_BLOCK_BYTES = 1 << 20


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the files and their extents. Raises: Refused."""
    maps: list[dict[str, Any]] = []
    extents: list[dict[str, Any]] = []
    known: set[tuple[int, int]] = set()
    for line in text_of(path, EXPECTED).split("\n"):
        if found := _FILE.fullmatch(line):
            block_bytes = int(found[4])
            if not 1 <= block_bytes <= _MOST_BLOCK_BYTES:
                reading.reject(line)
                continue
            maps.append(
                {
                    "map": len(maps) + 1, "file_name": PurePosixPath(found[1]).name or found[1], "file_bytes": int(found[2]),
                    "block_bytes": block_bytes, "summary_extents": None, "path": found[1],
                }
            )  # fmt: skip
        elif maps and (found := _EXTENT.fullmatch(_as_now(line))):
            unit = maps[-1]["block_bytes"]
            index, logical, last, physical, physical_last, length = (int(found[place]) for place in range(1, 7))
            if not length or (len(maps), index) in known or last - logical != length - 1 or physical_last - physical != length - 1:
                reading.reject(line)
                continue
            known.add((len(maps), index))
            extents.append(
                {
                    "map": len(maps), "extent_index": index, "logical_start_bytes": logical * unit,
                    "physical_start_bytes": physical * unit, "extent_bytes": length * unit, "flags": found[7].strip(","),
                }
            )  # fmt: skip
        elif maps and (found := _SUMMARY.fullmatch(line)) and found[1] == maps[-1]["path"]:
            maps[-1]["summary_extents"] = int(found[2])
        elif not _NOISE.fullmatch(line):
            reading.reject(line)
    if not maps:
        reason = UNREADABLE if reading.lines_rejected else NO_RESULT
        raise Refused(reason, f"no file in it; expected {EXPECTED}")
    yield "file_maps", pl.DataFrame(maps, schema={**TABLES["file_maps"], "path": TEXT}).drop("path")
    yield "extents", pl.DataFrame(extents, schema=TABLES["extents"])


def _as_now(line: str) -> str:
    """The line of an extent as filefrag prints it since e2fsprogs 1.42."""
    found = _OLD_EXTENT.fullmatch(line)
    if found is None:
        return line
    index, logical, physical, length = (int(found[place]) for place in (1, 2, 3, 5))
    return f"{index}: {logical}.. {logical + length - 1}: {physical}.. {physical + length - 1}: {length}: {found[6] or ''}"

"""`WAREHOUSE/raw/NAME.jsonl`: append-only records that no delivery brings, such as what was said and who decided what.

A record is one line of JSON, on the disk before it counts. A line that a killed writer left without its end never was.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Any

from ingest.contract.errors import StoreError
from ingest.raw.durable import sync

Record = dict[str, Any]
BLOCK_BYTES = 1 << 16


class Register:
    """One such file below the folder of raw. Instants are ISO texts in it, UTC without zone."""

    def __init__(self, raw: Path, name: str) -> None:
        self.path = raw / f"{name}.jsonl"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file's one lock; waits while another process holds it. A process that dies releases it."""
        with self.path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def read(self, *, skips_damaged: bool = False) -> list[Record]:
        """Every record, oldest first. Raises: StoreError for a line that is not a record, unless such lines may be left out."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        records = []
        for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
            try:
                records.append(dict(json.loads(line)))
            except ValueError as error:
                if skips_damaged:
                    continue
                raise StoreError(
                    f"{self.path}: line {number}: not a JSON record ({error}); lines are only ever added, restore the file from a copy"
                ) from error
        return records

    def append(self, records: Sequence[Record]) -> None:
        """Add records; after it returns they survive a power cut. Use inside `locked`."""
        if not records:
            return
        lines = "".join(json.dumps(record, default=_text) + "\n" for record in records).encode()
        with self.path.open("ab+", buffering=0) as file:
            end = _end_of_lines(file)
            file.truncate(end)
            try:
                if file.write(lines) < len(lines):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                os.fsync(file.fileno())
                sync(self.path.parent)
            except OSError:  # of what failed nothing counts
                file.truncate(end)
                raise


def _end_of_lines(file: FileIO) -> int:
    """Where the last whole line ends; what a killed writer left comes after it."""
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - BLOCK_BYTES)
        file.seek(begin)
        at = file.read(end - begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)

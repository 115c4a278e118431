"""Readers of a warehouse while it is written: each a process that opens `warehouse.duckdb` read-only again and again.

`poll` opens and closes: an open is never refused, and shows one publication from the first query to the last. DuckDB opens a file three
times by its name: where another was published in between, as its inode tells, the reader opens again. `hold` keeps what it
opened until two more publications have come, and must then still read the same rows. A process of its own each: within one process
DuckDB gives a second open the file that the first one holds.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

from tests.proof.support import ROOT, broken_sums, environment

BUSY_SHARE = 0.1
"""Share of the time that readers read, at most: the tests run on two cores that the writers need."""
LOOK_SECONDS = 0.1
"""Between two looks of `hold` at what is published."""
SUMS_EVERY = 10
HELD = ("fct_drive_hours", "fct_raid_hours", "fct_slowdown_intervals", "fct_drive_slowness", "dim_drives", "rejected_records")


class Reader:
    """One reader process, seen from a test."""

    def __init__(self, published: Path, mode: str, folder: Path) -> None:
        self._result = folder / f"reader-{mode}.jsonl"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.proof.readers", str(published), mode, str(self._result)],
            cwd=ROOT, env=environment(), stdin=subprocess.PIPE,
        )  # fmt: skip
        self.seen: list[dict[str, Any]] = []

    def check(self) -> None:
        """Raises: AssertionError when an open failed, or showed anything but one complete publication."""
        assert self._process.poll() is None, "a reader has ended"
        self._read()

    def stop(self) -> list[dict[str, Any]]:
        """End the reader, which checks what it holds once more. Returns: by open, its publication and how many came meanwhile."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)
        self._read()
        return self.seen

    def _read(self) -> None:
        if self._result.exists():
            self.seen = [json.loads(line) for line in self._result.read_text().splitlines() if line.endswith("}")]
        failures = [entry for entry in self.seen if entry.get("failure")]
        assert not failures, f"{len(failures)} of {len(self.seen)} opens failed, first: {failures[0]}"


def read(published: Path, mode: str, result: Path) -> None:
    """Read until standard input closes, writing one JSON line per open."""

    def wanted() -> bool:
        return not select.select([0], [], [], 0)[0]

    with result.open("a", encoding="utf-8") as out:
        opens = 0
        while wanted():
            entry: dict[str, Any] = {}
            begun = time.monotonic()
            inode = published.stat().st_ino
            try:
                with duckdb.connect(str(published), read_only=True, config={"threads": 1}) as connection:
                    entry["publication"] = publication(connection)
                    if mode == "hold":
                        first = fingerprint(connection)
                        came, inode = 0, published.stat().st_ino
                        while came < 2 and wanted():
                            time.sleep(LOOK_SECONDS)
                            now = published.stat().st_ino
                            came, inode = came + (now != inode), now
                        entry["came_meanwhile"] = came
                        if fingerprint(connection) != first:
                            entry["failure"] = "other rows after later publications than before"
                    if mode == "hold" or opens % SUMS_EVERY == 0:
                        broken = broken_sums(connection)
                        if broken:
                            entry["failure"] = f"sums do not hold: {broken}"
                    after = publication(connection)
                    if after != entry["publication"]:
                        entry["failure"] = f"the publication became {after}"
            except (duckdb.Error, OSError, AssertionError) as error:
                if "publication" not in entry and published.stat().st_ino != inode:
                    continue
                entry["failure"] = f"{type(error).__name__}: {error}"
            out.write(json.dumps(entry) + "\n")
            out.flush()
            opens += 1
            time.sleep((time.monotonic() - begun) / BUSY_SHARE if mode == "poll" else LOOK_SECONDS)


def publication(connection: duckdb.DuckDBPyConnection) -> str:
    """The publication a connection shows."""
    rows = connection.execute("select publication_id from marts.publication").fetchall()
    assert len(rows) == 1, f"{len(rows)} rows in marts.publication"
    return str(rows[0][0])


def fingerprint(connection: duckdb.DuckDBPyConnection) -> list[object]:
    """Row counts and hashes of some marts."""
    return [connection.execute(f"select count(*), sum(hash(relation)) from marts.{name} as relation").fetchone() for name in HELD]


if __name__ == "__main__":
    read(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

"""Processes measured from outside: wall seconds, CPU seconds, peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb

DRIVETAIL = Path(sys.executable).parent / "drivetail"


@dataclass(frozen=True)
class Cost:
    """Wall seconds, CPU seconds (user and system, with the processes it waited for) and peak resident memory (MiB) of a process."""

    seconds: float
    cpu_seconds: float
    peak_mib: float

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds, max(self.peak_mib, other.peak_mib))

    @property
    def cells(self) -> str:
        """Cells of a table: wall seconds, CPU seconds, MiB."""
        return f"{self.seconds:.1f} | {self.cpu_seconds:.1f} | {self.peak_mib:,.0f}"


def measure(*command: object, cwd: Path | None = None) -> Cost:
    """Run a process to its end. Raises: RuntimeError with its output when it fails."""
    # Python keeps compiled modules, as it does for users: else every process would compile all that it imports
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output, env=environment, cwd=cwd)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            output.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))} failed: {output.read().decode()[-2000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure_sql(text: str) -> Cost:
    """Run SQL in a fresh DuckDB process."""
    code = "import duckdb, sys; c = duckdb.connect(); [c.execute(q).fetchall() for q in sys.argv[1].split(';') if q.strip()]"
    return measure(sys.executable, "-c", code, text)


def phases(warehouse: Path) -> dict[str, Cost]:
    """Wall and CPU seconds of each phase of a warehouse's last build, as its log has them; no memory."""
    with (warehouse / "drivetail.log").open(encoding="utf-8") as log:
        notes = [json.loads(line) for line in log]
    begun = max(number for number, note in enumerate(notes) if note["phase"] == "plan")
    found: dict[str, Cost] = {}
    for note, then in zip(notes[begun:], notes[begun + 1 :], strict=False):
        wall = (datetime.fromisoformat(then["at"]) - datetime.fromisoformat(note["at"])).total_seconds()
        found[note["phase"]] = found.get(note["phase"], Cost(0, 0, 0)) + Cost(wall, then["cpu_s"] - note["cpu_s"], 0)
    return found


def folder_mib(*paths: Path) -> float:
    """Bytes of files or below folders, in MiB; hard links counted once."""
    files = [entry for path in paths for entry in ([path] if path.is_file() else path.rglob("*")) if entry.is_file()]
    return sum({entry.stat().st_ino: entry.stat().st_size for entry in files}.values()) / 2**20


def row_count(files: Iterable[Path]) -> int:
    """Rows of Parquet files, from their footers."""
    rows = duckdb.execute(f"select sum(num_rows) from parquet_file_metadata({[str(path) for path in files]})").fetchall()
    return int(rows[0][0])


def simulate(out: Path, disk_groups: int, ssd_groups: int, days: int) -> int:
    """Simulate a fleet once; a later run finds it. Returns: drive-hours."""
    if not (out / "drives.parquet").exists():
        options = {"--disk-groups": disk_groups, "--ssd-groups": ssd_groups, "--days": days, "--seed": 2}
        measure(DRIVETAIL, "simulate", "--out", out, *(part for option in options.items() for part in option), "--overwrite")
    return row_count(out.glob("drive_hours*.parquet"))

"""A disk that is really full, at any point of what a warehouse does: every command says so, and with room all ends as if it had not been.

A file system of its own of a fixed size, so it needs to be root and to be allowed to mount.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from simulate import simulate
from tests.proof.forks import Forks
from tests.proof.support import marts_differences

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("disk_full")]

DISK_BYTES = 400 << 20
ROOM_BYTES = (0, 65_536, 2 << 20, 8 << 20)
"""Bytes that are left in a first, a second, ... try; each of them ends at another point of what it writes."""

NO_ROOM = ("no room on the disk", "No space left on device", "free space")
PIECES = ("week", "hour-1", "hour-2", "rest")
WEEK_HOURS = 168
KEPT = {
    "inbox": ("outcome", "rows_accepted"),
    "alerts": ("subject_id", "reason", "first_slow_hour_utc"),
    "decisions": ("drive_id", "verdict", "by", "note"),
}
"""Fields of a register's records that are neither an instant nor a place."""

SETTINGS = """
[[inboxes]]
name = "fleet"
source = "bundle"
folder = "{folder}"
settle_minutes = 0
[metrics]
file = "drivetail.prom"
"""


class Disk:
    """A file system in memory, and a ballast in it that takes all but what is to be left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ballast = folder, folder / "ballast"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "drivetail-test", folder], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def leave(self, room_bytes: int) -> None:
        self.make_room()
        state = os.statvfs(self.folder)
        descriptor = os.open(self.ballast, os.O_CREAT | os.O_WRONLY)
        os.posix_fallocate(descriptor, 0, max(1, state.f_bavail * state.f_frsize - room_bytes))
        os.close(descriptor)

    def make_room(self) -> None:
        self.ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system of a size of its own")
    made = Disk(tmp_path / "disk")
    yield made
    made.unmount()


@pytest.fixture
def forks(tmp_path: Path) -> Forks:
    return Forks(tmp_path / "forks")


class Day:
    """A warehouse with its inbox, and all that is done with it in a day; there is one on the full disk, and one beside it."""

    def __init__(self, folder: Path, forks: Forks, fleet: Path) -> None:
        self.warehouse, self.inbox, self.forks, self.fleet = folder / "warehouse", folder / "inbox", forks, fleet
        self.warehouse.mkdir(parents=True)
        self.inbox.mkdir()
        (self.warehouse / "drivetail.toml").write_text(SETTINGS.format(folder=self.inbox))

    def deliver(self, piece: str) -> None:
        shutil.copytree(self.fleet / piece, self.inbox / piece)

    def steps(self, drive: str) -> list[list[object]]:
        return [
            ["inbox", "--land"],
            ["build"],
            ["alerts", "--new", "--format", "json"],
            ["decide", drive, "watch", "--by", "ada", "--note", "slow"],
            ["maintain"],
            ["report", "--week", "2026-W02"],
            ["metrics", "--out", self.warehouse / "drivetail.prom"],
        ]

    def run(self, step: list[object]) -> tuple[int, str]:
        return self.forks.said(*step, "--warehouse", self.warehouse)

    def registers(self) -> dict[str, list[str]]:
        """Contents of the registers, without instants and places; an alert sent twice counts once."""
        found = {}
        for name, kept in KEPT.items():
            path = self.warehouse / f"raw/{name}.jsonl"
            records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            found[name] = sorted({json.dumps([record.get(key) for key in kept]) for record in records})
        return found

    def metrics(self) -> list[str]:
        """The metrics that do not depend on the clock or the disk."""
        moving = ("_timestamp_seconds", "_duration_seconds", "lag_seconds", "free_bytes")
        lines = (self.warehouse / "drivetail.prom").read_text().splitlines()
        return [line for line in lines if not line.startswith("#") and not line.split("{")[0].split(" ")[0].endswith(moving)]


def test_a_full_disk_at_any_point_ends_as_if_it_had_not_been(disk: Disk, forks: Forks, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    drive = deliver_in_pieces(fleet)
    full, clear = Day(disk.folder, forks, fleet), Day(tmp_path / "clear", forks, fleet)
    refused: set[str] = set()
    for piece in PIECES:
        for day in (full, clear):
            day.deliver(piece)
        is_last = piece == PIECES[-1]
        for step, undisturbed in list(zip(full.steps(drive), clear.steps(drive), strict=True))[: None if is_last else 2]:
            code, said = clear.run(undisturbed)
            assert code == 0, said
            # the hours between are built without strain: each replaces a day that is stored already
            for room_bytes in ROOM_BYTES if is_last or piece == PIECES[0] else ():
                disk.leave(room_bytes)
                code, said = full.run(step)
                if not code:
                    break
                assert code == 1 and any(sign in said for sign in NO_ROOM) and "Traceback" not in said, (step, room_bytes, said)
                refused.add(str(step[0]))
                # readers see what they saw
                assert not is_last or full.run(["sql", "select 1 as one"])[0] == 0
            disk.make_room()
            code, said = full.run(step)
            assert code == 0, (step, said)
    found = marts_differences(full.warehouse / "warehouse.duckdb", clear.warehouse / "warehouse.duckdb")
    # a decision is of the instant at which it was taken, and taken twice on the full disk, where the first try went well
    of_decisions = ("marts.fct_drive_decision", "report.fct_drive_decision", "marts.drive_actions: ")
    assert [difference for difference in found if not difference.startswith(of_decisions)] == []
    found_of, undisturbed_of = full.registers(), clear.registers()
    # a delivery that landed and left no room for the line that says so is taken again, and brings nothing new then
    again = json.dumps(["nothing new", 0])
    if again in found_of["inbox"]:
        missing = set(undisturbed_of["inbox"]) - set(found_of["inbox"])
        assert len(missing) <= 1
        found_of["inbox"] = sorted({*found_of["inbox"], *missing} - {again})
    assert found_of == undisturbed_of and all(found_of.values())
    assert full.metrics() == clear.metrics()
    # each of those that write has met the end of the disk
    assert refused == {str(step[0]) for step in full.steps(drive)}


def deliver_in_pieces(fleet: Path) -> str:
    """A fleet in four deliveries: a week, two hours of the next day, each of which replaces that day, and the rest of it.

    Returns: its slow drive.
    """
    simulate(fleet / "all", disk_groups=1, ssd_groups=1, hours=WEEK_HOURS + 25, seed=3)
    rows = pl.concat([pl.read_parquet(path) for path in sorted((fleet / "all").glob("drive_hours*"))])
    drives = pl.concat([pl.read_parquet(path) for path in (fleet / "all").glob("drives*")])
    slow = drives.filter(pl.col("role") == "data")["drive_id"].min()
    latencies = pl.col("read_latency_us", "write_latency_us")
    rows = rows.with_columns(pl.when(pl.col("drive_id") == slow).then(latencies * 5).otherwise(latencies))
    first = rows["hour_utc"].min()
    ends = [first + timedelta(hours=hours) for hours in (0, WEEK_HOURS, WEEK_HOURS + 1, WEEK_HOURS + 2, WEEK_HOURS + 25)]
    for name, (begin, end) in zip(PIECES, pairwise(ends), strict=True):
        (fleet / name).mkdir()
        rows.filter((pl.col("hour_utc") >= begin) & (pl.col("hour_utc") < end)).write_parquet(fleet / name / "drive_hours.parquet")
    for path in (*(fleet / "all").glob("drives*"), *(fleet / "all").glob("drive_events*")):
        shutil.copy(path, fleet / PIECES[0])
    return str(slow)

"""The events of a fleet's year, in one small one: however its deliveries come, the marts are those of one load.

Two RAID groups over the hour that a time zone has twice. All deliveries stop for a day; then there are twice as many RAID groups, one group
has another name, a drive has moved, a sender has a new column, another leaves an optional one out, and one has renamed a required one.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from engine.warehouse import Warehouse
from ingest import list_deliveries
from tests.proof.forks import Forks
from tests.proof.support import broken_sums, command, environment, marts_differences
from tests.reference.compare import compare
from tests.reference.reference import compute

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("exactly-once")]

ZONE = ZoneInfo("Europe/Berlin")
START = datetime(2026, 10, 24, 21, tzinfo=ZoneInfo("UTC"))
BEFORE, AFTER = range(8), range(32, 38)
"""Hours of the fleet; of the local clock 02:00 comes twice, as hours 3 and 4. Nothing comes for a day in between."""

INVENTORY = "drive_id,raid_group_id,role,kind,timezone,valid_from,valid_to\n"


def hour_file(number: int) -> tuple[str, str]:
    """Name and text of the drive-hours of one hour, in local time with its offset."""
    at = (START + number * timedelta(hours=1)).astimezone(ZONE)
    groups = ["one", "two"] if number in BEFORE else ["first", "two", "three", "four"]  # `one` has a new name
    columns = ["hour_utc", "drive_id", "raid_group_id", "read_ios", "write_ios", "read_latency_us", "write_latency_us"]
    columns += ["block_bytes"] if number % 2 else ["colour"]  # an optional column, or one that nobody knows
    rows = []
    for place, group in enumerate(groups):
        for drive in range(4):
            name = f"{place}-{drive}"
            # a drive of the second group lives in the first from hour 35 on
            lives_in = groups[0] if name == "1-3" and number >= 35 else group
            latency = 100.0 * (place + 1) + drive + (900 if name == "0-2" and number % 3 else 0)
            rows.append(f"{at.isoformat()},{name},{lives_in},{100 + number},10,{latency},{latency},{4096 if number % 2 else 'red'}")
    return f"drive_hours-{number:02d}.csv", "\n".join([",".join(columns), *rows]) + "\n"


def inventory(renamed: bool) -> str:
    """The inventory, as it was and as it is: the new name since hour 32, the move since hour 35."""
    changed, moved = (f"{START + number * timedelta(hours=1):%Y-%m-%dT%H:%M:%S}" for number in (32, 35))
    lines = [f"{place}-{drive},{group},data,disk,Europe/Berlin,,\n" for place, group in enumerate(("one", "two")) for drive in range(4)]
    if renamed:
        lines = [line.replace(",,\n", f",,{changed}\n") if ",one," in line else line for line in lines]
        lines = [line.replace(",,\n", f",,{moved}\n") if line.startswith("1-3,") else line for line in lines]
        lines += [f"0-{drive},first,data,disk,Europe/Berlin,{changed},\n" for drive in range(4)]
        lines += [f"{place}-{drive},{group},data,ssd,,{changed},\n" for place, group in ((2, "three"), (3, "four")) for drive in range(4)]
        lines.append(f"1-3,first,data,disk,Europe/Berlin,{moved},\n")
    return INVENTORY + "".join(lines)


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One per hour, the inventories first and in the middle, and a file that cannot be read before it is sent again right."""
    folder = tmp_path_factory.mktemp("deliveries")
    contents = [dict([hour_file(number)]) for number in (*BEFORE, *AFTER)]
    contents[0]["drives.csv"] = inventory(renamed=False)
    contents[len(BEFORE)]["drives.csv"] = inventory(renamed=True)
    wrong = dict([hour_file(36)])
    contents.append({name: text.replace("read_latency_us", "latency_of_reads") for name, text in wrong.items()})
    # overlapping: the last hours again, beside each other and with other rows of the same hours
    contents.append(dict([hour_file(37), hour_file(36)]))
    made = []
    for number, files in enumerate(contents):
        made.append(folder / f"delivery-{number:02d}")
        made[-1].mkdir()
        for name, text in files.items():
            (made[-1] / name).write_text(text)
    return made


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    server = Forks(tmp_path_factory.mktemp("forks"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def bulk(deliveries: list[Path], forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything in one load."""
    root = tmp_path_factory.mktemp("bulk") / "warehouse"
    code, said = forks.said("ingest", "bundle", *deliveries, "--warehouse", root)
    assert code == 1 and "1 of 19 files could not be read" in said and "read_latency_us" in said, said
    forks.run("build", "--warehouse", root)
    expected = compute(deliveries)
    # the reference takes the deliveries one after the other: of files it knows another name
    differences = compare(expected, root / "warehouse.duckdb")
    assert [line for line in differences if not line.startswith(("ingested_files", "rejected_records"))] == []
    return root / "warehouse.duckdb"


def test_an_hour_that_the_clock_has_twice_is_two_hours(bulk: Path) -> None:
    import duckdb

    with duckdb.connect(str(bulk), read_only=True) as connection:
        hours = connection.execute("select distinct hour_utc from marts.fct_drive_hours order by 1").fetchall()
        assert [hour for (hour,) in hours] == [(START + n * timedelta(hours=1)).replace(tzinfo=None) for n in (*BEFORE, *AFTER)]
        assert broken_sums(connection) == []


def test_every_hour_with_a_build(deliveries: list[Path], bulk: Path, forks: Forks, tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    for number, folder in enumerate(deliveries):
        code, said = forks.said("ingest", "bundle", folder, "--warehouse", root)
        assert code == int("latency_of_reads" in (folder / next(folder.iterdir()).name).read_text()), said
        if number in (0, 5, 8, 13, 14):
            forks.run("build", "--warehouse", root)
    forks.run("build", "--daily", "--warehouse", root)
    assert marts_differences(root / "warehouse.duckdb", bulk) == []


def test_two_at_once_out_of_order_while_builds_run(deliveries: list[Path], bulk: Path, tmp_path: Path) -> None:
    """Each delivery by two processes at the same time, the past (a backfill) beside the present, and builds all the while."""
    root = tmp_path / "warehouse"
    draw = random.Random(7)

    def run(*arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command(*arguments, "--warehouse", root), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    past, present = deliveries[: len(BEFORE)][::-1], deliveries[len(BEFORE) :]
    for parts in ((past[:4], present[:4]), (past[4:], present[4:])):
        senders = [run("ingest", "bundle", *draw.sample(part, len(part))) for part in parts for _ in range(2)]
        builds = [run("build") for _ in range(2)]
        for process in (*senders, *builds):
            said, _ = process.communicate(timeout=600)
            # a build may come before anything has landed
            assert process.returncode == 0 or b"could not be read" in said or b"nothing has landed there" in said, said.decode()
    last = run("build", "--daily")
    said, _ = last.communicate(timeout=600)
    assert last.returncode == 0, said.decode()
    # of two that send the same, one lands it
    assert len(list_deliveries(root)) == 4
    assert marts_differences(Warehouse(root).published, bulk) == []

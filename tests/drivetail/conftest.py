"""A fleet of a few groups over 30 hours, written by hand, with one of everything that goes wrong; landed twice, built once."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from drivetail.cli import main
from engine.warehouse import Warehouse
from tests import golden

START = datetime(2026, 1, 5)
HOURS = 30
LAST = START + timedelta(hours=HOURS - 1)
HEADER = (
    "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us,read_blocks,write_blocks,coverage,collected_at"
)

INVENTORY = """drive_id,raid_group_id,role,kind,slot,deployed_on,valid_from,valid_to
d11,g1,data,disk,1,2024-01-05,,
d12,g1,data,disk,2,,,
d13,g1,data,disk,3,,,
d14,g1,data,disk,4,,,
d15,g1,data,disk,5,,,
p1,g1,parity_p,disk,6,,,
m1,g1,data,disk,7,,,
v1,g1,data,disk,8,,,2026-01-05T12:00:00
v1,g2,data,disk,8,,2026-01-05T12:00:00,
d21,g2,data,disk,1,,,
d22,g2,data,disk,2,,,
d23,g2,data,disk,3,,,
s1,g2,data,disk,4,,,
s2,g2,data,disk,5,,,
sp,g2,spare,disk,6,,,
d31,g3,data,ssd,1,,,
d32,g3,data,ssd,2,,,
d33,g3,data,ssd,3,,,
x1,g4,data,ssd,1,,,
"""

EVENTS = """occurred_at,drive_id,event_type,raid_group_id,slot,ended_at,detail
2026-01-05T13:20:00,d15,media_error,g1,5,,sector 7
2026-01-05T15:10:00,d15,unplug,g1,5,,
2026-01-05T17:30:00,d15,replug,g1,5,,
2026-01-06T23:59:00,d15,scrub,g1,5,,
"""


def hour(number: int) -> datetime:
    """Hour `number` of the fleet, UTC."""
    return START + timedelta(hours=number)


def row(number: int, drive: str, group: str, *, ios: str = "300,100", us: str = "", coverage: str = "", collected: str = "") -> str:
    """One line of drive_hours. `ios`: read,write; `us`: read,write latency (microseconds)."""
    reads, writes = (int(part) for part in ios.split(","))
    return f"{hour(number).isoformat()},{drive},{group},{ios},{us},{8 * reads},{16 * writes},{coverage},{collected}"


ODD: dict[tuple[str, int], dict[str, str]] = {
    **{("d15", number): {"us": "13000,30000"} for number in (12, 13, 14)},
    ("d13", 8): {"us": "-5,9000"},
    ("d14", 9): {"ios": "0,0", "us": ","},
    ("d15", 9): {"coverage": "0.3"},
    ("d12", 7): {"ios": "100,300", "us": "4100.5,7777.25"},
}
"""Rows of g1 that are not like the others. That of d12 comes twice, and d15 has none at hour 16."""


def first_delivery() -> list[str]:
    rows = []
    for number in range(HOURS):
        for place, drive in enumerate(("d11", "d12", "d13", "d14", "d15", "p1")):
            usual = {"us": f"{4000 + 100 * place},{9000 + 100 * place}", "collected": hour(number + 1).isoformat()}
            copies = {("d15", 16): 0, ("d12", 7): 2}.get((drive, number), 1)
            rows += [row(number, drive, "g1", **usual | ODD.get((drive, number), {}))] * copies
        rows.append(row(number, "v1", "g1" if number < 12 else "g2", us="4050,9050"))
        drives = ("d21", "d22", "d23", "m1", "n1")
        rows += [row(number, drive, "g2", us=f"{200 + place},{900 + place}") for place, drive in enumerate(drives)]
        if number == 0:
            rows.append(row(number, "s1", "g2", us="210,910"))
        if number <= 20:
            rows += [row(number, drive, "g3", us="300,300") for drive in ("d31", "d32", "d33")]
    return rows


# d11 at 07:00 again, sent five minutes later than the first time
CORRECTION = row(7, "d11", "g1", us="4000,12000", collected="2026-01-05T08:05:00")


@dataclass(frozen=True)
class Published:
    """A warehouse with one publication, and the folder its two deliveries came from."""

    warehouse: Warehouse
    bundle: Path


def drivetail(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def built(warehouse: Warehouse, *options: str) -> str:
    """Build. Returns: what it said, in one line."""
    done = drivetail("build", *options, "-w", warehouse.root)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def write_bundle(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="session")
def published() -> Published:
    """The fleet above, built and published once for all tests. No test changes it."""
    root = golden.golden("published_fleet", publish_fleet)
    return Published(Warehouse(root / "warehouse"), root / "bundle")


@pytest.fixture
def copied(published: Published, tmp_path: Path) -> Warehouse:
    return Warehouse(shutil.copytree(published.warehouse.root, tmp_path / "copy"))


@pytest.fixture
def settled(published: Published, tmp_path: Path) -> Warehouse:
    """A copy whose publication is in the right place."""
    return golden.copied(published.warehouse, tmp_path / "copy")


def add_alert(warehouse: Warehouse, subject: str, **changed: object) -> None:
    """Publish another open alert like that of d15 (g1, at most 3.2 times its peers), of another drive where nothing else is given."""
    given = {"subject_id": subject, "alert_id": f"drive {subject}", **changed}
    replaced = ", ".join(f"? as {name}" for name in given)
    query = f"insert into marts.fct_slow_alerts by name select * replace ({replaced}) from marts.fct_slow_alerts where subject_id = 'd15'"
    with duckdb.connect(str(warehouse.published)) as connection:
        connection.execute(query, list(given.values()))


def publish_fleet(root: Path) -> None:
    warehouse = Warehouse(root / "warehouse")
    first = write_bundle(
        root / "bundle" / "first",
        {"drive_hours.csv": "\n".join([HEADER, *first_delivery()]) + "\n", "drives.csv": INVENTORY, "drive_events.csv": EVENTS},
    )
    second = write_bundle(root / "bundle" / "second", {"drive_hours.csv": f"{HEADER}\n{CORRECTION}\n", "drive_hours_broken.parquet": "no"})
    assert drivetail("ingest", "bundle", first, "-w", warehouse.root).exit_code == 0
    assert drivetail("ingest", "bundle", second, "-w", warehouse.root).exit_code == 1
    built(warehouse)

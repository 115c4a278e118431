"""Fleets the report is written of: a simulated one with much to tell, one that never was slow, one whose names are hostile."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from hostile import attacked_fleet

from drivetail.ask.decisions import decide
from drivetail.cli import main
from drivetail.demo import run_demo
from engine.build import build, make_asked
from engine.warehouse import Warehouse
from ingest import ingest
from simulate import simulate
from tests.golden import copied, golden

# slow and unplugged often enough that three weeks of a few groups fill every section
EVENTFUL = {
    "disk.episode_rate_per_drive_year": 20.0,
    "ssd.episode_rate_per_drive_year": 60.0,
    "disk.episode_median_hours": 2.0,
    "ssd.episode_median_hours": 2.0,
    "disk.fail_slow_share": 0.1,
    "disk.fail_slow_median_excess": 0.4,
    "ssd.fail_slow_share": 0.1,
    "disk.unplug_share": 0.6,
    "ssd.unplug_share": 0.6,
    "disk.unplug_wait_median_hours": 5.0,
}
HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"
MONDAY = datetime(2026, 1, 5)


def published(warehouse: Warehouse, *deliveries: Path) -> Warehouse:
    """The warehouse with these deliveries, built."""
    for delivery in deliveries:
        ingest("bundle", [delivery], warehouse.root)
    build(warehouse)
    return warehouse


@pytest.fixture(scope="session")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Simulated: disks, SSDs, slow drives, unplugs, rejected rows; two weeks and the beginning of a third; the study is made."""
    return copied(Warehouse(golden("eventful", build_eventful) / "warehouse"), tmp_path_factory.mktemp("eventful") / "warehouse")


def build_eventful(root: Path) -> None:
    """Simulate, build, decide, and ask for the study."""
    simulated = simulate(root / "fleet", disk_groups=5, ssd_groups=3, days=17, seed=3, awkward=("all",), parameters=EVENTFUL)
    warehouse = published(Warehouse(root / "warehouse"), root / "fleet", *([simulated.late] if simulated.late else []))
    decided(warehouse)
    make_asked(warehouse)


def decided(warehouse: Warehouse) -> None:
    """Decide on the three drives with most slow hours: one to be replaced, one watched, one left alone for a reason that is markup."""
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        slowest = connection.execute("select drive_id from marts.fct_drive_slowness order by slow_hours desc, drive_id limit 3").fetchall()
    for (drive,), verdict in zip(slowest, ("replace", "watch", "dismiss"), strict=True):
        decide(warehouse, [drive], verdict, by="ada", note=f"{verdict}: <b>seen</b> & told")


def demo_fleet() -> Warehouse:
    """The warehouse of `drivetail demo`, and decisions on its drives. Nobody may change it."""
    return Warehouse(golden("demo", build_demo, ("report",)) / "demo" / "warehouse")


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A copy of it."""
    return copied(demo_fleet(), tmp_path_factory.mktemp("demo") / "warehouse")


def build_demo(root: Path) -> None:
    """Run the demo, and decide."""
    run_demo(root / "demo", main, date(2026, 2, 1))
    decided(Warehouse(root / "demo" / "warehouse"))


@pytest.fixture(scope="session")
def uneventful(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """One group, 30 hours of one week, no inventory, no events, nothing slow."""
    root = tmp_path_factory.mktemp("uneventful")
    return published(Warehouse(root / "warehouse"), quiet_hours(root / "bundle", range(30)))


def quiet_hours(folder: Path, hours: range) -> Path:
    """A bundle: four drives of one group in these hours of the week, nothing slow."""
    folder.mkdir()
    rows = [f"{(MONDAY + timedelta(hours=hour)).isoformat()},d{drive},g1,10,0,{100 + drive}," for hour in hours for drive in range(4)]
    (folder / "drive_hours.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return folder


@pytest.fixture(scope="session")
def hostile_report() -> Path:
    """Names that are markup, on a slow drive that was unplugged."""
    return attacked_fleet().report

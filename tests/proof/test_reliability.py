"""A warehouse that loses what it can lose: room, memory, its clock, the files that are made from raw. Told what to do, it ends as it was.

docs/reliability.md says what is promised; these are the runs behind it that take too long for every commit.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import duckdb
import pytest

from tests.proof.forks import Forks, Strain
from tests.proof.support import marts_differences

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("reliability")]

HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"


class Site:
    """A warehouse, its deliveries of three hours each, and another one that takes the same undisturbed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.warehouse, self.twin = folder, folder / "warehouse", folder / "undisturbed"
        self.published = self.warehouse / "warehouse.duckdb"
        self.forks = Forks(folder / "forks")
        self.taken = 0
        self.deliver()
        self.forks.run("build", "--warehouse", self.warehouse)

    def deliver(self, strain: Strain | None = None) -> None:
        """Ingest the next delivery: two new hours, and the last one of before with other latencies."""
        delivery = self.folder / f"delivery-{self.taken}"
        delivery.mkdir()
        lines = []
        for hour in range(2 * self.taken, 2 * self.taken + 3):
            for drive in range(5):
                us = f"{100.0 + 10 * drive + self.taken},{90.0 + (300 if drive == hour % 5 else 0)}"
                lines += [f"2026-01-05T{hour:02d}:00:00Z,{group}-{drive},{group},100,50,{us}" for group in ("g1", "g2")]
        (delivery / "drive_hours.csv").write_text("\n".join([HEADER, *lines]) + "\n")
        for root in (self.warehouse, self.twin):
            code, said = self.forks.said("ingest", "bundle", delivery, "--warehouse", root, strain=strain)
            assert code == 0, said
        self.taken += 1

    def build(self, *options: str, strain: Strain | None = None) -> tuple[int, str]:
        return self.forks.said("build", *options, "--warehouse", self.warehouse, strain=strain)

    def ask(self) -> tuple[int, str]:
        question = "select count(*) as hours from marts.fct_raid_hours"
        return self.forks.said("sql", question, "--format", "csv", "--warehouse", self.warehouse)

    def check(self) -> None:
        """The marts are those of the undisturbed warehouse."""
        self.forks.run("build", "--daily", "--warehouse", self.twin)
        assert marts_differences(self.published, self.twin / "warehouse.duckdb") == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("reliability"))


@pytest.mark.parametrize(
    ("strain", "told"),
    [
        (Strain(file_bytes=20_000), "no room on the disk"),  # of the build database
        (Strain(file_bytes=2_000_000), "no room on the disk"),  # of the publication
        (Strain(variables={"DRIVETAIL_MEMORY_LIMIT": "8MB"}), "not enough memory"),
    ],
)
def test_a_build_that_lacks_something_changes_nothing_and_is_done_again(site: Site, strain: Strain, told: str) -> None:
    before = site.ask()
    site.deliver()
    code, said = site.build("--daily", strain=strain)
    assert code == 1 and f"{site.warehouse}: {told} (" in said and "nothing is lost" in said, said
    assert site.ask() == before
    assert site.build("--daily")[0] == 0
    assert site.ask() != before
    site.check()


@pytest.mark.parametrize("hours", [-48, 48])
def test_a_clock_that_jumps_moves_no_number(site: Site, hours: float) -> None:
    def number() -> int:
        # in another process: in this one DuckDB would give what is held below
        code, said = site.forks.said(
            "sql", "select publication_id from marts.publication", "--format", "csv", "--warehouse", site.warehouse
        )
        assert code == 0, said
        return int(said.splitlines()[-1].split("-")[0])

    before = number()
    held = duckdb.connect(str(site.published), read_only=True)
    for strain in (Strain(clock_hours=hours), None):
        site.deliver(strain)
        code, said = site.build("--daily", strain=strain)
        assert code == 0, said
    assert number() == before + 2
    # who has a publication open keeps it, however old the clock makes it
    assert held.execute("select count(*) from marts.fct_drive_hours").fetchone()
    held.close()
    site.check()


@pytest.mark.parametrize("damage", ["gone", "garbage", "written into"])
def test_the_file_that_readers_open_is_published_again(site: Site, damage: str) -> None:
    """The published file and its copy under publications/ are one file under two names: who writes into one damages both."""
    if damage == "written into":
        site.published.chmod(0o600)
    else:
        site.published.unlink()
    if damage != "gone":
        site.published.write_bytes(b"not a database" * 1000)
    code, said = site.ask()
    assert code == 1 and "drivetail build" in said, said
    assert site.build()[0] == 0
    site.check()


def test_the_build_database_is_made_again(site: Site) -> None:
    database = site.warehouse / "build/build.duckdb"
    database.write_bytes(b"not a database" * 1000)
    code, said = site.build()
    assert code == 1 and f"{database}: cannot be opened" in said and "--full-refresh" in said, said
    assert site.build("--full-refresh")[0] == 0
    site.check()


def test_a_damaged_file_of_the_store_is_computed_again(site: Site) -> None:
    file = max(site.warehouse.glob("store/int_raid_hours/*/*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    code, said = site.forks.said("what-if", "--worst", 1, "--warehouse", site.warehouse)
    assert code == 1 and "its tables cannot be read" in said and "--full-refresh" in said, said
    assert site.build("--full-refresh")[0] == 0
    site.check()


def test_raw_alone_brings_everything_back(site: Site) -> None:
    for path in site.warehouse.iterdir():
        if path.name != "raw":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert site.build()[0] == 0
    site.check()


@pytest.mark.parametrize("waited_seconds", [0.0, 0.3, 0.8, 1.5, 2.5])
def test_a_copy_taken_while_a_build_runs_is_a_warehouse_after_a_build(site: Site, waited_seconds: float, tmp_path: Path) -> None:
    """Copied file by file, as cp does: the build database may be torn, and then the build says what to do."""
    site.deliver()
    copy = tmp_path / "copy"
    site.forks.start("build", "--daily", "--warehouse", site.warehouse)
    time.sleep(waited_seconds)
    subprocess.run(["cp", "-a", site.warehouse, copy], capture_output=True, check=False)  # a file may go while it is copied
    assert site.forks.finish()[0] == 0
    build = ("build", "--daily", "--warehouse", copy)
    code, said = site.forks.said(*build)
    if code:
        assert "--full-refresh" in said, said
        site.forks.run(*build, "--full-refresh")
    site.check()
    assert marts_differences(copy / "warehouse.duckdb", site.twin / "warehouse.duckdb") == []

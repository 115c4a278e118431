"""A Spark cluster of a master and two workers: a worker or all of them killed in the middle of a build, and what the build says then.

A random awkward fleet, shuffled: corrections and inventory come last. DRIVETAIL_SEEDS="5" repeats a run.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.warehouse import Warehouse
from ingest import ingest
from tests.proof.support import command, environment, seeds
from tests.reference.compare import compare
from tests.reference.fleets import deliveries, random_fleet
from tests.reference.reference import compute
from workbench.spark_cluster import Cluster

pytestmark = [
    pytest.mark.soak,
    pytest.mark.xdist_group("spark"),
    pytest.mark.needs("java"),
]

BUILD_SECONDS = 600


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "cluster")
    yield made
    made.stop()


class Site:
    """A warehouse that a cluster builds, and what has come to it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folders, _ = deliveries(random_fleet(seed), "shuffled", folder / "deliveries", random.Random(seed))
        self.warehouse = Warehouse(folder / "warehouse")
        self.landed = 0

    def land(self, count: int) -> None:
        for bundle in self.folders[self.landed : self.landed + count]:
            ingest("bundle", [bundle], self.warehouse.root)
        self.landed += count

    def start(self, master: str) -> subprocess.Popen[str]:
        """Start a build. Returns: when it has begun to compute days on the cluster."""
        begun = self.lines_of("days")
        process = subprocess.Popen(
            command("build", "--daily", "--target", "spark", "--master", master, "--warehouse", self.warehouse.root),
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        written = self.warehouse.spark / "int_drive_hours"
        before = set(written.rglob("part-*.parquet"))
        deadline = time.monotonic() + BUILD_SECONDS
        while self.lines_of("days") == begun or set(written.rglob("part-*.parquet")) <= before:
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            time.sleep(0.1)
        return process

    def lines_of(self, phase: str) -> int:
        log = self.warehouse.log
        return sum(json.loads(line)["phase"] == phase for line in log.read_text("utf-8").splitlines()) if log.exists() else 0

    def build(self, master: str) -> None:
        process = self.start(master)
        said, _ = process.communicate(timeout=BUILD_SECONDS)
        assert process.returncode == 0, said

    def differences(self, count: int) -> list[str]:
        """Differences of the publication from the reference of the first deliveries."""
        return compare(compute(self.folders[:count]), self.warehouse.published)


def test_marts_are_the_reference_after_workers_were_killed(cluster: Cluster, tmp_path: Path) -> None:
    """One of two workers: the other one ends the build, or the next build does. Both: one line, and the last publication stays."""
    (seed,) = seeds(1)
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    site = Site(tmp_path, seed)
    last = len(site.folders)
    site.land(last // 2)
    process = site.start(cluster.url)
    cluster.kill_worker()
    said, _ = process.communicate(timeout=BUILD_SECONDS)
    print(f"one worker killed: exit {process.returncode}: {said}")
    if process.returncode:
        assert is_one_line(said), said
        site.build(cluster.url)
    assert site.differences(last // 2) == []

    site.land(last - last // 2)
    cluster.add_worker()
    process = site.start(cluster.url)
    cluster.kill_worker()
    cluster.kill_worker()
    said, _ = process.communicate(timeout=BUILD_SECONDS)
    assert process.returncode == 1 and is_one_line(said) and "no worker of spark://" in said, said
    assert site.differences(last // 2) == [], "the last publication stays"
    cluster.add_worker()
    site.build(cluster.url)
    assert site.differences(last) == []


def is_one_line(said: str) -> bool:
    return len(said.strip().splitlines()) == 1 and said.startswith("drivetail: ")

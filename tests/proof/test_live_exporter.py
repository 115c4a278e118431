"""A real node_exporter on this machine, a real Prometheus that scrapes it: what is ingested is what the kernel counted meanwhile, and
what `drivetail metrics` writes is what Prometheus has.

The first scrape lies between a look at /proc/diskstats before the exporter was started and one after Prometheus had a sample, the last one
between a look before a further sample came and one after the exporter was stopped. Counters only grow, so what lies between the
scrapes lies between what these looks give: bounds without any room of their own.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from drivetail.cli import main
from ingest import list_deliveries
from ingest.raw.store import drive_hour_files, table_files
from ingest.sources import prometheus
from tests.proof import prometheus_fleet
from tests.proof.disk_counters import SECTOR_BYTES, Bracket, look, skip_without_drives, work
from tests.webhook import free_port

pytestmark = [
    pytest.mark.needs("prometheus-node-exporter", "prometheus"),
    pytest.mark.xdist_group("prometheus"),
]
RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "drivetail.rules.yml"
HOUR = timedelta(hours=1)
WORK_SECONDS = 3.0


@contextmanager
def exporter(folder: Path, address: str, *collector: str) -> Iterator[None]:
    """node_exporter with one collector only, by the options given. At the end it is gone."""
    with (folder / "node_exporter.log").open("w") as log:
        process = subprocess.Popen(
            ["prometheus-node-exporter", f"--web.listen-address={address}", "--collector.disable-defaults", *collector],
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def asked(url: str, path: str, **query: str) -> Any:
    """The answer of the server's API, its `data`."""
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
        return json.load(answer)["data"]


def wait_for_scrape(url: str, after: float) -> None:
    """Wait until Prometheus has a sample that was taken after this instant (unix seconds)."""
    until = time.monotonic() + 30
    while not asked(url, "query", query=f"count(timestamp(node_disk_reads_completed_total) > {after})")["result"]:
        assert time.monotonic() < until, "Prometheus took no sample of node_exporter within 30 s"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Bracket]]:
    """A server that scraped this machine for some seconds, and what the kernel counted meanwhile."""
    skip_without_drives()
    folder = tmp_path_factory.mktemp("live")
    address = f"127.0.0.1:{free_port()}"
    with prometheus_fleet.prometheus(folder, address) as url:
        before = look()
        with exporter(folder, address, "--collector.diskstats"):
            wait_for_scrape(url, 0.0)
            began = look()
            work(folder, WORK_SECONDS)
            ends = look()
            wait_for_scrape(url, ends.ended)
        yield url, Bracket(before, began, ends, look())


def test_ingested_counts_lie_between_two_reads_of_the_kernel(
    measured: tuple[str, Bracket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, kernel = measured
    drive = kernel.busiest()
    first, last = (datetime.fromtimestamp(at, UTC).replace(tzinfo=None) for at in (kernel.before.begun, kernel.after.ended))
    first, end = first.replace(minute=0, second=0, microsecond=0), last.replace(minute=0, second=0, microsecond=0) + HOUR
    # only hours that are over are pulled: to the pull the running one is
    monkeypatch.setattr(prometheus, "utc_now", lambda: end)
    hours = [f"{hour:%Y-%m-%dT%H}" for hour in (first, end)]
    arguments = ["ingest", "prometheus", url, "--from", hours[0], "--to", hours[1], "--min-coverage", "0.01", "--warehouse", tmp_path]
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0 and "0 rejected" in done.output, done.output
    deliveries = list_deliveries(tmp_path)
    rows = pl.concat([pl.read_parquet(path, glob=False) for delivery in deliveries for path in drive_hour_files(delivery)])
    # by its serial where udev tells one
    names = [pl.read_parquet(path, glob=False) for path in table_files(deliveries, "drive_aliases")]
    serials = {row["alias"]: row["drive_id"] for frame in names for row in frame.to_dicts() if row["drive_id"]}
    rows = rows.filter(drive_id=serials.get(f"live/{drive}", f"live/{drive}"))  # two where the full hour struck meanwhile
    for way in ("read", "write"):
        took_us = pl.col(f"{way}_ios") * pl.col(f"{way}_latency_us").fill_null(0.0)
        told = rows.select(
            pl.col(f"{way}_ios").sum().alias("ios"),
            (pl.col(f"{way}_blocks") * pl.col("block_bytes") // SECTOR_BYTES).sum().alias("sectors"),
            (took_us.sum() / 1000).round().cast(pl.Int64).alias("ms"),  # the kernel's are whole
        ).row(0, named=True)
        for name, value in told.items():
            least, most = kernel.limits(drive, f"{way}_{name}")
            assert least <= value <= most, f"{way}_{name} of {drive}"
    assert rows["write_ios"].sum() > 0
    shortest, longest = kernel.seconds()
    assert shortest <= rows["coverage"].sum() * 3600 <= longest


def test_the_metrics_file_reaches_prometheus_and_its_rules(tmp_path: Path) -> None:
    """Through a real textfile collector: every number of the file. Nothing is published, so an alert waits for its 15 minutes."""
    delivery, metrics = tmp_path / "in" / "drive_hours.csv", tmp_path / "textfile" / "drivetail.prom"
    delivery.parent.mkdir()
    metrics.parent.mkdir()
    delivery.write_text("hour_utc,drive_id,raid_group_id,latency_us\n2026-01-05T00:00Z,d1,g1,4000\n2026-01-05T00:00Z,d2,g1,-1\n")
    for arguments in (["ingest", "bundle", delivery.parent], ["metrics", "--out", metrics]):
        done = CliRunner().invoke(main, [*map(str, arguments), "--warehouse", str(tmp_path / "warehouse")], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    address = f"127.0.0.1:{free_port()}"
    textfile = ("--collector.textfile", f"--collector.textfile.directory={metrics.parent}")
    with exporter(tmp_path, address, *textfile), prometheus_fleet.prometheus(tmp_path, address, RULES) as url:
        until = time.monotonic() + 30
        while True:
            rules = {rule["name"]: rule for group in asked(url, "rules")["groups"] for rule in group["rules"]}
            if rules["DrivetailUnusable"]["state"] == "pending" and {rule["health"] for rule in rules.values()} == {"ok"}:
                break
            assert time.monotonic() < until, rules
            time.sleep(0.1)
        found = asked(url, "query", query='{__name__=~"drivetail_.+"}')["result"]
        (rejected,) = asked(url, "query", query='drivetail_rows_rejected_total{instance="live:9100",source="bundle"}')["result"]
    assert len(rules) == RULES.read_text(encoding="utf-8").count("- alert:")
    assert rejected["value"][1] == "1"
    written = sorted(float(line.split()[-1]) for line in metrics.read_text().splitlines() if not line.startswith("#"))
    assert sorted(float(series["value"][1]) for series in found) == written

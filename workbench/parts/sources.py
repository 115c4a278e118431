"""A month of 60 drives out of a Prometheus server and out of its files, and the rows per second of each parser."""

from __future__ import annotations

import statistics
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from ingest import drive_hour_files, list_deliveries
from tests.proof.prometheus_fleet import prometheus, write_openmetrics
from workbench.measure import DRIVETAIL, measure, row_count, simulate
from workbench.parsers import bench_parsers
from workbench.parts import Section, Setting


def bench_server(setting: Setting) -> Section:
    """A quarter of the month, then all of it, from either."""
    spans = (1, 2) if setting.small else (7, 30)
    lines = [
        "A simulated fleet, scraped every five minutes, in a real server and in OpenMetrics files of a day; `drivetail ingest prometheus`. "
        f"Medians of {setting.repetitions}. Peak memory is at least that of this bench, which simulates the fleet.",
        "",
        "| from | days | drive-hours | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory(dir=setting.work) as name:
        folder = Path(name)
        simulate(folder / "bundle", 3, 2, spans[-1])
        write_openmetrics(folder / "bundle", folder, 12)
        files = sorted(folder.glob("*.om"))
        with prometheus(folder) as url:
            for days in spans:
                span = "--from", "2026-01-05", "--to", f"{datetime(2026, 1, 5) + timedelta(days=days):%Y-%m-%d}"
                # the last full hour of a day is over at the first scrape of the next
                for given, asked in (("a server", (url, *span)), ("files", files[: days + 1])):
                    costs = []
                    for repetition in range(setting.repetitions):
                        warehouse = folder / f"{given}-{days}-{repetition}"
                        costs.append(measure(DRIVETAIL, "ingest", "prometheus", *asked, "--warehouse", warehouse))
                    rows = row_count(path for delivery in list_deliveries(warehouse) for path in drive_hour_files(delivery))
                    wall, cpu = statistics.median(cost.seconds for cost in costs), statistics.median(cost.cpu_seconds for cost in costs)
                    peak = max(cost.peak_mib for cost in costs)
                    lines.append(f"| {given} | {days} | {rows:,} | {wall:.1f} | {cpu:.1f} | {peak:,.0f} |")
                    print(lines[-1], flush=True)
    return Section("A month of 60 drives from Prometheus", lines)


def bench_sources(setting: Setting) -> list[Section]:
    """The server first: a process counts the memory of the one it is forked from, and the parsers are read in this one."""
    server = bench_server(setting)
    heading, _, *lines = bench_parsers(setting.work, setting.repetitions)
    return [server, Section(heading.removeprefix("## "), lines)]

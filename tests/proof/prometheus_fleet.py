"""A simulated fleet as node_exporter would have counted it, in a real Prometheus server."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path

import polars as pl

from tests.webhook import free_port

HOUR = 3600
COUNTED = ("node_disk_reads_completed_total", "node_disk_writes_completed_total", "node_disk_read_time_seconds_total",
           "node_disk_write_time_seconds_total", "node_disk_read_bytes_total", "node_disk_written_bytes_total")  # fmt: skip


def write_openmetrics(bundle: Path, folder: Path, scrapes_per_hour: int = 1) -> int:
    """Counters since the first hour, scraped at every full hour and evenly within, of every drive of the bundle; a host per RAID group.

    A file per day, or promtool would read all of it for every block of two hours. Times are in whole milliseconds of 32 bits as the
    kernel prints them, cut off, never rounded. Returns how often one ran over.
    """
    hours = pl.read_parquet(bundle / "drive_hours*.parquet").sort("drive_id", "hour_utc")
    drives = pl.read_parquet(bundle / "drives*.parquet").sort("valid_from").unique("drive_id", keep="last")
    about = {row["drive_id"]: row for row in drives.to_dicts()}
    samples: dict[tuple[int, str], list[str]] = {}
    places: dict[str, int] = {}
    ran_over = 0
    for (drive_id, group), rows in hours.partition_by("drive_id", "raid_group_id", as_dict=True, maintain_order=True).items():
        place = places[group] = places.get(group, -1) + 1
        device, drive = f"sd{chr(97 + place // 26)}{chr(97 + place % 26)}", about[drive_id]
        where = f'instance="{group}:9100",job="node",device="{device}"'
        info = f'{where},serial="{drive_id}",model="{drive["model"]}",rotational="{int(drive["kind"] == "disk")}"'
        member = f'{where},md="md0",uuid="{group}",role="{drive["role"]}"'
        counts, nanoseconds, seen_to = [0, 0, 0, 0], [0, 0], -1
        scrapes: list[tuple[int, tuple[float, ...]]] = []
        for row in rows.to_dicts():
            start = int(row["hour_utc"].replace(tzinfo=UTC).timestamp())
            if start != seen_to:  # the drive was away: it shows itself a second into the hour
                scrapes.append((start + (seen_to > 0), _shown(counts, nanoseconds)))
            counted = [row[f"{way}_ios"] for way in ("read", "write")]
            counted += [row[f"{way}_blocks"] * row["block_bytes"] for way in ("read", "write")]
            took = [round(row[f"{way}_ios"] * (row[f"{way}_latency_us"] or 0.0) * 1000) for way in ("read", "write")]
            for part in range(1, scrapes_per_hour + 1):
                so_far = [
                    [total + more * part // scrapes_per_hour for total, more in zip(totals, added, strict=True)]
                    for totals, added in ((counts, counted), (nanoseconds, took))
                ]
                scrapes.append((start + part * HOUR // scrapes_per_hour, _shown(*so_far)))
            counts, nanoseconds = so_far
            seen_to = start + HOUR
        for at, values in scrapes:
            shown = {metric: f"{{{where}}} {value}" for metric, value in zip(COUNTED, values, strict=True)}
            shown |= {"node_disk_info": f"{{{info}}} 1", "drivetail_md_member": f"{{{member}}} 1"}
            for metric, sample in shown.items():
                samples.setdefault((at // 86_400, metric), []).append(f"{metric}{sample} {at}\n")
        ran_over += sum(total // (2**32 * 1_000_000) for total in nanoseconds)
    for (day, metric), lines in samples.items():
        with (folder / f"{day}.om").open("a") as out:
            out.write(f"# TYPE {metric.removesuffix('_total')} {'counter' if metric in COUNTED else 'gauge'}\n")
            out.writelines(lines)
    for path in folder.glob("*.om"):
        with path.open("a") as out:
            out.write("# EOF\n")
    return ran_over


def _shown(counts: list[int], nanoseconds: list[int]) -> tuple[float, ...]:
    """The counters as they are printed, in the order of COUNTED."""
    return (*counts[:2], *(value // 1_000_000 % 2**32 / 1000 for value in nanoseconds), *counts[2:])


@contextmanager
def prometheus(folder: Path, scraped: str | None = None, rules: Path | None = None) -> Iterator[str]:
    """A server that holds the samples of the folder's files; its address.

    scraped: a target to scrape every second, as host `live`. rules: a file of rules, evaluated every second.
    """
    for path in sorted(folder.glob("*.om")):
        importing = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(path), str(folder / "data")]
        subprocess.run(importing, check=True, capture_output=True, timeout=600)
    jobs = [{"job_name": "node", "scrape_interval": "1s", "static_configs": [{"targets": [scraped], "labels": {"instance": "live:9100"}}]}]
    ruled = {"rule_files": [str(rules)], "global": {"evaluation_interval": "1s"}} if rules else {}
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs if scraped else [], **ruled}))  # JSON is YAML
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (folder / "prometheus.log").open("w") as log:
        server = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y", "--log.level=warn"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait(url, server, folder / "prometheus.log")
            yield url
        finally:
            server.terminate()
            server.wait(60)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"Prometheus was not ready in time: {log.read_text()}")

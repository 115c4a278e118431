"""Samples within an hour: kept where it is asked for, and the hour is the same whether it is kept or not."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from drivetail.cli import main
from ingest import IngestError, ingest
from ingest.contract.fleet import RETIRED
from ingest.contract.values import RESOLUTIONS, TIMED
from quality import Gate
from tests.ingest.conftest import Warehouse, csv_text
from tests.ingest.prometheus_server import Server, serving
from tests.ingest.test_prometheus_pull import HOURS, awkward_fleet, cut, drive, every, with_reset
from tests.ingest.test_prometheus_pull import START as SCRAPED
from tests.ingest.test_prometheus_pull import UNIX as SCRAPED_UNIX

START = datetime(2026, 1, 5, 10)
UNIX = int(START.replace(tzinfo=UTC).timestamp())
MINUTE = timedelta(minutes=1)
FIVE_MINUTES = {"resolution": "5m"}


def snapshot(minute: float, *drives: tuple[str, int, int]) -> str:
    """A look at (device, writes, milliseconds of them), a number of minutes after the start."""
    lines = [f"   8  0 {device} 0 0 0 0 {writes} 0 {8 * writes} {ms} 0 0 0" for device, writes, ms in drives]
    return "\n".join([f"TS {UNIX + 60 * minute}", *lines]) + "\n"


def diskstats(*looks: str) -> dict[str, Any]:
    return {"web1/diskstats": "".join(looks)}


def sadf(lines: list[str]) -> dict[str, Any]:
    return {"sadf.csv": csv_text(*lines, header="# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;await")}


def test_five_minutes_hold_the_intervals_that_end_in_them(warehouse: Warehouse) -> None:
    # 0 to 4 to 8: the second interval ends in the second five minutes; 8 to 20 began too long before 15 to 20; at 25 the drive was reset
    looks = [(0, 0, 0), (4, 10, 20), (8, 30, 80), (20, 90, 90), (22, 91, 95), (25, 5, 5), (30, 5, 5)]
    warehouse.land("diskstats", diskstats(*(snapshot(m, ("sda", n, ms)) for m, n, ms in looks)), **FIVE_MINUTES)
    assert warehouse.rows("drive_samples", "from_utc write_ios write_latency_us coverage collected_at") == [
        (START, 10, 2000.0, 4 / 5, START + 4 * MINUTE),
        (START + 5 * MINUTE, 20, 3000.0, 4 / 5, START + 8 * MINUTE),
        (START + 20 * MINUTE, 1, 5000.0, 2 / 5, START + 22 * MINUTE),
        (START + 25 * MINUTE, 0, None, 1.0, START + 30 * MINUTE),
    ]
    columns = "to_utc drive_id raid_group_id source is_alias is_group_guessed min_coverage block_bytes"
    told = (START + 5 * MINUTE, "web1/sda", "web1", "diskstats", True, True, 0.5, 512)
    assert warehouse.rows("drive_samples", columns)[0] == told
    assert sorted(warehouse.live()["write_ios"]) == [0, 1, 30, 60]  # one hour, cut by a gap of 12 minutes and by the reset


def test_ten_minutes_of_sar_give_no_samples_of_five(warehouse: Warehouse) -> None:
    lines = [f"web1;{seconds};{UNIX + end};sda;{rate};1.00;1.00;2.00" for seconds, end, rate in ((600, 600, "9.00"), (301, 902, "3.00"))]
    warehouse.land("sysstat", sadf(lines), **FIVE_MINUTES)
    # its times are whole seconds: a second more than five minutes is still five
    assert warehouse.rows("drive_samples", "from_utc io_count coverage") == [(START + 10 * MINUTE, 903, 1.0)]
    assert warehouse.live()["io_count"].to_list() == [5400 + 903]


def random_diskstats(draw: random.Random) -> dict[str, Any]:
    """Two hours of three drives, looked at every minute, then awkwardly: gaps, boots; and a look that comes twice."""
    counters = {device: [draw.randrange(1000), draw.randrange(1000)] for device in ("sda", "sdb", "sdc")}
    looks, minute = [snapshot(0, *((device, *values) for device, values in counters.items()))], 0.0
    while minute < 120:
        is_quiet = minute < 60  # the first hour has nothing awkward
        minute += 1.0 if is_quiet else draw.choice([0.5, 1.0, 1.0, 1.0, 2.25, 7.0, 16.0])
        for values in counters.values():
            values[:] = [0, 0] if not is_quiet and draw.random() < 0.05 else [value + draw.randrange(200) for value in values]
        looks.append(snapshot(minute, *((device, *values) for device, values in counters.items())))
    return diskstats(*looks, looks[0])


def random_sysstat(draw: random.Random) -> dict[str, Any]:
    """Two hours of sadf -d, intervals of a minute, in the second hour up to ten."""
    lines, minute = [], 0
    while minute < 120:
        length = 1 if minute < 60 else draw.choice([1, 1, 1, 5, 10])
        minute += length
        begins = f"web1;{60 * length};{START + minute * MINUTE:%Y-%m-%d %H:%M:%S} UTC"
        lines += [f"{begins};{device};{draw.randrange(900) / 100};1.00;2.00;{draw.randrange(400) / 100}" for device in ("sda", "sdb")]
    return sadf(lines)


def random_perseus(draw: random.Random) -> dict[str, Any]:
    rows = [
        f"{UNIX + 15 * n},disk{d},{draw.randrange(10**6)},{draw.randrange(10**4) / 8}"
        for d in (1, 2)
        for n in range(1, 481)
        if draw.random() < 0.9
    ]
    return {"cluster_A/host_1/day.csv": csv_text(*rows, header="ts,disk_id,throughput,latency")}


FILES = {"diskstats": random_diskstats, "sysstat": random_sysstat, "perseus": random_perseus}


def assert_hours_are_the_same_and_hold_their_samples(hourly: Warehouse, finer: Warehouse, seconds: int) -> None:
    """Bit by bit; and where an hour that nothing cut has all its parts they add up to it."""
    about_rows = ["delivery_seq", "file_no", "row_no"]  # a finer pull has more readings
    hours = [each.live().drop(about_rows) for each in (finer, hourly)]
    in_order = [name for name in ("drive_id", "hour_utc", "from_utc") if name in hours[0].columns]
    assert hours[0].sort(in_order).equals(hours[1].sort(in_order))
    assert not hourly.live("drive_samples").height
    kept = finer.live("drive_samples")
    assert (kept["to_utc"] - kept["from_utc"]).max() == timedelta(seconds=seconds)
    spans = kept.group_by("drive_id", pl.col("from_utc").dt.truncate("1h").alias("hour_utc")).agg(
        pl.col("read_ios", "write_ios", "io_count", "bytes").sum(),
        (pl.col("coverage") * seconds).sum(),
        (pl.col("write_ios") * pl.col("write_latency_us")).sum().alias("write_us"),
    )
    uncut = finer.live().filter(pl.len().over("drive_id", "hour_utc") == 1)
    both = uncut.join(spans, on=["drive_id", "hour_utc"], suffix="_parts")
    assert both.height > 0
    whole = both.filter((pl.col("coverage") * 3600 - pl.col("coverage_parts")).abs() < 1e-6)
    assert whole.height > 0
    # sysstat's counts are rates, rounded in every part
    rounding = 0.5 + 1800 / seconds if "sysstat" in whole["source" if "source" in whole.columns else "drive_id"] else 0.0
    for name in ("read_ios", "write_ios", "io_count", "bytes"):
        off = (whole[name].fill_null(0) - whole[f"{name}_parts"].fill_null(0)).abs()
        assert off.max() <= (rounding if name != "bytes" or rounding else 3600 / seconds), name
    took = (whole["write_ios"] * whole["write_latency_us"] - whole["write_us"]).abs().drop_nulls()
    assert not took.len() or took.max() < 1e-3


@pytest.mark.parametrize("resolution", RESOLUTIONS)
@pytest.mark.parametrize("source", FILES)
def test_files_give_the_same_hours_with_and_without(source: str, resolution: str, tmp_path: Path) -> None:
    delivery = FILES[source](random.Random(f"{source} {resolution}"))
    hourly, finer = Warehouse(tmp_path / "hourly"), Warehouse(tmp_path / "finer")
    hourly.land(source, delivery)
    finer.land(source, delivery, resolution=resolution)
    assert_hours_are_the_same_and_hold_their_samples(hourly, finer, RESOLUTIONS[resolution])


@pytest.mark.parametrize(("seed", "resolution"), [(0, "5m"), (1, "5m"), (2, "1m"), (3, "15m")])
def test_a_pull_gives_the_same_hours_with_and_without(seed: int, resolution: str, tmp_path: Path) -> None:
    hourly, finer = Warehouse(tmp_path / "hourly"), Warehouse(tmp_path / "finer")
    fleet = awkward_fleet(seed)
    # times as node_exporter gives them, of which few are exact as doubles
    fleet = {
        key: [(at, round(value, 3)) if "seconds" in dict(key)["__name__"] else (at, value) for at, value in points]
        for key, points in fleet.items()
    }
    with serving(Server(fleet)) as server:
        for warehouse, options in ((hourly, {}), (finer, {"resolution": resolution})):
            ingest("prometheus", server.url, warehouse.path, first=SCRAPED, end=SCRAPED + timedelta(hours=HOURS), source_options=options)
    assert_hours_are_the_same_and_hold_their_samples(hourly, finer, RESOLUTIONS[resolution])


def test_a_finer_pull_sees_what_every_scrape_saw(warehouse: Warehouse) -> None:
    """A reset and a gap within an hour cost their five minutes only."""
    draw = random.Random(7)
    fleet = with_reset(drive("web", "sda", every(30, 5), draw, "S0"), SCRAPED_UNIX + 1000)
    fleet = cut(fleet, lambda at: not SCRAPED_UNIX + 1900 < at < SCRAPED_UNIX + 2500)
    with serving(Server(fleet)) as server:
        ingest("prometheus", server.url, warehouse.path, first=SCRAPED, end=SCRAPED + timedelta(hours=1), source_options=FIVE_MINUTES)
    (reads,) = (points for key, points in fleet.items() if dict(key)["__name__"] == "node_disk_reads_completed_total")
    expected: dict[datetime, tuple[int, float]] = {}
    for (before, first), (at, last) in pairwise(reads):
        part = -(-int((at - SCRAPED_UNIX) * 1000) // 300_000) - 1
        if last >= first and 0 <= part < 12 and before > SCRAPED_UNIX + (part - 1) * 300:
            ios, seconds = expected.get(SCRAPED + part * 5 * MINUTE, (0, 0.0))
            expected[SCRAPED + part * 5 * MINUTE] = (ios + int(last - first), seconds + at - before)
    samples = warehouse.live("drive_samples").sort("from_utc")
    parts = samples.group_by(pl.col("from_utc").dt.truncate("5m"), maintain_order=True).agg(pl.col("read_ios", "coverage").sum())
    found = {part: (ios, coverage) for part, ios, coverage in parts.iter_rows()}
    assert found == {part: (ios, pytest.approx(min(1.0, seconds / 300))) for part, (ios, seconds) in expected.items()}
    # where the counters began again, and after the gap
    begun = samples.filter(pl.col("from_utc").dt.minute() % 5 > 0)["from_utc"].to_list()
    assert [(at - SCRAPED).total_seconds() for at in begun] == [1025, 2525]


def test_the_fuller_sample_of_a_time_counts_whatever_came_first(tmp_path: Path) -> None:
    looks = [snapshot(m, ("sda", 10 * m, 20 * m)) for m in (0, 3, 5, 9)]
    ends = []
    for number, order in enumerate(permutations((looks[:2], looks[:3], looks[1:]))):
        warehouse = Warehouse(tmp_path / f"warehouse {number}")
        for part in (*order, order[0]):
            warehouse.land("diskstats", diskstats(*part), **FIVE_MINUTES)
        ends.append(warehouse.rows("drive_samples", "drive_id from_utc write_ios coverage collected_at"))
        retired = warehouse.table("retired_drive_samples")
        assert retired.schema == RETIRED["drive_samples"] and set(retired["reason"]) <= {"duplicate", "superseded"}
    assert all(end == ends[0] for end in ends)
    # of 10:00 to 10:05 the look at 5 is the last of two; the one that is greater row by row counts
    assert [(row[1], row[2]) for row in ends[0]] == [(START, 50), (START + 5 * MINUTE, 40)]


def test_samples_of_an_hour_that_the_gate_rejects_go_with_it(warehouse: Warehouse) -> None:
    # sdb took two hours for each of its writes at eleven
    looks = [snapshot(m, ("sda", m, 2 * m), ("sdb", m, 2 * m if m <= 60 else 2 * m + (m - 60) * 7_200_000)) for m in range(0, 121, 5)]
    summary = warehouse.land("diskstats", diskstats(*looks), gate=Gate(warehouse.path), **FIVE_MINUTES)
    assert summary.rows_rejected == 12 and summary.delivery_seq == 1
    kept = warehouse.live("drive_samples").group_by("drive_id", pl.col("from_utc").dt.hour()).len().sort("drive_id", "from_utc").rows()
    assert kept == [("web1/sda", 10, 12), ("web1/sda", 11, 12), ("web1/sdb", 10, 12)]


def test_samples_are_kept_only_on_request(warehouse: Warehouse) -> None:
    warehouse.land("diskstats", diskstats(snapshot(0, ("sda", 0, 0)), snapshot(5, ("sda", 9, 9))))
    (delivery,) = warehouse.path.glob("raw/deliveries/*")
    assert sorted(path.name for path in delivery.iterdir()) == ["delivery.json", "drive_hours", "ingested_files.parquet"]
    assert set(TIMED) == {"drive_hours", "drive_samples", "drive_health", "drive_latencies"}


def test_samples_are_asked_of_collected_sources_that_have_them(warehouse: Warehouse) -> None:
    lsblk = {"TS": UNIX, "blockdevices": [{"name": "sda", "type": "disk", "serial": "S1"}]}
    delivery = warehouse.put({**diskstats(*(snapshot(m, ("sda", m, m)) for m in range(6))), "web1/lsblk.json": lsblk})
    arguments = ["ingest", "collected", delivery, "--resolution", "5m", "--warehouse", warehouse.path]
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert warehouse.rows("drive_samples", "write_ios coverage") == [(5, 1.0)]
    assert warehouse.live("drives")["drive_id"].to_list() == ["web1/sda"]


@pytest.mark.parametrize(
    ("source", "given", "said"), [("bundle", "5m", "'bundle' does not take resolution"), ("diskstats", "7m", "give one of 1m, 5m, 15m")]
)
def test_an_unknown_resolution_is_refused(source: str, given: str, said: str, warehouse: Warehouse) -> None:
    with pytest.raises(IngestError, match=said):
        warehouse.land(source, diskstats(snapshot(0)), resolution=given)

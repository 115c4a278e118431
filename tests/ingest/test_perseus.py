"""Samples of 15 seconds roll up to drive-hours; counts stay in samples."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import polars as pl

from ingest import ingest
from tests.ingest.conftest import SHARED, Warehouse, needs_shared

HOUR = 1658149200  # 2022-07-18 13:00 UTC
HEADER = '"ts","disk_id","throughput","latency"'


def sample(n: int, disk: str = "disk1", throughput: object = 100.5, latency: object = 80) -> str:
    """The n-th sample of the hour, from 1: it ends n * 15 s after the hour began."""
    return f'{HOUR + 15 * n},"{disk}",{throughput},{latency}'


def write(root: Path, lines: list[str], host: str = "host_1", name: str = "2022-07-18.csv") -> Path:
    path = root / "cluster_A" / host / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = ("\n".join([HEADER, *lines]) + "\n").encode()
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
    return path


def test_an_hour_is_the_mean_of_its_samples(tmp_path: Path, warehouse: Warehouse) -> None:
    lines = [sample(n, latency=n % 2 * 100) for n in range(1, 241)] + [
        sample(241),
        sample(2, "disk2", latency="NA"),
        sample(0, "disk2", "", 7),
    ]
    write(tmp_path / "in", lines)
    summary = ingest("perseus", [tmp_path / "in"], warehouse.path)
    assert (summary.rows_delivered, summary.rows_accepted) == (243, 243)
    rows = warehouse.live().sort("drive_id", "hour_utc")
    columns = ["drive_id", "raid_group_id", "hour_utc", "latency_us", "bytes", "coverage", "io_count", "row_no"]
    h = datetime(2022, 7, 18, 13)
    host = "cluster_A/host_1"
    assert rows.select(columns).rows() == [
        (f"{host}/disk1", host, h, 50.0, 361800, 1.0, None, 1),
        (f"{host}/disk1", host, datetime(2022, 7, 18, 14), 80.0, 1508, 1 / 240, None, 241),
        (f"{host}/disk2", host, datetime(2022, 7, 18, 12), 7.0, None, 1 / 240, None, 243),
        (f"{host}/disk2", host, h, None, 1508, 0.0, None, 242),
    ]
    assert rows["declared_kind"].to_list() == [None] * 4
    drives = warehouse.live("drives").sort("drive_id")
    assert drives.select("drive_id", "raid_group_id", "role", "kind", "host", "valid_from").rows() == [
        (f"{host}/disk{n}", host, "data", "ssd", host, None) for n in (1, 2)
    ]


def test_bad_samples_are_rejected_and_repeated_ones_counted(tmp_path: Path, warehouse: Warehouse) -> None:
    lines = [
        sample(1, latency=10), sample(2, latency=-1), sample(3, latency="inf"), "later,disk1,1,1", f"{HOUR + 60},,1,1",
        sample(1, latency=10), sample(1, latency=30), sample(5, throughput=-1), "1,2",
    ]  # fmt: skip
    write(tmp_path / "in", lines)
    (file,) = ingest("perseus", [tmp_path / "in"], warehouse.path).files
    assert (file.rows_delivered, file.rows_accepted, file.rows_rejected, file.rows_duplicate, file.rows_superseded) == (9, 1, 6, 1, 1)
    assert warehouse.table("rejected_records").select("row", "column").rows() == [
        (2, "latency"), (3, "latency"), (4, "ts"), (5, "disk_id"), (8, "throughput"), (9, None),
    ]  # fmt: skip
    assert warehouse.live()["latency_us"].to_list() == [30.0]


def test_an_hour_in_two_files_is_one_and_its_samples_follow_it(tmp_path: Path, warehouse: Warehouse) -> None:
    write(tmp_path / "one", [sample(1, latency=10), sample(2, latency=20)], name="a.csv")
    write(tmp_path / "one", [sample(3, latency=60)], name="b.csv")
    summary = ingest("perseus", [tmp_path / "one"], warehouse.path)
    assert warehouse.live().select("latency_us", "file_no", "row_no").rows() == [(30.0, 1, 1)]
    assert [file.rows_accepted for file in summary.files] == [2, 1]
    # fewer samples, a smaller mean: the hour loses, and takes its two samples with it
    write(tmp_path / "two", [sample(1, latency=1), sample(2, latency=1)], name="c.csv")
    (file,) = ingest("perseus", [tmp_path / "two"], warehouse.path).files
    assert (file.rows_delivered, file.rows_accepted, file.rows_superseded) == (2, 0, 2)
    write(tmp_path / "three", [sample(1, latency=1), sample(2, latency=1)], name="d.csv")
    (file,) = ingest("perseus", [tmp_path / "three"], warehouse.path).files
    assert (file.rows_delivered, file.rows_duplicate) == (2, 2)
    assert warehouse.live()["latency_us"].to_list() == [30.0]
    assert warehouse.live("drives").height == 1


def test_an_unreadable_file_does_not_stop_its_host(tmp_path: Path, warehouse: Warehouse) -> None:
    write(tmp_path / "in", [sample(1)], name="a.csv")
    write(tmp_path / "in", [], name="b.csv").write_bytes(b"")
    write(tmp_path / "in", [], name="c.csv")
    summary = ingest("perseus", [tmp_path / "in"], warehouse.path)
    assert [file.status for file in summary.files] == ["landed", "unreadable", "landed"]
    assert warehouse.live().height == 1


@needs_shared
def test_real_host_days_equal_the_hourly_means(warehouse: Warehouse) -> None:
    summary = ingest("perseus", [SHARED / "data/perseus/raw_host_days"], warehouse.path)
    assert {file.status for file in summary.files} == {"landed"}
    assert summary.rows_delivered == summary.rows_accepted
    hourly = pl.read_csv(SHARED / "data/perseus/cluster_A_hourly.csv.gz", try_parse_dates=True).select(
        pl.format("cluster_{}/host_{}/disk{}", "cluster", "host", "disk").alias("drive_id"),
        pl.col("hour_utc").cast(pl.Datetime("us")),
        "n_latency",
        "avg_latency_us",
    )
    rows = warehouse.live().filter(pl.col("raid_group_id").str.starts_with("cluster_A"))
    both = rows.join(hourly, on=["drive_id", "hour_utc"])
    assert both.height == rows.height > 0
    assert both.select((pl.col("latency_us") - pl.col("avg_latency_us")).abs().max()).item() <= 0.00051  # printed with 3 digits
    assert both.select((pl.col("coverage") * 240 - pl.col("n_latency")).abs().max()).item() < 1e-9

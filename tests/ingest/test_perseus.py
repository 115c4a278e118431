"""Samples of 15 seconds roll up to drive-hours; counts stay in samples."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from tests.ingest.conftest import SHARED, Warehouse, counts, csv_text, needs_shared

HOUR = 1658149200  # 2022-07-18 13:00 UTC
HEADER = '"ts","disk_id","throughput","latency"'


def sample(n: int, disk: str = "disk1", throughput: object = 100.5, latency: object = 80) -> str:
    """The n-th sample of the hour, from 1: it ends n * 15 s after the hour began."""
    return f'{HOUR + 15 * n},"{disk}",{throughput},{latency}'


def host(lines: list[str], name: str = "2022-07-18.csv") -> dict[str, str]:
    return {f"cluster_A/host_1/{name}": csv_text(*lines, header=HEADER)}


def test_an_hour_is_the_mean_of_its_samples(warehouse: Warehouse) -> None:
    lines = [sample(n, latency=n % 2 * 100) for n in range(1, 241)]
    lines += [sample(241), sample(2, "disk2", latency="NA"), sample(0, "disk2", "", 7)]
    assert counts(warehouse.land("perseus", host(lines))) == (243, 243, 0, 0, 0)
    columns = "drive_id raid_group_id hour_utc latency_us bytes coverage io_count row_no declared_kind"
    h = datetime(2022, 7, 18, 13)
    group = "cluster_A/host_1"
    assert warehouse.rows("drive_hours", columns) == [
        (f"{group}/disk1", group, h, 50.0, 361800, 1.0, None, 1, None),
        (f"{group}/disk1", group, datetime(2022, 7, 18, 14), 80.0, 1508, 1 / 240, None, 241, None),
        (f"{group}/disk2", group, datetime(2022, 7, 18, 12), 7.0, None, 1 / 240, None, 243, None),
        (f"{group}/disk2", group, h, None, 1508, 0.0, None, 242, None),
    ]
    drives = warehouse.rows("drives", "drive_id raid_group_id role kind host valid_from")
    assert drives == [(f"{group}/disk{n}", group, "data", "ssd", group, None) for n in (1, 2)]


def test_bad_samples_are_rejected_and_repeated_ones_counted(warehouse: Warehouse) -> None:
    lines = [
        sample(1, latency=10), sample(2, latency=-1), sample(3, latency="inf"), "later,disk1,1,1", f"{HOUR + 60},,1,1",
        sample(1, latency=10), sample(1, latency=30), sample(5, throughput=-1), "1,2",
    ]  # fmt: skip
    assert counts(warehouse.land("perseus", host(lines))) == (9, 1, 6, 1, 1)
    assert warehouse.rejected("row column") == [
        (2, "latency"), (3, "latency"), (4, "ts"), (5, "disk_id"), (8, "throughput"), (9, None),
    ]  # fmt: skip
    assert warehouse.live()["latency_us"].to_list() == [30.0]


def test_an_hour_in_two_files_is_one_and_its_samples_follow_it(warehouse: Warehouse) -> None:
    two = host([sample(1, latency=10), sample(2, latency=20)], "a.csv") | host([sample(3, latency=60)], "b.csv")
    summary = warehouse.land("perseus", two)
    assert warehouse.rows("drive_hours", "latency_us file_no row_no") == [(30.0, 1, 1)]
    assert [file.rows_accepted for file in summary.files] == [2, 1]
    # fewer samples, a smaller mean: the hour loses, and takes its two samples with it
    fewer = [sample(1, latency=1), sample(2, latency=1)]
    assert counts(warehouse.land("perseus", host(fewer, "c.csv"))) == (2, 0, 0, 0, 2)
    assert counts(warehouse.land("perseus", host(fewer, "d.csv"))) == (2, 0, 0, 2, 0)
    assert warehouse.live()["latency_us"].to_list() == [30.0]
    assert warehouse.live("drives").height == 1


def test_an_unreadable_file_does_not_stop_its_host(warehouse: Warehouse) -> None:
    files = host([sample(1)], "a.csv") | {"cluster_A/host_1/b.csv": b""} | host([], "c.csv")
    assert [file.status for file in warehouse.land("perseus", files).files] == ["landed", "unreadable", "landed"]
    assert warehouse.live().height == 1


@needs_shared
def test_real_host_days_equal_the_hourly_means(warehouse: Warehouse) -> None:
    summary = warehouse.land("perseus", SHARED / "data/perseus/raw_host_days")
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

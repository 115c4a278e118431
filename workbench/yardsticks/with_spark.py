"""A day by hand in PySpark on this machine alone: python -m workbench.yardsticks.with_spark FOLDER OUT. Needs the extra `spark`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from workbench.yardsticks import EDGES, MIN_COVERAGE, MIN_DRIVES, SLOW

THREADS = os.cpu_count() or 1


def session(scratch: Path) -> SparkSession:
    """Spark in one process of this machine, with few shuffle partitions: the day is small."""
    options = {
        "spark.driver.memory": "6g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(4 * THREADS),
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{THREADS}]").appName("a day by hand")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measured(spark: SparkSession, folder: Path) -> DataFrame:
    """Latency, I/O count and size of every drive-hour of a data drive; null where too little of the hour was observed."""
    hours = spark.read.parquet(*map(str, sorted(folder.glob("drive_hours*.parquet"))))
    for side in ("read", "write"):  # NaN is greater than infinity
        hours = hours.where(f"{side}_ios = 0 or {side}_latency_us >= 0 and {side}_latency_us < double('infinity')")
    others = spark.read.parquet(str(folder / "drives.parquet")).where("role <> 'data'")
    periods = others.selectExpr("drive_id", "date_trunc('hour', valid_from) as from_hour", "date_trunc('hour', valid_to) as to_hour")
    covered = (
        (hours.drive_id == periods.drive_id)
        & (f.coalesce(periods.from_hour, hours.hour_utc) <= hours.hour_utc)
        & (periods.to_hour.isNull() | (periods.to_hour > hours.hour_utc))
    )
    is_peer = f"coalesce(coverage, 1.0) >= {MIN_COVERAGE}"
    moved = " + ".join(f"if({side}_ios > 0, {side}_ios * {side}_latency_us, 0.0)" for side in ("read", "write"))
    size = "cast((coalesce(read_blocks, 0) + coalesce(write_blocks, 0)) * coalesce(block_bytes, 4096) as double)"
    return hours.join(f.broadcast(periods), covered, "left_anti").selectExpr(
        "drive_id", "raid_group_id", "hour_utc",
        f"if({is_peer}, ({moved}) / nullif(read_ios + write_ios, 0), null) as latency_us",
        f"if({is_peer}, read_ios + write_ios, null) as io_count",
        f"if({is_peer}, {size} / nullif(read_ios + write_ios, 0), null) as io_size_bytes",
    )  # fmt: skip


def middle(column: str) -> str:
    """The exact median: in groups of a dozen drives a sorted list is several times as fast as `median`."""
    values = f"sort_array(collect_list({column}))"
    return f"(get({values}, (count({column}) - 1) div 2) + get({values}, count({column}) div 2)) / 2"


def main(folder: Path, out: Path) -> None:
    """Write the three files of the answer."""
    out.mkdir(parents=True, exist_ok=True)
    spark = session(out / "scratch")
    of_peers = measured(spark, folder)
    key = ["raid_group_id", "hour_utc"]
    medians = (
        of_peers.groupBy(*key)
        .agg(
            f.count("latency_us").alias("latency_count"),
            *(f.expr(middle(name)).alias(f"median_{name}") for name in ("latency_us", "io_count", "io_size_bytes")),
        )
        .withColumn("is_valid", f.expr(f"latency_count >= {MIN_DRIVES} and median_latency_us > 0"))
    )
    drive_hours = of_peers.join(medians, key, "left").selectExpr(
        "drive_id", *key,
        "latency_us / if(is_valid, median_latency_us, null) as slowdown",
        "io_count / nullif(median_io_count, 0) as rate_imbalance",
        "io_size_bytes / nullif(median_io_size_bytes, 0) as size_imbalance",
    )  # fmt: skip
    drive_hours.write.mode("overwrite").parquet(str(out / "drive_hours.parquet"))
    drive_hours = spark.read.parquet(str(out / "drive_hours.parquet"))
    tails = (
        drive_hours.where("slowdown is not null")
        .groupBy(*key)
        .agg(
            f.expr(f"count_if(slowdown >= {SLOW}) as slow_drive_count"),
            f.expr("sort_array(collect_list(slowdown), false) as tails"),
            f.count("slowdown").alias("latency_count"),
        )
        .selectExpr(
            *key, "latency_count", "slow_drive_count", "get(tails, 0) as tail_1", "get(tails, 1) as tail_2", "get(tails, 2) as tail_3"
        )
    )
    tails.write.mode("overwrite").parquet(str(out / "raid_hours.parquet"))
    slow, counts = f"slowdown >= {SLOW}", [f"count_if(slowdown >= {edge}) as hours_from_{int(edge * 10)}" for edge in EDGES]
    for side in ("rate", "size"):
        high = f"{side}_imbalance >= {SLOW}"
        counts += [
            f"count({side}_imbalance) as {side}_hours",
            f"count_if({high}) as high_{side}_hours",
            f"count_if({high} and {slow}) as high_{side}_slow_hours",
        ]
    days = drive_hours.groupBy("drive_id", "raid_group_id", f.to_date("hour_utc").alias("day_utc"))
    days.agg(f.count("slowdown").alias("drive_hours"), *map(f.expr, counts)).write.mode("overwrite").parquet(
        str(out / "drive_days.parquet")
    )
    gateway = spark.sparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.proc.stdin.close()
    gateway.proc.wait()  # else its CPU seconds would be counted nowhere


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

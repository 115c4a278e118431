"""A day by hand in Polars: python -m workbench.yardsticks.with_polars FOLDER OUT."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from workbench.yardsticks import EDGES, MIN_COVERAGE, MIN_DRIVES, SLOW


def measured(folder: Path) -> pl.LazyFrame:
    """Latency, I/O count and size of every drive-hour of a data drive; null where too little of the hour was observed."""
    others = pl.scan_parquet(folder / "drives.parquet").filter(pl.col("role") != "data").select("drive_id", "valid_from", "valid_to")
    ios = pl.col("read_ios") + pl.col("write_ios")
    moved = [
        pl.when(pl.col(f"{side}_ios") > 0).then(pl.col(f"{side}_ios") * pl.col(f"{side}_latency_us")).otherwise(0.0)
        for side in ("read", "write")
    ]
    size = (pl.col("read_blocks").fill_null(0) + pl.col("write_blocks").fill_null(0)) * pl.col("block_bytes").fill_null(4096)
    is_peer = pl.col("coverage").fill_null(1.0) >= MIN_COVERAGE
    covers = (pl.col("valid_from").dt.truncate("1h") <= pl.col("hour_utc")).fill_null(True) & (
        pl.col("valid_to").dt.truncate("1h") > pl.col("hour_utc")
    ).fill_null(True)
    is_sound = [
        (pl.col(f"{side}_ios") == 0) | (pl.col(f"{side}_latency_us").is_finite() & (pl.col(f"{side}_latency_us") >= 0))
        for side in ("read", "write")
    ]
    return (
        pl.scan_parquet(folder / "drive_hours*.parquet")
        .filter(*is_sound)
        .join(others.with_columns(is_other=True), on="drive_id", how="left", validate="m:1")
        .filter(~(pl.col("is_other").fill_null(False) & covers))
        .select(
            "drive_id",
            "raid_group_id",
            "hour_utc",
            latency_us=pl.when(is_peer & (ios > 0)).then((moved[0] + moved[1]) / ios),
            io_count=pl.when(is_peer).then(ios),
            io_size_bytes=pl.when(is_peer & (ios > 0)).then(size / ios),
        )
    )


def main(folder: Path, out: Path) -> None:
    """Write the three files of the answer."""
    out.mkdir(parents=True, exist_ok=True)
    of_peers = measured(folder).collect(engine="streaming")
    key = ["raid_group_id", "hour_utc"]
    medians = of_peers.group_by(key).agg(
        latency_count=pl.col("latency_us").count(),
        median_latency_us=pl.col("latency_us").median(),
        median_io_count=pl.col("io_count").median(),
        median_io_size_bytes=pl.col("io_size_bytes").median(),
    )
    is_valid = (pl.col("latency_count") >= MIN_DRIVES) & (pl.col("median_latency_us") > 0)
    drive_hours = (
        of_peers.lazy()
        .join(medians.lazy().with_columns(median_latency_us=pl.when(is_valid).then("median_latency_us")), on=key, how="left")
        .select(
            "drive_id",
            "raid_group_id",
            "hour_utc",
            slowdown=pl.col("latency_us") / pl.col("median_latency_us"),
            rate_imbalance=pl.when(pl.col("median_io_count") > 0).then(pl.col("io_count") / pl.col("median_io_count")),
            size_imbalance=pl.when(pl.col("median_io_size_bytes") > 0).then(pl.col("io_size_bytes") / pl.col("median_io_size_bytes")),
        )
        .collect(engine="streaming")
    )
    drive_hours.write_parquet(out / "drive_hours.parquet", compression="zstd", compression_level=1)
    tails = (
        drive_hours.lazy()
        .filter(pl.col("slowdown").is_not_null())
        .group_by(key)
        .agg(slow_drive_count=(pl.col("slowdown") >= SLOW).sum(), tails=pl.col("slowdown").top_k(3).sort(descending=True))
        .select(
            *key, "slow_drive_count", *(pl.col("tails").list.get(each, null_on_oob=True).alias(f"tail_{each + 1}") for each in range(3))
        )
    )
    medians.lazy().filter(is_valid).join(tails, on=key).collect(engine="streaming").write_parquet(out / "raid_hours.parquet")
    slow = pl.col("slowdown") >= SLOW
    counts = {f"hours_from_{int(edge * 10)}": (pl.col("slowdown") >= edge).sum() for edge in EDGES}
    for side in ("rate", "size"):
        high = pl.col(f"{side}_imbalance") >= SLOW
        counts |= {
            f"{side}_hours": pl.col(f"{side}_imbalance").count(),
            f"high_{side}_hours": high.sum(),
            f"high_{side}_slow_hours": (high & slow).sum(),
        }
    days = drive_hours.lazy().group_by("drive_id", "raid_group_id", day_utc=pl.col("hour_utc").dt.date())
    days.agg(drive_hours=pl.col("slowdown").count(), **counts).collect(engine="streaming").write_parquet(out / "drive_days.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

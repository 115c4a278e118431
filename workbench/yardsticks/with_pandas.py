"""A day by hand in pandas, keys as categories: python -m workbench.yardsticks.with_pandas FOLDER OUT."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from workbench.yardsticks import EDGES, MIN_COVERAGE, MIN_DRIVES, SLOW

COLUMNS = [
    "hour_utc", "drive_id", "raid_group_id", "read_ios", "write_ios", "read_latency_us", "write_latency_us",
    "read_blocks", "write_blocks", "block_bytes", "coverage",
]  # fmt: skip


def measured(folder: Path) -> pd.DataFrame:
    """Latency, I/O count and size of every drive-hour of a data drive; NaN where too little of the hour was observed."""
    files = sorted(folder.glob("drive_hours*.parquet"))
    # text as dictionaries: the keys are then small whole numbers
    hours = pq.ParquetDataset(files, read_dictionary=["drive_id", "raid_group_id"]).read(COLUMNS).unify_dictionaries().to_pandas()
    drives = pd.read_parquet(folder / "drives.parquet", columns=["drive_id", "role", "valid_from", "valid_to"])
    others = drives[drives["role"].notna() & (drives["role"] != "data")].set_index("drive_id")
    periods = others.reindex(hours["drive_id"].cat.categories)
    # NaT compares false: an open end excludes nothing
    starts, ends = (periods[name].dt.floor("h").to_numpy()[hours["drive_id"].cat.codes] for name in ("valid_from", "valid_to"))
    is_other = periods["role"].notna().to_numpy()[hours["drive_id"].cat.codes]
    at = hours["hour_utc"].to_numpy()
    kept = ~(is_other & ~(starts > at) & ~(ends <= at))
    for side in ("read", "write"):
        latency = hours[f"{side}_latency_us"].to_numpy()
        kept &= (hours[f"{side}_ios"] == 0).to_numpy() | (np.isfinite(latency) & (latency >= 0))
    hours = hours[kept]
    ios = (hours["read_ios"] + hours["write_ios"]).astype("float64")
    moved = [(hours[f"{side}_ios"] * hours[f"{side}_latency_us"]).where(hours[f"{side}_ios"] > 0, 0.0) for side in ("read", "write")]
    size = (hours["read_blocks"].fillna(0) + hours["write_blocks"].fillna(0)) * hours["block_bytes"].fillna(4096)
    is_peer = hours["coverage"].fillna(1.0) >= MIN_COVERAGE
    return pd.DataFrame(
        {
            "drive_id": hours["drive_id"],
            "raid_group_id": hours["raid_group_id"],
            "hour_utc": hours["hour_utc"],
            "latency_us": ((moved[0] + moved[1]) / ios).where(is_peer & (ios > 0)),
            "io_count": ios.where(is_peer),
            "io_size_bytes": (size / ios).where(is_peer & (ios > 0)),
        }
    )


def main(folder: Path, out: Path) -> None:
    """Write the three files of the answer."""
    out.mkdir(parents=True, exist_ok=True)
    frame = measured(folder)
    first = frame["hour_utc"].min()
    hour = ((frame["hour_utc"] - first) // pd.Timedelta(hours=1)).to_numpy()
    span = int(hour.max()) + 1
    frame["raid_hour"] = frame["raid_group_id"].cat.codes.astype("int64") * span + hour
    grouped = frame.groupby("raid_hour", sort=True)
    medians = grouped[["latency_us", "io_count", "io_size_bytes"]].median()
    medians["latency_count"] = grouped["latency_us"].count()
    is_valid = (medians["latency_count"] >= MIN_DRIVES) & (medians["latency_us"] > 0)
    usable = medians[["latency_us", "io_count", "io_size_bytes"]].where(lambda each: each > 0)
    usable["latency_us"] = usable["latency_us"].where(is_valid)
    place = np.searchsorted(medians.index.to_numpy(), frame["raid_hour"].to_numpy())
    drive_hours = frame[["drive_id", "raid_group_id", "hour_utc"]].assign(
        slowdown=frame["latency_us"].to_numpy() / usable["latency_us"].to_numpy()[place],
        rate_imbalance=frame["io_count"].to_numpy() / usable["io_count"].to_numpy()[place],
        size_imbalance=frame["io_size_bytes"].to_numpy() / usable["io_size_bytes"].to_numpy()[place],
    )
    drive_hours.to_parquet(out / "drive_hours.parquet", compression="zstd", index=False)

    ranked = pd.DataFrame({"raid_hour": frame["raid_hour"], "slowdown": drive_hours["slowdown"]}).dropna()
    ranked = ranked.sort_values(["raid_hour", "slowdown"], ascending=[True, False])
    raid_hours = medians[is_valid].rename(columns=lambda name: name if name == "latency_count" else f"median_{name}")
    raid_hours["slow_drive_count"] = (ranked["slowdown"] >= SLOW).groupby(ranked["raid_hour"]).sum()
    rank = ranked.groupby("raid_hour").cumcount()
    for each in range(3):
        raid_hours[f"tail_{each + 1}"] = ranked[rank == each].set_index("raid_hour")["slowdown"]
    raid_hours.insert(0, "raid_group_id", frame["raid_group_id"].cat.categories[raid_hours.index // span])
    raid_hours.insert(1, "hour_utc", first + pd.to_timedelta(raid_hours.index % span, unit="h"))
    raid_hours.to_parquet(out / "raid_hours.parquet", index=False)

    counts = {"drive_hours": drive_hours["slowdown"].notna()}
    counts |= {f"hours_from_{int(edge * 10)}": drive_hours["slowdown"] >= edge for edge in EDGES}
    for side in ("rate", "size"):
        high = drive_hours[f"{side}_imbalance"] >= SLOW
        counts |= {
            f"{side}_hours": drive_hours[f"{side}_imbalance"].notna(),
            f"high_{side}_hours": high,
            f"high_{side}_slow_hours": high & (drive_hours["slowdown"] >= SLOW),
        }
    by = ["drive_id", "raid_group_id", drive_hours["hour_utc"].dt.floor("D").rename("day_utc")]
    drive_days = drive_hours[["drive_id", "raid_group_id"]].assign(**counts).groupby(by, observed=True).sum()
    drive_days.reset_index().to_parquet(out / "drive_days.parquet", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

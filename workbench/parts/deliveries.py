"""Cost of one more small delivery, and of a landing round of thirty hosts, after few deliveries and after many."""

from __future__ import annotations

import hashlib
import json
import shutil
import statistics
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from ingest import ingest
from ingest.contract.fleet import INGESTED_FILES, RAW
from ingest.raw.packing import FOLDERS, HASHES
from ingest.raw.staging import write_parquet
from ingest.raw.store import GATES, PACKED, folder_name
from workbench.parts import Bound, Section, Setting

HOSTS, DRIVES = 30, 14
FEW, MANY = 100, 100_000
FIRST = datetime(2025, 1, 1)
HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"


def bench_deliveries(setting: Setting) -> list[Section]:
    """Stores of few and of many deliveries, written as packs at once; then ingests into each, in this process and without the gate."""
    many, year = (1_000, 2_000) if setting.small else (MANY, HOSTS * 24 * 365)
    took = {}
    for count in (FEW, many, year):
        warehouse = setting.work / f"deliveries-{count}"
        shutil.rmtree(warehouse, ignore_errors=True)
        make_store(warehouse, count)
        took[count] = [_one_more(warehouse, setting.work, count + number) for number in range(max(HOSTS, 10 * setting.repetitions))]
        shutil.rmtree(warehouse)
    middle = {count: statistics.median(seconds) for count, seconds in took.items()}
    ratio = f"one small delivery after {many:,} deliveries, over one after {FEW}, CPU"
    lines = [
        f"Deliveries of an hour of {DRIVES} drives of one of {HOSTS} hosts. Medians; a round is {HOSTS} ingests with the packs they make.",
        "",
        "| landed | one ingest, CPU (ms) | a round, CPU (s) |",
        "|--:|--:|--:|",
        *(f"| {count:,} | {1000 * middle[count]:.1f} | {sum(took[count][:HOSTS]):.2f} |" for count in took),
    ]
    round_ = f"a round of {HOSTS} hosts after a year by the hour, CPU"
    bounds = [Bound(ratio, middle[many] / middle[FEW], 1.3, "x"), Bound(round_, sum(took[year][:HOSTS]), 2)]
    return [Section("Many small deliveries", lines, bounds)]


def make_store(warehouse: Path, count: int) -> None:
    """Raw as `count` small deliveries leave it: packs of each size, the greatest first."""
    (warehouse / "raw" / "deliveries").mkdir(parents=True)
    first, level = 1, 0
    while FOLDERS ** (level + 1) <= count:
        level += 1
    while level:
        size = FOLDERS**level
        while count - first + 1 >= size:
            _write_pack(warehouse / "raw" / "deliveries", first, size, level)
            first += size
        level -= 1
    for number in range(first, count + 1):
        _one_more(warehouse, warehouse.parent, number - 1)


def _write_pack(folder: Path, first: int, size: int, level: int) -> None:
    hours = pl.DataFrame({"delivery_seq": pl.int_range(first, first + size, eager=True)}).with_columns(
        (pl.lit(FIRST) + pl.duration(hours=(pl.col("delivery_seq") - 1) // HOSTS)).alias("hour_utc")
    )
    begin, end = hours["hour_utc"][0], hours["hour_utc"][-1]
    own = folder / folder_name(first, first + size - 1, (begin, end), level)
    (own / "drive_hours").mkdir(parents=True)
    files = hours.with_columns(
        source=pl.lit("bundle"), file=pl.format("drive_hours-{}.csv", "delivery_seq"),
        sha256=pl.Series(hashlib.sha256(str(number).encode()).hexdigest() for number in range(first, first + size)),
        ingested_at="hour_utc", status=pl.lit("landed"), rows_delivered=DRIVES, rows_accepted=DRIVES, rows_rejected=0,
        rows_duplicate=0, rows_superseded=0, record_kind=pl.lit("drive_hours"), note=None, min_coverage=0.5, declared_kind=None, file_no=1,
    )  # fmt: skip
    columns = (pl.col(name).cast(kind) for name, kind in INGESTED_FILES.items())
    write_parquet(files.select(columns), own / "ingested_files.parquet")
    hashes = [int(text[:16], 16) for text in files["sha256"]]
    np.sort(np.array(hashes, dtype=np.uint64)).tofile(own / HASHES)
    record = json.dumps(
        {"source": "bundle", "paths": ["drive_hours.csv"], "kind": None, "min_coverage": 0.5, "rows": {"drive_hours": DRIVES}}
    )
    said = hours.select(
        "delivery_seq", first_hour="hour_utc", last_hour="hour_utc", digest=pl.col("delivery_seq").hash().cast(pl.String),
        source=pl.lit("bundle"), committed_at=pl.col("hour_utc").dt.to_string("iso:strict"),
        files=pl.concat_list(pl.format("drive_hours/{}.parquet", pl.col("hour_utc").dt.date())), record=pl.lit(record),
    )  # fmt: skip
    write_parquet(said, own / PACKED)
    write_parquet(hours.select("delivery_seq", gate=pl.lit("{}"), record=pl.lit(record)), own / GATES, 64)
    drives = pl.DataFrame({"drive": range(DRIVES)})
    for (day,), of_day in hours.group_by(pl.col("hour_utc").dt.date(), maintain_order=True):
        rows = of_day.join(drives, how="cross").with_columns(
            host=(pl.col("delivery_seq") - 1) % HOSTS, read_ios=100.0, read_latency_us=100.0, min_coverage=0.5, file_no=1,
            row_no=pl.col("drive") + 1,
        )  # fmt: skip
        rows = rows.with_columns(drive_id=pl.format("h{}d{}", "host", "drive"), raid_group_id=pl.format("h{}", "host"))
        rows = rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in RAW["drive_hours"].items() if name not in rows.columns)
        write_parquet(rows.select(pl.col(n).cast(k) for n, k in RAW["drive_hours"].items()), own / "drive_hours" / f"{day}.parquet")


def _one_more(warehouse: Path, work: Path, number: int) -> float:
    """Land the next delivery. Returns: its CPU seconds."""
    at = (FIRST + timedelta(hours=number // HOSTS)).isoformat()
    host = number % HOSTS
    file = work / f"drive_hours-{number}.csv"
    rows = [f"{at},h{host}d{drive},h{host},100,0,{100 + drive},\n" for drive in range(DRIVES)]
    file.write_text(f"{HEADER}\n{''.join(rows)}", encoding="utf-8")
    began = time.process_time()
    ingest("bundle", [file], warehouse)
    took = time.process_time() - began
    file.unlink()
    return took

"""No room on the disk, and damaged files of raw: nothing lands, the message says what to do, and doing it leaves what there was."""

from __future__ import annotations

import errno
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pytest
from polars.exceptions import ComputeError

from ingest import StoreError, ingest, list_deliveries
from ingest.raw.errors import explained
from tests.ingest.conftest import Warehouse, csv_text


def rows(hours: range, latency: float = 100.0, drives: int = 3) -> str:
    return csv_text(*(f"2026-01-05T{hour:02d}:00:00Z,d{drive},g1,10,5,{latency + drive},50.0" for hour in hours for drive in range(drives)))


@contextmanager
def room_for(file_bytes: int) -> Iterator[None]:
    """No file can grow beyond: what is written fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# within the drive-hours, and after them: within the delivery's own record
@pytest.mark.parametrize("file_bytes", [1, 2000, 4500])
def test_a_full_disk_lands_nothing_and_with_room_it_lands(file_bytes: int, warehouse: Warehouse) -> None:
    warehouse.land("bundle", {"drive_hours.csv": rows(range(2))})
    before = list_deliveries(warehouse.path)
    delivery = warehouse.put({"drive_hours.csv": rows(range(1, 9), latency=200.0)})
    with room_for(file_bytes), pytest.raises(StoreError, match=r"no room on the disk .*too large.*make room, then run it again"):
        warehouse.land("bundle", delivery)
    assert list_deliveries(warehouse.path) == before
    assert list((warehouse.path / "raw/.staging").iterdir()) == []
    assert warehouse.land("bundle", delivery).rows_accepted == 24


def test_a_disk_that_ends_with_the_drive_hours_makes_no_file_unreadable(warehouse: Warehouse, tmp_path: Path) -> None:
    """Within the last bytes polars speaks of the file's format, as of one that it cannot read."""
    # enough rows that no other file of the delivery is as large
    delivery = warehouse.put({"drive_hours.csv": rows(range(9), drives=500)})
    ingest("bundle", [delivery], tmp_path / "with room")
    (stored,) = (tmp_path / "with room").rglob("drive_hours/*.parquet")
    with room_for(stored.stat().st_size - 40), pytest.raises(StoreError, match="no room on the disk"):
        warehouse.land("bundle", delivery)
    assert warehouse.land("bundle", delivery).rows_accepted == 4500


def test_a_disk_that_ends_within_a_files_footer_is_full(tmp_path: Path) -> None:
    """The same words mean a damaged file of raw where they name one, so that is read first."""
    error = ComputeError("parquet: File out of specification: Invalid thrift: transport error")
    assert "no room on the disk" in (explained(error, tmp_path, []) or "")
    (tmp_path / "raw.parquet").write_bytes(b"PAR1")
    assert "raw.parquet: cannot be read" in (explained(error, tmp_path, [tmp_path / "raw.parquet"]) or "")


def test_a_full_disk_makes_no_file_of_samples_unreadable(warehouse: Warehouse) -> None:
    """Rows read from them stay on the disk until all are read."""
    scrapes = [f'node_disk_{{}}_total{{device="sda"}} {100 * n} {1_767_607_200 + 1800 * n}\n' for n in range(3)]
    counters = ("reads_completed", "writes_completed", "read_time_seconds", "write_time_seconds")
    delivery = warehouse.put({"web1.prom": "".join(scrape.replace("{}", name) for scrape in scrapes for name in counters)})
    with room_for(100), pytest.raises(StoreError, match="no room on the disk"):
        warehouse.land("prometheus", delivery)
    assert list_deliveries(warehouse.path) == []
    assert warehouse.land("prometheus", delivery).rows_accepted == 3


def test_lack_of_memory_makes_no_file_unreadable(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = warehouse.put({"drive_hours.csv": rows(range(2))})
    with monkeypatch.context() as starved:
        starved.setattr("ingest.reading.parse.convert", Mock(side_effect=pa.lib.ArrowMemoryError("malloc of size 64 failed")))
        with pytest.raises(StoreError, match="not enough memory"):
            warehouse.land("bundle", delivery)
    assert warehouse.land("bundle", delivery).rows_accepted == 6


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "overwritten": lambda good: good[:50] + b"x" * 40 + good[90:],
    "cut off": lambda good: good[: len(good) // 2],
    "empty": lambda good: b"",
}


# of ingested_files some columns are read: what is broken elsewhere is not met
@pytest.mark.parametrize(
    ("damage", "table"),
    [*((damage, "drive_hours/2026-01-05.parquet") for damage in DAMAGES), ("cut off", "ingested_files.parquet")],
)
def test_a_damaged_file_of_raw_is_named(damage: str, table: str, warehouse: Warehouse) -> None:
    warehouse.land("bundle", {"drive_hours.csv": rows(range(6))})
    before = list_deliveries(warehouse.path)
    file = before[0].path / table
    good = file.read_bytes()
    file.write_bytes(DAMAGES[damage](good))
    late = warehouse.put({"drive_hours.csv": rows(range(3, 9), latency=200.0)})
    with pytest.raises(StoreError) as told:
        warehouse.land("bundle", late)
    assert str(told.value).startswith(f"{file}: cannot be read (") and "put it back from a copy" in str(told.value)
    assert list_deliveries(warehouse.path) == before
    file.write_bytes(good)
    assert warehouse.land("bundle", late).rows_delivered == 18


def test_a_file_of_raw_is_made_again_from_what_was_delivered(warehouse: Warehouse, tmp_path: Path) -> None:
    """docs/runbooks/damaged-raw.md, without a copy. The second of three deliveries repeats some rows, beats some and loses to others."""
    spans = ((range(6), 100.0), (range(3, 9), 200.0), (range(8), 150.0))
    texts = [rows(hours, latency) for hours, latency in spans]
    texts[1] += rows(range(2)).split("\n", 1)[1]
    deliveries = [warehouse.put({"drive_hours.csv": text}) for text in texts]
    for delivery in deliveries:
        warehouse.land("bundle", delivery)
    undisturbed = warehouse.stored()
    first, damaged, _ = list_deliveries(warehouse.path)
    file = next(damaged.path.glob("drive_hours/*"))
    file.write_bytes(b"")
    scratch = tmp_path / "scratch"
    (scratch / "raw/deliveries").mkdir(parents=True)
    (scratch / "raw/deliveries" / first.path.name).symlink_to(first.path)
    ingest("bundle", [deliveries[1]], scratch)
    shutil.copy(scratch / "raw/deliveries" / damaged.path.name / "drive_hours" / file.name, file)
    assert warehouse.stored().equals(undisturbed)


@pytest.mark.parametrize("cause", [OSError(errno.ENOSPC, "No space left on device", "/w/a.parquet"), duckdb.IOException("No space left")])
def test_a_sentence_about_room_gives_no_other_advice(cause: Exception, tmp_path: Path) -> None:
    error = RuntimeError(f"store: cannot be read ({cause}); `drivetail build --full-refresh` computes it again from raw")
    error.__cause__ = cause
    told = explained(error, tmp_path, [])
    assert told is not None and "make room" in told and "full-refresh" not in told

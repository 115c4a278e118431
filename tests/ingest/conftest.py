"""Small deliveries for the tests of `ingest`: written by hand, so that every expected number can be read off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from ingest import FileResult, IngestSummary, list_deliveries, table_files
from ingest.contract.fleet import RAW
from ingest.contract.values import TIMED

HOURS_HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"
GOOD_ROW = "2026-01-05T10:00:00Z,d1,g1,10,5,100.0,50.0"


SHARED = Path(__file__).parents[3] / "shared"
SAMPLES = SHARED / "samples"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason=f"the files are not at {SHARED}; they are not ours to distribute")


def counts(summary: IngestSummary | FileResult) -> tuple[int, int, int, int, int]:
    """Rows delivered, accepted, rejected, duplicate and superseded."""
    return (summary.rows_delivered, summary.rows_accepted, summary.rows_rejected, summary.rows_duplicate, summary.rows_superseded)


class Warehouse:
    """A warehouse in a temporary folder, with what the tests ask of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def table(self, table: str) -> pl.DataFrame:
        """All rows of a small raw table."""
        files = table_files(list_deliveries(self.path), table)
        return pl.concat([pl.read_parquet(file, glob=False) for file in files]) if files else pl.DataFrame()

    def stored(self, record_kind: str = "drive_hours") -> pl.DataFrame:
        """Every stored record of a kind, live or retired."""
        if record_kind in TIMED:
            files = sorted(self.path.glob(f"raw/deliveries/*/{record_kind}/*.parquet"))
            return pl.concat([pl.read_parquet(file, glob=False) for file in files]) if files else pl.DataFrame(schema=RAW[record_kind])
        rows = self.table(record_kind)
        return rows if rows.width else pl.DataFrame(schema=RAW[record_kind])

    def live(self, record_kind: str = "drive_hours") -> pl.DataFrame:
        """The live records: stored minus retired."""
        rows, retired = self.stored(record_kind), self.table(f"retired_{record_kind}")
        if retired.height:
            rows = rows.join(retired, on=["delivery_seq", "file_no", "row_no"], how="anti")
        return rows


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")


@pytest.fixture
def bundle(tmp_path: Path) -> Callable[..., Path]:
    """Write files of a bundle, each in a new folder: bundle({"drive_hours.csv": text_or_bytes_or_frame})."""
    made = []

    def write(files: dict[str, str | bytes | pl.DataFrame]) -> Path:
        folder = tmp_path / f"bundle_{len(made)}"
        made.append(folder)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, pl.DataFrame):
                content.write_parquet(path)
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return write

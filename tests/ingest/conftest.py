"""Small deliveries for the tests of `ingest`: written by hand, so that every expected number can be read off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from engine.build import build
from engine.warehouse import Warehouse as Built
from ingest import FileResult, IngestSummary, ingest, list_deliveries, table_files
from ingest.contract.fleet import RAW
from ingest.contract.values import TIMED

HOURS_HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"
GOOD_ROW = "2026-01-05T10:00:00Z,d1,g1,10,5,100.0,50.0"

SHARED = Path(__file__).parents[3] / "shared"
SAMPLES = SHARED / "samples"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason=f"the files are not at {SHARED}; they are not ours to distribute")


def csv_text(*rows: str, header: str = HOURS_HEADER) -> str:
    """Text of a CSV file, of drive-hours unless a header is given."""
    return "\n".join([header, *rows]) + "\n"


def counts(summary: IngestSummary | FileResult) -> tuple[int, int, int, int, int]:
    """Rows delivered, accepted, rejected, duplicate and superseded."""
    return (summary.rows_delivered, summary.rows_accepted, summary.rows_rejected, summary.rows_duplicate, summary.rows_superseded)


class Warehouse:
    """A warehouse in a temporary folder, with what the tests ask of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, files: dict[str, Any]) -> Path:
        """Write a delivery (name -> text, bytes, frame, or document for JSON) into a new folder beside the warehouse."""
        folder = self.path.parent / f"in{len(list(self.path.parent.glob('in*')))}"
        folder.mkdir(parents=True)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, pl.DataFrame):
                content.write_parquet(path)
            else:
                text = content if isinstance(content, str | bytes) else json.dumps(content)
                path.write_bytes(text.encode() if isinstance(text, str) else text)
        return folder

    def land(self, source: str, given: Path | dict[str, Any], **options: Any) -> IngestSummary:
        """Ingest what is there, or a new folder of files; `options` of ingest() or the source. Every row that came is counted once."""
        delivered = self.put(given) if isinstance(given, dict) else given
        general = {name: options.pop(name) for name in ("kind", "min_coverage", "gate") if name in options}
        summary = ingest(source, delivered, self.path, **general, source_options=options)
        for file in summary.files:
            rows_delivered, *rest = counts(file)
            assert rows_delivered == sum(rest), file
        return summary

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

    def rows(self, record_kind: str, columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Live records by some columns (names with spaces between), in order of these; `where`: of those that have these values."""
        return self.live(record_kind).filter(**where).select(columns.split()).sort(*columns.split()).rows()

    def rejected(self, columns: str) -> list[tuple[Any, ...]]:
        """The rejected records by some columns, as `rows`."""
        rows = self.table("rejected_records")
        return rows.select(columns.split()).sort(*columns.split()).rows() if rows.width else []

    def built(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query of the published warehouse, which is built first where it has not been."""
        warehouse = Built(self.path)
        if not warehouse.published.exists():
            build(warehouse)
        with duckdb.connect(str(warehouse.published), read_only=True) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")

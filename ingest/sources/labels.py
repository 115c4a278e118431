"""Source `labels`: what a person found of a drive, slow or healthy; detectors are scored against it (report.detector_scores).

CSV (also .gz, .zst), NDJSON or Parquet, a row per drive. Of two labels of a drive the later `labelled_on` counts, of one day `slow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from ingest.contract.fleet import CONTRACT, Layout
from ingest.contract.values import VERDICTS
from ingest.reading.batches import Batch, read_table
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.parse import Check, convert, split, type_checks
from ingest.reading.readers import TABLE_NAME, RawChunk

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "a CSV, NDJSON or Parquet file with drive_id and verdict (slow or healthy)"
recognise = named("labels", TABLE_NAME)
_LAYOUT = Layout(tuple(name for name in CONTRACT["labels"] if name != "collected_at"), (("drive_id", "verdict"),))


def land(files: list[SourceFile], landing: Landing) -> None:
    """The labels of a file."""
    landing.read(files, _batches)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    return read_table(file.path, _LAYOUT, result.notes, _labels, is_by_hand=True)


def _labels(chunk: RawChunk) -> Batch:
    labels, unreadable = convert(chunk.frame, CONTRACT["labels"])
    return Batch("labels", *split(chunk, labels, _checks(unreadable)))


def _checks(unreadable: dict[str, str]) -> list[Check]:
    return [
        *type_checks(unreadable),
        Check("drive_id", "null", pl.col("drive_id").is_null()),
        Check("verdict", f"not one of {', '.join(VERDICTS)}", ~pl.col("verdict").is_in(VERDICTS).fill_null(False)),
    ]

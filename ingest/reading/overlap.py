"""Files of one host that overlap: what was measured once counts once, in the file that it came in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from ingest.reading.files import FileResult


def each_once(rows: pl.DataFrame, key: list[str], compared: list[str], results: dict[int, FileResult]) -> pl.DataFrame:
    """One row per key, the greatest in `compared`; the others count in their files as duplicate where they are equal, else superseded.

    rows: with `file_no` and `row_no`. results: by file number; their rows were counted as accepted.
    """
    ordered = rows.sort(*key, *compared, "file_no", "row_no", nulls_last=False, maintain_order=True)
    best = ordered.unique(key, keep="last", maintain_order=True)
    lost = ordered.join(best, on=["file_no", "row_no"], how="anti")
    again = lost.join(best, on=[*key, *compared], how="semi", nulls_equal=True)
    take_back(again, results, "rows_duplicate")
    take_back(lost.join(again, on=["file_no", "row_no"], how="anti"), results, "rows_superseded")
    return best


def take_back(lost: pl.DataFrame, results: dict[int, FileResult], count: str) -> None:
    """Count rows (`file_no`) that were accepted as `rows_duplicate` or `rows_superseded` instead."""
    for file_no, number in lost.group_by("file_no").len().iter_rows():
        results[file_no].rows_accepted -= number
        setattr(results[file_no], count, getattr(results[file_no], count) + number)


def behind(samples: pl.DataFrame, records: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """How many delivered rows (`file_no`) stand behind each rolled-up record, as `Landing.count_samples` takes it; `key`: of the record."""
    counts = samples.group_by(*key, pl.col("file_no").alias("of_file_no")).agg(pl.len().cast(pl.Int64).alias("samples"))
    return counts.join(records.select(*key, "file_no", "row_no"), on=key).select("file_no", "row_no", "of_file_no", "samples")

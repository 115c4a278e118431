"""Files of one host that overlap: what was measured once counts once."""

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

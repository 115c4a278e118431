"""Samples within an hour, kept with `--resolution 5m` (docs/decisions/0010-finer-samples.md).

A source totals the same increments twice, by the hour and by a part of it, so that the hour is the same whether its parts are kept or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ingest.contract.errors import IngestError
from ingest.contract.values import RESOLUTIONS
from ingest.reading.parse import completed

HOUR_SECONDS = 3600


def seconds_of(options: Mapping[str, Any]) -> int | None:
    """Seconds of a sample, by the options of a call; null where only hours are kept. Raises: IngestError."""
    given = options.get("resolution")
    if given is None:
        return None
    if given not in RESOLUTIONS:
        raise IngestError(f"--resolution {given}: give one of {', '.join(RESOLUTIONS)}")
    return RESOLUTIONS[given]


def as_samples(totals: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Records of drive-hours' columns, `hour_utc` being where their sample begins -> drive_samples. Of a span within a sample (`from_utc`,
    `to_utc`) where they are not null.
    """
    given = [pl.col(name) if name in totals.columns else pl.lit(None, pl.Datetime("us")).alias(name) for name in ("from_utc", "to_utc")]
    begin, end = pl.col("hour_utc"), pl.col("hour_utc") + pl.duration(seconds=seconds)
    return completed(totals.with_columns(pl.coalesce(given[0], begin), pl.coalesce(given[1], end)), "drive_samples")

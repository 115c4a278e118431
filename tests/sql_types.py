"""The types of columns that ingest writes, as sources declare them."""

from __future__ import annotations

import polars as pl

SQL_TYPES: dict[pl.DataType, str] = {
    pl.String(): "string",
    pl.Int64(): "bigint",
    pl.Float64(): "double",
    pl.Date(): "date",
    pl.Datetime("us"): "timestamp",
    pl.Boolean(): "boolean",
}

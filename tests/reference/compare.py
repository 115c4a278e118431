"""Compare a published warehouse with the reference, value by value."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from engine.projects import published_schemas

from .reference import KEYS, RELATIONS

Record = dict[str, Any]
Compared = Callable[[list[Record]], list[str]]
"""Differences of a relation, given the file's rows in any order."""
MOST = 10  # differences shown per relation

RELATIVE = 1e-9
# In the unit of the reference. A bound that is 0 (of a share of 0, say) is off by the last bit of the terms that cancel in it.
NEAR_ZERO = 1e-12


def compare(expected: dict[str, list[Record]], published: Path) -> list[str]:
    """Every relation of `expected` against that of the file (opened read-only); -> human-readable differences.

    Equality is exact (NaN equals NaN). Column types are those of the contract; more columns are fine. Of the two relations
    of accounts what the contract fixes is compared: names of files without their folders, rows delivered and rejected, and that
    their counts add up. At most 10 differences per relation, then their number.
    """

    def compared(name: str, got: list[Record]) -> list[str]:
        found = []
        if name in ("rejected_records", "ingested_files"):
            found = [difference for row in got if (difference := _sum_difference(row))]
            got = [{**row, "file": Path(row["file"]).name} for row in got]
        names = RELATIONS[name] if name != "ingested_files" else expected[name][0] if expected[name] else ()
        rows = [{column: row[column] for column in names} for row in expected[name]]
        return found + row_differences(name, KEYS[name], rows, got, _is_same)

    return differences_of({name: (RELATIONS[name], partial(compared, name)) for name in expected}, published)


def differences_of(relations: dict[str, tuple[dict[str, str], Compared]], published: Path) -> list[str]:
    differences = []
    with duckdb.connect(str(published), read_only=True) as connection:
        connection.execute("set search_path = '" + ",".join(published_schemas()) + "'")
        for relation, (types, compared) in relations.items():
            got, found = _read(connection, relation, types)
            if got is not None:
                found += compared(got)
            differences += found[:MOST]
            if len(found) > MOST:
                differences.append(f"{relation}: ... and {len(found) - MOST} more")
    return differences


def _read(connection: duckdb.DuckDBPyConnection, relation: str, types: dict[str, str]) -> tuple[list[Record] | None, list[str]]:
    """Rows of the relation, None where they cannot be had, and what is wrong with its columns."""
    try:
        described = connection.execute(f'describe "{relation}"').fetchall()
    except duckdb.Error as error:
        return None, [f"{relation}: cannot be read: {str(error).splitlines()[0]}"]
    # a timestamp of any precision, without zone
    declared = {name: "TIMESTAMP" if of.startswith("TIMESTAMP_") else of for name, of, *_ in described}
    missing = [column for column in types if column not in declared]
    if missing:
        return None, [f"{relation}: columns missing: {', '.join(missing)}"]
    wrong = [
        f"{relation}.{column}: declared {declared[column]}, the contract says {of}"
        for column, of in types.items()
        if declared[column] != of.upper()
    ]
    listed = ", ".join(f'"{column}"' for column in types)
    values = connection.execute(f'select {listed} from "{relation}"').fetchall()
    return [dict(zip(types, row, strict=True)) for row in values], wrong


def row_differences(
    relation: str, key: tuple[str, ...], expected: list[Record], got: list[Record], is_same: Callable[[str, Any, Any], bool]
) -> list[str]:
    """Rows that are missing or too many by their key, and values that differ in the columns that an expected row has."""

    def by_key(rows: list[Record]) -> dict[tuple, list[Record]]:
        found = defaultdict(list)
        for row in rows:
            found[tuple(row[column] for column in key)].append(row)
        return found

    wanted, present = by_key(expected), by_key(got)
    found = []
    for values in sorted({*wanted, *present}, key=str):
        mine, theirs = wanted.get(values, []), present.get(values, [])
        label = f"{relation} [{', '.join(map(str, values))}]"
        if len(mine) != len(theirs):
            found.append(f"{label}: {len(mine)} row(s) expected, got {len(theirs)}")
        for left, right in zip(mine, theirs, strict=False):
            found += [
                f"{label} {column}: expected {value!r}, got {right[column]!r}"
                for column, value in left.items()
                if not is_same(column, value, right[column])
            ]
    return found


def _is_same(column: str, mine: Any, theirs: Any) -> bool:
    return bool(mine == theirs) or (isinstance(mine, float) and isinstance(theirs, float) and math.isnan(mine) and math.isnan(theirs))


def is_near(column: str, mine: Any, theirs: Any) -> bool:
    """Doubles to 1e-9 relative (or both within 1e-12 of 0), all else exactly."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=RELATIVE) or max(abs(mine), abs(theirs)) <= NEAR_ZERO
    return bool(mine == theirs)


def _sum_difference(row: Record) -> str | None:
    """> delivered = accepted + rejected + exact duplicates + superseded"""
    parts = [row.get(column) or 0 for column in ("rows_accepted", "rows_rejected", "rows_duplicate", "rows_superseded")]
    if (row.get("rows_delivered") or 0) == sum(parts):
        return None
    return f"ingested_files {row['file']}: {row['rows_delivered']} delivered, but accepted, rejected, duplicate, superseded are {parts}"

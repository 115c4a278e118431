"""Compare a published warehouse with the reference, value by value."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from engine.publish import PUBLISHED

from .reference import KEYS, RELATIONS, columns
from .study import Study, is_in_scope

Record = dict[str, Any]
Compared = Callable[[list[Record]], list[str]]
"""Differences of a relation, given the file's rows in any order."""
MOST = 10  # differences shown per relation

STUDY_RELATIONS: dict[str, dict[str, str]] = {
    "study_results": columns("varchar id kind verdict", "bigint numerator denominator", "double value ci_low ci_high"),
    "study_curves": columns("varchar figure curve kind", "double x y y_left", "bigint population"),
}
STUDY_KEYS = {"study_results": ("id", "kind"), "study_curves": ("figure", "curve", "x")}
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

    return _differences({name: (RELATIONS[name], partial(compared, name)) for name in expected}, published)


def compare_study(rows: Study, published: Path) -> list[str]:
    """The reference's study against a published file; -> human-readable differences, as of compare().

    Integers and verdicts exactly, doubles to 1e-9 relative; study_curves at every x the file has. Figure 12 and ToleRAID are left out.
    """

    def compared(name: str, got: list[Record]) -> list[str]:
        if name == "study_curves":
            return _curve_differences(rows, [row for row in got if not row["figure"].startswith("12")])
        scope = [row for row in got if is_in_scope(row["id"])]
        return row_differences(name, STUDY_KEYS[name], [_defined(row) for row in rows.results], scope, is_near)

    return _differences({name: (STUDY_RELATIONS[name], partial(compared, name)) for name in STUDY_RELATIONS}, published)


def _differences(relations: dict[str, tuple[dict[str, str], Compared]], published: Path) -> list[str]:
    differences = []
    with duckdb.connect(str(published), read_only=True) as connection:
        connection.execute("set search_path = '" + ",".join(PUBLISHED) + "'")
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


def _defined(row: Record) -> Record:
    """The columns of a row that the contract defines: of what is not comparable the value and the verdict; of no data no counts."""
    if row.get("verdict") == "not comparable":
        return {column: row[column] for column in ("id", "kind", "value", "verdict")}
    if row["value"] is None or row.get("id") == "MOD-01":
        return {column: value for column, value in row.items() if column not in ("numerator", "denominator")}
    return row


def _curve_differences(rows: Study, got: list[Record]) -> list[str]:
    """Every x of the file against the reference's CDF there; every curve on which something happened has to be in the file."""
    present = {(row["figure"], row["curve"]) for row in got}
    # figure 6a starts at a slowdown of 2: drives that were never slow are in its population and have no place on its axis
    found = [
        f"study_curves [{', '.join(name)}]: not in the file, though its population is {mine.population}"
        for name, mine in rows.curves.items()
        if name not in present and any(value >= (2.0 if name[0] == "6a" else -math.inf) for value in mine.values)
    ]
    asked = {tuple(row[column] for column in STUDY_KEYS["study_curves"]) for row in got if row["x"] is not None}
    expected = [mine.row(*name, x) for *name, x in asked if (mine := rows.curves.get(tuple(name)))]
    return found + row_differences("study_curves", STUDY_KEYS["study_curves"], expected, got, is_near)

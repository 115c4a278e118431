"""Compare the study of a published warehouse with the reference's, id by id."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from engine.publish import PUBLISHED

from .compare import MOST, has_type
from .reference import columns_of_types
from .study import Study, is_in_scope

Record = dict[str, Any]

_NUMBERS = {"bigint": "numerator denominator", "double": "value ci_low ci_high"}
STUDY_RELATIONS: dict[str, dict[str, str]] = {
    "study_results": columns_of_types(varchar="id kind verdict", **_NUMBERS),
    "study_variants": columns_of_types(varchar="variant id kind", **_NUMBERS),
    "study_curves": columns_of_types(varchar="figure curve kind", double="x y y_left", bigint="population"),
}
RESULT_KEY = ("id", "kind")
VARIANT_KEY = ("variant", "id", "kind")
RELATIVE = 1e-9
# In the unit of the reference. A bound that is 0 (of a share of 0, say) is off by the last bit of the terms that cancel in it.
NEAR_ZERO = 1e-12


def compare_study(rows: Study, published: Path) -> list[str]:
    """The reference's study against a published DuckDB file (opened read-only); -> human-readable differences.

    Integers and verdicts exactly, doubles to 1e-9 relative; study_curves at every x the file has. Figure 12 and ToleRAID are left
    out, more columns are fine. At most 10 differences per relation, then their number.
    """
    differences = []
    with duckdb.connect(str(published), read_only=True) as connection:
        connection.execute("set search_path = '" + ",".join(PUBLISHED) + "'")
        for relation, of in STUDY_RELATIONS.items():
            got, found = _read(connection, relation, of)
            if got is not None:
                found += compare_rows(rows, relation, got)
            differences.extend(found[:MOST])
            if len(found) > MOST:
                differences.append(f"{relation}: ... and {len(found) - MOST} more")
    return differences


def _read(connection: duckdb.DuckDBPyConnection, relation: str, of: dict[str, str]) -> tuple[list[Record] | None, list[str]]:
    """Rows of the relation, None where they cannot be had, and what is wrong with its columns."""
    try:
        described = connection.execute(f'describe "{relation}"').fetchall()
    except duckdb.Error as error:
        return None, [f"{relation}: cannot be read: {str(error).splitlines()[0]}"]
    declared = {name: declared_type for name, declared_type, *_ in described}
    missing = [column for column in of if column not in declared]
    if missing:
        return None, [f"{relation}: columns missing: {', '.join(missing)}"]
    wrong = [
        f"{relation}.{column}: declared {declared[column]}, the contract says {wanted}"
        for column, wanted in of.items()
        if not has_type(declared[column], wanted)
    ]
    listed = ", ".join(f'"{column}"' for column in of)
    values = connection.execute(f'select {listed} from "{relation}"').fetchall()
    return [dict(zip(of, row, strict=True)) for row in values], wrong


def compare_rows(rows: Study, relation: str, got: list[Record]) -> list[str]:
    """Differences of one relation's rows, the file's in any order."""
    if relation == "study_curves":
        return compare_curves(rows, got)
    if relation == "study_variants":
        return _compare_numbers(relation, VARIANT_KEY, rows.variants, got)
    return _compare_numbers(relation, RESULT_KEY, rows.results, [row for row in got if is_in_scope(row["id"])])


def _compare_numbers(relation: str, key: tuple[str, ...], expected: list[Record], got: list[Record]) -> list[str]:
    def key_of(row: Record) -> tuple:
        return tuple(row[column] for column in key)

    wanted, present = {key_of(row): row for row in expected}, {key_of(row): row for row in got}
    differences = _repeated(relation, map(key_of, got))
    for values in sorted({*wanted, *present}, key=str):
        label = f"{relation} [{', '.join(map(str, values))}]"
        if values not in present and wanted[values]["value"] is None:
            continue
        if values not in present:
            differences.append(f"{label}: not in the file")
        elif values not in wanted:
            differences.append(f"{label}: not in the reference")
        else:
            differences.extend(_cell_differences(label, _defined(wanted[values]), present[values]))
    return differences


def _defined(row: Record) -> Record:
    """The columns of a row that the contract defines: of what is not comparable the value and the verdict; of no data no counts."""
    if row.get("verdict") == "not comparable":
        return {column: row[column] for column in ("value", "verdict")}
    if row["value"] is None or row.get("id") == "MOD-01":
        return {column: value for column, value in row.items() if column not in ("numerator", "denominator")}
    return row


def _cell_differences(label: str, mine: Record, theirs: Record) -> list[str]:
    return [
        f"{label} {column}: expected {value!r}, got {theirs[column]!r}" for column, value in mine.items() if not same(value, theirs[column])
    ]


def same(mine: Any, theirs: Any) -> bool:
    """Doubles to 1e-9 relative (or both within 1e-12 of 0), all else exactly."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=RELATIVE) or max(abs(mine), abs(theirs)) <= NEAR_ZERO
    return bool(mine == theirs)


def compare_curves(rows: Study, got: list[Record]) -> list[str]:
    """Every x of the file against the reference's CDF there; every curve on which something happened has to be in the file."""
    got = [row for row in got if not row["figure"].startswith("12")]
    without = sum(1 for row in got if row["x"] is None)
    if without:
        return [f"study_curves: x is null in {without} rows"]
    differences = _repeated("study_curves", ((row["figure"], row["curve"], row["x"]) for row in got))
    present = {(row["figure"], row["curve"]) for row in got}
    for name, mine in rows.curves.items():
        # figure 6a starts at a slowdown of 2: drives that were never slow are in its population and have no place on its axis
        least = 2.0 if name[0] == "6a" else -math.inf
        if any(value >= least for value in mine.values) and name not in present:
            differences.append(f"study_curves [{', '.join(name)}]: not in the file, though its population is {mine.population}")
    for row in sorted(got, key=lambda row: (row["figure"], row["curve"], row["x"])):
        label = f"study_curves [{row['figure']}, {row['curve']}, x={row['x']!r}]"
        mine = rows.curves.get((row["figure"], row["curve"]))
        if mine is None:
            differences.append(f"{label}: no such curve in the reference")
            continue
        expected = {"kind": mine.kind, "population": mine.population, "y": mine.y(row["x"]), "y_left": mine.y_left(row["x"])}
        differences.extend(_cell_differences(label, expected, row))
    return differences


def _repeated(relation: str, keys: Iterable[tuple]) -> list[str]:
    return [f"{relation} [{', '.join(map(str, key))}]: {times} rows" for key, times in Counter(keys).items() if times > 1]

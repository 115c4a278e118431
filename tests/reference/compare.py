"""Compare a published warehouse with the reference, value by value."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.publish import PUBLISHED

from .reference import KEYS, RELATIONS

Record = dict[str, Any]
MOST = 10  # differences shown per relation
PYTHON_TYPES = {"varchar": str, "bigint": int, "double": float, "boolean": bool, "timestamp": datetime, "date": date}
# The seed has ten digits.
RELATIVE = {("replacement_rates", f"annual_rate_{end}"): 1e-8 for end in ("low", "high")}
# What the contract lets vary with the order of delivery, or does not define: how a row was judged "when it came", and instants.
ACCOUNTS = ("rows_delivered", "rows_rejected")
UNREADABLE = "unreadable"


def compare(expected: dict[str, list[Record]], warehouse_duckdb: Path) -> list[str]:
    """Every relation of `expected` against that of the file (opened read-only); -> human-readable differences.

    Equality is exact (NaN equals NaN) but for the few columns of RELATIVE. Column types are those of the contract. More columns
    than the contract's are fine. Rejected records compare by (file name, row, column), ingested files by name, rows delivered and
    rejected, whether unreadable, and that a file's counts add up. At most 10 differences per relation, then their number.
    """
    differences = []
    with duckdb.connect(str(warehouse_duckdb), read_only=True) as connection:
        connection.execute("set search_path = '" + ",".join(PUBLISHED) + "'")
        for relation, rows in expected.items():
            found = _relation_differences(connection, relation, rows)
            differences.extend(found[:MOST])
            if len(found) > MOST:
                differences.append(f"{relation}: ... and {len(found) - MOST} more")
    return differences


def _relation_differences(connection: duckdb.DuckDBPyConnection, relation: str, rows: list[Record]) -> list[str]:
    types = RELATIONS[relation]
    try:
        described = connection.execute(f'describe "{relation}"').fetchall()
    except duckdb.Error as error:
        return [f"{relation}: cannot be read: {str(error).splitlines()[0]}"]
    declared = {name: declared_type for name, declared_type, *_ in described}
    missing = [column for column in types if column not in declared]
    if missing:
        return [f"{relation}: columns missing: {', '.join(missing)}"]
    differences = [
        f"{relation}.{column}: declared {declared[column]}, the contract says {of}"
        for column, of in types.items()
        if not has_type(declared[column], of)
    ]
    columns = list(types)
    listed = ", ".join(f'"{column}"' for column in columns)
    fetched = connection.execute(f'select {listed} from "{relation}"').fetchall()
    got = [dict(zip(columns, values, strict=True)) for values in fetched]
    return differences + compare_rows(relation, rows, got)


def has_type(declared: str, of: str) -> bool:
    if of == "timestamp":  # without zone, any precision
        return declared in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
    return declared == of.upper()


def compare_rows(relation: str, expected: list[Record], got: list[Record]) -> list[str]:
    """Differences of one relation's rows, both lists in any order."""
    differences = []
    if relation == "ingested_files":
        differences = [difference for row in got if (difference := _sum_difference(row))]
    columns = [column for column in RELATIONS[relation] if column not in KEYS[relation]]
    if relation == "ingested_files":
        columns = [*ACCOUNTS, "is_unreadable"]
    expected, got = (_comparable(relation, rows) for rows in (expected, got))
    if len(expected) != len(got):
        differences.append(f"{relation}: {len(expected)} rows expected, got {len(got)}")
    wanted, present = _by_key(relation, expected), _by_key(relation, got)
    for key in sorted(set(wanted) | set(present), key=_order):
        mine, theirs = wanted.get(key, []), present.get(key, [])
        label = f"{relation} {_label(relation, key)}"
        if len(mine) != len(theirs):
            differences.append(f"{label}: {len(mine)} row(s) expected, got {len(theirs)}")
            continue
        for left, right in zip(mine, theirs, strict=True):
            differences.extend(
                f"{label} {column}: expected {left[column]!r}, got {right[column]!r}"
                for column in columns
                if not _same(left[column], right[column], RELATIVE.get((relation, column)))
            )
        for row in theirs:
            differences.extend(_type_differences(relation, label, row))
    return differences


def _comparable(relation: str, rows: list[Record]) -> list[Record]:
    """File names without their folders; the two accounting relations reduced to what the contract fixes."""
    if relation == "rejected_records":
        return [{**row, "file": Path(row["file"]).name} for row in rows]
    if relation != "ingested_files":
        return rows
    result = []
    for row in rows:
        unreadable = row["status"] == UNREADABLE
        counts = {column: None if unreadable else row[column] for column in ACCOUNTS}
        result.append({"file": Path(row["file"]).name, "is_unreadable": unreadable, **counts})
    return result


def _sum_difference(row: Record) -> str | None:
    """> delivered = accepted + rejected + exact duplicates + superseded"""
    parts = [row[column] or 0 for column in ("rows_accepted", "rows_rejected", "rows_duplicate", "rows_superseded")]
    if (row["rows_delivered"] or 0) == sum(parts):
        return None
    return f"ingested_files {row['file']}: {row['rows_delivered']} delivered, but accepted, rejected, duplicate, superseded are {parts}"


def _by_key(relation: str, rows: list[Record]) -> dict[tuple, list[Record]]:
    result = defaultdict(list)
    for row in rows:
        result[tuple(row[column] for column in KEYS[relation])].append(row)
    return dict(result)


def _order(key: tuple) -> tuple:
    return tuple((value is not None, str(value)) for value in key)


def _label(relation: str, key: tuple) -> str:
    return "[" + ", ".join(f"{column}={value}" for column, value in zip(KEYS[relation], key, strict=True)) + "]"


def _same(left: Any, right: Any, relative: float | None) -> bool:
    if left is None or right is None:
        return left is None and right is None
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        if relative is not None:
            return abs(left - right) <= relative * abs(left)
    return bool(left == right)


def _type_differences(relation: str, label: str, row: Record) -> list[str]:
    """Values that came as another Python type than the column's (bool is no int)."""
    return [
        f"{label} {column}: {value!r} came as {type(value).__name__}"
        for column, of in RELATIONS[relation].items()
        if (value := row.get(column)) is not None and type(value) is not PYTHON_TYPES[of]
    ]

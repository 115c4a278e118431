"""Compare the study of a published warehouse with the reference, value by value."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from study.tests.reference import Study, is_in_scope
from tests.reference.compare import Record, differences_of, is_near, row_differences
from tests.reference.reference import columns

STUDY_RELATIONS: dict[str, dict[str, str]] = {
    "study_results": columns("varchar id kind verdict", "bigint numerator denominator", "double value ci_low ci_high"),
    "study_curves": columns("varchar figure curve kind", "double x y y_left", "bigint population"),
}
STUDY_KEYS = {"study_results": ("id", "kind"), "study_curves": ("figure", "curve", "x")}


def compare_study(rows: Study, published: Path) -> list[str]:
    """The reference's study against a published file; -> human-readable differences, as of compare().

    Integers and verdicts exactly, doubles to 1e-9 relative; study_curves at every x the file has. Figure 12 and ToleRAID are left out.
    """

    def compared(name: str, got: list[Record]) -> list[str]:
        if name == "study_curves":
            return _curve_differences(rows, [row for row in got if not row["figure"].startswith("12")])
        scope = [row for row in got if is_in_scope(row["id"])]
        return row_differences(name, STUDY_KEYS[name], [_defined(row) for row in rows.results], scope, is_near)

    return differences_of({name: (STUDY_RELATIONS[name], partial(compared, name)) for name in STUDY_RELATIONS}, published)


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

"""`drivetail lab study`: the numbers of the papers beside what experiments give. Nothing else of the lab needs it, lab/models/papers or
lab/simulate/papers.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import duckdb

from drivetail.terminal import Columns, table
from engine.read import QueryError, Row, fetch

NUMBERS = """
select results.* replace (nullif(results.config_id, '') as config_id), results.kind = experiments.kind as is_own
from lab.study_results as results
inner join lab.dim_experiments as experiments on results.experiment_id = experiments.experiment_id
order by results.id, results.experiment_id, results.config_id
"""
COMPARABLE = {"agrees": "agree", "differs": "differ"}
"""Verdicts of numbers that an experiment gives, each with its word."""
SHOWN_REASONS = 5
STUDY: Columns = {
    "id": "id",
    "number": "metric",
    "experiment": "experiment_id",
    "config": "config_id",
    "value": "value",
    "95% interval": "interval",
    "paper": "printed",
    "unit": "unit",
    "verdict": "verdict",
    "reason": "reason",
}


def printed_numbers(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """Each number of the papers beside what the experiments of its kind give. Raises: QueryError where no experiment is published."""
    found = fetch(connection, NUMBERS)
    if not found:
        raise QueryError("no experiment is published; `drivetail lab build` publishes what has landed")
    asked = {row["id"] for row in found if row["is_own"]}
    # a number that no experiment of its kind could answer has one row, without an experiment
    others = {row["id"]: row | {"experiment_id": None} for row in found if row["id"] not in asked}
    shown = [*(row for row in found if row["is_own"]), *others.values()]
    return [{name: value for name, value in row.items() if name != "is_own"} for row in sorted(shown, key=lambda row: str(row["id"]))]


def study_table(rows: Sequence[Row]) -> str:
    """The numbers for the terminal: for each experiment with how many it can be compared, then those. The others are counted by reason."""

    def written(row: Row) -> Row:
        interval = None if row["ci_low"] is None else f"{row['ci_low']:,.6g} to {row['ci_high']:,.6g}"
        return row | {"interval": interval, "printed": f"{row['operator']} {row['paper_value']}"}

    compared = [row for row in rows if row["verdict"] in COMPARABLE]
    heads = []
    for name in dict.fromkeys(row["experiment_id"] for row in rows if row["experiment_id"] is not None):
        counts = Counter(row["verdict"] for row in rows if row["experiment_id"] == name)
        said = ", ".join(f"{counts[verdict]} {words}" for verdict, words in COMPARABLE.items() if counts[verdict])
        heads.append(
            f"{name} can be compared with {sum(counts[verdict] for verdict in COMPARABLE)} numbers of the papers: {said or 'none'}"
        )
    left = Counter(f"{row['verdict']}{': ' + row['reason'] if row['reason'] else ''}" for row in rows if row["verdict"] not in COMPARABLE)
    tail = [f"Left out, {count} of them {verdict}" for verdict, count in left.most_common(SHOWN_REASONS)]
    tail += ["`--format csv` has every number"] if left else []
    return "\n".join([*heads, *([table([written(row) for row in compared], STUDY)] if compared else []), *tail])

"""`drivetail lab choose`, `compare` and `study` in words, and which comparison is meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import duckdb

from drivetail.console import Columns, table
from engine.read import QueryError, Row, fetch
from lab.ask.verdict import said
from lab.read import experiment_of, size

CHOICES: Columns = {
    "config": "config_id",
    "buffer": ("buffer_bytes", size),
    "verdict": "verdict",
    "shown": "answer",
    "kB/s": ("mean_throughput_kb_per_s", lambda value: f"{value:,.0f}"),
    "us per write": ("mean_latency_us", lambda value: f"{value:,.0f}"),
}


def choices_table(rows: Sequence[Row], *, has_p99: bool = False) -> str:
    """The choices for the terminal."""
    more: Columns = {"p99, us": ("p99_latency_us", lambda value: f"{value:,.0f}")}
    return table(rows, {**CHOICES, **more} if has_p99 else CHOICES)


# Two configurations ------------------------------------------------------------------------------------------------

SIDES = """
select distinct experiment_id, compared from lab.fct_bench_comparisons
where side_a = $a and side_b = $b and experiment_id = coalesce($experiment, experiment_id) order by all
"""
COMPARED = """
select * from lab.fct_bench_comparisons
where experiment_id = $experiment and compared = $compared and side_a = $a and side_b = $b
order by config_id, benchmark, "pass", test, size_bytes, parameter
"""


def compare(connection: duckdb.DuckDBPyConnection, a: str, b: str, experiment_id: str | None) -> list[Row]:
    """Two configurations, devices, phases or values of a factor over every test that both have.

    Raises: QueryError where no experiment, or more than one, has both.
    """
    if experiment_id is not None:
        experiment_of(connection, experiment_id)
    found = fetch(connection, SIDES, {"a": a, "b": b, "experiment": experiment_id})
    names = list(dict.fromkeys(row["experiment_id"] for row in found))
    if not names:
        where = f"experiment {experiment_id!r}" if experiment_id is not None else "no experiment"
        raise QueryError(
            f"{where} has {'no ' if experiment_id is not None else 'a '}test that both {a!r} and {b!r} have; give two configurations, "
            "devices, phases or settings such as scheduler=none (`drivetail lab status` lists the experiments)"
        )
    if len(names) > 1:
        raise QueryError(f"{a!r} and {b!r} are in several experiments; give one with --experiment: {', '.join(names)}")
    # a name may be that of a configuration and of a device: configurations come first
    return fetch(connection, COMPARED, {"a": a, "b": b, "experiment": names[0], "compared": found[0]["compared"]})


def comparison_table(rows: Sequence[Row]) -> str:
    """A comparison for the terminal."""
    first = rows[0]
    a, b = first["side_a"], first["side_b"]

    def written(row: Row) -> Row:
        of_file = f" {size(row['parameter'])}" if row["parameter"] else ""
        return row | {"what": f"{row['benchmark']} {row['test']}{of_file}", "said": said(row, a, b)}

    columns: Columns = {
        **({"config": "config_id"} if first["config_id"] else {}),
        "test": "what",
        "unit": "unit",
        a: "mean_a",
        b: "mean_b",
        "n": "n_a",
        "n ": "n_b",
        "sd": "sd_a",
        "sd ": "sd_b",
        "answer": "said",
    }
    return f"Experiment {first['experiment_id']}: {a} against {b}\n" + table([written(row) for row in rows], columns)


# The numbers of the papers ----------------------------------------------------------------------------------------

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

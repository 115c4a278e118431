"""`drivetail lab choose` and `compare` in words, and which comparison is meant."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from drivetail.terminal import Columns, table
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

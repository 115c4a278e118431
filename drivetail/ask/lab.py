"""Questions to the experiments: `drivetail lab choose` and `compare`. What they select is defined in models/lab/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from drivetail.console import Columns, table
from engine.read import QueryError, Row, fetch
from engine.words import percent

CHOSEN, INFEASIBLE = "chosen", "infeasible"


def experiment_of(connection: duckdb.DuckDBPyConnection, experiment_id: str) -> Row:
    """The row of dim_experiments. Raises: QueryError where it is not published."""
    found = fetch(connection, "select * from lab.dim_experiments where experiment_id = ?", [experiment_id])
    if not found:
        names = [row["experiment_id"] for row in fetch(connection, "select experiment_id from lab.dim_experiments order by all")]
        hint = f"there are {', '.join(names)}" if names else "there is none"
        raise QueryError(f"experiment {experiment_id!r} is not published; {hint}; `drivetail lab build` publishes what has landed")
    return found[0]


# Which buffer ------------------------------------------------------------------------------------------------------


def choose(
    connection: duckdb.DuckDBPyConnection,
    experiment_id: str,
    config: str | None = None,
    floor: float | None = None,
    ceiling: float | None = None,
    *,
    is_conservative: bool = False,
) -> list[Row]:
    """The buffer of each configuration: the smallest that keeps a floor (kB/s), the largest that keeps a ceiling (us), the smallest that
    keeps both, or the one with the greatest ratio.

    is_conservative: hold the limits against the mean less, or plus, one standard deviation.
    Raises: QueryError for an experiment without synchronous writes, or a configuration that it does not have.
    """
    experiment = experiment_of(connection, experiment_id)
    if experiment["kind"] != "sync_writes":
        raise QueryError(f"experiment {experiment_id!r} is of kind {experiment['kind']}; a buffer is chosen of one of kind sync_writes")
    configs = [
        row["config_id"]
        for row in fetch(
            connection, "select distinct config_id from lab.fct_sync_write_points where experiment_id = ? order by all", [experiment_id]
        )
    ]
    if config is not None and config not in configs:
        raise QueryError(f"experiment {experiment_id!r} has no synchronous writes of {config!r}; there are {', '.join(configs) or 'none'}")
    before = "conservative" if is_conservative else "mean"
    ratio = "conservative_ratio" if is_conservative else "ratio"
    wanted = ["experiment_id = $experiment", "config_id = $config"]
    if floor is not None:
        wanted.append(f"{before}_throughput_kb_per_s >= $floor")
    if ceiling is not None:
        wanted.append(f"{before}_latency_us <= $ceiling")
    if floor is None and ceiling is None:
        wanted.append(f"{ratio} is not null")
        order = f"{ratio} desc, buffer_bytes asc"
    else:
        order = "buffer_bytes asc" if floor is not None else "buffer_bytes desc"
    query = f"""
        select config_id, buffer_bytes, mean_throughput_kb_per_s, mean_latency_us
        from lab.fct_sync_write_points where {" and ".join(wanted)} order by {order} limit 1
    """
    limits: dict[str, Any] = {"floor": floor, "ceiling": ceiling}
    given = {name: value for name, value in limits.items() if value is not None}
    answers = []
    for name in [config] if config is not None else configs:
        found = fetch(connection, query, {"experiment": experiment_id, "config": name, **given})
        chosen = found[0] if found else {}
        answers.append(
            {
                "config_id": name,
                "buffer_bytes": chosen.get("buffer_bytes"),
                "verdict": CHOSEN if found else INFEASIBLE,
                "mean_throughput_kb_per_s": chosen.get("mean_throughput_kb_per_s"),
                "mean_latency_us": chosen.get("mean_latency_us"),
            }
        )
    return answers


def size(value: int | None) -> str | None:
    """Bytes as iozone and people write them: 64 KiB."""
    if value is None:
        return None
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit and not value % unit:
            return f"{value // unit} {name}"
    return f"{value} B"


CHOICES: Columns = {
    "config": "config_id",
    "buffer": ("buffer_bytes", size),
    "verdict": "verdict",
    "kB/s": ("mean_throughput_kb_per_s", lambda value: f"{value:,.0f}"),
    "us per write": ("mean_latency_us", lambda value: f"{value:,.0f}"),
}


def choices_table(rows: Sequence[Row]) -> str:
    """The choices for the terminal."""
    return table(rows, CHOICES)


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
    """Two configurations, devices or phases over every test that both have.

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
            "devices or phases (`drivetail lab status` lists the experiments)"
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
        low, high = row["ci_low"], row["ci_high"]
        interval = None if low is None else f"{low:,.6g} to {high:,.6g}"
        words = {"a better": f"{a} better", "b better": f"{b} better"}
        of_file = f" {size(row['parameter'])}" if row["parameter"] else ""
        return row | {
            "what": f"{row['benchmark']} {row['test']}{of_file}",
            "interval": interval,
            "said": words.get(row["verdict"], row["verdict"]),
        }

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
        "difference": "difference",
        "95% interval": "interval",
        "of it": ("difference_ratio", percent),
        "verdict": "said",
    }
    return f"Experiment {first['experiment_id']}: {a} against {b}\n" + table([written(row) for row in rows], columns)

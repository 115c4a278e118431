"""Questions to the experiments that the commands and the pages share. What they select among is defined in lab/models/."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb

from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from lab.landing import list_experiments

CHOSEN, INFEASIBLE = "chosen", "infeasible"


@contextmanager
def published_lab(warehouse: Warehouse) -> Iterator[duckdb.DuckDBPyConnection]:
    """The publication, of these models. Raises: QueryError that says what to do where there is none."""
    if not warehouse.published.exists():
        steps = "experiments have landed there: run `drivetail lab build`"
        if not list_experiments(warehouse.root):
            steps = "no experiment has landed there: `drivetail lab ingest BUNDLE`, then `drivetail lab build`"
        raise QueryError(f"{warehouse.published}: no such warehouse; {steps}")
    with publication_of(warehouse, must_be_of_these_models=True) as connection:
        yield connection


def experiment_of(connection: duckdb.DuckDBPyConnection, experiment_id: str) -> Row:
    """The row of dim_experiments. Raises: QueryError where it is not published."""
    found = fetch(connection, "select * from lab.dim_experiments where experiment_id = ?", [experiment_id])
    if not found:
        names = [row["experiment_id"] for row in fetch(connection, "select experiment_id from lab.dim_experiments order by all")]
        hint = f"there are {', '.join(names)}" if names else "there is none"
        raise QueryError(f"experiment {experiment_id!r} is not published; {hint}; `drivetail lab build` publishes what has landed")
    return found[0]


def points_of(connection: duckdb.DuckDBPyConnection, experiment_id: str) -> dict[str, list[Row]]:
    """The points of synchronous writes of each configuration, from the smallest buffer to the largest."""
    query = "select * from lab.fct_sync_write_points where experiment_id = ? order by config_id, buffer_bytes"
    found: dict[str, list[Row]] = {}
    for row in fetch(connection, query, [experiment_id]):
        found.setdefault(row["config_id"], []).append(row)
    return found


def choose(
    connection: duckdb.DuckDBPyConnection,
    experiment_id: str,
    config: str | None = None,
    floor: float | None = None,
    ceiling: float | None = None,
    ceiling_p99: float | None = None,
    *,
    is_conservative: bool = False,
) -> list[Row]:
    """The buffer of each configuration, or of one; see chosen().

    Raises: QueryError for an experiment without synchronous writes, or a configuration that it does not have.
    """
    experiment = experiment_of(connection, experiment_id)
    if experiment["kind"] != "sync_writes":
        raise QueryError(f"experiment {experiment_id!r} is of kind {experiment['kind']}; a buffer is chosen of one of kind sync_writes")
    points = points_of(connection, experiment_id)
    if config is not None and config not in points:
        raise QueryError(f"experiment {experiment_id!r} has no synchronous writes of {config!r}; there are {', '.join(points) or 'none'}")
    found = []
    for name, rows in points.items():
        if config in (None, name):
            point = chosen(rows, floor, ceiling, ceiling_p99, is_conservative=is_conservative)
            answer = certainty(rows, point, floor, ceiling, ceiling_p99)
            found.append(_answer(name, point, answer, has_p99=ceiling_p99 is not None))
    return found


def chosen(
    points: Sequence[Row], floor: float | None, ceiling: float | None, ceiling_p99: float | None = None, *, is_conservative: bool = False
) -> Row | None:
    """Choose a point of one configuration; `points` begin at the smallest buffer. It is the smallest that reaches a floor (kB/s), the
    largest that keeps a ceiling of the mean, or of the 99th percentile (us), the smallest that does all; without a limit the one with the
    greatest ratio. None where none does, and where the percentile was not measured.

    is_conservative: hold the limits against the mean less, or plus, one standard deviation.
    """
    before = "conservative_" if is_conservative else ""
    throughput, latency = f"{before or 'mean_'}throughput_kb_per_s", f"{before or 'mean_'}latency_us"
    if floor is None and ceiling is None and ceiling_p99 is None:
        rated = [row for row in points if row[f"{before}ratio"] is not None]
        return max(rated, key=lambda row: row[f"{before}ratio"], default=None)  # of equals the first, which is the smallest
    kept = [
        row
        for row in points
        if (floor is None or (row[throughput] is not None and row[throughput] >= floor))
        and (ceiling is None or (row[latency] is not None and row[latency] <= ceiling))
        and (ceiling_p99 is None or (row["p99_latency_us"] is not None and row["p99_latency_us"] <= ceiling_p99))
    ]
    return (kept[0] if floor is not None else kept[-1]) if kept else None


def certainty(points: Sequence[Row], point: Row | None, floor: float | None, ceiling: float | None, p99: float | None = None) -> str:
    """Whether a choice is more than chance: the intervals of a point keep the limits, or, without any, no other buffer is as good as far
    as anyone can tell. `no`: no buffer can keep them.
    """
    limits = [
        (limit, column, worst, best, sign)
        for limit, column, worst, best, sign in (
            (floor, "throughput_kb_per_s", "low", "high", 1), (ceiling, "latency_us", "high", "low", -1),
            (p99, "p99_latency_us", "high", "low", -1),
        )
        if limit is not None
    ]  # fmt: skip
    if not limits:
        return "yes" if sum(bool(row["is_best_ratio"]) for row in points) == 1 else "cannot say"

    def keeps(value: float | None, sign: int, limit: float, *, unknown: bool) -> bool:
        return unknown if value is None else sign * value >= sign * limit

    if point is not None:
        is_kept = all(keeps(point[f"{worst}_{column}"], sign, limit, unknown=False) for limit, column, worst, _, sign in limits)
        return "yes" if is_kept else "cannot say"
    can_keep = any(
        all(keeps(row[f"{best}_{column}"], sign, limit, unknown=True) for limit, column, _, best, sign in limits) for row in points
    )
    return "cannot say" if can_keep else "no"


def _answer(config_id: str, point: Row | None, answer: str, *, has_p99: bool) -> Row:
    return {
        "config_id": config_id,
        "buffer_bytes": point and point["buffer_bytes"],
        "verdict": INFEASIBLE if point is None else CHOSEN,
        "answer": answer,
        "mean_throughput_kb_per_s": point and point["mean_throughput_kb_per_s"],
        "mean_latency_us": point and point["mean_latency_us"],
        **({"p99_latency_us": point and point["p99_latency_us"]} if has_p99 else {}),
    }


def size(value: int | None) -> str | None:
    """Bytes as people write the size of a buffer: 64 KiB."""
    if value is None:
        return None
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit and not value % unit:
            return f"{value // unit} {name}"
    return f"{value} B"

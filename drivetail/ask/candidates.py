"""`drivetail candidates`: which drives to replace, why, and what came of earlier verdicts (docs/candidates.md).

The numbers are those of models/marts/candidates; here they are read and written.
"""

from __future__ import annotations

from collections.abc import Sequence

from drivetail.ask.probes import newest_probes
from drivetail.terminal import Columns, known, table
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from report.words import NO_BACKTEST, counted_noun, named_drive, place


def list_candidates(warehouse: Warehouse, *, is_all: bool = False) -> list[Row]:
    """Rows of marts.replacement_candidates, what to do first on top, each with `probe`, what its newest one showed; is_all: also those to
    leave.

    Raises: QueryError without a publication.
    """
    with publication_of(warehouse) as connection:
        rows = fetch(
            connection,
            "select * from marts.replacement_candidates where verdict <> 'leave' or $is_all order by candidate_rank",
            {"is_all": is_all},
        )
        probes = newest_probes(connection)
    return [{**row, "probe": probes.get(row["drive_id"])} for row in rows]


def list_history(warehouse: Warehouse, drive: str) -> list[Row]:
    """Rows of report.candidate_weeks of one drive, the last Monday first.

    Raises: QueryError without a publication, and for a drive without a verdict.
    """
    from drivetail.ask.explain.question import known_drive  # explain reads raw, with libraries that a list need not load

    with publication_of(warehouse) as connection:
        drive = known_drive(connection, drive)["drive_id"]
        query = "select * from report.candidate_weeks where drive_id = $drive order by boundary_utc desc"
        rows = fetch(connection, query, {"drive": drive})
    if not rows:
        raise QueryError(
            f"{drive} has no verdict: it was not slow in the 28 days before any Monday; `drivetail explain {drive}` shows its hours"
        )
    return rows


def list_verdicts(warehouse: Warehouse) -> list[Row]:
    """Rows of report.candidate_verdict_backtest. Raises: QueryError without a publication."""
    with publication_of(warehouse) as connection:
        return fetch(
            connection, "select * from report.candidate_verdict_backtest order by verdict = 'replace' desc, verdict, replace_rule, kind", {}
        )


def candidates_table(rows: Sequence[Row]) -> str:
    """The candidates as a table for the terminal."""
    if not rows:
        return "No drive to replace, watch or check; `drivetail candidates --all` lists those that were slow. It takes a whole day of data"
    columns: Columns = {
        "where": "where",
        "enclosure": "enclosure",
        "drive": "drive_id",
        "model": "model",
        "verdict": "verdict",
        "cost it": ("own_tail_hours_28d", _hours),
        "a swap": ("cost_tail_hours", _hours),
        "slow hours": "slow_hours_28d",
        "slow days of 14": "slow_days_14d",
        "decided": "decision",
    }
    rows = [{**row, "where": place(row) or None} for row in rows]
    since = f"{max(row['boundary_utc'] for row in rows):%Y-%m-%d} 00:00 UTC"
    head = f"{counted_noun(len(rows), 'drive')}; what each cost in the 28 days to {since}, and what a swap costs, in tail hours"
    return "\n".join(
        [
            head,
            table(rows, known(rows, columns)),
            "Why",
            *(" ".join(filter(None, (f"{named_drive(row)}: {row['verdict_reason']}", row["probe"]))) for row in rows),
        ]
    )


def history_table(rows: Sequence[Row]) -> str:
    """The verdicts on a drive, Monday by Monday, as a table for the terminal."""
    columns: Columns = {
        "Monday": ("boundary_utc", lambda monday: f"{monday:%Y-%m-%d}"),
        "verdict": "verdict",
        "cost before": ("own_tail_hours_28d", _hours),
        "a swap": ("cost_tail_hours", _hours),
        "slow hours": "slow_hours_28d",
        "slow days of 14": "slow_days_14d",
        "shared": "together_hours_28d",
        "cost after": ("own_tail_hours_after", _hours),
    }
    return table(rows, columns)


def verdicts_table(rows: Sequence[Row]) -> str:
    """Outcome of each verdict, as a table for the terminal."""
    if not rows:
        return NO_BACKTEST
    columns: Columns = {
        "verdict": "verdict",
        "by": ("replace_rule", lambda rule: None if rule == "none" else rule),
        "kind": "kind",
        "drives": "drive_count",
        "times": "verdict_count",
        "cost before": ("tail_hours_before", _hours),
        "after": ("tail_hours_after", _hours),
        "swaps": ("cost_tail_hours", _hours),
        "paid": ("paid_ratio", lambda ratio: f"{100 * ratio:.0f}%"),
    }
    return "\n".join(["What drives cost in the 28 days after each verdict, in tail hours", table(rows, columns)])


def _hours(hours: float) -> str:
    return f"{hours:,.1f}"

"""`drivetail candidates`: which drives to replace, why, and whether following that would have helped (docs/candidates.md).

The numbers are those of models/marts/candidates; here they are read and written.
"""

from __future__ import annotations

from collections.abc import Sequence

from drivetail.console import Columns, table
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from report.words import NO_BACKTEST, TOO_LITTLE, counted_noun


def list_candidates(warehouse: Warehouse, *, is_all: bool = False) -> list[Row]:
    """Rows of marts.replacement_candidates, what to do first on top; is_all: also those to leave.

    Raises: QueryError without a publication.
    """
    with publication_of(warehouse) as connection:
        return fetch(
            connection,
            "select * from marts.replacement_candidates where verdict <> 'leave' or $is_all order by candidate_rank",
            {"is_all": is_all},
        )


def list_evidence(warehouse: Warehouse, drive: str) -> list[Row]:
    """Rows of report.candidate_evidence of one drive. Raises: QueryError without a publication, and for a drive that is no candidate."""
    from drivetail.ask.explain.question import known_drive  # explain reads raw, with libraries that a list need not load

    with publication_of(warehouse) as connection:
        known_drive(connection, drive)
        rows = fetch(connection, "select * from report.candidate_evidence where drive_id = $drive order by step", {"drive": drive})
    if not rows:
        raise QueryError(
            f"{drive} is not a candidate: it was not slow in the 28 days before the last week boundary, or it is gone; "
            "`drivetail candidates --all` lists those that are"
        )
    return rows


def list_verdicts(warehouse: Warehouse) -> list[Row]:
    """Rows of report.candidate_verdict_backtest. Raises: QueryError without a publication."""
    with publication_of(warehouse) as connection:
        return fetch(
            connection, "select * from report.candidate_verdict_backtest order by verdict = 'replace' desc, verdict, replace_rule, kind", {}
        )


def list_backtest(warehouse: Warehouse) -> list[Row]:
    """Rows of report.candidate_backtest_summary. Raises: QueryError without a publication."""
    with publication_of(warehouse) as connection:
        return fetch(connection, "select * from report.candidate_backtest_summary order by kind, top_ratio, rule", {})


def list_forecasts(warehouse: Warehouse) -> list[Row]:
    """Rows of report.candidate_forecasts, the best rule first. Raises: QueryError without a publication."""
    with publication_of(warehouse) as connection:
        return fetch(connection, "select * from report.candidate_forecasts order by kind, horizon_days, brier_score, rule", {})


def candidates_table(rows: Sequence[Row]) -> str:
    """The candidates as a table for the terminal."""
    if not rows:
        return "No drive to replace, watch or check; `drivetail candidates --all` lists those that were slow. It takes a whole week of data"
    columns: Columns = {
        "drive": "drive_id",
        "verdict": "verdict",
        "expected": ("expected_tail_hours", _hours),
        "from": ("expected_low", _hours),
        "to": ("expected_high", _hours),
        "cost": ("cost_tail_hours", _hours),
        "caused in 28 d": "tail_hours_caused_28d",
        "slow in 28 d": "slow_hours_28d",
        "host": "host",
        "slot": "slot",
        "decided": "decision",
    }
    since = f"{rows[0]['boundary_utc']:%Y-%m-%d} (UTC)"
    head = f"{counted_noun(len(rows), 'drive')}; tail hours expected in the 28 days from {since}, cost in tail hours"
    shown = {
        name: column
        for name, column in columns.items()
        if any(row[column if isinstance(column, str) else column[0]] is not None for row in rows)
    }
    return "\n".join([head, table(rows, shown), "Why", *(f"{row['drive_id']}  {row['verdict_reason']}" for row in rows)])


def evidence_table(rows: Sequence[Row]) -> str:
    """The evidence as a table for the terminal."""
    columns: Columns = {
        "evidence": "evidence",
        "class": "evidence_class",
        "factor": ("factor", lambda factor: f"{factor:.2f}"),
        "expected": ("expected_tail_hours", _hours),
    }
    return table(rows, columns)


def backtest_table(rows: Sequence[Row], verdicts: Sequence[Row], forecasts: Sequence[Row]) -> str:
    """The backtest of the ranking, what came after each verdict and how well slowness was foretold, as tables for the terminal."""
    after: Columns = {
        "verdict": "verdict",
        "by": ("replace_rule", lambda rule: None if rule == "none" else rule),
        "kind": "kind",
        "drives": "drive_count",
        "times": "verdict_count",
        "caused before": "tail_hours_before",
        "after": "tail_hours_after",
        "cost": ("cost_tail_hours", _hours),
        "paid": ("paid_ratio", lambda ratio: f"{100 * ratio:.0f}%"),
    }
    came = "\n".join(["What drives caused in the 28 days after each verdict, in tail hours", table(verdicts, after)]) if verdicts else ""
    more = [part for part in (came, forecast_table(forecasts)) if part]
    if not rows:
        return "\n".join([NO_BACKTEST, *more])
    columns: Columns = {
        "kind": "kind",
        "replaced": ("top_ratio", lambda ratio: f"{100 * ratio:g}%"),
        "beside": "rule",
        "boundaries": "boundary_count",
        "drives": "pick_count",
        "tail hours": "tail_hours_caused",
        "model avoids": ("model_tail_hours_avoided", _hours),
        "other avoids": ("tail_hours_avoided", _hours),
        "gain": ("gain_tail_hours", _hours),
        "from": ("gain_low", _hours),
        "to": ("gain_high", _hours),
        "model": ("verdict", lambda verdict: TOO_LITTLE if verdict == "open" else verdict),
    }
    return "\n".join([table(rows, columns), *more])


def forecast_table(rows: Sequence[Row]) -> str:
    """How well each rule foretold the next slow interval, and whether the model beats "slow in 28 days"; empty without a forecast."""
    if not rows:
        return ""
    columns: Columns = {
        "kind": "kind",
        "days": "horizon_days",
        "by": "rule",
        "forecasts": "forecast_count",
        "slow": "slow_count",
        "Brier": ("brier_score", lambda score: f"{score:.4f}"),
        "better than base": ("skill_ratio", lambda ratio: f"{100 * ratio:.0f}%"),
        "than slow_28d": ("verdict", lambda verdict: TOO_LITTLE if verdict == "open" else verdict),
    }
    called = {verdict: sum(row["rule"] == "model" and row["verdict"] == verdict for row in rows) for verdict in ("gains", "loses")}
    of = sum(row["rule"] == "model" for row in rows)
    words = (
        f"Beyond chance the model foretold better than slow_28d in {called['gains']} of {of} comparisons, and worse in {called['loses']}; "
        "the candidates are in the order of their slow hours"
    )
    head = "Forecasts, made each week: does a slow interval begin within these days? Brier score, less is better (docs/candidates.md)"
    return "\n".join([head, table(rows, columns), words])


def _hours(hours: float) -> str:
    return f"{hours:,.1f}"

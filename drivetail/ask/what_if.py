"""`drivetail what-if`: how many tail hours would be left if drives were replaced, or if reads went round the longest tails (docs/costs.md).

What that means is in analyses/what_if.sql; here its parameters are passed and its rows written.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import duckdb

from drivetail.terminal import Columns, table
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import PROJECT, Warehouse
from report.words import human, percent, to_minute

QUERY = PROJECT / "analyses" / "what_if.sql"

POLICY_QUERY = PROJECT / "analyses" / "what_if_policy.sql"

COLUMNS: Columns = {
    "kind": "kind",
    "replaced": ("replaced_drive_count", human),
    "RAID-hours": ("raid_hours", human),
    "tail hours": ("tail_hours", human),
    "share": ("tail_ratio", percent),
    "left": ("tail_hours_left", human),
    "share left": ("tail_ratio_left", percent),
    "ended": ("tail_hours_ended", human),
    "begun": ("tail_hours_begun", human),
    "unknown": ("tail_hours_unknown", human),
}

POLICY_COLUMNS: Columns = {
    "kind": "kind",
    "policy": "policy",
    "RAID-hours": ("raid_hours", human),
    "tail hours": ("tail_hours", human),
    "share": ("tail_ratio", percent),
    "> 3x": ("hours_above_3", human),
    "> 4x": ("hours_above_4", human),
    "mean excess": "mean_excess",
    "p99": "p99",
    "p99.9": "p999",
    "extra reads": ("extra_read_ratio", percent),
    "avoided": ("tail_hours_avoided", human),
    "at least": ("avoided_low", lambda hours: human(round(hours))),
    "at most": ("avoided_high", lambda hours: human(round(hours))),
}


def ask(
    warehouse: Warehouse,
    replaced: Sequence[str] = (),
    *,
    worst: int = 0,
    skipped: int = 0,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Row]:
    """The tail hours left, a row per kind of RAID group with a valid RAID-hour from `since` and before `until` (UTC, None for all).

    replaced: drives by id; worst: number of each RAID group's worst, replaced too; skipped: number of the longest tails that reads avoid.
    Where drives are replaced it begins at the horizon of `drivetail prune` (`pruned_before_utc`, null without one).

    Raises: QueryError without a publication, for an unknown drive, and where the span holds nothing.
    """
    with publication_of(warehouse) as connection:
        query = "select drive_id from marts.dim_drives where drive_id in (select unnest($replaced))"
        known = {row["drive_id"] for row in fetch(connection, query, {"replaced": list(replaced)})}
        missing = [drive for drive in replaced if drive not in known]
        if missing:
            hint = 'drivetail sql "select drive_id from marts.fct_drive_costs order by tail_hours_caused desc"'
            raise QueryError(f"{warehouse.published}: no drive {missing[0]} in marts.dim_drives; `{hint}` lists those that cost most")
        asked = {"replaced": list(replaced), "worst": worst, "round": skipped, "is_replaced": bool(replaced or worst)}
        return _answer(warehouse, connection, QUERY, {**asked, "since": since, "until": until})


def ask_policies(
    warehouse: Warehouse, policies: Sequence[str], st: float | None, since: datetime | None, until: datetime | None
) -> list[Row]:
    """The effect of policies of reading around slow drives on the RAID-hours of a span, a row for each kind of RAID group and policy.

    st: slowdown from which a drive is late, None for the slow threshold of its RAID group's kind.
    Raises: QueryError without a publication, and where the span holds nothing.
    """
    with publication_of(warehouse) as connection:
        return _answer(warehouse, connection, POLICY_QUERY, {"policies": list(policies), "st": st, "since": since, "until": until})


def _answer(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, query: Path, asked: dict[str, object]) -> list[Row]:
    rows = fetch(connection, query.read_text(encoding="utf-8"), asked)
    if not rows:
        raise QueryError(
            f"{warehouse.published}: no valid RAID-hour in that span, or its drive-hours were pruned; "
            "`drivetail status` says which hours there are"
        )
    return rows


def what_if_table(rows: Sequence[Row]) -> str:
    """The rows of either answer as a table for the terminal."""
    if "policy" in rows[0]:
        return table(rows, POLICY_COLUMNS)
    pruned_before = rows[0]["pruned_before_utc"]
    above = [f"Hours from {to_minute(pruned_before)} (UTC) on: the drive-hours before were pruned"] if pruned_before else []
    return "\n".join([*above, table(rows, COLUMNS)])

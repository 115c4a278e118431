"""`drivetail what-if`: how many tail hours would be left if drives were replaced, or if reads went round the longest tails (docs/costs.md).

What that means is in analyses/what_if.sql; here its parameters are passed and its rows written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from drivetail.console import Columns, render, table
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import PROJECT, Warehouse
from report.words import human, percent, to_minute

QUERY = PROJECT / "analyses" / "what_if.sql"

POLICY_QUERY = PROJECT / "analyses" / "what_if_policy.sql"

SHOWN = {
    "kind": "kind",
    "replaced_drive_count": "replaced",
    "raid_hours": "RAID-hours",
    "tail_hours": "tail hours",
    "tail_ratio": "share",
    "tail_hours_left": "left",
    "tail_ratio_left": "share left",
    "tail_hours_ended": "ended",
    "tail_hours_begun": "begun",
    "tail_hours_unknown": "unknown",
}
"""Column of the answer -> heading."""


@dataclass(frozen=True)
class Question:
    """The change: drives replaced, by id or a number of the worst of each RAID group; how many of the longest tails reads skip.

    Hours from `since` and before `until` count, UTC, None for all.
    """

    replaced: tuple[str, ...] = ()
    worst: int = 0
    round: int = 0
    since: datetime | None = None
    until: datetime | None = None


def ask(warehouse: Warehouse, question: Question) -> list[Row]:
    """The answer, a row per kind of RAID group with a valid RAID-hour in the span.

    Where drives are replaced it begins at the horizon of `drivetail prune` (`pruned_before_utc`, null without one).

    Raises: QueryError without a publication, for an unknown drive, and where the span holds nothing.
    """
    with publication_of(warehouse) as connection:
        query = "select drive_id from marts.dim_drives where drive_id in (select unnest($replaced))"
        known = {row["drive_id"] for row in fetch(connection, query, {"replaced": list(question.replaced)})}
        missing = [drive for drive in question.replaced if drive not in known]
        if missing:
            hint = 'drivetail sql "select drive_id from marts.fct_drive_costs order by tail_hours_caused desc"'
            raise QueryError(f"{warehouse.published}: no drive {missing[0]} in marts.dim_drives; `{hint}` lists those that cost most")
        rows = fetch(
            connection,
            QUERY.read_text(encoding="utf-8"),
            {
                "replaced": list(question.replaced),
                "worst": question.worst,
                "round": question.round,
                "since": question.since,
                "until": question.until,
                "is_replaced": bool(question.replaced or question.worst),
            },
        )
    if not rows:
        raise QueryError(
            f"{warehouse.published}: no valid RAID-hour in that span, or its drive-hours were pruned; "
            "`drivetail status` says which hours there are"
        )
    return rows


def what_if_table(rows: Sequence[Row]) -> str:
    """The rows as a table for the terminal."""

    def written(row: Row, column: str) -> object:
        value = row[column]
        if value is None or column == "kind":
            return value
        return percent(value) if column.startswith("tail_ratio") else human(value)

    table = render(
        list(SHOWN.values()),
        [[written(row, column) for column in SHOWN] for row in rows],
        right=[head for head in SHOWN.values() if head != "kind"],
    )
    pruned_before = rows[0]["pruned_before_utc"]
    if pruned_before is None:
        return table
    return f"Hours from {to_minute(pruned_before)} (UTC) on: the drive-hours before were pruned\n{table}"


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


def ask_policies(
    warehouse: Warehouse, policies: Sequence[str], st: float | None, since: datetime | None, until: datetime | None
) -> list[Row]:
    """The effect of policies of reading around slow drives on the RAID-hours of a span, a row for each kind of RAID group and policy.

    st: slowdown from which a drive is late, None for the slow threshold of its RAID group's kind.
    Raises: QueryError without a publication, and where the span holds nothing.
    """
    parameters: dict[str, object] = {"policies": list(policies), "st": st, "since": since, "until": until}
    with publication_of(warehouse) as connection:
        rows = fetch(connection, POLICY_QUERY.read_text(encoding="utf-8"), parameters)
    if not rows:
        raise QueryError(f"{warehouse.published}: no valid RAID-hour in that span; `drivetail status` says which hours there are")
    return rows


def policies_table(rows: Sequence[Row]) -> str:
    """The rows as a table for the terminal."""
    return table(rows, POLICY_COLUMNS)

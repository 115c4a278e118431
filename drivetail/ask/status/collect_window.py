"""The last days of the fleet: what their drive-hours came to, which hours are missing."""

from __future__ import annotations

import duckdb

from drivetail.ask.status.content import listing
from engine.read import Row, fetch

OUTCOMES = {
    "slowdown_hours": "with a slowdown",
    "low_coverage_hours": "low_coverage",
    "no_io_hours": "no_io",
    "too_few_drives_hours": "too_few_drives",
    "zero_median_hours": "zero_median",
    "narrow_group_hours": "group of too few data drives",
    "other_role_hours": "parity drive or spare",
}
"""Column of status.fct_recent_drives -> what came of those drive-hours."""


def collect_window(connection: duckdb.DuckDBPyConnection) -> Row:
    """Totals of the window's drive-hours, and the hours that are missing in it."""
    columns = ", ".join(f"coalesce(cast(sum({name}) as bigint), 0) as {name}" for name in ("hours", "undirected_hours", *OUTCOMES))
    (sums,) = fetch(connection, f"select {columns} from status.fct_recent_drives")
    (merged,) = fetch(connection, "from status.fct_recent_merged")
    return {
        "merged": merged,
        "paths": listing(connection, "from status.fct_recent_paths", "path_hours desc, drive_id"),
        "drive_hours": [{"outcome": title, "drive_hours": sums[name], "of": sums["hours"]} for name, title in OUTCOMES.items()],
        "slowdowns_without_directions": sums["undirected_hours"],
        "groups_with_gaps": listing(
            connection,
            "select * from status.fct_recent_raid_groups where missing_hours > 0 or hours_without_median > 0",
            "missing_hours desc, hours_without_median desc, raid_group_id",
        ),
        "drives_with_gaps": listing(
            connection,
            """
            select drive_id, raid_group_id, first_hour_utc, last_hour_utc, hours, missing_hours
            from status.fct_recent_drives
            where missing_hours > 0
            """,
            "missing_hours desc, drive_id",
        ),
    }

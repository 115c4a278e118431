"""Status from the publication: its last hour, who is late, where drives are, and what the last days of the fleet came to."""

from __future__ import annotations

import duckdb

from drivetail.ask.status.content import HOUR, Status, in_hours, listing
from engine.read import QueryError, Row, fetch, publication_of, published_custom, published_thresholds
from engine.warehouse import Warehouse
from ingest.raw.store import Delivery, lost_deliveries

BOUNDS = ("status_window_days", "lagging_hours", "stopped_hours", "silent_hours")
"""The thresholds of what is listed."""

NO_SHARED_SERIAL = "drive_id not in (select unnest(string_split(devices, ', ')) from status.fct_shared_serials where devices is not null)"

LISTINGS = {
    "freshness": {
        "lagging_groups": (
            "select raid_group_id, drive_count, last_hour_utc, lag_hours, is_stopped from status.fct_raid_group_freshness where is_lagging",
            "is_stopped desc, last_hour_utc desc nulls last, raid_group_id",
        ),
        "silent_drives": (
            """
            select drive_id, raid_group_id, role, last_hour_utc, group_last_hour_utc, lag_hours
            from status.fct_drive_freshness where is_silent
            """,
            "last_hour_utc desc nulls last, drive_id",
        ),
        "drives_without_inventory": (
            f"""
            select drive_id, raid_group_id, first_hour_utc, last_hour_utc
            from status.fct_drive_freshness where not has_inventory and last_hour_utc is not null and {NO_SHARED_SERIAL}
            """,
            "drive_id",
        ),
    },
    "inventory": {
        "contradictions": (
            "from status.fct_inventory_contradictions",
            "last_hour_utc desc, hours desc, drive_id, raid_group_id, inventory_raid_group_id",
        ),
        "unnamed_drives": (
            f"""
            select drive_id, current_raid_group_id as raid_group_id, first_hour_utc, last_hour_utc from marts.dim_drives
            where last_hour_utc is not null and (drive_id like '%/%' or drive_id like 'wwn:%') and {NO_SHARED_SERIAL}
            """,
            "last_hour_utc desc, drive_id",
        ),
        "guessed_groups": (
            """
            select drive_id, current_raid_group_id as raid_group_id, last_hour_utc
            from marts.dim_drives where is_group_guessed and last_hour_utc is not null
            """,
            "raid_group_id, drive_id",
        ),
        "unknown_kinds": ("from status.fct_unknown_kinds", "raid_group_id, drive_id"),
        "unjudged_hosts": ("from status.fct_unjudged_hosts", "drive_count desc, host, reason"),
        "mixed_groups": ("from status.fct_mixed_raid_groups", "named_raid_group_id, raid_group_id"),
        "shared_serials": ("from status.fct_shared_serials", "device_count desc, serial"),
        "disagreements": ("from status.fct_inventory_disagreements", "drive_id, attribute"),
    },
    "window": {
        "paths": ("from status.fct_recent_paths", "path_hours desc, drive_id"),
        "groups_with_gaps": (
            "select * from status.fct_recent_raid_groups where missing_hours > 0 or hours_without_median > 0",
            "missing_hours desc, hours_without_median desc, raid_group_id",
        ),
        "drives_with_gaps": (
            """
            select drive_id, raid_group_id, first_hour_utc, last_hour_utc, hours, missing_hours
            from status.fct_recent_drives where missing_hours > 0
            """,
            "missing_hours desc, drive_id",
        ),
    },
}
"""The listings of each part of a status, which `Status` describes: query, and the order of its rows."""

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


def collect_published(status: Status, warehouse: Warehouse, deliveries: list[Delivery], known: dict[int, str]) -> set[int] | None:
    """Add the status from the publication, and what raw has lost. Returns: the deliveries it holds, None without a usable one.

    known: the deliveries that it was made of, number -> digest.
    """
    landed = {delivery.seq: delivery.digest() for delivery in deliveries}
    status.lost_deliveries = lost_deliveries(landed, known)
    try:
        with publication_of(warehouse) as connection:
            built = {seq for seq, digest in known.items() if digest == landed.get(seq)}
            _collect_from(status, connection, len(known))
        publication_id = status.publication["publication_id"]
        thresholds = published_thresholds(warehouse, publication_id)
        status.thresholds = {name: thresholds[name] for name in BOUNDS}
        status.custom_failures = published_custom(warehouse, publication_id)[1]
        return built
    except QueryError as error:
        message = str(error)
    exists = warehouse.published.exists()
    if not exists and not deliveries:
        message = f"{warehouse.root}: nothing has landed; `drivetail ingest`, then `drivetail build`, or name another with --warehouse DIR"
    status.publication = {"state": "unusable" if exists else "none", "message": message}
    status.freshness = status.inventory = status.window = None
    return None


def _collect_from(status: Status, connection: duckdb.DuckDBPyConnection, delivery_count: int) -> None:
    (publication,) = fetch(connection, "select publication_id, published_at, last_hour_utc from marts.publication")
    (window,) = fetch(connection, "from status.fct_status_window")
    last = window["last_hour_utc"]
    status.publication = {
        "state": "published",
        "message": None,
        **publication,
        "last_hour_age_hours": in_hours(status.at - last - HOUR) if last else None,
        "delivery_count": delivery_count,
        "drive_count": window["drive_count"],
        "raid_group_count": window["raid_group_count"],
    }
    parts = {name: {key: listing(connection, *asked) for key, asked in part.items()} for name, part in LISTINGS.items()}
    # a fleet without a row is as of now, and no drive in it is late
    stopped = listing(connection, f"{LISTINGS['freshness']['lagging_groups'][0]} and is_stopped", "raid_group_id")["count"]
    status.freshness = {"last_hour_utc": last or status.at, "stopped_group_count": stopped, **parts["freshness"]}
    (fewest,) = fetch(connection, "select value from marts.thresholds where name = 'min_group_width'")
    status.inventory = {**parts["inventory"], "fewest_drives": fewest["value"]}
    status.window = {"first_hour_utc": window["first_hour_utc"], "last_hour_utc": last, **_outcomes(connection), **parts["window"]}


def _outcomes(connection: duckdb.DuckDBPyConnection) -> Row:
    """Totals of the drive-hours of the last days."""
    columns = ", ".join(f"coalesce(cast(sum({name}) as bigint), 0) as {name}" for name in ("hours", "undirected_hours", *OUTCOMES))
    (sums,) = fetch(connection, f"select {columns} from status.fct_recent_drives")
    (merged,) = fetch(connection, "from status.fct_recent_merged")
    return {
        "merged": merged,
        "drive_hours": [{"outcome": title, "drive_hours": sums[name], "of": sums["hours"]} for name, title in OUTCOMES.items()],
        "slowdowns_without_directions": sums["undirected_hours"],
    }

"""Status from the publication: its last hour, who is late, where drives are, and what the last days of the fleet came to."""

from __future__ import annotations

import duckdb

from drivetail.ask.status.content import HOUR, Status, in_hours, listing
from drivetail.ask.status.listings import LAGGING, LISTINGS, SILENT_HOSTS
from engine.read import QueryError, Row, damaged_files, fetch, of_other_models, publication_of, published_custom, published_thresholds
from engine.warehouse import Warehouse
from ingest.raw.store import digests, list_folders, lost_deliveries

BOUNDS = ("status_window_days", "lagging_hours", "stopped_hours", "silent_hours")

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
UNJUDGED = {
    "too_few_ios_hours": "too_few_ios",
    "unlike_load_hours": "unlike_load",
    "no_peers_hours": "no_peers",
}
"""The same of those with a slowdown that count for no verdict -> why."""


def collect_published(status: Status, warehouse: Warehouse, landed: dict[int, str], known: dict[int, str]) -> set[int] | None:
    """Add the status from the publication, and what raw has lost. Returns: the deliveries it holds, None without a usable one.

    landed, known: the deliveries of raw, and those that the publication was made of, number -> digest.
    """
    dropped = digests(list_folders(warehouse.root, place="dropped"))
    status.lost_deliveries = lost_deliveries(dropped | landed, known)
    try:
        with publication_of(warehouse) as connection:
            built = {seq for seq, digest in known.items() if digest == landed.get(seq)}
            _collect_from(status, connection, len(known))
            status.other_models = of_other_models(warehouse, connection)
        publication_id = status.publication["publication_id"]
        thresholds = published_thresholds(warehouse, publication_id)
        status.thresholds = {name: thresholds[name] for name in BOUNDS}
        status.damaged_files = list(map(str, damaged_files(warehouse, publication_id)))
        status.custom_failures = published_custom(warehouse, publication_id).get("failures", [])
        return built
    except QueryError as error:
        message = str(error)
    exists = warehouse.published.exists()
    if not exists and not landed:
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
    parts = {name: {key: listing(connection, each.query, each.order) for key, each in part.items()} for name, part in LISTINGS.items()}
    # a fleet without a row is as of now, and no drive in it is late
    stopped = listing(connection, f"{LAGGING.query} and is_stopped", "raid_group_id")["count"]
    silent = listing(connection, SILENT_HOSTS.query, SILENT_HOSTS.order)
    status.freshness = {"last_hour_utc": last or status.at, "stopped_group_count": stopped, "silent_hosts": silent, **parts["freshness"]}
    (fewest,) = fetch(connection, "select value from marts.thresholds where name = 'min_group_width'")
    status.inventory = {**parts["inventory"], "fewest_drives": fewest["value"]}
    status.window = {"first_hour_utc": window["first_hour_utc"], "last_hour_utc": last, **_outcomes(connection, window), **parts["window"]}


def _outcomes(connection: duckdb.DuckDBPyConnection, window: Row) -> Row:
    names = ("hours", "undirected_hours", *OUTCOMES, *UNJUDGED)
    columns = ", ".join(f"coalesce(cast(sum({name}) as bigint), 0) as {name}" for name in names)
    (sums,) = fetch(connection, f"select {columns} from status.fct_recent_drives")
    first = window["first_hour_utc"]
    return {
        "merged": {
            "first_day_utc": first and first.date(),
            **{name: window[name] for name in ("path_spans", "part_spans", "other_spans", "changed_spans")},
        },
        "drive_hours": [{"outcome": title, "drive_hours": sums[name], "of": sums["hours"]} for name, title in OUTCOMES.items()],
        "slowdowns_without_directions": sums["undirected_hours"],
        "not_judged": [{"reason": why, "drive_hours": sums[name]} for name, why in UNJUDGED.items()],
    }

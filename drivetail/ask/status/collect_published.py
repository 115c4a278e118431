"""Status from the publication: its last hour, freshness, inventory and the window."""

from __future__ import annotations

import duckdb

from drivetail.ask.status.collect_freshness import collect_freshness
from drivetail.ask.status.collect_identity import collect_inventory
from drivetail.ask.status.collect_window import collect_window
from drivetail.ask.status.content import HOUR, Status, in_hours
from engine.read import QueryError, fetch, publication_of, published_custom, published_thresholds
from engine.warehouse import Warehouse
from ingest.raw.store import Delivery, lost_deliveries

BOUNDS = ("status_window_days", "lagging_hours", "stopped_hours", "silent_hours")
"""The thresholds of what is listed."""


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
    # a fleet without a row is as of now, and no drive in it is late
    status.freshness = {"last_hour_utc": last or status.at, **collect_freshness(connection)}
    status.inventory = collect_inventory(connection)
    status.window = {"first_hour_utc": window["first_hour_utc"], "last_hour_utc": last, **collect_window(connection)}

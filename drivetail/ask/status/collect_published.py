"""What the publication tells: how far it is, and by it freshness, inventory and the window."""

from __future__ import annotations

from datetime import datetime

import duckdb

from drivetail.ask.status.collect_freshness import collect_freshness
from drivetail.ask.status.collect_identity import collect_disagreements, collect_guessed, collect_unnamed
from drivetail.ask.status.collect_window import WINDOW, collect_contradictions, collect_window, read_window
from drivetail.ask.status.content import HOUR, Status, in_hours
from engine.read import QueryError, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.raw.store import Delivery

FIRST_HOUR = datetime(1, 1, 1)


def collect_published(status: Status, warehouse: Warehouse, deliveries: list[Delivery]) -> set[int] | None:
    """What the publication tells. Returns: the deliveries it holds, None without a usable one."""
    try:
        with publication_of(warehouse) as connection:
            return _collect_from(status, connection)
    except QueryError as error:
        message = str(error)
    exists = warehouse.published.exists()
    if not exists and not deliveries:
        message = f"{warehouse.root}: nothing has landed; `drivetail ingest`, then `drivetail build`, or name another with --warehouse DIR"
    status.publication = {"state": "unusable" if exists else "none", "message": message}
    status.freshness = status.inventory = status.window = None
    return None


def _collect_from(status: Status, connection: duckdb.DuckDBPyConnection) -> set[int]:
    (publication,) = fetch(connection, "select publication_id, published_at, last_hour_utc from marts.publication")
    built = {row[0] for row in connection.execute("select distinct delivery_seq from raw.ingested_files").fetchall()}
    # without a single valid RAID-hour the rows themselves say how far the fleet is
    (spans,) = fetch(connection, "select max(last_hour_utc) as last_hour_utc, count(*) as drive_count from intermediate.int_drives__spans")
    last = publication["last_hour_utc"] or spans["last_hour_utc"]
    (groups,) = fetch(connection, "select count(distinct last_raid_group_id) as raid_group_count from intermediate.int_drives__spans")
    status.publication = {
        "state": "published",
        "message": None,
        **publication,
        "last_hour_age_hours": in_hours(status.at - last - HOUR) if last else None,
        "delivery_count": len(built),
        **spans,
        **groups,
        "last_hour_utc": publication["last_hour_utc"],
    }
    # a fleet without a row is as of now, and nobody in it is late
    first = max(last or status.at, FIRST_HOUR + WINDOW) - WINDOW + HOUR
    read_window(connection, first)
    status.freshness = collect_freshness(connection, last or status.at)
    status.inventory = {
        "contradictions": collect_contradictions(connection, first),
        "unnamed_drives": collect_unnamed(connection),
        "guessed_groups": collect_guessed(connection),
        "disagreements": collect_disagreements(connection),
    }
    status.window = {"first_hour_utc": first, "last_hour_utc": last, **collect_window(connection)}
    return built

"""An explanation for programs: the rows of the marts that it is made of, with every digit."""

from __future__ import annotations

from drivetail.ask.explain.question import known_drive, parse_hour
from engine.read import Row, fetch, publication_of
from engine.warehouse import Warehouse

OF_DRIVE = {
    "drive": "select * from marts.dim_drives where drive_id = $drive",
    "slowness": "select * from marts.fct_drive_slowness where drive_id = $drive",
    "intervals": "select * from marts.fct_slowdown_intervals where drive_id = $drive order by threshold, started_at",
    "events": "select * from marts.fct_drive_events where drive_id = $drive order by occurred_at, event_type",
    "unplugs": "select * from marts.fct_unplug_episodes where drive_id = $drive order by unplugged_at",
}
OF_HOUR = {
    "drive_hour": "select * from marts.fct_drive_hours where drive_id = $drive and hour_utc = $hour",
    "raid_hour": """
        select * from marts.fct_raid_hours where hour_utc = $hour and raid_group_id in
            (select raid_group_id from marts.fct_drive_hours where drive_id = $drive and hour_utc = $hour)
    """,
    "drives_of_the_group": """
        select * from marts.fct_drive_hours where hour_utc = $hour and raid_group_id in
            (select raid_group_id from marts.fct_drive_hours where drive_id = $drive and hour_utc = $hour)
        order by latency_us nulls last, drive_id
    """,
}


def as_records(warehouse: Warehouse, drive: str, hour: str | None) -> list[Row]:
    """The rows about a drive, or about one hour of it; `relation` says which. Raises: QueryError."""
    with publication_of(warehouse) as connection:
        drive = known_drive(connection, drive)["drive_id"]
        asked: Row = {"drive": drive} if hour is None else {"drive": drive, "hour": parse_hour(hour)[0]}
        queries = OF_DRIVE if hour is None else OF_HOUR
        return [{"relation": name, **row} for name, query in queries.items() for row in fetch(connection, query, asked)]

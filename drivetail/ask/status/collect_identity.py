"""Drives and their inventory in the publication: their names, which group they are in, where sources disagree."""

from __future__ import annotations

import duckdb

from drivetail.ask.status.content import listing
from engine.read import Row, fetch


def collect_inventory(connection: duckdb.DuckDBPyConnection) -> Row:
    """Listings of drives that rows, sources and names place differently.

    contradictions: rows against inventory. unnamed_drives: known only by their device (`HOST/DEVICE`, `wwn:...`) in their last hour,
    but for those of a shared serial.
    guessed_groups: drives whose RAID group in that hour is only their host. disagreements: between two sources.
    shared_serials: those that name no drive. unknown_kinds, mixed_groups: who has peers of which kind. unjudged_hosts: drives by host and
    why they are not judged. fewest_drives: data drives below which a RAID group is compared with nothing.
    """
    return {
        "contradictions": listing(
            connection,
            "from status.fct_inventory_contradictions",
            "last_hour_utc desc, hours desc, drive_id, raid_group_id, inventory_raid_group_id",
        ),
        "unnamed_drives": listing(
            connection,
            """
            select drive_id, current_raid_group_id as raid_group_id, first_hour_utc, last_hour_utc
            from marts.dim_drives
            where last_hour_utc is not null and (drive_id like '%/%' or drive_id like 'wwn:%')
                and drive_id not in (select unnest(string_split(devices, ', ')) from status.fct_shared_serials where devices is not null)
            """,
            "last_hour_utc desc, drive_id",
        ),
        "guessed_groups": listing(
            connection,
            """
            select drive_id, current_raid_group_id as raid_group_id, last_hour_utc
            from marts.dim_drives
            where is_group_guessed and last_hour_utc is not null
            """,
            "raid_group_id, drive_id",
        ),
        "unknown_kinds": listing(connection, "from status.fct_unknown_kinds", "raid_group_id, drive_id"),
        "unjudged_hosts": listing(connection, "from status.fct_unjudged_hosts", "drive_count desc, host, reason"),
        "fewest_drives": fetch(connection, "select value from marts.thresholds where name = 'min_group_width'")[0]["value"],
        "mixed_groups": listing(connection, "from status.fct_mixed_raid_groups", "named_raid_group_id, raid_group_id"),
        "shared_serials": listing(connection, "from status.fct_shared_serials", "device_count desc, serial"),
        "disagreements": listing(connection, "from status.fct_inventory_disagreements", "drive_id, attribute"),
    }

"""Contents of a status, and how a listing of it is cut off."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import duckdb

from engine.read import Row, fetch

HOUR = timedelta(hours=1)

LISTED = 200
"""Rows that a listing of the JSON holds; its `count` is of all."""


@dataclass
class Status:
    """Everything `drivetail status` knows; as JSON its form is stable. Instants are UTC, ages and lags in hours.

    A listing is `{"count": all, "rows": the first LISTED}`.

    - problems: what needs an operator, a sentence each; `--check` exits 1 where there is one.
    - publication: state (`published`, `none`, `unusable`), message (why not, and what to run), publication_id, published_at,
      last_hour_utc, last_hour_age_hours, delivery_count, drive_count, raid_group_count.
    - unbuilt: listing of deliveries that the publication does not hold: delivery_seq, source, ingested_at, age_hours,
      first_hour_utc, last_hour_utc, rows_delivered; late_count of them are older than UNBUILT_AFTER.
    - lost_deliveries: numbers of deliveries that raw lacks, or whose number another delivery has now.
    - landed: delivery_count, first_hour_utc, last_hour_utc, last_delivery, files (count by status), rows (over the warehouse:
      delivered, accepted, rejected, duplicate, superseded), stored_rows (live records in raw by kind), rolled_up_superseded, by_source,
      pruned (before_utc, row_count of raw; null without a prune).
    - rejected: count, reasons (source, reason, column, count, last_rejected_at, and one example: file, row, value).
    - unreadable_files: listing of source, file, ingested_at, note, is_replaced (a file of that name has landed since, or what lies in its
      place in an inbox was taken in well).
    - quarantined: listing of deliveries that the gate holds back: number, source, files, quarantined_at, age_hours, reasons, and the
      commands `release` and `drop`.
    - freshness (null without a publication): last_hour_utc of the fleet, lagging_groups, silent_drives, drives_without_inventory:
      listings; stopped_group_count of the lagging groups have stopped reporting. silent_hosts: the silent drives that reported before,
      by host, or by RAID group where no host is known.
    - inventory (null without a publication): contradictions: drives whose rows name another group than inventory; the row wins.
      hosts_of_two_names: host, other_host, which may be one.
      Of drives that hosts see: unnamed_drives (known by device only in their last hour), unnamed_vdevs (by another name),
      guessed_groups (drives whose group is only their host), disagreements of sources (drive_id, attribute, believed, said); of attribute
      `serial` drive_id is a device or a wwn.
      shared_serials: those that name no drive. unknown_kinds, mixed_groups: who has peers of which kind. unjudged_hosts: host, reason,
      drive_count, drives. fewest_drives: data drives below which a RAID group is compared with nothing.
    - window (null without a publication): first_hour_utc, last_hour_utc of the drive-hours that were looked at; drive_hours by outcome
      (`with a slowdown`, or why there is none), groups_with_gaps, drives_with_gaps,
      paths (drive_id, host, device, path_spans),
      held: rows of status.fct_held_alerts of the last week.
    - thresholds: status_window_days, lagging_hours, stopped_hours, silent_hours, as the publication was made with them.
    - damaged_files: those of the store that the publication reads and that are gone or cut.
    - free_bytes: room on the disk of the warehouse. published_bytes: size of the publication, null without one.
    - failed_build: at and message of the last build, where it failed. other_models: a sentence where other models than these published.
    - custom_failures: a sentence for each custom model or test that failed in the build that published.
    """

    warehouse: str
    at: datetime
    problems: list[str] = field(default_factory=list)
    publication: Row = field(default_factory=dict)
    unbuilt: Row = field(default_factory=dict)
    lost_deliveries: list[int] = field(default_factory=list)
    landed: Row = field(default_factory=dict)
    rejected: Row = field(default_factory=dict)
    unreadable_files: Row = field(default_factory=dict)
    quarantined: Row = field(default_factory=dict)
    freshness: Row | None = None
    inventory: Row | None = None
    window: Row | None = None
    thresholds: Row = field(default_factory=dict)
    damaged_files: list[str] = field(default_factory=list)
    free_bytes: int = 0
    published_bytes: int | None = None
    failed_build: Row | None = None
    other_models: str | None = None
    custom_failures: list[str] = field(default_factory=list)


def listing(connection: duckdb.DuckDBPyConnection, query: str, order: str) -> Row:
    """How many rows a query has, and the first of them in an order."""
    limited = f"select *, count(*) over () as listing_count from ({query}) order by {order} limit {LISTED}"
    rows = fetch(connection, limited)
    counts = [row.pop("listing_count") for row in rows]
    return {"count": counts[0] if counts else 0, "rows": rows}


def in_hours(span: timedelta) -> float:
    """A span in hours, as precise as anybody reads it."""
    return round(span / HOUR, 2)

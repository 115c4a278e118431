"""One drive-hour that has a row, and all that its numbers were made of, as the models and raw hold it."""

from __future__ import annotations

import duckdb

from drivetail.ask.explain.records import HOUR, NAMED_DRIVE, precedence, shifted
from engine.read import Row, fetch
from engine.warehouse import Warehouse

SPAN = {"at": "coalesce(delivered.from_utc, $at)", "until": "coalesce(delivered.to_utc, $at + interval 1 hour)"}

DELIVERED = f"""
with measured as materialized (
    select drive_id, raid_group_id from intermediate.int_drive_hours where hour_utc = $at
),
-- its hour alone first: else the drive of every row of raw is looked up
named as materialized (
    select delivered.*, coalesce(measured.drive_id, {NAMED_DRIVE.format(**SPAN)}) as named
    from raw.drive_hours as delivered
    left join measured on delivered.drive_id = measured.drive_id
    where delivered.hour_utc = $at
)
select
    delivered.* exclude (source), files.source, files.file, files.record_kind, files.ingested_at,
    retired.reason as retired_as, retired.retired_by_delivery_seq
from named as delivered
left join raw.ingested_files as files
    on delivered.delivery_seq = files.delivery_seq and delivered.file_no = files.file_no
left join raw.retired_drive_hours as retired
    on delivered.delivery_seq = retired.delivery_seq
    and delivered.file_no = retired.file_no
    and delivered.row_no = retired.row_no
where delivered.named in (select drive_id from measured where raid_group_id = $group)
order by
    retired_as is not null,
    delivered.is_alias is not null and coalesce(delivered.coverage, 1.0) < delivered.min_coverage,
    coalesce(list_position($precedence, files.source), 99), files.source, coalesce(delivered.coverage, 1.0) desc,
    delivered.collected_at desc nulls last, delivered.drive_id,
    delivered.delivery_seq desc, delivered.file_no desc, delivered.row_no desc
"""
"""Every stored record of the drives of a RAID-hour, `named`: which drive it is of; of each the one that counts first, as in
int_drive_hours__identified: one with enough coverage, then by source precedence; spans that it does not overlap are added up with it.
A device whose serial another device measured in that hour is named by itself.
"""

DRIVES = """
with placed as (
    select drive_id, role, raid_group_id from marts.dim_drive_periods
    where coalesce(valid_from_utc <= $at, true) and coalesce(valid_to_utc > $at, true)
),
elsewhere as (
    select drive_id, raid_group_id from intermediate.int_drive_hours
    where hour_utc = $at and drive_id in (select drive_id from placed where raid_group_id = $group)
)
select measured.*, coalesce(placed.role, 'data') as role, true as has_row, null as reports_from
from intermediate.int_drive_hours as measured
left join placed on measured.drive_id = placed.drive_id
where measured.raid_group_id = $group and measured.hour_utc = $at
union all by name
select placed.drive_id, placed.role, false as has_row, elsewhere.raid_group_id as reports_from
from placed
left join elsewhere on placed.drive_id = elsewhere.drive_id
where placed.raid_group_id = $group and placed.role = 'data' and elsewhere.raid_group_id is distinct from $group
order by has_row desc, latency_us nulls last, drive_id
"""
"""The rows of a RAID-hour by latency, and the data drives that inventory places there in this hour and that have no row there."""


class DriveHour:
    """The drive-hour, its raw records, the drives of its RAID group, and the RAID-hour it is part of."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, measured: Row) -> None:
        self.connection = connection
        self.warehouse = warehouse
        self.measured = measured
        self.drive, self.at, self.group = measured["drive_id"], measured["hour_utc"], measured["raid_group_id"]
        asked = {"at": self.at, "group": self.group}
        delivered = fetch(connection, DELIVERED, {**asked, "precedence": precedence("latency")})
        self.records = [record for record in delivered if record["named"] == self.drive]
        # the first record of a drive that is not retired counts
        counting = {record["named"]: record for record in reversed(delivered) if record["retired_as"] is None}
        self.live = counting[self.drive]
        drives = fetch(connection, DRIVES, asked)
        nothing: Row = dict.fromkeys(("min_coverage", "file", "row_no"))
        self.drives = [{**row, **{name: counting.get(row["drive_id"], nothing)[name] for name in nothing}} for row in drives]
        key = [self.drive, self.at]
        self.mart: Row | None = next(iter(fetch(connection, "from marts.fct_drive_hours where drive_id = ? and hour_utc = ?", key)), None)
        before = shifted(self.at, -HOUR)
        query = "from intermediate.int_raid_hours where raid_group_id = ? and hour_utc in (?, ?)"
        hours = {row["hour_utc"]: row for row in fetch(connection, query, [self.group, self.at, before])}
        self.raid_hour: Row = hours[self.at]
        self.raid_hour_before: Row | None = hours.get(before) if before != self.at else None


def is_covered(record: Row) -> bool:
    """Whether enough of the hour was observed; null coverage stands for all of it."""
    return record["coverage"] is None or bool(record["coverage"] >= record["min_coverage"])

"""One drive-hour that has a row, and all that its numbers were made of, as the models and raw hold it."""

from __future__ import annotations

import duckdb

from drivetail.ask.explain.records import HOUR, NAMED_DRIVE, inventory_periods, precedence, shifted
from engine.read import Row, fetch
from engine.warehouse import Warehouse

COUNTS_FIRST = """
delivered.is_alias is not null and coalesce(delivered.coverage, 1.0) < delivered.min_coverage,
coalesce(list_position($precedence, files.source), 99), files.source, coalesce(delivered.coverage, 1.0) desc,
delivered.collected_at desc nulls last, delivered.drive_id
"""
"""Which record of a drive-hour counts, as in int_drive_hours__identified: one with enough coverage, then by source precedence."""

IS_VALID = "coalesce(described.valid_from_utc <= $at, true) and coalesce(described.valid_to_utc > $at, true)"
"""Whether a period of dim_drive_periods covers the hour."""

COUNTED = ("min_coverage", "read_ios", "write_ios", "read_latency_us", "write_latency_us", "file", "row_no")
"""Columns that a row of the RAID-hour takes from the record that counts."""


class DriveHour:
    """The drive-hour, its raw records, its peers, and the RAID-hour it is part of."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, measured: Row) -> None:
        self.connection = connection
        self.warehouse = warehouse
        self.measured = measured
        self.drive, self.at, self.group = measured["drive_id"], measured["hour_utc"], measured["raid_group_id"]
        delivered = self.delivered()
        self.records = [record for record in delivered if record["named"] == self.drive]
        # the first record of a drive that is not retired counts
        counting = {record["named"]: record for record in reversed(delivered) if record["retired_as"] is None}
        self.live = counting[self.drive]
        self.reported = [
            {**row, **{name: counting[row["drive_id"]][name] for name in COUNTED}}
            for row in self.reported_drives()
            if row["drive_id"] in counting
        ]
        self.silent = self.silent_drives()
        periods = inventory_periods(connection, [row["drive_id"] for row in self.reported], self.at)
        self.periods: dict[str, list[Row]] = {}
        for period in periods:
            self.periods.setdefault(period["drive_id"], []).append(period)
        for row in self.reported:
            counted = self.period_that_counts(row["drive_id"])
            row["role"] = counted["role"] if counted else "data"
        thresholds = {row["name"]: int(row["value"]) for row in fetch(connection, "select * from marts.thresholds where kind = 'all'")}
        self.fewest_peers, self.default_block_bytes = thresholds["min_reporting_drives"], thresholds["default_block_bytes"]
        self.is_covered = self.covers(self.live)
        self.is_peer = bool(measured["is_data_drive"]) and self.is_covered
        self.peers = [row for row in self.reported if row["is_data_drive"] and self.covers(row)]
        marts = fetch(connection, "select * from marts.fct_drive_hours where drive_id = ? and hour_utc = ?", [self.drive, self.at])
        self.mart: Row | None = marts[0] if marts else None
        before = shifted(self.at, -HOUR)
        hours = {
            row["hour_utc"]: row
            for row in fetch(
                connection,
                "select * from intermediate.int_raid_hours where raid_group_id = ? and hour_utc in (?, ?)",
                [self.group, self.at, before],
            )
        }
        self.raid_hour: Row = hours[self.at]
        self.raid_hour_before: Row | None = hours.get(before) if before != self.at else None

    def delivered(self) -> list[Row]:
        """Every stored record of the drives of this RAID-hour, `named`: which drive it is of; of each the one that counts first.

        A device whose serial another device measured in that hour is named by itself.
        """
        return fetch(
            self.connection,
            f"""
            with measured as materialized (
                select drive_id, raid_group_id from intermediate.int_drive_hours where hour_utc = $at
            ),
            -- its hour alone first: else the drive of every row of raw is looked up
            named as materialized (
                select delivered.*, coalesce(measured.drive_id, {NAMED_DRIVE.format(at="$at")}) as named
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
            order by retired_as is not null, {COUNTS_FIRST}, delivered.delivery_seq desc, delivered.file_no desc, delivered.row_no desc
            """,
            {"at": self.at, "group": self.group, "precedence": precedence("latency")},
        )

    def reported_drives(self) -> list[Row]:
        """The rows of the RAID-hour, and where inventory has each drive."""
        return fetch(
            self.connection,
            f"""
            select measured.*, described.raid_group_id as inventory_raid_group_id
            from intermediate.int_drive_hours as measured
            left join marts.dim_drive_periods as described
                on measured.drive_id = described.drive_id and {IS_VALID}
            where measured.raid_group_id = $group and measured.hour_utc = $at
            order by measured.latency_us nulls last, measured.drive_id
            """,
            {"at": self.at, "group": self.group},
        )

    def silent_drives(self) -> list[Row]:
        """Data drives that inventory places here in this hour and that have no row here."""
        return fetch(
            self.connection,
            f"""
            with elsewhere as (
                select drive_id, raid_group_id from intermediate.int_drive_hours where hour_utc = $at
            )
            select described.drive_id, described.role, elsewhere.raid_group_id as reports_from
            from marts.dim_drive_periods as described
            left join elsewhere on described.drive_id = elsewhere.drive_id
            where described.raid_group_id = $group and {IS_VALID}
                and described.role = 'data' and elsewhere.raid_group_id is distinct from $group
            order by described.drive_id
            """,
            {"at": self.at, "group": self.group},
        )

    def period_that_counts(self, drive_id: str) -> Row | None:
        """The period that covers the hour: the latest that names the row's group, else the latest."""
        periods = self.periods.get(drive_id, [])
        own = [period for period in periods if period["raid_group_id"] == self.group]
        return next(iter([*own, *periods]), None)

    @staticmethod
    def covers(record: Row) -> bool:
        """Whether enough of the hour was observed; null coverage stands for all of it."""
        return record["coverage"] is None or bool(record["coverage"] >= record["min_coverage"])

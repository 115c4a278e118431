"""The peers of a drive-hour: RAID group, role and width, the drives of the group, and their median."""

from __future__ import annotations

from drivetail.ask.explain.drive_hour import DriveHour
from drivetail.ask.explain.records import PERIOD_COLUMNS, inventory_periods
from drivetail.ask.explain.text import num
from drivetail.terminal import Columns, block, table_with_files
from engine.read import Row

COLUMNS: Columns = {
    "  drive": "drive",
    "role": "role",
    "latency_us": ("latency_us", num),
    "in the median": "in_median",
    "S": ("slowdown", num),
    "I/Os": "io_count",
    "I/O bytes": ("io_size_bytes", num),
    "coverage": ("coverage", num),
    "row": "row_no",
}


def place_block(hour: DriveHour) -> str:
    """Group, role and width."""
    periods = inventory_periods(hour.connection, hour.drive, hour.at)
    own = [period for period in periods if period["raid_group_id"] == hour.group]
    if periods:
        # the latest that names the row's group, else the latest
        counted = (own or periods)[0]
        span = "".join(f" {word} {counted[word]}" for word in ("from", "to") if counted[word] != "open")
        role = f"{counted['role']}: by the inventory period of {counted['raid_group_id']}{span}"
    else:
        role = "data: no inventory period covers the hour"
    group = f"{hour.group}: its row names it"
    if own:
        group += ", and so does inventory"
    elif periods:
        group += f"; inventory names {', '.join(sorted({period['raid_group_id'] for period in periods}))}, and the row counts"
    there = sum(bool(row["is_data_drive"]) for row in hour.drives)
    missing = sum(not row["has_row"] and row["reports_from"] is None for row in hour.drives)
    width = f"{hour.raid_hour['data_drive_count']} data drives: {there} with a row, {missing} in inventory without a row"
    return block(
        "RAID group and role",
        [("RAID group", group), ("role", role), ("N", width)],
        table_with_files(periods, PERIOD_COLUMNS) if periods else "",
    )


def peers_block(hour: DriveHour) -> str:
    """Peers of the hour, those in the median, and the median."""
    rows = [
        {**row, "drive": ("> " if row["drive_id"] == hour.drive else "  ") + row["drive_id"], "in_median": _in_median(row)}
        for row in hour.drives
    ]
    rows.sort(key=lambda row: row["in_median"] != "yes")  # stable: by latency within
    count = sum(row["in_median"] == "yes" for row in rows)
    median = f"median latency of {count}: "
    median += f"{num(hour.raid_hour['median_latency_us'])} us" if hour.raid_hour["is_valid"] else "not valid: they are too few, or it is 0"
    return block(f"The drives of {hour.group} in this hour, by latency", table_with_files(rows, COLUMNS), median)


def _in_median(row: Row) -> str:
    if not row["has_row"]:
        return f"no: reports from {row['reports_from']}" if row["reports_from"] else "no: no row in this hour"
    if not row["is_data_drive"]:
        return f"no: role {row['role']}"
    if not row["is_peer"]:
        return f"no: coverage below {num(row['min_coverage'])}"
    return "yes" if row["latency_us"] is not None else "no: no I/O" if row["io_count"] == 0 else "no: no latency"

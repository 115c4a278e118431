"""The peers of a drive-hour: RAID group, role and width, the drives of the group, and their median."""

from __future__ import annotations

import statistics

from drivetail.ask.explain.drive_hour import DriveHour
from drivetail.ask.explain.records import PERIOD_COLUMNS, period_rows
from drivetail.ask.explain.text import median_text, num, right_aligned, when
from drivetail.console import Columns, block, facts, table_with_files
from engine.read import Row


def place_block(drive_hour: DriveHour) -> str:
    """Group, role and width."""
    periods = drive_hour.periods.get(drive_hour.drive, [])
    counted = drive_hour.period_that_counts(drive_hour.drive)
    if counted is None:
        role = "data: no inventory period covers the hour"
    else:
        since, until = counted["valid_from"], counted["valid_to"]
        role = f"{counted['role']}: by the inventory period of {counted['raid_group_id']}"
        role += (f" from {when(since)}" if since else "") + (f" to {when(until)}" if until else "")
    named = {period["raid_group_id"] for period in periods}
    group = f"{drive_hour.group}: its row names it"
    if named and drive_hour.group not in named:
        group += f"; inventory names {', '.join(sorted(named))}, and the row counts"
    elif drive_hour.group in named:
        group += ", and so does inventory"
    expected = [row for row in drive_hour.reported if row["inventory_raid_group_id"] == drive_hour.group and row["role"] == "data"]
    unexpected = [row for row in drive_hour.reported if row["inventory_raid_group_id"] != drive_hour.group and row["is_data_drive"]]
    absent = [row for row in drive_hour.silent if row["reports_from"] is not None]
    missing = [row for row in drive_hour.silent if row["reports_from"] is None]
    counts = {
        "with a row and in inventory": expected,
        "in inventory without a row": missing,
        "with a row and not in inventory": unexpected,
        "in inventory that report from another RAID group, not counted": absent,
    }
    terms = ", ".join(f"{len(drives)} {words}" for words, drives in counts.items() if drives)
    return block(
        "RAID group and role",
        facts([("RAID group", group), ("role", role), ("N", f"{drive_hour.raid_hour['data_drive_count']} data drives: {terms}")]),
        table_with_files(period_rows(periods), PERIOD_COLUMNS) if periods else "",
    )


def peers_block(drive_hour: DriveHour) -> str:
    """Who was there, who is in the median, and the median."""
    rows: list[Row] = []
    for row in drive_hour.reported:
        if not row["is_data_drive"]:
            why = f"no: role {row['role']}"
        elif not drive_hour.covers(row):
            why = f"no: coverage below {num(row['min_coverage'])}"
        else:
            why = "yes" if row["latency_us"] is not None else "no: no I/O" if row["io_count"] == 0 else "no: no latency"
        rows.append({**row, "in_median": why})
    for row in drive_hour.silent:
        why = f"no: reports from {row['reports_from']}" if row["reports_from"] else "no: no row in this hour"
        nothing = dict.fromkeys(("latency_us", "slowdown", "io_count", "io_size_bytes", "coverage", "row_no", "file"))
        rows.append({**nothing, **row, "in_median": why})
    rows.sort(key=lambda row: row["in_median"] != "yes")  # stable: by latency within
    shown = [{**row, "drive": _marked(drive_hour, row["drive_id"])} for row in rows]
    columns: Columns = {"  drive": "drive", "role": "role"}
    columns |= right_aligned(shown, {"latency_us": "latency_us"})
    columns["in the median"] = "in_median"
    columns |= right_aligned(shown, {"S": "slowdown", "I/Os": "io_count", "I/O bytes": "io_size_bytes", "coverage": "coverage"})
    columns["row"] = "row_no"
    latencies = [row["latency_us"] for row in drive_hour.peers if row["latency_us"] is not None]
    if drive_hour.raid_hour["is_valid"]:
        median = f"median latency: {median_text(latencies)} us"
        if statistics.median(latencies) != drive_hour.raid_hour["median_latency_us"]:
            median += f"; the RAID-hour has {num(drive_hour.raid_hour['median_latency_us'])} us"
    elif len(latencies) < drive_hour.fewest_peers:
        median = f"{len(latencies)} latencies are fewer than {drive_hour.fewest_peers}: no valid median"
    else:
        median = f"median latency: {median_text(latencies)} us: nothing can be divided by it"
    return block(f"The drives of {drive_hour.group} in this hour, by latency", table_with_files(shown, columns), median)


def _marked(drive_hour: DriveHour, drive_id: str) -> str:
    """The id, with a mark at the drive that is asked about."""
    return ("> " if drive_id == drive_hour.drive else "  ") + drive_id

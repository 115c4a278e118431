"""How the models combined the numbers of a drive-hour and its RAID-hour, each formula with the numbers it was given."""

from __future__ import annotations

import statistics

from drivetail.ask.explain.drive_hour import DriveHour
from drivetail.ask.explain.text import median_text, num
from drivetail.console import block, facts
from engine.read import fetch


def latency_block(drive_hour: DriveHour) -> str:
    """Coverage, and the merge of the two directions."""
    live, latency = drive_hour.live, num(drive_hour.measured["latency_us"])
    if live["read_ios"] is None or live["write_ios"] is None:
        is_given = drive_hour.measured["latency_us"] is not None
        merged = f"latency_us = {latency} us, delivered merged" if is_given else "no latency was delivered"
    elif live["read_ios"] + live["write_ios"] == 0:
        merged = "no I/O, so no latency"
    elif drive_hour.measured["latency_us"] is None:
        merged = "no latency: the merged one is not finite"
    else:
        terms = [
            f"{num(live[f'{way}_ios'])} * {num(live[f'{way}_latency_us'])}" if live[f"{way}_latency_us"] is not None else "0"
            for way in ("read", "write")
        ]
        formula = "(read_ios * read_latency_us + write_ios * write_latency_us) / (read_ios + write_ios)"
        merged = f"{formula} = ({terms[0]} + {terms[1]}) / {num(live['read_ios'] + live['write_ios'])} = {latency} us"
    if live["coverage"] is None:
        coverage = "not given: all of the hour"
    else:
        sign, end = (">=", "it counts") if drive_hour.is_covered else ("<", "it is not compared with its peers")
        coverage = f"{num(live['coverage'])} {sign} min_coverage {num(live['min_coverage'])}: {end}"
    return block("Latency", facts([("coverage", coverage), ("merged", merged), ("I/O size", _size_text(drive_hour))]))


def _size_text(drive_hour: DriveHour) -> str | None:
    """The inputs of the size of an I/O."""
    live, size = drive_hour.live, drive_hour.measured["io_size_bytes"]
    if size is None:
        return None
    count = num(drive_hour.measured["io_count"])
    if live["read_blocks"] is None or live["write_blocks"] is None:
        return f"{num(live['bytes'])} bytes / {count} I/Os = {num(size)} bytes"
    block_bytes = drive_hour.default_block_bytes if live["block_bytes"] is None else live["block_bytes"]
    return f"({num(live['read_blocks'])} + {num(live['write_blocks'])}) * {num(block_bytes)} / {count} I/Os = {num(size)} bytes"


def formulas_block(drive_hour: DriveHour) -> str:
    """Slowdown, imbalances and the slowdowns by direction, each with the numbers it divides."""
    measured = drive_hour.measured
    return block(
        "Against its peers",
        facts(
            [
                ("S", _slowdown_text(drive_hour)),
                ("RI", _ratio(drive_hour, "rate_imbalance", "io_count", [row["io_count"] for row in drive_hour.peers], "I/Os")),
                ("ZI", _ratio(drive_hour, "size_imbalance", "io_size_bytes", [row["io_size_bytes"] for row in drive_hour.peers], "bytes")),
                ("read slowdown", _direction(drive_hour, "read")),
                ("write slowdown", _direction(drive_hour, "write")),
                ("slow", _flag(drive_hour, "is_slow")),
                ("mildly slow", _flag(drive_hour, "is_slow_15")),
                ("the hour before", {True: "slow", False: "not slow", None: "had no slowdown here"}[measured["was_slow"]])
                if measured["slowdown"] is not None
                else ("the hour before", None),
            ]
        ),
    )


def _flag(drive_hour: DriveHour, name: str) -> str | None:
    """A flag of fct_drive_hours."""
    return None if drive_hour.mart is None else "yes" if drive_hour.mart[name] else "no"


def _slowdown_text(drive_hour: DriveHour) -> str:
    """L / median = S, or why there is none."""
    measured = drive_hour.measured
    if measured["slowdown"] is not None:
        return f"{num(measured['latency_us'])} / {num(measured['median_latency_us'])} = {num(measured['slowdown'])}"
    if not measured["is_data_drive"]:
        return "none: only data drives have one"
    reasons = {
        "low_coverage": "too little of the hour was observed",
        "no_io": "the drive did no I/O",
        "too_few_drives": f"fewer than {drive_hour.fewest_peers} drives have a latency",
        "zero_median": "the median is 0",
    }
    return f"none, {measured['exclusion_reason']}: {reasons[measured['exclusion_reason']]}"


def _ratio(drive_hour: DriveHour, name: str, measure: str, values: list[float | None], unit: str) -> str:
    """A value over its peers' median."""
    if drive_hour.measured[name] is None:
        if not drive_hour.is_peer:
            return "none: " + (
                "too little of the hour was observed" if drive_hour.measured["is_data_drive"] else "only data drives have one"
            )
        return "none: the median is 0" if drive_hour.measured[measure] is not None else "none: no I/O, or not known"
    known = [float(value) for value in values if value is not None]
    divided = f"{num(drive_hour.measured[measure])} / {num(statistics.median(known))} {unit} = {num(drive_hour.measured[name])}"
    return f"{divided}; the median: {median_text(known)}"


def _direction(drive_hour: DriveHour, way: str) -> str:
    """The slowdown of reads or writes alone."""
    name = f"{way}_slowdown"
    known = [
        float(row[f"{way}_latency_us"])
        for row in drive_hour.peers
        if row["read_ios"] is not None and row["write_ios"] is not None and row[f"{way}_ios"] > 0
    ]
    if drive_hour.measured[name] is None:
        if not drive_hour.is_peer:
            return "none"
        split = drive_hour.live["read_ios"] is not None and drive_hour.live["write_ios"] is not None
        if not split:
            return "none: directions were delivered merged"
        if drive_hour.live[f"{way}_ios"] == 0:
            return f"none: no {way}s"
        if len(known) < drive_hour.fewest_peers:
            return f"none: {len(known)} drives with {way}s are fewer than {drive_hour.fewest_peers}"
        return "none: the median is 0"
    divided = f"{num(drive_hour.live[f'{way}_latency_us'])} / {num(statistics.median(known))} us = {num(drive_hour.measured[name])}"
    return f"{divided}; the median: {median_text(known)}"


def raid_hour_block(drive_hour: DriveHour) -> str:
    """Tails, throughput and transition of the RAID-hour."""
    hour, before = drive_hour.raid_hour, drive_hour.raid_hour_before
    if not hour["is_valid"]:
        return block("The RAID-hour", "not valid: it has no row in fct_raid_hours")
    slowest = f"{num(hour['tail_1'])} ({hour['slowest_drive_id']})"
    reporting = f"{hour['reporting_drive_count']} with a slowdown of N = {hour['data_drive_count']}"
    if before is None or not before["is_valid"]:
        rio = "none: the hour before is not valid"
    elif hour["rio_degradation"] is not None:
        rio = f"{num(before['raid_io_count'])} I/Os the hour before / {num(hour['raid_io_count'])} = {num(hour['rio_degradation'])}"
    elif hour["raid_io_count"] is None or before["raid_io_count"] is None:
        rio = "none: an I/O count is unknown"
    elif hour["raid_io_count"] == 0:
        rio = "none: no I/O in this hour"
    else:
        rio = "none: not the same drives, with enough coverage, in both hours"
    key = [drive_hour.group, drive_hour.at]
    (tail,) = fetch(drive_hour.connection, "select * from marts.fct_raid_hours where raid_group_id = ? and hour_utc = ?", key)
    return block(
        "The RAID-hour",
        facts(
            [
                ("tails 1, 2, 3", f"{slowest}, {num(hour['tail_2'])}, {num(hour['tail_3'])}"),
                ("tail hour", ("yes" if tail["is_tail_hour"] else "no") + f", mildly {'yes' if tail['is_tail_hour_15'] else 'no'}"),
                ("drives", f"{reporting}, {hour['slow_drive_count']} slow"),
                ("I/Os", num(hour["raid_io_count"])),
                ("RIO degradation", rio),
                ("transition", hour["transition"] or "none: the hour before is not valid"),
                ("tail 1 before", num(before["tail_1"]) if before and before["is_valid"] else None),
            ]
        ),
    )

"""How the models combined the numbers of a drive-hour and its RAID-hour, each formula with the numbers it was given."""

from __future__ import annotations

from drivetail.ask.explain.drive_hour import DriveHour, is_covered
from drivetail.ask.explain.text import num
from drivetail.terminal import block
from engine.read import fetch

DEFAULT_BLOCK = "select value from marts.thresholds where name = 'default_block_bytes'"

REASONS = {
    "low_coverage": "too little of the hour was observed",
    "no_io": "the drive did no I/O",
    "too_few_drives": "too few drives have a latency",
    "zero_median": "the median is 0",
}
"""An exclusion_reason in words."""

FLAGS = {"slow": "is_slow", "mildly slow": "is_slow_15"}
WAS_SLOW = {True: "slow", False: "not slow", None: "had no slowdown here"}


def latency_block(hour: DriveHour) -> str:
    """Coverage, the merge of the two directions, and the size of an I/O."""
    live, latency = hour.live, hour.measured["latency_us"]
    if latency is None:
        merged = "none: the drive did no I/O, or its latency is unknown"
    elif live["read_ios"] is None or live["write_ios"] is None:
        merged = f"latency_us = {num(latency)} us, delivered merged"
    else:
        ways = [(live[f"{way}_ios"], live[f"{way}_latency_us"]) for way in ("read", "write")]
        reads, writes = ("0" if us is None else f"{num(ios)} * {num(us)}" for ios, us in ways)
        formula = "(read_ios * read_latency_us + write_ios * write_latency_us) / (read_ios + write_ios)"
        merged = f"{formula} = ({reads} + {writes}) / {num(live['read_ios'] + live['write_ios'])} = {num(latency)} us"
    if live["coverage"] is None:
        coverage = "not given: all of the hour"
    else:
        sign, end = (">=", "it counts") if is_covered(live) else ("<", "it is not compared with its peers")
        coverage = f"{num(live['coverage'])} {sign} min_coverage {num(live['min_coverage'])}: {end}"
    return block("Latency", [("coverage", coverage), ("merged", merged), ("I/O size", _size_text(hour))])


def _size_text(hour: DriveHour) -> str | None:
    live, size = hour.live, hour.measured["io_size_bytes"]
    if size is None:
        return None
    total = f"{num(live['bytes'])} bytes"
    if live["read_blocks"] is not None and live["write_blocks"] is not None:
        ((default,),) = hour.connection.execute(DEFAULT_BLOCK).fetchall()
        block_bytes = default if live["block_bytes"] is None else live["block_bytes"]
        total = f"({num(live['read_blocks'])} + {num(live['write_blocks'])}) * {num(block_bytes)}"
    return f"{total} / {num(hour.measured['io_count'])} I/Os = {num(size)} bytes"


def formulas_block(hour: DriveHour) -> str:
    """Slowdown, imbalances and the slowdowns by direction, each with the numbers it divides."""
    reason, was_slow = hour.measured["exclusion_reason"], WAS_SLOW[hour.measured["was_slow"]]
    return block(
        "Against its peers",
        [
            ("S", _over_median(hour, "slowdown", "latency_us", "us", f"{reason}: {REASONS[reason]}" if reason else "")),
            ("RI", _over_median(hour, "rate_imbalance", "io_count", "I/Os")),
            ("ZI", _over_median(hour, "size_imbalance", "io_size_bytes", "bytes")),
            *((f"{way} slowdown", _over_median(hour, f"{way}_slowdown", f"{way}_latency_us", "us")) for way in ("read", "write")),
            *((name, hour.mart and ("yes" if hour.mart[flag] else "no")) for name, flag in FLAGS.items()),
            ("the hour before", was_slow if hour.measured["slowdown"] is not None else None),
        ],
    )


def _over_median(hour: DriveHour, name: str, measure: str, unit: str, reason: str = "") -> str:
    """A value over its peers' median, or why it is not given."""
    measured = hour.measured
    value, median = measured[measure], measured[f"median_{measure}"]
    if measured[name] is not None:
        return f"{num(value)} / {num(median)} {unit} = {num(measured[name])}"
    if not measured["is_data_drive"]:
        return "none: only data drives have one"
    if not measured["is_peer"]:
        return f"none, low_coverage: {REASONS['low_coverage']}"
    if reason:
        return f"none, {reason}"
    if value is None:
        return f"none: the drive has no {measure} in this hour"
    return f"none: too few peers have {measure} in this hour, or their median is 0"


def raid_hour_block(hour: DriveHour) -> str:
    """Tails, throughput and transition of the RAID-hour."""
    now, before = hour.raid_hour, hour.raid_hour_before
    if not now["is_valid"]:
        return block("The RAID-hour", "not valid: it has no row in fct_raid_hours")
    if before is None or not before["is_valid"]:
        before, rio = None, "none: the hour before is not valid"
    elif now["rio_degradation"] is None:
        rio = "none: an I/O count is unknown or 0, or the drives with enough coverage are not those of the hour before"
    else:
        rio = f"{num(before['raid_io_count'])} I/Os the hour before / {num(now['raid_io_count'])} = {num(now['rio_degradation'])}"
    key = [hour.group, hour.at]
    (tail,) = fetch(hour.connection, "select * from marts.fct_raid_hours where raid_group_id = ? and hour_utc = ?", key)
    is_tail, is_mild = ("yes" if tail[flag] else "no" for flag in ("is_tail_hour", "is_tail_hour_15"))
    reporting = f"{now['reporting_drive_count']} with a slowdown of N = {now['data_drive_count']}"
    return block(
        "The RAID-hour",
        [
            ("tails 1, 2, 3", f"{num(now['tail_1'])} ({now['slowest_drive_id']}), {num(now['tail_2'])}, {num(now['tail_3'])}"),
            ("tail hour", f"{is_tail}, mildly {is_mild}"),
            ("drives", f"{reporting}, {now['slow_drive_count']} slow"),
            ("I/Os", num(now["raid_io_count"])),
            ("RIO degradation", rio),
            ("transition", now["transition"] or "none: the hour before is not valid"),
            ("tail 1 before", before and num(before["tail_1"])),
        ],
    )

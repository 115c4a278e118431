"""One name for each SMART attribute and health counter, whatever a vendor or a tool calls it: smartmontools' own, in lower case."""

from __future__ import annotations

import re

ATA_NAMES = {
    1: "raw_read_error_rate", 2: "throughput_performance", 3: "spin_up_time", 4: "start_stop_count", 5: "reallocated_sector_ct",
    7: "seek_error_rate", 8: "seek_time_performance", 9: "power_on_hours", 10: "spin_retry_count", 11: "calibration_retry_count",
    12: "power_cycle_count", 13: "read_soft_error_rate", 22: "helium_level", 177: "wear_leveling_count", 181: "program_fail_cnt_total",
    182: "erase_fail_count_total", 183: "runtime_bad_block", 184: "end_to_end_error", 187: "reported_uncorrect", 188: "command_timeout",
    189: "high_fly_writes", 190: "airflow_temperature_cel", 191: "g_sense_error_rate", 192: "power_off_retract_count",
    193: "load_cycle_count", 194: "temperature_celsius", 195: "hardware_ecc_recovered", 196: "reallocated_event_count",
    197: "current_pending_sector", 198: "offline_uncorrectable", 199: "udma_crc_error_count", 200: "multi_zone_error_rate",
    220: "disk_shift", 222: "loaded_hours", 240: "head_flying_hours", 241: "total_lbas_written", 242: "total_lbas_read",
}  # fmt: skip
"""By number, those of which most vendors agree what they mean. Any other number is what smartctl calls it, or `smart_NUMBER`."""
_WORDS = {
    1: "read", 5: "realloc|retired|retried|bad", 177: "leveling", 184: "end_to_end|detect", 187: "unc|reported", 190: "temperature",
    191: "sense", 192: "retract|power|shutdown", 195: "ecc(?!_unc)", 196: "realloc|retried", 197: "pending", 198: "unc", 199: "crc",
    240: "hours", 241: "lbas", 242: "lbas",
}  # fmt: skip
"""By number, a pattern for the names that tools give it when it has its usual meaning. Default: the first word of our name."""
TEMPERATURES = (190, 194)
HOURS = (9, 222, 240)
COMMAND_TIMEOUT = 188
MOST = 2**53
"""More than any counter has: what is beyond is a vendor's own encoding."""


def ata_name(number: int, given: str | None = None) -> str:
    """The name of an ATA attribute. given: what a tool calls it."""
    own = re.sub(r"[^a-z0-9]+", "_", (given or "").lower()).strip("_")
    is_unnamed = not own or re.match("unknown_|vendor_specific$", own)
    known = ATA_NAMES.get(number)
    # smartctl knows drives whose vendors count something else there
    if known and (is_unnamed or re.search(_WORDS.get(number, known.partition("_")[0]), own)):
        return known
    # two numbers may share a name
    return f"smart_{number}" if is_unnamed or own in ("not_in_use", "not_supported", *ATA_NAMES.values()) else own


def ata_raw(number: int, raw: int | None) -> int | None:
    """The raw value of an ATA attribute, without what vendors pack above it: the lowest and highest temperature, the minutes and seconds of
    hours, commands that timed out by how long they took.
    """
    if raw is None or raw < 0:
        return None
    if number in TEMPERATURES or number == COMMAND_TIMEOUT:
        raw %= 2**16
    elif number in HOURS:
        raw %= 2**32
    return raw if raw <= MOST else None

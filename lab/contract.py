"""Values that a bundle may have, and the tables of the lab's raw store with their columns.

Every table has `experiment_id` and `delivery_seq` (from 1, of that experiment). A table that a tool fills also has `listing`, the row of
runs.csv that its file is listed in (from 1).
"""

from __future__ import annotations

import polars as pl

TEXT, COUNT, REAL, TIME, FLAG = pl.String(), pl.Int64(), pl.Float64(), pl.Datetime("us"), pl.Boolean()

Columns = dict[str, pl.DataType]

FORMAT = 1
KINDS = ("sync_writes", "before_after", "read_variability", "hdfs", "other")
EXPECTED_RUNS = {"sync_writes": 30, "before_after": 10}
"""Runs that an experiment of a kind should have, where its manifest does not say; of any other kind one."""
LARGE_EXTENT_BYTES = 64 << 20
DEVICE_KINDS = ("disk", "ssd", "other")
PHASES = ("before", "after", "stress", "")
PASSES = ("throughput", "latency", "")

MISSING_FILE, OUTSIDE_BUNDLE, BAD_ROW = "missing_file", "outside_bundle", "bad_row"
UNKNOWN_TOOL, UNKNOWN_CONFIG = "unknown_tool", "unknown_config"
UNREADABLE, NO_RESULT, NO_CLOCK = "unreadable", "no_result", "no_clock"
REASONS = (MISSING_FILE, OUTSIDE_BUNDLE, UNKNOWN_TOOL, UNKNOWN_CONFIG, BAD_ROW, UNREADABLE, NO_RESULT, NO_CLOCK)
"""Why a file is refused."""

MANIFEST: dict[str, Columns] = {
    "experiments": {
        "kind": TEXT, "title": TEXT, "expected_runs": COUNT, "large_extent_bytes": COUNT, "started_at": TIME,
        "machine_name": TEXT, "machine_cpu": TEXT, "machine_memory_bytes": COUNT, "machine_kernel": TEXT, "machine_os": TEXT,
    },
    "devices": {
        "device_id": TEXT, "kind": TEXT, "kernel_name": TEXT, "major_minor": TEXT, "vendor": TEXT, "model": TEXT, "firmware": TEXT,
        "serial": TEXT, "capacity_bytes": COUNT, "interface": TEXT, "flash_cell": TEXT, "rpm": COUNT,
    },
    "filesystems": {
        "filesystem_id": TEXT, "device_id": TEXT, "type": TEXT, "block_bytes": COUNT, "mount_options": TEXT, "mkfs_options": TEXT,
        "mount_point": TEXT, "partition_start_sectors": COUNT,
    },
    "configs": {"config_id": TEXT, "device_id": TEXT, "filesystem_id": TEXT, "is_default": FLAG, "writers": COUNT},
    "config_factors": {"config_id": TEXT, "factor": TEXT, "value": TEXT},
}  # fmt: skip
"""The tables that experiment.toml fills, each with `revision` as well."""

FILES: Columns = {
    "listing": COUNT, "revision": COUNT, "file": TEXT, "tool": TEXT, "config_id": TEXT, "phase": TEXT, "run_number": COUNT, "pass": TEXT,
    "offset_s": REAL, "device_id": TEXT, "process_count": COUNT,
    "bytes": COUNT, "sha256": TEXT, "listed_as": TEXT, "reason": TEXT, "message": TEXT, "rows_parsed": COUNT, "lines_rejected": COUNT,
    "first_rejected": TEXT, "ingested_at": TIME, "notes": TEXT, "tool_version": TEXT,
}  # fmt: skip
"""A row of runs.csv and what became of its file. `reason` is null where it was taken. `listed_as`: a digest of content and row.
`notes`: what its reader left out and why. `tool_version`: of the program that wrote it, where the file says so.
"""


class LabError(RuntimeError):
    """A bundle cannot be taken, or an experiment cannot be asked; the message says what, where and what to do. Nothing has changed."""


class Refused(Exception):
    """A file of a bundle is refused; the others are taken. `reason` is one of REASONS."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

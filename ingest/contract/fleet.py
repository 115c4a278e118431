"""The columns of every raw table, in contract order, with their types.

Contract columns are what a delivery may hold (docs/contract, section 2); raw columns add where a record came from:
`delivery_seq`, `file_no` (from 1, over the files of the delivery) and `row_no` (data row in its file, from 1).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from ingest.contract.values import MEASURED_KINDS, RAW_KINDS, RECORD_KINDS

TEXT, COUNT, REAL, TIME, DAY, FLAG = pl.String(), pl.Int64(), pl.Float64(), pl.Datetime("us"), pl.Date(), pl.Boolean()


CONTRACT: dict[str, dict[str, pl.DataType]] = {
    "drive_hours": {
        "hour_utc": TIME,
        "drive_id": TEXT,
        "raid_group_id": TEXT,
        "read_ios": COUNT,
        "write_ios": COUNT,
        "read_latency_us": REAL,
        "write_latency_us": REAL,
        "read_blocks": COUNT,
        "write_blocks": COUNT,
        "block_bytes": COUNT,
        "read_latency_per_block_us": REAL,
        "write_latency_per_block_us": REAL,
        "latency_us": REAL,
        "io_count": COUNT,
        "bytes": COUNT,
        "coverage": REAL,
        "collected_at": TIME,
    },
    "drive_events": {
        "occurred_at": TIME,
        "drive_id": TEXT,
        "event_type": TEXT,
        "raid_group_id": TEXT,
        "slot": TEXT,
        "ended_at": TIME,
        "detail": TEXT,
        "collected_at": TIME,
    },
    "drives": {
        "drive_id": TEXT,
        "raid_group_id": TEXT,
        "role": TEXT,
        "kind": TEXT,
        "slot": TEXT,
        "vendor": TEXT,
        "model": TEXT,
        "firmware": TEXT,
        "flash_cell": TEXT,
        "capacity_bytes": COUNT,
        "rpm": COUNT,
        "interface": TEXT,
        "raid_level": TEXT,
        "host": TEXT,
        "enclosure": TEXT,
        "site": TEXT,
        "timezone": TEXT,
        "deployed_on": DAY,
        "valid_from": TIME,
        "valid_to": TIME,
        "collected_at": TIME,
    },
    # one SMART attribute, or one number of a drive's health log, as it was read at an instant
    "drive_health": {
        "read_at": TIME,
        "drive_id": TEXT,
        "attribute": TEXT,
        "raw_value": COUNT,
        "normalised_value": COUNT,
        "collected_at": TIME,
    },
    # I/Os of an hour that took up to `upper_us`, and more than the bucket below; buckets double, and empty ones are left out
    "drive_latencies": {
        "hour_utc": TIME,
        "drive_id": TEXT,
        "upper_us": REAL,
        "io_count": COUNT,
        "collected_at": TIME,
    },
    # `HOST/DEVICE` or `wwn:...` -> serial number, for a period
    "drive_aliases": {
        "alias": TEXT,
        "drive_id": TEXT,
        "valid_from": TIME,
        "valid_to": TIME,
        "collected_at": TIME,
    },
    # of two labels of a drive take the greater, column by column: the later day, then the word `slow`
    "labels": {
        "drive_id": TEXT,
        "labelled_on": DAY,
        "verdict": TEXT,
        "labelled_by": TEXT,
        "collected_at": TIME,
    },
    # reads of one kind of a drive in a slice of a probe of `suspect_id`; `other_ios`: I/Os of others on it meanwhile
    "drive_probes": {
        "probed_at": TIME,
        "suspect_id": TEXT,
        "drive_id": TEXT,
        "slice_no": COUNT,
        "pattern": TEXT,
        "read_count": COUNT,
        "failed_count": COUNT,
        "seconds": REAL,
        "mean_us": REAL,
        "p50_us": REAL,
        "p90_us": REAL,
        "p95_us": REAL,
        "p99_us": REAL,
        "other_ios": COUNT,
        "read_by": TEXT,
        "collected_at": TIME,
    },
}
# a drive over a part of an hour: the columns of a drive-hour but those per block
CONTRACT["drive_samples"] = {
    "from_utc": TIME,
    "to_utc": TIME,
    **{name: kind for name, kind in CONTRACT["drive_hours"].items() if name != "hour_utc" and not name.endswith("_per_block_us")},
}

# One record per key is live; the others of that key lost a conflict (OP-08).
KEY: dict[str, tuple[str, ...]] = {
    "drive_hours": ("drive_id", "hour_utc"),
    "drive_samples": ("drive_id", "from_utc", "to_utc"),
    "drive_events": ("drive_id", "occurred_at", "event_type"),
    "drives": ("drive_id", "valid_from"),
    "drive_health": ("drive_id", "read_at", "attribute"),
    "drive_latencies": ("drive_id", "hour_utc", "upper_us"),
    "drive_aliases": ("alias", "valid_from"),
    "labels": ("drive_id",),
    "drive_probes": ("drive_id", "probed_at", "suspect_id", "pattern", "slice_no"),
}

LONGEST_NAME_BYTES = 500
"""Greatest length of the name of a drive, a RAID group or anything else, in UTF-8. No source writes a longer one."""

NAMES: dict[str, tuple[str, ...]] = {
    kind: tuple(name for name, dtype in columns.items() if dtype == TEXT and name != "detail") for kind, columns in CONTRACT.items()
}
"""The columns of names: every text but the free one."""


def key_of(record_kind: str, columns: Collection[str]) -> tuple[str, ...]:
    """The key of records with these columns. Of what hosts saw (`source`) more is part of it: two hosts may claim one serial, and a device
    may have several spans in an hour.
    """
    seen = {"drives": ("host",), "drive_hours": ("from_utc",), "drive_latencies": ("from_utc",)}
    return (*KEY[record_kind], *(seen.get(record_kind, ()) if "source" in columns else ()))


# Every inner list is one way to be complete: a file needs all the columns of at least one.
REQUIRED: dict[str, tuple[tuple[str, ...], ...]] = {
    "drive_hours": (
        ("hour_utc", "drive_id", "raid_group_id", "read_ios", "write_ios", "read_latency_us", "write_latency_us"),
        ("hour_utc", "drive_id", "raid_group_id", "latency_us"),
    ),
    "drive_events": (("occurred_at", "drive_id", "event_type"),),
    "drives": (("drive_id", "raid_group_id"),),
    "drive_health": (("read_at", "drive_id", "attribute", "raw_value"), ("read_at", "drive_id", "attribute", "normalised_value")),
}


@dataclass(frozen=True)
class Layout:
    """Allowed contents of a delivered file: `columns` that are read, and the ways in which it is complete."""

    columns: Collection[str]
    required: tuple[tuple[str, ...], ...]


LAYOUT = {kind: Layout(tuple(CONTRACT[kind]), REQUIRED[kind]) for kind in RECORD_KINDS}

ORIGIN: dict[str, pl.DataType] = {"delivery_seq": COUNT, "file_no": COUNT, "row_no": COUNT}

# How the delivery was asked to be read; part of a drive-hour because it decides what the hour counts for.
OPTIONS: dict[str, dict[str, pl.DataType]] = {
    kind: {"min_coverage": REAL, "declared_kind": TEXT} if kind in MEASURED_KINDS else {} for kind in RAW_KINDS
}

RAW: dict[str, dict[str, pl.DataType]] = {kind: {**CONTRACT[kind], **OPTIONS[kind], **ORIGIN} for kind in RAW_KINDS}

# Further columns of a record from a source that sees drives from a host: its source, whether drive_id is an alias
# (`HOST/DEVICE`, `wwn:...`) and not a serial number, whether raid_group_id is only the host the drive is in, the name of its array there,
# and the span within the hour that was measured: null where it begins or ends with the hour (ingest/reading/spans.py).
_SEEN: dict[str, pl.DataType] = {"source": TEXT, "is_alias": FLAG}
_SPAN: dict[str, pl.DataType] = {"from_utc": TIME, "to_utc": TIME}
IDENTITY: dict[str, dict[str, pl.DataType]] = {
    "drive_hours": {**_SEEN, "is_group_guessed": FLAG, **_SPAN},
    "drive_latencies": {**_SEEN, **_SPAN},
    "drive_samples": {**_SEEN, "is_group_guessed": FLAG},
    "drives": {**_SEEN, "is_group_guessed": FLAG, "array_name": TEXT},
    **dict.fromkeys(("drive_events", "drive_health"), _SEEN),
    **{kind: {"source": TEXT} for kind in ("drive_aliases", "labels", "drive_probes")},
}

# Records that lost a conflict: their key, of drive-hours the RAID group too, and where they came from.
RETIRED: dict[str, dict[str, pl.DataType]] = {
    kind: {
        **{name: CONTRACT[kind][name] for name in (*key, *(["raid_group_id"] if kind == "drive_hours" else []))},
        "reason": TEXT,
        **ORIGIN,
        "retired_by_delivery_seq": COUNT,
    }
    for kind, key in KEY.items()
}

REJECTED_RECORDS: dict[str, pl.DataType] = {
    "source": TEXT,
    "file": TEXT,
    "row": COUNT,
    "reason": TEXT,
    "column": TEXT,
    "value": TEXT,
    "rejected_at": TIME,
    "delivery_seq": COUNT,
}

INGESTED_FILES: dict[str, pl.DataType] = {
    "source": TEXT,
    "file": TEXT,
    "sha256": TEXT,
    "ingested_at": TIME,
    "status": TEXT,
    "rows_delivered": COUNT,
    "rows_accepted": COUNT,
    "rows_rejected": COUNT,
    "rows_duplicate": COUNT,
    "rows_superseded": COUNT,
    "record_kind": TEXT,
    "note": TEXT,
    "min_coverage": REAL,
    "declared_kind": TEXT,
    "delivery_seq": COUNT,
    "file_no": COUNT,
}


SQL_TYPES: dict[pl.DataType, str] = {TEXT: "string", COUNT: "bigint", REAL: "double", DAY: "date", TIME: "timestamp", FLAG: "boolean"}
_TABLES: dict[str, dict[str, pl.DataType]] = {
    **{kind: {**RAW[kind], **IDENTITY[kind]} for kind in RAW_KINDS},
    **{f"retired_{kind}": RETIRED[kind] for kind in RAW_KINDS},
    "rejected_records": REJECTED_RECORDS,
    "ingested_files": INGESTED_FILES,
}
COLUMNS_OF_RAW = {f"raw.{table}": {name: SQL_TYPES[kind] for name, kind in columns.items()} for table, columns in _TABLES.items()}
"""Columns of every raw table, with their SQL types."""


def raw_columns(record_kind: str, source: str | None) -> dict[str, pl.DataType]:
    """Columns of a raw file of records; `source` is null for a source that names drives and RAID groups itself."""
    return RAW[record_kind] if source is None else {**RAW[record_kind], **IDENTITY[record_kind]}

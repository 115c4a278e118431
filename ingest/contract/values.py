"""The words that records and options are made of, and now. Nothing heavy is imported: a scheduler reads its settings every minute."""

from __future__ import annotations

import re
from datetime import UTC, datetime

RECORD_KINDS = ("drive_hours", "drive_events", "drives", "drive_health")
COUNTED_KINDS = (*RECORD_KINDS, "drive_aliases", "labels", "drive_probes")
"""Record kinds of deliveries: the kinds of the bundle, the names under which hosts know drives, labels and probes of drives."""
RAW_KINDS = (*COUNTED_KINDS, "drive_samples", "drive_latencies")
"""Record kinds of raw: those, samples within an hour with `--resolution` (docs/decisions/0010), and histograms of latencies."""
TWO_MACHINES = "Are there two machines of one name?"
"""End of a note on drive-hours that contradict what has landed; `drivetail status` looks for it."""
MEASURED_KINDS = ("drive_hours", "drive_samples")
"""Kinds that hold latencies: what slowdowns are computed from."""
TIMED = {"drive_hours": "hour_utc", "drive_samples": "from_utc", "drive_health": "read_at", "drive_latencies": "hour_utc"}
"""Kinds that are kept by UTC day and looked up by the hours of a delivery, and the instant that says which day."""

DRIVE_KINDS = ("disk", "ssd")
VERDICTS = ("slow", "healthy")
PATTERNS = ("random", "sequential")
"""Kinds of reads of a probe (`drivetail confirm`)."""
ROLES = ("data", "parity_p", "parity_q", "spare")
EVENT_TYPES = (
    "unplug",
    "replug",
    "replacement",
    "not_spinning",
    "not_responding",
    "response_timeout",
    "scsi_timeout",
    "media_error",
    "rebuild",
    "scrub",
    "maintenance",
    "other",
)
DEFAULT_MIN_COVERAGE = 0.5
RESOLUTIONS = {"1m": 60, "5m": 300, "15m": 900}
"""Parts of an hour that `--resolution` keeps, in seconds."""


def utc(text: str) -> datetime:
    """An instant in ISO 8601 as raw keeps it, UTC without zone; one without a zone is UTC. Raises: ValueError, also beyond the calendar."""
    at = datetime.fromisoformat(text)
    try:
        return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    except OverflowError as error:
        raise ValueError(f"{text!r} is beyond the calendar") from error


def plain_address(address: str) -> str:
    """An address to show: without user and password, and without what follows its path."""
    return re.sub(r"//.*@", "//", re.split("[?#]", address, maxsplit=1)[0])


def utc_now() -> datetime:
    """Now, UTC without zone, as raw keeps every instant."""
    return datetime.now(UTC).replace(tzinfo=None)

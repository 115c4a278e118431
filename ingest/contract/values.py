"""The words that records and options are made of, and now. Nothing heavy is imported: a scheduler reads its settings every minute."""

from __future__ import annotations

from datetime import UTC, datetime

DRIVE_KINDS = ("disk", "ssd")
VERDICTS = ("slow", "healthy")
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


def utc_now() -> datetime:
    """Now, UTC without zone, as raw keeps every instant."""
    return datetime.now(UTC).replace(tzinfo=None)

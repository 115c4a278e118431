"""Sources -> raw. `ingest()` is the one way in; `list_deliveries()` is how a reader finds what landed."""

from ingest.errors import GateError, IngestError, StoreError
from ingest.landing import FileResult
from ingest.quarantine import Gate, GateReport, Held, list_quarantine
from ingest.raw_store import Delivery, drive_hour_files, list_deliveries, table_files
from ingest.run import SOURCES, IngestSummary, calls_of, drop, ingest, options_of, release

__all__ = [
    "SOURCES",
    "Delivery",
    "FileResult",
    "Gate",
    "GateReport",
    "Held",
    "IngestError",
    "IngestSummary",
    "GateError",
    "StoreError",
    "calls_of",
    "drive_hour_files",
    "drop",
    "ingest",
    "list_deliveries",
    "list_quarantine",
    "options_of",
    "release",
    "table_files",
]

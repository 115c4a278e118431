"""Sources -> raw. `ingest()` is the one way in; `list_deliveries()` is how a reader finds what landed."""

from ingest.errors import GateError, IngestError, StoreError
from ingest.landing import FileResult
from ingest.quarantine import Gate, GateReport, Held, list_quarantine
from ingest.raw_store import Delivery, drive_hour_files, list_deliveries, table_files
from ingest.run import SOURCES, IngestSummary, drop, ingest, release, sources_of

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
    "drive_hour_files",
    "drop",
    "ingest",
    "list_deliveries",
    "list_quarantine",
    "release",
    "sources_of",
    "table_files",
]

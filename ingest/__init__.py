"""Sources -> raw. `ingest()` is the one way in; `list_deliveries()` is how a reader finds what landed."""

from ingest.errors import IngestError
from ingest.landing import FileResult
from ingest.raw_store import Delivery, drive_hour_files, list_deliveries, table_files
from ingest.run import SOURCES, IngestSummary, ingest

__all__ = [
    "SOURCES",
    "Delivery",
    "FileResult",
    "IngestError",
    "IngestSummary",
    "drive_hour_files",
    "ingest",
    "list_deliveries",
    "table_files",
]

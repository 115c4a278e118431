"""Sources -> raw. `ingest()` is the one way in; `list_deliveries()` is how a reader finds what landed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.errors import GateError, IngestError, StoreError
    from ingest.landing import FileResult
    from ingest.quarantine import Gate, GateReport, Held, list_quarantine
    from ingest.raw_store import Delivery, drive_hour_files, list_deliveries, table_files
    from ingest.run import SOURCES, IngestSummary, calls_of, drop, ingest, options_of, release

# imported when they are asked for: who only lists deliveries, or catches an error, does not wait for every source's parser
_MODULES = {
    "errors": ("GateError", "IngestError", "StoreError"),
    "landing": ("FileResult",),
    "quarantine": ("Gate", "GateReport", "Held", "list_quarantine"),
    "raw_store": ("Delivery", "drive_hour_files", "list_deliveries", "table_files"),
    "run": ("SOURCES", "IngestSummary", "calls_of", "drop", "ingest", "options_of", "release"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


__all__ = [
    "SOURCES",
    "Delivery",
    "FileResult",
    "Gate",
    "GateError",
    "GateReport",
    "Held",
    "IngestError",
    "IngestSummary",
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

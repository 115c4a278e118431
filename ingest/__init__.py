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

# the lightest first; imported when they are asked for: who catches an error or lists deliveries does not wait for every source's parser
_MODULES = ("errors", "raw_store", "quarantine", "landing", "run")

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


def __getattr__(name: str) -> object:
    for module in _MODULES if name in __all__ else ():
        home = import_module(f"{__name__}.{module}")
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

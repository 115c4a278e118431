"""Sources -> raw. `ingest()` is the one way in, called in a `Worker`; `list_deliveries()` is how a reader finds what landed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.contract.errors import GateError, IngestError, ServerError, StoreError
    from ingest.raw.landing import Gate
    from ingest.raw.quarantine import GateReport, Held, list_quarantine
    from ingest.raw.store import Delivery, drive_hour_files, list_deliveries, table_files
    from ingest.reading.files import FileResult
    from ingest.run import IngestSummary, calls_of, drop, drop_landed, ingest, release, release_landed
    from ingest.worker import Worker

# the lightest first; imported on first use: code that catches an error or lists deliveries does not wait for every source's parser
_MODULES = ("contract.errors", "raw.store", "raw.quarantine", "reading.files", "worker", "raw.landing", "run")

__all__ = [
    "Delivery",
    "FileResult",
    "Gate",
    "GateError",
    "GateReport",
    "Held",
    "IngestError",
    "IngestSummary",
    "ServerError",
    "StoreError",
    "Worker",
    "calls_of",
    "drive_hour_files",
    "drop",
    "drop_landed",
    "ingest",
    "list_deliveries",
    "list_quarantine",
    "release",
    "release_landed",
    "table_files",
]


def __getattr__(name: str) -> object:
    for module in _MODULES if name in __all__ else ():
        home = import_module(f"{__name__}.{module}")
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

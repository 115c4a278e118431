"""The weekly fleet report: marts in, one self-contained HTML file out. It selects and draws, and computes no metric."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from report.weekly.due import due_weeks
    from report.weekly.write import write_report

# imported on first use: the weeks that are due, and the words of other pages, need no library that draws
_MODULES = {
    "due_weeks": "report.weekly.due",
    "write_report": "report.weekly.write",
}

__all__ = ["due_weeks", "write_report"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)

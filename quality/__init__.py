"""The gate: is this delivery fit to build on? Suites of expectations, looked at before a delivery counts (docs/quality-gate.md)."""

from quality.gate import Gate
from quality.page import write_pages

__all__ = ["Gate", "write_pages"]

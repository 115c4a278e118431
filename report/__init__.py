"""The weekly fleet report: marts in, one self-contained HTML file out. It selects, formats and draws; it computes no metric."""

from report.weekly import write_report

__all__ = ["write_report"]

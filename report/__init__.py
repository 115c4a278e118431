"""The weekly fleet report and the study page: marts in, one self-contained HTML file out. They select and draw, and compute no metric."""

from report.due import due_weeks
from report.study import write_study
from report.weekly import write_report

__all__ = ["due_weeks", "write_report", "write_study"]

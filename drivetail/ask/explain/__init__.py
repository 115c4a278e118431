"""Walk a number back to where it came from: one drive, or one drive-hour, down to file and row.

Every number is the mart's or the raw record's own. Computed numbers have six digits here and all of them in `as_records`. A formula shows
how the models combined them and computes nothing that a model does not hold. (The medians of I/O counts, sizes and directions are those
of the listed peers.)
"""

from drivetail.ask.explain.drive import explain_drive
from drivetail.ask.explain.exact import as_records
from drivetail.ask.explain.hour import explain_hour
from drivetail.ask.explain.question import parse_hour
from drivetail.ask.explain.text import num

__all__ = ["as_records", "explain_drive", "explain_hour", "num", "parse_hour"]

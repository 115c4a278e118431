"""Walk a number back to where it came from: one drive, or one drive-hour, down to file and row.

Every number is the mart's or the raw record's own. Computed numbers have six digits here and all of them in `as_records`. A formula shows
how the models combined them and computes nothing that a model does not hold. (The medians of I/O counts, sizes and directions are those
of the listed peers.)
"""

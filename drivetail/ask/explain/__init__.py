"""Walk a number back to where it came from: one drive, or one drive-hour, down to file and row.

Every number is the models' or the raw record's own. Computed numbers have six digits here and all of them in `as_records`. A formula shows
how the models combined them and computes nothing.
"""

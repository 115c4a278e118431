"""Tool `aggregate`: somebody's own means and standard deviations, to be compared with those of the runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lab.contract import COUNT, NO_RESULT, REAL, UNREADABLE, Columns, Refused
from lab.tools.text import Reading, csv_rows, text_of

EXPECTED = "CSV with the header buffer_kb,mean,sd"
HEADER = ("buffer_kb", "mean", "sd")
TABLES: dict[str, Columns] = {
    "aggregates": {
        "row": COUNT, "buffer_bytes": COUNT, "given_mean": REAL, "given_sd": REAL, "mean_digit": REAL, "sd_digit": REAL,
    }
}  # fmt: skip
"""`mean_digit`: what the last printed digit is worth, such as 0.01 of 9.75."""
_NUMBER = re.compile(r"\d{1,15}(\.(\d{1,15}))?")


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows. Raises: Refused without the header, without a row, or where runs.csv does not say the pass."""
    if not reading.listing.pass_:
        raise Refused(UNREADABLE, "runs.csv does not say whether it is of throughput or latency; fill the column pass")
    rows: list[tuple[int, int, float, float, float, float]] = []
    for row, line in csv_rows(text_of(path, EXPECTED).replace("\0", ""), HEADER, reading, EXPECTED):
        numbers = [_NUMBER.fullmatch(row.get(name, "")) for name in HEADER]
        if None in numbers or (size := float(row["buffer_kb"]) * 1024) != int(size):
            reading.reject(line)
            continue
        digits = [10.0 ** -len(number[2] or "") for number in numbers if number is not None]
        rows.append((len(rows) + 1, int(size), float(row["mean"]), float(row["sd"]), digits[1], digits[2]))
    if not rows:
        raise Refused(NO_RESULT, f"no row in it; expected {EXPECTED}")
    yield "aggregates", pl.DataFrame(rows, schema=TABLES["aggregates"], orient="row")

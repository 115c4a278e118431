"""CSV files that people give: slowdowns, base latencies, completions, block traces. What is wrong is said with file, row and column."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from lab.contract import LabError
from lab.toleraid.distributions import Vectors, independent, placed
from lab.toleraid.jitter import Jitter
from lab.toleraid.policies import Times
from lab.toleraid.requests import Requests, full_stripe_reads

MSR = ("Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime")
"""The columns of a trace of Microsoft Research, which has no header; its times are in units of 100 ns."""

Record = tuple[int, list[str]]
"""A row of a file and its number, the first row being 1."""


class ToleranceError(LabError):
    """Something given cannot be used; the message says what, where and what to do."""


def read_completions(path: Path, parity: int) -> tuple[Times, Times]:
    """Completion times of requests, header `d1..dN,p,q`: a row for each data drive, and for each parity; a column for each request."""
    header, rows = _table(path)
    data_drives = _data_drives(path, header, parity)
    wanted = data_drives + parity
    values = [[_time(path, number, name, text) for name, text in zip(header[:wanted], row, strict=False)] for number, row in rows]
    columns = np.array(values, dtype=np.float64).reshape(-1, wanted).T
    return np.ascontiguousarray(columns[:data_drives]), np.ascontiguousarray(columns[data_drives:])


def read_slowdowns(path: Path, parity: int) -> Vectors:
    """A distribution: `slowdown[,weight]` of single drives, or vectors `d1..dN,p,q`."""
    header, rows = _table(path)
    if header[0] == "d1":
        wanted = _data_drives(path, header, parity) + parity
        return placed([[_time(path, number, name, text) for name, text in zip(header[:wanted], row, strict=False)] for number, row in rows])
    if header not in (["slowdown"], ["slowdown", "weight"]):
        raise ToleranceError(f"{path}: row 1: columns {','.join(header)} are neither slowdown[,weight] nor d1..dN,p,q")
    values = [[_time(path, number, name, text) for name, text in zip(header, row, strict=True)] for number, row in rows]
    weights = [row[1] for row in values] if len(header) == 2 else None
    if weights is not None and not sum(weights) > 0:
        raise ToleranceError(f"{path}: column weight: no weight is above 0; give each slowdown how often it is met")
    return independent([row[0] for row in values], weights)


def read_quantiles(path: Path) -> Jitter:
    """Quantiles of the base latency: `quantile,base_latency`, quantiles upwards from 0 to 1."""
    header, rows = _table(path)
    if header != ["quantile", "base_latency"]:
        raise ToleranceError(f"{path}: row 1: columns {','.join(header)} are not quantile,base_latency")
    levels, latencies = zip(*([_time(path, number, *pair) for pair in zip(header, row, strict=True)] for number, row in rows), strict=True)
    if levels[0] != 0 or levels[-1] != 1 or sorted(levels) != list(levels) or sorted(latencies) != list(latencies):
        raise ToleranceError(f"{path}: quantiles must rise from 0 to 1, and base latencies with them")
    return Jitter(levels, latencies)


def read_block_trace(path: Path, data_drives: int) -> Requests:
    """The full-stripe reads of a trace: `time_s,offset_bytes,length_bytes,op`, or one of Microsoft Research."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        first = next(reader, [])
        columns, time = (first, _time) if "time_s" in first else (list(MSR), _filetime)
        names = ("time_s", "offset_bytes", "length_bytes", "op") if time is _time else ("Timestamp", "Offset", "Size", "Type")
        missing = [name for name in names if name not in columns]
        if missing or len(first) < len(names):
            raise ToleranceError(f"{path}: row 1: no column {(missing or names)[0]}; the header is time_s,offset_bytes,length_bytes,op")
        at_time, at_offset, at_length, at_op = (columns.index(name) for name in names)
        times, offsets, lengths = [], [], []
        for number, row in _numbered(path, reader, columns, after=first if time is _filetime else None):
            if row[at_op].strip().lower() in {"r", "read", "rs", "ra"}:
                times.append(time(path, number, names[0], row[at_time]))
                offsets.append(_whole(path, number, names[1], row[at_offset], 0))
                lengths.append(_whole(path, number, names[2], row[at_length], 1))
    requests = full_stripe_reads(np.array(times), np.array(offsets, dtype=np.int64), np.array(lengths, dtype=np.int64), data_drives)
    if not len(requests.times):
        raise ToleranceError(f"{path}: none of {len(times)} reads touches all {data_drives} data drives; give --data-drives of that RAID")
    return requests


def _table(path: Path) -> tuple[list[str], list[Record]]:
    """The header and rows of a CSV file. Raises: ToleranceError for one without a header or without rows."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        if not header or any(_is_number(name) for name in header):
            raise ToleranceError(f"{path}: row 1: no header; the first row names the columns")
        rows = list(_numbered(path, reader, header))
    if not rows:
        raise ToleranceError(f"{path}: no rows after the header")
    return header, rows


def _numbered(path: Path, reader: Iterator[list[str]], columns: Sequence[str], after: list[str] | None = None) -> Iterator[Record]:
    """Rows and their numbers. after: the first row, of a file without header. Raises: ToleranceError for a row too short or long."""
    if after is not None:
        yield 1, after
    try:
        for number, row in enumerate(reader, start=2):
            if row and len(row) != len(columns):
                raise ToleranceError(f"{path}: row {number}: {len(row)} values, but {len(columns)} columns")
            if row:
                yield number, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise ToleranceError(f"{path}: is not CSV text ({error})") from error


def _data_drives(path: Path, header: list[str], parity: int) -> int:
    """N of a header d1..dN,p,q."""
    data_drives = sum(name.startswith("d") for name in header)
    names = [*(f"d{number}" for number in range(1, data_drives + 1)), "p", "q"]
    if not data_drives or header not in (names, names[: data_drives + parity]):
        raise ToleranceError(f"{path}: row 1: columns {','.join(header)}; they must be d1..dN,p{',q' if parity == 2 else ''}")
    return data_drives


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _time(path: Path, number: int, column: str, text: str) -> float:
    return _value(path, number, column, text, float, 0)


def _filetime(path: Path, number: int, column: str, text: str) -> float:
    return _whole(path, number, column, text, 0) / 1e7


def _whole(path: Path, number: int, column: str, text: str, least: int) -> int:
    return int(_value(path, number, column, text, int, least))


def _value(path: Path, number: int, column: str, text: str, kind: Callable[[str], float], least: int) -> float:
    """A number of at least `least`. Raises: ToleranceError for another text."""
    try:
        value = kind(text)
    except ValueError:
        value = -math.inf
    if not (least <= value < math.inf):
        wanted = "a whole number" if kind is int else "a number"
        raise ToleranceError(f"{path}: row {number}: {column} = {text!r} is not {wanted} of at least {least}")
    return value

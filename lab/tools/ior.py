"""Tool `ior`: the summary of IOR 2.10, 3 and 4, as text or as the JSON of IOR 4.

Text: values belong to the words of the heading by place. The heading of 2.10 runs its words together, so its columns are known by version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from lab.contract import COUNT, NO_RESULT, REAL, TEXT, UNREADABLE, Columns, Refused
from lab.tools.text import OPENING, Reading, json_of, text_of

EXPECTED = "what IOR prints, with its summary `Operation Max(MiB) ...`, or its JSON (-O summaryFormat=JSON)"

STRESS_RUNS: Columns = {
    "row": COUNT, "operation": TEXT, "max_mib_per_s": REAL, "min_mib_per_s": REAL, "mean_mib_per_s": REAL, "sd_mib_per_s": REAL,
    "mean_seconds": REAL, "tasks": COUNT, "repetitions": COUNT, "segments": COUNT, "block_bytes": COUNT, "transfer_bytes": COUNT,
    "aggregate_bytes": COUNT,
}  # fmt: skip
"""`row`: place in the file, from 1. `aggregate_bytes`: as IOR up to 3.0 prints it; later ones round it, so it is null."""
TABLES = {"stress_runs": STRESS_RUNS}

HEADING_2 = (
    "Operation", "Max(MiB)", "Min(MiB)", "Mean(MiB)", "StdDev", "Max(OPs)", "Min(OPs)", "Mean(OPs)", "StdDev", "Mean(s)", "#Tasks", "tPN",
    "reps", "fPP", "reord", "reordoff", "reordrand", "seed", "segcnt", "blksiz", "xsize", "aggsize", "RefNum", "API",
)  # fmt: skip
WORDS = {
    "max_mib_per_s": "Max(MiB)", "min_mib_per_s": "Min(MiB)", "mean_mib_per_s": "Mean(MiB)", "sd_mib_per_s": "StdDev",
    "mean_seconds": "Mean(s)", "tasks": "#Tasks", "repetitions": "reps", "segments": "segcnt", "block_bytes": "blksiz",
    "transfer_bytes": "xsize", "aggregate_bytes": "aggsize",
}  # fmt: skip
KEYS = {
    "max_mib_per_s": "bwMaxMIB", "min_mib_per_s": "bwMinMIB", "mean_mib_per_s": "bwMeanMIB", "sd_mib_per_s": "bwStdMIB",
    "mean_seconds": "MeanTime", "tasks": "numTasks", "repetitions": "repetitions", "segments": "segmentCount", "block_bytes": "blockSize",
    "transfer_bytes": "transferSize",
}  # fmt: skip
NEEDED = ("mean_mib_per_s", "tasks", "segments", "block_bytes")
_REAL = re.compile(r"\d{1,18}(\.\d{1,12})?([eE][+-]?\d{1,2})?")
_COUNT = re.compile(r"\d{1,15}")
_MOST = 2**53


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield a row for each operation of each summary. Raises: Refused."""
    text = text_of(path, EXPECTED)
    rows = _of_document(json_of(path, reading, EXPECTED), reading) if OPENING.search(text) else _of_text(text, reading)
    if not rows:
        raise Refused(NO_RESULT, "no summary in it; was IOR interrupted?")
    numbered = [{"row": number, **row} for number, row in enumerate(rows, 1)]
    yield "stress_runs", pl.DataFrame(numbered, schema=STRESS_RUNS, orient="row")


def _of_document(document: dict[str, Any], reading: Reading) -> list[dict[str, Any]]:
    summary = document.get("summary")
    if not isinstance(summary, list):
        raise Refused(UNREADABLE, f"its JSON has no list `summary`; expected {EXPECTED}")
    rows = []
    for given in summary:
        row = _row(given.get("operation"), {name: given.get(key) for name, key in KEYS.items()}) if isinstance(given, dict) else None
        if row is None:
            reading.reject(str(given))
        else:
            rows.append(row)
    return rows


def _of_text(text: str, reading: Reading) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    is_ior, heading = False, None
    for line in text.splitlines():
        words = line.split()
        if line.startswith("IOR-"):
            is_ior, heading = True, None
        elif words[:1] == ["Operation"]:
            is_ior, heading = True, HEADING_2 if words[1:3] == ["Max", "(MiB)"] else tuple(words)
        elif heading is not None and (not words or line.startswith(("Max ", "Finished", "Run finished"))):
            heading = None
        elif heading is not None and not words[0].startswith("---"):
            values = words[:-1] if words[-1] == "EXCEL" else words
            of = dict(zip(reversed(heading), reversed(values), strict=False))  # of StdDev the first one counts: bandwidth
            row = _row(values[0], {name: of.get(word) for name, word in WORDS.items()}) if len(values) == len(heading) else None
            if row is None:
                reading.reject(line)
            else:
                rows.append(row)
    if not is_ior:
        if (written := re.search(r"Writing output to (\S+)", text)) is not None:
            raise Refused(NO_RESULT, f"IOR wrote its results to {written[1][:80]}; give that file")
        raise Refused(UNREADABLE, f"it starts with {text.strip()[:60]!r}; expected {EXPECTED}")
    return rows


def _row(operation: Any, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """None where the operation has no name, or one of NEEDED is no number."""
    row = {name: _number(value, is_count=STRESS_RUNS[name] == COUNT) for name, value in given.items()}
    if not isinstance(operation, str) or not re.fullmatch(r"[A-Za-z][\w-]{0,30}", operation) or any(row[name] is None for name in NEEDED):
        return None
    return {"operation": operation, **row}


def _number(value: Any, *, is_count: bool) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str):
        if not (_COUNT if is_count else _REAL).fullmatch(value):
            return None
        return int(value) if is_count else float(value)
    if not 0 <= value < _MOST or (is_count and value != int(value)):  # of NaN neither holds
        return None
    return int(value) if is_count else float(value)

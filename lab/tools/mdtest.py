"""Tool `mdtest`: the mean rates of its summary, of mdtest 1.9, 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lab.contract import NO_RESULT, UNREADABLE, Refused
from lab.tools.bench import BENCH_RESULTS, options_text, results
from lab.tools.text import Reading, text_of

EXPECTED = "what mdtest prints, with its block SUMMARY"
TABLES = {"bench_results": BENCH_RESULTS}
BENCHMARK = "metadata"
TESTS = {"File creation": "create_close", "File stat": "stat", "File removal": "delete"}
_COMMAND = re.compile(r"Command line used: \S+ ?(.*)")
_FOLDER = re.compile(r" -d ?\S+")
_LAUNCHED = re.compile(r"mdtest-(\S+) was launched with (\d{1,9}) total task")
_ROW = re.compile(r"\s*(\w+ \w+)\s*:?((?:\s+\d{1,15}\.\d{1,6}){4})\s*")
_LIKE_A_ROW = re.compile(r"\s*(Directory|File|Tree) ")


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the mean of each test that was run; one that was not is 0 throughout. Raises: Refused."""
    text = text_of(path, EXPECTED)
    rows: list[tuple[str, str, int, int, float, str]] = []
    told: list[str | None] = []
    options: dict[str, str] = {}
    processes, is_of_rates = reading.listing.process_count, False
    for line in text.splitlines():
        if (launched := _LAUNCHED.search(line)) is not None:
            processes, is_of_rates = int(launched[2]), False
            options = {"version": launched[1]}
        elif (command := _COMMAND.search(line)) is not None:
            options["flags"] = _FOLDER.sub("", f" {command[1]}").strip()
        elif line.startswith("SUMMARY"):
            is_of_rates = not line.startswith("SUMMARY time")
        elif line.startswith("--"):
            is_of_rates = False
        elif is_of_rates and (row := _ROW.fullmatch(line)) is not None:
            greatest, _, mean, _ = (float(value) for value in row[2].split())
            if row[1] in TESTS and greatest > 0:
                rows.append((BENCHMARK, TESTS[row[1]], processes or 0, 0, mean, "ops/s"))
                told.append(options_text(options) if options else None)
        elif is_of_rates and _LIKE_A_ROW.match(line):
            reading.reject(line)
    if "mdtest" not in text and "SUMMARY" not in text:
        raise Refused(UNREADABLE, f"it starts with {text.strip()[:60]!r}; expected {EXPECTED}")
    if rows and processes is None:
        raise Refused(NO_RESULT, "it does not say with how many tasks it was launched; give process_count in runs.csv")
    if not rows:
        raise Refused(NO_RESULT, "no rate of files in its SUMMARY; was mdtest interrupted, or run for directories only (-D)?")
    yield "bench_results", results(rows, options=told)

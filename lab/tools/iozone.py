"""Tool `iozone`: the table it prints, or the blocks that `-R` prints where there is no table.

A value belongs to the column whose heading ends nearest to where the value ends: tests that were not run leave blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lab.contract import NO_RESULT, UNREADABLE, Refused
from lab.tools.bench import BENCH_RESULTS, Result, options_text, results
from lab.tools.text import Reading, text_of

EXPECTED = "what iozone prints: a table with the heading `kB reclen write rewrite ...`, or the blocks of -R"
TABLES = {"bench_results": BENCH_RESULTS}

TESTS = (
    "write", "rewrite", "read", "reread", "random_read", "random_write", "backward_read", "record_rewrite", "stride_read", "fwrite",
    "frewrite", "fread", "freread",
)  # fmt: skip
HEADING = ("write", "rewrite", "read", "reread", "read", "write", "read", "rewrite", "read", "fwrite", "frewrite", "fread", "freread")
REPORTS = dict(
    zip(
        (
            "writer", "re-writer", "reader", "re-reader", "random read", "random write", "backward read", "record rewrite", "stride read",
            "fwrite", "re-fwrite", "fread", "re-fread",
        ),
        TESTS,
        strict=True,
    )
)  # fmt: skip
UNITS = {"iozone_throughput": "kB/s", "iozone_ops": "ops/s", "iozone_latency": "us"}
PASSES = {"iozone_throughput": "throughput", "iozone_latency": "latency", "iozone_ops": None}
_KB = 1024
_CROSSOVER_KB, _LARGE_RECORD_KB = 16 * 1024, 64
_NUMBERS = re.compile(r"\s*\d{1,15}(\s+\d{1,15}(\.\d{1,6})?)+\s*")
_REPORT = re.compile(r'\s*"([\w -]+) report"\s*')
_VERSION = re.compile(r"Version \$Revision: ([\d.]+) \$")
_TITLE = re.compile(r'\s*"[^"]*[A-Za-z][^"]*"\s*')
_FURTHER = ("pwrite", "repwrite", "pread", "repread", "pwritev", "repwritev", "preadv", "repreadv")
"""Columns that -E and -i 9 to 12 add to the right of the table; they are left out."""
_NO_RESULT = re.compile(r" -(?:[fb] ?\S+|F(?: [^-]\S*)+|[RwM](?= |$))")
"""Options that change no result: names of files, which report is printed, whether the file stays."""
_SIZES = re.compile(r'(\s*"\d{1,12}")+\s*')
_ROW = re.compile(r'\s*"(\d{1,12})"((\s+\d{1,15}(\.\d{1,6})?)+)\s*')
_QUIET = re.compile(r"\s*(iozone test complete\.|Excel output is below:|random\s+random\s.*|\w*random.*stride\s*)?\s*")


class _Mode:
    """Mode of the output, by the command line or by the lines above the table."""

    def __init__(self) -> None:
        self.benchmark = "iozone_throughput"
        self.has_no_retest = False
        self.is_throughput_mode = False
        self.options: dict[str, str] = {}

    def see(self, line: str) -> bool:
        """Take in a line above the results. Returns: whether it says anything of the mode."""
        if "Command line used:" in line:
            options = line.split("Command line used:", 1)[1].split()[1:]
            self.options["flags"] = _NO_RESULT.sub("", f" {' '.join(options)}").strip()
            self.has_no_retest = "-+n" in options
            self.is_throughput_mode = any(re.fullmatch(r"-t\d*", option) for option in options)
            if "-N" in options:
                self.benchmark = "iozone_latency"
            elif "-O" in options:
                self.benchmark = "iozone_ops"
        elif "Output is in operations per second" in line:
            self.benchmark = "iozone_ops"
        elif "Output is in microseconds per operation" in line:
            self.benchmark = "iozone_latency"
        elif "No retest option selected" in line:
            self.has_no_retest = True
        elif "Throughput test with" in line:
            self.is_throughput_mode = True
        elif found := _VERSION.search(line):
            self.options["version"] = found[1]
        else:
            return False
        return True

    def result(self, test: str, record_kb: int, size_kb: int, value: float) -> Result | None:
        """A row of results; None for a test that was not run."""
        if value == 0 and self.has_no_retest and test in ("rewrite", "reread"):
            return None
        return self.benchmark, test, record_kb * _KB, size_kb * _KB, value, UNITS[self.benchmark]


def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the results. Raises: Refused."""
    text = text_of(path, EXPECTED)
    if "\0" in text[:4096]:
        raise Refused(UNREADABLE, "it is binary, as the .wks file of -b is; give the text output of iozone")
    lines = text.splitlines()
    has_table = any(_heading(line) for line in lines)
    mode, rows = (_read_table if has_table else _read_reports)(lines, reading)
    if not rows and mode.is_throughput_mode:
        raise Refused(NO_RESULT, "throughput mode (-t) is not read; run iozone without -t")
    if not has_table and not any(_REPORT.fullmatch(line) for line in lines) and "Iozone: Performance Test" not in text:
        raise Refused(UNREADABLE, f"it starts with {text.strip()[:60]!r}; expected {EXPECTED}")
    if not rows:
        raise Refused(NO_RESULT, "no result in it; was iozone interrupted?")
    yield "bench_results", results(rows, PASSES, options=options_text(mode.options) if mode.options else None)


def _heading(line: str) -> list[int] | None:
    """Where the words of the table's heading end, from the first test on; None for any other line."""
    words = [(match.group(), match.end()) for match in re.finditer(r"\S+", line)]
    names = tuple(name for name, _ in words)
    known = (*HEADING, *(name for name in names if name in _FURTHER))
    if len(names) < 3 or names[0].lower() != "kb" or names[1] != "reclen" or names[2:] != known[: len(names) - 2]:
        return None
    return [end for _, end in words[2:]]


def _read_table(lines: list[str], reading: Reading) -> tuple[_Mode, list[Result]]:
    mode, ends = _Mode(), None
    rows: list[Result] = []
    is_below = False
    for line in lines:
        if "Iozone: Performance Test" in line:
            mode, ends, is_below = _Mode(), None, False
        elif found := _heading(line):
            ends, is_below = found, False
        elif ends is None:
            mode.see(line)
        elif line.strip().startswith(("iozone test complete", "Excel output is below")):
            is_below = True  # what -R prints there says the same again
        elif not is_below and _NUMBERS.fullmatch(line):
            taken = _table_row(line, ends)
            if taken is None:
                reading.reject(line)
                continue
            size, record, values = taken
            rows += [row for test, value in values if (row := mode.result(test, record, size, value)) is not None]
        elif not is_below and line.strip() and not _QUIET.fullmatch(line):
            reading.reject(line)
    return mode, rows


def _table_row(line: str, ends: list[int]) -> tuple[int, int, list[tuple[str, float]]] | None:
    """File and record size (kB) and the value of each test of a row; None where two values stand in one column."""
    words = [(match.group(), match.end()) for match in re.finditer(r"\S+", line)]
    (size, _), (record, _), *values = words
    if not values or "." in record or len(values) > len(ends):
        return None
    if len(values) == len(ends):  # whatever their width
        places = list(range(len(ends)))
    else:
        places = [min(range(len(ends)), key=lambda place: abs(ends[place] - end)) for _, end in values]
    if len(set(places)) < len(places):
        return None
    found = [(TESTS[place], float(value)) for place, (value, _) in zip(places, values, strict=True) if place < len(TESTS)]
    return int(size), int(record), found


def _is_run(record_kb: int, size_kb: int) -> bool:
    """Whether the automatic mode runs this combination: no record is larger than its file, nor small in a large one."""
    return record_kb <= size_kb and (record_kb >= _LARGE_RECORD_KB or size_kb <= _CROSSOVER_KB)


def _read_reports(lines: list[str], reading: Reading) -> tuple[_Mode, list[Result]]:
    """The blocks of -R: a title, the record sizes, and a row for each file size."""
    mode, rows = _Mode(), []
    test: str | None = None
    sizes: list[int] = []
    for line in lines:
        title = _REPORT.fullmatch(line)
        if title:
            test, sizes = REPORTS.get(title[1].lower()), []
            if test is None:
                reading.reject(line)
        elif _TITLE.fullmatch(line):
            test, sizes = None, []  # such as shares of CPU time
        elif _SIZES.fullmatch(line) and test is None:
            continue
        elif _SIZES.fullmatch(line) and not sizes:
            sizes = [int(size) for size in re.findall(r"\d+", line)]
        elif (row := _ROW.fullmatch(line)) and test is None:
            continue
        elif row and sizes and test is not None:
            values = row[2].split()
            if len(values) > len(sizes):
                reading.reject(line)
                continue
            taken = [(record, float(value)) for record, value in zip(sizes, values, strict=False)]
            found = [
                mode.result(test, record, int(row[1]), value)
                for record, value in taken
                # a combination of sizes that was not run is 0, which no rate is; a latency below 1 us may be
                if value or (mode.benchmark == "iozone_latency" and _is_run(record, int(row[1])))
            ]
            rows += [result for result in found if result is not None]
        elif line.strip().startswith('"'):
            reading.reject(line)
        else:
            mode.see(line)
    return mode, rows

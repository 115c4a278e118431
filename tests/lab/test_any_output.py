"""Output that is nearly right is read or refused: no reader ends in an error that it does not declare, and good lines are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.contract import NO_CLOCK, NO_RESULT, UNREADABLE, Refused
from lab.tools import TOOLS, tool_of
from lab.tools.text import Reading, Row
from tests.fuzz import fuzz
from tests.lab.bundles import BENCH
from tests.mutate import mutated, mutated_json

IOZONE = """\tIozone: Performance Test of File I/O
\tMicroseconds/op Mode. Output is in microseconds per operation.
\tCommand line used: ./iozone -i 0 -a -n 64k -g 64k -N
                                                              random    random     bkwd    record    stride
              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite
              64       4      421      120
              64       8      453      200     1000

iozone test complete.
"""
REPORTS = """Iozone: Performance Test of File I/O
Excel output is below:

"Writer report"
        "4"  "8"
"64"   5452  6000
"Re-Fread report"
        "4"  "8"
"64"   0  6001
"""
FIO = {
    "fio version": "fio-3.33", "timestamp": 1, "jobs": [
        {
            "jobname": "a",
            "read": {"total_ios": 2, "bw_bytes": 9, "bw": 1, "iops": 3.5, "clat_ns": {"mean": 5.0, "N": 2, "percentile": {"99.000000": 7}}},
            "write": {"total_ios": 1, "bw": 1, "iops": 1, "clat": {"mean": 4.0, "percentile": {"99.000000": 6}}},
            "trim": {"total_ios": 0},
        }
    ],
}  # fmt: skip

# tool -> what a good file of it holds, text or a JSON document; several are fuzzed one after the other
GOOD: dict[str, list[str | dict[str, Any]]] = {
    "aggregate": ["buffer_kb,mean,sd\n4,9.5,0.71\n8,10,1\n"],
    "bench": [BENCH],
    "fio": [FIO],
    "fio-log": ["0, 64949, 0, 4096, 2023424, 0\n3, 48181, 1, 4096, 24838144, 0\n", "500, 64693, 0, 0, 0\n", "0, 25, 0, 131072\n"],
    "iozone": [IOZONE, REPORTS],
}
NAMES = {"fio-log": "a_clat.1.log"}
PASSES = {"aggregate": "latency"}


def read(tool: str, path: Path) -> tuple[int, Reading]:
    """Rows of a file. Raises: Refused."""
    reading, rows = Reading(Row(NAMES.get(tool, path.name), pass_=PASSES.get(tool, ""))), 0
    columns = tool_of(tool).TABLES
    for table, frame in tool_of(tool).read(path, reading):
        assert dict(frame.select(*columns[table]).schema) == columns[table]
        rows += frame.height
    return rows, reading


@pytest.mark.parametrize("tool", TOOLS)
def test_any_output_is_read_or_refused(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    for content in GOOD[tool]:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        rows, reading = read(tool, path)
        assert rows and not reading.lines_rejected

        def check(given: bytes) -> None:
            path.write_bytes(given)
            refusals: list[Refused] = []
            try:
                read(tool, path)
            except Refused as refused:
                refusals.append(refused)
            assert all(refused.reason in (UNREADABLE, NO_RESULT, NO_CLOCK) and str(refused) for refused in refusals)

        fuzz(mutated(content.encode()) if isinstance(content, str) else mutated_json(content), check, f"output of {tool}")

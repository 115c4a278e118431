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

# tool -> what a good file of it holds, text or a JSON document; several are fuzzed one after the other
GOOD: dict[str, list[str | dict[str, Any]]] = {
    "bench": [BENCH],
}


def read(tool: str, path: Path) -> tuple[int, Reading]:
    """Rows of a file. Raises: Refused."""
    reading, rows = Reading(Row(path.name)), 0
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

"""docs/cookbook.md: every question has an answer on the demo's fleet, and the way to open the file from Python works as written."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from drivetail.ask.docs import write_docs
from drivetail.ask.sql import run_query
from engine.warehouse import PROJECT, Warehouse
from tests.proof.support import DUCKDB_CLI

pytestmark = pytest.mark.xdist_group("report")

TEXT = (PROJECT / "docs/cookbook.md").read_text(encoding="utf-8")
QUESTIONS = {
    heading + "'" * number: query
    for heading, text in re.findall(r"^## (\d+\. .*?)$(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    for number, query in enumerate(re.findall(r"```sql\n(.*?)```", text, re.DOTALL))
}
"""Heading -> query; a second one of the same question has a prime."""


def test_the_cookbook_has_the_number_of_questions_in_its_title() -> None:
    assert TEXT.startswith("# Thirty questions")
    assert [name.partition(".")[0] for name in QUESTIONS if not name.endswith("'")] == [str(number) for number in range(1, 31)]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_an_answer(question: str, demo: Warehouse) -> None:
    heading, *rows = run_query(demo, QUESTIONS[question], "csv", None, 50).splitlines()
    assert rows
    # a column of nothing answers nothing
    assert all(any(cells) for cells in zip(*(line.split(",") for line in rows), strict=False)), heading


def test_the_file_opens_from_python_as_written(demo: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(demo.root.parent)
    found: dict[str, Any] = {}
    exec(program, found)
    assert found["slow"].height and found["slow"]["slow_hours"].min() > 0


def test_the_file_opens_from_duckdbs_command_line_as_written(demo: Warehouse) -> None:
    """The command line is 1.5.6, older than what writes the file."""
    (command,) = re.findall(r"^\$ duckdb (.*?) +#", TEXT, re.MULTILINE)
    told = subprocess.run([DUCKDB_CLI, *shlex.split(command)], cwd=demo.root.parent, capture_output=True, text=True, check=False)
    assert told.returncode == 0 and "publication_id" in told.stdout, told.stderr


@pytest.mark.soak
def test_the_tables_are_described_on_one_page(tmp_path: Path) -> None:
    page = write_docs(tmp_path / "docs.html").read_text(encoding="utf-8")
    assert "Slowdown of the second slowest drive (ratio)." in page
    (parents,) = re.findall(r'"parent_map": ?(\{.*?\})', page)[:1]
    assert "model.drivetail.int_raid_hours" in json.loads(parents)["model.drivetail.fct_raid_hours"]  # its lineage
    assert not re.search(r'<(script|link)[^>]*(src|href)="http', page)

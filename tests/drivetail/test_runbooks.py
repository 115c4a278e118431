"""The runbooks speak of messages that there are, and every page can be found."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from engine.warehouse import Warehouse
from tests.drivetail.conftest import drivetail
from tests.proof.support import ROOT

PAGES = ROOT / "docs/runbooks"
CODE = ("drivetail", "engine", "ingest", "quality", "report", "dags")
NOT_OURS = {"No space left on device", "oom-kill", "Permission denied", "Sensor has timed out", "Timeout"}
"""Messages of the system and of Airflow, not of drivetail."""
WORDS = 3


@cache
def messages() -> str:
    """Every text of the code, a line each; what is put into one is `{}`."""
    texts = []
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(node.value)
    for path in sorted((ROOT / "tests").glob("assert_*.sql")):
        texts.append(path.stem)
    return "\n".join(" ".join(text.split()) for text in texts)


def said(page: Path) -> list[str]:
    """The messages that a page quotes: in backticks in the columns "it says" of its tables, and the lines that begin with `>`."""
    found, column = [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("> "):
            found.append(line[2:])
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else []
        if not cells:
            column = None
        elif "it says" in cells:
            column = cells.index("it says")
        elif column is not None:
            found += re.findall(r"`([^`]+)`", cells[column])
    return found


def is_said(message: str) -> bool:
    """Whether three words of it that follow each other, or all where it has fewer, are a message's of the code: the rest may be put in."""
    parts = [part.split() for part in re.split(r"\.\.\.|[:;,()]", message)]
    most = min(WORDS, max(map(len, parts)))
    runs = [" ".join(part[at : at + most]) for part in parts for at in range(len(part) - most + 1)]
    return any(run in messages() for run in runs)


QUOTES = [
    (page.name, message)
    for page in sorted(PAGES.glob("*.md"))
    for message in said(page)
    if message not in NOT_OURS and not message.endswith("/")
]


@pytest.mark.parametrize(("page", "message"), QUOTES)
def test_a_quoted_message_is_one_of_the_code(page: str, message: str) -> None:
    assert is_said(message), f"{page}: nothing says {message!r}"


def test_a_message_that_no_code_prints_is_noticed() -> None:
    assert is_said("/srv/warehouse: no room on the disk (No space left on device)") and is_said("... stopped reporting")
    assert not is_said("/srv/warehouse: no more room on this disk (No space left on device)")


def test_the_index_has_every_page_and_every_row_its_page() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    linked = {target for row in index.splitlines() if row.startswith("|") for target in re.findall(r"\]\(([^)#]+)[^)]*\)", row)}
    assert [target for target in linked if not (PAGES / target).exists()] == []
    assert {page.name for page in PAGES.glob("*.md")} - {"README.md"} - linked == set()
    assert sum("`" in row for row in index.splitlines() if row.startswith("|")) > 10


@pytest.mark.parametrize("page", [page.name for page in sorted(PAGES.glob("*.md")) if page.name != "README.md"])
def test_a_page_says_when_it_was_followed(page: str) -> None:
    assert re.match(r"Last followed on \d{4}-\d\d-\d\d", (PAGES / page).read_text(encoding="utf-8").strip().splitlines()[-1])


def test_a_damaged_line_of_sent_alerts_is_removed_and_sent_again(settled: Warehouse) -> None:
    """docs/runbooks/damaged-register.md, without a copy."""
    assert drivetail("alerts", "--new", "-w", settled.root).exit_code == 0
    register = settled.raw / "alerts.jsonl"
    first, *others = register.read_text().splitlines(keepends=True)
    register.write_text("".join([first[:9] + first[12:], *others]))
    refused = drivetail("alerts", "--new", "-w", settled.root)
    assert refused.exit_code == 1 and f"{register}: line 1: not a JSON record" in refused.output
    register.write_text("".join(others))
    told = json.loads(drivetail("alerts", "--new", "--format", "json", "-w", settled.root).output)
    assert [alert["subject_id"] for alert in told] == [json.loads(first)["subject_id"]] and others
    assert "No new alert" in drivetail("alerts", "--new", "-w", settled.root).output

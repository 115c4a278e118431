"""Tables in the terminal: a number or a name is never broken over lines, whatever the width."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import drivetail.ask.sql
from drivetail.cli import main
from drivetail.terminal import render
from engine.warehouse import Warehouse

pytestmark = pytest.mark.xdist_group("report")

COLUMNS = ["drive_id", "raid_group_id", "hour_utc", "capacity_bytes", "why"]
ROW = [
    "D00000303A",
    "disk-g000003",
    "2026-01-13 03:00:00",
    3000000000000,
    "It was slow in six hours of the last day, at the load of its peers.",
]


def shown(width: int, monkeypatch: pytest.MonkeyPatch, columns: list[str] = COLUMNS) -> list[str]:
    """The table of one row on a terminal of a given width (columns)."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width, 40)))
    return render(columns, [ROW[: len(columns)]]).splitlines()


@pytest.mark.parametrize("width", [80, 100, 200])
def test_names_and_numbers_are_whole_and_sentences_take_several_lines(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(width, monkeypatch)
    assert all(str(value) in lines[1] for value in ROW[:4]) and max(map(len, lines[1:])) <= width
    assert " ".join(line[line.find("It was") :] if "It was" in line else line.strip() for line in lines[1:]) == ROW[4]


def test_where_names_do_not_fit_a_row_is_written_lengthwise(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(50, monkeypatch)
    assert [line.split(maxsplit=1) for line in lines] == [[name, str(value)] for name, value in zip(COLUMNS, ROW, strict=True)]


def test_wide_headings_wrap_and_empty_columns_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((32, 40)))
    text = render(["drive", "tail hours before", "coverage", "host"], [["D00000303A", 7, None, "h00000"]])
    words = [line.split() for line in re.sub(r"\x1b\[\d*m", "", text).splitlines()]
    assert words == [["tail"], ["hours"], ["drive", "before", "host"], ["D00000303A", "7", "h00000"]]


def test_a_table_for_another_program_is_as_wide_as_it_must_be() -> None:
    names = [f"column_{number}" for number in range(30)]
    _, line = render(names, [["D00000303A"] * 30]).splitlines()
    assert line.split() == ["D00000303A"] * 30


def ask(warehouse: Warehouse, *arguments: str, given: str | None = None) -> str:
    told = CliRunner().invoke(main, ["sql", *arguments, "--warehouse", str(warehouse.root)], input=given)
    assert told.exit_code == 0, told.output
    return told.output


def test_a_query_comes_from_standard_input(demo: Warehouse) -> None:
    assert ask(demo, "-", "--format", "csv", given="select 1 as one;\n") == "one\n1\n"


def test_an_empty_answer_shows_0_rows(demo: Warehouse) -> None:
    assert ask(demo, "select drive_id from marts.dim_drives where false") == "drive_id\n0 rows\n"


def test_without_a_query_a_shell_opens_on_the_published_file(demo: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = tmp_path / "duckdb"
    shell.write_text("#!/bin/sh\n")
    shell.chmod(0o755)
    begun: list[list[str]] = []
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(drivetail.ask.sql.os, "execv", lambda program, arguments: begun.append(arguments) or sys.exit(0))
    ask(demo)
    assert begun == [[str(shell), "-readonly", str(demo.published)]]

"""Names that telemetry sends are data everywhere: in SQL, in pages, on the terminal, in paths."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from hostile import DETAIL, DRIVES, FILES, GROUP, HOURS, MODEL, PASSPHRASE, SLOW, Attacked, drivetail

from engine.read import open_published
from ingest import list_deliveries
from quality import write_pages
from tests.pages import Page
from tests.proof.support import ROOT

pytestmark = pytest.mark.xdist_group("safety")

LIVELY = {"img", "svg", "iframe", "object", "embed", "form", "base"}
"""Elements that fetch or do something; no page of ours has one."""


def check_inert(page: Page) -> None:
    """Nothing that was delivered has become an element, an attribute or a script, or turns the direction of text."""
    assert not set("\u202e\u2066") & set(page.words + repr(page.tags))
    assert not [script for script in page.scripts if re.search(r"(?<!\\)(\\\\)*\\u20(2e|66)", script[:1_000_000])]
    for tag, attributes in page.tags:
        assert tag not in LIVELY, (tag, attributes)
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, attributes)
            assert "javascript:" not in (value or "").lower(), (tag, attributes)
            assert name != "src", (tag, attributes)
    for script in page.scripts:
        assert not script.lstrip().startswith("alert")
        assert SLOW not in script


def test_the_marts_hold_the_names_as_they_came(attacked: Attacked) -> None:
    with open_published(attacked.warehouse) as connection:
        assert {row[0] for row in connection.execute("select drive_id from marts.dim_drives").fetchall()} == set(DRIVES)
        named = "select distinct raid_group_id, model from marts.fct_drive_hours inner join marts.dim_drives using (drive_id)"
        assert connection.execute(named).fetchall() == [(GROUP, MODEL)]
        assert connection.execute("select count(*) from marts.fct_drive_hours").fetchall() == [(HOURS * len(DRIVES),)]
        assert {Path(row[0]).name for row in connection.execute("select file from marts.ingested_files").fetchall()} == {
            Path(name).name for name in FILES.values()
        }
        assert DETAIL in {row[0] for row in connection.execute("select detail from marts.fct_drive_events").fetchall()}
    assert not Path("/tmp/drivetail_attacked.db").exists()


def test_the_weekly_report_is_inert(attacked: Attacked) -> None:
    page = Page(attacked.report)
    check_inert(page)
    assert SLOW in page.words
    assert GROUP in page.words
    assert MODEL in page.words


def test_the_page_of_the_gate_is_inert(attacked: Attacked) -> None:
    deliveries = list_deliveries(attacked.warehouse.root)
    bundled = next(delivery for delivery in deliveries if str(attacked.bundle) in delivery.record()["paths"])
    # the fleet is cached between runs: it may have been checked on an earlier day
    checked_at = json.loads((bundled.path / "gate.json").read_text())["checked_at"]
    page = Page(write_pages(attacked.warehouse.root, now=datetime.fromisoformat(checked_at)))
    check_inert(page)
    assert str(attacked.bundle) in page.words


@pytest.mark.parametrize("drive", DRIVES)
def test_a_drive_is_found_by_its_name_and_the_terminal_obeys_none(attacked: Attacked, drive: str) -> None:
    told = drivetail("explain", drive, "-w", attacked.warehouse.root)
    assert told.exit_code == 0, told.output
    check_printable(told.output)


def check_printable(text: str) -> None:
    assert all(character.isprintable() or character in "\n\t" for character in text), [
        c for c in text if not c.isprintable() and c not in "\n\t"
    ]


def test_commands_show_control_characters_instead_of_sending_them(attacked: Attacked) -> None:
    listed = drivetail("sql", "select drive_id from marts.dim_drives order by 1", "-w", attacked.warehouse.root).output
    assert "\\x1b]0;owned\\x07\\x1b[2J\\nnothing" in listed
    hour = drivetail("explain", DRIVES[3], "2026-01-05 07:00", "-w", attacked.warehouse.root).output
    unknown = drivetail("explain", "\x1b[2J", "-w", attacked.warehouse.root).output
    for text in (attacked.printed, listed, hour, unknown, drivetail("status", "-w", attacked.warehouse.root).output):
        check_printable(text)


def test_no_secret_of_the_environment_is_kept(attacked: Attacked) -> None:
    told = attacked.warehouse.log.read_text() + attacked.printed
    for path in attacked.warehouse.root.rglob("*"):
        if path.is_file():
            assert PASSPHRASE.encode() not in path.read_bytes(), path
    assert PASSPHRASE not in told


@pytest.mark.parametrize(
    "command",
    [
        ("metrics",),
        ("sql", "select * from marts.dim_drives", "--format", "csv"),
        ("sql", "select * from marts.dim_drives", "--format", "json"),
        ("alerts", "--format", "json"),
        ("alerts", "--all", "--format", "csv"),
        ("status", "--format", "json"),
    ],
)
def test_control_characters_pass_a_pipe_and_are_escaped_on_a_terminal(attacked: Attacked, command: tuple[str, ...]) -> None:
    arguments = [sys.executable, "-m", "drivetail", *command, "-w", str(attacked.warehouse.root)]
    piped = subprocess.run(arguments, capture_output=True, check=False, cwd=ROOT).stdout.decode()
    master, slave = pty.openpty()
    process = subprocess.Popen(arguments, stdout=slave, stderr=slave, cwd=ROOT)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # a terminal ends with an error
        while block := os.read(master, 1 << 16):
            shown += block
    os.close(master)
    process.wait()
    check_printable(shown.decode().replace("\r\n", "\n"))
    if command[-1] == "csv" and command[0] == "sql":
        assert "\x1b]0;owned\x07" in piped
        assert "\\x1b]0;owned\\x07" in shown.decode()

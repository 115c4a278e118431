"""workbench/check.py: banned words are named with file and line."""

from __future__ import annotations

import pytest

from workbench.check import banned


@pytest.mark.parametrize(
    "line",
    [
        '      - {name: slow_hours, description: "Of two groups one (count)."}',
        "    # Of two files the second wins",
        "description: What was wrong.",
        '    """What a drive is."""',
        "-- What drives cost.",
        "a row for what an array says of its drives",
        "null for a line that is none",
        "the day is made anew",
        f"def test_{'a' * 70}() -> None:",
        "def test_what_is_known_is_left_out() -> None:",
        "def test_a_drive_is_told_once() -> None:",
        "  - name: who_was_replaced_has_left",
    ],
)
def test_a_text_with_a_banned_pattern_is_named_with_its_line(line: str) -> None:
    (found,) = banned("docs/page.md", f"A sentence.\n{line}\n")
    assert found.startswith("docs/page.md:2: ") and "plain words are" in found


def test_a_plain_text_and_a_quotation_of_the_contract_pass() -> None:
    assert (
        banned("a.py", '"""> a replug at the unplug\'s own instant: that is none of it"""\nSlow hours among them. So many that it fails.')
        == []
    )

"""Every long test has a run: what `make test` leaves out is in some part of `make soak`."""

from __future__ import annotations

import re

from engine.warehouse import PROJECT
from workbench.soak import TESTS


def test_every_long_test_belongs_to_a_part_of_the_soak() -> None:
    named = [PROJECT / path for parts in TESTS.values() for path in parts if "tests/" in path]
    assert all(path.exists() for path in named)
    long = [
        path
        for folder in ("tests", "lab/tests", "study/tests")
        for path in (PROJECT / folder).rglob("test_*.py")
        if re.search(r"\bpytest\.mark\.soak\b", path.read_text("utf-8"))
    ]
    assert [path for path in long if not any(path.is_relative_to(part) for part in named)] == []

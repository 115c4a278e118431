"""How a parser is fuzzed: hypothesis, for half a second of CPU (a minute in make soak), and the number of inputs it saw on the way."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
FEWEST = 20  # whatever time they take
SECONDS = float(os.environ.get("DRIVETAIL_FUZZ_SECONDS", "0.5"))


def fuzz(inputs: SearchStrategy[T], check: Callable[[T], None], what: str, seconds: float = SECONDS) -> None:
    """Check inputs until the time is over (DRIVETAIL_FUZZ_SECONDS) and print how many there were."""
    seen = 0
    ends = 0.0

    @settings(max_examples=10_000_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(inputs)
    def run(drawn: T) -> None:
        nonlocal seen, ends
        ends = ends or time.process_time() + seconds  # not before: hypothesis takes seconds to wake up
        if seen >= FEWEST and time.process_time() > ends:
            raise _TimeIsOver
        seen += 1
        check(drawn)

    with contextlib.suppress(_TimeIsOver):
        run()
    print(f"fuzzed {what}: {seen} inputs in {seconds:g} CPU seconds")
    assert seen >= FEWEST


class _TimeIsOver(BaseException):
    """Ends a run; no Exception, or hypothesis would look for a smaller input that raises it."""

"""Programs that a test cannot do without: where one is missing, the test is skipped and the run's last line names it; in CI it fails.

`@pytest.mark.needs("promtool", "java")`, or `require("chromium")` in a fixture.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from shutil import which

import pytest

PACKAGES = {
    "chromium": "chromium",
    "dash": "dash",
    "bash": "bash",
    "busybox": "busybox",
    "filefrag": "e2fsprogs",
    "fio": "fio",
    "java": "default-jre-headless",
    "prometheus": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "promtool": "prometheus",
    "sadf": "sysstat",
    "strace": "strace",
    "systemd-analyze": "systemd",
}
"""Debian's package for each."""

OPTIONAL_IN_CI = {"systemd-analyze"}


def require(*programs: str) -> None:
    """Skip this test where a program is missing; fail it in CI."""
    for program in programs:
        if which(program) is None:
            sentence = f"for want of {program} (Debian: apt-get install {PACKAGES[program]})"
            if os.environ.get("CI") and program not in OPTIONAL_IN_CI:
                pytest.fail(f"CI must have every program: {sentence}")
            pytest.skip(sentence)


def missing(reasons: Iterable[str]) -> str:
    """The run's last line: the number of tests skipped for want of each program. Empty where no program is missing."""
    found = Counter(program for reason in reasons for program in re.findall(r"for want of (\S+)", reason))
    listed = ", ".join(f"{program} ({count})" for program, count in sorted(found.items()))
    return f"Tests skipped for want of a program: {listed}" if listed else ""

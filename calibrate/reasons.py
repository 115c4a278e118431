"""Why an id of the calibrated fleet differs: the paper against itself, what no mechanism here makes, or too few groups."""

import re

from calibrate.judge import Verdict

REASONS: tuple[tuple[str, str, str], ...] = ()


def reason_for(verdict: Verdict) -> str:
    """The first reason whose pattern the id matches."""
    for pattern, kind, reason in REASONS:
        if re.match(pattern, verdict.id) and kind in ("both", verdict.kind):
            return reason
    return "the fit leaves it here"

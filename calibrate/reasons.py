"""Why an id of the calibrated fleet differs: the paper against itself, what no mechanism here makes, or too few groups."""

import re

from calibrate.judge import Verdict

REASONS: tuple[tuple[str, str, str], ...] = (
    (r"F4A-T\d-.*EQ", "disk", "disks of the paper step at exact multiples, too; here only some SSDs have a coarse timer"),
    (
        r"F5B|F05|INT-03",
        "disk",
        "PI-04: 5a's intervals leave at most 11% of gaps above 0, 5b shows 35%; 5a and the one-day value were fitted",
    ),
    (r"(F4B|T3B|F03).*", "ssd", "PI-05: T1 + T2 + T3 exceed the slow hours of Table 1; one or two wide groups carry them here"),
    (r"F6B|F07", "both", "PI-11: 6b's mean and Table 1 exclude each other; drives slow in one single hour are too few here"),
    (r"F8A|F10", "disk", "years 1 to 8 of 8a are each slower than the whole fleet of 4a; 52 groups of known age, a handful per year"),
    (r"F8B|FG9|F11-|F12", "ssd", "a class of one to 20 groups: one bad group moves it"),
    (r"F11[ABCD]|F14|F15|UPD", "both", "tens of unplugs at most in a fleet of this size"),
    (r"F7|F08", "both", "hot spots and reading around slow drives are log-normal here; the paper's shape has more corners"),
    (r"F10[AB]|F13", "both", "hourly rates move together over all groups alike: the interval is narrow, the shape two mechanisms only"),
    (
        r"T3A|F01|F4A|T3B|F02|F03|T1|F6A|F06|F5A|F04",
        "both",
        "a tail carried by few drives: within a factor of 1.25 by luck as much as by fit",
    ),
)
"""Pattern of the id, kind, reason; the first that matches counts. PI-nn are inconsistencies inside the paper."""


def reason_for(verdict: Verdict) -> str:
    """The first reason whose pattern the id matches."""
    for pattern, kind, reason in REASONS:
        if re.match(pattern, verdict.id) and kind in ("both", verdict.kind):
            return reason
    return "the fit leaves it here"

"""Why an id of the calibrated fleet differs: the paper against itself, what no mechanism here makes, or too few groups.

An id that differs is off in one of two ways, which `reason_for` tells apart from its numbers. Where the 95% interval holds
the paper's value, the fleet cannot tell the two apart and only the factor of 1.25 is missed: noise of so small a fleet.
Where it does not, the cause is named here, for a single id or for a family.
"""

import math
import re

from workbench.calibrate.judge import Verdict

REASONS: tuple[tuple[str, str, str], ...] = (
    # the paper against itself
    (
        r"F4A-T\d-.*EQ",
        "disk",
        "one group of 130 has the coarse timer that makes exact multiples: what its drives do in 90 days is all there is",
    ),
    (
        r"F4B-Si-2EQ",
        "ssd",
        "T1, T2 and T3 at exactly 2 sum to 1.3% of RAID-hours, 0.18% of drive-hours; 4b has 0.12% of drive-hours there (as PI-05)",
    ),
    (r"T3A-17", "ssd", "Table 3a has 0.1% of drive-hours at 10 and above, 4b 0.08% at 8 and above: T1 to T3 of 4b allow no more (PI-05)"),
    (
        r"T3A-16|T3B-12|F4B-Si-3",
        "ssd",
        "PI-05: T1, T2 and T3 at 3 sum to 0.15% of drive-hours, 4b has 0.13%; many at 4 and above are in one shelf",
    ),
    (
        r"F4B-T3-[458]",
        "ssd",
        "PI-05: 4b has more drive-hours at 8 than T1, T2 and T3 leave: here they are stalls of half a shelf of 22, and T3 has them, too",
    ),
    (
        r"F8B-Y[12]-[34]",
        "ssd",
        "at 3 and above, T1 and T2 of 4b need more hours than 8b has by age: here the path of one group of the first year has them",
    ),
    (r"F8B-Y[34]", "ssd", "two to nine groups, next to no slow hours: one ailing or swapped drive decides"),
    (r"FG9-MLCA?-4", "ssd", "9 against itself: vendor A is nine tenths of MLC and has twice MLC's share at 4 and above: fitted in between"),
    (r"F11-03", "ssd", "9 against itself: its curves of SLC and MLC differ by 0.16 points at 2, the text says 0.1"),
    (r"FG9-MLCB", "ssd", "the drives of this vendor are noisy here, and none of its one group of eight ails: nothing far out"),
    (r"F7D-ssd-(1\.1|1\.25)", "ssd", "drives that serve large I/Os are next to never mildly slow here; the paper's are, one hour in fifty"),
    (r"F7D-ssd-4|F8B-Y4-3", "ssd", "the paper has none at all: a single hour differs"),
    (r"F7B-ssd-[34]", "ssd", "retries add I/Os alike whatever the slowness beyond 2.5: too many hours of many I/Os are very slow"),
    (
        r"F4B-T[123]-.*EQ|VST",
        "ssd",
        "one group of 40 has the coarse timer that makes exact multiples: what its drives do in 80 days is all there is",
    ),
    (r"T3B-13", "ssd", "noise of single drives reaches 1.2 in too many RAID-hours"),
    (r"F4B|F02|F03|T3B|F01|T1", "ssd", "two wide groups without a model hold most slow hours: their paths are one queue each"),
    (
        r"F5B",
        "disk",
        "PI-04: by 5a at least 89% of gaps are 0, 5b has 65%: 5b was chosen; the body of 5a still asks for longer intervals than it allows",
    ),
    (
        r"F5A|F04|INT-01",
        "disk",
        "PI-04: 5b's gaps leave 2.5 slow hours to an interval, 5a's tail asks for 9: 5b was chosen, no episode outlasts a day",
    ),
    (r"F6B|F07", "both", "PI-11: the mean of 6b and Table 1's slow hours per slow drive exclude each other: Table 1 was followed"),
    # what no mechanism here makes
    (
        r"F7[AC]|F08-0[236]",
        "disk",
        "how often a slow drive is read around, asked again or sent larger I/Os is even over slow hours, but not over those of hot drives",
    ),
    (r"F7B|F08-04", "disk", "the hot spots of a few drives hold most such hours; the noise of their groups blurs the corners"),
    (r"F7D|F08-08", "disk", "28 groups have larger I/Os; two or three of them decide the noise and the few slow hours"),
    (r"F7[AB]|F08-0[2345]", "both", "hot spots are of two kinds, log-normal in latency each; the paper's curve has more corners"),
    (r"F7[CD]|F08-0[6789]", "both", "larger I/Os go to some drives of a few groups for good: one or two groups make this share"),
    (
        r"F10[AB]-stable|F13",
        "both",
        "rates move by rhythm, noise and jobs: three mechanisms for a curve that 10^5 RAID-hours fix to a quarter of a point",
    ),
    (r"F10[AB]-tail", "both", "what clients do in a tail hour is one exponent here (clients that wait for the slowest drive)"),
    (
        r"F01-10|T3A-06|T3A-1[12]|F4A-..-8",
        "disk",
        "one knee for the severities of all ages: years 3 and 4 of 8a hold most of the far tail, the other years next to none of it",
    ),
    (
        r"F06|F6A-disk",
        "disk",
        "slow hours come in series: fewer drives are ever so slow here than in the paper, each of them more often",
    ),
    (
        r"T3A-02|T3B-0[1256]|F02-0[35]|F4A-T[23]-1.5",
        "disk",
        "the body of 4a: a log-normal spread of noise over groups with a ceiling is too simple",
    ),
    # too few groups, drives or events
    (r"F8A-Y0[678]|F10-05", "disk", "at most one group of 130 is so old: what its drives do is all there is"),
    (r"F10-0", "disk", "39 groups of known age, one to 13 in a year, up to 26 drives wide: their shares move in steps of a group"),
    (r"F8A", "disk", "two numbers for a year's slowness (how often, how steep); the paper's curve bends more, or its noise is another"),
    (r"F8B|FG9|F11-|F12|F10-0", "ssd", "one to 25 groups in a class, two of them with a weak path: between-group spread"),
    (r"F11[ABCD]|F14|F15|UPD", "both", "tens of unplugs at most in a fleet of this size"),
    (r"F06|F6A", "ssd", "hiccups are dealt to drives that nothing else slows: few more or fewer of 290 decide"),
    (r"F04|F05|INT|F5", "ssd", "intervals and gaps of a few drives with hundreds of slow hours weigh most"),
    (r"T3A", "ssd", "a tail carried by one or two groups"),
    (r"T3A|F01|F4A|T3B|F02|F03|T1|F6A|F06|F4B|F5", "both", "a tail carried by few drives and paths"),
    (r"TOD", "ssd", "what stalled paths bring after a stall begins at any hour of the day, and two wide groups hold most of it"),
    (r"TOD", "disk", "dealt evenly over the hours of standard time; summer time moves the hours of whole sites"),
    (r"MOD", "both", "not fitted: a distance over classes, in which the few drives with most slow hours weigh most"),
)
"""Pattern of the id, kind, reason; the first that matches counts. PI-nn are inconsistencies inside the paper (metrics.md)."""


def reason_for(verdict: Verdict, of_hundred: bool) -> str:
    """The deviation, from the numbers, and its reason, from the first reason whose pattern the id matches.

    `of_hundred`: the id is a percentile, judged by what is left to 100.
    """
    cause = next(
        (reason for pattern, kind, reason in REASONS if re.match(pattern, verdict.id) and kind in ("both", verdict.kind)),
        "the fit leaves it here",
    )
    return f"{_how(verdict, of_hundred)}; {cause}"


def _how(verdict: Verdict, of_hundred: bool) -> str:
    """In which of the two ways the id is off, and how far."""
    if math.isnan(verdict.low) or math.isnan(verdict.paper):
        return "no value to compare with"
    a, b = (100 - verdict.value, 100 - verdict.paper) if of_hundred else (verdict.value, verdict.paper)
    factor = math.inf if min(a, b) <= 0 else max(a / b, b / a)
    if verdict.low <= verdict.paper <= verdict.high:
        return f"within noise (the interval holds the paper's value), off by a factor of {factor:.2f}"
    return f"off by a factor of {factor:.2f}, paper outside the interval"

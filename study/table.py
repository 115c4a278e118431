"""`drivetail study`: this fleet compared with the study (The Tail at Store, FAST'16), as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from drivetail.terminal import render
from engine.read import Row
from report.words import human
from study.words import (
    FINDINGS,
    VERDICTS,
    counted,
    finding_of,
    group_of,
    in_the_paper,
    interval,
    this_fleet,
    verdict_counts,
    what_is_measured,
)

SHOWN = ("finding", "table")
"""Summarised without `--all`: the figures alone give hundreds of points."""


def render_study(rows: Sequence[Row], *, is_all: bool = False) -> str:
    """The results for the terminal, with a count of the verdicts: a line per finding and table, or with `is_all` each number."""
    if is_all:
        return f"{_numbers(rows)}\n\n{_counted(rows)}"
    shown = [row for row in rows if row["reference_kind"] in SHOWN]
    rest = len(rows) - len(shown)
    return (
        f"{_summary(shown)}\n\n{_counted(shown)}; each of them" + (f", and {human(rest)} of figures and text" if rest else "") + ": --all"
    )


def _summary(rows: Sequence[Row]) -> str:
    printed: list[list[object]] = []
    for heading, group in groupby(rows, group_of):
        of_group = list(group)
        finding = finding_of(of_group[0])
        printed.append([heading, FINDINGS[finding] if finding else None, *(count or None for count in verdict_counts(of_group).values())])
    return render(["", "asks", *VERDICTS], printed, folded=("asks",))


def _counted(rows: Sequence[Row]) -> str:
    counts = verdict_counts(rows)
    return f"{human(sum(counts.values()))} numbers: {', '.join(f'{human(count)} {VERDICTS[each]}' for each, count in counts.items())}"


def _numbers(rows: Sequence[Row]) -> str:
    columns = ["id", "kind", "metric", "this fleet", "counted", "95% interval", "paper", "verdict", "reason"]
    printed: list[list[object]] = []
    heading = None
    for row in rows:
        if group_of(row) != heading:
            heading = group_of(row)
            finding = finding_of(row)
            question = FINDINGS[finding] if finding else None
            if printed:
                printed.append([None] * len(columns))
            printed.append([heading, None, question, *[None] * (len(columns) - 3)])
        values = [this_fleet(row), counted(row), interval(row), in_the_paper(row)]
        printed.append([row["id"], row["kind"], what_is_measured(row), *values, row["verdict"], row["reason"]])
    return render(columns, printed, right=("this fleet", "counted", "95% interval", "paper"), folded=("metric", "reason"))

"""`drivetail study`: this fleet compared with the study (The Tail at Store, FAST'16), as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from drivetail.console import render
from engine.read import Row
from engine.words import human
from report.study.words import (
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
"""What the table shows without `--all`: the figures alone give hundreds of points."""


def render_study(rows: Sequence[Row], *, is_all: bool = False) -> str:
    """The results as a table for the terminal, under the headings of the paper, and a line that counts the verdicts.

    is_all: also the points of the figures and the numbers of the text.
    """
    shown = [row for row in rows if is_all or row["reference_kind"] in SHOWN]
    columns = ["id", "kind", "metric", "this fleet", "counted", "95% interval", "paper", "verdict", "reason"]
    printed: list[list[object]] = []
    heading = None
    for row in shown:
        if group_of(row) != heading:
            heading = group_of(row)
            finding = finding_of(row)
            question = FINDINGS[finding] if finding else None
            if printed:
                printed.append([None] * len(columns))
            printed.append([heading, None, question, *[None] * (len(columns) - 3)])
        values = [this_fleet(row), counted(row), interval(row), in_the_paper(row)]
        printed.append([row["id"], row["kind"], what_is_measured(row), *values, row["verdict"], row["reason"]])
    counts = ", ".join(f"{human(count)} {VERDICTS[verdict]}" for verdict, count in verdict_counts(shown).items())
    rest = len(rows) - len(shown)
    closing = f"{human(len(shown))} numbers: {counts}" + (f"; {human(rest)} more of figures and text: --all" if rest else "")
    return (
        render(columns, printed, right=("this fleet", "counted", "95% interval", "paper"), folded=("metric", "reason")) + "\n\n" + closing
    )

"""The study page: words, tables and figures put in order. All data are escaped, in HTML by the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from engine.read import Row
from report.page.html import render
from report.page.look import drawn
from report.page.numbers import DETECTOR_WORDS, count, listed, noun
from report.page.tolerance import tolerance_words
from study.pages import curves
from study.pages.figures import FIGURES, Figure, redrawn
from study.pages.health import health_rows, health_words
from study.words import (
    FINDINGS,
    OPERATORS,
    VERDICTS,
    by_number,
    finding_of,
    group_of,
    in_the_paper,
    interval,
    this_fleet,
    verdict_counts,
)
from study.words import counted as counts_of
from study.words import what_is_measured as metric_of

FOLDER = Path(__file__).parents[1]


@dataclass(frozen=True)
class StudyFacts:
    """All the page shows. `results` in the paper's order; `curves` and `paper_curves` by x; `coverage` may be empty."""

    kind: str | None
    publication: Row
    coverage: list[Row]
    results: list[Row]
    variants: list[Row]
    curves: list[Row]
    paper_curves: list[Row]
    percentiles: list[Row]
    thresholds: list[Row]
    durations: list[Row]
    duration_summary: list[Row]
    detectors: list[Row]
    health: list[Row]
    health_warnings: list[Row]
    tolerance: list[Row]
    latency_tails: list[Row]


IN_WORDS = {
    ("F01-01", "F01-02"): "the share of hours in which a drive was at least twice as slow as its group",
    ("F01-07", "F01-08"): "the share of hours in which a drive was at least 1.5 times as slow as its group",
    ("F01-09",): "the slowdown that one hour in 10,000 reaches",
    ("F01-10",): "the slowdown that one hour in 100,000 reaches",
    ("F02-01", "F02-02"): "the share of hours in which a RAID group had a drive at least twice as slow as the rest",
    ("F02-05", "F02-06"): "the share of hours in which a RAID group had a drive at least 1.5 times as slow as the rest",
    ("F03-02", "F03-05"): "the share of hours in which a RAID group had two drives or more at least twice as slow as the rest",
    ("F03-03", "F03-06"): "the share of hours in which a RAID group had three drives or more at least twice as slow as the rest",
    ("F04-01", "F04-02"): "the share of slow spells that lasted longer than an hour",
    ("F04-03", "F04-04"): "the share of slow spells that lasted 8 hours or longer",
    ("F05-01", "F05-02"): "the share of slow hours that began within a day of the drive's last one",
    ("F06-01", "F06-02"): "the share of drives that were ever twice as slow as their group",
    ("F06-03", "F06-04"): "the share of drives that were ever 16 times as slow as their group",
    ("F07-01", "F07-02"): "the share of slow drives that were slow in 100 hours or more",
    ("F07-03", "F07-04"): "the share of slow drives that were slow in fewer than 5 hours",
    ("F08-01",): "the share of slow hours that more or larger I/O does not explain",
    ("F08-02",): "the share of slow hours in which the drive had at least twice the I/O of its peers",
    ("F08-04", "F08-05"): "the share of slow hours among those with at least twice the I/O of the peers",
    ("F08-06", "F08-07"): "the share of slow hours in which the drive's I/O was at least twice as large as its peers'",
    ("F08-08", "F08-09"): "the share of slow hours among those with I/O at least twice as large as the peers'",
    ("F09-02",): "the share of the errors 'not spinning' and 'not responding' that came with a slow hour",
    ("F10-05",): "the slowdown that one hour in 20 of disks in their 8th year reaches",
    ("F11-01",): "the share of hours in which MLC drives stayed below 1.5 times their group",
    ("F11-02",): "the share of hours in which SLC drives stayed below 1.5 times their group",
    ("F12-03",): "the share of hours in which MLC drives of the smaller vendor stayed below 1.5 times their group",
    ("F13-01",): "the share of hours in which a group's throughput halved with no drive slow",
    ("F13-02", "F13-03"): "the extra share of hours in which a group's throughput halves when a drive turns slow",
    ("F14-01", "F14-02"): "the share of slow drives that were unplugged within a day",
    ("F14-03", "F14-04"): "the share of mildly slow drives that were unplugged within a day",
    ("F15-01", "F15-02"): "the share of unplugged drives that were plugged in again",
    ("F15-03", "F15-04"): "the share of drives slow again within a day of being plugged back in",
}
"""The findings' main numbers in words that need no knowledge of the paper."""

SPOKEN = {"~": ("about ", ""), ">=": ("", " or more"), "<=": ("", " or less"), ">": ("more than ", ""), "<": ("less than ", "")}
"""An operator of a reference in a sentence: what stands before the number and after it."""

WORDS = {name: words for names, words in IN_WORDS.items() for name in names}


def render_page(facts: StudyFacts) -> str:
    """The whole HTML file."""
    return render(
        "page.html.j2",
        FOLDER / "pages",
        facts=facts,
        counts=verdict_counts(facts.results),
        verdicts=VERDICTS,
        outcomes=outcomes(facts.results),
        findings=[
            (number, question, of_finding, analysis(number))
            for number, question in FINDINGS.items()
            if (of_finding := [row for row in facts.results if finding_of(row) == number])
        ],
        others=[
            (heading, list(rows)) for heading, rows in groupby((row for row in facts.results if finding_of(row) is None), key=group_of)
        ],
        variants=variants(facts),
        figures=figures(facts),
        tolerance_words=tolerance_words(facts.tolerance),
        this_fleet=this_fleet,
        counted=counts_of,
        interval=interval,
        in_the_paper=in_the_paper,
        metric=metric_of,
        words=WORDS,
        distribution=curves.distribution(facts.percentiles, facts.thresholds),
        duration_figures=curves.duration_figures(facts.durations),
        interval_words=curves.interval_words(facts.duration_summary),
        gap_words=curves.gap_words(facts.duration_summary),
        unplug_words=curves.unplug_words(facts.duration_summary),
        health_words=health_words(facts.health),
        health_rows=health_rows(facts.health, facts.health_warnings),
        tail_words=curves.tail_words(facts.latency_tails),
        matrix=curves.detector_matrix(facts.detectors),
        detector_words=DETECTOR_WORDS,
    )


def analysis(finding: int) -> tuple[str, str]:
    """The query of a finding, for an analyst to run and change. Returns: its path in the project, its text."""
    (path,) = (FOLDER / "analyses").glob(f"finding_{finding:02d}_*.sql")
    return str(path.relative_to(FOLDER.parent)), path.read_text(encoding="utf-8").rstrip()


# --------------------------------------------------------------------------------------------------------------------
# Words


@dataclass(frozen=True)
class Outcome:
    """Outcome of a finding on this fleet."""

    number: int
    question: str
    verdict: str
    judged: int
    differing: list[str]
    """Differences, in words."""


def outcomes(results: Sequence[Row]) -> list[Outcome]:
    """Every finding: `differs` when a number does, else `agrees` when one does; `cannot tell` and `no data` when none can be judged."""
    every = []
    for number, question in FINDINGS.items():
        found = [row for row in results if finding_of(row) == number]
        judged = [row for row in found if row["verdict"] in {"agrees", "differs"}]
        differing = [row for row in judged if row["verdict"] == "differs"]
        is_open = any(row["verdict"] == "cannot tell" for row in found)
        verdict = "differs" if differing else "agrees" if judged else "cannot tell" if is_open else "no data"
        every.append(Outcome(number, question, verdict, len(judged), difference_words(differing)))
    return every


def difference_words(rows: Sequence[Row]) -> list[str]:
    """The numbers of a finding that differ: its main ones a sentence each, the others counted."""
    sentences = [
        f"{'Disks' if row['kind'] == 'disk' else 'SSDs'}: {WORDS[row['id']]} is {said(this_fleet(row))} "
        f"(95% interval {interval(row)}); the paper has {said(in_the_paper(row), row['operator'])}."
        for row in rows
        if row["id"] in WORDS
    ]
    rest = len(rows) - len(sentences)
    if rest:
        other, too = ("other ", " too") if sentences else ("", "")
        sentences.append(f"{noun(rest, f'{other}number', f'{other}numbers')} of this finding {'differs' if rest == 1 else 'differ'}{too}.")
    return sentences


def said(number: str | None, operator: str = "=") -> str:
    """A number in a sentence: `about 40%`, `9\u00d7 or more`; a percentile as the share it is."""
    text = (number or "not given").removeprefix(OPERATORS.get(operator, ""))
    text = f"{text[1:]}%" if text.startswith("P") else text
    before, after = SPOKEN.get(operator, ("", ""))
    return f"{before}{text}{after}"


# --------------------------------------------------------------------------------------------------------------------
# Variants and figures


@dataclass(frozen=True)
class Variants:
    """A finding's numbers measured otherwise: `rows` give, by variant, a value for each of `results`, None where it was not computed."""

    heading: str
    question: str
    results: list[Row]
    rows: list[tuple[str, list[Row | None]]]


def variants(facts: StudyFacts) -> list[Variants]:
    """The variants side by side, a table for each finding."""
    cells = {(row["variant"], row["id"], row["kind"]): row for row in facts.variants}
    names = {(row["id"], row["kind"]): set[str]() for row in facts.variants}
    for name, *key in cells:
        names[key[0], key[1]].add(name)
    varied = [row for row in facts.results if (row["id"], row["kind"]) in names]
    tables = []
    for heading, together in groupby(varied, key=group_of):
        results = list(together)
        of_any = sorted(set().union(*(names[row["id"], row["kind"]] for row in results)), key=by_number)
        rows = [(name, [cells.get((name, row["id"], row["kind"])) for row in results]) for name in of_any]
        tables.append(Variants(heading, FINDINGS.get(finding_of(results[0]) or 0, ""), results, rows))
    return tables


def figures(facts: StudyFacts) -> list[list[tuple[Figure, Markup, str]]]:
    """Every figure of the paper with drives of the requested kinds, drawn, with what its curves show; those of one number together."""
    wanted = [figure for figure in FIGURES if facts.kind is None or figure.kind in (None, facts.kind)]
    result = []
    for _, together in groupby(wanted, key=lambda figure: figure.name.rstrip("abcd")):
        row = []
        for figure in together:
            fleet = [point for point in facts.curves if point["figure"] == figure.name]
            paper = [point for point in facts.paper_curves if point["figure"] == figure.name]
            drawing = drawn(redrawn(figure, fleet, paper, facts.kind), figure.name, f"Figure {figure.name}: {figure.title}")
            row.append((figure, drawing, populations(figure, fleet)))
        result.append(row)
    return result


def populations(figure: Figure, fleet: Sequence[Row]) -> str:
    """How many RAID groups each curve of the fleet is from, and how many hours or drives; empty without any."""
    last = {point["curve"]: point for point in fleet}
    return listed(
        [
            f"{count(point['population'])} {figure.of}{of_groups(figure, point)} ({figure.called(curve)})"
            for curve in figure.curves
            if (point := last.get(curve))
        ]
    )


def of_groups(figure: Figure, point: Row) -> str:
    """The RAID groups behind a curve that is not of RAID groups itself: the sample of its band."""
    if figure.of == "RAID groups" or point["raid_group_count"] is None:
        return ""
    few = "" if point["y_low"] is not None else ", too few for a band"
    return f" of {noun(point['raid_group_count'], 'RAID group', 'RAID groups')}{few}"

"""Before and after on the page of an experiment: is the drive slower than it was, by how much, and is that more than noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import plotly.graph_objects as go

from engine.read import Row, fetch
from lab.ask.verdict import FEW_RUNS, MARGIN_PERCENT
from lab.read import size
from report.page.look import COLOURS, QUIET, SLOW, drawn, safe, styled
from report.words import counted_noun

INKS = {"slower": SLOW, "faster": COLOURS["disk"], "equal": QUIET, "not slower": QUIET, "cannot say": QUIET}
"""Colour of an answer."""
NAMES = {
    "slower": "worse after", "faster": "better after", "equal": "equal", "not slower": "not slower", "cannot say": "cannot say",
}  # fmt: skip
OTHERS = {"not alike": "other options", "limited": "the limit was measured", "no data": "no data"}
"""Cells that are not compared."""
CELLS = """
select * from lab.fct_phase_cells where experiment_id = ?
order by loss_percent desc nulls last, config_id, benchmark, test, parameter, size_bytes
"""
FAILURES = """
select failure, job, count(*) as runs, min(phase) as phase, count(distinct phase) as phases from lab.fct_bench_jobs
where experiment_id = ? and failure is not null and phase in ('before', 'after') group by job, failure order by runs desc, job, failure
"""
STRESS = "select * from lab.fct_stress_runs where experiment_id = ? order by config_id, phase, run_number, file, operation, test"
AMPLIFICATION = "select * from lab.fct_write_amplification where experiment_id = ? order by all"


def part(connection: duckdb.DuckDBPyConnection, experiment: Row, other: Row | None) -> dict[str, Any]:
    """Values that the page of such an experiment shows."""
    name = experiment["experiment_id"]
    cells = fetch(connection, CELLS, [name])
    shown = [row for row in cells if row["answer"] in NAMES]
    drawings = [(f"Experiment {name}", shown)] if other is not None else [("Every cell", shown)]
    if other is not None:
        beside = [row for row in fetch(connection, CELLS, [other["experiment_id"]]) if row["answer"] in NAMES]
        drawings.append((f"Experiment {other['experiment_id']}", beside))
    return {
        "template": "before_after.html.j2",
        "question": "Is it slower than it was before?",
        "answer": _answer(cells, fetch(connection, FAILURES, [name])),
        "cells": cells,
        "names": NAMES | OTHERS,
        "worse": [row for row in cells if row["answer"] == "slower"],
        "called": called,
        "dots": [
            (heading, drawn(_dots(rows), f"cells-{number}", "Change of every cell"))
            for number, (heading, rows) in enumerate(drawings)
            if rows
        ],
        "stress": fetch(connection, STRESS, [name]),
        "amplification": fetch(connection, AMPLIFICATION, [name]),
        "size": size,
        "margin": MARGIN_PERCENT,
    }


def called(row: Row) -> str:
    """A cell in words."""
    parameter = row["parameter"]
    of = "" if not parameter else f" {size(parameter)}" if parameter >= 1024 else f" by {parameter}"
    return f"{row['benchmark']} {row['test']}{of}"


def _answer(cells: Sequence[Row], failures: Sequence[Row]) -> list[str]:
    """Slower, not slower by more than so much, or cannot say: in a sentence, with what supports it. What forbids an answer comes first."""
    judged = [row for row in cells if row["answer"] in NAMES]
    cached = _jobs(row for row in cells if row["is_cached"])
    said = [_failed(row) for row in failures]
    said += [f"direct=0: {cached} may have measured the page cache, not the drive."] if cached else []
    said += _unlike(cells) + _limited(cells)
    if judged:
        without = [row for row in cells if row["answer"] == "no data"]
        said += _verdict(judged, without, is_whole=not failures and all(row["answer"] != "not alike" for row in cells))
    elif any(row["answer"] in ("not alike", "limited") for row in cells):
        said.append("Cannot say: no cell can be compared.")
    else:
        said.append("Cannot say: no cell has two results before and two after.")
    return said


def _verdict(judged: Sequence[Row], without: Sequence[Row], *, is_whole: bool) -> list[str]:
    """The answer of cells that are compared. is_whole: none was left out for what it is."""
    of = {answer: [row for row in judged if row["answer"] == answer] for answer in NAMES}
    # of a mean of 0 before, nothing is a percentage
    most = max((row["most_loss_percent"] for row in judged if row["most_loss_percent"] is not None), default=0)
    open_ = of["cannot say"]
    counts = f"better: {len(of['faster'])}, open: {len(open_)}"
    all_ = counted_noun(len(judged), "cell")
    runs = min(min(row["n_before"], row["n_after"]) for row in judged)
    few = f" Only {runs} runs of each phase: more would say more." if runs < FEW_RUNS else ""
    if of["slower"]:
        worst = of["slower"][0]
        said = [f"Yes: {_worst(worst)} {len(of['slower'])} of {all_} got worse ({counts}).{few}"]
        if not open_:
            said.append(f"No cell is slower by more than {max(most, 0):.1f}% (shown).")
    elif not open_ and not without and is_whole:
        said = [
            f"No: not slower by more than {max(most, 0):.1f}% in any of {all_} (shown by one-sided tests at 95%, margin "
            f"{MARGIN_PERCENT}%; {counts}).{few}"
        ]
    else:
        said = [_cannot_say(open_, without, judged) + few, f"None of {all_} is shown to be worse ({counts})."]
    return said


def _jobs(rows: Iterable[Row]) -> str:
    """Jobs of fio and their directions, without what is measured of them."""
    names = list(dict.fromkeys(row["test"].rpartition(".")[0] for row in rows))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _failed(row: Row) -> str:
    when = row["phase"] if row["phases"] == 1 else "in both phases"
    failure = row["failure"][0].upper() + row["failure"][1:]
    return f"{failure} in {counted_noun(row['runs'], 'run')} {when}: job {row['job']} has no result there."


def _unlike(cells: Sequence[Row]) -> list[str]:
    """A sentence for each set of options that differ."""
    found: dict[str, list[Row]] = {}
    for row in cells:
        if row["differing_options"] is not None:
            found.setdefault(row["differing_options"], []).append(row)
    return [f"Not the same benchmark: {options} ({_jobs(rows) or rows[0]['benchmark']}); not compared." for options, rows in found.items()]


def _limited(cells: Sequence[Row]) -> list[str]:
    limited = [row for row in cells if row["answer"] == "limited"]
    if not limited:
        return []
    names = ", ".join(dict.fromkeys(limit for row in limited for limit in row["limits"].split(", ")))
    return [f"The limit was measured: bandwidth and IOPS of {_jobs(limited)} are those of {names}; only latencies compare."]


def _cannot_say(cells: Sequence[Row], without: Sequence[Row], judged: Sequence[Row]) -> str:
    """Smallest change that the runs can show, and how many more would show a change of the margin."""
    if not cells:
        all_ = len(without) + len(judged)
        lack = f"{len(without)} of {all_} cells lack two results before and after" if without else "not every cell could be compared"
        return f"Cannot say: {lack}; the others are not slower."
    runs = min(min(row["n_before"], row["n_after"]) for row in cells)
    # runs that are equal would show any change, were they not so few
    detectable = sorted(row["detectable_ratio"] for row in cells if row["detectable_ratio"])
    more = [row["runs_to_show"] - min(row["n_before"], row["n_after"]) for row in cells if row["runs_to_show"] is not None]
    best = f" and from {100 * detectable[0]:.0f}% in the best" if len(detectable) > 1 and detectable[-1] >= 1.5 * detectable[0] else ""
    can = (
        f"these {runs} runs show only changes from {100 * detectable[-1]:.0f}% in every cell{best}"
        if detectable
        else f"{runs} runs are too few"
    )
    needed = f"; {max(more):,} more of each phase would show {MARGIN_PERCENT}%" if more and max(more) > 0 else ""
    return f"Cannot say: {can}{needed}."


def _worst(row: Row) -> str:
    """The cell that lost most."""
    name = f"{called(row)} of {row['config_id']}"
    if row["loss_percent"] is None:
        return f"{name} was 0 before and is {row['mean_after']:,.5g} {row['unit']} after."
    bounds = "" if row["loss_percent_low"] is None else f" (95%: {row['loss_percent_low']:.1f} to {row['loss_percent_high']:.1f}%)"
    n = f"n = {row['n_before']} and {row['n_after']}"
    return f"{name} {'lost' if row['higher_is_better'] else 'grew by'} {row['loss_percent']:.1f}%{bounds}, {n}."


def labels(rows: Sequence[Row]) -> list[str]:
    """Names of cells as short as tells them apart, so that a phone has room for the dots: the unit says which benchmark, mostly."""
    several = len({row["config_id"] for row in rows}) > 1
    full = [called(row) for row in rows]
    short = [f"{name.removeprefix(row['benchmark']).strip()}, {row['unit']}" for name, row in zip(full, rows, strict=True)]
    benchmarks: dict[str, set[str]] = {}
    for label, row in zip(short, rows, strict=True):
        benchmarks.setdefault(label, set()).add(row["benchmark"])
    chosen = [name if len(benchmarks[label]) > 1 else label for name, label in zip(full, short, strict=True)]
    return [safe(f"{row['config_id']}: {label}" if several else label) for label, row in zip(chosen, rows, strict=True)]


def _dots(rows: Sequence[Row]) -> go.Figure:
    """A dot for each cell with its interval, the worst above."""
    drawing = go.Figure()
    for answer, ink in INKS.items():
        mine = [(place, row) for place, row in enumerate(rows) if row["answer"] == answer]
        drawing.add_scatter(
            x=[row["loss_percent"] for _, row in mine], y=[place for place, _ in mine], mode="markers", name=NAMES[answer],
            marker={"color": ink, "size": 7}, customdata=[safe(f"{row['config_id']}: {called(row)}") for _, row in mine],
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.5, "width": 0,
                "array": [0 if row["loss_percent_high"] is None else row["loss_percent_high"] - row["loss_percent"] for _, row in mine],
                "arrayminus": [0 if row["loss_percent_low"] is None else row["loss_percent"] - row["loss_percent_low"] for _, row in mine],
            },
            hovertemplate="%{customdata}: %{x:.2f}%<extra></extra>",
        )  # fmt: skip
    names = labels(rows)
    # a letter of ten pixels is about 5.6 wide
    left = 12 + min(218, int(5.6 * max(map(len, names))))
    styled(drawing, 90 + 15 * len(rows), hovermode="closest", margin=(left, 16, 30, 46))
    drawing.update_yaxes(
        range=[len(rows) - 0.3, -0.7],
        tickvals=[*range(len(rows))],
        ticktext=names,
        tickfont={"size": 10},
        showgrid=False,
        automargin=False,
    )
    drawing.update_xaxes(title_text="percent worse after", zeroline=True)
    return drawing

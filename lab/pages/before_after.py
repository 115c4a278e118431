"""Before and after on the page of an experiment: is the drive slower than it was, by how much, and is that more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import plotly.graph_objects as go

from engine.read import Row, fetch
from lab.read import size
from report.page.look import COLOURS, QUIET, SLOW, drawn, safe, styled
from report.words import counted_noun

INKS = {"before_better": SLOW, "after_better": COLOURS["disk"], "inconclusive": QUIET}
"""Colour of a verdict."""
NAMES = {"before_better": "worse after", "after_better": "better after", "inconclusive": "inconclusive"}

MARGIN_PERCENT = 10
"""Within which phases count as equal: lab_equal_percent of the models."""

CELLS = """
select * from lab.fct_phase_cells where experiment_id = ?
order by loss_percent desc nulls last, config_id, benchmark, test, parameter, size_bytes
"""
STRESS = "select * from lab.fct_stress_runs where experiment_id = ? order by config_id, phase, run_number, file, operation, test"
AMPLIFICATION = "select * from lab.fct_write_amplification where experiment_id = ? order by all"


def part(connection: duckdb.DuckDBPyConnection, experiment: Row, other: Row | None) -> dict[str, Any]:
    """Values that the page of such an experiment shows."""
    name = experiment["experiment_id"]
    cells = fetch(connection, CELLS, [name])
    shown = [row for row in cells if row["verdict"] != "no data"]
    drawings = [(f"Experiment {name}", shown)] if other is not None else [("Every cell", shown)]
    if other is not None:
        beside = [row for row in fetch(connection, CELLS, [other["experiment_id"]]) if row["verdict"] != "no data"]
        drawings.append((f"Experiment {other['experiment_id']}", beside))
    return {
        "template": "before_after.html.j2",
        "question": "Is it slower than it was before?",
        "answer": _answer(cells),
        "cells": cells,
        "names": {**NAMES, "no data": "no data"},
        "worse": [row for row in cells if row["verdict"] == "before_better"],
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


def _answer(cells: Sequence[Row]) -> list[str]:
    """Slower, not slower by more than so much, or cannot say: in a sentence, with what supports it."""
    of = {verdict: [row for row in cells if row["verdict"] == verdict] for verdict in (*NAMES, "no data")}
    judged = [row for row in cells if row["verdict"] != "no data"]
    if not judged:
        return ["Cannot say: no cell has two results before and two after."]
    worse, better, open_ = of["before_better"], of["after_better"], [row for row in judged if not _is_shown(row)]
    # of a mean of 0 before, nothing is a percentage
    most = max((row["most_loss_percent"] for row in judged if row["most_loss_percent"] is not None), default=0)
    counts = f"better: {len(better)}, inconclusive: {len(of['inconclusive'])}"
    if worse:
        said = [
            f"Yes, in places: {len(worse)} of {counted_noun(len(judged), 'cell')} got worse by more than the spread of their "
            f"results ({counts})."
        ]
        if not open_:
            said.append(f"No cell is slower by more than {max(most, 0):.1f}% of the mean before (shown).")
        said.append(_worst(worse[0]))
    elif not open_ and not of["no data"]:
        said = [
            f"No: not slower by more than {max(most, 0):.1f}% of the mean before in any of {counted_noun(len(judged), 'cell')} "
            f"(shown by one-sided tests at 95%; {counts})."
        ]
    else:
        said = [
            _cannot_say(open_, of["no data"], judged),
            f"None of {counted_noun(len(judged), 'cell')} got worse by more than the spread of its results ({counts}).",
        ]
    return said


def _is_shown(row: Row) -> bool:
    """Whether a cell is shown to be no slower: equal within the margin, or better."""
    return bool(row["is_equal"]) or row["verdict"] == "after_better"


def _cannot_say(cells: Sequence[Row], without: Sequence[Row], judged: Sequence[Row]) -> str:
    """Smallest change that the runs can show, and how many more would show a change of the margin."""
    if not cells:
        all_ = len(without) + len(judged)
        return f"Cannot say: {len(without)} of {all_} cells lack two results before and after; the others are not slower."
    runs = min(min(row["n_before"], row["n_after"]) for row in cells)
    detectable = [row["detectable_ratio"] for row in cells if row["detectable_ratio"] is not None]
    more = [row["runs_to_show"] - min(row["n_before"], row["n_after"]) for row in cells if row["runs_to_show"] is not None]
    can = (
        f"these {runs} runs show only changes from {100 * max(detectable):.0f}% in every cell" if detectable else f"{runs} runs are too few"
    )
    needed = f"; {max(more)} more of each phase would show {MARGIN_PERCENT}%" if more and max(more) > 0 else ""
    return f"Cannot say: {can}{needed}."


def _worst(row: Row) -> str:
    if row["loss_percent"] is None:
        return f"{called(row)} of {row['config_id']} was 0 before and is {row['mean_after']:,.5g} {row['unit']} after."
    bounds = "" if row["loss_percent_low"] is None else f" (95%: {row['loss_percent_low']:.1f} to {row['loss_percent_high']:.1f}%)"
    unit = "lost" if row["higher_is_better"] else "grew by"
    return f"The worst is {called(row)} of {row['config_id']}: it {unit} {row['loss_percent']:.1f}% of the mean before{bounds}."


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
    for verdict, ink in INKS.items():
        mine = [(place, row) for place, row in enumerate(rows) if row["verdict"] == verdict]
        drawing.add_scatter(
            x=[row["loss_percent"] for _, row in mine], y=[place for place, _ in mine], mode="markers", name=NAMES[verdict],
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

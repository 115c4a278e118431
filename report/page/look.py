"""The look of every figure: colours, axes, and a Plotly figure as a piece of the page."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from engine.read import Row
from report.page.numbers import KIND_NAMES, TIMES

# Okabe and Ito's palette, distinct for colour-blind readers and, by lightness, in print
COLOURS = {"disk": "#0072B2", "ssd": "#009E73", "unknown": "#7A7A7A"}
SLOW = "#D55E00"
INK, QUIET, GRID = "#1f2933", "#616e7c", "#e4e7eb"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"


def colour(kind: str) -> str:
    """The colour of a kind, everywhere the same."""
    return COLOURS.get(kind, COLOURS["unknown"])


def safe(text: Any) -> str:
    """Data as Plotly text: Plotly reads a little HTML, which data must not write."""
    return html.escape(str(text), quote=False)


def styled(
    figure: go.Figure, height: int, *, hovermode: str = "x unified", margin: tuple[int, int, int, int] = (64, 24, 36, 52)
) -> go.Figure:
    """The common look. margin: left, right, top, bottom."""
    figure.update_layout(
        height=height,
        autosize=True,
        # the page's own background, light or dark, and its ink: base.html.j2 maps INK, QUIET, GRID and the kinds' colours
        template="none",
        paper_bgcolor="rgba(0, 0, 0, 0)",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        font={"family": FONT, "size": 13, "color": INK},
        margin=dict(zip("lrtb", margin, strict=True)),
        hovermode=hovermode,
        hoverlabel={"bgcolor": "white", "bordercolor": GRID, "font": {"family": FONT, "size": 13, "color": INK}, "namelength": -1},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "font": {"size": 13}},
        dragmode="zoom",
    )
    axis = {
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": "#9aa5b1",
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "#9aa5b1",
        "automargin": True,
        "title": {"font": {"size": 13, "color": QUIET}, "standoff": 8},
    }
    figure.update_xaxes(**axis, showspikes=False)
    figure.update_yaxes(**axis)
    figure.update_annotations(font={"family": FONT})
    return figure


_DIRECTION = re.compile(r"(?<!\\)((?:\\\\)*)\\u(061c|200[ef]|202[a-e]|206[6-9])")
"""A character that turns the direction of text, as JSON escapes it."""


def figure_html(figure: go.Figure, div_id: str, label: str) -> str:
    """A figure as data, without plotly.js, which the page holds once; the page draws it when the reader scrolls near it.

    label: what it shows, for those who do not see it.
    """
    # a script ends at the first "</script", whatever the language
    data = _DIRECTION.sub(r"\1\\\\u\2", str(figure.to_json())).replace("<", "\\u003c")
    return (
        f'<div id="{html.escape(div_id)}" class="plotly-graph-div" role="group" aria-label="{html.escape(label)}" '
        f'style="height: {figure.layout.height}px">'
        f'<script type="application/json">{data}</script></div>'
    )


def kinds_of(rows: Sequence[Row]) -> list[str]:
    """The kinds in the rows, disks first, unknown last."""
    order = list(KIND_NAMES)
    return sorted({row["kind"] for row in rows}, key=lambda kind: (order.index(kind) if kind in order else 1.5, kind))


def nice_ticks(candidates: Sequence[float], low: float, high: float) -> list[float]:
    """The candidates within the range."""
    return [tick for tick in candidates if low <= tick <= high]


SLOWDOWN_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 500, 1000, 5000, 10000)


def slowdown_axis(figure: go.Figure, low: float, top: float) -> None:
    """A logarithmic axis of slowdowns."""
    ticks = nice_ticks(SLOWDOWN_TICKS, low, top)
    words = [f"{tick:g}{TIMES}" for tick in ticks]
    figure.update_yaxes(type="log", range=[math.log10(low), math.log10(top * 1.3)], tickvals=ticks, ticktext=words)


def drawn(figure: go.Figure, name: str, label: str) -> Markup:
    """A figure as HTML; Plotly has escaped the data in it."""
    return Markup(figure_html(figure, f"figure-{name}", label))


def packed(values: Sequence[Any]) -> np.ndarray:
    """Numbers as Plotly packs them, a third as long as text: seven digits, of which a picture shows three; a gap for none."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float32)

"""Figures 2a to 11d of The Tail at Store, redrawn: the paper's curve over the fleet's, on the paper's axes. They change no number."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from engine.read import Row
from report.page.look import QUIET, colour, packed, safe, styled
from report.page.numbers import kind_name

POWERS_OF_2 = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
DECADES = (0.001, 0.01, 0.1, 1)
TURN = 0.04
"""How far from its kind's own hue a shade may be, in turns of the colour wheel: still blue, still green."""


@dataclass(frozen=True)
class Figure:
    """One figure of the paper: its axes as printed there, and its curves in their order."""

    name: str
    title: str
    x_title: str
    x_range: tuple[float, float]
    of: str
    """Denominators of the shares."""
    y_range: tuple[float, float]
    curves: tuple[str, ...] = ("Disk", "SSD")
    kind: str | None = None
    """Kind of all curves; None where the name of a curve is its kind."""
    is_x_log: bool = False
    is_y_log: bool = False
    is_at_least: bool = False
    """The paper draws P(V >= x), not P(V <= x)."""
    curve_words: str = "{}"
    """How a curve is called."""

    def kind_of(self, curve: str) -> str:
        """The kind of the drives of a curve."""
        return self.kind or curve.lower()

    def called(self, curve: str) -> str:
        """How a curve is called: by its kind where it is one."""
        return self.curve_words.format(curve) if self.kind else kind_name(curve.lower())


TAILS = ("Si", "T1", "T2", "T3")
SEVERITIES = ("1.5-2x", "2-4x", "4-8x", "8x+")
TRANSITIONS = ("stable-to-stable", "stable-to-tail")
WAIT = "hours from slow to unplugged (log scale)"
RECUR = "hours from replug to slow again (log scale)"
RATE, SIZE = "I/O rate over the group's median (RI)", "I/O size over the group's median (ZI)"
RIO = "I/Os of the RAID group, hour before over this hour"

FIGURES = (
    Figure("2a", "Width of RAID groups", "data drives in the group", (0, 26), "RAID groups", (0, 1)),
    Figure("2b", "Time observed", "days (log scale)", (1, 1024), "RAID groups", (0, 1), is_x_log=True),
    Figure("4a", "Slowdown, disks", "slowdown (ratio)", (1, 8), "hours", (0.98, 1), TAILS, "disk"),
    Figure("4b", "Slowdown, SSDs", "slowdown (ratio)", (1, 8), "hours", (0.97, 1), TAILS, "ssd"),
    Figure("5a", "Length of slow intervals", "hours until stable (log scale)", (2, 256), "intervals", (0.6, 1), is_x_log=True),
    Figure("5b", "Time between slow hours", "stable hours between two slow hours", (0, 24), "slow hours", (0.5, 1)),
    Figure(
        "6a", "Drives ever that slow", "slowdown X (ratio, log scale)", (2, 128), "drives", (0.001, 1),
        is_x_log=True, is_y_log=True, is_at_least=True,
    ),
    Figure("6b", "Slow hours of a slow drive", "slow hours (log scale)", (1, 1024), "slow drives", (0.3, 1), is_x_log=True),
    Figure("7a", "I/O rate when slow", RATE, (0.5, 4), "slow drive-hours", (0, 1)),
    Figure("7b", "Slowdown at twice the I/O rate", "slowdown (ratio)", (0.5, 4), "drive-hours", (0, 1)),
    Figure("7c", "I/O size when slow", SIZE, (0.5, 4), "slow drive-hours", (0, 1)),
    Figure("7d", "Slowdown at twice the I/O size", "slowdown (ratio)", (0.5, 4), "drive-hours", (0, 1)),
    Figure(
        "8a", "Disks by year of life", "slowdown (ratio)", (1, 5), "drive-hours", (0.95, 1),
        tuple(str(year) for year in range(1, 11)), "disk", curve_words="year {}",
    ),
    Figure(
        "8b", "SSDs by year of life", "slowdown (ratio)", (1, 4), "drive-hours", (0.99, 1),
        tuple(str(year) for year in range(1, 5)), "ssd", curve_words="year {}",
    ),
    Figure(
        "9", "SSDs by flash cell and vendor", "slowdown (ratio)", (1, 4), "drive-hours", (0.98, 1),
        ("SLC", "MLC", "MLC (Vendor A)", "MLC (Vendor B)"), "ssd",
    ),
    Figure("10a", "Throughput, disks", RIO, (1, 8), "RAID-hours", (0.7, 1), TRANSITIONS, "disk"),
    Figure("10b", "Throughput, SSDs", RIO, (1, 8), "RAID-hours", (0.5, 1), TRANSITIONS, "ssd"),
    Figure("11a", "Disks unplugged once slow", WAIT, (1, 2048), "slow disks", (0, 0.35), SEVERITIES, "disk", is_x_log=True),
    Figure("11b", "SSDs unplugged once slow", WAIT, (1, 1024), "slow SSDs", (0, 0.12), ("1.5-2x", "2x+"), "ssd", is_x_log=True),
    Figure("11c", "Replugged disks slow again", RECUR, (1, 1024), "replugged disks", (0, 0.8), SEVERITIES, "disk", is_x_log=True),
    Figure(
        "11d", "Replugged SSDs slow again", RECUR, (1, 512), "replugged SSDs", (0, 0.9), ("1.5-2x", "2x+"), "ssd", is_x_log=True
    ),
)  # fmt: skip


def shade(kind: str, position: int, count: int) -> str:
    """The colour of one of several curves of a kind: dark to light around the kind's own hue."""
    if count == 1:
        return colour(kind)
    red, green, blue = (int(colour(kind)[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, _, _ = colorsys.rgb_to_hls(red, green, blue)
    along = position / (count - 1)
    mixed = colorsys.hls_to_rgb(hue + TURN * (1 - 2 * along), 0.16 + 0.5 * along, 0.9 - 0.35 * along)
    return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)


def curve_colour(figure: Figure, curve: str) -> str:
    """A curve's colour: its kind's, shaded where all are of one kind."""
    if figure.kind is None:
        return colour(figure.kind_of(curve))
    return shade(figure.kind, figure.curves.index(curve), len(figure.curves))


def fleet_path(figure: Figure, rows: Sequence[Row]) -> tuple[list[float], list[float | None]]:
    """The line of a curve: at every x it steps from P(V < x) to P(V <= x), so both are on it."""
    x: list[float] = []
    y: list[float | None] = []
    for row in rows:
        for share in (row["y_left"], row["y"]):
            height = 1 - share if figure.is_at_least else share
            x.append(row["x"])
            # a log axis has no place for 0
            y.append(None if figure.is_y_log and height <= 0 else height)
    return x, y


def band_outline(figure: Figure, rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """The 95% interval of a curve as a closed outline: up along its upper ends, back along the lower ones; empty without an interval."""
    known = [row for row in rows if row["y_low"] is not None]
    ends = [[(row["x"], row[column]) for row in known] for column in ("y_high", "y_low")]
    # like the curve, each end is a step: it holds until the next x
    steps = [[(x, share) for (_, before), (x, after) in zip(end[:1] + end, end, strict=False) for share in (before, after)] for end in ends]
    outline = [(x, 1 - share if figure.is_at_least else share) for x, share in steps[0] + steps[1][::-1]]
    # a log axis has no place for 0
    least = figure.y_range[0] / 10 if figure.is_y_log else 0.0
    return [x for x, _ in outline], [max(share, least) for _, share in outline]


def redrawn(figure: Figure, fleet: Sequence[Row], paper: Sequence[Row], kind: str | None) -> go.Figure:
    """The figure with the paper's dashed curves over the fleet's; without any of the fleet's it says so."""
    drawing = go.Figure()
    for curve in figure.curves:
        if kind not in (None, figure.kind_of(curve)):
            continue
        ink, name = curve_colour(figure, curve), safe(figure.called(curve))
        mine = [row for row in fleet if row["curve"] == curve]
        along, shares = band_outline(figure, mine)
        if along:
            drawing.add_scatter(
                x=packed(along),
                y=packed(shares),
                mode="lines",
                line={"color": ink, "width": 0},
                fill="toself",
                fillcolor=f"rgba({', '.join(str(int(ink[at : at + 2], 16)) for at in (1, 3, 5))}, 0.13)",
                legendgroup=curve,
                showlegend=False,
                hoverinfo="skip",
            )
        if mine:
            x, y = fleet_path(figure, mine)
            drawing.add_scatter(
                x=x,
                y=y,
                mode="lines",
                line={"color": ink, "width": 2.4},
                name=name,
                legendgroup=curve,
                hovertemplate=f"%{{y:.5~g}} at %{{x:.4~g}}<extra>{name}, this fleet</extra>",
            )
        printed = [row for row in paper if row["curve"] == curve]
        if printed:
            drawing.add_scatter(
                x=[row["x"] for row in printed],
                y=[row["y"] for row in printed],
                mode="lines",
                line={"color": ink, "width": 1.7, "dash": "5px,3px"},
                name=name,
                legendgroup=curve,
                showlegend=not mine,
                hovertemplate=f"%{{y:.5~g}} at %{{x:.4~g}}<extra>{name}, paper</extra>",
            )
    if not fleet:
        drawing.add_annotation(
            text="<b>no data</b>", x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 26, "color": QUIET},
            bgcolor="rgba(255, 255, 255, 0.85)", borderpad=6,
        )  # fmt: skip
    styled(drawing, 340, hovermode="closest")
    drawing.update_layout(margin={"l": 66, "r": 26, "t": 30, "b": 46}, legend={"font": {"size": 12}, "itemwidth": 30})
    # the same frame in every figure; and Plotly gives up where legend and axes both ask a narrow figure for room
    drawing.update_xaxes(automargin=False)
    drawing.update_yaxes(automargin=False)
    drawing.update_xaxes(title_text=figure.x_title, **axis(figure.x_range, figure.is_x_log, POWERS_OF_2))
    drawing.update_yaxes(
        title_text=f"share of {figure.of}{' ever at X or more' if figure.is_at_least else ''}",
        **axis(figure.y_range, figure.is_y_log, DECADES),
    )
    return drawing


def axis(shown: tuple[float, float], is_log: bool, ticks: Sequence[float]) -> dict[str, object]:
    """An axis of the paper: its range, and the ticks of a log scale."""
    low, high = shown
    if not is_log:
        # room for the line itself at the upper edge
        return {"range": [low, high + (high - low) * 0.012]}
    inside = [tick for tick in ticks if low <= tick <= high]
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high) + 0.01],
        "tickvals": inside,
        "ticktext": [f"{tick:g}" for tick in inside],
        "tickfont": {"size": 12},
        "tickangle": 0,
    }

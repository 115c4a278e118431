"""Figures of the console. They place numbers of the marts on the screen and change none."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go

from console.cells import by_number
from engine.read import Row
from report.page.cells import is_number
from report.page.look import INK, SLOW, colour, packed, safe, slowdown_axis, styled
from report.page.numbers import TIMES, instant
from report.weekly.figures import EVENT_SYMBOLS

GREY = "rgba(97, 110, 124, 0.45)"
MOST_LINES = 60
SHADES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#7A7A7A")  # as many groups are drawn


def instants(rows: list[Row]) -> np.ndarray[Any, np.dtype[np.datetime64]]:
    """The hours of rows as one array: Plotly looks at each element of a list, several times."""
    return np.array([row["hour_utc"] for row in rows], "datetime64[s]")


def over_time(figure: go.Figure, values: list[float], slow_at: float, height: int) -> go.Figure:
    """Slowdowns over the hours, with the line above which a drive is slow."""
    styled(figure, height, hovermode="closest")
    figure.add_hline(y=slow_at, line={"color": SLOW, "width": 1.2, "dash": "dash"})
    figure.update_layout(margin={"l": 44, "r": 8, "t": 28, "b": 40})
    figure.update_xaxes(hoverformat="%a %Y-%m-%d %H:00 UTC")
    slowdown_axis(figure, min([0.5, *(value for value in values if value > 0)]), max([3.0, *values]))
    return figure


def drive_hours(rows: list[Row], drive: str, kind: str, events: list[Row]) -> go.Figure | None:
    """A drive's slowdown, hour by hour, before that of every other drive of its RAID group; its events above."""
    own = [row for row in rows if row["drive_id"] == drive]
    others = [row for row in rows if row["drive_id"] != drive and row["slowdown"] is not None]
    if not own:
        return None
    figure = go.Figure()
    if others:
        figure.add_scatter(
            x=instants(others), y=packed([row["slowdown"] for row in others]), mode="markers",
            name="other drives of the group", marker={"size": 3, "color": GREY}, hoverinfo="skip",
        )  # fmt: skip
    figure.add_scatter(
        x=instants(own), y=packed([row["slowdown"] for row in own]), mode="lines+markers", name="this drive",
        line={"color": colour(kind), "width": 1.6}, marker={"size": 3, "color": colour(kind)}, connectgaps=False,
        hovertemplate=f"slowdown %{{y:.2f}}{TIMES}, %{{x}}<extra></extra>",
    )  # fmt: skip
    slow = [row for row in own if row["is_slow"]]
    figure.add_scatter(
        x=instants(slow), y=packed([row["slowdown"] for row in slow]), mode="markers", name="slow hour",
        marker={"size": 7, "color": SLOW}, hoverinfo="skip",
    )  # fmt: skip
    values = [row["slowdown"] for row in rows if row["slowdown"] is not None]
    if events:
        figure.add_scatter(
            x=[row["occurred_at"] for row in events], y=[max([3.0, *values]) * 1.15] * len(events), mode="markers", name="event",
            marker={"symbol": [EVENT_SYMBOLS.get(row["event_type"], "circle-open") for row in events], "size": 10, "color": INK},
            customdata=[[safe(row["event_type"].replace("_", " ")), instant(row["occurred_at"])] for row in events],
            hovertemplate="%{customdata[0]} at %{customdata[1]}<extra></extra>",
        )  # fmt: skip
    return over_time(figure, values, own[0]["slow_at"], 320)


def group_tails(rows: list[Row]) -> go.Figure | None:
    """The slowest and the second slowest drive of each hour of a RAID group."""
    if not rows:
        return None
    figure = go.Figure()
    for column, name, shade in (("tail_2", "second slowest", GREY), ("tail_1", "slowest drive", SLOW)):
        figure.add_scatter(
            x=instants(rows), y=packed([row[column] for row in rows]), mode="lines", name=name,
            line={"color": shade, "width": 1.4}, connectgaps=False,
            customdata=[safe(row["slowest_drive_id"]) if column == "tail_1" else "" for row in rows],
            hovertemplate=f"%{{y:.2f}}{TIMES} %{{customdata}}, %{{x}}<extra>{name}</extra>",
        )  # fmt: skip
    return over_time(figure, [row["tail_1"] for row in rows if row["tail_1"] is not None], rows[0]["slow_at"], 280)


def group_latencies(rows: list[Row]) -> go.Figure | None:
    """Median latency of RAID groups by hour, and what is usual where one was slow as a whole. Rows: label, hour_utc, median_latency_us,
    usual_median_latency_us.
    """
    groups = list(dict.fromkeys(row["label"] for row in rows))[: len(SHADES)]
    if not groups:
        return None
    figure = go.Figure()
    for group, shade in zip(groups, SHADES, strict=False):
        own = [row for row in rows if row["label"] == group]
        figure.add_scatter(
            x=instants(own), y=packed([row["median_latency_us"] / 1000 for row in own]), mode="lines", name=safe(group),
            line={"color": shade, "width": 1.4}, hovertemplate=f"%{{y:.3g}} ms, %{{x}}<extra>{safe(group)}</extra>",
        )  # fmt: skip
    slow = [row for row in rows if row["label"] in groups and row["usual_median_latency_us"] is not None]
    if slow:
        figure.add_scatter(
            x=instants(slow), y=packed([row["usual_median_latency_us"] / 1000 for row in slow]), mode="markers", name="usual at that hour",
            marker={"size": 5, "color": GREY}, hovertemplate="usually %{y:.3g} ms, %{x}<extra></extra>",
        )  # fmt: skip
    return in_milliseconds(figure)


def drive_latencies(rows: list[Row]) -> go.Figure | None:
    """Latency of a drive by hour before the median of its RAID group. Rows: kind, hour_utc, latency_us, median_latency_us, is_slow."""
    if not rows:
        return None
    figure = go.Figure()
    own = colour(rows[0]["kind"])
    for column, name, shade, width in (("median_latency_us", "median of its RAID group", GREY, 5), ("latency_us", "this drive", own, 1.6)):
        figure.add_scatter(
            x=instants(rows), y=packed([row[column] and row[column] / 1000 for row in rows]), mode="lines+markers", name=name,
            line={"color": shade, "width": width}, marker={"size": width, "color": shade}, connectgaps=False,
            hovertemplate=f"{name}: %{{y:.3g}} ms, %{{x}}<extra></extra>",
        )  # fmt: skip
    slow = [row for row in rows if row["is_slow"]]
    figure.add_scatter(
        x=instants(slow), y=packed([row["latency_us"] / 1000 for row in slow]), mode="markers", name="slow hour",
        marker={"size": 5, "color": SLOW}, hoverinfo="skip",
    )  # fmt: skip
    return in_milliseconds(figure)


def in_milliseconds(figure: go.Figure) -> go.Figure:
    """Latencies over the hours."""
    styled(figure, 240, hovermode="closest")
    figure.update_layout(margin={"l": 44, "r": 8, "t": 28, "b": 40})
    figure.update_xaxes(hoverformat="%a %Y-%m-%d %H:00 UTC")
    figure.update_yaxes(rangemode="tozero", ticksuffix=" ms")
    return figure


def slow_map(rows: list[Row]) -> go.Figure | None:
    """Drives by hours: how slow each was, as shades; a drive or an hour that is slow is seen as a line. Rows: label, hour_utc, slowdown,
    slow_at; of several thresholds the least is the edge of the shades.
    """
    drives = sorted({row["label"] for row in rows}, key=by_number)[:MOST_LINES]
    hours = sorted({row["hour_utc"] for row in rows})
    if not drives:
        return None
    found = {(row["label"], row["hour_utc"]): row["slowdown"] for row in rows}
    grid = [packed([found.get((drive, hour)) for hour in hours]) for drive in drives]
    slow_at = min(row["slow_at"] for row in rows)
    darkest = max(5.0, slow_at + 1)
    edge = (slow_at - 1) / (darkest - 1)
    figure = go.Figure()
    figure.add_heatmap(
        x=np.array(hours, "datetime64[s]"), y=[safe(drive) for drive in drives], z=np.array(grid), zmin=1, zmax=darkest, hoverongaps=False,
        colorscale=[[at, f"rgba(213, 94, 0, {depth})"] for at, depth in ((0, 0.03), (edge - 0.01, 0.1), (edge, 0.45), (1, 1))],
        colorbar={"tickvals": [1, slow_at, darkest], "ticktext": [f"1{TIMES}", f"{slow_at:g}{TIMES}", f"{darkest:g}{TIMES} or more"],
                  "thickness": 12, "outlinewidth": 0, "tickfont": {"color": INK}},
        hovertemplate=f"%{{y}}: %{{z:.2f}}{TIMES}, %{{x}}<extra></extra>",
    )  # fmt: skip
    styled(figure, max(190, 110 + 16 * len(drives)), hovermode="closest")
    figure.update_layout(margin={"l": 8, "r": 8, "t": 12, "b": 40})
    figure.update_xaxes(showgrid=False, nticks=4, tickangle=0, tickformat="%b %d" if hours[-1] - hours[0] > timedelta(days=4) else None)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed", dtick=1, tickfont={"size": 11})
    return figure


def quick_chart(columns: list[str], rows: list[Row]) -> go.Figure | None:
    """Any answer as lines over its first column, where that is a number or a time, else as bars; None without a number to draw."""
    first, *others = columns
    measured = [name for name in others if any(is_number(row[name]) for row in rows)]
    if not measured:
        return None
    is_text = not isinstance(next((row[first] for row in rows if row[first] is not None), None), int | float | datetime)
    across = [safe(row[first]) if is_text else row[first] for row in rows]
    figure = go.Figure()
    for name in measured[:8]:
        values = packed([row[name] if is_number(row[name]) else None for row in rows])
        if is_text:
            figure.add_bar(x=across, y=values, name=safe(name))
        else:
            figure.add_scatter(x=across, y=values, mode="lines+markers", name=safe(name), marker={"size": 4})
    styled(figure, 360)
    figure.update_xaxes(title_text=safe(first), **({"type": "category"} if is_text else {}))
    figure.update_layout(showlegend=True)
    return figure

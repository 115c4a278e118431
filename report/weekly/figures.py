"""The figures of the weekly report. They place numbers on paper and change none; axis scales are drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from report.page.look import INK, SLOW, colour, kinds_of, nice_ticks, safe, styled
from report.page.numbers import KIND_NAMES, TIMES, count, instant, kind_name, percent, week_name
from report.weekly.queries import Row

TAIL_COLOURS = {"S": None, "T1": SLOW, "T2": "#E69F00", "T3": "#8C6D1F"}
SERIES_WORDS = {"S": "S, drive-hours", "T1": "T1, slowest drive", "T2": "T2, second slowest", "T3": "T3, third slowest"}

PERCENTILE_TICKS = (0.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
SLOWDOWN_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 500, 1000, 5000, 10000)
HOUR_TICKS = (0, 1, 2, 4, 8, 24, 72, 168, 336, 720, 2160, 8760)
FEW_HOUR_TICKS = (0, 1, 4, 24, 168, 720, 8760)
HOUR_MS = 3_600_000
EVENT_SYMBOLS = {"unplug": "triangle-down", "replug": "triangle-up", "replacement": "diamond"}


def weekly_trend(rows: Sequence[Row], week: datetime, *, numerator: str, denominator: str, share: str, what: str, of: str) -> go.Figure:
    """A share by kind over the weeks, this week in full colour; numerator and denominator in the hover."""
    figure = go.Figure()
    weeks = sorted({row["week_utc"] for row in rows})
    for kind in kinds_of(rows):
        mine = {row["week_utc"]: row for row in rows if row["kind"] == kind and row[share] is not None}
        if not mine:
            continue
        values = [mine[monday][share] if monday in mine else None for monday in weeks]
        figure.add_bar(
            x=[week_name(monday) for monday in weeks],
            y=values,
            name=kind_name(kind),
            marker={"color": colour(kind), "opacity": [1.0 if monday == week else 0.4 for monday in weeks], "line": {"width": 0}},
            customdata=[
                [percent(mine[monday][share]), count(mine[monday][numerator]), count(mine[monday][denominator])]
                if monday in mine
                else ["", "", ""]
                for monday in weeks
            ],
            hovertemplate=f"%{{customdata[0]}}: %{{customdata[1]}} {what} of %{{customdata[2]}} {of}<extra>{safe(kind_name(kind))}</extra>",
        )
    figure.update_layout(barmode="group", bargap=0.35 if len(weeks) > 2 else 0.7, bargroupgap=0.08)
    styled(figure, 300)
    top = max((row[share] or 0.0 for row in rows), default=0.0)
    digits = 0 if top > 0.04 else 1 if top > 0.004 else 2 if top > 0.0004 else 3
    figure.update_xaxes(type="category", title_text="ISO week (UTC)", showgrid=False)
    figure.update_yaxes(title_text=f"share of {of}", tickformat=f".{digits}%", range=[0, top * 1.08 or 0.01], nticks=6)
    return figure


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def heat_map(rows: Sequence[Row], week: datetime) -> go.Figure:
    """Share of RAID groups with a tail, hour by day; hours without a valid RAID-hour stay empty."""
    given = {row["hour_utc"]: row for row in rows}
    days = [[given.get(week + timedelta(days=day, hours=hour)) for hour in range(24)] for day in range(7)]
    figure = go.Figure()
    figure.add_heatmap(
        x=list(range(24)),
        y=[f"{name} {week + timedelta(days=day):%d}" for day, name in enumerate(DAYS)],
        z=[[row and row["tail_hour_ratio"] for row in day] for day in days],
        text=[
            [f"{count(row['tail_hours'])} of {count(row['raid_hours'])} RAID groups had a tail" if row else "not measured" for row in day]
            for day in days
        ],
        hovertemplate="%{y}, %{x}:00 UTC: %{text}<extra></extra>",
        hoverongaps=False,
        zmin=0,
        colorscale=[[0, "rgba(213, 94, 0, 0.05)"], [1, "rgba(213, 94, 0, 1)"]],
        colorbar={"tickformat": ".0%", "thickness": 12, "outlinewidth": 0, "tickfont": {"color": INK}},
        xgap=1,
        ygap=1,
    )
    styled(figure, 280, hovermode="closest")
    figure.update_layout(margin={"l": 64, "r": 12, "t": 12, "b": 46})
    figure.update_xaxes(
        tickvals=list(range(0, 24, 3)), ticktext=[f"{hour:02d}:00" for hour in range(0, 24, 3)], title_text="hour (UTC)", showgrid=False
    )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def nines(percentile: float) -> float:
    """Place of a percentile on an axis that gives every nine the same room."""
    return -math.log10(1 - percentile / 100)


def slowdown_distribution(rows: Sequence[Row]) -> go.Figure:
    """Slowdown at each percentile, one panel a kind; every further nine takes as much room as the last."""
    kinds = [kind for kind in kinds_of(rows) if any(row["kind"] == kind for row in rows)]
    drawn: dict[tuple[str, str], list[Row]] = {}
    for kind in kinds:
        for series in TAIL_COLOURS:
            of_series = [row for row in rows if row["kind"] == kind and row["series"] == series and row["slowdown"] is not None]
            # beyond 1 - 1/n every rank is the largest value: nothing more to draw
            drawn[kind, series] = [
                row for row in of_series if 0 < row["percentile"] < 100 and row["percentile"] <= 100 * (1 - 1 / row["population_count"])
            ]
    points = [row for part in drawn.values() for row in part]
    low = max(min((row["slowdown"] for row in points if row["percentile"] >= 5), default=0.8), 0.2) * 0.95
    high = max([row["slowdown"] for row in points] + [2.2]) * 1.25
    top = max((row["percentile"] for row in points), default=99.0)
    figure = make_subplots(cols=len(kinds), shared_yaxes=True, horizontal_spacing=0.05, subplot_titles=[kind_name(kind) for kind in kinds])
    for column, kind in enumerate(kinds, start=1):
        for threshold, name in ((1.5, f"1.5{TIMES}"), (2.0, f"2{TIMES}, slow")):
            line = {"color": SLOW, "width": 1.2, "dash": "dot" if threshold == 1.5 else "dash"}
            figure.add_vline(x=threshold, line=line, col=column, row=1, exclude_empty_subplots=False)
            figure.add_annotation(
                x=math.log10(threshold),
                y=0.1,
                text=name,
                showarrow=False,
                textangle=-90,
                xanchor="right",
                yanchor="bottom",
                font={"color": SLOW, "size": 12},
                row=1,
                col=column,
            )
        for series, fixed in TAIL_COLOURS.items():
            part = drawn[kind, series]
            if not part:
                continue
            ink = fixed or colour(kind)
            figure.add_scatter(
                x=packed([row["slowdown"] for row in part]),
                y=packed([nines(row["percentile"]) for row in part]),
                # P99.999 needs more than seven digits
                customdata=np.array([row["percentile"] for row in part]),
                mode="lines",
                name=SERIES_WORDS[series],
                line={"color": ink, "width": 2.4 if series in {"S", "T1"} else 1.6, "shape": "vh"},
                showlegend=False,
                hovertemplate=f"P%{{customdata}}: %{{x:.2f}}{TIMES} (n = {count(part[0]['population_count'])})"
                f"<extra>{SERIES_WORDS[series]}</extra>",
                row=1,
                col=column,
            )
            last = part[-1]
            # the tails end side by side: the innermost is named on its left
            side, shift = ("right", -4) if series == "T3" else ("left", 4)
            figure.add_annotation(
                x=math.log10(last["slowdown"]),
                y=nines(last["percentile"]),
                text=f"<b>{series}</b>",
                showarrow=False,
                borderpad=1,
                font={"color": ink, "size": 13},
                xanchor=side,
                xshift=shift,
                yanchor="bottom" if series == "S" else "middle",
                row=1,
                col=column,
            )
    styled(figure, 470, hovermode="y unified")
    ticks = nice_ticks(SLOWDOWN_TICKS, low, high)
    figure.update_xaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[f"{tick:g}{TIMES}" for tick in ticks],
        tickangle=0,
        title_text="slowdown (ratio, log scale)",
    )
    levels = nice_ticks(PERCENTILE_TICKS, 0, max(top, 99))
    figure.update_yaxes(
        tickvals=[nines(level) for level in levels],
        ticktext=["min" if level == 0 else f"P{level:g}" for level in levels],
        range=[0, nines(max(top, 99)) * 1.06],
    )
    figure.update_yaxes(title_text="percentile", col=1)
    figure.update_yaxes(unifiedhovertitle_text="slowdown at this percentile")
    figure.update_annotations(selector=lambda note: note.text in KIND_NAMES.values(), font={"size": 14, "color": INK})
    return figure


def drive_week(
    drive: Row, series: Sequence[Row], bands: Mapping[tuple[str, datetime], Row], events: Sequence[Row], week: datetime, top: float
) -> go.Figure:
    """One drive's slowdown, hour by hour, over the band of the other drives of its group."""
    hours_of_week = [week + timedelta(hours=hour) for hour in range(168)]
    own = {row["hour_utc"]: row for row in series}
    others = [bands.get((own[hour]["raid_group_id"] if hour in own else drive["raid_group_id"], hour)) for hour in hours_of_week]
    # the highest of the others: the second tail where this drive is the slowest
    highest = [
        None if band is None else band["tail_2"] if band["slowest_drive_id"] == drive["drive_id"] else band["tail_1"] for band in others
    ]
    figure = go.Figure()
    for lower, upper, shade, name in (
        ([band and band["lowest_slowdown"] for band in others], highest, "rgba(97, 110, 124, 0.16)", "the others"),
        (
            [band and band["lower_quartile_slowdown"] for band in others],
            [band and band["upper_quartile_slowdown"] for band in others],
            "rgba(97, 110, 124, 0.42)",
            "their middle half",
        ),
    ):
        for stretch in stretches([low is not None and high is not None for low, high in zip(lower, upper, strict=True)]):
            start = hours_of_week[stretch[0]]
            # the second is filled down to the first
            for edge, fill, words in ((lower, None, f"{name} from"), (upper, "tonexty", f"{name} up to")):
                figure.add_scatter(
                    x0=start,
                    dx=HOUR_MS,
                    y=packed([edge[index] for index in stretch]),
                    mode="lines",
                    fill=fill,
                    line={"width": 0, "color": shade},
                    fillcolor=shade,
                    hovertemplate=f"{words} %{{y:.2f}}{TIMES}<extra></extra>",
                    showlegend=False,
                )
    slowdowns = [own[hour]["slowdown"] if hour in own else None for hour in hours_of_week]
    figure.add_scatter(
        x0=week,
        dx=HOUR_MS,
        y=packed(slowdowns),
        mode="lines+markers",
        connectgaps=False,
        line={"color": colour(drive["kind"]), "width": 1.6},
        marker={"size": 2.5, "color": colour(drive["kind"])},
        hovertemplate=f"slowdown %{{y:.2f}}{TIMES}<extra></extra>",
        showlegend=False,
    )
    figure.add_scatter(
        x0=week,
        dx=HOUR_MS,
        y=packed([value if hour in own and own[hour]["is_slow"] else None for hour, value in zip(hours_of_week, slowdowns, strict=True)]),
        mode="markers",
        marker={"size": 6, "color": SLOW, "line": {"width": 0}},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_hline(y=2.0, line={"color": SLOW, "width": 1.2, "dash": "dash"})
    floor = 0.4
    at_top = top * 1.12
    for event in events:
        if event["event_type"] in EVENT_SYMBOLS:
            figure.add_vline(x=event["occurred_at"], line={"color": INK, "width": 1, "dash": "dot"})
    if events:
        figure.add_scatter(
            x=[event["occurred_at"] for event in events],
            # out and back within hours of each other: one below the other
            y=[at_top / 1.22 if event["event_type"] == "replug" else at_top for event in events],
            mode="markers",
            marker={
                "symbol": [EVENT_SYMBOLS.get(event["event_type"], "x-thin" if event["is_explicit"] else "circle-open") for event in events],
                "size": 9,
                "color": [SLOW if event["is_explicit"] else INK for event in events],
                "line": {"width": 1.5, "color": [SLOW if event["is_explicit"] else INK for event in events]},
            },
            customdata=[[safe(event["event_type"].replace("_", " ")), instant(event["occurred_at"])] for event in events],
            hovertemplate="%{customdata[0]} at %{customdata[1]}<extra></extra>",
            showlegend=False,
            cliponaxis=False,
        )
    styled(figure, 250)
    figure.update_layout(margin={"l": 48, "r": 12, "t": 14, "b": 46})
    figure.update_xaxes(
        range=[week, week + timedelta(hours=168)],
        dtick=24 * 3600 * 1000,
        tick0=week,
        tickformat="%a<br>%d",
        tickangle=0,
        ticklabelmode="period",
        hoverformat="%a %Y-%m-%d %H:00 UTC",
    )
    ticks = nice_ticks(SLOWDOWN_TICKS, floor, top)
    figure.update_yaxes(
        type="log",
        range=[math.log10(floor), math.log10(top * 1.3)],
        tickvals=ticks,
        ticktext=[f"{tick:g}{TIMES}" for tick in ticks],
        title_text="slowdown (ratio)",
    )
    return figure


def packed(values: Sequence[Any]) -> np.ndarray:
    """Numbers as Plotly packs them, a third as long as text: seven digits, of which a picture shows three; a gap for none."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float32)


def stretches(given: Sequence[bool]) -> list[list[int]]:
    """Runs of consecutive true positions; one that stands alone has no width to fill and is left out."""
    runs: list[list[int]] = [[]]
    for index, is_given in enumerate(given):
        if is_given:
            runs[-1].append(index)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) > 1]


def durations(rows: Sequence[Row], measure: str, axis: str, of: str, *, height: int = 330) -> go.Figure:
    """Share of durations of at most x hours, by kind; steps, on a log axis with room for 0."""
    figure = go.Figure()
    mine = [row for row in rows if row["measure"] == measure]
    longest = max((row["hours"] for row in mine), default=1)
    for kind in kinds_of(mine):
        part = [row for row in mine if row["kind"] == kind]
        last = part[-1]
        # steps begin at no share and run on to the edge
        x = [axis_hours(part[0]["hours"]), *(axis_hours(row["hours"]) for row in part), axis_hours(longest) * 1.6]
        y = [0.0, *(row["share"] for row in part), last["share"]]
        text = [
            f"{percent(row['share'])} up to {count(row['hours'])} h: "
            f"{count(row['cumulative_count'])} of {count(row['population_count'])} {of}"
            for row in part
        ]
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": colour(kind), "width": 2.2, "shape": "hv"},
            name=kind_name(kind),
            hoverinfo="skip",
        )
        figure.add_scatter(
            x=x[1:-1],
            y=y[1:-1],
            mode="markers",
            marker={"color": colour(kind), "size": 5},
            customdata=text,
            hovertemplate=f"%{{customdata}}<extra>{safe(kind_name(kind))}</extra>",
            showlegend=False,
        )
    styled(figure, height, hovermode="closest")
    ticks = nice_ticks(HOUR_TICKS if height > 300 else FEW_HOUR_TICKS, min((row["hours"] for row in mine), default=0), max(longest, 2))
    figure.update_xaxes(
        type="log",
        range=[math.log10(axis_hours(min((row["hours"] for row in mine), default=0)) * 0.85), math.log10(axis_hours(longest) * 1.6)],
        tickvals=[axis_hours(tick) for tick in ticks],
        ticktext=[f"{tick:,}" for tick in ticks],
        tickangle=0,
        title_text=axis,
    )
    figure.update_yaxes(title_text=f"share of {of}", tickformat=".0%", range=[0, 1.03])
    return figure


def axis_hours(value: float) -> float:
    """Place of a duration on the log axis: 0 one step below 1."""
    return max(float(value), 0.5)

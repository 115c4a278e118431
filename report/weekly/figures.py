"""The figures of the weekly report. They place numbers on paper and change none; axis scales are drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import plotly.graph_objects as go

from engine.read import Row
from report.page.look import INK, SLOW, colour, kinds_of, packed, safe, slowdown_axis, styled
from report.page.numbers import TIMES, count, instant, kind_name, percent

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
            x=[f"W{monday.isocalendar().week:02d}" for monday in weeks],
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
    styled(figure, 210)
    top = max((row[share] or 0.0 for row in rows), default=0.0)
    digits = 0 if top > 0.04 else 1 if top > 0.004 else 2 if top > 0.0004 else 3
    figure.update_xaxes(type="category", title_text="ISO week (UTC)", showgrid=False)
    figure.update_yaxes(title_text=f"share of {of}", tickformat=f".{digits}%", range=[0, top * 1.08 or 0.01], nticks=6)
    return figure


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


HEAT_TOP = 0.2
"""Share of RAID groups with a tail from which on an hour is in full colour, every week the same."""


def heat_map(rows: Sequence[Row], week: datetime) -> go.Figure:
    """Share of RAID groups with a tail, hour by day; hours without a valid RAID-hour stay empty."""
    ticks = [HEAT_TOP * quarter / 4 for quarter in range(5)]
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
        zmax=HEAT_TOP,
        colorscale=[[0, "rgba(213, 94, 0, 0.05)"], [1, "rgba(213, 94, 0, 1)"]],
        colorbar={
            "tickvals": ticks,
            "ticktext": [f"{tick:.0%}" + (" or more" if tick == HEAT_TOP else "") for tick in ticks],
            "thickness": 12,
            "outlinewidth": 0,
            "tickfont": {"color": INK},
        },
        xgap=1,
        ygap=1,
    )
    styled(figure, 250, hovermode="closest")
    figure.update_layout(margin={"l": 64, "r": 12, "t": 12, "b": 46})
    figure.update_xaxes(
        tickvals=list(range(0, 24, 3)), ticktext=[f"{hour:02d}:00" for hour in range(0, 24, 3)], title_text="hour (UTC)", showgrid=False
    )
    figure.update_yaxes(autorange="reversed", showgrid=False)
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
    for slow_at in {band["slow_at"] for band in others if band is not None}:
        figure.add_hline(y=slow_at, line={"color": SLOW, "width": 1.2, "dash": "dash"})
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
    styled(figure, 168)
    figure.update_layout(margin={"l": 34, "r": 8, "t": 8, "b": 34}, font={"size": 12})
    figure.update_xaxes(
        range=[week, week + timedelta(hours=168)],
        dtick=24 * 3600 * 1000,
        tick0=week,
        tickformat="%a<br>%d",
        tickangle=0,
        ticklabelmode="period",
        hoverformat="%a %Y-%m-%d %H:00 UTC",
    )
    slowdown_axis(figure, floor, top)
    return figure


def stretches(given: Sequence[bool]) -> list[list[int]]:
    """Runs of consecutive true positions; one that stands alone has no width to fill and is left out."""
    runs: list[list[int]] = [[]]
    for index, is_given in enumerate(given):
        if is_given:
            runs[-1].append(index)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) > 1]

"""How slow this fleet is, for how long, how soon again, and verdicts of other rules: drawn on the study page beside the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.subplots import make_subplots

from engine.read import Row
from report.page.look import INK, SLOW, SLOWDOWN_TICKS, colour, drawn, kinds_of, nice_ticks, packed, safe, styled
from report.page.numbers import KIND_NAMES, TIMES, count, hours, kind_name, noun, percent, plural, times

TAIL_COLOURS = {"S": None, "T1": SLOW, "T2": "#E69F00", "T3": "#8C6D1F"}
SERIES_WORDS = {"S": "S, drive-hours", "T1": "T1, slowest drive", "T2": "T2, second slowest", "T3": "T3, third slowest"}

PERCENTILE_TICKS = (0.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
HOUR_TICKS = (0, 1, 2, 4, 8, 24, 72, 168, 336, 720, 2160, 8760)
FEW_HOUR_TICKS = (0, 1, 4, 24, 168, 720, 8760)


def nines(percentile: float) -> float:
    """Place of a percentile on an axis that gives every nine the same room."""
    return -math.log10(1 - percentile / 100)


def slowdown_distribution(rows: Sequence[Row], thresholds: Sequence[Row]) -> go.Figure:
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
        for name, words, dash in (("mild_threshold", "", "dot"), ("slow_threshold", ", slow", "dash")):
            (threshold,) = (row["value"] for row in thresholds if (row["name"], row["kind"]) == (name, kind))
            line = {"color": SLOW, "width": 1.2, "dash": dash}
            figure.add_vline(x=threshold, line=line, col=column, row=1, exclude_empty_subplots=False)
            figure.add_annotation(
                x=math.log10(threshold),
                y=0.1,
                text=times(threshold) + words,
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


def distribution(percentiles: Sequence[Row], thresholds: Sequence[Row]) -> Markup | None:
    """Slowdown at each percentile of a week; None where there is none."""
    if not percentiles:
        return None
    return drawn(slowdown_distribution(percentiles, thresholds), "distribution", "Slowdown at each percentile of the week")


def duration_figures(shares: Sequence[Row]) -> dict[str, Markup]:
    """One figure for each measure that has a duration."""
    titles = {
        "interval_hours": ("hours slow (log scale)", "intervals", 330),
        "gap_hours": ("stable hours between (log scale)", "gaps", 330),
        "wait_hours": ("hours to the unplug", "intervals", 270),
        "outage_hours": ("hours out", "outages", 270),
        "recur_hours": ("hours to the next slow hour", "replugs", 270),
    }
    given = {row["measure"] for row in shares}
    return {
        measure: drawn(durations(shares, measure, axis, of, height=height), measure.replace("_", "-"), f"Share of {of} by {axis}")
        for measure, (axis, of, height) in titles.items()
        if measure in given
    }


def detector_matrix(agreement: Sequence[Row]) -> tuple[list[str], dict[tuple[str, str], Row]]:
    """The detectors in their order, and how far each two agree, found under both orders."""
    # a rule that looks at samples says nothing of a fleet that has none
    rows = [row for row in agreement if row["drive_count"]]
    names = sorted({row["detector"] for row in rows} | {row["other_detector"] for row in rows})
    pairs = {(row["detector"], row["other_detector"]): row for row in rows}
    return names, {**pairs, **{(other, name): row for (name, other), row in pairs.items()}}


def by_kind(summaries: Sequence[Row], measure: str) -> list[Row]:
    """The summaries of a measure, disks first."""
    rows = [row for row in summaries if row["measure"] == measure]
    order = kinds_of(rows)
    return sorted(rows, key=lambda row: order.index(row["kind"]))


def interval_words(summaries: Sequence[Row]) -> list[str]:
    """How long slow intervals last."""
    return [
        f"Of {noun(row['population_count'], 'slow interval', 'slow intervals')} of {plural(row['kind'])}, "
        f"{percent(row['up_to_1_hour_share'])} ({count(row['up_to_1_hour_count'])}) lasted 1 hour and "
        f"{percent(row['from_8_hours_share'])} ({count(row['from_8_hours_count'])}) 8 hours or longer; "
        f"the longest {hours(row['longest_hours'])}."
        for row in by_kind(summaries, "interval_hours")
    ]


def gap_words(summaries: Sequence[Row]) -> list[str]:
    """How soon a slow drive is slow again."""
    return [
        f"When one of the {plural(row['kind'])} was slow again, the next hour followed at once in {percent(row['up_to_0_hours_share'])} of "
        f"{noun(row['population_count'], 'case', 'cases')}, and within a day in {percent(row['up_to_24_hours_share'])}."
        for row in by_kind(summaries, "gap_hours")
    ]


def tail_words(rows: Sequence[Row]) -> list[str]:
    """Hours that are slow in the tail of a drive's latencies and not in its mean, as a sentence for each percentile."""
    return [
        f"By their p{row['percentile']:g}, {count(row['slow_by_percentile_hours'])} of "
        f"{noun(row['drive_hours'], 'drive-hour', 'drive-hours')} were slow; the mean does not show "
        f"{count(row['slow_by_percentile_hours'] - row['slow_by_both_hours'])} of them, of "
        f"{noun(row['drives_only_the_percentile_sees'], 'drive', 'drives')}. "
        f"{count(row['slow_by_mean_hours'] - row['slow_by_both_hours'])} others were slow by the mean alone."
        for row in rows
    ]


def unplug_words(summaries: Sequence[Row]) -> dict[str, list[str]]:
    """Waits, outages and recurrences in words."""
    return {
        "wait_hours": [
            f"{percent(row['ended_share'])} of the slow intervals of {plural(row['kind'])} "
            f"({count(row['ended_count'])} of {count(row['population_count'])}) were followed by an unplug sooner or later, "
            f"{percent(row['up_to_24_hours_share'])} within a day."
            for row in by_kind(summaries, "wait_hours")
        ],
        "outage_hours": [
            f"Half of {noun(row['population_count'], 'outage', 'outages')} of {plural(row['kind'])} "
            f"ended within {hours(row['median_hours'])}, the longest took {hours(row['longest_hours'])}."
            for row in by_kind(summaries, "outage_hours")
        ],
        "recur_hours": [
            f"After {noun(row['population_count'], 'replug', 'replugs')} of {plural(row['kind'])} that had been slow, "
            f"{percent(row['ended_share'])} ({count(row['ended_count'])}) were slow again, "
            f"{percent(row['up_to_24_hours_share'])} within a day."
            for row in by_kind(summaries, "recur_hours")
        ],
    }

"""How far ahead the next slow interval of a drive was foretold: reliability diagrams, and what each rule is better than the base rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup
from plotly.subplots import make_subplots

from engine.read import Row
from report.page.look import INK, QUIET, colour, drawn, safe, styled
from report.page.numbers import count, kind_name

RULES = {
    "most_slow_hours_28d": "by slow hours in 28 days",
    "slow_28d": "by whether it was slow in 28 days",
    "model": "by expected tail hours",
}
DASHES = {"most_slow_hours_28d": "solid", "model": "6px,3px"}
"""The rules that are drawn: the one that orders the candidates, and the candidates' expectation."""


def foretold_words(forecasts: Sequence[Row]) -> list[str]:
    """A sentence for each kind and horizon, by the rows of candidate_forecasts, ordered by kind and horizon."""
    sentences = []
    for (kind, days), rows in groupby(forecasts, key=lambda row: (row["kind"], row["horizon_days"])):
        of = {row["rule"]: row for row in rows}
        known = {words: of[rule]["skill_ratio"] for rule, words in RULES.items() if of[rule]["skill_ratio"] is not None}
        saved = ", ".join(f"{100 * ratio:.0f}% {words}" for words, ratio in known.items())
        came = f"{count(of['model']['slow_count'])} of {count(of['model']['forecast_count'])} forecasts"
        within = f"{kind_name(kind)}, within {'a day' if days == 1 else f'{days} days'}"
        sentences.append(f"{within}: a slow interval began after {came}; better than the base rate: {saved or 'none'}.")
    return sentences


def foretold_figure(reliability: Sequence[Row]) -> Markup | None:
    """Reliability diagrams, a panel for each horizon; None without a forecast."""
    horizons = sorted({row["horizon_days"] for row in reliability})
    if not horizons:
        return None
    titles = [f"{days} day{'' if days == 1 else 's'}" for days in horizons]
    figure = make_subplots(cols=len(horizons), shared_yaxes=True, horizontal_spacing=0.04, subplot_titles=titles)
    for column, days in enumerate(horizons, start=1):
        line = {"color": QUIET, "width": 1, "dash": "dot"}
        figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip", showlegend=False, row=1, col=column)
        for (kind, rule), rows in groupby(
            sorted(
                (row for row in reliability if row["horizon_days"] == days and row["rule"] in DASHES),
                key=lambda row: (row["kind"], row["rule"], row["mean_probability"]),
            ),
            key=lambda row: (row["kind"], row["rule"]),
        ):
            part = list(rows)
            name = f"{kind_name(kind)}, {RULES[rule]}"
            figure.add_scatter(
                x=[row["mean_probability"] for row in part],
                y=[row["slow_ratio"] for row in part],
                mode="lines+markers",
                line={"color": colour(kind), "width": 2, "dash": DASHES[rule]},
                marker={"size": 7},
                customdata=[f"{count(row['slow_count'])} of {count(row['forecast_count'])}" for row in part],
                hovertemplate=f"%{{customdata}}, foretold %{{x:.1%}}<extra>{safe(name)}</extra>",
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                row=1,
                col=column,
            )
    styled(figure, 380, hovermode="closest")
    figure.update_layout(margin={"t": 90}, legend={"y": 1.12})
    figure.update_xaxes(range=[0, 1.02], tickformat=".0%", title_text="foretold")
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%")
    figure.update_yaxes(title_text="came", col=1)
    figure.update_annotations(font={"size": 14, "color": INK})
    return drawn(figure, "foretold", "Share of drives that became slow, by the probability that was foretold")

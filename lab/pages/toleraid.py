"""Figure 12 of The Tail at Store: completions of requests under each policy of ToleRAID, on this fleet and on the paper's distributions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import plotly.graph_objects as go
from markupsafe import Markup

from engine.read import QueryError, Row, fetch, is_computed, publication_of
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file
from report.page.html import render
from report.page.look import INK, SLOW, drawn, styled
from report.page.numbers import count
from report.page.tolerance import tolerance_words

POLICIES = {"none": INK, "reactive": SLOW, "adaptive": "#8C6D1F", "proactive1": "#0072B2", "proactive2": "#009E73"}
"""Policies and their colours."""

PAPER = {
    "rare": ("12a", "Rare, the paper's disks", (1.0, 8.0), (0.95, 1.0)),
    "periodic": ("12b", "Periodic, the paper's SSDs", (1.0, 6.0), (0.5, 1.0)),
}
"""Distributions of the paper: figure, title, and the ranges of its axes."""

LATEST = """
select runs.*, distributions.name
from lab.fct_tolerance_runs as runs
inner join lab.dim_slowdown_distributions as distributions on runs.distribution_id = distributions.distribution_id
qualify dense_rank() over (partition by distributions.name order by runs.jitter desc, runs.created_at desc, runs.run_id) = 1
order by case distributions.name when 'fleet' then 0 when 'rare' then 2 when 'periodic' then 3 else 1 end, distributions.name
"""
"""The latest run of each distribution; of the paper's one with jitter, if there is any."""

OF_THE_STUDY = {
    "paper": ("study_paper_curves", "select * from study.study_paper_curves where figure like '12%' order by figure, curve, seq"),
    "totals": ("study_tolerance", "select * from study.study_tolerance order by kind"),
}
"""Queries of relations that are there where the study is installed."""


def fetch_tolerance(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Row]]:
    """The latest runs, their curves, and those of the paper."""
    runs = fetch(connection, LATEST)
    names = list({row["run_id"] for row in runs})
    curves = "select * from lab.fct_tolerance_curves where run_id in (select unnest($runs)) order by run_id, policy, x"
    return {
        "runs": runs,
        "curves": fetch(connection, curves, {"runs": names}),
        **{name: fetch(connection, query) if is_computed(connection, relation) else [] for name, (relation, query) in OF_THE_STUDY.items()},
    }


def tolerance_figures(found: dict[str, list[Row]]) -> list[tuple[str, Markup, str]]:
    """Title, figure and note for each distribution; of the paper's the paper's curves are there without a run too."""
    run_of = {row["name"]: row for row in found["runs"]}
    figures: list[tuple[str, Markup, str]] = []
    for name in [*(name for name in run_of if name not in PAPER), *PAPER]:
        run = run_of.get(name)
        figure, title, x_range, y_range = PAPER.get(name, ("", "This fleet" if name == "fleet" else name, (1.0, 8.0), (0.9, 1.0)))
        simulated = [row for row in found["curves"] if run and row["run_id"] == run["run_id"]]
        drawing = _drawing(simulated, [row for row in found["paper"] if row["figure"] == figure], x_range, y_range)
        note = (
            f"{count(run['requests'])} requests of {run['data_drives']} data drives and {run['parity']} parity, run {run['run_id']}."
            if run
            else f"Not simulated here: drivetail toleraid run --slowdowns {name} --jitter paper."
        )
        heading = f"Figure {figure}: {title}" if figure else title
        figures.append((heading, drawn(drawing, f"tolerance-{len(figures)}", f"{heading}: completions by policy"), note))
    return figures


def _drawing(simulated: Sequence[Row], paper: Sequence[Row], x_range: tuple[float, float], y_range: tuple[float, float]) -> go.Figure:
    drawing = go.Figure()
    for policy, ink in POLICIES.items():
        mine = [row for row in simulated if row["policy"] == policy]
        printed = [row for row in paper if row["curve"] == policy]
        for rows, dash, of in ((mine, "solid", "simulated"), (printed, "5px,3px", "paper")):
            if rows:
                drawing.add_scatter(
                    x=[row["x"] for row in rows],
                    y=[row["y"] for row in rows],
                    mode="lines",
                    line={"color": ink, "width": 2.2 if of == "simulated" else 1.6, "dash": dash},
                    name=policy,
                    legendgroup=policy,
                    showlegend=of == "simulated" or not mine,
                    hovertemplate=f"%{{y:.5~g}} up to %{{x:.4~g}}<extra>{policy}, {of}</extra>",
                )
    styled(drawing, 340, hovermode="closest", margin=(66, 26, 30, 46))
    drawing.update_layout(legend={"font": {"size": 12}, "itemwidth": 30})
    drawing.update_xaxes(automargin=False, title_text="completion (multiples of the base latency)", range=list(x_range))
    drawing.update_yaxes(
        automargin=False, title_text="share of requests", range=[y_range[0], y_range[1] + 0.012 * (y_range[1] - y_range[0])]
    )
    return drawing


def write_tolerance(warehouse: Warehouse, out: Path) -> Path:
    """Write Figure 12 of each distribution and the paper's numbers as one HTML file. Raises: QueryError without a run."""
    with publication_of(warehouse) as connection:
        found = fetch_tolerance(connection)
        if not found["runs"]:
            raise QueryError(f"{warehouse.published}: nothing is simulated yet; `drivetail toleraid run` does it")
        results = fetch(connection, "select * from lab.fct_tolerance_results order by verdict, id")
        (publication,) = fetch(connection, "select publication_id, published_at, last_hour_utc from marts.publication")
    page = render(
        "toleraid.html.j2",
        Path(__file__).parent,
        publication=publication,
        runs=found["runs"],
        results=results,
        # only the paper's periodic slowdowns last from one request to the next
        is_independent=[name for name in dict.fromkeys(row["name"] for row in found["runs"]) if name != "periodic"],
        figures=tolerance_figures(found),
        missing=[name for name in PAPER if name not in {row["name"] for row in found["runs"]}],
        words=tolerance_words(found["totals"]),
    )
    return replace_file(out, page)

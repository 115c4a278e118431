"""Synchronous writes on the page of an experiment: which buffer, on which filesystem."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.subplots import make_subplots

from engine.read import Row, fetch
from lab.ask.verdict import said
from lab.read import certainty, chosen, points_of, size
from report.page.look import COLOURS, INK, QUIET, SLOW, drawn, safe, styled

INKS = (COLOURS["disk"], SLOW, COLOURS["ssd"], "#8C6D1F", "#CC79A7", "#56B4E9", QUIET, INK)
"""Colours of configurations, by name."""
FIRST, GREY = COLOURS["disk"], "#c9ced4"
PHASE_SHADES = {1: "rgba(0, 158, 115, 0.10)", 2: "rgba(140, 109, 31, 0.10)", 3: "rgba(213, 94, 0, 0.10)"}

SUMMARY = "select * from lab.fct_sync_write_summary where experiment_id = ? order by best_ratio desc nulls last, config_id"
PHASES = "select * from lab.fct_sync_write_phases where experiment_id = ? order by config_id, buffer_bytes"
COMPARISONS = """
select * from lab.fct_sync_write_comparisons where experiment_id = ? order by "pass" desc, config_a, config_b, buffer_bytes
"""
MODELS = "select * from lab.fct_sync_write_models where experiment_id = ? and is_in_range order by config_id, buffer_bytes"
SYNCS = "select * from lab.fct_job_syncs where experiment_id = ? order by config_id, job"
COMPARED_SYNCS = r"""
select *, regexp_extract(test, '^(.*)\.sync\.lat_mean$', 1) as job from lab.fct_bench_comparisons
where experiment_id = ? and compared = 'config' and side_a < side_b and benchmark = 'fio' and test like '%.sync.lat_mean'
order by test, side_a, side_b
"""
TIMES = {"mean_us": "on average", "p99_us": "at p99", "p999_us": "at p99.9"}
RECONCILED = "select * from lab.fct_aggregate_reconciliation where experiment_id = ? order by all"


def part(connection: duckdb.DuckDBPyConnection, experiment: Row, other: Row | None) -> dict[str, Any]:
    """Values that the page of such an experiment shows."""
    name = experiment["experiment_id"]
    points = points_of(connection, name)
    summary = fetch(connection, SUMMARY, [name])
    phases: dict[str, list[Row]] = {}
    for row in fetch(connection, PHASES, [name]):
        phases.setdefault(row["config_id"], []).append(row)
    compared = fetch(connection, COMPARISONS, [name])
    syncs = fetch(connection, SYNCS, [name])
    inks = dict(zip(sorted(points), INKS * (1 + len(points) // len(INKS)), strict=False))
    beside = points_of(connection, other["experiment_id"]) if other is not None else {}
    shown = {**points, **{f"{other['experiment_id']}: {config}": rows for config, rows in beside.items()}} if other else points
    return {
        "template": "sync_writes.html.j2",
        "question": "Which filesystem and which buffer for synchronous writes?",
        "answer": _answer(points, summary, compared, syncs, fetch(connection, COMPARED_SYNCS, [name])),
        "syncs": syncs,
        "points": points,
        "summary": summary,
        "size": size,
        "models": fetch(connection, MODELS, [name]),
        "reconciled": fetch(connection, RECONCILED, [name]),
        "both": [
            (config, drawn(_by_config(rows, phases.get(config, []), inks[config]), f"config-{number}", f"{config} by buffer"))
            for number, (config, rows) in enumerate(points.items())
        ],
        "together": [
            ("Throughput", drawn(_lines(shown, inks, "throughput_kb_per_s", "kB/s"), "throughput", "Throughput by buffer")),
            ("Latency", drawn(_lines(shown, inks, "latency_us", "microseconds"), "latency", "Latency by buffer")),
            ("Throughput per latency", drawn(_ratios(shown, inks, phases), "ratio", "Ratio by buffer")),
        ],
        "heat": drawn(_heat(compared), "heat", "Differences by pair and buffer") if compared else None,
        "chooser": _chooser(points),
    }


def _answer(
    points: dict[str, list[Row]], summary: Sequence[Row], compared: Sequence[Row], syncs: Sequence[Row], compared_syncs: Sequence[Row]
) -> list[str]:
    """The best ratio of all, and how clear it is; then the limits of each configuration, and its syncs."""
    limits = [sentence for config, rows in points.items() if (sentence := _limits(config, rows)) is not None]
    limits += [
        f"{row['config_id']}, {row['job']}: fsync or fdatasync takes "
        + ", ".join(f"{row[column]:,.0f} us {at}" for column, at in TIMES.items() if row[column] is not None)
        + f" (n = {row['n']})."
        for row in syncs
    ]
    limits += [f"{row['job']}, fsync or fdatasync on average: {said(row, row['side_a'], row['side_b'])}." for row in compared_syncs]
    rated = [row for row in summary if row["best_ratio"] is not None]
    if not rated:
        return ["No configuration has both passes, so no buffer can be chosen.", *limits]
    best = rated[0]
    (point,) = (row for row in points[best["config_id"]] if row["buffer_bytes"] == best["best_ratio_buffer_bytes"])
    first = [
        f"The most throughput per latency: {best['config_id']} with {size(point['buffer_bytes'])}, "
        f"{point['mean_throughput_kb_per_s']:,.0f} kB/s{_interval(point['low_throughput_kb_per_s'], point['high_throughput_kb_per_s'])} at "
        f"{point['mean_latency_us']:,.0f} us a write{_interval(point['low_latency_us'], point['high_latency_us'])}, "
        f"n = {point['n_throughput']} and {point['n_latency']}{_ties(points[best['config_id']], point)}."
    ]
    if len(rated) > 1:
        pair = {best["config_id"], rated[1]["config_id"]}
        at = [row for row in compared if {row["config_a"], row["config_b"]} == pair and row["buffer_bytes"] == point["buffer_bytes"]]
        first += [f"At this buffer, {row['pass']}: {said(row, row['config_a'], row['config_b'])}." for row in at]
    return first + limits


def _limits(config: str, rows: Sequence[Row]) -> str | None:
    """The most throughput and the least latency of a configuration, with the buffers that reach them as far as anyone can tell."""
    fast = [row for row in rows if row["is_best_throughput"]]
    short = [row for row in rows if row["is_best_latency"]]
    if not fast or not short:
        return None
    most = max(row["mean_throughput_kb_per_s"] for row in fast)
    least = min(short, key=lambda row: row["mean_latency_us"])
    tail = "" if least["p99_latency_us"] is None else f" (p99 {least['p99_latency_us']:,.0f} us)"
    return (
        f"{config}: at most {most:,.0f} kB/s, reached by {_sizes(fast, rows)}; at least {least['mean_latency_us']:,.0f} us a write{tail}, "
        f"with {_sizes(short, rows)}."
    )


def _sizes(found: Sequence[Row], rows: Sequence[Row]) -> str:
    if len(found) == len(rows) > 1:
        return "any buffer: these runs tell none apart"
    *others, last = (str(size(row["buffer_bytes"])) for row in found)
    return f"{', '.join(others)} or {last}" if others else last


def _ties(rows: Sequence[Row], best: Row) -> str:
    tied = [row for row in rows if row is not best and row["is_best_ratio"]]
    return f"; {', '.join(str(size(row['buffer_bytes'])) for row in tied)} cannot be told apart" if tied else ""


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" (95%: {low:,.0f} to {high:,.0f})"


def _errors(rows: Sequence[Row], column: str) -> dict[str, Any]:
    return {"type": "data", "array": [row[f"sd_{column}"] or 0 for row in rows], "thickness": 1, "width": 2}


def log_axis(drawing: go.Figure, values: Iterable[float | None], title: str, axis: str = "y", **where: Any) -> None:
    """A logarithmic axis whose ticks are written out: powers of ten over decades, 1-2-5 where there are fewer than two."""
    positive = [value for value in values if value is not None and value > 0]
    low, high = (math.log10(end) for end in (min(positive), max(positive))) if positive else (0.0, 0.0)
    steps = (1,) if high - low > 1.8 else (1, 2, 5)
    ticks = [step * 10.0**decade for decade in range(math.floor(low) - 1, math.ceil(high) + 1) for step in steps]
    text = [f"{tick:,.0f}" if tick >= 1 else f"{tick:g}" for tick in ticks]
    update = drawing.update_yaxes if axis == "y" else drawing.update_xaxes
    update(type="log", title_text=title, automargin=False, tickvals=ticks, ticktext=text, **where)


def _sizes_axis(drawing: go.Figure, points: Sequence[Row], **where: Any) -> None:
    sizes = sorted({row["buffer_bytes"] for row in points})
    shown = sizes[:: 2 if len(sizes) > 7 else 1]
    drawing.update_xaxes(type="log", tickvals=shown, ticktext=[size(value) for value in shown], tickangle=-35, automargin=True, **where)


def _by_config(rows: Sequence[Row], phases: Sequence[Row], ink: str) -> go.Figure:
    """Throughput above latency of one configuration, phases shaded."""
    drawing = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for place, (column, unit) in enumerate((("throughput_kb_per_s", "kB/s"), ("latency_us", "us")), 1):
        drawing.add_scatter(
            x=[row["buffer_bytes"] for row in rows], y=[row[f"mean_{column}"] for row in rows], error_y=_errors(rows, column),
            mode="lines+markers", line={"color": ink, "width": 2}, marker={"size": 5}, showlegend=False, row=place, col=1,
            customdata=[size(row["buffer_bytes"]) for row in rows], hovertemplate=f"%{{customdata}}: %{{y:,.0f}} {unit}<extra></extra>",
        )  # fmt: skip
    styled(drawing, 360, hovermode="closest", margin=(88, 12, 8, 50))
    for row in phases:
        drawing.add_vrect(
            x0=row["buffer_bytes"],
            x1=row["next_bytes"],
            fillcolor=PHASE_SHADES[row["phase"]],
            line_width=0,
            layer="below",
            row="all",
            col=1,
        )
    for place, (column, unit) in enumerate((("throughput_kb_per_s", "kB/s"), ("latency_us", "us")), 1):
        log_axis(drawing, [row[f"mean_{column}"] for row in rows], unit, row=place, col=1)
        _sizes_axis(drawing, rows, row=place, col=1)
    return drawing


def _lines(points: dict[str, list[Row]], inks: dict[str, str], column: str, unit: str) -> go.Figure:
    drawing = go.Figure()
    for config, rows in points.items():
        name = config.rsplit(": ", 1)[-1]
        drawing.add_scatter(
            x=[row["buffer_bytes"] for row in rows], y=[row[f"mean_{column}"] for row in rows], error_y=_errors(rows, column),
            mode="lines+markers", marker={"size": 5}, name=safe(config), customdata=[size(row["buffer_bytes"]) for row in rows],
            line={"color": inks.get(name, QUIET), "width": 2, "dash": "solid" if config in inks else "dot"},
            hovertemplate=f"%{{customdata}}: %{{y:,.0f}} {unit}<extra>{safe(config)}</extra>",
        )  # fmt: skip
    styled(drawing, 340, hovermode="closest", margin=(88, 16, 30, 54))
    log_axis(drawing, [row[f"mean_{column}"] for rows in points.values() for row in rows], unit)
    _sizes_axis(drawing, [row for rows in points.values() for row in rows])
    return drawing


def _ratios(points: dict[str, list[Row]], inks: dict[str, str], phases: dict[str, list[Row]]) -> go.Figure:
    """Throughput over latency; a plateau is drawn thick."""
    drawing = go.Figure()
    for config, rows in points.items():
        ink = inks.get(config.rsplit(": ", 1)[-1], QUIET)
        drawing.add_scatter(
            x=[row["buffer_bytes"] for row in rows], y=[row["ratio"] for row in rows], mode="lines+markers", marker={"size": 5},
            line={"color": ink, "width": 2, "dash": "solid" if config in inks else "dot"}, name=safe(config),
            customdata=[size(row["buffer_bytes"]) for row in rows],
            hovertemplate=f"%{{customdata}}: %{{y:,.4~g}} kB/s per us<extra>{safe(config)}</extra>",
        )  # fmt: skip
        ratio_at = {row["buffer_bytes"]: row["ratio"] for row in rows}
        for pair in phases.get(config, []):
            if pair["ratio_trend"] == "plateau":
                ends = [pair["buffer_bytes"], pair["next_bytes"]]
                drawing.add_scatter(
                    x=ends, y=[ratio_at[end] for end in ends], mode="lines", line={"color": ink, "width": 7}, opacity=0.45,
                    showlegend=False, hoverinfo="skip",
                )  # fmt: skip
    styled(drawing, 340, hovermode="closest", margin=(88, 16, 30, 54))
    log_axis(drawing, [row["ratio"] for rows in points.values() for row in rows], "kB/s per us")
    _sizes_axis(drawing, [row for rows in points.values() for row in rows])
    return drawing


def _heat(compared: Sequence[Row]) -> go.Figure:
    """Pairs and passes by buffer: which side is better."""
    names = list(dict.fromkeys((row["pass"], row["config_a"], row["config_b"]) for row in compared))
    buffers = sorted({row["buffer_bytes"] for row in compared})
    at = {(row["pass"], row["config_a"], row["config_b"], row["buffer_bytes"]): row for row in compared}

    def side(row: Row | None) -> float | None:
        return None if row is None or row["answer"] in ("no data", "not alike") else {"faster": 1.0, "slower": -1.0}.get(row["answer"], 0.0)

    cells = [[at.get((*name, buffer)) for buffer in buffers] for name in names]
    drawing = go.Figure(
        go.Heatmap(
            z=[[side(row) for row in line] for line in cells],
            x=[size(buffer) for buffer in buffers],
            y=[f"{safe(a)} | {safe(b)}, {pass_}" for pass_, a, b in names],
            text=[[safe(said(row, row["config_a"], row["config_b"])) if row else "" for row in line] for line in cells],
            hovertemplate="%{y}, %{x}: %{text}<extra></extra>",
            zmin=-1, zmax=1, colorscale=[[0, SLOW], [0.33, SLOW], [0.33, GREY], [0.67, GREY], [0.67, FIRST], [1, FIRST]],
            showscale=False, xgap=2, ygap=2,
        )
    )  # fmt: skip
    styled(drawing, 90 + 34 * len(names), hovermode="closest", margin=(170, 16, 8, 60))
    drawing.update_yaxes(autorange="reversed", showgrid=False)
    drawing.update_xaxes(showgrid=False, tickangle=-35)
    return drawing


def _chooser(points: dict[str, list[Row]]) -> Markup:
    """The answers of the two sliders as JSON: for each floor and ceiling that was measured, what `drivetail lab choose` says."""
    floors = [None, *_rounded(row["mean_throughput_kb_per_s"] for rows in points.values() for row in rows)]
    ceilings = [*_rounded(row["mean_latency_us"] for rows in points.values() for row in rows), None]
    answers: dict[str, list[list[list[Any] | None]]] = {}
    for config, rows in points.items():
        answers[config] = [[_shown(rows, floor, ceiling) for ceiling in ceilings] for floor in floors]
    data = json.dumps({"floors": floors, "ceilings": ceilings, "answers": answers})
    return Markup(data.replace("<", "\\u003c"))


def _rounded(values: Any) -> list[int]:
    """Limits to choose from: the measured values with two digits, each once."""
    return sorted({int(float(f"{value:.2g}")) for value in values if value is not None and value >= 1})


def _shown(points: Sequence[Row], floor: float | None, ceiling: float | None) -> list[Any]:
    point = chosen(points, floor, ceiling)
    throughput, latency = (None, None) if point is None else (point["mean_throughput_kb_per_s"], point["mean_latency_us"])
    return [
        "infeasible" if point is None else size(point["buffer_bytes"]),
        None if throughput is None else f"{throughput:,.0f}",
        None if latency is None else f"{latency:,.0f}",
        certainty(points, point, floor, ceiling),
    ]

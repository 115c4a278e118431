"""Read variability on the page of an experiment: how steady reads are, and what masks it when they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import plotly.graph_objects as go

from engine.read import Row, fetch
from report.lab.sync_writes import INKS
from report.page.look import SLOW, drawn, safe, styled

MITIGATIONS = "select * from lab.fct_mitigations where experiment_id = ? order by slowdown, config_id"
PERIODS = "select * from lab.fct_temporal_periods where experiment_id = ? order by config_id, phase"
INSTANCES = "select * from lab.fct_temporal_slowdowns where experiment_id = ? order by config_id, phase, instance"
ONSETS = "select * from lab.fct_permanent_slowdowns where experiment_id = ? and onset_hour is not null order by config_id, file_name"
FRAGMENTS = "select * from lab.fct_fragmentation_effect where experiment_id = ? order by config_id, extent_count"
READS = """
select config_id, file_name, started_s, throughput_bytes_per_s from lab.fct_file_reads
where experiment_id = ? and throughput_bytes_per_s is not null order by config_id, file_name, started_s
"""
TRACES = "select * from lab.fct_trace_counts where experiment_id = ? order by config_id, phase, run_number, file, device"
MOST_POINTS = 6_000
"""Greatest number of reads of a configuration in a timeline; of more, it shows an even selection. They are drawn without WebGL, which
printers and many remote desktops lack.
"""
WHERE = {
    "intrinsic": "in files of the most extents (intrinsic)", "temporal": "while all reads are slow for a time (temporal)",
    "permanent": "after a file became slow for good (permanent)",
}  # fmt: skip
"""Where throughput is lost to a slowdown."""


def part(connection: duckdb.DuckDBPyConnection, experiment: Row, other: Row | None) -> dict[str, Any]:
    """What the page of such an experiment holds."""
    name = experiment["experiment_id"]
    mitigations, periods = fetch(connection, MITIGATIONS, [name]), fetch(connection, PERIODS, [name])
    onsets, fragments, instances = (fetch(connection, query, [name]) for query in (ONSETS, FRAGMENTS, INSTANCES))
    reads: dict[str, list[Row]] = {}
    for row in fetch(connection, READS, [name]):
        reads.setdefault(row["config_id"], []).append(row)
    beside = fetch(connection, MITIGATIONS, [other["experiment_id"]]) if other is not None else []
    return {
        "template": "lab/reads.html.j2",
        "question": "Is the read speed steady, and what hides it when it is not?",
        "answer": _answer(mitigations, periods, onsets),
        "mitigations": mitigations,
        "beside": beside,
        "against": other["experiment_id"] if other is not None else None,
        "periods": periods,
        "onsets": onsets,
        "traces": fetch(connection, TRACES, [name]),
        "timelines": [
            (
                config,
                drawn(_timeline(rows, [one for one in instances if one["config_id"] == config]), f"reads-{number}", f"{config} over time"),
            )
            for number, (config, rows) in enumerate(reads.items())
        ],
        "extents": drawn(_by_extents(fragments), "extents", "Throughput by extents") if fragments else None,
    }


def _answer(mitigations: Sequence[Row], periods: Sequence[Row], onsets: Sequence[Row]) -> list[str]:
    if not mitigations:
        return ["No file was read, so nothing can be said."]
    said = []
    for slowdown in WHERE:
        rows = [row for row in mitigations if row["slowdown"] == slowdown]
        if not rows:
            continue
        drops = ", ".join(f"{row['config_id']} {row['drop_ratio']:.1%}" for row in rows)
        masking = [row["config_id"] for row in rows if row["is_masked"]]
        said.append(f"Throughput lost {WHERE[slowdown]}: {drops}" + (f"; masked by {', '.join(masking)}." if masking else "."))
    for row in periods:
        if row["mean_period_seconds"] is not None:
            every = f"every {_time(row['mean_period_seconds'])} for {_time(row['mean_duration_seconds'])}"
            said.append(f"{row['config_id']}: temporal slowdowns come {every}; trigger: {row['trigger'] or 'too few to tell'}.")
    said += [f"{row['config_id']}: {row['file_name']} is slow for good from hour {row['onset_hour']}." for row in onsets[:5]]
    return said


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.1f} min" if seconds >= 60 else f"{seconds:.2g} s"


def _timeline(rows: Sequence[Row], instances: Sequence[Row]) -> go.Figure:
    """Throughput of each read over time, coloured by file, temporal slowdowns shaded."""
    shown = rows[:: -(-len(rows) // MOST_POINTS)]
    files = list(dict.fromkeys(row["file_name"] for row in shown))
    drawing = go.Figure()
    for number, file in enumerate(files):
        mine = [row for row in shown if row["file_name"] == file]
        drawing.add_scatter(
            x=[row["started_s"] / 3600 for row in mine], y=[row["throughput_bytes_per_s"] / 1e6 for row in mine], mode="markers",
            marker={"size": 3, "color": INKS[number % len(INKS)]}, name=safe(file),
            hovertemplate="hour %{x:.2f}: %{y:,.0f} MB/s" + f"<extra>{safe(file)}</extra>",
        )  # fmt: skip
    styled(drawing, 320, hovermode="closest")
    for one in instances:
        drawing.add_vrect(x0=one["started_s"] / 3600, x1=one["ended_s"] / 3600, fillcolor=SLOW, opacity=0.15, line_width=0, layer="below")
    drawing.update_xaxes(title_text="hours")
    drawing.update_yaxes(title_text="MB/s", automargin=False)
    drawing.update_layout(margin={"l": 60, "r": 16, "t": 30, "b": 46})
    return drawing


def _by_extents(rows: Sequence[Row]) -> go.Figure:
    drawing = go.Figure()
    for number, config in enumerate(dict.fromkeys(row["config_id"] for row in rows)):
        mine = [row for row in rows if row["config_id"] == config]
        drawing.add_scatter(
            x=[row["extent_count"] for row in mine], y=[row["mean_throughput_bytes_per_s"] / 1e6 for row in mine], mode="lines+markers",
            line={"color": INKS[number % len(INKS)], "width": 2}, name=safe(config),
            hovertemplate="%{x} extents: %{y:,.0f} MB/s" + f"<extra>{safe(config)}</extra>",
        )  # fmt: skip
    styled(drawing, 320, hovermode="closest")
    drawing.update_xaxes(title_text="extents of a file")
    drawing.update_yaxes(title_text="MB/s", automargin=False, rangemode="tozero")
    drawing.update_layout(margin={"l": 60, "r": 16, "t": 30, "b": 46})
    return drawing

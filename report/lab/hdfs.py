"""Disks under many clients on the page of an experiment: what more writers, scheduling and faster task starts would change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import plotly.graph_objects as go

from engine.lab_read import size
from engine.read import Row, fetch
from report.lab.sync_writes import INKS
from report.page.look import drawn, styled

SCALING = "select * from lab.fct_writer_scaling where experiment_id = ? order by writers"
PATTERNS = "select * from lab.fct_access_patterns where experiment_id = ? order by config_id, phase, run_number, file, device"
PERIODS = """
select * from lab.fct_access_periods where experiment_id = ? and period_seconds is not null
order by config_id, phase, run_number, file, device
"""
DEVICES = "select * from lab.fct_device_utilisation where experiment_id = ? order by config_id, phase, run_number, device"
FILES = "select * from lab.fct_file_fragments where experiment_id = ? order by config_id, phase, run_number, file_name"
REPLAYS = "select * from lab.fct_schedule_replays where experiment_id = ? order by config_id, phase, run_number, file, device, direction"
NODES = "select * from lab.fct_task_utilisation where experiment_id = ? order by config_id, phase, run_number, node"
MODELS = "select * from lab.fct_task_start_models where experiment_id = ? order by config_id"
LINES = {
    "bandwidth_ratio": "bandwidth", "mean_run_ratio": "run length", "seeks_per_mib_ratio": "seeks per MiB",
    "extents_per_file_ratio": "extents per file",
}  # fmt: skip
GAINS = {
    "gain_if_heartbeat_300ms": "a heartbeat of 0.3 s", "gain_if_jvm_reused": "reused JVMs", "gain_if_5gb_tasks": "tasks of 5 GiB",
}  # fmt: skip


def part(connection: duckdb.DuckDBPyConnection, experiment: Row, other: Row | None) -> dict[str, Any]:
    """What the page of such an experiment holds."""
    name = experiment["experiment_id"]
    scaling, replays, models = (fetch(connection, query, [name]) for query in (SCALING, REPLAYS, MODELS))
    beside = fetch(connection, SCALING, [other["experiment_id"]]) if other is not None else []
    is_scaled = any(row[line] is not None for row in scaling for line in LINES)
    return {
        "template": "lab/hdfs.html.j2",
        "question": "What keeps the disks from being used: concurrent writers, seeks, or waiting for tasks?",
        "answer": _answer(scaling, replays, models),
        "scaling": scaling,
        "beside": beside,
        "against": other["experiment_id"] if other is not None else None,
        "drawing": drawn(_ratios(scaling), "writers", "Change with the number of writers") if is_scaled else None,
        "patterns": fetch(connection, PATTERNS, [name]),
        "periods": fetch(connection, PERIODS, [name]),
        "devices": fetch(connection, DEVICES, [name]),
        "files": fetch(connection, FILES, [name]),
        "replays": replays,
        "nodes": fetch(connection, NODES, [name]),
        "models": models,
        "size": size,
    }


def _answer(scaling: Sequence[Row], replays: Sequence[Row], models: Sequence[Row]) -> list[str]:
    said = []
    for row in scaling[-1:] if len(scaling) > 1 else []:
        parts = [f"{words} {row[name]:.2f} times" for name, words in LINES.items() if row[name] is not None]
        if parts:
            said.append(f"With {row['writers']} writers against one: {', '.join(parts)}.")
    helped = [row for row in replays if row["clients"] > 1]
    if helped:
        most = max(helped, key=lambda row: row["seeks_before"])
        said.append(
            f"Scheduling by file would leave {most['seeks_after']:,} of {most['seeks_before']:,} seeks of the {most['direction']}s "
            f"of {most['config_id']}, run {most['run_number']} (simulated)."
        )
    for row in models:
        if row["predicted_utilisation"] is None:
            continue
        best = max((name for name in GAINS if row[name] is not None), key=lambda name: row[name])
        said.append(
            f"{row['config_id']}: slots are busy for {row['observed_utilisation']:.0%} of the time. The model says "
            f"{row['predicted_utilisation']:.0%}, and that {GAINS[best]} would add most, {100 * row[best]:.0f} points."
        )
    return said or ["No trace, map of files or list of tasks was given, so nothing can be said."]


def _ratios(rows: Sequence[Row]) -> go.Figure:
    """Each measure over that of one writer."""
    drawing = go.Figure()
    for number, (column, words) in enumerate(LINES.items()):
        drawing.add_scatter(
            x=[row["writers"] for row in rows], y=[row[column] for row in rows], mode="lines+markers", name=words,
            line={"color": INKS[number], "width": 2}, hovertemplate="%{x} writers: %{y:.3g} times" + f"<extra>{words}</extra>",
        )  # fmt: skip
    styled(drawing, 320, hovermode="closest")
    drawing.update_xaxes(title_text="writers", tickvals=[row["writers"] for row in rows])
    drawing.update_yaxes(title_text="times one writer", type="log", automargin=False)
    drawing.update_layout(margin={"l": 60, "r": 16, "t": 30, "b": 46})
    return drawing

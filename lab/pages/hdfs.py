"""Disks under many clients on the page of an experiment: what more writers, scheduling and faster task starts would change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import plotly.graph_objects as go

from engine.read import Row, fetch
from lab.ask import verdict
from lab.pages.sync_writes import INKS, log_axis
from lab.read import size
from report.page.look import COLOURS, SLOW, drawn, safe, styled

SCALING = "select * from lab.fct_writer_scaling where experiment_id = ? order by writers"
COMPARED = """
select *, try_cast(substr(side_a, length('writers=') + 1) as bigint) as writers from lab.fct_bench_comparisons
where experiment_id = ? and compared = 'writers' and side_b = 'writers=1' order by writers, benchmark, test
"""
PREALLOCATION = """
select effects.writers, effects.files_with, effects.files_without, effects.whole_files_with, effects.whole_files_without,
    effects.extents_per_file_without, answers.*
from lab.fct_preallocation_effect as effects
inner join lab.fct_bench_comparisons as answers
    on effects.experiment_id = answers.experiment_id and answers.compared = 'config' and effects.config_id = answers.side_b
    and effects.config_id_without = answers.side_a and answers.benchmark = 'filefrag' and answers.test = 'extents'
where effects.experiment_id = ? order by effects.writers, answers.side_a, answers.side_b
"""
TRACE = "config_id, phase, run_number, file, device"
PATTERNS = f"""
select patterns.*, periods.bins, counts.lost_events from lab.fct_access_patterns as patterns
left join lab.fct_access_periods as periods using (experiment_id, {TRACE})
left join lab.fct_trace_counts as counts using (experiment_id, {TRACE})
where experiment_id = ? order by {TRACE}
"""
SECONDS = """
select bin, busy_ratio, is_idle from lab.fct_busy_seconds
where experiment_id = ? and config_id = ? and phase = ? and run_number = ? and file = ? and device = ? order by bin limit ?
"""
TASKS = """
select node, slot, started_s, ended_s from lab.fct_tasks
where experiment_id = ? and config_id = ? and phase = ? and run_number = ? order by node, slot, started_s, ended_s limit ?
"""
PERIODS = """
select * from lab.fct_access_periods where experiment_id = ? and period_seconds is not null
order by config_id, phase, run_number, file, device
"""
DEVICES = "select * from lab.fct_device_utilisation where experiment_id = ? order by config_id, phase, run_number, device"
FILES = "select * from lab.fct_file_fragments where experiment_id = ? order by config_id, phase, run_number, file_name limit ?"
REPLAYS = "select * from lab.fct_schedule_replays where experiment_id = ? order by config_id, phase, run_number, file, device, direction"
NODES = "select * from lab.fct_task_utilisation where experiment_id = ? order by config_id, phase, run_number, node"
MODELS = "select * from lab.fct_task_start_models where experiment_id = ? order by config_id"
MOST_FIGURES, MOST_SECONDS, MOST_TASKS, MOST_FILES = 6, 20_000, 5_000, 200
"""Greatest numbers of figures of a kind, of points in one, and of rows of files. The page says where it leaves some out."""
LINES = {
    ("filefrag", "extents"): "Extents per MiB", ("writers", "write"): "Write speed", ("trace", "bandwidth"): "Bandwidth",
    ("trace", "run_length"): "Run length", ("trace", "seeks"): "Seeks per MiB",
}  # fmt: skip
"""Measure that writers are compared by -> its words."""
GAINS = {
    "gain_if_heartbeat_300ms": "a heartbeat of 0.3 s", "gain_if_jvm_reused": "reused JVMs", "gain_if_5gb_tasks": "tasks of 5 GiB",
}  # fmt: skip


def part(connection: duckdb.DuckDBPyConnection, experiment: Row, other: Row | None) -> dict[str, Any]:
    """Values that the page of such an experiment shows."""
    name = experiment["experiment_id"]
    scaling, compared, replays, models = (fetch(connection, query, [name]) for query in (SCALING, COMPARED, REPLAYS, MODELS))
    beside, compared_beside = [
        fetch(connection, query, [other["experiment_id"]]) if other is not None else [] for query in (SCALING, COMPARED)
    ]
    files = fetch(connection, FILES, [name, MOST_FILES + 1])
    patterns, nodes = fetch(connection, PATTERNS, [name]), fetch(connection, NODES, [name])
    # within one second there is no time to show
    timed = [row for row in patterns if (row["bins"] or 0) > 1]
    # tasks that all took no time have nothing to draw
    runs = list(dict.fromkeys((row["config_id"], row["phase"], row["run_number"]) for row in nodes if row["makespan_seconds"]))
    compared, compared_beside = ([row for row in found if _line(row) in LINES] for found in (compared, compared_beside))
    return {
        "template": "hdfs.html.j2",
        "question": "What keeps the disks from being used: concurrent writers, seeks, or waiting for tasks?",
        "answer": _answer(scaling, compared, fetch(connection, PREALLOCATION, [name]), patterns, replays, models),
        "scaling": scaling,
        "compared": compared,
        "compared_beside": compared_beside,
        "named": lambda row: LINES[_line(row)],
        "said": _said,
        "beside": beside,
        "against": other["experiment_id"] if other is not None else None,
        "drawing": drawn(_ratios(compared), "writers", "Change with the number of writers") if compared else None,
        "patterns": patterns,
        "timelines": [
            (
                f"{_run(*_key(row))}, {row['file']}, device {row['device']}",
                drawn(
                    _busy(fetch(connection, SECONDS, [name, *_key(row), row["file"], row["device"], MOST_SECONDS])),
                    f"busy-{number}",
                    "Busy share by second",
                ),
            )
            for number, row in enumerate(timed[:MOST_FIGURES])
        ],
        "left_timelines": max(len(timed) - MOST_FIGURES, 0),
        "periods": fetch(connection, PERIODS, [name]),
        "devices": fetch(connection, DEVICES, [name]),
        "files": files[:MOST_FILES],
        "has_more_files": len(files) > MOST_FILES,
        "replays": replays,
        "nodes": nodes,
        "slots": [
            (_run(*run), drawn(_gantt(fetch(connection, TASKS, [name, *run, MOST_TASKS])), f"tasks-{number}", "Tasks by slot"))
            for number, run in enumerate(runs[:MOST_FIGURES])
        ],
        "left_slots": max(len(runs) - MOST_FIGURES, 0),
        "models": models,
        "size": size,
    }


def _key(row: Row) -> tuple[str, str, int]:
    return row["config_id"], row["phase"], row["run_number"]


def _run(config: str, phase: str, number: int) -> str:
    """A run in words."""
    return f"{config} {phase}, run {number}" if phase else f"{config}, run {number}"


def _line(row: Row) -> tuple[str, str]:
    return row["benchmark"], row["test"]


def _answer(
    scaling: Sequence[Row],
    compared: Sequence[Row],
    preallocation: Sequence[Row],
    patterns: Sequence[Row],
    replays: Sequence[Row],
    models: Sequence[Row],
) -> list[str]:
    """Reasons why the disks are not used fully, and questions that the experiment cannot answer."""
    # the most writers against one
    rows = [row for row in compared if row["writers"] == compared[-1]["writers"]]
    words = list(LINES)
    answers = [f"{LINES[_line(row)]}: {_said(row)}." for row in sorted(rows, key=lambda row: words.index(_line(row)))]
    timed = [row for row in scaling if row["write_bytes_per_s"] is not None]
    speeds = ", ".join(f"{row['writers']} at {row['write_bytes_per_s'] / 1e6:,.0f} MB/s" for row in timed)
    mapped = [row for row in scaling if row["mean_extent_bytes"] is not None]
    extents = ", ".join(f"{row['writers']} make extents of {row['mean_extent_bytes'] / 1e3:,.0f} kB" for row in mapped)
    said = [
        *answers,
        *([f"Writers write together: {speeds}."] if speeds else []),
        *([f"Writers on average: {extents}."] if extents else []),
    ]
    said += [_preallocated(row) for row in preallocation[-1:]]
    helped = [row for row in replays if row["clients"] > 1]
    if helped:
        most = max(helped, key=lambda row: row["seeks_before"])
        said.append(
            f"Scheduling by file would leave {most['seeks_after']:,} of {most['seeks_before']:,} seeks of the {most['direction']}s "
            f"of {most['config_id']}, run {most['run_number']} (simulated)."
        )
    # tasks that all took no time say nothing
    worked = [row for row in models if row["observed_utilisation"] is not None]
    for row in worked:
        busy = f"{row['config_id']}: slots are busy for {row['observed_utilisation']:.0%} of the time."
        if row["predicted_utilisation"] is not None:
            best = max((name for name in GAINS if row[name] is not None), key=lambda name: row[name], default=None)
            busy += f" The model says {row['predicted_utilisation']:.0%}"
            busy += f", and that {GAINS[best]} would add most, {100 * row[best]:.0f} points." if best is not None else "."
        said.append(busy)
    lacking = [
        f"{what} ({needed})"
        for what, needed, is_there in (
            ("concurrent writers", "runs with one writer and with more", len(scaling) > 1),
            ("seeks", "a trace of requests", bool(patterns)),
            ("waiting for tasks", "a list of tasks", bool(worked)),
        )
        if not is_there
    ]
    return said + ([f"Not tested, for want of data: {', '.join(lacking)}."] if lacking else [])


def _preallocated(row: Row) -> str:
    """Effect of preallocation on the files of the most writers."""
    return (
        f"Preallocation: {verdict.said(row, row['side_a'], row['side_b'], verdict.FRAGMENTED)}. "
        f"{row['whole_files_with']} of {row['files_with']} files lie in one extent, "
        f"without it {row['whole_files_without']} of {row['files_without']}, of {row['extents_per_file_without']:.2f} extents on average."
    )


def _said(row: Row) -> str:
    """The answer for several writers against one."""
    words = {"extents": verdict.FRAGMENTED, "run_length": ("shorter", "longer"), "seeks": ("higher", "lower")}.get(
        row["test"], verdict.SLOWER
    )
    return verdict.said(row, f"with {row['writers']} writers it", "with one", words)


def _ratios(rows: Sequence[Row]) -> go.Figure:
    """Each measure over that of one writer, with its interval."""
    drawing = go.Figure()
    for number, (line, words) in enumerate(LINES.items()):
        mine = [row for row in rows if _line(row) == line and row["ratio"] is not None]
        if not mine:
            continue
        bounded = [row | ({"ratio_low": row["ratio"], "ratio_high": row["ratio"]} if row["ratio_low"] is None else {}) for row in mine]
        drawing.add_scatter(
            x=[1, *(row["writers"] for row in mine)], y=[1, *(row["ratio"] for row in mine)], mode="lines+markers", name=words,
            customdata=["", *(safe(_said(row)) for row in mine)], line={"color": INKS[number], "width": 2},
            error_y={
                "type": "data", "symmetric": False, "thickness": 1.5, "width": 0,
                "array": [0, *(row["ratio_high"] - row["ratio"] for row in bounded)],
                "arrayminus": [0, *(row["ratio"] - row["ratio_low"] for row in bounded)],
            },
            hovertemplate="%{x} writers: %{y:.3g} times<br>%{customdata}" + f"<extra>{words}</extra>",
        )  # fmt: skip
    styled(drawing, 320, hovermode="closest", margin=(60, 16, 30, 46))
    drawing.update_xaxes(title_text="writers", tickvals=sorted({1, *(row["writers"] for row in rows)}))
    log_axis(drawing, [1, *(row["ratio"] for row in rows)], "times one writer")
    return drawing


def _busy(rows: Sequence[Row]) -> go.Figure:
    """Busy share by second, idle seconds marked below."""
    drawing = go.Figure()
    drawing.add_scatter(
        x=[row["bin"] for row in rows], y=[100 * row["busy_ratio"] for row in rows], mode="lines", name="busy", fill="tozeroy",
        line={"color": COLOURS["disk"], "width": 1, "shape": "hv"}, hovertemplate="second %{x}: %{y:.1f}%<extra></extra>",
    )  # fmt: skip
    idle: list[float | None] = []
    for row in rows:
        # the gap keeps idle seconds apart from busy ones
        idle += [row["bin"], row["bin"] + 1, None] if row["is_idle"] else []
    drawing.add_scatter(
        x=idle, y=[None if second is None else -3 for second in idle], mode="lines", name="idle", line={"color": SLOW, "width": 5},
        hoverinfo="skip",
    )  # fmt: skip
    styled(drawing, 220, hovermode="closest", margin=(60, 16, 30, 46))
    drawing.update_xaxes(title_text="seconds from the first request")
    drawing.update_yaxes(title_text="busy, %", automargin=False, range=[-7, 104], tickvals=[0, 50, 100])
    return drawing


def _gantt(rows: Sequence[Row]) -> go.Figure:
    """A line for each task in the row of its slot; nodes by colour."""
    # a job history counts from 1970, which no reader wants on an axis
    zero = min(row["started_s"] for row in rows)
    labels = list(dict.fromkeys((row["node"], row["slot"]) for row in rows))
    names = {label: safe(f"{label[0]} {label[1]}") for label in labels}
    drawing = go.Figure()
    for number, node in enumerate(dict.fromkeys(row["node"] for row in rows)):
        x: list[float | None] = []
        y: list[str | None] = []
        for row in (row for row in rows if row["node"] == node):
            # the gap keeps tasks apart
            x += [row["started_s"] - zero, row["ended_s"] - zero, None]
            y += [names[node, row["slot"]]] * 2 + [None]
        drawing.add_scatter(
            x=x, y=y, mode="lines", line={"color": INKS[number % len(INKS)], "width": 7}, showlegend=False,
            hovertemplate="%{y}: %{x:,.1f} s<extra></extra>",
        )  # fmt: skip
    styled(drawing, 90 + 18 * len(labels), hovermode="closest", margin=(120, 16, 8, 46))
    drawing.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=[names[label] for label in labels], showgrid=False)
    drawing.update_xaxes(title_text="seconds from the first task")
    return drawing

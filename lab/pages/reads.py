"""Read variability on the page of an experiment: how steady reads are, and what masks it when they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.read import Row, fetch
from lab.pages.sync_writes import INKS, log_axis
from lab.read import size
from report.page.look import QUIET, SLOW, drawn, safe, styled
from report.words import counted_noun

MITIGATIONS = "select * from lab.fct_mitigations where experiment_id = ? order by slowdown, config_id"
PERIODS = "select * from lab.fct_temporal_periods where experiment_id = ? order by config_id, phase"
INSTANCES = "select * from lab.fct_temporal_slowdowns where experiment_id = ? order by config_id, phase, instance"
TRENDS = "select * from lab.fct_read_trends where experiment_id = ? order by config_id, phase"
ONSETS = "select * from lab.fct_permanent_slowdowns where experiment_id = ? and onset_hour is not null order by config_id, file_name"
FRAGMENTS = "select * from lab.fct_fragmentation_effect where experiment_id = ? order by config_id, extent_count"
READS = """
select config_id, file_name, started_s, throughput_bytes_per_s from lab.fct_file_reads
where experiment_id = ? and throughput_bytes_per_s is not null order by config_id, file_name, started_s
"""
TESTED = "select 1 from lab.fct_permanent_slowdowns where experiment_id = ? and is_tested limit 1"
TRACES = "select * from lab.fct_trace_counts where experiment_id = ? order by config_id, phase, run_number, file, device"
PERCENTILES = """
select * from lab.fct_read_percentiles where experiment_id = ? and measure = ? and split = ?
order by config_id, part = 'after', try_cast(part as bigint), part, percentile
"""
WORST = """
select * from lab.fct_extent_reads where experiment_id = ? and recovery_requests > 0
order by recovery_requests desc, recovery_us desc, config_id, phase, run_number, file_name, read_index, extent_index limit 1
"""
OVERLAPS = """
select position, latency_us, imbalance_us from lab.fct_request_overlaps
where experiment_id = ? and config_id = ? and phase = ? and run_number = ? and file_name = ? and read_index = ? and extent_index = ?
order by position limit ?
"""
DISTRIBUTIONS = (
    ("latency", "recovery", "Latency while extents recover, and after"),
    ("recovery", "extent_bytes", "Requests until an extent has recovered, by its size"),
    ("latency", "temporal", "Latency inside and outside temporal slowdowns"),
    ("latency", "permanent", "Latency before and after"),
    ("throughput", "permanent", "Throughput of reads before and after"),
    ("throughput", "all", "Throughput of reads by configuration"),
)
"""Measure, what tells the parts apart, and heading of a figure of distributions."""
UNITS = {"latency": ("microseconds", 1.0), "recovery": ("requests", 1.0), "throughput": ("MB/s", 1e-6)}
"""Measure -> unit of its axis, and the factor of that unit."""
COUNTED = {"latency": "requests", "recovery": "extents of", "throughput": "reads"}
"""Measure -> what has a value."""
Lines = dict[tuple[str, str], list[Row]]
"""Configuration and part -> percentiles."""
DASHES = ("solid", "dash", "dot", "dashdot")
MOST_POINTS = 6_000
"""Greatest number of reads of a configuration in a timeline; of more, it shows an even selection. They are drawn without WebGL, which
printers and many remote desktops lack.
"""
WHERE = {
    "intrinsic": "in files of the most extents (intrinsic)", "temporal": "while all reads are slow for a time (temporal)",
    "permanent": "after a file became slow for good (permanent)",
}  # fmt: skip
"""Where throughput is lost to a slowdown."""
LEAST_GAPS = 3
"""Between instances, for a period."""
LEAST_LOW = 0.05
"""Share of slow reads from which they are a group, not single ones."""
REGULAR_CV = 0.5
"""Gaps that vary more have no period: those of events that come by chance have 1."""


def part(connection: duckdb.DuckDBPyConnection, experiment: Row, other: Row | None) -> dict[str, Any]:
    """Values that the page of such an experiment shows."""
    name = experiment["experiment_id"]
    mitigations, periods = fetch(connection, MITIGATIONS, [name]), fetch(connection, PERIODS, [name])
    onsets, fragments, instances = (fetch(connection, query, [name]) for query in (ONSETS, FRAGMENTS, INSTANCES))
    reads: dict[str, list[Row]] = {}
    for row in fetch(connection, READS, [name]):
        reads.setdefault(row["config_id"], []).append(row)
    beside = fetch(connection, MITIGATIONS, [other["experiment_id"]]) if other is not None else []
    return {
        "template": "reads.html.j2",
        "question": "Is the read speed steady, and what hides it when it is not?",
        "answer": _answer(mitigations, periods, onsets, is_long_enough=bool(fetch(connection, TESTED, [name])))
        + [sentence for row in fetch(connection, TRENDS, [name]) for sentence in _trends(row)],
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
        "distributions": _distributions(connection, name),
        "worst": _worst(connection, name),
    }


def _answer(mitigations: Sequence[Row], periods: Sequence[Row], onsets: Sequence[Row], *, is_long_enough: bool) -> list[str]:
    if not mitigations:
        return ["Cannot say: no reads of files (file-reads or dd), and no trace with a map of its files (filefrag -v)."]
    said = []
    for slowdown, where in WHERE.items():
        rows = [row for row in mitigations if row["slowdown"] == slowdown]
        tested = [row for row in rows if row["reason"] is None]
        if not rows:
            if slowdown == "intrinsic":
                said.append(f"Throughput lost {where}: not tested: no map of the files (filefrag -v).")
            if slowdown == "permanent":
                found = "none found" if is_long_enough else "not tested: no file has 20 reads before an hour and 20 from it on"
                said.append(f"Throughput lost {where}: {found}.")
            continue
        if not tested:
            said.append(f"Throughput lost {where}: not tested: {rows[0]['reason']}.")
            continue
        drops = ", ".join(f"{row['config_id']} {_cost(row)}" for row in rows)
        for masked, verdict in (("masked", "masked"), ("perhaps masked", "inconclusive")):
            masking = [row["config_id"] for row in rows if row["is_masked"] and row["verdict"] == verdict]
            drops += f"; {masked} by {', '.join(masking)}" if masking else ""
        said.append(f"Throughput lost {where}: {drops}.")
    said += [f"{_named(row)}: {_rhythm(row)}." for row in periods if row["instances"]]
    searched = {row["config_id"] for row in mitigations if row["slowdown"] == "temporal" and row["reason"] is None}
    least = ", ".join(f"{row['least_drop_ratio']:.0%} ({_named(row)})" for row in periods if row["config_id"] in searched)
    if least:
        said.append(f"A temporal drop counts from {least}: smaller ones cannot be told from the spread of single reads.")
    said += [f"{row['config_id']}: {row['file_name']} is slow for good from hour {row['onset_hour']}." for row in onsets[:5]]
    return said


def _trends(row: Row) -> Iterator[str]:
    """Sentences on a phase beside slowdowns: a drift, slow files, two groups of speeds."""
    if row["is_drift"]:
        hours, low, high = row["span_seconds"] / 3600, row["low_drift_ratio"], row["high_drift_ratio"]
        yield (
            f"Drift: {_named(row)} changes by {row['drift_ratio']:+.0%} in {hours:.2g} hours (95%: {low:+.0%} to {high:+.0%}): "
            + ("a full cache of the drive or heat looks so." if high < 0 else "a cache that fills looks so.")
        )
    if row["slow_files"]:
        count = len(row["slow_files"].split(", "))
        files = f"{counted_noun(count, 'file')} {'is' if count == 1 else 'are'}"
        yield f"{_named(row)}: {files} slow at every read, by {row['slow_files_drop_ratio']:.0%}: {row['slow_files']}."
    if row["is_random_order"] and row["low_ratio"] >= LEAST_LOW:
        yield f"{_named(row)}: two groups of speeds in random order, {row['low_ratio']:.0%} of reads slow: is a cache in between?"


def _named(row: Row) -> str:
    return " ".join(filter(None, (row["config_id"], row["phase"])))


def _cost(row: Row) -> str:
    """Cost of a slowdown in a configuration."""
    if row["reason"] is not None:
        return f"not tested ({row['reason']})"
    return "none found" if row["slowdown"] == "temporal" and not row["n"] else f"{row['drop_ratio']:.1%}{_interval(row)}"


def _rhythm(row: Row) -> str:
    """How often temporal slowdowns come, where they come often enough and regularly."""
    count = f"{row['instances']} temporal {'slowdown' if row['instances'] == 1 else 'slowdowns'} of {_time(row['mean_duration_seconds'])}"
    if row["instances"] <= LEAST_GAPS:
        return f"{count}, too few for a period"
    if min(row[name] for name in ("period_cv", "reads_cv", "bytes_written_cv") if row[name] is not None) > REGULAR_CV:
        return f"{count}, at no regular distance"
    every, long = _time(row["mean_period_seconds"]), _time(row["mean_duration_seconds"])
    return f"temporal slowdowns come every {every} for {long}; trigger: {row['trigger']}"


def _interval(row: Row) -> str:
    return "" if row["low_drop_ratio"] is None else f" (95%: {row['low_drop_ratio']:.1%} to {row['high_drop_ratio']:.1%})"


def _lost(row: Row) -> str:
    """The drop of files of a number of extents; nothing of those that others are compared with."""
    return "" if row["verdict"] is None else f"<br>{row['drop_ratio']:.1%} lost{_interval(row)}: {row['verdict']}"


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
    styled(drawing, 320, hovermode="closest", margin=(60, 16, 30, 46))
    for one in instances:
        drawing.add_vrect(x0=one["started_s"] / 3600, x1=one["ended_s"] / 3600, fillcolor=SLOW, opacity=0.15, line_width=0, layer="below")
    drawing.update_xaxes(title_text="hours")
    drawing.update_yaxes(title_text="MB/s", automargin=False)
    return drawing


def _by_extents(rows: Sequence[Row]) -> go.Figure:
    drawing = go.Figure()
    for number, config in enumerate(dict.fromkeys(row["config_id"] for row in rows)):
        mine = [row for row in rows if row["config_id"] == config]
        drawing.add_scatter(
            x=[row["extent_count"] for row in mine], y=[row["mean_throughput_bytes_per_s"] / 1e6 for row in mine], mode="lines+markers",
            line={"color": INKS[number % len(INKS)], "width": 2}, name=safe(config), customdata=[_lost(row) for row in mine],
            hovertemplate="%{x} extents: %{y:,.0f} MB/s%{customdata}" + f"<extra>{safe(config)}</extra>",
        )  # fmt: skip
    styled(drawing, 320, hovermode="closest", margin=(60, 16, 30, 46))
    drawing.update_xaxes(title_text="extents of a file")
    drawing.update_yaxes(title_text="MB/s", automargin=False, rangemode="tozero")
    return drawing


def _distributions(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, Any, str]]:
    """Heading, figure and numbers of each distribution that the experiment has."""
    found = []
    for measure, split, heading in DISTRIBUTIONS:
        figures: dict[str, Lines] = {}
        for row in fetch(connection, PERCENTILES, [name, measure, split]):
            # sizes are many: each configuration has its figure
            here = f"{heading}: {row['config_id']}" if split == "extent_bytes" else heading
            figures.setdefault(here, {}).setdefault((row["config_id"], row["part"]), []).append(row)
        found += [
            (here, drawn(_shares(lines, measure, split), f"{measure}-{split}-{number}", here), _counts(lines, measure, split))
            for number, (here, lines) in enumerate(figures.items())
        ]
    return found


def _part(part: str, split: str) -> str:
    return f"{size(int(part))} or more" if split == "extent_bytes" else "" if part == "all" else part


def _counts(lines: Lines, measure: str, split: str) -> str:
    """How many values each line is of, and how far apart the two of a configuration are."""
    said = []
    for config in dict.fromkeys(config for config, _ in lines):
        mine = [rows[0] for (of, _), rows in lines.items() if of == config]
        parts = ", ".join(f"{row['n']:,} {COUNTED[measure]} {_part(row['part'], split)}".strip() for row in mine)
        distance = mine[0]["ks_distance"]
        said.append(f"{config}: {parts}" + ("" if distance is None else f", at most {100 * distance:.0f} points apart"))
    return "; ".join(said) + "."


def _shares(lines: Lines, measure: str, split: str) -> go.Figure:
    """For each value the percent of all that are no greater; configurations by colour, parts by dashes."""
    configs, parts = (list(dict.fromkeys(key[place] for key in lines)) for place in (0, 1))
    unit, factor = UNITS[measure]
    drawing = go.Figure()
    for (config, part), rows in lines.items():
        label = safe(" ".join(word for word in (config if len(configs) > 1 else "", _part(part, split)) if word) or config)
        drawing.add_scatter(
            x=[row["value"] * factor for row in rows], y=[row["percentile"] for row in rows], mode="lines", name=label,
            line={
                "color": INKS[(configs if len(configs) > 1 else parts).index(config if len(configs) > 1 else part) % len(INKS)],
                "width": 2, "dash": DASHES[parts.index(part) % len(DASHES)], "shape": "hv",
            },
            hovertemplate="%{y}% up to %{x:,.4~g} " + unit + f"<extra>{label}</extra>",
        )  # fmt: skip
    styled(drawing, 320, hovermode="closest", margin=(60, 16, 30, 46))
    if measure == "latency":
        log_axis(drawing, [row["value"] for rows in lines.values() for row in rows], unit, axis="x")
    else:
        drawing.update_xaxes(title_text=unit)
    drawing.update_yaxes(title_text="percent", automargin=False, range=[0, 101], tickvals=[0, 25, 50, 75, 100])
    return drawing


def _worst(connection: duckdb.DuckDBPyConnection, name: str) -> tuple[str, Any] | None:
    """The extent that took most requests to recover, in words and drawn."""
    for row in fetch(connection, WORST, [name]):
        key = [row[column] for column in ("config_id", "phase", "run_number", "file_name", "read_index", "extent_index")]
        requests = fetch(connection, OVERLAPS, [name, *key, MOST_POINTS])
        if requests:
            said = (
                f"Extent {row['extent_index']} of {row['file_name']}, {row['config_id']}, run {row['run_number']}, "
                f"read {row['read_index']}: {row['recovery_requests']} of {row['requests']} requests until it has recovered."
            )
            return said, drawn(_by_request(requests, row["normal_latency_us"]), "worst", "Latency and imbalance by request")
    return None


def _by_request(rows: Sequence[Row], normal_us: float) -> go.Figure:
    """Latency above imbalance of the requests of an extent; a line shows up to where latency is normal."""
    drawing = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    for place, (column, title) in enumerate((("latency_us", "latency, us"), ("imbalance_us", "imbalance T, us")), 1):
        drawing.add_scatter(
            x=[row["position"] for row in rows], y=[row[column] for row in rows], mode="markers", marker={"size": 4, "color": INKS[0]},
            showlegend=False, hovertemplate="request %{x}: %{y:,.0f} us<extra></extra>", row=place, col=1,
        )  # fmt: skip
        drawing.update_yaxes(title_text=title, row=place, col=1)
    styled(drawing, 360, hovermode="closest", margin=(72, 16, 8, 46))
    drawing.add_hline(y=normal_us, line={"color": QUIET, "dash": "dot", "width": 1}, row=1, col=1)
    drawing.update_yaxes(automargin=False, rangemode="tozero")
    drawing.update_xaxes(title_text="request of the read", row=2, col=1)
    return drawing

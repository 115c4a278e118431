"""`drivetail lab report`: one page for an experiment. Each kind has its module, which asks, draws and words its part."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import plotly.graph_objects as go

from engine.read import QueryError, Row, fetch
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file
from lab.read import experiment_of, published_lab, size
from report.page.html import render
from report.page.look import COLOURS, SLOW, drawn, safe, styled
from report.words import counted_noun

KINDS = {"before_after": "before_after", "hdfs": "hdfs", "read_variability": "reads", "sync_writes": "sync_writes"}
"""Kind -> module of this folder with `part(connection, experiment, against)`, which returns a dict: `question`, `answer`, `template`
and what the template draws. Of any other kind the page has what all have.
"""

REFUSED = "select file, reason, message from lab.ingested_files where experiment_id = ? and status = 'rejected' order by all"
READ = "select count(*) as files from lab.ingested_files where experiment_id = ? and status = 'accepted'"
RESULTS = """
select * from lab.fct_bench_results where experiment_id = ?
order by config_id, phase, benchmark, test, size_bytes, parameter, run_number, repetition
"""
FAILURES = "select file, job, failure from lab.fct_bench_jobs where experiment_id = ? and failure is not null order by all"
TAILS = """
select *, coalesce(p99_us, max_us) as tail_us from lab.fct_log_tails where experiment_id = ? and not is_whole_run
order by config_id, metric, direction, phase desc, run_number, job, second
"""
STEADINESS = """
select criterion, is_steady, string_agg(distinct job, ', ' order by job) as jobs, count(distinct (config_id, phase, run_number)) as runs
from lab.fct_steady_states where experiment_id = ? group by all order by is_steady, criterion
"""
UNKNOWN_STEADINESS = """
select count(distinct (jobs.config_id, jobs.phase, jobs.run_number)) as runs
from lab.fct_bench_jobs as jobs
anti join lab.fct_steady_states as states using (experiment_id, config_id, phase, run_number)
where jobs.experiment_id = ? and jobs.failure is null
"""
MOST_LOGS = 6
"""Figures of tails by second; the page says where it leaves some out."""
MOST_RESULTS = 2_000
"""Rows of a table that a page shows."""
MISSING = """
select config_id, phase, benchmark, missing_runs, expected_runs, count(*) as cells
from lab.fct_missing_results where experiment_id = ? group by all order by all
"""
CONFIGS = """
select configs.config_id, configs.device_id, devices.kind, devices.model, filesystems.type, filesystems.mount_options, configs.writers
from lab.dim_configs as configs
left join lab.dim_devices as devices on configs.experiment_id = devices.experiment_id and configs.device_id = devices.device_id
left join lab.dim_filesystems as filesystems
    on configs.experiment_id = filesystems.experiment_id and configs.filesystem_id = filesystems.filesystem_id
where configs.experiment_id = ? order by all
"""
FACTORS = "select config_id, factor, value from lab.dim_config_factors where experiment_id = ? order by all"


def write_lab(warehouse: Warehouse, experiment_id: str | None = None, out: Path | None = None, against: str | None = None) -> Path:
    """Write the page of an experiment, or of the only one. Returns: the file, by default DIR/reports/lab-EXPERIMENT.html.

    against: another experiment of the same kind to show beside it. Raises: QueryError where there is no such experiment.
    """
    with published_lab(warehouse) as connection:
        if experiment_id is None:
            names = [row["experiment_id"] for row in fetch(connection, "select experiment_id from lab.dim_experiments order by all")]
            if len(names) != 1:
                raise QueryError(f"name an experiment: there are {', '.join(names)}" if names else "no experiment is published")
            (experiment_id,) = names
        experiment = experiment_of(connection, experiment_id)
        other = experiment_of(connection, against) if against is not None else None
        if other is not None and other["kind"] != experiment["kind"]:
            raise QueryError(f"{against} is of kind {other['kind']}, {experiment_id} of kind {experiment['kind']}; give two of one kind")
        (read,) = fetch(connection, READ, [experiment_id])
        if experiment["kind"] not in KINDS:
            results = fetch(connection, RESULTS, [experiment_id])
            failed = [
                f"{row['file']}: job {row['job']} has no result: {row['failure']}." for row in fetch(connection, FAILURES, [experiment_id])
            ]
            given = f"{counted_noun(read['files'], 'file')} gave {counted_noun(len(results), 'result')}."
            part: dict[str, Any] = {
                "question": "What was measured?", "answer": [*failed, given], "template": "other.html.j2",
                "results": results[:MOST_RESULTS], "size": size, "most": MOST_RESULTS,
            }  # fmt: skip
        else:
            part = import_module(f"lab.pages.{KINDS[experiment['kind']]}").part(connection, experiment, other)
        part["answer"] = [*part["answer"], *_steadiness(connection, experiment_id)]
        logs: dict[str, list[Row]] = {}
        for row in fetch(connection, TAILS, [experiment_id]):
            logs.setdefault(f"{row['config_id']}: {row['direction']}s, {row['metric']}", []).append(row)
        page = render(
            part.pop("template"),
            Path(__file__).parent,
            experiment=experiment,
            refused=fetch(connection, REFUSED, [experiment_id]),
            missing=fetch(connection, MISSING, [experiment_id]),
            configs=fetch(connection, CONFIGS, [experiment_id]),
            factors=fetch(connection, FACTORS, [experiment_id]),
            tails=[
                (name, drawn(_tails(rows), f"tails-{place}", name)) for place, (name, rows) in enumerate(list(logs.items())[:MOST_LOGS])
            ],
            left_tails=max(len(logs) - MOST_LOGS, 0),
            publication=fetch(connection, "select publication_id, published_at from marts.publication")[0],
            **part,
        )
    return replace_file(out or warehouse.root / "reports" / f"lab-{experiment_id}.html", page)


def _steadiness(connection: duckdb.DuckDBPyConnection, experiment_id: str) -> list[str]:
    """Whether runs of fio were steady when they ended, by each criterion; and of how many it is not known."""
    said = [
        f"{row['jobs']}: {'' if row['is_steady'] else 'not '}steady at the end of {counted_noun(row['runs'], 'run')} ({row['criterion']})."
        for row in fetch(connection, STEADINESS, [experiment_id])
    ]
    (unknown,) = fetch(connection, UNKNOWN_STEADINESS, [experiment_id])
    if unknown["runs"]:
        said.append(f"Whether {counted_noun(unknown['runs'], 'run')} had become steady is not known: no log of ten seconds or more.")
    return said


def _tails(rows: list[Row]) -> go.Figure:
    """A line for each run; those after a change in the colour of slow drives."""
    drawing = go.Figure()
    for phase, run, job in dict.fromkeys((row["phase"], row["run_number"], row["job"]) for row in rows):
        mine = [row for row in rows if (row["phase"], row["run_number"], row["job"]) == (phase, run, job)]
        drawing.add_scatter(
            x=[row["second"] for row in mine], y=[row["tail_us"] for row in mine], mode="lines", showlegend=False,
            line={"color": SLOW if phase == "after" else COLOURS["disk"], "width": 1.5},
            customdata=["longest" if row["p99_us"] is None else "p99" for row in mine],
            text=[f"{row['n']:,} I/Os, mean {row['mean_us']:,.0f} us" for row in mine],
            hovertemplate="second %{x}: %{customdata} %{y:,.0f} us, %{text}<extra>" + safe(f"{job} {phase} run {run}") + "</extra>",
        )  # fmt: skip
    styled(drawing, 260, hovermode="closest", margin=(66, 16, 30, 46))
    drawing.update_xaxes(title_text="seconds from the first I/O")
    drawing.update_yaxes(title_text="microseconds", rangemode="tozero", automargin=False)
    return drawing

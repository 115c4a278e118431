"""`drivetail toleraid`: what reading around slow drives would gain (lab/docs/toleraid.md).

The simulation is in lab/toleraid/; here its runs are set up and kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from drivetail.terminal import Columns, table
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.contract.values import utc_now
from lab.runs_store import folder_of, keep, tables
from lab.toleraid import (
    PAPER_JITTER,
    POLICIES,
    Arrivals,
    Distribution,
    Experiment,
    Jitter,
    Layout,
    Outcome,
    Periodic,
    Policies,
    Rare,
    ToleranceError,
    Vectors,
    read_block_trace,
    read_completions,
    read_quantiles,
    read_slowdowns,
    simulate,
)
from lab.toleraid.distributions import parameters
from report.words import percent

MOST_VECTORS = 1_000_000
"""Greatest number of RAID-hours kept of one distribution; of more, a digest of group and hour picks this many."""

FLEET = """
select list(drive_hours.slowdown order by drive_hours.slowdown desc) as s
from marts.fct_drive_hours as drive_hours
inner join marts.fct_raid_hours as raid_hours
    on drive_hours.raid_group_id = raid_hours.raid_group_id and drive_hours.hour_utc = raid_hours.hour_utc
where drive_hours.slowdown is not null
    and raid_hours.kind = coalesce($kind, raid_hours.kind)
    and raid_hours.hour_utc >= coalesce($since, raid_hours.hour_utc)
    and raid_hours.hour_utc < coalesce($until, raid_hours.hour_utc + interval 1 hour)
group by raid_hours.raid_group_id, raid_hours.hour_utc
order by md5(raid_hours.raid_group_id || cast(raid_hours.hour_utc as varchar)), raid_hours.raid_group_id, raid_hours.hour_utc
limit $most
"""


@dataclass(frozen=True)
class Question:
    """Simulation to run: the options of `drivetail toleraid run`. `data_drives`: None for the commonest of the fleet, or the paper's 6."""

    slowdowns: str = "fleet"
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    data_drives: int | None = None
    parity: int = 2
    layout: str = "fixed"
    policies: tuple[str, ...] = POLICIES
    st: float = 2.0
    sr: int = 3
    requests: int = 400_000
    rate: float = 52.0
    arrivals: str = "poisson"
    trace: Path | None = None
    jitter: str = "none"
    seed: int = 1
    save_requests: Path | None = None


@dataclass(frozen=True)
class Kept:
    """A distribution and what is kept of it; `data_drives`: N of the RAID groups it is of."""

    distribution: Distribution
    description: Row
    data_drives: int


def run(warehouse: Warehouse, question: Question) -> list[Row]:
    """Simulate the policies and keep what they did. The same question to the same slowdowns has the same answer, and is kept once.

    Returns: rows of lab.fct_tolerance_runs. Raises: ToleranceError for a file that cannot be used, QueryError without a publication.
    """
    with publication_of(warehouse, must_be_of_these_models=True) as connection:
        kept = _distribution(warehouse, connection, question)
        data_drives = question.data_drives or kept.data_drives
        width = data_drives + question.parity
        if isinstance(kept.distribution, Vectors) and kept.distribution.kind == "placed" and kept.description["width"] != width:
            raise ToleranceError(f"{question.slowdowns}: has {kept.description['width']} drives, not {data_drives} + {question.parity}")
        jitter = _jitter(question.jitter)
        trace = read_block_trace(question.trace, data_drives) if question.trace else None
        arrivals = Arrivals(question.requests, question.rate, question.arrivals)
        experiment = Experiment(
            kept.distribution, trace or arrivals, data_drives, question.parity, Layout(question.layout), question.policies,
            question.st, question.sr, jitter, question.seed,
        )  # fmt: skip
        given = {
            "distribution_id": kept.description["distribution_id"], "data_drives": data_drives, "parity": question.parity,
            "layout": question.layout, "st": question.st, "sr": question.sr, "seed": question.seed,
            "jitter": question.jitter if jitter in (None, PAPER_JITTER) else _digest(repr(jitter))[:12],
            "arrivals": "trace" if trace else question.arrivals,
        }  # fmt: skip
        of_requests = _digest(question.trace.read_bytes()) if question.trace else [question.requests, question.rate]
        run_id = f"{kept.description['name']}-s{question.seed}-{_digest(json.dumps([given, question.policies, of_requests]))[:12]}"
        if not folder_of(warehouse, run_id).exists() or question.save_requests:
            _simulate(warehouse, experiment, run_id, given, question.save_requests)
        return fetch(connection, "select * from lab.fct_tolerance_runs where run_id = ?", [run_id])


def _simulate(warehouse: Warehouse, experiment: Experiment, run_id: str, given: Row, save: Path | None) -> None:
    with _saved(save, experiment) as each:
        requests, outcomes = simulate(experiment, each)
    created_at, count = utc_now(), len(requests.times)
    runs = [
        {**given, "run_id": run_id, "policy": policy, "created_at": created_at, "requests": count, "partial_requests": requests.partial}
        | (_counts(outcome, count) if outcome.applies else {})
        for policy, outcome in outcomes.items()
    ]
    curves = [
        {"run_id": run_id, "policy": policy, "x": x, "requests_up_to": up_to, "requests_below": below}
        for policy, outcome in outcomes.items()
        if outcome.applies
        for x, up_to, below in outcome.curve()
    ]
    keep(warehouse, run_id, {"tolerance_runs": _table("tolerance_runs", runs), "tolerance_curves": _table("tolerance_curves", curves)})


def _counts(outcome: Outcome, requests: int) -> Row:
    return {
        "requests_from_2": requests - outcome.count_below(2), "requests_above_3": requests - outcome.count_up_to(3),
        "mean_slowdown": float(outcome.completions.mean()), "p90": outcome.percentile(900), "p95": outcome.percentile(950),
        "p99": outcome.percentile(990), "p999": outcome.percentile(999), "max": float(outcome.completions[-1]),
        "extra_reads": outcome.extra_reads, "reactive_triggers": outcome.reactive_triggers, "proactive_seconds": outcome.proactive_seconds,
    }  # fmt: skip


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=tables()[name])


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


@contextmanager
def _saved(path: Path | None, experiment: Experiment) -> Any:
    """Function that writes each block of requests to a Parquet file; None where nothing is to be saved."""
    if path is None:
        yield None
        return
    data, parity = [f"d{number + 1}" for number in range(experiment.data_drives)], ["p", "q"][: experiment.parity]
    columns = ["time_s", *(f"s_{name}" for name in (*data, *parity))]
    columns += [f"b_{name}" for name in (*data, *parity)] if experiment.jitter else []
    served = [name for name in experiment.policies if name != "proactive2" or experiment.parity == 2]
    schema = pa.schema([(name, pa.float64()) for name in columns])
    for name in served:
        schema = schema.append(pa.field(f"T_{name}", pa.float64())).append(pa.field(f"extra_{name}", pa.int8()))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:

        def write(times: Any, drawn: Any, base: Any, results: Any) -> None:
            values = [times, *drawn.data, *drawn.parity, *([] if base is None else base)]
            for name in served:
                values += [results[name].completions, results[name].extra_reads]
            writer.write_table(pa.Table.from_arrays([pa.array(value) for value in values], schema=schema))

        yield write


# --------------------------------------------------------------------------------------------------------------------
# Distributions


def _jitter(given: str) -> Jitter | None:
    return {"none": None, "paper": PAPER_JITTER}[given] if given in {"none", "paper"} else read_quantiles(Path(given))


def _distribution(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, question: Question) -> Kept:
    """The distribution that a question names, kept in the warehouse."""
    name = question.slowdowns
    if name in {"rare", "periodic"}:
        curve = "select x, y from study.study_paper_curves where figure = '4a' and curve = 'Si' order by seq"
        made = Rare.of_curve(connection.execute(curve).fetchall()) if name == "rare" else Periodic()
        return _keep_generated(warehouse, name, made)
    if name == "fleet":
        return _keep_fleet(warehouse, connection, question)
    stored = fetch(connection, "select * from lab.dim_slowdown_distributions where distribution_id = ? and vectors > 0", [name])
    if stored:
        vectors = connection.sql("select s, weight from lab.fct_slowdown_vectors where distribution_id = ? order by vector", params=[name])
        return Kept(_vectors(vectors.to_arrow_table(), stored[0]["kind"]), stored[0], json.loads(stored[0]["parameters"])["data_drives"])
    path = Path(name)
    if not path.is_file():
        raise ToleranceError(f"--slowdowns {name}: no such file or stored distribution; give fleet, rare, periodic or a CSV file")
    found = read_slowdowns(path, question.parity)
    data_drives = int(found.widths[0]) - question.parity if found.kind == "placed" else 6
    return _keep_vectors(warehouse, found, path.stem, str(path), {"data_drives": data_drives}, None)


def _keep_fleet(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, question: Question) -> Kept:
    """The fleet's RAID-hours, those of a kind and span."""
    asked = {"kind": question.kind, "since": question.since, "until": question.until}
    found = _vectors(connection.sql(FLEET, params={**asked, "most": MOST_VECTORS}).to_arrow_table(), "joint")
    if not len(found):
        raise QueryError(f"{warehouse.published}: no valid RAID-hour of that kind and span; `drivetail status` says which hours there are")
    ((publication_id,),) = connection.execute("select publication_id from marts.publication").fetchall()
    commonest = """
        select mode(data_drive_count) from marts.fct_raid_hours
        where kind = coalesce($kind, kind) and hour_utc >= coalesce($since, hour_utc)
            and hour_utc < coalesce($until, hour_utc + interval 1 hour)
    """
    ((data_drives,),) = connection.execute(commonest, asked).fetchall()
    given = {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asked.items()}
    return _keep_vectors(warehouse, found, "fleet", "marts.fct_drive_hours", {**given, "data_drives": data_drives}, publication_id)


def _vectors(rows: Any, kind: str) -> Vectors:
    """Vectors of a table with a list `s`; as likely as `weight` says where there is one and they differ."""
    lists = rows.column("s").combine_chunks()
    widths = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    weights = rows.column("weight").to_numpy() if "weight" in rows.column_names else np.ones(len(widths))
    return Vectors(kind, lists.flatten().to_numpy(), widths, None if (weights == 1).all() else weights)


def _keep_vectors(warehouse: Warehouse, found: Vectors, name: str, source: str, given: Row, publication_id: str | None) -> Kept:
    weights = np.ones(len(found)) if found.weights is None else found.weights
    digest = _digest(found.kind.encode() + found.values.tobytes() + found.widths.tobytes() + weights.tobytes())
    description = _description(f"{name}-{digest[:12]}", name, found.kind, source, digest, int(found.widths.max()), len(found), given)
    offsets = pa.array(np.concatenate([found.offsets, [len(found.values)]]), pa.int32())
    vectors = pa.table(
        [
            pa.array([description["distribution_id"]] * len(found)),
            pa.array(np.arange(len(found))),
            pa.ListArray.from_arrays(offsets, pa.array(found.values)),
            pa.array(weights),
        ],
        schema=tables()["slowdown_vectors"],
    )
    return _keep_described(warehouse, found, {**description, "publication_id": publication_id}, given["data_drives"], vectors)


def _keep_generated(warehouse: Warehouse, name: str, made: Rare | Periodic) -> Kept:
    given = dict(parameters(made))
    digest = _digest(json.dumps([name, given]))
    width = made.width if isinstance(made, Rare) else 1
    description = _description(f"{name}-{digest[:12]}", name, "generated", "paper", digest, width, 0, given)
    return _keep_described(warehouse, made, description, 6, tables()["slowdown_vectors"].empty_table())


def _description(distribution_id: str, name: str, kind: str, source: str, digest: str, width: int, vectors: int, given: Row) -> Row:
    return {
        "distribution_id": distribution_id, "name": name, "kind": kind, "source": source, "sha256": digest, "built_at": utc_now(),
        "publication_id": None, "width": width, "vectors": vectors, "parameters": json.dumps(given),
    }  # fmt: skip


def _keep_described(warehouse: Warehouse, made: Distribution, description: Row, data_drives: int, vectors: pa.Table) -> Kept:
    tables = {"slowdown_distributions": _table("slowdown_distributions", [description]), "slowdown_vectors": vectors}
    keep(warehouse, description["distribution_id"], tables)
    return Kept(made, description, data_drives)


# --------------------------------------------------------------------------------------------------------------------
# Given completions


def apply(path: Path, out: Path, *, st: float, sr: int, parity: int) -> int:
    """Write what each policy makes of given completion times. Returns: the number of requests. Raises: ToleranceError."""
    data, parities = read_completions(path, parity)
    served = Policies(len(data), parity, st, sr).serve(data, parities)
    columns: list[list[str]] = []
    for name in POLICIES:
        result = served[name]
        if result is None:
            columns += [[""] * len(data[0])] * 2
        else:
            columns += [[*map(repr, result.completions.tolist())], [*map(str, result.extra_reads.tolist())]]
    header = ",".join(f"T_{name},extra_{name}" for name in POLICIES)
    out.write_text("\n".join([header, *map(",".join, zip(*columns, strict=True))]) + "\n", encoding="utf-8")
    return len(data[0])


# --------------------------------------------------------------------------------------------------------------------
# Words


COLUMNS: Columns = {
    "policy": "policy",
    "requests": "requests",
    ">= 2x": ("share_2_ratio", percent),
    "> 3x": ("share_3_ratio", percent),
    "mean": "mean_slowdown",
    "p99": "p99",
    "p99.9": "p999",
    "max": "max",
    "extra reads": ("extra_read_ratio", percent),
    "seconds ahead": ("proactive_seconds", round),
}


def runs_table(rows: Sequence[Row]) -> str:
    """Results of each policy in one run, as a table for the terminal."""
    first = rows[0]
    partial = f"; {first['partial_requests']:,} reads that do not touch every data drive are left out" if first["partial_requests"] else ""
    head = f"Run {first['run_id']} of {first['distribution_id']}: {first['data_drives']} data drives, {first['parity']} parity{partial}"
    order = {name: number for number, name in enumerate(POLICIES)}
    return f"{head}\n{table(sorted(rows, key=lambda row: order[row['policy']]), COLUMNS)}"

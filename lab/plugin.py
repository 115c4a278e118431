"""The lab as a project of drivetail: what the entry point `lab` in pyproject.toml leads to (engine/projects.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from engine.compiled import models_of
from engine.execute import seed_rows
from engine.nodes import SEED, VIEW
from engine.projects import Attached, Shown
from engine.sources import parquet
from engine.warehouse import Warehouse
from lab import version
from lab.generations import latest_generation, remove_generations, rows_of_generation
from lab.runs_store import make_empty, toleraid_root
from lab.version import LAB, lab_version

if TYPE_CHECKING:
    import click

NAME = SCHEMA = "lab"
FOLDER: Path = LAB
READS_FLEET = False
source_columns = version.source_columns


def commands() -> Iterable[click.Command]:
    """`drivetail lab` and `drivetail toleraid`."""
    from lab.cli.lab import lab
    from lab.cli.toleraid import toleraid

    return lab, toleraid


def benches() -> Mapping[str, Callable[..., Any]]:
    """Benchmarks of the lab's own costs."""
    from lab.bench import bench_lab, bench_tolerance

    return {"tolerance": bench_tolerance, "lab": bench_lab}


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a connection the functions that the models call."""
    from lab.statistics import register

    register(connection)


def attached(warehouse: Warehouse) -> Attached:
    """The experiments of the latest lab build, if these models made it, and all runs of `drivetail toleraid`."""
    # a run counts at once, without a build: what publications read is there from the first on
    make_empty(warehouse)
    models = models_of(project=FOLDER)
    generation = latest_generation(warehouse, lab_version())
    of_toleraid = [node for node in models if node.made == VIEW]
    shown = []
    for relation in models.above(node.relation for node in of_toleraid):
        node = models.by_relation.get(relation)
        if node is None:
            files = toleraid_root(warehouse) / "*" / f"{relation.split('.')[1]}.parquet"
            shown.append(Shown(relation, f"select * from {parquet([files])}"))
        else:
            is_seed = node.made == SEED
            shown.append(Shown(relation, seed_rows(node) if is_seed else node.sql, None if is_seed else node, is_table=is_seed))
    for node in models:
        if node.schema == "lab" and node.made != VIEW:
            # without a row nobody needs the descriptions, and each build would write a thousand
            shown.append(Shown(node.relation, rows_of_generation(node, generation), node if generation is not None else None))
    return Attached(shown, [toleraid_root(warehouse)], generation.name if generation is not None else None)


def clean_up(warehouse: Warehouse, states: Collection[str | None]) -> None:
    """Remove the generations that no kept publication shows; the latest stays."""
    remove_generations(warehouse, states)

"""The relations of the lab as publications show them: `STORE/lab/NNNNNN/MODEL/experiment_id=ID.parquet`, a generation for each lab build.

A generation appears whole and never changes. What it takes over from the one before are links to the same files. Publications name a
generation, so a reader keeps the one that it opened, and a build of the fleet publishes the latest without running a model of the lab.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.thresholds import variables
from engine.warehouse import PROJECT, Warehouse, quoted
from ingest.raw.durable import put_folder

RECORD = "generation.json"
EMPTY = "empty.parquet"
"""A file without rows in each model's folder, for its columns."""


@dataclass(frozen=True)
class Generation:
    """One generation: the version of the models that made it, and the experiments in it, each with the last delivery that it holds."""

    path: Path
    version: str
    experiments: dict[str, int]

    @property
    def name(self) -> str:
        return self.path.name


def is_of_lab(node: Any) -> bool:
    """Whether a node of dbt's manifest is a model that `drivetail lab build` makes."""
    return node.resource_type == "model" and "lab" in node.config.tags


def lab_version(manifest: Any) -> str:
    """Changes when a definition of the lab does: then every experiment is computed again."""
    stated = [
        [unique_id, node.checksum.checksum, [(column.name, column.data_type) for column in node.columns.values()]]
        for unique_id, node in sorted(manifest.nodes.items())
        if is_of_lab(node)
    ]
    made_of = {unique_id for node in manifest.nodes.values() if is_of_lab(node) for unique_id in node.depends_on.nodes}
    seeds = [
        node.checksum.checksum
        for unique_id, node in sorted(manifest.nodes.items())
        if node.resource_type == "seed" and unique_id in made_of
    ]
    functions = (PROJECT / "lab" / "statistics.py").read_text(encoding="utf-8")
    macros = [macro.macro_sql for _, macro in sorted(manifest.macros.items()) if macro.original_file_path.startswith("macros/lab/")]
    thresholds = {name: value for name, value in variables().items() if name.startswith("lab_")}
    return hashlib.sha256(json.dumps([stated, seeds, functions, macros, thresholds], sort_keys=True).encode()).hexdigest()


def generations_root(warehouse: Warehouse) -> Path:
    """Where the generations are."""
    return warehouse.store / "lab"


def latest_generation(warehouse: Warehouse) -> Generation | None:
    """The last one that was finished, whatever models made it."""
    paths = sorted(path for path in generations_root(warehouse).glob("*") if path.name.isdigit())
    if not paths:
        return None
    record = json.loads((paths[-1] / RECORD).read_text(encoding="utf-8"))
    return Generation(paths[-1], record["version"], record["experiments"])


def file_of(experiment_id: str) -> str:
    """The name of an experiment's file in the folder of a model."""
    return f"experiment_id={experiment_id}.parquet"


def keep_generation(
    warehouse: Warehouse, draft: Path, last: Generation | None, taken_over: Collection[str], made: Generation
) -> Generation:
    """Put a draft, a folder of folders of files, into its place, with the files of the experiments that it takes over from the last one."""
    for experiment_id in taken_over:
        assert last is not None
        for file in last.path.glob(f"*/{file_of(experiment_id)}"):
            os.link(file, draft / file.parent.name / file.name)
    (draft / RECORD).write_text(json.dumps({"version": made.version, "experiments": made.experiments}), encoding="utf-8")
    generations_root(warehouse).mkdir(parents=True, exist_ok=True)
    put_folder(draft, made.path)
    return made


def remove_generations(warehouse: Warehouse, kept: Collection[str | None]) -> None:
    """Remove the generations that no kept publication shows; the latest stays."""
    latest = latest_generation(warehouse)
    for path in generations_root(warehouse).glob("*"):
        if path.name.isdigit() and path.name not in kept and (latest is None or path.name != latest.name):
            shutil.rmtree(path)


def view_of(node: Any, generation: Generation | None) -> str:
    """SQL that makes a model of the lab a view over a generation's files; without one, a view without rows."""
    if generation is None:
        columns = ", ".join(f'cast(null as {column.data_type}) as "{column.name}"' for column in node.columns.values())
        rows = f"select {columns} where false"
    else:
        rows = f"select * from read_parquet({quoted(generation.path / node.alias / '*.parquet')}, hive_partitioning = false)"
    return f'CREATE VIEW {node.schema}."{node.alias}" AS {rows}'


def is_view_of(text: str, generation: Generation | None) -> bool:
    """Whether the SQL of a view is that of view_of(), as DuckDB writes it."""
    return "read_parquet" not in text if generation is None else f"{quoted(generation.path)[:-1]}/" in text

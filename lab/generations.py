"""The relations of the lab as publications show them: `STORE/lab/NNNNNN/MODEL/experiment_id=ID.parquet`, a generation for each lab build.

A generation appears whole and never changes. What it takes over from the one before are links to the same files. Publications name a
generation, so a reader keeps the one that it opened, and a build of the fleet publishes the latest without running a model of the lab.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from engine.nodes import Node
from engine.sources import no_rows, parquet
from engine.warehouse import Warehouse
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


def generations_root(warehouse: Warehouse) -> Path:
    """Where the generations are."""
    return warehouse.store / "lab"


def latest_generation(warehouse: Warehouse, version: str | None = None) -> Generation | None:
    """The last one that was finished, whatever models made it, or only if those of a version did."""
    paths = sorted(path for path in generations_root(warehouse).glob("*") if path.name.isdigit())
    if not paths:
        return None
    record = json.loads((paths[-1] / RECORD).read_text(encoding="utf-8"))
    return Generation(paths[-1], record["version"], record["experiments"]) if version in (None, record["version"]) else None


def file_of(experiment_id: str) -> str:
    """The name of an experiment's file in the folder of a model."""
    return f"experiment_id={experiment_id}.parquet"


def keep_generation(warehouse: Warehouse, draft: Path, last: Generation | None, taken_over: Collection[str], made: Generation) -> None:
    """Put a draft, a folder of folders of files, into its place, with the files of the experiments that it takes over from the last one."""
    for experiment_id in taken_over:
        assert last is not None
        for file in last.path.glob(f"*/{file_of(experiment_id)}"):
            os.link(file, draft / file.parent.name / file.name)
    (draft / RECORD).write_text(json.dumps({"version": made.version, "experiments": made.experiments}), encoding="utf-8")
    generations_root(warehouse).mkdir(parents=True, exist_ok=True)
    put_folder(draft, made.path)


def remove_generations(warehouse: Warehouse, kept: Collection[str | None]) -> None:
    """Remove the generations that no kept publication shows; the latest stays."""
    latest = latest_generation(warehouse)
    for path in generations_root(warehouse).glob("*"):
        if path.name.isdigit() and path.name not in kept and (latest is None or path.name != latest.name):
            shutil.rmtree(path)


def rows_of_generation(node: Node, generation: Generation | None) -> str:
    """SQL for the rows of a model of the lab in a generation; none without one."""
    return no_rows(node.columns) if generation is None else f"select * from {parquet([generation.path / node.name / '*.parquet'])}"

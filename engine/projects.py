"""Projects beside the fleet's, such as the lab: what the entry points of `drivetail.projects` name. One that is not there is left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

import duckdb

from engine.compiled import models_of
from engine.nodes import Models, Node
from engine.warehouse import Warehouse

GROUP = "drivetail.projects"


@dataclass(frozen=True)
class Shown:
    """A relation as a publication has it: a view of `rows`, SQL over files or earlier relations, or a table of them.

    node: what describes it, if anything does.
    """

    relation: str
    rows: str
    node: Node | None = None
    is_table: bool = False


@dataclass(frozen=True)
class Attached:
    """Relations that a project adds to a publication, in order. folders: where the files are that it reads.

    state: names which of the project's files are shown, so that they stay while a publication shows them; None for none.
    """

    relations: list[Shown] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    state: str | None = None


class Project(Protocol):
    """Attributes of a module that an entry point names. NAME: the entry point's. FOLDER: the dbt project. SCHEMA: of what it publishes.

    READS_FLEET: its models read the fleet's relations, and a build makes them after those; else it makes them by itself (attached()).
    """

    NAME: str
    FOLDER: Path
    SCHEMA: str
    READS_FLEET: bool

    def commands(self) -> Iterable[Any]:
        """The subcommands of `drivetail` that it brings (click)."""

    def benches(self) -> Mapping[str, Any]:
        """Its parts of `make bench`, by name (workbench/bench.py)."""

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Give a connection the functions that its models call."""

    def source_columns(self) -> Mapping[str, Mapping[str, str]]:
        """Columns and types of the sources of its models, by `schema.name`, where their .yml does not say them."""

    def attached(self, warehouse: Warehouse) -> Attached:
        """Relations that a publication being made shows of it."""

    def clean_up(self, warehouse: Warehouse, states: Collection[str | None]) -> None:
        """Remove files that are of none of these states, which publications show, nor of the last one."""


@cache
def projects() -> list[Project]:
    """The projects that are installed, by name."""
    found: dict[str, Project] = {}
    for entry in entry_points(group=GROUP):
        try:
            found[entry.name] = entry.load()
        except ModuleNotFoundError as error:
            if error.name != entry.module.split(".")[0]:  # it is there, and lacks something
                raise
    return [project for _, project in sorted(found.items())]


def built_models(own: dict[str, Any], target: str = "duckdb") -> Models:
    """The models that a build runs: the fleet's, and after them those of the projects that read its relations. own: the warehouse's
    thresholds.
    """
    models = models_of(target).for_thresholds(own)
    for project in projects():
        if project.READS_FLEET:
            models = models.with_project(models_of(target, project.FOLDER).for_thresholds(own))
    return models


def published_schemas() -> tuple[str, ...]:
    """Schemas that people query: the marts, the inputs of pages and commands, and those of projects whose models a build runs."""
    return ("marts", "report", "status", *(project.SCHEMA for project in projects() if project.READS_FLEET))

"""The study as a project of drivetail: what the entry point `study` in pyproject.toml leads to (engine/projects.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from engine.projects import Attached
from engine.warehouse import Warehouse

if TYPE_CHECKING:
    import click

NAME = SCHEMA = "study"
FOLDER = Path(__file__).parent
READS_FLEET = True


def commands() -> Iterable[click.Command]:
    """`drivetail study`."""
    from study.cli import study

    return (study,)


def benches() -> Mapping[str, Any]:
    """It has none."""
    return {}


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Its models call no functions of their own."""


def source_columns() -> Mapping[str, Mapping[str, str]]:
    """Its sources are the fleet's relations, whose models state their columns."""
    return {}


def attached(warehouse: Warehouse) -> Attached:
    """A build makes its relations, and publishes them with the fleet's."""
    return Attached()


def clean_up(warehouse: Warehouse, states: Collection[str | None]) -> None:
    """It keeps no files of its own."""

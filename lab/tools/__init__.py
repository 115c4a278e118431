"""The table of all tools whose output is read: name in runs.csv -> module. How to add one: lab/__init__.py."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import polars as pl

from lab.contract import Columns
from lab.tools.text import Reading

TOOLS = {
    "aggregate": "aggregate",
    "bench": "bench",
    "blkparse": "blkparse",
    "dd": "dd",
    "diskstats": "diskstats",
    "file-reads": "file_reads",
    "filefrag": "filefrag",
    "fio": "fio",
    "fio-log": "fio_log",
    "ftrace": "blkparse",
    "ior": "ior",
    "iostat": "sysstat",
    "iozone": "iozone",
    "job-history": "job_history",
    "lsblk": "lsblk",
    "mdtest": "mdtest",
    "metarates": "metarates",
    "perf-script": "tracefs",
    "smartctl": "smartctl",
    "spark-events": "spark_events",
    "sysstat": "sysstat",
    "tasks": "tasks",
    "tracefs": "tracefs",
}
"""Tool -> module of this folder."""


class Tool(Protocol):
    """Members of each module of this folder."""

    EXPECTED: str
    TABLES: dict[str, Columns]

    @staticmethod
    def read(path: Path, reading: Reading) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield rows by table. Raises: Refused."""


def tool_of(name: str) -> Tool:
    """The module that reads the output of a tool."""
    module: Tool = importlib.import_module(f"lab.tools.{TOOLS[name]}")  # type: ignore[assignment]
    return module


def tables() -> dict[str, Columns]:
    """Every table that tools fill, with its columns."""
    return {table: columns for name in TOOLS for table, columns in tool_of(name).TABLES.items()}

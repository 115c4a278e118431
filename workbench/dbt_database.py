"""A database for dbt's own commands: a warehouse's build database, with the relations that live in memory while a build runs.

`python -m workbench.dbt_database WAREHOUSE FILE`
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from engine.build import Build
from engine.nodes import EACH_BUILD
from engine.warehouse import Warehouse, quoted


def write_dbt_database(warehouse: Warehouse, file: Path) -> None:
    """Write the database, in place of an earlier one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with warehouse.only_builder(), Build(warehouse) as build:
        build.executor.make_each_build()
        build.connection.execute("checkpoint")
        shutil.copyfile(warehouse.build_database, file)
        build.connection.execute(f"attach {quoted(file)} as dbt")
        for node in build.models.made(EACH_BUILD):
            build.connection.execute(f"drop view dbt.{node.relation}; create table dbt.{node.relation} as from build.{node.relation}")


if __name__ == "__main__":
    write_dbt_database(Warehouse(Path(sys.argv[1])), Path(sys.argv[2]))

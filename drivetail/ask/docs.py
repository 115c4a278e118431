"""`drivetail docs`: the models' descriptions, columns, tests and lineage as one HTML file, by dbt's own generator."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from engine.build import build
from engine.compile import invoke
from engine.errors import ModelError
from engine.warehouse import PROJECT, Warehouse


def write_docs(out: Path) -> Path:
    """Write the file. It is made from an empty warehouse, so no name or number of a fleet is in it.

    Raises: ModelError when dbt cannot make it.
    """
    with tempfile.TemporaryDirectory(prefix="drivetail-docs-") as name:
        warehouse, folder = Warehouse(Path(name) / "warehouse"), Path(name) / "docs"
        build(warehouse)
        os.environ["DRIVETAIL_DBT_DATABASE"] = str(warehouse.build_database)
        places = ["--project-dir", PROJECT, "--profiles-dir", PROJECT, "--target-path", folder, "--log-path", folder / "logs"]
        done = invoke(["docs", "generate", "--static", *map(str, places)])
        if not done.success:
            raise ModelError(f"dbt docs generate: {done.exception or 'failed'}")
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "static_index.html", out)
    return out

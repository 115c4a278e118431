"""`drivetail docs`: the models' descriptions, columns, tests and lineage as one HTML file, by dbt's own generator."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from engine.build import build
from engine.compile import invoke
from engine.errors import ModelError
from engine.projects import projects
from engine.warehouse import PROJECT, Warehouse


def write_docs(out: Path, name: str | None = None) -> Path:
    """Write the file. It is made from an empty warehouse, so no name or number of a fleet is in it. name: of a project beside the fleet's.

    Raises: ModelError when dbt cannot make it, or there is no such project.
    """
    folders = {None: PROJECT} | {project.NAME: project.FOLDER for project in projects() if project.READS_FLEET}
    if name not in folders:
        raise ModelError(f"--project {name}: no such project; there is {', '.join(filter(None, folders))}")
    out.parent.mkdir(parents=True, exist_ok=True)  # before minutes of work
    with tempfile.TemporaryDirectory(prefix="drivetail-docs-") as folder:
        warehouse = Warehouse(Path(folder) / "warehouse")
        build(warehouse)
        return docs_of(folders[name], warehouse.build_database, out)


def docs_of(project: Path, database: Path, out: Path) -> Path:
    """Write the documentation of a dbt project over a database. Returns: the file. Raises: ModelError when dbt cannot make it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="drivetail-docs-") as folder:
        os.environ["DRIVETAIL_DBT_DATABASE"] = str(database)
        places = ["--project-dir", project, "--profiles-dir", project, "--target-path", folder, "--log-path", Path(folder) / "logs"]
        done = invoke(["docs", "generate", "--static", *map(str, places)])
        if not done.success:
            raise ModelError(f"dbt docs generate: {done.exception or 'failed'}")
        shutil.copyfile(Path(folder) / "static_index.html", out)
    return out

"""The compiled models: what dbt makes of a project, one file per target, which all else runs (docs/decisions/0015-compiled-models.md).

dbt compiles when the models change (engine/compile.py). The wheel ships the file; a checkout makes it again when a file of the project has
changed. What runs in production reads it and never imports dbt.
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from pathlib import Path

from engine.nodes import Models, read_models
from engine.thresholds import project_settings
from engine.warehouse import PROJECT

_DESCRIPTION = re.compile(
    rb"""(?m)^( *)description: [>|].*\n(?:\1 +.*\n|\n)*|^ *description: [^>|"'\n].*\n|description: (?:"(?:[^"\\]|\\.)*"|'[^']*'|[^,}\n]*)"""
)
"""A description in a .yml file: a block, a line, or one among others in a line."""

SUFFIXES = {".sql", ".py", ".csv", ".yml", ".md"}


def project_files(project: Path = PROJECT) -> list[Path]:
    """The files that the compiled models of a project are made of, in order; custom models and the metrics of
    other programs are not among them.
    """
    others = {PROJECT / "models" / "custom", PROJECT / "models" / "metrics"}
    paths = project_settings(project)
    found = {project / "dbt_project.yml"}
    for kind in ("model-paths", "macro-paths", "seed-paths", "test-paths"):
        for file in (file for name in paths.get(kind, ()) for file in (project / name).resolve().rglob("*")):
            if file.suffix in SUFFIXES and others.isdisjoint(file.parents) and (kind != "test-paths" or file.suffix == ".sql"):
                found.add(file)
    return sorted(found)


def digests(project: Path = PROJECT) -> tuple[str, str]:
    """Two digests of a project: of its files as they are, and of their definitions, which descriptions and unit tests are no part of."""
    whole, stated = hashlib.sha256(), hashlib.sha256()
    whole.update((PROJECT / "engine" / "compile.py").read_bytes())
    for file in (PROJECT / "ingest" / "contract" / "fleet.py", *project_files(project)):  # the first states the columns of raw
        name, content = str(file.relative_to(PROJECT)).encode() + b"\0", file.read_bytes()
        whole.update(name + content)
        if file.suffix == ".yml":
            content = _DESCRIPTION.sub(b"", content.split(b"\nunit_tests:")[0])
        if file.suffix != ".md" and not name.startswith(b"tests"):
            stated.update(name + content)
    return whole.hexdigest(), stated.hexdigest()


def compiled_file(target: str, project: Path = PROJECT) -> Path:
    """Where the compiled models of a project are, for a target."""
    return PROJECT / "target" / "compiled" / project.relative_to(PROJECT) / f"{target}.json"


@cache
def models_of(target: str = "duckdb", project: Path = PROJECT) -> Models:
    """The compiled models of a project for a target; compiled now where a file of the project has changed since.

    Raises: ModelError where they do not compile.
    """
    digest, version = digests(project)
    try:
        models = read_models(compiled_file(target, project))
        if models.digest == digest:
            return models
    except (OSError, ValueError, TypeError):
        pass
    from engine.compile import compile_project  # imports dbt

    return compile_project(target, project, compiled_file(target, project), digest, version)


def models_version() -> str:
    """Changes when a definition does: SQL, seeds, thresholds, columns and settings. Descriptions and unit tests do not count."""
    return digests()[1]


if __name__ == "__main__":  # FOLDER ...: compile the models of these projects where they have changed
    for name in sys.argv[1:] or ["."]:
        models_of("duckdb", (PROJECT / name).resolve())

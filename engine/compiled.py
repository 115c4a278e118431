"""The compiled models: what dbt makes of the project, one file per target, which all else runs (docs/decisions/0015-compiled-models.md).

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
from engine.warehouse import PROJECT

_DESCRIPTION = re.compile(
    rb"""(?m)^( *)description: [>|].*\n(?:\1 +.*\n|\n)*|^ *description: [^>|"'\n].*\n|description: (?:"(?:[^"\\]|\\.)*"|'[^']*'|[^,}\n]*)"""
)
"""A description in a .yml file: a block, a line, or one among others in a line."""

SUFFIXES = {".sql", ".py", ".csv", ".yml", ".md"}


def project_files() -> list[Path]:
    """The files that the compiled models are made of, in order; custom models are not among them."""
    custom = PROJECT / "models" / "custom"
    found = [PROJECT / "dbt_project.yml", PROJECT / "lab" / "statistics.py"]
    for name in ("models", "macros", "seeds", "tests"):
        for file in (PROJECT / name).rglob("*"):
            if file.suffix in SUFFIXES and custom not in file.parents and (name != "tests" or file.suffix == ".sql"):
                found.append(file)
    return sorted(found)


def digests() -> tuple[str, str]:
    """Two digests of the project: of its files as they are, and of their definitions, which descriptions and unit tests are no part of."""
    whole, stated = hashlib.sha256(), hashlib.sha256()
    whole.update((PROJECT / "engine" / "compile.py").read_bytes())
    for file in project_files():
        name, content = str(file.relative_to(PROJECT)).encode() + b"\0", file.read_bytes()
        whole.update(name + content)
        if file.suffix == ".yml":
            content = _DESCRIPTION.sub(b"", content.split(b"\nunit_tests:")[0])
        if file.suffix != ".md" and not name.startswith(b"tests"):
            stated.update(name + content)
    return whole.hexdigest(), stated.hexdigest()


def compiled_file(target: str) -> Path:
    """Where the compiled models of a target are."""
    return PROJECT / "target" / "compiled" / f"{target}.json"


@cache
def models_of(target: str = "duckdb") -> Models:
    """The compiled models of a target; compiled now where a file of the project has changed since.

    Raises: ModelError where they do not compile.
    """
    digest, version = digests()
    try:
        models = read_models(compiled_file(target))
        if models.digest == digest:
            return models
    except (OSError, ValueError, TypeError):
        pass
    from engine.compile import compile_project  # imports dbt

    return compile_project(target, compiled_file(target), digest, version)


def models_version() -> str:
    """Changes when a definition does: SQL, seeds, thresholds, columns and settings. Descriptions and unit tests do not count."""
    return digests()[1]


if __name__ == "__main__":  # TARGET ...: compile the models where they have changed
    for name in sys.argv[1:] or ["duckdb"]:
        models_of(name)

"""An analyst's own models: built after the project's, published with them. An error in one of them never stops the project's marts.

They are read from the folder `models/custom`, or the one that DRIVETAIL_CUSTOM_MODELS names. See models/custom/README.md.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.dbt import CUSTOM, ModelError, Project, custom_folder
from engine.warehouse import Warehouse

TODO = "correct or remove it, then run `drivetail build`"


@dataclass
class CustomModels:
    """What became of the custom models: the manifest with them, unique ids of those that were built, and one sentence per failure."""

    digest: str
    manifest: Any = None
    built: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)


def _files() -> list[Path]:
    """The files of the custom models, in order."""
    return sorted(path for path in custom_folder().rglob("*") if path.suffix in {".sql", ".py", ".yml", ".yaml"} and path.is_file())


def custom_digest() -> str:
    """Changes when a custom model does; empty without any."""
    digest = hashlib.sha256()
    files = _files()
    for path in files:
        digest.update(str(path.relative_to(custom_folder())).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest() if files else ""


def build_custom(warehouse: Warehouse, project: Project) -> CustomModels:
    """Build and test the custom models, and log each failure. Raises nothing for an error in a custom model."""
    made = CustomModels(custom_digest())
    if made.digest:
        warehouse.note("custom")
        try:
            _build(project, made)
        except ModelError as error:
            made.failures.append(f"{_with_paths(str(error))}; no custom model is published; {TODO}")
    for failure in made.failures:
        warehouse.note("custom", failure=failure)
    return made


def _build(project: Project, made: CustomModels) -> None:
    made.manifest = project.parsed_with_custom()
    ours = project.manifest.nodes
    models = {unique_id for unique_id, node in made.manifest.nodes.items() if unique_id not in ours and node.resource_type == "model"}
    if not models:
        return
    names = sorted(made.manifest.nodes[unique_id].name for unique_id in models)
    for result in project.run_custom(made.manifest, names):
        node, status = result.node, str(result.status)
        if status == "success" and node.unique_id in models:
            made.built.add(node.unique_id)
        if status in {"success", "pass", "warn", "no-op"}:
            continue
        path = custom_folder() / Path(node.original_file_path).relative_to(CUSTOM)
        message = " ".join(str(result.message or status).split())
        if node.resource_type == "model":
            why = "skipped, because what it reads failed" if status == "skipped" else _with_paths(message)
            made.failures.append(f"{path}: custom model {node.name} is not published: {why}; {TODO}")
        else:
            what = "was skipped" if status == "skipped" else "failed"
            made.failures.append(f"{path}: test {node.name} {what}: {_with_paths(message)}; {TODO}")


def _with_paths(message: str) -> str:
    """The message on one line, with the custom models' files where they really are."""
    return re.sub(rf"(?<![\w/]){CUSTOM}/", f"{custom_folder()}{os.sep}", " ".join(message.split()))

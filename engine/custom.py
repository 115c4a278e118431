"""An analyst's own models: built after the project's, published with them. An error in one of them never stops the project's marts.

They are read from the folder `models/custom`, or the one that DRIVETAIL_CUSTOM_MODELS names. See models/custom/README.md. dbt compiles them
when they, or the models, have changed; what it compiled is kept in the warehouse.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from engine.errors import ModelError
from engine.execute import Executor
from engine.nodes import CUSTOM, Node, Test
from engine.warehouse import PROJECT, Warehouse
from ingest.raw.durable import replace_file

TODO = "correct or remove it, then run `drivetail build`"

MOST_SECONDS = 30.0
"""All custom models of a build together may take this long: alerts wait for them."""


def custom_folder() -> Path:
    """The folder of the analysts' own models; none of ours depends on them."""
    return Path(os.environ.get("DRIVETAIL_CUSTOM_MODELS") or PROJECT / "models" / "custom").resolve()


@dataclass
class CustomModels:
    """Outcome of the custom models: those that were built, in order, and one sentence per failure."""

    digest: str
    built: list[Node] = field(default_factory=list)
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


def build_custom(warehouse: Warehouse, executor: Executor, own: dict[str, Any]) -> CustomModels:
    """Build and test the custom models, and log each failure; an error in one of them raises nothing. own: the warehouse's thresholds."""
    made = CustomModels(custom_digest())
    if made.digest:
        warehouse.note("custom")
        try:
            nodes, tests = _compiled(warehouse, executor, made.digest, own)
            _build(executor, nodes, tests, made)
        except ModelError as error:
            made.failures.append(f"{_with_paths(str(error))}; no custom model is published; {TODO}")
    for failure in made.failures:
        warehouse.note("custom", failure=failure)
    return made


def _compiled(warehouse: Warehouse, executor: Executor, digest: str, own: dict[str, Any]) -> tuple[list[Node], list[Test]]:
    """The custom models and their tests, compiled again where they or the models have changed. Raises: ModelError."""
    key = hashlib.sha256(json.dumps([digest, executor.models.digest, own], sort_keys=True).encode()).hexdigest()
    kept = warehouse.build / "custom.json"
    try:
        content = json.loads(kept.read_text(encoding="utf-8"))
        if content["key"] == key:
            return [Node(**node) for node in content["nodes"]], [Test(**test) for test in content["tests"]]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    from engine.compile import compiled_manifest, nodes_of, tests_of  # imports dbt

    folder = warehouse.build / "dbt"
    try:
        manifest = compiled_manifest("duckdb", folder, custom=custom_folder(), own=own)
    finally:
        shutil.rmtree(folder / "project", ignore_errors=True)
    nodes = [node for node in nodes_of(manifest) if node.path.startswith(f"{CUSTOM}/")]
    for hooked in _with_hooks(manifest):
        next(node for node in nodes if node.name == hooked).meta["hooks"] = True
    names = {node.relation for node in nodes}
    tests = [test for test in tests_of(manifest) if names & set(test.nodes)]
    replace_file(kept, json.dumps({"key": key, "nodes": [asdict(node) for node in nodes], "tests": [asdict(test) for test in tests]}))
    return nodes, tests


def _with_hooks(manifest: Any) -> list[str]:
    """Names of the custom models that ask for statements before or after their own, which no build runs."""
    models = (node for node in manifest.nodes.values() if node.resource_type == "model")
    own = (node for node in models if node.original_file_path.startswith(f"{CUSTOM}/"))
    return [node.alias for node in own if node.config.pre_hook or node.config.post_hook]


def _build(executor: Executor, nodes: list[Node], tests: list[Test], made: CustomModels) -> None:
    executor.connection.execute("create schema if not exists custom")
    left_out: set[str] = set()
    deadline = time.monotonic() + MOST_SECONDS
    names = {node.relation for node in nodes}
    for node in nodes:
        path = custom_folder() / Path(node.path).relative_to(CUSTOM)
        why = None
        if left_out & set(node.parents):
            why = "skipped, because what it reads failed"
        elif (why := _fault(node)) is None:
            try:
                with _within(deadline, executor.connection):
                    executor.make([node])
            except (ModelError, duckdb.Error) as error:
                why = _with_paths(str(error))
        if why is not None:
            left_out.add(node.relation)
            made.failures.append(f"{path}: custom model {node.name} is not published: {why}; {TODO}")
            continue
        made.built.append(node)
        for test in tests:
            read = names & set(test.nodes)
            if node.relation in read and read <= {each.relation for each in made.built}:
                try:
                    with _within(deadline, executor.connection):
                        executor.run_test(test)
                except ModelError as error:
                    why = _with_paths(str(error))
                    stated = custom_folder() / Path(test.path).relative_to(CUSTOM)
                    made.failures.append(f"{stated}: test {test.name} failed: {why}; {TODO}")
                    left_out.add(node.relation)


def _fault(node: Node) -> str | None:
    """Why a model is not even tried. What else DuckDB would take, such as a second statement, could change the tables of the project."""
    if node.meta:
        return f"{', '.join(sorted(node.meta))}: of the project's own models; remove it from config and meta"
    if node.is_python:
        return None
    try:
        statements = duckdb.extract_statements(node.sql)
    except duckdb.Error:  # DuckDB names the place when it is made
        return None
    kinds = [each.type.name.lower().replace("_", " ") for each in statements]
    return None if kinds == ["select"] else f"a model is one select; this is {', '.join(kinds) or 'nothing'}"


@contextmanager
def _within(deadline: float, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt a statement at the deadline. Raises: ModelError that says so."""
    too_long = f"the custom models of a build may take {MOST_SECONDS:.0f} s together: make it quicker, or ask it with `drivetail sql`"
    left = deadline - time.monotonic()
    if left <= 0:  # an interrupt before a statement begins is lost
        raise ModelError(too_long)
    timer = threading.Timer(left, connection.interrupt)
    timer.start()
    try:
        yield
    except (ModelError, duckdb.Error) as error:
        if time.monotonic() < deadline:
            raise
        raise ModelError(too_long) from error
    finally:
        timer.cancel()
        timer.join()


def _with_paths(message: str) -> str:
    """The message on one line, with the custom models' files where they really are."""
    return re.sub(rf"(?<![\w/]){CUSTOM}/", f"{custom_folder()}{os.sep}", " ".join(message.split()))

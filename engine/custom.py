"""An analyst's own models. An error in one of them never stops the project's marts, which are published before.

They are read from the folder `models/custom`, or the one that DRIVETAIL_CUSTOM_MODELS names. See models/custom/README.md. dbt compiles them
when they, or the models, have changed; what it compiled is kept in the warehouse. They are made in a database of their own, which sees the
publication read-only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from engine.errors import ModelError
from engine.execute import Executor, configure
from engine.nodes import CUSTOM, Models, Node, Test
from engine.thresholds import ThresholdError, limits_of
from engine.warehouse import PROJECT, Warehouse, quoted
from ingest import StoreError, Worker
from ingest.raw.durable import remove, replace_file
from ingest.reading.files import Watch
from ingest.worker import Words

WORDS = Words("it", "write it in another way", "make it quicker, or raise `{}` of [custom] in drivetail.toml")
TODO = "correct or remove it, then run `drivetail build`"


def custom_folder() -> Path:
    """The folder of the analysts' own models; none of ours depends on them."""
    return Path(os.environ.get("DRIVETAIL_CUSTOM_MODELS") or PROJECT / "models" / "custom").resolve()


@dataclass
class CustomModels:
    """Outcome of the custom models: those that were built, in order, and one sentence per failure.

    is_due: they are of an earlier build, as a publication shows them until they are made again.
    """

    digest: str
    built: list[Node] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    is_due: bool = False

    @classmethod
    def of(cls, record: dict[str, Any]) -> CustomModels:
        """Those of a publication's record; none where an earlier release wrote it."""
        built = [Node(**node) for node in record.get("built", [])]
        return cls(record.get("digest", ""), built, record.get("failures", []), record.get("is_due", False))


def _files() -> list[Path]:
    """The files of the custom models, in order."""
    return sorted(path for path in custom_folder().rglob("*") if path.suffix in {".sql", ".py", ".yml", ".yaml"} and path.is_file())


def are_custom_due(published: CustomModels) -> bool:
    """Whether the custom models of a publication are of an earlier one, or have changed since."""
    return published.is_due or published.digest != custom_digest()


def custom_digest() -> str:
    """Changes when a custom model does; empty without any."""
    digest = hashlib.sha256()
    files = _files()
    for path in files:
        digest.update(str(path.relative_to(custom_folder())).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest() if files else ""


def build_custom(warehouse: Warehouse, models: Models, publication: Path, own: dict[str, Any]) -> CustomModels:
    """Build and test the custom models over a publication, into `build/analysts.duckdb`, and log each failure; an error in one of them
    raises nothing. own: the warehouse's thresholds.
    """
    made = CustomModels(custom_digest())
    if made.digest:
        warehouse.note("custom")
        try:
            limits = limits_of(warehouse, "custom")
            nodes, tests = _compiled(warehouse, models, made.digest, own)
            # nothing but its end stops DuckDB while it parses, and one value may take any memory
            with Worker(replace(limits, memory=f"{2 * int(limits.memory[:-2])}{limits.memory[-2:]}"), WORDS, forks=False) as worker:
                made.built, made.failures = worker.call(_build, warehouse, models, publication, own, nodes, tests, limits.memory)
            os.replace(_draft(warehouse), warehouse.custom_database)
        except (ModelError, StoreError, ThresholdError, duckdb.Error) as error:
            made.built.clear()
            made.failures.append(f"{_with_paths(str(error))}; no custom model is published; {TODO}")
    for failure in made.failures:
        warehouse.note("custom", failure=failure)
    return made


def _compiled(warehouse: Warehouse, models: Models, digest: str, own: dict[str, Any]) -> tuple[list[Node], list[Test]]:
    """The custom models and their tests, compiled again where they or the models have changed. Raises: ModelError."""
    key = hashlib.sha256(json.dumps([digest, models.digest, own], sort_keys=True).encode()).hexdigest()
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


def _draft(warehouse: Warehouse) -> Path:
    """Where the database of custom models is made."""
    return warehouse.custom_database.with_suffix(".begun")


def _build(
    warehouse: Warehouse,
    models: Models,
    publication: Path,
    own: dict[str, Any],
    nodes: list[Node],
    tests: list[Test],
    memory: str,
    on_progress: object = None,
    watch: Watch | None = None,
) -> tuple[list[Node], list[str]]:
    """Make the models and run their tests, in a worker. Returns: those that were made, and a sentence on each failure."""
    draft = _draft(warehouse)
    remove(draft.parent.glob(f"{draft.name}*"))  # of a worker that was ended: DuckDB spills into a folder
    with duckdb.connect(str(draft)) as connection:
        configure(connection)
        # a worker has no main file, which DuckDB takes for a person who likes to see progress
        connection.execute(f"set memory_limit = {quoted(memory)}; set enable_progress_bar = false")
        connection.execute(f"attach {quoted(publication)} as publication (read_only); create schema custom")
        return _made(Executor(warehouse, models, connection, own), nodes, tests, watch or Watch())


def _made(executor: Executor, nodes: list[Node], tests: list[Test], watch: Watch) -> tuple[list[Node], list[str]]:
    built: list[Node] = []
    failures: list[str] = []
    left_out: set[str] = set()
    names = {node.relation for node in nodes}
    for node in nodes:
        path = custom_folder() / Path(node.path).relative_to(CUSTOM)
        why: str | None = "skipped, because what it reads failed"
        if not left_out & set(node.parents):
            why = _failure(watch, executor, node.relation, set(node.parents) - names, partial(_make, executor, node))
        if why is not None:
            left_out.add(node.relation)
            failures.append(f"{path}: custom model {node.name} is not published: {why}; {TODO}")
            continue
        built.append(node)
        for test in tests:
            read = names & set(test.nodes)
            is_due = node.relation in read and read <= {each.relation for each in built}
            if is_due and (why := _failure(watch, executor, test.name, set(test.nodes) - names, partial(executor.run_test, test))):
                stated = custom_folder() / Path(test.path).relative_to(CUSTOM)
                failures.append(f"{stated}: test {test.name} failed: {why}; {TODO}")
                left_out.add(node.relation)
    return built, failures


def _failure(watch: Watch, executor: Executor, name: str, reads: Collection[str], does: Callable[[], None]) -> str | None:
    """Why a model or a test of a name failed, or ended the process before; null where it did not. reads: what of the publication."""
    if name in watch.lost:
        return str(watch.lost[name]["fault"])
    try:
        with watch.over(name):
            _show(executor.connection, reads)
            does()
    except (ModelError, duckdb.Error) as error:
        return _with_paths(str(error))
    return None


def _show(connection: duckdb.DuckDBPyConnection, relations: Collection[str]) -> None:
    """Have the models see what they read of the publication. Raises: ModelError for what is not published."""
    for relation in sorted(relations):
        try:
            connection.execute(f"create schema if not exists {relation.split('.')[0]}")
            connection.execute(f"create or replace view {relation} as from publication.{relation}")
        except duckdb.CatalogException as error:
            raise ModelError(f"it reads {relation}, which no publication has; read what `drivetail sql` shows") from error


def _make(executor: Executor, node: Node) -> None:
    if why := _fault(node):
        raise ModelError(why)
    executor.make([node])


def _fault(node: Node) -> str | None:
    """Why a model is not even tried. What else DuckDB would take, such as a second statement, could change other tables."""
    if node.meta:
        return f"{', '.join(sorted(node.meta))}: of the project's own models; remove it from config and meta"
    if node.is_python:
        return "a model is one select; this is Python, which could do anything that the user may who runs the build"
    try:
        statements = duckdb.extract_statements(node.sql)
    except duckdb.Error:  # DuckDB names the place when it is made
        return None
    kinds = [each.type.name.lower().replace("_", " ") for each in statements]
    return None if kinds == ["select"] else f"a model is one select; this is {', '.join(kinds) or 'nothing'}"


def _with_paths(message: str) -> str:
    """The message on one line, with the custom models' files where they really are."""
    return re.sub(rf"(?<![\w/]){CUSTOM}/", f"{custom_folder()}{os.sep}", " ".join(message.split()))

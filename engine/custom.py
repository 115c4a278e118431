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
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from engine.errors import ModelError
from engine.execute import Executor, configure
from engine.nodes import CUSTOM, Models, Node, Test
from engine.thresholds import ThresholdError, limits_of
from engine.warehouse import PROJECT, Warehouse, quoted
from ingest.raw.durable import replace_file

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
    draft = warehouse.custom_database.with_suffix(".begun")
    for leftover in draft.parent.glob(f"{draft.name}*"):
        leftover.unlink()
    if made.digest:
        warehouse.note("custom")
        try:
            limits = limits_of(warehouse, "custom")
            nodes, tests = _compiled(warehouse, models, made.digest, own)
            with duckdb.connect(str(draft)) as connection:
                configure(connection)
                connection.execute(f"set memory_limit = {quoted(limits.memory)}")
                connection.execute(f"attach {quoted(publication)} as publication (read_only); create schema custom")
                _build(Executor(warehouse, models, connection, own), nodes, tests, made, limits.seconds)
            os.replace(draft, warehouse.custom_database)
        except (ModelError, ThresholdError, duckdb.Error) as error:
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


def _build(executor: Executor, nodes: list[Node], tests: list[Test], made: CustomModels, seconds: float) -> None:
    left_out: set[str] = set()
    names = {node.relation for node in nodes}
    for node in nodes:
        path = custom_folder() / Path(node.path).relative_to(CUSTOM)
        why = None
        if left_out & set(node.parents):
            why = "skipped, because what it reads failed"
        elif (why := _fault(node)) is None:
            try:
                with _within(seconds, executor.connection):
                    _show(executor.connection, set(node.parents) - names)
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
                    with _within(seconds, executor.connection):
                        _show(executor.connection, set(test.nodes) - names)
                        executor.run_test(test)
                except (ModelError, duckdb.Error) as error:
                    why = _with_paths(str(error))
                    stated = custom_folder() / Path(test.path).relative_to(CUSTOM)
                    made.failures.append(f"{stated}: test {test.name} failed: {why}; {TODO}")
                    left_out.add(node.relation)


def _show(connection: duckdb.DuckDBPyConnection, relations: Collection[str]) -> None:
    """Have the models see what they read of the publication. Raises: ModelError for what is not published."""
    for relation in sorted(relations):
        try:
            connection.execute(f"create schema if not exists {relation.split('.')[0]}")
            connection.execute(f"create or replace view {relation} as from publication.{relation}")
        except duckdb.CatalogException as error:
            raise ModelError(f"it reads {relation}, which no publication has; read what `drivetail sql` shows") from error


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


@contextmanager
def _within(seconds: float, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt what runs after some seconds. Raises: ModelError that says so."""
    ended, is_late = threading.Event(), threading.Event()

    def interrupt() -> None:
        if not ended.wait(seconds):
            is_late.set()
        while not ended.wait(0.1):  # an interrupt between two statements is lost
            connection.interrupt()

    watch = threading.Thread(target=interrupt)
    watch.start()
    try:
        yield
    except (ModelError, duckdb.Error) as error:
        if not is_late.is_set():
            raise
        raise ModelError(
            f"it takes longer than {seconds:g} s; make it quicker, or raise `seconds` of [custom] in drivetail.toml"
        ) from error
    finally:
        ended.set()
        watch.join()


def _with_paths(message: str) -> str:
    """The message on one line, with the custom models' files where they really are."""
    return re.sub(rf"(?<![\w/]){CUSTOM}/", f"{custom_folder()}{os.sep}", " ".join(message.split()))

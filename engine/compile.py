"""Compile the models: the only module that dbt is imported by, when the models or an analyst's own models have changed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.errors import ModelError
from engine.nodes import CUSTOM, EACH_BUILD, PLACEHOLDER, SEED, STORED, VIEW, Models, Node, Test, read_models, write_models
from engine.thresholds import variables
from engine.warehouse import PROJECT
from ingest.contract.extras import how_to_install
from ingest.contract.fleet import COLUMNS_OF_RAW

QUIET = ("--log-level", "none", "--log-level-file", "none", "--no-write-json", "--no-populate-cache")

KEY = "compiled_from"
"""Where a node of a manifest keeps its key (see engine.nodes.Node), which dbt has no place for."""

_RELATION = re.compile(r'"(?:dbt|memory)"\."(\w+)"\."(\w+)"')
"""A relation as dbt-duckdb writes it."""


def compile_project(target: str, project: Path, file: Path, digest: str, version: str) -> Models:
    """Compile every model of a project for a target and keep the result in a file. digest, version: the project's (engine/compiled.py).

    Raises: ModelError where they do not compile.
    """
    place = file.parent if os.access(PROJECT, os.W_OK) else None
    with _only_one(place) as folder:
        last = None
        with suppress(OSError, ValueError, TypeError):
            last = read_models(file)
        if last is not None and last.digest == digest:  # another process may just have done so
            return last
        manifest = compiled_manifest(target, folder, project, last=last)
        models = models_in(manifest, digest, version)
        if place is not None:
            write_models(models, file)
        return models


@contextmanager
def _only_one(place: Path | None) -> Iterator[Path]:
    """A folder for dbt's own files, which one process at a time works in; a passing one where an installation may not be written."""
    if place is None:
        with TemporaryDirectory() as passing:
            yield Path(passing)
        return
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def compiled_manifest(
    target: str,
    folder: Path,
    project: Path = PROJECT,
    *,
    custom: Path | None = None,
    own: dict[str, Any] | None = None,
    last: Models | None = None,
) -> Any:
    """Dbt's manifest with the SQL of every model, seed and data test compiled. folder: where dbt keeps what it remembers.

    custom: a folder of models beside the project's own, which alone are compiled then. own: thresholds that stand in the SQL; None:
    placeholders do. last: what an earlier call has compiled, which is taken over where nothing that it was compiled from has changed.
    Raises: ModelError where something does not parse or compile; its message names the file.
    """
    thresholds = {name: PLACEHOLDER % name for name in variables(project).get("settable", ())} if own is None else own
    what = "the models" if custom is None else "the custom models"
    options = [
        "--project-dir", str(_linked(folder / "project", custom) if project == PROJECT else project), "--profiles-dir", str(project),
        "--target", target,
        "--target-path", str(folder / f"{target}-dbt"), "--log-path", str(folder / "logs"), "--vars", json.dumps(thresholds),
    ]  # fmt: skip
    parsed = invoke(["parse", *options])
    if not parsed.success:
        raise ModelError(f"{what} do not parse: {parsed.exception}")
    for node in (*parsed.result.nodes.values(), *parsed.result.unit_tests.values()):
        node.original_file_path = str(project.relative_to(PROJECT) / node.original_file_path)
    known: dict[str, str] = {}
    if last is not None:
        known = {node.key: node.sql for node in last.nodes} | {test.key: test.sql for test in last.tests}
    _compile_nodes(parsed.result, what, variables(project), known, within="" if custom is None else f"{CUSTOM}/")
    return parsed.result


def _compile_nodes(manifest: Any, what: str, stated_vars: Mapping[str, Any], known: Mapping[str, str], within: str) -> None:
    """Compile models and data tests where they are in a manifest. `dbt compile` would do the same, and start Spark for it.

    known: SQL by key (see Node). within: begins the path of the files to compile. Raises: ModelError that names the file of the first that
    does not compile.
    """
    from dbt.adapters.factory import get_adapter_by_type
    from dbt.compilation import Compiler
    from dbt_common.exceptions import DbtBaseException

    kind = manifest.metadata.adapter_type
    adapter = get_adapter_by_type(kind)
    compiler = Compiler(adapter.config)
    macros = hashlib.sha256()
    for unique_id, macro in sorted(manifest.macros.items()):
        if macro.package_name == manifest.metadata.project_name:
            macros.update(f"{unique_id} {macro.macro_sql}".encode())
    common = [kind, macros.hexdigest(), stated_vars, adapter.config.cli_vars]
    for _, node in sorted(manifest.nodes.items()):
        # what a Python model is compiled into asks the database, and Spark runs none
        is_left_out = kind == "spark" and getattr(node, "language", "sql") == "python"
        # of a model that this target has not
        is_left_out = is_left_out or getattr(node, "attached_node", None) not in {None, *manifest.nodes}
        if node.resource_type in ("model", "test") and node.original_file_path.startswith(within) and not is_left_out:
            asked = node.test_metadata.to_dict() if hasattr(node, "test_metadata") else None
            read = sorted(relation_of(manifest, unique_id) for unique_id in _parents(node))
            stated = [*common, node.unique_id, node.raw_code, node.config.to_dict(), asked, read]
            node.unrendered_config[KEY] = key = hashlib.sha256(json.dumps(stated, sort_keys=True, default=str).encode()).hexdigest()
            if key in known:
                node.compiled_code = known[key]
                continue
            try:
                with adapter.connection_named("compile"):
                    compiler.compile_node(node, manifest, write=False)
            except DbtBaseException as error:
                raise ModelError(f"{what} do not compile: {node.original_file_path}: {' '.join(str(error).split())}") from error


def invoke(arguments: list[str]) -> Any:
    """Run a dbt command in this process. Raises: KeyboardInterrupt, which dbt returns with its results; ModelError without dbt."""
    os.environ["DO_NOT_TRACK"] = "1"
    # on a full disk its log cannot be written: a traceback for each line of it would hide what is wrong
    logging.raiseExceptions = False
    try:
        from dbt.cli.main import dbtRunner
    except ModuleNotFoundError as error:
        raise ModelError(f"models are compiled by dbt, on Python up to 3.13 ({error}); {how_to_install('models')}") from error

    result = dbtRunner().invoke([*QUIET, *arguments])
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    return result


def _linked(folder: Path, custom: Path | None) -> Path:
    """Make a folder of links to the fleet's dbt project without models/custom and models/metrics, which defines nothing that a build makes.
    custom: those models are there as `custom`.

    Returns: the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    links = {name: PROJECT / name for name in ("dbt_project.yml", "profiles.yml", "models", "macros", "seeds", "tests")}
    if custom is not None:
        links[CUSTOM] = custom
    for name, place in links.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(place)
    ignored = (PROJECT / ".dbtignore").read_text(encoding="utf-8") + "\nmodels/custom/**\nmodels/metrics/**\n"
    (folder / ".dbtignore").write_text(ignored, encoding="utf-8")
    return folder


def models_in(manifest: Any, digest: str = "", version: str = "") -> Models:
    """Contents of a compiled manifest."""
    nodes = nodes_of(manifest)
    columns = {node.name: {name: str(kind) for name, kind in node.columns.items()} for node in nodes}
    sources = {
        (name := f"{source.schema}.{source.name}"): COLUMNS_OF_RAW.get(name)
        or columns.get(source.config.meta.get("rows_of"))
        or {column.name: str(column.data_type) for column in source.columns.values()}
        for source in manifest.sources.values()
    }
    exposed = {
        relation_of(manifest, unique_id)
        for exposure in manifest.exposures.values()
        for unique_id in exposure.depends_on.nodes
        if unique_id in manifest.nodes
    }
    return Models(digest, version, _store_version(manifest), nodes, dict(sorted(sources.items())), tests_of(manifest), sorted(exposed))


def nodes_of(manifest: Any) -> list[Node]:
    """The models and seeds of a compiled manifest, each after what it reads."""
    wanted = {uid: node for uid, node in manifest.nodes.items() if node.resource_type in ("model", "seed")}
    ordered: dict[str, None] = {}

    def visit(unique_id: str) -> None:
        if unique_id in wanted and unique_id not in ordered:
            for parent in sorted(_parents(wanted[unique_id])):
                visit(parent)
            ordered[unique_id] = None

    for unique_id in sorted(wanted):
        visit(unique_id)
    return [_node(manifest, wanted[unique_id]) for unique_id in ordered]


def _parents(node: Any) -> list[str]:
    return list(getattr(node.depends_on, "nodes", ()))


def relation_of(manifest: Any, unique_id: str) -> str:
    """`schema.name` of a node or source of a manifest."""
    node = manifest.nodes.get(unique_id)
    if node is not None:
        return f"{node.schema}.{node.alias}"
    source = manifest.sources[unique_id]
    return f"{source.schema}.{source.name}"


def _node(manifest: Any, node: Any) -> Node:
    is_seed = node.resource_type == "seed"
    is_view = node.config.materialized == "view"
    made = SEED if is_seed else VIEW if is_view else node.config.meta.get("made", EACH_BUILD)
    types = node.config.column_types if is_seed else {column.name: column.data_type for column in node.columns.values()}
    return Node(
        name=node.alias,
        schema=node.schema,
        made=made,
        sql="" if is_seed else plain(node.compiled_code or ""),
        path=node.original_file_path,
        columns=dict(types),
        descriptions={column.name: " ".join(column.description.split()) for column in node.columns.values() if column.description},
        parents=sorted(relation_of(manifest, unique_id) for unique_id in _parents(node)),
        description=" ".join(node.description.split()),
        is_python=getattr(node, "language", "sql") == "python",
        has_contract=bool(not is_seed and node.config.contract.enforced),
        meta=dict(node.config.meta),
        ratios=dict(node.config.meta.get("ratios", {})),
        key=node.unrendered_config.get(KEY, ""),
    )


def plain(sql: str) -> str:
    """Compiled SQL with relations named schema.table, as the build database, the published file and Spark all know them."""
    plain_sql = _RELATION.sub(r"\1.\2", sql.strip())
    # what is written behind it must not become part of a comment
    return f"{plain_sql}\n" if "--" in plain_sql.rpartition("\n")[2] else plain_sql


def tests_of(manifest: Any) -> list[Test]:
    """The data tests of a compiled manifest."""
    found = []
    for _, node in sorted(manifest.nodes.items()):
        if node.resource_type == "test" and node.compiled_code:
            nodes = sorted(relation_of(manifest, unique_id) for unique_id in _parents(node))
            found.append(Test(node.name, node.original_file_path, plain(node.compiled_code), nodes, node.unrendered_config[KEY]))
    return found


def _store_version(manifest: Any) -> str:
    """Changes when a definition of what is stored does: the SQL of the stored models, of the plan and of all that both are made of, their
    columns, and which of them are stored. A change of any other definition computes no day again.
    """
    waiting = [
        unique_id
        for unique_id, node in manifest.nodes.items()
        if node.resource_type == "model" and (node.config.meta.get("made") in STORED or node.schema == "plan")
    ]
    # what a build database keeps, in these columns
    waiting += [unique_id for unique_id, source in manifest.sources.items() if source.schema == "plan"]
    found: set[str] = set()
    while waiting:
        unique_id = waiting.pop()
        if unique_id not in found:
            found.add(unique_id)
            waiting += _parents(manifest.nodes[unique_id]) if unique_id in manifest.nodes else []
    stated: list[Any] = []
    for unique_id in sorted(found):
        node = manifest.nodes.get(unique_id) or manifest.sources[unique_id]
        columns = [(column.name, column.data_type) for column in node.columns.values()]
        if node.resource_type == "source":
            stated.append([unique_id, columns])
            continue
        text = node.checksum.checksum if node.resource_type == "seed" else plain(node.compiled_code or "")
        made = node.config.meta.get("made")
        stated.append([unique_id, text, columns, made if made in STORED else None, node.config.meta.get("ratios")])
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

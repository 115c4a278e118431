"""`drivetail lab build`: runs the models of the lab over the experiments that have changed, and publishes them.

They run in a database of their own that goes when they are done; what people query is kept as files (lab/generations.py).
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from engine.build import Progress, publish_store
from engine.execute import Executor, configure, create_schemas
from engine.nodes import SEED, WHEN_ASKED, Models
from engine.opening import with_hints
from engine.publish import Publication
from engine.read import QueryError
from engine.sources import parquet
from engine.warehouse import Warehouse, quoted
from lab.generations import EMPTY, Generation, file_of, generations_root, keep_generation, latest_generation
from lab.landing import lab_root, list_experiments
from lab.statistics import register
from lab.version import lab_models, lab_version


@dataclass(frozen=True)
class LabSummary:
    """Result of one lab build: the experiments that it computed, all that it published, and the publication."""

    computed: list[str]
    experiments: list[str]
    publication: Publication


def build_lab(warehouse: Warehouse, wanted: Sequence[str] = (), on_progress: Progress | None = None) -> LabSummary:
    """Compute the experiments that have changed, those of `wanted` in any case, and publish.

    Raises: QueryError where nothing has landed or one of `wanted` has not; ModelError where a model or a test fails: the last publication
    stays as it is.
    """
    report = on_progress or (lambda phase, done, total: None)
    warehouse.create()
    with _only_lab_build(warehouse), with_hints(warehouse, lambda: sorted(lab_root(warehouse.root).glob("*/*/*.parquet"))):
        landed = list_experiments(warehouse.root)
        if not landed:
            raise QueryError(f"{warehouse.root}: no experiment has landed; run `drivetail lab ingest BUNDLE`")
        for name in wanted:
            if name not in landed:
                raise QueryError(f"experiment {name!r} has not landed; there are {', '.join(landed)}")
        models = lab_models()
        version = lab_version()
        last = latest_generation(warehouse)
        known = last.experiments if last is not None and last.version == version else {}
        computed = [name for name, delivery in landed.items() if known.get(name) != delivery or name in wanted]
        if computed:
            report("models", 0, 1)
            warehouse.note("lab", experiments=len(computed))
            _compute(warehouse, models, computed, landed, last, Generation(_next_path(warehouse), version, landed))
            report("models", 1, 1)
    return LabSummary(computed, list(landed), publish_store(warehouse))


@contextmanager
def _only_lab_build(warehouse: Warehouse) -> Iterator[None]:
    """One lab build at a time; builds of the fleet go on beside it."""
    with (warehouse.build / "lab.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _next_path(warehouse: Warehouse) -> Path:
    last = latest_generation(warehouse)
    return generations_root(warehouse) / f"{1 if last is None else int(last.name) + 1:06d}"


def _compute(
    warehouse: Warehouse, models: Models, computed: list[str], landed: dict[str, int], last: Generation | None, made: Generation
) -> None:
    scratch = warehouse.build / "lab"
    shutil.rmtree(scratch, ignore_errors=True)
    draft = scratch / "generation"
    draft.mkdir(parents=True)
    try:
        with duckdb.connect(str(scratch / "build.duckdb")) as connection:
            configure(connection)
            register(connection)
            create_schemas(connection, models)
            executor = Executor(warehouse, models, connection, {})
            _show_experiments(connection, models, lab_root(warehouse.root), computed)
            executor.load_seeds()
            nodes = models.made(WHEN_ASKED)
            executor.make(nodes)
            executor.test(nodes, shown=[node.relation for node in models.made(SEED)])
            for node in nodes:
                if node.schema == "lab":
                    _export(connection, node.relation, draft / node.name)
        keep_generation(warehouse, draft, last, set(landed) - set(computed), made)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _show_experiments(connection: duckdb.DuckDBPyConnection, models: Models, lab: Path, experiments: Sequence[str]) -> None:
    """Make the sources of the lab views over the files of some experiments' deliveries; one without a file has no rows."""
    found: dict[str, list[Path]] = {}
    for experiment_id in sorted(experiments):
        for path in sorted((lab / f"experiment_id={experiment_id}").glob("*/*.parquet")):
            if path.parent.name.isdigit():
                # of a large file there are several: TABLE.LISTING.N.parquet
                found.setdefault(path.name.split(".")[0], []).append(path)
    for source in models.sources:
        schema, table = source.split(".")
        if schema == "lab_raw" and table in found:
            # deliveries of older versions lack columns, which are null there
            files = parquet(found[table]).removesuffix(")") + ", union_by_name = true)"
            connection.execute(f"alter table {source} rename to {table}__columns")
            connection.execute(f"create view {source} as from {source}__columns union all by name from {files}")


def _export(connection: duckdb.DuckDBPyConnection, relation: str, folder: Path) -> None:
    """Write a relation as a file for each experiment, and one without rows."""
    folder.mkdir()
    for (experiment_id,) in connection.execute(f"select distinct experiment_id from {relation} order by all").fetchall():
        _copy(connection, f"select * from {relation} where experiment_id = {quoted(experiment_id)}", folder / file_of(experiment_id))
    _copy(connection, f"select * from {relation} where false", folder / EMPTY)


def _copy(connection: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    connection.execute(f"copy ({query}) to {quoted(path)} (format parquet, compression zstd, compression_level 1)")

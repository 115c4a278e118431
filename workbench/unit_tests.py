"""The models' unit tests as queries that need no warehouse: fixtures, the compiled model and the expected rows in one.

dbt says what a test is; here it becomes SQL whose last column tells an actual row from an expected one. The types of fixtures are those of
the relations they stand for, which are found by making every relation once over nothing.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import duckdb

from engine.compile import compiled_manifest, models_in, plain, relation_of
from engine.compiled import compiled_file
from engine.errors import ModelError
from engine.execute import check_contract, python_rows
from engine.nodes import SEED, Models, Node, read_models, write_models
from engine.projects import projects
from engine.sources import no_rows
from engine.warehouse import PROJECT

ACTUAL, EXPECTED = "dbt_internal_unit_test_actual", "dbt_internal_unit_test_expected"
FIXTURE = "fixture__"
"""Prefix of a fixture's CTE."""

Types = dict[str, dict[str, str]]


@dataclass(frozen=True)
class UnitTest:
    """A unit test as one query: every actual and expected row, which of both it is in the last column."""

    model: str
    name: str
    path: str
    sql: str

    @property
    def digest(self) -> str:
        """Changes when the model, the test or a type does."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def project_folders() -> list[Path]:
    """The dbt projects: the fleet's, and those beside it."""
    return [PROJECT, *(project.FOLDER for project in projects())]


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a connection the functions that models call."""
    for project in projects():
        project.prepare(connection)


class Project:
    """A dbt project as it is now, compiled; what an earlier call has compiled is taken over. place: its folder."""

    def __init__(self, place: Path = PROJECT, folder: Path | None = None) -> None:
        self._place = place
        folder = folder or compiled_file("duckdb", place).parent / "check"
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = folder / "types.json"
        self._file = folder / "models.json"
        try:
            last: Models | None = read_models(self._file)
        except (OSError, ValueError, TypeError):
            last = None
        self.manifest = compiled_manifest("duckdb", folder, place, own={}, last=last)
        self.name = self.manifest.metadata.project_name
        self.models = models_in(self.manifest)
        write_models(self.models, self._file)

    @cached_property
    def types(self) -> Types:
        """Columns and types of every relation, by `schema.name`: each is made once over nothing, but those whose text and whose parents'
        types are as they were the last time. Raises: ModelError naming a model that does not bind or breaks its contract.
        """
        try:
            kept = json.loads(self._kept.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = {}
        found: Types = {name: dict(columns) for name, columns in self.models.sources.items()}
        for project in projects():
            found |= {name: dict(columns) for name, columns in project.source_columns().items() if name in found}
            if self._place == project.FOLDER and project.READS_FLEET:
                found |= {name: columns for name, columns in fleet().types.items() if name in found}
        now: dict[str, Any] = {}
        with duckdb.connect() as connection:
            prepare(connection)
            made: set[str] = set()

            def make(relation: str) -> None:
                """Have a relation of known types in the connection."""
                if relation not in made:
                    made.add(relation)
                    connection.execute(f"create schema if not exists {relation.split('.')[0]}")
                    connection.execute(f"create table {relation} as {no_rows(found[relation])}")

            for node in self.models:
                key = hashlib.sha256(
                    json.dumps([node.key, node.sql, node.columns, {p: found[p] for p in node.parents}]).encode()
                ).hexdigest()
                before = kept.get(node.relation)
                if before is not None and before["key"] == key:
                    found[node.relation] = before["types"]
                elif node.made == SEED:
                    found[node.relation] = {name: str(kind) for name, kind in node.columns.items()}
                else:
                    for parent in node.parents:
                        make(parent)
                    found[node.relation] = _described(connection, node)
                    check_contract(node, found[node.relation])
                now[node.relation] = {"key": key, "types": found[node.relation]}
        self._kept.write_text(json.dumps(now), encoding="utf-8")
        return found

    def unit_tests(self, is_wanted: Callable[[str], bool] = lambda model: True) -> list[UnitTest]:
        """The unit tests of the models that are wanted, by name. Raises: ModelError for one that names a column that is not there."""
        wanted = [test for _, test in sorted(self.manifest.unit_tests.items()) if is_wanted(test.model)]
        return [UnitTest(test.model, test.name, test.original_file_path, self._sql(test)) for test in wanted]

    def _sql(self, test: Any) -> str:
        unique_id = f"model.{self.name}.{test.model}"
        node = self.models.by_relation[relation_of(self.manifest, unique_id)]
        own = (test.overrides.vars if test.overrides is not None else None) or {}
        sql = plain(recompiled(self.manifest, unique_id, own)) if own else node.sql
        fixtures = {}
        for given in test.given:
            relation = self._relation_of(given.input)
            name = FIXTURE + relation.split(".")[1]
            rows = _rows(test, given.rows, given.format)
            fixtures[name] = (
                rows if isinstance(rows, str) else _values(test, relation, rows, self.types[relation], set(self.types[relation]))
            )
            sql = re.sub(rf"\b{re.escape(relation)}\b", name, sql)
        left = [parent for parent in node.parents if re.search(rf"\b{re.escape(parent)}\b", sql)]
        if left:
            raise ModelError(f"{test.original_file_path}: unit test {test.name} gives no rows for {', '.join(left)}")
        expected = _rows(test, test.expect.rows, test.expect.format)
        types = self.types[node.relation]
        names = list(types) if isinstance(expected, str) or not expected else list(expected[0])
        if not isinstance(expected, str) and any(row.keys() != expected[0].keys() for row in expected):  # dbt refuses it, too
            raise ModelError(f"{test.original_file_path}: unit test {test.name}: each expected row needs {', '.join(names)}")
        listed = ", ".join(f'"{name}"' for name in names)
        rows = expected if isinstance(expected, str) else _values(test, node.relation, expected, types, set(names))
        ctes = [f"{name} as ({text})" for name, text in fixtures.items()]
        ctes += [f"{ACTUAL} as (select {listed} from ({sql}\n))", f"{EXPECTED} as (select {listed} from ({rows}))"]
        both = f"select *, 'actual' as side from {ACTUAL} union all select *, 'expected' as side from {EXPECTED}"
        return "with " + ",\n".join(ctes) + f"\n{both}"

    def _relation_of(self, given: str) -> str:
        """`schema.name` of an input such as ref('int_drives') or source('raw', 'drives')."""
        names = [one or other for one, other in re.findall(r"'([^']+)'|\"([^\"]+)\"", given)]
        if given.strip().startswith("source"):
            return relation_of(self.manifest, f"source.{self.name}.{names[0]}.{names[1]}")
        kind = "seed" if f"seed.{self.name}.{names[-1]}" in self.manifest.nodes else "model"
        return relation_of(self.manifest, f"{kind}.{self.name}.{names[-1]}")


@cache
def fleet() -> Project:
    """The fleet's project, which others may read."""
    return Project()


def recompiled(manifest: Any, unique_id: str, own: Mapping[str, Any]) -> str:
    """SQL of one model of a compiled manifest of DuckDB with some variables of its own, as a unit test may state."""
    from dbt.adapters.factory import get_adapter_by_type
    from dbt.compilation import Compiler

    adapter = get_adapter_by_type("duckdb")
    before = adapter.config.cli_vars
    adapter.config.cli_vars = {**before, **own}
    try:
        with adapter.connection_named("compile"):
            node = Compiler(adapter.config).compile_node(copy(manifest.nodes[unique_id]), manifest, write=False)
        return str(node.compiled_code)
    finally:
        adapter.config.cli_vars = before


def _described(connection: duckdb.DuckDBPyConnection, node: Node) -> dict[str, str]:
    """Columns and types of a model's rows. Raises: ModelError with DuckDB's message."""
    try:
        if node.is_python:
            rows = python_rows(node, connection)
            return dict(zip(rows.columns, map(str, rows.types), strict=True))
        return {row[0]: row[1] for row in connection.execute(f"describe {node.sql}").fetchall()}
    except duckdb.Error as error:
        raise ModelError(f"{node.path}: {error}") from error


def _rows(test: Any, rows: Any, form: Any) -> list[dict[str, Any]] | str:
    """Rows of a fixture as dicts; SQL as it is."""
    if str(getattr(form, "value", form)) == "sql":
        return str(rows)
    if isinstance(rows, str):
        return [{name: value or None for name, value in row.items()} for row in csv.DictReader(io.StringIO(rows.strip()))]
    return list(rows or [])


def _values(test: Any, relation: str, rows: list[dict[str, Any]], types: Mapping[str, str], names: set[str]) -> str:
    """SQL for rows of some of a relation's columns; a value that a row leaves out is null. Raises: ModelError for a column it has not."""
    unknown = {name for row in rows for name in row} - set(types)
    if unknown:
        raise ModelError(f"{test.original_file_path}: unit test {test.name}: {relation} has no column {', '.join(sorted(unknown))}")
    wanted = [name for name in types if name in names]
    if not rows:
        return no_rows({name: types[name] for name in wanted})
    listed = ", ".join(f'"{name}"' for name in wanted)
    lines = []
    for row in rows:
        typed = ", ".join(f'cast({_literal(row.get(name))} as {types[name]}) as "{name}"' for name in wanted)
        lines.append(f"select {typed}")
    return f"select {listed} from (" + "\nunion all\n".join(lines) + ")"


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(_literal(each) for each in value) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def run(connection: duckdb.DuckDBPyConnection, test: UnitTest) -> str | None:
    """Run a unit test. Returns: what differs, as text; None where it holds."""
    try:
        found = connection.execute(test.sql)
        names = [column[0] for column in found.description or []][:-1]
        rows = found.fetchall()
    except duckdb.Error as error:
        return str(error)
    sides: dict[str, list[tuple[Any, ...]]] = {"actual": [], "expected": []}
    for row in rows:
        sides[row[-1]].append(row[:-1])
    only: dict[str, list[tuple[Any, ...]]] = {}
    for side, other in (("actual", "expected"), ("expected", "actual")):
        left = [repr(row) for row in sides[other]]
        only[side] = []
        for row in sides[side]:
            if repr(row) in left:
                left.remove(repr(row))
            else:
                only[side].append(row)
    if not only["actual"] and not only["expected"]:
        return None
    shown = [*(f"- {_shown(row)}" for row in only["expected"]), *(f"+ {_shown(row)}" for row in only["actual"])]
    return "\n".join([f"  {', '.join(names)}", *shown])


def _shown(row: tuple[Any, ...]) -> str:
    return ", ".join("null" if value is None else str(value) for value in row)

"""Compiled models as data: what a file of them holds (engine/compiled.py)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.thresholds import variables

BY_DAY, BY_DAY_WHEN_ASKED, WITH_DAYS = "by_day", "by_day_when_asked", "with_days"
WITH_INVENTORY, EACH_BUILD, EACH_DAY, WHEN_ASKED = "with_inventory", "each_build", "each_day", "when_asked"
VIEW, SEED = "view", "seed"
STORED = (BY_DAY, BY_DAY_WHEN_ASKED)
MADE = (*STORED, WITH_DAYS, WITH_INVENTORY, EACH_BUILD, EACH_DAY, WHEN_ASKED)
"""When a relation is made, as its model says in `meta`:
by_day: one file for each UTC day, when the day changes; by_day_when_asked: likewise, of the days that have changed since somebody asked;
with_days: in memory, while days are computed; with_inventory: when inventory has landed; each_build: in memory, by each build;
each_day: when a day that is over has changed; when_asked: by a command.
A view is made once, and computed when it is read."""

CUSTOM = "custom"
"""Where dbt finds the custom models: a model path of dbt_project.yml, which a project for compiling may have as a link."""

PLACEHOLDER = "<<%s>>"
"""Stands in compiled SQL for a threshold that a warehouse may set itself."""


@dataclass(frozen=True)
class Test:
    """A data test: a query without rows, unless something is wrong. path: of the file that states it; nodes: relations that it reads.

    key: see Node.
    """

    name: str
    path: str
    sql: str
    nodes: list[str]
    key: str = ""


@dataclass(frozen=True)
class Node:
    """One model or seed. made: VIEW, SEED or one of MADE. columns: types by name, as declared; a type may be missing where no contract is.

    path: of its file, below the checkout. parents: `schema.name` of what it reads. ratios: SQL of the columns that are worked out when a
    stored model is read. key: changes when what its SQL was compiled from does.
    """

    name: str
    schema: str
    made: str
    sql: str
    path: str
    columns: dict[str, str | None]
    descriptions: dict[str, str]
    parents: list[str]
    description: str = ""
    is_python: bool = False
    has_contract: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
    ratios: dict[str, str] = field(default_factory=dict)
    key: str = ""

    @property
    def relation(self) -> str:
        """Its name in SQL."""
        return f"{self.schema}.{self.name}"

    @property
    def week_column(self) -> str | None:
        """The column by whose week each row of a relation is made of hours of that week alone, and of `look_back` weeks before it."""
        column: str | None = self.meta.get("by_week", {}).get("column")
        return column

    @property
    def look_back(self) -> int:
        """How many weeks before its own a row looks at, where there is a week_column."""
        weeks: int = self.meta.get("by_week", {}).get("look_back", 0)
        return weeks


@dataclass(frozen=True)
class Models:
    """All models of a target in an order in which each comes after what it reads, with the sources and tests.

    digest: of every file that they are made of. version: changes when a definition does. store_version: when a definition of what is stored
    by day does. sources: columns of each by `schema.name`. exposed: relations that commands and pages read beside the marts.
    store_versions: by name, of stored models that have one of their own.
    """

    digest: str
    version: str
    store_version: str
    nodes: list[Node]
    sources: dict[str, dict[str, str]]
    tests: list[Test]
    exposed: list[str]
    store_versions: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    @cached_property
    def by_relation(self) -> dict[str, Node]:
        """The nodes by their name in SQL."""
        return {node.relation: node for node in self.nodes}

    def made(self, *when: str) -> list[Node]:
        """The nodes that are made at these times, in order."""
        return [node for node in self.nodes if node.made in when]

    def above(self, relations: Iterable[str], *, through: Container[str] = (VIEW,)) -> list[str]:
        """These relations and those that they are made of, in order; what is made in another way than `through` stands for itself."""
        wanted: set[str] = set()
        waiting = list(relations)
        while waiting:
            relation = waiting.pop()
            if relation in wanted:
                continue
            wanted.add(relation)
            node = self.by_relation.get(relation)
            if node is not None and node.made in through:
                waiting += node.parents
        return [source for source in self.sources if source in wanted] + [node.relation for node in self.nodes if node.relation in wanted]

    def with_project(self, other: Models) -> Models:
        """These models, and after them those of a project that reads their relations. Its stored models keep a version of their own: no day
        of the fleet is computed again because of them.
        """
        return replace(
            self,
            digest=self.digest + other.digest,
            version=f"{self.version} {other.version}",
            nodes=[*self.nodes, *other.nodes],
            tests=[*self.tests, *other.tests],
            exposed=[*self.exposed, *other.exposed],
            store_versions=self.store_versions | {node.name: other.store_version for node in other.made(*STORED)},
        )

    def store_version_of(self, model: str) -> str:
        """The version that files of a stored model are kept with."""
        return self.store_versions.get(model, self.store_version)

    def for_thresholds(self, own: dict[str, Any]) -> Models:
        """These models with the store_version of a warehouse: it also changes with a threshold that stored days are computed with."""
        roots = [node.relation for node in self.nodes if node.made in STORED or node.schema == "plan"]
        stored = self.above(roots, through={*MADE, VIEW, SEED})
        text = "".join(self.by_relation[relation].sql for relation in stored if relation in self.by_relation)
        set_here = {name: value for name, value in sorted(own.items()) if value != variables()[name] and PLACEHOLDER % name in text}
        return replace(self, store_version=f"{self.store_version} {json.dumps(set_here)}") if set_here else self

    def with_thresholds(self, own: dict[str, Any]) -> Callable[[str], str]:
        """A function that puts a warehouse's thresholds, or else those of dbt_project.yml, into compiled text."""
        values = {PLACEHOLDER % name: str(own.get(name, variables()[name])) for name in variables()["settable"]}
        pattern = re.compile("|".join(re.escape(name) for name in values))
        return lambda text: pattern.sub(lambda found: values[found.group()], text)


def write_models(models: Models, file: Path) -> None:
    """Write compiled models, by one rename."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(models), indent=1), encoding="utf-8")
    os.replace(draft, file)


def read_models(file: Path) -> Models:
    """Read compiled models. Raises: OSError, ValueError."""
    content = json.loads(file.read_text(encoding="utf-8"))
    content["nodes"] = [Node(**node) for node in content["nodes"]]
    content["tests"] = [Test(**test) for test in content["tests"]]
    return Models(**content)

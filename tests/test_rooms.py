"""Imports go down only: between packages, between the rooms of a package, and never in a circle between files."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# a package imports from those of lower floors, and from itself
FLOORS = [
    ("ingest",), ("quality", "simulate"), ("engine",), ("report",), ("drivetail",), ("console",), ("dags", "workbench"), ("lab", "study"),
]  # fmt: skip
PROJECTS = ("lab", "study")
LAB = """
contract archives statistics dbt_plugin tools bundle landing simulate run toleraid runs_store version generations build read
ask pages cli bench plugin
"""
# a room of a package imports from the rooms before it; a file that is in none is named like a room, the package itself comes last
ROOMS = {
    "ingest": ["contract", "reading", "raw", "sources", "run", "worker", ""],
    "lab": [*LAB.split(), ""],
    "quality": ["frames", "history", "suites", "gate", "page", ""],
    "report": ["words", "page", "weekly", ""],
    "study": ["words", "table", "pages", "cli", "plugin", "calibration", ""],
    "console": ["measures", "cells", "figures", "published", "blocks", "ask", "guard", "pages", "app", "serve", ""],
    "drivetail": ["path", "", "terminal", "service", "ask", "feeds", "tell", "host", "demo", "cli", "__main__"],
}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for package in sorted(name for floor in FLOORS for name in floor):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[0] in PROJECTS and parts[1] in ("models", "tests"):  # a dbt project's, and tests
                continue
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(module: str) -> set[str]:
    """The project's modules that a module names in its imports, those for type checkers and within functions too."""
    named = set()
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            whole = {f"{node.module}.{each.name}" for each in node.names}
            named |= {name if name in modules() else str(node.module) for name in whole}
        elif isinstance(node, ast.Import):
            named |= {each.name for each in node.names}
    return (named & set(modules())) - {module}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_package_imports_from_lower_floors_only():
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    package = {module: module.split(".")[0] for module in modules()}
    upwards = [
        f"{module} -> {other}"
        for module in modules()
        for other in imports(module)
        if package[module] != package[other] and floor[package[other]] >= floor[package[module]]
    ]
    assert upwards == []


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_imports_from_the_rooms_before_it(package: str):
    order = ROOMS[package]
    inside = [module for module in modules() if module.split(".")[0] == package]
    assert {room(module) for module in inside} == set(order), "a room is missing in the list"
    upwards = [
        f"{module} -> {other}"
        for module in inside
        for other in imports(module)
        if other in inside and order.index(room(other)) > order.index(room(module))
    ]
    assert upwards == []


def test_no_files_import_each_other_in_a_circle():
    try:
        TopologicalSorter({module: imports(module) for module in modules()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("project", PROJECTS)
def test_nothing_outside_a_project_names_a_module_of_it(project: str):
    """Also not in a text, which a plug-in or a test's child process might import."""
    folders = [*sorted({package for floor in FLOORS for package in floor} - {project}), "tests"]
    outside = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if path != Path(__file__)]
    rooms = "|".join(filter(None, ROOMS[project]))
    named = re.compile(rf"\bfrom {project}[.\w]* import\b|\bimport {project}\b(?! as)|[\"']{project}\.(?:{rooms})\b")
    assert [str(path) for path in outside if named.search(path.read_text(encoding="utf-8"))] == []


def test_only_its_command_knows_the_reproduction_of_the_papers():
    """And of the projects only a benchmark and the calibration know the workbench."""
    papers = {"lab.ask.study", "lab.simulate.papers"}
    knowing = {module for module in modules() if imports(module) & papers}
    assert knowing == {"lab.cli.lab"}
    assert {module for module in modules() if any(other.startswith("workbench") for other in imports(module))} - {
        module for module in modules() if module.startswith("workbench")
    } == {"lab.bench", "study.calibration"}
    models = [path for path in (ROOT / "lab/models").rglob("*.sql") if path.parent.name != "papers"]
    assert not [path for path in models if "lab_study_results" in path.read_text() or "experiment_numbers" in path.read_text()]

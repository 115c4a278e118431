"""Each example in the documentation is run by a test, or is listed with the reason that it is not: one that no longer works fails here."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from drivetail.ask.sql import run_query
from drivetail.cli import main
from drivetail.service.settings import Settings
from engine.projects import built_models
from engine.warehouse import PROJECT, Warehouse
from workbench.pictures import PICTURES

pytestmark = pytest.mark.xdist_group("report")

PAGES = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "llms.txt", "models/custom/README.md")),
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "lab/docs").rglob("*.md")),
    *sorted((PROJECT / "study/docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN = {
    ("docs/agents.md", "json"): "tests/console/test_mcp.py",
    ("docs/cookbook.md", "sql"): "tests/report/test_cookbook.py",
    ("docs/cookbook.md", "python"): "tests/report/test_cookbook.py",
    ("docs/sources/prometheus.md", "yaml"): "tests/ingest/test_prometheus_dialects.py",
    ("models/custom/README.md", "sql"): "tests/drivetail/test_custom_models.py",
    ("models/custom/README.md", "yaml"): "tests/drivetail/test_custom_models.py",
}
"""Page and language -> the test that runs its examples. Settings (`toml`) and commands (`text`) of every page are run here."""
NOT_RUN = {
    ("docs/cookbook.md", "r"): "R is not installed where the tests run",
    ("CONTRIBUTING.md", "sql"): "a change of the project's own models, which a test must not make",
    ("CONTRIBUTING.md", "yaml"): "a change of the project's own models, which a test must not make",
    ("docs/quality-gate.md", "json"): "an expectation to add to a suite: its own tests read the suites",
}


def named(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """The examples in a language: page, text."""
    for page in PAGES:
        for said, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if said == language:
                yield named(page), text


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each call of drivetail in a block or between backticks: page, its arguments up to a pipe, a comment or what follows it."""
    inline = [(named(page), "\n".join(re.findall(r"`(drivetail [^`\n]+)`", page.read_text(encoding="utf-8")))) for page in PAGES]
    # a decision names what was considered, too
    for page, text in [*blocks("text"), *blocks("console"), *inline]:
        for found in () if page.startswith("docs/decisions") else re.finditer(r"(?m)^(?:\$ )?drivetail (.*)", text):
            # a question may take several lines
            for end in (found.end(), *(each.end() for each in re.finditer(r".*\n", text[found.end() :]))):
                whole = found[1].partition("   ")[0] if end == found.end() else text[found.start(1) : found.end() + end]
                try:
                    words = shlex.split(whole.replace("\\\n", " "), comments=True)
                except ValueError:
                    continue
                ends = [at for at, word in enumerate(words) if word in ("|", ">", "&&", "||", ";", "&") or word.startswith(">")]
                yield page, words[: min(ends, default=len(words))]
                break


def test_each_example_is_run_or_is_listed_with_a_reason() -> None:
    languages = {(named(page), language) for page in PAGES for language, _ in BLOCK.findall(page.read_text(encoding="utf-8"))}
    others = {each for each in languages if each[1] not in ("toml", "text", "console")}
    assert others == RUN.keys() | NOT_RUN.keys()
    assert not RUN.keys() & NOT_RUN.keys()
    for (page, _), test in RUN.items():
        assert Path(page).name in (PROJECT / test).read_text(encoding="utf-8"), f"{test} reads no {page}"


def test_a_documented_command_and_its_options_exist() -> None:
    wrong, seen = [], 0
    for page, words in commands():
        command: click.Command = main
        options = {name for option in main.params for name in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}
        rest = list(words)
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-") and rest[0].islower():
            found = command.get_command(click.Context(command), rest[0])
            if found is None:
                wrong.append(f"{page}: drivetail {' '.join(words)}: no command {rest[0]}")
                break
            command, rest = found, rest[1:]
            options |= {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        wrong += [f"{page}: drivetail {' '.join(words)}: no option {name}" for name in sorted(given - options)]
        seen += 1
    assert wrong == []
    assert seen > 200


def test_a_documented_question_has_an_answer(demo: Warehouse) -> None:
    questions = {(page, words[-1]) for page, words in commands() if words[:1] == ["sql"] and " " in words[-1] and page != "CONTRIBUTING.md"}
    assert len(questions) > 5
    for page, question in sorted(questions):
        if not re.search(r"\b(custom|lab)\.|[A-Z]{4,}", question):  # of a model of one's own, of the lab, of a DRIVE
            assert run_query(demo, question, "csv", None, 5), (page, question)


def test_the_pictures_of_the_pages_are_those_that_a_command_takes() -> None:
    shown = {page.parent / name for page in PAGES for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8"))}
    assert shown == {PROJECT / name for name in PICTURES} == set(PROJECT.glob("docs/**/*.png"))
    assert [str(picture) for picture in shown if picture.stat().st_size > 200_000] == []


def test_documented_settings_are_settings() -> None:
    seen = 0
    for _, text in blocks("toml"):
        if "experiment_id" in text:  # of the lab, whose own tests read it
            tomllib.loads(text)
        else:
            Settings.model_validate(tomllib.loads(text))
            seen += 1
    assert seen > 5


def test_the_map_for_language_models_leads_to_pages_and_tables_that_exist() -> None:
    pages, _, tables = (PROJECT / "llms.txt").read_text(encoding="utf-8").partition("## Tables with a contract")
    links = re.findall(r"\]\(([^)]+)\)", pages)
    assert links and [link for link in links if not (PROJECT / link).is_file()] == []
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^- (.*?): ", tables, re.MULTILINE)))
    contracted = {node.name for node in built_models({}) if node.schema == "marts" and node.has_contract}
    assert named and set(named) <= contracted

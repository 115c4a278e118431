"""README.md, command by command, on the demo: each works as printed and answers as shown, numbers included."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.warehouse import Warehouse
from tests.report.conftest import demo_bundle

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)

pytestmark = pytest.mark.xdist_group("report")


def plain_commands() -> list[str]:
    """The lines that are commands and show no output."""
    return [line.partition("  ")[0].strip() for block in BLOCKS for line in block.splitlines() if line.startswith("drivetail ")]


def shown_commands() -> Iterator[tuple[str, list[str]]]:
    """Each command after `$ `, which may take several lines, and the lines shown below it."""
    for block in BLOCKS:
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            lines = part.splitlines()
            count = next(count for count in range(1, len(lines) + 1) if is_whole("\n".join(lines[:count])))
            yield "\n".join(lines[:count]), lines[count:]


def is_whole(command: str) -> bool:
    try:
        return bool(shlex.split(command))
    except ValueError:
        return False


@pytest.fixture(scope="module")
def mine(demo: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A copy of the demo's warehouse on which nobody has decided; README's own commands build and publish it."""
    root = tmp_path_factory.mktemp("readme") / "warehouse"
    shutil.copytree(demo.root, root)
    (root / "raw" / "decisions.jsonl").unlink()
    for command in plain_commands():
        if not command.startswith("drivetail --help"):
            run(Warehouse(root), command.replace("DELIVERY/", str(demo_bundle())))
    return Warehouse(root)


def run(warehouse: Warehouse, command: str) -> str:
    done = CliRunner().invoke(main, shlex.split(command)[1:], env={"DRIVETAIL_WAREHOUSE": str(warehouse.root)})
    assert done.exit_code == 0, f"{command}: {done.output}"
    return done.output


def test_the_commands_without_output_are_there() -> None:
    assert plain_commands() == ["drivetail ingest bundle DELIVERY/", "drivetail build", "drivetail report"]


@pytest.mark.parametrize(("command", "expected"), list(shown_commands()), ids=lambda value: value[:30] if isinstance(value, str) else "")
def test_a_command_answers_as_shown(command: str, expected: list[str], mine: Warehouse) -> None:
    words, at = run(mine, command).split(), 0
    for line in expected:
        for part in filter(None, map(str.split, line.split("..."))):
            at = next((n for n in range(at, len(words)) if words[n : n + len(part)] == part), len(words))
            assert at < len(words), line
            at += len(part)

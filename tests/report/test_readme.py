"""README.md, command by command, on the demo: each works as printed and answers as shown, numbers included."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.warehouse import Warehouse
from tests.ingest.prometheus_server import Server, counted_drives, serving

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
    """A copy of the demo's warehouse without decisions, built and published."""
    root = tmp_path_factory.mktemp("readme") / "warehouse"
    shutil.copytree(demo.root, root)
    (root / "raw" / "decisions.jsonl").unlink()
    run(Warehouse(root), "drivetail build")
    return Warehouse(root)


def run(warehouse: Warehouse, command: str) -> str:
    done = CliRunner().invoke(main, shlex.split(command)[1:], env={"DRIVETAIL_WAREHOUSE": str(warehouse.root)})
    assert done.exit_code == 0, f"{command}: {done.output}"
    return done.output


def test_the_commands_on_a_fleet_write_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has scraped three drives of a host for the last 26 hours takes the place of the reader's. It answers what a pull asks;
    tests/proof/test_prometheus_answers.py asks the doctor of a real one.
    """
    monkeypatch.chdir(tmp_path)
    commands = plain_commands()
    assert [command.split()[1] for command in commands] == ["doctor", "ingest", "build", "report"]
    now = time.time() // 60 * 60
    begins = datetime.fromtimestamp(now - 26 * 3600, UTC)
    with serving(Server(counted_drives(now - 26 * 3600, now))) as server:
        for command in commands[1:]:
            there = re.sub(r"--from \S+", f"--from {begins:%Y-%m-%dT%H}", command.replace("http://prometheus:9090", server.url))
            run(Warehouse(tmp_path / "warehouse"), there)
    assert list((tmp_path / "warehouse").rglob("*.html")) or list(tmp_path.glob("*.html"))


@pytest.mark.parametrize(("command", "expected"), list(shown_commands()), ids=lambda value: value[:30] if isinstance(value, str) else "")
def test_a_command_answers_as_shown(command: str, expected: list[str], mine: Warehouse) -> None:
    words, at = run(mine, command).split(), 0
    for line in expected:
        for part in filter(None, map(str.split, line.split("..."))):
            at = next((n for n in range(at, len(words)) if words[n : n + len(part)] == part), len(words))
            assert at < len(words), line
            at += len(part)

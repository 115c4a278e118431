"""A server that runs the `drivetail` command in forks: imports and the parsed project are warm, everything else is the real command.

A cold `drivetail build` spends 10 s on importing dbt and parsing the models before it does anything worth killing. This process does
that once and forks; the child runs the command's own entry point in a process group of its own, so kill -9 hits what it hits for real.

A request may name a step to die at: the n-th operation on files (from 0) after a phase has been noted in the log. The child then
kills itself right before that operation, which reaches phases of a millisecond, every step of them, repeatably.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.proof.support import ROOT, environment

OPERATIONS = {"open", "os.mkdir", "os.remove", "os.rename", "os.link", "os.rmdir", "os.scandir", "shutil.rmtree"}
"""Audit events of Python that a step is counted by. An fsync has none, but each opens its file first."""


class Forks:
    """The server, seen from a test."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.output = folder / "commands.log"
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.proof.forks", str(folder)],
            cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.output.open("ab"), text=True,
        )  # fmt: skip
        assert self._answer()["ready"]

    def start(self, *arguments: object, phase: str | None = None, step: int | None = None) -> int:
        """Fork a command. Returns: its process id, which is also its process group."""
        assert self._server.stdin
        self._server.stdin.write(json.dumps({"arguments": [str(a) for a in arguments], "phase": phase, "step": step}) + "\n")
        self._server.stdin.flush()
        return int(self._answer()["pid"])

    def finish(self) -> tuple[int, dict[str, list[str]]]:
        """Wait for it to end. Returns: exit code, negative the signal that ended it; and the steps of each phase."""
        answer = self._answer()
        return answer["code"], answer["steps"]

    def run(self, *arguments: object) -> dict[str, list[str]]:
        """Run a command to its end. Returns: the steps of each phase, by the names of their operations."""
        self.start(*arguments)
        code, steps = self.finish()
        assert code == 0, f"drivetail {' '.join(map(str, arguments))}: exit {code}\n{self.output.read_text()[-3000:]}"
        return steps

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin
        self._server.stdin.close()
        self._server.wait(60)

    def _answer(self) -> dict[str, Any]:
        assert self._server.stdout
        line = self._server.stdout.readline()
        assert line, f"the server has ended:\n{self.output.read_text()[-3000:]}"
        answer: dict[str, Any] = json.loads(line)
        return answer


def serve(folder: Path) -> None:
    """Answer requests from standard input until it closes."""
    from drivetail.dbt import Project
    from drivetail.warehouse import Warehouse

    warm = Warehouse(folder / "warm")
    warm.create()
    Project(warm)  # parses; connects to nothing, so that no thread of an engine is lost in a fork
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what commands print goes to the log of the server
    say(answers, ready=True)
    steps_file = folder / "steps.json"
    for line in sys.stdin:
        request = json.loads(line)
        steps_file.write_text("{}")
        child = os.fork()
        if child == 0:
            os.setsid()
            run(request["arguments"], request["phase"], request["step"], steps_file)
        say(answers, pid=child)
        _, status = os.waitpid(child, 0)
        say(answers, code=os.waitstatus_to_exitcode(status), steps=json.loads(steps_file.read_text()))


def say(answers: Any, **answer: Any) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def run(arguments: list[str], phase: str | None, step: int | None, steps_file: Path) -> None:
    """In the child: run the command, counting steps by phase; never returns."""
    import drivetail.cli
    from drivetail.warehouse import Warehouse

    note = Warehouse.note
    now = ""
    steps: dict[str, list[str]] = {}

    def noted(self: Warehouse, name: str, **progress: object) -> None:
        nonlocal now
        note(self, name, **progress)
        now = name
        steps.setdefault(name, [])

    def count(event: str, _: object) -> None:
        if now and event in OPERATIONS:
            if now == phase and len(steps[now]) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            steps[now].append(event)

    Warehouse.note = noted  # type: ignore[method-assign]
    sys.addaudithook(count)
    code = 1
    try:
        drivetail.cli.main(arguments)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 0 if ending.code is None else 1
    finally:
        sys.stdout.flush()
        now = ""
        steps_file.write_text(json.dumps(steps))
        os._exit(code)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

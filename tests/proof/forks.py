"""A server that runs the `drivetail` command in forks: imports and the compiled models are warm, everything else is the real command.

This process imports and reads them once and forks; the child runs the command's own entry point in a process group of its own, so kill -9
hits what it hits for real.

A request may name a step to die at: the n-th operation on files (from 0) after a phase has been noted in the log. The child then
kills itself right before that operation, which reaches phases of a millisecond, every step of them, repeatably.

A request may also take something away from the child: room on the disk, memory, or a clock that is right (Strain).
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.proof.support import ROOT, environment

OPERATIONS = {"open", "os.mkdir", "os.remove", "os.rename", "os.link", "os.rmdir", "os.scandir", "shutil.rmtree"}
"""Audit events of Python that a step is counted by. An fsync has none, but each opens its file first."""


@dataclass(frozen=True)
class Strain:
    """Limits of a command. file_bytes: no file can grow beyond (a full disk); clock_hours: how far its clock is off;
    variables: of its environment.
    """

    file_bytes: int | None = None
    clock_hours: float = 0
    variables: dict[str, str] = field(default_factory=dict)

    def apply(self) -> None:
        """Take it away from this process."""
        os.environ |= self.variables
        if self.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, resource.RLIM_INFINITY))
        if self.clock_hours:
            move_clock(timedelta(hours=self.clock_hours))


def move_clock(by: timedelta) -> None:
    """Every module of this process that looks at the clock sees another time."""
    import time

    import drivetail.feeds.inbox
    import engine.build
    import engine.warehouse

    class Moved(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + by

    right = time.time
    time.time = lambda: right() + by.total_seconds()
    for module in (drivetail.feeds.inbox, engine.build, engine.warehouse):
        module.datetime = Moved  # type: ignore[attr-defined]


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

    def start(self, *arguments: object, phase: str | None = None, step: int | None = None, strain: Strain | None = None) -> int:
        """Fork a command. Returns: its process id, which is also its process group."""
        assert self._server.stdin
        request = {"arguments": [str(a) for a in arguments], "phase": phase, "step": step, "strain": asdict(strain or Strain())}
        self._server.stdin.write(json.dumps(request) + "\n")
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

    def said(self, *arguments: object, strain: Strain | None = None) -> tuple[int, str]:
        """Run a command to its end. Returns: exit code, negative the signal that ended it; and what it printed."""
        offset = self.output.stat().st_size
        self.start(*arguments, strain=strain)
        code, _ = self.finish()
        return code, self.output.read_bytes()[offset:].decode()

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
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what commands print goes to the log of the server
    warm()
    say(answers, ready=True)
    steps_file = folder / "steps.json"
    for line in sys.stdin:
        request = json.loads(line)
        steps_file.write_text("{}")
        printed, prints = os.pipe()  # what it prints must not count as room on the disk
        child = os.fork()
        if child == 0:
            os.setsid()
            os.dup2(prints, 1)
            os.dup2(prints, 2)
            os.close(prints)
            Strain(**request["strain"]).apply()
            run(request["arguments"], request["phase"], request["step"], steps_file)
        say(answers, pid=child)
        os.close(prints)
        status = wait_for(child, printed)
        say(answers, code=os.waitstatus_to_exitcode(status), steps=json.loads(steps_file.read_text()))


def warm() -> None:
    """Import and read what every command needs; connect to nothing and import no dbt, or a fork would lack a thread of theirs."""
    import drivetail.cli  # noqa: F401
    import engine.build
    import engine.compiled
    from workbench.unit_tests import project_folders

    # where the models have changed
    subprocess.run([sys.executable, "-m", "engine.compiled", *map(str, project_folders())], cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    for place in project_folders():
        engine.compiled.models_of(project=place)


def wait_for(child: int, printed: int) -> int:
    """Pass on what a child prints until it has ended; a helper process it left behind may keep its end of the pipe. Returns: its status."""
    os.set_blocking(printed, False)
    status, ended = 0, False
    while True:
        ready, _, _ = select.select([printed], [], [], 0.0 if ended else 0.01)
        chunk = os.read(printed, 1 << 16) if ready else b""
        os.write(2, chunk)
        if ended and not chunk:
            os.close(printed)
            return status
        if not ended:
            pid, status = os.waitpid(child, os.WNOHANG)
            ended = pid != 0


def say(answers: Any, **answer: Any) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def run(arguments: list[str], phase: str | None, step: int | None, steps_file: Path) -> None:
    """In the child: run the command, counting steps by phase; never returns."""
    import drivetail.cli
    from engine.warehouse import Warehouse

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
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        now = ""
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        steps_file.write_text(json.dumps(steps))
        os._exit(code)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

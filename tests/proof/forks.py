"""The `drivetail` command in forks: imports and the compiled models are warm (warm.py), everything else is the real command.

The child runs the command's own entry point in a process group of its own, so kill -9 hits what it hits for real.

A command may name a step to die at: the n-th operation on files (from 0) after a phase has been noted in the log. The child then
kills itself right before that operation, which reaches phases of a millisecond, every step of them, repeatably.

Something may also be taken away from the child: room on the disk, memory, or a clock that is right (Strain).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import select
import signal
import sys
import traceback
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.proof.support import compile_models, environment

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.proof.warm"])

OPERATIONS = {"open", "os.mkdir", "os.remove", "os.rename", "os.link", "os.rmdir", "os.scandir", "shutil.rmtree"}
"""Audit events of Python that a step is counted by. An fsync has none, but each opens its file first."""

DELIVERY = {"hash", "read", "gate", "judge", "commit"}
"""Phases of a delivery, which a worker lands; `steps` of a command have those of its worker."""


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
    """Commands, one at a time. folder: for what they print, and for the steps of the last one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.output, self._steps = folder / "commands.log", folder / "steps.json"
        self.output.touch()
        compile_models()  # the server imports no dbt, of which a fork would lack a thread

    def start(self, *arguments: object, phase: str | None = None, step: int | None = None, strain: Strain | None = None) -> int:
        """Fork a command. Returns: its process id, which is also its process group."""
        self._steps.write_text("{}")
        # what it prints must not count as room on the disk
        self._printed, prints = SERVER.Pipe(duplex=False)
        asked = ([str(argument) for argument in arguments], phase, step, strain or Strain(), self._steps, prints)
        self._process = SERVER.Process(target=run, args=asked)
        self._process.start()
        prints.close()
        assert self._process.pid
        return self._process.pid

    def finish(self) -> tuple[int, dict[str, list[str]]]:
        """Wait for it to end. Returns: exit code, negative the signal that ended it; and the steps of each phase."""
        with self.output.open("ab") as log:
            while True:
                has_ended = not self._process.is_alive()
                # a helper process that it left behind may keep its end of the pipe
                ready, _, _ = select.select([self._printed], [], [], 0.0 if has_ended else 0.01)
                chunk = os.read(self._printed.fileno(), 1 << 16) if ready else b""
                log.write(chunk)
                if has_ended and not chunk:
                    break
        self._printed.close()
        assert self._process.exitcode is not None
        return self._process.exitcode, self.steps()

    def steps(self) -> dict[str, list[str]]:
        """Steps of each phase of the last command, by the names of their operations; empty when it was killed."""
        return json.loads(self._steps.read_text())

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


def run(arguments: list[str], phase: str | None, step: int | None, strain: Strain, steps_file: Path, prints: Connection) -> None:
    """In the child: run the command, counting steps by phase; never returns."""
    import drivetail.cli
    from engine.warehouse import Warehouse
    from ingest import worker

    os.setsid()
    for printed in (1, 2):
        os.dup2(prints.fileno(), printed)
    os.environ |= environment()
    strain.apply()
    note, say, call = Warehouse.note, worker._say, worker.Worker.call
    now = ""
    steps: dict[str, list[str]] = {}
    command, deliveries = os.getpid(), steps_file.with_suffix(".worker")

    def noted(self: Warehouse, name: str, **progress: object) -> None:
        nonlocal now
        note(self, name, **progress)
        now = name
        steps.setdefault(name, [])

    def called(*arguments: Any, **options: Any) -> Any:
        found = call(*arguments, **options)
        steps.update(json.loads(deliveries.read_text()))
        return found

    def said(pipe: Connection, what: str, *about: Any) -> None:
        nonlocal now
        now = ""
        deliveries.write_text(json.dumps({name: steps[name] for name in DELIVERY & set(steps)}))
        say(pipe, what, *about)
        if what == "progress":
            now = about[0]
            steps.setdefault(now, [])

    def count(event: str, _: object) -> None:
        if now and event in OPERATIONS and (os.getpid() != command or now not in DELIVERY):
            if now == phase and len(steps[now]) == step:
                os.killpg(0, signal.SIGKILL)
            steps[now].append(event)

    worker._say, worker.Worker.call = said, called  # type: ignore[method-assign]
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

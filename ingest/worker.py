"""A delivery is opened in a process of its own: what ends that process is an outcome of the file it was reading, and the others land.

The process is forked, so that it has all that is imported here. Where polars has run here, a fork would wait for ever for its threads, and
a new interpreter is started. It reads, judges and commits; this process passes its progress on, and looks at its time and memory.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ingest.contract.errors import StoreError
from ingest.reading.files import Watch
from ingest.reading.limits import Limits, bytes_of

T = TypeVar("T")

LOOK_SECONDS = 0.1
LEAVE_SECONDS = 5.0
"""Time to remove what was begun, for a process that is stopped."""
_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""


class Words(NamedTuple):
    """The words for what is done with a file, and for what to do where that ended the process, or exceeded a limit of the settings."""

    doing: str
    ended: str
    exceeded: str


READING = Words(
    "reading it",
    "it is damaged or made to do that: have it written again, or as CSV",
    "deliver it in parts, or raise `{}` of [deliveries] in drivetail.toml and ingest it again",
)


class _Ended(Exception):
    """The process ended. file: the one that it was reading, null between files; about: its fault, as fields of SourceFile."""

    def __init__(self, file: str | None, about: Mapping[str, Any]) -> None:
        super().__init__(about["fault"])
        self.file, self.about = file, about


class Worker:
    """Calls functions of `ingest` in a process that is started for the first call, and again after a death; ends with the `with` block."""

    def __init__(self, limits: Limits, words: Words = READING, *, forks: bool = True) -> None:
        """limits: of one file. forks: what runs here allows a fork."""
        self.limits, self.words, self.forks = limits, words, forks
        self._process: Any = None
        self._is_busy = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def call(
        self, function: Callable[..., T], *arguments: Any, on_progress: Callable[[str, int, int], None] | None = None, **options: Any
    ) -> T:
        """Call `function` with these arguments, an `on_progress` and a `watch`; the result is the function's, or its error.

        A file that ends the process is marked, and the function called again without it. Raises: StoreError where no file is to blame.
        """
        lost: dict[str, Mapping[str, Any]] = {}
        while True:
            try:
                return self._called(on_progress, (function, arguments, options, lost))  # type: ignore[no-any-return]
            except _Ended as ended:
                if ended.file is None or ended.file in lost:
                    raise StoreError(f"the process that did it ended ({ended}); nothing is lost: run it again") from None
                lost[ended.file] = ended.about

    def _called(self, on_progress: Callable[[str, int, int], None] | None, call: tuple[Any, ...]) -> Any:
        """Have the process do one call. Raises: what the call raises, and _Ended."""
        if self._process is None:
            self._start()
        file, began, held = None, 0.0, 0
        with suppress(BrokenPipeError):
            self._pipe.send(call)
        self._is_busy = True
        while True:
            if file is not None and (fault := self._excess(time.monotonic() - began, held)):
                self._is_busy = False  # it would go on for the time that it has to leave
                self._end()
                raise _Ended(file, {"fault": fault, "is_outside": True})
            if not self._pipe.poll(None if file is None else LOOK_SECONDS):
                continue
            try:
                what, *about = self._pipe.recv()
            except (EOFError, ConnectionResetError):
                self._process.join()
                code, self._process, self._is_busy = self._process.exitcode, None, False
                raise _Ended(file, self._fault(code, file)) from None
            match what:
                case "progress" if on_progress is not None:
                    on_progress(*about)
                case "file":
                    (file, held), began = about, time.monotonic()
                case "returned" | "raised":
                    self._is_busy = False
                    if what == "raised":
                        raise about[0]
                    return about[0]

    def _excess(self, seconds: float, held: int) -> str | None:
        """The limit that a file exceeds, and what to do."""
        if seconds > self.limits.seconds:
            fault, limit = f"{self.words.doing} takes longer than {self.limits.seconds:g} s", "seconds"
        elif _resident(self._process.pid) - held > bytes_of(self.limits.memory):
            fault, limit = f"{self.words.doing} takes more than {self.limits.memory} of memory", "memory"
        else:
            return None
        return f"{fault}; {self.words.exceeded.format(limit)}"

    def _fault(self, code: int, file: str | None) -> dict[str, Any]:
        """The outcome of the file that a process was reading when it ended."""
        name = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
        if file is None:
            return {"fault": name}
        ended = f"{self.words.doing} ended the process ({name})"
        if code == -signal.SIGKILL:
            return {"fault": f"{ended}; the machine is out of memory, or somebody stopped it", "is_retryable": True}
        return {"fault": f"{ended}; {self.words.ended}"}

    def _start(self) -> None:
        context = multiprocessing.get_context("fork" if self.forks and not _has_pool() else "spawn")
        self._pipe, its = context.Pipe()
        mine = self._pipe if context.get_start_method() == "fork" else None
        self._process = context.Process(target=_work, args=(its, mine, os.getpid()), daemon=True)  # type: ignore[attr-defined]
        self._process.start()
        its.close()

    def _end(self) -> None:
        """End the process; one at work first removes what it has begun."""
        process, self._process = self._process, None
        if process is not None:
            if self._is_busy:
                process.terminate()
                process.join(LEAVE_SECONDS)
            process.kill()
            process.join()
            self._pipe.close()
        self._is_busy = False


def _has_pool() -> bool:
    """Whether polars has started its threads in this process."""
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread may end meanwhile
            if name.read_text().startswith("polars-0"):
                return True
    return sys.platform != "linux"


def _resident(process: int | str) -> int:
    """Bytes of memory that a process holds; 0 where the system does not say."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _work(pipe: Connection, parents: Connection | None, parent: int) -> None:
    """In the process: do one call after the other, until nobody asks any more. It dies with its parent, at whatever it is."""
    if parents is not None:
        parents.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's: it stops this
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while os.getppid() == parent:
            function, arguments, options, lost = pipe.recv()
            watch = Watch(lambda file: _say(pipe, "file", file, _resident("self")), lost)
            try:
                found = function(*arguments, on_progress=lambda *done: _say(pipe, "progress", *done), watch=watch, **options)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a panic of polars is no Exception
                _say(pipe, "raised", _portable(error))
            else:
                _say(pipe, "returned", found)


def _say(pipe: Connection, *message: Any) -> None:
    pipe.send(message)


def _portable(error: BaseException) -> Any:
    """An error as another process can take it, with where it was raised."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # such as of a class that a library made up
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return ExceptionWithTraceback(error, error.__traceback__)

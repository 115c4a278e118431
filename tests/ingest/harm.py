"""The command, but that a delivered file does harm once it is opened, as its name says. Polars does not run here before the fork."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import drivetail.cli
from ingest.raw import copying
from ingest.reading import files, readers

HARM: dict[str, tuple[Callable[[], object], str]] = {
    "aborts": (os.abort, "signal 6, Aborted"),
    "faults": (lambda: ctypes.string_at(8), "signal 11, Segmentation fault"),
    "leaves": (lambda: os._exit(3), "exit code 3"),
    "is-killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal 9, Killed"),
    "loops": (lambda: endless(lambda: None), "longer than 4 s"),
    "waits": (lambda: time.sleep(600), "longer than 4 s"),
    "eats": (lambda: endless(lambda held=[]: held.append(bytearray(os.urandom(1) * (8 << 20)))), "more than 300MB of memory"),
}
"""The harm of a file whose name begins so, done once it is opened, and how its line says so."""


def endless(step: Callable[[], object]) -> None:
    while True:
        step()


def harm(file: str) -> None:
    """Do what a file of that name does."""
    name = file.rpartition("/")[2]
    for how, (does, _) in HARM.items():
        if name.startswith(how):
            does()


over = files.Watch.over


@contextmanager
def harmed(self: files.Watch, file: str) -> Iterator[None]:
    with over(self, file):
        harm(file)
        yield


if __name__ == "__main__":
    files.Watch.over = harmed  # type: ignore[method-assign]
    readers.refuse_encrypted = copying.refuse_encrypted = lambda path: None  # type: ignore[attr-defined]
    drivetail.cli.main()

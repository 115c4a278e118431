"""Registers: only whole lines count, and only they are kept."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
from pathlib import Path

import pytest

import ingest.raw.register
from engine.warehouse import Warehouse
from ingest.contract.errors import StoreError
from ingest.raw.register import Register


@pytest.fixture
def register(tmp_path: Path) -> Register:
    warehouse = Warehouse(tmp_path)
    warehouse.create()
    return Register(warehouse.raw, "said")


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 16])
@pytest.mark.parametrize(("before", "kept"), [("", []), ('{"n": 1}\n', [1]), ('{"n": 1}\n{"n": 2}\n{"n', [1, 2]), ('{"n": 1', [])])
def test_a_line_that_a_killed_writer_left_never_was(
    before: str, kept: list[int], block_bytes: int, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest.raw.register, "BLOCK_BYTES", block_bytes)
    register.path.write_text(before)
    assert [record["n"] for record in register.read()] == kept
    with register.locked():
        register.append([{"n": 8}, {"n": 9}])
    assert [record["n"] for record in register.read()] == [*kept, 8, 9]
    assert register.path.read_text().count("\n") == len(kept) + 2


def test_a_damaged_line_is_reported_or_left_out(register: Register) -> None:
    register.path.write_text('{"n": 1}\nnothing\n{"n": 3}\n')
    with pytest.raises(StoreError, match=r"said.jsonl: line 2: not a JSON record"):
        register.read()
    assert [record["n"] for record in register.read(skips_damaged=True)] == [1, 3]


@pytest.mark.parametrize("failing", ["file", "folder", "short"])
def test_a_record_that_is_not_on_the_disk_does_not_count(failing: str, register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    with register.locked():
        register.append([{"n": 1}])

        def refuse(number: int) -> None:
            if stat.S_ISDIR(os.fstat(number).st_mode) == (failing == "folder"):
                raise OSError(errno.EIO, "Input/output error")

        if failing == "short":
            resource_left = register.path.stat().st_size + 15  # the first line of two, and part of the second
            fork = os.fork()
            if fork == 0:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource_left, resource_left))
                try:
                    register.append([{"n": 8}, {"n": 9}])
                except OSError:
                    os._exit(7)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == 7
        else:
            monkeypatch.setattr(os, "fsync", refuse)
            with pytest.raises(OSError, match="Input/output error"):
                register.append([{"n": 8}, {"n": 9}])
        monkeypatch.undo()
        assert [record["n"] for record in register.read()] == [1]
        register.append([{"n": 2}])
    assert [record["n"] for record in register.read()] == [1, 2]

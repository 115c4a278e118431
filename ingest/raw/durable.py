"""Files that survive a power cut: written next to their place, synced to disk, renamed into it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path


def sync(path: Path) -> None:
    """Bring a file, or the entries of a folder, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_tree(folder: Path) -> None:
    """Bring a folder and all that is in it to the disk."""
    for below, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(below, name))
        sync(Path(below))


def draft_in(staging: Path, kind: str) -> Path:
    """Where a folder is made, under a name that no other call uses. The next ingest removes what a kill leaves."""
    return staging / f"{os.getpid()}-{secrets.token_hex(4)}.{kind}"


def put_folder(draft: Path, target: Path) -> None:
    """Rename a folder into place, with all that is in it on the disk: readers see the whole of it or nothing."""
    sync_tree(draft)
    os.rename(draft, target)
    sync(target.parent)


def replace_file(path: Path, content: str | bytes) -> Path:
    """Write a file in one step: a reader sees the old one or the new one. Drafts of killed calls are removed. Returns: the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove(left_by_killed_calls(path, "draft"))
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_bytes(content) if isinstance(content, bytes) else draft.write_text(content, encoding="utf-8")
        sync(draft)
        os.replace(draft, path)
        sync(path.parent)
    finally:
        draft.unlink(missing_ok=True)
    return path


def remove_folder(folder: Path, staging: Path) -> None:
    """Remove a folder: it is there whole, or not at all. staging: see draft_in()."""
    gone = draft_in(staging, "gone")
    os.rename(folder, gone)
    gone.unlink() if gone.is_symlink() else shutil.rmtree(gone, ignore_errors=True)


def left_by_killed_calls(out: Path, what: str) -> list[Path]:
    """The files `.NAME.PID.what` (with logs beside them) for a place, of processes that have ended."""
    name = re.compile(rf"\.{re.escape(out.name)}\.(\d+)\.{what}(\..*)?")
    found = ((name.fullmatch(path.name), path) for path in out.parent.iterdir())
    return [path for match, path in found if match and not _is_alive(int(match[1]))]


def _is_alive(pid: int) -> bool:
    """Whether another process has this id. In a container, one that was killed may have had ours."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def remove(paths: Iterable[Path]) -> None:
    """Remove files and folders, those that are gone already too."""
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

"""Files that survive a power cut: written next to their place, synced to disk, renamed into it."""

from __future__ import annotations

import os
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


def put_folder(draft: Path, target: Path) -> None:
    """Rename a folder into place, with all that is in it on the disk: readers see the whole of it or nothing."""
    sync_tree(draft)
    os.rename(draft, target)
    sync(target.parent)


def replace_file(path: Path, content: str | bytes) -> Path:
    """Write a file in one step: a reader sees the old one or the new one. Returns: the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_bytes(content) if isinstance(content, bytes) else draft.write_text(content, encoding="utf-8")
        sync(draft)
        os.replace(draft, path)
        sync(path.parent)
    finally:
        draft.unlink(missing_ok=True)
    return path

"""Where the files of a delivery lie: folders, single files and archives -> what one source takes from them."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO

from ingest.contract.errors import IngestError, UnreadableFile
from ingest.reading.limits import too_large, unpacked_limit
from ingest.reading.text import one_line, utf8

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
MAX_MEMBERS = 200_000
LANDED, UNREADABLE, ALREADY_LANDED, QUARANTINED = "landed", "unreadable", "already landed", "quarantined"


@dataclass(frozen=True)
class SourceFile:
    """One delivered file: `path` is where its bytes are now, `file` the name it is known by (absolute path, archive
    members as `/path/a.tar.gz!member`), `name` its path relative to what was given, `record_kind` what it holds.
    `fault` is set where the file cannot be read at all, such as a hostile archive; with `is_outside` it is not even opened.
    """

    path: Path
    file: str
    name: str
    record_kind: str | None
    fault: str | None = None
    is_outside: bool = False


@dataclass
class FileResult:
    """One file of a call. Counts are rows of the file (for `perseus` samples, for `fio` disks of an array), judged as it came:
    delivered = accepted + rejected + duplicate + superseded. A file `already landed`, `quarantined` or `dropped` counts nothing.
    """

    file: str
    record_kind: str | None
    status: str = LANDED
    rows_delivered: int = 0
    rows_accepted: int = 0
    rows_rejected: int = 0
    rows_duplicate: int = 0
    rows_superseded: int = 0
    notes: list[str] = field(default_factory=list)
    sha256: str = ""
    file_no: int | None = None
    ingested_at: datetime | None = None

    @property
    def note(self) -> str | None:
        """What is worth saying about the file; for an unreadable one, why."""
        return utf8("; ".join(self.notes)) or None


# A source says what a file holds by its relative name and its absolute parts; None where it does not belong to it.
Recognise = Callable[[PurePosixPath, PurePosixPath], str | None]


def find_files(paths: Sequence[str | Path], recognise: Recognise, unpack_to: Path) -> tuple[list[SourceFile], list[str]]:
    """Every file under `paths` that the source recognises, sorted by path, each once; and notes on what was left out.

    Archives given as a path are unpacked into `unpack_to`. Raises: IngestError for a path that does not exist.
    """
    found: dict[str, SourceFile] = {}
    notes: list[str] = []
    for number, given in enumerate(paths):
        root = Path(os.path.abspath(given))
        if not root.exists():
            raise IngestError(f"{given}: no such file or directory; give a folder, a file or an archive of the delivery")
        if not root.is_dir() and not root.is_file():
            raise IngestError(f"{given}: neither a file nor a directory; give a folder, a file or an archive of the delivery")
        if root.is_dir():
            entries = list(_walk(root))
            inside = root.resolve()
            for path in entries:
                _take(found, path, str(path), PurePosixPath(path.relative_to(root).as_posix()), PurePosixPath(path.as_posix()), recognise)
                # the sender may lay a link, but not choose what this machine reads
                if str(path) in found and path.is_symlink() and not path.resolve().is_relative_to(inside):
                    fault = "a link that leads out of the delivery, which is not followed; send the file itself"
                    found[str(path)] = replace(found[str(path)], fault=fault, is_outside=True)
            skipped = [path.name for path in entries if str(path) not in found]
            if skipped:
                shown = ", ".join(skipped[:5]) + (f" and {len(skipped) - 5} more" if len(skipped) > 5 else "")
                notes.append(f"{root}: left out files that do not belong to the source: {shown}")
        elif root.name.lower().endswith(ARCHIVE_SUFFIXES):
            try:
                for path, member in unpack(root, unpack_to / str(number), recognise):
                    shown_as = f"{root}!{member}"
                    _take(found, path, shown_as, PurePosixPath(member), PurePosixPath(root.as_posix()) / member, recognise)
            except UnreadableFile as error:
                found[str(root)] = SourceFile(root, str(root), root.name, None, str(error))
        else:
            _take(found, root, str(root), PurePosixPath(root.name), PurePosixPath(root.as_posix()), recognise)
    return [found[file] for file in sorted(found)], notes


def _take(
    found: dict[str, SourceFile], path: Path, file: str, relative: PurePosixPath, absolute: PurePosixPath, recognise: Recognise
) -> None:
    record_kind = recognise(relative, absolute)
    if record_kind is not None:
        found[file] = SourceFile(path, file, str(relative), record_kind)


def _walk(root: Path) -> Iterator[Path]:
    """Regular files below a folder, in order; hidden ones and half-written ones (`_`, `.`) are no delivery.

    A link to a folder is not entered.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith((".", "_")) and path.is_file():
                yield path


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# Archives --------------------------------------------------------------------------------------------------------


@dataclass
class _Member:
    name: str
    size: int
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, into: Path, recognise: Recognise) -> list[tuple[Path, str]]:
    """Unpack what the source recognises; returns (file on disk, member name).

    Raises: UnreadableFile for an archive that is broken, holds a member that leaves it (absolute path, `..`), a link or
    a device, or unpacks to more than `limits.MAX_EXPANSION` times its size. Then nothing of it is taken.
    """
    limit = unpacked_limit(archive)
    taken: list[tuple[Path, str]] = []
    try:
        with _members(archive) as members:
            total = 0
            for count, member in enumerate(members):
                if count >= MAX_MEMBERS:
                    raise UnreadableFile(f"the archive holds more than {MAX_MEMBERS} members; split it")
                relative = PurePosixPath(member.name)
                parts = relative.parts
                if any(part.startswith((".", "_")) for part in parts):
                    continue
                if recognise(relative, PurePosixPath(archive.as_posix()) / relative) is None:
                    continue
                # numbered folders: two members of one name, or names that differ by case only, do not meet on disk
                target = into / str(count) / relative.name
                target.parent.mkdir(parents=True)
                with member.open() as source, target.open("wb") as sink:
                    while block := source.read(1 << 20):
                        total += len(block)
                        if total > limit:
                            raise UnreadableFile(too_large("the archive", limit))
                        sink.write(block)
                taken.append((target, member.name))
    except UnreadableFile:
        shutil.rmtree(into, ignore_errors=True)
        raise
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        shutil.rmtree(into, ignore_errors=True)
        raise UnreadableFile(f"the archive cannot be read: {one_line(error)}") from error
    return taken


def _checked(name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or (len(name) > 1 and name[1] == ":"):
        raise UnreadableFile(f"archive member {name!r} would be written outside the archive; nothing was taken from the archive")
    return str(path)


@contextmanager
def _members(archive: Path) -> Iterator[Iterator[_Member]]:
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            yield _zip_members(zipped)
    else:
        with tarfile.open(archive) as tarred:
            yield _tar_members(tarred)


def _zip_members(zipped: zipfile.ZipFile) -> Iterator[_Member]:
    for info in zipped.infolist():
        name = _checked(info.filename)
        if (info.external_attr >> 28) not in (0, 0o4, 0o10):  # neither unknown, folder nor regular file
            raise UnreadableFile(f"archive member {name!r} is a link or device; expected files only")
    for info in zipped.infolist():
        if not info.is_dir():
            yield _Member(_checked(info.filename), info.file_size, lambda info=info: zipped.open(info))  # type: ignore[misc]


def _tar_members(tarred: tarfile.TarFile) -> Iterator[_Member]:
    for info in tarred:
        name = _checked(info.name)
        if info.isdir():
            continue
        if not info.isfile():
            raise UnreadableFile(f"archive member {name!r} is a link or device; expected files only")
        stream = tarred.extractfile(info)
        if stream is not None:
            yield _Member(name, info.size, lambda stream=stream: stream)  # type: ignore[misc]

"""Where the files of a delivery lie: folders, single files and archives -> what one source takes from them."""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from ingest.contract.errors import IngestError, UnreadableFile
from ingest.reading.limits import too_large, unpacked_limit
from ingest.reading.text import file_name, one_line, utf8

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
MAX_MEMBERS = 200_000
LONGEST_NAME_BYTES, LONGEST_PATH_BYTES = 255, 4095
"""The longest name of a file and the longest path that Linux takes."""
_OF_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL)
"""System errors caused by a file, not by this machine."""

LANDED, UNREADABLE, ALREADY_LANDED, QUARANTINED = "landed", "unreadable", "already landed", "quarantined"


@dataclass(frozen=True)
class SourceFile:
    """One delivered file: `path` is where its bytes are now, `file` the name it is known by (absolute path, archive
    members as `/path/a.tar.gz!member`), `name` its path relative to what was given, `record_kind` what it holds.
    `fault` is set where the file cannot be read at all, such as a hostile archive; with `is_outside` it is not even opened.
    `is_retryable`: the fault is one of this machine, such as a permission.
    """

    path: Path
    file: str
    name: str
    record_kind: str | None
    fault: str | None = None
    is_outside: bool = False
    is_retryable: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the path that it is known by, those within an archive too."""
        return PurePosixPath(self.file.replace("!", "/")).parts[1:]

    @property
    def folder(self) -> str:
        """The name of the folder it is in."""
        return self.parts[-2] if len(self.parts) > 1 else "unknown"


@dataclass
class FileResult:
    """One file of a call. Counts are rows of the file (for `perseus` samples, for `fio` disks of an array), judged as it came:
    delivered = accepted + rejected + duplicate + superseded. A file `already landed`, `quarantined` or `dropped` counts nothing.
    is_retryable: it is unreadable for a reason of this machine; read again, it may land.
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
    is_retryable: bool = False

    @property
    def note(self) -> str | None:
        """Note on the file; for an unreadable one, why."""
        return utf8("; ".join(self.notes)) or None


@dataclass(frozen=True)
class Watch:
    """For who survives the process that opens files: which one it opens now, null when it is through.

    lost: files that ended such a process, by name, each with fields of SourceFile that say so; they are not opened again.
    """

    on_file: Callable[[str | None], object] = lambda file: None
    lost: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @contextmanager
    def over(self, file: str) -> Iterator[None]:
        """While a file is opened."""
        self.on_file(file)
        try:
            yield
        finally:
            self.on_file(None)


# A source says what a file holds by its relative name and its absolute parts; None where it does not belong to it.
Recognise = Callable[[PurePosixPath, PurePosixPath], str | None]


def named(record_kind: str, pattern: str) -> Recognise:
    """Recognises files by their names, a regular expression of the whole name in lower case."""
    return lambda relative, absolute: record_kind if re.fullmatch(pattern, relative.name.lower()) else None


def find_files(
    paths: Sequence[str | Path], recognise: Recognise, unpack_to: Path, warehouse: Path | None = None, watch: Watch | None = None
) -> tuple[list[SourceFile], list[str]]:
    """Every file under `paths` that the source recognises, sorted by path, each once; and notes on what was left out.

    Archives given as a path are unpacked into `unpack_to`, lost ones are not. warehouse: where it lies in a folder, its files are no
    delivery.
    Raises: IngestError for a path that does not exist.
    """
    found: dict[str, SourceFile] = {}
    notes: list[str] = []
    watch = watch or Watch()
    for number, given in enumerate(paths):
        root = Path(os.path.abspath(given))
        if not root.exists():
            raise IngestError(f"{given}: no such file or directory; give a folder, a file or an archive of the delivery")
        if not root.is_dir() and not root.is_file():
            raise IngestError(f"{given}: neither a file nor a directory; give a folder, a file or an archive of the delivery")
        if root.is_dir():
            inside = root.resolve()
            skipped = []
            for path, closed in _walk(root, warehouse and warehouse.resolve()):
                if closed is not None:  # a folder, too: what is in it is not known
                    found[file_name(path)] = closed
                    continue
                file = _take(found, path, file_name(path), file_name(path.relative_to(root)), PurePosixPath(path.as_posix()), recognise)
                if file is None:
                    skipped.append(file_name(path.name))
                # the sender may lay a link, but not choose what this machine reads
                elif path.is_symlink() and not path.resolve().is_relative_to(inside):
                    fault = "a link that leads out of the delivery, which is not followed; send the file itself"
                    found[file.file] = replace(file, fault=fault, is_outside=True)
            if skipped:
                shown = ", ".join(skipped[:5]) + (f" and {len(skipped) - 5} more" if len(skipped) > 5 else "")
                notes.append(f"{root}: left out files that do not belong to the source: {shown}")
        elif root.name.lower().endswith(ARCHIVE_SUFFIXES):
            if file_name(root) in watch.lost:
                found[file_name(root)] = SourceFile(root, file_name(root), file_name(root.name), None)
                continue
            try:
                with watch.over(file_name(root)):
                    members = unpack(root, unpack_to / str(number), recognise)
                for path, member in members:
                    shown_as = f"{file_name(root)}!{file_name(member)}"
                    _take(found, path, shown_as, file_name(member), PurePosixPath(root.as_posix()) / member, recognise)
            except UnreadableFile as error:
                name, passes = file_name(root.name), is_of_machine(error)
                found[file_name(root)] = SourceFile(root, file_name(root), name, None, str(error), is_retryable=passes)
        else:
            _take(found, root, file_name(root), file_name(root.name), PurePosixPath(root.as_posix()), recognise)
    return [found[file] for file in sorted(found)], notes


def _take(
    found: dict[str, SourceFile], path: Path, file: str, name: str, absolute: PurePosixPath, recognise: Recognise
) -> SourceFile | None:
    """Add a file that belongs to the source. Returns: it, null for another."""
    record_kind = recognise(PurePosixPath(name), absolute)
    if record_kind is None:
        return None
    found[file] = SourceFile(path, file, name, record_kind)
    return found[file]


def _walk(root: Path, warehouse: Path | None) -> Iterator[tuple[Path, SourceFile | None]]:
    """Regular files below a folder, in order; hidden ones and half-written ones (`_`, `.`) are no delivery.

    A link to a folder is not entered. A file or folder that this process may not look at comes with its fault.
    """
    closed: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        if warehouse is not None and warehouse.name in folders and Path(folder, warehouse.name).resolve() == warehouse:
            folders.remove(warehouse.name)
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith((".", "_")):
                try:
                    if stat.S_ISREG(path.stat().st_mode):
                        yield path, None
                except OSError as error:
                    if is_of_machine(error):
                        yield path, _closed(root, path, error)
    for each in closed:
        yield Path(each.filename), _closed(root, Path(each.filename), each)


def _closed(root: Path, path: Path, error: OSError) -> SourceFile:
    name = file_name(path.relative_to(root)) if path != root else path.name
    return SourceFile(path, file_name(path), name, None, f"cannot be opened: {error.strerror}", is_outside=True, is_retryable=True)


def is_of_machine(error: BaseException | None) -> bool:
    """Whether an error is caused by this machine (a permission, no room), not by a file."""
    if isinstance(error, UnreadableFile):
        error = error.__cause__
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None and error.errno not in _OF_FILE)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# Archives --------------------------------------------------------------------------------------------------------


_BROKEN = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, OSError, EOFError, RuntimeError, ValueError)
"""Errors of a file that is not the archive its name claims."""


@dataclass
class _Member:
    name: str
    size: int
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, into: Path, recognise: Recognise) -> list[tuple[Path, str]]:
    """Unpack what the source recognises; returns (file on disk, member name).

    Raises: UnreadableFile for an archive that is broken, holds a member that leaves it (absolute path, `..`), a link, a
    device or one name twice, or unpacks to more than `limits.MAX_EXPANSION` times its size. Then nothing of it is taken.
    """
    limit = unpacked_limit(archive)
    taken: list[tuple[Path, str]] = []
    names: set[str] = set()
    try:
        with _members(archive, limit) as members:
            total = 0
            for count, member in enumerate(members):
                if count >= MAX_MEMBERS:
                    raise UnreadableFile(f"the archive holds more than {MAX_MEMBERS} members; split it")
                relative = PurePosixPath(member.name)
                parts = relative.parts
                if any(part.startswith((".", "_")) for part in parts):
                    continue
                if recognise(PurePosixPath(file_name(member.name)), PurePosixPath(archive.as_posix()) / relative) is None:
                    continue
                if file_name(relative) in names:
                    raise UnreadableFile(f"archive member {str(relative)!r} is there twice; pack each file once. Nothing was taken from it")
                names.add(file_name(relative))
                # numbered folders: names that differ by case only do not meet on disk
                target = into / str(count) / _short(relative.name)
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
    except _BROKEN as error:
        shutil.rmtree(into, ignore_errors=True)
        raise UnreadableFile(f"the archive cannot be read: {one_line(error)}") from error
    return taken


def _short(name: str) -> str:
    """A file's name cut to the length that a disk takes. The end is kept: it holds the suffix."""
    return os.fsdecode(os.fsencode(name)[-LONGEST_NAME_BYTES:])


def _checked(name: str) -> str:
    if len(os.fsencode(name)) > LONGEST_PATH_BYTES:
        raise UnreadableFile(f"archive member {name[:60]!r}... has a name of {len(name)} characters; nothing was taken from the archive")
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or (len(name) > 1 and name[1] == ":"):
        raise UnreadableFile(f"archive member {name!r} would be written outside the archive; nothing was taken from the archive")
    return str(path)


@contextmanager
def _members(archive: Path, limit: int) -> Iterator[Iterator[_Member]]:
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            yield _zip_members(zipped)
    else:
        with _unpacked(archive) as stream, tarfile.open(fileobj=cast(IO[bytes], _Limited(stream, limit)), mode="r|") as tarred:
            yield _tar_members(tarred)


def _unpacked(archive: Path) -> IO[bytes]:
    """The bytes of a tar file, whatever it is compressed with."""
    with archive.open("rb") as stream:
        begins = stream.read(6)
    openers: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
    opener = next((opener for magic, opener in openers.items() if begins.startswith(magic)), None)
    return archive.open("rb") if opener is None else opener(archive)


class _Limited:
    """A stream of which no more than `limit` bytes are read: what is skipped is unpacked all the same."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.stream, self.limit, self.left = stream, limit, limit

    def read(self, size: int) -> bytes:
        block = self.stream.read(size)
        self.left -= len(block)
        if self.left < 0:
            raise UnreadableFile(too_large("the archive", self.limit))
        return block


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

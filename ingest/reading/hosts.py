"""Shared by the sources that read a host's own files: whose file it is, when it was written, the drive behind a device.

Layout: `HOST/FILE`, or `HOST.20260105T102000Z/FILE` as `drivetail collect` writes. A text begins with a line `TS seconds` (unix time), and
every further look at the host with another one; a look that is there only to compare with, because an earlier delivery brought it,
says `TS seconds again`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, TypeVar

from ingest.contract.errors import UnreadableFile
from ingest.reading.devices import drive_of, kernel_name
from ingest.reading.files import SourceFile
from ingest.reading.limits import too_large, unpacked_limit
from ingest.reading.readers import opened, whole
from ingest.reading.text import one_line

T = TypeVar("T")
MAX_BYTES = 256 << 20
FIRST_TS, END_TS = 0, 32_503_680_000  # the years 1970 to 2999

COLLECTED_FOLDER = re.compile(r"(.+)\.\d{8}T\d{6}Z")
# pt-diskstats adds the local time for people to read
_LOOK = re.compile(r"TS\s+(\d{1,12}(?:\.\d{1,9})?)(\s+again|\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?\s*")


@dataclass
class Look:
    """One look at a host: when (UTC), whether an earlier delivery brought it, and its lines with their numbers in the file, from 1."""

    at: datetime
    is_again: bool
    lines: list[tuple[int, str]] = field(default_factory=list)


def host_of(file: SourceFile) -> str:
    """The host that a file is of: its folder's name, without the instant that `drivetail collect` adds.

    Raises: UnreadableFile for a file that is in no folder.
    """
    parts = file.parts
    if len(parts) < 2:
        raise UnreadableFile("the file is not in a folder that names its host; expected HOST/FILE")
    match = COLLECTED_FOLDER.fullmatch(parts[-2])
    return match[1] if match else parts[-2]


def drive_device(device: str) -> str:
    """The device of the drive that a device, or a partition, is on: `/dev/sda1` -> `sda`."""
    return drive_of(kernel_name(device))


def read_text(file: SourceFile) -> str:
    """The text of a file, unpacked. Raises: UnreadableFile where it is too large, cut off or no UTF-8."""
    with opened(file.path) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        is_packed = file.path.suffix in (".gz", ".zst")
        raise UnreadableFile(
            f"the file {'unpacks to' if is_packed else 'has'} more than {MAX_BYTES >> 20} MiB; give several of fewer looks"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"byte {error.start} is not UTF-8; expected the text as the command prints it") from error


def read_json(file: SourceFile, tool: str) -> Any:
    """The JSON document of a file that a tool wrote with --json. Raises: UnreadableFile."""
    try:
        return json.loads(read_text(file), parse_int=whole)
    except (json.JSONDecodeError, RecursionError) as error:
        if getattr(error, "msg", "") == "Extra data":
            raise UnreadableFile(f"{one_line(error)}: more follows the first JSON document; write each into a file of its own") from error
        raise UnreadableFile(f"not JSON ({one_line(error)}); was {tool} called with --json?") from error


def json_documents(text: str) -> Iterator[Any]:
    """The JSON documents of a text, one after the other; text that is not JSON comes as it is, and ends it."""
    decoder, at = json.JSONDecoder(parse_int=whole), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            document, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            yield text[at:]
            return
        yield document


def instant(seconds: float) -> datetime:
    """Unix seconds as raw keeps instants. Raises: UnreadableFile outside the years 1970 to 2999."""
    if not FIRST_TS <= seconds < END_TS:
        raise UnreadableFile(f"{str(seconds)[:40]} is not a unix time of the years 1970 to 2999")
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def spans(seen: Sequence[tuple[datetime, Collection[T]]]) -> Iterator[tuple[T, datetime, datetime | None]]:
    """Findings of looks in a row, each from the first of them to the look that finds it no more, else to the last; null where that is one.

    seen: looks in order of time, with what each found.
    """
    running: dict[T, datetime] = {}
    for at, found in seen:
        for each in [each for each in running if each not in found]:
            yield each, running.pop(each), at
        for each in found:
            running.setdefault(each, at)
    for each, begun in running.items():
        yield each, begun, seen[-1][0] if seen[-1][0] > begun else None


def looks(text: str) -> list[Look]:
    """The looks of a text in their order. Raises: UnreadableFile where it does not begin with one."""
    return list(_looks(text.splitlines()))


def each_look(file: SourceFile) -> Iterator[Look]:
    """The same of a file, one after the other, however large it is: memory holds one look. A command that ends without a new line may stand
    before the next look's. Raises: UnreadableFile.
    """
    with opened(file.path) as stream:
        yield from _looks(_lines(stream, unpacked_limit(file.path)))


def _lines(stream: IO[bytes], limit: int) -> Iterator[str]:
    total = 0
    while line := stream.readline(MAX_BYTES + 1):
        if len(line) > MAX_BYTES:
            raise UnreadableFile(f"a line is longer than {MAX_BYTES >> 20} MiB; give the commands a file for each hour")
        total += len(line)
        if total > limit:
            raise UnreadableFile(too_large("the file", limit))
        try:
            text = line.decode("utf-8-sig" if total == len(line) else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            at = total - len(line) + error.start
            raise UnreadableFile(f"byte {at} is not UTF-8; expected the text as the command prints it") from error
        match = re.search(r"(?<=[]}])TS \d{1,12}$", text[-20:])
        cut = len(text) - len(match[0]) if match else 0
        yield from (text[:cut], text[cut:]) if match else (text,)


def _looks(lines: Iterable[str]) -> Iterator[Look]:
    look: Look | None = None
    for number, line in enumerate(lines, 1):
        if line.startswith("TS"):
            match = _LOOK.fullmatch(line)
            if match is None:
                raise UnreadableFile(f"line {number} is {line[:40]!r}; expected `TS` and the unix time")
            if look is not None:
                yield look
            look = Look(instant(float(match[1])), (match[2] or "").strip() == "again")
        elif look is not None:
            look.lines.append((number, line))
        elif line.strip():
            raise UnreadableFile(
                f"line {number} is not below a `TS seconds` line; put the unix time first: `(date +'TS %s'; COMMAND) > HOST/FILE`"
            )
    if look is not None:
        yield look

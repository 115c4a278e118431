"""Text that a tool printed, packed or not, and the counts of what was read."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingest.contract.errors import UnreadableFile
from ingest.reading.readers import text_blocks
from ingest.reading.text import one_line
from lab.contract import NO_RESULT, UNREADABLE, Refused

SHOWN_CHARS = 200
OPENING = re.compile(r"^[ \t]*\{", re.MULTILINE)


@dataclass
class Row:
    """Values of runs.csv for the file that is read."""

    file: str = ""
    run_number: int = 1
    phase: str = ""
    pass_: str = ""
    device_id: str | None = None
    process_count: int | None = None


@dataclass
class Reading:
    """One file while it is read: the row of runs.csv it is listed in, the lines that did not parse, and notes to the user.

    `kernel_names`: of the devices in the manifest. `tool_version`: of the program that wrote the file, such as fio-3.33; a log of fio
    does not have it, so it is the one of the run's JSON.
    """

    listing: Row
    kernel_names: frozenset[str] = frozenset()
    tool_version: str | None = None
    notes: list[str] = field(default_factory=list)
    lines_rejected: int = 0
    first_rejected: str | None = None

    def reject(self, line: str, count: int = 1) -> None:
        """Count lines that do not parse; the first one is kept to be quoted."""
        if self.first_rejected is None:
            self.first_rejected = line.strip()[:SHOWN_CHARS]
        self.lines_rejected += count


def blocks_of(path: Path, expected: str) -> Iterator[bytes]:
    """Blocks of whole lines. Raises: Refused where nothing is in it, it is no text, or it cannot be unpacked."""
    if not path.stat().st_size:
        raise Refused(NO_RESULT, f"nothing is in it; expected {expected}")
    try:
        yield from text_blocks(path, expected)
    except UnreadableFile as error:
        raise Refused(UNREADABLE, str(error)) from error


def text_of(path: Path, expected: str) -> str:
    """All of a text; bytes that are not UTF-8 are replaced. Raises: Refused."""
    return b"".join(blocks_of(path, expected)).decode("utf-8", "replace")


def json_of(path: Path, reading: Reading, expected: str) -> dict[str, Any]:
    """The one JSON object in a text; what a shell or mpirun printed around it is left out with a note. Raises: Refused."""
    text = text_of(path, expected)
    opening = OPENING.search(text)
    start = opening.end() - 1 if opening is not None else text.find("{")
    if start < 0:
        raise Refused(UNREADABLE, f"no JSON object in it, it starts with {text.strip()[:60]!r}; expected {expected}")
    try:
        document, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise Refused(UNREADABLE, f"no whole JSON object: {str(error)[:80]}; is it cut off? Expected {expected}") from error
    before, after = text[:start].strip(), text[end:].strip()
    if OPENING.search(after):
        raise Refused(UNREADABLE, "more than one JSON object in it; give the output of one run in each file")
    if before or after:
        reading.notes.append(f"left out the text around the JSON, which starts with {(before or after).splitlines()[0][:60]!r}")
    return document  # type: ignore[no-any-return]


def csv_rows(text: str, header: Collection[str], reading: Reading, expected: str) -> Iterator[tuple[dict[str, str], str]]:
    """Each row of CSV by the names of its first line, and as one text. Lines that are no CSV are rejected, empty ones left out.

    header: the columns that must be there. Raises: Refused where one is missing.
    """
    lines = csv.reader(io.StringIO(text))
    names: list[str] | None = None
    while True:
        try:
            row = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            reading.reject(one_line(error))
            continue
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if names is not None:
            yield dict(zip(names, cells, strict=False)), ",".join(row)
        elif set(header) - set(cells):
            raise Refused(UNREADABLE, f"its first line is {','.join(cells)[:80]!r}; expected {expected}")
        else:
            names = cells

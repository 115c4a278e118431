"""Text that a tool printed, packed or not, and the counts of what was read."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from ingest.contract.errors import UnreadableFile
from ingest.reading.readers import text_blocks
from ingest.reading.text import one_line
from lab.contract import NO_RESULT, UNREADABLE, Refused

SHOWN_CHARS = 200


@dataclass
class Row:
    """What runs.csv says of the file that is read."""

    file: str = ""
    run_number: int = 1
    phase: str = ""
    pass_: str = ""
    device_id: str | None = None
    process_count: int | None = None


@dataclass
class Reading:
    """One file while it is read: the row of runs.csv it is listed in, and the lines that did not parse."""

    listing: Row
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

"""Source `bundle`: the call-home bundle of the contract, section 2. One file holds one record kind, named by its name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ingest.contract.fleet import LAYOUT
from ingest.contract.values import RECORD_KINDS
from ingest.reading.batches import Batch, read_table
from ingest.reading.files import FileResult, SourceFile
from ingest.reading.parse import parse
from ingest.reading.readers import format_of

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "drive_hours*, drive_events*, drives* or drive_health*, each as .parquet, .csv, .csv.gz, .csv.zst or .ndjson"


def recognise(relative: PurePosixPath, absolute: PurePosixPath) -> str | None:
    """The record kind of a file by its own name, else by the nearest folder of that name; null for any other file."""
    if format_of(relative.name) is None:
        return None
    for part in (relative.name, *reversed(relative.parent.parts)):
        for record_kind in RECORD_KINDS:
            if part.lower().startswith(record_kind):
                return record_kind
    return None


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read, check and stage every file; one that cannot be read lands nothing, one that is as raw would write it is copied."""
    landing.read(files, partial(_batches, landing))


def _batches(landing: Landing, file: SourceFile, result: FileResult) -> Iterator[Batch]:
    assert file.record_kind is not None
    to_records = partial(parse, record_kind=file.record_kind)
    if not landing.copy(file, result, to_records):
        yield from read_table(file.path, LAYOUT[file.record_kind], result.notes, to_records)

"""`ingest`: one call, one delivery. Finds the files, reads them, judges them and commits all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from ingest import bundle, fio, perseus
from ingest.errors import IngestError
from ingest.files import find_files
from ingest.landing import UNREADABLE, FileResult, Landing
from ingest.raw_store import StagedDelivery, ingest_lock, utc_now
from ingest.schema import DEFAULT_MIN_COVERAGE, DRIVE_KINDS

SOURCES: dict[str, ModuleType] = {"bundle": bundle, "fio": fio, "perseus": perseus}
SHOWN_REJECTIONS = 10


@dataclass
class IngestSummary:
    """What one call did. `delivery_seq` is null where every file had landed before, so that nothing changed.

    `rejected` holds the first few rejected records (columns of the table `rejected_records`, as dicts); `notes` what
    concerns no single file, such as files of the folder that do not belong to the source.
    """

    source: str
    delivery_seq: int | None
    files: list[FileResult]
    rejected: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def rows_delivered(self) -> int:
        return sum(file.rows_delivered for file in self.files)

    @property
    def rows_accepted(self) -> int:
        return sum(file.rows_accepted for file in self.files)

    @property
    def rows_rejected(self) -> int:
        return sum(file.rows_rejected for file in self.files)

    @property
    def rows_duplicate(self) -> int:
        return sum(file.rows_duplicate for file in self.files)

    @property
    def rows_superseded(self) -> int:
        return sum(file.rows_superseded for file in self.files)

    @property
    def unreadable(self) -> list[FileResult]:
        """The files that could not be read, new ones and known ones: where there is any, the call exits 1."""
        return [file for file in self.files if file.status == UNREADABLE]


def ingest(
    source: str,
    paths: Sequence[str | Path],
    warehouse: Path,
    *,
    kind: str | None = None,
    min_coverage: float | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> IngestSummary:
    """Land deliveries of `source` in `warehouse/raw`; repeating a call changes nothing.

    source: `bundle`, `fio` or `perseus`. paths: folders, files or archives (.zip, .tar, .tar.gz, .tgz).
    kind: `disk` or `ssd`, for drives whose records do not say. min_coverage: 0..1, the share of an hour that must have
    been observed for it to count; null = 0.5. on_progress: called with (phase, done, total).
    Waits while another ingest runs. A file that cannot be read is no error: it has status `unreadable` in the summary.
    Raises: IngestError for an unknown source, option or path, or when no file belongs to the source.
    """
    if source not in SOURCES:
        raise IngestError(f"unknown source {source!r}; give one of {', '.join(sorted(SOURCES))}")
    if kind is not None and kind not in DRIVE_KINDS:
        raise IngestError(f"unknown kind {kind!r}; give one of {', '.join(DRIVE_KINDS)}")
    if min_coverage is not None and not 0 <= min_coverage <= 1:
        raise IngestError(f"min_coverage is {min_coverage}; give a share between 0 and 1")
    if isinstance(paths, str | Path):
        paths = [paths]
    if not paths:
        raise IngestError("no path given; give the folder, file or archive of a delivery")
    for path in paths:  # before a warehouse is made for a call that names nothing
        if not Path(path).exists():
            raise IngestError(f"{path}: no such file or directory; give a folder, a file or an archive of the delivery")
    module = SOURCES[source]
    progress = on_progress or (lambda phase, done, total: None)
    warehouse = Path(warehouse)
    with ingest_lock(warehouse):
        staged = StagedDelivery(warehouse)
        try:
            files, notes = find_files(paths, module.recognise, staged.scratch)
            if not files:
                raise IngestError(f"{', '.join(map(str, paths))}: no file of source {source!r} in it; expected {module.EXPECTED}")
            landing = Landing(source, staged, kind, min_coverage, module.identity, progress)
            landing.prepare(files)
            module.land(files, landing)
            progress("read", len(files), len(files))
            seq = None
            if any(result.file_no is not None for result in landing.results):
                stored = landing.judge()
                progress("commit", 0, 1)
                seq = staged.commit(
                    {
                        "source": source,
                        "paths": [str(path) for path in paths],
                        "kind": kind,
                        "min_coverage": DEFAULT_MIN_COVERAGE if min_coverage is None else min_coverage,
                        "committed_at": utc_now().isoformat(),
                        "rows": stored,
                    }
                ).seq
                progress("commit", 1, 1)
        finally:
            staged.discard()
    rejected = landing.rejected(SHOWN_REJECTIONS).to_dicts()
    return IngestSummary(source, seq, landing.results, rejected, notes)

"""A bundle -> `WAREHOUSE/raw/lab/experiment_id=ID/NNNNNN/`, a folder of Parquet files that appears whole and never changes.

A file is known by experiment, path and revision. What is known already lands no more; other content, or another row of runs.csv, under the
same name and revision refuses the whole bundle. Which revision stands is decided by the models, so the order of deliveries does not matter.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from ingest.contract.values import utc_now
from ingest.raw.durable import draft_in, put_folder
from ingest.raw.staging import clear_staging, ingest_lock, write_parquet
from ingest.raw.store import raw_root
from ingest.reading.text import one_line
from lab.archives import readable
from lab.bundle import MANIFEST_FILE, Bundle, Listing, open_bundle
from lab.contract import COUNT, FILES, MANIFEST, TEXT, UNKNOWN_CONFIG, UNKNOWN_TOOL, UNREADABLE, Columns, LabError, Refused
from lab.tools import TOOLS, tool_of
from lab.tools.text import Reading, Row
from report.words import counted_noun

BUFFERED_ROWS = 500_000
"""A file of more rows of a table gets Parquet files of its own; those of smaller ones share one."""
FOLDER = "experiment_id="
FIO, FIO_LOG = "fio", "fio-log"
Run = tuple[str, str, int | None]
"""Configuration, phase and number of a run."""


@dataclass
class Landed:
    """Outcome of one bundle. `files`: a row of FILES for each row of runs.csv that is new; `known`: number of those that were not."""

    place: Path
    experiment_id: str
    delivery_seq: int | None
    files: list[dict[str, Any]] = field(default_factory=list)
    known: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def refused(self) -> list[dict[str, Any]]:
        return [row for row in self.files if row["reason"] is not None]


def lab_root(warehouse: Path) -> Path:
    """Where bundles land."""
    return raw_root(warehouse) / "lab"


def list_experiments(warehouse: Path) -> dict[str, int]:
    """The experiments that have landed, each with the number of its last delivery."""
    found = {path.name.removeprefix(FOLDER): _deliveries(path) for path in sorted(lab_root(warehouse).glob(f"{FOLDER}*"))}
    return {name: int(deliveries[-1].name) for name, deliveries in found.items() if deliveries}


def _deliveries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit()) if folder.exists() else []


def refused_files(warehouse: Path, experiment_id: str) -> list[dict[str, Any]]:
    """`file`, `revision`, `reason` and `message` of the files of an experiment that were refused and have not been taken since."""
    deliveries = _deliveries(lab_root(warehouse) / f"{FOLDER}{experiment_id}")
    rows = _files_of(deliveries).select("file", "revision", "reason", "message").collect().rows(named=True) if deliveries else []
    taken = {row["file"] for row in rows if row["reason"] is None}
    found = {(row["file"], row["revision"]): row for row in rows if row["file"] not in taken}
    return [found[key] for key in sorted(found)]


def ingest_bundle(warehouse: Path, place: Path) -> Landed:
    """Land what is new in a bundle. Raises: LabError where the bundle cannot be taken; then nothing has changed."""
    with open_bundle(place) as bundle, ingest_lock(warehouse):
        clear_staging(raw_root(warehouse))
        return _land(warehouse, bundle)


def _land(warehouse: Path, bundle: Bundle) -> Landed:
    manifest = bundle.manifest
    target = lab_root(warehouse) / f"{FOLDER}{manifest.experiment_id}"
    earlier = _deliveries(target)
    summary = Landed(bundle.place, manifest.experiment_id, None, notes=bundle.notes)
    is_known = _check_manifest(bundle, earlier)
    versions = _versions(earlier)
    new = _new_listings(bundle, earlier, summary, {*versions, *(_run(listing) for listing in bundle.listings if listing.tool == FIO)})
    if is_known and not new:
        return summary
    summary.notes += _notes_on_copies(warehouse, manifest.experiment_id, {listing.sha256 for listing, _ in new})
    seq = int(earlier[-1].name) + 1 if earlier else 1
    draft = draft_in(raw_root(warehouse) / ".staging", "lab")
    draft.mkdir(parents=True)
    try:
        same: dict[str, Any] = {"experiment_id": manifest.experiment_id, "delivery_seq": seq}
        writer = _Writer(draft, same)
        now = utc_now()
        names = frozenset(name for row in manifest.tables["devices"] if (name := row["kernel_name"]) is not None)
        # JSON of fio first: it says which version wrote the logs of its run
        for listing, listed_as in sorted(new, key=lambda each: each[0].tool != FIO):
            reading = Reading(_row(listing), names, versions.get(_run(listing)) if listing.tool == FIO_LOG else None)
            summary.files.append(_read(listing, listed_as, manifest.config_ids, manifest.revision, writer, now, reading))
            if listing.tool == FIO and reading.tool_version is not None:
                versions[_run(listing)] = reading.tool_version
        summary.files.sort(key=lambda row: row["listing"])
        writer.close()
        _write(draft / "files.parquet", FILES, same, summary.files)
        for table, columns in MANIFEST.items():
            rows = [{"revision": manifest.revision, **row} for row in manifest.tables[table]]
            _write(draft / f"{table}.parquet", {"revision": COUNT, **columns}, same, rows)
        record = {"revision": manifest.revision, "manifest": manifest.as_text(), "place": str(bundle.place)}
        (draft / "delivery.json").write_text(json.dumps(record), encoding="utf-8")
        target.mkdir(parents=True, exist_ok=True)
        put_folder(draft, target / f"{seq:06d}")
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    summary.delivery_seq = seq
    return summary


def _check_manifest(bundle: Bundle, earlier: Iterable[Path]) -> bool:
    """Whether this revision has landed before. Raises: LabError where it said something else then."""
    for delivery in earlier:
        record = json.loads((delivery / "delivery.json").read_text(encoding="utf-8"))
        if record["revision"] == bundle.manifest.revision:
            if record["manifest"] != bundle.manifest.as_text():
                raise LabError(_conflict(bundle, MANIFEST_FILE, "says something else"))
            return True
    return False


def _conflict(bundle: Bundle, file: str, what: str) -> str:
    manifest = bundle.manifest
    return (
        f"{bundle.place}: {file} {what} than the one that has landed of experiment {manifest.experiment_id}, revision {manifest.revision}; "
        f"nothing of this bundle has landed. To replace it give revision = {manifest.revision + 1} in {MANIFEST_FILE}"
    )


def _run(listing: Listing) -> Run:
    return listing.config_id, listing.phase, listing.run_number


def _files_of(earlier: list[Path]) -> pl.LazyFrame:
    """The rows of FILES that have landed; those of older versions lack columns."""
    return pl.concat([pl.scan_parquet(delivery / "files.parquet", glob=False) for delivery in earlier], how="diagonal")


def _notes_on_copies(warehouse: Path, experiment_id: str, digests: set[str | None]) -> list[str]:
    """A sentence for each other experiment of which files with these digests have landed: a copy is no second measurement."""
    notes = []
    for other in list_experiments(warehouse):
        if other != experiment_id:
            landed = _files_of(_deliveries(lab_root(warehouse) / f"{FOLDER}{other}")).filter(pl.col("rows_parsed") > 0)
            same = set(landed.select("sha256").unique().collect()["sha256"]) & digests
            if same:
                files = counted_noun(len(same), "file")
                notes.append(f"experiment {other} has landed with {files} of the same bytes: a copy is no run of its own")
    return notes


def _versions(earlier: list[Path]) -> dict[Run, str]:
    """Run -> version of the fio whose JSON has landed."""
    if not earlier:
        return {}
    files = _files_of(earlier)
    if "tool_version" not in files.collect_schema():
        return {}
    rows = files.filter(pl.col("tool_version").is_not_null()).select("config_id", "phase", "run_number", "tool_version").collect()
    return {(config, phase, run): version for config, phase, run, version in rows.iter_rows()}


def _new_listings(bundle: Bundle, earlier: list[Path], summary: Landed, versioned: set[Run]) -> list[tuple[Listing, str]]:
    """The rows of runs.csv that have not landed at this revision, each with its digest. Raises: LabError where a file has other content.

    versioned: runs of which the version of fio is known. A log that was refused for want of it is read again.
    """
    known: set[str] = set()
    content: dict[str, str] = {}
    if earlier:
        scan = _files_of(earlier).filter(revision=bundle.manifest.revision)
        columns = ("file", "listed_as", "sha256", "tool", "reason", "config_id", "phase", "run_number")
        refused: set[str] = set()
        for file, listed_as, sha256, tool, reason, *run in scan.select(columns).collect().iter_rows():
            known.add(listed_as)
            (refused.add if tool == FIO_LOG and reason is not None and tuple(run) in versioned else refused.discard)(listed_as)
            if sha256 is not None:
                content[file] = sha256
        known -= refused
    new: dict[str, Listing] = {}
    for listing in bundle.listings:
        if listing.path is not None and content.get(listing.file, listing.sha256) != listing.sha256:
            raise LabError(_conflict(bundle, listing.file, "has other content"))
        listed_as = _digest(listing)
        if listed_as in known:
            summary.known += 1
            continue
        if listed_as in new:
            summary.notes.append(f"runs.csv row {listing.number}: says the same as row {new[listed_as].number}, which is left out")
        elif listing.file in content:
            summary.notes.append(f"{listing.file}: has landed with another row of runs.csv; now it counts for both")
        new[listed_as] = listing
    return [(listing, listed_as) for listed_as, listing in new.items()]


def _digest(listing: Listing) -> str:
    """Digest of a row of runs.csv and of the bytes of its file."""
    said = [
        listing.file, listing.tool, listing.config_id, listing.phase, listing.run_number, listing.pass_, listing.offset_s,
        listing.device_id, listing.process_count, listing.reason, listing.sha256 or listing.message,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _row(listing: Listing) -> Row:
    return Row(listing.file, listing.run_number or 1, listing.phase, listing.pass_, listing.device_id, listing.process_count)


def _read(
    listing: Listing, listed_as: str, configs: set[str], revision: int, writer: _Writer, now: datetime, reading: Reading
) -> dict[str, Any]:
    """Read one file into the draft. Returns: its row of FILES."""
    rows, reason, message = 0, listing.reason, listing.message
    if listing.path is not None:
        try:
            if listing.tool not in TOOLS:
                raise Refused(UNKNOWN_TOOL, f"runs.csv row {listing.number}: tool is {listing.tool[:80]!r}; give one of {', '.join(TOOLS)}")
            if listing.config_id not in configs:
                hint = f"there is no such [[configs]] block; there are {', '.join(sorted(configs))}"
                raise Refused(UNKNOWN_CONFIG, f"runs.csv row {listing.number}: config_id is {listing.config_id[:80]!r}; {hint}")
            rows = writer.take(listing, reading)
        except Refused as refusal:
            reason, message = refusal.reason, str(refusal)
            reading.lines_rejected, reading.first_rejected = 0, None
            reading.notes.clear()
    return {
        "listing": listing.number, "revision": revision, "file": listing.file, "tool": listing.tool, "config_id": listing.config_id,
        "phase": listing.phase, "run_number": listing.run_number, "pass": listing.pass_, "offset_s": listing.offset_s,
        "device_id": listing.device_id, "process_count": listing.process_count,
        "bytes": listing.path.stat().st_size if listing.path else None,
        "sha256": listing.sha256,
        "listed_as": listed_as, "reason": reason, "message": message, "rows_parsed": rows,
        "lines_rejected": reading.lines_rejected, "first_rejected": reading.first_rejected, "ingested_at": now,
        "notes": "; ".join(reading.notes) or None,
        "tool_version": reading.tool_version if listing.tool == FIO else None,
    }  # fmt: skip


class _Writer:
    """Writes what tools read: `TABLE.parquet` of small files together, `TABLE.LISTING.N.parquet` of large ones."""

    def __init__(self, draft: Path, same: dict[str, Any]) -> None:
        self.draft, self.same = draft, same
        self.small: dict[str, list[pl.DataFrame]] = {}

    def take(self, listing: Listing, reading: Reading) -> int:
        """Read a file with its tool. Returns: the number of rows. Raises: Refused; then none of them is kept."""
        assert listing.path is not None
        tool = tool_of(listing.tool)
        held: dict[str, list[pl.DataFrame]] = {}
        written: list[Path] = []
        rows = 0
        try:
            with readable(listing.path) as path:
                for table, batch in tool.read(path, reading):
                    rows += batch.height
                    held.setdefault(table, []).append(self._with_key(batch, {**tool.TABLES[table]}, listing))
                    if sum(frame.height for frame in held[table]) > BUFFERED_ROWS:
                        written.append(self.draft / f"{table}.{listing.number}.{len(written)}.parquet")
                        write_parquet(pl.concat(held.pop(table)), written[-1])
        except Refused:
            for path in written:
                path.unlink()
            raise
        except (ValueError, OverflowError, RecursionError, pl.exceptions.PolarsError) as error:
            for path in written:
                path.unlink()
            raise Refused(UNREADABLE, f"cannot be read ({one_line(error)}); expected {tool.EXPECTED}") from error
        for table, frames in held.items():
            self.small.setdefault(table, []).extend(frames)
        return rows

    def _with_key(self, batch: pl.DataFrame, columns: Columns, listing: Listing) -> pl.DataFrame:
        keys = {**self.same, "listing": listing.number}
        return batch.select(
            [pl.lit(value, TEXT if isinstance(value, str) else COUNT).alias(name) for name, value in keys.items()] + [*columns]
        )

    def close(self) -> None:
        """Write what is left."""
        for table, frames in self.small.items():
            write_parquet(pl.concat(frames), self.draft / f"{table}.parquet")


def _write(path: Path, columns: Columns, same: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    keys: Columns = {"experiment_id": TEXT, "delivery_seq": COUNT}
    write_parquet(pl.DataFrame([{**same, **row} for row in rows], schema={**keys, **columns}), path)

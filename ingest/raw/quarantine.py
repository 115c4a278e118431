"""`WAREHOUSE/raw/quarantine`: deliveries that the gate holds back, as they arrived, until an operator releases or drops them.
`WAREHOUSE/raw/dropped`: deliveries that had landed and were dropped, each with a file `dropped.json`, until an operator releases them.

```text
raw/quarantine/000001/
  record.json      why, when, source, options and files (name, SHA-256, rows); never changed
  files/0001/NAME  the bytes of each file, removed once it is decided
  decision.json    absent while held; else released or dropped, by which operator, when and why; never changed
```
A folder appears by one rename, as a delivery does, and so does a decision (docs/decisions/0005-the-gate.md).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ingest.contract.errors import GateError
from ingest.contract.values import utc_now
from ingest.raw.durable import put_folder, replace_file, sync
from ingest.raw.store import Delivery, find_delivery, list_folders, raw_root
from ingest.reading.files import SourceFile, sha256_of

RELEASED, DROPPED = "released", "dropped"


@dataclass(frozen=True)
class GateReport:
    """A gate's judgement of one delivery: `reasons` to hold it back, a sentence each (none: it may land), and for the record
    everything that was looked at, as JSON.
    """

    reasons: list[str]
    content: dict[str, Any]


@dataclass(frozen=True)
class Held:
    """One quarantined delivery. `record` is its record.json, `decision` its decision.json or null while it is held."""

    number: int
    path: Path
    record: dict[str, Any]
    decision: dict[str, Any] | None

    @property
    def files(self) -> list[dict[str, Any]]:
        """Its files: file, name, record_kind, sha256, rows, fault, kept (path in the folder)."""
        return list(self.record["files"])

    @property
    def since(self) -> datetime:
        """When it was quarantined, UTC without zone."""
        return datetime.fromisoformat(self.record["quarantined_at"])

    @property
    def reasons(self) -> list[str]:
        """Why it is held, a sentence each."""
        return list(self.record["reasons"])

    def source_files(self) -> list[SourceFile]:
        """The kept files, known by the names they came under.

        Raises: GateError for a file that is missing or no longer holds the bytes that came.
        """
        for entry in self.files:
            kept = self.path / entry["kept"]
            if not kept.is_file() or sha256_of(kept) != entry["sha256"]:
                raise GateError(
                    f"{kept}: is missing or has changed since it was quarantined; restore it from a copy, or drop {self.number}"
                )
        return [
            SourceFile(self.path / entry["kept"], entry["file"], entry["name"], entry["record_kind"], entry["fault"])
            for entry in self.files
        ]


def list_quarantine(warehouse: Path) -> list[Held]:
    """Every delivery that was ever quarantined, by number. Raises: GateError for a record that cannot be read."""
    folder = raw_root(warehouse) / "quarantine"
    if not folder.is_dir():
        return []
    return [_read(path) for path in sorted(folder.iterdir()) if path.name.isdecimal()]


def find_held(warehouse: Path, number: int) -> Held:
    """A quarantined delivery by number. Raises: GateError where there is none."""
    path = raw_root(warehouse) / "quarantine" / f"{number:06d}"
    if not path.is_dir():
        raise GateError(f"no delivery is quarantined as {number} in {warehouse}; `drivetail status` lists those that are")
    return _read(path)


def _read(path: Path) -> Held:
    decision = path / "decision.json"
    return Held(int(path.name), path, _load(path / "record.json"), _load(decision) if decision.exists() else None)


def _load(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise GateError(f"{path}: cannot be read ({error}); it never changes once written, restore it from a copy") from error


def withheld(warehouse: Path, source: str, hashes: Mapping[str, str]) -> dict[str, Held]:
    """Which files (name -> SHA-256) a quarantined or dropped delivery of `source` holds: name -> that delivery.

    A file is known by name and content; or by content alone where all the files are found in one delivery, sent again from
    elsewhere. A file without rows, such as a header alone, says nothing and is not held.
    """
    found: dict[str, Held] = {}
    for held in list_quarantine(warehouse):
        if held.record["source"] != source or (held.decision and held.decision["decision"] == RELEASED):
            continue
        filled = [entry for entry in held.files if entry["rows"] or entry["fault"]]
        contents, names = {entry["sha256"] for entry in held.files}, {(entry["file"], entry["sha256"]) for entry in filled}
        is_all = bool(hashes) and set(hashes.values()) <= contents
        found |= {name: held for name, sha256 in hashes.items() if is_all or (name, sha256) in names}
    return found


def hold(
    staging: Path, warehouse: Path, files: Sequence[tuple[SourceFile, str, int]], report: GateReport, options: Mapping[str, Any]
) -> Held:
    """Keep a delivery in quarantine: write its folder under `staging`, sync it, rename it into place.

    files: each with its SHA-256 and the rows it delivered. options: how it was to be ingested, for the record.
    Raises: GateError for a file that has changed since it was read; nothing is then kept.
    """
    root = raw_root(warehouse) / "quarantine"
    root.mkdir(exist_ok=True)
    draft = staging / "quarantine"
    entries = []
    for number, (file, sha256, rows) in enumerate(files, 1):
        kept = Path("files", f"{number:04d}", file.path.name)
        (draft / kept).parent.mkdir(parents=True)
        shutil.copyfile(file.path, draft / kept)
        if sha256_of(draft / kept) != sha256:
            raise GateError(f"{file.file}: changed while it was ingested; ingest it again when it is complete")
        entry = {"file": file.file, "name": file.name, "record_kind": file.record_kind, "sha256": sha256, "rows": rows}
        entries.append({**entry, "fault": file.fault, "kept": str(kept)})
    number = 1 + max((int(path.name) for path in root.iterdir() if path.name.isdecimal()), default=0)
    record = {
        "number": number,
        "quarantined_at": utc_now().isoformat(),
        **options,
        "reasons": report.reasons,
        "files": entries,
        "gate": report.content,
    }
    (draft / "record.json").write_text(json.dumps(record, indent=2, default=str) + "\n", encoding="utf-8")
    put_folder(draft, root / f"{number:06d}")
    sync(root.parent)
    return _read(root / f"{number:06d}")


def decide(held: Held, decision: str, by: str, note: str, **facts: Any) -> Held:
    """Write down that a held delivery is released or dropped, then remove its files. Call it inside `ingest_lock`.

    Safe to repeat: the first decision stands, and files that a killed call left are removed.
    """
    if held.decision is None:
        content = {"decision": decision, "by": by, "at": utc_now().isoformat(), "note": note, **facts}
        draft = held.path.parent.parent / ".staging" / f"{os.getpid()}.decision.json"
        draft.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")
        sync(draft)
        os.rename(draft, held.path / "decision.json")
        sync(held.path)
    shutil.rmtree(held.path / "files", ignore_errors=True)
    return _read(held.path)


def find_landed(warehouse: Path, number: int) -> tuple[Delivery, dict[str, Any] | None]:
    """A delivery that has landed, by number, and who dropped it since, when and why; null where nobody did. Raises: GateError."""
    for place in ("deliveries", "dropped"):
        each = find_delivery(list_folders(warehouse, place=place), number)
        if each is not None:
            return each, _load(each.path / "dropped.json") if place == "dropped" else None
    raise GateError(f"no delivery {number} has landed in {warehouse}; marts.ingested_files has their numbers")


def set_aside(warehouse: Path, delivery: Delivery, by: str, note: str) -> None:
    """Take a landed delivery out of raw, by one rename. Call it inside `ingest_lock`."""
    last = max(each.last_seq for each in list_folders(warehouse))
    content = {"by": by, "at": utc_now().isoformat(), "note": note, "last_delivery_seq": last}
    text = json.dumps(content, indent=2) + "\n"
    if delivery.said:
        from ingest.raw.packing import take_out  # here: who lists what is held needs no reader of Parquet

        take_out(warehouse, delivery, {"dropped.json": text})
        return
    # beside what counts it says nothing
    replace_file(delivery.path / "dropped.json", text)
    _move(delivery, raw_root(warehouse) / "dropped")


def put_back(warehouse: Path, delivery: Delivery) -> None:
    """Put a dropped delivery back, by one rename. Call it inside `ingest_lock`."""
    _move(delivery, raw_root(warehouse) / "deliveries")


def _move(delivery: Delivery, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    os.rename(delivery.path, folder / delivery.path.name)
    for changed in (folder, delivery.path.parent, folder.parent):
        sync(changed)

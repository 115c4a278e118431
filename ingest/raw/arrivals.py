"""Which files of a call are new: not landed before, not held in quarantine, not dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.contract.fleet import INGESTED_FILES
from ingest.raw.packing import may_hold
from ingest.raw.quarantine import DROPPED, Held
from ingest.raw.store import Folder, find_delivery, table_files
from ingest.reading.files import ALREADY_LANDED, LANDED, QUARANTINED, UNREADABLE, SourceFile, is_of_machine, sha256_of
from ingest.reading.limits import require_bytes
from ingest.reading.text import one_line


class Arrivals:
    """The files of a call compared with those of earlier ones. `sha256`: by name, empty for a file that cannot be opened. `is_retryable`:
    the names of those that cannot for a reason of this machine.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        source: str,
        folders: Sequence[Folder],
        options: Mapping[str, Any],
        identity: Callable[[SourceFile], str],
        withheld: Callable[[dict[str, str]], dict[str, Held]] | None,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        """Hash the files and look up which of them earlier deliveries hold.

        options: those of the source. withheld: which files (name -> SHA-256) the gate holds back or has seen dropped; null without a gate.
        """
        self.total = len(files)
        self.sha256: dict[str, str] = {}
        self._identity = identity
        self.is_retryable = {file.file for file in files if file.is_retryable}
        self._closed: dict[str, str] = {}
        self._by_hash: dict[str, list[tuple[str, str, str | None]]] = {}
        for number, file in enumerate(files):
            try:
                self.sha256[file.file] = ""
                if not (file.is_outside or file.is_retryable):
                    require_bytes(file.path)
                    self.sha256[file.file] = sha256_of(file.path)
            except UnreadableFile as error:
                self._closed[file.file] = str(error)
            except OSError as error:
                self._closed[file.file] = f"the file cannot be opened: {error.strerror or one_line(error)}"
                if is_of_machine(error):
                    self.is_retryable.add(file.file)
            on_progress("hash", number + 1, len(files))
        known = known_files(folders, source, set(self.sha256.values()))
        # a file refused under other options may be readable under these: its message says which to give
        refused = pl.col("status") == UNREADABLE
        seqs = set(known.filter(refused)["delivery_seq"])
        asked = {each.seq: each.record().get("source_options", {}) for seq in seqs if (each := find_delivery(folders, seq))}
        here = json.loads(json.dumps(options))  # as a record of a delivery has them
        other = [seq for seq, options in asked.items() if options != here]
        known = known.filter(~(refused & pl.col("delivery_seq").is_in(other))).sort(refused, maintain_order=True)
        for sha256, name, status, note in known.select("sha256", "file", "status", "note").iter_rows():
            self._by_hash.setdefault(sha256, []).append((name, status, note))
        new = {name: sha256 for name, sha256 in self.sha256.items() if sha256 not in self._by_hash}
        self._withheld = {} if withheld is None else withheld(new)

    def status_of(self, file: SourceFile) -> tuple[str, list[str]] | None:
        """The status of a file that is not to be read, and the note on it; null for a new one, which is known from then on."""
        name, sha256 = self._identity(file), self.sha256[file.file]
        for known, status, note in self._by_hash.get(sha256, []):
            if known == file.file or known.endswith(("/" + name, "!" + name)):
                # known by its content and its name within what was given, whatever its path is now
                return (UNREADABLE, [note] if note else []) if status == UNREADABLE else (ALREADY_LANDED, [])
        held = self._withheld.get(file.file)
        if held is None:
            self._by_hash.setdefault(sha256, []).append((file.file, LANDED, None))
            return None
        if held.decision is None:
            return QUARANTINED, [f"held in quarantine {held.number}"]
        said = f"dropped by {held.decision['by']}: {held.decision['note']}; to land it, ingest it without the gate"
        return DROPPED, [said]

    def fault_of(self, file: SourceFile) -> str | None:
        """Why a file cannot even be opened."""
        return file.fault or self._closed.get(file.file)

    @property
    def held(self) -> list[Held]:
        """Quarantined deliveries that hold files of this call."""
        return list({held.number: held for held in self._withheld.values() if held.decision is None}.values())


def known_files(folders: Iterable[Folder], source: str, hashes: Iterable[str]) -> pl.DataFrame:
    """Records of earlier deliveries of `source` on files of these SHA-256: columns of `ingested_files`."""
    wanted = pl.Series(list(hashes), dtype=pl.String())
    paths = table_files((folder for folder in folders if may_hold(folder, wanted)), "ingested_files")
    if not paths:
        return pl.DataFrame(schema=INGESTED_FILES)
    scan = pl.scan_parquet(paths, glob=False)
    known = scan.filter((pl.col("source") == source) & pl.col("sha256").is_in(wanted.implode())).collect()
    return known.sort("delivery_seq", maintain_order=True)

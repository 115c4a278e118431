"""Packs: sixteen folders of raw become one, so that what a command opens does not grow with the number of deliveries.

A pack has the files of a delivery, with the rows of all that it was made of: each row says which one it came with. Folders of one level
are packed when there are sixteen after each other, so that at most some sixty count. See docs/decisions/0001-raw-store.md.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ingest.contract.fleet import INGESTED_FILES, REJECTED_RECORDS, RETIRED, raw_columns
from ingest.contract.values import TIMED
from ingest.raw.durable import draft_in, put_folder, remove_folder
from ingest.raw.staging import write_parquet
from ingest.raw.store import GATES, PACKED, Delivery, Folder, folder_name, list_folders, names_in, raw_root, remove_replaced, source_of

FOLDERS = 16
"""How many of one level are packed."""
NO_READER_SECONDS = 24 * 3600
"""Where nothing was ever published: a first build takes as long, at most."""
MERGED_BYTES = 16 << 20
"""Files of one table and day are merged up to this size; greater ones are linked, since they are not what makes many."""
HASHES = "ingested_files.hashes"
"""In a pack: the first 64 bits of the hashes of its files, in order. An ingest opens `ingested_files` only where one is its own."""

READ_BACKWARDS_ROWS = 64
"""Rows of a row group of what the gate found, of which the last are asked for."""

_FILE = re.compile(r"((?:[a-z_]+/)?[\w-]+?)(?:\.\d+)?((?:\.[a-z][a-z-]*)?)\.parquet")
_DELIVERIES = {
    "delivery_seq": pl.Int64(), "first_hour": pl.Datetime("us"), "last_hour": pl.Datetime("us"), "digest": pl.String(),
    "source": pl.String(), "committed_at": pl.String(), "files": pl.List(pl.String()), "record": pl.String(),
}  # fmt: skip
_GATES = {"delivery_seq": pl.Int64(), "gate": pl.String(), "record": pl.String()}


def pack(warehouse: Path, folders: Sequence[Folder]) -> None:
    """Pack what there are sixteen of. Call it inside `ingest_lock`; a kill leaves what was packed whole, beside its pack or without one.

    folders: those that count.
    """
    found = list(folders)
    while due := _due(found):
        found[-len(due) :] = [write_pack(warehouse, due, 1 + max(each.level for each in due))]
    # where something is published the next build does it: it knows what publications show
    if len(found) < len(folders) and not (warehouse / "warehouse.duckdb").exists():
        remove_replaced(warehouse, NO_READER_SECONDS)


def _due(folders: Sequence[Folder]) -> list[Folder]:
    """The last folders up to some level, where sixteen are of it: the later are of lower levels."""
    for level in range(1 + max((each.level for each in folders), default=0)):
        begin = 1 + max((number for number, each in enumerate(folders) if each.level > level), default=-1)
        if sum(each.level == level for each in folders[begin:]) >= FOLDERS:
            return list(folders[begin:])
    return []


def write_pack(warehouse: Path, folders: Sequence[Folder], level: int, numbers: Collection[int] | None = None) -> Folder:
    """Put a pack in the place of some folders, by one rename; they stay, for readers. numbers: of the deliveries to take; none: all."""
    draft = draft_in(raw_root(warehouse) / ".staging", "pack")
    draft.mkdir(parents=True)
    try:
        said = write_rows(folders, draft, numbers)
        first, last = min(each.seq for each in folders), max(each.last_seq for each in folders)
        first_hour: Any = said["first_hour"].min()
        last_hour: Any = said["last_hour"].max()
        name = folder_name(first, last, (first_hour, last_hour), level, has_gaps=said.height <= last - first)
        target = raw_root(warehouse) / "deliveries" / name
        target.parent.mkdir(exist_ok=True)
        put_folder(draft, target)
        return Folder(first, first_hour, last_hour, target, last, level, said.height <= last - first)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_rows(folders: Sequence[Folder], draft: Path, numbers: Collection[int] | None = None) -> pl.DataFrame:
    """Write the files of a pack of some folders. numbers: see write_pack(). Returns: the rows on its deliveries."""
    groups: dict[tuple[str, str], list[Path]] = {}
    for folder in folders:
        for name in names_in(folder.path):
            match = _FILE.fullmatch(name)
            groups.setdefault((match[1], match[2]) if match else (name, ""), []).append(folder.path / name)
    for (base, source), files in groups.items():
        (draft / base).parent.mkdir(exist_ok=True)
        for number, (batch, rows) in enumerate(_merged(base, files, numbers)):
            target = draft / f"{base}{f'.{number}' if number else ''}{source}.parquet"
            if rows is None:
                link_or_copy(batch[0], target)
            else:
                _write(base, rows, target)
    said = pl.concat(_said(folder) for folder in folders)
    gates = pl.concat([pl.DataFrame(schema=_GATES), *(_gates(folder) for folder in folders)])
    if numbers is not None:
        said, gates = (rows.filter(pl.col("delivery_seq").is_in(list(numbers))) for rows in (said, gates))
    if gates.height:
        write_parquet(gates.sort("delivery_seq"), draft / GATES, READ_BACKWARDS_ROWS)
    hashes = [pl.read_parquet(path, columns=["sha256"], glob=False)["sha256"] for path in draft.glob("ingested_files*.parquet")]
    np.sort(_beginnings(pl.concat([pl.Series("sha256", [], pl.String()), *hashes]))).tofile(draft / HASHES)
    said = said.sort("delivery_seq")
    write_parquet(said, draft / PACKED)
    return said


def may_hold(folder: Folder, hashes: pl.Series) -> bool:
    """Whether a folder may hold a file of one of these SHA-256."""
    if not folder.level or not (folder.path / HASHES).exists():
        return True
    known, wanted = np.fromfile(folder.path / HASHES, dtype=np.uint64), _beginnings(hashes)
    at = np.searchsorted(known, wanted)
    return bool((known[np.minimum(at, known.size - 1)] == wanted).any()) if known.size else False


def _beginnings(hashes: pl.Series) -> NDArray[np.uint64]:
    # a file that could not be opened has none
    return np.array([int(text[:16] or "0", 16) for text in hashes], dtype=np.uint64)


def _merged(base: str, files: Iterable[Path], numbers: Collection[int] | None) -> Iterator[tuple[list[Path], pl.DataFrame | None]]:
    """Files of one table in batches, each with its rows; without them where a file stays as it is."""
    by = "retired_by_delivery_seq" if base.startswith("retired_") else "delivery_seq"
    batch: list[Path] = []
    size = 0
    for path in (*files, None):
        bytes_ = path.stat().st_size if path else MERGED_BYTES
        if batch and size + bytes_ > MERGED_BYTES:
            yield from _read(base, batch, by, numbers)
            batch, size = [], 0
        if path is not None:
            batch.append(path)
            size += bytes_


def _read(base: str, batch: list[Path], by: str, numbers: Collection[int] | None) -> Iterator[tuple[list[Path], pl.DataFrame | None]]:
    if len(batch) == 1 and (numbers is None or _numbers_of(batch[0], by) <= set(numbers)):
        yield batch, None
        return
    columns = columns_of(base, batch[0])
    try:
        scan = pl.scan_parquet(batch, glob=False, schema=columns, missing_columns="insert")
        rows = (scan if numbers is None else scan.filter(pl.col(by).is_in(list(numbers)))).collect()
    except pl.exceptions.PolarsError:
        if numbers is not None:
            raise
        for path in batch:  # a file that cannot be read stays as it is: its reader names it
            yield [path], None
        return
    if rows.height:
        yield batch, rows


def _numbers_of(path: Path, by: str) -> set[int]:
    found = pq.read_table(path, columns=[by], partitioning=None)[by].unique().to_pylist()
    return set(found)


def columns_of(base: str, path: Path) -> dict[str, pl.DataType]:
    """The columns of a file of raw. base: its name without numbers and source, such as `drive_hours/2026-01-05`."""
    table = base.partition("/")[0]
    if table.startswith("retired_"):
        return RETIRED[table.removeprefix("retired_")]
    known = {"rejected_records": REJECTED_RECORDS, "ingested_files": INGESTED_FILES}
    return known[table] if table in known else raw_columns(table, source_of(path))


def _write(base: str, rows: pl.DataFrame, target: Path) -> None:
    table = base.partition("/")[0]
    if table in TIMED:
        rows = rows.sort(TIMED[table], maintain_order=True)
    write_parquet(rows, target)


def link_folders(folders: Iterable[Folder], warehouse: Path, numbers: Collection[int]) -> None:
    """Make raw of another warehouse of some deliveries: links to folders, and packs without the others."""
    (raw_root(warehouse) / "deliveries").mkdir(exist_ok=True)
    for folder in folders:
        mine = set(folder.numbers())
        if mine <= set(numbers):
            (raw_root(warehouse) / "deliveries" / folder.path.name).symlink_to(folder.path)
        elif wanted := mine & set(numbers):
            write_pack(warehouse, [folder], folder.level, wanted)


def link_or_copy(path: Path, target: Path) -> None:
    """Give a file a second name, or where that cannot be a copy."""
    try:
        os.link(path.resolve(), target)
    except OSError:
        shutil.copyfile(path, target)


def _said(folder: Folder) -> pl.DataFrame:
    if folder.level:
        return pl.read_parquet(folder.path / PACKED, glob=False)
    (delivery,) = folder.deliveries()
    text = (folder.path / "delivery.json").read_text(encoding="utf-8")
    record = delivery.record()
    row: dict[str, Any] = {
        "delivery_seq": folder.seq, "first_hour": folder.first_hour, "last_hour": folder.last_hour, "digest": delivery.digest(),
        "source": record["source"], "committed_at": record["committed_at"], "files": names_in(folder.path), "record": text,
    }  # fmt: skip
    return pl.DataFrame([row], schema=_DELIVERIES)


def _gates(folder: Folder) -> pl.DataFrame:
    if folder.level:
        path = folder.path / GATES
        return pl.read_parquet(path, glob=False) if path.exists() else pl.DataFrame(schema=_GATES)
    return pl.DataFrame(list(gates_backwards(folder)), schema=_GATES, orient="row")


def gates_backwards(folder: Folder) -> Iterator[tuple[int, str, str]]:
    """Number, gate.json and delivery.json of the deliveries in a folder that the gate looked at, the last first."""
    path = folder.path / (GATES if folder.level else "gate.json")
    if not path.exists():
        return
    if not folder.level:
        yield folder.seq, path.read_text(encoding="utf-8"), (folder.path / "delivery.json").read_text(encoding="utf-8")
        return
    with pq.ParquetFile(path) as file:
        for number in reversed(range(file.num_row_groups)):
            group = file.read_row_group(number)
            yield from reversed(list(zip(*(group[name].to_pylist() for name in _GATES), strict=True)))


def take_out(warehouse: Path, delivery: Delivery, content: dict[str, str]) -> None:
    """Take a packed delivery out: write its own folder, with some more files, into `dropped`, and its pack again without it.

    A kill between the two leaves it landed; called again, it ends the same.
    """
    raw = raw_root(warehouse)
    (folder,) = (each for each in list_folders(warehouse) if each.path == delivery.path)
    target = raw / "dropped" / folder_name(delivery.seq, delivery.seq, (delivery.first_hour, delivery.last_hour))
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        draft = draft_in(raw / ".staging", "out")
        draft.mkdir()
        said = write_rows([folder], draft, [delivery.seq])
        files = {"delivery.json": said["record"][0], **content}
        if (draft / GATES).exists():
            files["gate.json"] = pl.read_parquet(draft / GATES, glob=False)["gate"][0]
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf-8")
        for name in (PACKED, GATES, HASHES):
            (draft / name).unlink(missing_ok=True)
        put_folder(draft, target)
    for left in (raw / "deliveries").glob(f"{delivery.seq:06d}.*"):  # what it was packed from would count where no pack has it
        remove_folder(left, raw / ".staging")
    write_pack(warehouse, [folder], folder.level + 1, set(folder.numbers()) - {delivery.seq})

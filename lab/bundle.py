"""An experiment bundle: experiment.toml, runs.csv and the tools' output, in a folder or an archive.

`open_bundle` reads the two small files. A manifest that is wrong refuses the bundle; a row of runs.csv that is wrong refuses its file.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from ingest.contract.errors import UnreadableFile
from ingest.reading.files import sha256_of, unpack
from ingest.reading.limits import unpacked_limit
from ingest.reading.readers import opened
from ingest.reading.text import one_line
from lab.contract import (
    BAD_ROW,
    DEVICE_KINDS,
    EXPECTED_RUNS,
    FLAG,
    FORMAT,
    KINDS,
    LARGE_EXTENT_BYTES,
    MANIFEST,
    MISSING_FILE,
    OUTSIDE_BUNDLE,
    PASSES,
    PHASES,
    TEXT,
    LabError,
)

MANIFEST_FILE, RUNS_FILE = "experiment.toml", "runs.csv"
RUN_COLUMNS = ("file", "tool", "config_id", "run_number", "phase", "pass", "offset_s", "device_id", "process_count")
REQUIRED = RUN_COLUMNS[:4]
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip")
SMALL_FILE_BYTES = 16 << 20
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MOST = 2**53


@dataclass
class Listing:
    """A row of runs.csv. `path` is where the file's bytes are; None where `reason` and `message` say why it is refused."""

    number: int
    file: str
    tool: str = ""
    config_id: str = ""
    phase: str = ""
    run_number: int | None = None
    pass_: str = ""
    offset_s: float = 0.0
    device_id: str | None = None
    process_count: int | None = None
    path: Path | None = None
    reason: str | None = None
    message: str | None = None

    @cached_property
    def sha256(self) -> str | None:
        return None if self.path is None else sha256_of(self.path)


@dataclass
class Manifest:
    """experiment.toml. `tables`: the rows of each table of MANIFEST, without experiment and revision."""

    experiment_id: str
    revision: int
    tables: dict[str, list[dict[str, Any]]]

    @property
    def config_ids(self) -> set[str]:
        return {row["config_id"] for row in self.tables["configs"]}

    def as_text(self) -> str:
        """The same text for the same content, however it was written."""
        return json.dumps(self.tables, sort_keys=True, default=str)


@dataclass
class Bundle:
    """A bundle that was opened; `place` is what was given."""

    place: Path
    manifest: Manifest
    listings: list[Listing]
    notes: list[str] = field(default_factory=list)


@contextmanager
def open_bundle(place: Path) -> Iterator[Bundle]:
    """A bundle in a folder or an archive, which is unpacked as long as it is open.

    Raises: LabError where its manifest is missing or wrong, or runs.csv cannot be read.
    """
    if not place.exists():
        raise LabError(f"{place}: no such folder or archive; give an experiment bundle")
    with tempfile.TemporaryDirectory(prefix="drivetail-lab-") as scratch:
        files = _of_folder(place) if place.is_dir() else _of_archive(place, Path(scratch))
        files = _without_top_folder(files)
        manifest, notes = _manifest(place, files)
        listings = _listings(place, files, notes)
        yield Bundle(place, manifest, listings, notes)


def bundles_in(place: Path) -> list[Path]:
    """The bundles in a folder that is not one itself, such as that of `lab simulate papers`; else the place as it was given."""
    if not place.is_dir() or (place / MANIFEST_FILE).exists():
        return [place]
    return sorted(path.parent for path in place.glob(f"*/{MANIFEST_FILE}")) or [place]


def manifest_text(experiment: dict[str, Any], **blocks: list[dict[str, Any]]) -> str:
    """The text of experiment.toml: its keys, then blocks by their name. What is None or empty is left out."""
    lines = [f"format = {FORMAT}", *_keys(experiment)]
    for name, given in blocks.items():
        for block in given:
            lines += [f"[[{name}]]", *_keys({key: value for key, value in block.items() if key != "factors"})]
            if block.get("factors"):
                lines += ["[configs.factors]", *_keys(block["factors"])]
    return "\n".join(lines) + "\n"


def _keys(values: dict[str, Any]) -> list[str]:
    # JSON writes text, numbers, true and false as TOML does
    return [f"{name} = {json.dumps(value)}" for name, value in values.items() if value not in (None, "")]


# Where the files are ----------------------------------------------------------------------------------------------


def _of_folder(root: Path) -> dict[str, Path]:
    # one folder down: what an archive of a folder unpacks to
    return {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}


def _of_archive(archive: Path, scratch: Path) -> dict[str, Path]:
    if archive.name in (MANIFEST_FILE, RUNS_FILE):
        raise LabError(f"{archive}: is a file of a bundle; give its folder, {archive.parent}")
    if not archive.name.lower().endswith(ARCHIVES):
        raise LabError(f"{archive}: is no folder and no archive; give a folder, or a file that ends in {', '.join(ARCHIVES)}")
    try:
        if archive.name.lower().endswith(".tar.zst"):
            archive = _without_zst(archive, scratch)
        return {member: path for path, member in unpack(archive, scratch / "files", lambda relative, absolute: "file")}
    except UnreadableFile as error:
        raise LabError(f"{archive}: {error}; pack the bundle again") from error


def _without_zst(archive: Path, scratch: Path) -> Path:
    """The tar file within, which the standard library reads from Python 3.14 on."""
    limit = unpacked_limit(archive)
    plain = scratch / archive.name[: -len(".zst")]
    with opened(archive) as source, plain.open("wb") as sink:
        while block := source.read(1 << 20):
            if sink.tell() + len(block) > limit:
                raise UnreadableFile(f"the archive unpacks to more than {limit >> 20} MiB")
            sink.write(block)
    if not tarfile.is_tarfile(plain):
        raise UnreadableFile("what it unpacks to is no tar archive")
    return plain


def _without_top_folder(files: dict[str, Path]) -> dict[str, Path]:
    """Files by their path inside the bundle, where all of the bundle lies in one folder."""
    if MANIFEST_FILE in files:
        return files
    tops = {name.split("/")[0] for name in files if name.count("/") == 1 and name.endswith(f"/{MANIFEST_FILE}")}
    if len(tops) != 1:
        return files
    (top,) = tops
    return {name.removeprefix(f"{top}/"): path for name, path in files.items() if name.startswith(f"{top}/")}


def _text(place: Path, files: dict[str, Path], name: str) -> str:
    if name not in files:
        raise LabError(f"{place}: holds no {name}; a bundle has {MANIFEST_FILE}, {RUNS_FILE} and the tools' output")
    content = files[name].read_bytes() if files[name].stat().st_size <= SMALL_FILE_BYTES else None
    if content is None:
        raise LabError(f"{place}: {name} is larger than {SMALL_FILE_BYTES >> 20} MiB; it lists files, and holds no results")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LabError(f"{place}: {name} is not UTF-8 text: {one_line(error)}; save it as UTF-8") from error


# experiment.toml --------------------------------------------------------------------------------------------------


class _Block:
    """A table of the manifest: takes values out of it and says what is wrong with them. `where`: its name, such as `devices[1].`."""

    def __init__(self, place: Path, where: str, given: Any) -> None:
        self.place, self.where = place, where
        if not isinstance(given, dict):
            raise self.wrong("", given, "expected a table of keys")
        self.left = dict(given)

    def wrong(self, key: str, value: Any, hint: str) -> LabError:
        found = "is missing" if value is None else f"is {json.dumps(value, default=str)[:80]}"
        return LabError(f"{self.place}: {MANIFEST_FILE}: {(self.where + key).rstrip('.')} {found}; {hint}")

    def text(self, key: str, *, is_required: bool = False, one_of: tuple[str, ...] = ()) -> str | None:
        value = self.left.pop(key, None)
        if value is None and not is_required:
            return None
        hint = f"give one of {', '.join(one_of)}" if one_of else 'give a text such as key = "text"'
        if not isinstance(value, str) or not value.strip() or (one_of and value not in one_of):
            raise self.wrong(key, value, hint)
        return value

    def name(self, key: str) -> str:
        value = self.text(key, is_required=True) or ""
        if not _ID.fullmatch(value):
            raise self.wrong(key, value, "give 1 to 64 of the characters A-Z a-z 0-9 . _ -")
        return value

    def count(self, key: str, default: int | None = None, *, least: int = 0, is_required: bool = False) -> int | None:
        value = self.left.pop(key, None)
        if value is None and not is_required:
            return default
        if type(value) is not int or not least <= value <= _MOST:
            raise self.wrong(key, value, f"give a whole number from {least}")
        return value

    def flag(self, key: str) -> bool:
        value = self.left.pop(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "give true or false")
        return value

    def time(self, key: str) -> datetime | None:
        value = self.left.pop(key, None)
        if value is None:
            return None
        try:
            at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
            return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
        except (ValueError, TypeError, OverflowError):
            raise self.wrong(key, value, 'give a time such as "2026-11-23T07:00:00Z"') from None

    def blocks(self, key: str) -> list[_Block]:
        value = self.left.pop(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, value, f"write each as a block [[{key}]]")
        return [_Block(self.place, f"{key}[{number}].", each) for number, each in enumerate(value, 1)]

    def of_table(self, table: str, **given: Any) -> dict[str, Any]:
        """A row of a table: what is given, and every other column from the key of its name."""
        row: dict[str, Any] = dict(given)
        for column, kind in MANIFEST[table].items():
            if column not in row:
                row[column] = self.text(column) if kind == TEXT else self.flag(column) if kind == FLAG else self.count(column)
        return row


def _manifest(place: Path, files: dict[str, Path]) -> tuple[Manifest, list[str]]:
    """Raises: LabError that names the key and the value that is wrong."""
    try:
        root = _Block(place, "", tomllib.loads(_text(place, files, MANIFEST_FILE)))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, a number of thousands of digits, tables nested without end
        raise LabError(f"{place}: {MANIFEST_FILE} is no TOML: {one_line(error)}; correct it there") from error
    if root.count("format", is_required=True) != FORMAT:
        raise root.wrong("format", "another", f"give format = {FORMAT}, the only one there is")
    experiment_id = root.name("experiment_id")
    kind = root.text("kind", is_required=True, one_of=KINDS)
    revision = root.count("revision", 1, least=1) or 1
    experiment = {
        "kind": kind,
        "title": root.text("title"),
        "expected_runs": root.count("expected_runs", EXPECTED_RUNS.get(kind or "", 1), least=1),
        "large_extent_bytes": root.count("large_extent_bytes", LARGE_EXTENT_BYTES, least=1),
        "started_at": root.time("started_at"),
    }
    machine = _Block(place, "machine.", root.left.pop("machine", {}))
    for name in ("name", "cpu", "kernel", "os"):
        experiment[f"machine_{name}"] = machine.text(name)
    experiment["machine_memory_bytes"] = machine.count("memory_bytes")
    blocks = {name: root.blocks(name) for name in ("devices", "filesystems", "configs")}
    devices = [
        block.of_table("devices", device_id=block.name("device_id"), kind=block.text("kind", one_of=DEVICE_KINDS))
        for block in blocks["devices"]
    ]
    filesystems = [
        block.of_table(
            "filesystems",
            filesystem_id=block.name("filesystem_id"),
            device_id=_known(block, "device_id", devices, is_required=True),
            block_bytes=block.count("block_bytes", 4096, least=1),
            # lsblk may say where it is not given
            partition_start_sectors=block.count("partition_start_sectors"),
        )
        for block in blocks["filesystems"]
    ]
    on = {row["filesystem_id"]: row["device_id"] for row in filesystems}
    configs, factors = [], []
    for block in blocks["configs"]:
        config_id, given = block.name("config_id"), block.left.pop("factors", {})
        filesystem_id = _known(block, "filesystem_id", filesystems)
        device_id = _known(block, "device_id", devices, is_required=filesystem_id is None)
        configs.append(
            block.of_table(
                "configs",
                config_id=config_id,
                filesystem_id=filesystem_id,
                device_id=device_id or on[filesystem_id or ""],
                writers=block.count("writers", least=1),
            )
        )
        factors += [{"config_id": config_id, "factor": name, "value": value} for name, value in _factors(block, given)]
    if not configs:
        raise root.wrong("configs", None, "give at least one block [[configs]]: what is compared with what")
    for table, rows, key in (
        ("devices", devices, "device_id"), ("filesystems", filesystems, "filesystem_id"), ("configs", configs, "config_id"),
    ):  # fmt: skip
        names = [row[key] for row in rows]
        for number, name in enumerate(names, 1):
            if name in names[: number - 1]:
                raise root.wrong(f"{table}[{number}].{key}", name, "another block has the same; give each its own")
    notes = [
        f"{MANIFEST_FILE}: left out {block.where}{key}, which the lab does not know"
        for block in (root, machine, *(each for name in blocks.values() for each in name))
        for key in block.left
    ]
    tables = {"experiments": [experiment], "devices": devices, "filesystems": filesystems, "configs": configs, "config_factors": factors}
    return Manifest(experiment_id, revision, tables), notes


def _known(block: _Block, key: str, rows: list[dict[str, Any]], *, is_required: bool = False) -> str | None:
    """The name of another block."""
    value = block.text(key, is_required=is_required)
    names = [row[key] for row in rows]
    if value is not None and value not in names:
        known = f"there are {', '.join(names)}" if names else f"add one: [[{key.removesuffix('_id')}s]] with this {key}"
        raise block.wrong(key, value, f"there is no such block; {known}")
    return value


def _factors(block: _Block, given: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Factors with their values as text. TOML reads `io.file.buffer.size = 1` as tables within tables: the name is put together again."""
    if not isinstance(given, dict):
        raise block.wrong("factors", given, "write it as a table [configs.factors]")
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _factors(block, value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value if isinstance(value, str) else json.dumps(value, default=str)


# runs.csv ---------------------------------------------------------------------------------------------------------


def _listings(place: Path, files: dict[str, Path], notes: list[str]) -> list[Listing]:
    reader = csv.reader(io.StringIO(_text(place, files, RUNS_FILE)), strict=False)
    try:
        rows = [row for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise LabError(f"{place}: {RUNS_FILE} is no CSV: {one_line(error)} in line {reader.line_num}; correct it there") from error
    header = [name.strip() for name in rows[0]] if rows else []
    for name in REQUIRED:
        if name not in header:
            raise LabError(
                f"{place}: {RUNS_FILE} has no column {name}; its header is {','.join(header)[:80]!r}, give {','.join(RUN_COLUMNS)}"
            )
    for name in dict.fromkeys(header):
        if header.count(name) > 1:
            raise LabError(f"{place}: {RUNS_FILE} has the column {name} {header.count(name)} times; leave one")
        if name not in RUN_COLUMNS:
            notes.append(f"{RUNS_FILE}: left out column {name}, which the lab does not know")
    return [_listing(number, dict(zip(header, row, strict=False)), files) for number, row in enumerate(rows[1:], 1)]


def _listing(number: int, row: dict[str, str], files: dict[str, Path]) -> Listing:
    given = {name: row.get(name, "").strip() for name in RUN_COLUMNS}
    listing = Listing(
        number, given["file"], given["tool"], given["config_id"], given["phase"], None, given["pass"], device_id=given["device_id"] or None
    )

    def bad(column: str, hint: str) -> Listing:
        listing.reason, listing.message = BAD_ROW, f"{RUNS_FILE} row {number}: {column} is {given[column][:80]!r}; {hint}"
        return listing

    for name in REQUIRED:
        if not given[name]:
            return bad(name, "give it a value")
    listing.run_number = _whole(given["run_number"])
    if listing.run_number is None:
        return bad("run_number", "give a whole number from 1")
    if given["phase"] not in PHASES:
        return bad("phase", "give before, after, stress, or leave it empty")
    if given["pass"] not in PASSES:
        return bad("pass", "give throughput, latency, or leave it empty")
    offset = _real(given["offset_s"] or "0")
    if offset is None:
        return bad("offset_s", "give seconds")
    listing.offset_s = offset
    if given["process_count"]:
        listing.process_count = _whole(given["process_count"])
        if listing.process_count is None:
            return bad("process_count", "give a whole number from 1")
    inside = PurePosixPath(given["file"])
    if inside.is_absolute() or ".." in inside.parts or "\0" in given["file"]:
        listing.reason, listing.message = OUTSIDE_BUNDLE, "its path leads out of the bundle; copy the file into it"
        return listing
    path = files.get(str(inside))
    if path is None:
        listing.reason, listing.message = MISSING_FILE, "there is no such file in the bundle; add it, or remove its row from runs.csv"
    elif _leads_out(path, inside):
        listing.reason, listing.message = OUTSIDE_BUNDLE, "it is a link that leads out of the bundle; copy the file itself into it"
    else:
        listing.path = path
    return listing


def _leads_out(path: Path, name: PurePosixPath) -> bool:
    root = path.parents[len(name.parts) - 1]
    return not path.resolve().is_relative_to(root.resolve())


def _whole(text: str) -> int | None:
    """A whole number from 1, None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) and int(text) >= 1 else None


def _real(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None

"""A bundle that is being made: its files, the rows of runs.csv, and the truth."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import polars as pl

from lab.bundle import MANIFEST_FILE, RUN_COLUMNS, RUNS_FILE, manifest_text

BLOCK_BYTES = 4096
Event = tuple[int, str, str, str, str]
"""Event of a block trace: time (ns), device, action, rwbs, and the rest of the line."""


@dataclass
class Draft:
    """`manifest`: the text of experiment.toml. `truth`: rows that a relation must hold, by its name. `parts`: bundles by their folder,
    where the scenario is several experiments; then it has no files itself.
    """

    manifest: str = ""
    files: dict[str, str] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    truth: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    parts: dict[str, Draft] = field(default_factory=dict)

    def add(self, file: str, content: str, tool: str, config_id: str, run_number: int, **more: Any) -> None:
        """A file with its row in runs.csv."""
        self.files[file] = content
        self.runs.append({"file": file, "tool": tool, "config_id": config_id, "run_number": run_number, **more})

    def save(self, out: Path) -> None:
        """Write the bundle to a folder."""
        for name, part in self.parts.items():
            part.save(out / name)
        text = io.StringIO()
        writer = csv.DictWriter(text, RUN_COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.runs)
        own = {} if self.parts else {MANIFEST_FILE: self.manifest, RUNS_FILE: text.getvalue(), **self.files}
        for name, content in own.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        (out / "truth").mkdir(parents=True, exist_ok=True)
        for relation, rows in self.truth.items():
            pl.DataFrame(rows, infer_schema_length=None).write_parquet(out / "truth" / f"{relation}.parquet")


def manifest(
    parameters: Mapping[str, Any], kind: str, title: str, device: dict[str, Any], filesystems: Sequence[dict[str, Any]] = (),
    *, configs: list[dict[str, Any]], **more: Any,
) -> str:  # fmt: skip
    """experiment.toml of a scenario with one device, `d`. more: other keys."""
    keys = {"experiment_id": parameters["experiment_id"], "kind": kind, "expected_runs": parameters.get("runs"), "title": title, **more}
    on = [{"device_id": "d", **filesystem} for filesystem in filesystems]
    return manifest_text(keys, devices=[{"device_id": "d", **device}], filesystems=on, configs=configs)


def with_moments(rng: random.Random, middle: float, spread: float, count: int) -> list[float]:
    """Values with this mean and this standard deviation."""
    if count < 2 or not spread:
        return [middle] * count
    drawn = [rng.gauss(0, 1) for _ in range(count)]
    centre, width = mean(drawn), stdev(drawn)
    return [middle + spread * (value - centre) / width for value in drawn]


def filefrag(files: Mapping[str, Sequence[tuple[int, int]]]) -> str:
    """Output of `filefrag -v`. files: path -> first block and blocks of each extent."""
    lines = ["Filesystem type is: ef53"]
    for path, extents in files.items():
        blocks = sum(length for _, length in extents)
        lines.append(f"File size of {path} is {blocks * BLOCK_BYTES} ({blocks} blocks of {BLOCK_BYTES} bytes)")
        lines.append(" ext:     logical_offset:        physical_offset: length:   expected: flags:")
        logical, end = 0, 0
        for index, (first, length) in enumerate(extents):
            expected = f"{end:>10}:" if index and first != end else " " * 11
            ranges = f"{logical:>8}..{logical + length - 1:>8}: {first:>10}..{first + length - 1:>10}"
            lines.append(f"{index:>4}: {ranges}: {length:>6}: {expected} {'last,eof' if index == len(extents) - 1 else ''}")
            logical, end = logical + length, first + length
        lines.append(f"{path}: {len(extents)} extents found")
    return "\n".join(lines) + "\n"


def block_lines(events: Iterable[Event], *, is_numbered: bool = False) -> list[str]:
    """Events as the kernel's tracer `blk` prints them, in this order. is_numbered: as blkparse does."""
    lines = []
    for number, (at, device, action, rwbs, rest) in enumerate(events, 1):
        sequence = f"{number:>9}" if is_numbered else ""
        seconds, ns = divmod(at, 10**9)
        lines.append(f"{device:>7} {number % 4:>2}{sequence} {seconds:>5}.{ns:09d} {19146:>5} {action:>2} {rwbs:>3} {rest}")
    return lines

"""A bundle that is being made: its files, the rows of runs.csv, and the truth."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from lab.bundle import MANIFEST_FILE, RUN_COLUMNS, RUNS_FILE


@dataclass
class Draft:
    """`manifest`: the text of experiment.toml. `truth`: rows that a relation must hold, by its name."""

    manifest: str = ""
    files: dict[str, str] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    truth: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def add(self, file: str, content: str, tool: str, config_id: str, run_number: int, **more: Any) -> None:
        """A file with its row in runs.csv."""
        self.files[file] = content
        self.runs.append({"file": file, "tool": tool, "config_id": config_id, "run_number": run_number, **more})

    def save(self, out: Path) -> None:
        """Write the bundle to a folder."""
        text = io.StringIO()
        writer = csv.DictWriter(text, RUN_COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.runs)
        for name, content in {MANIFEST_FILE: self.manifest, RUNS_FILE: text.getvalue(), **self.files}.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        (out / "truth").mkdir(parents=True, exist_ok=True)
        for relation, rows in self.truth.items():
            pl.DataFrame(rows, infer_schema_length=None).write_parquet(out / "truth" / f"{relation}.parquet")

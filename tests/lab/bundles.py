"""Bundles written by hand, and what a warehouse says after they have landed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from drivetail.cli import main

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "lab"
MANIFEST = """
format = 1
experiment_id = "e1"
kind = "other"
[[devices]]
device_id = "d"
[[configs]]
config_id = "c"
device_id = "d"
"""
HEADER = "file,tool,config_id,run_number,phase,pass,offset_s"
BENCH = "benchmark,test,parameter,value,unit\nb,write,4096,10.5,kB/s\nb,write,8192,20,kB/s\n"


def write_bundle(folder: Path, files: Mapping[str, str | bytes], rows: list[str] | str, manifest: str = MANIFEST) -> Path:
    """A bundle in a folder. rows: lines of runs.csv after HEADER, or all of it."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = rows if isinstance(rows, str) else "\n".join([HEADER, *rows]) + "\n"
    for name, content in {"experiment.toml": manifest, "runs.csv": runs, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def lab(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["lab", *map(str, arguments)])


def status(warehouse: Path, *arguments: object) -> list[dict[str, Any]]:
    done = lab("status", "--json", "-w", warehouse, *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)

"""`drivetail lab compare FILE...`: output of benchmarks, before any of it is in a bundle or a warehouse."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.read import Row
from engine.warehouse import Warehouse
from lab.archives import readable
from lab.ask.words import compare
from lab.build import build_lab
from lab.bundle import MANIFEST_FILE, RUNS_FILE, manifest_text
from lab.contract import LabError, Refused
from lab.landing import ingest_bundle
from lab.read import published_lab
from lab.tools import tool_of
from lab.tools.text import Reading
from lab.tools.text import Row as Listed

TOOLS = ("fio", "iozone", "mdtest", "metarates", "bench")
"""Tools whose output may be given, in the order in which they are tried."""


def compare_files(files: Sequence[Path]) -> list[Row]:
    """Two sides over every test that both have: files of two folders, or of two names that differ in more than a number.

    Raises: LabError where there are not two sides, or a file is of no tool that is read.
    """
    sides = _sides(files)
    with TemporaryDirectory() as folder:
        bundle = Path(folder) / "bundle"
        bundle.mkdir()
        runs = io.StringIO()
        table = csv.writer(runs, lineterminator="\n")
        table.writerow(["file", "tool", "config_id", "run_number"])
        for side, members in sides.items():
            for run, file in enumerate(members, 1):
                name = f"{side}.{run}{''.join(file.suffixes[-2:])}"
                shutil.copy(file, bundle / name)
                table.writerow([name, _tool(file), side, run])
        blocks = {"devices": [{"device_id": "d"}], "configs": [{"config_id": side, "device_id": "d"} for side in sides]}
        (bundle / RUNS_FILE).write_text(runs.getvalue(), encoding="utf-8")
        (bundle / MANIFEST_FILE).write_text(manifest_text({"experiment_id": "files", "kind": "other"}, **blocks), encoding="utf-8")
        warehouse = Warehouse(Path(folder) / "warehouse")
        landed = ingest_bundle(warehouse.root, bundle)
        if landed.refused:
            raise LabError(f"{landed.refused[0]['file']}: {landed.refused[0]['message']}")
        build_lab(warehouse)
        with published_lab(warehouse) as connection:
            one, two = sides
            return compare(connection, one, two, None)


def _sides(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Name -> files of each side, in the order in which they were given."""
    given = [inner for file in files for inner in (sorted(file.iterdir()) if file.is_dir() else [file])]
    for name in (lambda file: file.parent.name, lambda file: re.sub(r"[\W\d_]+$", "", file.name.split(".")[0])):
        found: dict[str, list[Path]] = {}
        for file in given:
            found.setdefault(re.sub(r"[^A-Za-z0-9._-]", "-", name(file)) or "-", []).append(file)
        if len(found) == 2:
            return found
    raise LabError("files of two sides are compared: give them from two folders, or name them such as before1.json and after1.json")


def _tool(file: Path) -> str:
    """The tool that wrote a file. Raises: LabError where none of those that are read did."""
    for tool in TOOLS:
        try:
            with readable(file) as path:
                if any(batch.height for _, batch in tool_of(tool).read(path, Reading(Listed(file.name)))):
                    return tool
        except (Refused, ValueError):
            continue
    raise LabError(f"{file}: no result of {', '.join(TOOLS)}; any benchmark is read as CSV with benchmark,test,parameter,value,unit")

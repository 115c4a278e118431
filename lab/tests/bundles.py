"""Bundles written by hand, and what a warehouse says after they have landed."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drivetail.cli import main
from engine.read import open_published
from engine.warehouse import Warehouse
from lab.bundle import manifest_text
from lab.landing import ingest_bundle
from tests.proof.support import rows

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
SEEDS = range(1, 1 + int(os.environ.get("DRIVETAIL_LAB_SEEDS", "4")))
"""Seeds of random bundles: more in `make proof`."""
HEADER = "file,tool,config_id,run_number,phase,pass,offset_s"
BENCH = "benchmark,test,parameter,value,unit\nb,write,4096,10.5,kB/s\nb,write,8192,20,kB/s\n"


def manifest(name: str, kind: str, configs: Mapping[str, dict[str, Any]] | None = None, **more: Any) -> str:
    """experiment.toml with one device, `d`. configs: keys by name, `c` where there are none. more: other keys."""
    placed = [{"config_id": config, "device_id": "d", **keys} for config, keys in (configs or {"c": {}}).items()]
    return manifest_text({"experiment_id": name, "kind": kind, **more}, devices=[{"device_id": "d"}], configs=placed)


def write_bundle(folder: Path, files: Mapping[str, str | bytes], rows: list[str] | str, manifest: str = MANIFEST) -> Path:
    """A bundle in a folder. rows: lines of runs.csv after HEADER, or all of it."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = rows if isinstance(rows, str) else "\n".join([HEADER, *rows]) + "\n"
    for name, content in {"experiment.toml": manifest, "runs.csv": runs, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def land(warehouse: Warehouse, *bundles: Path) -> None:
    """Land bundles of which every file is taken and every line read."""
    for bundle in bundles:
        summary = ingest_bundle(warehouse.root, bundle)
        assert not summary.refused and not any(row["lines_rejected"] for row in summary.files)


def lab(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["lab", *map(str, arguments)])


def status(warehouse: Path, *arguments: object) -> list[dict[str, Any]]:
    done = lab("status", "--json", "-w", warehouse, *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def all_of(warehouse: Warehouse, relation: str, experiment: str, *key: str, where: str = "true") -> dict[Any, dict[str, Any]]:
    """Rows of a relation of an experiment by their key."""
    return by(rows(warehouse, f"select * from lab.{relation} where experiment_id = ? and {where}", experiment), *key)


def by(found: list[dict[str, Any]], *key: str) -> dict[Any, dict[str, Any]]:
    return {tuple(row[name] for name in key): row for row in found}


def agree(found: dict[Any, dict[str, Any]], wanted: dict[Any, dict[str, Any]], near: float = 1e-9) -> None:
    """Assert that rows have exactly the wanted keys, and the wanted values in the wanted columns. near: absolute tolerance."""
    assert wanted and set(found) == set(wanted)
    for key, row in wanted.items():
        for name, value in row.items():
            is_exact = value is None or isinstance(value, str | bool)
            assert found[key][name] == (value if is_exact else pytest.approx(value, rel=1e-9, abs=near)), (key, name)


def held_alike(warehouse: Warehouse, one: str, other: str) -> dict[str, int]:
    """Relation -> rows of an experiment, after it was compared with another that holds the same. When files landed is no part of it."""
    found = {}
    with open_published(warehouse) as connection:
        views = "select table_name from duckdb_columns() where schema_name = 'lab' and column_name = 'experiment_id' order by all"
        for (name,) in connection.execute(views).fetchall():
            query = f"select * exclude (experiment_id) from lab.{name} where experiment_id = ?"
            sides = [sorted(map(repr, connection.execute(query, [of]).fetchall())) for of in (one, other)]
            assert sides[0] == sides[1] or name == "ingested_files", name
            found[name] = len(sides[0])
    return found


def in_parts(bundle: Path, folder: Path, rng: random.Random, experiment_id: str) -> list[Path]:
    """The same bundle under another name, in three parts that overlap, in any order, one of them twice."""
    rows = (bundle / "runs.csv").read_text().splitlines()
    manifest = (bundle / "experiment.toml").read_text()
    manifest = manifest.replace(manifest.split('experiment_id = "')[1].split('"')[0], experiment_id, 1)
    parts = []
    for number in range(3):
        # a file that is measured twice and its second measurement stay together, for runs.csv says which is the later one
        mine = [row for place, row in enumerate(rows[1:]) if (place // 2 + number) % 3 != 0]
        part = folder / f"{experiment_id}-{number}"
        part.mkdir(parents=True)
        (part / "experiment.toml").write_text(manifest)
        (part / "runs.csv").write_text("\n".join([rows[0], *mine]) + "\n")
        for row in mine:
            shutil.copy(bundle / row.split(",")[0], part)
        parts.append(part)
    parts.append(parts[0])
    rng.shuffle(parts)
    return parts

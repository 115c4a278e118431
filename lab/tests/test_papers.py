"""The numbers that papers printed: the scenario that holds them gives them, and each of them has a row."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engine.warehouse import Warehouse
from lab.build import build_lab
from lab.simulate import simulate
from lab.tests.bundles import lab

pytestmark = pytest.mark.xdist_group("lab")

REFERENCE = Path(__file__).parents[3] / "shared" / "spec" / "other_seeds_reference.csv"
NUMBERS = Path(__file__).parents[1] / "seeds" / "experiment_numbers.csv"


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate("papers", tmp_path_factory.mktemp("papers") / "bundles", 2)


@pytest.fixture(scope="module")
def found(papers: Path) -> list[dict[str, Any]]:
    """Rows of `lab study` for the scenario `papers`, landed as one folder."""
    warehouse = Warehouse(papers.parent / "warehouse")
    landed = lab("ingest", papers, "-w", warehouse.root, "--strict")
    assert landed.exit_code == 0, landed.output
    build_lab(warehouse)
    done = lab("study", "--format", "json", "-w", warehouse.root)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def planted(papers: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(papers / "truth" / "study_results.parquet").to_dicts()


def test_numbers_that_the_papers_printed_are_reproduced(papers: Path, found: list[dict[str, Any]]) -> None:
    agreeing = {(row["experiment_id"], row["id"]) for row in found if row["verdict"] == "agrees"}
    wanted = {(row["experiment_id"], row["id"]) for row in planted(papers)}
    assert wanted <= agreeing, sorted(wanted - agreeing)


def test_every_comparable_number_is_planted_but_that_of_processors(papers: Path) -> None:
    with NUMBERS.open() as file:
        judged = {row["id"] for row in csv.DictReader(file) if row["judged_as"] != "not comparable"}
    assert judged - {"S004-UTL-02"} == {row["id"] for row in planted(papers)}


def test_every_number_has_a_row_with_its_worth(found: list[dict[str, Any]]) -> None:
    with NUMBERS.open() as file:
        assert {row["id"] for row in found} == {row["id"] for row in csv.DictReader(file)}
    assert {row["verdict"] for row in found} == {"agrees", "differs", "no data", "not comparable"}
    assert all((row["reason"] is not None) == (row["verdict"] in ("no data", "not comparable")) for row in found)
    assert [row["id"] for row in found if row["verdict"] == "no data" and row["kind"] == "hdfs"] == ["S004-UTL-02"]


@pytest.mark.skipif(not REFERENCE.exists(), reason="the papers' numbers are not there")
def test_the_numbers_are_those_of_the_papers() -> None:
    with REFERENCE.open() as printed, NUMBERS.open() as ours:
        wanted = {row["id"]: (row["value"], row["unit"]) for row in csv.DictReader(printed) if row["kind"] != "text"}
        assert {row["id"]: (row["value"], row["unit"]) for row in csv.DictReader(ours)} == wanted


def test_the_same_seed_gives_the_same_bytes(papers: Path, tmp_path: Path) -> None:
    again = simulate("papers", tmp_path / "again", 2)
    files = sorted(path.relative_to(papers) for path in papers.rglob("*") if path.is_file())
    assert len(files) > 200 and all((again / name).read_bytes() == (papers / name).read_bytes() for name in files)

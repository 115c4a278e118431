"""Reading is reading: whatever a publication shows answers at once, for any program that opens the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from engine.build import build, make_asked
from engine.read import QueryError, open_published
from engine.warehouse import Warehouse
from ingest import ingest
from simulate import simulate
from tests.golden import awkward_fleet
from tests.proof.support import environment

MOST_CPU_SECONDS = 0.3
MOST_BYTES = 500e6

ASK = """
import json, pathlib, sys, time
import duckdb

connection = duckdb.connect(sys.argv[1], read_only=True)
query = '''
    select distinct schema_name || '.' || table_name from duckdb_columns()
    where not internal and schema_name in ('marts', 'report', 'study', 'status', 'lab', 'custom')
'''
seconds = {}
for (relation,) in connection.execute(query).fetchall():
    began = time.process_time()
    connection.execute(f"select * from {relation} limit 100").fetchall()
    seconds[relation] = time.process_time() - began
# not ru_maxrss: that counts what the process was forked from
status = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(json.dumps({"seconds": seconds, "bytes": 1024 * int(status["VmHWM"].split()[0])}))
"""
"""A program that knows nothing of drivetail. A relation's first 100 rows are asked for once, so planning it is in the time."""


def check(warehouse: Warehouse) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, warehouse.published], env=environment(), capture_output=True, text=True, check=True, timeout=300
    )
    asked = json.loads(done.stdout)
    assert len(asked["seconds"]) > 100
    assert {name: seconds for name, seconds in asked["seconds"].items() if seconds > MOST_CPU_SECONDS} == {}
    assert asked["bytes"] < MOST_BYTES


def test_every_relation_gives_rows_within_a_third_of_a_second() -> None:
    check(awkward_fleet())


@pytest.mark.soak
def test_every_relation_of_nine_million_drive_hours_answers_fast(tmp_path: Path) -> None:
    simulate(tmp_path / "fleet", disk_groups=380, ssd_groups=12, days=84, seed=3)
    warehouse = Warehouse(tmp_path / "warehouse")
    ingest("bundle", [tmp_path / "fleet"], warehouse.root)
    assert build(warehouse).drive_hour_count > 9_000_000
    make_asked(warehouse)
    check(warehouse)


@pytest.mark.parametrize("is_swapped", [True, False])
def test_an_open_that_a_swap_falls_into_shows_a_publication(is_swapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB opens a file three times by its name. A file that is damaged is refused."""
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.create()
    own, following = (warehouse.publications / f"{name}.duckdb" for name in ("000001-20260105T000000Z", "000002-20260105T010000Z"))
    for file in (own, following):
        with duckdb.connect(str(file)) as connection:
            connection.execute("create schema plan; create table plan.root as select ? as root", [str(warehouse.root)])
    os.link(own, warehouse.published)
    connect = duckdb.connect

    def torn(path: str, **options: bool) -> duckdb.DuckDBPyConnection:
        if is_swapped:
            os.replace(following, warehouse.published)
        if not is_swapped or path == str(warehouse.published):
            raise duckdb.IOException("No more data remaining in MetadataReader")
        return connect(path, **options)

    monkeypatch.setattr("duckdb.connect", torn)
    if is_swapped:
        open_published(warehouse).close()
    else:
        with pytest.raises(QueryError, match="cannot be read"):
            open_published(warehouse)

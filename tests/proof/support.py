"""Shared by the proofs: the command as a process, the sums of the contract, and the comparison of two warehouses."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb

from engine.compiled import models_of
from engine.nodes import WHEN_ASKED
from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from workbench.unit_tests import project_folders

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
DUCKDB_CLI = Path(sys.executable).parent / "duckdb"
"""DuckDB 1.5, the older reader (package duckdb-cli)."""

DRIVE_HOURS, RAID_HOURS = "from marts.fct_drive_hours", "from marts.fct_raid_hours"
INTERVALS, ARRIVALS = "select sum(interval_hours) from marts.fct_slowdown_intervals", "select count(*) from marts.fct_slowdown_arrivals"
SUMS = {
    "1: slowdowns = reporting drives": (f"select count(slowdown) {DRIVE_HOURS}", f"select sum(reporting_drive_count) {RAID_HOURS}"),
    "2: slow drive-hours = slow drive counts": (f"select count_if(is_slow) {DRIVE_HOURS}", f"select sum(slow_drive_count) {RAID_HOURS}"),
    "2: tail hours = RAID-hours with a slow drive": (
        f"select count_if(is_tail_hour) {RAID_HOURS}", f"select count_if(slow_drive_count >= 1) {RAID_HOURS}",
    ),
    # (a / m + b / m) / 2 need not be 1 to the last bit when m is (a + b) / 2
    "3: RAID-hours whose median slowdown is 1 = RAID-hours": (
        f"select count_if(abs(half - 1) <= 1e-12) from (select median(slowdown) as half {DRIVE_HOURS} group by raid_group_id, hour_utc)",
        f"select count(*) {RAID_HOURS}",
    ),
    "4: interval hours at 2.0 = slow drive-hours": (f"{INTERVALS} where threshold = 2.0", f"select count_if(is_slow) {DRIVE_HOURS}"),
    "4: interval hours at 1.5 = slow drive-hours at 1.5": (
        f"{INTERVALS} where threshold = 1.5", f"select count_if(is_slow_15) {DRIVE_HOURS}",
    ),
    "5: slow drive-hours = arrivals + slow drives": (
        f"select count_if(is_slow) {DRIVE_HOURS}", f"select ({ARRIVALS}) + count(distinct drive_id) {DRIVE_HOURS} where is_slow",
    ),
}  # fmt: skip
"""Sums 1 to 5 of the contract, section 4: left and right side."""

# What the way of delivery may change: the file a record lay in (and how its format spells NaN), how it was judged, instants.
ASKED = {node.relation for node in models_of().made(WHEN_ASKED) if node.schema != "intermediate"}
"""Published relations that are made when somebody asks for them."""

NOT_COMPARED = {
    "marts.publication": None,
    # no fleet that is compared so lasts the weeks that these need: test_candidates.py has one that does
    "marts.replacement_candidates": None,
    "report.candidate_verdict_backtest": None,
    "report.candidate_quarter": None,
    "marts.ingested_files": None,
    # of ingested_files, too; of the others it follows from their rows
    "marts.relations": ("row_count",),
    "report.fct_landing_totals": None,
    "report.fct_rejection_counts": ("file_count",),
    "marts.rejected_records": ("file", "row", "value", "rejected_at"),
}


def seeds(count: int) -> list[int]:
    """The seeds of this run, DRIVETAIL_SEEDS ("5,17") or `count` (DRIVETAIL_FLEETS) drawn; every worker of one pytest-xdist run
    has to collect the same tests."""
    given = os.environ.get("DRIVETAIL_SEEDS")
    if given:
        return [int(seed) for seed in given.split(",")]
    drawn = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID"))
    return drawn.sample(range(1, 1_000_000), int(os.environ.get("DRIVETAIL_FLEETS", count)))


def drivetail(*arguments: object, cwd: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, as a user would. Raises: AssertionError with its output when it fails and `check` is set."""
    done = subprocess.run(command(*arguments), cwd=cwd, env=environment(), capture_output=True, text=True, timeout=600)
    assert not check or done.returncode == 0, (
        f"drivetail {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done


def command(*arguments: object) -> list[str]:
    """The command line of `drivetail` in this checkout (a copy of it finds its own code: workbench/mutants.py)."""
    return [sys.executable, "-m", "drivetail", *map(str, arguments)]


def environment() -> dict[str, str]:
    """This process's environment, with this checkout first on the path of a child in any folder."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}


def compile_models() -> None:
    """Compile the models of every project where they have changed, as `make wheel` does: what runs without dbt needs them."""
    for place in project_folders():
        models_of(project=place)


def refusing(package: str, folder: Path) -> Path:
    """A folder for the front of a child's PYTHONPATH: there a package is missing."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"""import sys


class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}, as this test wants it", name=name)


sys.meta_path.insert(0, Refusing)
""",
        encoding="utf-8",
    )
    return folder


def asked(file: Path, query: str) -> list[tuple]:
    """The rows of a query of a DuckDB file, opened read-only."""
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(query).fetchall()


def rows(warehouse: Warehouse, query: str, *given: object) -> list[dict[str, Any]]:
    """The rows of a query of what is published, by column."""
    with open_published(warehouse) as connection:
        return fetch(connection, query, list(given))


def asked_soundly(file: Path, query: str) -> list[tuple]:
    """The rows of a query of a publication in which the sums of the contract hold."""
    with duckdb.connect(str(file), read_only=True) as connection:
        assert broken_sums(connection) == []
    return asked(file, query)


def broken_sums(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Sums 1 to 5 of the contract that do not hold in an open publication."""
    found = []
    for what, sides in SUMS.items():
        left, right = (next(iter(connection.execute(side).fetchall()[0])) or 0 for side in sides)
        found += [f"{what}: {left} and {right}"] if left != right else []
    return found


def marts(connection: duckdb.DuckDBPyConnection, catalog: str) -> dict[str, list[str]]:
    """Columns of every published relation, by `schema.name`; in which order they stand, the two ways of running need not agree."""
    rows = connection.execute(
        """
        select schema_name || '.' || table_name, column_name from duckdb_columns()
        where database_name = ? and schema_name in ('marts', 'report', 'study', 'status') order by all
        """,
        [catalog],
    ).fetchall()
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found


def study(connection: duckdb.DuckDBPyConnection, catalog: str) -> set[str]:
    """Those of ASKED that somebody has asked for; the others cannot be read."""
    query = "select schema_name || '.' || table_name from duckdb_tables() where database_name = ?"
    return ASKED & {name for (name,) in connection.execute(query, [catalog]).fetchall()}


def marts_differences(left: Path, *others: Path, only: Collection[str] = ()) -> list[str]:
    """Differences between the marts of a published file and those of others, row for row and both ways; [] when they are the same.

    only: these relations, which there must be. The study is compared where it has been made, in all of them or in none.
    """
    with duckdb.connect() as connection:
        connection.execute(f"attach '{left}' as one (read_only)")
        relations = marts(connection, "one")
        asked = study(connection, "one")
        not_made = ASKED - asked
        assert "marts.fct_drive_hours" in relations, f"{left} has no marts"
        catalogs = {f"other_{number}": other for number, other in enumerate(others)}
        for catalog, other in catalogs.items():
            connection.execute(f"attach '{other}' as {catalog} (read_only)")
            if relations != (found := marts(connection, catalog)):
                return [f"relations or columns differ: {sorted(set(relations) ^ set(found))}"]
            assert study(connection, catalog) == asked, f"the study is made in only one of {left} and {other}"
        differences = []
        for relation in only or relations:
            columns = relations[relation]
            left_out = NOT_COMPARED.get(relation, ())
            if left_out is None or relation in not_made:
                continue
            listed = ", ".join(f'"{column}"' for column in columns if column not in left_out)
            for catalog, other in {"one": left, **catalogs}.items():
                connection.execute(f"create or replace temp table side_{catalog} as select {listed} from {catalog}.{relation}")
                for name, first, second in ((left, "one", catalog), (other, catalog, "one")):
                    rows = connection.execute(f"(from side_{first}) except all (from side_{second})").fetchall()
                    if rows:
                        differences.append(f"{relation}: {len(rows)} rows only in {name}, such as {rows[0]}")
        return differences

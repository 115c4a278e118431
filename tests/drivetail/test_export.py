"""Copies outside the warehouse: `drivetail export`, and copies of the folder, which never answer from the folder they came from."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from engine.build import make_asked
from engine.warehouse import Warehouse
from tests.drivetail.conftest import Published, drivetail
from tests.proof.support import asked

pytestmark = pytest.mark.xdist_group("export")

DRIVE_HOURS = "marts.fct_drive_hours order by drive_id, hour_utc"
COUNT = "select count(*) from marts.fct_drive_hours"
NAMES = "select table_name from information_schema.tables where table_schema = 'marts' order by 1"
OF_STUDY = ["study_curves", "study_results"]


@pytest.fixture(scope="module")
def exported(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "fleet.duckdb"
    done = drivetail("export", out, "-w", published.warehouse.root)
    assert done.exit_code == 0, done.output
    assert f"{out}: {out.stat().st_size:,} bytes" in done.output
    for name in OF_STUDY:
        assert f"Left out: {name} is computed when it is asked for: run `drivetail study`" in done.output
    return out


def test_an_export_has_every_computed_mart_with_comments_and_no_path(published: Published, exported: Path) -> None:
    names = asked(published.warehouse.published, NAMES)
    assert set(OF_STUDY) <= {name for (name,) in names}
    assert asked(exported, NAMES) == [(name,) for (name,) in names if name not in OF_STUDY]
    assert asked(exported, "select count(*) from duckdb_views() where not internal") == [(0,)]
    assert asked(exported, f"from {DRIVE_HOURS}") == asked(published.warehouse.published, f"from {DRIVE_HOURS}")
    for kind in ("columns", "tables"):
        query = f"select count(comment) from duckdb_{kind}() where schema_name = 'marts' and table_name not in {tuple(OF_STUDY)}"
        of_views = f"select count(comment) from duckdb_views() where schema_name = 'marts' and view_name not in {tuple(OF_STUDY)}"
        views = f" + ({of_views})" if kind == "tables" else ""
        assert asked(exported, query) == asked(published.warehouse.published, f"select ({query}){views}")
    assert [path.name for path in exported.parent.iterdir()] == ["fleet.duckdb"]


def test_the_study_is_exported_once_it_is_computed(settled: Warehouse, tmp_path: Path) -> None:
    out = tmp_path / "fleet.duckdb"
    refused = drivetail("export", out, "--select", "study_results", "-w", settled.root)
    assert refused.exit_code == 1 and "--select study_results: is computed when it is asked for: run `drivetail study`" in refused.output
    make_asked(settled)
    done = drivetail("export", out, "-w", settled.root)
    assert done.exit_code == 0 and "Left out" not in done.output
    assert asked(out, NAMES) == asked(settled.published, NAMES)
    for name in OF_STUDY:
        assert asked(out, f"from marts.{name} order by all") == asked(settled.published, f"from marts.{name} order by all")
    comment = "select comment like '%As of 2026-01-06 05:00:00, UTC.' from duckdb_tables() where table_name = 'study_results'"
    assert asked(out, comment) == [(True,)]


def test_a_parquet_file_for_each_mart_that_is_selected(published: Published, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    command = ("export", "--parquet", out, "--select", "fct_drive_hours", "--select", "dim_drives", "-w", published.warehouse.root)
    assert drivetail(*command).exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["dim_drives.parquet", "fct_drive_hours.parquet"]
    rows = duckdb.sql(f"from '{out}/fct_drive_hours.parquet' order by drive_id, hour_utc").fetchall()
    assert rows == asked(published.warehouse.published, f"from {DRIVE_HOURS}")
    assert drivetail(*command).exit_code == 1
    assert drivetail(*command, "--force").exit_code == 0
    (out / "notes.txt").touch()
    refused = drivetail(*command, "--force")
    assert refused.exit_code == 1 and "notes.txt: is no Parquet file, so this folder is not replaced" in refused.output
    assert [path.name for path in tmp_path.iterdir()] == ["fleet"]


def test_a_parquet_file_says_what_it_and_its_columns_are(published: Published, tmp_path: Path) -> None:
    done = drivetail("export", "--parquet", tmp_path / "fleet", "--select", "fct_raid_hours", "-w", published.warehouse.root)
    assert done.exit_code == 0, done.output
    held = f"from parquet_kv_metadata('{tmp_path}/fleet/fct_raid_hours.parquet')"
    said = dict(duckdb.sql(f"select decode(key), decode(value) {held}").fetchall())
    columns = dict(
        asked(published.warehouse.published, "select column_name, comment from duckdb_columns() where table_name = 'fct_raid_hours'")
    )
    assert json.loads(said["columns"]) == columns and said["key"] == "raid_group_id, hour_utc" and said["description"]


def test_a_key_of_an_exported_relation_is_a_constraint(published: Published, exported: Path) -> None:
    """The columns of a view's key are not null; one with an unknown in it (`unkeyed`) is none in SQL."""
    grains = dict(asked(published.warehouse.published, "select relation, grain from marts.relations where relation like 'marts.%'"))
    views = {name for (name,) in asked(published.warehouse.published, "select view_name from duckdb_views() where schema_name = 'marts'")}
    held = "select table_name, constraint_type, constraint_column_names from duckdb_constraints() where schema_name = 'marts'"
    keys = {name: columns for name, kind, columns in asked(exported, held) if kind == "PRIMARY KEY"}
    filled: dict[str, set[str]] = {}
    for name, kind, columns in asked(exported, held):
        if kind == "NOT NULL":
            filled.setdefault(name, set()).update(columns)
    unkeyed = set()
    for (name,) in asked(exported, NAMES):
        grain = [column for column in grains[f"marts.{name}"].split(", ") if column]
        missing = " or ".join(f"{column} is null" for column in grain) or "false"
        if asked(exported, f"select 1 from marts.{name} where {missing} limit 1"):
            unkeyed.add(name)
        elif grain:
            assert filled[name] >= set(grain), name
            assert (keys.get(name) == grain) == (name not in views), name
    assert {"fct_drive_hours"} <= views and {"dim_drives", "fct_slowdown_intervals"} <= keys.keys() and "dim_drives" not in unkeyed


def test_export_refuses_to_overwrite_and_leaves_no_partial_file(published: Published, exported: Path, tmp_path: Path) -> None:
    root = published.warehouse.root
    for arguments, said in (
        ((exported,), "already exists; --force replaces it"),
        ((root / "fleet.duckdb",), "is inside the warehouse"),
        ((tmp_path / "no" / "fleet.duckdb",), "no such folder"),
        ((tmp_path, "--force"), "is a folder"),
        ((tmp_path / "f.duckdb", "--select", "dim_disks"), "--select dim_disks: no such relation; there are "),
        ((tmp_path / "f.duckdb", "--storage-version", "v0.9"), "cannot be written"),
    ):
        refused = drivetail("export", *arguments, "-w", root)
        assert refused.exit_code == 1 and said in refused.output, refused.output
    assert drivetail("export", "-w", root).exit_code == 2
    assert list(tmp_path.iterdir()) == [] and not (root / "fleet.duckdb").exists()


def test_a_copy_never_answers_from_the_folder_it_came_from(published: Published, copied: Warehouse) -> None:
    moved = "was copied or moved, and would show the files of .*; run `drivetail build -w FOLDER`"
    for file in (copied.published, *copied.publications.glob("*-*.duckdb")):
        with duckdb.connect(str(file), read_only=True) as connection:
            of_files = (
                "marts.fct_drive_decisions",
                "marts.fct_raid_hours",
                "raw.decisions",
                "marts.drive_actions",
            )
            for query in (COUNT, f"{COUNT} where drive_id = 'nobody'", *(f"from {relation}" for relation in of_files)):
                with pytest.raises(duckdb.Error, match=moved):
                    connection.execute(query).fetchall()
            # whatever function reads them
            of_other_files = "contains(sql, $root) and not contains(sql, 'was copied or moved')"
            views = f"select view_name from duckdb_views() where {of_other_files}"
            assert connection.execute(views, {"root": str(published.warehouse.root)}).fetchall() == []
    with duckdb.connect() as connection:
        for name, warehouse in (("original", published.warehouse), ("copy", copied)):
            connection.execute(f"attach '{warehouse.published}' as {name} (read_only)")
        with pytest.raises(duckdb.Error, match=moved):
            connection.execute(COUNT.replace("marts", "copy.marts"))
        connection.execute("detach copy")
        assert connection.execute(COUNT.replace("marts", "original.marts")).fetchall() == asked(published.warehouse.published, COUNT)


def test_the_original_answers_under_any_name(published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = asked(published.warehouse.published, COUNT)
    assert expected != [(0,)]
    (tmp_path / "link").symlink_to(published.warehouse.root)
    (tmp_path / "fleet.duckdb").symlink_to(published.warehouse.published)
    monkeypatch.chdir(published.warehouse.root)
    (kept,) = published.warehouse.publications.glob("*-*.duckdb")
    for path in (tmp_path / "link" / "warehouse.duckdb", tmp_path / "fleet.duckdb", Path("warehouse.duckdb"), kept):
        assert asked(path, COUNT) == expected, path


KILLED = """
import os, signal, sys
from pathlib import Path
from drivetail.ask import export
from engine.warehouse import Warehouse

warehouse, out, moment = sys.argv[1:]
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if moment == "swap":  # a folder's last content has been moved aside, and the new one is not in its place
    export.os.replace = kill
export.export(
    Warehouse(Path(warehouse)), Path(out), is_parquet=out.endswith("folder"), is_forced=True,
    on_progress=lambda name, done, total: done == total // 2 and moment == "tables" and kill(),
)
"""


@pytest.mark.parametrize("moment", ["tables", "swap"])
@pytest.mark.parametrize("name", ["fleet.duckdb", "folder"])
def test_remains_of_a_killed_export_go_with_the_next_one_there(published: Published, tmp_path: Path, name: str, moment: str) -> None:
    root, out = published.warehouse.root, tmp_path / name
    command = ("export", *(("--parquet",) if name == "folder" else ()), out, "--force", "-w", root)
    assert drivetail(*command).exit_code == 0
    files = sorted(out.iterdir()) if name == "folder" else []
    killed = subprocess.run([sys.executable, "-c", KILLED, root, out, moment], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = {path.name for path in tmp_path.iterdir()} - {name}
    assert any(path.endswith(".draft") for path in left)
    # of a process that runs, and of another place
    others = {f".{name}.{os.getppid()}.draft", f".other.{name}.1.draft", f".{name}x.999999.draft", f".{name}.draft"}
    for other in others:
        (tmp_path / other).touch()
    # of one that had the id of the next, as in a container
    (tmp_path / f".{name}.{os.getpid()}.draft").write_text("no database")
    assert drivetail(*command).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {name, *others}
    assert sorted(out.iterdir()) == files if name == "folder" else asked(out, COUNT) == asked(published.warehouse.published, COUNT)

"""What leaves the warehouse: `drivetail export`, and copies of the folder, which never answer from the folder they came from."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from engine.warehouse import Warehouse
from tests.drivetail.conftest import Published, drivetail

pytestmark = pytest.mark.xdist_group("export")

DRIVE_HOURS = "marts.fct_drive_hours order by drive_id, hour_utc"
COUNT = "select count(*) from marts.fct_drive_hours"


def asked(file: Path, query: str) -> list[tuple]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def exported(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "fleet.duckdb"
    done = drivetail("export", out, "-w", published.warehouse.root)
    assert done.exit_code == 0, done.output
    assert f"{out}: {out.stat().st_size:,} bytes" in done.output
    return out


def test_a_file_holds_every_mart_with_its_comments_and_no_path(published: Published, exported: Path) -> None:
    names = "select table_name from information_schema.tables where table_schema = 'marts' order by 1"
    assert asked(exported, names) == asked(published.warehouse.published, names)
    assert asked(exported, "select count(*) from duckdb_views() where not internal") == [(0,)]
    assert asked(exported, f"from {DRIVE_HOURS}") == asked(published.warehouse.published, f"from {DRIVE_HOURS}")
    for kind in ("columns", "tables"):
        query = f"select count(comment) from duckdb_{kind}() where schema_name = 'marts'"
        views = " + (select count(comment) from duckdb_views() where schema_name = 'marts')" if kind == "tables" else ""
        assert asked(exported, query) == asked(published.warehouse.published, f"select ({query}){views}")
    assert [path.name for path in exported.parent.iterdir()] == ["fleet.duckdb"]


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


def test_it_refuses_what_would_lose_something_and_leaves_nothing_half_written(published: Published, exported: Path, tmp_path: Path) -> None:
    root = published.warehouse.root
    for arguments, said in (
        ((exported,), "already exists; --force replaces it"),
        ((root / "fleet.duckdb",), "is inside the warehouse"),
        ((tmp_path / "no" / "fleet.duckdb",), "no such folder"),
        ((tmp_path, "--force"), "is a folder"),
        ((tmp_path / "f.duckdb", "--select", "dim_disks"), "--select dim_disks: no such relation in marts; there are "),
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
            for query in (COUNT, f"{COUNT} where drive_id = 'nobody'", "from marts.fct_drive_decisions", "from marts.fct_raid_hours"):
                with pytest.raises(duckdb.Error, match=moved):
                    connection.execute(query).fetchall()
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

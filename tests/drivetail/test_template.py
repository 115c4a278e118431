"""Templates: what a new warehouse begins with is defined and empty; one that is damaged or of other models does no harm."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from engine.template import Template


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A view over a table, and a row."""
    path = tmp_path / "used.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create schema state; create table state.rows as select 7 as x")
        connection.execute("create table named as select 1 as y; create view doubled as select 2 * x as x from state.rows")
    return path


def drop_state(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("drop schema state cascade")


def test_a_database_begins_with_what_is_defined_and_none_of_the_rows(database: Path, tmp_path: Path) -> None:
    template = Template(tmp_path, "build", "these models")
    template.keep(database, drop_state)
    (tmp_path / "new.duckdb.wal").write_bytes(b"the log of one that somebody removed")
    template.begin(tmp_path / "new.duckdb")
    with duckdb.connect(str(tmp_path / "new.duckdb")) as connection:
        assert connection.execute("select table_name from duckdb_tables()").fetchall() == [("named",)]
        connection.execute("create schema state; create table state.rows as select 8 as x")
        assert connection.execute("select x from doubled").fetchall() == [(16,)]
    with duckdb.connect(str(database)) as connection:
        assert connection.execute("select x from doubled").fetchall() == [(14,)]


def test_a_template_of_other_models_is_not_taken_and_goes_when_there_is_a_new_one(database: Path, tmp_path: Path) -> None:
    Template(tmp_path, "build", "other models").keep(database, drop_state)
    these = Template(tmp_path, "build", "these models")
    these.begin(tmp_path / "new.duckdb")
    assert not (tmp_path / "new.duckdb").exists()
    these.keep(database, drop_state)
    assert [path.name for path in tmp_path.glob("build-*")] == [these.name]


def test_of_a_damaged_template_nothing_is_left(database: Path, tmp_path: Path) -> None:
    template = Template(tmp_path, "build", "these models")
    template.keep(database, drop_state)
    (tmp_path / template.name).write_bytes((tmp_path / template.name).read_bytes()[:100])
    template.begin(tmp_path / "new.duckdb")
    Template(None, "build", "these models").begin(tmp_path / "new.duckdb")
    assert [path.name for path in tmp_path.iterdir()] == [database.name]

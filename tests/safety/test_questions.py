"""`drivetail sql` answers questions about the warehouse and does nothing else; the published file takes no writes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest
from hostile import Attacked, drivetail

from engine.read import open_published

pytestmark = pytest.mark.xdist_group("safety")

ANSWERED = [
    "select count(*) from marts.fct_drive_hours",
    "from marts.publication -- a comment at the end",
    "with x as (select 1 as a) select * from x;",
    "show all tables",
    "describe marts.fct_raid_hours",
    "summarize marts.fct_raid_hours",
    "/* why */ explain analyze select count(*) from marts.fct_raid_hours",
]
REFUSED = [
    "create table marts.x as select 1",
    "delete from raw.publication",
    "insert into raw.publication select * from raw.publication",
    "drop view marts.fct_drive_hours",
    "select 1; drop view marts.fct_drive_hours",
    "copy (select 1) to '{out}'",
    "copy (select 1) to '{raw}/x.csv'",
    "explain analyze copy (select 1) to '{raw}/x.csv'",
    "explain (analyze) copy (select 1) to '{raw}/x.csv'",
    "/* explain */ explain explain analyze copy (select 1) to '{raw}/x.csv'",
    "prepare p as copy (select 1) to '{raw}/x.csv'",
    "copy (pivot marts.publication on publication_id) to '{raw}/x.csv'",
    "export database '{out}'",
    "attach '{out}' as other",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "reset allowed_directories",
    "pragma enable_profiling",
    "call enable_logging()",
    "select * from read_text('/etc/passwd')",
    "select * from read_csv('/etc/passwd')",
    "select * from read_blob('{raw}/../../../../../../../../../../etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from glob('/etc/*')",
    "select * from read_csv('http://localhost:9/x.csv')",
    "select * from 's3://bucket/x.parquet'",
    "select * from query('copy (select 1) to ''{out}''')",
    "",
    "select 1 where",
]


def files_of(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


# an explanation is not a table that could be a file
@pytest.mark.parametrize(
    ("question", "form"), [(q, form) for q in ANSWERED for form in ("table", "parquet") if form == "table" or "explain" not in q]
)
def test_a_question_is_answered(attacked: Attacked, question: str, form: str, tmp_path: Path) -> None:
    out = [] if form == "table" else ["--out", tmp_path / "it's.parquet"]
    answer = drivetail("sql", question, "--format", form, *out, "-w", attacked.warehouse.root)
    assert answer.exit_code == 0, answer.output
    assert answer.output


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_and_leaves_no_trace(attacked: Attacked, text: str, tmp_path: Path) -> None:
    raw = attacked.warehouse.raw / "deliveries"
    before = files_of(attacked.warehouse.root)
    filled = text.format(out=tmp_path / "out", raw=str(raw).replace("'", "''"))
    for arguments in ([], ["--format", "csv", "--out", tmp_path / "answer.csv"]):
        answer = drivetail("sql", filled, *arguments, "-w", attacked.warehouse.root)
        assert answer.exit_code == 1, answer.output
        assert "root:" not in answer.output
    assert files_of(attacked.warehouse.root) == before
    assert not [path for path in tmp_path.iterdir() if path.stat().st_size]


@pytest.mark.parametrize(
    ("mistaken", "meant"),
    [("from marts.fct_raid_hour", "fct_raid_hours"), ("select tail_on from marts.fct_raid_hours", "tail_1"), ("selec 1", "selec")],
)
def test_a_misspelt_name_is_answered_with_the_ones_there_are(attacked: Attacked, mistaken: str, meant: str) -> None:
    answer = drivetail("sql", mistaken, "-w", attacked.warehouse.root)
    assert answer.exit_code == 1
    assert meant in answer.output
    assert "LINE 1" not in answer.output


def test_nobody_writes_into_the_published_file(attacked: Attacked) -> None:
    with open_published(attacked.warehouse) as connection, pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("create table marts.x as select 1")
    for path in (attacked.warehouse.published, *attacked.warehouse.publications.glob("*.duckdb")):
        assert not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, and only another user is held back by the file's mode")
def test_another_user_reads_it_and_cannot_open_it_for_writing(attacked: Attacked) -> None:
    # pytest's own folder is closed to others
    copy = Path(tempfile.mkdtemp(prefix="drivetail_safety_"))
    try:
        copy.chmod(0o777)
        file = copy / "warehouse.duckdb"
        shutil.copy(attacked.warehouse.published, file)
        program = (
            "import os, duckdb, sys\nos.setgid(65534); os.setuid(65534)\nfile = sys.argv[1]\n"
            "print(duckdb.connect(file, read_only=True).execute('select count(*) from raw.publication').fetchall())\n"
            "try:\n    duckdb.connect(file)\nexcept duckdb.Error as error:\n    print('refused', error)\n"
        )
        done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, timeout=60)
        assert done.stdout.startswith("[(1,)]\nrefused"), done.stdout + done.stderr
    finally:
        shutil.rmtree(copy)


def test_a_table_ends_before_the_terminal_is_full(attacked: Attacked) -> None:
    asked = ("sql", "select hour_utc from marts.fct_drive_hours", "--limit", "2", "-w", str(attacked.warehouse.root))
    *rows, last = drivetail(*asked).output.splitlines()
    assert last == "... more than 2 rows; see --limit, or --format csv" and len([row for row in rows if "2026-" in row]) == 2
    assert "more than" not in drivetail("sql", "select 1 as one", "--limit", "1", "-w", str(attacked.warehouse.root)).output

"""The site of a demo: its pages are the console's, no link is dead, no form waits for a server, and equal warehouses give equal files."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote

import click
import duckdb
import pytest
from click.testing import CliRunner
from hostile import SLOW, attacked_fleet

from console.site import WIDE, earlier_files, write_site
from drivetail.cli import main
from drivetail.demo import run_demo
from engine.read import QueryError, open_published
from engine.warehouse import Warehouse
from tests.golden import copied
from tests.pages import Page
from tests.report.conftest import demo_fleet

pytestmark = pytest.mark.xdist_group("console")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    write_site(copied(demo_fleet(), root / "warehouse"), root / "site")
    return root / "site"


def led(page: Path) -> set[tuple[str, str]]:
    """The file and the fragment of each link of a page, and what it loads."""
    found = [attrs.get(name) for _, attrs in Page(page).tags for name in ("href", "src", "action")]
    return {(unquote(to.partition("#")[0]) or page.name, to.partition("#")[2]) for to in found if to is not None and to != "data:,"}


def test_every_page_is_reached_and_no_link_is_dead(site: Path):
    seen, waiting = set[str](), {"index.html"}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for to, fragment in led(site / name) if name.endswith(".html") else ():
            assert (site / to).is_file(), f"{name} leads to {to}"
            assert not fragment or f'id="{fragment}"' in (site / to).read_text(encoding="utf-8"), f"{name} leads to {to}#{fragment}"
            waiting |= {to} - seen
    assert seen == {str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()}
    assert sum(file.stat().st_size for file in site.rglob("*")) < 40_000_000


def test_nothing_of_a_page_waits_for_a_server(site: Path):
    for page in site.glob("*.html"):
        if not re.fullmatch(r"\d{4}-W\d\d\.html", page.name):  # the report has no form, and filters in the browser
            tags = {tag for tag, _ in Page(page).tags}
            assert not tags & {"form", "input", "button", "textarea"}, page.name
            assert "drivetail serve" in page.read_text(encoding="utf-8"), f"{page.name} does not say what is left out"


def test_drives_to_act_on_lead_from_the_fleet_to_a_raw_row(site: Path):
    with open_published(demo_fleet()) as connection:
        due = connection.execute("select drive_id from marts.drive_actions where needs_person").fetchall()
    pages = [(site / to) for to, _ in led(site / "index.html") if to.startswith("drive-")]
    for (drive,) in due:
        (page,) = [page for page in pages if page.name.startswith(f"drive-{drive}-")]
        (hour,) = [to for to, _ in led(page) if to.startswith("hour-")]
        assert drive in hour and "Raw record" in (site / hour).read_text(encoding="utf-8")


def test_a_table_is_the_mart_with_its_description(site: Path):
    with open_published(demo_fleet()) as connection:
        query = "select table_name from information_schema.tables where table_schema = 'marts' and table_name not like 'study%'"
        names = {name for (name,) in connection.execute(query).fetchall()} - {*WIDE}
        assert {file.stem for file in (site / "tables").iterdir()} == names
        for name in ("fct_drive_hours", "drive_actions", "dim_drives"):
            rows = set(duckdb.sql(f"from '{site}/tables/{name}.parquet'").fetchall())
            assert rows == set(connection.execute(f"from marts.{name}").fetchall()), name
        comment = connection.execute("select comment from duckdb_tables() where table_name = 'dim_drives'").fetchall()[0][0]
    assert comment in html.unescape((site / "tables.html").read_text(encoding="utf-8"))


def test_equal_warehouses_give_equal_files_whatever_names_they_hold(tmp_path: Path):
    warehouse = attacked_fleet().warehouse
    first, second = (write_site(warehouse, tmp_path / name) for name in ("a", "b"))
    write_site(warehouse, tmp_path / "b")  # in the place of an earlier one
    files = {file.relative_to(tmp_path / "a") for file in (tmp_path / "a").rglob("*") if file.is_file()}
    assert first == second and files == {file.relative_to(tmp_path / "b") for file in (tmp_path / "b").rglob("*") if file.is_file()}
    assert [str(file) for file in files if (tmp_path / "a" / file).read_bytes() != (tmp_path / "b" / file).read_bytes()] == []
    for page in (tmp_path / "a").glob("*.html"):
        assert SLOW not in page.read_text(encoding="utf-8")
        assert all((tmp_path / "a" / to).is_file() for to, _ in led(page)), page.name


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path):
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(QueryError, match="which no demo wrote"):
        write_site(Warehouse(tmp_path / "none"), tmp_path)
    assert (tmp_path / "index.html").read_text() == "mine"


def test_the_site_of_a_demo_may_be_in_its_folder(tmp_path: Path):
    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def stop(words: tuple[str, ...]):
        raise LookupError(words[0])

    earlier_files(tmp_path / "demo" / "site")
    with pytest.raises(LookupError, match="simulate"):
        run_demo(tmp_path / "demo", stop)
    (tmp_path / "demo" / "site" / "mine").touch()
    with pytest.raises(click.UsageError, match="no demo wrote"):
        run_demo(tmp_path / "demo", stop)


def test_the_command_writes_the_site_after_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made: list[Path] = []
    monkeypatch.setattr("drivetail.demo.run_demo", lambda *given: None)
    monkeypatch.setattr("console.site.write_site", lambda warehouse, out: made.extend((warehouse.root, out)) or 7)
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path), "--site", str(tmp_path / "site")])
    assert done.exit_code == 0 and "7 pages" in done.output and made == [tmp_path / "warehouse", tmp_path / "site"]

"""Promises to a reader: the published file opens anywhere, in DuckDB 1.5 and 2.0, and lasts as long as somebody may have it open."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from drivetail.ask.status import collect_status
from engine.build import build, make_asked
from engine.projects import published_schemas
from engine.publish import Publication, current_publication
from engine.warehouse import Warehouse
from ingest import StoreError, ingest
from tests.proof.forks import Forks
from tests.proof.support import DUCKDB_CLI, drivetail, marts
from tests.reference.compare import compare
from tests.reference.fleets import deliveries, random_fleet, write_bundle
from tests.reference.reference import HOUR, SCHEMAS, compute

SEED = 7
pytestmark = pytest.mark.xdist_group("published")


class Fleet:
    """A warehouse and the deliveries still to come; every test takes it on from where the last one left it."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = Warehouse(folder / "warehouse")
        self.forks = Forks(folder / "forks")
        folders, _ = deliveries(random_fleet(SEED), "shuffled", folder / "deliveries", random.Random(SEED))
        self.delivered: list[Path] = []
        self._coming = iter(folders)
        self.publish_next()

    def publish_next(self) -> None:
        """Ingest the next delivery and build, what is made once a day too."""
        self.take_next()
        self.build("--daily")

    def take_next(self) -> None:
        """Ingest the next delivery."""
        folder = next(self._coming)
        self.delivered.append(folder)
        self.ingest(folder)

    def ingest(self, *folders: Path) -> None:
        self.forks.run("ingest", "bundle", *folders, "--warehouse", self.warehouse.root)

    def build(self, *options: str) -> Publication:
        self.forks.run("build", *options, "--warehouse", self.warehouse.root)
        publication = current_publication(self.warehouse)
        assert publication
        return publication

    def check(self) -> None:
        """The marts are those of the reference."""
        assert compare(compute(self.delivered), self.warehouse.published) == []


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return Fleet(tmp_path_factory.mktemp("published"))


def answers(text: str) -> list[list[dict]]:
    """DuckDB's output in mode JSON: one array per query."""
    found = []
    while text := text.lstrip():
        rows, end = json.JSONDecoder().raw_decode(text)
        found.append(rows)
        text = text[end:]
    return found


def test_every_mart_opens_in_duckdb_15_and_20_from_any_folder(fleet: Fleet, tmp_path: Path) -> None:
    attach = f"attach '{fleet.warehouse.published}' as fleet (read_only)"
    command = [str(DUCKDB_CLI), "-json", "-c", f"{attach}; select count(*) from fleet.marts.study_results"]
    command[-1] += "; select comment from duckdb_views() where schema_name = 'marts' and view_name = 'study_results'"
    empty, said = answers(subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout)
    assert list(empty[0].values()) == [0] and "run `drivetail study`" in said[0]["comment"], "nobody has asked for the study"
    make_asked(fleet.warehouse)
    with duckdb.connect(str(fleet.warehouse.published), read_only=True) as connection:
        relations = list(marts(connection, "warehouse"))
    assert {"marts.fct_drive_hours", "marts.fct_raid_hours", "marts.publication"} <= set(relations)
    count = " union all ".join(f"select '{name}' as name, count(*) as n from fleet.{name}" for name in relations)
    command = [str(DUCKDB_CLI), "-json", "-c", f"{attach}; select version() as version; {count}"]
    version, older = answers(subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout)
    assert version[0]["version"].startswith("v1.5.")
    quiet = f"set enable_progress_bar = false; {attach}"
    counting = f"duckdb.sql({count!r}).fetchall()"
    script = f"import duckdb, json; duckdb.sql({quiet!r}); print(json.dumps([duckdb.__version__, {counting}]))"
    command = [sys.executable, "-c", script]
    version, newer = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert version.startswith("2.0.")
    counted = {row["name"]: row["n"] for row in older}
    assert counted.keys() == set(relations)
    assert dict(newer) == counted
    assert counted["marts.fct_drive_hours"] > 0 and counted["marts.study_results"] > 0


def test_every_relation_and_every_column_of_marts_says_what_it_is(fleet: Fleet) -> None:
    with duckdb.connect(str(fleet.warehouse.published), read_only=True) as connection:
        published = f"schema_name in {published_schemas()}"
        relations = f"select {{0}}_name, comment from duckdb_{{0}}s() where {published}"
        columns = "select table_name || '.' || column_name, comment from duckdb_columns() where schema_name = 'marts'"
        for query in (" union all ".join(relations.format(kind) for kind in ("table", "view")), columns):
            found = dict(connection.execute(query).fetchall())
            assert len(found) > 60 and [name for name, comment in found.items() if not comment] == []
    assert "tail" in found["fct_raid_hours.tail_1"].lower()


def test_show_tables_lists_ten_to_start_with(fleet: Fleet) -> None:
    queries = "show tables; select count(*) as n from drives; select count(*) as n from marts.dim_drives"
    command = [str(DUCKDB_CLI), "-readonly", "-json", str(fleet.warehouse.published), "-c", queries]
    listed, drives, of_mart = answers(subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout)
    names = "alerts candidates decisions drive_hours drive_slowness drives raid_groups raid_hours replacements slowdown_intervals"
    assert " ".join(row["name"] for row in listed) == names
    assert drives == of_mart
    with duckdb.connect(str(fleet.warehouse.published), read_only=True) as connection:
        for relation, least in (("duckdb_views()", 9), ("duckdb_columns()", 100)):
            query = f"select count(*), count(comment) from {relation} where schema_name = 'main' and not internal"
            ((found, described),) = connection.execute(query).fetchall()
            assert found == described >= least


def test_building_again_changes_nothing(fleet: Fleet) -> None:
    first = current_publication(fleet.warehouse)
    content = fleet.warehouse.published.read_bytes()
    assert fleet.build() == first
    fleet.ingest(*fleet.delivered)
    assert fleet.build() == first
    assert fleet.warehouse.published.read_bytes() == content
    fleet.check()


@pytest.mark.soak
def test_builds_killed_before_the_swap_keep_the_publication(fleet: Fleet) -> None:
    """Readers on other hosts have an hour from the swap on, whatever was begun before it."""
    fleet.take_next()
    build = ("build", "--warehouse", fleet.warehouse.root)
    # before the draft is given its name, its record is there already; before the swap both are
    written = fleet.forks.run(*build)["publish"]
    last = len(written) - 1 - written[::-1].index("os.rename")
    before = current_publication(fleet.warehouse)
    assert before
    fleet.take_next()
    for phase, step in (("publish", last), ("swap", 0)):
        fleet.forks.start(*build, phase=phase, step=step)
        assert fleet.forks.finish()[0] == -signal.SIGKILL
        time.sleep(1)  # the second one has another name: a publication is called by the second in which it was begun
    names = {path.name for path in fleet.warehouse.publications.glob("*-*.*")}
    assert len([name for name in names if name[:6] > before.publication_id[:6]]) > 2, names
    for path in fleet.warehouse.publications.glob("*.duckdb"):
        os.utime(path, (0, 0))
    current = fleet.build("--daily")
    kept = {path.stem for path in fleet.warehouse.publications.glob("*-*.duckdb")}
    assert kept == {before.publication_id, current.publication_id}
    assert {path.stem for path in fleet.warehouse.publications.glob("*.json")} == kept
    fleet.check()


def test_a_moved_warehouse_says_so_and_works_after_a_build(fleet: Fleet) -> None:
    old = fleet.warehouse.root
    moved = Warehouse(old.with_name("moved"))
    old.rename(moved.root)
    fleet.warehouse = moved
    refused = drivetail("sql", "select count(*) from marts.fct_drive_hours", "--warehouse", moved.root, check=False)
    assert refused.returncode == 1
    assert "moved" in refused.stderr
    assert "drivetail build" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    fleet.build()
    fleet.check()
    done = drivetail("sql", "select count(*) as n from marts.fct_drive_hours", "--format", "csv", "--warehouse", moved.root)
    assert done.stdout.split()[0] == "n"
    fleet.publish_next()  # and goes on
    fleet.check()


@pytest.mark.proof
def test_folders_above_the_warehouse_are_no_columns(fleet: Fleet, tmp_path: Path) -> None:
    """DuckDB reads key=value in a path as a column of the file, instead of the one of that name that is in it."""
    place = Warehouse(tmp_path / "drive_id=x" / "day_utc=2020-01-01" / "warehouse")
    for folder in fleet.delivered[:2]:
        fleet.forks.run("ingest", "bundle", folder, "--warehouse", place.root)
        fleet.forks.run("build", "--daily", "--warehouse", place.root)
    assert compare(compute(fleet.delivered[:2]), place.published) == []
    days = "select count(*) as n from (select distinct day_utc from intermediate.int_drive_hours)"
    older = subprocess.run([str(DUCKDB_CLI), "-json", "-c", days, str(place.published)], capture_output=True, text=True, check=True)
    assert answers(older.stdout)[0][0]["n"] == len(list(place.store.glob("int_drive_hours/*")))
    assert not [problem for problem in collect_status(place).problems if "do not add up" in problem]


def test_a_folder_named_like_a_pattern_is_refused_unchanged(fleet: Fleet, tmp_path: Path) -> None:
    """DuckDB would find no file in it, and the build would publish nothing."""
    place = Warehouse(tmp_path / "a[b]c")
    why = r"reads \*, \? and \[ in a path as a pattern; name a folder without them; nothing has changed"
    for command in (("ingest", "bundle", fleet.delivered[0]), ("build",), ("init", "--inbox", tmp_path / "inbox")):
        code, said = fleet.forks.said(*command, "--warehouse", place.root)
        assert code == 1 and (command == ("build",) or re.search(why, said)), said
        assert not place.root.exists()
    with pytest.raises(StoreError, match=why):
        ingest("bundle", [fleet.delivered[0]], place.root)
    assert not place.root.exists()
    fleet.warehouse.root.rename(place.root)
    try:
        code, said = fleet.forks.said("build", "--full-refresh", "--warehouse", place.root)
        assert code == 1 and re.search(why, said), said
        assert place.build_database.exists()
    finally:
        place.root.rename(fleet.warehouse.root)


@pytest.mark.soak
@pytest.mark.parametrize(("spread_us", "most_blocks"), [(100, 0), (500, 4)])
def test_bytes_of_a_publication_do_not_grow_with_the_history(spread_us: int, most_blocks: int, tmp_path: Path) -> None:
    """The same drives, day after day: the file does not hold their hours, it shows them where they lie. Of drives that are never slow it
    holds nothing more; of others, each slow for an hour now and then, it holds these slowdowns.
    """
    warehouse = Warehouse(tmp_path / "warehouse")
    rng = random.Random(SEED)
    sizes = []
    for day in range(PUBLICATIONS):
        rows = [
            drive_hour(drive, day * HOURS_EACH + hour, rng.uniform(1000 - spread_us, 1000 + spread_us))
            for hour in range(HOURS_EACH)
            for drive in range(DRIVES)
        ]
        ingest("bundle", [write_bundle((rows, [], []), tmp_path / f"day-{day}", "parquet")], warehouse.root)
        build(warehouse)
        with duckdb.connect(str(warehouse.published), read_only=True) as connection:
            sizes.append(connection.execute("select used_blocks, free_blocks from pragma_database_size()").fetchone())
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        assert connection.execute("select count(*) from marts.fct_drive_hours").fetchone() == (PUBLICATIONS * HOURS_EACH * DRIVES,)
    # blocks of 256 KiB; a day of this fleet takes 900 KB in DuckDB, so that its hours would be ten blocks more in the end
    used = [blocks for blocks, _ in sizes]
    assert max(used) - used[0] <= most_blocks, sizes
    assert {free for _, free in sizes} == {0}, "a publication is written from scratch"


PUBLICATIONS, HOURS_EACH, DRIVES = 4, 24, 800


def drive_hour(drive: int, hour: int, latency: float) -> dict:
    row = dict.fromkeys(SCHEMAS["drive_hours"])
    return row | {
        "hour_utc": datetime(2026, 1, 5) + hour * HOUR, "drive_id": f"d{drive:04d}", "raid_group_id": f"g{drive // 8:03d}",
        "read_ios": 100, "write_ios": 100, "read_latency_us": latency, "write_latency_us": latency / 2,
    }  # fmt: skip

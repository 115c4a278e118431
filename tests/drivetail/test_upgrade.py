"""A warehouse of an earlier release: `drivetail build` computes it again from raw, and says so where it cannot be opened at all."""

from __future__ import annotations

import errno
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from drivetail.service.maintenance import check_sums, rebuild_check, reconcile
from engine.build import Build
from engine.compiled import digests
from engine.errors import ModelError, RetryableError
from engine.opening import with_hints
from engine.read import QueryError, note_other_models
from engine.warehouse import Warehouse, quoted
from ingest import ingest
from ingest.raw.store import list_deliveries
from tests.drivetail.conftest import Published, drivetail


@pytest.fixture
def landed(published: Published, tmp_path: Path) -> Warehouse:
    """The same raw store, without a build."""
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.create()
    shutil.copytree(published.warehouse.raw, warehouse.raw, dirs_exist_ok=True)
    return warehouse


def new_deliveries(warehouse: Warehouse) -> list[int]:
    with Build(warehouse) as build:
        return [delivery.seq for delivery in build.new]


def test_days_of_other_definitions_are_computed_again(landed: Warehouse) -> None:
    with duckdb.connect(str(landed.build_database)) as connection:
        connection.execute("create schema state; create table state.project as select 'an earlier release' as version")
        # kept otherwise then
        connection.execute("create table state.finished_deliveries as select 1 as seq; create table state.batches as select 'x' as folder")
    assert new_deliveries(landed) == [1, 2]
    assert '"reason": "the models have changed"' in landed.log.read_text()
    assert new_deliveries(landed) == [1, 2], "nothing is finished before it is published"


def test_days_of_these_definitions_stay(landed: Warehouse) -> None:
    new_deliveries(landed)
    first = min(list_deliveries(landed.root), key=lambda delivery: delivery.seq)
    with duckdb.connect(str(landed.build_database)) as connection:
        connection.execute("insert into state.finished_deliveries values (1, ?)", [first.digest()])
    assert new_deliveries(landed) == [2]


def test_columns_and_settings_are_definitions_and_descriptions_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.compiled.PROJECT", tmp_path)
    (tmp_path / "models").mkdir()
    for code in ("engine/compile.py", "ingest/contract/fleet.py"):
        (tmp_path / code).parent.mkdir(parents=True)
        (tmp_path / code).touch()
    (tmp_path / "dbt_project.yml").write_text("model-paths: [models]")

    def version(column: str = "a", kind: str = "date", said: str = "One day", tested: str = "b") -> str:
        (tmp_path / "models" / "m.yml").write_text(f"""models:
  - name: m
    description: >
      {said}, and

      so on
    config: {{ratios: {{x: y}}}}
    columns:
      - {{name: {column}, description: "{said}, \\"so\\"", data_type: {kind}}}
      - {{name: c, description: {said}}}
unit_tests:
  - name: {tested}
""")
        return digests(tmp_path)[1]

    assert version() == version(said="Another") == version(tested="d")
    assert len({version(), version(column="d"), version(kind="bigint")}) == 3


HERE = Path(__file__).parent
OTHER_MODELS = "was published by another release, or the models have changed since; run `drivetail build`"


def unpacked(archive: Path, folder: Path) -> Warehouse:
    """A warehouse of an earlier release, as if it had lain here then."""
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    warehouse = Warehouse(folder / "warehouse")
    (record,) = warehouse.publications.glob("*.json")
    text = record.read_text()
    then = json.loads(text)
    record.write_text(text.replace(then["root"], str(warehouse.root)).replace(then["models"], "an earlier release"))
    os.link(record.with_suffix(".duckdb"), warehouse.published)
    with duckdb.connect(str(warehouse.published)) as connection:
        connection.execute("update plan.root set root = ?", [str(warehouse.root)])
        connection.execute(f"comment on table plan.root is {quoted(warehouse.root)}")
    return warehouse


def release(archive: Path) -> str:
    return archive.name.removeprefix("warehouse-of-").removesuffix(".tar.xz")


*EARLIER, LAST = sorted(HERE.glob("warehouse-of-*.tar.xz"), key=lambda archive: tuple(map(int, release(archive).split("."))))


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Published by models that had drives alone, for commands that read what is published."""
    return unpacked(LAST, tmp_path_factory.mktemp("early"))


REFUSED = (
    "report", "report --due", "study --format json", "status --check", "alerts --format json", "alerts --new",
    "decide nobody watch --by ada --note why", "decisions", "candidates", "candidates --backtest", "what-if --worst 1",
    "explain a", "explain a 2026-01-05T07", "prune --older-than 45d --dry-run", "sql 'from marts.fct_slow_alerts'",
)  # fmt: skip
ANSWERED = ("status --json", "decide a watch --by ada --note why", "sql 'from marts.dim_drives'")
"""Commands whose relations an early release published too, or that read raw."""


@pytest.mark.parametrize("command", [*REFUSED, *ANSWERED])
def test_commands_on_an_earlier_release_name_drivetail_build(early: Warehouse, command: str, caplog: pytest.LogCaptureFixture) -> None:
    note_other_models.cache_clear()
    caplog.set_level(logging.WARNING)
    done = drivetail(*shlex.split(command), "-w", early.root)
    said = done.output + caplog.text
    assert OTHER_MODELS in said and "--full-refresh" not in said
    assert done.exit_code == (command in REFUSED), said


def test_metrics_say_that_it_cannot_be_used(early: Warehouse) -> None:
    assert "\ndrivetail_publication_usable 0.0\n" in drivetail("metrics", "-w", early.root).stdout


def test_the_proofs_refuse_what_an_earlier_release_published(early: Warehouse) -> None:
    for prove in (check_sums, reconcile, rebuild_check):
        with pytest.raises(QueryError, match="run `drivetail build`"):
            prove(early)


def test_models_that_were_edited_change_nothing_of_what_is_read(
    settled: Warehouse, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_other_models.cache_clear()
    caplog.set_level(logging.WARNING)
    before = drivetail("alerts", "--format", "json", "-w", settled.root)
    assert before.exit_code == 0 and OTHER_MODELS not in caplog.text
    monkeypatch.setattr("engine.read.models_version", lambda: "edited")
    for command in (["alerts", "--format", "json"], ["metrics"], ["sql", "from marts.publication"]):
        note_other_models.cache_clear()
        caplog.clear()
        assert drivetail(*command, "-w", settled.root).exit_code == 0
        assert caplog.text.count(OTHER_MODELS) == 1
    assert drivetail("alerts", "--format", "json", "-w", settled.root).stdout == before.stdout


@pytest.mark.parametrize("archive", [LAST, *(pytest.param(each, marks=pytest.mark.soak) for each in EARLIER)], ids=release)
def test_a_warehouse_of_a_release_is_taken_over(archive: Path, tmp_path: Path) -> None:
    """With the contents of archive_release.py: nothing is lost, and no alert is sent twice."""
    warehouse = unpacked(archive, tmp_path)
    with duckdb.connect(str(warehouse.build_database)) as connection:  # also the day the release is cut, with its own models
        connection.execute("update state.project set version = 'an earlier release'")
    refused = drivetail("build", "-w", warehouse.root)
    if refused.exit_code:
        assert "raw before 2026-01-06 was pruned" in refused.stderr and "`drivetail build --keep-pruned`" in refused.stderr
        built = drivetail("build", "--keep-pruned", "-w", warehouse.root)
        assert built.exit_code == 0, built.output
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:

        def ask(query: str) -> list[tuple]:
            return connection.execute(query).fetchall()

        tails = "select hour_utc < '2026-01-06', tail_1, count(*) from marts.fct_raid_hours where raid_group_id = 'g1'"
        assert ask(f"{tails} group by all order by all") == [(False, 2.5, 6), (False, 3.0, 4), (True, 2.5, 4)]
        assert ask("select drive_id, slow_hours from marts.fct_drive_slowness where slow_hours > 0 order by 1") == [
            ("a", 10), ("b", 4), ("serial-c", 2),
        ]  # fmt: skip
        totals = "drive_id, drive_hours, slow_hours, interval_count, max_slowdown, is_chronic"
        assert ask(f"select {totals} from marts.fct_drive_slowness where drive_id in ('a', 'c') order by 1") == [
            ("a", 14, 10, 1, 2.5, False), ("c", 14, 0, 0, 1.0, False),
        ]  # fmt: skip
        transitions = "normal, to_slow, slow_persist, back_to_stable"
        connection.execute(f"attach {quoted(warehouse.build_database)} as build (read_only)")
        assert ask(f"select {transitions} from build.intermediate.int_drives__totals where drive_id = 'a'") == [(3, 0, 9, 0)]
        spans = "select first_hour_utc, last_hour_utc from marts.dim_drives where drive_id = 'a'"
        assert ask(spans) == [(datetime(2026, 1, 5, 20), datetime(2026, 2, 20, 3))]
        assert ask("select min(hour_utc), count(*) from marts.fct_drive_hours where drive_id = 'a'") == [(datetime(2026, 1, 6), 10)]
        kept = "select sum(bit_count(valid_in)), min(first_hour_utc), max(last_hour_utc) from intermediate.int_raid_group_days"
        assert ask(f"{kept} where day_utc = '2026-01-05'") == [(4, datetime(2026, 1, 5, 20), datetime(2026, 1, 5, 23))]
        reached = "select count(*), count(slowdown), min(hour_utc) from intermediate.int_drive_hours where hour_utc < '2026-01-06'"
        assert ask(reached) == [(16, 16, datetime(2026, 1, 5, 20))], "what a chronic window may reach"
        assert ask("select count(distinct drive_id), count(*) from marts.fct_drive_samples") == [(4, 96)]
        assert ask("select drive_id, verdict, state from marts.fct_drive_decisions") == [("b", "replace", "pending")]
    past = json.loads((warehouse.raw / "pruned.json").read_text())
    assert {path.relative_to(warehouse.raw / "pruned").as_posix() for path in warehouse.raw.glob("pruned/*/*/*")} == {
        kept["file"] for kept in past["files"]
    }, "by day, and nothing else"
    assert drivetail("alerts", "--new", "-w", warehouse.root).output == "No new alert\n"
    status = json.loads(drivetail("status", "--json", "-w", warehouse.root).stdout)
    assert status["quarantined"]["count"] == 1 and "do not add up" not in str(status["problems"])


def test_an_hour_that_an_earlier_release_kept_meets_spans_of_it(tmp_path: Path) -> None:
    """0.1.0 wrote no spans. A part of its hour comes again: what was collected last stands, and of spans that overlap the longer."""
    warehouse = unpacked(LAST, tmp_path)
    begun = int(datetime(2026, 2, 20, 3, tzinfo=UTC).timestamp())

    def land(name: str, counted: dict[int, int]) -> tuple[int, int]:
        looks = (f"TS {begun + 60 * at}\n8 0 sda {n} 0 {8 * n} {2 * n} 0 0 0 0 0 0 0\n" for at, n in counted.items())
        (tmp_path / name / "web1").mkdir(parents=True)
        (tmp_path / name / "web1/diskstats").write_text("".join(looks), encoding="utf-8")
        done = ingest("diskstats", tmp_path / name, warehouse.root)
        return done.rows_accepted, done.rows_superseded

    assert land("to_half_past", {at: 1000 + at for at in range(0, 35, 5)}) == (1, 6)
    # the counters fall at 03:40
    assert land("with_a_fall", {at: (1000 if at < 40 else 0) + at for at in range(0, 125, 5)}) == (18, 7)
    built = drivetail("build", "--keep-pruned", "-w", warehouse.root)
    assert built.exit_code == 0, built.output
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        hours = "from intermediate.int_drive_hours__identified where drive_id = 'serial-a' and source = 'diskstats'"
        rows = connection.execute(f"select extract(hour from hour_utc), read_ios, coverage, other_spans {hours} order by 1").fetchall()
    assert rows == [(2, 3600, 1.0, 0), (3, 3600, 1.0, 1), (4, 60, 1.0, 0)]


def test_a_build_database_that_cannot_be_opened_names_the_command(landed: Warehouse) -> None:
    landed.build_database.write_text("of a release that is yet to come")
    failed = drivetail("build", "-w", landed.root)
    assert failed.exit_code == 1
    assert failed.stderr.startswith(f"drivetail: {landed.build_database}: cannot be opened (")
    assert failed.stderr.endswith("make a new one from raw with `drivetail build --full-refresh`\n")


def test_a_build_database_that_is_open_elsewhere_may_be_opened_later(landed: Warehouse) -> None:
    code = "import duckdb, sys; connection = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code, landed.build_database], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"open\n"
        with pytest.raises(RetryableError, match="close what has it open"):
            new_deliveries(landed)
    assert new_deliveries(landed) == [1, 2]


@pytest.mark.parametrize(
    ("error", "is_hindered"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (MemoryError(), True),
        (duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate"), True),
        (ModelError("model dim_drives (models/marts/dim_drives.sql): IO Error: No space left on device; the last publication stays"), True),
        (ModelError("test assert_intervals of marts.dim_drives: 2 rows break it, such as: drive_id a; the last publication stays"), False),
    ],
)
def test_lack_of_room_or_memory_differs_from_data_that_break_a_law(landed: Warehouse, error: Exception, is_hindered: bool) -> None:
    with pytest.raises(ModelError) as told, with_hints(landed):
        raise error
    assert isinstance(told.value, RetryableError) == is_hindered

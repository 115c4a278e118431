"""`drivetail prune` as an operator meets it: its messages, its refusals, and the other commands' answers about pruned hours.

A group of four drives in two stretches of hours, 46 days apart; the first goes over midnight.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from drivetail.ask.status import collect_status
from drivetail.cli import main
from drivetail.service.maintenance import expire, reconcile
from engine.build import build
from engine.compiled import models_of
from engine.errors import ModelError
from engine.prune import LEAST_DAYS, prune
from engine.publish import clean_up
from engine.retention import Kept, Past, restore_pruned
from engine.thresholds import variables
from engine.warehouse import PROJECT, Warehouse
from ingest.raw.store import drive_hour_files, list_deliveries
from tests.proof.support import asked

pytestmark = pytest.mark.xdist_group("prune")

HORIZON = "2026-01-06"
HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us,collected_at"
STRETCHES = (range(20, 30), range(46 * 24, 46 * 24 + 4))
PLAN = ("prune", "--older-than", "45d", "--yes")


def rows(*hours: int, latency_us: float = 100, **of: float) -> list[str]:
    """Rows of the four drives; hours count from 2026-01-05 00:00, `of` are latencies of single drives."""
    at = [datetime(2026, 1, 5) + timedelta(hours=hour) for hour in hours]
    return [f"{hour:%Y-%m-%dT%H}:00:00,{drive},g1,10,0,{of.get(drive, latency_us)},,{hour.isoformat()}" for hour in at for drive in "abcd"]


class Site:
    """A warehouse with what came to it."""

    def __init__(self, folder: Path, warehouse: Warehouse) -> None:
        self.folder, self.warehouse = folder, warehouse
        self.came = 0

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, [*arguments, "-w", str(self.warehouse.root)])

    def does(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.exit_code == 0, done.output
        return done.output

    def refuses(self, *arguments: str) -> str:
        refused = self.run(*arguments)
        assert refused.exit_code == 1, refused.output
        (line,) = refused.output.splitlines()
        return line

    def deliver(self, lines: list[str], **tables: list[str]) -> str:
        self.came += 1
        delivery = self.folder / f"delivery-{self.came}"
        delivery.mkdir(parents=True)
        for name, content in {"drive_hours": [HEADER, *lines], **tables}.items():
            (delivery / f"{name}_{self.came}.csv").write_text("\n".join(content) + "\n")
        return self.does("ingest", "bundle", str(delivery))

    def cleans_up(self, **options: float) -> None:
        ((publication,),) = self.ask("select publication_id from marts.publication")
        with duckdb.connect(str(self.warehouse.build_database)) as connection:
            clean_up(self.warehouse, publication, connection, **options)

    def ask(self, query: str) -> list[tuple]:
        return asked(self.warehouse.published, query)


def built(folder: Path) -> Site:
    """A warehouse of both stretches."""
    made = Site(folder, Warehouse(folder / "warehouse"))
    inventory = ["drive_id,raid_group_id,role,kind", *(f"{drive},g1,data,disk" for drive in "abcd")]
    made.deliver(rows(*STRETCHES[0], a=250) + rows(*STRETCHES[1], b=300), drives=inventory)
    build(made.warehouse)
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One for the tests of this file, in their order: not pruned, pruned by a prune that died, and afterwards."""
    return built(tmp_path_factory.mktemp("pruned"))


def test_the_promised_days_cover_the_windows() -> None:
    assert variables()["chronic_window_days"] + 7 == LEAST_DAYS


def test_a_prune_lists_what_goes_and_refuses_wrong_horizons(site: Site) -> None:
    for wrong in ("45", "forty days", "34d"):
        refused = site.run("prune", "--older-than", wrong)
        assert refused.exit_code == 2 and f"--older-than {wrong}: give" in refused.output
    assert site.does("prune", "--older-than", "54d", "--yes") == "Nothing to prune: no drive-hour is before 2025-12-28\n"
    assert site.does("prune", "--older-than", "54d", "--dry-run") == "Nothing to prune: no drive-hour is before 2025-12-28\n"

    site.deliver(rows(30))
    assert "1 delivery or the models are newer than the last build; run `drivetail build`, then prune" in site.refuses(*PLAN)
    site.does("build")
    held = site.warehouse.raw / "quarantine/000003"
    held.mkdir(parents=True)
    (held / "record.json").write_text(json.dumps({"number": 3}))
    assert "quarantine 3 is undecided and may hold hours that would go; `drivetail release 3` or" in site.refuses(*PLAN)
    shutil.rmtree(held)

    would = site.does(*PLAN, "--dry-run")
    assert would.startswith(f"Would prune 16 drive-hours before {HORIZON} (about ") and "and of raw 0 rows in 0 files" in would
    assert not (site.warehouse.raw / "pruned.json").exists()


def test_without_a_terminal_it_deletes_only_with_yes(site: Site) -> None:
    refused = site.run("prune", "--older-than", "45d")
    assert refused.exit_code == 2 and "there is no terminal to ask on: give --yes to delete" in refused.output
    assert "Nothing to prune" in site.does("prune", "--older-than", "4000d")
    assert not (site.warehouse.raw / "pruned.json").exists()


def test_on_a_terminal_it_shows_what_would_go_and_asks(site: Site) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "drivetail", "prune", "--older-than", "45d", "-w", str(site.warehouse.root)]
    with subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=PROJECT) as asked:
        os.write(terminal, b"n\n")
        said, refused = asked.communicate(timeout=120)
    os.close(terminal)
    os.close(end)
    assert said.startswith(f"Would prune 16 drive-hours before {HORIZON}") and "Delete them? It cannot be undone [y/N]" in said
    assert asked.returncode == 1 and refused == "drivetail: nothing was pruned\n"
    assert not (site.warehouse.raw / "pruned.json").exists()


def test_a_prune_that_died_after_its_commit_is_done_by_the_next_build(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state does not know of it, and maintenance comes before a build."""
    raid_hours = "select * from marts.fct_raid_hours order by all"
    before = site.ask(raid_hours)
    with monkeypatch.context() as dying:
        dying.setattr("engine.prune.register_pruned", lambda *told, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prune(site.warehouse, 45)
    assert site.ask("select pruned_before_utc from marts.publication") == [(None,)]
    assert expire(site.warehouse) == 0
    site.does("build")
    horizon = datetime.fromisoformat(HORIZON)
    assert site.ask("select pruned_before_utc, count(*) from marts.publication, marts.fct_drive_hours group by all") == [(horizon, 44)]
    assert site.ask(raid_hours) == before
    assert site.does(*PLAN) == f"Everything before {HORIZON} was already pruned; nothing has changed\n"
    site.cleans_up(keep_seconds=-1)
    assert collect_status(site.warehouse).lost_deliveries == []
    assert reconcile(site.warehouse) == []


@pytest.mark.proof
def test_a_prune_that_died_and_is_repeated_says_what_it_has_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = built(tmp_path)
    with monkeypatch.context() as dying:
        dying.setattr("engine.prune.register_pruned", lambda *told, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prune(site.warehouse, 45)
    said = site.does(*PLAN)
    assert said.startswith(f"Finished the prune of everything before {HORIZON}, which had been interrupted: 0 drive-hours are gone"), said
    assert site.ask("select pruned_before_utc from marts.publication") == [(datetime.fromisoformat(HORIZON),)]
    assert site.does(*PLAN) == f"Everything before {HORIZON} was already pruned; nothing has changed\n"


def test_drives_are_replaced_from_the_horizon_on(site: Site) -> None:
    """The four tail hours before the horizon cannot be judged; reads go round tails that are kept."""
    names = ("raid_hours", "tail_hours", "tail_hours_left", "tail_hours_ended")
    for option, expected in (
        (("--replace", "a"), (11, 10, 4, 6)), (("--worst", "1"), (11, 10, 4, 6)), (("--skip-slowest", "1"), (15, 14, 0, 14)),
    ):  # fmt: skip
        (row,) = json.loads(site.does("what-if", *option, "--format", "json"))
        assert tuple(row[name] for name in names) == expected, option
    assert f"Hours from {HORIZON} 00:00 (UTC) on: the drive-hours before were pruned" in site.does("what-if", "--replace", "a")
    assert "pruned" not in site.does("what-if", "--replace", "a", "--since", HORIZON)
    assert "or its drive-hours were pruned" in site.refuses("what-if", "--worst", "1", "--until", HORIZON)


def test_later_deliveries_and_questions_about_pruned_hours(site: Site) -> None:
    said = site.deliver(rows(21, latency_us=900) + rows(31, latency_us=100, c=500))
    assert "before the horizon of `drivetail prune`" in said
    # d was a spare in both stretches, says inventory that comes late
    site.deliver([], drives=["drive_id,raid_group_id,role,kind,valid_from", "d,g1,spare,disk,2026-01-05T00:00:00"])
    site.does("build")
    widths = "select hour_utc < timestamp '2026-01-06', data_drive_count, count(*) from marts.fct_raid_hours group by all order by all"
    assert site.ask(widths) == [(False, 3, 12), (True, 4, 4)], "late inventory changes the hours from the horizon on"
    assert site.ask("select drive_hours, slow_hours, max_slowdown from marts.fct_drive_slowness where drive_id = 'a'") == [(16, 10, 2.5)]

    status = site.does("status")
    assert "0 drive-hours of raw before 2026-01-06; no more are taken" in status and "before the horizon of `drivetail prune`" in status
    assert "do not add up" not in status
    told = site.does("explain", "a", "2026-01-05 21:00")
    assert "The row of drive a in hour 2026-01-05 21:00 UTC was pruned" in told and "from g1; its slowdown was 2.5" in told
    assert "it was not slow; its slowdown is not kept" in site.does("explain", "b", "2026-01-05 21:00")
    assert "those before 2026-01-06 00:00 were pruned, but they count below" in site.does("explain", "a")
    refused = site.refuses("report", "--week", "2026-W02")
    assert (
        "2026-W02 cannot be drawn: it begins before 2026-01-06, and the drive-hours before that were pruned; weeks there are: 2026-W08"
        in refused
    )


@pytest.mark.proof
def test_a_build_database_made_anew_knows_of_drives_that_raw_knows_no_more(site: Site) -> None:
    site.does("prune", "--older-than", "35d", "--yes")
    ((horizon,),) = site.ask("select pruned_before_utc from marts.publication")
    site.cleans_up(keep_seconds=-1)
    drives = "select drive_id, first_hour_utc, last_hour_utc, current_raid_group_id from marts.dim_drives order by 1"
    before = site.ask(drives)
    assert {first < horizon for _, first, *_ in before} == {True}
    shutil.rmtree(site.warehouse.build)
    site.does("build")
    assert site.ask(drives) == before


def test_a_past_that_raw_has_lost_is_reported_with_its_runbook(tmp_path: Path) -> None:
    kept = Kept("int_raid_hours", date(2026, 1, 5), "int_raid_hours/day_utc=2026-01-05/000001.0.parquet", "of these models")
    past = Past(datetime(2026, 1, 7), 20, [kept])
    gone = r"raw/pruned/int_raid_hours/day_utc=2026-01-05/000001.0.parquet: is missing"
    with pytest.raises(ModelError, match=rf"{gone}; .* put it back from a copy \((docs/runbooks/.*)\)") as told:
        restore_pruned(Warehouse(tmp_path), past)
    page = str(told.value).rpartition("(")[2].rstrip(")")
    assert gone in (PROJECT / page).read_text()


@pytest.mark.soak
def test_raw_and_the_past_survive_the_store_and_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = built(tmp_path)
    site.does("prune", "--older-than", "35d", "--yes")
    kept = [
        f"select * from marts.{name} order by all" for name in ("fct_drive_slowness", "fct_raid_hours", "dim_drives", "dim_raid_groups")
    ]
    before = [site.ask(query) for query in kept]
    site.cleans_up()
    first = list_deliveries(site.warehouse.root)[0]
    assert len(drive_hour_files(first)) == 3, "an earlier publication still shows them"
    site.cleans_up(keep_seconds=-1)
    assert [path.name for path in drive_hour_files(first)] == ["2026-02-20.parquet"]
    status = site.does("status")
    assert "40 drive-hours of raw before 2026-01-16; no more are taken" in status and "do not add up" not in status

    for gone in ("store", "build", "publications"):
        shutil.rmtree(site.warehouse.root / gone)
    site.warehouse.published.unlink()
    site.does("build")
    assert [site.ask(query) for query in kept] == before

    assert "cannot be computed again with these models; `drivetail build --full-refresh --keep-pruned`" in site.refuses(
        "build", "--full-refresh"
    )
    next_release = replace(models_of(), version="of the next release", store_version="of the next release")
    monkeypatch.setattr("engine.projects.models_of", lambda target, *folder: models_of(target, *folder) if folder else next_release)
    # which has a model that this one did not have
    record = site.warehouse.raw / "pruned.json"
    past = json.loads(record.read_text())
    record.write_text(json.dumps({**past, "files": [kept for kept in past["files"] if kept["model"] != "int_sampled_days"]}))
    for folder in (site.warehouse.raw / "pruned", site.warehouse.store):
        shutil.rmtree(folder / "int_sampled_days", ignore_errors=True)
    assert "raw before 2026-01-16 was pruned" in site.refuses("build") and "`drivetail build --keep-pruned`" in site.refuses("build")
    site.does("build", "--keep-pruned")
    assert [site.ask(query) for query in kept] == before
    site.deliver(rows(46 * 24 + 4))
    site.does("build")
    assert site.ask("select count(*) from marts.fct_raid_hours") == [(15,)]
    shutil.rmtree(site.warehouse.raw / "pruned")
    shutil.rmtree(site.warehouse.build)
    assert "pruned data are nowhere else in the warehouse: put it back from a copy" in site.refuses("build", "--keep-pruned")

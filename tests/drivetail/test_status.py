"""`drivetail status`: what it counts, whom it misses, and when `--check` calls."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl
import pytest

from drivetail.ask.status import Status, collect_status, render_status
from drivetail.ask.status.listings import silence
from drivetail.ask.status.problems import rhythm
from engine.build import BuildSummary, build
from engine.build import built as is_built
from engine.errors import FailedModel, ModelError
from engine.warehouse import Warehouse
from ingest.raw.store import list_deliveries
from tests.drivetail.conftest import HEADER, LAST, Published, built, drivetail, hour, row, write_bundle
from tests.proof.support import asked


@pytest.fixture(scope="module")
def status(published: Published) -> Status:
    return collect_status(published.warehouse)


def now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def test_counts_are_over_the_warehouse_and_add_up(status: Status, published: Published) -> None:
    delivered = len((published.bundle / "first" / "drive_hours.csv").read_text().splitlines()) - 1 + 1
    # the first record of d11 at 07:00 was accepted when it came, and lost to the second delivery's
    hours = {"delivered": delivered, "accepted": delivered - 3, "rejected": 1, "duplicate": 1, "superseded": 1}
    (landed,) = [line for line in status.landed["by_source"] if line["record_kind"] == "drive_hours" and line["status"] == "landed"]
    assert {name: landed[name] for name in hours} == hours
    total = status.landed["rows"]
    assert total["delivered"] == total["accepted"] + total["rejected"] + total["duplicate"] + total["superseded"] == delivered + 19 + 4
    none = dict.fromkeys(("drive_health", "drive_aliases", "labels", "drive_probes"), 0)
    assert status.landed["stored_rows"] == {"drive_hours": delivered - 3, "drive_events": 4, "drives": 19, **none}
    assert status.landed["files"] == {"landed": 4, "unreadable": 1}
    as_judged = asked(published.warehouse.published, "select sum(rows_accepted), sum(rows_superseded) from marts.ingested_files")
    assert as_judged == [(total["accepted"] + 1, 0)]


def test_rejected_and_unreadable_name_file_row_and_value(status: Status, published: Published) -> None:
    (reason,) = status.rejected["reasons"]
    lines = (published.bundle / "first" / "drive_hours.csv").read_text().splitlines()
    assert lines[reason["row"]].startswith("2026-01-05T08:00:00,d13,g1,300,100,-5,")
    assert (reason["count"], reason["column"], reason["value"], reason["reason"]) == (1, "read_latency_us", "-5", "negative")
    assert reason["file"] == str(published.bundle / "first" / "drive_hours.csv")
    (unreadable,) = status.unreadable_files["rows"]
    assert unreadable["file"].endswith("drive_hours_broken.parquet")
    assert "Parquet" in unreadable["note"]
    assert not unreadable["is_replaced"]


def test_freshness_lists_who_is_missing(status: Status) -> None:
    assert status.freshness is not None
    assert status.publication["last_hour_utc"] == status.freshness["last_hour_utc"] == LAST
    lagging = status.freshness["lagging_groups"]["rows"]
    groups = {line["raid_group_id"]: (line["last_hour_utc"], line["lag_hours"], line["is_stopped"]) for line in lagging}
    assert groups == {"g3": (hour(20), 9, True), "g4": (None, None, False)}
    drives = {line["drive_id"]: (line["last_hour_utc"], line["lag_hours"]) for line in status.freshness["silent_drives"]["rows"]}
    # s1 sent one row 29 hours ago, s2 none; sp is a spare, x1's whole group is silent, and g3 is listed as a group
    assert drives == {"s1": (hour(0), 29), "s2": (None, None)}
    assert [line["drive_id"] for line in status.freshness["drives_without_inventory"]["rows"]] == ["n1"]


def test_contradictions_gaps_and_outcomes(status: Status, published: Published) -> None:
    assert status.inventory is not None
    assert status.window is not None
    (moved,) = status.inventory["contradictions"]["rows"]  # v1 moved as inventory says: no contradiction
    named = {"drive_id": "m1", "raid_group_id": "g2", "inventory_raid_group_id": "g1"}
    assert moved == {**named, "hours": 30, "first_hour_utc": hour(0), "last_hour_utc": LAST}
    gaps = {line["drive_id"]: line["missing_hours"] for line in status.window["drives_with_gaps"]["rows"]}
    assert gaps == {"d13": 1, "d15": 1}
    outcomes = {line["outcome"]: line["drive_hours"] for line in status.window["drive_hours"]}
    assert (outcomes["low_coverage"], outcomes["no_io"], outcomes["parity drive or spare"]) == (1, 1, 30)
    assert status.window["slowdowns_without_directions"] == 0
    assert sum(outcomes.values()) == status.window["drive_hours"][0]["of"] == status.landed["stored_rows"]["drive_hours"]
    expected = asked(published.warehouse.published, "select exclusion_reason, count(*) from marts.fct_drive_hours group by all")
    assert {name or "with a slowdown": count for name, count in expected} == {
        name: count for name, count in outcomes.items() if count and name != "parity drive or spare"
    }


def test_problems_and_exit_codes(published: Published) -> None:
    plain = drivetail("status", "-w", published.warehouse.root)
    assert plain.exit_code == 0
    assert plain.output.splitlines()[0].endswith("3 problems")
    for told in ("g3", "9 h", "drive_hours_broken.parquet", "read_latency_us", "'-5'", "m1", "n1", "never reported"):
        assert told in plain.output
    checked = drivetail("status", "--check", "-w", published.warehouse.root)
    assert (checked.exit_code, checked.stdout, checked.stderr.count("\n")) == (1, "", 1)
    assert "1 RAID group stopped reporting: g3 (9 h behind the fleet)" in checked.stderr
    assert "1 of 7 drives of RAID group g2 has sent nothing for 29 h: s1" in checked.stderr
    assert "drive_hours_broken.parquet could not be read" in checked.stderr


def test_a_silent_host_reads_otherwise_than_silent_drives_of_a_host() -> None:
    drives = [{"drive_id": "S1", "device": "sda"}, {"drive_id": "web2/sdb", "device": "sdb"}]
    host = {"host": "web2", "raid_group_id": None, "silent_for_hours": 5, "silent_drives": 2, "host_drives": 2, "drives": drives}
    assert silence(host) == "host web2 has sent nothing for 5 h (2 drives: sda S1, web2/sdb)"
    assert silence({**host, "host_drives": 8}) == "2 of 8 drives of host web2 have sent nothing for 5 h: sda S1, web2/sdb"


def problems(warehouse: Warehouse, of: str, at: datetime | None = None) -> list[str]:
    return [problem for problem in collect_status(warehouse, at).problems if of in problem]


def test_a_fleet_of_another_year_is_no_problem_by_its_age(published: Published) -> None:
    assert problems(published.warehouse, "has landed for") == []


def test_hours_ahead_of_the_clock_are_a_problem(published: Published) -> None:
    (ahead,) = problems(published.warehouse, "ahead of", LAST - timedelta(days=730))
    assert "730 d ahead of this machine's clock" in ahead and "clock.md" in ahead
    assert problems(published.warehouse, "ahead of", LAST - timedelta(hours=23)) == []


def test_json_holds_the_same(published: Published) -> None:
    shown = drivetail("status", "--json", "-w", published.warehouse.root)
    content = json.loads(shown.stdout)
    assert list(content) == [
        "warehouse", "at", "problems", "publication", "unbuilt", "lost_deliveries", "landed", "rejected", "unreadable_files",
        "quarantined", "freshness", "inventory", "window", "thresholds", "damaged_files", "free_bytes", "published_bytes", "failed_build",
        "other_models", "custom_failures",
    ]  # fmt: skip
    assert content["publication"]["last_hour_utc"] == "2026-01-06T05:00:00"
    assert content["freshness"]["lagging_groups"]["rows"][0]["raid_group_id"] == "g3"
    assert content["freshness"]["lagging_groups"]["rows"][0]["raid_group_name"] == "g3"


def test_a_superseded_unreadable_file_stays_in_the_list_alone(published: Published) -> None:
    later = collect_status(published.warehouse, now() + timedelta(days=8))
    assert not [problem for problem in later.problems if "could not be read" in problem]
    assert later.unreadable_files["count"] == 1


def test_two_machines_of_one_name_are_a_problem_for_a_week(tmp_path: Path) -> None:
    warehouse, begin = Warehouse(tmp_path / "warehouse"), int(LAST.replace(tzinfo=UTC).timestamp())
    for number in (1, 2):
        folder = tmp_path / f"{number}" / "web1"
        folder.mkdir(parents=True)
        looks = [f"TS {at}\n 8 0 sda {number * (at - begin)} 0 8 1 0 0 0 0 0 0 0\n" for at in range(begin, begin + 3601, 300)]
        (folder / "diskstats").write_text("".join(looks))
        assert problems(warehouse, "two machines of one name") == []
        assert drivetail("ingest", "diskstats", folder.parent, "-w", warehouse.root).exit_code == 0
    (problem,) = problems(warehouse, "two machines of one name")
    assert problem.startswith("delivery 2 has drive-hours that differ") and "`drivetail drop --landed 2`" in problem
    assert problems(warehouse, "two machines of one name", now() + timedelta(days=8)) == []


def test_a_delivery_that_no_build_took_in(settled: Warehouse, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "third", {"drive_hours.csv": f"{HEADER}\n{row(30, 'd11', 'g1', us='1,2')}\n"})
    assert drivetail("ingest", "bundle", bundle, "-w", settled.root).exit_code == 0
    fresh = collect_status(settled)
    assert [line["delivery_seq"] for line in fresh.unbuilt["rows"]] == [3]
    assert fresh.unbuilt["rows"][0]["last_hour_utc"] == hour(30)
    assert "Landed, not yet built: 1 delivery" in render_status(fresh)
    assert problems(settled, "no build") == []
    assert problems(settled, "1 delivery landed more than 2 h ago and no build has taken it in", now() + timedelta(hours=3))


def test_a_disk_is_named_before_it_is_full(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    size = published.warehouse.published.stat().st_size

    def named(free: int) -> list[str]:
        monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
        return problems(published.warehouse, "bytes are free")

    assert named(3 * size) == []
    (problem,) = named(3 * size - 1)
    assert str(published.warehouse.root) in problem and "no-room.md" in problem


@pytest.mark.parametrize("error", [FailedModel("model int_a is wrong"), RuntimeError("a library gave up")])
def test_a_build_that_failed_is_a_problem_until_one_succeeds(settled: Warehouse, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("engine.build.Build.run", fail)
        with pytest.raises((ModelError, RuntimeError), match=str(error)):
            build(settled)
    (problem,) = problems(settled, "the last build failed")
    assert str(error) in problem and is_built(settled) is None
    build(settled)
    assert problems(settled, "the last build failed") == []


def test_a_build_says_nothing_of_the_publication_of_another(settled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other hour overlaps with it, and it has waited for its end."""

    def waiting(warehouse: Warehouse, **options: Any) -> BuildSummary:
        assert build(warehouse, daily=True).is_new
        return build(warehouse, **options)

    monkeypatch.setattr("engine.build.build", waiting)
    assert built(settled).startswith("Nothing is new since")


def test_a_build_that_cannot_begin_has_failed(settled: Warehouse) -> None:
    settled.settings.write_text("[thresholds]\nno_such = 1\n")
    assert drivetail("build", "-w", settled.root).exit_code != 0
    (problem,) = problems(settled, "the last build failed")
    assert "no_such" in problem


def test_models_that_differ_from_the_published_are_a_problem(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.read.models_version", lambda: "of another release")
    checked = drivetail("status", "--check", "-w", published.warehouse.root)
    assert checked.exit_code == 1 and "the models have changed since; run `drivetail build`" in checked.stderr
    assert len(problems(published.warehouse, "the models have changed since")) == 1


def test_a_moved_warehouse_still_shows_what_raw_holds(copied: Warehouse) -> None:
    told = drivetail("status", "-w", copied.root)
    assert told.exit_code == 0
    assert "was moved here from" in told.output
    assert "run `drivetail build`" in told.output
    assert "Landed: 2 deliveries" in told.output
    assert "Rejected rows: 1" in told.output
    assert drivetail("status", "--check", "-w", copied.root).exit_code == 1
    content = json.loads(drivetail("status", "--json", "-w", copied.root).stdout)
    assert (content["publication"]["state"], content["freshness"], content["unbuilt"]["count"]) == ("unusable", None, 2)


def test_a_corrupt_publication(copied: Warehouse) -> None:
    copied.published.unlink()
    copied.published.write_text("not a database")
    status = collect_status(copied)
    assert status.publication["state"] == "unusable"
    assert "cannot be read" in status.problems[0]
    assert status.landed["delivery_count"] == 2


def test_a_publication_that_has_lost_what_it_shows(settled: Warehouse) -> None:
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("drop table status.fct_status_window; drop view intermediate.int_drive_hours")
    told = drivetail("status", "-w", settled.root)
    assert told.exit_code == 0
    assert "its tables cannot be read" in told.output
    assert "Landed: 2 deliveries" in told.output
    for arguments in (["d15"], ["d15", "2026-01-05 07:00"]):
        explained = drivetail("explain", *arguments, "-w", settled.root)
        assert explained.exit_code == 1
        assert "drivetail build --full-refresh" in explained.stderr


def test_a_store_without_files_names_the_command_that_makes_them(settled: Warehouse) -> None:
    shutil.rmtree(settled.store)
    before = settled.published.read_bytes()
    for command in ("alerts", "metrics", "explain d15", "build --daily", "study", "maintain"):
        told = drivetail(*command.split(), "-w", settled.root)
        assert told.exit_code == 1 and "drivetail build --full-refresh" in told.stderr, (command, told.output)
        assert settled.published.read_bytes() == before, "the last publication stays"
    built(settled, "--full-refresh")
    assert drivetail("maintain", "-w", settled.root).exit_code == 0


@pytest.mark.parametrize("loss", ["half", "lost", "other"])
def test_a_damaged_file_of_the_store_is_a_problem(loss: str, settled: Warehouse) -> None:
    file = max(settled.store.rglob("*.parquet"))
    text = file.read_bytes()
    file.unlink()
    if loss != "lost":
        file.write_bytes(text[: len(text) // 2] if loss == "half" else b"something else")
    told = drivetail("status", "--check", "-w", settled.root)
    assert told.exit_code == 1
    assert f"{file}: cut or gone; `drivetail build --full-refresh` computes it again from raw" in told.output


def test_nothing_published_and_nothing_landed(copied: Warehouse, tmp_path: Path) -> None:
    copied.published.unlink()
    status = collect_status(copied)
    assert status.publication["state"] == "none"
    assert "drivetail build" in status.problems[0]
    nowhere = tmp_path / "nowhere"
    for command in ("status", "status --json", "build", "maintain", "report", "alerts", "explain d1", "study", "release 1 --by a --note b"):
        refused = drivetail(*command.split(), "-w", nowhere)
        assert refused.exit_code == 1, command
        assert str(nowhere) in refused.stderr, command
        assert "release" in command or ("nothing has landed" in refused.stderr and "drivetail ingest" in refused.stderr), command
        assert not nowhere.exists(), command
    assert drivetail("init", "--inbox", tmp_path / "inbox", "-w", nowhere).exit_code == 0
    assert drivetail("status", "-w", nowhere).exit_code == 0
    assert drivetail("build", "-w", nowhere).exit_code == 1


def test_lost_raw_rows_are_a_problem(copied: Warehouse) -> None:
    (path,) = list_deliveries(copied.root)[1].path.glob("drive_hours/*.parquet")
    rows = pl.read_parquet(path)
    rows.head(rows.height - 1).write_parquet(path)
    (told,) = problems(copied, "do not add up")
    assert "drive_hours are accepted over the warehouse" in told


def live_bundle(folder: Path, at: datetime, us: str = "100,200") -> Path:
    lines = [f"{at.isoformat()},{drive},g1,10,10,{us},1,1,," for drive in ("a", "b", "c")]
    return write_bundle(folder, {"drive_hours.csv": "\n".join([HEADER, *lines]) + "\n"})


def test_live_telemetry_that_stays_away_is_a_problem(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    last = now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    for number in (1, 0):
        bundle = live_bundle(tmp_path / f"bundle{number}", last - timedelta(hours=number))
        assert drivetail("ingest", "bundle", bundle, "-w", warehouse.root).exit_code == 0

    def away(hours: float) -> list[str]:
        return problems(warehouse, "no hour after", last + timedelta(hours=1 + hours))

    assert away(2) == []
    assert away(4) == [f"no hour after {last:%Y-%m-%d %H:%M} has landed for 4 h; one was due within 3 h"]


def test_a_feed_is_late_by_its_own_rhythm() -> None:
    def of_hours(*landed: tuple[float, float]) -> tuple[datetime | None, float]:
        """From when each landed and its last hour, both in hours."""
        last, allowed = rhythm((hour(0) + timedelta(hours=at), hour(0) + timedelta(hours=last)) for at, last in landed)
        return last, allowed / timedelta(hours=1)

    # a day is two hours late at most, however many senders it has; a delivery of each week, and one that is 30 h old, has its own time
    assert of_hours(*((24 * day + part / 60, 24 * day - 3) for day in range(5) for part in range(5))) == (hour(93), 24 + 2 + 2)
    assert of_hours(*((168 * week, 168 * week - 3) for week in range(4))) == (hour(501), 168 + 2 + 2)
    assert of_hours(*((24 * day, 24 * day - 31) for day in range(4))) == (hour(41), 24 + 30 + 2)
    # one pull of a study, or history that is loaded day by day in an afternoon, is no feed
    assert of_hours((0, -5))[0] is None
    assert of_hours(*((day / 10, 24 * day - 9000) for day in range(9)))[0] is None


def test_a_fleet_that_has_ended_is_not_late(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    last = now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    for number in (1, 0):
        bundle = live_bundle(tmp_path / f"bundle{number}", last - timedelta(hours=number))
        assert drivetail("ingest", "bundle", bundle, "-w", warehouse.root).exit_code == 0
    assert problems(warehouse, "no hour after", now() + timedelta(days=2))
    warehouse.settings.write_text(f"[schedule]\nend = {last.isoformat()}Z\n")
    assert not problems(warehouse, "no hour after", now() + timedelta(days=2))


def test_settings_that_nobody_can_follow_are_a_problem(tmp_path: Path) -> None:
    # a build reads the thresholds alone, and would go on with those it knows
    warehouse = Warehouse(tmp_path / "warehouse")
    assert drivetail("ingest", "bundle", live_bundle(tmp_path / "bundle", hour(0)), "-w", warehouse.root).exit_code == 0
    assert not problems(warehouse, "drivetail.toml")
    for wrong, said in (("[threshold]\nslow_threshold = 3\n", "threshold: unknown key"), ("[alarms]\nfresh_hours = 'x'\n", "fresh_hours")):
        warehouse.settings.write_text(wrong)
        (told,) = problems(warehouse, "drivetail.toml")
        assert said in told


def test_a_delivery_with_many_rejected_rows_is_a_problem(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    assert drivetail("ingest", "bundle", live_bundle(tmp_path / "bundle", hour(0), us="-1,200"), "-w", warehouse.root).exit_code == 0
    assert "delivery 1: 3 of 3 rows were rejected, more than 1%" in collect_status(warehouse).problems


def test_a_host_with_a_short_name_and_a_long_one_is_listed(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    for host in ("web1.lab.example", "WEB2", "web2", "web3.a.example", "web3.b.example", "10.0.0.1", "10.0.0.2"):
        (folder := tmp_path / "in" / host).mkdir(parents=True)
        looks = [f"TS {1767607200 + 1800 * n}\n8 0 sda {n} 0 8 {n} 0 0 0 0 0 {n} {n}\n" for n in range(3)]
        (folder / "diskstats").write_text("".join(looks))
    (tmp_path / "map.csv").write_text("host,device,drive_id,raid_group_id\nweb1,sda,S1,g1\n")
    assert drivetail("ingest", "diskstats", tmp_path / "in", "-w", warehouse.root).exit_code == 0
    assert drivetail("map", tmp_path / "map.csv", "-w", warehouse.root).exit_code == 0
    build(warehouse)
    inventory = collect_status(warehouse).inventory
    assert inventory is not None
    found = [(row["host"], row["other_host"]) for row in inventory["hosts_of_two_names"]["rows"]]
    assert found == [("WEB2", "web2"), ("web1", "web1.lab.example")]

"""`drivetail decide` and `drivetail decisions`: what was decided counts at once, is never edited, and ends when the drive has gone."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from drivetail.ask.decisions import latest_decisions, note_ignored
from drivetail.tell.alerts import headline, new_alerts, open_alerts, published_alerts, report_once, sentence
from engine.build import build, publish_store
from engine.warehouse import Warehouse
from ingest import ingest
from ingest.contract.values import utc_now
from tests.drivetail.conftest import drivetail

pytestmark = pytest.mark.xdist_group("decisions")

DAY = timedelta(days=1)
HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us\n"


def deliver(warehouse: Warehouse, folder: Path, first: datetime, days: int, drives: str, inventory: str, *, is_anew: bool = False) -> None:
    """An hour a day of some drives, of which `a` takes three times as long; and the inventory."""
    folder.mkdir()
    lines = [
        f"{first + number * DAY},{drive},g1,10,0,{300 if drive == 'a' else 100},\n" for number in range(days) for drive in drives.split()
    ]
    (folder / "drive_hours.csv").write_text(HEADER + "".join(lines))
    (folder / "drives.csv").write_text("drive_id,raid_group_id,role,slot,model,valid_from,valid_to\n" + inventory)
    ingest("bundle", [folder], warehouse.root)
    build(warehouse, full_refresh=is_anew)


def test_a_replacement_is_pending_until_another_serial_stands_in_the_slot(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    option = ("-w", warehouse.root)
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    deliver(
        warehouse, tmp_path / "before", today - 3 * DAY, 3, "a b c d", "".join(f"{d},g1,data,{n},M{n},,\n" for n, d in enumerate("abcd"))
    )
    assert drivetail("decisions", *option).stdout.startswith("No decision yet")
    swap = today + DAY
    for drive, verdict, note, *until in (
        ("a", "watch", "slow since Friday"), ("a", "replace", "slow for weeks, \"ticket\" 7"),
        ("b", "dismiss", "known", "--until", swap.date()),
    ):  # fmt: skip
        assert drivetail("decide", drive, verdict, "--by", "ada", "--note", note, *until, *option).exit_code == 0
    # of several drives all are known, or nothing is recorded
    assert "did you mean" in drivetail("decide", "c", "ax", "watch", "--note", "both", *option).stderr

    # it counts at once, without a build
    (pending,) = json.loads(drivetail("decisions", "--pending", "--format", "json", *option).stdout)
    assert (pending["drive_id"], pending["raid_group_id"], pending["slot"], pending["model"]) == ("a", "g1", "0", "M0")
    assert (pending["state"], pending["note"], pending["publication_id"][:7]) == ("pending", 'slow for weeks, "ticket" 7', "000001-")
    states = [
        (row["drive_id"], row["state"]) for row in csv.DictReader(io.StringIO(drivetail("decisions", "--format", "csv", *option).stdout))
    ]
    assert states == [("b", "standing"), ("a", "pending")]
    shown = drivetail("decisions", "--all", *option).stdout
    assert [line.split()[:3] for line in shown.splitlines()[2:]] == [
        ["b", "dismiss", "standing"], ["a", "replace", "pending"], ["a", "watch", "superseded"],
    ]  # fmt: skip
    assert "by serial" not in shown
    question = "select count(*) as n from marts.fct_drive_decisions"
    assert drivetail("sql", question, "--format", "csv", *option).stdout == "n\n3\n"

    # swapped tomorrow; the three days after are not slow
    inventory = (
        f"a,g1,data,0,M0,,{swap}\n" + f"e,g1,data,0,M0,{swap},\n" + "".join(f"{d},g1,data,{n},M{n},,\n" for n, d in enumerate("bcd", 1))
    )
    # decisions are no part of what a build makes: one from raw alone leaves them
    held = warehouse.decisions.read_bytes()
    deliver(warehouse, tmp_path / "after", swap + DAY, 3, "b c d e", inventory, is_anew=True)
    assert warehouse.decisions.read_bytes() == held
    assert drivetail("decisions", "--pending", "--format", "json", *option).stdout == "[]\n"
    assert drivetail("decisions", "--pending", *option).stdout == "No pending replacement\n"
    dismissed, replaced = json.loads(drivetail("decisions", "--format", "json", *option).stdout)
    assert (replaced["state"], replaced["successor_drive_id"], replaced["replaced_at"]) == ("replaced", "e", swap.isoformat())
    assert [replaced[f"{what}_hours_{when}"] for when in ("before", "after") for what in ("tail", "raid")] == [2, 2, 0, 2]
    line = next(line for line in drivetail("decisions", *option).stdout.splitlines() if line.startswith("a "))
    assert "100.0%" in line and "0.0%" in line
    # by the fleet's last hour, three days later, the dismissal holds no more, and what was to be replaced by then is late
    assert dismissed["state"] == "expired"
    drivetail("decide", "c", "replace", "--by", "ada", "--note", "soon", "--until", (swap + DAY).date(), "--yes", *option)
    assert "c      replace  pending, overdue" in drivetail("decisions", "--pending", *option).stdout

    warehouse.decisions.write_text(warehouse.decisions.read_text() + "not json\n")
    damaged = drivetail("decisions", *option)
    assert damaged.exit_code == 1 and "decisions.jsonl: line 5" in damaged.stderr
    assert drivetail("decisions", "--pending", "--all", *option).exit_code == 2


def test_a_replaced_drive_that_reports_elsewhere_is_a_new_matter(settled: Warehouse) -> None:
    assert drivetail("decide", "d15", "replace", "--by", "ada", "--note", "slow", "-w", settled.root).exit_code == 0
    assert "d15" not in [alert.subject_id for alert in open_alerts(settled)]
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute(
            "insert into marts.dim_drive_periods by name select * replace ('d99' as drive_id, timestamp '2999-01-01' as valid_from_utc) "
            "from marts.dim_drive_periods where drive_id = 'd15'"
        )
        connection.execute("update marts.dim_drives set last_hour_utc = '2999-01-02' where drive_id = 'd15'")
    # seen again in the same place: nothing was replaced
    assert "d15" not in [alert.subject_id for alert in open_alerts(settled)]
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update marts.dim_drives set current_raid_group_id = 'g2' where drive_id = 'd15'")
    (decision,) = json.loads(drivetail("decisions", "--format", "json", "-w", settled.root).stdout)
    assert (decision["state"], decision["successor_drive_id"]) == ("replaced", "d99")
    assert "d15" in [alert.subject_id for alert in open_alerts(settled)]


def test_a_decision_that_is_repeated_is_recorded_once(settled: Warehouse) -> None:
    def decide(*options: object) -> list[str]:
        said = drivetail("decide", *options, "-w", settled.root)
        assert said.exit_code == 0, said.output
        return said.stdout.splitlines()

    def recorded() -> int:
        return len(settled.decisions.read_text().splitlines())

    given = ("d11", "replace", "--yes", "--by", "ada", "--note", "slow", "--ticket", "OPS-7", "--until", "2999-01-01")
    (first,) = decide(*given)
    # the call was killed after it had written: its line is there, and it is called again
    (again,) = decide(*given)
    assert re.fullmatch(re.escape(first) + r"; recorded already, at \d{4}-\d\d-\d\d \d\d:\d\d UTC", again)
    assert recorded() == 1
    # of several drives those are recorded that lack it
    both = decide("d12", *given)
    assert [line.split(":")[0] for line in both if "recorded already" in line] == ["d11"] and recorded() == 2
    # another note, person, ticket or end is another decision, and so is one that another has followed
    for changed in (("--note", "very slow"), ("--by", "bob"), ("--ticket", "OPS-8"), ("--until", "2998-01-01")):
        before = recorded()
        assert "recorded already" not in decide(*given, *changed)[0]
        assert "recorded already" not in decide(*given)[0]
        assert recorded() == before + 2
    # over a line that is not a decision, and over a later publication
    with settled.decisions.open("a") as register:
        register.write("{}\nnot json\n")
    assert "recorded already" in decide(*given)[0]
    publish_store(settled)
    assert "recorded already" not in decide(*given)[0]


def test_several_drives_are_decided_on_at_once_by_whom_the_settings_name(settled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    said = drivetail("decide", "d11", "d12", "replace", "--yes", "--note", "both slow", "--ticket", "OPS-7", "-w", settled.root)
    assert said.exit_code == 0 and said.stdout.splitlines() == [
        f"{d}: replace, by grace, ticket OPS-7; its alerts are muted" for d in ("d11", "d12")
    ]
    (settled.root / "drivetail.toml").write_text('[decisions]\nby = "storage on call"\n')
    assert "by storage on call;" in drivetail("decide", "d12", "watch", "--note", "wait", "-w", settled.root).stdout
    rows = json.loads(drivetail("decisions", "--all", "--format", "json", "-w", settled.root).stdout)
    assert [(row["drive_id"], row["decided_by"], row["ticket"], row["state"]) for row in rows] == [
        ("d12", "storage on call", None, "standing"), ("d12", "grace", "OPS-7", "superseded"), ("d11", "grace", "OPS-7", "pending"),
    ]  # fmt: skip


def test_a_verdict_that_rises_to_replace_is_reported_to_each_receiver_once(tmp_path: Path) -> None:
    """Two drives of two groups are slow for five hours of each day: to watch after three days, to replace after seven. `g` is dismissed."""
    warehouse = Warehouse(tmp_path / "warehouse")
    option = ("-w", warehouse.root)

    def land(name: str, days: range) -> None:
        (tmp_path / name).mkdir()
        lines = [
            f"{datetime(2026, 1, 5) + day * DAY + timedelta(hours=hour)},{drive},g{group},1000,0,"
            f"{500 if drive in 'ag' and hour in range(14, 19) else 100},\n"
            for day in days for hour in range(24) for group, drives in enumerate(("abcdef", "ghijkl")) for drive in drives
        ]  # fmt: skip
        (tmp_path / name / "drive_hours.csv").write_text(HEADER + "".join(lines))
        ingest("bundle", [tmp_path / name], warehouse.root)
        build(warehouse)

    land("first", range(3))
    new_alerts(warehouse)
    report_once(warehouse, published_alerts(warehouse), None, receiver="pager")
    for drive, verdict in (("a", "watch"), ("g", "dismiss")):
        assert drivetail("decide", drive, verdict, "--by", "ada", "--note", "known", *option).exit_code == 0
    land("then", range(3, 8))
    # the commands that list what is open do not list it
    assert [alert.reason for alert in open_alerts(warehouse)] == ["acute"]
    (pager,) = report_once(warehouse, published_alerts(warehouse), None, receiver="pager")
    assert sentence(pager).startswith("a: its verdict is now replace; it was decided to watch; ")
    shown = drivetail("alerts", "--new", *option).stdout
    assert "Its verdict is now replace; it was decided to watch" in shown and shown.startswith("1 alert\n")
    assert drivetail("alerts", "--new", *option).stdout == "No new alert\n"
    # who comes later hears of both at once
    (news,) = report_once(warehouse, published_alerts(warehouse), None, receiver="new here")
    assert sentence(news).startswith("a: 5.0 times its peers in ") and "Its verdict is now replace; it was decided to watch" in news.check
    assert headline([news]) == "a 5.0x, replace" and headline([pager, news]) == "a replace and 1 more"
    assert report_once(warehouse, published_alerts(warehouse), None, receiver="new here") == []
    # it lasts, and a Monday passes
    land("later", range(8, 16))
    assert drivetail("alerts", "--new", *option).stdout == "No new alert\n"


def test_until_is_stored_in_utc_and_an_unreadable_line_is_ignored(settled: Warehouse) -> None:
    option = ("-w", settled.root)
    given = ("--by", "ada", "--note", "x", "--until")
    for until, stored in (
        ("2997-01-01T00:00+14:00", "2996-12-31T10:00:00"), ("2997-01-01 00:00-05:00", "2997-01-01T05:00:00"),
        ("2997-01-01", "2997-01-01T00:00:00"),
    ):  # fmt: skip
        assert drivetail("decide", "d11", "dismiss", *given, until, *option).exit_code == 0
        assert json.loads(settled.decisions.read_text().splitlines()[-1])["until"] == stored
    # beyond the calendar in UTC, and no time
    for until in ("9999-12-31T23:59-05:00", "0001-01-01T00:00+14:00", "soon"):
        assert drivetail("decide", "d11", "dismiss", *given, until, *option).exit_code == 2
    # lines that an earlier release or a person wrote
    record = json.loads(settled.decisions.read_text().splitlines()[-1])
    lines = [
        {**record, "drive_id": "d12", "until": "2998-01-01T00:00:00+14:00"},
        {**record, "drive_id": "d11", "verdict": "watch", "until": "soon"},
    ]
    with settled.decisions.open("a") as register:
        register.writelines(json.dumps(line) + "\n" for line in lines)
    note_ignored.cache_clear()
    for command in (("alerts",), ("alerts", "--new"), ("metrics",), ("decisions",)):
        said = drivetail(*command, *option)
        assert said.exit_code == 0, said.output
    latest = latest_decisions(settled)
    assert latest["d12"].until == datetime(2997, 12, 31, 10) and latest["d11"].verdict == "dismiss"
    shown = json.loads(drivetail("decisions", "--format", "json", *option).stdout)
    assert {row["drive_id"]: row["verdict"] for row in shown} == {"d11": "dismiss", "d12": "dismiss"}


def test_a_line_that_is_no_decision_is_named(settled: Warehouse, caplog: pytest.LogCaptureFixture) -> None:
    settled.decisions.write_text('{}\n{"drive_id": "d11", "until": "soon"}\n')
    note_ignored.cache_clear()
    assert latest_decisions(settled) == {}
    assert [re.findall("line [12]: ignored", message) for message in caplog.messages] == [["line 1: ignored"], ["line 2: ignored"]]


def test_a_decision_that_is_retracted_leaves_the_drive_as_if_undecided(settled: Warehouse) -> None:
    option = ("-w", settled.root)

    def asked(query: str) -> list[dict[str, object]]:
        return list(json.loads(drivetail("sql", query, "--format", "json", *option).stdout))

    nothing = drivetail("decide", "d11", "retract", "--by", "ada", "--note", "wrong drive", *option)
    assert nothing.exit_code == 1 and "nothing to retract" in nothing.stderr and not settled.decisions.read_text()
    before = asked("from marts.drive_actions order by drive_id")
    for verdict in ("replace", "dismiss"):
        assert drivetail("decide", "d11", verdict, "--yes", "--by", "ada", "--note", "slow", *option).exit_code == 0
        assert latest_decisions(settled)["d11"].is_dismissal(utc_now())
        said = drivetail("decide", "d11", "retract", "--by", "bob", "--note", "wrong drive", *option).stdout
        assert said == "d11: retract, by bob; its alerts are shown\n"
        assert not latest_decisions(settled)["d11"].is_dismissal(utc_now())
        assert asked("from marts.drive_actions order by drive_id") == before
        assert drivetail("decisions", *option).stdout.startswith("No decision yet")
        assert drivetail("decisions", "--pending", "--format", "json", *option).stdout == "[]\n"
    states = [(row["verdict"], row["state"]) for row in json.loads(drivetail("decisions", "--all", "--format", "json", *option).stdout)]
    assert states == [("retract", "retracted"), ("dismiss", "superseded"), ("retract", "superseded"), ("replace", "superseded")]


def test_replacing_a_drive_without_a_slow_hour_asks_again(settled: Warehouse) -> None:
    given = ("replace", "--by", "ada", "--note", "old", "-w", settled.root)
    # of several all are recorded, or none
    slow = {row["drive_id"] for row in json.loads(drivetail("sql", SLOW, "--format", "json", "-w", settled.root).stdout)}
    known = {
        row["drive_id"] for row in json.loads(drivetail("sql", "from marts.dim_drives", "--format", "json", "-w", settled.root).stdout)
    }
    ill, well = min(slow), min(known - slow)
    refused = drivetail("decide", ill, well, *given)
    assert refused.exit_code == 1 and f"{well}: not one slow hour is known of it" in refused.stderr and not settled.decisions.read_text()
    assert drivetail("decide", ill, *given).exit_code == 0
    assert drivetail("decide", well, *given, "--yes").exit_code == 0
    # to watch or dismiss it needs no second word
    assert drivetail("decide", well, "dismiss", *given[1:]).exit_code == 0


SLOW = "select drive_id from marts.fct_drive_slowness where slow_hours > 0 union select subject_id from marts.fct_slow_alerts"

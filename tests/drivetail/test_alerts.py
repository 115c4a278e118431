"""`drivetail alerts` and `drivetail decide`: who is told of, what it says, and that it says so once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from drivetail.ask.decisions import decide
from drivetail.tell.alerts import Alert, headline, new_alerts, open_alerts, sentence
from engine.warehouse import Warehouse
from ingest.raw.register import Register
from tests.drivetail.conftest import Published, add_alert, drivetail, hour


def ids(alerts: list[Alert]) -> list[str]:
    return [alert.subject_id for alert in alerts]


@pytest.fixture
def together(settled: Warehouse) -> Warehouse:
    """A copy whose publication also knows of three drives of host h1, two of them still slow, and of d31 beside them."""
    host = "host h1 together 2026-01-05 12:00:00"
    for drive, cleared_at in (("d11", None), ("d12", None), ("d13", hour(29)), ("d31", None)):
        add_alert(settled, drive, cleared_at=cleared_at, part_of=None if drive == "d31" else host, imbalanced_hours=3)
    counts = {"slow_hours": 9, "imbalanced_hours": 9, "load_known_hours": 9, "drive_count": 3, "max_slowdown": 4.5}
    unknown = dict.fromkeys(("median_slowdown", "worst_hour_utc", "latency_us", "median_latency_us"))
    add_alert(settled, "h1", alert_id=host, subject_type="host", reason="together", **counts, **unknown)
    return settled


def test_an_alert_says_who_since_when_beside_whom_and_what_to_check(published: Published) -> None:
    content = json.loads(drivetail("alerts", "--format", "json", "-w", published.warehouse.root).stdout)
    # v1 went to g2, whose drives are far faster
    assert sorted(alert["subject_id"] for alert in content) == ["d15", "v1"]
    alert = content[0]
    # d15 was slow at 12:00, 13:00 and 14:00, and the data end 15 hours later; merged latencies of 300 reads and 100 writes
    assert (alert["subject_id"], alert["raised_at"], alert["slow_hours"]) == ("d15", hour(14).isoformat(), 3)
    assert (alert["raid_group_id"], alert["slot"], alert["drives"]) == ("g1", "5", ["d15"])
    assert (alert["worst_hour_utc"], alert["latency_us"], alert["median_latency_us"]) == (hour(12).isoformat(), 17250.0, 5450.0)
    assert [(peer["drive_id"], peer["latency_us"]) for peer in alert["peers"]] == [
        ("d14", 5550.0), ("d13", 5450.0), ("d12", 5350.0), ("d11", 5250.0),
    ]  # fmt: skip
    assert "cabling" in alert["check"]
    shown = drivetail("alerts", "-w", published.warehouse.root).stdout
    heading, line = shown.splitlines()[1:3]
    assert line.split() == ["1", "d15", "5", "d15", "acute", "2026-01-05", "12:00", "3", "3.17", "3.17", "g1"]
    # columns line up, and those nobody knows anything of are left out
    assert line.index("g1") == heading.index("group") and line.index("2026-01-05") == heading.index("since")
    assert "host" not in heading and "model" not in heading


def test_a_new_alert_is_sent_once(settled: Warehouse) -> None:
    assert "d15" in drivetail("alerts", "--new", "-w", settled.root).stdout
    assert drivetail("alerts", "--new", "-w", settled.root).stdout == "No new alert\n"
    assert drivetail("alerts", "--new", "--format", "json", "-w", settled.root).stdout == "[]\n"
    assert "d15" in drivetail("alerts", "-w", settled.root).stdout
    said = Register(settled.raw, "alerts").read()
    assert [(record["subject_id"], record["raised_at"]) for record in said] == [("d15", hour(14).isoformat()), ("v1", hour(14).isoformat())]


def test_calls_at_the_same_time_send_each_alert_once(together: Warehouse) -> None:
    with ThreadPoolExecutor(4) as pool:
        told = [name for alerts in pool.map(lambda _: new_alerts(together), range(4)) for name in ids(alerts)]
    assert sorted(told) == ["d15", "d31", "h1", "v1"]


def test_an_alert_that_could_not_be_sent_stays_new(settled: Warehouse) -> None:
    def fail(alerts: list[Alert]) -> None:
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        new_alerts(settled, fail)
    # a writer was killed within its line
    register = Register(settled.raw, "alerts")
    register.path.write_text('{"alert_id": "drive d15 acute 20')
    told: list[Any] = []
    assert ids(new_alerts(settled, told.extend)) == ids(told) == ["d15", "v1"]
    assert len(register.read()) == 2
    assert new_alerts(settled, told.extend) == [] and len(told) == 2


@pytest.mark.parametrize(
    ("raised_at", "first", "last", "is_told"),
    [
        (hour(10), hour(8), hour(10), False),  # late data took its first hours away
        (hour(-40), hour(-42), hour(12), False),  # and here its last ones, so that it became true later
        (hour(-40), hour(-42), hour(-38), True),  # an earlier run
    ],
)
def test_late_data_that_move_an_alert_do_not_send_it_again(
    settled: Warehouse, raised_at: datetime, first: datetime, last: datetime, is_told: bool
) -> None:
    new_alerts(settled)
    register = Register(settled.raw, "alerts")
    said, other = register.read()
    register.path.unlink()
    with register.locked():
        register.append([other, {**said, "raised_at": raised_at, "first_slow_hour_utc": first, "last_slow_hour_utc": last}])
    assert bool(new_alerts(settled)) is is_told
    # another subject, another reason
    register.path.unlink()
    with register.locked():
        register.append([other, {**said, "subject_id": "d14"}, {**said, "reason": "together"}])
    assert ids(new_alerts(settled)) == ["d15"]


def test_a_message_begins_with_host_and_device(settled: Warehouse) -> None:
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute(
            "update marts.dim_drives set host = 'web2', device = 'sdd', enclosure = 'e1', model = 'ST16', is_group_guessed = true "
            "where drive_id = 'd15'"
        )
    (alert,) = [alert for alert in open_alerts(settled) if alert.subject_id == "d15"]
    assert sentence(alert) == (
        "web2 sdd (d15, ST16): 3.2 times its peers in 3 slow hours since 2026-01-05 12:00 UTC; at worst 17.2 ms at 2026-01-05 12:00 "
        "(its peers 5.45 ms); enclosure e1; slot 5; RAID group g1 (guessed: all drives of its host). At 1.0 times its peers' load, so the "
        "drive or its path is at fault: reseat it and check the cabling. If it stays slow, replace it"
    )
    listed = drivetail("alerts", "-w", settled.root).stdout
    assert "web2 sdd  5     e1" in listed and "  g1 (host)\n" in listed
    # the same name finds the drive
    assert "Drive web2 sdd (d15, ST16)" in drivetail("explain", "web2/sdd", "-w", settled.root).stdout
    assert drivetail("decide", "web2/sdd", "watch", "--note", "x", "--by", "ada", "-w", settled.root).stdout.startswith("d15: watch")
    unknown = drivetail("explain", "web2/sdx", "-w", settled.root)
    assert unknown.exit_code == 1 and "did you mean web2/sdd?" in unknown.stderr
    text = drivetail("decide", "web2/sdd", "replace", "--ticket-text", "-w", settled.root).stdout
    assert text.startswith("Replace drive web2 sdd (d15, ST16)")
    for line in ("Host        web2", "Device      sdd", "Slot        5", "Be sure of the drive: `smartctl -i /dev/sdd` must say d15."):
        assert line in text
    assert [record["verdict"] for record in Register(settled.raw, "decisions").read()] == ["watch"]


def test_an_alert_of_a_raid_group_names_host_array_and_how_slow_it_is(settled: Warehouse) -> None:
    add_alert(settled, "g1", subject_type="raid_group", reason="whole_group", raid_group_id="g1", alert_id="g1", median_slowdown=3.1)
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update marts.dim_raid_groups set name = 'raid6a md0', host = 'raid6a' where raid_group_id = 'g1'")
    (alert,) = [one for one in open_alerts(settled) if one.reason == "whole_group"]
    assert (alert.host, alert.raid_group_name) == ("raid6a", "raid6a md0")
    assert sentence(alert).startswith(
        "RAID group raid6a md0 (g1): slow as a whole since 2026-01-05 12:00 UTC: 3.1 times its usual latency at that hour of the week, up "
        "to 3.2; 3 slow hours; at worst 17.2 ms at 2026-01-05 12:00 (usually 5.45 ms). No drive stands out"
    )
    (line,) = [line for line in drivetail("alerts", "-w", settled.root).stdout.splitlines() if "whole group" in line]
    assert line.split("  ")[1].strip() == "raid6a md0" and " g1" not in line and "3.1" in line
    is_open, ratio = [line for line in drivetail("metrics", "-w", settled.root).stdout.splitlines() if 'reason="whole_group"' in line]
    assert 'host="raid6a"' in is_open and 'raid_group_name="raid6a md0"' in is_open
    assert ratio.startswith("drivetail_slow_alert_ratio{") and ratio.endswith(" 3.1")
    assert headline([alert]) == "raid6a md0 3.1x its usual"


def test_an_alert_of_a_group_whose_name_has_no_host_says_which(settled: Warehouse) -> None:
    add_alert(settled, "g1", subject_type="raid_group", reason="whole_group", raid_group_id="g1", alert_id="g1", median_slowdown=3.1)
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update marts.dim_raid_groups set host = 'web7' where raid_group_id = 'g1'")
    (alert,) = [one for one in open_alerts(settled) if one.reason == "whole_group"]
    assert sentence(alert).startswith("RAID group g1 of host web7: slow as a whole")
    assert headline([alert]) == "web7 g1 3.1x its usual"
    (line,) = [line for line in drivetail("alerts", "-w", settled.root).stdout.splitlines() if "whole group" in line]
    assert "  web7 g1  " in line


def test_an_alert_of_a_group_that_is_only_a_host_says_so(settled: Warehouse) -> None:
    add_alert(settled, "g1", subject_type="raid_group", reason="whole_group", raid_group_id="g1", alert_id="g1")
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update marts.dim_raid_groups set host = 'g1', is_guessed = true where raid_group_id = 'g1'")
    (alert,) = [one for one in open_alerts(settled) if one.reason == "whole_group"]
    assert alert.subject == "RAID group g1 (guessed: all drives of its host)" and alert.host == "g1"


def test_an_alert_of_a_drive_that_went_silent_says_since_when(settled: Warehouse) -> None:
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update status.fct_drive_freshness set is_silent = true where drive_id = 'd15'")
    sentences = {alert.subject_id: sentence(alert) for alert in open_alerts(settled)}
    assert "; it has sent nothing since 2026-01-06 05:00" in sentences["d15"] and "nothing since" not in sentences["v1"]
    assert "silent since" in drivetail("alerts", "-w", settled.root).stdout


def test_slow_drives_that_are_held_back_are_named(settled: Warehouse, tmp_path: Path) -> None:
    """By their array's work, within the last day: in the list of alerts, the status, and the condition of their host."""
    held = "'drive' as subject_type, 'acute' as reason, 'rebuild or recovery' as held_back_by, 'web3' as host, 'sdc' as device"
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update marts.dim_drives set host = 'web3', device = 'sdc' where drive_id = 'd13'")
        for drive, ended in (("d13", hour(28)), ("d14", hour(-5))):
            about = f"'{drive}' as subject_id, 30 as slow_hours, timestamp '{ended}' as ended_at"
            connection.execute(f"insert into status.fct_held_alerts by name select {held}, {about}")
    said = "Slow, but held back: web3 sdc (d13) (30 hours, rebuild or recovery)"
    assert drivetail("alerts", "-w", settled.root).stdout.splitlines()[-1] == said
    assert said not in drivetail("alerts", "--new", "-w", settled.root).stdout
    assert "Slow drives and RAID groups whose alerts are held back: 2" in drivetail("status", "-w", settled.root).stdout
    drivetail("export", "--findings", tmp_path / "slow.json", "-w", settled.root)
    condition = json.loads((tmp_path / "slow.json").read_text())["conditions"]["web3"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "NoSlowDrive", said)


def test_an_alert_says_why_hours_of_an_arrays_work_count(settled: Warehouse) -> None:
    (alert,) = [alert for alert in open_alerts(settled) if alert.subject_id == "d15"]
    assert alert.despite_work is None
    slower = replace(alert, despite_work="slower than the others at the same work")
    assert slower.check == f"Its array worked in some of these hours; it was slower than the others at the same work. {alert.check}"
    assert replace(alert, despite_work="work of more than 48 hours").check.startswith("Its array had worked for more than 48 hours")


@pytest.mark.parametrize(
    ("imbalanced", "known", "said"),
    [
        (0, 9, "At 0.3 times its peers' load, so"),
        (1, 8, "At 0.3 times its peers' load in 7 of 9 slow hours, so"),
        (3, 7, "Its load is known to be that of its peers in only 4 of 9 slow hours: compare"),
        (0, 0, "Its load is not known: compare"),
        (5, 5, "Look at its workload first: in 5 of 9 slow hours"),
    ],
)
def test_the_check_of_an_alert_claims_no_more_than_is_known_of_the_load(settled: Warehouse, imbalanced: int, known: int, said: str) -> None:
    (alert,) = [alert for alert in open_alerts(settled) if alert.subject_id == "d15"]
    assert replace(alert, slow_hours=9, imbalanced_hours=imbalanced, load_known_hours=known, load_ratio=0.31).check.startswith(said)
    assert replace(alert, load_ratio=0.24).check == (
        "At 0.2 times its peers' load: has it another job? If not, reseat it and check the cabling. If it stays slow, replace it"
    )


def test_an_alert_that_comes_back_is_sent_again_once(settled: Warehouse) -> None:
    new_alerts(settled)
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute(
            "update marts.fct_slow_alerts set reopened_at = ?, episode_count = 2, last_slow_hour_utc = ? where subject_id = 'd15'",
            [hour(60), hour(60)],
        )
    (again,) = new_alerts(settled)
    assert "; now for the 2nd time; " in sentence(again)
    assert new_alerts(settled) == []
    # late data move its return by some hours
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update marts.fct_slow_alerts set reopened_at = ? where subject_id = 'd15'", [hour(58)])
    assert new_alerts(settled) == []


def test_a_dismissed_drive_raises_no_message_until_then(settled: Warehouse) -> None:
    root = settled.root
    dismissed = drivetail("decide", "d15", "dismiss", "--by", "ada", "--note", "swap on Friday", "--until", "2999-01-01", "-w", root)
    assert dismissed.exit_code == 0 and "d15: dismiss until 2999-01-01 00:00 UTC, by ada" in dismissed.stdout
    assert ids(open_alerts(settled)) == ids(new_alerts(settled)) == ["v1"]
    shown = drivetail("alerts", "--all", "-w", root).stdout
    assert "no: dismissed by ada until 2999-01-01 00:00: swap on Friday" in " ".join(shown.split())
    alert, _ = json.loads(drivetail("alerts", "--all", "--format", "json", "-w", root).stdout)
    assert (alert["dismissed_by"]["by"], alert["dismissed_by"]["until"]) == ("ada", "2999-01-01T00:00:00")
    assert ids(open_alerts(settled, now=datetime(2999, 1, 1))) == ["d15", "v1"]
    assert ids(open_alerts(settled, now=datetime(2999, 1, 1) - timedelta(seconds=1))) == ["v1"]
    # the latest decision counts
    assert drivetail("decide", "d15", "watch", "--by", "bob", "--note", "swapped, still slow", "-w", root).exit_code == 0
    assert ids(new_alerts(settled)) == ["d15"]
    kept = Register(settled.raw, "decisions").read()
    assert [(record["verdict"], record["by"], record["note"]) for record in kept] == [
        ("dismiss", "ada", "swap on Friday"), ("watch", "bob", "swapped, still slow"),
    ]  # fmt: skip
    assert all(record["publication_id"].startswith("000001-") for record in kept)


def test_wrong_decisions_are_refused(settled: Warehouse) -> None:
    arguments = ("--by", "ada", "--note", "x", "-w", settled.root)
    unknown = drivetail("decide", "d16", "dismiss", *arguments)
    assert unknown.exit_code == 1 and "did you mean" in unknown.stderr
    past = drivetail("decide", "d15", "dismiss", "--until", "2020-01-01", *arguments)
    assert past.exit_code == 2 and "has passed" in past.stderr
    for by, note in (("", "x"), ("ada", " ")):
        blank = drivetail("decide", "d15", "dismiss", "--by", by, "--note", note, "-w", settled.root)
        assert blank.exit_code == 2 and "is blank" in blank.stderr
    assert drivetail("alerts", "--new", "--all", "-w", settled.root).exit_code == 2
    assert Register(settled.raw, "decisions").read() == []
    Register(settled.raw, "decisions").path.write_text("{}\nnot json\n")
    broken = drivetail("alerts", "-w", settled.root)
    assert broken.exit_code == 1 and "decisions.jsonl: line 2" in broken.stderr


def test_one_alert_stands_for_the_drives_of_a_host(together: Warehouse) -> None:
    assert sorted(ids(open_alerts(together))) == ["d15", "d31", "h1", "v1"]
    host = next(alert for alert in open_alerts(together) if alert.reason == "together")
    # d13 is well again and still one of the three
    assert host.drives == ["d11", "d12", "d13"] and host.check.startswith("Look at what these 3 drives share: load, HBA")
    assert not host.is_group_guessed and replace(host, is_group_guessed=True).check.endswith("another kind of drive than the rest?")
    # the drives of an incident stand beneath it, in messages and in the list
    said = sentence(host).splitlines()
    assert said[0].startswith("host h1: 3 drives slow in the same hours since 2026-01-05 12:00 UTC; 9 slow drive-hours; RAID group g1.")
    assert said[1:] == [f"- {drive}: 3.2 times its peers in 3 hours" for drive in ("d11", "d12", "d13")]
    listed = drivetail("alerts", "-w", together.root).stdout.splitlines()
    assert [line.split()[1] for line in listed if line.startswith("   -")] == ["d11", "d12", "d13"]
    alone = next(alert for alert in open_alerts(together) if alert.subject_id == "d31")
    assert "workload" in alone.check
    everything = {alert.subject_id: alert for alert in open_alerts(together, with_all=True)}
    assert sorted(everything) == ["d11", "d12", "d15", "d31", "h1", "v1"]
    assert "with host h1" in drivetail("alerts", "--all", "-w", together.root).stdout
    # it is told while one of its drives is not dismissed
    for drive in ("d11", "d12"):
        decide(together, [drive], "dismiss", by="ada", note="known")
    assert "h1" in ids(open_alerts(together))
    decide(together, ["d13"], "dismiss", by="ada", note="known")
    assert sorted(ids(open_alerts(together))) == ["d15", "d31", "v1"]

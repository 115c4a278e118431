"""`drivetail export --findings`: which slow drives other systems are told of, and that they act on one of a RAID group at a time."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import duckdb
import pytest

from drivetail.ask.decisions import decide
from drivetail.tell import findings
from engine.warehouse import Warehouse
from tests.drivetail.conftest import add_alert, drivetail, hour
from tests.proof.support import asked

SCRIPT = Path(__file__).parents[2] / "deploy/slow-drive.sh"


def advice(warehouse: Warehouse) -> dict[str, tuple[str, str | None]]:
    return {finding["drive_id"]: (finding["advice"], finding["why_wait"]) for finding in findings.find(warehouse).findings}


@pytest.fixture(autouse=True)
def many_are_more_than_a_test_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MANY_DRIVES", 10)


def test_one_drive_of_a_group_at_a_time_the_slowest_first(settled: Warehouse) -> None:
    add_alert(settled, "d14", max_slowdown=9.0)
    add_alert(settled, "d14", alert_id="drive d14 chronic", reason="chronic", max_slowdown=None, part_of="drive d14")
    found = advice(settled)
    assert found["d14"] == ("act", None) and found["v1"] == ("act", None)
    assert found["d15"] == ("wait", "d14 of RAID group g1 first: one drive at a time")
    (both,) = [finding for finding in findings.find(settled).findings if finding["drive_id"] == "d14"]
    assert both["reasons"] == ["acute", "chronic"] and both["max_slowdown"] == 9.0
    decide(settled, ["d14"], "replace", by="ada", note="slow")
    assert advice(settled)["d15"] == ("wait", "a replacement in RAID group g1 is decided: one drive at a time")
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("delete from marts.fct_slow_alerts where subject_id = 'd14'")
    assert advice(settled)["d15"][0] == "wait", "the drive that is to go need not be slow any more"
    decide(settled, ["d15"], "dismiss", by="ada", note="known")
    assert set(advice(settled)) == {"v1"}
    decide(settled, ["d15"], "replace", by="ada", note="slow", at=hour(1), until=hour(2))
    decide(settled, ["d14"], "dismiss", by="ada", note="well again")
    assert advice(settled)["d15"] == ("act", None), "an overdue replacement waits for no other drive"


def test_a_host_whose_slow_drives_wait_is_not_to_be_drained(settled: Warehouse, tmp_path: Path) -> None:
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update marts.dim_drives set host = 'h' || drive_id")
    add_alert(settled, "d14", max_slowdown=9.0)
    found = findings.find(settled)
    states = {host: (each["status"], each["reason"]) for host, each in findings.conditions(found).items()}
    assert states["hd14"] == ("True", "DriveIsSlow") and states["hd15"] == ("False", "DriveWaits")
    findings.write_findings(settled, tmp_path / "slow.txt")
    for host, expected in (("hd14", 1), ("hd15", 0)):
        ran = subprocess.run(["sh", SCRIPT, tmp_path / "slow.txt", host], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout.split()[0]) == (expected, "wait" if expected == 0 else "slow")


def test_nobody_acts_while_a_place_or_many_drives_are_slow(settled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    add_alert(settled, "d14", part_of="host h1 together 2026-01-05 12:00:00")
    add_alert(settled, "g1", subject_type="raid_group", reason="whole_group", raid_group_id="g1")
    found = advice(settled)
    assert found["d14"] == ("wait", "host h1 is slow: look at what its drives share")
    assert found["d15"] == ("wait", "RAID group g1 is slow as a whole") and found["v1"] == ("act", None)
    assert [place["subject_id"] for place in findings.find(settled).places] == ["g1"]
    monkeypatch.setattr(findings, "MANY_DRIVES", 3)
    monkeypatch.setattr(findings, "MANY_SHARE", 0)
    ((drives,),) = asked(settled.published, "select count(*) from marts.dim_drives")
    assert {why for _, why in advice(settled).values()} == {f"3 of {drives} drives are slow: look for what they share"}


def test_json_and_lines_name_each_host_and_what_is_over(settled: Warehouse, tmp_path: Path) -> None:
    with duckdb.connect(str(settled.published)) as connection:
        for host, drives in (("h1", ("d15",)), ("h2", ("d14",)), ("h3", ("d13",))):
            connection.execute("update marts.dim_drives set host = ? where drive_id in (select unnest(?))", [host, drives])
    add_alert(settled, "d14", cleared_at=hour(29))
    done = drivetail("export", "--findings", tmp_path / "slow.json", "-w", settled.root)
    assert done.exit_code == 0 and "2 slow drives of" in done.stdout
    document = json.loads((tmp_path / "slow.json").read_text())
    assert {"version", "publication_id", "findings", "places", "conditions"} == set(document)
    (finding,) = [each for each in document["findings"] if each["drive_id"] == "d15"]
    assert (finding["host"], finding["advice"], finding["latency_us"]) == ("h1", "act", 17250.0)
    states = {host: (each["status"], each["reason"]) for host, each in document["conditions"].items()}
    assert (states["h1"], states["h2"], states["h3"]) == (("True", "DriveIsSlow"), ("False", "DriveIsWell"), ("False", "NoSlowDrive"))
    drivetail("export", "--findings", tmp_path / "slow.txt", "-w", settled.root)
    lines = dict(line.split(" ", 1) for line in (tmp_path / "slow.txt").read_text().splitlines())
    assert lines["h1"].startswith("slow d15 since ") and lines["h2"].startswith("cleared d14 at ") and lines["h3"] == "ok"

    def check(*arguments: str | Path, node: str = "") -> tuple[int, str]:
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"} | ({"NODE_NAME": node} if node else {})
        ran = subprocess.run(["sh", SCRIPT, *arguments], capture_output=True, text=True, check=False, env=environment)
        return ran.returncode, ran.stdout.split()[0]

    file = tmp_path / "slow.txt"
    (tmp_path / "hostname").write_text("#!/bin/sh\n[ $1 = -s ] && echo h1")
    (tmp_path / "hostname").chmod(0o755)
    assert check(file) == (1, "slow")
    assert [check(file, host) for host in ("h1", "h2", "h3", "h9")] == [(1, "slow"), (0, "cleared"), (0, "ok"), (2, "h9")]
    assert check(file, node="h1") == check(file, node="h1.dc") == check(file, "h1.dc") == (1, "slow"), "a pod's host, and a full name"
    assert check() == (2, "/srv/drivetail/slow.txt")
    os.utime(tmp_path / "slow.txt", (time.time() - 90_000,) * 2)
    assert check(file, "h1")[0] == 2


@pytest.mark.parametrize("arguments", [["--findings", "a.csv"], ["--findings", "a.json", "out.duckdb"]])
def test_a_list_of_findings_is_a_json_or_text_file_alone(settled: Warehouse, arguments: list[str]) -> None:
    assert "ends in .json or .txt" in drivetail("export", *arguments, "-w", settled.root).stderr

"""The alerts and the dashboard that are shipped: promtool reads them, and they fire when they should."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from sys import executable
from typing import Any

import pytest
import yaml

from drivetail.ask.status import collect_status
from drivetail.tell.alerts import open_alerts
from tests.needs import require
from tests.report.conftest import demo_fleet

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "drivetail.rules.yml"
BOARD = json.loads((ROOT / "deploy" / "grafana" / "drivetail.json").read_text())
DRIVETAIL = Path(executable).with_name("drivetail")
ALERTS = {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
PAGE = "docs/runbooks/prometheus-alerts.md"

D1 = 'drive_id="d1",verdict="replace"'
SERIES = {
    "written_timestamp_seconds": ("0+300x120", "0x120"),
    "last_hour_timestamp_seconds": ("0+300x120", "0x120"),
    "publication_usable": ("1x120", "0x120"),
    "problems": ("0x120", "2x120"),
    "free_bytes": ("1000000000-300000x120", "100000000000-200000000x120"),
    "unbuilt_deliveries": ("0x11 1x3 0x100", "2x120"),
    "build_duration_seconds": ("1800x20 5000x3 1800x100", "2400x120"),
    "quarantined_deliveries": ("0x120", "1x120"),
    "raid_groups_stopped": ("0x120", "3x120"),
    'host_silent_seconds{host="web2",raid_group_id=""}': ("_x120", "10800x120"),
    'host_silent_seconds{host="",raid_group_id="g1"}': ("_x120", "_x60 14400x60"),
    'rows_delivered_total{source="bundle",record_kind="drive_hours"}': ("0+1000x120", "0+1000x120"),
    'rows_rejected_total{source="bundle",record_kind="drive_hours"}': ("0+9x120", "0+11x120"),
    'tail_ratio{kind="disk"}': ("0.02x120", "0.02x60 0.08x60"),
    'tail_samples{kind="disk"}': ("40x120", "40x120"),
    'slow_alert{host="web2",device="sdd",reason="acute",subject_type="drive",subject_id="d1"}': ("_x120", "1x120"),
    'slow_alert_ratio{host="web2",device="sdd",reason="acute",subject_type="drive",subject_id="d1"}': ("_x120", "5.06x120"),
    f'candidate_own_tail_seconds{{{D1},decision="replace"}}': ("277560x120", "_x120"),
    'candidate_own_tail_seconds{drive_id="d1",verdict="watch",decision=""}': ("277560x120", "_x120"),
    f'candidate_own_tail_seconds{{host="web2",device="sdd",{D1},decision=""}}': ("_x120", "277560x120"),
}
"""Values of every five minutes: of a fleet that is well; of one whose run stops, whose sender changes and whose drives fall slow."""
FIRES: dict[str, tuple[str, str, dict[str, str]]] = {
    "DrivetailMetricsStale": ("4h", "drivetail's metrics on w are 4h 0m 0s old", {}),
    "DrivetailLag": ("7h", "the last RAID-hour on w ended 7h 0m 0s ago", {}),
    "DrivetailUnbuilt": ("3h", "2 deliveries on w have landed and are in no publication", {}),
    "DrivetailRoom": ("4h", "the disk of the warehouse on w is full in three days at this rate", {}),
    "DrivetailRaidGroupStopped": ("3h", "3 RAID groups stopped reporting", {}),
    "DrivetailSilent": ("4h", "web2 has drives that sent nothing for 3h 0m 0s", {"host": "web2"}),
    "DrivetailUnusable": ("15m", "readers find no usable publication on w", {}),
    "DrivetailProblem": ("1h", "2 problems of drivetail on w need an operator", {}),
    "DrivetailBuildSlow": ("2h", "a build on w takes 40m 0s of the hour it has", {}),
    "DrivetailQuarantine": ("15m", "1 deliveries wait in quarantine", {}),
    "DrivetailRowsRejected": (
        "8h",
        "more than 1% of the drive_hours rows of source bundle were rejected in six hours",
        {"source": "bundle", "record_kind": "drive_hours"},
    ),
    "DrivetailTailRate": ("7h30m", "8% of the RAID-hours of disks had a slow drive, twice the usual", {"kind": "disk"}),
    "DrivetailSlow": (
        "1h",
        "web2 sdd drive d1 has become slow (5.1x, acute)",
        {"host": "web2", "device": "sdd", "reason": "acute", "subject_type": "drive", "subject_id": "d1"},
    ),
    "DrivetailReplace": (
        "2h",
        "web2 sdd drive d1 is worth replacing: 77.1 tail hours cost in 28 days",
        {"host": "web2", "device": "sdd", "drive_id": "d1", "verdict": "replace"},
    ),
}
"""When each alert fires, its summary, and its labels beside instance and severity."""
OTHER_SUBJECTS = {
    (("reason", "together"), ("subject_type", "host"), ("subject_id", "web2")): "host web2 has become slow (together)",
    (
        ("host", "web2"),
        ("raid_group_name", "web2 md0"),
        ("reason", "whole_group"),
        ("subject_type", "raid_group"),
        ("subject_id", "69c8:86ae"),
    ): "RAID group web2 md0 has become slow (whole_group)",
}
"""Labels of an alert that states no factor, and its summary."""
NOT_YET = {
    "DrivetailRoom": "2h55m",
    "DrivetailUnusable": "10m",
    "DrivetailProblem": "55m",
    "DrivetailBuildSlow": "1h55m",
    "DrivetailQuarantine": "10m",
}
ABSENT = "DrivetailMetricsAbsent"


def promtool(*arguments: object) -> str:
    """Run promtool, which must succeed."""
    require("promtool")
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def fires(name: str, at: str, summary: str, **labels: str) -> dict[str, Any]:
    """A case of promtool: an alert fires with these labels and this summary, and with the other annotations of its rule."""
    found = {"exp_labels": {**ALERTS[name]["labels"], **labels}, "exp_annotations": {**ALERTS[name]["annotations"], "summary": summary}}
    return {"eval_time": at, "alertname": name, "exp_alerts": [found]}


def silent(name: str, at: str) -> dict[str, Any]:
    return {"eval_time": at, "alertname": name}


def series(place: int) -> list[dict[str, str]]:
    named = [(name.replace("}", ",") if "{" in name else name + "{", values[place]) for name, values in SERIES.items()]
    return [{"series": f'drivetail_{name}instance="w"}}', "values": values} for name, values in named]


def test_promtool_reads_the_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", RULES)


def test_the_alerts_fire_when_they_should(tmp_path: Path) -> None:
    assert {*FIRES, ABSENT} == set(ALERTS), "give each alert its series in SERIES, and when it fires with which summary in FIRES"
    cases = [
        (series(0), [silent(name, at) for name in ALERTS for at in ("2h", "5h", "8h")]),
        (
            series(1),
            [
                *(fires(name, at, summary, instance="w", **labels) for name, (at, summary, labels) in FIRES.items()),
                *(silent(name, at) for name, at in NOT_YET.items()),
            ],
        ),
        *(
            ([{"series": f"drivetail_slow_alert{{{labels}}}", "values": "1x24"}], [fires("DrivetailSlow", "1h", summary, **dict(given))])
            for given, summary in OTHER_SUBJECTS.items()
            for labels in [",".join(f'{name}="{value}"' for name, value in given)]
        ),
        (
            [{"series": 'drivetail_written_timestamp_seconds{instance="w"}', "values": "0+300x12 stale"}],
            [silent(ABSENT, "1h"), silent(ABSENT, "2h"), fires(ABSENT, "2h10m", "no host has metrics of drivetail")],
        ),
    ]
    tests = [{"interval": "5m", "input_series": given, "alert_rule_test": expected} for given, expected in cases]
    path = tmp_path / "tests.yml"
    path.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "5m", "tests": tests}))  # YAML holds JSON
    promtool("test", "rules", path)


def test_every_alert_leads_to_a_page() -> None:
    assert {rule["annotations"]["runbook_url"] for rule in ALERTS.values()} == {f"https://drivetail.example.org/{PAGE}"}
    described = set(re.findall(r"^\| `(\w+)`", (ROOT / PAGE).read_text(), re.MULTILINE))
    assert set(ALERTS) == described, f"{PAGE}: a row for each alert: {sorted(set(ALERTS) ^ described)}"


def test_promtool_reads_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    """With its variables filled in."""
    expressions = [target["expr"].replace("$instance", ".*") for panel in BOARD["panels"] for target in panel["targets"]]
    assert "$" not in "".join(expressions)
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(expressions)]
    path = tmp_path / "dashboard.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", path)


def test_the_dashboard_is_whole() -> None:
    assert BOARD["uid"] == "drivetail"
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"]) >= 12
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells
        # the datasource is the reader's choice, never ours
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {panel["datasource"]["uid"]} == {"${datasource}"}
    assert {variable["name"] for variable in BOARD["templating"]["list"]} == {"datasource", "instance"}


def test_the_dashboard_shows_slow_drives_and_verdicts_before_the_pipeline() -> None:
    panels = sorted(BOARD["panels"], key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"]))
    assert [panel["id"] for panel in panels] == [panel["id"] for panel in BOARD["panels"]], "a screen reader goes by the file"
    about_drives = [bool(re.search(r"drivetail_(slow|candidate|tail|drive_slowdown)_", str(panel["targets"]))) for panel in panels]
    assert about_drives == sorted(about_drives, reverse=True) and about_drives[0] and not about_drives[-1]
    assert ["drivetail_slow_alert" in str(panels[0]["targets"]), "drivetail_candidate" in str(panels[1]["targets"])] == [True, True]


def checked(warehouse: Path, program: Path = DRIVETAIL) -> list[list[str]]:
    """The services of deploy/checkmk.sh: state, name, metrics, words."""
    done = subprocess.run([ROOT / "deploy/checkmk.sh", warehouse, program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split(" ", 3) for line in done.stdout.splitlines()]


def asked(warehouse: Path) -> dict[str, str]:
    """Texts that the user parameters of deploy/zabbix.conf give, by key."""
    text = (
        (ROOT / "deploy/zabbix.conf")
        .read_text()
        .replace("/opt/drivetail/bin/drivetail", str(DRIVETAIL))
        .replace("/srv/warehouse", str(warehouse))
    )
    parameters = re.findall(r"^UserParameter=([\w.]+),(.*)$", text, re.MULTILINE)
    return {key: subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=300).stdout for key, line in parameters}


def broken_warehouse(root: Path) -> Path:
    (root / "raw").mkdir(parents=True)
    (root / "warehouse.duckdb").write_text("no database")
    return root


def test_monitors_show_what_the_commands_say_of_the_demo() -> None:
    warehouse = demo_fleet()
    problems, alerts = collect_status(warehouse).problems, open_alerts(warehouse)
    runs, slow = checked(warehouse.root)
    assert problems and runs == ["1", "drivetail", "-", "; ".join(problems)]
    assert slow[:3] == ["1", "drivetail-slow-drives", f"alerts={len(alerts)}"] and all(alert.subject_id in slow[3] for alert in alerts)
    told = asked(warehouse.root)
    assert told["drivetail.problems"].strip() == f"drivetail: {'; '.join(problems)}"
    assert f"\ndrivetail_slow_alerts {len(alerts)}.0\n" in told["drivetail.metrics"]


def test_monitors_say_that_a_warehouse_is_broken_or_drivetail_missing(tmp_path: Path) -> None:
    broken = broken_warehouse(tmp_path / "broken")
    runs, slow = checked(broken)
    assert runs[0] == "2" and "cannot be read" in runs[3] and slow[0] == "3"
    assert "cannot be read" in asked(broken)["drivetail.problems"]
    runs, slow = checked(broken, tmp_path / "none")
    assert runs[0] == slow[0] == "3" and "127" in runs[3]


def test_a_fleet_that_is_well_is_ok_and_a_name_adds_no_service(tmp_path: Path) -> None:
    program = tmp_path / "drivetail"
    program.write_text("#!/bin/sh\n[ $1 = status ] || printf 'drivetail_slow_alerts %s\\n' \"$ALERTS\"\n")
    program.chmod(0o755)
    for alerts, state in (("0.0", "0"), ('1.0\ndrivetail_slow_alert{subject_id="a\x1b[1mb\r0 c - d"} 1.0', "1")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ALERTS", alerts)
            runs, slow = checked(tmp_path, program)
        assert (runs[0], slow[0]) == ("0", state) and str(slow).isprintable()


def test_shellcheck_finds_nothing_in_the_check() -> None:
    shellcheck = Path(executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, ROOT / "deploy/checkmk.sh"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout

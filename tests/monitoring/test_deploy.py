"""The alerts and the dashboard that are shipped: promtool reads them, and they fire when they should."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import yaml

from tests.needs import require

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "drivetail.rules.yml"
CASES = Path(__file__).parent / "drivetail.rules.test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "drivetail.json"


def promtool(*arguments: object) -> str:
    """Run promtool, which must succeed."""
    require("promtool")
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def dashboard() -> dict:
    return json.loads(DASHBOARD.read_text())


def questions() -> list[str]:
    """Every expression of the dashboard, with its variables filled in."""
    board = dashboard()
    found = [target["expr"].replace("$instance", ".*") for panel in board["panels"] for target in panel["targets"]]
    assert "$" not in "".join(found)
    return found


def test_promtool_reads_the_rules() -> None:
    assert "13 rules found" in promtool("check", "rules", RULES)


def test_the_alerts_fire_when_they_should(tmp_path: Path) -> None:
    tests = tmp_path / "tests.yml"
    tests.write_text(CASES.read_text().replace("RULES", str(RULES)))
    promtool("test", "rules", tests)


def test_every_alert_fires_once_is_silent_once_and_leads_to_a_page() -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in rules}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names
    page = ROOT / "docs" / "runbooks" / "prometheus-alerts.md"
    assert {rule["annotations"]["runbook_url"] for rule in rules} == {f"https://drivetail.example.org/{page.relative_to(ROOT)}"}
    assert names == set(re.findall(r"^\| `(\w+)`", page.read_text(), re.MULTILINE))


def test_promtool_reads_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(questions())]
    path = tmp_path / "dashboard.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # YAML holds JSON
    promtool("check", "rules", path)


def test_the_dashboard_is_whole() -> None:
    board = dashboard()
    assert board["uid"] == "drivetail"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) >= 12
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells
        # the datasource is the reader's choice, never ours
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {panel["datasource"]["uid"]} == {"${datasource}"}
    assert {variable["name"] for variable in board["templating"]["list"]} == {"datasource", "instance"}

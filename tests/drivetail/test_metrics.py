"""`drivetail metrics`: its numbers are the marts' and the status', its names are what the alerts and the dashboard ask for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from prometheus_client.parser import text_string_to_metric_families

from drivetail.ask.candidates import list_candidates
from drivetail.ask.status import Status, collect_status
from drivetail.tell import metrics
from drivetail.tell.alerts import open_alerts
from drivetail.tell.metrics import metrics_text, write_metrics
from drivetail.terminal import pass_on
from engine.read import QueryError
from engine.warehouse import Warehouse
from tests.drivetail.conftest import HOURS, LAST, Published, drivetail
from tests.proof.support import asked

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 1, 7, 12)
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    """Every sample of a text, by name and labels; each is there once."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


@pytest.fixture(scope="module")
def text(published: Published) -> str:
    return metrics_text(published.warehouse, NOW)


@pytest.fixture(scope="module")
def written(text: str) -> Samples:
    return samples(text)


@pytest.fixture(scope="module")
def status(published: Published) -> Status:
    return collect_status(published.warehouse, NOW)


def value(written: Samples, name: str, **labels: str) -> float:
    return written[f"drivetail_{name}", tuple(sorted(labels.items()))]


def by_label(written: Samples, name: str, label: str) -> dict[str, float]:
    """The samples of a metric, by one of their labels."""
    return {dict(labels)[label]: number for (metric, labels), number in written.items() if metric == f"drivetail_{name}"}


def test_counts_are_those_of_the_status(written: Samples, status: Status) -> None:
    rows = {row["record_kind"]: row for row in status.landed["by_source"] if row["status"] == "landed"}
    for kind, row in rows.items():
        for name in ("delivered_total", "accepted", "rejected_total", "duplicate_total", "superseded"):
            assert value(written, f"rows_{name}", source="bundle", record_kind=kind) == row[name.removesuffix("_total")]
    assert value(written, "rows_delivered_total", source="bundle", record_kind="drive_hours") == 425
    assert value(written, "rows_rejected_total", source="bundle", record_kind="drive_hours") == 1
    assert value(written, "files_total", status="unreadable") == 1
    assert value(written, "deliveries_total") == 2
    assert value(written, "problems") == len(status.problems) > 0
    assert value(written, "publication_usable") == 1
    assert value(written, "drives") == status.publication["drive_count"]


def test_instants_are_unix_time_and_the_lag_is_their_difference(written: Samples, status: Status) -> None:
    end = (LAST + timedelta(hours=1)).replace(tzinfo=UTC).timestamp()
    assert value(written, "last_hour_timestamp_seconds") == value(written, "last_landed_hour_timestamp_seconds") == end
    assert value(written, "written_timestamp_seconds") == NOW.replace(tzinfo=UTC).timestamp()
    assert value(written, "lag_seconds") == value(written, "written_timestamp_seconds") - end == 30 * 3600
    assert value(written, "last_publication_timestamp_seconds") == status.publication["published_at"].replace(tzinfo=UTC).timestamp()


def test_a_group_that_stopped_is_named_with_its_lag(written: Samples) -> None:
    # g3 ends with hour 20 of 30; g4 never came, so nobody can say how far it is behind
    assert value(written, "raid_group_lag_seconds", raid_group_id="g3") == (HOURS - 1 - 20) * 3600
    assert value(written, "raid_groups_stopped") == 1
    assert value(written, "raid_groups_lagging") == 2


def test_a_silent_host_is_named_with_its_silence(written: Samples) -> None:
    # no host is known of s1, which sent one row 29 hours ago
    assert value(written, "host_silent_seconds", host="", raid_group_id="g2") == (HOURS - 1) * 3600
    assert len(by_label(written, "host_silent_seconds", "host")) == 1


def test_the_slowest_drives_of_the_last_day_are_those_of_the_drive_hours(written: Samples, published: Published) -> None:
    hours = f"select drive_id, max(slowdown) from marts.fct_drive_hours where hour_utc > timestamp '{LAST}' - interval 24 hour"
    found = by_label(written, "drive_slowdown_ratio", "drive_id")
    assert found == dict(asked(published.warehouse.published, f"{hours} group by drive_id having max(slowdown) >= 1.5"))
    assert len(found) >= 2


def test_the_slow_alerts_are_the_open_ones(written: Samples, published: Published) -> None:
    found = by_label(written, "slow_alert", "subject_id").keys()
    assert found == {alert.subject_id for alert in open_alerts(published.warehouse)} != set()
    assert value(written, "slow_alerts") == len(found)


def test_the_candidates_are_those_of_the_list(written: Samples, published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = list_candidates(published.warehouse)
    found = by_label(written, "candidate_own_tail_seconds", "drive_id").keys()
    assert found == {row["drive_id"] for row in listed} and value(written, "candidates") == len(listed)
    row = dict.fromkeys(("decision", "raid_group_id", "host", "device", "enclosure", "slot", "kind", "model"))
    many = [row | {"drive_id": f"d{n}", "verdict": "replace", "own_tail_hours_28d": 300.0 - n, "cost_tail_hours": 8.7} for n in range(300)]
    monkeypatch.setattr(metrics, "list_candidates", lambda of: many)
    of_many = samples(metrics_text(published.warehouse))
    shown = by_label(of_many, "candidate_cost_tail_seconds", "drive_id")
    assert len(shown) == metrics.MAX_SERIES and shown["d0"] == 8.7 * 3600 and value(of_many, "candidates") == 300


def test_the_tail_rate_is_that_of_the_raid_hours(written: Samples, published: Published) -> None:
    sums = "count(*), count_if(is_tail_hour), sum(reporting_drive_count), sum(slow_drive_count)"
    hours = f"marts.fct_raid_hours where hour_utc > timestamp '{LAST}' - interval 24 hour"
    for kind, count, tails, drives, slow in asked(published.warehouse.published, f"select kind, {sums} from {hours} group by kind"):
        names = ("raid_group_samples", "tail_samples", "tail_ratio", "drive_samples", "slow_samples", "slow_ratio")
        assert [value(written, name, kind=kind) for name in names] == [count, tails, tails / count, drives, slow, slow / drives]


def test_the_seconds_of_the_last_build_and_of_its_models_are_metrics(published: Published, written: Samples) -> None:
    assert 0 < value(written, "ingest_duration_seconds") < 600
    assert 0.1 < value(written, "build_duration_seconds") < 600
    seconds = by_label(written, "model_duration_seconds", "model")
    assert {"int_raid_hours", "int_drive_hours", "int_drives"} <= set(seconds)
    assert all(number >= 0 for number in seconds.values())
    assert sum(seconds.values()) < value(written, "build_duration_seconds")
    (stored,) = [line for line in map(json.loads, published.warehouse.log.open()) if line["phase"] == "stored"]
    assert 0 < len(stored["slowest_models_s"]) <= 10
    assert set(stored["slowest_models_s"]) <= set(seconds)


@pytest.mark.parametrize("path", ["deploy/prometheus/drivetail.rules.yml", "deploy/grafana/drivetail.json", "docs/monitoring.md"])
def test_alerts_dashboard_and_guide_name_only_what_is_written(text: str, path: str) -> None:
    known = set(re.findall(r"^# TYPE (drivetail_\w+) ", text, re.MULTILINE))
    groups = {"drivetail_pipeline", "drivetail_telemetry", "drivetail_fleet"}
    asked = set(re.findall(r"\bdrivetail_\w+", (ROOT / path).read_text())) - groups
    assert asked and asked <= known, sorted(asked - known)


@pytest.mark.needs("promtool")
def test_promtool_finds_no_fault(text: str) -> None:
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_a_name_that_turns_the_terminal_bold_is_shown_escaped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    pass_on('up{drive="\x1b[1mD1\x1b[0m"} 1\n', nl=False)
    assert capsys.readouterr().out == 'up{drive="\\x1b[1mD1\\x1b[0m"} 1\n'


def test_a_file_is_replaced_in_one_step(published: Published, tmp_path: Path) -> None:
    out = tmp_path / "textfile" / "drivetail.prom"
    out.parent.mkdir()
    assert drivetail("metrics", "--out", out, "-w", published.warehouse.root).output == f"Metrics: {out}\n"
    before, first = out.stat().st_ino, samples(out.read_text())
    assert write_metrics(published.warehouse, out) == out
    assert out.stat().st_ino != before
    assert samples(out.read_text()).keys() == first.keys()
    assert [path.name for path in out.parent.iterdir()] == ["drivetail.prom"]
    refused = drivetail("metrics", "--out", tmp_path / "drivetail.txt", "-w", published.warehouse.root)
    assert refused.exit_code == 2
    assert ".prom" in refused.output


def test_a_warehouse_that_cannot_be_read_keeps_the_last_file(published: Published, tmp_path: Path) -> None:
    shutil.copytree(published.warehouse.root, tmp_path / "w")
    (broken,) = (tmp_path / "w").glob("raw/deliveries/000001*/ingested_files.parquet")
    broken.write_bytes(b"no")
    out = tmp_path / "drivetail.prom"
    out.write_text("as it was")
    failed = drivetail("metrics", "--out", out, "-w", tmp_path / "w")
    assert failed.exit_code == 1
    assert str(broken) in failed.output
    assert out.read_text() == "as it was"


def test_where_there_is_no_warehouse_nothing_is_written(published: Published, tmp_path: Path) -> None:
    refused = drivetail("metrics", "--out", tmp_path / "drivetail.prom", "-w", tmp_path / "typo")
    assert refused.exit_code == 1 and f"{tmp_path / 'typo'}: is no warehouse" in refused.output
    refused = drivetail("metrics", "--out", tmp_path / "no" / "drivetail.prom", "-w", published.warehouse.root)
    assert refused.exit_code == 1 and f"{tmp_path / 'no'}: no such folder" in refused.output
    assert list(tmp_path.iterdir()) == []


def test_without_a_publication_the_rest_is_still_written(published: Published, tmp_path: Path) -> None:
    nothing = samples(metrics_text(Warehouse(tmp_path / "empty")))
    assert value(nothing, "publication_usable") == 0
    assert value(nothing, "problems") == 1
    assert value(nothing, "deliveries_total") == 0
    assert ("drivetail_lag_seconds", ()) not in nothing
    shutil.copytree(published.warehouse.raw, tmp_path / "landed" / "raw")
    landed = samples(metrics_text(Warehouse(tmp_path / "landed")))
    assert value(landed, "unbuilt_deliveries") == value(landed, "deliveries_total") == 2
    assert value(landed, "publication_usable") == 0


def test_a_publication_of_an_earlier_release_says_what_to_run(settled: Warehouse) -> None:
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("drop table status.fct_recent_slowness")
    (record,) = settled.publications.glob("*.json")
    record.write_text(record.read_text().replace('"models": "', '"models": "other'))
    with pytest.raises(QueryError, match=r"by another release, .* run `drivetail build`"):
        metrics_text(settled)


def test_names_of_telemetry_are_escaped(settled: Warehouse) -> None:
    hostile = 'd"} 9\ndrivetail_problems{x="\\'
    with duckdb.connect(str(settled.published)) as connection:
        connection.execute("update status.fct_recent_slowness set drive_id = ? where slowness_rank = 1", [hostile])
    found = samples(metrics_text(settled))
    assert hostile in by_label(found, "drive_slowdown_ratio", "drive_id")

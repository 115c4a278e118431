"""Every DAG can be read, and says what it is, whose it is and what happens when it fails."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.proof.support import ROOT, environment

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]

DAGS = ("drivetail_hourly", "drivetail_maintenance", "drivetail_weekly_report")


def test_every_file_is_read_and_no_dag_has_a_cycle(bag: Any):
    assert bag.import_errors == {}
    assert sorted(bag.dag_ids) == sorted(DAGS)


@pytest.mark.parametrize("name", DAGS)
def test_each_dag_has_a_description_tags_limits_retries_and_owner(bag: Any, name: str):
    import drivetail_shared as shared

    dag = bag.dags[name]
    assert dag.doc_md and dag.description
    assert "drivetail" in dag.tags
    assert dag.max_active_runs == 1
    assert dag.dagrun_timeout
    for task in dag.tasks:
        assert task.owner == shared.OWNER, task.task_id
        assert task.doc_md or task.python_callable.__doc__, task.task_id
        assert task.on_failure_callback, task.task_id
        # what hangs is stopped and told while its run still goes on
        assert task.execution_timeout < dag.dagrun_timeout, task.task_id
        assert (task.retries, task.retry_delay, bool(task.retry_exponential_backoff)) == (3, timedelta(minutes=2), True), task.task_id
    assert dag.on_failure_callback == shared.notify_timeout


def test_read_only_tasks_stop_before_the_next_hours_run(bag: Any):
    import drivetail_shared as shared

    watch = [task for task in bag.dags["drivetail_hourly"].tasks if task.task_id.startswith("watch.")]
    assert len(watch) == 5
    for task in watch:
        assert task.execution_timeout == shared.WATCH_LIMIT <= timedelta(hours=1), task.task_id


def test_only_one_task_writes_at_a_time(bag: Any):
    import drivetail_shared as shared

    writers = {f"{name} {task.task_id}" for name, dag in bag.dags.items() for task in dag.tasks if task.pool == shared.WRITER}
    # whatever writes raw, the store or a publication; a report, the metrics and alerts have files of their own
    assert writers == {
        "drivetail_hourly raw.land",
        "drivetail_hourly marts.build",
        "drivetail_hourly marts.each_day",
        "drivetail_maintenance expire",
        "drivetail_maintenance proofs.sums",
        "drivetail_maintenance proofs.raw_to_warehouse",
        "drivetail_maintenance proofs.rebuild",
    }


def test_the_hourly_run_reads_as_the_path_of_the_data(bag: Any):
    dag = bag.dags["drivetail_hourly"]
    assert {group for group in dag.task_group.get_task_group_dict() if group} == {"sources", "raw", "marts", "watch"}
    assert dag.get_task("raw.land").upstream_task_ids == {"sources.discover"}
    build = dag.get_task("marts.build")
    assert (build.upstream_task_ids, build.trigger_rule) == ({"raw.land"}, "all_done"), "what did not land holds nothing else up"
    assert dag.get_task("watch.new_alerts").upstream_task_ids == {"marts.build"}, "nobody waits for what looks at weeks"
    assert dag.catchup
    from airflow.sdk import CronDataIntervalTimetable

    # a bare cron string would make intervals without length
    assert isinstance(dag.timetable, CronDataIntervalTimetable) and dag.timetable.expression == "0 * * * *"


def test_reading_the_dags_loads_no_engine():
    code = "import drivetail_hourly, drivetail_weekly_report, sys; assert not {'polars', 'duckdb', 'dbt', 'plotly'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT / "dags", env=environment(), check=True, capture_output=True)


def test_an_hour_in_which_nothing_is_new_loads_no_reader(tmp_path: Path):
    """A backfill of ten days is 240 of them."""
    feeds = f'[[inboxes]]\nname = "fleet"\nsource = "bundle"\nfolder = "{tmp_path}/inbox"\n[[servers]]\nname = "metrics"\nurl = "http://[::1]:9"\n'
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse" / "drivetail.toml").write_text(feeds)
    (tmp_path / "inbox" / "drive_hours").mkdir(parents=True)
    code = """
import sys
from datetime import UTC, datetime
import drivetail_hourly
discover = drivetail_hourly.drivetail_hourly().get_task("sources.discover").python_callable
print([part[0]["inbox"] for part in discover(data_interval_end=datetime(2026, 1, 5, tzinfo=UTC))])
assert not {"polars", "pyarrow", "numpy", "ingest.run"} & set(sys.modules), "what finds files does not open them"
"""
    variables = environment() | {"DRIVETAIL_WAREHOUSE": str(tmp_path / "warehouse")}
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "dags", env=variables, capture_output=True, text=True)
    assert ended.returncode == 0 and "metrics" in ended.stdout, ended.stderr

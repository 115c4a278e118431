"""Airflow's history goes back as far as the settings say, and no further; what runs now and the last run of each DAG stay."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drivetail.service import history, standalone
from drivetail.service.history import before, forget_logs, forget_runs, shorten_log
from engine.warehouse import Warehouse

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]

OLD, NEW = datetime.now(UTC) - timedelta(days=8), datetime.now(UTC) - timedelta(days=6)


def test_runs_and_their_tasks_go_and_each_dags_last_run_stays() -> None:
    from airflow.models import Log
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType
    from sqlalchemy import delete, select

    # one that ran hour by hour, and one that has not run for long
    runs = [("hourly", OLD - timedelta(days=1)), ("hourly", OLD), ("hourly", NEW), ("weekly", OLD - timedelta(days=1)), ("weekly", OLD)]
    with create_session() as session:
        for dag, at in runs:
            run = DagRun(dag_id=dag, run_id=f"{at:%Y%m%d}", logical_date=at, run_after=at, start_date=at, run_type=DagRunType.SCHEDULED)
            session.add_all([run, Log(event="kept?", dag_id=dag)])
            session.flush()
        for log, (_, at) in zip(session.scalars(select(Log).where(Log.event == "kept?")), runs, strict=True):
            log.dttm = at
    forget_runs(before(7))
    with create_session() as session:
        left = [(run.dag_id, run.start_date) for run in session.scalars(select(DagRun).where(DagRun.dag_id.in_(["hourly", "weekly"])))]
        assert sorted(left) == [("hourly", NEW), ("weekly", OLD)]
        assert [log.dttm for log in session.scalars(select(Log).where(Log.event == "kept?"))] == [NEW]
        session.execute(delete(DagRun).where(DagRun.dag_id.in_(["hourly", "weekly"])))
        session.execute(delete(Log).where(Log.event == "kept?"))


def test_logs_of_old_runs_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PART_LOG_BYTES", 10)
    old, new = (tmp_path / f"logs/dag_id=a/run_id={name}/task_id=b/attempt=1.log" for name in ("old", "new"))
    begun = tmp_path / "logs/dag_id=a/run_id=begun"
    for path in (old, new):
        path.parent.mkdir(parents=True)
        path.write_text("said\n")
    begun.mkdir()
    for path in (old, *old.parents[:2]):
        os.utime(path, (OLD.timestamp(), OLD.timestamp()))
    (tmp_path / "short.log").write_text("said\n")
    with (tmp_path / "scheduler.log").open("ab") as part:
        part.write(b"what it said\n")
        part.flush()
        forget_logs(tmp_path, before(7))
        part.write(b"and says\n")
    assert not old.parents[1].exists() and new.exists() and begun.exists()
    assert (tmp_path / "scheduler.log").read_text() == "and says\n"
    assert (tmp_path / "scheduler.log.1").read_text() == "what it said\n"
    assert (tmp_path / "short.log").read_text() == "said\n"


def test_drivetails_log_begins_anew_once_it_is_old(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    assert not shorten_log(warehouse, 7)
    warehouse.note("now")
    assert not shorten_log(warehouse, 7)
    told = warehouse.log.read_text()
    warehouse.log.write_text(told.replace(f"{datetime.now(UTC).year}-", f"{datetime.now(UTC).year - 1}-") + told)
    assert shorten_log(warehouse, 7)
    warehouse.note("later")
    assert warehouse.log.read_text().count("\n") == 1 and (tmp_path / "drivetail.log.1").read_text().count("\n") == 2
    warehouse.log.write_text('{"at": "2026-')
    assert shorten_log(warehouse, 7)


def test_what_hinders_it_ends_no_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    standalone.tidy(Warehouse(tmp_path))
    assert "Airflow's history was not shortened (SettingsError: " in capsys.readouterr().out
    (tmp_path / "drivetail.toml").write_text("[schedule]\nkeep_days = 7\n")
    asked: list[datetime] = []
    monkeypatch.setattr(standalone, "forget_runs", asked.append)
    standalone.tidy(Warehouse(tmp_path))
    assert abs(asked[0] - before(7)) < timedelta(minutes=1)

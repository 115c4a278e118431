"""Shared by the DAGs: the warehouse and its settings, retries and limits, and who is notified when something fails.

DAGs say when, never how: each task is a few lines over a function that the command calls too (docs/airflow.md).
Reading a DAG must stay cheap, so imports of what does the work are inside the tasks; tests/dags/test_integrity.py holds this.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout

from drivetail.service import SettingsError
from drivetail.service.settings import Schedule, Settings, load_settings, this_hour
from engine.warehouse import Warehouse

WRITER = "drivetail_writer"
"""Pool of one slot for every step that writes to the warehouse; deploy/airflow.sh makes it."""

OWNER = "storage-analytics"

LABEL_CHARACTERS = 250
"""Length of a mapped task's name that Airflow's database takes."""

RUN_LIMIT = timedelta(hours=12)
"""A run that has not ended by then fails. What has landed has; the next run goes on with the rest."""

TASK_LIMIT = timedelta(hours=5)
"""A task that has not ended by then hangs and is stopped. A landing and a build that both hang still end before their run is failed."""

WATCH_LIMIT = timedelta(hours=1)
"""The same for tasks that only look."""


def warehouse() -> Warehouse:
    """The warehouse of this installation: $DRIVETAIL_WAREHOUSE, as for the command."""
    return Warehouse(Path(os.environ.get("DRIVETAIL_WAREHOUSE", "./warehouse")))


def settings() -> Settings:
    """Its settings; an error in them fails the task without a retry."""
    try:
        return load_settings(warehouse())
    except SettingsError as error:
        raise AirflowFailException(str(error)) from error


def parsed_settings() -> Settings:
    """The settings where a DAG is parsed. While they have an error, hours run from now on: tasks report it, and no past is caught up."""
    try:
        return load_settings(warehouse())
    except SettingsError:
        return Settings(schedule=Schedule(start=this_hour().replace(tzinfo=UTC)))


def defaults() -> dict[str, Any]:
    """Defaults of every task: retries with growing waits, a limit, and a notification when it fails for good."""
    schedule = parsed_settings().schedule
    return {
        "owner": OWNER,
        "retries": schedule.retries,
        "retry_delay": timedelta(minutes=schedule.retry_minutes),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(hours=1),
        "execution_timeout": TASK_LIMIT,
        # a task that hung for hours would hang as long at each retry
        "retry_policy": ExceptionRetryPolicy([RetryRule(AirflowTaskTimeout, RetryAction.FAIL)]),
        "on_failure_callback": notify_failure,
    }


@contextmanager
def no_retry() -> Iterator[None]:
    """Fail the task at once over an error that a retry would meet again; without room or memory (RetryableError) it is retried."""
    from engine.errors import ModelError, RetryableError
    from engine.read import QueryError
    from engine.thresholds import ThresholdError

    try:
        yield
    except RetryableError:
        raise
    except (ModelError, QueryError, ThresholdError) as error:
        raise AirflowFailException(str(error)) from error


def label(paths: Sequence[str]) -> str:
    """Name of a task that lands these: the end of the first path, and how many more there are."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    name, room = paths[0].rsplit("/", 1)[-1], LABEL_CHARACTERS - len(more)
    return (name if len(name) <= room else f"...{name[3 - room :]}") + more


class OneDelivery(AirflowFailException):
    """A delivery waits for somebody. No later run tries it, so one that is well says nothing of it."""


def notify_failure(context: Any) -> None:
    """A task has failed for good: say which, and why, once (drivetail/tell/failures.py)."""
    from drivetail.tell.failures import tell_failure

    task, error = context["ti"], context.get("exception")
    message, lasts = str(error or "it was killed"), not isinstance(error, OneDelivery)
    tell_failure(warehouse(), parsed_settings().notify, task.dag_id, task.task_id, message, lasts=lasts)


def notify_timeout(context: Any) -> None:
    """A run has failed. One that exceeded its limit has no failed task that would have notified."""
    from drivetail.tell.failures import tell_failure

    if context["reason"] == "timed_out":
        dag = context["dag"]
        tell_failure(warehouse(), parsed_settings().notify, dag.dag_id, "run", f"not ended within {dag.dagrun_timeout}, and given up")


def notify_well(context: Any) -> None:
    """A run has ended well: say so where steps of those before kept failing. A backfill proves nothing about now."""
    from drivetail.tell.failures import tell_well

    run = context.get("dag_run")
    if run is None or run.run_type != "backfill":
        tell_well(warehouse(), parsed_settings().notify, context["dag"].dag_id)

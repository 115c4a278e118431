"""What the DAGs share: the warehouse and its settings, retries, and who is told when something is wrong."""

from __future__ import annotations

import contextvars
import hashlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout

from drivetail.service.settings import Schedule, Settings, SettingsError, load_settings, this_hour
from engine.warehouse import Warehouse

WRITER = "drivetail_writer"
"""Pool of one slot for every step that writes to the warehouse; `make airflow` makes it."""

OWNER = "storage-analytics"

LABEL_CHARACTERS = 250
"""Of what a mapped task is called, as many as Airflow's database takes."""

RUN_LIMIT = timedelta(hours=12)
"""When a run that has not ended is given up. What has landed has; the next run goes on with the rest."""

TASK_LIMIT = timedelta(hours=5)
"""When a task that has not ended is stopped: it hangs. Two such, a landing and a build, still end before their run is given up.

What dbt has begun in a thread is waited for even then; where that never ends, the run's limit ends the process, and `tell_given_up` tells.
"""

WATCH_LIMIT = timedelta(hours=1)
"""The same of what only looks and tells: MANY_ALERTS messages, and RECEIVER_SECONDS for each of a few receivers that are down."""

RECEIVER_SECONDS = 30.0
"""How long a receiver may take for an alarm. Airflow's HTTP notifier alone would wait for ever for one that accepts and never answers."""


class NotTold(RuntimeError):
    """No receiver took an alarm; the message says why, and nothing that is a secret."""


class NoAnswer(Exception):
    """A receiver has not answered in time; it may have taken the alarm all the same."""


def warehouse() -> Warehouse:
    """The warehouse of this installation: $DRIVETAIL_WAREHOUSE, as for the command."""
    return Warehouse(Path(os.environ.get("DRIVETAIL_WAREHOUSE", "./warehouse")))


def settings() -> Settings:
    """Its settings; an error is a task's that no retry cures."""
    try:
        return load_settings(warehouse())
    except SettingsError as error:
        raise AirflowFailException(str(error)) from error


def parsed_settings() -> Settings:
    """The same where a DAG is read. Unless they are right, hours run from now on: tasks say what is wrong, no past is caught up."""
    try:
        return load_settings(warehouse())
    except SettingsError:
        return Settings(Schedule(start=this_hour()))


def defaults() -> dict[str, Any]:
    """What every task is given: retries with growing waits, and that somebody is told of a failure."""
    schedule = parsed_settings().schedule
    return {
        "owner": OWNER,
        "retries": schedule.retries,
        "retry_delay": timedelta(minutes=schedule.retry_minutes),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(hours=1),
        "execution_timeout": TASK_LIMIT,
        # what hung for hours would hang for as long at each try, and nobody be told until the last
        "retry_policy": ExceptionRetryPolicy([RetryRule(AirflowTaskTimeout, RetryAction.FAIL)]),
        "on_failure_callback": tell_failure,
        "on_success_callback": tell_again,
    }


def label(paths: Sequence[str]) -> str:
    """What a task that lands these is called: the first by its name, of which the end tells most, and how many more."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    name, room = paths[0].rsplit("/", 1)[-1], LABEL_CHARACTERS - len(more)
    return (name if len(name) <= room else f"...{name[3 - room :]}") + more


def tell(context: Any, what: str, message: str) -> None:
    """Raise an alarm: in the task's log, in WAREHOUSE/drivetail.log, and through the notifiers of the settings.

    What a receiver does not take is kept for it. Raises: NotTold instead where it is of slow drives and no receiver took it: these have a
    register of their own, and are new again for the next try.
    """
    import logging

    from drivetail.tell.untold import keep_untold
    from drivetail.tell.watch import alarm

    log, task = logging.getLogger("drivetail.alarm"), context["ti"]
    log.error(message)
    alarm(warehouse(), what, message, dag=task.dag_id, task=task.task_id, map_index=task.map_index, run=task.run_id)
    receivers = _receivers(parsed_settings())
    problems = {name: problem for name, given in receivers.items() if (problem := _hand_over(context, *given, message))}
    if problems and what == "slow" and len(problems) == len(receivers):
        raise NotTold("; ".join(problems.values()))
    if problems:
        log.error("; ".join(problems.values()))
        keep_untold(warehouse(), list(problems), message)


def tell_again(context: Any) -> None:
    """A task has succeeded: give receivers what they did not take before."""
    from drivetail.tell.untold import tell_untold

    receivers = _receivers(settings())

    def is_taken(name: str, message: str) -> bool:
        return name not in receivers or _hand_over(context, *receivers[name], message) is None

    tell_untold(warehouse(), is_taken)


def _receivers(of: Settings) -> dict[str, tuple[str, dict[str, Any]]]:
    """The notifiers of the settings by what they are, wherever they stand among them; not by their words, which may hold a secret."""
    return {hashlib.sha256(json.dumps(each, default=str, sort_keys=True).encode()).hexdigest()[:16]: each for each in of.notify}


def _hand_over(context: Any, path: str, arguments: dict[str, Any], message: str) -> str | None:
    """Have a notifier tell a message. Returns: what is wrong where it could not, in words that may be told; else None."""
    from airflow.sdk.log import mask_secret
    from airflow.sdk.module_loading import import_string

    # of a webhook whose path stands in the settings; Airflow's hook writes it to the task's log
    mask_secret(arguments.get("endpoint") or "")
    try:
        _in_time(lambda: import_string(path)(**arguments)({**context, "drivetail_message": message}))
    except NoAnswer as error:
        why = str(error)
    except Exception as error:
        why = _reason(error)
    else:
        return None
    return f"{path.rpartition('.')[2]}: {why}; does the receiver answer, and are its connection and arguments right?"


def _in_time(notify: Callable[[], object]) -> None:
    """Have it done within RECEIVER_SECONDS. Raises: NoAnswer, or what it raised.

    In a thread, since no notifier can be told to hurry; one that hangs holds neither the task nor the end of its process up.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            notify()
        except BaseException as error:
            raised.append(error)

    # Airflow keeps in its context variables whose task this is
    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="drivetail tells", daemon=True)
    thread.start()
    thread.join(RECEIVER_SECONDS)
    if thread.is_alive():
        raise NoAnswer(f"no answer within {RECEIVER_SECONDS:g} s")
    for error in raised:
        raise error


def _reason(error: Exception) -> str:
    """An error's type and host. Not what it says: that has the whole address, and of a webhook the path is the secret."""
    asked: Any = next((each for each in (error, error.__context__) if getattr(each, "request", None) is not None), None)
    if asked is None:
        return type(error).__name__
    answer = getattr(asked, "response", None)  # httpx has none where nothing answered
    status = "" if answer is None else f" {answer.status_code}"
    return f"{type(asked).__name__}{status} at {urlsplit(str(asked.request.url)).hostname}"


def tell_failure(context: Any) -> None:
    """A task has failed for good: say which, why, and where to look."""
    task, error = context["ti"], context.get("exception")
    name = task.task_id if task.map_index is None or task.map_index < 0 else f"{task.task_id} {task.map_index}"
    if _is_timeout(error):
        why = (
            f"it has not ended within {_span(task.task.execution_timeout)} and was stopped; does it wait for a disk, a share or a lock? "
            "If it only has much to do, run it by hand: the page of the DAG names the command"
        )
    elif isinstance(error, AirflowFailException):
        why = str(error)  # one that says itself what to do
    else:
        why = f"{error or 'it was killed'}; `drivetail status` says where things stand"
    where = Path(
        os.environ.get("AIRFLOW_HOME", "~/airflow"), "logs", f"dag_id={task.dag_id}", f"run_id={task.run_id}", f"task_id={task.task_id}"
    )
    tell(context, "failure", f"{task.dag_id}, {name}: {why} (log: {where})")


def tell_given_up(context: Any) -> None:
    """A run has failed. Where it was given up, Airflow has ended its tasks without asking for `tell_failure`: say so in their place."""
    if context["reason"] != "timed_out":  # a task has failed, and told
        return
    dag, run, task = context["dag"].dag_id, context["run_id"], context.get("ti")
    stood = f", last in {task.task_id}" if task is not None else ""
    message = (
        f"{dag}: {run} has not ended within {_span(context['dag'].dagrun_timeout)} and was given up{stood}; the next run goes on with what "
        f"is left. Does something hold the one slot of the pool {WRITER}? `drivetail status` says where things stand"
    )
    told = SimpleNamespace(dag_id=dag, task_id=None, map_index=-1, run_id=run)
    tell({**context, "ti": task or told}, "failure", message)


def _is_timeout(error: BaseException | None) -> bool:
    """Whether a task's limit is behind it; dbt makes an error of its own of it."""
    while error is not None and not isinstance(error, AirflowTaskTimeout):
        error = error.__cause__
    return error is not None


def _span(limit: timedelta) -> str:
    from engine.words import duration

    return duration(limit / timedelta(hours=1))

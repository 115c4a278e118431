"""How far back an installation remembers what it did: Airflow's runs, the logs of tasks and of Airflow's parts, `drivetail.log`.

None of it is read by a build, and no number hangs on it; left alone it grows for ever.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.warehouse import Warehouse

RUNS = ("dag_run", "task_instance", "task_reschedule", "asset_event", "job", "log", "revoked_token")
"""Tables of Airflow that grow by the hour. Not those of the DAGs themselves: after a long time off they would all be old."""

PART_LOG_BYTES = 20 << 20
"""From this size on the log of a part of Airflow begins anew; the lines of before stay beside it until the next time."""


def before(keep_days: float) -> datetime:
    """The instant before which nothing need be kept."""
    return datetime.now(UTC) - timedelta(days=keep_days)


def shorten_log(warehouse: Warehouse, keep_days: float) -> bool:
    """Begin `drivetail.log` anew once its first line is so old; what it held is `drivetail.log.1` until the next time. Returns: whether.

    Every line is written by an open of its own, so none is lost.
    """
    try:
        with warehouse.log.open(encoding="utf-8") as handle:
            first = datetime.fromisoformat(json.loads(handle.readline())["at"])
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):  # half a line, by a full disk
        first = datetime.fromtimestamp(0, UTC)
    if first >= before(keep_days):
        return False
    os.replace(warehouse.log, warehouse.log.with_name("drivetail.log.1"))
    return True


def forget_runs(until: datetime) -> None:
    """Let Airflow forget what it ran before an instant, as `airflow db clean` does; the last run of each DAG stays: it goes on there.

    Not from within a task: Airflow gives those no access to its database.
    """
    from airflow.utils.db_cleanup import run_cleanup

    with contextlib.redirect_stdout(io.StringIO()):
        run_cleanup(clean_before_timestamp=until, table_names=list(RUNS), confirm=False, skip_archive=True)


def forget_logs(home: Path, until: datetime) -> None:
    """Remove the logs of tasks that were written last before an instant, and shorten those of Airflow's parts, under its home."""
    # a folder's time of before its files go: one that is just being filled is new
    found = [(path, path.lstat()) for path in sorted((home / "logs").rglob("*"), reverse=True)]
    for path, state in found:
        if state.st_mtime < until.timestamp():
            with contextlib.suppress(OSError):  # it is not empty, or not ours
                path.rmdir() if stat.S_ISDIR(state.st_mode) else path.unlink()
    for path in home.glob("*.log"):
        if path.stat().st_size > PART_LOG_BYTES:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            os.truncate(path, 0)  # the part goes on writing to the same file, at its end

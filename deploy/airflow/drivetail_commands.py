"""drivetail in an Airflow with other packages: its commands, run by Bash in drivetail's own environment (docs/airflow.md).

Copy this file into a DAG folder of Airflow 3. It imports nothing of drivetail. Workers need in their environment:

    DRIVETAIL_BIN=/opt/drivetail/bin/drivetail     the command; without it, `drivetail` of the PATH
    DRIVETAIL_WAREHOUSE=/srv/warehouse             the warehouse, on a local disk of the one host that runs these tasks
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag

COMMON = {
    "start_date": datetime(2026, 1, 1),
    "catchup": False,  # what was missed is landed by the next run
    "max_active_runs": 1,
    "doc_md": __doc__,
    "tags": ["drivetail"],
    "default_args": {"owner": "storage-analytics", "retries": 1, "retry_delay": timedelta(minutes=5)},
}


@dag(schedule="10 * * * *", dagrun_timeout=timedelta(hours=12), **COMMON)
def drivetail_hourly_command() -> None:
    """Land, build, report, notify, write the metrics, check: red while something needs an operator."""
    BashOperator(task_id="hour", bash_command='"${DRIVETAIL_BIN:-drivetail}" hour')


@dag(schedule="30 2 * * *", dagrun_timeout=timedelta(hours=12), **COMMON)
def drivetail_maintenance_command() -> None:
    """Compact past days and prove what is published."""
    BashOperator(task_id="maintain", bash_command='"${DRIVETAIL_BIN:-drivetail}" maintain')


drivetail_hourly_command()
drivetail_maintenance_command()

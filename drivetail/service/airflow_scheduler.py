"""Airflow's scheduler with what its tasks import already there: they are forked from it, and importing was most of what a task took.

Only what starts no threads, which a fork would lose: of Polars, PyArrow, NumPy and Great Expectations each task imports its own.
"""

from __future__ import annotations

import dbt.adapters.duckdb
import dbt.cli.main
import duckdb
from airflow.__main__ import main
from airflow.dag_processing import dagbag
from airflow.providers.standard.decorators import python, sensor
from airflow.sdk.execution_time import task_runner

TO_TASKS = (dagbag, dbt.adapters.duckdb, dbt.cli.main, duckdb, python, sensor, task_runner)

if __name__ == "__main__":
    main()

"""Importing this puts `engine`, `ingest`, ... first on the path of a process that runs drivetail: the command, and Airflow's tasks.

In a wheel they are in `drivetail/_project`; in a checkout they are beside this package.
"""

import sys
from pathlib import Path

_PROJECT = Path(__file__).with_name("_project")
if _PROJECT.is_dir():
    sys.path.insert(0, str(_PROJECT))

"""The command. What it imports (`engine`, `ingest`, ...) is in `drivetail/_project` of a wheel; in a checkout it is beside this package."""

import sys
from pathlib import Path

_PROJECT = Path(__file__).with_name("_project")
if _PROJECT.is_dir():
    sys.path.insert(0, str(_PROJECT))

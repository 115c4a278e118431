"""The command. A wheel has the packages that it imports (`engine`, `ingest`, ...) in `drivetail/_project`; a checkout has them beside it."""

import sys
from pathlib import Path

_PROJECT = Path(__file__).with_name("_project")
if _PROJECT.is_dir():
    sys.path.insert(0, str(_PROJECT))

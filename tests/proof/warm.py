"""Imported by the server of forks.py: what every command needs is imported and read. It connects to nothing."""

import drivetail.cli  # noqa: F401
import engine.build  # noqa: F401
from engine.compiled import models_of
from workbench.unit_tests import project_folders

for place in project_folders():
    models_of(project=place)

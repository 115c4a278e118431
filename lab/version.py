"""Which definitions of the lab made what is kept."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from engine.compiled import models_of

LAB = Path(__file__).parent
"""The dbt project of the lab."""


@cache
def lab_version() -> str:
    """Changes when a definition of the lab does, or a function that its models call: then every experiment is computed again."""
    functions = (LAB / "statistics.py").read_bytes()
    return hashlib.sha256(models_of(project=LAB).version.encode() + functions).hexdigest()

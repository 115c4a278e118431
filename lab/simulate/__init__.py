"""Synthetic experiments with known truth: bundles in the tools' own formats, and `truth/` with what the relations must hold.

To add a scenario: a module with DEFAULTS, its parameters, and `write(draft, parameters, seed)`; then its line in SCENARIOS.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from lab.contract import LabError
from lab.simulate.draft import Draft

SCENARIOS = {
    "before-after": "before_after",
    "papers": "papers",
    "reads-intrinsic": "reads_intrinsic",
    "reads-modes": "reads_modes",
    "sync-writes": "sync_writes",
    "tasks": "tasks",
    "writers": "writers",
}
"""Scenario -> module of this folder. `papers` writes a folder of bundles."""


def simulate(scenario: str, out: Path, seed: int = 1, parameters: Path | None = None, **changes: Any) -> Path:
    """Write the bundle of a scenario; the same seed and parameters give the same bytes. Returns: its folder. Raises: LabError."""
    if scenario not in SCENARIOS:
        raise LabError(f"there is no scenario {scenario!r}; give one of {', '.join(SCENARIOS)}")
    if out.exists() and any(out.iterdir()):
        raise LabError(f"{out}: is not empty; name a new folder with --out")
    module = importlib.import_module(f"lab.simulate.{SCENARIOS[scenario]}")
    given = {**_read(parameters), **changes}
    unknown = sorted(set(given) - set(module.DEFAULTS))
    if unknown:
        raise LabError(f"{parameters}: {unknown[0]!r} is no parameter of {scenario}; there are {', '.join(module.DEFAULTS)}")
    draft = Draft()
    module.write(draft, {**module.DEFAULTS, **given}, seed)
    draft.save(out)
    return out


def _read(parameters: Path | None) -> dict[str, Any]:
    if parameters is None:
        return {}
    try:
        given = json.loads(parameters.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LabError(f"{parameters}: is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise LabError(f"{parameters}: holds no object; write parameters as {{NAME: VALUE}}")
    return given

"""Synthetic experiments with known truth: bundles in the tools' own formats, and `truth/` with what the relations must hold.

To add a scenario: a module with DEFAULTS, its parameters, and `write(draft, parameters, seed)`; then its line in SCENARIOS, which may also
give the parameters of a module that is there.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from lab.contract import LabError
from lab.simulate.draft import Draft

_UNFRAGMENTED = {"extents": [2] * 8}
_TEMPORAL = {**_UNFRAGMENTED, "onset_file": [], "slow_pace_ratio": 2.0}
SCENARIOS: dict[str, tuple[str, dict[str, Any]]] = {
    "awkward": ("awkward", {}),
    "before-after": ("before_after", {}),
    "papers": ("papers", {}),
    "reads-intrinsic": ("reads_intrinsic", {}),
    "reads-modes": ("reads_modes", {}),
    "reads-permanent": ("reads_modes", {**_UNFRAGMENTED, "experiment_id": "reads-permanent", "period_s": 1e12}),
    "reads-temporal-time": ("reads_modes", {**_TEMPORAL, "experiment_id": "reads-temporal-time", "trigger": "time"}),
    "reads-temporal-writes": ("reads_modes", {**_TEMPORAL, "experiment_id": "reads-temporal-writes", "trigger": "writes"}),
    "sync-writes": ("sync_writes", {}),
    "tasks": ("tasks", {}),
    "writers": ("writers", {}),
}
"""Scenario -> module of this folder, and its own defaults. `papers` and `awkward` write a folder of bundles."""


def simulate(scenario: str, out: Path, seed: int = 1, parameters: Path | None = None, **changes: Any) -> Path:
    """Write the bundle of a scenario; the same seed and parameters give the same bytes. Returns: its folder. Raises: LabError."""
    if scenario not in SCENARIOS:
        raise LabError(f"there is no scenario {scenario!r}; give one of {', '.join(SCENARIOS)}")
    if out.exists() and any(out.iterdir()):
        raise LabError(f"{out}: is not empty; name a new folder with --out")
    name, own = SCENARIOS[scenario]
    module = importlib.import_module(f"lab.simulate.{name}")
    given = {**_read(parameters), **changes}
    unknown = sorted(set(given) - set(module.DEFAULTS))
    if unknown:
        raise LabError(f"{parameters}: {unknown[0]!r} is no parameter of {scenario}; there are {', '.join(module.DEFAULTS)}")
    draft = Draft()
    module.write(draft, {**module.DEFAULTS, **own, **given}, seed)
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

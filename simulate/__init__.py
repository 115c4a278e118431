"""A fleet that behaves: drives, workloads and operators, from which call-home bundles with known truth are written."""

from simulate.fleet import AWKWARD_CASES, SimulationError, SimulationSummary, simulate
from simulate.parameters import PRESETS, ParameterError, Parameters, defaults, with_overrides
from simulate.write import FILE_FORMATS

__all__ = [
    "AWKWARD_CASES",
    "FILE_FORMATS",
    "PRESETS",
    "ParameterError",
    "Parameters",
    "SimulationError",
    "SimulationSummary",
    "defaults",
    "simulate",
    "with_overrides",
]

"""`make calibrate`: fit the simulator to the paper, judge the fleet that comes out, write both down.

python -m workbench.calibrate fit [disk|ssd] [passes]   move the parameters, rewrite simulate/presets/tail_at_store.json
python -m workbench.calibrate report                    judge the fleet, rewrite docs/results/calibration.md
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulate.parameters import KINDS, PRESET_FILE, Kind, Parameters, defaults
from workbench.calibrate.evaluate import fleet_data
from workbench.calibrate.fit import Problem, fit, polish
from workbench.calibrate.judge import references
from workbench.calibrate.report import DAYS, GROUPS, OTHER_SEEDS, SEED, write_report

SEEDS = Path("seeds")
NOT_MOVED: frozenset[str] = frozenset(
    (
        # widths, durations, ages and what inventory knows follow from the curves and tables without a fleet
        *("width_median", "width_sigma", "common_widths", "common_width_shares"),
        *("age_year_shares", "unknown_model_share", "unknown_age_share"),
        # who has a trait at all: a few groups or drives more or fewer, no slope
        *("striped_group_share", "large_io_group_share", "shared_group_share", "ailing_share"),
        # what happens too seldom in a fleet of this size
        *("explicit_event_rate_per_drive_year", "replacement_share", "routine_unplug_rate_per_drive_year"),
    )
)

UNUSED: dict[Kind, frozenset[str]] = {
    "disk": frozenset(),
    "ssd": frozenset(("shared_drive_share", "steady_year_noise", "unknown_age_exponent")),
}
"""Parameters that no judged id of a kind shows."""


def write_preset(parameters: Parameters) -> None:
    """Rewrite the preset, numbers to four digits."""
    rounded = {
        name: [float(f"{v:.4g}") for v in value] if isinstance(value, list) else float(f"{value:.4g}")
        for name, value in parameters.flat().items()
    }
    PRESET_FILE.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def run_fit(kind: Kind, passes: int, say: Callable[[str], Any]) -> None:
    """Fit the parameters of `kind` from where the preset stands."""
    base = defaults()
    data = fleet_data(base, SEED, DAYS, {"disk": 0, "ssd": 0, kind: GROUPS[kind]})[kind]
    problem = Problem(
        kind=kind,
        names=[
            f"{plain}.{place}" if isinstance(value, list) else plain
            for name, value in base.flat().items()
            for of, _, plain in [name.partition(".")]
            if of == kind and plain not in NOT_MOVED | UNUSED[kind]
            for place in range(len(value) if isinstance(value, list) else 1)
        ],
        references=[ref for ref in references(SEEDS) if kind in ref["fitted"].split()],
        seeds=(SEED,),
        groups=GROUPS[kind],
        days=DAYS,
        base=base,
    ).measured_by(data)
    found = fit(problem, passes, say, write_preset)
    polish(replace(problem, base=found, seeds=(SEED, *OTHER_SEEDS)), passes, say, write_preset)


def main(arguments: list[str]) -> None:
    """Run what the command line names; `fit` and `report` of both kinds if nothing."""
    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - began:6.0f} s  {text}", flush=True)

    what = arguments[0] if arguments else "all"
    if what in ("fit", "all"):
        kinds = [kind for kind in KINDS if kind in arguments] or list(KINDS)
        for kind in kinds:
            run_fit(kind, int(arguments[-1]) if arguments and arguments[-1].isdigit() else 2, say)
            defaults.cache_clear()
    if what in ("report", "all"):
        write_report(say)


main(sys.argv[1:])

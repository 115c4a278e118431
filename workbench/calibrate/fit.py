"""Least squares over the simulator's parameters.

Residuals are the fitted half of the judged ids. Every fleet of a fit has the same seed, so that two fleets differ by their
parameters; streams per drive and group keep the difference local.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from simulate.parameters import Kind, Parameters, with_overrides
from workbench.calibrate.evaluate import KindData, Share, fleet_data
from workbench.calibrate.judge import Percentile, judge, measure

Floats = npt.NDArray[np.float64]

SCALE = 0.15
"""A residual of 1 is this far off in log odds (shares) or in the logarithm (values)."""
SOFT = 4.0
"""Beyond this many scales a residual counts like an absolute value, not like a square."""
STEP = 0.2
LONGEST_STEP = 0.6
MISFIT_PER_VERDICT = 40.0
"""So much squared misfit weighs as much as one id that differs."""
PRIOR = 1.0
"""How far a parameter is expected to move, in its own logarithm or log odds."""
HEADLINES = ("T1", "T3A", "T3B", "F01", "F02", "F03", "F04", "F05", "F06", "F07", "F08", "F11", "F12", "F13", "F14", "F15", "UPD", "VST")
WEIGHTS: dict[tuple[str, Kind], float] = {("F5A", "disk"): 0.5, ("F4B", "ssd"): 0.7}
"""Where the paper disagrees with itself (PI-04, PI-05), the side not chosen counts less."""
REACH = 0.2
"""A trial of the search moves a parameter by about this much, in its own logarithm or log odds."""
BLOCKS: dict[Kind, list[tuple[str, str]]] = {
    "disk": [
        *((f"F8A-Y{year + 1:02}", rf"age_year_(hazards|exponents)\.{year}") for year in range(6)),
        (r"F7B|F08-04", r"hot_spot_(latencies\.\d|rate_per_drive_year)"),
        (r"F7[AC]|F08-0[236]", r"(retried|merged)_share_median_sigma\.\d|spared_share|rate_hour_sigma"),
        (r"F7D|F08-08", "large_io_hazard|io_size_exponent"),
        (r"F10A|F13", r"hour_rate_sigma|(small_)?burst_.*|closed_loop_exponent"),
        (r"F11|F14|F15|UPD", "unplug_.*|cure_share|recurrence_.*"),
    ],
    "ssd": [
        (r"FG9|F11-0|F12", r"family_(hazards|noises)\.\d|severity_tail\.\d"),
        (r"F8B", r"age_year_hazards\.\d"),
        (r"F7B|F08-05", r"hot_spot_(cached_share|cached_factor|cached_sigma|slowed\.\d)"),
        (r"F7[AC]|F08-0[237]", r"hot_spot_exponent|retry_sigma|merge_sigma|spared_share|spared_power\.\d|queue_excess\.\d"),
        (r"F7D|F08-09", "hot_spot_rate_per_drive_year|io_size_exponent"),
        (r"F10B|F13", "hour_rate_sigma|burst_.*|closed_loop_exponent"),
        (r"F11[BD]|F14|F15|UPD", "unplug_.*|cure_share|recurrence_.*"),
        (r"VST|F4B-T\d-.*EQ", r"throttle\.\d"),
        (r"F4B-T\d-8|T3A-2", r"stall\.\d"),
        (r"F6", r"hiccup\.\d"),
    ],
}
"""Ids, and the parameters that concern these and hardly any other."""
NEGATIVE = ("io_size_exponent", "unplug_severity_exponent")


@dataclass
class Problem:
    """One kind's fit."""

    kind: Kind
    names: list[str]  # plain names of the parameters that move; of a list each number, as `name.2`
    references: list[dict[str, str]]
    seeds: tuple[int, ...]
    groups: int
    days: int
    base: Parameters

    def measured_by(self, data: KindData) -> "Problem":
        """The same with only those references that a fleet of this kind can be asked."""
        return replace(self, references=[ref for ref in self.references if measure(ref, data) is not None])

    def parameters(self, x: Floats) -> Parameters:
        flat = self.base.flat()
        changes: dict[str, Any] = {}
        for name, v in zip(self.names, x, strict=True):
            plain, _, place = name.partition(".")
            key = f"{self.kind}.{plain}"
            if place:
                changes.setdefault(key, list(flat[key]))[int(place)] = _to_number(plain, v)
            else:
                changes[key] = _to_number(plain, v)
        return with_overrides(changes, self.base)

    def start(self) -> Floats:
        flat = self.base.flat()

        def number(name: str) -> float:
            plain, _, place = name.partition(".")
            value = flat[f"{self.kind}.{plain}"]
            return _from_number(plain, value[int(place)] if place else value)

        return np.asarray([number(name) for name in self.names])

    def residuals(self, x: Floats) -> Floats:
        """Weighted misfits of the fitted ids, averaged over the seeds."""
        parameters = self.parameters(x)
        made = [
            self.of_data(fleet_data(parameters, seed, self.days, {"disk": 0, "ssd": 0, self.kind: self.groups})[self.kind])
            for seed in self.seeds
        ]
        return np.asarray(np.mean(made, axis=0))

    def of_data(self, data: KindData) -> Floats:
        families: dict[str, int] = {}
        for ref in self.references:
            family = ref["id"].partition("-")[0]
            families[family] = families.get(family, 0) + 1
        return np.asarray([_residual(ref, self.kind, data, families) for ref in self.references])


def _residual(ref: Mapping[str, str], kind: Kind, data: KindData, families: Mapping[str, int]) -> float:
    found = measure(ref, data)
    family = ref["id"].partition("-")[0]
    weight = WEIGHTS.get((family, kind), 1.0) * (1.0 if family in HEADLINES else min(1.0, math.sqrt(8 / families[family])))
    paper = float(ref["value"])
    if isinstance(found, Share):
        n = found.population
        p = min(max(paper / 100, 1e-5), 1 - 1e-5)
        expected = n * min(p, 1 - p)
        if expected < 4:
            return 0.0
        v = (found.value * n + p) / (n + 1)  # one more that is as the paper says keeps the odds finite
        scale = SCALE + 0.7 / math.sqrt(expected)
        return weight * (math.log(v / (1 - v)) - math.log(p / (1 - p))) / scale
    if found is None:
        return 0.0
    if isinstance(found, Percentile):
        population, q = found.population, found.rank
        if len(population.value) * min(q, 1 - q) < 4:
            return 0.0
        # a percentile near 1 is hardly moved by anything: what counts is the distance above 1
        return weight * 0.7 * math.log(max(population.percentile(q) - 0.95, 0.01) / (paper - 0.95)) / SCALE
    a, b = found.of, found.over
    return 0.0 if not a.population or not b.population else weight * math.log(max(a.value - b.value, 0.001) / (paper / 100)) / SCALE


def _is_share(name: str) -> bool:
    return name.endswith("_share") or name == "aftershock_count"


def _from_number(name: str, value: float) -> float:
    if name in NEGATIVE:
        return value / 0.2
    if _is_share(name):
        value = min(max(value, 1e-5), 0.97)
        return math.log(value / (1 - value))
    return math.log(max(value, 1e-4))


def _to_number(name: str, x: float) -> float:
    if name in NEGATIVE:
        return 0.2 * x
    if _is_share(name):
        return min(1 / (1 + math.exp(-x)), 0.94)
    return math.exp(x)


def _soft(r: Floats) -> Floats:
    """The residuals with the reach of the far ones taken back."""
    return np.asarray(np.sign(r) * np.sqrt(np.minimum(np.abs(r), SOFT) ** 2 + 2 * SOFT * np.maximum(np.abs(r) - SOFT, 0)))


def fit(problem: Problem, rounds: int, say: Callable[[str], Any], keep: Callable[[Parameters], Any]) -> Parameters:
    """Damped Gauss-Newton (Levenberg and Marquardt): each round measures what every parameter does, then moves all at once.

    Fleets of a fit share their random draws: an episode's fate, an hour's noise, a burst stay the same while a rate
    moves a little, so that the difference of two fleets is the parameter's doing.
    """
    x0 = x = problem.start()

    def cost(r: Floats, at: Floats) -> float:
        return float(np.square(_soft(r)).sum() + np.square((at - x0) / PRIOR).sum())

    r = problem.residuals(x)
    best = cost(r, x)
    say(f"{problem.kind}: {len(r)} residuals, {len(x)} parameters, cost {best:.1f}")
    damping = 1.0
    for number in range(rounds):
        jacobian = np.empty((len(r), len(x)))
        start_cost = best
        for j in range(len(x)):
            moved = x.copy()
            moved[j] += STEP
            jacobian[:, j] = (problem.residuals(moved) - r) / STEP
        say(f"round {number + 1}: slopes measured")
        for _ in range(6):
            w = np.abs(_soft(r)) / np.maximum(np.abs(r), 1e-9)
            a = jacobian * w[:, None]
            hessian = a.T @ a
            step = -np.linalg.solve(hessian + np.diag(damping * np.diag(hessian) + 1 / PRIOR**2), a.T @ (w * r) + (x - x0) / PRIOR**2)
            tried = x + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
            rt = problem.residuals(tried)
            c = cost(rt, tried)
            say(f"  damping {damping:.2g}: cost {c:.1f}")
            if c < best:
                # what the step showed about the slopes is kept (Broyden), and another step taken with them
                taken = tried - x
                jacobian += np.outer(rt - r - jacobian @ taken, taken) / float(taken @ taken)
                gained, x, r, best = best - c, tried, rt, c
                damping = max(damping / 3, 0.02)
                keep(problem.parameters(x))
                if gained < 0.005 * best:
                    break
            else:
                damping *= 4
        if start_cost - best < 0.01 * best:
            break
    return problem.parameters(x)


def polish(problem: Problem, passes: int, say: Callable[[str], Any], keep: Callable[[Parameters], Any]) -> Parameters:
    """Random search on what counts in the end, the fitted ids that differ; squared misfits tell apart what verdicts do not.

    Moves alternate. Of the blocks, each moves one of its parameters in the same trial fleet and keeps the move if its own
    ids agree better: what concerns one year of age, or hot spots, hardly concerns another. Of the rest, a few parameters
    move together, kept if all ids agree better. A pass is one trial per parameter.
    """
    x = problem.start()
    rng = np.random.default_rng(problem.seeds[0])
    blocks = [
        (ids, moving)
        for pattern, names in BLOCKS[problem.kind]
        if (moving := [j for j, name in enumerate(problem.names) if re.fullmatch(names, name)])
        and (ids := [i for i, ref in enumerate(problem.references) if re.match(pattern, ref["id"])])
    ]
    rest = sorted(set(range(len(x))) - {j for _, moving in blocks for j in moving})
    groups: dict[Kind, int] = {"disk": 0, "ssd": 0, problem.kind: problem.groups}

    def cost_of(seed: int, at: Floats) -> Floats:
        data = fleet_data(problem.parameters(at), seed, problem.days, groups)
        differing = {v.id for v in judge(problem.references, data) if v.verdict == "differs"}
        differs = np.asarray([ref["id"] in differing for ref in problem.references], dtype=float)
        return np.asarray(differs + np.square(_soft(problem.of_data(data[problem.kind]))) / MISFIT_PER_VERDICT)

    def costs(at: Floats) -> Floats:
        return np.asarray(np.mean([cost_of(seed, at) for seed in problem.seeds], axis=0))

    best = costs(x)
    say(f"{problem.kind}: polish from {best.sum():.2f}")
    for number in range(passes * len(x)):
        tried = x.copy()
        if number % 3 < 2:
            for _, moving in blocks:
                tried[rng.choice(moving)] += REACH * rng.standard_normal()
            found = costs(tried)
            merged = x.copy()
            for ids, moving in blocks:
                if found[ids].sum() < best[ids].sum():
                    merged[moving] = tried[moving]
            if (merged == x).all():
                continue
            if (merged != tried).any():
                tried, found = merged, costs(merged)
        else:
            tried[rng.choice(rest, size=min(3, len(rest)), replace=False)] += REACH * rng.standard_normal(min(3, len(rest)))
            found = costs(tried)
        if found.sum() < best.sum():
            x, best = tried, found
            keep(problem.parameters(x))
            say(f"  trial {number + 1}: {best.sum():.2f}")
    return problem.parameters(x)

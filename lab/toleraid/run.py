"""One experiment: requests, their slowdowns, and what becomes of them under each policy. The same experiment gives the same bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lab.toleraid.distributions import Distribution, Drawn
from lab.toleraid.jitter import Jitter
from lab.toleraid.policies import POLICIES, Policies, Served, Times
from lab.toleraid.requests import Arrivals, Layout, Requests

BLOCK = 1 << 16
"""Requests drawn at a time; each block has its own random numbers."""

EDGES = np.unique(np.concatenate([np.arange(100, 301) / 200, np.arange(30, 161) / 20, np.arange(8, 101)]).astype(np.float64))
"""Where the curve of completions is drawn: as the study's curves."""


@dataclass(frozen=True)
class Experiment:
    """Settings of a simulation. `requests`: to be made up, or those of a trace. `jitter`: None for none."""

    distribution: Distribution
    requests: Arrivals | Requests
    data_drives: int = 6
    parity: int = 2
    layout: Layout = Layout.FIXED
    policies: Sequence[str] = POLICIES
    st: float = 2.0
    sr: int = 3
    jitter: Jitter | None = None
    seed: int = 1


@dataclass
class Outcome:
    """Results of a policy: completions (sorted, in base latencies) and counts. `applies`: there are enough parities for it."""

    applies: bool = True
    completions: Times = field(default_factory=lambda: np.empty(0))
    extra_reads: int = 0
    reactive_triggers: int = 0
    """Requests of which a parity was read because data were late."""
    proactive_seconds: float = 0.0
    """From each request that a parity was read ahead for to the next one without, over all stretches of such requests."""

    def percentile(self, per_mille: int) -> float:
        """The completion at a rank, nearest rank."""
        return float(self.completions[-(-len(self.completions) * per_mille // 1000) - 1])

    def count_below(self, x: float) -> int:
        """Requests that take less than x."""
        return int(np.searchsorted(self.completions, x, side="left"))

    def count_up_to(self, x: float) -> int:
        """Requests that take at most x."""
        return int(np.searchsorted(self.completions, x, side="right"))

    def curve(self) -> list[tuple[float, int, int]]:
        """At each edge: requests up to it, and below it. From the last edge with none to the first with all."""
        up_to = np.searchsorted(self.completions, EDGES, side="right")
        below = np.searchsorted(self.completions, EDGES, side="left")
        first = max(int(np.searchsorted(up_to, 0, side="right")) - 1, 0)
        last = int(np.searchsorted(up_to, len(self.completions), side="left"))
        return [(float(EDGES[i]), int(up_to[i]), int(below[i])) for i in range(first, min(last + 1, len(EDGES)))]


Keep = Callable[[Times, Drawn, Times | None, Mapping[str, Served | None]], None]
"""Is given each block of requests: times, slowdowns, base latencies (None without jitter), and each policy's completions."""


def simulate(experiment: Experiment, keep: Keep | None = None) -> tuple[Requests, dict[str, Outcome]]:
    """Serve all requests under each policy. keep: is given every request. Returns: the requests, and what each policy did."""
    random = np.random.default_rng([experiment.seed, 0])
    requests = experiment.requests.draw(random) if isinstance(experiment.requests, Arrivals) else experiment.requests
    count, drives = len(requests.times), experiment.data_drives + experiment.parity
    draw = experiment.distribution.bound(experiment.data_drives, experiment.parity, requests, random)
    policies = Policies(experiment.data_drives, experiment.parity, experiment.st, experiment.sr, experiment.policies)
    outcomes = {name: Outcome(applies=name != "proactive2" or experiment.parity == 2) for name in experiment.policies}
    for outcome in outcomes.values():
        outcome.completions = np.empty(count if outcome.applies else 0)
    was_ahead = False
    for number, first in enumerate(range(0, count, BLOCK), start=1):
        last = min(first + BLOCK, count)
        shift = requests.stripes[first:last] % drives if experiment.layout is Layout.ROTATING else None
        of_block = np.random.default_rng([experiment.seed, number])
        drawn = draw(of_block, first, last, shift)
        base = None if experiment.jitter is None else experiment.jitter.draw(of_block, drives, last - first)
        served = policies.serve(*completed(drawn, base), shift)
        for name, result in served.items():
            if result is not None:
                _add(outcomes[name], result, first)
        ahead = served.get("adaptive")
        if ahead is not None:
            seconds, was_ahead = _proactive(ahead.proactive_reads, requests.times[first:last], was_ahead, is_last=last == count)
            outcomes["adaptive"].proactive_seconds += seconds
        if keep is not None:
            keep(requests.times[first:last], drawn, base, served)
    # NumPy sorts without holding the interpreter
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda outcome: outcome.completions.sort(), outcomes.values()))
    for name, outcome in outcomes.items():
        if name.startswith("proactive") and outcome.applies and count:
            outcome.proactive_seconds = float(requests.times[-1])
    return requests, outcomes


def completed(drawn: Drawn, base: Times | None) -> tuple[Times, Times]:
    """When each block is there: a slow drive takes longer by (slowdown - 1) base latencies of the median."""
    if base is None:
        return drawn.data, drawn.parity
    width = len(drawn.data)
    return base[:width] + np.maximum(drawn.data - 1, 0), base[width:] + np.maximum(drawn.parity - 1, 0)


def _add(outcome: Outcome, served: Served, first: int) -> None:
    outcome.completions[first : first + len(served.completions)] = served.completions
    outcome.extra_reads += int(served.extra_reads.sum(dtype=np.int64))
    outcome.reactive_triggers += int(np.count_nonzero(served.extra_reads > served.proactive_reads))


def _proactive(reads: NDArray[np.int8], times: Times, was_ahead: bool, *, is_last: bool) -> tuple[float, bool]:
    """Seconds of the stretches that end in a block less those of the ones that begin in it. Returns: that, and whether one goes on."""
    is_ahead = np.concatenate([[was_ahead], reads > 0])
    turns = np.diff(is_ahead.astype(np.int8))
    seconds = float(times[turns == -1].sum() - times[turns == 1].sum())
    if is_last and is_ahead[-1]:
        seconds += float(times[-1])
    return seconds, bool(is_ahead[-1])

"""The official judge: the fleet written, ingested, built and studied, its marts read back. Takes minutes where the quick one takes seconds."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from engine.build import build, make_study
from engine.warehouse import Warehouse
from ingest import ingest
from simulate import simulate
from simulate.parameters import Kind
from workbench.calibrate.judge import X_SLACK, Y_SLACK, Verdict

Distances = list[tuple[str, str, float, int]]
"""Figure, curve, distance (0..1), population."""


def build_fleet(folder: Path, groups: Mapping[Kind, int], days: int, seed: int, say: Callable[[str], Any]) -> Warehouse:
    """Simulate into `folder`/fleet, ingest and build into `folder`/warehouse, and compute the study."""
    warehouse = Warehouse(folder / "warehouse")
    made = simulate(folder / "fleet", disk_groups=groups["disk"], ssd_groups=groups["ssd"], days=days, seed=seed)
    say(f"{made.row_count:,} drive-hours written")
    ingest("bundle", [folder / "fleet"], warehouse.root)
    say("ingested")
    build(warehouse)
    say("built")
    make_study(warehouse)
    say("studied")
    return warehouse


def read_verdicts(database: Path) -> list[Verdict]:
    """The rows of marts.study_results that a fleet is judged by."""
    with duckdb.connect(str(database), read_only=True) as connection:
        rows = connection.sql(
            "select id, kind, unit, paper_value, value, ci_low, ci_high, verdict from marts.study_results "
            "where verdict in ('agrees', 'differs', 'no data') order by id, kind"
        ).fetchall()
    made = []
    for name, kind, unit, *numbers, verdict in rows:
        paper, value, low, high = (float("nan") if number is None else float(number) for number in numbers)
        made.append(Verdict(name, kind, unit, paper, value, low, high, verdict))
    return made


def read_distances(database: Path) -> Distances:
    """The greatest distance of every curve of marts.study_curves to the paper's, over the paper's vertices."""
    with duckdb.connect(str(database), read_only=True) as connection:
        own = connection.sql("select figure, curve, x, y, y_left, population from marts.study_curves order by figure, curve, x").fetchall()
        paper = connection.sql(
            "select figure, curve, x, y from study.study_paper_curves where figure < '12' or figure > '1a' order by seq"
        ).fetchall()
    steps: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    population: dict[tuple[str, str], int] = {}
    for figure, curve, x, y, y_left, count in own:
        steps[figure, curve].append((x, y, y_left))
        population[figure, curve] = count
    vertices: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for figure, curve, x, y in paper:
        vertices[figure, curve].append((x, y))
    made: Distances = []
    for key in sorted(vertices.keys() & steps.keys()):
        x, y, y_left = np.asarray(steps[key]).T
        at, share = np.asarray(vertices[key]).T
        if key[0] == "6a":
            share = 1 - share
        slack = np.abs(at) * X_SLACK + Y_SLACK
        before, after = np.searchsorted(x, at - slack, side="right") - 1, np.searchsorted(x, at + slack, side="left")
        low = np.where(before >= 0, y[np.maximum(before, 0)], 0.0)
        high = np.where(after < len(x), y_left[np.minimum(after, len(x) - 1)], y[-1])
        made.append((*key, float(np.max(np.maximum(np.maximum(low - share, share - high), 0))), population[key]))
    return made

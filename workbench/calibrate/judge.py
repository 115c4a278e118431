"""The paper's printed numbers and plotted curves, and what a measured fleet says to each."""

import csv
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulate.parameters import KINDS, Kind
from workbench.calibrate.evaluate import KindData, Population, Share, wilson

FACTOR = 1.25
LEAST_EXPECTED = 10
X_SLACK, Y_SLACK = 0.002, 0.003
"""How far the digitising may have moved a vertex along its axis: this share of it, and this much."""
DESIGN_EDGES = (4.0, 2.0, 1.5, 1.2)


@dataclass(frozen=True)
class Verdict:
    """One printed number against the fleet. Values in the reference's unit."""

    id: str
    kind: Kind
    unit: str
    paper: float
    value: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class Percentile:
    """The value at `rank` (0..1) of a population."""

    population: Population
    rank: float


@dataclass(frozen=True)
class Difference:
    """Excess of one share over another."""

    of: Share
    over: Share


Measure = Share | Percentile | Difference


def measure(ref: Mapping[str, str], data: KindData) -> Measure | None:
    """The fleet's value for the reference `ref`; None where it is not compared."""
    name = ref["id"]
    family, _, rest = name.partition("-")
    s, (t1, t2, t3) = data.slowdown, data.tails
    of = {"Si": s, "T1": t1, "T2": t2, "T3": t3}
    if name in NAMED:
        return NAMED[name](data)
    if family == "T3A":
        number = int(rest)
        return Percentile((s, t1)[(number - 1) % 12 // 6], (0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999)[(number - 1) % 6])
    if family == "T3B":
        number = int(rest)
        return (s, t1)[(number - 1) % 8 // 4].below((1.2, 1.5, 2.0, 4.0)[(number - 1) % 4])
    if family == "F2A":
        x = rest.split("-")[1]
        return Share.of(data.width.value > 8, data.width.cluster) if x == "GT8" else data.width.below(float(x), True)
    if family == "F2B":
        return Percentile(data.duration_days, float(rest.split("-P")[1]) / 100)
    if family in ("F4A", "F4B"):
        which, x = rest.split("-")
        if x.endswith("EQ"):
            return Share.of(of[which].value == float(x[:-2]), of[which].cluster)
        return of[which].below(float(x))
    if family == "F5A":
        return data.interval_hours.below(float(rest.split("-")[1]), True)
    if family == "F5B":
        return data.gap_hours.below(float(rest.split("-")[1]), True)
    if family == "F6A":
        return Share.of(data.max_slowdown.value >= float(rest.split("-")[1]), data.max_slowdown.cluster)
    if family == "F6B":
        return data.occurrences.below(float(rest.split("-")[1]), True)
    if family in ("F7A", "F7B", "F7C", "F7D"):
        return figure_7(family[-1], data).below(float(rest.split("-")[1]))
    if family in ("F8A", "F8B"):
        if rest == "ORDER":
            return None
        year, x = rest.split("-")
        aged = data.kept(year, lambda: s.within(data.age_year == int(year[1:])))
        return Percentile(aged, float(x[1:]) / 100) if x.startswith("P") else aged.below(float(x))
    if family == "FG9":
        cell, x = rest.split("-")
        return s.within(CELLS[cell](data)).below(float(x), True)
    if family in ("F10A", "F10B") and rest.startswith(("stable", "tail")):
        which, x = rest.split("-")
        return data.degradation[f"stable-to-{which}"].below(float(x))
    if re.match(r"F11[ABCD]$", family):
        severity, x = rest.rsplit("-", 1)
        return (data.wait_hours if family in ("F11A", "F11B") else data.recur_hours)[severity].below(float(x), True)
    return None


def figure_7(part: str, data: KindData) -> Population:
    """The population of figure 7a, b, c or d."""
    return data.kept(part, lambda: _figure_7(part, data))


def _figure_7(part: str, data: KindData) -> Population:
    s = data.slowdown
    if part in "AC":
        value = data.rate_imbalance if part == "A" else data.size_imbalance
        kept = (s.value >= 2) & np.isfinite(value)
        return Population(value[kept], s.cluster[kept])
    value = data.rate_imbalance if part == "B" else data.size_imbalance
    return s.within(np.nan_to_num(value) >= 2)


CELLS: dict[str, Callable[[KindData], np.ndarray]] = {
    "SLC": lambda d: d.cell == 1,
    "MLC": lambda d: d.cell >= 2,
    "MLCA": lambda d: d.cell == 2,
    "MLCB": lambda d: d.cell == 3,
}


def _at_least(population: Population, x: float) -> Share:
    return Share.of(population.value >= x, population.cluster)


def _extreme_year(data: KindData, years: range, which: Callable[..., int]) -> Share:
    """The share of drives in the age year that has the least or the most of them."""
    year = which(years, key=lambda y: np.count_nonzero(data.drive_age_year.value == y))
    return data.drive_age_year.of_values(year)


NAMED: dict[str, Callable[[KindData], Measure]] = {}
for disk_id, ssd_id, made in (
    ("T1-17", "T1-18", lambda d: _at_least(d.slowdown, 2)),
    ("F01-01", "F01-02", lambda d: _at_least(d.slowdown, 2)),
    ("F01-14", "F01-15", lambda d: _at_least(d.slowdown, 2)),
    ("T1-23", "T1-24", lambda d: _at_least(d.tails[0], 2)),
    ("F02-01", "F02-02", lambda d: _at_least(d.tails[0], 2)),
    ("F02-07", "F02-08", lambda d: _at_least(d.tails[0], 2)),
    ("F01-03", "F01-04", lambda d: d.slowdown.below(2)),
    ("F01-05", "F01-06", lambda d: d.slowdown.below(1.5)),
    ("F01-07", "F01-08", lambda d: _at_least(d.slowdown, 1.5)),
    ("F01-09", "", lambda d: Percentile(d.slowdown, 0.9999)),
    ("F01-10", "", lambda d: Percentile(d.slowdown, 0.99999)),
    ("F02-03", "F02-04", lambda d: d.tails[0].below(1.5)),
    ("F02-05", "F02-06", lambda d: _at_least(d.tails[0], 1.5)),
    ("F03-01", "F03-04", lambda d: _at_least(d.tails[0], 2)),
    ("F03-02", "F03-05", lambda d: _at_least(d.tails[1], 2)),
    ("F03-03", "F03-06", lambda d: _at_least(d.tails[2], 2)),
    ("", "VST-01", lambda d: Share.of(d.tails[0].value == 2, d.tails[0].cluster)),
    ("", "VST-02", lambda d: Share.of(np.isin(d.slowdown.value, (1.5, 2, 3)), d.slowdown.cluster)),
    ("F04-01", "F04-02", lambda d: _at_least(d.interval_hours, 2)),
    ("F04-03", "F04-04", lambda d: _at_least(d.interval_hours, 8)),
    ("INT-01", "INT-02", lambda d: _at_least(d.interval_hours, 2)),
    ("F05-01", "F05-02", lambda d: d.gap_hours.below(23, True)),
    ("INT-03", "INT-04", lambda d: d.gap_hours.below(23, True)),
    ("F06-01", "F06-02", lambda d: _at_least(d.max_slowdown, 2)),
    ("F06-03", "F06-04", lambda d: _at_least(d.max_slowdown, 16)),
    ("F07-01", "F07-02", lambda d: _at_least(d.occurrences, 100)),
    ("F07-03", "F07-04", lambda d: d.occurrences.below(4, True)),
    ("F08-02", "F08-02", lambda d: _at_least(figure_7("A", d), 2)),
    ("F08-03", "F08-03", lambda d: figure_7("A", d).below(2)),
    ("F08-04", "F08-05", lambda d: _at_least(figure_7("B", d), 2)),
    ("F08-06", "F08-07", lambda d: _at_least(figure_7("C", d), 2)),
    ("F08-08", "F08-09", lambda d: _at_least(figure_7("D", d), 2)),
    ("F09-02", "F09-02", lambda d: _at_least(d.explicit_led, 1)),
    ("F10-03", "", lambda d: _extreme_year(d, range(1, 6), min)),
    ("F10-04", "", lambda d: _extreme_year(d, range(1, 6), max)),
    ("F10-02", "", lambda d: _extreme_year(d, range(6, 11), max)),
    ("", "F10-07", lambda d: d.drive_age_year.of_values(3, 4)),
    ("", "F10-08", lambda d: d.drive_age_year.of_values(1, 2)),
    ("F11-04", "F11-05", lambda d: d.drive_model_known.of_values(1)),
    ("", "F11-06", lambda d: d.drive_cell.within(d.drive_cell.value > 0).of_values(1)),
    ("", "F11-07", lambda d: d.drive_cell.within(d.drive_cell.value > 0).of_values(2, 3)),
    ("", "F12-01", lambda d: d.drive_cell.within(d.drive_cell.value > 1).of_values(2)),
    ("", "F12-02", lambda d: d.drive_cell.within(d.drive_cell.value > 1).of_values(3)),
    ("F10-05", "", lambda d: Percentile(d.slowdown.within(d.age_year == 8), 0.95)),
    ("", "F11-01", lambda d: d.slowdown.within(d.cell >= 2).below(1.5)),
    ("", "F11-02", lambda d: d.slowdown.within(d.cell == 1).below(1.5)),
    ("", "F12-03", lambda d: d.slowdown.within(d.cell == 3).below(1.5)),
    ("", "F11-03", lambda d: Difference(d.slowdown.within(d.cell == 1).below(2), d.slowdown.within(d.cell >= 2).below(2))),
    ("", "F13-01", lambda d: _at_least(d.degradation["stable-to-stable"], 2)),
    ("F13-03", "F13-02", lambda d: Difference(*(_at_least(d.degradation[f"stable-to-{x}"], 2) for x in ("tail", "stable")))),
    ("F14-01", "F14-02", lambda d: d.wait_hours["all"].below(24, True)),
    ("F14-03", "F14-04", lambda d: d.wait_hours["1.5-2x"].below(24, True)),
    ("F15-01", "F15-02", lambda d: _at_least(d.replugged, 1)),
    ("F15-03", "F15-04", lambda d: d.recur_hours["all"].below(24, True)),
    ("UPD-01", "UPD-03", lambda d: d.outage_hours.below(2, True)),
    ("UPD-02", "UPD-04", lambda d: d.outage_hours.below(10, True)),
):
    for each in (disk_id, ssd_id):
        if each:
            NAMED[each] = made


JUDGED = ("share", "percentile", "value")


def references(folder: Path) -> list[dict[str, str]]:
    """The paper's printed numbers that a fleet is judged by, from the seeds of the study in `folder`."""
    with (folder / "paper_numbers.csv").open(encoding="utf-8", newline="") as file:
        numbers = list(csv.DictReader(file))
    with (folder / "study_measures.csv").open(encoding="utf-8", newline="") as file:
        measures = {row["id"]: row for row in csv.DictReader(file)}
    fitted = fitted_kinds(numbers)
    return [
        row
        | {
            "judged_as": measures[row["id"]]["judged_as"],
            "value": measures[row["id"]]["compared_with"] or row["value"],
            "fitted": " ".join(fitted[row["id"]]),
        }
        for row in numbers
        if measures[row["id"]]["judged_as"] in JUDGED
    ]


def fitted_kinds(numbers: list[dict[str, str]]) -> dict[str, list[Kind]]:
    """For which kinds an id takes part in the fit: of each family and kind every other id, the first included, in list order."""
    seen: dict[tuple[str, Kind], int] = defaultdict(int)
    made: dict[str, list[Kind]] = {}
    for row in numbers:
        of: list[Kind] = [kind for kind in KINDS if row["subject"] in (kind, "both")]
        family = row["id"].partition("-")[0]
        made[row["id"]] = [kind for kind in of if seen[family, kind] % 2 == 0]
        for kind in of:
            seen[family, kind] += 1
    return made


def judge(rows: list[dict[str, str]], data: Mapping[Kind, KindData]) -> list[Verdict]:
    """A verdict for every reference that can be compared, one per kind where it names both."""
    made = []
    for ref in rows:
        for kind in data:
            if ref["subject"] not in (kind, "both"):
                continue
            found = measure(ref, data[kind])
            if found is not None:
                made.append(_verdict(ref, kind, found))
    return made


def _verdict(ref: Mapping[str, str], kind: Kind, found: Measure) -> Verdict:
    text = ref["value"]
    paper = float(text)
    half = 0.5 * 10 ** -len(text.partition(".")[2])
    unit = ref["unit"]
    sides: tuple[float, float] | None = None
    if isinstance(found, Share):
        n = found.population
        scale = 100.0
        value, expected = scale * found.value, n * min(paper, scale - paper) / scale
        low, high = (scale * x for x in found.interval()) if n else (math.nan, math.nan)
        if paper in (0, scale):
            expected = math.inf if n >= LEAST_EXPECTED else 0
        sides = (scale - value, scale - paper) if ref["judged_as"] == "percentile" else (value, paper)
    elif isinstance(found, Percentile):
        population, q = found.population, found.rank
        n = len(population.value)
        expected = n * min(1 - q, q)
        value = low = high = math.nan
        if expected >= LEAST_EXPECTED:
            value = population.percentile(q)
            edge = next((e for e in DESIGN_EDGES if e <= value), DESIGN_EDGES[-1])
            at = population.below(edge)
            # the design effect at the edge carries over to the rank
            ends = wilson(q, max(n * at.effective_size() / at.population, 1.0))
            low, high = population.percentile(ends[0]), population.percentile(ends[1])
    else:
        a, b = found.of, found.over
        n = min(a.population, b.population)
        expected = n * abs(paper) / 100
        value = 100 * (a.value - b.value)
        (la, ha), (lb, hb) = (a.interval(), b.interval()) if n else ((math.nan,) * 2,) * 2
        low = value - 100 * math.hypot(a.value - la, hb - b.value)
        high = value + 100 * math.hypot(ha - a.value, b.value - lb)
    sides = sides or (value, paper)
    if not n or expected < LEAST_EXPECTED or math.isnan(value):
        verdict = "no data"
    elif paper - half <= high and paper + half >= low and sides[0] <= FACTOR * sides[1] and sides[1] <= FACTOR * sides[0]:
        verdict = "agrees"
    else:
        verdict = "differs"
    return Verdict(ref["id"], kind, unit, paper, value, low, high, verdict)


Curves = dict[tuple[str, str], list[tuple[float, float]]]


def curves(folder: Path) -> Curves:
    """The vertices of every plotted curve of figures 2 to 11, from the seeds of the study."""
    made: Curves = defaultdict(list)
    with (folder / "paper_curves.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not row["figure"].startswith("12"):
                made[row["figure"], row["curve"]].append((float(row["x"]), float(row["y"])))
    return dict(made)


def ks_distance(figure: str, vertices: list[tuple[float, float]], population: Population) -> float:
    """Greatest distance of the fleet's distribution to the plotted curve, over the curve's vertices.

    A vertex may lie anywhere on a step of the fleet's distribution; digitising moves it by up to 0.2%.
    """
    value = np.sort(population.value)
    n = len(value)
    if not n:
        return math.nan
    x = np.asarray([v[0] for v in vertices]) * (-1 if figure == "6a" else 1)
    y = np.asarray([v[1] for v in vertices])
    slack = np.abs(x) * X_SLACK + Y_SLACK
    low = np.searchsorted(value, x - slack, side="left") / n
    high = np.searchsorted(value, x + slack, side="right") / n
    return float(np.max(np.maximum(np.maximum(low - y, y - high), 0)))

"""docs/results/calibration.md: the verdicts and distances of the calibrated fleet, and which number the study would refuse."""

import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from calibrate.evaluate import KindData, fleet_data
from calibrate.judge import Verdict, curve_population, curves, judge, ks_distance, references
from calibrate.reasons import reason_for
from simulate.parameters import KINDS, Kind, Parameters, defaults, number_count, with_overrides

SEED = 1
DAYS = 93
"""A little longer than the paper's 87 days, as the longest observed groups are."""
GROUPS: dict[Kind, int] = {"disk": 130, "ssd": 40}
OTHER_SEEDS = (2, 3)
SEEDS = Path("seeds")
OUT = Path("docs/results/calibration.md")
SENSITIVITY_OUT = Path("docs/results/sensitivity.md")

SENSITIVE: tuple[str, ...] = (
    "ssd.hour_latency_sigma",
    "disk.hour_latency_sigma",
    "disk.shared_rate_per_group_year",
    "disk.episode_rate_per_drive_year",
    "disk.severity_exponent",
    "disk.episode_median_hours",
    "disk.episode_sigma",
    "disk.hot_spot_rate_per_drive_year",
    "disk.hot_spot_cached_factor",
    "disk.large_io_group_share",
    "disk.burst_rate_per_hour",
    "disk.burst_factor_median",
    "ssd.burst_factor_sigma",
    "disk.unplug_share",
    "ssd.outage_median_hours",
    "disk.outage_median_hours",
)
"""Mechanisms that are halved and raised by half, to see the study disagree."""


def share_agreeing(verdicts: list[Verdict]) -> tuple[int, int]:
    """How many agree, and how many were judged."""
    found = Counter(v.verdict for v in verdicts)
    return found["agrees"], found["agrees"] + found["differs"]


def write_report(say: Callable[[str], Any]) -> None:
    """Judge the fleet and write the document."""
    parameters = defaults()
    refs = references(SEEDS)
    fitted = {(ref["id"], kind) for ref in refs for kind in ref["fitted"].split()}
    data = fleet_data(parameters, SEED, DAYS, GROUPS)
    verdicts = judge(refs, data)
    lines = _head(parameters) + _verdict_table(verdicts, fitted)
    for seed in OTHER_SEEDS:
        other = judge(refs, fleet_data(parameters, seed, DAYS, GROUPS))
        lines.append(f"| all, another fleet (seed {seed}), nothing fitted to it | {_shares_text(other)} |")
        say(f"seed {seed} judged")
    lines += ["", "## Distance of every curve", "", *_distances(data)]
    lines += ["", "## What differs, and why", "", *_differing(verdicts)]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"{OUT} written")
    SENSITIVITY_OUT.write_text("\n".join(_sensitivity(parameters, verdicts, say)) + "\n", encoding="utf-8")
    say(f"{SENSITIVITY_OUT} written")


def moved_ids(parameters: Parameters, name: str, factor: float, before: list[Verdict]) -> list[str]:
    """Ids that agree before and differ once parameter `name` is multiplied by `factor`."""
    kind: Kind = "disk" if name.startswith("disk.") else "ssd"
    value = parameters.flat()[name] * factor
    if name.endswith("_share"):
        value = min(value, 1.0)
    data = fleet_data(with_overrides({name: value}, parameters), SEED, DAYS, {"disk": 0, "ssd": 0, kind: GROUPS[kind]})
    agreed = {v.id for v in before if v.kind == kind and v.verdict == "agrees"}
    return [v.id for v in judge(references(SEEDS), data) if v.id in agreed and v.verdict == "differs"]


def _head(parameters: Parameters) -> list[str]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return [
        "# The calibrated simulator against the paper",
        "",
        f"Written by `make calibrate` on {datetime.now(tz=UTC).date()} at commit {commit}: {GROUPS['disk']} disk and "
        f"{GROUPS['ssd']} SSD groups, {DAYS} days, seed {SEED}; {number_count(parameters)} numbers in "
        "`simulate/presets/tail_at_store.json`.",
        "",
        "Fitted: of each family of ids (`T3A`, `F5A`, ...) and kind every other one, the first included, in the order of "
        "`seeds/paper_numbers.csv`. Held out: the rest. The rule was set before the first fit. The fit saw this very fleet; the other "
        "fleets below it never saw.",
        "",
        "An id agrees where the study's verdict does: the paper's value meets the 95% interval, the estimate is within a factor of 1.25.",
        "",
    ]


def _shares_text(verdicts: list[Verdict]) -> str:
    cells = []
    for kinds in (("disk",), ("ssd",), KINDS):
        agreeing, judged = share_agreeing([v for v in verdicts if v.kind in kinds])
        cells.append(f"{agreeing} of {judged} ({100 * agreeing / max(judged, 1):.0f}%)")
    return " | ".join(cells)


def _verdict_table(verdicts: list[Verdict], fitted: set[tuple[str, str]]) -> list[str]:
    lines = ["| ids | disks agree | SSDs agree | both |", "|---|---|---|---|"]
    for label, kept in (
        ("all judged", verdicts),
        ("fitted", [v for v in verdicts if (v.id, v.kind) in fitted]),
        ("held out", [v for v in verdicts if (v.id, v.kind) not in fitted]),
    ):
        lines.append(f"| {label} | {_shares_text(kept)} |")
    return lines


def _distances(data: Mapping[Kind, KindData]) -> list[str]:
    lines = ["| figure | curve | KS distance | events behind the fleet's curve |", "|---|---|---|---|"]
    for (figure, curve), vertices in curves(SEEDS).items():
        population = curve_population(figure, curve, data)
        if population is not None:
            distance = ks_distance(figure, vertices, population)
            lines.append(
                f"| {figure} | {curve} | {distance:.4f} | {len(population.value):,} |"
                if len(population.value)
                else f"| {figure} | {curve} | no data | 0 |"
            )
    return lines


def _differing(verdicts: list[Verdict]) -> list[str]:
    lines = ["| id | kind | paper | fleet | 95% interval | why |", "|---|---|---|---|---|---|"]
    for v in verdicts:
        if v.verdict == "differs":
            lines.append(f"| {v.id} | {v.kind} | {v.paper:g} | {v.value:.4g} | {v.low:.4g} to {v.high:.4g} | {reason_for(v)} |")
    return lines


def _sensitivity(parameters: Parameters, verdicts: list[Verdict], say: Callable[[str], Any]) -> list[str]:
    lines = [
        "# What the study refuses",
        "",
        "Each mechanism halved and raised by half, all else equal; ids that agreed before and differ then.",
        "",
        "| parameter | value | halved: differ | raised by half: differ |",
        "|---|---|---|---|",
    ]
    for name in SENSITIVE:
        cells = []
        for factor in (0.5, 1.5):
            ids = moved_ids(parameters, name, factor, verdicts)
            cells.append(f"{len(ids)}: {', '.join(ids[:6])}{', ...' if len(ids) > 6 else ''}" if ids else "none")
        lines.append(f"| {name} | {parameters.flat()[name]:g} | {cells[0]} | {cells[1]} |")
        say(f"{name}: {cells[0][:60]} | {cells[1][:60]}")
    return lines


__all__ = ["KINDS", "moved_ids", "share_agreeing", "write_report"]

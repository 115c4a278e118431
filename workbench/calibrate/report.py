"""docs/results/calibration.md: the verdicts and distances of the calibrated fleet, and which number the study would refuse."""

import csv
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simulate.parameters import KINDS, Kind, Parameters, defaults, number_count, with_overrides
from workbench.calibrate.evaluate import fleet_data
from workbench.calibrate.judge import Verdict, judge, references
from workbench.calibrate.official import Distances, build_fleet, read_distances, read_verdicts
from workbench.calibrate.reasons import reason_for

SEED = 1
DAYS = 93
"""A little longer than the paper's 87 days, as the longest observed groups are."""
GROUPS: dict[Kind, int] = {"disk": 130, "ssd": 40}
OTHER_SEEDS = (2, 3)
SEEDS = Path("seeds")
OUT = Path("docs/results/calibration.md")

SENSITIVE: dict[str, tuple[float, str]] = {
    "disk.shared_rate_per_group_year": (0.5, "F03-02"),
    "disk.shared_median_hours": (0.5, "F03-03"),
    "disk.episode_rate_per_drive_year": (0.5, "F02-01"),
    "disk.episode_median_hours": (0.5, "T1-17"),
    "disk.severity_exponent": (1.5, "F01-09"),
    "disk.ailing_hazard": (0.5, "F03-01"),
    "disk.unknown_age_hazard": (1.5, "F02-05"),
    "disk.hour_latency_sigma": (1.5, "F02-05"),
    "disk.hot_spot_rate_per_drive_year": (0.5, "F08-04"),
    "disk.idle_hour_share": (0.5, "F13-03"),
    "disk.unplug_share": (1.5, "F14-01"),
    "disk.burst_rate_per_hour": (0.5, "F10A-stable-2"),
    "ssd.hour_latency_sigma": (1.5, "F02-06"),
    "ssd.severity_exponent": (0.5, "F06-02"),
    "ssd.episode_rate_per_drive_year": (1.5, "F02-06"),
    "ssd.shared_rate_per_group_year": (1.5, "T1-18"),
    "ssd.ailing_hazard": (0.5, "T3A-22"),
    "ssd.burst_factor_sigma": (1.5, "F10B-stable-4"),
}
"""Mechanisms that are off by half, by which factor, and an id that the study must refuse then."""


LIMITS = (
    "## What it cannot tell",
    "",
    "- **The held-out half is no independent test.** The searches saw the fitted half only (every other id of each family and kind). But starting",
    "  values, mechanisms, constants in code and most numbers were set by hand with all ids in view.",
    "- **Other seeds** shuffle the same make-up (ages, widths, ailing drives, weak paths, episodes), which is dealt evenly and not drawn",
    "  (`simulate/streams.py`). With make-ups dealt from other sequences, fleets agreed on 37 to 40%.",
    "- **`make calibrate`** improves the committed numbers. It does not find them from nothing.",
    "- **The paper contradicts itself** in 2a (PI-16), in 5a of disks against 5b (PI-04: 5b was chosen), in 6b (PI-11) and in T2 and T3 of 4b (PI-05).",
    "  These curves stay far off.",
    "- **Too few events**: 11a to 11d at 4x and more, all of 11c and 11d.",
    "- **No interval of disks is longer than a day**, so 5a at 72 hours and more agrees without saying much.",
    "- **No mechanism makes** the corners of 7a to 7d of SSDs, nor of 10b between 1.0 and 1.1.",
)


def write_report(say: Callable[[str], Any]) -> None:
    """Judge the fleet and write the page, with its tables as CSV files beside it."""
    parameters = defaults()
    refs = references(SEEDS)
    fitted = {(ref["id"], kind) for ref in refs for kind in ref["fitted"].split()}
    with tempfile.TemporaryDirectory() as folder:
        warehouse = build_fleet(Path(folder), GROUPS, DAYS, SEED, say)
        verdicts, distances = read_verdicts(warehouse.published), read_distances(warehouse.published)
    lines = _head(parameters, distances) + _verdict_table(verdicts, fitted)
    for seed in OTHER_SEEDS:
        other = judge(refs, fleet_data(parameters, seed, DAYS, GROUPS))
        lines.append(f"| seed {seed}: the same make-up (quick judge) | {_shares_text(other)} |")
        say(f"seed {seed} judged")
    differing = _differing(verdicts, fitted, {ref["id"] for ref in refs if ref["judged_as"] == "percentile"})
    lines += ["", *_tables(), "", *LIMITS]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write_csv("curves", ["figure", "curve", "ks_distance", "events"], [[*row[:2], f"{row[2]:.4f}", row[3]] for row in distances])
    _write_csv("differing", ["id", "kind", "part", "paper", "fleet", "low", "high", "why"], differing)
    _write_csv("refused", ["parameter", "value", "times", "ids", "for_example"], _sensitivity(parameters, say))
    say(f"{OUT} written")


def _write_csv(table: str, heading: list[str], rows: list[list[Any]]) -> None:
    with OUT.with_name(f"calibration_{table}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([heading, *rows])


def share_agreeing(verdicts: list[Verdict]) -> tuple[int, int]:
    """How many agree, and how many were judged."""
    found = Counter(v.verdict for v in verdicts)
    return found["agrees"], found["agrees"] + found["differs"]


def moved_ids(parameters: Parameters, name: str, factor: float, before: list[Verdict]) -> list[str]:
    """Ids that agree before and differ once parameter `name` is multiplied by `factor`."""
    kind: Kind = "disk" if name.startswith("disk.") else "ssd"
    value = parameters.flat()[name] * factor
    changed = with_overrides({name: min(value, 1.0) if name.endswith("_share") else value}, parameters)
    data = fleet_data(changed, SEED, DAYS, {"disk": 0, "ssd": 0, kind: GROUPS[kind]})
    agreed = {v.id for v in before if v.kind == kind and v.verdict == "agrees"}
    return [v.id for v in judge(references(SEEDS), data) if v.id in agreed and v.verdict == "differs"]


def _head(parameters: Parameters, distances: Distances) -> list[str]:
    near = sum(distance < 0.02 for _, _, distance, _ in distances)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return [
        "# The calibrated simulator against the paper",
        "",
        "Does the simulated fleet have the numbers and curves of the paper?",
        "",
        f"`python -m workbench.calibrate report`, commit {commit}, {datetime.now(tz=UTC).date()}: {GROUPS['disk']} disk and {GROUPS['ssd']} SSD groups, {DAYS} days,",
        f"seed {SEED}; {number_count(parameters)} numbers in `simulate/presets/tail_at_store.json`. Agreement and curves are those of `marts.study_results` and",
        "`marts.study_curves` after `drivetail ingest` and `drivetail build`.",
        "",
        "An id agrees where the paper's value meets the 95% interval and the estimate is within a factor of 1.25. The aims are 85% of the judged",
        f"ids and distances below 0.02: {near} of {len(distances)} curves are that near.",
        "",
    ]


def _tables() -> list[str]:
    return [
        "- [calibration_curves.csv](calibration_curves.csv): the KS distance of every curve, and the events behind the fleet's.",
        "- [calibration_differing.csv](calibration_differing.csv): every id that differs, with both values and why.",
        "- [calibration_refused.csv](calibration_refused.csv): each mechanism off by half, all else equal (quick judge): how many ids that agreed then differ.",
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


def _differing(verdicts: list[Verdict], fitted: set[tuple[str, str]], percentiles: set[str]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for v in verdicts:
        if v.verdict == "differs":
            part = "fitted" if (v.id, v.kind) in fitted else "held out"
            numbers = [f"{v.paper:g}", f"{v.value:.4g}", f"{v.low:.4g}", f"{v.high:.4g}"]
            rows.append([v.id, v.kind, part, *numbers, reason_for(v, v.id in percentiles)])
    return rows


def _sensitivity(parameters: Parameters, say: Callable[[str], Any]) -> list[list[Any]]:
    """Each mechanism of SENSITIVE off by half, by the quick judge: a fleet each takes minutes by the official one."""
    before = judge(references(SEEDS), fleet_data(parameters, SEED, DAYS, GROUPS))
    rows: list[list[Any]] = []
    for name, (factor, _) in SENSITIVE.items():
        ids = moved_ids(parameters, name, factor, before)
        rows.append([name, f"{parameters.flat()[name]:g}", f"{factor:g}", len(ids), " ".join(ids[:5])])
        say(f"{name}: {len(ids)} ids refused")
    return rows

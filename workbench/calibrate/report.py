"""docs/results/calibration.md: the verdicts and distances of the calibrated fleet, and which number the study would refuse."""

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


FAR_CURVES = (
    "Far off by the paper's own contradictions: 2a (PI-16: disk widths are simulated as weighted by drives, SSD widths by Table 1's mean),",
    "5a of disks, whose longest intervals 5b leaves no room for (PI-04: 5b was chosen), 6b (PI-11), 4b's T2 and T3 (PI-05). Of too few",
    "events: 11a to 11d at 4x and more, all of 11c and 11d.",
    "No interval of disks is longer than a day: from there on 5a is 100% with an interval of [96.1, 100] by the number of groups alone, so",
    "that 5a at 72 hours and more agrees without saying much.",
    "Not made by any mechanism here: the corners of 7a to 7d of SSDs, and of 10b between 1.0 and 1.1. SSDs of the third year, 99% of whose",
    "hours lie below 1.02 in 8b, differ less here than others do, but their reads and writes still differ by more than that.",
)


def write_report(say: Callable[[str], Any]) -> None:
    """Judge the fleet and write the document."""
    parameters = defaults()
    refs = references(SEEDS)
    fitted = {(ref["id"], kind) for ref in refs for kind in ref["fitted"].split()}
    with tempfile.TemporaryDirectory() as folder:
        warehouse = build_fleet(Path(folder), GROUPS, DAYS, SEED, say)
        verdicts, distances = read_verdicts(warehouse.published), read_distances(warehouse.published)
    lines = _head(parameters, distances) + _verdict_table(verdicts, fitted)
    for seed in OTHER_SEEDS:
        other = judge(refs, fleet_data(parameters, seed, DAYS, GROUPS))
        lines.append(f"| seed {seed}: the same make-up, another chance (quick judge) | {_shares_text(other)} |")
        say(f"seed {seed} judged")
    lines += ["", "## Distance of every curve", "", *_distances(distances), "", *FAR_CURVES]
    lines += [
        "",
        "## What differs, and why",
        "",
        *_differing(verdicts, fitted, {ref["id"] for ref in refs if ref["judged_as"] == "percentile"}),
    ]
    lines += ["", "## What the study refuses", "", *_sensitivity(parameters, say)]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"{OUT} written")


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
        f"Written by `python -m workbench.calibrate report` on {datetime.now(tz=UTC).date()} at commit {commit}.",
        f"Fleet: {GROUPS['disk']} disk and {GROUPS['ssd']} SSD groups, {DAYS} days, seed {SEED}; {number_count(parameters)} numbers in",
        "`simulate/presets/tail_at_store.json`. Verdicts and curves are those of `marts.study_results` and `marts.study_curves` after",
        "`drivetail ingest` and `drivetail build`.",
        "",
        "Fitted: of each family of ids (`T3A`, `F5A`, ...) and kind every other one, the first included, in the order of",
        "`seeds/paper_numbers.csv`. Held out: the rest. The rule was set before the first fit, and every search saw the fitted half only.",
        "What the searches started from was set by hand with all ids in view, and so was the choice of mechanisms: the held-out half is no",
        "untouched test.",
        "",
        "How the numbers came about. Shares of ages, records and durations are read off the paper. Who holds the slow hours follows from",
        "its arithmetic: the years of 8a are each slower than the whole fleet of 4a, so the disks of unknown age are nearly well; 4b has",
        "twice the hours that 8b and 9 have by age and model, so SSDs of unknown model, and of them those of unknown age, have the rest.",
        "From there searches went, on the fitted half: least squares over rates, lengths and severities (`fit`), a random search over the",
        "verdicts (`polish`) of the fleets of three seeds. The last search of the disks counted this seed's fleet twice; after it two",
        "numbers were set by hand with all ids in view, of a dozen tried. The same search of the SSDs gained three to four ids on the",
        "other seeds and lost seven on this one: it was not kept. `make calibrate` runs `fit` and `polish` from the numbers as committed",
        "and improves on their fitted half; it does not find the committed numbers again from nothing.",
        "What a fleet's make-up hangs on (ages, widths, ailing drives, weak paths, severities and lengths of episodes) is dealt evenly",
        "over its groups, drives and episodes, not drawn, and alike for every seed (`simulate/streams.py`); how severe slow hours are",
        "is dealt by slow hours, not by episodes, and so is at what hour of the day those of disks begin. Another seed shuffles the",
        "groups and has loads, noise, outages and aftermaths of its own. So the rows of other seeds show how much hangs on these, not how",
        "much hangs on the make-up: dealt from sequences that begin elsewhere, fleets agreed on 37 to 40% (before slow hours were dealt).",
        "The mechanisms of 2026-11-22, the constants in code that shape them (shelves, paths, hiccups, retries, ranks of ailing drives;",
        "they are not among the counted numbers) and most of the numbers were set by hand with all ids in view; the searches saw the",
        "fitted half only. So the held-out half is no independent test.",
        f"The aims are 85% of the judged ids and distances below 0.02; {near} of {len(distances)} curves are that near.",
        "",
        "An id agrees where the paper's value meets the 95% interval and the estimate is within a factor of 1.25.",
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


def _distances(distances: Distances) -> list[str]:
    lines = ["| figure | curve | KS distance | events behind the fleet's curve |", "|---|---|---|---|"]
    return lines + [f"| {figure} | {curve} | {distance:.4f} | {count:,} |" for figure, curve, distance, count in distances]


def _differing(verdicts: list[Verdict], fitted: set[tuple[str, str]], percentiles: set[str]) -> list[str]:
    lines = ["| id | kind | | paper | fleet | 95% interval | why |", "|---|---|---|---|---|---|---|"]
    for v in verdicts:
        if v.verdict == "differs":
            part = "fitted" if (v.id, v.kind) in fitted else "held out"
            why = reason_for(v, v.id in percentiles)
            lines.append(f"| {v.id} | {v.kind} | {part} | {v.paper:g} | {v.value:.4g} | {v.low:.4g} to {v.high:.4g} | {why} |")
    return lines


def _sensitivity(parameters: Parameters, say: Callable[[str], Any]) -> list[str]:
    """Each mechanism of SENSITIVE off by half, by the quick judge: a fleet each takes minutes by the official one."""
    before = judge(references(SEEDS), fleet_data(parameters, SEED, DAYS, GROUPS))
    lines = [
        "Each mechanism off by half, all else equal (quick judge): ids that agreed and differ then.",
        "",
        "| parameter | value | times | how many | for example |",
        "|---|---|---|---|---|",
    ]
    for name, (factor, _) in SENSITIVE.items():
        ids = moved_ids(parameters, name, factor, before)
        lines.append(f"| {name} | {parameters.flat()[name]:g} | {factor:g} | {len(ids)} | {', '.join(ids[:5])} |")
        say(f"{name}: {len(ids)} ids refused")
    return lines

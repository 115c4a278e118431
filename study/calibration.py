"""`make calibration`: does the simulated fleet have the numbers and curves of the paper? Writes docs/results/calibration.md and its tables.

The study judges: each fleet is simulated, ingested, built and studied, which takes a minute or two. Exits 1 where the study does not refuse a mechanism that
is off by half.
"""

from __future__ import annotations

import csv
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from engine.build import build, make_asked
from engine.warehouse import Warehouse
from ingest import ingest
from simulate import simulate
from simulate.parameters import KINDS, Kind, defaults, number_count
from workbench.commit import ROOT, current_commit

OUT = ROOT / "docs/results/calibration.md"
SEED, OTHER_SEEDS = 1, (2, 3)
DAYS = 93
"""A little longer than the paper's 87 days, as the longest observed groups are."""
GROUPS: dict[Kind, int] = {"disk": 130, "ssd": 40}

HALVES = f"""
select id, kind, row_number() over (partition by split_part(id, '-', 1), kind order by place) % 2 = 1 as is_fitted
from (select id, subject, row_number() over () as place from read_csv('{ROOT}/study/seeds/paper_numbers.csv', all_varchar = true))
inner join (values ('disk'), ('ssd')) as kinds (kind) on subject in (kind, 'both')
"""
"""Which numbers the searches for parameters saw: of each family and kind every other one, the first included."""
VERDICTS = f"""
with results as (
    select *, judged_as = 'percentile' as is_percentile
    from marts.study_results inner join read_csv('{ROOT}/study/seeds/study_measures.csv', all_varchar = true) as measures using (id)
    where verdict in ('agrees', 'differs')
),
compared as (
    -- of a percentile compare the share above it
    select *, if(is_percentile, 100 - value, value) as own, if(is_percentile, 100 - paper_value, paper_value) as papers from results
)
select
    id, kind, is_fitted and judged_as <> 'statement', verdict = 'agrees', paper_value, value, ci_low, ci_high,
    case when least(own, papers) <= 0 then 'infinity'::double else greatest(own / papers, papers / own) end
from compared inner join ({HALVES}) using (id, kind)
order by id, kind
"""
DISTANCES = """
with vertices as (
    select figure, curve, x, if(figure = '6a', 1 - y, y) as y, 0.002 * abs(x) + 0.003 as slack
    from study.study_paper_curves
    where not starts_with(figure, '12')
),
whole as (select figure, curve, max(y) as y, any_value(population) as population from marts.study_curves group by all)
select
    figure, curve,
    max(greatest(coalesce(before.y, 0) - vertices.y, vertices.y - coalesce(after.y_left, whole.y), 0)),
    any_value(whole.population)
from vertices
inner join whole using (figure, curve)
asof left join marts.study_curves as before
    on vertices.figure = before.figure and vertices.curve = before.curve and vertices.x - vertices.slack >= before.x
asof left join marts.study_curves as after
    on vertices.figure = after.figure and vertices.curve = after.curve and vertices.x + vertices.slack <= after.x
group by all
order by all
"""
"""Greatest distance (0..1) of the fleet's distribution to each plotted curve, over the curve's vertices, and the events behind the fleet's.

A vertex may lie anywhere on a step of the fleet's distribution; digitising moved it along its axis by up to 0.2% of its value and 0.003.
"""


class Verdict(NamedTuple):
    """A number of the paper that the fleet is judged by, in its own unit."""

    id: str
    kind: str
    is_fitted: bool
    agrees: bool
    paper: float | None
    value: float
    low: float | None
    high: float | None
    factor: float | None
    """How far the two are apart: the greater over the lesser."""


REASONS = (
    (
        r"F4B-Si-2EQ",
        "ssd",
        "T1, T2 and T3 at exactly 2 sum to 1.3% of RAID-hours, 0.18% of drive-hours; 4b has 0.12% of drive-hours there (as PI-05)",
    ),
    (r"T3A-17", "ssd", "Table 3a has 0.1% of drive-hours at 10 and above, 4b 0.08% at 8 and above: T1 to T3 of 4b allow no more (PI-05)"),
    (
        r"T3A-16|T3B-12|F4B-Si-3",
        "ssd",
        "PI-05: T1, T2 and T3 at 3 sum to 0.15% of drive-hours, 4b has 0.13%; many at 4 and above are in one shelf",
    ),
    (
        r"F4B-T3-[458]",
        "ssd",
        "PI-05: 4b has more drive-hours at 8 than T1, T2 and T3 leave: here they are stalls of half a shelf of 22, and T3 has them, too",
    ),
    (
        r"F8B-Y[12]-[34]",
        "ssd",
        "at 3 and above, T1 and T2 of 4b need more hours than 8b has by age: here the path of one group of the first year has them",
    ),
    (r"F8B-Y[34]", "ssd", "two to nine groups, next to no slow hours: one ailing or swapped drive decides"),
    (r"FG9-MLCA?-4", "ssd", "9 against itself: vendor A is nine tenths of MLC and has twice MLC's share at 4 and above: fitted in between"),
    (r"F11-03", "ssd", "9 against itself: its curves of SLC and MLC differ by 0.16 points at 2, the text says 0.1"),
    (r"FG9-MLCB", "ssd", "the drives of this vendor are noisy here, and none of its one group of eight ails: nothing far out"),
    (r"F7D-ssd-(1\.1|1\.25)", "ssd", "drives that serve large I/Os are next to never mildly slow here; the paper's are, one hour in fifty"),
    (r"F7D-ssd-4|F8B-Y4-3", "ssd", "the paper has none at all: a single hour differs"),
    (r"F7B-ssd-[34]", "ssd", "retries add I/Os alike whatever the slowness beyond 2.5: too many hours of many I/Os are very slow"),
    (r"T3B-13", "ssd", "noise of single drives reaches 1.2 in too many RAID-hours"),
    (r"F4B|F02|F03|T3B|F01|T1", "ssd", "two wide groups without a model hold most slow hours: their paths are one queue each"),
    (
        r"F5B",
        "disk",
        "PI-04: by 5a at least 89% of gaps are 0, 5b has 65%: 5b was chosen; the body of 5a still asks for longer intervals than it allows",
    ),
    (
        r"F5A|F04|INT-01",
        "disk",
        "PI-04: 5b's gaps leave 2.5 slow hours to an interval, 5a's tail asks for 9: 5b was chosen, no episode outlasts a day",
    ),
    (r"F6B|F07", "both", "PI-11: the mean of 6b and Table 1's slow hours per slow drive exclude each other: Table 1 was followed"),
    (
        r"F7[AC]|F08-0[236]",
        "disk",
        "how often a slow drive is read around, asked again or sent larger I/Os is even over slow hours, but not over those of hot drives",
    ),
    (r"F7D|F08-08", "disk", "28 groups have larger I/Os; two or three of them decide the noise and the few slow hours"),
    (
        r"T3A-02|T3B-0[1256]|F02-0[35]|F4A-T[23]-1.5",
        "disk",
        "the body of 4a: a log-normal spread of noise over groups with a ceiling is too simple",
    ),
    (r"F8A-Y0[678]|F10-05", "disk", "at most one group of 130 is so old: what its drives do is all there is"),
    (r"F10-0", "disk", "39 groups of known age, one to 13 in a year, up to 26 drives wide: their shares move in steps of a group"),
    (r"F8A", "disk", "two numbers for a year's slowness (how often, how steep); the paper's curve bends more, or its noise is another"),
    (r"F8B|FG9|F11-|F12|F10-0", "ssd", "one to 25 groups in a class, two of them with a weak path: between-group spread"),
    (r"F11[ABCD]|F14|F15|UPD", "both", "tens of unplugs at most in a fleet of this size"),
    (r"T3A|F01|F4A|T3B|F02|F03|T1|F6A|F06|F4B|F5", "both", "a tail carried by few drives and paths"),
    (r"TOD", "ssd", "what stalled paths bring after a stall begins at any hour of the day, and two wide groups hold most of it"),
    (r"TOD", "disk", "dealt evenly over the hours of standard time; summer time moves the hours of whole sites"),
    (r"MOD", "both", "not fitted: a distance over classes, in which the few drives with most slow hours weigh most"),
)
"""Pattern of ids, kind (`both`), why they differ; the first that matches counts. PI-nn are inconsistencies inside the paper (metrics.md)."""

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
"""Mechanisms that are put off by half, by which factor, and an id that the study must refuse then."""

PAGE = """# The calibrated simulator against the paper

Does the simulated fleet have the numbers and curves of the paper?

`make calibration`, commit {commit}, {today}: {disk} disk and {ssd} SSD groups, {days} days,
seed {seed}; {numbers} numbers in `simulate/presets/tail_at_store.json`. Agreement and curves are those of `marts.study_results` and
`marts.study_curves` after `drivetail ingest` and `drivetail build`.

An id agrees where the paper's value meets the 95% interval and the estimate is within a factor of 1.25. The aims are 85% of the judged
ids and distances below 0.02: {near} of {curves} curves are that near.

| ids | disks agree | SSDs agree | both |
|---|---|---|---|
{rows}

- [calibration_curves.csv](calibration_curves.csv): the KS distance of every curve, and the events behind the fleet's.
- [calibration_differing.csv](calibration_differing.csv): every id that differs, with both values and why.
- [calibration_refused.csv](calibration_refused.csv): each mechanism off by half, all else equal: how many ids that agreed then differ.

## What it cannot tell

- **The held-out half is no independent test.** The searches saw the fitted half only (every other id of each family and kind). But starting
  values, mechanisms, constants in code and most numbers were set by hand with all ids in view.
- **Other seeds** shuffle the same make-up (ages, widths, ailing drives, weak paths, episodes), which is dealt evenly and not drawn
  (`simulate/streams.py`). With make-ups dealt from other sequences, fleets agreed on 37 to 40%.
- **The searches** improved the numbers; they did not find them from nothing. `git log -- workbench/calibrate` has them.
- **The paper contradicts itself** in 2a (PI-16), in 5a of disks against 5b (PI-04: 5b was chosen), in 6b (PI-11) and in T2 and T3 of 4b (PI-05).
  These curves stay far off.
- **Too few events**: 11a to 11d at 4x and more, all of 11c and 11d.
- **No interval of disks is longer than a day**, so 5a at 72 hours and more agrees without saying much.
- **No mechanism makes** the corners of 7a to 7d of SSDs, nor of 10b between 1.0 and 1.1.
"""


@contextmanager
def studied(seed: int = SEED, groups: Mapping[Kind, int] = GROUPS, **parameters: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The published database of a simulated fleet whose study is made."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        fleet, warehouse = Path(name) / "fleet", Warehouse(Path(name) / "warehouse")
        simulate(fleet, disk_groups=groups["disk"], ssd_groups=groups["ssd"], days=DAYS, seed=seed, parameters=parameters)
        ingest("bundle", [fleet], warehouse.root)
        build(warehouse)
        make_asked(warehouse)
        print(f"seed {seed}, {parameters or 'calibrated'}: {time.perf_counter() - began:.0f} s", flush=True)
        with duckdb.connect(str(warehouse.published), read_only=True) as connection:
            yield connection


def judged(connection: duckdb.DuckDBPyConnection) -> list[Verdict]:
    """The verdicts of a fleet's study, by id and kind."""
    return [Verdict(*row) for row in connection.execute(VERDICTS).fetchall()]


def row(label: str, verdicts: Iterable[Verdict]) -> str:
    """A row of the page: how many of some verdicts agree, by kind."""
    kept = list(verdicts)
    cells = [label]
    for kinds in (("disk",), ("ssd",), KINDS):
        agree = [verdict.agrees for verdict in kept if verdict.kind in kinds]
        cells.append(f"{sum(agree)} of {len(agree)} ({sum(agree) / len(agree):.0%})")
    return f"| {' | '.join(cells)} |"


def reason_of(verdict: Verdict) -> str:
    """How far off an id is, and why: noise where the 95% interval holds the paper's value, else the first of REASONS."""
    cause = next((why for ids, kind, why in REASONS if re.match(ids, verdict.id) and kind in ("both", verdict.kind)), "no cause is known")
    if verdict.paper is None or verdict.low is None or verdict.high is None:
        return f"no value to compare with; {cause}"
    if verdict.low <= verdict.paper <= verdict.high:
        return f"within noise (the interval holds the paper's value), off by a factor of {verdict.factor:.2f}; {cause}"
    return f"off by a factor of {verdict.factor:.2f}, paper outside the interval; {cause}"


def refused(name: str, before: list[Verdict]) -> list[str]:
    """Ids that agree, and no longer do once a mechanism is off by half."""
    kind: Kind = "disk" if name.startswith("disk.") else "ssd"
    value = defaults().flat()[name] * SENSITIVE[name][0]
    with studied(SEED, {"disk": 0, "ssd": 0, kind: GROUPS[kind]}, **{name: min(value, 1.0) if name.endswith("_share") else value}) as study:
        differing = {verdict.id for verdict in judged(study) if not verdict.agrees}
    return [verdict.id for verdict in before if verdict.kind == kind and verdict.agrees and verdict.id in differing]


def write_csv(table: str, *rows: Iterable[Any]) -> None:
    """Write a table beside the page."""
    with OUT.with_name(f"calibration_{table}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    with studied() as study:
        verdicts, distances = judged(study), study.execute(DISTANCES).fetchall()
    rows = [
        row("all judged", verdicts),
        row("fitted", (each for each in verdicts if each.is_fitted)),
        row("held out", (each for each in verdicts if not each.is_fitted)),
    ]
    for seed in OTHER_SEEDS:
        with studied(seed) as study:
            rows.append(row(f"seed {seed}: the same make-up", judged(study)))
    page = PAGE.format(
        commit=current_commit(), today=datetime.now(UTC).date(), disk=GROUPS["disk"], ssd=GROUPS["ssd"], days=DAYS, seed=SEED, numbers=number_count(defaults()),
        near=sum(distance < 0.02 for _, _, distance, _ in distances), curves=len(distances), rows="\n".join(rows),
    )  # fmt: skip
    OUT.write_text(page, encoding="utf-8")
    write_csv("curves", ("figure", "curve", "ks_distance", "events"), *((*key, f"{far:.4f}", events) for *key, far, events in distances))
    differing = []
    for each in verdicts:
        if not each.agrees:
            paper = "nan" if each.paper is None else f"{each.paper:g}"
            numbers = ("nan" if number is None else f"{number:.4g}" for number in (each.value, each.low, each.high))
            differing.append((each.id, each.kind, "fitted" if each.is_fitted else "held out", paper, *numbers, reason_of(each)))
    write_csv("differing", ("id", "kind", "part", "paper", "fleet", "low", "high", "why"), *differing)
    found = {name: refused(name, verdicts) for name in SENSITIVE}
    changed = ((name, f"{defaults().flat()[name]:g}", SENSITIVE[name][0], len(ids), " ".join(ids[:5])) for name, ids in found.items())
    write_csv("refused", ("parameter", "value", "times", "ids", "for_example"), *changed)
    missed = [
        f"{name} times {factor} leaves {expected} agreeing" for name, (factor, expected) in SENSITIVE.items() if expected not in found[name]
    ]
    sys.exit("\n".join(missed) or None)


if __name__ == "__main__":
    main()

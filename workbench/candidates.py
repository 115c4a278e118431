"""What following `drivetail candidates` would have saved: on simulated fleets, two of them with hazards that break the model, beside a library's GLM.

    python -m workbench.candidates                 (an hour on 2 cores, most of it the large fleet; writes docs/results/candidates.md)
    python -m workbench.candidates --only bursty   (one fleet; the others' sections stay)

The GLM is scikit-learn's Poisson regression (log link, ridge) on the same classes and the own rate, by kind, fitted anew at each week boundary on
the outcomes that the models had for it. Numbers that the models give are read from the marts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import warnings
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor
from sklearn.preprocessing import OneHotEncoder

from engine.dbt import variables
from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from simulate.fleet import DEFAULT_START
from workbench.commit import ROOT, current_commit
from workbench.measure import DRIVETAIL, measure

RESULTS = ROOT / "docs" / "results" / "candidates.md"
RIDGES = (0.001, 0.1)
"""Penalties of the GLM: one next to none, one that draws classes of few drives towards the mean."""
REPLICATES = 500
VARIABLES = variables()
OUTCOME_WEEKS = 4
SMALL = {"disk-groups": 60, "ssd-groups": 30, "days": 182, "seed": 11}


@dataclass(frozen=True)
class Scenario:
    """A fleet to simulate; parameters: what is changed of it; step_days: from that day on only."""

    title: str
    options: dict[str, int]
    words: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    step_days: int = 0


SCENARIOS = {
    "large": Scenario("A large fleet: 300 RAID groups, 35 weeks", {"disk-groups": 200, "ssd-groups": 100, "days": 245, "seed": 29}),
    "small": Scenario("A small fleet: 90 RAID groups, 26 weeks", SMALL),
    "bursty": Scenario(
        "Hazards that break the model, 1: bursty neighbours",
        SMALL,
        "No drive ails by itself; drives of a RAID group share paths that are slow in bursts.",
        {
            "disk.ailing_share": 0.0,
            "disk.aftershock_count": 0.0,
            "disk.shared_group_share": 1.0,
            "disk.shared_rate_per_group_year": 110.0,
            "disk.shared_median_hours": 2.0,
            "disk.shared_sigma": 1.5,
            "ssd.ailing_share": 0.0,
            "ssd.aftershock_count": 0.0,
            "ssd.shared_group_share": 1.0,
        },
    ),
    "step": Scenario(
        "Hazards that break the model, 2: a firmware step",
        SMALL,
        "The small fleet for 15 weeks, then the same drives with other hazards: those that ailed are well, every disk falls slow seven times as often, and SSDs of the two families that were quiet are the bad ones.",
        {
            "disk.episode_rate_per_drive_year": 12.0,
            "disk.ailing_share": 0.0,
            "ssd.family_hazards": [39.0, 39.0, 0.9, 0.9],
            "ssd.ailing_share": 0.0,
        },
        step_days=105,
    ),
}


def simulated(scenario: Scenario, work: Path) -> Path:
    """The fleet's bundle; after a step the drive-hours and events of the other fleet. Inventory is that of the first."""
    options = [part for name, value in scenario.options.items() for part in (f"--{name}", str(value))]
    changed = work / "parameters.json"
    changed.write_text(json.dumps(scenario.parameters), encoding="utf-8")
    before, after = work / "before", work / "after"
    measure(DRIVETAIL, "simulate", "--out", after, *options, "--parameters", changed)
    if not scenario.step_days:
        return after
    measure(DRIVETAIL, "simulate", "--out", before, *options)
    step = DEFAULT_START + timedelta(days=scenario.step_days)
    for path in after.glob("drive_hours-*.parquet"):
        if date.fromisoformat(path.stem.removeprefix("drive_hours-")) >= step:
            shutil.copy(path, before / path.name)
    told = [pl.read_parquet(folder / "drive_events.parquet") for folder in (before, after)]
    pl.concat([told[0].filter(pl.col("occurred_at") < step), told[1].filter(pl.col("occurred_at") >= step)]).write_parquet(
        before / "drive_events.parquet"
    )
    return before


def panel(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Every prediction: what was known (classes, own rate), what the models expected, what came where it is known."""
    rows: pl.DataFrame = connection.sql(
        "select expected.*, intervals.band, intervals.expected_low from intermediate.int_drive_weeks__expected as expected"
        " inner join intermediate.int_drive_weeks__intervals as intervals using (drive_id, boundary_utc) order by drive_id, boundary_utc"
    ).pl()
    return rows


def with_glm(rows: pl.DataFrame, ridge: float) -> pl.DataFrame:
    """The predictions whose outcome is known, of boundaries at which something had been learnt, with what the GLM expected: `glm`."""
    judged = []
    known = rows.filter(pl.col("tail_hours_caused_after").is_not_null())
    classes = [name for name in rows.columns if name.endswith("_class")]
    for (_, week), here in known.filter(pl.col("training_drive_weeks") > 0).group_by("kind", "week_no", maintain_order=True):
        past = known.filter(
            pl.col("kind") == here["kind"][0],
            pl.col("week_no").is_between(week - VARIABLES["candidate_training_weeks"] - OUTCOME_WEEKS + 1, week - OUTCOME_WEEKS),
        )
        assert past.height == here["training_drive_weeks"][0], "trained on other outcomes than the models"
        alike = past.group_by(*classes, "own_tail_hours").agg(pl.len().alias("drives"), pl.col("tail_hours_caused_after").mean())
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(alike.select(classes).to_numpy())

        def design(frame: pl.DataFrame, encoder: OneHotEncoder = encoder) -> Any:
            return np.column_stack([encoder.transform(frame.select(classes).to_numpy()), np.log1p(frame["own_tail_hours"].to_numpy())])

        if alike["tail_hours_caused_after"].sum() == 0:
            expected = np.zeros(here.height)
        else:
            model = PoissonRegressor(alpha=ridge, solver="newton-cholesky", max_iter=200)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(design(alike), alike["tail_hours_caused_after"].to_numpy(), sample_weight=alike["drives"].to_numpy())
            expected = model.predict(design(here))
        judged.append(here.with_columns(glm=pl.Series(expected)))
    return pl.concat(judged)


def beside_glm(rows: pl.DataFrame, ratios: list[float]) -> list[str]:
    """A row per kind, share of drives and penalty: tail hours avoided by either ranking, with a bootstrap over RAID groups."""
    lines = [
        "| kind | drives replaced | ridge | model avoids | GLM avoids | model's gain | 95% interval |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for ridge in RIDGES:
        judged = with_glm(rows, ridge)
        for (kind,), of_kind in judged.group_by("kind", maintain_order=True):
            groups = of_kind["raid_group_id"].unique().sort()
            draws = np.random.default_rng(0).poisson(1.0, (REPLICATES, len(groups)))
            for ratio in ratios:
                saved = {}
                for name in ("expected_tail_hours", "glm"):
                    ranked = of_kind.sort(name, "drive_id", descending=[True, False])
                    place, count = pl.int_range(pl.len()).over("boundary_utc"), (ratio * pl.len().over("boundary_utc")).ceil()
                    picked = ranked.filter(place < count).group_by("raid_group_id").agg(pl.col("tail_hours_caused_after").sum())
                    saved[name] = groups.to_frame().join(picked, on="raid_group_id", how="left")["tail_hours_caused_after"].fill_null(0)
                gain = (saved["expected_tail_hours"] - saved["glm"]).to_numpy()
                low, high = np.percentile(draws @ gain, [2.5, 97.5])
                lines.append(
                    f"| {kind} | {100 * ratio:g}% | {ridge:g} | {saved['expected_tail_hours'].sum():,} | {saved['glm'].sum():,} |"
                    f" {gain.sum():+,} | {low:+,.0f} to {high:+,.0f} |"
                )
    return [*lines, ""]


def calibration(rows: pl.DataFrame, edges: list[float]) -> list[str]:
    """What came over what was expected, by how much was expected; and how often at least the low ends of a boundary came."""
    judged = {ridge: with_glm(rows, ridge) for ridge in RIDGES}
    head = " | ".join(f"GLM {ridge:g}: expected | came" for ridge in RIDGES)
    lines = [
        f"| kind | expected | model: expected | came | {head} | boundaries | at least `expected_low` came |",
        "|---|---|--:|--:|" + "--:|" * (2 * len(RIDGES) + 2),
    ]
    ours = judged[RIDGES[0]]
    for (kind,), of_kind in ours.group_by("kind", maintain_order=True):
        for below, above in zip([0.0, *edges], [*edges, float("inf")], strict=True):
            band = of_kind.filter(pl.col("expected_tail_hours").is_between(below, above, closed="left"))
            texts = [f"{band['expected_tail_hours'].sum():,.0f}", f"{band['tail_hours_caused_after'].sum():,}"]
            for ridge in RIDGES:
                its = judged[ridge].filter(pl.col("kind") == kind, pl.col("glm").is_between(below, above, closed="left"))
                texts += [f"{its['glm'].sum():,.0f}", f"{its['tail_hours_caused_after'].sum():,}"]
            lows = band.filter(pl.col("expected_low").is_not_null()).group_by("boundary_utc")
            sums = lows.agg(pl.col("expected_low").sum(), pl.col("tail_hours_caused_after").sum())
            held = (sums["tail_hours_caused_after"] >= sums["expected_low"]).sum()
            name = f"below {above:g}" if above < float("inf") else f"{below:g} and more"
            texts += [f"{sums.height}", f"{held / sums.height:.0%}" if sums.height else ""]
            lines.append(f"| {kind} | {name} | " + " | ".join(texts) + " |")
    return [*lines, ""]


def backtest(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The rows of marts.candidate_backtest_summary, losses included."""
    lines = [
        "| kind | drives replaced | beside | boundaries | picks | tail hours | model avoids | other avoids | gain | 95% interval | verdict |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for row in fetch(connection, "select * from marts.candidate_backtest_summary order by kind, top_ratio, rule"):
        lines.append(
            f"| {row['kind']} | {100 * row['top_ratio']:g}% | {row['rule']} | {row['boundary_count']} | {row['pick_count']:,} | {row['tail_hours_caused']:,} |"
            f" {row['model_tail_hours_avoided']:,.0f} | {row['tail_hours_avoided']:,.0f} | {row['gain_tail_hours']:+,.0f} |"
            f" {row['gain_low']:+,.0f} to {row['gain_high']:+,.0f} | {row['verdict']} |"
        )
    return [*lines, ""]


def after_verdicts(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The rows of marts.candidate_verdict_backtest: whether a verdict could have been signed."""
    lines = [
        "| verdict | by | kind | drives | times said | caused in 28 days before | after | a replacement costs | caused more than it costs |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    rows = fetch(
        connection, "select * from marts.candidate_verdict_backtest order by verdict = 'replace' desc, verdict, replace_rule, kind"
    )
    for row in rows:
        mean = {name: row[name] / row["verdict_count"] for name in ("tail_hours_before", "tail_hours_after", "cost_tail_hours")}
        lines.append(
            f"| {row['verdict']} | {row['replace_rule'] if row['replace_rule'] != 'none' else ''} | {row['kind']} | {row['drive_count']:,} |"
            f" {row['verdict_count']:,} | {mean['tail_hours_before']:.1f} | {mean['tail_hours_after']:.1f} | {mean['cost_tail_hours']:.1f} |"
            f" {row['paid_ratio']:.0%} |"
        )
    return ["After each verdict, tail hours a drive:", "", *lines, ""]


def covered(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """How often the one drive stayed within its interval: marts.candidate_calibration."""
    rows = fetch(connection, "select * from marts.candidate_calibration where interval_count > 0 order by kind, band")
    words = [f"{row['kind']} {row['band']}: {row['covered_ratio']:.0%} of {row['interval_count']:,}" for row in rows]
    return [
        f"Within the {rows[0]['promised_ratio']:.0%} interval of the one drive: {'; '.join(words)}." if words else "No interval yet.",
        "",
    ]


def measured(scenario: Scenario, bundle: Path, warehouse: Warehouse) -> list[str]:
    """The section of a fleet. A warehouse that is built already is read as it is."""
    if not warehouse.published.exists():
        measure(DRIVETAIL, "ingest", "bundle", bundle, "--warehouse", warehouse.root)
        measure(DRIVETAIL, "build", "--warehouse", warehouse.root)
    options = " ".join(f"--{name} {value}" for name, value in scenario.options.items())
    lines = [f"`drivetail simulate {options}{' --parameters FILE' if scenario.parameters else ''}`, `ingest bundle`, `build`."]
    lines += ["", scenario.words, "", "```json", json.dumps(scenario.parameters), "```"] if scenario.parameters else []
    with open_published(warehouse) as connection:
        rows = panel(connection)
        lines += ["", *after_verdicts(connection), *backtest(connection), *beside_glm(rows, VARIABLES["candidate_top_ratios"])]
        lines += [*calibration(rows, VARIABLES["candidate_band_edges"]), *covered(connection)]
    return lines


def enter(name: str, lines: list[str]) -> None:
    """Write a fleet's section into the page, in the place of its last measurement."""
    old = RESULTS.read_text(encoding="utf-8").split("\n## ")[1:] if RESULTS.exists() else []
    sections = {each.title: section for section in old for each in SCENARIOS.values() if section.startswith(each.title)}
    title = SCENARIOS[name].title
    begun = f"`python -m {__spec__.name} --only {name}`, commit {current_commit()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    sections[title] = "\n".join([title, "", begun, *lines])
    head = """# What following `drivetail candidates` would have saved

At each week boundary the first drives of a ranking count as replaced; what they caused in the 28 days after counts as avoided ([docs/candidates.md](../candidates.md)). Tail hours of overlapping 28 days are added up, so an hour
counts for up to four boundaries. Intervals are bootstraps over RAID groups; `gains` and `loses` have one whole on one side. Simulated fleets say how they were simulated, not how drives behave. What the numbers taught is in
[decision 0011](../decisions/0011-candidates.md).
"""
    text = "".join(f"\n## {sections[each.title].rstrip()}\n" for each in SCENARIOS.values() if each.title in sections)
    RESULTS.write_text(head + text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SCENARIOS, help="one fleet")
    parser.add_argument("--work", type=Path, help="folder to keep the fleets in; what lies there is used again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="drivetail-candidates-") as folder:
        for name in [asked.only] if asked.only else SCENARIOS:
            work = (asked.work or Path(folder)) / name
            warehouse = Warehouse(work / "warehouse")
            if not warehouse.published.exists():
                work.mkdir(parents=True)
            bundle = work if warehouse.published.exists() else simulated(SCENARIOS[name], work)
            enter(name, measured(SCENARIOS[name], bundle, warehouse))
    print(f"Wrote {RESULTS}")


if __name__ == "__main__":
    main()

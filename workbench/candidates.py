"""What following `drivetail candidates` would have saved: on simulated fleets, two of them with hazards that break the model, beside a library's GLM.

    python -m workbench.candidates                 (an hour on 2 cores, most of it the large fleet; writes docs/results/candidates.md and candidates_*.csv)
    python -m workbench.candidates --only bursty   (one fleet; the others' rows stay)

The GLM is scikit-learn's Poisson regression (log link, ridge) on the same classes and the own rate, by kind, fitted at each week boundary on
the outcomes that the models had for it. Numbers that the models give are read from the marts.
"""

from __future__ import annotations

import argparse
import csv
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

from engine.read import fetch, open_published
from engine.thresholds import variables
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
TABLES = ("verdicts", "backtest", "glm", "calibration", "forecasts")
"""Each has a file beside the page: docs/results/candidates_TABLE.csv."""
Row = dict[str, Any]
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
    "large": Scenario("300 RAID groups, 35 weeks", {"disk-groups": 200, "ssd-groups": 100, "days": 245, "seed": 29}),
    "small": Scenario("90 RAID groups, 26 weeks", SMALL),
    "seed12": Scenario("as small, another seed", {**SMALL, "seed": 12}),
    "seed13": Scenario("as small, another seed", {**SMALL, "seed": 13}),
    "bursty": Scenario(
        "hazards that break the model, bursty neighbours",
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
        "hazards that break the model, a firmware step",
        SMALL,
        "The small fleet for 15 weeks, then the same drives with other hazards. Those that ailed are well, every disk falls slow seven times as often, and SSDs of the two quiet families are the bad ones.",
        {
            "disk.episode_rate_per_drive_year": 12.0,
            "disk.ailing_share": 0.0,
            "ssd.family_hazards": [39.0, 39.0, 0.9, 0.9],
            "ssd.ailing_share": 0.0,
        },
        step_days=105,
    ),
}
IN_FILES_ONLY = ("seed12", "seed13", "bursty", "step")
"""Fleets whose rows the page leaves to the CSV files."""


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
    """Every prediction, from the build database: what was known (classes, own rate), what the models expected, what came where it is known."""
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


def beside_glm(rows: pl.DataFrame, ratios: list[float]) -> list[Row]:
    """A row per kind, share of drives and penalty: tail hours avoided by either ranking, with a bootstrap over RAID groups."""
    found: list[Row] = []
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
                found.append(
                    {
                        "kind": kind,
                        "top_ratio": ratio,
                        "ridge": ridge,
                        "model_tail_hours_avoided": saved["expected_tail_hours"].sum(),
                        "glm_tail_hours_avoided": saved["glm"].sum(),
                        "gain_tail_hours": gain.sum(),
                        "gain_low": round(low),
                        "gain_high": round(high),
                    }
                )
    return found


def calibration(rows: pl.DataFrame, edges: list[float], covered: dict[tuple[str, str], Row]) -> list[Row]:
    """What came over what was expected, by how much was expected; how often the low ends of a boundary and the interval of one drive held."""
    judged = {ridge: with_glm(rows, ridge) for ridge in RIDGES}
    found: list[Row] = []
    for (kind,), of_kind in judged[RIDGES[0]].group_by("kind", maintain_order=True):
        for below, above in zip([0.0, *edges], [*edges, float("inf")], strict=True):
            band = of_kind.filter(pl.col("expected_tail_hours").is_between(below, above, closed="left"))
            name = f"below {above:g}" if above < float("inf") else f"{below:g} and more"
            row = {
                "kind": kind,
                "band": name,
                "expected": round(band["expected_tail_hours"].sum()),
                "came": band["tail_hours_caused_after"].sum(),
            }
            for ridge in RIDGES:
                its = judged[ridge].filter(pl.col("kind") == kind, pl.col("glm").is_between(below, above, closed="left"))
                row |= {f"glm_{ridge:g}_expected": round(its["glm"].sum()), f"glm_{ridge:g}_came": its["tail_hours_caused_after"].sum()}
            lows = band.filter(pl.col("expected_low").is_not_null()).group_by("boundary_utc")
            sums = lows.agg(pl.col("expected_low").sum(), pl.col("tail_hours_caused_after").sum())
            held = (sums["tail_hours_caused_after"] >= sums["expected_low"]).sum()
            row |= {"boundaries": sums.height, "low_end_held_ratio": round(held / sums.height, 2) if sums.height else None}
            its_interval = covered.get((str(kind), name), {})
            covered_ratio = its_interval.get("covered_ratio")
            row |= {"intervals": its_interval.get("interval_count", 0), "covered_ratio": round(covered_ratio, 2) if covered_ratio else None}
            found.append(row)
    return found


def backtest(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """The rows of report.candidate_backtest_summary, losses included."""
    return fetch(
        connection,
        "select kind, top_ratio, rule, boundary_count, pick_count, tail_hours_caused, round(model_tail_hours_avoided) as model_tail_hours_avoided,"
        " round(tail_hours_avoided) as tail_hours_avoided, round(gain_tail_hours) as gain_tail_hours, round(gain_low) as gain_low,"
        " round(gain_high) as gain_high, verdict from report.candidate_backtest_summary order by kind, top_ratio, rule",
    )


def after_verdicts(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """The rows of report.candidate_verdict_backtest, tail hours a drive: whether a verdict could have been signed."""
    means = ", ".join(
        f"round({name} / verdict_count, 1) as {name}" for name in ("tail_hours_before", "tail_hours_after", "cost_tail_hours")
    )
    return fetch(
        connection,
        f"select verdict, replace_rule, kind, drive_count, verdict_count, {means}, round(paid_ratio, 2) as paid_ratio"
        " from report.candidate_verdict_backtest order by verdict = 'replace' desc, verdict, replace_rule, kind",
    )


def forecasts(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """The rows of report.candidate_forecasts."""
    return fetch(
        connection,
        "select kind, horizon_days, rule, boundary_count, forecast_count, slow_count, round(brier_score, 5) as brier_score,"
        " round(skill_ratio, 3) as skill_ratio, round(gain, 5) as gain, round(gain_low, 5) as gain_low, round(gain_high, 5) as gain_high,"
        " verdict from report.candidate_forecasts order by kind, horizon_days, rule",
    )


def measured(scenario: Scenario, bundle: Path, warehouse: Warehouse) -> dict[str, list[Row]]:
    """The rows of a fleet, by table. A warehouse that is built already is read as it is."""
    if not warehouse.published.exists():
        measure(DRIVETAIL, "ingest", "bundle", bundle, "--warehouse", warehouse.root)
        measure(DRIVETAIL, "build", "--warehouse", warehouse.root)
    with duckdb.connect(str(warehouse.build_database), read_only=True) as connection:
        rows = panel(connection)
    with open_published(warehouse) as connection:
        intervals = fetch(connection, "select * from report.candidate_calibration where interval_count > 0")
        covered = {(row["kind"], row["band"]): row for row in intervals}
        return {
            "verdicts": after_verdicts(connection),
            "backtest": backtest(connection),
            "glm": beside_glm(rows, VARIABLES["candidate_top_ratios"]),
            "calibration": calibration(rows, VARIABLES["candidate_band_edges"], covered),
            "forecasts": forecasts(connection),
        }


def csv_file(table: str) -> Path:
    return RESULTS.with_name(f"candidates_{table}.csv")


def read(table: str) -> list[dict[str, str]]:
    """All rows of a table's CSV file, as text."""
    path = csv_file(table)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def enter(name: str, tables: dict[str, list[Row]]) -> None:
    """Put a fleet's rows into the CSV files, in the place of its last measurement, and write the page again."""
    key = {"fleet": name, "commit": current_commit(), "measured_utc": f"{datetime.now(UTC):%Y-%m-%d %H:%M}"}
    for table, rows in tables.items():
        kept = [row for row in read(table) if row["fleet"] != name] if csv_file(table).exists() else []
        lines: list[Row] = sorted([*kept, *({**key, **row} for row in rows)], key=lambda row: list(SCENARIOS).index(row["fleet"]))
        with csv_file(table).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    RESULTS.write_text(page({table: read(table) for table in TABLES}), encoding="utf-8")


def page(tables: dict[str, list[dict[str, str]]]) -> str:
    """docs/results/candidates.md: what the tables say, shortly."""
    glm = [(float(row["gain_low"]), float(row["gain_tail_hours"]), float(row["gain_high"])) for row in tables["glm"]]
    worst = [row for row in tables["calibration"] if row["band"].endswith("and more")]
    expected, came = (sum(float(row[name]) for row in worst) for name in ("expected", "came"))
    random = [row for row in tables["backtest"] if row["rule"] == "random"]
    lines = [
        "# What following `drivetail candidates` would have saved",
        "",
        "Measured on simulated fleets: they show how they were simulated, not how drives behave.",
        "[Candidates](../candidates.md) defines the numbers, [decision 0011](../decisions/0011-candidates.md) says what they taught.",
        "",
        "At each week boundary the first drives of a ranking count as replaced. What they caused in the 28 days after counts as avoided.",
        "Overlapping 28 days are added up, so an hour counts for up to four boundaries. Intervals are 95% bootstraps over RAID groups.",
        "",
        "| fleet | drivetail simulate | commit, UTC |",
        "|---|---|---|",
    ]
    for name, scenario in SCENARIOS.items():
        runs = dict.fromkeys(f"{row['commit']}, {row['measured_utc']}" for table in TABLES for row in tables[table] if row["fleet"] == name)
        options = "`" + " ".join(f"--{option} {value}" for option, value in scenario.options.items()) + "`"
        lines.append(
            f"| {name}: {scenario.title} | {'as small, `--parameters FILE`' if scenario.parameters else options} | {'; '.join(runs)} |"
        )
    lines += ["", "`python -m workbench.candidates`, or `--only FLEET`; FILE holds `SCENARIOS` of `workbench/candidates.py`."]
    lines += [f"- {name}: {scenario.words}" for name, scenario in SCENARIOS.items() if scenario.words]
    lines += ["", "Sums are over all six fleets. The tables show large and small; each CSV file has all six."]
    lines += [
        "",
        "## After each verdict `replace`",
        "",
        "Tail hours per drive in the 28 days before and after, beside what a replacement costs. `paid` is the share of verdicts",
        "after which the drive caused more than that. All verdicts, six fleets: [candidates_verdicts.csv](candidates_verdicts.csv).",
        "",
        "| fleet | by | kind | times | before | after | cost | paid |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in tables["verdicts"]:
        if row["verdict"] == "replace" and row["fleet"] not in IN_FILES_ONLY:
            numbers = " | ".join(row[name] for name in ("verdict_count", "tail_hours_before", "tail_hours_after", "cost_tail_hours"))
            lines.append(f"| {row['fleet']} | {row['replace_rule']} | {row['kind']} | {numbers} | {float(row['paid_ratio']):.0%} |")
    lines += [
        "",
        "## The model beside simpler rankings",
        "",
        "Tail hours avoided when 1% of the drives are replaced. `gains`, `loses`: the model does, with the whole interval on one side; else it is open.",
        "Intervals, 0.2% and 5%, six fleets: [candidates_backtest.csv](candidates_backtest.csv).",
        f"Beside random picks the model gains in {sum(row['verdict'] == 'gains' for row in random)} of {len(random)} comparisons.",
        "",
        "| fleet | kind | model avoids | most slow hours in 28 days | slowest now |",
        "|---|---|--:|--:|--:|",
    ]
    at_one_percent: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in tables["backtest"]:
        if float(row["top_ratio"]) == 0.01 and row["fleet"] not in IN_FILES_ONLY:
            at_one_percent.setdefault((row["fleet"], row["kind"]), {})[row["rule"]] = row
    for (fleet, kind), of in at_one_percent.items():
        others = " | ".join(
            f"{float(of[rule]['tail_hours_avoided']):,.0f}{'' if of[rule]['verdict'] == 'open' else ', ' + of[rule]['verdict']}"
            for rule in ("most_slow_hours_28d", "slowest_now")
        )
        lines.append(f"| {fleet} | {kind} | {float(of['random']['model_tail_hours_avoided']):,.0f} | {others} |")
    lines += [
        "",
        "## The model beside a regression",
        "",
        "scikit-learn's Poisson regression (log link, ridge penalty 0.001 or 0.1) on the same classes and the own rate, fitted at each boundary.",
        f"Of {len(glm)} comparisons the model avoids more in {sum(gain > 0 for _, gain, _ in glm)}"
        f" ({sum(low > 0 for low, _, _ in glm)} beyond chance) and less in {sum(gain < 0 for _, gain, _ in glm)}"
        f" ({sum(high < 0 for _, _, high in glm)} beyond chance): [candidates_glm.csv](candidates_glm.csv).",
        "",
        "## Expected and what came",
        "",
        "By band of the expectation, with the regression's and the coverage of the intervals: [candidates_calibration.csv](candidates_calibration.csv).",
        "",
        f"Of drives expected to cause 8 or more tail hours, {came:,.0f} came where {expected:,.0f} were expected.",
    ]
    lines += [
        "",
        "## The next slow interval, foretold",
        "",
        "Share of the base rate's Brier score that a rule saves, when a slow interval within 1, 7 and 28 days is foretold at each week boundary:",
        "by slow hours in 28 days / by whether the drive was slow in 28 days / by the model's expectation. + and -: better and worse than the second,",
        "beyond chance. n: forecasts for 7 days, and how many came true. All rules, six fleets: [candidates_forecasts.csv](candidates_forecasts.csv).",
        "",
        "| fleet | kind | n | 1 day | 7 days | 28 days |",
        "|---|---|--:|---|---|---|",
    ]
    marks = {"gains": "+", "loses": "-"}
    foretold = {(row["fleet"], row["kind"], row["horizon_days"], row["rule"]): row for row in tables["forecasts"]}
    for fleet, kind in dict.fromkeys((row["fleet"], row["kind"]) for row in tables["forecasts"] if row["fleet"] not in IN_FILES_ONLY):
        saved = []
        for days in VARIABLES["forecast_horizon_days"]:
            of_rules = [foretold[fleet, kind, str(days), rule] for rule in ("most_slow_hours_28d", "slow_28d", "model")]
            saved.append(" / ".join(f"{float(row['skill_ratio']):.0%}{marks.get(row['verdict'], '')}" for row in of_rules))
        week = foretold[fleet, kind, "7", "model"]
        lines.append(f"| {fleet} | {kind} | {int(week['forecast_count']):,}, {week['slow_count']} | {' | '.join(saved)} |")
    return "\n".join(lines) + "\n"


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

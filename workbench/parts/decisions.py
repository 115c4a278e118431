"""Value of following the list of actions, on fleets with planted drives that are delivered week by week.

Groups of each fleet get one story each (`STORIES`); the others are as simulated. No build knows later data. The future judges: an hour in which a RAID group
waits for slow drives is avoided when all of them were replaced. Rules and measures were chosen on other seeds than `SEEDS`: 1 to 4, 11 to 18, 101 to 404.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from engine.build import build
from engine.read import fetch, open_published
from engine.thresholds import variables
from engine.warehouse import Warehouse
from ingest import ingest
from simulate.benchmark import (
    FIRST,
    LABELS,
    ONSET_DAYS,
    SEEDS,
    STORIES,
    SWAP_TAIL_HOURS,
    THIN_HOURS,
    WEEKS,
    Planted,
    describe,
    make_fleet,
    score,
)
from workbench.commit import ROOT
from workbench.parts import Bound, Section, Setting

FIRST_WEEK, LAST_JUDGED_WEEK = 3, WEEKS - 4
"""The first delivery ends with this week; verdicts up to the other have 28 days after them."""
TABLE = ROOT / "docs" / "results" / "decisions.csv"
Row = dict[str, Any]


FLOORS = (0, 10, 100, 1_000, 10_000)
SHARES = (0.0, 0.002, 0.02, 0.04, 0.1, 0.3)
"""I/Os an hour, and shares of the median I/Os, from which an hour may be evidence: what each would find."""


@dataclass(frozen=True)
class Verdict:
    """An entry of the list, as it was published."""

    seed: int
    day: int
    drive_id: str
    verdict: str


def delivered(folder: Path, warehouse: Warehouse, seed: int, days: Iterable[int]) -> list[Verdict]:
    """Ingest and build up to each of `days`; the list of actions after each."""
    found: list[Verdict] = []
    before = 0
    for day in days:
        since, until = (FIRST + timedelta(days=at) for at in (before, day))
        part = folder / f"delivery-{day:03}"
        part.mkdir()
        for at in range(before, day):
            name = f"drive_hours-{FIRST + timedelta(days=at):%Y-%m-%d}.parquet"
            (folder / name).rename(part / name)
        for name, column in (("drives", "valid_from"), ("drive_events", "occurred_at")):
            moment = pl.col(column).fill_null(FIRST)
            rows = pl.read_parquet(folder / f"{name}.parquet")
            rows.filter((moment < until) & ((moment >= since) | (before == 0))).write_parquet(part / f"{name}.parquet")
        ingest("bundle", [part], warehouse.root)
        build(warehouse)
        with open_published(warehouse) as connection:
            listed = fetch(connection, "select drive_id, verdict from marts.replacement_candidates")
        found += [Verdict(seed, day, row["drive_id"], row["verdict"]) for row in listed]
        before = day
    return found


def raised_by(connection: duckdb.DuckDBPyConnection, floor: int, share: float) -> set[str]:
    """Drives with three slow hours within a day, of hours with at least `floor` I/Os and `share` of the median of their RAID group."""
    found = connection.execute(
        "with slow as (select drive_id, hour_utc, lead(hour_utc, 2) over (partition by drive_id order by hour_utc) as third_utc"
        " from marts.fct_drive_hours where is_slow and io_count >= $1 and coalesce(rate_imbalance >= $2, true))"
        " select distinct drive_id from slow where third_utc < hour_utc + interval 24 hour",
        [floor, share],
    ).fetchall()
    return {drive for (drive,) in found}


def spell_hours(bundle: Path) -> pl.DataFrame:
    """drive_id, hour_utc: hours in which the simulator slowed the drive down for a spell, as it does now and then with healthy drives, too."""
    spells = pl.read_parquet(bundle / "truth" / "truth_episodes.parquet")
    hours = pl.datetime_ranges(pl.col("started_at").dt.truncate("1h"), "ended_at", "1h").alias("hour_utc")
    return spells.select("drive_id", hours).explode("hour_utc").with_columns(pl.col("hour_utc").cast(pl.Datetime("us"))).unique()


class Future:
    """A fleet as it was, hour by hour: the slow drives of each RAID group's hour, and what following a rule on a Monday avoids."""

    def __init__(self, warehouse: Warehouse, planted: list[Planted], bundle: Path) -> None:
        with open_published(warehouse) as connection:
            idle = [drive.drive_id for drive in planted if drive.story == "idle"]
            # nobody waits for a drive that does nothing
            self.slow: pl.DataFrame = connection.sql(
                "select raid_group_id, drive_id, hour_utc, count(*) over (partition by raid_group_id, hour_utc) as slow_drives"
                " from marts.fct_drive_hours where is_slow and drive_id not in (select unnest($1))",
                params=[idle],
            ).pl()
            self.evidence = [
                (floor, share, raised_by(connection, floor, share))
                for floor in FLOORS
                for share in SHARES
                if 0 in (floor, share) or (floor, share) in ((100, 0.02), (100, 0.04))
            ]
            """Drives with three slow hours within a day, by the I/Os and the share of its peers' that an hour of evidence has."""
            self.medians = {
                week: {
                    row["drive_id"]
                    for row in fetch(
                        connection,
                        "select drive_id from marts.fct_drive_hours where hour_utc >= $until - interval 28 day and hour_utc < $until"
                        " group by drive_id having median(slowdown) >= 1.2",
                        {"until": FIRST + timedelta(weeks=week)},
                    )
                }
                for week in range(FIRST_WEEK, WEEKS + 1)
            }
            all_drives = {row["drive_id"] for row in fetch(connection, "select distinct drive_id from marts.fct_drive_hours")}
            alerts = fetch(
                connection,
                "select subject_id as drive_id, raised_at, part_of, first_slow_hour_utc, last_slow_hour_utc from marts.fct_slow_alerts"
                " where subject_type = 'drive' order by raised_at desc",
            )
            self.flagged = fetch(
                connection,
                "select detector, drive_id, list(distinct day_utc order by day_utc) as days from ("
                "select detector, drive_id, day_utc from marts.fct_detector_verdicts where is_flagged union all "
                "select 'drivetail alerts', subject_id, cast(raised_at as date) from marts.fct_slow_alerts where subject_type = 'drive'"
                ") group by all order by all",
            )
            """The days on which each detector finds a drive slow."""
        with duckdb.connect(str(warehouse.build_database), read_only=True) as connection:  # nobody publishes what monitors say
            self.flagged += fetch(
                connection,
                "select detector, drive_id, list(day_utc order by day_utc) as days from intermediate.int_drive_days__monitored"
                " where is_flagged group by all order by all",
            )
            self.alerts = {row["drive_id"]: row["raised_at"] for row in alerts}
            """The first of each drive."""
        self.drive_count = len(all_drives)
        self.stories = {drive.drive_id: drive for drive in planted}
        self.ailing = set(pl.read_parquet(bundle / "truth" / "truth_drives.parquet").filter(pl.col("frailty") > 1)["drive_id"])
        self.healthy = all_drives - set(self.stories) - self.ailing
        healthy_alerts = [row for row in alerts if row["drive_id"] in self.healthy]
        shown_alerts = [row for row in healthy_alerts if row["part_of"] is None]
        slow = self.slow.join(spell_hours(bundle), on=["drive_id", "hour_utc"], how="semi")
        self.healthy_alerts, self.shown_healthy_alerts = len(healthy_alerts), len(shown_alerts)
        self.false_alerts = sum(
            slow.filter(
                pl.col("drive_id") == row["drive_id"], pl.col("hour_utc").is_between(row["first_slow_hour_utc"], row["last_slow_hour_utc"])
            ).height
            < variables()["alert_slow_hours"]
            for row in shown_alerts
        )
        """Shown alerts of healthy drives whose spells explain fewer slow hours than raise an alert."""
        thin = {drive for drive, of in self.stories.items() if of.story == "thin"}
        self.weights = dict.fromkeys(self.slow.filter(pl.col("drive_id").is_in(thin))["raid_group_id"].unique(), 24 / len(THIN_HOURS))
        self.paths = {drive for drive, of in self.stories.items() if of.story == "path"}

    def hours(self, week: int) -> list[tuple[str, frozenset[str], float]]:
        """Each RAID group and hour of the 28 days from a Monday in which drives were slow: the group, the drives, and its weight."""
        since = FIRST + timedelta(weeks=week)
        rows = self.slow.filter(pl.col("hour_utc") >= since, pl.col("hour_utc") < since + timedelta(days=28))
        by_hour = rows.group_by("raid_group_id", "hour_utc").agg("drive_id")
        return [(group, frozenset(drives), self.weights.get(group, 1.0)) for group, _, drives in by_hour.rows()]

    def shares(self, picked: set[str], week: int) -> dict[str, float]:
        """Tail hours that replacing `picked` avoids, shared among the drives of each. What a path slows no swap cures."""
        shares = dict.fromkeys(picked, 0.0)
        for _, drives, weight in self.hours(week):
            if drives <= picked and not drives & self.paths:
                for drive in drives:
                    shares[drive] += weight / len(drives)
        return shares

    def before(self, week: int, days: int) -> pl.DataFrame:
        """Slow hours of the days before a Monday."""
        until = FIRST + timedelta(weeks=week)
        return self.slow.filter(pl.col("hour_utc") < until, pl.col("hour_utc") >= until - timedelta(days=days))

    def naive(self, week: int) -> dict[str, set[str]]:
        """Picks of simple rules on a Monday."""
        month, last = self.before(week, 28), self.before(week, 7)
        alone = month.filter(pl.col("slow_drives") == 1)["drive_id"].value_counts()
        top = month["drive_id"].value_counts().sort("count", "drive_id", descending=[True, False])
        return {
            "caused more than 18": set(alone.filter(pl.col("count") > 18)["drive_id"]),
            "top 20 by tail hours": set(top.head(20)["drive_id"]),
            "3 slow hours last week": set(last["drive_id"].value_counts().filter(pl.col("count") >= 3)["drive_id"]),
            "median S of 1.2": self.medians[week],
            "nothing": set(),
        }

    def oracle(self, week: int) -> set[str]:
        """The picks with the greatest benefit: of each group the best of up to three of its six slowest drives."""
        groups: dict[str, list[tuple[frozenset[str], float]]] = {}
        for group, drives, weight in self.hours(week):
            groups.setdefault(group, []).append((drives, weight))
        best: set[str] = set()
        for hours in groups.values():
            often: dict[str, float] = {}
            for drives, weight in hours:
                for drive in drives - self.paths:
                    often[drive] = often.get(drive, 0.0) + weight
            first = sorted(often, key=lambda drive: (-often[drive], drive))[:6]
            sets = [set(some) for count in range(1, 4) for some in combinations(first, count)]
            worth = [(sum(weight for drives, weight in hours if drives <= some) - SWAP_TAIL_HOURS * len(some), some) for some in sets]
            best |= max(worth, key=lambda each: each[0], default=(0.0, set()))[1] if worth and max(w for w, _ in worth) > 0 else set()
        return best


def judged(seed: int, future: Future, verdicts: list[Verdict]) -> list[Row]:
    """A row for each Monday and rule: its picks, those that paid, and the net benefit in tail hours."""
    rows: list[Row] = []
    for week in range(FIRST_WEEK + 1, LAST_JUDGED_WEEK + 1):
        said = {entry.drive_id for entry in verdicts if entry.day == 7 * week and entry.verdict == "replace"}
        for rule, picked in {"`replace`": said, **future.naive(week), "oracle": future.oracle(week)}.items():
            shares = future.shares(picked, week)
            pays = {drive for drive, of in future.stories.items() if STORIES[of.story].pays}
            unpaid = {drive for drive, share in shares.items() if share <= SWAP_TAIL_HOURS} - pays
            stories = [future.stories[drive].story if drive in future.stories else "natural" for drive in picked]
            rows.append(
                {
                    "seed": seed,
                    "week": week,
                    "rule": rule,
                    "picked": len(picked),
                    "paid": sum(share > SWAP_TAIL_HOURS for share in shares.values()),
                    "net_tail_hours": round(sum(shares.values()) - SWAP_TAIL_HOURS * len(picked), 1),
                    "one_off": stories.count("one-off"),
                    "path": stories.count("path"),
                    "ailing": len(unpaid & future.ailing),
                    "well": len(unpaid - future.ailing - set(future.stories)),
                    "false": len(unpaid - future.ailing),
                    "drives": future.drive_count,
                }
            )
    return rows


def middle_of(values: list[float]) -> str:
    """Least, median and greatest."""
    return "-".join(f"{value:.0f}" for value in (min(values), statistics.median(values), max(values))) if values else "never"


def story_lines(futures: dict[int, Future], verdicts: list[Verdict]) -> list[str]:
    """A line of the table for each story: what became of its drives."""
    weeks = (5, 6, 7, 8, 10, 12)
    lines = [
        "Verdicts are counted replace / check path / watch / leave or none.",
        "",
        f"| planted | | drives | alerted | hours to alert | {' | '.join(f'week {week}' for week in weeks)} | days to `replace` |",
        f"|---|---|--:|--:|--:|{'---|' * len(weeks)}--:|",
    ]
    said = {(entry.seed, entry.day, entry.drive_id): entry.verdict for entry in verdicts}
    for name, story in STORIES.items():
        drives = [(seed, drive) for seed, future in futures.items() for drive in future.stories.values() if drive.story == name]
        waits = [
            (raised - FIRST).total_seconds() / 3600 - drive.onset
            for seed, drive in drives
            if (raised := futures[seed].alerts.get(drive.drive_id)) is not None
        ]
        cells = []
        for week in weeks:
            these = [said.get((seed, 7 * week, drive.drive_id), "none") for seed, drive in drives]
            counts = [these.count(verdict) for verdict in ("replace", "check path", "watch")]
            cells.append("/".join(map(str, [*counts, len(these) - sum(counts)])))
        first = [
            min(days) - drive.onset / 24
            for seed, drive in drives
            if (
                days := [
                    entry.day for entry in verdicts if (entry.seed, entry.drive_id, entry.verdict) == (seed, drive.drive_id, "replace")
                ]
            )
        ]
        lines.append(
            f"| {name} | {story.words} | {len(drives)} | {len(waits)} | {middle_of(waits)} | {' | '.join(cells)} | {middle_of(first)} |"
        )
    return lines


def evidence_lines(futures: dict[int, Future]) -> list[str]:
    """A line for each rule of evidence: the planted drives that would raise an alert."""
    lines = [
        "",
        "Drives with three slow hours within a day, where an hour needs at least these I/Os, and this share of the median I/Os of its group:",
        "",
    ]
    lines += ["| I/Os | share | idle and healthy | light and slow | others of a story that pays |", "|--:|--:|--:|--:|--:|"]
    for number, (floor, share, _) in enumerate(next(iter(futures.values())).evidence):
        cells = []
        for names in (("idle",), ("light",), [name for name, story in STORIES.items() if story.pays and not story.loads]):
            drives = [(seed, drive) for seed, future in futures.items() for drive, of in future.stories.items() if of.story in names]
            cells.append(f"{sum(drive in futures[seed].evidence[number][2] for seed, drive in drives)} of {len(drives)}")
        lines.append(f"| {floor:,} | {share:g} | {' | '.join(cells)} |")
    return lines


def detectors_section(out: Path, futures: dict[int, Future], weeks: int) -> Section:
    """Planted drives that each detector and the alerts found, and how soon; healthy drives that they flagged."""
    found = [
        {"fleet": f"fleet-{seed}", "tool": row["detector"], "drive_id": row["drive_id"], "found_at": day + timedelta(days=1)}
        for seed, future in futures.items()
        for row in future.flagged
        for day in row["days"]
    ]
    pl.DataFrame(found).write_csv(out / "found.csv")
    describe(out, list(futures), weeks)
    lines = [
        f"The same {len(futures)} fleets, scored as [any tool can be](../benchmark.md). A detector finds a drive at the end of the day; so are alerts counted.",
        "",
        "| detector | slow drives found | hours to the first, least-median-greatest | false, per 1,000 healthy drives and week | net tail hours |",
        "|---|--:|--:|--:|--:|",
    ]
    for row in score(out, out / "found.csv"):
        waits = (
            "never"
            if row["median_hours"] is None
            else "-".join(f"{row[name]:.0f}" for name in ("least_hours", "median_hours", "greatest_hours"))
        )
        lines.append(
            f"| {row['tool']} | {row['found_count']} of {row['slow_count']} | {waits} | {row['false_per_1000']:.1f} | {row['net_tail_hours']:,.0f} |"
        )
    return Section("Detectors on the fleets of decisions", lines)


def flips(futures: dict[int, Future], verdicts: list[Verdict]) -> int:
    """How often `replace` was withdrawn on a Monday from a drive that went on: slow in the last two days, and as often as in the week before."""
    said = {(entry.seed, entry.day, entry.drive_id): entry.verdict for entry in verdicts}
    count = 0
    for seed, day, drive in (key for key, verdict in said.items() if verdict == "replace" and key[1] % 7 == 0 and key[1] < 7 * WEEKS):
        if said.get((seed, day + 7, drive), "none") != "replace":
            of = futures[seed].slow.filter(pl.col("drive_id") == drive)["hour_utc"]
            before, last, now = (
                of.is_between(FIRST + timedelta(days=day + since), FIRST + timedelta(days=day + until), closed="left").sum()
                for since, until in ((-7, 0), (0, 7), (5, 7))
            )
            count += now > 0 and last >= before
    return count


def bench_decisions(setting: Setting) -> list[Section]:
    """Whether a person can sign the list."""
    seeds, weeks = (SEEDS[:1], FIRST_WEEK + 2) if setting.small else (SEEDS, WEEKS)
    out = setting.work / "decisions"
    futures: dict[int, Future] = {}
    verdicts: list[Verdict] = []
    rows: list[Row] = []
    for seed in seeds:
        bundle = out / f"fleet-{seed}"
        planted = make_fleet(bundle, seed)
        warehouse = Warehouse(out / f"warehouse-{seed}")
        # Thursdays too while drives begin: a list may say `replace` before Monday
        days = sorted({*range(7 * FIRST_WEEK, 7 * weeks + 1, 7), *range(7 * FIRST_WEEK + 3, 7 * min(weeks, 7), 7)})
        # monitors are computed where drives have labels
        ingest("labels", [bundle / LABELS], warehouse.root)
        verdicts += delivered(bundle, warehouse, seed, days)
        futures[seed] = Future(warehouse, planted, bundle)
        rows += judged(seed, futures[seed], [entry for entry in verdicts if entry.seed == seed]) if weeks == WEEKS else []
    return [section(futures, verdicts, rows), detectors_section(out, futures, weeks)]


def section(futures: dict[int, Future], verdicts: list[Verdict], rows: list[Row]) -> Section:
    """The tables, and the targets as bounds."""
    mine = [row for row in rows if row["rule"] == "`replace`"]
    naive = [row for row in rows if row["rule"] not in ("`replace`", "oracle")]
    behind = [
        row for row in mine
        if row["net_tail_hours"] < max(other["net_tail_hours"] for other in naive if (other["seed"], other["week"]) == (row["seed"], row["week"]))
    ]  # fmt: skip
    # the first Monday on which every story has begun knows days of some; from the second on each has a week. Who ails by nature begins at any time
    settled = {seed: max(drive.onset for drive in future.stories.values()) // (7 * 24) + 2 for seed, future in futures.items()}
    late = [row for row in behind if row["week"] >= settled[row["seed"]]]
    early_count = sum(row["week"] < settled[row["seed"]] for row in mine)
    drive_weeks = sum(row["drives"] for row in mine)
    lines = [
        f"{len(futures)} fleets of {min(f.drive_count for f in futures.values())} to {max(f.drive_count for f in futures.values())} drives (seeds"
        f" {', '.join(map(str, futures))}), {WEEKS} weeks, delivered week by week. A swap counts as {SWAP_TAIL_HOURS:g} tail hours.",
        "",
        *story_lines(futures, verdicts),
        *evidence_lines(futures),
        "",
        f"Following each rule on the Mondays of weeks {FIRST_WEEK + 1} to {LAST_JUDGED_WEEK}, by what the 28 days after brought"
        f" ([each Monday]({TABLE.name})). Paid: the drive's share of the hours avoided exceeds the swap.",
        "",
        "| rule | picked | paid | net benefit (tail hours) | one-off | path | ailing by nature, not paid | well, not paid |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for rule in dict.fromkeys(row["rule"] for row in rows):
        of = {
            name: sum(row[name] for row in rows if row["rule"] == rule)
            for name in ("picked", "paid", "net_tail_hours", "one_off", "path", "ailing", "well")
        }
        share = f"{of['paid']} ({of['paid'] / of['picked']:.0%})" if of["picked"] else "0"
        lines.append(
            f"| {rule} | {of['picked']} | {share} | {of['net_tail_hours']:,.0f} | {of['one_off']} | {of['path']} |"
            f" {of['ailing']} | {of['well']} |"
        )
    weeks = {week: [row for row in mine if row["week"] == week] for week in sorted({row["week"] for row in mine})}
    ahead = ", ".join(f"{sum(row in behind for row in of)}/{len(of)} in week {week}" for week, of in weeks.items())
    healthy_weeks = sum(len(future.healthy) * WEEKS for future in futures.values()) / 1000
    raised = sum(future.healthy_alerts for future in futures.values()) / healthy_weeks
    shown = sum(future.shown_healthy_alerts for future in futures.values()) / healthy_weeks
    false = sum(future.false_alerts for future in futures.values()) / healthy_weeks
    lines += [
        "",
        f"Healthy drives, without a story and not ailing by nature, raise {raised:.1f} alerts per 1,000 of them and week, {shown:.1f} of which"
        " stand alone; the others are part of an incident or of the drive's other alert. The simulator gives such drives a spell of slowness now and then, as"
        f" drives in the field have them. {false:.1f} are false: spells of the drive explain fewer slow hours than raise an alert.",
        "",
        f"A naive rule is ahead of `replace` on {len(behind) - len(late)} of the {early_count} Mondays before the second after a fleet's last onset, and on"
        f" {len(late)} of the {len(mine) - early_count} from it on: {ahead}. Drives become slow until day {ONSET_DAYS[1]}; one that has been slow for less than"
        " three days may be over a bad spell. An ailing drive has a bad week now and then, and may be quiet in the four after.",
    ]
    bounds = [
        Bound(
            "Mondays, from the second after the last onset on, at which a naive rule has more net benefit than `replace`",
            len(late),
            0,
            "Mondays",
        ),
        Bound("one-off or path drives among `replace`", sum(row["one_off"] + row["path"] for row in mine), 0, "drives"),
        Bound(
            "`replace` of drives that are well, per 1,000 drives and week",
            1000 * sum(row["false"] for row in mine) / max(drive_weeks, 1),
            0.2,
            "drives",
        ),
        Bound("`replace` withdrawn without less evidence", flips(futures, verdicts), 0, "times"),
        Bound("false alerts of healthy drives that people are shown, per 1,000 of them and week", false, 1, "alerts"),
        Bound("alerts of healthy drives that people are shown, true ones included, per 1,000 of them and week", shown, 4, "alerts"),
    ]
    if rows:
        pl.DataFrame(rows).write_csv(TABLE)
    return Section("Decisions about drives", lines, bounds)

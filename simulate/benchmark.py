"""A labelled benchmark for detectors of slow drives: fleets in which some drives live a story, and a scorer of any tool's CSV.

`write_benchmark()` writes the fleets with their labels, `score()` compares with them when a tool found which drive. docs/benchmark.md.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from simulate.fleet import DEFAULT_START, TRUTH_FOLDER, SimulationError, simulate

NAME = "drivetail-benchmark-1"
"""Changes with the fleets: figures of two versions cannot be compared."""
SEEDS = (505, 606, 707, 808)
DISK_GROUPS, SSD_GROUPS, WEEKS = 54, 10, 12
FIRST = datetime(DEFAULT_START.year, DEFAULT_START.month, DEFAULT_START.day)
HEALED_DAY, ONSET_DAYS = 59, (17, 35)
SLOW_FACTOR = 2.0
"""From it on a RAID group waits for the drive."""
SWAP_TAIL_HOURS = 9.0
"""A swap, about as the models price it."""
THIN_HOURS = (8, 9, 10)
"""Hours of the day that a thin group reports."""
ABOUT, LABELS, HOURS = "benchmark.json", "labels.csv", "truth_slow_hours.parquet"
FOUND = ("fleet", "drive_id", "found_at")
"""Columns of a tool's CSV. `tool`, a name, parts several tools of one file."""


@dataclass(frozen=True)
class Story:
    """Slowness of `drives` of a group: in hours that `is_slow(hours since onset, length)` names, latency is `factor` times as long.

    count: groups of a fleet that live it. is_cured: a swap ends it. is_early: from the first day on. loads: its share of its peers' I/Os is
    10 to a power between these; null = theirs. is_healthy: nobody waits for it.
    """

    count: int
    words: str
    factor: float
    is_slow: Callable[[int, int], bool]
    drives: int = 1
    pays: bool = True
    is_early: bool = False
    loads: tuple[float, float] | None = None
    is_healthy: bool = False
    is_cured: bool = True


def _always(hour: int, _: int) -> bool:
    return True


def _bursts(hour: int, _: int) -> bool:
    return hour % 31 < 6


STORIES = {
    "steady": Story(5, "2.7x, all hours", 2.7, _always),
    "bursty": Story(5, "4.5x, 6 hours of 31", 4.5, _bursts),
    "rare": Story(4, "4x, 2 hours of 96", 4.0, lambda hour, _: hour % 96 < 2),
    "mild 1.75x": Story(2, "1.75x, all hours", 1.75, _always, pays=False),
    "mild 1.45x": Story(2, "1.45x from the first day", 1.45, _always, pays=False, is_early=True),
    "one-off": Story(5, "3.2x for 24 to 60 hours, once", 3.2, lambda hour, length: hour < length, pays=False),
    "healed": Story(2, f"as bursty, cured on day {HEALED_DAY}", 4.5, _bursts),
    "path": Story(3, "3x, three drives in the same 6 hours of 40", 3.0, lambda hour, _: hour % 40 < 6, 3, pays=False, is_cured=False),
    "pair": Story(2, "2.7x, all hours, two drives of a group", 2.7, _always, drives=2),
    "thin": Story(2, "2.7x, all hours, three hours of telemetry a day", 2.7, _always),
    "idle": Story(
        5, "healthy, 6x from the first day, a millionth to a fiftieth of its peers' I/Os", 6.0, _always,
        pays=False, is_early=True, loads=(-6, -1.7), is_healthy=True,
    ),
    "light": Story(4, "3x, all hours, a thirtieth to three times its peers' I/Os", 3.0, _always, loads=(-1.5, 0.5)),
}  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """A drive with a story; onset in hours since the beginning of the fleet."""

    drive_id: str
    story: str
    onset: int


def write_benchmark(
    out: Path, seeds: Sequence[int] = SEEDS, weeks: int = WEEKS, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Path]:
    """Write `out/fleet-SEED` for each seed: a bundle, its labels (a delivery of source `labels`), and its truth. Returns: these folders.

    weeks: at least six, so that every story begins. Raises: SimulationError where a folder holds something else.
    """
    for number, seed in enumerate(seeds):
        on_progress(number, len(seeds))
        make_fleet(out / f"fleet-{seed}", seed, weeks)
    describe(out, seeds, weeks)
    on_progress(len(seeds), len(seeds))
    return [out / f"fleet-{seed}" for seed in seeds]


def describe(out: Path, seeds: Sequence[int], weeks: int) -> None:
    """Write down which fleets a folder has, for score()."""
    (out / ABOUT).write_text(json.dumps({"name": NAME, "fleets": [f"fleet-{seed}" for seed in seeds], "weeks": weeks}) + "\n")


def make_fleet(folder: Path, seed: int, weeks: int = WEEKS) -> list[Planted]:
    """Write one fleet of the benchmark."""
    simulate(folder, disk_groups=DISK_GROUPS, ssd_groups=SSD_GROUPS, days=7 * weeks + 7, seed=seed)
    return _plant(folder, seed, 7 * weeks)


def _plant(folder: Path, seed: int, days: int) -> list[Planted]:
    """Edit a simulated bundle so that some of its drives live a story, and label its drives: those ailing by nature have no label."""
    files = sorted(folder.glob("drive_hours-*.parquet"))
    draw = random.Random(seed)
    there = [set(pl.read_parquet(files[at], columns=["drive_id"])["drive_id"]) for at in (ONSET_DAYS[0] - 1, days // 2, days - 1)]
    roles = pl.read_parquet(folder / "drives.parquet").filter(pl.col("role") == "data", pl.col("valid_to").is_null())
    ailing = set(pl.read_parquet(folder / "truth" / "truth_episodes.parquet")["drive_id"])
    for path in files[days:]:
        path.unlink()
    groups = {
        group: sorted(set(rows["drive_id"]) & set.intersection(*there) - ailing)
        for (group,), rows in sorted(roles.group_by("raid_group_id"))
    }
    # the widest come first: three slow drives of few would be half of their peers
    usable = sorted(
        (group for group, drives in groups.items() if len(drives) > 2), key=lambda group: (len(groups[group]) > 8, draw.random())
    )
    planted: list[Planted] = []
    thin: list[str] = []
    slow: list[dict[str, Any]] = []
    for name, story in sorted(STORIES.items(), key=lambda item: -item[1].drives):
        for _ in range(story.count):
            group = usable.pop()
            onset = 0 if story.is_early else draw.randint(*(24 * day for day in ONSET_DAYS))
            length = draw.randint(24, 60)
            until = HEALED_DAY * 24 if name == "healed" else days * 24
            hours = [hour for hour in range(onset, until) if story.is_slow(hour - onset, length)]
            thin += [group] if name == "thin" else []
            for drive in draw.sample(groups[group], story.drives):
                planted.append(Planted(drive, name, onset))
                load = 10 ** draw.uniform(*story.loads) if story.loads else 1.0
                lived = {"drive_id": drive, "raid_group_id": group, "story": name, "factor": story.factor, "load": load}
                slow += [{**lived, "hour_utc": FIRST + timedelta(hours=hour)} for hour in hours]
    lives = pl.DataFrame(slow, schema_overrides={"hour_utc": pl.Datetime("us")})
    waited = [name for name, story in STORIES.items() if story.factor >= SLOW_FACTOR and story.is_cured and not story.is_healthy]
    lives.filter(pl.col("story").is_in(waited)).select("drive_id", "raid_group_id", "hour_utc").write_parquet(folder / TRUTH_FOLDER / HOURS)
    _label(folder, planted)
    factors = lives.drop("raid_group_id", "story")
    for path in files[:days]:
        rows = pl.read_parquet(path).join(factors, on=["drive_id", "hour_utc"], how="left")
        by = pl.col("factor").fill_null(1.0)
        share = pl.col("load").fill_null(1.0)
        counts = [
            pl.when(pl.col(name) > 0).then((pl.col(name) * share).ceil()).otherwise(name).cast(pl.Int64).alias(name)
            for name in ("read_ios", "write_ios", "read_blocks", "write_blocks")
        ]
        rows = rows.with_columns(pl.col("read_latency_us") * by, pl.col("write_latency_us") * by, *counts).drop("factor", "load")
        rows.filter(~pl.col("raid_group_id").is_in(thin) | pl.col("hour_utc").dt.hour().is_in(THIN_HOURS)).write_parquet(path)
    cured = FIRST + timedelta(days=HEALED_DAY)
    replugs = [
        {"occurred_at": cured + timedelta(hours=hours), "drive_id": drive.drive_id, "event_type": event}
        for drive in planted if drive.story == "healed" for hours, event in ((0, "unplug"), (2, "replug"))
    ]  # fmt: skip
    events = pl.read_parquet(folder / "drive_events.parquet")
    pl.concat([events, pl.DataFrame(replugs, schema_overrides={"occurred_at": pl.Datetime("us")})], how="diagonal").write_parquet(
        folder / "drive_events.parquet"
    )
    return planted


def _label(folder: Path, planted: Sequence[Planted]) -> None:
    """Write the labels of a fleet: a delivery of source `labels`, with story and onset beside."""
    drives = pl.read_parquet(folder / "drives.parquet", columns=["drive_id"]).unique().sort("drive_id")
    ailing = pl.read_parquet(folder / TRUTH_FOLDER / "truth_drives.parquet").filter(pl.col("frailty") > 1)
    stories = pl.DataFrame(
        {
            "drive_id": [drive.drive_id for drive in planted],
            "verdict": ["healthy" if STORIES[drive.story].is_healthy else "slow" for drive in planted],
            "story": [drive.story for drive in planted],
            "onset_utc": [FIRST + timedelta(hours=drive.onset) for drive in planted],
        }
    )
    others = drives.join(ailing, on="drive_id", how="anti").join(stories, on="drive_id", how="anti")
    labels = pl.concat([stories, others.with_columns(pl.lit("healthy").alias("verdict"))], how="diagonal")
    labels.sort("drive_id").write_csv(folder / LABELS, datetime_format="%Y-%m-%dT%H:%M:%S")


def score(out: Path, file: Path) -> list[dict[str, Any]]:
    """Scores of the tools of a CSV (FOUND), a dict each.

    tool; found_count of slow_count slow drives, at their onset or later; false_per_1000: healthy drives found, per 1,000 of them and week;
    least_hours, median_hours, greatest_hours: from the onset to the first; net_tail_hours: tail hours that swapping each drive
    when it was first found would have saved, less SWAP_TAIL_HOURS for each. A drive without a label is left out.
    Raises: SimulationError for another version, or a file that lacks a column, or names another fleet or no time.
    """
    about = json.loads((out / ABOUT).read_text()) if (out / ABOUT).exists() else {}
    if about.get("name") != NAME:
        raise SimulationError(f"{out}: is not {NAME}; write it with `drivetail simulate --benchmark --out {out}`")
    found = _found(file, about["fleets"])
    folders = [(fleet, out / fleet) for fleet in about["fleets"]]
    labels = pl.concat([pl.read_csv(folder / LABELS, try_parse_dates=True).with_columns(fleet=pl.lit(fleet)) for fleet, folder in folders])
    hours = pl.concat([pl.read_parquet(folder / TRUTH_FOLDER / HOURS).with_columns(fleet=pl.lit(fleet)) for fleet, folder in folders])
    known = found.join(labels, on=["fleet", "drive_id"])
    slow, healthy = labels.filter(pl.col("verdict") == "slow"), labels.filter(pl.col("verdict") == "healthy")
    scores = []
    for tool in found["tool"].unique().sort():
        mine = known.filter(pl.col("tool") == tool)
        firsts = mine.group_by("fleet", "drive_id").agg(pl.col("found_at").min())
        hits = mine.filter(pl.col("verdict") == "slow", pl.col("found_at") >= pl.col("onset_utc"))
        waits = hits.group_by("fleet", "drive_id").agg((pl.col("found_at") - pl.col("onset_utc")).min().dt.total_seconds() / 3600)[
            "found_at"
        ]
        alarms = mine.filter(pl.col("verdict") == "healthy").select("fleet", "drive_id", pl.col("found_at").dt.truncate("1w")).unique()
        # an hour is saved once all drives that a group waits for in it were swapped before
        saved = (
            hours.join(firsts, on=["fleet", "drive_id"], how="left")
            .group_by("fleet", "raid_group_id", "hour_utc")
            .agg((pl.col("found_at") <= pl.col("hour_utc")).fill_null(False).all())
            .filter("found_at")
            .height
        )
        scores.append(
            {
                "tool": tool, "found_count": len(waits), "slow_count": slow.height,
                "false_per_1000": 1000 * alarms.height / (healthy.height * about["weeks"]),
                "least_hours": waits.min(), "median_hours": waits.median(), "greatest_hours": waits.max(),
                "net_tail_hours": saved - SWAP_TAIL_HOURS * firsts.height,
            }
        )  # fmt: skip
    return scores


def _found(file: Path, fleets: Sequence[str]) -> pl.DataFrame:
    """Rows of a tool's CSV. Raises: see score()."""
    try:
        found = pl.read_csv(file, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SimulationError(f"{file}: cannot be read: {error}") from error
    if missing := [name for name in FOUND if name not in found.columns]:
        raise SimulationError(f"{file}: has no column {', '.join(missing)}; give {', '.join(FOUND)}, and tool where there are several")
    times = found["found_at"].str.replace(" ", "T").str.head(19)
    times = times.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False).fill_null(times.str.head(10).str.to_datetime("%Y-%m-%d", strict=False))
    for row, (fleet, time, text) in enumerate(zip(found["fleet"], times, found["found_at"], strict=True), 2):
        if fleet not in fleets:
            raise SimulationError(f"{file}: row {row}: fleet is {fleet}; give one of {', '.join(fleets)}")
        if time is None:
            raise SimulationError(f"{file}: row {row}: found_at is {text}; give a day or a time in UTC, such as 2026-02-01 05:00:00")
    tool = found["tool"] if "tool" in found.columns else pl.repeat(file.stem, found.height, eager=True)
    return found.with_columns(times.alias("found_at"), tool.alias("tool"))

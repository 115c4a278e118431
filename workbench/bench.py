"""What a day of the paper's fleet costs, beside a hand-written kernel in the same run; what one more hour, the study and the sources cost.

    make bench            (about 25 minutes on 2 cores; writes docs/results/bench.md)

Every step is a process of its own, measured from outside (wall seconds, peak resident memory). The machine is shared, so
what counts are the ratios within one run: each repetition times scan, kernel, ingest and build one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl

from ingest import drive_hour_files, list_deliveries
from tests.proof.prometheus_fleet import prometheus, write_openmetrics
from workbench.commit import ROOT, current_commit
from workbench.parsers import bench_parsers

STUDY_DAYS = 39
MONTH_DAYS = STUDY_DAYS + 1
SERVER_DAYS = 30
DRIVETAIL = Path(sys.executable).parent / "drivetail"
RESULTS = ROOT / "docs" / "results" / "bench.md"

KERNEL = """
set preserve_insertion_order = false;
copy (
    with drive_hours as (
        select
            raid_group_id, hour_utc, drive_id,
            (coalesce(read_ios * read_latency_us, 0) + coalesce(write_ios * write_latency_us, 0)) / nullif(read_ios + write_ios, 0) as latency_us,
            read_ios + write_ios as io_count,
            (read_blocks + write_blocks) * 4096.0 / nullif(read_ios + write_ios, 0) as io_size_bytes
        from read_parquet({files})
    ),
    medians as (
        select
            raid_group_id, hour_utc, median(latency_us) as median_latency_us, median(io_count) as median_io_count,
            median(io_size_bytes) as median_io_size_bytes
        from drive_hours group by raid_group_id, hour_utc having count(latency_us) >= 3
    )
    select
        drive_id, hour_utc, raid_group_id, latency_us / median_latency_us as slowdown,
        io_count / median_io_count as rate_imbalance, io_size_bytes / median_io_size_bytes as size_imbalance
    from drive_hours inner join medians using (raid_group_id, hour_utc)
) to '{out}/drive_hours.parquet' (format parquet);
copy (
    select raid_group_id, hour_utc, tails[1] as tail_1, tails[2] as tail_2, tails[3] as tail_3
    from (
        select raid_group_id, hour_utc, max(slowdown, 3) as tails
        from read_parquet('{out}/drive_hours.parquet') group by raid_group_id, hour_utc
    )
) to '{out}/raid_hours.parquet' (format parquet);
"""
SCAN = "select count(*), sum(read_latency_us), sum(write_latency_us), sum(read_ios), sum(write_ios), max(raid_group_id), max(drive_id), max(hour_utc) from read_parquet({files})"


@dataclass
class Cost:
    """One process: wall seconds and peak resident memory (MiB)."""

    seconds: float
    peak_mib: float


def measure(*command: str | Path) -> Cost:
    """Run a process to its end. Raises: RuntimeError with its output when it fails."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            output.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))} failed: {output.read().decode()[-2000:]}")
    return Cost(seconds, usage.ru_maxrss / 1024)


def measure_sql(text: str) -> Cost:
    """Run SQL in a fresh DuckDB process with 2 threads."""
    code = "import duckdb, sys; c = duckdb.connect(); c.execute('set threads = 2'); [c.execute(q).fetchall() for q in sys.argv[1].split(';') if q.strip()]"
    return measure(sys.executable, "-c", code, text)


def folder_mib(path: Path) -> float:
    """Bytes under a folder, in MiB; hard links counted once."""
    sizes = {entry.stat().st_ino: entry.stat().st_size for entry in path.rglob("*") if entry.is_file()}
    return sum(sizes.values()) / 2**20


BUILD_PHASES = {"plan": ("plan", "models"), "models": ("models", "stored"), "publication": ("publish", "finished")}
INGEST_PHASES = {
    "read": ("hash 1", "gate 0"),
    "gate": ("gate 0", "gate 1"),
    "judge": ("gate 1", "commit 0"),
    "commit": ("commit 0", "commit 1"),
}
"""What begins a phase and what ends it, by what the log calls it, with how much was done where that is said."""


def phases(warehouse: Path, spans: dict[str, tuple[str, str]]) -> dict[str, float]:
    """Seconds of the last command's phases, from the log; of a phase that came more than once, the last."""
    lines = [json.loads(line) for line in (warehouse / "drivetail.log").read_text().splitlines()]
    at = {f"{line['phase']} {line.get('done', '')}".strip(): datetime.fromisoformat(line["at"]) for line in lines}
    return {phase: (at[end] - at[begin]).total_seconds() for phase, (begin, end) in spans.items()}


def simulate(out: Path, disk_groups: int, ssd_groups: int, days: int) -> int:
    """Make a fleet once; kept for the next run. Returns: drive-hours."""
    if not (out / "drives.parquet").exists():
        options = ["--disk-groups", disk_groups, "--ssd-groups", ssd_groups, "--days", days, "--seed", 2, "--overwrite"]
        measure(DRIVETAIL, "simulate", "--out", out, *map(str, options))
    return row_count(out.glob("drive_hours*.parquet"))


def row_count(files: Iterable[Path]) -> int:
    """Rows of Parquet files, by what the files say of themselves."""
    rows = duckdb.sql(f"select sum(num_rows) from parquet_file_metadata({[str(path) for path in files]})").fetchall()
    return int(rows[0][0])


GROUPS = (38_029, 572)
"""RAID groups of disks and of SSDs in the paper's fleet of 462,551 drives."""


def bench_day(work: Path, repetitions: int) -> list[str]:
    """One day of the paper's fleet: lines of the result."""
    fleet = work / "day"
    rows = simulate(fleet, *GROUPS, 1)
    files = repr([str(path) for path in sorted(fleet.glob("drive_hours*.parquet"))])
    runs: list[dict[str, Cost | float]] = []
    for _ in range(repetitions):
        warehouse, scratch = work / "day-warehouse", work / "kernel"
        for folder in (warehouse, scratch):
            shutil.rmtree(folder, ignore_errors=True)
        scratch.mkdir()
        run: dict[str, Cost | float] = {"scan": measure_sql(SCAN.format(files=files))}
        run["kernel"] = measure_sql(KERNEL.format(files=files, out=scratch))
        run["ingest"] = measure(DRIVETAIL, "ingest", "bundle", fleet, "--warehouse", warehouse)
        run["build"] = measure(DRIVETAIL, "build", "--warehouse", warehouse)
        run["publication"] = phases(warehouse, BUILD_PHASES)["publication"]
        runs.append(run)
        print({key: value if isinstance(value, float) else round(value.seconds, 1) for key, value in run.items()}, flush=True)

    def seconds(step: str) -> float:
        return statistics.median(value.seconds if isinstance(value := run[step], Cost) else value for run in runs)

    def peak(step: str) -> str:
        return f"{max(run[step].peak_mib for run in runs):,.0f}"  # type: ignore[union-attr]

    def total(run: dict[str, Cost | float]) -> float:
        return run["ingest"].seconds + run["build"].seconds  # type: ignore[union-attr]

    ratios = sorted(total(run) / run["kernel"].seconds for run in runs)  # type: ignore[union-attr]
    return [
        f"## One day of the paper's fleet: {rows:,} drive-hours",
        "",
        f"Medians of {repetitions} repetitions, each timing the four processes one after the other.",
        "",
        "| step | seconds | peak memory (MiB) |",
        "|---|--:|--:|",
        f"| bare scan of the delivered Parquet | {seconds('scan'):.1f} | {peak('scan')} |",
        f"| hand-written kernel: three medians per RAID-hour, ratios and tails, written as doubles | {seconds('kernel'):.1f} | {peak('kernel')} |",
        f"| `drivetail ingest` | {seconds('ingest'):.1f} | {peak('ingest')} |",
        f"| `drivetail build`, models and data tests | {seconds('build') - seconds('publication'):.1f} | {peak('build')} |",
        f"| of `drivetail build`, publication | {seconds('publication'):.1f} | |",
        f"| **ingest, build and publication over the kernel** | **{statistics.median(ratios):.1f}x** ({ratios[0]:.1f} to {ratios[-1]:.1f}) | |",
        "",
        "| on disk | MiB |",
        "|---|--:|",
        f"| delivered Parquet | {folder_mib(fleet):,.0f} |",
        f"| raw store | {folder_mib(warehouse / 'raw'):,.0f} |",
        f"| store (drive-hours with S, imbalance; RAID-hours; slow hours) | {folder_mib(warehouse / 'store'):,.0f} |",
        f"| publication | {folder_mib(warehouse / 'publications'):,.0f} |",
        f"| build database (scratch) | {folder_mib(warehouse / 'build'):,.0f} |",
        f"| the kernel's output | {folder_mib(scratch):,.0f} |",
        "",
    ]


def bench_full_hour(work: Path, repetitions: int) -> list[str]:
    """One more hour of the paper's fleet, through the gate, after the day that bench_day left: lines of the result."""
    warehouse = work / "day-warehouse"
    day = pl.concat([pl.read_parquet(path) for path in sorted((work / "day").glob("drive_hours*.parquet"))])
    runs: list[dict[str, float]] = []
    peak = rows = 0.0
    for hour in day["hour_utc"].unique().sort()[:repetitions]:
        later = day.filter(pl.col("hour_utc") == hour).with_columns(
            pl.col("hour_utc") + pl.duration(days=1), pl.col("^collected_at$") + pl.duration(days=1)
        )
        rows = later.height
        delivery = work / "hour" / f"drive_hours-full-{hour:%H}.parquet"
        delivery.parent.mkdir(exist_ok=True)
        later.write_parquet(delivery)
        ingest = measure(DRIVETAIL, "ingest", "bundle", delivery, "--gate", "--warehouse", warehouse)
        of_ingest = phases(warehouse, INGEST_PHASES)
        build = measure(DRIVETAIL, "build", "--warehouse", warehouse)
        of_build = phases(warehouse, BUILD_PHASES)
        starts = {"start": ingest.seconds - sum(of_ingest.values()), "rest": build.seconds - sum(of_build.values())}
        runs.append({"ingest": ingest.seconds, "build": build.seconds, **starts, **of_ingest, **of_build, **subject_seconds(warehouse)})
        peak = max(peak, ingest.peak_mib, build.peak_mib)
        print({key: round(value, 1) for key, value in runs[-1].items()}, flush=True)

    def seconds(step: str) -> str:
        return f"{statistics.median(run[step] for run in runs):.1f}"

    return [
        f"## One more hour of the paper's fleet, after that day: {rows:,.0f} drive-hours",
        "",
        f"Hours 00:00 to {repetitions - 1:02d}:00 of the next day, one delivery and one build each; medians. Peak memory {peak:,.0f} MiB.",
        "",
        "| step | seconds |",
        "|---|--:|",
        f"| `drivetail ingest --gate` | {seconds('ingest')} |",
        f"| of it starting, and the page of the day's checks | {seconds('start')} |",
        f"| of it reading and parsing | {seconds('read')} |",
        f"| of it the gate, importing Great Expectations included | {seconds('gate')} |",
        f"| of it what repeats or replaces what there is | {seconds('judge')} |",
        f"| of it the commit | {seconds('commit')} |",
        f"| `drivetail build` | {seconds('build')} |",
        f"| of it starting and reading the models | {seconds('rest')} |",
        f"| of it finding what the delivery touches | {seconds('plan')} |",
        f"| of it models and their tests | {seconds('models')} |",
        f"| of it publication | {seconds('publication')} |",
        f"| **together** | **{statistics.median(run['ingest'] + run['build'] for run in runs):.1f}** |",
        "",
        "Where the time of the models goes, each with its own tests:",
        "",
        "| folder of the models | seconds |",
        "|---|--:|",
        *(f"| `{name}` | {seconds(name)} |" for name in sorted(subject_seconds(warehouse)) if name != "deciding"),
        f"| of them what decisions rest on: detectors, causes, costs, candidates (at most 10) | {seconds('deciding')} |",
        "",
    ]


DECIDING = ("detectors", "causes", "candidates")
"""Folders of what decisions rest on; with int_raid_hours__counterfactual, which lies beside the hours it is of."""


def subject_seconds(warehouse: Path) -> dict[str, float]:
    """Seconds of the models of the last build, by the folder they lie in, and `deciding`: of what decisions rest on."""
    record = max((warehouse / "publications").glob("*.json"))
    folders = {path.stem: path.parent.relative_to(ROOT / "models") for path in (ROOT / "models").rglob("*.*")}
    seconds: dict[str, float] = defaultdict(float)
    for model, taken in json.loads(record.read_text())["model_seconds"].items():
        seconds[f"models/{folders[model]}"] += taken
        if folders[model].name in DECIDING or model == "int_raid_hours__counterfactual":
            seconds["deciding"] += taken
    return dict(seconds)


def bench_hour(work: Path, repetitions: int) -> list[str]:
    """One more hour at 46,000 drives after 1, 7 and 28 days: lines of the result."""
    fleet, warehouse = work / "month", work / "month-warehouse"
    rows = simulate(fleet, 3_600, 60, MONTH_DAYS)
    shutil.rmtree(warehouse, ignore_errors=True)
    days = sorted(fleet.glob("drive_hours*.parquet"))
    measure(DRIVETAIL, "ingest", "bundle", fleet / "drives.parquet", fleet / "drive_events.parquet", "--warehouse", warehouse)
    lines = [
        f"## One more hour at 46,000 drives ({rows // MONTH_DAYS // 24:,} drive-hours)",
        "",
        f"Hours 00:00 to {repetitions - 1:02d}:00 of the next day, one delivery through the gate and one build each; medians.",
        "",
        "| history (days) | ingest (s) | build (s) | of it publication (s) | together (s) | over 1 day | peak memory (MiB) |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    first = 0.0
    loaded = 0
    for history in (1, 7, 28):
        measure(DRIVETAIL, "ingest", "bundle", *days[loaded:history], "--warehouse", warehouse)
        measure(DRIVETAIL, "build", "--warehouse", warehouse)
        frame = pl.read_parquet(days[history])
        hours = frame["hour_utc"].unique().sort()
        ingests, builds, publications = [], [], []
        for hour in hours[:repetitions]:
            delivery = work / "hour" / f"drive_hours-{history}-{hour:%H}.parquet"
            delivery.parent.mkdir(exist_ok=True)
            frame.filter(pl.col("hour_utc") == hour).write_parquet(delivery)
            ingests.append(measure(DRIVETAIL, "ingest", "bundle", delivery, "--gate", "--warehouse", warehouse))
            builds.append(measure(DRIVETAIL, "build", "--warehouse", warehouse))
            publications.append(phases(warehouse, BUILD_PHASES)["publication"])
        loaded = history
        ingest, build = (statistics.median(cost.seconds for cost in costs) for costs in (ingests, builds))
        together = statistics.median(a.seconds + b.seconds for a, b in zip(ingests, builds, strict=True))
        first = first or together
        peak = max(cost.peak_mib for cost in [*ingests, *builds])
        lines.append(
            f"| {history} | {ingest:.2f} | {build:.2f} | {statistics.median(publications):.2f} | {together:.2f} | {together / first:.2f}x | {peak:,.0f} |"
        )
        print(lines[-1], flush=True)
    return [*lines, ""]


def bench_study(work: Path, repetitions: int) -> list[str]:
    """The study of what bench_hour left, brought to a twentieth of the paper's drive-hours: lines of the result."""
    fleet, warehouse = work / "month", work / "month-warehouse"
    days = sorted(fleet.glob("drive_hours*.parquet"))[:STUDY_DAYS]
    measure(DRIVETAIL, "ingest", "bundle", *days, "--warehouse", warehouse)
    measure(DRIVETAIL, "build", "--warehouse", warehouse)
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        rows = connection.execute("select sum(drive_hours) from marts.fct_drive_slowness").fetchall()[0][0]
    delivered = row_count(days)
    scan = SCAN.format(files=repr([str(path) for path in days]))
    scans, studies, pages = [], [], []
    for _ in range(repetitions):
        scans.append(measure_sql(scan))
        studies.append(measure(DRIVETAIL, "study", "--all", "--format", "csv", "--warehouse", warehouse))
        pages.append(measure(DRIVETAIL, "study", "--html", work / "study.html", "--warehouse", warehouse))
    ratios = sorted(study.seconds / scan.seconds for study, scan in zip(studies, scans, strict=True))
    lines = [
        f"## The study at {delivered:,} drive-hours",
        "",
        f"A twentieth of the paper's, {STUDY_DAYS} days of 46,000 drives; {rows:,} of them are of data drives. Medians of {repetitions} "
        "repetitions, one after the other.",
        "",
        "| step | seconds | peak memory (MiB) |",
        "|---|--:|--:|",
    ]
    for step, costs in (
        ("one scan of the delivered columns", scans),
        ("`drivetail study --all`: every number, with interval and verdict", studies),
        ("`drivetail study --html`: numbers, variants and every curve as figures", pages),
    ):
        lines.append(f"| {step} | {statistics.median(cost.seconds for cost in costs):.1f} | {max(cost.peak_mib for cost in costs):,.0f} |")
    lines.append(f"| **the study over the scan** | **{statistics.median(ratios):.1f}x** ({ratios[0]:.1f} to {ratios[-1]:.1f}) | |")
    print("\n".join(lines), flush=True)
    return [*lines, ""]


def bench_questions(work: Path, repetitions: int) -> list[str]:
    """What an operator asks of the warehouse that bench_study left: lines of the result."""
    warehouse = work / "month-warehouse"
    lines = [
        f"## What an operator asks of {STUDY_DAYS} days of 46,000 drives",
        "",
        f"Medians of {repetitions}.",
        "",
        "| command | seconds | peak memory (MiB) |",
        "|---|--:|--:|",
    ]
    for asked in (["candidates"], ["candidates", "--backtest"], ["alerts"], ["status"], ["report", "--out", str(work / "report.html")]):
        costs = [measure(DRIVETAIL, *asked, "--warehouse", warehouse) for _ in range(repetitions)]
        taken, peak = statistics.median(cost.seconds for cost in costs), max(cost.peak_mib for cost in costs)
        lines.append(f"| `drivetail {' '.join(asked).partition(' --out')[0]}` | {taken:.1f} | {peak:,.0f} |")
        print(lines[-1], flush=True)
    return [*lines, ""]


def bench_server(work: Path, repetitions: int) -> list[str]:
    """A month of 60 drives out of a Prometheus server, and out of files, and a quarter of it: lines of the result."""
    lines = [
        "## A month of 60 drives from Prometheus",
        "",
        "A simulated fleet, scraped every five minutes, in a real server and in OpenMetrics files of a day; `drivetail ingest prometheus`. "
        f"Medians of {repetitions}. Peak memory is at least that of this bench, which simulates the fleet.",
        "",
        "| from | days | drive-hours | seconds | peak memory (MiB) |",
        "|---|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory(dir=work) as name:
        folder = Path(name)
        simulate(folder / "bundle", 3, 2, SERVER_DAYS)
        write_openmetrics(folder / "bundle", folder, 12)
        files = sorted(folder.glob("*.om"))
        with prometheus(folder) as url:
            for days in (7, SERVER_DAYS):
                span = "--from", "2026-01-05", "--to", f"{datetime(2026, 1, 5) + timedelta(days=days):%Y-%m-%d}"
                # the last full hour of a day is over at the first scrape of the next
                for given, asked in (("a server", (url, *span)), ("files", files[: days + 1])):
                    costs = []
                    for repetition in range(repetitions):
                        warehouse = folder / f"{given}-{days}-{repetition}"
                        costs.append(measure(DRIVETAIL, "ingest", "prometheus", *asked, "--warehouse", warehouse))
                    rows = row_count(path for delivery in list_deliveries(warehouse) for path in drive_hour_files(delivery))
                    taken, peak = statistics.median(cost.seconds for cost in costs), max(cost.peak_mib for cost in costs)
                    lines.append(f"| {given} | {days} | {rows:,} | {taken:.1f} | {peak:,.0f} |")
                    print(lines[-1], flush=True)
    return [*lines, ""]


PARTS = {
    "day": {"One day of the paper's fleet": bench_day, "One more hour of the paper's fleet": bench_full_hour},
    "hour": {"One more hour at 46,000 drives": bench_hour},
    "study": {"The study": bench_study, "What an operator asks": bench_questions},
    # a process counts the memory of the one it is forked from, and the parsers are read in this one
    "sources": {"A month of 60 drives from Prometheus": bench_server, "Parsers": bench_parsers},
}
"""What `--only` names: how each section of the result begins, and what measures it."""


def enter(title: str, lines: list[str], begun: str) -> None:
    """Write a section into docs/results/bench.md, in the place of its last measurement; `begun` is what it was measured of, and when."""
    old = RESULTS.read_text(encoding="utf-8").split("\n## ")[1:] if RESULTS.exists() else []
    heading, *rest = lines
    titles = [title for part in PARTS.values() for title in part]
    sections = {each: section for section in old for each in titles if section.startswith(each)}
    sections[title] = "\n".join([heading.removeprefix("## "), "", begun, *rest])
    head = [
        "# Benchmark",
        "",
        f"`make bench`; {os.cpu_count()} shared cores, DuckDB {duckdb.__version__}; each part with the commit it was measured at.",
        "Absolute seconds vary with the neighbours of this machine; ratios are taken within one run.",
    ]
    text = "".join(f"\n## {sections[each].rstrip()}\n" for each in titles if each in sections)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(head) + "\n" + text, encoding="utf-8")


def main() -> None:
    """Run every part, or one, and write docs/results/bench.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "drivetail-bench", help="scratch folder (needs 10 GB)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", choices=PARTS, help="one part; `study` goes on from what `hour` left in the scratch folder")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    commit = current_commit()
    for part in [options.only] if options.only else PARTS:
        for title, measured in PARTS[part].items():
            begun = f"Commit {commit}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
            enter(title, measured(options.work, options.repetitions), begun)
    print(f"Wrote {RESULTS}")


if __name__ == "__main__":
    main()

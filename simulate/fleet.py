"""`simulate()`: make a fleet, run it, write its bundle and, beside it, the truth."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from simulate.awkward import AWKWARD_CASES, PLANTED_CASES, Awkward
from simulate.groups import HOURS_PER_YEAR, Group, instant, inventory, make_group
from simulate.health import HEALTH, PLANTED, health_frames
from simulate.operators import GroupHistory, event_frame, live
from simulate.parameters import KINDS, PRESETS, Kind, ParameterError, Parameters, meanings, with_overrides
from simulate.streams import Dealer, places
from simulate.telemetry import Fleet, assemble, day_cells, frames
from simulate.workload import group_workload
from simulate.write import FILE_FORMATS, FileFormat, write_records

DEFAULT_START = date(2026, 1, 5)
"""A Monday, so that whole weeks of the span are whole ISO weeks."""
TRUTH_FOLDER, LATE_FOLDER = "truth", "late"
OWN_FILES = ("drive_hours*", "drive_events*", "drives*", "drive_health*", f"{LATE_FOLDER}/*", f"{TRUTH_FOLDER}/truth_*")

README = """The truth behind the bundle in the folder above: what was simulated, not what was measured.

truth_episodes.parquet  one row per slow episode: drive_id, raid_group_id, kind, started_at, ended_at (UTC), severity
                        (latency over the drive's own normal latency, ratio), cause. An episode of a few minutes, or of
                        half a group, need not show as a slow hour.
truth_drives.parquet    one row per drive and period in a group: its fixed factors (ratios) and its rate of episodes.
truth_health.csv        with a planted relation: kind, attribute that rises before a drive is slow.
truth_awkward.csv       the awkward records asked for: case, drive_id, hour_utc (empty = whole span), what.
truth_parameters.json   options, seed and every parameter; the same ones make the same bundle again.
"""


class SimulationError(ValueError):
    """The options ask for something that cannot be simulated; nothing was written."""


@dataclass(frozen=True)
class SimulationSummary:
    """Summary of one simulation."""

    out: Path
    truth: Path
    late: Path | None  # a second delivery, with the awkward case `late`
    files: tuple[Path, ...]  # bundle files, those of the late delivery included
    drive_hour_rows: dict[str, int]  # by kind, parity drives and the late delivery included
    drive_rows: int
    event_rows: int
    episode_count: int
    first_hour_utc: datetime
    hours: int
    seconds: float

    @property
    def row_count(self) -> int:
        """All `drive_hours` rows written."""
        return sum(self.drive_hour_rows.values())


def simulate(
    out: Path,
    *,
    disk_groups: int = 20,
    ssd_groups: int = 6,
    days: int = 28,
    hours: int | None = None,
    seed: int = 1,
    start: date | None = None,
    end: date | None = None,
    file_format: FileFormat = "parquet",
    awkward: Sequence[str] = (),
    preset: str = "tail-at-store",
    parameters: Mapping[str, Any] | None = None,
    health: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> SimulationSummary:
    """Write a call-home bundle to `out` and its truth to `out/truth`.

    Args:
        out: the folder; `drivetail ingest bundle out` takes what lies directly in it.
        disk_groups, ssd_groups: number of RAID groups; group n is the same however many there are.
        days, hours: length of the span; `hours` counts where both are given.
        seed: 0 to 2**63 - 1; the same options make the same rows.
        start: first UTC day of the span; by default 2026-01-05.
        end: its last UTC day, instead of `start`.
        file_format: of the bundle's files; the truth is always parquet, csv and json.
        awkward: cases of `AWKWARD_CASES` or, by `all`, all of them; and of `PLANTED_CASES`.
        preset: one of `PRESETS`; a preset of one kind of drive makes no groups of the other, whatever their number.
        parameters: overrides of the preset by flat name, e.g. `{"disk.frailty_sigma": 1.2}`.
        health: `unrelated`, drives' health readings are written too and have nothing to do with slowness; or `planted`, one
            attribute rises before a drive is slow.
        overwrite: replace an earlier simulation in `out`; its files are removed first.
        on_progress: called with (hours written, hours in all).

    Raises: SimulationError for options that do not go together, ParameterError for a wrong override.
    """
    began = time.perf_counter()
    length = days * 24 if hours is None else hours
    cases = {*(AWKWARD_CASES if "all" in awkward else ()), *awkward} - {"all"}
    if preset not in PRESETS:
        raise SimulationError(f"preset {preset!r}: must be one of {', '.join(PRESETS)}")
    if health not in (None, *HEALTH):
        raise SimulationError(f"health {health!r}: must be one of {', '.join(HEALTH)}")
    disk_groups, ssd_groups = (n if kind in PRESETS[preset] else 0 for kind, n in (("disk", disk_groups), ("ssd", ssd_groups)))
    _check(out, disk_groups, ssd_groups, length, seed, file_format, cases, overwrite)
    if start is not None and end is not None:
        raise SimulationError(f"start {start} and end {end} are both given: give one of them")
    start = end - timedelta(days=(length - 1) // 24) if end is not None else start or DEFAULT_START
    numbers = with_overrides(parameters)
    first_hour = datetime(start.year, start.month, start.day)
    group_counts: dict[Kind, int] = {"disk": disk_groups, "ssd": ssd_groups}
    plan = Awkward(cases, seed, first_hour)
    fleet, histories = run_fleet(numbers, seed, first_hour, length, group_counts, plan)

    for pattern in OWN_FILES if overwrite else ():
        for old in out.glob(pattern):
            old.unlink()
    files: list[Path] = []
    rows: dict[str, int] = dict.fromkeys(KINDS, 0)

    def write(name: str, parts: Iterator[pl.DataFrame]) -> int:
        path = out / f"{name}.{file_format}"
        files.append(path)
        return write_records(path, file_format, parts)

    def counted(parts: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for part in parts:
            for kind in KINDS:
                rows[kind] += int(part["raid_group_id"].str.starts_with(kind).sum())
            yield part

    for day, first in enumerate(range(0, length, 24)):
        last = min(first + 24, length)
        name = f"drive_hours-{first_hour + timedelta(hours=first):%Y-%m-%d}"
        parts = frames(fleet, day_cells(fleet, first, last, day))
        if cases:
            edited, late = plan.edit_day(pl.concat(parts), day)
            if late.height:
                write(f"{LATE_FOLDER}/{name}", counted(iter([late])))
            parts = iter([edited])
        write(name, counted(parts))
        if on_progress is not None:
            on_progress(last, length)

    drives, late_drives, events, late_events = plan.hold_back(
        plan.update(inventory(fleet.groups, first_hour, length), length),
        event_frame(list(zip(fleet.groups, histories, strict=True)), first_hour),
    )
    for name, now, late in (("drives", drives, late_drives), ("drive_events", events, late_events)):
        write(name, iter([now]))
        if late.height:
            write(f"{LATE_FOLDER}/{name}", iter([late]))
    if health is not None:
        pairs = zip(fleet.groups, histories, strict=True)
        write("drive_health", health_frames(pairs, seed, first_hour, length, is_planted=health == "planted"))
    options = {
        "preset": preset,
        "disk_groups": disk_groups,
        "ssd_groups": ssd_groups,
        "hours": length,
        "seed": seed,
        "start": start.isoformat(),
        "file_format": file_format,
        "awkward": sorted(cases),
        "health": health,
    }
    episode_count = _write_truth(out / TRUTH_FOLDER, fleet, histories, plan, options)
    return SimulationSummary(
        out=out,
        truth=out / TRUTH_FOLDER,
        late=out / LATE_FOLDER if "late" in cases else None,
        files=tuple(files),
        drive_hour_rows=rows,
        drive_rows=drives.height + late_drives.height,
        event_rows=events.height + late_events.height,
        episode_count=episode_count,
        first_hour_utc=first_hour,
        hours=length,
        seconds=time.perf_counter() - began,
    )


def _check(out: Path, disk_groups: int, ssd_groups: int, hours: int, seed: int, file_format: str, cases: set[str], overwrite: bool) -> None:
    """Raise SimulationError where the options make no fleet."""
    if min(disk_groups, ssd_groups) < 0 or disk_groups + ssd_groups < 1:
        raise SimulationError(f"{disk_groups} disk groups and {ssd_groups} SSD groups: at least one group is needed")
    if hours < 1:
        raise SimulationError(f"a span of {hours} hours: at least one hour is needed")
    if not 0 <= seed < 2**63:
        raise SimulationError(f"seed {seed}: must be 0 to 2**63 - 1")
    if file_format not in FILE_FORMATS:
        raise SimulationError(f"format {file_format!r}: must be one of {', '.join(FILE_FORMATS)}")
    if unknown := sorted(cases - {*AWKWARD_CASES, *PLANTED_CASES}):
        raise SimulationError(f"awkward case {unknown[0]!r}: must be 'all' or one of {', '.join((*AWKWARD_CASES, *PLANTED_CASES))}")
    if not overwrite and (old := [path for pattern in OWN_FILES for path in out.glob(pattern)]):
        raise SimulationError(f"{out} already holds a bundle ({old[0].name} and {len(old) - 1} more): choose another folder or overwrite")


def run_fleet(
    parameters: Parameters, seed: int, start: datetime, hours: int, counts: Mapping[Kind, int], plan: Awkward
) -> tuple[Fleet, list[GroupHistory]]:
    """Make every group and run its workload and its drives' lives."""
    groups: list[Group] = []
    histories: list[GroupHistory] = []
    workloads = []
    for kind in KINDS:
        p, dealer = parameters.of(kind), Dealer(seed, kind)
        made = []
        for dealt, place in enumerate(places(seed, kind, counts[kind])):
            group = make_group(kind, dealt, place, p, dealer, start, hours)
            history = live(group, p, dealer, start, hours)
            made.append((place, group, history, group_workload(group, p, dealer, start, hours, history.loads)))
        # the last block is dealt to whole, too, and what has its place beyond the fleet left out
        for _, group, history, workload in sorted(made, key=lambda each: each[0])[: counts[kind]]:
            groups.append(group)
            histories.append(history)
            workloads.append(workload)
    plan.change_fleet(groups, histories, hours)
    return assemble(seed, start, hours, parameters, groups, histories, workloads), histories


def _write_truth(folder: Path, fleet: Fleet, histories: Sequence[GroupHistory], plan: Awkward, options: Mapping[str, Any]) -> int:
    """Write the truth files; returns the number of episodes."""
    folder.mkdir(parents=True, exist_ok=True)
    start = fleet.start
    episodes = pl.DataFrame(
        [
            (
                member.drive_id,
                group.raid_group_id,
                group.kind,
                instant(start, episode.started_at),
                instant(start, episode.ended_at),
                1 + episode.excess,
                episode.cause,
            )
            for group, history in zip(fleet.groups, histories, strict=True)
            for member, episode in history.episodes
            if episode.ended_at > 0 and max(episode.started_at, member.active_from) < min(fleet.hours, member.active_to)
        ],
        schema={
            "drive_id": pl.String(),
            "raid_group_id": pl.String(),
            "kind": pl.String(),
            "started_at": pl.Datetime("us"),
            "ended_at": pl.Datetime("us"),
            "severity": pl.Float64(),
            "cause": pl.String(),
        },
        orient="row",
    ).sort("raid_group_id", "drive_id", "started_at")
    episodes.write_parquet(folder / "truth_episodes.parquet")
    pl.DataFrame([
        {
            "drive_id": m.drive_id, "raid_group_id": group.raid_group_id, "kind": group.kind, "role": m.role, "slot": m.slot,
            "frailty": m.frailty, "episodes_per_year": m.hazard_per_hour * HOURS_PER_YEAR, "is_fail_slow": m.fail_slow_excess > 0,
            "fail_slow_factor": 1 + m.fail_slow_excess, "latency_factor": m.latency_factor, "rate_share_factor": m.rate_share,
            "io_size_factor": m.io_size_factor, "noise_factor": m.noise_factor, "is_coarse_timer": group.is_coarse,
            "is_replacement": m.is_replacement,
        }
        for group in fleet.groups
        for m in sorted(group.members, key=lambda m: m.drive_id)
    ]).write_parquet(folder / "truth_drives.parquet")  # fmt: skip
    if options["health"] == "planted":
        pl.DataFrame({"kind": list(PLANTED), "attribute": list(PLANTED.values())}).write_csv(folder / "truth_health.csv")
    if plan.cases:
        plan.truth().write_csv(folder / "truth_awkward.csv", datetime_format="%Y-%m-%dT%H:%M:%S")
    described = {"options": options, "parameters": fleet.parameters.flat(), "meanings": meanings()}
    (folder / "truth_parameters.json").write_text(json.dumps(described, indent=1) + "\n")
    (folder / "truth_README.txt").write_text(README)
    return episodes.height


__all__ = ["AWKWARD_CASES", "DEFAULT_START", "ParameterError", "SimulationError", "SimulationSummary", "simulate"]

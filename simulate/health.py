"""Drives' health, once a day: SMART attributes that know nothing of slowness, or one that rises before it."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from ingest.contract.fleet import CONTRACT
from simulate.groups import Group
from simulate.operators import GroupHistory
from simulate.parameters import Kind
from simulate.streams import Purpose, stream

HEALTH = ("unrelated", "planted")
COUNTERS: dict[Kind, tuple[tuple[str, float], ...]] = {
    "disk": (("reallocated_sector_ct", 0.01), ("current_pending_sector", 0.02), ("udma_crc_error_count", 0.005)),
    "ssd": (("reallocated_sector_ct", 0.01), ("media_errors", 0.02), ("udma_crc_error_count", 0.005)),
}
"""Errors that drives count, and how many a day: what a drive has counted before the span is of a year of such days."""
PLANTED: dict[Kind, str] = {"disk": "current_pending_sector", "ssd": "media_errors"}
"""The counter that rises before a drive is slow where a relation is planted."""
PLANTED_DAYS, PLANTED_MEAN = 3, 6.0
"""How many days before an episode it begins to rise, and by how much each day."""
PLANTED_EXCESS = 1.0
"""Only before episodes that show: at least so much latency beyond the normal (ratio)."""


def health_frames(
    fleet: Iterable[tuple[Group, GroupHistory]], seed: int, start: datetime, hours: int, *, is_planted: bool
) -> Iterator[pl.DataFrame]:
    """The `drive_health` records of each group: a reading a drive, attribute and day, ten minutes after midnight."""
    days = -(-hours // 24)
    for group, history in fleet:
        frames = [pl.DataFrame(schema=CONTRACT["drive_health"])]
        for index, drive in enumerate(sorted({member.drive_id for member in group.members})):
            periods = [(member.active_from, member.active_to) for member in group.members if member.drive_id == drive]
            there = np.array([any(begins <= 24 * day < ends for begins, ends in periods) for day in range(days)])
            spells = [
                episode.started_at for member, episode in history.episodes if member.drive_id == drive and episode.excess >= PLANTED_EXCESS
            ]
            rng = stream(seed, group.kind, group.ordinal, Purpose.HEALTH, index)
            for attribute, raw in _counted(rng, group.kind, days, spells if is_planted else []):
                frames.append(_readings(drive, attribute, raw, start, there))
        yield pl.concat(frames)


def _counted(rng: np.random.Generator, kind: Kind, days: int, spells: list[float]) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Each attribute's raw values, day by day."""
    for attribute, a_day in COUNTERS[kind]:
        more = rng.poisson(a_day, days)
        planted = rng.poisson(PLANTED_MEAN, days)
        if attribute == PLANTED[kind]:
            rises = np.zeros(days, dtype=bool)
            for begins in spells:
                last = int(begins // 24)
                rises[max(last - PLANTED_DAYS, 0) : max(last + 1, 0)] = True
            more = more + planted * rises
        yield attribute, rng.poisson(365 * a_day) + np.cumsum(more)
    warmth = 30 + 4 * rng.standard_normal()
    yield "temperature_celsius", np.rint(warmth + 2 * rng.standard_normal(days)).astype(np.int64)


def _readings(drive: str, attribute: str, raw: npt.NDArray[np.int64], start: datetime, there: npt.NDArray[np.bool_]) -> pl.DataFrame:
    is_temperature = attribute == "temperature_celsius"
    normalised = 100 - raw if is_temperature else np.maximum(100 - raw // 10, 1)
    days = np.flatnonzero(there)
    at = [start + timedelta(days=int(day), minutes=10) for day in days]
    columns = {"read_at": at, "raw_value": raw[days], "normalised_value": normalised[days], "collected_at": at}
    named = pl.DataFrame(columns).with_columns(drive_id=pl.lit(drive), attribute=pl.lit(attribute))
    return named.select(pl.col(name).cast(dtype) for name, dtype in CONTRACT["drive_health"].items())

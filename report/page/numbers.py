"""How numbers and instants are written: thousands separated, as many digits as mean something, a dash for what is not known."""

from __future__ import annotations

from datetime import date, datetime

NONE = "\u2013"
TIMES = "\u00d7"
KINDS = {"disk": ("disk", "disks"), "ssd": ("SSD", "SSDs"), "unknown": ("drive of unknown kind", "drives of unknown kind")}
KIND_NAMES = {"disk": "Disk", "ssd": "SSD", "unknown": "Unknown kind"}
DETECTOR_WORDS = {
    "slow_2x": "slow",
    "slow_1_5x": "mildly slow",
    "chronic": "chronic",
    "hdfs_outlier": "HDFS outlier",
    "zfs_sit_out": "ZFS sit-out",
    "tikv_slow_score": "TiKV slow score",
    "iaso_aimd": "IASO score",
    "mean_3_sigma": "3 sigma",
    "perseus": "Perseus",
    "ceph_mad": "Ceph MAD",
    "own_history": "own history",
}


def count(value: int | None) -> str:
    """12345 as 12,345."""
    return NONE if value is None else f"{value:,}"


def percent(share: float | None) -> str:
    """A share, 0..1, or the change of one, as a percentage; never rounded to 0% or 100% unless it is."""
    if share is None:
        return NONE
    value = 100 * abs(share)
    sign = "-" if share < 0 else ""
    if value in (0, 100):
        return f"{sign}{value:.0f}%"
    if value < 0.001:
        return f"{'> -' if sign else '< '}0.001%"
    if value > 99.99:
        return f"{'< -' if sign else '> '}99.99%"
    digits = 2 if value >= 99.9 else 1 if value >= 1 else 2 if value >= 0.1 else 3
    return f"{sign}{value:.{digits}f}%"


def ratio(value: float | None) -> str:
    """A slowdown or another ratio, with three digits or so: 2.35 times, 23.5 times, 1,235 times."""
    if value is None:
        return NONE
    return f"{value:,.2f}{TIMES}" if value < 10 else f"{value:,.1f}{TIMES}" if value < 100 else f"{value:,.0f}{TIMES}"


def times(threshold: float) -> str:
    """A threshold of slowdown: 2 times, 1.5 times."""
    return f"{threshold:g}{TIMES}"


def hours(value: float | None) -> str:
    """A duration: 12 h, 1.7 h."""
    if value is None:
        return NONE
    return f"{value:,.0f} h" if value == int(value) or value >= 100 else f"{value:,.1f} h"


def tenths(value: float | None) -> str:
    """A number with one digit after the point: 12.3."""
    return NONE if value is None else f"{value:,.1f}"


def capacity(value: int | None) -> str:
    """Bytes of a drive as its label has them: 4 TB, 960 GB."""
    if value is None:
        return NONE
    return f"{value / 1e12:g} TB" if value >= 1e12 else f"{value / 1e9:.0f} GB"


def instant(value: datetime | None) -> str:
    """A time of day, to the minute, UTC."""
    return NONE if value is None else f"{value:%Y-%m-%d %H:%M}"


def day(value: date | datetime | None) -> str:
    """A date."""
    return NONE if value is None else f"{value:%Y-%m-%d}"


def whole(value: float | None) -> str:
    """A number that is whole, or nearly: -1,234."""
    return NONE if value is None else f"{value:,.0f}"


def week_name(monday: datetime) -> str:
    """The ISO week that starts on the Monday: 2026-W03."""
    year, week, _ = monday.isocalendar()
    return f"{year}-W{week:02d}"


def noun(number: int, one: str, many: str) -> str:
    """A number with its noun: 1 disk, 12 disks."""
    return f"{count(number)} {one if number == 1 else many}"


def of_kind(number: int, kind: str) -> str:
    """A number of drives of a kind: 1 disk, 12 SSDs."""
    return noun(number, *KINDS.get(kind, (f"{kind} drive", f"{kind} drives")))


def kind_name(kind: str) -> str:
    """A kind as a heading."""
    return KIND_NAMES.get(kind, kind)


def plural(kind: str) -> str:
    """The drives of a kind."""
    return {"disk": "disks", "ssd": "SSDs"}.get(kind, "drives of unknown kind")


def listed(parts: list[str]) -> str:
    """A list as words: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""

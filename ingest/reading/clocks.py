"""Local times of one file, in order -> UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ingest.contract.errors import IngestError, UnreadableFile

# a clock that goes back further has passed midnight; one that goes back less was put back from summer time
MIDNIGHT = timedelta(hours=2)


def zone_of(name: str | None) -> tzinfo | None:
    """The time zone of an option. Raises: IngestError where there is none of that name."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise IngestError(f"--timezone {name}: no such time zone; give one like Europe/Berlin or UTC") from error


def plain_time(text: str) -> datetime:
    """A time in ISO 8601 that says no zone. Raises: ValueError, also where it says one."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is not None:
        raise ValueError(f"a zone in {text}")
    return at


@dataclass
class Clock:
    """Local times of one file in order -> UTC: a clock that is put back repeats an hour, one that passes midnight begins a day."""

    zone: tzinfo | None
    day: datetime | None = None
    last: datetime | None = None
    last_of_day: timedelta | None = None

    def utc(self, local: datetime) -> datetime:
        if self.zone is None:
            raise UnreadableFile("its times are local without a time zone; give --timezone, such as Europe/Berlin or UTC")
        first = local.replace(tzinfo=self.zone).astimezone(UTC).replace(tzinfo=None)
        if self.last is not None and first < self.last:
            first = max(first, local.replace(tzinfo=self.zone, fold=1).astimezone(UTC).replace(tzinfo=None))
        self.last = first
        return first

    def at(self, of_day: timedelta) -> datetime:
        """A time of day, on the day that the file has come to."""
        if self.day is None:
            raise UnreadableFile("no day is given above its times; expected the first line that sar prints")
        if self.last_of_day is not None and of_day < self.last_of_day - MIDNIGHT:
            self.day += timedelta(days=1)
        self.last_of_day = of_day
        return self.utc(self.day + of_day)

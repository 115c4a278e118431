"""Look more often while a drive of this host has an open alert: per alert at most a number of hours and of bytes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ValidationError

from drivetail.service.slow_hosts import SlowHosts
from ingest.raw.durable import replace_file

MEGABYTE = 1_000_000
HOUR = 3600


class _Used(BaseModel):
    """Cost of an alert so far: when the first finer look was asked for, in seconds since 1970, and the bytes of all."""

    alert: AwareDatetime
    since: float
    bytes: int = 0


class FastSampling:
    """Decides how soon a host looks again, by a file that is shipped to it. `spool` keeps what the alert has cost over a restart."""

    def __init__(self, file: Path, host: str, spool: Path) -> None:
        self.file = file
        self.host = host
        self.state = spool / "finer.json"
        self.trouble: str | None = None
        """Fault of the file, a sentence; null where nothing is, or no file has come yet."""

    def seconds(self, every: int, now: float, written: int) -> int:
        """Seconds between looks from now on: `every`, or fewer while an alert of the host is open and within its bounds.

        written: bytes that the look just taken has added.
        """
        asked = self._read()
        alert = None if asked is None else asked.hosts.get(self.host)
        if asked is None or alert is None:
            return every
        used = self._used(alert)
        if used is None:
            used = _Used(alert=alert, since=now)
        else:
            used.bytes += written
        if now - used.since >= asked.hours * HOUR or used.bytes >= asked.megabytes * MEGABYTE:
            return every
        replace_file(self.state, used.model_dump_json())
        return min(every, asked.every_seconds)

    def _read(self) -> SlowHosts | None:
        self.trouble = None
        try:
            return SlowHosts.model_validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            self.trouble = f"{self.file}: cannot be read ({error.strerror})"
        except ValidationError as error:
            (first, *_) = error.errors()
            place = ".".join(map(str, first["loc"]))
            self.trouble = f"{self.file}: {f'{place}: ' if place else ''}{first['msg']}; give what `drivetail alerts --hosts` wrote"
        return None

    def _used(self, alert: datetime) -> _Used | None:
        """Cost of this alert, or a later one that has cleared; null for one that has cost nothing yet."""
        try:
            used = _Used.model_validate_json(self.state.read_bytes())
        except (OSError, ValidationError):
            return None
        return used if alert <= used.alert else None

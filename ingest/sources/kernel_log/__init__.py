"""Source `kernel-log`: the kernel's messages about drives, as drive events under HOST/DEVICE.

journald's JSON (`journalctl -k -o json`), syslog files, `journalctl -o short-iso` and dmesg. Which line means which event is data:
patterns.csv, a literal hint and a regular expression each. Lines that match none are counted and a few are shown.
"""

from __future__ import annotations

import csv
import json
import re
from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ingest.contract.errors import IngestError, UnreadableFile
from ingest.contract.findings import count_of
from ingest.reading.batches import REJECTION, Batch
from ingest.reading.clocks import Clock, zone_of
from ingest.reading.devices import alias_of, is_no_drive, is_whole_drive
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import COLLECTED_FOLDER, drive_device
from ingest.reading.parse import completed
from ingest.reading.readers import SHOWN_VALUE_CHARS, text_blocks
from ingest.reading.text import utf8

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

NAMES = ("syslog", "messages", "kern", "dmesg", "journal")
EXPECTED = f"*.log, or a name that begins with {', '.join(NAMES)} (also .gz, .zst): lines of the kernel, as text or journald's JSON"
recognise = named("lines", rf".*\.log(\.gz|\.zst)?|({'|'.join(NAMES)}).*")
SHOWN_LINES = 3
# The kernel says one thing in several lines (controller, disk, array, block layer): those of one kind within a minute are one event.
SAME = timedelta(minutes=1)
IO_ERROR = "I/O error"
RESULT = "Result: hostbyte="
PLUGS = ("unplug", "replug")
# Kernels name a drive in one line and report its error in another.
NEAR = timedelta(seconds=1)
# Names that need not be those of a drive: another line says the same of it, or nobody can.
LOOSE = {"usb", "lun", "link", "before"}
# RFC 5424 for a host that is not known; "(none)" is the name that sysstat, too, has of a machine without one
NO_HOST = "-"
HALF_YEAR = timedelta(days=182)
_EPOCH = datetime(1970, 1, 1)

_AS_NUMBERS = r'"MESSAGE"\s*:\s*\['  # journald writes what is no UTF-8 so
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_STRUCTURED = r"(?:-|(?:\[(?:[^\]\\]|\\.)*\])+)"
# with and without priority and version
_RFC_5424 = re.compile(rf"(?:<\d+>)?(?:1 )?(\d{{4}}-\d\d-\d\dT\S+) (\S+) ([^\s:\[]+) [\w.-]+ \S+ {_STRUCTURED}\s+(?:\ufeff)?(.*)")
# journalctl -o short-full names the weekday and the zone; only dmesg writes a comma, and no host
_ISO = re.compile(
    r"(?:<\d+>)?(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:([.,])(\d{1,9}))?(Z|[+-]\d\d:?\d\d| UTC| GMT)?"
    r"(?: [A-Z]{3,5}(?= \S+ kernel:))?\s+(?:(\S+)\s+(?:[a-z0-9]+\.[a-z]+\s+)?kernel:\s)?(.*)"
)
# BusyBox names the facility
_SYSLOG = re.compile(
    r"(?:<\d+>)?([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? (\S+) (?:[a-z0-9]+\.[a-z]+ )?((?:(kernel):)?.*)"
)
_SHORT_UNIX = re.compile(r"(\d{9,11})\.(\d{1,9}) (\S+) ((?:(kernel):)?.*)")
# another program, behind its host; one that writes into the kernel's own log
_OF_A_PROGRAM = re.compile(r"(?:[A-Z]{3,5} )?\S+ [A-Za-z][\w./@()-]*(?:\[\d+\])?: ")
_WROTE_TO_KERNEL = re.compile(r"\s*(?:\S+ )?[A-Za-z][\w./@()-]*\[\d+\]: ")
# dmesg -x
_FACILITY = re.compile(r"^[a-z0-9]+ *: *[a-z]+ *: (?=\[|\d{4}-)")
_REPEATED = re.compile(r"(?:^|kernel: )message repeated \d+ times: \[ ?(.*?) ?\]$")
# framings that spread an entry over several lines
_SPREAD = re.compile(r'^\s*"?MESSAGE"?\s*[:=]')
_SINCE_BOOT = re.compile(r"(?:<\d+>)?\[\s*(\d{1,10})\.(\d{1,9})\](.*)")
_CTIME = re.compile(r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})\](.*)")


@dataclass(frozen=True)
class Pattern:
    """Meaning of a line: `event_type`, or none where it only names a device; `names` are its groups."""

    event_type: str
    hint: str
    regex: re.Pattern[str]
    what: str


@cache
def patterns() -> tuple[Pattern, ...]:
    """The patterns of patterns.csv, in its order; the first that matches a line counts, but for those that only name."""
    with Path(__file__).with_name("patterns.csv").open(encoding="utf-8", newline="") as stream:
        return tuple(Pattern(row["event_type"], row["hint"], re.compile(row["pattern"]), row["what"]) for row in csv.DictReader(stream))


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every file and stage its events. Counts are lines about a drive."""
    zone, year, booted_at = _options(landing.options)

    def batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
        collected = COLLECTED_FOLDER.fullmatch(file.folder)
        log = _Log(Clock(zone), year, booted_at, collected[1] if collected else file.folder, collected is not None)
        log.read(file.path)
        yield _events(log, result)

    landing.read(files, batches)


def _events(log: _Log, result: FileResult) -> Batch:
    if log.unframed:
        count, line = log.unframed
        result.notes.append(
            f"{count} lines are framed as no logger known here does it (docs/sources/kernel-log.md), the first: {line[:100]!r}"
        )
    if log.unmatched:
        shown = "; ".join(repr(line[:100]) for line in log.examples)
        result.notes.append(f"{count_of(log.unmatched, 'line')} that no pattern matches{f', such as {shown}' if shown else ''}")
    rejected = pl.DataFrame(log.rejected, schema=REJECTION, orient="row")
    events = pl.DataFrame(
        log.events,
        schema={
            "drive_id": pl.String(),
            "occurred_at": pl.Datetime("us"),
            "event_type": pl.String(),
            "detail": pl.String(),
            "row_no": pl.Int64(),
        },
        orient="row",
    ).with_columns(pl.lit(True).alias("is_alias"), pl.lit(result.file_no, pl.Int64()).alias("file_no"))
    return Batch("drive_events", completed(events, "drive_events"), rejected, log.repeated)


def _options(options: dict[str, Any]) -> tuple[tzinfo | None, int | None, datetime | None]:
    boot_time = options.get("boot_time")
    try:
        year = int(options["year"]) if options.get("year") else None
        booted_at = datetime.fromisoformat(boot_time) if boot_time else None
    except ValueError as error:
        raise IngestError(f"{error}; give --year like 2026, --boot-time like 2026-01-05T09:00:00+00:00") from error
    if booted_at is not None and booted_at.tzinfo is not None:
        booted_at = booted_at.astimezone(UTC).replace(tzinfo=None)
    return zone_of(options.get("timezone")), year, booted_at


# One file ---------------------------------------------------------------------------------------------------------


@dataclass
class _Devices:
    """Names of a host's drives so far: SCSI addresses -> devices, SAS handles and ATA ports -> addresses, USB ports -> SCSI buses."""

    by_address: dict[tuple[str, str], str] = field(default_factory=dict)
    by_handle: dict[tuple[str, int], str] = field(default_factory=dict)
    by_port: dict[tuple[str, str], str] = field(default_factory=dict)
    by_usb: dict[tuple[str, str], str] = field(default_factory=dict)
    above: dict[str, list[tuple[str | None, datetime]]] = field(default_factory=dict)
    """By host the devices of which a line below is to say what they have, and since when; none for one of several."""
    awaited: dict[str, list[tuple[Pattern, datetime, str, int]]] = field(default_factory=dict)
    """By host the events whose drive the next line with a command names, with their time, message and row."""
    unnamed: dict[tuple[str, str], list[tuple[Any, ...]]] = field(default_factory=dict)
    """By SCSI address what happened there while nobody knew its device: arguments of `_Log._happened`."""

    def learn(self, host: str, groups: dict[str, str], at: datetime) -> None:
        if "above" in groups:
            others = [one for one in self.above.get(host, []) if one[0] != groups["device"] and _is_near(one[1], at)]
            self.above[host] = [*others, (groups["device"], at)]
        if "device" in groups and "address" in groups:
            self.by_address[host, groups["address"]] = groups["device"]
        if "handle" in groups and "address" in groups:
            self.by_handle[host, int(groups["handle"], 16)] = groups["address"]
        if "port" in groups and "address" in groups:
            self.by_port[host, groups["port"]] = groups["address"]
        if "usb" in groups and "bus" in groups:
            self.by_usb[host, groups["usb"]] = groups["bus"]

    def below(self, host: str, at: datetime) -> str | None:
        """The device of a line that names none; none where several wait for such a line."""
        waiting = [one for one in self.above.pop(host, []) if _is_near(one[1], at)]
        devices = {device for device, _ in waiting}
        if len(devices) > 1:  # nor is it known which of them wait on
            self.above[host] = [(None, then) for _, then in waiting[1:]]
        return devices.pop() if len(devices) == 1 else None

    def device(self, host: str, groups: dict[str, str]) -> str | None:
        if "device" in groups:
            return drive_device(groups["device"])
        if "controller" in groups:
            return f"{groups['controller']}n1"
        port = groups.get("link") or groups.get("port")
        if port and "address" not in groups:
            return self.by_address.get((host, self.by_port.get((host, port), "")))
        if "usb" in groups:
            bus = self.by_usb.pop((host, groups["usb"]), None)  # what is plugged in there next need be no drive
            addresses = [name for where, name in self.by_address if where == host and name.partition(":")[0] == bus]
            return self.by_address[host, addresses[-1]] if addresses else None
        address: str | None = groups.get("address") or groups.get("lun", "").replace(",", ":")
        address = address or self.by_handle.get((host, int(groups.get("handle", "0"), 16)))
        return self.by_address.get((host, address)) if address else None


@dataclass
class _Log:
    """One file: how its lines are to be read, and what they say.

    year: of its first line, then of the line that was read last (syslog gives none). booted_at: of the machine, UTC. folder: its name.
    `is_collected`: the folder names the host, as `drivetail collect --host` named it, whatever the lines say.
    `unframed`: how many lines nobody can frame, and the first.
    `events`: drive_id, occurred_at, event_type, detail, row_no; rows are lines of the file. `happened`: the last event of a drive and type.
    """

    clock: Clock
    year: int | None
    booted_at: datetime | None
    folder: str
    is_collected: bool
    last: datetime | None = None
    devices: _Devices = field(default_factory=_Devices)
    happened: dict[tuple[str, str], datetime] = field(default_factory=dict)
    events: list[tuple[str, datetime, str, str, int]] = field(default_factory=list)
    rejected: list[tuple[int, str, str, str | None]] = field(default_factory=list)
    unframed: tuple[int, str] | None = None
    repeated: int = 0
    unmatched: int = 0
    examples: list[str] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Read the file. Raises: UnreadableFile where its times cannot be known."""
        hints = [pattern.hint for pattern in patterns()]
        done = 0
        for block in text_blocks(path, "lines of a log"):
            lines = pl.Series("line", block.decode("utf-8", "replace").removesuffix("\n").split("\n"))
            has_hint = lines.str.contains_any(hints) | lines.str.contains(_AS_NUMBERS)
            if (left := lines.filter(~has_hint & (lines.str.strip_chars() != ""))).len():
                self.unmatched += left.len()
                self.examples += left.head(SHOWN_LINES - len(self.examples)).to_list()
            for at in has_hint.arg_true().to_list():
                self._take(done + at + 1, lines[at], lines[at - 1] if at else "")
            done += lines.len()
        for host, address in list(self.devices.unnamed):
            self._resolve(host, address, None, None)
        for waiting in self.devices.awaited.values():
            for _, _, message, _ in waiting:
                self._leave(message)

    def _leave(self, line: str) -> None:
        """Count a line that is no event, and show the first few."""
        self.unmatched += 1
        self.examples += [line] if len(self.examples) < SHOWN_LINES else []

    def _take(self, row: int, line: str, before: str) -> None:
        """One line that has a hint: learn what it names, and take its event. before: the line before it."""
        try:
            # a message of several lines has its time in the first
            is_continued = line.startswith((" ", "\t")) and not line.lstrip().startswith("{")
            at, host, message = (*self._framed(before)[:2], line) if is_continued else self._framed(line)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            reason = "neither time nor framing of a logger that is known here"
            if _SPREAD.match(line):
                reason = "an entry of several lines, as journalctl -o json-pretty, verbose and export write; write it with -o json"
            self.rejected.append((row, reason, "line", line[:SHOWN_VALUE_CHARS]))
            count, first = self.unframed or (0, line)
            self.unframed = count + 1, first
            return
        except _NotOfTheKernel:
            self._leave(line)
            return
        host = self.folder if self.is_collected or host == NO_HOST else host
        message = repeated[1] if (repeated := _REPEATED.search(message)) else message
        event: Pattern | None = None
        groups: dict[str, str] = {}
        named: dict[str, str] = {}
        for pattern in patterns():
            if pattern.hint not in message or (event and pattern.event_type):
                continue
            if match := pattern.regex.search(message):
                found = {name: value for name, value in match.groupdict().items() if value}
                self.devices.learn(host, found, at)
                named |= found
                if pattern.event_type:
                    event, groups = pattern, found
        if "before" in named and (device := self.devices.below(host, at)):
            groups["device"] = device
        if "device" in named and "address" in named:
            self._resolve(host, named["address"], at, named["device"])
        # a command that failed is shown, too
        if "command" in named or RESULT in message:
            waiting = self.devices.awaited.pop(host, [])
            near = [one for one in waiting if "command" in named and _is_near(one[1], at)]
            for one in waiting:
                if near == [one]:
                    (event, at, message, row), groups = one, named
                else:  # of several nobody knows whose command that is
                    self._leave(one[2])
        if event is None and named:
            self.unmatched += 1  # it only names a device
        elif event is None:
            self._leave(line)
        elif "next" in groups:
            self.devices.awaited.setdefault(host, []).append((event, at, message, row))
        else:
            self._happened(event, at, host, groups, message.strip()[:SHOWN_VALUE_CHARS], row, line)

    def _resolve(self, host: str, address: str, at: datetime | None, device: str | None) -> None:
        """Take the events of an address without a device: a line soon after names it, as mpt3sas shows the command."""
        for event, then, _, groups, *said in self.devices.unnamed.pop((host, address), []):
            is_near = at is not None and _is_near(then, at)
            place = {name: value if name not in ("address", "lun") else "" for name, value in groups.items()}
            self._happened(event, then, host, place | {"device": device} if device and is_near else place, *said)

    def _happened(self, event: Pattern, at: datetime, host: str, groups: dict[str, str], message: str, row: int, line: str) -> None:
        device = self.devices.device(host, groups)
        address = groups.get("address") or groups.get("lun", "").replace(",", ":")
        if device is None and address:
            self.devices.unnamed.setdefault((host, address), []).append((event, at, host, groups, message, row, line))
            return
        if (device is None and LOOSE & groups.keys()) or (device is not None and is_no_drive(device)):
            # an error of a dm or md device is one of a drive below it
            self._leave(line)
            return
        if device is None or not is_whole_drive(device):
            reason = "no line before it says which device that is" if device is None else "no whole drive"
            self.rejected.append((row, reason, "device", message))
            return
        key = (alias_of(host, device), event.event_type)
        before = self.happened.get(key)
        if before is None and event.what == IO_ERROR:  # its cause was named
            before = self.happened.get((key[0], "media_error"))
        is_same = before is not None and timedelta() <= at - before <= SAME
        if event.event_type in PLUGS:
            self.happened.pop((key[0], PLUGS[event.event_type == PLUGS[0]]), None)
        if event.event_type in PLUGS or not is_same:
            self.happened[key] = at
        if is_same:
            self.repeated += 1
        else:
            self.events.append((key[0], at, event.event_type, f"{event.what}: {message}", row))

    def _framed(self, line: str) -> tuple[datetime, str, str]:
        """When (UTC), on which host, and what a line says. Raises: ValueError where it cannot be read."""
        # dmesg -x; journalctl -o json-sse and json-seq
        line = _FACILITY.sub("", line.removeprefix("data: ").lstrip("\x1e"))
        if line.lstrip().startswith("{"):
            return self._journal(line)
        if match := _RFC_5424.match(line):
            stamp, host, program, message = match.groups()
            if program != "kernel":
                raise _NotOfTheKernel
            return self._utc(stamp), host, message
        if match := _SHORT_UNIX.match(line):
            if match[5] is None:
                raise _NotOfTheKernel
            return _EPOCH + _seconds(match[1], match[2]), match[3], match[4]
        if match := _ISO.match(line):
            stamp, mark, fraction, offset, host, message = match.groups()
            if host is None and (_OF_A_PROGRAM if mark != "," else _WROTE_TO_KERNEL).match(message):
                raise _NotOfTheKernel
            if host is None and ("T" not in stamp or offset is None):
                raise ValueError(line)
            offset = "+00:00" if offset in (" UTC", " GMT") else offset or ""
            return self._utc(f"{stamp}.{fraction or 0}{offset}"), host or self.folder, message
        if match := _SYSLOG.match(line):
            month, day, time, fraction, host, message, program = match.groups()
            if program is None:
                raise _NotOfTheKernel
            return self.clock.utc(self._with_year(month, day, time) + _seconds("0", fraction or "0")), host, message
        if match := _CTIME.match(line):
            month, day, time, year, message = match.groups()
            if _WROTE_TO_KERNEL.match(message):
                raise _NotOfTheKernel
            return self.clock.utc(_local(year, month, day, time)), self.folder, message
        if match := _SINCE_BOOT.match(line):
            if self.booted_at is None:
                raise UnreadableFile("its times are seconds since boot; give --boot-time, or write it with dmesg --time-format iso")
            return self.booted_at + _seconds(match[1], match[2]), self.folder, match[3]
        raise ValueError(line)

    def _utc(self, stamp: str) -> datetime:
        at = datetime.fromisoformat(stamp)
        return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else self.clock.utc(at)

    def _with_year(self, month: str, day: str, time: str) -> datetime:
        """A time of syslog: in the year of the line before, and the next where the months begin again."""
        if self.year is None:
            raise UnreadableFile("its lines give no year; give --year, that of its first line")
        if (month, int(day)) == ("Feb", 29) and not isleap(self.year):
            if self.last is None or self.last.month < 9 or not isleap(self.year + 1):
                raise UnreadableFile(f"it has a 29th of February, which {self.year} has not; give another --year, that of its first line")
            self.year += 1
        at = _local(self.year, month, day, time)
        if self.last is not None and at < self.last - HALF_YEAR:
            self.year += 1
            at = at.replace(year=self.year)
        self.last = at
        return at

    def _journal(self, line: str) -> tuple[datetime, str, str]:
        entry = json.loads(line)
        program = entry.get("_TRANSPORT") or entry.get("SYSLOG_IDENTIFIER")
        if program not in (None, "kernel"):
            raise _NotOfTheKernel
        message = entry["MESSAGE"]
        if isinstance(message, list) and message and not isinstance(message[0], int):  # a field that was given several times
            message = message[0]
        if isinstance(message, list):
            message = bytes(message).decode("utf-8", "replace")
        at = _EPOCH + timedelta(microseconds=int(entry["__REALTIME_TIMESTAMP"]))
        return at, utf8(str(entry.get("_HOSTNAME") or self.folder)), utf8(str(message))


class _NotOfTheKernel(Exception):
    """A line of another program, such as one that quotes the kernel."""


def _is_near(then: datetime, at: datetime) -> bool:
    """Whether a line may belong to one before it."""
    return timedelta() <= at - then <= NEAR


def _seconds(whole: str, fraction: str) -> timedelta:
    return timedelta(seconds=int(whole), microseconds=int(fraction.ljust(6, "0")[:6]))


def _local(year: int | str, month: str, day: str, time: str) -> datetime:
    return datetime.strptime(f"{year}-{_MONTHS[month]}-{day} {time}", "%Y-%m-%d %H:%M:%S")

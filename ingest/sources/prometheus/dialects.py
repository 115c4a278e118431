"""The counters of a drive as each collector names them (dialects.yml): a series of any of them becomes one of node_exporter's of today."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

from ingest.contract.findings import some_of
from ingest.reading.devices import kernel_name

COLUMNS = ("reads", "writes", "read_seconds", "write_seconds", "read_bytes", "written_bytes")
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6}
_UNITS = {"_microseconds": "us", "_seconds": "s"}
FACTS = ("serial", "wwn")
ENCLOSURE, SLOT, GROUP = "drivetail_enclosure", "drivetail_slot", "drivetail_group"
"""Labels of where a drive is, and of its RAID group."""
COLLECTOR = "drivetail_collector"
"""Label that says whose counters they are, of all collectors but node_exporter."""

Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]


class Dialect(BaseModel):
    """How one collector names a drive's counters, and where it says which drive of which host they are of; dialects.yml explains."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    collector: str
    form: str = ""
    host: Names = ("instance",)
    device: Names = ("device",)
    drives: str = ""
    prefix: str = ""
    group: Names = ()
    block_bytes: int = 0
    direction: str = ""
    serial: str = ""
    wwn: str = ""
    time: Literal["s", "ms", "us"] = "s"
    reads: str
    writes: str
    read_seconds: str
    write_seconds: str
    read_bytes: str
    written_bytes: str
    busy: str
    queue: str

    @property
    def title(self) -> str:
        return f"{self.collector} ({self.form})" if self.form else self.collector

    def column_of(self, metric: str, labels: Mapping[str, str]) -> str | None:
        """Which counter a series is; null for none of this dialect."""
        return next((column for one, column in _with_name(metric) if one is self and one.is_way(column, labels)), None)

    def is_way(self, column: str, labels: Mapping[str, str]) -> bool:
        """Whether a series whose name may be that of a column is of its direction, too."""
        return not self.direction or labels.get(self.direction) == way_of(column)

    def names(self, columns: Iterable[str]) -> str:
        """A regular expression of the metrics of these columns."""
        return "|".join(dict.fromkeys(getattr(self, column) for column in columns))

    def per(self, column: str | None, metric: str) -> float:
        """How many of a series' units are one of today's; a time's is the one that its name has."""
        if self.block_bytes and column in ("read_bytes", "written_bytes"):
            return 1 / self.block_bytes
        named = next((unit for word, unit in _UNITS.items() if word in metric), self.time)
        # the mean time of a block is kept as that of a byte
        return PER_SECOND[named] * (self.block_bytes or 1) if column in ("read_seconds", "write_seconds") else 1.0

    def hosts(self, host: str) -> tuple[str, ...]:
        """The labels that may name the host; `host` alone, where a call names another than Prometheus' own."""
        return self.host if host == TODAY.host[0] else (host,)

    def devices(self, device: str) -> tuple[str, ...]:
        """The labels that together name the device; `device` alone, where a call names another than node_exporter's."""
        return self.device if device == TODAY.device[0] else (device,)

    def labels_of_today(self, labels: Mapping[str, str], host: str, device: str) -> dict[str, str]:
        """The labels as node_exporter would give them: `host` and `device`, and the facts of the drive (FACTS)."""
        given = dict(labels)
        if self.collector == TODAY.collector:
            # a rule of the server's may write it as a path
            return given | ({device: kernel_name(given[device])} if device in given else {})
        given.pop(self.direction, None)
        names = [given.pop(label) for label in self.devices(device) if label in given]
        if name := "-".join(names):
            # a drive that is not divided has one name twice
            name = names[0] if len(set(names)) == 1 and re.fullmatch(self.drives or ".*", names[0]) else name
            place = re.fullmatch(self.drives, name) if self.drives else None
            given[device] = self.prefix + name if place else kernel_name(name)
            if place and place.groupdict():
                given |= {ENCLOSURE: self.prefix + place["enclosure"], SLOT: place["slot"]}
        named_by = next((label for label in self.hosts(host) if given.get(label)), host)
        if named_by != host:
            given |= {f"exported_{host}": given[host]} if host in given else {}
            given[host] = given.pop(named_by)
        group = [given.get(label, "") for label in self.group]
        if group and all(group):  # names of groups repeat from array to array
            given[GROUP] = "/".join([given.get(host, ""), *group])
        for fact in FACTS:
            if value := given.pop(getattr(self, fact), ""):
                given[fact] = value
        # the kernel writes naa.5000... where udev writes 0x5000...; t10.... is maker, model and serial
        if wide := re.fullmatch(r"(?:naa\.|0x)([0-9a-f]+)|(eui\..+|nvme\..+|uuid\..+)", given.pop("wwn", "")):
            given["wwn"] = wide[2] or f"0x{wide[1]}"
        return given | {COLLECTOR: self.collector}


class Unread(BaseModel):
    """Series about drives of which no latency can be made."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    collector: str
    metrics: str
    why: str


_TABLE = yaml.safe_load((Path(__file__).parent / "dialects.yml").read_text("utf-8"))
DIALECTS = tuple(Dialect(**one) for one in _TABLE["read"])
UNREAD = tuple(Unread(**one) for one in _TABLE["unread"])
TODAY = DIALECTS[0]
STEMS = sorted({getattr(one, column).partition("(")[0] for one in DIALECTS for column in COLUMNS})
"""A text that stands in the name of every counter, for all of them."""
OTHER_DRIVES = re.sub(r"\?P<\w+>", "?:", "|".join(one.prefix + one.drives for one in DIALECTS if one.drives))
"""A regular expression of our names of drives that are no names of Linux."""
OF_RATES = tuple(one.collector for one in DIALECTS if one.block_bytes)
"""Collectors that give rates and means in place of counters."""
LOOKED_FOR = ", ".join(dict.fromkeys(one.collector for one in DIALECTS))


def way_of(column: str) -> str:
    """The direction of what a column counts."""
    return "read" if column.startswith("read") else "write"


@lru_cache(maxsize=10_000)
def _with_name(metric: str) -> list[tuple[Dialect, str]]:
    """The dialects that have such a metric, and for which column."""
    return [(one, column) for one in DIALECTS for column in COLUMNS if re.fullmatch(getattr(one, column), metric)]


def of_today(metric: str, labels: Mapping[str, str], host: str, device: str) -> tuple[str, dict[str, str], float]:
    """A series as node_exporter of today has it: metric, labels, and how many of its units are one; any other as it is."""
    for dialect, column in _with_name(metric):
        if dialect.is_way(column, labels):
            return getattr(TODAY, column), dialect.labels_of_today(labels, host, device), dialect.per(column, metric)
    return metric, TODAY.labels_of_today(labels, host, device), 1.0


def not_read(names: Iterable[str]) -> list[str]:
    """Whose metrics these are, and why no latency can be made of them."""
    seen = set(names)
    of_none = [(one.collector, one.metrics, one.why) for one in UNREAD]
    others = [
        (one.title, f"{one.busy}|{one.queue}", "a latency needs I/Os and the time they took, and neither is here") for one in DIALECTS
    ]
    said = []
    for collector, pattern, why in (*of_none, *others):
        if found := sorted(name for name in seen if re.fullmatch(pattern, name)):
            seen -= set(found)
            said.append(f"{collector} ({some_of(found, 1)}): {why}")
    return said


def recognised() -> str:
    """A regular expression of all metrics that `not_read` knows."""
    return "|".join([*(one.metrics for one in UNREAD), *dict.fromkeys(name for one in DIALECTS for name in (one.busy, one.queue))])

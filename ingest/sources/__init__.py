"""Every source, a line each: what ingest, the command, its settings and the gate know of it. One module or package here reads it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path, PurePosixPath

    from ingest.raw.landing import Landing
    from ingest.reading.files import SourceFile

COLLECTED = "collected"
"""Not a source of its own: what `drivetail collect` delivers is of several."""


@dataclass(frozen=True)
class Source:
    """A source as its users see it; `docs/sources/NAME.md` is its page.

    help: one line of `drivetail ingest --help`. options: its options, of the command and of an inbox.
    asked_options: the same when it is pulled from a server; null where it only reads files.
    is_self_named: its records name drive and RAID group themselves; what another says is weighed against the rest
    (docs/decisions/0009). is_collected: `drivetail collect` delivers files of it. known_by: the last parts of its path that a file is known
    by in any folder (count); null = its path within what was given.
    """

    name: str
    help: str
    options: tuple[str, ...] = ()
    asked_options: tuple[str, ...] | None = None
    is_self_named: bool = False
    is_collected: bool = False
    known_by: int | None = None

    @property
    def all_options(self) -> tuple[str, ...]:
        """Its options of `drivetail ingest`."""
        return (*self.options, *(self.asked_options or ()))

    def identity(self, file: SourceFile) -> str:
        """Identity of a file, in any folder: known together with its content."""
        return file.name if self.known_by is None else "/".join(file.parts[-self.known_by :])


_TABLE = (
    Source(
        "bundle",
        "folders, archives or files: drive_hours*, drive_events*, drives*, drive_health* as Parquet, CSV or NDJSON",
        is_self_named=True,
    ),
    Source(
        "prometheus",
        "disk counters of node_exporter, OpenTelemetry, Telegraf, ...: a server's address, with --from and --to; or files of samples",
        ("group_label", "device_label", "host_label", "resolution"),
        ("match", "allow_partial"),
    ),
    Source(
        "sysstat",
        "what sar and iostat measured: sadf -j, sadf -d, sar -d, iostat -xt -o JSON",
        ("timezone", "resolution", "date_order", "interval", "began"),
    ),
    # sources that name drives come before those that measure them
    Source("lsblk", "which drives a host has: lsblk --json", is_collected=True, known_by=2),
    Source("smartctl", "make, serial number and age of a drive: smartctl --json -x", is_collected=True, known_by=2),
    Source("mdadm", "which drives are in which array: mdadm --detail, /proc/mdstat", is_collected=True, known_by=2),
    Source("diskstats", "snapshots of /proc/diskstats", ("resolution",), is_collected=True, known_by=2),
    Source(
        "kernel-log",
        "kernel messages about drives: journald's JSON, syslog, dmesg",
        ("timezone", "year", "boot_time"),
        is_collected=True,
    ),
    Source(
        "ceph",
        "OSDs' latencies and drives, peers by CRUSH root and device class: JSON of `ceph`, or a Prometheus server's address",
        (),
        ("match", "allow_partial"),
        known_by=2,
    ),
    Source("zfs", "drives of ZFS pools: zpool iostat -lvpHy -T u, zpool status -sp, zpool_influxdb", ("resolution",), known_by=2),
    Source("arrays", "drives of HPE MSA and Dell PowerVault ME: the array's answers to show disks and show disk-statistics", known_by=2),
    Source("mapping", "an operator's own list of drives (`drivetail map`)"),
    Source("tickets", "CSV files of drive trouble tickets"),
    Source("labels", "drives that a person found slow or healthy, to score detectors"),
    Source("confirm", "probes of suspect drives: what the command that `drivetail confirm` prints wrote"),
    Source("backblaze", "the public daily CSVs of drive stats: inventory, age, and proxies of events", known_by=1),
    Source(
        "fio",
        "results of fio runs on Linux md arrays or drives, as JSON or JSON+: I/Os and latencies of each drive, a run an hour",
        is_self_named=True,
        known_by=3,
    ),
    Source(
        "perseus",
        "Alibaba's fail-slow set in its own layout: cluster_X/host_N/DATE.csv[.gz]",
        ("resolution",),
        is_self_named=True,
        known_by=3,
    ),
)
SOURCES = {source.name: source for source in sorted(_TABLE, key=lambda source: source.name)}
COLLECTED_SOURCES = tuple(source.name for source in _TABLE if source.is_collected)
"""Whose files `drivetail collect` delivers, in the order in which they are taken in."""
SELF_NAMED_SOURCES = frozenset(source.name for source in _TABLE if source.is_self_named)
INBOX_OPTIONS = {
    **{source.name: source.options for source in _TABLE},
    COLLECTED: tuple(dict.fromkeys(option for source in _TABLE if source.is_collected for option in source.options)),
}
"""Options of a source's inbox besides its folder, as in `drivetail ingest`."""
SERVER_OPTIONS = {source.name: source.all_options for source in _TABLE if source.asked_options is not None}
"""The same of a server, by its source."""


class Reader(Protocol):
    """The module of a source. EXPECTED: the files that it reads, for the error where there are none."""

    EXPECTED: str

    def recognise(self, relative: PurePosixPath, absolute: PurePosixPath) -> str | None:
        """The kind of a file, as `ingested_files` shows it, by its path within what was given and its whole path; null for others."""

    def land(self, files: list[SourceFile], landing: Landing) -> None:
        """Read files into a delivery: each by itself (Landing.read), or several combined."""


class Asker(Reader, Protocol):
    """The module of a source that is pulled from servers too."""

    def fetch(
        self,
        urls: Sequence[str],
        warehouse: Path,
        options: Mapping[str, Any],
        first: datetime | None,
        end: datetime | None,
        on_progress: Callable[[str, int, int], None],
    ) -> tuple[list[SourceFile], list[str]]:
        """Pull the hours [first, end), UTC, into files of the warehouse. Returns: these files, and notes. Raises: IngestError."""

    def forget(self, files: Iterable[SourceFile]) -> None:
        """Remove pulled files: they have landed."""


def reader_of(source: str) -> Reader:
    """The module that reads a source, imported now: who only looks at the table does not wait for every parser."""
    return cast("Reader", import_module(f"{__name__}.{source.replace('-', '_')}"))


def asker_of(source: str) -> Asker | None:
    """The same, of a source that is pulled from servers; null of any other."""
    return cast("Asker", reader_of(source)) if source in SERVER_OPTIONS else None


def listing() -> str:
    """The sources with a line each, as `drivetail ingest --help` shows them."""
    lines = [f"{source.name:<12}{source.help}" for source in _TABLE]
    first = _TABLE.index(SOURCES[COLLECTED_SOURCES[0]])
    lines.insert(first, f"{COLLECTED:<12}what `drivetail collect` delivers: {', '.join(COLLECTED_SOURCES)}, each in turn")
    return "\n".join(lines)

"""What an installation is: where its deliveries come in, when its hours begin, who is told. One file, `WAREHOUSE/drivetail.toml`."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from engine.warehouse import Warehouse

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# named here, not imported from ingest: a scheduler reads the settings every minute and must not load a data frame library for it
SOURCES = (
    "backblaze",
    "bundle",
    "diskstats",
    "fio",
    "kernel-log",
    "labels",
    "lsblk",
    "mapping",
    "mdadm",
    "perseus",
    "prometheus",
    "smartctl",
    "sysstat",
    "tickets",
)
COLLECTED = "collected"
"""Not a source of its own: what `drivetail collect` delivers is of several."""
DRIVE_KINDS = ("disk", "ssd")
RESOLUTIONS = ("1m", "5m", "15m")
OPTIONS = {
    "diskstats": ("resolution",),
    "kernel-log": ("timezone", "year", "boot_time"),
    "perseus": ("resolution",),
    "prometheus": ("group_label", "device_label", "host_label", "resolution"),
    "sysstat": ("timezone", "resolution", "date_order", "interval", "began"),
    COLLECTED: ("resolution", "timezone", "year", "boot_time"),
}
"""What else an inbox of a source can be told, as `drivetail ingest` can; a source that is not here takes nothing."""
SERVER_OPTIONS = {"prometheus": (*OPTIONS["prometheus"], "match", "allow_partial")}
"""The same of a server, by its source."""

METRICS_SUFFIX = ".prom"
"""Of the files that node_exporter reads."""

Section = TypeVar("Section", bound="DataclassInstance")

TEMPLATE = """\
# One drivetail installation. Changes take effect within a minute; `drivetail inbox` says whether the file is right.

[schedule]
start = {start}     # the first hour (UTC) that is run; hours missed since are caught up, one run each
wait_minutes = 10                # how long after an hour has ended its run waits for uploads
retries = 3                      # of a step that failed, waiting retry_minutes, twice that, four times that
retry_minutes = 2

[alarms]
fresh_hours = 3                  # no newer hour published for this long turns the run red

# Written after every build, for Prometheus' node_exporter: docs/monitoring.md.
# [metrics]
# file = "/var/lib/prometheus/node-exporter/drivetail.prom"

# Who is notified of failures and slow drives: any Airflow notifier, with {{{{ drivetail_message }}}} in its texts (docs/airflow.md).
# [[notify]]
# notifier = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
# arguments = {{to = "storage@example.org", subject = "drivetail", html_content = "{{{{ drivetail_message | e }}}}"}}
# [[notify]]
# notifier = "airflow.providers.http.notifications.http.HttpNotifier"   # a webhook; the connection "webhook" has its host and path
# arguments = {{http_conn_id = "webhook", endpoint = "{{{{ conn.webhook.password }}}}", json = {{text = "{{{{ drivetail_message }}}}"}}}}

# Where deliveries come in; as many inboxes as there are feeds, each with a name of its own.
[[inboxes]]
name = "fleet"
source = "{source}"
folder = "{folder}"
# entries = "*"                  # what in the folder is one delivery; "*/*" where each array has a folder
# settle_minutes = 2             # an entry that changed within this time is still being written
# kind = "ssd"                   # what the drives are, where the delivery does not say
# min_coverage = 0.5             # share of an hour that must be observed for the hour to count
# resolution = "5m"              # keep what was measured within the hour, too (diskstats, sysstat, perseus, prometheus, collected)
# timezone = "Europe/Berlin"     # of local times (sysstat, kernel-log, collected)
# year = 2026                    # of the first line of logs that give none (kernel-log, collected)

# What `drivetail collect` delivers, from as many hosts as ship their folders there.
# [[inboxes]]
# name = "hosts"
# source = "collected"
# folder = "/srv/collected"

# Servers that are asked for every hour. Credentials are in the environment, never here: docs/sources/prometheus.md.
# [[servers]]
# name = "metrics"
# url = "http://prometheus:9090"
# hours = 2                      # how many, up to the end of the run's hour: of the one before, scrapes may have come late
# group_label = ["pool"]         # label that names a drive's RAID group; several, together
# device_label = "device"
# host_label = "instance"
# match = ['job="node"']         # take only series with this label
# resolution = "5m"
# kind = "ssd"
# min_coverage = 0.5
# allow_partial = true           # take answers that the server itself calls incomplete
"""


class SettingsError(ValueError):
    """drivetail.toml cannot be used; the message names the key and says what is allowed."""


@dataclass(frozen=True)
class Inbox:
    """A folder where deliveries of one source come in; see TEMPLATE."""

    name: str
    source: str
    folder: Path
    entries: str = "*"
    settle_minutes: float = 2
    kind: str | None = None
    min_coverage: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Those of OPTIONS that are given."""


@dataclass(frozen=True)
class Server:
    """A server that is asked for every hour; see TEMPLATE. `hours`: how many before the end of a run's hour."""

    name: str
    url: str
    source: str = "prometheus"
    hours: int = 2
    kind: str | None = None
    min_coverage: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Those of SERVER_OPTIONS that are given."""


@dataclass(frozen=True)
class Schedule:
    """When hours are run; `end` is for a fleet whose telemetry has ended. Instants are UTC without zone."""

    start: datetime = datetime(2026, 1, 1)
    end: datetime | None = None
    wait_minutes: float = 10
    retries: int = 3
    retry_minutes: float = 2


@dataclass(frozen=True)
class Alarms:
    """When missing hours turn the run red."""

    fresh_hours: float = 3


@dataclass(frozen=True)
class Metrics:
    """Where the metrics are written after every build; nowhere without a file."""

    file: Path | None = None


@dataclass(frozen=True)
class Settings:
    """An installation. `notify`: Airflow notifiers as (import path, arguments)."""

    schedule: Schedule = Schedule()
    alarms: Alarms = Alarms()
    metrics: Metrics = Metrics()
    inboxes: tuple[Inbox, ...] = ()
    servers: tuple[Server, ...] = ()
    notify: tuple[tuple[str, dict[str, Any]], ...] = field(default=())

    @property
    def feeds(self) -> tuple[Inbox | Server, ...]:
        """Where deliveries come from."""
        return (*self.inboxes, *self.servers)


def settings_file(warehouse: Warehouse) -> Path:
    """Where the settings of a warehouse lie."""
    return warehouse.root / "drivetail.toml"


def write_settings(warehouse: Warehouse, folder: Path, source: str, start: datetime) -> Path:
    """Write the settings of a new installation. Raises: SettingsError where there are some already."""
    path = settings_file(warehouse)
    warehouse.create()
    text = TEMPLATE.format(start=f"{start:%Y-%m-%dT%H:%M:%SZ}", source=source, folder=str(folder).replace("\\", "\\\\").replace('"', '\\"'))
    try:
        # whoever is told may be named with what only they should know
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
            handle.write(text)
    except FileExistsError as error:
        raise SettingsError(f"{path}: is there already; edit it, or remove it first") from error
    return path


def load_settings(warehouse: Warehouse) -> Settings:
    """Read the settings of a warehouse. Raises: SettingsError."""
    path = settings_file(warehouse)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(f"{path}: no such file; `drivetail init --inbox FOLDER` writes one") from error
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot be read ({error.strerror}); it belongs to the user who runs drivetail, and to nobody else"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: {error}; see docs/airflow.md") from error
    try:
        unknown = sorted(set(content) - {"schedule", "alarms", "metrics", "inboxes", "servers", "notify"})
        if unknown:
            raise SettingsError(f"unknown section {unknown[0]!r}; there are schedule, alarms, metrics, inboxes, servers and notify")
        settings = Settings(
            _section(Schedule, "schedule", content.get("schedule", {})),
            _section(Alarms, "alarms", content.get("alarms", {})),
            _metrics(content.get("metrics", {}), path.parent),
            tuple(_inbox(entry, path.parent) for entry in content.get("inboxes", [])),
            tuple(map(_server, content.get("servers", []))),
            tuple((str(entry["notifier"]), dict(entry.get("arguments", {}))) for entry in content.get("notify", [])),
        )
        names = [feed.name for feed in settings.feeds]
        if len(set(names)) < len(names):
            raise SettingsError(f"two inboxes or servers are named {max(names, key=names.count)!r}; give each a name of its own")
        return settings
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error
    except (TypeError, KeyError, AttributeError) as error:
        raise SettingsError(f"{path}: {error}; see docs/airflow.md") from error


def _metrics(values: dict[str, Any], root: Path) -> Metrics:
    file = values.get("file")
    if file is not None and not (_is_text(file) and Path(file).suffix == METRICS_SUFFIX):
        raise SettingsError(f"[metrics] file is {file!r}; give a file that ends in {METRICS_SUFFIX}: node_exporter reads no other")
    # a relative file lies beside this one
    return _section(Metrics, "metrics", {**values, **({"file": root / file} if file else {})})


def _inbox(values: dict[str, Any], root: Path) -> Inbox:
    where = _named("inbox", values, ("name", "source", "folder"))
    _one_of(where, "source", values["source"], (*SOURCES, COLLECTED))
    # a relative folder lies beside the file
    return _feed(Inbox, where, {**values, "folder": root / values["folder"]}, OPTIONS.get(values["source"], ()))


def _server(values: dict[str, Any]) -> Server:
    where = _named("server", values, ("name", "url"))
    source = values.get("source", Server.source)
    _one_of(where, "source", source, tuple(SERVER_OPTIONS))
    _check_address(where, values["url"])
    return _feed(Server, where, {**values, "url": values["url"].rstrip("/")}, SERVER_OPTIONS[source])


def _named(what: str, values: dict[str, Any], needed: Collection[str]) -> str:
    """How errors call an inbox or a server."""
    missing = [name for name in needed if not values.get(name)]
    if missing:
        name = f" {values['name']}" if values.get("name") else ""
        raise SettingsError(f"{what}{name} has no {missing[0]}; each needs {', '.join(needed)}")
    return f"{what} {values['name']}"


def _feed(kind: type[Section], where: str, values: dict[str, Any], options: Collection[str]) -> Section:
    """An inbox or a server; `options`: what its source can be told beside."""
    own = [each.name for each in fields(kind) if each.name != "options"]
    for key, value in values.items():
        if key not in (*own, *options):
            source = values.get("source", Server.source)
            raise SettingsError(f"{where}: {key!r} is nothing that source {source!r} takes; there are {', '.join((*own, *options))}")
        if key in ALLOWED and not ALLOWED[key][0](value):
            raise SettingsError(f"{where}: {key} is {value!r}; give {ALLOWED[key][1]}")
    if ("interval" in values) != ("began" in values) and "interval" in options:
        raise SettingsError(f"{where}: interval and began go together: how iostat was run, where its own times are missing")
    # an instant of TOML, as --boot-time and --began have it
    given = {key: value.isoformat() if isinstance(value, datetime) else value for key, value in values.items() if key in options}
    return _section(kind, where, {**{key: value for key, value in values.items() if key in own}, "options": given})


def _one_of(where: str, key: str, value: object, allowed: Collection[object]) -> None:
    if value not in allowed:
        raise SettingsError(f"{where}: {key} is {value!r}; give one of {', '.join(map(str, allowed))}")


def _check_address(where: str, url: object) -> None:
    """Refuse what is no server's address. One with credentials is not even shown."""
    if "@" in str(url):
        raise SettingsError(f"{where}: url holds credentials, which belong in the environment (docs/sources/prometheus.md)")
    try:
        parts = urlsplit(str(url))
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment:
        raise SettingsError(f"{where}: url is {url!r}; give the server's address, such as http://prometheus:9090")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_zone(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(ZoneInfo(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


_A_LABEL = (_is_text, "the name of a label")
_AN_INSTANT = (
    lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    "an instant with its offset, such as 2026-01-05T09:00:00Z",
)
ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "kind": (lambda value: value in DRIVE_KINDS, f"one of {', '.join(DRIVE_KINDS)}"),
    "min_coverage": (lambda value: _is_amount(value) and value <= 1, "a share between 0 and 1"),
    "hours": (lambda value: _is_whole(value, 1, 24 * 365), "a whole number of hours, 1 or more"),
    "resolution": (lambda value: value in RESOLUTIONS, f"one of {', '.join(RESOLUTIONS)}"),
    "timezone": (_is_zone, "a time zone, such as Europe/Berlin or UTC"),
    "date_order": (lambda value: value in ("mdy", "dmy"), "mdy (month first) or dmy (day first)"),
    "year": (lambda value: _is_whole(value, 1, 9999), "a year, such as 2026"),
    "interval": (
        lambda value: isinstance(value, str) and re.fullmatch(r"\d{1,4}[sm]?", value) is not None,
        "seconds or minutes, such as 10s or 1m",
    ),
    "boot_time": _AN_INSTANT,
    "began": _AN_INSTANT,
    "group_label": (_is_texts, 'a list of labels, such as ["pool"]'),
    "device_label": _A_LABEL,
    "host_label": _A_LABEL,
    "match": (_is_texts, """a list, such as ['job="node"']"""),
    "allow_partial": (lambda value: isinstance(value, bool), "true or false"),
}
"""What a setting of an inbox or a server may be, and how to say so."""


def _section(kind: type[Section], name: str, values: dict[str, Any]) -> Section:
    """A section of the file, its instants UTC without zone and its amounts no less than 0."""
    known = [each.name for each in fields(kind)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise SettingsError(f"[{name}] has an unknown key {unknown[0]!r}; there are {', '.join(known)}")
    for key, value in values.items():
        if key in ("start", "end"):
            if not isinstance(value, datetime) or value.tzinfo is None:
                raise SettingsError(f"[{name}] {key} is {value}; give an instant with its offset, such as 2026-01-05T00:00:00Z")
            values = {**values, key: value.astimezone(UTC).replace(tzinfo=None)}
        elif (key.endswith(("_hours", "_minutes")) or key == "retries") and not _is_amount(value):
            raise SettingsError(f"[{name}] {key} is {value!r}; give a number of 0 or more")
    return kind(**values)


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def this_hour() -> datetime:
    """The hour that has begun last, UTC without zone."""
    return datetime.now(UTC).replace(tzinfo=None, minute=0, second=0, microsecond=0)

"""Settings of an installation: where deliveries come in, when hours begin, who is notified. One file, `WAREHOUSE/drivetail.toml`."""

from __future__ import annotations

import getpass
import json
import os
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails

from drivetail.service import SettingsError
from drivetail.service.slow_hosts import LEAST_SECONDS, MOST_SECONDS, seconds_of
from engine.thresholds import MEMORY, ThresholdError, read_settings
from engine.warehouse import Warehouse
from ingest.contract.values import plain_address
from ingest.sources import COLLECTED, INBOX_OPTIONS, SERVER_OPTIONS, SOURCES

DriveKind = Literal["disk", "ssd"]
Resolution = Literal["1m", "5m", "15m"]

METRICS_SUFFIX = ".prom"
"""Ending of the files that node_exporter reads."""

TEMPLATE = """\
# One drivetail installation. Changes take effect within a minute; `drivetail inbox` says whether the file is right.

[schedule]
start = {start}     # first hour (UTC) to run; missed hours since are caught up, one run each
wait_minutes = 10                # how long after an hour has ended its run waits for uploads
retries = 3                      # of a failed step, after retry_minutes, twice that, four times that
retry_minutes = 2

[alarms]
fresh_hours = 3                  # no newer hour published for this long turns the run red

# Written after every build, for Prometheus' node_exporter: docs/monitoring.md.
# [metrics]
# file = "/var/lib/prometheus/node-exporter/drivetail.prom"

# Written after every build, for `drivetail collect --finer` on the hosts: docs/sources/collect.md.
# [collect]
# file = "/srv/collected/slow_hosts.json"
# finer_when_slow = "10s"          # how often a host looks while one of its drives has an open alert
# finer_hours = 24                 # at most so long per alert
# finer_megabytes = 50             # and at most so much

# Default of `drivetail decide --by`. Without it: the login name.
# [decisions]
# by = "storage on call"

# Who is notified of slow drives, and under Airflow of failures: Apprise's URLs (docs/alerts.md), or $NAME of an environment variable
# that holds one. Each receiver gets each alert once.
# [[notify]]
# name = "storage on call"
# url = "$DRIVETAIL_PAGER"
# [[notify]]
# name = "storage by mail"
# url = "mailto://mail.example.org:25?from=drivetail@example.org&to=storage@example.org"

# Thresholds of slow drives, alerts, candidates and status; the next build applies them: docs/thresholds.md.
# [thresholds]
# alert_slow_hours = 3           # slow hours of a drive within alert_window_hours that are worth an alert

# Limits of each of your own models: models/custom/README.md.
# [custom]
# seconds = 30
# memory = "1GB"

# Limits of reading each delivered file: docs/safety.md.
# [deliveries]
# seconds = 900
# memory = "8GB"

# Where deliveries arrive: an inbox for each feed, each with its own name.
{inbox}
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

# Servers that are pulled every hour. Credentials are in the environment, never here: docs/sources/prometheus.md.
{server}
# hours = 2                      # how many to pull, up to the end of the run's hour; more than 1 picks up late scrapes
# group_label = ["pool"]         # label that names a drive's RAID group; several, together
# device_label = "device"
# host_label = "instance"
# match = ['job="node"']         # take only series with this label
# resolution = "5m"
# kind = "ssd"
# min_coverage = 0.5
# allow_partial = true           # take answers that the server itself calls incomplete
"""


def _path(value: object, info: ValidationInfo) -> Path:
    """A path of the file; a relative one is relative to the file's folder."""
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError("give a path")
    return (info.context or Path()) / value


def _apart(folder: Path, info: ValidationInfo) -> Path:
    """An inbox that is no part of the warehouse: what lands would arrive again."""
    if info.context is not None and (why := overlap(folder, info.context)):
        raise ValueError(f"{why}; give a folder apart from it")
    return folder


def overlap(folder: Path, warehouse: Path) -> str | None:
    """How an inbox and the warehouse's folder lie in each other; null where they do not."""
    inner, outer = folder.resolve(), warehouse.resolve()
    if inner.is_relative_to(outer):
        return f"it lies in the warehouse {warehouse}"
    return f"the warehouse {warehouse} lies in it" if outer.is_relative_to(inner) else None


def _metrics_file(path: Path) -> Path:
    if path.suffix != METRICS_SUFFIX:
        raise ValueError(f"give a file that ends in {METRICS_SUFFIX}: node_exporter reads no others")
    return path


def _finer(text: str) -> str:
    seconds = seconds_of(text)
    if seconds is None or not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise ValueError(f"give {LEAST_SECONDS}s to {MOST_SECONDS // 60}m")
    return text


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("give a time zone, such as Europe/Berlin or UTC") from error
    return name


def server_address(url: str) -> str:
    """A server's address as it is kept. Raises: ValueError, which shows no secret, for credentials in it and for what follows it."""
    if "@" in url:
        raise ValueError("it holds credentials, which belong in the environment (docs/sources/prometheus.md)")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment:
        raise ValueError(f"{plain_address(url)!r}; give the server's address, such as http://prometheus:9090, and nothing after it")
    return url.rstrip("/")


def _receiver_url(url: str) -> str:
    if not re.fullmatch(r"\$[A-Za-z_]\w*|[A-Za-z][\w+.-]*://\S+", url):
        raise ValueError('give one of Apprise\'s URLs, such as "slack://...", or "$NAME" of an environment variable that holds one')
    return url


Text = Annotated[str, Field(min_length=1)]
Amount = Annotated[float, Field(ge=0)]
Location = Annotated[Path, BeforeValidator(_path)]
Folder = Annotated[Location, AfterValidator(_apart)]
Utc = Annotated[AwareDatetime, AfterValidator(lambda at: at.astimezone(UTC).replace(tzinfo=None))]


class _Section(BaseModel):
    """Types are those of TOML, unconverted; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Feed(_Section):
    """Shared by inboxes and servers: a name, the drives' kind, and `options`, those settings that only some sources have a use for."""

    name: Text
    source: str
    kind: DriveKind | None = None
    min_coverage: Annotated[float, Field(ge=0, le=1)] | None = None
    resolution: Resolution | None = None
    timezone: Annotated[str, AfterValidator(_zone)] | None = None
    date_order: Literal["mdy", "dmy"] | None = None
    year: Annotated[int, Field(ge=1, le=9999)] | None = None
    interval: Annotated[str, Field(pattern=r"^\d{1,4}[sm]?$")] | None = None
    boot_time: AwareDatetime | None = None
    began: AwareDatetime | None = None
    group_label: list[Text] | None = None
    device_label: Text | None = None
    host_label: Text | None = None
    match: list[Text] | None = None
    allow_partial: bool | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Those given, as `drivetail ingest` takes them: instants as text."""
        given = {name: getattr(self, name) for name in _OPTIONAL if name in self.model_fields_set}
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items()}

    def _check(self, allowed: dict[str, tuple[str, ...]], sources: tuple[str, ...]) -> None:
        """Raises: ValueError for an unknown source, or an option that the source has no use for."""
        if self.source not in sources:
            raise ValueError(f"source is {self.source!r}; give one of {', '.join(sources)}")
        takes = allowed.get(self.source, ())
        for name in self.options:
            if name not in takes:
                own = [each for each in type(self).model_fields if each not in _OPTIONAL]
                raise ValueError(f"source {self.source!r} does not take {name!r}; there are {', '.join((*own, *takes))}")
        if "interval" in takes and (self.interval is None) != (self.began is None):
            raise ValueError("interval and began go together: how iostat was run, where its own times are missing")


_OPTIONAL = tuple(name for name in _Feed.model_fields if name not in ("name", "source", "kind", "min_coverage"))


class Inbox(_Feed):
    """A folder where deliveries of one source come in; see TEMPLATE."""

    folder: Folder
    entries: Text = "*"
    settle_minutes: Amount = 2

    @model_validator(mode="after")
    def _takes(self) -> Inbox:
        self._check(INBOX_OPTIONS, (*SOURCES, COLLECTED))
        return self


class Server(_Feed):
    """A server that is pulled every hour; see TEMPLATE. `hours`: how many before the end of a run's hour."""

    url: Annotated[str, AfterValidator(server_address)]
    source: str = "prometheus"
    hours: Annotated[int, Field(ge=1, le=24 * 365)] = 2

    @model_validator(mode="after")
    def _takes(self) -> Server:
        self._check(SERVER_OPTIONS, tuple(SERVER_OPTIONS))
        return self


class Schedule(_Section):
    """When hours are run; `end` is for a fleet whose telemetry has ended. Instants are UTC without zone."""

    start: Utc = datetime(2026, 1, 1)
    end: Utc | None = None
    wait_minutes: Amount = 10
    retries: Annotated[int, Field(ge=0)] = 3
    retry_minutes: Amount = 2


class Alarms(_Section):
    """When missing hours turn the run red."""

    fresh_hours: Amount = 3


class Metrics(_Section):
    """Where the metrics are written after every build; nowhere without a file."""

    file: Annotated[Location, AfterValidator(_metrics_file)] | None = None


class Collect(_Section):
    """Which hosts look more often while one of their drives has an open alert, and how often; none without a file."""

    file: Location | None = None
    finer_when_slow: Annotated[str, AfterValidator(_finer)] = "10s"
    finer_hours: Annotated[int, Field(ge=1, le=28 * 24)] = 24
    finer_megabytes: Annotated[int, Field(ge=1, le=10_000)] = 50

    @property
    def finer_seconds(self) -> int:
        return seconds_of(self.finer_when_slow) or 0

    @model_validator(mode="after")
    def _names_its_file(self) -> Collect:
        if self.file is None and self.model_fields_set:
            raise ValueError("file is missing; give the file that the hosts get")
        return self


class Limited(_Section):
    """Limits of each of the analysts' own models, or of reading each file; null: as engine.thresholds.LIMITS has it."""

    seconds: Annotated[float, Field(gt=0)] | None = None
    memory: Annotated[str, Field(pattern=f"^{MEMORY}$")] | None = None


class Decisions(_Section):
    """Defaults of `drivetail decide`."""

    by: Text | None = None


class Receiver(_Section):
    """Who is notified: a name, which everything that is printed and kept goes by, and the address of Apprise's, which is a secret."""

    name: Text
    url: Annotated[str, AfterValidator(_receiver_url)]

    def address(self) -> str:
        """The URL, read from the environment where it is `$NAME`. Raises: KeyError."""
        return os.environ[self.url[1:]] if self.url.startswith("$") else self.url


class Settings(_Section):
    """An installation."""

    schedule: Schedule = Schedule()
    alarms: Alarms = Alarms()
    metrics: Metrics = Metrics()
    collect: Collect = Collect()
    decisions: Decisions = Decisions()
    custom: Limited = Limited()
    deliveries: Limited = Limited()
    inboxes: list[Inbox] = []
    servers: list[Server] = []
    notify: list[Receiver] = []
    thresholds: dict[str, Any] = {}

    @property
    def feeds(self) -> list[Inbox | Server]:
        return [*self.inboxes, *self.servers]

    @model_validator(mode="after")
    def _names_differ(self) -> Settings:
        for what, named in (("inboxes or servers", self.feeds), ("receivers", self.notify)):
            names = [each.name for each in named]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"two {what} are named {name!r}; give each a name of its own")
        return self


def settings_file(warehouse: Warehouse) -> Path:
    """Path of a warehouse's settings."""
    return warehouse.settings


def write_settings(warehouse: Warehouse, folder: Path | None, source: str, start: datetime, url: str | None = None) -> Path:
    """Write the settings of a new installation with an inbox, a server, or both. Raises: SettingsError where there are some already, or
    the inbox and the warehouse lie in each other.
    """
    path = settings_file(warehouse)
    if folder is not None and (why := overlap(folder, warehouse.root)):
        raise SettingsError(f"{folder}: {why}; give an inbox apart from it")
    warehouse.create()
    # a text of JSON is one of TOML
    inbox = ["[[inboxes]]", 'name = "fleet"', f"source = {json.dumps(source)}", f"folder = {json.dumps(str(folder or '/srv/deliveries'))}"]
    server = ["[[servers]]", 'name = "metrics"', f"url = {json.dumps(url or 'http://prometheus:9090')}"]
    text = TEMPLATE.format(
        start=f"{start:%Y-%m-%dT%H:%M:%SZ}",
        inbox="\n".join(line if folder else f"# {line}" for line in inbox),
        server="\n".join(line if url else f"# {line}" for line in server),
    )
    try:
        # receivers may be named with a secret
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
            handle.write(text)
    except FileExistsError as error:
        raise SettingsError(f"{path}: already exists; edit it, or remove it first") from error
    return path


def load_settings(warehouse: Warehouse) -> Settings:
    """Read the settings of a warehouse. Raises: SettingsError."""
    path = settings_file(warehouse)
    try:
        content = read_settings(warehouse)
    except FileNotFoundError as error:
        raise SettingsError(
            f"{path}: no such file; `drivetail init --inbox FOLDER`, or `--server URL` of a Prometheus, writes one"
        ) from error
    except ThresholdError as error:
        raise SettingsError(str(error)) from error
    try:
        return Settings.model_validate(content, context=path.parent)
    except ValidationError as error:
        # without its cause, which shows the value of a url
        raise SettingsError(f"{path}: {_sentence(error.errors()[0], content)}") from None


AN_INSTANT = "give an instant with its offset, such as 2026-01-05T00:00:00Z"
HINTS = {
    "datetime_type": AN_INSTANT,
    "timezone_aware": AN_INSTANT,
    "bool_type": "give true or false",
    "list_type": 'give a list, such as ["pool"]; of inboxes and servers write [[...]]',
    "string_pattern_mismatch": "give seconds or minutes, such as 10s or 1m",
}
"""Advice on an error of pydantic's that gives none."""


def _sentence(error: ErrorDetails, content: Any) -> str:
    """An error of pydantic as: which key, what was found, what to do."""
    place = []
    for part in error["loc"]:
        content = content[part] if isinstance(part, int) or part in content else None
        # an inbox and a server by their names
        place.append(str(content.get("name", part + 1) if isinstance(part, int) and isinstance(content, dict) else part))
    where = ".".join(place) or "the file"
    if error["type"] == "missing":
        return f"{where} is missing"
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; see docs/airflow.md"
    message = HINTS.get(error["type"], error["msg"].removeprefix("Value error, ").replace("Input should be", "it should be", 1))
    # a url may hold credentials
    is_shown = isinstance(error["input"], str | int | float | date) and "url" not in place
    return f"{where} is {error['input']!r}; {message}" if is_shown else f"{where}: {message}"


def decides_here(warehouse: Warehouse) -> str:
    """Who decides on drives: `by` of the settings, else the login name. Raises: SettingsError for settings that cannot be used."""
    named = load_settings(warehouse).decisions.by if settings_file(warehouse).exists() else None
    return named or getpass.getuser()


def this_hour() -> datetime:
    """The hour that has begun last, UTC without zone."""
    return datetime.now(UTC).replace(tzinfo=None, minute=0, second=0, microsecond=0)

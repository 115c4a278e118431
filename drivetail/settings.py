"""What an installation is: where its deliveries come in, when its hours begin, who is told. One file, `WAREHOUSE/drivetail.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from drivetail.warehouse import Warehouse

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

Section = TypeVar("Section")

TEMPLATE = """\
# One drivetail installation. Changes take effect within a minute; `drivetail inbox` says whether the file is right.

[schedule]
start = {start}     # the first hour (UTC) that is run; hours missed since are caught up, one run each
wait_minutes = 10                # how long after an hour has ended its run waits for uploads
retries = 3                      # of a step that failed, waiting retry_minutes, twice that, four times that
retry_minutes = 2

[alarms]
late_hours = 3                   # a delivery whose last hour lies this far before the hour being run is named
fresh_hours = 3                  # no newer hour published for so long is an alarm

# Who is told, beside the log: any Airflow notifier; its texts may use {{{{ drivetail_message }}}}. See docs/airflow.md.
# [[notify]]
# notifier = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
# arguments = {{to = "storage@example.org", subject = "drivetail", html_content = "{{{{ drivetail_message }}}}"}}
# [[notify]]
# notifier = "airflow.providers.http.notifications.http.HttpNotifier"   # a webhook; the connection "webhook" has its host
# arguments = {{http_conn_id = "webhook", endpoint = "hooks/storage", json = {{text = "{{{{ drivetail_message }}}}"}}}}

# Where deliveries come in; as many inboxes as there are feeds, each with a name of its own.
[[inboxes]]
name = "fleet"
source = "{source}"
folder = "{folder}"
# entries = "*"                  # what in the folder is one delivery; "*/*" where each array has a folder
# settle_minutes = 2             # an entry that changed within this time is still being written
# kind = "ssd"                   # what the drives are, where the delivery does not say
# min_coverage = 0.5             # share of an hour that must be observed for the hour to count
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
    """From when on late or missing data are told."""

    late_hours: float = 3
    fresh_hours: float = 3


@dataclass(frozen=True)
class Settings:
    """An installation. `notify`: Airflow notifiers as (import path, arguments)."""

    schedule: Schedule = Schedule()
    alarms: Alarms = Alarms()
    inboxes: tuple[Inbox, ...] = ()
    notify: tuple[tuple[str, dict[str, Any]], ...] = field(default=())


def settings_file(warehouse: Warehouse) -> Path:
    """Where the settings of a warehouse lie."""
    return warehouse.root / "drivetail.toml"


def write_settings(warehouse: Warehouse, folder: Path, source: str, start: datetime) -> Path:
    """Write the settings of a new installation. Raises: SettingsError where there are some already."""
    path = settings_file(warehouse)
    warehouse.create()
    text = TEMPLATE.format(start=f"{start:%Y-%m-%dT%H:%M:%SZ}", source=source, folder=str(folder).replace("\\", "\\\\").replace('"', '\\"'))
    try:
        with path.open("x", encoding="utf-8") as handle:
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
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: {error}; see docs/airflow.md") from error
    try:
        unknown = sorted(set(content) - {"schedule", "alarms", "inboxes", "notify"})
        if unknown:
            raise SettingsError(f"unknown section {unknown[0]!r}; there are schedule, alarms, inboxes and notify")
        inboxes = tuple(_inbox(entry, path.parent) for entry in content.get("inboxes", []))
        names = [inbox.name for inbox in inboxes]
        if len(set(names)) < len(names):
            raise SettingsError(f"two inboxes are named {max(names, key=names.count)!r}; give each a name of its own")
        return Settings(
            _section(Schedule, "schedule", content.get("schedule", {})),
            _section(Alarms, "alarms", content.get("alarms", {})),
            inboxes,
            tuple((str(entry["notifier"]), dict(entry.get("arguments", {}))) for entry in content.get("notify", [])),
        )
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error
    except (TypeError, KeyError, AttributeError) as error:
        raise SettingsError(f"{path}: {error}; see docs/airflow.md") from error


def _inbox(values: dict[str, Any], root: Path) -> Inbox:
    for name in ("name", "source", "folder"):
        if not values.get(name):
            raise SettingsError(f"an inbox without {name}; each needs name, source and folder")
    if values["source"] not in SOURCES:
        raise SettingsError(f"inbox {values['name']}: source is {values['source']!r}; give one of {', '.join(SOURCES)}")
    if values.get("kind") not in (None, *DRIVE_KINDS):
        raise SettingsError(f"inbox {values['name']}: kind is {values['kind']!r}; give one of {', '.join(DRIVE_KINDS)}")
    if not 0 <= values.get("min_coverage", 0) <= 1:
        raise SettingsError(f"inbox {values['name']}: min_coverage is {values['min_coverage']}; give a share between 0 and 1")
    # a relative folder lies beside the file
    return _section(Inbox, f"inboxes, {values['name']}", {**values, "folder": root / values["folder"]})


def _section(kind: type[Section], name: str, values: dict[str, Any]) -> Section:
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
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

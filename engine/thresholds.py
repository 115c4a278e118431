"""Thresholds of one installation: section `[thresholds]` of `WAREHOUSE/drivetail.toml` (docs/thresholds.md).

Only those of `settable` in dbt_project.yml can be set. A change of one that stored days are computed with computes every day again
(Models.for_thresholds); of the others, none.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from engine.warehouse import PROJECT, Warehouse
from ingest.reading.limits import Limits

KINDS = ("disk", "ssd", "nvme", "unknown")
"""Kinds that may have thresholds of their own."""


class ThresholdError(ValueError):
    """drivetail.toml cannot be read, or one of its thresholds not be used; the message names file, key and value, and what is allowed."""


@cache
def project_settings(project: Path = PROJECT) -> dict[str, Any]:
    """A project's dbt_project.yml."""
    # libyaml's parser: PyYAML's own takes ten times as long, and each command asks
    settings: dict[str, Any] = yaml.load((project / "dbt_project.yml").read_text(encoding="utf-8"), yaml.CSafeLoader) or {}
    return settings


@cache
def variables(project: Path = PROJECT) -> dict[str, Any]:
    """The models' thresholds and lists as dbt_project.yml has them, by name. project: folder of that file."""
    stated: dict[str, Any] = project_settings(project)["vars"]
    return stated


MEMORY = r"\d{1,6}(MB|GB)"
"""An amount of memory as the settings have it."""


LIMITS = {"custom": Limits(30.0, "1GB"), "deliveries": Limits(900.0, "8GB")}
"""Limits of each custom model and each of its tests, and of each delivered file, where the settings have no section that says others."""


def limits_of(warehouse: Warehouse, section: str) -> Limits:
    """The limits of a section of LIMITS. Raises: ThresholdError where the settings have none that can be used."""
    try:
        limits = replace(LIMITS[section], **read_settings(warehouse).get(section, {}))
        if limits.seconds > 0 and re.fullmatch(MEMORY, limits.memory):
            return limits
    except FileNotFoundError:
        return LIMITS[section]
    except TypeError:
        pass
    raise ThresholdError(f'{warehouse.settings}: {section}: give seconds and memory, such as seconds = 30 and memory = "1GB"')


def own_thresholds(warehouse: Warehouse) -> dict[str, Any]:
    """Thresholds of a warehouse's settings, by name; nothing without settings. Raises: ThresholdError."""
    try:
        own: dict[str, Any] = read_settings(warehouse)["thresholds"]
        return own
    except FileNotFoundError:
        return {}


def read_settings(warehouse: Warehouse) -> dict[str, Any]:
    """Contents of `drivetail.toml`; only the thresholds are checked. Raises: FileNotFoundError, ThresholdError."""
    path = warehouse.settings
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return content | {"thresholds": checked(content.get("thresholds", {}))}
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ThresholdError(f"{path}: cannot be read ({error.strerror}); it must belong to the user who runs drivetail") from error
    except tomllib.TOMLDecodeError as error:
        raise ThresholdError(f"{path}: {error}; see docs/airflow.md") from error
    except ValueError as error:
        raise ThresholdError(f"{path}: {error}") from error


def checked(given: object) -> dict[str, Any]:
    """The section as values of dbt's vars, of their types. Raises: ValueError that names the key and says what is allowed."""
    if not isinstance(given, dict):
        raise ValueError("thresholds: write a section, [thresholds]")
    return {name: _checked(name, value) for name, value in _by_kind(given).items()}


def _by_kind(given: dict[str, Any]) -> dict[str, Any]:
    """The section with each threshold that has one for each kind of drive spelled out as NAME_KIND.

    It is given as NAME = {disk = 1}, as NAME = 1 for all kinds, or as NAME = 1 in the section of a kind, [thresholds.disk].
    """
    found: dict[str, Any] = {}
    spelled = [(name, value) for name, value in given.items() if name not in KINDS]
    for kind in (kind for kind in KINDS if kind in given):
        if not isinstance(given[kind], dict):
            raise ValueError(f"thresholds.{kind}: write a section, [thresholds.{kind}]")
        spelled += [(f"{name}_{kind}", value) for name, value in given[kind].items()]
    for name, value in spelled:
        kinds = [known.removeprefix(f"{name}_") for known in variables()["settable"] if known.startswith(f"{name}_")]
        if not kinds or name in variables()["settable"]:
            found[name] = value
        elif isinstance(value, dict):
            found |= {f"{name}_{kind}": one for kind, one in value.items()}
        else:
            found |= {f"{name}_{kind}": value for kind in kinds}
    return found


def _checked(name: str, value: object) -> int | float:
    stated = variables()
    if name not in stated["settable"]:
        if name in stated:
            raise ValueError(f"thresholds.{name}: cannot be set here; see docs/thresholds.md")
        raise ValueError(f"thresholds.{name}: unknown key; see docs/thresholds.md")
    least, greatest = stated["settable"][name]
    is_whole = isinstance(stated[name], int)
    if isinstance(value, int | float) and type(value) in ((int,) if is_whole else (int, float)) and least <= value <= greatest:
        return value if is_whole else float(value)
    raise ValueError(f"thresholds.{name} is {value!r}; give a {'whole ' * is_whole}number from {least} to {greatest}")

"""SMART attributes and NVMe health that node_exporter passes on from textfile collectors: the community's smartmon and nvme scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from ingest.reading.devices import drive_of, kernel_name
from ingest.reading.health import MOST, ata_name, ata_raw

METRICS = "smartmon_.+_(raw_)?value|smartmon_device_info|(node_)?nvme_.+_(total|ratio|celsius)"
"""Metrics that are read, as a regular expression of the whole name. `nvme_..._seconds` are times of the controller, not of its health."""
INFO = "smartmon_device_info"
_SMARTMON = re.compile(r"smartmon_(?:attr|(?P<name>.+?))_(?P<kind>raw_value|value)")
_NVME = re.compile(r"(?:node_)?nvme_(?P<name>.+)_(?P<unit>total|ratio|celsius)")
_NVME_NAMES = {"temperature": "temperature_celsius", "host_read_commands": "host_reads", "host_write_commands": "host_writes"}

Point = tuple[str, str, dict[str, str], datetime, float]
"""Host, metric, labels, when, and the value."""


def health_of(points: Iterable[Point]) -> tuple[list[dict[str, object]], list[str]]:
    """Records of drive_health of these samples, under the drive's serial number where `smartmon_device_info` says it, else `HOST/DEVICE`;
    and what is left out, because two samples of one attribute contradict each other.

    Raw and normalised value are two series of one record. A drive behind a controller that has no serial number is left out.
    """
    read = list(points)
    serials = {
        (host, *_place(labels)): labels["serial_number"].strip()
        for host, metric, labels, _, _ in read
        if metric == INFO and labels.get("serial_number", "").strip()
    }
    found: dict[tuple[str, datetime, str], dict[str, object]] = {}
    contradicted: dict[tuple[str, datetime, str], str] = {}
    for host, metric, labels, at, value in read:
        said = _attribute(metric, labels, value)
        device, kind = _place(labels)
        serial = serials.get((host, device, kind))
        if said is None or device is None or (serial is None and "," in kind):
            continue
        attribute, column, number = said
        drive = serial or f"{host}/{device}"
        record = {"read_at": at, "drive_id": drive, "attribute": attribute, "collected_at": at, "is_alias": serial is None}
        kept = found.setdefault((drive, at, attribute), record)
        if kept.setdefault(column, number) != number:
            contradicted.setdefault((drive, at, attribute), f"{attribute} of {drive} is {kept[column]} and {number} at {at}")
    return [record for key, record in found.items() if key not in contradicted], list(contradicted.values())


def _place(labels: dict[str, str]) -> tuple[str | None, str]:
    """The device that a series is about, and how smartctl reaches it."""
    name = next((given for given in (labels.get("device"), labels.get("disk")) if given and not given.isdecimal()), "")
    device = kernel_name(name)
    # smartctl and nvme take the controller, the kernel counts by the namespace
    device = f"{device}n1" if re.fullmatch(r"nvme\d+", device) else device
    return drive_of(device) or (device or None), labels.get("type", "")


def _attribute(metric: str, labels: dict[str, str], value: float) -> tuple[str, str, int] | None:
    """Attribute, column and value of a sample; null for what is no whole number that an attribute can have."""
    if not 0 <= value <= MOST:
        return None
    if nvme := _NVME.fullmatch(metric):
        name = nvme["name"]
        return _NVME_NAMES.get(name, name), "raw_value", round(value * 100) if nvme["unit"] == "ratio" else round(value)
    smartmon = _SMARTMON.fullmatch(metric)
    if smartmon is None:
        return None
    name, number = smartmon["name"] or labels.get("name", ""), labels.get("smart_id", "")
    is_raw = smartmon["kind"] == "raw_value"
    whole = round(value)
    if number.isdecimal():
        raw = ata_raw(int(number), whole) if is_raw else whole
        name = ata_name(int(number), name)
        return None if raw is None else (name, "raw_value" if is_raw else "normalised_value", raw)
    return (name, "raw_value" if is_raw else "normalised_value", whole) if name else None

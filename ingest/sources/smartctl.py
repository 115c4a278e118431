"""Source `smartctl`: drives' own health and identity (`smartctl --json -x`, `-l farm`, `nvme ocp latency-monitor-log`, `nvme amzn stats`).

One document per file, `HOST/*.json`.

A document gives an inventory record, an alias `HOST/DEVICE` (and `wwn:...`) for the serial number, the drive's health readings
(SMART attributes, NVMe and SCSI logs), and a `media_error` event where the drive has counted any. All are those of the device that was
read, `HOST/DEVICE`, which the alias names; of a drive behind a controller, those of its serial number. Power-on hours
stand for an age: deployed_on is the day that many hours before, which the models believe last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ingest.contract.errors import UnreadableFile
from ingest.reading.batches import Batch, batch_of
from ingest.reading.devices import alias_of, is_no_drive, is_placeholder, placeholder_note, wide_alias
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.health import ata_name, ata_raw
from ingest.reading.hosts import drive_device, host_of, instant, read_json
from ingest.reading.readers import count_in, text_in

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = (
    "HOST/*.json, each what `smartctl --json -x DEVICE` or `-l farm` prints, or nvme's latency monitor or amzn stats, with TS and device"
)
recognise = named("smartctl documents", r"(?!lsblk).*\.json")
OPEN_FAILED = 2
_NVME_LOGS = {"Active Bucket Counter: Bucket 0", "total_read_ops"}
# An hour of power-on time that no drive has behind it: some firmwares count in other units.
_MOST_HOURS = 50 * 8766
# Counters of errors the medium could not make good: reallocated and pending sectors are what the drive has cured or may cure.
_MEDIA_ERRORS = ("media_errors", "reported_uncorrect", "offline_uncorrectable")
# Behind these a device is the controller's: `-d cciss,1`, of which some versions write the type only
_BEHIND = re.compile(r",|(^|\+)(cciss|megaraid|aacraid|areca|3ware|hpt|marvell|sssraid|jmb39x|jms56x)")
_BEHIND_SHOWN = re.compile(r"\[\w+_disk_\d+\]")
# a packed raw value as smartctl writes it: `40311 (52 181 0)`, `40343h+09m+23.5s`, `3/150000`
_DECODED = re.compile(r"(\d{1,16})(?: \(.*\)|h\+.*|/(\d{1,16}))?")


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every document; placeholders of serial numbers are named once, with all their devices."""
    placeholders: dict[str, tuple[FileResult, list[str]]] = {}

    def read(file: SourceFile, result: FileResult) -> Iterator[Batch]:
        yield from _batches(file, result, placeholders)

    landing.read(files, read)
    for serial, (result, names) in placeholders.items():
        result.notes.append(placeholder_note(serial, names))


def _batches(file: SourceFile, result: FileResult, placeholders: dict[str, tuple[FileResult, list[str]]]) -> Iterator[Batch]:
    """Contents of a document; one of a device that could not be opened is unreadable, with smartctl's own words."""
    host = host_of(file)
    document = read_json(file, "smartctl")
    if not isinstance(document, dict) or not ({"smartctl", "device", *_NVME_LOGS} & document.keys()):
        raise UnreadableFile("not a document of smartctl: it has neither a key `smartctl` nor `device`")
    device = _device(document, host)
    if (logged := _of_nvme(document, host)) is not None:
        name, at, found = logged
        yield _readings(name, at, True, [{"attribute": attribute, "raw_value": value} for attribute, value in found])
        return
    if text_in(document.get("serial_number")) is None and (farm := _farm_alone(document)) is not None:
        serial, found = farm
        if not found:
            result.notes.append(f"no FARM: {_at(document, 'device', 'name')} keeps no such log")
            return
        at = _written(document)
        if _at(document, "device", "protocol") == "SCSI":
            if device is not None:
                result.notes.append(f"the FARM of a SAS drive has half of its serial number ({serial}): -x says which drive {device} is")
        elif device is not None and not is_placeholder(serial):
            yield batch_of("drive_aliases", [{"alias": device, "drive_id": serial, "valid_from": at, "collected_at": at}])
        drive = {
            "drive_id": device or serial,
            "is_alias": device is not None,
            "raid_group_id": host,
            "is_group_guessed": True,
            "host": host,
        }
        yield batch_of("drives", [{**drive, "kind": "disk", "valid_from": at, "collected_at": at}])
        readings = [{"attribute": attribute, "raw_value": value} for attribute, value in found]
        yield _readings(device or serial, at, device is not None, readings)
        return
    serial = _serial(document)
    at = _written(document)
    is_named = not is_placeholder(serial)
    if not is_named and device is None:
        reason = "the serial number is a placeholder, and the controller hides which device it is of"
        yield batch_of("drives", [], [(1, reason, "serial_number", serial)])
        return
    if not is_named:
        placeholders.setdefault(serial, (result, []))[1].append(str(device))
    yield batch_of("drives", [{**_inventory(document, at, host), "drive_id": device or serial, "is_alias": device is not None}])
    yield batch_of("drive_aliases", _aliases(document, serial, device, at) if is_named else [])
    health = list(_health(document))
    yield replace(_readings(device or serial, at, device is not None, health), is_beside=True)
    errors = _media_errors(health)
    if errors:
        detail = f"smartctl: {errors} counted so far"
        event = {"drive_id": device or serial, "event_type": "media_error", "detail": detail, "occurred_at": at, "collected_at": at}
        yield batch_of("drive_events", [{**event, "is_alias": device is not None}])


def _readings(name: str, at: datetime, is_alias: bool, readings: list[dict[str, Any]]) -> Batch:
    """Health under a drive's name; the readings have attribute, raw_value, normalised_value."""
    common = {"read_at": at, "drive_id": name, "collected_at": at, "is_alias": is_alias}
    return batch_of("drive_health", [{**common, **reading} for reading in readings])


def _device(document: dict[str, Any], host: str) -> str | None:
    """HOST/DEVICE of a document; null behind a controller, which hides several drives behind one device, and where only a link is named.

    A controller `nvme0` is named as it is: the number of its namespace may be another's.
    """
    kind, shown = (text_in(_at(document, "device", name)) or "" for name in ("type", "info_name"))
    device = drive_device(text_in(_at(document, "device", "name")) or "")
    if not device or is_no_drive(device) or _BEHIND.search(kind) or _BEHIND_SHOWN.search(shown):
        return None
    return alias_of(host, device)


def _serial(document: dict[str, Any]) -> str:
    if (serial := text_in(document.get("serial_number"))) is not None:
        return serial
    said = [str(message.get("string")) for message in _list(_at(document, "smartctl", "messages")) if isinstance(message, dict)]
    status = _at(document, "smartctl", "exit_status")
    failed = isinstance(status, int) and bool(status & OPEN_FAILED)
    why = "smartctl could not open the device" if failed else "no serial_number in it"
    raise UnreadableFile(
        f"{why}{': ' + said[0] if said else ''}; call `smartctl --json -x DEVICE` as root, behind a RAID controller with -d"
    )


def _farm_alone(document: dict[str, Any]) -> tuple[str, list[tuple[str, int]]] | None:
    """Seagate's field accessible reliability metrics, where they come without the rest: the serial number in them, and what they count,
    nothing of a drive that keeps none; null for another document.
    """
    log = _at(document, "seagate_farm_log")
    if isinstance(_at(document, "smartctl", "exit_status"), int) and _at(document, "smartctl", "exit_status") & OPEN_FAILED:
        return None
    if not isinstance(log, dict) and "farm" not in _list(_at(document, "smartctl", "argv")):
        return None
    pages = ("page_1_drive_information", "drive_information")
    serial = next((serial for page in pages if (serial := text_in(_at(document, "seagate_farm_log", page, "serial_number")))), None)
    return ("", []) if serial is None else (serial, list(_farm(document)))


def _farm(document: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Errors, timeouts over 5 and 7.5 s among them, and resistance and reallocations of each head: `farm_` and smartctl's name."""
    for page, wanted in (
        ("page_3_error_statistics", r"(?!.*flash_led).*"),
        ("page_5_reliability_statistics", r".*(resistance|realloc).*head_\d+"),
        # SAS drives
        ("error_statistics", r"(?!fru_code).*"),
        ("head_information", r".*(resistance|realloc).*_\d+"),
    ):
        log = _at(document, "seagate_farm_log", page)
        for name, value in log.items() if isinstance(log, dict) else ():
            if re.fullmatch(wanted, name) and (number := count_in(value)) is not None:
                yield f"farm_{name}", number


def _of_nvme(document: dict[str, Any], host: str) -> tuple[str, datetime, list[tuple[str, int]]] | None:
    """OCP's latency monitor and Amazon's statistics, to which TS (unix seconds) and the device were added: the device, when, and what it
    counts by name; null for another document.

    Buckets of the monitor count commands between its thresholds A and B, B and C, C and D, and above D; `_ms` is the latency it measured.
    """
    if not _NVME_LOGS & document.keys():
        return None
    if "Active Lantency Minimum Window" in document:  # only releases that print writes as `Trim`, and no reads, spell it so
        raise UnreadableFile("this nvme-cli (2.3 does) prints the counts of the latency monitor under the wrong commands: use a newer one")
    device, seconds = text_in(document.get("device")), document.get("TS")
    if device is None or type(seconds) is not int:
        raise UnreadableFile('no keys TS and device: add them with `jq ".TS = $(date +%s) | .device = \\"nvme0n1\\""`')
    found: list[tuple[str, int | None]] = []
    # releases that print a mode of each bucket number the buckets of latencies the other way round
    kinds = "Bucket Counter" if "Active Latency Mode: Bucket 0" in document else "Bucket Counter|Measured Latency"
    for name, value in document.items():
        if match := re.fullmatch(rf"Active ({kinds}): Bucket (\d)", name):
            unit = "count" if match[1] == "Bucket Counter" else "ms"
            found += [
                (f"ocp_bucket_{match[2]}_{way.lower()}_{unit}", count_in(number))
                for way, number in (value.items() if isinstance(value, dict) else ())
            ]
        elif match := re.fullmatch(r"(total_\w+)|(?:ebs_|ec2_|instance_store_)?(volume|instance)_(?:ebs_)?(performance_\w+)", name):
            # nvme prints the same keys for a volume and for the instance's own disk
            found.append((f"amzn_{match[1] or f'{match[2]}_{match[3]}'}", count_in(value)))
    readings = [(name, value) for name, value in found if value is not None]
    return alias_of(host, drive_device(device)), instant(seconds), readings


def _written(document: dict[str, Any]) -> datetime:
    seconds = _at(document, "local_time", "time_t")
    if type(seconds) is not int:
        raise UnreadableFile("local_time.time_t is missing: the document does not say when it was written; was it cut short?")
    return instant(seconds)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _at(document: dict[str, Any], *path: str) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _inventory(document: dict[str, Any], at: datetime, host: str) -> dict[str, Any]:
    rotation = count_in(document.get("rotation_rate"))
    protocol = _at(document, "device", "protocol")
    hours = count_in(_at(document, "power_on_time", "hours"))
    is_disk = bool(rotation)
    # an old ATA disk says nothing of its rate, nor an SSD as old; a SCSI drive may not
    is_ssd = rotation == 0 or protocol == "NVMe" or _at(document, "trim", "supported") is True
    return {
        "raid_group_id": host,
        "is_group_guessed": True,
        "kind": "disk" if is_disk else "ssd" if is_ssd else None,
        "vendor": text_in(document.get("scsi_vendor")) or text_in(document.get("vendor")),
        "model": text_in(document.get("model_name")) or text_in(document.get("scsi_model_name")),
        "firmware": text_in(document.get("firmware_version"))
        or text_in(document.get("scsi_revision"))
        or text_in(document.get("revision")),
        "capacity_bytes": count_in(_at(document, "user_capacity", "bytes")) or count_in(document.get("nvme_total_capacity")),
        "rpm": rotation if is_disk else None,
        "interface": _interface(document, protocol),
        "host": host,
        "deployed_on": (at - timedelta(hours=hours)).date() if hours is not None and hours <= _MOST_HOURS else None,
        "valid_from": at,
        "collected_at": at,
    }


def _interface(document: dict[str, Any], protocol: Any) -> str | None:
    if protocol == "SCSI":
        transport = text_in(_at(document, "scsi_transport_protocol", "name")) or ""
        return "SAS" if transport.startswith("SAS") else "FC" if transport.startswith("Fibre") else None
    return {"ATA": "SATA", "NVMe": "NVMe"}.get(protocol) if isinstance(protocol, str) else None


def _aliases(document: dict[str, Any], serial: str, device: str | None, at: datetime) -> list[dict[str, Any]]:
    """The names the drive goes by: the device, and its world wide name."""
    names = [] if device is None else [device]
    naa, oui, number = (count_in(_at(document, "wwn", part)) for part in ("naa", "oui", "id"))
    if naa is not None and oui is not None and number is not None:
        names.append(f"wwn:0x{naa:x}{oui:06x}{number:09x}")
    elif (unit := text_in(document.get("logical_unit_id"))) is not None:
        names.append(wide_alias(unit))
    return [{"alias": name, "drive_id": serial, "valid_from": at, "collected_at": at} for name in names if not is_placeholder(name)]


def _health(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The drive's health: attribute, raw_value, normalised_value; each attribute once."""
    found: dict[str, dict[str, Any]] = {}

    def say(attribute: str, raw: int | None, normalised: int | None = None) -> None:
        if raw is not None or normalised is not None:
            found.setdefault(attribute, {"attribute": attribute, "raw_value": raw, "normalised_value": normalised})

    # smartctl's own reading of an attribute counts before the raw value, in which vendors pack more than one number
    stated = {
        "power_on_hours": count_in(_at(document, "power_on_time", "hours")),
        "temperature_celsius": count_in(_at(document, "temperature", "current")),
    }
    for row in _list(_at(document, "ata_smart_attributes", "table")):
        number = count_in(row.get("id")) if isinstance(row, dict) else None
        if number is not None:
            name, raw = ata_name(number, text_in(row.get("name"))), _raw_of(number, row)
            say(name, raw if stated.get(name) is None else stated[name], count_in(row.get("value")))
    logs = {"": _at(document, "nvme_smart_health_information_log")}
    logs |= {f"{way}_": _at(document, "scsi_error_counter_log", way) for way in ("read", "write", "verify")}
    for prefix, log in logs.items():
        for name, value in log.items() if isinstance(log, dict) else ():
            say("temperature_celsius" if name == "temperature" else prefix + name, count_in(value))
    for name, value in _farm(document):
        say(name, value)
    say("grown_defect_list", count_in(document.get("scsi_grown_defect_list")))
    for name, value in stated.items():
        say(name, value)
    yield from found.values()


def _media_errors(health: list[dict[str, Any]]) -> int:
    """Errors the medium could not make good, as far as the drive has counted them over its life."""
    raw = {reading["attribute"]: reading["raw_value"] or 0 for reading in health}
    scsi = sum(raw.get(f"{way}_total_uncorrected_errors", 0) for way in ("read", "write", "verify"))
    return max(scsi, *(raw.get(name, 0) for name in _MEDIA_ERRORS))


def _raw_of(number: int, row: dict[str, Any]) -> int | None:
    """The raw value of an ATA attribute, as smartctl decodes it where a vendor packed more than one number into it."""
    raw, decoded = _at(row, "raw", "value"), _DECODED.fullmatch(text_in(_at(row, "raw", "string")) or "")
    # errors and operations (raw24/raw32); of another pair nobody knows which number is the attribute's
    if decoded and decoded[2] and raw != int(decoded[1]) << 32 | int(decoded[2]):
        return None
    return count_in(decoded[1]) if decoded else ata_raw(number, count_in(raw))

"""Source `confirm`: probes of suspect drives, as the command that `drivetail confirm` prints writes them (docs/sources/confirm.md).

A line `TS seconds`, the drives by device, as `lsblk -dJ -o NAME,SERIAL` prints them, then results of fio, one for each slice and kind of
reads. In each a job named `suspect` reads the suspect and jobs named `peer` its peers. Several probes may follow each other.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ingest.contract.errors import UnreadableFile
from ingest.reading.batches import Batch, Rejection, batch_of
from ingest.reading.devices import is_placeholder, kernel_name
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.fio import completion_latencies, ios, number
from ingest.reading.hosts import Look, looks, read_text
from ingest.reading.readers import count_in, text_in, whole
from ingest.reading.text import one_line

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "confirm*, each what the command that `drivetail confirm --print` prints wrote"
recognise = named("probes", r"confirm.*")
PATTERNS_OF = {"randread": "random", "read": "sequential"}
PERCENTILES = {"p50_us": "50.000000", "p90_us": "90.000000", "p95_us": "95.000000", "p99_us": "99.000000"}
_OPENING = re.compile(r"^[ \t]*\{", re.MULTILINE)


def land(files: list[SourceFile], landing: Landing) -> None:
    """The probes of a file. Counts are in slices: the reads of one kind of one drive."""
    landing.read(files, _batches)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    rejected: list[Rejection] = []
    rows: list[dict[str, Any]] = []
    for look in looks(read_text(file)):
        _take(look, rows, rejected)
    yield batch_of("drive_probes", rows, rejected)


def _documents(look: Look) -> Iterator[dict[str, Any]]:
    """The JSON documents of a probe; what stands between them is left out. Raises: UnreadableFile."""
    text, decoder, end = "\n".join(line for _, line in look.lines), json.JSONDecoder(parse_int=whole), 0
    while opening := _OPENING.search(text, end):
        try:
            document, end = decoder.raw_decode(text, opening.end() - 1)
        except (ValueError, RecursionError) as error:
            line = look.lines[text.count("\n", 0, opening.start())][0]
            raise UnreadableFile(f"no whole JSON object at line {line} ({one_line(error)}); was the probe cut off?") from error
        yield document


def _take(look: Look, rows: list[dict[str, Any]], rejected: list[Rejection]) -> None:
    """Add the slices of a probe. Raises: UnreadableFile where nothing can be said of its suspect."""
    first, *results = list(_documents(look)) or [{}]
    devices = first.get("blockdevices")
    if not isinstance(devices, list):
        raise UnreadableFile("no list `blockdevices` after the line TS: what `lsblk -dJ -o NAME,SERIAL` prints says which drives were read")
    serials = {kernel_name(str(of.get("name"))): text_in(of.get("serial")) for of in devices if isinstance(of, dict)}
    slices: Counter[str] = Counter()
    for document in results:
        jobs = [(job, _options(document, job)) for job in _list(document, "jobs") if isinstance(job, dict)]
        suspects = {_device(options) for job, options in jobs if job.get("jobname") == "suspect"}
        if len(suspects) != 1:
            raise UnreadableFile(f"a result has {len(suspects)} devices of jobs `suspect`; expected one, beside its peers")
        suspect = _serial(serials, name := suspects.pop())
        if suspect is None:
            raise UnreadableFile(f"lsblk gives no serial number for the suspect {name}; what is read of it would be nobody's")
        slices.update({PATTERNS_OF.get(str(options.get("rw")), "") for _, options in jobs})
        for job, options in jobs:
            row_no, device = len(rows) + len(rejected) + 1, _device(options)
            pattern, serial = PATTERNS_OF.get(str(options.get("rw"))), _serial(serials, device)
            if pattern is None:
                rejected.append((row_no, f"not one of {', '.join(PATTERNS_OF)}", "rw", str(options.get("rw"))))
            elif serial is None:
                rejected.append((row_no, "lsblk gives no serial number for the device", "serial", device))
            elif serial == suspect and device != name:
                rejected.append((row_no, "another name of the suspect, which is no peer of itself", "serial", device))
            else:
                of = {"probed_at": look.at, "collected_at": look.at, "suspect_id": suspect, "drive_id": serial}
                of |= {"row_no": row_no, "pattern": pattern, "slice_no": slices[pattern], "read_by": _reader(document)}
                rows.append(of | _figures(job) | {"other_ios": _other_ios(document, job, device)})


def _figures(job: dict[str, Any]) -> dict[str, Any]:
    part = job["read"] if isinstance(job.get("read"), dict) else {}
    count, said = count_in(int(ios(part))), completion_latencies(part)
    failed = count_in(job.get("total_err")) or int(bool(number(job.get("error"))))
    known = {"mean_us": said.get("mean"), **{name: said.get(of) for name, of in PERCENTILES.items()}} if count else {}
    return {"read_count": count, "failed_count": failed, "seconds": (number(part.get("runtime")) or 0) / 1000, **known}


def _other_ios(document: dict[str, Any], job: dict[str, Any], device: str) -> int | None:
    """I/Os that the device did in the slice besides those of the job; null where fio does not say, as for a plain file."""
    for disk in _list(document, "disk_util"):
        if isinstance(disk, dict) and kernel_name(str(disk.get("name"))) == device:
            done = [number(disk.get(name)) for name in ("read_ios", "write_ios")]
            own = ios(job["read"]) if isinstance(job.get("read"), dict) else 0
            return None if None in done else count_in(max(0, int(sum(each or 0 for each in done) - own)))
    return None


def _list(document: dict[str, Any], name: str) -> list[Any]:
    return found if isinstance(found := document.get(name), list) else []


def _options(document: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    both = (document.get("global options"), job.get("job options"))
    return {name: value for options in both if isinstance(options, dict) for name, value in options.items()}


def _device(options: dict[str, Any]) -> str:
    return kernel_name(str(options.get("filename")).replace("\\:", ":"))


def _serial(serials: dict[str, str | None], device: str) -> str | None:
    serial = serials.get(device)
    return None if serial is None or is_placeholder(serial) else serial


def _reader(document: dict[str, Any]) -> str | None:
    own = text_in(document.get("drivetail version"))
    return f"drivetail {own}" if own else text_in(document.get("fio version"))

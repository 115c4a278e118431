"""A probe of a suspect drive beside two of its peers: which devices, the command that reads them, and whether it may run here.

The command only reads: fio opens the devices read-only and refuses to write (`--readonly`). Its output is a delivery of the source
`confirm` (ingest/sources/confirm.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import duckdb

from drivetail.ask.explain.question import known_drive
from drivetail.host.reader import RANDOM_BYTES, SEQUENTIAL_BYTES
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from report.words import counted_noun, named_drive

PEERS = 2
SLICES = 6
"""Repeats, by which a difference is told from chance."""
READS_PER_SECOND = {"ssd": 100}
"""Limit for each drive by its kind."""
FEWEST_READS_PER_SECOND = 30
"""Limit for disks and drives of unknown kind: a disk still has time for its host."""
SECONDS = 60


class ConfirmError(RuntimeError):
    """A probe that cannot be run; the message says why and what to do."""


@dataclass(frozen=True)
class Probed:
    """A drive of a probe, the suspect first, and the path that reads it. names: other serial numbers that an operator gave it."""

    drive_id: str
    host: str | None
    path: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """Drives, and how they are read: reads a second at most, seconds of each kind of reads."""

    drives: tuple[Probed, ...]
    reads_per_second: int
    seconds: int

    @property
    def file(self) -> str:
        """The name of the file that the printed command writes."""
        return f"confirm-{re.sub(r'[^0-9A-Za-z._-]', '_', self.drives[0].drive_id)}.txt"


def plan(warehouse: Warehouse, drive: str, given: Mapping[str, str], seconds: int = SECONDS) -> Probe:
    """The probe of a drive beside peers of its RAID group on its host, of its model before others, for which nothing is to do.

    given: paths of drives by their names in `drive`'s form; drives named there are the peers. Raises: QueryError.
    """
    with publication_of(warehouse) as connection:
        # lsblk and fio know a device by its own name, not by a link to it
        named = {known_drive(connection, each)["drive_id"]: os.path.realpath(path) for each, path in given.items()}
        suspect = known_drive(connection, drive)
        if suspect["left_at"]:
            raise QueryError(f"{named_drive(suspect)}: it has gone already; there is nothing to read")
        if suspect["is_logical"]:
            raise QueryError(f"{named_drive(suspect)}: is a logical volume; the controller behind it has the drives")
        peers = [known_drive(connection, each) for each in named if each != suspect["drive_id"]] or _peers(connection, suspect)
        if not peers:
            found = f"{named_drive(suspect)}: no healthy peer of its RAID group with a known device is on its host"
            raise QueryError(f"{found}; name two: --device DRIVE=/dev/NAME")
        drives = tuple(
            Probed(row["drive_id"], row["host"], named.get(row["drive_id"]) or _path(row), _names(connection, row))
            for row in (suspect, *peers)
        )
    if len({each.path for each in drives}) < len(drives):
        raise QueryError(f"{', '.join(each.path for each in drives)}: one path is given twice; a drive is no peer of itself")
    return Probe(drives, READS_PER_SECOND.get(suspect["kind"], FEWEST_READS_PER_SECOND), seconds)


def _peers(connection: duckdb.DuckDBPyConnection, suspect: Row) -> list[Row]:
    return fetch(
        connection,
        """
        select * from marts.dim_drives
        where host = $host and current_raid_group_id = $group and drive_id <> $drive_id
            and device is not null and left_at is null and not is_logical
            and drive_id not in (select drive_id from marts.drive_actions where action <> 'none')
        order by model is not distinct from $model desc, drive_id
        limit $peers
        """,
        {name: suspect[name] for name in ("host", "drive_id", "model")} | {"group": suspect["current_raid_group_id"], "peers": PEERS},
    )


def _path(row: Row) -> str:
    if not row["device"]:
        raise QueryError(f"{named_drive(row)}: no source names its device; give --device {row['drive_id']}=/dev/NAME")
    return f"/dev/{row['device'].split(', ')[0]}"


def _names(connection: duckdb.DuckDBPyConnection, row: Row) -> tuple[str, ...]:
    """Serial numbers that an operator says are the drive's."""
    names = "select distinct alias from intermediate.int_names where drive_id = ? and alias not like '%/%' and alias not like 'wwn:%'"
    return tuple(found["alias"] for found in fetch(connection, names, [row["drive_id"]]))


def is_by_name(drive: Probed) -> bool:
    """Whether no source knows a serial number of it: it is called HOST/DEVICE."""
    return "/" in drive.drive_id


def is_here(probe: Probe) -> bool:
    """Whether the suspect's host is this one, by its name with or without a domain."""
    host = probe.drives[0].host
    return host is not None and host.partition(".")[0] == socket.gethostname().partition(".")[0]


CHECK = (
    'is() { now=$(echo $(lsblk -dno SERIAL "$1")); case "|$2|" in *"|$now|"*) ;; '
    '*) echo "$1 is now ${now:-without a serial number}, not ${2%%|*}: nothing was read" >&2; exit 1 ;; esac; }'
)
"""Shell function that ends the commands unless a device is the drive: names of devices change at a boot."""

# The command ------------------------------------------------------------------------------------------------------


def script(probe: Probe, *, is_own: bool = False) -> str:
    """The shell commands of a probe, for `sh -c`. is_own: read by drivetail's own reader instead of fio.

    A plain file stands for the drive that it was given for, a device for a drive that is known by host and device alone. Any other device
    has to say its serial number itself.
    """
    known = [
        f"is {quote(each.path)} {quote('|'.join(' '.join(name.split()) for name in (each.drive_id, *each.names)))}"
        for each in probe.drives
        if each.path.startswith("/dev/") and not is_by_name(each)
    ]
    devices = [{"name": each.path, "serial": each.drive_id} for each in probe.drives]
    listed = "; ".join([*([CHECK, *known] if known else []), f"echo {quote(json.dumps({'blockdevices': devices}))}"])
    seconds, rate = max(1, probe.seconds // SLICES), probe.reads_per_second
    first = f'date "+TS %s"; {listed}'
    if is_own:
        paths = " ".join(quote(each.path) for each in probe.drives)
        return f"{first} && {quote(sys.executable)} -P -m drivetail.host.reader {SLICES} {seconds} {rate} {paths}"
    jobs = " ".join(
        f"--name={'suspect' if each is probe.drives[0] else 'peer'} --filename={quote(each.path.replace(':', chr(92) + ':'))}"
        for each in probe.drives
    )
    kinds = f'"randread --bs={RANDOM_BYTES}" "read --bs={SEQUENTIAL_BYTES} --offset=$((i * {100 // (SLICES + 1)}))%"'
    return (
        f"{first} && for i in {' '.join(str(each) for each in range(1, SLICES + 1))}; do for how in {kinds}; do "
        "fio --output-format=json --readonly --name=global --ioengine=psync --direct=1 --invalidate=0 --allow_file_create=0 "
        f"--continue_on_error=read --randrepeat=0 --time_based --runtime={seconds} --rate_iops={rate} --rw=$how {jobs} || exit; done; done"
    )


def command(probe: Probe) -> str:
    """One line for a shell of the drive's host, where drivetail need not be installed."""
    return f"sudo sh -c {quote(script(probe))} > {probe.file}"


# Running it here --------------------------------------------------------------------------------------------------


def run(probe: Probe, out: Path) -> None:
    """Run a probe here and write what it says to a file. Raises: ConfirmError."""
    for each in probe.drives:
        refuse_unreadable(each.path)
    with out.open("w", encoding="utf-8") as file:
        commands = script(probe, is_own=shutil.which("fio") is None)
        done = subprocess.run(["sh", "-c", commands], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise ConfirmError(f"the probe ended: {said[-1]}")


def refuse_unreadable(path: str) -> None:
    """Raises: ConfirmError for a path that is no device or file, or that may not be read."""
    try:
        kind = Path(path).stat().st_mode
    except OSError as error:
        raise ConfirmError(f"{path}: {error.strerror}; name the device: --device DRIVE=/dev/NAME") from error
    if not (stat.S_ISBLK(kind) or (stat.S_ISREG(kind) and not path.startswith("/dev/"))):
        raise ConfirmError(f"{path}: is no block device; name the device: --device DRIVE=/dev/NAME")
    if not os.access(path, os.R_OK):
        raise ConfirmError(f"{path}: no permission to read it; run it as root, or as a member of the group that owns it")


def described(probe: Probe) -> str:
    """A sentence on what is read, and for how long."""
    suspect, *peers = probe.drives
    beside = " and ".join(f"{each.drive_id} ({each.path})" for each in peers)
    return (
        f"{suspect.drive_id} ({suspect.path}) beside {counted_noun(len(peers), 'peer')}, {beside}: {2 * probe.seconds} s of reads, "
        f"at most {probe.reads_per_second} a second of each drive; nothing is written"
        + ("; no serial number is known: see that no boot has renamed the devices since" if any(map(is_by_name, probe.drives)) else "")
    )

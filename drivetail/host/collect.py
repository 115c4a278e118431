"""`drivetail collect`: what a host knows of its drives, from cron or a service, as deliveries that `drivetail ingest collected` takes.

A delivery is a folder `OUT/HOST.20260105T102000Z`, renamed into place when it is whole: diskstats and mdstat (every look since the hour
began, so that a later delivery of the hour is a fuller one), `mdadm --detail --export`, lsblk, smartctl and what the kernel said since the
last one, from journald or, where that keeps nothing of it, from dmesg. Inventory is written when it has changed, when the counters of a
drive began again or a gap was too long to say whose they are, and once a day. What is between deliveries is in `OUT/.collect`.

A command that is missing, fails or hangs costs what it would have said, never the delivery. Nothing is written to any drive.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from drivetail.host.fast_sampling import FastSampling
from ingest.contract.errors import UnreadableFile
from ingest.raw.durable import put_folder, replace_file
from ingest.reading.devices import is_whole_drive
from ingest.reading.hosts import Look, drive_device, looks
from ingest.sources.diskstats import BOOT, cuts_in
from ingest.sources.mdadm import Array, arrays_of, largest, to_compare

TIMEOUT_SECONDS = 60
LSBLK = ("lsblk", "--json", "--bytes", "-d", "-o", "NAME,TYPE,SERIAL,WWN,MODEL,REV,VENDOR,SIZE,ROTA,TRAN")
# not --dmesg, which is of the current boot only: what came before a reboot is what matters
KERNEL = ("journalctl", "--output=json", "--no-pager", "_TRANSPORT=kernel")
# every boot says something: a journal with nothing of this one does not keep the kernel's lines
KEPT = ("journalctl", "--quiet", "--no-pager", "--boot", "--lines=1", "_TRANSPORT=kernel")
DMESG = ("dmesg", "--time-format", "iso")
HOUR = 3600
DAY = 24 * HOUR

Run = Callable[[Sequence[str]], "str | None"]
"""Runs a command; its output, empty where it has nothing to say, or null where it is not there, fails or hangs."""


class CollectError(RuntimeError):
    """Nothing can be collected or kept here; the message says what and why."""


@dataclass
class Collected:
    """One delivery: its folder, the files in it, and what was missing, a sentence each."""

    path: Path
    files: list[str]
    missing: list[str] = field(default_factory=list)


def _shown(second: int | str) -> str:
    return f"{datetime.fromtimestamp(int(second), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _told_at(line: str) -> float:
    """Unix seconds of a line of dmesg; 0 where it has no time."""
    try:
        return datetime.fromisoformat(line.partition(" ")[0].replace(",", ".")).timestamp()
    except ValueError:
        return 0


def _second(look: Look) -> int:
    return int(look.at.replace(tzinfo=UTC).timestamp())


def run(command: Sequence[str]) -> str | None:
    """The output of a command; null where it is not there, hangs, or fails without a word: smartctl's exit status is a mask of findings."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    except OSError:
        return None
    try:
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: on a drive that does not answer even a killed process may stay
        return None
    return output.decode("utf-8", "replace") if output or process.returncode == 0 else None


class Collector:
    """Looks at this host and delivers into `out`. `proc` and `runner` stand for the machine."""

    def __init__(self, out: Path, *, host: str | None = None, proc: Path = Path("/proc"), runner: Run = run) -> None:
        """Raises: CollectError where `out` cannot be written or the host has no name that a folder can bear."""
        self.out = out
        self.host = host or socket.gethostname()
        self.proc = proc
        self.runner = runner
        self.spool = out / ".collect"
        self._uuids: dict[str, str] = {}
        self._torn: list[str] = []
        if not re.fullmatch(r"[\w][\w.-]*", self.host):
            raise CollectError(f"host name {self.host!r} cannot be the name of a folder; give one with --host")
        try:
            self.spool.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CollectError(f"{self.spool}: cannot be made ({error.strerror}); give a folder that can be written with --out") from error

    def look(self, now: float | None = None) -> int:
        """Add one look to what the next delivery will hold. Returns: its size. Raises: CollectError without /proc/diskstats."""
        at = int(time.time() if now is None else now)
        written = 0
        for name in ("diskstats", "mdstat"):
            try:
                text = (self.proc / name).read_text(encoding="utf-8", errors="replace")
            except FileNotFoundError:
                if name == "diskstats":
                    raise CollectError(f"{self.proc / name} does not exist; drivetail collect runs on Linux hosts only") from None
                continue
            except OSError as error:
                raise CollectError(f"{self.proc / name}: cannot be read ({error.strerror})") from error
            text = self._with_uuids(text) if name == "mdstat" else self._with_boot(text)
            look = f"TS {at}\n{text}" + ("" if text.endswith("\n") else "\n")
            replace_file(self.spool / name, self._kept(name) + look)
            written += len(look)
        return written

    def _with_uuids(self, mdstat: str) -> str:
        """Add the UUID of each array below its line: the kernel does not say it, and an array's number changes from boot to boot."""
        lines = []
        for line in mdstat.splitlines():
            lines.append(line)
            name, colon, _ = line.partition(" : ")
            if colon and name.startswith("md"):
                if line not in self._uuids:
                    export = self._export(name) or ""
                    self._uuids[line] = next((text[8:] for text in export.splitlines() if text.startswith("MD_UUID=")), "")
                lines += [f"      uuid {self._uuids[line]}"] if self._uuids[line] else []
        return "\n".join(lines) + "\n"

    def _with_boot(self, diskstats: str) -> str:
        """Add which boot it is of: after another one a name may be another drive's, and its counters may be greater."""
        try:
            boot = (self.proc / "sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        except OSError:
            return diskstats
        return diskstats + ("" if diskstats.endswith("\n") else "\n") + f"{BOOT} {boot}\n"

    def _export(self, array: str) -> str | None:
        return self.runner(["mdadm", "--detail", "--export", f"/dev/{array}"])

    def deliver(self, now: float | None = None) -> Collected:
        """Write one delivery of all looks of the hour, in one step, and forget those before the hour of the last look."""
        at = int(time.time() if now is None else now)
        draft = self.spool / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        for name in ("diskstats", "mdstat"):
            if kept := self._kept(name):
                (draft / name).write_text(kept, encoding="utf-8")
        missing, self._torn = self._torn, []
        state = self._state()
        self._write_inventory(draft, at, state, missing)
        since = int(state.get("kernel_until", at - HOUR))
        name, kernel, state["kernel_until"] = self._kernel(since, at)
        if kernel is None:
            missing.append(f"neither journalctl nor dmesg gave kernel messages since {_shown(since)}; the next delivery tries again")
        if kernel:
            (draft / name).write_text(kernel, encoding="utf-8")
        target = self.out / f"{self.host}.{datetime.fromtimestamp(at, UTC):%Y%m%dT%H%M%SZ}"
        files = sorted(path.name for path in draft.iterdir())
        try:
            put_folder(draft, target)
        except OSError as error:
            raise CollectError(f"{target}: cannot be written ({error.strerror}); were two deliveries made in the same second?") from error
        self._keep()
        replace_file(self.spool / "state.json", json.dumps(state))
        return Collected(target, files, missing)

    def _kernel(self, since: int, at: int) -> tuple[str, str | None, int]:
        """Kernel messages since then: the file they belong into, the text (null where no tool gives it), and until when it goes."""
        # a day at a time: a span that takes journalctl longer than its timeout would never be delivered
        until = min(at, since + DAY)
        kernel = self.runner([*KERNEL, f"--since=@{since}", f"--until=@{until}"])
        # without journald it prints nothing and succeeds
        if kernel or (kernel is not None and self.runner(KEPT)):
            return "kern.ndjson", kernel, until
        ring = self.runner(DMESG)
        if not ring:
            return "dmesg.log", None, since
        return "dmesg.log", "".join(line for line in ring.splitlines(keepends=True) if since <= _told_at(line) < at), at

    def _state(self) -> dict[str, str | int]:
        try:
            state = json.loads((self.spool / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def _kept(self, name: str) -> str:
        """The looks in the spool, without those that are torn, which the next delivery names; empty where it holds none."""
        try:
            text = (self.spool / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        kept: list[str] = []
        torn = 0
        for look in re.split(r"^(?=TS)", text, flags=re.MULTILINE):
            try:
                is_whole = look.endswith("\n") and "\0" not in look and bool(looks(look))
            except UnreadableFile:
                is_whole = False
            kept += [look] if is_whole else []
            torn += bool(look) and not is_whole
        if torn:
            self._torn.append(f"{self.spool / name} was cut off, as by a power cut: {torn} of its snapshots are left out")
            replace_file(self.spool / name, "".join(kept))
        return "".join(kept)

    def _keep(self) -> None:
        """Leave the looks of the hour of the last one, and the one before them to count from; of mdstat what the next is compared with."""
        for name in ("diskstats", "mdstat"):
            path = self.spool / name
            if not path.exists():
                continue
            found = looks(path.read_text(encoding="utf-8"))
            if name == "mdstat":  # a change is delivered once
                kept, again = to_compare(found), " again"
            else:
                hours = [_second(look) // HOUR for look in found]
                kept, again = found[max(0, hours.index(hours[-1]) - 1) :] if found else [], ""
            text = "".join(f"TS {_second(look)}{again}\n" + "".join(f"{line}\n" for _, line in look.lines) for look in kept)
            replace_file(self.spool / name, text)

    def _write_inventory(self, draft: Path, at: int, state: dict[str, str | int], missing: list[str]) -> None:
        """lsblk, mdadm and smartctl, where the first two have changed, a drive has to be seen again (`cuts_in`), or a day has begun."""
        devices = self._devices(missing)
        exports = {array.name: text for array in self.arrays() if (text := self._export(array.name))}
        if not exports and self.arrays():
            missing.append("mdadm gave no output: RAID groups are named HOST/mdN as in /proc/mdstat; run drivetail collect as root")
        seen = json.dumps([devices, exports], sort_keys=True)
        cuts = cuts_in(self.host, self._kept("diskstats"))
        state["cut"] = max(str(state.get("cut", "")), *(f"{cut:%Y%m%dT%H%M%S}" for cut in cuts[-1:]), "")
        known = f"{at // DAY}:{state['cut']}:{hashlib.sha256(seen.encode()).hexdigest()}"
        if state.get("inventory") == known:
            return
        state["inventory"] = known
        for name, text in exports.items():
            (draft / f"mdadm-{name}").write_text(f"TS {at}\n{text}", encoding="utf-8")
        if devices is None:
            return
        (draft / "lsblk.json").write_text(json.dumps({"TS": at, "blockdevices": devices}), encoding="utf-8")
        silent = []
        for device in devices:
            name = str(device.get("name"))
            document = self.runner(["smartctl", "--json=c", "-x", f"/dev/{name}"]) if is_whole_drive(name) else None
            if document and '"serial_number"' in document:
                (draft / f"smartctl-{name.replace('/', '!')}.json").write_text(document, encoding="utf-8")
                # -x says only that there is such a log
                farm = self.runner(["smartctl", "--json=c", "-l", "farm", f"/dev/{name}"]) if '"seagate_farm_log"' in document else None
                if farm and 'drive_information"' in farm:  # of SATA and of SAS
                    (draft / f"smartctl-farm-{name.replace('/', '!')}.json").write_text(farm, encoding="utf-8")
            elif is_whole_drive(name):
                silent.append(name)
        if silent:
            missing.append(
                f"smartctl gave no output for {', '.join(silent)}: firmware and age stay unknown; install smartmontools, run it as root"
            )

    def _devices(self, missing: list[str]) -> list[dict[str, object]] | None:
        text = self.runner(LSBLK)
        try:
            found = json.loads(text or "")["blockdevices"]
        except (ValueError, KeyError, TypeError):
            missing.append("lsblk gave no output: drives have no serial numbers; install util-linux")
            return None
        return [device for device in found if isinstance(device, dict)]

    def arrays(self) -> list[Array]:
        try:
            text = (self.proc / "mdstat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return list(arrays_of(looks(f"TS 0\n{text}")[0], []))

    def membership(self) -> str:
        devices = {device.get("name"): device for device in self._devices([]) or []}
        lines = [
            "# HELP drivetail_md_member Drive that a member of an md array or a ZFS vdev is on, 1.",
            "# TYPE drivetail_md_member gauge",
        ]
        arrays = self.arrays()
        places: dict[str, dict[str, list[Array]]] = {}
        for array in arrays:
            for member in array.members:
                if not member.is_failed:
                    places.setdefault(drive_device(member.device), {}).setdefault(array.name, []).append(array)
        for array in arrays:
            export = self._export(array.name)
            known = next(iter(arrays_of(looks(f"TS 0\n{export}")[0], [])), array) if export else array
            known.layout, known.width = known.layout or array.layout, known.width or array.width
            for device, role in sorted({(drive_device(m.device), known.role(m)) for m in known.members if not m.is_failed}):
                if array.name != largest(places.get(device, {array.name: [array]})):
                    continue
                says = devices.get(device, {})
                labels = {"md": array.name, "device": device, "uuid": known.uuid or "", "role": role}
                labels |= {name: re.sub(r'(["\\])', r"\\\1", str(says.get(name) or "").strip()) for name in ("serial", "model")}
                shown = ",".join(f'{name}="{value}"' for name, value in labels.items())
                lines.append(f"drivetail_md_member{{{shown}}} 1")
        return "\n".join(lines) + "\n"

    def write_membership(self, folder: Path) -> Path:
        """Write the membership for node_exporter in one step. Raises: CollectError where the folder cannot be written."""
        path = folder / "drivetail_membership.prom"
        draft = folder / f".drivetail_membership.{os.getpid()}"
        try:
            draft.write_text(self.membership(), encoding="utf-8")
            draft.chmod(0o644)
            os.replace(draft, path)
        except OSError as error:
            raise CollectError(
                f"{path}: cannot be written ({error.strerror}); give node_exporter's --collector.textfile.directory"
            ) from error
        return path


def looking(
    collector: Collector,
    every: int,
    finer: FastSampling | None = None,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Collected | None]:
    """Look every `every` seconds, or more often while `finer` says so, and deliver at the first look of each hour.

    Yields: for each delivery, and null for the other looks, but not for those in between that are only finer.
    """
    hour = (clock() - every) // HOUR
    next_regular = 0.0
    while True:
        now = clock()
        written = collector.look(now)
        delivered = collector.deliver(now) if now // HOUR != hour else None
        hour = now // HOUR
        seconds = every if finer is None else finer.seconds(every, now, written)
        if delivered is not None or now >= next_regular:
            if delivered is not None and finer is not None and finer.trouble is not None:
                delivered.missing.append(finer.trouble)
            next_regular = now - now % every + every
            yield delivered
        sleep(seconds - clock() % seconds)

"""deploy/membership.sh writes, from sysfs, what `drivetail collect --textfile` writes from /proc/mdstat and mdadm; and ZFS vdevs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import executable

import pytest

from drivetail.host.collect import LSBLK, Collector
from tests.needs import require

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy" / "membership.sh"
UUID = "aaaaaaaa:bbbbbbbb:cccccccc:dddddddd"
# flags of /proc/mdstat, and the state and slot of a member in sysfs
STATES = {"": "in_sync", "S": "spare", "F": "faulty", "J": "journal", "R": "in_sync,replacement"}


@dataclass
class Array:
    """An md array: its members in order of their slots, each `device` or `device(FLAG)`; layout: the kernel's number.

    kib: what it has of each member, and `blocks` in all.
    """

    name: str
    level: str
    layout: int
    members: str
    width: int
    uuid: str = ""
    kib: int = 9
    blocks: int = 9

    def of(self) -> list[tuple[str, str, str]]:
        """(device, flag, slot) of each member; what has a flag has no slot, a replacement that of the first."""
        found, slot = [], 0
        for text in self.members.split():
            device, _, flag = text.rstrip(")").partition("(")
            found.append((device, flag, {"": str(slot), "R": "0"}.get(flag, "none")))
            slot += not flag
        return found

    def mdstat(self) -> str:
        flags = {"": ""} | {flag: f"({flag})" for flag in "SFJR"}
        members = " ".join(f"{device}[{number}]{flags[flag]}" for number, (device, flag, _) in enumerate(self.of()))
        works = "U" * self.width
        layout = "2 near-copies" if self.level == "raid10" else f"algorithm {self.layout}"
        return (
            f"{self.name} : active {self.level} {members}\n"
            f"      {self.blocks} blocks super 1.2 level {self.level[4:]}, 64k chunk, {layout} [{self.width}/{self.width}] [{works}]\n\n"
        )

    def export(self) -> str:
        lines = [f"MD_LEVEL={self.level}", f"MD_DEVICES={self.width}", f"MD_UUID={self.uuid}"]
        for device, flag, slot in self.of():
            if flag in ("", "S"):
                name = f"MD_DEVICE_dev_{device}"
                lines += [f"{name}_ROLE={'spare' if flag else slot}", f"{name}_DEV=/dev/{device}"]
        return "\n".join(lines) + "\n"

    def write(self, sys: Path, number: int) -> None:
        folder = sys / "block" / self.name
        for name, text in {
            "dev": f"9:{number}",
            "md/level": self.level,
            "md/layout": str(self.layout),
            "md/raid_disks": str(self.width),
            "md/array_state": "clean",
            "md/metadata_version": "1.2",
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text + "\n")
        for device, flag, slot in self.of():
            member = folder / "md" / f"dev-{device}"
            member.mkdir()
            (member / "state").write_text(STATES[flag] + "\n")
            (member / "slot").write_text(slot + "\n")
            (member / "size").write_text(f"{self.kib}\n")
            add_device(sys, device)


def drive_of(device: str) -> str:
    """The drive that a device is, or is a partition of."""
    has_p = device.startswith(("nvme", "cciss"))
    drive = device.rpartition("p")[0] if has_p else device.rstrip("0123456789")
    return drive or device


def add_device(sys: Path, device: str) -> None:
    drive = drive_of(device)
    place = sys / "block" / drive / device if drive != device else sys / "block" / drive
    place.mkdir(parents=True, exist_ok=True)
    if drive != device:
        (place / "partition").write_text("1\n")


def run(*arguments: object, sys: Path, udev: Path | None = None, path: str | None = None, shell: str = "sh") -> str:
    environment = os.environ | {"SYSFS": str(sys), "UDEV": str(udev or sys / "none"), "PATH": path or os.environ["PATH"]}
    done = subprocess.run([shell, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, timeout=300, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def of_python(arrays: Sequence[Array], root: Path, identities: dict[str, dict[str, str | None]]) -> list[str]:
    """Output of `drivetail collect --textfile` on a host with these arrays."""
    proc = root / "proc"
    proc.mkdir()
    (proc / "mdstat").write_text("Personalities : [raid6]\n" + "".join(each.mdstat() for each in arrays) + "unused devices: <none>\n")
    said = {f"/dev/{each.name}": each.export() for each in arrays if each.uuid}
    said[LSBLK[-1]] = json.dumps({"blockdevices": [{"name": name.replace("!", "/"), **who} for name, who in identities.items()]})
    collector = Collector(root / "out", host="web1", proc=proc, runner=lambda command: said.get(command[-1]))
    return collector.membership().splitlines()


ARRAYS = {
    "rotating parity, partitions, a spare": [Array("md0", "raid6", 2, "sda1 sdb1 sdc1 sdd1 sde1(S)", 4)],
    "a UUID": [Array("md127", "raid6", 2, "sda sdb sdc sdd sde(S)", 4, UUID)],
    "several arrays, one without a UUID": [Array("md0", "raid1", 0, "sda1 sdb1", 2, UUID), Array("md1", "raid5", 2, "sdc sdd sde", 3)],
    "a failed member, a journal, a replacement": [Array("md0", "raid5", 2, "sda sdb sdc sdd(F) sde(J) sdf(R)", 3)],
    "raid4": [Array("md0", "raid4", 0, "sda sdb sdc", 3)],
    "raid10 on NVMe": [Array("md0", "raid10", 258, "nvme0n1p2 nvme1n1p2 nvme10n1p2 nvme11n1p2", 4)],
    "no redundancy": [Array("md0", "raid0", -1, "sda sdb", 2)],
    "a small array over all drives": [
        Array("md0", "raid1", 0, "sda1 sdb1 sdc1 sdd1", 4, UUID, 8000, 8000),
        Array("md1", "raid5", 2, "sda2 sdb2 sdc2", 3, "", 9_000_000_000, 18_000_000_000),
    ],
    "two partitions of a drive are more than one": [
        Array("md0", "raid10", 258, "sda1 sda2 sdb1 sdb2", 4, "", 600, 1200),
        Array("md1", "raid1", 0, "sda3 sdb3", 2, "", 1000, 1000),
    ],
    "cciss": [Array("md0", "raid1", 0, "cciss!c0d0p1 cciss!c0d1p1", 2)],
} | {f"raid5, layout {layout}": [Array("md0", "raid5", layout, "sda sdb sdc sdd", 4)] for layout in range(6)} | {
    f"raid6, layout {layout}": [Array("md0", "raid6", layout, "sda sdb sdc sdd sde", 5)] for layout in (*range(6), 8, 9, 10, *range(16, 21))
}  # fmt: skip


def identify(place: Path, udev: Path, number: str, kind: int) -> dict[str, str | None]:
    """Have udev or the kernel say who a drive is, each in another way. Returns: serial and model as lsblk prints them."""
    serial, model = f"S{number.replace(':', 'N')}", 'ACME 4"/2000'
    (place / "dev").write_text(number + "\n")
    said = {
        0: ["ID_SERIAL_SHORT=35000c500", f"ID_SCSI_SERIAL={serial}", "SCSI_IDENT_SERIAL=no", r'ID_MODEL_ENC=ACME\x204"\x2f2000\x20\x20'],
        1: ["ID_SERIAL_SHORT=35000c500", f"SCSI_IDENT_SERIAL={serial}", f"ID_MODEL={model}"],
        2: [f"ID_SERIAL_SHORT={serial}"],
    }.get(kind)
    if said:
        (udev / f"b{number}").write_text("".join(f"E:{each}\n" for each in said))
    if kind == 3:  # a kernel without udev
        (place / "device").mkdir()
        (place / "device/serial").write_text(f"{serial}   \n")
        (place / "device/model").write_text(f"{model}\n")
    return {"serial": serial if kind <= 3 else None, "model": model if kind in (0, 1, 3) else None}


@pytest.mark.parametrize("name", ARRAYS)
def test_the_script_says_of_md_arrays_what_the_collector_says(name: str, tmp_path: Path) -> None:
    sys, udev = tmp_path / "sys", tmp_path / "udev"
    udev.mkdir()
    identities: dict[str, dict[str, str | None]] = {}
    for number, array in enumerate(ARRAYS[name]):
        array.write(sys, number)
        (udev / f"b9:{number}").write_text("E:MD_LEVEL=raid6\n" + (f"E:MD_UUID={array.uuid}\n" if array.uuid else ""))
        for minor, drive in enumerate(sorted({drive_of(device) for device, _, _ in array.of()})):
            identities[drive] = identify(sys / "block" / drive, udev, f"{65 + number}:{minor}", minor)
    expected = of_python(ARRAYS[name], tmp_path, identities)
    assert len(expected) > 3
    assert sorted(run(sys=sys, udev=udev).splitlines()) == sorted(expected)


def test_without_udev_the_kernel_gives_the_uuid(tmp_path: Path) -> None:
    array = Array("md0", "raid1", 0, "sda sdb", 2, UUID)
    array.write(tmp_path, 0)
    (tmp_path / "block/md0/md/uuid").write_text("aaaaaaaa-bbbb-bbbb-cccc-ccccdddddddd\n")
    assert run(sys=tmp_path).count(f'uuid="{UUID}"') == 2
    (tmp_path / "block/md0/md/metadata_version").write_text("0.90\n")
    assert run(sys=tmp_path).count('uuid=""') == 2


@pytest.mark.parametrize("file", ["level", "array_state"])
def test_an_array_that_does_not_run_is_left_out(file: str, tmp_path: Path) -> None:
    Array("md0", "raid1", 0, "sda sdb", 2).write(tmp_path, 0)
    Array("md1", "raid1", 0, "sdc sdd", 2).write(tmp_path, 1)
    (tmp_path / "block/md0/md" / file).write_text({"level": "container\n", "array_state": "inactive\n"}[file])
    assert [line.partition('md="')[2][:3] for line in run(sys=tmp_path).splitlines()[2:]] == ["md1", "md1"]


def zpool(folder: Path, text: str) -> str:
    """A PATH on which `zpool status -LP` prints a text."""
    folder.mkdir()
    (folder / "zpool").write_text(f"#!/bin/sh\n[ \"$*\" = 'status -LP' ] && cat <<'END'\n{text}END\n")
    (folder / "zpool").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


POOLS = """  pool: big data 2
 state: ONLINE
config:

\tNAME          STATE     READ WRITE CKSUM
\tbig data 2    ONLINE       0     0     0
\t  /dev/nvme0n1p1  ONLINE   0     0     0
\t  /dev/nvme1n1p1  ONLINE   0     0     0

errors: No known data errors

  pool: big tank
 state: DEGRADED
status: One or more devices could not be opened.  Sufficient replicas exist for
\tthe pool to continue functioning in a degraded state.
action: Attach the missing device and online it using 'zpool online'.
  scan: resilver in progress since Mon Jan  5 10:00:00 2026
config:

\tNAME                STATE     READ WRITE CKSUM
\tbig tank            DEGRADED     0     0     0
\t  raidz2-0          DEGRADED     0     0     0
\t    /dev/sda1       ONLINE       0     0     0
\t    replacing-1     DEGRADED     0     0     0
\t      1234567890123 UNAVAIL      0     0     0  was /dev/sdb1
\t      /dev/sdg1     ONLINE       0     0     0  (resilvering)
\t    spare-2         DEGRADED     0     0     0
\t      /dev/sdc1     FAULTED      0    12     0  too many errors
\t      /dev/sdh1     ONLINE       0     0     0
\t    /dev/sdd1       ONLINE       0     0     0
\t  mirror-1          ONLINE       0     0     0
\t    /dev/sde        ONLINE       0     0     0
\t    /dev/sdf        ONLINE       0     0     0
\tlogs\t
\t  mirror-2          ONLINE       0     0     0
\t    /dev/nvme2n1p1  ONLINE       0     0     0
\t    /dev/nvme3n1p1  ONLINE       0     0     0
\tcache
\t  /dev/nvme4n1p1    ONLINE       0     0     0
\tspares
\t  /dev/sdh1         INUSE     currently in use
\t  /dev/sdi1         AVAIL

errors: No known data errors
"""
PLACES = {
    "big data 2": "nvme0n1 nvme1n1",
    "big tank/raidz2-0": "sda sdg sdh sdd",
    "big tank/mirror-1": "sde sdf",
    "big tank/mirror-2": "nvme2n1 nvme3n1",
    "big tank/cache": "nvme4n1",
}


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox sh"])
def test_a_zfs_vdev_is_a_group(shell: str, tmp_path: Path) -> None:
    """The pools have names with spaces."""
    require(*([] if shell == "sh" else [shell.split()[0]]))
    for device in [*(f"sd{d}1" for d in "abcdghi"), "sde", "sdf", *(f"nvme{n}n1p1" for n in range(5))]:
        add_device(tmp_path, device)
    wrapper = tmp_path / "shell"  # `busybox sh` is two words
    wrapper.write_text(f'#!/bin/sh\nexec {shell} "$@"\n')
    wrapper.chmod(0o755)
    series = 'drivetail_md_member{{md="{}",device="{}",uuid="",role="{}",serial="",model=""}} 1'
    lines = [series.format(group, device, "data") for group, of in PLACES.items() for device in of.split()]
    lines.append(series.format("big tank", "sdi", "spare"))
    assert run(sys=tmp_path, path=zpool(tmp_path / "bin", POOLS), shell=str(wrapper)).splitlines()[2:] == lines


def test_a_host_without_arrays_or_pools_has_no_series(tmp_path: Path) -> None:
    (tmp_path / "block" / "sda").mkdir(parents=True)
    assert len(run(sys=tmp_path, path=zpool(tmp_path / "bin", "no pools available\n")).splitlines()) == 2


def test_the_file_is_replaced_whole_and_kept_when_something_fails(tmp_path: Path) -> None:
    folder = tmp_path / "textfile"
    folder.mkdir()
    Array("md0", "raid1", 0, "sda sdb", 2).write(tmp_path, 0)
    run(folder, sys=tmp_path)
    (file,) = folder.iterdir()
    assert (file.name, file.stat().st_mode & 0o777, file.read_text()) == ("drivetail_membership.prom", 0o644, run(sys=tmp_path))
    before = file.read_text()
    refused = subprocess.run(["sh", str(SCRIPT), str(tmp_path / "no-folder")], capture_output=True, text=True, timeout=300)
    assert refused.returncode != 0 and "no-folder" in refused.stderr
    assert [path.name for path in folder.iterdir()] == [file.name] and file.read_text() == before


def test_the_script_is_short_and_shellcheck_finds_nothing() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 132
    shellcheck = Path(executable).with_name("shellcheck")
    done = subprocess.run([str(shellcheck), "--shell=sh", str(SCRIPT)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("unit", sorted((ROOT / "deploy" / "systemd").iterdir()), ids=lambda path: path.name)
def test_systemd_reads_the_units(unit: Path, tmp_path: Path) -> None:
    """systemd-analyze wants the programs to exist: /bin/true stands for them."""
    for path in unit.parent.iterdir():
        (tmp_path / path.name).write_text(re.sub(r"(?m)^(ExecStart=-?).*", r"\1/bin/true", path.read_text()))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")

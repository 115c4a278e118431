"""A real Linux with a real md RAID-6, one of whose six drives its machine holds to 25 I/Os a second: that serial is flagged and no other.

QEMU interprets the machine (TCG, nothing of this one's hardware is asked for): Debian's kernel, this system's /usr, read-only, for mdadm,
udev and lsblk, and six AHCI drives, one of them with QEMU's own throttle. Before I/O on the array and amid it the machine writes down
what docs/sources/diskstats.md, mdadm.md and lsblk.md ask of an operator. A second machine holds none of its drives back: it shows that
what is flagged is the throttle, not the emulation. Then what drivetail prints is done to the first: it boots again to confirm the drive
and take it out, and once more with another one in its place. A boot costs about 30 s of a core.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest

from drivetail.host.collect import Collector
from tests.proof.support import drivetail

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drivetail-tests"
QEMU = "qemu-system-x86_64"
BUSYBOX = Path("/usr/bin/busybox")
WITH_SBIN = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        shutil.which(QEMU) is None
        or not Path("/usr/sbin/mdadm").exists()
        # the other package of that name needs libraries, and there are none before /usr is mounted
        or not BUSYBOX.exists() or b"/lib64/ld-linux" in BUSYBOX.read_bytes(),
        reason="not installed (Debian: apt-get install qemu-system-x86 mdadm busybox-static)",
    ),
    pytest.mark.xdist_group("machine"),
]  # fmt: skip
MEMBERSHIP = Path(__file__).resolve().parents[2] / "deploy" / "membership.sh"
SERIALS = {"held": "SER", "free": "FREE"}
SLOWED = "SER0003"
MODULES = "virtio_pci 9pnet_virtio 9p ahci sd_mod raid456"
INIT = """#!/busybox sh
set -ex
export PATH=/usr/sbin:/usr/bin
# one for instructions that this processor lacks is refused
for module in /*.ko; do /busybox insmod $module || true; done
/busybox mount -t devtmpfs dev /dev
/busybox mount -t proc proc /proc
/busybox mount -t sysfs sys /sys
/busybox mount -t tmpfs run /run
/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose usr /usr
/busybox mount -t 9p -o trans=virtio,version=9p2000.L out /out
# letters go by who answers first: let the drives come once more, port by port
read -r count < /out/count
until [ "$(ls -d /sys/block/sd? | wc -l)" = "$count" ]; do sleep 1; done
for drive in /sys/block/sd?; do echo 1 > $drive/device/delete; done
for port in $(/busybox seq 0 $((count - 1))); do
    echo "- - -" > /sys/class/scsi_host/host$port/scan
    until [ "$(ls -d /sys/block/sd? | wc -l)" -gt $port ]; do sleep 1; done
done
# it is udev that asks a drive for its serial number
/usr/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add --subsystem-match=block
until [ "$(lsblk -dno SERIAL | grep -c .)" = "$count" ]; do sleep 1; done
look() {
    at=$(date +%s)
    (echo TS $at; cat /proc/diskstats) >> /out/diskstats
    # one tells the array's UUID, the other its layout: of one array if they are one look in one file
    (echo TS $at; mdadm --detail --export /dev/md0; cat /proc/mdstat) >> /out/mdadm
}
list() {
    look
    lsblk --json --bytes -d -o NAME,TYPE,SERIAL,WWN,MODEL,REV,VENDOR,SIZE,ROTA,TRAN | sed "1s/{/{\\"TS\\": $at,/" > /out/lsblk.json
    sh /membership.sh > /out/membership.prom
}
# reads of a chunk, which is on one drive; writes of a stripe, which is on all
work() {
    for skip in 0 600 1200 1800 2400 3000; do
        while :; do dd if=/dev/md0 of=/dev/null bs=64k skip=$skip iflag=direct; done 2> /dev/null &
    done
    while :; do dd if=/dev/zero of=/dev/md0 bs=256k oflag=direct; done 2> /dev/null &
    sleep 20
    look
}
cd /out
. /out/steps
/busybox poweroff -f
"""
CREATE = """mdadm --create /dev/md0 --run --assume-clean --level=6 --chunk=64 --raid-devices=6 /dev/sd[a-f]
list
work
"""
# udev has assembled it by itself, under whatever name
STOP = "udevadm settle\nmdadm --stop --scan\n"
CONFIRM = f"""{STOP}mdadm --assemble --run /dev/md0 /dev/sd[a-f]
list
sudo() {{ "$@"; }}
"""
SWAP = f"""{STOP}mdadm --assemble --run /dev/md0 /dev/sd[abcef]
{{add}}
mdadm --wait /dev/md0 || true
list
work
"""


def kernel() -> Path:
    """Folder with Debian's `vmlinuz` and MODULES, numbered in the order to load them. Fetched once, kept in CACHE, never installed."""
    kept = CACHE / "debian-kernel"
    if kept.exists():
        return kept
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CACHE) as folder:
        package = "$(apt-cache depends linux-image-amd64 | grep -o 'linux-image-[0-9].*')"
        fetched = subprocess.run(["sh", "-c", f'apt-get download "{package}"'], cwd=folder, capture_output=True, text=True)
        if fetched.returncode:
            *_, why = fetched.stderr.splitlines()
            pytest.skip(f"no Debian kernel (apt-get update; apt-get download linux-image-amd64): {why}")
        unpack = """
            dpkg-deb -x *.deb .
            [ -e lib ] || ln -s usr/lib lib
            release=$(ls lib/modules)
            depmod -b . "$release"
            modprobe -d . -S "$release" --show-depends -a """
        told = subprocess.check_output(["sh", "-ec", unpack + MODULES], cwd=folder, env=WITH_SBIN, text=True)
        draft = Path(folder, "draft")
        draft.mkdir()
        (image,) = Path(folder, "boot").glob("vmlinuz-*")
        shutil.copy(image, draft / "vmlinuz")
        for number, module in enumerate(dict.fromkeys(re.findall(r"^insmod (\S+)", told, re.MULTILINE))):
            shutil.copy(Path(folder, module), draft / f"{number:02}.ko")
        draft.rename(kept)
    return kept


def first_files(folder: Path) -> Path:
    """An archive of what the machine has before it mounts anything: busybox, modules and INIT."""
    root = folder / "root"
    for name in ("dev", "proc", "sys", "run", "usr", "out"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    shutil.copy(BUSYBOX, root / "busybox")
    shutil.copy(MEMBERSHIP, root)
    for module in kernel().glob("*.ko"):
        shutil.copy(module, root)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    names = "".join(f"{path.relative_to(root)}\n" for path in root.rglob("*"))
    packed = subprocess.run([BUSYBOX, "cpio", "-o", "-H", "newc"], cwd=root, input=names.encode(), check=True, capture_output=True)
    (folder / "initramfs").write_bytes(packed.stdout)
    return folder / "initramfs"


def run_machine(out: Path, initramfs: Path, images: Path, serials: list[str], steps: str, hours: int = 0) -> None:
    """Run a machine with drives of these serials to its end; what it wrote down is in `out`. SLOWED is held to 25 I/Os a second.

    images: keeps what is on the drives. hours: how far the machine's clock is ahead.
    """
    out.mkdir(parents=True)
    images.mkdir(exist_ok=True)
    (out / "steps").write_text(steps)
    (out / "count").write_text(f"{len(serials)}\n")
    # six ports each, before the machine's own
    drives = ["-device", "ahci,id=a0,addr=8", "-device", "ahci,id=a1,addr=9"]
    for port, serial in enumerate(serials):
        image = images / serial
        image.touch()
        os.truncate(image, 64 << 20)
        throttle = ",throttling.iops-total=25" if serial == SLOWED else ""
        drives += ["-drive", f"if=none,id={serial},format=raw,file={image}{throttle}"]
        drives += ["-device", f"ide-hd,bus=a{port // 6}.{port % 6},drive={serial},serial={serial}"]
    shared = "security_model=none,multidevs=remap"
    done = subprocess.run(
        [QEMU, "-machine", "q35", "-accel", "tcg", "-m", "512M", "-nodefaults", "-no-reboot", "-nographic", "-serial", "stdio",
         "-rtc", f"base={datetime.now(UTC) + timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}",
         # a busy host keeps the timer's interrupts waiting for longer than the kernel does when it looks whether they come
         "-kernel", str(kernel() / "vmlinuz"), "-initrd", str(initramfs), "-append", "console=ttyS0 quiet panic=-1 no_timer_check",
         "-virtfs", f"local,path=/usr,mount_tag=usr,readonly=on,{shared}",
         "-virtfs", f"local,path={out},mount_tag=out,{shared}", *drives],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600,
    )  # fmt: skip
    # INIT ends there only if all before went well
    assert "Power down" in done.stdout, done.stdout
    # no source of what hosts deliver
    (out / "count").unlink()
    (out / "membership.prom").rename(images.with_suffix(".prom"))


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that the two machines have written, a folder each."""
    folder = tmp_path_factory.mktemp("machines")
    initramfs = first_files(folder)
    for host, name in SERIALS.items():
        run_machine(folder / "hosts" / host, initramfs, folder / host, [f"{name}{number:04}" for number in range(6)], CREATE)
    # what is done to the first machine changes its drives
    shutil.copytree(folder / "held", folder / "held.kept")
    return folder / "hosts"


def take_in(hosts: Path, warehouse: Path) -> None:
    drivetail("ingest", "collected", hosts, "--min-coverage", 0.001, "--strict", "--warehouse", warehouse)
    drivetail("build", "--warehouse", warehouse)


@pytest.fixture(scope="module")
def published(hosts: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    warehouse = hosts.with_name("warehouse")
    take_in(hosts, warehouse)
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        yield connection


def test_the_throttled_drive_is_slow_and_no_other(published: duckdb.DuckDBPyConnection) -> None:
    rows = published.execute("select drive_id, slowdown from marts.fct_drive_hours order by drive_id").fetchall()
    slowdowns = dict(rows)
    assert len(rows) == len(slowdowns) == 12 and None not in slowdowns.values(), rows
    slow = published.execute("select distinct drive_id from marts.fct_drive_hours where is_slow").fetchall()
    assert slow == [(SLOWED,)], f"{slowdowns}"


def test_the_raid_groups_are_those_of_mdadm(hosts: Path, published: duckdb.DuckDBPyConnection) -> None:
    told = {re.search(r"^MD_UUID=(\S+)", (hosts / host / "mdadm").read_text(), re.MULTILINE)[1] for host in ("held", "free")}
    groups = published.execute("select raid_group_id, raid_level, data_drive_count from marts.dim_raid_groups").fetchall()
    assert len(told) == 2 and sorted(groups) == [(uuid, "raid6, rotating parity", 6) for uuid in sorted(told)]


@pytest.mark.parametrize("host", ["held", "free"])
def test_the_script_for_node_exporter_says_what_the_collector_says(host: str, hosts: Path, tmp_path: Path) -> None:
    _, export, mdstat = re.split(r"^TS .*\n|^(?=Personalities)", (hosts / host / "mdadm").read_text(), flags=re.MULTILINE)[:3]
    (tmp_path / "mdstat").write_text(mdstat)
    said = {"mdadm": export, "lsblk": (hosts / host / "lsblk.json").read_text()}
    collector = Collector(tmp_path / "out", host=host, proc=tmp_path, runner=lambda command: said[command[0]])
    expected = collector.membership().splitlines()
    assert {number for line in expected for number in re.findall(r'serial="(\w+)"', line)} == {f"{SERIALS[host]}{n:04}" for n in range(6)}
    assert sorted((hosts.parent / f"{host}.prom").read_text().splitlines()) == sorted(expected)


@pytest.mark.needs("fio")
def test_printed_commands_confirm_and_replace_the_drive(hosts: Path, tmp_path: Path) -> None:
    """Found by its hour; confirmed by the printed command; out and in by the commands of its ticket; then its decision closes."""
    warehouse, serials = tmp_path / "warehouse", [f"SER{number:04}" for number in range(6)]
    initramfs, images = hosts.parent / "initramfs", hosts.parent / "held"

    def say(*arguments: object) -> str:
        return drivetail(*arguments, "--warehouse", warehouse).stdout

    take_in(hosts, warehouse)
    command = say("confirm", SLOWED, "--print", "--seconds", 12).strip()
    ticket = say("decide", SLOWED, "replace", "--ticket-text")
    checks, without = (next(line for line in ticket.splitlines() if words in line) for words in ("Check that", "Without one"))
    first, (fail, remove, add) = re.findall("`([^`]+)`", checks), re.findall("`([^`]+)`", without)
    assert (fail, add) == ("mdadm /dev/md0 --fail /dev/sdd", "mdadm /dev/md0 --add /dev/sdd")
    say("decide", SLOWED, "replace", "--note", "slow by its hour")

    # an hour later it is confirmed and taken out, another hour later another one is in its place
    taken_out = "\n".join([CONFIRM, command, *first, fail, remove, "look", ""])
    run_machine(tmp_path / "confirmed" / "held", initramfs, images, serials, taken_out, hours=1)
    say("ingest", "confirm", tmp_path / "confirmed" / "held" / f"confirm-{SLOWED}.txt", "--strict")
    take_in(tmp_path / "confirmed", warehouse)
    assert "slow by itself: " in say("decide", SLOWED, "replace", "--ticket-text")
    assert "pending" in say("decisions")

    serials[3] = "NEW0003"
    run_machine(tmp_path / "swapped" / "held", initramfs, images, serials, SWAP.format(add=add), hours=2)
    take_in(tmp_path / "swapped", warehouse)
    (decision,) = json.loads(say("decisions", "--format", "json"))
    assert (decision["drive_id"], decision["state"], decision["successor_drive_id"]) == (SLOWED, "replaced", "NEW0003")
    # the new one is told from the old by its number, not by its place
    assert "Probe of" not in say("explain", "held/sdd") and "Probe of" in say("explain", SLOWED)


def test_printed_commands_replace_the_drive_by_a_free_one(hosts: Path, tmp_path: Path) -> None:
    """The seventh drive takes its place while all six are there; without a word of anybody the swap is seen."""
    warehouse, serials = tmp_path / "warehouse", [*(f"SER{number:04}" for number in range(6)), "NEW0006"]
    images = Path(shutil.copytree(hosts.parent / "held.kept", tmp_path / "images"))
    take_in(hosts, warehouse)
    ticket = drivetail("decide", SLOWED, "replace", "--ticket-text", "--warehouse", warehouse).stdout
    with_free = next(line for line in ticket.splitlines() if "With a free drive" in line)
    commands = [command.replace("NEW", "sdg") for command in re.findall("`(mdadm [^`]+)`", with_free)]
    assert [command.split()[2] for command in commands] == ["--add", "--replace", "/dev/md0", "--remove"]
    # its check is that nothing is rebuilt: the machine was switched off amid writes; --wait fails where there is nothing to wait for
    done = "\n".join(f"{command} || true" if "--wait" in command else command for command in [commands[2], *commands])
    run_machine(tmp_path / "hosts" / "held", hosts.parent / "initramfs", images, serials, f"{CONFIRM}{done}\nlist\nwork\n", hours=1)
    take_in(tmp_path / "hosts", warehouse)
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        swaps = connection.execute("select drive_id, successor_drive_id from marts.fct_drive_replacements").fetchall()
    assert swaps == [(SLOWED, "NEW0006")]

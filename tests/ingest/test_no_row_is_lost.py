"""Rows put into damaged text: each of them is accepted, or counted as turned away. Counted here, not by the parser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st

from ingest.contract.errors import UnreadableFile
from ingest.reading.batches import Rejection
from ingest.reading.devices import is_whole_drive
from ingest.reading.files import SourceFile
from ingest.reading.hosts import looks, read_text
from ingest.sources.diskstats import _snapshots
from ingest.sources.mdadm import arrays_of
from ingest.sources.prometheus.text import Labels, read_samples
from ingest.sources.sysstat import read_intervals, zone_of
from tests.fuzz import SECONDS, fuzz
from tests.ingest.conftest import Warehouse

TS = 1_767_608_400
MESSAGE = "[ 1234.5] sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_TIME_OUT"
MOST_MARKED = 4
SHARE = 0.2  # of the seconds that each parser has: test_any_delivery.py gives it them whole

# what happens to a line of the good text: (line, what, place within it)
Damage = Sequence[tuple[int, str, int]]


@dataclass(frozen=True)
class Format:
    """A format of a row a line: text as it should be, a row of the n-th drive that only the test has, and what a parser makes of a file."""

    good: str
    row: Callable[[int], str]
    read: Callable[[Path], tuple[set[str], int]]
    """The drives in what was accepted, and how many rows were told of: accepted, rejected or duplicate."""


def diskstats(path: Path) -> tuple[set[str], int]:
    file = SourceFile(path, "in!web1/diskstats", "web1/diskstats", "snapshots")
    rows, rejected, _ = _snapshots("web1", looks(read_text(file)))
    return set(rows["device"]), rows.height + len(rejected)


def sysstat(path: Path) -> tuple[set[str], int]:
    found = read_intervals(path, zone_of("UTC"))
    return {row["device"] for row in found.intervals}, len(found.intervals) + len(found.rejected)


def samples(path: Path) -> tuple[set[str], int]:
    file = read_samples(path, "web1", Labels(), path.parent)
    (found,) = file.pieces()
    assert all(map(is_whole_drive, found.readings["device"]))
    return set(found.readings["device"]), found.readings.height + file.broken.height + found.broken.height + found.duplicates


SADF = "web1;600;2026-01-05 10:10:00 UTC;{};10.00;1.00;1.00;0.00;0.20;0.01;25.43;1.00\n"
SAR = "10:10:00          {}     10.00      1.00      1.00      0.00      0.20      0.01     25.43      1.00\n"
COUNTERS = " 1 0 8 1 1 0 8 1 0 5 6 0 0 0 0 0 0\n"
SAMPLE = 'node_disk_reads_completed_total{{device="{}"}} 5 {}000\n'
FORMATS = {
    "diskstats": Format(
        "".join(f"TS {TS + 60 * n}\n   8 0 sda{COUNTERS}   8 1 sda1 1 2 3 4\n 253 0 dm-0{COUNTERS}   8 16 sdb{COUNTERS}" for n in range(3)),
        lambda n: f"   8 {n} sdmark{'abcd'[n]}{COUNTERS}",
        diskstats,
    ),
    "sadf -d": Format(
        "# hostname;interval;timestamp;CPU;%user\nweb1;600;2026-01-05 10:10:00 UTC;-1;1.00\n"
        "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n"
        + SADF.format("sda") + SADF.format("dm-0") + SADF.format("sdb") + "web1;-1;2026-01-05 10:15:00 UTC;LINUX-RESTART\t(2 CPU)\n",
        lambda n: SADF.format(f"sdmark{'abcd'[n]}"),
        sysstat,
    ),
    "sar -d": Format(
        "Linux 6.1.0-56 (web1) \t2026-01-05 \t_x86_64_\t(2 CPU)\n\n10:00:00 CPU %user\n10:10:00 all 1.00\nAverage: all 1.00\n\n"
        "10:00:00          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n"
        + SAR.format("sda") + SAR.format("dm-0") + SAR.format("sdb") + "\n10:15:00     LINUX RESTART\t(2 CPU)\n",
        lambda n: SAR.format(f"sdmark{'abcd'[n]}"),
        sysstat,
    ),
    "samples": Format(
        "# TYPE node_disk_reads_completed_total counter\n" + "".join(SAMPLE.format(device, TS) for device in ("sda", "sda1", "sdb")),
        lambda n: SAMPLE.format(f"sdmark{'abcd'[n]}", TS),
        samples,
    ),
}  # fmt: skip


def damaged(lines: list[str], damage: Damage) -> list[str]:
    """Lines dropped, cut, or with a message of the kernel within; the rest of the line may then stand on a line of its own."""
    lines = list(lines)
    for number, what, place in damage:
        line = lines[number % len(lines)]
        if not line:  # a message in its place would end in the next line, whichever that is
            continue
        at = place % len(line)
        lines[number % len(lines)] = {
            "drop": "",
            "cut": line[:at] + "\n",
            "message": line[:at] + MESSAGE + line[at:],
            "message and line": line[:at] + MESSAGE + "\n" + line[at:],
        }[what]
    return lines


DAMAGE = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["drop", "cut", "message", "message and line"]), st.integers(0, 90)), max_size=5
)


@pytest.mark.parametrize("name", FORMATS)
def test_every_marked_row_is_reported(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    path = tmp_path / "text.txt"

    def read(text: str) -> tuple[set[str], int]:
        path.write_text(text)
        try:
            return form.read(path)
        except UnreadableFile:  # all of it is refused, which the file's status says
            return set(), -1

    def check(given: tuple[Damage, list[int]]) -> None:
        damage, places = given
        lines = damaged(form.good.splitlines(keepends=True), damage)
        # never above what says when, or whose, all is
        marked = list(lines)
        for n, place in enumerate(places):
            marked.insert(1 + place % len(marked), form.row(n))
        _, without = read("".join(lines))
        _, told = read("".join(marked))
        if without == -1:  # what made it unreadable may be mended by a row: then all it holds is told of
            assert told == -1 or told >= len(places), (told, "".join(marked))
        else:
            assert told - without == len(places), (told, without, "".join(marked))

    good, count = read(form.good)
    assert good == {"sda", "sdb"}
    whole, marked = read(
        form.good + "".join(map(form.row, range(2)))
        if name != "sar -d"
        else form.good.replace("\n10:15", form.row(0) + form.row(1) + "\n10:15")
    )
    assert whole == good | {"sdmarka", "sdmarkb"} and marked == count + 2
    fuzz(
        st.tuples(DAMAGE, st.lists(st.integers(0, 40), min_size=1, max_size=MOST_MARKED)), check, f"marked rows of {name}", SHARE * SECONDS
    )


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_that_is_broken_anywhere_is_reported(name: str, tmp_path: Path) -> None:
    form, path = FORMATS[name], tmp_path / "text.txt"
    path.write_text(form.good)
    _, count = form.read(path)
    row = form.row(0)
    before = form.good.rindex("sda" if name != "diskstats" else "sdb")
    begins = form.good.index("\n", before) + 1
    # within the quotes of a label a message of the kernel is part of it
    for what in ["cut"] if name == "samples" else ["cut", "message", "message and line"]:
        for place in range(1, len(row) - 1, 1 if what == "cut" and name != "samples" else 4):
            (torn,) = damaged([row], [(0, what, place)])
            path.write_text(form.good[:begins] + torn + form.good[begins:])
            _, told = form.read(path)
            expected = sum(bool(line.strip()) for line in torn.splitlines())
            assert told == count + expected, torn


DEVICES = ("sda", "sdb", "sdd")
UUID = "aaaaaaaa:bbbbbbbb:cccccccc:dddddddd"
DETAIL = (
    "/dev/md0:\n        Raid Level : raid6\n      Raid Devices : 4\n             State : clean\n   Working Devices : 3\n"
    f"            Layout : left-symmetric\n              UUID : {UUID}\n"
    "\n    Number   Major   Minor   RaidDevice State\n"
    + "".join(f"       {n}       8       {16 * n}        {n}      active sync   /dev/{device}\n" for n, device in enumerate(DEVICES))
    + "       -       0        0        3      removed\n"
)
EXPORT = f"MD_LEVEL=raid6\nMD_DEVICES=4\nMD_UUID={UUID}\n" + "".join(
    f"MD_DEVICE_{device}_ROLE={n}\nMD_DEVICE_{device}_DEV=/dev/{device}\n" for n, device in enumerate(DEVICES)
)
MDSTAT = (
    "Personalities : [raid6]\nmd0 : active raid6 sdd[2] sdb[1] sda[0]\n"
    "      99 blocks super 1.2 level 6, 512k chunk, algorithm 2 [4/3] [UUU_]\n"
    f"      uuid {UUID}\n\nunused devices: <none>\n"
)
RAID0 = "md1 : active raid0 sdh[1] sdg[0]\n      99 blocks super 1.2 512k chunks\n\nunused devices: <none>\n"
ARRAYS = {"detail": DETAIL, "export": EXPORT, "mdstat": MDSTAT}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_beside_a_damaged_one_is_read_and_no_drive_leaves(name: str) -> None:
    good = ARRAYS[name]
    lines = good.splitlines(keepends=True)
    marked = good.replace("sd", "xvd").replace("md0", "md9").replace(UUID, "eeeeeeee:ffffffff:aaaaaaaa:bbbbbbbb")

    def check(given: tuple[Damage, bool]) -> None:
        damage, is_first = given
        # of an export that has lost both lines of a member nobody can say so
        torn = "".join(damaged(lines, [each for each in damage if name != "export" or (each[1] != "drop" and each[2])]))
        text = f"TS {TS}\n{good}TS {TS + 60}\n{marked + torn if is_first else torn + marked}"
        rejected: list[Rejection] = []
        _, look = looks(text)
        found = [array for array in arrays_of(look, rejected) if not array.is_torn]
        whole = [{member.device.removeprefix("/dev/") for member in array.members} for array in found]
        assert {"xvda", "xvdb", "xvdd"} in whole or rejected, text
        assert set(DEVICES) in whole or rejected or len(found) == 1, text

    fuzz(st.tuples(DAMAGE, st.booleans()), check, f"arrays beside a damaged one, by {name}", SHARE * SECONDS)


def test_nobody_leaves_in_any_damaged_look(warehouse: Warehouse) -> None:
    files = {}
    for name, good in ARRAYS.items():
        lines = good.splitlines(keepends=True)
        torn = [
            "".join(damaged(lines, [(number, what, place)]))
            for number in range(len(lines)) for place in range(0, len(lines[number]), 2) for what in ("cut", "message", "message and line")
        ]  # fmt: skip
        # of an export that ends with the lines of a member nobody can say that more were to come
        ends = [end for end in range(1, len(good), 2) if name != "export" or "\n" not in good[end - 1 : end + 1]]
        torn += [good[:end] + "\n" for end in ends]
        files[f"{name}/mdadm"] = f"TS {TS}\n{good}" + "".join(f"TS {TS + n}\n{text}" for n, text in enumerate(torn, 1))
    assert warehouse.land("mdadm", files).rows_rejected > 300
    assert warehouse.rows("drive_events", "drive_id detail occurred_at") == []
    # looks that call the array otherwise are records, too
    assert warehouse.live("drives")["drive_id"].unique().sort().to_list() == [f"{name}/{device}" for name in ARRAYS for device in DEVICES]


@pytest.mark.parametrize("ends", ["raid0 ", "sdh[1]", "sdg[0]\n"])
def test_nobody_leaves_an_array_without_a_width_where_the_file_ends_in_it(ends: str, warehouse: Warehouse) -> None:
    warehouse.land("mdadm", {"web1/mdstat": f"TS {TS}\n{RAID0}TS {TS + 60}\n{RAID0[: RAID0.index(ends) + len(ends)]}"})
    assert warehouse.rows("drives", "drive_id") == [("web1/sdg",), ("web1/sdh",)] and not warehouse.stored("drive_events").height


def _look(source: str, at: int, ios: int) -> str:
    if source == "diskstats":
        return f"TS {at}\n8 0 sda {ios} 0 8 {ios} 0 0 0 0 0 5 6\n"
    counters = {"reads_completed": ios, "read_time_seconds": ios / 500, "read_bytes": ios, "writes_completed": 0, "write_time_seconds": 0}
    return "".join(f'node_disk_{name}_total{{device="sda"}} {value} {at}\n' for name, value in [*counters.items(), ("written_bytes", 0)])


@pytest.mark.parametrize("source", ["diskstats", "prometheus"])
@pytest.mark.parametrize("minutes", [4, 14, 20, 35, 60, 90])
@pytest.mark.parametrize("offset", [0, 5, 1020])
def test_every_io_between_two_looks_is_of_an_hour_or_a_note_says_why(source: str, minutes: int, offset: int, warehouse: Warehouse) -> None:
    looks_at = [TS + offset + 60 * minutes * n for n in range(360 // minutes + 1)]
    text = "".join(_look(source, at, 7 * n) for n, at in enumerate(looks_at))
    summary = warehouse.land(source, {f"web1/{source if source == 'diskstats' else 'a.prom'}": text})
    counted = sum(ios for (ios,) in warehouse.rows("drive_hours", "read_ios"))
    is_said = "web1 (" in (summary.files[0].note or "") and "reach over the end of an hour" in (summary.files[0].note or "")
    assert (counted == 7 * (len(looks_at) - 1)) != is_said

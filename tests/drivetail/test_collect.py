"""The collector: looks at a made-up host, delivers in one step, and what it delivers is what the sources take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from drivetail.host.collect import CollectError, Collector, run
from engine.warehouse import Warehouse
from ingest import ingest, list_deliveries, table_files
from ingest.raw.register import Register
from tests.drivetail.conftest import drivetail
from tests.ingest.conftest import Warehouse as Raw

T0 = 1_767_607_200
AT = datetime(2026, 1, 5, 10)  # that
MDSTAT = """Personalities : [raid6]
md0 : active raid6 sdc[2] sdb1[1]{failed} sda[0] sdd[3]
      9 blocks super 1.2 level 6, 512k chunk, algorithm {layout} {working}
"""
EXPORT = "MD_LEVEL=raid6\nMD_DEVICES=4\nMD_UUID=aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n" + "".join(
    f"MD_DEVICE_dev_{d}_ROLE={n}\nMD_DEVICE_dev_{d}_DEV=/dev/{d}\n" for n, d in enumerate(("sda", "sdb1", "sdc", "sdd"))
)


class Host:
    """A host with four drives in one array; `answers` are the commands it has, by their name."""

    def __init__(self, root: Path, layout: int = 5) -> None:
        self.layout = layout
        self.proc = root / "proc"
        self.proc.mkdir()
        devices = [{"name": f"sd{d}", "type": "disk", "serial": f"S{d}", "rota": True, "size": 4096} for d in "abcd"]
        self.answers: dict[str, str | None] = {
            "lsblk": json.dumps({"blockdevices": devices}),
            "mdadm": EXPORT,
            "journalctl": '{"MESSAGE":"hello"}\n',
        }
        self.asked: list[str] = []
        self.keeps_kernel = True
        self.at(0)

    def at(self, minute: int, failed: str = "") -> None:
        self.counts(dict.fromkeys("abcd", (100 * minute, 300 * minute)))
        working = "[4/3] [U_UU]" if failed else "[4/4] [UUUU]"
        (self.proc / "mdstat").write_text(MDSTAT.format(failed=failed, working=working, layout=self.layout))

    def counts(self, drives: dict[str, tuple[int, int]]) -> None:
        """Set the counters of drives: reads, and the milliseconds that they took."""
        lines = [f"8 0 sd{drive} {ios} 0 {8 * ios} {taken} 0 0 0 0 0 0 0\n" for drive, (ios, taken) in drives.items()]
        (self.proc / "diskstats").write_text("".join(lines))

    def run(self, command: Sequence[str]) -> str | None:
        self.asked.append(" ".join(command))
        if "--boot" in command:
            return "a line\n" if self.keeps_kernel else ""
        return self.answers.get(command[0])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def collector(host: Host, out: Path) -> Collector:
    return Collector(out, host="web1", proc=host.proc, runner=host.run)


def looked(host: Host, collecting: Collector, *minutes: int, failed: str = "") -> None:
    for minute in minutes:
        host.at(minute, failed)
        collecting.look(T0 + 60 * minute)


def asked_of_journald(host: Host) -> list[str]:
    return [command for command in host.asked if "--since" in command]


def of_host(warehouse: Path) -> dict[str, list[tuple[object, ...]]]:
    """Records of a warehouse, by the kind of record, without where it came from."""
    kinds = {kind: Raw(warehouse).live(kind) for kind in ("drive_hours", "drives", "drive_events", "drive_aliases")}
    return {
        kind: sorted(rows.drop("delivery_seq", "file_no", "row_no").rows(), key=repr) for kind, rows in kinds.items() if not rows.is_empty()
    }


def test_a_drive_that_keeps_a_farm_log_is_asked_for_it(host: Host, tmp_path: Path) -> None:
    page = '"page_1_drive_information":{"serial_number":"Sa"}'
    host.answers["smartctl"] = f'{{"serial_number":"Sa","seagate_farm_log":{{"supported":true,{page}}}}}'
    collecting = collector(host, tmp_path / "out")
    looked(host, collecting, 0)
    assert "smartctl-farm-sda.json" in collecting.deliver(T0 + 60).files
    assert "smartctl --json=c -l farm /dev/sda" in host.asked


def test_deliveries_of_one_hour_end_as_one_hour(host: Host, tmp_path: Path) -> None:
    out, warehouse = tmp_path / "out", tmp_path / "warehouse"
    collecting = collector(host, out)
    looked(host, collecting, 0, 10, 20)
    first = collecting.deliver(T0 + 1200)
    assert (first.path.name, first.files) == ("web1.20260105T102000Z", ["diskstats", "kern.ndjson", "lsblk.json", "mdadm-md0", "mdstat"])
    assert first.missing == [
        "smartctl gave no output for sda, sdb, sdc, sdd: firmware and age stay unknown; install smartmontools, run it as root"
    ]
    # another process, as cron starts it: the hour so far comes again, what has not changed does not
    again = collector(host, out)
    looked(host, again, 30, failed="(F)")
    second = again.deliver(T0 + 1800)
    assert second.files == ["diskstats", "kern.ndjson", "mdstat"]
    assert asked_of_journald(host)[-1].endswith(f"--since=@{T0 + 1200} --until=@{T0 + 1800}")
    looked(host, again, 65, failed="(F)")
    again.deliver(T0 + 3900)
    assert (out / ".collect/diskstats").read_text().count("TS ") == 2  # of 11:00, and the one before it

    done = drivetail("ingest", "collected", out, "-w", warehouse)
    assert done.exit_code == 0, done.output
    deliveries = list_deliveries(warehouse)
    hours = pl.concat([pl.read_parquet(path) for path in sorted(warehouse.glob("raw/deliveries/*/drive_hours/*.parquet"))])
    assert hours.filter(pl.col("drive_id") == "web1/sda").sort("hour_utc").select("read_ios", "read_latency_us", "coverage").rows() == [
        (3000, 3000.0, 0.5)
    ]
    drives = pl.concat([pl.read_parquet(path) for path in table_files(deliveries, "drives") if ".mdadm." in path.name])
    roles = drives.filter(pl.col("valid_from") == pl.col("valid_from").max())
    assert roles["raid_group_id"].unique().to_list() == ["aaaaaaaa:bbbbbbbb:cccccccc:dddddddd"]
    # sdb failed at 10:30: the array is listed again, without it
    assert sorted(roles.select("drive_id", "role").rows()) == [("web1/sda", "data"), ("web1/sdc", "parity_p"), ("web1/sdd", "parity_q")]
    # the export, which does not know the layout, says nothing of an array that mdstat lists
    assert drives.filter(pl.col("drive_id") == "web1/sdc")["role"].unique().to_list() == ["parity_p"]
    (events,) = table_files(deliveries, "drive_events")
    assert pl.read_parquet(events).select("drive_id", "detail").rows() == [("web1/sdb", "md: failed")]
    # of the 35 minutes until 11:05 nobody knows whose counters they are; who is looked at in the last 5 was there when they ended
    just_after = timedelta(microseconds=1)
    assert Raw(warehouse).rows("drive_aliases", "drive_id valid_from valid_to", alias="web1/sda") == [
        (None, AT + timedelta(minutes=30) + just_after, AT + timedelta(minutes=60)),
        ("Sa", AT + timedelta(minutes=20), None), ("Sa", AT + timedelta(minutes=65), None),
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["swap", "boot"])
def test_devices_are_listed_again_once_counters_began_anew(what: str, host: Host, tmp_path: Path) -> None:
    out, warehouse = tmp_path / "out", tmp_path / "warehouse"
    boot_id = host.proc / "sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("0b0b\n")
    listed = []
    for minute in range(0, 125, 5):
        # at 10:30 another drive is in the place of sda; or the host boots, and its counters do not even fall
        if what == "boot" and minute == 35:
            boot_id.write_text("1c1c\n")
        host.counts({d: (100 * (minute - 35) if d == "a" and minute >= 35 and what == "swap" else 100 * minute, 0) for d in "abcd"})
        collecting = collector(host, out)
        collecting.look(T0 + 60 * minute)
        if minute % 40 == 0:
            listed += [minute] if "lsblk.json" in collecting.deliver(T0 + 60 * minute).files else []
    assert listed == [0, 40]
    assert not ingest("diskstats", out, warehouse).unreadable
    hour = Raw(warehouse).rows("drive_hours", "from_utc to_utc read_ios coverage", drive_id="web1/sda", hour_utc=AT)
    assert hour == [(None, AT + timedelta(minutes=30), 3000, 0.5), (AT + timedelta(minutes=35), None, 2500, 1500 / 3600)]
    cuts = Raw(warehouse).rows("drive_aliases", "alias drive_id valid_from valid_to")
    between = AT + timedelta(minutes=30, microseconds=1), AT + timedelta(minutes=35)
    assert cuts == [(f"web1/sd{d}", None, *between) for d in ("abcd" if what == "boot" else "a")]


def test_a_rebuild_over_many_deliveries_is_one_event_with_its_whole_span(host: Host, tmp_path: Path) -> None:
    out, warehouse = tmp_path / "out", tmp_path / "warehouse"
    host.answers["mdadm"] = ""
    other = "md1 : active raid1 sdf[1] sde[0]\n      9 blocks [2/2] [UU]\n"
    check = "      [=>...]  check =  8.5% (1/9) finish=1min speed=1K/sec\n"
    recovery = check.replace("check", "recovery")
    # by hour: md0 recovers from 10:20 to 13:10, md1 is checked from 10:10 to 11:10 and from 12:20 on
    doing = {0: ("", ""), 10: ("", check), 20: (recovery, check), 65: (recovery, check), 70: (recovery, ""), 130: (recovery, ""),
             140: (recovery, check), 185: (recovery, check), 190: ("", check)}  # fmt: skip
    for minute, (first, second) in doing.items():
        collecting = collector(host, out)  # a process of its own, as from cron
        host.at(minute)
        (host.proc / "mdstat").write_text(MDSTAT.format(failed="", working="[4/4] [UUUU]", layout=5) + first + other + second)
        collecting.look(T0 + 60 * minute)
        collecting.deliver(T0 + 60 * minute)
    assert (out / ".collect/mdstat").read_text().count("TS ") == 5  # since 10:10 something has been going on: where that changed
    assert drivetail("ingest", "collected", out, "-w", warehouse).exit_code == 0
    told = {
        (drive[-3:], occurred - AT, ended - AT, detail)
        for drive, occurred, ended, detail in Raw(warehouse)
        .live("drive_events")
        .select("drive_id", "occurred_at", "ended_at", "detail")
        .rows()
    }
    minutes = {"md: recovery": (20, 190), "md: check": (10, 70), "md: check, still running": (140, 190)}
    spans = {detail: (timedelta(minutes=begun), timedelta(minutes=ended)) for detail, (begun, ended) in minutes.items()}
    drives = {"md: recovery": "abcd", "md: check": "ef", "md: check, still running": "ef"}
    assert told == {(f"sd{drive}", *spans[detail], detail) for detail, letters in drives.items() for drive in letters}


SETTINGS = """
[[inboxes]]
name = "hosts"
source = "collected"
folder = "../out"
settle_minutes = 0
year = 2026
"""


def with_inbox(folder: Path) -> Path:
    """A warehouse whose inbox is what the host delivers."""
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    (warehouse / "drivetail.toml").write_text(SETTINGS)
    return warehouse


def test_an_inbox_takes_every_part_of_what_hosts_deliver(host: Host, tmp_path: Path) -> None:
    collecting = collector(host, tmp_path / "out")
    looked(host, collecting, 0, 10, 20)
    collecting.deliver(T0 + 1200)
    looked(host, collecting, 30, failed="(F)")
    collecting.deliver(T0 + 1800)
    warehouse = with_inbox(tmp_path)
    landing = ("inbox", "--land", "-w", warehouse)
    done = drivetail(*landing)
    assert done.exit_code == 0 and "2 new entries landed" in done.output, done.output

    at_once = tmp_path / "at_once"
    done = drivetail("ingest", "collected", tmp_path / "out", "-w", at_once)
    assert done.exit_code == 0, done.output
    assert of_host(warehouse) == of_host(at_once)
    lines = [line for line in Register(Warehouse(warehouse).raw, "inbox").read() if line["outcome"] != "begun"]
    # 4 drives, 4 aliases or more, 3 looks of 4 drives each, and one event when sdb failed
    assert [(line["outcome"], line["rows_delivered"] > 12) for line in lines] == [("landed", True)] * 2

    count = len(list_deliveries(warehouse))
    Register(Warehouse(warehouse).raw, "inbox").path.unlink()
    done = drivetail(*landing)
    assert done.exit_code == 0 and done.output.count("nothing new") == 2, done.output
    assert len(list_deliveries(warehouse)) == count


def test_a_part_that_cannot_be_read_needs_somebody_and_costs_only_that(host: Host, tmp_path: Path) -> None:
    collecting = collector(host, tmp_path / "out")
    looked(host, collecting, 0, 10)
    delivered = collecting.deliver(T0 + 600).path
    (delivered / "lsblk.json").write_text("{")
    warehouse = with_inbox(tmp_path)
    done = drivetail("inbox", "--land", "-w", warehouse)
    assert done.exit_code == 1 and "lsblk.json could not be read" in done.output, done.output
    assert {row[1] for row in of_host(warehouse)["drive_hours"]} == {f"web1/sd{d}" for d in "abcd"}
    assert "1 failed" in drivetail("inbox", "-w", warehouse).output


def test_membership_for_node_exporter(host: Host, tmp_path: Path) -> None:
    collector(host, tmp_path / "out").write_membership(tmp_path)
    assert (tmp_path / "drivetail_membership.prom").read_text().splitlines()[2:] == [
        f'drivetail_md_member{{md="md0",device="sd{d}",uuid="aaaaaaaa:bbbbbbbb:cccccccc:dddddddd",role="{role}",serial="S{d}",model=""}} 1'
        for d, role in zip("abcd", ("data", "data", "parity_p", "parity_q"), strict=True)
    ]


def test_a_missing_tool_of_a_host_is_named_and_costs_only_its_part(host: Host, tmp_path: Path) -> None:
    host.answers = {}
    (host.proc / "mdstat").unlink()
    collecting = collector(host, tmp_path / "out")
    collecting.look(T0)
    delivered = collecting.deliver(T0)
    assert (delivered.files, delivered.missing) == (
        ["diskstats"],
        [
            "lsblk gave no output: drives have no serial numbers; install util-linux",
            "neither journalctl nor dmesg gave kernel messages since 2026-01-05 09:00:00 UTC; the next delivery tries again",
        ],
    )
    (host.proc / "diskstats").unlink()
    with pytest.raises(CollectError, match="runs on Linux hosts only"):
        collecting.look(T0 + 60)
    with pytest.raises(CollectError, match="--host"):
        Collector(tmp_path, host="../web1")
    # a delivery that was cut off is no delivery
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".collect", "web1.20260105T100000Z"]


def test_kernel_messages_are_requested_until_they_arrive(host: Host, tmp_path: Path) -> None:
    collecting = collector(host, tmp_path / "out")
    answers: tuple[str | None, ...] = (None, "", '{"MESSAGE":"hello"}\n', None)
    spans = []
    for number, answer in enumerate(answers):
        host.answers["journalctl"] = answer
        looked(host, collecting, 10 * number)
        delivered = collecting.deliver(T0 + 600 * number)
        assert any("kernel messages since" in sentence for sentence in delivered.missing) == (answer is None)
        assert ("kern.ndjson" in delivered.files) == bool(answer)
        asked = asked_of_journald(host)[-1].split()
        assert "_TRANSPORT=kernel" in asked and not {"--dmesg", "-k", "-b"} & set(asked)  # of every boot
        spans.append(tuple(int(word.partition("@")[2]) - T0 for word in asked[-2:]))
    assert spans == [(-3600, 0), (-3600, 600), (600, 1200), (1200, 1800)]
    # it was away for long: a day at a time, or journalctl might take longer than it is waited for each time
    host.answers["journalctl"] = ""
    collecting.deliver(T0 + 3 * 86_400)
    assert [int(word.partition("@")[2]) - T0 for word in asked_of_journald(host)[-1].split()[-2:]] == [1200, 1200 + 86_400]


def test_without_journald_the_ring_of_the_kernel_is_read(host: Host, tmp_path: Path) -> None:
    """journalctl without a journal prints nothing and succeeds."""
    host.answers["journalctl"], host.keeps_kernel = "", False
    said = [(-20, "sd 0:0:0:0: [sda] Synchronizing SCSI cache"), (5, "sd 0:0:0:0: [sda] Attached SCSI disk")]
    said += [(15, "blk_update_request: critical medium error, dev sda, sector 9"), (25, "usb 1-1: new device")]
    ring = "".join(f"{AT + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S},250000+00:00 {line}\n" for minute, line in said) + "no time\n"
    for minute, told in ((10, said[:2]), (20, said[2:3])):
        host.answers["dmesg"] = ring
        looked(host, collector(host, tmp_path / "out"), minute)
        delivered = collector(host, tmp_path / "out").deliver(T0 + 60 * minute)
        assert not [sentence for sentence in delivered.missing if "kernel" in sentence]
        assert [line.partition(" ")[2] for line in (delivered.path / "dmesg.log").read_text().splitlines()] == [line for _, line in told]
    # nothing of it is left, and nobody tells: what was said since is asked for again
    host.answers["dmesg"] = None
    assert any("since 2026-01-05 10:20:00 UTC" in note for note in collector(host, tmp_path / "out").deliver(T0 + 1800).missing)
    host.answers["dmesg"] = ring
    assert "new device" in (collector(host, tmp_path / "out").deliver(T0 + 2400).path / "dmesg.log").read_text()
    ingest("kernel-log", tmp_path / "out", tmp_path / "warehouse")
    events = Raw(tmp_path / "warehouse").live("drive_events").sort("occurred_at").select("drive_id", "event_type", "occurred_at").rows()
    at = AT + timedelta(microseconds=250_000)
    assert events == [("web1/sda", "replug", at + timedelta(minutes=5)), ("web1/sda", "media_error", at + timedelta(minutes=15))]


@pytest.mark.parametrize("torn", ["TSTS 1767607260\n", "TS 17676072", "TS 1767607260\n8 0 sda 1 2", "\0\0\0\n", "8 0 sda 1 2\n"])
def test_a_torn_spool_costs_the_look_that_is_torn(torn: str, host: Host, tmp_path: Path) -> None:
    out, warehouse = tmp_path / "out", tmp_path / "warehouse"
    collecting = collector(host, out)
    looked(host, collecting, 0)
    for name in ("diskstats", "mdstat"):
        path = out / ".collect" / name
        path.write_text(torn + path.read_text() if torn.startswith("8") else path.read_text() + torn)
    looked(host, collecting, 10, 20)
    delivered = collecting.deliver(T0 + 1200)
    assert sum("torn" in sentence for sentence in delivered.missing) == 2
    assert not [sentence for sentence in collecting.deliver(T0 + 1201).missing if "torn" in sentence]
    assert not ingest("diskstats", delivered.path, warehouse).unreadable
    assert not ingest("mdadm", delivered.path, warehouse).unreadable


def test_a_command_that_hangs_fails_or_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # a command that answers keeps the whole minute: a busy machine may need seconds to start a shell
    with monkeypatch.context() as impatient:
        impatient.setattr("drivetail.host.collect.TIMEOUT_SECONDS", 0.1)
        assert run(["sleep", "60"]) is None
    assert run(["false"]) is None and run(["/no/such/command"]) is None
    assert run(["true"]) == ""
    assert run(["sh", "-c", "echo found; exit 4"]) == "found\n"


@pytest.mark.parametrize("every", ["0s", "1h", "20m"])
def test_every_takes_seconds_or_minutes(every: str, tmp_path: Path) -> None:
    done = drivetail("collect", "--out", tmp_path, "--every", every)
    assert (done.exit_code, "give 1s to 15m" in done.output) == (2, True)

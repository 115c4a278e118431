"""Messages of the kernel about drives become events, in the format of any logger."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ingest import IngestError, IngestSummary
from ingest.contract.values import EVENT_TYPES
from ingest.sources.kernel_log import patterns
from tests.ingest.conftest import SAMPLES, Warehouse, needs_shared

TEN = (2026, 1, 5, 10)
TIMEOUT = "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s"


def land(warehouse: Warehouse, *texts: str, **options: str) -> IngestSummary:
    return warehouse.land("kernel-log", {f"web1/{number}.log": text for number, text in enumerate(texts)}, **options)


def logged(*messages: str) -> str:
    """Messages of web1's kernel, a second apart from ten o'clock on."""
    return "".join(f"2026-01-05T10:00:{n:02}+00:00 web1 kernel: {message}\n" for n, message in enumerate(messages))


def events(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return warehouse.live("drive_events").sort("occurred_at", "event_type").select("drive_id", "occurred_at", "event_type").rows()


@pytest.mark.parametrize(
    ("line", "options", "when", "host"),
    [
        (f"2026-01-05T11:00:00.250+01:00 db7 kernel: {TIMEOUT}", {}, datetime(*TEN, 0, 0, 250_000), "db7"),
        (f"2026-01-05T10:00:00,250000+00:00 {TIMEOUT}", {}, datetime(*TEN, 0, 0, 250_000), "web1"),
        (f"<4>Jan  5 11:00:00 db7 kernel: [12.5] {TIMEOUT}", {"year": "2026", "timezone": "Europe/Berlin"}, datetime(*TEN), "db7"),
        (f"[Mon Jan  5 10:00:00 2026] {TIMEOUT}", {"timezone": "UTC"}, datetime(*TEN), "web1"),
        (f"[ 3600.500000][   T72] {TIMEOUT}", {"boot_time": "2026-01-05T10:00:00+01:00"}, datetime(*TEN, 0, 0, 500_000), "web1"),
        (json.dumps({"__REALTIME_TIMESTAMP": "1767607200000000", "_HOSTNAME": "db7", "MESSAGE": TIMEOUT}), {}, datetime(*TEN), "db7"),
        (
            json.dumps({"__REALTIME_TIMESTAMP": "1767607200000000", "MESSAGE": list(TIMEOUT.encode() + b"\xff")}), {},
            datetime(*TEN), "web1",
        ),
        (f"kern  :err   : [Mon Jan  5 10:00:00 2026] {TIMEOUT}", {"timezone": "UTC"}, datetime(*TEN), "web1"),
        (f"<3>1 2026-01-05T10:00:00.000000+00:00 web1 kernel - - - {TIMEOUT}", {"timezone": "UTC"}, datetime(*TEN), "web1"),
        (f'<3>1 2026-01-05T10:00:00Z web1 kernel 7 ID9 [a@1 b="x"][c@2] {TIMEOUT}', {"timezone": "UTC"}, datetime(*TEN), "web1"),
        (f"2026-01-05T10:00:00Z - kernel - - - {TIMEOUT}", {}, datetime(*TEN), "web1"),
        (f"2026-01-05T10:00:00Z - kernel: {TIMEOUT}", {}, datetime(*TEN), "web1"),
        (f"Jan  5 10:00:00 (none) kernel: {TIMEOUT}", {"timezone": "UTC", "year": "2026"}, datetime(*TEN), "(none)"),
        (f"Mon 2026-01-05 10:00:00 UTC web1 kernel: {TIMEOUT}", {"timezone": "UTC"}, datetime(*TEN), "web1"),
        (f"Mon 2026-01-05 10:00:00 CET web1 kernel: {TIMEOUT}", {"timezone": "UTC"}, datetime(*TEN), "web1"),
        (f"Jan 05 10:00:00.000000 web1 kernel: {TIMEOUT}", {"timezone": "UTC", "year": "2026"}, datetime(*TEN), "web1"),
        (f"1767607200.000000 web1 kernel: {TIMEOUT}", {"timezone": "UTC"}, datetime(*TEN), "web1"),
        ("\x1e" + json.dumps({"__REALTIME_TIMESTAMP": "1767607200000000", "MESSAGE": TIMEOUT}), {}, datetime(*TEN), "web1"),
        (
            "data: " + json.dumps({"__REALTIME_TIMESTAMP": "1767607200000000", "MESSAGE": [TIMEOUT, "again"]}),
            {"timezone": "UTC"}, datetime(*TEN), "web1",
        ),
        (f"2026-01-05T10:00:00+00:00 web1 kernel: message repeated 3 times: [ {TIMEOUT}]", {"timezone": "UTC"}, datetime(*TEN), "web1"),
    ],
)  # fmt: skip
def test_a_line_is_read_however_it_is_framed(line: str, options: dict[str, str], when: datetime, host: str, warehouse: Warehouse) -> None:
    summary = land(warehouse, line + "\n", **options)
    assert (summary.rows_delivered, summary.rows_accepted) == (1, 1)
    assert events(warehouse) == [(f"{host}/sdb", when, "scsi_timeout")]


def test_an_entry_of_several_lines_is_rejected_by_the_name_of_its_framing(warehouse: Warehouse) -> None:
    (entry,) = land(warehouse, f'{{\n\t"MESSAGE" : "{TIMEOUT}"\n}}\n').rejected
    assert "json-pretty" in str(entry["reason"]) and "-o json" in str(entry["reason"])


def test_an_error_in_several_lines_is_one_event(warehouse: Warehouse) -> None:
    lines = [
        "sd 2:0:0:0: [sdh] tag#1 Sense Key : Medium Error [current]",
        "critical medium error, dev sdh, sector 9 op 0x0:(READ)",
        "critical medium error, dev dm-3, sector 1 op 0x0:(READ)",
        "nvme2c5n1: Read(0x2) @ LBA 9, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81)",
        "critical medium error, dev nvme2c5n1, sector 9 op 0x0:(READ)",
    ]
    summary = land(warehouse, logged(*lines))
    assert [(drive, kind) for drive, _, kind in events(warehouse)] == [("web1/sdh", "media_error"), ("web1/nvme2n1", "media_error")]
    assert (summary.rows_accepted, summary.rows_rejected, summary.rows_duplicate) == (2, 0, 2)


def test_errors_more_than_a_minute_apart_are_several_events(warehouse: Warehouse) -> None:
    line = "2026-01-05T10:0{}+00:00 web1 kernel: critical medium error, dev sdh, sector 9 op 0x0:(READ)\n"
    land(warehouse, "".join(map(line.format, ("0:00", "0:40", "1:20"))))
    assert [at for _, at, _ in events(warehouse)] == [datetime(*TEN), datetime(*TEN, 1, 20)]


def test_a_drive_that_the_next_line_names_is_found(warehouse: Warehouse) -> None:
    lines = [
        "mpt2sas0: attempting task abort! scmd(ffff88)",
        "sd 3:0:4:0: [sdx] CDB: Read(10): 28 00",
        "mptscsih: ioc0: attempting task abort! (sc=ffff99)",  # without a drive
        "sd 3:0:5:0: [sdy] tag#1 Sense Key : Medium Error [current]",
    ]
    land(warehouse, logged(*lines))
    assert [(drive, kind) for drive, _, kind in events(warehouse)] == [("web1/sdx", "scsi_timeout"), ("web1/sdy", "media_error")]


@pytest.mark.parametrize(
    ("below", "device"),
    [
        (["sd 6:0:7:0: [sdh] 4096-byte physical blocks", "sd 0:0:4:0: [sde] CDB: Read(10): 28 00"], "sde"),
        (["md: bind<sdh1>", "sd 0:0:4:0: [sde] tag#7 CDB: "], "sde"),
        (["sd 6:0:7:0: [sdh] Write Protect is off"], None),
        (["EXT4-fs (sdh1): mounted", "usb 1-1: new device", "sd 0:0:4:0: [sde] CDB: Read(10): 28 00"], None),  # too late
        ([TIMEOUT, "sd 1:0:0:0: [sdb] tag#9 CDB: Read(10) 28 00"], None),  # the command of the drive above
        (["mptscsih: ioc1: attempting task abort! (sc=b)", "sd 0:0:4:0: [sde] CDB: Read(10)", "sd 6:0:7:0: [sdh] CDB: Read(10)"], None),
    ],
)
def test_an_abort_is_of_the_drive_of_its_command(below: list[str], device: str | None, warehouse: Warehouse) -> None:
    text = logged("mptscsih: ioc0: attempting task abort! (sc=a)", *below).replace("10:00:01", "10:00:00").replace("10:00:02", "10:00:01")
    summary = land(warehouse, text)
    assert warehouse.rows("drive_events", "drive_id", row_no=1) == ([(f"web1/{device}",)] if device else [])
    assert ("attempting task abort" in (summary.files[0].note or "")) == (not device)


def test_the_drive_of_an_address_is_the_one_that_a_line_soon_after_names(warehouse: Warehouse) -> None:
    lines = [
        "sd 0:0:5:0: attempting task abort! scmd(00000000abcdef01)",  # as mpt3sas says it of a log that began after the boot
        "sd 0:0:5:0: [sdf] tag#12 CDB: Read(10) 28 00",
        "scsi 0:0:6:0: Device offlined - not ready after error recovery",  # another drive may have come to that address since
        "usb 1-1: new device",
        "sd 0:0:6:0: [sdg] Attached SCSI disk",
        "sd 0:0:7:0: Device offlined - not ready after error recovery",
    ]
    summary = land(warehouse, logged(*lines))
    assert [(drive, at.second, kind) for drive, at, kind in events(warehouse)] == [
        ("web1/sdf", 0, "scsi_timeout"), ("web1/sdg", 4, "replug"),
    ]  # fmt: skip
    assert [summary.rows_accepted, summary.rows_rejected] == [2, 2]


def test_controllers_say_in_their_own_words_that_a_command_hangs(warehouse: Warehouse) -> None:
    words = [
        "sd 0:2:0:0: [sda] megasas: RESET cmd=2a retries=0",
        "sd 0:2:1:0: task abort called for scmd(ffff88105ac659c0)",
        "hpsa 0000:06:00.0: scsi 0:2:2:0: resetting logical  Direct-Access     HP       LOGICAL VOLUME   RAID-0 SSDSmartPathCap- En- Exp=1",
        "hpsa 0000:06:00.0: resetting device 0:2:3:0",
        "smartpqi 0000:39:00.0: resetting scsi 0:2:4:0 due to cmd 0x12",
        "aacraid: Host adapter abort request (0,2,5,0)",
        "sd 0:2:6:0: attempting device reset! scmd(0x00000000d51beacc)",
        "mpt3sas_cm0: attempting target reset! scmd(ffff88)",
        "sd 0:2:7:0: [sdh] CDB: Read(10): 28 00",
        "sd 0:2:8:0: [sdi] tag#9 mpi3mr0: attempting abort task for scmd(000000004be1a7f1)",
        "smartpqi 0000:39:00.0: attempting TASK ABORT on scsi 0:2:9:0 for SCSI cmd at 000000001f0a8e1d",
        "hpsa 0000:06:00.0: scsi 0:2:10:0: Aborting command Direct-Access     HP       EG0300FBDSP      PHYS DRV En- Exp=1",
        "sd 0:2:11:0: WARNING: (0x06:0x002C): Command (0x2a) timed out, resetting card.",
    ]
    letters = "abcdefghijkl"
    attached = [f"sd 0:2:{n}:0: [sd{letter}] Attached SCSI disk" for n, letter in enumerate(letters)]
    later = [line.replace("10:00", "10:01") for line in logged(*words).splitlines()]
    continued = [
        "2026-01-05T10:03:00+00:00 web1 kernel: aacraid: Host adapter abort request.",
        "    aacraid: Outstanding commands on (0,2,0,0):",
    ]
    unknown = ["2026-01-05T10:04:00+00:00 web1 kernel: smartpqi 0000:39:00.0: resetting scsi 9:9:9:0"]
    summary = land(warehouse, logged(*attached) + "\n".join([*later, *continued, *unknown]) + "\n")
    timeouts = [(drive, at.minute) for drive, at, kind in events(warehouse) if kind == "scsi_timeout"]
    assert timeouts == [*((f"web1/sd{letter}", 1) for letter in letters), ("web1/sda", 3)]
    # an address that no line names is that of no device
    assert summary.rows_rejected == 0 and "resetting scsi 9:9:9:0" in (summary.files[0].note or "")


def test_old_kernels_say_what_a_drive_has_in_the_line_below_its_name(warehouse: Warehouse) -> None:
    lines = [
        "sd 2:0:0:0: [sdc]  ", "Sense Key : Medium Error [current] [descriptor]", "end_request: I/O error, dev sdc, sector 7",
        "ata3.00: error: { UNC }",  # the kernel has said so with the drive's name
        "sd 2:0:1:0: [sata4]  ", "[   12.5] Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK",
        "Sense Key : Medium Error [current]",  # two seconds below
    ]  # fmt: skip
    summary = land(warehouse, logged(*lines))
    found = [("web1/sdc", 1, "media_error"), ("web1/sata4", 5, "scsi_timeout")]
    assert [(drive, at.second, kind) for drive, at, kind in events(warehouse)] == found
    assert (summary.rows_rejected, summary.rows_duplicate) == (0, 1)


@pytest.mark.parametrize(
    ("above", "device"),
    [
        (["sd 4:0:0:0: [sdc]  ", "sd 5:0:0:0: [sdd] Synchronizing SCSI cache"], "sdc"),
        (["sd 4:0:0:0: [sdc]  ", "Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE", "sd 5:0:0:0: [sdd]"], "sdd"),
        (["sd 4:0:0:0: [sdc]  ", "Add. Sense: Unrecovered read error", "sd 5:0:0:0: [sdd]  "], "sdd"),
        (["sd 4:0:0:0: [sdc] Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE", "sd 5:0:0:0: [sdd] Mode Sense: 73 00 00 08"], "sdc"),
        (["sd 5:0:0:0: [sdd] Write Protect is off"], None),
        (["sd 4:0:0:0: [sdc]  ", "sd 5:0:0:0: [sdd]  "], None),
        (["sd 4:0:0:0: [sdc]  ", "sd 5:0:0:0: [sdd]  ", "Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE"], None),
    ],
)
def test_a_line_without_a_drive_is_of_the_one_that_awaits_it(above: list[str], device: str | None, warehouse: Warehouse) -> None:
    lines = [*above, "Sense Key : Medium Error [current] [descriptor]"]
    summary = land(warehouse, "".join(f"Jan  5 10:00:00 web1 kernel: {line}\n" for line in lines), year="2026", timezone="UTC")
    assert events(warehouse) == ([(f"web1/{device}", datetime(*TEN), "media_error")] if device else [])
    assert summary.rows_rejected == 0 and ("Sense Key" in (summary.files[0].note or "")) == (not device)


def test_libatas_word_is_the_drives_where_its_port_is_known(warehouse: Warehouse) -> None:
    lines = ["sd 2:0:0:0: [sdc] Attached SCSI disk", "ata3.00: detaching (SCSI 2:0:0:0)", "ata3.00: error: { UNC IDNF }"]
    land(warehouse, logged(*lines))
    assert [kind for _, _, kind in events(warehouse)] == ["replug", "unplug", "media_error"]


def test_lines_that_only_name_a_device_are_counted_without_an_example(warehouse: Warehouse) -> None:
    summary = land(warehouse, logged("sd 0:0:3:0: [sdd] 23437770752 512-byte logical blocks: (12.0 TB/10.9 TiB)"))
    assert summary.files[0].note == "1 line that no pattern matches"


def test_a_shutdown_is_no_fault_of_a_drive(warehouse: Warehouse) -> None:
    lines = ["nvme nvme0: Device not ready; aborting shutdown, CSTS=0x5", "nvme nvme1: Device not ready; aborting reset, CSTS=0x1"]
    summary = land(warehouse, logged(*lines))
    assert [(drive, kind) for drive, _, kind in events(warehouse)] == [("web1/nvme1n1", "not_responding")]
    assert "1 line that no pattern matches" in (summary.files[0].note or "") and "CSTS=0x5" in (summary.files[0].note or "")


@pytest.mark.parametrize(
    ("message", "device", "event_type"),
    [
        ("sd 0:0:1:0: [sdb] tag#1 Power-on or device reset occurred", "sdb", "other"),
        ("sd 0:2:3:0: [sdd] tag#12 BRCM Debug mfi stat 0x2d, data len requested/completed 0x1000/0x0", "sdd", "other"),
        ("sd 0:0:1:0: [sata2] Attached SCSI disk", "sata2", "replug"),
        ("md: unbind<sdb1>", "sdb", "unplug"),
        ("md: bind<nvme0n1p2>", "nvme0n1", "replug"),
        ("sd 5:0:1:0: [sdc] Attached SCSI disk", "sdc", "replug"),
        ("nvme nvme3: 8/0/0 default/read/poll queues", "nvme3n1", "replug"),
        ("nvme nvme3: Disabling device after reset failure: -19", "nvme3n1", "unplug"),
        ("nvme nvme3: I/O 12 QID 3 timeout, aborting", "nvme3n1", "response_timeout"),
        ("sd 2:0:0:0: [sdb] Spinning up disk.......not responding...", "sdb", "not_spinning"),
        ("sd 5:0:1:0: [sdb] Test Unit Ready failed: Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK", "sdb", "not_responding"),
        ("device offline error, dev sdb, sector 0 op 0x0:(READ)", "sdb", "not_responding"),
        ("critical medium error, dev sdb, sector 123 op 0x0:(READ)", "sdb", "media_error"),
        ("sd 2:0:0:0: [sdb] tag#1 Sense Key : Medium Error [current]", "sdb", "media_error"),
        ("sd 9:0:0:0: [sdb] tag#12 timing out command, waited 180s", "sdb", "scsi_timeout"),
        ("sd 9:0:0:0: [sdb] timing out command, waited 60s", "sdb", "scsi_timeout"),
        ("blk_update_request: I/O error, dev sdb, sector 0", "sdb", "other"),
        ("end_request: critical medium error, dev cciss/c0d1, sector 9", "cciss/c0d1", "media_error"),
        ("md: unbind<cciss!c0d1p2>", "cciss/c0d1", "unplug"),
        ("blk_update_request: timeout error, dev sdb, sector 0 op 0x0:(READ)", "sdb", "other"),
        ("recoverable transport error, dev nvme1n1, sector 0", "nvme1n1", "other"),
        ("sd 0:0:1:0: [sdb] tag#3 Sense Key : Hardware Error [current]", "sdb", "other"),
        ("md/raid1:md127: Disk failure on sdb1, disabling device.", "sdb", "other"),
    ],
)
def test_a_line_gives_its_event(message: str, device: str, event_type: str, warehouse: Warehouse) -> None:
    land(warehouse, logged(message))
    assert events(warehouse) == [(f"web1/{device}", datetime(*TEN), event_type)]


def test_addresses_and_handles_are_learnt_and_a_plug_is_one(warehouse: Warehouse) -> None:
    lines = [
        "sd 5:0:1:0: rejecting I/O to offline device",  # nobody has said yet which that is
        "scsi 5:0:1:0: SSP: handle(0x000a), sas_addr(0x5), phy(2)",
        "sd 5:0:1:0: [sdb] Attached SCSI disk",
        "sd 5:0:1:0: rejecting I/O to offline device",
        "mpt3sas_cm0: removing handle(0xA), sas_addr(0x5)",
        "md: unbind<sdb1>",
        "md: bind<sdb1>",
        "md/raid:md0: Disk failure on dm-0, disabling device.",
        "usb 3-9: USB disconnect, device number 14",
    ]
    summary = land(warehouse, logged(*lines))
    assert [(kind, at.second) for _, at, kind in events(warehouse)] == [("replug", 2), ("not_responding", 3), ("unplug", 4), ("replug", 6)]
    (file,) = summary.files
    assert (file.rows_delivered, file.rows_accepted, file.rows_rejected, file.rows_duplicate) == (6, 4, 1, 1)
    assert warehouse.table("rejected_records")["row"].to_list() == [1]
    # a failure of a dm device is one of a drive below it
    assert (file.note or "").startswith("3 lines that no pattern matches") and "USB disconnect" in (file.note or "")


def test_sata_and_usb_ports_are_followed_to_the_drive(warehouse: Warehouse) -> None:
    lines = [
        "ata3.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen",  # nobody has said yet which drive that is
        "sd 2:0:0:0: [sdc] Attached SCSI disk",
        "ata3: SATA link down (SStatus 0 SControl 300)",
        "ata3.00: detaching (SCSI 2:0:0:0)",
        "ata3: COMRESET failed (errno=-16)",
        "ata3.00: exception Emask 0x10 SAct 0x4 SErr 0x4050000 action 0xe frozen",
        "ata3.00: qc timeout after 5000 msecs (cmd 0xec)",  # the same once more
        "scsi host6: usb-storage 3-9:1.0",
        "sd 6:0:0:0: [sdd] Attached SCSI removable disk",
        "usb 3-9: USB disconnect, device number 14",
        "usb 3-8: USB disconnect, device number 15",  # a mouse
        "usb 3-9: USB disconnect, device number 16",  # and one where the drive was
    ]
    summary = land(warehouse, logged(*lines))
    assert [(drive, at.second, kind) for drive, at, kind in events(warehouse)] == [
        ("web1/sdc", 1, "replug"), ("web1/sdc", 3, "unplug"), ("web1/sdc", 4, "not_responding"), ("web1/sdc", 5, "response_timeout"),
        ("web1/sdd", 8, "replug"), ("web1/sdd", 9, "unplug"),
    ]  # fmt: skip
    assert [row["row"] for row in summary.rejected] == [1] and summary.rows_duplicate == 1


@pytest.mark.parametrize(
    "others",
    [
        [json.dumps({"__REALTIME_TIMESTAMP": "1767607200000000", "_TRANSPORT": "journal", "MESSAGE": f"COMMAND={TIMEOUT}"})],
        [json.dumps({"__REALTIME_TIMESTAMP": "1767607200000000", "SYSLOG_IDENTIFIER": "sudo", "MESSAGE": f"COMMAND={TIMEOUT}"})],
        [f"Jan  5 10:00:00 web1 sudo[7]: root : COMMAND=grep '{TIMEOUT}'", f"Jan  5 10:00:01 web1 kernel: {TIMEOUT}"],
        [f"2026-01-05T10:00:00+00:00 web1 sudo[7]: {TIMEOUT}", f"2026-01-05T10:00:01+00:00 web1 kernel: {TIMEOUT}"],
    ],
)
def test_a_quotation_of_the_kernel_is_no_message_of_it(others: list[str], warehouse: Warehouse) -> None:
    summary = land(warehouse, "\n".join(others) + "\n", year="2026", timezone="UTC")
    assert (summary.rows_accepted, summary.rows_rejected) == (len(others) - 1, 0)
    assert [at.second for _, at, _ in events(warehouse)] == [1] * (len(others) - 1)


def test_a_programs_line_in_the_kernels_log_is_no_message_of_it(warehouse: Warehouse) -> None:
    lines = [f"2026-01-05T10:00:01,5+00:00 {TIMEOUT}", f"2026-01-05T10:00:02,5+00:00 systemd[1]: web1 kernel: {TIMEOUT}"]
    summary = land(warehouse, "\n".join(lines) + "\n")
    assert (summary.rows_accepted, summary.rows_duplicate) == (1, 0)
    assert "1 line that no pattern matches, such as '2026-01-05T10:00:02,5" in (summary.files[0].note or "")


def test_a_log_server_has_the_messages_of_many_hosts(warehouse: Warehouse) -> None:
    lines = [
        f"2026-01-05T10:00:00.5+00:00 db1 kernel - - - {TIMEOUT}",
        f"<3>2026-01-05T10:00:00+00:00 db2 kernel - - - {TIMEOUT}",
        f"2026-01-05T10:00:00+00:00 db3 kern.err kernel: {TIMEOUT}",
        f"2026-01-05T10:00:00+00:00 db4 watcher 2681 - - alert of yesterday: {TIMEOUT}",
        f"2026-01-05T10:00:00+00:00 db5 watcher: alert of yesterday: {TIMEOUT}",
        f"Jan  5 10:00:00 db6 watcher: alert of yesterday: {TIMEOUT}",
        f"1767607200.5 db7 watcher[9]: alert of yesterday: {TIMEOUT}",
    ]
    summary = land(warehouse, "\n".join(lines) + "\n", year="2026", timezone="UTC")
    assert [drive for drive, *_ in warehouse.rows("drive_events", "drive_id occurred_at")] == ["db1/sdb", "db2/sdb", "db3/sdb"]
    assert summary.rows_rejected == 0 and "4 lines that no pattern matches, such as '2026-01-05T10:00:00+00:00 db4" in (
        summary.files[0].note or ""
    )


def test_lines_of_an_unknown_framing_are_rejected_and_counted(warehouse: Warehouse) -> None:
    lines = [f"2026-01-05 10:00:0{n},123 - watcher - ERROR - {TIMEOUT}" for n in range(3)]
    summary = land(warehouse, "\n".join(lines) + "\n", timezone="UTC")
    assert (summary.rows_accepted, summary.rows_rejected) == (0, 3)
    note = summary.files[0].note or ""
    assert note.startswith("3 lines are framed as no logger known here does it") and "10:00:00,123 - watcher" in note


def test_the_year_goes_on_where_the_months_begin_again(warehouse: Warehouse) -> None:
    text = "".join(f"{day} 10:00:00 web1 kernel: md: unbind<sdb1>\n" for day in ("Dec 31", "Jan  1", "Jan  3"))
    land(warehouse, text, year="2025", timezone="UTC")
    assert [at for _, at, _ in events(warehouse)] == [datetime(2025, 12, 31, 10), datetime(2026, 1, 1, 10), datetime(2026, 1, 3, 10)]


def test_a_leap_day_is_of_a_leap_year(warehouse: Warehouse) -> None:
    text = "".join(f"{day} 10:00:00 web1 kernel: md: unbind<sdb1>\n" for day in ("Dec 20", "Feb 29"))
    land(warehouse, text, year="2027", timezone="UTC")
    assert [at for _, at, _ in events(warehouse)] == [datetime(2027, 12, 20, 10), datetime(2028, 2, 29, 10)]
    (file,) = land(warehouse, text.splitlines()[1], year="2026", timezone="UTC").files
    assert file.status == "unreadable" and "29th of February, which 2026 has not; give another --year" in (file.note or "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"Jan  5 11:00:00 db7 kernel: {TIMEOUT}", "give --year"),
        (f"[ 3600.500000] {TIMEOUT}", "give --boot-time"),
        (f"2026-01-05 10:00:00 db7 kernel: {TIMEOUT}", "give --timezone"),
    ],
)
def test_times_that_say_too_little_make_a_file_unreadable(line: str, said: str, warehouse: Warehouse) -> None:
    (file,) = land(warehouse, line + "\n").files
    assert file.status == "unreadable" and said in (file.note or "")


def test_lines_without_a_time_cost_themselves(warehouse: Warehouse) -> None:
    text = f'{TIMEOUT}\n{{"MESSAGE": "{TIMEOUT}"}}\n{{"MESSAGE\n' + logged(TIMEOUT) + f"Jan 99 10:00:00 web1 kernel: {TIMEOUT}\n"
    summary = land(warehouse, text, year="2026", timezone="UTC")
    assert (summary.rows_delivered, summary.rows_accepted, summary.rows_rejected) == (4, 1, 3)
    with pytest.raises(IngestError, match="give --year like"):
        land(warehouse, text + "\n", year="last")


def test_every_pattern_has_its_hint_and_a_known_type() -> None:
    assert len(patterns()) > 20
    for pattern in patterns():
        assert pattern.event_type in ("", *EVENT_TYPES) and pattern.what and pattern.hint.strip()
        names, known = set(pattern.regex.groupindex), "device address lun handle controller port link usb bus next command above before"
        assert names and names <= {*known.split()}


@needs_shared
def test_real_logs_line_by_line(warehouse: Warehouse) -> None:
    names = [f"kernel_{name}.log" for name in ("hotplug_mpt3sas", "timeout_offline", "task_abort_megaraid", "md_failure")]
    summary = warehouse.land("kernel-log", {name: (SAMPLES / name).read_bytes() for name in names}, timezone="UTC", year="2026")
    assert {file.status for file in summary.files} == {"landed"} and summary.rows_rejected == 0
    assert [(drive, kind) for drive, _, kind in events(warehouse)] == [
        ("host-226/sdc", "scsi_timeout"),
        ("nfs/sdb", "other"), ("nfs/sdb", "unplug"), ("nfs/sdb", "replug"),
        ("pbs-disklab/sdb", "not_responding"), ("pbs-disklab/sdb", "replug"), ("pbs-disklab/sdb", "unplug"),
        ("xps-7390/sdb", "not_responding"), ("xps-7390/sdb", "other"), ("xps-7390/sdb", "scsi_timeout"),
    ]  # fmt: skip
    noted = {Path(file.file).name: (file.rows_delivered, (file.note or "").split()[0]) for file in summary.files}
    assert noted["kernel_md_failure.log"] == (3, "7")  # ten lines


def test_a_collected_log_belongs_to_the_host_of_its_collection(warehouse: Warehouse) -> None:
    line = json.dumps({"__REALTIME_TIMESTAMP": "1767607200000000", "_HOSTNAME": "localhost", "MESSAGE": TIMEOUT})
    folder = "web1.20260105T100000Z"
    warehouse.land("kernel-log", {f"{folder}/kern.ndjson": line + "\n", f"{folder}/smartctl.sdb.json": "{}"})
    assert events(warehouse) == [("web1/sdb", datetime(*TEN), "scsi_timeout")]

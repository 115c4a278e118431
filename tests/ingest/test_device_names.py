"""Names of devices, hosts and drives, as the kernel and vendors give them."""

from __future__ import annotations

from ingest.reading.devices import drive_of, host_of, is_cut_off, is_no_drive, is_placeholder, is_whole_drive, without_whole_disk

WHOLE = ["sda", "sdaa", "nvme0n1", "vda", "xvdb", "hda", "mmcblk0", "cciss!c0d1", "dasda", "sd0", "sata12", "sas1", "rssda"]
PARTITIONS = {
    "sda1": "sda", "nvme0n1p2": "nvme0n1", "mmcblk0p1": "mmcblk0", "cciss!c0d1p1": "cciss!c0d1", "sata12p5": "sata12", "fiob1": "fiob",
    "xvda1": "xvda", "nvme0c1n1": "nvme0n1",
}  # fmt: skip
OTHERS = ["md0", "dm-3", "loop7", "zram0", "nbd0", "sr0", "ram1", "rbd0", "usb1", "usb1p1", "synoboot2", "mapper/sda", "disk/by-id/wwn-0x5"]
CUT_OFF = ["s", "sd", "sata", "nvme0", "nvme0n", "cciss/c0"]


def test_partitions_and_what_is_made_of_drives_are_left_out() -> None:
    names = [*WHOLE, *PARTITIONS, *OTHERS, *CUT_OFF]
    assert [name for name in (*names, "", "sda\n", "sda/..") if is_whole_drive(name)] == WHOLE
    assert [name for name in names if is_no_drive(name)] == [*PARTITIONS, *OTHERS]
    assert [name for name in names if is_cut_off(name)] == CUT_OFF
    assert {name: drive_of(name) for name in names} == {name: name for name in names} | PARTITIONS


def test_only_xen_hands_out_partitions_without_their_disk() -> None:
    assert without_whole_disk(["xvda1", "xvda2", "xvdb", "xvdb1", "sda1"]) == {"xvda1", "xvda2"}


def test_a_host_is_the_address_without_its_port() -> None:
    hosts = {"web1:9100": "web1", "[::1]:9100": "::1", "web1": "web1", "fe80::1": "fe80::1", "10.0.0.1:80": "10.0.0.1"}
    assert {name: host_of(name) for name in hosts} == hosts


def test_placeholders_of_vendors_name_no_drive() -> None:
    none = ["---------------", "000000", "0", "N/A", "none", "Unknown", "To be filled by O.E.M.", "Default string", "XXXXXXXX", " "]
    none += ["0123456789", "123456789012", "0123456789ABCDEF", "0x5000000000000001", "eui.0000000000000000", "wwn:0x5000000000000002"]
    none += ["0x600508b1001c7a3e", "naa.600508B1001C7A3E", "wwn:0x600508b1001c7a3e"]
    names = ["S1", "1", "11", "WD-AAA0001", "0x5000c500a1b2c3d4", "23456789", "D00000001", "1234567", "eui.0025385b11b0a1f2", "\u00e9"]
    names += ["600508b1001c7a3e", "0x600508b1001c7a3e0123456789abcdef"]
    assert [name for name in (*none, *names) if is_placeholder(name)] == none

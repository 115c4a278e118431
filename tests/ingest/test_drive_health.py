"""Drives' health: smartctl, Backblaze, node_exporter's textfile collectors, and bundles."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from ingest.reading.health import ATA_NAMES, ata_name, ata_raw
from tests.ingest.conftest import SHARED, Warehouse, counts, needs_shared

T = 1_767_607_200  # 2026-01-05 10:00 UTC
NOON = datetime(2026, 1, 5, 10)


def health(warehouse: Warehouse, columns: str = "drive_id attribute raw_value normalised_value") -> list[tuple[Any, ...]]:
    return warehouse.rows("drive_health", columns)


def document(**more: Any) -> dict[str, Any]:
    return {"device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"}, "serial_number": "S1", "local_time": {"time_t": T}, **more}


def test_numbers_that_vendors_share_have_one_name() -> None:
    assert ata_name(5, "Reallocated_Sector_Ct") == ata_name(5, "Retired_Block_Count") == ata_name(5) == "reallocated_sector_ct"
    assert ata_name(170, "Bad_Block_Count") == "bad_block_count"
    for name in ("Offline_Uncorrectable", "Off-line_Scan_UNC_Sector_Ct", "Total_Offl_Uncorrectabl", "Unknown_Attribute", None):
        assert ata_name(198, name) == "offline_uncorrectable"
    # what else vendors count there
    for number, name in ((198, "Read_Sectors_Tot_Ct"), (198, "Host_Reads_GiB"), (183, "SATA_Downshift_Count"), (241, "Host_Writes_32MiB")):
        assert ata_name(number, name) == name.lower()
    assert ata_name(197, "Not_In_Use") == "smart_197"
    # 225 counts what 193 counts on other drives: both keep a name of their own
    assert (ata_name(170), ata_name(170, "Unknown_Attribute"), ata_name(225, "Load_Cycle_Count")) == ("smart_170", "smart_170", "smart_225")
    assert len(set(ATA_NAMES.values())) == len(ATA_NAMES)
    # 32 degrees, with 24 and 38 packed above
    assert [ata_raw(194, 163210330144), ata_raw(1, 2**53 + 1), ata_raw(5, -1), ata_raw(5, None)] == [32, None, None, None]


def test_smartctl_of_a_disk(warehouse: Warehouse) -> None:
    table = [
        {"id": 5, "name": "Reallocated_Sector_Ct", "value": 99, "raw": {"value": 8}},
        {"id": 194, "name": "Temperature_Celsius", "value": 51, "raw": {"value": 163210330144}},
        {"id": 5, "name": "Reallocated_Sector_Ct", "value": 1, "raw": {"value": 1}},
        {"id": 1, "name": "Raw_Read_Error_Rate", "value": 100, "raw": {"value": 2**60}},
        {"id": "x"}, "torn", {"id": 7},
    ]  # fmt: skip
    attributes = {"ata_smart_attributes": {"table": table}}
    # inventory and a name; health is beside what is counted
    assert counts(warehouse.land("smartctl", {"web1/sda.json": document(**attributes, power_on_time={"hours": 7})})) == (2, 2, 0, 0, 0)
    assert health(warehouse) == [
        ("web1/sda", "power_on_hours", 7, None), ("web1/sda", "raw_read_error_rate", None, 100),
        ("web1/sda", "reallocated_sector_ct", 8, 99), ("web1/sda", "temperature_celsius", 32, 51),
    ]  # fmt: skip
    assert warehouse.rows("drive_aliases", "alias drive_id valid_from") == [("web1/sda", "S1", NOON)]
    assert set(health(warehouse, "read_at source is_alias")) == {(NOON, "smartctl", True)}


def test_smartctl_of_nvme_and_scsi(warehouse: Warehouse) -> None:
    log = {"media_errors": 3, "percentage_used": 12, "temperature": 40, "temperature_sensors": [40, 41]}
    errors = {"read": {"total_uncorrected_errors": 1, "gigabytes_processed": "11.8"}, "write": "none"}
    nvme = document(serial_number="N1", nvme_smart_health_information_log=log)
    scsi = document(serial_number="S2", scsi_error_counter_log=errors, scsi_grown_defect_list=260)
    warehouse.land("smartctl", {"web1/a.json": nvme, "web2/b.json": scsi})
    assert health(warehouse) == [
        ("web1/sda", "media_errors", 3, None), ("web1/sda", "percentage_used", 12, None), ("web1/sda", "temperature_celsius", 40, None),
        ("web2/sda", "grown_defect_list", 260, None), ("web2/sda", "read_total_uncorrected_errors", 1, None),
    ]  # fmt: skip


def test_backblaze_by_the_same_names(warehouse: Warehouse) -> None:
    text = (
        "date,serial_number,model,capacity_bytes,failure,smart_5_raw,smart_5_normalized,smart_9_raw,smart_187_raw,smart_250_raw,smart_1_raw\n"
        "2026-01-05,S1,M,1,0,8,99,24,,7,-1\n2026-01-05,S2,M,1,0,many,100,,0,,\n2026-01-05,,M,1,0,1,1,1,1,1,1\n"
    )
    assert counts(warehouse.land("backblaze", {"2026-01-05.csv": text})) == (3, 2, 1, 0, 0)
    assert health(warehouse) == [
        ("S1", "power_on_hours", 24, None), ("S1", "reallocated_sector_ct", 8, 99), ("S1", "smart_250", 7, None),
        ("S2", "reallocated_sector_ct", None, 100), ("S2", "reported_uncorrect", 0, None),
    ]  # fmt: skip
    assert set(health(warehouse, "read_at source")) == {(datetime(2026, 1, 5), "backblaze")}


SMARTMON = """
smartmon_device_info{disk="/dev/sda",type="sat",device_model="M",serial_number="S1",firmware_version="1"} 1
smartmon_reallocated_sector_ct_raw_value{disk="/dev/sda",type="sat",smart_id="5"} 8
smartmon_reallocated_sector_ct_value{disk="/dev/sda",type="sat",smart_id="5"} 99
smartmon_reallocated_sector_ct_worst{disk="/dev/sda",type="sat",smart_id="5"} 98
smartmon_reallocated_sector_ct_threshold{disk="/dev/sda",type="sat",smart_id="5"} 10
smartmon_reallocated_sector_ct_raw_value{disk="/dev/bus/0",type="megaraid,0",smart_id="5"} 9
smartmon_attr_raw_value{device="/dev/sdb",disk="0",name="wear_leveling_count"} 4
smartmon_temperature_celsius_raw_value{disk="/dev/sdb",type="sat",smart_id="194"} NaN
nvme_percentage_used_ratio{device="nvme0n1"} 0.12
nvme_media_errors_total{device="nvme0n1"} 3
nvme_temperature_celsius{device="nvme0"} 40
nvme_controller_busy_time_seconds{device="nvme0n1"} 4
"""


def test_textfile_collectors_of_node_exporter(warehouse: Warehouse) -> None:
    summary = warehouse.land("prometheus", {"web1/a.prom": f"{SMARTMON}node_time_seconds {T}\n"})
    assert [file.status for file in summary.files] == ["landed"]
    assert health(warehouse) == [
        ("S1", "reallocated_sector_ct", 8, 99), ("web1/nvme0n1", "media_errors", 3, None), ("web1/nvme0n1", "percentage_used", 12, None),
        ("web1/nvme0n1", "temperature_celsius", 40, None), ("web1/sdb", "wear_leveling_count", 4, None),
    ]  # fmt: skip
    assert set(health(warehouse, "drive_id read_at is_alias")) == {
        ("S1", NOON, False), ("web1/nvme0n1", NOON, True), ("web1/sdb", NOON, True),
    }  # fmt: skip


def test_the_last_of_many_scrapes_of_a_day_is_kept(warehouse: Warehouse) -> None:
    series = '{__name__="nvme_media_errors_total", device="nvme0n1", instance="web1:9100"}'
    lines = [f"{series} {n} {1000 * (T + 3600 * n)}" for n in range(30)]
    warehouse.land("prometheus", {"tsdb.dump": "\n".join(lines)})
    assert health(warehouse, "raw_value read_at") == [(13, datetime(2026, 1, 5, 23)), (29, datetime(2026, 1, 6, 15))]


def test_neither_of_two_values_of_one_reading_is_kept(warehouse: Warehouse) -> None:
    line = 'nvme_{}{{instance="web1:9100",device="{}"}} {} 1767614400000\n'
    twice = [line.format("temperature_celsius", "nvme4", value) for value in (33, 44)] + [line.format("media_errors_total", "nvme4", 2)] * 2
    # two series, which are about one drive
    twice += [line.format("critical_warning_total", device, value) for device, value in (("nvme4", 0), ("nvme4n1", 1))]
    summary = warehouse.land("prometheus", {"web1/metrics.prom": "".join(twice)})
    assert [(row["row"], row["value"]) for row in summary.rejected] == [(1, "33"), (2, "44")]
    assert health(warehouse) == [("web1/nvme4n1", "media_errors", 2, None)]
    assert "critical_warning of web1/nvme4n1 is 0 and 1" in (summary.files[0].note or "")


def test_a_bundle_may_hold_health(warehouse: Warehouse) -> None:
    text = (
        "read_at,drive_id,attribute,raw_value,normalised_value\n2026-01-05T10:00:00Z,d1,Media_Errors ,3,\n"
        "2026-01-05T10:00:00Z,d1,spare,,90\n"
        "2026-01-05T10:00:00Z,d1,media_errors,3,\n2026-01-05T10:00:00Z,d1,media_errors,4,\n"
        "2026-01-05T10:00:00Z,d1,x,,\n,d1,x,1,\n2026-01-05T10:00:00Z,d1,,1,\n2026-01-05T10:00:00Z,d1,x,-1,\n2026-01-05T10:00:00Z,d1,x,1.5,\n"
    )
    assert counts(warehouse.land("bundle", {"drive_health.csv": text})) == (9, 2, 5, 1, 1)
    assert health(warehouse) == [("d1", "media_errors", 4, None), ("d1", "spare", None, 90)]
    rejected = warehouse.rejected("row column")
    assert rejected == [(5, "raw_value"), (6, "read_at"), (7, "attribute"), (8, "raw_value"), (9, "raw_value")]
    assert counts(warehouse.land("bundle", {"drive_health_again.csv": text + "\n"})) == (9, 0, 5, 4, 0)


@needs_shared
def test_every_document_of_a_real_drive_says_something(warehouse: Warehouse) -> None:
    paths = [*SHARED.glob("samples/smartctl_*.json"), *SHARED.glob("data/smartctl_json/**/*.json")]
    texts = {f"web{n}/a.json": path.read_text(encoding="utf-8").replace('"REDACTED"', f'"X{n}"') for n, path in enumerate(paths)}
    landed = sum(file.status == "landed" for file in warehouse.land("smartctl", texts).files)
    rows = warehouse.live("drive_health")
    assert landed > 100 and rows["drive_id"].n_unique() > 60
    names = set(rows["attribute"])
    assert {"reallocated_sector_ct", "media_errors", "grown_defect_list", "percentage_used", "read_total_uncorrected_errors"} <= names
    assert rows.filter(pl.col("attribute") == "temperature_celsius").select(pl.col("raw_value").is_between(0, 110).all()).item()


@needs_shared
def test_a_real_day_of_backblaze(warehouse: Warehouse) -> None:
    summary = warehouse.land("backblaze", SHARED / "data/backblaze/2013-04-10.csv.gz")
    rows = warehouse.live("drive_health")
    assert rows["drive_id"].n_unique() == summary.rows_accepted
    # of most drives five attributes, as raw values only
    first = {"current_pending_sector": 0, "power_on_hours": 4031, "raw_read_error_rate": 0, "reallocated_sector_ct": 0,
             "temperature_celsius": 26}  # fmt: skip
    assert set(rows["attribute"].value_counts(sort=True)["attribute"][:5]) == set(first)
    assert rows["normalised_value"].null_count() == rows.height
    assert dict(rows.filter(drive_id="MJ0351YNG9Z0XA").select("attribute", "raw_value").rows()) == first


@needs_shared
def test_farm_of_a_seagate_disk(warehouse: Warehouse) -> None:
    text = (SHARED / "samples/smartctl_seagate_farm_trimmed.json").read_text()
    summary = warehouse.land("smartctl", {"web1/farm.json": text})
    found = {attribute: value for drive, attribute, value, _ in health(warehouse) if drive == "web1/sda"}
    assert warehouse.rows("drive_aliases", "alias drive_id") == [("web1/sda", "ZX26F1VG")]
    assert found["farm_command_time_out_over_5_seconds_count"] == found["farm_number_of_read_recovery_attempts"] == 0
    assert found["farm_mr_head_resistance_from_head_9"] == 495 and "farm_high_priority_unload_events" not in found
    assert summary.rows_accepted == len(found) + 2
    assert warehouse.rows("drives", "drive_id is_alias kind") == [("web1/sda", True, "disk")]


def test_farm_beside_the_rest_is_of_the_same_drive(warehouse: Warehouse) -> None:
    farm = {
        "page_1_drive_information": {"serial_number": "S1"},
        "page_3_error_statistics": {"command_time_out_over_7_seconds_count": 3, "total_flash_led": 9},
    }
    warehouse.land("smartctl", {"web1/a.json": document(seagate_farm_log=farm)})
    assert health(warehouse) == [("web1/sda", "farm_command_time_out_over_7_seconds_count", 3, None)]


def test_farm_of_a_sas_drive_and_of_one_without(warehouse: Warehouse) -> None:
    """A SAS drive's FARM has other keys, and the first half of its serial number: it names no drive."""
    log = {
        "drive_information": {"serial_number": "ZTEST042", "number_of_heads": 1},
        "error_statistics": {"unrecoverable_read_errors": 3, "fru_code_if_smart_trip_from_most_recent_smart_frame": 50},
        "head_information": {"mr_head_resistance_0": 401, "number_of_reallocated_sectors_0": 5, "write_power_on_(hrs)_0": 9},
    }
    farm = {"smartctl": {"argv": ["smartctl", "-j", "-l", "farm", "/dev/sdb"], "exit_status": 4}, "local_time": {"time_t": T}}
    sas = {**farm, "device": {"name": "/dev/sdb", "type": "scsi", "protocol": "SCSI"}, "seagate_farm_log": log}
    none = {**farm, "device": {"name": "/dev/sdc", "type": "sat", "protocol": "ATA"}}
    files = {"sas": sas, "none": none, "unsupported": {**none, "seagate_farm_log": {"supported": False}}}
    summary = warehouse.land("smartctl", {f"web1/{name}.json": content for name, content in files.items()})
    assert [(file.status, str(file.note)[:23]) for file in summary.files] == [
        ("landed", "no FARM: /dev/sdc keeps"), ("landed", "the FARM of a SAS drive"), ("landed", "no FARM: /dev/sdc keeps"),
    ]  # fmt: skip
    assert health(warehouse, "drive_id attribute raw_value is_alias") == [
        ("web1/sdb", "farm_mr_head_resistance_0", 401, True), ("web1/sdb", "farm_number_of_reallocated_sectors_0", 5, True),
        ("web1/sdb", "farm_unrecoverable_read_errors", 3, True),
    ]  # fmt: skip
    assert warehouse.rows("drives", "drive_id is_alias") == [("web1/sdb", True)] and not warehouse.live("drive_aliases").height
    closed = {**none, "smartctl": {"argv": ["-l", "farm"], "exit_status": 2}}
    assert "could not open the device" in str(warehouse.land("smartctl", {"web1/closed.json": closed}).unreadable[0].note)


def test_logs_of_nvme_name_the_device_that_was_added(warehouse: Warehouse) -> None:
    ocp = {
        "TS": T, "device": "/dev/nvme0n1", "Feature Status": 7, "Active Bucket Timer": 1, "Active Threshold A": 5,
        "Active Bucket Counter: Bucket 0": {"Read": 12, "Write": 3, "Trim": 0}, "Active Latency Time Stamp: Bucket 0": {"Read": "NA"},
        "Active Measured Latency: Bucket 0": {"Read": 17, "Write": "x", "Trim": -1},
    }  # fmt: skip
    ebs = {
        "TS": T, "device": "nvme1n1", "total_read_ops": 100, "total_read_time": 5000, "ebs_volume_performance_exceeded_iops": 31_000_000,
        "ec2_instance_ebs_performance_exceeded_tp": 200, "volume_queue_length": 1, "read_io_latency_histogram": [],
    }  # fmt: skip
    # an instance's own disk has the same keys
    store = {"TS": T, "device": "nvme2n1", "total_read_ops": 7, "ebs_volume_performance_exceeded_iops": 0}
    store["ec2_instance_performance_exceeded_iops"] = 40
    warehouse.land("smartctl", {"web1/ocp.json": ocp, "web1/ebs.json": ebs, "web1/store.json": store})
    assert health(warehouse, "drive_id attribute raw_value") == [
        ("web1/nvme0n1", "ocp_bucket_0_read_count", 12),
        ("web1/nvme0n1", "ocp_bucket_0_read_ms", 17),
        ("web1/nvme0n1", "ocp_bucket_0_trim_count", 0),
        ("web1/nvme0n1", "ocp_bucket_0_write_count", 3),
        ("web1/nvme1n1", "amzn_instance_performance_exceeded_tp", 200),
        ("web1/nvme1n1", "amzn_total_read_ops", 100),
        ("web1/nvme1n1", "amzn_total_read_time", 5000),
        ("web1/nvme1n1", "amzn_volume_performance_exceeded_iops", 31_000_000),
        ("web1/nvme2n1", "amzn_instance_performance_exceeded_iops", 40),
        ("web1/nvme2n1", "amzn_total_read_ops", 7),
        ("web1/nvme2n1", "amzn_volume_performance_exceeded_iops", 0),
    ]
    summary = warehouse.land("smartctl", {"web1/none.json": {"total_read_ops": 1, "device": "nvme1n1"}})
    assert "no keys TS and device" in str(summary.unreadable[0].note)


def test_an_old_nvme_clis_latency_monitor_is_refused_or_read_in_part(warehouse: Warehouse) -> None:
    """A log page of 402 reads, 41 writes and no trim in bucket 0, as nvme-cli 2.3 prints it; later releases count right."""
    document = {
        "TS": T, "device": "nvme0n1", "Feature Status": 7, "Active Threshold A": 5, "Active Lantency Minimum Window": 500,
        "Active Latency Mode: Bucket 0": {"Read": 1, "Write": 1, "Trim": 1},
        "Active Bucket Counter: Bucket 0": {"Read": 0, "Write": 0, "Trim": 41},
        "Active Measured Latency: Bucket 0": {"Read": 0, "Write": 7, "Trim": 17},
    }  # fmt: skip
    (old,) = warehouse.land("smartctl", {"web1/ocp.json": document}).unreadable
    assert "(2.3 does) prints the counts of the latency monitor under the wrong commands: use a newer one" in str(old.note)
    document["Active Latency Minimum Window"] = document.pop("Active Lantency Minimum Window")
    document["Active Bucket Counter: Bucket 0"] = {"Trim": 0, "Write": 41, "Read": 402}
    warehouse.land("smartctl", {"web1/ocp.json": document})
    found = [("ocp_bucket_0_read_count", 402), ("ocp_bucket_0_trim_count", 0), ("ocp_bucket_0_write_count", 41)]
    assert health(warehouse, "attribute raw_value") == found

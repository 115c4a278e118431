"""A delivery that is nearly right is read or refused: no parser ends in an error that it does not declare, and no row is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ingest.contract.errors import UnreadableFile
from ingest.contract.values import RAW_KINDS
from ingest.raw.arrivals import Arrivals
from ingest.raw.closing import ingested_files, rejected_records
from ingest.raw.landing import Landing
from ingest.raw.staging import StagedDelivery
from ingest.reading.files import UNREADABLE, FileResult, find_files
from ingest.sources import SELF_NAMED_SOURCES, SOURCES, reader_of
from tests.fuzz import fuzz
from tests.ingest.conftest import Warehouse
from tests.mutate import mutated, mutated_json

FILES = 4  # of a delivery: most of a call's time does not depend on how many there are
TS = 1_767_608_400
HOURS = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us,latency_us,io_count,coverage,collected_at"

SMARTCTL = {
    "smartctl": {"exit_status": 4, "messages": [{"string": "no"}]}, "serial_number": "S1", "local_time": {"time_t": TS},
    "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"}, "wwn": {"naa": 5, "oui": 3152, "id": 77}, "rotation_rate": 7200,
    "model_name": "M", "firmware_version": "F", "user_capacity": {"bytes": 512}, "power_on_time": {"hours": 100},
    "scsi_transport_protocol": {"name": "SAS (SPL-4)"}, "scsi_error_counter_log": {"read": {"total_uncorrected_errors": 1}},
    "ata_smart_attributes": {"table": [{"id": 187, "raw": {"value": 3}}]}, "nvme_smart_health_information_log": {"media_errors": 2},
}  # fmt: skip
FARM = {
    "smartctl": {"exit_status": 0}, "device": {"name": "/dev/sda"}, "local_time": {"time_t": TS},
    "seagate_farm_log": {
        "page_1_drive_information": {"serial_number": "S1"}, "page_3_error_statistics": {"command_time_out_count_total": 1},
        "page_5_reliability_statistics": {"mr_head_resistance_from_head_0": 370},
    },
}  # fmt: skip
OCP = {"TS": TS, "device": "nvme0n1", "Active Bucket Counter: Bucket 0": {"Read": 1, "Write": 2}, "total_read_ops": 3}
LSBLK = {
    "TS": TS,
    "blockdevices": [
        {"name": "sda", "type": "disk", "serial": "S1", "wwn": "0x5", "model": "M", "size": 4096, "rota": True, "tran": "sas"},
        {"name": "cciss!c0d0", "type": "disk", "serial": "S2", "size": "4096", "rota": "0"},
    ],
}
FIO = {
    "fio version": "fio-3.1", "timestamp": 1_580_471_918, "timestamp_ms": 1_580_471_918_256, "jobs": [{}],
    "disk_util": [
        {"name": "md0", "aggr_read_ios": 100, "aggr_write_ios": 10, "read_ios": 1, "write_ios": 1, "read_ticks": 0, "write_ticks": 0},
        *({"name": f"sd{d}", "read_ios": 100, "write_ios": 10, "read_ticks": 400, "write_ticks": 5} for d in "ab"),
    ],
}  # fmt: skip

CONFIRM = f'TS {TS}\n{{"blockdevices":[{{"name":"sda","serial":"S1"}},{{"name":"sdb","serial":"S2"}}]}}\n' + "".join(
    json.dumps(
        {
            "fio version": "fio-3.33", "global options": {"rw": pattern}, "disk_util": [{"name": "sda", "read_ios": 9, "write_ios": 1}],
            "jobs": [
                {"jobname": name, "job options": {"filename": path}, "total_err": 0,
                 "read": {"total_ios": 6, "runtime": 2000, "clat_ns": {"mean": 9000.5, "percentile": {"50.000000": 8000}}}}
                for name, path in (("suspect", "/dev/sda"), ("peer", "/dev/sdb"))
            ],
        }
    ) + "\n"
    for pattern in ("randread", "read")
)  # fmt: skip


def statistics(*elements: dict[str, Any], date: str) -> dict[str, Any]:
    return {"sysstat": {"hosts": [{"nodename": "web1", date: "01/13/26", "statistics": list(elements)}]}}


SADF = statistics(
    *(
        {"timestamp": {"date": "2026-01-05", "time": f"10:{n}:00", "utc": 1, "interval": 600},
         "disk": [{"disk-device": "sda", "tps": 9, "rkB": 4.0, "wkB": 8.0, "await": 1.5}]} for n in (10, 20)
    ),
    date="file-date",
)  # fmt: skip
IOSTAT = statistics(
    *(
        {"timestamp": f"01/13/26 10:{n}:00",
         "disk": [{"disk_device": "sda", "r/s": 9, "w/s": 1, "rkB/s": 4, "wkB/s": 8, "r_await": 1, "w_await": 2}]} for n in (10, 20, 30)
    ),
    date="date",
)  # fmt: skip
JOURNAL = [
    {"__REALTIME_TIMESTAMP": "1767607200000000", "_HOSTNAME": "web1", "_TRANSPORT": "kernel", "MESSAGE": message}
    for message in ("sd 5:0:1:0: [sdb] Attached SCSI disk", list(b"md: unbind<sdb1>"))
]
DISKSTATS = "".join(f"TS {TS + 600 * n}\n   8  0 sda {n}1 0 {n}2 {n}3 {n}4 0 {n}5 {n}6 0 5 6\n   8 1 sda1 1 2 3 4\n" for n in range(1, 4))
MDSTAT = (
    f"TS {TS}\nPersonalities : [raid6]\nmd0 : active raid6 sdd[4](S) sde[5] sdc[2] sdb[1](F) sda[0]\n"
    "      99 blocks super 1.2 level 6, 512k chunk, algorithm 2 [4/3] [U_UU]\n"
    "      [=>..]  recovery =  8.5% (1/9) finish=1min speed=1K/sec\n"
    f"      uuid aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n"
    f"TS {TS + 60} again\nmd0 : active raid6 sde[5] sdd[4] sdc[2] sda[0]\n      99 blocks [4/4] [UUUU]\n"
)
EXPORT = (
    f"TS {TS}\nMD_LEVEL=raid1\nMD_DEVICES=2\nMD_UUID=aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n"
    "MD_NAME=x:0\nMD_DEVICE_sda_ROLE=0\nMD_DEVICE_sda_DEV=/dev/sda\n"
    "MD_DEVICE_sdb_ROLE=spare\nMD_DEVICE_sdb_DEV=/dev/sdb1\n"
)
DETAIL = (
    f"TS {TS}\n/dev/md0:\n        Raid Level : raid5\n"
    "      Raid Devices : 3\n             State : clean, recovering \n   Working Devices : 2\n"
    "            Layout : left-symmetric\n"
    "              UUID : aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n    Number   Major   Minor   RaidDevice State\n"
    "       0     254        0        0      active sync   /dev/vda1\n"
    "       -       0        0        1      removed\n       3     254        2        -      spare   /dev/vdc\n"
)
SAR = (
    "Linux 6.1.0 (web1) \t01/13/2026 \t_x86_64_\t(2 CPU)\n\n"
    "10:00:00 AM  DEV  tps  rkB/s  wkB/s  await\n10:10:00 AM  sda  9.0  4.0  8.0  1.5\n"
    "Average:  sda  9.0  4.0  8.0  1.5\n\n10:20:00 AM  LINUX RESTART\n"
)
SADF_D = "# hostname;interval;timestamp;DEV;tps;rkB/s;await\nweb1;600;2026-01-05 10:10:00 UTC;sda;9;4,0;1\nweb1;600;1767608400;sda;9;4;1\n"
DMESG = (
    "2026-01-05T10:00:00,25+00:00 sd 1:0:0:0: [sdb] Attached SCSI disk\n"
    "Jan  5 10:00:01 web1 kernel: [1.5] md: unbind<sdb1>\n[ 12.5] [sdb] not responding\n"
)
COUNTED = ("reads_completed", "writes_completed", "read_time_seconds", "write_time_seconds")
SCRAPES = "".join(
    "".join(f'node_disk_{name}_total{{device="sda"}} {n}\n' for name in COUNTED)
    + f'node_disk_info{{device="sda",serial="S1"}} 1\nnode_time_seconds {1_767_571_200 + 600 * n}\n'
    for n in (143, 144)
)
# over midnight, by series
DUMP = "".join(
    f'{{__name__="node_disk_{name}_total", device="sda", instance="web1:9100"}} {n} {1_767_571_200_000 + 600_000 * n}\n'
    for name in COUNTED
    for n in (143, 144, 145)
)
BUNDLE = f"{HOURS}\n2026-01-05T10:00:00Z,d1,g1,10,5,100.0,50.0,7,15,0.9,2026-01-05T11:00:00.5+01:00\n2026-01-05 11,d1,g1,0,0,,,,,,\n"
RECORD = dict(zip(HOURS.split(","), ("2026-01-05T10:00:00Z", "d1", "g1", 10, 5, 100.0, 50.0, None, 15, 0.9, None), strict=True))
TABLES = {
    "backblaze": "date,serial_number,model,capacity_bytes,failure,smart_9_raw,vault_id,pod_slot_num\n"
    "2026-01-01,A,M,1000,0,48,v,1\n2026-01-02,B,M,1000,1,,,\n",
    "labels": "drive_id,verdict,labelled_by,labelled_on\nS1,slow,ann,2026-01-05\n",
    "mapping": "drive_id,host,device,raid_group_id,role,kind,capacity_bytes,deployed_on,valid_from,valid_to\n"
    "S1,web1,sda,g1,data,ssd,1,2020-01-31,2026-01-05,2026-01-06\n",
    "perseus": f'"ts","disk_id","throughput","latency"\n{TS},"disk1",100.5,80\n{TS + 15},"disk1",NA,\n',
    "tickets": "serial,opened_at,closed_at,type,summary,host,slot\nS1,2026-01-05T10:00:00+01:00,2026-01-06,media_error,clicks,web1,1\n",
}
CEPH = (
    f'TS {TS}\n\n[{{"id":0,"hostname":"h","bluestore_bdev_devices":"sda","device_ids":"sda=M_S1","bluestore_bdev_type":"hdd"}}]\n'
    '{"nodes":[{"id":-1,"name":"default","type":"root","children":[0]},{"id":0,"type":"osd","device_class":"hdd"}],"stray":[]}\n'
    '[{"devid":"M_S1","location":[{"host":"h","dev":"sda"}],"daemons":["osd.0"]}]\n'
    '{"pg_stats":[{"pgid":"1.0","state":"active+clean+scrubbing+deep","up":[0],"acting":[0]}]}\n'
    f'TS {TS + 300}\n{{"osdstats":{{"osd_perf_infos":[{{"id":0,"perf_stats":{{"commit_latency_ms":3,"commit_latency_ns":3000000}}}}]}}}}\n'
)
ZPOOL = (
    f"TS {TS}\n  pool: tank\n state: ONLINE\n  scan: scrub in progress since Fri Feb  5 20:00:59 2021\nconfig:\n\n"
    "\tNAME        STATE     READ WRITE CKSUM  SLOW\n\ttank        ONLINE       0     0     0     -\n"
    "\t  mirror-0  ONLINE       0     0     0     -\n\t    sda     ONLINE       0     0     0     3\n"
    "\tlogs\n\t  ata-M_S9-part1  ONLINE  0  0  0  0\n\nerrors: No known data errors\n"
    f"{TS + 300}\ntank\t9\t9\t8\t7\t6\t5\t4\t3\t2\t1\t-\t-\nsda\t-\t-\t8\t7\t600\t500\t4000\t3000\t2000\t1000\t-\t-\n"
)
INFLUX = "".join(
    f"zpool_stats,name=tank,state=ONLINE,path=/dev/sda1,vdev=root/disk-0 alloc=1u,read_bytes={n}u,write_bytes=0u {TS + 300 * n}000000000\n"
    f"zpool_latency,le=0.001049,name=tank,path=/dev/sda1,vdev=root/disk-0 disk_read={9 * n}u,disk_write=0u {TS + 300 * n}000000000\n"
    for n in (1, 2)
)

ARRAY = "".join(
    f"TS {TS + 300 * n}\n"
    + "".join(
        f'<RESPONSE><OBJECT basetype="{name}">'
        + "".join(f'<PROPERTY name="{key}">{value}</PROPERTY>' for key, value in {"serial-number": "S1A", **of}.items())
        + "</OBJECT></RESPONSE>\n"
        for name, of in (
            ("drives", {"location": "1.3", "disk-group": "g1", "avg-rsp-time": 500, "blocks": 9}),
            ("disk-statistics", {"number-of-reads": 9 * n, "number-of-writes": n, "data-read-numeric": n, "data-written-numeric": n}),
        )
    )
    for n in range(3)
)

# source -> what a good delivery of it is: a file's name, and its text or document
GOOD: dict[str, list[tuple[str, str | dict[str, Any]]]] = {
    "arrays": [("msa7/disks.xml", ARRAY)],
    "backblaze": [("2026-01-01.csv", TABLES["backblaze"])],
    "bundle": [("drive_hours.csv", BUNDLE), ("drive_hours.ndjson", RECORD)],
    "ceph": [("prod/ceph.txt", CEPH)],
    "confirm": [("confirm-S1.txt", CONFIRM)],
    "diskstats": [("web1/diskstats", DISKSTATS)],
    "fio": [("host/array/0.json", FIO)],
    "kernel-log": [("web1/kern.ndjson.log", JOURNAL[0]), ("web1/kern.ndjson.log", JOURNAL[1]), ("web1/kern.log", DMESG)],
    "labels": [("labels.csv", TABLES["labels"])],
    "lsblk": [("web1/lsblk.json", LSBLK)],
    "mapping": [("mapping.csv", TABLES["mapping"])],
    "mdadm": [("web1/mdstat", MDSTAT), ("web1/mdadm-md0", EXPORT), ("web1/mdadm-md0", DETAIL)],
    "perseus": [("cluster_A/host_1/2026-01-05.csv", TABLES["perseus"])],
    "prometheus": [("web1/scrapes.prom", SCRAPES), ("web1/samples.dump", DUMP)],
    "smartctl": [("web1/sda.json", SMARTCTL), ("web1/farm.json", FARM), ("web1/ocp.json", OCP)],
    "sysstat": [("web1.json", SADF), ("web1.json", IOSTAT), ("web1.txt", SAR), ("web1.txt", SADF_D)],
    "tickets": [("tickets.csv", TABLES["tickets"])],
    "zfs": [("web1/zpool.txt", ZPOOL), ("web1/zpool.lp", INFLUX)],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "sysstat": {"timezone": "Europe/Berlin"},
    "kernel-log": {"timezone": "Europe/Berlin", "year": "2026", "boot_time": "2026-01-05T09:00:00"},
}


@pytest.mark.parametrize("source", GOOD)
def test_a_delivery_is_known_by_any_of_its_folders_and_as_a_copy(source: str, tmp_path: Path) -> None:
    """And is the same whichever is given: a host, an array or a cluster is named by the folders that a file is in."""
    name, content = GOOD[source][0]
    folder = Warehouse(tmp_path / "x").put({name: content})
    file = folder / name
    options, found = OPTIONS.get(source, {}), []
    for number in range(name.count("/") + 2):
        warehouse = Warehouse(tmp_path / str(number) / "warehouse")
        assert warehouse.land(source, [file, *file.parents][number], **options).delivery_seq == 1
        for again in (folder, {name: content}):
            assert warehouse.land(source, again, **options).delivery_seq is None
        found.append({kind: warehouse.live(kind).drop("collected_at").rows() for kind in RAW_KINDS})
    assert any(found[0].values()) and all(each == found[0] for each in found)


class Strict(Landing):
    """A landing that lets pass what its parsers did not declare."""

    @contextmanager
    def reading(self, result: FileResult) -> Iterator[None]:
        try:
            yield
        except UnreadableFile as error:
            self.mark_unreadable(result, str(error))


def quiet(phase: str, done: int, total: int) -> None:
    pass


def taken(source: str, root: Path, delivered: list[tuple[str, bytes]]) -> list[FileResult]:
    """Read files, each of a folder of its own, as a call would, up to where they are judged beside what there is."""
    for number, (name, content) in enumerate(delivered):
        path = root / "in" / str(number) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    module = reader_of(source)
    staged = StagedDelivery(root / "warehouse", None if source in SELF_NAMED_SOURCES else source)
    try:
        files, _ = find_files([root / "in"], module.recognise, staged.scratch)
        options = OPTIONS.get(source, {})
        arrivals = Arrivals(files, source, staged.folders, options, SOURCES[source].identity, None, quiet)
        landing = Strict(source, staged, None, None, arrivals, quiet, options)
        module.land(files, landing)
        rejected_records(landing), ingested_files(landing)
    finally:
        staged.discard()
        shutil.rmtree(root / "in")
    return landing.results


@pytest.mark.parametrize("source", GOOD)
def test_any_delivery_is_read_or_refused(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.sources.prometheus.text.LINES_AT_ONCE", 1)
    (tmp_path / "warehouse/raw/deliveries").mkdir(parents=True)
    (tmp_path / "warehouse/raw/.staging").mkdir()
    for name, content in GOOD[source]:
        (good,) = taken(source, tmp_path, [(name, (content if isinstance(content, str) else json.dumps(content)).encode())])
        assert good.status != UNREADABLE and good.rows_accepted and not good.rows_rejected, (name, good)

    def near(given: tuple[str, str | dict[str, Any]]) -> SearchStrategy[tuple[str, bytes]]:
        name, content = given
        return st.tuples(st.just(name), mutated(content.encode()) if isinstance(content, str) else mutated_json(content))

    def check(given: list[tuple[str, bytes]]) -> None:
        for result in taken(source, tmp_path, given):
            counted = (result.rows_accepted, result.rows_rejected, result.rows_duplicate, result.rows_superseded)
            assert result.rows_delivered == sum(counted) and min(counted) >= 0
            assert result.status != UNREADABLE or (result.note and not result.rows_delivered)

    one = st.one_of(*(near(given) for given in GOOD[source]))
    fuzz(st.lists(one, min_size=FILES, max_size=FILES), check, f"{source} deliveries of {FILES} files")

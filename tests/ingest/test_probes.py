"""Probes of suspect drives: source `confirm`."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from ingest import IngestSummary
from tests.ingest.conftest import Warehouse, counts

TS, AT = 1_767_608_400, datetime(2026, 1, 5, 10, 20)
LSBLK = {"blockdevices": [{"name": "sde", "serial": " S1 "}, {"name": "sdf", "serial": "S2"}, {"name": "cciss!c0d0", "serial": None}]}


def job(name: str, path: str, mean_us: float = 100.0, count: int = 600, **more: Any) -> dict[str, Any]:
    said = {"mean": mean_us * 1000, "N": count, "percentile": {f"{at}.000000": mean_us * 10 * at for at in (50, 90, 95, 99)}}
    return {"jobname": name, "job options": {"filename": path}, "read": {"total_ios": count, "runtime": 6000, "clat_ns": said}, **more}


def result(*jobs: dict[str, Any], rw: str = "randread", **more: Any) -> dict[str, Any]:
    return {"fio version": "fio-3.33", "global options": {"rw": rw}, "jobs": [*jobs], **more}


def probe(*documents: Any, listed: Any = LSBLK) -> str:
    return "\n".join([f"TS {TS}", *(json.dumps(each, indent=1) for each in (listed, *documents))])


def land(warehouse: Warehouse, *texts: str) -> IngestSummary:
    return warehouse.land("confirm", {f"confirm-{number}.txt": text for number, text in enumerate(texts)})


def refusal(warehouse: Warehouse, text: str) -> str:
    (file,) = land(warehouse, text).files
    assert (file.status, file.rows_delivered) == ("unreadable", 0)
    return file.note or ""


def test_each_drive_has_a_row_for_each_slice_and_pattern(warehouse: Warehouse) -> None:
    disks = [{"name": "sde", "read_ios": 700, "write_ios": 25}, {"name": "sdf", "read_ios": 600, "write_ios": 0}]
    random = result(job("suspect", "/dev/sde", 300.0), job("peer", "/dev/sdf"), disk_util=disks)
    text = probe(random, result(job("suspect", "/dev/sde"), rw="read"), random)
    assert counts(land(warehouse, text)) == (5, 5, 0, 0, 0)
    columns = "probed_at suspect_id drive_id pattern slice_no read_count seconds mean_us p50_us p99_us other_ios read_by"
    slow, other = (300.0, 150.0, 297.0, 125, "fio-3.33"), (100.0, 50.0, 99.0, 0, "fio-3.33")
    assert warehouse.rows("drive_probes", columns) == [
        *((AT, "S1", "S1", "random", number, 600, 6.0, *slow) for number in (1, 2)),
        (AT, "S1", "S1", "sequential", 1, 600, 6.0, 100.0, 50.0, 99.0, None, "fio-3.33"),
        *((AT, "S1", "S2", "random", number, 600, 6.0, *other) for number in (1, 2)),
    ]
    # the same probe once more says nothing new, another one does
    assert counts(land(warehouse, text + "\n")) == (5, 0, 0, 5, 0)
    assert counts(land(warehouse, text.replace(str(TS), str(TS + 600)))) == (5, 5, 0, 0, 0)


def test_several_probes_may_be_in_one_file(warehouse: Warehouse) -> None:
    first, second = (probe(result(job("suspect", f"/dev/{name}"))) for name in ("sde", "sdf"))
    land(warehouse, first + "\nfio: a word between\n" + second.replace(str(TS), str(TS + 60)))
    assert warehouse.rows("drive_probes", "suspect_id drive_id slice_no") == [("S1", "S1", 1), ("S2", "S2", 1)]


def test_reads_without_an_answer_are_counted(warehouse: Warehouse) -> None:
    hung, broken = job("suspect", "/dev/sde", 0.0, 0, total_err=3), job("peer", "/dev/sdf", 0.0, 0, error=5)
    land(warehouse, probe(result(hung, broken)))
    assert warehouse.rows("drive_probes", "drive_id read_count failed_count mean_us p99_us") == [
        ("S1", 0, 3, None, None),
        ("S2", 0, 1, None, None),
    ]


def test_a_peer_that_is_nobody_is_rejected(warehouse: Warehouse) -> None:
    double = {"blockdevices": [*LSBLK["blockdevices"], {"name": "sdz", "serial": "S1"}]}
    jobs = [job("suspect", "/dev/sde"), *(job("peer", path) for path in ("/dev/cciss/c0d0", "/dev/sdq", "/dev/sdz"))]
    summary = land(warehouse, probe(result(*jobs), result(job("suspect", "/dev/sde"), rw="write"), listed=double))
    assert counts(summary) == (5, 1, 4, 0, 0)
    unnamed = "lsblk gives no serial number for the device"
    assert warehouse.rejected("row column value reason") == [
        (2, "serial", "cciss/c0d0", unnamed), (3, "serial", "sdq", unnamed),
        (4, "serial", "sdz", "another name of the suspect, which is no peer of itself"), (5, "rw", "write", "not one of randread, read"),
    ]  # fmt: skip


def test_a_probe_whose_suspect_is_not_known_is_unreadable(warehouse: Warehouse) -> None:
    good = result(job("suspect", "/dev/sde"), job("peer", "/dev/sdf"))
    assert "no serial number for the suspect sde" in refusal(
        warehouse, probe(good, listed={"blockdevices": [{"name": "sde", "serial": "0000"}]})
    )
    assert "no list `blockdevices`" in refusal(warehouse, probe(good, listed={}))
    assert "0 devices of jobs `suspect`" in refusal(warehouse, probe(result(job("peer", "/dev/sdf"))))
    assert "line 18" in refusal(warehouse, probe(good)[:-200]) and "was the probe cut off?" in refusal(warehouse, probe(good)[:-201])
    assert "not below a `TS seconds` line" in refusal(warehouse, json.dumps(LSBLK))

"""The raw store: a delivery is there whole or not at all, and what was sent again changes nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

import ingest.raw.durable as durable
import ingest.raw.staging as staging
from ingest import drive_hour_files, ingest, list_deliveries
from ingest.contract.errors import StoreError
from ingest.contract.fleet import INGESTED_FILES, RAW, REJECTED_RECORDS, RETIRED
from ingest.contract.values import RECORD_KINDS, TIMED
from tests.ingest.conftest import GOOD_ROW, Warehouse, csv_text


def everything(warehouse: Warehouse) -> dict[str, str]:
    root = warehouse.path / "raw"
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(root.rglob("*")) if path.is_file()
    }


def test_layout_and_schemas(warehouse: Warehouse) -> None:
    other_day = GOOD_ROW.replace("2026-01-05T10", "2026-01-06T00")
    better = GOOD_ROW.replace(",10,", ",11,")
    folder = warehouse.put(
        {
            "drive_hours.csv": csv_text(other_day, GOOD_ROW, better, GOOD_ROW.replace("d1", "")),
            "drives.csv": "drive_id,raid_group_id,model\nd1,g1,A\nd1,g1,B\n",
            "drive_health.csv": "read_at,drive_id,attribute,raw_value\n2026-01-05T10:01,d1,a,1\n2026-01-05T10:01,d1,a,2\n",
            "drive_events.csv": "occurred_at,drive_id,event_type,slot\n2026-01-05T10:01,d1,unplug,1\n2026-01-05T10:01,d1,unplug,2\n",
        }
    )
    ingest("bundle", [folder], warehouse.path, kind="disk")
    (delivery,) = list_deliveries(warehouse.path)
    assert delivery.path.name == "000001.2026-01-05T10.2026-01-06T00"
    assert (delivery.seq, delivery.first_hour, delivery.last_hour) == (1, datetime(2026, 1, 5, 10), datetime(2026, 1, 6))
    assert [path.name for path in drive_hour_files(delivery)] == ["2026-01-05.parquet", "2026-01-06.parquet"]
    assert [path.name for path in drive_hour_files(delivery, datetime(2026, 1, 6), datetime(2026, 1, 7))] == ["2026-01-06.parquet"]
    retired = [f"retired_{kind}.parquet" for kind in ("drive_events", "drive_health", "drive_hours", "drives")]
    tables = ["drive_events.parquet", "drives.parquet", "ingested_files.parquet", "rejected_records.parquet"]
    names = ["delivery.json", "drive_hours", "drive_health", *tables, *retired]
    assert sorted(path.name for path in delivery.path.iterdir()) == sorted(names)
    schemas = {
        **{f"retired_{kind}": RETIRED[kind] for kind in RECORD_KINDS},
        **{kind: RAW[kind] for kind in RECORD_KINDS},
        "rejected_records": REJECTED_RECORDS,
        "ingested_files": INGESTED_FILES,
    }
    for table, schema in schemas.items():
        rows = warehouse.stored(table) if table in TIMED else warehouse.table(table)
        assert dict(rows.schema) == schema, table
    glob = f"{warehouse.path}/raw/deliveries/*/drive_hours/*.parquet"
    types = duckdb.sql(
        f"select typeof(hour_utc), typeof(read_ios), typeof(coverage), typeof(min_coverage) from '{glob}' limit 1"
    ).fetchall()[0]
    assert types == ("TIMESTAMP", "BIGINT", "DOUBLE", "DOUBLE")


def test_ingesting_again_changes_nothing(warehouse: Warehouse) -> None:
    drives = "drive_id,raid_group_id\nd1,g1\n"
    folder = warehouse.put({"a/drive_hours.csv": csv_text(GOOD_ROW), "drives.csv": drives, "drive_events.parquet": b"junk"})
    warehouse.land("bundle", folder)
    before = everything(warehouse)
    for again in ([folder], [folder / "a", folder / "drives.csv"], [folder, folder], [str(folder) + "/"]):
        summary = ingest("bundle", again, warehouse.path)
        assert summary.delivery_seq is None
        assert {file.status for file in summary.files} <= {"already landed", "unreadable"}
        assert everything(warehouse) == before
    assert len(summary.unreadable) == 1


def test_a_new_file_beside_known_ones_is_the_only_one_that_lands(warehouse: Warehouse) -> None:
    folder = warehouse.put({"drive_hours_1.csv": csv_text(GOOD_ROW)})
    warehouse.land("bundle", folder)
    (folder / "drive_hours_0.csv").write_text(csv_text(GOOD_ROW.replace("d1", "d2")))
    summary = warehouse.land("bundle", folder)
    assert [(file.status, file.file_no) for file in summary.files] == [("landed", 1), ("already landed", None)]
    assert warehouse.table("ingested_files").select("delivery_seq", "file_no").rows() == [(1, 1), (2, 1)]
    # a changed file of a known name is a new file
    (folder / "drive_hours_1.csv").write_text(csv_text(GOOD_ROW.replace("d1", "d3")))
    assert warehouse.land("bundle", folder).delivery_seq == 3


def test_a_commit_that_fails_leaves_nothing(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse.land("bundle", {"drive_hours.csv": csv_text(GOOD_ROW)})
    before = everything(warehouse)
    second = warehouse.put({"drive_hours.csv": csv_text(GOOD_ROW.replace("d1", "d2"))})

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for module, name in ((staging, "write_parquet"), (durable, "sync")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, no_space)
            with pytest.raises(StoreError, match="No space left"):
                warehouse.land("bundle", second)
        assert everything(warehouse) == before
    assert warehouse.land("bundle", second).delivery_seq == 2


KILLED = """
import os, sys
import ingest.raw.durable as durable
from ingest import ingest
step, folder, warehouse = sys.argv[1], sys.argv[2], sys.argv[3]
def die(*_, **__):
    os.kill(os.getpid(), 9)
setattr(durable if step != "rename" else os, step, die)
ingest("bundle", [folder], warehouse)
"""


@pytest.mark.parametrize("step", ["sync", "rename"])
def test_a_killed_ingest_leaves_no_delivery_and_the_next_cleans_up(step: str, warehouse: Warehouse) -> None:
    folder = warehouse.put({"drive_hours.csv": csv_text(GOOD_ROW)})
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED, step, str(folder), str(warehouse.path)], cwd=root, check=False)
    assert done.returncode == -9
    assert list_deliveries(warehouse.path) == []
    staging = warehouse.path / "raw/.staging"
    assert len(list(staging.iterdir())) > 0
    assert warehouse.land("bundle", folder).delivery_seq == 1
    assert list(staging.iterdir()) == []


def test_two_ingests_at_once_take_turns(warehouse: Warehouse) -> None:
    folders = [warehouse.put({f"drive_hours_{n}.csv": csv_text(GOOD_ROW.replace(",10,", f",{n + 1},"))}) for n in range(4)]
    threads = [threading.Thread(target=ingest, args=("bundle", [folder], warehouse.path)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [delivery.seq for delivery in list_deliveries(warehouse.path)] == [1, 2, 3, 4]
    assert warehouse.live()["read_ios"].to_list() == [4]


def test_folders_that_are_no_deliveries_are_ignored(warehouse: Warehouse) -> None:
    assert list_deliveries(warehouse.path) == []
    warehouse.land("bundle", {"drives.csv": "drive_id,raid_group_id\nd1,g1\n"})
    os.mkdir(warehouse.path / "raw/deliveries/lost+found")
    (delivery,) = list_deliveries(warehouse.path)
    assert delivery.path.name == "000001.no-hours"
    assert drive_hour_files(delivery) == []


def test_progress_is_reported(warehouse: Warehouse) -> None:
    seen: list[tuple[str, int, int]] = []
    ingest("bundle", [warehouse.put({"drive_hours.csv": csv_text(GOOD_ROW)})], warehouse.path, on_progress=lambda *step: seen.append(step))
    assert {phase for phase, _, _ in seen} >= {"hash", "read", "commit"}
    assert all(0 <= done <= total for _, done, total in seen)

"""Labels of drives: source `labels`."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from ingest import IngestSummary, ingest
from tests.ingest.conftest import Warehouse, counts

HEADER = "drive_id,verdict,labelled_by,labelled_on\n"


def land(warehouse: Warehouse, tmp_path: Path, text: str | bytes, name: str = "labels.csv") -> IngestSummary:
    path = tmp_path / f"in{len(list(tmp_path.iterdir()))}" / name
    path.parent.mkdir()
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return ingest("labels", path, warehouse.path)


def labels(warehouse: Warehouse) -> list[tuple[object, ...]]:
    return warehouse.live("labels").sort("drive_id").select("drive_id", "verdict", "labelled_by", "labelled_on").rows()


def test_the_later_label_counts_and_of_one_day_slow(warehouse: Warehouse, tmp_path: Path) -> None:
    first = HEADER + "S1,slow,ann,2026-01-05\nS2,healthy,ann,2026-01-05\nS2,slow,bob,2026-01-05\nS3,healthy,,\nS1,slow,ann,2026-01-05\n"
    assert counts(land(warehouse, tmp_path, first)) == (5, 3, 0, 1, 1)
    assert counts(land(warehouse, tmp_path, HEADER + "S1,healthy,bob,2026-02-01\nS3,slow,,\n")) == (2, 2, 0, 0, 0)
    # comes last, was said first
    assert counts(land(warehouse, tmp_path, HEADER + "S1,slow,eve,2026-01-20\n")) == (1, 0, 0, 0, 1)
    assert labels(warehouse) == [
        ("S1", "healthy", "bob", date(2026, 2, 1)), ("S2", "slow", "bob", date(2026, 1, 5)), ("S3", "slow", None, None),
    ]  # fmt: skip


def test_a_label_that_says_nothing_is_rejected(warehouse: Warehouse, tmp_path: Path) -> None:
    bad = (",slow,ann,2026-01-05", "S1,,ann,2026-01-05", "S2,Slow,ann,2026-01-05", "S3,slow,ann,yesterday", "S4,slow,ann,2026-01-05,x")
    text = HEADER + "".join(f"{row}\n" for row in (*bad, "S5,slow,,"))
    assert counts(land(warehouse, tmp_path, text)) == (6, 1, 5, 0, 0)
    rejected = warehouse.table("rejected_records").sort("row").select("row", "column", "value", "reason").rows()
    assert rejected[:3] == [
        (1, "drive_id", None, "null"), (2, "verdict", None, "not one of slow, healthy"), (3, "verdict", "Slow", "not one of slow, healthy"),
    ]  # fmt: skip
    assert [(row, column, value) for row, column, value, _ in rejected[3:4]] == [(4, "labelled_on", "yesterday")]
    assert labels(warehouse) == [("S5", "slow", None, None)]


def test_a_file_without_a_verdict_is_unreadable(warehouse: Warehouse, tmp_path: Path) -> None:
    (file,) = land(warehouse, tmp_path, "drive_id,found\nS1,slow\n").files
    assert file.status == "unreadable" and "verdict" in (file.note or "")


def test_labels_may_be_json(warehouse: Warehouse, tmp_path: Path) -> None:
    land(warehouse, tmp_path, '{"drive_id": "S1", "verdict": "slow", "ticket": 7}\n', "labels.ndjson")
    assert labels(warehouse) == [("S1", "slow", None, None)]

"""Labels of drives: source `labels`."""

from __future__ import annotations

from datetime import date

from ingest import IngestSummary
from tests.ingest.conftest import Warehouse, counts

HEADER = "drive_id,verdict,labelled_by,labelled_on\n"


def land(warehouse: Warehouse, text: str) -> IngestSummary:
    return warehouse.land("labels", {"labels.csv": text})


def labels(warehouse: Warehouse) -> list[tuple[object, ...]]:
    return warehouse.rows("labels", "drive_id verdict labelled_by labelled_on")


def test_the_later_label_counts_and_of_one_day_slow(warehouse: Warehouse) -> None:
    first = HEADER + "S1,slow,ann,2026-01-05\nS2,healthy,ann,2026-01-05\nS2,slow,bob,2026-01-05\nS3,healthy,,\nS1,slow,ann,2026-01-05\n"
    assert counts(land(warehouse, first)) == (5, 3, 0, 1, 1)
    assert counts(land(warehouse, HEADER + "S1,healthy,bob,2026-02-01\nS3,slow,,\n")) == (2, 2, 0, 0, 0)
    # comes last, was said first
    assert counts(land(warehouse, HEADER + "S1,slow,eve,2026-01-20\n")) == (1, 0, 0, 0, 1)
    assert labels(warehouse) == [
        ("S1", "healthy", "bob", date(2026, 2, 1)), ("S2", "slow", "bob", date(2026, 1, 5)), ("S3", "slow", None, None),
    ]  # fmt: skip


def test_a_label_that_says_nothing_is_rejected(warehouse: Warehouse) -> None:
    bad = (",slow,ann,2026-01-05", "S1,,ann,2026-01-05", "S2,Slow,ann,2026-01-05", "S3,slow,ann,yesterday", "S4,slow,ann,2026-01-05,x")
    text = HEADER + "".join(f"{row}\n" for row in (*bad, "S5,slow,,"))
    assert counts(land(warehouse, text)) == (6, 1, 5, 0, 0)
    verdict = "not one of slow, healthy"
    *first, (row, column, value, _), _ = warehouse.rejected("row column value reason")
    assert first == [(1, "drive_id", None, "null"), (2, "verdict", None, verdict), (3, "verdict", "Slow", verdict)]
    assert (row, column, value) == (4, "labelled_on", "yesterday")
    assert labels(warehouse) == [("S5", "slow", None, None)]


def test_a_file_without_a_verdict_is_unreadable(warehouse: Warehouse) -> None:
    (file,) = land(warehouse, "drive_id,found\nS1,slow\n").files
    assert file.status == "unreadable" and "verdict" in (file.note or "")


def test_labels_may_be_json(warehouse: Warehouse) -> None:
    warehouse.land("labels", {"labels.ndjson": {"drive_id": "S1", "verdict": "slow", "ticket": 7}})
    assert labels(warehouse) == [("S1", "slow", None, None)]

"""`WAREHOUSE/untold.jsonl`: alarms that a receiver did not take, a line each, kept until it does.

Asked after every task of Airflow, so it loads no data frame library.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.warehouse import Warehouse
from ingest.raw.durable import sync

AGAIN_SECONDS = 600
"""A receiver that is down may take minutes to say so; it is not asked by every task of a run."""

MOST = 20
"""So many are told again word for word, the latest ones."""


def keep_untold(warehouse: Warehouse, receivers: list[str], message: str) -> None:
    """Keep an alarm for those receivers that did not take it; whoever calls has names for them."""
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    with _locked(warehouse) as path:
        _write(path, [*_read(path), *({"receiver": receiver, "at": at, "message": message} for receiver in receivers)])


def tell_untold(warehouse: Warehouse, tell: Callable[[str, str], bool]) -> None:
    """Give each receiver what was kept for it, in one message; `tell` says whether it was taken, or nobody is there to take it."""
    if not _is_due(warehouse.root / "untold.jsonl"):  # most often; nobody need wait for who is telling
        return
    with _locked(warehouse) as path:
        if not _is_due(path):
            return
        records = _read(path)
        taken = {receiver for receiver in {record["receiver"] for record in records} if tell(receiver, _told(records, receiver))}
        _write(path, [record for record in records if record["receiver"] not in taken])


def _is_due(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime >= AGAIN_SECONDS
    except FileNotFoundError:
        return False


def _told(records: list[dict[str, Any]], receiver: str) -> str:
    mine = [record for record in records if record["receiver"] == receiver]
    lines = [f"{record['at']}: {record['message']}" for record in mine[-MOST:]]
    older = [f"the {len(mine) - MOST} before these are in drivetail.log"] if len(mine) > MOST else []
    return "\n".join(["Could not be told when raised:", *older, *lines])


@contextmanager
def _locked(warehouse: Warehouse) -> Iterator[Path]:
    with (warehouse.root / "untold.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield warehouse.root / "untold.jsonl"


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    if not records:
        path.unlink(missing_ok=True)
        return
    draft = path.with_suffix(".draft")
    draft.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    sync(draft)
    os.replace(draft, path)

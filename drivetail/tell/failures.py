"""Steps that fail, told to each receiver once: again after a day, and once more when all is well again (`raw/failures.jsonl`)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta

from drivetail.service.settings import Receiver
from drivetail.tell.notify import NotDelivered, send
from engine.warehouse import Warehouse
from ingest.contract.values import utc_now
from ingest.raw.register import Record, Register

AGAIN_AFTER = timedelta(hours=23)
"""A failure that lasts is told again after this: by each night's run, which begins some seconds sooner or later."""

log = logging.getLogger("drivetail.notify")


def tell_failure(
    warehouse: Warehouse,
    receivers: Sequence[Receiver],
    run: str,
    step: str,
    message: str,
    *,
    lasts: bool = True,
    now: datetime | None = None,
) -> None:
    """Tell each receiver that did not hear it within a day, or since all was well. run: what the step is of, such as a DAG.

    lasts: the step may fail likewise in each run, so the first clause without its numbers says whether it is the same. Else the message is
    of a delivery, which waits for somebody and which no later run tries.
    """
    same = re.sub(r"\d+", "0", message.partition(";")[0]) if lasts else message
    at = now or utc_now()
    log.error("%s, %s: %s", run, step, message)
    with _memory(warehouse) as records:
        for receiver in receivers:
            said = _said(records, run, receiver).get((step, same))
            if (said is None or at - said > AGAIN_AFTER) and _took(receiver, f"{run}, {step}: {message}"):
                records.append({"receiver": receiver.name, "run": run, "step": step, "same": same, "lasts": lasts, "said_at": at})


def tell_well(warehouse: Warehouse, receivers: Sequence[Receiver], run: str) -> None:
    """A run has ended well: tell each receiver that heard of a step that keeps failing."""
    with _memory(warehouse) as records:
        for receiver in receivers:
            steps = sorted({step for step, _ in _said(records, run, receiver, lasts=True)})
            if steps and _took(receiver, f"{run}: well again: {', '.join(steps)}"):
                records.append({"receiver": receiver.name, "run": run, "is_well": True, "said_at": utc_now()})


@contextmanager
def telling(warehouse: Warehouse, receivers: Sequence[Receiver], run: str, step: str) -> Iterator[None]:
    """Tell the receivers whether what is done here fails, which is raised, or ends well."""
    try:
        yield
    except Exception as error:
        tell_failure(warehouse, receivers, run, step, str(error))
        raise
    tell_well(warehouse, receivers, run)


def _said(records: Sequence[Record], run: str, receiver: Receiver, *, lasts: bool | None = None) -> dict[tuple[str, str], datetime]:
    """When a receiver was told of each step's failures last, of those since all was well that last, do not, or all."""
    said: dict[tuple[str, str], datetime] = {}
    for record in records:
        if (record["receiver"], record["run"]) != (receiver.name, run):
            continue
        if "is_well" in record:
            said.clear()
        elif lasts in (None, record["lasts"]):
            said[record["step"], record["same"]] = datetime.fromisoformat(str(record["said_at"]))
    return said


@contextmanager
def _memory(warehouse: Warehouse) -> Iterator[list[Record]]:
    """Records of what was sent; those appended are kept. Receivers get their messages from a full disk, too."""
    register, records = Register(warehouse.raw, "failures"), []
    with ExitStack() as held:
        with suppress(OSError):
            warehouse.raw.mkdir(exist_ok=True)
            held.enter_context(register.locked())
            records = register.read(skips_damaged=True)
        known = len(records)
        yield records
        with suppress(OSError):
            register.append(records[known:])


def _took(receiver: Receiver, message: str) -> bool:
    """Send a message; the log says why a receiver did not take it."""
    try:
        send(receiver, "drivetail", message)
    except NotDelivered as error:  # one that is down keeps the message from no other
        log.error(str(error))
        return False
    return True

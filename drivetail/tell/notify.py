"""Messages to the receivers of `[[notify]]`, through Apprise: mail, Slack, PagerDuty, a webhook and many more (docs/alerts.md).

A receiver's URL holds its secrets: it is printed, logged and stored nowhere; the receiver's name is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import unquote

from drivetail.service.settings import Receiver
from drivetail.tell.alerts import Alert, headline, published_alerts, report_once
from drivetail.tell.findings import find
from drivetail.tell.silence import report_silence_once, silence_headline, silences, silent_hosts
from drivetail.tell.watch import slow_drives
from drivetail.terminal import visible
from engine.read import Row
from engine.warehouse import Warehouse
from ingest.contract.extras import how_to_install

RETRIES, WAIT_SECONDS = 2, 2
"""Attempts for a message that a receiver did not take, and seconds between them; `?retry=` and `?wait=` of its URL override them."""

SHORTEST_SECRET = 4
"""Characters of a part of a URL that is left out of every message."""


class NotDelivered(RuntimeError):
    """A receiver did not take a message; says which receiver and why."""


@dataclass(frozen=True)
class Delivery:
    """Outcome for one receiver: how many alerts and silent hosts it took, or why it took none."""

    receiver: str
    alert_count: int
    silent_count: int = 0
    failure: str | None = None


def notify_new_alerts(warehouse: Warehouse, receivers: Sequence[Receiver], *, now: datetime | None = None) -> list[Delivery]:
    """Send each receiver the open alerts and the silent hosts that it has not had. One that fails gets them at the next call, it alone."""
    published, silent, deliveries = published_alerts(warehouse, now=now), silent_hosts(warehouse), []

    @cache  # looked up only when a new alert is sent: most hours have none
    def waits() -> dict[str, str | None]:
        return {finding["drive_id"]: finding["why_wait"] for finding in find(warehouse, now=now).findings}

    for receiver in receivers:

        def tell(alerts: list[Alert], receiver: Receiver = receiver) -> None:
            send(receiver, f"{headline(alerts)} (drivetail)", slow_drives(alerts, waits()))

        def tell_silence(hosts: list[Row], receiver: Receiver = receiver) -> None:
            send(receiver, f"{silence_headline(hosts)} (drivetail)", silences(hosts))

        try:
            alerts = report_once(warehouse, published, tell, receiver=receiver.name)
            deliveries.append(
                Delivery(receiver.name, len(alerts), len(report_silence_once(warehouse, silent, tell_silence, receiver.name)))
            )
        except NotDelivered as error:
            deliveries.append(Delivery(receiver.name, 0, failure=str(error)))
    return deliveries


def send(receiver: Receiver, title: str, text: str) -> None:
    """Send a message, with retries. Names in it are names: no service takes them for markup. Raises: NotDelivered."""
    apprise = _apprise(receiver)
    try:
        url = receiver.address()
    except KeyError as error:
        raise NotDelivered(f"{receiver.name}: the environment has no {error.args[0]}, which its url names in drivetail.toml") from None
    with _said(url) as said:
        asset = apprise.AppriseAsset(app_id="drivetail", default_service_retry=RETRIES, default_service_wait=WAIT_SECONDS)
        service = apprise.Apprise.instantiate(url, asset=asset)
        if service is None:
            raise NotDelivered(f"{receiver.name}: its url is not one of Apprise's ({'; '.join(said)}); see docs/alerts.md")
        service.overflow_mode = apprise.OverflowMode.SPLIT  # else a service refuses what is too long
        receivers = apprise.Apprise(asset=asset)
        receivers.add(service)
        if not receivers.notify(
            title=visible(title), body=visible(text), body_format=apprise.NotifyFormat.TEXT, notify_type=apprise.NotifyType.WARNING
        ):
            raise NotDelivered(f"{receiver.name}: did not take the message ({'; '.join(said)}); the next call sends it again")


def _apprise(receiver: Receiver) -> Any:
    try:
        import apprise
    except ImportError as error:
        raise NotDelivered(f"{receiver.name}: sending needs apprise ({error}); {how_to_install('notify')}") from error
    return apprise


@contextmanager
def _said(url: str) -> Iterator[list[str]]:
    """Messages that Apprise logs meanwhile, without any part of the URL."""
    parts = {part for text in (url, unquote(url)) for part in re.split(r"[/:@?&=,]+", text.partition("://")[2])}
    secrets = sorted((part for part in parts if len(part) >= SHORTEST_SECRET), key=len, reverse=True)
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage().replace(url, "***")
            for secret in secrets:
                text = text.replace(secret, "***")
            text = text.rstrip(".")
            if not text.startswith("Attempt ") and text not in said:
                said.append(text)

    logger, keep = logging.getLogger("apprise"), Keep(logging.WARNING)
    was = logger.propagate, logger.level
    logger.propagate, logger.level = False, logging.WARNING
    logger.addHandler(keep)
    try:
        yield said
    finally:
        logger.removeHandler(keep)
        logger.propagate, logger.level = was
